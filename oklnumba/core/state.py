"""Objects with a state: the NamedTuple of arrays that their loop takes; coins drawn ahead."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self

import numpy as np

from oklnumba.core import arrays
from oklnumba.core.guard import locked, new_lock
from oklnumba.hot.primitives.jit import LOWER, NEED_ROOM, REMADE, UNBOUNDED, UPPER, Integers

if TYPE_CHECKING:  # with a default, so that ``okl.Learner`` may stand without parameters
    from typing_extensions import TypeVar

    StateT = TypeVar("StateT", default=Any)
    WorkT = TypeVar("WorkT", default=Any)
else:
    from typing import TypeVar

    StateT, WorkT = TypeVar("StateT"), TypeVar("WorkT")

INTERRUPTED = RuntimeError(
    "this object was interrupted, or ran out of memory, in mid-round; call reset(), or go on from "
    "a file that was saved before"
)


def select_prefix(prefix: str, contents: dict[str, Any]) -> dict[str, Any]:
    """Return the entries whose names start with a prefix, under the rest of their names."""
    return {n.removeprefix(prefix): contents[n] for n in contents if n.startswith(prefix)}


class Stateful(Generic[StateT, WorkT]):
    """Base of objects with a NamedTuple of arrays, ``_state``: made, grown, saved and restored.

    A subclass names it: ``class KRLS(Expansion[KRLSState, Work])`` with ``_layout = KRLSState``.
    ``_work``, workspace, is made again whenever the state grows. ``_fault`` is set before a state
    changes and cleared after, so an interrupted learner refuses to go on.
    """

    _layout: ClassVar[Any] = None  # the NamedTuple of the state (core/arrays.py)
    _in_turn: Any = False  # whether its rounds are so long that threads must not wait for many
    _FIRST_ROOM = 64  # entries of the first buffers
    _fault: BaseException | None = None  # to raise until reset()
    _counts: Integers = np.zeros(8, dtype=np.int64)  # the array ``counts`` of the state
    _state: StateT
    _work: WorkT
    _rooms: dict[int, int]  # entries for which there is room, by count
    _lengths: dict[str, int]  # of the axes of fixed length
    _arrays_declared: dict[str, arrays.Declared]
    _lock: AbstractContextManager

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of Params
        self._lock = new_lock(self, self._in_turn)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle takes: all but what it makes itself."""
        own = "_lock", "_single"  # a copy of buffers would not share arrays, as these do
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        vars(self).update(contents)
        self._lock = new_lock(self, self._in_turn)

    @locked
    def reset(self) -> Self:
        """Go back to no data; return self."""
        self._clear()
        return self

    def _clear(self) -> None:
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
        """Make the state, zero, of these fixed lengths, without room to grow."""
        self._arrays_declared = arrays.list_declared(self._layout)
        self._lengths = lengths
        axes = {axis for one in self._arrays_declared.values() for axis in one.axes}
        rooms = {axis: 0 for axis in axes if isinstance(axis, int)}
        zeros = {}
        for name, one in self._arrays_declared.items():
            zeros[name] = arrays.make_array(one, self._find_shape(one, rooms))
        if "counts" in zeros:
            self._counts = zeros["counts"]
        self._exchange(arrays.build(self._layout, zeros), rooms)

    def _find_shape(self, declared: arrays.Declared, counts: dict[int, int] | Integers) -> list:
        """Return the lengths of the axes, for these rooms or counts of entries."""
        axes = declared.axes
        return [self._lengths[one] if isinstance(one, str) else counts[one] for one in axes]

    def _exchange(self, state: StateT, rooms: dict[int, int]) -> None:
        """Take a state, and its workspace, once both are made."""
        work = self._make_work(state, rooms)
        self._state, self._work, self._rooms = state, work, rooms

    def _make_work(self, state: StateT, rooms: dict[int, int]) -> Any:
        """Return the workspace for a state with this room; the present one if it never grows."""
        return getattr(self, "_work", None)

    def _reserve(self, needed: dict[int, int]) -> None:
        """Make room for so many entries: make all new buffers, then exchange them at once."""
        rooms = dict(self._rooms)
        for axis, least in needed.items():
            if least > rooms[axis]:
                rooms[axis] = self._choose_room(axis, least)
        if rooms != self._rooms:
            self._exchange(self._grow(rooms), rooms)

    def _grow(self, rooms: dict[int, int]) -> StateT:
        self._settle()
        grown = arrays.list_arrays(self._state)
        for name, one in self._arrays_declared.items():
            if one.grows:
                grown[name] = self._grow_array(name, grown[name], self._find_shape(one, rooms))
        return arrays.build(self._layout, grown)

    def _grow_array(self, name: str, old: np.ndarray, shape: list[int]) -> np.ndarray:
        """Return the array itself if it has this shape, else a longer copy."""
        if shape == list(old.shape):
            return old
        larger = arrays.make_array(self._arrays_declared[name], shape)
        larger[tuple(map(slice, old.shape))] = old
        return larger

    def _choose_room(self, axis: int, least: int) -> int:
        """Return the new room of a count; buffers at least double."""
        return arrays.pad_row_length(max(least, self._FIRST_ROOM, 2 * self._rooms[axis]))

    def _play_with_room(self, loop: Callable[[int], tuple[int, int]]) -> tuple[int, int]:
        """Call ``loop(first)`` until it asks for no more room; return its last answer."""
        first, status = loop(0)
        while status == NEED_ROOM:
            self._reserve({axis: int(self._counts[axis]) + 1 for axis in self._rooms})
            first, status = loop(first)
        return first, status

    def _free(self, axis: int) -> None:
        """Free the arrays along a count whose entries are no longer needed."""
        self._counts[axis] = 0
        kept = {
            name: self._cut(name, old).copy() if axis in self._arrays_declared[name].axes else old
            for name, old in arrays.list_arrays(self._state).items()
        }
        self._exchange(arrays.build(self._layout, kept), self._rooms | {axis: 0})

    # ---- saving ----

    def _cut(self, name: str, array: np.ndarray) -> np.ndarray:
        """Return the part of an array that is in use (a view)."""
        used = self._find_shape(self._arrays_declared[name], self._counts)
        return array[tuple(map(slice, used))]

    def _settle(self) -> None:
        """Finish pending rounds, so that all arrays are up to date."""

    def _list_saved(self) -> dict[str, np.ndarray]:
        """Return the arrays that files hold, whole."""
        if self._layout is None:
            return {}
        named = arrays.list_arrays(self._state).items()
        return {name: one for name, one in named if REMADE not in self._arrays_declared[name].marks}

    def _export(self) -> dict[str, Any]:
        """Return the state as arrays and text; FloatingPointError if a number is not finite."""
        self._settle()
        contents: dict[str, Any] = {}
        for name, whole in self._list_saved().items():
            marks, part = self._arrays_declared[name].marks, self._cut(name, whole)
            if LOWER in marks:
                part = part[np.tri(len(part), dtype=bool)]  # row after row
            if UNBOUNDED not in marks and not np.isfinite(part).all():
                fault = f"array {name!r} of this {type(self).__name__} is not finite"
                raise FloatingPointError(f"{fault}; scale the inputs and labels after reset()")
            if UPPER in marks:
                part = arrays.pack_triangle(whole, part.shape[-1])
            contents[name] = part
        return contents | {name: coins.state() for name, coins in self._list_coins().items()}

    def _list_coins(self) -> dict[str, "Coins"]:
        return {n.removeprefix("_"): one for n, one in vars(self).items() if isinstance(one, Coins)}

    def _output_axes(self) -> dict[str, int]:
        """Return the axis of the K outputs, by the name of each array that has one."""
        declared = {name: self._arrays_declared[name].axes for name in self._list_saved()}
        return {name: axes.index("outputs") for name, axes in declared.items() if "outputs" in axes}

    def _restore(self, contents: dict[str, Any]) -> None:
        """Restore a state that ``_export`` returned, after ``_start``."""
        if "counts" in self._list_saved():
            self._write("counts", self._counts, contents["counts"])
            self._reserve({axis: int(self._counts[axis]) for axis in self._rooms})
        for name, array in self._list_saved().items():
            self._write(name, array, contents[name])
        for name, coins in self._list_coins().items():
            coins.restore(contents[name])

    def _write(self, name: str, array: np.ndarray, value: Any) -> None:
        declared, part = self._arrays_declared[name], self._cut(name, array)
        if UPPER in declared.marks:
            arrays.unpack_triangle(array, part.shape[-1], value)
        elif LOWER in declared.marks:
            part[np.tri(len(part), dtype=bool)] = value
        else:
            arrays.write_array(name, declared, part, value)


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
        if n > 1:  # not in single rounds, where it costs a microsecond
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
