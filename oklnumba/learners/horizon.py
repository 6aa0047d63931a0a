"""Time series: direct forecasts of any learner, several steps ahead."""

import copy
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from oklnumba.components.kernels import refuse_precomputed
from oklnumba.core import inputs
from oklnumba.core.checks import refuse, require, require_count, require_flag
from oklnumba.core.guard import locked
from oklnumba.core.params import KW_ONLY, count, field_with, required
from oklnumba.hot.primitives.jit import UNBOUNDED, Array
from oklnumba.learners.base.engine import Trace
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.traits import Refusal, Traits
from oklnumba.learners.base.waiting import DelayedLabels
from oklnumba.learners.base.wrapper import Wrapper, check_member
from oklnumba.learners.lags import add_labels

REFUSAL = Refusal("Horizon", "raise steps by as many rounds")
COUNTS = Refusal("Horizon", "play them without labels by okl.run(..., labels='optional')")


class HorizonState(NamedTuple):
    """The last labels; for one that is missing the last known one before it, else NaN."""

    recent: Annotated[Array, "recent", UNBOUNDED]


def _check_late(name: str, value: Any) -> Learner:
    learner = check_member(name, value)
    if refusal := learner._refuses_late:
        what = f"a learner that takes late labels, as {refusal.name} does not: {refusal.cure}"
        refuse(name, value, what)
    return learner


def _check_seasons(name: str, value: Any) -> tuple[int, ...]:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    seasons = value if isinstance(value, list | tuple) else [value]
    return tuple(require_count(name, one, 2) for one in seasons)


class Horizon(Wrapper[HorizonState]):
    """A learner that forecasts each label from those of ``steps`` rounds before and earlier.

    A direct forecast (Chevillon 2007). With n = t - ``steps``, the learner's row of round t has
    y_n, y_{n-j} - y_n for j = 1, ..., ``lags`` - 1, y_{t-s} - y_n for each ``season`` s, and x_t,
    what is known beforehand of time t. It forecasts the change y_t - y_n, having learned the rows
    of rounds 1, ..., n: the loss of round t is of a forecast that knew no label after round n.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself. ``Intervals(...)`` for intervals.
    steps : int >= 1
        Rounds ahead.
    lags : int >= 1
        Last labels that it sees.
    season : int >= 2 or several, optional
        Rounds in a season, such as (24, 168) for hours of a day and of a week. Of those shorter
        than ``steps`` the last label that is known, of the same time of the season, is seen.

    Remarks
    -------
    Rows of the first rounds, before there are so many labels, are not learned; the forecast is y_n,
    or 0. With ``labels="optional"`` rows without a label are rounds too: they are not learned, and
    as an input the last known label before stands for theirs. In ``predict`` each row is the next
    one. Late labels and batches are refused: raise ``steps`` instead. Bounds on labels are as in
    ``Lags``. No certificate: the theorems are about labels that come at once.

    Examples
    --------
    >>> t = np.arange(1000)
    >>> y = 50 + 0.1 * t + 10 * np.sin(2 * np.pi * t / 24)
    >>> X = np.ones((1000, 1))  # nothing is known of a time, and the ridge has no intercept
    >>> model = okl.Horizon(okl.LinearRidge(), steps=12, season=24)
    >>> bool(okl.run(model, X, y).losses[100:].mean() < 0.1)
    True
    >>> model.forecast(X[:12])[[0, -1]].round(1)  # rounds 1001 and 1012
    array([141.4, 158.2])
    """

    _layout, _note_width, _can_widen = HorizonState, 0, False
    _set_late = Learner._set_late  # of no use to the learner within, whose rows wait here

    learner: Learner = required(_check_late)
    _: KW_ONLY
    steps: int = count(24, least=1)
    lags: int = count(3, least=1)
    season: int | tuple[int, ...] | None = field_with(_check_seasons, None)

    @property
    def _traits(self) -> Traits:
        return super()._traits._replace(
            certificate_rows=0, outputs_at_once=False, needs_last_label=REFUSAL, plays_gaps=True,
            counts_rows=COUNTS, is_member=False,
        )  # fmt: skip

    def _check_params(self) -> None:
        self._refuse_signs(self.learner, "pass a learner of real labels")
        refuse_precomputed(self.learner, "Horizon")

    @locked
    def forecast(self, X: ArrayLike, return_interval: bool = False) -> Any:
        """Return the forecasts of the next rounds, (m,), from their inputs X, (m, d).

        Row i is the i-th round from now, of m <= ``steps`` rounds. ``return_interval`` returns the
        intervals too, (m, 2). Nothing changes: a copy learns the labels that wait.
        """
        if require_flag("return_interval", return_interval):
            self._require_intervals()
        steps = self._hyper.steps
        X = inputs.as_rows(X, self._width, schema=self._schema_for(X), fill=False)
        X = inputs.make_dense(X)  # the copy fills a gap by the rows before it
        require(len(X) <= steps, "X", X, f"the inputs of at most steps={steps} rounds")
        trace = copy.deepcopy(self)._play_rows(X, np.full(len(X), np.nan))
        return (trace.predictions, trace.intervals) if return_interval else trace.predictions

    @property
    def _unlearned(self) -> str | None:
        if not self.rounds or self._inner.rounds:
            return None
        needed = self._used_lags[-1] + self._hyper.steps
        return (
            f"Horizon has learned none of {self.rounds} rows, and forecasts the last label: these "
            f"steps, lags and seasons take {needed} rows from the first label on; make them smaller"
        )

    def _check_labels(self, y: np.ndarray) -> None:
        self._check_changes(y)

    def _start(self, d: int) -> None:
        p = self._hyper
        seasons = (-(-p.steps // s) * s for s in p.season or ())
        self._used_lags = sorted({*range(p.steps, p.steps + p.lags), *seasons})
        self._make_state(recent=self._used_lags[-1])
        self._state.recent[:] = np.nan
        p.learner._open(d + len(self._used_lags))
        self._delayed = DelayedLabels(p.learner, delay=p.steps - 1)

    def _advice(self, X: np.ndarray) -> str | None:
        return None  # the learner's inputs are others

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        recent = self._state.recent
        labels = np.concatenate([recent, y])
        known = np.where(np.isnan(labels), 0, np.arange(len(labels)))
        labels = labels[np.maximum.accumulate(known)]
        past = sliding_window_view(labels, len(recent))[: len(y)]
        Z, now = add_labels(X, past, self._used_lags)  # NaN where no label is known
        recent[:] = labels[len(y) :]
        first = int(np.isnan(Z).any(axis=1).sum())  # the rows without all labels come first
        trace.predictions[:first], trace.sizes[:first] = 0.0, self.size
        if trace.intervals is not None:
            trace.intervals[:first] = -np.inf, np.inf
        for part in self._delayed.play(Z[first:], (y - now)[first:]):
            stop = first + len(part.sizes)
            trace.predictions[first:stop], trace.sizes[first:stop] = part.predictions, part.sizes
            if trace.intervals is not None:
                trace.intervals[first:stop] = part.intervals + now[first:stop, None]
            first = stop
        trace.predictions[...] += np.nan_to_num(now)
        self._played += len(y)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        recent = self._state.recent
        Z, now = add_labels(X, np.broadcast_to(recent, (len(X), len(recent))), self._used_lags)
        if np.isnan(Z[:1]).any():
            return np.nan_to_num(now)
        return self._inner._forecast_inside(Z) + now

    def _export(self) -> dict[str, Any]:
        return super()._export() | self._delayed.contents()

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._delayed.restore(state)
