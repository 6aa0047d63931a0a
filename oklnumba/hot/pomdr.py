"""Rounds of optimistic mirror descent: POMD and POMDR.

Li and Liao 2023 ("pomdr"), Algorithm 1, with errata 26 to 37; "line" is one of the paper:

    f'_0 = 0, S = {}, tbar = inf; for t = 1, ..., T:
        lambda_t = U / sqrt(3 D + sum of delta_s, s < t, since the last removal)          # line 3
            times rate_scale after the first removal
        p_t = mean of y k(x, .) over the last M examples, with a loss or not
        f_t = f'_{t-1} + lambda_t p_t                                                # line 4, eq. 2
        if y_t f_t(x_t) >= 1: f'_t = f'_{t-1}; else:                                      # line 7
            if t < tbar (POMD): P_t = projection of k(x_t, .) on span S            # lines 8 to 10
                near = |k(x_t, .) - P_t| <= ald_scale sqrt(D) T^-zeta, and S not empty (ALD)  # 11
            g_t = y_t P_t if near, else (always in OMDR) y_t k(x_t, .), S = S + {x_t}   # 12 to 21
            f'_t = Proj_{|f| <= U}(f'_{t-1} + lambda_t g_t)
            delta_t = max(|g_t - p_t|^2 - |p_t|^2, 0) = max(|g_t|^2 - 2 <g_t, p_t>, 0)      # eq. 10
        POMD, if x_t joined and |S| >= B_0: tbar = t + 1                                  # line 17
        OMDR, if |S| >= B: merge the newer half of S into the older, scale f' to norm U   # line 22

D is the largest k(x, x) so far, x_t included; T without a horizon is the present round, at least 2;
B_0 is switch_size or min(ceil(15 ln T), B - 1). With a horizon OMDR does not begin in round T
(errata 31). The paper's hint and gradient are -p_t and -g_t. We keep the factor R of K_S = R'R
instead of K_S^-1, and update |f'_t|^2 from round to round. In the code u_t is P_t or k(x_t, .), so
g_t = y_t u_t. In order: pomdr_rate: lambda_t; pomdr_values: f'_{t-1} and p_t at x_t; ald_residual,
ald_holds: near; step_along_projection, or ald_grow (R) and join_support: the step; update_sums:
Proj, delta; store_last; merge_half: line 22, by kernel values of the rounds in which atoms joined;
switch_to_omdr: line 17.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import expansion_value, mean, project
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot, multiply, solve_upper
from oklnumba.hot.primitives.rows import (
    PASS_ROWS,
    atom_rows,
    kernel_diag,
    next_kernel_row,
    put_atom,
    rows_together,
)

# Entries of counts: tbar, the first round of OMDR (0: not decided), removals, projections, atoms in
# the factor R (all atoms in POMD, none in OMDR).
SWITCH, REMOVALS, PROJECTIONS, FACTORED = 1, 2, 3, 4
# Entries of sums: |f'|^2, sums of delta since the last removal and over all rounds, D.
SQUARE, DELTA, ALL_DELTA, LARGEST = range(4)

ROWS = 0  # entry of ``stored``

SWITCH_FACTOR = 15.0  # B_0 = ceil(15 ln T), as in the paper's experiments


class POMDRState(NamedTuple):
    """The dictionary S, f' = sum_j alpha_j k(x_j, .), and the last M examples."""

    counts: Annotated[Integers, "counts"]  # ATOMS, SWITCH, REMOVALS, PROJECTIONS, FACTORED
    sums: Annotated[Array, "sums"]  # SQUARE, DELTA, ALL_DELTA, LARGEST
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]
    R: Annotated[Array, FACTORED, FACTORED]  # POMD: K_S = R'R
    last_x: Annotated[Array, "d", "M"]
    last_y: Annotated[Array, "M"]
    H: Annotated[Array, "M", FACTORED]  # POMD: k(last_x, S)


