"""FTRL for exp-concave losses: every point is the argmin of its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from oklnumba.hot.exp_concave import step_to_face
from tests.linear_games import EXP_CONCAVE, FIRST_ORDER, T, assert_argmins, game_gradients, played


@pytest.mark.parametrize("learner", EXP_CONCAVE, ids=repr)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_point_is_the_argmin_of_its_definition(learner, seed):
    assert_argmins(learner, seed)


def test_the_domains_bind_in_the_tests_above():
    """In the games of FTRL here, and in that of LazyOGD in test_first_order.py."""
    gradients = game_gradients()
    ball = played(EXP_CONCAVE[1], gradients)
    assert 10 < (np.linalg.norm(ball, axis=1) > 1.5 * (1 - 1e-12)).sum() < T
    simplex = played(EXP_CONCAVE[2], gradients)
    assert 10 < (simplex == 0).sum() < 3 * T
    lazy = played(FIRST_ORDER[6], gradients)
    assert 10 < (np.linalg.norm(lazy, axis=1) > 1.5 * (1 - 1e-12)).sum() < T


def test_a_step_out_of_the_simplex_stops_at_the_first_face():
    """The entries of v reach 0 after 3/4 and 2/5 of the way."""
    w, index = np.array([0.5, 0.0, 0.3, 0.2]), np.array([0, 2, 3])
    assert step_to_face(w, index, np.array([1.4, -0.1, -0.3]), 3) == 2
    assert_allclose(w, [0.86, 0.0, 0.14, 0.0], rtol=1e-14)
