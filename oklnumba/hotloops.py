"""All compiled code of oklnumba, in dependency order.

Contents
--------
1. Decorators and bit casts
2. exp, sine and cosine that vectorise
3. Kernel rows
4. Feature maps: Taylor monomials, Fourier features
5. Triangular solves and rank-one updates of factors and inverses
6. The U' D U factor of ridge regression, swept once for several rounds
7. Leverage scores, KORS and ALD
8. Losses
9. One ``<algorithm>_rounds`` for each kernel learner
10. Linear online convex optimisation; Pros-N-KONS, which plays it in the span of a dictionary
11. Experts

Letters: n rounds, d input width, m dictionary size, r features, ``cap`` allocated size (a buffer's
first m or r entries are valid). Dictionaries are feature-major, ``(d, cap)``, so that loops run
along the atoms. Upper triangular factors are row-major, so that loops run along a row.

Why one file: Numba's disk cache notices an edit only in the file that defines a function; a cached
caller of a function in another file would keep the old machine code.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# ---------------------------------------------------------------------------------------------
# 1. Decorators and bit casts
# ---------------------------------------------------------------------------------------------


def _jit(fastmath: set[str]):
    """Return the project's one ``njit`` decorator, with a named subset of fastmath.

    Lazy signatures keep the import fast; ``cache`` falls back to no cache where no folder is
    writable (Numba raises at decoration there); ``nogil`` lets threads run learners side by side;
    ``error_model="numpy"`` keeps division branches out of loops. Full fastmath is never used: it
    breaks NaN checks and the accuracy of exp.
    """

    def decorate(function):
        options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:
            return numba.njit(cache=False, **options)(function)

    return decorate


# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
hot = _jit({"reassoc", "contract", "arcp", "nsz"})
# Fused products only: range reductions must not be reordered.
exact = _jit({"contract"})

if numba.config.DISABLE_JIT:

    def float_to_bits(x):
        """Return the bit pattern of a float64 as int64."""
        return np.float64(x).view(np.int64)

    def bits_to_float(bits):
        """Return the float64 with the given bit pattern."""
        return np.int64(bits).view(np.float64)

else:

    @intrinsic
    def float_to_bits(typingctx, x):
        """Return the bit pattern of a float64 as int64."""

        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], ir.IntType(64))

        return types.int64(types.float64), codegen

    @intrinsic
    def bits_to_float(typingctx, bits):
        """Return the float64 with the given bit pattern."""

        def codegen(context, builder, signature, args):
            return builder.bitcast(args[0], ir.DoubleType())

        return types.float64(types.int64), codegen


# Status codes of the loops below; learner.py turns them into errors.
DONE = 0
NEED_ROOM = 1  # a buffer is full: grow it and call again
NOT_POSITIVE = 2  # a pivot that must be positive is not
NOT_FINITE = 3  # an overflow reached a forecast
NEED_MAP = 4  # a dictionary is full: make its feature map and call again

# ---------------------------------------------------------------------------------------------
# 2. exp, sine and cosine that vectorise
# ---------------------------------------------------------------------------------------------

# Adding and subtracting 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits of
# the sum: no float-to-integer conversion, which AVX2 lacks for 64 bits.
ROUND_SHIFT = 6755399441055744.0
LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93145751953125e-1  # 20 trailing zero bits: n * LN2_HIGH is exact
LN2_LOW = 1.42860682030941723212e-6
EXP_LOWEST = -708.0  # exp underflows to subnormal numbers below
FAR = 1e3  # exp(-FAR) is 0: a distance beyond must not become infinity times 0
TWO_OVER_PI = 0.6366197723675814
HALF_PI_1 = 1.5707963267341256  # pi/2 in three parts (Cody and Waite)
HALF_PI_2 = 6.077100506303966e-11
HALF_PI_3 = 2.0222662487959506e-21
SINCOS_LARGEST = 1.0e5  # beyond, the three parts of pi/2 lose digits: libm instead


@exact
def exp_nonpositive(x):
    """Return exp(x) for x <= 0 to 2e-16 relative; 0 below -708. Branch-free, so loops vectorise."""
    clamped = EXP_LOWEST if x < EXP_LOWEST else x  # so that NaN stays NaN
    shifted = clamped * LOG2_E + ROUND_SHIFT
    n = shifted - ROUND_SHIFT
    f = (clamped - n * LN2_HIGH) - n * LN2_LOW
    p = 1.6059043836821613e-10  # Taylor coefficients 1/13!, 1/12!, ...
    p = p * f + 2.08767569878681e-09
    p = p * f + 2.505210838544172e-08
    p = p * f + 2.755731922398589e-07
    p = p * f + 2.7557319223985893e-06
    p = p * f + 2.48015873015873e-05
    p = p * f + 1.984126984126984e-04
    p = p * f + 1.3888888888888889e-03
    p = p * f + 8.333333333333333e-03
    p = p * f + 4.1666666666666664e-02
    p = p * f + 1.6666666666666666e-01
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    scale = bits_to_float((float_to_bits(shifted) + 1023) << 52)  # 2^n
    return 0.0 if x < EXP_LOWEST else p * scale


@exact
def sin_cos(x):
    """Return (sin x, cos x) to 4e-16 for |x| <= SINCOS_LARGEST. Branch-free, so loops vectorise."""
    shifted = x * TWO_OVER_PI + ROUND_SHIFT
    n = shifted - ROUND_SHIFT
    f = ((x - n * HALF_PI_1) - n * HALF_PI_2) - n * HALF_PI_3
    z = f * f
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    s = f + f * (z * s)
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    c = 1.0 - (0.5 * z - z * (z * c))
    quadrant = float_to_bits(shifted)
    sine = c if quadrant & 1 else s
    cosine = s if quadrant & 1 else c
    sine = -sine if quadrant & 2 else sine
    cosine = -cosine if (quadrant + 1) & 2 else cosine
    return sine, cosine


# ---------------------------------------------------------------------------------------------
# 3. Kernel rows
# ---------------------------------------------------------------------------------------------

GAUSSIAN = 0
LAPLACIAN = 1
MATERN_3_2 = 2
MATERN_5_2 = 3
POLYNOMIAL = 4
LINEAR = 5
ATOMS_A_TILE = 512  # of kernel_product


@hot
def square_distances(x, atoms, m, out):
    """Write |x - atom_j|^2 for the first m atoms.

    Differences, not norms and products: exact for equal points and for data far from the origin.

    x : (d,); atoms : (d, cap); out : (cap,), modified in place.
    """
    d = x.shape[0]
    o = out[:m]
    for j in range(m):
        o[j] = 0.0
    k = 0
    while k + 4 <= d:
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        r0, r1, r2, r3 = atoms[k, :m], atoms[k + 1, :m], atoms[k + 2, :m], atoms[k + 3, :m]
        for j in range(m):
            a = x0 - r0[j]
            b = x1 - r1[j]
            c = x2 - r2[j]
            e = x3 - r3[j]
            o[j] += (a * a + b * b) + (c * c + e * e)
        k += 4
    while k < d:
        xk = x[k]
        rk = atoms[k, :m]
        for j in range(m):
            a = xk - rk[j]
            o[j] += a * a
        k += 1


@hot
def products(x, atoms, m, out):
    """Write x . atom_j for the first m atoms.

    x : (d,); atoms : (d, cap); out : (cap,), modified in place.
    """
    d = x.shape[0]
    o = out[:m]
    for j in range(m):
        o[j] = 0.0
    k = 0
    while k + 4 <= d:
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        r0, r1, r2, r3 = atoms[k, :m], atoms[k + 1, :m], atoms[k + 2, :m], atoms[k + 3, :m]
        for j in range(m):
            o[j] += (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j])
        k += 4
    while k < d:
        xk = x[k]
        rk = atoms[k, :m]
        for j in range(m):
            o[j] += xk * rk[j]
        k += 1


@hot
def integer_power(x, degree):
    """Return x**degree for an integer degree >= 0 held in a float."""
    power = 1.0
    for _ in range(int(degree)):
        power *= x
    return power


@hot
def kernel_row(code, par, x, atoms, m, out):
    """Write k(x, atom_j) for the first m atoms.

    code : which kernel (constants above); par : (3,) its numbers, as kernels.py sets them;
    x : (d,); atoms : (d, cap); out : (cap,), modified in place.
    """
    o = out[:m]
    if code == LINEAR or code == POLYNOMIAL:
        products(x, atoms, m, out)
        if code == POLYNOMIAL:
            scale, coef0, degree = par[0], par[1], par[2]
            for j in range(m):
                o[j] = integer_power(scale * o[j] + coef0, degree)
        return
    square_distances(x, atoms, m, out)
    rate = par[0]
    if code == GAUSSIAN:
        for j in range(m):
            o[j] = exp_nonpositive(-rate * o[j])
    elif code == LAPLACIAN:
        for j in range(m):
            o[j] = exp_nonpositive(-rate * math.sqrt(o[j]))
    elif code == MATERN_3_2:
        for j in range(m):
            s = min(rate * math.sqrt(o[j]), FAR)
            o[j] = (1.0 + s) * exp_nonpositive(-s)
    else:  # MATERN_5_2
        for j in range(m):
            s = min(rate * math.sqrt(o[j]), FAR)
            o[j] = (1.0 + s + s * s / 3.0) * exp_nonpositive(-s)


@hot
def kernel_diag(code, par, x):
    """Return k(x, x). Arguments as in kernel_row."""
    if code == LINEAR or code == POLYNOMIAL:
        s = 0.0
        for k in range(x.shape[0]):
            s += x[k] * x[k]
        return s if code == LINEAR else integer_power(par[0] * s + par[1], par[2])
    return 1.0


@hot
def kernel_diags(code, par, X, out):
    """Write k(x_i, x_i). X : (n, d); out : (n,), modified in place."""
    for i in range(X.shape[0]):
        out[i] = kernel_diag(code, par, X[i])


@hot
def kernel_block(code, par, X, atoms, m, out):
    """Write k(x_i, atom_j). X : (n, d); atoms : (d, cap); out : (n, >= m), modified in place."""
    for i in range(X.shape[0]):
        kernel_row(code, par, X[i], atoms, m, out[i])


@hot
def kernel_product(code, par, X, atoms, v, out):
    """Write K v without forming K, in tiles that stay in the cache.

    X : (n, d); atoms : (d, m), contiguous; v : (m,); out : (n,), written.
    """
    d, m = atoms.shape
    tile = np.empty((d, ATOMS_A_TILE))
    row = np.empty(ATOMS_A_TILE)
    for i in range(out.shape[0]):
        out[i] = 0.0
    for first in range(0, m, ATOMS_A_TILE):
        width = min(ATOMS_A_TILE, m - first)
        for k in range(d):
            for j in range(width):
                tile[k, j] = atoms[k, first + j]
        part = v[first : first + width]
        for i in range(out.shape[0]):
            kernel_row(code, par, X[i], tile, width, row)
            s = 0.0
            for j in range(width):
                s += row[j] * part[j]
            out[i] += s


@hot
def put_atom(atoms, j, x):
    """Write x into column j of the dictionary. atoms : (d, cap), in place; x : (d,)."""
    for i in range(x.shape[0]):
        atoms[i, j] = x[i]


@hot
def get_atom(atoms, j, x):
    """Copy column j of the dictionary into x. atoms : (d, cap); x : (d,), in place."""
    for i in range(x.shape[0]):
        x[i] = atoms[i, j]


# ---------------------------------------------------------------------------------------------
# 4. Feature maps
# ---------------------------------------------------------------------------------------------


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


# ---------------------------------------------------------------------------------------------
# 5. Triangular solves and rank-one updates of factors and inverses
# ---------------------------------------------------------------------------------------------


@hot
def dot(a, b, m):
    """Return the product of the first m entries of a and b."""
    s = 0.0
    for j in range(m):
        s += a[j] * b[j]
    return s


@hot
def product_rows(Z, w, out):
    """Write Z w. Z : (n, r); w : (r,); out : (n,), modified in place."""
    for t in range(out.shape[0]):
        out[t] = dot(Z[t], w, w.shape[0])


@hot
def solve_upper_transposed(R, b, m):
    """Solve R' x = b for upper triangular R, four rows a pass.

    R : (cap, cap); b : (cap,), modified in place.
    """
    k = 0
    while k + 4 <= m:
        v0 = b[k] / R[k, k]
        v1 = (b[k + 1] - v0 * R[k, k + 1]) / R[k + 1, k + 1]
        v2 = (b[k + 2] - v0 * R[k, k + 2] - v1 * R[k + 1, k + 2]) / R[k + 2, k + 2]
        v3 = b[k + 3] - v0 * R[k, k + 3] - v1 * R[k + 1, k + 3] - v2 * R[k + 2, k + 3]
        v3 = v3 / R[k + 3, k + 3]
        b[k], b[k + 1], b[k + 2], b[k + 3] = v0, v1, v2, v3
        r0, r1, r2, r3 = (
            R[k, k + 4 : m],
            R[k + 1, k + 4 : m],
            R[k + 2, k + 4 : m],
            R[k + 3, k + 4 : m],
        )
        z = b[k + 4 : m]
        for j in range(z.shape[0]):
            z[j] -= (v0 * r0[j] + v1 * r1[j]) + (v2 * r2[j] + v3 * r3[j])
        k += 4
    while k < m:  # at most three rows are left, whose off-diagonal part is inside this corner
        v = b[k] / R[k, k]
        b[k] = v
        for j in range(k + 1, m):
            b[j] -= v * R[k, j]
        k += 1


@hot
def solve_upper(R, b, m):
    """Solve R x = b for upper triangular R. R : (cap, cap); b : (cap,), in place."""
    for k in range(m - 1, -1, -1):
        row = R[k, k + 1 : m]
        z = b[k + 1 : m]
        s = 0.0
        for j in range(z.shape[0]):
            s += row[j] * z[j]
        b[k] = (b[k] - s) / R[k, k]


@hot
def solve_lower(L, b, m):
    """Solve L x = b for lower triangular, row-major L, four rows a pass.

    L : (cap, cap); b : (cap,), in place.
    """
    k = 0
    while k + 4 <= m:
        r0, r1, r2, r3 = L[k, :k], L[k + 1, :k], L[k + 2, :k], L[k + 3, :k]
        x = b[:k]
        s0 = s1 = s2 = s3 = 0.0
        for j in range(k):
            s0 += r0[j] * x[j]
            s1 += r1[j] * x[j]
            s2 += r2[j] * x[j]
            s3 += r3[j] * x[j]
        v0 = (b[k] - s0) / L[k, k]
        v1 = (b[k + 1] - s1 - L[k + 1, k] * v0) / L[k + 1, k + 1]
        v2 = b[k + 2] - s2 - L[k + 2, k] * v0 - L[k + 2, k + 1] * v1
        v2 = v2 / L[k + 2, k + 2]
        v3 = b[k + 3] - s3 - L[k + 3, k] * v0 - L[k + 3, k + 1] * v1 - L[k + 3, k + 2] * v2
        v3 = v3 / L[k + 3, k + 3]
        b[k], b[k + 1], b[k + 2], b[k + 3] = v0, v1, v2, v3
        k += 4
    while k < m:
        b[k] = (b[k] - dot(L[k, :k], b[:k], k)) / L[k, k]
        k += 1


@hot
def solve_lower_transposed(L, b, m):
    """Solve L' x = b for lower triangular, row-major L. L : (cap, cap); b : (cap,), in place."""
    for k in range(m - 1, -1, -1):
        v = b[k] / L[k, k]
        b[k] = v
        row = L[k, :k]
        z = b[:k]
        for j in range(k):
            z[j] -= v * row[j]


