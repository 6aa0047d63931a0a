"""Optimistic mirror descent in an RKHS: POMD, and POMDR with its bounded dictionary.

After Li and Liao 2023, "Improved kernel alignment regret bound for online kernel learning" (pomdr
below).
"""

from typing import NamedTuple

import numpy as np

from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.checks import require
from oklnumba.core.params import KW_ONLY, count, nonnegative, positive
from oklnumba.hot import pomdr as loops
from oklnumba.hot.primitives.jit import ATOMS, enter
from oklnumba.hot.primitives.rows import PASS_ROWS
from oklnumba.learners.base.expansion import OnSpan


class Diary(NamedTuple):
    """Statistics of a POMD or POMDR learner.

    Attributes
    ----------
    switch_round : int or None
        t-bar, the round from which OMDR runs; None before.
    size : int
        Atoms in the dictionary.
    alignment : float
        The sum of delta_t, the paper's proxy of the kernel alignment A_T; it bounds the regret of
        POMD (``theory.pomdr_data_bound``).
    removals, projections : int
        Halves of a dictionary merged into the other; gradients projected on its span.
    """

    switch_round: int | None
    size: int
    alignment: float
    removals: int
    projections: int


class OptimisticDescent(OnSpan[loops.POMDRState, loops.Work]):
    """What POMD and POMDR share: optimistic mirror descent on a dictionary."""

    _layout, _work_layout = loops.POMDRState, loops.Work
    _loop = staticmethod(loops.pomdr_rounds)
    _REMEDY = "scale the inputs, or lower radius"
    _fixed_loss = "hinge"

    _: KW_ONLY
    radius: float = positive(25.0)
    hints: int = count(15, least=1)
    zeta: float = nonnegative(1.0)
    ald_scale: float = nonnegative(1.0)

    @property
    def diary(self) -> Diary:
        """Switch round, size, sum of delta, removals and projections so far."""
        alignment = float(self._state.sums[loops.ALL_DELTA]) if self._width is not None else 0.0
        counts = self._counts.tolist()
        removals, projections = counts[loops.REMOVALS], counts[loops.PROJECTIONS]
        return Diary(counts[loops.SWITCH] or None, self.size, alignment, removals, projections)

    @property
    def _removing(self) -> tuple[float, float, float]:
        """The rule of removals: switch_size, budget and rate_scale. Here there are none."""
        return np.inf, np.inf, 1.0

    @property
    def _factored(self) -> int:
        return int(self._counts[loops.FACTORED])

    def _make_work(self, state: loops.POMDRState, rooms: dict[int, int]) -> loops.Work:
        width, d = max(rooms[ATOMS], self._hyper.hints), len(state.atoms)
        rows, points = aligned_zeros(PASS_ROWS, width), aligned_zeros(PASS_ROWS, d)
        k, q, k_last = aligned_zeros(3, width)
        budget = self._rules.budget  # infinite in POMD, which merges no atoms
        K = aligned_zeros(rooms[ATOMS], int(budget) // 2) if budget < np.inf else np.zeros((0, 0))
        return loops.Work(k, q, k_last, rows, points, K, np.zeros(1, dtype=np.int64))

    @property
    def norm(self) -> float:
        """The norm of f' that the rounds maintain, at most ``radius``."""
        return float(np.sqrt(self._state.sums[loops.SQUARE])) if self._width is not None else 0.0

    def _start(self, d: int) -> None:
        p = self._hyper
        horizon = float(p.horizon or 0)
        rules = loops.Rules(p.radius, p.zeta, p.ald_scale, horizon, *self._removing)
        self._start_expansion(d, rules, rules.budget, counts=5, sums=4, M=p.hints)
        self._reserve({loops.FACTORED: 1})

    def _beside_labels(self, n: int) -> tuple:
        """Return what pomdr_rounds takes behind the labels: the rounds played."""
        return (self._played,)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts, rules = np.empty(len(X)), self._rules
        loop = enter(loops.pomdr_forecasts)
        loop(X, self._played, self._kernel, rules, self._state, self._work, forecasts)
        return forecasts


class POMD(OptimisticDescent):
    """POMD: optimistic mirror descent with gradients projected under ALD (pomdr eq. 2, 6 and 7).

    Hinge loss. Each round steps from f'_{t-1} against a hint, the mean gradient that the last
    ``hints`` examples would have, and forecasts there. A gradient is projected on the span of the
    dictionary where x_t is nearly in it (the ALD condition); else x_t joins. With a horizon and
    zeta = ald_scale = 1 the regret against |f| <= U is at most 6 U sqrt(A_T + 2 D) + 9 U sqrt(D),
    A_T the kernel alignment (Corollary 1). The decay of the kernel's eigenvalues bounds the
    dictionary (Theorem 1, ``theory.ald_budget_bound``): a few dozen atoms if it is exponential,
    else very many. O(m d + m^2) time per round for m atoms, 8 m (m + d) bytes.

    Parameters
    ----------
    kernel : Kernel
    radius : float > 0
        U, the largest norm of f'.
    hints : int >= 1
        M, examples of the hint.
    zeta : float >= 0
        Exponent of the ALD threshold.
    ald_scale : float >= 0
        ALD holds where the distance to the span is at most sqrt(D) ald_scale T^-zeta.
    horizon : int >= 1, optional
        T; None: the current round.

    Remarks
    -------
    Errata 26 to 28 and 34 to 37: |f'|^2 grows by lambda^2 |grad|^2; the learning rate has 3 D in
    place of 3, D the largest k(x, x) so far; an empty dictionary accepts any point; f_t is not
    projected, f'_t is. A Cholesky factor takes the place of the inverse, which loses all digits
    after some 70 atoms.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.POMD(okl.Gaussian(1.0), horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.size < 60
    (True, True)
    """

    _: KW_ONLY
    horizon: int | None = count(None, least=1)


class POMDR(OptimisticDescent):
    """POMDR: projected optimistic mirror descent, then with removing (pomdr Algorithm 1).

    POMD until the dictionary has ``switch_size`` atoms; then OMDR: every x_t with a loss joins, and
    at ``budget`` atoms the newest half is merged into the oldest. Without removals the regret is
    that of POMD (Corollary 1). O(m d + m^2) time per round for m atoms in POMD, O(m d) in OMDR;
    O(B d + B^2) memory for the budget B.

    Parameters
    ----------
    kernel, radius, hints, zeta, ald_scale, horizon
        As in POMD. The theory has zeta = 1 and ald_scale = 1, the experiments 1/2 or 2/3 and 10.
    switch_size : int >= 1, optional
        B_0, atoms at which OMDR takes over; None: ceil(15 ln T), and less than the budget. 1 is
        OMDR from the second round on.
    budget : int >= 2, even
        B, atoms at which half of the dictionary is removed.
    rate_scale : float >= 0
        Of the learning rate after the first removal; 1 in theory, 0.05 or 0.1 in the experiments.

    Remarks
    -------
    As in POMD, and errata 29 to 33: the learning rate has 3 D instead of a maximum over future
    rounds, and is reset only after a removal; OMDR runs from t-bar itself, if t-bar < T; after a
    removal f' is scaled to norm U even if it was shorter.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> learner = okl.POMDR(okl.Gaussian(1.0), horizon=2000)
    >>> run = okl.run(learner, X, np.sign(X[:, 0] * X[:, 1]))
    >>> bool(run.mistake_rate < 0.1), learner.diary.switch_round is None
    (True, True)
    """

    _: KW_ONLY
    zeta: float = nonnegative(2 / 3)
    ald_scale: float = nonnegative(10.0)
    switch_size: int | None = count(None, least=1)
    budget: int = count(400, least=2)
    horizon: int | None = count(None, least=1)
    rate_scale: float = nonnegative(0.1)

    def _check_params(self) -> None:
        even = self.budget % 2 == 0
        require(even, "budget", self.budget, "even, for half of it is removed at a time")
        below = self.switch_size is None or self.switch_size < self.budget
        require(below, "switch_size", self.switch_size, f"less than budget = {self.budget}")

    @property
    def _removing(self) -> tuple[float, float, float]:
        p = self._hyper
        return float(p.switch_size or 0), float(p.budget), p.rate_scale