class Work(NamedTuple):
    """Workspace of a round."""

    k: Array  # (cap,): k(x_t, S)
    q: Array  # (cap,): R^-T k, then beta
    k_last: Array  # (M,): k(x_t, last_x)
    rows: Array  # (PASS_ROWS, cap): of next_kernel_row, and of store_rows
    points: Array  # (PASS_ROWS, d): atoms in store_rows
    K: Array  # (cap, B / 2): k(x_j, x_i) of an atom j and an atom i <= j that is never removed
    stored: Integers  # (1,): ROWS, how many rows of K are known: none of a new workspace


class Rules(NamedTuple):
    """Hyper-parameters."""

    radius: float  # U
    zeta: float
    ald_scale: float  # times T^-zeta
    horizon: float  # T, or 0: T is the present round
    switch_size: float  # B_0, or 0 for min(ceil(15 ln T), B - 1); POMD: infinity, like B
    budget: float  # B
    rate_scale: float  # times lambda_t after the first removal


@hot
def pomdr_rate(rules, state, k_tt):
    """Return lambda_t (line 3)."""
    square = 3.0 * larger(state.sums[LARGEST], k_tt) + state.sums[DELTA]
    if not square > 0.0:  # k(x, x) = 0 so far: every function is 0 on the data
        return 0.0
    rate = rules.radius / math.sqrt(square)
    return rate * rules.rate_scale if state.counts[REMOVALS] > 0 else rate


@hot
def pomdr_values(kernel, X, t, start, known, state, work, recent):
    """Return f'_{t-1}(x_t), p_t(x_t) with ``recent`` last examples, and ``known`` (rows.py).

    Writes work.k and k_last.
    """
    m, x = state.counts[ATOMS], X[t]
    known = next_kernel_row(kernel, X, t, start, state.atoms, m, known, work.rows)
    row = work.rows[(t - start) % rows_together(X)]
    for j in range(m):  # a copy, for store_rows writes to ``rows``
        work.k[j] = row[j]
    f_x = dot(work.k, state.alpha, m)
    total = expansion_value(kernel, state.last_x, state.last_y, recent, x, work.k_last)
    return f_x, mean(total, recent), known


@hot
def choose_horizon(rules, now):
    """Return T: the horizon, or the present round, but at least 2."""
    return rules.horizon if rules.horizon > 0.0 else larger(float(now), 2.0)


@hot
def omdr_plays(rules, state, now):
    """Return whether OMDR plays round ``now`` (line 8); POMD plays tbar = T (errata 31).

    SWITCH is set at the end of round tbar - 1, so here it says that t >= tbar.
    """
    switch = state.counts[SWITCH]
    return switch > 0 and not (now == switch and now == rules.horizon)


@hot
def ald_holds(rules, state, now, residual, k_tt):
    """Return whether x_t is near the span of S (eq. 5), given its squared distance ``residual``.

    Or in it up to rounding (IN_SPAN), whatever the threshold. With S empty only this counts: x_t
    joins unless k(x_t, x_t) = 0.
    """
    bound = rules.ald_scale * choose_horizon(rules, now) ** -rules.zeta
    near = residual <= bound * bound * state.sums[LARGEST]
    return residual <= IN_SPAN * k_tt or (state.counts[ATOMS] > 0 and near)


@hot
def step_along_projection(state, q, step, recent):
    """Take f' += step P_t, P_t = sum_i beta_i k(x_i, .) (eq. 6); return <P_t, p_t>.

    q : R^-T k_t, replaced by beta.
    """
    m = state.counts[ATOMS]
    solve_upper(state.R, q, m)  # line 9: beta = R^-1 R^-T k_t
    add_multiple(state.alpha, step, q, m)
    state.counts[PROJECTIONS] += 1
    product = 0.0
    for r in range(recent):
        product += state.last_y[r] / recent * dot(state.H[r], q, m)
    return product


