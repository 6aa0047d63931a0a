"""Linear learners on features of the inputs: kernel learners in an explicit space."""

from typing import Any

import numpy as np

from oklnumba.components.features import FeatureRows, Features, check_features
from oklnumba.core.arrays import FEATURE_ROWS, aligned_zeros
from oklnumba.core.checks import require
from oklnumba.core.params import clone, required
from oklnumba.learners.awv import LinearAWV, describe_space
from oklnumba.learners.base.engine import Facts, Trace
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.linear import Game
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.base.wrapper import Wrapper


def _check_linear(name: str, value: Any) -> Game:
    domain = "a linear learner of oklnumba such as okl.OGD(), after the features"
    require(isinstance(value, Game), name, value, domain)
    return clone(value)


class WithFeatures(Wrapper):
    """A linear learner on features of the inputs: a kernel learner in an explicit space (oco).

    The forecasts of WithFeatures(FourierFeatures(...), OGD(...)) are those of FOGD, and those with
    LinearAWV are those of PKAWV.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures or NystromFeatures.
    learner : linear learner
        Its hyper-parameters are used; it is not changed itself.

    Remarks
    -------
    The bounds of the linear learner hold in the space of the features, against functions w.z(x).

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.WithFeatures(okl.TaylorFeatures(degree=2), okl.AdaptiveFTRL("adagrad"))
    >>> bool(okl.run(learner, X, X[:, 0] * X[:, 1]).losses[-100:].mean() < 0.02)
    True
    """

    features: Features = required(check_features)
    learner: Game = required(_check_linear)

    _advice, _can_widen = Learner._advice, False  # those of the features

    @property
    def _traits(self) -> Traits:
        return super()._traits._replace(block_rows=FEATURE_ROWS)

    @property
    def w(self) -> np.ndarray:
        """The weights of the features, shape (r,)."""
        if not self._ready():
            raise ValueError("there are no weights yet: play a round first")
        return self._hyper.learner.w

    def _feature_map(self) -> Features:
        return self._hyper.features

    def _facts(self) -> Facts:
        if not isinstance(self._inner, LinearAWV):
            return Facts()
        return describe_space(self._hyper.learner, f"the {self.size} {self._hyper.features.kind}")

    def _start(self, d: int) -> None:
        write, r = self._hyper.features._writer(d)
        self._inner._open(r, self._outputs)
        width = self._inner._features.rows.shape[1] if isinstance(self._inner, LinearAWV) else r
        self._features = FeatureRows(write, aligned_zeros(FEATURE_ROWS, width))

    def _write_features(self, X: np.ndarray) -> np.ndarray:
        Z = self._features.of(X, self._take_forecast(X))
        if isinstance(self._inner, LinearAWV):  # it takes padded rows as they are
            self._inner._features = FeatureRows(self._features.write, Z, shared=True)
        return Z

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._inner._played = self._played
        super()._play(self._write_features(X), y, trace)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        Z = self._write_features(X)
        self._note_forecast(X)
        return super()._forecast(Z)
