"""Buffers of single rounds from Python, kept between rounds so that none of them makes arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any
from weakref import ref

import numpy as np

from oklnumba.hot.primitives.jit import entry
from oklnumba.hot.primitives.linalg import REFUSED, SAME, take_finite

FLOAT64 = np.dtype(np.float64)


class SingleRound:
    """The input, the label and the trace of one round, which the next one overwrites.

    A plain point or label is checked and copied here; ``inputs`` says what is wrong with others.

    Attributes
    ----------
    X : ndarray of shape (1, d)
    y : ndarray of shape (1,)
    trace : Trace
    inputs : int
        How many different inputs there have been: what was made of one holds until this changes.
    kept : object
        Arguments of the learner's loops, which it may keep for the next round.
    entries : dict
        Machine code of loops, by their ids. Weak references, so that adding up what a learner
        holds does not add up numba.
    """

    __slots__ = ("X", "classes", "entries", "inputs", "kept", "take", "trace", "x", "y")

    def __init__(self, d: int, classes: bool, trace: Any):
        self.X, self.y, self.trace = np.zeros((1, d)), np.zeros(1), trace
        self.x, self.classes, self.kept, self.inputs = self.X[0], classes, None, 0
        self.entries: dict[int, ref[Callable]] = {}
        self.take = ref(entry(take_finite, (self.x, self.x)))

    def take_point(self, x: Any) -> bool:
        """Copy a finite vector of float64 of the width so far; False for anything else."""
        # carray: contiguous, aligned and writeable. Other arrays would be compiled for again.
        if type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1 and x.flags.carray:
            taken = self.take()(x, self.x)
            if taken != SAME:
                self.inputs += 1
            return taken != REFUSED
        return False

    def take_label(self, y: Any) -> bool:
        """Copy a finite float, -1 or +1 where the loss asks for it; False for others."""
        if not isinstance(y, float) or not isfinite(y):  # np.float64 is a float
            return False
        self.y[0] = y
        return not self.classes or y == 1.0 or y == -1.0

    def enter(self, loop: Callable) -> Callable:
        """Return what calls a loop without looking at types: those of its first call."""
        found = self.entries.get(id(loop))
        return found() if found is not None else partial(self._compile, loop)

    def _compile(self, loop: Callable, *arguments: Any) -> Any:
        found = entry(loop, arguments)
        self.entries[id(loop)] = ref(found)
        return found(*arguments)
