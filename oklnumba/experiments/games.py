"""Games for the linear learners: portfolios and least squares (oco section 4)."""

from math import log
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.potentials import as_vector, check_radius, check_simplex
from oklnumba.core import checks, inputs
from oklnumba.core.display import repr_fields
from oklnumba.learners.base.linear import LinearLearner

GAME = "rounds", "d", "loss", "gradient", "losses", "best"


class _Game:
    """Checks of rounds and points for all games."""

    rounds: int
    d: int

    def __repr__(self) -> str:
        return repr_fields(self, rounds=self.rounds, d=self.d)

    def _check(self, t: int, w: ArrayLike) -> tuple[int, np.ndarray]:
        t = checks.require_count("t", t, 0)
        checks.require(t < self.rounds, "t", t, f"a round of this game, 0 to {self.rounds - 1}")
        return t, self._point(w)

    def _point(self, w: ArrayLike) -> np.ndarray:
        return as_vector(w, "w", self.d)


class Portfolio(_Game):
    """Sequential investing against the best constant rebalanced portfolio (oco section 4).

    In each round the learner plays shares w on the simplex and pays -log(c_t.w). Wealth is the
    exponential of minus the total loss.

    Parameters
    ----------
    relatives : array_like of shape (n, d)
        c_t, prices at the end of round t divided by prices at its start; > 0.

    Examples
    --------
    >>> game = okl.oco.Portfolio([[2.0, 0.5], [0.5, 2.0]])
    >>> game.best(), game.wealth([[0.5, 0.5], [0.5, 0.5]])
    (array([0.5, 0.5]), array([1.25  , 1.5625]))
    """

    def __init__(self, relatives: ArrayLike):
        relatives = inputs.as_inputs(relatives, name="relatives")
        checks.require(relatives.min() > 0.0, "relatives", relatives, "numbers > 0")
        self.relatives = relatives
        self.rounds, self.d = relatives.shape

    def _point(self, w: ArrayLike) -> np.ndarray:
        return check_simplex(super()._point(w))

    @checks.refuses_overflow
    def loss(self, t: int, w: ArrayLike) -> float:
        """Return -log(c_t.w)."""
        t, w = self._check(t, w)
        return -log(self.relatives[t] @ w)

    @checks.refuses_overflow
    def gradient(self, t: int, w: ArrayLike) -> np.ndarray:
        """Return the gradient -c_t / (c_t.w)."""
        t, w = self._check(t, w)
        return -self.relatives[t] / (self.relatives[t] @ w)

    @checks.refuses_overflow
    def losses(self, w: ArrayLike) -> np.ndarray:
        """Return the losses of one constant w, shape (n,)."""
        return -np.log(self.relatives @ self._point(w))

    @checks.refuses_overflow
    def wealth(self, points: ArrayLike) -> np.ndarray:
        """Return the wealth after each round of shares w_1, ..., w_n, starting from 1."""
        points = inputs.as_inputs(points, self.d, "points")
        for w in points:
            check_simplex(w, name="points")
        return np.cumprod(np.einsum("td,td->t", self.relatives[: len(points)], points))

    @checks.refuses_overflow
    def best(self) -> np.ndarray:
        """Return the best constant rebalanced portfolio, to about 1e-9 per round."""
        whole: Any = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like}

        def mean_loss(w: np.ndarray) -> tuple[float, np.ndarray]:
            growth = self.relatives @ w
            return -np.log(growth).mean(), -(self.relatives / growth[:, None]).mean(axis=0)

        result = scipy.optimize.minimize(
            mean_loss, np.full(self.d, 1.0 / self.d), jac=True, method="SLSQP", constraints=whole,
            bounds=[(0.0, 1.0)] * self.d, options={"ftol": 1e-15, "maxiter": 1000},
        )  # fmt: skip
        w = np.maximum(result.x, 0.0)
        return w / w.sum()


