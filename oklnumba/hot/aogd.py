"""Rounds of AOGD-ALD: kernel gradient descent, adaptive steps, a dictionary that ALD keeps small.

Li and Liao 2023 (ICML), as in the authors' code:

    S = {}, f = 0, G = 0; for t = 1, ..., T:
        g = l'(f(x_t), y_t);   P = projection of k(x_t, .) on span S;   far = |k(x_t, .) - P|
        v = P                             if far <= threshold
        v = k(x_t, .), S = S + {x_t}      otherwise
        G = G + g^2 |v|^2;   f = Proj_{|f| <= U}(f - U g v / sqrt(G))

We keep the factor R of K_S = R'R instead of K_S^-1. <f, v> = f(x_t) gives |f|^2, for f is in the
span. A round with g = 0 changes nothing.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual
from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.expansion import expansion_value, project
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
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import kernel_diag, put_atom

SQUARE, GRADIENTS, APART = range(3)  # entries of sums: |f|^2, G, and sum |g| far where v = P


class AOGDState(NamedTuple):
    """The dictionary S and the function f = sum_j alpha_j k(x_j, .)."""

    counts: Annotated[Integers, "counts"]
    sums: Annotated[Array, "sums"]  # SQUARE, GRADIENTS, APART
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]
    R: Annotated[Array, ATOMS, ATOMS]  # K_S = R'R


class Rules(NamedTuple):
    """The code of the loss, and the hyper-parameters."""

    loss: int
    radius: float  # U
    threshold: float


@hot
def aogd_rounds(X, y, first, kernel, rules, state, work, out):
    """Play AOGD-ALD."""
    counts, sums, alpha, R = state.counts, state.sums, state.alpha, state.R
    k, q = work
    for t in range(first, X.shape[0]):
        x, m = X[t], counts[ATOMS]
        if m == alpha.shape[0]:
            return t, NEED_ROOM
        forecast = expansion_value(kernel, state.atoms, alpha, m, x, k)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        out.forecasts[t] = forecast
        slope = loss_derivative(rules.loss, forecast, y[t])
        if slope != 0.0:
            k_tt = kernel_diag(kernel, x)
            delta = ald_residual(R, k, k_tt, q, m)
            far = math.sqrt(larger(delta, 0.0))
            near = delta <= IN_SPAN * k_tt or (m > 0 and far <= rules.threshold)
            v_square = larger(k_tt - delta, 0.0) if near else k_tt
            total = sums[GRADIENTS] + slope * slope * v_square
            if not (total < np.inf and k_tt < np.inf):
                return t, NOT_FINITE
            step = rules.radius / math.sqrt(total) * slope if total > 0.0 else 0.0
            if near:  # P = (K_S^-1 k)' k(S, .)
                solve_upper(R, q, m)
                add_multiple(alpha, -step, q, m)
                sums[APART] += abs(slope) * far
            else:
                if not ald_grow(R, q, k_tt, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(state.atoms, m, x)
                alpha[m] = -step
                counts[ATOMS] = m + 1
            sums[GRADIENTS] = total
            square = sums[SQUARE] - 2.0 * step * forecast + step * step * v_square
            sums[SQUARE] = project(alpha, square, rules.radius, counts[ATOMS])
        out.sizes[t] = counts[ATOMS]
    return X.shape[0], DONE
