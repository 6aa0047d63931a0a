"""FTRL for exp-concave losses (oco section 4, Theorem 6)."""

from __future__ import annotations

import numpy as np

from oklnumba.components.potentials import check_radius
from oklnumba.core.checks import require, require_positive
from oklnumba.core.health import Part, dense_part
from oklnumba.core.state import aligned_zeros
from oklnumba.hot.exp_concave import BALL, SIMPLEX, exp_concave_rounds
from oklnumba.learners.base.linear import EitherLearner, LinearLearner
from oklnumba.learners.newton import NewtonLearner


class _OnSpace(NewtonLearner):
    """Over the whole space: the online Newton step without projection."""

    def __init__(self, alpha_tilde: float, lipschitz: float):
        self.alpha_tilde = alpha_tilde
        self.lipschitz = lipschitz

    def _begin_rounds(self, d: int) -> None:
        self._begin_factor(d, self.lipschitz**2 * self.alpha_tilde, self.alpha_tilde)


class _OnDomain(LinearLearner):
    """On a ball or the simplex: a quadratic is minimised there each round."""

    _STATE = {"A": ("d", "d"), "b": ("d",), "w": ("d",)}
    _DOMAINS = {"ball": BALL, "simplex": SIMPLEX}

    def __init__(self, alpha_tilde: float, lipschitz: float, domain: str, radius: float):
        self.alpha_tilde = alpha_tilde
        self.lipschitz = lipschitz
        self.domain = domain
        self.radius = radius

    def _begin_rounds(self, d: int) -> None:
        self._domain = self._DOMAINS[self.domain]
        self._make_state(d=d)
        np.fill_diagonal(self._A, self.lipschitz**2)
        if self._domain == SIMPLEX:
            self._w[:] = 1.0 / d
        self._work = np.arange(d), aligned_zeros(d, d), aligned_zeros(d), aligned_zeros(d)

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, loss: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        state = self._A, self._b, self._w
        return exp_concave_rounds(
            X, y, loss, 1.0 / self.alpha_tilde, self._domain, self.radius, state, self._work,
            forecasts,
        )  # fmt: skip

    def _matrices(self) -> list[Part]:
        return [dense_part("L^2 I + sum g g'", self._A)]

    def _finite(self) -> bool:
        return True  # the domain is bounded


class ExpConcaveFTRL(EitherLearner):
    """FTRL for exp-concave losses, a form of the online Newton step (oco section 4, Theorem 6).

    w_t minimises sum_{s<t} <g_s, w> + alpha~ L^2 |w|^2 / 2 + sum_{s<t} alpha~ (g_s.(w - w_s))^2 / 2
    over the domain.

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
        A loss of losses.py, for the learner face.

    Remarks
    -------
    Errata 46: the first term has alpha~, not alpha; and the theorem needs points in the domain,
    which only "ball" and "simplex" guarantee. There the quadratic is minimised exactly each round,
    in O(d^3): by Newton's method for the multiplier of the ball, by an active set on the simplex.
    On the simplex the forecast 0 is reported for the first round; see ExponentiatedGradient.

    Examples
    --------
    >>> import oklnumba as okl
    >>> game = okl.ExpConcaveFTRL(alpha_tilde=1.0, lipschitz=1.0, domain="simplex").reset(2)
    >>> game.w, game.update([0.0, 1.0]).w.round(4)
    (array([0.5, 0.5]), array([0.8333, 0.1667]))
    """

    _REMEDY = "raise lipschitz or alpha_tilde, or scale the inputs and labels"

    def __init__(
        self,
        alpha_tilde: float = 0.1,
        *,
        lipschitz: float = 1.0,
        domain: str = "all",
        radius: float | None = None,
        loss: str = "squared",
    ):
        self.alpha_tilde = alpha_tilde
        self.lipschitz = lipschitz
        self.domain = domain
        self.radius = radius
        self.loss = loss

    def _check_params(self) -> None:
        super()._check_params()
        require_positive("alpha_tilde", self.alpha_tilde)
        require_positive("lipschitz", self.lipschitz)
        lipschitz = float(self.lipschitz)
        require(1e-150 < lipschitz < 1e150, "lipschitz", lipschitz, "between 1e-150 and 1e150")
        valid = isinstance(self.domain, str) and self.domain in ("all", *_OnDomain._DOMAINS)
        require(valid, "domain", self.domain, "'all', 'ball' or 'simplex'")
        if self.domain == "ball":
            require_positive("radius", self.radius)
        check_radius(self.radius)
        if self.domain != "ball":
            self._refuse_ignored("it is that of domain='ball'; take this domain", "radius")

    def _choose(self) -> LinearLearner:
        alpha_tilde, lipschitz = float(self.alpha_tilde), float(self.lipschitz)
        if self.domain == "all":
            return _OnSpace(alpha_tilde, lipschitz)
        return _OnDomain(alpha_tilde, lipschitz, self.domain, check_radius(self.radius))
