"""Features of blocks of inputs, in a buffer that learners on features keep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oklnumba.core.state import aligned_zeros
from oklnumba.learners.base.single import SingleRound

BLOCK_ROWS = 504  # rounds whose features are kept at a time: whole sweeps of udu.py


class FeatureRows:
    """Room for the features of a block of inputs.

    Parameters
    ----------
    write : callable
        ``write(X, Z)`` writes the features of the rows of X into those of Z.
    width : int
        Columns of Z; those beyond the features stay zero.
    rows : int
        Most inputs of a block.
    """

    def __init__(
        self, write: Callable[[np.ndarray, np.ndarray], None], width: int, rows: int = BLOCK_ROWS
    ):
        self.write, self.width = write, width
        self.rows = aligned_zeros(rows, width)
        self.written: int | None = None  # the input of single rounds whose features are there

    def of(self, X: np.ndarray, single: SingleRound | None) -> np.ndarray:
        """Return the features of a block of inputs (a view of the buffer)."""
        Z = self.rows[: len(X)]
        current = single.inputs if single is not None and X is single.X else None
        if current is None or current != self.written:  # learn_one mostly follows predict_one
            self.write(X, Z)
            self.written = current
        return Z
