"""Normal scores: each input by its rank in the past, which skewed columns and heavy tails need."""

from __future__ import annotations

from math import erfc, sqrt

import numpy as np

from oklnumba.core.steps import Steps
from oklnumba.hot.self_tuning import write_scores

SCORES = np.linspace(-3.0, 3.0, 33)  # of the quantiles that are measured
NUMBERS = 2**15  # that are sorted in a step
SHARES = [0.5 * erfc(-score / sqrt(2.0)) for score in SCORES]  # of a normal variable below them


def measure_scores(Z: np.ndarray) -> Steps[tuple[np.ndarray, np.ndarray]]:
    """Return knots and the scores there, each (d, 33), for ``find_scores``.

    The knots of a column are those quantiles that a normal variable has at SCORES. Equal ones count
    once, with the mean of their scores, and infinite knots fill the rows. Scores are scaled so that
    the column's deviation stays what it was.
    """
    knots = np.empty((Z.shape[1], len(SCORES)))
    scores = np.empty_like(knots)
    some = NUMBERS // len(Z) + 1  # columns in a step
    for first in range(0, len(knots), some):
        part = Z[:, first : first + some]
        knots[first : first + some] = np.quantile(part, SHARES, axis=0, method="inverted_cdf").T
        yield
    for row, found in zip(knots, scores, strict=True):
        distinct, which = np.unique(row, return_inverse=True)
        row[:], k = np.inf, len(distinct)
        row[:k], found[k:] = distinct, 0.0
        found[:k] = np.bincount(which, SCORES) / np.bincount(which)
    before, after = Z.std(axis=0), find_scores(Z, knots, scores).std(axis=0)
    scores *= np.divide(before, after, out=np.ones_like(after), where=after > 0.0)[:, None]
    return knots, scores


def find_scores(Z: np.ndarray, knots: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the normal scores of Z, linear between knots, of slope 1 beyond."""
    out = np.empty_like(Z)
    write_scores(Z, knots, scores, out)
    return out
