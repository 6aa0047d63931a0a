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
from oklnumba.hot.udu import factor_round, pad, ridge_forecast, ridge_learn

# Entries of the counts after ATOMS: rank of the atoms' span, rounds whose inputs are kept.
RANK, PAST = 1, 2


@hot
def span_column(kernel, x, past, discount, t, q, rho, rank, columns, moments, gains):
    """Write the new direction's coordinate for all past rounds into Phi[:, rank], and its moments.

    The direction is (k(x, .) - its projection) / rho, and q : (cap,) the coordinates of that
    projection. Sums weigh the last round by the discount g, the one before by g^2, and so on.
    past : inputs (d, cap_n), labels (K, cap_n) and Phi (cap_n, cap), in place; columns : (2,
    cap_n), workspace; moments : (cap,), written: sum_s g^(t-s) f_s Phi_s; gains : (K,), written:
    sum_s g^(t-s) f_s y_s. Returns sum g^(t-s) f_s^2.
    """
    inputs, labels, Phi = past
    column, weights = columns[0], columns[1]
    kernel_row(kernel, x, inputs, t, column)
    weight = 1.0
    for s in range(t - 1, -1, -1):
        weight *= discount
        weights[s] = weight
    for j in range(rank):
        moments[j] = 0.0
    for k in range(labels.shape[0]):
        gains[k] = 0.0
    square = 0.0
    for s in range(t):
        phi = Phi[s, :rank]
        f = (column[s] - dot(phi, q, rank)) / rho
        weighed = weights[s] * f
        for j in range(rank):
            moments[j] += weighed * phi[j]
        square += weighed * f
        for k in range(labels.shape[0]):
            gains[k] += weighed * labels[k, s]
        Phi[s, rank] = f
    return square


@hot
def border_factor(U, inv_d, c, moments, corner, gains, rank):
    """Add a column to the factor U' D U of A and to c: A gets the border (moments, corner).

    gains : (K,), the new entries of b, replaced by what the new direction takes off the penalised
    loss of the best function. Returns whether the pivot is positive; where it is not, nothing valid
    has changed.
    """
    solve_upper_transposed(U, moments, rank)
    pivot = corner
    for j in range(rank):
        pivot -= moments[j] * moments[j] * inv_d[j]
    if not pivot > 0.0:
        return False
    for j in range(rank):
        U[j, rank] = moments[j] * inv_d[j]
    inv_d[rank] = 1.0 / pivot
    for k in range(c.shape[0]):
        label = gains[k]
        for j in range(rank):
            label -= moments[j] * c[k, j]
        c[k, rank] = label / pivot
        gains[k] = label * label / pivot
    return True


@hot
def new_direction(kernel, x, q, rho_square, rank, past, stored, factor, setting, work, gains):
    """Border the factor with the direction that x adds to the span, which brings lam of its own.

    A = Phi' G Phi + penalty grows by one, G the weights of the past in this round.
    q : (cap,), coordinates of x in the span, rho_square : its squared distance to it; past, factor
    and work as in nystrom_awv_rounds, the new column behind the valid part; gains : as in
    border_factor. Returns whether the pivot is positive; where it is not, nothing valid has
    changed.
    """
    lam, discount = setting[0], setting[1]
    U, inv_d, c = factor
    moments, columns = work
    rho = math.sqrt(rho_square)
    square = span_column(kernel, x, past, discount, stored, q, rho, rank, columns, moments, gains)
    return border_factor(U, inv_d, c, moments, square + lam, gains, rank)


@hot
def join(kernel, x, corner, probability, setting, counts, dictionary, past, factor, q, work):
    """Let x join the dictionary, and its direction the span, where it is not in it to rounding.

    corner : k(x, x); probability : with which x was kept; q : (cap,), coordinates of x in the
    span, with a new last one where the span grows; work : b of joining_probability, moments and
    columns of span_column, and gains (K,), zeros, written: what the direction takes off the
    penalised loss of the best function; other arguments as in nystrom_awv_rounds. Returns a status.
    """
    rule = setting[3]
    atoms, weights, kors, span, R = dictionary
    b, moments, columns, gains = work
    m, rank = counts[ATOMS], counts[RANK]
    rho_square = span_distance(q, corner, rank)
    if adds_direction(R, q, rho_square, corner, moments, rank):
        if not new_direction(
            kernel, x, q, rho_square, rank, past, counts[PAST], factor, setting,
            (moments, columns), gains,
        ):  # fmt: skip
            return NOT_POSITIVE
        span_grow(R, span, q, math.sqrt(rho_square), corner, rank, m)
        counts[RANK] = rank + 1
    if not keep_joined(rule, weights, kors, b, corner, probability, m):
        return NOT_POSITIVE
    put_atom(atoms, m, x)
    counts[ATOMS] = m + 1
    return DONE


