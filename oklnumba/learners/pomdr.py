"""Optimistic mirror descent in an RKHS: POMD, and POMDR with its bounded dictionary.

After Li and Liao 2023, "Improved kernel alignment regret bound for online kernel learning" (pomdr
below).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oklnumba.checks import require, require_count, require_nonnegative, require_positive
from oklnumba.hot.pomdr import pomdr_forecasts, pomdr_rounds
from oklnumba.kernels import Kernel
from oklnumba.learners.expansion import Expansion
from oklnumba.learners.learner import Trace
from oklnumba.state import grown


class Diary(NamedTuple):
    """What a POMD or POMDR learner notes about itself.

    Attributes
    ----------
    switch_round : int or None
        t-bar, the round from which OMDR runs; None while it has not come (t-bar = infinity).
    size : int
        Atoms in the dictionary, |S|.
    alignment : float
        The sum of delta_t, which the paper uses as a proxy of the kernel alignment A_T; the regret
        of POMD is at most 3 U sqrt(this + 3 D) + 9 U.
    removals : int
        Times half of the dictionary was merged into the other half.
    projections : int
        Rounds whose gradient was projected on the span of the dictionary (ALD held).
    """

    switch_round: int | None
    size: int
    alignment: float
    removals: int
    projections: int


class POMDR(Expansion):
    """POMDR: projected optimistic mirror descent, then with removing (pomdr Algorithm 1).

    Hinge loss. Each round steps from f'_{t-1} towards a hint, the mean gradient that the last
    ``hints`` examples would have, and forecasts there. POMD: where the loss is positive its
    gradient is projected on the span of the dictionary if x_t is nearly in it (the ALD condition),
    else x_t joins. When the dictionary has ``switch_size`` atoms, OMDR takes over: every such x_t
    joins, and at ``budget`` atoms the newest half is merged into the oldest. Regret against |f| <=
    U: 6 U sqrt(A_T + 2 D) + 9 U without removals, with the kernel alignment A_T (Corollary 1).

    O(m d + m^2) time a round for m atoms in POMD, O(m d) in OMDR; memory bounded by the budget.

    Parameters
    ----------
    kernel : Kernel
    radius : float > 0
        U, the largest norm of f'.
    hints : int >= 1
        M, how many of the last examples make the hint.
    zeta : float >= 0
        Exponent of the ALD threshold; the theory has 1, the experiments 1/2 or 2/3.
    ald_scale : float >= 0
        ALD holds where the distance to the span is at most sqrt(D) ald_scale T^-zeta; the theory
        has 1, the experiments 10.
    switch_size : int >= 1, optional
        B_0, atoms at which OMDR takes over; None: ceil(15 ln T), and less than the budget. 1 is
        OMDR from the second round on.
    budget : int >= 2, even
        B, atoms at which half of the dictionary is removed.
    horizon : int >= 1, optional
        T; None: the current round.
    rate_scale : float >= 0
        Factor of the learning rate after the first removal; the theory has 1, the experiments 0.05
        or 0.1.

    Remarks
    -------
    Errata 26 to 41: |f'|^2 grows by lambda^2 |grad|^2; the learning rate has 3 D (D the largest
    k(x, x) so far) in place of 3 and of a maximum over rounds to come; it is reset after a removal
    only; OMDR runs from t-bar itself; after a removal f' is scaled to norm U even if it was
    shorter. A bordered Cholesky factor takes the place of the growing inverse, which loses all
    digits after some 70 atoms.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.POMDR(okl.Gaussian(1.0), horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.diary.switch_round is None
    (True, True)
    """

    def __init__(
        self,
        kernel: Kernel,
        radius: float = 25.0,
        hints: int = 15,
        zeta: float = 2 / 3,
        ald_scale: float = 10.0,
        switch_size: int | None = None,
        budget: int = 400,
        horizon: int | None = None,
        rate_scale: float = 0.1,
    ):
        self.kernel = kernel
        self.radius = radius
        self.hints = hints
        self.zeta = zeta
        self.ald_scale = ald_scale
        self.switch_size = switch_size
        self.budget = budget
        self.horizon = horizon
        self.rate_scale = rate_scale

    _fixed_loss = "hinge"
    _REMEDY = "scale the inputs, or lower radius"

    @property
    def diary(self) -> Diary:
        """Switch round, size, sum of delta, removals and projections so far."""
        if self._width is None:
            return Diary(None, 0, 0.0, 0, 0)
        m, switch, removals, projections = (int(v) for v in self._ints)
        return Diary(switch or None, m, float(self._reals[2]), removals, projections)

    @property
    def norm(self) -> float:
        """The norm of f' that the rounds maintain, at most ``radius``."""
        return float(np.sqrt(self._reals[0])) if self._width is not None else 0.0

    def _check_budget(self) -> tuple[float, float]:
        """Return the switch size (0: by the rounds) and the budget."""
        require_count("budget", self.budget, 2)
        require(self.budget % 2 == 0, "budget", self.budget, "even: half of it is removed")
        require_nonnegative("rate_scale", self.rate_scale)
        if self.switch_size is None:
            return 0.0, float(self.budget)
        require_count("switch_size", self.switch_size, 1)
        domain = f"less than budget = {self.budget}"
        require(self.switch_size < self.budget, "switch_size", self.switch_size, domain)
        return float(self.switch_size), float(self.budget)

    def _start(self, d: int) -> None:
        require_positive("radius", self.radius)
        require_count("hints", self.hints, 1)
        for name in ("zeta", "ald_scale"):
            require_nonnegative(name, getattr(self, name))
        if self.horizon is not None:
            require_count("horizon", self.horizon, 1)
        switch_size, budget = self._check_budget()
        M = int(self.hints)
        self._setting = (
            float(self.radius), float(self.zeta), float(self.ald_scale),
            float(self.horizon or 0), switch_size, budget, float(getattr(self, "rate_scale", 1.0)),
        )  # fmt: skip
        self._hints = np.zeros((d, M))
        self._signs = np.zeros(M)
        self._R = np.zeros((0, 0))
        self._H = np.zeros((M, 0))
        self._start_expansion(d, self.kernel, budget, ints=4, reals=4)

    def _make_room(self, cap: int) -> None:
        super()._make_room(cap)
        if self._has_factor():
            self._R = grown(self._R, cap, cap)
            self._H = grown(self._H, len(self._signs), cap)
        self._work = np.zeros((3, max(cap, self._atoms.shape[0], len(self._signs))))

    def _has_factor(self) -> bool:
        """Say whether the factor for the ALD test is kept: not in OMDR."""
        # A t-bar of T leaves round T to POMD (errata 31).
        return self._ints[1] == 0 or self._ints[1] == self.horizon

    def _rounds(self, X: np.ndarray, y: np.ndarray, first: int, trace: Trace) -> tuple[int, int]:
        return pomdr_rounds(
            X, y, first, self._played, self._kernel, self._setting, self._ints,
            self._reals, self._atoms, self._a, self._R, self._hints, self._signs, self._H,
            self._work, trace.predictions, trace.sizes,
        )  # fmt: skip

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        pomdr_forecasts(
            X, self._played, self._kernel, self._setting, self._ints, self._reals,
            self._atoms, self._a, self._hints, self._signs, self._work, forecasts,
        )  # fmt: skip
        return forecasts

    def _state(self) -> dict[str, Any]:
        m = self.size if self._has_factor() else 0
        return super()._state() | {
            "hints": self._hints,
            "signs": self._signs,
            "R": self._R[:m, :m],
            "H": self._H[:, :m],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        m = len(state["R"])
        self._hints[:], self._signs[:] = state["hints"], state["signs"]
        if m:
            self._R[:m, :m], self._H[:, :m] = state["R"], state["H"]


class POMD(POMDR):
    """POMD: optimistic mirror descent with gradients projected under ALD (pomdr eq. 2, 6 and 7).

    The first phase of POMDR, for ever: regret against |f| <= U of at most 6 U sqrt(A_T + 2 D) + 9 U
    (Corollary 1, with zeta = 1 and ald_scale = 1), and a dictionary whose size Theorem 1 bounds by
    the decay of the kernel's eigenvalues (``theory.ald_budget_bound``): a few dozen atoms where it
    is exponential, very many where it is not.

    O(m d + m^2) time a round for m atoms, 8 m (m + d) bytes.

    Parameters
    ----------
    kernel : Kernel
    radius : float > 0
        U, the largest norm of f'.
    hints : int >= 1
        M, how many of the last examples make the hint.
    zeta : float >= 0
        Exponent of the ALD threshold.
    ald_scale : float >= 0
        ALD holds where the distance to the span is at most sqrt(D) ald_scale T^-zeta.
    horizon : int >= 1, optional
        T; None: the current round.

    Remarks
    -------
    As in POMDR.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.POMD(okl.Gaussian(1.0), horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size < 60
    (True, True)
    """

    def __init__(
        self,
        kernel: Kernel,
        radius: float = 25.0,
        hints: int = 15,
        zeta: float = 1.0,
        ald_scale: float = 1.0,
        horizon: int | None = None,
    ):
        self.kernel = kernel
        self.radius = radius
        self.hints = hints
        self.zeta = zeta
        self.ald_scale = ald_scale
        self.horizon = horizon

    def _check_budget(self) -> tuple[float, float]:
        return np.inf, np.inf