@hot
def cholesky_update(R, x, m):
    """Turn the upper factor of A into that of A + x x'.

    R : (cap, cap), x : (cap,), both modified in place.
    """
    for k in range(m):
        rk = R[k, k]
        xk = x[k]
        t = math.sqrt(rk * rk + xk * xk)
        if t == 0.0:
            continue
        c = rk / t
        s = xk / t
        R[k, k] = t
        row = R[k, k + 1 : m]
        z = x[k + 1 : m]
        for j in range(z.shape[0]):
            a = row[j]
            b = z[j]
            row[j] = c * a + s * b
            z[j] = c * b - s * a


@hot
def cholesky_downdate(R, x, m):
    """Turn the upper factor of A into that of A - x x'; NOT_POSITIVE if there is none.

    R : (cap, cap), x : (cap,), both in place (after NOT_POSITIVE both are spoilt).
    """
    for k in range(m):
        rk = R[k, k]
        xk = x[k]
        q = (rk - xk) * (rk + xk)
        if not q > 0.0:
            return NOT_POSITIVE
        t = math.sqrt(q)
        s = xk / rk
        c = t / rk
        R[k, k] = t
        row = R[k, k + 1 : m]
        z = x[k + 1 : m]
        for j in range(z.shape[0]):
            a = (row[j] - s * z[j]) / c
            row[j] = a
            z[j] = c * z[j] - s * a
    return DONE


@hot
def bordered_cholesky(R, column, corner, m):
    """Turn the upper factor of A (m x m) into that of [[A, c], [c', corner]], given R^-T c.

    R : (cap, cap), in place; column : (cap,), R^-T c, of which m entries count; corner : the new
    diagonal entry. Returns the new pivot corner - |column|^2; where it is not positive R is left as
    it was.
    """
    pivot = corner - dot(column, column, m)
    if pivot > 0.0:
        for i in range(m):
            R[i, m] = column[i]
        R[m, m] = math.sqrt(pivot)
    return pivot


@hot
def sherman_morrison(P, z, v, r):
    """Turn P = A^-1 into (A + z z')^-1 and return 1 + z' P z (of the old P).

    P : (cap, cap) symmetric, in place; z : (cap,); v : (cap,), workspace (P z on return).
    """
    q = 1.0
    for i in range(r):
        v[i] = dot(P[i, :r], z[:r], r)
        q += v[i] * z[i]
    for i in range(r):
        c = v[i] / q
        row = P[i, :r]
        for j in range(r):
            row[j] -= c * v[j]
    return q


@hot
def grow_inverse(P, column, v, corner, m):
    """Turn P = A^-1 (m x m) into the inverse of [[A, c], [c', corner]] by the block formula.

    P : (cap, cap) symmetric, in place; column : (cap,), c; v : (cap,), workspace (P c on return).
    Returns the Schur complement corner - c' P c (the ALD residual when A is a kernel matrix); where
    it is not positive P is left as it was.
    """
    schur = corner
    for i in range(m):
        v[i] = dot(P[i, :m], column[:m], m)
        schur -= v[i] * column[i]
    if schur > 0.0:
        for i in range(m):
            c = v[i] / schur
            row = P[i, :m]
            for j in range(m):
                row[j] += c * v[j]
            P[i, m] = -c
            P[m, i] = -c
        P[m, m] = 1.0 / schur
    return schur


# ---------------------------------------------------------------------------------------------
# 6. The U' D U factor of ridge regression, swept once for several rounds
# ---------------------------------------------------------------------------------------------
#
# A = lam I + sum z z' = U' D U with U unit upper triangular. Adding z z' (Gill, Golub, Murray and
# Saunders 1974, method C1) runs down the rows k of U with a running a = 1 + sum_{i<k} p_i^2 / D_i:
#
#     p = z_k;  a' = a + p^2 / D_k;  beta = p / (D_k a');  D_k <- D_k a' / a;  a <- a'
#     for j > k:   z_j -= p U_kj;   U_kj += beta z_j
#
# That is r^2 fused products a round, half of what the inverse takes, and it is backward stable: no
# drift, and small lam is no danger. In the end p = U^-T z (left in z's place) and a = 1 + z' A^-1 z
# (A before the round). With c = D^-1 U^-T sum y z, the ridge forecast is m = p . c and the AWV
# forecast m / a.
#
# A sweep of three rounds reads and writes U once. Every entry sees the same fused products in the
# same order as in three sweeps of one round: the results are the same bits, however a stream is
# cut. LLVM does not vectorise this with its many arrays, so the vectors are written out as LLVM
# code.

SWEEP = 3  # rounds a sweep: coefficients, rounds and rows just fit in 32 vector registers
TOGETHER = 4 * SWEEP  # rounds whose sweeps share one pass over U from memory
LANES = 8  # columns a vector; buffers have a multiple of it
TILE = 4  # rows of U a pass


def _factor_rows_codegen(rounds: int, learn: bool = True):
    """Return the LLVM code generator of one pass over TILE rows of U, for that many rounds.

    Without ``learn`` U and D stay as they are: p = U^-T z only.
    """
    double, index = ir.DoubleType(), ir.IntType(64)
    one = ir.Constant(double, 1.0)

    def codegen(context, builder, signature, args):
        arrays = [
            context.make_array(kind)(context, builder, value=value)
            for kind, value in zip(signature.args[:5], args[:5], strict=True)
        ]
        U, inv_d, Z, B, a = (array.data for array in arrays)
        k, r = args[5], args[6]
        stride = cgutils.unpack_tuple(builder, arrays[0].shape, 2)[1]  # that of Z and B too

        def const(value):
            return ir.Constant(index, value)

        def load(pointer, where):
            return builder.load(builder.gep(pointer, [where]))

        def store(value, pointer, where):
            builder.store(value, builder.gep(pointer, [where]))

        row_starts = [
            builder.add(builder.mul(builder.add(k, const(i)), stride), k) for i in range(TILE)
        ]
        round_starts = [builder.add(builder.mul(const(t), stride), k) for t in range(rounds)]

        # The TILE x TILE corner on the diagonal, round by round.
        d = [load(inv_d, builder.add(k, const(i))) for i in range(TILE)]
        u = {
            (i, j): load(U, builder.add(row_starts[i], const(j)))
            for i in range(TILE)
            for j in range(i + 1, TILE)
        }
        p = [[load(Z, builder.add(s, const(j))) for j in range(TILE)] for s in round_starts]
        beta = [[one] * TILE for _ in range(rounds)]
        for t in range(0 if learn else rounds):
            for i in range(TILE):
                for j in range(i + 1, TILE):
                    p[t][j] = builder.fma(builder.fneg(p[t][i]), u[i, j], p[t][j])
        for t in range(rounds if learn else 0):
            running = load(a, const(t))
            for i in range(TILE):
                gain = builder.fmul(d[i], p[t][i])
                following = builder.fma(gain, p[t][i], running)
                inverse = builder.fdiv(one, following)
                beta[t][i] = builder.fmul(gain, inverse)
                d[i] = builder.fmul(d[i], builder.fmul(running, inverse))
                running = following
                for j in range(i + 1, TILE):
                    p[t][j] = builder.fma(builder.fneg(p[t][i]), u[i, j], p[t][j])
                    u[i, j] = builder.fma(beta[t][i], p[t][j], u[i, j])
            store(running, a, const(t))
        for i in range(TILE):
            for t in range(rounds):
                store(p[t][i], Z, builder.add(round_starts[t], const(i)))
            if not learn:
                continue
            store(d[i], inv_d, builder.add(k, const(i)))
            for j in range(i + 1, TILE):
                store(u[i, j], U, builder.add(row_starts[i], const(j)))
            for t in range(rounds):
                store(beta[t][i], B, builder.add(round_starts[t], const(i)))

        def columns_pass(lanes):
            """Return a function that updates ``lanes`` columns of the TILE rows."""
            vector = ir.VectorType(double, lanes)
            fma_name = f"llvm.fma.v{lanes}f64"
            fma_type = ir.FunctionType(vector, [vector] * 3)
            fma = cgutils.get_or_insert_function(builder.module, fma_type, fma_name)
            undefined = ir.Constant(vector, ir.Undefined)
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

            def broadcast(scalar):
                first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
                return builder.shuffle_vector(first, undefined, zeros)

            def address(pointer, start, column):
                where = builder.gep(pointer, [builder.add(start, column)])
                return builder.bitcast(where, vector.as_pointer())

            def load_vector(pointer, start, column):
                loaded = builder.load(address(pointer, start, column))
                loaded.align = 8
                return loaded

            def store_vector(value, pointer, start, column):
                builder.store(value, address(pointer, start, column)).align = 8

            minus_p = [[broadcast(builder.fneg(value)) for value in row] for row in p]
            betas = [[broadcast(value) for value in row] for row in beta]

            def update(column):
                z = [load_vector(Z, s, column) for s in round_starts]
                x = [load_vector(U, s, column) for s in row_starts]
                # Row i meets round t at step i + t: neighbours in this order do not wait for each
                # other.
                for step in range(TILE + rounds - 1):
                    pairs = [(i, step - i) for i in range(TILE) if 0 <= step - i < rounds]
                    for i, t in pairs:
                        z[t] = builder.call(fma, [minus_p[t][i], x[i], z[t]])
                    for i, t in pairs if learn else ():
                        x[i] = builder.call(fma, [betas[t][i], z[t], x[i]])
                for value, start in zip(x, row_starts, strict=True) if learn else ():
                    store_vector(value, U, start, column)
                for value, start in zip(z, round_starts, strict=True):
                    store_vector(value, Z, start, column)

            return update

        # Columns right of the corner: four to reach a multiple of LANES, then LANES at a time.
        in_first_half = builder.icmp_unsigned("==", builder.and_(k, const(TILE)), const(0))
        with builder.if_then(in_first_half):
            columns_pass(TILE)(const(TILE))
        start = builder.sub(builder.and_(builder.add(k, const(TILE + 7)), const(-LANES)), k)
        passes = builder.udiv(builder.sub(builder.sub(r, k), start), const(LANES))
        update = columns_pass(LANES)
        with cgutils.for_range(builder, passes) as loop:
            update(builder.add(start, builder.mul(loop.index, const(LANES))))
        return context.get_dummy_value()

    return codegen


if numba.config.DISABLE_JIT:

    def _factor_rows(rounds, learn=True):
        def factor_rows(U, inv_d, Z, B, a, k, r):
            for t in range(rounds):
                for i in range(k, k + TILE):
                    p = Z[t, i]
                    if not learn:
                        Z[t, i + 1 : r] -= p * U[i, i + 1 : r]
                        continue
                    following = a[t] + inv_d[i] * p * p
                    beta = inv_d[i] * p / following
                    inv_d[i] *= a[t] / following
                    a[t] = following
                    B[t, i] = beta
                    Z[t, i + 1 : r] -= p * U[i, i + 1 : r]
                    U[i, i + 1 : r] += beta * Z[t, i + 1 : r]

        return factor_rows

else:

    def _factor_rows(rounds, learn=True):
        codegen = _factor_rows_codegen(rounds, learn)

        @intrinsic
        def factor_rows(typingctx, U, inv_d, Z, B, a, k, r):
            return types.void(U, inv_d, Z, B, a, types.int64, types.int64), codegen

        return factor_rows


# U : (cap, cap); inv_d : (cap,); Z, B : (SWEEP, cap); a : (SWEEP,); rows k to k + TILE of r, all in
# place.
factor_rows_1 = _factor_rows(1)
factor_rows_3 = _factor_rows(SWEEP)
# The same without learning: Z becomes Z U^-1, nothing else changes.
solve_rows_1 = _factor_rows(1, learn=False)
solve_rows_3 = _factor_rows(SWEEP, learn=False)


@hot
def ridge_forecast(p, c, scan, r):
    """Return p . c in four running sums, which are left in ``scan`` for ridge_learn."""
    q = r // 4
    s0 = s1 = s2 = s3 = 0.0
    for k in range(q):
        s0 += p[k] * c[k]
        s1 += p[q + k] * c[q + k]
        s2 += p[2 * q + k] * c[2 * q + k]
        s3 += p[3 * q + k] * c[3 * q + k]
        scan[k] = s0
        scan[q + k] = s1
        scan[2 * q + k] = s2
        scan[3 * q + k] = s3
    return (s0 + s1) + (s2 + s3)


