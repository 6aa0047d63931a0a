"""When labels come: at once, late, in batches, or not at all."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.core.inputs import find_labels
from oklnumba.learners.base.late import NO_NOTES, fit_notes
from oklnumba.learners.base.learner import Learner


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

    def take_turns(self, rows: Rows, before: int) -> Iterator[tuple[Rows, Rows | None]]:
        """Yield rows to forecast, and rows to learn then: the same ones if labels come at once.

        before : rounds of the run before these.
        """
        if not self.words:
            yield rows, rows
            return
        self.learner._begin(rows.X.shape[1], *rows.y.shape[1:])
        rows, n, batch = rows._replace(X=inputs.make_dense(rows.X)), len(rows.y), self.batch
        if self.at_once:  # rows with a label, which are played in one go, and rows without
            there = find_labels(rows.y)
            for start, stop in pairwise([0, *np.flatnonzero(np.diff(there)) + 1, n]):
                part = rows.cut(start, stop)
                yield part, part if there[start] else None
            return
        parts = [self.waiting] if self.waiting else []
        notes = fit_notes(NO_NOTES, n, self.learner._notes)
        parts.append(rows._replace(known=np.empty(n, dtype=np.int64), notes=notes))
        # Copies: the caller may refill its arrays while rows wait here.
        held = Rows(*map(np.concatenate, zip(*parts, strict=True)))
        first, offset = 0, len(held.y) - n  # not learned yet; not forecast yet
        for start, stop in pairwise([0, *range(batch - before % batch, n, batch), n]):
            held.known[offset + start : offset + stop] = self.learner.rounds
            last = offset + stop - self.delay if (before + stop) % batch == 0 else 0
            yield held.cut(offset + start, offset + stop), held.cut(first, max(first, last))
            first = max(first, last)
        self.waiting = held.cut(first)

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
