"""What the tests of the compiled building blocks share: poisoned buffers and dense formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from oklnumba import kernels
from oklnumba.hot.awv import awv_forecasts, awv_rounds
from oklnumba.hot.udu import LANES, TOGETHER

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13)  # around the unrolled strides
# What buffers hold beyond their valid part. NaN shows what is read there, a number what is written.
POISON = [np.nan]
with_poison = pytest.mark.usefixtures("poison")


def poisoned(*shape):
    return np.full(shape, POISON[0])


def untouched(a):
    """Say whether this part of a poisoned buffer is as it was made."""
    return np.array_equal(a, np.full(a.shape, POISON[0]), equal_nan=True)


def spd(rng, m):
    B = rng.standard_normal((m, m))
    return B @ B.T + 0.5 * np.eye(m)


def upper_buffer(factor, cap):
    """Return a (cap, cap) buffer that holds an upper factor and is poisoned everywhere else."""
    m = len(factor)
    R = poisoned(cap, cap)
    i, j = np.triu_indices(m)
    R[i, j] = factor[i, j]
    return R


def upper_part(R, m):
    """Return the factor in a buffer, whose rest must be untouched."""
    valid = np.zeros(R.shape, dtype=bool)
    valid[:m, :m] = np.triu(np.ones((m, m), dtype=bool))
    assert untouched(R[~valid])
    return np.where(valid, R, 0.0)[:m, :m]


def formula(kernel, X, Z):
    """Return the kernel matrix from its definition."""
    r = cdist(X, Z)
    match kernel:
        case kernels.Gaussian():
            return np.exp(-(r**2) / (2 * kernel.sigma**2))
        case kernels.Laplacian():
            return np.exp(-r / kernel.sigma)
        case kernels.Matern():
            s = math.sqrt(2 * kernel.nu) * r / kernel.sigma
            factor = {0.5: 1.0, 1.5: 1.0 + s, 2.5: 1.0 + s + s * s / 3.0}[kernel.nu]
            return factor * np.exp(-s)
        case kernels.Polynomial():
            return (kernel.scale * (X @ Z.T) + kernel.coef0) ** kernel.degree
        case kernels.Linear():
            return X @ Z.T
    raise AssertionError(f"no formula for {kernel}")


class Factor:
    """The state that awv_rounds maintains, for r features padded to a multiple of LANES."""

    def __init__(self, r, lam, ridge=0.0):
        self.r, self.ridge = r, ridge
        self.cap = -(-r // LANES) * LANES
        self.U, self.c = np.eye(self.cap), np.zeros(self.cap)
        self.inv_d = np.full(self.cap, 1 / lam)
        self.work = poisoned(2 * TOGETHER + 1, self.cap), poisoned(TOGETHER)
        self.forecasts, self.shrinks = [], []

    def padded(self, Z):
        return np.ascontiguousarray(np.pad(Z, ((0, 0), (0, self.cap - self.r))))

    def play(self, Z, y):
        forecasts, shrinks = poisoned(len(Z)), poisoned(len(Z))
        played, status = awv_rounds(
            self.padded(Z),
            y,
            (self.U, self.inv_d, self.c),
            self.work,
            self.ridge,
            forecasts,
            shrinks,
        )
        self.forecasts.extend(forecasts[:played])
        self.shrinks.extend(shrinks[:played])
        return played, status

    def forecast(self, Z):
        out = poisoned(len(Z))
        factor = self.U, self.inv_d, self.c
        awv_forecasts(self.padded(Z), factor, self.work, self.ridge, out)
        return out

    def state(self):
        return np.concatenate([self.U.ravel(), self.inv_d, self.c, self.forecasts, self.shrinks])
