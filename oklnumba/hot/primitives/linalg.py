"""Vectors, triangular solves and growing Cholesky factors.

Factors are (cap, cap), vectors (cap,), of which the first m rows and entries are in use.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import exp_nonpositive, larger, smaller
from oklnumba.hot.primitives.jit import exact, exact_apart, hot, hot_apart
from oklnumba.hot.primitives.udu import (
    SWEEP,
    TILE,
    four,
    solve_column,
    solve_columns,
    solve_three_wide,
)

REFUSED, SAME, OTHER = range(3)  # what take_finite returns


@hot
def dot(a, b, m):
    """Return the product of the first m entries of a and b."""
    s = 0.0
    for j in range(m):
        s += a[j] * b[j]
    return s


@hot
def all_finite(a):
    """Say whether all entries of a : (m,) are finite."""
    finite = True
    for j in range(a.shape[0]):
        finite = finite & (abs(a[j]) < np.inf)
    return finite


@hot
def take_finite(x, a):
    """Copy x : (m,) into a : (d,); return REFUSED if m is not d or an entry is not finite.

    Else SAME if ``a`` had these values, up to the sign of zeros, and OTHER if not.
    """
    if x.shape[0] != a.shape[0]:
        return REFUSED
    finite, other = True, False
    for j in range(a.shape[0]):
        old, new = a[j], x[j]
        a[j] = new
        finite = finite & (abs(new) < np.inf)
        other = other | (old != new) | (math.copysign(1.0, old) != math.copysign(1.0, new))
    if not finite:
        return REFUSED
    return OTHER if other else SAME


@hot
def product_rows(Z, w, out):
    """Write Z w. Z : (n, r); w : (r,); out : (n,), written."""
    for t in range(out.shape[0]):
        out[t] = dot(Z[t], w, w.shape[0])


@hot_apart
def solve_upper_transposed(R, b, m):
    """Solve R' x = b for upper triangular R, four rows a pass; b becomes x."""
    k = 0
    while k + 4 <= m:
        v0 = b[k] / R[k, k]
        v1 = (b[k + 1] - v0 * R[k, k + 1]) / R[k + 1, k + 1]
        v2 = (b[k + 2] - v0 * R[k, k + 2] - v1 * R[k + 1, k + 2]) / R[k + 2, k + 2]
        v3 = b[k + 3] - v0 * R[k, k + 3] - v1 * R[k + 1, k + 3] - v2 * R[k + 2, k + 3]
        v3 = v3 / R[k + 3, k + 3]
        b[k], b[k + 1], b[k + 2], b[k + 3] = v0, v1, v2, v3
        r0, r1 = R[k, k + 4 : m], R[k + 1, k + 4 : m]
        r2, r3 = R[k + 2, k + 4 : m], R[k + 3, k + 4 : m]
        z = b[k + 4 : m]
        for j in range(z.shape[0]):
            z[j] -= (v0 * r0[j] + v1 * r1[j]) + (v2 * r2[j] + v3 * r3[j])
        k += 4
    while k < m:  # at most three rows are left, whose off-diagonal part is inside this corner
        b[k] = v = b[k] / R[k, k]
        for j in range(k + 1, m):
            b[j] -= v * R[k, j]
        k += 1


@exact
def solve_corner(R, b, k):
    """Take b through rows k to k + 3 of R' x = b, up to column k + 3."""
    b0, b1, b2, b3 = four(b, k)
    b0 /= R[k, k]
    b1 = (b1 - b0 * R[k, k + 1]) / R[k + 1, k + 1]
    b2 = (b2 - b0 * R[k, k + 2] - b1 * R[k + 1, k + 2]) / R[k + 2, k + 2]
    b3 = b3 - b0 * R[k, k + 3] - b1 * R[k + 1, k + 3] - b2 * R[k + 2, k + 3]
    b[k], b[k + 1], b[k + 2], b[k + 3] = b0, b1, b2, b3 / R[k + 3, k + 3]


@exact_apart
def solve_rows(R, B, count, m):
    """Solve R' x = b for the first ``count`` rows b of B, in one pass over R; m : fours.

    They become x. An entry goes through the same products in the same order as in solve_rest.
    """
    for k in range(0, m, TILE):
        i = k + TILE
        rows = R[k, i:m], R[k + 1, i:m], R[k + 2, i:m], R[k + 3, i:m]
        for s in range(count):
            solve_corner(R, B[s], k)
        for s in range(count % SWEEP):
            solve_columns(rows, B[s, i:m], four(B[s], k), m - i)
        for s in range(count % SWEEP, count, SWEEP):
            solve_three_wide(rows, (B[s, k:m], B[s + 1, k:m], B[s + 2, k:m]), m - i)


