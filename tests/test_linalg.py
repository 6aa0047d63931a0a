"""Kernel rows, triangular solves, norms, scores; exp, sine and cosine in extended precision."""

import itertools
import math

import numba
import numpy as np
import pytest
import scipy.linalg

from oklnumba.hot.primitives import linalg
from oklnumba.hot.primitives import rows as loops
from oklnumba.hot.primitives.dictionary import JoiningRule, kors_probability
from oklnumba.hot.primitives.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos
from oklnumba.hot.primitives.features import fourier_block
from oklnumba.hot.primitives.rows import LAPLACIAN, LINEAR, kernel_row, pair_distances
from tests.checks import COMPILED, SIZES, poisoned, untouched, with_poison
from tests.reference import naive
from tests.streams import KERNELS


@with_poison
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_rows_follow_their_formula_and_stay_inside_the_first_m(kernel):
    coded, k = kernel._code(), naive.kernel_function(kernel)
    rng = np.random.default_rng(2)
    beyond = (9, loops.PASS_COLUMNS + 1), (loops.PASS_INPUTS + 5, 3)  # one part of the atoms
    for d, m in [*itertools.product((1, 2, 3, 4, 5, 8, 9), SIZES), *beyond]:
        cap = m + 3
        X, Z = rng.standard_normal((5, d)), rng.standard_normal((m, d))
        atoms = poisoned(d, cap)
        atoms[:, :m] = Z.T
        rows = poisoned(len(X), cap)
        loops.kernel_block(coded, X, atoms, m, rows)
        assert untouched(rows[:, m:])
        expected = k(X, Z)
        assert np.isfinite(rows[:, :m]).all()
        np.testing.assert_allclose(rows[:, :m], expected, rtol=1e-13, atol=1e-13)
        exact = 1e-13 if numba.config.BOUNDSCHECK else 0.0  # checks change what LLVM fuses
        for x, row in zip(X, rows, strict=True):  # four in a pass have the bits of one
            alone = poisoned(cap)
            kernel_row(coded, x, atoms, m, alone)
            np.testing.assert_allclose(alone[:m], row[:m], rtol=exact, atol=exact)
        diag = poisoned(len(X))
        loops.kernel_diags(coded, X, diag)
        np.testing.assert_allclose(diag, np.diag(k(X, X)), rtol=1e-13)


def test_every_kernel_code_has_a_row_in_the_test_above():
    codes = {kernel._code()[0] for kernel in KERNELS}
    assert codes == set(range(len(codes))) and LINEAR == len(codes) - 1


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e-9])
def test_equal_points_have_distance_exactly_zero_wherever_they_lie(shift):
    x = np.random.default_rng(3).standard_normal(7) + shift
    atoms = np.ascontiguousarray(np.stack([x, x + 1e-3 * (1 + abs(shift)), x], axis=1))
    out = poisoned(6)
    pair_distances(2, np.ascontiguousarray(atoms.T), atoms, out)
    np.testing.assert_array_equal(out > 0.0, [False, True, False, False, True, False])


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
@pytest.mark.parametrize("m", SIZES)
def test_rows_that_are_solved_together_have_the_bits_of_one_alone(m):
    """Whatever is known of the factor when they are: it gets more columns later."""
    rng = np.random.default_rng(m)
    factor = np.triu(rng.standard_normal((m, m))) + 4 * np.eye(m)
    B, R = rng.standard_normal((5, m)), upper_buffer(factor, m + 2)
    alone = poisoned(5, m + 2)
    alone[:, :m] = B
    for row in alone:
        linalg.solve_rest(R, 0, row, m)
    expected = scipy.linalg.solve_triangular(factor, B.T, trans=1).T if m else B
    np.testing.assert_allclose(alone[:, :m], expected, rtol=1e-11, atol=1e-13)
    for count, known in itertools.product((1, 2, 3, 5), range(0, m + 1, 4)):
        together = poisoned(5, m + 2)
        together[:, :known] = B[:, :known]
        linalg.solve_rows(R, together, count, known)
        assert untouched(together[:, known:])
        np.testing.assert_array_equal(together[count:, :known], B[count:, :known])
        for solved, b, one in zip(together[:count], B, alone, strict=False):
            row = poisoned(m + 2)
            row[:known], row[known:m] = solved[:known], b[known:]
            linalg.solve_rest(R, known, row, m)
            exact = 1e-13 if numba.config.BOUNDSCHECK else 0.0  # as above
            np.testing.assert_allclose(row[:m], one[:m], rtol=exact, atol=exact)
            assert untouched(row[m:])


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
    C, b, k = np.eye(1), np.empty(1), np.array([2.0])
    assert math.isnan(kors_probability(JoiningRule(1.0, 1.0, 0.5), np.ones(1), C, k, 1.0, b, 1))


