"""Taylor and Fourier features against their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from oklnumba.components.features import TaylorFeatures, _monomials
from oklnumba.hot.primitives.features import fourier_block, taylor_block
from tests.buffers import poisoned, untouched, with_poison


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
    shifted, out = poisoned(d), poisoned(11, r + 2)
    taylor_block(X, center, 0.5 / sigma**2, parent, variable, ratio / sigma, shifted, out)
    assert untouched(out[:, r:])
    moved = X - center
    damping = np.exp(-(moved**2).sum(axis=1) / (2 * sigma**2))
    for column, k in enumerate(table_indices(parent, variable, d)):
        norm = math.prod(math.factorial(c) for c in k) ** 0.5 * sigma ** sum(k)
        expected = damping * (moved ** np.array(k)).prod(axis=1) / norm
        np.testing.assert_allclose(out[:, column], expected, rtol=1e-13, atol=1e-300)
    features = TaylorFeatures(degree, sigma=sigma, center=center if centred else None)
    np.testing.assert_allclose(features.transform(X), out[:, :r], rtol=1e-13)


def test_taylor_gram_matrix_tends_to_the_gaussian_kernel():
    X = np.random.default_rng(5).uniform(-1, 1, (9, 2))
    K = np.exp(-cdist(X, X, "sqeuclidean") / 2)
    grams = [TaylorFeatures(degree, sigma=1.0).transform(X) for degree in (1, 4, 8, 16)]
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
