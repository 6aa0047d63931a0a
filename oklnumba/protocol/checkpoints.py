"""The file of a learner and its run so far, from which the run goes on."""

import time
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from oklnumba.core.checks import warn
from oklnumba.core.files import find_target, read_npz, refuse_damage, write_npz
from oklnumba.core.inputs import PLAY_ROWS, cut_blocks, make_dense
from oklnumba.core.params import to_spec
from oklnumba.core.state import select_prefix
from oklnumba.learners.base.contents import get_contents, restore_contents
from oklnumba.protocol.recording import Recorder
from oklnumba.protocol.runs import Run
from oklnumba.protocol.schedule import Schedule

SAVE_SECONDS = 60.0  # between two checkpoints where ``every`` is not given
# First rows, which tell whether all data is passed again, if so many of them differ.
COMPARED_ROWS, FEWEST_DIFFERENT = 32, 8

Digest = tuple[int, int]  # of inputs and of labels
NO_ROWS = 0, 0


def add_digest(before: Digest, X: Any, y: np.ndarray) -> Digest:
    """Return the CRC-32 of all inputs and labels after more rows: the same however they are cut."""
    inputs, labels = before
    for part, block in cut_blocks(X, PLAY_ROWS):
        inputs = zlib.crc32(block.data, inputs)
        labels = zlib.crc32(np.ascontiguousarray(y[part], dtype=np.float64).data, labels)
    return inputs, labels