MANY = 200_000 if COMPILED else 20_000  # points of a dense grid


def one_by_one(function, x):
    return np.array([function(v) for v in x.tolist()]).T


def exps_in_a_row(x):
    """Return exp(x) as the loop over a row of atoms computes it, which vectorises."""
    out = poisoned(len(x))
    rate = np.array([1.0, 0.0, 0.0])  # exp(-sqrt(x^2)), and the root of a square is exact
    kernel_row((LAPLACIAN, rate), np.zeros(1), x[None, :].copy(), len(x), out)
    return out


def sines_cosines_in_a_row(x):
    out = poisoned(1, 2 * len(x))
    fourier_block(np.ones((1, 1)), x[None, :].copy(), 1.0, out)
    return out.reshape(2, -1)


def test_exp_is_accurate_on_all_of_its_range():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            np.linspace(-708.0, 0.0, MANY),
            np.log(2.0) * (np.arange(-1021, 0) + 0.5),  # where the power of two changes
            -(10.0 ** rng.uniform(-320, 2.8, MANY // 10)),
            [-708.0, -5e-324, -1e-17],
        ]
    )
    true = np.exp(x.astype(np.longdouble))
    assert np.abs(one_by_one(exp_nonpositive, x) / true - 1).max() < 2e-16
    x = x[x < -1e-150]  # whose squares are exact enough
    x = x[x == -np.sqrt(x * x)]
    assert len(x) > MANY // 2
    assert np.abs(exps_in_a_row(x) / np.exp(x.astype(np.longdouble)) - 1).max() < 2e-16


def test_exp_at_and_beyond_the_ends():
    x = np.array([0.0, -0.0, np.nextafter(-708.0, -np.inf), -709.0, -1e300, -np.inf])
    expected = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(one_by_one(exp_nonpositive, x), expected)
    finite = x[:4]
    np.testing.assert_array_equal(exps_in_a_row(finite), expected[:4])


def test_sine_and_cosine_are_accurate_up_to_the_largest_phase():
    rng = np.random.default_rng(1)
    largest = SINCOS_LARGEST
    x = np.concatenate(
        [
            np.linspace(-largest, largest, MANY),
            rng.uniform(-10, 10, MANY // 10),
            np.round(np.linspace(-6e4, 6e4, MANY // 10)) * (np.pi / 2),  # where one of them is 0
            10.0 ** rng.uniform(-300, 0, 100),
            [0.0, -0.0, largest, -largest],
        ]
    )
    wide = x.astype(np.longdouble)
    for sine, cosine in (one_by_one(sin_cos, x), sines_cosines_in_a_row(x)):
        assert np.abs(sine - np.sin(wide)).max() < 2.5e-16
        assert np.abs(cosine - np.cos(wide)).max() < 2.5e-16
        assert np.abs(sine * sine + cosine * cosine - 1.0).max() < 1e-15
        tiny = np.abs(x) < 1e-10
        np.testing.assert_array_equal(sine[tiny], x[tiny])
