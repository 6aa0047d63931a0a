"""Rounds of Pros-N-KONS and CON-KONS: the Newton step in the span of a growing dictionary.

Calandriello, Lazaric and Valko 2017 (NIPS), Algorithm 1:

    I = {}, w = 0, A = alpha I; for t = 1, ..., T:
        KORS looks at x_t and tosses a coin, or ALD measures its distance; if it keeps x_t:
            I = I + {x_t}; K_I = U S^2 U' gives a new map phi(x) = S^-1 U' k_I(x)
            w = 0, A = alpha I                # CON-KONS carries w and A over to the new map
        w = w - A^-1 phi_t h(phi_t.w) / (phi_t' A^-1 phi_t),   h(z) = sign(z) max(|z| - C, 0)
        yhat_t = phi_t.w;   g_t = l'(yhat_t) phi_t
        A = A + (eta / 2) g_t g_t';   w = w - A^-1 g_t

Our map is q(x) = R^-T k_I(x) with K_I = R'R, a rotation of the paper's. Larger dictionaries only
append coordinates, so CON-KONS carries w and A over unchanged.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.newton import newton_round
from oklnumba.hot.primitives.dictionary import (
    IN_SPAN,
    RANK,
    Dictionary,
    JoiningRule,
    adds_direction,
    extend_span,
    joining_probability,
    keep_point,
    solve_coordinates,
    squared_distance,
)
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    UPPER,
    Array,
    hot,
)
from oklnumba.hot.primitives.linalg import dot, solve_upper_transposed
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row
from oklnumba.hot.primitives.udu import pad

RESTARTS = 2  # entry of the counts after ATOMS and RANK


class Factor(NamedTuple):
    """A = U' D U and w = U^-1 c on the span, as in newton.py; A = alpha I beyond its rank."""

    U: Annotated[Array, RANK, RANK, UPPER]
    inv_d: Annotated[Array, RANK]  # 1 / D
    c: Annotated[Array, RANK]


class ProsNKONSState(NamedTuple):
    """The dictionary, and A and w on its span."""

    dictionary: Dictionary
    factor: Factor


class GrowthRule(NamedTuple):
    """When the dictionary grows, and what happens to A and w then."""

    joining: JoiningRule
    ald: float  # if positive: x_t joins if its squared distance to the span is more
    alpha: float  # A = alpha I in a new direction, after a restart in all
    restart: bool  # False: CON-KONS


class Work(NamedTuple):
    """Workspace of a round; from p on, of newton_round."""

    k: Array  # (cap,): k_I(x_t)
    b: Array  # (cap,): of joining_probability
    q: Array  # (cap,): coordinates of x_t
    p: Array  # (1, cap)
    beta: Array  # (1, cap)
    scan: Array  # (cap,); v of adds_direction
    a: Array  # (cap,)


@hot
def reset_factor(factor, alpha, rank):
    """Set w = 0 and A = alpha I on the span."""
    factor.inv_d[:rank] = 1.0 / alpha
    factor.c[:rank] = 0.0
    for k in range(rank):
        factor.U[k, k + 1 : rank] = 0.0


@hot
def grow_dictionary(x, k_xx, probability, growth, state, work):
    """Let x join the dictionary, and the span if it is off it; return whether it succeeded."""
    dictionary, factor = state.dictionary, state.factor
    counts, rank = dictionary.counts, dictionary.counts[RANK]
    if growth.restart and counts[ATOMS] > 0:
        reset_factor(factor, growth.alpha, rank)
        counts[RESTARTS] += 1
    delta = squared_distance(work.q, k_xx, rank)
    if adds_direction(dictionary, work.q, delta, k_xx, work.scan):
        extend_span(dictionary, work.q, math.sqrt(delta), k_xx)
        factor.inv_d[rank] = 1.0 / growth.alpha  # rounding changes it in padding
    return keep_point(growth.joining, dictionary, x, k_xx, probability, work.b)


@hot
def growth_probability(growth, dictionary, k_tt, work):
    """Return the probability with which x_t joins: by ALD 0 or 1, or NaN."""
    if growth.ald > 0.0:
        delta = squared_distance(work.q, k_tt, dictionary.counts[RANK])
        joins = 1.0 if delta > larger(growth.ald, IN_SPAN * k_tt) else 0.0
        return joins if abs(delta) < np.inf else np.nan
    return joining_probability(growth.joining, dictionary, work.k, k_tt, work.b)


@hot
def pros_n_kons_rounds(X, y, coins, first, kernel, growth, step, state, work, out):
    """Play Pros-N-KONS or, without restarts, CON-KONS. step : A grows by eta / 2 g g'."""
    dictionary, counts = state.dictionary, state.dictionary.counts
    for t in range(first, y.shape[0]):
        x, m = X[t], counts[ATOMS]
        if m == dictionary.weights.shape[0]:
            return t, NEED_ROOM
        kernel_row(kernel, x, dictionary.atoms, m, work.k)
        k_tt = kernel_diag(kernel, x)
        solve_coordinates(dictionary, work.k, work.q)
        p_t = growth_probability(growth, dictionary, k_tt, work)
        if not p_t >= 0.0:
            return t, NOT_FINITE
        if coins[t] < p_t and not grow_dictionary(x, k_tt, p_t, growth, state, work):
            return t, NOT_POSITIVE
        out.sizes[t], out.forecasts[t] = counts[ATOMS], 0.0
        if counts[RANK] > 0:
            r = pad(work.q, counts[RANK])
            out.forecasts[t], status = newton_round(work.q[:r], y[t], step, state.factor, work)
            if status != DONE:
                return t, status
    return y.shape[0], DONE


@hot
def pros_n_kons_forecasts(X, coin, kernel, growth, step, state, work, forecasts):
    """Write what Pros-N-KONS would forecast for each row of X with the next round's coin.

    Where the coin would keep x, a restart makes the forecast 0; without restarts the new direction
    has no weight yet.
    """
    dictionary, factor = state.dictionary, state.factor
    m, rank = dictionary.counts[ATOMS], dictionary.counts[RANK]
    for t in range(X.shape[0]):
        x = X[t]
        kernel_row(kernel, x, dictionary.atoms, m, work.k)
        solve_coordinates(dictionary, work.k, work.q)
        k_xx = kernel_diag(kernel, x)
        if growth.restart and coin < growth_probability(growth, dictionary, k_xx, work):
            forecasts[t] = 0.0
        else:
            solve_upper_transposed(factor.U, work.q, rank)
            forecasts[t] = smaller(larger(dot(work.q, factor.c, rank), -step.C), step.C)
