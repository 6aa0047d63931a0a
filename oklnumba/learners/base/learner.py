"""The base class of all learners: hyper-parameters, the protocol, room for growth, faults, files.

A subclass names the NamedTuple of its arrays, ``_layout``. All attributes with a leading underscore
are state, which ``reset`` removes; ``_hyper`` are the hyper-parameters in force. It has the methods

- ``_start(d)``: make the state for inputs of width d, by ``_make_state`` (core/state.py);
- ``_play(X, y, trace)``: play a block of rounds, mostly by a loop of hot/ called through ``enter``
  (jit.py); write each forecast before its label is read;
- ``_forecast(X)``: return the forecast of each row, as if it came next; change no later forecast;

and, where needed, ``_check_params`` (several hyper-parameters together), ``_check_labels(y)``,
``_space()`` (the space of the certificate), ``_matrices()`` (for ``health``), ``_nested()`` (inner
objects with a state), ``_can_widen`` (new columns) and ``_REMEDY`` (what to change after trouble).

``predict_one`` and ``learn_one`` keep their buffers (single.py), and a round whose point was
forecast last need not compute again what the forecast did: ``_note_forecast``, ``_take_forecast``.

If ``_outputs_at_once``, the learner plays K labels per round on one state, as K learners would:
after ``_begin(d, K)`` labels, forecasts and certificates have shape (n, K).
"""

import copy
import math
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.components.features import Features
from oklnumba.components.kernels import Kernel, Precomputed, list_kernels
from oklnumba.components.metric import split_metric
from oklnumba.core import inputs
from oklnumba.core.checks import repr_type, require, require_flag, warn
from oklnumba.core.files import leave_out, refuse_damage, write_npz
from oklnumba.core.guard import locked
from oklnumba.core.health import NO_MATRIX, Health, Part, summarise
from oklnumba.core.inputs import cut_blocks, make_dense
from oklnumba.core.params import Declaration, Params, clone, from_spec, to_spec
from oklnumba.core.schema import Schema, schema_of
from oklnumba.core.state import INTERRUPTED, State, StateT, WorkT, select_prefix
from oklnumba.hot.primitives import jit
from oklnumba.learners.base.single import SingleRound
from oklnumba.learners.base.trace import Trace, empty_per_round
from oklnumba.learners.base.undeclared import refuse_undeclared

FEWEST_LABELS = 8  # fewer may be 0 and 1 by chance
FIRST_ROWS = 64  # rounds of a run's first block; each later block is as long as all before it
PLAY_ROWS = 8192  # most rounds in one call of a compiled loop


