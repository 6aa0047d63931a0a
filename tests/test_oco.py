"""Linear online learning: every point is its argmin, every bound holds, both faces agree."""

from __future__ import annotations

import re

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba import losses, theory
from oklnumba.games import LeastSquares, Portfolio, online_to_batch, play
from oklnumba.hot.jit import NEED_ROOM
from oklnumba.hot.newton import newton_block
from oklnumba.hot.udu import solve_rounds
from oklnumba.potentials import (
    bregman,
    check_simplex,
    dual_exponent,
    euclidean,
    mahalanobis_norm,
    negative_entropy,
    squared_p_norm,
)
from tests import naive

COMPILED = not numba.config.DISABLE_JIT
T, D = 100 if COMPILED else 30, 4
ADAPTIVE = ("sqrt", "gradient", "adagrad", "adagrad_full")  # kinds of AdaptiveFTRL


def game_gradients(seed=0, n=T, d=D):
    """Return gradients with zero, repeated, small and large rounds."""
    rng = np.random.default_rng(seed)
    gradients = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 10.0], size=(n, 1))
    gradients[::7] = 0.0
    gradients[3::11] = gradients[2]
    gradients[:, 0] *= 0.2
    return gradients


def played(learner, gradients):
    """Return the points w_1, ..., w_{T+1} of the game face."""
    learner.reset(gradients.shape[1])
    points = [learner.w]
    for g in gradients:
        points.append(learner.update(g).w)
    return np.array(points)


def steps(schedule, eta, lam, n=T):
    t = np.arange(1, n + 1)
    return {"constant": np.full(n, eta), "sqrt": eta / np.sqrt(t), "strong": 1 / ((lam or 1) * t)}[
        schedule
    ]


def textbook(learner, gradients):
    """Return the points by the definition of a learner, each solved numerically."""
    p = learner.get_params()
    n = len(gradients)
    if isinstance(learner, okl.OGD):
        return naive.ogd_points(gradients, steps(p["schedule"], p["eta"], p["lam"], n), p["radius"])
    if isinstance(learner, okl.LazyOGD):
        d = gradients.shape[1]
        return np.array(
            [
                naive.quadratic_argmin(
                    np.eye(d) / p["eta"], -gradients[:t].sum(axis=0), "ball", p["radius"]
                )
                for t in range(n + 1)
            ]
        )
    if isinstance(learner, okl.PNorm):
        return naive.p_norm_points(gradients, p["eta"], p["p"])
    if isinstance(learner, okl.ExponentiatedGradient | okl.Winnow):
        return naive.entropy_points(gradients, p["eta"], p.get("scale", 1.0))
    if isinstance(learner, okl.Perceptron):
        return naive.ogd_points(gradients, np.full(n, p["eta"]))
    if isinstance(learner, okl.AdaptiveFTRL):
        return naive.adaptive_points(gradients, p["kind"], p["eta"], p["sigma"])
    if isinstance(learner, okl.StronglyConvexFTRL):
        return naive.strongly_convex_points(gradients, p["lam"])
    return naive.exp_concave_points(
        gradients, p["alpha_tilde"], p["lipschitz"], p["domain"], p["radius"]
    )


FAMILY = [
    okl.OGD(eta=0.3),
    okl.OGD(eta=0.3, schedule="sqrt"),
    okl.OGD(schedule="strong", lam=0.7),
    okl.OGD(eta=0.3, radius=2.0),
    okl.OGD(eta=0.3, schedule="sqrt", radius=1.0),
    okl.OGD(schedule="strong", lam=0.7, radius=1.0),
    okl.LazyOGD(eta=0.2, radius=1.5),
    okl.PNorm(eta=0.1, p=1.5),
    okl.PNorm(eta=0.1, p=1.2),
    okl.PNorm(eta=0.1, p=2.0),
    okl.ExponentiatedGradient(eta=0.05),
    okl.ExponentiatedGradient(eta=0.03, scale=5.0),
    okl.AdaptiveFTRL("sqrt", eta=0.4),
    okl.AdaptiveFTRL("gradient", eta=0.4, sigma=2.0),
    okl.AdaptiveFTRL("adagrad", eta=0.4, sigma=0.5),
    okl.AdaptiveFTRL("adagrad_full", eta=0.4, sigma=0.5),
    okl.StronglyConvexFTRL(lam=0.5),
    okl.ExpConcaveFTRL(alpha_tilde=0.05, lipschitz=2.0),
    okl.ExpConcaveFTRL(alpha_tilde=0.05, lipschitz=2.0, domain="ball", radius=1.5),
    okl.ExpConcaveFTRL(alpha_tilde=0.05, lipschitz=2.0, domain="simplex"),
    okl.Perceptron(eta=0.7),
    okl.Winnow(eta=0.05),
]


@pytest.mark.parametrize("learner", FAMILY, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_point_is_the_argmin_of_its_definition(learner, seed):
    gradients = game_gradients(seed)
    got, expected = played(learner, gradients), textbook(learner, gradients)
    assert len(got) == len(gradients) + 1
    assert_allclose(got, expected, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(expected).max()))


