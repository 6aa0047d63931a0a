"""Bounds of Calandriello, Lazaric and Valko 2017 (kons): KONS, its sketches, and KORS."""

from functools import partial
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.components.losses import kons_step
from oklnumba.core import inputs
from oklnumba.core.checks import require, require_count
from oklnumba.theory.arguments import checks_arguments
from oklnumba.theory.dimension import effective_dimension, log_det, online_effective_dimension
from oklnumba.theory.matrix import factor_shifted


def _bound_log_det(kernel: Any, X: np.ndarray, level: float) -> float:
    """Return d_eff(level) (1 + log(1 + tr K / level)), above log det(K / level + I) (Lemma 3)."""
    trace = float(kernel.diag(X).sum())
    return effective_dimension(kernel, X, level) * (1.0 + log(1.0 + trace / level))


@checks_arguments()
def kons_bound(
    kernel: Any, X: ArrayLike, loss: str = "squared", C: float = 1.0, alpha: float = 1.0,
    norm: float = 0.0, steps: ArrayLike | None = None,
) -> float:  # fmt: skip
    """Return the regret bound of KONS (kons Theorem 1).

    Against every f with |f(x_t)| <= C on the stream; where a loss of regression has curvature (the
    squared one; huber for C <= 1/2) labels in [-C, C] too. With L the largest slope of the loss on
    [-C, C] and sigma its curvature there:

    - any ``steps`` eta_t > 0, shape (n,): alpha |f|^2 + log det(I + D K D / alpha) / min eta_t + 4
      C^2 L^2 sum_t max(eta_t - sigma, 0), with D_t^2 = L^2 eta_t;
    - no ``steps`` and sigma = 0: the same with eta_t = ``kons_step(loss, C)`` / sqrt(t), the steps
      of KONS with the schedule "sqrt" (second case);
    - no ``steps`` and sigma > 0: eta_t = sigma, the step of KONS by default, and alpha |f|^2 +
      d_eff(alpha / (sigma L^2)) (1 + log(1 + sigma L^2 tr K / alpha)) / sigma (first case).

    Remarks
    -------
    Errata 11 and 60: the printed forms of the two cases do not follow from the proof. For the
    second case and for given steps this is the theorem's first inequality, with Lemma 3's log det
    for d_onl.

    Examples
    --------
    >>> X = [[1.0], [1.0], [-1.0]]
    >>> round(okl.theory.kons_bound(okl.Linear(), X, norm=1.0), 3)
    21.201
    >>> round(okl.theory.kons_bound(okl.Linear(), X, loss="hinge", norm=1.0), 3)
    12.198
    """
    X = inputs.as_inputs(X)
    rule = losses.get(loss)
    sigma, L = rule.curvature(C), rule.lipschitz(C)
    if steps is None and sigma > 0.0:
        return alpha * norm**2 + _bound_log_det(kernel, X, alpha / (sigma * L**2)) / sigma
    if steps is None:
        eta = kons_step(loss, C) / np.sqrt(np.arange(1.0, len(X) + 1.0))
    else:
        eta = inputs.as_values(steps, len(X), "steps")
        require(bool((eta > 0.0).all()), "steps", steps, "numbers > 0")
    K = kernel(X)
    scale = L * np.sqrt(eta)
    K *= scale
    K *= scale[:, None]
    det = float(2.0 * np.log(np.diag(factor_shifted(K, alpha))).sum() - len(X) * log(alpha))
    R_D = 4.0 * (C * L) ** 2 * float(np.maximum(eta - sigma, 0.0).sum())
    return alpha * norm**2 + det / float(eta.min()) + R_D


def _measure_curved(loss: str, C: float) -> tuple[float, float]:
    """Return curvature and Lipschitz constant on [-C, C] of a loss that has curvature there."""
    rule = losses.get(loss)
    sigma, L = rule.curvature(C), rule.lipschitz(C)
    require(sigma > 0.0, "loss", loss, "one with curvature on [-C, C], such as 'squared'")
    return sigma, L


@checks_arguments(gamma="(0, 1]", tau_min="[0, 1)")
def sketched_kons_bound(
    kernel: Any, X: ArrayLike, gamma: float, loss: str = "squared", C: float = 1.0,
    alpha: float = 1.0, beta: float = 1.0, tau_min: float = 0.0, norm: float = 0.0,
) -> float:  # fmt: skip
    """Return the regret bound of Sketched-KONS (kons Theorem 3).

    alpha |f|^2 + d_eff(alpha / (sigma L^2)) (1 + log(1 + sigma L^2 tr K / alpha)) / (sigma
    max(gamma, min(1, beta tau_min))), with high probability if KORS is accurate (beta >= 3 log(n /
    delta) / eps^2, eps <= 1/2), against every f with |f(x_t)| <= C on the stream. gamma is in (0,
    1]; the loss has curvature (regression: labels in [-C, C]); tau_min in [0, 1) is the least
    leverage score of the rescaled points. Before the run take 0.

    Remarks
    -------
    Errata 10, 11 and 65. The proof has a further factor 1 / (1 - eps). For eps <= 1/2 the factor 2
    that the proof wastes elsewhere (errata 10) covers it.

    Examples
    --------
    >>> round(okl.theory.sketched_kons_bound(okl.Linear(), [[1.0], [1.0], [-1.0]], gamma=0.5), 3)
    40.401
    """
    X = inputs.as_inputs(X)
    sigma, L = _measure_curved(loss, C)
    dimension = _bound_log_det(kernel, X, alpha / (sigma * L**2))
    return alpha * norm**2 + dimension / (sigma * max(gamma, min(1.0, beta * tau_min)))


