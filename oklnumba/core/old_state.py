"""Parts of SelfTuning (members.py, layers.py) whose state is not yet a NamedTuple."""

from functools import cache
from math import isqrt
from operator import attrgetter
from typing import Any, ClassVar, get_type_hints

import numpy as np

from oklnumba.core.arrays import OF_INPUTS, aligned_zeros, pad_row_length, triangle_rows, zero_pages
from oklnumba.core.state import State, StateT, WorkT
from oklnumba.hot.primitives.jit import Mark


def axes_of(*layouts: type) -> dict[str, tuple[str | int, ...]]:
    """Return the axes of the arrays that the NamedTuples of a loop declare, by name."""
    hints = [get_type_hints(layout, include_extras=True) for layout in layouts]
    return {
        name: tuple(one for one in hint.__metadata__ if not isinstance(one, Mark))
        for fields in hints
        for name, hint in fields.items()
        if hasattr(hint, "__metadata__")
    }


@cache
def _fields_of(layout: type) -> attrgetter:
    return attrgetter(*[f"_{name}" for name in layout._fields])


class OldState(State[StateT, WorkT]):
    """Arrays declared by ``_STATE``."""

    _STATE: ClassVar[dict[str, tuple[str | int, ...]]] = {}
    _INTEGERS: ClassVar[frozenset[str]] = frozenset({"counts"})
    _UNBOUNDED: ClassVar[frozenset[str]] = frozenset()
    _COINS: ClassVar[tuple[str, ...]] = ()
    _PADDED: ClassVar[frozenset[str]] = frozenset()
    _SPARSE: ClassVar[frozenset[str]] = frozenset()
    _REMADE: ClassVar[frozenset[str]] = frozenset()
    _SHARES_ROOM: ClassVar[dict[int, int]] = {}

    # ---- making and growing ----

    def _make_state(self, **lengths: int) -> None:
        """Make the arrays of ``_STATE``, zero, of these fixed lengths, without room to grow."""
        if self._layout is not None:
            return super()._make_state(**lengths)
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
        if self._layout is not None:
            return super()._reserve(needed)
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
        if self._layout is not None:
            return super()._free(axis)
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

    def _export(self) -> dict[str, Any]:
        """Return the state as arrays and text; FloatingPointError if a number is not finite."""
        if self._layout is not None:
            return super()._export()
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

    def _output_axes(self) -> dict[str, int]:
        """Return the axis of the K outputs, by the name of each array that has one."""
        if self._layout is not None:
            return super()._output_axes()
        named = self._STATE.items()
        return {name: axes.index("outputs") for name, axes in named if "outputs" in axes}

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore a state that ``_export`` returned, after ``_start``."""
        if self._layout is not None:
            return super()._restore(state)
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
