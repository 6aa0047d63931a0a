"""How numbers are compared: relative to the largest among them."""

import numpy as np


def close(got, expected, rtol):
    """Say whether two arrays agree relative to the largest entry."""
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    return bool(np.abs(got - expected).max(initial=0.0) <= rtol * scale)


def assert_close(found, expected, rtol=1e-9):
    """Relative to the largest value: forecasts themselves pass through zero."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())
