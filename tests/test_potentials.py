"""Potentials: conjugates, mirror maps and norms by their identities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import oklnumba as okl
from oklnumba.components.potentials import (
    check_simplex,
    dual_exponent,
    euclidean,
    negative_entropy,
    squared_p_norm,
)
from oklnumba.experiments.games import Portfolio
from tests.compiled import COMPILED
from tests.linear_games import D, game_gradients, played

LEARNERS = {  # whose points the mirror maps are
    euclidean(0.7): okl.OGD(0.7),
    euclidean(2.0, radius=1.5): okl.LazyOGD(2.0, radius=1.5),
    squared_p_norm(0.5, 1.3): okl.PNorm(0.5, p=1.3),
    squared_p_norm(1.0, 2.0): okl.PNorm(1.0, p=2.0),
    negative_entropy(0.8): okl.Hedge(0.8),
    negative_entropy(0.3, scale=4.0): okl.Hedge(0.3, scale=4.0),
}
every_potential = pytest.mark.parametrize("potential", LEARNERS, ids=lambda one: one.name)
vectors = st.lists(st.floats(-20, 20), min_size=D, max_size=D).map(np.array)


@every_potential
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


@every_potential
def test_mirror_maps_are_the_points_of_the_learners(potential):
    gradients = game_gradients(2)
    sums = np.vstack([np.zeros(D), np.cumsum(gradients, axis=0)])
    expected = [potential.mirror_map(-G) for G in sums]
    assert_allclose(played(LEARNERS[potential], gradients), expected, rtol=1e-9, atol=1e-12)


def test_points_outside_the_domain_are_refused():
    entropy, ball = negative_entropy(), euclidean(radius=1.0)
    game = Portfolio([[1.0, 2.0]])
    for bad, why in (([0.5, 0.6], "sums to 1.1"), ([-0.1, 1.1], "-0.1 at column 0"),
                     ([np.nan, 1.0], "nan"), ([[0.5, 0.5]], "shape")):  # fmt: skip
        calls = [entropy.value, lambda w: game.loss(0, w), game.losses,
                 lambda w: game.gradient(0, w), check_simplex]  # fmt: skip
        for call in calls:
            with pytest.raises(ValueError, match=why):
                call(bad)
    for call, why in [
        (lambda: ball.value([1.0, 1.0]), "in the ball of radius 1"),
        (lambda: Portfolio([[1.0, 0.0]]), "relatives must be numbers > 0"),
        (lambda: game.wealth([[0.5, 0.5, 0.0]]), "points"),
        (lambda: euclidean(eta=0.0), "eta must be"),
        (lambda: squared_p_norm(1.0, 1.0), "p must be"),
        (lambda: negative_entropy(scale=-1.0), "scale must be"),
        (lambda: dual_exponent(0.5), "p must be"),
    ]:
        with pytest.raises(ValueError, match=why):
            call()
