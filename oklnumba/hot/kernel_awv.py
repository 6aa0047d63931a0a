"""Rounds of Kernel-AWV and kernel ridge regression, on all of the RKHS.

Jezequel, Gaillard and Rudi 2019 ("pkawv"), eq. 3, with L L' = K + lam I and u = L^-1 y, each with a
new row per round:

    f_t = argmin sum_{s<t} (y_s - f(x_s))^2 + lam |f|^2 + f(x_t)^2;   m_t = sum_{j<t} L_tj u_j
    yhat_t = f_t(x_t) = m_t lam / L_tt^2  (ridge: m_t);   u_t = (y_t - m_t) / L_tt

where L_tt^2 = lam + k(x_t, x_t) - k'(K + lam I)^-1 k, K and k of the past. A round, or a block:

    KernelAWV._write_rows   kernel_awv_rows: rows of K + lam I; append_rows (core/cholesky.py): of L
    kernel_awv_rounds       m_t, yhat_t; then, with y_t, u_t
    certify (hot/awv.py)    the certificate, with a = L_tt^2 / lam

A single forecast, where L has room, plays such a round with the label 0; if x comes next,
_write_rows finds its row of L. All other forecasts are made by kernel_awv_forecasts.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import ATOMS, LOWER, UNBOUNDED, Array, Integers, hot
from oklnumba.hot.primitives.linalg import dot
from oklnumba.hot.primitives.rows import PASS_ROWS, kernel_diag, kernel_rows


class KernelAWVState(NamedTuple):
    """L L' = K + lam I of the past, and u = L^-1 y."""

    past: Annotated[Array, "d", ATOMS]  # inputs
    u: Annotated[Array, "outputs", ATOMS]  # L^-1 y
    L: Annotated[Array, ATOMS, ATOMS, LOWER]
    totals: Annotated[Array, "outputs", "totals", UNBOUNDED]  # of the certificate (awv.py)
    counts: Annotated[Integers, "counts"]


@hot
def kernel_awv_rows(kernel, X, past, first, lam, L):
    """Write the rows of K + lam I of new rounds into L : (cap, cap), at least to the diagonal.

    X : (b, d), the rounds first, first + 1, ...; past : (d, cap), all inputs, X among them.
    """
    for i in range(0, X.shape[0], PASS_ROWS):
        stop = smaller(i + PASS_ROWS, X.shape[0])
        kernel_rows(kernel, X, i, stop, past, 0, first + stop, L, first + i)
    for i in range(X.shape[0]):
        L[first + i, first + i] = kernel_diag(kernel, X[i]) + lam


@hot
def kernel_awv_rounds(L, u, Y, first, lam, is_ridge, out):
    """Play rounds of Kernel-AWV (pkawv eq. 3), of one or more labels, whose rows of L are written.

    AWV is ridge with the point (x_t, 0) added: K alpha + lam alpha = (y, 0), K with x_t. So its
    forecast, the last entry of K alpha, is -lam alpha_t. L' alpha = L^-1 (y, 0) ends with
    -m / L_tt, so alpha_t = -m / L_tt^2.

    L : (cap, cap), lower factor of K + lam I; u : (outputs, cap), in place; Y : labels of the rows
    first, first + 1, ... of L. A label is read after its forecast is written.
    """
    for i in range(Y.shape[0]):
        t = first + i
        for k in range(Y.shape[1]):
            m = dot(L[t, :t], u[k, :t], t)
            L_tt = L[t, t]  # read for each k, or the compiler multiplies by one 1 / L_tt
            out.a[i], out.ridge[i, k] = L_tt * L_tt / lam, m
            out.forecasts[i, k] = m if is_ridge else m * lam / (L_tt * L_tt)
            u[k, t] = (Y[i, k] - m) / L_tt


@hot
def kernel_awv_forecasts(rows, deltas, u, t, lam, is_ridge, forecasts):
    """Write what Kernel-AWV or ridge would forecast.

    rows : (n, t), L^-1 k(x, past); deltas : (n,), k(x, x), replaced by k(x, x) - |row|^2.
    """
    for i in range(rows.shape[0]):
        deltas[i] = larger(deltas[i] - dot(rows[i], rows[i], t), 0.0)  # < 0 only by rounding
        for k in range(u.shape[0]):
            m = dot(rows[i], u[k], t)
            # deltas[i] is in memory, or the compiler multiplies by one 1 / (lam + delta).
            forecasts[i, k] = m if is_ridge else m * lam / (lam + deltas[i])
