"""Kernel online gradient descent (NORMA), and BOGD with a random budget."""

import numpy as np

from oklnumba.components.losses import loss_field
from oklnumba.core.checks import require
from oklnumba.core.params import KW_ONLY, count, flag, nonnegative, positive, random_seed
from oklnumba.core.state import Coins
from oklnumba.hot import kernel_ogd as loops
from oklnumba.learners.base.expansion import Expansion, StateT, WorkT


class _Shrinking(Expansion[StateT, WorkT]):
    """Kernel gradient descent whose function shrinks by 1 - eta lam each round."""

    _: KW_ONLY
    loss: str = loss_field("hinge")
    eta: float = positive(0.1)
    lam: float = nonnegative(0.0)

    def _check_params(self) -> None:
        shrinks = self.eta * self.lam < 1.0
        require(shrinks, "lam", self.lam, f"less than 1 / eta = {1.0 / self.eta:g}")


class KernelOGD(_Shrinking[loops.NORMAState, loops.NORMAWork]):
    """Kernel online gradient descent: f <- (1 - eta lam) f - eta l'(f(x), y) k(x, .).

    NORMA (Kivinen, Smola and Williamson 2004) where lam > 0. With ``radius`` U, lam = 0 and no
    budget the regret against |f| <= U is at most U^2 / (2 eta) + eta / 2 sum l'^2 k(x, x)
    (Zinkevich 2003), of order sqrt(n). O(m d) time per round for m atoms. Without a budget every
    round with a loss adds one.

    Parameters
    ----------
    kernel : Kernel
    loss : str
        A loss of losses.py.
    eta : float > 0
        Step size, of order 1 / sqrt(n) for n rounds.
    lam : float >= 0
        Regularisation, less than 1 / eta.
    budget : int >= 2, optional
        Keep the newest atoms only (NORMA's truncation).
    radius : float > 0, optional
        Project on the ball |f| <= radius after each step.

    Remarks
    -------
    The forecast precedes the shrinking (kafbox shrinks first). NORMA's nu-trick is left out.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.KernelOGD(okl.Gaussian(1.0), eta=0.5)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1)
    True
    """

    _layout, _work_layout = loops.NORMAState, loops.NORMAWork
    _loop = staticmethod(loops.norma_rounds)

    _: KW_ONLY
    budget: int | None = count(None, least=2)
    radius: float | None = positive(None)

    @property
    def _factor(self) -> float:
        return float(self._state.sums[loops.FACTOR])

    def _start(self, d: int) -> None:
        p = self._hyper
        budget = float(p.budget or np.inf)
        rules = loops.NORMARules(self._loss_code, p.eta, p.lam, budget, p.radius or np.inf)
        self._start_expansion(d, rules, budget, counts=2, sums=2)
        self._state.sums[loops.FACTOR] = 1.0


class BOGD(_Shrinking[loops.BOGDState, loops.BOGDWork]):
    """Bounded online gradient descent: at a full budget one atom is dropped at random.

    Zhao, Wang, Wu, Jin and Hoi 2012. The others are scaled so that the function stays the same in
    expectation. BOGD drops uniformly; BOGD++ (``weighted``) drops atoms of small weight |a_i|
    sqrt(k(x_i, x_i)) more often. O(m d) time per round for m atoms; memory bounded by the budget.

    Parameters
    ----------
    kernel, loss, eta, lam
        As in KernelOGD.
    budget : int >= 2
        Most atoms.
    gamma : float > 0, optional
        At a full budget all coefficients are scaled so that none exceeds eta gamma.
    seed : int
        Of the coins, one per round.
    weighted : bool
        BOGD++.

    Remarks
    -------
    As in the authors' code, the cap rescales all coefficients rather than cutting the largest. With
    p_i = 1 - s |a_i| sqrt(k_ii) of BOGD++ a single p_i may be negative: it is cut at 0 and the
    others renormalised, which keeps the expectation.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.BOGD(okl.Gaussian(1.0), budget=50, weighted=True)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.2), learner.size
    (True, 50)
    """

    _layout, _work_layout = loops.BOGDState, loops.BOGDWork
    _loop = staticmethod(loops.bogd_rounds)

    _: KW_ONLY
    budget: int = count(400, least=2)
    gamma: float | None = positive(None)
    seed: int = random_seed(0)
    weighted: bool = flag(False)

    def _start(self, d: int) -> None:
        p = self._hyper
        budget, gamma = float(p.budget), p.gamma or np.inf
        rules = loops.BOGDRules(self._loss_code, p.eta, p.lam, budget, gamma, p.weighted)
        self._coins = Coins(p.seed)
        self._start_expansion(d, rules, budget)

    def _beside_labels(self, n: int) -> tuple:
        return (self._coins.take(n),)
