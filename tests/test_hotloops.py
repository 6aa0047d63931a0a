"""The compiled building blocks (hotloops sections 2 to 8) against plain NumPy written here."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.distance import cdist

from oklnumba import kernels
from oklnumba.features import TaylorFeatures, _monomials
from oklnumba.hot.awv import awv_forecasts, awv_rounds, certify
from oklnumba.hot.dictionary import kors_keep, kors_probability, kors_rounds, leverage
from oklnumba.hot.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos
from oklnumba.hot.features import fourier_block, taylor_block
from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE
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
from oklnumba.hot.losses import (
    ABSOLUTE,
    HINGE,
    LOGISTIC,
    SQUARED,
    SQUARED_HINGE,
    loss_derivative,
    loss_value,
    loss_values,
)
from oklnumba.hot.rows import (
    LAPLACIAN,
    LINEAR,
    kernel_block,
    kernel_diags,
    kernel_row,
    square_distances,
)
from oklnumba.hot.udu import LANES, SWEEP, TOGETHER

COMPILED = not numba.config.DISABLE_JIT
MANY = 200_000 if COMPILED else 20_000  # points of a dense grid
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13)  # around the unrolled strides


# What buffers hold beyond their valid part. NaN shows what is read there, a number what is written.
POISON = [np.nan]


@pytest.fixture(params=[np.nan, 12345.0], ids=["read", "written"])
def poison(request):
    POISON[0] = request.param
    yield
    POISON[0] = np.nan


with_poison = pytest.mark.usefixtures("poison")


def poisoned(*shape):
    return np.full(shape, POISON[0])


def untouched(a):
    """Say whether this part of a poisoned buffer is as it was made."""
    return np.array_equal(a, np.full(a.shape, POISON[0]), equal_nan=True)


def spd(rng, m):
    B = rng.standard_normal((m, m))
    return B @ B.T + 0.5 * np.eye(m)


def upper_buffer(factor, cap):
    """Return a (cap, cap) buffer that holds an upper factor and is poisoned everywhere else."""
    m = len(factor)
    R = poisoned(cap, cap)
    i, j = np.triu_indices(m)
    R[i, j] = factor[i, j]
    return R


def upper_part(R, m):
    """Return the factor in a buffer, whose rest must be untouched."""
    valid = np.zeros(R.shape, dtype=bool)
    valid[:m, :m] = np.triu(np.ones((m, m), dtype=bool))
    assert untouched(R[~valid])
    return np.where(valid, R, 0.0)[:m, :m]


def close(got, expected, rtol):
    """Say whether two arrays agree relative to the largest entry."""
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return bool(np.abs(got - expected).max(initial=0.0) <= rtol * scale)


# ---- 2. exp, sine and cosine ----


def one_by_one(function, x):
    return np.array([function(v) for v in x.tolist()]).T


def exps_in_a_row(x):
    """Return exp(x) as the loop over a row of atoms computes it, which vectorises."""
    out = poisoned(len(x))
    rate = np.array([1.0, 0.0, 0.0])  # exp(-sqrt(x^2)), and the root of a square is exact
    kernel_row(LAPLACIAN, rate, np.zeros(1), x[None, :].copy(), len(x), out)
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


# ---- 3. Kernel rows ----

KERNELS = [
    kernels.Gaussian(0.7),
    kernels.Laplacian(1.3),
    kernels.Matern(0.5, 0.9),
    kernels.Matern(1.5, 0.9),
    kernels.Matern(2.5, 1.7),
    kernels.Polynomial(1, 0.5, 0.0),
    kernels.Polynomial(3, 0.5, 2.0),
    kernels.Linear(),
]


def formula(kernel, X, Z):
    """Return the kernel matrix from its definition."""
    r = cdist(X, Z)
    match kernel:
        case kernels.Gaussian():
            return np.exp(-(r**2) / (2 * kernel.sigma**2))
        case kernels.Laplacian():
            return np.exp(-r / kernel.sigma)
        case kernels.Matern():
            s = math.sqrt(2 * kernel.nu) * r / kernel.sigma
            factor = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[kernel.nu]
            return factor * np.exp(-s)
        case kernels.Polynomial():
            return (kernel.scale * (X @ Z.T) + kernel.coef0) ** kernel.degree
        case kernels.Linear():
            return X @ Z.T
    raise AssertionError(f"no formula for {kernel}")


@with_poison
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_rows_follow_their_formula_and_stay_inside_the_first_m(kernel):
    coded = kernel._code()
    rng = np.random.default_rng(2)
    for d, m in itertools.product((1, 2, 3, 4, 5, 8, 9), SIZES):
        cap = m + 3
        X, Z = rng.standard_normal((3, d)), rng.standard_normal((m, d))
        atoms = poisoned(d, cap)
        atoms[:, :m] = Z.T
        rows = poisoned(len(X), cap)
        kernel_block(coded, X, atoms, m, rows)
        assert untouched(rows[:, m:])
        expected = formula(kernel, X, Z) if m else np.empty((3, 0))
        assert np.isfinite(rows[:, :m]).all()
        np.testing.assert_allclose(rows[:, :m], expected, rtol=1e-13, atol=1e-13)
        diag = poisoned(len(X))
        kernel_diags(coded, X, diag)
        np.testing.assert_allclose(diag, np.diag(formula(kernel, X, X)), rtol=1e-13)


def test_every_kernel_code_has_a_row_in_the_test_above():
    codes = {kernel._code()[0] for kernel in KERNELS}
    assert codes == set(range(len(codes))) and LINEAR == len(codes) - 1


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e-9])
def test_equal_points_have_distance_exactly_zero_wherever_they_lie(shift):
    x = np.random.default_rng(3).standard_normal(7) + shift
    atoms = np.ascontiguousarray(np.stack([x, x + 1e-3 * (1 + abs(shift)), x], axis=1))
    out = poisoned(3)
    square_distances(x, atoms, 3, out)
    assert out[0] == out[2] == 0.0 < out[1]


@pytest.mark.parametrize("distance", [1e3, 1e100, 1e154, 1e200, 1e308])
@pytest.mark.parametrize("kernel", KERNELS[:5], ids=repr)
def test_kernels_of_points_far_apart_are_exactly_zero(kernel, distance):
    coded = kernel._code()
    out = poisoned(3)
    with np.errstate(over="ignore", invalid="ignore"):  # without the JIT numpy would warn
        kernel_row(coded, np.zeros(1), np.array([[0.0, distance, -distance]]), 3, out)
    np.testing.assert_array_equal(out, [1.0, 0.0, 0.0])


# ---- 4. Feature maps ----


def multi_indices(d, degree):
    """Return all k in N^d with |k| <= degree."""
    return [k for k in itertools.product(range(degree + 1), repeat=d) if sum(k) <= degree]


def table_indices(parent, variable, d):
    """Return the multi-index of each row of a table of monomials."""
    indices = [(0,) * d]
    for j in range(1, len(parent)):
        k = list(indices[parent[j]])
        k[variable[j]] += 1
        indices.append(tuple(k))
    return indices


@pytest.mark.parametrize("d, degree", [(1, 0), (1, 7), (2, 5), (3, 3), (5, 2), (7, 1), (4, 0)])
def test_the_table_of_monomials_has_each_multi_index_once(d, degree):
    parent, variable, _ = _monomials(d, degree)
    indices = table_indices(parent, variable, d)
    assert len(set(indices)) == len(indices)
    assert set(indices) == set(multi_indices(d, degree))
    assert len(indices) == TaylorFeatures(degree).size(d) == math.comb(d + degree, degree)


@with_poison
@pytest.mark.parametrize("d, degree", [(1, 0), (1, 7), (2, 5), (3, 3), (5, 2), (7, 1)])
@pytest.mark.parametrize("centred", [False, True])
def test_taylor_features_follow_equation_6(d, degree, centred):
    rng = np.random.default_rng(4)
    sigma = 0.8
    center = rng.uniform(-0.5, 0.5, d) if centred else np.zeros(d)
    X = rng.uniform(-1, 1, (11, d))
    parent, variable, ratio = _monomials(d, degree)
    r = len(parent)
    columns = poisoned(d + r, 4)  # three passes, the last one of three points
    out = poisoned(11, r + 2)
    taylor_block(X, center, 0.5 / sigma**2, parent, variable, ratio / sigma, columns, out)
    assert untouched(out[:, r:])
    moved = X - center
    damping = np.exp(-(moved**2).sum(axis=1) / (2 * sigma**2))
    for column, k in enumerate(table_indices(parent, variable, d)):
        norm = math.prod(math.factorial(c) for c in k) ** 0.5 * sigma ** sum(k)
        expected = damping * (moved ** np.array(k)).prod(axis=1) / norm
        np.testing.assert_allclose(out[:, column], expected, rtol=1e-13, atol=1e-300)
    features = TaylorFeatures(degree, sigma, center if centred else None)
    np.testing.assert_allclose(features.transform(X), out[:, :r], rtol=1e-13)


def test_taylor_gram_matrix_tends_to_the_gaussian_kernel():
    X = np.random.default_rng(5).uniform(-1, 1, (9, 2))
    K = np.exp(-cdist(X, X, "sqeuclidean") / 2)
    grams = [TaylorFeatures(degree, 1.0).transform(X) for degree in (1, 4, 8, 16)]
    errors = [np.abs(Z @ Z.T - K).max() for Z in grams]
    assert errors[0] > errors[1] > errors[2] > errors[3] and errors[3] < 1e-10


@with_poison
@pytest.mark.parametrize("d, f", [(1, 1), (3, 7), (5, 8), (8, 13)])
def test_fourier_features_against_numpy(d, f):
    rng = np.random.default_rng(6)
    X, W = rng.standard_normal((5, d)), rng.standard_normal((d, f))
    scale = 1 / math.sqrt(f)
    out = poisoned(5, 2 * f + 3)
    fourier_block(X, W, scale, out)
    assert untouched(out[:, 2 * f :])
    expected = np.concatenate([np.sin(X @ W), np.cos(X @ W)], axis=1) * scale
    np.testing.assert_allclose(out[:, : 2 * f], expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose((out[:, : 2 * f] ** 2).sum(axis=1), 1.0, rtol=1e-14)


def test_fourier_features_of_phases_beyond_the_fast_range():
    # With one input column a phase is one product: exactly the same phase in numpy.
    W = np.array([[1.0, 3.7, 2e6, -1e9, 1e15]])
    X = np.array([[1.0], [0.3], [99_999.0], [-1e6], [1e-9]])
    out = poisoned(5, 10)
    fourier_block(X, W, 1.0, out)
    wide = (X * W).astype(np.longdouble)
    expected = np.concatenate([np.sin(wide), np.cos(wide)], axis=1)
    assert np.abs(X * W).max() > 1e5
    np.testing.assert_allclose(out, expected.astype(float), rtol=0, atol=1e-15)


# ---- 5. Triangular solves and rank-one updates ----


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


# ---- 6. The U' D U factor ----


class Factor:
    """The state that awv_rounds maintains, for r features padded to a multiple of LANES."""

    def __init__(self, r, lam, ridge=0.0):
        self.r, self.ridge = r, ridge
        self.cap = -(-r // LANES) * LANES
        self.U, self.c = np.eye(self.cap), np.zeros(self.cap)
        self.inv_d = np.full(self.cap, 1 / lam)
        self.work = poisoned(2 * TOGETHER + 1, self.cap)
        self.forecasts, self.shrinks = [], []

    def padded(self, Z):
        return np.ascontiguousarray(np.pad(Z, ((0, 0), (0, self.cap - self.r))))

    def play(self, Z, y):
        forecasts, shrinks = poisoned(len(Z)), poisoned(len(Z))
        played, status = awv_rounds(
            self.padded(Z), y, self.U, self.inv_d, self.c, self.work, self.ridge, forecasts, shrinks
        )
        self.forecasts.extend(forecasts[:played])
        self.shrinks.extend(shrinks[:played])
        return played, status

    def forecast(self, Z):
        out = poisoned(len(Z))
        awv_forecasts(self.padded(Z), self.U, self.inv_d, self.c, self.work, self.ridge, out)
        return out

    def state(self):
        return np.concatenate([self.U.ravel(), self.inv_d, self.c, self.forecasts, self.shrinks])


def dense_awv(Z, y, lam, ridge):
    """Return the forecasts and 1 + z' A^-1 z of every round, by a dense solve each."""
    A, b = lam * np.eye(Z.shape[1]), np.zeros(Z.shape[1])
    forecasts, shrinks = [], []
    for z, label in zip(Z, y, strict=True):
        shrinks.append(1 + z @ np.linalg.solve(A, z))
        after = A + np.outer(z, z)
        forecasts.append(z @ np.linalg.solve(A if ridge else after, b))
        A, b = after, b + label * z
    return np.array(forecasts), np.array(shrinks)


