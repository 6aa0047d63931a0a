"""Linear learners: points are argmins by their definition; both faces agree, and on features."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba import losses
from oklnumba.components.potentials import check_simplex
from oklnumba.hot.exp_concave import step_to_face
from tests.checks import COMPILED, one_by_one, refused
from tests.reference import naive_linear
from tests.streams import EXP_CONCAVE, FAMILY, NEWTON, D, game_gradients, linear_stream, played

# ---- first-order learners and FTRL for exp-concave losses ----


def steps(schedule, eta, lam, gradients):
    n = len(gradients)
    t = np.arange(1, n + 1)
    if schedule == "gradient":
        lengths = np.sqrt(np.cumsum((gradients**2).sum(axis=1)))
        return np.divide(eta, lengths, out=np.zeros(n), where=lengths > 0)
    found = {"constant": np.full(n, eta), "sqrt": eta / np.sqrt(t), "strong": 1 / ((lam or 1) * t)}
    return found[schedule]


def textbook(learner, gradients):
    """Return the points by the definition of a learner, each solved numerically."""
    p = learner.get_params()
    n = len(gradients)
    if isinstance(learner, okl.OGD):
        lengths = steps(p["schedule"], p["eta"], p["lam"], gradients)
        return naive_linear.ogd_points(gradients, lengths, p["radius"])
    if isinstance(learner, okl.LazyOGD):
        A, argmin = np.eye(gradients.shape[1]) / p["eta"], naive_linear.quadratic_argmin
        sums = [gradients[:t].sum(axis=0) for t in range(n + 1)]
        return np.array([argmin(A, -total, "ball", p["radius"]) for total in sums])
    if isinstance(learner, okl.PNorm):
        return naive_linear.p_norm_points(gradients, p["eta"], p["p"])
    if isinstance(learner, okl.ExponentiatedGradient | okl.Winnow):
        return naive_linear.entropy_points(gradients, p["eta"], p.get("scale", 1.0))
    if isinstance(learner, okl.Perceptron):
        return naive_linear.ogd_points(gradients, np.full(n, p["eta"]))
    if isinstance(learner, okl.AdaptiveFTRL):
        return naive_linear.adaptive_points(gradients, p["kind"], p["eta"], p["sigma"])
    if isinstance(learner, okl.StronglyConvexFTRL):
        return naive_linear.strongly_convex_points(gradients, p["lam"])
    if isinstance(learner, okl.CoinBetting):
        return naive_linear.coin_betting_points(gradients, p["lipschitz"], p["wealth"])
    named = "alpha_tilde", "lipschitz", "domain", "radius"
    return naive_linear.exp_concave_points(gradients, *(p[name] for name in named))


@pytest.mark.parametrize("learner", FAMILY, ids=repr)
def test_every_point_is_the_argmin_of_its_definition(learner):
    """The one after the last round of a game too."""
    gradients = game_gradients()
    got, expected = played(learner, gradients), textbook(learner, gradients)
    assert len(got) == len(gradients) + 1
    assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(expected).max()))


def test_the_domains_bind_in_the_tests_above():
    """In the games of FTRL for exp-concave losses, and in that of LazyOGD."""
    gradients = game_gradients()
    T = len(gradients)
    ball = played(EXP_CONCAVE[1], gradients)
    assert 10 < (np.linalg.norm(ball, axis=1) > 1.5 * (1 - 1e-12)).sum() < T
    simplex = played(EXP_CONCAVE[2], gradients)
    assert 10 < (simplex == 0).sum() < 3 * T
    lazy = played(next(one for one in FAMILY if isinstance(one, okl.LazyOGD)), gradients)
    assert 10 < (np.linalg.norm(lazy, axis=1) > 1.5 * (1 - 1e-12)).sum() < T


def test_a_step_out_of_the_simplex_stops_at_the_first_face():
    """The entries of v reach 0 after 3/4 and 2/5 of the way."""
    w, index = np.array([0.5, 0.0, 0.3, 0.2]), np.array([0, 2, 3])
    assert step_to_face(w, index, np.array([1.4, -0.1, -0.3]), 3) == 2
    assert_allclose(w, [0.86, 0.0, 0.14, 0.0], rtol=1e-14)


# ---- the online Newton step and its sketch: dense matrices, the slab and KONS ----


def newton_textbook(learner, X, y, C, derivative):
    eta = learner.eta or losses.get(learner.loss).curvature(learner.C)
    rank = getattr(learner, "rank", None)
    return naive_linear.newton_step_run(X, y, derivative, C, learner.alpha, eta, rank)


@pytest.mark.parametrize("learner", NEWTON, ids=repr)
def test_newton_steps_are_those_with_dense_matrices(learner):
    X, y = linear_stream()
    loss = losses.get(learner.loss)
    y = np.where(y > 0, 1.0, -1.0) if loss.classes else 0.9 * y * min(1, learner.C)
    forecasts, points = newton_textbook(learner, X, y, learner.C, loss.derivative)
    run = okl.run(learner.reset(), X, y)
    assert_allclose(run.predictions, forecasts, rtol=1e-8, atol=1e-9)
    assert_allclose(learner.w, points[-1], rtol=1e-8, atol=1e-9)
    if learner.C < 1:
        assert (np.abs(forecasts) > learner.C * (1 - 1e-12)).any()


@pytest.mark.parametrize("learner", NEWTON, ids=repr)
def test_newton_steps_of_the_game_face_minimise_their_quadratic(learner):
    """W - A^-1 g minimises <g, w> + |w - w_t|_A^2 / 2; a game has no slab to project on."""
    gradients = game_gradients(3)
    no_labels = np.zeros(len(gradients))
    _, expected = newton_textbook(learner, gradients, no_labels, np.inf, lambda f, y: 1.0)
    assert_allclose(played(learner, gradients), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("loss, eta", [("squared", None), ("hinge", 0.4), ("logistic", None)])
def test_newton_blocks_are_rounds_one_by_one(alpha, loss, eta):
    """Blocks that cancel are left to single rounds; rounds on the slab may have no gradient."""
    X, y = linear_stream(12, n=157)
    y = np.where(y > 0, 1.0, -1.0)  # with C = 1: derivative 0 at the edge of the slab
    X = 3 * X
    bulk, single = (okl.OnlineNewtonStep(loss, C=1.0, alpha=alpha, eta=eta) for _ in range(2))
    run = okl.run(bulk, X, y)
    assert_allclose(run.predictions, one_by_one(single, X, y), rtol=1e-9, atol=1e-10)
    assert_allclose(bulk.w, single.w, rtol=1e-8, atol=1e-9)
    on_the_edge = np.abs(run.predictions) == 1.0
    assert on_the_edge.sum() > 10
    if loss != "logistic":
        assert (y * run.predictions == 1.0).sum() > 10
    found = losses.get(loss)
    if alpha >= 1e-4:
        step = eta or found.curvature(1.0)
        dense, _ = naive_linear.newton_step_run(X, y, found.derivative, 1.0, alpha, step)
        if loss != "hinge":  # there rounding at the edge decides about the derivative
            assert_allclose(run.predictions, dense, rtol=1e-6, atol=1e-7)


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
    refused("reset", lambda: learner.reset().w)


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
