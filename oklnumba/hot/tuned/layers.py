"""Rounds of SelfTuning's layers: one forecast of the forecasts of all members, for each output.

The labels y_t and the forecasts f_t,i of N members, of which the last is the label before, count
from the offset and the centre of the labels' range, 0 at first. ``Layers.end_period`` may take the
range of recent labels instead, and half its width for B:

    for t = 1, ..., n:
        B_t = max(B_{t-1}, |y_{t-1}|), B_1 = 0;   f_t,i is cut to [-B_t, B_t]
        first layer: g_t,j = aggregate j = 1, ..., 4 of the f_t,i          # hot/experts.py
        regressions: z_t = (f_t,1, ..., f_t,N-1, g_t,1, ..., g_t,4, 0) - f_t,N, in units of B_t
            v_t = (y_t cut to [-B_t, B_t] - f_t,N) / B_t
            h_t,j = f_t,N + B_t (ridge regression j of v on z), cut        # regression_rounds
        corrections: e_t = y_t cut to [-B_t, B_t] - h_t,1
            z_t = (h_t,1, h_t,2 - h_t,1, h_t,3 - h_t,1, all g_t,j - h_t,1) / B_t, and the cubes of
                  all h_t,j / B_t and g_t,j / B_t
            c_t,j = h_t,1 + B_t (ridge regression j of e / B on z), cut
        final layer: p_t = ML-Poly's mean of two g_t,j and of all h_t,j and c_t,j
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
    Aggregation,
    ExpertsState,
    experts_rounds,
)
from oklnumba.hot.primitives.elementary import clip, larger, smaller
from oklnumba.hot.primitives.factor import has_label
from oklnumba.hot.primitives.jit import DONE, UNBOUNDED, Array, Integers, exact, hot, unbind
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.primitives.udu import pad
from oklnumba.hot.tuned.space import Regressions, Rows, regression_rounds


class LayerState(NamedTuple):
    """The state of the layers, of K outputs, beside the regressions; as in experts.py."""

    totals: Annotated[Array, "outputs", "first", "members"]  # of the aggregations
    squares: Annotated[Array, "outputs", "first", "members"]
    tally: Annotated[Array, "outputs", "first", "tally"]
    final_totals: Annotated[Array, "outputs", "final"]
    final_squares: Annotated[Array, "outputs", "final"]
    final_tally: Annotated[Array, "outputs", "tally"]
    centre: Annotated[Array, "outputs"]  # of the range that sets rates
    # Bound on the regret of the aggregations, infinite once labels have come late.
    excess: Annotated[Array, "outputs", UNBOUNDED]
    ended_excess: Annotated[Array, "outputs", UNBOUNDED]  # the part before they last began anew
    loss: Annotated[Array, "outputs"]  # of the forecasts
    member_losses: Annotated[Array, "outputs", "members"]
    # What the forecasts of rounds replayed here lost more at the time than in the replay.
    replay_gap: Annotated[Array, "outputs"]
    best: Annotated[Integers, "outputs"]  # the certified member with the least comparator
    # Label of the present period, and of the one before.
    lowest: Annotated[Array, "outputs", "periods", UNBOUNDED]
    highest: Annotated[Array, "outputs", "periods", UNBOUNDED]


class LayerResults(NamedTuple):
    """What a block of n rounds gives, (n, K) each; with labels all, else predictions only."""

    predictions: Array
    loss: Array
    comparator: Array
    bound: Array
    guaranteed: Array


class LayerWork(NamedTuple):
    """Workspace of n rounds of one output."""

    F: Array  # (n, N): f
    weights: Array  # (N,)
    aggregates: Array  # (4, n): g
    labels: Array  # (n,): y
    B: Array  # (n + 1,)
    excess: Array  # (n,): bound on the regret of the first aggregation against the best member
    rows: Rows  # of the regressions: z
    Y: Array  # (n, 1): v
    final: Array  # (n, > 2): what ML-Poly weighs: two g, h, c
    final_weights: Array
    forecasts: Array  # (n,): p
    regrets: Array  # (n,): bound on ML-Poly's regret against the first aggregation


class Recalled(NamedTuple):
    """What was forecast when late rows were asked."""

    made: Array  # (n, stages first, K), NaN where unknown, or empty
    asked: Integers  # (n,): the row of this block that was its forecast, or -1; or empty


class LayerArguments(NamedTuple):
    """All that the loops take, but for workspace."""

    kinds: Array  # (4,): codes of the aggregations
    shares: Array  # (4,)
    stacks: int  # how many h there are; corrections come behind them
    chosen: Array  # (2,): aggregations that the final layer weighs
    forecasts: Array  # of all members, as in Results
    certificates: Array
    member_rows: Array  # (N,): of the members' forecasts in the results
    certified: Array  # regressions of the members that have a certificate
    state: LayerState
    stages: Array  # (rounds, 9, K): all g, h and c, as they are now
    regressions: Regressions  # of K outputs: each is a leaf


@hot
def keep_stage(t, j, k, forecast, B, layers, then):
    """Note what stage j forecasts now; return what it forecast when round t was asked, if known.

    That is cut to the present range, which may have shrunk since.
    """
    centre = layers.state.centre[k]
    layers.stages[t, j, k] = forecast + centre
    known = then.made[t, j, k] if t < then.made.shape[0] else np.nan
    if t < then.asked.shape[0] and then.asked[t] >= 0:
        known = layers.stages[then.asked[t], j, k]
    return clip(known - centre, B) if known == known else forecast  # known is not NaN


@hot
def write_differences(f, aggregates, t, B, z):
    """Write z_t; B is infinite where all labels so far were 0. Returns its length, padded."""
    last = f.shape[0] - 1
    for i in range(last):
        z[i] = (f[i] - f[last]) / B
    for j in range(aggregates.shape[0]):
        z[last + j] = (aggregates[j, t] - f[last]) / B
    z[last + aggregates.shape[0]] = -f[last] / B
    return pad(z, last + aggregates.shape[0] + 1)


@hot
def write_forecasts(t, k, some, base, B, regressed, layers, then, h_and_c):
    """Write what regressions, ``some`` first and stop, add to ``base``; h_and_c : of them all."""
    first, stop = some
    for j in range(first, stop):
        forecast = clip(base + B * regressed[2 * j, t, 0], B)  # ridge's; AWV's follows it, unused
        h_and_c[j] = keep_stage(t, layers.kinds.shape[0] + j, k, forecast, B, layers, then)


@hot
def write_correction_input(h, aggregates, t, B, z):
    """Write z_t of the corrections; return its length, padded."""
    count = h.shape[0] + aggregates.shape[0]
    for j in range(count):
        forecast = h[j] if j < h.shape[0] else aggregates[j - h.shape[0], t]
        scaled = forecast / B
        z[j] = (forecast - (h[0] if j > 0 else 0.0)) / B
        z[count + j] = scaled * scaled * scaled
    return pad(z, 2 * count)


@hot
def take_labels(n, Y, k, state, work):
    """Write labels, which count from the centre, NaN where one is missing, and bounds."""
    work.B[0] = state.tally[k, 0, LARGEST]
    for t in range(n):
        work.B[t + 1], work.labels[t] = work.B[t], np.nan
        if has_label(Y, t):
            state.lowest[k, 0] = smaller(state.lowest[k, 0], Y[t, k])
            state.highest[k, 0] = larger(state.highest[k, 0], Y[t, k])
            work.labels[t] = Y[t, k] - state.centre[k]
            work.B[t + 1] = larger(work.B[t], abs(work.labels[t]))


@hot
def first_layer_rounds(n, Y, learns, k, then, layers, work):
    """Play the first layer of output k, and write what the regressions play."""
    state, rows, y = layers.state, work.rows, work.labels
    F, last, grown = work.F[:n], work.F.shape[1] - 1, state.tally[k, 0, GROWN]
    take_labels(n, Y, k, state, work)
    for i in range(last + 1):  # the members' forecasts, from the centre, cut to [-B_t, B_t]
        row, centre = layers.forecasts[layers.member_rows[i]], state.centre[k]
        for t in range(n):
            F[t, i] = clip(row[t, k] - centre, work.B[t])
    for j in range(layers.kinds.shape[0]):
        rule = Aggregation(layers.kinds[j], SQUARED, LEARNED, layers.shares[j])
        experts = ExpertsState(state.totals[k, j], state.squares[k, j], state.tally[k, j])
        out = Aggregates(work.aggregates[j], work.excess)  # no bound of ML-Poly is used here
        # After 0 rounds: only the rate of HEDGE depends on it.
        played, status = experts_rounds(F, y, learns, rule, 0, experts, work.weights, out)
        if status != DONE:
            return played, status
    for t in range(n):
        B = work.B[t]
        for j in range(layers.kinds.shape[0]):
            work.aggregates[j, t] = keep_stage(t, j, k, work.aggregates[j, t], B, layers, then)
        unit = B if B > 0.0 else np.inf
        rows.widths[t] = write_differences(F[t], work.aggregates, t, unit, rows.Z[t])
        work.Y[t, 0] = (clip(y[t], B) - F[t, last]) / unit if y[t] == y[t] else np.nan
    for t in range(n if learns else 0):
        # The bound on the regret of the first aggregation: theory.experts_bound, B=None.
        B, new_B = work.B[t], work.B[t + 1]
        grown += (new_B - B) * (new_B - B)
        work.excess[t] = 2.0 * new_B * new_B * (math.log(last + 1) + 1.0) - grown
    return n, DONE


@hot
def prepare_corrections(n, k, then, layers, work):
    """Write the forecasts of the regressions of output k, and what the corrections play."""
    rows, regressed, chosen = work.rows, work.rows.forecasts, layers.chosen
    for t in range(n):
        row, B, last = work.final[t], work.B[t], work.F[t, work.F.shape[1] - 1]
        for j in range(chosen.shape[0]):
            row[j] = work.aggregates[chosen[j], t]
        h = row[chosen.shape[0] : chosen.shape[0] + layers.stacks]
        write_forecasts(t, k, (0, layers.stacks), last, B, regressed, layers, then, h)
        unit = B if B > 0.0 else np.inf
        rows.widths[t] = write_correction_input(h, work.aggregates, t, unit, rows.Z[t])
        y = work.labels[t]
        work.Y[t, 0] = (clip(y, B) - h[0]) / unit if y == y else np.nan


@hot
def certify_rounds(F, k, layers, work, out):
    """Write losses and certificates: the bound is the member's plus the bound of the layers."""
    state, y = layers.state, work.labels
    certificates = layers.certificates
    for t in range(F.shape[0]):
        if y[t] != y[t]:
            continue
        p = work.forecasts[t]
        state.loss[k] += (p - y[t]) * (p - y[t])
        for i in range(F.shape[1]):
            state.member_losses[k, i] += (F[t, i] - y[t]) * (F[t, i] - y[t])
        out.loss[t, k] = state.loss[k] + state.replay_gap[k]
        state.excess[k] = state.ended_excess[k] + work.excess[t] + work.regrets[t]
        lost = state.excess[k] + state.replay_gap[k]
        least, guaranteed, best = np.inf, np.inf, 0
        for j in range(layers.certified.shape[0]):
            i = layers.certified[j]
            comparator, bound = certificates[i, 1, t, k], certificates[i, 2, t, k]
            if comparator < least:
                least, best = comparator, j
            guaranteed = smaller(guaranteed, comparator + (bound + lost))
        state.best[k] = best
        out.comparator[t, k], out.guaranteed[t, k] = least, guaranteed
        out.bound[t, k] = certificates[layers.certified[best], 2, t, k] + lost


