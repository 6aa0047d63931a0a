"""What the theory says: effective dimension, log det, comparators, regret and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, e, inf, log, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy
import scipy.linalg
from numpy.typing import ArrayLike

from oklnumba import checks, hotloops, losses, oco
from oklnumba.checks import require, require_nonnegative, require_positive
from oklnumba.kernels import Gaussian, kernel_code

BLOCK = 512  # rows and columns of a kernel matrix that is not needed whole: they fit a cache


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


def _quadratic_form(kernel: Any, X: np.ndarray, v: np.ndarray) -> float:
    """Return v' K v, each pair once; the whole matrix may not fit in memory."""
    form = 0.0
    parts = [slice(start, start + BLOCK) for start in range(0, len(X), BLOCK)]
    for i, rows in enumerate(parts):
        form += v[rows] @ kernel(X[rows]) @ v[rows]
        for columns in parts[i + 1 :]:
            form += 2.0 * (v[rows] @ kernel(X[rows], X[columns]) @ v[columns])
    return float(form)


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
    return float(kernel.diag(X).sum() - _quadratic_form(kernel, X, y) / len(X))


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


EXACT_ROUNDS = 20_000  # of an exact comparator: a kernel matrix of 3.2 GB
RESTARTS = 10  # of an iterative comparator
GAP = 1e-6  # largest share of the objective by which an iterative comparator may miss the best


def comparator(
    kernel: Any,
    X: ArrayLike,
    y: ArrayLike,
    lam: float,
    loss: str = "squared",
    features: Any = None,
) -> Comparator:
    """Return argmin_f sum loss(f(x), y) + lam |f|^2 over the RKHS: loss, norm and predictions.

    Squared loss: one Cholesky factor. Other losses: SciPy's L-BFGS-B, on the coefficients where the
    loss is smooth (logistic, squared hinge), on the dual where it is not (hinge, absolute); strong
    convexity or the duality gap proves the result.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        At most EXACT_ROUNDS = 20,000 rows, or with ``features``.
    y : array_like of shape (n,)
    lam : float > 0
    loss : {"squared", "absolute", "hinge", "squared_hinge", "logistic"}
    features : TaylorFeatures or NystromFeatures, optional
        For longer streams: the argmin over their span instead, in O(n r^2). ``comparator_gap`` says
        how far from that over the RKHS it can be.

    Raises
    ------
    ValueError
        If an argument is not valid, or the stream is too long without features.
    FloatingPointError
        If the solver is not within GAP = 1e-6 of the best (lam too small).

    Examples
    --------
    >>> import oklnumba as okl
    >>> best = okl.theory.comparator(okl.Linear(), [[1.0], [1.0]], [1.0, 3.0], 2.0)
    >>> round(best.loss, 6), round(best.norm, 6)
    (4.0, 1.0)
    >>> best = okl.theory.comparator(okl.Linear(), [[1.0], [2.0]], [1.0, 1.0], 1.0, loss="hinge")
    >>> round(best.loss, 6), round(best.norm, 6)
    (0.5, 0.5)
    """
    require_positive("lam", lam)
    kernel_code(kernel)
    rule = _with_comparator(loss)
    X = checks.as_inputs(X)
    y = checks.as_labels(y, len(X), rule.classes)
    if features is not None:
        return _best_weights(features.transform(X), y, float(lam), rule)[0]
    if len(X) > EXACT_ROUNDS:
        raise ValueError(
            f"X has {len(X)} rows, too many for an exact comparator (at most {EXACT_ROUNDS}); pass "
            "features, such as KORS(kernel).partial_fit(X).features()"
        )
    if loss != "squared":
        return _best_weights(_square_root(kernel(X)), y, float(lam), rule)[0]
    L = _factor(kernel, X, lam)
    a = scipy.linalg.cho_solve((L, True), y)
    fitted = y - lam * a
    return Comparator(float(np.square(lam * a).sum()), float(np.sqrt(max(a @ fitted, 0.0))), fitted)


def _with_comparator(name: str) -> losses.Loss:
    """Return a loss that ``comparator`` has a solver for."""
    solved = ("squared", "absolute", "hinge", "squared_hinge", "logistic")
    require(name in solved, "loss", name, f"one of {', '.join(solved)}")
    return losses.get(name)


def norm_ball_comparator(
    kernel: Any, X: ArrayLike, y: ArrayLike, radius: float, loss: str = "hinge"
) -> Comparator:
    """Return argmin of sum loss(f(x), y) over |f| <= radius: loss, norm and predictions.

    That of ``comparator`` for the lam at which its norm is ``radius``, found by SciPy's brentq to a
    relative 1e-6 of the norm; the norm never exceeds ``radius``. Where no lam >= 1e-6 reaches it,
    or a smaller norm is enough for a loss of 1e-6, that function.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    radius : float > 0
    loss : {"squared", "absolute", "hinge", "squared_hinge", "logistic"}

    Raises
    ------
    ValueError
        If an argument is not valid.
    FloatingPointError
        If the solver is not within GAP = 1e-6 of the best at a lam that a large radius asks for.

    Examples
    --------
    >>> import oklnumba as okl
    >>> best = okl.theory.norm_ball_comparator(okl.Linear(), [[1.0], [2.0]], [1.0, 1.0], 0.5)
    >>> round(best.loss, 4), round(best.norm, 4)
    (0.5, 0.5)
    """
    require_positive("radius", radius)
    kernel_code(kernel)
    rule = _with_comparator(loss)
    X = checks.as_inputs(X)
    y = checks.as_labels(y, len(X), rule.classes)
    F = _square_root(kernel(X))
    found: dict[float, Comparator] = {}
    start: list[np.ndarray | None] = [None]

    def excess(log_lam: float) -> float:
        try:
            best, start[0] = _best_weights(F, y, 10.0**log_lam, rule, start[0])
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; for a norm ball: lower radius={radius!r}") from None
        found[log_lam] = best
        return best.norm / radius - 1.0

    low = high = 0.0
    if excess(0.0) > 0.0:
        while excess(high) > 0.0:
            low, high = high, high + 1.0
    else:
        while excess(low) <= 0.0:
            if low <= -6.0 or found[low].loss <= GAP:
                return found[low]
            low, high = low - 1.0, low
    root = scipy.optimize.brentq(excess, low, high, xtol=1e-7, rtol=1e-7)
    best = found[root]
    if best.norm <= radius:
        return best
    return min((b for b in found.values() if b.norm <= radius), key=lambda b: b.loss)


