"""Bounds of Zhang 2019 (oco): the FTRL family, Perceptron and Winnow."""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components.potentials import Potential, euclidean, negative_entropy, squared_p_norm
from oklnumba.core import checks, inputs
from oklnumba.core.checks import (
    require_choice,
    require_nonnegative,
    require_number,
    require_positive,
)

KINDS = "sqrt", "gradient", "adagrad", "adagrad_full"  # of AdaptiveFTRL


def _game(gradients: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of a game and a comparator of their width."""
    gradients = inputs.as_inputs(gradients, name="gradients")
    return gradients, inputs.as_point(w, gradients.shape[1], "w")[0]


@checks.formula
def ftrl_bound(potential: Potential, gradients: ArrayLike, w: ArrayLike) -> float:
    """Return Phi(w) - min Phi + sum |g_t|_*^2 / strength, the bound of FTRL (oco Theorem 1).

    It holds for sum <g_t, w_t - w> with w_t the mirror map of minus the past gradients: the regret
    against w on linear losses, and at least the regret on convex ones.

    Parameters
    ----------
    potential : Potential
        The regulariser Phi: ``euclidean``, ``squared_p_norm``, ``negative_entropy``.
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
    checks.require_instance("potential", potential, Potential, "such as okl.oco.euclidean()")
    gradients, w = _game(gradients, w)
    lowest = -potential.conjugate(np.zeros(len(w)))
    dual = sum(potential.dual_norm(g) ** 2 for g in gradients)
    return float(potential.value(w) - lowest + dual / potential.strength)


@checks.formula
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
    return ftrl_bound(euclidean(eta), gradients, w)


@checks.formula
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
    return ftrl_bound(squared_p_norm(eta, p), gradients, w)


@checks.formula
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
    return ftrl_bound(negative_entropy(eta, scale), gradients, w)


@checks.formula
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
    final, lowest = require_number("final", final), require_number("lowest", lowest)
    lengths = inputs.as_point(dual_norms, name="dual_norms")[0]
    return float(final - lowest + (lengths**2).sum())


@checks.formula
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
    eta = require_positive("eta", eta)
    sigma = require_positive("sigma", sigma)
    kind = require_choice("kind", kind, KINDS)
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
        S = sigma * np.eye(d)
        terms = np.empty(n)
        for t, g in enumerate(gradients):
            values, vectors = np.linalg.eigh(S)
            terms[t] = ((vectors.T @ g) ** 2 / np.sqrt(np.maximum(values, sigma))).sum()
            S += np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        final = np.sqrt(np.maximum(values, sigma)) @ (vectors.T @ w) ** 2
    return float(final / (2 * eta) + eta * terms.sum())


@checks.formula
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
    eta = require_positive("eta", eta)
    sigma = require_positive("sigma", sigma)
    largest = float((gradients**2).max())
    if not sigma >= largest:
        raise ValueError(
            f"sigma must be at least the largest squared entry of a gradient, {largest:g}, but is "
            f"{sigma!r}; use adaptive_ftrl_bound, which needs no such sigma"
        )
    roots = np.sqrt(sigma + (gradients**2).sum(axis=0)).sum()
    return float((np.abs(w).max() ** 2 / (2 * eta) + 2 * sqrt(2) * eta) * roots)


@checks.formula
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
    lam = require_positive("lam", lam)
    return float(lam / 2 * (w @ w)) + ogd_strong_bound(gradients, lam)


@checks.formula
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
    gradients = inputs.as_inputs(gradients, name="gradients")
    lam = require_positive("lam", lam)
    t = np.arange(1, len(gradients) + 1)
    return float(((gradients**2).sum(axis=1) / t).sum() / lam)


@checks.formula
def svm_rounds(lam: float, eps: float, R: float = 1.0) -> int:
    """Return how many examples bring a soft-margin SVM within eps of the best (oco section 3).

    The least T with (R^2 / 2 + L^2 (1 + log T)) / (lam T) <= eps, L = 2 R: after T examples drawn
    i.i.d. the mean of w_1, ..., w_T, or one of them drawn uniformly, has an expected lam / 2 |w|^2
    + (1 - y w.x)_+ of at most eps more than the least there is. For StronglyConvexFTRL (Theorem 4)
    and for steps of 1 / (lam t) (Theorem 5, as Pegasos has them); in features or in an RKHS.

    The notes: T = O(log(1 / (lam eps)) / (lam eps)).

    Parameters
    ----------
    lam : float > 0
        Of the objective.
    eps : float > 0
        Excess of the objective.
    R : float > 0
        Bound on |x|, or on sqrt(k(x, x)).

    Raises
    ------
    ValueError
        If an argument is not valid.

    Remarks
    -------
    The notes leave L open. Both learners keep |w_t| <= R / lam, so that a gradient lam w_t - y x is
    at most 2 R; the best w is as short, hence Theorem 4's lam / 2 |w|^2 <= R^2 / (2 lam).

    Examples
    --------
    >>> import oklnumba as okl
    >>> okl.theory.svm_rounds(lam=0.1, eps=0.1), okl.theory.svm_rounds(lam=0.1, eps=0.01)
    (3741, 47581)
    """
    lam, eps = require_positive("lam", lam), require_positive("eps", eps)
    R = require_positive("R", R)
    checks.require(
        lam * eps > R * R * 1e-100, "lam", lam, "so large that the rounds can be counted"
    )

    def enough(T: int) -> bool:  # (9 / 2 + 4 log T) / T falls from T = 1 on
        return R * R * (4.5 + 4.0 * log(T)) <= lam * eps * T

    high = 1
    while not enough(high):
        high *= 2
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@checks.formula
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
    alpha, radius = require_positive("alpha", alpha), require_positive("radius", radius)
    lipschitz = require_positive("lipschitz", lipschitz)
    return min(1 / (16 * radius * lipschitz), alpha / 2)


@checks.formula
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
    alpha_tilde = require_positive("alpha_tilde", alpha_tilde)
    lipschitz = require_positive("lipschitz", lipschitz)
    inverse = np.eye(len(w)) / lipschitz**2
    total = 0.0
    for g in gradients:
        v = inverse @ g
        s = float(g @ v)
        total += s
        inverse -= np.outer(v, v) / (1.0 + s)
    return float(alpha_tilde * lipschitz**2 / 2 * (w @ w) + total / alpha_tilde)


@checks.formula
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
    hinge_loss = require_nonnegative("hinge_loss", hinge_loss)
    gap, eta = require_nonnegative("gap", gap), require_positive("eta", eta)
    R = require_nonnegative("R", R)
    share = 1.0 - eta * R * R
    return (hinge_loss + gap / eta) / share if share > 0.0 else inf


def _hinge(X: ArrayLike, y: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray, float]:
    rows = inputs.as_inputs(X)
    labels = inputs.as_labels(y, len(rows), classes=True)
    point = inputs.as_point(w, rows.shape[1], "w")[0]
    return rows, point, float(np.maximum(1.0 - labels * (rows @ point), 0.0).sum())


@checks.formula
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


@checks.formula
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
    potential = negative_entropy()
    gap = potential.value(w) + log(len(w))
    return mistake_bound(hinge, gap, eta, float(np.abs(X).max()))
