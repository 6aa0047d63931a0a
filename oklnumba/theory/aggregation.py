"""Bounds of Experts: exponential weights, fixed share, labels without a given bound, ML-Poly."""

from functools import partial
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.core import checks, inputs
from oklnumba.hot.experts import SMALLEST
from oklnumba.theory.arguments import checks_arguments


def _find_rate(B: float | None, kind: str, y: ArrayLike | None) -> tuple[float, float]:
    """Return 1 / eta of the last round, and the terms for changes of the bound on the labels."""
    bounded = isinstance(kind, str) and kind in ("aggregating", "average")
    checks.require(bounded, "kind", kind, "'aggregating' or 'average'")
    factor = 2 if kind == "aggregating" else 8
    if B is not None:
        B = checks.require_positive("B", B)
        return factor * max(B**2, SMALLEST), 0.0  # as the learner's rate has it
    if y is None:
        raise ValueError("B=None needs the labels of the run: pass y")
    sizes = np.abs(inputs.as_point(y, name="y")[0])
    bounds = np.append(0.0, np.maximum.accumulate(sizes))  # B_1 = 0, B_2, ..., B_{n+1}
    growth = 2 * bounds[-1] ** 2 - (np.diff(bounds) ** 2).sum()
    return factor * max(bounds[-2] ** 2, SMALLEST), float(growth)


@checks_arguments(B=None)
def experts_bound(
    count: int, B: float | None = 1.0, kind: str = "aggregating", n: int = 1,
    y: ArrayLike | None = None,
) -> float:  # fmt: skip
    """Return the regret bound of Experts against the best of ``count`` learners.

    2 B^2 log N, 8 B^2 log N, or B (sqrt(2 n log N) + sqrt(log(N) / 8)) for "hedge" (Cesa-Bianchi
    and Lugosi 2006, Theorem 2.3). If B is learned, with B_t = max_{s<t} |y_s| the first two are

        2 B_n^2 log N + 2 B_{n+1}^2 - sum_t (B_{t+1} - B_t)^2  <=  2 max y^2 (1 + log N)

    and the same with 8 B_n^2 log N.

    N is ``count``. B=None needs the labels ``y`` of the run, and kind="hedge" the rounds ``n``; for
    "mlpoly" see mlpoly_bound.

    Remarks
    -------
    B=None is the clipping of Gerchinovitz and Yu 2014, with labels clipped in the update too.
    Proof: let c cut to [-B_t, B_t]. eta_t = 1/(2 B_t^2) falls, so by Vovk's argument the sum of
    (c(y_t) - p_t)^2 is at most any learner's sum of (c(y_t) - c(f_t))^2, plus log(N) / eta_n. If
    |y_t| > B_t, with d = B_{t+1} - B_t,

        (y_t - p_t)^2 - (c(y_t) - p_t)^2 = d (d + 2 |c(y_t) - p_t|) <= d^2 + 4 d B_t
                                         = 2 (B_{t+1}^2 - B_t^2) - d^2,

    and these sum to the last terms. Always (c(y_t) - c(f_t))^2 <= (y_t - f_t)^2.

    Examples
    --------
    >>> round(okl.theory.experts_bound(3), 6)
    2.197225
    >>> round(okl.theory.experts_bound(3, B=None, y=[0.5, -1.0, 0.7]), 6)
    3.697225
    """
    if isinstance(kind, str) and kind == "hedge":
        B = checks.require_positive("B", B)
        return B * (sqrt(2 * n * log(count)) + sqrt(log(count) / 8))
    cost, growth = _find_rate(B, kind, y)
    return float(cost * log(count) + growth)


