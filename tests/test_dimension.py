"""Log determinants, effective dimensions and leverage scores against dense linear algebra."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import oklnumba as okl
from tests.points import KERNEL, SIGNS, K, X, Y


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


def test_kernel_alignment_is_its_formula():
    y = np.sign(Y)
    expected = np.trace(K) - y @ K @ y / 60
    np.testing.assert_allclose(okl.theory.kernel_alignment(KERNEL, X, y), expected, rtol=1e-12)
    found = okl.theory.kernel_alignment(KERNEL, X, y)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    ideal = okl.theory.kernel_alignment(okl.Linear(), y[:, None], y)
    np.testing.assert_allclose(ideal, 0.0, atol=1e-12)


@pytest.mark.parametrize("landmarks", [1, 5, 20])
def test_projection_gap_by_lanczos(landmarks):
    features = okl.NystromFeatures(X[:landmarks], KERNEL)
    F = features.transform(X)
    expected = np.linalg.eigvalsh(K - F @ F.T)[-1]
    exact = okl.theory.projection_gap(KERNEL, features, X)
    np.testing.assert_allclose(exact, expected, rtol=1e-8, atol=1e-10)
    lanczos = okl.theory.projection_gap(KERNEL, features, X, method="lanczos")
    np.testing.assert_allclose(lanczos, expected, rtol=1e-5, atol=1e-9)


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
def test_one_matrix_of_all_pairs_is_enough(function, monkeypatch):
    monkeypatch.setattr("oklnumba.core.cholesky.BLOCK", 8)  # of 600 rows as 512 are of 40,000
    monkeypatch.setattr("oklnumba.components.kernels.ROWS", 8)  # of 600 rows as 256 are of 20,000
    many = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    function(many)
    tracemalloc.start()
    try:
        function(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 600 * 600 * 8 < peak < 1.1 * 600 * 600 * 8


# ---- the meter ----


@pytest.mark.parametrize("features", [okl.TaylorFeatures(3, sigma=0.9), okl.FourierFeatures(20)])
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
