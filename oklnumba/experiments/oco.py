"""Linear online convex optimisation: games, mirror maps and norms; the learners are in okl."""

from __future__ import annotations

from oklnumba.components.potentials import (
    Potential,
    bregman,
    check_simplex,
    dual_exponent,
    euclidean,
    mahalanobis_norm,
    negative_entropy,
    p_norm,
    squared_p_norm,
)
from oklnumba.experiments.games import LeastSquares, Played, Portfolio, play
from oklnumba.learners.base.linear import LinearLearner

__all__ = [
    "LeastSquares", "LinearLearner", "Played", "Portfolio", "Potential", "bregman", "check_simplex",
    "dual_exponent", "euclidean", "mahalanobis_norm", "negative_entropy", "p_norm", "play",
    "squared_p_norm",
]  # fmt: skip
