"""Kernels of scaled inputs, wherever a kernel goes; scales learned by a gradient's mean squares."""

import copy
from functools import partial

import numpy as np
import pytest
import scipy.sparse
import scipy.spatial
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

import oklnumba as okl
from oklnumba import theory
from oklnumba.components.kernels import Kernel, compute_gradients
from oklnumba.components.metric import measure_scales
from oklnumba.core.guard import finish
from oklnumba.core.params import Params
from tests.battery import CASES, SAMPLERS, assert_same_proofs, by_hand, make, stream
from tests.checks import refused
from tests.streams import KERNELS

W = np.array([1.7, 0.0, 0.3])
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def points(n=60, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


# ---- the gradient of a fit ----


def fit_slowly(kernel, Z, y, lam, chosen):
    """Return f + b of a Nystrom ridge with a free intercept, from its normal equations."""
    C, n = Z[chosen], len(Z)
    F = np.column_stack([kernel(Z, C), np.ones(n)])
    penalty = np.zeros((len(C) + 1,) * 2)
    penalty[:-1, :-1] = lam * kernel(C)
    a = np.linalg.lstsq(F.T @ F + penalty, F.T @ y, rcond=1e-13)[0]
    return lambda X: kernel(X, C) @ a[:-1] + a[-1]


@every_kernel
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_scales_are_those_of_finite_differences_of_a_fit(kernel, shift):
    """At its atoms a Laplacian has a kink, and the two sides of a finite difference cancel."""
    shift *= not isinstance(kernel, okl.Polynomial | okl.Linear)
    X, w, h = points(n=80) + shift, np.array([2.0, 0.5, 1.0]), 1e-5
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 2.0 + 0.01 * np.arange(80)
    chosen = np.sort(np.random.default_rng(4).choice(80, 15, replace=False))
    f, g = fit_slowly(kernel, X * w, y, 0.5, chosen), np.zeros(3)
    for i in range(3):
        step = h * np.eye(3)[i]
        g[i] = np.mean(((f((X + step) * w) - f((X - step) * w)) / (2 * h)) ** 2)
    expected = np.sqrt(g / g.mean() + 0.01)
    p = getattr(kernel, "norm", 2)
    expected *= np.linalg.norm(X.std(axis=0), p) / np.linalg.norm((X * expected).std(axis=0), p)
    rng = np.random.default_rng(4)
    found = finish(measure_scales(kernel, X, y, w, rng, lam=0.5, atoms=15, floor=0.01))
    assert_allclose(found, expected, rtol=1e-5)


@every_kernel
def test_gradients_are_those_of_finite_differences(kernel):
    X, Z, a, h = points(7), points(4, seed=1), np.array([1.0, -2.0, 0.5, 3.0]), 1e-6
    for i in range(3):
        step = h * np.eye(3)[i]
        slope = (kernel(X + step, Z) - kernel(X - step, Z)) @ a / (2 * h)
        found = compute_gradients(kernel, X, Z, a[:, None])[0, :, i]
        assert_allclose(found, slope, rtol=1e-6, atol=1e-8)


def test_a_laplacian_has_gradient_0_at_its_centre_and_nothing_overflows_far_away():
    for kernel in KERNELS[:4]:
        X = np.array([[0.1, 0.2, 0.3], [1e9, 0.0, 0.0]])
        found = compute_gradients(kernel, X, X[:1], np.array([[2.0]]))
        assert_array_equal(found, np.zeros((1, 2, 3)))


@every_kernel
def test_threads_of_blas_and_a_shift_of_the_labels_change_nothing(kernel):
    X = points(3000)
    y, w = np.sign(X[:, 0] - 0.3 * X[:, 2]), np.ones(3)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(finish(measure_scales(kernel, X, y, w, np.random.default_rng(0))))
    assert_array_equal(*found)
    shifted = finish(measure_scales(kernel, X, y + 5.0, w, np.random.default_rng(0)))
    assert_allclose(shifted, found[0], rtol=1e-6)


# ---- learned scales ----


@every_kernel
@pytest.mark.parametrize("signs", [False, True])
def test_scales_find_the_column_that_matters_and_keep_the_mean_squared_distance(kernel, signs):
    X = points(1500, d=5)
    y = np.sign(X[:, 3]) if signs else np.sin(2 * X[:, 3])
    metric = okl.learned_metric(kernel, X, y)
    again = okl.learned_metric(kernel, X, y)
    assert repr(metric.kernel) == repr(kernel) and metric.scales.shape == (5,)
    assert_array_equal(metric.scales, again.scales)
    assert metric.scales[3] > 5 * np.delete(metric.scales, 3).max()
    if getattr(kernel, "norm", 2) == 2:
        one, other = (scipy.spatial.distance.pdist(Z) for Z in (X, X * metric.scales))
        assert (other**2).mean() == pytest.approx((one**2).mean(), rel=1e-9)


def test_a_metric_is_where_the_passes_start():
    X = points(400)
    y = np.sin(3 * X[:, 0] * X[:, 2])
    kernel = okl.Gaussian(0.5)
    first = okl.learned_metric(kernel, X, y, passes=1)
    second = finish(measure_scales(kernel, X, y, first.scales, np.random.default_rng(0)))
    assert_array_equal(okl.learned_metric(first, X, y, passes=1).scales, second)


@every_kernel
def test_inputs_and_labels_that_say_nothing(kernel):
    X, learn = points(50), okl.learned_metric
    assert_array_equal(learn(kernel, X, np.full(50, 3.7)).scales, np.ones(3))
    assert_array_equal(learn(kernel, X[:1], [2.0]).scales, np.ones(3))
    assert_array_equal(learn(kernel, np.zeros((9, 3)), np.arange(9.0)).scales, np.ones(3))
    assert_array_equal(learn(kernel, np.ones((9, 2)), np.arange(9.0)).scales, np.ones(2))
    assert np.isfinite(learn(kernel, X[:2], [1.0, -1.0]).scales).all()
    repeated = np.repeat(X[:3], 20, axis=0)
    assert np.isfinite(learn(kernel, repeated, np.arange(60.0)).scales).all()
    X[:, 1] = 0.25  # a constant column says nothing
    scales = learn(kernel, X, np.sin(4 * X[:, 0])).scales
    assert scales[1] < 0.5 * scales[0] and np.isfinite(scales).all()
    assert learn(okl.Gaussian(1.0), X, np.sin(4 * X[:, 0]), floor=0.0).scales[1] == 0.0


# ---- the kernel itself ----


@every_kernel
def test_a_metric_is_the_kernel_on_scaled_inputs(kernel):
    X, Z, metric = points(700), points(5, seed=1), okl.Metric(kernel, W.tolist())
    assert_array_equal(metric(X, Z), kernel(X * W, Z * W))
    assert_array_equal(metric(X), kernel(X * W))
    assert_array_equal(metric(scipy.sparse.csr_array(X), Z), kernel(X * W, Z * W))
    assert_array_equal(metric.diag(X), kernel.diag(X * W))
    for factor in (1.0, 1e-30, 1e30):
        assert metric.advice(factor * X) == kernel.advice(factor * X * W)


# ---- wherever a kernel goes ----


def scale(value, w, outer=True):
    """Return a value with each kernel in a Metric (``outer``), or with landmarks scaled."""
    if isinstance(value, Kernel):
        return okl.Metric(value, w) if outer else value
    if isinstance(value, okl.NystromFeatures) and not outer:
        return okl.NystromFeatures(value.landmarks * w, value.kernel, rank=value.rank)
    if isinstance(value, list | tuple):
        return [scale(one, w, outer) for one in value]
    if isinstance(value, Params):
        params = value.get_params(deep=False)
        return type(value)(**{name: scale(one, w, outer) for name, one in params.items()})
    return value


def has_kernel(case):
    return "Gaussian" in repr(params := make(case)) or "Matern" in repr(params)


NYSTROM = okl.NystromFeatures(points(9, seed=3), okl.Gaussian(1.0), rank=7)
GRID = [okl.KRLS(okl.Gaussian(1.0), threshold=c) for c in (0.1, 0.3)]
FORMS = [
    pytest.param(partial(make, *case.values), marks=case.marks)
    for case in CASES
    if has_kernel(*case.values)
]
FORMS += [
    lambda: okl.PKAWV(NYSTROM),
    lambda: okl.WithFeatures(NYSTROM, okl.OGD()),
    lambda: okl.Experts([okl.PKAWV(NYSTROM, lam=lam) for lam in (1.0, 0.1)]),
    lambda: okl.Experts(GRID),
    lambda: okl.Standardized(okl.KRLS(okl.Gaussian(1.0))),
    lambda: okl.Intervals(okl.NystromAWV(okl.Gaussian(1.0))),
    lambda: okl.BAO2KS(okl.Gaussian(1.0)),
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: repr(form())[:60])


@every_form
def test_bits_are_those_of_scaled_inputs(form, tmp_path):
    plain = form()
    X, y = stream(plain, 200)
    # What scales its inputs itself sees the kernel's scales after its own.
    w = np.array([1.7, 0.0, 0.3]) if not isinstance(plain, okl.Standardized) else np.ones(3)
    Z = X * w
    mine, other = scale(plain, w), scale(plain, w, outer=False)
    run, expected = okl.run(mine, X, y), okl.run(other, Z, y)
    assert_array_equal(run.predictions, expected.predictions)
    assert_array_equal(run.sizes, expected.sizes)
    assert_same_proofs(run.certificate, expected.certificate)
    assert_array_equal(mine.predict(X), other.predict(Z))
    assert mine.health().digits == other.health().digits

    mine.save(tmp_path / "mine.npz")
    mine = okl.load(tmp_path / "mine.npz")
    mine, other = copy.deepcopy(mine), other
    assert repr(mine) == repr(scale(plain, w)) and "Metric" in repr(mine)
    for part in (slice(0, 70), slice(70, 71), slice(71, 200)):
        mine.partial_fit(X[part], y[part])
        other.partial_fit(Z[part], y[part])
    for again in range(2):
        assert_array_equal(by_hand(mine, X[:40], y[:40]), by_hand(other, Z[:40], y[:40]))
        for x in (X[5], X[5], -X[5] + 0.0, X[5] * [1.0, 2.0, 1.0], X[6]):
            assert mine.predict_one(x) == other.predict_one(x * w) == mine.predict_one(x.tolist())
            mine.learn_one(x if again else x.tolist(), y[0])
            other.learn_one(x * w, y[0])
            assert mine.predict_one(x) == other.predict_one(x * w)
    assert mine.rounds == other.rounds and mine.size == other.size
    if not isinstance(form(), okl.Intervals | okl.Standardized):
        refused("nan|inf", lambda: mine.predict_one(np.array([np.nan, 1.0, 1.0])))


@pytest.mark.parametrize("cls", SAMPLERS, ids=lambda cls: cls.__name__)
def test_samplers_show_points_in_the_units_of_the_user(cls):
    X = points(500)
    mine = cls(okl.Metric(okl.Gaussian(0.3), W)).fit(X[:300]).partial_fit(X[300:])
    other = cls(okl.Gaussian(0.3)).fit(X[:300] * W).partial_fit(X[300:] * W)
    assert_array_equal(mine.indices_, other.indices_)
    assert_array_equal(mine.probabilities_, other.probabilities_)
    assert_array_equal(mine.landmarks_, X[mine.indices_])
    assert_array_equal(mine.transform(X), other.transform(X * W))
    assert_array_equal(copy.deepcopy(mine).transform(X), mine.transform(X))
    refused("the kernel's metric has 3 scales", lambda: mine.fit(X[:, :2]))
    assert len(mine.landmarks_) == len(mine.indices_) > 3  # as it was
    refused("the kernel's metric has 3 scales", lambda: mine.reset().partial_fit(X[:, :2]))
    assert mine.partial_fit(X).size > 3


def test_theory_takes_a_metric():
    X, metric, kernel = points(300), okl.Metric(okl.Gaussian(0.5), W), okl.Gaussian(0.5)
    y = np.sign(X[:, 0])
    best = [theory.comparator(*one, y, 1.0).loss for one in ((metric, X), (kernel, X * W))]
    assert best[0] == best[1]
    for formula in (theory.effective_dimension, theory.log_det, theory.leverage_scores):
        assert_array_equal(formula(metric, X, 1.0), formula(kernel, X * W, 1.0))
    assert theory.kernel_alignment(metric, X, y) == theory.kernel_alignment(kernel, X * W, y)
    run = okl.run(okl.KernelAWV(metric), X, y)
    assert run.regret(metric, 1.0)[-1] == pytest.approx(run.certificate.regret[-1], rel=1e-6)
    assert run.certificate.space == f"the RKHS of {metric!r}"
    shares = NYSTROM.set_params(rank=None).captured(X * W)
    landmarks = NYSTROM.landmarks
    assert_array_equal(
        okl.NystromFeatures(landmarks, okl.Metric(NYSTROM.kernel, W)).captured(X),
        okl.NystromFeatures(landmarks * W, NYSTROM.kernel).captured(X * W),
    )
    assert len(shares) == 300


def test_the_width_of_a_metric_is_that_of_the_inputs():
    message = "X has 2 columns, but the kernel's metric has 3 scales; give okl.Metric one scale"
    X, metric = points(30)[:, :2], okl.Metric(okl.Gaussian(), W)
    for learner in (okl.KRLS(metric), okl.BAO2KS([metric]), okl.Experts([okl.KernelAWV(metric)])):
        for play in (
            lambda one: okl.run(one, X, np.ones(30)),
            lambda one: one.partial_fit(X, np.ones(30)),
            lambda one: one.learn_one(X[0], 1.0),
        ):
            refused(message, play, learner)
            assert learner.rounds == 0
    refused(message, metric, X)
    learner = okl.KRLS(metric).learn_one(np.ones(3), 1.0)
    assert not learner._can_widen
    assert okl.warm_up(okl.KRLS(metric))


def test_several_kernels_share_one_metric():
    kernels = [okl.Metric(okl.Gaussian(s), W) for s in (0.5, 2.0)]
    assert okl.BAO2KS(kernels).kernels[1].kernel.sigma == 2.0
    message = "kernels must share one metric; give each the same scales"
    for other in (okl.Gaussian(0.5), okl.Metric(okl.Gaussian(0.5), 2 * W)):
        refused(message, okl.BAO2KS, [*kernels, other])