@hot
def update_sums(rules, state, rate, label, f_x, u_square, p_u):
    """Update |f'|^2 and the sums of delta after f' += rate y u, and project f' on the ball.

    f_x : f'_{t-1}(x_t), which is <f'_{t-1}, u> for u = P_t too, because f' is in the span (errata
    26); u_square : |u|^2; p_u : <p_t, u>.
    """
    sums = state.sums
    square = sums[SQUARE] + rate * rate * u_square + 2.0 * rate * label * f_x
    sums[SQUARE] = project(state.alpha, square, rules.radius, state.counts[ATOMS])
    delta = larger(u_square - 2.0 * label * p_u, 0.0)  # eq. 10, errata 27
    sums[DELTA] += delta
    sums[ALL_DELTA] += delta


@hot
def store_last(state, work, now, recent, x, label, k_tt, omdr, m):
    """Put the example of round ``now`` in place of the oldest; m atoms before the round.

    H = k(last_x, S) gets a column if x joined, and the row of x.
    """
    H, slot = state.H, (now - 1) % state.last_y.shape[0]
    put_atom(state.last_x, slot, x)
    state.last_y[slot] = label
    if omdr:
        return  # OMDR does not project
    if state.counts[ATOMS] > m:  # x is an atom too
        for r in range(recent):
            H[r, m] = work.k_last[r]
        H[slot, m] = k_tt  # k_last[slot] is of the example that x replaces
    for j in range(m):
        H[slot, j] = work.k[j]


@hot
def store_row(work, j, k, k_jj):
    """Write row j of K, if it is the next one: k(x_j, x_i) = k[i], also into the rows before."""
    K, half = work.K, work.K.shape[1]
    if j != work.stored[ROWS] or j >= K.shape[0]:
        return
    for i in range(smaller(j, half)):
        K[j, i] = k[i]
    if j < half:
        for i in range(j):
            K[i, j] = k[i]
        K[j, j] = k_jj
    work.stored[ROWS] = j + 1


@hot
def store_rows(kernel, atoms, m, work):
    """Write the rows of K that are not known, of m atoms."""
    for first in range(work.stored[ROWS], m, PASS_ROWS):
        stop = smaller(first + PASS_ROWS, m)
        columns = smaller(stop, work.K.shape[1])
        atom_rows(kernel, atoms, first, stop, columns, work.points, work.rows)
        for j in range(first, stop):
            k_jj = kernel_diag(kernel, work.points[j - first])
            store_row(work, j, work.rows[j - first], k_jj)


@hot
def join_support(x, k_tt, coefficient, state, work):
    """Let x_t join S."""
    m = state.counts[ATOMS]
    put_atom(state.atoms, m, x)
    store_row(work, m, work.k, k_tt)
    state.alpha[m] = coefficient
    state.counts[ATOMS] = m + 1


@hot
def merge_half(kernel, rules, state, work):
    """Keep the older half of S, and merge the newer half into it (eq. 9).

    Each dropped coefficient goes to the atom of the older half with the largest kernel value (the
    first on ties); then f' is scaled to norm U (errata 33).
    """
    alpha, sums, K = state.alpha, state.sums, work.K
    m, half, square = state.counts[ATOMS], state.counts[ATOMS] // 2, 0.0
    store_rows(kernel, state.atoms, m, work)
    for j in range(half, m):
        k, nearest = K[j], 0
        for i in range(1, half):
            if k[i] > k[nearest]:
                nearest = i
        alpha[nearest] += alpha[j]
    for j in range(half):
        square += alpha[j] * dot(K[j], alpha, half)
    if square > 0.0:
        multiply(alpha, rules.radius / math.sqrt(square), half)
    sums[SQUARE] = rules.radius * rules.radius if square > 0.0 else 0.0
    sums[DELTA] = 0.0
    state.counts[ATOMS] = work.stored[ROWS] = half
    state.counts[REMOVALS] += 1


