"""The theory package against dense linear algebra."""

import tracemalloc

import numpy as np
import pytest

import oklnumba as okl
from tests import naive

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (60, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(60)
KERNEL = okl.Gaussian(0.7)
K = naive.gaussian(X, X, 0.7)


@pytest.mark.parametrize("lam", [10.0, 1.0, 1e-3])
def test_log_det_and_effective_dimension(lam):
    eigenvalues = np.linalg.eigvalsh(K)
    log_det = np.log1p(eigenvalues / lam).sum()
    dimension = (eigenvalues / (eigenvalues + lam)).sum()
    np.testing.assert_allclose(okl.theory.log_det(KERNEL, X, lam), log_det, rtol=1e-10)
    found = okl.theory.effective_dimension(KERNEL, X, lam)
    np.testing.assert_allclose(found, dimension, rtol=1e-9)
    # Proposition 2 of pkawv, kappa = 1.
    assert log_det <= np.log(np.e + np.e * len(X) / lam) * found


@pytest.mark.parametrize("alpha", [2.0, 0.1])
def test_leverage_scores_and_online_effective_dimension(alpha):
    scores = np.diag(K @ np.linalg.inv(K + alpha * np.eye(60)))
    found = okl.theory.leverage_scores(KERNEL, X, alpha)
    np.testing.assert_allclose(found, scores, rtol=1e-9)
    online = sum(
        (K[:t, :t] @ np.linalg.inv(K[:t, :t] + alpha * np.eye(t)))[-1, -1] for t in range(1, 61)
    )
    dimension = okl.theory.online_effective_dimension(KERNEL, X, alpha)
    np.testing.assert_allclose(dimension, online, rtol=1e-9)
    assert found.sum() <= dimension <= okl.theory.log_det(KERNEL, X, alpha)


def test_kernel_alignment_is_its_formula(monkeypatch):
    y = np.sign(Y)
    expected = np.trace(K) - y @ K @ y / 60
    np.testing.assert_allclose(okl.theory.kernel_alignment(KERNEL, X, y), expected, rtol=1e-12)
    for block in (7, 20, 60):  # rows of K that are there at a time
        monkeypatch.setattr("oklnumba.theory.dimension.BLOCK", block)
        found = okl.theory.kernel_alignment(KERNEL, X, y)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    ideal = okl.theory.kernel_alignment(okl.Linear(), y[:, None], y)
    np.testing.assert_allclose(ideal, 0.0, atol=1e-12)


@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_comparator_is_the_penalised_argmin(lam):
    best = okl.theory.comparator(KERNEL, X, Y, lam)
    a = np.linalg.solve(K + lam * np.eye(60), Y)
    np.testing.assert_allclose(best.predictions, K @ a, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(best.loss, ((Y - K @ a) ** 2).sum(), rtol=1e-9)
    np.testing.assert_allclose(best.norm, np.sqrt(a @ K @ a), rtol=1e-9)
    for _ in range(20):  # no other function is better
        b = a + 0.1 * RNG.standard_normal(60)
        assert ((Y - K @ b) ** 2).sum() + lam * b @ K @ b > best.loss + lam * best.norm**2


def test_regret_is_against_the_comparator_of_each_prefix():
    predictions = RNG.standard_normal(60)
    regret = okl.theory.regret(predictions, KERNEL, X, Y, 0.3)
    for t in (1, 7, 60):
        best = naive.penalised_comparator(K[:t, :t], Y[:t], 0.3)
        expected = ((Y[:t] - predictions[:t]) ** 2).sum() - best
        np.testing.assert_allclose(regret[t - 1], expected, rtol=1e-9)


def test_bounds_add_up_to_their_formulas():
    features = okl.TaylorFeatures(3, 0.7)
    F = naive.taylor(X, 3, 0.7)
    mu = np.linalg.eigvalsh(K - F @ F.T)[-1]
    np.testing.assert_allclose(okl.theory.projection_gap(KERNEL, features, X), mu, rtol=1e-9)
    awv = 0.5 * 4.0 + 9.0 * np.linalg.slogdet(K / 0.5 + np.eye(60))[1]
    found = okl.theory.awv_bound(KERNEL, X, 0.5, B=3.0, norm=2.0)
    np.testing.assert_allclose(found, awv, rtol=1e-9)
    found = okl.theory.pkawv_bound(KERNEL, features, X, 0.5, B=3.0, norm=2.0)
    np.testing.assert_allclose(found, awv + (mu + 0.5) * 60 * mu * 9.0 / 0.25, rtol=1e-9)


def test_theorem_4_holds_from_the_degree_it_asks():
    lam, radius, sigma = 1.0, 0.5, 1.0
    small = X * radius / np.sqrt((X**2).sum(axis=1)).max()
    degree = okl.theory.taylor_degree(len(X), lam, radius, sigma)
    assert degree == 9  # ceil(2 log 60)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(degree, sigma), lam), small, Y)
    kernel = okl.Gaussian(sigma)
    bound = 1.5 * okl.theory.awv_bound(kernel, small, lam, B=np.abs(Y).max())
    assert run.regret(kernel, lam)[-1] <= bound


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: okl.theory.log_det(KERNEL, X, 0.0), "lam"),
        (lambda: okl.theory.log_det("gaussian", X, 1.0), "kernel"),
        (lambda: okl.theory.log_det(KERNEL, X * np.nan, 1.0), "row 0"),
        (lambda: okl.theory.comparator(KERNEL, X, Y[:-1], 1.0), "shape"),
        (lambda: okl.theory.leverage_scores(KERNEL, X, -1.0), "alpha"),
        (lambda: okl.theory.kernel_alignment(KERNEL, X, Y), "-1 and"),
        (lambda: okl.theory.taylor_degree(0, 1.0, 1.0, 1.0), "n must"),
        (lambda: okl.theory.taylor_degree(9, 1.0, -1.0, 1.0), "radius"),
        (lambda: okl.theory.awv_bound(KERNEL, X, 1.0, B=-1.0), "B must"),
        (lambda: okl.theory.log_det(okl.Linear(), np.ones((5, 1)), 1e-30), "raise lam"),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "function",
    [
        lambda X: okl.theory.log_det(KERNEL, X, 1.0),
        lambda X: okl.theory.leverage_scores(KERNEL, X, 1.0),
        lambda X: okl.theory.effective_dimension(KERNEL, X, 1.0),
        lambda X: okl.theory.online_effective_dimension(KERNEL, X, 1.0),
        lambda X: okl.theory.kons_bound(KERNEL, X),
        lambda X: okl.theory.kons_bound(KERNEL, X, "hinge"),
        lambda X: okl.theory.sketched_kons_bound(KERNEL, X, 0.5),
        lambda X: okl.theory.kors_size_bound(KERNEL, X),
    ],
)
def test_one_matrix_of_all_pairs_is_enough(function):
    many = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    function(many)
    tracemalloc.start()
    try:
        function(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 600 * 600 * 8 < peak < 1.1 * 600 * 600 * 8


# ---- comparators of every loss ----

SIGNS = np.where(Y > 0, 1.0, -1.0)


def objective(a, y, lam, loss):
    f = K @ a
    return okl.losses.get(loss).value(f, y).sum() + lam * a @ K @ a


@pytest.mark.parametrize("lam", [1.0, 0.05])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "absolute"])
def test_no_function_is_better_than_the_comparator(loss, lam):
    y = Y if loss == "absolute" else SIGNS
    best = okl.theory.comparator(KERNEL, X, y, lam, loss)
    total = best.loss + lam * best.norm**2
    a = np.linalg.lstsq(K, best.predictions, rcond=1e-12)[0]
    np.testing.assert_allclose(objective(a, y, lam, loss), total, rtol=1e-6)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(30):
            other = a + size * np.abs(a).max() * RNG.standard_normal(60) / 8
            assert objective(other, y, lam, loss) > total * (1 - 1e-6)


