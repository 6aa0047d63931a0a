"""AOGD-ALD against the textbook; its bounds on streams that are hard and labels that fight."""

import numpy as np
import pytest

import oklnumba as okl
from tests.checks import COMPILED, assert_close, assert_supports, play_adversary
from tests.reference import naive_expansions
from tests.streams import HARD, KERNEL, LOSSES, data, hard


@pytest.mark.parametrize("threshold", [0.3, 0.03, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_aogd_equals_the_textbook(loss, threshold):
    X, y, K, slope = data(loss)
    learner = okl.AOGD(KERNEL, loss=loss, radius=1.5, threshold=threshold)
    assert learner.regret_bound() == 0.0
    run = okl.run(learner, X, y)
    forecasts, supports, norms, bound = naive_expansions.aogd(K, y, slope, 1.5, threshold)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    assert_close(learner.norm, norms[-1])
    assert_close(learner.regret_bound(), bound)


def best_in_ball(K, y, radius):
    """Return the least squared loss of |f| <= radius, by ridge regression with the right lam."""
    low, high = 1e-9, 1e9
    for _ in range(100):
        lam = np.sqrt(low * high)
        c = np.linalg.solve(K + lam * np.eye(len(y)), y)
        low, high = (low, lam) if c @ K @ c < radius**2 else (lam, high)
    return np.square(y - K @ c).sum()


@pytest.mark.parametrize("how", ["function", "against"])
@pytest.mark.parametrize("kind", HARD)
def test_regret_is_under_the_bounds(kind, how):
    X, y = hard(kind)
    kernel, n = okl.Gaussian(0.7), len(y)
    for radius, threshold in ((1.0, 0.0), (1.0, 0.3), (5.0, 1 / np.sqrt(n))):
        learner = okl.AOGD(kernel, radius=radius, threshold=threshold)
        if how == "against":
            forecasts, y = play_adversary(learner, X)
        else:
            forecasts = okl.run(learner, X, y).predictions
        best = best_in_ball(kernel(X), y, radius)
        regret = np.square(y - forecasts).sum() - best
        assert regret <= learner.regret_bound() + 1e-9
        assert regret <= okl.theory.aogd_bound(best, radius, threshold, n)


def test_half_of_the_bound_is_exceeded():
    """Each point is new but for a part against f that keeps |f| at 1: slopes are 1 in all rounds.

    The regret is at most 3 sqrt(n), and tends to (1 + sqrt(1/2)) sqrt(n).
    """
    n = 400 if COMPILED else 100
    learner, Z, forecasts = (
        okl.AOGD(okl.Linear(), loss="absolute", radius=1.0, threshold=0.0),
        [],
        [],
    )
    for t, e in enumerate(np.eye(n)):
        z, f = e, np.zeros(n)
        if t:
            f = learner.coefficients @ learner.atoms
            along = 0.5 / np.sqrt(t + 1.0)
            z = along * f / np.linalg.norm(f) + np.sqrt(1.0 - along**2) * e
        forecasts.append(f @ z)
        learner.learn_one(z, -10.0)
        Z.append(z)
    regret = sum(forecasts) + np.linalg.norm(np.sum(Z, axis=0))
    assert learner.regret_bound() == pytest.approx(3.0 * np.sqrt(n))
    assert 0.5 * learner.regret_bound() < regret <= learner.regret_bound()
