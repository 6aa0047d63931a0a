"""How sure a forecast is: intervals around any learner that keep their coverage."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core.guard import locked
from oklnumba.core.params import count, positive, within
from oklnumba.hot.intervals import HALF_WIDTH, REACH, interval_rounds
from oklnumba.learners.base.learner import Trace
from oklnumba.learners.base.wrapper import Wrapper


class WidthTracker:
    """The half-width of intervals, from the errors so far; hot/intervals.py has the algorithm."""

    def __init__(self, coverage: float, eta: float, window: int):
        self.coverage, self.eta = coverage, eta
        none = np.full(window, np.inf)
        self.arrays = {
            "numbers": np.array([0.0, -np.inf, 0.0, 0.0, np.inf, 0.0]),
            "recent": none,
            "ordered": none.copy(),
        }

    def play(self, forecasts: np.ndarray, labels: np.ndarray, out: np.ndarray | None) -> None:
        """Play rounds; write their intervals, (n, 2), each made before its label counts."""
        out = np.empty((len(forecasts), 2)) if out is None else out
        interval_rounds(forecasts, labels, self.coverage, self.eta, *self.arrays.values(), out)

    def __getitem__(self, entry: int) -> float:
        return float(self.arrays["numbers"][entry])


class Intervals(Wrapper):
    """Intervals around the forecasts of any learner, with coverage guaranteed on any stream.

    The interval of a round is [f - h, f + h], f the learner's forecast and h from the errors before
    it. A label outside widens the next interval, a label inside narrows it a little. This is
    quantile tracking (Angelopoulos, Candes and Tibshirani 2023, after Gibbs and Candes 2021) on the
    logarithms of the errors |y - f|: h = exp(Q + eta E), where Q is the log of the
    ``coverage``-quantile of the last errors and E says how many labels more than 1 - coverage of
    them were outside. Before the first error the interval is the whole line.

    The guarantee, for drifting and adversarial labels too: after n rounds the share of labels
    inside differs from ``coverage`` by at most (B / eta + 1) / n, where B is the largest
    |log |y - f| - Q| so far: how many e-folds an error was away from its scale. It is
    ``coverage_bound``.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself. Its forecasts stay the same. For a
        loss that takes labels -1 and +1 see ``interop.OnlineClassifier``, which gives sets.
    coverage : float in (0, 1)
        Share of the labels to be inside.
    eta : float > 0
        An outside label widens the next interval by the factor exp(eta coverage). Larger values
        hold the coverage in shorter stretches of rounds, but widths vary more.
    window : int >= 1
        The scale is that of so many last errors: how fast the width follows drift.

    Remarks
    -------
    The papers track the error itself, whose B / eta depends on its unit and is ruined by one wild
    label; logarithms have no unit. Their steps are a share of the largest error, ours of the
    present width; Q moves by steps that decay as 1 / t up to ``window`` rounds, then stay.

    More labels than that are inside only where forecasts are exact: errors below 1e-9 of the
    largest so far count as that much. All widths are equal over x: the interval follows time, not
    the input. As a member of another learner, such as ``MultiOutput``, it tracks its intervals, but
    the run does not record them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (3000, 2))
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(3000)
    >>> learner = okl.Intervals(okl.KRLS(okl.Gaussian(0.5)), coverage=0.9)
    >>> low, high = okl.run(learner, X, y).intervals.T
    >>> print(f"{np.mean((low <= y) & (y <= high)):.3f} +- {learner.coverage_bound:.3f}")
    0.900 +- 0.036
    >>> learner.predict_interval([[0.5, 0.0]]).round(1)
    array([[0.8, 1.2]])
    """

    _: KW_ONLY
    coverage: float = within("(0, 1)", 0.9)
    eta: float = positive(0.1)
    window: int = count(1, 200)

    @property
    @locked
    def half_width(self) -> float:
        """Half the width of the next interval; infinite before the first error."""
        return self._tracker[HALF_WIDTH] if self._ready() else np.inf

    @property
    @locked
    def coverage_bound(self) -> float:
        """(B / eta + 1) / n, with B from the labels so far; infinite before any data."""
        if not self._ready():
            return np.inf
        return (self._tracker[REACH] / self._hyper.eta + 1.0) / max(self._played, 1)

    @locked
    def predict_interval(self, X: ArrayLike) -> np.ndarray:
        """Return the intervals for the rows of X, (n, 2), each on its own; nothing changes.

        Parameters
        ----------
        X : array_like or scipy.sparse of shape (n, d)
        """
        return self.predict(X)[:, None] + self.half_width * np.array([-1.0, 1.0])

    def _start(self, d: int) -> None:
        super()._start(d)
        p = self._hyper
        self._tracker = WidthTracker(p.coverage, p.eta, p.window)

    def _trace(self, n: int) -> Trace:
        return super()._trace(n)._replace(intervals=np.empty((n, 2)))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        super()._play(X, y, trace)
        self._tracker.play(trace.predictions, y, trace.intervals)

    def _state(self) -> dict[str, Any]:
        return super()._state() | self._tracker.arrays

    def _restore(self, state: dict[str, Any]) -> None:
        for name, array in self._tracker.arrays.items():
            array[...] = state[name]
        super()._restore(state)
