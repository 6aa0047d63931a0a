"""Rounds of the Azoury-Warmuth-Vovk forecaster (AWV) and of ridge regression.

PKAWV on fixed features (Jezequel, Gaillard and Rudi 2019, "pkawv", Algorithm 1; errata 21):

    A_0 = lam I, b_0 = 0; for t = 1, ..., n:
        z_t = phi(x_t)                                       # the caller writes the features
        A_t^-1 = A_{t-1}^-1 - (A_{t-1}^-1 z_t)(A_{t-1}^-1 z_t)' / (1 + z_t' A_{t-1}^-1 z_t)
        yhat_t = z_t' A_t^-1 b_{t-1}                         # ridge: z_t' A_{t-1}^-1 b_{t-1}
        b_t = b_{t-1} + y_t z_t

Instead of A^-1 we keep A = U' D U (udu.py) and c = D^-1 U^-T b: half the work, and no drift. With
p = U^-T z_t the ridge forecast is m = p.c and AWV's m / a, a = 1 + z_t' A_{t-1}^-1 z_t. A discount
g multiplies A_{t-1} and b_{t-1} before the round (Jacobsen and Cutkosky 2024).

U is read once in a single forecast and its round: the forecast leaves p, from which the round finds
1 / D and c, and U waits for the next pass over it, mostly that of the next forecast. So ``factor``
is U (cap, cap) and inv_d (cap,), of g A (the past, discounted for the next round; at first I and
1 / lam), c (K, cap), and what a pass leaves: widths (2,), columns of the LATE round, which U and
inv_d lack, and of the row LOOKED at last, 0 for none; and rows (4, cap), these two, the latter's p,
and workspace. U and inv_d by themselves are those of all rounds after ``factor_late``.

Kernel-AWV (pkawv eq. 3), L L' = K + lam I and u = L^-1 y, each with a new row a round:

    f_t = argmin sum_{s<t} (y_s - f(x_s))^2 + lam |f|^2 + f(x_t)^2;   m_t = sum_{j<t} L_tj u_j
    yhat_t = f_t(x_t) = m_t lam / L_tt^2  (ridge: m_t);   u_t = (y_t - m_t) / L_tt
"""

import numpy as np

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, hot
from oklnumba.hot.primitives.linalg import dot
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row
from oklnumba.hot.primitives.udu import (
    SWEEP,
    factor_and_solve,
    factor_rounds,
    find_pivots,
    ridge_forecast,
    ridge_learn,
    solve_rounds,
)

# The certificate's running totals: loss, penalised loss of the best function, what AWV may lose
# more, what growing spaces took off, max |y|, and 1 for ridge forecasts, which have no bound.
LOSS, BEST, EXCESS, GROWTH, LARGEST, RIDGE = range(6)
LATE, LOOKED, SOLVED, BETA = range(4)  # rows, the first two also widths, that a pass leaves
ROUNDING = 1e-12  # of these sums, as a share of the loss: regret and bound may be equal


@hot
def factor_late(factor, setting):
    """Take the late round into U and inv_d, if there is one; ``setting`` as in awv_rounds."""
    U, inv_d, _, (widths, kept) = factor
    if widths[LATE] > 0:
        a = kept[SOLVED]
        a[0] = 1.0
        factor_rounds(U, inv_d, setting, kept, kept[BETA:], a, 1, widths[LATE])
        widths[LATE] = 0


@hot
def look_at(rounds, factor, setting, r):
    """Turn z = rounds[0] into p = U^-T z, and keep both for the round of z, which may follow."""
    U, inv_d, _, (widths, kept) = factor
    p = rounds[0]
    for j in range(r):
        kept[LOOKED, j] = p[j]
    if widths[LATE] == r:
        factor_and_solve(U, inv_d, setting, kept[LATE], kept[BETA], p, r)
        widths[LATE] = 0
    else:
        factor_late(factor, setting)
        solve_rounds(U, rounds, 1, r)
    widths[LOOKED] = r
    for j in range(r):
        kept[SOLVED, j] = p[j]


@hot
def take_looked_at(z, late, r):
    """Make z the late row if it is the one looked at last; say whether it is. Forget that one."""
    widths, kept = late
    same = widths[LOOKED] == r
    widths[LOOKED] = 0
    if same:
        for j in range(r):
            same = same & (z[j] == kept[LOOKED, j])
            kept[LATE, j] = z[j]
    if same:
        widths[LATE] = r
    return same


