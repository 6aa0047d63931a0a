"""Rounds of AWV on a growing Nystrom subspace.

PKAWV with Nystrom projections (Jezequel, Gaillard and Rudi 2019, Algorithm 2; errata 18 to 20):

    I_0 = {}; for t = 1, ..., n:
        KORS looks at x_t and tosses a coin;   I_t = I_{t-1} + {t} or I_{t-1}
        K = (k(x_i, x_j)), i <= t, j in I_t;   K_mm = (k(x_i, x_j)), i, j in I_t
        R_t' R_t = K'K + lam K_mm          # from R_{t-1}: a row, and a column if x_t joined
        alpha_t = R_t^-1 R_t^-T K' (Y_{t-1}, 0)
        yhat_t = sum_{j in I_t} alpha_tj k(x_t, x_j)

The code has no R_t. Its R is another factor, R'R = K_mm, with a nugget (dictionary.py): the
coordinates q = R^-T k_m(x) make K_mm the identity, which is far better conditioned than
K'K + lam K_mm. So while the span stays, the algorithm is AWV on the features q_t (z_t of awv.py),
with A = lam I + sum_{s<t} q_s q_s' = U' D U, and b = sum_{s<t} y_s q_s kept as c = D^-1 U^-T b.
With a discount g round s counts g^(t - s), but D <- max(g D, lam), while U and c stay (hot/awv.py):

    p = U^-T q_t;   a = 1 + sum_j p_j^2 / D_j = 1 + q_t' A^-1 q_t;   yhat_t = p.c / a (ridge: p.c)
    A += q_t q_t';   c_j += beta_j (y_t - sum_{i<=j} p_i c_i), beta of hot/primitives/udu.py

A point that joins off the span, at distance rho, rho^2 = k(x, x) - q.q and a nugget, adds the
direction e = (k(x, .) - its projection) / rho. All past rounds get the coordinate
f_s = e(x_s) = (k(x, x_s) - q_s.q) / rho, and A and b grow by a border and a gain:

    A = [[A, sum f_s q_s], [., lam + sum f_s^2]]            # border = (sum f_s q_s, sum f_s^2)
    b = (b, sum f_s y_s)                                    # gains, one for each label

A point that joins in the span, up to rounding, adds no direction: it counts in KORS only, and R is
of those atoms that span.

The choice of atoms depends on no label (those of the past are for later gains only). So a block of
rounds is played in two passes, and a single round in these steps, by nystrom_awv_rounds:

    sample_rounds      sample_point: k_m(x_t), q_t, and the probability of KORS, whose alpha is mu;
                       if x_t joins: find_distance: rho; extend_span, if rho > 0: R, and q_t gets
                       the entry rho, less a nugget; keep_point, in either case: atom and KORS.
    append_past        adds the rounds to the past, but none from the last atom of max_size on
    write_borders      f_s, border and gains of all that joined off the span, together
    play_stretches     border_factor: A and b grow, where the span grew; what that takes off the
                       best function's loss goes to out.growth; awv_rounds: AWV on q_t
    certify            from y_t, a and growth: loss, best function's loss, bound (hot/awv.py)

A forecast before the round, nystrom_awv_forecasts, has the round's coin, which is drawn ahead
(Coins of core/state.py):

    sample_point       as above; the round then finds its row of space.points written (was_forecast)
    borrow_direction   if x_t will join: A and b with a border, which return_direction takes away
    p.c / a            without a border p waits for the round, which then needs no pass over U
                       (Pending of factor.py)

Atoms, R, C of KORS (C'b = S k in dictionary.py), the past and U outgrow the caches. So rounds of
wide inputs share passes, with the same bits: every PASS_ROWS rounds sample_point finds the entries
of k, q and KORS's b for the atoms so far, and in each round those for atoms that joined since.

In plain NumPy, the listing itself: nystrom_forecasts of tests/reference/naive.py.
"""

import math
from typing import Annotated, NamedTuple

from oklnumba.hot.awv import Stretch, awv_rounds, find_a
from oklnumba.hot.primitives.dictionary import (
    KORS,
    RANK,
    Dictionary,
    JoiningRule,
    Points,
    adds_direction,
    extend_span,
    keep_point,
    last_coordinate,
    probability_given_b,
    solve_ahead,
    squared_distance,
    take_span,
    weigh,
)
from oklnumba.hot.primitives.elementary import smaller
from oklnumba.hot.primitives.factor import (
    POINT,
    Factor,
    PassWork,
    copy_row,
    finish_pending,
    solve_points,
)
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    UNBOUNDED,
    Array,
    Integers,
    hot,
    hot_apart,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot, solve_rest, solve_upper_transposed