def test_the_domains_bind_in_the_tests_above():
    gradients = game_gradients()
    ball = played(FAMILY[18], gradients)
    assert 10 < (np.linalg.norm(ball, axis=1) > 1.5 * (1 - 1e-12)).sum() < T
    simplex = played(FAMILY[19], gradients)
    assert 10 < (simplex == 0).sum() < 3 * T
    lazy = played(FAMILY[6], gradients)
    assert 10 < (np.linalg.norm(lazy, axis=1) > 1.5 * (1 - 1e-12)).sum() < T


def data(seed=0, n=T, d=D):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[::9] = 0.0
    X[5::12] = X[5]
    y = np.clip(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n), -1, 1)
    return X, y


NEWTON = [
    okl.OnlineNewtonStep(C=0.3, alpha=0.5),
    okl.OnlineNewtonStep(C=5.0, alpha=0.01),
    okl.OnlineNewtonStep(loss="logistic", C=0.7),
    okl.OnlineNewtonStep(loss="hinge", C=0.9, eta=0.4),
    okl.SketchedONS(rank=2, alpha=0.5, C=0.3),
    okl.SketchedONS(rank=1, alpha=0.05, C=2.0),
    okl.SketchedONS(rank=7, alpha=0.5, C=0.3, loss="logistic"),
]


def newton_textbook(learner, X, y):
    loss = losses.get(learner.loss)
    eta = learner.eta or loss.curvature(learner.C)
    rank = getattr(learner, "rank", None)
    return naive.newton_step_run(X, y, loss.derivative, learner.C, learner.alpha, eta, rank)


@pytest.mark.parametrize("learner", NEWTON, ids=repr)
def test_newton_steps_are_those_with_dense_matrices(learner):
    X, y = data()
    y = (
        np.where(y > 0, 1.0, -1.0)
        if losses.get(learner.loss).classes
        else 0.9 * y * min(1, learner.C)
    )
    forecasts, points = newton_textbook(learner, X, y)
    run = okl.run(learner.reset(), X, y)
    assert_allclose(run.predictions, forecasts, rtol=1e-8, atol=1e-9)
    assert_allclose(learner.w, points[-1], rtol=1e-8, atol=1e-9)
    if learner.C < 1:
        assert (np.abs(forecasts) > learner.C * (1 - 1e-12)).any()


@pytest.mark.parametrize("learner", NEWTON, ids=repr)
def test_newton_steps_of_the_game_face_minimise_their_quadratic(learner):
    """W - A^-1 g minimises <g, w> + |w - w_t|_A^2 / 2; a game has no slab to project on."""
    gradients = game_gradients(3)
    alpha, eta = learner.alpha, learner.eta or losses.get(learner.loss).curvature(learner.C)
    rank = getattr(learner, "rank", None)
    ones = np.zeros(len(gradients))
    _, expected = naive.newton_step_run(gradients, ones, lambda f, y: 1.0, np.inf, alpha, eta, rank)
    assert_allclose(played(learner, gradients), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4, 1e-7])
