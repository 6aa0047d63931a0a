"""The base class of all learners: the protocol on what plays (engine.py).

A round, in order:

- ``learn_one``: ``SingleRound`` takes point and label, else core/inputs.py checks them. At the
  first round ``_begin`` calls ``_open``: it puts hyper-parameters in force, and ``_start`` makes
  the state (core/state.py). Then ``_play`` plays the round; ``_fault`` is set until it is over.
- ``okl.run`` (protocol/run.py): ``_pieces`` checks X and y; ``_blocks`` cuts blocks of 64, 64, 128,
  ... rows; ``_play_rows`` plays each, by ``_begin`` and by ``_play`` for up to ``block_rows`` rows;
  ``Recorder.add`` stores what they forecast. Late labels take turns in between (schedule.py).
- ``save``: ``get_contents`` and ``_export``. Loading: ``_open``, then ``_restore`` (contents.py).
"""

import math
import os
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.core import inputs
from oklnumba.core.checks import require_flag, warn, warn_of_block, warn_of_order, warn_of_time
from oklnumba.core.files import write_npz
from oklnumba.core.guard import locked
from oklnumba.core.health import Health, summarise
from oklnumba.core.inputs import FIRST_ROWS, cut_blocks, cut_runs, make_dense
from oklnumba.core.schema import Schema, schema_of
from oklnumba.core.state import INTERRUPTED, StateT, WorkT
from oklnumba.hot.primitives import jit
from oklnumba.learners.base.contents import compact_arrays, get_contents, pack, restore_contents
from oklnumba.learners.base.engine import NO_SINGLE, Engine, Trace, empty_per_round
from oklnumba.learners.base.late import NO_NOTES, Asked, LateRows, fit_notes
from oklnumba.learners.base.traits import Refusal


