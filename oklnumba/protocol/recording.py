"""What a run keeps of its rounds, and the checkpoint from which it goes on.

A checkpoint is one ``.npz`` file, written whole or not at all, with the learner's state and the
run. While the run is under way the rounds are not in it: they are appended to a log beside it,
``NAME.npz.rounds``, and the file says how many bytes of the log are its own, so that a save costs
what the new rounds cost. What a killed run left in the log beyond these bytes is cut off. The end
of the run puts all into the one file and removes the log.
"""

from __future__ import annotations

import io
import os
import time
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.core import checks
from oklnumba.core.files import read_array, read_npz, refusing, sweep, write_npz
from oklnumba.core.guard import HOLD
from oklnumba.core.inputs import cut_blocks
from oklnumba.core.params import same_spec
from oklnumba.core.state import count_in, under
from oklnumba.hot.primitives.digest import fold_rows
from oklnumba.learners.base.player import Player, Trace
from oklnumba.protocol.rounds import MISTAKES, Rounds, Rows

SAVE_SECONDS = 60.0  # between two saves where ``every`` is not given
BLOCK_ROWS = 8192  # rounds that are looked at again in one go
PLAYED = "digest_of_rounds"  # the array of a checkpoint that tells its data from other data
READINGS = 1024  # of the clock that a run keeps at least, where it does not keep every round
CLOCK = ("checkpoints", "checkpoint_seconds")
PROOF = {"loss", "comparator", "bound"}
# What a run keeps: kinds of NumPy's types, numbers of axes, and what else has its shape.
KEPT = {
    "predictions": ("iufbU", (1, 2), None),
    "losses": ("f", (1, 2), None),
    "sizes": ("i", (1,), None),
    "recorded": ("i", (1,), "sizes"),
    "loss_sums": ("f", (1, 2), "losses"),
    "mistakes": ("b", (1, 2), None),
    "mistake_sums": ("i", (1, 2), "mistakes"),
    "scores": ("f", (2,), None),
    "loss": ("f", (1, 2), None),
    "comparator": ("f", (1, 2), "loss"),
    "bound": ("f", (1, 2), "loss"),
    CLOCK[0]: ("i", (1,), None),
    CLOCK[1]: ("f", (1,), CLOCK[0]),
}


def check_record(record: Any) -> None:
    """Raise ValueError for what ``record`` may not be."""
    if isinstance(record, str) and record in ("all", "none"):
        return
    found = checks.as_number(record)
    is_count = isinstance(found, int) and 1 <= found <= checks.MOST
    domain = "'all', 'none' or an integer k >= 1, which keeps every k-th round"
    checks.require(is_count, "record", record, domain)