FACTORS = list(itertools.product((1, 4, 8, 11, 20), (1.0, 1e-3), (0.0, 1.0)))


@pytest.mark.parametrize("r, lam, ridge", FACTORS)
def test_awv_rounds_keep_the_factor_of_the_dense_matrix(r, lam, ridge):
    rng = np.random.default_rng(14)
    n = 61
    Z, y = rng.standard_normal((n, r)), rng.uniform(-1, 1, n)
    factor = Factor(r, lam, ridge)
    assert factor.play(Z, y) == (n, DONE)
    np.testing.assert_array_equal(np.tril(factor.U, -1), 0.0)
    np.testing.assert_array_equal(np.diag(factor.U), 1.0)
    U, D = factor.U[:r, :r], np.diag(1 / factor.inv_d[:r])
    A = lam * np.eye(r) + Z.T @ Z
    assert close(U.T @ D @ U, A, rtol=1e-13)
    c = np.linalg.solve(U.T @ D, Z.T @ y)
    np.testing.assert_allclose(factor.c[:r], c, rtol=1e-9, atol=1e-11)
    # the padding has been left alone
    np.testing.assert_array_equal(factor.U[:r, r:], 0.0)
    np.testing.assert_array_equal(factor.U[r:, r:], np.eye(factor.cap - r))
    np.testing.assert_allclose(factor.inv_d[r:], 1 / lam, rtol=1e-13)
    np.testing.assert_array_equal(factor.c[r:], 0.0)
    forecasts, shrinks = dense_awv(Z, y, lam, ridge)
    np.testing.assert_allclose(factor.forecasts, forecasts, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(factor.shrinks, shrinks, rtol=1e-9)


def test_the_check_of_the_factor_fails_for_a_round_played_twice():
    rng = np.random.default_rng(15)
    Z, y = rng.standard_normal((30, 8)), rng.uniform(-1, 1, 30)
    factor = Factor(8, 1.0)
    factor.play(Z, y)
    factor.play(Z[-1:], y[-1:])
    D = np.diag(1 / factor.inv_d)
    assert not close(factor.U.T @ D @ factor.U, np.eye(8) + Z.T @ Z, rtol=1e-3)


@pytest.mark.skipif(not COMPILED, reason="the bits of compiled code are the point")
@pytest.mark.parametrize("r, lam, ridge", FACTORS)
def test_any_cut_of_the_rounds_gives_the_same_bits(r, lam, ridge):
    rng = np.random.default_rng(16)
    n = 4 * TOGETHER + 2
    Z, y = rng.standard_normal((n, r)), rng.uniform(-1, 1, n)
    whole = Factor(r, lam, ridge)
    whole.play(Z, y)
    sizes = (1, 2, SWEEP, 4, 7, TOGETHER, TOGETHER + 1)
    cuts = [range(start, n, size) for size in sizes for start in (1, size)]
    cuts += [sorted(rng.choice(np.arange(1, n), size, replace=False)) for size in (3, 9, 20)]
    for cut in cuts:
        pieces = Factor(r, lam, ridge)
        for rows in np.split(np.arange(n), list(cut)):
            pieces.play(Z[rows], y[rows])
        np.testing.assert_array_equal(pieces.state(), whole.state())


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_awv_forecasts_are_those_of_the_next_round_and_change_nothing(ridge):
    rng = np.random.default_rng(17)
    Z, y = rng.standard_normal((40, 11)), rng.uniform(-1, 1, 40)
    factor = Factor(11, 0.5, ridge)
    factor.play(Z[:39], y[:39])
    before = factor.state()
    twice = [factor.forecast(Z[[39, 3, 39]]) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
    np.testing.assert_array_equal(factor.state(), before)
    factor.play(Z[39:], y[39:])
    np.testing.assert_allclose(twice[0][[0, 2]], factor.forecasts[39], rtol=1e-11)


@pytest.mark.parametrize("bad", [0, 1, 2, 3, 7, 13, 16])
def test_awv_rounds_say_in_which_round_a_forecast_is_not_finite(bad):
    rng = np.random.default_rng(18)
    Z, y = rng.standard_normal((17, 5)), rng.uniform(-1, 1, 17)
    Z[bad, 2] = np.nan
    factor = Factor(5, 1.0)
    played, status = factor.play(Z, y)
    assert (played, status) == (bad, NOT_FINITE)
    assert np.isfinite(factor.forecasts).all() and len(factor.forecasts) == bad


# ---- 7. Leverage scores and KORS ----


def exact_scores(K, alpha):
    """Return phi_t' (sum_{i<=t} phi_i phi_i' + alpha I)^-1 phi_t of every round t."""
    scores = []
    for t in range(len(K)):
        Kt = K[: t + 1, : t + 1]
        scores.append(np.linalg.solve(Kt + alpha * np.eye(t + 1), Kt[:, t])[t])
    return np.array(scores)


@with_poison
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 100.0])
def test_leverage_score_by_its_definition_in_feature_space(alpha):
    rng = np.random.default_rng(19)
    m, d, cap = 9, 4, 12
    phi, new = rng.standard_normal((m, d)), rng.standard_normal(d)
    p = rng.uniform(0.1, 1.0, m)
    S = 1 / np.sqrt(p)
    factor = scipy.linalg.cholesky(S[:, None] * (phi @ phi.T) * S + alpha * np.eye(m))
    row, weights, b = poisoned(cap), poisoned(cap), poisoned(cap)
    row[:m], weights[:m] = phi @ new, S
    A = (phi.T / p) @ phi + np.outer(new, new) + alpha * np.eye(d)
    score = new @ np.linalg.solve(A, new)
    C = upper_buffer(factor, cap)
    b[:m] = S * row[:m]
    assert leverage(C, b, new @ new, alpha, m) == pytest.approx(score, rel=1e-10)
    eps, beta = 0.3, 0.5
    probability = kors_probability(row, weights, C, b, new @ new, alpha, beta, eps, m)
    assert probability == pytest.approx(min(beta * (1 + eps) * score, 1.0), rel=1e-10)
    assert kors_probability(row, weights, C, b, new @ new, alpha, 1e9, eps, m) == 1.0
    assert untouched(b[m:])
    # kept with probability q: the factor of the dictionary with one more weighted point
    q = 0.37
    kors_probability(row, weights, C, b, new @ new, alpha, beta, eps, m)
    assert kors_keep(weights, C, b, new @ new, alpha, q, m) > 0.0
    phi, S = np.vstack([phi, new]), np.append(S, 1 / math.sqrt(q))
    np.testing.assert_allclose(weights[: m + 1], S, rtol=1e-15)
    dense = S[:, None] * (phi @ phi.T) * S + alpha * np.eye(m + 1)
    factor = upper_part(C, m + 1)
    assert close(factor.T @ factor, dense, rtol=1e-13)


