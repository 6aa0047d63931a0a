"""Labels that are far from all others: the median of the last ones is learned in their place."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from oklnumba.components.scaling import measure_range
from oklnumba.core.state import State
from oklnumba.learners.self_tuning import settings


class Outliers(State):
    """The range of usual labels, measured every few rounds.

    Outliers are far from the last LONG_WINDOW labels and from the last SHORT_WINDOW ones. So labels
    that move elsewhere, or to another scale, are outliers for at most SHORT_WINDOW rounds.

    recent : the last labels, NaN before there were any; range : low, median and high; price : what
    outliers cost so far.
    """

    _STATE = {
        "recent": ("window", "outputs"), "range": ("range", "outputs"), "price": ("outputs",)
    }  # fmt: skip
    _UNBOUNDED = frozenset({"recent", "price"})

    def __init__(self, outputs: int):
        self._make_state(outputs=outputs, window=settings.LONG_WINDOW, range=3)
        self._recent[:] = np.nan
        self._range[:] = [[-settings.MAX_LABEL], [0.0], [settings.MAX_LABEL]]

    def replace(self, Y: np.ndarray, played: int) -> np.ndarray:
        """Return the labels to learn from, of the rounds after so many that were played."""
        n = len(Y)
        labels = np.concatenate([self._recent, Y])
        first = max(settings.SHORT_WINDOW - played, -played % settings.MEASURE_LABELS_EVERY)
        starts = np.arange(first, n, settings.MEASURE_LABELS_EVERY)
        self._recent[:] = labels[n:]
        if not len(starts):
            return self.replace_now(Y)
        windows = sliding_window_view(labels, settings.LONG_WINDOW, axis=0)[starts]
        middle, reach = measure_range(windows, settings.LABEL_OUTLIER)
        last_middle, last_reach = measure_range(
            windows[..., -settings.SHORT_WINDOW :], settings.LABEL_OUTLIER
        )
        low = np.minimum(middle - reach, last_middle - last_reach).clip(min=-settings.MAX_LABEL)
        high = np.maximum(middle + reach, last_middle + last_reach).clip(max=settings.MAX_LABEL)
        ranges = np.concatenate([self._range[None], np.stack([low, last_middle, high], axis=1)])
        self._range[:] = ranges[-1]
        which = np.searchsorted(starts, np.arange(n), side="right")
        return keep_within(Y, *ranges[which].swapaxes(0, 1))

    def replace_now(self, Y: np.ndarray) -> np.ndarray:
        """Return labels with those replaced that are outliers by the present range."""
        return keep_within(Y, *self._range)

    def add_price(self, Y: np.ndarray, learned: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
        """Return what outliers cost so far, (n, K): losses less those of the labels learned."""
        with np.errstate(over="ignore"):  # squares of labels beyond 1e154
            more = (Y - forecasts) ** 2 - (learned - forecasts) ** 2
        more[0] += self._price
        prices = np.add.accumulate(more)
        self._price[:] = prices[-1]
        return prices

    @property
    def recent(self) -> np.ndarray:
        """The last labels, NaN before there were any, (LONG_WINDOW, K)."""
        return self._recent

    @property
    def price(self) -> np.ndarray:
        """What outliers cost so far, (K,)."""
        return self._price.copy()


def keep_within(Y: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the labels, the middle in place of those that are not between low and high."""
    return np.where((Y < low) | (Y > high), middle, Y)
