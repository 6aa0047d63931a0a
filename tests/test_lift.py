"""Linear learners on features: named learners are compositions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.compiled import COMPILED
from tests.linear_games import data, two_faced

LIFTED = [
    (
        okl.FOGD(okl.FourierFeatures(30, seed=2), loss="logistic", eta=0.3),
        okl.WithFeatures(okl.FourierFeatures(30, seed=2), okl.OGD(0.3, loss="logistic")),
    ),
    (
        okl.FOGD(loss="hinge", eta=0.3, sigma=0.7, n_frequencies=20, seed=1),
        okl.WithFeatures(okl.FourierFeatures(20, sigma=0.7, seed=1), okl.OGD(0.3, loss="hinge")),
    ),
    (
        okl.PKAWV(okl.TaylorFeatures(3, sigma=0.8), lam=0.1),
        okl.WithFeatures(okl.TaylorFeatures(3, sigma=0.8), okl.LinearAWV(0.1)),
    ),
    (
        okl.PKAWV(okl.TaylorFeatures(2), lam=0.1, forecaster="ridge"),
        okl.WithFeatures(okl.TaylorFeatures(2), okl.LinearRidge(0.1)),
    ),
]


@pytest.mark.parametrize("named, lifted", LIFTED, ids=lambda one: repr(one)[:40])
def test_named_learners_are_compositions(named, lifted):
    X, y = data(8, n=700 if COMPILED else 150)
    y = np.where(y > 0, 1.0, -1.0) if named._loss().classes else y
    a, b = okl.run(named.reset(), X, y), okl.run(lifted.reset(), X, y)
    # FOGD makes Fourier features inside its loop, where products and sums are fused otherwise.
    assert_allclose(a.predictions, b.predictions, rtol=1e-10, atol=1e-13)
    assert_allclose(named.predict(X), lifted.predict(X), rtol=1e-10, atol=1e-13)
    assert (named.size, a.loss) == (lifted.size, b.loss)
    assert (a.certificate is None) == (b.certificate is None)
    if a.certificate is not None:
        assert_array_equal(a.certificate.bound, b.certificate.bound)
        assert_array_equal(a.certificate.regret, b.certificate.regret)


@pytest.mark.parametrize(
    "features",
    [
        okl.TaylorFeatures(2),
        okl.FourierFeatures(9),
        okl.NystromFeatures(data()[0][1:9], okl.Gaussian()),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("learner", [p.values[0] for p in two_faced("squared")], ids=repr)
def test_a_lifted_learner_is_the_learner_on_the_features(features, learner):
    X, y = data(9, n=150)
    lifted = okl.WithFeatures(features, learner)
    run = okl.run(lifted, X, y)
    linear = type(learner)(**learner.get_params())
    expected = okl.run(linear, features.transform(X), y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-9, atol=1e-11)
    assert_allclose(lifted.w, linear.w, rtol=1e-8, atol=1e-11)
    assert learner.rounds in (0, 60)  # untouched here (other tests play it)
