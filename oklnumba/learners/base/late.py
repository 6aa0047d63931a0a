"""Rows whose labels come late: what a learner keeps of their forecasts until it learns them."""

from typing import NamedTuple

import numpy as np


class Asked(NamedTuple):
    """Forecasts of n rows whose labels come late."""

    forecasts: np.ndarray  # (n,), or (n, K); the scores of OneVsRest
    known: np.ndarray  # (n,): rounds learned by then
    notes: np.ndarray  # (n, any number): what the learner needs of them when it learns the rows


NO_NOTES = np.empty((0, 0))


def fit_notes(notes: np.ndarray, n: int, width: int) -> np.ndarray:
    """Return notes, (n, width); NaN in place of those that are of another shape."""
    return notes if notes.shape == (n, width) else np.full((n, width), np.nan)
