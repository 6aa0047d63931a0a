"""Kernel-AWV, PKAWV and the linear AWV against the textbook, and their certificates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from oklnumba.hot.awv import RIDGE, Certificate, Rounds, certify
from oklnumba.hot.primitives.jit import NOT_FINITE
from tests.checks import Factor, assert_close, poisoned
from tests.reference import naive, naive_linear
from tests.streams import KERNELS, D, every_hard_stream, hard, linear_stream, smooth

# Every kernel with one lam, every lam with one kernel: rows of a kernel know nothing of lam.
every_kernel = pytest.mark.parametrize(
    ("kernel", "lam"), [*((kernel, 1e-3) for kernel in KERNELS), (KERNELS[0], 1.0)], ids=repr
)

# ---- forecasts are those of the definition ----


@every_kernel
@pytest.mark.parametrize("awv", [True, False])
def test_exact_kernel_learners_equal_the_dense_argmin(kernel, lam, awv):
    X, y = smooth()
    K = naive.kernel_function(kernel)(X, X)
    learner = (okl.KernelAWV if awv else okl.KernelRidge)(kernel, lam=lam)
    expected = naive.kernel_forecasts(K, y, lam, awv)
    assert_close(okl.run(learner, X, y).predictions, expected)


@pytest.mark.parametrize("lam", [1.0, 1e-3])
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
@pytest.mark.parametrize("kind", ["taylor", "fourier", "nystrom"])
def test_pkawv_equals_the_dense_argmin(kind, forecaster, lam):
    X, y = smooth()
    features = {
        "taylor": okl.TaylorFeatures(3, sigma=0.8, center=[0.1, 0.0, -0.2]),
        "fourier": okl.FourierFeatures(15, sigma=0.8, seed=3),
        "nystrom": okl.NystromFeatures(X[:12], okl.Laplacian(0.9)),
    }[kind]
    F = features.transform(X)
    if kind == "taylor":  # the basis too from its definition
        F = naive.taylor(X, 3, 0.8, np.array([0.1, 0.0, -0.2]))
    expected = naive.feature_forecasts(F, y, lam, forecaster == "awv")
    assert_close(
        okl.run(okl.PKAWV(features, lam=lam, forecaster=forecaster), X, y).predictions, expected
    )


@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6, 1e-9, 1e-12])
def test_small_lam_costs_no_digits(lam):
    """The factor is updated, not the inverse: a dense solve in double precision is worse."""
    X, y = smooth(n=120, d=2)
    F = naive.taylor(X, 4, 1.0).astype(np.longdouble)
    exact = np.empty(len(y))
    for t in range(len(y)):
        A = lam * np.eye(F.shape[1]) + F[: t + 1].T @ F[: t + 1]
        exact[t] = F[t] @ naive.longdouble_solve(A, F[:t].T @ y[:t])
    found = okl.run(okl.PKAWV(okl.TaylorFeatures(4, sigma=1.0), lam=lam), X, y).predictions
    assert_close(found, exact, rtol=1e-12)


def test_known_inputs_is_pkawv_on_the_span_of_a_kors_dictionary():
    X, y = smooth()
    kernel = okl.Gaussian(1.0)
    run = okl.run(okl.PKAWV.known_inputs(kernel, X, lam=0.1, mu=0.3, seed=2), X, y)
    atoms = okl.KORS(kernel, alpha=0.3, seed=2).partial_fit(X).landmarks_
    K = naive.gaussian(X, atoms)
    values, vectors = np.linalg.eigh(naive.gaussian(atoms, atoms))
    F = K @ vectors / np.sqrt(values)
    assert_close(run.predictions, naive.feature_forecasts(F, y, 0.1, True), rtol=1e-8)


def test_linear_awv_and_ridge_are_the_argmins_of_their_definitions():
    X, y = linear_stream(7)
    for cls, awv in ((okl.LinearAWV, True), (okl.LinearRidge, False)):
        for lam in (1.0, 0.01):
            run = okl.run(cls(lam), X, y)
            expected = naive.feature_forecasts(X, y, lam, awv)
            assert_allclose(run.predictions, expected, rtol=1e-8, atol=1e-10)
            learner = cls(lam).partial_fit(X, y)
            ridge = naive_linear.quadratic_argmin(X.T @ X + lam * np.eye(D), X.T @ y)
            assert_allclose(learner.w, ridge, rtol=1e-8)
            with pytest.raises(ValueError, match="learn_one"):
                learner.update(X[0])
    assert run.certificate is not None


# ---- exactness of the bulk calls ----


@pytest.mark.parametrize("bad", [0, 1, 2, 3, 7, 13, 16])
def test_awv_rounds_say_in_which_round_a_forecast_is_not_finite(bad):
    rng = np.random.default_rng(18)
    Z, y = rng.standard_normal((17, 5)), rng.uniform(-1, 1, 17)
    Z[bad, 2] = np.nan
    factor = Factor(5, 1.0)
    played, status = factor.play(Z, y)
    assert (played, status) == (bad, NOT_FINITE)
    assert np.isfinite(factor.forecasts).all() and len(factor.forecasts) == bad


# ---- the certificate, and the theorems as tests ----


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_certify_against_plain_sums_and_in_two_parts(ridge, discount):
    rng = np.random.default_rng(23)
    n = 12
    Y, F = rng.uniform(-1, 1, (n, 2)), rng.uniform(-1, 1, (n, 2))
    shrinks, growths = 1 + rng.random(n), 0.01 * rng.random((n, 2))
    totals = np.zeros((2, 6))
    totals[:, RIDGE] = ridge
    out = Rounds(F, poisoned(n, 2), shrinks, growths)
    certificate = Certificate(totals, *poisoned(3, n, 2))
    for first, stop in ((0, 5), (5, n)):
        certify(Y, first, stop, out, discount, certificate)
    rounds = np.arange(n)
    weights = np.tril(discount ** np.abs(rounds[:, None] - rounds))
    s = shrinks[:, None]
    m = F if ridge else F * s
    loss = weights @ (Y - F) ** 2
    comparator = weights @ ((Y - m) ** 2 / s - growths)
    bound = weights @ (Y**2 * (1 - 1 / s) + growths) + 1e-12 * loss  # for rounding
    expected = np.full((n, 2), np.nan) if ridge else bound
    np.testing.assert_allclose(certificate.loss, loss, rtol=1e-13)
    np.testing.assert_allclose(certificate.comparator, comparator, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(certificate.bound, expected, rtol=1e-13)


@every_hard_stream
@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_kernel_awv_certificate_is_exact_and_proposition_1_holds(kind, lam):
    X, y = hard(kind)
    kernel = okl.Gaussian(0.7)
    run = okl.run(okl.KernelAWV(kernel, lam=lam), X, y)
    K = naive.gaussian(X, X, 0.7)
    expected = [naive.penalised_comparator(K[:t, :t], y[:t], lam) for t in range(1, len(y) + 1)]
    certificate = run.certificate
    np.testing.assert_allclose(certificate.comparator, expected, rtol=1e-9)
    np.testing.assert_allclose(certificate.loss, np.cumsum((y - run.predictions) ** 2), rtol=1e-12)
    np.testing.assert_allclose(certificate.regret, run.regret(kernel, lam), rtol=1e-9, atol=1e-9)
    shares = [
        np.linalg.solve(K[:t, :t] + lam * np.eye(t), K[:t, t - 1])[-1]  # z' A_t^-1 z
        for t in range(1, len(y) + 1)
    ]
    np.testing.assert_allclose(certificate.bound, np.cumsum(y**2 * shares), rtol=1e-9)
    assert (certificate.regret <= certificate.bound).all()
    assert certificate.bound[-1] < okl.theory.awv_bound(kernel, X, lam, np.abs(y).max())


@every_hard_stream
@pytest.mark.parametrize("degree", [1, 3, 6])
def test_pkawv_certificate_is_exact_and_theorem_3_holds(kind, degree):
    X, y = hard(kind)
    lam, features = 0.5, okl.TaylorFeatures(degree, sigma=0.7)
    run = okl.run(okl.PKAWV(features, lam=lam), X, y)
    F = naive.taylor(X, degree, 0.7)
    G = F @ F.T
    expected = [naive.penalised_comparator(G[:t, :t], y[:t], lam) for t in range(1, len(y) + 1)]
    np.testing.assert_allclose(run.certificate.comparator, expected, rtol=1e-9)
    after = [lam * np.eye(F.shape[1]) + F[:t].T @ F[:t] for t in range(1, len(y) + 1)]
    shares = [z @ np.linalg.solve(A, z) for z, A in zip(F, after, strict=True)]
    bound = np.cumsum(y**2 * shares) + 1e-12 * run.certificate.loss  # for rounding
    np.testing.assert_allclose(run.certificate.bound, bound, rtol=1e-8)
    assert (run.certificate.regret <= run.certificate.bound).all()
    kernel = okl.Gaussian(0.7)
    regret = run.regret(kernel, lam)  # now against the whole RKHS
    bound = okl.theory.pkawv_bound(kernel, features, X, lam, np.abs(y).max())
    assert regret[-1] <= bound


def test_ridge_has_no_bound_and_breaks_the_one_of_awv():
    """Negative control: the artificial point (x_t, 0) is what the bound rests on."""
    n = 60
    y = 50.5 * np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.linspace(0, 1, n)[:, None]
    kernel, lam = okl.Gaussian(1.0), 1e-4
    awv = okl.run(okl.KernelAWV(kernel, lam=lam), X, y).certificate
    ridge = okl.run(okl.KernelRidge(kernel, lam=lam), X, y).certificate
    np.testing.assert_allclose(ridge.comparator, awv.comparator, rtol=1e-12)
    assert np.isnan(ridge.bound).all()
    assert (awv.regret <= awv.bound).all()
    assert (ridge.regret > awv.bound).any()


def test_certificate_goes_on_from_the_rounds_before_the_run():
    X, y = smooth(n=90)
    learner = okl.PKAWV(okl.TaylorFeatures(2, sigma=1.0))
    whole = okl.run(okl.PKAWV(okl.TaylorFeatures(2, sigma=1.0)), X, y).certificate
    learner.partial_fit(X[:50], y[:50])
    rest = okl.run(learner, X[50:], y[50:]).certificate
    for a, b in zip(whole[:4], rest[:4], strict=True):
        np.testing.assert_array_equal(a[50:], b)


# ---- trouble ----


@pytest.mark.parametrize(
    "learner",
    [
        okl.KernelAWV(okl.Gaussian(1.0), lam=1e-300),
        okl.KernelAWV(okl.Polynomial(4), lam=1.0),
        okl.PKAWV(okl.TaylorFeatures(2), lam=1.0),
        okl.NystromAWV(okl.Polynomial(4), lam=1.0),
    ],
    ids=repr,
)
def test_numerical_trouble_names_the_round_and_what_to_change(learner):
    X = np.array([[1.0], [1.0], [1.0]]) * (1e90 if "Polynomial" in repr(learner) else 1.0)
    y = np.array([1.0, 1e308, 1e308])
    with (
        np.errstate(all="ignore"),
        pytest.raises(FloatingPointError, match=r"round \d.*raise lam.*reset"),
    ):
        learner.partial_fit(np.concatenate([X, X]), np.concatenate([y, -y * 1.7]))
    with pytest.raises(FloatingPointError, match="reset"):
        learner.predict_one([1.0])
    learner.reset()
    if "1e-300" not in repr(learner):
        assert np.isfinite(learner.learn_one([0.5], 1.0).predict_one([0.5]))


def test_low_captured_share_is_said_by_run():
    X = np.full((10, 3), 9.0)
    with pytest.warns(UserWarning, match="centre the basis"):
        okl.run(okl.PKAWV(okl.TaylorFeatures(2, sigma=1.0)), X, np.ones(10))
