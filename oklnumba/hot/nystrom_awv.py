"""Rounds of AWV on a growing Nystrom subspace.

PKAWV with Nystrom projections (Jezequel, Gaillard and Rudi 2019, Algorithm 2; errata 18 to 20):

    I_0 = {}; for t = 1, ..., n:
        KORS looks at x_t and tosses the coin z_t;   I_t = I_{t-1} + {t} if z_t = 1, else I_{t-1}
        K = (k(x_i, x_j)), i <= t, j in I_t;   K_mm = (k(x_i, x_j)), i, j in I_t
        R_t' R_t = K'K + lam K_mm          # from R_{t-1}: a row, and a column if z_t = 1
        alpha_t = R_t^-1 R_t^-T K' (Y_{t-1}, 0)
        yhat_t = sum_{j in I_t} alpha_tj k(x_t, x_j)

Our coordinates q = R^-T k_m(x), K_mm = R'R, make K_mm the identity, which is far better conditioned
than K'K + lam K_mm. Between two growths of the span the algorithm is then AWV on features (awv.py).
A point off the span borders the factor U' D U of A with its coordinate in all past rounds; a point
in the span, up to rounding, joins the dictionary and adds no column.

``dictionary`` is that of dictionary.py; ``past``: inputs (d, cap_n), labels (K, cap_n) and
coordinates Phi (cap_n, cap) of past rounds; ``factor``: as in awv.py. corner is k(x, x), and q
(cap,) the coordinates of x.
"""

import math

from oklnumba.hot.awv import Span, awv_rounds, certify
from oklnumba.hot.primitives.dictionary import (
    RANK,
    adds_direction,
    extend_span,
    joining_probability,
    keep_point,
    last_coordinate,
    solve_coordinates,
    squared_distance,
)
from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.factor import finish_pending, forget_point, solve_points
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    hot,
    hot_apart,
)
from oklnumba.hot.primitives.linalg import dot, solve_upper_transposed
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row, put_atom
from oklnumba.hot.primitives.udu import LANES, pad, ridge_forecast

PAST = 2  # entry of the counts after ATOMS and RANK: rounds whose inputs are kept


@hot_apart
def look_at_point(kernel, x, setting, counts, dictionary, rows):
    """Write what a round needs of x: its kernel row, KORS's b, coordinates q, and a probability.

    rows : (8, cap), of which row, b, q and, in the first entry of the fourth, the probability that
    x joins are written.
    """
    _, rule, largest = setting
    row, b, q, m = rows[0], rows[1], rows[2], counts[ATOMS]
    kernel_row(kernel, x, dictionary.atoms, m, row)
    solve_coordinates(dictionary, row, q)
    rows[3, 0] = 0.0
    if m < largest:
        corner = kernel_diag(kernel, x)
        rows[3, 0] = joining_probability(rule, dictionary, row, corner, b)


@hot
def write_span_column(kernel, x, past, discount, t, q, rho, rank, columns, moments, gains):
    """Write the new direction's coordinate for all past rounds into Phi[:, rank], and its moments.

    The direction is (k(x, .) - its projection) / rho, and q : (cap,) the coordinates of that
    projection. Sums weigh the last round by the discount g, the one before by g^2, and so on.

    columns : (2, cap_n), workspace; moments : (cap,), sum_s g^(t-s) f_s Phi_s, and gains : (K,),
    sum_s g^(t-s) f_s y_s, written. Returns sum_s g^(t-s) f_s^2.
    """
    inputs, labels, Phi = past
    column, weights = columns[0], columns[1]
    kernel_row(kernel, x, inputs, t, column)
    weight, square = 1.0, 0.0
    for s in range(t - 1, -1, -1):
        weight *= discount
        weights[s] = weight
    moments[:rank] = 0.0
    gains[:] = 0.0
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

    moments is replaced by U^-T moments; gains, the new entries of b, by what the new direction
    takes off the penalised loss of the best function. Returns whether the pivot is positive; if
    not, the factor is unchanged.
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
def add_atom(kernel, x, corner, probability, setting, counts, dictionary, past, q, work):
    """Add x to the dictionary, and its direction to the span if x is off it by more than rounding.

    probability : the one with which x was kept; q : coordinates of x, with a new last one if the
    span grows; work : b of joining_probability, columns of write_span_column, and what a new
    direction adds to A and b, written: moments (cap,), with their sum of squares behind them, and
    gains (K,). Returns a status.
    """
    discount, rule, _ = setting
    b, columns, moments, gains = work
    rank = counts[RANK]
    rho_square = squared_distance(q, corner, rank)
    if adds_direction(dictionary, q, rho_square, corner, moments):
        rho = math.sqrt(rho_square)
        moments[rank] = write_span_column(
            kernel, x, past, discount, counts[PAST], q, rho, rank, columns, moments, gains
        )
        extend_span(dictionary, q, rho, corner)
    return DONE if keep_point(rule, dictionary, x, corner, probability, b) else NOT_POSITIVE


