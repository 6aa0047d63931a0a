"""What is kept of the rounds of a run, in little memory.

Arrays are made once at full length where the number of rounds is known. Sizes are kept where they
change. Losses of labels -1 and +1 are not kept: forecast and mistake tell the label, or, for a
forecast of 0, that both labels have one loss. That leaves nine bytes a round where there is no
certificate, and 16 for real labels.
"""

from __future__ import annotations

import numpy as np

from oklnumba import losses

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
        self.told = isinstance(loss, losses.Loss)  # losses, by forecasts and mistakes
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
        """Say whether the losses of a block follow from the rest of it, to the bit."""
        if "mistakes" not in part:
            return False
        of_rest = losses_of(self.loss, part["predictions"], part["mistakes"])
        return np.array_equal(of_rest, part["losses"])

    def _losses(self, first: int) -> np.ndarray:
        kept = (self.arrays[name].rows[first:] for name in ("predictions", "mistakes"))
        return losses_of(self.loss, *kept)