@checks_arguments(B=None, switches=partial(checks.require_count, least=0))
def fixed_share_bound(
    count: int, n: int, switches: int, share: float, *, B: float | None = 1.0,
    kind: str = "aggregating", y: ArrayLike | None = None,
) -> float:  # fmt: skip
    """Return the bound of Experts with a share on the regret against sequences of learners.

    (1 / eta) [log N + k log(N / s) + (n - 1 - k) log(1 / (1 - s))] for any sequence of n learners
    with k switches (Herbster and Warmuth 1998), 1 / eta = 2 B^2, or 8 B^2 for "average". B=None:
    B_n in place of B, plus the growth of experts_bound. "hedge": 1 / eta = B sqrt(n / (8 log N)),
    plus B sqrt(n log(N) / 2).

    N is ``count``, k ``switches`` from one learner to another, and s the ``share``, in (0, 1), or 0
    if there is no switch. B, kind and y are as in experts_bound.

    Remarks
    -------
    With the share w_i <- (1 - s) w_i + s / N, a learner keeps at least 1 - s of its weight, and
    gets at least s / N. If the rate falls, w is first taken to the power a = eta_{t+1} / eta_t. As
    sum w^a <= N^(1 - a), log(1 / w_i) / eta grows by at most (1 / eta_{t+1} - 1 / eta_t) log N.
    With log(N) / eta_1 for the first weights this sums to at most the log(N) / eta_n above. For
    "hedge" the loss of a round is at most its mix loss + eta_t B^2 / 8 (Hoeffding).

    Examples
    --------
    >>> round(okl.theory.fixed_share_bound(3, 1000, switches=2, share=0.002), 4)
    35.4421
    """
    checks.require(switches < n, "switches", switches, f"less than the {n} rounds")
    s = checks.as_float(share)
    valid = 0.0 < s < 1.0 or s == switches == 0
    checks.require(valid, "share", share, "a number in (0, 1), or 0 where there is no switch")
    codes = log(count) - (n - 1 - switches) * np.log1p(-s)
    codes += switches * log(count / s) if switches else 0.0
    if not isinstance(kind, str) or kind != "hedge":
        cost, growth = _find_rate(B, kind, y)
        return float(cost * codes + growth)
    B = checks.require_positive("B", B)
    if count == 1:
        return 0.0
    return float(B * (sqrt(n / (8 * log(count))) * codes + sqrt(n * log(count) / 2)))


@checks_arguments()
def mlpoly_bound(
    experts: ArrayLike, forecasts: ArrayLike, y: ArrayLike, loss: str = "squared"
) -> np.ndarray:
    """Return the bound of Experts(kind="mlpoly") on the regret against each learner, shape (N,).

    sqrt((M + sum_t r_ti^2) Phi), r_ti = l'(p_t) (p_t - f_ti), M the largest r^2 of the run: a bound
    of second order (Gaillard, Stoltz and van Erven 2014) that needs no range. Phi <=
    N (1 + log(1 + n)) if the first round has the largest r^2; in general

        Phi_t = min(Phi_{t-1} + sum_i r_ti^2 / (M_{t-1} + V_{t-1,i}),
                    (sqrt(Phi_{t-1}) + sqrt(sum_i r_ti^2 / (M_t + V_ti)))^2),  V_ti = sum r_si^2.

    ``experts``, (n, N), are the learners' forecasts, ``forecasts``, (n,), the aggregate's.

    Remarks
    -------
    The paper has M = 1, a given bound; the authors' R package opera has the largest r^2 so far, as
    here. Proof for a growing M: Phi_t bounds sum_i (R_ti)_+^2 / (M_t + V_ti), with R the sums of r.
    The weights have sum_i w_i r_ti = 0, so with M_{t-1} for M_t the square (R + r)_+^2 <=
    (R_+ + r)^2 adds only the first sum, and larger M and V lower it. The second form is the
    triangle inequality, smaller if r_ti^2 is far above M_{t-1}.

    Examples
    --------
    >>> okl.theory.mlpoly_bound([[0.0, 1.0]], [0.5], [1.0]).round(6)
    array([0.707107, 0.707107])
    """
    F = inputs.as_inputs(experts, name="experts")
    p = inputs.as_values(forecasts, len(F), "forecasts")
    rule = losses.get(loss)
    labels = inputs.as_labels(y, len(F), rule.classes)
    slopes = np.array([rule.derivative(*pair) for pair in zip(p, labels, strict=True)])
    r = slopes[:, None] * (p[:, None] - F)
    unit = np.abs(r).max() or 1.0  # squares of labels to the fourth power soon underflow
    M, V, phi = 0.0, np.zeros(F.shape[1]), 0.0
    for squares in (r / unit) ** 2:
        if not squares.any():
            continue
        larger = max(M, squares.max())
        slow = (squares / (M + V)).sum() if M > 0.0 else np.inf
        V += squares
        fast = (squares / (larger + V)).sum()
        M, phi = larger, min(phi + slow, (sqrt(phi) + sqrt(fast)) ** 2)
    return unit * np.sqrt((M + V) * phi)
