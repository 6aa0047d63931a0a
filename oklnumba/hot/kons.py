"""Rounds of the kernel online Newton step: KONS and Sketched-KONS.

Calandriello, Lazaric and Valko 2017 (ICML, "kons"), Algorithm 1 with the coefficients of errata 3:

    A_0 = alpha I; for t = 1, ..., T:
        u_t = A_{t-1}^-1 sum_{s<t} c_s phi_s;   ybar_t = phi_t' u_t
        yhat_t = ybar_t - h(ybar_t),   h(z) = sign(z) max(|z| - C, 0)            # eq. 1
        g_t = l_t'(yhat_t);   q_t = phi_t' A_{t-1}^-1 phi_t
        A_t = A_{t-1} + v_t eta_t g_t^2 phi_t phi_t'                             # KONS: v_t = 1
        c_t = v_t eta_t g_t^2 yhat_t - g_t - h(ybar_t) / q_t

Sketched-KONS (Algorithm 3, errata 4) has v_t = 1, or 1 / p_t (A^w of section 6), with probability
p_t = max(min(beta tau_t, 1), gamma), tau_t KORS's score of g_t sqrt(eta_t) phi_t, and else v_t = 0.

In kernel form, with d_t = g_t sqrt(v_t eta_t) and L L' = D K D + alpha I over the rounds in A:

    s = L^-1 D k_t;   schur = k_tt - s.s = alpha q_t
    u_{t+1} = u_t - (g_t / (1 + d_t^2 q_t) + h(ybar_t) / q_t) A_{t-1}^-1 phi_t

L gets the row [d_t s, sqrt(alpha + d_t^2 schur)], and A_{t-1}^-1 phi_t at x is a multiple of the
entry that this row adds to s(x). So we keep u(x) = s(x).z + k(x).c, with coefficients c only of
rounds left out of A. The c_t above are of order 1 / alpha and cancel: this saves their products and
1 to 2 digits.

KONS plays blocks of b rounds. ``function``: atoms (d, cap), coefs (cap,), which are c, index, scale
(D) and z (cap_r,), L (cap_r, >= cap_r), whose next b rows are the block's s_i; ``block``: L (b, b),
d, c and z (b,); H (b, b), k(x_i, x_j) - s_i.s_j for j <= i; offsets (b,), k_i.c + s_i.z.
"""

import math

import numpy as np

from oklnumba.hot.primitives.dictionary import kors_keep, kors_probability
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    STOPPED,
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

# Entries of the counts after ATOMS: rows of L (rounds in A), points in KORS's dictionary.
ROWS, MEMBERS = 1, 2


@hot
def scaled_slope(g, eta):
    """Return d = g sqrt(eta); 0 where d^2 underflows, since such a gradient adds nothing to A."""
    d = g * math.sqrt(eta)
    return d if d * d > 0.0 else 0.0


@hot
def is_flat(loss, g):
    """Say whether a loss with derivative g is flat here; a smooth loss is not, whatever g is."""
    flats = loss == HINGE or loss == SQUARED_HINGE or loss == EPSILON_INSENSITIVE
    return flats and g == 0.0


@hot
def kons_rows(kernel, X, function, counts, row, offsets):
    """Write D k_i of new rounds behind the rows of L, and k_i.c; row : (cap,), workspace."""
    atoms, coefs, index, scale, _, L = function
    m, r = counts[ATOMS], counts[ROWS]
    for i in range(X.shape[0]):
        kernel_row(kernel, X[i], atoms, m, row)
        offsets[i] = dot(row, coefs, m)
        target = L[r + i]
        for j in range(r):
            target[j] = scale[j] * row[index[j]]


@hot
def kons_corner(kernel, X, columns, L, z, r, H, offsets):
    """Write k(x_i, x_j), j <= i, of a block to H; add s_i.z to the offsets; columns is X'."""
    for i in range(X.shape[0]):
        offsets[i] += dot(L[r + i], z, r)
        kernel_row(kernel, X[i], columns, i, H[i])
        H[i, i] = kernel_diag(kernel, X[i])


@hot
def kons_fold(H, offsets, block, first, last):
    """Scale the rows of H from first to last by the d before first; add h.c to the offsets."""
    L, d, c, _ = block
    for i in range(first, last):
        h, w = H[i], L[i]
        for j in range(first):
            w[j] = d[j] * h[j]
        offsets[i] += dot(h, c, first)


@hot
def kons_solve_row(h, d, L, first, i):
    """Write row i of the block's factor, not yet scaled by d_i, from column first on; h = H[i]."""
    w = L[i]
    for j in range(first, i):
        w[j] = d[j] * h[j]
    for j in range(first, i):
        w[j] = (w[j] - dot(L[j, first:j], w[first:j], j - first)) / L[j, j]