from oklnumba.hot.primitives.rows import (
    PASS_ROWS,
    kernel_diag,
    kernel_rows,
    next_kernel_row,
    put_rows,
    rows_together,
)
from oklnumba.hot.primitives.udu import Forgetting, pad, ridge_forecast

PAST = 2  # entry of the counts after ATOMS and RANK: past rounds in Past


class Past(NamedTuple):
    """The past, for new directions; empty once the dictionary has its largest size."""

    inputs: Annotated[Array, "d", PAST]
    labels: Annotated[Array, "outputs", PAST]
    Phi: Annotated[Array, PAST, RANK]  # coordinates q_s


class NystromAWVState(NamedTuple):
    """The dictionary, the past, and AWV or ridge regression on the span."""

    dictionary: Dictionary
    past: Past
    factor: Annotated[Factor, ("r", RANK)]  # grows with the rank
    totals: Annotated[Array, "outputs", "totals", UNBOUNDED]  # of the certificate


class Directions(NamedTuple):
    """Up to G new directions of a block: what write_borders reads and writes."""

    rounds: Integers  # (G,): the rows of X and Z that add them
    played: Integers  # (G,): past rounds
    rhos: Array  # (G,)
    borders: Array  # (G, cap): sum f_s q_s and behind it sum f_s^2, discounted
    gains: Array  # (G, K): sum f_s y_s, discounted
    points: Array  # (PASS_ROWS, d): workspace, as the next two
    columns: Array  # (PASS_ROWS, cap_n): k(x, past inputs)
    weights: Array  # (cap_n,): g, g^2, ...


class Space(NamedTuple):
    """The span of the dictionary, and how it grows."""

    kernel: tuple
    joining: JoiningRule
    max_size: float
    discount: float  # g: in sums over the past, round s counts g^(t - s)
    dictionary: Dictionary
    past: Past
    points: Points
    probability: Array  # (1,): with which the point that was sampled last joins
    v: Array  # (cap,): of adds_direction
    directions: Directions


class Sampled(NamedTuple):
    """What sample_rounds writes of the rounds of a block."""

    Z: Array  # (n, cap): coordinates
    ranks: Integers  # (n + 1,): before and after each round
    sizes: Integers  # (n,): atoms after each round


class Model(NamedTuple):
    """AWV, or ridge regression, on the coordinates."""

    lam: float
    is_ridge: bool
    forgetting: Forgetting
    factor: Factor
    work: PassWork


# ---- the span ----


@hot_apart
def sample_point(X, t, first, space):
    """Write k, q and b of KORS of x_t, and the probability that it joins; return their row.

    From round ``first`` on, rows_together(X) rounds share a pass over the atoms, R and C: 1 if rows
    are narrow (``WIDE`` of rows.py); then ``at`` is 0, and solve_rest is the whole solve.
    """
    kernel, joining, dictionary = space.kernel, space.joining, space.dictionary
    points, known = space.points, space.points.known
    atoms, m, rank = dictionary.atoms, dictionary.counts[ATOMS], dictionary.counts[RANK]
    asks_kors = m < space.max_size and not joining.uniform > 0.0
    at = (t - first) % rows_together(X)
    known[ATOMS] = next_kernel_row(kernel, X, t, first, atoms, m, known[ATOMS], points.K)
    if at == 0:
        solve_ahead(dictionary, points, smaller(rows_together(X), X.shape[0] - t), asks_kors)
    k, q, b = points.K[at], points.Q[at], points.B[at]
    take_span(dictionary, k, q, known[RANK])
    solve_rest(dictionary.R, known[RANK], q, rank)
    space.probability[0] = joining.uniform if m < space.max_size else 0.0
    if asks_kors:
        weigh(dictionary.weights, k, b, known[KORS], m)
        solve_rest(dictionary.kors, known[KORS], b, m)
        space.probability[0] = probability_given_b(joining, b, kernel_diag(kernel, X[t]), m)
    return at


@hot
def find_distance(q, k_xx, space):
    """Return the distance rho of a point to the span; 0 if in it, up to rounding."""
    delta = squared_distance(q, k_xx, space.dictionary.counts[RANK])
    adds = adds_direction(space.dictionary, q, delta, k_xx, space.v)
    return math.sqrt(delta) if adds else 0.0


