"""Every exported sampler, which has no labels and no forecasts; KORS, ALD by their definitions."""

import copy
import functools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import oklnumba as okl
from tests.battery import HARD, HOLDERS, SAMPLERS, N, bad_values, hard_stream, stream
from tests.checks import COMPILED, refused, troubled
from tests.reference import naive
from tests.streams import KERNELS, SPACES, draws, every_space, newton_stream, smooth


def kors_stream(n=N):
    return 2 * stream(okl.KernelAWV(okl.Gaussian(1.0)), n)[0]


every_sampler = pytest.mark.parametrize("cls", SAMPLERS, ids=lambda cls: cls.__name__)


def sampled(cls, **params):
    return cls(okl.Gaussian(1.0), **params)


def dictionary(sampler):
    return sampler.indices_.tolist(), sampler.probabilities_.tolist(), sampler.landmarks_.tolist()


@functools.cache
def plain_dictionary(cls):
    return dictionary(sampled(cls).partial_fit(kors_stream()))


@every_sampler
def test_dictionary_of_a_sampler(cls):
    X = kors_stream()
    sampler = sampled(cls)
    assert sampler.size == 0
    assert sampler.partial_fit(X) is sampler
    least = 32 if COMPILED else 0  # so that buffers grow
    assert least < sampler.size == len(sampler.indices_) < N
    assert_array_equal(sampler.landmarks_, X[sampler.indices_])
    assert (np.diff(sampler.indices_) > 0).all()
    assert ((sampler.probabilities_ > 0) & (sampler.probabilities_ <= 1)).all()
    features = sampler.features()
    assert_allclose(features.captured(sampler.landmarks_), 1.0, rtol=1e-9)
    assert_array_equal(sampler.transform(X[:9]), features.transform(X[:9]))


@every_sampler
@settings(max_examples=15)
@given(sizes=st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_a_sampler_is_the_same_however_the_stream_is_cut(cls, sizes):
    sampler, X, start = sampled(cls), kors_stream(), 0
    for size in [*sizes, N]:
        if start < N:
            sampler.partial_fit(X[start : start + size])
        start += size
    assert dictionary(sampler) == plain_dictionary(cls)


@every_sampler
def test_seeds_copies_and_inputs_of_a_sampler(cls, tmp_path):
    X = kors_stream()
    given_away = X.copy()
    sampler = sampled(cls).partial_fit(given_away[: N // 3])
    assert_array_equal(given_away, X)
    copies = [pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)]
    given_away[:] = 0.0
    for one in (sampler, *copies):
        assert dictionary(one.partial_fit(X[N // 3 :])) == plain_dictionary(cls)
    if "seed" in sampler.get_params():
        other = sampled(cls, seed=1).partial_fit(X)
        assert dictionary(other) != plain_dictionary(cls)
    twin = clone(sampler)
    assert twin.size == 0 and dictionary(twin.partial_fit(X, None)) == plain_dictionary(cls)
    for holder in HOLDERS.values():
        held = sampled(cls).partial_fit(holder(X, tmp_path / "x.npy"))
        assert dictionary(held) == plain_dictionary(cls)
    assert repr(sampler).startswith(f"{cls.__name__}(kernel=Gaussian(sigma=1.0), ")


@every_sampler
@pytest.mark.parametrize("name", HARD)
def test_samplers_on_hard_streams(cls, name):
    X, _ = hard_stream(name, okl.KernelAWV(okl.Gaussian(1.0)), 200 if COMPILED else 40)
    sampler = sampled(cls).partial_fit(X)
    assert 1 <= sampler.size <= len(X)
    assert np.isfinite(sampler.probabilities_).all() and np.isfinite(sampler.transform(X)).all()
    if name in ("repeated", "zero"):
        assert sampler.size < 30


@pytest.mark.parametrize(
    "cls, name", [(cls, name) for cls in SAMPLERS for name in sampled(cls).get_params()]
)
def test_hyper_parameters_of_a_sampler_out_of_range(cls, name):
    X, last = kors_stream(90), name.split("__")[-1]
    whole = sampled(cls)
    for bad in bad_values(whole.kernel if "__" in name else whole, last):
        sampler = sampled(cls)
        refused(rf"\b{last}\b", sampler.set_params, **{name: bad})
        assert dictionary(sampler.fit(X)) == dictionary(sampled(cls).fit(X))
        vars(sampler.kernel if "__" in name else sampler)[last] = bad
        refused(rf"\b{last}\b", sampler.fit, X)


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
def test_kors_refuses_to_go_on_after_numerical_trouble():
    X = kors_stream(60)
    sampler = okl.KORS(okl.Polynomial(3)).partial_fit(X[:30])
    huge = X.copy()
    huge[45:] *= 1e160  # the first points of the same call are good
    troubled(r"point 46\b", sampler.partial_fit, huge[30:])
    assert sampler.size == len(sampler.indices_) == len(sampler.landmarks_)
    troubled(r"point 46\b", sampler.partial_fit, X[30:])
    assert dictionary(sampler.fit(X)) == dictionary(okl.KORS(okl.Polynomial(3)).fit(X))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kors_equals_its_definition(kernel):
    X, k = smooth(150)[0], naive.kernel_function(kernel)
    sampler = okl.KORS(kernel, alpha=0.5, beta=1.3, eps=0.4, seed=7).partial_fit(X)
    rng = np.random.default_rng(7)
    coins = np.array([rng.random() for _ in range(150)])
    kept, probabilities = naive.kors(k, X, coins, 0.5, 1.3, 0.4)
    assert_array_equal(sampler.indices_, kept)
    assert_allclose(sampler.probabilities_, probabilities[kept], rtol=1e-8)
    assert_array_equal(sampler.landmarks_, X[kept])


@every_space
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_ald_keeps_what_is_far_from_the_span(space, threshold):
    kernel, features = SPACES[space]
    X, _ = newton_stream()
    kept = naive.ald(features(X), threshold)
    sampler = okl.ALD(kernel, threshold=threshold).partial_fit(X[:30]).partial_fit(X[30:])
    assert_array_equal(sampler.indices_, kept)
    assert_array_equal(sampler.landmarks_, X[kept])
    assert_array_equal(sampler.probabilities_, 1.0)


def test_uniform_sampling_is_a_coin_a_point():
    X, _ = newton_stream()
    sampler = okl.UniformSampling(okl.Gaussian(1.0), probability=0.2, seed=4).partial_fit(X[:1])
    sampler.partial_fit(X[1:7]).partial_fit(X[7:])
    kept = np.flatnonzero(draws(4, 300) < 0.2)
    assert_array_equal(sampler.indices_, kept)
    assert_array_equal(sampler.landmarks_, X[kept])
    assert_array_equal(sampler.probabilities_, 0.2)


@pytest.mark.parametrize(
    "sampler",
    [
        okl.KORS(okl.Laplacian(0.7), beta=50.0),
        okl.UniformSampling(okl.Laplacian(0.7), probability=0.1),
        okl.ALD(okl.Laplacian(0.7), threshold=0.3),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_samplers_serve_as_nystrom_maps(sampler):
    X, _ = newton_stream()
    F = sampler.partial_fit(X).transform(X)
    K = naive.laplacian(X, X, 0.7)
    columns = K[:, sampler.indices_]
    nystrom = columns @ np.linalg.pinv(columns[sampler.indices_], 1e-12) @ columns.T
    assert_allclose(F @ F.T, nystrom, rtol=0, atol=1e-9)
    assert_array_equal(sampler.features().transform(X), F)
    if isinstance(sampler, okl.ALD):
        assert np.sqrt(np.diag(K - nystrom).max()) <= 0.3