class LeastSquares(_Game):
    """Online least squares, f_t(w) = (w.x_t - y_t)^2 / 2 (oco section 4).

    Parameters
    ----------
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    radius : float > 0, optional
        Radius of the comparator's ball; None: the whole space.

    Examples
    --------
    >>> okl.oco.LeastSquares([[1.0], [1.0]], [0.0, 1.0]).best()
    array([0.5])
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, *, radius: float | None = None):
        self.X = inputs.as_inputs(X)
        self.y = inputs.as_labels(y, len(self.X))
        self.radius = check_radius(radius)
        self.rounds, self.d = self.X.shape

    @checks.refuses_overflow
    def loss(self, t: int, w: ArrayLike) -> float:
        """Return (w.x_t - y_t)^2 / 2."""
        t, w = self._check(t, w)
        return float((self.X[t] @ w - self.y[t]) ** 2 / 2)

    @checks.refuses_overflow
    def gradient(self, t: int, w: ArrayLike) -> np.ndarray:
        """Return (w.x_t - y_t) x_t."""
        t, w = self._check(t, w)
        return (self.X[t] @ w - self.y[t]) * self.X[t]

    @checks.refuses_overflow
    def losses(self, w: ArrayLike) -> np.ndarray:
        """Return the losses of one constant w, shape (n,)."""
        return (self.X @ self._point(w) - self.y) ** 2 / 2

    @checks.refuses_overflow
    def best(self) -> np.ndarray:
        """Return the least-squares solution of least norm in the ball."""
        U, values, V = np.linalg.svd(self.X, full_matrices=False)
        keep = values > max(self.X.shape) * np.finfo(float).eps * values[0]  # as numpy's lstsq
        values, V, target = values[keep], V[keep], (self.y @ U)[keep]

        def point(mu: float) -> np.ndarray:
            """Return the w of least norm that minimises |X w - y|^2 + mu |w|^2."""
            return (target / (values + mu / values)) @ V

        w = point(0.0)
        if np.linalg.norm(w) <= self.radius:
            return w
        high = 2.0 * float(np.linalg.norm(target * values)) / self.radius
        mu = scipy.optimize.brentq(
            lambda mu: np.linalg.norm(point(mu)) - self.radius, 0.0, high, xtol=1e-300, maxiter=2000
        )
        return point(mu)


class Played(NamedTuple):
    """A game that was played: points and gradients (n, d), losses (n,)."""

    points: np.ndarray
    gradients: np.ndarray
    losses: np.ndarray
    game: Portfolio | LeastSquares

    def regret(self, w: ArrayLike | None = None) -> np.ndarray:
        """Return the regret after each round against w; None: against the best w of the game."""
        w = self.game.best() if w is None else w
        return np.cumsum(self.losses - self.game.losses(w)[: len(self.losses)])

    def __repr__(self) -> str:
        total = float(self.losses.sum())
        return repr_fields(self, game=self.game, rounds=len(self.losses), loss=total)


def play(learner: LinearLearner, game: Portfolio | LeastSquares) -> Played:
    """Reset a linear learner and play a game with its ``w`` and ``update``.

    A game has ``rounds``, ``d``, ``loss(t, w)``, ``gradient(t, w)``, ``losses(w)`` and ``best()``.

    Examples
    --------
    >>> game = okl.oco.Portfolio([[2.0, 0.5], [0.5, 2.0]])
    >>> okl.oco.play(okl.Hedge(eta=0.1), game).regret().round(4)
    array([0.    , 0.0366])
    """
    linear = isinstance(learner, LinearLearner)
    checks.require(linear, "learner", learner, "a linear learner, such as okl.OGD()")
    complete = all(hasattr(game, name) for name in GAME) and not isinstance(game, type)
    checks.require(complete, "game", game, "a game such as okl.oco.LeastSquares(X, y)")
    points, gradients = np.empty((2, game.rounds, game.d))
    values = np.empty(game.rounds)
    learner.reset(game.d)
    for t in range(game.rounds):
        points[t] = learner.w
        values[t] = game.loss(t, points[t])
        gradients[t] = game.gradient(t, points[t])
        learner.update(gradients[t])
    return Played(points, gradients, values, game)
