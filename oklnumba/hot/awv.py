"""Rounds of the Azoury-Warmuth-Vovk forecaster and of ridge regression (pkawv)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.jit import DONE, NOT_FINITE, hot
from oklnumba.hot.linalg import dot, solve_upper_transposed
from oklnumba.hot.rows import kernel_diag, kernel_row
from oklnumba.hot.udu import SWEEP, TOGETHER, factor_rounds, ridge_forecast, ridge_learn


@hot
def awv_rounds(Z, y, U, inv_d, c, work, ridge, forecasts, shrinks):
    """Play AWV (pkawv Algorithm 1) or ridge rounds on features.

    Z : (n, r), padded with zeros to r a multiple of LANES; y : (n,); U : (r, r), inv_d : (r,),
    c : (r,), the state, in place; work : (2 TOGETHER + 1, r), workspace; ridge : 1 for ridge
    forecasts, 0 for AWV; forecasts, shrinks : (n,), written: shrink is 1 + z' A^-1 z of the round.
    Returns (rounds played, status).
    """
    n, r = Z.shape
    rounds, betas, scan = work[:TOGETHER], work[TOGETHER : 2 * TOGETHER], work[2 * TOGETHER]
    a = np.empty(TOGETHER)
    t = 0
    while t < n:
        count = min(TOGETHER, (n - t) // SWEEP * SWEEP)
        count = max(count, 1)
        for s in range(count):
            a[s] = 1.0
            target = rounds[s]
            source = Z[t + s]
            for j in range(r):
                target[j] = source[j]
        factor_rounds(U, inv_d, rounds, betas, a, count, r)
        for s in range(count):
            m = ridge_forecast(rounds[s], c, scan, r)
            if not abs(m / a[s]) < np.inf:
                return t + s, NOT_FINITE
            forecasts[t + s] = m if ridge else m / a[s]
            shrinks[t + s] = a[s]
            ridge_learn(y[t + s], betas[s], c, scan, r)
        t += count
    return n, DONE


@hot
def awv_forecasts(Z, U, inv_d, c, work, ridge, forecasts):
    """Write what AWV or ridge would forecast for each row of Z; arguments as in awv_rounds."""
    n, r = Z.shape
    p = work[0]
    for t in range(n):
        for j in range(r):
            p[j] = Z[t, j]
        solve_upper_transposed(U, p, r)
        a = 1.0
        for k in range(r):
            a += inv_d[k] * p[k] * p[k]
        m = ridge_forecast(p, c, work[1], r)
        forecasts[t] = m if ridge else m / a


@hot
def certify(y, forecasts, shrinks, growth, totals, loss, comparator, bound):
    """Write the certificate of AWV or ridge rounds (pkawv Proposition 1, with exact comparators).

    With m = forecast * shrink the ridge forecast (AWV), a round adds (y - m)^2 / shrink to the
    penalised loss of the best function in hindsight, and log(shrink) to log det. ``growth`` is what
    a growing space took off that loss.

    y, forecasts, shrinks, growth : (n,); totals : (6,), in place: loss, comparator, log det,
    growth, max |y|, and 1 for ridge forecasts, which have no bound; loss, comparator, bound : (n,),
    written.
    """
    ridge = totals[5]
    for t in range(y.shape[0]):
        s = shrinks[t]
        m = forecasts[t] if ridge else forecasts[t] * s
        totals[0] += (y[t] - forecasts[t]) ** 2
        totals[1] += (y[t] - m) ** 2 / s - growth[t]
        totals[2] += math.log(s)
        totals[3] += growth[t]
        totals[4] = max(totals[4], abs(y[t]))
        loss[t] = totals[0]
        comparator[t] = totals[1]
        bound[t] = np.nan if ridge else totals[4] * totals[4] * totals[2] + totals[3]


@hot
def kernel_awv_labels(L, u, y, first, lam, ridge, forecasts, shrinks):
    """Play the labels of rounds whose rows of L are known (pkawv eq. 3).

    m = k' (K + lam I)^-1 y is the ridge forecast, s = L_tt^2. AWV is ridge with the point (x_t, 0)
    added; its coefficient is -m / s, so the last equation of the system gives m lam / s.
    L : (cap, cap), lower factor of K + lam I; u : (cap,), L^-1 y, in place; y : (n,), labels of
    rows first, first + 1, ... of L; forecasts, shrinks : (n,), written. A label is read after its
    forecast is written.
    """
    for i in range(y.shape[0]):
        t = first + i
        m = dot(L[t, :t], u[:t], t)
        pivot = L[t, t]
        forecasts[i] = m if ridge else m * lam / (pivot * pivot)
        shrinks[i] = pivot * pivot / lam
        u[t] = (y[i] - m) / pivot


@hot
def kernel_awv_rows(code, par, X, past, first, lam, L):
    """Write the kernel rows of new rounds into L: k(x_i, x_j) for j <= i, with lam on the diagonal.

    X : (b, d), the rounds first, first + 1, ...; past : (d, cap), all inputs, these included; L :
    (cap, cap).
    """
    for i in range(X.shape[0]):
        t = first + i
        kernel_row(code, par, X[i], past, t, L[t])
        L[t, t] = kernel_diag(code, par, X[i]) + lam


@hot
def kernel_awv_forecasts(rows, corners, L, u, t, lam, ridge, forecasts):
    """Write what Kernel-AWV or ridge would forecast.

    rows : (n, t), L^-1 k(x, past); corners : (n,), k(x, x); forecasts : (n,), written.
    """
    for i in range(rows.shape[0]):
        m = dot(rows[i], u, t)
        rest = max(corners[i] - dot(rows[i], rows[i], t), 0.0)  # negative only by rounding
        forecasts[i] = m if ridge else m * lam / (lam + rest)
