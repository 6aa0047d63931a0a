"""Rounds one at a time: from labels, and against an adversary."""

import numpy as np


def one_by_one(learner, X, y):
    """Return the forecasts of predict_one, each before learn_one has the label."""
    forecasts = []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
    return np.array(forecasts)


def play_adversary(learner, X, size=1.0):
    """Play labels that contradict each forecast; return the forecasts and them."""
    forecasts, y = np.empty(len(X)), np.empty(len(X))
    for t, x in enumerate(X):
        forecasts[t] = learner.predict_one(x)
        y[t] = -size if forecasts[t] > 0.0 else size
        learner.learn_one(x, y[t])
    return forecasts, y
