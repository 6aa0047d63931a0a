"""Linear learners on features: named learners are compositions."""

import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from tests.linear_games import data, two_faced


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
    Z = features.transform(X)
    expected = okl.run(linear, Z, y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-9, atol=1e-11)
    assert_allclose(lifted.w, linear.w, rtol=1e-8, atol=1e-11)
    assert_allclose(lifted.predict(X), linear.predict(Z), rtol=1e-8, atol=1e-10)
    assert learner.rounds in (0, 60)  # untouched here (other tests play it)
