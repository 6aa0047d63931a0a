"""KORS and the online Newton step in kernel form: against explicit features, and the theorems."""

import numba
import numpy as np
import pytest
from scipy.optimize import minimize

import oklnumba as okl
from oklnumba import losses
from tests import naive

COMPILED = not numba.config.DISABLE_JIT
SEEDS = 200 if COMPILED else 1
ROUNDS = 150 if COMPILED else 40  # of the streams on which bounds are tested
SPACES = {
    "linear": (okl.Linear(), naive.linear, lambda X: X),
    "polynomial": (
        okl.Polynomial(3, 0.5, 1.0),
        lambda X, Z: naive.polynomial(X, Z, 3, 0.5, 1.0),
        lambda X: naive.polynomial_features(X, 3, 0.5, 1.0),
    ),
}
# Loss, C, eta and what must happen on the stream below: (projections, zero gradients, both at once)
SETTINGS = [
    ("squared", 1.0, None, (True, True, True)),
    ("squared", 0.3, 1.0, (True, True, True)),
    ("logistic", 0.5, None, (True, False, False)),
    ("logistic", 2.0, 2.0, (True, False, False)),
    ("squared_hinge", 0.5, None, (True, False, False)),
    ("squared_hinge", 1.3, 0.5, (True, True, True)),
]
SETTING_IDS = [f"{loss}-C={C}-eta={eta}" for loss, C, eta, _ in SETTINGS]
every_space = pytest.mark.parametrize("space", SPACES)
every_setting = pytest.mark.parametrize(
    ("loss", "C", "eta", "must_happen"), SETTINGS, ids=SETTING_IDS
)


def step(loss, C, eta):
    return losses.get(loss).curvature(C) if eta is None else eta


