"""Rounds of Projectron and Projectron++.

Orabona, Keshet and Caputo 2009:

    S = {}, f = 0; for t = 1, ..., T:
        margin = y_t f(x_t);   P = projection of k(x_t, .) on span S;   far = |k(x_t, .) - P|
        if margin <= 0 (mistake): f = f + y_t P                   if far <= eta
                                  f = f + y_t k(x_t, .), S = S + {x_t}   otherwise
        Projectron++, if 0 < margin < 1 and loss = 1 - margin > far / eta: f = f + tau y_t P,
            tau = min(1, loss / |P|^2, 2 (loss - far / eta) / |P|^2)

We keep the factor R of K_S = R'R instead of K_S^-1; with a budget, a full S is projected on. f(x_t)
is often 0, as after both labels of one x, and then a mistake: so what rounding leaves of it is 0.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import expansion_value
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DIVERGED,
    DONE,
    LARGEST_FORECAST,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, solve_upper
from oklnumba.hot.primitives.rows import kernel_diag, put_atom

TIE = 1e-12  # a forecast of at most this share of k(x, x) is 0 but for rounding


class ProjectronState(NamedTuple):
    """The dictionary S and the function f = sum_j alpha_j k(x_j, .)."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]
    R: Annotated[Array, ATOMS, ATOMS]  # K_S = R'R


class Rules(NamedTuple):
    """Hyper-parameters."""

    eta: float
    budget: float  # or infinity
    least_margin: float  # below which a right sign steps too: 0, Projectron++ 1
    slack: float  # 1 / eta, or what takes its place


@hot
def projectron_value(kernel, atoms, alpha, m, x, k):
    """Return f(x), 0 where rounding alone keeps it from 0, and write k."""
    value = expansion_value(kernel, atoms, alpha, m, x, k)
    return 0.0 if abs(value) <= TIE * kernel_diag(kernel, x) else value


@hot
def projectron_forecasts(X, kernel, atoms, alpha, counts, factor, k, forecasts):
    """Write f(x) for the rows of X; factor : 1, as of other expansions."""
    for t in range(X.shape[0]):
        forecasts[t] = projectron_value(kernel, atoms, alpha, counts[ATOMS], X[t], k)


@hot
def projectron_tau(loss, far, projected):
    """Return the length tau of Projectron++'s step; far : over eta; projected : |P|^2."""
    if not (loss > far and projected > 0.0):
        return 0.0
    return smaller(smaller(loss / projected, 1.0), 2.0 * (loss - far) / projected)


@hot
def projectron_rounds(X, y, first, kernel, rules, state, work, out):
    """Play Projectron or Projectron++."""
    counts, alpha, R = state.counts, state.alpha, state.R
    k, q = work
    for t in range(first, X.shape[0]):
        x, label, m = X[t], y[t], counts[ATOMS]
        if m == alpha.shape[0] and m < rules.budget:
            return t, NEED_ROOM
        forecast = projectron_value(kernel, state.atoms, alpha, m, x, k)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        out.forecasts[t] = forecast
        margin = label * forecast
        if margin <= 0.0 or margin < rules.least_margin:
            k_tt = kernel_diag(kernel, x)
            if not k_tt < np.inf:
                return t, NOT_FINITE
            delta = ald_residual(R, k, k_tt, q, m)
            far = math.sqrt(larger(delta, 0.0))  # |k(x_t, .) - P|
            in_span = delta <= IN_SPAN * k_tt
            tau = 1.0  # length of the projected step
            if margin > 0.0:
                distance = 0.0 if in_span else far * rules.slack
                tau = projectron_tau(1.0 - margin, distance, k_tt - delta)
            elif not (in_span or m == rules.budget or (m > 0 and far <= rules.eta)):
                if not ald_grow(R, q, k_tt, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(state.atoms, m, x)
                alpha[m] = label
                counts[ATOMS] = m + 1
                tau = 0.0
            if tau > 0.0:  # P = (K_S^-1 k)' k(S, .)
                solve_upper(R, q, m)
                add_multiple(alpha, tau * label, q, m)
        out.sizes[t] = counts[ATOMS]
    return X.shape[0], DONE
