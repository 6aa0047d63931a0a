"""Rounds of the online Newton step in the primal: exact, and with a sketch of the gradients.

Calandriello, Lazaric and Valko 2017 (ICML, "kons"), Algorithm 1 with phi(x) = x:

    w_0 = 0, A_0 = alpha I; for t = 1, ..., T:
        u_t = w_{t-1} - A_{t-1}^-1 g_{t-1};   ybar_t = u_t.x_t                    # lines 5, 6
        w_t = u_t - h(ybar_t) / (x_t' A_{t-1}^-1 x_t) A_{t-1}^-1 x_t              # line 7, eq. 1
        yhat_t = w_t.x_t;   g_t = l'(yhat_t) x_t;   A_t = A_{t-1} + eta g_t g_t'  # line 8

with h(z) = sign(z) max(|z| - C, 0). The sketch (Luo et al. 2016) has A = alpha I + S'S, S with few
rows, which the caller shrinks.

The exact step keeps A = U' D U (udu.py) and c = U w. To it, a step is a ridge update with the point
sqrt(eta) g_t and the label sqrt(eta) g_t.w_t - 1 / sqrt(eta).

Several rounds share a pass over U. Before a block, H = (x_i' A^-1 x_j) and m = (w.x_i) take one
solve. Round by round, Sherman and Morrison's formula updates H and m:

    A + weight x_i x_i':   H -= weight / (1 + weight H_ii) h_i h_i',   h_i = H's row i
    w - moved A^-1 x_i:    m -= moved h_i

So all forecasts of the block are made before its gradients are added to U. Where eta H is large
these differences would cancel, and the rounds are played one by one.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import clip, larger, smaller
from oklnumba.hot.primitives.jit import (
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    PADDED,
    UPPER,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import (
    add_multiple,
    bordered_cholesky,
    dot,
    multiply,
    solve_upper,
    solve_upper_transposed,
)
from oklnumba.hot.primitives.losses import round_derivative
from oklnumba.hot.primitives.udu import (
    LANES,
    NO_DISCOUNT,
    SWEEP,
    TOGETHER,
    factor_rounds,
    ridge_forecast,
    ridge_learn,
    solve_rounds,
)

CANCELS = 100.0  # the largest eta H with which a block is played together
SMALL = 2 * LANES  # columns of a block's arrays: loops of constant length become vectors
SKETCH_ROWS = 0  # entry of the sketch's counts: its rows in use


class Step(NamedTuple):
    """The loss and what a round does with its gradient."""

    loss: int  # its code
    eta: float  # A grows by eta g g'
    C: float  # forecasts are in [-C, C]; inf: no projection


class NewtonState(NamedTuple):
    """A = U' D U and w = U^-1 c; r is a multiple of LANES, inputs have zeros beyond d."""

    U: Annotated[Array, "r", "r", UPPER, PADDED]
    inv_d: Annotated[Array, "r"]  # 1 / D
    c: Annotated[Array, "r"]


class NewtonWork(NamedTuple):
    """Workspace of a block of rounds; a single round uses the first four."""

    p: Array  # (TOGETHER, r): U^-T x_i, then of the gradients
    beta: Array  # (TOGETHER, r)
    scan: Array  # (r,)
    a: Array  # (SMALL,)
    H: Array  # (TOGETHER, SMALL): x_i' A^-1 x_j
    m: Array  # (SMALL,): w.x_i
    slopes: Array  # (SMALL,): l'(yhat_i)
    shifts: Array  # (SMALL,): h(ybar_i) / (x_i' A^-1 x_i), the projections
    delayed: Array  # (SMALL,): projections of rounds without a gradient, for the A after the block


class SketchState(NamedTuple):
    """A = alpha I + S'S."""

    counts: Annotated[Integers, "counts"]
    S: Annotated[Array, "rows", "d"]
    R: Annotated[Array, "rows", "rows"]  # R'R = alpha I + S S'
    w: Annotated[Array, "d"]


class SketchWork(NamedTuple):
    """Workspace of a round with a sketch."""

    column: Array  # (rows,): R^-T S x
    v: Array  # (rows,): R^-1 column
    u: Array  # (d,): A^-1 x


@hot
def find_shift(forecast, C, q):
    """Return how far w moves along A^-1 x to forecast within [-C, C] (kons eq. 1); q = x'A^-1 x."""
    if forecast > C:
        return (forecast - C) / q
    if forecast < -C:
        return (forecast + C) / q
    return 0.0


# ---- blocks of rounds ----


