"""Bounds of Calandriello, Lazaric and Valko 2017 (kons): KONS, Sketched-KONS and KORS."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.components.kernels import kernel_code
from oklnumba.components.losses import kons_step
from oklnumba.core import checks, inputs
from oklnumba.core.checks import require, require_nonnegative, require_positive
from oklnumba.theory.dimension import effective_dimension, online_effective_dimension
from oklnumba.theory.matrix import shifted_cholesky


def _curved(loss: str, C: Any, alpha: Any, norm: Any) -> tuple[float, float, float, float, float]:
    """Return C, alpha and norm, checked, and the loss's curvature and Lipschitz constant."""
    C = require_positive("C", C)
    alpha = require_positive("alpha", alpha)
    norm = require_nonnegative("norm", norm)
    rule = losses.get(loss)
    return C, alpha, norm, rule.curvature(C), rule.lipschitz(C)


def _as_steps(steps: ArrayLike, n: int) -> np.ndarray:
    """Return n step sizes as an array."""
    eta = inputs.as_values(steps, n, "steps")
    require(bool((eta > 0.0).all()), "steps", steps, "numbers > 0")
    return eta


def _newton_dimension(kernel: Any, X: ArrayLike, level: float) -> float:
    """Return d_eff(level) (1 + log(1 + tr K / level)), above log det(K / level + I) (Lemma 3)."""
    trace = float(kernel.diag(X).sum())
    return effective_dimension(kernel, X, level) * (1.0 + log(1.0 + trace / level))


@checks.formula
def kons_bound(
    kernel: Any,
    X: ArrayLike,
    loss: str = "squared",
    C: float = 1.0,
    alpha: float = 1.0,
    norm: float = 0.0,
    steps: ArrayLike | None = None,
) -> float:
    """Return the regret bound of KONS (kons Theorem 1).

    Against every f with |f(x_t)| <= C on the stream. With L the largest slope of the loss on [-C,
    C] and sigma its curvature there:

    - any ``steps`` eta_t: alpha |f|^2 + log det(I + D K D / alpha) / min eta_t + 4 C^2 L^2 sum_t
      max(eta_t - sigma, 0), with D_t^2 = L^2 eta_t;
    - no ``steps`` and sigma = 0: the same with eta_t = ``kons_step(loss, C)`` / sqrt(t), what KONS
      plays with the schedule "sqrt" (second case);
    - no ``steps`` and sigma > 0: eta_t = sigma, what KONS plays by default, and alpha |f|^2 +
      d_eff(alpha / (sigma L^2)) (1 + log(1 + sigma L^2 tr K / alpha)) / sigma (first case).

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
    steps : array_like of shape (n,), optional
        eta_t of each round.

    Remarks
    -------
    Errata 11 and 60: what is printed for the two cases is not what the proof gives; the second, and
    any other steps, have the theorem's first inequality, d_onl bounded by the log det of Lemma 3.

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
    C, alpha, norm, sigma, L = _curved(loss, C, alpha, norm)
    X = inputs.as_inputs(X)
    kernel_code(kernel)
    if steps is None and sigma > 0.0:
        return alpha * norm**2 + _newton_dimension(kernel, X, alpha / (sigma * L**2)) / sigma
    if steps is None:
        eta = kons_step(loss, C) / np.sqrt(np.arange(1.0, len(X) + 1.0))
    else:
        eta = _as_steps(steps, len(X))
    K = kernel(X)
    scale = L * np.sqrt(eta)
    K *= scale
    K *= scale[:, None]
    det = float(2.0 * np.log(np.diag(shifted_cholesky(K, alpha))).sum() - len(X) * log(alpha))
    R_D = 4.0 * (C * L) ** 2 * float(np.maximum(eta - sigma, 0.0).sum())
    return alpha * norm**2 + det / float(eta.min()) + R_D


@checks.formula
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
    kernel_code(kernel)
    C, alpha, norm, sigma, L = _curved(loss, C, alpha, norm)
    require(sigma > 0.0, "loss", loss, "one with curvature on [-C, C], such as 'squared'")
    gamma = checks.require_within("gamma", gamma, "(0, 1]")
    beta = require_positive("beta", beta)
    tau_min = checks.require_within("tau_min", tau_min, "[0, 1)")
    X = inputs.as_inputs(X)
    dimension = _newton_dimension(kernel, X, alpha / (sigma * L**2))
    return alpha * norm**2 + dimension / (sigma * max(gamma, beta * tau_min))


@checks.formula
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
    Errata 12: statement and proof have different constants; this follows from part 3.

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
    kernel_code(kernel)
    beta = require_positive("beta", beta)
    eps = checks.require_within("eps", eps, "(0, 1)")
    rho = (1.0 + eps) / (1.0 - eps)
    return 3.0 * rho * beta * online_effective_dimension(kernel, X, alpha)
