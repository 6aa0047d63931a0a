"""Kernels of users' own classes, and matrices: learners play them as the compiled twin."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests import battery
from tests.checks import one_by_one, refused
from tests.reference import naive

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (150, 3))
Y = np.sin(3 * X[:, 0]) * X[:, 1]


class Own(okl.Kernel):
    sigma: float = 0.7

    def evaluate(self, X, Z):
        return naive.gaussian(X, Z, self.sigma)


class Wrong(okl.Kernel):
    shape: bool = True

    def evaluate(self, X, Z):
        return np.ones((len(X), 1 + len(Z))) if self.shape else np.full((len(X), len(Z)), np.nan)


class OfTwoPoints(okl.Kernel):
    dot: bool = True

    def evaluate(self, x, z):
        return x @ z if self.dot else np.sum(x) * np.sum(z)


class Missing(okl.Kernel):
    pass


TWIN = okl.Gaussian(0.7)
LEARNERS = {
    "KernelAWV": lambda k: okl.KernelAWV(k, lam=0.1),
    "KernelRidge": okl.KernelRidge,
    "PKAWV": lambda k: okl.PKAWV(okl.NystromFeatures(X[:20], k), lam=0.1),
    "OGD": lambda k: okl.WithFeatures(okl.NystromFeatures(X[:20], k), okl.OGD(0.5)),
    "Metric": lambda k: okl.KernelAWV(okl.Metric(k, [1.0, 2.0, 0.0])),
    "Standardized": lambda k: okl.Standardized(okl.KernelRidge(k)),
}
# The indices of a matrix, some twice.
MATRIX = okl.Precomputed(TWIN(X))
ROWS = RNG.permutation(np.arange(240) % 150)[:, None].astype(float)
SIGNS = np.where(Y > 0, 1.0, -1.0)[ROWS[:, 0].astype(int)]
VECTORS = X[ROWS[:, 0].astype(int)]
SMALL = {
    okl.NystromAWV: {"mu": 0.1},
    okl.SketchedKONS: {"gamma": 0.5},
    okl.BOGD: {"budget": 30},
    okl.KRLS: {"threshold": 0.1},
    okl.NOGD: {"budget": 40, "rank": 20},
    okl.SkeGD: {"budget": 64, "sketch": 32, "rank": 20},
}
ON_INDICES = {
    cls.__name__: lambda kernel, cls=cls: battery.make(cls, kernel=kernel, **SMALL.get(cls, {}))
    for cls in battery.LEARNERS
    if "kernel" in battery.make(cls).get_params(deep=False)
} | {"BAO2KS": lambda kernel: okl.BAO2KS([kernel], budget=30)}
DEEP = {  # a matrix within other learners
    "Monitored": lambda kernel: okl.Monitored(okl.Intervals(okl.POMDR(kernel))),
    "Experts": lambda kernel: okl.Experts(
        [okl.KernelAWV(kernel), okl.Monitored(okl.KRLS(kernel))], B=None
    ),
    "SelfTuning": lambda kernel: okl.SelfTuning(budget=10, experts=[okl.KRLS(kernel)]),
    "PKAWV": lambda kernel: okl.PKAWV(okl.NystromFeatures(ROWS[:20], kernel)),
    "OGD": lambda kernel: okl.WithFeatures(okl.NystromFeatures(ROWS[:9], kernel), okl.OGD()),
}
CASES = [pytest.param(make, Own(), X, X, Y, id=name) for name, make in LEARNERS.items()] + [
    pytest.param(make, MATRIX, ROWS, VECTORS, SIGNS, id=f"{name}, indices")
    for name, make in ON_INDICES.items()
]


def test_a_kernel_and_a_basis_may_write_into_their_points():
    class InPlace(okl.Kernel):
        def evaluate(self, X, Z):
            X /= 3.0
            Z /= 3.0
            return X @ Z.T

    def center(X):
        X -= 5.0
        return X

    given = X.copy()
    basis = okl.WithFeatures(okl.BasisFeatures(center, np.eye), okl.LinearAWV())
    for learner, twin, points in (
        (okl.KernelAWV(InPlace()), okl.KernelAWV(okl.Linear()), X / 3.0),
        (basis, okl.LinearAWV(), X - 5.0),
    ):
        expected = okl.run(twin, points, Y).predictions
        assert_allclose(okl.run(learner, given, Y).predictions, expected, rtol=1e-9)
        assert_array_equal(given, X)


@pytest.mark.parametrize("make, kernel, rows, points, y", CASES)
def test_forecasts_are_those_of_the_compiled_kernel(make, kernel, rows, points, y, tmp_path):
    learner = make(kernel)
    run, expected = okl.run(learner, rows, y), okl.run(make(TWIN), points, y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-7, atol=1e-9)
    assert_array_equal(run.sizes, expected.sizes)
    assert_allclose(one_by_one(make(kernel), rows, y), run.predictions, rtol=1e-8, atol=1e-10)
    if run.certificate is not None:
        assert_allclose(run.certificate.bound, expected.certificate.bound, rtol=1e-7)
    learner.save(tmp_path / "learner.npz")
    again = okl.load(tmp_path / "learner.npz", classes=[Own])
    assert_array_equal(again.predict(rows), learner.predict(rows))


@pytest.mark.parametrize("wrap", [okl.Standardized, okl.Lags, okl.Horizon])
def test_what_changes_inputs_refuses_the_rows_of_a_matrix(wrap):
    refused("leave [A-Z][a-z]+ out", wrap, okl.Monitored(okl.KRLS(MATRIX)))
    refused("leave Metric out", okl.Metric, MATRIX, [2.0])


def test_matrices_theory_and_regret():
    assert_allclose(Own()(X), TWIN(X), rtol=1e-12)
    assert_allclose(Own().diag(X), np.ones(150))
    run = okl.run(okl.FOGD(loss="squared", sigma=0.7), X, Y)
    assert_allclose(run.regret(Own(), 1.0), run.regret(TWIN, 1.0), rtol=1e-8)
    dimensions = [okl.theory.effective_dimension(kernel, X, 1.0) for kernel in (Own(), TWIN)]
    assert dimensions[0] == pytest.approx(dimensions[1])
    for loss, y in (("squared", Y), ("hinge", np.sign(Y))):
        best, twin = (okl.theory.Hindsight(k, X, y, 1.0, loss).comparator() for k in (Own(), TWIN))
        assert best.loss == pytest.approx(twin.loss, rel=1e-6) and best.lower <= best.upper
    tables = [okl.regret_vs_size(okl.KernelAWV(k), X, Y, k, 1.0) for k in (Own(), TWIN)]
    for column in ("regret", "bound"):
        own, twin = (table.rows[0][column] for table in tables)
        assert own == pytest.approx(twin, rel=1e-6)


@pytest.mark.parametrize(
    "make", [okl.NystromAWV, okl.KONS, okl.POMDR, okl.KRLS, okl.NOGD, okl.ProsNKONS]
)
def test_compiled_loops_refuse_it(make):
    learner = make(Own())
    refused("a kernel of your own.*KernelRidge.*Precomputed", learner.learn_one, X[0], 1.0)
    assert learner.rounds == 0 and learner.predict_one(X[0]) == 0.0


def test_wrong_kernels_say_what_is_wrong():
    for kernel, message in (
        (Wrong(), r"Wrong.evaluate\(X, Z\) must be finite numbers of shape"),
        (Wrong(shape=False), "finite numbers"),
        (OfTwoPoints(), r"OfTwoPoints.evaluate.*failed: .*; X \(n, d\) and Z \(m, d\) are many"),
        (OfTwoPoints(dot=False), r"shape \(\d+, \d+\), k\(X\[i\], Z\[j\]\) for all rows"),
        (Missing(), r"Missing needs a method evaluate\(X, Z\)"),
    ):
        refused(message, kernel, X)
        refused(type(kernel).__name__, okl.KernelAWV(kernel).partial_fit, X, Y)


def test_features_samplers_and_comparators():
    sampler = okl.KORS(MATRIX, alpha=0.1).partial_fit(ROWS)
    twin = okl.KORS(TWIN, alpha=0.1).partial_fit(VECTORS)
    assert_array_equal(sampler.indices_, twin.indices_)
    features = okl.NystromFeatures(sampler.landmarks_, MATRIX)
    run = okl.run(okl.PKAWV(features), ROWS, SIGNS)
    features = okl.NystromFeatures(twin.landmarks_, TWIN)
    expected = okl.run(okl.PKAWV(features), VECTORS, SIGNS)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-6, atol=1e-9)
    ours = okl.run(okl.KernelAWV(MATRIX), ROWS, SIGNS).regret(MATRIX, 1.0)
    assert_allclose(ours, okl.run(okl.KernelAWV(TWIN), VECTORS, SIGNS).regret(TWIN, 1.0))


@pytest.mark.parametrize("played", [0, 50])
@pytest.mark.parametrize("bad", [-1.0, 150.0, 0.5])
@pytest.mark.parametrize("make", (ON_INDICES | DEEP).values(), ids=ON_INDICES | DEEP)
def test_rows_that_the_matrix_lacks_change_nothing_at_any_depth(make, bad, played):
    message = rf"X has {bad:g}; .* integers from 0 to 149"
    learner, wrong = make(MATRIX), ROWS.copy()
    wrong[200] = bad
    if played:
        learner.learn_one([3.0], 1.0).partial_fit(ROWS[:played], SIGNS[:played])
        learner.predict_one(ROWS[0])  # from now on vectors are taken without a look at their type
    rounds, before = learner.rounds, learner.predict(ROWS)
    for call in (
        lambda: learner.predict_one(np.array([bad])),
        lambda: learner.learn_one(np.array([bad]), 1.0),
        lambda: learner.predict(wrong),
        lambda: learner.partial_fit(wrong, SIGNS),
        lambda: okl.run(learner, wrong, SIGNS),
        lambda: okl.run(okl.MultiOutput(learner), wrong, SIGNS[:, None]),
    ):
        refused(message, call)
    assert learner.rounds == rounds
    assert_array_equal(learner.predict(ROWS), before)
