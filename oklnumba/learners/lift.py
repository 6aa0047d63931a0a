"""Linear learners on features of the inputs: kernel learners in an explicit space."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba import losses
from oklnumba.features import Features, check_features
from oklnumba.learners.awv import LinearAWV
from oklnumba.learners.learner import Learner, Trace
from oklnumba.learners.linear import LinearLearner
from oklnumba.state import aligned_zeros


class WithFeatures(Learner):
    """A linear learner on features of the inputs: a kernel learner in an explicit space (oco).

    FOGD is WithFeatures(FourierFeatures(...), OGD(...)) and PKAWV is
    WithFeatures(TaylorFeatures(...), LinearAWV(...)): the same forecasts.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures or NystromFeatures.
    learner : learner of this module
        Its hyper-parameters are used; it is not changed itself.

    Remarks
    -------
    The bounds of the linear learner hold in the space of the features, against functions w.z(x).

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.WithFeatures(okl.TaylorFeatures(degree=2), okl.AdaptiveFTRL("adagrad"))
    >>> bool(okl.run(learner, X, X[:, 0] * X[:, 1]).losses[-100:].mean() < 0.02)
    True
    """

    _ROWS = 512  # rounds whose features are kept at a time

    def __init__(self, features: Features, learner: LinearLearner | LinearAWV):
        self.features = features
        self.learner = learner

    @property
    def _certified(self) -> bool:  # type: ignore[override]  # as the learner within
        return bool(getattr(self.learner, "_certified", False))

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return self._inner.size if self._width is not None else 0

    @property
    def w(self) -> np.ndarray:
        """The weights of the features, shape (r,)."""
        if not self._ready():
            raise ValueError("there are no weights yet: play a round first")
        return self._inner.w

    def _linear(self) -> LinearLearner | LinearAWV:
        if not isinstance(self.learner, LinearLearner | LinearAWV):
            raise ValueError(
                "learner must be a linear learner of oklnumba.oco such as OGD(), "
                f"but is {self.learner!r}"
            )
        return self.learner

    def _loss(self) -> losses.Loss:
        return self._linear()._loss()

    def _check_labels(self, y: np.ndarray) -> None:
        self._linear()._check_labels(y)

    def _start(self, d: int) -> None:
        learner = self._linear()
        self._write, r = check_features(self.features)._writer(d)
        self._inner = type(learner)(**learner.get_params(deep=False))
        self._inner._begin(r)
        self._Z = aligned_zeros(self._ROWS, r)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._inner._played = self._played
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            Z = self._Z[: stop - start]
            self._write(X[start:stop], Z)
            try:
                self._inner._play(Z, y[start:stop], trace.rows(start, stop))
            except FloatingPointError as error:
                self._broken = str(error)
                raise
            self._played += stop - start

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        self._inner._played = self._played
        forecasts = np.zeros(len(X))
        if self._played == 0:
            return forecasts
        for start in range(0, len(X), self._ROWS):
            Z = self._Z[: len(X[start : start + self._ROWS])]
            self._write(X[start : start + self._ROWS], Z)
            forecasts[start : start + self._ROWS] = self._inner._forecast(Z)
        return forecasts

    def _state(self) -> dict[str, Any]:
        return self._inner._state()

    def _restore(self, state: dict[str, Any]) -> None:
        self._inner._restore(state)
