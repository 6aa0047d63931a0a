"""Discounted AWV and ridge against their definition; several labels a round; long silences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE
from tests.checks import COMPILED, Factor, assert_close
from tests.reference import naive
from tests.streams import HARD, hard

DISCOUNTS = (1.0, 0.999, 0.9, 0.5)

SPOKEN = np.random.default_rng(8).permutation(220) < 110
X, Y = hard("uniform", 220)
STREAMS = {kind: hard(kind, 220) for kind in HARD}
STREAMS["silent"] = X * SPOKEN[:, None] * [1.0, 0.0] + [0.0, 1e-3], Y


def assert_as_defined(run, expected, rtol=1e-9):
    forecasts, least = expected
    assert_close(run.predictions, forecasts, rtol=rtol)
    assert_close(run.certificate.comparator, least, rtol=rtol)


def every_discount(name, *lams):
    """Yield discounts with forecasters and lams: of two streams in turn, all four pairs of each."""
    turn = list(STREAMS).index(name)
    for i, discount in enumerate(DISCOUNTS):
        yield discount, ("awv", "ridge")[(i + turn) % 2], lams[(i // 2 + turn // 2) % 2]


@pytest.mark.parametrize("name", STREAMS)
def test_discounted_pkawv_equals_its_definition(name):
    X, y = STREAMS[name]
    features = okl.TaylorFeatures(2, sigma=1.0)
    F = features.transform(X)
    for discount, forecaster, lam in every_discount(name, 1.0, 1e-6):
        learner = okl.PKAWV(features, lam=lam, forecaster=forecaster, discount=discount)
        expected = naive.discounted_forecasts(F, y, lam, discount, forecaster == "awv")
        assert_as_defined(okl.run(learner, X, y), expected)


@pytest.mark.parametrize("cls", [okl.LinearAWV, okl.LinearRidge])
def test_discounted_linear_learners_equal_their_definition(cls):
    X, y = STREAMS["silent"]
    for discount in DISCOUNTS:
        run = okl.run(cls(0.1, discount=discount), X, y)
        expected = naive.discounted_forecasts(X, y, 0.1, discount, cls is okl.LinearAWV)
        assert_as_defined(run, expected)


@pytest.mark.parametrize("name", ["uniform", "sorted", "lagged", "clustered"])
def test_discounted_nystrom_awv_equals_its_definition(name):
    X, y = (part[:90] for part in STREAMS[name])
    for discount, forecaster, lam in every_discount(name, 1.0, 1e-3):
        learner = okl.NystromAWV(
            okl.Gaussian(0.7), lam=lam, mu=0.3, forecaster=forecaster, discount=discount
        )
        run = okl.run(learner, X, y)
        kept = np.flatnonzero(np.diff(run.sizes, prepend=0))
        assert kept[-1] > 2  # a direction with a past
        expected = naive.discounted_nystrom_forecasts(
            naive.gaussian, X / 0.7, y, lam, discount, kept, forecaster == "awv"
        )
        assert_as_defined(run, expected, rtol=1e-7)


# ---- the certificate of the discounted problem ----


def test_a_certificate_says_that_it_is_discounted():
    X, y = STREAMS["uniform"]
    assert "discounted" not in repr(okl.run(okl.LinearAWV(), X, y).certificate)
    lifted = okl.WithFeatures(okl.TaylorFeatures(1), okl.LinearAWV(discount=0.9))
    for learner in (lifted, okl.PKAWV(okl.TaylorFeatures(1), discount=0.9)):
        shown = repr(okl.run(learner, X, y).certificate)
        assert "of degree 1, rounds discounted by 0.9: regret" in shown
    ridge = okl.run(okl.LinearRidge(discount=0.9), X, y).certificate
    assert np.isnan(ridge.bound).all() and np.isfinite(ridge.comparator).all()


def test_half_the_bound_of_the_discounted_certificate_is_exceeded():
    run = okl.run(okl.LinearAWV(0.7, discount=0.1), [[1.0]] * 40, [1.0, -1.0] * 20)
    assert (run.certificate.regret <= run.certificate.bound).all()
    assert run.certificate.regret[-1] > run.certificate.bound[-1] / 2


# ---- silence ----


@pytest.mark.skipif(not COMPILED, reason="10^5 rounds")
@pytest.mark.parametrize("lam, discount", [(1.0, 0.5), (1e-6, 0.5), (1e-6, 0.99), (1.0, 1e-100)])
def test_long_silence_neither_underflows_nor_overflows(lam, discount):
    rng = np.random.default_rng(3)
    n, r = 100_000, 8
    Z, y = np.zeros((n, r)), rng.uniform(-1, 1, n)
    Z[:50] = rng.standard_normal((50, r))
    Z[50:, 0] = 2.0
    factor = Factor(r, lam, discount=discount)
    assert factor.play(Z, y) == (n, DONE)
    state = factor.state()
    assert np.isfinite(state).all()
    assert_allclose(factor.inv_d[1:], 1 / lam, rtol=1e-15)  # all that was heard is forgotten
    heard = 4.0 * discount / (1.0 - discount)  # a geometric sum
    assert factor.inv_d[0] == pytest.approx(1 / max(heard, lam), rel=1e-9)
    # without the floor the penalty has no digits left, and novelty is infinite
    bare = Factor(r, lam, discount=discount)
    bare.forgetting = bare.forgetting._replace(inv_floor=np.inf)
    assert bare.play(Z, y)[1] == NOT_FINITE


# ---- several labels a round ----


@pytest.mark.skipif(not COMPILED, reason="bits of compiled code")
def test_columns_behind_those_in_use_are_left_alone():
    rng = np.random.default_rng(5)
    Z, Y = rng.standard_normal((40, 11)), rng.standard_normal((40, 3))
    tight, wide = (Factor(11, 0.1, discount=0.9, outputs=3, spare=spare) for spare in (0, 16))
    for factor in (tight, wide):
        assert factor.play(Z, Y) == (40, DONE)
    assert_array_equal(wide.forecasts, tight.forecasts)
    assert_array_equal(wide.ridge_forecasts, tight.ridge_forecasts)
    assert_array_equal(wide.forecast(Z), tight.forecast(Z))
    assert_array_equal(wide.U[:16, :16], tight.U)
    assert_array_equal(wide.U[16:], np.eye(32)[16:])
    assert_array_equal(wide.inv_d[16:], 1 / 0.1)
    assert_array_equal(wide.c[:, 16:], 0.0)
    assert_allclose(
        wide.forecasts, np.array(wide.ridge_forecasts) / np.array(wide.shrinks)[:, None], rtol=1e-14
    )


def test_known_inputs_takes_a_discount():
    X, y = STREAMS["uniform"]
    learner = okl.PKAWV.known_inputs(okl.Gaussian(1.0), X, discount=0.9)
    assert learner.discount == 0.9
    fixed = okl.PKAWV(learner.features, discount=0.9)
    assert_array_equal(okl.run(learner, X, y).predictions, okl.run(fixed, X, y).predictions)
