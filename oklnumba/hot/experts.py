"""Aggregation of experts, round by round."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.first_order import entropy_map
from oklnumba.hot.jit import DONE, NOT_FINITE, hot
from oklnumba.hot.losses import loss_value

AGGREGATING = 0
AVERAGE = 1
HEDGE = 2


@hot
def clamped(forecast, B):
    """Return the value in [-B, B] next to a forecast."""
    return max(-B, min(B, forecast))


@hot
def expert_weights(totals, eta, weights):
    """Write exp(-eta total) for each expert, scaled to the sum 1 (oco Example 6.1, errata 47)."""
    entropy_map(totals, eta, 1.0, weights, totals.shape[0])


@hot
def expert_rate(kind, B, played, count):
    """Return the learning rate of the next round."""
    if kind == AGGREGATING:  # the squared loss on [-B, B] mixes (Vovk 1998)
        return 1.0 / (2.0 * B * B)
    if kind == AVERAGE:  # and is exp-concave (oco Lemma 5)
        return 1.0 / (8.0 * B * B)
    return math.sqrt(8.0 * math.log(count) / (played + 1.0)) / B


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
            lowest = min(lowest, value)
            highest = max(highest, value)
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
    """Return the aggregate of the experts' forecasts. weights, row : (experts,)."""
    if kind == AGGREGATING:
        return aggregating_forecast(B, weights, row)
    return mean_forecast(kind, B, weights, row)


@hot
def experts_rounds(F, y, kind, B, loss, played, totals, weights, forecasts):
    """Aggregate the forecasts of experts, round by round.

    F : (n, experts); y : (n,); kind, loss : codes; B : bound; played : rounds before; totals :
    (experts,), their losses so far, in place; weights : (experts,), workspace; forecasts : (n,),
    written. Returns (rounds played, status).
    """
    count = totals.shape[0]
    for t in range(y.shape[0]):
        eta = expert_rate(kind, B, played + t, count)
        expert_weights(totals, eta, weights)
        forecast = expert_forecast(kind, B, weights, F[t])
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        for i in range(count):
            value = F[t, i] if kind == HEDGE else clamped(F[t, i], B)
            totals[i] += loss_value(loss, value, y[t])
    return y.shape[0], DONE