@hot
def nystrom_awv_rounds(
    X, Y, coins, first, kernel, setting, counts, dictionary, past, factor, work, out
):
    """Play Nystrom-AWV (pkawv Algorithm 2) with KORS from row ``first``.

    In coordinates in which the kernel matrix of the span is the identity, b = Phi' y.

    X : (n, d); Y : (n, K); coins : (n,); setting : (lam, discount g, 1 / the floor of D, rule of
    joining_probability, largest size, ridge); counts : integers ATOMS, RANK of their span, PAST,
    rounds whose inputs are kept; dictionary : atoms (d, cap), weights (cap,) and kors (cap, cap) of
    KORS, span (cap,) and R (cap, cap) of span_coordinates; past : inputs (d, cap_n), labels (K,
    cap_n) and coordinates Phi (cap_n, cap) of past rounds; factor : U (cap, cap), inv_d (cap,) and
    c (K, cap), of the past as the next round finds it, discounted; all in place; work : (8, cap)
    and (2, cap_n), workspace; out : forecasts (n, K), sizes and shrinks (n,) and growth (n, K),
    written (awv.certify).
    Once the dictionary has its largest size, the past is no longer kept. Returns (rounds played,
    status).
    """
    _, discount, inv_floor, rule, largest, ridge = setting
    atoms, weights, kors, span, R = dictionary
    inputs, labels, Phi = past
    U, inv_d, c = factor
    forecasts, sizes, shrinks, growth = out
    rows, columns = work
    row, b, moments, scan = rows[0], rows[1], rows[2], rows[3]
    Z, B = rows[4:5], rows[5:6]
    q, a = Z[0], rows[6]
    for t in range(first, X.shape[0]):
        stored, m = counts[PAST], counts[ATOMS]
        growing = m < largest
        if growing and (m + 1 > weights.shape[0] or stored == labels.shape[1]):
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        span_coordinates(row, span, R, q, counts[RANK])
        growth[t, :] = 0.0
        if growing:
            probability = joining_probability(rule, row, weights, kors, b, corner, m)
            if not probability >= 0.0:
                return t, NOT_FINITE
            if coins[t] < probability:  # Alg. 2: x_t joins before its own forecast
                status = join(
                    kernel, x, corner, probability, setting, counts, dictionary, past, factor, q,
                    (b, moments, columns, growth[t]),
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
        # A_t = g A_{t-1} + z z', z = q
        factor_round(U, inv_d, (1.0 / discount, inv_floor), Z, B, a, padded)
        for k in range(c.shape[0]):
            forecast = ridge_forecast(q, c[k], scan, padded)
            if not abs(forecast / a[0]) < np.inf:
                return t, NOT_FINITE
            forecasts[t, k] = forecast if ridge else forecast / a[0]  # z' A_t^-1 b, (Y_{t-1}, 0)
            if kept:
                labels[k, stored] = Y[t, k]
            ridge_learn(Y[t, k], B[0], c[k], scan, padded)  # b <- g b + y_t z
        shrinks[t], sizes[t] = a[0], counts[ATOMS]
        if kept:
            counts[PAST] = stored + 1
    return X.shape[0], DONE


@hot
def nystrom_awv_forecasts(
    X, coin, kernel, setting, counts, dictionary, past, factor, work, forecasts
):
    """Write what Nystrom-AWV would forecast for each row of X with the next round's coin.

    Where the coin would keep x, the border is written behind the valid part of the buffers (room
    for one more atom is the caller's business) and wiped afterwards. Arguments as in
    nystrom_awv_rounds; forecasts : (n, K), written.
    """
    lam, _, _, rule, largest, ridge = setting
    atoms, weights, kors, span, R = dictionary
    U, inv_d, c = factor
    rows, columns = work
    row, b, moments, scan, q, shrink = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
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
            if new_direction(
                kernel, x, q, rho_square, rank, past, stored, factor, setting, (moments, columns),
                forecasts[t],
            ):  # fmt: skip
                q[rank] = own_coordinate(math.sqrt(rho_square), corner)
                rank += 1
        padded = pad(q, rank)
        solve_upper_transposed(U, q, padded)
        a = 1.0
        for k in range(padded):
            a += inv_d[k] * q[k] * q[k]
        shrink[0] = a  # from memory, so that no output is multiplied by 1 / a in its place
        for k in range(c.shape[0]):
            forecast = ridge_forecast(q, c[k], scan, padded)
            forecasts[t, k] = forecast if ridge else forecast / shrink[0]
        if rank > old_rank:
            for k in range(old_rank):
                U[k, old_rank] = 0.0
            inv_d[old_rank] = 1.0 / lam
            c[:, old_rank] = 0.0
