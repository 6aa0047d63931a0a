"""What plays: hyper-parameters in force, a state, and blocks of rounds on it.

A learner names the NamedTuple of its arrays, ``_layout``. All attributes with a leading underscore
are state, which ``reset`` removes; ``_hyper`` are the hyper-parameters in force. It has the methods

- ``_start(d)``: make the state for inputs of width d, by ``_make_state`` (core/state.py);
- ``_play(X, y, trace)``: play a block of rounds, mostly by a loop of hot/ called through ``enter``
  (jit.py); write each forecast before its label is read;
- ``_forecast(X)``: return the forecast of each row, as if it came next; change no later forecast;

and, where needed, ``_check_params`` (several hyper-parameters together), ``_traits``, ``_REMEDY``
(what to change after trouble) and the methods below, from ``_check_labels`` on.

Who calls ``_play``, and what it calls:

    okl.run, partial_fit    _play_rows: any number of rows, in blocks
    learn_one               one row, mostly in the buffers of SingleRound
    another learner         _play_inside, and _forecast_inside for its forecasts
        _play               _play_loop, where a loop asks for room: makes it, and counts the rounds
                            _count_rounds, where none does; or it adds to ``_played`` itself

``predict_one`` and then ``learn_one`` of a row in these buffers compute features and the like once:
``_forecast`` notes that it did, ``_note_forecast``, and ``_play`` asks whether, ``_take_forecast``.
"""

import copy
from collections.abc import Callable
from functools import cached_property
from math import isfinite
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from oklnumba.components import losses
from oklnumba.components.features import Features
from oklnumba.components.kernels import Kernel, Precomputed
from oklnumba.components.metric import split_metric
from oklnumba.core import inputs
from oklnumba.core.health import NO_MATRIX, Part
from oklnumba.core.inputs import cut_blocks
from oklnumba.core.params import Params, find_parts
from oklnumba.core.state import INTERRUPTED, Stateful, StateT, WorkT, select_prefix
from oklnumba.hot.primitives import jit
from oklnumba.hot.primitives.jit import enter
from oklnumba.hot.primitives.linalg import REFUSED, SAME, take_finite
from oklnumba.learners.base.own import guard_methods
from oklnumba.learners.base.traits import NOT_IN_FORCE, InForce, Traits

FLOAT64 = np.dtype(np.float64)
KERNELS = {"kernel", "kernels"}  # names of hyper-parameters


def empty_per_round(n: int, outputs: int) -> np.ndarray:
    """Return room for one number per round, (n,), or per round and output, (n, K)."""
    return np.empty(n) if outputs == 1 else np.empty((n, outputs))


class Trace(NamedTuple):
    """The results of n rounds; (n, K) where shapes say (n,), for K > 1 labels per round."""

    predictions: np.ndarray  # (n,)
    sizes: np.ndarray  # (n,) for any K
    # A certificate: after each round loss - comparator <= bound, with the squared loss so far, and
    # the least penalised squared loss of one function on the same rounds.
    loss: np.ndarray | None = None  # (n,), as the next two
    comparator: np.ndarray | None = None
    bound: np.ndarray | None = None
    guaranteed: np.ndarray | None = None  # (n,), least comparator + bound of certified members
    intervals: np.ndarray | None = None  # (n, 2), of ``Intervals``, its own or one within

    @property
    def certificate(self) -> list[np.ndarray]:
        """The arrays of a certificate: loss, comparator, bound, and guaranteed if it is there."""
        return [a for a in self[2:6] if a is not None]

    def rows(self, start: int, stop: int) -> "Trace":
        """Return the results of rounds start to stop (views)."""
        if stop - start == len(self.sizes):
            return self
        return Trace._make([None if a is None else a[start:stop] for a in self])


class Facts(NamedTuple):
    """What a run says of a learner after the last round."""

    space: str | None = None  # of the certificate
    member: str | list[str] | None = None  # whose comparator it shows, of each output
    outliers: tuple[int, float] = 0, 0.0  # labels not learned as they came, their share of the loss


