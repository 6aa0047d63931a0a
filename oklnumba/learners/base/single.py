"""Buffers of single rounds from Python, so that a round makes no arrays."""

from math import isfinite
from typing import Any

import numpy as np

from oklnumba.hot.primitives.jit import enter
from oklnumba.hot.primitives.linalg import REFUSED, SAME, take_finite

FLOAT64 = np.dtype(np.float64)


class SingleRound:
    """The input, the label and the results of one round. The next round overwrites them.

    Float64 vectors and labels are checked and copied here; ``core.inputs`` takes all others, or
    says what is wrong with them. ``was_forecast``: the last thing to happen was the forecast of
    this very input, so that its features, or what else the forecast computed, are valid.

    scales : of a Metric; signs : whether labels are -1 and +1; takes_points : whether any finite
    vector is a point: not so of Precomputed kernels; takes_labels : whether a schema changes
    neither rows to learn nor labels.
    """

    __slots__ = (
        "X", "scales", "signs", "takes_labels", "takes_points", "trace", "was_forecast", "x", "y",
    )  # fmt: skip

    def __init__(
        self, d: int, trace: Any, scales: np.ndarray | None, signs: bool, takes_points: bool,
        takes_labels: bool,
    ):  # fmt: skip
        self.X, self.y, self.trace, self.scales = np.zeros((1, d)), np.zeros(1), trace, scales
        self.x, self.was_forecast = self.X[0], False
        self.signs, self.takes_points, self.takes_labels = signs, takes_points, takes_labels

    def take_point(self, x: Any) -> bool:
        """Copy a finite float64 vector of the learner's width; return False for anything else."""
        # carray: contiguous, aligned and writeable. Other arrays would be compiled for again.
        is_vector = type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1 and x.flags.carray
        if not (self.takes_points and is_vector):
            return False
        if self.scales is not None and len(x) == len(self.scales):
            x = x * self.scales
        taken = enter(take_finite)(x, self.x)
        if taken != SAME:
            self.was_forecast = False
        return taken != REFUSED

    def take_label(self, y: Any) -> bool:
        """Copy a finite float, -1 or +1 if the loss needs it; return False for anything else."""
        if not (self.takes_labels and isinstance(y, float) and isfinite(y)):  # np.float64 too
            return False
        self.y[0] = y
        return not self.signs or y == 1.0 or y == -1.0


# Before the first single round, and for several labels: it takes no point, and no input is its X.
NO_SINGLE = SingleRound(0, None, None, signs=False, takes_points=False, takes_labels=False)
