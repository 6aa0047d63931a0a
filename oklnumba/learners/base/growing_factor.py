"""The base of learners with a Cholesky factor that gains a row per round, or per atom."""

import numpy as np

from oklnumba.core.arrays import pad_row_length
from oklnumba.core.cholesky import BLOCK
from oklnumba.core.state import StateT, WorkT
from oklnumba.hot.primitives.jit import ATOMS
from oklnumba.learners.base.learner import Learner

AT_ONCE = 16_384  # most rows reserved ahead: 2 GiB, of addresses until they are written


class GrowingFactor(Learner[StateT, WorkT]):
    """A learner with a Cholesky factor ``L``, (cap, cap), in its state, that gains rows."""

    _FACTORED = ATOMS  # the count of these rows
    _INSTEAD = ""  # the message where memory is too small: what to use

    def _choose_room(self, axis: int, least: int) -> int:
        if axis != self._FACTORED:
            return super()._choose_room(axis, least)
        # Later steps are smaller, because the old and the new factor exist at the same time. One
        # more row than _reserve_ahead asks for: KernelAWV's forecasts write behind those in use.
        old = self._rooms[axis]
        return pad_row_length(max(least + 1, 64, 2 * old if old < 8192 else old + old // 4))

    def _grow_array(self, name: str, old: np.ndarray, shape: list[int]) -> np.ndarray:
        if name != "L" or shape[0] <= len(old):
            return super()._grow_array(name, old, shape)
        try:
            larger = np.empty(shape)
        except MemoryError:
            fault = f"a factor of {shape[0]} x {shape[0]} numbers does not fit in memory"
            raise MemoryError(f"{fault}; {self._INSTEAD}") from None
        used = min(int(self._counts[self._FACTORED]), len(old))
        for start in range(0, used, BLOCK):  # pages that no row reaches take no memory
            stop = min(start + BLOCK, used)
            larger[start:stop, :stop] = old[start:stop, :stop]
        return larger

    def _exchange(self, state: StateT, rooms: dict[int, int]) -> None:
        super()._exchange(state, rooms)
        self._forget_forecast()  # KernelAWV's row of L, behind those in use, is not copied

    def _reserve_ahead(self) -> None:
        """Reserve rows for the rounds to come if there is memory, so that none is copied later."""
        rows = int(self._counts[self._FACTORED]) + self._expected_rounds - self._played
        if rows <= AT_ONCE:
            try:
                self._reserve({self._FACTORED: rows})
            except MemoryError:  # the rounds will ask for less
                pass