@hot
def kons_finish_row(block, i, di, g, pull, pivot):
    """Scale row i of the block's factor by d_i; write its pivot, and d, c and z of the round."""
    L, d, c, z = block
    w = L[i]
    if di != 0.0:
        z[i] = -(g / pivot + pivot * pull) / di
        c[i] = 0.0
    else:
        z[i] = 0.0
        c[i] = -pull
        for j in range(i):
            z[j] += pull * w[j]
    for j in range(i):
        w[j] *= di
    w[i] = pivot
    d[i] = di


@hot
def kons_rounds(H, offsets, y, steps, loss, setting, R_G, block, span, forecasts):
    """Play rounds first to last of a block of KONS (kons Algorithm 1); those before are folded in.

    Rows of a block come from one matrix solve, up to the scales d, which depend on labels: the
    factor grows row by row.

    H : with s over all rounds before the span; offsets : of the past, plus k_i.c of the block
    before the span, completed for the span; steps : (b,), eta_t; setting : (C, alpha, decrement at
    which to stop); R_G : (1,), sum of g'A^-1 g; block : columns of L before the span hold its s_i,
    the entries of the span are written; span : (first, last). Returns (round after the last played,
    status).
    """
    C, alpha, stop = setting
    L, d, c, z = block
    first, last = span
    for i in range(first, last):  # z before the span; H accounts for its changes within the span
        offsets[i] += dot(L[i], z, first)
    for i in range(first, last):
        h = H[i]
        kons_solve_row(h, d, L, first, i)
        own = L[i, first:i]
        schur = larger(h[i] - dot(own, own, i - first), 0.0)  # negative only by rounding
        raw = offsets[i] + dot(h[first:i], c[first:i], i - first) + dot(own, z[first:i], i - first)
        if not abs(raw) < np.inf:
            return i, NOT_FINITE
        forecast = smaller(larger(raw, -C), C)  # Alg. 1: the projection onto |w(x_t)| <= C, eq. 1
        forecasts[i] = forecast
        if raw != forecast and not schur > 0.0:
            return i, NOT_POSITIVE
        q = schur / alpha  # phi_t' A_{t-1}^-1 phi_t
        g = loss_derivative(loss, forecast, y[i])
        di = scaled_slope(g, steps[i])
        pivot = math.sqrt(alpha + di * di * schur)
        over = raw - forecast
        pull = over / schur if over != 0.0 else 0.0
        kons_finish_row(block, i, di, g, pull, pivot)
        decrement = g * g * q / (1.0 + di * di * q)  # g_t' A_t^-1 g_t
        R_G[0] += decrement  # Prop. 1
        if decrement < stop:
            return i + 1, STOPPED
    return last, DONE


@hot
def kons_append(X, loss, block, counts, function, sizes):
    """Add a block of rounds, as kons_rounds left it, to the learner; skip rounds without effect."""
    rows, d, c, block_z = block
    atoms, coefs, index, scale, z, L = function
    r = counts[ROWS]
    for i in range(X.shape[0]):
        s = L[r + i]
        if c[i] != 0.0:
            add_multiple(z, -c[i], s, r)
        m = counts[ATOMS]
        if not (is_flat(loss, d[i]) and c[i] == 0.0):
            put_atom(atoms, m, X[i])
            coefs[m] = c[i]
            counts[ATOMS] = m + 1
        if d[i] != 0.0:
            last = counts[ROWS]
            row = L[last]  # row r + i, which holds s_i, or an earlier one
            for j in range(r):
                row[j] = d[i] * s[j]
            k = r
            for j in range(i + 1):
                if d[j] != 0.0:
                    row[k] = rows[i, j]
                    k += 1
            index[last], scale[last], z[last] = m, d[i], block_z[i]
            counts[ROWS] = last + 1
        sizes[i] = counts[ATOMS]


@hot
def kons_function(function, m, r, work, out):
    """Write out : (m,) with u_t(x) = sum_j out_j k(x_j, x), for m atoms and r rows of L."""
    _, coefs, index, scale, z, L = function
    for j in range(r):
        work[j] = z[j]
    solve_lower_transposed(L, work, r)
    for j in range(m):
        out[j] = coefs[j]
    for j in range(r):
        out[index[j]] += scale[j] * work[j]


@hot
def clipped_forecasts(rows, coefs, C, out):
    """Write rows . coefs, clipped to [-C, C]. rows : (n, m); coefs : (m,)."""
    for t in range(out.shape[0]):
        out[t] = smaller(larger(dot(rows[t], coefs, coefs.shape[0]), -C), C)


