"""Rounds of the members of one of SelfTuning's spaces, in one leaf of its tree.

A leaf has a dictionary I of at most max_size atoms, K_I = R'R, N regressions and M rules:

    z_t = (1, R^-T k_I(x_t));   max_size 0, of linear members: z_t = (1, x_t)
    ridge regression and AWV on z_t, y_t, each with a lam and a discount      # hot/awv.py
    M rules, as below, on z_t, y_t
    x_t may join I, up to max_size, with probability min(beta tau, 1): KORS' estimate of its ridge
        leverage score, tau = (1 + eps) (1 - alpha / (alpha + k(x_t, x_t) - |b|^2)), b = C^-T S k_I,
        C'C = S K_I S + alpha I, S = diag(1 / sqrt(probability)) of the atoms

Coordinates depend on the past only and never change. A point that joins adds a coordinate for later
rounds: it is 0 in earlier rounds, and in the round of the point. None is added if rounding would
spoil it: if the squared distance to the span of the atoms, k(x_t, x_t) - |R^-T k_I|^2, is tiny.

Rules are gradient descent and PA-I (Crammer et al. 2006, Figure 1):

    w_1 = 0; for t = 1, ..., n:
        yhat_t = w_t.z_t;   w_{t+1} = w_t + tau_t z_t
        PA-I, labels -1 and +1: tau_t = y_t min(C, (1 - y_t yhat_t)_+ / |z_t|^2)       (hinge)
        PA-I, real labels: tau_t = sign(y_t - yhat_t) min(C, |y_t - yhat_t| / |z_t|^2)
        descent, real labels: tau_t = eta (y_t - yhat_t) / |z_t|^2, eta = step / (1 + step)
        descent, labels -1 and +1: yhat_t = 2 / (1 + exp(-w_t.z_t)) - 1 = 2 P(y = 1) - 1,
            tau_t = (step / 2) (y_t - yhat_t) / |z_t|^2                                (logistic)

C is in units of the largest |y_s|, s <= t, or what shrink_units left of it. eta makes the step on
the squared loss implicit, so it is stable for any length.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.awv import AWVResults, Certificate, Stretch, awv_forecasts, awv_rounds
from oklnumba.hot.primitives.dictionary import (
    NUGGET,
    RANK,
    JoiningRule,
    KORSState,
    keep_point,
    kors_probability,
    squared_distance,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.factor import Factor, PassWork, Pending, copy_row, has_label
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NOT_FINITE,
    NOT_POSITIVE,
    PADDED,
    REMADE,
    SPARSE,
    UNBOUNDED,
    UPPER,
    Array,
    Integers,
    hot,
    hot_apart,
    unbind,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.rows import kernel_diag, kernel_rows
from oklnumba.hot.primitives.udu import (
    LANES,
    TOGETHER,
    Forgetting,
    find_row,
    pad,
    solve_rounds,
)

JOINING = JoiningRule(alpha=0.1, beta=1.0, eps=0.5)  # KORS of all dictionaries
COMPARED = 2  # entry of the counts after ATOMS and RANK: the rank before round 1, for certificates
AGAIN = -1.0  # the coin of an atom where a dictionary that was saved is computed again
PASSIVE_AGGRESSIVE, DESCENT = range(2)  # codes of rules
NEVER = 1.0  # the coin of a row that is only forecast
EVERY, SORT, PLAY, SUM = range(4)  # steps of space_rounds


class GroupState(NamedTuple):
    """What the members of a space keep: arrays of the NamedTuples that the loops take."""

    counts: Annotated[Integers, "leaves", "counts"]  # ATOMS, RANK, COMPARED
    atoms: Annotated[Array, "leaves", "d", "cap", SPARSE]
    weights: Annotated[Array, "leaves", "cap", REMADE]  # of KORS
    kors: Annotated[Array, "leaves", "cap", "cap", SPARSE, REMADE]
    span: Annotated[Integers, "leaves", "cap"]  # the atoms that span
    unit_R: Annotated[Array, "leaves", "lines", "cap", SPARSE, REMADE]  # packed (udu.py)
    inv_pivots: Annotated[Array, "leaves", "cap", REMADE]
    U: Annotated[Array, "leaves", "regressions", "U_lines", "r", UPPER, PADDED, SPARSE]  # packed
    inv_d: Annotated[Array, "leaves", "regressions", "r"]
    c: Annotated[Array, "leaves", "regressions", "outputs", "r"]
    totals: Annotated[Array, "leaves", "regressions", "outputs", "totals", UNBOUNDED]
    w: Annotated[Array, "leaves", "rules", "outputs", "r"]
    max_label: Annotated[Array, "leaves", "rules", "outputs"]
    latest: Annotated[Array, "leaves", "regressions", "sums", "outputs", UNBOUNDED]
    total: Annotated[Array, "regressions", "sums", "outputs", UNBOUNDED]


class Dictionaries(NamedTuple):
    """A dictionary in each leaf, R = diag(1 / inv_pivots) unit_R; the inputs if max_size is 0."""

    kernel: tuple
    max_size: int
    counts: Integers
    atoms: Array
    weights: Array
    kors: Array
    span: Integers
    unit_R: Array
    inv_pivots: Array


class Regressions(NamedTuple):
    """N ridge regressions in each of L leaves, for K labels a round: factors of hot/awv.py."""

    U: Array  # (L, N, lines, r)
    inv_d: Array  # (L, N, r)
    c: Array  # (L, N, K, r)
    totals: Array  # (L, N, K, totals): of the certificates
    pending: Pending  # of arrays (L, N, ...)
    forgetting: Array  # (N, 3): the numbers of Forgetting


class Rules(NamedTuple):
    """M rules in each of L leaves, for K labels a round."""

    codes: Integers  # (M,)
    rates: Array  # (M,): C of PA-I, in units of the largest |y|, or the step over |z|^2
    signs: Array  # (K,): 1 for labels -1 and +1; 0 for real ones, and before round 32
    w: Array  # (L, M, K, r)
    max_label: Array  # (L, M, K): largest |y| so far in the leaf, or what shrink_units left of it


class Sums(NamedTuple):
    """Certificates after the last round: a forecaster's is the sum of those of its leaves."""

    latest: Array  # of each leaf
    total: Array  # of all leaves together