@pytest.mark.parametrize("lam", [1.0, 0.05])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_comparators_are_those_of_scikit_learn(loss, lam):
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    F = naive.gram_features(K)
    settings = {"C": 1 / (2 * lam), "fit_intercept": False, "tol": 1e-8, "max_iter": 1_000_000}
    model = (
        LogisticRegression(**settings) if loss == "logistic" else LinearSVC(loss=loss, **settings)
    )
    w = model.fit(F, SIGNS).coef_[0]
    best = okl.theory.comparator(KERNEL, X, SIGNS, lam, loss)
    np.testing.assert_allclose(best.norm, np.linalg.norm(w), rtol=1e-3)
    np.testing.assert_allclose(best.predictions, F @ w, atol=2e-3 * best.norm)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_norm_ball_comparator(loss):
    y = SIGNS
    best = okl.theory.norm_ball_comparator(KERNEL, X, y, 1.5, loss)
    assert 1.5 * (1 - 1e-5) < best.norm <= 1.5
    a = np.linalg.lstsq(K, best.predictions, rcond=1e-12)[0]
    for size in (1.0, 1e-1, 1e-2):
        for _ in range(30):
            other = a + size * RNG.standard_normal(60) / 8
            other *= min(1.0, 1.5 / np.sqrt(other @ K @ other))
            assert okl.losses.get(loss).value(K @ other, y).sum() > best.loss * (1 - 1e-5)
    wide = okl.theory.norm_ball_comparator(okl.Linear(), [[1.0], [2.0]], [1.0, 1.0], 1e3, loss)
    assert wide.norm <= 1e3


