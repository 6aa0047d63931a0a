"""Descent on features, FOGD, NOGD and SkeGD, against the textbook; the count sketch."""

import numpy as np
import pytest

import oklnumba as okl
from tests.checks import COMPILED, arrays, assert_close
from tests.reference import naive, naive_expansions
from tests.streams import KERNEL, LOSSES, classes, data


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


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rank", [5, 20, 40])
def test_nogd_equals_the_textbook(loss, rank):
    X, y, K, slope = data(loss)
    learner = okl.NOGD(KERNEL, loss=loss, eta=0.1, budget=40, rank=rank)
    run = okl.run(learner, X, y)
    forecasts, sizes, support = naive_expansions.nogd(K, y, slope, 0.1, 40, rank)
    assert_close(run.predictions, forecasts)
    np.testing.assert_array_equal(run.sizes, sizes)
    np.testing.assert_array_equal(arrays(learner)["atoms"].T, X[support])
    assert sizes[-1] == 40


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("period", [None, 20])
def test_skegd_equals_the_textbook(loss, period):
    X, y, K, slope = data(loss)
    learner = okl.SkeGD(
        KERNEL, loss=loss, eta=0.1, budget=40, sketch=24, columns=12, blocks=3, rank=8,
        period=period, seed=2,
    )  # fmt: skip
    run = okl.run(learner, X, y)
    forecasts, sizes, support = naive_expansions.skegd(
        K, y, slope, 0.1, 40, 8, arrays(learner)["sampled"], learner._sketch_row, period or np.inf
    )
    assert_close(run.predictions, forecasts)
    np.testing.assert_array_equal(run.sizes, sizes)
    np.testing.assert_array_equal(arrays(learner)["stored"].T, X[support])
    assert sizes[-1] == 40 if period is None else sizes[-1] > 42 or not COMPILED


def test_skegd_may_update_its_sketches_at_every_loss():
    X, y = classes(1500 if COMPILED else 60)  # beyond Python's recursion limit
    y = np.random.default_rng(2).choice([-1.0, 1.0], len(y))
    learner = okl.SkeGD(KERNEL, budget=5, sketch=4, columns=4, blocks=1, rank=2, period=1)
    run = okl.run(learner, X, y)
    assert run.sizes[-1] == np.count_nonzero(run.losses) - 1 > len(y) // 2


def test_the_count_sketch_has_one_entry_in_each_block_of_a_row():
    learner = okl.SkeGD(KERNEL, sketch=30, columns=20, blocks=5, rank=9, seed=1)
    learner.learn_one([0.0], 1.0)
    rows = np.array([learner._sketch_row(i) for i in range(200)])
    assert (np.count_nonzero(rows.reshape(200, 5, 6), axis=2) == 1).all()
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0)
    assert len({tuple(row) for row in rows}) > 190
    sampled = arrays(learner)["sampled"]
    assert len(set(sampled)) == 20 and sampled.max() < 400
