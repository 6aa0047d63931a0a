"""The base class of all learners: the protocol, input checks, and state that can be saved.

The inner contract
------------------
What a learner keeps besides its hyper-parameters lies in attributes with a leading underscore,
which ``reset`` removes. Other rooms (protocol, experts, wrappers, interop) may use these, and no
more:

- **How many.** ``_counts`` is an array of int64 whose entry ``ATOMS`` is the number of atoms; the
  other entries have names in the learner's file of ``hot``. ``size`` is for users.
- **Room for more.** ``_STATE`` gives the shape of each array of the state, an axis being the name
  of a fixed length or an entry of ``_counts``: along such an axis the array has room to spare.
  ``_make_state`` makes them all, ``_reserve`` makes room, by ``_room`` and ``_buffers``: every new
  buffer is made before any is exchanged.
- **Code of the loss.** ``_loss_code``, the integer that the compiled loops take. (Other codes have
  names of their own: ``_kernel``, ``_rule``, ``_kind``, ``_domain``.)
- **Remedy.** ``_REMEDY``, what to change after numerical trouble, for ``_check``.
- **Saved state.** ``_state()`` and ``_restore(state)``: the arrays of ``_STATE``, cut to what is
  used, and the coins named in ``_COINS``.
- **Ready features.** A learner with a map ``features`` says in ``_feature_room`` how wide a Z, zero
  beyond them, ``_write(X, Z)`` takes, and ``_play_features(Z, y, trace)`` and
  ``_forecast_features(Z)``, which leave it as it is: ``Experts`` shares it.

And the calls: ``_begin(d)`` before the first round, ``_check_labels(y)``, ``_play(X, y, trace)``,
``_play_blocks(X, y, first)``, ``_forecast(X)``, ``_advice(X)``, ``_ready()``, ``_contents()`` and
``_adopt(meta, arrays)``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import checks, losses
from oklnumba.hot.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE
from oklnumba.hot.udu import LANES
from oklnumba.params import Params, from_spec, to_spec

FIRST_ROWS = 64  # rounds of the first block of a run; each later one is as long as all before it
PLAY_ROWS = 8192  # rounds handed to the compiled loops in one go
ARRAY_ALIGNMENT = 64  # bytes: a cache line and a full vector register


class Trace(NamedTuple):
    """What rounds leave behind, one entry each; the last three only for certified learners."""

    predictions: np.ndarray
    sizes: np.ndarray
    loss: np.ndarray | None
    comparator: np.ndarray | None
    bound: np.ndarray | None

    @classmethod
    def empty(cls, n: int, certified: bool) -> Trace:
        """Return room for n rounds."""
        extra = [np.empty(n) if certified else None for _ in range(3)]
        return cls(np.empty(n), np.empty(n, dtype=np.int64), *extra)

    def rows(self, start: int, stop: int) -> Trace:
        """Return the part of some rounds (views)."""
        return Trace(*(None if a is None else a[start:stop] for a in self))


def aligned_zeros(*shape: int) -> np.ndarray:
    """Return zeros whose first entry starts a cache line: vector loads then never cross one."""
    count = int(np.prod(shape))
    extra = ARRAY_ALIGNMENT // 8
    buffer = np.zeros(count + extra)
    skip = (-buffer.ctypes.data // 8) % extra
    return buffer[skip : skip + count].reshape(shape)


def grown(array: np.ndarray, *shape: int) -> np.ndarray:
    """Return a larger aligned copy, zero where the old array had nothing."""
    larger = aligned_zeros(*shape).astype(array.dtype, copy=False)
    larger[tuple(slice(n) for n in array.shape)] = array
    return larger


def compilable(X: np.ndarray) -> np.ndarray:
    """Return X, or a copy: loops would be compiled again for arrays that are read-only, say."""
    plain = X.flags.c_contiguous and X.flags.writeable and type(X) is np.ndarray
    return X if plain else np.array(X, order="C")


def padded(r: int) -> int:
    """Return r rounded up to whole vectors, at least one."""
    return -(-max(r, 1) // LANES) * LANES


class Learner(Params):
    """An online learner: forecast, then see the label, then update.

    A subclass stores its hyper-parameters in ``__init__``, says in ``_STATE`` what it keeps, and
    has

    - ``_start(d)``: check the hyper-parameters, then make the state for inputs of width d;
    - ``_play(X, y, trace)``: play rounds, writing forecasts before labels are read;
    - ``_forecast(X)``: forecasts of single rounds against the current state, which stays as it is.
    """

    _STATE: dict[str, tuple[str | int, ...]] = {}  # array: its axes, fixed lengths or counts
    _INTEGERS = frozenset({"counts"})  # arrays of _STATE that hold int64, not float64
    _COINS: tuple[str, ...] = ()
    _OLD_NAMES: dict[str, str] = {}  # array: what version 0.1.0 called it in files
    _SHARES_ROOM: dict[int, int] = {}  # count: the count whose room its axes have
    _REMEDY = "scale the inputs and labels"
    _FIRST_ROOM = 64  # entries that buffers have room for at first

    _width: int | None = None
    _played = 0
    _broken: str | None = None
    _certified = False  # whether rounds come with a certificate
    _run_rows = PLAY_ROWS  # rounds between two looks at the clock
    _feature_room = 0  # columns of ready features that the learner takes; 0: it has no map

    # ---- the protocol ----

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return self._played

    @property
    def size(self) -> int:
        """Atoms in the dictionary, or number of features; 0 before any data."""
        return int(self._counts[ATOMS]) if self._width is not None else 0

    def predict_one(self, x: ArrayLike) -> float:
        """Return the forecast if ``x`` came next; nothing changes. 0.0 before any data.

        Parameters
        ----------
        x : array_like of shape (d,)

        Raises
        ------
        ValueError
            If x is not one finite numeric point of the width seen so far.
        """
        x = checks.as_point(x, self._width)
        if not self._ready():
            return 0.0
        return float(self._forecast(x)[0])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X, each on its own against the current state.

        Parameters
        ----------
        X : array_like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)

        Raises
        ------
        ValueError
            If X is not numeric, finite, 2-D, non-empty and of the width seen so far.
        """
        X = checks.as_inputs(X, self._width)
        out = np.zeros(len(X))
        if self._ready():
            for start in range(0, len(X), PLAY_ROWS):
                part = X[start : start + PLAY_ROWS]
                out[start : start + PLAY_ROWS] = self._forecast(np.array(part, order="C"))
        return out

    def learn_one(self, x: ArrayLike, y: float | None = None) -> Self:
        """Play one round: forecast ``x`` (not returned), then learn its label ``y``; return self.

        Raises
        ------
        ValueError
            If x or y is not valid (nothing has changed then).
        FloatingPointError
            If the numbers of this round are beyond double precision.
        """
        x = checks.as_point(x, self._width)
        label = checks.as_label(y, self._loss().classes)
        self._check_labels(label)
        self._begin(x.shape[1])
        self._play(x, label, Trace.empty(1, self._certified))
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Play a round for each row of X in order; return self.

        Parameters
        ----------
        X : array_like of shape (n, d)
        y : array_like of shape (n,)

        Raises
        ------
        ValueError
            If X or y is not valid (nothing has changed then).
        FloatingPointError
            If the numbers of a round are beyond double precision; the message names it.
        """
        X = checks.as_inputs(X, self._width)
        y = checks.as_labels(y, len(X), self._loss().classes)
        self._check_labels(y)
        self._begin(X.shape[1])
        self._play_blocks(X, y, PLAY_ROWS)
        return self

    def reset(self) -> Self:
        """Go back to no data; return self."""
        for name in [name for name in vars(self) if name.startswith("_")]:
            delattr(self, name)
        return self

    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters before any data; return self.

        Raises
        ------
        ValueError
            For an unknown name, or once rounds have been played (``reset`` first).
        """
        if params and self._width is not None:
            raise ValueError(
                f"this {type(self).__name__} has played {self._played} rounds with its present "
                f"{', '.join(params)}; call reset() first, or make a new one"
            )
        super().set_params(**params)
        return self

    # ---- what subclasses write ----

    def _start(self, d: int) -> None:
        raise NotImplementedError

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    # ---- what they share ----

    def _loss(self) -> losses.Loss:
        return losses.get(getattr(self, "loss", "squared"))

    @property
    def _loss_code(self) -> int:
        return self._loss().code

    def _check_labels(self, y: np.ndarray) -> None:
        """Raise ValueError for labels that a learner cannot take though its loss can."""

    def _begin(self, d: int) -> None:
        """Make the state at the first round; refuse to go on after numerical trouble."""
        if self._broken:
            raise FloatingPointError(self._broken)
        if self._width is not None:
            return
        try:
            self._start(d)
        except BaseException:
            self.reset()
            raise
        self._width = d

    def _ready(self) -> bool:
        """Say whether there is a state to forecast from; refuse after numerical trouble."""
        if self._broken:
            raise FloatingPointError(self._broken)
        return self._width is not None

    def _check(self, status: int, played: int) -> None:
        """Turn a status of the compiled loops into an error that names the round."""
        if status == DONE:
            return
        what = {
            NOT_POSITIVE: "a matrix lost its positive definiteness",
            NOT_FINITE: "the forecast is not finite",
        }[status]
        self._broken = (
            f"{type(self).__name__}, round {self._played + played + 1}: {what}; {self._REMEDY}, "
            "then reset() and start again"
        )
        raise FloatingPointError(self._broken)

    def _play_blocks(self, X: np.ndarray, y: np.ndarray, first: int) -> Trace:
        """Play checked rounds in blocks, ``first`` in the first; FIRST_ROWS gives a run's bits."""
        trace = Trace.empty(len(X), self._certified)
        start = 0
        while start < len(X):
            stop = min(start + min(max(first, start), self._run_rows), len(X))
            self._play(compilable(X[start:stop]), y[start:stop], trace.rows(start, stop))
            start = stop
        return trace

    def _advice(self, X: np.ndarray) -> str | None:
        """Return a warning about the first inputs of a run, if one is due."""
        return None

    def _play_rounds(self, n: int, rounds: Callable[[int], tuple[int, int]]) -> None:
        """Play n rounds by calls of ``rounds(first)``, making room wherever it asks for it."""
        first, status = rounds(0)
        while status == NEED_ROOM:
            self._reserve({axis: int(self._counts[axis]) + 1 for axis in self._growing()})
            first, status = rounds(first)
        self._check(status, first)
        self._played += n

    # ---- the arrays of the state ----

    def _make_state(self, **lengths: int) -> None:
        """Make the arrays of ``_STATE``, zero, of these fixed lengths, without room to grow."""
        for name, axes in self._STATE.items():
            shape = [lengths[axis] if isinstance(axis, str) else 0 for axis in axes]
            integers = name in self._INTEGERS
            zeros = np.zeros(shape, dtype=np.int64) if integers else aligned_zeros(*shape)
            setattr(self, f"_{name}", zeros)
        self._rooms = dict.fromkeys(self._growing(), 0)

    def _growing(self) -> set[int]:
        """Return the entries of ``_counts`` with a room of their own."""
        axes = {axis for axes in self._STATE.values() for axis in axes if isinstance(axis, int)}
        return {axis for axis in axes if axis not in self._SHARES_ROOM}

    def _reserve(self, needed: dict[int, int]) -> None:
        """Make room for so many entries of these counts; after a MemoryError all is as it was."""
        rooms = dict(self._rooms)
        for axis, least in needed.items():
            if least > rooms[axis]:
                rooms[axis] = self._room(axis, least)
        if rooms != self._rooms:
            buffers = self._buffers(rooms)
            for name, buffer in buffers.items():
                setattr(self, f"_{name}", buffer)
            self._rooms = rooms

    def _room(self, axis: int, least: int) -> int:
        """Return how much room to make for a count; buffers at least double."""
        return max(least, self._FIRST_ROOM, 2 * self._rooms[axis])

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
            slice(None) if isinstance(axis, str) else slice(int(self._counts[axis]))
            for axis in self._STATE[name]
        )
        return getattr(self, f"_{name}")[tuple(cut)]

    def _state(self) -> dict[str, Any]:
        """Return the state as arrays and text."""
        state: dict[str, Any] = {name: self._used(name) for name in self._STATE}
        return state | {name: getattr(self, f"_{name}").state() for name in self._COINS}

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over a state that ``_state`` returned, after ``_start``."""
        names = [*self._STATE, *self._COINS]
        state = {name: state[name if name in state else self._OLD_NAMES[name]] for name in names}
        if "counts" in state:  # where nothing grows there need be none
            self._counts[:] = state.pop("counts")
        needed = dict.fromkeys(self._growing(), 0)
        for name, axes in self._STATE.items():
            for axis, n in zip(axes, np.shape(state.get(name, ())), strict=False):
                if isinstance(axis, int):  # the arrays decide: version 0.1.0 had another order
                    self._counts[axis] = n
                    room = self._SHARES_ROOM.get(axis, axis)
                    needed[room] = max(needed[room], n)
        self._reserve(needed)
        for name in state.keys() & self._STATE.keys():
            self._used(name)[...] = state[name]
        for name in self._COINS:
            getattr(self, f"_{name}").restore(state[name])

    # ---- saving ----

    def _contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything as JSON data and arrays."""
        arrays: dict[str, np.ndarray] = {}
        meta: dict[str, Any] = {"spec": to_spec(self, arrays), "width": self._width}
        meta["rounds"] = self._played
        meta["broken"] = self._broken
        if self._width is not None:
            scalars = {}
            for name, value in self._state().items():
                if isinstance(value, np.ndarray):
                    arrays[f"state_{name}"] = value
                else:
                    scalars[name] = value
            meta["state"] = scalars
        return meta, arrays

    def _adopt(self, meta: dict[str, Any], arrays: Any) -> None:
        """Take over a state that ``_contents`` wrote, of the same hyper-parameters."""
        self.reset()
        if meta["width"] is not None:
            self._begin(meta["width"])
            names = [name for name in arrays if name.startswith("state_")]
            state = {name.removeprefix("state_"): np.array(arrays[name]) for name in names}
            self._restore(state | meta["state"])
        self._played = meta["rounds"]
        self._broken = meta["broken"]

    def save(self, path: str | os.PathLike) -> None:
        """Write hyper-parameters, state and random state into one ``.npz`` file (no pickle inside).

        ``oklnumba.load(path)`` goes on bit for bit where this learner stands.
        """
        meta, arrays = self._contents()
        write_npz(path, meta, arrays)

    def __getstate__(self) -> dict[str, Any]:
        """Return hyper-parameters and state; closures and buffers behind them are made anew."""
        meta, arrays = self._contents()
        return {"params": self.get_params(deep=False), "meta": meta, "arrays": arrays}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        """Take over what ``__getstate__`` returned."""
        vars(self).update(contents["params"])
        self._adopt(contents["meta"], contents["arrays"])


