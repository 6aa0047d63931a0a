"""Rounds of learners that aggregate experts: exponential weights, fixed share, and ML-Poly.

Experts i = 1, ..., N forecast f_i,t; L_i and R_i start at 0, and l is the loss:

    w_i = exp(-eta L_i) / sum_j exp(-eta L_j)                # oco Example 6.1, errata 47
    yhat_t = sum_i w_i f_i,t;   L_i = L_i + l(f_i,t, y_t)    # f and y cut to [-B, B]
    fixed share (Herbster and Warmuth 1998), after the losses, at the next round's eta:
        w_i = (1 - s) w_i + s / N, put back into L_i
    ML-Poly (Gaillard, Stoltz and van Erven 2014): w_i ~ (R_i)_+ / (max r^2 + sum_t r_i,t^2),
        r_i,t = l'(yhat_t) (yhat_t - f_i,t);   R_i = R_i + r_i,t

AGGREGATING forecasts [g(-B) - g(B)] / (4 B) with g(y) = -log(sum_i w_i exp(-eta (y - f_i)^2)) / eta
and eta = 1 / (2 B^2) (Vovk 1998); AVERAGE has eta = 1 / (8 B^2), HEDGE eta = sqrt(8 log N / t) / B.
DYNAMIC (dynamic model averaging) has eta = 1 and the loss (f - y)^2 / (2 v), -log of a normal
density; v, at least B^2 / 10,000, is the discounted mean of (yhat - y)^2 before the round, y not
cut. A learned B is the largest |y| before the round.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import clip, larger, smaller
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, Array, hot, hot_apart
from oklnumba.hot.primitives.linalg import entropy_map
from oklnumba.hot.primitives.losses import loss_derivative, loss_value

AGGREGATING, AVERAGE, HEDGE, ML_POLY, DYNAMIC = range(5)
MEMORY = 2.0 ** (-1.0 / 100.0)  # of DYNAMIC's variance: a half-life of 100 rounds
LEAST_VARIANCE = 1e-4  # times B^2
LEARNED = 0.0  # a rule's B if B is the largest |y| so far
SMALLEST = 1e-300  # a floor under B^2 and max r^2, so that rates stay finite

# Entries of the tally. Largest |y| so far, sum of its squared increases (both 0 if B is given);
# ML-Poly: largest r^2, bound on its potential; DYNAMIC: variance, discounted number of its rounds.
LARGEST, GROWN, PEAK, POTENTIAL = range(4)
VARIANCE, COUNT = PEAK, POTENTIAL
TALLY = 4


class ExpertsState(NamedTuple):
    """Sums over the rounds, of N experts."""

    # Losses L so far; with a share or DYNAMIC (eta 1) -log(weight) / eta; ML-Poly: regrets R.
    totals: Annotated[Array, "experts"]
    squares: Annotated[Array, "experts"]  # ML-Poly: sums of squared regrets of the rounds; else 0
    tally: Annotated[Array, "tally"]  # entries above


class Aggregation(NamedTuple):
    """How the experts are aggregated."""

    kind: int  # AGGREGATING, ...
    loss: int  # code
    B: float  # bound on |y|, on the loss (HEDGE), or LEARNED
    share: float  # s


class Aggregates(NamedTuple):
    """What each round writes, (n,) or longer."""

    forecasts: Array
    bounds: Array  # ML-Poly: on the regret against expert 0


@hot
def label_bound(rule, state):
    """Return the bound on |y| in the next round: B as given, or the largest |y| so far."""
    return state.tally[LARGEST] if rule.B == LEARNED else rule.B


@hot
def expert_rate(kind, B, played, count):
    """Return the learning rate eta of the next round."""
    if kind == AGGREGATING:  # the squared loss on [-B, B] is mixable (Vovk 1998)
        return 1.0 / (2.0 * larger(B * B, SMALLEST))
    if kind == AVERAGE:  # and exp-concave (oco Lemma 5)
        return 1.0 / (8.0 * larger(B * B, SMALLEST))
    if kind == DYNAMIC:
        return 1.0
    return math.sqrt(8.0 * math.log(count) / (played + 1.0)) / B


@hot
def write_weights(rule, played, state, weights):
    """Write the weights of the next round, (N,), after ``played`` rounds."""
    totals, count = state.totals, state.totals.shape[0]
    if rule.kind != ML_POLY:
        eta = expert_rate(rule.kind, label_bound(rule, state), played, count)
        entropy_map(totals, eta, 1.0, weights, count)  # w_i ~ exp(-eta L_i), of sum 1
        return
    peak, total = larger(state.tally[PEAK], SMALLEST), 0.0
    for i in range(count):  # (R)_+ / (max r^2 + sum r^2), scaled to sum 1; equal if no R > 0
        weights[i] = larger(totals[i], 0.0) / (peak + state.squares[i])
        total += weights[i]
    for i in range(count):
        weights[i] = weights[i] / total if total > 0.0 else 1.0 / count


@hot
def aggregating_forecast(B, weights, f):
    """Return Vovk's forecast (g(-B) - g(B)) / (4 B) of the forecasts f : (N,).

    The nearest forecasts are taken out of the exponents, and differences of squares written as
    products, so large B costs no digits.
    """
    lowest, highest = np.inf, -np.inf
    for i in range(f.shape[0]):
        if weights[i] > 0.0:
            value = clip(f[i], B)
            lowest, highest = smaller(lowest, value), larger(highest, value)
    sum_low = sum_high = 0.0
    for i in range(f.shape[0]):
        if weights[i] > 0.0:
            value = clip(f[i], B)
            low = (value - lowest) / B * ((value + lowest) / B + 2.0)
            high = (highest - value) / B * (2.0 - (value + highest) / B)
            sum_low += weights[i] * math.exp(-0.5 * low)
            sum_high += weights[i] * math.exp(-0.5 * high)
    middle = 0.5 * (lowest + highest) * (1.0 + (lowest - highest) / (2.0 * B))
    return clip(middle + 0.5 * B * (math.log(sum_high) - math.log(sum_low)), B)


@hot
def expert_forecast(kind, B, weights, f):
    """Return the aggregate of the experts' forecasts; 0 if B is learned and all labels were 0."""
    if kind == AGGREGATING:
        return aggregating_forecast(B, weights, f) if B > 0.0 else 0.0
    s = 0.0
    for i in range(f.shape[0]):
        s += weights[i] * (clip(f[i], B) if kind == AVERAGE else f[i])
    return s


