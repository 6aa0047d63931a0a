"""Aggregation of experts, round by round: exponential weights, fixed share, and ML-Poly."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.first_order import entropy_map
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, hot
from oklnumba.hot.primitives.losses import loss_derivative, loss_value

AGGREGATING = 0
AVERAGE = 1
HEDGE = 2
ML_POLY = 3
DYNAMIC = 4  # dynamic model averaging: the posterior under noise of a variance that is learned
MEMORY = 2.0 ** (-1.0 / 100.0)  # of that variance: a half-life of 100 rounds
LEAST_VARIANCE = 1e-4  # times B^2

# The state, the one place that says so; as arguments (totals, squares, tally), all 1-D:
EXPERT_STATE = {
    # Losses so far, -log(weight) / eta where shared or DYNAMIC, whose eta is 1; ML-Poly: regrets.
    "totals": ("experts",),
    "squares": ("experts",),  # ML-Poly: sums of squared regrets of the rounds; else 0
    "tally": ("tally",),  # the four numbers below; 0 where B is given
}
# Largest |y| so far, sum of the squares of its growths (both only where B is learned); ML-Poly:
# largest squared regret of a round, bound on its potential; DYNAMIC: variance, rounds it is of.
LARGEST, GROWN, PEAK, POTENTIAL = range(4)
VARIANCE, COUNT = PEAK, POTENTIAL
TALLY = 4
LEARNED = 0.0  # the setting's B where it is the largest |y| so far

# Below these nothing is told apart: rates stay finite, and lower ones are as good.
SMALLEST = 1e-300


@hot
def clamped(forecast, B):
    """Return the value in [-B, B] next to a forecast."""
    return larger(-B, smaller(B, forecast))


@hot
def label_bound(setting, state):
    """Return the bound on |y| in the next round: B as given, or the largest |y| so far."""
    _, B, _ = setting
    return state[2][LARGEST] if B == LEARNED else B


@hot
def expert_weights(totals, eta, weights):
    """Write exp(-eta total) for each expert, scaled to the sum 1 (oco Example 6.1, errata 47)."""
    entropy_map(totals, eta, 1.0, weights, totals.shape[0])


@hot
def expert_rate(kind, B, played, count):
    """Return the learning rate of the next round."""
    if kind == AGGREGATING:  # the squared loss on [-B, B] mixes (Vovk 1998)
        return 1.0 / (2.0 * larger(B * B, SMALLEST))
    if kind == AVERAGE:  # and is exp-concave (oco Lemma 5)
        return 1.0 / (8.0 * larger(B * B, SMALLEST))
    if kind == DYNAMIC:
        return 1.0
    return math.sqrt(8.0 * math.log(count) / (played + 1.0)) / B


@hot
def poly_weights(state, weights):
    """Write ML-Poly's weights (R)_+ / (M + sum r^2), scaled to the sum 1; equal if no R > 0."""
    totals, squares, tally = state
    count = totals.shape[0]
    total = 0.0
    for i in range(count):
        weights[i] = larger(totals[i], 0.0) / (larger(tally[PEAK], SMALLEST) + squares[i])
        total += weights[i]
    for i in range(count):
        weights[i] = weights[i] / total if total > 0.0 else 1.0 / count


@hot
def write_weights(kind, setting, played, state, weights):
    """Write the weights of the next round; arguments as in experts_rounds. weights : (experts,)."""
    if kind == ML_POLY:
        poly_weights(state, weights)
        return
    B = label_bound(setting, state)
    expert_weights(state[0], expert_rate(kind, B, played, state[0].shape[0]), weights)


@hot
def mean_forecast(kind, B, weights, row):
    """Return the weighted mean of the forecasts, clamped for AVERAGE. weights, row : (experts,)."""
    s = 0.0
    for i in range(row.shape[0]):
        value = row[i]
        if kind == AVERAGE:
            value = clamped(value, B)
        s += weights[i] * value
    return s


@hot
def aggregating_forecast(B, weights, row):
    """Return Vovk's forecast (g(-B) - g(B)) / (4 B). weights, row : (experts,).

    g(y) = -log(sum w exp(-eta (y - f)^2)) / eta, eta = 1 / (2 B^2), is the loss that the mixture
    guarantees (Vovk 1998). The nearest forecasts are taken out of the exponents, and squares are
    differenced as products: exact at large B.
    """
    lowest = np.inf
    highest = -np.inf
    for i in range(row.shape[0]):
        if weights[i] > 0.0:
            value = clamped(row[i], B)
            lowest = smaller(lowest, value)
            highest = larger(highest, value)
    sum_low = 0.0
    sum_high = 0.0
    for i in range(row.shape[0]):
        if weights[i] > 0.0:
            value = clamped(row[i], B)
            low = (value - lowest) / B * ((value + lowest) / B + 2.0)
            high = (highest - value) / B * (2.0 - (value + highest) / B)
            sum_low += weights[i] * math.exp(-0.5 * low)
            sum_high += weights[i] * math.exp(-0.5 * high)
    middle = 0.5 * (lowest + highest) * (1.0 + (lowest - highest) / (2.0 * B))
    forecast = middle + 0.5 * B * (math.log(sum_high) - math.log(sum_low))
    return clamped(forecast, B)