def play_kors(X, coins, kernel, alpha, beta, eps, largest=np.inf, cap=4):
    """Return probabilities, kept and weights of KORS, with buffers that grow from ``cap``."""
    coded = kernel._code()
    n, d = X.shape
    state = np.zeros(1, dtype=np.int64)
    atoms, weights, C = poisoned(d, cap), poisoned(cap), poisoned(cap, cap)
    played, kept = poisoned(n), np.full(n, -1)
    first = 0
    while True:
        first, status = kors_rounds(
            X, coins, first, coded, (alpha, beta, eps, largest), state, atoms, weights, C,
            poisoned(cap), poisoned(cap), played, kept,
        )  # fmt: skip
        if status != NEED_ROOM:
            break
        more = cap + 3
        atoms = np.pad(atoms, ((0, 0), (0, 3)), constant_values=POISON[0])
        weights = np.pad(weights, (0, 3), constant_values=POISON[0])
        C = np.pad(C, (0, 3), constant_values=POISON[0])
        cap = more
    assert (first, status) == (n, DONE)
    m = state[0]
    np.testing.assert_array_equal(atoms[:, :m].T, X[kept == 1])
    assert untouched(atoms[:, m:]) and untouched(weights[m:])
    return played, kept, weights[:m], upper_part(C, m)


