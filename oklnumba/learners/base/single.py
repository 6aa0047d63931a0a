"""Single rounds from Python: buffers, so that a round makes no arrays, and entries to loops."""

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import Any
from weakref import ref

import numpy as np

from oklnumba.hot.primitives.jit import entry
from oklnumba.hot.primitives.linalg import REFUSED, SAME, take_finite

FLOAT64 = np.dtype(np.float64)
ENTRIES: dict[Callable, Callable] = {}  # machine code of loops


def enter(loop: Callable) -> Callable:
    """Return what calls a loop without a look at types, which must be the same in all calls."""
    return ENTRIES.get(loop) or partial(_enter_first, loop)


def _enter_first(loop: Callable, *arguments: Any) -> Any:
    ENTRIES[loop] = entry(loop, arguments)
    return ENTRIES[loop](*arguments)


class SingleRound:
    """The input, the label and the results of one round. The next round overwrites them.

    Plain points and labels are checked and copied here; ``core.inputs`` says what is wrong with the
    rest. ``inputs`` counts the different inputs: features of an input are valid until it changes.
    ``arguments`` are those of the learner's loops; ``entries`` is the machine code of loops by
    their ids, in weak references, so that the size of a learner does not include numba.
    """

    __slots__ = (
        "X",
        "arguments",
        "classes",
        "entries",
        "inputs",
        "scales",
        "take",
        "trace",
        "x",
        "y",
    )

    def __init__(self, d: int, classes: bool, trace: Any, scales: np.ndarray | None):
        self.X, self.y, self.trace = np.zeros((1, d)), np.zeros(1), trace
        self.x, self.classes, self.arguments, self.inputs = self.X[0], classes, None, 0
        self.scales = scales
        self.entries: dict[int, ref[Callable]] = {}
        self.take = ref(entry(take_finite, (self.x, self.x)))

    def take_point(self, x: Any) -> bool:
        """Copy a finite float64 vector of the learner's width; return False for anything else."""
        # carray: contiguous, aligned and writeable. Other arrays would be compiled for again.
        if type(x) is not np.ndarray or x.dtype is not FLOAT64 or x.ndim != 1 or not x.flags.carray:
            return False
        if self.scales is not None and len(x) == len(self.scales):
            x = x * self.scales
        taken = self.take()(x, self.x)
        if taken != SAME:
            self.inputs += 1
        return taken != REFUSED

    def take_label(self, y: Any) -> bool:
        """Copy a finite float, -1 or +1 if the loss needs it; return False for anything else."""
        if not isinstance(y, float) or not isfinite(y):  # np.float64 is a float
            return False
        self.y[0] = y
        return not self.classes or y == 1.0 or y == -1.0

    def enter(self, loop: Callable) -> Callable:
        """Return what calls a loop without a look at types, which are those of the first call."""
        code = self.entries.get(id(loop))
        return code() if code is not None else partial(self._compile, loop)

    def _compile(self, loop: Callable, *arguments: Any) -> Any:
        code = entry(loop, arguments)
        self.entries[id(loop)] = ref(code)
        return code(*arguments)