@hot
def share_weights(share, eta, totals, weights):
    """Give exp(-eta total) the fixed share: w = (1 - share) w + share / N.

    It is stored as totals = -log(w) / eta, so a weight that underflowed to 0 comes back.
    """
    count = totals.shape[0]
    entropy_map(totals, eta, 1.0, weights, count)
    for i in range(count):
        totals[i] = -math.log((1.0 - share) * weights[i] + share / count) / eta


@hot
def update_variance(tally, B, forecast, label):
    """Update DYNAMIC's variance; return the factor of its loss, with the variance before.

    The loss is -log of the normal density, up to a term common to all experts.
    """
    factor = 0.5 / larger(tally[VARIANCE], larger(LEAST_VARIANCE * B * B, SMALLEST))
    tally[COUNT] = MEMORY * tally[COUNT] + 1.0
    square = (label - forecast) * (label - forecast)
    tally[VARIANCE] += (square - tally[VARIANCE]) / tally[COUNT]
    return factor


@hot
def learn_losses(rule, played, state, weights, f, forecast, label):
    """Add a round's losses to the totals, then share; ``weights`` is workspace.

    If B is learned, the label is cut to the bound before it (theory.experts_bound says why), and
    the share uses the next round's rate.
    """
    totals, tally, count = state.totals, state.tally, state.totals.shape[0]
    kind, B, factor = rule.kind, label_bound(rule, state), 1.0
    if kind == DYNAMIC:
        factor = update_variance(tally, B, forecast, label)
    for i in range(count):
        if kind == HEDGE:
            totals[i] += loss_value(rule.loss, f[i], label)
        else:
            totals[i] += factor * loss_value(rule.loss, clip(f[i], B), clip(label, B))
    if rule.B == LEARNED and abs(label) > B:
        tally[GROWN] += (abs(label) - B) * (abs(label) - B)
        tally[LARGEST] = abs(label)
        B = abs(label)
    if rule.share > 0.0 and count > 1 and B > 0.0:
        share_weights(rule.share, expert_rate(kind, B, played + 1, count), totals, weights)


@hot
def learn_regrets(loss, state, f, forecast, label):
    """Add a round's regrets r = l'(yhat) (yhat - f), and squares; return whether all is finite.

    POTENTIAL bounds sum_i (R_i)_+^2 / (max r^2 + sum r_i^2), as theory.mlpoly_bound derives.
    """
    squares, tally = state.squares, state.tally
    slope = loss_derivative(loss, forecast, label)
    before = larger(tally[PEAK], SMALLEST)
    for i in range(f.shape[0]):
        r = slope * (forecast - f[i])
        tally[PEAK] = larger(tally[PEAK], r * r)
    after = larger(tally[PEAK], SMALLEST)
    slow = fast = 0.0
    for i in range(f.shape[0]):
        r = slope * (forecast - f[i])
        slow += r * r / (before + squares[i])
        squares[i] += r * r
        fast += r * r / (after + squares[i])
        state.totals[i] += r
    jump = math.sqrt(tally[POTENTIAL]) + math.sqrt(fast)
    tally[POTENTIAL] = smaller(tally[POTENTIAL] + slow, jump * jump)
    return tally[PEAK] < np.inf


@hot
def regret_bound(state, i):
    """Return ML-Poly's bound on the regret against expert i."""
    return math.sqrt((state.tally[PEAK] + state.squares[i]) * state.tally[POTENTIAL])


@hot_apart
def experts_rounds(F, y, learns, rule, played, state, weights, out):
    """Aggregate the forecasts of experts, round by round, after ``played`` rounds.

    F : (n, N); y : (n,) or longer, NaN in rows that are only forecast; learns : else all are, and y
    is not read; weights : (N,), workspace.
    """
    n = F.shape[0]
    for t in range(n):
        write_weights(rule, played + t, state, weights)
        forecast = expert_forecast(rule.kind, label_bound(rule, state), weights, F[t])
        out.forecasts[t] = forecast
        if not learns or y[t] != y[t]:
            continue
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        if rule.kind != ML_POLY:
            learn_losses(rule, played + t, state, weights, F[t], forecast, y[t])
        elif not learn_regrets(rule.loss, state, F[t], forecast, y[t]):
            return t, NOT_FINITE
        else:
            out.bounds[t] = regret_bound(state, 0)
    return n, DONE
