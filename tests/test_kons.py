"""KONS, Sketched-KONS and Pros-N-KONS against their definitions; refusals of all their kind."""

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.params import clone
from tests import streams
from tests.checks import COMPILED, one_by_one, refused
from tests.reference import naive
from tests.streams import SETTINGS, SPACES, assert_happened, draws, explicit, newton_stream, step

FLAT = ("hinge", "squared_hinge", "epsilon_insensitive")


def flat_rounds(steps, loss):
    """Rounds without a gradient because the loss is flat there, not by a coincidence."""
    return (steps.slopes == 0) & (loss in FLAT)


# ---- KONS is the explicit online Newton step ----


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


@pytest.mark.parametrize(("schedule", *streams.NAMES), streams.SCHEDULED)
@pytest.mark.parametrize(("space", "alpha"), [("linear", 0.1), ("polynomial", 1e-3)])
def test_kons_equals_the_explicit_newton_step(space, schedule, loss, C, eta, must_happen, alpha):
    kernel, features = SPACES[space]
    X, y = newton_stream(loss, C)
    params = {"loss": loss, "C": C, "alpha": alpha, "eta": eta, "schedule": schedule}
    learner = okl.KONS(kernel, **params)
    run = okl.run(learner, X, y)
    single = one_by_one(okl.KONS(kernel, **params), X, y)
    np.testing.assert_allclose(single, run.predictions, rtol=0, atol=1e-9)
    eta = eta if schedule == "constant" else streams.sequence(loss, C, eta, len(X))
    steps = explicit(features, X, y, loss, C, alpha, eta)
    assert_equals(learner, run, steps, loss)
    assert_happened(steps, must_happen)
    if schedule == "constant":
        kept = ~flat_rounds(steps, loss) | steps.projected
        np.testing.assert_array_equal(run.sizes, np.cumsum(kept))


def test_labels_beyond_C_are_for_losses_whose_slope_does_not_grow():
    X, y = newton_stream()
    far_y = y * np.linspace(5.0, 10.0, len(y))
    for loss in ("absolute", "epsilon_insensitive"):
        far = okl.KONS(okl.Gaussian(1.0), loss=loss, schedule="sqrt").partial_fit(X, far_y)
        assert far.rounds == len(X)
    with pytest.raises(ValueError, match=r"y has .* outside \[-C, C\]"):
        okl.KONS(okl.Gaussian(1.0), schedule="sqrt").partial_fit(X, far_y)


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
    eta = streams.sequence(loss, C, None, n) if schedule == "sqrt" else step(loss, C, None)
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


# Each setting with each sampling, and each sampling with all of two spaces and two levels.
@pytest.mark.parametrize(
    ("loss", "C", "eta", "must_happen", "sampling", "space", "gamma", "beta", "alpha"),
    [
        (*setting, sampling, list(SPACES)[(i + j) % 2],
         *[(0.3, 1.0, 0.1), (0.01, 0.5, 1e-2)][(i // 2 + j) % 2])
        for i, setting in enumerate(SETTINGS)
        for j, sampling in enumerate(["independent", "shared", "weighted"])
    ],
)  # fmt: skip
def test_sketched_kons_equals_the_explicit_form_with_its_coins(
    space, loss, C, eta, must_happen, sampling, gamma, beta, alpha
):
    kernel, features = SPACES[space]
    X, y = newton_stream(loss, C)
    n = len(X)
    params = {"loss": loss, "C": C, "alpha": alpha, "eta": eta}
    params |= {"gamma": gamma, "beta": beta, "eps": 0.4, "sampling": sampling, "seed": 5}
    learner = okl.SketchedKONS(kernel, **params)
    run = okl.run(learner, X, y)
    single = one_by_one(okl.SketchedKONS(kernel, **params), X, y)
    np.testing.assert_allclose(single, run.predictions, rtol=0, atol=1e-9)
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


KERNELS = {
    **{name: SPACES[name][0] for name in SPACES},
    "Laplacian, norm 1": okl.Laplacian(0.7, norm=1),
    "Laplacian": okl.Laplacian(0.7),
    "Matern": okl.Matern(1.5, sigma=0.9),
}
# Every setting on one kernel, every kernel in one setting: rows of a kernel know nothing of losses.
DENSE = [("Matern", *setting[:3]) for setting in SETTINGS]
DENSE += [(name, *SETTINGS[1][:3]) for name in KERNELS if name != "Matern"]


@pytest.mark.parametrize(("name", "loss", "C", "eta"), DENSE)
@pytest.mark.parametrize("restart", [False, True])
def test_pros_n_kons_equals_the_dense_version(name, loss, C, eta, restart):
    kernel = KERNELS[name]
    X, y = newton_stream(loss, C, n=150)
    kept = okl.KORS(kernel, alpha=0.1, beta=0.7, eps=0.4, seed=2).partial_fit(X).indices_
    learner, other = (
        okl.ProsNKONS(
            kernel, loss=loss, C=C, alpha=0.1, eta=eta, mu=0.1, beta=0.7, eps=0.4,
            restart=restart, seed=2,
        )
        for _ in range(2)
    )  # fmt: skip
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes, np.searchsorted(kept, np.arange(len(X)), side="right"))
    assert learner.restarts == (len(kept) - 1 if restart else 0) and len(kept) > 10
    k, derivative = naive.kernel_function(kernel), naive.LOSS_DERIVATIVES[loss]
    eta = step(loss, C, eta)
    expected = naive.pros_n_kons(k, X, y, kept, derivative, C, 0.1, eta, restart=restart)
    assert (np.abs(expected) == C).sum() > 2  # projections
    np.testing.assert_allclose(run.predictions, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one_by_one(other, X, y), expected, rtol=0, atol=1e-9)


LIFTED = okl.WithFeatures(okl.TaylorFeatures(), okl.OnlineNewtonStep(C=0.5))
CURVED = [
    okl.KONS(okl.Gaussian(0.7), C=0.5),
    okl.SketchedKONS(okl.Gaussian(0.7), C=0.5, gamma=0.3),
    *(okl.ProsNKONS(okl.Gaussian(0.7), C=0.5, restart=restart) for restart in (True, False)),
    *(okl.OnlineNewtonStep(C=0.5), okl.SketchedONS(C=0.5), LIFTED, okl.Experts([LIFTED])),
    # The Huber loss has no curvature where it is straight: regrets were 33 times the bound.
    okl.KONS(okl.Linear(), loss="huber", C=0.5),
    okl.FrequentKONS(okl.Linear(), loss="huber", C=0.5),
    okl.ProsNKONS(okl.Linear(), loss="huber", C=0.5),
    okl.OnlineNewtonStep(loss="huber", C=0.5),
]


@pytest.mark.parametrize("learner", CURVED, ids=repr)
def test_labels_beyond_C_are_refused_and_change_nothing(learner):
    X, y = newton_stream("squared", 0.5)
    learner, twin = clone(learner), clone(learner)
    for one in (learner, twin):
        one.partial_fit(X[:100], y[:100])
    bad = y[100:].copy()
    bad[17] = 0.6
    message = r"y has 0.6 at row 17, outside \[-C, C\] with C = 0.5.*raise C or scale"
    refused(message, learner.partial_fit, X[100:], bad)
    refused(r"y has -2.0 at row 0, outside \[-C, C\]", learner.learn_one, X[100], -2.0)
    assert learner.rounds == 100
    run, expected = (okl.run(other, X[100:], y[100:]) for other in (learner, twin))
    np.testing.assert_array_equal(run.predictions, expected.predictions)