def stream(loss="squared", C=1.0, n=300, d=2, seed=0):
    """Noisy classes, labels -C and C for the squared loss; with a point 0 and repeated points."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[n // 15] = 0.0
    X[n // 5 : n // 5 + 10] = X[3]
    y = np.where(np.sin(3 * X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y * C if loss == "squared" else y


def explicit(features, X, y, loss, C, alpha, eta, **coin):
    """The explicit online Newton step in extended precision."""
    F = features(X.astype(np.longdouble))
    derivative = naive.LOSS_DERIVATIVES[loss]
    return naive.newton_steps(F, y, derivative, C, alpha, step(loss, C, eta), **coin)


def assert_happened(steps, must_happen):
    projected, zero = steps.projected, steps.slopes == 0
    found = (projected.sum() > 2, zero.sum() > 2, (projected & zero).sum() > 2)
    assert found == must_happen


def flat_rounds(steps, loss):
    """Rounds without a gradient because the loss is flat there, not by a coincidence."""
    return (steps.slopes == 0) & (loss == "squared_hinge")


def kept_rounds(steps, loss):
    return ~flat_rounds(steps, loss) | steps.projected


def one_by_one(learner, X, y):
    forecasts = []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
    return np.array(forecasts)


def draws(seed, n):
    return np.random.default_rng(seed).random(n)


# ---- KONS is the explicit online Newton step ----


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
@every_setting
@every_space
def test_kons_equals_the_explicit_newton_step(space, loss, C, eta, must_happen, alpha):
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    learner = okl.KONS(kernel, loss, C, alpha, eta)
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
    """The kernel matrix is rounded by up to n eps max k, which counts divided by alpha.

    Measured for three streams down to alpha = 1e-8, errors are 0.2 to 1.4 times that.
    """
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    learner = okl.KONS(kernel, loss, C, alpha, eta)
    run = okl.run(learner, X, y)
    steps = explicit(features, X, y, loss, C, alpha, eta)
    rounding = len(X) * np.finfo(float).eps * kernel.diag(X).max() / alpha
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=3 * rounding)
    np.testing.assert_allclose(learner.R_G, steps.R_G, rtol=rounding)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_kons_in_an_infinite_space(loss):
    kernel = okl.Laplacian(0.7)
    X, y = stream(loss)
    run = okl.run(okl.KONS(kernel, loss, alpha=0.1), X, y)
    F = naive.gram_features(naive.laplacian(X, X, 0.7))
    derivative = naive.LOSS_DERIVATIVES[loss]
    steps = naive.newton_steps(F, y, derivative, 1.0, 0.1, step(loss, 1.0, None))
    assert steps.projected.sum() > 2
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-2, 1e-3, 1e-5])
def test_small_alpha_in_an_infinite_space_costs_no_more_than_rounding_the_kernel(alpha):
    X, y = stream(n=120, d=3)
    run = okl.run(okl.KONS(okl.Matern(2.5, 1.0), alpha=alpha), X, y)
    X = X.astype(np.longdouble)
    F = naive.longdouble_cholesky(naive.matern(X, X, 2.5, 1.0))
    steps = naive.newton_steps(F, y, naive.LOSS_DERIVATIVES["squared"], 1.0, alpha, 1 / 8)
    assert_happened(steps, (True, True, True))
    rounding = len(X) * np.finfo(float).eps / alpha
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=rounding)


@every_setting
def test_kons_in_any_cut_is_kons_round_by_round(loss, C, eta, must_happen):
    n = 700 if COMPILED else 120  # blocks have 256 rounds
    X, y = stream(loss, C, n)
    whole = okl.KONS(okl.Gaussian(0.7), loss, C, 0.01, eta)
    run = okl.run(whole, X, y)
    single = okl.KONS(okl.Gaussian(0.7), loss, C, 0.01, eta)
    np.testing.assert_allclose(one_by_one(single, X, y), run.predictions, rtol=0, atol=1e-9)
    parts = okl.KONS(okl.Gaussian(0.7), loss, C, 0.01, eta)
    forecasts = []
    for rows in np.split(np.arange(n), [1, 3, 50, 51, *(c for c in (255, 257, 513, 690) if c < n)]):
        forecasts.append(okl.run(parts, X[rows], y[rows]).predictions)
    np.testing.assert_allclose(np.concatenate(forecasts), run.predictions, rtol=0, atol=1e-9)
    probe = stream(seed=9)[0][:20]
    for learner in (single, parts):
        np.testing.assert_allclose(learner.predict(probe), whole.predict(probe), rtol=0, atol=1e-9)
        np.testing.assert_allclose(learner.R_G, whole.R_G, rtol=1e-9)
        assert learner.size == whole.size


# ---- Sketched-KONS ----


@every_setting
@every_space
def test_sketched_kons_with_gamma_1_is_kons(space, loss, C, eta, must_happen):
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    exact, sketched = (
        okl.KONS(kernel, loss, C, 0.1, eta),
        okl.SketchedKONS(kernel, loss, C, 0.1, eta, gamma=1.0),
    )
    expected, run = okl.run(exact, X, y), okl.run(sketched, X, y)
    np.testing.assert_allclose(run.predictions, expected.predictions, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(run.sizes, expected.sizes)
    np.testing.assert_allclose(sketched.R_G, exact.R_G, rtol=1e-9)


@pytest.mark.parametrize(("gamma", "beta", "alpha"), [(0.3, 1.0, 0.1), (0.01, 0.5, 1e-2)])
@every_setting
@every_space
def test_sketched_kons_equals_the_explicit_form_with_its_coins(
    space, loss, C, eta, must_happen, gamma, beta, alpha
):
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    n = len(X)
    learner = okl.SketchedKONS(kernel, loss, C, alpha, eta, gamma, beta, eps=0.4, seed=5)
    run = okl.run(learner, X, y)
    coins = draws([5, 0], n), draws([5, 1], n)
    D = features(X).shape[1]
    coin = naive.sketch_coin(D, alpha, beta, 0.4, gamma, *coins)
    entered = np.zeros(n, dtype=bool)

    def noted(t, phibar):
        entered[t] = coin(t, phibar)
        return entered[t]

    steps = explicit(features, X, y, loss, C, alpha, eta, coin=noted)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learner.R_G, steps.R_G, rtol=1e-9)
    # A slope of rounding may be exactly zero elsewhere; then it adds nothing.
    inside = entered & ~flat_rounds(steps, loss)
    sure = inside & (np.abs(steps.slopes) > 1e-12)
    assert sure.sum() <= learner.sketch_size <= inside.sum() < n * 0.9
    np.testing.assert_array_equal(run.sizes, np.cumsum(kept_rounds(steps, loss)))
    assert (steps.projected & ~entered).any()  # a round left out keeps its projection
    assert_happened(steps, must_happen)


# ---- Pros-N-KONS and CON-KONS ----


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("kernel", [okl.Linear(), okl.Polynomial(2, 1.0, 0.0)], ids=repr)
def test_pros_n_kons_on_a_dictionary_that_never_changes(kernel, restart):
    """Huge points with label 0 first: they span the space, move nothing, and KORS has enough."""
    X, y = stream("squared", 0.5)
    D = 2 if isinstance(kernel, okl.Linear) else 3
    X[:D] *= 300
    y[:D] = 0.0
    learner = okl.ProsNKONS(kernel, "squared", 0.5, 0.1, restart=restart, seed=3)
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes, np.minimum(np.arange(1, len(X) + 1), D))
    assert learner.restarts == (D - 1 if restart else 0)
    features = SPACES["linear"][2] if D == 2 else lambda X: naive.polynomial_features(X, 2, 1.0, 0)
    steps = explicit(features, X, y, "squared", 0.5, 0.1, step("squared", 0.5, None) / 2)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    assert_happened(steps, (True, True, True))


@pytest.mark.parametrize("alpha", [0.1, 1e-6])
@every_setting
@every_space
def test_con_kons_in_a_space_that_is_complete(space, loss, C, eta, must_happen, alpha):
    """The first points span the space; what KORS keeps later adds null directions only."""
    kernel, _, features = SPACES[space]
    X, y = stream(loss, C)
    D = features(X).shape[1]
    learner = okl.ProsNKONS(kernel, loss, C, alpha, eta, mu=1e-3, beta=2.0, restart=False)
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes[:D], np.arange(1, D + 1))
    assert run.sizes[-1] > D
    steps = explicit(features, X, y, loss, C, alpha, step(loss, C, eta) / 2)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    assert_happened(steps, must_happen)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_con_kons_with_every_point_kept_is_kons(loss):
    X, y = stream(loss)
    kernel = okl.Laplacian(0.7)
    expected = okl.run(okl.KONS(kernel, loss, alpha=0.1, eta=0.1), X, y).predictions
    con_kons = okl.ProsNKONS(kernel, loss, 1.0, 0.1, 0.2, beta=1e9, restart=False)
    run = okl.run(con_kons, X, y)
    np.testing.assert_array_equal(run.sizes, np.arange(1, 301))
    np.testing.assert_allclose(run.predictions, expected, rtol=0, atol=1e-9)
    restarting = okl.ProsNKONS(kernel, loss, 1.0, 0.1, 0.2, beta=1e9)
    np.testing.assert_array_equal(okl.run(restarting, X, y).predictions, 0.0)
    assert restarting.restarts == 299


KERNELS = {name: SPACES[name][:2] for name in SPACES} | {
    "Laplacian": (okl.Laplacian(0.7), lambda X, Z: naive.laplacian(X, Z, 0.7)),
    "Matern": (okl.Matern(1.5, 0.9), lambda X, Z: naive.matern(X, Z, 1.5, 0.9)),
}


@pytest.mark.parametrize("restart", [False, True])
@every_setting
@pytest.mark.parametrize("name", KERNELS)
def test_pros_n_kons_equals_the_dense_version(name, loss, C, eta, must_happen, restart):
    kernel, k = KERNELS[name]
    X, y = stream(loss, C)
    kept = okl.KORS(kernel, 0.1, 0.7, 0.4, seed=2).partial_fit(X).indices_
    learner = okl.ProsNKONS(kernel, loss, C, 0.1, eta, 0.1, 0.7, 0.4, restart, seed=2)
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes, np.searchsorted(kept, np.arange(len(X)), side="right"))
    assert learner.restarts == (len(kept) - 1 if restart else 0) and len(kept) > 10
    derivative = naive.LOSS_DERIVATIVES[loss]
    expected = naive.pros_n_kons(
        k, X, y, kept, derivative, C, 0.1, step(loss, C, eta), restart=restart
    )
    np.testing.assert_allclose(run.predictions, expected, rtol=0, atol=1e-9)
    other = okl.ProsNKONS(kernel, loss, C, 0.1, eta, 0.1, 0.7, 0.4, restart, seed=2)
    np.testing.assert_allclose(one_by_one(other, X, y), expected, rtol=0, atol=1e-9)


# ---- samplers ----


@every_space
@pytest.mark.parametrize("threshold", [0.1, 0.5])
def test_ald_keeps_what_is_far_from_the_span(space, threshold):
    kernel, _, features = SPACES[space]
    X, _ = stream()
    kept = naive.ald(features(X), threshold)
    sampler = okl.ALD(kernel, threshold).partial_fit(X[:30]).partial_fit(X[30:])
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])
    np.testing.assert_array_equal(sampler.probabilities_, 1.0)


def test_uniform_sampling_is_a_coin_a_point():
    X, _ = stream()
    sampler = okl.UniformSampling(okl.Gaussian(1.0), 0.2, seed=4).partial_fit(X[:1])
    sampler.partial_fit(X[1:7]).partial_fit(X[7:])
    kept = np.flatnonzero(draws(4, 300) < 0.2)
    np.testing.assert_array_equal(sampler.indices_, kept)
    np.testing.assert_array_equal(sampler.landmarks_, X[kept])
    np.testing.assert_array_equal(sampler.probabilities_, 0.2)


@pytest.mark.parametrize(
    "sampler",
    [
        okl.KORS(okl.Laplacian(0.7), beta=50.0),
        okl.UniformSampling(okl.Laplacian(0.7), 0.1),
        okl.ALD(okl.Laplacian(0.7), 0.3),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_samplers_serve_as_nystrom_maps(sampler):
    X, _ = stream()
    F = sampler.partial_fit(X).transform(X)
    K = naive.laplacian(X, X, 0.7)
    columns = K[:, sampler.indices_]
    nystrom = columns @ np.linalg.pinv(columns[sampler.indices_], 1e-12) @ columns.T
    np.testing.assert_allclose(F @ F.T, nystrom, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(sampler.features().transform(X), F)
    if isinstance(sampler, okl.ALD):
        assert np.sqrt(np.diag(K - nystrom).max()) <= 0.3


# ---- the theorems ----


def spread_out(K, n, alpha=1.0):
    """Order of n points, each the one with the largest leverage after those before it."""
    K, order = K.copy(), []
    for _ in range(n):
        i = int(np.argmax(np.diag(K)))
        order.append(i)
        K -= np.outer(K[:, i], K[:, i]) / (alpha + K[i, i])
    return order


def points(kernel, n=ROUNDS):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (n, 2))
    centres = rng.uniform(-1, 1, (5, 2))
    return {
        "random": X,
        "clustered": centres[rng.integers(0, 5, n)] + 0.05 * rng.standard_normal((n, 2)),
        "repeated": X[rng.integers(0, 6, n)],
        "one point": np.full((n, 2), np.sqrt(0.5)),
        "sorted": np.sort(X, axis=0),
        "spread out": X[spread_out(kernel(X[: n // 2]), n)],
        "two directions": np.repeat(np.eye(2), n // 2, axis=0),
    }


def play(learner, X, y):
    """Play rounds against labels, or against an adversary: the label opposed to the forecast."""
    if not callable(y):
        return okl.run(learner, X, y).predictions, y
    forecasts, labels = np.empty(len(X)), np.empty(len(X))
    for t, x in enumerate(X):
        forecasts[t] = learner.predict_one(x)
        labels[t] = y(forecasts[t])
        learner.learn_one(x, labels[t])
    return forecasts, labels


def labels(X, C, loss):
    """Labels by name; of size C for the squared loss."""
    rng = np.random.default_rng(6)
    size = C if loss == "squared" else 1.0
    return {
        "noise": size * np.sign(rng.standard_normal(len(X))),
        "rule": size * np.where(X[:, 0] > 0, 1.0, -1.0),
        "alternating": size * np.where(np.arange(len(X)) % 2, -1.0, 1.0),
        "adversary": lambda forecast: size if forecast < 0 else -size,
    }


def competitors(F, y, loss, C, alpha):
    """Functions w with |w.phi_t| <= C: 0, the best with a penalty alpha |w|^2, and some others."""
    value, derivative = naive.LOSS_VALUES[loss], naive.LOSS_DERIVATIVES[loss]
    distinct = np.unique(F.round(12), axis=0)
    best = minimize(
        lambda w: value(F @ w, y).sum() + alpha * w @ w,
        np.zeros(F.shape[1]),
        jac=lambda w: F.T @ derivative(F @ w, y) + 2 * alpha * w,
        constraints=[
            {
                "type": "ineq",
                "fun": lambda w, s=s: C - s * distinct @ w,
                "jac": lambda w, s=s: -s * distinct,
            }
            for s in (-1.0, 1.0)
        ],
        method="SLSQP",
    ).x
    ridge = np.linalg.solve(F.T @ F + 1e-3 * np.eye(F.shape[1]), F.T @ y)
    for w in (best, ridge, -ridge, np.zeros_like(best)):
        yield w * min(1.0, C / max(np.abs(F @ w).max(), 1e-300))


def span_features(K):
    F = naive.gram_features(K)
    return F[:, np.square(F).sum(axis=0) > 1e-10]


BOUND_KERNELS = [okl.Linear(), okl.Polynomial(2), okl.Gaussian(0.7)]
every_bound_kernel = pytest.mark.parametrize("kernel", BOUND_KERNELS, ids=repr)


@pytest.mark.parametrize("alpha", [10.0, 1.0, 1e-2])
@every_bound_kernel
def test_lemma_3(kernel, alpha):
    for where, X in points(kernel).items():
        online = okl.theory.online_effective_dimension(kernel, X, alpha)
        log_det = okl.theory.log_det(kernel, X, alpha)
        dimension = okl.theory.effective_dimension(kernel, X, alpha)
        norm = np.linalg.norm(kernel(X), 2)
        assert dimension <= online * (1 + 1e-9), where
        assert online <= log_det * (1 + 1e-9), where
        assert log_det <= dimension * (1 + np.log1p(norm / alpha)) * (1 + 1e-9), where


@pytest.mark.parametrize(
    ("loss", "C", "alpha"),
    [("squared", 1.0, 1.0), ("squared", 2.0, 0.01), ("logistic", 1.0, 1.0), ("logistic", 3.0, 0.1)]
    + [("squared_hinge", 2.0, 1.0)],
)
@every_bound_kernel
def test_regret_bounds(kernel, loss, C, alpha):
    """Proposition 1 with the factor 2 of errata 10, and Theorem 1, against many competitors.

    2 R(w) <= alpha |w|^2 + R_G holds with a sketched inverse as well, whose R_D is <= 0.
    """
    sigma, L = losses.get(loss).curvature(C), losses.get(loss).lipschitz(C)
    value = naive.LOSS_VALUES[loss]
    for where, X in points(kernel).items():
        F = span_features(kernel(X))
        log_det = okl.theory.log_det(kernel, X, alpha / (sigma * L**2)) / sigma
        bound = okl.theory.kons_bound(kernel, X, loss, C, alpha)
        assert log_det <= bound
        for how, rule in labels(X, C, loss).items():
            exact = okl.KONS(kernel, loss, C, alpha)
            sketched = okl.SketchedKONS(kernel, loss, C, alpha, gamma=0.2)
            for learner in (exact, sketched):
                forecasts, y = play(learner, X, rule)
                assert np.abs(forecasts).max() <= C
                for w in competitors(F, y, loss, C, alpha):
                    regret = value(forecasts, y).sum() - value(F @ w, y).sum()
                    penalty = alpha * w @ w
                    stream = f"{where} points, {how} labels"
                    assert 2 * regret <= penalty + learner.R_G + 1e-9, stream
                    assert learner is sketched or regret <= penalty + bound, stream
            assert exact.R_G <= log_det


def test_step_sizes_beyond_the_curvature_cost_R_D():
    """Negative control: with eta = 50 sigma, alpha |w|^2 + R_G alone is no bound."""
    kernel, X = okl.Linear(), np.ones((300, 1))
    y = np.ones(300)
    eta = 50 * losses.get("squared").curvature(1.0)
    learner = okl.KONS(kernel, eta=eta)
    forecasts = okl.run(learner, X, y).predictions
    regret = ((forecasts - y) ** 2).sum()  # against w = 1
    R_D = (eta - eta / 50) * ((2 * (forecasts - y) * (forecasts - 1)) ** 2).sum()
    assert 2 * regret > 1.0 + learner.R_G
    assert 2 * regret <= 1.0 + learner.R_G + R_D


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@every_bound_kernel
def test_theorem_1_without_curvature(kernel, loss):
    """Second case of Theorem 1, eta_t = 1 / (L C sqrt(t)), on the explicit Newton step."""
    C, alpha, n = 1.0, 0.5, ROUNDS
    eta = 1 / (losses.get(loss).lipschitz(C) * C * np.sqrt(np.arange(1, n + 1)))
    value, derivative = naive.LOSS_VALUES[loss], naive.LOSS_DERIVATIVES[loss]
    for where, X in points(kernel, n).items():
        F = span_features(kernel(X))
        bound = okl.theory.kons_bound(kernel, X, loss, C, alpha)
        for how, y in labels(X, C, loss).items():
            if callable(y):
                continue
            forecasts = naive.newton_steps(F, y, derivative, C, alpha, eta).forecasts
            for w in competitors(F, y, loss, C, alpha):
                regret = value(forecasts, y).sum() - value(F @ w, y).sum()
                assert regret <= alpha * w @ w + bound, f"{where} points, {how} labels"


def test_bounds_are_their_formulas():
    X, _ = stream()
    kernel, alpha, norm = okl.Gaussian(0.7), 0.3, 2.0
    K = naive.gaussian(X, X, 0.7)
    values = np.linalg.eigvalsh(K)
    sigma, L, C = 1 / 32, 8.0, 2.0  # squared loss, C = 2
    dimension = (values / (values + alpha / (sigma * L**2))).sum()
    kons = dimension * (1 + np.log1p(sigma * L**2 * np.trace(K) / alpha)) / sigma
    found = okl.theory.kons_bound(kernel, X, "squared", C=C, alpha=alpha, norm=norm)
    np.testing.assert_allclose(found, alpha * norm**2 + kons, rtol=1e-9)
    for gamma, beta, tau, divisor in ((0.1, 2.0, 0.01, 0.1), (0.01, 2.0, 0.1, 0.2)):
        found = okl.theory.sketched_kons_bound(
            kernel, X, gamma, "squared", C=C, alpha=alpha, beta=beta, tau_min=tau, norm=norm
        )
        np.testing.assert_allclose(found, alpha * norm**2 + kons / divisor, rtol=1e-9)
    D = np.sqrt(1 / (C * np.sqrt(np.arange(1, 301))))  # hinge: L = 1
    rescaled = np.linalg.slogdet(np.eye(300) + D[:, None] * K * D / alpha)[1]
    free = alpha * norm**2 + C * np.sqrt(300) * rescaled + 4 * C**2 * (D**2).sum()
    found = okl.theory.kons_bound(kernel, X, "hinge", C=C, alpha=alpha, norm=norm)
    np.testing.assert_allclose(found, free, rtol=1e-9)
    online = okl.theory.online_effective_dimension(kernel, X, alpha)
    found = okl.theory.kors_size_bound(kernel, X, alpha=alpha, beta=2.0, eps=0.5)
    np.testing.assert_allclose(found, 3 * 3.0 * 2.0 * online, rtol=1e-9)


def ratios(F, sampler, alpha, eps):
    """Eigenvalues of A_t^-1/2 A_t^I A_t^-1/2 at each 50th round, and tau estimated over exact."""
    n, D = F.shape
    outer = F[:, :, None] * F[:, None, :]
    weights = np.zeros(n)
    weights[sampler.indices_] = 1 / sampler.probabilities_
    A = alpha * np.eye(D) + np.cumsum(outer, axis=0)
    sketch = alpha * np.eye(D) + np.cumsum(weights[:, None, None] * outer, axis=0)
    before = np.concatenate([alpha * np.eye(D)[None], sketch[:-1]])
    columns = F[:, :, None]
    exact = (columns * np.linalg.solve(A, columns)).sum(axis=(1, 2))
    estimate = (1 + eps) * (columns * np.linalg.solve(before + outer, columns)).sum(axis=(1, 2))
    inverse = np.linalg.inv(np.linalg.cholesky(A[49::50]))
    spectrum = np.linalg.eigvalsh(inverse @ sketch[49::50] @ inverse.transpose(0, 2, 1))
    return spectrum, estimate, exact


@pytest.mark.parametrize(
    ("where", "eps"),
    [("one point", 0.5)]
    + [(where, 0.9) for where in ("random", "clustered", "repeated", "two directions")],
)  # fmt: skip
def test_theorem_2(where, eps):
    """KORS over 200 seeds: accurate, small, and estimates between tau and rho tau."""
    n, alpha, delta, kernel = 600, 1.0, 0.1, okl.Polynomial(1)  # a constant and two coordinates
    X = points(kernel, n)[where]
    F = naive.polynomial_features(X, 1)
    beta, rho = 3 * np.log(n / delta) / eps**2, (1 + eps) / (1 - eps)
    bound = okl.theory.kors_size_bound(kernel, X, alpha, beta, eps)
    inaccurate = too_large = out_of_range = thinned = 0
    for seed in range(SEEDS):
        sampler = okl.KORS(kernel, alpha, beta, eps, seed).partial_fit(X)
        spectrum, estimate, exact = ratios(F, sampler, alpha, eps)
        kept = sampler.indices_
        np.testing.assert_allclose(
            sampler.probabilities_, np.minimum(beta * estimate, 1)[kept], rtol=1e-8
        )
        inaccurate += spectrum.min() < 1 - eps or spectrum.max() > 1 + eps
        too_large += sampler.size > min(bound, 3 * np.minimum(beta * estimate, 1).sum())
        out_of_range += (estimate < exact).any() or (estimate > rho * exact).any()
        thinned += sampler.size < 0.9 * n
    assert thinned == SEEDS  # or there is nothing to see
    allowed = delta * SEEDS + 3 * np.sqrt(delta * (1 - delta) * SEEDS)
    assert max(inaccurate, too_large, out_of_range) <= allowed


def test_kors_without_its_weights_is_not_accurate():
    """Negative control for the test above."""
    X, eps = np.full((600, 2), 0.7), 0.5
    sampler = okl.KORS(okl.Linear(), 1.0, 12.0, eps).partial_fit(X)
    assert np.abs(ratios(X, sampler, 1.0, eps)[0] - 1).max() < eps
    sampler.probabilities_ = np.ones(sampler.size)
    assert np.abs(ratios(X, sampler, 1.0, eps)[0] - 1).max() > eps


@pytest.mark.skipif(not COMPILED, reason="beta of the theory keeps all of a short stream")
@pytest.mark.parametrize("gamma", [0.05, 0.3])
@pytest.mark.parametrize(("where", "how"), [("one point", "alternating"), ("repeated", "noise")])
def test_theorem_3(where, how, gamma):
    """Sketched-KONS over 40 seeds with the theory's beta: its R_G, and so its regret."""
    n, alpha, eps, delta, kernel = 800, 0.1, 0.5, 0.1, okl.Linear()
    X = points(kernel, n)[where]
    y = labels(X, 1.0, "squared")[how]
    beta = 3 * np.log(n / delta) / eps**2
    bound = okl.theory.sketched_kons_bound(kernel, X, gamma, alpha=alpha, beta=beta)
    exact = okl.KONS(kernel, alpha=alpha).partial_fit(X, y).R_G
    best = list(competitors(X, y, "squared", 1.0, alpha))
    failures = 0
    for seed in range(40):
        learner = okl.SketchedKONS(kernel, alpha=alpha, gamma=gamma, beta=beta, eps=eps, seed=seed)
        run = okl.run(learner, X, y)
        assert learner.sketch_size < 0.9 * n and learner.R_G > exact
        regret = max(run.losses.sum() - ((X @ w - y) ** 2).sum() - alpha * w @ w for w in best)
        failures += max(learner.R_G, regret) > bound
    assert failures <= 40 * delta


