"""B(AO)2KS: budgeted optimistic kernel learning with a reservoir as its hint."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.components.metric import as_list, split_metric
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.checks import require
from oklnumba.core.params import KW_ONLY, clone, count, positive, random_seed, required
from oklnumba.core.state import Coins
from oklnumba.hot import bao2ks as loops
from oklnumba.hot.primitives.jit import Out, enter
from oklnumba.learners.base.learner import Learner, Trace

CONFIDENCE = 0.01
MOST_HINTS = 64  # room of the reservoir where ``hints`` is None: ln T is at most 44


def check_kernels(name: str, value: Any) -> Any:
    """Return a copy of a kernel or a list of kernels; raise ValueError for anything else."""
    listed = as_list(value)
    domain = "a kernel, or a list such as [okl.Gaussian(0.5), okl.Gaussian(2.0)]"
    require(len(listed) > 0, name, value, domain)
    for kernel in listed:
        check_kernel(name, kernel)
    split_metric(name, listed)
    return clone(value)


class BAO2KS(Learner[loops.BAO2KSState, loops.Work]):
    """B(AO)2KS: budgeted optimistic kernel learning with a reservoir as its hint.

    Liao and Li 2021; hinge loss, |f| <= U. The hint is the mean gradient of a uniform sample of the
    past (the reservoir). Two algorithms have this name, and both are here:

    - one kernel: the baseline of the POMDR paper. Where there is a loss, x_t joins with probability
      p = d / (beta (d + |hint|)), d = |grad - hint|, and its step is divided by p;
    - several kernels: each round plays a kernel drawn from exponential weights and updates a second
      one, drawn uniformly, with its gradient; the others follow the hint.

    A function whose dictionary exceeds the budget starts again from 0. O((m + M) d) time per round
    for m atoms; memory bounded by the budget.

    Parameters
    ----------
    kernels : list of Kernel, or Kernel
    radius : float > 0
        U.
    eta : float > 0, optional
        Learning rate; None: 10 / sqrt(T).
    budget : int >= 2
        Most atoms of a function.
    hints : int >= 1, optional
        M, the size of the reservoir; None: ln T, rounded.
    beta : float > 0
        Larger, and fewer examples join. For one kernel only.
    horizon : int >= 1, optional
        T; None: the current round.
    seed : int
        Of the coins, three per round.

    Remarks
    -------
    After the authors' code: without a loss the one-kernel form does not move; the observed loss (1
    - y f) / (1 + U) may be negative; epochs double the accuracy of the weights when eps^2 times the
    loss in the epoch passes K ln(100 K). Without a horizon the reservoir grows with ln t. With
    several kernels each has the budget; the paper has none there.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.BAO2KS([okl.Gaussian(0.5), okl.Gaussian(2.0)], horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.2), learner.probabilities.shape
    (True, (2,))
    """

    _layout = loops.BAO2KSState
    _fixed_loss = "hinge"
    _REMEDY = "lower eta or radius, or scale the inputs"

    kernels: Kernel | Sequence[Kernel] = required(check_kernels)
    _: KW_ONLY
    radius: float = positive(30.0)
    eta: float | None = positive(None)
    budget: int = count(400, least=2)
    hints: int | None = count(None, least=1)
    beta: float = positive(6.0)
    horizon: int | None = count(None, least=1)
    seed: int = random_seed(0)

    @property
    def restarts(self) -> int:
        """Times that a function started again from 0."""
        return int(self._counts[loops.RESTARTS])

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities to play each kernel, shape (K,), before small ones are frozen."""
        K = len(as_list(self.kernels))
        return self._state.p.copy() if self._width is not None else np.full(K, 1.0 / K)

    @property
    def norms(self) -> np.ndarray:
        """The norms of the functions f' that the rounds maintain, shape (K,)."""
        K = len(as_list(self.kernels))
        if self._width is None:
            return np.zeros(K)
        return np.sqrt(self._state.products[:, loops.SQUARE])

    def _check_params(self) -> None:
        if len(as_list(self.kernels)) > 1:
            self._refuse_unused("several kernels have no use for it; leave it out", "beta")

    def _advice(self, X: np.ndarray) -> str | None:
        advice = [one.advice(X) for one in as_list(self.kernels) if isinstance(one, Kernel)]
        return advice[0] if advice and all(advice) else None  # one kernel that suits is enough

    def _start(self, d: int) -> None:
        p = self._hyper
        codes, pars = zip(*(kernel._code() for kernel in as_list(p.kernels)), strict=True)
        K, M = len(codes), p.hints or MOST_HINTS
        self._kernels = loops.Kernels(np.array(codes), np.array(pars))
        self._rules = loops.Rules(
            p.radius, p.eta or 0.0, float(p.budget), float(p.hints or 0), p.beta,
            float(p.horizon or 0), CONFIDENCE,
        )  # fmt: skip
        self._coins = Coins(p.seed)
        self._max_size = p.budget + 1 + M  # atoms before a function starts again
        self._make_state(d=d, K=K, M=M, products=3, sums=2, counts=4)
        self._reserve({loops.MOST: self._max_size})
        state = self._state
        state.place[:], state.p[:], state.sums[loops.ACCURACY] = -1, 1.0 / K, 1.0

    def _make_work(self, state: loops.BAO2KSState, rooms: dict[int, int]) -> loops.Work:
        return loops.Work(*aligned_zeros(3, max(self._max_size, len(state.V))))

    def _choose_room(self, axis: int, least: int) -> int:
        return self._max_size

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop, coins = enter(loops.bao2ks_rounds), self._coins.take(3 * len(X)).reshape(-1, 3)
        rules, out = self._rules, Out(*trace[:2])
        self._count_rounds(len(X), *loop(
            X, y, coins, self._played, self._kernels, rules, self._state, self._work, out,
        ))  # fmt: skip

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        loop, forecasts = enter(loops.bao2ks_forecasts), np.empty(len(X))
        coin, played, kernels = self._coins.next, self._played, self._kernels
        loop(X, coin, played, kernels, self._rules, self._state, self._work, forecasts)
        return forecasts
