"""What the theory says: effective dimension, log det, comparators, regret and bounds."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from oklnumba import checks
from oklnumba.checks import require, require_positive
from oklnumba.kernels import kernel_code

BLOCK = 512  # rows and columns of a kernel matrix that is not needed whole: they fit a cache


def _factor(kernel: Any, X: ArrayLike, lam: float) -> np.ndarray:
    """Return the lower Cholesky factor of K + lam I, in the memory of K."""
    require_positive("lam", lam)
    kernel_code(kernel)
    K = kernel(X)
    K[np.diag_indices_from(K)] += lam
    try:
        return scipy.linalg.cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            f"K + lam I is not positive definite to double precision at lam = {lam!r}; raise lam"
        ) from None


def log_det(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return log det(K / lam + I) of the kernel matrix K of X.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.log_det(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.693147
    """
    L = _factor(kernel, X, lam)
    return float(np.log(np.diag(L) ** 2 / lam).sum())


def effective_dimension(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return tr K (K + lam I)^-1, the effective dimension of X at regularisation lam.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.effective_dimension(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.5
    """
    L = _factor(kernel, X, lam)
    inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1, overwrite_c=1)
    return float(len(L) - lam * np.square(np.tril(inverse)).sum())


def leverage_scores(kernel: Any, X: ArrayLike, alpha: float) -> np.ndarray:
    """Return the ridge leverage scores, the diagonal of K (K + alpha I)^-1 (kons Definition 2).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    alpha : float > 0

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1); their sum is the effective dimension.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.leverage_scores(okl.Linear(), [[1.0], [1.0]], 2.0).round(6)
    array([0.25, 0.25])
    """
    require_positive("alpha", alpha)
    L = _factor(kernel, X, alpha)
    inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1, overwrite_c=1)
    return 1.0 - alpha * np.square(np.tril(inverse)).sum(axis=0)


def online_effective_dimension(kernel: Any, X: ArrayLike, alpha: float) -> float:
    """Return the sum over t of the leverage score of x_t among x_1, ..., x_t (kons section 2).

    Between the effective dimension and log det(K / alpha + I).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        In the order of the stream, on which it depends.
    alpha : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.online_effective_dimension(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.583333
    """
    require_positive("alpha", alpha)
    L = _factor(kernel, X, alpha)
    return float((1.0 - alpha / np.diag(L) ** 2).sum())


def kernel_alignment(kernel: Any, X: ArrayLike, y: ArrayLike) -> float:
    """Return A_T = sum k(x_t, x_t) - y' K y / T, small for a kernel that suits the labels (pomdr).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
        Labels -1 and +1.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.kernel_alignment(okl.Linear(), [[1.0], [-1.0]], [1.0, -1.0])
    0.0
    """
    kernel_code(kernel)
    X = checks.as_inputs(X)
    y = checks.as_labels(y, len(X), classes=True)
    polarization = 0.0
    parts = [slice(start, start + BLOCK) for start in range(0, len(X), BLOCK)]
    for i, rows in enumerate(parts):  # the whole matrix may not fit in memory
        polarization += y[rows] @ kernel(X[rows]) @ y[rows]
        for columns in parts[i + 1 :]:
            polarization += 2.0 * (y[rows] @ kernel(X[rows], X[columns]) @ y[columns])
    return float(kernel.diag(X).sum() - polarization / len(X))


class Comparator(NamedTuple):
    """The best penalised function in hindsight.

    Attributes
    ----------
    loss : float
        Its cumulative squared loss sum (y - f(x))^2.
    norm : float
        Its norm |f| in the RKHS.
    predictions : ndarray of shape (n,)
        Its values f(x_i).
    """

    loss: float
    norm: float
    predictions: np.ndarray


def comparator(kernel: Any, X: ArrayLike, y: ArrayLike, lam: float) -> Comparator:
    """Return argmin_f sum (y - f(x))^2 + lam |f|^2 over the RKHS: loss, norm and predictions.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> best = okl.theory.comparator(okl.Linear(), [[1.0], [1.0]], [1.0, 3.0], 2.0)
    >>> round(best.loss, 6), round(best.norm, 6)
    (4.0, 1.0)
    """
    X = checks.as_inputs(X)
    y = checks.as_labels(y, len(X))
    L = _factor(kernel, X, lam)
    a = scipy.linalg.cho_solve((L, True), y)
    fitted = y - lam * a
    return Comparator(float(np.square(lam * a).sum()), float(np.sqrt(max(a @ fitted, 0.0))), fitted)


def regret(
    predictions: ArrayLike, kernel: Any, X: ArrayLike, y: ArrayLike, lam: float
) -> np.ndarray:
    """Return the regret after each round against the best penalised function of that prefix.

    The penalised loss of the best function on rounds 1..t is lam sum_{s<=t} u_s^2 with u = L^-1 y
    and L L' = K + lam I: one factor serves every prefix.

    Parameters
    ----------
    predictions : array_like of shape (n,)
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    lam : float > 0

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.regret([0.0, 0.0], okl.Linear(), [[1.0], [1.0]], [1.0, 3.0], 2.0).round(6)
    array([0.333333, 4.      ])
    """
    X = checks.as_inputs(X)
    y = checks.as_labels(y, len(X))
    predictions = checks.as_labels(predictions, len(X))
    L = _factor(kernel, X, lam)
    u = scipy.linalg.solve_triangular(L, y, lower=True, check_finite=False)
    return np.cumsum((y - predictions) ** 2) - lam * np.cumsum(u**2)


def awv_bound(kernel: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0) -> float:
    """Return lam |f|^2 + B^2 log det(I + K / lam), Kernel-AWV's bound (pkawv Prop. 1).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.awv_bound(okl.Linear(), [[1.0], [1.0]], lam=2.0), 6)
    0.693147
    """
    require(checks.number(B) and B >= 0, "B", B, "a number >= 0")
    require(checks.number(norm) and norm >= 0, "norm", norm, "a number >= 0")
    return lam * norm**2 + B**2 * log_det(kernel, X, lam)


def projection_gap(kernel: Any, features: Any, X: ArrayLike) -> float:
    """Return mu = lambda_max(K - F F'), the energy of the inputs outside the features' span.

    Parameters
    ----------
    kernel : Kernel
    features : TaylorFeatures or NystromFeatures
        Coordinates in an orthonormal basis of a subspace of the kernel's RKHS.
    X : array_like of shape (n, d)

    Examples
    --------
    >>> import oklnumba as okl
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0], [1.0]], kernel)
    >>> abs(okl.theory.projection_gap(kernel, features, [[0.0], [1.0]])) < 1e-12
    True
    """
    F = features.transform(X)
    gap = kernel(X) - F @ F.T
    last = len(gap) - 1
    top = scipy.linalg.eigh(gap, eigvals_only=True, subset_by_index=[last, last])
    return max(float(top[0]), 0.0)


def pkawv_bound(
    kernel: Any, features: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0
) -> float:
    """Return the regret bound of PKAWV on fixed features against the whole RKHS (pkawv Theorem 3).

    lam |f|^2 + B^2 log det(I + K / lam) + (mu + lam) n mu B^2 / lam^2 with mu of
    ``projection_gap``.

    Parameters
    ----------
    kernel : Kernel
    features : TaylorFeatures or NystromFeatures
    X : array_like of shape (n, d)
    lam : float > 0
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0]], kernel)
    >>> round(okl.theory.pkawv_bound(kernel, features, [[0.0], [0.0]], lam=2.0), 6)
    0.693147
    """
    mu = projection_gap(kernel, features, X)
    n = len(checks.as_inputs(X))
    return awv_bound(kernel, X, lam, B, norm) + (mu + lam) * n * mu * B**2 / lam**2


def taylor_degree(n: int, lam: float, radius: float, sigma: float) -> int:
    """Return the degree M = ceil(max(8 R^2 / sigma^2, 2 log(n / min(lam, 1)))) of pkawv Theorem 4.

    With Taylor features of this degree PKAWV has a regret of at most lam |f|^2 + 1.5 B^2 log det(I
    + K / lam). In practice far smaller degrees do: see ``features.captured``.

    Parameters
    ----------
    n : int >= 1
        Rounds.
    lam : float > 0
    radius : float >= 0
        Largest |x - center|.
    sigma : float > 0
        Width of the Gaussian kernel.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.taylor_degree(n=1000, lam=1.0, radius=1.0, sigma=1.0)
    14
    """
    checks.require_count("n", n, 1)
    require_positive("lam", lam)
    require(checks.number(radius) and radius >= 0, "radius", radius, "a number >= 0")
    checks.require_width(sigma)
    return ceil(max(8.0 * (radius / sigma) ** 2, 2.0 * log(n / min(lam, 1.0))))


def pomdr_bound(
    kernel: Any, X: ArrayLike, y: ArrayLike, radius: float, budget: int | None = None
) -> float:
    """Return the regret bound of POMDR against every |f| <= U (pomdr Corollary 1, errata 38).

    6 U sqrt(A_T + 2 D) + 9 U sqrt(D), with the kernel alignment A_T and D = max k(x, x); with
    ``budget`` B, for runs with removals, 6 U sqrt(2 T (A_T + 2 D) / B) more. For hinge loss and
    learners with zeta = 1, ald_scale = 1 and rate_scale = 1.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
        Labels -1 and +1.
    radius : float > 0
        U.
    budget : int >= 2, optional
        B; None: no removals (the dictionary stayed small, or POMD).

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.pomdr_bound(okl.Gaussian(), [[0.0], [0.0]], [1.0, 1.0], radius=1.0), 6)
    17.485281
    """
    require_positive("radius", radius)
    A = max(kernel_alignment(kernel, X, y), 0.0)
    D = float(kernel.diag(X).max())
    bound = 6.0 * radius * sqrt(A + 2.0 * D) + 9.0 * radius * sqrt(D)
    if budget is None:
        return bound
    checks.require_count("budget", budget, 2)
    T = len(checks.as_inputs(X))
    return bound + 6.0 * radius * sqrt(2.0 * T * (A + 2.0 * D) / budget)


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


def _eigenvalue_bounds(K: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of a kernel matrix, largest first, none too small by rounding.

    As squared singular values of the pivoted Cholesky factor, to which what the factor leaves of
    the trace is added: accurate far below eps times the largest eigenvalue.
    """
    n, largest = len(K), float(K.diagonal().max())
    eps = np.finfo(float).eps
    factor, _, rank, _ = scipy.linalg.lapack.dpstrf(K, lower=1, tol=eps * largest, overwrite_a=1)
    values = np.zeros(n)
    values[:rank] = scipy.linalg.svdvals(np.tril(factor)[:, :rank]) ** 2
    return np.maximum(values + n * eps * largest, 1e-300)


