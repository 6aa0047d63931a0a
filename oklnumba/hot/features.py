"""Feature maps: Taylor monomials and Fourier features, block by block."""

from __future__ import annotations

import math

from oklnumba.hot.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos
from oklnumba.hot.jit import exact, hot
from oklnumba.hot.rows import products


@exact
def taylor_block(X, center, rate, parent, variable, ratio, shifted, out):
    """Write the Taylor features of the rows of X (pkawv eq. 6), one product each.

    X : (b, d); center : (d,); rate : 1 / (2 sigma^2); parent, variable : (r,) integers, the parent
    feature and the coordinate that multiplies it; ratio : (r,), the constant of that product;
    shifted : (d,), workspace; out : (b, >= r), modified in place.
    """
    d = X.shape[1]
    for i in range(X.shape[0]):
        row = out[i]
        square = 0.0
        for k in range(d):
            v = X[i, k] - center[k]
            shifted[k] = v
            square += v * v
        row[0] = exp_nonpositive(-rate * square)
        for j in range(1, parent.shape[0]):
            row[j] = row[parent[j]] * ratio[j] * shifted[variable[j]]


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
