"""PA-I and gradient descent on the coordinates of SelfTuning's spaces.

PA-I is of Crammer et al. 2006, Figure 1:

    w_1 = 0; for t = 1, ..., n:
        yhat_t = w_t.z_t;   w_{t+1} = w_t + tau_t z_t
        PA-I, labels -1 and +1: tau_t = y_t min(C, (1 - y_t yhat_t)_+ / |z_t|^2)       (hinge)
        PA-I, real labels: tau_t = sign(y_t - yhat_t) min(C, |y_t - yhat_t| / |z_t|^2)
        descent, real labels: tau_t = eta (y_t - yhat_t) / |z_t|^2, eta = step / (1 + step)
        descent, labels -1 and +1: yhat_t = 2 / (1 + exp(-w_t.z_t)) - 1 = 2 P(y = 1) - 1,
            tau_t = (step / 2) (y_t - yhat_t) / |z_t|^2                                (logistic)

C is in units of the largest |y_s|, s <= t, or what shrink_units left of it. eta makes the step on
the squared loss implicit, so it is stable for any length.
"""

import math
from typing import NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import DONE, NOT_FINITE, Array, Integers, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot

PASSIVE_AGGRESSIVE, DESCENT = range(2)  # codes


class Rules(NamedTuple):
    """M rules in each of L leaves, for K labels a round."""

    codes: Integers  # (M,)
    rates: Array  # (M,): C of PA-I, in units of the largest |y|, or the step over |z|^2
    signs: Array  # (K,): 1 for labels -1 and +1; 0 for real ones, and before round 32
    w: Array  # (L, M, K, r)
    max_label: Array  # (L, M, K): largest |y| so far in the leaf, or what shrink_units left of it


@hot
def apply_link(code, sign, score):
    """Return the forecast of a score: 2 / (1 + exp(-score)) - 1 for the logistic loss."""
    if code == DESCENT and sign > 0.0:
        return 2.0 / (1.0 + math.exp(-score)) - 1.0
    return score


@hot
def step_length(code, sign, rate, max_label, y, forecast, square):
    """Return tau, how far a rule moves along z; ``square`` : |z|^2."""
    if code == DESCENT:
        length = 0.5 * rate if sign > 0.0 else rate / (1.0 + rate)
        return length * (y - forecast) / square
    if sign > 0.0:
        loss, towards = larger(1.0 - y * forecast, 0.0), y
    else:
        loss, towards = abs(y - forecast), 1.0 if y > forecast else -1.0
    return towards * smaller(rate * max_label, loss / square)


@hot
def rule_rounds(n, leaf, i, Y, rules, rows, forecasts):
    """Play n rows of a leaf by rule i, or only forecast. Returns the row that failed, a status."""
    code, rate, max_label = rules.codes[i], rules.rates[i], rules.max_label[leaf, i]
    for s in range(n):
        z, r = rows.Z[s], rows.widths[s]
        square = dot(z, z, r)  # >= 1, the intercept
        for k in range(max_label.shape[0]):
            w, sign = rules.w[leaf, i, k], rules.signs[k]
            forecast = apply_link(code, sign, dot(w, z, r))
            if not abs(forecast) < np.inf:
                return s, NOT_FINITE
            forecasts[s, k] = forecast
            if Y.shape[0] > 0:
                y = Y[s, k]
                max_label[k] = larger(max_label[k], abs(y))
                tau = step_length(code, sign, rate, max_label[k], y, forecast, square)
                add_multiple(w, tau, z, r)
    return n, DONE
