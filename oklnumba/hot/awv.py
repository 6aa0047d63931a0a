"""Rounds of the Azoury-Warmuth-Vovk forecaster (AWV) and of ridge regression.

PKAWV, on fixed features (Jezequel, Gaillard and Rudi 2019, "pkawv", Algorithm 1; errata 21):

    A_0 = lam I, b_0 = 0; for t = 1, ..., n:
        z_t = phi(x_t)                                       # the caller writes the features
        A_t^-1 = A_{t-1}^-1 - (A_{t-1}^-1 z_t)(A_{t-1}^-1 z_t)' / (1 + z_t' A_{t-1}^-1 z_t)
        yhat_t = z_t' A_t^-1 b_{t-1}                         # ridge: z_t' A_{t-1}^-1 b_{t-1}
        b_t = b_{t-1} + y_t z_t

Instead of A^-1 we keep A = U' D U and c = D^-1 U^-T b: half the work, and no drift. With
p = U^-T z_t, U before the round, the ridge forecast is m = p.c, and AWV's is m / a,
a = 1 + z_t' A_{t-1}^-1 z_t. So z_t may enter A, which needs no label, before m is computed. Then
c_k += beta_k (y_t - sum_{i<=k} p_i c_i), beta of hot/primitives/udu.py. A discount g multiplies
A_{t-1} and b_{t-1} before the round (Jacobsen and Cutkosky 2024): D <- max(g D, lam), while U and c
stay. So forgetting moves no estimate A^-1 b, and does not undo the penalty.

Rounds, awv_rounds:

    add_rounds         p, beta and a of rounds that share a pass over U, which takes their z z'; of
                       a single row that was forecast p is there, and waits with it (factor.py)
    ridge_forecast     m;   the forecast is m, or m / a
    ridge_learn        c takes y and beta
    certify            from y, a and the forecast: loss, best function's loss, bound

A forecast before the round, awv_forecasts:

    solve_points       U takes a round that waits; p, which is kept for the coming round
    find_each_a        a
    ridge_forecast     m;   the forecast is m, or m / a

SelfTuning plays awv_rounds too, and only it uses NaN labels, of rows that are forecast among others
that are learned (``learns``), and fewer ``compared`` columns than r.
"""

from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.factor import Factor, add_rounds, solve_points
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, UNBOUNDED, Array, exact, hot
from oklnumba.hot.primitives.udu import SWEEP, ridge_forecast, ridge_learn

ROUNDING = 1e-12  # of the sums below, as a share of the loss: regret and bound may be equal


class Stretch(NamedTuple):
    """Rounds first to stop, and the columns of their features."""

    first: int
    stop: int
    r: int  # columns in use, a multiple of LANES: zeros follow the last feature
    compared: int  # columns of the certificate's comparators: r; fewer only in SelfTuning


class AWVResults(NamedTuple):
    """What each round writes; K labels per round."""

    forecasts: Array  # (n, K): m / a, or m if ridge
    ridge: Array  # (n, K): m, which SelfTuning reads
    a: Array  # (n,): a = 1 + z' A_{t-1}^-1 z; in Kernel-AWV (kernel_awv.py) L_tt^2 / lam
    # (n, K): comes off (y - m)^2 / a: by columns that are not compared, or by a new direction of
    # NystromAWV; else 0
    growth: Array


class FeatureState(NamedTuple):
    """AWV or ridge regression on features."""

    factor: Factor
    totals: Annotated[Array, "outputs", "totals", UNBOUNDED]  # of the certificate


class Certificate(NamedTuple):
    """The certificate after each round, and the sums it comes from."""

    totals: Array  # (K, totals)
    loss: Array  # (n, K)
    comparator: Array  # (n, K): penalised loss of the best function so far
    bound: Array  # (n, K), on the difference


# Totals: loss; penalised loss of the best function; bound on AWV's extra loss; comparator gained by
# new columns; max |y|.
LOSS, BEST, EXCESS, GROWTH, LARGEST = range(5)


# ---- AWV on features ----


@hot
def awv_rounds(Z, Y, stretch, factor, forgetting, work, is_ridge, out, certificate):
    """Play AWV (pkawv Algorithm 1) or ridge rounds on features, then certify them.

    Z : (n, >= r); Y : (n, K), NaN in rows that are only forecast. A needs no labels, so T rounds
    that share a pass enter it together; c learns them one by one. Any T gives the same bits.
    ``out.growth`` is read if compared = r, where PKAWV has zeros; else it is written here.
    """
    t, r, compared = stretch.first, stretch.r, stretch.compared
    while t < stretch.stop:
        count = smaller(stretch.stop - t, work.a.shape[0])
        add_rounds(Z, Y, t, count, r, factor, forgetting, work)  # A_t = g A_{t-1} + z_t z_t'
        for s in range(count):
            p, beta, learns = work.p[s], work.beta[s], work.a[s] != 0.0
            if not learns:  # its label is NaN, and its beta the 1 / D that it found
                work.a[s] = find_a(p, beta, r)
            out.a[t + s] = work.a[s]
            for k in range(Y.shape[1]):
                y, c = Y[t + s, k], factor.c[k]
                a = work.a[s]  # read for each k, or LLVM turns m / a into m times 1 / a if K > 1
                m = ridge_forecast(p, c, work.scan, r)  # z_t' (g A_{t-1})^-1 g b_{t-1}
                out.ridge[t + s, k] = m
                out.forecasts[t + s, k] = m if is_ridge else m / a  # z_t' A_t^-1 g b_{t-1}, eq. 4
                if not learns:
                    continue
                if not abs(m / a) < np.inf:
                    return t + s, NOT_FINITE
                if compared < r:
                    out.growth[t + s, k] = measure_growth(y, m, a, p, beta, c, compared, r)
                ridge_learn(y, beta, c, work.scan, r)  # b_t = g b_{t-1} + y_t z_t
        t += count
    certify(Y, stretch.first, stretch.stop, is_ridge, out, forgetting.discount, certificate)
    return stretch.stop, DONE


