"""Log determinants, effective dimensions and leverage scores against dense linear algebra."""

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import theory
from tests.checks import peak_of, refused
from tests.streams import KERNEL, SIGNS, K, X, Y, inputs


@pytest.mark.parametrize("lam", [10.0, 1.0, 0.1, 1e-3])
def test_dimensions_are_those_of_dense_algebra(lam):
    eigenvalues = np.linalg.eigvalsh(K)
    log_det = np.log1p(eigenvalues / lam).sum()
    dimension = (eigenvalues / (eigenvalues + lam)).sum()
    np.testing.assert_allclose(theory.log_det(KERNEL, X, lam), log_det, rtol=1e-10)
    found = theory.effective_dimension(KERNEL, X, lam)
    np.testing.assert_allclose(found, dimension, rtol=1e-9)
    assert log_det <= np.log(np.e + np.e * len(X) / lam) * found  # pkawv Prop. 2, kappa = 1
    assert log_det <= theory.log_det_bound(KERNEL, X, lam)
    scores = theory.leverage_scores(KERNEL, X, lam)
    expected = np.diag(np.linalg.solve(K + lam * np.eye(60), K))
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    prefixes = [(K[:t, :t], K[:t, t - 1]) for t in range(1, 61)]
    online = sum(np.linalg.solve(P + lam * np.eye(len(P)), k)[-1] for P, k in prefixes)
    measured = theory.online_effective_dimension(KERNEL, X, lam)
    np.testing.assert_allclose(measured, online, rtol=1e-9)
    assert scores.sum() <= measured <= log_det


def test_kernel_alignment_is_its_formula():
    expected = np.trace(K) - SIGNS @ K @ SIGNS / 60
    np.testing.assert_allclose(theory.kernel_alignment(KERNEL, X, SIGNS), expected, rtol=1e-12)
    ideal = theory.kernel_alignment(okl.Linear(), SIGNS[:, None], SIGNS)
    np.testing.assert_allclose(ideal, 0.0, atol=1e-12)


@pytest.mark.parametrize("landmarks", [1, 5, 20])
def test_projection_gap_by_lanczos(landmarks):
    features = okl.NystromFeatures(X[:landmarks], KERNEL)
    F = features.transform(X)
    expected = np.linalg.eigvalsh(K - F @ F.T)[-1]
    exact = theory.projection_gap(KERNEL, features, X)
    np.testing.assert_allclose(exact, expected, rtol=1e-8, atol=1e-10)
    lanczos = theory.projection_gap(KERNEL, features, X, method="lanczos")
    np.testing.assert_allclose(lanczos, expected, rtol=1e-5, atol=1e-9)


