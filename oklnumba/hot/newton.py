"""Rounds of the online Newton step, exact and sketched, in the primal."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import bordered_cholesky, dot, solve_upper, solve_upper_transposed
from oklnumba.hot.losses import round_derivative
from oklnumba.hot.udu import (
    LANES,
    SWEEP,
    TOGETHER,
    factor_rounds,
    ridge_forecast,
    ridge_learn,
    solve_rounds,
)

# Several rounds of the online Newton step: with p = U^-T x of each round for the U before all of
# them, H = P D^-1 P' holds x_i' A^-1 x_j, which Sherman and Morrison bring up to date in the small,
# so that all forecasts and weights are known before one sweep adds the rounds to the factor. Where
# eta H is large their differences would cancel: there the rounds are played one by one.
CANCELS = 100.0
SMALL = 2 * LANES  # columns of the arrays for a block: loops of constant length become vectors


@hot
def slab_shift(forecast, C, q):
    """Return how far along A^-1 x the point moves to forecast within [-C, C]."""
    if forecast > C:
        return (forecast - C) / q
    if forecast < -C:
        return (forecast + C) / q
    return 0.0


@hot
def newton_weights(H, m, y, loss, eta, C, count, slopes, shifts, late, forecasts):
    """Play the rounds of a block in the small; return (rounds played, status).

    H : (cap, SMALL), x_i' A^-1 x_j; m : (SMALL,), w.x_j, both for A and w before the block, in
    place; slopes, shifts : (cap,), written: derivatives and moves onto the slab; late : (cap,),
    written: the moves of rounds without a gradient, as A^-1 sum late_j x_j with the A after the
    block.
    """
    for i in range(count):
        late[i] = 0.0
    for i in range(count):
        forecast = m[i]
        if not abs(forecast) < np.inf:
            return i, NOT_FINITE
        q = H[i, i]
        shift = slab_shift(forecast, C, q)
        if shift != 0.0:
            forecast = C if forecast > 0.0 else -C
        forecasts[i] = forecast
        slope = round_derivative(loss, forecast, y[i])
        weight = eta * slope * slope
        grown = 1.0 + weight * q
        moved = shift + slope / grown
        slopes[i] = slope
        shifts[i] = shift
        for j in range(i):  # A has grown by the weight of this round
            if late[j] != 0.0:
                late[i] += weight * late[j] * H[i, j]
        if slope == 0.0:
            late[i] -= shift
        row = H[i]
        for j in range(SMALL):
            m[j] -= moved * row[j]
        if weight != 0.0:
            rate = weight / grown
            for j in range(i + 1, count):
                other = H[j]
                share = rate * other[i]
                for k in range(SMALL):
                    other[k] -= share * row[k]
    return count, DONE


@hot
def newton_block(X, y, loss, eta, C, U, inv_d, c, work, small, forecasts):
    """Play a block of rounds together; (0, NEED_ROOM) if they must be played one by one.

    Arguments as in newton_rounds; X has a multiple of SWEEP rows, at most TOGETHER.
    """
    count, r = X.shape
    rounds, betas = work[:TOGETHER], work[TOGETHER : 2 * TOGETHER]
    scan = work[2 * TOGETHER]
    H, m, slopes = small[:TOGETHER], small[TOGETHER], small[TOGETHER + 1]
    shifts, late, a = small[TOGETHER + 2], small[TOGETHER + 3], small[TOGETHER + 4]
    for s in range(count):
        target = rounds[s]
        source = X[s]
        for j in range(r):
            target[j] = source[j]
    solve_rounds(U, inv_d, rounds, betas, a, count, r)
    for i in range(count):
        p = rounds[i]
        v = betas[i]
        for j in range(r):
            v[j] = inv_d[j] * p[j]
        for j in range(i + 1):
            H[i, j] = dot(v, rounds[j], r)
            H[j, i] = H[i, j]
        if not eta * H[i, i] <= CANCELS:
            return 0, NEED_ROOM
        m[i] = dot(p, c, r)
    played, status = newton_weights(
        H, m, y, loss, eta, C, count, slopes, shifts, late, forecasts
    )  # fmt: skip
    if status != DONE:
        return played, status
    root = math.sqrt(eta)
    moved_late = False
    for s in range(count):
        target = rounds[s]
        source = X[s]
        scale = root * slopes[s]
        for j in range(r):
            target[j] = scale * source[j]
        a[s] = 1.0
        moved_late = moved_late or late[s] != 0.0
    factor_rounds(U, inv_d, rounds, betas, a, count, r)
    for s in range(count):
        if slopes[s] != 0.0:
            forecast = ridge_forecast(rounds[s], c, scan, r)
            move = (shifts[s] * a[s] + slopes[s]) / (root * slopes[s])
            ridge_learn(forecast - move, betas[s], c, scan, r)
    if moved_late:
        p = rounds[0]
        for j in range(r):
            p[j] = 0.0
        for s in range(count):
            if late[s] != 0.0:
                for j in range(r):
                    p[j] += late[s] * X[s, j]
        solve_rounds(U, inv_d, rounds, betas, a, 1, r)
        for j in range(r):
            c[j] += inv_d[j] * p[j]
    return count, DONE


@hot
def newton_round(x, y, loss, eta, C, U, inv_d, c, work, forecasts):
    """Play one round; arguments as in newton_rounds but for x : (r,) and forecasts : (1,)."""
    r = x.shape[0]
    z, betas, scan = work[0:1], work[1:2], work[2]
    p, a = z[0], work[3]
    for j in range(r):
        p[j] = x[j]
    solve_rounds(U, inv_d, z, betas, a, 1, r)
    forecast = dot(p, c, r)
    if not abs(forecast) < np.inf:
        return NOT_FINITE
    if abs(forecast) > C:
        q = 0.0
        for k in range(r):
            q += inv_d[k] * p[k] * p[k]
        shift = slab_shift(forecast, C, q)
        for k in range(r):
            c[k] -= shift * inv_d[k] * p[k]
        forecast = C if forecast > 0.0 else -C
    forecasts[0] = forecast
    slope = round_derivative(loss, forecast, y)
    if slope == 0.0:
        return DONE
    root = math.sqrt(eta)
    for j in range(r):
        p[j] = root * slope * x[j]
    a[0] = 1.0
    factor_rounds(U, inv_d, z, betas, a, 1, r)
    m = ridge_forecast(p, c, scan, r)
    ridge_learn(m - 1.0 / root, betas[0], c, scan, r)
    return DONE


@hot
def newton_rounds(X, y, loss, eta, C, U, inv_d, c, work, small, forecasts):
    """Play rounds of the online Newton step, projected on |w.x| <= C (kons Algorithm 1, linear).

    A = alpha I + eta sum g g' = U' D U. A round takes w to w - A^-1 g, the ridge estimate after one
    more point z = sqrt(eta) g with the label z.w - 1 / sqrt(eta).

    X : (n, r), padded with zeros to r a multiple of LANES; y : (n,); loss : code; C : infinity for
    no projection; U : (r, r), inv_d, c : (r,), the state, w = U^-1 c, in place; work :
    (2 TOGETHER + 1, r) and small : (TOGETHER + 5, SMALL), workspace; forecasts : (n,), written.
    Returns (rounds played, status).
    """
    n = y.shape[0]
    t = 0
    while t < n:
        count = min(TOGETHER, (n - t) // SWEEP * SWEEP)
        if count > 0:
            stop = t + count
            played, status = newton_block(
                X[t:stop], y[t:stop], loss, eta, C, U, inv_d, c, work, small, forecasts[t:stop]
            )
            if status == NOT_FINITE:
                return t + played, status
            if status == DONE:
                t = stop
                continue
        stop = t + max(count, 1)
        while t < stop:
            status = newton_round(
                X[t], y[t], loss, eta, C, U, inv_d, c, work, forecasts[t : t + 1]
            )  # fmt: skip
            if status != DONE:
                return t, status
            t += 1
    return n, DONE


@hot
def newton_forecasts(X, C, U, inv_d, c, work, forecasts):
    """Write what the online Newton step would forecast for each row of X."""
    n, r = X.shape
    p = work[0:1]
    for t in range(n):
        for j in range(r):
            p[0, j] = X[t, j]
        solve_rounds(U, inv_d, p, work[1:2], work[2], 1, r)
        forecasts[t] = max(-C, min(C, dot(p[0], c, r)))


@hot
def sketched_newton_rounds(X, y, loss, alpha, eta, C, S, R, w, state, small, u, forecasts):
    """Play rounds of the online Newton step with A = alpha I + S'S, S a sketch of the gradients.

    S : (rows, d), of which state[0] rows are used; R : (rows, rows), upper factor of alpha I + SS';
    w : (d,); state : (1,); all in place; small : (2, rows), u : (d,), workspace; forecasts : (n,),
    written. Returns (rounds played, status); NEED_ROOM: the sketch is full, shrink it first.
    """
    d = w.shape[0]
    root = math.sqrt(eta)
    column, v = small[0], small[1]
    for t in range(y.shape[0]):
        m = state[0]
        if m == S.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        # u = A^-1 x = (x - S' (alpha I + SS')^-1 S x) / alpha
        for i in range(m):
            column[i] = dot(S[i], x, d)
        solve_upper_transposed(R, column, m)
        for i in range(m):
            v[i] = column[i]
        square = dot(x, x, d)
        solve_upper(R, v, m)
        for j in range(d):
            u[j] = x[j]
        for i in range(m):
            row = S[i]
            for j in range(d):
                u[j] -= v[i] * row[j]
        for j in range(d):
            u[j] /= alpha
        if abs(forecast) > C:
            clipped = C if forecast > 0.0 else -C
            q = dot(u, x, d)
            if not q > 0.0:
                return t, NOT_POSITIVE
            shift = (forecast - clipped) / q
            for j in range(d):
                w[j] -= shift * u[j]
            forecast = clipped
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        if slope == 0.0 or square == 0.0:  # no row of zeros in the sketch
            continue
        scaled = slope * root
        row = S[m]
        for j in range(d):
            row[j] = scaled * x[j]
        for i in range(m):
            column[i] *= scaled
        pivot = bordered_cholesky(R, column, alpha + scaled * scaled * square, m)
        if not pivot > 0.0:
            return t, NOT_POSITIVE
        state[0] = m + 1
        # A^-1 g after the round is u slope / (1 + eta slope^2 x'u)
        q = dot(u, x, d)
        step = slope / (1.0 + scaled * scaled * q)
        for j in range(d):
            w[j] -= step * u[j]
    return y.shape[0], DONE
