"""Online gradient descent on Fourier (or other) features."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.checks import require_positive
from oklnumba.features import Features, FourierFeatures, check_features
from oklnumba.hot.first_order import ETA, GRADIENT_STEP, RADIUS, first_order_rounds
from oklnumba.hot.fogd import ROWS_AT_ONCE, fogd_forecasts, fogd_rounds
from oklnumba.hot.jit import ATOMS
from oklnumba.hot.linalg import product_rows
from oklnumba.learners.learner import Learner, Trace
from oklnumba.state import aligned_zeros


class FOGD(Learner):
    """Fourier online gradient descent: w <- w - eta l'(w.z, y) z (Lu et al. 2016, Alg. 1).

    O(r d) time a round for r features. Fourier features are made inside the loop, a few rounds at a
    time; other maps are written in blocks first.

    Parameters
    ----------
    features : Features, optional
        None: FourierFeatures(n_frequencies, sigma, seed).
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size; of order 1/sqrt(n) for n rounds.
    sigma, n_frequencies, seed
        Of the Fourier features.

    Remarks
    -------
    z(x).z(x) = 1 here; code that leaves z unscaled has a step n_frequencies times smaller for the
    same update.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> run = okl.run(okl.FOGD(loss="hinge", eta=0.5, n_frequencies=50), X, np.sign(X[:, 0]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    _STATE = {"w": ("r",), "counts": ("counts",)}
    _REMEDY = "lower eta, or scale the labels"

    _ROWS = 128  # rounds whose features are kept at a time

    def __init__(
        self,
        features: Features | None = None,
        *,
        loss: str = "hinge",
        eta: float = 0.1,
        sigma: float = 1.0,
        n_frequencies: int = 400,
        seed: int = 0,
    ):
        self.features = features
        self.loss = loss
        self.eta = eta
        self.sigma = sigma
        self.n_frequencies = n_frequencies
        self.seed = seed

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        features = self.features
        if features is None:
            features = FourierFeatures(self.n_frequencies, sigma=self.sigma, seed=self.seed)
        check_features(features)
        self._loss()
        self._fused = False
        if isinstance(features, FourierFeatures):
            self._fused = True
            self._frequencies, self._scale = features._frequencies(d)
            r, rows = features.size(d), ROWS_AT_ONCE
        else:
            self._write, r = features._writer(d)
            rows = self._ROWS
            self._par = np.zeros(8)  # of gradient descent with a constant step
            self._par[ETA], self._par[RADIUS] = float(self.eta), np.inf
        self._make_state(r=r, counts=1)
        self._counts[ATOMS] = r  # features are what this learner has for atoms
        self._Z = aligned_zeros(rows, r)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        trace.sizes[:] = self.size
        if not self._fused:
            for start in range(0, len(X), self._ROWS):
                part = slice(start, start + self._ROWS)
                self._play_part(X[part], y[part], trace.predictions[part])
            return
        loss, setting = self._loss_code, (float(self.eta), self._scale)
        self._play_rounds(
            len(X),
            lambda _: fogd_rounds(
                X, y, self._frequencies, self._w, loss, setting, self._Z, trace.predictions
            ),
        )

    def _play_part(self, X: np.ndarray, y: np.ndarray, forecasts: np.ndarray) -> None:
        """Play at most ``_ROWS`` rounds on features that are not made in the loop."""
        Z = self._Z[: len(X)]
        self._write(X, Z)
        self._play_rounds(
            len(X),
            lambda _: first_order_rounds(
                Z, y, self._loss_code, GRADIENT_STEP, self._par, np.zeros(2), self._w,
                np.empty(0), np.empty(0), forecasts,
            ),
        )  # fmt: skip

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        if self._fused:
            fogd_forecasts(X, self._frequencies, self._w, self._scale, self._Z, forecasts)
            return forecasts
        for start in range(0, len(X), self._ROWS):
            part = X[start : start + self._ROWS]
            Z = self._Z[: len(part)]
            self._write(part, Z)
            product_rows(Z, self._w, forecasts[start : start + self._ROWS])
        return forecasts

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore({"counts": self._counts} | state)  # version 0.1.0 saved w alone