class Results(NamedTuple):
    """Results of a block of rounds."""

    forecasts: Array  # (2 N + M, n, K): ridge and AWV of each regression in turn, then the rules
    certificates: Array  # (N, 3, n, K): loss, comparator and bound of AWV
    sizes: Integers  # (n,): atoms in all leaves after each round


class Tree(NamedTuple):
    """Scales of the inputs, and a tree with L leaves that splits them so scaled.

    Node i has the children 2 i + 1 and 2 i + 2.
    """

    scales: Array  # (d,)
    columns: Integers  # (L - 1,): the input that a node splits
    thresholds: Array  # (L - 1,): beyond it an input goes to the second child


class Space(NamedTuple):
    """The members of a space, in all its leaves, what they see, and where they write."""

    dictionaries: Dictionaries
    regressions: Regressions
    rules: Rules
    sums: Sums
    results: Results
    tree: Tree
    sees_scores: int  # 1 if it sees normal scores in place of the inputs


class Rows(NamedTuple):
    """Workspace for n rounds of one leaf."""

    forecasts: Array  # as in Results, of these rounds
    certificates: Array
    Z: Array  # (n, > cap): 1, the coordinates, zeros up to whole vectors
    to_map: Integers  # (n,): which rows map_rows maps
    widths: Array  # (n,): how many columns these are
    sizes: Integers  # (n,): atoms in the leaf after each round
    a: Array  # (n,)
    growth: Array  # (n, K)
    points: Array  # (TOGETHER, d): rows that share a pass over the atoms, and that over U
    K: Array  # (TOGETHER, cap): their kernel values
    b: Array  # (cap,): workspace of KORS
    q: Array  # (TOGETHER, cap): their coordinates
    passes: PassWork