@hot
def nystrom_rows(X, Y, first, coins, known, points, out):
    """Let KORS look at the rounds from row ``first`` on, and write their coordinates in the span.

    No regulariser and no forecast enters here. Once the dictionary has its largest size, the past
    is no longer kept. Arguments as in nystrom_awv_play; ends where ``borders`` are full. Returns
    the next row and a status.
    """
    kernel, setting, counts, dictionary, past, work = points
    inputs, labels, Phi = past
    Z, ranks, borders, gains, sizes = out
    rows, largest = work[0], setting[2]
    b, q = rows[1], rows[2]
    ranks[first], growths = counts[RANK], 0
    for t in range(first, X.shape[0]):
        if growths == borders.shape[0]:
            return t, DONE
        stored, m = counts[PAST], counts[ATOMS]
        growing = m < largest
        if growing and (m + 1 > b.shape[0] or stored == labels.shape[1]):
            return t, NEED_ROOM
        x = X[t]
        if not known:
            look_at_point(kernel, x, setting, counts, dictionary, rows)
        probability = rows[3, 0]
        if not probability >= 0.0:
            return t, NOT_FINITE
        if coins[t] < probability:  # Alg. 2: x_t joins before its own forecast
            status = add_atom(
                kernel, x, kernel_diag(kernel, x), probability, setting, counts, dictionary, past,
                q, (b, work[1], borders[growths], gains[growths]),
            )  # fmt: skip
            if status != DONE:
                return t, status
        coordinates = Z[t]
        for j in range(pad(q, counts[RANK])):
            coordinates[j] = q[j]
        ranks[t + 1], sizes[t] = counts[RANK], counts[ATOMS]
        growths += ranks[t + 1] - ranks[t]
        if counts[ATOMS] < largest:
            for j in range(counts[RANK]):
                Phi[stored, j] = q[j]
            put_atom(inputs, stored, x)
            for k in range(labels.shape[0]):
                labels[k, stored] = Y[t, k]
            counts[PAST] = stored + 1
    return X.shape[0], DONE


@hot
def nystrom_awv_rounds(rows, Y, first, end, regression, out):
    """Play Nystrom-AWV (pkawv Algorithm 2) on rounds that nystrom_rows has written.

    first, end : the first of them and the one after the last; others as in nystrom_awv_play.
    """
    Z, ranks, borders, gains, _ = rows
    lam, factor, forgetting, sweep, is_ridge = regression
    growth, moments = out.growth, sweep.scan
    t, growths = first, 0
    while t < end:
        old, rank = ranks[t], ranks[t + 1]
        stop = t + 1
        while stop < end and ranks[stop + 1] == rank:
            stop += 1
        for s in range(t, stop):
            for k in range(growth.shape[1]):
                growth[s, k] = gains[growths, k] if rank > old and s == t else 0.0
        if rank > old:
            for j in range(old):
                moments[j] = borders[growths, j]
            corner = borders[growths, old] + lam  # lam |w|^2 has one coordinate more
            finish_pending(factor, forgetting, sweep)
            if not border_factor(factor.U, factor.inv_d, factor.c, moments, corner, growth[t], old):
                return t, NOT_POSITIVE
            growths += 1
        width = (larger(rank, 1) + LANES - 1) // LANES * LANES
        span = Span(t, stop, width, width)
        played, status = awv_rounds(Z, Y, span, factor, forgetting, sweep, is_ridge, out)
        if status != DONE:
            return played, status
        t = stop
    return t, DONE