@hot
def sample_rounds(X, first, coins, was_forecast, space, sampled):
    """Play KORS on the rounds from ``first`` on, and write their coordinates.

    was_forecast : X is one row, and the forecast called sample_point. Returns the next row, less
    than n where ``directions`` are full, and a status.
    """
    dictionary, points, directions = space.dictionary, space.points, space.directions
    counts, max_size, cap = dictionary.counts, space.max_size, points.Q.shape[1]
    sampled.ranks[first], added = counts[RANK], 0
    for t in range(first, X.shape[0]):
        if added == directions.rhos.shape[0]:
            return t, DONE
        played = counts[PAST] + t - first
        lacks_room = counts[ATOMS] == cap or played == directions.weights.shape[0]
        if counts[ATOMS] < max_size and lacks_room:
            return t, NEED_ROOM
        at = 0 if was_forecast else sample_point(X, t, first, space)
        x, q, probability = X[t], points.Q[at], space.probability[0]
        if not probability >= 0.0:
            return t, NOT_FINITE
        if coins[t] < probability:  # x_t joins before it is forecast
            k_tt = kernel_diag(space.kernel, x)
            rho = find_distance(q, k_tt, space)
            if rho > 0.0:  # first, for the direction takes the number of the coming atom
                directions.rounds[added], directions.played[added] = t, played
                directions.rhos[added] = rho
                extend_span(dictionary, q, rho, k_tt)
                added += 1
            if not keep_point(space.joining, dictionary, x, k_tt, probability, points.B[at]):
                return t, NOT_POSITIVE
        copy_row(q, sampled.Z[t], counts[RANK])
        sampled.ranks[t + 1], sampled.sizes[t] = counts[RANK], counts[ATOMS]
    return X.shape[0], DONE


@hot
def append_past(X, Y, first, stop, sampled, space):
    """Add the rounds of sample_rounds to the past, but none from the last atom on.

    Their labels too, before they are forecast: write_borders reads only those before ``played``.
    """
    past, counts = space.past, space.dictionary.counts
    while stop > first and sampled.sizes[stop - 1] >= space.max_size:
        stop -= 1
    put_rows(X, first, stop, past.inputs, counts[PAST])
    for t in range(first, stop):
        s = counts[PAST] + t - first
        copy_row(sampled.Z[t], past.Phi[s], sampled.ranks[t + 1])
        for k in range(Y.shape[1]):
            past.labels[k, s] = Y[t, k]
    counts[PAST] += stop - first


@hot_apart
def write_borders(X, Z, count, rank, space):
    """Write f_s of all past rounds to Phi, and the sums, for ``count`` directions from ``rank`` on.

    X, Z : inputs and coordinates. PASS_ROWS directions take one pass over the past.
    """
    past, directions = space.past, space.directions
    borders, gains, weights = directions.borders, directions.gains, directions.weights
    for first in range(0, count, PASS_ROWS):
        stop = smaller(first + PASS_ROWS, count)
        played, weight = directions.played[stop - 1], 1.0
        for s in range(played):
            weight *= space.discount
            weights[s] = weight
        for g in range(first, stop):
            x = X[directions.rounds[g]]
            copy_row(x, directions.points[g - first], x.shape[0])
            borders[g, : rank + g + 1] = 0.0
            gains[g] = 0.0
        kernel_rows(
            space.kernel, directions.points, 0, stop - first, past.inputs, 0, played,
            directions.columns, 0,
        )  # fmt: skip
        for s in range(played):
            for g in range(first, stop):
                if s >= directions.played[g]:  # later rounds have it in their q
                    continue
                q_s, r = past.Phi[s], rank + g
                rest = directions.columns[g - first, s] - dot(q_s, Z[directions.rounds[g]], r)
                f = rest / directions.rhos[g]
                weighted = weights[directions.played[g] - 1 - s] * f
                add_multiple(borders[g], weighted, q_s, r)
                borders[g, r] += weighted * f
                for k in range(gains.shape[1]):
                    gains[g, k] += weighted * past.labels[k, s]
                q_s[r] = f


# ---- AWV ----


@hot
def border_factor(model, border, gains, lowered, rank):
    """Add a border to A and the gains to b; return whether the new pivot D is positive.

    With v = U^-T border: U gets the column D^-1 v, D the pivot sum f_s^2 + lam - v' D^-1 v, and c
    (gain - v.c) / pivot. If it is not positive, A and b are unchanged. lowered : (K,), by how much
    the direction lowers the penalised loss of the best function, written; may be ``gains``.
    """
    factor, v = model.factor, model.work.scan
    finish_pending(factor, model.forgetting, model.work)
    copy_row(border, v, rank)
    solve_upper_transposed(factor.U, v, rank)
    pivot = border[rank] + model.lam
    for j in range(rank):
        pivot -= v[j] * v[j] * factor.inv_d[j]
    if not pivot > 0.0:
        return False
    for j in range(rank):
        factor.U[j, rank] = v[j] * factor.inv_d[j]
    factor.inv_d[rank] = 1.0 / pivot
    for k in range(gains.shape[0]):
        gain, c = gains[k], factor.c[k]
        for j in range(rank):
            gain -= v[j] * c[j]
        c[rank] = gain / pivot
        lowered[k] = gain * gain / pivot
    return True


