"""What a run stores of its rounds, and the checkpoint from which it goes on.

A checkpoint is one ``.npz`` file with the learner's state and the rounds stored.
"""

import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.core.files import read_npz, refuse_damage, write_npz
from oklnumba.core.inputs import dense_blocks, make_dense
from oklnumba.core.params import to_spec
from oklnumba.core.schema import Schema
from oklnumba.core.state import select_prefix
from oklnumba.learners.base.learner import PLAY_ROWS, Learner, Trace
from oklnumba.protocol.late import LateLabels

SAVE_SECONDS = 60.0  # between two checkpoints where ``every`` is not given
# First rows, which tell whether all data is passed again, if so many of them differ.
COMPARED_ROWS, FEWEST_DIFFERENT = 32, 8
READINGS = 1024  # of the clock that a run stores at least, where it does not store every round
MISTAKES = "mistakes", "mistake_sums", "labels"  # of classes only
KEPT = "rounds", "seconds", "interrupted", "record", "first", "digest", "opening"
PIECE_ROWS = 4096  # stored pieces that are shorter are joined
SETTLED = 32  # rounds that ``Run.settled_mean_loss`` leaves out

Rows = dict[str, np.ndarray]  # what is stored of some rounds, by the names of ``Run``
Digest = tuple[int, int]  # of inputs and of labels
NO_ROWS = 0, 0


def sum_rounds(before: Any, values: np.ndarray) -> np.ndarray:
    """Return the sums after each row, added one by one: the same however rounds are cut."""
    first = np.broadcast_to(before, values.shape[1:])[None]
    return np.cumsum(np.concatenate([first, values]), axis=0)[1:]


def add_digest(before: Digest, X: Any, y: np.ndarray) -> Digest:
    """Return the CRC-32 of all inputs and labels after more rows: the same however they are cut."""
    inputs, labels = before
    for block in dense_blocks(X, PLAY_ROWS):
        inputs = zlib.crc32(block, inputs)
    return inputs, zlib.crc32(np.ascontiguousarray(y, dtype=np.float64), labels)