@hot
def ridge_learn(y, beta, c, scan, r):
    """Bring c = D^-1 U^-T sum y z up to date: c_k += beta_k (y - sum_{i<=k} p_i c_i)."""
    q = r // 4
    rest = y
    for part in range(4):
        ck = c[part * q : (part + 1) * q]
        bk = beta[part * q : (part + 1) * q]
        sk = scan[part * q : (part + 1) * q]
        for k in range(q):
            ck[k] += bk[k] * (rest - sk[k])
        rest -= sk[q - 1]


@hot
def factor_rounds(U, inv_d, rounds, betas, a, count, r):
    """Add the first ``count`` rounds to the factor: whole sweeps together, or one round.

    Each TILE rows of U meet all the sweeps while they are in the cache. U : (cap, cap); inv_d :
    (cap,); rounds, betas : (>= count, cap); a : (>= count,), all modified in place; r : columns.
    """
    for k in range(0, r, TILE):
        if count == 1:
            factor_rows_1(U, inv_d, rounds, betas, a, k, r)
        for s in range(0, count - 1, SWEEP):
            stop = s + SWEEP
            factor_rows_3(U, inv_d, rounds[s:stop], betas[s:stop], a[s:stop], k, r)


@hot
def awv_rounds(Z, y, U, inv_d, c, work, ridge, forecasts, shrinks):
    """Play AWV (pkawv Algorithm 1) or ridge rounds on features.

    Z : (n, r), padded with zeros to r a multiple of LANES; y : (n,); U : (r, r), inv_d : (r,),
    c : (r,), the state, in place; work : (2 TOGETHER + 1, r), workspace; ridge : 1 for ridge
    forecasts, 0 for AWV; forecasts, shrinks : (n,), written: shrink is 1 + z' A^-1 z of the round.
    Returns (rounds played, status).
    """
    n, r = Z.shape
    rounds, betas, scan = work[:TOGETHER], work[TOGETHER : 2 * TOGETHER], work[2 * TOGETHER]
    a = np.empty(TOGETHER)
    t = 0
    while t < n:
        count = min(TOGETHER, (n - t) // SWEEP * SWEEP)
        count = max(count, 1)
        for s in range(count):
            a[s] = 1.0
            target = rounds[s]
            source = Z[t + s]
            for j in range(r):
                target[j] = source[j]
        factor_rounds(U, inv_d, rounds, betas, a, count, r)
        for s in range(count):
            m = ridge_forecast(rounds[s], c, scan, r)
            if not abs(m / a[s]) < np.inf:
                return t + s, NOT_FINITE
            forecasts[t + s] = m if ridge else m / a[s]
            shrinks[t + s] = a[s]
            ridge_learn(y[t + s], betas[s], c, scan, r)
        t += count
    return n, DONE


@hot
def awv_forecasts(Z, U, inv_d, c, work, ridge, forecasts):
    """Write what AWV or ridge would forecast for each row of Z; arguments as in awv_rounds."""
    n, r = Z.shape
    p = work[0]
    for t in range(n):
        for j in range(r):
            p[j] = Z[t, j]
        solve_upper_transposed(U, p, r)
        a = 1.0
        for k in range(r):
            a += inv_d[k] * p[k] * p[k]
        m = ridge_forecast(p, c, work[1], r)
        forecasts[t] = m if ridge else m / a


# ---------------------------------------------------------------------------------------------
# 7. Leverage scores, KORS and ALD
# ---------------------------------------------------------------------------------------------


@hot
def leverage(C, b, corner, alpha, m):
    """Return the ridge leverage score 1 - alpha / s of a new point, s = alpha + corner - b' M b.

    C : (cap, cap), upper factor of M^-1 = S K S + alpha I over the dictionary; b : (cap,), S k,
    turned in place into C^-T b; corner : k(x, x). Returns NaN where s has lost all its digits.
    """
    solve_upper_transposed(C, b, m)
    s = alpha + corner - dot(b, b, m)
    return 1.0 - alpha / s if s > 0.0 else np.nan


@hot
def kors_probability(row, weights, C, b, corner, alpha, beta, eps, m):
    """Return the probability min(beta tau, 1) with which KORS keeps a point (kons eq. 4).

    row : (cap,), k(x, dictionary); weights : (cap,), 1 / sqrt(p_i); b : (cap,), left as C^-T S row.
    """
    for j in range(m):
        b[j] = weights[j] * row[j]
    tau = (1.0 + eps) * leverage(C, b, corner, alpha, m)
    return min(max(beta * tau, 0.0), 1.0) if tau == tau else np.nan


@hot
def kors_keep(weights, C, b, corner, alpha, probability, m):
    """Add a point, with weight 1 / sqrt(probability), to KORS's factor C; b : (cap,), C^-T S row.

    Returns the new pivot; where it is not positive nothing has changed.
    """
    w = 1.0 / math.sqrt(probability)
    for j in range(m):
        b[j] *= w
    weights[m] = w
    return bordered_cholesky(C, b, alpha + corner * w * w, m)


@hot
def kors_rounds(
    X, coins, first, code, par, setting, state, atoms, weights, C, row, b, played, kept
):
    """Play KORS (kons Algorithm 2) over the rows of X, from row ``first``.

    X : (n, d); coins : (n,), uniform draws; setting : (alpha, beta, eps, largest size);
    state : (1,) integers, the dictionary size m; atoms : (d, cap), weights : (cap,), C : (cap,
    cap), in place;
    row, b : (cap,), workspace; played : (n,), probabilities, and kept : (n,), 0 or 1, written.
    Returns (rows played, status).
    """
    alpha, beta, eps, largest = setting
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == weights.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        probability = kors_probability(row, weights, C, b, corner, alpha, beta, eps, m)
        if not probability >= 0.0:
            return t, NOT_FINITE
        played[t] = probability
        kept[t] = 0
        if coins[t] < probability and m < largest:
            if not kors_keep(weights, C, b, corner, alpha, probability, m) > 0.0:
                return t, NOT_POSITIVE
            put_atom(atoms, m, x)
            state[0] = m + 1
            kept[t] = 1
    return X.shape[0], DONE


@hot
def ald_residual(R, row, corner, q, m):
    """Return the squared distance of a point to the span of a dictionary (pomdr eq. 4).

    R : (cap, cap), upper factor of the dictionary's kernel matrix; row : (cap,), its kernel values
    with the point; corner : k(x, x); q : (cap,), R^-T row, written.
    """
    for j in range(m):
        q[j] = row[j]
    solve_upper_transposed(R, q, m)
    return corner - dot(q, q, m)


@hot
def ald_rounds(X, first, code, par, threshold, state, atoms, R, work, kept):
    """Keep the rows of X that are farther than ``threshold`` from the span of those kept before.

    R : (cap, cap), upper Cholesky factor of their kernel matrix, in place; work : (2, cap); other
    arguments as in kors_rounds. Returns (rows played, status).
    """
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == R.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        residual = ald_residual(R, row, corner, q, m)
        if not abs(residual) < np.inf:
            return t, NOT_FINITE
        kept[t] = 0
        if residual > 0.0 and math.sqrt(residual) > threshold:
            bordered_cholesky(R, q, corner, m)
            put_atom(atoms, m, x)
            state[0] = m + 1
            kept[t] = 1
    return X.shape[0], DONE


# ---------------------------------------------------------------------------------------------
# 8. Losses
# ---------------------------------------------------------------------------------------------

SQUARED = 0
ABSOLUTE = 1
HINGE = 2
SQUARED_HINGE = 3
LOGISTIC = 4
EPSILON_INSENSITIVE = 5
TUBE = 0.1  # half the width of the tube in which the epsilon-insensitive loss is 0


@hot
def loss_value(code, forecast, y):
    """Return the loss of a forecast; losses.py has the formulas."""
    if code == SQUARED:
        return (y - forecast) ** 2
    if code == ABSOLUTE:
        return abs(y - forecast)
    if code == EPSILON_INSENSITIVE:
        return max(abs(y - forecast) - TUBE, 0.0)
    margin = y * forecast
    if code == HINGE:
        return max(1.0 - margin, 0.0)
    if code == SQUARED_HINGE:
        return max(1.0 - margin, 0.0) ** 2
    return math.log1p(math.exp(-margin)) if margin > 0.0 else math.log1p(math.exp(margin)) - margin


@hot
def loss_derivative(code, forecast, y):
    """Return the derivative of the loss in the forecast; 0 at a kink."""
    if code == SQUARED:
        return 2.0 * (forecast - y)
    if code == ABSOLUTE:
        return np.sign(forecast - y)
    if code == EPSILON_INSENSITIVE:
        return np.sign(forecast - y) if abs(y - forecast) > TUBE else 0.0
    margin = y * forecast
    if code == HINGE:
        return -y if margin < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -2.0 * y * max(1.0 - margin, 0.0)
    if margin > 0.0:
        e = math.exp(-margin)
        return -y * e / (1.0 + e)
    return -y / (1.0 + math.exp(margin))


@hot
def loss_values(code, forecasts, y, out):
    """Write the losses of many forecasts. forecasts, y, out : (n,)."""
    for t in range(y.shape[0]):
        out[t] = loss_value(code, forecasts[t], y[t])


@hot
def loss_derivatives(code, forecasts, y, out):
    """Write the derivatives of the losses of many forecasts. forecasts, y, out : (n,)."""
    for t in range(y.shape[0]):
        out[t] = loss_derivative(code, forecasts[t], y[t])


# ---------------------------------------------------------------------------------------------
# 9. One <algorithm>_rounds for each learner (those of sections 6 and 7 stand there)
# ---------------------------------------------------------------------------------------------


@hot
def certify(y, forecasts, shrinks, growth, totals, loss, comparator, bound):
    """Write the certificate of AWV or ridge rounds (pkawv Proposition 1, with exact comparators).

    With m = forecast * shrink the ridge forecast (AWV), a round adds (y - m)^2 / shrink to the
    penalised loss of the best function in hindsight, and log(shrink) to log det. ``growth`` is what
    a growing space took off that loss.

    y, forecasts, shrinks, growth : (n,); totals : (6,), in place: loss, comparator, log det,
    growth, max |y|, and 1 for ridge forecasts, which have no bound; loss, comparator, bound : (n,),
    written.
    """
    ridge = totals[5]
    for t in range(y.shape[0]):
        s = shrinks[t]
        m = forecasts[t] if ridge else forecasts[t] * s
        totals[0] += (y[t] - forecasts[t]) ** 2
        totals[1] += (y[t] - m) ** 2 / s - growth[t]
        totals[2] += math.log(s)
        totals[3] += growth[t]
        totals[4] = max(totals[4], abs(y[t]))
        loss[t] = totals[0]
        comparator[t] = totals[1]
        bound[t] = np.nan if ridge else totals[4] * totals[4] * totals[2] + totals[3]


@hot
def kernel_awv_labels(L, u, y, first, lam, ridge, forecasts, shrinks):
    """Play the labels of rounds whose rows of L are known (pkawv sec. 2; algorithms.md section 1).

    L : (cap, cap), lower factor of K + lam I; u : (cap,), L^-1 y, in place; y : (n,), labels of
    rows first, first + 1, ... of L; forecasts, shrinks : (n,), written. A label is read after its
    forecast is written.
    """
    for i in range(y.shape[0]):
        t = first + i
        m = dot(L[t, :t], u[:t], t)
        pivot = L[t, t]
        forecasts[i] = m if ridge else m * lam / (pivot * pivot)
        shrinks[i] = pivot * pivot / lam
        u[t] = (y[i] - m) / pivot


@hot
def kernel_awv_rows(code, par, X, past, first, lam, L):
    """Write the kernel rows of new rounds into L: k(x_i, x_j) for j <= i, with lam on the diagonal.

    X : (b, d), the rounds first, first + 1, ...; past : (d, cap), all inputs, these included; L :
    (cap, cap).
    """
    for i in range(X.shape[0]):
        t = first + i
        kernel_row(code, par, X[i], past, t, L[t])
        L[t, t] = kernel_diag(code, par, X[i]) + lam


@hot
def cholesky_row(L, t):
    """Turn row t of L from that of the matrix into that of its factor; return the pivot squared."""
    row = L[t]
    solve_lower(L, row, t)
    pivot = row[t] - dot(row, row, t)
    if pivot > 0.0:
        row[t] = math.sqrt(pivot)
    return pivot


@hot
def kernel_awv_forecasts(rows, corners, L, u, t, lam, ridge, forecasts):
    """Write what Kernel-AWV or ridge would forecast.

    rows : (n, t), L^-1 k(x, past); corners : (n,), k(x, x); forecasts : (n,), written.
    """
    for i in range(rows.shape[0]):
        m = dot(rows[i], u, t)
        rest = max(corners[i] - dot(rows[i], rows[i], t), 0.0)  # negative only by rounding
        forecasts[i] = m if ridge else m * lam / (lam + rest)


@hot
def span_coordinates(row, span, R, q, rank):
    """Write the coordinates R^-T k of a point in the dictionary's span.

    R : (cap, cap), upper factor of the kernel matrix of the atoms that span;
    row : (cap,), k(x, dictionary); span : (cap,) integers, the atoms that span; q : (cap,),
    written.
    """
    for j in range(rank):
        q[j] = row[span[j]]
    solve_upper_transposed(R, q, rank)


@hot
def span_grow(R, span, q, rho, rank, m):
    """Add atom m to the span: its coordinates q and its distance rho are a new column of R.

    Arguments as in span_coordinates; all in place, q too, which gets its new entry rho.
    """
    for j in range(rank):
        R[j, rank] = q[j]
    R[rank, rank] = rho
    q[rank] = rho
    span[rank] = m


@hot
def span_column(code, par, x, past, labels, t, q, rho, rank, column, Phi, moments):
    """Write the new direction's coordinate for all past rounds into Phi[:, rank], and its moments.

    The direction is (k(x, .) - its projection) / rho, and q : (cap,) the coordinates of that
    projection.
    past : (d, cap_n); labels : (cap_n,); column : (cap_n,), workspace; Phi : (cap_n, cap), in
    place;
    moments : (cap,), written: sum_s f_s Phi_s. Returns (sum f_s^2, sum f_s y_s).
    """
    kernel_row(code, par, x, past, t, column)
    for j in range(rank):
        moments[j] = 0.0
    square = 0.0
    label = 0.0
    for s in range(t):
        phi = Phi[s, :rank]
        f = (column[s] - dot(phi, q, rank)) / rho
        for j in range(rank):
            moments[j] += f * phi[j]
        square += f * f
        label += f * labels[s]
        Phi[s, rank] = f
    return square, label


@hot
def border_factor(U, inv_d, c, moments, corner, label, rank):
    """Add a column to the factor U' D U of A and to c: A gets the border (moments, corner).

    Returns what the new direction takes off the penalised loss of the best function, or -1 where
    the pivot is not positive (nothing valid has changed then).
    """
    solve_upper_transposed(U, moments, rank)
    pivot = corner
    for k in range(rank):
        pivot -= moments[k] * moments[k] * inv_d[k]
        label -= moments[k] * c[k]
    if not pivot > 0.0:
        return -1.0
    for k in range(rank):
        U[k, rank] = moments[k] * inv_d[k]
    inv_d[rank] = 1.0 / pivot
    c[rank] = label / pivot
    return label * label / pivot


# A new atom whose squared distance to the span is this share of k(x, x) or less adds no direction:
# what is left of it is rounding. (It still counts in KORS, whose weights are about frequency, not
# about rank.)
NULL_DIRECTION = 1e-13


@hot
def nystrom_awv_rounds(
    X, y, coins, first, code, par, setting, state, atoms, weights, C, span, R, past, labels, Phi,
    U, inv_d, c, work, column, forecasts, sizes, shrinks, growth,
):  # fmt: skip
    """Play Nystrom-AWV (pkawv Algorithm 2) with KORS from row ``first``.

    In coordinates in which the kernel matrix of the span is the identity.
    Arrays as in kors_rounds, awv_rounds and span_column; setting : (lam, mu, beta, eps, largest
    size, ridge);
    state : (3,) integers, rounds whose inputs are kept, dictionary size, rank of the span; work :
    (8, cap). Once the dictionary has its largest size, past inputs are no longer kept. Returns
    (rounds played, status).
    """
    lam, mu, beta, eps, largest, ridge = setting
    row, b, moments, scan = work[0], work[1], work[2], work[3]
    Z, B = work[4:5], work[5:6]
    q = Z[0]
    a = np.empty(SWEEP)
    for t in range(first, X.shape[0]):
        stored, m, rank = state[0], state[1], state[2]
        growing = m < largest
        if growing and (m + 1 > weights.shape[0] or stored == labels.shape[0]):
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        span_coordinates(row, span, R, q, rank)
        growth[t] = 0.0
        if growing:
            probability = kors_probability(row, weights, C, b, corner, mu, beta, eps, m)
            if not probability >= 0.0:
                return t, NOT_FINITE
            if coins[t] < probability:
                rho_square = corner - dot(q, q, rank)
                if rho_square > NULL_DIRECTION * corner:
                    rho = math.sqrt(rho_square)
                    square, label = span_column(
                        code, par, x, past, labels, stored, q, rho, rank, column, Phi, moments
                    )
                    gain = border_factor(U, inv_d, c, moments, square + lam, label, rank)
                    if gain < 0.0:
                        return t, NOT_POSITIVE
                    growth[t] = gain
                    span_grow(R, span, q, rho, rank, m)
                    state[2] = rank + 1
                    rank += 1
                if not kors_keep(weights, C, b, corner, mu, probability, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(atoms, m, x)
                state[1] = m + 1
        padded = (rank + LANES - 1) // LANES * LANES
        for j in range(rank, padded):
            q[j] = 0.0
        if state[1] < largest:
            for j in range(rank):
                Phi[stored, j] = q[j]
            put_atom(past, stored, x)
        a[0] = 1.0
        for k in range(0, padded, TILE):
            factor_rows_1(U, inv_d, Z, B, a, k, padded)
        forecast = ridge_forecast(q, c, scan, padded)
        if not abs(forecast / a[0]) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast if ridge else forecast / a[0]
        shrinks[t] = a[0]
        sizes[t] = state[1]
        if state[1] < largest:
            labels[stored] = y[t]
            state[0] = stored + 1
        ridge_learn(y[t], B[0], c, scan, padded)
    return X.shape[0], DONE


@hot
def nystrom_awv_forecasts(
    X, coin, code, par, setting, state, atoms, weights, C, span, R, past, labels, Phi,
    U, inv_d, c, work, column, forecasts,
):  # fmt: skip
    """Write what Nystrom-AWV would forecast for each row of X with the next round's coin.

    Where the coin would keep x, the border is written behind the valid part of the buffers (room
    for one more atom is the caller's business) and wiped afterwards. Arguments as in
    nystrom_awv_rounds.
    """
    lam, mu, beta, eps, largest, ridge = setting
    row, b, moments, scan, q = work[0], work[1], work[2], work[3], work[4]
    stored, m = state[0], state[1]
    for t in range(X.shape[0]):
        rank = state[2]
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        span_coordinates(row, span, R, q, rank)
        probability = 0.0
        if m < largest:
            probability = kors_probability(row, weights, C, b, corner, mu, beta, eps, m)
        rho_square = corner - dot(q, q, rank)
        if coin < probability and rho_square > NULL_DIRECTION * corner:
            rho = math.sqrt(rho_square)
            square, label = span_column(
                code, par, x, past, labels, stored, q, rho, rank, column, Phi, moments
            )
            if border_factor(U, inv_d, c, moments, square + lam, label, rank) >= 0.0:
                q[rank] = rho
                rank += 1
        padded = (rank + LANES - 1) // LANES * LANES
        for j in range(rank, padded):
            q[j] = 0.0
        solve_upper_transposed(U, q, padded)
        a = 1.0
        for k in range(padded):
            a += inv_d[k] * q[k] * q[k]
        forecast = ridge_forecast(q, c, scan, padded)
        forecasts[t] = forecast if ridge else forecast / a
        if rank > state[2]:
            for k in range(state[2]):
                U[k, state[2]] = 0.0
            inv_d[state[2]] = 1.0 / lam
            c[state[2]] = 0.0


# KONS in kernel form (kons section 3; errata 3 and 4). With D = diag(g_i sqrt(eta)) over the rounds
# in the inverse and L L' = D K D + alpha I,
#
#     s = L^-1 D k_t;  schur = k_tt - s.s;  q = schur / alpha;  yhat = clip(ybar)
#     u_{t+1} = u_t - (g / (1 + d^2 q) + (ybar - yhat) / q) A_{t-1}^-1 phi_t,  d = g sqrt(eta) or 0
#
# where A_{t-1}^-1 phi_t = (phi_t - Phi D L^-T s) / alpha. For a round in the inverse the value of
# that function at x is, but for its scale, the entry of s(x) that belongs to the new row of L,
# [d s, sqrt(alpha + d^2 schur)]. Hence u(x) = s(x).z + k(x).c, in which only the rounds left out of
# the inverse have a coefficient c. Against the coefficients of the paper's lemmas, of order
# 1/alpha and cancelling, this saves the products with c and one to two digits.


@hot
def scaled_slope(g, eta):
    """Return d = g sqrt(eta); 0 where d^2 is, for such a gradient adds nothing to the inverse."""
    d = g * math.sqrt(eta)
    return d if d * d > 0.0 else 0.0


@hot
def kons_pull(over, schur):
    """Return (ybar - yhat) / schur; 0 without a projection."""
    return over / schur if over != 0.0 else 0.0


@hot
def flat(loss, g):
    """Say whether a loss has no gradient on a whole interval there.

    Elsewhere a gradient of exactly zero is a coincidence of rounding, on which sizes must not
    depend.
    """
    return loss == SQUARED_HINGE and g == 0.0


@hot
def kons_offsets(rows, coefs, solved, z, out):
    """Write k_i.c + s_i.z for points with kernel rows k_i and solved rows s_i.

    rows : (b, m); coefs : (>= m,); solved : (b, r); z : (>= r,); out : (b,), written.
    """
    m, r = rows.shape[1], solved.shape[1]
    for i in range(out.shape[0]):
        out[i] = dot(rows[i], coefs, m) + dot(solved[i], z, r)


@hot
def kons_scale_rows(rows, index, scale, out):
    """Write D k_i, of the atoms in the inverse only.

    rows : (b, m); index : (>= r,) integers, which atoms; scale : (>= r,), D; out : (b, r), written.
    """
    for i in range(rows.shape[0]):
        row, target = rows[i], out[i]
        for j in range(target.shape[0]):
            target[j] = scale[j] * row[index[j]]


@hot
def kons_rounds(H, offsets, y, loss, setting, totals, L, d, c, z, forecasts):
    """Play a block of KONS rounds (kons Algorithm 1), its past folded into H and ``offsets``.

    Rows of the block differ from their share of the matrix solve only by the scales d, which depend
    on labels: within the block the factor grows row by row.

    H : (b, b), k(x_i, x_j) - s_i.s_j for j <= i, s of the past; offsets : (b,), k_i.c + s_i.z of
    the past; setting : (C, alpha, eta); totals : (1,), R_G, in place;
    L : (b, b), d, c, z : (b,), the block's own rows and entries, written; forecasts : (b,),
    written. Returns (rounds played, status).
    """
    C, alpha, eta = setting
    for i in range(y.shape[0]):
        h, w = H[i], L[i]
        for j in range(i):
            w[j] = d[j] * h[j]
        solve_lower(L, w, i)
        schur = max(h[i] - dot(w, w, i), 0.0)  # negative only by rounding
        raw = offsets[i] + dot(h, c, i) + dot(w, z, i)
        if not abs(raw) < np.inf:
            return i, NOT_FINITE
        forecast = min(max(raw, -C), C)
        forecasts[i] = forecast
        if raw != forecast and not schur > 0.0:
            return i, NOT_POSITIVE
        q = schur / alpha
        g = loss_derivative(loss, forecast, y[i])
        di = scaled_slope(g, eta)
        pivot = math.sqrt(alpha + di * di * schur)
        pull = kons_pull(raw - forecast, schur)
        if di != 0.0:
            z[i] = -(g / pivot + pivot * pull) / di
            c[i] = 0.0
        else:
            z[i] = 0.0
            c[i] = -pull
            for j in range(i):
                z[j] += pull * w[j]
        for j in range(i):
            w[j] *= di
        w[i] = pivot
        d[i] = di
        totals[0] += g * g * q / (1.0 + di * di * q)
    return y.shape[0], DONE


@hot
def kons_append(
    X, loss, solved, block, d, c, block_z, state, atoms, coefs, index, scale, L, z, sizes
):
    """Add a block of rounds, as kons_rounds left it, to the learner; leave out what is zero.

    X : (b, d); loss : its code; solved : (b, r); block : (b, b); d, c, block_z : (b,); state : (2,)
    integers, atoms and rows of the factor; atoms : (d, cap), coefs : (cap,); index, scale, z :
    (cap_r,), L : (cap_r, cap_r), all in place; sizes : (b,), written.
    """
    r = solved.shape[1]
    for i in range(X.shape[0]):
        x = X[i]
        s = solved[i]
        if c[i] != 0.0:
            for j in range(r):
                z[j] -= c[i] * s[j]
        m = state[0]
        if not (flat(loss, d[i]) and c[i] == 0.0):
            put_atom(atoms, m, x)
            coefs[m] = c[i]
            state[0] = m + 1
        if d[i] != 0.0:
            row = L[state[1]]
            for j in range(r):
                row[j] = d[i] * s[j]
            k = r
            for j in range(i + 1):
                if d[j] != 0.0:
                    row[k] = block[i, j]
                    k += 1
            index[state[1]] = m
            scale[state[1]] = d[i]
            z[state[1]] = block_z[i]
            state[1] += 1
        sizes[i] = state[0]


@hot
def kons_function(coefs, index, scale, L, z, m, r, work, out):
    """Write the coefficients of u_t on the atoms: u_t(x) = sum_j out_j k(x_j, x).

    coefs : (cap,); index, scale, z, work : (cap_r,); L : (cap_r, cap_r); out : (m,), written.
    """
    for j in range(r):
        work[j] = z[j]
    solve_lower_transposed(L, work, r)
    for j in range(m):
        out[j] = coefs[j]
    for j in range(r):
        out[index[j]] += scale[j] * work[j]


@hot
def clipped_forecasts(rows, coefs, C, out):
    """Write rows . coefs, clipped to [-C, C]. rows : (n, m); coefs : (m,); out : (n,)."""
    for t in range(out.shape[0]):
        out[t] = min(max(dot(rows[t], coefs, coefs.shape[0]), -C), C)


@hot
def sketched_kons_rounds(
    X, y, kors_coins, coins, first, code, par, loss, setting, state, totals, atoms, coefs, index,
    scale, L, z, members, weights, dictionary, work, forecasts, sizes,
):  # fmt: skip
    """Play Sketched-KONS (kons Algorithm 3) from row ``first``.

    Arrays as in kons_append and kons_rounds; KORS sees the rescaled points d_t phi_t, after the
    label (errata 9). setting : (C, alpha, eta, gamma, beta, eps); state : (3,) integers, atoms,
    rows of the factor, size of KORS's dictionary;
    members : (cap_k,) integers, its atoms, weights : (cap_k,), d_i / sqrt(p_i), dictionary :
    (cap_k, cap_k), KORS's factor; work : (4, at least each cap). Returns (rounds played, status).
    """
    C, alpha, eta, gamma, beta, eps = setting
    row, s, kbar, b = work[0], work[1], work[2], work[3]
    for t in range(first, y.shape[0]):
        m, r, k = state[0], state[1], state[2]
        if m == coefs.shape[0] or r == z.shape[0] or k == weights.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        for j in range(r):
            s[j] = scale[j] * row[index[j]]
        solve_lower(L, s, r)
        schur = max(corner - dot(s, s, r), 0.0)  # negative only by rounding
        raw = dot(row, coefs, m) + dot(s, z, r)
        if not abs(raw) < np.inf:
            return t, NOT_FINITE
        forecast = min(max(raw, -C), C)
        forecasts[t] = forecast
        if raw != forecast and not schur > 0.0:
            return t, NOT_POSITIVE
        q = schur / alpha
        g = loss_derivative(loss, forecast, y[t])
        d = scaled_slope(g, eta)
        enters = False
        if not flat(loss, g):
            for j in range(k):
                kbar[j] = d * row[members[j]]
            probability = kors_probability(
                kbar, weights, dictionary, b, d * d * corner, alpha, beta, eps, k
            )
            if not probability >= 0.0:
                return t, NOT_FINITE
            enters = d != 0.0 and coins[t] < max(probability, gamma)
            if kors_coins[t] < probability:
                pivot = kors_keep(weights, dictionary, b, d * d * corner, alpha, probability, k)
                if not pivot > 0.0:
                    return t, NOT_POSITIVE
                weights[k] *= d
                members[k] = m
                state[2] = k + 1
        weight = eta if enters else 0.0
        pull = kons_pull(raw - forecast, schur)
        c = 0.0
        if not enters:
            c = -g / alpha - pull
            for j in range(r):
                z[j] -= c * s[j]
        if enters:
            pivot = math.sqrt(alpha + d * d * schur)
            target = L[r]
            for j in range(r):
                target[j] = d * s[j]
            target[r] = pivot
            z[r] = -(g / pivot + pivot * pull) / d
            index[r] = m
            scale[r] = d
            state[1] = r + 1
        totals[0] += g * g * q / (1.0 + weight * g * g * q)
        if not (flat(loss, g) and c == 0.0):
            put_atom(atoms, m, x)
            coefs[m] = c
            state[0] = m + 1
        sizes[t] = state[0]
    return y.shape[0], DONE


# ---- kernel expansions f = sum_j a_j k(atom_j, .): what their learners share ----


@hot
def multiply(a, factor, m):
    """Multiply the first m entries of a. a : (cap,), in place."""
    part = a[:m]
    for j in range(m):
        part[j] *= factor


@hot
def add_multiple(a, factor, b, m):
    """Add factor * b to a, first m entries. a, b : (cap,), a in place."""
    own, other = a[:m], b[:m]
    for j in range(m):
        own[j] += factor * other[j]


@hot
def to_ball(a, square, radius, m):
    """Project a function with |f|^2 = square on the ball |f| <= radius; return its new |f|^2.

    a : (cap,), its coefficients, in place.
    """
    square = max(square, 0.0)  # negative only by rounding
    if square > radius * radius:
        multiply(a, radius / math.sqrt(square), m)
        square = radius * radius
    return square


@hot
def expansion_square(code, par, atoms, a, m, x, row):
    """Return |f|^2 = a' K a from scratch. x : (d,), row : (cap,), workspace."""
    square = 0.0
    for j in range(m):
        get_atom(atoms, j, x)
        kernel_row(code, par, x, atoms, m, row)
        square += a[j] * dot(row, a, m)
    return square


@hot
def expansion_forecasts(X, code, par, atoms, a, m, factor, row, forecasts):
    """Write factor * f(x) for the rows of X. row : (cap,), workspace; forecasts : (n,), written."""
    for t in range(X.shape[0]):
        kernel_row(code, par, X[t], atoms, m, row)
        forecasts[t] = factor * dot(row, a, m)


# ---- POMDR (pomdr Algorithm 1) ----

SWITCH_FACTOR = 15.0  # B_0 = ceil(15 ln T), as in the paper's experiments


@hot
def pomdr_rate(setting, state, reals, corner):
    """Return the learning rate lambda_t (pomdr eq. 10 with 3 D for its first term, errata 28, 29).

    Arguments as in pomdr_rounds; corner : k(x_t, x_t).
    """
    radius, rate_scale = setting[0], setting[6]
    under = 3.0 * max(reals[3], corner) + reals[1]
    if not under > 0.0:
        return 0.0  # k(x, x) = 0 so far: every function is 0 on the data
    rate = radius / math.sqrt(under)
    return rate * rate_scale if state[2] > 0 else rate


@hot
def pomdr_values(code, par, x, atoms, a, m, hints, signs, count, row, hint_row):
    """Return f'_{t-1}(x) and minus hint_t(x), leaving the kernel rows in row and hint_row."""
    kernel_row(code, par, x, atoms, m, row)
    kernel_row(code, par, x, hints, count, hint_row)
    hinted = dot(hint_row, signs, count) / count if count > 0 else 0.0
    return dot(row, a, m), hinted


@hot
def pomdr_remove(code, par, radius, atoms, a, m, x, row):
    """Keep the oldest half of the dictionary and merge the rest into it (pomdr eq. 9).

    Each dropped coefficient goes to the kept atom with the largest kernel value (the first on
    ties); then f' is scaled to norm U. Returns |f'|^2.
    """
    half = m // 2
    for j in range(half, m):
        get_atom(atoms, j, x)
        kernel_row(code, par, x, atoms, half, row)
        nearest = 0
        for i in range(1, half):
            if row[i] > row[nearest]:
                nearest = i
        a[nearest] += a[j]
    square = expansion_square(code, par, atoms, a, half, x, row)
    if not square > 0.0:
        return 0.0
    multiply(a, radius / math.sqrt(square), half)
    return radius * radius


@hot
def pomdr_remember(x, label, slot, count, added, omdr, corner, hints, signs, H, row, hint_row, m):
    """Put the round's example among the hints, with its kernel values with the m old atoms.

    ``added`` says whether x became atom m, whose kernel values with the hints are in hint_row.
    """
    put_atom(hints, slot, x)
    signs[slot] = label
    if omdr:
        return  # nothing is projected any more
    if added:
        for r in range(count):
            H[r, m] = hint_row[r]
        H[slot, m] = corner
    for j in range(m):
        H[slot, j] = row[j]


@hot
def pomdr_switch_size(switch_size, budget, T):
    """Return B_0, the number of atoms at which OMDR takes over."""
    by_rounds = min(math.ceil(SWITCH_FACTOR * math.log(T)), budget - 1.0)
    return switch_size if switch_size > 0.0 else by_rounds


@hot
def pomdr_rounds(
    X, y, first, played, code, par, setting, state, reals, atoms, a, R, hints, signs, H, work,
    forecasts, sizes,
):  # fmt: skip
    """Play POMDR (pomdr Algorithm 1) from row ``first`` of X; ``played`` rounds came before X.

    setting : (U, zeta, ALD scale, horizon or 0, switch size or 0, budget, rate scale); state : (4,)
    integers: |S|, the round t-bar from which OMDR runs (0: not yet), removals, projections; reals :
    (4,): |f'|^2, the sum of delta since the last removal, that over all rounds, D = max k(x, x);
    atoms : (d, cap), a : (cap,), the dictionary; R : (cap, cap), upper factor of its kernel matrix
    until OMDR; hints : (d, M), signs : (M,), the last M examples; H : (M, cap), their kernel values
    with the dictionary until OMDR; work : (3, cap or d or M), workspace; forecasts, sizes : (n,),
    written. Returns (rounds played, status).
    """
    radius, zeta, ald_scale, horizon, switch_size, budget, rate_scale = setting
    row, q, hint_row = work[0], work[1], work[2]
    M = signs.shape[0]
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        count = min(played + t, M)
        corner = kernel_diag(code, par, x)
        rate = pomdr_rate(setting, state, reals, corner)
        own, hinted = pomdr_values(code, par, x, atoms, a, m, hints, signs, count, row, hint_row)
        forecast = own + rate * hinted
        if not (abs(forecast) < np.inf and corner < np.inf):
            return t, NOT_FINITE
        forecasts[t] = forecast
        reals[3] = max(reals[3], corner)
        label = y[t]
        this = played + t + 1
        T = horizon if horizon > 0.0 else max(float(this), 2.0)
        # A t-bar of T stays POMD (errata 31).
        omdr = state[1] > 0 and this >= state[1] and not (this == state[1] and this == horizon)
        added = False
        if label * forecast < 1.0:
            projected = False
            delta = corner - 2.0 * label * hinted
            square = corner
            if not omdr:
                rest = ald_residual(R, row, corner, q, m)  # alpha_t
                bound = ald_scale * T**-zeta
                projected = rest <= NULL_DIRECTION * corner
                projected = projected or (m > 0 and rest <= bound * bound * reals[3])
                if projected:
                    square = corner - rest
                    solve_upper(R, q, m)  # beta_t
                    delta = square
                    for r in range(count):
                        delta -= 2.0 * label * signs[r] / count * dot(H[r], q, m)
                    add_multiple(a, rate * label, q, m)
                    state[3] += 1
                elif not bordered_cholesky(R, q, corner, m) > 0.0:
                    return t, NOT_POSITIVE
            if not projected:
                put_atom(atoms, m, x)
                a[m] = rate * label
                added = True
                state[0] = m + 1
            # <f', grad> = -y f'(x) for the projected gradient too: f' is in the span.
            square = reals[0] + rate * rate * square + 2.0 * rate * label * own
            reals[0] = to_ball(a, square, radius, state[0])
            reals[1] += max(delta, 0.0)
            reals[2] += max(delta, 0.0)
        slot = (played + t) % M
        pomdr_remember(
            x, label, slot, count, added, omdr, corner, hints, signs, H, row, hint_row, m
        )
        if added and omdr and m + 1 >= budget:
            reals[0] = pomdr_remove(code, par, radius, atoms, a, m + 1, q[: x.shape[0]], row)
            reals[1] = 0.0
            state[0] = (m + 1) // 2
            state[2] += 1
        elif added and state[1] == 0 and m + 1 >= pomdr_switch_size(switch_size, budget, T):
            state[1] = this + 1
        sizes[t] = state[0]
    return X.shape[0], DONE


@hot
def pomdr_forecasts(
    X, played, code, par, setting, state, reals, atoms, a, hints, signs, work, forecasts
):
    """Write what POMDR would forecast for each row of X; arguments as in pomdr_rounds."""
    count = min(played, signs.shape[0])
    for t in range(X.shape[0]):
        rate = pomdr_rate(setting, state, reals, kernel_diag(code, par, X[t]))
        own, hinted = pomdr_values(
            code, par, X[t], atoms, a, state[0], hints, signs, count, work[0], work[2]
        )
        forecasts[t] = own + rate * hinted


# ---- first-order learners on kernel expansions ----

# A common factor below is multiplied into the coefficients before it underflows.
SMALLEST_FACTOR = 1e-100


@hot
def kernel_ogd_rounds(
    X, y, first, code, par, loss, setting, state, reals, atoms, a, work, forecasts, sizes
):
    """Play kernel online gradient descent (NORMA) from row ``first`` of X.

    f = factor sum_j a_j k(atom_j, .). setting : (eta, lam, window or inf, radius or inf); state :
    (2,) integers: atoms, and the slot of the oldest once the window is full; reals : (2,): factor,
    and |f|^2 where there is a radius; atoms : (d, cap), a : (cap,), in place; work : (3, >= cap and
    d), workspace; forecasts, sizes : (n,), written. Returns (rounds played, status).
    """
    eta, lam, window, radius = setting
    row, other = work[0], work[1]
    shrink = 1.0 - eta * lam
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0] and m < window:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = reals[0] * dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        reals[0] *= shrink
        reals[1] *= shrink * shrink
        if slope != 0.0:
            value = forecast * shrink
            slot = m
            if m == window:
                slot = state[1]
                state[1] = (slot + 1) % m
                dropped = reals[0] * a[slot]
                value -= dropped * row[slot]
                if radius < np.inf:
                    oldest = work[2, : x.shape[0]]
                    get_atom(atoms, slot, oldest)
                    kernel_row(code, par, oldest, atoms, m, other)
                    reals[1] -= 2.0 * dropped * reals[0] * dot(other, a, m)
                    reals[1] += dropped * dropped * other[slot]
            else:
                state[0] = m + 1
            put_atom(atoms, slot, x)
            step = eta * slope
            a[slot] = -step / reals[0]
            if radius < np.inf:
                corner = kernel_diag(code, par, x)
                square = max(reals[1] - 2.0 * step * value + step * step * corner, 0.0)
                if not square < np.inf:
                    return t, NOT_FINITE
                if square > radius * radius:
                    reals[0] *= radius / math.sqrt(square)
                    square = radius * radius
                reals[1] = square
        if reals[0] < SMALLEST_FACTOR:
            multiply(a, reals[0], state[0])
            reals[0] = 1.0
        sizes[t] = state[0]
    return X.shape[0], DONE


@hot
def bogd_drop(a, diagonal, coin, weighted, p, m):
    """Return which atom BOGD drops; p : (cap,), the probabilities, written.

    weighted : 1 for p_i = 1 - s |a_i| sqrt(k_ii), negative ones cut at 0, 0 for uniform ones.
    """
    total = 0.0
    for j in range(m):
        p[j] = abs(a[j]) * math.sqrt(diagonal[j])
        total += p[j]
    if not (weighted and total > 0.0):
        for j in range(m):
            p[j] = 1.0 / m
        return min(int(coin * m), m - 1)
    rest = 0.0
    for j in range(m):
        p[j] = max(1.0 - (m - 1) * (p[j] / total), 0.0)
        rest += p[j]
    running = 0.0
    chosen = 0
    for j in range(m):
        p[j] /= rest
        if p[j] > 0.0 and running <= coin:
            chosen = j
        running += p[j]
    return chosen


@hot
def bogd_rounds(
    X, y, coins, first, code, par, loss, setting, state, atoms, a, diagonal, work, forecasts, sizes
):
    """Play BOGD or BOGD++ (Zhao et al. 2012) from row ``first`` of X.

    coins : (n,), uniform draws; setting : (eta, lam, budget, gamma or inf, weighted); state : (1,)
    integers, atoms; atoms : (d, cap), a, diagonal (k(atom, atom)) : (cap,), in place; work : (2,
    cap), workspace; forecasts, sizes : (n,), written. Returns (rounds played, status).
    """
    eta, lam, budget, gamma, weighted = setting
    row, p = work[0], work[1]
    shrink = 1.0 - eta * lam
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0] and m < budget:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        if shrink < 1.0:
            multiply(a, shrink, m)
        if slope != 0.0:
            slot = m
            if m < budget:
                state[0] = m + 1
            else:
                slot = bogd_drop(a, diagonal, coins[t], weighted, p, m)
                for j in range(m):
                    if p[j] < 1.0:  # unbiased: each survives with 1 - p_j
                        a[j] /= 1.0 - p[j]
            put_atom(atoms, slot, x)
            diagonal[slot] = kernel_diag(code, par, x)
            if not diagonal[slot] < np.inf:
                return t, NOT_FINITE
            a[slot] = -eta * slope
            if m == budget:
                largest = 0.0
                for j in range(m):
                    largest = max(largest, abs(a[j]))
                if largest > eta * gamma:
                    multiply(a, eta * gamma / largest, m)
        sizes[t] = state[0]
    return X.shape[0], DONE


