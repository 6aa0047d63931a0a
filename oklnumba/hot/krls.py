"""Rounds of kernel recursive least squares (KRLS).

Engel, Mannor and Meir 2004:

    D = {}; for t = 1, ..., n:
        yhat_t = sum_{j in D} alpha_j k(x_j, x_t)
        a_t = K^-1 k_t;   delta_t = k_tt - k_t' a_t          # k_t and K over D
        if delta_t > nu:   D = D + {x_t};   a_t = (0, ..., 0, 1)
        alpha = argmin sum_{s<=t} (y_s - a_s' K alpha)^2

The paper updates K^-1 and (sum a a')^-1 by their inverses. Here K = R'R, rounds have the
coordinates q_s = R a_s = R^-T k_s, and Q'Q = sum q q', Q'z = sum y q grow by rotations.
"""

import math

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual, own_coordinate
from oklnumba.hot.primitives.expansion import expansion_value
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, hot
from oklnumba.hot.primitives.linalg import solve_upper
from oklnumba.hot.primitives.rows import kernel_diag, put_atom


@hot
def least_squares_row(Q, z, x, y, m):
    """Add the row (x, y) to Q, z in place: Q'Q = sum x x', Q upper triangular, Q'z = sum y x."""
    for k in range(m):
        old, new = Q[k, k], x[k]
        t = math.sqrt(old * old + new * new)
        if t == 0.0:
            continue
        c, s = old / t, new / t
        Q[k, k] = t
        row, rest = Q[k, k + 1 : m], x[k + 1 : m]
        for j in range(rest.shape[0]):
            u, v = row[j], rest[j]
            row[j] = c * u + s * v
            rest[j] = c * v - s * u
        u = z[k]
        z[k] = c * u + s * y
        y = c * y - s * u


@hot
def krls_rounds(X, y, first, kernel, threshold, counts, function, squares, work, out):
    """Play KRLS.

    function : atoms (d, cap), a (cap,), which is alpha, and R (cap, cap), upper factor of the
    atoms' kernel matrix; squares : Q (cap, cap) and z (cap,); work : (2, cap).
    """
    atoms, a, R = function
    Q, z = squares
    forecasts, sizes = out
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == a.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        forecasts[t] = forecast = expansion_value(kernel, (atoms, a), m, x, row)
        corner = kernel_diag(kernel, x)
        if not (abs(forecast) < np.inf and corner < np.inf):
            return t, NOT_FINITE
        rest = ald_residual(R, row, corner, q, m)  # delta_t; q = R a_t
        if rest > IN_SPAN * corner and (m == 0 or rest > threshold):
            ald_grow(R, q, corner, m)
            put_atom(atoms, m, x)
            q[m] = own_coordinate(R[m, m], corner)
            Q[: m + 1, m] = 0.0  # past rounds have coordinate 0 in the new direction
            z[m] = 0.0
            counts[ATOMS] = m = m + 1
        least_squares_row(Q, z, q, y[t], m)
        for j in range(m):
            a[j] = z[j]
        solve_upper(Q, a, m)  # least squares over all rounds
        solve_upper(R, a, m)  # as coefficients of the atoms
        sizes[t] = m
    return X.shape[0], DONE