@pytest.mark.parametrize("C", [1.0, 3.0])
def test_one_point_with_alternating_labels(C):
    """Section 6 of kons: R_D = 0 and R_G = O(log n); the gradient is 2 C, not C (errata 14)."""
    n = 2000 if COMPILED else 200
    X, y = np.full((n, 1), 1.0), C * np.where(np.arange(n) % 2, -1.0, 1.0)
    learner = okl.KONS(okl.Linear(), C=C)
    forecasts = okl.run(learner, X, y).predictions
    sigma, g = 1 / (8 * C**2), 2 * (forecasts - y)
    R_G = (g**2 / (1 + sigma * np.cumsum(g**2))).sum()
    np.testing.assert_allclose(learner.R_G, R_G, rtol=1e-9)
    regret = ((forecasts - y) ** 2).sum() - n * C**2  # the best in hindsight is 0
    assert 0 < 2 * regret <= learner.R_G <= np.log1p(16 * C**2 * sigma * n) / sigma
    assert learner.R_G <= okl.theory.kons_bound(okl.Linear(), X, C=C)
    if COMPILED and C == 1.0:
        np.testing.assert_allclose(learner.R_G, 51.84, atol=0.01)
        assert learner.R_G > (1 / (1 + sigma * np.arange(1, n + 1))).sum()  # as printed


