"""Probabilities of classes, from the forecasts of learners."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

CLIPPED = "squared", "squared_hinge"  # losses whose best forecast is 2 P(+1) - 1
LOSSES = (*CLIPPED, "logistic")  # those whose forecasts are probabilities


def probabilities(loss: str, scores: np.ndarray) -> np.ndarray:
    """Return the probabilities of classes, (n, K), from the forecast of a scorer for each.

    Two classes have one learner, of forecast f, and the scores -f and f.

    Parameters
    ----------
    loss : one of LOSSES
    scores : ndarray of shape (n, K)
    """
    if loss in CLIPPED:
        return to_simplex(0.5 + 0.5 * scores)
    # Not 0 / 0 where all scores are far below 0.
    P = np.maximum(expit(scores), np.finfo(float).tiny)
    return P / P.sum(axis=1, keepdims=True)


def to_simplex(P: np.ndarray) -> np.ndarray:
    """Return the nearest probabilities to each row of P, (n, K), in Euclidean distance."""
    # What is added to a whole row does not matter, but takes digits where it is large.
    P = P - P.max(axis=1, keepdims=True)
    falling = -np.sort(-P, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, P.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1) - 1  # of the positive ones
    return np.maximum(P - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
