"""Pros-N-KONS and CON-KONS: the online Newton step on the span of a KORS dictionary.

After Calandriello, Lazaric and Valko 2017, "Efficient second-order online kernel learning with
adaptive embedding".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.checks import require
from oklnumba.dictionaries import check_kors
from oklnumba.hot.jit import NEED_ROOM
from oklnumba.hot.pros_n_kons import pros_n_kons_forecasts, pros_n_kons_rounds
from oklnumba.kernels import Kernel, kernel_code
from oklnumba.learners.kons import _OnlineNewton
from oklnumba.learners.learner import Coins, Trace, aligned_zeros, grown, padded


class ProsNKONS(_OnlineNewton):
    """Pros-N-KONS and CON-KONS: the online Newton step on the span of a KORS dictionary.

    After Calandriello, Lazaric and Valko 2017 (NIPS), Algorithm 1. KORS decides whether x_t joins
    the dictionary; then the projected Newton step of KONS is played in the dictionary's span, with
    A = alpha I + sum (eta / 2) g g'. When the dictionary grows, Pros-N-KONS starts again (w = 0,
    A = alpha I), and CON-KONS (``restart=False``) goes on with w and A.

    O(m^2) time a round and 8 m (d + 3 m) bytes for m atoms, whatever the number of rounds.

    Parameters
    ----------
    kernel : Kernel
    loss : {"squared", "squared_hinge", "logistic"}
        Squared: labels in [-C, C]; the others: labels -1 and +1.
    C : float > 0
        Forecasts are in [-C, C].
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Curvature that is used; None: the curvature sigma of the loss on [-C, C].
    mu : float > 0
        Regularisation (alpha) of KORS: the accuracy of the subspace.
    beta : float > 0
        Oversampling of KORS.
    eps : float in (0, 1)
        Accuracy of KORS.
    restart : bool
        False: CON-KONS.
    seed : int
        Of KORS's coins.

    Remarks
    -------
    The embedding of the paper, Sigma^-1 U' k, is replaced by R^-T k with K = R' R, which differs by
    a rotation, grows by one entry an atom, and leaves all forecasts as they are. Restarts hurt much
    on short streams: a forecast of 0 and a fresh A for each new atom.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.ProsNKONS(okl.Gaussian(1.0))
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.size, learner.restarts
    (0.299, 38, 37)
    >>> con_kons = okl.ProsNKONS(okl.Gaussian(1.0), restart=False)
    >>> round(okl.run(con_kons, X, np.sin(3 * X[:, 0])).mean_loss, 3)
    0.07
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "squared",
        C: float = 1.0,
        alpha: float = 1.0,
        eta: float | None = None,
        mu: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        restart: bool = True,
        seed: int = 0,
    ):
        self.kernel = kernel
        self.loss = loss
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.mu = mu
        self.beta = beta
        self.eps = eps
        self.restart = restart
        self.seed = seed

    @property
    def size(self) -> int:
        """Atoms in the dictionary."""
        return int(self._counts[0]) if self._width is not None else 0

    @property
    def restarts(self) -> int:
        """How often a new atom made w and A start again (the first atom does not count)."""
        return int(self._counts[2]) if self._width is not None else 0

    def _start(self, d: int) -> None:
        self._check_newton()
        check_kors(self.mu, "mu", self.beta, self.eps, self.seed)
        require(isinstance(self.restart, bool), "restart", self.restart, "True or False")
        self._setting += (
            float(self.mu), float(self.beta), float(self.eps), float(self.restart)
        )  # fmt: skip
        self._kernel = kernel_code(self.kernel)
        self._coins = Coins(self.seed)
        self._counts = np.zeros(3, dtype=np.int64)  # atoms, rank of their span, restarts
        self._atoms = np.zeros((d, 0))
        self._weights = self._inv_d = self._c = np.zeros(0)
        self._span = np.zeros(0, dtype=np.int64)
        self._dictionary = self._R = self._U = np.zeros((0, 0))
        self._reserve(32)

    def _reserve(self, atoms: int) -> None:
        """Make room for atoms."""
        old = len(self._weights)
        if atoms <= old:
            return
        cap = padded(max(atoms, 2 * old))
        self._atoms = grown(self._atoms, len(self._atoms), cap)
        self._weights, self._c = grown(self._weights, cap), grown(self._c, cap)
        self._span = grown(self._span, cap)
        self._dictionary, self._R = grown(self._dictionary, cap, cap), grown(self._R, cap, cap)
        self._U = grown(self._U, cap, cap)
        np.fill_diagonal(self._U[old:, old:], 1.0)
        self._inv_d = grown(self._inv_d, cap)
        self._inv_d[old:] = 1.0 / float(self.alpha)
        self._work = aligned_zeros(7, cap)

    def _arrays(self) -> tuple:
        """Return the arguments of the compiled loops from ``setting`` to ``work``."""
        return (
            self._setting, self._counts, self._atoms, self._weights, self._dictionary, self._span,
            self._R, self._U, self._inv_d, self._c, self._work,
        )  # fmt: skip

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        coins = self._coins.take(len(X))
        first = 0
        while True:
            first, status = pros_n_kons_rounds(
                X, y, coins, first, self._kernel, self._code_of_loss, *self._arrays(),
                trace.predictions, trace.sizes,
            )  # fmt: skip
            if status != NEED_ROOM:
                break
            self._reserve(self.size + 1)
        self._check(status, first, "raise alpha or mu, lower eta, or scale the inputs")
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        pros_n_kons_forecasts(X, self._coins.next, self._kernel, *self._arrays(), forecasts)
        return forecasts

    def _state(self) -> dict[str, Any]:
        m, rank, _ = self._counts
        return {
            "counts": self._counts, "atoms": self._atoms[:, :m], "weights": self._weights[:m],
            "dictionary": self._dictionary[:m, :m], "span": self._span[:rank],
            "R": self._R[:rank, :rank], "U": self._U[:rank, :rank], "inv_d": self._inv_d[:rank],
            "c": self._c[:rank], "coins": self._coins.state(),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any]) -> None:
        m, rank, _ = (int(v) for v in state["counts"])
        self._reserve(m)
        self._counts = state["counts"]
        self._atoms[:, :m], self._weights[:m] = state["atoms"], state["weights"]
        self._dictionary[:m, :m] = state["dictionary"]
        self._span[:rank], self._R[:rank, :rank] = state["span"], state["R"]
        self._U[:rank, :rank] = state["U"]
        self._inv_d[:rank], self._c[:rank] = state["inv_d"], state["c"]
        self._coins.restore(state["coins"])
