"""Coordinates of a stream in a dictionary that grows with it; PA-I and descent on coordinates."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.dictionary import (
    adds_direction,
    joining_probability,
    keep_joined,
    span_distance,
    span_grow,
)
from oklnumba.hot.elementary import larger, smaller
from oklnumba.hot.jit import ATOMS, DONE, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import add_multiple, dot
from oklnumba.hot.rows import kernel_diag, kernel_row, put_atom
from oklnumba.hot.udu import SWEEP, TOGETHER, pad, solve_rounds

RANK = 1  # entry of the counts after ATOMS: rank of the atoms' span


@hot
def let_join(kernel, x, corner, probability, rule, counts, dictionary, unit, q, work):
    """Let x join the dictionary, and its direction the span, for the rounds to come.

    corner : k(x, x); q : (cap,), coordinates of x in the span; other arguments as in map_rounds.
    Returns whether KORS's factor stayed positive definite.
    """
    atoms, weights, kors, span, R = dictionary
    U, scales = unit
    b, v = work
    m, rank = counts[ATOMS], counts[RANK]
    square = span_distance(q, corner, rank)
    if adds_direction(R, q, square, corner, v, rank):
        for j in range(rank):
            U[j, rank] = q[j] * scales[j]
        scales[rank] = 1.0 / math.sqrt(square)
        span_grow(R, span, q, math.sqrt(square), corner, rank, m)
        counts[RANK] = rank + 1
    if not keep_joined(rule, weights, kors, b, corner, probability, m):
        return False
    put_atom(atoms, m, x)
    counts[ATOMS] = m + 1
    return True


@hot
def map_rounds(X, coins, kernel, setting, counts, dictionary, unit, work, out):
    """Write each row's coordinates in the span of the dictionary; then the row may join it.

    A row that joins adds its direction for the rows after it: in all rows before, and its own, that
    coordinate is 0. So coordinates depend on the past alone, and none is ever changed.

    X : (n, d); coins : (n,), uniform draws; setting : (rule of joining_probability, largest size);
    counts : integers ATOMS and RANK of their span; dictionary : atoms (d, cap), weights (cap,) and
    kors (cap, cap) of KORS, span (cap,) and R (cap, cap) of span_coordinates; unit : U (cap, cap)
    and scales (cap,), R = diag(1 / scales) U, the unit matrix behind the rank; all in place; work :
    row and b (cap,), (2 TOGETHER, cap) and (TOGETHER,), workspace; out : Z (n, > cap), 1
    for the intercept, the coordinates, and zeros up to whole vectors; columns (n,) integers, how
    many these are; sizes (n,) integers, atoms after the row; written. Returns (rows played,
    status).
    """
    rule, largest = setting
    atoms, weights, kors, span, _ = dictionary
    U, scales = unit
    row, b, rows, a = work
    Z, columns, sizes = out
    rounds, betas = rows[:TOGETHER], rows[TOGETHER:]
    n, t = X.shape[0], 0
    while t < n:
        m, rank = counts[ATOMS], counts[RANK]
        growing = m < largest
        count = 1 if growing else larger(smaller(TOGETHER, (n - t) // SWEEP * SWEEP), 1)
        for s in range(count):
            kernel_row(kernel, X[t + s], atoms, m, row)
            q = rounds[s]
            for j in range(rank):
                q[j] = row[span[j]]
            pad(q, rank)
        r = pad(rounds[0], rank)
        solve_rounds(U, scales, rounds, betas, a, count, r)
        for s in range(count):
            z, q = Z[t + s], rounds[s]
            z[0] = 1.0
            for j in range(rank):
                q[j] *= scales[j]
                z[j + 1] = q[j]
            columns[t + s] = pad(z, rank + 1)
            sizes[t + s] = m
        if growing:
            corner = kernel_diag(kernel, X[t])
            probability = joining_probability(rule, row, weights, kors, b, corner, m)
            if not probability >= 0.0:
                return t, NOT_FINITE
            if coins[t] < probability and not let_join(
                kernel, X[t], corner, probability, rule, counts, dictionary, unit, rounds[0],
                (b, row),
            ):  # fmt: skip
                return t, NOT_POSITIVE
            sizes[t] = counts[ATOMS]
        t += count
    return n, DONE


@hot
def pa_rounds(Z, columns, Y, signs, C, weights, largest, forecasts):
    """Play PA-I (Crammer et al. 2006, Figure 1) on coordinates, for K labels a round.

    Z : (n, cap) and columns : (n,), as map_rounds writes them; Y : (n, K); signs : (K,), 1 where
    labels are -1 and +1, whose loss is the hinge loss, 0 where they are real, with the absolute
    loss; C : aggressiveness, in units of the largest label; weights : (K, cap) and largest : (K,),
    largest |y| so far, the state, in place; forecasts : (n, K), written. Returns (rounds played,
    status).
    """
    n, outputs = Y.shape
    for t in range(n):
        z, r = Z[t], columns[t]
        square = dot(z, z, r)  # >= 1, the intercept
        for k in range(outputs):
            w, y = weights[k], Y[t, k]
            forecast = dot(w, z, r)
            if not abs(forecast) < np.inf:
                return t, NOT_FINITE
            forecasts[t, k] = forecast
            largest[k] = larger(largest[k], abs(y))
            if signs[k] > 0.0:
                loss, towards = larger(1.0 - y * forecast, 0.0), y
            else:
                loss, towards = abs(y - forecast), 1.0 if y > forecast else -1.0
            add_multiple(w, towards * smaller(C * largest[k], loss / square), z, r)
    return n, DONE


@hot
def pa_forecasts(Z, columns, weights, forecasts):
    """Write what PA-I would forecast for each row; arguments as in pa_rounds."""
    for t in range(Z.shape[0]):
        for k in range(weights.shape[0]):
            forecasts[t, k] = dot(weights[k], Z[t], columns[t])


@hot
def link(sign, score):
    """Return the forecast of a score: 2 / (1 + exp(-score)) - 1 where labels are -1 and +1."""
    return 2.0 / (1.0 + math.exp(-score)) - 1.0 if sign > 0.0 else score


@hot
def descent_rounds(Z, columns, Y, signs, step, weights, forecasts):
    """Play gradient descent with the step over |z|^2 on coordinates, for K labels a round.

    Logistic loss where labels are -1 and +1, with the forecast 2 P(y = 1) - 1; squared loss where
    they are real, by the implicit step, which is stable for any length. Arguments as in pa_rounds.
    """
    n, outputs = Y.shape
    for t in range(n):
        z, r = Z[t], columns[t]
        square = dot(z, z, r)  # >= 1, the intercept
        for k in range(outputs):
            w, y, sign = weights[k], Y[t, k], signs[k]
            forecast = link(sign, dot(w, z, r))
            if not abs(forecast) < np.inf:
                return t, NOT_FINITE
            forecasts[t, k] = forecast
            length = 0.5 * step if sign > 0.0 else step / (1.0 + step)
            add_multiple(w, length * (y - forecast) / square, z, r)
    return n, DONE


@hot
def descent_forecasts(Z, columns, signs, weights, forecasts):
    """Write what gradient descent would forecast for each row; arguments as in descent_rounds."""
    for t in range(Z.shape[0]):
        for k in range(weights.shape[0]):
            forecasts[t, k] = link(signs[k], dot(weights[k], Z[t], columns[t]))
