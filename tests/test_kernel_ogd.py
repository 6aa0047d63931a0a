"""KernelOGD, BOGD, B(AO)2KS, Projectron and KRLS against the textbook."""

import math

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.hot.kernel_ogd import SQUARE
from tests import battery
from tests.checks import COMPILED, arrays, assert_close, assert_supports
from tests.reference import naive, naive_expansions
from tests.streams import KERNEL, LOSSES, N, data


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "params",
    [{}, {"lam": 0.3}, {"budget": 25, "lam": 0.1}, {"radius": 1.5}, {"budget": 25, "radius": 1.0}]
    + [{"lam": 2.4}],  # 0.04 a round: the common factor must not underflow
    ids=str,
)
def test_kernel_ogd_equals_the_textbook(loss, params):
    X, y, K, slope = data(loss)
    learner = okl.KernelOGD(KERNEL, loss=loss, eta=0.4, **params)
    run = okl.run(learner, X, y)
    forecasts, supports, norms = naive_expansions.kernel_ogd(K, y, slope, 0.4, **params)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    assert_close(learner.norm, norms[-1])
    if "radius" in params:
        # the norm that the rounds maintain
        assert_close(np.sqrt(arrays(learner)["sums"][SQUARE]), norms[-1])
        assert (norms <= params["radius"] * (1 + 1e-12)).all()
        assert (norms >= params["radius"] * (1 - 1e-12)).any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("params", [{}, {"gamma": 1.2}], ids=str)
def test_bogd_equals_the_textbook(loss, weighted, params):
    X, y, K, slope = data(loss)
    how = {"loss": loss, "eta": 0.2, "lam": 0.02, "budget": 40, "weighted": weighted}
    learner = okl.BOGD(KERNEL, seed=3, **how, **params)
    run = okl.run(learner, X, y)
    coins = np.random.default_rng(3).random(len(y))
    params = params | {"weighted": weighted}
    forecasts, supports = naive_expansions.bogd(K, y, slope, 0.2, 0.02, 40, coins, **params)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)


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
    held = arrays(learner)
    for atoms, count, support in zip(held["atoms"], held["m"], expected[4], strict=True):
        mine, others = atoms[:, :count].T, X[list(support)]
        np.testing.assert_array_equal(sorted(mine.tolist()), sorted(others.tolist()))
    assert learner.restarts > 0 or not COMPILED
    assert (learner.norms <= settings["radius"] * (1 + 1e-12)).all()


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize(
    ("threshold", "budget"), [(0.05, None), (0.3, None), (0.05, 12), (0.3, 12), (0.0, 15)]
)
def test_projectron_equals_the_textbook(aggressive, threshold, budget):
    X, y, K, _ = data()
    slack = None if threshold else 0.25 * math.sqrt(16 / math.log(16))  # with a budget alone
    learner = okl.Projectron(KERNEL, threshold=threshold, budget=budget, aggressive=aggressive)
    run = okl.run(learner, X, y)
    expected = naive_expansions.projectron(K, y, threshold, budget or np.inf, aggressive, slack)
    assert_close(run.predictions, expected[0])
    assert_supports(run, learner, X, expected[1])
    assert_close(learner.norm, expected[2][-1])
    if aggressive:
        assert len(expected[1][-1]) < np.count_nonzero(y * expected[0] < 1)
    pivots = np.diag(arrays(learner)["R"])
    sign, log_det = np.linalg.slogdet(KERNEL(learner.atoms))
    assert sign == 1.0 and 2 * np.log(pivots).sum() == pytest.approx(log_det, rel=1e-9)


@pytest.mark.parametrize("aggressive", [False, True])
def test_rounding_decides_no_tie_of_projectron(aggressive):
    rng = np.random.default_rng(0)
    rows, y = rng.integers(0, 3, 200), rng.choice([-1.0, 1.0], 200)  # all labels of three points
    learner = okl.Projectron(okl.Precomputed(np.eye(3)), aggressive=aggressive)
    run = okl.run(learner, rows[:, None], y)
    K = np.eye(3)[np.ix_(rows, rows)]
    expected = naive_expansions.projectron(K, y, 0.1, aggressive=aggressive)[0]
    assert_close(run.predictions, expected)
    np.testing.assert_array_equal(run.mistakes, y * expected <= 0)
    by_hand = battery.by_hand(learner.reset(), rows[:, None], y)[0]
    np.testing.assert_array_equal(by_hand, run.predictions)


@pytest.mark.parametrize("threshold", [0.3, 0.03, 0.003])
def test_krls_equals_least_squares_over_its_projected_data(threshold):
    X, y, K, _ = data("squared")
    learner = okl.KRLS(KERNEL, threshold=threshold)
    run = okl.run(learner, X, y)
    forecasts, supports, a = naive_expansions.krls(K, y, threshold)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    np.testing.assert_array_equal(learner.atoms, X[supports[-1]])
    assert_close(learner.coefficients, a)
