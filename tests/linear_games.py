"""Linear learners, games for them, and the textbook's points."""

import numpy as np
import pytest

import oklnumba as okl
from tests.checks import COMPILED
from tests.reference import naive_linear

T, D = 100 if COMPILED else 30, 4


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


def steps(schedule, eta, lam, gradients):
    n = len(gradients)
    t = np.arange(1, n + 1)
    if schedule == "gradient":
        lengths = np.sqrt(np.cumsum((gradients**2).sum(axis=1)))
        return np.divide(eta, lengths, out=np.zeros(n), where=lengths > 0)
    return {"constant": np.full(n, eta), "sqrt": eta / np.sqrt(t), "strong": 1 / ((lam or 1) * t)}[
        schedule
    ]


def textbook(learner, gradients):
    """Return the points by the definition of a learner, each solved numerically."""
    p = learner.get_params()
    n = len(gradients)
    if isinstance(learner, okl.OGD):
        return naive_linear.ogd_points(
            gradients, steps(p["schedule"], p["eta"], p["lam"], gradients), p["radius"]
        )
    if isinstance(learner, okl.LazyOGD):
        A, argmin = np.eye(gradients.shape[1]) / p["eta"], naive_linear.quadratic_argmin
        sums = [gradients[:t].sum(axis=0) for t in range(n + 1)]
        return np.array([argmin(A, -total, "ball", p["radius"]) for total in sums])
    if isinstance(learner, okl.PNorm):
        return naive_linear.p_norm_points(gradients, p["eta"], p["p"])
    if isinstance(learner, okl.ExponentiatedGradient | okl.Winnow):
        return naive_linear.entropy_points(gradients, p["eta"], p.get("scale", 1.0))
    if isinstance(learner, okl.Perceptron):
        return naive_linear.ogd_points(gradients, np.full(n, p["eta"]))
    if isinstance(learner, okl.AdaptiveFTRL):
        return naive_linear.adaptive_points(gradients, p["kind"], p["eta"], p["sigma"])
    if isinstance(learner, okl.StronglyConvexFTRL):
        return naive_linear.strongly_convex_points(gradients, p["lam"])
    if isinstance(learner, okl.CoinBetting):
        return naive_linear.coin_betting_points(gradients, p["lipschitz"], p["wealth"])
    return naive_linear.exp_concave_points(
        gradients, p["alpha_tilde"], p["lipschitz"], p["domain"], p["radius"]
    )


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
    okl.LazyOGD(eta=0.2, radius=1.5),
    okl.PNorm(eta=0.1, p=1.5),
    okl.PNorm(eta=0.1, p=1.2),
    okl.PNorm(eta=0.1, p=2.0),
    okl.ExponentiatedGradient(eta=0.05),
    okl.ExponentiatedGradient(eta=0.03, scale=5.0),
    okl.AdaptiveFTRL("sqrt", eta=0.4),
    okl.AdaptiveFTRL("gradient", eta=0.4, sigma=2.0),
    okl.AdaptiveFTRL("adagrad", eta=0.4, sigma=0.5),
    okl.AdaptiveFTRL("adagrad_full", eta=0.4, sigma=0.5),
    okl.StronglyConvexFTRL(lam=0.5),
    okl.Perceptron(eta=0.7),
    okl.Winnow(eta=0.05),
    okl.OGD(eta=0.9, schedule="gradient", radius=1.0),
    okl.CoinBetting(wealth=0.3),
    okl.CoinBetting(lipschitz=200.0),
    *EXP_CONCAVE,
]


def data(seed=0, n=T, d=D):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[::9] = 0.0
    X[5::12] = X[5]
    y = np.clip(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n), -1, 1)
    return X, y


NEWTON = [
    okl.OnlineNewtonStep(C=0.3, alpha=0.5),
    okl.OnlineNewtonStep(C=5.0, alpha=0.01),
    okl.OnlineNewtonStep(loss="logistic", C=0.7),
    okl.OnlineNewtonStep(loss="hinge", C=0.9, eta=0.4),
    okl.SketchedONS(rank=2, alpha=0.5, C=0.3),
    okl.SketchedONS(rank=1, alpha=0.05, C=2.0),
    okl.SketchedONS(rank=7, alpha=0.5, C=0.3, loss="logistic"),
]


ADAPTIVE = ("sqrt", "gradient", "adagrad", "adagrad_full")  # kinds of AdaptiveFTRL


def two_faced(loss):
    """Return every learner with both faces, with a loss for the other face."""
    found = [
        okl.OGD(eta=0.2, loss=loss),
        okl.OGD(eta=0.5, schedule="sqrt", radius=0.8, loss=loss),
        okl.OGD(schedule="strong", lam=2.0, loss=loss),
        okl.OGD(eta=0.5, schedule="gradient", radius=0.8, loss=loss),
        okl.LazyOGD(eta=0.2, radius=0.7, loss=loss),
        okl.PNorm(eta=0.2, p=1.3, loss=loss),
        okl.ExponentiatedGradient(eta=0.3, scale=2.0, loss=loss),
        *(okl.AdaptiveFTRL(kind, loss=loss) for kind in ADAPTIVE),
        okl.StronglyConvexFTRL(lam=2.0, loss=loss),
        okl.CoinBetting(loss=loss),
        okl.ExpConcaveFTRL(alpha_tilde=0.2, loss=loss),
        okl.ExpConcaveFTRL(alpha_tilde=0.2, domain="ball", radius=0.5, loss=loss),
        okl.ExpConcaveFTRL(alpha_tilde=0.2, domain="simplex", loss=loss),
        okl.OnlineNewtonStep(C=100.0, eta=0.1, loss=loss),
        okl.SketchedONS(rank=2, C=100.0, eta=0.1, loss=loss),
    ]
    return [pytest.param(one, loss, id=f"{one!r}") for one in found]