class Block(NamedTuple):
    """Rounds of G spaces, those of each in the order of its leaves."""

    X: Array  # (G, n, d), scaled
    Y: Array  # (G, n, K)
    coins: Array  # (G, n): of points that may join the dictionary
    asked: Integers  # (G, n): as in Seen, but the place in the leaf
    order: Integers  # (G, n): which round each is
    places: Integers  # (G, n): of each round in its leaf
    jobs: Integers  # (G n, 4): what one leaf plays: space, leaf, first round, stop
    filled: Integers  # (1,): 1 once a dictionary became full


class Seen(NamedTuple):
    """What spaces see of n rounds, not scaled."""

    Z: Array  # (n, >= d)
    scores: Array  # (n, >= d): in place of Z
    Y: Array  # (n, K), empty if there are no labels
    coins: Array  # (G, n), empty if no point may join
    asked: Integers  # (n,): the earlier round that was the forecast of each, or -1; or empty
    base: Array  # (n, K): added to forecasts, or empty


@hot
def sort_rounds(seen, some, spaces, block):
    """Write the rounds of ``some`` spaces; return how many jobs there are."""
    n, jobs = seen.Z.shape[0], 0
    for g in range(some.shape[0]):
        space = unbind(spaces[some[g]])
        X, Y, tree, places, s = seen.Z, block.Y[g], space.tree, block.places[g], 0
        scales, columns = tree.scales, tree.columns
        if space.sees_scores:
            X = seen.scores
        for t in range(n):
            node = 0
            while node < columns.shape[0]:
                scaled = X[t, columns[node]] * scales[columns[node]]
                node = 2 * node + (2 if scaled > tree.thresholds[node] else 1)
            places[t] = columns.shape[0] - node - 1  # below 0 until its leaf has its turn
        for leaf in range(columns.shape[0] + 1):
            first = s
            for t in range(n):
                if places[t] != -1 - leaf:
                    continue
                block.order[g, s], places[t] = t, s - first
                for j in range(scales.shape[0]):
                    block.X[g, s, j] = X[t, j] * scales[j]
                for k in range(Y.shape[1] if seen.Y.shape[0] > 0 else 0):
                    Y[s, k] = seen.Y[t, k]
                if seen.coins.shape[0] > 0:
                    block.coins[g, s] = seen.coins[g, t]
                if seen.asked.shape[0] > 0:
                    earlier = seen.asked[t]
                    block.asked[g, s] = places[earlier] if earlier >= 0 else -1
                s += 1
            if s > first:
                job = block.jobs[jobs]
                job[0], job[1], job[2], job[3] = g, leaf, first, s
                jobs += 1
    return jobs


# ---- coordinates ----


@hot_apart
def map_rows(some, leaf, X, maps, rows):
    """Write the coordinates of some rows of a leaf as its dictionary is now.

    A single row leaves its kernel values in K[0] and its coordinates in q[0]: ``try_to_join``.
    """
    if maps.max_size == 0:  # the inputs themselves after a 1, for linear members
        for s in some:
            z = rows.Z[s]
            z[0] = 1.0
            for j in range(X.shape[1]):
                z[j + 1] = X[s, j]
            rows.widths[s], rows.sizes[s] = pad(z, X.shape[1] + 1), 0
        return
    m, rank = maps.counts[leaf, ATOMS], maps.counts[leaf, RANK]
    atoms, span, inv_pivots = maps.atoms[leaf], maps.span[leaf], maps.inv_pivots[leaf]
    s = 0
    while s < some.shape[0]:
        count = smaller(TOGETHER, some.shape[0] - s)
        for i in range(count):
            copy_row(X[some[s + i]], rows.points[i], X.shape[1])
        kernel_rows(maps.kernel, rows.points, 0, count, atoms, 0, m, rows.K, 0)
        for i in range(count):
            k, q = rows.K[i], rows.q[i]
            for j in range(rank):
                q[j] = k[span[j]]
            width = pad(q, rank)
        solve_rounds(maps.unit_R[leaf], rows.q, count, width)
        for i in range(count):
            t, q = some[s + i], rows.q[i]
            z = rows.Z[t]
            z[0] = 1.0
            for j in range(rank):
                q[j] *= inv_pivots[j]
                z[j + 1] = q[j]
            rows.widths[t], rows.sizes[t] = pad(z, rank + 1), m
        s += count


