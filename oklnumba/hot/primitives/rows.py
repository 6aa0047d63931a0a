"""Kernel rows: k(x, atom_j) along a dictionary, and blocks and products of them.

x : (d,); atoms : (d, cap), of which the first m are in use; out : (cap,) or (n, cap), written.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import FAR, exp_nonpositive, smaller
from oklnumba.hot.primitives.jit import exact, exact_wide, hot, hot_wide

GAUSSIAN, LAPLACIAN, LAPLACIAN_L1, MATERN_3_2, MATERN_5_2, POLYNOMIAL, LINEAR, MATRIX = range(8)
# Entries of a kernel's numbers: of the radial ones; of Polynomial. Of MATRIX: n, then n^2 values.
RATE = 0
SCALE, COEF0, DEGREE = range(3)
PRODUCT, SQUARE, ABSOLUTE = range(3)  # kinds of ``accumulate``
EDGE = 512  # points: kernel_product goes through the kernel matrix in squares of so many
PASS_ROWS = 16  # in one pass over a dictionary, which may outgrow the caches
BLOCK_ROWS = 128  # in one pass, where so many are known
PASS_COLUMNS, PASS_INPUTS = 400, 128  # a part of the atoms for all rows, in the second cache
WIDE = 512  # inputs from which on several rounds take one pass


@exact
def term(kind, x, z):
    """Return what one input adds to a product or to a distance.

    Differences instead of norms and products: exact for equal points and for data far from the
    origin.
    """
    if kind == PRODUCT:
        return x * z
    return (x - z) * (x - z) if kind == SQUARE else abs(x - z)


@exact
def add_terms(kind, s, x0, x1, x2, x3, z0, z1, z2, z3):
    """Return s plus four terms, from left to right: the same fused products in any loop."""
    s = (s + term(kind, x0, z0)) + term(kind, x1, z1)
    return (s + term(kind, x2, z2)) + term(kind, x3, z3)


@exact
def accumulate(kind, x, first, last, atoms, start, m, out):
    """Add the terms of the inputs first to last - 1 of x, for the atoms start to m - 1, to out.

    All together are x.atom_j, |x - atom_j|^2 or |x - atom_j|_1, by ``kind``. Input 0 starts anew.
    """
    o, k = out[start:m], first
    if first == 0:
        for j in range(o.shape[0]):
            o[j] = 0.0
    while k + 4 <= last:
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        r0, r1 = atoms[k, start:m], atoms[k + 1, start:m]
        r2, r3 = atoms[k + 2, start:m], atoms[k + 3, start:m]
        for j in range(o.shape[0]):
            o[j] = add_terms(kind, o[j], x0, x1, x2, x3, r0[j], r1[j], r2[j], r3[j])
        k += 4
    while k < last:
        xk, rk = x[k], atoms[k, start:m]
        for j in range(o.shape[0]):
            o[j] += term(kind, xk, rk[j])
        k += 1


@exact_wide
def accumulate_four(kind, X, i, first, last, atoms, start, m, out, at):
    """Do it for rows i to i + 3 of X and the inputs first to last - 1, a multiple of four."""
    a, b, c, e = out[at, start:m], out[at + 1, start:m], out[at + 2, start:m], out[at + 3, start:m]
    w, x, y, z = X[i], X[i + 1], X[i + 2], X[i + 3]
    if first == 0:
        for j in range(a.shape[0]):
            a[j] = b[j] = c[j] = e[j] = 0.0
    for k in range(first, last, 4):
        r0, r1 = atoms[k, start:m], atoms[k + 1, start:m]
        r2, r3 = atoms[k + 2, start:m], atoms[k + 3, start:m]
        w0, w1, w2, w3 = w[k], w[k + 1], w[k + 2], w[k + 3]
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        z0, z1, z2, z3 = z[k], z[k + 1], z[k + 2], z[k + 3]
        for j in range(a.shape[0]):
            a[j] = add_terms(kind, a[j], w0, w1, w2, w3, r0[j], r1[j], r2[j], r3[j])
            b[j] = add_terms(kind, b[j], x0, x1, x2, x3, r0[j], r1[j], r2[j], r3[j])
            c[j] = add_terms(kind, c[j], y0, y1, y2, y3, r0[j], r1[j], r2[j], r3[j])
            e[j] = add_terms(kind, e[j], z0, z1, z2, z3, r0[j], r1[j], r2[j], r3[j])


@exact
def accumulate_rows(kind, X, first, stop, atoms, start, m, out, at):
    """Do it for all inputs of the rows first to stop - 1 of X, in one pass over the atoms.

    Part by part: from the third cache the atoms would come more slowly than products are taken.
    """
    for left in range(start, m, PASS_COLUMNS):
        right = smaller(left + PASS_COLUMNS, m)
        for top in range(0, X.shape[1], PASS_INPUTS):
            bottom = smaller(top + PASS_INPUTS, X.shape[1])
            fours = bottom - bottom % 4
            for i in range(first, stop, 4):
                k, end = top, smaller(i + 4, stop)
                if i + 4 == end and top < fours:
                    accumulate_four(kind, X, i, top, fours, atoms, left, right, out, at + i - first)
                    k = fours
                for r in range(i, end if k < bottom else i):
                    accumulate(kind, X[r], k, bottom, atoms, left, right, out[at + r - first])


@hot
def pair_distances(norm, X, atoms, out):
    """Write |x_i - x_j|_1 if ``norm`` is 1, else |x_i - x_j|^2, of all pairs i <= j, by rows.

    X : (n, d); atoms : (d, n), X'; out : (n (n + 1) / 2,).
    """
    n, at = X.shape[0], 0
    for i in range(n):
        if norm == 1:  # a constant kind each: one that is none would change the order of the sums
            accumulate(ABSOLUTE, X[i], 0, X.shape[1], atoms, i, n, out[at:])
        else:
            accumulate(SQUARE, X[i], 0, X.shape[1], atoms, i, n, out[at:])
        at += n - i - 1


@hot
def integer_power(x, degree):
    """Return x**degree for an integer degree >= 1 held in a float."""
    power = x
    for _ in range(np.int64(degree) - 1):  # numba takes 50 ms to compile int()
        power *= x
    return power


@hot
def matrix_value(par, i, j):
    """Return entry (i, j) of the matrix of a precomputed kernel; NaN outside it."""
    n = par[0]
    if not (0.0 <= i < n and 0.0 <= j < n and i == np.int64(i) and j == np.int64(j)):
        return math.nan
    return par[1 + np.int64(i) * np.int64(n) + np.int64(j)]


@hot_wide
def finish_values(kernel, o):
    """Replace products or distances by the kernel's values."""
    code, par = kernel
    if code == LINEAR:
        return
    if code == POLYNOMIAL:
        scale, coef0, degree = par[SCALE], par[COEF0], par[DEGREE]
        for j in range(o.shape[0]):
            o[j] = integer_power(scale * o[j] + coef0, degree)
        return
    rate = par[RATE]
    if code == GAUSSIAN or code == LAPLACIAN_L1:
        for j in range(o.shape[0]):
            o[j] = exp_nonpositive(-rate * o[j])
        return
    linear = 0.0 if code == LAPLACIAN else 1.0  # a loop for each would take longer to compile
    quadratic = 1.0 / 3.0 if code == MATERN_5_2 else 0.0
    for j in range(o.shape[0]):
        s = smaller(rate * math.sqrt(o[j]), FAR)
        o[j] = (1.0 + linear * s + quadratic * s * s) * exp_nonpositive(-s)


