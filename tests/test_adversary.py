"""adversary.py: the greedy adversary against brute force, and synthetic streams."""

import numba
import numpy as np
import pytest

import oklnumba as okl
from oklnumba import adversary
from tests import naive

KERNEL = okl.Gaussian(1.0)
N = 25 if not numba.config.DISABLE_JIT else 6
LEARNERS = {
    "KernelAWV": lambda: okl.KernelAWV(KERNEL),
    "PKAWV": lambda: okl.PKAWV(okl.TaylorFeatures(2)),
    "NystromAWV": lambda: okl.NystromAWV(KERNEL),
    "ProsNKONS": lambda: okl.ProsNKONS(KERNEL),
}


def regret_so_far(predictions, X, y, lam):
    """Squared loss minus the loss of the best penalised function, by a dense solve."""
    K = naive.gaussian(X, X)
    return ((y - predictions) ** 2).sum() - naive.penalised_comparator(K, y, lam)


@pytest.mark.parametrize("name", LEARNERS)
def test_each_round_is_about_the_worst_there_is(name):
    lam = 0.5
    game = adversary.greedy(LEARNERS[name](), KERNEL, N, 2, lam=lam)
    assert np.abs(game.X).max() <= 1.0 and set(game.y) <= {-1.0, 1.0}
    assert len(set(game.y)) == 2
    rng = np.random.default_rng(5)
    twin = LEARNERS[name]()
    for t in range(N):
        found = regret_so_far(game.predictions[: t + 1], game.X[: t + 1], game.y[: t + 1], lam)
        np.testing.assert_allclose(game.regret[t], found, rtol=1e-8, atol=1e-10)
        before = game.regret[t - 1] if t else 0.0
        for x in rng.uniform(-1, 1, (30, 2)):
            X = np.vstack([game.X[:t], x])
            forecasts = np.append(game.predictions[:t], twin.predict_one(x))
            for label in (-1.0, -0.3, 1.0):
                other = regret_so_far(forecasts, X, np.append(game.y[:t], label), lam)
                assert other - before <= (game.regret[t] - before) * 1.05 + 1e-9
        assert twin.predict_one(game.X[t]) == game.predictions[t]
        twin.learn_one(game.X[t], game.y[t])


def test_the_adversary_hurts_more_than_chance_and_the_bound_holds():
    game = adversary.greedy(okl.KernelAWV(KERNEL), KERNEL, N, 2)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (N, 2)), rng.choice([-1.0, 1.0], N)
    by_chance = okl.run(okl.KernelAWV(KERNEL), X, y).regret(KERNEL, 1.0)[-1]
    assert by_chance < game.regret[-1] <= okl.theory.awv_bound(KERNEL, game.X, 1.0)


def test_the_same_seed_gives_the_same_game_and_the_learner_has_played_it():
    learner = okl.NystromAWV(KERNEL, seed=3).learn_one([0.0, 0.0, 0.0], 1.0)
    game = adversary.greedy(learner, KERNEL, 6, 2, seed=4)
    assert learner.rounds == 6
    again = adversary.greedy(okl.NystromAWV(KERNEL, seed=3), KERNEL, 6, 2, seed=4)
    for a, b in zip(game, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"learner": None}, "learner"),
        ({"kernel": "gaussian"}, "kernel"),
        ({"n": 0}, "n"),
        ({"d": 1.5}, "d"),
        ({"lam": 0.0}, "lam"),
        ({"restarts": 0}, "restarts"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_leave_the_learner_as_it_is(params, name):
    learner = okl.KernelAWV(KERNEL).learn_one([0.0], 1.0)
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        adversary.greedy(**({"learner": learner, "kernel": KERNEL, "n": 5, "d": 2} | params))
    assert learner.rounds == 1


def test_alternating():
    X, y = adversary.alternating(5, x=[0.5, 2.0], C=3.0)
    np.testing.assert_array_equal(X, [[0.5, 2.0]] * 5)
    np.testing.assert_array_equal(y, [3.0, -3.0, 3.0, -3.0, 3.0])


def test_sorted_by():
    X = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0]])
    y = np.array([0.0, -1.0, 1.0])
    for column, order in ((0, [1, 2, 0]), (1, [2, 0, 1]), (-1, [1, 0, 2])):
        sorted_X, sorted_y = adversary.sorted_by(X, y, column)
        np.testing.assert_array_equal(sorted_X, X[order])
        np.testing.assert_array_equal(sorted_y, y[order])
    for bad in (2, -2, 0.5):
        with pytest.raises(ValueError, match="column"):
            adversary.sorted_by(X, y, bad)


def test_drifting_turns_and_stays_in_range():
    X, y = adversary.drifting(4000, d=3, turns=1.0, noise=0.0)
    assert np.abs(X).max() <= 1.0
    np.testing.assert_allclose(y[0], np.sin(3 * X[0, 0]))
    np.testing.assert_allclose(y[1000], np.sin(3 * X[1000, 1]), atol=1e-12)
    np.testing.assert_allclose(y[2000], np.sin(-3 * X[2000, 0]), atol=1e-12)
    _, noisy = adversary.drifting(4000, noise=1.0)
    assert noisy.min() == -1.0 and noisy.max() == 1.0


def test_a_function_of_known_norm():
    f = adversary.rkhs_function(KERNEL, d=2, norm=2.5, centers=7, seed=1)
    K = naive.gaussian(f.centers, f.centers)
    np.testing.assert_allclose(np.sqrt(f.coefs @ K @ f.coefs), 2.5, rtol=1e-12)
    X = np.random.default_rng(0).uniform(-1, 1, (10, 2))
    np.testing.assert_allclose(f(X), naive.gaussian(X, f.centers) @ f.coefs, rtol=1e-12)
    # No function of smaller norm has its values: the comparator with a tiny lam comes close to it.
    best = okl.theory.comparator(KERNEL, f.centers, f(f.centers), 1e-9)
    np.testing.assert_allclose(best.norm, 2.5, rtol=1e-3)