# ---- what every learner here owes its users ----


def curved_learners(kernel=None, **params):
    kernel = okl.Gaussian(0.7) if kernel is None else kernel
    return [
        okl.KONS(kernel, **params),
        okl.SketchedKONS(kernel, **params, gamma=0.3),
        okl.ProsNKONS(kernel, **params),
        okl.ProsNKONS(kernel, **params, restart=False),
    ]


every_learner = pytest.mark.parametrize("which", range(4), ids=["KONS", "Sketched", "Pros", "CON"])


@every_setting
@every_learner
def test_no_label_is_seen_before_its_forecast(which, loss, C, eta, must_happen):
    n = 600 if COMPILED else 60
    X, y = stream(loss, C, n)
    params = {"loss": loss, "C": C, "alpha": 0.01, "eta": eta}
    run = okl.run(curved_learners(**params)[which], X, y)
    for t in (0, 1, 70, 255, 256, 257, 590):
        if t < n:
            other = okl.run(curved_learners(**params)[which], X, np.where(np.arange(n) < t, y, -y))
            np.testing.assert_array_equal(other.predictions[: t + 1], run.predictions[: t + 1])
            later = other.predictions[t + 1 :] != run.predictions[t + 1 :]
            assert later.any() or n - t < 20


@every_setting
@every_learner
def test_forecasts_change_nothing_and_saved_learners_go_on(
    which, loss, C, eta, must_happen, tmp_path
):
    X, y = stream(loss, C, 400 if COMPILED else 60)
    params = {"loss": loss, "C": C, "alpha": 0.01, "eta": eta}
    asked, quiet = (curved_learners(**params)[which] for _ in range(2))
    half = len(X) // 2 + 3
    for learner in (asked, quiet):
        learner.partial_fit(X[:half], y[:half])
    for t in range(half, half + 20):
        assert asked.predict_one(X[t]) == asked.predict_one(X[t])
        asked.predict(X)
        forecast = asked.predict_one(X[t])
        np.testing.assert_allclose(
            okl.run(quiet, X[t : t + 1], y[t : t + 1]).predictions, forecast, rtol=0, atol=1e-9
        )
        asked.learn_one(X[t], y[t])
    asked.save(tmp_path / "learner.npz")
    loaded = okl.load(tmp_path / "learner.npz")
    rest = slice(half + 20, None)
    expected = okl.run(quiet, X[rest], y[rest]).predictions
    for learner in (loaded, asked):
        np.testing.assert_array_equal(okl.run(learner, X[rest], y[rest]).predictions, expected)
    for name in ("size", "R_G", "sketch_size", "restarts"):
        if hasattr(quiet, name):
            assert getattr(loaded, name) == getattr(quiet, name) == getattr(asked, name)


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


