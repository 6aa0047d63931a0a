"""Rounds of optimistic mirror descent: POMD and POMDR.

Li and Liao 2023 ("pomdr"), Algorithm 1, with errata 26 to 36:

    f'_0 = 0, S = {}, tbar = inf; for t = 1, ..., T:
        lambda_t = U / sqrt(3 D + sum of delta_s, s < t, since the last removal)          # line 3
        hint_t = -mean of y k(x, .) over the last M examples
        f_t = f'_{t-1} - lambda_t hint_t;   stop here if y_t f_t(x_t) >= 1           # lines 4 to 7
        if t < tbar (POMD): P_t = projection of k(x_t, .) on span S                # lines 8 to 10
            near = |k(x_t, .) - P_t| <= sqrt(D) T^-zeta (ALD; in OMDR, t >= tbar, never)       # 11
        grad = -y_t P_t if near, else -y_t k(x_t, .) and S = S + {x_t}             # lines 12 to 21
        f'_t = Proj_{|f| <= U}(f'_{t-1} - lambda_t grad)
        delta_t = max(|grad|^2 - 2 <grad, hint_t>, 0)
        POMD: tbar = t + 1 if |S| = B_0;   OMDR: merge half of S (eq. 9) if |S| = B    # 17, 22

We keep the factor R of K_S = R'R instead of K_S^-1, and update |f'_t|^2 from round to round.

``function``: atoms (d, cap), a (cap,) and, in POMD, R (cap, cap); ``hints``: the last M examples,
points (d, M) and signs (M,), in POMD H (M, cap), their kernel values with the atoms, and hint_row
(M,), workspace. corner is k(x_t, x_t), row (cap,) the kernel values of x_t with the atoms.
"""

import math

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import expansion_square, expansion_value, mean, project
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot, multiply, solve_upper
from oklnumba.hot.primitives.rows import get_atom, kernel_diag, kernel_row, put_atom

# Entries of counts: tbar, the first round of OMDR (0: not known yet), removals, projections, atoms
# in the factor R (all atoms in POMD, none in OMDR).
SWITCH, REMOVALS, PROJECTIONS, FACTORED = 1, 2, 3, 4
# Entries of sums: |f'|^2, sums of delta since the last removal and over all rounds, and D, the
# largest k(x, x) so far.
SQUARE, DELTA, ALL_DELTA, LARGEST = range(4)

SWITCH_FACTOR = 15.0  # B_0 = ceil(15 ln T), as in the paper's experiments


@hot
def pomdr_terms(kernel, radius, rate_scale, counts, sums, function, hints, count, x, row):
    """Return k(x, x), lambda_t, f'_{t-1}(x) and minus hint_t(x); write row and hint_row."""
    atoms, a, _ = function
    points, signs, _, hint_row = hints
    corner = kernel_diag(kernel, x)
    under = 3.0 * larger(sums[LARGEST], corner) + sums[DELTA]
    rate = 0.0  # k(x, x) = 0 so far: every function is 0 on the data
    if under > 0.0:
        rate = radius / math.sqrt(under)
        rate = rate * rate_scale if counts[REMOVALS] > 0 else rate
    own = expansion_value(kernel, atoms, a, counts[ATOMS], x, row)
    hinted = mean(expansion_value(kernel, points, signs, count, x, hint_row), count)
    return corner, rate, own, hinted


@hot
def pomdr_horizon(horizon, this):
    """Return T: the horizon, or the present round, but at least 2."""
    return horizon if horizon > 0.0 else larger(float(this), 2.0)


@hot
def omdr_plays(counts, horizon, this):
    """Say whether OMDR plays round ``this`` (line 8); a round tbar = T is POMD's (errata 31)."""
    return counts[SWITCH] > 0 and not (this == counts[SWITCH] and this == horizon)


@hot
def check_ald(R, row, corner, bound, largest, q, m):
    """Return whether x_t is far from the span of S (ALD_t fails, eq. 5), and |grad|^2.

    bound : T^-zeta, scaled; largest : D; q : (cap,), R^-T k_t, written. With S empty x_t is far,
    unless it is 0 itself.
    """
    alpha = ald_residual(R, row, corner, q, m)  # eq. 4
    if alpha <= IN_SPAN * corner or (m > 0 and alpha <= bound * bound * largest):
        return False, larger(corner - alpha, 0.0)
    return True, corner


