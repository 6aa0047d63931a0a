"""Probabilities of classes, from the forecasts of learners."""

import numpy as np

CLIPPED = "squared", "squared_hinge"  # losses whose best forecast is 2 P(+1) - 1
LOSSES = (*CLIPPED, "logistic")  # losses whose forecasts give probabilities


def compute_probabilities(loss: str, scores: np.ndarray, rounds: int | np.ndarray) -> np.ndarray:
    """Return the probabilities of K classes, (n, K), from the score of each class, (n, K).

    The scores of two classes that share a learner are -f and f. ``loss`` is one of LOSSES. After so
    many ``rounds``, a number or (n, 1), no probability is less than 1 / (rounds + K), which
    Laplace's rule gives a class that never came.
    """
    P = 0.5 + 0.5 * scores
    if loss not in CLIPPED:
        P = np.exp(-np.logaddexp(0.0, -scores))  # 1 / (1 + exp(-f))
        # At least tiny, because scores far below 0 would give 0 / 0.
        P = np.maximum(P, np.finfo(float).tiny)
        P /= P.sum(axis=1, keepdims=True)
    count, rounds = P.shape[1], np.maximum(rounds, 1)
    least, rest = 1.0 / (rounds + count), rounds / (rounds + count)
    return least + rest * project_on_simplex((P - least) / rest)


def project_on_simplex(P: np.ndarray) -> np.ndarray:
    """Return the nearest probabilities to each row of P, (n, K), in Euclidean distance."""
    # A constant added to a row changes nothing, but a large one costs digits.
    P = P - P.max(axis=1, keepdims=True)
    falling = -np.sort(-P, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, P.shape[1] + 1)
    last = np.count_nonzero(falling > excess, axis=1) - 1  # the last positive probability
    return np.maximum(P - np.take_along_axis(excess, last[:, None], axis=1), 0.0)