@hot
def adds_packed_direction(U, inv_pivots, q, rank, delta, k_xx, v):
    """Return what adds_direction of hot/primitives/dictionary.py does, for this form of R."""
    for j in range(rank):
        v[j] = q[j] * inv_pivots[j]
    nuggets = k_xx
    for i in range(rank - 1, -1, -1):
        line, start = find_row(U, i)
        row, tail = U[line, start + 1 : start + rank - i], v[i + 1 : rank]
        s, squares = v[i], 0.0
        for j in range(tail.shape[0]):
            term = row[j] * tail[j]
            s -= term
            squares += term * term
        v[i] = s
        nuggets += (squares + s * s) / (inv_pivots[i] * inv_pivots[i])
    return delta > 1.1 * NUGGET * nuggets


@hot
def add_direction(delta, leaf, maps, q):
    """Let the point that joins next, mapped last, add a direction at the squared distance delta."""
    counts, U, inv_pivots = maps.counts[leaf], maps.unit_R[leaf], maps.inv_pivots[leaf]
    rank = counts[RANK]
    if rank % LANES == 0:  # written before passes over whole vectors read it: see end_choice
        for k in range(rank, smaller(rank + LANES, U.shape[1])):
            line, start = find_row(U, k)
            row = U[line, start : start + U.shape[1] - k]
            for j in range(row.shape[0]):
                row[j] = 0.0
    for i in range(rank):
        line, start = find_row(U, i)
        U[line, start + rank - i] = q[i] * inv_pivots[i]
    inv_pivots[rank] = 1.0 / math.sqrt(delta)
    maps.span[leaf, rank] = counts[ATOMS]
    counts[RANK] = rank + 1


@hot
def try_to_join(x, coin, leaf, maps, rows):
    """Let the point that map_rows mapped last, alone, join the dictionary if its coin says so.

    For later rounds: they have one coordinate more if it adds a direction. A point with the coin
    AGAIN was an atom and joins as it did. Returns a status.
    """
    kors = KORSState(maps.counts[leaf], maps.atoms[leaf], maps.weights[leaf], maps.kors[leaf])
    k, q, rank, k_xx = rows.K[0], rows.q[0], maps.counts[leaf, RANK], kernel_diag(maps.kernel, x)
    m = kors.counts[ATOMS]
    probability = kors_probability(JOINING, kors.weights, kors.kors, k, k_xx, rows.b, m)
    if not probability >= 0.0:
        return NOT_FINITE
    if coin >= probability:
        return DONE
    delta = squared_distance(q, k_xx, rank)
    if coin == AGAIN:
        adds = maps.span[leaf, rank] == m
    else:
        U, inv_pivots = maps.unit_R[leaf], maps.inv_pivots[leaf]
        adds = adds_packed_direction(U, inv_pivots, q, rank, delta, k_xx, k)
    if adds:
        add_direction(delta, leaf, maps, q)
    joined = keep_point(JOINING, kors, x, k_xx, probability, rows.b)
    return DONE if joined else NOT_POSITIVE


@hot
def map_rounds(leaf, X, coins, asked, was_forecast, maps, rows):
    """Write the coordinates of rounds; after its round each point may join, if there are coins.

    asked : (n,), which of these was the forecast of each, with the same inputs, or -1; or empty.
    was_forecast : whether a forecast wrote the coordinates of the only row. Returns the row that
    failed, if any, and a status.
    """
    s, stop, counts, to_map = 0, X.shape[0], maps.counts[leaf], rows.to_map
    while s < coins.shape[0] and counts[ATOMS] < maps.max_size:
        if not was_forecast:
            to_map[0] = s
            map_rows(to_map[:1], leaf, X, maps, rows)
        status = DONE if coins[s] == NEVER else try_to_join(X[s], coins[s], leaf, maps, rows)
        if status != DONE:
            return s, status
        rows.sizes[s] = counts[ATOMS]
        s += 1
    if s < stop and not was_forecast:  # the dictionary stays: what was asked has its coordinates
        count, first = 0, s
        for t in range(first, stop):
            if not (asked.shape[0] > 0 and asked[t] >= first):
                to_map[count] = t
                count += 1
        map_rows(to_map[:count], leaf, X, maps, rows)
        for t in range(first, stop if count < stop - first else first):
            if asked[t] >= first:
                copy_row(rows.Z[asked[t]], rows.Z[t], rows.widths[asked[t]])
                rows.widths[t], rows.sizes[t] = rows.widths[asked[t]], rows.sizes[asked[t]]
    return stop, DONE