@pytest.mark.parametrize("loss, eta", [("squared", None), ("hinge", 0.4), ("logistic", None)])
def test_newton_blocks_are_rounds_one_by_one(alpha, loss, eta):
    """Blocks that cancel are left to single rounds; rounds on the slab may have no gradient."""
    X, y = data(12, n=157)
    y = np.where(y > 0, 1.0, -1.0)  # with C = 1: derivative 0 at the edge of the slab
    X = 3 * X
    bulk, single = (okl.OnlineNewtonStep(loss, 1.0, alpha, eta) for _ in range(2))
    run = okl.run(bulk, X, y)
    forecasts = []
    for x, label in zip(X, y, strict=True):
        forecasts.append(single.predict_one(x))
        single.learn_one(x, label)
    assert_allclose(run.predictions, forecasts, rtol=1e-9, atol=1e-10)
    assert_allclose(bulk.w, single.w, rtol=1e-8, atol=1e-9)
    on_the_edge = np.abs(run.predictions) == 1.0
    assert on_the_edge.sum() > 10
    if loss != "logistic":
        assert (y * run.predictions == 1.0).sum() > 10
    found = losses.get(loss)
    if alpha >= 1e-4:
        dense, _ = naive.newton_step_run(
            X, y, found.derivative, 1.0, alpha, eta or found.curvature(1.0)
        )
        if loss != "hinge":  # there rounding at the edge decides about the derivative
            assert_allclose(run.predictions, dense, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("count", [1, 3, 6, 9, 12])
@pytest.mark.parametrize("r", [8, 16, 40])
def test_solving_rounds_changes_only_the_rounds(count, r):
    rng = np.random.default_rng(r)
    U = np.triu(rng.standard_normal((r, r)), 1) / 3 + np.eye(r)
    inv_d, rounds = rng.uniform(0.5, 2, r), rng.standard_normal((12, r))
    betas, a = rng.standard_normal((12, r)), np.ones(12)
    before = [array.copy() for array in (U, inv_d, rounds, betas, a)]
    solve_rounds(U, inv_d, rounds, betas, a, count, r)
    expected = np.linalg.solve(U.T, before[2][:count].T).T
    assert_allclose(rounds[:count], expected, rtol=1e-9, atol=1e-11)
    assert_array_equal(rounds[count:], before[2][count:])
    assert_array_equal(U, before[0])
    assert_array_equal(inv_d, before[1])
    if COMPILED:
        assert_array_equal(a, before[4])


def test_blocks_that_would_cancel_are_refused_and_change_nothing():
    learner = okl.OnlineNewtonStep(alpha=1e-6).reset(3)
    X, out = np.zeros((3, 8)), np.empty(3)
    X[:, :3] = 1.0
    state = [learner._U.copy(), learner._inv_d.copy(), learner._c.copy()]
    played = newton_block(
        X, np.ones(3), 0, learner._eta, 1.0, learner._factor, (learner._wide, learner._small), out
    )
    assert played == (0, NEED_ROOM)
    for now, before in zip((learner._U, learner._inv_d, learner._c), state, strict=True):
        assert_array_equal(now, before)


def test_the_online_newton_step_projects_on_the_slab():
    """The projected point minimises |w - u|_A^2 on |w.x| <= C."""
    X, y = data(2, n=30)
    y = np.clip(y, -0.2, 0.2)
    learner = okl.OnlineNewtonStep(C=0.2, alpha=0.5)
    eta, A = losses.get("squared").curvature(0.2), 0.5 * np.eye(D)
    w = np.zeros(D)
    binding = 0
    for x, label in zip(X, y, strict=True):
        forecast = learner.predict_one(x)
        if abs(w @ x) > 0.2:
            binding += 1
            # all points with w.x = +-C: w = u + s x + rest; stationarity A (w - u) = mu x
            K = np.block([[A, x[:, None]], [x[None, :], np.zeros((1, 1))]])
            w = np.linalg.solve(K, np.append(A @ w, np.sign(w @ x) * 0.2))[:D]
        assert forecast == pytest.approx(w @ x, abs=1e-9)
        g = 2 * (w @ x - label) * x
        A = A + eta * np.outer(g, g)
        w = w - np.linalg.solve(A, g)
        learner.learn_one(x, label)
        assert_allclose(learner.w, w, atol=1e-9)
    assert binding > 5


@pytest.mark.parametrize("loss, C, alpha", [("squared", 0.5, 1.0), ("logistic", 1.0, 0.1)])
def test_the_online_newton_step_is_kons_with_a_linear_kernel(loss, C, alpha):
    X, y = data(13)
    y = np.where(y > 0, 1.0, -1.0) if losses.get(loss).classes else C * y
    primal = okl.run(okl.OnlineNewtonStep(loss, C, alpha), X, y)
    dual = okl.run(okl.KONS(okl.Linear(), loss, C, alpha), X, y)
    assert_allclose(primal.predictions, dual.predictions, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("cls", [okl.OnlineNewtonStep, okl.SketchedONS])
def test_labels_where_the_loss_has_no_curvature_are_refused(cls):
    X, y = data()
    lifted = okl.WithFeatures(okl.TaylorFeatures(), cls(C=0.5))
    for learner in (cls(C=0.5), lifted, okl.Experts([lifted])):
        with pytest.raises(ValueError, match=r"outside \[-C, C\] with C = 0.5"):
            learner.partial_fit(X, 2 * y)
        assert learner.rounds == 0


def test_exp_concave_over_the_space_is_the_newton_step_without_projection():
    gradients = game_gradients(4)
    alpha, L = 0.05, 3.0
    ftrl = okl.ExpConcaveFTRL(alpha_tilde=alpha, lipschitz=L)
    step = okl.OnlineNewtonStep(alpha=alpha * L**2, eta=alpha)
    assert_allclose(played(ftrl, gradients), played(step, gradients), rtol=1e-12, atol=1e-14)


# ---- two faces, one learner ----


def two_faced(loss):
    """Return every learner with both faces, with a loss for the other face."""
    found = [
        okl.OGD(eta=0.2, loss=loss),
        okl.OGD(eta=0.5, schedule="sqrt", radius=0.8, loss=loss),
        okl.OGD(schedule="strong", lam=2.0, loss=loss),
        okl.LazyOGD(eta=0.2, radius=0.7, loss=loss),
        okl.PNorm(eta=0.2, p=1.3, loss=loss),
        okl.ExponentiatedGradient(eta=0.3, scale=2.0, loss=loss),
        *(okl.AdaptiveFTRL(kind, loss=loss) for kind in ADAPTIVE),
        okl.StronglyConvexFTRL(lam=2.0, loss=loss),
        okl.ExpConcaveFTRL(alpha_tilde=0.2, loss=loss),
        okl.ExpConcaveFTRL(alpha_tilde=0.2, domain="ball", radius=0.5, loss=loss),
        okl.ExpConcaveFTRL(alpha_tilde=0.2, domain="simplex", loss=loss),
        okl.OnlineNewtonStep(C=100.0, eta=0.1, loss=loss),
        okl.SketchedONS(rank=2, C=100.0, eta=0.1, loss=loss),
    ]
    return [pytest.param(one, loss, id=f"{one!r}") for one in found]


@pytest.mark.parametrize("learner, loss", [p for name in losses.LOSSES for p in two_faced(name)])
def test_the_learner_face_plays_the_game_on_the_gradients_of_its_losses(learner, loss):
    X, y = data(5, n=60)
    found = losses.get(loss)
    y = np.where(y > 0, 1.0, -1.0) if found.classes else y
    run = okl.run(learner.reset(), X, y)
    game = type(learner)(**learner.get_params()).reset(D)
    lam = learner.get_params().get("lam") or 0.0  # the losses there are regularised
    for t in range(len(X)):
        w = game.w
        if t:
            assert run.predictions[t] == pytest.approx(w @ X[t], rel=1e-9, abs=1e-11)
        game.update(found.derivative(w @ X[t], y[t]) * X[t] + lam * w)
    assert_allclose(game.w, learner.w, rtol=1e-9, atol=1e-11)
    assert run.predictions[0] == 0.0
    assert (game.rounds, game.size) == (60, D) == (learner.rounds, learner.size)


@pytest.mark.parametrize("cls", [okl.Perceptron, okl.Winnow])
def test_mistake_driven_learners_by_hand(cls):
    X, y = data(6, n=80)
    y = np.where(y > 0, 1.0, -1.0)
    learner = cls(eta=0.4)
    run = okl.run(learner, X, y)
    game = cls(eta=0.4).reset(D)
    for t in range(80):
        w = game.w
        if t:
            assert run.predictions[t] == pytest.approx(w @ X[t], rel=1e-9, abs=1e-12)
        game.update(-y[t] * X[t] if y[t] * (w @ X[t]) <= 0 else np.zeros(D))
    assert_allclose(learner.w, game.w, rtol=1e-10)
    assert run.loss == "hinge"


def test_linear_awv_and_ridge_are_the_argmins_of_their_definitions():
    X, y = data(7)
    for cls, awv in ((okl.LinearAWV, True), (okl.LinearRidge, False)):
        for lam in (1.0, 0.01):
            run = okl.run(cls(lam), X, y)
            expected = naive.feature_forecasts(X, y, lam, awv)
            assert_allclose(run.predictions, expected, rtol=1e-8, atol=1e-10)
            learner = cls(lam).partial_fit(X, y)
            ridge = naive.quadratic_argmin(X.T @ X + lam * np.eye(D), X.T @ y)
            assert_allclose(learner.w, ridge, rtol=1e-8)
            with pytest.raises(ValueError, match="learn_one"):
                learner.update(X[0])
    assert run.certificate is not None


# ---- the lift ----


LIFTED = [
    (
        okl.FOGD(okl.FourierFeatures(30, seed=2), loss="logistic", eta=0.3),
        okl.WithFeatures(okl.FourierFeatures(30, seed=2), okl.OGD(0.3, loss="logistic")),
    ),
    (
        okl.FOGD(loss="hinge", eta=0.3, sigma=0.7, n_frequencies=20, seed=1),
        okl.WithFeatures(okl.FourierFeatures(20, 0.7, 1), okl.OGD(0.3, loss="hinge")),
    ),
    (
        okl.PKAWV(okl.TaylorFeatures(3, 0.8), lam=0.1),
        okl.WithFeatures(okl.TaylorFeatures(3, 0.8), okl.LinearAWV(0.1)),
    ),
    (
        okl.PKAWV(okl.TaylorFeatures(2), lam=0.1, forecaster="ridge"),
        okl.WithFeatures(okl.TaylorFeatures(2), okl.LinearRidge(0.1)),
    ),
]


@pytest.mark.parametrize("named, lifted", LIFTED, ids=lambda one: repr(one)[:40])
def test_named_learners_are_compositions(named, lifted):
    X, y = data(8, n=700 if COMPILED else 150)
    y = np.where(y > 0, 1.0, -1.0) if named._loss().classes else y
    a, b = okl.run(named.reset(), X, y), okl.run(lifted.reset(), X, y)
    # FOGD makes Fourier features inside its loop, where products and sums are fused otherwise.
    assert_allclose(a.predictions, b.predictions, rtol=1e-10, atol=1e-13)
    assert_allclose(named.predict(X), lifted.predict(X), rtol=1e-10, atol=1e-13)
    assert (named.size, a.loss) == (lifted.size, b.loss)
    assert (a.certificate is None) == (b.certificate is None)
    if a.certificate is not None:
        assert_array_equal(a.certificate.bound, b.certificate.bound)
        assert_array_equal(a.certificate.regret, b.certificate.regret)


@pytest.mark.parametrize(
    "features",
    [
        okl.TaylorFeatures(2),
        okl.FourierFeatures(9),
        okl.NystromFeatures(data()[0][1:9], okl.Gaussian()),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("learner", [p.values[0] for p in two_faced("squared")], ids=repr)
def test_a_lifted_learner_is_the_learner_on_the_features(features, learner):
    X, y = data(9, n=150)
    lifted = okl.WithFeatures(features, learner)
    run = okl.run(lifted, X, y)
    linear = type(learner)(**learner.get_params())
    expected = okl.run(linear, features.transform(X), y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-9, atol=1e-11)
    assert_allclose(lifted.w, linear.w, rtol=1e-8, atol=1e-11)
    assert learner.rounds in (0, 60)  # untouched here (other tests play it)


# ---- potentials ----


POTENTIALS = [
    euclidean(0.7),
    euclidean(2.0, radius=1.5),
    squared_p_norm(0.5, 1.3),
    squared_p_norm(1.0, 2.0),
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
    if min(w.min(), v.min()) > 1e-12 or "entropy" not in potential.name:
        divergence = bregman(potential, w, v)
        floor = potential.strength / 2 * potential.norm(w - v) ** 2
        assert divergence >= floor * (1 - 1e-7) - 1e-8 * (1 + abs(potential.value(v)))
    # dual norms: Fact 1
    assert s @ r <= potential.norm(s) * potential.dual_norm(r) * (1 + 1e-12) + 1e-12


def test_examples_of_the_notes():
    u, v = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    entropy, square = negative_entropy(), euclidean(eta=0.25)
    assert bregman(entropy, u, v) == pytest.approx((u * np.log(u / v)).sum())  # Example 3.2
    assert bregman(square, u, v) == pytest.approx(2 * ((u - v) ** 2).sum())  # Example 3.1
    s = np.array([1.0, -2.0, 0.5])
    assert entropy.conjugate(s) == pytest.approx(np.log(np.exp(s).sum()))  # Example 5.4
    assert square.conjugate(s) == pytest.approx(0.25 / 2 * (s @ s))  # Example 5.3
    A = np.array([[2.0, 0.5], [0.5, 1.0]])
    z = np.array([1.0, -3.0])
    best = np.linalg.inv(A) @ z / mahalanobis_norm(z, np.linalg.inv(A))
    assert mahalanobis_norm(best, A) == pytest.approx(1.0)  # Example 1.3
    assert best @ z == pytest.approx(mahalanobis_norm(z, np.linalg.inv(A)))
    assert dual_exponent(1.5) == pytest.approx(3.0)
    assert (dual_exponent(1), dual_exponent(np.inf)) == (np.inf, 1.0)


@pytest.mark.parametrize("potential", POTENTIALS, ids=lambda one: one.name)
def test_mirror_maps_are_the_points_of_the_learners(potential):
    gradients = game_gradients(2)
    learner = {
        "|w|^2 / (2 0.7)": okl.OGD(0.7),
        "|w|^2 / (2 2) on the ball of radius 1.5": okl.LazyOGD(2.0, 1.5),
        "|w|_1.3^2 / (2 0.5)": okl.PNorm(0.5, 1.3),
        "|w|_2^2 / (2 1)": okl.PNorm(1.0, 2.0),
        "entropy / 0.8 on the simplex of sum 1": okl.Hedge(0.8),
        "entropy / 0.3 on the simplex of sum 4": okl.Hedge(0.3, 4.0),
    }[potential.name]
    sums = np.vstack([np.zeros(D), np.cumsum(gradients, axis=0)])
    expected = [potential.mirror_map(-G) for G in sums]
    assert_allclose(played(learner, gradients), expected, rtol=1e-9, atol=1e-12)


# ---- bounds ----

GAME_COUNT = 1000 if COMPILED else 20
sizes = st.sampled_from([0.0, 1e-8, 0.1, 1.0, 1.0, 1.0, 30.0, 1e4, 1e9])
entries = st.sampled_from([-1.0, -0.6, -0.3, 0.0, 0.2, 0.5, 0.9, 1.0])
one_gradient = st.tuples(sizes, st.lists(entries, min_size=3, max_size=3), st.integers(1, 4))


@st.composite
def games(draw):
    """Draw the gradients of a game, (n, 3): zero, repeated, alternating and huge ones."""
    rows = []
    for size, direction, times in draw(st.lists(one_gradient, min_size=1, max_size=7)):
        rows += [size * np.array(direction)] * times
    gradients = np.array(rows)
    if draw(st.booleans()):
        gradients[1::2] *= -1
    return gradients


class Claim:
    """A learner, and the bound that the notes claim for it, as functions of a step's multiple."""

    def __init__(self, name, learner, bound, kind="linear", inside=None):
        self.name, self.learner, self.bound = name, learner, bound
        self.kind, self.inside = kind, inside

    def __repr__(self):
        return self.name

    def gap(self, linear, wrong=1.0, comparators=()):
        """Return the largest regret - bound over comparators, and the size of its terms."""
        learner = self.learner(wrong).reset(linear.shape[1])
        gradients, points = np.empty_like(linear), np.empty_like(linear)
        for t, c in enumerate(linear):
            points[t] = learner.w
            gradients[t] = c + (LAM * points[t] if self.kind == "strong" else 0.0)
            learner.update(gradients[t])
        worst, size = -np.inf, 0.0
        # For FTRL the last point is the comparator that comes nearest to the bound.
        for w in [learner.w, np.zeros(linear.shape[1]), *comparators]:
            if self.inside is not None:
                w = self.inside(w)
            moves = points - w
            terms = (gradients * moves).sum(axis=1)
            if self.kind == "strong":  # f_t(w) = <c_t, w> + lam |w|^2 / 2
                terms = terms - LAM / 2 * (moves**2).sum(axis=1)
            elif self.kind == "exp-concave":
                terms = terms - ALPHA / 2 * terms**2
            bound = self.bound(gradients, w)
            worst = max(worst, terms.sum() - bound)
            size = max(size, np.abs(gradients * moves).sum(), abs(bound))
        return worst, size


ETA, LAM, ALPHA, LIPSCHITZ, SIGMA = 0.3, 0.7, 0.05, 2.0, 1.5
ROUNDING = 1e-14  # a divergence is a difference of entropies of order 1 / eta


def in_ball(w):
    return w / max(1.0, np.linalg.norm(w) / 1.2)


def in_simplex(w, scale=1.0):
    w = np.abs(w)
    return scale * (w / w.sum() if 0 < w.sum() < np.inf else np.full(len(w), 1 / len(w)))


def adaptive(kind):
    return Claim(
        f"Corollary 1, {kind}",
        lambda k: okl.AdaptiveFTRL(kind, eta=k * ETA, sigma=SIGMA),
        lambda g, w: theory.adaptive_ftrl_bound(g, w, kind, ETA, SIGMA),
    )


def exp_concave(domain, inside):
    return Claim(
        f"Theorem 6, {domain}",
        lambda k: okl.ExpConcaveFTRL(ALPHA / k, LIPSCHITZ, domain, 1.2),
        lambda g, w: theory.exp_concave_bound(g, w, ALPHA, LIPSCHITZ),
        "exp-concave",
        inside,
    )


CLAIMS = [
    Claim("OGD", lambda k: okl.OGD(k * ETA), lambda g, w: theory.ogd_bound(g, w, ETA)),
    Claim(
        "OGD, projected",
        lambda k: okl.OGD(k * ETA, radius=1.2),
        lambda g, w: theory.ogd_bound(g, w, ETA),
        inside=in_ball,
    ),
    Claim(
        "LazyOGD",
        lambda k: okl.LazyOGD(k * ETA, 1.2),
        lambda g, w: theory.ftrl_bound(euclidean(ETA, 1.2), g, w),
        inside=in_ball,
    ),
    Claim(
        "PNorm",
        lambda k: okl.PNorm(k * ETA, 1.3),
        lambda g, w: theory.p_norm_bound(g, w, ETA, 1.3),
    ),
    Claim(
        "Hedge",
        lambda k: okl.Hedge(k * ETA),
        lambda g, w: theory.exponentiated_gradient_bound(g, w, ETA),
        inside=in_simplex,
    ),
    Claim(
        "ExponentiatedGradient, scale 5",
        lambda k: okl.ExponentiatedGradient(k * ETA, 5.0),
        lambda g, w: theory.exponentiated_gradient_bound(g, w, ETA, 5.0),
        inside=lambda w: in_simplex(w, 5.0),
    ),
    *(adaptive(kind) for kind in ADAPTIVE),
    Claim(
        "Theorem 4",
        lambda k: okl.StronglyConvexFTRL(LAM / k),
        lambda g, w: theory.strongly_convex_bound(g, w, LAM),
        "strong",
    ),
    Claim(
        "Theorem 5",
        lambda k: okl.OGD(schedule="strong", lam=LAM / k),
        lambda g, w: theory.ogd_strong_bound(g, LAM),
        "strong",
    ),
    exp_concave("all", None),
    exp_concave("ball", in_ball),
    exp_concave("simplex", in_simplex),
]
every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=repr)


@every_claim
@settings(max_examples=GAME_COUNT)
@given(linear=games(), w=st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(np.array))
def test_the_bound_holds_on_random_games(claim, linear, w):
    if claim.kind == "exp-concave":  # Theorem 6 is for gradients of at most L
        linear = linear / max(1.0, np.sqrt((linear**2).sum(axis=1)).max() / LIPSCHITZ)
    worst, size = claim.gap(linear, comparators=(w, 100 * w))
    assert worst <= 1e-9 * size + ROUNDING


def alternating(n=400, d=3):
    g = np.array([1.0, -0.5, 0.25])[:d]
    return np.where(np.arange(n)[:, None] % 2, -g, g)


@every_claim
def test_a_wrong_step_breaks_a_bound(claim):
    """Negative control: the bounds are not so loose that anything passes."""
    g = np.array([1.0, -0.5, 0.25])
    found = [alternating(), np.tile(g, (400, 1)), np.vstack([np.tile(g, (200, 1))] * 2)]
    found.append(np.vstack([np.tile(g, (20, 1)), np.tile(-g, (20, 1))] * 10))
    rng = np.random.default_rng(0)
    found += [rng.standard_normal((200, 3)) for _ in range(5)]
    broken = []
    for linear in found:
        far = (-100 * linear.sum(axis=0), *np.eye(3))
        worst, size = claim.gap(linear, comparators=far)
        assert worst <= 1e-9 * size + ROUNDING
        for wrong in (30.0, 1e-2, 1e-4):
            worst, size = claim.gap(linear, wrong, far)
            broken.append(worst > 1e-6 * size)
    assert any(broken)


@settings(max_examples=GAME_COUNT)
@given(linear=games())
def test_adagrad_in_closed_form(linear):
    sigma = max(1.0, (linear**2).max())
    learner = okl.AdaptiveFTRL("adagrad", eta=ETA, sigma=sigma).reset(3)
    points = []
    for g in linear:
        points.append(learner.w)
        learner.update(g)
    for w in (learner.w, np.ones(3), np.zeros(3)):
        regret = (linear * (np.array(points) - w)).sum()
        exact = theory.adaptive_ftrl_bound(linear, w, "adagrad", ETA, sigma)
        closed = theory.adagrad_bound(linear, w, ETA, sigma)
        assert regret <= exact + 1e-9 * abs(exact) and exact <= closed * (1 + 1e-12)
    if linear.any():
        with pytest.raises(ValueError, match="sigma"):
            theory.adagrad_bound(linear, np.ones(3), ETA, (linear**2).max() / 2)


labelled = st.lists(
    st.tuples(st.lists(entries, min_size=3, max_size=3), st.booleans(), st.integers(1, 4)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=GAME_COUNT)
@given(rows=labelled, w=st.lists(st.floats(-5, 5), min_size=3, max_size=3).map(np.array))
def test_mistake_bounds(rows, w):
    X = np.array([x for x, _, times in rows for _ in range(times)])
    y = np.array([1.0 if up else -1.0 for _, up, times in rows for _ in range(times)])
    R2 = max((X**2).sum(axis=1).max(), 1e-12)
    mistakes = np.count_nonzero(y * by_hand(okl.Perceptron(), X, y) <= 0)
    for eta in (0.1 / R2, 0.5 / R2, 0.9 / R2):
        for u in (w, 0.1 * w, np.zeros(3)):
            assert mistakes <= theory.perceptron_bound(X, y, u, eta) * (1 + 1e-12)
    eta = 0.5 / max(np.abs(X).max() ** 2, 1e-12)
    mistakes = np.count_nonzero(y * by_hand(okl.Winnow(eta), X, y) <= 0)
    for u in (in_simplex(w), np.full(3, 1 / 3), np.eye(3)[0]):
        assert mistakes <= theory.winnow_bound(X, y, u, eta) * (1 + 1e-12)
    assert theory.winnow_bound(X, y, np.eye(3)[0], 1e6) == np.inf or not X.any()


def by_hand(learner, X, y):
    """Return w_t.x_t of each round (a run reports 0 for the first one)."""
    learner.reset(X.shape[1])
    margins = []
    for x, label in zip(X, y, strict=True):
        margins.append(learner.w @ x)
        learner.learn_one(x, label)
    return np.array(margins)


def test_winnow_needs_four_not_two_as_errata_42_has_it():
    """An adversary forces more than 2 log d mistakes on data with margin 1, never 4 log d."""
    d = 2000
    learner = okl.Winnow(eta=0.5).reset(d)
    X = []
    alive = np.arange(1, d)
    for _ in range(60):
        w, x = learner.w, np.ones(d)  # w* = e_1 has margin 1 on every x
        order = alive[np.argsort(w[alive])]
        # as few coordinates at -1 as make a mistake: they shrink, the others are the next rounds'
        total = np.cumsum(w[order][::-1])
        need = (1 - 0.0) / 2
        count = int(np.searchsorted(total, need)) + 1
        if count > len(order):
            break
        x[order[::-1][:count]] = -1.0
        assert w @ x <= 0
        learner.learn_one(x, 1.0)
        X.append(x)
    X, y = np.array(X), np.ones(len(X))
    bound = theory.winnow_bound(X, y, np.eye(d)[0], eta=0.5)
    assert bound == pytest.approx(4 * np.log(d))
    assert 2 * np.log(d) < len(X) <= bound


def test_theorem_6_on_portfolios():
    rng = np.random.default_rng(0)
    game = Portfolio(rng.uniform(0.5, 2.0, (300, 3)))
    L = 2.0 / 0.5 * np.sqrt(3)
    alpha = theory.exp_concave_rate(1.0, 1.0, L)
    run = play(okl.ExpConcaveFTRL(alpha, L, "simplex"), game)
    for w in (game.best(), np.full(3, 1 / 3), np.eye(3)[1]):
        bound = theory.exp_concave_bound(run.gradients, w, alpha, L)
        assert run.regret(w)[-1] <= bound
    assert np.sqrt((run.gradients**2).sum(axis=1)).max() <= L


def test_bounds_refuse_bad_arguments():
    g, w = [[1.0, 2.0]], [0.5, 0.5]
    for call, named in [
        (lambda: theory.ogd_bound(g, [1.0], 0.1), "w has 1 columns"),
        (lambda: theory.ogd_bound([[np.nan, 1.0]], w, 0.1), "gradients has nan at row 0, column 0"),
        (lambda: theory.ogd_bound(g, w, 0.0), "eta"),
        (lambda: theory.p_norm_bound(g, w, 0.1, 3.0), "p must"),
        (lambda: theory.exponentiated_gradient_bound(g, [0.5, 0.6], 0.1), "simplex"),
        (lambda: theory.winnow_bound(g, [1.0], [2.0, 0.0]), "simplex"),
        (lambda: theory.winnow_bound(g, [0.5], w), "-1 and"),
        (lambda: theory.adaptive_ftrl_bound(g, w, "nonsense"), "kind"),
        (lambda: theory.strongly_convex_bound(g, w, -1.0), "lam"),
        (lambda: theory.exp_concave_bound(g, w, 0.0, 1.0), "alpha_tilde"),
        (lambda: theory.exp_concave_rate(1.0, 0.0, 1.0), "radius"),
        (lambda: theory.experts_bound(0), "count"),
        (lambda: theory.experts_bound(2, kind="nonsense"), "kind"),
    ]:
        with pytest.raises(ValueError, match=named):
            call()


# ---- games ----


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
    game = LeastSquares(X, y, radius)
    best = game.best()
    total = game.losses(best).sum()
    expected = naive.quadratic_argmin(X.T @ X, X.T @ y, "ball" if radius else "all", radius)
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


def test_online_to_batch_beats_the_regret_over_t():
    """E F(average) - F(best) <= regret / T, here on fresh draws of a known distribution."""
    rng = np.random.default_rng(1)
    truth = np.array([0.5, -0.3, 0.1, 0.0])
    X = rng.uniform(-1, 1, (2000 if COMPILED else 200, D))
    y = X @ truth + 0.1 * rng.standard_normal(len(X))
    game = LeastSquares(X, y)
    run = play(okl.StronglyConvexFTRL(lam=1 / 3), game)
    average = online_to_batch(run.points)
    # F(w) - F(truth) = E (x.(w - truth))^2 / 2 with E x x' = I / 3
    excess = ((average - truth) ** 2).sum() / 6
    assert excess <= run.regret(truth)[-1] / len(X)
    assert_allclose(average, run.points.mean(axis=0))


# ---- bad input ----


GAMES = [one for one in FAMILY + NEWTON]


@pytest.mark.parametrize("learner", GAMES, ids=repr)
def test_bad_gradients_are_refused_and_change_nothing(learner):
    learner = type(learner)(**learner.get_params()).reset(3)
    learner.update([1.0, 0.5, -1.0])
    before = learner.w
    for bad in ([1.0, 2.0], [1.0, np.nan, 0.0], [np.inf, 0.0, 0.0], [[1.0, 2.0, 3.0]], "text", None,
                [1j, 0, 0], []):  # fmt: skip
        with pytest.raises(ValueError, match=r"\bg\b"):
            learner.update(bad)
        assert_array_equal(learner.w, before)
    assert learner.rounds == 1
    with pytest.raises(ValueError, match="2 columns.*had 3"):
        learner.update([1.0, 2.0])
    with pytest.raises(ValueError, match=r"nan.*column 1"):
        learner.update([1.0, np.nan, 0.0])
    for bad in (0, -1, 1.5, "3"):
        with pytest.raises(ValueError, match=r"\bd\b"):
            learner.reset(bad)
    with pytest.raises(ValueError, match="reset"):
        _ = learner.reset().w


@pytest.mark.parametrize("learner", GAMES, ids=repr)
def test_the_point_is_a_copy(learner):
    learner = type(learner)(**learner.get_params()).reset(3)
    w = learner.update([1.0, 0.5, -1.0]).w
    kept = w.copy()
    w[:] = 7.0
    assert_array_equal(learner.w, kept)


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("learner", GAMES, ids=repr)
@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e100, 1e200, 1e308])
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


def test_points_outside_the_domain_are_refused():
    entropy, ball = negative_entropy(), euclidean(radius=1.0)
    game = Portfolio([[1.0, 2.0]])
    for bad, why in (([0.5, 0.6], "sums to 1.1"), ([-0.1, 1.1], "-0.1 at column 0"),
                     ([np.nan, 1.0], "nan"), ([[0.5, 0.5]], "shape")):  # fmt: skip
        calls = [entropy.value, entropy.gradient, lambda w: game.loss(0, w), game.losses,
                 lambda w: game.gradient(0, w), check_simplex]  # fmt: skip
        for call in calls:
            with pytest.raises(ValueError, match=why):
                call(bad)
    with pytest.raises(ValueError, match="column 0"):
        entropy.gradient([0.0, 1.0])
    with pytest.raises(ValueError, match="outside the ball"):
        ball.value([1.0, 1.0])
    with pytest.raises(ValueError, match="row 0, column 1"):
        Portfolio([[1.0, 0.0]])
    with pytest.raises(ValueError, match="points"):
        game.wealth([[0.5, 0.5, 0.0]])
    for call in (
        lambda: euclidean(eta=0.0),
        lambda: squared_p_norm(1.0, 1.0),
        lambda: negative_entropy(scale=-1.0),
        lambda: dual_exponent(0.5),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()


@pytest.mark.parametrize(
    "learner, named",
    [
        (okl.OGD(schedule="strong"), "lam"),
        (okl.ExpConcaveFTRL(domain="ball"), "radius"),
        (okl.OnlineNewtonStep(loss="hinge"), "eta"),
        (okl.SketchedONS(loss="absolute"), "eta"),
        (okl.PNorm(p=2.5), "p"),
        (okl.WithFeatures(okl.TaylorFeatures(), okl.FOGD()), "learner"),
        (okl.WithFeatures(okl.TaylorFeatures(), okl.OGD), "learner"),
    ],
    ids=lambda one: repr(one)[:60],
)
def test_hyper_parameters_that_do_not_go_together(learner, named):
    with pytest.raises(ValueError, match=rf"\b{named}\b"):
        learner.partial_fit([[1.0, 2.0]], [1.0])
    assert learner.rounds == 0 and learner.size == 0