class Learner(State[StateT, WorkT], Params):
    """An online learner: forecast, then see the label, then update.

    Learners of your own derive from this class: docs/your_own_learner.md shows one in 20 lines.

    Any thread may call any method; calls on one learner run one after the other. Bad arguments
    raise ValueError before anything changes. A round beyond double precision, or a forecast of a
    first-order learner beyond 1e100, raises FloatingPointError: it names the round and what to
    change. From then on, and after Ctrl-C in mid-round, calls raise until ``reset``.
    """

    # Types are comments where annotations would be hyper-parameters.
    _REMEDY = "scale the inputs and labels"
    _fixed_loss = "squared"  # of learners without a hyper-parameter ``loss``
    _outputs_at_once = False  # whether it plays several labels per round on one state
    _runs_in_threads = False  # on others than the caller's: without BLAS, which has its own
    _certificate_rows = 0  # arrays of its certificate in a Trace: 3, or 4 with ``guaranteed``
    _run_rows = PLAY_ROWS  # rounds between two readings of the clock
    _block_rows = PLAY_ROWS  # most rounds in one call of ``_play`` or ``_forecast``
    _needs_each_label: ClassVar[str | None] = None  # class that needs it before the next round
    _needs_last_label: ClassVar[str | None] = None  # class that needs labels that come at once
    _season = None  # type: int | None  # how many labels ago a season was, where it is an input
    _can_be_member = True  # whether it can play within another learner
    _width = None  # type: int | None  # of the inputs; None before any data
    _outputs = 1  # labels per round
    _output_names: ClassVar[Any] = None  # of the K outputs, as JSON data; None: 0 to K - 1
    _counts = np.zeros(8, dtype=np.int64)  # before any data
    _played = 0
    _expected = 0  # rounds in all, as far as the caller has said
    _single = None  # type: SingleRound | Any  # buffers of single rounds
    _has_matrix = False  # whether a kernel is Precomputed
    _forecast_number = None  # type: int | None  # of the single input forecast last
    _in_force = None  # type: SimpleNamespace | None  # the hyper-parameters of the state; read them by ``_hyper``
    _unscaled = {}  # type: dict[str, Any]  # of these, the kernel where it is a Metric
    _scales = None  # type: np.ndarray | None  # of a Metric: the state is that of the scaled inputs
    _first_labels = 0, frozenset()  # type: Any  # how many, which; None: no two classes
    _schema = None  # type: Schema | None  # what a row means, where the first rows had names

    # ---- the protocol ----

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
            if single is not None and self._fault is None and single.take_point(x):
                X = single.X
                if self._has_matrix:
                    self._check_points(X)
            else:
                X = inputs.as_point(x, self._width, schema=self._schema_for(x))
                self._check_points(X)
                if not self._ready():
                    return 0.0
                self._keep_single()
                X = inputs.scale_columns(X, self._scales)
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
        with self._lock:
            X = inputs.as_rows(X, self._width, schema=self._schema_for(X), least=0)
            self._check_points(X)
            out = empty_per_round(X.shape[0], self._outputs)
            out[:] = 0.0
            if self._ready():
                for rows, block in cut_blocks(X, self._block_rows, self._scales):
                    out[rows] = self._forecast(block)
                self._refuse_not_finite(out)
        return out

    def learn_one(self, x: ArrayLike, y: float | None = None) -> Self:
        """Play one round: forecast ``x`` (not returned), learn its label ``y``; return self."""
        with self._lock:
            single = self._single
            is_begun = single is not None and self._fault is None
            is_plain = is_begun and (self._schema is None or self._schema.classes is None)
            if is_plain and single.take_point(x) and single.take_label(y):
                X, label = single.X, single.y
            else:
                schema = self._schema_for(x)
                X = inputs.as_point(x, self._width, schema=schema)
                labels = y if y is None or isinstance(y, list | tuple) else np.ravel(y)
                label = self._as_labels(labels, 1)
            self._check_labels(label)
            if self._has_matrix or single is None:
                self._check_points(X)
            if self._first_labels is not None and self._fault is None:
                self._advise_labels(label)
            if not is_begun:
                self._begin(X.shape[1])
                self._schema, single = schema, self._keep_single()
            X = X if X is single.X else inputs.scale_columns(X, self._scales)
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

        Sparse rows are made dense block by block, never all at once. y has a label for each row,
        (n,), or (n, K) of ``MultiOutput``. Warns as ``okl.run`` does, before the first round.
        ``known``, of labels that come late: ``rounds`` when the rows were forecast, one or (n,).
        """
        with self._lock:
            schema = self._schema_for(X)
            X = inputs.as_rows(X, self._width, schema=schema)
            self._check_points(X)
            y = self._as_labels(y, X.shape[0])
            self._advise(X, y)
            if known is None:
                self._play_rows(X, y)
            else:
                fixed = self._needs_each_label or self._needs_last_label
                require(not fixed, "known", known, f"None: {fixed} needs each label at once")
                self._learn_rows(X, y, inputs.as_leads(known, self.rounds, len(y)))
            self._schema = schema
        return self

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
        return summarise(self.rounds, self._diagnose())

    # ---- what subclasses write ----

    def _start(self, d: int) -> None:
        """Make the state for inputs of width d."""
        raise NotImplementedError

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        """Play rounds, forecast before each label; write the results and count the rounds."""
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        """Return the forecasts for rows against the present state, (n,) or (n, K)."""
        raise NotImplementedError

    # ---- what subclasses may write ----

    def _check_labels(self, y: np.ndarray) -> None:
        """Raise ValueError for labels that the learner cannot take though its loss can."""

    def _check_points(self, X: np.ndarray) -> None:
        """Raise ValueError for rows that a kernel does not have: only ``Precomputed`` looks."""
        if self._width is None or self._has_matrix:
            for kernel in list_kernels(self._in_force or self):
                kernel._check_points(X)

    def _space(self) -> str | None:
        """Return the space of the certificate now; None for learners without one."""
        return None

    def _member(self) -> str | list[str] | None:
        """Return the member, of each output, whose comparator the certificate shows now."""
        return None

    def _outliers(self) -> tuple[int, float]:
        """Return how many labels were not learned as they came, and their share of the loss."""
        return 0, 0.0

    def _nested(self) -> dict[str, State]:
        """Return the inner objects with a state, by name."""
        return {}

    def _feature_map(self) -> Features | None:
        """Return the map whose features ``_play`` and ``_forecast`` take from others, if any."""
        return None

    def _matrices(self) -> list[Part]:
        """Return the parts of ``health``, one per matrix; called after some data only."""
        return [NO_MATRIX]

    # ---- rounds ----

    def _begin(self, d: int, outputs: int = 1) -> None:
        """Make the state at the first round; refuse other widths, and rounds after trouble."""
        self._refuse_fault()
        if self._width is None:
            self._open(d, outputs)
            return
        if d != self._width:  # another thread was first
            raise ValueError(f"X has {d} columns, but this learner has seen {self._width}")
        if outputs != self._outputs:
            raise ValueError(f"y has {outputs} labels per round, but before it had {self._outputs}")

    def _open(self, d: int, outputs: int = 1) -> None:
        """Make the state; the fields are now in force."""
        params = vars(self._checked_params())
        params = {name: copy.deepcopy(value) for name, value in params.items()}
        self._outputs = outputs
        try:
            kernels = list_kernels(SimpleNamespace(**params))
            self._has_matrix = any(isinstance(one, Precomputed) for one in kernels)
            for name in {"kernel", "kernels"} & params.keys():
                self._unscaled = {name: params[name]}
                params[name], self._scales = split_metric(name, params[name])
                inputs.scale_columns(np.zeros((1, d)), self._scales)  # which refuses other widths
            self._in_force = SimpleNamespace(**params)
            self._start(d)
        except BaseException:
            self._clear()
            raise
        self._width = d

    def _ready(self) -> bool:
        """Say whether there is a state to forecast from; refuse after trouble."""
        self._refuse_fault()
        return self._width is not None

    def _play_rows(self, X: Any, y: np.ndarray, coming: int = 0) -> Trace:
        """Play checked rows, the first of ``coming``, block by block; return their results."""
        n = X.shape[0]
        with self._lock:
            self._begin(X.shape[1], *y.shape[1:])
            self._fault = INTERRUPTED
            self._expected = self.rounds + max(n, coming)
            trace = self._trace(n)
            try:
                for rows, block in cut_blocks(X, self._block_rows, self._scales):
                    self._play(block, y[rows], trace.rows(rows.start, rows.stop))
            except FloatingPointError as error:
                self._fault = error
                raise
            self._fault = None
        return trace

    def _play_inside(self, X: np.ndarray, y: np.ndarray, trace: Trace, *Z: np.ndarray) -> None:
        """Play rows for another learner, which calls this only: ``_play`` has room for a block."""
        if len(X) <= self._block_rows:
            return self._play(inputs.scale_columns(X, self._scales), y, trace, *Z)
        for rows, x in cut_blocks(X, self._block_rows, self._scales):
            self._play(x, y[rows], trace.rows(rows.start, rows.stop), *[z[rows] for z in Z])

    def _forecast_inside(self, X: np.ndarray, *Z: np.ndarray) -> np.ndarray:
        """Return forecasts for another learner, which calls this in place of ``_forecast``."""
        if len(X) <= self._block_rows:
            return self._forecast(inputs.scale_columns(X, self._scales), *Z)
        blocks = cut_blocks(X, self._block_rows, self._scales)
        return np.concatenate([self._forecast(x, *[z[rows] for z in Z]) for rows, x in blocks])

    def _forecast_rows(self, X: np.ndarray) -> Trace:
        """Return what a run stores of rows whose labels come later, if ever."""
        return Trace(self.predict(X), np.full(len(X), self.size))

    def _learn_rows(self, X: np.ndarray, y: np.ndarray, leads: np.ndarray) -> None:
        """Learn late labels; leads : (n,), of rounds before a row's own, those it did not know."""
        self._begin(X.shape[1], *y.shape[1:])
        self._set_leads(leads)
        self._play_rows(X, y)

    def _set_leads(self, leads: np.ndarray) -> None:
        """Take the leads of the rows that come next, where last labels are inputs."""

    def _play_rounds(self, n: int, rounds: Callable[[int], tuple[int, int]]) -> None:
        """Play n rounds by calls of ``rounds(first)``; make room when it asks for room."""
        self._count_rounds(n, *self._play_with_room(rounds))

    def _count_rounds(self, n: int, played: int, status: int) -> None:
        """Count n rounds, or raise the error of the round where the loop stopped."""
        if status != jit.DONE:
            self._raise_status(status, played)
        self._played += n

    def _raise_status(self, status: int, played: int) -> None:
        """Raise the error of a status; it names the round."""
        what = {
            jit.NOT_POSITIVE: "a matrix lost its positive definiteness",
            jit.NOT_FINITE: "the forecast is not finite",
            jit.DIVERGED: f"the run diverges, its forecast is beyond {jit.LARGEST_FORECAST:g}",
            jit.TOO_LONG: "the gradient is longer than lipschitz",
        }[status]
        eta = getattr(self._hyper, "eta", None) if status == jit.DIVERGED else None
        what += f" with eta={eta!r}" if eta is not None else ""
        self._fault = FloatingPointError(
            f"{type(self).__name__}, round {self._played + played + 1}: {what}; {self._REMEDY}, "
            "then reset() and start again"
        )
        raise self._fault

    def _end_fit(self) -> None:
        """Do what is worth while after the last row of a ``fit``, before predictions."""

    def _refuse_not_finite(self, forecasts: np.ndarray) -> None:
        """Raise FloatingPointError that names the first row whose forecast is not finite."""
        finite = np.isfinite(forecasts)
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
            raise FloatingPointError(
                f"the forecast of this {type(self).__name__} for row {row} is beyond double "
                f"precision; leave the row out, or {self._REMEDY}"
            )

    def _trace(self, n: int) -> Trace:
        """Return room for the results of n rounds."""
        shape = n if self._outputs == 1 else (n, self._outputs)
        certificate = [np.empty(shape) for _ in range(self._certificate_rows)]
        return Trace(np.empty(shape), np.empty(n, dtype=np.int64), *certificate)

    def _keep_single(self) -> SingleRound | Any:
        """Return the buffers of single rounds, made with the first; None for several labels."""
        if self._single is None and self._outputs == 1:
            arguments = self._width or 0, self._loss().classes, self._trace(1), self._scales
            self._single = SingleRound(*arguments)
        return self._single

    def _note_forecast(self, X: np.ndarray) -> None:
        """Note that the input X was just forecast, if it is a single one."""
        single = self._single
        self._forecast_number = single.inputs if single is not None and X is single.X else None

    def _take_forecast(self, X: np.ndarray) -> bool:
        """Return whether X is the single input that was forecast last; forget that it was."""
        number, self._forecast_number = self._forecast_number, None
        return number is not None and X is self._single.X and number == self._single.inputs

    # ---- labels, losses, advice ----

    @property
    def schema(self) -> Schema | None:
        """What a row means: names, encoded values, classes; None if it was taught arrays."""
        return self._schema

    def _schema_for(self, X: Any) -> Schema | None:
        """Return the schema by which X is read: the one of X itself before any data."""
        return schema_of(X) if self._width is None else self._schema

    @property
    def _hyper(self) -> Any:
        """The hyper-parameters in force: of the state; before any data the fields, checked."""
        return self._checked_params() if self._in_force is None else self._in_force

    def _loss(self) -> losses.Loss:
        params = self if self._in_force is None else self._hyper
        return losses.get(getattr(params, "loss", self._fixed_loss))

    @cached_property
    def _loss_code(self) -> int:
        return self._loss().code

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return checked labels of n rounds, -1 and +1 only if ``signs`` or the loss says so."""
        y = y if self._schema is None else self._schema.as_signs(y)
        y = inputs.as_labels(y, n, signs or self._loss().classes)
        self._check_labels(y)
        return y

    def _advise(self, X: np.ndarray, y: np.ndarray) -> None:
        """Warn, before the first rounds, of inputs and labels that do not suit."""
        first = not self._played and self._first_labels == Learner._first_labels
        if first and (advice := self._advice(make_dense(X[:FIRST_ROWS]))):
            warn(advice)
        if self._first_labels is not None:
            self._advise_labels(y)

    def _advise_labels(self, y: np.ndarray) -> None:
        """Warn once if the first labels are two whole numbers, which may be meant as classes."""
        count, values = self._first_labels
        for part in (y[:FIRST_ROWS], y[FIRST_ROWS:PLAY_ROWS]):  # the first mostly tells
            values = values | {one for one in set(part.tolist()) if one == one}  # some are missing
            two = len(values) == 2 and all(one.is_integer() for one in values)
            if not (len(values) < 2 or two and values != {-1.0, 1.0}):
                self._first_labels = None
                return
        self._first_labels = count, values = count + len(y), values
        if two and count >= FEWEST_LABELS:
            self._first_labels, (low, high) = None, sorted(values)
            warn(
                f"the labels are {low:g} and {high:g}, which this loss takes for numbers, a "
                "regression, so Run.mistake_rate is None: for two classes make them -1 and +1, "
                f"y = np.where(y == {high:g}, 1, -1), or take okl.interop.OnlineClassifier, which "
                "takes any classes"
            )

    def _advice(self, X: np.ndarray) -> str | None:
        """Return what to change where the first inputs do not suit the hyper-parameters."""
        for part in (getattr(self, "features", None), getattr(self, "kernel", None)):
            if isinstance(part, Features | Kernel):
                return part.advice(X)
        return None

    def _diagnose(self) -> list[Part]:
        if not self._ready() or not self._played:
            return []
        return [part._replace(remedy=part.remedy or self._REMEDY) for part in self._matrices()]

    def __repr__(self) -> str:
        return super().__repr__() + (f" of {self._schema}" if self._schema else "")

    def _describe_data(self) -> dict[str, Any]:
        shown = {"rounds played": self.rounds, "size": self.size} if self.rounds else {}
        return shown | ({"rows": repr(self._schema)} if self._schema else {})

    # ---- what a run records ----

    def _recorded(self, loss: str | None) -> losses.Loss:
        """Return the loss of that name; None: the learner's."""
        return self._loss() if loss is None else losses.get(loss)

    def _record(self, y: np.ndarray, trace: Trace, loss: losses.Loss) -> dict[str, np.ndarray]:
        """Return what a run stores per round, by the names of ``Run`` and ``Certificate``."""
        part = {name: a for name, a in trace._asdict().items() if a is not None}
        part["losses"] = loss.of_rounds(trace.predictions, y)
        if (np.abs(y) == 1.0).all():
            part["mistakes"] = y * trace.predictions <= 0.0
            part["labels"] = (y > 0.0).view(np.int8)
        return part

    # ---- files, copies and pickles ----

    @locked
    def save(self, path: str | os.PathLike, *, compact: bool = False, exact: bool = False) -> None:
        """Write hyper-parameters, state and random state into one ``.npz`` file (no pickle inside).

        ``oklnumba.load(path)`` goes on bit for bit where this learner stands. Only ``SelfTuning``
        leaves out what it can derive, and goes on to rounding, unless ``exact``.

        compact : whether factors U of AWV and ridge regression are in single precision. Forecasts
        of ``SelfTuning`` change by at most 1e-6 of the labels' deviation.
        """
        compact, exact = require_flag("compact", compact), require_flag("exact", exact)
        require(not (compact and exact), "exact", exact, "False with compact=True")
        meta, arrays = self._contents()
        write_npz(path, meta, arrays if exact else leave_out(arrays, compact))

    def _contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything as JSON data and arrays."""
        arrays: dict[str, np.ndarray] = {}
        fresh = self if self._width is None else self._without_data()
        spec = to_spec(fresh, arrays)
        meta, state = self._data()
        return meta | {"spec": spec}, arrays | state

    def _data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return everything but the hyper-parameters."""
        self._refuse_fault()
        meta: dict[str, Any] = {"width": self._width, "rounds": self.rounds}
        arrays: dict[str, np.ndarray] = {}
        meta |= {"outputs": self._outputs, "schema": self._schema and self._schema.to_json()}
        if self._width is not None:
            bases = [cls for cls in type(self).__mro__ if cls.__module__.startswith("oklnumba.")]
            if bases[0] is Learner:  # a user's own learner
                (twin := self._without_data())._open(self._width, self._outputs)
                refuse_undeclared(self, twin, {*dir(Learner), *State.__annotations__})
            meta["state"] = {}
            for name, value in self._export().items():
                if isinstance(value, np.ndarray):
                    arrays[f"state_{name}"] = value
                else:
                    meta["state"][name] = value
        return meta, arrays

    def _export(self) -> dict[str, Any]:
        state = super()._export() | {"played": self._played}
        for name, one in self._nested().items():
            state |= {f"{name}_{key}": value for key, value in one._export().items()}
        return state

    def _output_axes(self) -> dict[str, int]:
        axes = super()._output_axes()
        for name, one in self._nested().items():
            axes |= {f"{name}_{key}": axis for key, axis in one._output_axes().items()}
        return axes

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._played = state["played"]
        for name, one in self._nested().items():
            one._restore(select_prefix(f"{name}_", state))

    def _params_in_force(self) -> dict[str, Any]:
        """Return the hyper-parameters in force, by name."""
        return vars(self._hyper) | self._unscaled

    def _without_data(self) -> Self:
        """Return a learner of the hyper-parameters in force, without data."""
        return type(self)(**self._params_in_force())

    def _restore_contents(self, meta: dict[str, Any], arrays: Any) -> Self:
        """Restore what ``_contents`` returned, with the same hyper-parameters; return self."""
        self._clear()
        if meta["width"] is None:
            return self
        try:
            self._open(meta["width"], meta["outputs"])
            self._played = meta["rounds"]
            self._restore(select_prefix("state_", arrays) | meta["state"])
            self._schema = Schema.from_json(meta.get("schema"))
        except BaseException:
            self._clear()
            raise
        return self

    @locked
    def __getstate__(self) -> dict[str, Any]:
        """Return hyper-parameters and state. Closures and buffers are made again."""
        meta, arrays = self._data()
        arrays = {name: np.array(a) for name, a in arrays.items()}  # others may learn meanwhile
        hyper = {} if self._width is None else self._params_in_force()
        in_force = {name: clone(value) for name, value in hyper.items()}  # its learners play
        params = self.get_params(deep=False)
        return {"params": params, "in_force": in_force, "meta": meta, "arrays": arrays}

    def __setstate__(self, contents: dict[str, Any]) -> None:
        """Take over what ``__getstate__`` returned."""
        super().__setstate__(contents["params"] | contents["in_force"])
        self._restore_contents(contents["meta"], contents["arrays"])
        vars(self).update(contents["params"])  # what was assigned since, for the next reset

    @property
    def _can_widen(self) -> bool:
        """Whether ``_copy_with_columns`` is right: kernels do not see columns that are 0."""
        p = self._hyper
        kernels = hasattr(p, "kernel") or hasattr(p, "kernels")
        return self._layout is not None and kernels and self._scales is None

    def _copy_with_columns(self, d: int) -> Self:
        """Return a copy for inputs of d columns, as if the new columns had been 0 so far."""
        meta, arrays = self._data()
        return self._without_data()._restore_contents(meta | {"width": d}, arrays)

    def _copy_with_output(self) -> Self:
        """Return a copy with one more output, a copy of the last one."""
        meta, arrays = self._data()
        meta["outputs"] += 1
        for name, axis in self._output_axes().items():
            array = arrays[f"state_{name}"]
            last = array.take([-1], axis=axis)
            arrays[f"state_{name}"] = np.concatenate([array, last], axis=axis)
        return self._without_data()._restore_contents(meta, arrays)


def restore_learner(
    path: str | os.PathLike, meta: dict[str, Any], arrays: Any, classes: Sequence[type]
) -> Learner:
    """Return the learner that ``save`` or a checkpoint wrote, from the contents of the file."""
    with refuse_damage(path):
        learner = from_spec(meta["spec"], arrays, classes)
        if not isinstance(learner, Learner):
            raise ValueError(f"it holds {repr_type(learner)}, expected a learner")
        return learner._restore_contents(meta, arrays)


loss_field = Declaration(lambda name, value: losses.get(value).name)


def check_learner(learner: Any, name: str = "learner") -> Learner:
    """Return a learner; raise ValueError for anything else."""
    require(isinstance(learner, Learner), name, learner, "an oklnumba learner such as okl.FOGD()")
    what = f"a learner that can play inside another (put {type(learner).__name__} outside)"
    require(learner._can_be_member, name, learner, what)
    return learner


def clone_learner(learner: Any) -> Learner:
    """Return a learner of the same hyper-parameters without data."""
    return clone(check_learner(learner))


def check_member(name: str, value: Any) -> Learner:
    """Return a copy, without data, of the learner that a hyper-parameter is."""
    return clone_learner(value)
