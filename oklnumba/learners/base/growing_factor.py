"""The base of learners with a Cholesky factor that gains a row per round, or per atom."""

from typing import Any

import numpy as np

from oklnumba.core import cholesky
from oklnumba.core.arrays import pad_row_length
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.base.learner import Learner

AT_ONCE = 16_384  # most rows reserved ahead: 2 GiB, of addresses until they are written


class GrowingFactor(Learner):
    """A learner with a Cholesky factor ``_L``, (cap, cap), that gains rows.

    Only the rows in use are saved.
    """

    _FACTORED = ATOMS  # the count of these rows
    _INSTEAD = ""  # the message where memory is too small: what to use
    _L = np.zeros((0, 0))

    def _choose_room(self, axis: int, least: int) -> int:
        if axis != self._FACTORED:
            return super()._choose_room(axis, least)
        # Later steps are smaller, because the old and the new factor exist at the same time. One
        # more row than _reserve_ahead asks for: forecasts write theirs behind those in use.
        old = self._rooms[axis]
        return pad_row_length(max(least + 1, 64, 2 * old if old < 8192 else old + old // 4))

    def _make_buffers(self, rooms: dict[int, int]) -> dict[str, np.ndarray]:
        buffers, rows = super()._make_buffers(rooms), rooms[self._FACTORED]
        if rows > self._rooms[self._FACTORED]:
            used = min(int(self._counts[self._FACTORED]), len(self._L))
            buffers["L"] = cholesky.grow_factor(self._L, used, rows, self._INSTEAD)
            buffers["forecast_number"] = None  # its row, behind those in use, is not copied
        return buffers

    def _reserve_ahead(self) -> None:
        """Reserve rows for the rounds to come if there is memory, so that none is copied later."""
        rows = int(self._counts[self._FACTORED]) + self._expected - self._played
        if rows <= AT_ONCE:
            try:
                self._reserve({self._FACTORED: rows})
            except MemoryError:  # the rounds will ask for less
                pass

    def _rows_to_diagonal(self) -> list[np.ndarray]:
        return [self._L[i, : i + 1] for i in range(int(self._counts[self._FACTORED]))]

    def _export(self) -> dict[str, Any]:
        return super()._export() | {"lower": np.concatenate([[], *self._rows_to_diagonal()])}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        start = 0
        for row in self._rows_to_diagonal():
            row[:] = state["lower"][start : start + len(row)]
            start += len(row)
