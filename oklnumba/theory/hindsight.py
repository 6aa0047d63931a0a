"""The best functions in hindsight, and regret against them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from oklnumba import checks, losses
from oklnumba.checks import require, require_positive
from oklnumba.hot.losses import loss_derivatives
from oklnumba.kernels import kernel_code
from oklnumba.theory.dimension import factor_of, quadratic_form


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
        return _best_weights(square_root(kernel(X)), y, float(lam), rule)[0]
    L = factor_of(kernel, X, lam)
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
    F = square_root(kernel(X))
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


def square_root(K: np.ndarray, tol: float = -1.0) -> np.ndarray:
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
        loss_derivatives(loss.code, fitted, y, slopes)
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
    beyond = quadratic_form(kernel, X, residuals) - float(captured @ captured)
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
    L = factor_of(kernel, X, lam)
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
    L = factor_of(kernel, X, lam)
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
