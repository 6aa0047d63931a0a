"""Time series: the last labels as inputs of any learner."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from oklnumba.components.kernels import refuse_precomputed
from oklnumba.core.params import KW_ONLY, count, flag, required
from oklnumba.hot.primitives.jit import Array
from oklnumba.learners.base.engine import Facts, Trace
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.traits import Refusal, Traits
from oklnumba.learners.base.wrapper import Wrapper, check_member

REFUSAL = Refusal("Lags", "take the lags of okl.Horizon instead")
COUNTS = Refusal("Lags", "fill their labels, such as by y.fillna(y.shift(season))")


def add_labels(
    X: np.ndarray, past: np.ndarray, lags: Sequence[int], difference: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs with the labels of some lags before each row, and what to add to forecasts.

    past : (n, at least the longest lag), labels before each row.
    """
    lagged = past[:, [-lag for lag in lags]]  # a copy
    last = lagged[:, 0].copy() if difference else np.zeros(len(X))
    lagged[:, 1:] -= last[:, None]
    return np.column_stack([lagged, X]), last  # columns that come later stand last


class LagsState(NamedTuple):
    """The last labels."""

    recent: Annotated[Array, "recent"]


class Lags(Wrapper[LagsState]):
    """A learner that also sees the last labels, and forecasts the change from the last one.

    Its inputs in round t are y_{t-1}, y_{t-j} - y_{t-1} for j = 2, ..., ``lags``, ``season`` and
    ``season`` + 1, and x_t; its label is y_t - y_{t-1}. So a learner without memory
    follows levels and seasons (differences in place of levels: Box and Jenkins 1970).

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are used; it is not played itself.
    lags : int >= 1
        Last labels that it sees.
    difference : bool
        False: the labels themselves take the place of differences, as inputs and as the label.
    season : int >= 2, optional
        Rounds in a season, such as 24 for hours of a day.

    Remarks
    -------
    Before there are so many labels, the first one stands for those that are missing. In ``predict``
    all rows see the last labels so far. A run with late labels or batches is refused, since its
    forecasts would have older labels than it learned from: ``Horizon`` forecasts further ahead. The
    functions of the certificate are f(x, labels) plus the last label. A bound on labels, as C of
    ``KONS``, must be twice the largest one, since changes are learned.

    Examples
    --------
    >>> t = np.arange(1000.0)
    >>> y = 50 + 0.1 * t + 10 * np.sin(2 * np.pi * t / 24)
    >>> X = np.zeros((1000, 1))  # nothing but the series itself
    >>> plain, lagged = (
    ...     okl.run(learner, X, y).losses[100:].mean()
    ...     for learner in (okl.LinearRidge(), okl.Lags(okl.LinearRidge(), season=24))
    ... )
    >>> bool(plain > 100), bool(lagged < 0.1)
    (True, True)
    """

    _layout = LagsState

    learner: Learner = required(check_member)
    _: KW_ONLY
    lags: int = count(3, least=1)
    difference: bool = flag(True)
    season: int | None = count(None, least=2)

    @property
    def _traits(self) -> Traits:
        return super()._traits._replace(
            outputs_at_once=False,
            needs_last_label=REFUSAL,
            counts_rows=COUNTS,
            season=self._hyper.season,
        )

    def _check_params(self) -> None:
        refuse_precomputed(self.learner, "Lags")
        if self.difference:
            self._refuse_signs(self.learner, "pass difference=False, or a learner of real labels")

    def _check_labels(self, y: np.ndarray) -> None:
        if self._hyper.difference:
            self._check_changes(y)
        else:
            super()._check_labels(y)

    def _start(self, d: int) -> None:
        p = self._hyper
        seasonal = [] if p.season is None else [p.season, p.season + 1]
        self._used_lags = sorted({*range(1, p.lags + 1), *seasonal})
        self._make_state(recent=self._used_lags[-1])
        p.learner._open(d + len(self._used_lags))

    def _facts(self) -> Facts:
        facts = self._inner._facts()
        if not (facts.space and self._hyper.difference):
            return facts
        return facts._replace(space=f"{facts.space}, added to the last label")

    def _advice(self, X: np.ndarray) -> str | None:
        return None  # the learner's inputs are others

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        recent = self._state.recent
        if self._played == 0:
            recent[:] = y[0]
        labels = np.concatenate([recent, y])
        past = sliding_window_view(labels, len(recent))[:-1]
        Z, last = add_labels(X, past, self._used_lags, self._hyper.difference)
        if self._played == 0:  # no label has come yet
            Z[0, : -X.shape[1]] = last[0] = 0.0
        super()._play(Z, y - last, trace)
        trace.predictions[...] += last
        if trace.intervals is not None:
            trace.intervals[...] += last[:, None]
        recent[:] = labels[len(y) :]

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        recent = self._state.recent
        past = np.broadcast_to(recent, (len(X), len(recent)))
        Z, last = add_labels(X, past, self._used_lags, self._hyper.difference)
        return super()._forecast(Z) + last