@hot
def late_gain(y, m, a, p, beta, c, own, r):
    """Return what columns from ``own`` on take off the best function's loss in a round.

    (y - m)^2 / a of all columns less that of the first ``own``; 1 - p beta is a / a' of udu.py.
    """
    own_m, own_a = m, a
    for j in range(own, r):
        own_m -= p[j] * c[j]
        own_a *= 1.0 - p[j] * beta[j]
    return (y - m) * (y - m) / a - (y - own_m) * (y - own_m) / own_a


@hot
def awv_rounds(Z, Y, span, factor, setting, work, ridge, own, out):
    """Play AWV (pkawv Algorithm 1) or ridge rounds on features, with K labels a round.

    Z : (n, >= r), zero from the last feature up to r; Y : (n, K); span : (first, stop, r), the
    rounds from first up to stop are played on r columns, a multiple of LANES; setting : (1 / g,
    1 / lam), g the discount; work : (2 T + 1, cap) and (T,), for T rounds that share a pass over U,
    T a multiple of SWEEP (any T gives the same bits); ridge : 1 for ridge forecasts, 0 for AWV; own
    : columns of the functions to compare with, the others (own < r) serve the forecasts only; out :
    forecasts and ridge forecasts m (n, K), shrinks a = 1 + z' (g A)^-1 z (n,), and growth (n, K) of
    certify, written if own < r.
    """
    U, inv_d, c, late = factor
    rows, a = work
    t, stop, r = span
    together = a.shape[0]
    rounds, betas, scan = rows, rows[together:], rows[2 * together]
    forecasts, ridge_forecasts, shrinks, growth = out
    while t < stop:
        count = (stop - t) // SWEEP * SWEEP or 1
        if count > together:
            count = together
        if count == 1 and take_looked_at(Z[t], late, r):
            for j in range(r):
                rounds[0, j] = late[1][SOLVED, j]
            a[0] = find_pivots(rounds[0], inv_d, setting, betas[0], r)
        else:
            factor_late(factor, setting)
            late[0][LOOKED] = 0
            for s in range(count):
                a[s] = 1.0
                for j in range(r):
                    rounds[s, j] = Z[t + s, j]
            factor_rounds(U, inv_d, setting, rounds, betas, a, count, r)  # A_t = g A_{t-1} + z z'
        for s in range(count):
            p, beta = rounds[s], betas[s]
            shrinks[t + s] = a[s]
            for k in range(Y.shape[1]):
                y, ck = Y[t + s, k], c[k]
                m = ridge_forecast(p, ck, scan, r)  # z' (g A_{t-1})^-1 g b_{t-1}
                if not abs(m / a[s]) < np.inf:
                    return t + s, NOT_FINITE
                ridge_forecasts[t + s, k] = m
                forecasts[t + s, k] = m if ridge else m / a[s]  # z' A_t^-1 g b_{t-1}, eq. 4
                if own < r:
                    growth[t + s, k] = late_gain(y, m, a[s], p, beta, ck, own, r)
                ridge_learn(y, beta, ck, scan, r)  # b_t = g b_{t-1} + y_t z
        t += count
    return stop, DONE


@hot
def awv_forecasts(Z, span, factor, setting, work, ridge, out):
    """Write what AWV or ridge would forecast for these rows of Z; arguments as in awv_rounds."""
    U, inv_d, c, _ = factor
    rows, a = work
    t, stop, r = span
    together = a.shape[0]
    rounds, scan = rows, rows[2 * together]
    forecasts, ridge_forecasts, shrinks = out
    while t < stop:
        count = (stop - t) // SWEEP * SWEEP or 1
        if count > together:
            count = together
        for s in range(count):
            for j in range(r):
                rounds[s, j] = Z[t + s, j]
        if count == 1:
            look_at(rounds, factor, setting, r)
        else:
            factor_late(factor, setting)
            solve_rounds(U, rounds, count, r)
        for s in range(count):
            p = rounds[s]
            shrink = 1.0
            for k in range(r):
                shrink += inv_d[k] * p[k] * p[k]
            shrinks[t + s] = shrink
            for k in range(c.shape[0]):
                m = ridge_forecast(p, c[k], scan, r)
                ridge_forecasts[t + s, k] = m
                # Read from memory, so that the compiler does not multiply by one 1 / shrink.
                forecasts[t + s, k] = m if ridge else m / shrinks[t + s]
        t += count


