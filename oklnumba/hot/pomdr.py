"""Rounds of optimistic mirror descent: POMD and POMDR (pomdr Algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import expansion_square, expansion_value, mean, to_ball
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot, multiply, solve_upper
from oklnumba.hot.primitives.rows import get_atom, kernel_diag, kernel_row, put_atom

# Entries of counts: the round t-bar from which OMDR runs (0: not yet), removals, projections, atoms
# in the factor R: those of the dictionary until OMDR, which has no use for it.
SWITCH, REMOVALS, PROJECTIONS, FACTORED = 1, 2, 3, 4
# Entries of sums: |f'|^2, the sum of delta since the last removal, that over all rounds, D = max
# k(x, x) so far.
SQUARE, DELTA, ALL_DELTA, LARGEST = range(4)

SWITCH_FACTOR = 15.0  # B_0 = ceil(15 ln T), as in the paper's experiments


@hot
def pomdr_rate(radius, rate_scale, counts, sums, corner):
    """Return lambda_t (eq. 10 with 3 D for its first term, errata 28, 29). corner : k(x_t, x_t)."""
    under = 3.0 * larger(sums[LARGEST], corner) + sums[DELTA]
    if not under > 0.0:
        return 0.0  # k(x, x) = 0 so far: every function is 0 on the data
    rate = radius / math.sqrt(under)
    return rate * rate_scale if counts[REMOVALS] > 0 else rate


@hot
def pomdr_parts(kernel, radius, rate_scale, counts, sums, function, hints, count, x, row):
    """Return k(x, x), lambda_t, f'_{t-1}(x) and minus hint_t(x).

    row : (cap,) and hint_row of hints : (M,), the kernel values of x with atoms and hints, written.
    """
    atoms, a, _ = function
    points, signs, _, hint_row = hints
    corner = kernel_diag(kernel, x)
    rate = pomdr_rate(radius, rate_scale, counts, sums, corner)  # line 3
    own = expansion_value(kernel, (atoms, a), counts[ATOMS], x, row)
    hinted = mean(expansion_value(kernel, (points, signs), count, x, hint_row), count)
    return corner, rate, own, hinted


@hot
def pomdr_horizon(horizon, this):
    """Return T: the horizon, or the present round, and at least 2 then."""
    return horizon if horizon > 0.0 else larger(float(this), 2.0)


@hot
def omdr_plays(counts, horizon, this):
    """Say whether OMDR plays round ``this`` (line 8); a t-bar of T stays POMD (errata 31)."""
    return counts[SWITCH] > 0 and not (this == counts[SWITCH] and this == horizon)


@hot
def pomd_ald(R, row, corner, bound, largest, q, m):
    """Return whether ALD_t fails (eq. 5; without atoms it does) and |grad~_t|^2.

    row : (cap,), k_t; corner : k(x_t, x_t); bound : T^-zeta, scaled; largest : D; q : (cap,),
    R^-T k_t, written.
    """
    alpha = ald_residual(R, row, corner, q, m)  # eq. 4
    if alpha <= IN_SPAN * corner or (m > 0 and alpha <= bound * bound * largest):
        return False, larger(corner - alpha, 0.0)
    return True, corner


@hot
def pomd_project(function, hints, count, q, step, m):
    """Take f' += step sum_i beta_i k(x_i, .) (eq. 6); return minus the hint's product with the sum.

    q : (cap,), R^-T k_t, turned in place into beta_t.
    """
    _, a, R = function
    _, signs, H, _ = hints
    solve_upper(R, q, m)  # line 9
    add_multiple(a, step, q, m)
    hinted = 0.0
    for r in range(count):
        hinted += signs[r] / count * dot(H[r], q, m)
    return hinted


@hot
def pomdr_add(function, counts, x, step):
    """Take f' += step k(x, .): x joins the dictionary."""
    atoms, a, _ = function
    m = counts[ATOMS]
    put_atom(atoms, m, x)
    a[m] = step
    counts[ATOMS] = m + 1


@hot
def pomdr_account(a, counts, sums, radius, rate, label, own, square, hinted):
    """Bring |f'|^2 and the sums of delta up to date after a step, and project f' on the ball.

    own : f'_{t-1}(x); square : |grad|^2; hinted : minus the hint's product with -label grad.
    """
    # <f', grad> = -y f'(x) for the projected gradient too: f' is in the span. Errata 26.
    stepped = sums[SQUARE] + rate * rate * square + 2.0 * rate * label * own
    sums[SQUARE] = to_ball(a, stepped, radius, counts[ATOMS])
    delta = larger(square - 2.0 * label * hinted, 0.0)  # eq. 10, errata 27
    sums[DELTA] += delta
    sums[ALL_DELTA] += delta


@hot
def pomdr_remember(hints, slot, count, x, label, corner, row, omdr, m, grown):
    """Put the round's example among the hints, with its kernel values with all atoms.

    row : (cap,), those with the m atoms that there were before the round; grown : m, or m + 1.
    """
    points, signs, H, hint_row = hints
    put_atom(points, slot, x)
    signs[slot] = label
    if omdr:
        return  # nothing is projected any more
    if grown > m:  # x is an atom too
        for r in range(count):
            H[r, m] = hint_row[r]
        H[slot, m] = corner
    for j in range(m):
        H[slot, j] = row[j]


