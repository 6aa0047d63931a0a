"""When labels come: at once, late, in batches, or not at all."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.core.inputs import cut_runs, find_labels
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


class Schedule:
    """The order of forecasts and labels.

    If ``batch`` divides t, the learner learns all labels up to round t - ``delay`` after the
    forecast of round t.
    """

    def __init__(self, learner: Learner, delay: int, batch: int, labels: str):
        self.learner = learner
        self.delay = delay = checks.require_count("delay", delay, 0)
        self.batch = batch = checks.require_count("batch", batch, 1)
        given = checks.require_choice("labels", labels, ("required", "optional"))
        self.optional, self.at_once = given == "optional", delay == 0 and batch == 1
        words = f"delay={delay}" * (delay > 0), f"batch={batch}" * (batch > 1)
        self.words = ", ".join(filter(None, (*words, "labels='optional'" * self.optional)))
        self.season = learner._traits.season if self.optional else None  # until a gap is warned of
        self.waiting: Rows | None = None  # the rounds after those learned
        late = None if self.at_once else learner._refuses_late
        if self.words and (name := learner._traits.needs_each_label or late):
            leave = "leave rows without one out, or " if self.at_once else ""
            hint = ", or put Intervals outside" if name == "Intervals" else ""
            raise ValueError(
                f"{name} needs each label at once; {leave}play the learner within it{hint}"
            )

    def as_labels(self, y: Any, n: int, signs: bool) -> np.ndarray:
        """Return checked labels; optional ones as floats, NaN for missing ones."""
        values = inputs.as_label_array(y) if self.optional else None
        if values is None or values.shape[:1] != (n,):
            return self.learner._as_labels(y, n, signs)
        there = find_labels(values)
        if self.season and not there.all():
            self.season = None
            checks.warn(
                "Lags counts labels, not rows: after rows without one its season comes late. Fill "
                "such labels by those of a season before, y.fillna(y.shift(season)) in pandas"
            )
        if not there.any():
            return np.full(values.shape, np.nan)
        filled = values.copy()
        filled[~there] = values[there][0]
        labels = self.learner._as_labels(filled, n, signs).astype(np.float64)
        labels[~there] = np.nan
        return labels

    def play(self, rows: Rows, before: int, coming: int) -> list[Trace]:
        """Play rows of a run, the first of ``coming``; return what it stores of their forecasts.

        before : rounds of the run before these.
        """
        learner, n, traces = self.learner, len(rows.y), []
        learner._begin(rows.X.shape[1], *rows.y.shape[1:])
        rows = rows._replace(X=inputs.make_dense(rows.X))
        if self.at_once:  # rows with a label, which are played in one go, and rows without
            there = find_labels(rows.y)
            for some in cut_runs(there):
                X, y = rows.X[some], rows.y[some]
                has = there[some.start]
                played = learner._play_rows(X, y, coming) if has else learner._forecast_rows(X)
                traces.append(played)
            return traces
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
