"""Rounds of KONS on the span of a dictionary, its matrix a sketch by Frequent Directions.

docs/frequent_kons.md, ours, after Calandriello, Lazaric and Valko 2017 (ICML, "kons"), section 6,
and Luo, Agarwal, Cesa-Bianchi and Langford 2016:

    D = {}, w = 0, S = (), A = alpha I + S'S; for t = 1, ..., T:
        psi = P_D phi_t;   ybar = w.psi;   yhat_t = ybar clipped to [-C, C]
        g = l'(yhat_t);   mu = eta g^2 |phi_t - psi|^2
        if mu / (alpha + mu) > threshold:   D = D + {x_t}, psi = phi_t
        w = w - (ybar - yhat_t) / (psi' A^-1 psi) A^-1 psi
        S = S with the row sqrt(eta) g psi;   w = w - g A^-1 psi
        if S has 2 rank rows:   subtract its (rank + 1)-th squared singular value from all
        if |D| > budget:   drop an atom

Coordinates of psi are q = R^-T k_D with K_D = R'R, as in krls.py. The last two steps are not here:
the loop returns NEED_ROOM after the round, and learners/frequent_kons.py takes them.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.newton import sketch_append, sketch_solve
from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual, last_coordinate
from oklnumba.hot.primitives.elementary import clip, larger, smaller
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row, put_atom

SKETCH_ROWS = 1  # entry of the counts after ATOMS: rows of S in use
NULL_ROW = 1e-20  # share of alpha below which a row is left out, for it may be but rounding
R_G, SQUARE, LINEAR, CONSTANT = range(4)  # totals; the last three are powers of the norm F


class FrequentKONSState(NamedTuple):
    """The dictionary, w and S in the coordinates q."""

    counts: Annotated[Integers, "counts"]
    totals: Annotated[Array, "totals"]
    atoms: Annotated[Array, "d", ATOMS]
    R: Annotated[Array, ATOMS, ATOMS]
    w: Annotated[Array, ATOMS]
    S: Annotated[Array, "rows", ATOMS]
    L: Annotated[Array, "rows", "rows"]  # upper: L'L = alpha I + S S'


class Newton(NamedTuple):
    """The Newton step."""

    loss: int  # its code
    C: float
    alpha: float
    eta: float
    excess: float  # max(eta - sigma, 0), sigma the curvature of the loss


class GrowthRule(NamedTuple):
    """When an atom joins, and when one goes."""

    threshold: float
    budget: int


class Work(NamedTuple):
    """Workspace of a round; from u on, of sketch_solve."""

    k: Array  # (cap,): k_D(x_t)
    q: Array  # (cap,): coordinates of psi
    u: Array  # (cap,): A^-1 psi
    column: Array  # (rows,)
    v: Array  # (rows,)


@hot
def join_dictionary(x, k_xx, alpha, state, work):
    """Let x join the dictionary; q and u get its coordinate, w and S a 0."""
    m, q = state.counts[ATOMS], work.q
    ald_grow(state.R, q, k_xx, m)
    put_atom(state.atoms, m, x)
    q[m] = last_coordinate(state.R[m, m], k_xx)
    work.u[m], state.w[m] = q[m] / alpha, 0.0
    for i in range(state.S.shape[0]):
        state.S[i, m] = 0.0
    state.counts[ATOMS] = m + 1


@hot
def move_into_slab(ybar, forecast, width, delta, w, u, totals):
    """Move w onto |w.psi| <= C, where ybar lies beyond; width : psi' A^-1 psi; return a status."""
    if ybar != forecast:
        if not width > 0.0:
            return NOT_POSITIVE
        shift = (ybar - forecast) / width
        add_multiple(w, -shift, u, u.shape[0])
        totals[LINEAR] += 2.0 * abs(shift) * math.sqrt(delta)
        totals[CONSTANT] -= shift * shift * width
    return DONE


@hot
def learn_point(q, u, g, ybar, forecast, delta, newton, state, column):
    """Move w and add a row to S for psi; delta : |phi_t - psi|^2; return a status."""
    C, alpha, eta, totals, w = newton.C, newton.alpha, newton.eta, state.totals, state.w
    m, rows, grown = q.shape[0], state.counts[SKETCH_ROWS], 1.0
    width = dot(q, u, m)  # psi' A^-1 psi
    status = move_into_slab(ybar, forecast, width, delta, w, u[:m], totals)
    if status != DONE:
        return status
    reach = abs(g) * (C + abs(forecast))  # >= |g (yhat_t - f(x_t))|
    totals[LINEAR] += 2.0 * abs(g) * math.sqrt(delta) * (1.0 + eta * reach)
    totals[SQUARE] += eta * g * g * delta
    totals[CONSTANT] += newton.excess * reach * reach
    norm = dot(q, q, m)
    if eta * g * g * norm > NULL_ROW * alpha:
        scale = math.sqrt(eta) * g
        if not sketch_append(state.S, state.L, rows, alpha, q, scale, norm, column) > 0.0:
            return NOT_POSITIVE
        state.counts[SKETCH_ROWS] = rows + 1
        grown += eta * g * g * width
    add_multiple(w, -g / grown, u, m)
    totals[R_G] += g * g * width / grown
    return DONE


@hot
def frequent_kons_rounds(X, y, first, kernel, newton, growth, state, work, out):
    """Play FrequentKONS up to the next round after which it needs room."""
    counts, q, alpha = state.counts, work.q, newton.alpha
    for t in range(first, y.shape[0]):
        x, m = X[t], counts[ATOMS]
        if m == state.w.shape[0]:
            return t, NEED_ROOM
        kernel_row(kernel, x, state.atoms, m, work.k)
        k_tt = kernel_diag(kernel, x)
        residual = ald_residual(state.R, work.k, k_tt, q, m)
        ybar = dot(q, state.w, m)
        if not (abs(ybar) < np.inf and k_tt < np.inf):
            return t, NOT_FINITE
        out.forecasts[t] = forecast = clip(ybar, newton.C)
        g = loss_derivative(newton.loss, forecast, y[t])
        sketch_solve(state.S, state.L, counts[SKETCH_ROWS], alpha, q[:m], work)
        delta = larger(residual, 0.0)  # |phi_t - psi|^2, negative only by rounding
        mu = newton.eta * g * g * delta
        if mu > growth.threshold * (alpha + mu) and residual > IN_SPAN * k_tt:
            join_dictionary(x, k_tt, alpha, state, work)
            m, delta = m + 1, 0.0
        status = learn_point(q[:m], work.u, g, ybar, forecast, delta, newton, state, work.column)
        if status != DONE:
            return t, status
        out.sizes[t] = smaller(m, growth.budget)
        if counts[SKETCH_ROWS] == state.S.shape[0] or m > growth.budget:
            return t + 1, NEED_ROOM
    return y.shape[0], DONE
