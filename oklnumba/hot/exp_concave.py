"""Rounds of FTRL for exp-concave losses on a ball or the simplex (oco Theorem 6)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.jit import DONE, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import (
    dot,
    euclidean_norm,
    project_ball,
    solve_upper,
    solve_upper_transposed,
)
from oklnumba.hot.losses import round_derivative

ALL_SPACE = 0
BALL = 1
SIMPLEX = 2
MOST_STEPS = 100  # of the Newton iteration for a multiplier; it takes about 5


@hot
def factor_part(A, index, m, shift, R):
    """Write the upper factor of A + shift I on some rows and columns; False if there is none.

    A : (d, d) symmetric; index : (m,), the rows; R : (d, d), of which m rows and columns count.
    """
    for i in range(m):
        row = R[i, i:m]
        for j in range(m - i):
            row[j] = A[index[i], index[i + j]]
        row[0] += shift
        for k in range(i):
            above = R[k, i:m]
            factor = above[0]
            for j in range(m - i):
                row[j] -= factor * above[j]
        if not (row[0] > 0.0 and row[0] < np.inf):
            return False
        pivot = math.sqrt(row[0])
        for j in range(m - i):
            row[j] /= pivot
    return True


@hot
def quadratic_on_ball(A, b, radius, index, w, R, v):
    """Write the minimiser of w'Aw / 2 - b.w on |w| <= radius; return DONE or NOT_POSITIVE.

    The multiplier mu with |(A + mu I)^-1 b| = radius is found by Newton's method on 1 / |w|, which
    is nearly linear in mu and approached from below (More and Sorensen 1983).

    A : (d, d); b : (d,); index : (d,), 0, ..., d-1; w : (d,), written; R : (d, d) and v : (d,),
    workspace.
    """
    d = b.shape[0]
    mu = 0.0
    for _ in range(MOST_STEPS):
        if not factor_part(A, index, d, mu, R):
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
def quadratic_on_simplex(A, b, index, w, R, v, u):
    """Improve w to the minimiser of w'Aw / 2 - b.w on the simplex by an active-set method.

    The support grows by the coordinate with the most negative multiplier, and loses those that
    reach 0 on the way to the minimiser of its face. Returns DONE or NOT_POSITIVE.

    A : (d, d) positive definite; b : (d,); index : (d,), workspace; w : (d,), a point of the
    simplex, in place; R : (d, d), v, u : (d,), workspace.
    """
    d = b.shape[0]
    m = 0
    for j in range(d):
        if w[j] > 0.0:
            index[m] = j
            m += 1
    for _ in range(20 * d + 100):  # it takes a few; each face is met at most once
        if not factor_part(A, index, m, 0.0, R):
            return NOT_POSITIVE
        for i in range(m):
            v[i] = b[index[i]]
            u[i] = 1.0
        solve_upper_transposed(R, v, m)
        solve_upper_transposed(R, u, m)
        solve_upper(R, v, m)
        solve_upper(R, u, m)
        sum_v = 0.0
        sum_u = 0.0
        for i in range(m):
            sum_v += v[i]
            sum_u += u[i]
        mu = (sum_v - 1.0) / sum_u
        step = 1.0
        first = -1
        for i in range(m):
            v[i] -= mu * u[i]
            if v[i] < 0.0:
                here = w[index[i]]
                share = here / (here - v[i])
                if share < step or first < 0:
                    step = share
                    first = i
        if first >= 0:
            for i in range(m):
                j = index[i]
                w[j] = max(w[j] + step * (v[i] - w[j]), 0.0)
            w[index[first]] = 0.0
            index[first] = index[m - 1]
            m -= 1
            continue
        size = abs(mu)
        for i in range(m):
            w[index[i]] = v[i]
        worst = 0.0
        enters = -1
        for j in range(d):
            if w[j] == 0.0:
                multiplier = mu - b[j]
                size_j = abs(mu) + abs(b[j])
                for i in range(m):
                    part = A[j, index[i]] * v[i]
                    multiplier += part
                    size_j += abs(part)
                size = max(size, size_j)
                inside = False
                for i in range(m):
                    inside = inside or index[i] == j
                # Below this the sign of a multiplier is rounding.
                if not inside and multiplier < worst and multiplier < -1e-14 * size_j:
                    worst = multiplier
                    enters = j
        if enters < 0:
            return DONE
        index[m] = enters
        m += 1
    return DONE


@hot
def exp_concave_rounds(
    X, y, loss, rate, domain, radius, A, b, w, index, R, v, u, forecasts
):  # fmt: skip
    """Play rounds of FTRL for exp-concave losses on a ball or the simplex (oco Theorem 6).

    A = L^2 I + sum g g' and b = sum g (g.w - rate) with rate = 1 / alpha~: the regularised leader
    minimises w'Aw / 2 - b.w on the domain.

    X : (n, d); y : (n,); loss, domain : codes; A : (d, d), b, w : (d,), the state, in place; index,
    R, v, u : workspace; forecasts : (n,), written. Returns (rounds played, status).
    """
    d = w.shape[0]
    for t in range(y.shape[0]):
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        if slope == 0.0:
            continue
        weight = slope * slope
        pull = slope * (slope * forecast - rate)
        for i in range(d):
            row = A[i]
            scaled = weight * x[i]
            for j in range(d):
                row[j] += scaled * x[j]
            b[i] += pull * x[i]
        if domain == BALL:
            status = quadratic_on_ball(A, b, radius, index, w, R, v)
        else:
            status = quadratic_on_simplex(A, b, index, w, R, v, u)
        if status != DONE:
            return t, status
    return y.shape[0], DONE
