"""Advice about the first labels, which may be classes where a loss takes numbers."""

from typing import NamedTuple

import numpy as np

from oklnumba.core.checks import warn
from oklnumba.learners.base.traits import PLAY_ROWS

FEWEST_LABELS = 8  # fewer may be 0 and 1 by chance
FIRST_ROWS = 64  # rounds of a run's first block; each later block is as long as all before it


class FirstLabels(NamedTuple):
    """The labels so far, as long as they may be two whole numbers that are meant as classes."""

    seen: int
    values: frozenset[float]

    def look_at(self, y: np.ndarray) -> "FirstLabels | None":
        """Return the labels with those of y; None if they are numbers, or after a warning."""
        values = self.values
        for part in (y[:FIRST_ROWS], y[FIRST_ROWS:PLAY_ROWS]):  # the first mostly tells
            values = values | {one for one in set(part.tolist()) if one == one}  # some are missing
            two = len(values) == 2 and all(one.is_integer() for one in values)
            if not (len(values) < 2 or two and values != {-1.0, 1.0}):
                return None
        seen = self.seen + len(y)
        if not two or seen < FEWEST_LABELS:
            return FirstLabels(seen, values)
        low, high = sorted(values)
        warn(
            f"the labels are {low:g} and {high:g}, which this loss takes for numbers, a "
            "regression, so Run.mistake_rate is None: for two classes make them -1 and +1, "
            f"y = np.where(y == {high:g}, 1, -1), or take okl.interop.OnlineClassifier, which "
            "takes any classes"
        )
        return None


NO_LABELS_YET: FirstLabels | None = FirstLabels(0, frozenset())
