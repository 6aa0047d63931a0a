"""Rounds of the members of one of SelfTuning's spaces.

    for each leaf, for its rounds t:
        z_t = coordinates of x_t                                          # coordinates.py
        ridge regression and AWV on z_t, y_t, each with a lam and a discount      # hot/awv.py
        PA-I and gradient descent on z_t, y_t                             # rules.py

``group_rounds`` plays a block. Its rounds are sorted by leaf: round order[s] is row s. Loops play
rows, and ``unsort_results`` writes their results in the order of the rounds.

The certificate of an AWV forecaster is the sum of the certificates of its leaves. We add up their
increments, round by round, so that the sums do not depend on how the stream is cut.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.awv import AWVResults, Certificate, Stretch, awv_certified_rounds, awv_forecasts
from oklnumba.hot.primitives.elementary import smaller
from oklnumba.hot.primitives.factor import Factor, PassWork, Pending
from oklnumba.hot.primitives.jit import ATOMS, DONE, Array, hot, unbind
from oklnumba.hot.primitives.udu import Forgetting
from oklnumba.hot.tuned.coordinates import Block, Maps, Tree, map_share, sort_rounds
from oklnumba.hot.tuned.rules import Rules, rule_rounds


class Regressions(NamedTuple):
    """N ridge regressions in each of L leaves, for K labels a round: factors of hot/awv.py."""

    U: Annotated[Array, "leaves", "regressions", "U_lines", "r"]  # packed (udu.py)
    inv_d: Annotated[Array, "leaves", "regressions", "r"]
    c: Annotated[Array, "leaves", "regressions", "outputs", "r"]
    totals: Annotated[Array, "leaves", "regressions", "outputs", "totals"]  # of the certificates
    pending: Pending  # of arrays (L, N, ...)
    forgetting: Array  # (N, 3): the numbers of Forgetting
    work: PassWork
    shrinks: Array  # (n,)
    growth: Array  # (n, K)


class Results(NamedTuple):
    """Forecasts and certificates of a block of n rounds."""

    forecasts: Array  # (2 N + M, n, K): ridge and AWV of each regression in turn, then the rules
    certificates: Array  # (N, 3, n, K): loss, comparator and bound of AWV


class Sums(NamedTuple):
    """Certificates after the last round."""

    latest: Annotated[Array, "leaves", "regressions", "sums", "outputs"]  # of each leaf
    total: Annotated[Array, "regressions", "sums", "outputs"]  # of all leaves together


class GroupArguments(NamedTuple):
    """A space, its members, and where they write."""

    tree: Tree
    maps: Maps
    block: Block
    regressions: Regressions
    rules: Rules
    sums: Sums
    row_results: Results  # in the order of the rows of the block
    results: Results  # in the order of the rounds


# Phases of a block: sort its rounds by leaf; find coordinates; play regressions; play the rules and
# write the results in the order of the rounds. Or all four.
SORT, MAP, REGRESS, FINISH, ALL = range(5)


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
def find_next_width(widths, first, stop):
    """Return the next row, up to ``stop``, of another width than row ``first``.

    Rows of one width are a stretch. Rounding depends on the width, so not on how a stream is cut.
    """
    s = first + 1
    while s < stop and widths[s] == widths[first]:
        s += 1
    return s


@hot
def leaf_rounds(first, stop, leaf, share, learns, rows, regressions, results):
    """Play regressions of a leaf, and AWV beside them. Returns the row that failed, a status.

    learns : else the rows are only forecast. All play as AWV (is_ridge False), which writes ridge's
    forecasts too.
    """
    Z, Y, compared = rows.Z, rows.Y, rows.compared[leaf]
    while first < stop:
        r, end = rows.widths[first], find_next_width(rows.widths, first, stop)
        stretch = Stretch(first, end, r, smaller(compared, r))
        if compared >= r:  # no column is new: awv_rounds leaves the growth as it is
            for s in range(first, end):
                for k in range(regressions.growth.shape[1]):
                    regressions.growth[s, k] = 0.0
        for i in range(share.regression, share.regression_stop):
            factor, numbers = factor_of(regressions, leaf, i), regressions.forgetting[i]
            forgetting = Forgetting(numbers[0], numbers[1], numbers[2])
            ridge, awv = results.forecasts[2 * i], results.forecasts[2 * i + 1]
            out = AWVResults(awv, ridge, regressions.shrinks, regressions.growth)
            if learns:
                sums = results.certificates[i]
                played, status = awv_certified_rounds(
                    Z, Y, stretch, factor, forgetting, regressions.work, False, out,
                    Certificate(regressions.totals[leaf, i], sums[0], sums[1], sums[2]),
                )  # fmt: skip
                if status != DONE:
                    return played, status
            else:
                awv_forecasts(Z, stretch, factor, forgetting, regressions.work, False, out)
        first = end
    return stop, DONE


@hot
def regression_rounds(share, learns, rows, regressions, results):
    """Play the regressions of a share of a block. Returns the round that failed and a status."""
    first = share.first
    for leaf in range(share.leaf, share.leaf_stop):
        stop = rows.ends[leaf]
        failed, status = leaf_rounds(first, stop, leaf, share, learns, rows, regressions, results)
        if status != DONE:
            return rows.order[failed], status
        first = stop
    return first, DONE


@hot
def unsort_increments(first, stop, order, certificates, latest, out):
    """Write the increments of a leaf's certificates in the order of the rounds."""
    for s in range(first, stop):
        t = order[s]
        for i in range(certificates.shape[0]):
            for part in range(certificates.shape[1]):
                for k in range(certificates.shape[3]):
                    out[i, part, t, k] = certificates[i, part, s, k] - latest[i, part, k]
                    latest[i, part, k] = certificates[i, part, s, k]