@hot
def nystrom_awv_play(X, Y, first, coins, known, points, rows, regression, out, certificate):
    """Play the rounds of a block from row ``first`` on, with their certificate.

    The dictionary sees rounds until it needs room, then these are played on its span.

    known : whether nystrom_awv_forecasts has just looked at the only row; points : kernel, setting
    (discount, rule of joining_probability, largest size), counts, dictionary, past, and work, (8,
    cap) and (2, cap_n); rows : coordinates (>= n, cap), zero up to whole vectors, ranks (> n,)
    before and after each round, moments (g, cap) and gains (g, K) of add_atom for up to g growths,
    and sizes (n,); regression : lam, and factor, forgetting, sweep and is_ridge of awv_rounds.
    Returns the next row and a status.
    """
    while first < X.shape[0]:
        seen, why = nystrom_rows(X, Y, first, coins, known, points, rows)
        played, status = nystrom_awv_rounds(rows, Y, first, seen, regression, out)
        if status != DONE:
            return played, status
        certify(Y, first, seen, out, points[1][0], certificate)
        if why != DONE:
            return seen, why
        first = seen
    return first, DONE


@hot
def nystrom_awv_forecasts(X, coin, points, regression, forecasts):
    """Write what Nystrom-AWV would forecast for each row of X with the next round's coin.

    Where the coin would keep x, the border is written behind the valid part of the buffers (the
    caller makes room for one more atom) and wiped afterwards.

    Arguments as in nystrom_awv_play.
    """
    kernel, setting, counts, dictionary, past, work = points
    lam, factor, forgetting, sweep, is_ridge = regression
    rows, columns = work
    U, inv_d, c, p = factor.U, factor.inv_d, factor.c, sweep.p[0]
    q, moments = rows[2], rows[5]
    stored, old_rank = counts[PAST], counts[RANK]
    for t in range(X.shape[0]):
        rank = old_rank
        x = X[t]
        look_at_point(kernel, x, setting, counts, dictionary, rows)
        corner = kernel_diag(kernel, x)
        rho_square = squared_distance(q, corner, rank)
        if coin < rows[3, 0] and adds_direction(dictionary, q, rho_square, corner, moments):
            rho, gains = math.sqrt(rho_square), forecasts[t]
            square = write_span_column(
                kernel, x, past, setting[0], stored, q, rho, rank, columns, moments, gains
            )
            finish_pending(factor, forgetting, sweep)
            if border_factor(U, inv_d, c, moments, square + lam, gains, rank):
                q[rank] = last_coordinate(rho, corner)
                rank += 1
        padded = pad(q, rank)
        solve_points(rows, 2, 1, padded, factor, forgetting, sweep)
        a = 1.0
        for k in range(padded):
            a += inv_d[k] * p[k] * p[k]
        sweep.a[0] = a  # in memory, so that the compiler does not multiply by one 1 / a
        for k in range(c.shape[0]):
            forecast = ridge_forecast(p, c[k], sweep.scan, padded)
            forecasts[t, k] = forecast if is_ridge else forecast / sweep.a[0]
        if rank > old_rank:
            forget_point(factor.pending)  # its p is by another U
            U[:old_rank, old_rank] = 0.0
            inv_d[old_rank] = 1.0 / lam
            c[:, old_rank] = 0.0