class SingleRound:
    """The input, the label and the results of one round. The next round overwrites them.

    Float64 vectors and labels are checked and copied here; ``core.inputs`` takes all others, or
    says what is wrong with them. ``was_forecast``: the last thing to happen was the forecast of
    this very input, so that its features, or what else the forecast computed, are valid.

    scales : of a Metric; signs : whether labels are -1 and +1; takes_points : whether any finite
    vector is a point: not so of Precomputed kernels; takes_labels : whether a schema changes
    neither rows to learn nor labels.
    """

    __slots__ = (
        "X", "scales", "signs", "takes_labels", "takes_points", "trace", "was_forecast", "x", "y",
    )  # fmt: skip

    def __init__(
        self, d: int, trace: Any, scales: np.ndarray | None, signs: bool, takes_points: bool,
        takes_labels: bool,
    ):  # fmt: skip
        self.X, self.y, self.trace, self.scales = np.zeros((1, d)), np.zeros(1), trace, scales
        self.x, self.was_forecast = self.X[0], False
        self.signs, self.takes_points, self.takes_labels = signs, takes_points, takes_labels

    def take_point(self, x: Any) -> bool:
        """Copy a finite float64 vector of the learner's width; return False for anything else."""
        is_vector = type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim == 1
        if not (self.takes_points and is_vector):
            return False
        if not x.flags.carray:  # contiguous, aligned and writeable: others are compiled for again
            x = x.copy()
        if self.scales is not None and len(x) == len(self.scales):
            x = x * self.scales
        taken = enter(take_finite)(x, self.x)
        if taken != SAME:
            self.was_forecast = False
        return taken != REFUSED

    def take_label(self, y: Any) -> bool:
        """Copy a finite float, -1 or +1 if the loss needs it; return False for anything else."""
        if not (self.takes_labels and isinstance(y, float) and isfinite(y)):  # np.float64 too
            return False
        self.y[0] = y
        return not self.signs or y == 1.0 or y == -1.0


# Before the first single round, and for several labels: it takes no point, and no input is its X.
NO_SINGLE = SingleRound(0, None, None, signs=False, takes_points=False, takes_labels=False)