@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize("landmarks", [2, 8, 60])
def test_comparator_over_features_and_its_gap(lam, landmarks):
    features = okl.NystromFeatures(X[:landmarks], KERNEL)
    found = okl.theory.comparator(KERNEL, X, Y, lam, features=features)
    exact = okl.theory.comparator(KERNEL, X, Y, lam)
    loss = found.loss + lam * found.norm**2 - (exact.loss + lam * exact.norm**2)
    gap = okl.theory.comparator_gap(KERNEL, features, X, Y, lam)
    assert -1e-9 <= loss <= gap + 1e-9
    if landmarks == 60:
        assert gap < 1e-6
    else:
        assert loss > 1e-4


def test_a_comparator_that_is_not_proved_is_an_error(monkeypatch):
    monkeypatch.setattr("oklnumba.theory.hindsight.GAP", -1.0)
    with pytest.raises(FloatingPointError, match=r"above the best.*raise lam \(now 0.5\)"):
        okl.theory.comparator(KERNEL, X, SIGNS, 0.5, "hinge")
    with pytest.raises(FloatingPointError, match="lower radius=7.0"):
        okl.theory.norm_ball_comparator(KERNEL, X, SIGNS, 7.0)


def test_a_loss_without_a_solver_is_refused():
    for call in (okl.theory.comparator, okl.theory.norm_ball_comparator):
        with pytest.raises(ValueError, match="loss must be one of squared"):
            call(KERNEL, X, Y, 1.0, loss="epsilon_insensitive")


def test_a_stream_too_long_for_an_exact_comparator_says_what_to_do():
    with pytest.raises(ValueError, match="X has 20001 rows.*pass features"):
        okl.theory.comparator(KERNEL, np.zeros((20_001, 1)), np.zeros(20_001), 1.0)


# ---- regret curves ----


@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_regret_curve_is_that_of_dense_comparators(lam):
    run = okl.run(okl.KernelAWV(KERNEL, lam=0.5), X, Y)
    at = [1, 2, 30, 59, 60]
    curve = run.regret(KERNEL, lam, at=at)
    loss = np.cumsum((Y - run.predictions) ** 2)
    last = okl.theory.comparator(KERNEL, X, Y, lam)
    for k, t in enumerate(at):
        best = okl.theory.comparator(KERNEL, X[:t], Y[:t], lam)
        np.testing.assert_allclose(curve.prefix[k], loss[t - 1] - best.loss, atol=1e-9)
        penalised = loss[t - 1] - best.loss - lam * best.norm**2
        np.testing.assert_allclose(curve.prefix_penalised[k], penalised, atol=1e-9)
        final = loss[t - 1] - ((Y - last.predictions)[:t] ** 2).sum()
        np.testing.assert_allclose(curve.final[k], final, atol=1e-9)
        np.testing.assert_allclose(curve.final_penalised[k], final - lam * last.norm**2, atol=1e-9)
    np.testing.assert_allclose(curve.prefix_penalised, run.regret(KERNEL, lam)[np.array(at) - 1])
    np.testing.assert_array_equal(run.regret(KERNEL, lam, at=4).rounds, [15, 30, 45, 60])
    assert run.regret(KERNEL, lam, at=1000).rounds.tolist() == list(range(1, 61))
    for bad in ([0], [61], [3, 3], [2, 1], [], [1.5], 0, "text"):
        with pytest.raises(ValueError, match=r"\bat\b"):
            run.regret(KERNEL, lam, at=bad)


# ---- subspaces and the bounds of pkawv ----


