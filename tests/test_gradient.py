"""First-order learners against the textbook: the same coins, forecasts, supports and norms."""

import copy
import math

import numba
import numpy as np
import pytest

import oklnumba as okl
from oklnumba import losses
from tests import naive, naive_expansions

COMPILED = not numba.config.DISABLE_JIT
N = 300 if COMPILED else 80
long_run = pytest.mark.skipif(not COMPILED, reason="far too long without the JIT")
KERNEL = okl.Gaussian(0.8)
LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive"]


def stream(n=N, classes=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, np.sign(y) if classes else y


def data(loss="hinge"):
    """Return inputs, labels that suit a loss, their Gram matrix, and the loss's derivative."""
    X, y = stream(classes=losses.get(loss).classes)
    return X, y, naive.gaussian(X, X, 0.8), losses.get(loss).derivative


def assert_close(found, expected):
    """To 1e-9 of the largest value (forecasts pass through zero)."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def assert_supports(run, learner, X, supports):
    """Sizes at every round, and the points themselves in the end, in any order."""
    np.testing.assert_array_equal(run.sizes, [len(S) for S in supports])
    found, expected = sorted(map(tuple, learner.atoms)), sorted(map(tuple, X[supports[-1]]))
    assert found == expected


# ---- forecasts, supports and norms are those of the definition ----


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "params",
    [{}, {"lam": 0.3}, {"budget": 25, "lam": 0.1}, {"radius": 1.5}, {"budget": 25, "radius": 1.0}],
    ids=str,
)
def test_kernel_ogd_equals_the_textbook(loss, params):
    X, y, K, slope = data(loss)
    learner = okl.KernelOGD(KERNEL, loss, eta=0.4, **params)
    run = okl.run(learner, X, y)
    forecasts, supports, norms = naive_expansions.kernel_ogd(K, y, slope, 0.4, **params)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    assert_close(learner.norm, norms[-1])
    if "radius" in params:
        assert_close(np.sqrt(learner._reals[1]), norms[-1])  # the norm that the rounds maintain
        assert (norms <= params["radius"] * (1 + 1e-12)).all()
        assert (norms >= params["radius"] * (1 - 1e-12)).any()


def test_kernel_ogd_maintains_its_norm_at_every_round():
    X, y, K, slope = data()
    params = {"lam": 0.05, "budget": 20, "radius": 1.3}
    learner = okl.KernelOGD(KERNEL, eta=0.4, **params)
    _, _, norms = naive_expansions.kernel_ogd(K, y, slope, 0.4, **params)
    found = []
    for x, label in zip(X, y, strict=True):
        learner.learn_one(x, label)
        found.append(np.sqrt(learner._reals[1]))
    assert_close(found, norms)


def test_the_common_factor_of_kernel_ogd_never_underflows():
    X, y, K, slope = data()
    found = okl.run(okl.KernelOGD(KERNEL, eta=0.4, lam=2.4), X, y).predictions  # 0.04 a round
    assert_close(found, naive_expansions.kernel_ogd(K, y, slope, 0.4, 2.4)[0])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("params", [{}, {"gamma": 1.2}], ids=str)
def test_bogd_equals_the_textbook(loss, weighted, params):
    X, y, K, slope = data(loss)
    learner = okl.BOGD(
        KERNEL, loss, eta=0.2, lam=0.02, budget=40, seed=3, weighted=weighted, **params
    )
    run = okl.run(learner, X, y)
    coins = np.random.default_rng(3).random(len(y))
    forecasts, supports = naive_expansions.bogd(
        K, y, slope, 0.2, 0.02, 40, coins, weighted=weighted, **params
    )
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)


@long_run
@pytest.mark.parametrize("weighted", [False, True])
def test_bogd_keeps_the_function_in_expectation(weighted):
    """One removal, averaged over all coins: f - eta l' k(x, .) without any removal."""
    X, y, K, slope = data()
    sizes = np.array([len(S) for S in naive_expansions.kernel_ogd(K, y, slope, 0.3, 0.05)[1]])
    rounds = int(np.flatnonzero(np.diff(sizes[:60]))[-1]) + 2  # the last of them adds an atom
    budget = int(sizes[rounds - 2])
    before = okl.BOGD(KERNEL, eta=0.3, lam=0.05, budget=budget, weighted=weighted)
    before.partial_fit(X[: rounds - 1], y[: rounds - 1])
    assert before.size == budget
    total, count = 0.0, 100 * budget
    for coin in (np.arange(count) + 0.5) / count:
        before._coins.next = coin
        learner = copy.deepcopy(before).learn_one(X[rounds - 1], y[rounds - 1])
        total = total + learner.predict(X) / count
    whole = okl.KernelOGD(KERNEL, eta=0.3, lam=0.05).partial_fit(X[:rounds], y[:rounds])
    np.testing.assert_allclose(total, whole.predict(X), rtol=0, atol=2e-3)


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("threshold", [0.05, 0.3])
@pytest.mark.parametrize("budget", [None, 12])
def test_projectron_equals_the_textbook(aggressive, threshold, budget):
    X, y, K, _ = data()
    learner = okl.Projectron(KERNEL, threshold, budget, aggressive)
    run = okl.run(learner, X, y)
    expected = naive_expansions.projectron(K, y, threshold, budget or np.inf, aggressive)
    assert_close(run.predictions, expected[0])
    assert_supports(run, learner, X, expected[1])
    assert_close(learner.norm, expected[2][-1])
    if aggressive:
        assert len(expected[1][-1]) < np.count_nonzero(y * expected[0] < 1)
    pivots = np.diag(learner._R)[: learner.size]
    sign, log_det = np.linalg.slogdet(KERNEL(learner.atoms))
    assert sign == 1.0 and 2 * np.log(pivots).sum() == pytest.approx(log_det, rel=1e-9)


@pytest.mark.parametrize("aggressive", [False, True])
def test_projectron_with_a_budget_alone(aggressive):
    X, y, K, _ = data()
    learner = okl.Projectron(KERNEL, 0.0, 15, aggressive)
    slack = 0.25 * math.sqrt(16 / math.log(16))
    expected = naive_expansions.projectron(K, y, 0.0, 15, aggressive, slack)
    run = okl.run(learner, X, y)
    assert_close(run.predictions, expected[0])
    assert run.sizes[-1] == 15


@pytest.mark.parametrize("threshold", [0.3, 0.03, 0.003])
def test_krls_equals_least_squares_over_its_projected_data(threshold):
    X, y, K, _ = data("squared")
    learner = okl.KRLS(KERNEL, threshold)
    run = okl.run(learner, X, y)
    forecasts, supports, a = naive_expansions.krls(K, y, threshold)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    np.testing.assert_array_equal(learner.atoms, X[supports[-1]])
    assert_close(learner.coefficients, a)


@pytest.mark.parametrize("loss", LOSSES)
def test_fogd_equals_the_textbook(loss):
    X, y, _, slope = data(loss)
    features = okl.FourierFeatures(60, 0.8, seed=4)
    expected = naive.gradient_forecasts(features.transform(X), y, slope, 0.2)
    run = okl.run(okl.FOGD(loss=loss, eta=0.2, sigma=0.8, n_frequencies=60, seed=4), X, y)
    assert_close(run.predictions, expected)
    other = okl.TaylorFeatures(3, 0.8)  # not made inside the loop
    expected = naive.gradient_forecasts(naive.taylor(X, 3, 0.8), y, slope, 0.2)
    assert_close(okl.run(okl.FOGD(other, loss, eta=0.2), X, y).predictions, expected)


def test_fogd_has_the_same_bits_however_the_stream_is_cut():
    X, y = stream(103)
    whole = okl.run(okl.FOGD(n_frequencies=37), X, y).predictions
    for cut in (1, 2, 3, 7):
        learner = okl.FOGD(n_frequencies=37)
        parts = [okl.run(learner, X[i : i + cut], y[i : i + cut]).predictions
                 for i in range(0, len(X), cut)]  # fmt: skip
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_fogd_with_phases_beyond_the_fast_range():
    X, y = stream(60)
    X = X * 1e7
    features = okl.FourierFeatures(20, 1.0, seed=1)
    F = np.concatenate(
        [f(X @ features._frequencies(3)[0]) for f in (np.sin, np.cos)], axis=1
    ) / np.sqrt(20)
    expected = naive.gradient_forecasts(F, y, naive_expansions.hinge_slope, 0.2)
    found = okl.run(okl.FOGD(features, eta=0.2), X, y).predictions
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rank", [5, 20, 40])
def test_nogd_equals_the_textbook(loss, rank):
    X, y, K, slope = data(loss)
    learner = okl.NOGD(KERNEL, loss, eta=0.1, budget=40, rank=rank)
    run = okl.run(learner, X, y)
    forecasts, sizes, support = naive_expansions.nogd(K, y, slope, 0.1, 40, rank)
    assert_close(run.predictions, forecasts)
    np.testing.assert_array_equal(run.sizes, sizes)
    np.testing.assert_array_equal(learner._atoms[:, :40].T, X[support])
    assert sizes[-1] == 40


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("period", [None, 20])
def test_skegd_equals_the_textbook(loss, period):
    X, y, K, slope = data(loss)
    learner = okl.SkeGD(
        KERNEL, loss, eta=0.1, budget=40, sketch=24, columns=12, blocks=3, rank=8, period=period,
        seed=2,
    )  # fmt: skip
    run = okl.run(learner, X, y)
    forecasts, sizes, support = naive_expansions.skegd(
        K, y, slope, 0.1, 40, 8, learner._sample(), learner._sketch_row, period or np.inf
    )
    assert_close(run.predictions, forecasts)
    np.testing.assert_array_equal(run.sizes, sizes)
    np.testing.assert_array_equal(learner._stored.T, X[support])
    assert sizes[-1] == 40 if period is None else sizes[-1] > 42 or not COMPILED


def test_skegd_may_update_its_sketches_at_every_loss():
    X, y = stream(1500 if COMPILED else 60)  # beyond Python's recursion limit
    y = np.random.default_rng(2).choice([-1.0, 1.0], len(y))
    learner = okl.SkeGD(KERNEL, budget=5, sketch=4, columns=4, blocks=1, rank=2, period=1)
    run = okl.run(learner, X, y)
    assert run.sizes[-1] == np.count_nonzero(run.losses) - 1 > len(y) // 2


def test_the_count_sketch_has_one_entry_in_each_block_of_a_row():
    learner = okl.SkeGD(KERNEL, sketch=30, columns=20, blocks=5, rank=9, seed=1)
    rows = np.array([learner._sketch_row(i) for i in range(200)])
    assert (np.count_nonzero(rows.reshape(200, 5, 6), axis=2) == 1).all()
    np.testing.assert_allclose((rows**2).sum(axis=1), 1.0)
    assert len({tuple(row) for row in rows}) > 190
    sample = learner._sample()
    assert len(set(sample)) == 20 and sample.max() < 400


@pytest.mark.parametrize("horizon", [None, N])
@pytest.mark.parametrize("params", [{}, {"eta": 0.2, "hints": 4, "radius": 2.0}], ids=str)
@pytest.mark.parametrize("sigmas", [[0.8], [0.4, 0.8, 2.0]], ids=str)
def test_bao2ks_equals_the_textbook(sigmas, params, horizon):
    X, y, _, _ = data()
    kernels = [okl.Gaussian(sigma) for sigma in sigmas]
    settings = {"radius": 30.0, "budget": 30, "beta": 1.5} | params
    learner = okl.BAO2KS(kernels, horizon=horizon, seed=5, **settings)
    run = okl.run(learner, X, y)
    coins = np.random.default_rng(5).random((len(y), 3))
    eta, hints = params.get("eta"), params.get("hints")
    expected = naive_expansions.bao2ks(
        [naive.gaussian(X, X, sigma) for sigma in sigmas], y, settings["radius"],
        lambda t: eta or 10 / math.sqrt(horizon or t), 30,
        lambda t: hints or max(round(math.log(horizon or t)), 1), settings["beta"], coins,
    )  # fmt: skip
    assert_close(run.predictions, expected[0])
    np.testing.assert_array_equal(run.sizes, expected[1])
    assert_close(learner.norms, expected[2])
    assert learner.restarts == expected[3]
    for atoms, count, support in zip(learner._atoms, learner._counts, expected[4], strict=True):
        own, others = atoms[:, :count].T, X[list(support)]
        np.testing.assert_array_equal(sorted(own.tolist()), sorted(others.tolist()))
    assert learner.restarts > 0 or not COMPILED
    assert (learner.norms <= settings["radius"] * (1 + 1e-12)).all()


@long_run
def test_bao2ks_with_bandit_feedback_plays_the_better_kernel_more_often():
    X, y = stream(4000)
    kernels = [okl.Gaussian(0.02), okl.Gaussian(0.8)]  # the first learns nothing here
    learner = okl.BAO2KS(kernels, radius=5.0, horizon=4000, budget=2000).partial_fit(X, y)
    assert learner.probabilities[1] > 0.7


# ---- the battery's main promises where its default budgets are never full ----

FULL = {
    "KernelOGD": lambda: okl.KernelOGD(KERNEL, budget=15, radius=1.0, lam=0.01),
    "BOGD": lambda: okl.BOGD(KERNEL, budget=15, gamma=1.5),
    "BOGD++": lambda: okl.BOGD(KERNEL, budget=15, weighted=True, lam=0.1),
    "Projectron": lambda: okl.Projectron(KERNEL, 0.0, budget=15),
    "NOGD": lambda: okl.NOGD(KERNEL, budget=30, rank=10),
    "SkeGD": lambda: okl.SkeGD(KERNEL, budget=30, sketch=16, columns=12, rank=6, period=9),
    "SkeGD, one map": lambda: okl.SkeGD(KERNEL, budget=30, sketch=16, columns=12, rank=6),
    "B(AO)2KS": lambda: okl.BAO2KS(KERNEL, budget=25, beta=1.1),
    "B(AO)2KS, several": lambda: okl.BAO2KS([KERNEL, okl.Gaussian(0.3)], budget=25),
    "POMDR": lambda: okl.POMDR(KERNEL, budget=20),
}
full = pytest.mark.parametrize("name", FULL)


@full
def test_full_budgets_in_bulk_and_by_hand(name):
    X, y = stream()
    run = okl.run(FULL[name](), X, y)
    learner, forecasts = FULL[name](), []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
    np.testing.assert_allclose(forecasts, run.predictions, rtol=1e-9, atol=1e-12)
    assert learner.size == run.sizes[-1]


@full
def test_full_budgets_never_look_ahead(name):
    X, y = stream()
    run = okl.run(FULL[name](), X, y)
    for t in range(5, N, 23):
        other = y.copy()
        other[t:] *= -1
        changed = okl.run(FULL[name](), X, other)
        np.testing.assert_array_equal(changed.predictions[: t + 1], run.predictions[: t + 1])
        np.testing.assert_array_equal(changed.sizes[:t], run.sizes[:t])


@full
def test_full_budgets_go_on_from_any_save(name, tmp_path):
    X, y = stream()
    going, stopping = FULL[name](), FULL[name]()
    for t in range(0, N, 7):
        going.partial_fit(X[t : t + 7], y[t : t + 7])
        stopping.partial_fit(X[t : t + 7], y[t : t + 7])
        stopping.save(tmp_path / "learner.npz")
        stopping = okl.load(tmp_path / "learner.npz")
        np.testing.assert_array_equal(stopping.predict(X), going.predict(X))
        assert stopping.size == going.size


@full
def test_memory_is_bounded_by_the_budget(name):
    X, y = stream(4000 if COMPILED else 400, seed=9)
    y = np.random.default_rng(1).choice([-1.0, 1.0], len(y))  # nothing to learn: a loss each round
    learner = FULL[name]()

    def held():
        return sum(v.nbytes for v in vars(learner).values() if isinstance(v, np.ndarray))

    learner.partial_fit(X[:300], y[:300])
    before = held()
    learner.partial_fit(X[300:], y[300:])
    if name != "SkeGD":  # with a period, one atom for every so many losses
        assert held() == before
    assert np.isfinite(learner.predict(X)).all()


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows")
@pytest.mark.parametrize("size", [1e80, 1e110, 1e160])
@full
def test_an_overflow_of_the_kernel_is_an_error_that_names_a_round(name, size):
    """k(x, x) overflows before k(x, atoms) does: no learner may go on as if it were nothing."""
    X, y = stream(200)
    X[100] *= size
    learner = FULL[name]().set_params(
        **{"kernels" if "AO" in name else "kernel": okl.Polynomial(3)}
    )
    try:
        run = okl.run(learner, X, y)
    except FloatingPointError as error:
        assert "round" in str(error) and "reset" in str(error)
        assert 100 <= int(str(error).split("round ")[1].split(":")[0]) <= 200
    else:
        assert np.isfinite(run.predictions).all() and np.isfinite(learner.predict(X[:50])).all()
        if hasattr(learner, "coefficients"):
            assert np.isfinite(learner.coefficients).all() and (learner.coefficients != 0).any()
