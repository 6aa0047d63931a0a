"""Rows that wait for their labels: a learner forecasts each row before it learns it, later."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from oklnumba.core import inputs
from oklnumba.core.inputs import find_labels
from oklnumba.learners.base.late import NO_NOTES, fit_notes
from oklnumba.learners.base.learner import Learner, Trace


class Rows(NamedTuple):
    """Rows of a stream; known and notes are of rows that wait for their labels."""

    X: np.ndarray  # or sparse
    y: np.ndarray
    known: np.ndarray = np.empty(0, dtype=np.int64)  # labels learned when each was forecast
    notes: np.ndarray = NO_NOTES  # what the learner noted then

    def cut(self, start: int, stop: int | None = None) -> "Rows":
        """Return rows start to stop (views)."""
        return Rows(*[a[start:stop] for a in self])


class LateLabels:
    """Plays a learner whose labels come late.

    If ``batch`` divides t, the learner learns all labels up to round t - ``delay`` after the
    forecast of round t.
    """

    def __init__(self, learner: Learner, delay: int, batch: int = 1):
        self.learner, self.delay, self.batch = learner, delay, batch
        self.waiting: Rows | None = None  # the rounds after those learned

    def play_late(self, rows: Rows, before: int = 0) -> list[Trace]:
        """Play rows; return what a run stores of their forecasts.

        before : rounds before these, counted from the start of a batch.
        """
        learner, n, traces = self.learner, len(rows.y), []
        parts = [self.waiting] if self.waiting else []
        notes = fit_notes(NO_NOTES, n, learner._notes)
        parts.append(rows._replace(known=np.empty(n, dtype=np.int64), notes=notes))
        # Copies: the caller may refill its arrays while rows wait here.
        held = Rows(*map(np.concatenate, zip(*parts, strict=True)))
        turns: list[tuple[int, int, bool]] = []  # start, stop, learns: played in one go
        first, offset = 0, len(held.y) - n  # not learned yet; not forecast yet
        ends = range(self.batch - before % self.batch, n, self.batch)
        for start, stop in pairwise([0, *ends, n]):
            turns.append((offset + start, offset + stop, False))
            last = offset + stop - self.delay if (before + stop) % self.batch == 0 else 0
            if last > first:
                # What is learned must have been noted before.
                if last > next(turn[0] for turn in turns if not turn[2]):
                    self._play_turns(held, turns, traces)
                    turns = []
                turns.append((first, last, True))
                first = last
        self._play_turns(held, turns, traces)
        self.waiting = held.cut(first)
        return traces

    def _play_turns(
        self, held: Rows, turns: list[tuple[int, int, bool]], traces: list[Trace]
    ) -> None:
        """Play turns in one go: those to learn by what was noted of them."""
        rows = np.concatenate([np.arange(*turn[:2]) for turn in turns])
        learns = np.concatenate([np.full(stop - start, what) for start, stop, what in turns])
        some = ~learns | find_labels(held.y[rows])
        rows, learns = rows[some], learns[some]
        if not len(rows):
            return
        learned, asked = self.learner.rounds + np.cumsum(learns) - learns, rows[~learns]
        held.known[asked] = learned[~learns]
        notes, leads = held.notes[rows], learned - held.known[rows]
        self.learner._play_turns((held.X[rows], held.y[rows], learns, leads, notes), traces)
        held.notes[asked] = notes[~learns]

    def learn(self, rows: Rows) -> None:
        """Learn rows whose labels come late, those that have one."""
        if (there := find_labels(rows.y)).any():
            learner, known = self.learner, rows.known[there]
            leads = inputs.as_leads(known, learner.rounds, len(known))
            learner._learn_rows(rows.X[there], rows.y[there], leads, rows.notes[there])

    def contents(self) -> dict[str, np.ndarray]:
        """Return the rows that wait for their labels, for a checkpoint."""
        rows = self.waiting._asdict() if self.waiting else {}
        return {f"late_{name}": a for name, a in rows.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what ``contents`` returned."""
        if "late_X" in arrays:
            self.waiting = Rows(*(arrays[f"late_{name}"] for name in Rows._fields))
