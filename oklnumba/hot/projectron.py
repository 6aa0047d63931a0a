"""Rounds of Projectron and Projectron++.

Orabona, Keshet and Caputo 2009:

    S = {}, f = 0; for t = 1, ..., T:
        margin = y_t f(x_t);   P = projection of k(x_t, .) on span S;   far = |k(x_t, .) - P|
        if margin <= 0 (mistake): f = f + y_t P                   if far <= eta
                                  f = f + y_t k(x_t, .), S = S + {x_t}   otherwise
        Projectron++, if 0 < margin < 1 and loss = 1 - margin > far / eta: f = f + tau y_t P,
            tau = min(1, loss / |P|^2, 2 (loss - far / eta) / |P|^2)

We keep the factor R of K_S = R'R instead of K_S^-1; with a budget, a full S is projected on.
"""

import math

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
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, solve_upper
from oklnumba.hot.primitives.rows import kernel_diag, put_atom


@hot
def projectron_tau(loss, far, inside):
    """Return the length tau of Projectron++'s step at a right sign; inside : |P|^2."""
    if not (loss > far and inside > 0.0):
        return 0.0
    return smaller(smaller(loss / inside, 1.0), 2.0 * (loss - far) / inside)


@hot
def projectron_rounds(X, y, first, kernel, setting, counts, function, work, out):
    """Play Projectron or Projectron++.

    setting : (threshold, budget or inf, margin below which a right sign steps too, 1 / threshold or
    its replacement); function : atoms (d, cap), a (cap,) and R (cap, cap), upper factor of the
    atoms' kernel matrix; work : (2, cap).
    """
    threshold, budget, safe, slack = setting
    atoms, a, R = function
    forecasts, sizes = out
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == a.shape[0] and m < budget:
            return t, NEED_ROOM
        x, label = X[t], y[t]
        forecast = expansion_value(kernel, atoms, a, m, x, row)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        margin = label * forecast
        if margin <= 0.0 or margin < safe:
            corner = kernel_diag(kernel, x)
            if not corner < np.inf:
                return t, NOT_FINITE
            rest = ald_residual(R, row, corner, q, m)
            distance = math.sqrt(larger(rest, 0.0))  # of k(x, .) to the span
            near = rest <= IN_SPAN * corner
            tau = 1.0  # length of the projected step
            if margin > 0.0:
                far = 0.0 if near else distance * slack
                tau = projectron_tau(1.0 - margin, far, corner - rest)
            elif not (near or m == budget or (m > 0 and distance <= threshold)):
                if not ald_grow(R, q, corner, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(atoms, m, x)
                a[m] = label
                counts[ATOMS] = m + 1
                tau = 0.0
            if tau > 0.0:
                solve_upper(R, q, m)  # K^-1 k: the projection on the span
                add_multiple(a, tau * label, q, m)
        sizes[t] = counts[ATOMS]
    return X.shape[0], DONE
