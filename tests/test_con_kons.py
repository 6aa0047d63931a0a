"""Restarts are not needed: the theorem of docs/frequent_kons.md on CON-KONS, and its proof's steps.

The game is played from its definition in explicit features, with dictionaries of KORS and of ALD.
"""

from typing import NamedTuple

import numpy as np
import pytest

import oklnumba as okl
from oklnumba import losses, theory
from tests.bounds import largest_gap
from tests.checks import one_by_one
from tests.reference import naive
from tests.streams import inputs, labels
from tests.test_frequent_kons import competitors, features

N, GAUSSIAN = 60, okl.Gaussian(1.0)
KINDS = "uniform", "clustered", "repeated", "sorted", "in turn", "moving", "one point"


class Game(NamedTuple):
    """Forecasts before they are cut to [-C, C], and of each round (I - P) phi, g, g' A^-1 g, slab.

    slab(f) is what the projection adds to the potential (w - f)' A (w - f).
    """

    forecasts: np.ndarray
    outside: np.ndarray
    slopes: np.ndarray
    R_G: float
    moves: list


def con_kons(F, joins, label, loss, C, alpha, eta, room):
    """Play CON-KONS: forecasts are cut to +-(C + room dist); label(t, forecast) gives y."""
    slope, d = naive.LOSS_DERIVATIVES[loss], F.shape[1]
    w, A, basis = np.zeros(d), alpha * np.eye(d), np.zeros((d, 0))
    out, y, R_G = [], [], 0.0
    for t, phi in enumerate(F):
        rest = phi - basis @ (basis.T @ phi)
        if t in joins and rest @ rest > 1e-10:
            basis = np.column_stack([basis, rest / np.linalg.norm(rest)])
        psi = basis @ (basis.T @ phi)
        dist = np.linalg.norm(phi - psi)
        free, A_psi = w @ psi, np.linalg.solve(A, psi)
        forecast = np.clip(free, -C - room * dist, C + room * dist)
        s, q = 0.0, psi @ A_psi
        if q > 0.0:
            s = (free - forecast) / q
            w = w - s * A_psi
        y.append(label(t, forecast))
        g = float(slope(np.array([forecast]), np.array([y[-1]]))[0])
        A = A + eta * g**2 * np.outer(psi, psi)
        step = np.linalg.solve(A, psi)
        R_G += g**2 * psi @ step
        w = w - g * step
        out.append((forecast, phi - psi, g, (s, q, psi, forecast)))
    forecasts, outside, slopes, moves = zip(*out, strict=True)
    game = Game(np.array(forecasts), np.array(outside), np.array(slopes), R_G, moves)
    return game, np.array(y), basis.shape[1]


def certificate(game, f, alpha, eta):
    """Return the right side of the theorem, twice the bound on the regret against f."""
    V = np.linalg.norm(game.slopes @ game.outside)
    second = np.square(game.slopes) @ np.square(game.outside).sum(axis=1)
    norm = np.linalg.norm(f)
    return alpha * norm**2 + game.R_G + 2 * norm * V + 2 * eta * norm**2 * second


def slab(game, f):
    """Return what projections add where the cut leaves no room: 0 or less with room for |f|."""
    return sum(s * (2 * (f @ psi - forecast) - s * q) for s, q, psi, forecast in game.moves)


def against(t, forecast):
    return -1.0 if forecast > 0.0 else 1.0


def dictionary(rule, kernel, X, mu):
    if rule == "ALD":  # dist^2 > mu
        return set(naive.ald(features(kernel, X), np.sqrt(mu)))
    return set(okl.KORS(kernel, alpha=mu, beta=3.0, seed=1).partial_fit(X).indices_.tolist())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the kernel is 0 between nearly all")
