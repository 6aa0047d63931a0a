"""KRLS against least squares over its projected data."""

from __future__ import annotations

import numpy as np
import pytest

import oklnumba as okl
from tests import naive_expansions
from tests.compare import assert_close
from tests.expansions import KERNEL, assert_supports, data


@pytest.mark.parametrize("threshold", [0.3, 0.03, 0.003])
def test_krls_equals_least_squares_over_its_projected_data(threshold):
    X, y, K, _ = data("squared")
    learner = okl.KRLS(KERNEL, threshold)
    run = okl.run(learner, X, y)
    forecasts, supports, a = naive_expansions.krls(K, y, threshold)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    np.testing.assert_array_equal(learner.atoms, X[supports[-1]])
    assert_close(learner.coefficients, a)