@dataclass
class Recorder:
    """Stores the rounds, and writes them with the learner to a checkpoint."""

    learner: Learner
    loss: losses.Loss
    record: str | int = "all"
    path: Path | None = None
    every: int | None = None
    late: LateLabels | None = None  # plays in the learner's place
    columns: dict[str, list[np.ndarray]] = field(default_factory=dict)  # in pieces
    unsaved: Rows = field(default_factory=dict)  # the last round, where ``record`` drops it
    sums: tuple[Any, Any] = (0.0, 0)  # of losses and mistakes, unless all rounds are stored
    first: tuple[float, int] | None = None  # loss and labels of SETTLED rounds, likewise
    counted: bool = True  # whether all rounds so far had mistakes
    rounds: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    clock: list[tuple[int, float]] = field(default_factory=list)
    saved: tuple[dict, dict] | None = None  # a checkpoint that is not taken over yet
    schema: Schema | None = None  # what the rows mean
    past: int = 0  # rounds of the checkpoint whose rows will be passed again
    digest: Digest = NO_ROWS  # of the rounds, with a checkpoint
    digest_again: Digest = NO_ROWS  # of those of the checkpoint whose rows were passed again
    opening: tuple[int, Digest] | None = None  # the number of first rows, and their digest
    saved_at: float = field(default_factory=time.monotonic)
    saved_rounds: int = 0

    # ---- rounds ----

    def add(self, X: Any, y: np.ndarray, trace: Trace, seconds: float) -> None:
        """Store what ``record`` asks for of some rounds, which took ``seconds``."""
        if self.path is not None:
            self.digest = add_digest(self.digest, X, y)
        part = (self.late or self.learner)._record(y, trace, self.loss)
        self.counted = self.counted and "mistakes" in part
        for name in () if self.counted else MISTAKES:
            self.columns.pop(name, None)
            part.pop(name, None)
        before = self.rounds
        self.rounds += len(y)
        self.seconds += seconds
        self.clock.append((self.rounds, self.seconds))
        if self.record == "all":
            self._append(part)
            return
        if len(self.clock) == 2 * READINGS:
            self.clock = self.clock[1::2]
        self._add_some(part, np.arange(before + 1, self.rounds + 1))

    def _add_some(self, part: Rows, rounds: np.ndarray) -> None:
        """Store every k-th round, the last one, and the sums up to them."""
        part["recorded"], losses = rounds, part["losses"]
        if self.late:  # NaN where there was no label
            losses = np.where(np.isnan(losses), 0.0, losses)
        part["loss_sums"] = sum_rounds(self.sums[0], losses)
        if self.counted:
            part["mistake_sums"] = sum_rounds(self.sums[1], part["mistakes"])
        self.sums = part["loss_sums"][-1], part["mistake_sums"][-1] if self.counted else 0
        if rounds[0] <= SETTLED <= rounds[-1]:
            at = SETTLED - rounds[0]
            labels = part["labelled"][at] if self.late else SETTLED
            self.first = float(part["loss_sums"][at].mean()), int(labels)
        self._append_recorded(part)

    def _append_recorded(self, part: Rows) -> None:
        rounds = part["recorded"]
        wanted = rounds % self.record == 0 if isinstance(self.record, int) else rounds < 0
        self.unsaved = {} if wanted[-1] else {name: a[-1:].copy() for name, a in part.items()}
        if wanted.any():
            self._append({name: a[wanted] for name, a in part.items()})

    def _append(self, part: Rows) -> None:
        """Append rows; short pieces are joined."""
        for name, values in part.items():
            pieces = self.columns.setdefault(name, [])
            pieces.append(values)
            while len(pieces) > 1 and len(pieces[-2]) <= len(pieces[-1]) < PIECE_ROWS:
                pieces[-2:] = [np.concatenate(pieces[-2:])]

    def arrays(self) -> Rows:
        """Return all that is stored, the last round too."""
        for pieces in self.columns.values():
            if len(pieces) > 1:
                pieces[:] = [np.concatenate(pieces)]
        rows = {name: column for name, (column,) in self.columns.items()}
        for name, last in self.unsaved.items():
            if self.counted or name not in MISTAKES:
                rows[name] = np.concatenate([rows[name], last]) if name in rows else last
        if not rows:
            rows = self.learner._record(np.empty(0), self.learner._trace(0), self.loss)
            if self.record != "all":
                rows |= {"recorded": np.empty(0, dtype=np.int64), "loss_sums": rows["losses"]}
        clock = np.array(self.clock, dtype=float).reshape(-1, 2)
        rows["checkpoints"] = clock[:, 0].astype(np.int64)
        return rows | {"checkpoint_seconds": clock[:, 1].copy()}

    def meta(self, finished: bool) -> dict[str, Any]:
        """Return what the run is, apart from its rounds."""
        return {name: getattr(self, name) for name in KEPT} | {
            "finished": finished,
            "loss": self.loss.name,
            "own_loss": self.learner._loss().name,
            "learner": self.learner._repr_with(self.learner._params_in_force()),
            "space": self.learner._space() if self.rounds else None,
            "member": self.learner._member() if self.rounds else None,
            "outputs": self.learner._output_names,
            "late": getattr(self.late, "words", ""),
            "played": self.learner.rounds,
            "outliers": self.learner._outliers() if self.rounds else (0, 0.0),
            "schema": self.schema and self.schema.to_json(),
        }

    # ---- checkpoints ----

    def due(self) -> bool:
        """Say whether it is time for a checkpoint."""
        if self.every is not None:
            return self.rounds - self.saved_rounds >= self.every
        return time.monotonic() - self.saved_at >= SAVE_SECONDS

    def save(self, finished: bool = False) -> None:
        """Write a checkpoint."""
        if self.saved:
            self.restore_learner()
        with self.learner._lock:
            meta, state = self.learner._contents()
            run_rows = {f"run_{name}": a for name, a in self.arrays().items()}
            run_rows |= self.late.contents() if self.late else {}
            write_npz(self.path, meta | {"run": self.meta(finished)}, state | run_rows)
        self.saved_at, self.saved_rounds = time.monotonic(), self.rounds

    def resume(self) -> None:
        """Read the checkpoint, if the file exists; the learner's state waits for its rounds."""
        if not self.path.parent.is_dir():
            self._refuse("cannot be written: its folder does not exist; make it first")
        if not self.path.exists():
            return
        meta, state = read_npz(self.path)
        if "spec" not in meta or "run" not in meta:
            self._refuse("is not a checkpoint of a run; delete it")
        self._refuse_other_run(meta, state)
        run, rows, self.saved = meta["run"], select_prefix("run_", state), (meta, state)
        with refuse_damage(self.path):
            for name in ("rounds", "seconds", "first", "digest", "opening"):
                setattr(self, name, run[name])
            self.saved_rounds = self.rounds
            if self.late:
                self.late.restore(self.rounds, state)
            clock = rows.pop("checkpoints"), rows.pop("checkpoint_seconds")
            self.clock = [(int(r), float(s)) for r, s in zip(*clock, strict=True)]
            self.counted = "mistakes" in rows or not self.rounds
            if self.rounds and self.record == "all":
                self._append(rows)
            elif self.rounds:
                self._append_recorded(rows)
                self.sums = rows["loss_sums"][-1], rows["mistake_sums"][-1] if self.counted else 0

    def _refuse(self, what: str) -> None:
        """Raise ValueError: the checkpoint is not for this call, because it ...; do ..."""
        raise ValueError(f"the checkpoint {self.path} {what}, or name another file")

    def _refuse_other_run(self, meta: dict[str, Any], state: Rows) -> None:
        """Raise ValueError for the checkpoint of another run, or a learner that is not fresh."""
        run, arrays = meta["run"], {}
        spec = to_spec(type(self.learner)(**vars(self.learner._checked_params())), arrays)
        same = spec == meta["spec"] and all(np.array_equal(a, state[n]) for n, a in arrays.items())
        if not same or run["loss"] != self.loss.name:
            self._refuse(
                f"is of {run['learner']} with {run['loss']} loss, not of {self.learner!r} with "
                f"{self.loss.name} loss; delete it"
            )
        late = getattr(self.late, "words", "") or "delay=0"
        saved = f"record={run['record']!r}", run.get("late") or "delay=0"
        for theirs, ours in zip(saved, (f"record={self.record!r}", late), strict=True):
            if theirs != ours:
                self._refuse(f"is of a run with {theirs}, not {ours}; pass that one, delete it")
        if self.learner.rounds:
            self._refuse(f"needs a fresh learner; this one has played {self.learner.rounds} rounds")

    def refuse_short_data(self) -> None:
        """Raise ValueError if the data ended before the rounds of the checkpoint did."""
        if self.past:
            self._refuse(
                f"has played {self.rounds} rounds, but the data has only "
                f"{self.rounds - self.past}; pass the same data from the start (or, with "
                "resume=True, only what comes after these rounds)"
            )

    def compare_past(self, X: Any, y: np.ndarray, resume: bool) -> int:
        """Return how many of these rows the checkpoint has; ValueError if they are others.

        The first rows of all are kept, if many differ: with ``resume`` they must not come again.
        """
        if self.path is not None and not self.rounds:
            first = X[:COMPARED_ROWS], y[:COMPARED_ROWS]
            rows = np.column_stack([make_dense(first[0]), np.nan_to_num(first[1])])
            if len(np.unique(rows, axis=0)) >= FEWEST_DIFFERENT:
                self.opening = len(rows), add_digest(NO_ROWS, *first)
        past = min(self.past, len(y))
        self.past -= past
        if past:
            self.digest_again = add_digest(self.digest_again, X[:past], y[:past])
        if past and not self.past and self.digest_again != tuple(self.digest):
            other = "inputs" if self.digest_again[1] == self.digest[1] else "labels"
            self._refuse(
                f"is of other data: the {other} of rounds 1 to {self.rounds} are not those of the "
                "run; pass the same data in the same order"
            )
        if resume and self.saved and self.opening is not None:
            rows, digest = self.opening
            if add_digest(NO_ROWS, X[:rows], y[:rows]) == tuple(digest):
                self._refuse(
                    "starts with the rows that the data starts with: with resume=True pass only "
                    "what comes after its rounds, leave resume out"
                )
        return past

    def restore_learner(self) -> None:
        """Give the learner the state of the checkpoint, once."""
        with refuse_damage(self.path), self.learner._lock:
            self.learner._restore_contents(*self.saved)
        self.saved = None
