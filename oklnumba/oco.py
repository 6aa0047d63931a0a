"""Linear online convex optimisation in one place: games, mirror maps and norms (oco).

The learners that play are in ``oklnumba`` itself: OGD, LazyOGD, PNorm, ExponentiatedGradient, ...
"""

from __future__ import annotations

from oklnumba.games import LeastSquares, Played, Portfolio, online_to_batch, play
from oklnumba.learners.linear import LinearLearner
from oklnumba.potentials import (
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

__all__ = [
    "LeastSquares",
    "LinearLearner",
    "Played",
    "Portfolio",
    "Potential",
    "bregman",
    "check_simplex",
    "dual_exponent",
    "euclidean",
    "mahalanobis_norm",
    "negative_entropy",
    "online_to_batch",
    "p_norm",
    "play",
    "squared_p_norm",
]


def __dir__() -> list[str]:
    return __all__