def _square_root(K: np.ndarray, tol: float = -1.0) -> np.ndarray:
    """Return F (n, r) with F F' = K to rounding, by a pivoted Cholesky factor; K is spoilt.

    Pivots of ``tol`` or less are left out; negative: LAPACK's own, n eps max(diag).
    """
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(K.T, lower=1, tol=tol, overwrite_a=1)
    F = np.empty((len(K), rank))
    F[pivots - 1] = np.tril(factor[:, :rank])
    return F


def _best_weights(
    F: np.ndarray, y: np.ndarray, lam: float, loss: losses.Loss, start: np.ndarray | None = None
) -> tuple[Comparator, np.ndarray]:
    """Return the best penalised function of the span of features, and where the solver ended."""
    if loss.name == "squared":
        A = F.T @ F
        A[np.diag_indices_from(A)] += lam
        w = scipy.linalg.solve(A, F.T @ y, assume_a="pos")
        fitted = F @ w
        return Comparator(float(np.square(y - fitted).sum()), float(np.linalg.norm(w)), fitted), w
    solve = _best_dual if loss.name in ("hinge", "absolute") else _best_primal
    solution = start
    for _ in range(RESTARTS):  # with a fresh memory L-BFGS often goes on where it had stopped
        w, solution, gap = solve(F, y, lam, loss, solution)
        fitted = F @ w
        best = Comparator(float(loss.value(fitted, y).sum()), float(np.linalg.norm(w)), fitted)
        if gap <= GAP * (1.0 + best.loss + lam * best.norm**2):
            break
    else:
        raise FloatingPointError(
            f"the {loss.name} comparator may be {gap:.2g} above the best, whose objective is about "
            f"{best.loss + lam * best.norm**2:.4g}; raise lam (now {lam:g}) or scale the inputs"
        )
    return best, solution


def _best_primal(
    F: np.ndarray, y: np.ndarray, lam: float, loss: losses.Loss, start: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Minimise a smooth loss over the weights; return weights, solution and a bound on the gap."""
    slopes = np.empty(len(y))

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        fitted = F @ w
        hotloops.loss_derivatives(loss.code, fitted, y, slopes)
        value = float(loss.value(fitted, y).sum()) + lam * float(w @ w)
        return value, F.T @ slopes + 2.0 * lam * w

    start = np.zeros(F.shape[1]) if start is None else start
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    w = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    gradient = objective(w)[1]
    return w, w, float(gradient @ gradient) / (4.0 * lam)  # strongly convex with modulus 2 lam


def _best_dual(
    F: np.ndarray, y: np.ndarray, lam: float, loss: losses.Loss, start: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Maximise the dual y'a - |F'a|^2 / (4 lam) of hinge or absolute loss; w = F'a / (2 lam).

    Hinge: 0 <= y_i a_i <= 1; absolute: |a_i| <= 1. Return weights, solution and the duality gap.
    """
    hinge = loss.name == "hinge"

    def objective(a: np.ndarray) -> tuple[float, np.ndarray]:
        w = F.T @ a
        return float(w @ w) / (4.0 * lam) - float(y @ a), F @ w / (2.0 * lam) - y

    low = np.minimum(y, 0.0) if hinge else np.full(len(y), -1.0)
    high = np.maximum(y, 0.0) if hinge else np.ones(len(y))
    start = np.zeros(len(y)) if start is None else start
    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 30}
    a = scipy.optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B", options=options,
        bounds=scipy.optimize.Bounds(low, high),
    ).x  # fmt: skip
    w = F.T @ a / (2.0 * lam)
    primal = float(loss.value(F @ w, y).sum()) + lam * float(w @ w)
    return w, a, primal + objective(a)[0]


def comparator_gap(kernel: Any, features: Any, X: ArrayLike, y: ArrayLike, lam: float) -> float:
    """Return how much the best penalised function of a span can lose against that of the RKHS.

    For the squared loss, with r the residuals of the comparator over the span: at most r'(K - F F')
    r / lam, by one pass over all pairs, O(n^2 d) time and O(n) memory.

    Parameters
    ----------
    kernel : Kernel
    features : TaylorFeatures or NystromFeatures
        Coordinates in an orthonormal basis of a subspace of the kernel's RKHS.
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    lam : float > 0

    Returns
    -------
    float
        Bound on (loss + lam |f|^2 over the span) - (the same over the RKHS).

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> kernel, X, y = okl.Gaussian(1.0), [[0.0], [1.0]], [1.0, -1.0]
    >>> features = okl.NystromFeatures([[0.0]], kernel)
    >>> round(okl.theory.comparator_gap(kernel, features, X, y, 1.0), 4)
    0.766
    """
    kernel_code(kernel)
    X = checks.as_inputs(X)
    best = comparator(kernel, X, y, lam, features=features)
    residuals = checks.as_labels(y, len(X)) - best.predictions
    captured = features.transform(X).T @ residuals
    beyond = _quadratic_form(kernel, X, residuals) - float(captured @ captured)
    return max(beyond, 0.0) / lam


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