class Learner(Engine[StateT, WorkT]):
    """An online learner: forecast, then see the label, then update.

    Learners of your own derive from this class: docs/your_own_learner.md shows one in 20 lines.

    Any thread may call any method; calls on one learner run one after the other. Bad arguments
    raise ValueError before anything changes. A round beyond double precision, or a forecast of a
    first-order learner beyond 1e100, raises FloatingPointError: it names the round and what to
    change. From then on, and after Ctrl-C in mid-round, calls raise until ``reset``.
    """

    _first_labels = inputs.NO_LABELS_YET

    @property
    def rounds(self) -> int:
        """Rounds played."""
        return self._played

    @property
    def size(self) -> int:
        """Atoms in the dictionary, or number of features; 0 before any data."""
        return int(self._counts[jit.ATOMS])

    def predict_one(self, x: ArrayLike) -> float:
        """Return the forecast if ``x``, (d,), came next; nothing changes. 0.0 before any data."""
        with self._lock:
            single = self._single
            if self._fault is None and single.take_point(x):
                X = single.X
            else:
                X = inputs.as_point(x, self._width, schema=self._schema_for(x))
                self._check_points(X)
                if not self._ready():
                    return 0.0
                self._make_single()
                X = inputs.scale_columns(X, self._in_force.scales)
            forecast = self._forecast(X)[0]
            if self._outputs > 1:
                self._refuse_not_finite(forecast[None])
                return forecast
            forecast = float(forecast)
            if not math.isfinite(forecast):
                self._refuse_not_finite(np.array([forecast]))
            return forecast

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X, (n, d), against the current state, (n,)."""
        with self._lock, np.errstate(under="ignore"):
            X = inputs.as_rows(X, self._width, schema=self._schema_for(X), least=0)
            self._check_points(X)
            out = empty_per_round(X.shape[0], self._outputs)
            out[:] = 0.0
            if self._ready():
                for rows, block in cut_blocks(X, self._in_force.block_rows, self._in_force.scales):
                    out[rows] = self._forecast(block)
                self._refuse_not_finite(out)
        return out

    def learn_one(self, x: ArrayLike, y: float | None = None) -> Self:
        """Play one round: forecast ``x`` (not returned), learn its label ``y``; return self."""
        with self._lock:
            if self._fault is not None:
                self._refuse_fault()
            single, schema = self._single, self._schema
            if single.takes_labels and single.take_point(x):
                X = single.X
            else:
                schema = self._schema_for(x)
                X = inputs.as_point(x, self._width, schema=schema, fill=False)
                self._check_points(X)
            if single.take_label(y):
                label = single.y
                self._check_labels(label)
            else:
                labels = y if y is None or isinstance(y, list | tuple) else np.ravel(y)
                label = self._as_labels(labels, 1)
            if self._first_labels is not None:
                self._first_labels = self._first_labels.add(label)
            if single is NO_SINGLE:
                self._begin(X.shape[1])
                self._schema = schema
                single = self._make_single()
            if X is not single.X:  # which needs no filling, and is scaled
                X = inputs.scale_columns(self._fill(X), self._in_force.scales)
            self._fault = INTERRUPTED
            try:
                self._play(X, label, single.trace)
            except FloatingPointError as error:  # perhaps of a learner within
                self._fault = error
                raise
            self._fault = None
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None, known: Any = None) -> Self:
        """Play a round for each row of X, (n, d), in order; return self.

        Sparse rows are made dense block by block. Warns as ``okl.run`` does. y : (n,), or (n, K) of
        ``MultiOutput``; known : ``rounds`` when rows were forecast whose labels are late, or (n,).
        """
        with self._lock, np.errstate(under="ignore"):
            warn_of_order(X, y)
            warn_of_time(X, y, counted_by=self._traits.counts_rows)
            schema = self._schema_for(X)
            X = inputs.as_rows(X, self._width, schema=schema, fill=False)
            self._check_points(X)
            y = self._as_labels(y, X.shape[0])
            self._warn_of_rows(X, y)
            if not self._played:
                warn_of_block(y)
            if known is not None:
                known = Asked.read(known, self._refuses_late, self._traits.needs_last_label)
                missed = known.count_missed(self.rounds, len(y))
            self._begin(X.shape[1], *y.shape[1:])
            self._schema = schema
            if known is None:
                self._play_rows(X, y)
            else:
                self._learn_rows(X, y, missed, known.notes)
        return self

    @locked
    def ask(self, X: ArrayLike) -> Asked:
        """Forecast the rows of X, (n, d), whose labels come late: for ``known`` of ``partial_fit``.

        So ``SelfTuning`` weighs its members by what they forecast with the labels of that time.

        Examples
        --------
        >>> learner = okl.SelfTuning().partial_fit([[0.0], [1.0]], [0.0, 1.0])
        >>> asked = learner.ask([[2.0], [3.0]])
        >>> asked.forecasts.shape, learner.partial_fit([[2.0], [3.0]], [2.0, 3.0], asked).rounds
        ((2,), 4)
        """
        if refusal := self._refuses_late:
            raise ValueError(f"{refusal.name} needs each label at once: take predict(X)")
        X = inputs.as_rows(X, self._width, schema=self._schema_for(X), least=0)
        notes = fit_notes(NO_NOTES, len(X), self._note_width if self._ready() else 0)
        forecasts = self._forecast_rows(X, notes).predictions
        return Asked(forecasts, np.full(len(X), self.rounds), notes)

    @locked
    def health(self) -> Health:
        """Return the condition of the learner's matrices and the digits of its forecasts.

        Warns, and says what to change, if fewer than six digits are left. Takes O(m^2) for factors
        of m rows. See docs/numerics.md.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> learner = okl.KernelRidge(okl.Gaussian(1.0), lam=1e-4)
        >>> health = learner.partial_fit(X, np.sin(3 * X[:, 0])).health()
        >>> f"{health.condition:.0e}", round(health.digits)
        ('3e+06', 12)
        """
        return summarise(self.rounds, self._diagnose())._replace(**self._watch())

    # ---- what a run plays and records ----

    @locked
    def _forecast_rows(self, X: np.ndarray, notes: np.ndarray = NO_NOTES) -> Trace:
        """Return what a run stores of rows whose labels come later, if ever; write their notes."""
        self._set_late(notes)
        try:
            trace = Trace(self._forecast_outputs(X), np.full(len(X), self.size))
        finally:
            self._set_late(NO_NOTES)
        if self._half_width is not None:
            trace = trace._replace(intervals=self._intervals_around(trace.predictions))
        return trace

    @property
    def _refuses_late(self) -> Refusal | None:
        """Who needs labels at once, if anyone."""
        return self._traits.needs_last_label

    def _forecast_outputs(self, X: np.ndarray) -> np.ndarray:
        """Return the forecasts that a run stores."""
        return self.predict(X)

    @locked
    def _learn_rows(
        self, X: np.ndarray, y: np.ndarray, missed: np.ndarray, notes: np.ndarray
    ) -> None:
        """Learn late labels.

        missed : (n,), earlier labels that a forecast did not know; notes : of the forecast, if any.
        """
        self._set_late(fit_notes(notes, len(X), self._note_width), missed)
        if self._traits.certificate_rows < 4:  # SelfTuning, which has 4, marks these rounds itself
            self._learned_late = self._learned_late or bool(missed.any())
        self._play_rows(X, y)

    @locked
    def _play_turns(
        self, X: np.ndarray, y: np.ndarray, learns: np.ndarray, late: LateRows, traces: list[Trace]
    ) -> None:
        """Learn or forecast late rows in turn; append to ``traces``, write the notes of forecasts.

        A row may be forecast and learned; the first one is forecast. learns : (n,).
        """
        for some in cut_runs(learns):
            rows = late.rows[some]
            notes = late.notes[rows]
            if learns[some.start]:
                self._learn_rows(X[some], y[some], late.missed[some], notes)
                traces[-1].sizes[-1] = self.size
            else:
                traces.append(self._forecast_rows(X[some], notes))
                late.notes[rows] = notes

    def _recorded_loss(self, loss: str | None) -> losses.Loss:
        """Return the loss of that name; None: the learner's."""
        return self._loss() if loss is None else losses.get(loss)

    def _record(self, y: np.ndarray, trace: Trace, loss: losses.Loss) -> dict[str, np.ndarray]:
        """Return what a run stores per round, by the names of ``Run`` and ``Certificate``."""
        part = {name: a for name, a in trace._asdict().items() if a is not None}
        part["losses"] = loss.of_rounds(trace.predictions, y)
        if (np.abs(y) == 1.0).all():
            part |= {"mistakes": y * trace.predictions <= 0.0, "labels": (y > 0.0).view(np.int8)}
        return part

    # ---- labels, rows, advice ----

    @property
    def schema(self) -> Schema | None:
        """What a row means: names, encoded values, classes; None if it was taught arrays."""
        return self._schema

    def _schema_for(self, X: Any) -> Schema | None:
        """Return the schema by which X is read: the one of X itself before any data."""
        return schema_of(X) if self._width is None else self._schema

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return checked labels of n rounds, -1 and +1 only if ``signs`` or the loss says so."""
        y = y if self._schema is None else self._schema.as_signs(y)
        y = inputs.as_labels(y, n, signs or self._loss().classes or self._traits.signs)
        self._check_labels(y)
        return y

    def _take_label_names(self, y: Any) -> None:
        """Refuse labels in columns of other names than the first: only ``MultiOutput`` has them."""

    def _warn_of_rows(self, X: np.ndarray, y: np.ndarray) -> None:
        """Warn, before the first rounds, of inputs and labels that do not suit."""
        first = not self._played and self._first_labels is inputs.NO_LABELS_YET
        if first and (advice := self._advice(make_dense(X[:FIRST_ROWS]))):
            warn(advice)
        if self._first_labels is not None:
            self._first_labels = self._first_labels.add(y)

    def __repr__(self) -> str:
        return super().__repr__() + (f" of {self._schema}" if self._schema else "")

    def _describe_data(self) -> dict[str, Any]:
        shown = {"rounds played": self.rounds, "size": self.size} if self.rounds else {}
        return shown | ({"rows": repr(self._schema)} if self._schema else {})

    # ---- files, copies and pickles ----

    @locked
    def save(self, path: str | os.PathLike, *, compact: bool = False) -> None:
        """Write hyper-parameters, state and random state into one ``.npz`` file (no pickle inside).

        ``oklnumba.load(path)`` goes on bit for bit where this learner stands.

        compact : whether factors U of AWV and ridge regression, and sums of trees, are in single
        precision. Forecasts of ``SelfTuning`` change by at most 1e-6 of the labels' deviation.
        """
        require_flag("compact", compact)
        meta, arrays = get_contents(self)
        write_npz(path, meta, compact_arrays(arrays) if compact else arrays)

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Return hyper-parameters and state."""
        return pack(self)

    def __setstate__(self, contents: dict[str, Any]) -> None:
        """Take over what ``__getstate__`` returned."""
        super().__setstate__(contents["params"] | contents["in_force"])
        restore_contents(self, contents["meta"], contents["arrays"])
        vars(self).update(contents["params"])  # what was assigned since, for the next reset


def find_needs(learners: Iterable[Learner]) -> dict[str, Any]:
    """Return what some of these learners need of labels, by the names of ``Traits``."""
    names = "needs_last_label", "signs"
    traits = [one._traits for one in learners]
    return {k: next(filter(None, (getattr(one, k) for one in traits)), None) for k in names}
