"""Rounds of SelfTuning's layers: one forecast of those of all members, for one output.

The labels y_t and the forecasts f_t,i of N members, the last one the label before, count from the
centre of the labels' range:

    for t = 1, ..., n:
        B_t = max_{s<t} |y_s|;   f_t,i is cut to [-B_t, B_t]
        g_t,j = aggregate j of the f_t,i                         # experts.py: the first layer
        z_t = (f_t,1, ..., f_t,N-1, g_t,1, ..., g_t,4, 0) - f_t,N, in units of B_t
        v_t = (y_t cut to [-B_t, B_t] - f_t,N) / B_t
        h_t,j = ridge regression j of v on z                     # self_tuning.py: ridge_rounds
        yhat_t = ML-Poly's mean of two g_t,j and of f_t,N + B_t h_t,j, cut to [-B_t, B_t]
"""

import math

import numpy as np

from oklnumba.hot.experts import (
    GROWN,
    LARGEST,
    LEARNED,
    ML_POLY,
    clip,
    expert_forecast,
    experts_rounds,
    write_weights,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import DONE, hot
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.self_tuning import ridge_forecasts, ridge_rounds


@hot
def write_differences(f, first, t, B, z):
    """Write z_t; B is infinite where all labels so far were 0."""
    last = f.shape[0] - 1
    for i in range(last):
        z[i] = (f[i] - f[last]) / B
    for j in range(first.shape[0]):
        z[last + j] = (first[j, t] - f[last]) / B
    z[last + first.shape[0]] = -f[last] / B


@hot
def write_top(f, first, stacked, t, B, top, p):
    """Write the forecasts that are weighed at last; top : which of the first layer."""
    for j in range(top.shape[0]):
        p[j] = first[top[j], t]
    for j in range(p.shape[0] - top.shape[0]):
        p[top.shape[0] + j] = clip(f[f.shape[0] - 1] + B * stacked[2 * j, t, 0], B)


@hot
def first_layer_rounds(F, Y, k, centre, aggregations, weights, out):
    """Play the first layer, and write inputs and labels of the regressions.

    F : (n, N), forecasts of the members, which are centred and cut; Y : (n, K), k : whose output;
    aggregations : codes and shares (4,), and their states as in experts_rounds, one a row; weights
    : (N,), workspace; out : first (4, >= n), Z (>= n, >= N + 4), targets v (>= n, 1), labels (>=
    n,), bounds B (> n,), excess (>= n,), what the first aggregation may lose against the best
    member (theory.experts_bound).
    """
    kinds, shares, totals, squares, tally = aggregations
    first, Z, targets, labels, bounds, excess = out
    n, count = F.shape
    bounds[0], grown = tally[0, LARGEST], tally[0, GROWN]
    for t in range(n):
        labels[t] = Y[t, k] - centre
        bounds[t + 1] = larger(bounds[t], abs(labels[t]))
        for i in range(count):
            F[t, i] = clip(F[t, i] - centre, bounds[t])
    for j in range(kinds.shape[0]):
        played, status = experts_rounds(
            F, labels, kinds[j], (SQUARED, LEARNED, shares[j]), 0,
            (totals[j], squares[j], tally[j]), weights, (first[j], excess),
        )  # fmt: skip
        if status != DONE:
            return played, status
    for t in range(n):
        B, following = bounds[t], bounds[t + 1]
        unit = B if B > 0.0 else np.inf
        write_differences(F[t], first, t, unit, Z[t])
        targets[t, 0] = (clip(labels[t], B) - F[t, count - 1]) / unit
        grown += (following - B) * (following - B)
        excess[t] = 2.0 * following * following * (math.log(count) + 1.0) - grown
    return n, DONE


@hot
def second_layer_rounds(F, k, middle, first, stacked, proofs, learned, top, sums, work, out):
    """Play the second layer, and write what rounds leave behind.

    F, first : as first_layer_rounds left them; middle : what all count from; stacked : (2 M, >= n,
    1), ridge and AWV forecasts of the M regressions in turn; proofs : (N', 3, n, K), loss,
    comparator and bound of the members with a certificate; learned : labels, bounds and excess of
    first_layer_rounds; top : which of the first layer are weighed, and the state of ML-Poly; sums :
    squared losses of the forecasts (K,) and of the members (K, N), what the forecasts lost more
    before (K,), the bound of aggregations that ended and with those of now (K, 2), the certified
    member with the least comparator (K,); work : P (>= n, all that is weighed), weights (as many),
    forecasts and bounds (>= n,); out : forecasts, loss, comparator, bound, guaranteed, (n, K).
    """
    labels, bounds, excess = learned
    chosen, state = top
    loss, losses, before, ended, best = sums
    P, weights, forecasts, regrets = work
    predictions, own_loss, comparator, bound, guaranteed = out
    n, count = F.shape
    for t in range(n):
        write_top(F[t], first, stacked, t, bounds[t], chosen, P[t])
    played, status = experts_rounds(
        P[:n], labels, ML_POLY, (SQUARED, LEARNED, 0.0), 0, state, weights,
        (forecasts, regrets),
    )  # fmt: skip
    if status != DONE:
        return played, status
    for t in range(n):
        y, p = labels[t], forecasts[t]
        predictions[t, k] = p + middle
        loss[k] += (p - y) * (p - y)
        for i in range(count):
            losses[k, i] += (F[t, i] - y) * (F[t, i] - y)
        own_loss[t, k] = loss[k] + before[k]
        ended[k, 1] = ended[k, 0] + excess[t] + regrets[t]
        lost, least, sum_of_both, which = ended[k, 1] + before[k], np.inf, np.inf, 0
        for i in range(proofs.shape[0]):
            found, allowed = proofs[i, 1, t, k], proofs[i, 2, t, k]
            if found < least:
                least, which = found, i
            sum_of_both = smaller(sum_of_both, found + (allowed + lost))
        best[k] = which
        comparator[t, k], bound[t, k] = least, proofs[which, 2, t, k] + lost
        guaranteed[t, k] = sum_of_both
    return n, DONE


@hot
def layer_rounds(F, Y, k, middles, aggregations, ridges, top, proofs, sums, room, out):
    """Play n rounds of output k, whose regressions are those of "leaf" k.

    middles : of the range that sets rates, of the labels less their offset and of those that come;
    room : widths (>= n,), of Z; weights, and ``out``, of first_layer_rounds; forecasts, shrinks,
    growth and proofs of ridge_rounds; ``work`` of second_layer_rounds. Others as there.
    """
    widths, weights, sides, stacked, work = room
    first, Z, targets, labels, bounds, excess = sides
    n, r = Y.shape[0], Z.shape[1]
    played, status = first_layer_rounds(F, Y, k, middles[0], aggregations, weights, sides)
    if status == DONE:
        played, status = ridge_rounds(Z, widths, targets, (0, n), r, ridges, k, stacked)
    if status == DONE:
        played, status = second_layer_rounds(
            F, k, middles[1], first, stacked[0], proofs, (labels, bounds, excess), top, sums, work,
            out,
        )  # fmt: skip
    return played, status


@hot
def first_layer_forecasts(F, centre, aggregations, weights, out):
    """Write first and Z for single rounds; arguments as in first_layer_rounds."""
    kinds, shares, totals, squares, tally = aggregations
    first, Z = out
    B = tally[0, LARGEST]
    for t in range(F.shape[0]):
        for i in range(F.shape[1]):
            F[t, i] = clip(F[t, i] - centre, B)
    for j in range(kinds.shape[0]):
        state = totals[j], squares[j], tally[j]
        write_weights(kinds[j], (SQUARED, LEARNED, shares[j]), 0, state, weights)
        for t in range(F.shape[0]):
            first[j, t] = expert_forecast(kinds[j], B, weights, F[t])
    for t in range(F.shape[0]):
        write_differences(F[t], first, t, B if B > 0.0 else np.inf, Z[t])


@hot
def second_layer_forecasts(F, k, B, middle, first, stacked, top, work, forecasts):
    """Write the forecasts of single rounds, (n, K); arguments as in second_layer_rounds."""
    chosen, state = top
    P, weights = work
    write_weights(ML_POLY, (SQUARED, LEARNED, 0.0), 0, state, weights)
    for t in range(F.shape[0]):
        write_top(F[t], first, stacked, t, B, chosen, P[t])
        forecasts[t, k] = expert_forecast(ML_POLY, 0.0, weights, P[t]) + middle


@hot
def layer_forecasts(F, k, middles, aggregations, ridges, top, room, out):
    """Write what layer_rounds would forecast of output k, for rows of F; arguments as there."""
    widths, weights, sides, stacked, work = room
    first, Z, _, _, _, _ = sides
    first_layer_forecasts(F, middles[0], aggregations, weights, (first, Z))
    ridge_forecasts(Z, widths, (0, F.shape[0]), ridges, k, stacked)
    B = aggregations[4][0, LARGEST]
    second_layer_forecasts(F, k, B, middles[1], first, stacked[0], top, (work[0], work[1]), out)
