"""The results of rounds, as a learner plays them."""

from typing import NamedTuple

import numpy as np


def empty_per_round(n: int, outputs: int) -> np.ndarray:
    """Return room for one number per round, (n,), or per round and output, (n, K)."""
    return np.empty(n) if outputs == 1 else np.empty((n, outputs))


class Trace(NamedTuple):
    """The results of n rounds; (n, K) where shapes say (n,), for K > 1 labels per round."""

    predictions: np.ndarray  # (n,)
    sizes: np.ndarray  # (n,) for any K
    loss: np.ndarray | None = None  # (n,), of learners with a certificate, as the next two
    comparator: np.ndarray | None = None
    bound: np.ndarray | None = None
    guaranteed: np.ndarray | None = None  # (n,), least comparator + bound of certified members
    intervals: np.ndarray | None = None  # (n, 2), of ``Intervals``

    def rows(self, start: int, stop: int) -> "Trace":
        """Return the results of rounds start to stop (views)."""
        if stop - start == len(self.sizes):
            return self
        return Trace._make([None if a is None else a[start:stop] for a in self])
