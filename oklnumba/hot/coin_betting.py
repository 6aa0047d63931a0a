"""Rounds of coin betting.

Orabona and Pal 2016, Algorithm 1 (the bettor of Krichevsky and Trofimov in a Hilbert space), for
gradients of at most L, scaled to c_t = -g_t / L, and the wealth eps at the start:

    for t = 1, 2, ...:
        w_t = (c_1 + ... + c_{t-1}) / t * (eps + sum_{s<t} <c_s, w_s>);   forecast w_t.x_t

Here w = wealth / (L t) S, S = -sum g, and t counts the gradients that are not 0. L may grow (hints,
after Cutkosky 2019): a gradient of length L' > L counts as one of length L; then L' takes the place
of L, and L wealth gains (L' - L) eps.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import DIVERGED, DONE, LARGEST_FORECAST, TOO_LONG, Array, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot, euclidean_norm
from oklnumba.hot.primitives.losses import round_derivative

BETS, HINT, WEALTH, FACTOR = range(4)  # entries of sums: t - 1, L, eps + sum <c, w>, and w / S


class CoinState(NamedTuple):
    """w = sums[FACTOR] S."""

    sums: Annotated[Array, "sums"]  # BETS, HINT, WEALTH, FACTOR
    S: Annotated[Array, "d"]


@hot
def close_bet(sums, eps, slope, forecast, length):
    """Close a round whose gradient has a length > 0; return its slope as far as it counts."""
    L = sums[HINT] if sums[HINT] > 0.0 else length  # at first w is 0, so any L will do
    longer = larger(length, L)
    share = L / longer
    slope *= share
    wealth = sums[WEALTH] - slope * forecast / L
    sums[BETS] += 1.0
    sums[HINT], sums[WEALTH] = longer, share * wealth + (1.0 - share) * eps
    sums[FACTOR] = sums[WEALTH] / (longer * (sums[BETS] + 1.0))
    return slope


@hot
def coin_betting_rounds(X, y, loss, eps, max_length, state, forecasts):
    """Play rounds, until a gradient is longer than ``max_length``."""
    sums, S, d = state.sums, state.S, state.S.shape[0]
    for t in range(y.shape[0]):
        x = X[t]
        forecast = sums[FACTOR] * dot(x, S, d)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        slope = round_derivative(loss, forecast, y[t])
        length = abs(slope) * euclidean_norm(x, d) if slope != 0.0 else 0.0
        if length > max_length:
            return t, TOO_LONG
        if length > 0.0:
            add_multiple(S, -close_bet(sums, eps, slope, forecast, length), x, d)
    return y.shape[0], DONE