def joined(parts: list[Rows]) -> Rows:
    """Return the rows of all parts; mistakes are kept only if all parts have them."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {k: np.concatenate([p[k] for p in parts]) for k in names} if parts[1:] else parts[0]


def sums_so_far(before: Any, values: np.ndarray) -> np.ndarray:
    """Return the sums after each row, added up one by one: the same however rounds are cut."""
    first = np.broadcast_to(before, values.shape[1:])[None]
    return np.cumsum(np.concatenate([first, values]), axis=0)[1:]


# ---- what was played ----


class Played:
    """A digest of rounds: of their inputs and labels as numbers, however they were held and cut."""

    def __init__(self, state: np.ndarray | None = None, d: int = 0):
        """Start with no rounds, or with the state of others, whose inputs have the width d."""
        self.state, self.d = state, d

    def check(self, y: np.ndarray) -> None:
        """Raise ValueError where this is no digest that rounds with labels like y can go into."""
        n = self.d + prod(y.shape[1:])
        if self.state is not None and (self.state.dtype != np.uint64 or self.state.shape != (n,)):
            raise ValueError(f"its {PLAYED!r} of rounds of {n} numbers has {self.state.shape}")

    def add(self, X: np.ndarray, y: np.ndarray) -> None:
        """Take in the rounds of a block; X : (n, d), checked; y : (n,) or (n, K), checked."""
        labels = np.ascontiguousarray(y.reshape(len(y), -1))
        if self.state is None:
            self.d = X.shape[1]
            self.state = np.zeros(self.d + labels.shape[1], dtype=np.uint64)
        fold_rows(X.view(np.uint64), self.state[: self.d])
        fold_rows(labels.view(np.uint64), self.state[self.d :])

    def add_all(self, X: Any, y: np.ndarray) -> None:
        """Take in many rounds, dense or sparse."""
        for rows, block in cut_blocks(X, BLOCK_ROWS):
            self.add(block, y[rows])

    def of_labels(self) -> Played:
        """Return the digest of the labels alone."""
        return Played(self.state[self.d :])

    def is_of(self, other: Played | None) -> bool:
        """Say whether the rounds are those of another digest, as far as that can be told."""
        return other is None or np.array_equal(self.state, other.state)


# ---- the log ----


def log_path(path: str | os.PathLike) -> Path:
    """Return where the rounds of a run under way are."""
    return Path(path).with_name(f"{Path(path).name}.rounds")


def append(path: Path, log: dict[str, int], part: Rows) -> dict[str, int]:
    """Write rows behind the first ``log["bytes"]`` bytes; return what the log has then."""
    with open(path, "r+b" if log["bytes"] else "wb") as file:
        file.seek(log["bytes"])
        file.truncate()
        crc = log["crc"]
        for array in (np.array(list(part)), *part.values()):
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            crc = zlib.crc32(buffer.getbuffer(), crc)
            file.write(buffer.getbuffer())
        file.flush()
        os.fsync(file.fileno())  # before the file that counts on it
        return {"bytes": file.tell(), "crc": crc}


def read_log(path: Path, log: dict[str, int]) -> list[Rows]:
    """Return the rows that ``append`` wrote, part by part."""
    if not count_in(log["bytes"], 1):
        raise ValueError(f"its log has {log['bytes']!r} bytes")
    try:
        with open(path, "rb") as file:
            content = file.read(min(log["bytes"], os.fstat(file.fileno()).st_size))
    except FileNotFoundError:
        content = b""
    if len(content) < log["bytes"] or zlib.crc32(content) != log["crc"]:
        raise ValueError(
            f"{path}, which holds the rounds of the run under way, is missing, damaged or of "
            "another run; put it back beside the checkpoint, or delete both and start again"
        )
    parts, file = [], io.BytesIO(content)
    while file.tell() < len(content):
        names = read_array(file, len(content)).tolist()
        parts.append({name: read_array(file, len(content)) for name in names})
    return parts


def read_run(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray], Rows]:
    """Return the JSON data, the arrays of the learner, and those of the run.

    ``path`` is a checkpoint, its rounds in a log or not, or a run that ``Run.save`` wrote.
    """
    meta, arrays = read_npz(path)
    if "run" not in meta:
        return meta, arrays, {}
    with refusing(path):
        state = {name: a for name, a in arrays.items() if "spec" in meta and name[:4] != "run_"}
        own = under("run_", arrays) if "spec" in meta else arrays
        log = meta["run"].get("log")
        if log:
            parts = read_log(log_path(path), log)
            if meta["run"]["record"] == "all":
                own = joined(parts)
            else:
                clock = {name: own.pop(name) for name in CLOCK}
                own = joined([*parts, own] if own else parts) | clock
        check_rows(meta["run"], own)
    return meta, state, own


def check_rows(run: dict[str, Any], rows: Rows) -> None:
    """Raise ValueError where what a file says of a run is not what a run keeps."""
    n = len(rows["sizes"])
    rounds, record = run.get("rounds", n), run.get("record", "all")  # not in older files
    check_record(record)
    needed = {"predictions", "losses", *CLOCK} | (PROOF if PROOF & rows.keys() else set())
    needed |= set() if record == "all" else {"recorded", "loss_sums"}
    for name in needed | rows.keys():
        _check_kept(name, rows, n)
    kept = rows.get("recorded", np.arange(1, n + 1))
    good = count_in(rounds, 0) and n >= bool(rounds) and (n == rounds or record != "all")
    good = good and (n == 0 or (kept[0] >= 1 and kept[-1] == rounds))
    if not good or (np.diff(kept) <= 0).any():
        raise ValueError(f"it keeps {n} of {rounds!r} rounds, which are not those of record")
    kinds = {"seconds": float | int, "finished": bool, "learner": str, "loss": str}
    later = {"interrupted": (bool, False), "space": (str | None, None)}
    later |= {"outputs": (list | None, None), "log": (dict | None, None)}
    told = {name: (run[name], kind) for name, kind in kinds.items()}
    told |= {name: (run.get(name, default), kind) for name, (kind, default) in later.items()}
    for name, (value, kind) in told.items():
        if not isinstance(value, kind):
            raise ValueError(f"its {name} is {value!r}")


def _check_kept(name: str, rows: Rows, n: int) -> None:
    """Raise ValueError where an array is none that a run keeps of n rounds."""
    if name not in KEPT:
        raise ValueError(f"it has {name!r}, which no run keeps")
    array, (kinds, axes, like) = rows[name], KEPT[name]
    fits = array.dtype.kind in kinds and array.ndim in axes
    fits = fits and (name in CLOCK or len(array) == n)
    if not fits or (like is not None and array.shape != rows[like].shape):
        raise ValueError(f"its {name!r} of {n} rounds are {array.dtype} of shape {array.shape}")


# ---- the recorder ----


class Recorder:
    """Collects what the rounds leave behind, and writes it with the learner to a checkpoint."""

    def __init__(
        self,
        learner: Player,
        loss: losses.Loss,
        record: str | int = "all",
        path: str | os.PathLike | None = None,
        every: int | None = None,
    ):
        self.learner, self.loss, self.path, self.every = learner, loss, path, every
        self.record = record if isinstance(record, str) else int(record)
        self.kept = Rounds(loss)
        self.tail: Rows = {}  # of the last round, where it is not one of them
        self.sums: tuple[Any, Any] = (0.0, 0)  # of losses and mistakes; only if not all is kept
        self.counted = True  # mistakes, in all rounds so far
        self.seconds, self.rounds = 0.0, 0
        self.interrupted = False
        self.clock: list[tuple[int, float]] = []
        self.log, self.logged = {"bytes": 0, "crc": 0}, (0, 0)  # rounds and readings in the log
        self.saved: tuple[dict, dict] | None = None
        self.played: Played | None = None  # of the rounds so far, where anyone will ask
        self.passed = Played()  # of the rounds of a checkpoint, passed again
        self.saved_at, self.saved_rounds = time.monotonic(), 0

    def add(self, X: np.ndarray, y: np.ndarray, trace: Trace, seconds: float) -> None:
        """Keep what is wanted of some rounds, which took the learner so long."""
        if self.played is not None:
            self.played.add(X, y)
        part = self.learner._record(y, trace, self.loss)
        self.counted = self.counted and "mistakes" in part
        part = self._without_part_mistakes(part)
        before = self.rounds
        self.rounds += len(y)
        self.seconds += seconds
        self.clock.append((self.rounds, self.seconds))
        if self.record == "all":
            self.kept.add(part)
            return
        if len(self.clock) == 2 * READINGS:
            self.clock = self.clock[1::2]
        self._add_some(part, np.arange(before + 1, self.rounds + 1))

    def add_part(self, X: np.ndarray, y: np.ndarray, trace: Trace | None, seconds: float) -> None:
        """Keep the rounds that were played before there was no more room, and save them.

        trace : of these; None where the learner is not intact, so that the last checkpoint stands.
        """
        if trace is None:
            return
        played = len(trace.sizes)
        if played:
            self.add(X[:played], y[:played], trace, seconds)
        if self.path is not None and self.rounds:
            self.save()

    def _add_some(self, part: Rows, rounds: np.ndarray) -> None:
        """Keep the rounds that ``record`` says, the last one, and the sums up to them."""
        part["recorded"] = rounds
        part["loss_sums"] = sums_so_far(self.sums[0], part["losses"])
        if self.counted:
            part["mistake_sums"] = sums_so_far(self.sums[1], part["mistakes"])
        self.sums = part["loss_sums"][-1], part["mistake_sums"][-1] if self.counted else 0
        kept = self._kept(rounds)
        self.tail = {} if kept[-1] else {name: a[-1:].copy() for name, a in part.items()}
        if kept.any():
            self.kept.add({name: a[kept] for name, a in part.items()})

    def _kept(self, rounds: np.ndarray) -> np.ndarray:
        if isinstance(self.record, int):
            return rounds % self.record == 0
        return np.full(len(rounds), self.record == "all")

    @staticmethod
    def _readings(clock: list[tuple[int, float]]) -> Rows:
        rounds, seconds = zip(*clock, strict=True) if clock else ((), ())
        return {
            CLOCK[0]: np.array(rounds, dtype=np.int64),
            CLOCK[1]: np.array(seconds, dtype=float),
        }

    def expect(self, rounds: int, y: np.ndarray | None) -> None:
        """Make room for so many rounds in all, where each of them is kept; y : all their labels."""
        if self.record == "all":
            self.kept.expected, self.kept.labels = rounds, y

    def arrays(self) -> Rows:
        """Return all that the run keeps, short as it is kept, at its end."""
        self._add_tail()
        return (self.kept.short() if self.kept.count else self._none()) | self._readings(self.clock)

    def _add_tail(self) -> None:
        if self.tail:
            self.kept.add(self.tail)
            self.tail = {}

    def _none(self) -> Rows:
        """Return what a run without rounds keeps."""
        rows = self.learner._record(np.empty(0), self.learner._trace(0), self.loss)
        if self.record == "all":
            return rows
        return rows | {"recorded": np.empty(0, dtype=np.int64), "loss_sums": rows["losses"]}

    def _without_part_mistakes(self, part: Rows) -> Rows:
        """Return the part without mistakes where some rounds had none."""
        return {name: a for name, a in part.items() if self.counted or name not in MISTAKES}

    def meta(self, finished: bool) -> dict[str, Any]:
        """Return what else there is to say of the run."""
        return {
            "seconds": self.seconds,
            "finished": finished,
            "interrupted": self.interrupted,
            "loss": self.loss.name,
            "learner": repr(self.learner),
            "space": self.learner._space(),
            "outputs": self.learner._output_names(),
            "record": self.record,
            "rounds": self.rounds,
        }

    # ---- checkpoints ----

    def due(self) -> bool:
        """Say whether it is time for a checkpoint."""
        if self.path is None:
            return False
        if self.every is not None:
            return self.rounds - self.saved_rounds >= self.every
        return time.monotonic() - self.saved_at >= SAVE_SECONDS

    def save(self) -> None:
        """Write a checkpoint of a run under way: the rounds since the last one into the log."""
        rounds, readings = self.logged
        if self.kept.count > rounds:
            part = self.kept.full(rounds)
            if self.record == "all":
                part |= self._readings(self.clock[readings:])
            self.log = append(log_path(self.path), self.log, part)
            self.logged = self.kept.count, len(self.clock)
        log = {"log": self.log} if self.log["bytes"] else {}
        rows = {} if self.record == "all" else self.tail | self._readings(self.clock)
        self._write(self.meta(finished=False) | log, rows)

    def close(self, finished: bool) -> None:
        """Write the last checkpoint, everything in one file."""
        self._add_tail()
        rows = self.kept.full() if self.kept.count else self._none()
        self._write(self.meta(finished), rows | self._readings(self.clock))
        log_path(self.path).unlink(missing_ok=True)

    def _write(self, run: dict[str, Any], rows: Rows) -> None:
        rows = {f"run_{name}": a for name, a in rows.items()}
        if self.played is not None and self.played.state is not None:
            rows[PLAYED] = self.played.state
        with self.learner._lock:
            meta, state = self.learner._contents()
            write_npz(self.path, meta | {"run": run}, state | rows)
        self.saved_at, self.saved_rounds = time.monotonic(), self.rounds

    def resume(self) -> None:
        """Read the checkpoint file, if there is one; ``adopt`` gives the learner its state."""
        if self.path is None:
            return
        if not Path(self.path).parent.is_dir():
            raise ValueError(f"checkpoint {self.path}: there is no such folder; make it first")
        path = Path(self.path)
        sweep(path)
        self.played = Played()
        if not path.exists():
            return
        meta, state, part = read_run(path)
        if "spec" not in meta or "run" not in meta:
            raise ValueError(f"{path} is no checkpoint of a run; name another file")
        with refusing(path):
            another = self._another(meta, state)
            if not (meta["width"] is None or count_in(meta["width"], 1)):
                raise ValueError(f"its state has width={meta['width']!r}")
        if another:
            raise ValueError(another)
        self.saved = meta, state
        self._go_on(meta["run"], part)
        if self.rounds:  # older files have no digest
            self.played = Played(state[PLAYED], self.width()) if PLAYED in state else None
        if "log" in meta["run"]:
            self.log, self.logged = meta["run"]["log"], (self.kept.count, len(self.clock))

    def _go_on(self, run: dict[str, Any], part: Rows) -> None:
        """Take over what a checkpoint kept of its rounds."""
        clock = [(int(r), float(s)) for r, s in zip(*(part[name] for name in CLOCK), strict=True)]
        self.rounds = self.saved_rounds = run.get("rounds", len(part["losses"]))
        self.seconds = run["seconds"]
        if not self.rounds:
            return
        self.counted = "mistakes" in part
        self.clock = clock
        part = {name: a for name, a in part.items() if name not in CLOCK}
        if self.record == "all":
            self.kept.add(part)
        else:
            sums = [part[name][-1] if name in part else 0 for name in ("loss_sums", MISTAKES[1])]
            self.sums = sums[0], sums[1]
            kept = self._kept(part["recorded"])
            self.tail = {} if kept[-1] else {name: a[-1:] for name, a in part.items()}
            if kept.any():
                self.kept.add({name: a[kept] for name, a in part.items()})

    def _another(self, meta: dict[str, Any], state: dict[str, np.ndarray]) -> str | None:
        """Say what is wrong where the checkpoint is of another run, or the learner not fresh."""
        own, own_arrays = self.learner._contents()
        run = meta["run"]
        same = same_spec((own["spec"], own_arrays), (meta["spec"], state))
        if not same or run["loss"] != self.loss.name:
            return (
                f"the checkpoint {self.path} is of {run['learner']} with "
                f"{run['loss']} loss, not of {self.learner!r} with {self.loss.name} loss; "
                "name another file or delete it"
            )
        if run.get("record", "all") != self.record:
            return (
                f"the checkpoint {self.path} is of a run with record={run.get('record', 'all')!r}, "
                f"not {self.record!r}; pass what it has, name another file or delete it"
            )
        if self.learner.rounds:
            return (
                f"the learner has played {self.learner.rounds} rounds; "
                f"resume {self.path} with a fresh one"
            )
        return None

    def width(self) -> int | None:
        """Return the width of the data so far."""
        return self.saved[0]["width"] if self.saved else self.learner._width

    def skip(self, X: Any, y: np.ndarray) -> None:
        """Look at rounds of the checkpoint that are passed again; ``adopt`` compares them."""
        if self.played is not None:
            self.passed.add_all(X, y)

    def adopt(self, y: np.ndarray | None = None) -> None:
        """Give the learner the state of the checkpoint, once, when the data has proved good.

        y : labels of the rounds to come, if there are any.

        Raises
        ------
        ValueError
            If the rounds that were passed again are others, or the file is damaged.
        """
        if not self.saved:
            return
        if self.passed.state is not None and not self.passed.is_of(self.played):
            raise ValueError(
                f"the first {self.rounds} rounds are not those that the checkpoint {self.path} has "
                "played: the digests of their rows and labels differ; pass the same data, name "
                "another file or delete it"
            )
        with refusing(self.path), self.learner._lock, HOLD:
            if self.played is not None and y is not None:
                self.played.check(y)
            self.learner._adopt(*self.saved)
            if self.learner.rounds != self.rounds:
                found = self.learner.rounds
                self.learner.reset()
                raise ValueError(f"its state has {found} rounds, and its run {self.rounds}")
        self.saved = None

    def too_many(self, found: int) -> ValueError:
        """Return the error of a checkpoint that is ahead of its data."""
        return ValueError(
            f"the checkpoint {self.path} has played {self.rounds} rounds, but the data has only "
            f"{found}; pass the same data from the start (or, with resume=True, only what comes "
            "after these rounds), or name another file"
        )
