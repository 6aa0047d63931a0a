"""Kernel expansions f = sum_j alpha_j k(x_j, .): what their learners share.

atoms : (d, cap), the x_j; alpha : (cap,); k : (cap,), written, the kernel values of x with the
first m atoms.
"""

import math

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import ATOMS, exact, hot
from oklnumba.hot.primitives.linalg import dot, multiply
from oklnumba.hot.primitives.rows import kernel_row

SMALLEST_FACTOR = 1e-100  # smaller common factors are multiplied into the coefficients


@hot
def expansion_value(kernel, atoms, alpha, m, x, k):
    """Return f(x) = alpha' k and write k."""
    kernel_row(kernel, x, atoms, m, k)
    return dot(k, alpha, m)


@exact
def mean(total, count):
    """Return total / count, 0 for count 0; the same bits whether or not count varies in a loop."""
    return total / count if count > 0 else 0.0


@hot
def expansion_forecasts(X, kernel, atoms, alpha, counts, factor, k, forecasts):
    """Write factor * f(x) for the rows of X."""
    m = counts[ATOMS]
    for t in range(X.shape[0]):
        forecasts[t] = factor * expansion_value(kernel, atoms, alpha, m, X[t], k)


@hot
def project(alpha, square, radius, m):
    """Project f with |f|^2 = square on |f| <= radius, in place; return the new |f|^2."""
    square = larger(square, 0.0)  # negative only by rounding
    if square > radius * radius:
        multiply(alpha, radius / math.sqrt(square), m)
        square = radius * radius
    return square