@hot
def final_layer_rounds(n, learns, k, offset, then, layers, work, out):
    """Play the final layer of output k; if it learns, write the certificate."""
    state = layers.state
    F, regressed = work.F[:n], work.rows.forecasts
    corrections = layers.stacks, layers.regressions.forgetting.shape[0]
    for t in range(n):
        row = work.final[t, layers.chosen.shape[0] :]
        write_forecasts(t, k, corrections, row[0], work.B[t], regressed, layers, then, row)
    rule = Aggregation(ML_POLY, SQUARED, LEARNED, 0.0)
    experts = ExpertsState(state.final_totals[k], state.final_squares[k], state.final_tally[k])
    written, weights = Aggregates(work.forecasts, work.regrets), work.final_weights
    played, status = experts_rounds(
        work.final[:n], work.labels, learns, rule, 0, experts, weights, written
    )
    if status != DONE:
        return played, status
    origin = state.centre[k] + offset
    for t in range(n):
        out.predictions[t, k] = work.forecasts[t] + origin
    if learns:
        certify_rounds(F, k, layers, work, out)
    return n, DONE


@hot
def layer_rounds(n, Y, k, offset, then, layers, out, work):
    """Play n rounds of output k: the layers, each on what the one before has written.

    Y : (n, K), less ``offset``, as in Seen; then : Recalled; layers, work : LayerArguments and
    LayerWork, bound; out : LayerResults, predictions count from 0, not from ``offset``.
    Returns the round that failed and a status.
    """
    learns, layers, work = Y.shape[0] > 0, unbind(layers), unbind(work)
    regressions, rows, r = layers.regressions, work.rows, work.rows.Z.shape[1]
    stacks, count = layers.stacks, layers.regressions.forgetting.shape[0]
    targets = work.Y[: n if learns else 0]
    played, status = first_layer_rounds(n, Y, learns, k, then, layers, work)
    for some in ((0, stacks), (stacks, count)):
        if status == DONE:
            played, status = regression_rounds(k, some, n, targets, r, regressions, rows)
        if status == DONE and some[0] == 0:
            prepare_corrections(n, k, then, layers, work)
    if status == DONE:
        played, status = final_layer_rounds(n, learns, k, offset, then, layers, work, out)
    return played, status


