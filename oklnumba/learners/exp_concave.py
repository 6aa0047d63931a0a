"""FTRL for exp-concave losses (oco section 4, Theorem 6)."""

from math import inf

import numpy as np

from oklnumba.components.losses import loss_field
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.checks import require_positive
from oklnumba.core.health import Part, measure_dense_part
from oklnumba.core.params import KW_ONLY, choice, field_in, positive
from oklnumba.hot import exp_concave as loops
from oklnumba.hot.primitives.jit import enter
from oklnumba.learners.base.linear import EitherLearner, LinearLearner
from oklnumba.learners.newton import NewtonLearner

_DOMAINS = {"ball": loops.BALL, "simplex": loops.SIMPLEX}


class _OnSpace(NewtonLearner):
    """Over the whole space: the online Newton step without projection."""

    alpha_tilde: float
    lipschitz: float

    def _start(self, d: int) -> None:
        self._begin_factor(d, self.lipschitz**2 * self.alpha_tilde, self.alpha_tilde)


class _OnDomain(LinearLearner[loops.ExpConcaveState, loops.Solver]):
    """On a ball or the simplex: a quadratic is minimised there each round."""

    _layout = loops.ExpConcaveState

    alpha_tilde: float
    lipschitz: float
    domain: str
    radius: float

    def _start(self, d: int) -> None:
        self._domain = loops.Domain(_DOMAINS[self.domain], self.radius)
        self._make_state(d=d)
        np.fill_diagonal(self._state.A, self.lipschitz**2)
        if self._domain.shape == loops.SIMPLEX:
            self._state.w[:] = 1.0 / d

    def _make_work(self, state: loops.ExpConcaveState, rooms: dict[int, int]) -> loops.Solver:
        d = len(state.w)
        return loops.Solver(np.arange(d), aligned_zeros(d, d), aligned_zeros(d), aligned_zeros(d))

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        rate, play = 1.0 / self.alpha_tilde, enter(loops.exp_concave_rounds)
        return play(X, y, loss, rate, self._domain, self._state, self._work, out)

    def _matrices(self) -> list[Part]:
        return [measure_dense_part("L^2 I + sum g g'", self._state.A)]

    def _finite(self) -> bool:
        return True  # the domain is bounded


class ExpConcaveFTRL(EitherLearner):
    """FTRL for exp-concave losses, a form of the online Newton step (oco section 4, Theorem 6).

    w_t minimises sum_{s<t} <g_s, w> + alpha~ L^2 |w|^2 / 2 + sum_{s<t} alpha~ (g_s.(w - w_s))^2 / 2
    over the domain. O(d^2) per round on the whole space, O(d^3) on the others.

    Parameters
    ----------
    alpha_tilde : float > 0
        min(1 / (16 B L), alpha / 2) for alpha-exp-concave losses on a domain of radius B.
    lipschitz : float > 0
        L, a bound on |g|.
    domain : {"all", "ball", "simplex"}
        The whole space, a Euclidean ball, or {w >= 0, sum w = 1}.
    radius : float > 0, optional
        Of the ball, which needs one; the other domains refuse it.
    loss : str
        As in OGD.

    Remarks
    -------
    Errata 46: the first term has alpha~, not alpha; and the theorem needs points in the domain,
    which only "ball" and "simplex" guarantee. There the quadratic is minimised exactly.

    Examples
    --------
    >>> game = okl.ExpConcaveFTRL(alpha_tilde=1.0, lipschitz=1.0, domain="simplex").reset(2)
    >>> game.w, game.update([0.0, 1.0]).w.round(4)
    (array([0.5, 0.5]), array([0.8333, 0.1667]))
    """

    _REMEDY = "raise lipschitz or alpha_tilde, or scale the inputs and labels"
    _traits = NewtonLearner._traits

    alpha_tilde: float = positive(0.1)
    _: KW_ONLY
    lipschitz: float = field_in("(1e-150, 1e150)", 1.0)
    domain: str = choice(("all", *_DOMAINS), "all")
    radius: float | None = positive(None)
    loss: str = loss_field("squared")

    def _check_params(self) -> None:
        if self.domain == "ball":
            require_positive("radius", self.radius)  # not None
        else:
            self._refuse_unused("it is that of domain='ball'; take this domain", "radius")

    def _choose(self) -> LinearLearner:
        p = self._hyper
        if p.domain == "all":
            return _OnSpace(p.alpha_tilde, p.lipschitz)
        return _OnDomain(p.alpha_tilde, p.lipschitz, p.domain, p.radius or inf)