BAD = [
    ({"C": 0.0}, "C must be a number > 0"),
    ({"C": np.inf}, "C must be a number > 0"),
    ({"C": True}, "C must be a number > 0"),
    ({"alpha": 0.0}, "alpha must be a number > 0, but is 0.0"),
    ({"alpha": "1"}, "alpha must be a number > 0, but is '1'"),
    ({"eta": -1.0}, "eta must be a number > 0, but is -1.0"),
    ({"eta": np.nan}, "eta must be a number > 0, but is nan"),
    ({"loss": "hinge"}, "loss='hinge' has no curvature.*FOGD"),
    ({"loss": "absolute"}, "loss='absolute' has no curvature.*FOGD"),
    ({"loss": "cubic"}, "loss must be one of squared, .*but is 'cubic'"),
    ({"kernel": "gaussian"}, "kernel must be an oklnumba kernel.*but is 'gaussian'"),
    ({"gamma": 0.0}, r"gamma must be a number in \(0, 1\], but is 0.0"),
    ({"gamma": 1.5}, r"gamma must be a number in \(0, 1\], but is 1.5"),
    ({"beta": 0.0}, "beta must be a number > 0, but is 0.0"),
    ({"eps": 1.0}, r"eps must be a number in \(0, 1\), but is 1.0"),
    ({"mu": -1.0}, "mu must be a number > 0, but is -1.0"),
    ({"seed": -1}, "seed must be an integer >= 0, but is -1"),
    ({"seed": 0.5}, "seed must be an integer >= 0, but is 0.5"),
    ({"restart": "no"}, "restart must be True or False, but is 'no'"),
]


