"""What the tests of the compiled building blocks share: poisoned buffers and dense formulas."""

import numpy as np
import pytest

from oklnumba.hot.awv import awv_forecasts, awv_rounds, factor_late
from oklnumba.hot.primitives.udu import LANES, TOGETHER

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


class Factor:
    """The state that awv_rounds maintains, for r features padded to a multiple of LANES.

    Behind the columns in use there are ``spare`` others, which it must leave alone.
    """

    def __init__(self, r, lam, ridge=0.0, discount=1.0, outputs=1, spare=0):
        self.r, self.ridge = r, ridge
        self.used = -(-r // LANES) * LANES
        self.cap = self.used + spare
        self.U, self.c = np.eye(self.cap), np.zeros((outputs, self.cap))
        self.inv_d = np.full(self.cap, 1 / lam)
        self.setting = 1 / discount, 1 / lam
        self.work = poisoned(2 * TOGETHER + 1, self.cap), poisoned(TOGETHER)
        self.late = np.zeros(2, dtype=np.int64), poisoned(4, self.cap)
        self.forecasts, self.ridge_forecasts, self.shrinks = [], [], []

    def padded(self, Z):
        return np.ascontiguousarray(np.pad(Z, ((0, 0), (0, self.cap - self.r))))

    def span(self, Z):
        return 0, len(Z), self.used

    def arguments(self):
        return (self.U, self.inv_d, self.c, self.late), self.setting, self.work, self.ridge

    def out(self, n):
        return *(poisoned(n, len(self.c)) for _ in range(2)), poisoned(n), poisoned(n, len(self.c))

    def flat(self, found):
        return found[:, 0] if len(self.c) == 1 else found

    def play(self, Z, y):
        out = self.out(len(Z))
        Y = y.reshape(len(Z), len(self.c))
        played, status = awv_rounds(
            self.padded(Z), Y, self.span(Z), *self.arguments(), self.used, out
        )
        self.forecasts.extend(self.flat(out[0])[:played])
        self.ridge_forecasts.extend(self.flat(out[1])[:played])
        self.shrinks.extend(out[2][:played])
        return played, status

    def forecast(self, Z):
        out = self.out(len(Z))
        awv_forecasts(self.padded(Z), self.span(Z), *self.arguments(), out[:3])
        return self.flat(out[0])

    def state(self):
        factor_late(self.arguments()[0], self.setting)
        parts = self.U, self.inv_d, self.c, self.forecasts, self.ridge_forecasts, self.shrinks
        return np.concatenate([np.ravel(part) for part in parts])
