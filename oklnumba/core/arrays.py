"""Arrays on aligned memory, and states of loops: NamedTuples of arrays, made, grown and restored.

A field ``R: Annotated[Array, ATOMS, ATOMS]`` is an array. An axis is the name of a fixed length
("d"), or an entry of the integer array ``counts``: how much of the axis is in use. The array has
room for more. Marks beside the axes say more (hot/primitives/jit.py). A field may be a NamedTuple
of arrays itself, ``Annotated[Factor, ("r", RANK)]`` if its axis "r" is a count here; no two arrays
of a state have the same name.
"""

import mmap
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import isqrt, prod
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from oklnumba.hot.primitives.factor import PassWork
from oklnumba.hot.primitives.jit import PADDED, SPARSE, Integers, Mark
from oklnumba.hot.primitives.udu import LANES, TILE, TOGETHER

ARRAY_ALIGNMENT = 64  # bytes: a cache line and a full vector register
# Numbers between two arrays. If they are less than 256 bytes apart, LLVM's overlap check takes the
# scalar loop, and sums round differently.
APART = 64
SET = 64  # cache lines, 4096 bytes, after which addresses share a set of the first cache
FEWEST_LINES = 3  # least distance of rows, in lines, modulo SET
FEATURE_ROWS = 504  # rounds whose features are stored at a time: whole sweeps of udu.py

LARGE_FACTOR = 600  # columns of a factor from which on more rounds share a pass over it
OF_INPUTS = "d", "r"  # axes along which an array is longer where there are more inputs

StateT = TypeVar("StateT")


# ---- memory ----


