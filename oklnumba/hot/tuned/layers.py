"""Rounds of SelfTuning's layers: one forecast of the forecasts of all members, for each output.

The labels y_t and the forecasts f_t,i of N members, of which the last is the label before, count
from the centre of the labels' range:

    for t = 1, ..., n:
        B_t = max_{s<t} |y_s|;   f_t,i is cut to [-B_t, B_t]
        g_t,j = aggregate j of the f_t,i                         # experts.py: the first layer
        z_t = (f_t,1, ..., f_t,N-1, g_t,1, ..., g_t,4, 0) - f_t,N, in units of B_t
        v_t = (y_t cut to [-B_t, B_t] - f_t,N) / B_t
        h_t,j = ridge regression j of v on z                     # members.py: ridge_rounds
        yhat_t = ML-Poly's mean of two g_t,j and of f_t,N + B_t h_t,j, cut to [-B_t, B_t]
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.experts import (
    GROWN,
    LARGEST,
    LEARNED,
    ML_POLY,
    Aggregates,
    ExpertsState,
    Rule,
    clip,
    expert_forecast,
    experts_rounds,
    write_weights,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import DONE, Array, hot
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.tuned.coordinates import Rows
from oklnumba.hot.tuned.members import Results

ENDED, NOW = range(2)  # entries of excess: of aggregations that have ended, and with today's


class LayerState(NamedTuple):
    """The state of the layers, of K outputs, beside the regressions; as in experts.py."""

    totals: Annotated[Array, "outputs", "first", "experts"]  # of the aggregations
    squares: Annotated[Array, "outputs", "first", "experts"]
    tally: Annotated[Array, "outputs", "first", "tally"]
    final_totals: Annotated[Array, "outputs", "final"]
    final_squares: Annotated[Array, "outputs", "final"]
    final_tally: Annotated[Array, "outputs", "tally"]
    centre: Annotated[Array, "outputs"]  # of the range that sets rates
    excess: Annotated[Array, "outputs", "epochs"]  # bound on the regret of the aggregations
    loss: Annotated[Array, "outputs"]  # of the forecasts
    losses: Annotated[Array, "outputs", "experts"]  # of the members
    replay_correction: Annotated[Array, "outputs"]  # what the forecasts lost more than the replay
    best: Annotated[Array, "outputs"]  # the certified member with the least comparator


class LayerWork(NamedTuple):
    """Workspace of n rounds of one output."""

    weights: Array  # (N,)
    first: Array  # (4, n): g
    labels: Array  # (n,): y
    bounds: Array  # (n + 1,): B
    excess: Array  # (n,): bound on the regret of the first aggregation against the best member
    rows: Rows  # of the regressions: z, v; each output is a leaf
    stacks: Results  # of the regressions: h
    final: Array  # (n, > 2): what ML-Poly weighs
    final_weights: Array
    forecasts: Array  # (n,): yhat
    regrets: Array  # (n,): bound on ML-Poly's regret against the first aggregation


class Layers(NamedTuple):
    """All that the loops take, but for the regressions."""

    kinds: Array  # (4,): codes of the aggregations
    shares: Array  # (4,)
    chosen: Array  # (2,): aggregations that the final layer weighs
    certified: Array  # regressions of the members that have a certificate
    state: LayerState
    work: LayerWork


@hot
def first_state(state, k, j):
    """Return the state of aggregation j of output k."""
    return ExpertsState(state.totals[k, j], state.squares[k, j], state.tally[k, j])


@hot
def final_state(state, k):
    """Return the state of the final layer of output k."""
    return ExpertsState(state.final_totals[k], state.final_squares[k], state.final_tally[k])


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
def write_final(f, first, chosen, h, t, B, row):
    """Write what ML-Poly weighs at last, in round t."""
    for j in range(chosen.shape[0]):
        row[j] = first[chosen[j], t]
    for j in range(row.shape[0] - chosen.shape[0]):
        row[chosen.shape[0] + j] = clip(f[f.shape[0] - 1] + B * h[2 * j, t, 0], B)


@hot
def aggregate(F, y, learns, B, kind, share, state, weights, out):
    """Aggregate rows of forecasts by experts_rounds; or only forecast, with the present weights."""
    rule = Rule(kind, SQUARED, LEARNED, share)
    if learns:
        return experts_rounds(F, y, rule, 0, state, weights, out)
    write_weights(rule, 0, state, weights)
    for t in range(F.shape[0]):
        out.forecasts[t] = expert_forecast(kind, B, weights, F[t])
    return F.shape[0], DONE


@hot
def centre_and_cut(F, y, learns, centre, bounds):
    """Let labels and forecasts count from the centre; cut forecasts to [-B_t, B_t]."""
    for t in range(F.shape[0]):
        bounds[t + 1] = bounds[t]
        if learns:
            y[t] -= centre
            bounds[t + 1] = larger(bounds[t], abs(y[t]))
        for i in range(F.shape[1]):
            F[t, i] = clip(F[t, i] - centre, bounds[t])


@hot
def first_layer_rounds(F, Y, learns, k, layers):
    """Play the first layer of output k, and write what the regressions play.

    F : (n, N), forecasts of the members, changed; Y : (n, K), less their offsets; learns : else the
    rounds are only forecast. Returns the round that failed and a status.
    """
    state, work, rows, y = layers.state, layers.work, layers.work.rows, layers.work.labels
    n, count, tally = F.shape[0], F.shape[1], state.tally[k, 0]
    if learns:
        for t in range(n):
            y[t] = Y[t, k]
    rows.ends[k], grown, work.bounds[0] = n, tally[GROWN], tally[LARGEST]
    centre_and_cut(F, y, learns, state.centre[k], work.bounds)
    for j in range(layers.kinds.shape[0]):
        played, status = aggregate(
            F, y, learns, tally[LARGEST], layers.kinds[j], layers.shares[j],
            first_state(state, k, j), work.weights, Aggregates(work.first[j], work.excess),
        )  # fmt: skip
        if status != DONE:
            return played, status
    B = tally[LARGEST]
    for t in range(n):
        if learns:
            B = work.bounds[t]
        unit = B if B > 0.0 else np.inf
        write_differences(F[t], work.first, t, unit, rows.Z[t])
        if learns:
            new_B = work.bounds[t + 1]
            rows.Y[t, 0] = (clip(y[t], B) - F[t, count - 1]) / unit
            grown += (new_B - B) * (new_B - B)
            work.excess[t] = 2.0 * new_B * new_B * (math.log(count) + 1.0) - grown
    return n, DONE


@hot
def certify_rounds(F, k, certificates, layers, trace):
    """Write losses and certificates: the bound is the member's plus the bound of the layers."""
    state, work, y = layers.state, layers.work, layers.work.labels
    for t in range(F.shape[0]):
        p = work.forecasts[t]
        state.loss[k] += (p - y[t]) * (p - y[t])
        for i in range(F.shape[1]):
            state.losses[k, i] += (F[t, i] - y[t]) * (F[t, i] - y[t])
        trace.loss[t, k] = state.loss[k] + state.replay_correction[k]
        state.excess[k, NOW] = state.excess[k, ENDED] + work.excess[t] + work.regrets[t]
        lost = state.excess[k, NOW] + state.replay_correction[k]
        least, guaranteed, best = np.inf, np.inf, 0
        for j in range(layers.certified.shape[0]):
            i = layers.certified[j]
            comparator, bound = certificates[i, 1, t, k], certificates[i, 2, t, k]
            if comparator < least:
                least, best = comparator, j
            guaranteed = smaller(guaranteed, comparator + (bound + lost))
        state.best[k] = best
        trace.comparator[t, k], trace.bound[t, k] = (
            least,
            certificates[layers.certified[best], 2, t, k] + lost,
        )
        trace.guaranteed[t, k] = guaranteed


@hot
def final_layer_rounds(F, learns, k, offset, certificates, layers, trace):
    """Play the final layer, as first_layer_rounds; if it learns, write the certificate.

    certificates : (> N', 3, n, K), loss, comparator and bound of the members; trace : (n, K) each,
    predictions count from 0, not from ``offset``.
    """
    n, state, work = F.shape[0], layers.state, layers.work
    for t in range(n):
        row = work.final[t]
        write_final(F[t], work.first, layers.chosen, work.stacks.forecasts, t, work.bounds[t], row)
    played, status = aggregate(
        work.final[:n], work.labels, learns, 0.0, ML_POLY, 0.0, final_state(state, k),
        work.final_weights, Aggregates(work.forecasts, work.regrets),
    )  # fmt: skip
    if status != DONE:
        return played, status
    middle = state.centre[k] + offset
    for t in range(n):
        trace.predictions[t, k] = work.forecasts[t] + middle
    if learns:
        certify_rounds(F, k, certificates, layers, trace)
    return n, DONE
