"""One-vs-rest around every learner, and online-to-batch conversion."""

import copy
import pickle

import numba
import numpy as np
import pytest

import oklnumba as okl
from tests.battery import every_learner, make

CLASSES = ["red", "green", "blue"]


def stream(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.array(CLASSES)[np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])]


@every_learner
def test_one_vs_rest_around_every_learner(cls, tmp_path):
    X, y = stream()
    learner = okl.OneVsRest(make(cls), CLASSES)
    assert (learner.rounds, learner.size, learner.predict_one(X[0])) == (0, 0, "red")
    run = learner.run(X, y)
    # The definition: a binary learner a class, the largest forecast wins.
    expected = np.stack(
        [okl.run(make(cls), X, np.where(y == c, 1.0, -1.0)).predictions for c in CLASSES], axis=1
    )
    np.testing.assert_array_equal(run.scores, expected)
    np.testing.assert_array_equal(run.predictions, np.array(CLASSES)[expected.argmax(axis=1)])
    np.testing.assert_array_equal(run.mistakes, run.predictions != y)
    assert run.mistake_rate == run.mistakes.mean()
    assert learner.rounds == 120 and learner.size == run.sizes[-1]
    # one at a time, and forecasts that change nothing
    other = okl.OneVsRest(make(cls), CLASSES)
    for t in range(40):
        assert other.predict_one(X[t]) == run.predictions[t]
        other.learn_one(X[t], y[t])
    np.testing.assert_allclose(other.run(X[40:], y[40:]).scores, run.scores[40:], rtol=1e-9,
                               atol=1e-12)  # fmt: skip
    # save, load and copies go on
    learner.save(tmp_path / "many.npz")
    again = [okl.load(tmp_path / "many.npz"), pickle.loads(pickle.dumps(learner))]
    again.append(copy.deepcopy(learner))
    ahead = learner.run(X[:30], y[:30]).scores
    for one in again:
        assert one.rounds == 120
        np.testing.assert_array_equal(one.run(X[:30], y[:30]).scores, ahead)
        np.testing.assert_array_equal(one.predict(X), learner.predict(X))
    assert learner.reset().rounds == 0


def test_two_classes_are_the_binary_learner():
    X, _ = stream()
    y = np.where(X[:, 0] > 0, 1, -1)
    run = okl.OneVsRest(okl.KernelOGD(okl.Gaussian()), [-1, 1]).run(X, y)
    binary = okl.run(okl.KernelOGD(okl.Gaussian()), X, y)
    np.testing.assert_allclose(run.scores[:, 1], binary.predictions, rtol=1e-12)
    np.testing.assert_allclose(run.scores[:, 0], -binary.predictions, rtol=1e-12)
    assert (run.predictions[1:] == np.sign(binary.predictions[1:])).all()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="far too long without the JIT")
def test_it_learns_more_classes_than_two():
    X, y = stream(3000)
    for learner in (okl.POMDR(okl.Gaussian(0.7)), okl.PKAWV(okl.TaylorFeatures(4, sigma=1.0))):
        run = okl.OneVsRest(learner, CLASSES).run(X, y)
        constant = min((y != c).mean() for c in CLASSES)
        assert run.mistakes[1000:].mean() < constant / 3


@pytest.mark.parametrize("rounds", [0, 20])
def test_bad_labels_and_inputs_are_refused_and_nothing_changes(rounds):
    X, y = stream()
    learner, twin = (okl.OneVsRest(okl.FOGD(), CLASSES) for _ in range(2))
    for one in (learner, twin):
        if rounds:
            one.partial_fit(X[:rounds], y[:rounds])
    wrong = y.copy()
    wrong[7] = "cyan"
    for labels in (wrong, y[:-1], None, [None] * 120, np.ones(120), y[:, None]):
        with pytest.raises(ValueError, match=r"\by\b"):
            learner.partial_fit(X, labels)
    with pytest.raises(ValueError, match="cyan at row 7.*classes"):
        learner.run(X, wrong)
    for inputs in (np.full_like(X, np.nan), X[0], "text"):
        with pytest.raises(ValueError, match=r"\bX\b"):
            learner.partial_fit(inputs, y)
    assert learner.rounds == rounds
    np.testing.assert_array_equal(learner.run(X, y).scores, twin.run(X, y).scores)


@pytest.mark.parametrize("classes", [[], ["one"], ["a", "a"], None, [[1, 2], [3, 4]], 3])
def test_classes_must_be_different_labels(classes):
    with pytest.raises(ValueError, match="classes"):
        okl.OneVsRest(okl.FOGD(), classes).partial_fit([[0.0]], [1])
    with pytest.raises(ValueError, match="learner"):
        okl.OneVsRest("FOGD", CLASSES).partial_fit([[0.0]], ["red"])


# ---- online to batch ----


