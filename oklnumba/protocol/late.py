"""Labels that come late, in batches, or not at all."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.learners.base.learner import Learner, Trace


def find_labels(y: np.ndarray) -> np.ndarray:
    """Return which rows of y have a label that is neither None nor NaN, (n,)."""
    values = y.astype(object)
    there = np.equal(values, values) & np.not_equal(values, None)
    return there.any(axis=tuple(range(1, y.ndim)))


class LateLabels:
    """Plays in a learner's place where labels come late, in batches, or not for every row.

    After the forecast of round t, if ``batch`` divides t, the labels up to round t - ``delay`` have
    come, and the learner learns those that it has not learned yet.
    """

    def __init__(self, learner: Learner, delay: int, batch: int, labels: str):
        self.learner, self.delay = learner, checks.require_count("delay", delay, 0)
        self.batch = checks.require_count("batch", batch, 1)
        given = checks.require_choice("labels", labels, ("required", "optional"))
        self.optional = given == "optional"
        late = delay > 0 or batch > 1
        name = learner._needs_each_label or (learner._needs_last_label if late else None)
        if name is not None:
            raise ValueError(f"{name} needs each label at once; play the learner within it")
        words = f"delay={delay}" * (delay > 0), f"batch={batch}" * (batch > 1)
        self.words = ", ".join(filter(None, (*words, "labels='optional'" * self.optional)))
        self.rounds = self.learned = self.labelled = 0  # rounds so far, learned, with a label
        self.X = self.y = None  # the rounds after those learned

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return checked labels; optional ones as floats, NaN for missing ones."""
        values = inputs.as_label_array(y)
        if not self.optional or values.shape[:1] != (n,):
            return self.learner._as_labels(y, n, signs)
        known = find_labels(values)
        if not known.any():
            return np.full(values.shape, np.nan)
        filled = np.where(known.reshape(-1, *[1] * (values.ndim - 1)), values, values[known][0])
        labels = self.learner._as_labels(filled, n, signs).astype(np.float64)
        labels[~known] = np.nan
        return labels

    def _play_rows(self, X: Any, y: np.ndarray, coming: int = 0) -> Trace:
        """Forecast rows and learn the labels that come meanwhile; return what the rows leave."""
        learner, batch, before, n = self.learner, self.batch, self.rounds, len(y)
        learner._begin(X.shape[1], *y.shape[1:])
        forecast = getattr(learner, "_forecast_outputs", learner.predict)  # of classes the scores
        X, known, at_once = inputs.make_dense(X), find_labels(y), batch == 1 and self.delay == 0
        # Copies: the caller may refill its arrays while rows wait here.
        self.X = X.copy() if self.X is None else np.concatenate([self.X, X])
        self.y = y.copy() if self.y is None else np.concatenate([self.y, y])
        # Labels at once: rows with one, which are played in one go, and rows without take turns.
        gaps = np.flatnonzero(np.diff(known)) + 1
        ends = gaps if at_once else range(batch - before % batch, n, batch)
        forecasts, sizes = [], []
        for start, stop in pairwise([0, *ends, n]):
            self.rounds = before + stop
            if at_once and known[start]:
                trace = self.learn_until(self.rounds, learner._play_rows)
            else:
                trace = Trace(forecast(X[start:stop]), np.full(stop - start, learner.size))
                if self.rounds % batch == 0:
                    self.learn_until(self.rounds - self.delay)
                    trace.sizes[-1] = learner.size
            forecasts.append(trace.predictions)
            sizes.append(trace.sizes)
        return Trace(np.concatenate(forecasts), np.concatenate(sizes))

    def learn_until(self, last: int, play: Callable | None = None) -> Trace | None:
        """Learn the labels of all rounds up to the last, as far as there are any."""
        play = play or self.learner._learn_rows
        count = max(0, last - self.learned)
        X, y = self.X[:count], self.y[:count]
        self.X, self.y, self.learned = self.X[count:], self.y[count:], self.learned + count
        known = find_labels(y)
        return play(X[known], y[known]) if known.any() else None

    def _record(self, y: np.ndarray, trace: Trace, loss: Any) -> dict[str, np.ndarray]:
        """Return what a run keeps; where there is no label the loss is NaN, and no mistake."""
        known, filled = find_labels(y), y.copy()
        filled[~known] = 1.0  # which suits every loss
        part = self.learner._record(filled, trace, loss)
        part["losses"][~known] = np.nan
        if "mistakes" in part:
            part["mistakes"][~known] = False
        part["labelled"] = self.labelled + np.cumsum(known)
        self.labelled = int(part["labelled"][-1])
        return part

    def contents(self) -> dict[str, np.ndarray]:
        """Return the rows that wait for their labels, for a checkpoint."""
        return {} if self.X is None else {"late_X": self.X, "late_y": self.y}

    def restore(self, rounds: int, arrays: dict[str, np.ndarray]) -> None:
        """Go on after so many rounds of a checkpoint with these arrays."""
        if rounds:
            self.X, self.y = arrays["late_X"], arrays["late_y"]
            self.rounds, self.learned = rounds, rounds - len(self.y)
            self.labelled = int(arrays["run_labelled"][-1])