@hot
def projectron_rounds(X, y, first, code, par, setting, state, atoms, a, R, work, forecasts, sizes):
    """Play Projectron or Projectron++ (Orabona et al. 2009) from row ``first`` of X.

    setting : (threshold, budget or inf, aggressive, 1 / threshold or what takes its place); state :
    (1,) integers, atoms; atoms : (d, cap), a : (cap,), R : (cap, cap), upper factor of their kernel
    matrix, in place; work : (2, cap), workspace; forecasts, sizes : (n,), written. Returns (rounds
    played, status).
    """
    threshold, budget, aggressive, slack = setting
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0] and m < budget:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        margin = y[t] * forecast
        if margin <= 0.0 or (aggressive and margin < 1.0):
            corner = kernel_diag(code, par, x)
            if not corner < np.inf:
                return t, NOT_FINITE
            rest = ald_residual(R, row, corner, q, m)
            inside = corner - rest
            distance = math.sqrt(max(rest, 0.0))
            dependent = rest <= NULL_DIRECTION * corner
            if margin > 0.0:
                far = 0.0 if dependent else distance * slack
                excess = 1.0 - margin - far
                if excess > 0.0 and inside > 0.0:
                    tau = min(min((1.0 - margin) / inside, 1.0), 2.0 * excess / inside)
                    solve_upper(R, q, m)
                    add_multiple(a, tau * y[t], q, m)
            elif dependent or m == budget or (m > 0 and distance <= threshold):
                solve_upper(R, q, m)
                add_multiple(a, y[t], q, m)
            else:
                if not bordered_cholesky(R, q, corner, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(atoms, m, x)
                a[m] = y[t]
                state[0] = m + 1
        sizes[t] = state[0]
    return X.shape[0], DONE


@hot
def mapped_step(a, W, row, step, m):
    """Take the gradient step w -= step z on features z = W k, in terms of f = (W' w) . k.

    a : (cap,), W' w, in place; W : (rank, cap); row : (cap,), k.
    """
    for r in range(W.shape[0]):
        add_multiple(a, -step * dot(W[r], row, m), W[r], m)


@hot
def mapped_gradient_rounds(
    X, y, first, code, par, loss, setting, state, atoms, a, W, work, forecasts, sizes
):
    """Play NOGD (Lu et al. 2016) or SkeGD (Zhang and Liao 2019) from row ``first`` of X.

    Kernel gradient descent until the dictionary is full, then linear gradient descent on z = W k.
    setting : (eta, budget, period or inf, whether a new map waits for the next violation); state :
    (4,) integers: atoms of f, 1 when mapped, violations since the last map, atoms stored; atoms :
    (d, cap), a : (cap,), in place; W : (rank, cap); work : (1, cap), workspace; forecasts, sizes :
    (n,), written. Returns (rounds played, status); at NEED_MAP of a waiting learner, round ``rounds
    played`` has its forecast, and its update is the caller's business.
    """
    eta, budget, period, waiting = setting
    row = work[0]
    for t in range(first, X.shape[0]):
        m = state[0]
        mapped = state[1] == 1
        if m == a.shape[0] and m < budget and not mapped:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        sizes[t] = state[3]
        if slope == 0.0:
            continue
        if mapped:
            state[2] += 1
            if state[2] >= period:
                return t, NEED_MAP
            mapped_step(a, W, row, eta * slope, m)
            continue
        if m == budget:
            return t, NEED_MAP
        put_atom(atoms, m, x)
        a[m] = -eta * slope
        state[0] = m + 1
        state[3] = m + 1
        sizes[t] = m + 1
        if m + 1 == budget and not waiting:
            return t + 1, NEED_MAP
    return X.shape[0], DONE


@hot
def least_squares_row(Q, z, x, y, m):
    """Add the row (x, y) to the factor of least squares: Q'Q = sum x x', Q'z = sum y x.

    Q : (cap, cap), upper; z, x : (cap,), all in place.
    """
    for k in range(m):
        old, new = Q[k, k], x[k]
        t = math.sqrt(old * old + new * new)
        if t == 0.0:
            continue
        c, s = old / t, new / t
        Q[k, k] = t
        row = Q[k, k + 1 : m]
        rest = x[k + 1 : m]
        for j in range(rest.shape[0]):
            u, v = row[j], rest[j]
            row[j] = c * u + s * v
            rest[j] = c * v - s * u
        u = z[k]
        z[k] = c * u + s * y
        y = c * y - s * u


@hot
def krls_rounds(
    X, y, first, code, par, threshold, state, atoms, a, R, Q, z, work, forecasts, sizes
):
    """Play KRLS with ALD (Engel et al. 2004) from row ``first`` of X.

    state : (1,) integers, atoms; atoms : (d, cap), a : (cap,), R : (cap, cap), upper factor of
    their kernel matrix K, Q : (cap, cap), z : (cap,), factor and right side of least squares in the
    coordinates R^-T k, in place; work : (2, cap), workspace; forecasts, sizes : (n,), written.
    Returns (rounds played, status).
    """
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        corner = kernel_diag(code, par, x)
        if not corner < np.inf:
            return t, NOT_FINITE
        rest = ald_residual(R, row, corner, q, m)
        if rest > NULL_DIRECTION * corner and (m == 0 or rest > threshold):
            if not bordered_cholesky(R, q, corner, m) > 0.0:
                return t, NOT_POSITIVE
            put_atom(atoms, m, x)
            q[m] = R[m, m]
            for i in range(m + 1):  # no past row has a part in the new direction
                Q[i, m] = 0.0
            z[m] = 0.0
            m += 1
            state[0] = m
        least_squares_row(Q, z, q, y[t], m)
        for j in range(m):
            a[j] = z[j]
        solve_upper(Q, a, m)
        solve_upper(R, a, m)
        sizes[t] = m
    return X.shape[0], DONE


# ---- FOGD with its features made inside the loop ----

ROWS_AT_ONCE = 4  # rounds whose phases share one pass over the frequencies


@hot
def fourier_phases(X, first, frequencies, phases):
    """Write u_j . x for ROWS_AT_ONCE rows of X from ``first`` on.

    The last row stands in for rows beyond it: a round has the same bits however a stream is cut.

    X : (n, d); frequencies : (d, f), feature-major; phases : (ROWS_AT_ONCE, 2 f), written, f each.
    """
    d, f = frequencies.shape
    last = X.shape[0] - 1
    x0, x1 = X[min(first, last)], X[min(first + 1, last)]
    x2, x3 = X[min(first + 2, last)], X[min(first + 3, last)]
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
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        fourier_phases(X, start, frequencies, work)
        for t in range(start, min(start + ROWS_AT_ONCE, X.shape[0])):
            z = work[t - start]
            forecast = scale * fourier_forecast(z, w, f)
            if not abs(forecast) < np.inf:
                return t, NOT_FINITE
            forecasts[t] = forecast
            step = eta * scale * loss_derivative(loss, forecast, y[t])
            if step != 0.0:
                add_multiple(w, -step, z, 2 * f)
    return X.shape[0], DONE


@hot
def fogd_forecasts(X, frequencies, w, scale, work, forecasts):
    """Write what FOGD would forecast for each row of X; arguments as in fogd_rounds."""
    f = frequencies.shape[1]
    for start in range(0, X.shape[0], ROWS_AT_ONCE):
        fourier_phases(X, start, frequencies, work)
        for t in range(start, min(start + ROWS_AT_ONCE, X.shape[0])):
            forecasts[t] = scale * fourier_forecast(work[t - start], w, f)


# ---- B(AO)2KS: optimistic updates with a reservoir as the hint, for one kernel or several ----


@hot
def bao2ks_value(code, par, x, atoms, a, m, V, labels, n, rate, radius, kept, row, hint_row):
    """Return (forecast, f'(x), minus the hint at x) of one kernel's function f = Proj(f' - rate h).

    kept : (3,): |f'|^2, <f', h>, |h|^2; V : (d, M), labels : (M,), the reservoir, n of it filled.
    """
    kernel_row(code, par, x, atoms, m, row)
    kernel_row(code, par, x, V, n, hint_row)
    own = dot(row, a, m)
    hinted = dot(hint_row, labels, n) / n if n > 0 else 0.0
    forecast = own + rate * hinted
    square = kept[0] + rate * rate * kept[2] - 2.0 * rate * kept[1]
    if square > radius * radius:
        forecast *= radius / math.sqrt(square)
    return forecast, own, hinted


@hot
def bao2ks_step(x, y, own, hinted, corner, up, hint_up, rate, radius, atoms, a, m, V, labels, n,
                place, kept):  # fmt: skip
    """Take f' -= rate (up grad + hint_up hint), grad = -y k(x, .), then project; return the size.

    place : (M,) integers, where the reservoir's examples stand in the dictionary (-1: nowhere).
    Other arguments as in bao2ks_value; up = 0 adds no atom for x.
    """
    across = y * hinted  # <grad, hint>
    square = kept[0] - 2.0 * rate * (hint_up * kept[1] - up * y * own)
    square += (
        rate * rate * (up * up * corner + 2.0 * up * hint_up * across + hint_up * hint_up * kept[2])
    )
    kept[1] -= rate * (up * across + hint_up * kept[2])
    if up != 0.0:
        put_atom(atoms, m, x)
        a[m] = rate * up * y
        m += 1
    if hint_up != 0.0:
        for r in range(n):
            if place[r] < 0:
                for i in range(x.shape[0]):
                    atoms[i, m] = V[i, r]
                a[m] = 0.0
                place[r] = m
                m += 1
            a[place[r]] += rate * hint_up * labels[r] / n
    kept[0] = to_ball(a, square, radius, m)
    if square > radius * radius:
        kept[1] *= radius / math.sqrt(square)
    return m


@hot
def bao2ks_reservoir(code, par, atoms, a, m, V, labels, n, x, row, hint_row, kept):
    """Bring <f', hint> and |hint|^2 up to date after a change of the reservoir."""
    inner = 0.0
    square = 0.0
    for r in range(n):
        get_atom(V, r, x)
        kernel_row(code, par, x, atoms, m, row)
        kernel_row(code, par, x, V, n, hint_row)
        inner -= labels[r] * dot(row, a, m) / n
        square += labels[r] * dot(hint_row, labels, n) / (n * n)
    kept[1] = inner
    kept[2] = square


@hot
def bao2ks_choose(p, coin):
    """Return the kernel that the coin picks: probabilities below 1 / 2K frozen at 0."""
    K = p.shape[0]
    total = 0.0
    for i in range(K):
        if p[i] >= 0.5 / K:
            total += p[i]
    running = 0.0
    chosen = 0
    for i in range(K):
        if p[i] >= 0.5 / K:
            if running <= coin * total:
                chosen = i
            running += p[i]
    return chosen


@hot
def bao2ks_bandit(p, L, reals, chosen, observed, confidence):
    """Update the probabilities of the kernels after a loss of the chosen one (GREEN-IX).

    p, L : (K,), in place; reals : (2,): the accuracy eps of this epoch, and the loss in it.
    """
    K = p.shape[0]
    eta = reals[0] / (4.0 * K)
    L[chosen] += observed / (eta + p[chosen])
    reals[1] += observed
    if reals[0] * reals[0] * reals[1] > K * math.log(K / confidence):
        reals[0] *= 0.5
        reals[1] = 0.0
        for i in range(K):
            L[i] = 0.0
    least = L[0]
    for i in range(K):
        least = min(least, L[i])
    total = 0.0
    for i in range(K):
        p[i] = math.exp(-reals[0] / (4.0 * K) * (L[i] - least))
        total += p[i]
    for i in range(K):
        p[i] /= total


@hot
def bao2ks_rate(eta, horizon, this):
    """Return the learning rate: eta, or 10 / sqrt(T) with T the horizon or this round."""
    T = horizon if horizon > 0.0 else this
    return eta if eta > 0.0 else 10.0 / math.sqrt(T)


@hot
def bao2ks_rounds(
    X, y, coins, played, codes, pars, setting, state, counts, reals, kept, p, L, atoms, a, V,
    labels, place, work, forecasts, sizes,
):  # fmt: skip
    """Play B(AO)2KS (Liao and Li 2021) over the rows of X; ``played`` rounds came before.

    coins : (n, 3), uniform draws: the kernel played, the inclusion (or the kernel explored), the
    reservoir; codes : (K,), pars : (K, 3), the kernels; setting : (radius, eta or 0, budget, size
    of the reservoir or 0, beta, horizon or 0, confidence); state : (2,) integers: filled part of
    the reservoir, restarts; counts : (K,) integers, atoms; reals : (2,), as in bao2ks_bandit; kept
    : (K, 3), as in bao2ks_value; p, L : (K,); atoms : (K, d, cap), a : (K, cap); V : (d, M), labels
    : (M,), place : (K, M); work : (3, cap or d), workspace; forecasts, sizes : (n,), written.
    Returns (rounds played, status).
    """
    radius, eta, budget, hints, beta, horizon, confidence = setting
    row, hint_row = work[0], work[1]
    K, d = atoms.shape[0], atoms.shape[1]
    spare = work[2, :d]
    for t in range(X.shape[0]):
        x, label = X[t], y[t]
        this = float(played + t + 1)
        rate = bao2ks_rate(eta, horizon, this)
        n = state[0]
        chosen = bao2ks_choose(p, coins[t, 0])
        forecast, own, hinted = bao2ks_value(
            codes[chosen], pars[chosen], x, atoms[chosen], a[chosen], counts[chosen], V, labels, n,
            rate, radius, kept[chosen], row, hint_row,
        )  # fmt: skip
        if not (abs(forecast) < np.inf and kept[chosen, 0] < np.inf):
            return t, NOT_FINITE
        forecasts[t] = forecast
        explored = min(int(coins[t, 1] * K), K - 1)
        joined, stands = -1, -1  # the kernel whose dictionary x joins, and where
        for i in range(K):
            up, hint_up = 0.0, 1.0
            corner = 0.0
            if i == explored:
                value = forecast
                if i != chosen:
                    value, own, hinted = bao2ks_value(
                        codes[i], pars[i], x, atoms[i], a[i], counts[i], V, labels, n,
                        rate, radius, kept[i], row, hint_row,
                    )  # fmt: skip
                corner = kernel_diag(codes[i], pars[i], x)
                violated = label * value < 1.0
                if K == 1:
                    if not violated:
                        continue
                    apart = math.sqrt(max(corner + kept[0, 2] - 2.0 * label * hinted, 0.0))
                    hint_norm = math.sqrt(max(kept[0, 2], 0.0))
                    include = 0.0
                    if apart > 0.0:
                        include = min(apart / (beta * (apart + hint_norm)), 1.0)
                    if coins[t, 1] < include:
                        up, hint_up = 1.0 / include, 1.0 - 1.0 / include
                else:
                    up, hint_up = float(K) if violated else 0.0, 1.0 - K
                if up != 0.0:
                    joined, stands = i, counts[i]
            counts[i] = bao2ks_step(
                x, label, own if i == explored else 0.0, hinted if i == explored else 0.0, corner,
                up, hint_up, rate, radius, atoms[i], a[i], counts[i], V, labels, n, place[i],
                kept[i],
            )  # fmt: skip
            if not kept[i, 0] < np.inf:
                return t, NOT_FINITE
        if K > 1:
            observed = (1.0 - label * forecast) / (1.0 + radius)
            bao2ks_bandit(p, L, reals, chosen, observed, confidence)
        for i in range(K):
            if counts[i] > budget:
                counts[i] = 0
                kept[i, 0] = 0.0
                kept[i, 1] = 0.0
                state[1] += 1
                for r in range(n):
                    place[i, r] = -1
                if joined == i:
                    joined = -1
        T = horizon if horizon > 0.0 else this
        capacity = hints if hints > 0.0 else math.floor(math.log(T) + 0.5)
        capacity = min(max(capacity, 1.0), float(labels.shape[0]))
        slot = -1
        if n < capacity:
            slot = n
            state[0] = n + 1
        elif coins[t, 2] * this < n:
            slot = min(int(coins[t, 2] * this), n - 1)
        if slot >= 0:
            put_atom(V, slot, x)
            labels[slot] = label
            for i in range(K):
                place[i, slot] = stands if joined == i else -1
                bao2ks_reservoir(
                    codes[i], pars[i], atoms[i], a[i], counts[i], V, labels, state[0], spare, row,
                    hint_row, kept[i],
                )  # fmt: skip
        total = 0
        for i in range(K):
            total += counts[i]
        sizes[t] = total
    return X.shape[0], DONE


@hot
def bao2ks_forecasts(
    X, coin, played, codes, pars, setting, state, counts, kept, p, atoms, a, V, labels, work,
    forecasts,
):  # fmt: skip
    """Write what B(AO)2KS would forecast for each row of X with the next round's coin."""
    i = bao2ks_choose(p, coin)
    rate = bao2ks_rate(setting[1], setting[5], float(played + 1))
    for t in range(X.shape[0]):
        forecasts[t], _, _ = bao2ks_value(
            codes[i], pars[i], X[t], atoms[i], a[i], counts[i], V, labels, state[0], rate,
            setting[0], kept[i], work[0], work[1],
        )  # fmt: skip


# ---------------------------------------------------------------------------------------------
# 10. Linear online convex optimisation (oco); Pros-N-KONS
# ---------------------------------------------------------------------------------------------
#
# Both faces of a learner are these loops. A round on features x has the gradient g = l'(w.x, y) x;
# a round of a game is the linear loss <g, w>: x is the gradient and the derivative is 1.

LINEAR_LOSS = -1  # the loss <x, w>, whatever the label
MISTAKE_LOSS = -2  # oco Algorithm 2: -y where y f <= 0, else 0

# Update rules of the first-order learners.
GRADIENT_STEP = 0
LAZY_BALL = 1
P_NORM = 2
ENTROPY = 3
SQRT_STEPS = 4
LENGTH_STEPS = 5
ADAGRAD = 6
STRONGLY_CONVEX = 7
# The entries of ``par``: step; exponent of t in the step; curvature of the losses; radius (infinity
# for none); p; scale of the simplex; sigma; weight of |w|^2 / 2 that rounds on features add.
ETA, POWER, LAM, RADIUS, P, SCALE, SIGMA, DECAY = range(8)

ALL_SPACE = 0
BALL = 1
SIMPLEX = 2
MOST_STEPS = 100  # of the Newton iteration for a multiplier; it takes about 5


@hot
def round_derivative(loss, forecast, y):
    """Return the derivative of a loss, or of the two that only this section has."""
    if loss == LINEAR_LOSS:
        return 1.0
    if loss == MISTAKE_LOSS:
        return -y if y * forecast <= 0.0 else 0.0
    return loss_derivative(loss, forecast, y)


@hot
def euclidean_norm(w, d):
    """Return |w|_2, also where the squares overflow."""
    square = dot(w, w, d)
    if square < np.inf and square > 1e-280:
        return math.sqrt(square)
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(w[j]))
    if largest == 0.0 or not largest < np.inf:
        return largest
    s = 0.0
    for j in range(d):
        s += (w[j] / largest) ** 2
    return largest * math.sqrt(s)