def binary(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    noise = np.random.default_rng(seed + 1).random(n) < 0.1
    return X, np.where(noise, -1, 1) * np.sign(X[:, 0] * X[:, 1])


@every_learner
@pytest.mark.parametrize("draws", [1, 7])
def test_the_function_of_a_round_is_that_of_the_learner_then(cls, draws):
    X, y = binary(80)
    batch = okl.OnlineToBatch(make(cls), draws=draws, seed=3).fit(X, y)
    assert len(batch.rounds_) == draws and 1 <= batch.rounds_[0] <= batch.rounds_[-1] <= 80
    expected = 0.0
    for r in batch.rounds_:
        learner = make(cls)
        if r > 1:
            learner.partial_fit(X[: r - 1], y[: r - 1])
        expected = expected + learner.predict(X) / draws
    np.testing.assert_allclose(batch.predict(X), expected, rtol=1e-9, atol=1e-12)


def test_the_rounds_drawn_are_uniform():
    X, y = binary(10)
    batch = okl.OnlineToBatch(okl.FOGD(n_frequencies=5), draws=5000, seed=1).fit(X, y)
    counts = np.bincount(batch.rounds_, minlength=11)[1:]
    assert counts.min() > 400 and counts.max() < 600


KERNEL, POINTS = okl.Gaussian(0.6), np.random.default_rng(5).uniform(-1, 1, (12, 2))
SIGNS, FLIP = np.sign(POINTS[:, 0] * POINTS[:, 1]), 0.1
BEST = np.linalg.solve(KERNEL(POINTS), SIGNS)  # the function with the value SIGNS on POINTS
U = float(np.sqrt(BEST @ SIGNS))


def excess_risk(values):
    """Return E (1 - y f(x))_+ - 2 FLIP, x one of POINTS, its sign flipped with probability FLIP.

    No function has a lower risk than 2 FLIP: where f = s it is 2 FLIP at that point, and elsewhere
    more. So BEST, of norm U, is a best one.
    """
    right, wrong = (np.maximum(1 - s * SIGNS * values, 0) for s in (1.0, -1.0))
    return float(((1 - FLIP) * right + FLIP * wrong).mean() - 2 * FLIP)


def draw(T, seed):
    rng = np.random.default_rng([seed, T])
    chosen = rng.integers(0, len(POINTS), T)
    return POINTS[chosen], np.where(rng.random(T) < FLIP, -1, 1) * SIGNS[chosen]


T = 60
BOUNDED = {  # with a regret bound against |f| <= U
    "POMD": (
        okl.POMD(KERNEL, radius=U, horizon=T),
        lambda X, y: okl.theory.pomdr_bound(KERNEL, X, y, U),
    ),
    "POMDR": (
        okl.POMDR(
            KERNEL, radius=U, horizon=T, zeta=1.0, ald_scale=1.0, rate_scale=1.0, switch_size=1,
            budget=20,
        ),
        lambda X, y: okl.theory.pomdr_bound(KERNEL, X, y, U, budget=20),
    ),
    "KernelOGD": (
        okl.KernelOGD(KERNEL, eta=U / T**0.5, radius=U),
        lambda X, y: U * T**0.5,
    ),
}  # fmt: skip


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="far too long without the JIT")
@pytest.mark.parametrize("name", BOUNDED)
def test_the_mean_excess_risk_is_the_mean_regret_and_below_its_bound(name):
    learner, regret_bound = BOUNDED[name]
    drawn, averaged, last, regrets, bounds = [], [], [], [], []
    for seed in range(800):
        X, y = draw(T, seed)
        batch = okl.OnlineToBatch(learner, seed=seed).fit(X, y)
        drawn.append(excess_risk(batch.predict(POINTS)))
        bounds.append(batch.risk_bound(regret_bound(X, y)))
        played = okl.run(copy.deepcopy(learner), X, y)
        fixed = np.maximum(1 - y * (KERNEL(X, POINTS) @ BEST), 0.0).sum()
        regrets.append((played.losses.sum() - fixed) / T)
        last.append(excess_risk(copy.deepcopy(learner).partial_fit(X, y).predict(POINTS)))
        if seed < 100:
            batch = okl.OnlineToBatch(learner, draws=10, seed=seed).fit(X, y)
            averaged.append(excess_risk(batch.predict(POINTS)))

    def deviations(values):
        return (np.mean(values) - np.mean(regrets)) * len(values) ** 0.5 / np.std(values)

    assert min(drawn) > -1e-9
    assert 0.05 < np.mean(drawn) <= np.mean(bounds)
    assert abs(deviations(drawn)) < 4
    assert np.mean(averaged) < np.mean(regrets)  # Jensen
    assert deviations(last) < -8  # a control: another round than the one drawn would be seen


def test_bad_arguments():
    X, y = binary(20)
    for bad in (0, 1.5, "text", None):
        with pytest.raises(ValueError, match="draws"):
            okl.OnlineToBatch(okl.FOGD(), draws=bad).fit(X, y)
    with pytest.raises(ValueError, match="seed"):
        okl.OnlineToBatch(okl.FOGD(), seed=-1).fit(X, y)
    with pytest.raises(ValueError, match="learner"):
        okl.OnlineToBatch(3).fit(X, y)
    with pytest.raises(ValueError, match="fit"):
        okl.OnlineToBatch(okl.FOGD()).predict(X)
    with pytest.raises(ValueError, match=r"y has 0"):
        okl.OnlineToBatch(okl.FOGD()).fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="fit"):
        okl.OnlineToBatch(okl.FOGD()).risk_bound(1.0)
    for bad in (-1.0, np.nan, np.inf, "text", None):
        with pytest.raises(ValueError, match="regret_bound"):
            okl.OnlineToBatch(okl.FOGD()).fit(X, y).risk_bound(bad)