def naive_kors(X, coins, kernel, alpha, beta, eps):
    """Return probabilities and kept of KORS by dense solves (kons Algorithm 2, errata 7 and 8)."""
    K = formula(kernel, X, X)
    kept, p, probabilities = [], [], []
    for t in range(len(X)):
        those = [*kept, t]
        S = 1 / np.sqrt(np.array([*p, 1.0]))
        M = S[:, None] * K[np.ix_(those, those)] * S
        tau = (1 + eps) * np.linalg.solve(M + alpha * np.eye(len(those)), M[:, -1])[-1]
        probabilities.append(min(beta * tau, 1.0))
        if coins[t] < probabilities[-1]:
            kept.append(t)
            p.append(probabilities[-1])
    return np.array(probabilities), kept, np.array(p)


@with_poison
@pytest.mark.parametrize("beta", [1.0, 3.0])
@pytest.mark.parametrize("kernel", [kernels.Gaussian(0.5), kernels.Polynomial(2)], ids=repr)
def test_kors_against_dense_solves(kernel, beta):
    rng = np.random.default_rng(20)
    X, coins = rng.uniform(-1, 1, (120, 2)), rng.random(120)
    expected, indices, p = naive_kors(X, coins, kernel, 0.5, beta, 0.4)
    played, kept, weights, _ = play_kors(X, coins, kernel, 0.5, beta, 0.4)
    assert 5 < len(indices) < 100
    np.testing.assert_array_equal(np.flatnonzero(kept), indices)
    np.testing.assert_allclose(played, expected, rtol=1e-9)
    np.testing.assert_allclose(weights, 1 / np.sqrt(p), rtol=1e-9)


