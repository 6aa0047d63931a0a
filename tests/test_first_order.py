"""First-order learners: every point is the argmin of its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from tests.linear_games import FIRST_ORDER, D, assert_argmins, data


@pytest.mark.parametrize("learner", FIRST_ORDER, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_point_is_the_argmin_of_its_definition(learner, seed):
    assert_argmins(learner, seed)


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