class Checkpoint:
    """A learner and its run so far, in a file.

    resume : whether the data starts where the file ends, not with the first round.
    """

    past = 0  # rounds in the file whose rows will be passed again
    digest: Digest = NO_ROWS  # of the rounds
    digest_again: Digest = NO_ROWS  # of those in the file whose rows were passed again
    opening: tuple[int, Digest] | None = None  # the number of first rows, and their digest
    # Contents of the file that the learner has not taken over yet: its state waits for its rounds.
    saved: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None

    def __init__(
        self, path: Path, every: int | None, resume: bool, recorder: Recorder, schedule: Schedule
    ):
        self.path, self.every, self.resume = path, every, resume
        self.recorder, self.schedule = recorder, schedule
        self.saved_at, self.saved_rounds = time.monotonic(), 0
        find_target(path)  # which refuses what cannot be written
        if path.exists():
            self._read()

    def _read(self) -> None:
        meta, state = read_npz(self.path)
        if "spec" not in meta or "run" not in meta:
            self._refuse("is not a checkpoint of a run; delete it")
        if not meta["run"]["rounds"]:
            if not meta["run"]["interrupted"]:
                warn(
                    f"the run of {self.path} was stopped before its first checkpoint and begins "
                    "anew; every=n saves after n rounds, without it after a minute"
                )
            return
        self._refuse_other_run(meta, state)
        with refuse_damage(self.path):
            run = Run(select_prefix("run_", state), meta["run"])
            self.recorder.restore(run)
            if self.schedule.delayed:
                self.schedule.delayed.restore(state)
            self.digest, self.opening = meta["run"]["digest"], meta["run"]["opening"]
        self.saved, self.saved_rounds = (meta, state), run.rounds
        self.past = 0 if self.resume else run.rounds

    def add(self, X: Any, y: np.ndarray) -> None:
        """Take note of rows that were played, and save when it is time to."""
        self.digest = add_digest(self.digest, X, y)
        if self.every is not None:
            due = self.recorder.rounds - self.saved_rounds >= self.every
        else:
            due = time.monotonic() - self.saved_at >= SAVE_SECONDS
        if due:
            self._save(finished=False, interrupted=False)

    def _save(self, finished: bool, interrupted: bool) -> None:
        self.restore_learner()
        learner = self.recorder.learner
        with learner._lock:
            meta, state = get_contents(learner)
            run = self.recorder.make_run(finished, interrupted)
        run_meta = run._meta | {"digest": self.digest, "opening": self.opening}
        rows = {f"run_{name}": a for name, a in run._arrays.items()}
        rows |= self.schedule.delayed.contents() if self.schedule.delayed else {}
        write_npz(self.path, meta | {"run": run_meta}, state | rows)
        self.saved_at, self.saved_rounds = time.monotonic(), run.rounds

    def close(self, finished: bool, interrupted: bool) -> None:
        """Write the file at the end; ValueError if the data has not all rounds of the file."""
        if finished and self.past:
            rounds = self.recorder.rounds
            self._refuse(
                f"has played {rounds} rounds, but the data has only {rounds - self.past}; pass the "
                "same data from the start (or, with resume=True, only what comes after these "
                "rounds)"
            )
        self._save(finished, interrupted)

    def restore_learner(self) -> None:
        """Give the learner the state in the file, once."""
        if self.saved:
            with refuse_damage(self.path), self.recorder.learner._lock:
                restore_contents(self.recorder.learner, *self.saved)
            self.saved = None

    def skip_past(self, X: Any, y: np.ndarray) -> int:
        """Return how many of these rows the file has; ValueError if they are others."""
        if not self.recorder.rounds:
            self._begin(X[:COMPARED_ROWS], y[:COMPARED_ROWS])
        named = self.recorder.learner._output_names  # by the columns of these labels, if at all
        before = self.saved[0]["run"]["outputs"] if self.saved else None
        if named and before and named != before:
            self._refuse(f"is of labels in columns {before}, not {named}; pass them in that order")
        past = min(self.past, len(y))
        self.past -= past
        if past:
            self.digest_again = add_digest(self.digest_again, X[:past], y[:past])
        if past and not self.past and self.digest_again != tuple(self.digest):
            other = "inputs" if self.digest_again[1] == self.digest[1] else "labels"
            self._refuse(
                f"is of other data: the {other} of rounds 1 to {self.recorder.rounds} are not "
                "those of the run; pass the same data in the same order"
            )
        if self.resume and self.saved and self.opening is not None:
            count, digest = self.opening
            if add_digest(NO_ROWS, X[:count], y[:count]) == tuple(digest):
                self._refuse(
                    "starts with the rows that the data starts with: with resume=True pass only "
                    "what comes after its rounds, leave resume out"
                )
        return past

    def _begin(self, X: Any, y: np.ndarray) -> None:
        """Note the first rows, if many differ: with ``resume`` they must not come again."""
        rows = np.column_stack([make_dense(X), np.nan_to_num(y)])
        if len(np.unique(rows, axis=0)) >= FEWEST_DIFFERENT:
            self.opening = len(rows), add_digest(NO_ROWS, X, y)
        if not self.path.exists():  # the file tells the next run that this one has begun
            self._save(finished=False, interrupted=False)

    def _refuse(self, what: str) -> NoReturn:
        """Raise ValueError: the checkpoint is not for this call, because it ...; do ..."""
        raise ValueError(f"the checkpoint {self.path} {what}, or name another file")

    def _refuse_other_run(self, meta: dict[str, Any], state: dict[str, np.ndarray]) -> None:
        """Raise ValueError for the checkpoint of another run, or a learner that is not fresh."""
        learner, recorder, run = self.recorder.learner, self.recorder, meta["run"]
        arrays: dict[str, np.ndarray] = {}
        spec = to_spec(type(learner)(**vars(learner._checked_params())), arrays)
        same = spec == meta["spec"] and all(np.array_equal(a, state[n]) for n, a in arrays.items())
        if not same or run["loss"] != recorder.loss.name:
            self._refuse(
                f"is of {run['learner']} with {run['loss']} loss, not of {learner!r} with "
                f"{recorder.loss.name} loss; delete it"
            )
        saved = f"record={run['record']!r}", run.get("late") or "delay=0"
        asked = f"record={recorder.keeps!r}", recorder.lateness or "delay=0"
        for theirs, ours in zip(saved, asked, strict=True):
            if theirs != ours:
                self._refuse(f"is of a run with {theirs}, not {ours}; pass that one, delete it")
        if learner.rounds:
            self._refuse(f"needs a fresh learner; this one has played {learner.rounds} rounds")
