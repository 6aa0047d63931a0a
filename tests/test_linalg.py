"""Kernel rows, triangular solves, norms and scores of single points against NumPy."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg

from oklnumba.hot.primitives import linalg
from oklnumba.hot.primitives.dictionary import JoiningRule, kors_probability, leverage
from oklnumba.hot.primitives.rows import (
    LINEAR,
    distance_block,
    kernel_block,
    kernel_diags,
    kernel_row,
    sign_sums,
)
from tests.checks import SIZES, poisoned, untouched, with_poison
from tests.reference import naive
from tests.streams import KERNELS


@with_poison
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_rows_follow_their_formula_and_stay_inside_the_first_m(kernel):
    coded, k = kernel._code(), naive.kernel_function(kernel)
    rng = np.random.default_rng(2)
    for d, m in itertools.product((1, 2, 3, 4, 5, 8, 9), SIZES):
        cap = m + 3
        X, Z = rng.standard_normal((3, d)), rng.standard_normal((m, d))
        atoms = poisoned(d, cap)
        atoms[:, :m] = Z.T
        rows = poisoned(len(X), cap)
        kernel_block(coded, X, atoms, m, rows)
        assert untouched(rows[:, m:])
        expected = k(X, Z)
        assert np.isfinite(rows[:, :m]).all()
        np.testing.assert_allclose(rows[:, :m], expected, rtol=1e-13, atol=1e-13)
        diag = poisoned(len(X))
        kernel_diags(coded, X, diag)
        np.testing.assert_allclose(diag, np.diag(k(X, X)), rtol=1e-13)


@with_poison
def test_sums_of_signs_follow_their_formula():
    rng = np.random.default_rng(5)
    for d, m in itertools.product((1, 3), SIZES):
        X, Z = rng.integers(0, 4, (5, d)).astype(float), rng.integers(0, 4, (m, d)).astype(float)
        W, out = rng.standard_normal((5, m)), poisoned(5, d)
        sign_sums(X, np.ascontiguousarray(Z.T), W, out)
        expected = np.einsum("tj,tji->ti", W, np.sign(X[:, None] - Z))
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


def test_every_kernel_code_has_a_row_in_the_test_above():
    codes = {kernel._code()[0] for kernel in KERNELS}
    assert codes == set(range(len(codes))) and LINEAR == len(codes) - 1


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e-9])
def test_equal_points_have_distance_exactly_zero_wherever_they_lie(shift):
    x = np.random.default_rng(3).standard_normal(7) + shift
    atoms = np.ascontiguousarray(np.stack([x, x + 1e-3 * (1 + abs(shift)), x], axis=1))
    out = poisoned(3)
    distance_block(2, x[None], atoms, out[None])
    assert out[0] == out[2] == 0.0 < out[1]


@pytest.mark.parametrize("distance", [1e3, 1e100, 1e154, 1e200, 1e308])
@pytest.mark.parametrize("kernel", KERNELS[:5], ids=repr)
def test_kernels_of_points_far_apart_are_exactly_zero(kernel, distance):
    coded = kernel._code()
    out = poisoned(3)
    with np.errstate(over="ignore", invalid="ignore"):  # without the JIT numpy would warn
        kernel_row(coded, np.zeros(1), np.array([[0.0, distance, -distance]]), 3, out)
    np.testing.assert_array_equal(out, [1.0, 0.0, 0.0])


def upper_buffer(factor, cap):
    """Return a (cap, cap) buffer that holds an upper factor and is poisoned everywhere else."""
    R, (i, j) = poisoned(cap, cap), np.triu_indices(len(factor))
    R[i, j] = factor[i, j]
    return R


@with_poison
@pytest.mark.parametrize("m", SIZES)
def test_triangular_solves(m):
    rng = np.random.default_rng(7 + m)
    factor = np.triu(rng.standard_normal((m, m))) + 4 * np.eye(m)
    b = rng.standard_normal(m)
    R = upper_buffer(factor, m + 2)
    for solve, matrix, transposed in (
        (linalg.solve_upper, R, 0),
        (linalg.solve_upper_transposed, R, 1),
        (linalg.solve_lower, R.T.copy(), 1),
        (linalg.solve_lower_transposed, R.T.copy(), 0),
    ):
        x = poisoned(m + 2)
        x[:m] = b
        before = matrix.copy()
        solve(matrix, x, m)
        expected = scipy.linalg.solve_triangular(factor, b, trans=transposed) if m else b
        np.testing.assert_allclose(x[:m], expected, rtol=1e-11, atol=1e-13)
        assert untouched(x[m:])
        np.testing.assert_array_equal(matrix, before)


@with_poison
@pytest.mark.parametrize("corner", [0.999, 1.0, 0.0, -2.0])
def test_bordered_cholesky_leaves_the_factor_where_the_pivot_is_not_positive(corner):
    R = upper_buffer(np.eye(3), 5)
    before = R.copy()
    assert linalg.bordered_cholesky(R, np.array([0.6, 0.8, 0.0]), corner, 3) <= 0.0
    np.testing.assert_array_equal(R, before)


@pytest.mark.parametrize("scale", [0.0, 1e-160, 1.0, 1e160, np.inf])
def test_the_euclidean_norm_where_squares_underflow_or_overflow(scale):
    w = np.array([3.0, -4.0]) * scale
    with np.errstate(over="ignore"):  # where nothing is compiled
        norm = linalg.euclidean_norm(w, 2)
    np.testing.assert_allclose(norm, 5.0 * scale, rtol=1e-14)


def test_a_score_without_digits_is_nan():
    C, b, k = np.eye(1), np.array([2.0]), np.array([2.0])
    assert math.isnan(leverage(C, b, 1.0, 1.0, 1))
    assert math.isnan(kors_probability(JoiningRule(1.0, 1.0, 0.5), np.ones(1), C, k, 1.0, b, 1))
