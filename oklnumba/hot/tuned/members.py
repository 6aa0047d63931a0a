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
from oklnumba.hot.tuned.coordinates import Block, Spans, Tree, place_rounds, sort_rounds
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


class Group(NamedTuple):
    """A space, its members, and where they write."""

    tree: Tree
    spans: Spans
    block: Block
    ridges: Ridges
    rules: Rules
    sums: Sums
    sorted: Results  # of the rows of the block
    results: Results  # of the rounds


SORT, PLACE, REGRESS, END = range(4)  # steps of a block


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
def leaf_rounds(first, stop, leaf, share, learns, rows, ridges, results):
    """Play regressions of a leaf, and AWV beside them. Returns the row that failed, a status.

    learns : else the rows are only forecast.
    """
    Z, Y, compared = rows.Z, rows.Y, rows.compared[leaf]
    while first < stop:
        r, end = rows.columns[first], find_growth(rows.columns, first, stop)
        span = Span(first, end, r, smaller(compared, r))
        for s in range(first, end if compared >= r else first):
            for k in range(ridges.growth.shape[1]):
                ridges.growth[s, k] = 0.0
        for i in range(share.ridge, share.ridge_stop):
            factor, numbers = factor_of(ridges, leaf, i), ridges.forgetting[i]
            forgetting = Forgetting(numbers[0], numbers[1], numbers[2])
            ridge, awv = results.forecasts[2 * i], results.forecasts[2 * i + 1]
            out, sums = Rounds(awv, ridge, ridges.shrinks, ridges.growth), results.certificates[i]
            if learns:
                played, status = awv_certified_rounds(
                    Z, Y, span, factor, forgetting, ridges.sweep, False, out,
                    Certificate(ridges.totals[leaf, i], sums[0], sums[1], sums[2]),
                )  # fmt: skip
                if status != DONE:
                    return played, status
            else:
                awv_forecasts(Z, span, factor, forgetting, ridges.sweep, False, out)
        first = end
    return stop, DONE


@hot
def ridge_rounds(share, learns, rows, ridges, results):
    """Play the regressions of a share of a block. Returns the round that failed and a status."""
    first = share.first
    for leaf in range(share.leaf, share.leaf_stop):
        stop = rows.ends[leaf]
        failed, status = leaf_rounds(first, stop, leaf, share, learns, rows, ridges, results)
        if status != DONE:
            return rows.order[failed], status
        first = stop
    return first, DONE


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
def sum_certificates(n, total, certificates):
    """Replace the steps of certificates by their sums."""
    for t in range(n):
        for i in range(certificates.shape[0]):
            for part in range(certificates.shape[1]):
                for k in range(certificates.shape[3]):
                    total[i, part, k] += certificates[i, part, t, k]
                    certificates[i, part, t, k] = total[i, part, k]


@hot
def sum_sizes(n, counts, block):
    """Replace the steps of sizes by their sums, which end with what the counts are now."""
    size = 0
    for leaf in range(counts.shape[0]):
        size += counts[leaf, ATOMS]
    for t in range(n - 1, -1, -1):
        step = block.atoms[t]
        block.atoms[t] = size
        size -= step


@hot
def end_rounds(n, learns, group):
    """Play the rules; write all results in the order of the rounds.

    Returns the round that failed and a status.
    """
    first, block, rows, rules = 0, group.block, group.block.rows, group.rules
    before, after = group.sorted, group.results
    for leaf in range(rows.ends.shape[0]):
        stop = rows.ends[leaf]
        for i in range(rules.codes.shape[0]):
            forecasts = before.forecasts[2 * before.certificates.shape[0] + i]
            failed, status = rule_rounds(first, stop, leaf, i, learns, rules, rows, forecasts)
            if status != DONE:
                return rows.order[failed], status
        if learns:
            unsort_certificates(
                first, stop, rows.order, group.sums.latest[leaf], before.certificates,
                after.certificates,
            )  # fmt: skip
        first = stop
    unsort_forecasts(n, rows.order, before.forecasts, after.forecasts)
    if learns:
        sum_certificates(n, group.sums.total, after.certificates)
        sum_sizes(n, group.spans.counts, block)
    return n, DONE


@hot
def group_rounds(step, last, X, Y, coins, is_forecast_point, share, group):
    """Play the steps from ``step`` to ``last`` of n rounds: PLACE and REGRESS of a share of them.

    Y : (n, K), empty if the rounds are only forecast; coins : (n,), of points that may join
    dictionaries, empty if none may; is_forecast_point : whether the last call was the forecast of
    the only row. Returns the round that failed and a status.
    """
    failed, status, learns = 0, DONE, Y.shape[0] > 0
    if step == SORT:
        sort_rounds(X, Y, coins, group.tree, group.block)
    if step <= PLACE <= last:
        joins = coins.shape[0] > 0
        failed, status = place_rounds(joins, share, is_forecast_point, group.spans, group.block)
    if status == DONE and step <= REGRESS <= last:
        failed, status = ridge_rounds(share, learns, group.block.rows, group.ridges, group.sorted)
    if status == DONE and last == END:
        failed, status = end_rounds(X.shape[0], learns, group)
    return failed, status
