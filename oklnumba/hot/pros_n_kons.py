"""Rounds of Pros-N-KONS and CON-KONS: the Newton step in the span of a dictionary."""

from __future__ import annotations

import math

from oklnumba.hot.dictionary import (
    NULL_DIRECTION,
    kors_keep,
    kors_probability,
    span_coordinates,
    span_grow,
)
from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import dot, solve_upper_transposed
from oklnumba.hot.newton import newton_round
from oklnumba.hot.rows import kernel_diag, kernel_row, put_atom
from oklnumba.hot.udu import LANES


@hot
def pros_n_kons_rounds(
    X, y, coins, first, code, par, loss, setting, state, atoms, weights, dictionary, span, R, U,
    inv_d, c, work, forecasts, sizes,
):  # fmt: skip
    """Play Pros-N-KONS or, without restarts, CON-KONS from row ``first``.

    Calandriello, Lazaric and Valko 2017 (NIPS), Algorithm 1, in coordinates in which the kernel
    matrix of the span is the identity; they are nested, so that carrying w and A over to a larger
    dictionary leaves them as they are.
    setting : (C, alpha, eta, mu, beta, eps, restart); state : (3,) integers, dictionary size, rank
    of its span, restarts; KORS's arrays and the span's as in nystrom_awv_rounds, U, inv_d, c as in
    newton_rounds; work : (7, cap). Returns (rounds played, status).
    """
    C, alpha, eta, mu, beta, eps, restart = setting
    row, b, q, newton = work[0], work[1], work[2], work[3:7]
    for t in range(first, y.shape[0]):
        m, rank = state[0], state[1]
        if m == weights.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        span_coordinates(row, span, R, q, rank)
        probability = kors_probability(row, weights, dictionary, b, corner, mu, beta, eps, m)
        if not probability >= 0.0:
            return t, NOT_FINITE
        if coins[t] < probability:
            if restart and m > 0:
                for k in range(rank):
                    inv_d[k] = 1.0 / alpha
                    c[k] = 0.0
                    tail = U[k, k + 1 : rank]
                    for j in range(tail.shape[0]):
                        tail[j] = 0.0
                state[2] += 1
            rho_square = corner - dot(q, q, rank)
            if rho_square > NULL_DIRECTION * corner:
                span_grow(R, span, q, math.sqrt(rho_square), rank, m)
                inv_d[rank] = 1.0 / alpha  # as padding it may have been touched by rounding
                rank += 1
                state[1] = rank
            if not kors_keep(weights, dictionary, b, corner, mu, probability, m) > 0.0:
                return t, NOT_POSITIVE
            put_atom(atoms, m, x)
            state[0] = m + 1
        sizes[t] = state[0]
        forecasts[t] = 0.0
        padded = (rank + LANES - 1) // LANES * LANES
        if padded == 0:
            continue
        for j in range(rank, padded):
            q[j] = 0.0
        status = newton_round(
            q[:padded], y[t], loss, 0.5 * eta, C, U, inv_d, c, newton, forecasts[t : t + 1]
        )
        if status != DONE:
            return t, status
    return y.shape[0], DONE


@hot
def pros_n_kons_forecasts(
    X, coin, code, par, setting, state, atoms, weights, dictionary, span, R, U, inv_d, c, work,
    forecasts,
):  # fmt: skip
    """Write what Pros-N-KONS would forecast for each row of X with the next round's coin.

    Where the coin would keep x, a restart forecasts 0, and without restarts the new direction has
    no weight yet. Arguments as in pros_n_kons_rounds.
    """
    C, alpha, eta, mu, beta, eps, restart = setting
    row, b, q = work[0], work[1], work[2]
    m, rank = state[0], state[1]
    for t in range(X.shape[0]):
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        span_coordinates(row, span, R, q, rank)
        solve_upper_transposed(U, q, rank)
        forecasts[t] = min(max(dot(q, c, rank), -C), C)
        if restart:
            corner = kernel_diag(code, par, x)
            if coin < kors_probability(row, weights, dictionary, b, corner, mu, beta, eps, m):
                forecasts[t] = 0.0
