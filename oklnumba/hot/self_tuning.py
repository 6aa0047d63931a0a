"""Rounds of SelfTuning's members on shared coordinates of a stream, and these coordinates.

group_rounds, with a dictionary I in each leaf of a tree, KORS (dictionary.py) and K_I = R'R:

    for t = 1, ..., n: x_t, scaled, goes to its leaf
    for each leaf, for its rounds t: z_t = (1, R^-T k_I(x_t));   KORS looks at x_t, may add it to I
        the members play z_t, y_t

The members are ridge regression and AWV (awv.py), each lam and discount by itself, and PA-I
(Crammer et al. 2006, Figure 1) or gradient descent, coordinate_rounds:

    w_1 = 0; for t = 1, ..., n:
        yhat_t = w_t.z_t;   w_{t+1} = w_t + tau_t z_t
        PA-I: tau_t = y_t min(C, l_t / |z_t|^2), l_t the hinge loss, C in units of the largest |y|
        descent: tau_t = step (y_t - yhat_t) / |z_t|^2

The arrays of a group of N regressions and M rules, K labels a round, in L leaves:

    tree        scales (d,); columns and thresholds (L - 1,), node i has the children 2 i + 1 and
                2 i + 2, the second if the scaled input is larger; and of the last block: integers
                (2, n), which rounds, sorted by leaf, and the leaf of each round; ends (L,) of the
                leaves among these; inputs (n, d), scaled and so sorted
    points      kernel; largest dictionary, 0 for the inputs themselves; counts (L, 3), ATOMS, RANK
                and CHOSEN; the dictionary as in dictionary.py; U (L, cap, cap) and scales (L, cap),
                R = diag(1 / scales) U; row and b (cap,), and (TOGETHER, cap), workspace
    coordinates Z (n, > cap), 1 for the intercept, the coordinates, zeros up to whole vectors;
                columns (n,), how many these are; sizes (n,), atoms after the round
    ridges      settings (N, 3), the numbers of Forgetting; factors as in awv.py, (L,
                N, ...); totals (L, N, K, 6); workspace as in awv_rounds
    rules       codes (M,), rates (M,), signs (K,), weights (L, M, K, cap) and largest (L, M, K)
    own         labels (n, K) and coins (n,), so sorted; forecasts (2 N + M, n, K), of ridge and AWV
                in turn, then of the rules; shrinks (n,), growth (n, K); proofs (N, 3, n, K), loss,
                comparator and bound of the AWV forecasts
"""

import math

import numpy as np

