"""KORS, uniform sampling and ALD against their definitions."""

import numpy as np
import pytest

import oklnumba as okl
from tests import naive, ridge
from tests.curved import SPACES, draws, every_space, stream


@pytest.mark.parametrize("kernel", ridge.KERNELS, ids=repr)
def test_kors_equals_its_definition(kernel):
    X, k = ridge.stream(n=150)[0], naive.kernel_function(kernel)
    sampler = okl.KORS(kernel, alpha=0.5, beta=1.3, eps=0.4, seed=7).partial_fit(X)
    rng = np.random.default_rng(7)
    coins = np.array([rng.random() for _ in range(150)])
    kept, probabilities = naive.kors(k, X, coins, 0.5, 1.3, 0.4)
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_allclose(sampler.probabilities_, probabilities[kept], rtol=1e-8)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])


@every_space
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_ald_keeps_what_is_far_from_the_span(space, threshold):
    kernel, features = SPACES[space]
    X, _ = stream()
    kept = naive.ald(features(X), threshold)
    sampler = okl.ALD(kernel, threshold=threshold).partial_fit(X[:30]).partial_fit(X[30:])
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])
    np.testing.assert_array_equal(sampler.probabilities_, 1.0)


def test_uniform_sampling_is_a_coin_a_point():
    X, _ = stream()
    sampler = okl.UniformSampling(okl.Gaussian(1.0), probability=0.2, seed=4).partial_fit(X[:1])
    sampler.partial_fit(X[1:7]).partial_fit(X[7:])
    kept = np.flatnonzero(draws(4, 300) < 0.2)
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])
    np.testing.assert_array_equal(sampler.probabilities_, 0.2)


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
    X, _ = stream()
    F = sampler.partial_fit(X).transform(X)
    K = naive.laplacian(X, X, 0.7)
    columns = K[:, sampler.indices_]
    nystrom = columns @ np.linalg.pinv(columns[sampler.indices_], 1e-12) @ columns.T
    np.testing.assert_allclose(F @ F.T, nystrom, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(sampler.features().transform(X), F)
    if isinstance(sampler, okl.ALD):
        assert np.sqrt(np.diag(K - nystrom).max()) <= 0.3
