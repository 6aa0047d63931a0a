"""Made-up streams, the hard ones first; games; and the settings that several files play on them."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import oklnumba as okl
from oklnumba import adversary, losses
from tests.checks import COMPILED, play_adversary
from tests.reference import naive

# ---- inputs and labels ----


def inputs(kind, n, d, rng):
    """Return inputs, in [-1, 1]^d up to "lagged"."""
    if kind == "clustered":
        centers = rng.uniform(-0.9, 0.9, (3, d))
        return np.clip(centers[rng.integers(3, size=n)] + rng.normal(0, 0.03, (n, d)), -1, 1)
    if kind == "repeated":
        return rng.uniform(-1, 1, (1 + n // 10, d))[rng.integers(1 + n // 10, size=n)]
    if kind == "one point":
        return np.full((n, d), 0.3)
    if kind == "lagged":
        walk = np.cumsum(rng.standard_normal(n + d - 1))
        return sliding_window_view(walk / np.abs(walk).max(), d).copy()
    X = rng.uniform(-1, 1, (n, d))
    if kind == "sorted":
        return X[np.argsort(X[:, 0])]
    if kind == "wild":
        X[::9] *= 30.0
    if kind == "far":
        X += 1e3
    if kind == "far apart":
        X += 100.0 * np.arange(n)[:, None]
    if kind == "in turn":  # thirteen points
        X = 10.0 * np.arange(n)[:, None] % 130.0 + np.zeros(d)
    if kind == "moving":
        X += np.linspace(0.0, 8.0, n)[:, None]
    return X


def labels(how, X, rng):
    """Return labels in [-1, 1]."""
    if how == "coins":
        return rng.choice([-1.0, 1.0], len(X))
    if how == "alternating":
        return adversary.alternating(len(X))[1]
    if how == "constant":
        return np.ones(len(X))
    phase = np.linspace(0.0, 6.0, len(X)) if how == "drifting" else 0.0
    y = np.clip(np.sin(3 * X[:, 0] + phase) + 0.2 * rng.standard_normal(len(X)), -1, 1)
    if how == "drifting":  # the function moves, and turns over half-way
        y[len(X) // 2 :] *= -1.0
    return y


HARD = "uniform", "sorted", "lagged", "clustered", "repeated", "wild", "one point"


def hard(kind, n=150, d=2, seed=5):
    """Return a stream; "lagged": the next number; "wild": some labels too; "one point": against."""
    rng = np.random.default_rng(seed)
    if kind == "lagged":
        X = inputs(kind, n + 1, d, rng)
        return X[:-1], X[1:, -1]
    X = inputs(kind, n, d, rng)
    y = labels("alternating" if kind == "one point" else "function", X, rng)
    if kind == "wild":
        y[::5] *= 1e3
    return X, y


every_hard_stream = pytest.mark.parametrize("kind", HARD)


def smooth(n=200, d=3, seed=0, noise=0.1):
    """Return an ordinary stream."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) * X[:, -1] + noise * rng.standard_normal(n)


KERNELS = [
    okl.Gaussian(0.7),
    okl.Laplacian(1.3),
    okl.Laplacian(1.3, norm=1),
    okl.Matern(0.5, sigma=0.9),
    okl.Matern(1.5, sigma=0.9),
    okl.Matern(2.5, sigma=1.7),
    okl.Polynomial(1, scale=0.5, coef0=0.0),
    okl.Polynomial(3, scale=0.5, coef0=0.7),
    okl.Linear(),
]
KERNEL = KERNELS[0]

# Sixty points, for dense linear algebra.
X, Y = smooth(60, d=2, seed=3)
K = naive.gaussian(X, X, 0.7)
SIGNS = np.where(Y > 0, 1.0, -1.0)


# ---- classes, for expansions that learn by gradients ----

N = 300 if COMPILED else 80
LOSSES = ["hinge", "squared_hinge", "logistic", "squared"]
LOSSES += ["epsilon_insensitive", "huber", "quantile(0.9)"]


def classes(n=N, seed=0):
    X, y = smooth(n, seed=seed, noise=0.3)
    return X, np.sign(y)


def data(loss="hinge"):
    """Return inputs, labels that suit a loss, their Gram matrix, and the loss's derivative."""
    X, y = classes() if losses.get(loss).classes else smooth(N, noise=0.3)
    return X, y, naive.gaussian(X, X, 0.7), losses.get(loss).derivative


AGAINST = ["random", "noise", "adversary", "adversary on few points", "alternating", "sorted"]


def play_against(name, learner, n):
    """Return inputs, labels and hinge losses of a learner on one of these streams."""
    X, y = classes(n, seed=4)
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


# ---- losses and spaces for the Newton step of KONS and its kin ----

