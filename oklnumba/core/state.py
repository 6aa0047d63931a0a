"""Arrays that grow, coins that are drawn ahead, and how both are written down.

What a learner or a streaming dictionary keeps is declared once, in ``_STATE``: for each array its
axes, an axis being the name of a fixed length ("d", say) or an entry of the integer array
``_counts``, which says how much of the array is in use along it; beyond, there is room for more.
What else compiled loops trust is checked in ``_check_state``, when a state is taken over: a file
may say anything.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from oklnumba.core.checks import require_memory
from oklnumba.hot.primitives.jit import NEED_ROOM
from oklnumba.hot.primitives.udu import LANES, TILE, TOGETHER

MOST = 2**52  # of what is counted: from twice that on floats skip numbers
ARRAY_ALIGNMENT = 64  # bytes: a cache line and a full vector register
# Numbers between two arrays. Where one starts within four vectors after another, 256 bytes, loops
# take the path for arrays that may overlap, without vectors, and sums have other last bits.
APART = 64
AHEAD = 120  # rounds that room is made for ahead: learners beside each other play so many at once
SET = 64  # lines after which addresses meet in the first cache: 4096 bytes
FEWEST_LINES = 3  # by which they are kept apart
LARGE = 600  # columns of a factor from which more rounds share a pass over it


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros whose first entry starts a cache line: vector loads then never cross one.

    No other array is nearer than APART, so that bits do not depend on where arrays come to lie.
    """
    count = prod(shape)
    require_memory(f"an array of shape {shape}", 8 * count)
    line = ARRAY_ALIGNMENT // 8
    buffer = np.zeros(APART + line + count + APART)
    skip = APART + (-buffer.ctypes.data // 8) % line
    return buffer[skip : skip + count].reshape(shape)


def grown(array: np.ndarray, *shape: int) -> np.ndarray:
    """Return a larger aligned copy, zero where the old array had nothing."""
    larger = aligned_zeros(*shape).astype(array.dtype, copy=False)
    larger[tuple(slice(n) for n in array.shape)] = array
    return larger


def padded(r: int) -> int:
    """Return r rounded up to whole vectors, at least one."""
    return -(-max(r, 1) // LANES) * LANES


def spread(n: int) -> int:
    """Return n or a little more: rows of so many numbers do not get into each other's way.

    Numbers a multiple of 4096 bytes apart share a set of the first cache, which holds eight lines
    or twelve, and a load right after a store there waits for it. TILE rows are read together.
    """
    lines = padded(n) // LANES
    if TILE * lines <= SET:
        return n
    while any(min(k * lines % SET, -k * lines % SET) < FEWEST_LINES for k in range(1, TILE)):
        lines += 1
    return max(n, lines * LANES)


def sweep_room(U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return workspace for the sweeps of a factor U' D U (hot/awv.py)."""
    # A large one comes from far, once for all the rounds of a pass. The bits are the same.
    rounds = TOGETHER if len(U) < LARGE else 4 * TOGETHER
    return aligned_zeros(2 * rounds + 1, U.shape[1]), aligned_zeros(rounds)


def under(prefix: str, contents: dict[str, Any]) -> dict[str, Any]:
    """Return what stands under names with a prefix, without it."""
    names = [name for name in contents if name.startswith(prefix)]
    return {name.removeprefix(prefix): contents[name] for name in names}


def count_in(value: Any, least: int, most: int = MOST) -> bool:
    """Say whether a value is an integer from ``least`` to ``most``."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= value <= most


def refuse_outside(name: str, values: np.ndarray, least: int, most: int) -> None:
    """Raise ValueError where integers of a state are not from ``least`` to ``most``."""
    if values.size and not (least <= values.min() and values.max() <= most):
        raise ValueError(
            f"its {name!r} has {int(values.min())} to {int(values.max())}, "
            f"where {least} to {most} can be"
        )


class NoRoom(MemoryError):
    """No memory for more room: all is as it was after ``first`` rounds of the call in hand.

    ``of`` is whose state that is. A learner around others whose state agrees again makes it its
    own; from one that does not, it is a fault like any other error in mid-round.
    """

    def __init__(self, message: str, of: Any):
        super().__init__(message)
        self.of, self.first = of, 0
        self.trace: Any = None  # what the rounds left that a call had played

    def told(self, played: int, n: int) -> None:
        """Say in the message what a call of n rounds has done."""
        if n == 1:
            done = "the round was not played, and the learner is as it was"
        else:
            done = (
                f"{played} of these {n} rounds have been played, and the learner is intact: it "
                f"can go on with row {played}"
            )
        self.args = (f"{self.args[0]}; {done}",)


class Reserving:
    """``with Reserving(holder):`` turns a MemoryError into a NoRoom of a holder.

    What is done there changes no state.
    """

    __slots__ = ("holder",)

    def __init__(self, holder: Any):
        self.holder = holder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, NoRoom):  # of one within
            error.of = self.holder
        elif isinstance(error, MemoryError):
            name = type(self.holder).__name__
            raise NoRoom(f"{name} has no memory to grow: {error}", self.holder) from error


class State:
    """Arrays declared by their axes: made, grown, cut to what is used, restored.

    Attributes that are arrays of the state have the names of ``_STATE`` with a leading underscore.
    """

    _STATE: dict[str, tuple[str | int, ...]] = {}  # array: its axes, fixed lengths or counts
    _INTEGERS = frozenset({"counts"})  # arrays of _STATE that hold int64, not float64
    _UNBOUNDED: frozenset[str] = frozenset()  # arrays that may overflow: forecasts need them not
    _COINS: tuple[str, ...] = ()
    _OLD_NAMES: dict[str, str] = {}  # array: what version 0.1.0 called it in files
    _SPREAD: frozenset[str] = frozenset()  # matrices of a fixed size whose rows are spread
    _SHARES_ROOM: dict[int, int] = {}  # count: the count whose room its axes have
    _FIRST_ROOM = 64  # entries that buffers have room for at first
    _rooms: dict[int, int] = {}  # count: its room; none where the state is another object's
    _broken: str | None = None  # trouble after which numbers may be anything
    _fault: str | None = None  # the same

    def _make_state(self, **lengths: int) -> None:
        """Make the arrays of ``_STATE``, zero, of these fixed lengths, without room to grow."""
        self._fixed = lengths
        for name, axes in self._STATE.items():
            shape = [lengths[axis] if isinstance(axis, str) else 0 for axis in axes]
            if name in self._SPREAD:
                shape[-1] = spread(shape[-1])
            integers = name in self._INTEGERS
            zeros = np.zeros(shape, dtype=np.int64) if integers else aligned_zeros(*shape)
            setattr(self, f"_{name}", zeros)
        self._rooms = dict.fromkeys(self._growing(), 0)

    @classmethod
    @functools.cache
    def _growing(cls) -> frozenset[int]:
        """Return the entries of ``_counts`` with a room of their own."""
        axes = {axis for axes in cls._STATE.values() for axis in axes if isinstance(axis, int)}
        return frozenset(axis for axis in axes if axis not in cls._SHARES_ROOM)

    def _reserve(self, needed: dict[int, int]) -> None:
        """Make room for so many entries of these counts; where there is none, all is as it was.

        Raises NoRoom.
        """
        rooms = dict(self._rooms)
        for axis, least in needed.items():
            if least > rooms[axis]:
                rooms[axis] = self._room(axis, least)
        if rooms == self._rooms:
            return
        with Reserving(self):
            buffers = self._buffers(rooms)
        # In one step: an interrupt in between would leave some buffers small.
        vars(self).update({f"_{name}": one for name, one in buffers.items()} | {"_rooms": rooms})

    def _ahead(self, n: int) -> int:
        """Make room for rounds to come; return for how many of n there is, at least one.

        These can be played without NoRoom, so that learners side by side all play them or none.
        Raises NoRoom, and all is as it was.
        """
        asked, grows = min(n, AHEAD), False
        for axis in self._growing():
            count = int(self._counts[axis])
            if self._rooms[axis] < count + asked:
                self._reserve({axis: count + asked})
            # Where there is less, it is the most that is ever taken. How much more there is must
            # not matter: a learner from a file has other rooms, and where blocks end decides about
            # the last bits of learners beside it that take blocks by BLAS.
            grows = grows or self._rooms[axis] >= count + asked
        return asked if grows else n

    def _with_room(self, rounds: Callable[[int], tuple[int, int]]) -> tuple[int, int]:
        """Call ``rounds(first)`` until it no longer asks for room; return what it says then.

        Raises NoRoom, which says how many rounds have been played.
        """
        first, status = rounds(0)
        while status == NEED_ROOM:
            try:
                self._reserve({axis: int(self._counts[axis]) + 1 for axis in self._growing()})
            except NoRoom as full:
                full.first = first
                raise
            first, status = rounds(first)
        return first, status

    def _room(self, axis: int, least: int) -> int:
        """Return how much room to make for a count; buffers at least double."""
        return spread(max(least, self._FIRST_ROOM, 2 * self._rooms[axis]))

    def _buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        """Return the growing arrays in larger rooms; subclasses add workspace that goes along."""
        larger = {}
        for name, axes in self._STATE.items():
            old = getattr(self, f"_{name}")
            shape = [
                n if isinstance(axis, str) else rooms[self._SHARES_ROOM.get(axis, axis)]
                for axis, n in zip(axes, old.shape, strict=True)
            ]
            if shape != list(old.shape):
                larger[name] = grown(old, *shape)
        return larger

    def _used(self, name: str) -> np.ndarray:
        """Return the part of an array of the state that is in use (a view)."""
        cut = (
            slice(self._fixed[axis] if isinstance(axis, str) else int(self._counts[axis]))
            for axis in self._STATE[name]
        )
        return getattr(self, f"_{name}")[tuple(cut)]

    def _state(self) -> dict[str, Any]:
        """Return the state as arrays and text."""
        state: dict[str, Any] = {name: self._used(name) for name in self._STATE}
        return state | {name: getattr(self, f"_{name}").state() for name in self._COINS}

    def _output_axes(self) -> dict[str, int]:
        """Return the axis of the labels of a round, of the arrays of ``_state()`` with one."""
        named = self._STATE.items()
        return {name: axes.index("outputs") for name, axes in named if "outputs" in axes}

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over a state that ``_state`` returned, after ``_start``.

        Raises
        ------
        ValueError
            If an array or a count of it cannot be; what is taken over by then is not to be used.
        """
        names = [*self._STATE, *self._COINS]
        state = {name: state[name if name in state else self._OLD_NAMES[name]] for name in names}
        lengths: dict[int, int] = {}  # of the counts: the arrays decide, as in version 0.1.0
        for name, axes in self._STATE.items():
            if "outputs" in axes and np.ndim(state[name]) == len(axes) - 1:  # version 0.1.0
                state[name] = np.expand_dims(state[name], axes.index("outputs"))
            self._check_array(name, state[name], lengths)
        if "counts" in state:
            refuse_outside("counts", state["counts"], 0, MOST)
            self._counts[:] = state.pop("counts")
        needed = dict.fromkeys(self._growing(), 0)
        for axis, n in lengths.items():
            self._counts[axis] = n
            room = self._SHARES_ROOM.get(axis, axis)
            needed[room] = max(needed[room], n)
        for axis, n in needed.items():
            if n > max(self._rooms[axis], self._room(axis, n)):
                raise ValueError(f"its arrays have {n} entries, more than there can be")
        self._reserve(needed)
        for name in state.keys() & self._STATE.keys():
            self._used(name)[...] = state[name]
        for name in self._COINS:
            getattr(self, f"_{name}").restore(state[name])
        self._check_state()

    def _check_array(self, name: str, value: Any, lengths: dict[int, int]) -> None:
        """Raise ValueError for what is not that array of the state; note lengths of counts."""
        own, axes = getattr(self, f"_{name}"), self._STATE[name]
        if not isinstance(value, np.ndarray) or value.dtype != own.dtype:
            raise ValueError(f"its {name!r} is no array of {own.dtype}")
        fits = value.ndim == own.ndim
        for axis, n in zip(axes, value.shape, strict=False):
            length = self._fixed[axis] if isinstance(axis, str) else lengths.setdefault(axis, n)
            fits = fits and n == length
        if not fits:
            raise ValueError(f"its {name!r} has the shape {value.shape}, which cannot be")
        if name not in self._UNBOUNDED:
            mark_infinite(name, value, self)

    def _check_state(self) -> None:
        """Raise ValueError for counts, indices and sizes taken over that cannot be."""

    def _refuse_lengths(self, state: dict[str, Any], lengths: dict[str, int]) -> None:
        """Raise ValueError where arrays have other fixed lengths: before room is made for these."""
        for name, axes in self._STATE.items():
            shape = np.shape(state.get(name, ()))
            if len(shape) != len(axes):  # it is looked at in its place
                continue
            for axis, n in zip(axes, shape, strict=True):
                if isinstance(axis, str) and n != lengths.get(axis, n):
                    raise ValueError(f"its {name!r} has the shape {shape} for {lengths}")


def mark_infinite(name: str, values: np.ndarray, holder: State) -> None:
    """Mark the holder of a state that is not finite: it may have been saved before it was noticed.

    The next forecast would notice; until then an overflow may lie in the state, and its own file.
    """
    if (
        values.dtype.kind == "f"
        and not (holder._broken or holder._fault)
        and not np.isfinite(values).all()
    ):
        holder._broken = (
            f"this {type(holder).__name__} was saved with numbers that are not finite, in its "
            f"{name!r}; reset() and start again"
        )


def check_factor(lower: Any, t: int, holder: State) -> np.ndarray:
    """Return the packed rows of a factor of t rows; ValueError for what is none."""
    if (
        not isinstance(lower, np.ndarray)
        or lower.dtype != float
        or lower.shape != (t * (t + 1) // 2,)
    ):
        raise ValueError(f"its factor has not the entries of {t} rows")
    mark_infinite("lower", lower, holder)
    return lower


class Coins:
    """Uniform draws for a learner's decisions, one a round, however the stream is cut.

    The next round's coin is drawn in advance: a pure forecast may look at it.
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
        self._taken = coins
        return coins

    def give_back(self, rounds: int, of: int) -> None:
        """Put back those that were taken last for the last of so many rounds, not played."""
        count = len(self._taken) * rounds // of
        if count:
            self._rng.bit_generator.advance(-count)
            self.next = float(self._taken[-count])

    def state(self) -> str:
        """Return the state as text."""
        return json.dumps({"rng": self._rng.bit_generator.state, "next": self.next.hex()})

    def restore(self, text: str) -> None:
        """Take over a state that ``state`` returned; ValueError for what is none."""
        try:
            saved = json.loads(text)
            self._rng.bit_generator.state = saved["rng"]
            self.next = float.fromhex(saved["next"])
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise ValueError(f"its coins are no random state: {error}") from None
        if not 0.0 <= self.next < 1.0:
            raise ValueError(f"its next coin is {self.next!r}, not in [0, 1)")
