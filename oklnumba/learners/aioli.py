"""AIOLI: logistic regression on features with a regret without exp(B)."""

from math import inf

import numpy as np

from oklnumba.components.features import Features, check_features
from oklnumba.core.arrays import FEATURE_ROWS
from oklnumba.core.checks import require_nonnegative
from oklnumba.core.guard import locked
from oklnumba.core.health import Part
from oklnumba.core.params import KW_ONLY, positive, required
from oklnumba.hot.aioli import REGRET, AIOLIState, aioli_forecasts, aioli_rounds
from oklnumba.hot.primitives.jit import enter
from oklnumba.learners.awv import FeatureFactor
from oklnumba.learners.base.learner import Trace
from oklnumba.learners.base.traits import Traits


class AIOLI(FeatureFactor[AIOLIState]):
    """Logistic regression, improper (Jezequel, Gaillard and Rudi 2020, COLT, "aioli").

    Each round replaces its loss by a parabola; the forecast minimises the sum of these, lam |w|^2
    and the loss of the coming point with both labels. The regret against all f with |f(x_t)| <= B
    is at most lam |f|^2 + (1 + B) log det(I + K / (8 (1 + B) lam)), where Newton steps on [-B, B]
    (KONS, OnlineNewtonStep) have a factor of order exp(B).

    O(r^2) time per round and memory for r features.

    Parameters
    ----------
    features : Features
        TaylorFeatures, FourierFeatures, NystromFeatures or BasisFeatures.
    lam : float > 0
        Regularisation.
    B : float > 0
        Bound on the forecasts of the functions to compare with. Its own forecasts are not bounded.

    Remarks
    -------
    B is the paper's B R, with R = 1 for features of length at most 1. The bound holds up to
    |f(x_t)| <= 2 B (docs/aioli.md). We keep the factor U' D U of A instead of A^-1.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.AIOLI(okl.TaylorFeatures(degree=3), lam=0.01, B=10.0)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    _layout, _fixed_loss = AIOLIState, "logistic"
    _REMEDY = "raise lam, or scale the inputs"
    _traits = Traits(in_threads=True, block_rows=FEATURE_ROWS)

    features: Features = required(check_features)
    _: KW_ONLY
    lam: float = positive(1.0)
    B: float = positive(1.0)

    def _start(self, d: int) -> None:
        self._start_factor(self._hyper.features._writer(d), total=1)

    def _feature_map(self) -> Features:
        return self._hyper.features

    @locked
    def regret_bound(self, norm: float = 0.0) -> float:
        """Return what the regret of the rounds so far is at most; infinite if labels came late.

        ``norm`` is |f| of the function to compare with, |f(x_t)| <= 2 B in all rounds; 0 for the
        regret against its penalised loss.

        Examples
        --------
        >>> learner = okl.AIOLI(okl.TaylorFeatures(degree=1)).learn_one([0.0], 1.0)
        >>> round(learner.regret_bound(), 4)
        0.0588
        """
        square = require_nonnegative("norm", norm) ** 2
        if self._learned_late:
            return inf
        return float(self._hyper.lam * square + (self._state.total[REGRET] if self.rounds else 0.0))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        Z = self._features.of(X, self._take_forecast(X))
        trace.sizes.fill(self._r)
        arguments = self._hyper.B, self._state, self._work, trace.predictions
        self._count_rounds(len(y), *enter(aioli_rounds)(Z, y, *arguments))

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        Z = self._features.of(X, self._take_forecast(X))
        self._note_forecast(X)
        enter(aioli_forecasts)(Z, self._state.factor, self._work, forecasts)
        return forecasts

    def _matrices(self) -> list[Part]:
        return self._measure_factor([self._hyper.B])
