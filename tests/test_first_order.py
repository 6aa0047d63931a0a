"""First-order learners and FTRL for exp-concave losses: points are argmins by their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from oklnumba.hot.exp_concave import step_to_face
from tests.reference import naive_linear
from tests.streams import EXP_CONCAVE, FAMILY, game_gradients, played


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
        return naive_linear.ogd_points(
            gradients, steps(p["schedule"], p["eta"], p["lam"], gradients), p["radius"]
        )
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
    return naive_linear.exp_concave_points(
        gradients, p["alpha_tilde"], p["lipschitz"], p["domain"], p["radius"]
    )


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
