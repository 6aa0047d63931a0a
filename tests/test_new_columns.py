"""Columns that come late: a learner that takes them in is as if they had been 0 all along."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.learners.base.contents import copy_with_columns
from oklnumba.learners.base.learner import Learner
from tests.battery import contents, every_variant, labels, make, proofs
from tests.checks import COMPILED
from tests.streams import inputs

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
N, LATE, D = 240, 100, 4
FEATURES = {"AIOLI", "PKAWV", "FOGD", "WithFeatures", "GrowingPKAWV"}
SIMPLEX = {"ExponentiatedGradient", "Winnow"}
WAITS = {"Horizon"}  # its rows that wait for their labels have no such column


def stream(learner, kind, seed=0):
    """Return rounds whose last column is 0 before round LATE."""
    rng = np.random.default_rng(seed)
    X = inputs(kind, N, D, rng)
    X[:LATE, -1] = 0.0
    values = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, -1] + 0.1 * rng.standard_normal(N)
    return X, labels(learner, 0.5 * values)


@pytest.mark.parametrize("kind", ["sorted", "clustered"])
@every_variant
def test_a_late_column_was_zero_so_far(case, kind, tmp_path):
    learner, known = make(case), make(case)
    name, value = type(learner).__name__, getattr(case, "value", None)
    X, y = stream(learner, kind)
    okl.run(known, X[:LATE], y[:LATE])
    okl.run(learner, X[:LATE, :-1], y[:LATE])
    assert learner._can_widen == (name not in FEATURES | SIMPLEX | WAITS and value != "simplex")
    if not learner._can_widen or name == "SelfTuning":
        return
    before = contents(learner)
    wider = copy_with_columns(learner, D)
    assert contents(learner) == before and wider.rounds == LATE and wider._width == D
    wider.save(tmp_path / "wider.npz")
    again = okl.load(tmp_path / "wider.npz")
    assert_allclose(wider.predict(X), known.predict(X), rtol=1e-8, atol=1e-10)
    got, expected = (okl.run(one, X[LATE:], y[LATE:]) for one in (wider, known))
    assert_allclose(got.predictions, expected.predictions, rtol=1e-8, atol=1e-10)
    assert_array_equal(got.sizes, expected.sizes)
    if expected.certificate is not None:
        theirs = proofs(expected.certificate)
        for what, found in proofs(got.certificate).items():
            assert_allclose(found, theirs[what], rtol=1e-7, atol=1e-9)
    assert_array_equal(okl.run(again, X[LATE:], y[LATE:]).predictions, got.predictions)


def test_features_are_others_where_there_are_more_inputs():
    """Control: why learners on features ignore new columns."""
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    X[:, 2] = 0.0
    forecasts = [
        okl.PKAWV(okl.FourierFeatures(20)).partial_fit(X[:, :d], X[:, 0]).predict(X[:, :d])
        for d in (2, 3)
    ]
    assert np.abs(forecasts[0] - forecasts[1]).max() > 1e-3


def test_a_learner_from_outside_is_not_widened_unless_it_declares_its_state():
    class Mine(Learner):
        kernel = okl.Gaussian(1.0)

    assert not Mine()._can_widen
