"""Kernel expansions f = sum_j a_j k(atom_j, .): what their learners share.

A ``function`` is the pair of its atoms (d, cap) and its coefficients a (cap,).
"""

import math

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import ATOMS, exact, hot
from oklnumba.hot.primitives.linalg import dot, multiply
from oklnumba.hot.primitives.rows import get_atom, kernel_row

SMALLEST_FACTOR = 1e-100  # smaller common factors are multiplied into the coefficients


@hot
def expansion_value(kernel, function, m, x, row):
    """Return f(x), leaving the kernel values of x with the m atoms in row : (cap,)."""
    atoms, a = function
    kernel_row(kernel, x, atoms, m, row)
    return dot(row, a, m)


@exact
def mean(total, count):
    """Return total / count, 0 for count 0; the same bits whether or not count varies in a loop."""
    return total / count if count > 0 else 0.0


@hot
def expansion_square(kernel, function, m, x, row):
    """Return |f|^2 = a' K a from scratch. x : (d,), row : (cap,), workspace."""
    square = 0.0
    for j in range(m):
        get_atom(function[0], j, x)
        square += function[1][j] * expansion_value(kernel, function, m, x, row)
    return square


@hot
def expansion_forecasts(X, kernel, function, counts, factor, work, forecasts):
    """Write factor * f(x) for the rows of X. work : (1 or more, cap)."""
    m, row = counts[ATOMS], work[0]
    for t in range(X.shape[0]):
        forecasts[t] = factor * expansion_value(kernel, function, m, X[t], row)


@hot
def project(a, square, radius, m):
    """Project f = a.k with |f|^2 = square on |f| <= radius, in place; return the new |f|^2."""
    square = larger(square, 0.0)  # negative only by rounding
    if square > radius * radius:
        multiply(a, radius / math.sqrt(square), m)
        square = radius * radius
    return square