@hot
def project_ball(w, radius, d):
    """Project w on the Euclidean ball, in place."""
    norm = euclidean_norm(w, d)
    if norm > radius:
        shrink = radius / norm
        for j in range(d):
            w[j] *= shrink


@hot
def p_norm_map(G, eta, p, w, d):
    """Write the maximiser of <-G, w> - |w|_p^2 / (2 eta). G, w : (d,)."""
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(G[j]))
    if largest == 0.0:
        for j in range(d):
            w[j] = 0.0
        return
    q = p / (p - 1.0)
    total = 0.0
    for j in range(d):
        w[j] = (abs(G[j]) / largest) ** (q - 1.0)
        total += w[j] * (abs(G[j]) / largest)
    # |G|_q^{2-q} |G_j|^{q-1}, with the largest entry taken out of the norm.
    factor = eta * largest * total ** ((2.0 - q) / q)
    for j in range(d):
        w[j] *= -factor if G[j] > 0.0 else factor


@hot
def entropy_map(G, eta, scale, w, d):
    """Write the maximiser of <-G, w> - sum w log(w) / eta on the simplex of sum ``scale``."""
    lowest = np.inf
    for j in range(d):
        lowest = min(lowest, G[j])
    total = 0.0
    for j in range(d):
        w[j] = exp_nonpositive(-eta * (G[j] - lowest))
        total += w[j]
    shrink = scale / total
    for j in range(d):
        w[j] *= shrink


