"""Feature maps: Taylor monomials and Fourier features, block by block."""

from __future__ import annotations

import math

from oklnumba.hot.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos
from oklnumba.hot.jit import hot
from oklnumba.hot.rows import products


@hot
def taylor_block(X, center, rate, parent, variable, ratio, columns, out):
    """Write the Taylor features of the rows of X (pkawv eq. 6), one product each.

    Feature-major in the scratch ``columns`` (that vectorises along the points), then transposed.

    X : (b, d); center : (d,); rate : 1 / (2 sigma^2); parent, variable : (r,) integers, the parent
    feature and the coordinate that multiplies it; ratio : (r,), the constant of that product;
    columns : (d + r, points a pass), workspace; out : (b, >= r), modified in place.
    """
    b, d = X.shape
    r = parent.shape[0]
    width = columns.shape[1]
    for first in range(0, b, width):
        n = min(width, b - first)
        points = X[first : first + n]
        g0 = columns[d, :n]
        for i in range(n):
            g0[i] = 0.0
        for k in range(d):
            shifted = columns[k, :n]
            c = center[k]
            for i in range(n):
                v = points[i, k] - c
                shifted[i] = v
                g0[i] += v * v
        for i in range(n):
            g0[i] = exp_nonpositive(-rate * g0[i])
        for j in range(1, r):
            source = columns[d + parent[j], :n]
            factor = columns[variable[j], :n]
            target = columns[d + j, :n]
            q = ratio[j]
            for i in range(n):
                target[i] = source[i] * (factor[i] * q)
        for i in range(n):
            row = out[first + i]
            for j in range(r):
                row[j] = columns[d + j, i]


@hot
def fourier_block(X, frequencies, scale, out):
    """Write the Fourier features (sin u_j.x, cos u_j.x) * scale of the rows of X.

    X : (b, d); frequencies : (d, f), feature-major; out : (b, >= 2 f), modified in place.
    """
    f = frequencies.shape[1]
    for i in range(X.shape[0]):
        sine = out[i, :f]
        cosine = out[i, f : 2 * f]
        products(X[i], frequencies, f, sine)
        largest = 0.0
        for j in range(f):
            largest = max(largest, abs(sine[j]))
        if largest <= SINCOS_LARGEST:
            for j in range(f):
                s, c = sin_cos(sine[j])
                sine[j] = s * scale
                cosine[j] = c * scale
        else:
            for j in range(f):
                phase = sine[j]
                sine[j] = math.sin(phase) * scale
                cosine[j] = math.cos(phase) * scale