@hot
def sum_increments(n, total, certificates):
    """Replace the increments of certificates by their sums."""
    for t in range(n):
        for i in range(certificates.shape[0]):
            for part in range(certificates.shape[1]):
                for k in range(certificates.shape[3]):
                    total[i, part, k] += certificates[i, part, t, k]
                    certificates[i, part, t, k] = total[i, part, k]


@hot
def sum_sizes(n, counts, sizes):
    """Replace the increments of sizes by their sums, which end with what the counts are now."""
    size = 0
    for leaf in range(counts.shape[0]):
        size += counts[leaf, ATOMS]
    for t in range(n - 1, -1, -1):
        increment = sizes[t]
        sizes[t] = size
        size -= increment


@hot
def play_rules(learns, rules, rows, results):
    """Play PA-I and descent in all leaves. Returns the round that failed and a status."""
    first, before = 0, 2 * results.certificates.shape[0]  # their forecasts follow the regressions'
    for leaf in range(rows.ends.shape[0]):
        stop = rows.ends[leaf]
        for i in range(rules.codes.shape[0]):
            forecasts = results.forecasts[before + i]
            failed, status = rule_rounds(first, stop, leaf, i, learns, rules, rows, forecasts)
            if status != DONE:
                return rows.order[failed], status
        first = stop
    return first, DONE


@hot
def unsort_results(n, learns, arguments):
    """Write all results in the order of the rounds."""
    group = unbind(arguments)
    first, rows, rounds, forecasts = 0, group.block.rows, group.results, group.row_results.forecasts
    for s in range(n):
        for k in range(forecasts.shape[2]):
            for i in range(forecasts.shape[0]):
                rounds.forecasts[i, rows.order[s], k] = forecasts[i, s, k]
    if learns:
        for leaf in range(rows.ends.shape[0]):
            stop, latest = rows.ends[leaf], group.sums.latest[leaf]
            certificates = group.row_results.certificates
            unsort_increments(first, stop, rows.order, certificates, latest, rounds.certificates)
            first = stop
        sum_increments(n, group.sums.total, rounds.certificates)
        sum_sizes(n, group.maps.counts, group.block.sizes)


@hot
def group_rounds(phase, view, Y, coins, was_forecast, share, arguments):
    """Play one phase of n rounds, or all; MAP and REGRESS of a share of the rounds.

    view : (n, d), inputs, read by SORT; Y : (n, K), empty if the rounds are only forecast; coins :
    (n,), of points that may join dictionaries, empty if none may; was_forecast : whether the last
    call was the forecast of the only row; arguments : GroupArguments. Returns the round that failed
    and a status.
    """
    group = unbind(arguments)
    failed, status, learns, rows = 0, DONE, Y.shape[0] > 0, group.block.rows
    if phase == SORT or phase == ALL:
        sort_rounds(view, Y, coins, group.tree, group.block)
    if phase == MAP or phase == ALL:
        joins = coins.shape[0] > 0
        failed, status = map_share(joins, share, was_forecast, group.maps, group.block)
    if status == DONE and (phase == REGRESS or phase == ALL):
        results = group.row_results
        failed, status = regression_rounds(share, learns, rows, group.regressions, results)
    if status == DONE and (phase == FINISH or phase == ALL):
        failed, status = play_rules(learns, group.rules, rows, group.row_results)
        if status == DONE:
            unsort_results(view.shape[0], learns, arguments)
    return failed, status
