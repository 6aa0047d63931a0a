"""Rounds of AIOLI: logistic regression on features whose forecast is no linear function of them.

Jezequel, Gaillard and Rudi 2020 (COLT, "aioli"), labels y_t = -1 or +1, l(p) = log(1 + exp(-y p)):

    A = lam I, b = 0; for t = 1, ..., n:
        z = phi(x_t)                                         # the caller writes the features
        theta = argmin theta' A theta - 2 b' theta + l(theta.z, 1) + l(theta.z, -1)
        p = theta.z;   g = l'(p, y_t);   eta = exp(y_t p) / (1 + B)
        A = A + eta g^2 / 2 z z';   b = b + (eta g^2 p - g) / 2 z

The forecast p is the root of p + (q / 2) tanh(p / 2) = m, m = z' A^-1 b and q = z' A^-1 z, and
h = eta g^2 is l''(p) / (1 + B). We keep A = U' D U and c = D^-1 U^-T b (udu.py): the round is that
of ridge regression with the point sqrt(h / 2) z and the label (h p - g) / sqrt(2 h). Single rounds
need one pass over U, as in factor.py.

The same in plain NumPy: aioli of tests/reference/naive.py.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.factor import POINT, ROUND, Factor, copy_row, is_point, solve_points
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, Array, hot, hot_apart
from oklnumba.hot.primitives.losses import LOGISTIC, loss_derivative
from oklnumba.hot.primitives.udu import NO_DISCOUNT, ridge_forecast, ridge_learn, write_betas

EPS = 2.0**-52
LEAST = 1e-200  # of h, so that 1 / h is finite: far below the rounding of A
ONLY, REGRET = 0, 0  # the one output of the factor; the one entry of total


class AIOLIState(NamedTuple):
    """A = U' D U, c, and the sum of the bounds on each round's regret."""

    factor: Factor
    total: Annotated[Array, "total"]


@hot
def find_root(m, q):
    """Return the root p of p + (q / 2) tanh(p / 2) = m.

    For m > 0 the left side is concave, so Newton's steps from below the root stay below it.
    """
    target = abs(m)
    p = larger(target / (1.0 + 0.25 * q), target - 0.5 * q)
    while True:
        e = math.expm1(-p)
        tanh = -e / (2.0 + e)
        step = (target - p - 0.5 * q * tanh) / (1.0 + 0.25 * q * (1.0 - tanh * tanh))
        if not step > EPS * p:
            return p if m >= 0.0 else -p
        p += step


@hot_apart
def aioli_forecast(Z, t, factor, work):
    """Return q and the forecast of row t of Z; write p = U^-T z."""
    p, inv_d, r = work.p[0], factor.inv_d, factor.inv_d.shape[0]
    if is_point(Z[t], factor.pending, r):
        copy_row(factor.pending.p, p, r)
    else:
        solve_points(Z, t, 1, r, factor, NO_DISCOUNT, work)
    m, q = ridge_forecast(p, factor.c[ONLY], work.scan, r), 0.0
    for j in range(r):
        q += inv_d[j] * p[j] * p[j]
    return q, find_root(m, q) if abs(m) + q < np.inf else np.nan


@hot
def aioli_learn(z, y, forecast, q, B, factor, work):
    """Add a round to A and b; return what its regret adds to the bound (docs/aioli.md)."""
    pending, c, r = factor.pending, factor.c[ONLY], factor.inv_d.shape[0]
    p, beta = work.p[0], work.beta[0]
    g, e = loss_derivative(LOGISTIC, forecast, y), math.exp(-abs(forecast))
    h = larger(e / ((1.0 + e) * (1.0 + e) * (1.0 + B)), LEAST)
    root = math.sqrt(0.5 * h)
    for j in range(r):
        pending.z[j] = root * z[j]
        p[j] *= root
    write_betas(p, factor.inv_d, NO_DISCOUNT, beta, r)
    pending.columns[ROUND] = r  # U and D wait for the next pass
    pending.columns[POINT] = 0
    ridge_forecast(p, c, work.scan, r)  # the sums that ridge_learn reads
    ridge_learn((h * forecast - g) / (2.0 * root), beta, c, work.scan, r)
    s = abs(g)  # delta = q / 4 ((1 - s)^2 / (1 + q h / 2) - (1 - 2 s)^2)
    grown = 0.5 * q * h
    return 0.25 * q * (s * (2.0 - 3.0 * s) - (1.0 - 2.0 * s) ** 2 * grown) / (1.0 + grown)


@hot
def aioli_rounds(Z, y, B, state, work, forecasts):
    """Play AIOLI on features Z : (n, >= r), with labels y : (n,)."""
    for t in range(forecasts.shape[0]):
        q, forecasts[t] = aioli_forecast(Z, t, state.factor, work)
        if not abs(forecasts[t]) < np.inf:
            return t, NOT_FINITE
        state.total[REGRET] += aioli_learn(Z[t], y[t], forecasts[t], q, B, state.factor, work)
    return forecasts.shape[0], DONE


@hot
def aioli_forecasts(Z, factor, work, forecasts):
    """Write what AIOLI would forecast for each row of Z."""
    for t in range(forecasts.shape[0]):
        _, forecasts[t] = aioli_forecast(Z, t, factor, work)
