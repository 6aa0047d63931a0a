"""KORS, uniform sampling and ALD against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import oklnumba as okl
from tests import naive, ridge


@pytest.mark.parametrize(("kernel", "k"), ridge.KERNELS, ids=ridge.KERNEL_IDS)
def test_kors_equals_its_definition(kernel, k):
    X, _ = ridge.stream(n=150)
    sampler = okl.KORS(kernel, alpha=0.5, beta=1.3, eps=0.4, seed=7).partial_fit(X)
    rng = np.random.default_rng(7)
    coins = np.array([rng.random() for _ in range(150)])
    kept, probabilities = naive.kors(k, X, coins, 0.5, 1.3, 0.4)
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_allclose(sampler.probabilities_, probabilities[kept], rtol=1e-8)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])