@with_poison
def test_kors_with_huge_beta_keeps_all_with_weight_one_and_its_scores_are_exact():
    rng = np.random.default_rng(21)
    X = rng.uniform(-1, 1, (40, 3))
    kernel, alpha, eps = kernels.Gaussian(0.8), 0.7, 0.5
    played, kept, weights, C = play_kors(X, np.full(40, 1 - 2**-53), kernel, alpha, 1e9, eps)
    assert (kept == 1).all() and (played == 1.0).all() and (weights == 1.0).all()
    K = formula(kernel, X, X)
    assert close(C.T @ C, K + alpha * np.eye(40), rtol=1e-13)
    # Over that full dictionary the score of each prefix's next point, (1 + eps) times the exact one
    coded = kernel._code()
    atoms, beta = np.ascontiguousarray(X.T), 1e-3
    scores = []
    for t in range(40):
        row, b = poisoned(40), poisoned(40)
        kernel_row(coded, X[t], atoms, t, row)
        p = kors_probability(row, weights, C, b, 1.0, alpha, beta, eps, t)
        scores.append(p / beta)
    np.testing.assert_allclose(scores, (1 + eps) * exact_scores(K, alpha), rtol=1e-9)


@with_poison
def test_kors_stops_growing_at_its_largest_size():
    rng = np.random.default_rng(22)
    X = rng.uniform(-1, 1, (30, 2))
    _, kept, weights, _ = play_kors(X, np.zeros(30), kernels.Gaussian(0.1), 1.0, 1e9, 0.5, 7.0)
    assert len(weights) == 7 and (kept[:7] == 1).all() and (kept[7:] == 0).all()


