"""Several outputs of any learner: classes, one against the rest, or several real labels.

One learner plays all outputs on one state where it can (``Traits.outputs_at_once``: the AWV and
ridge learners, whose factor does not depend on the labels), else there is one for each output.
"""

import copy
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components import losses
from oklnumba.core import checks, inputs
from oklnumba.core.guard import locked
from oklnumba.core.health import Part, name_members
from oklnumba.core.params import clone, required
from oklnumba.core.state import Stateful
from oklnumba.hot import softmax as loops
from oklnumba.hot.primitives.jit import enter
from oklnumba.learners.base.contents import copy_with_output
from oklnumba.learners.base.engine import Facts, Trace
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.base.wrapper import RowWrapper, check_member, set_late

NO_LEARNERS: tuple[Learner, ...] = ()
# Of a Trace, (n, K) or (n, K, 2); sizes are not.
PER_OUTPUT = "predictions", "loss", "comparator", "bound", "guaranteed", "intervals"


class Several(RowWrapper):
    """K outputs of learners of the same hyper-parameters; their forecasts are (n, K).

    A subclass checks the labels (``_as_labels``), and ``_column(labels, k)`` returns the numbers,
    (n,), that output k learns.
    """

    _learners = NO_LEARNERS  # before any data
    _outputs = 0  # K; 0 before the first labels
    _kind = "output"

    learner: Learner = required(check_member)

    @property
    def _traits(self) -> Traits:
        traits = super()._traits
        if refusal := traits.needs_last_label:  # nothing goes around several outputs
            refusal = refusal._replace(cure=f"play each output by itself and {refusal.cure}")
        return traits._replace(is_member=False, needs_last_label=refusal)

    @property
    def learners_(self) -> list[Learner]:
        """The learners that play: one for all outputs, or one for each; none before any data."""
        return list(self._learners)

    @property
    def size(self) -> int:
        """Size of the one learner, or the sum of the sizes of all."""
        return sum(one.size for one in self._learners)

    @property
    @locked
    def importance(self) -> np.ndarray:
        """Mean ``importance`` of the ``SelfTuning`` of each output, (d,)."""
        self._refuse_fault()
        learners: Any = self._learners or (self._hyper.learner,)
        return np.mean([one.importance for one in learners], axis=0)

    def _column(self, labels: np.ndarray, k: int) -> np.ndarray:
        raise NotImplementedError

    @property
    def _together(self) -> bool:
        """Whether one learner plays several outputs on one state."""
        return len(self._learners) < self._outputs

    def _facts(self) -> Facts:
        facts = self._learners[0]._facts()
        return facts if self._together else facts._replace(member=None)

    def _warn_of_rows(self, X: np.ndarray, labels: np.ndarray) -> None:
        self._hyper.learner._warn_of_rows(X, self._column(labels, 0))  # the learners are all alike

    def _start(self, d: int) -> None:
        one = self._hyper.learner
        count = 1 if one._traits.outputs_at_once else self._outputs
        self._learners = one, *(clone(one) for _ in range(count - 1))
        for each in self._learners:
            each._open(d, self._outputs if self._together else 1)

    def _trace(self, n: int) -> Trace:
        names = self._output_names or (0,)  # columns, even for one output
        shape = n, self._outputs or len(names)
        certificate = [np.empty(shape) for _ in range(self._traits.certificate_rows)]
        ends = None if self._half_width is None else np.empty((*shape, 2))
        trace = Trace(np.empty(shape), np.empty(n, dtype=np.int64), *certificate)
        return trace._replace(intervals=ends)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        if self._together:
            columns = [self._column(y, k) for k in range(self._outputs)]
            self._learners[0]._play_inside(X, np.stack(columns, axis=1), trace)
        else:
            trace.sizes[:] = 0
            for k, one in enumerate(self._learners):
                output = one._trace(len(X))
                one._play_inside(X, self._column(y, k), output)
                trace.sizes[:] += output.sizes
                for name in PER_OUTPUT:
                    if getattr(trace, name) is not None:
                        getattr(trace, name)[:, k] = getattr(output, name)
        self._played += len(X)

    @property
    def _note_width(self) -> int:
        return sum(one._note_width for one in self._learners)

    def _set_late(self, notes: np.ndarray, missed: np.ndarray | None = None) -> None:
        set_late(self._learners, notes, missed)

    @locked
    def _forecast_outputs(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts of all outputs for the rows of X, (n, K); 0 before any data."""
        self._refuse_fault()
        X = inputs.as_rows(X, self._width, schema=self._schema_for(X), least=0)
        self._check_points(X)
        if not self._learners:
            return np.zeros((X.shape[0], len(self._output_names or ())))
        forecasts = [one.predict(X) for one in self._learners]
        return forecasts[0] if self._together else np.stack(forecasts, axis=1)

    @property
    def _can_widen(self) -> bool:
        return all(one._can_widen for one in self._learners)

    def _matrices(self) -> list[Part]:
        if self._together:
            return self._learners[0]._diagnose()
        names = self._output_names or range(len(self._learners))
        members = zip(names, self._learners, strict=True)
        return name_members((f"{self._kind} {name}", one._diagnose()) for name, one in members)

    def _watch(self) -> dict[str, Any]:
        watched = [one._watch() for one in self._learners]
        return max(
            watched, key=lambda w: (w.get("alarm") or 0, w.get("recent_loss", 0.0)), default={}
        )

    def _add_output(self) -> None:
        """Add an output whose past is that of the last one."""
        if self._together:
            self._learners = (copy_with_output(self._learners[0]),)
        elif self._learners:
            self._learners += (copy.deepcopy(self._learners[-1]),)
        self._outputs += bool(self._learners)

    def _nested(self) -> dict[str, Stateful]:
        return {f"learner{k}": one for k, one in enumerate(self._learners)}


# The loss of classes: 1 for a mistake, else 0.
ZERO_ONE = losses.Loss(
    "zero-one", -1, False, lambda f, y: (f != y).astype(float), lambda C: 0.0, lambda C: 0.0
)


class Softmax(Stateful[loops.SoftmaxState, loops.SoftmaxWork]):
    """Softmax regression on the scores of K classes; hot/softmax.py has the steps."""

    _layout = loops.SoftmaxState

    def __init__(self, classes: int):
        self._make_state(d=classes, r=classes + 1)
        self._state.W[1:] = loops.START * np.eye(classes)
        self._state.A[:] = np.eye(classes + 1) / loops.LAM
        self._work = loops.SoftmaxWork(*map(np.empty, (classes + 1, classes, classes + 1)))

    def play(self, scores: np.ndarray, labels: np.ndarray) -> None:
        """Replace scores, (n, K), by logs of probabilities, each before its label is learned."""
        enter(loops.softmax_rounds)(scores, labels, self._state, self._work)

    def forecast(self, scores: np.ndarray) -> np.ndarray:
        """Replace the scores of single rounds, and return them."""
        enter(loops.softmax_forecasts)(scores, self._state, self._work)
        return scores


class OneVsRest(Several):
    """Several classes by one scorer each, whatever the learner (Rifkin and Klautau 2004).

    The scorer of class c learns +1 for c and -1 for all other classes. Softmax regression on the K
    scores, learned online, gives probabilities; the forecast is the most probable class, the first
    one on ties (so the first class before any data). The AWV and ridge learners play all scorers
    on one factor, which costs little more than a binary learner; with the others it costs K times
    that. The regression costs of order K^2 a round.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are those of every scorer; it is not played itself.
    classes : sequence of at least two different labels
        Numbers or texts; all that the stream may have.

    Attributes
    ----------
    learners_ : list of Learner
        One learner that plays all K scorers, its forecasts (n, K), or a learner for each class, in
        the order of ``classes``. Empty before any data.

    Remarks
    -------
    The scorers do not see each other, so all that holds for a learner (any cut of the stream gives
    the same run, no look at later labels, save and load) holds here. One factor gives the bits of
    K learners. ``okl.run`` records the classes forecast, ``scores`` and the zero-one loss; with AWV
    and ridge learners ``run.certificate`` has a column for each class: squared loss of its scorer.

    Names change nothing; the order of ``classes`` decides ties and the last digits of scores, with
    ``SelfTuning`` about the sixth: it sees the last labels of all classes as columns in this order.

    The regression is ours: online Newton steps (Hazan, Agarwal and Kale 2007) from weights 4 I.
    With it sixteen sets have 0.75 to 0.92 of the mistakes of the largest score, by learner
    (SelfTuning 0.99), and 0.59 to 0.88 of the log loss.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1500, 2))
    >>> y = np.array(["left", "middle", "right"])[np.digitize(X[:, 0], [-0.3, 0.3])]
    >>> learner = okl.OneVsRest(okl.FOGD(eta=0.5), classes=["left", "middle", "right"])
    >>> run = okl.run(learner, X, y)
    >>> bool(run.mistake_rate < 0.12), run.scores.shape, learner.predict_one([0.9, 0.0])
    (True, (1500, 3), 'right')
    """

    _half_width = None  # of a scorer, which are not of the classes
    _kind = "class"

    classes: Sequence[Hashable] = required(lambda name, value: checks.require_classes(value))

    def _check_params(self) -> None:
        self.learner._as_labels(np.array([-1.0, 1.0]), 2)

    def _names(self) -> np.ndarray:
        return np.array(self._hyper.classes)

    def _add_classes(self, labels: Iterable[Any]) -> None:
        """Give each new label the last class, a spare one without rounds; add a spare after it.

        The new scorer is a copy of the last one, which has seen -1 only: as if it had been there
        from the start.
        """
        for label in dict.fromkeys(labels):
            if label not in self.classes[:-1]:
                names = *self.classes[:-1], label
                free = {*range(len(names) + 1)} - {*names}
                spare = max(names) + "?" if isinstance(label, str) else min(free)
                self.classes = *names, spare
                if self._width is not None:
                    self._hyper.classes = self.classes
                self._add_output()

    def _recorded_loss(self, loss: str | None) -> losses.Loss:
        checks.require(loss in (None, ZERO_ONE.name), "loss", loss, "'zero-one' for classes")
        return ZERO_ONE

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return the places of the labels in ``classes``, (n,); ValueError for other labels."""
        if y is None:
            raise ValueError("labels are missing: pass y, one class for each row of X")
        given = inputs.as_label_array(y)
        if given.shape != (n,):
            inputs.refuse_shape(given, n, y, "y", "class")
        inputs.refuse_rounded(given, "y")
        place_of = {name: k for k, name in enumerate(self._names().tolist())}
        if isinstance(given, inputs.Signs) and given.classes:
            ours = {*place_of}  # perhaps -1 and +1 themselves
            given = given.decode() if {*given.classes} <= ours or not {-1, 1} <= ours else given
        labels = [one if isinstance(one, Hashable) else None for one in given.tolist()]
        places = np.array([place_of.get(one, -1) for one in labels], dtype=np.int64)
        if n and places.min() < 0:
            row = int(np.argmin(places))
            if labels[row] is None:
                cure = "okl.run(..., labels='optional') forecasts rows without a label"
                raise ValueError(f"y has no label at row {row}; {cure}")
            raise ValueError(
                f"y has {labels[row]!r} at row {row}, which is not one of the classes "
                f"{list(place_of)}; name all classes when you make the learner"
            )
        return places

    def _column(self, labels: np.ndarray, k: int) -> np.ndarray:
        return np.where(labels == k, 1.0, -1.0)

    @property
    def _output_names(self) -> list[Any]:
        return self._names().tolist()

    def _begin(self, d: int, outputs: int = 1) -> None:
        super()._begin(d, len(self._names()))

    def _start(self, d: int) -> None:
        super()._start(d)
        self._softmax = Softmax(self._outputs)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        super()._play(X, y, trace)
        self._softmax.play(trace.predictions, y.astype(np.int64))  # late ones are doubles

    @locked
    def _forecast_outputs(self, X: ArrayLike) -> np.ndarray:
        scores = super()._forecast_outputs(X)
        return self._softmax.forecast(scores) if self._learners else scores

    def _add_output(self) -> None:
        super()._add_output()
        if self._learners:
            before, self._softmax = self._softmax, Softmax(self._outputs)
            self._softmax._restore(before._export())

    def _nested(self) -> dict[str, Stateful]:
        return super()._nested() | {"softmax": self._softmax}

    def _record(self, y: np.ndarray, trace: Trace, loss: Any) -> dict[str, np.ndarray]:
        chosen = np.argmax(trace.predictions, axis=1)
        part = {name: a for name, a in trace._asdict().items() if a is not None}
        part |= {"predictions": self._names()[chosen], "scores": trace.predictions}
        return part | {"losses": loss.of_rounds(chosen, y), "mistakes": chosen != y, "labels": y}

    def predict_one(self, x: ArrayLike) -> Any:
        """Return the class forecast if ``x`` came next; nothing changes."""
        return super().predict_one(x).item()

    def scores(self, X: ArrayLike) -> np.ndarray:
        """Return the scores of the rows of X, shape (n, K), one column per class.

        exp(scores), divided by their sum, are the probabilities. After n rounds none is less than
        1 / (n + K), which Laplace's rule gives a class that never came.
        """
        return self._forecast_outputs(X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the classes forecast for the rows of X, (n,); nothing changes."""
        return self._names()[np.argmax(self.scores(X), axis=1)]


class MultiOutput(Several):
    """Several real labels per round, each forecast for itself by a learner of the same kind.

    The AWV and ridge learners play all labels on one factor, which costs little more than one
    label; with the others it costs K times as much.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are those of every output; it is not played itself.

    Remarks
    -------
    The outputs do not see each other: each has the forecasts of a run with it alone, to the bit.
    Only ``SelfTuning`` has members that see the last labels of all.
    ``okl.run`` takes labels of shape (n, K), and what it records for each round and label is
    (n, K): predictions, losses, the certificate; ``run.mean_loss`` is the mean over both.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
    >>> learner = okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(3)))
    >>> run = okl.run(learner, X, Y)
    >>> learner.predict([[0.5, 0.5]]).round(2), run.losses.shape, len(learner.learners_)
    (array([[0.49, 0.31]]), (500, 2), 1)
    """

    def _as_labels(self, y: Any, n: int, signs: bool = False) -> np.ndarray:
        """Return checked labels, (n, K)."""
        Y = inputs.as_inputs(y, self._outputs or None, "y")
        if len(Y) != n:
            raise ValueError(f"y must have {n} rows, one per row of X, but has {len(Y)}")
        for k in range(Y.shape[1]):
            try:
                self._hyper.learner._as_labels(Y[:, k], n, signs)
            except ValueError as error:
                raise ValueError(f"column {k} of y: {error}") from None
        for one in self._learners:
            if len(Y) and one._outputs > 1:
                one._check_labels(Y)
        self._take_label_names(y)
        return np.require(Y, requirements=["C", "W"])

    def _take_label_names(self, y: Any) -> None:
        one = y[0] if isinstance(y, list) and len(y) == 1 else y  # of a single round
        names = list(map(str, inputs.column_names(one)))
        names = [] if names == [str(k) for k in range(len(names))] else names  # the default ones
        if self._width is None:
            self._output_names = names or None
        elif names and self._output_names and names != self._output_names:
            before = self._output_names
            raise ValueError(f"y has columns {names}, but the first labels had {before}")

    def _record(self, y: np.ndarray, trace: Trace, loss: Any) -> dict[str, np.ndarray]:
        return super()._record(y.reshape(trace.predictions.shape), trace, loss)  # of no rounds too

    def _column(self, labels: np.ndarray, k: int) -> np.ndarray:
        return labels[:, k].copy()

    def _export(self) -> dict[str, Any]:
        return super()._export() | {"label_names": self._output_names}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._output_names = state["label_names"]

    @property
    def _half_width(self) -> np.ndarray | None:
        none = self._hyper.learner._half_width is None
        return None if none else np.array([one._half_width for one in self._learners])

    @locked
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts for the rows of X, (n, K), after some data; nothing changes."""
        if not self._learners:
            raise ValueError("MultiOutput has seen no data; play a round first")
        return self._forecast_outputs(X)