@hot
def measure_growth(y, m, a, p, beta, c, compared, r):
    """Return by how much columns from ``compared`` on raise the best function's loss of a round.

    That loss is (y - m)^2 / a. Without these columns m lacks their p_j c_j, and a their factors
    a' / a of udu.py: a / a' = 1 - p beta.
    """
    m_before, a_before = m, a
    for j in range(compared, r):
        m_before -= p[j] * c[j]
        a_before *= 1.0 - p[j] * beta[j]
    return (y - m) * (y - m) / a - (y - m_before) * (y - m_before) / a_before


@exact
def find_a(p, inv_d, r):
    """Return a = 1 + z' A_{t-1}^-1 z, given p = U^-T z: the sum of a round's learn_pivot."""
    a = 1.0
    for j in range(r):
        a = inv_d[j] * p[j] * p[j] + a
    return a


@exact
def find_each_a(p, inv_d, count, r, a):
    """Write find_a of the first ``count`` rows of p, three at a time."""
    stop = count // SWEEP * SWEEP
    for s in range(0, stop, SWEEP):
        p0, p1, p2 = p[s], p[s + 1], p[s + 2]
        a0 = a1 = a2 = 1.0
        for j in range(r):
            d = inv_d[j]
            a0 = d * p0[j] * p0[j] + a0
            a1 = d * p1[j] * p1[j] + a1
            a2 = d * p2[j] * p2[j] + a2
        a[s], a[s + 1], a[s + 2] = a0, a1, a2
    for s in range(stop, count):
        a[s] = find_a(p[s], inv_d, r)


@hot
def awv_forecasts(Z, stretch, factor, forgetting, work, is_ridge, out):
    """Write what AWV or ridge would forecast for these rows of Z, growth excepted."""
    t, r, c = stretch.first, stretch.r, factor.c
    while t < stretch.stop:
        count = smaller(stretch.stop - t, work.a.shape[0])
        solve_points(Z, t, count, r, factor, forgetting, work)
        find_each_a(work.p, factor.inv_d, count, r, out.a[t:])
        for s in range(count):
            p = work.p[s]
            for k in range(c.shape[0]):
                m = ridge_forecast(p, c[k], work.scan, r)
                out.ridge[t + s, k] = m
                # a is read for each k, as above.
                out.forecasts[t + s, k] = m if is_ridge else m / out.a[t + s]
        t += count


# ---- the certificate ----


@hot
def certify(Y, first, stop, is_ridge, results, discount, certificate):
    """Write the certificate of AWV or ridge rounds: pkawv Proposition 1 with exact comparators.

    A round adds (y - m)^2 / a to the penalised loss of the best function in hindsight, and
    y^2 z' A_t^-1 z = y^2 (1 - 1/a) to the bound: the paper bounds their sum by max y^2 log a. A
    discount multiplies all sums before the round. The bound holds whatever the past, for
    (y - m/a)^2 - (y - m)^2 / a = y^2 (1 - 1/a) - (m/a)^2 (a - 1). Ridge forecasts m add
    (y - m)^2 (1 - 1/a), the regret itself (Zhdanov and Kalnishkan 2010).
    """
    loss, comparator, bound = certificate.loss, certificate.comparator, certificate.bound
    for k in range(Y.shape[1]):
        total = certificate.totals[k]
        for t in range(first, stop):
            a, y, forecast = results.a[t], Y[t, k], results.forecasts[t, k]
            if y != y:
                continue
            if discount < 1.0:  # a branch, so that discount 1 leaves the bits of the sums below
                for i in range(LOSS, GROWTH + 1):
                    total[i] *= discount
            # Not results.ridge: so the identity above holds of the forecast as it was rounded.
            m = forecast if is_ridge else forecast * a
            growth = results.growth[t, k]
            total[LOSS] += (y - forecast) * (y - forecast)
            total[BEST] += (y - m) * (y - m) / a - growth
            error = y - m if is_ridge else y
            total[EXCESS] += error * error * ((a - 1.0) / a)
            total[GROWTH] += growth
            total[LARGEST] = larger(total[LARGEST], abs(y))
            loss[t, k], comparator[t, k] = total[LOSS], total[BEST]
            rounded = ROUNDING * total[LOSS]
            bound[t, k] = total[EXCESS] + total[GROWTH] + rounded