def test_a_score_without_digits_is_nan_and_kors_says_so():
    C, b = np.eye(1), np.array([2.0])
    assert math.isnan(leverage(C, b, 1.0, 1.0, 1))
    row, weights = np.array([2.0]), np.ones(1)
    assert math.isnan(kors_probability(row, weights, C, b, 1.0, 1.0, 1.0, 0.5, 1))


# ---- 8. Losses and the certificate ----

SMOOTH = [SQUARED, SQUARED_HINGE, LOGISTIC]
KINKED = [ABSOLUTE, HINGE]


def loss_formula(code, forecast, y):
    margin = y * forecast
    return {
        SQUARED: lambda: (y - forecast) ** 2,
        ABSOLUTE: lambda: abs(y - forecast),
        HINGE: lambda: max(1 - margin, 0.0),
        SQUARED_HINGE: lambda: max(1 - margin, 0.0) ** 2,
        LOGISTIC: lambda: float(np.logaddexp(0.0, -margin)),
    }[code]()


@pytest.mark.parametrize("code", SMOOTH + KINKED)
def test_loss_values_and_derivatives(code):
    h = 1e-6
    for y, forecast in itertools.product((-1.0, 1.0), np.linspace(-3.05, 3.05, 62)):
        value = loss_value(code, forecast, y)
        assert value == pytest.approx(loss_formula(code, forecast, y), rel=1e-13, abs=1e-15)
        slope = (loss_value(code, forecast + h, y) - loss_value(code, forecast - h, y)) / (2 * h)
        assert loss_derivative(code, forecast, y) == pytest.approx(slope, abs=1e-8)
    many = poisoned(5)
    forecasts, y = np.linspace(-2, 2, 5), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    loss_values(code, forecasts, y, many)
    expected = [loss_formula(code, f, label) for f, label in zip(forecasts, y, strict=True)]
    np.testing.assert_allclose(many, expected, rtol=1e-13)


