"""Rounds of Pros-N-KONS and CON-KONS: the Newton step in the span of a growing dictionary.

Calandriello, Lazaric and Valko 2017 (NIPS), Algorithm 1:

    I = {}, w = 0, A = alpha I; for t = 1, ..., T:
        KORS looks at x_t and tosses a coin; if it keeps x_t:
            I = I + {x_t}; K_I = U S^2 U' gives a new map phi(x) = S^-1 U' k_I(x)
            w = 0, A = alpha I                # CON-KONS carries w and A over to the new map
        w = w - A^-1 phi_t h(phi_t.w) / (phi_t' A^-1 phi_t),   h(z) = sign(z) max(|z| - C, 0)
        yhat_t = phi_t.w;   g_t = l'(yhat_t) phi_t
        A = A + (eta / 2) g_t g_t';   w = w - A^-1 g_t

Our map is phi(x) = R^-T k_I(x) with K_I = R'R, a rotation of the paper's. Larger dictionaries only
append coordinates, so CON-KONS carries w and A over unchanged. A and w are kept as in newton.py.
"""

import math

from oklnumba.hot.newton import newton_round
from oklnumba.hot.primitives.dictionary import (
    adds_direction,
    joining_probability,
    keep_point,
    span_coordinates,
    span_distance,
    span_grow,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import dot, solve_upper_transposed
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row
from oklnumba.hot.primitives.udu import pad

# Entries of the counts after ATOMS: rank of the atoms' span, restarts.
RANK, RESTARTS = 1, 2


@hot
def reset_factor(factor, alpha, rank):
    """Set w = 0 and A = alpha I on the first ``rank`` directions."""
    U, inv_d, c = factor
    inv_d[:rank] = 1.0 / alpha
    c[:rank] = 0.0
    for k in range(rank):
        U[k, k + 1 : rank] = 0.0


@hot
def pros_n_kons_rounds(
    X, y, coins, first, kernel, loss, setting, counts, dictionary, factor, work, out
):
    """Play Pros-N-KONS or, without restarts, CON-KONS.

    setting : (C, alpha, eta, rule of joining_probability, restart); dictionary : that of
    dictionary.py; factor : U (cap, cap), inv_d and c (cap,), as in newton.py; work : (7, cap).
    """
    C, alpha, eta, rule, restart = setting
    atoms, weights, kors, span, R = dictionary
    inv_d, (forecasts, sizes) = factor[1], out
    row, b, q, newton = work[0], work[1], work[2], work[3:7]
    for t in range(first, y.shape[0]):
        m, rank = counts[ATOMS], counts[RANK]
        if m == weights.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        span_coordinates(row, span, R, q, rank)
        probability = joining_probability(rule, row, weights, kors, b, corner, m)
        if not probability >= 0.0:
            return t, NOT_FINITE
        if coins[t] < probability:
            if restart and m > 0:
                reset_factor(factor, alpha, rank)
                counts[RESTARTS] += 1
            rho_square = span_distance(q, corner, rank)
            if adds_direction(R, q, rho_square, corner, newton[0], rank):
                span_grow(R, span, q, math.sqrt(rho_square), corner, rank, m)
                inv_d[rank] = 1.0 / alpha  # as padding, rounding may have changed it
                counts[RANK] = rank = rank + 1
            if not keep_point(rule, x, corner, probability, counts, dictionary, b):
                return t, NOT_POSITIVE
        sizes[t], forecasts[t] = counts[ATOMS], 0.0
        if rank == 0:
            continue
        padded = pad(q, rank)
        status = newton_round(  # the projected step; A grows by eta / 2 g g'
            q[:padded], y[t], loss, 0.5 * eta, C, factor, newton, forecasts[t : t + 1]
        )
        if status != DONE:
            return t, status
    return y.shape[0], DONE


@hot
def pros_n_kons_forecasts(X, coin, kernel, setting, counts, dictionary, factor, work, forecasts):
    """Write what Pros-N-KONS would forecast for each row of X with the next round's coin.

    Where the coin would keep x, a restart makes the forecast 0; without restarts the new direction
    has no weight yet.
    """
    C, _, _, rule, restart = setting
    atoms, weights, kors, span, R = dictionary
    U, _, c = factor
    row, b, q = work[0], work[1], work[2]
    m, rank = counts[ATOMS], counts[RANK]
    for t in range(X.shape[0]):
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        span_coordinates(row, span, R, q, rank)
        solve_upper_transposed(U, q, rank)
        forecasts[t] = smaller(larger(dot(q, c, rank), -C), C)
        if restart:
            corner = kernel_diag(kernel, x)
            if coin < joining_probability(rule, row, weights, kors, b, corner, m):
                forecasts[t] = 0.0