@hot_wide
def kernel_row(kernel, x, atoms, m, out):
    """Write k(x, atom_j) for the first m atoms.

    kernel : its code (above) and its numbers, as components/kernels.py makes them.
    """
    code, par = kernel
    if code == MATRIX:
        for j in range(m):
            out[j] = matrix_value(par, x[0], atoms[0, j])
        return
    if code == LINEAR or code == POLYNOMIAL:
        accumulate(PRODUCT, x, 0, x.shape[0], atoms, 0, m, out)
    elif code == LAPLACIAN_L1:
        accumulate(ABSOLUTE, x, 0, x.shape[0], atoms, 0, m, out)
    else:
        accumulate(SQUARE, x, 0, x.shape[0], atoms, 0, m, out)
    finish_values(kernel, out[:m])


@hot_wide
def kernel_rows(kernel, X, first, stop, atoms, start, m, out, at):
    """Write k(x_i, atom_j), first <= i < stop, start <= j < m, to the rows of out from ``at`` on.

    In one pass over the atoms; a value has the bits that kernel_row gives it.
    """
    code, par = kernel
    if code == MATRIX:
        for i in range(first, stop):
            for j in range(start, m):
                out[at + i - first, j] = matrix_value(par, X[i, 0], atoms[0, j])
        return
    if code == LINEAR or code == POLYNOMIAL:
        accumulate_rows(PRODUCT, X, first, stop, atoms, start, m, out, at)
    elif code == LAPLACIAN_L1:
        accumulate_rows(ABSOLUTE, X, first, stop, atoms, start, m, out, at)
    else:
        accumulate_rows(SQUARE, X, first, stop, atoms, start, m, out, at)
    for i in range(at, at + stop - first):
        finish_values(kernel, out[i, start:m])