@hot
def pomd_project(function, hints, count, q, step, m):
    """Take f' += step sum_i beta_i k(x_i, .) (eq. 6); return minus <hint, sum_i beta_i k(x_i, .)>.

    q : R^-T k_t, replaced by beta_t = R^-1 R^-T k_t.
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
def pomdr_update_sums(a, counts, sums, radius, rate, label, own, square, hinted):
    """Update |f'|^2 and the sums of delta after a step, and project f' on the ball.

    own : f'_{t-1}(x); square : |grad|^2; hinted : minus the hint's product with -label grad.
    """
    # <f', grad> = -y f'(x) for the projected gradient too, because f' is in the span (errata 26).
    stepped = sums[SQUARE] + rate * rate * square + 2.0 * rate * label * own
    sums[SQUARE] = project(a, stepped, radius, counts[ATOMS])
    delta = larger(square - 2.0 * label * hinted, 0.0)  # eq. 10, errata 27
    sums[DELTA] += delta
    sums[ALL_DELTA] += delta


@hot
def pomdr_store_hint(hints, slot, count, x, label, corner, row, omdr, m, grown):
    """Put the round's example among the hints; m atoms before the round, grown atoms now."""
    points, signs, H, hint_row = hints
    put_atom(points, slot, x)
    signs[slot] = label
    if omdr:
        return  # OMDR does not project
    if grown > m:  # x is an atom too
        for r in range(count):
            H[r, m] = hint_row[r]
        H[slot, m] = corner
    for j in range(m):
        H[slot, j] = row[j]


@hot
def merge_half(kernel, radius, function, counts, sums, x, row):
    """Keep the older half of the dictionary and merge the newer half into it (eq. 9).

    Each dropped coefficient goes to the kept atom with the largest kernel value (the first on
    ties); then f' is scaled to norm U (errata 33). x and row are workspace.
    """
    atoms, a, _ = function
    m, half = counts[ATOMS], counts[ATOMS] // 2
    for j in range(half, m):
        get_atom(atoms, j, x)
        kernel_row(kernel, x, atoms, half, row)
        nearest = 0
        for i in range(1, half):
            if row[i] > row[nearest]:
                nearest = i
        a[nearest] += a[j]
    square = expansion_square(kernel, atoms, a, half, x, row)
    if square > 0.0:
        multiply(a, radius / math.sqrt(square), half)
    sums[SQUARE] = radius * radius if square > 0.0 else 0.0
    sums[DELTA] = 0.0
    counts[ATOMS] = half
    counts[REMOVALS] += 1


@hot
def pomdr_switch(counts, switch_size, budget, horizon, this, grown):
    """Let OMDR take over once the dictionary has B_0 atoms, and drop the factor then."""
    if grown and counts[SWITCH] == 0:
        size = math.ceil(SWITCH_FACTOR * math.log(pomdr_horizon(horizon, this)))
        by_rounds = smaller(size, budget - 1.0)
        if counts[ATOMS] >= (switch_size if switch_size > 0.0 else by_rounds):
            counts[SWITCH] = this + 1
    counts[FACTORED] = 0 if omdr_plays(counts, horizon, this + 1) else counts[ATOMS]


@hot
def pomdr_rounds(X, y, first, played, kernel, setting, counts, sums, function, hints, work, out):
    """Play POMDR (pomdr Algorithm 1); ``played`` rounds came before X.

    setting : (U, zeta, ALD scale, horizon or 0, switch size or 0, budget, rate scale), the last
    three inf, inf and 1 for POMD; counts : (5,) and sums : (4,), entries above; work : (2, cap or
    d).
    """
    radius, zeta, ald_scale, horizon, switch_size, budget, rate_scale = setting
    atoms, a, R = function
    forecasts, sizes = out
    row, q, M = work[0], work[1], hints[1].shape[0]
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == a.shape[0]:
            return t, NEED_ROOM
        x, label, this, count = X[t], y[t], played + t + 1, smaller(played + t, M)
        corner, rate, own, hinted = pomdr_terms(
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
                joins, square = check_ald(R, row, corner, bound, sums[LARGEST], q, m)  # line 11
            if not joins:
                hinted = pomd_project(function, hints, count, q, rate * label, m)  # lines 12, 13
                counts[PROJECTIONS] += 1
            elif omdr or ald_grow(R, q, corner, m) > 0.0:
                put_atom(atoms, m, x)  # lines 15, 16 or 20, 21: f' += rate y k(x, .)
                a[m] = rate * label
                counts[ATOMS] = m + 1
            else:
                return t, NOT_POSITIVE
            pomdr_update_sums(a, counts, sums, radius, rate, label, own, square, hinted)
        grown = counts[ATOMS]
        pomdr_store_hint(hints, (this - 1) % M, count, x, label, corner, row, omdr, m, grown)
        if omdr and grown >= budget:
            merge_half(kernel, radius, function, counts, sums, q[: x.shape[0]], row)  # line 22
        pomdr_switch(counts, switch_size, budget, horizon, this, grown > m)  # line 17
        sizes[t] = counts[ATOMS]
    return X.shape[0], DONE


@hot
def pomdr_forecasts(X, played, kernel, setting, counts, sums, function, hints, work, forecasts):
    """Write what POMDR would forecast for each row of X."""
    radius, _, _, _, _, _, rate_scale = setting
    count = smaller(played, hints[1].shape[0])
    for t in range(X.shape[0]):
        corner, rate, own, hinted = pomdr_terms(
            kernel, radius, rate_scale, counts, sums, function, hints, count, X[t], work[0]
        )
        forecasts[t] = own + rate * hinted
