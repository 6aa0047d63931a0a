"""AIOLI against its definition; its bounds, on streams that are hard and labels that fight."""

import numpy as np
import pytest
import scipy

import oklnumba as okl
from oklnumba.hot.aioli import find_root
from tests.checks import assert_close, play_adversary
from tests.reference import naive
from tests.streams import HARD, hard

CUBIC = okl.TaylorFeatures(3, sigma=0.8)
SETTINGS = [(1.0, 1.0), (0.1, 0.3), (1.0, 0.01), (1e-3, 5.0)]  # lam, B


def logistic(Z, y, w):
    return np.logaddexp(0.0, -y * (Z @ w)).sum()


def best_penalised_loss(Z, y, lam, C):
    """Return the penalised loss of a good w with |w.z| <= C: of the best one, nearly."""
    limits = scipy.optimize.LinearConstraint(Z, -C, C)
    start = np.zeros(Z.shape[1])
    found = scipy.optimize.minimize(
        lambda w: logistic(Z, y, w) + lam * w @ w,
        start,
        jac=lambda w: Z.T @ (-y * scipy.special.expit(-y * (Z @ w))) + 2 * lam * w,
        method="SLSQP",
        constraints=limits,
    ).x
    found *= min(1.0, C / max(np.abs(Z @ found).max(), C))
    return min(logistic(Z, y, w) + lam * w @ w for w in (found, start))


@pytest.mark.parametrize(("lam", "B"), SETTINGS)
@pytest.mark.parametrize("features", [CUBIC, okl.FourierFeatures(9, seed=1)], ids=repr)
def test_aioli_equals_its_definition(features, lam, B):
    X, y = hard("uniform", 120)
    y = np.where(y > 0, 1.0, -1.0)
    learner = okl.AIOLI(features, lam=lam, B=B)
    assert learner.regret_bound(2.0) == 4.0 * lam
    run = okl.run(learner, X, y)
    forecasts, deltas = naive.aioli(features.transform(X), y, lam, B)
    assert_close(run.predictions, forecasts, rtol=1e-7)
    assert_close(learner.regret_bound(2.0), deltas.sum() + 4.0 * lam, rtol=1e-7)


def play(kind, how, learner):
    X, y = hard(kind, 80)
    y = np.where(y > 0, 1.0, -1.0)
    if how == "against":
        forecasts, y = play_adversary(learner, X)
    else:
        if how == "turning":
            y = np.repeat([1.0, -1.0], 40)
        forecasts = okl.run(learner, X, y).predictions
    return learner.features.transform(X), y, np.logaddexp(0.0, -y * forecasts).sum()


@pytest.mark.filterwarnings("ignore:the Taylor basis")
@pytest.mark.parametrize("how", ["function", "turning", "against"])
@pytest.mark.parametrize("kind", HARD)
def test_regret_is_under_the_bounds(kind, how):
    for lam, B in SETTINGS:
        learner = okl.AIOLI(okl.TaylorFeatures(2), lam=lam, B=B)
        Z, y, loss = play(kind, how, learner)
        regret = loss - best_penalised_loss(Z, y, lam, 2 * B)
        bound = okl.theory.aioli_bound(okl.Linear(), Z, lam, B)
        assert regret <= learner.regret_bound() + 1e-9
        assert learner.regret_bound() <= bound * (1 + 1e-9)
        if how == "against" and B < 1.0:  # the first is tight, the second is not (docs/aioli.md)
            assert regret > 0.95 * learner.regret_bound()


def test_the_parabola_is_below_the_loss_as_far_as_twice_B():
    p = np.linspace(-40, 40, 321)[:, None]
    curvature, slope = 1 / (4 * np.cosh(p / 2) ** 2), -1 / (1 + np.exp(p))
    for C in (0.01, 0.5, 3.0, 100.0):
        u = np.linspace(-2 * C, 2 * C, 1001)
        apart = np.logaddexp(0, -u) - np.logaddexp(0, -p) - slope * (u - p)
        rounding = 1e-14 * (1 + abs(u) + abs(p))
        assert (apart >= curvature * (u - p) ** 2 / (2 * (1 + C)) - rounding).all()
    # and no less than 1 + C will do: at C = 100
    assert (apart < curvature * (u - p) ** 2 / (2 * 0.95 * (1 + C)) - rounding).any()


def test_the_forecast_solves_its_equation():
    for q in (0.0, 1e-9, 1.0, 50.0, 1e6, 1e13):
        for m in (0.0, 1e-12, 1e-3, 2.0, 0.5 * q, 0.5 * q + 30.0, 1e5):
            p = find_root(m, q)
            assert p == -find_root(-m, q) or p == m == 0.0
            left = np.longdouble(p) + q / 2 * np.tanh(np.longdouble(p) / 2)
            slope = 1 + q / 4 / np.cosh(min(p, 600) / 2) ** 2
            assert abs(left - m) <= 1e-15 * (4 * (m + q) + slope * p)
