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


@pytest.mark.parametrize("loss, label", [("absolute", -10.0), ("squared", -1000.0)])
def test_half_of_the_bounds_is_exceeded(loss, label):
    """Each point is new but for a part against f that keeps |f| at 1: slopes hardly change.

    The regret is at most 3 g sqrt(n), and tends to (1 + sqrt(1/2)) g sqrt(n).
    """
    n = 400 if COMPILED else 100
    learner = okl.AOGD(okl.Linear(), loss=loss, radius=1.0, threshold=0.0)
    Z, forecasts = [], []
    for t, e in enumerate(np.eye(n)):
        z, f = e, np.zeros(n)
        if t:
            f = learner.coefficients @ learner.atoms
            along = 0.5 / np.sqrt(t + 1.0)
            z = along * f / np.linalg.norm(f) + np.sqrt(1.0 - along**2) * e
        forecasts.append(f @ z)
        learner.learn_one(z, label)
        Z.append(z)
    Z, off = np.array(Z), np.array(forecasts) - label
    if loss == "absolute":
        best, slope = -n * label - np.linalg.norm(Z.sum(axis=0)), 1.0
        regret, bounds = off.sum() - best, [learner.regret_bound()]
    else:
        best, slope = best_in_ball(Z @ Z.T, np.full(n, label), 1.0), -2.0 * label
        closed = okl.theory.aogd_bound(best, 1.0, 0.0, n)
        regret, bounds = off @ off - best, [learner.regret_bound(), closed]
    assert bounds == pytest.approx(len(bounds) * [3.0 * slope * np.sqrt(n)], rel=0.01)
    assert 0.5 * max(bounds) < regret <= min(bounds)


def test_half_of_the_bound_is_exceeded_where_the_dictionary_lacks_a_direction():
    """One direction is never far enough to join, and all labels ask for it."""
    n, threshold, label = 400, 0.5, -1000.0
    X = np.vstack([np.eye(2)[:1], np.tile([0.0, 0.49], (n - 1, 1))])
    learner = okl.AOGD(okl.Linear(), radius=1.0, threshold=threshold)
    off = okl.run(learner, X, np.full(n, label)).predictions - label
    best = best_in_ball(X @ X.T, np.full(n, label), 1.0)
    bound = okl.theory.aogd_bound(best, 1.0, threshold, n)
    assert learner.size == 1 and 0.5 * bound < off @ off - best <= bound