class RegretCurve(NamedTuple):
    """Regret at some rounds of a run of squared loss, against functions chosen in hindsight.

    Attributes
    ----------
    rounds : ndarray of int, shape (k,)
        Rounds played.
    prefix : ndarray of shape (k,)
        Against the loss of f_t, the best penalised function of the rounds so far.
    prefix_penalised : ndarray of shape (k,)
        Against its loss + lam |f_t|^2.
    final : ndarray of shape (k,)
        Against the loss so far of f_n, the best penalised function of the whole run.
    final_penalised : ndarray of shape (k,)
        Against that loss + lam |f_n|^2.
    """

    rounds: np.ndarray
    prefix: np.ndarray
    prefix_penalised: np.ndarray
    final: np.ndarray
    final_penalised: np.ndarray


def regret_curve(
    predictions: ArrayLike, kernel: Any, X: ArrayLike, y: ArrayLike, lam: float, at: ArrayLike
) -> RegretCurve:
    """Return the regret of forecasts after some rounds, against four comparators in hindsight.

    With L L' = K + lam I and u = L^-1 y, the best function of the first t rounds leaves the
    residuals lam L_t^-T u_t: all of them come from one factor and one solve with a column a round
    asked for.

    Parameters
    ----------
    predictions : array_like of shape (n,)
    kernel : Kernel
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
    lam : float > 0
    at : array_like of int, shape (k,)
        Rounds, from 1 to n, increasing.

    Returns
    -------
    RegretCurve

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> X, y = [[1.0], [1.0]], [1.0, 3.0]
    >>> okl.theory.regret_curve([0.0, 0.0], okl.Linear(), X, y, 2.0, at=[2]).prefix.round(6)
    array([6.])
    """
    X = checks.as_inputs(X)
    y = checks.as_labels(y, len(X))
    predictions = checks.as_labels(predictions, len(X))
    at = np.asarray(at)
    valid = at.ndim == 1 and at.size > 0 and at.dtype.kind in "iu"
    if not (valid and at[0] >= 1 and at[-1] <= len(X) and (np.diff(at) > 0).all()):
        raise ValueError(f"at must be increasing rounds from 1 to {len(X)}, but is {at!r}")
    L = _factor(kernel, X, lam)
    u = scipy.linalg.solve_triangular(L, y, lower=True, check_finite=False)
    columns = np.zeros((len(X), len(at) + 1), order="F")
    for k, t in enumerate([*at, len(X)]):
        columns[:t, k] = u[:t]
    residuals = lam * scipy.linalg.solve_triangular(
        L, columns, lower=True, trans=1, overwrite_b=True, check_finite=False
    )
    loss = np.cumsum((y - predictions) ** 2)[at - 1]
    last = residuals[:, -1]
    norm = float(last @ (y - last)) / lam  # |f_n|^2 = a' K a with a = last / lam
    final = loss - np.cumsum(last**2)[at - 1]
    return RegretCurve(
        at,
        loss - np.einsum("ij,ij->j", residuals[:, :-1], residuals[:, :-1]),
        loss - lam * np.cumsum(u**2)[at - 1],
        final,
        final - lam * norm,
    )


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
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    return lam * norm**2 + B**2 * log_det(kernel, X, lam)


def projection_gap(kernel: Any, features: Any, X: ArrayLike, method: str = "exact") -> float:
    """Return mu = lambda_max(K - F F'), the energy of the inputs outside the features' span.

    Parameters
    ----------
    kernel : Kernel
    features : TaylorFeatures or NystromFeatures
        Coordinates in an orthonormal basis of a subspace of the kernel's RKHS.
    X : array_like of shape (n, d)
    method : {"exact", "lanczos"}
        "lanczos": SciPy's eigsh on products with K, O(n^2 d) time each and O(n r) memory, for
        streams whose kernel matrix does not fit; relative error about 1e-6, from below.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> kernel = okl.Gaussian(1.0)
    >>> features = okl.NystromFeatures([[0.0], [1.0]], kernel)
    >>> abs(okl.theory.projection_gap(kernel, features, [[0.0], [1.0]])) < 1e-12
    True
    """
    require(method in ("exact", "lanczos"), "method", method, "'exact' or 'lanczos'")
    X = np.array(checks.as_inputs(X), order="C")
    code, par = kernel_code(kernel)
    F = features.transform(X)
    n = len(X)
    if method == "exact" or n < 3:
        gap = kernel(X) - F @ F.T
        top = scipy.linalg.eigh(gap, eigvals_only=True, subset_by_index=[n - 1, n - 1])
        return max(float(top[0]), 0.0)
    from scipy.sparse.linalg import LinearOperator, eigsh  # a tenth of a second to import

    atoms = np.array(X.T, order="C")

    def product(v: np.ndarray) -> np.ndarray:
        out = np.empty(n)
        hotloops.kernel_product(code, par, X, atoms, np.array(v, dtype=float).ravel(), out)
        return out - F @ (F.T @ v.ravel())

    operator = LinearOperator((n, n), matvec=product, dtype=float)
    start = np.random.default_rng(0).standard_normal(n)  # the same answer every time
    top = eigsh(operator, k=1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)
    return max(float(top[0]), 0.0)


