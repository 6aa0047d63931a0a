"""Portfolios and least squares as games, and the mean of their points."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.experiments.games import LeastSquares, Portfolio, play
from tests import naive_linear
from tests.linear_games import D, data


def test_portfolio_against_a_search_over_the_simplex():
    rng = np.random.default_rng(0)
    relatives = np.exp(0.05 * rng.standard_normal((200, 3)))
    relatives[:, 0] *= 1.005
    game = Portfolio(relatives)
    best = game.best()
    grid = np.array([[a, b, 1 - a - b] for a in np.linspace(0, 1, 101)
                     for b in np.linspace(0, 1 - a, 101)])  # fmt: skip
    values = -np.log(np.maximum(relatives @ grid.T, 1e-300)).sum(axis=0)
    assert game.losses(best).sum() <= values.min() + 1e-9
    # optimality: no direction on the simplex lowers the loss
    gradient = -(relatives / (relatives @ best)[:, None]).sum(axis=0)
    assert gradient @ best - gradient.min() <= 1e-6
    run = play(okl.Hedge(eta=0.05), game)
    assert_allclose(game.wealth(run.points), np.exp(-np.cumsum(run.losses)), rtol=1e-12)
    assert_allclose(run.regret()[-1], np.log(game.wealth(np.tile(best, (200, 1)))[-1])
                    + run.losses.sum(), rtol=1e-9)  # fmt: skip


def test_portfolio_of_equal_and_of_one_asset():
    same = Portfolio(np.tile(np.exp(np.linspace(-0.1, 0.1, 50))[:, None], (1, 3)))
    assert same.losses(same.best()).sum() == pytest.approx(0.0, abs=1e-9)
    one = Portfolio([[1.1], [0.9]])
    assert_array_equal(one.best(), [1.0])


@pytest.mark.parametrize("radius", [None, 0.5])
def test_least_squares_game(radius):
    X, y = data(11)
    game = LeastSquares(X, y, radius=radius)
    best = game.best()
    total = game.losses(best).sum()
    expected = naive_linear.quadratic_argmin(X.T @ X, X.T @ y, "ball" if radius else "all", radius)
    assert_allclose(best, expected, rtol=1e-7, atol=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(200):
        w = best + 0.1 * rng.standard_normal(D)
        if radius:
            w *= min(1.0, radius / np.linalg.norm(w))
        assert game.losses(w).sum() >= total - 1e-12
    run = play(okl.OGD(0.1, radius=radius), game)
    assert_allclose(run.losses, [game.loss(t, w) for t, w in enumerate(run.points)])
    assert run.regret()[-1] == pytest.approx(run.losses.sum() - total)
    eps = 1e-6
    for j in range(D):
        step = eps * np.eye(D)[j]
        slope = (game.loss(3, best + step) - game.loss(3, best - step)) / (2 * eps)
        assert game.gradient(3, best)[j] == pytest.approx(slope, abs=1e-8)
