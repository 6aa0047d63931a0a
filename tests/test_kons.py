"""KONS and Sketched-KONS against explicit features; causality and refusals of all their kind."""

import numpy as np
import pytest

import oklnumba as okl
from tests import naive
from tests.battery import assert_refused
from tests.compiled import COMPILED
from tests.curved import (
    SPACES,
    assert_happened,
    draws,
    every_sequence,
    every_setting,
    every_space,
    explicit,
    one_by_one,
    sequence,
    step,
    stream,
)

FLAT = ("hinge", "squared_hinge", "epsilon_insensitive")


def flat_rounds(steps, loss):
    """Rounds without a gradient because the loss is flat there, not by a coincidence."""
    return (steps.slopes == 0) & (loss in FLAT)


def kept_rounds(steps, loss):
    return ~flat_rounds(steps, loss) | steps.projected


# ---- KONS is the explicit online Newton step ----


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
@every_setting
@every_space
def test_kons_equals_the_explicit_newton_step(space, loss, C, eta, must_happen, alpha):
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    learner = okl.KONS(kernel, loss=loss, C=C, alpha=alpha, eta=eta)
    run = okl.run(learner, X, y)
    steps = explicit(features, X, y, loss, C, alpha, eta)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.R_G, steps.R_G, rtol=1e-9)
    np.testing.assert_array_equal(run.sizes, np.cumsum(kept_rounds(steps, loss)))
    assert_happened(steps, must_happen)


@pytest.mark.parametrize("alpha", [1e-4, 1e-6, 1e-8])
@every_setting
@every_space
def test_kons_with_small_alpha(space, loss, C, eta, must_happen, alpha):
    """Rounding the kernel matrix, by up to n eps max k, costs that over alpha.

    On three streams down to alpha = 1e-8 the errors were 0.2 to 1.4 times that.
    """
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    learner = okl.KONS(kernel, loss=loss, C=C, alpha=alpha, eta=eta)
    run = okl.run(learner, X, y)
    steps = explicit(features, X, y, loss, C, alpha, eta)
    rounding = len(X) * np.finfo(float).eps * kernel.diag(X).max() / alpha
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=3 * rounding)
    np.testing.assert_allclose(learner.R_G, steps.R_G, rtol=rounding)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_kons_in_an_infinite_space(loss):
    kernel = okl.Laplacian(0.7)
    X, y = stream(loss, n=150)
    run = okl.run(okl.KONS(kernel, loss=loss, alpha=0.1), X, y)
    F = naive.gram_features(naive.laplacian(X, X, 0.7))
    derivative = naive.LOSS_DERIVATIVES[loss]
    steps = naive.newton_steps(F, y, derivative, 1.0, 0.1, step(loss, 1.0, None))
    assert steps.projected.sum() > 2
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-2, 1e-3, 1e-5])
def test_small_alpha_in_an_infinite_space_costs_no_more_than_rounding_the_kernel(alpha):
    X, y = stream(n=120, d=3)
    run = okl.run(okl.KONS(okl.Matern(2.5, sigma=1.0), alpha=alpha), X, y)
    X = X.astype(np.longdouble)
    F = naive.longdouble_cholesky(naive.matern(X, X, 2.5, 1.0))
    steps = naive.newton_steps(F, y, naive.LOSS_DERIVATIVES["squared"], 1.0, alpha, 1 / 8)
    assert_happened(steps, (True, True, True))
    rounding = len(X) * np.finfo(float).eps / alpha
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=rounding)


@every_setting
def test_kons_in_any_cut_is_kons_round_by_round(loss, C, eta, must_happen):
    n = 700 if COMPILED else 120  # more than a block of 512 rounds
    X, y = stream(loss, C, n)
    whole = okl.KONS(okl.Gaussian(0.7), loss=loss, C=C, alpha=0.01, eta=eta)
    run = okl.run(whole, X, y)
    single = okl.KONS(okl.Gaussian(0.7), loss=loss, C=C, alpha=0.01, eta=eta)
    np.testing.assert_allclose(one_by_one(single, X, y), run.predictions, rtol=0, atol=1e-9)
    parts = okl.KONS(okl.Gaussian(0.7), loss=loss, C=C, alpha=0.01, eta=eta)
    forecasts = []
    for rows in np.split(np.arange(n), [1, 3, 50, 51, *(c for c in (511, 513, 600, 690) if c < n)]):
        forecasts.append(okl.run(parts, X[rows], y[rows]).predictions)
    np.testing.assert_allclose(np.concatenate(forecasts), run.predictions, rtol=0, atol=1e-9)
    probe = stream(seed=9)[0][:20]
    for learner in (single, parts):
        np.testing.assert_allclose(learner.predict(probe), whole.predict(probe), rtol=0, atol=1e-9)
        np.testing.assert_allclose(learner.R_G, whole.R_G, rtol=1e-9)
        assert learner.size == whole.size


# ---- step sequences ----


