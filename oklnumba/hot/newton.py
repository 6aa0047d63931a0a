"""Rounds of the online Newton step in the primal: exact, and with a sketch of the gradients.

Calandriello, Lazaric and Valko 2017 (ICML, "kons"), Algorithm 1 with phi(x) = x:

    w_0 = 0, A_0 = alpha I; for t = 1, ..., T:
        u_t = w_{t-1} - A_{t-1}^-1 g_{t-1};   ybar_t = u_t.x_t                    # lines 5, 6
        w_t = u_t - h(ybar_t) / (x_t' A_{t-1}^-1 x_t) A_{t-1}^-1 x_t              # line 7, eq. 1
        yhat_t = w_t.x_t;   g_t = l'(yhat_t) x_t;   A_t = A_{t-1} + eta g_t g_t'  # line 8

The sketch (Luo et al. 2016) has A = alpha I + S'S, S with few rows, which the caller shrinks.

A is kept as U' D U (udu.py) and w as c = U w: a step is a ridge update with the point sqrt(eta) g_t
and the label sqrt(eta) g_t.w_t - 1 / sqrt(eta). Several rounds share a sweep over U: with
P = U^-T X before all of them, H = P' D^-1 P holds x_i' A^-1 x_j, and the formula of Sherman and
Morrison updates it round by round, so forecasts and weights are known before the sweep. Where eta H
is large its differences would cancel, and the rounds are played one by one.

``factor``: U (r, r), inv_d and c (r,); rounds, betas (TOGETHER, r), a (SMALL,) and scan (r,) are
workspace; of a block, slopes and shifts (SMALL,) are derivatives and moves onto the slab, ``late``
(SMALL,) the moves of rounds without a gradient, as A^-1 sum late_j x_j with the A after the block.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
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
USED = 0  # entry of the sketch's counts: its rows in use


@hot
def slab_shift(forecast, C, q):
    """Return how far w moves along A^-1 x to forecast within [-C, C] (kons eq. 1); q = x'A^-1 x."""
    if forecast > C:
        return (forecast - C) / q
    if forecast < -C:
        return (forecast + C) / q
    return 0.0


@hot
def newton_products(X, eta, factor, rounds, betas, H, m):
    """Write H and m of a block; False if differences of its entries would cancel.

    H : (TOGETHER, SMALL), x_i' A^-1 x_j, and m : (SMALL,), w.x_i, for A and w before the block.
    """
    U, inv_d, c = factor
    count, r = X.shape
    for s in range(count):
        for j in range(r):
            rounds[s, j] = X[s, j]
    solve_rounds(U, rounds, count, r)
    for i in range(count):
        p, v = rounds[i], betas[i]
        for j in range(r):
            v[j] = inv_d[j] * p[j]
        for j in range(i + 1):
            H[i, j] = H[j, i] = dot(v, rounds[j], r)
        if not eta * H[i, i] <= CANCELS:
            return False
        m[i] = dot(p, c, r)
    return True


@hot
def newton_weights(H, m, y, loss, eta, C, count, slopes, shifts, late, forecasts):
    """Play the rounds of a block on its H and m; return (rounds played, status)."""
    for i in range(count):
        late[i] = 0.0
        forecast = m[i]  # kons Algorithm 1, line 6
        if not abs(forecast) < np.inf:
            return i, NOT_FINITE
        q = H[i, i]
        shift = slab_shift(forecast, C, q)
        if shift != 0.0:  # line 7
            forecast = C if forecast > 0.0 else -C
        forecasts[i] = forecast
        slope = round_derivative(loss, forecast, y[i])
        weight = eta * slope * slope  # of x x' in A, line 8
        grown = 1.0 + weight * q
        moved = shift + slope / grown
        slopes[i], shifts[i] = slope, shift
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
                other, share = H[j], rate * H[j, i]
                for k in range(SMALL):
                    other[k] -= share * row[k]
    return count, DONE


@hot
def newton_learn(X, eta, slopes, shifts, late, factor, rounds, betas, a, scan):
    """Add the rounds of a block to the factor, and move the point."""
    U, inv_d, c = factor
    count, r = X.shape
    root = math.sqrt(eta)
    for s in range(count):
        scale = root * slopes[s]
        for j in range(r):
            rounds[s, j] = scale * X[s, j]
        a[s] = 1.0
    factor_rounds(U, inv_d, NO_DISCOUNT, rounds, betas, a, count, r)
    for s in range(count):
        if slopes[s] != 0.0:
            forecast = ridge_forecast(rounds[s], c, scan, r)
            move = (shifts[s] * a[s] + slopes[s]) / (root * slopes[s])
            ridge_learn(forecast - move, betas[s], c, scan, r)
    any_late, p = False, rounds[0]
    for s in range(count):
        any_late = any_late or late[s] != 0.0
    if not any_late:
        return
    for j in range(r):
        p[j] = 0.0
    for s in range(count):
        if late[s] != 0.0:
            add_multiple(p, late[s], X[s], r)
    solve_rounds(U, rounds, 1, r)
    for j in range(r):  # by A^-1 sum late_j x_j
        c[j] += inv_d[j] * p[j]


