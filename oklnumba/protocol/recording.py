"""What a run stores of its rounds."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.core.inputs import find_labels
from oklnumba.learners.base.engine import Facts, Trace
from oklnumba.learners.base.learner import Learner
from oklnumba.protocol.runs import SETTLED, Run

READINGS = 1024  # of the clock that a run stores at least, where it does not store every round
MISTAKES = "mistakes", "mistake_sums", "labels"  # of classes only
PIECE_ROWS = 4096  # stored pieces that are shorter are joined

Columns = dict[str, np.ndarray]  # what is stored of some rounds, by the names of ``Run``


def sum_rounds(before: Any, values: np.ndarray) -> np.ndarray:
    """Return the sums after each row, added one by one: the same however rounds are cut."""
    first = np.broadcast_to(before, values.shape[1:])[None]
    return np.cumsum(np.concatenate([first, values]), axis=0)[1:]


@dataclass
class Clock:
    """Seconds in the learner; readings : rounds, and seconds then, after each block."""

    seconds: float = 0.0
    readings: list[tuple[int, float]] = field(default_factory=list)

    def ends(self, rows: int, time_limit: float) -> bool:
        """Say whether the limit is nearer to now than to the end of so many rows."""
        rest = time_limit - self.seconds
        if rest <= 0.0 or len(self.readings) < 2:
            return rest <= 0.0
        (r0, s0), (r1, s1) = self.readings[-2:]
        return rows * (s1 - s0) > 2.0 * rest * (r1 - r0)


@dataclass
class Recorder:
    """The rounds of a run: all of them, or every k-th, the last one, and the sums up to these."""

    learner: Learner
    loss: losses.Loss
    keeps: str | int = "all"  # ``record`` of ``okl.run``
    lateness: str = ""  # how labels come, as in ``Run.late``; "" if each comes at once
    clock: Clock = field(default_factory=Clock)
    rounds: int = 0
    labelled: int = 0  # of these, where labels are late
    counts_mistakes: bool = True  # whether all labels so far were classes
    columns: dict[str, list[np.ndarray]] = field(default_factory=dict)  # in pieces
    last: Columns = field(default_factory=dict)  # the last round, unless it is in ``columns``
    loss_sum: np.ndarray | float = 0.0  # this and the next two unless all rounds are stored
    mistake_sum: np.ndarray | int = 0
    settled: tuple[float, int] | None = None  # loss and number of labels in SETTLED rounds
    data: tuple[np.ndarray, np.ndarray] | None = None  # the arrays X and y, if they have all rounds

    def add(self, y: np.ndarray, traces: list[Trace], seconds: float) -> None:
        """Store what is kept of the rounds of a block, which took ``seconds``."""
        if self.lateness:
            part = self._record_late(y, traces)
        else:
            if self.learner._learned_late and traces[0].bound is not None:
                traces[0].bound.fill(np.inf)
            part = self.learner._record(y, traces[0], self.loss)
        self.counts_mistakes = self.counts_mistakes and "mistakes" in part
        for name in () if self.counts_mistakes else MISTAKES:
            self.columns.pop(name, None)
            part.pop(name, None)
        self.rounds += len(y)
        self.clock.seconds += seconds
        self.clock.readings.append((self.rounds, self.clock.seconds))
        if self.keeps == "all":
            self._append(part)
            return
        if len(self.clock.readings) == 2 * READINGS:
            self.clock.readings = self.clock.readings[1::2]
        self._add_sums(part, np.arange(self.rounds - len(y), self.rounds) + 1)
        self._append_some(part)

    def _record_late(self, y: np.ndarray, traces: list[Trace]) -> Columns:
        """Return what is stored; without a label the loss is NaN and there is no mistake."""
        predictions, sizes = (np.concatenate([t[k] for t in traces]) for k in (0, 1))
        intervals = [t.intervals for t in traces if t.intervals is not None]
        ends = np.concatenate(intervals) if intervals else None
        trace = Trace(predictions, sizes, intervals=ends)  # without a certificate
        there, filled = find_labels(y), y.copy()
        filled[~there] = 1.0  # which suits every loss
        part = self.learner._record(filled, trace, self.loss)
        part["losses"][~there] = np.nan
        if "mistakes" in part:
            part["mistakes"][~there] = False
        part["labelled"] = self.labelled + np.cumsum(there)
        self.labelled = int(part["labelled"][-1])
        return part

    def _add_sums(self, part: Columns, rounds: np.ndarray) -> None:
        """Add the sums up to each round."""
        values = part["losses"]
        if self.lateness:  # NaN where there was no label
            values = np.where(np.isnan(values), 0.0, values)
        part["recorded"], part["loss_sums"] = rounds, sum_rounds(self.loss_sum, values)
        self.loss_sum = part["loss_sums"][-1]
        if self.counts_mistakes:
            part["mistake_sums"] = sum_rounds(self.mistake_sum, part["mistakes"])
            self.mistake_sum = part["mistake_sums"][-1]
        if rounds[0] <= SETTLED <= rounds[-1]:
            at = SETTLED - rounds[0]
            labels = part["labelled"][at] if self.lateness else SETTLED
            self.settled = float(part["loss_sums"][at].mean()), int(labels)

    def _append_some(self, part: Columns) -> None:
        rounds = part["recorded"]
        wanted = rounds % self.keeps == 0 if isinstance(self.keeps, int) else rounds < 0
        self.last = {} if wanted[-1] else {name: a[-1:].copy() for name, a in part.items()}
        if wanted.any():
            self._append({name: a[wanted] for name, a in part.items()})

    def _append(self, part: Columns) -> None:
        """Append rows; short pieces are joined."""
        for name, values in part.items():
            pieces = self.columns.setdefault(name, [])
            pieces.append(values)
            while len(pieces) > 1 and len(pieces[-2]) <= len(pieces[-1]) < PIECE_ROWS:
                pieces[-2:] = [np.concatenate(pieces[-2:])]

    def make_run(self, finished: bool, interrupted: bool) -> Run:
        """Return the run so far."""
        learner = self.learner
        for pieces in self.columns.values():
            if len(pieces) > 1:
                pieces[:] = [np.concatenate(pieces)]
        rows = {name: column for name, (column,) in self.columns.items()}
        for name, last in self.last.items():
            rows[name] = np.concatenate([rows[name], last]) if name in rows else last
        if not rows:
            rows = learner._record(np.empty(0), learner._trace(0), self.loss)
            if self.keeps != "all":
                rows |= {"recorded": np.empty(0, dtype=np.int64), "loss_sums": rows["losses"]}
        clock = np.array(self.clock.readings, dtype=float).reshape(-1, 2)
        rows["checkpoints"] = clock[:, 0].astype(np.int64)
        rows["checkpoint_seconds"] = clock[:, 1].copy()
        meta = {
            "rounds": self.rounds,
            "seconds": self.clock.seconds,
            "finished": finished,
            "interrupted": interrupted,
            "record": self.keeps,
            "first": self.settled,
            "loss": self.loss.name,
            "own_loss": learner._loss().name,
            "learner": learner._repr_with(learner._params_in_force()),
            "outputs": learner._output_names,
            "late": self.lateness,
            "played": learner._played,
            "schema": learner._schema and learner._schema.to_json(),
        }
        facts = learner._facts() if self.rounds else Facts()
        return Run(rows, meta | facts._asdict(), self.data)

    def restore(self, run: Run) -> None:
        """Go on after the rounds of a run."""
        rows = dict(run._arrays)
        self.rounds, self.settled = run.rounds, run._meta["first"]
        clock = rows.pop("checkpoints").tolist(), rows.pop("checkpoint_seconds").tolist()
        self.clock = Clock(run.seconds, list(zip(*clock, strict=True)))
        if not self.rounds:
            return
        self.counts_mistakes = "mistakes" in rows
        self.labelled = int(rows["labelled"][-1]) if self.lateness else 0
        if self.keeps == "all":
            self._append(rows)
        else:
            self._append_some(rows)
            self.loss_sum = rows["loss_sums"][-1]
            self.mistake_sum = rows["mistake_sums"][-1] if self.counts_mistakes else 0
