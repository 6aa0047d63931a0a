"""Rounds of the members of one of SelfTuning's spaces.

    for each leaf, for its rounds t:
        z_t = coordinates of x_t                             # coordinates.py
        ridge regression and AWV on z_t, y_t, each with a lam and a discount   # awv.py
        PA-I and gradient descent on z_t, y_t                # rules.py

The certificate of an AWV forecaster is the sum of the certificates of its leaves. We keep it as
steps, round by round, so that the sums do not depend on how the stream is cut.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.awv import Certificate, Rounds, Span, awv_certified_rounds, awv_forecasts
from oklnumba.hot.primitives.elementary import smaller
from oklnumba.hot.primitives.factor import Factor, Pending, Sweep
from oklnumba.hot.primitives.jit import ATOMS, DONE, Array, hot
from oklnumba.hot.primitives.udu import Forgetting
from oklnumba.hot.tuned.coordinates import (
    CHOSEN,
    Block,
    Spans,
    Tree,
    map_rounds,
    sort_by_leaf,
)
from oklnumba.hot.tuned.rules import Rules, rule_rounds


class Ridges(NamedTuple):
    """N ridge regressions in each of L leaves, for K labels a round."""

    U: Annotated[Array, "leaves", "ridges", "U_lines", "r"]  # packed (udu.py)
    inv_d: Annotated[Array, "leaves", "ridges", "r"]
    c: Annotated[Array, "leaves", "ridges", "outputs", "r"]
    totals: Annotated[Array, "leaves", "ridges", "outputs", "totals"]  # of the certificates
    pending: Pending  # of arrays (L, N, ...)
    forgetting: Array  # (N, 3): the numbers of Forgetting
    sweep: Sweep
    shrinks: Array  # (n,)
    growth: Array  # (n, K)


class Results(NamedTuple):
    """Forecasts and certificates of a block of n rounds."""

    forecasts: Array  # (2 N + M, n, K): ridge and AWV of each regression in turn, then the rules
    certificates: Array  # (N, 3, n, K): loss, comparator and bound of AWV


class Sums(NamedTuple):
    """Certificates after the last round."""

    latest: Annotated[Array, "leaves", "ridges", "sums", "outputs"]  # of each leaf
    total: Annotated[Array, "ridges", "sums", "outputs"]  # of all leaves together


class Members(NamedTuple):
    """The members of a space, and the block of rounds that they play."""

    tree: Tree
    spans: Spans
    block: Block
    ridges: Ridges
    rules: Rules
    sums: Sums
    sorted: Results  # as the block is
    results: Results  # in the order of the rounds
    sizes: Array  # (n,): atoms in all leaves after each round


@hot
def factor_of(ridges, leaf, i):
    """Return the factor of regression i in a leaf."""
    pending = ridges.pending
    return Factor(
        ridges.U[leaf, i], ridges.inv_d[leaf, i], ridges.c[leaf, i],
        Pending(
            pending.columns[leaf, i], pending.z[leaf, i], pending.point[leaf, i],
            pending.p[leaf, i],
        ),
    )  # fmt: skip


@hot
def find_growth(columns, first, stop):
    """Return the next row, up to ``stop``, with other columns than row ``first``.

    Rounding depends on how many columns there are, so not on how the stream is cut.
    """
    s = first + 1
    while s < stop and columns[s] == columns[first]:
        s += 1
    return s


@hot
def ridge_rounds(Z, columns, Y, first, stop, compared, leaf, ridges, results):
    """Play the ridge regressions of a leaf, and AWV beside them; only forecast if Y is None.

    compared : columns of the functions to compare with. Returns the row that failed and a status.
    """
    while first < stop:
        r, end = columns[first], find_growth(columns, first, stop)
        span = Span(first, end, r, smaller(compared, r))
        for s in range(first, end if compared >= r else first):
            for k in range(ridges.growth.shape[1]):
                ridges.growth[s, k] = 0.0
        for i in range(ridges.forgetting.shape[0]):
            factor, numbers = factor_of(ridges, leaf, i), ridges.forgetting[i]
            forgetting = Forgetting(numbers[0], numbers[1], numbers[2])
            ridge, awv = results.forecasts[2 * i], results.forecasts[2 * i + 1]
            out, sums = Rounds(awv, ridge, ridges.shrinks, ridges.growth), results.certificates[i]
            if Y is None:
                awv_forecasts(Z, span, factor, forgetting, ridges.sweep, False, out)
            else:
                played, status = awv_certified_rounds(
                    Z, Y, span, factor, forgetting, ridges.sweep, False, out,
                    Certificate(ridges.totals[leaf, i], sums[0], sums[1], sums[2]),
                )  # fmt: skip
                if status != DONE:
                    return played, status
        first = end
    return stop, DONE


@hot
def leaf_rounds(
    first, stop, leaf, Y, joins, is_forecast_point, spans, block, ridges, rules, results
):
    """Play the rounds of one leaf. Returns the row that failed and a status."""
    played, status = map_rounds(first, stop, leaf, joins, is_forecast_point, spans, block)
    if status == DONE:
        played, status = ridge_rounds(
            block.Z, block.columns, Y, first, stop, spans.counts[leaf, CHOSEN] + 1, leaf,
            ridges, results,
        )  # fmt: skip
    for i in range(rules.codes.shape[0]):
        if status == DONE:
            forecasts = results.forecasts[2 * ridges.forgetting.shape[0] + i]
            played, status = rule_rounds(first, stop, leaf, i, Y, rules, block, forecasts)
    return played, status


@hot
def unsort_forecasts(n, order, forecasts, out):
    """Write the forecasts in the order of the rounds."""
    for s in range(n):
        for k in range(forecasts.shape[2]):
            for i in range(forecasts.shape[0]):
                out[i, order[s], k] = forecasts[i, s, k]


@hot
def unsort_certificates(first, stop, order, latest, certificates, out):
    """Write the steps of a leaf's certificates in the order of the rounds."""
    for s in range(first, stop):
        t = order[s]
        for i in range(certificates.shape[0]):
            for part in range(certificates.shape[1]):
                for k in range(certificates.shape[3]):
                    step = certificates[i, part, s, k] - latest[i, part, k]
                    out[i, part, t, k] = step
                    latest[i, part, k] = certificates[i, part, s, k]


