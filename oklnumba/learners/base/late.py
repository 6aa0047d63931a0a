"""Rows whose labels come late: what a learner keeps of their forecasts until it learns them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from oklnumba.core.checks import require


@dataclass(frozen=True)
class Asked:
    """Forecasts of n rows whose labels come late, as ``ask`` returns.

    ``asked[rows]`` are those of some rows: a slice, a list of numbers, or one number.

    Attributes
    ----------
    forecasts : (n,) or (n, K) array
        The scores of ``OneVsRest``.
    known : (n,) integer array
        Rounds learned by then.
    notes : (n, any number) array
        What the learner needs of them when it learns the rows.
    """

    forecasts: np.ndarray
    known: np.ndarray
    notes: np.ndarray

    @classmethod
    def read(cls, known: Any, refuses: str | None, issuer: str | None) -> "Asked":
        """Return what ``known`` of ``partial_fit`` is, if this learner, by its traits, takes it."""
        require(not refuses, "known", known, f"None: {refuses} needs each label at once")
        if isinstance(known, Asked):
            return known
        require(not issuer, "known", known, f"what ask returned: {issuer} keeps what it issued")
        return Asked(NO_NOTES, known, NO_NOTES)

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, rows: Any) -> "Asked":
        rows = [rows] if isinstance(rows, int | np.integer) else rows
        return Asked(self.forecasts[rows], self.known[rows], self.notes[rows])


NO_NOTES = np.empty((0, 0))


def fit_notes(notes: np.ndarray, n: int, width: int) -> np.ndarray:
    """Return notes, (n, width), NaN if there are none; refuse those of another learner."""
    if notes.shape == (n, width):
        return notes
    if notes.shape[1]:
        raise ValueError("known is of another learner: its rows must have been asked of this one")
    return np.full((n, width), np.nan)
