"""Probabilities of classes, from the forecasts of learners."""

import numpy as np

CLIPPED = "squared", "squared_hinge"  # losses whose best forecast is 2 P(+1) - 1
LOSSES = (*CLIPPED, "logistic")  # losses whose forecasts of two classes give probabilities


def compute_probabilities(loss: str, scores: np.ndarray, rounds: int | np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, (n, K).

    scores : (n, K), those of a ``OneVsRest``; or (n,), forecasts under ``loss``, one of LOSSES, of
    +1 against -1. Then no probability is less than 1 / (rounds + 2), which Laplace's rule gives a
    class that never came; rounds : a number or (n,).
    """
    if scores.ndim == 2:
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)
    p = 0.5 + 0.5 * scores
    if loss not in CLIPPED:
        p = np.exp(-np.logaddexp(0.0, -scores))  # 1 / (1 + exp(-f))
    least = 1.0 / (np.maximum(rounds, 1) + 2.0)
    p = np.clip(p, least, 1.0 - least)
    return np.stack([1.0 - p, p], axis=1)