# ---- members ----


@hot
def factor_of(regressions, leaf, i):
    """Return the factor of regression i in a leaf."""
    pending = regressions.pending
    waiting = Pending(
        pending.columns[leaf, i], pending.z[leaf, i], pending.point[leaf, i], pending.p[leaf, i]
    )
    return Factor(
        regressions.U[leaf, i], regressions.inv_d[leaf, i], regressions.c[leaf, i], waiting
    )


@hot
def regression_rounds(leaf, some, n, Y, compared, regressions, rows):
    """Play regressions of a leaf, ``some`` first and stop, and AWV beside them, on n rows.

    Y : (n, K), as in space_rounds. All play as AWV (is_ridge False), which writes
    ridge's forecasts too. Returns the row that failed, a status.
    """
    first, work = 0, rows.passes
    while first < n:
        # Rows of one width, on which rounding depends, play together: however a stream is cut.
        r, end = rows.widths[first], first + 1
        while end < n and rows.widths[end] == r:
            end += 1
        stretch = Stretch(first, end, r, smaller(compared, r))
        if compared >= r:  # no column is new: awv_rounds leaves the growth as it is
            rows.growth[first:end] = 0.0
        for i in range(some[0], some[1]):
            factor, numbers = factor_of(regressions, leaf, i), regressions.forgetting[i]
            forgetting = Forgetting(numbers[0], numbers[1], numbers[2])
            ridge, awv = rows.forecasts[2 * i], rows.forecasts[2 * i + 1]
            out = AWVResults(awv, ridge, rows.a, rows.growth)
            if Y.shape[0] == 0:
                awv_forecasts(rows.Z, stretch, factor, forgetting, work, False, out)
                continue
            sums = rows.certificates[i]
            played, status = awv_rounds(
                rows.Z, Y, stretch, factor, forgetting, work, False, out,
                Certificate(regressions.totals[leaf, i], sums[0], sums[1], sums[2]),
            )  # fmt: skip
            if status != DONE:
                return played, status
        first = end
    return n, DONE


@hot
def step_length(code, sign, rate, max_label, y, forecast, square):
    """Return tau, how far a rule moves along z; ``square`` : |z|^2."""
    if code == DESCENT:
        length = 0.5 * rate if sign > 0.0 else rate / (1.0 + rate)
        return length * (y - forecast) / square
    if sign > 0.0:
        loss, towards = larger(1.0 - y * forecast, 0.0), y
    else:
        loss, towards = abs(y - forecast), 1.0 if y > forecast else -1.0
    return towards * smaller(rate * max_label, loss / square)


@hot
def rule_rounds(n, leaf, i, Y, rules, rows, forecasts):
    """Play n rows of a leaf by rule i, or only forecast. Returns the row that failed, a status."""
    code, rate, max_label = rules.codes[i], rules.rates[i], rules.max_label[leaf, i]
    for s in range(n):
        z, r = rows.Z[s], rows.widths[s]
        square = dot(z, z, r)  # >= 1, the intercept
        for k in range(max_label.shape[0]):
            w, sign = rules.w[leaf, i, k], rules.signs[k]
            forecast = dot(w, z, r)
            if code == DESCENT and sign > 0.0:
                forecast = 2.0 / (1.0 + math.exp(-forecast)) - 1.0
            if not abs(forecast) < np.inf:
                return s, NOT_FINITE
            forecasts[s, k] = forecast
            if has_label(Y, s):
                y = Y[s, k]
                max_label[k] = larger(max_label[k], abs(y))
                tau = step_length(code, sign, rate, max_label[k], y, forecast, square)
                add_multiple(w, tau, z, r)
    return n, DONE