class ResidualState(NamedTuple):
    """The last step's state, of K outputs: ML-Poly's as in experts.py, the rest as above."""

    totals: Annotated[Array, "outputs", "experts"]
    squares: Annotated[Array, "outputs", "experts"]
    tally: Annotated[Array, "outputs", "tally"]
    loss: Annotated[Array, "outputs"]
    excess: Annotated[Array, "outputs"]  # bound on the regret against p
    ended_excess: Annotated[Array, "outputs"]


@exact
def write_residuals(Y, cut, plain, reach, residuals):
    """Write y - p, p in ``plain``, (n, 1, K), cut to [-reach, reach], (n or 1, K); NaN stays.

    0 of outliers: where Y, the labels learned, are not those that came, ``cut``.
    """
    for t in range(Y.shape[0]):
        most = reach[t if reach.shape[0] > 1 else 0]
        for k in range(Y.shape[1]):
            residual = clip(Y[t, k] - plain[t, 0, k], most[k])
            if Y[t, k] != Y[t, k]:
                residual = np.nan
            elif Y[t, k] != cut[t, k]:
                residual = 0.0
            residuals[t, k] = residual + 0.0  # a block may have -0.0, where a row has 0


@hot
def mix_rounds(F, Y, k, arguments, out):
    """Let ML-Poly of output k weigh the forecasts F, (n, E), the first of them p; amend ``out``.

    Y : (n, K), as in Seen; arguments : ResidualState and workspace, bound: weights, (>= E,),
    labels and Aggregates, (>= n,). Returns the round that failed and a status.
    """
    state, weights, y, new = unbind(arguments)
    n, count, learns = F.shape[0], F.shape[1], Y.shape[0] > 0
    experts = ExpertsState(state.totals[k, :count], state.squares[k, :count], state.tally[k])
    for t in range(n if learns else 0):
        y[t] = Y[t, k]
    played, status = experts_rounds(
        F, y, learns, Aggregation(ML_POLY, SQUARED, LEARNED, 0.0), 0, experts, weights, new
    )
    if status != DONE:
        return played, status
    for t in range(n):
        out.predictions[t, k] = new.forecasts[t]
        if has_label(Y, t):
            out.loss[t, k] = (new.forecasts[t] - y[t]) * (new.forecasts[t] - y[t])
            state.excess[k] = state.ended_excess[k] + new.bounds[t]
            out.bound[t, k] += state.excess[k]
            out.guaranteed[t, k] += state.excess[k]
        elif learns:
            out.loss[t, k] = 0.0
    for t in range(n if learns else 0):
        state.loss[k] += out.loss[t, k]
        out.loss[t, k] = state.loss[k]
    return n, DONE
