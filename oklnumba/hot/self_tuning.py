"""Rounds of SelfTuning's members on shared coordinates of a stream, and these coordinates.

map_rounds, with KORS (dictionary.py) and K_I = R'R over its dictionary I:

    for t = 1, ..., n: z_t = (1, R^-T k_I(x_t));   KORS looks at x_t and may add it to I

group_rounds plays ridge regression and AWV (awv.py) on them, each lam and discount by itself, and
coordinate_rounds PA-I (Crammer et al. 2006, Figure 1) or gradient descent:

    w_1 = 0; for t = 1, ..., n:
        yhat_t = w_t.z_t;   w_{t+1} = w_t + tau_t z_t
        PA-I: tau_t = y_t min(C, l_t / |z_t|^2), l_t the hinge loss, C in units of the largest |y|
        descent: tau_t = step (y_t - yhat_t) / |z_t|^2
"""

import math

import numpy as np

from oklnumba.hot.awv import awv_certified_rounds, awv_forecasts
from oklnumba.hot.primitives.dictionary import (
    adds_direction,
    joining_probability,
    keep_point,
    span_distance,
    span_grow,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import ATOMS, DONE, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row
from oklnumba.hot.primitives.udu import SWEEP, TOGETHER, pad, solve_rounds

RANK = 1  # entry of the counts after ATOMS: rank of the atoms' span
PASSIVE_AGGRESSIVE, DESCENT = range(2)  # rules of coordinate_rounds


@hot
def grow_map(kernel, x, corner, probability, rule, counts, dictionary, unit, q, work):
    """Add x, with coordinates q, to the dictionary, and its direction to the span.

    For later rounds. Returns whether KORS's factor stayed positive definite.
    """
    _, _, _, span, R = dictionary
    U, scales = unit
    b, v = work
    m, rank = counts[ATOMS], counts[RANK]
    square = span_distance(q, corner, rank)
    if adds_direction(R, q, square, corner, v, rank):
        for j in range(rank):
            U[j, rank] = q[j] * scales[j]
        scales[rank] = 1.0 / math.sqrt(square)
        span_grow(R, span, q, math.sqrt(square), corner, rank, m)
        counts[RANK] = rank + 1
    return keep_point(rule, x, corner, probability, counts, dictionary, b)


@hot
def map_rounds(X, coins, kernel, setting, counts, dictionary, unit, work, out):
    """Write each row's coordinates in the span of the dictionary; then the row may join it.

    A row that joins adds its direction for the rows after it; in earlier rows, and its own, that
    coordinate is 0. So coordinates depend on the past only and never change.

    setting : (rule of joining_probability, largest size, whether the last call has just written
    the only row, which did not join); dictionary : that of dictionary.py; unit : U (cap, cap) and
    scales (cap,), R = diag(1 / scales) U, the unit matrix behind the rank; work : row and b (cap,),
    and (TOGETHER, cap); out : Z (n, > cap), 1 for the intercept, the coordinates, zeros up to whole
    vectors; columns (n,), how many these are; sizes (n,), atoms after the row.
    """
    rule, largest, known = setting
    atoms, weights, kors, span, _ = dictionary
    U, scales = unit
    row, b, rounds = work
    Z, columns, sizes = out
    n, t = X.shape[0], 0
    while t < n:
        m, rank = counts[ATOMS], counts[RANK]
        growing = m < largest
        count = 1 if growing else larger(smaller(TOGETHER, (n - t) // SWEEP * SWEEP), 1)
        if not known:
            for s in range(count):
                kernel_row(kernel, X[t + s], atoms, m, row)
                q = rounds[s]
                for j in range(rank):
                    q[j] = row[span[j]]
                pad(q, rank)
            r = pad(rounds[0], rank)
            solve_rounds(U, rounds, count, r)
            for s in range(count):
                z, q = Z[t + s], rounds[s]
                z[0] = 1.0
                for j in range(rank):
                    q[j] *= scales[j]
                    z[j + 1] = q[j]
                columns[t + s] = pad(z, rank + 1)
                sizes[t + s] = m
        if growing:
            corner = kernel_diag(kernel, X[t])
            probability = joining_probability(rule, row, weights, kors, b, corner, m)
            if not probability >= 0.0:
                return t, NOT_FINITE
            if coins[t] < probability and not grow_map(
                kernel, X[t], corner, probability, rule, counts, dictionary, unit, rounds[0],
                (b, row),
            ):  # fmt: skip
                return t, NOT_POSITIVE
            sizes[t] = counts[ATOMS]
        t += count
    return n, DONE


@hot
def apply_link(rule, sign, score):
    """Return the forecast of a score: 2 / (1 + exp(-score)) - 1 for the logistic loss."""
    if rule == DESCENT and sign > 0.0:
        return 2.0 / (1.0 + math.exp(-score)) - 1.0
    return score


@hot
def step_length(rule, sign, rate, largest, y, forecast, square):
    """Return tau, how far a rule moves along z, with ``square`` = |z|^2, after a round."""
    if rule == DESCENT:
        length = 0.5 * rate if sign > 0.0 else rate / (1.0 + rate)
        return length * (y - forecast) / square
    if sign > 0.0:
        loss, towards = larger(1.0 - y * forecast, 0.0), y
    else:
        loss, towards = abs(y - forecast), 1.0 if y > forecast else -1.0
    return towards * smaller(rate * largest, loss / square)


@hot
def coordinate_rounds(Z, columns, Y, rule, rate, signs, weights, largest, forecasts):
    """Play PA-I or gradient descent on coordinates.

    PASSIVE_AGGRESSIVE has the hinge loss for labels -1 and +1 and the absolute loss for real ones;
    DESCENT the logistic loss, with the forecast 2 P(y = 1) - 1, and the squared loss with an
    implicit step, stable for any length.

    rate : C, in units of the largest label, or the step over |z|^2; signs : (K,), 1 for labels -1
    and +1, 0 for real ones; weights : (K, cap); largest : (K,), largest |y| so far; forecasts : (n,
    K).
    """
    n, outputs = Y.shape
    for t in range(n):
        z, r = Z[t], columns[t]
        square = dot(z, z, r)  # >= 1, the intercept
        for k in range(outputs):
            w, y = weights[k], Y[t, k]
            forecast = apply_link(rule, signs[k], dot(w, z, r))
            if not abs(forecast) < np.inf:
                return t, NOT_FINITE
            forecasts[t, k] = forecast
            largest[k] = larger(largest[k], abs(y))
            step = step_length(rule, signs[k], rate, largest[k], y, forecast, square)
            add_multiple(w, step, z, r)
    return n, DONE


@hot
def coordinate_forecasts(Z, columns, rule, signs, weights, forecasts):
    """Write what the rule would forecast for each row of Z."""
    for t in range(Z.shape[0]):
        for k in range(weights.shape[0]):
            forecasts[t, k] = apply_link(rule, signs[k], dot(weights[k], Z[t], columns[t]))


@hot
def count_equal(columns, start, n):
    """Return the row after ``start``, up to n, from which on rows have another number of columns.

    Rounding depends on this number, so it must not depend on how the stream is cut.
    """
    stop = start + 1
    while stop < n and columns[stop] == columns[start]:
        stop += 1
    return stop


@hot
def take_factor(factors, i):
    """Return the factor of regression i."""
    U, inv_d, c, (widths, kept) = factors
    return U[i], inv_d[i], c[i], (widths[i], kept[i])


@hot
def group_rounds(Z, columns, Y, lasting, ridges, rules, out):
    """Play the ridge regressions, AWV among them, then the first-order rules of a group.

    Z, columns : out of map_rounds; Y : (n, K); lasting : coordinates that the functions to compare
    with have; ridges : settings (N, 3), 1 / discount, 1 / lam and the discount, factors of N
    regressions as in awv.py, totals (N, K, 6) and ``work`` as in awv_rounds; rules : codes
    (M,), rates (M,), signs (K,), weights (M, K, cap) and largest (M, K) as in coordinate_rounds;
    out : forecasts (2 N + M, >= n, K), of ridge and AWV in turn, then of the rules; shrinks (>= n,)
    and growth (>= n, K), workspace; proofs (N, 3, >= n, K). Returns rounds and a status.
    """
    settings, factors, totals, work = ridges
    codes, rates, signs, weights, largest = rules
    forecasts, shrinks, growth, proofs = out
    n, start = Y.shape[0], 0
    while start < n:
        r, stop = columns[start], count_equal(columns, start, n)
        own = smaller(lasting, r)
        if own == r:
            for t in range(start, stop):
                for k in range(growth.shape[1]):
                    growth[t, k] = 0.0
        for i in range(settings.shape[0]):
            played, status = awv_certified_rounds(
                Z, Y, (start, stop, r), take_factor(factors, i), (settings[i, 0], settings[i, 1]),
                work, 0.0, own, settings[i, 2], totals[i],
                (forecasts[2 * i + 1], forecasts[2 * i], shrinks, growth),
                (proofs[i, 0], proofs[i, 1], proofs[i, 2]),
            )  # fmt: skip
            if status != DONE:
                return played, status
        start = stop
    for i in range(codes.shape[0]):
        played, status = coordinate_rounds(
            Z, columns, Y, codes[i], rates[i], signs, weights[i], largest[i],
            forecasts[2 * settings.shape[0] + i],
        )  # fmt: skip
        if status != DONE:
            return played, status
    return n, DONE


@hot
def group_forecasts(Z, columns, n, ridges, rules, out):
    """Write what a group would forecast for each of n rows of Z; arguments as in group_rounds."""
    settings, factors, _, work = ridges
    codes, _, signs, weights, _ = rules
    forecasts, shrinks, _, _ = out
    start = 0
    while start < n:
        r, stop = columns[start], count_equal(columns, start, n)
        for i in range(settings.shape[0]):
            awv_forecasts(
                Z, (start, stop, r), take_factor(factors, i), (settings[i, 0], settings[i, 1]),
                work, 0.0, (forecasts[2 * i + 1], forecasts[2 * i], shrinks),
            )  # fmt: skip
        start = stop
    for i in range(codes.shape[0]):
        coordinate_forecasts(
            Z[:n], columns, codes[i], signs, weights[i], forecasts[2 * settings.shape[0] + i]
        )


@hot
def write_scores(Z, knots, scores, out):
    """Write piecewise linear functions of the columns of Z, of slope 1 beyond the knots.

    knots, scores : (d, k), increasing, infinite knots after the last one.
    """
    for t in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            z, below, above = Z[t, j], 0, knots.shape[1]
            while below < above:  # count the knots that are at most z
                middle = (below + above) // 2
                if knots[j, middle] <= z:
                    below = middle + 1
                else:
                    above = middle
            if below == 0:
                out[t, j] = scores[j, 0] + (z - knots[j, 0])
            elif below == knots.shape[1] or knots[j, below] == np.inf:
                out[t, j] = scores[j, below - 1] + (z - knots[j, below - 1])
            else:
                low, high = knots[j, below - 1], knots[j, below]
                step = scores[j, below] - scores[j, below - 1]
                out[t, j] = scores[j, below - 1] + step * ((z - low) / (high - low))


@hot
def leaf_rounds(rows, size, latest, found, out):
    """Write what a leaf's rounds are for the tree: forecasts, and steps of sizes and certificates.

    rows : (n,), the rounds of the tree that were the leaf's; size : atoms before them; latest : (N,
    3, K), its certificates before them, replaced by those after; found, out : forecasts (., >= n,
    K), sizes (>= n,) and proofs (N, 3, >= n, K), of the leaf and of the tree.
    """
    forecasts, sizes, proofs = found
    all_forecasts, all_sizes, all_proofs = out
    for s in range(rows.shape[0]):
        t = rows[s]
        all_sizes[t] = sizes[s] - size
        size = sizes[s]
        for k in range(forecasts.shape[2]):
            for i in range(forecasts.shape[0]):
                all_forecasts[i, t, k] = forecasts[i, s, k]
            for i in range(proofs.shape[0]):
                for part in range(proofs.shape[1]):
                    all_proofs[i, part, t, k] = proofs[i, part, s, k] - latest[i, part, k]
                    latest[i, part, k] = proofs[i, part, s, k]