@hot
def certify(Y, span, forecasts, shrinks, growth, discount, totals, proof):
    """Write the certificate of AWV or ridge rounds: pkawv Proposition 1 with exact comparators.

    With m the ridge forecast and s the shrink, a round adds (y - m)^2 / s to the penalised loss of
    the best function in hindsight, and y^2 z' A_t^-1 z = y^2 (1 - 1/s) to the bound, which the
    proof takes up to max y^2 log s. A discount multiplies all sums before the round; the bound
    holds, as (y - m/s)^2 - (y - m)^2 / s = y^2 (1 - 1/s) - (m/s)^2 (s - 1) whatever the past.

    growth : (n, K), what a growing space took off that loss; totals : (K, 6), in place; others as
    in awv_rounds; proof : loss, comparator and bound after each round, (n, K), written.
    """
    loss, comparator, bound = proof
    for k in range(Y.shape[1]):
        total = totals[k]
        ridge = total[RIDGE]
        for t in range(span[0], span[1]):
            if discount < 1.0:  # a branch, so that discount 1 leaves the bits of the sums below
                for entry in range(LOSS, GROWTH + 1):
                    total[entry] *= discount
            s, y, forecast, grown = shrinks[t], Y[t, k], forecasts[t, k], growth[t, k]
            m = forecast if ridge else forecast * s
            apart, from_ridge = y - forecast, y - m
            total[LOSS] += apart * apart
            total[BEST] += from_ridge * from_ridge / s - grown
            total[EXCESS] += y * y * ((s - 1.0) / s)
            total[GROWTH] += grown
            total[LARGEST] = larger(total[LARGEST], abs(y))
            loss[t, k] = total[LOSS]
            comparator[t, k] = total[BEST]
            rounded = ROUNDING * total[LOSS]
            bound[t, k] = np.nan if ridge else total[EXCESS] + total[GROWTH] + rounded


@hot
def awv_certified_rounds(
    Z, Y, span, factor, setting, work, ridge, own, discount, totals, out, proof
):
    """Play rounds as awv_rounds does, then certify them; growth is zeros if own = r."""
    played, status = awv_rounds(Z, Y, span, factor, setting, work, ridge, own, out)
    if status == DONE:
        certify(Y, span, out[0], out[2], out[3], discount, totals, proof)
    return played, status


@hot
def kernel_awv_labels(L, u, Y, first, lam, ridge, forecasts, shrinks):
    """Play rounds of Kernel-AWV (pkawv eq. 3) whose rows of L are known, with K labels a round.

    AWV is ridge with the point (x_t, 0) added; that point's coefficient is -m / s, s = L_tt^2, so
    the last equation of the system gives m lam / s.

    L : (cap, cap), lower factor of K + lam I; u : (K, cap), L^-1 y of each output, in place; Y :
    labels of the rows first, first + 1, ... of L. A label is read after its forecast is written.
    """
    for i in range(Y.shape[0]):
        t = first + i
        for k in range(Y.shape[1]):
            m = dot(L[t, :t], u[k, :t], t)
            pivot = L[t, t]  # read for each k, so that no one multiplies by one 1 / pivot
            shrinks[i] = pivot * pivot / lam
            forecasts[i, k] = m if ridge else m * lam / (pivot * pivot)
            u[k, t] = (Y[i, k] - m) / pivot


@hot
def kernel_awv_rows(kernel, X, past, first, lam, L):
    """Write the kernel rows of new rounds into L : (cap, cap), with lam on the diagonal.

    X : (b, d), the rounds first, first + 1, ...; past : (d, cap), all inputs, X among them.
    """
    for i in range(X.shape[0]):
        t = first + i
        kernel_row(kernel, X[i], past, t, L[t])
        L[t, t] = kernel_diag(kernel, X[i]) + lam


@hot
def kernel_awv_forecasts(rows, corners, L, u, t, lam, ridge, forecasts):
    """Write what Kernel-AWV or ridge would forecast.

    rows : (n, t), L^-1 k(x, past); corners : (n,), k(x, x), replaced by k(x, x) - |row|^2.
    """
    for i in range(rows.shape[0]):
        rest = larger(corners[i] - dot(rows[i], rows[i], t), 0.0)  # negative only by rounding
        corners[i] = rest
        for k in range(u.shape[0]):
            m = dot(rows[i], u[k], t)
            forecasts[i, k] = m if ridge else m * lam / (lam + corners[i])
