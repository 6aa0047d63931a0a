"""Triangular solves, rank-one updates and growing factors against dense matrices."""

import math

import numpy as np
import pytest
import scipy.linalg

from oklnumba.hot.primitives.linalg import (
    bordered_cholesky,
    dot,
    euclidean_norm,
    product_rows,
    solve_lower,
    solve_lower_transposed,
    solve_upper,
    solve_upper_transposed,
)
from tests.checks import (
    SIZES,
    close,
    poisoned,
    spd,
    untouched,
    upper_buffer,
    upper_part,
    with_poison,
)


@with_poison
@pytest.mark.parametrize("m", SIZES)
def test_triangular_solves(m):
    rng = np.random.default_rng(7 + m)
    factor = np.triu(rng.standard_normal((m, m))) + 4 * np.eye(m)
    b = rng.standard_normal(m)
    R = upper_buffer(factor, m + 2)
    L = upper_buffer(factor, m + 2).T.copy()
    for solve, matrix, transposed in (
        (solve_upper, R, 0),
        (solve_upper_transposed, R, 1),
        (solve_lower, L, 1),
        (solve_lower_transposed, L, 0),
    ):
        x = poisoned(m + 2)
        x[:m] = b
        before = matrix.copy()
        solve(matrix, x, m)
        expected = scipy.linalg.solve_triangular(factor, b, trans=transposed) if m else b
        np.testing.assert_allclose(x[:m], expected, rtol=1e-11, atol=1e-13)
        assert untouched(x[m:])
        np.testing.assert_array_equal(matrix, before)


def wrong_border(R, column, corner, m):
    """Negative control: forgets what the column takes off the corner."""
    R[:m, m] = column[:m]
    R[m, m] = math.sqrt(corner)
    return corner


def after_borders(border, m=15, cap=17):
    """Return R' R grown column by column, and the dense matrix."""
    A = spd(np.random.default_rng(10), m)
    R = poisoned(cap, cap)
    for k in range(m):
        column = poisoned(cap)
        column[:k] = A[:k, k]
        solve_upper_transposed(R, column, k)
        pivot = border(R, column, A[k, k], k)
        if border is bordered_cholesky:
            schur = A[k, k] - A[k, :k] @ np.linalg.solve(A[:k, :k], A[:k, k])
            assert pivot == pytest.approx(schur, rel=1e-10)
    factor = upper_part(R, m)
    return factor.T @ factor, A


@with_poison
def test_bordered_cholesky_grows_the_factor():
    assert close(*after_borders(bordered_cholesky), rtol=1e-13)
    assert not close(*after_borders(wrong_border), rtol=1e-3)


@with_poison
@pytest.mark.parametrize("corner", [0.999, 1.0, 0.0, -2.0])
def test_bordered_cholesky_leaves_the_factor_where_the_pivot_is_not_positive(corner):
    R = upper_buffer(np.eye(3), 5)
    before = R.copy()
    assert bordered_cholesky(R, np.array([0.6, 0.8, 0.0]), corner, 3) <= 0.0
    np.testing.assert_array_equal(R, before)


@with_poison
def test_products():
    rng = np.random.default_rng(13)
    Z, w = rng.standard_normal((6, 9)), rng.standard_normal(9)
    out = poisoned(6)
    product_rows(Z, w, out)
    np.testing.assert_allclose(out, Z @ w, rtol=1e-13)
    a, b = poisoned(9), poisoned(9)
    a[:5], b[:5] = Z[0, :5], w[:5]
    assert dot(a, b, 5) == pytest.approx(Z[0, :5] @ w[:5], rel=1e-13)
    assert dot(a, b, 0) == 0.0


@pytest.mark.parametrize("scale", [0.0, 1e-160, 1.0, 1e160, np.inf])
def test_the_euclidean_norm_where_squares_underflow_or_overflow(scale):
    w = np.array([3.0, -4.0]) * scale
    with np.errstate(over="ignore"):  # where nothing is compiled
        norm = euclidean_norm(w, 2)
    np.testing.assert_allclose(norm, 5.0 * scale, rtol=1e-14)
