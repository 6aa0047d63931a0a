"""KRLS against least squares over its projected data, and the rows of its factor."""

import math

import numpy as np
import pytest
import scipy.linalg

import oklnumba as okl
from oklnumba.hot.krls import least_squares_row
from tests.checks import (
    assert_close,
    assert_supports,
    close,
    poisoned,
    spd,
    untouched,
    upper_buffer,
    upper_part,
    with_poison,
)
from tests.reference import naive_expansions
from tests.streams import KERNEL, data


@pytest.mark.parametrize("threshold", [0.3, 0.03, 0.003])
def test_krls_equals_least_squares_over_its_projected_data(threshold):
    X, y, K, _ = data("squared")
    learner = okl.KRLS(KERNEL, threshold=threshold)
    run = okl.run(learner, X, y)
    forecasts, supports, a = naive_expansions.krls(K, y, threshold)
    assert_close(run.predictions, forecasts)
    assert_supports(run, learner, X, supports)
    np.testing.assert_array_equal(learner.atoms, X[supports[-1]])
    assert_close(learner.coefficients, a)


def update(Q, x, m):
    """Turn the factor of A into that of A + x x': a row of least squares, whatever its label."""
    least_squares_row(Q, poisoned(len(x)), x, 0.0, m)


def wrong_update(Q, x, m):
    """Negative control: a stale x, not rotated along."""
    for k in range(m):
        t = math.hypot(Q[k, k], x[k])
        c, s = Q[k, k] / t, x[k] / t
        Q[k, k] = t
        Q[k, k + 1 : m] = c * Q[k, k + 1 : m] + s * x[k + 1 : m]


def after_updates(update, m=12, cap=16, rounds=150):
    """Return the Q' Q after updates, and the dense matrix."""
    rng = np.random.default_rng(8)
    A = spd(rng, m)
    Q = upper_buffer(scipy.linalg.cholesky(A), cap)
    for _ in range(rounds):
        x = poisoned(cap)
        x[:m] = rng.standard_normal(m)
        A = A + np.outer(x[:m], x[:m])
        update(Q, x, m)
        assert untouched(x[m:])
    factor = upper_part(Q, m)
    return factor.T @ factor, A


@with_poison
def test_rows_of_least_squares_keep_the_factor():
    assert close(*after_updates(update), rtol=1e-12)
    assert not close(*after_updates(wrong_update), rtol=1e-3)


def test_a_row_of_least_squares_from_zero():
    Q, x = np.zeros((3, 3)), np.array([0.0, 2.0, -1.0])
    update(Q, x.copy(), 3)
    np.testing.assert_allclose(Q.T @ Q, np.outer(x, x), atol=1e-15)