@hot
def slow_step(rule, par, slope, decay, x, clock, w, G, S):
    """Close a round by the rules whose point is a map of sums; see first_order_rounds."""
    d = w.shape[0]
    eta = par[ETA]
    t = clock[0]
    if rule == STRONGLY_CONVEX:
        # w_{t+1} = (sum of points - sum of gradients / lam) / (t + 1)
        rate = slope / par[LAM]
        keep = 1.0 - decay / par[LAM]
        share = 1.0 / (t + 1.0)
        for j in range(d):
            S[j] += keep * w[j] - rate * x[j]
            w[j] = share * S[j]
        return
    if slope != 0.0:
        for j in range(d):
            G[j] += slope * x[j]
    if rule == SQRT_STEPS:
        factor = -eta / math.sqrt(t + 1.0)
        for j in range(d):
            w[j] = factor * G[j]
        return
    if slope == 0.0:
        return
    if rule == LENGTH_STEPS:
        clock[1] += slope * slope * dot(x, x, d)
        factor = -eta / math.sqrt(par[SIGMA] + clock[1])
        for j in range(d):
            w[j] = factor * G[j]
    elif rule == P_NORM:
        p_norm_map(G, eta, par[P], w, d)
    elif rule == ENTROPY:
        entropy_map(G, eta, par[SCALE], w, d)
    else:
        for j in range(d):
            w[j] = -eta * G[j]
        project_ball(w, par[RADIUS], d)