@hot
def solve_block(X, eta, state, work):
    """Write H and m of a block; return False if differences of its entries would cancel."""
    count, r = X.shape
    for i in range(count):
        for j in range(r):
            work.p[i, j] = X[i, j]
    solve_rounds(state.U, work.p, count, r)
    for i in range(count):
        p, v = work.p[i], work.beta[i]
        for j in range(r):
            v[j] = state.inv_d[j] * p[j]
        for j in range(i + 1):
            work.H[i, j] = work.H[j, i] = dot(v, work.p[j], r)
        if not eta * work.H[i, i] <= CANCELS:
            return False
        work.m[i] = dot(p, state.c, r)
    return True


@hot
def update_products(i, count, weight, moved, H, m):
    """Update H and m for the rounds of a block after round i: A + weight x_i x_i', w moved."""
    row = H[i]
    for j in range(SMALL):
        m[j] -= moved * row[j]
    if weight != 0.0:
        rate = weight / (1.0 + weight * row[i])
        for j in range(i + 1, count):
            later, share = H[j], rate * H[j, i]
            for k in range(SMALL):
                later[k] -= share * row[k]


@hot
def play_block(y, step, work, forecasts):
    """Play the rounds of a block on its H and m; return (rounds played, status)."""
    H, m, delayed = work.H, work.m, work.delayed
    count = y.shape[0]
    for i in range(count):
        delayed[i] = 0.0
        forecast = m[i]  # line 6
        if not abs(forecast) < np.inf:
            return i, NOT_FINITE
        shift = find_shift(forecast, step.C, H[i, i])
        if shift != 0.0:  # line 7
            forecast = step.C if forecast > 0.0 else -step.C
        forecasts[i] = forecast
        slope = round_derivative(step.loss, forecast, y[i])
        weight = step.eta * slope * slope  # of x x' in A, line 8
        work.slopes[i], work.shifts[i] = slope, shift
        for j in range(i):  # A^-1 delayed_j x_j, by the A with this round
            if delayed[j] != 0.0:
                delayed[i] += weight * delayed[j] * H[i, j]
        if slope == 0.0:
            delayed[i] -= shift
        update_products(i, count, weight, shift + slope / (1.0 + weight * H[i, i]), H, m)
    return count, DONE


@hot
def learn_block(X, eta, state, work):
    """Add the gradients of a block to the factor, and move w."""
    c, count, r = state.c, X.shape[0], X.shape[1]
    root = math.sqrt(eta)
    for i in range(count):
        scale = root * work.slopes[i]
        for j in range(r):
            work.p[i, j] = scale * X[i, j]
        work.a[i] = 1.0
    factor_rounds(state.U, state.inv_d, NO_DISCOUNT, work.p, work.beta, work.a, count, r)
    for i in range(count):
        slope = work.slopes[i]
        if slope != 0.0:
            forecast = ridge_forecast(work.p[i], c, work.scan, r)
            move = (work.shifts[i] * work.a[i] + slope) / (root * slope)
            ridge_learn(forecast - move, work.beta[i], c, work.scan, r)
    add_delayed(X, state, work)


@hot
def add_delayed(X, state, work):
    """Move w by A^-1 sum_i delayed_i x_i."""
    count, r = X.shape
    any_delayed, p = False, work.p[0]
    for i in range(count):
        any_delayed = any_delayed or work.delayed[i] != 0.0
    if not any_delayed:
        return
    for j in range(r):
        p[j] = 0.0
    for i in range(count):
        if work.delayed[i] != 0.0:
            add_multiple(p, work.delayed[i], X[i], r)
    solve_rounds(state.U, work.p, 1, r)
    for j in range(r):
        state.c[j] += state.inv_d[j] * p[j]


# ---- one round, and the loop ----


@hot
def newton_round(x, y, step, state, work):
    """Play one round; return (forecast, status)."""
    inv_d, c, p, r = state.inv_d, state.c, work.p[0], x.shape[0]
    for j in range(r):
        p[j] = x[j]
    solve_rounds(state.U, work.p, 1, r)
    forecast = dot(p, c, r)  # line 6
    if not abs(forecast) < np.inf:
        return forecast, NOT_FINITE
    if abs(forecast) > step.C:  # line 7, eq. 1
        q = 0.0
        for k in range(r):
            q += inv_d[k] * p[k] * p[k]
        shift = find_shift(forecast, step.C, q)
        for k in range(r):
            c[k] -= shift * inv_d[k] * p[k]
        forecast = step.C if forecast > 0.0 else -step.C
    slope = round_derivative(step.loss, forecast, y)
    if slope == 0.0:
        return forecast, DONE
    root = math.sqrt(step.eta)
    for j in range(r):
        p[j] = root * slope * x[j]
    work.a[0] = 1.0
    factor_rounds(state.U, inv_d, NO_DISCOUNT, work.p, work.beta, work.a, 1, r)  # line 8
    m = ridge_forecast(p, c, work.scan, r)
    ridge_learn(m - 1.0 / root, work.beta[0], c, work.scan, r)  # line 5 of the next round
    return forecast, DONE


