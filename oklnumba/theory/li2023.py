"""Bounds of Li and Liao 2023 (pomdr): POMD, POMDR, AOGD-ALD and the size of an ALD dictionary."""

from functools import partial
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import require_count
from oklnumba.theory.arguments import checks_arguments
from oklnumba.theory.dimension import kernel_alignment
from oklnumba.theory.matrix import EPS, square_root


@checks_arguments(budget=partial(require_count, least=2))
def pomdr_bound(
    kernel: Any, X: ArrayLike, y: ArrayLike, radius: float, budget: int | None = None
) -> float:
    """Return the regret bound of POMDR against every |f| <= U (pomdr Corollary 1, errata 38, 62).

    6 U sqrt(A_T + 2 D) + 9 U sqrt(D), with the kernel alignment A_T and D = max k(x, x). For runs
    with removals pass ``budget`` B: it adds 6 U sqrt(2 T (A_T + 2 D) / B) + 6 sqrt(3) U sqrt(D) T /
    B. U is the ``radius``. For hinge loss and learners with zeta = ald_scale = rate_scale = 1 and a
    horizon.

    Remarks
    -------
    The last term, linear in T / B, is not in the paper, whose learning rate looks ahead. With 3 D
    in its place, as in POMDR, some streams need it (errata 62). ``pomdr_data_bound`` is sharper,
    and needs a run.

    Examples
    --------
    >>> round(okl.theory.pomdr_bound(okl.Gaussian(), [[0.0], [0.0]], [1.0, 1.0], radius=1.0), 6)
    17.485281
    """
    X = inputs.as_inputs(X)
    A = max(kernel_alignment(kernel, X, y), 0.0)
    D = float(kernel.diag(X).max())
    bound = 6.0 * radius * sqrt(A + 2.0 * D) + 9.0 * radius * sqrt(D)
    if budget is None:
        return bound
    T = len(X)
    bound += 6.0 * radius * sqrt(2.0 * T * (A + 2.0 * D) / budget)
    return bound + 6.0 * sqrt(3.0) * radius * sqrt(D) * T / budget


@checks_arguments(removals=partial(require_count, least=0))
def pomdr_data_bound(
    alignment: float, radius: float, removals: int = 0, largest: float = 1.0
) -> float:
    """Return the regret bound of a run of POMD or POMDR by the learner's diary (pomdr Theorem 2).

    3 U sqrt(S + 3 D) + (1 + 1 / sqrt(3)) U sqrt(D) with S the sum of delta_t, against every
    |f| <= U; the paper's 3 U sqrt(S) + 9 U is this rounded up (D = 1). A run with N removals has
    N + 1 learning rates, hence 3 U sqrt((N + 1) (S + 3 (N + 1) D)) in place of the first term. For
    hinge loss and learners with zeta = 1, ald_scale = 1, rate_scale = 1 and the number of rounds as
    their horizon. ``alignment`` S and ``removals`` N are in ``learner.diary``; ``radius`` is U,
    ``largest`` D, the largest k(x, x): 1 for kernels of unit diagonal.

    Remarks
    -------
    Errata 28 (the 3 D), 39 (the 1 / sqrt(3)) and 62 (the 3 D of the rates after removals).

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> y = np.sign(X[:, 0])
    >>> learner = okl.POMD(okl.Gaussian(1.0), radius=5.0, horizon=500).partial_fit(X, y)
    >>> bound = okl.theory.pomdr_data_bound(learner.diary.alignment, radius=5.0)
    >>> bool(bound < okl.theory.pomdr_bound(okl.Gaussian(1.0), X, y, radius=5.0))
    True
    """
    pieces = removals + 1
    rates = 3.0 * sqrt(pieces * (alignment + 3.0 * pieces * largest))
    return radius * (rates + (1.0 + 1.0 / sqrt(3.0)) * sqrt(largest))


