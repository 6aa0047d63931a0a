"""Losses and their derivatives by integer code."""

import math

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import hot

SQUARED, ABSOLUTE, HINGE, SQUARED_HINGE, LOGISTIC, EPSILON_INSENSITIVE, HUBER = range(7)
QUANTILE, LEVELS = 10**9, 10**6  # QUANTILE + k is the quantile loss of level k / LEVELS
TUBE = 0.1  # half the width of the tube in which the epsilon-insensitive loss is 0


@hot
def loss_value(code, forecast, y):
    """Return the loss of a forecast; losses.py has the formulas."""
    apart = y - forecast
    if code == SQUARED:
        return apart * apart
    if code == ABSOLUTE:
        return abs(apart)
    if code == EPSILON_INSENSITIVE:
        return larger(abs(apart) - TUBE, 0.0)
    if code == HUBER:
        return 0.5 * apart * apart if abs(apart) <= 1.0 else abs(apart) - 0.5
    if code >= QUANTILE:
        level = (code - QUANTILE) / LEVELS
        return level * apart if apart >= 0.0 else (level - 1.0) * apart
    margin = y * forecast
    short = larger(1.0 - margin, 0.0)
    if code == HINGE:
        return short
    if code == SQUARED_HINGE:
        return short * short
    return math.log1p(math.exp(-margin)) if margin > 0.0 else math.log1p(math.exp(margin)) - margin


@hot
def loss_derivative(code, forecast, y):
    """Return the derivative of the loss in the forecast; 0 at a kink."""
    if code == SQUARED:
        return 2.0 * (forecast - y)
    if code == ABSOLUTE or code == EPSILON_INSENSITIVE:
        if abs(y - forecast) <= (TUBE if code == EPSILON_INSENSITIVE else 0.0):
            return 0.0
        return 1.0 if forecast > y else -1.0
    if code == HUBER:
        return larger(-1.0, smaller(1.0, forecast - y))
    if code >= QUANTILE:
        level = (code - QUANTILE) / LEVELS
        return 0.0 if forecast == y else -level if forecast < y else 1.0 - level
    margin = y * forecast
    if code == HINGE:
        return -y if margin < 1.0 else 0.0
    if code == SQUARED_HINGE:
        return -2.0 * y * larger(1.0 - margin, 0.0)
    if margin > 0.0:
        e = math.exp(-margin)
        return -y * e / (1.0 + e)
    return -y / (1.0 + math.exp(margin))


@hot
def loss_values(code, forecasts, y, out):
    """Write the losses of many forecasts, (n,)."""
    for t in range(y.shape[0]):
        out[t] = loss_value(code, forecasts[t], y[t])


@hot
def loss_derivatives(code, forecasts, y, out):
    """Write the derivatives of the losses of many forecasts, (n,)."""
    for t in range(y.shape[0]):
        out[t] = loss_derivative(code, forecasts[t], y[t])


# Linear learners play two protocols with one loop. A round on features x has the gradient
# g = l'(w.x, y) x (oco section 2.2); a round of a game has the linear loss <g, w> (oco
# Definition 10): there x is the gradient and the derivative is 1.
LINEAR_LOSS = -1  # the loss <x, w>, whatever the label
MISTAKE_LOSS = -2  # oco Algorithm 2: -y where y f <= 0, else 0


@hot
def round_derivative(loss, forecast, y):
    """Return the derivative of a loss, or of the two above, which only linear learners have."""
    if loss == LINEAR_LOSS:
        return 1.0
    if loss == MISTAKE_LOSS:
        return -y if y * forecast <= 0.0 else 0.0
    return loss_derivative(loss, forecast, y)
