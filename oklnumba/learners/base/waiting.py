"""Rows that wait for their labels: a learner forecasts each row before it learns it, later."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from oklnumba.core.inputs import find_labels
from oklnumba.learners.base.late import NO_NOTES, LateRows, fit_notes
from oklnumba.learners.base.learner import Learner, Trace


class Waiting(NamedTuple):
    """Rows that were forecast and not learned yet."""

    X: np.ndarray
    y: np.ndarray
    known: np.ndarray  # labels learned when each was forecast
    notes: np.ndarray  # what the learner noted then


class DelayedLabels:
    """Plays a learner whose labels come late.

    If ``batch`` divides t, the learner learns all labels up to round t - ``delay`` after the
    forecast of round t.
    """

    def __init__(self, learner: Learner, delay: int, batch: int = 1):
        self.learner, self.delay, self.batch = learner, delay, batch
        self.waiting: Waiting | None = None  # the rounds after those learned

    def play(self, X: np.ndarray, y: np.ndarray, before: int = 0) -> list[Trace]:
        """Play rows, dense; return what a run stores of their forecasts.

        before : rounds before these, counted from the start of a batch.
        """
        n, traces = len(y), list[Trace]()
        parts = [self.waiting] if self.waiting else []
        notes = fit_notes(NO_NOTES, n, self.learner._note_width)
        parts.append(Waiting(X, y, np.empty(n, dtype=np.int64), notes))
        # Copies: the caller may refill its arrays while rows wait here.
        held = Waiting(*map(np.concatenate, zip(*parts, strict=True)))
        turns: list[int] = []  # rows in the order in which they are forecast and learned
        learned_then: list[bool] = []  # whether each is learned in its turn, else forecast
        first, offset = 0, len(held.y) - n  # the first not learned yet, and not forecast yet
        ends = range(self.batch - before % self.batch, n, self.batch)
        for start, stop in pairwise([0, *ends, n]):
            last = offset + stop - self.delay if (before + stop) % self.batch == 0 else 0
            turns += [*range(offset + start, offset + stop), *range(first, last)]
            learned_then += [False] * (stop - start) + [True] * (last - first)
            first = max(first, last)
        rows, learns = np.array(turns, dtype=np.int64), np.array(learned_then, dtype=bool)
        some = ~learns | find_labels(held.y[rows])
        rows, learns = rows[some], learns[some]
        learned = self.learner.rounds + np.cumsum(learns) - learns
        held.known[rows[~learns]] = learned[~learns]
        late = LateRows(held.notes, rows, learned - held.known[rows])
        if len(rows):
            self.learner._play_turns(held.X[rows], held.y[rows], learns, late, traces)
        self.waiting = Waiting(*(a[first:] for a in held))
        return traces

    def learn_rest(self) -> None:
        """Learn the rows that wait, those that have a label."""
        if self.waiting and (there := find_labels(self.waiting.y)).any():
            X, y, known, notes = (a[there] for a in self.waiting)
            missed = self.learner.rounds + np.arange(len(known)) - known
            self.learner._learn_rows(X, y, missed, notes)

    def contents(self) -> dict[str, np.ndarray]:
        """Return the rows that wait for their labels, for a checkpoint."""
        rows = self.waiting._asdict() if self.waiting else {}
        return {f"late_{name}": a for name, a in rows.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what ``contents`` returned."""
        if "late_X" in arrays:
            self.waiting = Waiting(*(arrays[f"late_{name}"] for name in Waiting._fields))
