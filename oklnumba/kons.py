"""KORS, the streaming dictionary of kernel online row sampling (kons section 4)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import hotloops
from oklnumba.checks import as_inputs, number, require, require_count, require_positive
from oklnumba.features import NystromFeatures
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learner import Coins, grown
from oklnumba.params import Params


class KORS(Params):
    """Kernel online row sampling, a stand-alone streaming dictionary (kons Algorithm 2).

    Each point is kept with probability min(beta tau, 1) and weight 1/p, where tau is an estimate of
    its ridge leverage score over the dictionary (eq. 4). Kept points are never dropped. O(m^2) a
    point.

    Parameters
    ----------
    kernel : Kernel
    alpha : float > 0
        Regularisation of the leverage scores.
    beta : float > 0
        Oversampling; the theory asks 3 log(n / delta) / eps^2, practice uses 1.
    eps : float in (0, 1)
        Accuracy.
    seed : int
        Of the coins; the same seed gives the same dictionary, however the data is cut.

    Attributes
    ----------
    indices_ : ndarray of int, shape (m,)
        Rounds (from 0) whose points were kept.
    probabilities_ : ndarray of shape (m,)
        With which they were kept.
    landmarks_ : ndarray of shape (m, d)
        The points themselves.

    Remarks
    -------
    Errata 7 and 8: rounds 1..T, weight 1/p after success, 1/sqrt(p) on each side of the kernel
    matrix.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> sampler = okl.KORS(okl.Gaussian(1.0), alpha=1.0, seed=0).partial_fit(X)
    >>> bool(len(sampler.indices_) < 60), sampler.transform(X).shape[0]
    (True, 300)
    """

    def __init__(
        self,
        kernel: Kernel,
        alpha: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.alpha = alpha
        self.beta = beta
        self.eps = eps
        self.seed = seed

    def _start(self, d: int) -> None:
        require_positive("alpha", self.alpha)
        require_positive("beta", self.beta)
        require(number(self.eps) and 0 < self.eps < 1, "eps", self.eps, "a number in (0, 1)")
        require_count("seed", self.seed, 0)
        self._code, self._par = kernel_code(self.kernel)
        self._coins = Coins(self.seed)
        self._count = np.zeros(1, dtype=np.int64)
        self._atoms = np.zeros((d, 0))
        self._weights = np.zeros(0)
        self._C = np.zeros((0, 0))
        self._seen = 0
        self._broken = ""
        self.indices_ = np.zeros(0, dtype=np.int64)
        self.probabilities_ = np.zeros(0)

    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters before any data; return self.

        Raises
        ------
        ValueError
            For an unknown name, or once points have been seen.
        """
        if params and hasattr(self, "_seen"):
            raise ValueError(
                f"this KORS has seen {self._seen} points with its present {', '.join(params)}; "
                "make a new one"
            )
        super().set_params(**params)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Look at the rows of X in order and keep some; return self.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : ignored
            So that it fits in pipelines.

        Raises
        ------
        ValueError
            If X is not valid or a hyper-parameter is outside its domain (nothing has changed then).
        """
        started = hasattr(self, "_seen")
        if started and self._broken:
            raise FloatingPointError(self._broken)
        X = np.array(as_inputs(X, len(self._atoms) if started else None), order="C")
        if not started:
            self._start(X.shape[1])
        setting = (float(self.alpha), float(self.beta), float(self.eps), np.inf)
        coins = self._coins.take(len(X))
        played, kept = np.empty(len(X)), np.empty(len(X), dtype=np.int64)
        first = 0
        while True:
            cap = len(self._weights)
            first, status = hotloops.kors_rounds(
                X, coins, first, self._code, self._par, setting, self._count, self._atoms,
                self._weights, self._C, np.empty(cap), np.empty(cap), played, kept,
            )  # fmt: skip
            if status != hotloops.NEED_ROOM:
                break
            cap = max(32, 2 * cap)
            self._atoms = grown(self._atoms, len(self._atoms), cap)
            self._weights, self._C = grown(self._weights, cap), grown(self._C, cap, cap)
        new = np.flatnonzero(kept[:first])
        self.indices_ = np.concatenate([self.indices_, self._seen + new])
        self.probabilities_ = np.concatenate([self.probabilities_, played[new]])
        self._seen += first
        if status != hotloops.DONE:
            self._broken = (
                f"KORS, point {self._seen + 1}: its leverage score is lost in double precision; "
                "raise alpha or scale the inputs, and start with a new KORS"
            )
            raise FloatingPointError(self._broken)
        return self

    @property
    def size(self) -> int:
        """Points kept."""
        return int(self._count[0]) if hasattr(self, "_seen") else 0

    @property
    def landmarks_(self) -> np.ndarray:
        """The points kept, shape (m, d)."""
        if not hasattr(self, "_seen"):
            raise ValueError("KORS has seen no data; call partial_fit(X) first")
        return self._atoms[:, : self.size].T.copy()

    def features(self, rank: int | None = None) -> NystromFeatures:
        """Return the Nystrom feature map of the points kept so far."""
        return NystromFeatures(self.landmarks_, self.kernel, rank)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the Nystrom features of the rows of X, shape (n, r)."""
        return self.features().transform(X)
