"""KernelOGD, BOGD, B(AO)2KS, Projectron and KRLS against the textbook, and a bound."""

import copy
import math

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.hot.kernel_ogd import SQUARE
from tests import battery
from tests.checks import COMPILED, arrays, assert_close, assert_supports
from tests.reference import naive, naive_expansions
from tests.reference.naive_expansions import best_in_ball
from tests.streams import AGAINST, KERNEL, LOSSES, N, classes, data, play_against

long_run = pytest.mark.skipif(not COMPILED, reason="far too long without the JIT")


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


@long_run
@pytest.mark.parametrize("weighted", [False, True])
def test_bogd_keeps_the_function_in_expectation(weighted):
    """One removal, averaged over all coins: f - eta l' k(x, .) without any removal."""
    X, y, K, slope = data()
    sizes = np.array([len(S) for S in naive_expansions.kernel_ogd(K, y, slope, 0.3, 0.05)[1]])
    rounds = int(np.flatnonzero(np.diff(sizes[:60]))[-1]) + 2  # the last of them adds an atom
    budget = int(sizes[rounds - 2])
    before = okl.BOGD(KERNEL, eta=0.3, lam=0.05, budget=budget, weighted=weighted)
    before.partial_fit(X[: rounds - 1], y[: rounds - 1])
    assert before.size == budget

    def played(coin):
        before._coins.next = coin
        return copy.deepcopy(before).learn_one(X[rounds - 1], y[rounds - 1]).predict(X)

    def total(start, stop, first, last):  # coins between two that remove the same atom do so too
        if np.array_equal(first, last) or stop - start < 1e-5:
            return (stop - start) * (first + last) / 2
        middle = (start + stop) / 2
        between = played(middle)
        return total(start, middle, first, between) + total(middle, stop, between, last)

    found = total(0.0, 1.0, played(0.0), played(1.0 - 1e-12))
    whole = okl.KernelOGD(KERNEL, eta=0.3, lam=0.05).partial_fit(X[:rounds], y[:rounds])
    np.testing.assert_allclose(found, whole.predict(X), rtol=0, atol=2e-3)


@pytest.mark.parametrize("name", AGAINST)
def test_the_classical_bound_of_gradient_descent_holds(name):
    radius = 3.0
    eta = radius / math.sqrt(N)
    learner = okl.KernelOGD(okl.Gaussian(1.0), eta=eta, radius=radius)
    X, y, hinge = play_against(name, learner, N)
    regret = hinge.sum() - best_in_ball(naive.gaussian(X, X), y, radius)
    assert regret <= radius**2 / (2 * eta) + eta / 2 * np.count_nonzero(hinge > 0)
    assert regret <= radius * math.sqrt(N)


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


@long_run
def test_bao2ks_with_bandit_feedback_plays_the_better_kernel_more_often():
    X, y = classes(4000)
    kernels = [okl.Gaussian(0.02), okl.Gaussian(0.8)]  # the first is too narrow to learn
    learner = okl.BAO2KS(kernels, radius=5.0, horizon=4000, budget=2000).partial_fit(X, y)
    assert learner.probabilities[1] > 0.7


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