def test_loss_derivative_is_zero_at_a_kink():
    assert loss_derivative(ABSOLUTE, 0.3, 0.3) == 0.0
    for y in (-1.0, 1.0):
        assert loss_derivative(HINGE, y, y) == 0.0
        assert loss_derivative(HINGE, y * np.nextafter(1.0, 0.0), y) == -y
        assert loss_derivative(SQUARED_HINGE, y, y) == 0.0


@pytest.mark.parametrize("margin", [1e-12, 30.0, 40.0, 700.0, 1e4, 1e300])
def test_logistic_loss_far_out(margin):
    value, slope = loss_value, loss_derivative
    with np.errstate(under="ignore"):
        tail = math.log1p(math.exp(-margin))
        assert value(LOGISTIC, margin, 1.0) == pytest.approx(tail, rel=1e-14)
        assert value(LOGISTIC, margin, -1.0) == pytest.approx(margin + tail, rel=1e-14)
        share = math.exp(-margin) / (1 + math.exp(-margin))
        assert slope(LOGISTIC, margin, 1.0) == pytest.approx(-share, rel=1e-14)
        assert slope(LOGISTIC, margin, -1.0) == pytest.approx(1 - share, rel=1e-14)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_certify_against_a_loop_and_in_two_parts(ridge):
    rng = np.random.default_rng(23)
    n = 12
    y, forecasts = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    shrinks, growth = 1 + rng.random(n), 0.01 * rng.random(n)
    totals = np.array([0.0, 0.0, 0.0, 0.0, 0.0, ridge])
    out = poisoned(3, n)
    for part in (slice(0, 5), slice(5, n)):
        certify(
            y[part], forecasts[part], shrinks[part], growth[part], totals,
            out[0, part], out[1, part], out[2, part],
        )  # fmt: skip
    m = forecasts if ridge else forecasts * shrinks
    loss = np.cumsum((y - forecasts) ** 2)
    comparator = np.cumsum((y - m) ** 2 / shrinks - growth)
    bound = np.maximum.accumulate(abs(y)) ** 2 * np.cumsum(np.log(shrinks)) + np.cumsum(growth)
    np.testing.assert_allclose(out[0], loss, rtol=1e-13)
    np.testing.assert_allclose(out[1], comparator, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(out[2], np.full(n, np.nan) if ridge else bound, rtol=1e-13)


@pytest.mark.parametrize("lam", [1.0, 0.05])
def test_certificate_of_awv_rounds_is_the_exact_comparator_and_log_det(lam):
    rng = np.random.default_rng(24)
    n, r = 25, 6
    Z, y = rng.standard_normal((n, r)), rng.uniform(-1, 1, n)
    factor = Factor(r, lam)
    factor.play(Z, y)
    loss, comparator, bound = poisoned(n), poisoned(n), poisoned(n)
    certify(
        y, np.array(factor.forecasts), np.array(factor.shrinks), np.zeros(n), np.zeros(6),
        loss, comparator, bound,
    )  # fmt: skip
    for t in range(1, n + 1):
        A = lam * np.eye(r) + Z[:t].T @ Z[:t]
        w = np.linalg.solve(A, Z[:t].T @ y[:t])
        best = ((y[:t] - Z[:t] @ w) ** 2).sum() + lam * w @ w
        assert comparator[t - 1] == pytest.approx(best, rel=1e-9, abs=1e-10)
        log_det = np.linalg.slogdet(A / lam)[1]
        assert bound[t - 1] == pytest.approx(abs(y[:t]).max() ** 2 * log_det, rel=1e-10)
    assert (loss - comparator <= bound + 1e-9).all()