@hot
def toss_coins(row, corner, d, setting, counts, sketch, coins, work):
    """Show KORS the rescaled point d phi_t and toss both coins; return (v_t, status).

    v_t is the round's weight in A: 0 if it is left out, else 1 or, if ``weighted``, 1 / p_t. row :
    (cap,), kernel values of x_t, the coming atom ATOMS, with the atoms; work : kbar and b, (cap_k,)
    """
    _, alpha, gamma, beta, eps, floor, weighted, _ = setting
    members, weights, kors = sketch
    kbar, b = work
    k = counts[MEMBERS]
    for j in range(k):
        kbar[j] = d * row[members[j]]
    square = d * d * corner
    probability = kors_probability(kbar, weights, kors, b, square, alpha, beta, eps, k)
    if not probability >= 0.0:
        return 0.0, NOT_FINITE
    kept = larger(probability, floor)
    if d != 0.0 and coins[0] < kept:
        if not kors_keep(weights, kors, b, square, alpha, kept, k) > 0.0:
            return 0.0, NOT_POSITIVE
        weights[k] *= d
        members[k], counts[MEMBERS] = counts[ATOMS], k + 1
    p = larger(probability, gamma)  # Alg. 3, line 9
    if d == 0.0 or not coins[1] < p:
        return 0.0, DONE
    return 1.0 / p if weighted else 1.0, DONE


@hot
def append_row(function, counts, s, d, schur, alpha, g, pull):
    """Add the row [d s, sqrt(alpha + d^2 schur)] of x_t, the coming atom ATOMS, to L, and its z."""
    _, _, index, scale, z, L = function
    r = counts[ROWS]
    pivot = math.sqrt(alpha + d * d * schur)
    target = L[r]
    for j in range(r):
        target[j] = d * s[j]
    target[r] = pivot
    z[r] = -(g / pivot + pivot * pull) / d
    index[r], scale[r], counts[ROWS] = counts[ATOMS], d, r + 1


@hot
def sketched_kons_rounds(
    X, rounds, first, kernel, loss, setting, counts, function, sketch, work, out
):
    """Play Sketched-KONS (kons Algorithm 3).

    KORS sees the rescaled points g_t sqrt(eta_t) phi_t, after the label (errata 9).

    rounds : labels, eta_t, coins of KORS and coins of v_t, (n,); setting : (C, alpha, gamma, beta,
    eps, least probability of KORS, whether A is weighted by 1/p, decrement at which to stop);
    sketch : KORS's members (cap_k,), integers, weights d_i / sqrt(p_i), and factor (cap_k, cap_k);
    work : (4, at least each cap); out : also R_G, (1,).
    """
    C, alpha, _, _, _, _, _, stop = setting
    y, steps, kors_coins, coins = rounds
    atoms, coefs, index, scale, z, L = function
    forecasts, sizes, R_G = out
    row, s, kbar, b = work[0], work[1], work[2], work[3]
    for t in range(first, y.shape[0]):
        m, r = counts[ATOMS], counts[ROWS]
        if m == coefs.shape[0] or r == z.shape[0] or counts[MEMBERS] == sketch[1].shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        for j in range(r):
            s[j] = scale[j] * row[index[j]]
        solve_lower(L, s, r)
        schur = larger(corner - dot(s, s, r), 0.0)  # negative only by rounding
        raw = dot(row, coefs, m) + dot(s, z, r)  # line 6: ybar_t
        if not abs(raw) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = smaller(larger(raw, -C), C)  # line 7: the projection, eq. 1
        over = raw - forecasts[t]
        if over != 0.0 and not schur > 0.0:
            return t, NOT_POSITIVE
        g = loss_derivative(loss, forecasts[t], y[t])
        d, v = scaled_slope(g, steps[t]), 0.0
        if not is_flat(loss, g):  # lines 8 to 10
            pair = kors_coins[t], coins[t]
            v, status = toss_coins(row, corner, d, setting, counts, sketch, pair, (kbar, b))
            if status != DONE:
                return t, status
        pull, c = over / schur if over != 0.0 else 0.0, 0.0
        if v > 0.0:
            append_row(function, counts, s, d * math.sqrt(v), schur, alpha, g, pull)
        else:  # left out of A: the gradient step and the projection stay (errata 4)
            c = -g / alpha - pull
            add_multiple(z, -c, s, r)
        q = schur / alpha  # phi_t' A_{t-1}^-1 phi_t
        weight = steps[t] * g * g if v > 0.0 else 0.0
        decrement = g * g * q / (1.0 + weight * (v * q))  # g_t' A_t^-1 g_t
        R_G[0] += decrement  # Prop. 1
        if not (is_flat(loss, g) and c == 0.0):
            put_atom(atoms, m, x)
            coefs[m] = c
            counts[ATOMS] = m + 1
        sizes[t] = counts[ATOMS]
        if decrement < stop:
            return t + 1, STOPPED
    return y.shape[0], DONE