@hot
def first_order_rounds(X, y, loss, rule, par, clock, w, G, S, forecasts):
    """Play rounds of a first-order learner: forecast w.x, then the update rule.

    The gradient is slope x + decay w; decay is 0 but for the two rules for strongly convex losses.
    The two rules that reach the speed of memory are written out in the loop.

    X : (n, d); y : (n,); loss, rule : codes; par : (8,), hyper-parameters; clock : (2,), rounds
    played and the sum of |g|^2; w, G, S : (d,), the point, the sum of gradients and a second sum;
    clock, w, G, S in place; forecasts : (n,), written. Returns (rounds played, status).
    """
    d = w.shape[0]
    eta = par[ETA]
    sigma = par[SIGMA]
    decay = 0.0 if loss == LINEAR_LOSS else par[DECAY]
    for t in range(y.shape[0]):
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        clock[0] += 1.0
        if rule == GRADIENT_STEP:
            step = eta
            if par[POWER] == 0.5:
                step = eta / math.sqrt(clock[0])
            elif par[POWER] == 1.0:
                step = 1.0 / (par[LAM] * clock[0])
            keep = 1.0 - step * decay
            slope = step * slope
            if keep != 1.0:
                for j in range(d):
                    w[j] = keep * w[j] - slope * x[j]
            elif slope != 0.0:
                for j in range(d):
                    w[j] -= slope * x[j]
            if par[RADIUS] < np.inf:
                project_ball(w, par[RADIUS], d)
        elif rule == ADAGRAD:
            if slope != 0.0:
                for j in range(d):
                    g = slope * x[j]
                    sum_g = G[j] + g
                    sum_square = S[j] + g * g
                    G[j] = sum_g
                    S[j] = sum_square
                    w[j] = -eta * sum_g / math.sqrt(sigma + sum_square)
        else:
            slow_step(rule, par, slope, decay, x, clock, w, G, S)
    return y.shape[0], DONE


# Several rounds of the online Newton step: with p = U^-T x of each round for the U before all of
# them, H = P D^-1 P' holds x_i' A^-1 x_j, which Sherman and Morrison bring up to date in the small,
# so that all forecasts and weights are known before one sweep adds the rounds to the factor. Where
# eta H is large their differences would cancel: there the rounds are played one by one.
CANCELS = 100.0
SMALL = 2 * LANES  # columns of the arrays for a block: loops of constant length become vectors


@hot
def solve_rounds(U, inv_d, rounds, betas, a, count, r):
    """Turn the first ``count`` rounds x into p = U^-T x; arguments as in factor_rounds."""
    for k in range(0, r, TILE):
        if count == 1:
            solve_rows_1(U, inv_d, rounds, betas, a, k, r)
        for s in range(0, count - 1, SWEEP):
            stop = s + SWEEP
            solve_rows_3(U, inv_d, rounds[s:stop], betas[s:stop], a[s:stop], k, r)


@hot
def slab_shift(forecast, C, q):
    """Return how far along A^-1 x the point moves to forecast within [-C, C]."""
    if forecast > C:
        return (forecast - C) / q
    if forecast < -C:
        return (forecast + C) / q
    return 0.0


@hot
def newton_weights(H, m, y, loss, eta, C, count, slopes, shifts, late, forecasts):
    """Play the rounds of a block in the small; return (rounds played, status).

    H : (cap, SMALL), x_i' A^-1 x_j; m : (SMALL,), w.x_j, both for A and w before the block, in
    place; slopes, shifts : (cap,), written: derivatives and moves onto the slab; late : (cap,),
    written: the moves of rounds without a gradient, as A^-1 sum late_j x_j with the A after the
    block.
    """
    for i in range(count):
        late[i] = 0.0
    for i in range(count):
        forecast = m[i]
        if not abs(forecast) < np.inf:
            return i, NOT_FINITE
        q = H[i, i]
        shift = slab_shift(forecast, C, q)
        if shift != 0.0:
            forecast = C if forecast > 0.0 else -C
        forecasts[i] = forecast
        slope = round_derivative(loss, forecast, y[i])
        weight = eta * slope * slope
        grown = 1.0 + weight * q
        moved = shift + slope / grown
        slopes[i] = slope
        shifts[i] = shift
        for j in range(i):  # A has grown by the weight of this round
            if late[j] != 0.0:
                late[i] += weight * late[j] * H[i, j]
        if slope == 0.0:
            late[i] -= shift
        row = H[i]
        for j in range(SMALL):
            m[j] -= moved * row[j]
        if weight != 0.0:
            rate = weight / grown
            for j in range(i + 1, count):
                other = H[j]
                share = rate * other[i]
                for k in range(SMALL):
                    other[k] -= share * row[k]
    return count, DONE


