"""The one decorator of all compiled code, its disk cache, and the status codes of the loops.

Letters of this folder: n rounds, d input width, m dictionary size, r features, ``cap`` allocated
size (a buffer's first m or r entries are valid). Dictionaries are feature-major, ``(d, cap)``, so
that loops run along the atoms. Upper triangular factors are row-major, so that loops run along a
row. A kernel is the pair (code, numbers) that kernels.py makes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numba
from numba.core import caching

ATOMS = 0  # the first entry of every learner's counts: atoms in its dictionary

# Status codes of the loops; learners/learner.py turns them into errors.
DONE = 0
NEED_ROOM = 1  # a buffer is full: grow it and call again
NOT_POSITIVE = 2  # a pivot that must be positive is not
NOT_FINITE = 3  # an overflow reached a forecast
NEED_MAP = 4  # a dictionary is full: make its feature map and call again
STOPPED = 5  # the round just played was the last to learn from
DIVERGED = 6  # a forecast that nothing bounds is beyond LARGEST_FORECAST, or no number

LARGEST_FORECAST = 1e100  # its square is no overflow yet


def _digest_of_folder() -> str:
    """Return a digest of every source file beside this one; nothing if they are in an archive."""
    digest = hashlib.sha256()
    paths = sorted(Path(__file__).parent.glob("*.py"))
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest() if paths else ""


# Numba compares the stamp of a cached function with that of its source when it loads it. Its own
# stamp is of the one file that defines the function: after an edit in linalg.py a loop in another
# file would go on with the old machine code.
STAMP = _digest_of_folder()


class _Results(caching.CompileResultCacheImpl):
    """What numba caches of a function, and where, with the stamp of this folder."""

    def __init__(self, function):
        super().__init__(function)
        # On the instance: numba's setting NUMBA_CACHE_LOCATOR_CLASSES would pass by a subclass.
        self.locator.get_source_stamp = lambda: STAMP


class FolderCache(caching.FunctionCache):
    """Numba's cache of compiled functions, stamped with the digest of this folder."""

    _impl_class = _Results


def _jit(fastmath: set[str]):
    """Return the project's one ``njit`` decorator, with a named subset of fastmath.

    Lazy signatures keep the import fast. ``forceinline``: a callee optimised by itself and again
    inside its caller rounds differently in the two copies, and which of them a call takes depends
    on whether the process compiled or loaded it; inlined, there is one. ``nogil`` lets threads run
    learners side by side; ``error_model="numpy"`` keeps division branches out of loops. Without
    ``_nrt`` calls that count references to arrays are gone from the loops, 20 to 130 ns a round;
    a function that makes an array does not compile. Full fastmath is never used: it breaks NaN
    checks and the accuracy of exp.
    """
    options = {"forceinline": True, "nogil": True, "error_model": "numpy", "fastmath": fastmath}
    options["_nrt"] = False  # no arrays are made, so there are no references to count

    def decorate(function):
        compiled = numba.njit(**options)(function)
        if STAMP and not numba.config.DISABLE_JIT:  # without a stamp an edit would not be seen
            try:
                compiled._cache = FolderCache(function)
            except RuntimeError:  # no folder is writable: compile in every process
                pass
        return compiled

    return decorate


# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
hot = _jit({"reassoc", "contract", "arcp", "nsz"})
# Fused products only: range reductions must not be reordered.
exact = _jit({"contract"})