@pytest.mark.parametrize("landmarks", [1, 5, 20])
def test_projection_gap_by_lanczos(landmarks):
    features = okl.NystromFeatures(X[:landmarks], KERNEL)
    F = features.transform(X)
    expected = np.linalg.eigvalsh(K - F @ F.T)[-1]
    exact = okl.theory.projection_gap(KERNEL, features, X)
    np.testing.assert_allclose(exact, expected, rtol=1e-8, atol=1e-10)
    lanczos = okl.theory.projection_gap(KERNEL, features, X, method="lanczos")
    np.testing.assert_allclose(lanczos, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("lam", [10.0, 1.0, 1e-2])
def test_proposition_2(lam):
    assert okl.theory.log_det(KERNEL, X, lam) <= okl.theory.log_det_bound(KERNEL, X, lam)


def test_taylor_bound_wants_the_degree_of_theorem_4():
    with pytest.raises(ValueError, match="degree is 3, but Theorem 4 asks for"):
        okl.theory.taylor_bound(okl.TaylorFeatures(3, 1.0), X, 1.0)
    degree = okl.theory.taylor_degree(60, 1.0, np.sqrt((X**2).sum(axis=1).max()), 1.5)
    found = okl.theory.taylor_bound(okl.TaylorFeatures(degree, 1.5), X, 1.0, B=2.0, norm=3.0)
    log_det = np.linalg.slogdet(naive.gaussian(X, X, 1.5) + np.eye(60))[1]
    np.testing.assert_allclose(found, 9.0 + 1.5 * 4.0 * log_det)


def test_capacity_bound_is_theorem_6_or_3_with_the_parameters_of_the_corollaries():
    n, m, gamma = 10_000, 300, 0.3
    for known in (False, True):
        found = okl.theory.capacity_bound(n, m, gamma, B=2.0, norm=3.0, known_inputs=known)
        mu, lam = n * m ** (-1 / gamma), found.lam
        rest = (mu + lam) * n * mu / lam**2 if known else 2 * (m + 1) * n * mu / lam
        capacity = (n / lam) ** gamma * np.log(np.e + np.e * n / lam)
        np.testing.assert_allclose(found.bound, 9 * lam + 4 * (capacity + rest), rtol=1e-12)
        np.testing.assert_allclose(found.mu, mu, rtol=1e-12)
        assert mu <= lam


@pytest.mark.parametrize("gamma", [0.25, np.sqrt(2) - 1, 0.75])
def test_rates_minimise_the_forms_of_equation_8(gamma):
    found = okl.theory.rates(gamma, points=41)
    lam = np.linspace(-1.0, 2.0, 3001)[:, None]  # log_n lam
    a = found["a"]
    d_eff = gamma * (1 - lam)
    forms = {
        "PKAWV": np.maximum(np.maximum(lam, d_eff), 2 + a - a / gamma - lam),
        "PKAWV (beforehand features)": np.maximum(np.maximum(lam, d_eff), 2 - a / gamma - lam),
        "Sketched-KONS": np.maximum(lam, 1 - a + d_eff),
        "Pros-N-KONS": np.maximum(a + np.maximum(lam, d_eff), 2 - a / gamma - lam),
    }
    for name, form in forms.items():
        expected = np.minimum.accumulate(np.minimum(form.min(axis=0), 1.0))
        np.testing.assert_allclose(found[name], expected, atol=2e-3, err_msg=name)


# ---- the meter ----


@pytest.mark.parametrize("features", [okl.TaylorFeatures(3, 0.9), okl.FourierFeatures(20)])
def test_the_meter_measures_the_kernel_of_its_features(features):
    F = features.transform(X)
    gram = F @ F.T
    meter = okl.theory.Meter(features, lam=0.3)
    with pytest.raises(ValueError, match="partial_fit"):
        meter.read()
    learner = okl.KernelAWV(KERNEL)
    run = okl.run(learner, meter.follow(X, SIGNS, every=25))
    assert run.rounds == 60 and [reading.rounds for reading in meter.history] == [25, 50, 60]
    for t, reading in zip((25, 50, 60), meter.history, strict=True):
        values = np.linalg.eigvalsh(gram[:t, :t])
        np.testing.assert_allclose(reading.effective_dimension, (values / (values + 0.3)).sum())
        np.testing.assert_allclose(reading.log_det, np.log1p(values / 0.3).sum())
        aligned = SIGNS[:t] @ gram[:t, :t] @ SIGNS[:t] / t
        np.testing.assert_allclose(reading.alignment, np.trace(gram[:t, :t]) - aligned)
    pairs = [(X[:30], SIGNS[:30]), (X[30:], SIGNS[30:])]
    again = okl.theory.Meter(features, lam=0.3)
    assert len(list(again.follow(pairs))) == 2
    np.testing.assert_allclose(again.read(), meter.read(), rtol=1e-12)
    before = again.read()
    for bad in ((X, SIGNS[:3]), (X * np.nan, SIGNS), (X[:, :1], SIGNS)):
        with pytest.raises(ValueError):
            again.partial_fit(*bad)
    assert again.read() == before
