"""Rounds of first-order linear learners: one loop, several update rules (oco)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.elementary import exp_nonpositive
from oklnumba.hot.jit import DONE, NOT_FINITE, hot
from oklnumba.hot.linalg import dot, project_ball
from oklnumba.hot.losses import LINEAR_LOSS, round_derivative

# Update rules of the first-order learners.
GRADIENT_STEP = 0
LAZY_BALL = 1
P_NORM = 2
ENTROPY = 3
SQRT_STEPS = 4
LENGTH_STEPS = 5
ADAGRAD = 6
STRONGLY_CONVEX = 7
# The entries of ``par``: step; exponent of t in the step; curvature of the losses; radius (infinity
# for none); p; scale of the simplex; sigma; weight of |w|^2 / 2 that rounds on features add.
ETA, POWER, LAM, RADIUS, P, SCALE, SIGMA, DECAY = range(8)


@hot
def p_norm_map(G, eta, p, w, d):
    """Write the maximiser of <-G, w> - |w|_p^2 / (2 eta). G, w : (d,)."""
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(G[j]))
    if largest == 0.0:
        for j in range(d):
            w[j] = 0.0
        return
    q = p / (p - 1.0)
    total = 0.0
    for j in range(d):
        w[j] = (abs(G[j]) / largest) ** (q - 1.0)
        total += w[j] * (abs(G[j]) / largest)
    # |G|_q^{2-q} |G_j|^{q-1}, with the largest entry taken out of the norm.
    factor = eta * largest * total ** ((2.0 - q) / q)
    for j in range(d):
        w[j] *= -factor if G[j] > 0.0 else factor


@hot
def entropy_map(G, eta, scale, w, d):
    """Write the maximiser of <-G, w> - sum w log(w) / eta on the simplex of sum ``scale``."""
    lowest = np.inf
    for j in range(d):
        lowest = min(lowest, G[j])
    total = 0.0
    for j in range(d):
        w[j] = exp_nonpositive(-eta * (G[j] - lowest))
        total += w[j]
    shrink = scale / total
    for j in range(d):
        w[j] *= shrink


@hot
def slow_step(rule, par, slope, decay, x, clock, w, G, S):
    """Close a round by the rules whose point is a map of sums; see first_order_rounds."""
    d = w.shape[0]
    eta = par[ETA]
    t = clock[0]
    if rule == STRONGLY_CONVEX:
        # w_{t+1} = (sum of points - sum of gradients / lam) / (t + 1)
        rate = slope / par[LAM]
        keep = 1.0 - decay / par[LAM]
        share = 1.0 / (t + 1.0)
        for j in range(d):
            S[j] += keep * w[j] - rate * x[j]
            w[j] = share * S[j]
        return
    if slope != 0.0:
        for j in range(d):
            G[j] += slope * x[j]
    if rule == SQRT_STEPS:
        factor = -eta / math.sqrt(t + 1.0)
        for j in range(d):
            w[j] = factor * G[j]
        return
    if slope == 0.0:
        return
    if rule == LENGTH_STEPS:
        clock[1] += slope * slope * dot(x, x, d)
        factor = -eta / math.sqrt(par[SIGMA] + clock[1])
        for j in range(d):
            w[j] = factor * G[j]
    elif rule == P_NORM:
        p_norm_map(G, eta, par[P], w, d)
    elif rule == ENTROPY:
        entropy_map(G, eta, par[SCALE], w, d)
    else:
        for j in range(d):
            w[j] = -eta * G[j]
        project_ball(w, par[RADIUS], d)


@hot
def first_order_rounds(X, y, loss, rule, par, clock, w, G, S, forecasts):
    """Play rounds of a first-order learner: forecast w.x, then the update rule.

    The gradient is slope x + decay w; decay is 0 but for the two rules for strongly convex losses.
    The two rules that reach the speed of memory are written out in the loop.

    X : (n, d); y : (n,); loss, rule : codes; par : (8,), hyper-parameters; clock : (2,), rounds
    played and the sum of |g|^2; w, G, S : (d,), the point, the sum of gradients and a second sum;
    clock, w, G, S in place; forecasts : (n,), written. Returns (rounds played, status).
    """
    d = w.shape[0]
    eta = par[ETA]
    sigma = par[SIGMA]
    decay = 0.0 if loss == LINEAR_LOSS else par[DECAY]
    for t in range(y.shape[0]):
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        clock[0] += 1.0
        if rule == GRADIENT_STEP:
            step = eta
            if par[POWER] == 0.5:
                step = eta / math.sqrt(clock[0])
            elif par[POWER] == 1.0:
                step = 1.0 / (par[LAM] * clock[0])
            keep = 1.0 - step * decay
            slope = step * slope
            if keep != 1.0:
                for j in range(d):
                    w[j] = keep * w[j] - slope * x[j]
            elif slope != 0.0:
                for j in range(d):
                    w[j] -= slope * x[j]
            if par[RADIUS] < np.inf:
                project_ball(w, par[RADIUS], d)
        elif rule == ADAGRAD:
            if slope != 0.0:
                for j in range(d):
                    g = slope * x[j]
                    sum_g = G[j] + g
                    sum_square = S[j] + g * g
                    G[j] = sum_g
                    S[j] = sum_square
                    w[j] = -eta * sum_g / math.sqrt(sigma + sum_square)
        else:
            slow_step(rule, par, slope, decay, x, clock, w, G, S)
    return y.shape[0], DONE