@hot
def unsort_sizes(first, stop, size, block, out):
    """Write the steps of a leaf's size, which was ``size`` before, in the order of the rounds."""
    for s in range(first, stop):
        out[block.order[s]] = block.sizes[s] - size
        size = block.sizes[s]


@hot
def sum_leaves(n, size, total, certificates, sizes):
    """Replace the steps of certificates and sizes by their sums."""
    for t in range(n):
        size += sizes[t]
        sizes[t] = size
        for i in range(certificates.shape[0]):
            for part in range(certificates.shape[1]):
                for k in range(certificates.shape[3]):
                    total[i, part, k] += certificates[i, part, t, k]
                    certificates[i, part, t, k] = total[i, part, k]


@hot
def member_rounds(X, Y, coins, is_forecast_point, members):
    """Play n rounds of a space. Returns the round that failed and a status.

    coins : (n,), empty if no point may join a dictionary; is_forecast_point : whether the last call
    was the forecast of the only row. Without regressions and rules, the dictionaries choose points.
    """
    block, counts, joins = members.block, members.spans.counts, coins.shape[0] > 0
    latest, before, after = members.sums.latest, members.sorted, members.results
    n, first, size = Y.shape[0], 0, 0
    if not is_forecast_point:
        sort_by_leaf(X, members.tree, block)
    for s in range(n):
        for k in range(Y.shape[1]):
            block.Y[s, k] = Y[block.order[s], k]
        if joins:
            block.coins[s] = coins[block.order[s]]
    for leaf in range(block.ends.shape[0]):
        leaf_size, stop = counts[leaf, ATOMS], block.ends[leaf]
        size += leaf_size
        if first < stop:
            failed, status = leaf_rounds(
                first, stop, leaf, block.Y, joins, is_forecast_point, members.spans, block,
                members.ridges, members.rules, before,
            )  # fmt: skip
            if status != DONE:
                return block.order[failed], status
            unsort_sizes(first, stop, leaf_size, block, members.sizes)
            unsort_certificates(
                first, stop, block.order, latest[leaf], before.certificates, after.certificates
            )
        first = stop
    unsort_forecasts(n, block.order, before.forecasts, after.forecasts)
    sum_leaves(n, size, members.sums.total, after.certificates, members.sizes)
    return n, DONE


@hot
def member_forecasts(X, members):
    """Write what the members of a space would forecast for the rows of X."""
    block, first = members.block, 0
    sort_by_leaf(X, members.tree, block)
    for leaf in range(block.ends.shape[0]):
        stop = block.ends[leaf]
        if first < stop:
            leaf_rounds(
                first, stop, leaf, None, False, False, members.spans, block, members.ridges,
                members.rules, members.sorted,
            )  # fmt: skip
        first = stop
    unsort_forecasts(X.shape[0], block.order, members.sorted.forecasts, members.results.forecasts)
    return X.shape[0], DONE
