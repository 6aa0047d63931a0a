"""What is kept of the rounds of a run, in little memory.

Arrays are made once at full length where the number of rounds is known. Sizes are kept where they
change. Losses of labels -1 and +1 are not kept: forecast and mistake tell the label, or, for a
forecast of 0, that both labels have one loss. Nor are those of real labels that the run has in one
array. That leaves nine bytes a round, or eight, where there is no certificate; 16 for real labels
that came in chunks.
"""

from __future__ import annotations

import numpy as np

from oklnumba.components import losses

Rows = dict[str, np.ndarray]  # what is kept of some rounds, by the names of ``Run``

MISTAKES = ("mistakes", "mistake_sums")
STEPS = ("size_starts", "size_values")  # rounds, from 0, from which on a size is another


def losses_of(loss: losses.Loss, predictions: np.ndarray, mistakes: np.ndarray) -> np.ndarray:
    """Return the losses of forecasts whose labels are -1 and +1, which the mistakes tell."""
    return loss.value(predictions, np.where((predictions > 0.0) != mistakes, 1.0, -1.0))


def sizes_of(starts: np.ndarray, values: np.ndarray, first: int, stop: int) -> np.ndarray:
    """Return the sizes after the rounds ``first`` to ``stop``; of one size a view of one number."""
    i = int(np.searchsorted(starts, first, side="right")) - 1
    j = int(np.searchsorted(starts, stop))
    if j - i == 1:
        return np.broadcast_to(values[i], stop - first)
    lengths = np.diff(np.maximum(starts[i:j], first), append=stop)
    return np.repeat(values[i:j], lengths)


class Growing:
    """An array that rows are added to, twice as long wherever its room is full."""

    def __init__(self, like: np.ndarray, room: int = 0):
        self.count = 0
        self.array = np.empty((room, *like.shape[1:]), like.dtype)

    def add(self, values: np.ndarray) -> None:
        """Add rows; text that is longer is taken in."""
        before, self.count = self.count, self.count + len(values)
        dtype = np.promote_types(self.array.dtype, values.dtype)
        if self.count > len(self.array) or dtype != self.array.dtype:
            larger = np.empty((max(self.count, 2 * before), *values.shape[1:]), dtype)
            larger[:before] = self.array[:before]
            self.array = larger
        self.array[before : self.count] = values

    @property
    def rows(self) -> np.ndarray:
        """The rows so far, a view."""
        return self.array[: self.count]


class Rounds:
    """What is kept of rounds: blocks of them are added, and any stretch is read again."""

    def __init__(self, loss: losses.Loss):
        self.loss = loss
        self.count = 0
        self.expected = 0  # rounds in all, where that is known
        self.labels: np.ndarray | None = None  # of all rounds, where they are at hand
        self.told = isinstance(loss, losses.Loss)  # losses, by forecasts and mistakes or labels
        self.arrays: dict[str, Growing] = {}

    def add(self, part: Rows) -> None:
        """Add a block; where it has no mistakes, those of all rounds before are dropped."""
        part = part.copy()
        self._add_sizes(part.pop("sizes"))
        if self.told and not self._is_told(part):
            if self.count:
                self._add("losses", self._losses(0))
            self.told = False
        for name in MISTAKES:
            if name not in part:
                self.arrays.pop(name, None)
        if self.told:
            del part["losses"]
        for name, values in part.items():
            self._add(name, values)
        self.count += len(part["predictions"])

    def short(self) -> Rows:
        """Return all that is kept, as it is kept."""
        return {name: array.rows for name, array in self.arrays.items()}

    def full(self, first: int = 0) -> Rows:
        """Return all there is of the rounds from ``first`` on, counted from 0."""
        found = {name: rows[first:] for name, rows in self.short().items() if name not in STEPS}
        if self.told:
            found["losses"] = self._losses(first)
        starts, values = (self.arrays[name].rows for name in STEPS)
        return found | {"sizes": sizes_of(starts, values, first, self.count)}

    def _add(self, name: str, values: np.ndarray) -> None:
        if name not in self.arrays:
            self.arrays[name] = Growing(values, 0 if name in STEPS else self.expected)
        self.arrays[name].add(values)

    def _add_sizes(self, sizes: np.ndarray) -> None:
        last = self.arrays[STEPS[1]].rows[-1:] if self.count else sizes[:1] - 1
        at = np.flatnonzero(np.diff(sizes, prepend=last))
        self._add(STEPS[0], self.count + at)
        self._add(STEPS[1], sizes[at])

    def _is_told(self, part: Rows) -> bool:
        """Say whether the losses of a block follow from what else is kept, to the bit."""
        told = self._told(part["predictions"], part.get("mistakes"), self.count)
        return told is not None and np.array_equal(told, part["losses"])

    def _losses(self, first: int) -> np.ndarray:
        rows = {name: array.rows[first:] for name, array in self.arrays.items()}
        return self._told(rows["predictions"], rows.get("mistakes"), first)

    def _told(
        self, predictions: np.ndarray, mistakes: np.ndarray | None, first: int
    ) -> np.ndarray | None:
        """Return the losses of rounds from ``first`` on; None where nothing tells them."""
        if mistakes is not None:
            return losses_of(self.loss, predictions, mistakes)
        if self.labels is None:
            return None
        return self.loss.value(predictions, self.labels[first : first + len(predictions)])
