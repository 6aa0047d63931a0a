"""Sparse rows: the bits of the dense array, block by block, and never all rows dense at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba.core import inputs
from tests.battery import assert_same_run, contents, every_learner, far_from_the_origin, make
from tests.checks import peak_of, refused

N, D = 300, 7
RNG = np.random.default_rng(0)
SPARSE = sp.csr_array(np.round(RNG.uniform(-1, 1, (N, D)), 2) * (RNG.uniform(size=(N, D)) < 0.4))
DENSE = SPARSE.toarray()  # no zero is -0.0
KERNELS = [okl.Gaussian(0.8), okl.Matern(1.5), okl.Polynomial(3), okl.Linear()]


def labels(learner):
    values = np.sin(3 * DENSE[:, 0]) + DENSE[:, 1] - 0.1
    return np.where(values > 0, 1.0, -1.0) if learner._loss().classes else np.clip(values, -1, 1)


def wide_indices(a):
    rows = sp.csr_array(a)
    places = (one.astype(np.int64) for one in (rows.indices, rows.indptr))
    return sp.csr_array((rows.data, *places), shape=rows.shape)


def doubled(a):
    """Return a matrix that holds each number as the sum of two halves, and some zeros."""
    rows, columns = np.nonzero(a + 2.0)
    halves = np.tile(a[rows, columns] / 2, 2)
    return sp.coo_matrix((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=a.shape)


def unsorted(a):
    rows = sp.csr_matrix(a)
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        for array in (rows.indices, rows.data):
            array[start:stop] = array[start:stop][::-1].copy()
    rows.has_sorted_indices = False
    return rows


FORMATS = {
    "csr matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "lil": sp.lil_matrix,
    "int64 indices": wide_indices,
    "sums and zeros": doubled,
    "unsorted": unsorted,
}


@pytest.fixture
def small(monkeypatch):
    """Cut blocks of the fewest rows, 64."""
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 1)


@pytest.mark.slow
@far_from_the_origin
@every_learner
def test_every_learner_plays_sparse_rows(cls, small):
    plain, learner = make(cls), make(cls)
    y = labels(plain)
    assert_same_run(okl.run(learner, SPARSE, y), okl.run(plain, DENSE, y))
    assert contents(learner) == contents(plain)
    assert_array_equal(learner.predict(SPARSE), plain.predict(DENSE))
    assert contents(learner.partial_fit(SPARSE, y)) == contents(plain.partial_fit(DENSE, y))


@pytest.mark.parametrize("hold", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, bool])
def test_every_format_of_sparse_rows(hold, dtype, small):
    dense = DENSE.astype(np.float32) if np.dtype(dtype).kind == "f" else np.sign(DENSE)
    held = hold(np.abs(dense)).astype(dtype) if hold is not doubled else hold(np.abs(dense))
    before = held.copy()
    plain, learner = okl.FOGD(n_frequencies=20), okl.FOGD(n_frequencies=20)
    y = labels(plain)
    expected = okl.run(plain, held.toarray().astype(float), y)
    assert_same_run(okl.run(learner, held, y), expected)
    assert contents(learner) == contents(plain)
    assert held.format == before.format and (held.toarray() == before.toarray()).all()


def test_pieces_of_a_sparse_stream_and_single_rows():
    plain, learner, one = (okl.PKAWV(okl.TaylorFeatures(2)) for _ in range(3))
    y = labels(plain)
    okl.run(plain, DENSE, y)
    pairs = [(SPARSE[:100], y[:100]), (sp.csc_matrix(DENSE[100:101]), y[100:101])]
    okl.run(learner, iter([*pairs, (DENSE[101:], y[101:])]))
    assert contents(learner) == contents(plain)
    for i in range(40):
        for row in (SPARSE[i], sp.csr_matrix(DENSE[i : i + 1]), sp.coo_array(DENSE[i])):
            assert one.predict_one(row) == one.predict_one(DENSE[i])
        one.learn_one(SPARSE[i], y[i])
    plain = okl.PKAWV(okl.TaylorFeatures(2)).partial_fit(DENSE[:40], y[:40])
    assert contents(one) == contents(plain)
    classes = okl.OneVsRest(plain, [-1, 1]).partial_fit(SPARSE, np.sign(y))
    assert_array_equal(classes.scores(SPARSE), classes.scores(DENSE))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("cut", [False, True])
def test_kernels_of_sparse_rows(kernel, cut, monkeypatch):
    expected, diagonal = kernel(DENSE, DENSE[:90]), kernel.diag(DENSE)
    if cut:
        monkeypatch.setattr(inputs, "BLOCK_BYTES", 1)
    for X, Z in [(SPARSE, SPARSE[:90]), (SPARSE, DENSE[:90]), (DENSE, SPARSE[:90]), (DENSE,) * 2]:
        assert_array_equal(kernel(X, Z[:90]), expected)
    gram = kernel(SPARSE)
    assert_array_equal(gram, gram.T)
    assert_array_equal(gram[:, :90], expected)
    assert_array_equal(kernel.diag(SPARSE), diagonal)


def test_the_captured_share_of_sparse_rows(small):
    """What else features and samplers make of them is in test_transformers.py."""
    features = okl.NystromFeatures(DENSE[:50], okl.Polynomial(2), rank=9)
    assert_array_equal(features.captured(SPARSE), features.captured(DENSE))


def test_all_rows_are_never_dense_at_once():
    n, d = 20_000, 500
    X = sp.random_array((n, d), density=0.01, format="csr", random_state=np.random.default_rng(0))
    y, dense = np.where(X[:, [0]].toarray().ravel() > 0, 1.0, -1.0), 8 * n * d
    learner, kernel = okl.FOGD(n_frequencies=8, sigma=5.0), okl.Gaussian(5.0)
    sampler = okl.UniformSampling(kernel, probability=1e-3)
    features, centres = okl.FourierFeatures(8, sigma=5.0), X[:8]
    for call in (
        lambda: okl.run(learner, X, y),
        lambda: learner.partial_fit(X, y),
        lambda: learner.predict(X),
        lambda: kernel(X, centres),
        lambda: kernel.diag(X),
        lambda: features.transform(X),
        lambda: sampler.partial_fit(X),
    ):
        peak, _ = peak_of(call)
        assert peak < 0.35 * dense
    assert peak_of(lambda: learner.predict(X.toarray()))[0] > dense  # the measure measures


def with_number(value, dtype=float):
    rows = sp.csr_array(DENSE).astype(dtype)
    rows.data[rows.indptr[17] + 1] = value
    return rows, rows.indices[rows.indptr[17] + 1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_bad_number_is_named_and_nothing_has_changed(value):
    X, column = with_number(value)
    learner = okl.FOGD(n_frequencies=20)
    y, before = labels(learner), contents(learner)
    for call in (
        lambda: learner.partial_fit(X, y),
        lambda: okl.run(learner, X, y),
        lambda: learner.predict(X.tocsc()),
        lambda: okl.Gaussian()(DENSE, X[:, :]),
        lambda: okl.KORS(okl.Gaussian()).partial_fit(X),
        lambda: okl.FourierFeatures().transform(X),
    ):
        refused(f" has {value} at row 17, column {column}; remove or", call)
    assert contents(learner) == before


@pytest.mark.parametrize(
    "X, message",
    [
        (SPARSE[:0], r"X is empty"),
        (SPARSE[:, :0], r"X is empty"),
        (sp.coo_array(DENSE[0]), r"X must be 2-D"),
        (with_number(1j, complex)[0], r"X must hold real numbers, but its dtype is complex128"),
    ],
)
def test_sparse_rows_that_will_not_do(X, message):
    learner = okl.LinearRidge()
    refused(message, lambda: learner.partial_fit(X, np.ones(X.shape[0])))
    refused(message, lambda: okl.run(learner, X, np.ones(X.shape[0])))
    assert learner.rounds == 0


def test_what_needs_all_rows_at_once_says_so():
    y = np.ones(N)
    for call in (
        lambda: okl.theory.comparator(okl.Gaussian(), SPARSE, y, 1.0),
        lambda: okl.Standardizer().stream(SPARSE),
        lambda: okl.NystromFeatures(SPARSE[:9], okl.Gaussian()).transform(DENSE),
    ):
        refused(r"is sparse, where dense numbers are needed: pass ", call)
    with pytest.raises(ValueError, match=r"y is sparse.*y\.toarray\(\)\.ravel\(\)"):
        okl.run(okl.FOGD(), DENSE, sp.csr_array(y[:, None]))
