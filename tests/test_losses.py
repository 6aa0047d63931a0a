"""losses.py: derivatives, curvature and Lipschitz constants by their definitions, on grids."""

import numpy as np
import pytest

from oklnumba import losses

NAMES = list(losses.LOSSES)


def labels(loss, C):
    return np.array([-1.0, 1.0]) if loss.classes else np.linspace(-C, C, 9)


@pytest.mark.parametrize("name", NAMES)
def test_derivative_is_the_slope(name):
    loss = losses.get(name)
    for y in labels(loss, 2.0):
        for f in np.linspace(-3.03, 3.01, 24):  # no kink among them
            slope = (loss.value(f + 1e-6, y) - loss.value(f - 1e-6, y)) / 2e-6
            np.testing.assert_allclose(loss.derivative(f, y), slope, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("C", [0.5, 1.0, 3.0])
def test_curvature_holds_and_is_the_largest_that_does(name, C):
    loss = losses.get(name)
    sigma = loss.curvature(C)
    a = np.linspace(-C, C, 301)
    best = np.inf
    for y in labels(loss, C):
        values = loss.value(a, y)
        for b, value in zip(a, values, strict=True):
            slope = loss.derivative(b, y)
            rest = values - value - slope * (a - b)
            square = 0.5 * (slope * (a - b)) ** 2
            assert (rest >= sigma * square - 1e-12).all()
            far = square > 1e-6
            if far.any():
                best = min(best, (rest[far] / square[far]).min())
    assert sigma <= best + 1e-9
    assert best <= 1.02 * sigma + 1e-6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("C", [0.5, 2.0])
def test_lipschitz_is_the_largest_slope(name, C):
    loss = losses.get(name)
    slopes = [abs(loss.derivative(f, y)) for y in labels(loss, C) for f in np.linspace(-C, C, 201)]
    np.testing.assert_allclose(max(slopes), loss.lipschitz(C), rtol=1e-12)


def test_logistic_does_not_overflow():
    loss = losses.get("logistic")
    np.testing.assert_allclose(loss.value([-1e4, 1e4], [1.0, 1.0]), [1e4, 0.0])
    assert loss.derivative(-1e4, 1.0) == -1.0
    assert loss.derivative(1e4, 1.0) == 0.0


def test_unknown_loss_and_bad_radius():
    with pytest.raises(ValueError, match="squared_hinge"):
        losses.get("square")
    with pytest.raises(ValueError, match="C must"):
        losses.get("squared").curvature(0.0)
