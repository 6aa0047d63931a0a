"""Bound of Orabona and Pal 2016 (NIPS): coin betting."""

from math import e, hypot, log, pi, sqrt

from oklnumba.core.checks import require_positive
from oklnumba.theory.arguments import checks_arguments


@checks_arguments(wealth=require_positive)
def coin_betting_bound(n: int, norm: float, lipschitz: float = 1.0, wealth: float = 1.0) -> float:
    """Return L |u| sqrt(n log(1 + 24 (n |u| / eps)^2)) + L eps (1 - 1 / (e sqrt(pi n))).

    For CoinBetting with eps = ``wealth`` (Orabona and Pal 2016, Corollary 5, there L = 1): against
    every u, |u| = ``norm``, at once sum <g_t, w_t - u> is at most this, n the number of gradients
    that are not 0 and L = ``lipschitz`` at least as long as each. Without L: docs/guarantees.md.

    Examples
    --------
    >>> [round(okl.theory.coin_betting_bound(100, norm), 3) for norm in (0.0, 0.1, 10.0)]
    [0.979, 3.769, 413.212]
    """
    growth = 2.0 * log(hypot(1.0, sqrt(24.0) * n * (norm / wealth)))
    return lipschitz * (norm * sqrt(n * growth) + wealth * (1.0 - 1.0 / (e * sqrt(pi * n))))
