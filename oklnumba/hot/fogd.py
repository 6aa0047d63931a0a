"""Rounds of FOGD with its Fourier features made inside the loop."""

from __future__ import annotations

import math

from oklnumba.hot.elementary import SINCOS_LARGEST, sin_cos
from oklnumba.hot.jit import DIVERGED, DONE, LARGEST_FORECAST, exact, hot
from oklnumba.hot.linalg import add_multiple, dot
from oklnumba.hot.losses import loss_derivative

ROWS_AT_ONCE = 4  # rounds whose phases share one pass over the frequencies


@exact
def fourier_phase(x, frequencies, phases):
    """Write u_j . x. x : (d,); other arguments as in fourier_phases, but for phases : (2 f,)."""
    d, f = frequencies.shape
    p = phases[:f]
    for j in range(f):
        p[j] = 0.0
    k = 0
    while k + 4 <= d:
        u0, u1, u2, u3 = frequencies[k], frequencies[k + 1], frequencies[k + 2], frequencies[k + 3]
        a0, a1, a2, a3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(f):
            p[j] = p[j] + a0 * u0[j] + a1 * u1[j] + a2 * u2[j] + a3 * u3[j]
        k += 4
    while k < d:
        u = frequencies[k]
        a = x[k]
        for j in range(f):
            p[j] += a * u[j]
        k += 1


@exact
def fourier_phases(X, first, frequencies, phases):
    """Write u_j . x for ROWS_AT_ONCE rows of X from ``first`` on, or one, if there are not as many.

    A row has the same bits alone: products are fused one after the other, in one order.

    X : (n, d); frequencies : (d, f), feature-major; phases : (ROWS_AT_ONCE, 2 f), written, f each.
    Returns the number of rows.
    """
    d, f = frequencies.shape
    if X.shape[0] - first < ROWS_AT_ONCE:
        fourier_phase(X[first], frequencies, phases[0])
        return 1
    x0, x1, x2, x3 = X[first], X[first + 1], X[first + 2], X[first + 3]
    p0, p1, p2, p3 = phases[0, :f], phases[1, :f], phases[2, :f], phases[3, :f]
    for j in range(f):
        p0[j] = 0.0
        p1[j] = 0.0
        p2[j] = 0.0
        p3[j] = 0.0
    k = 0
    while k + 4 <= d:
        u0, u1, u2, u3 = frequencies[k], frequencies[k + 1], frequencies[k + 2], frequencies[k + 3]
        a0, a1, a2, a3 = x0[k], x0[k + 1], x0[k + 2], x0[k + 3]
        b0, b1, b2, b3 = x1[k], x1[k + 1], x1[k + 2], x1[k + 3]
        c0, c1, c2, c3 = x2[k], x2[k + 1], x2[k + 2], x2[k + 3]
        e0, e1, e2, e3 = x3[k], x3[k + 1], x3[k + 2], x3[k + 3]
        for j in range(f):
            # One sum from left to right: four fused products, where two sums take six operations.
            p0[j] = p0[j] + a0 * u0[j] + a1 * u1[j] + a2 * u2[j] + a3 * u3[j]
            p1[j] = p1[j] + b0 * u0[j] + b1 * u1[j] + b2 * u2[j] + b3 * u3[j]
            p2[j] = p2[j] + c0 * u0[j] + c1 * u1[j] + c2 * u2[j] + c3 * u3[j]
            p3[j] = p3[j] + e0 * u0[j] + e1 * u1[j] + e2 * u2[j] + e3 * u3[j]
        k += 4
    while k < d:
        u = frequencies[k]
        a0, a1, a2, a3 = x0[k], x1[k], x2[k], x3[k]
        for j in range(f):
            p0[j] += a0 * u[j]
            p1[j] += a1 * u[j]
            p2[j] += a2 * u[j]
            p3[j] += a3 * u[j]
        k += 1
    return ROWS_AT_ONCE


@hot
def fourier_forecast(z, w, f):
    """Turn the f phases in z : (2 f,) into (sin, cos) in place; return z . w."""
    sine, cosine = z[:f], z[f : 2 * f]
    largest = 0.0
    for j in range(f):
        largest = max(largest, abs(sine[j]))
    if not largest <= SINCOS_LARGEST:
        for j in range(f):
            phase = sine[j]
            sine[j] = math.sin(phase)
            cosine[j] = math.cos(phase)
        return dot(z, w, 2 * f)
    ws, wc = w[:f], w[f : 2 * f]
    total = 0.0
    for j in range(f):
        s, c = sin_cos(sine[j])
        sine[j] = s
        cosine[j] = c
        total += ws[j] * s + wc[j] * c
    return total


@hot
def fogd_rounds(X, y, frequencies, w, loss, setting, work, forecasts):
    """Play FOGD (Lu et al. 2016, Algorithm 1) on Fourier features made on the way.

    X : (n, d); y : (n,); frequencies : (d, f), feature-major; w : (2 f,), in place; setting : (eta,
    scale of the features); work : (ROWS_AT_ONCE, 2 f), workspace; forecasts : (n,), written.
    Returns (rounds played, status).
    """
    eta, scale = setting
    f = frequencies.shape[1]
    start = 0
    while start < X.shape[0]:
        stop = start + fourier_phases(X, start, frequencies, work)
        for t in range(start, stop):
            z = work[t - start]
            forecast = scale * fourier_forecast(z, w, f)  # w . z(x), z(x) = scale z
            if not abs(forecast) < LARGEST_FORECAST:
                return t, DIVERGED
            forecasts[t] = forecast
            step = eta * scale * loss_derivative(loss, forecast, y[t])
            if step != 0.0:
                add_multiple(w, -step, z, 2 * f)  # w <- w - eta l' z(x)
        start = stop
    return X.shape[0], DONE


@hot
def fogd_forecasts(X, frequencies, w, scale, work, forecasts):
    """Write what FOGD would forecast for each row of X; arguments as in fogd_rounds."""
    f = frequencies.shape[1]
    start = 0
    while start < X.shape[0]:
        stop = start + fourier_phases(X, start, frequencies, work)
        for t in range(start, stop):
            forecasts[t] = scale * fourier_forecast(work[t - start], w, f)
        start = stop
