"""Coin betting: its bound against every norm at once, on streams that hypothesis draws.

That its points are the textbook's, at any length of gradients, is in test_linear.py.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oklnumba as okl
from oklnumba.theory import coin_betting_bound
from tests.checks import COMPILED, troubled

NORMS = np.geomspace(1e-3, 1e3, 13)
D = 3
KINDS = "against", "with", "equal", "alternating", "drifting", "turning", "sparse", "random"
LENGTHS = "one", "any", "growing", "jumping"


def make_game(kind, lengths, n, seed):
    """Return what answers round t and the point w with a gradient, and the largest length."""
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((n, D))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    angles = np.arange(n) / n * rng.uniform(1, 10)
    drifting = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(n)])
    size = {
        "one": np.ones(n), "any": rng.uniform(0, 1, n), "growing": np.linspace(0.1, 1, n),
        "jumping": np.where(np.arange(n) < rng.integers(1, n + 1), 0.1, 1),
    }[lengths]  # fmt: skip
    first, turn = directions[0], rng.integers(n)
    off = rng.random(n) < 0.9

    def answer(t, w):
        against = w / np.linalg.norm(w) if w.any() else first
        return size[t] * {
            "against": against, "with": -against, "equal": first, "alternating": (-1) ** t * first,
            "drifting": drifting[t], "turning": first if t < turn else -first,
            "sparse": 0.0 * first if off[t] else directions[t % 3], "random": directions[t],
        }[kind]  # fmt: skip

    return answer, size.max()


def play(learner, answer, n):
    """Return the gradients and points of a game."""
    learner.reset(D)
    gradients, points = np.empty((n, D)), np.empty((n, D))
    for t in range(n):
        points[t] = learner.w
        gradients[t] = answer(t, points[t])
        learner.update(gradients[t])
    return gradients, points


def regrets(gradients, points):
    """Return sum <g, w - u> for the worst u of each norm, -G's direction."""
    return (gradients * points).sum() + NORMS * np.linalg.norm(gradients.sum(axis=0))


def price(gradients, points):
    """Return what gradients longer than all before add to the bound, for each norm."""
    lengths = np.linalg.norm(gradients, axis=1)
    before = np.maximum.accumulate(np.append(0.0, lengths))[:-1]
    longer = np.where(before > 0.0, np.maximum(lengths - before, 0.0), 0.0)
    return longer @ np.linalg.norm(points, axis=1) + longer.sum() * NORMS


def bounds(n, L, wealth):
    return np.array([coin_betting_bound(n, norm, L, wealth) for norm in NORMS])


@pytest.mark.slow
@settings(max_examples=200 if COMPILED else 20)
@given(
    st.sampled_from(KINDS), st.sampled_from(LENGTHS), st.integers(1, 80 if COMPILED else 10),
    st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e3]), st.sampled_from([0.1, 1.0, 10.0]),
)  # fmt: skip
def test_the_bound_holds_against_every_norm_at_once(kind, lengths, n, seed, scale, wealth):
    answer, L = make_game(kind, lengths, n, seed)
    for lipschitz in (scale * L, None):
        learner = okl.CoinBetting(lipschitz, wealth=wealth)
        gradients, points = play(learner, lambda t, w: scale * answer(t, w), n)
        sizes = np.linalg.norm(gradients, axis=1)
        if not sizes.any():
            continue
        bound = bounds(np.count_nonzero(sizes), lipschitz or sizes.max(), wealth)
        bound += 0.0 if lipschitz else price(gradients, points)
        rounding = 1e-12 * (np.abs(gradients * points).sum() + bound)
        assert (regrets(gradients, points) <= bound + rounding).all()


def test_half_of_the_bound_does_not_hold_for_any_norm():
    """The control: coins on a line, of which the share that is worst for a norm are heads."""
    n, shares = 100 if COMPILED else 30, []
    for heads in range(n // 2, n + 1):
        signs = 1.0 - 2.0 * np.diff(np.arange(n + 1) * heads // n)  # spread evenly
        game = play(okl.CoinBetting(), lambda t, w, signs=signs: signs[t] * np.eye(D)[0], n)
        shares.append(regrets(*game) / bounds(n, 1.0, 1.0))
    worst = np.max(shares, axis=0)
    assert (worst > 0.5).all() and (worst <= 1.0).all()


def test_a_gradient_that_is_longer_late_has_its_price():
    """The control: after gains that make w large one of length 4, with and without the price."""
    game = play(okl.CoinBetting(), lambda t, w: (1.0 if t < 10 else -4.0) * np.eye(D)[0], 11)
    found, bound = regrets(*game), bounds(11, 4.0, 1.0)
    assert 0.5 < np.max(found / (bound + price(*game))) <= 1.0 < 10.0 < np.max(found / bound)


@pytest.mark.parametrize("power", [-40, 1, 40])
def test_there_is_no_scale_to_know(power):
    """Points stay the same, to the bit, whatever the unit of the gradients."""
    answer, _ = make_game("random", "jumping", 40, 1)
    scaled = play(okl.CoinBetting(), lambda t, w: 2.0**power * answer(t, w), 40)[1]
    assert np.array_equal(scaled, play(okl.CoinBetting(), answer, 40)[1]) and scaled.any()


def test_a_gradient_longer_than_lipschitz_is_an_error():
    learner = okl.CoinBetting(1.0).reset(2).update([0.6, 0.8])
    troubled(r"round 2: the gradient is longer.*lipschitz out", learner.update, [0.6, 0.9])
    with pytest.raises(FloatingPointError):
        learner.update([0.1, 0.0])
    assert okl.CoinBetting().reset(2).update([0.6, 0.8]).update([0.6, 0.9]).rounds == 2


@pytest.mark.parametrize("loss", ["hinge", "absolute", "logistic", "huber", "quantile(0.9)"])
def test_with_features_of_length_1_the_bound_is_on_the_losses(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2))
    y, features = np.sign(X[:, 0] * X[:, 1]), okl.FourierFeatures(50, sigma=0.5)
    runs = [okl.run(okl.WithFeatures(features, okl.CoinBetting(L, loss=loss)), X, y)
            for L in (1.0, None)]  # fmt: skip
    Z = features.transform(X)
    for lam in (1e-2, 1.0, 100.0):
        u = np.linalg.solve(Z.T @ Z + lam * np.eye(100), Z.T @ y)
        regret = runs[0].losses.sum() - okl.losses.get(loss).value(Z @ u, y).sum()
        assert regret <= coin_betting_bound(500, np.linalg.norm(u))
    same = np.allclose(runs[0].predictions, runs[1].predictions, rtol=1e-9)
    # of these two the gradients are not all as long as the first
    assert same == (loss not in ("logistic", "quantile(0.9)"))
