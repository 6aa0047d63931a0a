"""Rows whose labels come late: what a learner keeps of their forecasts until it learns them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from oklnumba.core.checks import refuse, require
from oklnumba.learners.base.traits import Refusal


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
    def read(cls, known: Any, refuses: Refusal | None, issuer: Refusal | None) -> "Asked":
        """Return ``known`` in this form.

        refuses : who takes none; issuer : who takes only what it returned.
        """
        if refuses:
            refuse("known", known, f"None: {refuses.name} needs each label at once")
        if isinstance(known, Asked):
            return known
        if issuer:
            refuse("known", known, f"what ask returned: {issuer.name} keeps what it issued")
        return Asked(NO_NOTES, known, NO_NOTES)

    def count_missed(self, rounds: int, n: int) -> np.ndarray:
        """Return how many of the rounds before its own each of the next n rows did not know."""
        known = np.asarray(self.known)
        valid = known.dtype.kind in "iu" and known.shape in ((), (n,))
        what = f"the rounds learned when the rows were forecast, 0 to {rounds}, one number or (n,)"
        require(valid and ((0 <= known) & (known <= rounds)).all(), "known", self.known, what)
        return rounds + np.arange(n) - known

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, rows: Any) -> "Asked":
        rows = [rows] if isinstance(rows, int | np.integer) else rows
        # Copies: views would keep all of these in memory while a few wait.
        return Asked(*(a[rows].copy() for a in (self.forecasts, self.known, self.notes)))


NO_NOTES = np.empty((0, 0))
NO_COUNTS = np.empty(0, dtype=np.int64)


class LateRows(NamedTuple):
    """The late rows that come next, each to forecast, whose notes are written, or to learn."""

    notes: np.ndarray = NO_NOTES  # (any number, _note_width), of all these rows
    rows: np.ndarray = NO_COUNTS  # (n,), which of them each is
    missed: np.ndarray = NO_COUNTS  # (n,), earlier labels that its forecast did not know

    def cut(self, start: int, stop: int | None = None) -> "LateRows":
        """Return rows start to stop."""
        return self._replace(rows=self.rows[start:stop], missed=self.missed[start:stop])


def fit_notes(notes: np.ndarray, n: int, width: int) -> np.ndarray:
    """Return notes, (n, width), NaN if there are none; refuse those of another learner."""
    if notes.shape == (n, width):
        return notes
    if notes.shape[1]:
        raise ValueError("known is of another learner: its rows must have been asked of this one")
    return np.full((n, width), np.nan)
