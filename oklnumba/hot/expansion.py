"""Kernel expansions f = sum_j a_j k(atom_j, .): what their learners share."""

from __future__ import annotations

import math

from oklnumba.hot.jit import hot
from oklnumba.hot.linalg import dot, multiply
from oklnumba.hot.rows import get_atom, kernel_row


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
def expansion_square(kernel, atoms, a, m, x, row):
    """Return |f|^2 = a' K a from scratch. x : (d,), row : (cap,), workspace."""
    square = 0.0
    for j in range(m):
        get_atom(atoms, j, x)
        kernel_row(kernel, x, atoms, m, row)
        square += a[j] * dot(row, a, m)
    return square


@hot
def expansion_forecasts(X, kernel, atoms, a, m, factor, row, forecasts):
    """Write factor * f(x) for the rows of X. row : (cap,), workspace; forecasts : (n,), written."""
    for t in range(X.shape[0]):
        kernel_row(kernel, X[t], atoms, m, row)
        forecasts[t] = factor * dot(row, a, m)


# A common factor below is multiplied into the coefficients before it underflows.
SMALLEST_FACTOR = 1e-100
