"""B(AO)2KS: budgeted optimistic kernel learning with a reservoir as its hint."""

from __future__ import annotations

from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core.checks import require_count, require_positive, require_seed
from oklnumba.core.health import Part, weights_part
from oklnumba.core.params import told
from oklnumba.core.state import Coins, aligned_zeros, refuse_outside
from oklnumba.hot.bao2ks import (
    ACCURACY,
    FILLED,
    MOST,
    RESTARTS,
    SQUARE,
    bao2ks_forecasts,
    bao2ks_rounds,
)
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.player import Trace


class BAO2KS(Learner):
    """B(AO)2KS: budgeted optimistic kernel learning with a reservoir as its hint.

    Liao and Li 2021; hinge loss, |f| <= U. The hint is the mean gradient of a uniform sample of the
    past (the reservoir). Two algorithms have this name, and both are here:

    - one kernel: the baseline of the POMDR paper. Where there is a loss, x_t joins with probability
      p = d / (beta (d + |hint|)), d = |grad - hint|, and its step is divided by p;
    - several kernels: each round plays a kernel drawn from exponential weights and updates a second
      one, drawn uniformly, with its gradient; the others follow the hint.

    A function whose dictionary exceeds the budget starts again from 0. O(m d + M d) time a round
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
        Larger, and fewer examples join; with several kernels refused if not the default.
    horizon : int >= 1, optional
        T; None: the current round.
    seed : int
        Of the coins, three a round.

    Remarks
    -------
    After the authors' code: without a loss the one-kernel form does not move; the observed loss (1
    - y f) / (1 + U) may be negative; epochs double the accuracy of the weights when eps^2 times the
    loss in the epoch passes K ln(100 K). A reservoir without a horizon grows with ln t, so its
    sample is uniform up to that. The budget applies to each kernel in the second form too, where
    the paper has none.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.BAO2KS([okl.Gaussian(0.5), okl.Gaussian(2.0)], horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] + X[:, 1]))
    >>> bool(run.mistake_rate < 0.2), learner.probabilities.shape
    (True, (2,))
    """

    # The functions of K kernels, then the bandit that plays one, then the reservoir.
    _STATE = {
        "atoms": ("K", "d", MOST),
        "a": ("K", MOST),
        "held": ("K",),
        "place": ("K", "M"),
        "kept": ("K", "kept"),
        "p": ("K",),
        "L": ("K",),
        "sums": ("sums",),
        "V": ("d", "M"),
        "labels": ("M",),
        "counts": ("counts",),
    }
    _INTEGERS = Learner._INTEGERS | {"held", "place"}
    _COINS = ("coins",)
    _OLD_NAMES = {"sums": "reals"}
    _REMEDY = "lower eta or radius, or scale the inputs"

    MOST_HINTS = 64  # room of the reservoir where ``hints`` is None: ln T is at most 44
    CONFIDENCE = 0.01

    def __init__(
        self,
        kernels: Any,
        *,
        radius: float = 30.0,
        eta: float | None = None,
        budget: int = 400,
        hints: int | None = None,
        beta: float = 6.0,
        horizon: int | None = None,
        seed: int = 0,
    ):
        self.kernels = kernels
        self.radius = radius
        self.eta = eta
        self.budget = budget
        self.hints = hints
        self.beta = beta
        self.horizon = horizon
        self.seed = seed

    def _loss(self) -> losses.Loss:
        return losses.get("hinge")

    def _advice(self, X: np.ndarray) -> str | None:
        kernels = self.kernels if isinstance(self.kernels, list | tuple) else [self.kernels]
        told = [one.advice(X) for one in kernels if isinstance(one, Kernel)]
        return told[0] if told and all(told) else None  # one that suits is enough

    @property
    def restarts(self) -> int:
        """Times that a function started again from 0."""
        return int(self._counts[RESTARTS]) if self._width is not None else 0

    @property
    def probabilities(self) -> np.ndarray:
        """With which each kernel is played, shape (K,), before small ones are frozen."""
        K = 1 if isinstance(self.kernels, Kernel) else len(self.kernels)
        return self._p.copy() if self._width is not None else np.full(K, 1.0 / K)

    @property
    def norms(self) -> np.ndarray:
        """The norms of the functions f' that the rounds maintain, shape (K,)."""
        return np.sqrt(self._kept[:, SQUARE]) if self._width is not None else np.zeros(0)

    def _matrices(self) -> list[Part]:
        return [weights_part(self._a)]

    def _listed(self) -> list[Kernel]:
        return [self.kernels] if isinstance(self.kernels, Kernel) else list(self.kernels)

    def _check_params(self) -> None:
        super()._check_params()
        listed = isinstance(self.kernels, list | tuple) and len(self.kernels) > 0
        if not listed and not isinstance(self.kernels, Kernel):
            raise ValueError(
                "kernels must be a kernel or a list of some, such as "
                f"[okl.Gaussian(0.5), okl.Gaussian(2.0)], but is {told(self.kernels)}"
            )
        for kernel in self._listed():
            check_kernel(kernel, "kernels")
        require_positive("radius", self.radius)
        require_count("budget", self.budget, 2)
        require_positive("beta", self.beta)
        require_seed(self.seed)
        if self.eta is not None:
            require_positive("eta", self.eta)
        for name in ("hints", "horizon"):
            if getattr(self, name) is not None:
                require_count(name, getattr(self, name), 1)
        if len(self._listed()) > 1:
            self._refuse_ignored("several kernels have no use for it; leave it out", "beta")

    def _start(self, d: int) -> None:
        codes = [kernel._code() for kernel in self._listed()]
        K, M = len(codes), int(self.hints or self.MOST_HINTS)
        self._kernels = np.array([code for code, _ in codes]), np.array([par for _, par in codes])
        self._setting = (
            float(self.radius), float(self.eta or 0.0), float(self.budget), float(self.hints or 0),
            float(self.beta), float(self.horizon or 0), self.CONFIDENCE,
        )  # fmt: skip
        self._coins = Coins(self.seed)
        self._most = int(self.budget) + 1 + M  # atoms before a function starts again
        self._make_state(d=d, K=K, M=M, kept=3, sums=2, counts=4)
        self._reserve({MOST: self._most})
        self._place[:], self._p[:], self._sums[ACCURACY] = -1, 1.0 / K, 1.0
        self._work = aligned_zeros(3, max(self._most, d))

    def _room(self, axis: int, least: int) -> int:
        return self._most

    def _groups(self) -> tuple[tuple, tuple, tuple]:
        """Return the functions, the bandit and the reservoir for the compiled loops."""
        functions = self._atoms, self._a, self._held, self._place, self._kept
        return functions, (self._p, self._L, self._sums), (self._V, self._labels)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        coins, out = self._coins.take(3 * len(X)).reshape(-1, 3), trace[:2]
        self._play_rounds(
            len(X),
            lambda _: bao2ks_rounds(
                X, y, coins, self._played, self._kernels, self._setting, self._counts,
                *self._groups(), self._work, out,
            ),
        )  # fmt: skip

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        functions, (p, _, _), reservoir = self._groups()
        bao2ks_forecasts(
            X, self._coins.next, self._played, self._kernels, self._setting, self._counts,
            functions, p, reservoir, self._work, forecasts,
        )  # fmt: skip
        return forecasts

    def _restore(self, state: dict[str, Any]) -> None:
        if "ints" in state:  # version 0.1.0: the filled part and the restarts
            held = state["counts"]
            counts = np.array([held.sum(), held.max(), *state["ints"]])
            state = state | {"held": held, "counts": counts}
        super()._restore(state)

    def _check_state(self) -> None:
        refuse_outside("held", self._held, 0, int(self.budget))
        refuse_outside("counts", self._counts[[FILLED]], 0, len(self._labels))
        for place, held in zip(self._place, self._held, strict=True):
            refuse_outside("place", place, -1, int(held) - 1)
        sizes = int(self._held.sum()), int(self._held.max())
        if sizes != (self._counts[ATOMS], self._counts[MOST]):
            raise ValueError(f"it holds {sizes[0]} atoms, but counts {self._counts.tolist()}")