def assert_equals(learner, run, steps, loss):
    """Assert that a learner has played the explicit Newton steps."""
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.R_G, steps.R_G, rtol=1e-9)
    # After a projection at the same point, rounding decides whether w is projected again.
    flat, edge = flat_rounds(steps, loss), np.abs(steps.forecasts)
    sure = ~flat | (np.abs(steps.over) > 1e-12)
    possible = ~flat | (edge > edge.max() * (1 - 1e-12))
    assert (np.cumsum(sure) <= run.sizes).all() and (run.sizes <= np.cumsum(possible)).all()
    weights, expected = learner.A_weights, steps.weights
    assert weights.shape == (learner.size,)
    np.testing.assert_allclose(
        weights[weights > 1e-20], expected[expected > 1e-20], rtol=1e-7, atol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
@every_sequence
@every_space
def test_kons_with_a_step_sequence(space, loss, C, eta, must_happen, alpha):
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    learner = okl.KONS(kernel, loss=loss, C=C, alpha=alpha, eta=eta, schedule="sqrt")
    run = okl.run(learner, X, y)
    steps = explicit(features, X, y, loss, C, alpha, sequence(loss, C, eta, len(X)))
    assert_equals(learner, run, steps, loss)
    assert_happened(steps, must_happen)


@pytest.mark.parametrize("make", [okl.KONS, okl.SketchedKONS])
@every_sequence
def test_a_step_sequence_does_not_depend_on_the_cut(make, loss, C, eta, must_happen, tmp_path):
    n = 700 if COMPILED else 120
    X, y = stream(loss, C, n)
    params = {"loss": loss, "C": C, "alpha": 0.01, "eta": eta, "schedule": "sqrt"}
    expected = okl.run(make(okl.Gaussian(0.7), **params), X, y).predictions
    single, parts = make(okl.Gaussian(0.7), **params), make(okl.Gaussian(0.7), **params)
    np.testing.assert_allclose(one_by_one(single, X, y), expected, rtol=0, atol=1e-9)
    forecasts = []
    for rows in np.split(np.arange(n), [1, 50, *(c for c in (383, 385, 690) if c < n)]):
        forecasts.append(okl.run(parts, X[rows], y[rows]).predictions)
        parts.save(tmp_path / "parts.npz")
        parts = okl.load(tmp_path / "parts.npz")
    np.testing.assert_allclose(np.concatenate(forecasts), expected, rtol=0, atol=1e-9)


def test_labels_beyond_C_are_for_losses_whose_slope_does_not_grow():
    X, y = stream()
    for loss in ("absolute", "epsilon_insensitive"):
        far = okl.KONS(okl.Gaussian(1.0), loss=loss, schedule="sqrt").partial_fit(X, 10 * y)
        assert far.rounds == len(X)
    with pytest.raises(ValueError, match=r"y has .* outside \[-C, C\]"):
        okl.KONS(okl.Gaussian(1.0), schedule="sqrt").partial_fit(X, 10 * y)


# ---- the stop ----


@pytest.mark.parametrize("make", [okl.KONS, okl.SketchedKONS])
@pytest.mark.parametrize(
    ("loss", "C", "schedule"),
    [("squared", 0.5, "constant")] + [("logistic", 2.0, "constant"), ("hinge", 0.5, "sqrt")],
)
def test_after_a_small_newton_decrement_nothing_is_learned(make, loss, C, schedule, tmp_path):
    n = 700 if COMPILED else 120
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (6, 2))[rng.integers(0, 6, n)]
    y = C * rng.uniform(-1, 1, n) if loss == "squared" else rng.choice([-1.0, 1.0], n)
    params = {"loss": loss, "C": C, "alpha": 0.1, "schedule": schedule}
    params |= {} if make is okl.KONS else {"gamma": 0.3, "beta": 0.1, "seed": 5}
    eta = sequence(loss, C, None, n) if schedule == "sqrt" else step(loss, C, None)
    coins = draws([5, 0], n), draws([5, 1], n)

    def expected(stop):
        coin = {} if make is okl.KONS else {"coin": naive.SketchCoin(2, 0.1, 0.1, 0.5, 0.3, *coins)}
        return explicit(lambda Z: Z, X, y, loss, C, 0.1, eta, stop=stop, **coin)

    decrements = expected(0.0).decrements
    last = int(np.argmin(decrements[: n // 2]))  # to learn from
    stop = decrements[last] * (1 + 1e-6)
    assert last > 5 and stop > 0
    steps = expected(stop)
    np.testing.assert_array_equal(steps.decrements[last + 1 :], 0.0)
    learner, single, parts = (make(okl.Linear(), stop=stop, **params) for _ in range(3))
    run = okl.run(learner, X, y)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.R_G, steps.R_G, rtol=1e-9)
    assert (run.sizes[last:] == last + 1).all() and learner.rounds == n and learner.stopped
    np.testing.assert_allclose(one_by_one(single, X, y), run.predictions, rtol=0, atol=1e-9)
    for rows in np.split(np.arange(n), [last, last + 1, last + 7]):
        assert parts.stopped == (rows[0] > last)
        parts.partial_fit(X[rows], y[rows])
        parts.save(tmp_path / "parts.npz")
        parts = okl.load(tmp_path / "parts.npz")
    for other in (single, parts):
        np.testing.assert_allclose(other.predict(X), learner.predict(X), rtol=0, atol=1e-9)
        assert other.stopped and other.rounds == n and other.size == learner.size
    assert not learner.reset().stopped


# ---- Sketched-KONS ----


@pytest.mark.parametrize(("gamma", "beta", "alpha"), [(0.3, 1.0, 0.1), (0.01, 0.5, 1e-2)])
@pytest.mark.parametrize("sampling", ["independent", "shared", "weighted"])
@every_setting
@every_space
def test_sketched_kons_equals_the_explicit_form_with_its_coins(
    space, loss, C, eta, must_happen, sampling, gamma, beta, alpha
):
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    n = len(X)
    params = {"loss": loss, "C": C, "alpha": alpha, "eta": eta}
    params |= {"gamma": gamma, "beta": beta, "eps": 0.4, "sampling": sampling, "seed": 5}
    learner = okl.SketchedKONS(kernel, **params)
    run = okl.run(learner, X, y)
    coins = draws([5, 1], n)
    both = (coins, coins) if sampling == "shared" else (draws([5, 0], n), coins)
    D = features(X).shape[1]
    coin = naive.SketchCoin(D, alpha, beta, 0.4, gamma, *both, weighted=sampling == "weighted")
    steps = explicit(features, X, y, loss, C, alpha, eta, coin=coin)
    assert_equals(learner, run, steps, loss)
    # A slope that is only rounding may be exactly zero; then the round adds nothing.
    entered = coins < np.array(coin.p)
    inside = entered & ~flat_rounds(steps, loss)
    sure = inside & (np.abs(steps.slopes) > 1e-12)
    assert sure.sum() <= learner.sketch_size <= inside.sum() < n * 0.9
    if sampling != "weighted":  # which moves w so little that few projections happen
        assert (steps.projected & ~entered).any()  # a round left out keeps its projection
        assert_happened(steps, must_happen)


# ---- all learners that use curvature ----


def curved_learners(kernel=None, **params):
    kernel = okl.Gaussian(0.7) if kernel is None else kernel
    return [
        okl.KONS(kernel, **params),
        okl.SketchedKONS(kernel, **params, gamma=0.3),
        okl.ProsNKONS(kernel, **params),
        okl.ProsNKONS(kernel, **params, restart=False),
    ]


every_learner = pytest.mark.parametrize("which", range(4), ids=["KONS", "Sketched", "Pros", "CON"])


@pytest.mark.parametrize("alpha", [1.0, 1e-6])
@every_learner
def test_points_at_zero_and_repeated_points(which, alpha):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6, 2))[rng.integers(0, 6, 300)]
    X[::7] = 0.0
    y = rng.choice([-1.0, 1.0], 300)
    learner = curved_learners(okl.Linear(), alpha=alpha)[which]
    run = okl.run(learner, X, y)
    assert np.abs(run.predictions).max() <= 1.0
    np.testing.assert_array_equal(run.predictions[::7], 0.0)
    zeros = curved_learners(okl.Linear(), alpha=alpha)[which]
    np.testing.assert_array_equal(okl.run(zeros, np.zeros((300, 2)), y).predictions, 0.0)
    assert zeros.predict_one([1.0, 1.0]) == 0.0


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("cls", [okl.KONS, okl.SketchedKONS, okl.ProsNKONS])
def test_a_loss_without_curvature_is_refused(cls, loss):
    X, y = stream("hinge")
    params = {"kernel": okl.Gaussian(1.0), "loss": loss}
    message = f"loss='{loss}' has no curvature.*FOGD"
    assert_refused(cls, params, message, lambda one: one.partial_fit(X, y))
    if cls is not okl.ProsNKONS:
        assert cls(**params, schedule="sqrt").partial_fit(X, y).rounds == len(X)


@every_learner
def test_labels_beyond_C_are_refused_and_change_nothing(which):
    X, y = stream("squared", 0.5)
    learner, twin = (curved_learners(C=0.5)[which].partial_fit(X[:100], y[:100]) for _ in "ab")
    bad = y[100:].copy()
    bad[17] = 0.6
    message = r"y has 0.6 at row 17, outside \[-C, C\] with C = 0.5.*raise C or scale"
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(X[100:], bad)
    with pytest.raises(ValueError, match=r"y has -2.0 at row 0, outside \[-C, C\]"):
        learner.learn_one(X[100], -2.0)
    assert learner.rounds == 100
    run, expected = (okl.run(other, X[100:], y[100:]) for other in (learner, twin))
    np.testing.assert_array_equal(run.predictions, expected.predictions)