@hot
def play_stretches(Y, first, end, directions, sampled, model, out, certificate):
    """Play AWV on the rounds of sample_rounds, and certify them; a border where the span grows."""
    ranks, added, t = sampled.ranks, 0, first
    while t < end:
        old, rank, stop = ranks[t], ranks[t + 1], t + 1
        while stop < end and ranks[stop + 1] == rank:
            stop += 1
        out.growth[t:stop] = 0.0
        if rank > old:
            border, gains = directions.borders[added], directions.gains[added]
            if not border_factor(model, border, gains, out.growth[t], old):
                return t, NOT_POSITIVE
            added += 1
        for s in range(t, stop):
            r = pad(sampled.Z[s], rank)  # zeros behind q_s, up to whole vectors
        stretch = Stretch(t, stop, r, r)  # certificates compare all columns
        played, status = awv_rounds(
            sampled.Z, Y, stretch, model.factor, model.forgetting, model.work, model.is_ridge, out,
            certificate,
        )  # fmt: skip
        if status != DONE:
            return played, status
        t = stop
    return t, DONE


@hot
def nystrom_awv_rounds(X, Y, first, coins, was_forecast, space, sampled, model, out, certificate):
    """Play Nystrom-AWV (pkawv Algorithm 2), with its certificate; return (next row, status).

    Y : (n, K); was_forecast : as in sample_rounds.
    """
    while first < X.shape[0]:
        stop, sampling_status = sample_rounds(X, first, coins, was_forecast, space, sampled)
        append_past(X, Y, first, stop, sampled, space)
        rank = sampled.ranks[first]
        write_borders(X, sampled.Z, sampled.ranks[stop] - rank, rank, space)
        played, status = play_stretches(
            Y, first, stop, space.directions, sampled, model, out, certificate
        )  # fmt: skip
        if status != DONE:
            return played, status
        if sampling_status != DONE:  # it needs room, say
            return stop, sampling_status
        first = stop  # less than n where the directions were full
    return first, DONE


# ---- forecasts ----


@hot
def borrow_direction(X, t, at, space, model):
    """Border A as if row t of X joined, row ``at`` of the points; return the rank then.

    Column ``rank`` of Phi, U, inv_d, c and Q is written; counts, R and KORS stay.
    """
    Q, counts, directions = space.points.Q, space.dictionary.counts, space.directions
    rank, k_xx = counts[RANK], kernel_diag(space.kernel, X[t])
    rho = find_distance(Q[at], k_xx, space)
    if not rho > 0.0:
        return rank
    directions.rounds[0], directions.played[0], directions.rhos[0] = 0, counts[PAST], rho
    write_borders(X[t : t + 1], Q[at : at + 1], 1, rank, space)
    gains = directions.gains[0]
    if not border_factor(model, directions.borders[0], gains, gains, rank):
        return rank
    Q[at, rank] = last_coordinate(rho, k_xx)
    return rank + 1


@hot
def return_direction(factor, lam, rank):
    """Reset the borrowed column of A to that of lam I, for passes over whole vectors read it."""
    factor.pending.columns[POINT] = 0  # its p is by another U
    factor.U[:rank, rank] = 0.0
    factor.inv_d[rank] = 1.0 / lam
    factor.c[:, rank] = 0.0


@hot
def nystrom_awv_forecasts(X, coin, space, model, forecasts):
    """Write what Nystrom-AWV would forecast for each row of X with the next round's coin.

    The buffers need room for one more atom. forecasts : (n, K).
    """
    points, factor, rank = space.points, model.factor, space.dictionary.counts[RANK]
    p, c, a = model.work.p[0], factor.c, model.work.a
    for t in range(X.shape[0]):
        at, new_rank = sample_point(X, t, 0, space), rank
        if coin < space.probability[0]:
            new_rank = borrow_direction(X, t, at, space, model)
        r = pad(points.Q[at], new_rank)
        # p = U^-T q, which is kept for the round.
        solve_points(points.Q, at, 1, r, factor, model.forgetting, model.work)
        a[0] = find_a(p, factor.inv_d, r)  # in memory for the same reason as in awv_rounds
        for k in range(c.shape[0]):
            m = ridge_forecast(p, c[k], model.work.scan, r)
            forecasts[t, k] = m if model.is_ridge else m / a[0]
        if new_rank > rank:
            return_direction(factor, model.lam, rank)