@hot
def newton_block(X, y, loss, eta, C, U, inv_d, c, work, small, forecasts):
    """Play a block of rounds together; (0, NEED_ROOM) if they must be played one by one.

    Arguments as in newton_rounds; X has a multiple of SWEEP rows, at most TOGETHER.
    """
    count, r = X.shape
    rounds, betas = work[:TOGETHER], work[TOGETHER : 2 * TOGETHER]
    scan = work[2 * TOGETHER]
    H, m, slopes = small[:TOGETHER], small[TOGETHER], small[TOGETHER + 1]
    shifts, late, a = small[TOGETHER + 2], small[TOGETHER + 3], small[TOGETHER + 4]
    for s in range(count):
        target = rounds[s]
        source = X[s]
        for j in range(r):
            target[j] = source[j]
    solve_rounds(U, inv_d, rounds, betas, a, count, r)
    for i in range(count):
        p = rounds[i]
        v = betas[i]
        for j in range(r):
            v[j] = inv_d[j] * p[j]
        for j in range(i + 1):
            H[i, j] = dot(v, rounds[j], r)
            H[j, i] = H[i, j]
        if not eta * H[i, i] <= CANCELS:
            return 0, NEED_ROOM
        m[i] = dot(p, c, r)
    played, status = newton_weights(
        H, m, y, loss, eta, C, count, slopes, shifts, late, forecasts
    )  # fmt: skip
    if status != DONE:
        return played, status
    root = math.sqrt(eta)
    moved_late = False
    for s in range(count):
        target = rounds[s]
        source = X[s]
        scale = root * slopes[s]
        for j in range(r):
            target[j] = scale * source[j]
        a[s] = 1.0
        moved_late = moved_late or late[s] != 0.0
    factor_rounds(U, inv_d, rounds, betas, a, count, r)
    for s in range(count):
        if slopes[s] != 0.0:
            forecast = ridge_forecast(rounds[s], c, scan, r)
            move = (shifts[s] * a[s] + slopes[s]) / (root * slopes[s])
            ridge_learn(forecast - move, betas[s], c, scan, r)
    if moved_late:
        p = rounds[0]
        for j in range(r):
            p[j] = 0.0
        for s in range(count):
            if late[s] != 0.0:
                for j in range(r):
                    p[j] += late[s] * X[s, j]
        solve_rounds(U, inv_d, rounds, betas, a, 1, r)
        for j in range(r):
            c[j] += inv_d[j] * p[j]
    return count, DONE


@hot
def newton_round(x, y, loss, eta, C, U, inv_d, c, work, forecasts):
    """Play one round; arguments as in newton_rounds but for x : (r,) and forecasts : (1,)."""
    r = x.shape[0]
    z, betas, scan = work[0:1], work[1:2], work[2]
    p, a = z[0], work[3]
    for j in range(r):
        p[j] = x[j]
    solve_rounds(U, inv_d, z, betas, a, 1, r)
    forecast = dot(p, c, r)
    if not abs(forecast) < np.inf:
        return NOT_FINITE
    if abs(forecast) > C:
        q = 0.0
        for k in range(r):
            q += inv_d[k] * p[k] * p[k]
        shift = slab_shift(forecast, C, q)
        for k in range(r):
            c[k] -= shift * inv_d[k] * p[k]
        forecast = C if forecast > 0.0 else -C
    forecasts[0] = forecast
    slope = round_derivative(loss, forecast, y)
    if slope == 0.0:
        return DONE
    root = math.sqrt(eta)
    for j in range(r):
        p[j] = root * slope * x[j]
    a[0] = 1.0
    factor_rounds(U, inv_d, z, betas, a, 1, r)
    m = ridge_forecast(p, c, scan, r)
    ridge_learn(m - 1.0 / root, betas[0], c, scan, r)
    return DONE


@hot
def newton_rounds(X, y, loss, eta, C, U, inv_d, c, work, small, forecasts):
    """Play rounds of the online Newton step, projected on |w.x| <= C (kons Algorithm 1, linear).

    A = alpha I + eta sum g g' = U' D U. A round takes w to w - A^-1 g, the ridge estimate after one
    more point z = sqrt(eta) g with the label z.w - 1 / sqrt(eta).

    X : (n, r), padded with zeros to r a multiple of LANES; y : (n,); loss : code; C : infinity for
    no projection; U : (r, r), inv_d, c : (r,), the state, w = U^-1 c, in place; work :
    (2 TOGETHER + 1, r) and small : (TOGETHER + 5, SMALL), workspace; forecasts : (n,), written.
    Returns (rounds played, status).
    """
    n = y.shape[0]
    t = 0
    while t < n:
        count = min(TOGETHER, (n - t) // SWEEP * SWEEP)
        if count > 0:
            stop = t + count
            played, status = newton_block(
                X[t:stop], y[t:stop], loss, eta, C, U, inv_d, c, work, small, forecasts[t:stop]
            )
            if status == NOT_FINITE:
                return t + played, status
            if status == DONE:
                t = stop
                continue
        stop = t + max(count, 1)
        while t < stop:
            status = newton_round(
                X[t], y[t], loss, eta, C, U, inv_d, c, work, forecasts[t : t + 1]
            )  # fmt: skip
            if status != DONE:
                return t, status
            t += 1
    return n, DONE


@hot
def newton_forecasts(X, C, U, inv_d, c, work, forecasts):
    """Write what the online Newton step would forecast for each row of X."""
    n, r = X.shape
    p = work[0:1]
    for t in range(n):
        for j in range(r):
            p[0, j] = X[t, j]
        solve_rounds(U, inv_d, p, work[1:2], work[2], 1, r)
        forecasts[t] = max(-C, min(C, dot(p[0], c, r)))


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


@hot
def sketched_newton_rounds(X, y, loss, alpha, eta, C, S, R, w, state, small, u, forecasts):
    """Play rounds of the online Newton step with A = alpha I + S'S, S a sketch of the gradients.

    S : (rows, d), of which state[0] rows are used; R : (rows, rows), upper factor of alpha I + SS';
    w : (d,); state : (1,); all in place; small : (2, rows), u : (d,), workspace; forecasts : (n,),
    written. Returns (rounds played, status); NEED_ROOM: the sketch is full, shrink it first.
    """
    d = w.shape[0]
    root = math.sqrt(eta)
    column, v = small[0], small[1]
    for t in range(y.shape[0]):
        m = state[0]
        if m == S.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        forecast = dot(x, w, d)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        # u = A^-1 x = (x - S' (alpha I + SS')^-1 S x) / alpha
        for i in range(m):
            column[i] = dot(S[i], x, d)
        solve_upper_transposed(R, column, m)
        for i in range(m):
            v[i] = column[i]
        square = dot(x, x, d)
        solve_upper(R, v, m)
        for j in range(d):
            u[j] = x[j]
        for i in range(m):
            row = S[i]
            for j in range(d):
                u[j] -= v[i] * row[j]
        for j in range(d):
            u[j] /= alpha
        if abs(forecast) > C:
            clipped = C if forecast > 0.0 else -C
            q = dot(u, x, d)
            if not q > 0.0:
                return t, NOT_POSITIVE
            shift = (forecast - clipped) / q
            for j in range(d):
                w[j] -= shift * u[j]
            forecast = clipped
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        if slope == 0.0 or square == 0.0:  # no row of zeros in the sketch
            continue
        scaled = slope * root
        row = S[m]
        for j in range(d):
            row[j] = scaled * x[j]
        for i in range(m):
            column[i] *= scaled
        pivot = bordered_cholesky(R, column, alpha + scaled * scaled * square, m)
        if not pivot > 0.0:
            return t, NOT_POSITIVE
        state[0] = m + 1
        # A^-1 g after the round is u slope / (1 + eta slope^2 x'u)
        q = dot(u, x, d)
        step = slope / (1.0 + scaled * scaled * q)
        for j in range(d):
            w[j] -= step * u[j]
    return y.shape[0], DONE


@hot
def pros_n_kons_rounds(
    X, y, coins, first, code, par, loss, setting, state, atoms, weights, dictionary, span, R, U,
    inv_d, c, work, forecasts, sizes,
):  # fmt: skip
    """Play Pros-N-KONS or, without restarts, CON-KONS from row ``first`` (baselines.md 1.1).

    In coordinates in which the kernel matrix of the span is the identity; they are nested, so that
    carrying w and A over to a larger dictionary leaves them as they are.
    setting : (C, alpha, eta, mu, beta, eps, restart); state : (3,) integers, dictionary size, rank
    of its span, restarts; KORS's arrays and the span's as in nystrom_awv_rounds, U, inv_d, c as in
    newton_rounds; work : (7, cap). Returns (rounds played, status).
    """
    C, alpha, eta, mu, beta, eps, restart = setting
    row, b, q, newton = work[0], work[1], work[2], work[3:7]
    for t in range(first, y.shape[0]):
        m, rank = state[0], state[1]
        if m == weights.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        corner = kernel_diag(code, par, x)
        span_coordinates(row, span, R, q, rank)
        probability = kors_probability(row, weights, dictionary, b, corner, mu, beta, eps, m)
        if not probability >= 0.0:
            return t, NOT_FINITE
        if coins[t] < probability:
            if restart and m > 0:
                for k in range(rank):
                    inv_d[k] = 1.0 / alpha
                    c[k] = 0.0
                    tail = U[k, k + 1 : rank]
                    for j in range(tail.shape[0]):
                        tail[j] = 0.0
                state[2] += 1
            rho_square = corner - dot(q, q, rank)
            if rho_square > NULL_DIRECTION * corner:
                span_grow(R, span, q, math.sqrt(rho_square), rank, m)
                inv_d[rank] = 1.0 / alpha  # as padding it may have been touched by rounding
                rank += 1
                state[1] = rank
            if not kors_keep(weights, dictionary, b, corner, mu, probability, m) > 0.0:
                return t, NOT_POSITIVE
            put_atom(atoms, m, x)
            state[0] = m + 1
        sizes[t] = state[0]
        forecasts[t] = 0.0
        padded = (rank + LANES - 1) // LANES * LANES
        if padded == 0:
            continue
        for j in range(rank, padded):
            q[j] = 0.0
        status = newton_round(
            q[:padded], y[t], loss, 0.5 * eta, C, U, inv_d, c, newton, forecasts[t : t + 1]
        )
        if status != DONE:
            return t, status
    return y.shape[0], DONE


@hot
def pros_n_kons_forecasts(
    X, coin, code, par, setting, state, atoms, weights, dictionary, span, R, U, inv_d, c, work,
    forecasts,
):  # fmt: skip
    """Write what Pros-N-KONS would forecast for each row of X with the next round's coin.

    Where the coin would keep x, a restart forecasts 0, and without restarts the new direction has
    no weight yet. Arguments as in pros_n_kons_rounds.
    """
    C, alpha, eta, mu, beta, eps, restart = setting
    row, b, q = work[0], work[1], work[2]
    m, rank = state[0], state[1]
    for t in range(X.shape[0]):
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        span_coordinates(row, span, R, q, rank)
        solve_upper_transposed(U, q, rank)
        forecasts[t] = min(max(dot(q, c, rank), -C), C)
        if restart:
            corner = kernel_diag(code, par, x)
            if coin < kors_probability(row, weights, dictionary, b, corner, mu, beta, eps, m):
                forecasts[t] = 0.0


# ---------------------------------------------------------------------------------------------
# 11. Experts
# ---------------------------------------------------------------------------------------------

AGGREGATING = 0
AVERAGE = 1
HEDGE = 2


@hot
def expert_weights(totals, eta, weights):
    """Write exp(-eta total) for each expert, scaled to the sum 1."""
    entropy_map(totals, eta, 1.0, weights, totals.shape[0])


@hot
def expert_rate(kind, B, played, count):
    """Return the learning rate of the next round."""
    if kind == AGGREGATING:
        return 1.0 / (2.0 * B * B)
    if kind == AVERAGE:
        return 1.0 / (8.0 * B * B)
    return math.sqrt(8.0 * math.log(count) / (played + 1.0)) / B


@hot
def expert_forecast(kind, B, weights, row):
    """Return the aggregate of the experts' forecasts in ``row``; experts_rounds has the rules."""
    count = row.shape[0]
    if kind != AGGREGATING:
        s = 0.0
        for i in range(count):
            value = row[i]
            if kind == AVERAGE:
                value = max(-B, min(B, value))
            s += weights[i] * value
        return s
    # (g(-B) - g(B)) / (4 B) with g(y) = -log(sum w exp(-eta (y - f)^2)) / eta. The nearest
    # forecasts are taken out of the exponents, and squares are differenced as products: exact at
    # large B.
    lowest = np.inf
    highest = -np.inf
    for i in range(count):
        if weights[i] > 0.0:
            value = max(-B, min(B, row[i]))
            lowest = min(lowest, value)
            highest = max(highest, value)
    sum_low = 0.0
    sum_high = 0.0
    for i in range(count):
        if weights[i] > 0.0:
            value = max(-B, min(B, row[i]))
            low = (value - lowest) / B * ((value + lowest) / B + 2.0)
            high = (highest - value) / B * (2.0 - (value + highest) / B)
            sum_low += weights[i] * math.exp(-0.5 * low)
            sum_high += weights[i] * math.exp(-0.5 * high)
    middle = 0.5 * (lowest + highest) * (1.0 + (lowest - highest) / (2.0 * B))
    forecast = middle + 0.5 * B * (math.log(sum_high) - math.log(sum_low))
    return max(-B, min(B, forecast))


@hot
def experts_rounds(F, y, kind, B, loss, played, totals, weights, forecasts):
    """Aggregate the forecasts of experts, round by round.

    F : (n, experts); y : (n,); kind, loss : codes; B : bound; played : rounds before; totals :
    (experts,), their losses so far, in place; weights : (experts,), workspace; forecasts : (n,),
    written. Returns (rounds played, status).
    """
    count = totals.shape[0]
    for t in range(y.shape[0]):
        eta = expert_rate(kind, B, played + t, count)
        expert_weights(totals, eta, weights)
        forecast = expert_forecast(kind, B, weights, F[t])
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        for i in range(count):
            value = F[t, i]
            if kind != HEDGE:
                value = max(-B, min(B, value))
            totals[i] += loss_value(loss, value, y[t])
    return y.shape[0], DONE
