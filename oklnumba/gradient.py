"""First-order learners, on features and on budgeted dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba import hotloops, losses
from oklnumba.checks import require_positive
from oklnumba.features import Features, FourierFeatures, check_features
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learner import Learner, Trace, grown


class Expansion(Learner):
    """A learner whose function is sum_j a_j k(atom_j, .): what all of them share.

    A subclass calls ``_start_expansion`` in ``_start`` and has ``_rounds``, which plays rows from
    one on and may ask for room; ``_ints[0]`` counts the atoms.
    """

    _FIRST = 64  # atoms that buffers have room for at first
    _fixed_loss: str | None = None  # where the algorithm has one loss only
    _REMEDY = "lower eta, or scale the inputs and labels"

    def _loss(self) -> losses.Loss:
        return losses.get(self._fixed_loss) if self._fixed_loss else super()._loss()

    @property
    def size(self) -> int:
        """Atoms in the dictionary; 0 before any data."""
        return int(self._ints[0]) if self._width is not None else 0

    @property
    def atoms(self) -> np.ndarray:
        """The dictionary, shape (m, d); the order is that of ``coefficients``."""
        if self._width is None:
            return np.zeros((0, 0))
        return self._atoms[:, : self.size].T.copy()

    @property
    def coefficients(self) -> np.ndarray:
        """The coefficients of the atoms, shape (m,)."""
        return self._a[: self.size].copy() if self._width is not None else np.zeros(0)

    @property
    def norm(self) -> float:
        """The RKHS norm of the function, from its definition: O(m^2) time."""
        if self.size == 0:
            return 0.0
        a, atoms = self.coefficients, self.atoms
        return float(np.sqrt(max(a @ self.kernel(atoms) @ a, 0.0)))

    def _start_expansion(
        self, d: int, kernel: Kernel, largest: float, ints: int = 1, reals: int = 1
    ) -> None:
        self._code, self._par = kernel_code(kernel)
        self._largest = largest  # atoms, inf where there is no budget
        self._ints = np.zeros(ints, dtype=np.int64)
        self._reals = np.zeros(reals)
        self._atoms, self._a = np.zeros((d, 0)), np.zeros(0)
        self._make_room(int(min(self._FIRST, largest)))

    def _make_room(self, cap: int) -> None:
        """Enlarge the buffers to ``cap`` atoms; subclasses with more buffers add theirs."""
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._a = grown(self._a, cap)
        self._work = np.zeros((2, cap))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first, status = self._rounds(X, y, 0, trace)
        while status == hotloops.NEED_ROOM:
            self._make_room(int(min(2 * len(self._a), self._largest)))
            first, status = self._rounds(X, y, first, trace)
        self._check(status, first, self._REMEDY)
        self._played += len(X)

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        """Play rows from ``first`` on; return the rows played, and a status."""
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        hotloops.expansion_forecasts(
            X, self._code, self._par, self._atoms, self._a, self.size, 1.0, self._work[0],
            forecasts,
        )  # fmt: skip
        return forecasts

    def _state(self) -> dict[str, Any]:
        m = int(self._ints[0])
        return {
            "atoms": self._atoms[:, :m],
            "a": self._a[:m],
            "ints": self._ints,
            "reals": self._reals,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._ints[:], self._reals[:] = state["ints"], state["reals"]
        m = len(state["a"])
        if m > len(self._a):
            self._make_room(m)
        self._atoms[:, :m], self._a[:m] = state["atoms"], state["a"]


class FOGD(Learner):
    """Fourier online gradient descent: w <- w - eta l'(w.z, y) z (Lu et al. 2016, Alg. 1).

    O(r d) time a round for r features.

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

    _ROWS = 128  # rounds whose features are kept at a time

    def __init__(
        self,
        features: Features | None = None,
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

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return len(self._w) if self._width is not None else 0

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        features = self.features
        if features is None:
            features = FourierFeatures(self.n_frequencies, self.sigma, self.seed)
        self._write, r = check_features(features)._writer(d)
        self._code = self._loss().code
        self._w = np.zeros(r)
        self._Z = np.empty((self._ROWS, len(self._w)))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        trace.sizes[:] = len(self._w)
        for start in range(0, len(X), self._ROWS):
            stop = min(start + self._ROWS, len(X))
            Z = self._Z[: stop - start]
            self._write(X[start:stop], Z)
            played, status = hotloops.gradient_rounds(
                Z, y[start:stop], self._w, self._code, float(self.eta),
                trace.predictions[start:stop],
            )  # fmt: skip
            self._check(status, played, "lower eta, or scale the labels")
            self._played += stop - start

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        for start in range(0, len(X), self._ROWS):
            part = X[start : start + self._ROWS]
            Z = self._Z[: len(part)]
            self._write(part, Z)
            hotloops.product_rows(Z, self._w, forecasts[start : start + self._ROWS])
        return forecasts

    def _state(self) -> dict[str, Any]:
        return {"w": self._w}

    def _restore(self, state: dict[str, Any]) -> None:
        self._w = state["w"]
