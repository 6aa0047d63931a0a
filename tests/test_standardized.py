"""Any learner behind an online standardiser: the same as playing what the standardiser gives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.battery import assert_same_proofs, every_learner, labels, make


def raw(learner, n=120):
    """Return inputs on scales that no learner is made for, and labels."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((n, 3))
    return Z * [1e-4, 1e5, 1.0] + [0.0, 1e9, -50.0], labels(learner, Z[:, 0] * Z[:, 1])


@every_learner
def test_it_is_the_learner_on_the_stream_of_the_standardiser(cls, tmp_path):
    learner = okl.Standardized(make(cls), clip=3.0)
    X, y = raw(learner)
    run = okl.run(learner, X, y)
    scaler, plain = okl.Standardizer(3.0), make(cls)
    expected = okl.run(plain, scaler.stream(X), y)
    for name in ("predictions", "losses", "sizes"):
        assert_array_equal(getattr(run, name), getattr(expected, name))
    assert run.loss == expected.loss and learner.size == plain.size
    assert_array_equal(learner.predict(X), plain.predict(scaler.transform(X)))
    assert_same_proofs(run.certificate, expected.certificate)
    if expected.certificate is not None and plain._space():  # GrowingPKAWV does not name its own
        assert run.certificate.space == f"{plain._space()}, of standardised inputs"
    learner.save(tmp_path / "one.npz")
    again = okl.load(tmp_path / "one.npz")
    assert_array_equal(
        okl.run(again, X[:20], y[:20]).predictions, okl.run(learner, X[:20], y[:20]).predictions
    )


def test_scales_do_not_matter():
    Z = np.random.default_rng(2).standard_normal((300, 2))
    y = np.sign(Z[:, 0] * Z[:, 1])
    learners = [okl.Standardized(okl.KernelRidge(okl.Gaussian(1.0))) for _ in range(2)]
    near, far = (
        okl.run(learner, X, y)
        for learner, X in zip(learners, (Z, Z * [2.0**30, 2.0**-20] + [2.0**45, 0.0]), strict=True)
    )
    # The first inputs after the very first are not scaled: there the units still show.
    assert near.mistakes[150:].mean() < 0.2 and far.mistakes[150:].mean() < 0.2
    with pytest.warns(UserWarning, match="the kernel is 0"):
        raw_run = okl.run(okl.KernelRidge(okl.Gaussian(1.0)), Z * [2.0**30, 2.0**-20], y)
    assert raw_run.mistakes[150:].mean() > 0.4  # control


def test_refusals():
    X, y = raw(okl.LinearRidge())
    for clip in (0, -1.0, np.nan, "text"):
        with pytest.raises(ValueError, match="clip"):
            okl.Standardized(okl.LinearRidge(), clip=clip).partial_fit(X, y)
    with pytest.raises(ValueError, match="learner"):
        okl.Standardized(3).partial_fit(X, y)
    learner = okl.Standardized(okl.LinearRidge()).partial_fit(X, y)
    assert_allclose(learner.predict(X * 0 + 1e300), learner.predict(X * 0 + 1e139))
    with pytest.raises(FloatingPointError, match="round 124"):
        learner.partial_fit(np.where(np.arange(120)[:, None] == 3, 1e300, X), y)
