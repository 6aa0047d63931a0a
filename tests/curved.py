"""Spaces, losses and streams for KONS and its kin, and the explicit Newton step on them."""

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import losses
from tests.reference import naive

SPACES = {
    "linear": (okl.Linear(), lambda X: X),
    "polynomial": (
        okl.Polynomial(3, scale=0.5, coef0=1.0),
        lambda X: naive.polynomial_features(X, 3, 0.5, 1.0),
    ),
}
# Loss, C, eta and what must happen on the stream below: (projections, zero gradients, both at once)
SETTINGS = [
    ("squared", 1.0, None, (True, True, True)),
    ("squared", 0.3, 1.0, (True, True, True)),
    ("logistic", 0.5, None, (True, False, False)),
    ("logistic", 2.0, 2.0, (True, False, False)),
    ("squared_hinge", 0.5, None, (True, False, False)),
    ("squared_hinge", 1.3, 0.5, (True, True, True)),
]
# The same with eta_t = eta / sqrt(t), which takes losses without curvature too. None has its kink
# at C: after a projection there, rounding would choose the gradient of a repeated point.
SEQUENCES = [
    ("hinge", 0.5, None, (True, False, False)),
    ("hinge", 1.3, 0.5, (True, True, True)),
    ("absolute", 0.7, None, (True, False, False)),
    ("epsilon_insensitive", 1.0, 2.0, (True, True, True)),
    ("squared", 1.0, 4.0, (True, True, True)),
    ("logistic", 2.0, None, (True, False, False)),
]
NAMES = "loss", "C", "eta", "must_happen"
every_space = pytest.mark.parametrize("space", SPACES)
every_setting = pytest.mark.parametrize(NAMES, SETTINGS)
SCHEDULED = [("constant", *setting) for setting in SETTINGS]
SCHEDULED += [("sqrt", *setting) for setting in SEQUENCES]


def sequence(loss, C, eta, n):
    """Return eta_t = eta / sqrt(t), or 1 / (L C sqrt(t)) of Theorem 1."""
    first = 1 / (losses.get(loss).lipschitz(C) * C) if eta is None else eta
    return first / np.sqrt(np.arange(1, n + 1))


def step(loss, C, eta):
    return losses.get(loss).curvature(C) if eta is None else eta


def stream(loss="squared", C=1.0, n=300, d=2, seed=0):
    """Noisy classes, labels -C and C for the squared loss; with a point 0 and repeated points."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[n // 15] = 0.0
    X[n // 5 : n // 5 + 10] = X[3]
    y = np.where(np.sin(3 * X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y * C if loss == "squared" else y


def explicit(features, X, y, loss, C, alpha, eta, **more):
    """The explicit online Newton step in extended precision; eta: None, or one for all or each."""
    F = features(X.astype(np.longdouble))
    derivative = naive.LOSS_DERIVATIVES[loss]
    return naive.newton_steps(F, y, derivative, C, alpha, step(loss, C, eta), **more)


def assert_happened(steps, must_happen):
    projected, zero = steps.projected, steps.slopes == 0
    found = (projected.sum() > 2, zero.sum() > 2, (projected & zero).sum() > 2)
    assert found == must_happen


def draws(seed, n):
    return np.random.default_rng(seed).random(n)
