"""FTRL for exp-concave losses (oco section 4, Theorem 6)."""

from __future__ import annotations

import numpy as np

from oklnumba.checks import require, require_positive
from oklnumba.hot.exp_concave import ALL_SPACE, BALL, SIMPLEX, exp_concave_rounds
from oklnumba.learners.linear import LinearLearner
from oklnumba.learners.newton import _Newton
from oklnumba.potentials import _radius


class ExpConcaveFTRL(_Newton):
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
        Of the ball.
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

    _DOMAINS = {
        "all": ALL_SPACE,
        "ball": BALL,
        "simplex": SIMPLEX,
    }
    _remedy = "raise lipschitz or alpha_tilde, or scale the inputs and labels"

    def __init__(
        self,
        alpha_tilde: float = 0.1,
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

    def _begin_rounds(self, d: int) -> None:
        require_positive("alpha_tilde", self.alpha_tilde)
        require_positive("lipschitz", self.lipschitz)
        lipschitz = float(self.lipschitz)
        require(1e-150 < lipschitz < 1e150, "lipschitz", lipschitz, "between 1e-150 and 1e150")
        start = lipschitz**2
        valid = isinstance(self.domain, str) and self.domain in self._DOMAINS
        require(valid, "domain", self.domain, "'all', 'ball' or 'simplex'")
        if self.radius is not None or self.domain == "ball":
            require_positive("radius", self.radius)
        self._domain = self._DOMAINS[self.domain]
        if self._domain == ALL_SPACE:
            self._begin_factor(d, start * float(self.alpha_tilde), float(self.alpha_tilde))
            return
        self._ARRAYS = ("A", "b", "w")
        self._bound = _radius(self.radius)
        self._A = start * np.eye(d)
        self._b = np.zeros(d)
        self._w = np.full(d, 1.0 / d if self.domain == "simplex" else 0.0)
        self._index = np.arange(d)
        self._R = np.zeros((d, d))
        self._v, self._u = np.zeros(d), np.zeros(d)

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, code: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        if self._domain == ALL_SPACE:
            return super()._rounds(X, y, code, forecasts)
        return exp_concave_rounds(
            X, y, code, 1.0 / float(self.alpha_tilde), self._domain, self._bound, self._A,
            self._b, self._w, self._index, self._R, self._v, self._u, forecasts,
        )  # fmt: skip

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        if self._domain == ALL_SPACE:
            return super()._forecast(X)
        return LinearLearner._forecast(self, X)

    def _point(self) -> np.ndarray:
        return super()._point() if self._domain == ALL_SPACE else self._w.copy()

    def _finite(self) -> bool:
        return super()._finite() if self._domain == ALL_SPACE else True
