"""Rounds of kernel recursive least squares (KRLS).

Engel, Mannor and Meir 2004:

    D = {}; for t = 1, ..., n:
        yhat_t = sum_{j in D} alpha_j k(x_j, x_t)
        a_t = K^-1 k_t;   delta_t = k_tt - k_t' a_t          # k_t and K over D
        if delta_t > nu:   D = D + {x_t};   a_t = (0, ..., 0, 1)
        alpha = argmin sum_{s<=t} (y_s - a_s' K alpha)^2

The paper updates K^-1 and (sum a a')^-1 by their inverses. Here K = R'R, rounds have the
coordinates q_s = R a_s = R^-T k_s, and Q'Q = sum q q', Q'z = sum y q grow by rotations. Then
a_s' K alpha = q_s' R alpha, so R alpha = Q^-1 z.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual, last_coordinate
from oklnumba.hot.primitives.expansion import expansion_value
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, Array, Integers, hot
from oklnumba.hot.primitives.linalg import solve_upper
from oklnumba.hot.primitives.rows import kernel_diag, put_atom


class KRLSState(NamedTuple):
    """The dictionary D, the coefficients, and least squares over the rounds."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]
    R: Annotated[Array, ATOMS, ATOMS]  # K = R'R
    Q: Annotated[Array, ATOMS, ATOMS]  # Q'Q = sum q q'
    z: Annotated[Array, ATOMS]  # Q'z = sum y q


@hot
def least_squares_row(Q, z, x, y, m):
    """Add the row (x, y) to Q, z in place: Q'Q = sum x x', Q upper triangular, Q'z = sum y x."""
    for k in range(m):
        old, new = Q[k, k], x[k]
        t = math.sqrt(old * old + new * new)
        if t == 0.0:
            continue
        c, s = old / t, new / t
        Q[k, k] = t
        Q_k, x_k = Q[k, k + 1 : m], x[k + 1 : m]
        for j in range(x_k.shape[0]):
            u, v = Q_k[j], x_k[j]
            Q_k[j] = c * u + s * v
            x_k[j] = c * v - s * u
        u = z[k]
        z[k] = c * u + s * y
        y = c * y - s * u


@hot
def add_krls_atom(state, x, k_tt, q):
    """Add x_t to the dictionary, in whose new direction past rounds have the coordinate 0."""
    m = state.counts[ATOMS]
    ald_grow(state.R, q, k_tt, m)
    q[m] = last_coordinate(state.R[m, m], k_tt)
    put_atom(state.atoms, m, x)
    state.Q[: m + 1, m] = 0.0
    state.z[m] = 0.0
    state.counts[ATOMS] = m + 1


@hot
def fit_coefficients(state):
    """Solve R alpha = Q^-1 z."""
    alpha, m = state.alpha, state.counts[ATOMS]
    for j in range(m):
        alpha[j] = state.z[j]
    solve_upper(state.Q, alpha, m)
    solve_upper(state.R, alpha, m)


@hot
def krls_rounds(X, y, first, kernel, nu, state, work, out):
    """Play KRLS."""
    k, q = work
    for t in range(first, X.shape[0]):
        x, m = X[t], state.counts[ATOMS]
        if m == state.alpha.shape[0]:
            return t, NEED_ROOM
        out.forecasts[t] = forecast = expansion_value(kernel, state.atoms, state.alpha, m, x, k)
        k_tt = kernel_diag(kernel, x)
        if not (abs(forecast) < np.inf and k_tt < np.inf):
            return t, NOT_FINITE
        delta = ald_residual(state.R, k, k_tt, q, m)  # delta_t; writes q_t = R a_t
        if delta > IN_SPAN * k_tt and (m == 0 or delta > nu):
            add_krls_atom(state, x, k_tt, q)
        least_squares_row(state.Q, state.z, q, y[t], state.counts[ATOMS])
        fit_coefficients(state)
        out.sizes[t] = state.counts[ATOMS]
    return X.shape[0], DONE
