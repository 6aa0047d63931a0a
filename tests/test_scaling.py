"""The online standardiser: its definition, hard columns, causality, and any learner behind it."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.components.scaling import measure_range
from tests.battery import assert_same_proofs, every_member, labels, make
from tests.checks import COMPILED, refused, troubled
from tests.reference import naive

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 65])
def test_ranges_are_medians_and_median_deviations_of_what_differs(n):
    A = np.concatenate([RNG.standard_normal((40, n)), RNG.integers(-2, 3, (40, n))])
    A[RNG.random(A.shape) < 0.2] = np.nan
    A[:, ::3] *= 1e9
    A[0] = np.nan
    middle, reach = measure_range(A.T.copy().T, 20.0)
    for a, m, r in zip(A, middle, reach, strict=True):
        a = a[~np.isnan(a)]
        assert_array_equal(m, np.median(a) if len(a) else np.nan)
        apart = np.abs(a - m)[np.abs(a - m) > 0.0]
        assert r == (20.0 * np.median(apart) if len(apart) else np.inf)


def columns(n):
    """Return columns of all kinds side by side."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(n)
    far = 1e9 + noise, -1e12 + 1e-2 * noise, np.where(np.arange(n) < 10, 0.0, 1e9 + noise)
    constant = np.full(n, 7.7), np.full(n, 1e9 + 0.1), np.where(np.arange(n) == n // 2, 3.0, 2.0)
    rare = rng.random(n) < 0.02, rng.random(n) < 0.5, rng.standard_cauchy(n)
    moving = np.cumsum(noise), np.arange(n)
    return np.column_stack([noise, 1e-9 * noise, 1e9 * noise, *far, *constant, *rare, *moving])


@pytest.mark.parametrize("clip", [None, 2.0])
def test_a_row_is_standardised_by_the_rows_before_it(clip):
    X = columns(70 if COMPILED else 40)
    got = okl.Standardizer(clip=clip).stream(X)
    expected = naive.standardised(X, np.inf if clip is None else clip)
    assert_array_equal(got[0], 0.0)
    # 1e12 is known to 1.2e-4, a hundredth of that column's scale: sums of it err by as much.
    assert_allclose(got, expected, rtol=1e-9, atol=1e-10)
    if clip is not None:
        assert np.abs(got).max() == clip


@pytest.mark.skipif(not COMPILED, reason="many rows")
def test_outliers_do_not_scale_the_rows_after_them():
    X = np.random.default_rng(4).standard_normal((700, 4))
    expected = okl.Standardizer().stream(X)
    for t in (0, 3, 15, 16, 100, 255, 256, 400, 699):
        wild = X.copy()
        wild[t] = 99_999.0, -1e3, 1e9, 1e140
        got = okl.Standardizer().stream(wild)
        rest = np.arange(len(X)) > max(t, 100)  # one row of 100 counts as the median
        assert np.abs(got - expected)[rest].max(initial=0.0) < 0.2
        learned = np.transpose([naive.without_outliers(column, 700) for column in wild.T])
        scaler = okl.Standardizer().partial_fit(wild)
        assert_allclose(scaler.scale_, learned.std(axis=0), rtol=1e-9)
        assert_allclose(scaler.scale_, X.std(axis=0), rtol=0.02)
        assert (wild.std(axis=0) > 30.0).all()  # control: the deviation with them


def test_columns_that_are_mostly_equal_keep_their_rare_numbers():
    rng = np.random.default_rng(5)
    rare = np.where(rng.random(1000) < 0.02, 1.0 + rng.exponential(size=1000), 0.0)
    late = np.where(np.arange(1000) < 500, 3.0, rng.standard_normal(1000))
    X = np.column_stack([rare, rare > 0, late])
    assert_allclose(okl.Standardizer().partial_fit(X).scale_, X.std(axis=0), rtol=1e-9)


def test_columns_far_from_zero_lose_no_digits_in_many_rows():
    n = 200_000
    noise = np.random.default_rng(1).standard_normal((n, 1))
    for offset in (1e6, 1e9, 1e12):
        X = offset + noise
        scaler = okl.Standardizer().partial_fit(X)
        shifted = (X - X[0]).astype(np.longdouble)  # exact
        mean, scale = shifted.mean(axis=0), shifted.std(axis=0)
        assert_allclose(scaler.scale_, scale.astype(float), rtol=1e-12)
        expected = np.clip((shifted - mean) / scale, -5, 5).astype(float)
        assert_allclose(scaler.transform(X), expected, atol=1e-11)
    # Control: the sums of x and x^2 have lost all digits there.
    X = 1e9 + noise
    textbook = (X**2).mean() - X.mean() ** 2
    assert abs(textbook - 1.0) > 0.5


def test_a_constant_column_is_centred_and_not_scaled_until_it_moves():
    X = np.array([[0.1 + 0.2], [0.3], [0.1 + 0.2], [0.3], [2.0], [0.3]])  # 0.1 + 0.2 is not 0.3
    assert X[0] != X[1]
    got = okl.Standardizer(clip=None).stream(X)[:, 0]
    assert np.abs(got[:4]).max() < 1e-16  # rounding is not blown up
    assert got[4] == pytest.approx(1.7)
    assert got[5] == pytest.approx((0.3 - 0.64) / 0.68)
    assert okl.Standardizer(clip=1.0).stream(X)[4, 0] == 1.0
    one = okl.Standardizer().partial_fit([[5.0, -2.0]])
    assert_array_equal(one.scale_, 1.0)
    assert_array_equal(one.transform([[5.0, -3.0]]), [[0.0, -1.0]])


CUTS = st.lists(st.integers(1, 30), min_size=1, max_size=8)


@settings(max_examples=20 if COMPILED else 3, deadline=None)
@given(cuts=CUTS)
def test_however_it_is_cut_the_bits_are_the_same(cuts):
    X = columns(100)
    whole = okl.Standardizer()
    expected = whole.stream(X)
    scaler, start = okl.Standardizer(), 0
    for i, rows in enumerate([*cuts, 100]):
        part = X[start : start + rows]
        if len(part) == 0:
            break
        if i % 3 == 2:  # transform, then learn: row by row it is the stream
            for t, x in enumerate(part):
                assert_array_equal(scaler.transform(x[None, :])[0], expected[start + t])
                scaler.partial_fit(x[None, :])
        else:
            assert_array_equal(scaler.stream(part), expected[start : start + rows])
        start += rows
    for name in ("mean_", "scale_", "n_seen_"):
        assert_array_equal(getattr(scaler, name), getattr(whole, name))


def test_copies_go_on_and_reset_starts_afresh():
    X = columns(50)
    scaler = okl.Standardizer(clip=3.0).partial_fit(X[:20])
    copies = copy.deepcopy(scaler), pickle.loads(pickle.dumps(scaler))
    expected = scaler.stream(X[20:])
    for one in copies:
        assert_array_equal(one.stream(X[20:]), expected)
    scaler.set_params(clip=1e-3)  # from the next reset on
    assert np.abs(scaler.transform(X)).max() > 1.0
    assert scaler.reset().n_seen_ == 0
    assert_array_equal(scaler.stream(X), okl.Standardizer(clip=1e-3).stream(X))


@pytest.mark.parametrize("seen", [0, 5])
def test_bad_input_is_refused_and_nothing_changes(seen):
    """What scikit-learn's steps refuse alike is in test_transformers.py."""
    X = RNG.standard_normal((10, 2))
    huge, scaler, twin = X.copy(), okl.Standardizer(), okl.Standardizer()
    huge[3, 1] = -1e200
    if seen:
        scaler.partial_fit(X[:seen])
        twin.partial_fit(X[:seen])
    for call in (scaler.fit, scaler.partial_fit, scaler.stream, *[scaler.transform] * (seen > 0)):
        refused(r"\bX\b.*row 3, column 1", call, huge)
    assert scaler.n_seen_ == twin.n_seen_ == seen
    assert_array_equal(scaler.stream(X), twin.stream(X))


def test_numbers_at_the_edge_of_double_precision():
    X = np.array([[1e140, 5e-324], [-1e140, 0.0], [1e140, 1e-310], [0.0, 1e140], [1.0, 1.0]])
    got = okl.Standardizer(clip=None).stream(X)
    assert np.isfinite(got).all()


def raw(learner, n=120):
    """Return inputs on scales that no learner is made for, and labels."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((n, 3))
    return Z * [1e-4, 1e5, 1.0] + [0.0, 1e9, -50.0], labels(learner, Z[:, 0] * Z[:, 1])


@every_member
def test_it_is_the_learner_on_the_stream_of_the_standardiser(cls):
    learner = okl.Standardized(make(cls), clip=3.0)
    X, y = raw(learner)
    run = okl.run(learner, X, y)
    scaler, plain = okl.Standardizer(3.0), make(cls)
    expected = okl.run(plain, scaler.stream(X), y)
    for name in ("predictions", "losses", "sizes"):
        assert_array_equal(getattr(run, name), getattr(expected, name))
    assert run.loss == expected.loss and learner.size == plain.size
    assert_array_equal(learner.predict(X), plain.predict(scaler.transform(X)))
    assert_same_proofs(run.certificate, expected.certificate)
    if expected.certificate is not None:
        assert run.certificate.space == f"{expected.certificate.space}, of standardised inputs"


def test_numbers_that_are_too_far_even_scaled_are_named():
    X, y = raw(okl.LinearRidge())
    learner = okl.Standardized(okl.LinearRidge()).partial_fit(X, y)
    assert_allclose(learner.predict(X * 0 + 1e300), learner.predict(X * 0 + 1e139))
    troubled("round 124", learner.partial_fit, np.where(np.arange(120)[:, None] == 3, 1e300, X), y)
