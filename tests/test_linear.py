"""Every linear learner: both faces agree, and on features; what the game face refuses."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba import losses
from oklnumba.components.potentials import check_simplex
from tests.checks import COMPILED, refused
from tests.streams import FAMILY, NEWTON, D, linear_stream

# ---- two faces, one learner ----


def two_faced(loss):
    """Return every learner with both faces, with a loss for the other face."""
    found = []
    for one in FAMILY:
        params = one.get_params()
        if "loss" in params:
            found.append(type(one)(**params | {"loss": loss}))
        elif loss == "hinge":
            found.append(one)
    found.append(okl.OnlineNewtonStep(C=100.0, eta=0.1, loss=loss))
    found.append(okl.SketchedONS(rank=2, C=100.0, eta=0.1, loss=loss))
    return [pytest.param(one, loss, id=f"{one!r}") for one in found]


@pytest.mark.parametrize("learner, loss", [p for name in losses.LOSSES for p in two_faced(name)])
def test_the_learner_face_plays_the_game_on_the_gradients_of_its_losses(learner, loss):
    X, y = linear_stream(5, n=60)
    found = losses.get(loss)
    y = np.where(y > 0, 1.0, -1.0) if found.classes else y
    run = okl.run(learner.reset(), X, y)
    game = type(learner)(**learner.get_params()).reset(D)
    lam = learner.get_params().get("lam") or 0.0  # the losses there are regularised
    derivative = found.derivative
    if isinstance(learner, okl.Perceptron | okl.Winnow):  # driven by mistakes

        def derivative(f, y):
            return -y * (y * f <= 0)

    for t in range(len(X)):
        w = game.w
        if t:
            assert run.predictions[t] == pytest.approx(w @ X[t], rel=1e-9, abs=1e-11)
        game.update(derivative(w @ X[t], y[t]) * X[t] + lam * w)
    assert_allclose(game.w, learner.w, rtol=1e-9, atol=1e-11)
    assert run.predictions[0] == 0.0 and run.loss == loss
    assert (game.rounds, game.size) == (60, D) == (learner.rounds, learner.size)


# ---- named learners on features are compositions ----


@pytest.mark.parametrize(
    "features",
    [
        okl.TaylorFeatures(2),
        okl.FourierFeatures(9),
        okl.NystromFeatures(linear_stream()[0][1:9], okl.Gaussian()),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("learner", [p.values[0] for p in two_faced("squared")], ids=repr)
def test_a_lifted_learner_is_the_learner_on_the_features(features, learner):
    X, y = linear_stream(9, n=150)
    lifted = okl.WithFeatures(features, learner)
    run = okl.run(lifted, X, y)
    linear = type(learner)(**learner.get_params())
    Z = features.transform(X)
    expected = okl.run(linear, Z, y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-9, atol=1e-11)
    assert_allclose(lifted.w, linear.w, rtol=1e-8, atol=1e-11)
    assert_allclose(lifted.predict(X), linear.predict(Z), rtol=1e-8, atol=1e-10)
    assert learner.rounds in (0, 60)  # untouched here (other tests play it)


# ---- bad input ----


GAMES = FAMILY + NEWTON


@pytest.mark.parametrize("learner", GAMES, ids=repr)
def test_bad_gradients_are_refused_and_change_nothing(learner):
    learner = type(learner)(**learner.get_params()).reset(3)
    learner.update([1.0, 0.5, -1.0])
    before = learner.w.copy()
    learner.w[:] = 7.0  # a copy
    for bad in ([1.0, 2.0], [1.0, np.nan, 0.0], [np.inf, 0.0, 0.0], [[1.0, 2.0, 3.0]], "text", None,
                [1j, 0, 0], []):  # fmt: skip
        refused(r"\bg\b", learner.update, bad)
        assert_array_equal(learner.w, before)
    assert learner.rounds == 1
    refused("2 columns.*had 3", learner.update, [1.0, 2.0])
    refused(r"nan.*column 1", learner.update, [1.0, np.nan, 0.0])
    for bad in (0, -1, 1.5, "3"):
        refused(r"\bd\b", learner.reset, bad)
    with pytest.raises(ValueError, match="reset"):
        _ = learner.reset().w


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("learner", GAMES, ids=repr)
@pytest.mark.parametrize("size", [1e-300, 1e100, 1e308])
def test_huge_and_tiny_gradients_give_finite_points_or_an_error(learner, size):
    learner = type(learner)(**learner.get_params()).reset(3)
    rng = np.random.default_rng(0)
    try:
        for _ in range(30):
            learner.update(size * rng.uniform(-1, 1, 3))
            w = learner.w
            assert np.isfinite(w).all()
            if "simplex" in repr(learner) or isinstance(learner, okl.Hedge | okl.Winnow):
                check_simplex(w, learner.get_params().get("scale", 1.0))
            radius = learner.get_params().get("radius")
            assert radius is None or np.linalg.norm(w) <= radius * (1 + 1e-9)
    except FloatingPointError as error:
        assert size > 1 and re.search(r"round \d+", str(error))
        with pytest.raises(FloatingPointError):
            _ = learner.w
        with pytest.raises(FloatingPointError):
            learner.update(np.zeros(3))