def write_npz(path: str | os.PathLike, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write JSON data and arrays into one ``.npz``, whole or not at all."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(partial, "wb") as file:
            np.savez(file, meta=np.array(json.dumps(meta)), **arrays)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_npz(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON data and the arrays of a file that ``write_npz`` wrote.

    Raises
    ------
    ValueError
        If the file is damaged or was not written by oklnumba.
    """
    try:
        # Opened here: np.load leaves a damaged archive open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        return json.loads(str(arrays.pop("meta"))), arrays
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a file that oklnumba saved, or it is damaged") from error


def load(path: str | os.PathLike) -> Learner:
    """Return the learner saved at ``path``; it goes on bit for bit where it stopped.

    Raises
    ------
    ValueError
        If the file is damaged, or holds no learner.

    Examples
    --------
    >>> import oklnumba as okl, tempfile, os
    >>> learner = okl.KernelAWV(okl.Gaussian(1.0)).learn_one([0.5], 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(os.path.join(folder, "awv.npz"))
    ...     again = okl.load(os.path.join(folder, "awv.npz"))
    >>> again.rounds, again.predict_one([0.5]) == learner.predict_one([0.5])
    (1, True)
    """
    meta, arrays = read_npz(path)
    if "spec" not in meta:
        raise ValueError(f"{path} holds no learner; a run is read by Run.load")
    learner = from_spec(meta["spec"], arrays)
    learner._adopt(meta, arrays)
    return learner


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
        coins[1:] = self._rng.random(n - 1)
        self.next = float(self._rng.random())
        return coins

    def state(self) -> str:
        """Return the state as text."""
        return json.dumps({"rng": self._rng.bit_generator.state, "next": self.next.hex()})

    def restore(self, text: str) -> None:
        """Take over a state that ``state`` returned."""
        saved = json.loads(text)
        self._rng.bit_generator.state = saved["rng"]
        self.next = float.fromhex(saved["next"])