@pytest.mark.parametrize(("params", "message"), BAD, ids=[repr(params) for params, _ in BAD])
@pytest.mark.parametrize("cls", [okl.KONS, okl.SketchedKONS, okl.ProsNKONS])
def test_bad_hyper_parameters_are_named_and_nothing_changes(cls, params, message):
    learner = cls(okl.Gaussian(1.0))
    if not set(params) <= set(learner.get_params(deep=False)):
        with pytest.raises(ValueError, match=next(iter(params))):
            learner.set_params(**params)
        return
    good = learner.get_params(deep=False)
    learner.set_params(**params)
    X, y = stream()
    for call in (
        lambda: learner.partial_fit(X, y),
        lambda: learner.learn_one(X[0], y[0]),
        lambda: okl.run(learner, X, y),
    ):
        with pytest.raises(ValueError, match=message):
            call()
        assert (learner.rounds, learner.size) == (0, 0)
    learner.set_params(**good)
    run, expected = okl.run(learner, X, y), okl.run(cls(okl.Gaussian(1.0)), X, y)
    np.testing.assert_array_equal(run.predictions, expected.predictions)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (okl.KORS(okl.Gaussian(1.0), alpha=0.0), "alpha must be a number > 0, but is 0.0"),
        (okl.KORS(okl.Gaussian(1.0), eps=1.0), r"eps must be a number in \(0, 1\), but is 1.0"),
        (okl.KORS(okl.Gaussian(1.0), seed=None), "seed must be an integer >= 0, but is None"),
        (okl.UniformSampling(okl.Gaussian(1.0), 0.0), r"probability must be a number in \(0, 1\]"),
        (okl.UniformSampling(okl.Gaussian(1.0), seed=-1), "seed must be an integer >= 0"),
        (okl.UniformSampling("linear"), "kernel must be an oklnumba kernel"),
        (okl.ALD(okl.Gaussian(1.0), -0.1), "threshold must be a number > 0, but is -0.1"),
    ],
)
def test_samplers_refuse_bad_hyper_parameters(sampler, message):
    with pytest.raises(ValueError, match=message):
        sampler.partial_fit([[0.0]])
    assert sampler.size == 0
    with pytest.raises(ValueError, match="has seen no data"):
        _ = sampler.landmarks_


@every_learner
def test_labels_outside_the_domain_change_nothing(which):
    X, y = stream("squared", 0.5)
    learner, twin = (curved_learners(C=0.5)[which].partial_fit(X[:100], y[:100]) for _ in "ab")
    bad = y[100:].copy()
    bad[17] = 0.6
    message = r"y has 0.6 at row 17, outside \[-C, C\] with C = 0.5.*raise C or scale"
    for call in (
        lambda: learner.partial_fit(X[100:], bad),
        lambda: okl.run(learner, X[100:], bad),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=r"y has -2.0 at row 0, outside \[-C, C\]"):
        learner.learn_one(X[100], -2.0)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="y has (nan|inf)"):
            learner.learn_one(X[100], bad)
    with pytest.raises(ValueError, match="x has 3 columns"):
        learner.learn_one([0.0, 0.0, 0.0], 0.1)
    assert learner.rounds == 100
    run, expected = (okl.run(other, X[100:], y[100:]) for other in (learner, twin))
    np.testing.assert_array_equal(run.predictions, expected.predictions)
    classes = curved_learners(loss="logistic")[which]
    with pytest.raises(ValueError, match="takes labels -1 and"):
        classes.partial_fit(X, y)
    assert classes.rounds == 0
