"""PKAWV whose degree grows: after a growth it is PKAWV of the larger degree from the start."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.checks import COMPILED, arrays, troubled
from tests.reference import naive
from tests.streams import smooth

SIGMA = 0.9
CENTER = [0.1, -0.2]
features = partial(okl.TaylorFeatures, sigma=SIGMA, center=CENTER)


def grown(**params):
    return okl.GrowingPKAWV(features(1), **({"first": 20} | params))


def degrees(n, first=20, degree=1, largest=99):
    """Return the degree that each round's forecast has."""
    doublings = np.floor(np.log2(np.maximum(np.arange(n) / first, 0.5))).astype(int) + 1
    return np.minimum(degree + np.maximum(doublings, 0), largest)


@pytest.mark.parametrize("lam", [1.0, 1e-3])
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
def test_every_forecast_is_the_dense_argmin_over_its_present_space(forecaster, lam):
    X, y = smooth(n=100, d=2)
    run = okl.run(grown(lam=lam, forecaster=forecaster), X, y)
    for t, degree in enumerate(degrees(100)):
        F = naive.taylor(X[: t + 1], degree, SIGMA, np.array(CENTER))
        expected = naive.feature_forecasts(F, y[: t + 1], lam, forecaster == "awv")[-1]
        assert_allclose(run.predictions[t], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.skipif(not COMPILED, reason="bitwise equality is that of compiled code")
def test_after_a_growth_it_has_the_bits_of_the_larger_degree_from_the_start():
    X, y = smooth(n=700, d=2)
    run = okl.run(grown(), X, y)
    at = degrees(700)
    for degree in np.unique(at):
        fixed = okl.run(okl.PKAWV(features(int(degree))), X, y).predictions
        assert_array_equal(run.predictions[at == degree], fixed[at == degree])
        assert (run.predictions[at != degree] != fixed[at != degree]).any()


def test_growth_ends_at_max_size_and_frees_the_past():
    X, y = smooth(n=700, d=2)
    bounded, free = grown(max_size=14), grown()
    run, other = okl.run(bounded, X, y), okl.run(free, X, y)
    at = degrees(700, largest=3)
    assert_array_equal(run.predictions[at == degrees(700)], other.predictions[at == degrees(700)])
    fixed = okl.run(okl.PKAWV(features(3)), X, y).predictions
    assert_array_equal(run.predictions[40:], fixed[40:])
    assert run.sizes[-1] == 10 == bounded.size and free.size == 36
    assert arrays(bounded)["past"].size == 0 == arrays(bounded)["labels"].size
    assert arrays(free)["labels"].shape == (1, 700)
    short = okl.run(grown(max_size=5), X, y)  # no growth at all
    assert_array_equal(short.predictions, okl.run(okl.PKAWV(features(1)), X, y).predictions)


def test_sizes_are_those_after_the_round():
    X, y = smooth(n=100, d=2)
    learner = grown()
    assert learner.size == 0
    run = okl.run(learner, X, y)
    sizes = np.array([1, 3, 6, 10, 15, 21])
    assert_array_equal(run.sizes, sizes[degrees(101)[1:]])
    learner = grown().partial_fit(X[:20], y[:20])
    assert learner.size == 6  # the next forecast is of degree 2 already
    assert learner.predict_one(X[20]) == pytest.approx(run.predictions[20], rel=1e-12)


def test_the_bound_needs_what_growth_took_off():
    """A basis that can say nothing about the labels is charged with its start."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (250, 2))
    learner = okl.GrowingPKAWV(okl.TaylorFeatures(0), first=200)
    certificate = okl.run(learner, X, X[:, 0]).certificate
    gain = certificate.comparator[198] - certificate.comparator[199]
    assert gain > 10.0
    assert (certificate.regret <= certificate.bound).all()
    assert certificate.regret[-1] > certificate.bound[-1] - gain


@pytest.mark.filterwarnings("ignore:the Taylor basis")
def test_trouble_while_growing_names_a_round_and_stops_it():
    """Labels that degree 1 just bears and degree 2, whose features are larger there, does not."""
    X, y = np.full((60, 1), 3.0), np.full(60, 1e308)
    learner = okl.GrowingPKAWV(okl.TaylorFeatures(0), first=20)
    with np.errstate(all="ignore"):
        learner.partial_fit(X[:39], y[:39])
        troubled(r"round \d+.*raise lam.*reset", learner.learn_one, X[39], y[39])
    for call in (lambda: learner.predict_one(X[0]), lambda: learner.learn_one(X[0], 1.0)):
        troubled("reset", call)
    assert np.isfinite(learner.reset().learn_one(X[0], 1.0).predict_one(X[0]))


def test_experts_mix_a_growing_learner_with_fixed_ones():
    """They share features of equal maps, but not with a map that changes."""
    X, y = smooth(n=90, d=2)
    y = np.clip(y, -1, 1)
    alone = okl.run(okl.Experts([grown()]), X, y)
    assert_allclose(alone.predictions, np.clip(okl.run(grown(), X, y).predictions, -1, 1))
    both = okl.run(okl.Experts([okl.PKAWV(features(1)), grown()]), X, y)
    assert_array_equal(both.sizes, 3 + alone.sizes)