SPACES = {
    "linear": (okl.Linear(), lambda X: X),
    "polynomial": (
        okl.Polynomial(3, scale=0.5, coef0=1.0),
        lambda X: naive.polynomial_features(X, 3, 0.5, 1.0),
    ),
}
# Loss, C, eta and what must happen on newton_stream: (projections, zero gradients, both at once)
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
SCHEDULED = [("constant", *setting) for setting in SETTINGS]
SCHEDULED += [("sqrt", *setting) for setting in SEQUENCES]


def newton_stream(loss="squared", C=1.0, n=300, d=2, seed=0):
    """Noisy classes, labels -C and C for the squared loss; with a point 0 and repeated points."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[n // 15] = 0.0
    X[n // 5 : n // 5 + 10] = X[3]
    y = np.where(np.sin(3 * X[:, 0]) + X[:, -1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y * C if loss == "squared" else y


def sequence(loss, C, eta, n):
    """Return eta_t = eta / sqrt(t), or 1 / (L C sqrt(t)) of Theorem 1."""
    first = 1 / (losses.get(loss).lipschitz(C) * C) if eta is None else eta
    return first / np.sqrt(np.arange(1, n + 1))


def step(loss, C, eta):
    return losses.get(loss).curvature(C) if eta is None else eta


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


# ---- games of linear learners ----

T, D = 100 if COMPILED else 30, 4


def linear_stream(seed=0, n=T, d=D):
    """Return a linear stream with points 0 and repeated points."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[::9] = 0.0
    X[5::12] = X[5]
    return X, np.clip(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n), -1, 1)


def game_gradients(seed=0, n=T, d=D):
    """Return gradients with zero, repeated, small and large rounds."""
    rng = np.random.default_rng(seed)
    gradients = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 10.0], size=(n, 1))
    gradients[::7] = 0.0
    gradients[3::11] = gradients[2]
    gradients[:, 0] *= 0.2
    return gradients


def played(learner, gradients):
    """Return the points w_1, ..., w_{T+1} of the game face."""
    learner.reset(gradients.shape[1])
    points = [learner.w]
    for g in gradients:
        points.append(learner.update(g).w)
    return np.array(points)


ADAPTIVE = ("sqrt", "gradient", "adagrad", "adagrad_full")  # kinds of AdaptiveFTRL
EXP_CONCAVE = [
    okl.ExpConcaveFTRL(alpha_tilde=0.05, lipschitz=2.0),
    okl.ExpConcaveFTRL(alpha_tilde=0.05, lipschitz=2.0, domain="ball", radius=1.5),
    okl.ExpConcaveFTRL(alpha_tilde=0.05, lipschitz=2.0, domain="simplex"),
]
FAMILY = [
    okl.OGD(eta=0.3),
    okl.OGD(eta=0.3, schedule="sqrt"),
    okl.OGD(schedule="strong", lam=0.7),
    okl.OGD(eta=0.3, radius=2.0),
    okl.OGD(eta=0.3, schedule="sqrt", radius=1.0),
    okl.OGD(schedule="strong", lam=0.7, radius=1.0),
    okl.OGD(eta=0.9, schedule="gradient", radius=1.0),
    okl.LazyOGD(eta=0.2, radius=1.5),
    *(okl.PNorm(eta=0.1, p=p) for p in (1.2, 1.5, 2.0)),
    okl.ExponentiatedGradient(eta=0.05),
    okl.ExponentiatedGradient(eta=0.03, scale=5.0),
    okl.AdaptiveFTRL("sqrt", eta=0.4),
    okl.AdaptiveFTRL("gradient", eta=0.4, sigma=2.0),
    okl.AdaptiveFTRL("adagrad", eta=0.4, sigma=0.5),
    okl.AdaptiveFTRL("adagrad_full", eta=0.4, sigma=0.5),
    okl.StronglyConvexFTRL(lam=0.5),
    okl.Perceptron(eta=0.7),
    okl.Winnow(eta=0.05),
    okl.CoinBetting(wealth=0.3),
    okl.CoinBetting(lipschitz=200.0),
    *EXP_CONCAVE,
]
NEWTON = [
    okl.OnlineNewtonStep(C=0.3, alpha=0.5),
    okl.OnlineNewtonStep(C=5.0, alpha=0.01),
    okl.OnlineNewtonStep(loss="logistic", C=0.7),
    okl.OnlineNewtonStep(loss="hinge", C=0.9, eta=0.4),
    okl.SketchedONS(rank=2, alpha=0.5, C=0.3),
    okl.SketchedONS(rank=1, alpha=0.05, C=2.0),
    okl.SketchedONS(rank=7, alpha=0.5, C=0.3, loss="logistic"),
]