def aligned_zeros(*shape: int, make: Callable[[int], np.ndarray] = np.zeros) -> np.ndarray:
    """Return zeros that start a cache line, so that vector loads never cross one.

    No other array is nearer than APART, so bits do not depend on the addresses of arrays.
    """
    line = ARRAY_ALIGNMENT // 8
    buffer = make(APART + line + prod(shape) + APART)
    skip = APART + (-buffer.ctypes.data // 8) % line
    return buffer[skip : skip + prod(shape)].reshape(shape)


def zero_pages(*shape: int) -> np.ndarray:
    """Return aligned zeros that take memory page by page, when they are first written.

    NumPy would ask the system for pages of 2 MB, and a round would wait for one.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return aligned_zeros(*shape)
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return aligned_zeros(*shape, make=lambda n: np.frombuffer(mmap.mmap(-1, 8 * n, private)))


def free_pages(array: np.ndarray) -> None:
    """Give the pages of a part of ``zero_pages``, no longer read, back to the system."""
    whole_array: Any = array.base
    pages = getattr(whole_array.base, "obj", None)
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        start = array.ctypes.data - whole_array.ctypes.data
        whole = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        count = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - whole
        if count > 0:
            pages.madvise(mmap.MADV_DONTNEED, whole, count)


def round_up_to_vector(r: int) -> int:
    """Return r rounded up to whole vectors, at least one."""
    return -(-max(r, 1) // LANES) * LANES


def pad_row_length(n: int) -> int:
    """Return a row length >= n for which TILE rows in a sweep share no cache sets.

    Numbers a multiple of 4096 bytes apart share a set of the first cache. It holds eight or twelve
    lines, and a load right after a store there waits.
    """
    lines = -(-n // LANES)  # a vector takes one
    if TILE * lines <= SET:
        return n
    while any(min(k * lines % SET, -k * lines % SET) < FEWEST_LINES for k in range(1, TILE)):
        lines += 1
    return max(n, lines * LANES)


# ---- states ----


class Declared(NamedTuple):
    """What the annotation of an array says."""

    axes: tuple[str | int, ...]
    marks: tuple[Mark, ...]
    is_integer: bool
    grows: bool  # along a count


# The annotations of a NamedTuple by field: of an array, or the NamedTuple of several.
read_layout = cache(partial(get_type_hints, include_extras=True))


@cache
def list_declared(layout: Any, *grows: tuple[str, int]) -> dict[str, Declared]:
    """Return what is declared of each array of a state, by name; grows : axes, and their counts."""
    declared: dict[str, Declared] = {}
    for name, hint in read_layout(layout).items():
        kind, said = getattr(hint, "__origin__", hint), getattr(hint, "__metadata__", ())
        if hasattr(kind, "_fields"):  # a NamedTuple
            declared |= list_declared(kind, *grows, *said)
            continue
        axes = tuple(dict(grows).get(one, one) for one in said if not isinstance(one, Mark))
        marks = tuple(one for one in said if isinstance(one, Mark))
        along_count = any(isinstance(axis, int) for axis in axes)
        declared[name] = Declared(axes, marks, kind == Integers, along_count)
    return declared


def build(layout: Callable[..., StateT], named: dict[str, np.ndarray]) -> StateT:
    """Return the state of these arrays."""
    fields = []
    for name, hint in read_layout(layout).items():
        kind = getattr(hint, "__origin__", hint)
        fields.append(named[name] if name in named else build(kind, named))
    return layout(*fields)


def list_arrays(state: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a state by name."""
    arrays: dict[str, np.ndarray] = {}
    for name, value in state._asdict().items():
        arrays |= {name: value} if isinstance(value, np.ndarray) else list_arrays(value)
    return arrays


def make_array(declared: Declared, shape: list[int]) -> np.ndarray:
    """Return zeros."""
    if declared.is_integer:
        return np.zeros(shape, dtype=np.int64)
    if PADDED in declared.marks:
        shape = [*shape[:-1], pad_row_length(shape[-1])]
    return zero_pages(*shape) if SPARSE in declared.marks else aligned_zeros(*shape)


def triangle_rows(U: np.ndarray, r: int) -> Iterator[np.ndarray]:
    """Yield what U, (..., lines, cap), packed or not, has right of the diagonal in r columns."""
    lines, cap = U.shape[-2:]
    for k in range(r - 1):  # as find_row of udu.py
        line, start = (k, k) if k < lines else (cap + TILE + k - k // TILE * TILE * 2, k % LANES)
        yield U[..., line, start + 1 : start + r - k]


def write_array(name: str, declared: Declared, part: np.ndarray, value: Any) -> None:
    """Write a saved array into the part in use; if it is for fewer inputs, into its first columns.

    Raises ValueError for other shapes and types.
    """
    if np.ndim(value) == part.ndim:
        axes = zip(declared.axes, value.shape, strict=True)
        part = part[tuple(slice(n if axis in OF_INPUTS else None) for axis, n in axes)]
    compact = value.dtype == np.float32 and part.dtype == np.float64
    if np.shape(value) != part.shape or not (compact or value.dtype == part.dtype):
        raise ValueError(
            f"array {name!r} has shape {np.shape(value)}; expected {part.shape}, {part.dtype}"
        )
    part[...] = value


def pack_triangle(U: np.ndarray, r: int) -> np.ndarray:
    """Return r columns of U right of the diagonal, row after row."""
    return np.concatenate([np.empty((*U.shape[:-2], 0)), *triangle_rows(U, r)], axis=-1)


def unpack_triangle(U: np.ndarray, r: int, value: np.ndarray) -> None:
    """Write what ``pack_triangle`` returned, in any precision, or its first columns."""
    r = min((1 + isqrt(1 + 8 * value.shape[-1])) // 2, r)
    shape = *U.shape[:-2], r * (r - 1) // 2
    if value.shape != shape or value.dtype.kind != "f":
        raise ValueError(f"array 'U' has shape {value.shape}; expected {shape}, floats")
    start = 0
    for row in triangle_rows(U, r):
        row[...] = value[..., start : start + row.shape[-1]]
        start += row.shape[-1]


# ---- factors U' D U (hot/primitives/factor.py) ----


def make_pass_work(U: np.ndarray) -> PassWork:
    """Return workspace for the passes over a factor."""
    # A large factor does not fit in the cache: more rounds share a pass. The bits are the same.
    rounds = TOGETHER if U.shape[1] < LARGE_FACTOR else 4 * TOGETHER
    rows = aligned_zeros(2 * rounds + 1, U.shape[1])
    return PassWork(rows[:rounds], rows[rounds:-1], rows[-1], aligned_zeros(rounds))


def count_lines(cap: int) -> int:
    """Return how many lines a packed U of ``cap`` columns has."""
    return cap // 2 + TILE


def unpack(U: np.ndarray, r: int) -> np.ndarray:
    """Return r columns of U, packed or not, as a unit upper triangular matrix."""
    unit = np.eye(r)
    for k, row in enumerate(triangle_rows(U, r)):
        unit[k, k + 1 :] = row
    return unit
