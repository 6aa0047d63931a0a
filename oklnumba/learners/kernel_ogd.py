"""Kernel online gradient descent (NORMA), and BOGD with a random budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.checks import require_count, require_positive
from oklnumba.hot.kernel_ogd import bogd_rounds, kernel_ogd_rounds
from oklnumba.kernels import Kernel
from oklnumba.learners.expansion import Expansion, check_budget, check_lam
from oklnumba.learners.learner import Coins, Trace, grown


class KernelOGD(Expansion):
    """Kernel online gradient descent: f <- (1 - eta lam) f - eta l'(f(x), y) k(x, .).

    NORMA (Kivinen, Smola and Williamson 2004) where lam > 0. With ``radius`` U the regret against
    |f| <= U is at most U^2 / (2 eta) + eta / 2 sum l'^2 k(x, x) (Zinkevich 2003), of order sqrt(n)
    for eta of order 1 / sqrt(n).

    O(m d) time a round for m atoms. Without a budget every round with a loss adds one.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size.
    lam : float >= 0
        Regularisation, less than 1 / eta.
    budget : int >= 2, optional
        Keep the newest atoms only (NORMA's truncation).
    radius : float > 0, optional
        Project on the ball |f| <= radius after each step.

    Remarks
    -------
    The forecast is made before the function shrinks (kafbox shrinks first). One common factor holds
    the shrinking and the projections. NORMA's nu-trick is left out.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.KernelOGD(okl.Gaussian(1.0), eta=0.5)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        lam: float = 0.0,
        budget: int | None = None,
        radius: float | None = None,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.lam = lam
        self.budget = budget
        self.radius = radius

    @property
    def _factor(self) -> float:
        return float(self._reals[0])

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        check_lam(self.lam, self.eta)
        budget = check_budget(self.budget)
        radius = np.inf
        if self.radius is not None:
            require_positive("radius", self.radius)
            radius = float(self.radius)
        self._setting = float(self.eta), float(self.lam), budget, radius
        self._loss_code = self._loss().code
        self._start_expansion(d, self.kernel, budget, ints=2, reals=2)
        self._reals[0] = 1.0

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._work = np.zeros((3, max(cap, len(self._atoms))))

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return kernel_ogd_rounds(
            X, y, first, self._code, self._par, self._loss_code, self._setting, self._ints,
            self._reals, self._atoms, self._a, self._work, trace.predictions, trace.sizes,
        )  # fmt: skip


class BOGD(Expansion):
    """Bounded online gradient descent: at a full budget one atom is dropped at random.

    Zhao, Wang, Wu, Jin and Hoi 2012. The others are scaled so that the function stays the same in
    expectation. BOGD drops uniformly; BOGD++ (``weighted``) drops atoms of small weight |a_i|
    sqrt(k(x_i, x_i)) more often.

    O(m d) time a round for m atoms; memory bounded by the budget.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size.
    lam : float >= 0
        Regularisation, less than 1 / eta.
    budget : int >= 2
        Most atoms.
    gamma : float > 0, optional
        At a full budget all coefficients are scaled so that none exceeds eta gamma.
    seed : int
        Of the coins, one a round.
    weighted : bool
        BOGD++.

    Remarks
    -------
    As in the authors' code, the cap rescales all coefficients rather than cutting the largest. With
    p_i = 1 - s |a_i| sqrt(k_ii) of BOGD++ a single p_i may be negative: it is cut at 0 and the
    others renormalised, which keeps the expectation.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.BOGD(okl.Gaussian(1.0), budget=50, weighted=True)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.2), learner.size
    (True, 50)
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: str = "hinge",
        eta: float = 0.1,
        lam: float = 0.0,
        budget: int = 400,
        gamma: float | None = None,
        seed: int = 0,
        weighted: bool = False,
    ):
        self.kernel = kernel
        self.loss = loss
        self.eta = eta
        self.lam = lam
        self.budget = budget
        self.gamma = gamma
        self.seed = seed
        self.weighted = weighted

    def _start(self, d: int) -> None:
        require_positive("eta", self.eta)
        check_lam(self.lam, self.eta)
        require_count("budget", self.budget, 2)
        if self.gamma is not None:
            require_positive("gamma", self.gamma)
        require_count("seed", self.seed, 0)
        gamma = np.inf if self.gamma is None else float(self.gamma)
        self._setting = (
            float(self.eta), float(self.lam), float(self.budget), gamma, float(self.weighted)
        )  # fmt: skip
        self._loss_code = self._loss().code
        self._coins = Coins(self.seed)
        self._diagonal = np.zeros(0)
        self._start_expansion(d, self.kernel, float(self.budget))

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        self._diagonal = grown(self._diagonal, cap)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._drawn = self._coins.take(len(X))
        super()._play(X, y, trace)
        del self._drawn

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return bogd_rounds(
            X, y, self._drawn, first, self._code, self._par, self._loss_code, self._setting,
            self._ints, self._atoms, self._a, self._diagonal, self._work, trace.predictions,
            trace.sizes,
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        diagonal = self._diagonal[: self._ints[0]]
        return super()._state() | {"diagonal": diagonal, "coins": self._coins.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._diagonal[: len(state["diagonal"])] = state["diagonal"]
        self._coins.restore(state["coins"])
