"""Buffers of single rounds from Python, so that a round makes no arrays."""

from math import isfinite
from typing import Any

import numpy as np

from oklnumba.hot.primitives.jit import enter
from oklnumba.hot.primitives.linalg import REFUSED, SAME, take_finite

FLOAT64 = np.dtype(np.float64)


class SingleRound:
    """The input, the label and the results of one round. The next round overwrites them.

    Plain points and labels are checked and copied here; ``core.inputs`` says what is wrong with the
    rest. ``was_forecast``: the last thing to happen was the forecast of this very input, so that
    its features, or what else the forecast computed, are valid.
    """

    __slots__ = "X", "classes", "plain", "scales", "trace", "was_forecast", "x", "y"

    def __init__(self, d: int, classes: bool, trace: Any, scales: np.ndarray | None, plain: bool):
        self.X, self.y, self.trace = np.zeros((1, d)), np.zeros(1), trace
        self.x, self.classes, self.scales = self.X[0], classes, scales
        self.was_forecast = False
        self.plain = plain  # whether any finite vector is a point: not so of Precomputed kernels

    def take_point(self, x: Any) -> bool:
        """Copy a finite float64 vector of the learner's width; return False for anything else."""
        # carray: contiguous, aligned and writeable. Other arrays would be compiled for again.
        is_vector = type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1 and x.flags.carray
        if not (self.plain and is_vector):
            return False
        if self.scales is not None and len(x) == len(self.scales):
            x = x * self.scales
        taken = enter(take_finite)(x, self.x)
        if taken != SAME:
            self.was_forecast = False
        return taken != REFUSED

    def take_label(self, y: Any) -> bool:
        """Copy a finite float, -1 or +1 if the loss needs it; return False for anything else."""
        if not isinstance(y, float) or not isfinite(y):  # np.float64 is a float
            return False
        self.y[0] = y
        return not self.classes or y == 1.0 or y == -1.0


# Before the first single round, and for several labels: it takes no point, and no input is its X.
NO_SINGLE = SingleRound(0, classes=False, trace=None, scales=None, plain=False)
