"""Feature maps: Taylor monomials and Fourier features, block by block."""

import math

from oklnumba.hot.primitives.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos
from oklnumba.hot.primitives.jit import exact, exact_apart, hot, hot_apart


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


@exact
def fourier_phase(x, frequencies, phases):
    """Write u_j . x. x : (d,); frequencies : (d, f), feature-major; phases : (f,), written."""
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
        u, a = frequencies[k], x[k]
        for j in range(f):
            p[j] += a * u[j]
        k += 1


@exact_apart
def fourier_phases(X, frequencies, phases, at):
    """Write u_j . x for four rows of X from row ``at`` on, in one pass over the frequencies.

    A row has the bits of fourier_phase: the same fused products in the same order. Not inlined:
    LLVM would have to check whether the rows overlap.
    """
    d, f = frequencies.shape
    x0, x1, x2, x3 = X[at], X[at + 1], X[at + 2], X[at + 3]
    p0, p1, p2, p3 = phases[at, :f], phases[at + 1, :f], phases[at + 2, :f], phases[at + 3, :f]
    for j in range(f):
        p0[j] = p1[j] = p2[j] = p3[j] = 0.0
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
    at = 0
    while at < X.shape[0]:
        rows = 4 if at + 4 <= X.shape[0] else 1
        if rows == 4:
            fourier_phases(X, frequencies, out, at)
        else:
            fourier_phase(X[at], frequencies, out[at])
        for i in range(at, at + rows):
            write_sin_cos(out[i], frequencies.shape[1], scale)
        at += rows