from oklnumba.hot.awv import Certificate, Rounds, Span, awv_certified_rounds, awv_forecasts
from oklnumba.hot.primitives.dictionary import (
    RANK,
    Dictionary,
    Rule,
    adds_direction,
    extend_span,
    joining_probability,
    keep_point,
    squared_distance,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.factor import Factor, Pending
from oklnumba.hot.primitives.jit import ATOMS, DONE, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row
from oklnumba.hot.primitives.udu import SWEEP, TOGETHER, Forgetting, pad, solve_rounds

CHOSEN = 2  # entry of the counts after ATOMS and RANK: the rank when the dictionary was chosen
ORDER, LEAF = 0, 1  # of the integers that a block leaves
FAR = 4.0  # standard deviations from which on inputs count by their logarithm
LARGEST_INPUT = 1e140  # in standard deviations
RULE = Rule(alpha=0.1, beta=1.0, eps=0.5)  # of all dictionaries
PASSIVE_AGGRESSIVE, DESCENT = range(2)  # rules of coordinate_rounds


@hot
def sort_by_leaf(X, tree):
    """Write the inputs of a block, scaled, leaf after leaf, each in the order of the rounds."""
    scales, columns, thresholds, found, ends, rows = tree
    inner = columns.shape[0]
    for leaf in range(ends.shape[0]):
        ends[leaf] = 0
    for t in range(X.shape[0]):
        node = 0
        while node < inner:
            j = columns[node]
            node = 2 * node + (2 if X[t, j] * scales[j] > thresholds[node] else 1)
        found[LEAF, t] = node - inner
        ends[node - inner] += 1
    start = 0
    for leaf in range(ends.shape[0]):
        start, ends[leaf] = start + ends[leaf], start
    for t in range(X.shape[0]):
        leaf = found[LEAF, t]
        s = ends[leaf]
        found[ORDER, s] = t
        ends[leaf] = s + 1
        for j in range(X.shape[1]):
            rows[s, j] = X[t, j] * scales[j]


@hot
def take_dictionary(points, leaf):
    """Return the dictionary and the unit of a leaf."""
    _, _, counts, (atoms, weights, kors, span, R), (U, scales), _ = points
    dictionary = Dictionary(
        counts[leaf], atoms[leaf], weights[leaf], kors[leaf], span[leaf], R[leaf]
    )
    return dictionary, (U[leaf], scales[leaf])


@hot
def copy_inputs(X, span, out):
    """Write the inputs themselves after a 1, for linear members."""
    Z, columns, _ = out
    for t in range(span[0], span[1]):
        Z[t, 0] = 1.0
        for j in range(X.shape[1]):
            Z[t, j + 1] = X[t, j]
        columns[t] = pad(Z[t], X.shape[1] + 1)


@hot
def map_rows(X, span, points, leaf, out):
    """Write the coordinates of the rows of ``span`` as the dictionary is now."""
    kernel, most, _, _, _, (row, _, rounds) = points
    dictionary, (U, scales) = take_dictionary(points, leaf)
    counts, atoms, spanning = dictionary.counts, dictionary.atoms, dictionary.span
    if most == 0:
        copy_inputs(X, span, out)
        return
    Z, columns, sizes = out
    t, m, rank = span[0], counts[ATOMS], counts[RANK]
    while t < span[1]:
        count = larger(smaller(TOGETHER, (span[1] - t) // SWEEP * SWEEP), 1)
        for s in range(count):
            kernel_row(kernel, X[t + s], atoms, m, row)
            q = rounds[s]
            for j in range(rank):
                q[j] = row[spanning[j]]
            pad(q, rank)
        solve_rounds(U, rounds, count, pad(rounds[0], rank))
        for s in range(count):
            z, q = Z[t + s], rounds[s]
            z[0] = 1.0
            for j in range(rank):
                q[j] *= scales[j]
                z[j + 1] = q[j]
            columns[t + s] = pad(z, rank + 1)
            sizes[t + s] = m
        t += count


@hot
def offer_point(x, coin, kernel, points, leaf, q):
    """Let x, with coordinates q, join the dictionary if its coin says so, and the span.

    For later rounds: they have one coordinate more if x adds a direction. Returns a status.
    """
    dictionary, (U, scales) = take_dictionary(points, leaf)
    row, b, _ = points[5]
    rank, k_xx = dictionary.counts[RANK], kernel_diag(kernel, x)
    probability = joining_probability(RULE, dictionary, row, k_xx, b)
    if not probability >= 0.0:
        return NOT_FINITE
    if coin >= probability:
        return DONE
    delta = squared_distance(q, k_xx, rank)
    if adds_direction(dictionary, q, delta, k_xx, row):
        for j in range(rank):
            U[j, rank] = q[j] * scales[j]
        scales[rank] = 1.0 / math.sqrt(delta)
        extend_span(dictionary, q, math.sqrt(delta), k_xx)
    return DONE if keep_point(RULE, dictionary, x, k_xx, probability, b) else NOT_POSITIVE


@hot
def map_rounds(X, span, coins, setting, points, leaf, out):
    """Write each row's coordinates in the span of the dictionary; then the row may join it.

    A row that joins adds its direction for the rows after it; in earlier rows, and its own, that
    coordinate is 0. So coordinates depend on the past only and never change.

    X : sorted by leaf, of which the leaf has the rows of ``span``; coins : of the rounds, sorted as
    X; setting : (whether rows may join, whether the last call has just written the only row, which
    did not join); out : the coordinates. Returns the row that failed, if any, and a status.
    """
    learn, known = setting
    kernel, most, counts = points[0], points[1], points[2][leaf]
    t, stop = span
    while learn and t < stop and counts[ATOMS] < most:
        if not known:
            map_rows(X, (t, t + 1), points, leaf, out)
        status = offer_point(X[t], coins[t], kernel, points, leaf, points[5][2][0])
        if status != DONE:
            return t, status
        out[2][t] = counts[ATOMS]
        t += 1
    if t < stop and not known:
        map_rows(X, (t, stop), points, leaf, out)
    return stop, DONE


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
def coordinate_rounds(Z, columns, Y, span, rule, rate, signs, weights, largest, forecasts):
    """Play PA-I or gradient descent on coordinates.

    PASSIVE_AGGRESSIVE has the hinge loss for labels -1 and +1 and the absolute loss for real ones;
    DESCENT the logistic loss, with the forecast 2 P(y = 1) - 1, and the squared loss with an
    implicit step, stable for any length.

    rate : C, in units of the largest label, or the step over |z|^2; signs : (K,), 1 for labels -1
    and +1, 0 for real ones; weights : (K, cap); largest : (K,), largest |y| so far; forecasts : (n,
    K).
    """
    for t in range(span[0], span[1]):
        z, r = Z[t], columns[t]
        square = dot(z, z, r)  # >= 1, the intercept
        for k in range(Y.shape[1]):
            w, y = weights[k], Y[t, k]
            forecast = apply_link(rule, signs[k], dot(w, z, r))
            if not abs(forecast) < np.inf:
                return t, NOT_FINITE
            forecasts[t, k] = forecast
            largest[k] = larger(largest[k], abs(y))
            step = step_length(rule, signs[k], rate, largest[k], y, forecast, square)
            add_multiple(w, step, z, r)
    return span[1], DONE


@hot
def coordinate_forecasts(Z, columns, span, rule, signs, weights, forecasts):
    """Write what the rule would forecast for each row of Z."""
    for t in range(span[0], span[1]):
        for k in range(weights.shape[0]):
            forecasts[t, k] = apply_link(rule, signs[k], dot(weights[k], Z[t], columns[t]))


@hot
def count_equal(columns, start, stop):
    """Return the row after ``start``, up to ``stop``, from which on rows have other columns.

    Rounding depends on how many columns there are, so not on how the stream is cut.
    """
    t = start + 1
    while t < stop and columns[t] == columns[start]:
        t += 1
    return t


@hot
def take_factor(factors, leaf, i):
    """Return the factor of regression i in a leaf."""
    pending = factors.pending
    return Factor(
        factors.U[leaf, i], factors.inv_d[leaf, i], factors.c[leaf, i],
        Pending(
            pending.columns[leaf, i], pending.z[leaf, i], pending.point[leaf, i],
            pending.p[leaf, i],
        ),
    )  # fmt: skip


@hot
def ridge_rounds(Z, columns, Y, span, lasting, ridges, leaf, out):
    """Play the ridge regressions, AWV among them, of a leaf.

    lasting : coordinates that the functions to compare with have; out : forecasts, shrinks, growth
    and proofs of a group. Returns the row that failed, if any, and a status.
    """
    settings, factors, totals, work = ridges
    forecasts, shrinks, growth, proofs = out
    start = span[0]
    while start < span[1]:
        r, stop = columns[start], count_equal(columns, start, span[1])
        own = smaller(lasting, r)
        if own == r:
            for t in range(start, stop):
                for k in range(growth.shape[1]):
                    growth[t, k] = 0.0
        for i in range(settings.shape[0]):
            played, status = awv_certified_rounds(
                Z, Y, Span(start, stop, r, own), take_factor(factors, leaf, i),
                Forgetting(settings[i, 0], settings[i, 1], settings[i, 2]), work, False,
                Rounds(forecasts[2 * i + 1], forecasts[2 * i], shrinks, growth),
                Certificate(totals[leaf, i], proofs[i, 0], proofs[i, 1], proofs[i, 2]),
            )  # fmt: skip
            if status != DONE:
                return played, status
        start = stop
    return span[1], DONE


@hot
def ridge_forecasts(Z, columns, span, ridges, leaf, out):
    """Write what the regressions would forecast; arguments as in ridge_rounds."""
    settings, factors, _, work = ridges
    forecasts, shrinks, growth, _ = out
    start = span[0]
    while start < span[1]:
        r, stop = columns[start], count_equal(columns, start, span[1])
        for i in range(settings.shape[0]):
            awv_forecasts(
                Z, Span(start, stop, r, r), take_factor(factors, leaf, i),
                Forgetting(settings[i, 0], settings[i, 1], settings[i, 2]), work, False,
                Rounds(forecasts[2 * i + 1], forecasts[2 * i], shrinks, growth),
            )  # fmt: skip
        start = stop


@hot
def leaf_rounds(span, setting, rows, points, coordinates, ridges, rules, leaf, own):
    """Play the rounds of one leaf. Returns the row that failed, if any, and a status."""
    Z, columns, _ = coordinates
    codes, rates, signs, weights, largest = rules
    labels, coins, out = own
    played, status = map_rounds(rows, span, coins, setting, points, leaf, coordinates)
    if status == DONE:
        lasting = points[2][leaf, CHOSEN] + 1
        played, status = ridge_rounds(Z, columns, labels, span, lasting, ridges, leaf, out)
    for i in range(codes.shape[0]):
        if status == DONE:
            played, status = coordinate_rounds(
                Z, columns, labels, span, codes[i], rates[i], signs, weights[leaf, i],
                largest[leaf, i], out[0][2 * ridges[0].shape[0] + i],
            )  # fmt: skip
    return played, status


@hot
def spread_rounds(span, order, size, sizes, latest, found, out):
    """Write a leaf's rounds where the group has them: forecasts, and steps of sizes and proofs.

    order : the rounds, sorted by leaf; size : atoms before; latest : (N, 3, K), the leaf's proofs
    before, replaced by those after.
    """
    forecasts, _, _, proofs = found
    all_forecasts, all_proofs, all_sizes = out
    for s in range(span[0], span[1]):
        t = order[s]
        all_sizes[t] = sizes[s] - size
        size = sizes[s]
        for k in range(forecasts.shape[2]):
            for i in range(forecasts.shape[0]):
                all_forecasts[i, t, k] = forecasts[i, s, k]
            for i in range(proofs.shape[0]):
                for part in range(proofs.shape[1]):
                    all_proofs[i, part, t, k] = proofs[i, part, s, k] - latest[i, part, k]
                    latest[i, part, k] = proofs[i, part, s, k]


@hot
def add_up(n, total, size, proofs, sizes):
    """Add up the steps of proofs and sizes, round by round: sums do not depend on cuts."""
    for t in range(n):
        size += sizes[t]
        sizes[t] = size
        for i in range(proofs.shape[0]):
            for part in range(proofs.shape[1]):
                for k in range(proofs.shape[3]):
                    total[i, part, k] += proofs[i, part, t, k]
                    proofs[i, part, t, k] = total[i, part, k]


@hot
def group_rounds(X, Y, coins, setting, tree, points, coordinates, ridges, rules, own, proven, out):
    """Play n rounds of a group.

    coins : (n,), empty if none may join a dictionary; setting : (whether rows may, whether
    group_forecasts has just had the only one); proven : certificates after the last round, of each
    leaf (L, N, 3, K), and their sum (N, 3, K); out : forecasts, proofs and sizes of the group, as
    in ``own`` and ``coordinates``, in the order of the rounds. Without regressions and rules this
    is choosing the dictionaries. Returns the round that failed, if any, and a status.
    """
    _, _, _, found, ends, rows = tree
    labels, tossed, made = own
    order, counts = found[ORDER], points[2]
    n, start, atoms = Y.shape[0], 0, 0
    if not setting[1]:
        sort_by_leaf(X, tree)
    for s in range(n):
        for k in range(Y.shape[1]):
            labels[s, k] = Y[order[s], k]
        if setting[0]:
            tossed[s] = coins[order[s]]
    for leaf in range(ends.shape[0]):
        size, span = counts[leaf, ATOMS], (start, ends[leaf])
        atoms, start = atoms + size, span[1]
        if span[0] < span[1]:
            failed, status = leaf_rounds(
                span, setting, rows, points, coordinates, ridges, rules, leaf, own
            )
            if status != DONE:
                return order[failed], status
            spread_rounds(span, order, size, coordinates[2], proven[0][leaf], made, out)
    add_up(n, proven[1], atoms, out[1], out[2])
    return n, DONE


@hot
def group_forecasts(X, tree, points, coordinates, ridges, rules, own, out):
    """Write what a group would forecast for the rows of X; arguments as in group_rounds."""
    _, _, _, found, ends, rows = tree
    Z, columns, _ = coordinates
    codes, _, signs, weights, _ = rules
    made = own[2]
    sort_by_leaf(X, tree)
    start = 0
    for leaf in range(ends.shape[0]):
        span = start, ends[leaf]
        start = span[1]
        if span[0] < span[1]:
            map_rows(rows, span, points, leaf, coordinates)
            ridge_forecasts(Z, columns, span, ridges, leaf, made)
            for i in range(codes.shape[0]):
                coordinate_forecasts(
                    Z, columns, span, codes[i], signs, weights[leaf, i],
                    made[0][2 * ridges[0].shape[0] + i],
                )  # fmt: skip
    for s in range(X.shape[0]):
        for i in range(out.shape[0]):
            for k in range(out.shape[2]):
                out[i, found[ORDER, s], k] = made[0][i, s, k]


@hot
def write_standardised(X, mean, scale, out):
    """Write (x - mean) / scale; beyond FAR it counts by its logarithm. X may have more columns."""
    for t in range(X.shape[0]):
        for j in range(mean.shape[0]):
            z = (X[t, j] - mean[j]) / scale[j]
            if abs(z) > FAR:
                far = FAR + math.log1p(smaller(abs(z), LARGEST_INPUT) - FAR)
                z = far if z > 0.0 else -far
            out[t, j] = z


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
