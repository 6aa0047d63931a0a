"""Normal scores: each input by its rank in the past, which skewed columns and heavy tails need."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from oklnumba.core.steps import Steps
from oklnumba.hot.self_tuning import write_scores

SCORES = np.linspace(-3.0, 3.0, 33)  # of the quantiles that are measured
NUMBERS, PARTS = 2**14, 8  # least numbers that a step sorts, and about the most steps
SHARES = [0.5 * erfc(-score / sqrt(2.0)) for score in SCORES]  # of a normal variable below them


def cut_columns(Z: np.ndarray) -> list[slice]:
    """Return the columns of Z, as many at a time as a step sorts."""
    n, d = Z.shape
    some = max(NUMBERS // n + 1, d // PARTS)
    return [slice(first, first + some) for first in range(0, d, some)]


def measure_scores(Z: np.ndarray) -> Steps[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return knots and the scores there, each (d, 33), and what ``find_scores`` makes of Z.

    The knots of a column are those quantiles that a normal variable has at SCORES. Equal ones count
    once, with the mean of their scores, and infinite knots fill the rows. Scores are scaled so that
    the column's deviation stays what it was.
    """
    knots = np.full((Z.shape[1], len(SCORES)), np.inf)
    scores, out = np.zeros_like(knots), np.empty_like(Z)
    for some in cut_columns(Z):
        part = np.ascontiguousarray(Z[:, some])
        quantiles = np.quantile(part, SHARES, axis=0, method="inverted_cdf").T
        for row, found, values in zip(knots[some], scores[some], quantiles, strict=True):
            distinct, which = np.unique(values, return_inverse=True)
            row[: len(distinct)] = distinct
            found[: len(distinct)] = np.bincount(which, SCORES) / np.bincount(which)
        before, after = part.std(axis=0), find_scores(part, knots[some], scores[some]).std(axis=0)
        units = np.divide(before, after, out=np.ones_like(after), where=after > 0.0)
        scores[some] *= units[:, None]
        out[:, some] = find_scores(part, knots[some], scores[some])
        yield
    return knots, scores, out


def find_scores(Z: np.ndarray, knots: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the normal scores of Z, linear between knots, of slope 1 beyond."""
    out = np.empty_like(Z)
    write_scores(Z, knots, scores, out)
    return out