def pkawv_bound(
    kernel: Any,
    features: Any,
    X: ArrayLike,
    lam: float,
    B: float = 1.0,
    norm: float = 0.0,
    method: str = "exact",
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
    method : {"exact", "lanczos"}
        Of ``projection_gap``.

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
    mu = projection_gap(kernel, features, X, method)
    n = len(checks.as_inputs(X))
    return awv_bound(kernel, X, lam, B, norm) + (mu + lam) * n * mu * B**2 / lam**2


def log_det_bound(kernel: Any, X: ArrayLike, lam: float) -> float:
    """Return log(e + e n kappa^2 / lam) d_eff(lam), above log det(I + K / lam) (pkawv Prop. 2).

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
        kappa^2 is the largest k(x, x) on it.
    lam : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.log_det_bound(okl.Linear(), [[1.0], [1.0]], 2.0), 6)
    0.846574
    """
    X = checks.as_inputs(X)
    kappa2 = float(kernel.diag(X).max())
    return log(e + e * len(X) * kappa2 / lam) * effective_dimension(kernel, X, lam)


def taylor_bound(
    features: Any, X: ArrayLike, lam: float, B: float = 1.0, norm: float = 0.0
) -> float:
    """Return lam |f|^2 + 1.5 B^2 log det(I + K / lam), PKAWV's bound of pkawv Theorem 4.

    Against every f of the Gaussian RKHS, for Taylor features of degree ``taylor_degree`` or more.

    Parameters
    ----------
    features : TaylorFeatures
    X : array_like of shape (n, d)
    lam : float > 0
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor; 0 bounds the regret against the best penalised function.

    Raises
    ------
    ValueError
        If an argument is not valid, or the degree is smaller than the theorem asks; then
        ``pkawv_bound`` holds.

    Examples
    --------
    >>> import oklnumba as okl
    >>> features = okl.TaylorFeatures(degree=8, sigma=1.0)
    >>> round(okl.theory.taylor_bound(features, [[1.0], [1.0]], lam=2.0), 6)
    1.039721
    """
    X = checks.as_inputs(X)
    center = 0.0 if features.center is None else np.asarray(features.center, dtype=float)
    radius = float(np.sqrt(np.square(X - center).sum(axis=1).max()))
    needed = taylor_degree(len(X), lam, radius, features.sigma)
    if features.degree < needed:
        raise ValueError(
            f"degree is {features.degree}, but Theorem 4 asks for {needed} on this stream; raise "
            "degree, or use pkawv_bound, which holds for any"
        )
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    return lam * norm**2 + 1.5 * B**2 * log_det(Gaussian(features.sigma), X, lam)


def nystrom_bound(
    kernel: Any,
    X: ArrayLike,
    lam: float,
    mu: float,
    size: int,
    B: float = 1.0,
    norm: float = 0.0,
) -> float:
    """Return the regret bound of Nystrom-AWV with KORS (pkawv Theorem 6).

    lam |f|^2 + B^2 d_eff(lam) log(e + e n kappa^2 / lam) + 2 B^2 (size + 1) n mu / lam, with high
    probability for beta = 12 log(n / delta) and eps = 1/2; for any beta with mu the largest
    |(I - P_t) C_t^(1/2)|^2 of the run.

    Parameters
    ----------
    kernel : Kernel
    X : array_like of shape (n, d)
    lam : float > 0
    mu : float in (0, lam]
        Of KORS.
    size : int >= 1
        Of the dictionary at the end.
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
    >>> round(okl.theory.nystrom_bound(okl.Linear(), [[1.0], [1.0]], 2.0, 0.1, size=1), 6)
    1.246574
    """
    require(checks.number(mu) and 0 < mu <= lam, "mu", mu, f"a number in (0, lam] = (0, {lam!r}]")
    checks.require_count("size", size, 1)
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    n = len(checks.as_inputs(X))
    rest = 2.0 * (size + 1) * n * mu / lam
    return lam * norm**2 + B**2 * (log_det_bound(kernel, X, lam) + rest)


class CapacityBound(NamedTuple):
    """What pkawv's corollaries 7 and 8 say, with constants.

    Attributes
    ----------
    lam, mu : float
        The parameters that they choose.
    bound : float
        The regret bound.
    """

    lam: float
    mu: float
    bound: float


def capacity_bound(
    n: int,
    m: int,
    gamma: float,
    B: float = 1.0,
    norm: float = 1.0,
    kappa: float = 1.0,
    known_inputs: bool = False,
) -> CapacityBound:
    """Return the bounds of pkawv Corollaries 7 and 8, for d_eff(lam) <= (n / lam)^gamma.

    With mu = n m^(-1/gamma), which makes dictionaries of about m atoms, and lam as the corollaries
    choose it: lam |f|^2 + B^2 (n / lam)^gamma log(e + e n kappa^2 / lam) + 2 B^2 (m + 1) n mu / lam
    (Corollary 7), or with (mu + lam) n mu B^2 / lam^2 as the last term where the inputs are known
    beforehand (Corollary 8, by Theorem 3).

    Parameters
    ----------
    n : int >= 1
        Rounds.
    m : int >= 1
        Atoms.
    gamma : float in (0, 1)
    B : float >= 0
        Largest |y|.
    norm : float >= 0
        |f| of the competitor.
    kappa : float > 0
        Square root of the largest k(x, x).
    known_inputs : bool
        Corollary 8.

    Remarks
    -------
    The corollaries hide constants and logarithms; here are those of the theorems behind them.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> found = okl.theory.capacity_bound(n=10_000, m=500, gamma=0.25)
    >>> round(found.lam, 3), round(found.bound, 1)
    (6.31, 59.4)
    """
    checks.require_count("n", n, 1)
    checks.require_count("m", m, 1)
    require(checks.number(gamma) and 0 < gamma < 1, "gamma", gamma, "a number in (0, 1)")
    require_nonnegative("B", B)
    require_nonnegative("norm", norm)
    require_positive("kappa", kappa)
    mu = n * m ** (-1.0 / gamma)
    power = -0.5 / gamma if known_inputs else 0.5 - 0.5 / gamma
    lam = max(n ** (gamma / (1.0 + gamma)), n * m**power)
    if known_inputs:
        rest = (mu + lam) * n * mu / lam**2
    else:
        rest = 2.0 * (m + 1) * n * mu / lam  # mu <= lam, as Theorem 6 asks, at any m
    dimension = (n / lam) ** gamma * log(e + e * n * kappa**2 / lam)
    return CapacityBound(lam, mu, lam * norm**2 + B**2 * (dimension + rest))


def rates(gamma: float, points: int = 201) -> dict[str, np.ndarray]:
    """Return the exponents of pkawv Figure 1: regret n^b with a dictionary of n^a atoms.

    For d_eff(lam) <= (n / lam)^gamma and lam tuned, from Corollaries 7 and 8 and eq. (8). Where a
    larger dictionary would make a rate worse, a smaller one is used.

    Parameters
    ----------
    gamma : float in (0, 1)
    points : int >= 2
        Values of a, from 0 to 1.

    Returns
    -------
    dict of ndarray, each of shape (points,)
        "a", and b of "PKAWV", "PKAWV (beforehand features)", "Sketched-KONS", "Pros-N-KONS".

    Remarks
    -------
    The text says that Pros-N-KONS cannot beat 4 gamma / (1 + gamma)^2. The form that it gives in
    eq. (8), minimised over lam, goes down to gamma (3 + gamma) / (1 + gamma)^2, which is lower;
    here is the minimum. The published level is that of Table 1's dictionary, a = 2 gamma (1 -
    gamma) / (1 + gamma)^2.

    Raises
    ------
    ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import oklnumba as okl
    >>> found = okl.theory.rates(0.25, points=3)
    >>> found["PKAWV"].round(3)
    array([1.  , 0.25, 0.2 ])
    """
    require(checks.number(gamma) and 0 < gamma < 1, "gamma", gamma, "a number in (0, 1)")
    checks.require_count("points", points, 2)
    a = np.linspace(0.0, 1.0, points)
    best = gamma / (1.0 + gamma)
    # Pros-N-KONS: max(a + l, a + gamma (1 - l), 2 - a / gamma - l) at its best l = log_n lam, which
    # is where two of the three lines cross.
    crossings = (
        np.full(points, best),
        1.0 - a * (1.0 + 1.0 / gamma) / 2.0,
        (2.0 - gamma - a * (1.0 + 1.0 / gamma)) / (1.0 - gamma),
    )
    restarts = np.min(
        [np.max([a + x, a + gamma * (1.0 - x), 2.0 - a / gamma - x], axis=0) for x in crossings],
        axis=0,
    )
    curves = {
        "PKAWV": np.maximum(best, 1.0 + a / 2.0 - a / (2.0 * gamma)),
        "PKAWV (beforehand features)": np.maximum(best, 1.0 - a / (2.0 * gamma)),
        "Sketched-KONS": (1.0 - a + gamma) / (1.0 + gamma),
        "Pros-N-KONS": restarts,
    }
    return {"a": a} | {k: np.minimum.accumulate(np.minimum(b, 1.0)) for k, b in curves.items()}


def _curved(loss: str, C: float, alpha: float, norm: float) -> tuple[float, float]:
    """Check the arguments that KONS's bounds share; return curvature and Lipschitz constant."""
    require_positive("C", C)
    require_positive("alpha", alpha)
    require_nonnegative("norm", norm)
    rule = losses.get(loss)
    return rule.curvature(C), rule.lipschitz(C)


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
    require_nonnegative("radius", radius)
    checks.require_width(sigma)
    return ceil(max(8.0 * (radius / sigma) ** 2, 2.0 * log(n / min(lam, 1.0))))


class Reading(NamedTuple):
    """What a Meter shows after some rounds.

    Attributes
    ----------
    rounds : int
    effective_dimension : float
    log_det : float
        log det(K / lam + I).
    alignment : float
        A_t = sum k(x, x) - y' K y / t.
    """

    rounds: int
    effective_dimension: float
    log_det: float
    alignment: float


class Meter:
    """Streaming effective dimension, log det and kernel alignment, of a kernel given by features.

    Exact for the kernel z(x).z(x') of the features: an estimate, from below, for the kernel that
    Taylor or Nystrom features are a part of (``features.captured`` says how large a part), and
    without bias in the kernel for Fourier features. O(r^2) a round and O(r^2) memory.

    Parameters
    ----------
    features : Features
    lam : float > 0
        Regularisation.

    Attributes
    ----------
    history : list of Reading
        One for each piece that ``follow`` passed on.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl
    >>> X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))
    >>> meter = okl.theory.Meter(okl.FourierFeatures(50), lam=1.0)
    >>> run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), meter.follow(X, X[:, 0], every=1000))
    >>> [reading.rounds for reading in meter.history]
    [1000, 2000, 3000]
    """

    def __init__(self, features: Any, lam: float = 1.0):
        require_positive("lam", lam)
        self.features = features
        self.lam = lam
        self.history: list[Reading] = []
        self._moments: np.ndarray | None = None
        self._width: int | None = None

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Meter:
        """Take in rounds; return self.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : array_like of shape (n,)

        Raises
        ------
        ValueError
            If the data is not valid (nothing has changed then).
        """
        X = checks.as_inputs(X, self._width)
        y = checks.as_labels(y, len(X))
        Z = self.features.transform(X)
        if self._moments is None:
            self._width, r = X.shape[1], Z.shape[1]
            self._moments, self._labels = np.zeros((r, r)), np.zeros(r)
            self._rounds, self._trace = 0, 0.0
        self._moments += Z.T @ Z
        self._labels += y @ Z
        self._rounds += len(X)
        self._trace += float(np.square(Z).sum())
        return self

    def read(self) -> Reading:
        """Return what the rounds so far amount to.

        Raises
        ------
        ValueError
            Before any rounds.
        """
        if self._moments is None:
            raise ValueError("the meter has seen no rounds; call partial_fit(X, y) first")
        eigenvalues = np.maximum(scipy.linalg.eigvalsh(self._moments), 0.0) / self.lam
        aligned = float(self._labels @ self._labels) / self._rounds
        return Reading(
            self._rounds,
            float((eigenvalues / (1.0 + eigenvalues)).sum()),
            float(np.log1p(eigenvalues).sum()),
            self._trace - aligned,
        )

    def follow(
        self, X: ArrayLike, y: ArrayLike | None = None, every: int = 1000
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield a stream in pieces, for ``okl.run``, and take a reading after each.

        Parameters
        ----------
        X : array_like of shape (n, d), or iterable of pairs (X, y)
        y : array_like of shape (n,), optional
            None if X is an iterable of pairs.
        every : int >= 1
            Rounds a piece, of arrays.

        Raises
        ------
        ValueError
            If the data is not valid.
        """
        checks.require_count("every", every, 1)
        pieces: Any = X
        if y is not None:
            inputs = checks.as_inputs(X)
            labels = checks.as_labels(y, len(inputs))
            cuts = range(0, len(inputs), every)
            pieces = ((inputs[i : i + every], labels[i : i + every]) for i in cuts)
        for piece in pieces:
            yield piece
            self.history.append(self.partial_fit(*piece).read())


# ---- linear online convex optimisation (oco) ----


def _game(gradients: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of a game and a comparator of their width."""
    gradients = checks.as_inputs(gradients, name="gradients")
    return gradients, checks.as_point(w, gradients.shape[1], "w")[0]


def ftrl_bound(potential: oco.Potential, gradients: ArrayLike, w: ArrayLike) -> float:
    """Return Phi(w) - min Phi + sum |g_t|_*^2 / strength, the bound of FTRL (oco Theorem 1).

    It holds for sum <g_t, w_t - w> with w_t the mirror map of minus the past gradients: the regret
    against w on linear losses, and at least the regret on convex ones.

    Parameters
    ----------
    potential : oco.Potential
        The regulariser Phi: ``oco.euclidean``, ``oco.squared_p_norm``, ``oco.negative_entropy``.
    gradients : array_like of shape (n, d)
        As they were played.
    w : array_like of shape (d,)
        The comparator.

    Raises
    ------
    ValueError
        If an argument is not valid, or w outside the domain of Phi.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.ftrl_bound(okl.oco.euclidean(eta=0.5), [[1.0], [1.0]], [1.0])
    2.0
    """
    gradients, w = _game(gradients, w)
    lowest = -potential.conjugate(np.zeros(len(w)))
    dual = sum(potential.dual_norm(g) ** 2 for g in gradients)
    return float(potential.value(w) - lowest + dual / potential.strength)


def ogd_bound(gradients: ArrayLike, w: ArrayLike, eta: float) -> float:
    """Return |w|^2 / (2 eta) + eta sum |g|^2, for OGD with a constant step and for LazyOGD.

    oco section 2.3, items 1 and 2; with a projection, for comparators in the ball.

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
    eta : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.ogd_bound([[1.0], [1.0]], [1.0], eta=0.5)
    2.0
    """
    return ftrl_bound(oco.euclidean(eta), gradients, w)


def p_norm_bound(gradients: ArrayLike, w: ArrayLike, eta: float, p: float) -> float:
    """Return |w|_p^2 / (2 eta) + eta / (p - 1) sum |g|_q^2, for PNorm (oco section 2.3, item 3).

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
    eta : float > 0
    p : float, 1 < p <= 2

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.p_norm_bound([[1.0], [1.0]], [1.0], eta=0.5, p=1.5)
    3.0
    """
    return ftrl_bound(oco.squared_p_norm(eta, p), gradients, w)


def exponentiated_gradient_bound(
    gradients: ArrayLike, w: ArrayLike, eta: float, scale: float = 1.0
) -> float:
    """Return (sum w log w + scale log(d / scale)) / eta + eta scale sum |g|_inf^2, for Hedge.

    oco section 2.3, item 4. The first term is at most scale log(d) / eta.

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
        On the simplex of sum ``scale``.
    eta, scale : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.exponentiated_gradient_bound([[0.0, 1.0]], [1.0, 0.0], eta=1.0), 6)
    1.693147
    """
    return ftrl_bound(oco.negative_entropy(eta, scale), gradients, w)


def ftrl_ar_bound(final: float, lowest: float, dual_norms: ArrayLike) -> float:
    """Return Phi_T(w) - min Phi_0 + sum |g_t|_{*,t-1}^2, FTRL with adaptive Phi_t (oco Theorem 3).

    Parameters
    ----------
    final : float
        Phi_T at the comparator.
    lowest : float
        The minimum of Phi_0.
    dual_norms : array_like of shape (n,)
        |g_t| in the dual of the norm in which Phi_{t-1} is 1-strongly convex.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.ftrl_ar_bound(2.0, 0.5, [1.0, 2.0])
    6.5
    """
    lengths = checks.as_point(dual_norms, name="dual_norms")[0]
    return float(final - lowest + (lengths**2).sum())


def adaptive_ftrl_bound(
    gradients: ArrayLike, w: ArrayLike, kind: str = "sqrt", eta: float = 0.5, sigma: float = 1.0
) -> float:
    """Return w' A_T w / 2 + sum g_t' A_{t-1}^-1 g_t, for AdaptiveFTRL (oco Corollary 1).

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
    kind, eta, sigma
        As in AdaptiveFTRL.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.adaptive_ftrl_bound([[1.0], [1.0]], [1.0], "sqrt", eta=1.0), 6)
    2.573132
    """
    gradients, w = _game(gradients, w)
    require_positive("eta", eta)
    require_positive("sigma", sigma)
    n, d = gradients.shape
    square = gradients**2
    if kind == "sqrt":
        final = sqrt(n + 1.0) * (w @ w)
        terms = square.sum(axis=1) / np.sqrt(np.arange(1, n + 1))
    elif kind == "gradient":
        sums = sigma + np.append(0.0, np.cumsum(square.sum(axis=1)))
        final = sqrt(sums[-1]) * (w @ w)
        terms = square.sum(axis=1) / np.sqrt(sums[:-1])
    elif kind == "adagrad":
        totals = sigma + np.vstack([np.zeros(d), np.cumsum(square, axis=0)])
        final = np.sqrt(totals[-1]) @ w**2
        terms = (square / np.sqrt(totals[:-1])).sum(axis=1)
    else:
        require(kind == "adagrad_full", "kind", kind, "a kind of AdaptiveFTRL")
        S = sigma * np.eye(d)
        terms = np.empty(n)
        for t, g in enumerate(gradients):
            values, vectors = np.linalg.eigh(S)
            terms[t] = ((vectors.T @ g) ** 2 / np.sqrt(np.maximum(values, sigma))).sum()
            S += np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        final = np.sqrt(np.maximum(values, sigma)) @ (vectors.T @ w) ** 2
    return float(final / (2 * eta) + eta * terms.sum())


def adagrad_bound(
    gradients: ArrayLike, w: ArrayLike, eta: float = 0.5, sigma: float = 1.0
) -> float:
    """Return (|w|_inf^2 / (2 eta) + 2 sqrt(2) eta) sum_i sqrt(sigma + sum_t g_ti^2) (oco 2.5).

    The closed form for diagonal AdaGrad, with its constants, for sigma >= max g_ti^2.

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
    eta, sigma : float > 0

    Raises
    ------
    ValueError
        If an argument is not valid, or sigma below the largest g_ti^2.

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.adagrad_bound([[1.0], [1.0]], [1.0], eta=1.0), 6)
    5.765005
    """
    gradients, w = _game(gradients, w)
    require_positive("eta", eta)
    largest = float((gradients**2).max())
    if not sigma >= largest:
        raise ValueError(
            f"sigma must be at least the largest squared entry of a gradient, {largest:g}, but is "
            f"{sigma!r}; use adaptive_ftrl_bound, which needs no such sigma"
        )
    roots = np.sqrt(sigma + (gradients**2).sum(axis=0)).sum()
    return float((np.abs(w).max() ** 2 / (2 * eta) + 2 * sqrt(2) * eta) * roots)


def strongly_convex_bound(gradients: ArrayLike, w: ArrayLike, lam: float) -> float:
    """Return lam |w|^2 / 2 + sum |g_t|^2 / (lam t), for StronglyConvexFTRL (oco Theorem 4).

    It holds for the regret on lam-strongly convex losses.

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
    lam : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.strongly_convex_bound([[1.0], [1.0]], [1.0], lam=1.0)
    2.0
    """
    gradients, w = _game(gradients, w)
    return float(lam / 2 * (w @ w)) + ogd_strong_bound(gradients, lam)


def ogd_strong_bound(gradients: ArrayLike, lam: float) -> float:
    """Return sum |g_t|^2 / (lam t), for OGD with the step 1 / (lam t) (oco Theorem 5).

    It holds for the regret on lam-strongly convex losses; at most L^2 (1 + log n) / lam.

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    lam : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.ogd_strong_bound([[1.0], [1.0]], lam=1.0)
    1.5
    """
    gradients = checks.as_inputs(gradients, name="gradients")
    require_positive("lam", lam)
    t = np.arange(1, len(gradients) + 1)
    return float(((gradients**2).sum(axis=1) / t).sum() / lam)


def exp_concave_rate(alpha: float, radius: float, lipschitz: float) -> float:
    """Return alpha~ = min(1 / (16 B L), alpha / 2) for alpha-exp-concave losses (oco Lemma 6).

    Parameters
    ----------
    alpha, radius, lipschitz : float > 0
        B is the radius of the domain, L a bound on |g|.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.exp_concave_rate(alpha=1.0, radius=1.0, lipschitz=1.0)
    0.0625
    """
    for name, value in (("alpha", alpha), ("radius", radius), ("lipschitz", lipschitz)):
        require_positive(name, value)
    return min(1 / (16 * radius * lipschitz), alpha / 2)


def exp_concave_bound(
    gradients: ArrayLike, w: ArrayLike, alpha_tilde: float, lipschitz: float
) -> float:
    """Return alpha~ L^2 |w|^2 / 2 + sum g_t' A_{t-1}^-1 g_t, for ExpConcaveFTRL (oco Theorem 6).

    Equation (8), with A_t = alpha~ (L^2 I + sum g g'). It holds for sum <g_t, w_t - w> - alpha~ / 2
    (g_t.(w_t - w))^2, which is at least the regret on exp-concave losses where Lemma 6 applies.

    Parameters
    ----------
    gradients : array_like of shape (n, d)
    w : array_like of shape (d,)
    alpha_tilde, lipschitz : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.exp_concave_bound([[1.0], [1.0]], [1.0], alpha_tilde=1.0, lipschitz=1.0)
    2.0
    """
    gradients, w = _game(gradients, w)
    require_positive("alpha_tilde", alpha_tilde)
    require_positive("lipschitz", lipschitz)
    inverse = np.eye(len(w)) / lipschitz**2
    total = 0.0
    for g in gradients:
        v = inverse @ g
        s = float(g @ v)
        total += s
        inverse -= np.outer(v, v) / (1.0 + s)
    return float(alpha_tilde * lipschitz**2 / 2 * (w @ w) + total / alpha_tilde)


def mistake_bound(hinge_loss: float, gap: float, eta: float, R: float) -> float:
    """Return (L + gap / eta) / (1 - eta R^2), FTRL at mistakes only (oco Theorem 2).

    Infinity where eta R^2 >= 1.

    Parameters
    ----------
    hinge_loss : float >= 0
        L, the comparator's sum of max(1 - y w.x, 0).
    gap : float >= 0
        Phi(w) - min Phi for a Phi that is 1-strongly convex.
    eta, R : float > 0
        Step; bound on the dual norm of the inputs.

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.mistake_bound(0.0, gap=2.0, eta=0.5, R=1.0)
    8.0
    """
    require_positive("eta", eta)
    share = 1.0 - eta * R * R
    return (hinge_loss + gap / eta) / share if share > 0.0 else inf


def _hinge(X: ArrayLike, y: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray, float]:
    inputs = checks.as_inputs(X)
    labels = checks.as_labels(y, len(inputs), classes=True)
    point = checks.as_point(w, inputs.shape[1], "w")[0]
    return inputs, point, float(np.maximum(1.0 - labels * (inputs @ point), 0.0).sum())


def perceptron_bound(X: ArrayLike, y: ArrayLike, w: ArrayLike, eta: float = 1.0) -> float:
    """Return (L(w) + |w|^2 / (2 eta)) / (1 - eta R^2), the mistakes of Perceptron (oco Theorem 2).

    Errata 43. The mistakes do not depend on eta, so any eta < 1 / R^2 bounds them.

    Parameters
    ----------
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
        Labels -1 and +1.
    w : array_like of shape (d,)
    eta : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.perceptron_bound([[1.0], [-1.0]], [1.0, -1.0], [1.0], eta=0.5)
    2.0
    """
    X, w, hinge = _hinge(X, y, w)
    R = float(np.sqrt((X**2).sum(axis=1).max()))
    return mistake_bound(hinge, float(w @ w) / 2, eta, R)


def winnow_bound(X: ArrayLike, y: ArrayLike, w: ArrayLike, eta: float = 0.5) -> float:
    """Return (L(w) + (log d + sum w log w) / eta) / (1 - eta R^2), the mistakes of Winnow.

    oco Theorem 2 with errata 42 and 43; R bounds |x|_inf.

    Parameters
    ----------
    X : array_like of shape (n, d)
    y : array_like of shape (n,)
        Labels -1 and +1.
    w : array_like of shape (d,)
        On the simplex.
    eta : float > 0

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.winnow_bound([[1.0, -1.0]], [1.0], [1.0, 0.0], eta=0.5), 6)
    2.772589
    """
    X, w, hinge = _hinge(X, y, w)
    potential = oco.negative_entropy()
    gap = potential.value(w) + log(len(w))
    return mistake_bound(hinge, gap, eta, float(np.abs(X).max()))


def experts_bound(count: int, B: float = 1.0, kind: str = "aggregating", n: int = 1) -> float:
    """Return the regret bound of Experts against the best of ``count`` learners.

    2 B^2 log N, 8 B^2 log N, or B (sqrt(2 n log N) + sqrt(log(N) / 8)) for "hedge" (Cesa-Bianchi
    and Lugosi 2006, Theorem 2.3).

    Parameters
    ----------
    count : int >= 1
    B : float > 0
    kind : {"aggregating", "average", "hedge"}
    n : int >= 1
        Rounds, for "hedge".

    Examples
    --------
    >>> import oklnumba as okl
    >>> round(okl.theory.experts_bound(3), 6)
    2.197225
    """
    checks.require_count("count", count, 1)
    checks.require_count("n", n, 1)
    require_positive("B", B)
    if kind == "hedge":
        return B * (sqrt(2 * n * log(count)) + sqrt(log(count) / 8))
    require(kind in ("aggregating", "average"), "kind", kind, "a kind of Experts")
    return (2 if kind == "aggregating" else 8) * B**2 * log(count)


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
    F = _square_root(K, tol=eps * largest)
    values = np.zeros(n)
    values[: F.shape[1]] = scipy.linalg.svdvals(F) ** 2
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
