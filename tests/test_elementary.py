"""The compiled exp, sine and cosine against extended precision."""

import numpy as np

from oklnumba.hot.primitives.elementary import SINCOS_LARGEST, exp_nonpositive, sin_cos
from oklnumba.hot.primitives.features import fourier_block
from oklnumba.hot.primitives.rows import LAPLACIAN, kernel_row
from tests.checks import COMPILED, poisoned

MANY = 200_000 if COMPILED else 20_000  # points of a dense grid


def one_by_one(function, x):
    return np.array([function(v) for v in x.tolist()]).T


def exps_in_a_row(x):
    """Return exp(x) as the loop over a row of atoms computes it, which vectorises."""
    out = poisoned(len(x))
    rate = np.array([1.0, 0.0, 0.0])  # exp(-sqrt(x^2)), and the root of a square is exact
    kernel_row((LAPLACIAN, rate), np.zeros(1), x[None, :].copy(), len(x), out)
    return out


def sines_cosines_in_a_row(x):
    out = poisoned(1, 2 * len(x))
    fourier_block(np.ones((1, 1)), x[None, :].copy(), 1.0, out)
    return out.reshape(2, -1)


def test_exp_is_accurate_on_all_of_its_range():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            np.linspace(-708.0, 0.0, MANY),
            np.log(2.0) * (np.arange(-1021, 0) + 0.5),  # where the power of two changes
            -(10.0 ** rng.uniform(-320, 2.8, MANY // 10)),
            [-708.0, -5e-324, -1e-17],
        ]
    )
    true = np.exp(x.astype(np.longdouble))
    assert np.abs(one_by_one(exp_nonpositive, x) / true - 1).max() < 2e-16
    x = x[x < -1e-150]  # whose squares are exact enough
    x = x[x == -np.sqrt(x * x)]
    assert len(x) > MANY // 2
    assert np.abs(exps_in_a_row(x) / np.exp(x.astype(np.longdouble)) - 1).max() < 2e-16


def test_exp_at_and_beyond_the_ends():
    x = np.array([0.0, -0.0, np.nextafter(-708.0, -np.inf), -709.0, -1e300, -np.inf])
    expected = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(one_by_one(exp_nonpositive, x), expected)
    finite = x[:4]
    np.testing.assert_array_equal(exps_in_a_row(finite), expected[:4])


def test_sine_and_cosine_are_accurate_up_to_the_largest_phase():
    rng = np.random.default_rng(1)
    largest = SINCOS_LARGEST
    x = np.concatenate(
        [
            np.linspace(-largest, largest, MANY),
            rng.uniform(-10, 10, MANY // 10),
            np.round(np.linspace(-6e4, 6e4, MANY // 10)) * (np.pi / 2),  # where one of them is 0
            10.0 ** rng.uniform(-300, 0, 100),
            [0.0, -0.0, largest, -largest],
        ]
    )
    wide = x.astype(np.longdouble)
    for sine, cosine in (one_by_one(sin_cos, x), sines_cosines_in_a_row(x)):
        assert np.abs(sine - np.sin(wide)).max() < 2.5e-16
        assert np.abs(cosine - np.cos(wide)).max() < 2.5e-16
        assert np.abs(sine * sine + cosine * cosine - 1.0).max() < 1e-15
        tiny = np.abs(x) < 1e-10
        np.testing.assert_array_equal(sine[tiny], x[tiny])