@hot
def pomdr_remove(kernel, radius, function, counts, sums, x, row):
    """Keep the oldest half of the dictionary and merge the rest into it (eq. 9).

    Each dropped coefficient goes to the kept atom with the largest kernel value (the first on
    ties); then f' is scaled to norm U (errata 33). x : (d,), row : (cap,), workspace.
    """
    atoms, a, _ = function
    m = counts[ATOMS]
    half = m // 2
    for j in range(half, m):
        get_atom(atoms, j, x)
        kernel_row(kernel, x, atoms, half, row)
        nearest = 0
        for i in range(1, half):
            if row[i] > row[nearest]:
                nearest = i
        a[nearest] += a[j]
    square = expansion_square(kernel, (atoms, a), half, x, row)
    if square > 0.0:
        multiply(a, radius / math.sqrt(square), half)
    sums[SQUARE] = radius * radius if square > 0.0 else 0.0
    sums[DELTA] = 0.0
    counts[ATOMS] = half
    counts[REMOVALS] += 1


@hot
def pomdr_switch(counts, switch_size, budget, horizon, this, grown):
    """Let OMDR take over where the dictionary has grown to B_0 atoms, and drop the factor then."""
    if grown and counts[SWITCH] == 0:
        size = math.ceil(SWITCH_FACTOR * math.log(pomdr_horizon(horizon, this)))
        by_rounds = smaller(size, budget - 1.0)
        if counts[ATOMS] >= (switch_size if switch_size > 0.0 else by_rounds):
            counts[SWITCH] = this + 1
    counts[FACTORED] = 0 if omdr_plays(counts, horizon, this + 1) else counts[ATOMS]


@hot
def pomdr_rounds(X, y, first, played, kernel, setting, counts, sums, function, hints, work, out):
    """Play POMDR (pomdr Algorithm 1) from row ``first`` of X; ``played`` rounds came before X.

    setting : (U, zeta, ALD scale, horizon or 0, switch size or 0, budget, rate scale), of which
    POMD has inf, inf and 1 for the last three; counts : (5,) integers and sums : (4,), entries
    above; function : atoms (d, cap), a (cap,) and R (cap, cap), upper factor of the atoms' kernel
    matrix until OMDR; hints : the last M examples, points (d, M) and signs (M,), their kernel
    values with the atoms until OMDR, H (M, cap), and with x_t, hint_row (M,), workspace; all in
    place; work : (2, cap or d), workspace; out : forecasts and sizes, (n,), written. Returns
    (rounds played, status).
    """
    radius, zeta, ald_scale, horizon, switch_size, budget, rate_scale = setting
    _, a, R = function
    _, signs, _, _ = hints
    forecasts, sizes = out
    row, q, M = work[0], work[1], signs.shape[0]
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == a.shape[0]:
            return t, NEED_ROOM
        x, label, this, count = X[t], y[t], played + t + 1, smaller(played + t, M)
        corner, rate, own, hinted = pomdr_parts(
            kernel, radius, rate_scale, counts, sums, function, hints, count, x, row
        )
        forecast = own + rate * hinted  # line 4, eq. 2: f_t = f'_{t-1} - lambda_t hint_t
        if not (abs(forecast) < np.inf and corner < np.inf):
            return t, NOT_FINITE
        forecasts[t] = forecast
        sums[LARGEST] = larger(sums[LARGEST], corner)
        omdr = omdr_plays(counts, horizon, this)  # line 8
        if label * forecast < 1.0:  # line 7
            joins, square = True, corner
            if not omdr:
                bound = ald_scale * pomdr_horizon(horizon, this) ** -zeta
                joins, square = pomd_ald(R, row, corner, bound, sums[LARGEST], q, m)  # lines 10, 11
            if not joins:
                hinted = pomd_project(function, hints, count, q, rate * label, m)  # lines 12, 13
                counts[PROJECTIONS] += 1
            elif omdr or ald_grow(R, q, corner, m) > 0.0:
                pomdr_add(function, counts, x, rate * label)  # lines 15, 16 or 20, 21
            else:
                return t, NOT_POSITIVE
            pomdr_account(a, counts, sums, radius, rate, label, own, square, hinted)
        grown = counts[ATOMS]
        pomdr_remember(hints, (this - 1) % M, count, x, label, corner, row, omdr, m, grown)
        if omdr and grown >= budget:
            pomdr_remove(kernel, radius, function, counts, sums, q[: x.shape[0]], row)  # line 22
        pomdr_switch(counts, switch_size, budget, horizon, this, grown > m)  # line 17
        sizes[t] = counts[ATOMS]
    return X.shape[0], DONE


@hot
def pomdr_forecasts(X, played, kernel, setting, counts, sums, function, hints, work, forecasts):
    """Write what POMDR would forecast for each row of X; arguments as in pomdr_rounds."""
    radius, _, _, _, _, _, rate_scale = setting
    _, signs, _, _ = hints
    count = smaller(played, signs.shape[0])
    for t in range(X.shape[0]):
        corner, rate, own, hinted = pomdr_parts(
            kernel, radius, rate_scale, counts, sums, function, hints, count, X[t], work[0]
        )
        forecasts[t] = own + rate * hinted
