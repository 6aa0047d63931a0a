"""Kernels of users' own classes: exact learners and features play them as the compiled twin."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.checks import one_by_one
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
    "MultiOutput": lambda k: okl.Standardized(okl.KernelRidge(k)),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


@every_learner
def test_forecasts_are_those_of_the_compiled_kernel(make, tmp_path):
    learner = make(Own())
    run, expected = okl.run(learner, X, Y), okl.run(make(TWIN), X, Y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-8, atol=1e-10)
    assert_allclose(one_by_one(make(Own()), X, Y), run.predictions, rtol=1e-8, atol=1e-10)
    if run.certificate is not None:
        assert_allclose(run.certificate.bound, expected.certificate.bound, rtol=1e-7)
    learner.save(tmp_path / "own.npz")
    again = okl.load(tmp_path / "own.npz", classes=[Own])
    assert_array_equal(again.predict(X), learner.predict(X))


def test_matrices_theory_and_regret():
    assert_allclose(Own()(X), TWIN(X), rtol=1e-12)
    assert_allclose(Own().diag(X), np.ones(150))
    run = okl.run(okl.FOGD(loss="squared", sigma=0.7), X, Y)
    assert_allclose(run.regret(Own(), 1.0), run.regret(TWIN, 1.0), rtol=1e-8)
    dimensions = [okl.theory.effective_dimension(kernel, X, 1.0) for kernel in (Own(), TWIN)]
    assert dimensions[0] == pytest.approx(dimensions[1])


@pytest.mark.parametrize(
    "make", [okl.NystromAWV, okl.KONS, okl.POMDR, okl.KRLS, okl.NOGD, okl.ProsNKONS]
)
def test_compiled_loops_refuse_it(make):
    learner = make(Own())
    with pytest.raises(ValueError, match="a kernel of your own.*use KernelAWV, KernelRidge"):
        learner.learn_one(X[0], 1.0)
    assert learner.rounds == 0 and learner.predict_one(X[0]) == 0.0


def test_wrong_kernels_say_what_is_wrong():
    for kernel, message in (
        (Wrong(), r"Wrong.evaluate\(X, Z\) must be finite numbers of shape"),
        (Wrong(shape=False), "finite numbers"),
        (OfTwoPoints(), r"OfTwoPoints.evaluate.*failed: .*; X \(n, d\) and Z \(m, d\) are many"),
        (OfTwoPoints(dot=False), r"shape \(\d+, \d+\), k\(X\[i\], Z\[j\]\) for all rows"),
        (Missing(), r"Missing needs a method evaluate\(X, Z\)"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel(X)
        with pytest.raises(ValueError, match=type(kernel).__name__):
            okl.KernelAWV(kernel).partial_fit(X, Y)
