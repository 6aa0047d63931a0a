"""Rounds of AWV on a growing Nystrom subspace (pkawv Algorithm 2)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.dictionary import (
    adds_direction,
    joining_probability,
    keep_joined,
    own_coordinate,
    span_coordinates,
    span_distance,
    span_grow,
)
from oklnumba.hot.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import dot, solve_upper_transposed
from oklnumba.hot.rows import kernel_diag, kernel_row, put_atom
from oklnumba.hot.udu import TILE, factor_rows_1, pad, ridge_forecast, ridge_learn

# Entries of the counts after ATOMS: rank of the atoms' span, rounds whose inputs are kept.
RANK, PAST = 1, 2


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
def new_direction(kernel, x, q, rho_square, rank, past, stored, factor, lam, work):
    """Border the factor with the direction that x adds to the span: A = Phi' Phi + lam I grows.

    q : (cap,), coordinates of x in the span, rho_square : its squared distance to it; past, factor
    and work as in nystrom_awv_rounds, the new column behind the valid part. Returns what the
    direction takes off the penalised loss of the best function, or -1 where the pivot is not
    positive (nothing valid has changed then).
    """
    inputs, labels, Phi = past
    U, inv_d, c = factor
    moments, column = work
    square, label = span_column(
        kernel, x, inputs, labels, stored, q, math.sqrt(rho_square), rank, column, Phi, moments
    )
    return border_factor(U, inv_d, c, moments, square + lam, label, rank)


@hot
def join(kernel, x, corner, probability, setting, counts, dictionary, past, factor, q, work):
    """Let x join the dictionary, and its direction the span, where it is not in it to rounding.

    corner : k(x, x); probability : with which x was kept; q : (cap,), coordinates of x in the
    span, with a new last one where the span grows; work : b of joining_probability, and moments and
    column of span_column; other arguments as in nystrom_awv_rounds. Returns (what the direction
    takes off the penalised loss of the best function, status).
    """
    lam, rule, _, _ = setting
    atoms, weights, kors, span, R = dictionary
    b, moments, column = work
    m, rank = counts[ATOMS], counts[RANK]
    gain = 0.0
    rho_square = span_distance(q, corner, rank)
    if adds_direction(R, q, rho_square, corner, moments, rank):
        gain = new_direction(
            kernel, x, q, rho_square, rank, past, counts[PAST], factor, lam, (moments, column)
        )
        if gain < 0.0:
            return gain, NOT_POSITIVE
        span_grow(R, span, q, math.sqrt(rho_square), corner, rank, m)
        counts[RANK] = rank + 1
    if not keep_joined(rule, weights, kors, b, corner, probability, m):
        return gain, NOT_POSITIVE
    put_atom(atoms, m, x)
    counts[ATOMS] = m + 1
    return gain, DONE


@hot
def nystrom_awv_rounds(
    X, y, coins, first, kernel, setting, counts, dictionary, past, factor, work, out
):
    """Play Nystrom-AWV (pkawv Algorithm 2) with KORS from row ``first``.

    In coordinates in which the kernel matrix of the span is the identity, b = Phi' y.

    X : (n, d); y, coins : (n,); setting : (lam, rule of joining_probability, largest size, ridge);
    counts : integers ATOMS, RANK of their span, PAST, rounds whose inputs are kept; dictionary :
    atoms (d, cap), weights (cap,) and kors (cap, cap) of KORS, span (cap,) and R (cap, cap) of
    span_coordinates; past : inputs (d, cap_n), labels (cap_n,) and coordinates Phi (cap_n, cap) of
    past rounds; factor : U (cap, cap), inv_d and c (cap,); all in place; work : (8, cap) and
    (cap_n,), workspace; out : forecasts, sizes, shrinks and growth, (n,), written (awv.certify).
    Once the dictionary has its largest size, the past is no longer kept. Returns (rounds played,
    status).
    """
    _, rule, largest, ridge = setting
    atoms, weights, kors, span, R = dictionary
    inputs, labels, Phi = past
    U, inv_d, c = factor
    forecasts, sizes, shrinks, growth = out
    rows, column = work
    row, b, moments, scan = rows[0], rows[1], rows[2], rows[3]
    Z, B = rows[4:5], rows[5:6]
    q, a = Z[0], rows[6]
    for t in range(first, X.shape[0]):
        stored, m = counts[PAST], counts[ATOMS]
        growing = m < largest
        if growing and (m + 1 > weights.shape[0] or stored == labels.shape[0]):
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        span_coordinates(row, span, R, q, counts[RANK])
        growth[t] = 0.0
        if growing:
            probability = joining_probability(rule, row, weights, kors, b, corner, m)
            if not probability >= 0.0:
                return t, NOT_FINITE
            if coins[t] < probability:  # Alg. 2: x_t joins before its own forecast
                growth[t], status = join(
                    kernel, x, corner, probability, setting, counts, dictionary, past, factor, q,
                    (b, moments, column),
                )  # fmt: skip
                if status != DONE:
                    return t, status
        padded = pad(q, counts[RANK])
        a[0] = 1.0
        kept = counts[ATOMS] < largest
        if kept:
            for j in range(counts[RANK]):
                Phi[stored, j] = q[j]
            put_atom(inputs, stored, x)
        for k in range(0, padded, TILE):  # A_t = A_{t-1} + z z', z = q
            factor_rows_1(U, inv_d, Z, B, a, k, padded, 1.0, np.inf)
        forecast = ridge_forecast(q, c, scan, padded)
        if not abs(forecast / a[0]) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast if ridge else forecast / a[0]  # z' A_t^-1 b, labels (Y_{t-1}, 0)
        shrinks[t], sizes[t] = a[0], counts[ATOMS]
        if kept:
            labels[stored] = y[t]
            counts[PAST] = stored + 1
        ridge_learn(y[t], B[0], c, scan, padded)  # b <- b + y_t z
    return X.shape[0], DONE


@hot
def nystrom_awv_forecasts(
    X, coin, kernel, setting, counts, dictionary, past, factor, work, forecasts
):
    """Write what Nystrom-AWV would forecast for each row of X with the next round's coin.

    Where the coin would keep x, the border is written behind the valid part of the buffers (room
    for one more atom is the caller's business) and wiped afterwards. Arguments as in
    nystrom_awv_rounds.
    """
    lam, rule, largest, ridge = setting
    atoms, weights, kors, span, R = dictionary
    U, inv_d, c = factor
    rows, column = work
    row, b, moments, scan, q = rows[0], rows[1], rows[2], rows[3], rows[4]
    stored, m, old_rank = counts[PAST], counts[ATOMS], counts[RANK]
    for t in range(X.shape[0]):
        rank = old_rank
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        span_coordinates(row, span, R, q, rank)
        probability = 0.0
        if m < largest:
            probability = joining_probability(rule, row, weights, kors, b, corner, m)
        rho_square = span_distance(q, corner, rank)
        if coin < probability and adds_direction(R, q, rho_square, corner, moments, rank):
            gain = new_direction(
                kernel, x, q, rho_square, rank, past, stored, factor, lam, (moments, column)
            )
            if gain >= 0.0:
                q[rank] = own_coordinate(math.sqrt(rho_square), corner)
                rank += 1
        padded = pad(q, rank)
        solve_upper_transposed(U, q, padded)
        a = 1.0
        for k in range(padded):
            a += inv_d[k] * q[k] * q[k]
        forecast = ridge_forecast(q, c, scan, padded)
        forecasts[t] = forecast if ridge else forecast / a
        if rank > old_rank:
            for k in range(old_rank):
                U[k, old_rank] = 0.0
            inv_d[old_rank] = 1.0 / lam
            c[old_rank] = 0.0
