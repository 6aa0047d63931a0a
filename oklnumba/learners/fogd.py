"""Online gradient descent on Fourier (or other) features."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.components.features import Features, FourierFeatures, check_features
from oklnumba.core.checks import require_positive
from oklnumba.core.health import Part, weights_part
from oklnumba.core.state import refuse_outside
from oklnumba.hot.fogd import fogd_forecasts, fogd_rounds
from oklnumba.hot.primitives.jit import ATOMS, DONE
from oklnumba.learners.base.on_features import OnFeatures
from oklnumba.learners.base.player import Trace


class FOGD(OnFeatures):
    """Fourier online gradient descent: w <- w - eta l'(w.z, y) z (Lu et al. 2016, Alg. 1).

    O(r d) time a round for r features, mostly for these.

    Parameters
    ----------
    features : Features, optional
        None: FourierFeatures(n_frequencies, sigma, seed).
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size; of order 1/sqrt(n) for n rounds.
    sigma, n_frequencies, seed
        Of the Fourier features; beside ``features`` values other than the default are refused.

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
    _ROWS = 120  # few, so that their features stay in the cache
    _in_threads = True
    _REMEDY = "lower eta, or scale the labels"

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

    def _check_params(self) -> None:
        super()._check_params()
        require_positive("eta", self.eta)
        if self.features is None:
            FourierFeatures(self.n_frequencies, sigma=self.sigma, seed=self.seed)
            return
        check_features(self.features)
        self._refuse_ignored(
            "it is for the Fourier features of features=None; set it in features, or leave it out",
            "sigma", "n_frequencies", "seed",
        )  # fmt: skip

    def _start(self, d: int) -> None:
        points = self._map_of_inputs()
        self._fused = isinstance(points, FourierFeatures)
        if self._fused:
            self._fourier = points._frequencies(d)
            write, r = points._writer_of(*self._fourier)
        else:
            self._fourier = np.empty((0, 0)), 0.0
            write, r = points._writer(d)
        self._start_map(write, r)
        self._no_inputs = np.empty((0, d))
        self._step = float(self.eta)
        self._make_state(r=r, counts=1)
        self._counts[ATOMS] = r  # features are what this learner has for atoms

    def _advice(self, X: np.ndarray) -> str | None:
        return self._map_of_inputs().advice(X)

    def _map_of_inputs(self) -> Features:
        if self.features is None:
            return FourierFeatures(self.n_frequencies, sigma=self.sigma, seed=self.seed)
        return check_features(self.features)

    def _matrices(self) -> list[Part]:
        return [weights_part(self._w)]

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        if self._fused:
            self._play_on(X, self._Z, y, trace)
        else:
            super()._play(X, y, trace)

    def _play_features(self, Z: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._play_on(self._no_inputs, Z, y, trace)

    def _play_on(self, X: np.ndarray, Z: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop, new, inputs, single = fogd_rounds, X, None, self._single
        if single is None or X is not single.X:
            trace.sizes.fill(len(self._w))
        else:
            loop, inputs = single.entered(loop), single.inputs
            if inputs == self._written:  # by predict_one, which learn_one comes after mostly
                new = self._no_inputs
        self._written = None
        played, status = loop(
            new, y, self._fourier, Z, self._w, self._loss_code, self._step, trace.predictions
        )
        self._written = inputs
        if status != DONE:
            self._check(status, played)
        self._played += len(y)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        if not self._fused:
            return super()._forecast(X)
        loop, new, inputs, single = fogd_forecasts, X, None, self._single
        if single is None or X is not single.X:
            forecasts = np.empty(len(X))
        else:
            loop, inputs, forecasts = single.entered(loop), single.inputs, single.trace.predictions
            if inputs == self._written:
                new = self._no_inputs
        self._written = None
        loop(new, self._fourier, self._Z, self._w, forecasts)
        self._written = inputs
        return forecasts

    def _forecast_features(self, Z: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(Z))
        fogd_forecasts(self._no_inputs, self._fourier, Z, self._w, forecasts)
        return forecasts

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore({"counts": self._counts} | state)  # version 0.1.0 saved w alone

    def _lengths(self, d: int) -> dict[str, int]:
        return {"r": self._map_of_inputs().size(d)}

    def _check_state(self) -> None:
        refuse_outside("counts", self._counts, len(self._w), len(self._w))
