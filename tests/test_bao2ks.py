"""B(AO)2KS against the textbook with the same coins."""

import math

import numpy as np
import pytest

import oklnumba as okl
from tests import naive, naive_expansions
from tests.compare import assert_close
from tests.compiled import COMPILED
from tests.expansions import N, data, long_run, stream


@pytest.mark.parametrize("horizon", [None, N])
@pytest.mark.parametrize("params", [{}, {"eta": 0.2, "hints": 4, "radius": 2.0}], ids=str)
@pytest.mark.parametrize("sigmas", [[0.8], [0.4, 0.8, 2.0]], ids=str)
def test_bao2ks_equals_the_textbook(sigmas, params, horizon):
    X, y, _, _ = data()
    kernels = [okl.Gaussian(sigma) for sigma in sigmas]
    settings = {"radius": 30.0, "budget": 30} | ({"beta": 1.5} if len(sigmas) == 1 else {}) | params
    learner = okl.BAO2KS(kernels, horizon=horizon, seed=5, **settings)
    run = okl.run(learner, X, y)
    coins = np.random.default_rng(5).random((len(y), 3))
    eta, hints = params.get("eta"), params.get("hints")
    expected = naive_expansions.bao2ks(
        [naive.gaussian(X, X, sigma) for sigma in sigmas], y, settings["radius"],
        lambda t: eta or 10 / math.sqrt(horizon or t), 30,
        lambda t: hints or max(round(math.log(horizon or t)), 1), learner.beta, coins,
    )  # fmt: skip
    assert_close(run.predictions, expected[0])
    np.testing.assert_array_equal(run.sizes, expected[1])
    assert_close(learner.norms, expected[2])
    assert learner.restarts == expected[3]
    for atoms, count, support in zip(learner._atoms, learner._held, expected[4], strict=True):
        own, others = atoms[:, :count].T, X[list(support)]
        np.testing.assert_array_equal(sorted(own.tolist()), sorted(others.tolist()))
    assert learner.restarts > 0 or not COMPILED
    assert (learner.norms <= settings["radius"] * (1 + 1e-12)).all()


@long_run
def test_bao2ks_with_bandit_feedback_plays_the_better_kernel_more_often():
    X, y = stream(4000)
    kernels = [okl.Gaussian(0.02), okl.Gaussian(0.8)]  # the first is too narrow to learn
    learner = okl.BAO2KS(kernels, radius=5.0, horizon=4000, budget=2000).partial_fit(X, y)
    assert learner.probabilities[1] > 0.7
