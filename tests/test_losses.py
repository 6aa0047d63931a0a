"""Losses, in Python and in loops: values and derivatives by their formulas, constants on grids."""

import math

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import losses
from oklnumba.hot.primitives import losses as loops
from oklnumba.hot.primitives.losses import loss_derivative, loss_value, loss_values
from tests.reference import naive

EVERY = [*losses.LOSSES.values(), losses.get("quantile(0.9)")]
every_loss = pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)


def labels(loss, C):
    return np.array([-1.0, 1.0]) if loss.classes else np.linspace(-C, C, 9)


@every_loss
def test_values_are_their_formulas_and_derivatives_the_slopes(loss):
    h = 1e-6
    for y in labels(loss, 2.0):
        for f in np.linspace(-3.03, 3.01, 62):  # no kink among them
            value = loss_value(loss.code, f, y)
            assert value == pytest.approx(naive.LOSS_VALUES[loss.name](f, y), rel=1e-13, abs=1e-15)
            slope = (loss_value(loss.code, f + h, y) - loss_value(loss.code, f - h, y)) / (2 * h)
            assert loss_derivative(loss.code, f, y) == pytest.approx(slope, abs=1e-8)
            assert loss.derivative(f, y) == loss_derivative(loss.code, f, y)


@every_loss
def test_a_recorded_loss_has_the_bits_of_the_compiled_one(loss):
    rng = np.random.default_rng(0)
    forecasts = rng.standard_normal(1000) * 10.0 ** rng.integers(-160, 160, 1000)
    y = rng.choice([-1.0, 1.0], 1000) if loss.classes else rng.standard_normal(1000)
    compiled = np.full(1000, np.nan)
    with np.errstate(over="ignore"):
        loss_values(loss.code, forecasts, y, compiled)
        one_by_one = [loss_value(loss.code, *pair) for pair in zip(forecasts, y, strict=True)]
    np.testing.assert_array_equal(compiled, one_by_one)
    np.testing.assert_array_equal(loss.value(forecasts, y), compiled)
    np.testing.assert_array_equal(loss.value(forecasts[:, None], y[:, None])[:, 0], compiled)


@every_loss
@pytest.mark.parametrize("C", [0.5, 1.0, 3.0])
def test_curvature_holds_and_is_the_largest_that_does(loss, C):
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


@every_loss
@pytest.mark.parametrize("C", [0.5, 2.0])
def test_lipschitz_is_the_largest_slope(loss, C):
    slopes = [abs(loss.derivative(f, y)) for y in labels(loss, C) for f in np.linspace(-C, C, 201)]
    np.testing.assert_allclose(max(slopes), loss.lipschitz(C), rtol=1e-12)


def test_loss_derivative_is_zero_at_a_kink():
    assert loss_derivative(loops.ABSOLUTE, 0.3, 0.3) == 0.0
    for y in (-1.0, 1.0):
        assert loss_derivative(loops.HINGE, y, y) == 0.0
        assert loss_derivative(loops.HINGE, y * np.nextafter(1.0, 0.0), y) == -y
        assert loss_derivative(loops.SQUARED_HINGE, y, y) == 0.0


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("learner", [okl.OGD(0.5, schedule="sqrt"), okl.CoinBetting()])
def test_the_quantile_loss_finds_the_quantile(learner, level):
    learner.reset().set_params(loss=f"quantile({level})")
    rng = np.random.default_rng(0)
    y = rng.exponential(size=6000)
    forecasts = okl.run(learner, np.ones((6000, 1)), y).predictions[2000:]
    assert np.mean(y[2000:] <= forecasts) == pytest.approx(level, abs=0.03)
    assert forecasts.mean() == pytest.approx(-np.log(1.0 - level), rel=0.12)


def test_levels():
    median, half = losses.get("quantile"), losses.get("quantile(0.5)")
    assert median.value([1.0], [3.0]) == half.value([1.0], [3.0])
    assert losses.get("quantile(.25)").lipschitz(1.0) == 0.75


@pytest.mark.parametrize("margin", [1e-12, 30.0, 40.0, 700.0, 1e4, 1e300])
def test_logistic_loss_far_out(margin):
    value, slope = loss_value, loss_derivative
    with np.errstate(under="ignore"):
        tail = math.log1p(math.exp(-margin))
        assert value(loops.LOGISTIC, margin, 1.0) == pytest.approx(tail, rel=1e-14)
        assert value(loops.LOGISTIC, margin, -1.0) == pytest.approx(margin + tail, rel=1e-14)
        share = math.exp(-margin) / (1 + math.exp(-margin))
        assert slope(loops.LOGISTIC, margin, 1.0) == pytest.approx(-share, rel=1e-14)
        assert slope(loops.LOGISTIC, margin, -1.0) == pytest.approx(1 - share, rel=1e-14)