@exact_apart
def solve_rest(R, known, b, m):
    """Solve R' x = b, where b has the first ``known`` entries of x, fours; b becomes x."""
    whole = m - m % TILE
    for k in range(0, whole, TILE):
        i = k + TILE if k >= known else known
        if k >= known:
            solve_corner(R, b, k)
        r0, r1, r2, r3 = R[k, i:m], R[k + 1, i:m], R[k + 2, i:m], R[k + 3, i:m]
        z, p = b[i:m], four(b, k)
        for j in range(z.shape[0]):
            z[j] = solve_column((r0[j], r1[j], r2[j], r3[j]), z[j], p)
    for k in range(whole, m):
        b[k] = x = b[k] / R[k, k]
        for j in range(k + 1, m):
            b[j] -= x * R[k, j]


@hot
def solve_upper(R, b, m):
    """Solve R x = b for upper triangular R; b becomes x."""
    for k in range(m - 1, -1, -1):
        row, z, s = R[k, k + 1 : m], b[k + 1 : m], 0.0
        for j in range(z.shape[0]):
            s += row[j] * z[j]
        b[k] = (b[k] - s) / R[k, k]


@hot
def solve_lower(L, b, m):
    """Solve L x = b for lower triangular, row-major L, four rows a pass; b becomes x."""
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
    """Solve L' x = b for lower triangular, row-major L; b becomes x."""
    for k in range(m - 1, -1, -1):
        b[k] = v = b[k] / L[k, k]
        row, z = L[k, :k], b[:k]
        for j in range(k):
            z[j] -= v * row[j]


@hot
def bordered_cholesky(R, column, diagonal, m):
    """Turn the upper factor R of A into that of [[A, c], [c', diagonal]], given column = R^-T c.

    Returns the new pivot diagonal - |column|^2; if it is not positive R is unchanged.
    """
    pivot = diagonal - dot(column, column, m)
    if pivot > 0.0:
        for i in range(m):
            R[i, m] = column[i]
        R[m, m] = math.sqrt(pivot)
    return pivot


@hot
def cholesky_row(L, t):
    """Turn row t of L from the matrix's into its factor's; return the pivot's square."""
    row = L[t]
    solve_lower(L, row, t)
    square = row[t] - dot(row, row, t)
    if square > 0.0:
        row[t] = math.sqrt(square)
    return square


@hot
def multiply(a, factor, m):
    """Multiply the first m entries of a."""
    part = a[:m]
    for j in range(m):
        part[j] *= factor


@hot
def entropy_map(G, eta, scale, w, d):
    """Write the maximiser of <-G, w> - sum w log(w) / eta, sum w = scale (of oco Example 5.4)."""
    lowest, total = np.inf, 0.0
    for j in range(d):
        lowest = smaller(lowest, G[j])
    for j in range(d):
        w[j] = exp_nonpositive(-eta * (G[j] - lowest))
        total += w[j]
    multiply(w, scale / total, d)


@hot
def add_multiple(a, factor, b, m):
    """Add factor * b to a, first m entries."""
    target, source = a[:m], b[:m]
    for j in range(m):
        target[j] += factor * source[j]


@hot
def euclidean_norm(w, d):
    """Return |w|_2, also where the squares overflow."""
    square = dot(w, w, d)
    if square < np.inf and square > 1e-280:
        return math.sqrt(square)
    max_abs = 0.0
    for j in range(d):
        max_abs = larger(max_abs, abs(w[j]))
    if max_abs == 0.0 or not max_abs < np.inf:
        return max_abs
    s = 0.0
    for j in range(d):
        share = w[j] / max_abs
        s += share * share
    return max_abs * math.sqrt(s)


@hot
def project_ball(w, radius, d):
    """Project w on the Euclidean ball, in place."""
    norm = euclidean_norm(w, d)
    if norm > radius:
        multiply(w, radius / norm, d)


@exact
def write_ranges(A, far, rounding, middles, reaches):
    """Write the median of each row of A, and ``far`` times the median deviation from it.

    A : sorted, NaN last. Only values count that differ from the median, by more than ``rounding``
    of it; if none do it is infinite. Deviations fall up to the median, and rise behind it.
    """
    for i in range(A.shape[0]):
        n = A.shape[1]
        while n > 0 and A[i, n - 1] != A[i, n - 1]:
            n -= 1
        middles[i], reaches[i] = np.nan, np.inf
        if n == 0:
            continue
        # Halved first: the sum of two may be too large.
        middle = 0.5 * A[i, (n - 1) // 2] + 0.5 * A[i, n // 2]
        below, above, least = n // 2, n // 2, rounding * abs(middle)
        while below > 0 and not middle - A[i, below - 1] > least:
            below -= 1
        while above < n and not A[i, above] - middle > least:
            above += 1
        count = below + n - above
        lower = upper = np.inf
        for _ in range(count // 2 + 1 if count > 0 else 0):
            if above == n or below > 0 and middle - A[i, below - 1] <= A[i, above] - middle:
                below -= 1
                lower, upper = upper, middle - A[i, below]
            else:
                lower, upper = upper, A[i, above] - middle
                above += 1
        middles[i] = middle
        reaches[i] = far * (0.5 * (upper if count % 2 == 1 else lower) + 0.5 * upper)
