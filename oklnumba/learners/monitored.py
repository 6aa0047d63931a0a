"""A learner that remembers how well it forecast, for whoever runs it as a service."""

from functools import reduce
from operator import add
from typing import Annotated, Any, NamedTuple

import numpy as np

from oklnumba.components.scaling import OUTLIER, measure_range
from oklnumba.core.params import KW_ONLY, count, required
from oklnumba.hot.primitives.jit import UNBOUNDED, Array
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.base.wrapper import Wrapper, check_member

ALARM = 4.0  # standard deviations of a rank sum


class MonitoredState(NamedTuple):
    """Round t is entry t mod 2 W of the first two, t mod W of the others, W = ``recent``."""

    losses: Annotated[Array, "both", UNBOUNDED]
    labels: Annotated[Array, "both"]
    outside: Annotated[Array, "recent"]  # 1 for inputs beyond all that came before
    low: Annotated[Array, "d"]
    high: Annotated[Array, "d"]
    totals: Annotated[Array, "totals", UNBOUNDED]  # losses before the last W; round of the alarm


class Monitored(Wrapper[MonitoredState]):
    """A learner whose ``health()`` also says how well it forecasts, and whether that changed.

    It forecasts as the learner does. Each time ``recent`` more rounds are over, their losses are
    compared with those of as many rounds before, by the sum of their ranks (Mann and Whitney 1947):
    4 standard deviations above its mean is an alarm. Without drift, and with losses that do not
    depend on each other, that happens once in 30,000 comparisons.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself.
    recent : int >= 8
        Rounds that are compared.

    Remarks
    -------
    Losses are of the forecast just before the label is learned. If labels are late, the forecast
    that was served may be older. A slow drift raises ``recent_loss`` but no alarm.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (3000, 2))
    >>> y = np.where(np.arange(3000) < 2100, X[:, 0], X[:, 1]) + 0.1 * rng.standard_normal(3000)
    >>> learner = okl.Monitored(okl.LinearRidge())
    >>> learner.partial_fit(X, y).health().alarm
    2400
    """

    _layout = MonitoredState

    learner: Learner = required(check_member)
    _: KW_ONLY
    recent: int = count(300, least=8)

    @property
    def _traits(self) -> Traits:
        return super()._traits._replace(outputs_at_once=False)

    def _start(self, d: int) -> None:
        super()._start(d)
        W = self._hyper.recent
        self._make_state(both=2 * W, recent=W, d=d, totals=2)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first = self._played
        super()._play(X, y, trace)
        losses = self._loss().of_rounds(trace.predictions, y)
        self._note_inputs(X, first)
        state, start, W = self._state, 0, self._hyper.recent
        while start < len(y):  # to the end of the data or of a comparison
            at = (first + start) % (2 * W)
            stop = min(len(y), start + W - at % W)
            ring = slice(at, at + stop - start)
            state.losses[ring], state.labels[ring] = losses[start:stop], y[start:stop]
            gone = state.losses[(at + W) % (2 * W) :][: stop - start].tolist()
            state.totals[0] = reduce(add, gone, float(state.totals[0]))  # alike in any pieces
            start, t = stop, first + stop
            if t % W == 0 and t >= 2 * W and self._has_risen(t):
                state.totals[1] = t

    def _note_inputs(self, X: np.ndarray, first: int) -> None:
        """Mark the rows with an input beyond those of all rounds before."""
        state = self._state
        if first == 0:
            state.low[:] = state.high[:] = X[0]
        low = np.minimum.accumulate(np.vstack([state.low, X]))
        high = np.maximum.accumulate(np.vstack([state.high, X]))
        beyond = (X < low[:-1]) | (X > high[:-1])
        last = np.arange(len(X))[-len(state.outside) :]
        state.outside[(first + last) % len(state.outside)] = beyond[last].any(axis=1)
        state.low[:], state.high[:] = low[-1], high[-1]

    def _has_risen(self, t: int) -> bool:
        """Return whether the last W losses rank above the W before."""
        W = self._hyper.recent
        now, before = self._last(self._state.losses, t, W), self._last(self._state.losses, t - W, W)
        before = np.sort(before)
        above = np.searchsorted(before, now, "left") + np.searchsorted(before, now, "right")
        return bool(above.sum() / 2 - W * W / 2 > ALARM * np.sqrt(W * W * (2 * W + 1) / 12))

    @staticmethod
    def _last(ring: np.ndarray, t: int, n: int) -> np.ndarray:
        """Return the entries of the n rounds before round t."""
        return ring[np.arange(t - n, t) % len(ring)]

    def _watch(self) -> dict[str, Any]:
        if (t := self._played) == 0:
            return {}
        n = min(t, self._hyper.recent)
        losses, labels = (self._last(a, t, n) for a in (self._state.losses, self._state.labels))
        total, alarm = self._state.totals
        middle, reach = measure_range(labels[None], OUTLIER)
        return {
            "recent_loss": float(losses.mean()),
            "loss_before": float(total) / (t - n) if t > n else None,
            "outliers": float(np.mean(np.abs(labels - middle[0]) > reach[0])),
            "out_of_range": float(self._last(self._state.outside, t, n).mean()),
            "alarm": int(alarm) or None,
        }
