"""Streams for kernel expansions that learn by gradients, from labels and from adversaries."""

import math

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import losses
from tests.checks import COMPILED, play_adversary
from tests.reference import naive

N = 300 if COMPILED else 80
ROUNDS = 300 if COMPILED else 100
long_run = pytest.mark.skipif(not COMPILED, reason="far too long without the JIT")
KERNEL = okl.Gaussian(0.8)
LOSSES = [
    "hinge",
    "squared_hinge",
    "logistic",
    "squared",
    "epsilon_insensitive",
    "huber",
    "quantile(0.9)",
]


def stream(n=N, classes=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, np.sign(y) if classes else y


def data(loss="hinge"):
    """Return inputs, labels that suit a loss, their Gram matrix, and the loss's derivative."""
    X, y = stream(classes=losses.get(loss).classes)
    return X, y, naive.gaussian(X, X, 0.8), losses.get(loss).derivative


def assert_supports(run, learner, X, supports):
    """Sizes at every round, and the points themselves in the end, in any order."""
    np.testing.assert_array_equal(run.sizes, [len(S) for S in supports])
    found, expected = sorted(map(tuple, learner.atoms)), sorted(map(tuple, X[supports[-1]]))
    assert found == expected


# ---- streams on which bounds are tested ----


def best_in_ball(K, y, radius, steps=3000):
    """Return the hinge loss of a good function with |f| <= radius: averaged subgradient steps."""
    c, mean = np.zeros(len(y)), np.zeros(len(y))
    values, best = np.zeros(len(y)), float(len(y))  # K c, and the loss of f = 0
    for step in range(1, steps + 1):
        g = np.where(y * values < 1, -y, 0.0)
        Kg = K @ g
        length = radius / math.sqrt(step * max(g @ Kg, 1e-300))
        c, values = c - length * g, values - length * Kg
        shrink = min(1.0, radius / max(math.sqrt(max(c @ values, 0.0)), 1e-300))
        c, values = c * shrink, values * shrink
        mean += (c - mean) / step
        if step % 50 == 0:
            best = min(best, *(np.maximum(1 - y * (K @ f), 0).sum() for f in (c, mean)))
    return best


STREAMS = ["random", "noise", "adversary", "adversary on few points", "alternating", "sorted"]


def play(name, learner, n):
    """Return inputs, labels and hinge losses of a learner on a stream."""
    X, y = stream(n, seed=4)
    if name == "noise":
        y = np.random.default_rng(5).choice([-1.0, 1.0], n)
    if name == "adversary on few points":
        X = X[np.arange(n) % 3]
    if name == "alternating":
        X, y = np.repeat(X[:1], n, axis=0), np.where(np.arange(n) % 2, 1.0, -1.0)
    if name == "sorted":
        X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    if "adversary" in name:
        forecasts, y = play_adversary(learner, X)
        return X, y, np.maximum(1 - y * forecasts, 0.0)
    return X, y, okl.run(learner, X, y).losses