class Engine(Stateful[StateT, WorkT], Params):
    """A state that is played block by block; a learner adds the protocol to it (learner.py)."""

    # Types are comments where annotations would be hyper-parameters.
    _REMEDY = "scale the inputs and labels"
    _fixed_loss = "squared"  # of learners without a hyper-parameter ``loss``
    _in_force = NOT_IN_FORCE  # type: InForce
    _width = None  # type: int | None  # of the inputs; None before any data
    _outputs = 1  # labels per round
    _played = 0
    _learned_late = False  # whether a label came after later forecasts: no bound is about that
    _expected_rounds = 0  # in all, by the end of this call or of the rows that a run has at hand
    _note_width = 0  # type: Any  # numbers that ``_forecast`` notes of a row whose label comes late
    _schema = None  # type: Any  # the Schema: what a row means, where the first rows had names
    _single = NO_SINGLE  # buffers of single rounds
    _unlearned = None  # type: Any  # why nothing is learned yet, where that may surprise
    _output_names = None  # type: Any  # of the K outputs, a list of JSON data; None: 0 to K - 1
    _half_width = None  # type: Any  # of the next interval, where there are intervals; (K,) of K

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        guard_methods(cls)

    # ---- what a learner writes ----

    @property
    def _traits(self) -> Traits:
        return Traits()

    def _start(self, d: int) -> None:
        """Make the state for inputs of width d."""
        raise NotImplementedError

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        """Play rounds, forecast before each label; write the results and count the rounds."""
        raise NotImplementedError

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        """Return the forecasts for rows against the present state, (n,) or (n, K)."""
        raise NotImplementedError

    # ---- what a learner may write ----

    def _check_labels(self, y: np.ndarray) -> None:
        """Raise ValueError for labels that the learner cannot take though its loss can."""

    def _check_points(self, X: np.ndarray) -> None:
        """Raise ValueError for rows that a kernel does not have: only ``Precomputed`` looks."""
        if self._width is None or self._in_force.is_precomputed:
            for kernel in find_parts(Precomputed, *vars(self._in_force.hyper or self).values()):
                kernel._check_points(X)

    def _facts(self) -> Facts:
        """Return what a run says of the learner as it is now."""
        return Facts()

    def _nested(self) -> dict[str, Stateful]:
        """Return the inner objects with a state, by name."""
        return {}

    def _feature_map(self) -> Features | None:
        """Return the map whose features ``_play`` and ``_forecast`` take from others, if any."""
        return None

    def _matrices(self) -> list[Part]:
        """Return the parts of ``health``, one per matrix; called after some data only."""
        return [NO_MATRIX]

    def _watch(self) -> dict[str, Any]:
        """Return what ``health`` says of the last rounds: only ``Monitored`` keeps them."""
        return {}

    def _advice(self, X: np.ndarray) -> str | None:
        """Return what to change where the first inputs do not suit the hyper-parameters."""
        for part in (getattr(self, "features", None), getattr(self, "kernel", None)):
            if isinstance(part, Features | Kernel):
                return part.advice(X)
        return None

    def _set_late(self, notes: np.ndarray, missed: np.ndarray | None = None) -> None:
        """Take notes, (n, _note_width), of the next rows: to write or, with ``missed``, to use."""

    def _end_fit(self) -> None:
        """Do what is worth while after the last row of a ``fit``, before predictions."""
        for one in self._nested().values():
            if isinstance(one, Engine):
                one._end_fit()

    @property
    def _can_widen(self) -> bool:
        """Whether ``copy_with_columns`` is right: kernels do not see columns that are 0."""
        p = self._hyper
        kernels = hasattr(p, "kernel") or hasattr(p, "kernels")
        return self._layout is not None and kernels and self._in_force.scales is None

    # ---- hyper-parameters in force ----

    @property
    def _hyper(self) -> Any:
        """The hyper-parameters in force: of the state; before any data the fields, checked."""
        return self._in_force.hyper or self._checked_params()

    def _loss(self) -> losses.Loss:
        return losses.get(getattr(self._in_force.hyper or self, "loss", self._fixed_loss))

    @cached_property
    def _loss_code(self) -> int:
        return self._loss().code

    def _params_in_force(self) -> dict[str, Any]:
        """Return the hyper-parameters in force, by name."""
        return vars(self._hyper) | self._in_force.kernels

    # ---- rounds ----

    def _begin(self, d: int, outputs: int = 1) -> None:
        """Refuse rounds after trouble and other widths; at the first round ``_open``."""
        self._refuse_fault()
        if self._width is None:
            self._open(d, outputs)
            return
        if d != self._width:  # another thread was first
            raise ValueError(f"X has {d} columns, but this learner has seen {self._width}")
        if outputs != self._outputs:
            raise ValueError(f"y has {outputs} labels per round, but before it had {self._outputs}")

    def _open(self, d: int, outputs: int = 1) -> None:
        """Put a copy of the fields in force and make the state, by ``_start``."""
        params = vars(self._checked_params())
        params = {name: copy.deepcopy(value) for name, value in params.items()}
        self._outputs = outputs
        try:
            kernels = {name: params[name] for name in KERNELS & params.keys()}
            scales, is_precomputed = None, bool(find_parts(Precomputed, *params.values()))
            for name, given in kernels.items():  # one of the names at most
                params[name], scales = split_metric(name, given)
                inputs.scale_columns(np.zeros((1, d)), scales)  # which refuses other widths
            self._in_force = InForce(SimpleNamespace(**params), kernels, scales, is_precomputed)
            # Traits may depend on what is in force.
            self._in_force = self._in_force._replace(block_rows=self._traits.block_rows)
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
            X = X if self._schema is None else self._fill(X)
            self._fault = INTERRUPTED
            self._expected_rounds = self._played + max(n, coming)
            trace = self._trace(n)
            try:
                for rows, block in cut_blocks(X, self._in_force.block_rows, self._in_force.scales):
                    self._play(block, y[rows], trace.rows(rows.start, rows.stop))
            except FloatingPointError as error:
                self._fault = error
                raise
            self._fault = None
        return trace

    def _fill(self, X: np.ndarray) -> np.ndarray:
        """Return rows to learn now, with gaps filled by all rows learned before."""
        if self._schema is not None:
            X, self._schema = self._schema.fill(X, learned=True)
        return X

    def _play_inside(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        """Play rows for another learner, which calls this only: ``_play`` has room for a block."""
        if len(X) <= self._in_force.block_rows:
            return self._play(inputs.scale_columns(X, self._in_force.scales), y, trace)
        for rows, x in cut_blocks(X, self._in_force.block_rows, self._in_force.scales):
            self._play(x, y[rows], trace.rows(rows.start, rows.stop))

    def _forecast_inside(self, X: np.ndarray) -> np.ndarray:
        """Return forecasts for another learner, which calls this in place of ``_forecast``."""
        if not self._ready():  # 0 before any data, though a simplex starts in its centre
            return np.zeros_like(empty_per_round(len(X), self._outputs))
        if len(X) <= self._in_force.block_rows:
            return self._forecast(inputs.scale_columns(X, self._in_force.scales))
        blocks = cut_blocks(X, self._in_force.block_rows, self._in_force.scales)
        return np.concatenate([self._forecast(x) for rows, x in blocks])

    def _trace(self, n: int) -> Trace:
        """Return room for the results of n rounds."""
        shape = n if self._outputs == 1 else (n, self._outputs)
        # Zeros: rows that are only forecast write none, and what is added to all must not warn.
        certificate = [np.zeros(shape) for _ in range(self._traits.certificate_rows)]
        trace = Trace(np.empty(shape), np.empty(n, dtype=np.int64), *certificate)
        return trace if self._half_width is None else trace._replace(intervals=np.empty((n, 2)))

    def _intervals_around(self, forecasts: np.ndarray) -> np.ndarray:
        """Return the intervals of the present state around forecasts, (n, 2) or (n, K, 2)."""
        return forecasts[..., None] + np.multiply.outer(self._half_width, [-1.0, 1.0])

    def _play_loop(self, n: int, loop: Callable[[int], tuple[int, int]]) -> None:
        """Play n rounds by calls of ``loop(first)``; make room when it asks for room."""
        self._count_rounds(n, *self._play_with_room(loop))

    def _count_rounds(self, n: int, played: int, status: int) -> None:
        """Count n rounds if the status is DONE; else raise the error of row ``played``."""
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

    def _refuse_not_finite(self, forecasts: np.ndarray) -> None:
        """Raise FloatingPointError that names the first row whose forecast is not finite."""
        finite = np.isfinite(forecasts)
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(finite), -1).all(axis=1)))
            raise FloatingPointError(
                f"the forecast of this {type(self).__name__} for row {row} is beyond double "
                f"precision; leave the row out, or {self._REMEDY}"
            )

    # ---- single rounds ----

    def _make_single(self) -> SingleRound:
        """Return the buffers of single rounds, made with the first; none for several labels."""
        if self._single is NO_SINGLE and self._outputs == 1:
            schema = self._schema
            self._single = SingleRound(
                self._width or 0, self._trace(1), self._in_force.scales,
                signs=self._loss().classes or self._traits.signs,
                takes_points=not self._in_force.is_precomputed,
                takes_labels=schema is None or not (schema.classes or schema.impute),
            )  # fmt: skip
        return self._single

    def _note_forecast(self, X: np.ndarray) -> None:
        """Note that the input X was just forecast, if it is a single one."""
        self._single.was_forecast = X is self._single.X

    def _take_forecast(self, X: np.ndarray) -> bool:
        """Return whether X is the single input that was forecast last; forget that it was."""
        single = self._single
        was_forecast, single.was_forecast = single.was_forecast, False
        return was_forecast and X is single.X

    def _forget_forecast(self) -> None:
        """Forget which input was forecast last: what the forecast computed holds no longer."""
        self._single.was_forecast = False

    # ---- health and files ----

    def _diagnose(self) -> list[Part]:
        if not self._ready() or not self._played:
            return []
        return [part._replace(remedy=part.remedy or self._REMEDY) for part in self._matrices()]

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
