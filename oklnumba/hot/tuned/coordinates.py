"""Coordinates on which SelfTuning's members play: leaves of a tree, with a dictionary in each.

Of the dictionary I of a leaf, of at most max_size atoms, K_I = R'R:

    x_t, scaled, goes to its leaf
    z_t = (1, R^-T k_I(x_t));   max_size 0, of linear members: z_t = (1, x_t)
    x_t may join I, up to max_size, with probability min(beta tau, 1): KORS' estimate of its ridge
        leverage score, tau = (1 + eps) (1 - alpha / (alpha + k(x_t, x_t) - |b|^2)), b = C^-T S k_I,
        C'C = S K_I S + alpha I, S = diag(1 / sqrt(probability)) of the atoms

Coordinates depend on the past only and never change. A point that joins adds a coordinate for later
rounds: it is 0 in earlier rounds, and in the round of the point. None is added if rounding would
spoil it: if the squared distance to the span of the atoms, k(x_t, x_t) - |R^-T k_I|^2, is tiny.
"""

import math
from typing import Annotated, NamedTuple

from oklnumba.hot.primitives.dictionary import (
    NUGGET,
    RANK,
    JoiningRule,
    KORSState,
    joining_probability,
    keep_point,
    squared_distance,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import ATOMS, DONE, NOT_FINITE, NOT_POSITIVE, Array, hot, hot_apart
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row
from oklnumba.hot.primitives.udu import LANES, SWEEP, TOGETHER, find_row, pad, solve_rounds

JOINING = JoiningRule(alpha=0.1, beta=1.0, eps=0.5)  # KORS of all dictionaries
COMPARED = 2  # entry of the counts after ATOMS and RANK: the rank before round 1, for certificates
AGAIN = -1.0  # the coin of an atom where a dictionary that was saved is computed again


class Tree(NamedTuple):
    """Scales of the inputs, and a tree with L leaves that splits them so scaled.

    Node i has the children 2 i + 1 and 2 i + 2.
    """

    scales: Array  # (d,)
    columns: Array  # (L - 1,): the input that a node splits
    thresholds: Array  # (L - 1,): beyond it an input goes to the second child


class Maps(NamedTuple):
    """A dictionary in each leaf, R = diag(1 / inv_pivots) unit_R; the inputs if max_size is 0."""

    kernel: tuple
    max_size: int
    counts: Annotated[Array, "leaves", "counts"]  # ATOMS, RANK, COMPARED
    atoms: Annotated[Array, "leaves", "d", "cap"]
    weights: Annotated[Array, "leaves", "cap"]  # of KORS
    kors: Annotated[Array, "leaves", "cap", "cap"]
    span: Annotated[Array, "leaves", "cap"]  # the atoms that span
    unit_R: Annotated[Array, "leaves", "lines", "cap"]  # packed (udu.py)
    inv_pivots: Annotated[Array, "leaves", "cap"]
    k: Array  # (cap,): kernel values of a point
    b: Array  # (cap,): workspace of KORS
    q: Array  # (TOGETHER, cap): coordinates of rows that share a pass over U


class Rows(NamedTuple):
    """What regressions play: up to n rounds, sorted by leaf. Row s is round order[s]."""

    order: Array  # (n,)
    ends: Array  # (L,): of the leaves among the rows
    Z: Array  # (n, > cap): 1, the coordinates, zeros up to whole vectors
    widths: Array  # (n,): how many columns these are
    Y: Array  # (n, K)
    compared: Array  # (L,): columns of the functions that certificates compare with


class Block(NamedTuple):
    """Rounds that are played together."""

    rows: Rows
    leaf: Array  # (n,): of each round
    X: Array  # (n, d): of each row, scaled
    coins: Array  # (n,): of each row
    row_sizes: Array  # (n,): atoms in the leaf of each row after it
    sizes: Array  # (n,): atoms in all leaves after each round


class Share(NamedTuple):
    """What one thread plays of a block: some rows of some leaves, and some regressions."""

    leaf: int
    leaf_stop: int
    first: int  # of the rows
    stop: int
    regression: int
    regression_stop: int


@hot
def sort_rounds(view, Y, coins, tree, block):
    """Sort rounds by leaf, each leaf's in their order: inputs, scaled, labels and coins."""
    inner, rows, ends = tree.columns.shape[0], block.rows, block.rows.ends
    for leaf in range(ends.shape[0]):
        ends[leaf] = 0
    for t in range(view.shape[0]):
        node = 0
        while node < inner:
            j = tree.columns[node]
            node = 2 * node + (2 if view[t, j] * tree.scales[j] > tree.thresholds[node] else 1)
        block.leaf[t] = node - inner
        ends[node - inner] += 1  # for now the rows of each leaf
    start = 0
    for leaf in range(ends.shape[0]):  # and now where each leaf starts; it ends where rows are in
        start, ends[leaf] = start + ends[leaf], start
    for t in range(view.shape[0]):
        leaf = block.leaf[t]
        s = ends[leaf]
        rows.order[s] = t
        ends[leaf] = s + 1
        for j in range(view.shape[1]):
            block.X[s, j] = view[t, j] * tree.scales[j]
    for s in range(Y.shape[0]):
        for k in range(Y.shape[1]):
            rows.Y[s, k] = Y[rows.order[s], k]
    for s in range(coins.shape[0]):
        block.coins[s] = coins[rows.order[s]]


@hot
def copy_inputs(first, stop, block):
    """Write the inputs themselves after a 1, for linear members."""
    d, rows = block.X.shape[1], block.rows
    for s in range(first, stop):
        z = rows.Z[s]
        z[0] = 1.0
        for j in range(d):
            z[j + 1] = block.X[s, j]
        rows.widths[s] = pad(z, d + 1)


@hot_apart
def map_rows(first, stop, leaf, maps, block):
    """Write the coordinates of rows of a leaf as its dictionary is now.

    The last row leaves its kernel values in k and its coordinates in q[0]: ``try_to_join``.
    """
    if maps.max_size == 0:
        copy_inputs(first, stop, block)
        return
    m, rank = maps.counts[leaf, ATOMS], maps.counts[leaf, RANK]
    atoms, span, inv_pivots = maps.atoms[leaf], maps.span[leaf], maps.inv_pivots[leaf]
    s = first
    while s < stop:
        count = larger(smaller(TOGETHER, (stop - s) // SWEEP * SWEEP), 1)
        for i in range(count):
            kernel_row(maps.kernel, block.X[s + i], atoms, m, maps.k)
            q = maps.q[i]
            for j in range(rank):
                q[j] = maps.k[span[j]]
            pad(q, rank)
        solve_rounds(maps.unit_R[leaf], maps.q, count, pad(maps.q[0], rank))
        for i in range(count):
            z, q = block.rows.Z[s + i], maps.q[i]
            z[0] = 1.0
            for j in range(rank):
                q[j] *= inv_pivots[j]
                z[j + 1] = q[j]
            block.rows.widths[s + i] = pad(z, rank + 1)
            block.row_sizes[s + i] = m
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
def clear_rows(U, first, stop):
    """Write zeros to rows of U."""
    for k in range(first, stop):
        line, start = find_row(U, k)
        row = U[line, start : start + U.shape[1] - k]
        for j in range(row.shape[0]):
            row[j] = 0.0


@hot
def add_direction(delta, leaf, maps):
    """Let the point that joins next, mapped last, add a direction at the squared distance delta."""
    counts, U = maps.counts[leaf], maps.unit_R[leaf]
    q, inv_pivots = maps.q[0], maps.inv_pivots[leaf]
    rank = counts[RANK]
    if rank % LANES == 0:  # written before passes over whole vectors read it: see end_choice
        clear_rows(U, rank, smaller(rank + LANES, U.shape[1]))
    for i in range(rank):
        line, start = find_row(U, i)
        U[line, start + rank - i] = q[i] * inv_pivots[i]
    inv_pivots[rank] = 1.0 / math.sqrt(delta)
    maps.span[leaf, rank] = counts[ATOMS]
    counts[RANK] = rank + 1


@hot
def kors_of(leaf, maps):
    """Return the state of KORS in a leaf."""
    return KORSState(maps.counts[leaf], maps.atoms[leaf], maps.weights[leaf], maps.kors[leaf])


@hot
def try_to_join(x, coin, leaf, maps):
    """Let the point that map_rows mapped last, alone, join the dictionary if its coin says so.

    For later rounds: they have one coordinate more if it adds a direction. A point with the coin
    AGAIN was an atom and joins as it did. Returns a status.
    """
    kors, q, rank = kors_of(leaf, maps), maps.q[0], maps.counts[leaf, RANK]
    k_xx = kernel_diag(maps.kernel, x)
    probability = joining_probability(JOINING, kors, maps.k, k_xx, maps.b)
    if not probability >= 0.0:
        return NOT_FINITE
    if coin >= probability:
        return DONE
    delta = squared_distance(q, k_xx, rank)
    if coin == AGAIN:
        adds = maps.span[leaf, rank] == kors.counts[ATOMS]
    else:
        U, inv_pivots = maps.unit_R[leaf], maps.inv_pivots[leaf]
        adds = adds_packed_direction(U, inv_pivots, q, rank, delta, k_xx, maps.k)
    if adds:
        add_direction(delta, leaf, maps)
    joined = keep_point(JOINING, kors, x, k_xx, probability, maps.b)
    return DONE if joined else NOT_POSITIVE


@hot
def map_rounds(first, stop, leaf, joins, was_forecast, maps, block):
    """Write the coordinates of the rounds of a leaf; after its round each point may join.

    joins : whether points may join; was_forecast : whether a forecast wrote the coordinates of
    the only row. Returns the row that failed, if any, and a status.
    """
    s, counts = first, maps.counts[leaf]
    while joins and s < stop and counts[ATOMS] < maps.max_size:
        if not was_forecast:
            map_rows(s, s + 1, leaf, maps, block)
        status = try_to_join(block.X[s], block.coins[s], leaf, maps)
        if status != DONE:
            return s, status
        block.row_sizes[s] = counts[ATOMS]
        s += 1
    if s < stop and not was_forecast:
        map_rows(s, stop, leaf, maps, block)
    return stop, DONE


@hot
def write_sizes(first, stop, size, block):
    """Write the increments of a leaf's size, ``size`` before, in the order of the rounds."""
    for s in range(first, stop):
        block.sizes[block.rows.order[s]] = block.row_sizes[s] - size
        size = block.row_sizes[s]


@hot
def map_share(joins, share, was_forecast, maps, block):
    """Write the coordinates of a share of a block. Returns the round that failed and a status."""
    rows, first = block.rows, share.first
    for leaf in range(share.leaf, share.leaf_stop):
        stop, atoms = smaller(rows.ends[leaf], share.stop), maps.counts[leaf, ATOMS]
        if first < stop:
            rows.compared[leaf] = maps.counts[leaf, COMPARED] + 1
            failed, status = map_rounds(first, stop, leaf, joins, was_forecast, maps, block)
            if status != DONE:
                return rows.order[failed], status
            write_sizes(first, stop, atoms, block)
        first = stop
    return first, DONE
