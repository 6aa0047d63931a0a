"""Rounds of the kernel online Newton step: KONS and Sketched-KONS.

Calandriello, Lazaric and Valko 2017 (ICML, "kons"), Algorithm 1:

    A_0 = alpha I; for t = 1, ..., T:
        u_t = A_{t-1}^-1 sum_{s<t} b_s phi_s;   ybar_t = phi_t' u_t              # lines 5, 6
        yhat_t = ybar_t - h(ybar_t),   h(y) = sign(y) max(|y| - C, 0)            # line 7, eq. 1
        g_t = l_t'(yhat_t), so g_t phi_t is the gradient;   q_t = phi_t' A_{t-1}^-1 phi_t
        A_t = A_{t-1} + v_t eta_t g_t^2 phi_t phi_t'                 # KONS: v_t = 1; else below
        b_t = v_t eta_t g_t^2 yhat_t - g_t - h(ybar_t) / q_t         # errata 3: c_t

This is the projected Newton step: w_t = u_t - h(ybar_t) / q_t A_{t-1}^-1 phi_t, so
w_t(x_t) = yhat_t, and u_{t+1} = w_t - g_t A_t^-1 phi_t.

Sketched-KONS (Algorithm 3, errata 4) has v_t = 1, or 1 / p_t (A^w of section 6), with probability
p_t = max(min(beta tau_t, 1), gamma), tau_t by KORS for g_t sqrt(eta_t) phi_t, and else v_t = 0.

In kernel form A_{t-1}^-1 brings terms b_s / alpha, which cancel. So b is not kept, but other
coefficients of u: z_t of the rounds in A, and c_t (not that of errata 3) of those outside. With
d_t = g_t sqrt(v_t eta_t), D = diag(d) and L L' = D K D + alpha I over the rounds in A:

    u(x) = s(x).z + k(x).c,   k of all atoms, c = 0 of those in A
    s(x) = L^-1 D k(x),   k of the atoms in A
    schur = k_tt - s_t.s_t = alpha q_t;   pull = h(ybar_t) / schur
    u_{t+1} = u_t - (g_t / (1 + d_t^2 q_t) + h(ybar_t) / q_t) A_{t-1}^-1 phi_t,
        and A_{t-1}^-1 phi_t is (k(x, x_t) - s(x).s_t) / alpha at x
        in A:      L gets the row [d_t s_t, pivot], pivot^2 = alpha + d_t^2 schur; the new entry of
                   s(x) is d_t alpha / pivot A_{t-1}^-1 phi_t, so
                   z_t = -(g_t / pivot + pivot pull) / d_t                       # new_z
        outside:   c_t = -(g_t / alpha + pull);   z -= c_t s_t

A round with g_t = 0 (KONS: d_t = 0) on a flat part of the loss and no pull changes nothing, and is
not kept; if the loss has no such part, it is an atom, c = 0.

sketched_kons_rounds plays these lines one by one. KONS does not call it: it plays blocks, for the
speed of BLAS. There v_t = 1, and only rounds with g_t = 0 (or d_t^2 = 0 by underflow) are outside
A, with c_t = -pull. A block of a single round, with one entry of H and of offsets, is played so by
KONS._play_some (learners/kons.py; solve_rows and subtract_squares are in core/cholesky.py):

    start_block        row r of L, the first unused one, is D k_t;   offsets: k_t.c
    solve_rows         row r: s_t = L^-1 D k_t
    start_products     offsets: k_t.c + s_t.z = ybar_t;   H: k_tt
    subtract_squares   H: k_tt - s_t.s_t = schur
    kons_rounds        yhat_t; then, with the label, d_t, pivot, and z_t or c_t, to the block; R_G
    append_block       x_t and c_t become an atom; in A: d_t, z_t, row r of L [d_t s_t, pivot];
                       outside: z -= c_t s_t

What _play_some does for a stretch before kons_rounds, as finish_offsets and solve_row do, is
nothing: no round of the block came before. A forecast before the round leaves nothing behind: it is
u = sum_j (c + D L^-T z)_j k(x_j, .), clipped (write_coefficients, expansion_forecasts).

In a block of n rounds row i of L needs d_j of the rounds j before it, and d_j needs a label. So
only those entries of s_i are solved for together whose d_j are known: a block is cut into stretches
of a few rounds, and s_i is written in three parts, by where the rounds j lie. Two numbers are
brought up to date after each part:

    H_ij = k(x_i, x_j) - s_i.s_j,   offsets_i = s_i.z + k_i.c = u(x_i)

    rounds j              D k_i, k_i.c      s_i           s_i.s_j           s_i.z
    before the block      start_block       solve_rows    subtract_squares  start_products
    before the stretch    start_stretch     solve_rows    subtract_squares  finish_offsets
    in the stretch        solve_row         solve_row     kons_rounds, which adds c_j H_ij

Row j of L is [d_j s_j, pivot_j], so pivot_j s_ij = d_j k_ij - d_j sum_l s_jl s_il. The sum over the
rounds l before the block makes the first term d_j H_ij: so start_stretch and solve_row write it. A
round j of the block outside A adds c_j k(x_i, x_j) to u(x_i), and takes c_j s_i.s_j off s_i.z,
which was summed before it: c_j H_ij together.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.dictionary import JoiningRule, kors_keep, kors_probability
from oklnumba.hot.primitives.elementary import clip, larger
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    LOWER,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    STOPPED,
    UNBOUNDED,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot, solve_lower, solve_lower_transposed
from oklnumba.hot.primitives.losses import (
    EPSILON_INSENSITIVE,
    HINGE,
    SQUARED_HINGE,
    loss_derivative,
)
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row, put_atom

# Entries of the counts after ATOMS: rounds in A; points of KORS (0 in KONS); 1 once a small Newton
# decrement has ended the learning.
IN_A, MEMBERS, ENDED = 1, 2, 3
R_G = 0  # entry of the totals: sum of g_t^2 phi_t' A_t^-1 phi_t (Prop. 1)


class KONSState(NamedTuple):
    """The function u = s.z + k.c."""

    counts: Annotated[Integers, "counts"]  # ATOMS, IN_A, MEMBERS, ENDED
    totals: Annotated[Array, "totals", UNBOUNDED]  # R_G
    atoms: Annotated[Array, "d", ATOMS]
    c: Annotated[Array, ATOMS]  # 0 in A
    # Which atom a row of L belongs to.
    index: Annotated[Integers, IN_A]  # type: ignore[assignment]
    D: Annotated[Array, IN_A]  # d_t
    z: Annotated[Array, IN_A]
    # L L' = D K D + alpha I; KONS writes the s_i of a block behind it.
    L: Annotated[Array, IN_A, IN_A, LOWER]


class Newton(NamedTuple):
    """Hyper-parameters of the Newton step."""

    loss: int  # its code
    C: float  # forecasts are in [-C, C]
    alpha: float  # A_0 = alpha I
    stop: float  # learning ends with a smaller decrement g_t^2 phi_t' A_t^-1 phi_t


class Sketch(NamedTuple):
    """The dictionary of KORS."""

    members: Annotated[Integers, MEMBERS]  # its atoms
    weights: Annotated[Array, MEMBERS]  # d_i / sqrt(p_i)
    kors: Annotated[Array, MEMBERS, MEMBERS]  # factor of the weighted kernel matrix + alpha I


class KernelFormState(NamedTuple):
    """The state of both: the sketch of KONS is empty."""

    kons: KONSState
    sketch: Sketch


class Sampling(NamedTuple):
    """Which rounds enter A."""

    joining: JoiningRule  # of KORS
    gamma: float  # least probability of v_t > 0
    floor: float  # least probability of KORS: gamma if both share a coin, else 0
    weighted: bool  # whether v_t = 1 / p_t


class Rounds(NamedTuple):
    """Labels, step sizes and coins of rounds of Sketched-KONS, (n,) each."""

    y: Array
    eta: Array
    kors_coins: Array
    coins: Array  # for v_t


class Work(NamedTuple):
    """Workspace of a round of Sketched-KONS."""

    k: Array  # (cap,): k(x_t, atoms)
    s: Array  # (cap,): s_t
    kbar: Array  # (cap,): d_t k(x_t, members)
    b: Array  # (cap,): of kors_probability


class Block(NamedTuple):
    """The n rounds of a block of KONS: their part of the state, and what stretches to come need."""

    L: Array  # (n, n): columns of the block; a row holds D k_i, then s_i, and d_i s_i once played
    d: Array  # (n,)
    c: Array  # (n,)
    z: Array  # (n,)
    # (n, n): k(x_i, x_j) - s_i.s_j for j <= i, by the rounds before the block; for j in the stretch
    # of i by all rounds before the stretch.
    H: Array
    offsets: Array  # (n,): u(x_i), by the rounds before the stretch


@hot
def scaled_slope(g, eta):
    """Return d = g sqrt(eta); 0 where d^2 underflows, since such a gradient adds nothing to A."""
    d = g * math.sqrt(eta)
    return d if d * d > 0.0 else 0.0


@hot
def is_flat(loss, slope):
    """Return whether a round lies on a flat part of its loss; slope : g or d.

    The others have none: their slope is 0 at single points only.
    """
    has_flat_part = loss == HINGE or loss == SQUARED_HINGE or loss == EPSILON_INSENSITIVE
    return has_flat_part and slope == 0.0


@hot
def new_z(g, d, pivot, pull):
    """Return z_t of a round in A."""
    return -(g / pivot + pivot * pull) / d


@hot
def append_atom(x, c, state):
    """Add a round to the atoms, with its coefficient outside A."""
    m = state.counts[ATOMS]
    put_atom(state.atoms, m, x)
    state.c[m] = c
    state.counts[ATOMS] = m + 1


# ---- Sketched-KONS ----


@hot
def write_s(k, state, s):
    """Write s(x) = L^-1 D k(x)."""
    r = state.counts[IN_A]
    for j in range(r):
        s[j] = state.D[j] * k[state.index[j]]
    solve_lower(state.L, s, r)


@hot
def toss_coins(t, d, k_tt, rounds, sampling, state, sketch, work):
    """Show KORS the rescaled point d phi_t and toss both coins; return (v_t, status)."""
    members, counts = sketch.members, state.counts
    j, kbar_tt = counts[MEMBERS], d * d * k_tt
    for i in range(j):
        work.kbar[i] = d * work.k[members[i]]
    rule, weights, factor = sampling.joining, sketch.weights, sketch.kors
    p = kors_probability(rule, weights, factor, work.kbar, kbar_tt, work.b, j)  # min(beta tau, 1)
    if not p >= 0.0:
        return 0.0, NOT_FINITE
    p_kors = larger(p, sampling.floor)
    if d != 0.0 and rounds.kors_coins[t] < p_kors:
        if not kors_keep(weights, factor, work.b, kbar_tt, rule.alpha, p_kors, j) > 0.0:
            return 0.0, NOT_POSITIVE
        weights[j] *= d
        members[j], counts[MEMBERS] = counts[ATOMS], j + 1
    p_t = larger(p, sampling.gamma)  # line 9
    if d == 0.0 or not rounds.coins[t] < p_t:
        return 0.0, DONE
    return 1.0 / p_t if sampling.weighted else 1.0, DONE


@hot
def append_row(d, g, schur, pull, alpha, state, s):
    """Add the row [d s, pivot] of x_t, the coming atom, to L, and its z."""
    counts, r = state.counts, state.counts[IN_A]
    pivot = math.sqrt(alpha + d * d * schur)
    row = state.L[r]
    for j in range(r):
        row[j] = d * s[j]
    row[r] = pivot
    state.z[r] = new_z(g, d, pivot, pull)
    state.index[r], state.D[r], counts[IN_A] = counts[ATOMS], d, r + 1


@hot
def lacks_room(state, sketch):
    """Say whether an array has no room for a round."""
    counts, weights = state.counts, sketch.weights
    room = counts[ATOMS] < state.c.shape[0] and counts[IN_A] < state.z.shape[0]
    return not (room and counts[MEMBERS] < weights.shape[0])


@hot
def sketched_kons_rounds(X, rounds, first, kernel, newton, sampling, state, sketch, work, out):
    """Play Sketched-KONS (kons Algorithm 3); KORS sees a round after its label (errata 9)."""
    k, s, loss, C, alpha = work.k, work.s, newton.loss, newton.C, newton.alpha
    for t in range(first, X.shape[0]):
        if lacks_room(state, sketch):
            return t, NEED_ROOM
        x, m, r = X[t], state.counts[ATOMS], state.counts[IN_A]
        kernel_row(kernel, x, state.atoms, m, k)
        k_tt = kernel_diag(kernel, x)
        write_s(k, state, s)
        schur = larger(k_tt - dot(s, s, r), 0.0)  # negative only by rounding
        ybar = dot(k, state.c, m) + dot(s, state.z, r)  # line 6
        if not abs(ybar) < np.inf:
            return t, NOT_FINITE
        out.forecasts[t] = forecast = clip(ybar, C)  # line 7, eq. 1
        over = ybar - forecast  # h(ybar_t)
        if over != 0.0 and not schur > 0.0:
            return t, NOT_POSITIVE
        g = loss_derivative(loss, forecast, rounds.y[t])
        d, v = scaled_slope(g, rounds.eta[t]), 0.0  # d for v_t = 1: the coins come now
        if not is_flat(loss, g):  # lines 8 to 10
            v, status = toss_coins(t, d, k_tt, rounds, sampling, state, sketch, work)
            if status != DONE:
                return t, status
        pull = over / schur if over != 0.0 else 0.0
        c = 0.0
        if v > 0.0:
            append_row(d * math.sqrt(v), g, schur, pull, alpha, state, s)
        else:  # left out of A: the gradient step and the projection stay (errata 4)
            c = -g / alpha - pull
            add_multiple(state.z, -c, s, r)
        if not (is_flat(loss, g) and c == 0.0):
            append_atom(x, c, state)
        out.sizes[t] = state.counts[ATOMS]
        q = schur / alpha
        weight = rounds.eta[t] * g * g if v > 0.0 else 0.0  # times v: d_t^2
        decrement = g * g * q / (1.0 + weight * (v * q))  # g_t^2 phi_t' A_t^-1 phi_t
        state.totals[R_G] += decrement
        if decrement < newton.stop:
            return t + 1, STOPPED
    return X.shape[0], DONE


# ---- KONS, in the order of a block; kons_rounds calls the three functions before it ----


@hot
def start_block(kernel, X, state, k, offsets):
    """Write D k_i of the rounds before the block behind the rows of L, and k_i.c to the offsets.

    k : (m,), workspace. cholesky.solve_rows turns the rows into s_i.
    """
    m, r = state.counts[ATOMS], state.counts[IN_A]
    for i in range(X.shape[0]):
        kernel_row(kernel, X[i], state.atoms, m, k)
        offsets[i] = dot(k, state.c, m)
        row = state.L[r + i]
        for j in range(r):
            row[j] = state.D[j] * k[state.index[j]]


@hot
def start_products(kernel, X, columns, state, H, offsets):
    """Write k(x_i, x_j), j <= i, to H; add s_i.z to the offsets; columns is X'.

    cholesky.subtract_squares takes s_i.s_j off H.
    """
    r = state.counts[IN_A]
    for i in range(X.shape[0]):
        offsets[i] += dot(state.L[r + i], state.z, r)
        kernel_row(kernel, X[i], columns, i, H[i])
        H[i, i] = kernel_diag(kernel, X[i])


@hot
def start_stretch(block, first, last):
    """Write D k_i, less what is solved, of the rounds before the stretch; add c_j H_ij to offsets.

    cholesky.solve_rows turns the rows into s_i, subtract_squares takes s_i.s_j off H.
    """
    for i in range(first, last):
        H_i, row = block.H[i], block.L[i]
        for j in range(first):
            row[j] = block.d[j] * H_i[j]
        block.offsets[i] += dot(H_i, block.c, first)


@hot
def finish_offsets(block, first, last):
    """Add s_i.z of the rounds of the block before the stretch to the offsets of the stretch."""
    for i in range(first, last):
        block.offsets[i] += dot(block.L[i], block.z, first)


@hot
def solve_row(i, first, block):
    """Write the entries of s_i for the rounds of the stretch, from ``first`` on."""
    L, H_i, row = block.L, block.H[i], block.L[i]
    for j in range(first, i):
        row[j] = block.d[j] * H_i[j]
    for j in range(first, i):
        row[j] = (row[j] - dot(L[j, first:j], row[first:j], j - first)) / L[j, j]


@hot
def finish_row(i, d_i, g, pull, pivot, block):
    """Write d, c and z of a round of the block, and its row of block.L: s_i times d_i, and pivot.

    Outside A, z -= c s in two parts: block.z here (of a single round nothing), state.z in
    append_block.
    """
    z, row, c = block.z, block.L[i], 0.0
    z[i] = 0.0
    if d_i != 0.0:
        z[i] = new_z(g, d_i, pivot, pull)
    else:  # c = -(g / alpha + pull), but g is 0, or so small that it adds nothing
        c = -pull
        for j in range(i):
            z[j] -= c * row[j]
    for j in range(i):
        row[j] *= d_i
    row[i] = pivot
    block.c[i], block.d[i] = c, d_i


@hot
def kons_rounds(y, eta, first, last, newton, block, totals, forecasts):
    """Play a stretch, rounds first to last of a block; return (next round, status)."""
    C, alpha, z = newton.C, newton.alpha, block.z
    finish_offsets(block, first, last)  # here, for s_i has just been solved for
    for i in range(first, last):
        H_i, n = block.H[i], i - first
        solve_row(i, first, block)
        s = block.L[i, first:i]
        schur = larger(H_i[i] - dot(s, s, n), 0.0)  # negative only by rounding
        ybar = block.offsets[i] + dot(H_i[first:i], block.c[first:i], n) + dot(s, z[first:i], n)
        if not abs(ybar) < np.inf:
            return i, NOT_FINITE
        forecasts[i] = forecast = clip(ybar, C)  # line 7, eq. 1
        over = ybar - forecast  # h(ybar_t)
        if over != 0.0 and not schur > 0.0:
            return i, NOT_POSITIVE
        q = schur / alpha
        g = loss_derivative(newton.loss, forecast, y[i])
        d_i = scaled_slope(g, eta[i])
        pivot = math.sqrt(alpha + d_i * d_i * schur)
        pull = over / schur if over != 0.0 else 0.0
        finish_row(i, d_i, g, pull, pivot, block)
        decrement = g * g * q / (1.0 + d_i * d_i * q)  # g_t^2 phi_t' A_t^-1 phi_t
        totals[R_G] += decrement
        if decrement < newton.stop:
            return i + 1, STOPPED
    return last, DONE


@hot
def append_block(X, loss, block, state, sizes):
    """Add the rounds of a block to the state; skip rounds without effect."""
    counts, L, d, c = state.counts, state.L, block.d, block.c
    r = counts[IN_A]  # columns before the block
    for i in range(X.shape[0]):
        s, m, new = L[r + i], counts[ATOMS], counts[IN_A]  # s_i by the rounds before the block
        if c[i] != 0.0:
            add_multiple(state.z, -c[i], s, r)
        if not (is_flat(loss, d[i]) and c[i] == 0.0):
            append_atom(X[i], c[i], state)
        if d[i] != 0.0:
            row = L[new]  # in place of s, or of a row before it, read already: new <= r + i
            for j in range(r):
                row[j] = d[i] * s[j]
            column = r
            for j in range(i + 1):
                if d[j] != 0.0:
                    row[column] = block.L[i, j]
                    column += 1
            state.index[new], state.D[new], state.z[new] = m, d[i], block.z[i]
            counts[IN_A] = new + 1
        sizes[i] = counts[ATOMS]


# ---- forecasts ----


@hot
def write_coefficients(state, work, out):
    """Write out : (m,) with u(x) = sum_j out_j k(x_j, x); work : (r,)."""
    m, r = state.counts[ATOMS], state.counts[IN_A]
    for j in range(r):
        work[j] = state.z[j]
    solve_lower_transposed(state.L, work, r)
    for j in range(m):
        out[j] = state.c[j]
    for j in range(r):
        out[state.index[j]] += state.D[j] * work[j]
