"""Feature maps: Taylor monomials and Fourier features, block by block."""

import math

from oklnumba.hot.primitives.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos, smaller
from oklnumba.hot.primitives.jit import exact, hot, hot_apart
from oklnumba.hot.primitives.rows import BLOCK_ROWS, PRODUCT, accumulate_rows


@exact
def taylor_block(X, center, rate, parent, variable, ratio, shifted, out):
    """Write the Taylor features of the rows of X (pkawv eq. 6), each from its parent.

    X : (b, d); center : (d,); rate : 1 / (2 sigma^2); parent, variable : (r,) integers, the parent
    feature and the coordinate that multiplies it; ratio : (r,), the constant of that product;
    shifted : (d,), workspace; out : (b, >= r), written.
    """
    for i in range(X.shape[0]):
        row, square = out[i], 0.0
        for k in range(X.shape[1]):
            v = X[i, k] - center[k]
            shifted[k] = v
            square += v * v
        row[0] = exp_nonpositive(-rate * square)
        for j in range(1, parent.shape[0]):
            row[j] = row[parent[j]] * ratio[j] * shifted[variable[j]]


@hot_apart
def write_sin_cos(z, f, scale):
    """Turn the f phases in z : (>= 2 f,) into (sin, cos) * scale, in place.

    Not inlined: in a loop over rows LLVM would check once for all whether one row's sines overlap
    another's cosines, which they do, and would not vectorise.
    """
    sine, cosine = z[:f], z[f : 2 * f]
    small = True
    for j in range(f):  # a maximum would not vectorise, because of NaN
        small = small & (abs(sine[j]) <= SINCOS_LARGEST)
    if small:
        for j in range(f):
            s, c = sin_cos(sine[j])
            sine[j], cosine[j] = s * scale, c * scale
        return
    for j in range(f):
        phase = sine[j]
        sine[j], cosine[j] = math.sin(phase) * scale, math.cos(phase) * scale


@hot
def fourier_block(X, frequencies, scale, out):
    """Write the Fourier features (sin u_j.x, cos u_j.x) * scale of the rows of X.

    X : (b, d); frequencies : (d, f), feature-major; out : (>= b, >= 2 f), written. A row has the
    same bits alone.
    """
    f = frequencies.shape[1]
    for first in range(0, X.shape[0], BLOCK_ROWS):
        stop = smaller(first + BLOCK_ROWS, X.shape[0])
        accumulate_rows(PRODUCT, X, first, stop, frequencies, 0, f, out, first)
        for i in range(first, stop):
            write_sin_cos(out[i], f, scale)