@checks_arguments(loss="[0, inf)", threshold="[0, inf)")
def aogd_bound(loss: float, radius: float, threshold: float, n: int, largest: float = 1.0) -> float:
    """Return a sqrt(loss) + a^2, a = 2 U (3 sqrt(D) + threshold sqrt(n)): AOGD-ALD's regret bound.

    Against every |f| <= U of this squared ``loss`` over n rounds, D = ``largest`` the largest k(x,
    x), U = ``radius``. Of the order of sqrt(loss) for a threshold of order 1 / sqrt(n) (Li and Liao
    2023, ICML). Constants and proof are ours.

    Remarks
    -------
    l_t(f_t) - l_t(f) <= g_t <v_t, f_t - f> - g_t <k(x_t, .) - v_t, f>, as f_t is in the span. The
    first terms sum up to at most (2 U)^2 sqrt(G) / (2 U) + U sqrt(G) = 3 U sqrt(G), G = sum g_t^2
    |v_t|^2, the others to U sum |g_t| far_t. With g_t^2 = 4 l_t, L = sum l_t satisfies L - loss <=
    a sqrt(L), so that sqrt(L) <= a + sqrt(loss).

    Examples
    --------
    >>> okl.theory.aogd_bound(4.0, radius=1.0, threshold=0.1, n=100)
    80.0
    """
    a = 2.0 * radius * (3.0 * sqrt(largest) + threshold * sqrt(n))
    return a * sqrt(loss) + a**2


class AldBudget(NamedTuple):
    """Bounds on the size of an ALD dictionary.

    Attributes
    ----------
    size : int
        The sharpest: the largest k with k(x_1, x_1) alpha^(k-1) <= the product of the k leading
        eigenvalues. It needs no assumption on the decay.
    exponential : float
        2 ln(R_0 / alpha) / ln(1 / r), eigenvalues lambda_i <= R_0 r^i.
    polynomial : float
        e (R_0 / alpha)^(1/p) + 1, eigenvalues lambda_i <= R_0 i^-p.
    r, p : float
        The fitted decays, those with the smallest bound.
    """

    size: int
    exponential: float
    polynomial: float
    r: float
    p: float


def _bound_eigenvalues(kernel: Any, X: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of the kernel matrix, largest first, none too small by rounding.

    They are squared singular values of the pivoted Cholesky factor, accurate far below eps times
    the largest eigenvalue, plus a bound on the trace of K minus its factor.
    """
    n, largest = len(X), float(kernel.diag(X).max())
    F = square_root(kernel, X, tol=EPS * largest)
    values = np.zeros(n)
    values[: F.shape[1]] = scipy.linalg.svdvals(F) ** 2
    return np.maximum(values + n * EPS * largest, 1e-300)


@checks_arguments()
def ald_budget_bound(kernel: Any, X: ArrayLike, alpha: float) -> AldBudget:
    """Return bounds on the size of a dictionary that ALD keeps (pomdr Theorem 1, errata 40).

    For any learner that adds a point of X if its squared distance to the span is more than alpha,
    in any order; for POMD alpha is D T^(-2 zeta) times the square of ald_scale. The decays are
    fitted to the eigenvalues of the kernel matrix that the proof uses, those before the sharpest
    bound. O(n^3) time.

    Remarks
    -------
    With constants C_1 = C_2 = 1, which suffice.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> bound = okl.theory.ald_budget_bound(okl.Gaussian(1.0), X, alpha=1e-4)
    >>> bool(bound.size <= bound.exponential < 300)
    True
    """
    X = inputs.as_inputs(X)
    logs = np.log(_bound_eigenvalues(kernel, X) / alpha)
    # (k - 1) ln alpha + ln k(x, x) <= sum of the logs, for whichever x came first.
    least = float(kernel.diag(X).min())
    slack = np.cumsum(logs) - log(max(least, 1e-300) / alpha)
    size = max(int(np.flatnonzero(slack >= 0.0)[-1]) + 1, 1) if (slack >= 0.0).any() else 1
    logs, i = logs[: max(size - 1, 1)], np.arange(1, max(size, 2))
    s = np.geomspace(1e-4, 50.0, 2000)  # ln(1 / r)
    exponential = 2.0 * (logs / s[:, None] + i).max(axis=1)
    p = np.geomspace(1.0, 200.0, 2000)
    polynomial = np.exp((logs / p[:, None] + np.log(i)).max(axis=1) + 1.0) + 1.0
    j, k = int(np.argmin(exponential)), int(np.argmin(polynomial))
    fitted = exponential[j], polynomial[k], np.exp(-s[j]), p[k]
    return AldBudget(size, *map(float, fitted))