def ald_budget_bound(kernel: Any, X: ArrayLike, alpha: float) -> AldBudget:
    """Return bounds on the size of a dictionary that ALD keeps (pomdr Theorem 1, errata 40).

    For any learner that lets a point of X join where its squared distance to the span is more than
    alpha, in any order. The decays are fitted to the eigenvalues of the kernel matrix that the
    proof uses, those before the sharpest bound; O(n^3) time.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    alpha : float > 0
        The squared threshold: D T^(-2 zeta) times the square of ald_scale.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Remarks
    -------
    With constants C_1 = C_2 = 1, which suffice.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> bound = okl.theory.ald_budget_bound(okl.Gaussian(1.0), X, alpha=1e-4)
    >>> bool(bound.size <= bound.exponential < 300)
    True
    """
    require_positive("alpha", alpha)
    kernel_code(kernel)
    X = checks.as_inputs(X)
    logs = np.log(_eigenvalue_bounds(kernel(X)) / alpha)
    # (k - 1) ln alpha + ln k(x, x) <= sum of the logs, for whichever x came first.
    least = float(kernel.diag(X).min())
    slack = np.cumsum(logs) - log(max(least, 1e-300) / alpha)
    size = max(int(np.flatnonzero(slack >= 0.0)[-1]) + 1, 1) if (slack >= 0.0).any() else 1
    logs, i = logs[: max(size - 1, 1)], np.arange(1, max(size, 2))
    s = np.geomspace(1e-4, 50.0, 2000)  # ln(1 / r)
    exponential = 2.0 * (logs / s[:, None] + i).max(axis=1)
    p = np.geomspace(1.0, 200.0, 2000)
    polynomial = np.exp((logs / p[:, None] + np.log(i)).max(axis=1) + 1.0) + 1.0
    best_s, best_p = int(np.argmin(exponential)), int(np.argmin(polynomial))
    return AldBudget(
        size,
        float(exponential[best_s]),
        float(polynomial[best_p]),
        float(np.exp(-s[best_s])),
        float(p[best_p]),
    )