@hot
def newton_rounds(X, y, step, state, work, forecasts):
    """Play rounds of the online Newton step. X : (n, r)."""
    n, t = y.shape[0], 0
    while t < n:
        count = smaller(TOGETHER, (n - t) // SWEEP * SWEEP)
        stop = t + larger(count, 1)
        if count > 0 and solve_block(X[t:stop], step.eta, state, work):
            played, status = play_block(y[t:stop], step, work, forecasts[t:stop])
            if status != DONE:
                return t + played, status
            learn_block(X[t:stop], step.eta, state, work)
            t = stop
        while t < stop:
            forecasts[t], status = newton_round(X[t], y[t], step, state, work)
            if status != DONE:
                return t, status
            t += 1
    return n, DONE


@hot
def newton_forecast(x, C, U, c, p):
    """Return what the online Newton step would forecast for x : (r,); p : (>= 1, cap)."""
    r = x.shape[0]
    for j in range(r):
        p[0, j] = x[j]
    solve_rounds(U, p, 1, r)
    return clip(dot(p[0], c, r), C)


@hot
def newton_forecasts(X, C, U, c, p, forecasts):
    """Write the forecast for each row of X : (n, r)."""
    for t in range(X.shape[0]):
        forecasts[t] = newton_forecast(X[t], C, U, c, p)


# ---- with a sketch ----


@hot
def sketch_solve(S, R, m, alpha, x, work):
    """Write u = A^-1 x = (x - S' (alpha I + SS')^-1 S x) / alpha, for m rows of S in use."""
    column, v, u, d = work.column, work.v, work.u, x.shape[0]
    for i in range(m):
        column[i] = dot(S[i], x, d)
    solve_upper_transposed(R, column, m)
    for i in range(m):
        v[i] = column[i]
    solve_upper(R, v, m)
    for j in range(d):
        u[j] = x[j]
    for i in range(m):
        add_multiple(u, -v[i], S[i], d)
    for j in range(d):
        u[j] /= alpha


@hot
def sketch_append(S, R, m, alpha, x, scale, square, column):
    """Append the row scale x to S and to the factor R; return the new pivot of R.

    square : x.x; column : R^-T S x, replaced by that of scale x.
    """
    for j in range(x.shape[0]):
        S[m, j] = scale * x[j]
    multiply(column, scale, m)
    return bordered_cholesky(R, column, alpha + scale * scale * square, m)


@hot
def sketched_newton_rounds(X, y, first, step, alpha, state, work, forecasts):
    """Play the online Newton step with a sketch of A; NEED_ROOM: shrink the full sketch first."""
    S, R, w, u, root = state.S, state.R, state.w, work.u, math.sqrt(step.eta)
    d = w.shape[0]
    for t in range(first, y.shape[0]):
        x, m = X[t], state.counts[SKETCH_ROWS]
        if m == S.shape[0]:
            return t, NEED_ROOM
        forecast = dot(x, w, d)  # line 6
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        sketch_solve(S, R, m, alpha, x, work)
        if abs(forecast) > step.C:  # line 7, eq. 1
            q = dot(u, x, d)
            if not q > 0.0:
                return t, NOT_POSITIVE
            add_multiple(w, -find_shift(forecast, step.C, q), u, d)
            forecast = step.C if forecast > 0.0 else -step.C
        forecasts[t] = forecast
        slope = round_derivative(step.loss, forecast, y[t])
        square = dot(x, x, d)
        if slope == 0.0 or square == 0.0:  # no row of zeros in the sketch
            continue
        scale = slope * root
        if not sketch_append(S, R, m, alpha, x, scale, square, work.column) > 0.0:  # line 8
            return t, NOT_POSITIVE
        state.counts[SKETCH_ROWS] = m + 1
        # A^-1 g after the round is u slope / (1 + eta slope^2 x'u): line 5 of the next round
        add_multiple(w, -slope / (1.0 + scale * scale * dot(u, x, d)), u, d)
    return y.shape[0], DONE
