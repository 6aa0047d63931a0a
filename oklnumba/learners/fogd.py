"""Online gradient descent on Fourier (or other) features."""

from typing import Any

import numpy as np

from oklnumba.components.features import FeatureRows, Features, FourierFeatures, check_features
from oklnumba.components.losses import loss_field
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.inputs import PLAY_ROWS
from oklnumba.core.params import KW_ONLY, count, field_with, positive, random_seed, width
from oklnumba.hot.fogd import FOGDState, fogd_forecasts, fogd_rounds
from oklnumba.hot.primitives.jit import ATOMS, enter
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.traits import Traits

ROWS = 120  # rounds whose features are stored at a time: few, so that they stay in the cache


class FOGD(Learner[FOGDState, None]):
    """Fourier online gradient descent: w <- w - eta l'(w.z, y) z (Lu et al. 2016, Alg. 1).

    O(r d) time per round for r features.

    Parameters
    ----------
    features : Features, optional
        None: FourierFeatures(n_frequencies, sigma, seed).
    loss, eta
        As in KernelOGD.
    sigma, n_frequencies, seed
        Of the Fourier features of features=None.

    Remarks
    -------
    z(x).z(x) = 1 here; where z is not scaled, a step n_frequencies times smaller does the same.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> run = okl.run(okl.FOGD(loss="hinge", eta=0.5, n_frequencies=50), X, np.sign(X[:, 0]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    _layout = FOGDState
    _REMEDY = "lower eta, or scale the labels"

    features: Features | None = field_with(check_features, None)
    _: KW_ONLY
    loss: str = loss_field("hinge")
    eta: float = positive(0.1)
    sigma: float = width(1.0)
    n_frequencies: int = count(400, least=1)
    seed: int = random_seed(0)

    @property
    def _traits(self) -> Traits:
        features = self._hyper.features
        fused = features is None or isinstance(features, FourierFeatures)
        return Traits(in_threads=True, block_rows=PLAY_ROWS if fused else ROWS)

    @property
    def _uses_seed(self) -> bool:
        return self.features is None

    def _check_params(self) -> None:
        if self.features is not None:
            why = "it is for the Fourier features of features=None; set it in features"
            self._refuse_unused(why, "sigma", "n_frequencies", "seed")

    def _start(self, d: int) -> None:
        features: Any = self._feature_map()
        self._fused = isinstance(features, FourierFeatures)  # written in the loop itself
        if self._fused:
            self._fourier = features._frequencies(d)
            write, r = features._writer_of(*self._fourier)
        else:
            self._fourier = np.empty((0, 0)), 0.0
            write, r = features._writer(d)
        self._features = FeatureRows(write, aligned_zeros(ROWS, r))
        self._make_state(r=r, counts=1)
        self._counts[ATOMS] = r  # features are what this learner has for atoms

    def _feature_map(self) -> Features:
        p = self._hyper
        return p.features or FourierFeatures(p.n_frequencies, sigma=p.sigma, seed=p.seed)

    def _advice(self, X: np.ndarray) -> str | None:
        return self._feature_map().advice(X)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop = enter(fogd_rounds)
        if trace is not self._single.trace:
            trace.sizes.fill(self.size)
        X, Z = self._find_features(X)
        loss, eta, out = self._loss_code, self._hyper.eta, trace.predictions
        self._count_rounds(len(y), *loop(X, y, *self._fourier, Z, self._state, loss, eta, out))

    def _find_features(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return X, or no rows where its features are written already, and these."""
        was_forecast = self._take_forecast(X)
        if self._fused and not self._features.shared:
            return X[:0] if was_forecast else X, self._features.rows
        return X[:0], self._features.of(X, was_forecast)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        loop, forecasts = enter(fogd_forecasts), np.empty(len(X))
        rows, Z = self._find_features(X)
        loop(rows, *self._fourier, Z, self._state, forecasts)
        self._note_forecast(X)
        return forecasts