@hot
def expert_forecast(kind, B, weights, row):
    """Return the aggregate of the experts' forecasts. B : label_bound; weights, row : (experts,).

    0 before the first label that is not, where B is learned.
    """
    if kind == AGGREGATING:
        return aggregating_forecast(B, weights, row) if B > 0.0 else 0.0
    return mean_forecast(kind, B, weights, row)


@hot
def expert_forecasts(kind, B, weights, F, forecasts):
    """Write the aggregates of rows of forecasts. F : (n, experts); forecasts : (n,), written."""
    for t in range(F.shape[0]):
        forecasts[t] = expert_forecast(kind, B, weights, F[t])


@hot
def share_weights(share, eta, totals, weights):
    """Give w <- (1 - share) w + share / N (Herbster and Warmuth 1998) to exp(-eta total).

    Kept as totals = -log(w) / eta: no weight is lost, and those that were 0 come back.
    """
    count = totals.shape[0]
    expert_weights(totals, eta, weights)
    for i in range(count):
        totals[i] = -math.log((1.0 - share) * weights[i] + share / count) / eta


@hot
def learn_losses(kind, setting, played, state, weights, row, forecast, label):
    """Add a round's losses to the totals, then share. row : (experts,); weights : workspace.

    Where B is learned, the label counts as cut to the bound before it; theory.experts_bound says
    why. The next round's rate is that of the share: weights are taken to its power first.
    """
    loss, given, share = setting
    totals, _, tally = state
    count = totals.shape[0]
    B = label_bound(setting, state)
    unit = 1.0
    if kind == DYNAMIC:  # -log of the normal density, but for what is common to all
        least = larger(LEAST_VARIANCE * B * B, SMALLEST)
        unit = 0.5 / larger(tally[VARIANCE], least)
        tally[COUNT] = MEMORY * tally[COUNT] + 1.0
        square = (label - forecast) * (label - forecast)
        tally[VARIANCE] += (square - tally[VARIANCE]) / tally[COUNT]
    for i in range(count):
        if kind == HEDGE:
            totals[i] += loss_value(loss, row[i], label)
        else:
            totals[i] += unit * loss_value(loss, clamped(row[i], B), clamped(label, B))
    if given == LEARNED and abs(label) > B:
        tally[GROWN] += (abs(label) - B) * (abs(label) - B)
        tally[LARGEST] = abs(label)
        B = abs(label)
    if share > 0.0 and count > 1 and B > 0.0:
        share_weights(share, expert_rate(kind, B, played + 1, count), totals, weights)


@hot
def learn_regrets(setting, state, row, forecast, label):
    """Add a round's regrets r = l'(p) (p - f), p the forecast, and squares. row : (experts,).

    Returns whether all is finite. POTENTIAL bounds sum_i (R_i)_+^2 / (M + sum r_i^2): as
    theory.mlpoly_bound has it.
    """
    totals, squares, tally = state
    slope = loss_derivative(setting[0], forecast, label)
    before = larger(tally[PEAK], SMALLEST)
    for i in range(row.shape[0]):
        r = slope * (forecast - row[i])
        tally[PEAK] = larger(tally[PEAK], r * r)
    after = larger(tally[PEAK], SMALLEST)
    slow = 0.0
    fast = 0.0
    for i in range(row.shape[0]):
        r = slope * (forecast - row[i])
        slow += r * r / (before + squares[i])
        squares[i] += r * r
        fast += r * r / (after + squares[i])
        totals[i] += r
    jump = math.sqrt(tally[POTENTIAL]) + math.sqrt(fast)
    tally[POTENTIAL] = smaller(tally[POTENTIAL] + slow, jump * jump)
    return tally[PEAK] < np.inf


@hot
def poly_bound(state, i):
    """Return the bound of theory.mlpoly_bound on the regret against expert i so far."""
    _, squares, tally = state
    return math.sqrt((tally[PEAK] + squares[i]) * tally[POTENTIAL])


@hot
def experts_rounds(F, y, kind, setting, played, state, weights, out):
    """Aggregate the forecasts of experts, round by round.

    F : (n, experts); y : (n,); kind : code; setting : (code of the loss, B or LEARNED, share);
    played : rounds before; state : the arrays of EXPERT_STATE, in place; weights : (experts,),
    workspace; out : forecasts (n,), and bounds of the regret against expert 0 (n,), of ML-Poly
    only, written. Returns (rounds played, status).
    """
    forecasts, bounds = out
    for t in range(y.shape[0]):
        write_weights(kind, setting, played + t, state, weights)
        forecast = expert_forecast(kind, label_bound(setting, state), weights, F[t])
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        if kind != ML_POLY:
            learn_losses(kind, setting, played + t, state, weights, F[t], forecast, y[t])
        elif not learn_regrets(setting, state, F[t], forecast, y[t]):
            return t, NOT_FINITE
        else:
            bounds[t] = poly_bound(state, 0)
    return y.shape[0], DONE
