"""Bounds of Zhang 2019 (oco): the FTRL family, Perceptron and Winnow."""

from math import ceil, exp, inf, log, sqrt

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.components import potentials
from oklnumba.components.potentials import Potential, as_vector
from oklnumba.core import checks, inputs
from oklnumba.theory.arguments import checks_arguments

KINDS = "sqrt", "gradient", "adagrad", "adagrad_full"  # of AdaptiveFTRL


def _as_game(gradients: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of all rounds, (n, d), and the comparator, (d,)."""
    G = inputs.as_inputs(gradients, name="gradients")
    return G, as_vector(w, "w", G.shape[1])


@checks_arguments()
def ftrl_bound(potential: Potential, gradients: ArrayLike, w: ArrayLike) -> float:
    """Return Phi(w) - min Phi + sum |g_t|_*^2 / strength, the bound of FTRL (oco Theorem 1).

    It holds for sum <g_t, w_t - w> with w_t the mirror map of minus the past gradients: the regret
    against w on linear losses, and at least the regret on convex ones. Phi is the ``potential``:
    ``okl.oco.euclidean()``, ``squared_p_norm()`` or ``negative_entropy()``, with w in its domain.

    Examples
    --------
    >>> okl.theory.ftrl_bound(okl.oco.euclidean(eta=0.5), [[1.0], [1.0]], [1.0])
    2.0
    """
    valid = isinstance(potential, Potential)
    checks.require(valid, "potential", potential, "such as okl.oco.euclidean()")
    gradients, w = _as_game(gradients, w)
    lowest = -potential.conjugate(np.zeros(len(w)))
    dual = sum(potential.dual_norm(g) ** 2 for g in gradients)
    return float(potential.value(w) - lowest + dual / potential.strength)


def ogd_bound(gradients: ArrayLike, w: ArrayLike, eta: float) -> float:
    """Return |w|^2 / (2 eta) + eta sum |g|^2, for OGD with a constant step and for LazyOGD.

    oco section 2.3, items 1 and 2; with a projection, for comparators in the ball.

    Examples
    --------
    >>> okl.theory.ogd_bound([[1.0], [1.0]], [1.0], eta=0.5)
    2.0
    """
    return ftrl_bound(potentials.euclidean(eta), gradients, w)


def p_norm_bound(gradients: ArrayLike, w: ArrayLike, eta: float, p: float) -> float:
    """Return |w|_p^2 / (2 eta) + eta / (p - 1) sum |g|_q^2, for PNorm (oco section 2.3, item 3).

    Examples
    --------
    >>> okl.theory.p_norm_bound([[1.0], [1.0]], [1.0], eta=0.5, p=1.5)
    3.0
    """
    return ftrl_bound(potentials.squared_p_norm(eta, p), gradients, w)


def exponentiated_gradient_bound(
    gradients: ArrayLike, w: ArrayLike, eta: float, scale: float = 1.0
) -> float:
    """Return (sum w log w + scale log(d / scale)) / eta + eta scale sum |g|_inf^2, for Hedge.

    oco section 2.3, item 4, for w on the simplex of sum ``scale`` > 0. The first term is at most
    scale log(d) / eta.

    Examples
    --------
    >>> round(okl.theory.exponentiated_gradient_bound([[0.0, 1.0]], [1.0, 0.0], eta=1.0), 6)
    1.693147
    """
    return ftrl_bound(potentials.negative_entropy(eta, scale), gradients, w)


@checks_arguments(final=checks.require_number, lowest=checks.require_number)
def ftrl_ar_bound(final: float, lowest: float, dual_norms: ArrayLike) -> float:
    """Return Phi_T(w) - min Phi_0 + sum |g_t|_{*,t-1}^2, FTRL with adaptive Phi_t (oco Theorem 3).

    ``final`` is Phi_T at the comparator, ``lowest`` the minimum of Phi_0, ``dual_norms`` (n,) are
    |g_t| in the dual of the norm in which Phi_{t-1} is 1-strongly convex.

    Examples
    --------
    >>> okl.theory.ftrl_ar_bound(2.0, 0.5, [1.0, 2.0])
    6.5
    """
    lengths = as_vector(dual_norms, "dual_norms")
    return float(final - lowest + (lengths**2).sum())


@checks_arguments()
def adaptive_ftrl_bound(
    gradients: ArrayLike, w: ArrayLike, kind: str = "sqrt", eta: float = 0.5, sigma: float = 1.0
) -> float:
    """Return w' A_T w / 2 + sum g_t' A_{t-1}^-1 g_t, for AdaptiveFTRL (oco Corollary 1).

    ``kind`` is "sqrt", "gradient", "adagrad" or "adagrad_full", sigma > 0, as in AdaptiveFTRL.

    Examples
    --------
    >>> round(okl.theory.adaptive_ftrl_bound([[1.0], [1.0]], [1.0], "sqrt", eta=1.0), 6)
    2.573132
    """
    gradients, w = _as_game(gradients, w)
    kind = checks.require_choice("kind", kind, KINDS)
    (n, d), square = gradients.shape, gradients**2
    if kind == "adagrad_full":
        S = sigma * np.eye(d)
        terms = np.empty(n)
        for t, g in enumerate(gradients):
            values, vectors = np.linalg.eigh(S)
            terms[t] = ((vectors.T @ g) ** 2 / np.sqrt(np.maximum(values, sigma))).sum()
            S += np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        final = np.sqrt(np.maximum(values, sigma)) @ (vectors.T @ w) ** 2
    else:
        first, lengths = sigma, square.sum(axis=1, keepdims=True)
        added = square if kind == "adagrad" else lengths
        if kind == "sqrt":
            first, added = 1.0, np.ones((n, 1))
        totals = np.vstack([np.zeros_like(added[:1]), np.cumsum(added, axis=0)])
        roots = np.sqrt(first + totals)  # eta A_0, ..., eta A_n
        final, terms = (roots[-1] * w**2).sum(), square / roots[:-1]
    return float(final / (2 * eta) + eta * terms.sum())


@checks_arguments()
def gradient_steps_bound(gradients: ArrayLike, w: ArrayLike, eta: float, radius: float) -> float:
    """Return (D^2 / (2 eta) + eta) sqrt(sum |g_t|^2), for OGD(schedule="gradient", radius=...).

    D = ``radius`` + |w| is at least every |w_t - w| for w in the ball. oco footnote 1: mirror
    descent needs no sigma. With eta = sqrt(2) radius the bound is at most 2 sqrt(2) radius
    sqrt(sum |g|^2) (Orabona 2019, lecture 5).

    Examples
    --------
    >>> okl.theory.gradient_steps_bound([[3.0], [4.0]], [1.0], eta=2.0, radius=1.0)
    15.0
    """
    gradients, w = _as_game(gradients, w)
    D = radius + float(np.linalg.norm(w))
    return float((D**2 / (2 * eta) + eta) * np.linalg.norm(gradients))


@checks_arguments()
def adagrad_bound(
    gradients: ArrayLike, w: ArrayLike, eta: float = 0.5, sigma: float = 1.0
) -> float:
    """Return (|w|_inf^2 / (2 eta) + 2 sqrt(2) eta) sum_i sqrt(sigma + sum_t g_ti^2) (oco 2.5).

    The closed form for diagonal AdaGrad, with its constants, for sigma >= max g_ti^2.

    Examples
    --------
    >>> round(okl.theory.adagrad_bound([[1.0], [1.0]], [1.0], eta=1.0), 6)
    5.765005
    """
    gradients, w = _as_game(gradients, w)
    largest = float((gradients**2).max())
    if not sigma >= largest:
        raise ValueError(
            f"sigma must be at least the largest squared entry of a gradient, {largest:g}, but is "
            f"{sigma!r}; use adaptive_ftrl_bound, which needs no such sigma"
        )
    roots = np.sqrt(sigma + (gradients**2).sum(axis=0)).sum()
    return float((np.abs(w).max() ** 2 / (2 * eta) + 2 * sqrt(2) * eta) * roots)


@checks_arguments()
def strongly_convex_bound(gradients: ArrayLike, w: ArrayLike, lam: float) -> float:
    """Return lam |w|^2 / 2 + sum |g_t|^2 / (lam t), for StronglyConvexFTRL (oco Theorem 4).

    It holds for the regret on lam-strongly convex losses.

    Examples
    --------
    >>> okl.theory.strongly_convex_bound([[1.0], [1.0]], [1.0], lam=1.0)
    2.0
    """
    gradients, w = _as_game(gradients, w)
    return float(lam / 2 * (w @ w)) + ogd_strong_bound(gradients, lam)


@checks_arguments()
def ogd_strong_bound(gradients: ArrayLike, lam: float) -> float:
    """Return sum |g_t|^2 / (lam t), for OGD with the step 1 / (lam t) (oco Theorem 5).

    It holds for the regret on lam-strongly convex losses; at most L^2 (1 + log n) / lam.

    Examples
    --------
    >>> okl.theory.ogd_strong_bound([[1.0], [1.0]], lam=1.0)
    1.5
    """
    gradients = inputs.as_inputs(gradients, name="gradients")
    t = np.arange(1, len(gradients) + 1)
    return float(((gradients**2).sum(axis=1) / t).sum() / lam)


@checks_arguments()
def svm_rounds(lam: float, eps: float, R: float = 1.0) -> int:
    """Return how many examples bring a soft-margin SVM within eps of the best (oco section 3).

    The least T with (R^2 / 2 + L^2 (1 + log T)) / (lam T) <= eps, L = 2 R: after T i.i.d. examples
    the mean of w_1, ..., w_T, or one of them drawn uniformly, has an expected lam / 2 |w|^2
    + (1 - y w.x)_+ at most eps above the minimum. For StronglyConvexFTRL (Theorem 4) and for steps
    of 1 / (lam t) (Theorem 5, the steps of Pegasos); in features or in an RKHS, with |x| or
    sqrt(k(x, x)) at most R > 0.

    Remarks
    -------
    The notes have T = O(log(1 / (lam eps)) / (lam eps)), without L. Both learners have |w_t| <= R /
    lam, so a gradient lam w_t - y x has at most the length 2 R. The best w is as short, hence
    Theorem 4's lam / 2 |w|^2 <= R^2 / (2 lam).

    Examples
    --------
    >>> okl.theory.svm_rounds(lam=0.1, eps=0.1), okl.theory.svm_rounds(lam=0.1, eps=0.01)
    (3741, 47581)
    """
    level = lam * eps / (R * R)  # (9 / 2 + 4 log T) / T falls to it from T = 1 on
    checks.require(level > 1e-100, "lam", lam, "so large that the rounds can be counted")
    if level >= 4.5:
        return 1
    root = scipy.special.lambertw(-level / 4.0 * exp(-9.0 / 8.0), -1).real
    return ceil(-4.0 / level * root)


@checks_arguments()
def exp_concave_rate(alpha: float, radius: float, lipschitz: float) -> float:
    """Return alpha~ = min(1 / (16 B L), alpha / 2) for alpha-exp-concave losses (oco Lemma 6).

    B > 0 is the ``radius`` of the domain, L > 0 a bound on |g|.

    Examples
    --------
    >>> okl.theory.exp_concave_rate(alpha=1.0, radius=1.0, lipschitz=1.0)
    0.0625
    """
    return min(1 / (16 * radius * lipschitz), alpha / 2)


@checks_arguments()
def exp_concave_bound(
    gradients: ArrayLike, w: ArrayLike, alpha_tilde: float, lipschitz: float
) -> float:
    """Return alpha~ L^2 |w|^2 / 2 + sum g_t' A_{t-1}^-1 g_t, for ExpConcaveFTRL (oco Theorem 6).

    Equation (8), with A_t = alpha~ (L^2 I + sum g g'). It holds for sum <g_t, w_t - w> - alpha~ / 2
    (g_t.(w_t - w))^2, which is at least the regret on exp-concave losses where Lemma 6 applies;
    L > 0 bounds |g|.

    Examples
    --------
    >>> okl.theory.exp_concave_bound([[1.0], [1.0]], [1.0], alpha_tilde=1.0, lipschitz=1.0)
    2.0
    """
    gradients, w = _as_game(gradients, w)
    inverse = np.eye(len(w)) / lipschitz**2
    total = 0.0
    for g in gradients:
        v = inverse @ g
        s = float(g @ v)
        total += s
        inverse -= np.outer(v, v) / (1.0 + s)
    return float(alpha_tilde * lipschitz**2 / 2 * (w @ w) + total / alpha_tilde)


@checks_arguments(R=checks.require_nonnegative)
def mistake_bound(hinge_loss: float, gap: float, eta: float, R: float) -> float:
    """Return (L + gap / eta) / (1 - eta R^2), FTRL at mistakes only (oco Theorem 2).

    L is the comparator's sum of max(1 - y w.x, 0), ``gap`` is Phi(w) - min Phi for a Phi that is
    1-strongly convex, and R bounds the dual norm of the inputs. Infinity where eta R^2 >= 1.

    Examples
    --------
    >>> okl.theory.mistake_bound(0.0, gap=2.0, eta=0.5, R=1.0)
    8.0
    """
    share = 1.0 - eta * R * R
    return (hinge_loss + gap / eta) / share if share > 0.0 else inf


def _hinge_loss(X: ArrayLike, y: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray, float]:
    """Return X and w as arrays and the hinge loss of w on labels -1 and +1."""
    X = inputs.as_inputs(X)
    labels = inputs.as_labels(y, len(X), classes=True)
    w = as_vector(w, "w", X.shape[1])
    return X, w, float(np.maximum(1.0 - labels * (X @ w), 0.0).sum())


@checks_arguments()
def perceptron_bound(X: ArrayLike, y: ArrayLike, w: ArrayLike, eta: float = 1.0) -> float:
    """Return (L(w) + |w|^2 / (2 eta)) / (1 - eta R^2), the mistakes of Perceptron (oco Theorem 2).

    Errata 43. Labels are -1 and +1, R bounds |x|. The mistakes do not depend on eta, so any eta <
    1 / R^2 bounds them.

    Examples
    --------
    >>> okl.theory.perceptron_bound([[1.0], [-1.0]], [1.0, -1.0], [1.0], eta=0.5)
    2.0
    """
    X, w, hinge = _hinge_loss(X, y, w)
    R = float(np.sqrt((X**2).sum(axis=1).max()))
    return mistake_bound(hinge, float(w @ w) / 2, eta, R)


@checks_arguments()
def winnow_bound(X: ArrayLike, y: ArrayLike, w: ArrayLike, eta: float = 0.5) -> float:
    """Return (L(w) + (log d + sum w log w) / eta) / (1 - eta R^2), the mistakes of Winnow.

    oco Theorem 2 with errata 42 and 43. Labels are -1 and +1, w is on the simplex, |x|_inf <= R.

    Examples
    --------
    >>> round(okl.theory.winnow_bound([[1.0, -1.0]], [1.0], [1.0, 0.0], eta=0.5), 6)
    2.772589
    """
    X, w, hinge = _hinge_loss(X, y, w)
    gap = potentials.negative_entropy().value(w) + log(len(w))
    return mistake_bound(hinge, gap, eta, float(np.abs(X).max()))
