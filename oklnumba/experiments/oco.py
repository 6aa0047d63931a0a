"""Linear online convex optimisation in one place: learners, games, mirror maps and norms."""

from oklnumba.components.potentials import (
    Potential, check_simplex, dual_exponent, euclidean, negative_entropy, p_norm, squared_p_norm,
)  # fmt: skip
from oklnumba.experiments.games import LeastSquares, Played, Portfolio, play
from oklnumba.learners.awv import LinearAWV, LinearRidge
from oklnumba.learners.base.linear import LinearLearner
from oklnumba.learners.exp_concave import ExpConcaveFTRL
from oklnumba.learners.first_order import (
    OGD, AdaptiveFTRL, CoinBetting, ExponentiatedGradient, Hedge, LazyOGD, Perceptron, PNorm,
    StronglyConvexFTRL, Winnow,
)  # fmt: skip
from oklnumba.learners.lift import WithFeatures
from oklnumba.learners.newton import OnlineNewtonStep, SketchedONS

__all__ = [
    "OGD", "AdaptiveFTRL", "CoinBetting", "ExpConcaveFTRL", "ExponentiatedGradient", "Hedge",
    "LazyOGD", "LeastSquares", "LinearAWV", "LinearLearner", "LinearRidge", "OnlineNewtonStep",
    "PNorm", "Perceptron", "Played", "Portfolio", "Potential", "SketchedONS", "StronglyConvexFTRL",
    "Winnow", "WithFeatures", "check_simplex", "dual_exponent", "euclidean", "negative_entropy",
    "p_norm", "play", "squared_p_norm",
]  # fmt: skip
