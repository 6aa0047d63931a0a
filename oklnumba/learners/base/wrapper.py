"""The base class of learners around another one; the check of learners within."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core.checks import repr_short, require
from oklnumba.core.guard import locked
from oklnumba.core.health import Part
from oklnumba.core.inputs import Signs, as_point, refuse_not_finite
from oklnumba.core.params import clone
from oklnumba.core.state import Stateful, StateT
from oklnumba.learners.base.learner import Learner, Trace

LARGEST = 0.5 * float(np.finfo(float).max)  # label whose double is finite


def check_learner(name: str, value: Any) -> Learner:
    """Return a learner that can play within another; raise ValueError for anything else."""
    what = "an oklnumba learner such as okl.FOGD(), or one of your own, derived from okl.Learner"
    require(isinstance(value, Learner), name, value, what)
    alone = f"put {type(value).__name__} outside, or play it alone"
    what = f"a learner that can play inside another ({alone})"
    require(value._traits.is_member, name, value, what)
    return value


def check_member(name: str, value: Any) -> Learner:
    """Return a copy, without data, of the learner that a hyper-parameter is."""
    return clone(check_learner(name, value))


def from_learner(name: str) -> Any:
    """Return a property that is the attribute or method of the hyper-parameter ``learner``."""
    return property(lambda self: getattr(self._hyper.learner, name))


def set_late(
    learners: Sequence[Learner], notes: np.ndarray, missed: np.ndarray | None = None
) -> None:
    """Give each learner its columns of the notes (views), and ``missed``."""
    stops = np.cumsum([one._note_width for one in learners])
    for one, some in zip(learners, np.split(notes, stops[:-1], axis=1), strict=False):
        one._set_late(some, missed)


class Wrapper(Learner[StateT, None]):
    """A learner with a hyper-parameter ``learner``, which it plays and whose traits it has.

    The learner within has no single rounds of its own: it forecasts a point twice if asked twice.
    """

    _traits = from_learner("_traits")
    _can_widen = from_learner("_can_widen")
    _facts = from_learner("_facts")
    _loss = from_learner("_loss")
    _check_labels = from_learner("_check_labels")
    _advice = from_learner("_advice")
    _note_width = from_learner("_note_width")
    _set_late = from_learner("_set_late")
    _half_width = from_learner("_half_width")
    _in_turn = property(lambda self: self.learner._in_turn)

    @property
    def _inner(self) -> Learner:
        """The learner within; before any data a new copy of the one that was given."""
        return self._hyper.learner

    @property
    def size(self) -> int:
        """Size of the learner within; 0 before any data."""
        return self._inner.size if self._width is not None else 0

    @property
    @locked
    def importance(self) -> np.ndarray:
        """``importance`` of the ``SelfTuning`` within, (d,), of the columns of X."""
        self._refuse_fault()
        within: Any = self._inner
        return within.importance[-(self._width or 0) :]  # of Lags, before them stand last labels

    @locked
    def predict_interval(self, X: ArrayLike) -> np.ndarray:
        """Return the intervals around ``predict(X)``, (n, 2) or (n, K, 2), of ``Intervals``."""
        self._require_intervals()
        return self._intervals_around(self.predict(X))

    def _require_intervals(self) -> None:
        if self._half_width is None:
            me, one, cure = type(self).__name__, type(self._inner).__name__, ""
            if self._traits.is_member:
                cure = f": make it okl.Intervals(okl.{me}(...))"
            elif type(self)._half_width is not None:
                cure = f": make it okl.{me}(okl.Intervals({one}(...)), ...)"
            raise ValueError(f"{me} has no intervals{cure}")

    def _refuse_signs(self, inner: Learner, cure: str) -> None:
        """Refuse a learner within that takes -1 and +1 only: changes of labels are others."""
        if inner._loss().classes or inner._traits.signs:
            raise ValueError(
                f"{type(self).__name__} learns changes of labels, but {repr_short(inner)} takes "
                f"labels -1 and +1 only; {cure}"
            )

    def _check_changes(self, y: np.ndarray) -> None:
        """Refuse labels of which the learner within might not take the changes."""
        try:
            if np.abs(y).max(initial=0.0) > LARGEST:
                with np.errstate(over="ignore"):
                    refuse_not_finite(2.0 * y, "y")
            self._inner._check_labels(2.0 * y)
        except ValueError as error:
            what = "learns changes of labels, which may be twice as large"
            raise ValueError(f"{type(self).__name__} {what}: 2 {error}") from None

    def _start(self, d: int) -> None:
        self._hyper.learner._open(d, self._outputs)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        self._inner._play_inside(X, y, trace)
        self._played += len(X)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self._inner._forecast_inside(X)

    def _matrices(self) -> list[Part]:
        return self._inner._diagnose()

    def _watch(self) -> dict[str, Any]:
        return self._inner._watch()

    def _nested(self) -> dict[str, Stateful]:
        return {"inner": self._inner}


class RowWrapper(Wrapper):
    """A wrapper that plays a single round as rows of one."""

    @locked
    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Play one round, whose label or labels are ``y``; return self."""
        schema = self._schema_for(x)
        labels = y[None] if isinstance(y, Signs) else [y]
        self.partial_fit(as_point(x, self._width, schema=schema, fill=False), labels)
        self._schema = self._schema or schema
        return self

    def predict_one(self, x: Any) -> Any:
        """Return what ``predict`` returns for a row, if ``x`` came next; nothing changes."""
        return self.predict(as_point(x, self._width, schema=self._schema_for(x)))[0]