@hot
def switch_to_omdr(rules, state, now, grown):
    """Let OMDR take over in the next round once S has B_0 atoms (line 17)."""
    counts = state.counts
    if grown and counts[SWITCH] == 0:
        size = rules.switch_size
        if not size > 0.0:
            size = math.ceil(SWITCH_FACTOR * math.log(choose_horizon(rules, now)))
            size = smaller(size, rules.budget - 1.0)
        if counts[ATOMS] >= size:
            counts[SWITCH] = now + 1


@hot
def pomdr_rounds(X, y, played, first, kernel, rules, state, work, out):
    """Play POMDR (pomdr Algorithm 1); ``played`` rounds came before X.

    ``now`` is the paper's t, ``rate`` lambda_t, m = |S| before the round; f_x, p_x and p_u are
    f'_{t-1}(x_t), p_t(x_t) and <p_t, u_t>; of the last M examples ``recent`` have come.
    """
    counts, sums, alpha, start, known = state.counts, state.sums, state.alpha, first, 0
    for i in range(first, X.shape[0]):
        x, label, m = X[i], y[i], counts[ATOMS]
        now, recent = played + i + 1, smaller(played + i, state.last_y.shape[0])
        if m == alpha.shape[0]:  # in POMD R and H have as much room
            return i, NEED_ROOM
        k_tt = kernel_diag(kernel, x)
        rate = pomdr_rate(rules, state, k_tt)  # line 3
        f_x, p_x, known = pomdr_values(kernel, X, i, start, known, state, work, recent)
        forecast = f_x + rate * p_x  # line 4, eq. 2
        if not (abs(forecast) < np.inf and k_tt < np.inf):
            return i, NOT_FINITE
        out.forecasts[i] = forecast
        sums[LARGEST] = larger(sums[LARGEST], k_tt)
        omdr = omdr_plays(rules, state, now)  # line 8
        if label * forecast < 1.0:  # line 7
            near, u_square, p_u = False, k_tt, p_x  # u_t = k(x_t, .)
            if not omdr:
                residual = ald_residual(state.R, work.k, k_tt, work.q, m)  # eq. 4, squared
                near = ald_holds(rules, state, now, residual, k_tt)  # line 11
            if near:  # lines 12, 13: u_t = P_t
                u_square = larger(k_tt - residual, 0.0)  # |P_t|^2; < 0 by the nugget only
                p_u = step_along_projection(state, work.q, rate * label, recent)
            else:  # lines 15, 16 or 20, 21
                if not omdr and not ald_grow(state.R, work.q, k_tt, m) > 0.0:  # R gains x_t
                    return i, NOT_POSITIVE
                join_support(x, k_tt, rate * label, state, work)
            update_sums(rules, state, rate, label, f_x, u_square, p_u)
        store_last(state, work, now, recent, x, label, k_tt, omdr, m)
        grown = counts[ATOMS] > m
        if omdr and counts[ATOMS] >= rules.budget:
            merge_half(kernel, rules, state, work)  # line 22
            start = i + 1  # for atoms left
        switch_to_omdr(rules, state, now, grown)  # line 17
        # R and H go as soon as the next round is OMDR's.
        counts[FACTORED] = 0 if omdr_plays(rules, state, now + 1) else counts[ATOMS]
        out.sizes[i] = counts[ATOMS]
    return X.shape[0], DONE


@hot
def pomdr_forecasts(X, played, kernel, rules, state, work, forecasts):
    """Write what POMDR would forecast for each row of X, after ``played`` rounds."""
    recent, known = smaller(played, state.last_y.shape[0]), 0
    for t in range(X.shape[0]):
        rate = pomdr_rate(rules, state, kernel_diag(kernel, X[t]))
        f_x, p_x, known = pomdr_values(kernel, X, t, 0, known, state, work, recent)
        forecasts[t] = f_x + rate * p_x
