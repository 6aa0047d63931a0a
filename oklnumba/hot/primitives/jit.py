"""The decorators of all compiled code, its disk cache, and the status codes of the loops.

Letters of this folder: n rounds, d input width, m dictionary size, r features, ``cap`` allocated
size (a buffer's first m or r entries are valid). Dictionaries are feature-major, ``(d, cap)``, so
that loops run along the atoms. Upper triangular factors are row-major, so that loops run along a
row. A kernel is the pair (code, numbers) that kernels.py makes.

Loops are compiled by compiler.py: first calls take a third of numba's time, and every process gets
the same bits. It uses internals of numba. Plain ``numba.njit`` takes its place, with the same
results up to rounding, for a numba newer than ``NEWEST_TESTED``, if compiler.py cannot be imported,
and with ``OKLNUMBA_PLAIN_JIT=1`` in the environment. Numba's cache then sees edits only in the file
that defines a function: after an edit in another file of hot/, delete the cache. Otherwise an edit
compiles again what it touches (cache.py).
"""

import logging
import os
import re
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

# In the NamedTuples that loops take: Annotated[Array, axes and marks] (core/arrays.py).
Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Mark(Enum):
    """What is said of an array of a state beside its axes."""

    UPPER = "a unit upper triangular factor U, packed or not; only what is right of the diagonal"
    LOWER = "a lower triangular factor, of which files hold the rows to the diagonal"
    PADDED = "a matrix of a fixed size with padded rows"
    SPARSE = "long, and mostly unused or soon freed: it takes memory page by page"
    UNBOUNDED = "it may overflow harmlessly"
    REMADE = "computed again, not saved"


UPPER, LOWER, PADDED, SPARSE, UNBOUNDED, REMADE = Mark
NEWEST_TESTED = 0, 68  # version of numba
ATOMS = 0  # the first entry of every learner's counts: atoms in its dictionary

# Status codes of the loops; learners/base/engine.py turns them into errors.
DONE = 0
NEED_ROOM = 1  # a buffer is full: grow it and call again
NOT_POSITIVE = 2  # a pivot that must be positive is not
NOT_FINITE = 3  # an overflow reached a forecast
NEED_MAP = 4  # a dictionary is full: make its feature map and call again
STOPPED = 5  # the round just played was the last to learn from
DIVERGED = 6  # a forecast that nothing bounds is beyond LARGEST_FORECAST, or NaN
TOO_LONG = 7  # a gradient is longer than the bound on them

LARGEST_FORECAST = 1e100  # its square does not overflow yet


class Out(NamedTuple):
    """What most loops write for each round, (n,) each."""

    forecasts: Array
    sizes: Array  # atoms after the round


def _compile_plain(function, options):
    """Return ``numba.njit`` of a function; without a cache where no folder is writable."""
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


try:
    from oklnumba.hot.primitives.bound import bind, unbind
    from oklnumba.hot.primitives.cache import has_code
    from oklnumba.hot.primitives.compiler import WIDE, compile_whole

    _lacks = False
except Exception:  # whatever this numba lacks
    _lacks = True
_version = tuple(map(int, re.findall(r"\d+", numba.__version__)[:2]))
_wanted = os.environ.get("OKLNUMBA_PLAIN_JIT") == "1"
COMPILES = not numba.config.DISABLE_JIT
PLAIN = _lacks or _version > NEWEST_TESTED or _wanted
LOOPS: list[Any] = []  # all that is compiled
if COMPILES and PLAIN and not _wanted:
    logging.getLogger("oklnumba").warning(
        f"oklnumba was not tested with numba {numba.__version__} (only up to "
        f"{NEWEST_TESTED[0]}.{NEWEST_TESTED[1]}): first calls compile four times as long"
    )


class Entries(dict):
    """Machine code of loops that are called with arguments of the same types only."""

    def __missing__(self, loop):
        return partial(_enter_first, loop)


ENTRIES = Entries()
# enter(loop) returns the machine code of a loop, to be called with arguments: their types are not
# checked, which saves microseconds in a single round. All calls must have the types of the first
# one. So a loop is called without it where these differ, such as kernels or layouts of arrays.
enter = ENTRIES.__getitem__


def _jit(fastmath: set[str], inlined: bool = True, wide: bool = False):
    """Return the project's one ``njit`` decorator, with a named subset of fastmath.

    Lazy signatures keep the import fast. ``nogil`` lets threads run learners side by side;
    ``error_model="numpy"`` keeps division branches out of loops. Full fastmath is never used: it
    breaks NaN checks and the accuracy of exp. ``inlined`` functions are copied into their compiled
    callers; see compiler.py.
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}

    def decorate(function):
        if numba.config.DISABLE_JIT:
            ENTRIES[function] = function
            return function
        if PLAIN:
            LOOPS.append(_compile_plain(function, options))
        else:
            if wide:
                WIDE.add(function)
            LOOPS.append(compile_whole(function, inlined, options))
        return LOOPS[-1]

    return decorate


# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
REORDERED = {"reassoc", "contract", "arcp", "nsz"}
hot = _jit(REORDERED)
# For long bodies, where a copy at each call would take most of the time of compiling, and for loops
# that LLVM vectorises only where it need not ask whether their arrays overlap: they must not.
hot_apart = _jit(REORDERED, inlined=False)
# Fused products only: range reductions must not be reordered.
exact = _jit({"contract"})
exact_apart = _jit({"contract"}, inlined=False)
# Apart, with vectors of 64 bytes where the processor has them: no sums along the vectors.
hot_wide = _jit(REORDERED, inlined=False, wide=True)
exact_wide = _jit({"contract"}, inlined=False, wide=True)


if PLAIN or not COMPILES:

    def bind(arguments: Any) -> Any:
        """Return arguments of a loop in the form in which it takes them."""
        return arguments

    @hot
    def unbind(arguments):
        """Return bound arguments."""
        return arguments


def cache_folder() -> str | None:
    """Return the folder where compiled code is stored, None if none is writable."""
    return LOOPS[0].stats.cache_path if LOOPS else None


def has_compiled() -> bool:
    """Return whether this process compiled anything itself."""
    return any(loop.stats.cache_misses for loop in LOOPS)


def lacks_code(loop) -> bool:
    """Return whether a loop is to be compiled, and another process could do it for this one."""
    return COMPILES and not PLAIN and cache_folder() is not None and not has_code(loop)


def entry(loop, arguments):
    """Return the machine code of a loop for arguments of these types.

    Numba checks the types of all arguments at every call, which takes as long as a round of a
    small learner: 4 us for each NamedTuple. Call what this returns with the same types only.
    """
    signature = tuple(map(numba.typeof, arguments))
    loop.compile(signature)
    return loop.overloads[signature].entry_point


def _enter_first(loop, *arguments):
    ENTRIES[loop] = entry(loop, arguments)
    return ENTRIES[loop](*arguments)
