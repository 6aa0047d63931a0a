"""Room for the features of a block of inputs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class FeatureRows(NamedTuple):
    """The features of the last block of inputs."""

    write: Callable[[np.ndarray, np.ndarray], None]  # write(X, Z) writes the features of X into Z
    rows: np.ndarray  # (most rows of a block, r), zero beyond the features

    def of(self, X: np.ndarray, written: bool = False) -> np.ndarray:
        """Return the features of a block, a view; ``written``: the last call was with this X."""
        if len(X) > len(self.rows):  # loops do not look
            raise IndexError(f"a block of {len(X)} rows; there is room for {len(self.rows)}")
        Z = self.rows[: len(X)]
        if not written:
            self.write(X, Z)
        return Z