@hot
def write_results(leaf, order, Y, before, space, rows):
    """Write results in the order of the rounds: of certificates and sizes the increments."""
    results, latest = space.results, space.sums.latest[leaf]
    for s in range(order.shape[0]):
        t = order[s]
        results.sizes[t], before = rows.sizes[s] - before, rows.sizes[s]
        for k in range(results.forecasts.shape[2]):
            for i in range(results.forecasts.shape[0]):
                results.forecasts[i, t, k] = rows.forecasts[i, s, k]
            for i in range(latest.shape[0] if Y.shape[0] > 0 else 0):
                for part in range(latest.shape[1]):
                    now = latest[i, part, k]
                    if has_label(Y, s):
                        now = rows.certificates[i, part, s, k]
                    results.certificates[i, part, t, k] = now - latest[i, part, k]
                    latest[i, part, k] = now


@hot
def sum_results(n, space, base):
    """Replace the increments of sizes and certificates of n rounds by their sums; add ``base``."""
    counts, total, results = space.dictionaries.counts, space.sums.total, space.results
    forecasts, certificates, size = results.forecasts, results.certificates, 0
    for leaf in range(counts.shape[0]):
        size += counts[leaf, ATOMS]
    for t in range(n - 1, -1, -1):
        results.sizes[t], size = size, size - results.sizes[t]
    for t in range(n):
        for j in range(total.shape[0]):
            for part in range(total.shape[1]):
                for k in range(total.shape[2]):
                    total[j, part, k] += certificates[j, part, t, k]
                    certificates[j, part, t, k] = total[j, part, k]
    for t in range(base.shape[0]):
        for j in range(forecasts.shape[0]):
            for k in range(forecasts.shape[2]):
                forecasts[j, t, k] += base[t, k]


@hot
def space_rounds(was_forecast, seen, some, spaces, block, step, first, stop, work):
    """Play rounds of ``some`` spaces in one go (EVERY), or step by step, for threads.

    SORT returns how many jobs there are; PLAY plays those from ``first`` to ``stop``; SUM comes
    when all have ended. With coins and without labels points only join. was_forecast : whether the
    last call was the forecast of the only row; spaces, work : Space and Rows of each, bound,
    together bound; block : Block, bound. Returns the round that failed, if any, and a status.
    """
    spaces, work, block, n = unbind(spaces), unbind(work), unbind(block), seen.Z.shape[0]
    learns, draws, asks = seen.Y.shape[0] > 0, seen.coins.shape[0] > 0, seen.asked.shape[0] > 0
    if step <= SORT:
        stop = sort_rounds(seen, some, spaces, block)
    if step == SORT:
        return stop, DONE
    for i in range(first, stop if step <= PLAY else first):
        job = block.jobs[i]
        g, leaf, start, end = job[0], job[1], job[2], job[3]
        space, rows = unbind(spaces[some[g]]), unbind(work[some[g]])
        counts, count = space.dictionaries.counts[leaf], space.regressions.forgetting.shape[0]
        X, order, size = block.X[g, start:end], block.order[g, start:end], counts[ATOMS]
        Y = block.Y[g, start : end if learns else start]
        coins = block.coins[g, start : end if draws else start]
        asked = block.asked[g, start : end if asks else start]
        failed, status = map_rounds(leaf, X, coins, asked, was_forecast, space.dictionaries, rows)
        if size < space.dictionaries.max_size == counts[ATOMS]:
            block.filled[:] = 1
        if status == DONE and draws and not learns:
            continue
        if status == DONE:
            failed, status = regression_rounds(
                leaf, (0, count), end - start, Y, counts[COMPARED] + 1, space.regressions, rows
            )
        for m in range(space.rules.codes.shape[0]):
            if status == DONE:
                own = rows.forecasts[2 * count + m]
                failed, status = rule_rounds(end - start, leaf, m, Y, space.rules, rows, own)
        if status != DONE:
            return order[failed], status
        write_results(leaf, order, Y, size, space, rows)
    if step != PLAY:
        for i in some:
            sum_results(n if learns else 0, unbind(spaces[i]), seen.base)
    return 0, DONE
