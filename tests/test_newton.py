"""The online Newton step and its sketch against dense matrices, the slab and KONS."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba import losses
from oklnumba.hot.newton import solve_block
from tests.checks import arrays, one_by_one
from tests.reference import naive_linear
from tests.streams import NEWTON, game_gradients, linear_stream, played


def textbook(learner, X, y, C, derivative):
    eta = learner.eta or losses.get(learner.loss).curvature(learner.C)
    rank = getattr(learner, "rank", None)
    return naive_linear.newton_step_run(X, y, derivative, C, learner.alpha, eta, rank)


@pytest.mark.parametrize("learner", NEWTON, ids=repr)
def test_newton_steps_are_those_with_dense_matrices(learner):
    X, y = linear_stream()
    loss = losses.get(learner.loss)
    y = np.where(y > 0, 1.0, -1.0) if loss.classes else 0.9 * y * min(1, learner.C)
    forecasts, points = textbook(learner, X, y, learner.C, loss.derivative)
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
    _, expected = textbook(learner, gradients, no_labels, np.inf, lambda f, y: 1.0)
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
        dense, _ = naive_linear.newton_step_run(
            X, y, found.derivative, 1.0, alpha, eta or found.curvature(1.0)
        )
        if loss != "hinge":  # there rounding at the edge decides about the derivative
            assert_allclose(run.predictions, dense, rtol=1e-6, atol=1e-7)


def test_blocks_that_would_cancel_are_refused_and_change_nothing():
    learner = okl.OnlineNewtonStep(alpha=1e-6).reset(3)
    X = np.zeros((3, 8))
    X[:, :3] = 1.0
    state = learner._state
    before = [array.copy() for array in state]
    assert not solve_block(X, learner._eta, state, learner._work)
    for now, then in zip(state, before, strict=True):
        assert_array_equal(now, then)


@pytest.mark.parametrize("directions", [6, 3])  # more than the sketch keeps, and as many
def test_the_sketch_loses_no_more_than_frequent_directions_may(directions):
    rank, rng = 3, np.random.default_rng(0)
    gradients = rng.normal(size=(200, directions)) @ rng.normal(size=(directions, 6))
    learner = okl.SketchedONS(rank, eta=1.0).reset(6)
    for g in gradients:
        learner.update(g)
    S = arrays(learner)["S"]
    lost = np.linalg.eigvalsh(gradients.T @ gradients - S.T @ S)
    total = np.square(gradients).sum()
    # Ghashami et al. 2016: 0 <= G'G - S'S <= |G - G_k|_F^2 / (rank + 1 - k) for all k <= rank
    tail = np.cumsum(np.square(np.linalg.svd(gradients, compute_uv=False))[::-1])[::-1]
    assert lost[0] > -1e-10 * total
    assert lost[-1] <= min(tail[k] / (rank + 1 - k) for k in range(rank + 1)) + 1e-10 * total
    assert (lost[-1] > 1e-3 * total) == (directions > rank)