@hot
def newton_block(X, y, loss, eta, C, factor, work, forecasts):
    """Play a block of rounds together; (0, NEED_ROOM) if they must be played one by one.

    X has a multiple of SWEEP rows, at most TOGETHER.
    """
    count = X.shape[0]
    wide, small = work
    rounds, betas, scan = wide, wide[TOGETHER:], wide[2 * TOGETHER]
    H, m, slopes = small, small[TOGETHER], small[TOGETHER + 1]
    shifts, late, a = small[TOGETHER + 2], small[TOGETHER + 3], small[TOGETHER + 4]
    if not newton_products(X, eta, factor, rounds, betas, H, m):
        return 0, NEED_ROOM
    played, status = newton_weights(H, m, y, loss, eta, C, count, slopes, shifts, late, forecasts)
    if status != DONE:
        return played, status
    newton_learn(X, eta, slopes, shifts, late, factor, rounds, betas, a, scan)
    return count, DONE


@hot
def newton_round(x, y, loss, eta, C, factor, wide, forecasts):
    """Play one round, forecasts : (1,); return a status. wide : (4, r), workspace."""
    U, inv_d, c = factor
    z, betas, scan, a = wide[0:1], wide[1:2], wide[2], wide[3]
    p, r = z[0], x.shape[0]
    for j in range(r):
        p[j] = x[j]
    solve_rounds(U, z, 1, r)
    forecast = dot(p, c, r)  # kons Algorithm 1, line 6
    if not abs(forecast) < np.inf:
        return NOT_FINITE
    if abs(forecast) > C:  # line 7, eq. 1
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
    factor_rounds(U, inv_d, NO_DISCOUNT, z, betas, a, 1, r)  # line 8
    m = ridge_forecast(p, c, scan, r)
    ridge_learn(m - 1.0 / root, betas[0], c, scan, r)  # line 5 of the next round
    return DONE


@hot
def newton_rounds(X, y, loss, eta, C, factor, work, forecasts):
    """Play rounds of the online Newton step, projected on |w.x| <= C.

    X : (n, r), padded with zeros to r a multiple of LANES; C : inf for no projection; work : wide
    (2 TOGETHER + 1, r) and small (TOGETHER + 5, SMALL).
    """
    n, t = y.shape[0], 0
    while t < n:
        count = smaller(TOGETHER, (n - t) // SWEEP * SWEEP)
        if count > 0:
            stop = t + count
            played, status = newton_block(
                X[t:stop], y[t:stop], loss, eta, C, factor, work, forecasts[t:stop]
            )
            if status == NOT_FINITE:
                return t + played, status
            if status == DONE:
                t = stop
                continue
        stop = t + larger(count, 1)
        while t < stop:
            status = newton_round(X[t], y[t], loss, eta, C, factor, work[0], forecasts[t : t + 1])
            if status != DONE:
                return t, status
            t += 1
    return n, DONE


@hot
def newton_forecasts(X, C, factor, wide, forecasts):
    """Write what the online Newton step would forecast for each row of X : (n, r)."""
    U, inv_d, c = factor
    n, r = X.shape
    p = wide[0:1]
    for t in range(n):
        for j in range(r):
            p[0, j] = X[t, j]
        solve_rounds(U, p, 1, r)
        forecasts[t] = larger(-C, smaller(C, dot(p[0], c, r)))


@hot
def sketch_solve(x, alpha, sketch, m, column, v, u):
    """Write u = A^-1 x = (x - S' (alpha I + SS')^-1 S x) / alpha, and column = R^-T S x.

    m : rows of S in use; v : workspace.
    """
    S, R = sketch
    d = x.shape[0]
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
def sketch_append(x, scale, alpha, square, sketch, m, column):
    """Append the row scale x to S and to the factor R; return the new pivot of R.

    square : x.x; column : R^-T S x, replaced by that of scale x.
    """
    S, R = sketch
    for j in range(x.shape[0]):
        S[m, j] = scale * x[j]
    multiply(column, scale, m)
    return bordered_cholesky(R, column, alpha + scale * scale * square, m)


@hot
def sketched_newton_rounds(X, y, loss, setting, counts, sketch, w, work, forecasts):
    """Play rounds of the online Newton step with A = alpha I + S'S, S a sketch of the gradients.

    setting : (alpha, eta, C); counts : (1,), USED; sketch : S (rows, d) and R (rows, rows), upper
    factor of alpha I + SS'; w : (d,); work : column and v (rows,) and u (d,). NEED_ROOM: the sketch
    is full, shrink it first.
    """
    alpha, eta, C = setting
    column, v, u = work
    d, root = w.shape[0], math.sqrt(eta)
    for t in range(y.shape[0]):
        m = counts[USED]
        if m == sketch[0].shape[0]:
            return t, NEED_ROOM
        x = X[t]
        forecast = dot(x, w, d)  # kons Algorithm 1, line 6
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        sketch_solve(x, alpha, sketch, m, column, v, u)
        if abs(forecast) > C:  # line 7, eq. 1
            q = dot(u, x, d)
            if not q > 0.0:
                return t, NOT_POSITIVE
            add_multiple(w, -slab_shift(forecast, C, q), u, d)
            forecast = C if forecast > 0.0 else -C
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        square = dot(x, x, d)
        if slope == 0.0 or square == 0.0:  # no row of zeros in the sketch
            continue
        scale = slope * root
        if not sketch_append(x, scale, alpha, square, sketch, m, column) > 0.0:  # line 8
            return t, NOT_POSITIVE
        counts[USED] = m + 1
        # A^-1 g after the round is u slope / (1 + eta slope^2 x'u): line 5 of the next round
        add_multiple(w, -slope / (1.0 + scale * scale * dot(u, x, d)), u, d)
    return y.shape[0], DONE
