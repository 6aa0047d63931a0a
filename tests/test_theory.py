"""theory.py against dense linear algebra."""

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
        monkeypatch.setattr(okl.theory, "BLOCK", block)
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
