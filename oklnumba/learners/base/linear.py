"""The base of linear learners, with two faces: a game, and the learner of this package.

- a game: ``reset(d)``; then each round plays ``w``, and ``update(g)`` takes a (sub)gradient of the
  round's convex loss at ``w``;
- a learner: features x, label y, forecast w.x, loss l(w.x, y); the gradient l'(w.x, y) x closes the
  round. Compiled, through ``okl.run``.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import require_count
from oklnumba.core.guard import locked
from oklnumba.core.state import INTERRUPTED, Stateful, StateT, WorkT
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE
from oklnumba.hot.primitives.linalg import all_finite, product_rows
from oklnumba.hot.primitives.losses import LINEAR_LOSS
from oklnumba.learners.base.contents import copy_without_data
from oklnumba.learners.base.learner import Learner, Trace


class Game(Learner[StateT, WorkT]):
    """A learner whose ``reset(d)`` starts a game in R^d."""

    @locked
    def reset(self, d: int | None = None) -> Self:
        """Go back to no data, or start a game in R^d, d >= 1; return self."""
        if d is None:
            return super().reset()
        d = require_count("d", d, 1)
        super().reset()._begin(d)
        return self


class LinearLearner(Game[StateT, WorkT]):
    """A point w in R^d for each round; the base of all linear learners.

    The arrays of a subclass's ``_layout`` have fixed lengths. It has ``_start`` (make the state),
    ``_rounds(X, y, loss, out)`` (play rounds with the loss of this code; return how many, and a
    status) and, if w is not an array of the state, ``_point``.
    """

    _REMEDY = "lower eta, or scale the inputs and labels"

    @property
    def w(self) -> np.ndarray:
        """The point played now, shape (d,)."""
        if not super()._ready():
            raise ValueError("there is no point yet: call reset(d) first")
        return self._point().copy()

    @locked
    def update(self, g: ArrayLike) -> Self:
        """Close the round with a subgradient g, (d,), of its loss at ``w``; return self."""
        g = inputs.as_point(g, self._width, "g")
        self._begin(g.shape[1])
        self._fault = INTERRUPTED
        self._close(g, np.zeros(1), LINEAR_LOSS, np.empty(1))
        self._fault = None
        return self

    @property
    def size(self) -> int:
        """Number of weights; 0 before any data."""
        return self._width or 0

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        raise NotImplementedError

    def _close(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> None:
        """Play rounds and count them; trouble is an error."""
        played, status = self._rounds(X, y, loss, out)
        if status == DONE and not self._finite():
            played, status = len(X) - 1, NOT_FINITE
        self._count_rounds(len(X), played, status)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first = self._played == 0
        if trace is not self._single.trace:
            trace.sizes.fill(X.shape[1])
        self._close(X, y, self._loss_code, trace.predictions)
        if first:  # as predict_one had it, even if w begins in the centre of a simplex
            trace.predictions[0] = 0.0

    def _ready(self) -> bool:
        return super()._ready() and self._played > 0

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        product_rows(X, self._point(), forecasts)
        return forecasts

    @property
    def _can_widen(self) -> bool:
        return not copy_without_data(self).reset(1).w.any()  # a simplex starts in its centre

    def _point(self) -> np.ndarray:
        state: Any = self._state  # with w
        return state.w

    def _finite(self) -> bool:
        return all_finite(self._point())


def _from_algorithm(name: str) -> Any:
    """Return a property that is the method of the algorithm that an ``EitherLearner`` plays."""
    return property(lambda self: getattr(self._algorithm, name))


class EitherLearner(LinearLearner):
    """A linear learner that plays one of several algorithms, by its hyper-parameters.

    A subclass has ``_choose``, which returns the algorithm, a LinearLearner.
    """

    _rounds = _from_algorithm("_rounds")
    _forecast = _from_algorithm("_forecast")
    _point = _from_algorithm("_point")
    _finite = _from_algorithm("_finite")
    _matrices = _from_algorithm("_matrices")

    def _choose(self) -> LinearLearner:
        raise NotImplementedError

    def _start(self, d: int) -> None:
        self._algorithm = self._choose()
        self._algorithm._open(d)

    def _nested(self) -> dict[str, Stateful]:
        return {"algorithm": self._algorithm}
