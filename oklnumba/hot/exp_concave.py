"""Rounds of FTRL for exp-concave losses on a ball or the simplex.

Zhang 2019, lecture notes ("oco"), Theorem 6 (errata 46), alpha~ = min(1 / (16 B L), alpha / 2):

    for t = 1, ..., T:
        w_t = argmin_{w in C} alpha~ L^2 |w|^2 / 2
                              + sum_{s<t} (<g_s, w> + alpha~ <g_s, w - w_s>^2 / 2)
        forecast w_t.x_t;   g_t = l'(w_t.x_t) x_t

Divided by alpha~, this minimises w'Aw / 2 - b.w on C, with A = L^2 I + sum g g' and
b = sum g (g.w - 1 / alpha~). The simplex solver starts from the last point, the ball's afresh.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import (
    DIVERGED,
    DONE,
    LARGEST_FORECAST,
    NOT_POSITIVE,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import (
    add_multiple,
    dot,
    euclidean_norm,
    project_ball,
    solve_upper,
    solve_upper_transposed,
)
from oklnumba.hot.primitives.losses import round_derivative

BALL, SIMPLEX = range(2)
MAX_STEPS = 100  # of the Newton iteration for a multiplier; it takes about 5
NULL_MULTIPLIER = 1e-14  # relative to its terms: below this the sign of a multiplier is rounding


class ExpConcaveState(NamedTuple):
    """A and b of the quadratic, and its minimiser w."""

    A: Annotated[Array, "d", "d"]
    b: Annotated[Array, "d"]
    w: Annotated[Array, "d"]


class Solver(NamedTuple):
    """Workspace of the solvers."""

    # Of coordinates, (d,): at first 0, ..., d - 1.
    index: Integers  # type: ignore[assignment]
    R: Array  # (d, d): factor of A on those coordinates
    v: Array  # (d,)
    u: Array  # (d,)


class Domain(NamedTuple):
    """Where w lies."""

    shape: int  # BALL or SIMPLEX
    radius: float  # of the ball


@hot
def factor_submatrix(A, index, m, shift, R):
    """Write the factor R of A + shift I on the rows ``index`` : (m,); False if not positive."""
    for i in range(m):
        row = R[i, i:m]
        for j in range(m - i):
            row[j] = A[index[i], index[i + j]]
        row[0] += shift
        for k in range(i):
            above = R[k, i:m]
            multiple = above[0]
            for j in range(m - i):
                row[j] -= multiple * above[j]
        if not (row[0] > 0.0 and row[0] < np.inf):
            return False
        pivot = math.sqrt(row[0])
        for j in range(m - i):
            row[j] /= pivot
    return True


@hot
def minimise_on_ball(A, b, radius, w, solver):
    """Write the minimiser of w'Aw / 2 - b.w on |w| <= radius; return DONE or NOT_POSITIVE.

    The multiplier mu with |(A + mu I)^-1 b| = radius comes from Newton's method on 1 / |w|, which
    is nearly linear in mu and approached from below (More and Sorensen 1983). w : (d,), written.
    """
    R, v, d, mu = solver.R, solver.v, b.shape[0], 0.0
    for _ in range(MAX_STEPS):
        if not factor_submatrix(A, solver.index, d, mu, R):
            return NOT_POSITIVE
        for j in range(d):
            w[j] = b[j]
        solve_upper_transposed(R, w, d)
        solve_upper(R, w, d)
        norm = euclidean_norm(w, d)
        if not norm < np.inf:
            return NOT_POSITIVE
        if norm <= radius * (1.0 + 1e-14):
            break
        for j in range(d):
            v[j] = w[j] / norm
        solve_upper_transposed(R, v, d)
        step = (norm - radius) / radius / dot(v, v, d)
        if mu + step == mu:
            break
        mu += step
    project_ball(w, radius, d)
    return DONE


@hot
def minimise_on_face(A, b, m, solver):
    """Write the minimiser v of w'Aw / 2 - b.w on the plane of a face: sum w = 1, 0 off the face.

    The face is the first m entries of index. Returns (whether A is positive definite there, the
    multiplier of the sum).
    """
    index, R = solver.index, solver.R
    v, u = solver.v, solver.u
    if not factor_submatrix(A, index, m, 0.0, R):
        return False, 0.0
    for i in range(m):
        v[i] = b[index[i]]
        u[i] = 1.0
    solve_upper_transposed(R, v, m)
    solve_upper_transposed(R, u, m)
    solve_upper(R, v, m)
    solve_upper(R, u, m)
    sum_v = sum_u = 0.0
    for i in range(m):
        sum_v += v[i]
        sum_u += u[i]
    mu = (sum_v - 1.0) / sum_u
    for i in range(m):
        v[i] -= mu * u[i]
    return True, mu


@hot
def step_to_face(w, index, v, m):
    """Move w towards v, as far as it stays in the simplex; return the entry of v that stops it.

    -1 if w becomes v.
    """
    step, first = 1.0, -1
    for i in range(m):
        if v[i] < 0.0:
            here = w[index[i]]
            share = here / (here - v[i])
            if share < step or first < 0:
                step, first = share, i
    for i in range(m):
        j = index[i]
        w[j] = larger(w[j] + step * (v[i] - w[j]), 0.0) if first >= 0 else v[i]
    if first >= 0:
        w[index[first]] = 0.0
    return first


@hot
def find_entering_coordinate(A, b, mu, w, index, v, m):
    """Return the coordinate off the face with the most negative multiplier; -1 if all are >= 0."""
    worst, enters = 0.0, -1
    for j in range(b.shape[0]):
        if w[j] == 0.0:
            multiplier = mu - b[j]
            size = abs(mu) + abs(b[j])
            inside = False
            for i in range(m):
                part = A[j, index[i]] * v[i]
                multiplier += part
                size += abs(part)
                inside = inside or index[i] == j
            if not inside and multiplier < worst and multiplier < -NULL_MULTIPLIER * size:
                worst, enters = multiplier, j
    return enters


@hot
def minimise_on_simplex(A, b, w, solver):
    """Move w to the minimiser of w'Aw / 2 - b.w on the simplex by an active-set method.

    The support grows by the coordinate with the most negative multiplier, and loses those that
    reach 0 on the way to the minimiser of its face. w : (d,), a point of the simplex, in place.
    Returns DONE or NOT_POSITIVE.
    """
    index, v, d, m = solver.index, solver.v, b.shape[0], 0
    for j in range(d):
        if w[j] > 0.0:
            index[m] = j
            m += 1
    for _ in range(20 * d + 100):  # it takes a few: no face comes twice
        positive, mu = minimise_on_face(A, b, m, solver)
        if not positive:
            return NOT_POSITIVE
        first = step_to_face(w, index, v, m)
        if first >= 0:
            m -= 1
            index[first] = index[m]
            continue
        enters = find_entering_coordinate(A, b, mu, w, index, v, m)
        if enters < 0:
            return DONE
        index[m] = enters
        m += 1
    return DONE


@hot
def exp_concave_rounds(X, y, loss, rate, domain, state, solver, forecasts):
    """Play FTRL for exp-concave losses on a domain (oco Theorem 6); rate : 1 / alpha~."""
    A, b = state.A, state.b
    w, d = state.w, state.w.shape[0]
    for t in range(y.shape[0]):
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        if slope == 0.0:
            continue
        weight, pull = slope * slope, slope * (slope * forecast - rate)
        for i in range(d):  # g g' and g (g.w - 1 / alpha~)
            add_multiple(A[i], weight * x[i], x, d)
            b[i] += pull * x[i]
        if domain.shape == BALL:
            status = minimise_on_ball(A, b, domain.radius, w, solver)
        else:
            status = minimise_on_simplex(A, b, w, solver)
        if status != DONE:
            return t, status
    return y.shape[0], DONE
