"""First-order learners and FTRL for exp-concave losses: points are argmins by their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from oklnumba.hot.exp_concave import step_to_face
from tests.linear_games import EXP_CONCAVE, FAMILY, D, data, game_gradients, played, textbook


@pytest.mark.parametrize("learner", FAMILY, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_point_is_the_argmin_of_its_definition(learner, seed):
    """The one after the last round of a game too."""
    gradients = game_gradients(seed)
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
