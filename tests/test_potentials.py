"""Potentials by their identities; portfolios and least squares as games."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.components import potentials
from oklnumba.components.potentials import dual_exponent, euclidean, negative_entropy
from oklnumba.experiments.games import LeastSquares, Portfolio, play
from tests.checks import COMPILED, refused
from tests.reference import naive_linear
from tests.streams import D, linear_stream

POTENTIALS = [
    euclidean(0.7),
    euclidean(2.0, radius=1.5),
    potentials.squared_p_norm(0.5, 1.3),
    potentials.squared_p_norm(1.0, 2.0),
    negative_entropy(0.8),
    negative_entropy(0.3, scale=4.0),
]
vectors = st.lists(st.floats(-20, 20), min_size=D, max_size=D).map(np.array)


@pytest.mark.parametrize("potential", POTENTIALS, ids=lambda one: one.name)
@settings(max_examples=60 if COMPILED else 5)
@given(s=vectors, r=vectors)
def test_identities_of_conjugates_and_mirror_maps(potential, s, r):
    w, v = potential.mirror_map(s), potential.mirror_map(r)
    # the maximiser attains the conjugate; Fenchel and Young hold for every other point
    assert potential.conjugate(s) == pytest.approx(s @ w - potential.value(w), rel=1e-9, abs=1e-9)
    assert potential.value(v) + potential.conjugate(s) >= s @ v - 1e-9 * (1 + abs(s @ v))
    # the mirror map is the gradient of the conjugate
    h = 1e-6
    slope = (potential.conjugate(s + h * (r - s)) - potential.conjugate(s - h * (r - s))) / (2 * h)
    assert slope == pytest.approx(w @ (r - s), rel=1e-4, abs=1e-2)
    # strong convexity of Phi and smoothness of Phi*, Facts 7 and 14
    if potential.dual_norm(s - r) > 1e-9:
        moved = potential.norm(w - v)
        assert moved <= potential.dual_norm(s - r) / potential.strength * (1 + 1e-9) + 1e-12
    # dual norms: Fact 1
    assert s @ r <= potential.norm(s) * potential.dual_norm(r) * (1 + 1e-12) + 1e-12


def test_examples_of_the_notes():
    entropy, square = negative_entropy(), euclidean(eta=0.25)
    s = np.array([1.0, -2.0, 0.5])
    assert entropy.conjugate(s) == pytest.approx(np.log(np.exp(s).sum()))  # Example 5.4
    assert square.conjugate(s) == pytest.approx(0.25 / 2 * (s @ s))  # Example 5.3
    assert dual_exponent(1.5) == pytest.approx(3.0)
    assert (dual_exponent(1), dual_exponent(np.inf)) == (np.inf, 1.0)


def test_norms_keep_their_digits_where_powers_leave_double_precision():
    for w, p, norm in (([0.1, -0.3], 1001.0, 0.3), ([3e200, 4e200], 2.0, 5e200), ([0.0], 2.0, 0.0)):
        assert potentials.p_norm(w, p) == pytest.approx(norm)


def test_points_outside_the_domain_are_refused():
    entropy, ball = negative_entropy(), euclidean(radius=1.0)
    game = Portfolio([[1.0, 2.0]])
    for bad, why in (([0.5, 0.6], "sums to 1.1"), ([-0.1, 1.1], "-0.1 at column 0"),
                     ([np.nan, 1.0], "nan"), ([[0.5, 0.5]], "shape")):  # fmt: skip
        calls = [entropy.value, lambda w: game.loss(0, w), game.losses,
                 lambda w: game.gradient(0, w), potentials.check_simplex]  # fmt: skip
        for call in calls:
            refused(why, call, bad)
    for call, why in [
        (lambda: ball.value([1.0, 1.0]), "in the ball of radius 1"),
        (lambda: Portfolio([[1.0, 0.0]]), "relatives must be numbers > 0"),
        (lambda: game.wealth([[0.5, 0.5, 0.0]]), "points"),
        (lambda: euclidean(eta=0.0), "eta must be"),
        (lambda: potentials.squared_p_norm(1.0, 1.0), "p must be"),
        (lambda: negative_entropy(scale=-1.0), "scale must be"),
        (lambda: dual_exponent(0.5), "p must be"),
    ]:
        refused(why, call)


def test_the_best_portfolio_is_a_minimum_on_the_simplex():
    rng = np.random.default_rng(0)
    relatives = np.exp(0.05 * rng.standard_normal((200, 3)))
    relatives[:, 0] *= 1.005
    game = Portfolio(relatives)
    best = game.best()
    potentials.check_simplex(best)
    # the loss is convex, and no direction on the simplex lowers it
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
    X, y = linear_stream(11)
    game = LeastSquares(X, y, radius=radius)
    best = game.best()
    total = game.losses(best).sum()
    expected = naive_linear.quadratic_argmin(X.T @ X, X.T @ y, "ball" if radius else "all", radius)
    assert_allclose(best, expected, rtol=1e-7, atol=1e-9)
    run = play(okl.OGD(0.1, radius=radius), game)
    assert_allclose(run.losses, [game.loss(t, w) for t, w in enumerate(run.points)])
    assert run.regret()[-1] == pytest.approx(run.losses.sum() - total)
    eps = 1e-6
    for j in range(D):
        step = eps * np.eye(D)[j]
        slope = (game.loss(3, best + step) - game.loss(3, best - step)) / (2 * eps)
        assert game.gradient(3, best)[j] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("share", [1 - 1e-9, 0.5])
def test_least_squares_in_a_ball_on_columns_of_any_scale(share):
    X, y = linear_stream(11)
    X = X[:, :3] * [1e-6, 1.0, 1e3]
    free = LeastSquares(X, y).best()
    game = LeastSquares(X, y, radius=share * np.linalg.norm(free))
    assert np.linalg.norm(game.best()) == pytest.approx(game.radius)
    assert game.losses(game.best()).sum() <= game.losses(share * free).sum() * (1 + 1e-12)
