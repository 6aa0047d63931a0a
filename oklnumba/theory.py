"""What the theory says: effective dimension, log det, comparators, regret and bounds."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from oklnumba import checks, losses
from oklnumba.checks import require, require_positive
from oklnumba.kernels import kernel_code


def _factor(kernel: Any, X: ArrayLike, lam: float) -> np.ndarray:
    """Return the lower Cholesky factor of K + lam I, in the memory of K."""
    require_positive("lam", lam)
    kernel_code(kernel)
    return _cholesky(kernel(X), lam)


def _cholesky(K: np.ndarray, lam: float) -> np.ndarray:
    """Return the lower Cholesky factor of K + lam I, in the memory of K."""
    K[np.diag_indices_from(K)] += lam
    try:
        return scipy.linalg.cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            f"K + lam I is not positive definite to double precision at lam = {lam!r}; raise lam"
        ) from None


def _inverse_diagonal(L: np.ndarray) -> np.ndarray:
    """Return the diagonal of (L L')^-1, in the memory of L (zero above its diagonal)."""
    inverse, _ = scipy.linalg.lapack.dtrtri(L, lower=1, overwrite_c=1)
    return np.einsum("ij,ij->j", inverse, inverse)


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
    return float(leverage_scores(kernel, X, lam).sum())


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
    return 1.0 - alpha * _inverse_diagonal(_factor(kernel, X, alpha))


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
    return float(kernel.diag(X).sum() - y @ kernel(X) @ y / len(X))


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


def _curved(loss: str, C: float, alpha: float, norm: float) -> tuple[float, float]:
    """Check the arguments that KONS's bounds share; return curvature and Lipschitz constant."""
    require_positive("C", C)
    require_positive("alpha", alpha)
    require(checks.number(norm) and norm >= 0, "norm", norm, "a number >= 0")
    loss = losses.get(loss)
    return loss.curvature(C), loss.lipschitz(C)


def _newton_dimension(kernel: Any, X: ArrayLike, level: float) -> float:
    """Return d_eff(level) (1 + log(1 + tr K / level)), above log det(K / level + I) (Lemma 3)."""
    trace = float(kernel.diag(X).sum())
    return effective_dimension(kernel, X, level) * (1.0 + log(1.0 + trace / level))


def kons_bound(
    kernel: Any,
    X: ArrayLike,
    loss: str = "squared",
    C: float = 1.0,
    alpha: float = 1.0,
    norm: float = 0.0,
) -> float:
    """Return the regret bound of KONS (kons Theorem 1, both cases).

    Against every f with |f(x_t)| <= C on the stream. With L the largest slope of the loss on [-C,
    C] and sigma its curvature there:

    - sigma > 0 and eta = sigma (KONS's default): alpha |f|^2 + d_eff(alpha / (sigma L^2)) (1 +
      log(1 + sigma L^2 tr K / alpha)) / sigma;
    - sigma = 0 and eta_t = 1 / (L C sqrt(t)): alpha |f|^2 + L C sqrt(n) log det(I + D K D / alpha)
      + 4 C L sum_t 1 / sqrt(t), with D_t^2 = L / (C sqrt(t)).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        In the order of the stream.
    loss : str
        One of ``losses.LOSSES``; squared: labels in [-C, C].
    C : float > 0
    alpha : float > 0
    norm : float >= 0
        |f| of the competitor.

    Remarks
    -------
    Errata 11: the logarithm printed in the first case can be negative. The second is the theorem's
    general form before its last step, which wants the effective dimension beforehand; the learners
    of this package refuse losses with sigma = 0.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> X = [[1.0], [1.0], [-1.0]]
    >>> round(okl.theory.kons_bound(okl.Linear(), X, norm=1.0), 3)
    21.201
    >>> round(okl.theory.kons_bound(okl.Linear(), X, loss="hinge", norm=1.0), 3)
    12.198
    """
    sigma, L = _curved(loss, C, alpha, norm)
    X = checks.as_inputs(X)
    if sigma > 0.0:
        return alpha * norm**2 + _newton_dimension(kernel, X, alpha / (sigma * L**2)) / sigma
    kernel_code(kernel)
    roots = np.sqrt(np.arange(1.0, len(X) + 1.0))
    K = kernel(X)
    scale = np.sqrt(L / (C * roots))
    K *= scale
    K *= scale[:, None]
    det = float(2.0 * np.log(np.diag(_cholesky(K, alpha))).sum() - len(X) * log(alpha))
    return alpha * norm**2 + L * C * sqrt(len(X)) * det + 4.0 * C * L * float((1.0 / roots).sum())


def sketched_kons_bound(
    kernel: Any,
    X: ArrayLike,
    gamma: float,
    loss: str = "squared",
    C: float = 1.0,
    alpha: float = 1.0,
    beta: float = 1.0,
    tau_min: float = 0.0,
    norm: float = 0.0,
) -> float:
    """Return the regret bound of Sketched-KONS (kons Theorem 3).

    alpha |f|^2 + d_eff(alpha / (sigma L^2)) (1 + log(1 + sigma L^2 tr K / alpha)) / (sigma
    max(gamma, beta tau_min)), with high probability where KORS is accurate (beta >= 3 log(n /
    delta) / eps^2, eps <= 1/2), against every f with |f(x_t)| <= C on the stream.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    gamma : float in (0, 1]
    loss : str
        With curvature; squared: labels in [-C, C].
    C : float > 0
    alpha : float > 0
    beta : float > 0
        Oversampling of KORS.
    tau_min : float in [0, 1)
        Least leverage score of the rescaled points, known only after the run; 0 is safe.
    norm : float >= 0
        |f| of the competitor.

    Remarks
    -------
    Errata 10 and 11. The proof has a further 1 / (1 - eps), which the factor 2 that it wastes
    elsewhere (errata 10) covers for eps <= 1/2.

    Raises
    ------
    ValueError
        If an argument is not valid, or the loss has no curvature.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.sketched_kons_bound(okl.Linear(), [[1.0], [1.0], [-1.0]], gamma=0.5), 3)
    40.401
    """
    sigma, L = _curved(loss, C, alpha, norm)
    require(sigma > 0.0, "loss", loss, "one with curvature on [-C, C], such as 'squared'")
    require(checks.number(gamma) and 0 < gamma <= 1, "gamma", gamma, "a number in (0, 1]")
    require_positive("beta", beta)
    require(checks.number(tau_min) and 0 <= tau_min < 1, "tau_min", tau_min, "a number in [0, 1)")
    X = checks.as_inputs(X)
    dimension = _newton_dimension(kernel, X, alpha / (sigma * L**2))
    return alpha * norm**2 + dimension / (sigma * max(gamma, beta * tau_min))


def kors_size_bound(
    kernel: Any, X: ArrayLike, alpha: float = 1.0, beta: float = 1.0, eps: float = 0.5
) -> float:
    """Return 3 rho beta d_onl(alpha), rho = (1 + eps) / (1 - eps): KORS's size (kons Theorem 2).

    With high probability, for beta >= 3 log(n / delta) / eps^2. The dictionary is never larger than
    the stream, so small streams do not test it.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        In the order of the stream.
    alpha : float > 0
    beta : float > 0
    eps : float in (0, 1)

    Remarks
    -------
    Errata 12: statement and proof have different constants; this is the statement's.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.kors_size_bound(okl.Linear(), [[1.0], [1.0]], alpha=2.0), 6)
    5.25
    """
    require_positive("beta", beta)
    require(checks.number(eps) and 0 < eps < 1, "eps", eps, "a number in (0, 1)")
    rho = (1.0 + eps) / (1.0 - eps)
    return 3.0 * rho * beta * online_effective_dimension(kernel, X, alpha)


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
