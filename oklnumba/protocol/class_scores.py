"""Probabilities of classes, and how forecasts stand beside rules that need no learner."""

from typing import NamedTuple

import numpy as np

CLIPPED = "squared", "squared_hinge"  # losses whose best forecast is 2 P(+1) - 1
LOSSES = (*CLIPPED, "logistic")  # losses whose forecasts of two classes give probabilities


@np.errstate(under="ignore")
def compute_probabilities(loss: str, scores: np.ndarray, rounds: int | np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes, (n, K).

    scores : (n, K), those of a ``OneVsRest``; or (n,), forecasts under ``loss``, one of LOSSES, of
    +1 against -1. Then no probability is less than 1 / (rounds + 2), which Laplace's rule gives a
    class that never came; rounds : a number or (n,).
    """
    if scores.ndim == 2:
        P = np.exp(scores - scores.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)
    if loss not in LOSSES:
        cure = f"use the {' or '.join(LOSSES)} loss, or a metric of labels"
        raise NotImplementedError(f"forecasts under the {loss} loss are not probabilities; {cure}")
    p = 0.5 + 0.5 * scores
    if loss not in CLIPPED:
        p = np.exp(-np.logaddexp(0.0, -scores))  # 1 / (1 + exp(-f))
    least = 1.0 / (np.maximum(rounds, 1) + 2.0)
    p = np.clip(p, least, 1.0 - least)
    return np.stack([1.0 - p, p], axis=1)


class ClassScores(NamedTuple):
    """Forecasts of classes, and what two rules of thumb would have made of the same rounds.

    Attributes
    ----------
    mistake_rate : float
    commonest : float
        Share of mistakes of "always the commonest class", which only hindsight can name.
    last_label : float
        Share of mistakes of "the label of the round before"; the first round counts as one.
    balanced_accuracy : float
        The mean, over the classes that came, of the share of their rounds forecast right: 1 / K for
        a constant forecast however rare a class is.
    log_loss : float or None
        Mean of -log of the probability of the class that came; None where forecasts of two classes
        give no probabilities (losses such as the hinge).
    auc : float or None
        Area under the ROC curve of two classes; None for more, or where only one came.
    """

    mistake_rate: float
    commonest: float
    last_label: float
    balanced_accuracy: float
    log_loss: float | None
    auc: float | None

    def __str__(self) -> str:
        words = f"balanced accuracy {100 * self.balanced_accuracy:.4g} %"
        words += "" if self.log_loss is None else f", log loss {self.log_loss:.4g}"
        return words if self.auc is None else f"{words}, AUC {self.auc:.4g}"

    @property
    def rules(self) -> str:
        """What the two rules of thumb would have made, in words."""
        commonest, last_label = f"{100 * self.commonest:.4g} %", f"{100 * self.last_label:.4g} %"
        return f"always the commonest class: {commonest}, the last label: {last_label}"


def score_classes(
    labels: np.ndarray, scores: np.ndarray, mistakes: np.ndarray, loss: str
) -> ClassScores:
    """Return the scores of rounds from the first of a run on.

    labels : (n,), the place of each class, of two classes 0 for -1 and 1 for +1; scores : (n, K),
    or (n,) of two classes; mistakes : (n,); loss : that of the learner.
    """
    rounds = np.bincount(labels)
    right = np.bincount(labels, ~mistakes)
    came = rounds > 0
    log_loss = None
    if scores.ndim > 1 or loss in LOSSES:
        P = compute_probabilities(loss, scores, np.arange(len(labels)))
        log_loss = float(-np.log(P[np.arange(len(labels)), labels]).mean())
    return ClassScores(
        float(mistakes.mean()),
        1.0 - float(rounds.max()) / len(labels),
        (1.0 + np.count_nonzero(labels[1:] != labels[:-1])) / len(labels),
        float((right[came] / rounds[came]).mean()),
        log_loss,
        compute_auc(labels, scores) if scores.ndim == 1 and came.sum() == 2 else None,
    )


def compute_auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the share of pairs of a 1 and a 0 in which the 1 has the larger score; ties half."""
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # ties share their mean rank
    ones = labels == 1
    positive, negative = np.count_nonzero(ones), np.count_nonzero(~ones)
    return float((ranks[ones].sum() - positive * (positive + 1) / 2) / (positive * negative))
