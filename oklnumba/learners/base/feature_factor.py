"""The base of learners in the coordinates of some features, with a factor U' D U of A."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from oklnumba.components.features import FeatureRows
from oklnumba.core.arrays import BLOCK_ROWS, aligned_zeros, round_up_to_vector
from oklnumba.core.factors import make_forgetting, make_pass_work, settle
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.hot.primitives.factor import PassWork
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.states import WithFactor

FactorT = TypeVar("FactorT", bound=WithFactor)


class FeatureFactor(Learner[FactorT, PassWork]):
    """A = lam I + the sum of the rounds' weighted z z'."""

    @property
    def size(self) -> int:
        """Number of features; 0 before any data."""
        return self._r if self._width is not None else 0

    def _start_factor(
        self, writer: tuple[Callable, int], discount: float = 1.0, **lengths: int
    ) -> None:
        """Make the state for a feature map's ``_writer``; ``lengths`` are those of other arrays."""
        (write, r), lam = writer, self._hyper.lam
        self._r, self._room = r, round_up_to_vector(r)  # features, and columns with zeros
        room = self._room
        try:
            self._make_state(outputs=self._outputs, r=room, pending=2, **lengths)
        except MemoryError as error:
            raise MemoryError(
                f"a factor of {room} x {room} numbers does not fit in memory ({error}); take fewer "
                "features: a lower degree, a smaller rank"
            ) from None
        np.fill_diagonal(self._state.factor.U, 1.0)
        self._state.factor.inv_d[:] = 1.0 / lam
        self._features = FeatureRows(write, aligned_zeros(BLOCK_ROWS, room))
        self._forgetting = make_forgetting(discount, lam)

    def _make_work(self, state: FactorT, rooms: dict[int, int]) -> PassWork:
        return make_pass_work(state.factor.U)

    def _settle(self) -> None:
        settle(self._state.factor, self._forgetting, self._work)

    def _label_scales(self) -> np.ndarray | list[float]:
        """Return the scale of each output's forecasts."""
        raise NotImplementedError

    def _matrices(self) -> list[Part]:
        self._settle()
        r, factor = self._r, self._state.factor
        matrix = Factored(factor.U, r, 1.0 / factor.inv_d[:r])
        solutions = [matrix.half_solve(c) for c in factor.c]
        return [measure_part("lam I + sum z z'", matrix, solutions, self._label_scales())]
