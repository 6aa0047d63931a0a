"""Labels that come late, in batches, or not at all."""

from itertools import pairwise
from typing import Any

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.core.inputs import find_labels
from oklnumba.learners.base.learner import Learner, Trace


class LateLabels:
    """Plays in a learner's place where labels come late, in batches, or not for every row.

    If ``batch`` divides t, the learner learns all labels up to round t - ``delay`` after the
    forecast of round t.
    """

    def __init__(self, learner: Learner, delay: int, batch: int, labels: str):
        self.learner, self.delay = learner, checks.require_count("delay", delay, 0)
        self.batch = checks.require_count("batch", batch, 1)
        given = checks.require_choice("labels", labels, ("required", "optional"))
        self.optional = given == "optional"
        late = delay > 0 or batch > 1
        name = learner._needs_each_label or (learner._needs_last_label if late else None)
        if name is not None:
            leave = "" if late else "leave rows without one out, or "
            hint = ", and take quantiles of its errors" if name == "Intervals" else ""
            raise ValueError(
                f"{name} needs each label at once; {leave}play the learner within it{hint}"
            )
        self.season = learner._season  # until a gap is warned of
        words = f"delay={delay}" * (delay > 0), f"batch={batch}" * (batch > 1)
        self.words = ", ".join(filter(None, (*words, "labels='optional'" * self.optional)))
        self.rounds = self.learned = self.labelled = 0  # rounds so far, learned, with a label
        self.X = self.y = None  # the rounds after those learned, unless labels come at once
        # Of each, how many had been learned when it was forecast.
        self.known = np.empty(0, dtype=np.int64)

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return checked labels; optional ones as floats, NaN for missing ones."""
        values = inputs.as_label_array(y)
        if not self.optional or values.shape[:1] != (n,):
            return self.learner._as_labels(y, n, signs)
        there = find_labels(values)
        if not there.any():
            return np.full(values.shape, np.nan)
        filled = np.where(there.reshape(-1, *[1] * (values.ndim - 1)), values, values[there][0])
        labels = self.learner._as_labels(filled, n, signs).astype(np.float64)
        labels[~there] = np.nan
        return labels

    def _play_rows(self, X: Any, y: np.ndarray, coming: int = 0) -> Trace:
        """Forecast rows and learn the labels that come meanwhile."""
        learner, batch, before, n = self.learner, self.batch, self.rounds, len(y)
        learner._begin(X.shape[1], *y.shape[1:])
        forecast = getattr(learner, "_forecast_outputs", learner.predict)  # of classes the scores
        X, there, at_once = inputs.make_dense(X), find_labels(y), batch == 1 and self.delay == 0
        if self.season and not there.all():
            self.season = None
            checks.warn(
                "Lags counts labels, not rows: after rows without one its season comes late. Fill "
                "such labels by those of a season before, y.fillna(y.shift(season)) in pandas"
            )
        if not at_once:  # copies: the caller may refill its arrays while rows wait here
            self.X = X.copy() if self.X is None else np.concatenate([self.X, X])
            self.y = y.copy() if self.y is None else np.concatenate([self.y, y])
        # Labels at once: rows with one, which are played in one go, and rows without take turns.
        gaps = np.flatnonzero(np.diff(there)) + 1
        ends = gaps if at_once else range(batch - before % batch, n, batch)
        traces = []
        for start, stop in pairwise([0, *ends, n]):
            self.rounds, part = before + stop, X[start:stop]
            if at_once and there[start]:
                traces.append(learner._play_rows(part, y[start:stop]))
                continue
            trace = Trace(forecast(part), np.full(stop - start, learner.size))
            if hasattr(learner, "_intervals_around"):
                trace = trace._replace(intervals=learner._intervals_around(trace.predictions))
            traces.append(trace)
            if not at_once:
                self.known = np.append(self.known, np.full(stop - start, learner.rounds))
                if self.rounds % batch == 0:
                    self.learn_until(self.rounds - self.delay)
                    trace.sizes[-1] = learner.size
        all_of = Trace._make(zip(*traces, strict=True))
        intervals = None if all_of.intervals[0] is None else np.concatenate(all_of.intervals)
        predictions, sizes = map(np.concatenate, all_of[:2])
        return Trace(predictions, sizes, intervals=intervals)

    def learn_until(self, last: int) -> None:
        """Learn the labels that there are of the rounds up to ``last``."""
        if self.X is None:  # labels that came at once
            return
        count = max(0, last - self.learned)
        X, y, known = self.X[:count], self.y[:count], self.known[:count]
        self.X, self.y, self.known = self.X[count:], self.y[count:], self.known[count:]
        self.learned += count
        there = find_labels(y)
        if there.any():
            rounds = self.learner.rounds + np.arange(np.count_nonzero(there))
            self.learner._learn_rows(X[there], y[there], rounds - known[there])

    def _record(self, y: np.ndarray, trace: Trace, loss: Any) -> dict[str, np.ndarray]:
        """Return what a run stores; without a label the loss is NaN and there is no mistake."""
        there, filled = find_labels(y), y.copy()
        filled[~there] = 1.0  # which suits every loss
        part = self.learner._record(filled, trace, loss)
        part["losses"][~there] = np.nan
        if "mistakes" in part:
            part["mistakes"][~there] = False
        part["labelled"] = self.labelled + np.cumsum(there)
        self.labelled = int(part["labelled"][-1])
        return part

    def contents(self) -> dict[str, np.ndarray]:
        """Return the rows that wait for their labels, for a checkpoint."""
        if self.X is None:
            return {}
        return {"late_X": self.X, "late_y": self.y, "late_known": self.known}

    def restore(self, rounds: int, arrays: dict[str, np.ndarray]) -> None:
        """Go on after so many rounds of a checkpoint with these arrays."""
        if rounds:
            self.rounds, self.labelled = rounds, int(arrays["run_labelled"][-1])
        if "late_X" in arrays:
            self.X, self.y, self.known = (arrays[f"late_{one}"] for one in ("X", "y", "known"))
            self.learned = rounds - len(self.y)
