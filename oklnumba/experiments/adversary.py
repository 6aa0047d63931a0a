"""Hard streams: a greedy adversary (Jezequel, Gaillard and Rudi 2019) and synthetic ones."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components.kernels import Kernel, check_kernel
from oklnumba.core import checks, inputs
from oklnumba.core.display import repr_fields
from oklnumba.core.guard import one_blas_thread
from oklnumba.learners.base.learner import Learner

__all__ = [
    "GreedyGame", "RKHSFunction", "alternating", "greedy", "rkhs_function", "sorted_by",
]  # fmt: skip

CANDIDATES = 64  # random inputs per round; the thorough search refines the best
APART = 0.5  # least distance, in some coordinate, of the points where local searches start
STEP = 1e-6  # of finite differences

Move = tuple[np.ndarray, float, float]  # point, label, and how much they add to the regret


class GreedyGame(NamedTuple):
    """The rounds of ``greedy``: X (n, d); y, predictions and the regret after each round, (n,)."""

    X: np.ndarray
    y: np.ndarray
    predictions: np.ndarray
    regret: np.ndarray

    def __repr__(self) -> str:
        n, d = self.X.shape
        return repr_fields(self, rounds=n, d=d, regret=float(self.regret[-1]))


class _Ridge:
    """Kernel ridge regression: the factor L L' = K + lam I and u = L^-1 y grow round by round."""

    def __init__(self, kernel: Kernel, lam: float, n: int, d: int):
        self.kernel, self.lam, self.t = kernel, lam, 0
        self.X, self.L, self.u = np.empty((n, d)), np.zeros((n, n)), np.empty(n)

    def solve_point(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return forecasts, pivots lam + k(x,x) - k'(K + lam I)^-1 k, and solved columns."""
        t = self.t
        if t == 0:
            return np.zeros(len(X)), self.lam + self.kernel.diag(X), np.zeros((0, len(X)))
        columns = scipy.linalg.solve_triangular(
            self.L[:t, :t], self.kernel(X, self.X[:t]).T, lower=True, check_finite=False
        )
        delta = self.kernel.diag(X) - np.einsum("ij,ij->j", columns, columns)
        return self.u[:t] @ columns, self.lam + np.maximum(delta, 0.0), columns

    def growth(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how much each point adds to min_f sum (y - f(x))^2 + lam |f|^2.

        labels : (..., points).
        """
        m, s = self.solve_point(X)[:2]
        return (labels - m) ** 2 * self.lam / s

    def learn(self, x: np.ndarray, y: float) -> None:
        forecast, pivot, column = self.solve_point(x[None])
        t = self.t
        self.X[t], self.L[t, :t], self.L[t, t] = x, column[:, 0], np.sqrt(pivot[0])
        self.u[t] = (y - forecast[0]) / np.sqrt(pivot[0])
        self.t += 1


class _Unpenalised(_Ridge):
    """The same function f, without its penalty in the loss."""

    def growth(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how much each point adds to sum (y - f(x))^2."""
        # The residuals are lam a, with a = (K + lam I)^-1 y. A new point subtracts c b from a, with
        # b = (K + lam I)^-1 k, and appends c = (y - m) / s.
        t = self.t
        m, s, columns = self.solve_point(X)
        c = (labels - m) / s
        if t == 0:
            return (self.lam * c) ** 2
        solved = scipy.linalg.solve_triangular(
            self.L[:t, :t], np.column_stack([self.u[:t], columns]), lower=True, trans="T",
            check_finite=False,
        )  # fmt: skip
        a, b = solved[:, 0], solved[:, 1:]
        return self.lam**2 * (c**2 * (1.0 + np.einsum("ij,ij->j", b, b)) - 2.0 * c * (a @ b))


COMPARATORS = {"penalised": _Ridge, "unpenalised": _Unpenalised}


def greedy(
    learner: Learner, kernel: Kernel, n: int, d: int, lam: float = 1.0, restarts: int = 3,
    seed: int = 0, *, comparator: str = "penalised", search: str = "thorough",
) -> GreedyGame:  # fmt: skip
    """Play rounds that each make the learner's regret as large as possible (pkawv appendix G).

    Each round (x, y) in [-1, 1]^d x [-1, 1] maximises the regret against kernel ridge regression on
    all points including (x, y), the function f_t that minimises sum (y - f(x))^2 + lam |f|^2. With
    the ridge forecast m and s = lam + k(x,x) - k'(K + lam I)^-1 k, a round adds

        (y - yhat(x))^2 - (y - m(x))^2 lam / s(x)

    to the regret against the penalised loss of f_t. This is convex in y, as is the regret against
    the loss without penalty.

    Parameters
    ----------
    learner : Learner
        Is reset, then plays the rounds.
    kernel, lam : Kernel, float > 0
        Of the comparator.
    n, d : int >= 1
        Rounds, and width of the inputs.
    restarts : int >= 1
        Local searches per round of the thorough search.
    seed : int
        Of the random inputs.
    comparator : {"penalised", "unpenalised"}
        Loss of the comparator: with lam |f|^2, or without it as in the paper's experiment.
    search : {"thorough", "single"}
        Thorough: L-BFGS-B over x from the best of some random inputs, with y = -1 or 1. Single: as
        in the authors' code, one L-BFGS-B over x and y from a uniform point in [0, 1]^(d+1).

    Remarks
    -------
    The paper does not define its adversary. The authors' code plays the unpenalised comparator with
    the single search. The adversary knows the random numbers of the learner for the next point.

    Examples
    --------
    >>> kernel = okl.Gaussian(1.0)
    >>> game = okl.adversary.greedy(okl.KernelAWV(kernel), kernel, n=10, d=2)
    >>> game.X.shape, bool((game.regret[1:] >= game.regret[:-1]).all())
    ((10, 2), True)
    """
    checks.require(isinstance(learner, Learner), "learner", learner, "an oklnumba learner")
    check_kernel("kernel", kernel)
    n, d = checks.require_count("n", n, 1), checks.require_count("d", d, 1)
    lam = checks.require_positive("lam", lam)
    restarts = checks.require_count("restarts", restarts, 1)
    rng = np.random.default_rng(checks.require_seed("seed", seed))
    comparator = checks.require_choice("comparator", comparator, COMPARATORS)
    search = checks.require_choice("search", search, SEARCHES)
    ridge = COMPARATORS[comparator](kernel, lam, n, d)
    best_move = SEARCHES[search]
    learner.reset()
    X, y, predictions, regret = np.empty((n, d)), np.empty(n), np.empty(n), np.empty(n)
    with one_blas_thread:  # faster for small matrices
        for t in range(n):
            X[t], y[t], gain = best_move(learner, ridge, rng, restarts)
            predictions[t] = learner.predict_one(X[t])
            regret[t] = gain + (regret[t - 1] if t else 0.0)
            learner.learn_one(X[t], y[t])
            ridge.learn(X[t], y[t])
    return GreedyGame(X, y, predictions, regret)


def _gains(learner: Learner, ridge: _Ridge, points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return by how much each point would increase the regret; labels: (..., points)."""
    return (labels - learner.predict(points)) ** 2 - ridge.growth(points, labels)


def _ascend(gains: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray:
    """Return the local maximum in [-1, 1]^k that L-BFGS-B finds with finite differences."""
    steps = np.vstack([np.zeros(len(start)), STEP * np.eye(len(start))])

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        # Forward differences, backward at the upper bound, all in one call.
        signs = np.where(z + STEP > 1.0, -1.0, 1.0)
        values = gains(z + steps * signs)
        return -values[0], -(values[1:] - values[0]) / (STEP * signs)

    bounds = [(-1.0, 1.0)] * len(start)
    return scipy.optimize.minimize(objective, start, jac=True, bounds=bounds).x


def _thorough(learner: Learner, ridge: _Ridge, rng: np.random.Generator, restarts: int) -> Move:
    """Return the best of several local searches over x, with y = -1 or 1."""
    ends = np.array([[-1.0], [1.0]])

    def gains(points: np.ndarray) -> np.ndarray:
        return _gains(learner, ridge, points, ends).max(axis=0)

    candidates = rng.uniform(-1.0, 1.0, (CANDIDATES, ridge.X.shape[1]))
    starts = _pick_apart(candidates[np.argsort(-gains(candidates))], restarts)
    points = np.vstack([[_ascend(gains, x) for x in starts], starts])
    values = _gains(learner, ridge, points, ends)
    label, best = np.unravel_index(np.argmax(values), values.shape)
    return points[best], ends[label, 0], values[label, best]


def _single(learner: Learner, ridge: _Ridge, rng: np.random.Generator, restarts: int) -> Move:
    """Return the point where one local search over x and y stops."""

    def gains(rows: np.ndarray) -> np.ndarray:
        return _gains(learner, ridge, rows[:, :-1], rows[:, -1])

    z = _ascend(gains, rng.uniform(0.0, 1.0, ridge.X.shape[1] + 1))
    return z[:-1], z[-1], gains(z[None])[0]


SEARCHES = {"thorough": _thorough, "single": _single}


def _pick_apart(points: np.ndarray, count: int) -> np.ndarray:
    """Return the first points, in order, that are not near an earlier pick."""
    picks = [points[0]]
    for x in points[1:]:
        if len(picks) == count:
            break
        if min(np.abs(x - other).max() for other in picks) > APART:
            picks.append(x)
    return np.array(picks)


def alternating(n: int, x: ArrayLike = (1.0,), C: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return n times the point x, with labels C, -C, C, ... (kons section 6).

    Examples
    --------
    >>> X, y = okl.adversary.alternating(3)
    >>> y
    array([ 1., -1.,  1.])
    """
    n, C = checks.require_count("n", n, 1), checks.require_positive("C", C)
    return np.repeat(inputs.as_point(x), n, axis=0), np.where(np.arange(n) % 2, -C, C)


def sorted_by(X: ArrayLike, y: ArrayLike, column: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream sorted by one input (-1: by label), so that each round extrapolates.

    Examples
    --------
    >>> X, y = okl.adversary.sorted_by([[2.0], [1.0]], [1.0, -1.0])
    >>> y
    array([-1.,  1.])
    """
    X = inputs.as_inputs(X)
    y = inputs.as_labels(y, len(X))
    column = checks.require_count("column", column, -1)
    checks.require(column < X.shape[1], "column", column, f"less than {X.shape[1]}")
    order = np.argsort(y if column == -1 else X[:, column], kind="stable")
    return X[order], y[order]


class RKHSFunction(NamedTuple):
    """A function f = sum_j coefs_j k(centers_j, .) of an RKHS and its norm; call it on X (n, d)."""

    kernel: Kernel
    centers: np.ndarray
    coefs: np.ndarray
    norm: float

    def __call__(self, X: ArrayLike) -> np.ndarray:
        """Return f(x) for the rows of X."""
        return self.kernel(X, self.centers) @ self.coefs

    def __repr__(self) -> str:
        return repr_fields(self, kernel=self.kernel, centers=len(self.coefs), norm=self.norm)


def rkhs_function(
    kernel: Kernel, d: int, norm: float = 1.0, centers: int = 20, seed: int = 0
) -> RKHSFunction:
    """Return a random function of an RKHS with a given norm and centers in [-1, 1]^d.

    Examples
    --------
    >>> f = okl.adversary.rkhs_function(okl.Gaussian(1.0), d=2, norm=3.0)
    >>> f([[0.0, 0.0]]).shape, f.norm
    ((1,), 3.0)
    """
    check_kernel("kernel", kernel)
    d, centers = checks.require_count("d", d, 1), checks.require_count("centers", centers, 1)
    norm = checks.require_positive("norm", norm)
    rng = np.random.default_rng(checks.require_seed("seed", seed))
    C = rng.uniform(-1.0, 1.0, (centers, d))
    a = rng.standard_normal(centers)
    a *= norm / np.sqrt(a @ kernel(C) @ a)
    return RKHSFunction(kernel, C, a, float(norm))
