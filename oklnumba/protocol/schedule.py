"""When labels come: at once, late, in batches, or not at all."""

from typing import Any

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.learners.base.learner import Learner, Trace
from oklnumba.learners.base.waiting import DelayedLabels


class Schedule:
    """The order of forecasts and labels of a run."""

    def __init__(self, learner: Learner, delay: int, batch: int, labels: str):
        self.learner = learner
        delay = checks.require_count("delay", delay, 0)
        self.batch = batch = checks.require_count("batch", batch, 1)
        self.delayed = DelayedLabels(learner, delay, batch) if delay > 0 or batch > 1 else None
        given = checks.require_choice("labels", labels, ("required", "optional"))
        self.optional = given == "optional"
        words = f"delay={delay}" * (delay > 0), f"batch={batch}" * (batch > 1)
        # ``Run.late``: "" if each label comes at once.
        self.lateness = ", ".join(filter(None, (*words, "labels='optional'" * self.optional)))
        self.season = learner._traits.season if self.optional else None  # until a gap is warned of
        said = "needs each label at once; {}play the learner within it"
        if self.delayed and (refusal := learner._refuses_late):
            more = f", or {refusal.cure}" if refusal.cure else ""
            raise ValueError(f"{refusal.name} {said.format('')}{more}")
        if self.optional and (name := learner._traits.needs_each_label):
            raise ValueError(f"{name} {said.format('leave rows without one out, or ')}")

    def as_optional_labels(self, y: Any, n: int, signs: bool) -> np.ndarray:
        """Return checked labels as floats, NaN for missing ones."""
        values = inputs.as_label_array(y)
        if values.shape[:1] != (n,):
            return self.learner._as_labels(y, n, signs)
        there = inputs.find_labels(values)
        begun = np.maximum.accumulate(there) | (self.learner.rounds > 0)
        if self.season and (begun & ~there).any():  # a gap before the first label is no fault
            self.season = None
            checks.warn(
                "Lags counts labels, not rows: after rows without one its season comes late. Fill "
                "such labels by those of a season before, y.fillna(y.shift(season)) in pandas"
            )
        labels = np.full(values.shape, np.nan)
        if there.any():
            filled = values.copy()
            filled[~there] = values[there][0]
            try:
                learned = self.learner._as_labels(filled, n, signs)
            except ValueError as error:  # row 0 may have got the first label there is
                said = str(error).replace(" row 0", f" row {there.argmax()}")
                raise ValueError(said) from error
            labels[there] = learned[there]
        self.learner._take_label_names(y)
        return labels

    def play(self, X: Any, y: np.ndarray, before: int, coming: int) -> list[Trace]:
        """Play rows of a run, the first of ``coming``; return what it stores of their forecasts.

        before : rounds of the run before these.
        """
        learner, traces = self.learner, []
        learner._begin(X.shape[1], *y.shape[1:])  # a row without a label may be the first
        X = inputs.make_dense(X)
        if self.delayed:
            return self.delayed.play(X, y, before)
        # Rows with a label, which are played in one go, and rows without.
        there = inputs.find_labels(y) | learner._traits.plays_gaps
        for some in inputs.cut_runs(there):
            if there[some.start]:
                traces.append(learner._play_rows(X[some], y[some], coming))
            else:
                traces.append(learner._forecast_rows(X[some]))
        return traces
