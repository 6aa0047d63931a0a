"""Rounds of AWV on a growing Nystrom subspace (pkawv Algorithm 2)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.dictionary import (
    NULL_DIRECTION,
    kors_keep,
    kors_probability,
    span_coordinates,
    span_grow,
)
from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import dot, solve_upper_transposed
from oklnumba.hot.rows import kernel_diag, kernel_row, put_atom
from oklnumba.hot.udu import LANES, SWEEP, TILE, factor_rows_1, ridge_forecast, ridge_learn


@hot
def span_column(kernel, x, past, labels, t, q, rho, rank, column, Phi, moments):
    """Write the new direction's coordinate for all past rounds into Phi[:, rank], and its moments.

    The direction is (k(x, .) - its projection) / rho, and q : (cap,) the coordinates of that
    projection.
    past : (d, cap_n); labels : (cap_n,); column : (cap_n,), workspace; Phi : (cap_n, cap), in
    place;
    moments : (cap,), written: sum_s f_s Phi_s. Returns (sum f_s^2, sum f_s y_s).
    """
    kernel_row(kernel, x, past, t, column)
    for j in range(rank):
        moments[j] = 0.0
    square = 0.0
    label = 0.0
    for s in range(t):
        phi = Phi[s, :rank]
        f = (column[s] - dot(phi, q, rank)) / rho
        for j in range(rank):
            moments[j] += f * phi[j]
        square += f * f
        label += f * labels[s]
        Phi[s, rank] = f
    return square, label


@hot
def border_factor(U, inv_d, c, moments, corner, label, rank):
    """Add a column to the factor U' D U of A and to c: A gets the border (moments, corner).

    Returns what the new direction takes off the penalised loss of the best function, or -1 where
    the pivot is not positive (nothing valid has changed then).
    """
    solve_upper_transposed(U, moments, rank)
    pivot = corner
    for k in range(rank):
        pivot -= moments[k] * moments[k] * inv_d[k]
        label -= moments[k] * c[k]
    if not pivot > 0.0:
        return -1.0
    for k in range(rank):
        U[k, rank] = moments[k] * inv_d[k]
    inv_d[rank] = 1.0 / pivot
    c[rank] = label / pivot
    return label * label / pivot


@hot
def nystrom_awv_rounds(
    X, y, coins, first, kernel, setting, state, atoms, weights, C, span, R, past, labels, Phi,
    U, inv_d, c, work, column, forecasts, sizes, shrinks, growth,
):  # fmt: skip
    """Play Nystrom-AWV (pkawv Algorithm 2) with KORS from row ``first``.

    In coordinates in which the kernel matrix of the span is the identity.
    Arrays as in kors_rounds, awv_rounds and span_column; setting : (lam, mu, beta, eps, largest
    size, ridge);
    state : (3,) integers, rounds whose inputs are kept, dictionary size, rank of the span; work :
    (8, cap). Once the dictionary has its largest size, past inputs are no longer kept. Returns
    (rounds played, status).
    """
    lam, mu, beta, eps, largest, ridge = setting
    row, b, moments, scan = work[0], work[1], work[2], work[3]
    Z, B = work[4:5], work[5:6]
    q = Z[0]
    a = np.empty(SWEEP)
    for t in range(first, X.shape[0]):
        stored, m, rank = state[0], state[1], state[2]
        growing = m < largest
        if growing and (m + 1 > weights.shape[0] or stored == labels.shape[0]):
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        span_coordinates(row, span, R, q, rank)
        growth[t] = 0.0
        if growing:
            probability = kors_probability(row, weights, C, b, corner, mu, beta, eps, m)
            if not probability >= 0.0:
                return t, NOT_FINITE
            if coins[t] < probability:
                rho_square = corner - dot(q, q, rank)
                if rho_square > NULL_DIRECTION * corner:
                    rho = math.sqrt(rho_square)
                    square, label = span_column(
                        kernel, x, past, labels, stored, q, rho, rank, column, Phi, moments
                    )
                    gain = border_factor(U, inv_d, c, moments, square + lam, label, rank)
                    if gain < 0.0:
                        return t, NOT_POSITIVE
                    growth[t] = gain
                    span_grow(R, span, q, rho, rank, m)
                    state[2] = rank + 1
                    rank += 1
                if not kors_keep(weights, C, b, corner, mu, probability, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(atoms, m, x)
                state[1] = m + 1
        padded = (rank + LANES - 1) // LANES * LANES
        for j in range(rank, padded):
            q[j] = 0.0
        if state[1] < largest:
            for j in range(rank):
                Phi[stored, j] = q[j]
            put_atom(past, stored, x)
        a[0] = 1.0
        for k in range(0, padded, TILE):
            factor_rows_1(U, inv_d, Z, B, a, k, padded)
        forecast = ridge_forecast(q, c, scan, padded)
        if not abs(forecast / a[0]) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast if ridge else forecast / a[0]
        shrinks[t] = a[0]
        sizes[t] = state[1]
        if state[1] < largest:
            labels[stored] = y[t]
            state[0] = stored + 1
        ridge_learn(y[t], B[0], c, scan, padded)
    return X.shape[0], DONE


@hot
def nystrom_awv_forecasts(
    X, coin, kernel, setting, state, atoms, weights, C, span, R, past, labels, Phi,
    U, inv_d, c, work, column, forecasts,
):  # fmt: skip
    """Write what Nystrom-AWV would forecast for each row of X with the next round's coin.

    Where the coin would keep x, the border is written behind the valid part of the buffers (room
    for one more atom is the caller's business) and wiped afterwards. Arguments as in
    nystrom_awv_rounds.
    """
    lam, mu, beta, eps, largest, ridge = setting
    row, b, moments, scan, q = work[0], work[1], work[2], work[3], work[4]
    stored, m = state[0], state[1]
    for t in range(X.shape[0]):
        rank = state[2]
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        span_coordinates(row, span, R, q, rank)
        probability = 0.0
        if m < largest:
            probability = kors_probability(row, weights, C, b, corner, mu, beta, eps, m)
        rho_square = corner - dot(q, q, rank)
        if coin < probability and rho_square > NULL_DIRECTION * corner:
            rho = math.sqrt(rho_square)
            square, label = span_column(
                kernel, x, past, labels, stored, q, rho, rank, column, Phi, moments
            )
            if border_factor(U, inv_d, c, moments, square + lam, label, rank) >= 0.0:
                q[rank] = rho
                rank += 1
        padded = (rank + LANES - 1) // LANES * LANES
        for j in range(rank, padded):
            q[j] = 0.0
        solve_upper_transposed(U, q, padded)
        a = 1.0
        for k in range(padded):
            a += inv_d[k] * q[k] * q[k]
        forecast = ridge_forecast(q, c, scan, padded)
        forecasts[t] = forecast if ridge else forecast / a
        if rank > state[2]:
            for k in range(state[2]):
                U[k, state[2]] = 0.0
            inv_d[state[2]] = 1.0 / lam
            c[state[2]] = 0.0
