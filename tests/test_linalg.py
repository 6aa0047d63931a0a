"""Triangular solves, rank-one updates and growing factors against dense matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg

from oklnumba.hot.jit import DONE, NOT_POSITIVE
from oklnumba.hot.linalg import (
    bordered_cholesky,
    cholesky_downdate,
    cholesky_update,
    dot,
    grow_inverse,
    product_rows,
    sherman_morrison,
    solve_lower,
    solve_lower_transposed,
    solve_upper,
    solve_upper_transposed,
)
from tests.buffers import SIZES, poisoned, untouched, upper_buffer, upper_part, with_poison
from tests.compare import close


def spd(rng, m):
    B = rng.standard_normal((m, m))
    return B @ B.T + 0.5 * np.eye(m)


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


def wrong_cholesky_update(R, x, m):
    """Negative control: a stale x, not rotated along."""
    for k in range(m):
        t = math.hypot(R[k, k], x[k])
        c, s = R[k, k] / t, x[k] / t
        R[k, k] = t
        R[k, k + 1 : m] = c * R[k, k + 1 : m] + s * x[k + 1 : m]


def after_cholesky_updates(update, every, m=12, cap=16, rounds=150):
    """Return the R' R after updates and a downdate every so many, and the dense matrix."""
    rng = np.random.default_rng(8)
    A = spd(rng, m)
    R = upper_buffer(scipy.linalg.cholesky(A), cap)
    kept = []
    for t in range(rounds):
        x = poisoned(cap)
        x[:m] = rng.standard_normal(m)
        kept.append(x[:m].copy())
        A = A + np.outer(x[:m], x[:m])
        update(R, x, m)
        assert untouched(x[m:])
        if t % every == every - 1:  # take an old one away again
            x[:m] = kept.pop(0)
            A = A - np.outer(x[:m], x[:m])
            assert cholesky_downdate(R, x, m) == DONE
    factor = upper_part(R, m)
    return factor.T @ factor, A


@with_poison
def test_cholesky_updates_and_downdates_keep_the_factor():
    for every in (2, 3, 1000):
        assert close(*after_cholesky_updates(cholesky_update, every), rtol=1e-12)
    assert not close(*after_cholesky_updates(wrong_cholesky_update, 1000), rtol=1e-3)


def test_cholesky_update_from_zero():
    R, x = np.zeros((3, 3)), np.array([0.0, 2.0, -1.0])
    cholesky_update(R, x.copy(), 3)
    np.testing.assert_allclose(R.T @ R, np.outer(x, x), atol=1e-15)


@pytest.mark.parametrize("excess", [1e-6, 1.0, 1e6])
def test_cholesky_downdate_refuses_what_is_not_positive(excess):
    rng = np.random.default_rng(9)
    A = spd(rng, 6)
    z = rng.standard_normal(6)
    z /= math.sqrt(z @ np.linalg.solve(A, z))  # A - z z' is singular now
    R = scipy.linalg.cholesky(A)
    assert cholesky_downdate(R, (1 + excess) * z, 6) == NOT_POSITIVE
    R = scipy.linalg.cholesky(A)
    shorter = (1 - 1e-6) * z
    assert cholesky_downdate(R, shorter.copy(), 6) == DONE
    np.testing.assert_allclose(R.T @ R, A - np.outer(shorter, shorter), atol=1e-9)


def test_cholesky_downdate_refuses_nan():
    assert cholesky_downdate(np.eye(2), np.array([np.nan, 0.0]), 2) == (NOT_POSITIVE)


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


def wrong_sherman_morrison(P, z, v, r):
    """Negative control: the sign of the update is wrong."""
    v[:r] = P[:r, :r] @ z[:r]
    q = 1 + z[:r] @ v[:r]
    P[:r, :r] += np.outer(v[:r], v[:r]) / q
    return q


def after_sherman_morrison(update, r=11, cap=13, rounds=150):
    """Return the inverse that updates maintain, and that of the dense matrix."""
    rng = np.random.default_rng(11)
    A, P, v = np.eye(r), poisoned(cap, cap), poisoned(cap)
    P[:r, :r] = np.eye(r)
    for _ in range(rounds):
        z = poisoned(cap)
        z[:r] = rng.standard_normal(r)
        expected = 1 + z[:r] @ np.linalg.solve(A, z[:r])
        q = update(P, z, v, r)
        if update is sherman_morrison:
            assert q == pytest.approx(expected, rel=1e-11)
        A += np.outer(z[:r], z[:r])
    assert untouched(P[r:]) and untouched(P[:r, r:]) and untouched(v[r:])
    return P[:r, :r], np.linalg.inv(A)


@with_poison
def test_sherman_morrison_keeps_the_inverse():
    # relative to the largest entry of the inverse, which is about 1/100
    got, expected = after_sherman_morrison(sherman_morrison)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    wrong, _ = after_sherman_morrison(wrong_sherman_morrison)
    assert np.abs(wrong - expected).max() > 1e-3 * np.abs(expected).max()


def wrong_grow_inverse(P, column, v, corner, m):
    """Negative control: the old block is left as it was."""
    v[:m] = P[:m, :m] @ column[:m]
    schur = corner - column[:m] @ v[:m]
    P[:m, m] = P[m, :m] = -v[:m] / schur
    P[m, m] = 1 / schur
    return schur


def after_growth(grow, m=15, cap=17):
    """Return the inverse grown point by point, and that of the dense matrix."""
    A = spd(np.random.default_rng(12), m)
    P, v = poisoned(cap, cap), poisoned(cap)
    for k in range(m):
        column = poisoned(cap)
        column[:k] = A[:k, k]
        schur = grow(P, column, v, A[k, k], k)
        if grow is grow_inverse:
            dense = A[k, k] - A[k, :k] @ np.linalg.solve(A[:k, :k], A[:k, k])
            assert schur == pytest.approx(dense, rel=1e-10)
            assert untouched(column[k:]) and untouched(v[k:])
    assert untouched(P[m:]) and untouched(P[:m, m:])
    return P[:m, :m], np.linalg.inv(A)


@with_poison
def test_grow_inverse_grows_the_inverse():
    assert close(*after_growth(grow_inverse), rtol=1e-11)
    assert not close(*after_growth(wrong_grow_inverse), rtol=1e-3)


@with_poison
def test_grow_inverse_leaves_the_inverse_where_the_schur_complement_is_not_positive():
    P = poisoned(4, 4)
    P[:2, :2] = np.eye(2)
    before = P.copy()
    column = np.array([0.6, 0.8, np.nan, np.nan])
    assert grow_inverse(P, column, np.empty(4), 0.5, 2) <= 0.0
    np.testing.assert_array_equal(P, before)


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
