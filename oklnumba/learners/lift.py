"""Linear learners on features of the inputs: kernel learners in an explicit space."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.features import Features, check_features
from oklnumba.core.health import Part
from oklnumba.core.params import anew, told
from oklnumba.learners.awv import LinearAWV, discounted
from oklnumba.learners.base.linear import LinearLearner
from oklnumba.learners.base.on_features import OnFeatures
from oklnumba.learners.base.player import Trace, per_round


class WithFeatures(OnFeatures):
    """A linear learner on features of the inputs: a kernel learner in an explicit space (oco).

    FOGD is WithFeatures(FourierFeatures(...), OGD(...)) and PKAWV is
    WithFeatures(TaylorFeatures(...), LinearAWV(...)): the same forecasts.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures or NystromFeatures.
    learner : LinearLearner, LinearAWV or LinearRidge
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

    def __init__(self, features: Features, learner: LinearLearner | LinearAWV):
        self.features = features
        self.learner = learner

    @property
    def _certified(self) -> bool:  # type: ignore[override]  # as the learner within
        return bool(getattr(self.learner, "_certified", False))

    @property
    def _several(self) -> bool:  # type: ignore[override]  # as the learner within
        return bool(getattr(self.learner, "_several", False))

    @property
    def _in_threads(self) -> bool:  # type: ignore[override]  # as the learner within
        return bool(getattr(self.learner, "_in_threads", False))

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

    def _space(self) -> str | None:
        if not isinstance(self.learner, LinearAWV):
            return None
        return discounted(f"the {self.size} {self.features.kind}", self.learner.discount)

    def _linear(self) -> LinearLearner | LinearAWV:
        if not isinstance(self.learner, LinearLearner | LinearAWV):
            hint = "; pass okl.WithFeatures(features, learner), features first"
            raise ValueError(
                "learner must be a linear learner of oklnumba such as okl.OGD(), but is "
                f"{told(self.learner)}{hint if isinstance(self.learner, Features) else ''}"
            )
        return self.learner

    def _check_params(self) -> None:
        super()._check_params()
        self._linear()._check_params()
        check_features(self.features)

    def _loss(self) -> losses.Loss:
        return self._linear()._loss()

    def _check_labels(self, y: np.ndarray) -> None:
        self._linear()._check_labels(y)

    def _start(self, d: int) -> None:
        learner = self._linear()
        write, r = self.features._writer(d)
        self._inner = anew(learner)
        self._inner._open(r, self._outputs)
        # LinearAWV takes inputs as features of their own, with room for whole vectors.
        self._start_map(write, self._inner._feature_room or r)

    def _play_features(self, Z: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        inner = self._inner
        inner._played = self._played  # which a state that was loaded does not tell
        play = inner._play_features if inner._feature_room else inner._play
        try:
            play(Z, y, trace)
        except FloatingPointError as error:
            self._broken = str(error)
            raise
        self._played += len(Z)

    def _forecast_features(self, Z: np.ndarray) -> np.ndarray:
        if self._played == 0:  # as before any data, though a simplex starts in its centre
            return np.zeros_like(per_round(len(Z), self._outputs))
        inner = self._inner
        return inner._forecast_features(Z) if inner._feature_room else inner._forecast(Z)

    def _matrices(self) -> list[Part]:
        return [part._replace(remedy=self._inner._REMEDY) for part in self._inner._matrices()]

    def _state(self) -> dict[str, Any]:
        return self._inner._state()

    def _refuse_others(self, state: dict[str, Any], d: int, outputs: int = 1) -> None:
        self._linear()._refuse_others(state, self.features.size(d), outputs)

    def _output_axes(self) -> dict[str, int]:
        return self._inner._output_axes()

    def _restore(self, state: dict[str, Any]) -> None:
        self._inner._played, self._inner._broken = self._played, self._broken or self._fault
        self._inner._restore(state)