G, W, INTEGERS = [[1.0, 2.0]], [0.5, 0.5], np.arange(1, 61)
REFUSED = [  # one call for each rule of theory/arguments.py, and for each rule of one function
    (lambda: theory.log_det(KERNEL, X, 0.0), "lam must"),
    (lambda: theory.log_det("gaussian", X, 1.0), "kernel must"),
    (lambda: theory.log_det(KERNEL, X * np.nan, 1.0), "row 0"),
    (lambda: theory.log_det(okl.Linear(), np.ones((5, 1)), 1e-30), "raise lam"),
    (lambda: theory.leverage_scores(KERNEL, X, alpha=-1.0), "alpha must"),
    (lambda: theory.kernel_alignment(KERNEL, X, Y), "-1 and"),
    (lambda: theory.projection_gap(KERNEL, KERNEL, X), "features must"),
    (lambda: theory.projection_gap(KERNEL, okl.TaylorFeatures(1), X, "qr"), "method must"),
    (lambda: theory.comparator(KERNEL, X, Y[:-1], 1.0), "shape"),
    (lambda: theory.comparator(KERNEL, X, Y, 1.0, loss="cubic"), "loss must be one of squared"),
    (lambda: theory.norm_ball_comparator(KERNEL, X, SIGNS, 0.0), "radius must"),
    (lambda: theory.taylor_degree(0, 1.0, 1.0, 1.0), "n must"),
    (lambda: theory.taylor_degree(9, 1.0, -1.0, 1.0), "radius must"),
    (lambda: theory.taylor_degree(9, 1.0, 1.0, sigma=0.0), "sigma must"),
    (lambda: theory.taylor_bound(okl.FourierFeatures(9), X, 1.0), "a TaylorFeatures"),
    (lambda: theory.taylor_bound(okl.TaylorFeatures(3), X, 1.0), "but Theorem 4 needs"),
    (lambda: theory.awv_bound(KERNEL, X, 1.0, B=-1.0), "B must"),
    (lambda: theory.nystrom_bound(KERNEL, X, 1.0, mu=2.0, size=3), "mu must .* = .0, 1.0."),
    (lambda: theory.nystrom_size_bound(KERNEL, X, 1.0, delta=1.0), "delta must"),
    (lambda: theory.growing_bound(KERNEL, X, Y, 1.0, INTEGERS[:59]), "60 integers"),
    (lambda: theory.growing_bound(KERNEL, X, Y, 1.0, INTEGERS + 0.0), "60 integers"),
    (lambda: theory.growing_bound(KERNEL, X, Y, 1.0, INTEGERS[::-1]), "never fall"),
    (lambda: theory.growing_bound(KERNEL, X, Y, 1.0, -INTEGERS), "never fall"),
    (lambda: theory.growing_bound(KERNEL, X, Y, 1.0, 0 * INTEGERS + 2), "at most one per round"),
    (lambda: theory.growing_bound(KERNEL, X, Y, 1.0, INTEGERS, okl.TaylorFeatures(2)), "at most 6"),
    (lambda: theory.capacity_bound(10, 3, gamma=1.0), "gamma must"),
    (lambda: theory.kons_bound(KERNEL, X, steps=-INTEGERS), "steps must"),
    (lambda: theory.sketched_kons_bound(KERNEL, X, 0.5, "hinge"), "with curvature"),
    (lambda: theory.kors_size_bound(KERNEL, X, eps=1.0), "eps must"),
    (lambda: theory.discounted_awv_bound(X, Y, 1.0, 0.0, X), "discount must"),
    (lambda: theory.discounted_awv_bound(X, Y, 1.0, 0.9, X[:3]), "comparators must"),
    (lambda: theory.pomdr_bound(KERNEL, X, SIGNS, 1.0, budget=1), "budget must"),
    (lambda: theory.pomdr_data_bound(-1.0, 1.0), "alignment must"),
    (lambda: theory.pomdr_data_bound(1.0, 1.0, removals=-1), "removals must"),
    (lambda: theory.ogd_bound(G, [1.0], 0.1), "w has 1 columns"),
    (lambda: theory.ogd_bound([[np.nan, 1.0]], W, 0.1), "gradients has nan at row 0, column 0"),
    (lambda: theory.p_norm_bound(G, W, 0.1, 3.0), "p must"),
    (lambda: theory.exponentiated_gradient_bound(G, [0.5, 0.6], 0.1), "simplex"),
    (lambda: theory.winnow_bound(G, [0.5], W), "-1 and"),
    (lambda: theory.adaptive_ftrl_bound(G, W, "nonsense"), "kind must"),
    (lambda: theory.adagrad_bound(G, W, sigma=3.0), "sigma must be at least"),
    (lambda: theory.svm_rounds(1.0, 0.0), "eps must"),
    (lambda: theory.experts_bound(0), "count must"),
    (lambda: theory.experts_bound(2, kind="nonsense"), "kind must"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_errors_say_what_is_wrong(call, message):
    refused(message, call)


@pytest.mark.parametrize(
    "function",
    [
        lambda X: theory.log_det(KERNEL, X, 1.0),
        lambda X: theory.leverage_scores(KERNEL, X, 1.0),
        lambda X: theory.online_effective_dimension(KERNEL, X, 1.0),
        lambda X: theory.kons_bound(KERNEL, X),
        lambda X: theory.kons_bound(KERNEL, X, "hinge"),
    ],
)
def test_one_matrix_of_all_pairs_is_enough(function, monkeypatch):
    monkeypatch.setattr("oklnumba.core.cholesky.BLOCK", 8)  # of 600 rows as 512 are of 40,000
    monkeypatch.setattr("oklnumba.components.kernels.ROWS", 8)  # of 600 rows as 256 are of 20,000
    many = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    function(many)
    assert 600 * 600 * 8 < peak_of(lambda: function(many))[0] < 1.1 * 600 * 600 * 8


@pytest.mark.parametrize("features", [okl.TaylorFeatures(3, sigma=0.9), okl.FourierFeatures(20)])
def test_the_meter_measures_the_kernel_of_its_features(features):
    F = features.transform(X)
    gram = F @ F.T
    meter = theory.Meter(features, lam=0.3)
    refused("partial_fit", meter.read)
    for start, t in ((0, 25), (25, 50), (50, 60)):
        reading = meter.partial_fit(X[start:t], SIGNS[start:t]).read()
        assert reading.rounds == t
        values = np.linalg.eigvalsh(gram[:t, :t])
        np.testing.assert_allclose(reading.effective_dimension, (values / (values + 0.3)).sum())
        np.testing.assert_allclose(reading.log_det, np.log1p(values / 0.3).sum())
        aligned = SIGNS[:t] @ gram[:t, :t] @ SIGNS[:t] / t
        np.testing.assert_allclose(reading.alignment, np.trace(gram[:t, :t]) - aligned)
    before = meter.read()
    for bad in ((X, SIGNS[:3]), (X * np.nan, SIGNS), (X[:, :1], SIGNS)):
        with pytest.raises(ValueError):
            meter.partial_fit(*bad)
    assert meter.read() == before


@pytest.mark.parametrize(
    "kind", ["uniform", "clustered", "repeated", "sorted", "lagged", "one point"]
)
def test_log_det_lies_between_the_meter_s_two_values(kind):
    """With few landmarks the two are far apart (the control), with all points they are equal."""
    stream = inputs(kind, 120, 2, np.random.default_rng(0))
    gaps = []
    for count in (2, 15, 120):
        meter = theory.Meter(okl.NystromFeatures(stream[:count], KERNEL), 0.1, KERNEL)
        for part in (stream[:50], stream[50:]):
            reading = meter.partial_fit(part, part[:, 0]).read()
        exact = theory.log_det(KERNEL, stream, 0.1)
        assert reading.log_det <= exact * (1 + 1e-9)
        assert reading.log_det_above >= exact * (1 - 1e-9)
        gaps.append(reading.log_det_above / reading.log_det)
    assert gaps[-1] < 1 + 1e-6
    assert kind == "one point" or gaps[0] > 1.5
    assert theory.Meter(okl.FourierFeatures(3)).partial_fit(X, Y).read().log_det_above == np.inf


@pytest.mark.parametrize("lam", [1e-3, 1e-8, 1e-12])
def test_bounds_on_the_log_det_hold_where_many_eigenvalues_are_0(lam):
    """Of one point again and again: log(1 + n / lam). Sixty others only round."""
    X = np.ones((20_000, 2))
    landmarks = np.vstack([X[:1], np.random.default_rng(0).standard_normal((60, 2))])
    features = okl.NystromFeatures(landmarks, okl.Gaussian(1.0))
    meter = theory.Meter(features, lam, okl.Gaussian(1.0)).partial_fit(X, X[:, 0])
    exact = np.log1p(len(X) / lam)
    assert meter.read().log_det <= exact <= meter.read().log_det_above
    assert meter.read().log_det >= exact - 0.1


def test_leverage_scores_are_never_negative():
    scores = theory.leverage_scores(okl.Gaussian(1.0), np.ones((50, 1)), 1e-14)
    assert scores.min() >= 0.0
