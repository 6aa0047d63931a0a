"""Room for one round from Python, kept between rounds so that none of them makes arrays."""

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

    A plain point or label, which most are, is checked and copied here; what else is valid, or why
    it is not, ``checks`` says.

    Attributes
    ----------
    X : ndarray of shape (1, d)
    y : ndarray of shape (1,)
    trace : Trace
    inputs : int
        How many other inputs there have been: what was made of one holds until this changes.
    kept : what the learner likes to keep for the next one: arguments of its loops
    entries : dict
        The machine code of loops, by their ids, that are called with arguments of the same types
        each time. Weak, so that who adds up what a learner holds does not add up Numba.
    """

    __slots__ = ("X", "classes", "entries", "inputs", "kept", "take", "trace", "x", "y")

    def __init__(self, d: int, classes: bool, trace: Any):
        self.X, self.y, self.trace = np.zeros((1, d)), np.zeros(1), trace
        self.x, self.classes, self.kept, self.inputs = self.X[0], classes, None, 0
        self.entries: dict[int, ref[Callable]] = {}
        self.take = ref(entry(take_finite, (self.x, self.x)))

    def takes_point(self, x: Any) -> bool:
        """Copy a finite vector of float64 of the width so far; False for anything else."""
        # Others would be compiled for anew: carray says contiguous, aligned and writeable.
        if type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1 and x.flags.carray:
            taken = self.take()(x, self.x)
            if taken != SAME:
                self.inputs += 1
            return taken != REFUSED
        return False

    def takes_label(self, y: Any) -> bool:
        """Copy a finite float, one of -1 and +1 where the loss asks for it; False for others."""
        if not isinstance(y, float) or not isfinite(y):  # float64 is a float
            return False
        self.y[0] = y
        return not self.classes or y == 1.0 or y == -1.0

    def entered(self, loop: Callable) -> Callable:
        """Return what calls a loop without a look at the types, which are those of the first."""
        found = self.entries.get(id(loop))
        return found() if found is not None else partial(self._enter, loop)

    def _enter(self, loop: Callable, *arguments: Any) -> Any:
        found = entry(loop, arguments)
        self.entries[id(loop)] = ref(found)
        return found(*arguments)