@pytest.mark.parametrize("mu", [0.02, 0.3])
@pytest.mark.parametrize("rule", ["KORS", "ALD"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_theorem_on_con_kons(kind, rule, mu):
    """The certificate, with and without room in the cut, and the bound in mu and m."""
    rng, C, alpha = np.random.default_rng(7), 1.0, 0.5
    X = inputs(kind, N, 2, rng)
    F, joins = features(GAUSSIAN, X), dictionary(rule, GAUSSIAN, X, mu)
    gap = max(largest_gap(F @ F.T, np.isin(np.arange(N), [*joins]).cumsum()), 1e-12)
    inside = np.sqrt(mu) if rule == "ALD" else np.inf  # NONS-ALD: |V| <= sqrt(mu) sum |g|
    for how in ("coins", "function", "against"):
        given = None if how == "against" else labels(how, X, rng)
        answer = against if given is None else (lambda t, p, y=given: y[t])
        for loss in ("squared", "logistic") if given is None else ("squared",):
            for norm in (1.0, 0.0):
                reach = C + norm * np.sqrt(gap)
                eta = losses.get(loss).curvature(reach) / 2
                game, y, m = con_kons(F, joins, answer, loss, C, alpha, eta, norm)
                value, free = naive.LOSS_VALUES[loss], norm == 0.0
                played = value(game.forecasts, y).sum()
                V = np.linalg.norm(game.slopes @ game.outside)
                assert V <= inside * np.abs(game.slopes).sum() + 1e-9
                for f in competitors(F, y, C, rng):
                    if not free:
                        f = f * min(1.0, norm / max(np.linalg.norm(f), 1e-12))
                    regret = played - value(F @ f, y).sum()
                    bound = certificate(game, f, alpha, eta) + slab(game, f)
                    assert 2 * regret <= bound + 1e-8
                    if not free:
                        assert slab(game, f) <= 1e-9
                        far = theory.con_kons_bound(
                            GAUSSIAN, X, m, gap, loss=loss, C=C, alpha=alpha, norm=norm
                        )
                        assert regret <= far


def test_half_of_the_certificate_is_exceeded_and_it_needs_its_second_term():
    """One point with labels against the forecasts; and an empty dictionary, against f = 1 / 10."""
    F, eta = np.ones((400, 1)), 1 / 16
    game, y, _ = con_kons(F, {0}, against, "squared", 1.0, 1.0, eta, 0.0)
    regret = np.square(game.forecasts - y).sum() - 400
    assert game.R_G / 4 < regret <= game.R_G / 2
    far = theory.con_kons_bound(okl.Linear(), F, 1, 1e-12)
    assert far / 2 < regret <= far
    f, eta = np.full(1, 0.1), losses.get("squared").curvature(1.1) / 2
    game, y, m = con_kons(F, set(), lambda t, p: 1.0, "squared", 1.0, 1.0, eta, 0.1)
    regret, bound = 400 * (1.0 - 0.9**2), certificate(game, f, 1.0, eta) / 2
    assert m == 0 and (game.forecasts == 0.0).all()
    assert 0.9 * bound < regret <= bound  # without (I - P) phi the bound would be 0.005


@pytest.mark.parametrize(
    "sampler", [{"mu": 0.05, "beta": 3.0}, {"mu": 1e-3, "sampler": "ald"}], ids=str
)
def test_the_package_plays_this_game_without_room(sampler):
    """ProsNKONS(restart=False) is the game with forecasts cut to [-C, C]."""
    X = inputs("clustered", N, 2, np.random.default_rng(3))
    y = labels("function", X, np.random.default_rng(4))
    run = okl.run(okl.ProsNKONS(GAUSSIAN, restart=False, **sampler), X, y)
    joins = set(np.flatnonzero(np.diff(run.sizes, prepend=0)).tolist())
    assert "sampler" not in sampler or joins == dictionary("ALD", GAUSSIAN, X, 1e-3)
    game, _, m = con_kons(
        features(GAUSSIAN, X), joins, lambda t, p: y[t], "squared", 1.0, 1.0, 1 / 16, 0.0
    )
    assert 5 < m <= len(joins)
    np.testing.assert_allclose(run.predictions, game.forecasts, atol=1e-6)


def test_a_forecast_before_the_round_knows_whether_ald_restarts():
    """There it is 0. Distances are of x_t's coordinates in the span, not of those in A."""
    X = inputs("uniform", N, 2, np.random.default_rng(3))
    y = labels("function", X, np.random.default_rng(4))
    learners = [okl.ProsNKONS(GAUSSIAN, mu=1e-3, sampler="ald") for _ in range(2)]
    expected = okl.run(learners[0], X, y).predictions
    np.testing.assert_allclose(one_by_one(learners[1], X, y), expected, atol=1e-9)
