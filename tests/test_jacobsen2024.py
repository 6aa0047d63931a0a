"""The dynamic regret bound of discounted AWV, on streams that drift and streams that fight."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from oklnumba.theory import discounted_awv_bound
from oklnumba.theory.jezequel2019 import _find_coordinates
from tests.checks import play_adversary
from tests.reference import naive
from tests.streams import inputs, labels


def moving(kind, n=240, r=3):
    """Return features and the comparators w_t from which the labels come."""
    rng = np.random.default_rng(11)
    Z, t = rng.uniform(-1, 1, (n, r)), np.arange(n)[:, None]
    if kind == "silent":
        Z[20:200, 1:] = 0.0
    orders = {"sorted": np.argsort(Z[:, 0]), "repeated": rng.integers(0, 4, n)}
    abrupt, slow = np.where(t // 60 % 2 == 0, 1.0, -1.0), np.cos(2 * np.pi * t / n + np.arange(r))
    w = np.ones((n, r)) * {"abrupt": abrupt, "slow": slow}.get(kind, 1.0)
    return Z[orders.get(kind, np.arange(n))], w


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


@pytest.mark.slow
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


def grown(kind, n=120):
    """Return inputs, labels of a function that moves, and the kernel."""
    rng = np.random.default_rng(5)
    X = inputs(kind if kind in ("clustered", "repeated", "sorted") else "uniform", n, 2, rng)
    return X, labels("coins" if kind == "coins" else "drifting", X, rng), okl.Gaussian(0.7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["drifting", "clustered", "repeated", "sorted", "coins", "against"]
)
def test_dynamic_regret_of_nystrom_awv_is_under_the_bound(kind):
    """On a dictionary that grows, for functions outside the space too; the last bound is exact.

    With u_t = 0 and no floor (discount 1) it is the certificate's bound, less lam |f|^2 terms.
    """
    X, y, kernel = grown(kind)
    for lam, discount in ((1.0, 1.0), (0.1, 0.98), (0.01, 0.9), (1e-3, 0.5)):
        learner = okl.NystromAWV(kernel, lam=lam, mu=0.1, discount=discount, seed=2)
        if kind == "against":
            _, y = play_adversary(learner.reset(), X)
        run = okl.run(learner.reset(), X, y)
        Z, ranks = _find_coordinates(kernel, X, run.sizes, None)
        assert ranks[-1] > 2 * ranks[5]
        half = np.where(np.arange(len(y))[:, None] < 60, 1.0, -1.0)
        for u in (*comparators(Z, y, 0.5 * half * np.ones(Z.shape[1])), np.full(Z.shape[1], 0.3)):
            bound = discounted_awv_bound(Z, y, lam, discount, u, ranks)
            assert (regrets(y, run.predictions, Z, u) <= bound + 1e-8).all()
    with pytest.raises(ValueError, match="sizes must be 120 counts"):
        discounted_awv_bound(Z, y, 1.0, 0.9, np.zeros(Z.shape[1]), ranks[::-1])


def test_the_bound_on_growing_spaces_is_the_certificate_where_nothing_moves():
    """Discount 1 and the best function of the end: bound - regret is the certificate's."""
    X, y, kernel = grown("drifting")
    run = okl.run(okl.NystromAWV(kernel, lam=0.5, mu=0.1, seed=2), X, y)
    Z, ranks = _find_coordinates(kernel, X, run.sizes, None)
    best = np.linalg.solve(Z.T @ Z + 0.5 * np.eye(ranks[-1]), Z.T @ y)
    bound = discounted_awv_bound(Z, y, 0.5, 1.0, best, ranks)[-1]
    loss = np.square(y - Z @ best).sum()
    certified = run.certificate.guaranteed[-1]
    assert_allclose(loss + bound, certified, rtol=1e-6)


def test_experts_over_discounts_have_the_least_of_their_bounds():
    X, y, kernel = grown("drifting")
    grid = [okl.NystromAWV(kernel, lam=0.1, mu=0.1, discount=g, seed=2) for g in (1.0, 0.98, 0.9)]
    run, one = okl.run(okl.Experts(grid), X, y), okl.run(grid[0].reset(), X, y)
    Z, ranks = _find_coordinates(kernel, X, one.sizes, None)  # KORS forgets nothing
    more = okl.theory.experts_bound(3, B=None, y=y)
    for u in comparators(Z, y, np.zeros_like(Z)):
        each = [discounted_awv_bound(Z, y, 0.1, a.discount, u, ranks)[-1] for a in grid]
        assert regrets(y, run.predictions, Z, u)[-1] <= min(each) + more


def test_half_the_bound_on_growing_spaces_is_exceeded():
    """Each direction is new again, and joins with its first round: the control of above."""
    n, r = 120, 20
    X = 100.0 * (np.arange(n) % r)[:, None]
    signs = np.where(np.arange(n) // r % 2 == 0, 1.0, -1.0)
    learner = okl.NystromAWV(okl.Gaussian(1.0), lam=1e-3, mu=1e-9, discount=0.5)
    run = okl.run(learner, X, signs)
    Z, ranks = _find_coordinates(okl.Gaussian(1.0), X, run.sizes, None)
    assert ranks[0] == 1 and ranks[-1] == r
    u = np.repeat(signs[::r], r)[:, None] * np.ones(r)
    bound = discounted_awv_bound(Z, signs, 1e-3, 0.5, u, ranks)
    regret = regrets(signs, run.predictions, Z, u)
    assert (regret <= bound).all() and (regret > bound / 2).all()


def test_what_a_new_coordinate_gains():
    """0 <= Delta_t <= (mu_t / lam) g min F_t, reached but for a factor 1 + mu_t / lam."""
    X, y, kernel = grown("coins")
    sizes = okl.run(okl.NystromAWV(kernel, mu=0.1, seed=2), X, y).sizes
    Z, ranks = _find_coordinates(kernel, X, sizes, None)
    for lam, discount in ((1.0, 1.0), (0.1, 0.98), (0.01, 0.9), (1e-3, 0.5)):
        state = naive.Discounted(int(ranks[0]), lam, discount)
        for t, r in enumerate(ranks[:-1]):
            state.learn(Z[t, :r], y[t])
            least = discount * state.least()
            state.fade()
            assert abs(least - state.least()) <= 1e-9  # the floor costs nothing at the minimum
            if ranks[t + 1] > r:
                column = Z[: t + 1, r]
                state.join(column, Z[: t + 1, :r], y[: t + 1])
                mu = discount ** np.arange(t + 1.0, 0.0, -1.0) @ column**2
                assert -1e-9 <= least - state.least() <= mu / lam * least + 1e-9
    state = naive.Discounted(1, 100.0, 1.0)
    for _ in range(10):
        state.learn(np.zeros(1), 1.0)
    state.join(np.ones(10), np.zeros((10, 1)), np.ones(10))
    assert 0.9 < 10.0 - state.least() < 1.0  # of mu / lam * 10 = 1
