"""How sure a forecast is: intervals around any learner that keep their coverage."""

from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.core.guard import locked
from oklnumba.core.params import KW_ONLY, field_in, positive, required
from oklnumba.hot.intervals import HALF_WIDTH, REACH, SCALE, SEEN, START, interval_rounds
from oklnumba.hot.primitives.jit import UNBOUNDED, Array, enter
from oklnumba.learners.base.late import NO_NOTES
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.traits import Refusal, Traits
from oklnumba.learners.base.wrapper import Wrapper, check_member

OUTSIDE = Refusal("Intervals", "put Intervals around the others")  # where it is within another
FIRST = 0.0, np.inf, np.nan  # f, h and Q where a row was asked before there was any data


class IntervalsState(NamedTuple):
    """The numbers of interval_rounds."""

    tracked: Annotated[Array, "tracked", UNBOUNDED]


class Intervals(Wrapper[IntervalsState]):
    """Intervals around the forecasts of any learner, with coverage guaranteed on any stream.

    The interval is [f - h, f + h], f the learner's forecast and h = exp(Q + eta E) from the errors
    |y - f| so far: Q follows the ``coverage``-quantile of their logs, E is how many labels were
    outside beyond the share 1 - coverage. This is quantile tracking (Angelopoulos, Candes and
    Tibshirani 2023, after Gibbs and Candes 2021). For drift and adversarial labels too, after n
    rounds the share of labels inside differs from ``coverage`` by at most (B / eta + 1) / n,
    ``coverage_bound``. B is the largest |log |y - f| - Q| so far. ``okl.run`` with ``delay`` or
    ``batch`` judges each label by the interval as issued: the bound is then (B / eta + D + 1) / n
    if D labels come between a forecast and its own (docs/intervals.md).

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself. For classes see
        ``interop.OnlineClassifier``.
    coverage : float in (0, 1)
        Share of the labels to be inside.
    eta : float > 0
        Step of E, and least step of Q. Larger values hold the coverage in shorter stretches of
        rounds, but widths vary more.

    Remarks
    -------
    The papers track the error itself, whose B / eta is ruined by one wild label; logarithms have no
    unit. The steps of Q are 2 / sqrt(t), but at least eta, to follow drift. The width follows time,
    not the input. Before the first error h is infinite, or 0 after exact forecasts. Rounds that are
    forecast exactly do not count in n, and do not narrow the next interval. Around ``Intervals``,
    ``Lags``, ``Horizon``, ``Standardized``, ``Monitored`` and ``MultiOutput`` show its intervals.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (3000, 2))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(3000)
    >>> learner = okl.Intervals(okl.KRLS(okl.Gaussian(0.5)), coverage=0.9)
    >>> low, high = okl.run(learner, X, y).intervals.T
    >>> print(f"{np.mean((low <= y) & (y <= high)):.3f}, bound {learner.coverage_bound:.3f}")
    0.900, bound 0.030
    >>> learner.predict_interval([[0.5, 0.0]]).round(1)
    array([[0.9, 1.1]])
    """

    _layout = IntervalsState
    _issued = np.empty((0, 4))  # with the forecasts of late labels that come next

    learner: Learner = required(check_member)
    _: KW_ONLY
    coverage: float = field_in("(0, 1)", 0.9)
    eta: float = positive(0.1)

    @property
    def _traits(self) -> Traits:
        within = super()._traits
        refusal = within.needs_last_label or OUTSIDE
        return within._replace(outputs_at_once=False, needs_last_label=refusal)

    @property
    @locked
    def half_width(self) -> float:
        """Half the width of the next interval; infinite before the first error."""
        self._refuse_fault()
        return self._half_width

    @property
    def _half_width(self) -> float:
        return np.inf if self._width is None else float(self._state.tracked[HALF_WIDTH])

    @property
    @locked
    def coverage_bound(self) -> float:
        """(B / eta + D + 1) / n, B and D of the labels so far; infinite before the first error."""
        if not self._ready() or not self._state.tracked[SEEN]:
            return np.inf
        tracked = self._state.tracked
        return float((tracked[REACH] / self._hyper.eta + 1.0) / tracked[SEEN])

    @property
    def _refuses_late(self) -> Refusal | None:
        return super()._traits.needs_last_label  # of the learner within

    @property
    def _note_width(self) -> int:
        """f, h and Q, then what the learner within notes."""
        return 3 + super()._note_width

    def _set_late(self, notes: np.ndarray, missed: np.ndarray | None = None) -> None:
        super()._set_late(notes[:, 3:], missed)
        if missed is not None:
            issued = np.where(np.isnan(notes[:, :1]), FIRST, notes[:, :3])
            self._issued = np.column_stack([issued, missed])

    def _forecast_rows(self, X: np.ndarray, notes: np.ndarray = NO_NOTES) -> Trace:
        trace = super()._forecast_rows(X, notes)
        if notes.size:
            tracked = self._state.tracked
            notes[:, 0], notes[:, 1] = trace.predictions, tracked[HALF_WIDTH]
            notes[:, 2] = tracked[SCALE] if tracked[SEEN] else np.nan
        return trace

    def _start(self, d: int) -> None:
        super()._start(d)
        self._make_state(tracked=len(START))
        self._state.tracked[:] = START

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        super()._play(X, y, trace)
        p, out = self._hyper, trace.intervals
        out = np.empty((len(y), 2)) if out is None else out  # as a member of another learner
        issued, self._issued = self._issued[: len(y)], self._issued[len(y) :]
        loop = enter(interval_rounds)
        loop(trace.predictions, y, p.coverage, p.eta, self._state.tracked, issued, out)
