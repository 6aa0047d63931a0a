"""FOGD against the textbook, in any cut, with large phases, and its bound."""

import numpy as np
import pytest

import oklnumba as okl
from tests import naive, naive_expansions
from tests.compare import assert_close
from tests.expansions import LOSSES, ROUNDS, data, stream


@pytest.mark.parametrize("loss", LOSSES)
def test_fogd_equals_the_textbook(loss):
    X, y, _, slope = data(loss)
    features = okl.FourierFeatures(60, sigma=0.8, seed=4)
    expected = naive.gradient_forecasts(features.transform(X), y, slope, 0.2)
    run = okl.run(okl.FOGD(loss=loss, eta=0.2, sigma=0.8, n_frequencies=60, seed=4), X, y)
    assert_close(run.predictions, expected)
    other = okl.TaylorFeatures(3, sigma=0.8)  # not made inside the loop
    expected = naive.gradient_forecasts(naive.taylor(X, 3, 0.8), y, slope, 0.2)
    assert_close(okl.run(okl.FOGD(other, loss=loss, eta=0.2), X, y).predictions, expected)


@pytest.mark.filterwarnings("ignore:the kernel is 0")
def test_fogd_with_phases_beyond_the_fast_range():
    X, y = stream(60)
    X = X * 1e7
    features = okl.FourierFeatures(20, sigma=1.0, seed=1)
    F = np.concatenate(
        [f(X @ features._frequencies(3)[0]) for f in (np.sin, np.cos)], axis=1
    ) / np.sqrt(20)
    expected = naive.gradient_forecasts(F, y, naive_expansions.hinge_slope, 0.2)
    found = okl.run(okl.FOGD(features, eta=0.2), X, y).predictions
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_the_bound_of_fogd_in_the_space_of_its_features():
    X, y = stream(ROUNDS, seed=6)
    features = okl.FourierFeatures(40, sigma=1.0, seed=2)
    F = features.transform(X)
    for eta in (0.01, 0.1, 1.0):
        run = okl.run(okl.FOGD(features, eta=eta), X, y)
        for w in (np.zeros(80), F.T @ y / 20, np.linalg.lstsq(F, y, rcond=None)[0]):
            regret = run.losses.sum() - np.maximum(1 - y * (F @ w), 0.0).sum()
            assert regret <= w @ w / (2 * eta) + eta / 2 * np.count_nonzero(run.losses)
