"""State: arrays that are declared by their axes, grow, and are saved; coins drawn ahead.

``_STATE`` of a learner or a streaming dictionary has the axes of each array. An axis is the name of
a fixed length ("d"), or an entry of the integer array ``counts``: how much of the axis is in use.
The array has room for more.
"""

import json
import mmap
from collections.abc import Callable, Iterator
from functools import cache
from math import isqrt, prod
from operator import attrgetter
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np

from oklnumba.core.guard import locked, new_lock
from oklnumba.hot.primitives.jit import NEED_ROOM
from oklnumba.hot.primitives.udu import LANES, TILE

ARRAY_ALIGNMENT = 64  # bytes: a cache line and a full vector register
# Numbers between two arrays. If they are less than 256 bytes apart, LLVM's overlap check takes the
# scalar loop, and sums round differently.
APART = 64
SET = 64  # cache lines, 4096 bytes, after which addresses share a set of the first cache
FEWEST_LINES = 3  # least distance of rows, in lines, modulo SET
BLOCK_ROWS = 504  # rounds whose features are stored at a time: whole sweeps of udu.py

OF_INPUTS = "d", "r"  # axes along which an array is longer where there are more inputs
INTERRUPTED = RuntimeError(
    "this object was interrupted, or ran out of memory, in mid-round; call reset(), or go on from "
    "a file that was saved before"
)


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros that start a cache line, so that vector loads never cross one.

    No other array is nearer than APART, so bits do not depend on the addresses of arrays.
    """
    return _align(np.zeros, shape)


def zero_pages(*shape: int) -> np.ndarray:
    """Return aligned zeros that take memory page by page, when they are first written.

    NumPy would ask the system for pages of 2 MB, and a round would wait for one.
    """
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return aligned_zeros(*shape)
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return _align(lambda count: np.frombuffer(mmap.mmap(-1, 8 * count, private)), shape)


def free_pages(array: np.ndarray) -> None:
    """Give the pages of a part of ``zero_pages``, no longer read, back to the system."""
    pages = getattr(array.base.base, "obj", None)
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        start = array.ctypes.data - array.base.ctypes.data
        whole = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        count = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - whole
        if count > 0:
            pages.madvise(mmap.MADV_DONTNEED, whole, count)


def _align(make: Callable[[int], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    line = ARRAY_ALIGNMENT // 8
    buffer = make(APART + line + prod(shape) + APART)
    skip = APART + (-buffer.ctypes.data // 8) % line
    return buffer[skip : skip + prod(shape)].reshape(shape)


def round_up_to_vector(r: int) -> int:
    """Return r rounded up to whole vectors, at least one."""
    return -(-max(r, 1) // LANES) * LANES


def pad_row_length(n: int) -> int:
    """Return a row length >= n for which the TILE rows of a pass do not share cache sets.

    Numbers a multiple of 4096 bytes apart share a set of the first cache. It holds eight or twelve
    lines, and a load right after a store there waits.
    """
    lines = round_up_to_vector(n) // LANES
    if TILE * lines <= SET:
        return n
    while any(min(k * lines % SET, -k * lines % SET) < FEWEST_LINES for k in range(1, TILE)):
        lines += 1
    return max(n, lines * LANES)


def triangle_rows(U: np.ndarray, r: int) -> Iterator[np.ndarray]:
    """Yield what U, (..., lines, cap), packed or not, has right of the diagonal in r columns."""
    lines, cap = U.shape[-2:]
    for k in range(r - 1):  # as find_row of udu.py
        line, start = (k, k) if k < lines else (cap + TILE + k - k // TILE * TILE * 2, k % LANES)
        yield U[..., line, start + 1 : start + r - k]


def axes_of(*layouts: type) -> dict[str, tuple[str | int, ...]]:
    """Return the axes of the arrays that the NamedTuples of a loop declare, by name.

    A field ``R: Annotated[Array, ATOMS, ATOMS]`` is an array of the state; others are workspace.
    """
    hints = [get_type_hints(layout, include_extras=True) for layout in layouts]
    return {
        name: hint.__metadata__
        for fields in hints
        for name, hint in fields.items()
        if hasattr(hint, "__metadata__")
    }


@cache
def _fields_of(layout: type) -> attrgetter:
    return attrgetter(*[f"_{name}" for name in layout._fields])


def select_prefix(prefix: str, contents: dict[str, Any]) -> dict[str, Any]:
    """Return the entries whose names start with a prefix, under the rest of their names."""
    names = [name for name in contents if name.startswith(prefix)]
    return {name.removeprefix(prefix): contents[name] for name in names}


class State:
    """Arrays declared by their axes: made, grown, cut to the part in use, saved and restored.

    The array "atoms" of ``_STATE`` is the attribute ``_atoms``. ``_fault`` is set before a state
    changes and cleared after, so an interrupted learner refuses to go on.
    """

    _STATE: ClassVar[dict[str, tuple[str | int, ...]]] = {}
    _INTEGERS: ClassVar[frozenset[str]] = frozenset({"counts"})  # arrays of int64, not float64
    _UNBOUNDED: ClassVar[frozenset[str]] = frozenset()  # arrays that may overflow harmlessly
    _COINS: ClassVar[tuple[str, ...]] = ()
    _PADDED: ClassVar[frozenset[str]] = frozenset()  # matrices of a fixed size with padded rows
    _SPARSE: ClassVar[frozenset[str]] = frozenset()  # long arrays, mostly unused or soon freed
    _REMADE: ClassVar[frozenset[str]] = frozenset()  # arrays that are computed again, not saved
    _SHARES_ROOM: ClassVar[dict[int, int]] = {}  # a count: the count whose buffers are as long
    _FIRST_ROOM = 64  # entries of the first buffers
    _fault = None  # the exception to raise until reset()

    def __post_init__(self) -> None:
        self._lock = new_lock(self)
        super().__post_init__()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle takes: all but the lock."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        vars(self).update(contents)
        self._lock = new_lock(self)

    @locked
    def reset(self) -> Self:
        """Go back to no data; return self."""
        self._clear()
        return self

    def _clear(self) -> None:
        """Remove everything but the hyper-parameters."""
        others = ("_lock", "_sklearn", "_parent_callback")  # scikit-learn's attributes stay
        for name in list(vars(self)):
            if name.endswith("_") or (name.startswith("_") and not name.startswith(others)):
                delattr(self, name)

    def _refuse_fault(self) -> None:
        """Raise the error of an earlier round, if there was one, until ``reset``."""
        if self._fault is not None:
            raise type(self._fault)(*self._fault.args)

    # ---- making and growing ----

    def _make_state(self, **lengths: int) -> None:
        """Make the arrays of ``_STATE``, zero, of these fixed lengths, without room to grow."""
        self._lengths = lengths
        for name, axes in self._STATE.items():
            shape = [lengths[axis] if isinstance(axis, str) else 0 for axis in axes]
            if name in self._PADDED:
                shape[-1] = pad_row_length(shape[-1])
            make = zero_pages if name in self._SPARSE else aligned_zeros
            integers = name in self._INTEGERS
            zeros = np.zeros(shape, dtype=np.int64) if integers else make(*shape)
            setattr(self, f"_{name}", zeros)
        growing = {axis for axes in self._STATE.values() for axis in axes if isinstance(axis, int)}
        self._rooms = dict.fromkeys(growing - self._SHARES_ROOM.keys(), 0)

    def _reserve(self, needed: dict[int, int]) -> None:
        """Make room for so many entries: make all new buffers, then exchange them at once."""
        rooms = dict(self._rooms)
        for axis, least in needed.items():
            if least > rooms[axis]:
                rooms[axis] = self._choose_room(axis, least)
        if rooms != self._rooms:
            buffers = self._make_buffers(rooms)
            vars(self).update({f"_{name}": one for name, one in buffers.items()})
            self._rooms = rooms
            self._bind()

    def _bind(self) -> None:
        """Gather the arguments of the loops, after buffers were exchanged."""

    def _play_with_room(self, rounds: Callable[[int], tuple[int, int]]) -> tuple[int, int]:
        """Call ``rounds(first)`` until it asks for no more room; return its last answer."""
        first, status = rounds(0)
        while status == NEED_ROOM:
            self._reserve({axis: int(self._counts[axis]) + 1 for axis in self._rooms})
            first, status = rounds(first)
        return first, status

    def _choose_room(self, axis: int, least: int) -> int:
        """Return the new room of a count; buffers at least double."""
        return pad_row_length(max(least, self._FIRST_ROOM, 2 * self._rooms[axis]))

    def _make_buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        """Return longer copies of the growing arrays; subclasses add growing workspace."""
        larger = {}
        for name, axes in self._STATE.items():
            old = getattr(self, f"_{name}")
            shape = [
                n if isinstance(axis, str) else rooms[self._SHARES_ROOM.get(axis, axis)]
                for axis, n in zip(axes, old.shape, strict=True)
            ]
            if shape != list(old.shape):
                make = zero_pages if name in self._SPARSE else aligned_zeros
                larger[name] = make(*shape).astype(old.dtype, copy=False)
                larger[name][tuple(slice(n) for n in old.shape)] = old
        return larger

    def _free(self, axis: int) -> None:
        """Free the arrays along a count whose entries are no longer needed."""
        self._counts[axis] = self._rooms[axis] = 0
        for name, axes in self._STATE.items():
            if axis in axes:
                setattr(self, f"_{name}", self._used(name).copy())

    def _used(self, name: str) -> np.ndarray:
        """Return the part of an array of the state that is in use (a view)."""
        cut = (
            slice(self._lengths[axis] if isinstance(axis, str) else int(self._counts[axis]))
            for axis in self._STATE[name]
        )
        return getattr(self, f"_{name}")[tuple(cut)]

    def _gather(self, layout: type) -> Any:
        """Return a NamedTuple of a loop, each field ``name`` from the attribute ``_name``."""
        return layout._make(_fields_of(layout)(self))

    # ---- saving ----

    def _state(self) -> dict[str, Any]:
        """Return the state as arrays and text; FloatingPointError if a number is not finite."""
        self._settle()
        names = [name for name in self._STATE if name not in self._REMADE]
        state: dict[str, Any] = {name: self._used(name) for name in names}
        for name, array in state.items():
            if name not in self._UNBOUNDED and not np.isfinite(array).all():
                raise FloatingPointError(
                    f"array {name!r} of this {type(self).__name__} is not finite; scale the inputs "
                    "and labels, then reset() and start again"
                )
        if "U" in state:
            rows = triangle_rows(self._U, self._columns_of_U())
            nothing = np.empty((*self._U.shape[:-2], 0))
            state["U"] = np.concatenate([nothing, *rows], axis=-1)
        return state | {name: getattr(self, f"_{name}").state() for name in self._COINS}

    def _columns_of_U(self) -> int:
        """Return how many columns of U are in use."""
        return self._used("U").shape[-1]

    def _settle(self) -> None:
        """Finish pending rounds, so that all arrays are up to date."""

    def _output_axes(self) -> dict[str, int]:
        """Return the axis of the K outputs, by the name of each array that has one."""
        named = self._STATE.items()
        return {name: axes.index("outputs") for name, axes in named if "outputs" in axes}

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore a state that ``_state`` returned, after ``_start``."""
        if "counts" in self._STATE:
            self._restore_array("counts", state["counts"])
            counts = {axis: int(self._counts[axis]) for axis in self._rooms}
            for axis, other in self._SHARES_ROOM.items():
                counts[other] = max(counts[other], int(self._counts[axis]))
            self._reserve(counts)
        for name in [name for name in self._STATE if name not in self._REMADE]:
            self._restore_array(name, state[name])
        for name in self._COINS:
            getattr(self, f"_{name}").restore(state[name])

    def _restore_array(self, name: str, value: Any) -> None:
        """Restore an array; if it is for fewer inputs, the other columns stay as they are."""
        array = part = self._used(name)
        if name == "U":
            self._restore_triangle(value)
            return
        if np.ndim(value) == array.ndim:
            axes = zip(self._STATE[name], value.shape, strict=True)
            part = array[tuple(slice(n if axis in OF_INPUTS else None) for axis, n in axes)]
        if np.shape(value) != part.shape or value.dtype != part.dtype:
            raise ValueError(
                f"array {name!r} has shape {np.shape(value)}; expected {array.shape}, {part.dtype}"
            )
        part[...] = value

    def _restore_triangle(self, value: np.ndarray) -> None:
        """Restore U, in double or single precision, or its first columns."""
        r = min((1 + isqrt(1 + 8 * value.shape[-1])) // 2, self._used("U").shape[-1])
        shape = *self._U.shape[:-2], r * (r - 1) // 2
        if value.shape != shape or value.dtype.kind != "f":
            raise ValueError(f"array 'U' has shape {value.shape}; expected {shape}, floats")
        start = 0
        for row in triangle_rows(self._U, r):
            row[...] = value[..., start : start + row.shape[-1]]
            start += row.shape[-1]


class Coins:
    """Uniform draws for a learner's decisions, one per round, however the stream is cut.

    The next round's coin is drawn in advance, because a forecast may need it.
    """

    def __init__(self, seed: int | list[int]):
        self._rng = np.random.default_rng(seed)
        self.next = float(self._rng.random())

    def take(self, n: int) -> np.ndarray:
        """Return the coins of the next n rounds."""
        coins = np.empty(n)
        coins[0] = self.next
        if n > 1:
            coins[1:] = self._rng.random(n - 1)
        self.next = float(self._rng.random())
        return coins

    def state(self) -> str:
        """Return the state as text."""
        return json.dumps({"rng": self._rng.bit_generator.state, "next": self.next.hex()})

    def restore(self, text: str) -> None:
        """Restore a state that ``state`` returned."""
        saved = json.loads(str(text))
        self._rng.bit_generator.state = saved["rng"]
        self.next = float.fromhex(saved["next"])