@hot
def rows_together(X):
    """Return how many rounds take one pass over the atoms: one of narrow inputs."""
    return PASS_ROWS if X.shape[1] >= WIDE else 1  # the columns of atoms that join take longer


@hot
def next_kernel_row(kernel, X, t, first, atoms, m, known, rows):
    """Write k(x_t, atoms), m values, to row (t - first) mod rows_together of ``rows``.

    From round ``first`` on, rows_together take one pass over the atoms. Atoms that join in these
    rounds are added to each row in its round. known : what the round before returned, how many
    atoms there were when the pass was made; rows : (PASS_ROWS, cap), kept from round to round.
    """
    together = rows_together(X)
    at, start, stop = (t - first) % together, known, t + 1
    if at == 0:
        known, start, stop = m, 0, smaller(t + together, X.shape[0])
    if start < m:
        kernel_rows(kernel, X, t, stop, atoms, start, m, rows, at)
    return known


@hot
def atom_rows(kernel, atoms, first, stop, m, points, rows):
    """Write k(atom_i, atom_j), first <= i < stop, j < m. points : (PASS_ROWS, d), workspace."""
    for i in range(first, stop):
        get_atom(atoms, i, points[i - first])
    kernel_rows(kernel, points, 0, stop - first, atoms, 0, m, rows, 0)


@hot
def kernel_diag(kernel, x):
    """Return k(x, x)."""
    code, par = kernel
    if code == LINEAR or code == POLYNOMIAL:
        s = 0.0
        for k in range(x.shape[0]):
            s += x[k] * x[k]
        if code == LINEAR:
            return s
        return integer_power(par[SCALE] * s + par[COEF0], par[DEGREE])
    return matrix_value(par, x[0], x[0]) if code == MATRIX else 1.0


@hot
def kernel_diags(kernel, X, out):
    """Write k(x_i, x_i). X : (n, d); out : (n,)."""
    for i in range(X.shape[0]):
        out[i] = kernel_diag(kernel, X[i])


@hot
def kernel_block(kernel, X, atoms, m, out):
    """Write k(x_i, atom_j). X : (n, d)."""
    for first in range(0, X.shape[0], BLOCK_ROWS):
        stop = smaller(first + BLOCK_ROWS, X.shape[0])
        kernel_rows(kernel, X, first, stop, atoms, 0, m, out, first)


@hot
def kernel_product(kernel, X, v, share, shares, tile, row, mirrored, out):
    """Add one share of K v to ``out``, from squares of K: each pair of points once, and no matrix.

    They are EDGE points wide; the share has every shares-th column of them. A sum is a chain of
    EDGE + n / 256 terms. X : (n, d); v : (n,); tile : (d, EDGE), row and mirrored : (EDGE,),
    workspace; out : (n,), added to.
    """
    n, d = X.shape
    for first in range(share * EDGE, n, shares * EDGE):
        width = smaller(EDGE, n - first)
        for k in range(d):
            for j in range(width):
                tile[k, j] = X[first + j, k]
        part = v[first : first + width]
        for start in range(first, n, EDGE):
            mirrored[:width] = 0.0
            for i in range(start, smaller(start + EDGE, n)):
                kernel_row(kernel, X[i], tile, width, row)
                s = 0.0
                vi = v[i] if start > first else 0.0  # a diagonal square has both its halves
                for j in range(width):
                    s += row[j] * part[j]
                    mirrored[j] += row[j] * vi
                out[i] += s
            for j in range(width):
                out[first + j] += mirrored[j]


@hot
def sign_sums(X, atoms, W, out):
    """Write sum_j W[t, j] sign(X[t, i] - atoms[i, j]). X : (n, d); W : (n, m); out : (n, d)."""
    n, d = X.shape
    for t in range(n):
        w = W[t]
        for i in range(d):
            x, a, s = X[t, i], atoms[i], 0.0
            for j in range(w.shape[0]):
                s += w[j] if x > a[j] else 0.0
                s -= w[j] if x < a[j] else 0.0
            out[t, i] = s


@hot
def put_atom(atoms, j, x):
    """Write x into column j of the dictionary."""
    for i in range(x.shape[0]):
        atoms[i, j] = x[i]


@hot
def put_rows(X, first, stop, atoms, at):
    """Write rows first to stop - 1 of X into the columns from ``at`` on.

    PASS_ROWS of them together, for columns of an input lie side by side, and inputs far apart.
    """
    for start in range(first, stop, PASS_ROWS):
        for i in range(X.shape[1]):
            for t in range(start, smaller(start + PASS_ROWS, stop)):
                atoms[i, at + t - first] = X[t, i]


@hot
def get_atom(atoms, j, x):
    """Copy column j of the dictionary into x."""
    for i in range(x.shape[0]):
        x[i] = atoms[i, j]
