"""Rounds of first-order linear learners: follow the regularised leader (FTRL), with several rules.

Zhang 2019, lecture notes ("oco"), sections 2.1 to 2.5 and 3:

    G_0 = 0; for t = 1, ..., T:
        w_t = argmin_w Phi_t(w) + <G_{t-1}, w>;   forecast w_t.x_t
        g_t = l'(w_t.x_t) x_t;   G_t = G_{t-1} + g_t

    Phi_t = |w|^2 / (2 eta) (GRADIENT_STEP), on a ball (LAZY_BALL), |w|_p^2 / (2 eta) (P_NORM),
        sum w log w / eta on the simplex (ENTROPY), |w|^2 sqrt(t) / (2 eta) (SQRT_STEPS),
        |w|^2 sqrt(sigma + sum |g|^2) / (2 eta) (LENGTH_STEPS), the same by coordinate (ADAGRAD),
        or lam / 2 (|w|^2 + sum_{s<t} |w - w_s|^2) (STRONGLY_CONVEX)

GRADIENT_STEP moves w itself, w_{t+1} = Proj(w_t - eta_t g_t), which also allows steps eta_t that
change; the others store G (and S) and write w_{t+1} after the round.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import DIVERGED, DONE, LARGEST_FORECAST, UNBOUNDED, Array, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot, entropy_map, project_ball
from oklnumba.hot.primitives.losses import LINEAR_LOSS, round_derivative

# Update rules.
GRADIENT_STEP, LAZY_BALL, P_NORM, ENTROPY = range(4)
SQRT_STEPS, LENGTH_STEPS, ADAGRAD, STRONGLY_CONVEX = range(4, 8)
# Entries of the clock: rounds played, sum of |g|^2.
ROUNDS, LENGTHS = 0, 1
OF_LENGTHS = -1.0  # stands for a power of t: steps eta / sqrt(sum |g|^2)


class LeaderState(NamedTuple):
    """The point and the sums that it follows; the steps that sums of squares divide may be 0."""

    clock: Annotated[Array, "clock", UNBOUNDED]  # ROUNDS, LENGTHS
    w: Annotated[Array, "d"]
    G: Annotated[Array, "d"]  # sum of g
    S: Annotated[Array, "d", UNBOUNDED]  # ADAGRAD: sum of g^2; or see strongly_convex_step


class FullState(NamedTuple):
    """The same with sums of whole matrices; its rounds are not compiled."""

    w: Annotated[Array, "d"]
    G: Annotated[Array, "d"]
    S: Annotated[Array, "d", "d"]  # sigma I + sum g g'


class Steps(NamedTuple):
    """The rule, and the hyper-parameters of all rules."""

    rule: int  # code
    eta: float = 0.0
    power: float = 0.0  # of t in the step: 0, 1/2, or 1 for steps 1 / (lam t); or OF_LENGTHS
    lam: float = 0.0  # strong convexity of the losses
    radius: float = math.inf  # of the ball
    p: float = 2.0
    scale: float = 1.0  # sum of a point of the simplex
    sigma: float = 0.0
    decay: float = 0.0  # weight of |w|^2 / 2 in the losses of rounds on features


@hot
def p_norm_map(G, eta, p, w, d):
    """Write the maximiser of <-G, w> - |w|_p^2 / (2 eta) (of oco Example 5.3). G, w : (d,)."""
    largest = 0.0
    for j in range(d):
        largest = larger(largest, abs(G[j]))
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
def multiple_map(G, factor, w, d):
    """Write factor G."""
    for j in range(d):
        w[j] = factor * G[j]


@hot
def step_size(steps, clock):
    """Return eta_t: eta, eta / sqrt(t), 1 / (lam t) (oco Theorem 5), or eta / sqrt(sum |g|^2)."""
    if steps.power == 1.0:
        return 1.0 / (steps.lam * clock[ROUNDS])
    if steps.power == OF_LENGTHS:
        return steps.eta / math.sqrt(clock[LENGTHS]) if clock[LENGTHS] > 0.0 else 0.0
    return steps.eta / math.sqrt(clock[ROUNDS]) if steps.power == 0.5 else steps.eta


@hot
def strongly_convex_step(lam, decay, slope, x, state):
    """Take w to S / (t + 1), S = sum of points - sum of gradients / lam (oco Theorem 4)."""
    w, S, rate, keep = state.w, state.S, slope / lam, 1.0 - decay / lam
    share = 1.0 / (state.clock[ROUNDS] + 1.0)
    for j in range(w.shape[0]):
        S[j] += keep * w[j] - rate * x[j]
        w[j] = share * S[j]


@hot
def map_step(steps, slope, x, state):
    """Add the gradient to G, take w to the mirror map of -G."""
    clock, w, G, rule, d = state.clock, state.w, state.G, steps.rule, state.w.shape[0]
    if slope != 0.0:
        add_multiple(G, slope, x, d)
    if rule == SQRT_STEPS:  # section 2.5, adaptive step sizes
        multiple_map(G, -steps.eta / math.sqrt(clock[ROUNDS] + 1.0), w, d)
    elif slope == 0.0:
        return
    elif rule == LENGTH_STEPS:  # section 2.5, gradient lengths
        clock[LENGTHS] += slope * slope * dot(x, x, d)
        multiple_map(G, -steps.eta / math.sqrt(steps.sigma + clock[LENGTHS]), w, d)
    elif rule == P_NORM:  # section 2.3, item 3
        p_norm_map(G, steps.eta, steps.p, w, d)
    elif rule == ENTROPY:  # section 2.3, item 4; Winnow in section 2.4
        entropy_map(G, steps.eta, steps.scale, w, d)
    else:  # LAZY_BALL: section 2.3, item 2
        multiple_map(G, -steps.eta, w, d)
        project_ball(w, steps.radius, d)


@hot
def first_order_rounds(X, y, loss, steps, state, forecasts):
    """Play rounds of a first-order learner: forecast w.x, then the update rule.

    The gradient is slope x + decay w; decay is 0 except in the two rules for strongly convex
    losses. The two rules that run at the speed of memory are written out in the loop: as functions
    they take 6 and 20 ns more per round.
    """
    clock, w, G, S, d = state.clock, state.w, state.G, state.S, state.w.shape[0]
    decay = 0.0 if loss == LINEAR_LOSS else steps.decay  # a game gives its whole gradient
    for t in range(y.shape[0]):
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        clock[ROUNDS] += 1.0
        if steps.rule == GRADIENT_STEP:  # oco section 2.3, item 1; section 3, before Theorem 5
            if steps.power == OF_LENGTHS:
                clock[LENGTHS] += slope * slope * dot(x, x, d)
            step = step_size(steps, clock)
            keep, move = 1.0 - step * decay, step * slope
            if keep != 1.0:
                for j in range(d):
                    w[j] = keep * w[j] - move * x[j]
            elif move != 0.0:
                for j in range(d):
                    w[j] -= move * x[j]
            if steps.radius < np.inf:
                project_ball(w, steps.radius, d)
        elif steps.rule == ADAGRAD:  # oco section 2.5, diagonal matrices
            if slope != 0.0:
                for j in range(d):
                    g = slope * x[j]
                    sum_g, sum_square = G[j] + g, S[j] + g * g
                    G[j], S[j] = sum_g, sum_square
                    w[j] = -steps.eta * sum_g / math.sqrt(steps.sigma + sum_square)
        elif steps.rule == STRONGLY_CONVEX:
            strongly_convex_step(steps.lam, decay, slope, x, state)
        else:
            map_step(steps, slope, x, state)
    return y.shape[0], DONE