@checks_arguments()
def frequent_kons_bound(
    kernel: Any, X: ArrayLike, rank: int, loss: str = "squared", C: float = 1.0,
    alpha: float = 1.0, norm: float = 0.0,
) -> float:  # fmt: skip
    """Return the regret bound of FrequentKONS while its dictionary spans all points (ours).

    (alpha |f|^2 + (log det(I + sigma L^2 K / alpha) + 2 rank s / alpha) / sigma) / 2 against every
    f with |f(x_t)| <= C on the stream, for the step eta = sigma. s = min_{k <= rank} sum_{i > k}
    lambda_i / (rank + 1 - k), with the eigenvalues lambda_i of sigma L^2 K, bounds the shrinking of
    the sketch. It needs threshold 0, no drops, and a loss with curvature (regression: labels
    in [-C, C]); ``FrequentKONS.regret_bound`` always holds.

    Remarks
    -------
    docs/frequent_kons.md has the proof; s is of Ghashami et al. 2016.

    Examples
    --------
    >>> round(okl.theory.frequent_kons_bound(okl.Linear(), [[1.0], [1.0], [-1.0]], rank=1), 3)
    7.784
    """
    X = inputs.as_inputs(X)
    sigma, L = _measure_curved(loss, C)
    values = np.maximum(np.linalg.eigvalsh(kernel(X))[::-1], 0.0) * sigma * L**2
    tails = np.append(values[::-1].cumsum()[::-1], 0.0)[: rank + 1]  # sum of i > k
    shares = tails / (rank + 1.0 - np.arange(len(tails)))
    shrunk = float(shares.min()) if len(X) >= 2 * rank else 0.0
    log_det = float(np.log1p(values / alpha).sum()) + 2.0 * rank * shrunk / alpha
    return (alpha * norm**2 + log_det / sigma) / 2.0


@checks_arguments(m=partial(require_count, least=0))
def con_kons_bound(
    kernel: Any, X: ArrayLike, m: int, mu: float, loss: str = "squared", C: float = 1.0,
    alpha: float = 1.0, norm: float = 0.0,
) -> float:  # fmt: skip
    """Return the regret bound of CON-KONS with a dictionary of m atoms, without restarts (ours).

    (alpha |f|^2 + R) / 2 + L |f| sqrt(mu (m + 1) n) + sigma L^2 |f|^2 mu n / 2 against every f with
    |f(x_t)| <= C, for |(I - P_t) C_t (I - P_t)| <= mu in all rounds, as KORS has it (pkawv
    Proposition 5). sigma and L are of the loss on [-C - |f| sqrt(mu), C + |f| sqrt(mu)]. R is (2 /
    sigma) m log(1 + sigma L^2 tr K / (2 alpha m)), or where sigma L^2 (m + 1) mu <= alpha at most
    (4 / sigma) log det(I + sigma L^2 K / (2 alpha)).

    Remarks
    -------
    docs/frequent_kons.md has the proof. Forecasts are cut to +-(C + |f| dist_t).

    Examples
    --------
    >>> X = [[1.0], [1.0], [-1.0]]
    >>> round(okl.theory.con_kons_bound(okl.Linear(), X, m=1, mu=1e-6, norm=0.5), 3)
    11.231
    """
    X = inputs.as_inputs(X)
    sigma, L = _measure_curved(loss, C + norm * sqrt(mu))
    n, level = len(X), 2.0 * alpha / (sigma * L**2)
    R = 2.0 * m * log(1.0 + float(kernel.diag(X).sum()) / (level * max(m, 1)))
    if (m + 1) * mu <= level / 2.0:
        R = min(R, 4.0 * log_det(kernel, X, level))
    gap = L * norm * sqrt(mu * (m + 1) * n) + 0.5 * sigma * (L * norm) ** 2 * mu * n
    return (alpha * norm**2 + R / sigma) / 2.0 + gap


@checks_arguments(eps="(0, 1)")
def kors_size_bound(
    kernel: Any, X: ArrayLike, alpha: float = 1.0, beta: float = 1.0, eps: float = 0.5
) -> float:
    """Return 3 rho beta d_onl(alpha), rho = (1 + eps) / (1 - eps): KORS's size (kons Theorem 2).

    With high probability, for eps in (0, 1) and beta >= 3 log(n / delta) / eps^2. A bound above n
    says nothing, because the dictionary is never larger than the stream.

    Remarks
    -------
    Errata 12: statement and proof have different constants; this follows from part 3.

    Examples
    --------
    >>> round(okl.theory.kors_size_bound(okl.Linear(), [[1.0], [1.0]], alpha=2.0), 6)
    5.25
    """
    X = inputs.as_inputs(X)
    rho = (1.0 + eps) / (1.0 - eps)
    return 3.0 * rho * beta * online_effective_dimension(kernel, X, alpha)
