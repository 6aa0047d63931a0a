"""The base of linear learners, with two faces: a game, and the learner of this package.

- the game: ``reset(d)``, then each round plays ``w`` and ``update(g)`` takes a (sub)gradient of the
  round's loss at it. Any convex losses will do.
- the learner: features x, label y, forecast w.x, loss l(w.x, y), whose gradient l'(w.x, y) x closes
  the round; compiled, through ``okl.run``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import require_count
from oklnumba.core.health import NO_MATRIX, Part
from oklnumba.core.state import INTERRUPTED
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE
from oklnumba.hot.primitives.linalg import all_finite, product_rows
from oklnumba.hot.primitives.losses import LINEAR_LOSS
from oklnumba.learners.base.learner import Learner, Trace


class LinearLearner(Learner):
    """A point w in R^d for each round; the base of all linear learners.

    A subclass declares its arrays in ``_STATE``, all of fixed lengths, and has ``_start`` (make the
    state) and ``_rounds`` (play rounds, of a loss by its code, and return how many and a status);
    ``_point`` where w is not kept as such.
    """

    _REMEDY = "lower eta, or scale the inputs and labels"

    def reset(self, d: int | None = None) -> Self:
        """Go back to no data, or start a game in R^d; return self.

        Parameters
        ----------
        d : int >= 1, optional
            Number of coordinates; None: given by the first gradient or input.

        Raises
        ------
        ValueError
            If d or a hyper-parameter is out of range.
        """
        if d is not None:
            d = require_count("d", d, 1)
        super().reset()
        if d is not None:
            self._begin(int(d))
        return self

    @property
    def w(self) -> np.ndarray:
        """The point played now, shape (d,)."""
        if not super()._ready():
            raise ValueError("there is no point yet: call reset(d) first")
        return self._point().copy()

    def update(self, g: ArrayLike) -> Self:
        """Close the round with a subgradient of its loss at ``w``; return self.

        Parameters
        ----------
        g : array_like of shape (d,)

        Raises
        ------
        ValueError
            If g is not one finite vector of width d (nothing has changed then).
        FloatingPointError
            If the next point is beyond double precision.
        """
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

    def _close(self, X: np.ndarray, y: np.ndarray, loss: int, forecasts: np.ndarray) -> None:
        """Play rounds and count them; trouble is an error."""
        played, status = self._rounds(X, y, loss, forecasts)
        if status != DONE:
            self._raise_status(status, played)
        if not self._finite():
            self._raise_status(NOT_FINITE, len(X) - 1)
        self._played += len(X)

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        first, single = self._played == 0, self._single
        if single is None or trace is not single.trace:
            trace.sizes.fill(X.shape[1])
        self._close(X, y, self._loss_code, trace.predictions)
        if first:  # as predict_one had it, though a simplex starts in its centre
            trace.predictions[0] = 0.0

    def _ready(self) -> bool:
        return super()._ready() and self._played > 0

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts = np.empty(len(X))
        product_rows(X, self._point(), forecasts)
        return forecasts

    def _matrices(self) -> list[Part]:
        return [NO_MATRIX]

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, loss: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        raise NotImplementedError

    def _point(self) -> np.ndarray:
        return self._w

    def _finite(self) -> bool:
        return all_finite(self._w)


class EitherLearner(LinearLearner):
    """A linear learner that is one of several algorithms, by its hyper-parameters.

    A subclass has ``_choose``, which returns the algorithm: a LinearLearner that keeps the state
    and plays the rounds.
    """

    def _choose(self) -> LinearLearner:
        raise NotImplementedError

    def _start(self, d: int) -> None:
        self._algorithm = self._choose()
        self._algorithm._open(d)

    def _rounds(
        self, X: np.ndarray, y: np.ndarray, loss: int, forecasts: np.ndarray
    ) -> tuple[int, int]:
        return self._algorithm._rounds(X, y, loss, forecasts)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return self._algorithm._forecast(X)

    def _point(self) -> np.ndarray:
        return self._algorithm._point()

    def _finite(self) -> bool:
        return self._algorithm._finite()

    def _matrices(self) -> list[Part]:
        return self._algorithm._matrices()

    def _state(self) -> dict[str, Any]:
        return self._algorithm._state()

    def _restore(self, state: dict[str, Any]) -> None:
        self._algorithm._restore(state)
