"""The dynamic regret bound of discounted AWV, on streams that drift and streams that fight."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from oklnumba.theory import discounted_awv_bound
from tests.checks import play_adversary
from tests.reference import naive


def moving(kind, n=240, r=3):
    """Return features and the comparators w_t from which the labels come."""
    rng = np.random.default_rng(11)
    Z, t = rng.uniform(-1, 1, (n, r)), np.arange(n)[:, None]
    w = np.ones((n, r))
    if kind == "abrupt":
        w = np.where(t // 60 % 2 == 0, 1.0, -1.0) * w
    if kind == "slow":
        w = np.cos(2 * np.pi * t / n + np.arange(r))
    if kind == "sorted":
        Z = Z[np.argsort(Z[:, 0])]
    if kind == "repeated":
        Z = Z[rng.integers(0, 4, n)]
    if kind == "silent":
        Z[20:200, 1:] = 0.0
    return Z, w


def comparators(Z, y, w):
    """Return sequences to compare with: the truth, ridge on each quarter and on all, and zero."""
    n, r = Z.shape
    segments, ridge = np.empty_like(w), np.empty_like(w)
    for parts, fitted in ((4, segments), (1, ridge)):
        for part in np.split(np.arange(n), parts):
            A = Z[part].T @ Z[part] + 0.1 * np.eye(r)
            fitted[part] = np.linalg.solve(A, Z[part].T @ y[part])
    return w, segments, ridge[0], np.zeros(r)


def regrets(y, forecasts, Z, u):
    return np.cumsum((y - forecasts) ** 2) - np.cumsum((y - (Z * u).sum(axis=1)) ** 2)


KINDS = ["stationary", "abrupt", "slow", "sorted", "repeated", "silent", "adversarial"]
SETTINGS = [(1.0, 1.0), (0.01, 1.0), (1.0, 0.99), (0.01, 0.9), (1.0, 0.5), (1e-4, 0.5)]


@pytest.mark.parametrize("kind", KINDS)
def test_dynamic_regret_is_under_the_bound(kind):
    Z, w = moving(kind)
    noise = 0.1 * np.random.default_rng(12).standard_normal(len(Z))
    for lam, discount in SETTINGS:
        learner = okl.LinearAWV(lam, discount=discount)
        if kind == "adversarial":
            forecasts, y = play_adversary(learner, Z)
        else:
            y = (Z * w).sum(axis=1) + noise
            forecasts = okl.run(learner, Z, y).predictions
        for u in comparators(Z, y, w):
            bound = discounted_awv_bound(Z, y, lam, discount, u)
            assert (regrets(y, forecasts, Z, u) <= bound + 1e-9).all()


@pytest.mark.parametrize("kind", ["abrupt", "silent"])
def test_the_bound_is_that_of_its_definition(kind):
    Z, w = (part[:80] for part in moving(kind))
    y = np.sin(np.arange(80.0))
    for lam, discount in SETTINGS:
        state = naive.Discounted(3, lam, discount)
        bound, expected = lam * w[0] @ w[0], []
        for t in range(80):
            state.learn(Z[t], y[t])
            bound += y[t] ** 2 * Z[t] @ np.linalg.solve(state.A.astype(float), Z[t])
            expected.append(float(bound))
            before = state.loss(w[t])
            state.fade()
            if t < 79:
                bound += state.loss(w[t + 1]) - discount * before
        assert_allclose(discounted_awv_bound(Z, y, lam, discount, w), expected, rtol=1e-8)


def test_it_is_under_the_form_with_the_determinant():
    """Against u = 0, where no floor bites, the middle term is all there is."""
    Z, w = moving("abrupt")
    y = np.sign((Z * w).sum(axis=1))
    A = 1e-3 * np.eye(3)
    for z in Z:
        A = 0.9 * A + np.outer(z, z)
    closed = np.linalg.slogdet(A / 1e-3)[1] + 3 * len(y) * np.log(1 / 0.9)
    found = discounted_awv_bound(Z, y, 1e-3, 0.9, np.zeros(3))[-1]
    assert closed / 3 < found <= closed


def test_half_the_bound_is_exceeded_where_each_direction_is_new_again():
    """Directions take turns; the label has another sign each time, and so has the comparator."""
    r, n = 20, 200
    Z, signs = np.eye(r)[np.arange(n) % r], np.where(np.arange(n) // r % 2 == 0, 1.0, -1.0)
    u = np.repeat(signs[::r], r)[:, None] * np.ones(r)
    run = okl.run(okl.LinearAWV(1e-3, discount=0.5), Z, signs)
    regret = regrets(signs, run.predictions, Z, u)
    bound = discounted_awv_bound(Z, signs, 1e-3, 0.5, u)
    assert (regret <= bound).all()
    assert (regret > bound / 2).all()
