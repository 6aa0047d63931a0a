"""Rounds of online conformal intervals.

Quantile tracking of the errors s_t = |y_t - f_t| by their logarithms (Angelopoulos, Candes and
Tibshirani 2023, after Gibbs and Candes 2021), with a = 1 - coverage:

    E = 0;  Q = log s_1;  h = infinity;  for t = 1, ..., n:
        play [f_t - h, f_t + h];   E = E + 1{s_t > h} - a
        Q = Q + max(2 / sqrt(t), eta) (1{log s_t > Q} - a)  from t = 2 on;   h = exp(Q + eta E)

A miss at E >= B / eta, B = max |log s_t - Q|, is impossible, so E stays below B / eta + 1; in the
same way it stays above -B / eta - 1. Rounds with s_t = 0 are left
out, but before the first error h is 0 after them: at most one label is outside by it.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import exact

SEEN, EXCESS, SCALE, HALF_WIDTH, REACH = range(5)  # t, E, Q, h, B in ``numbers``
START = 0.0, 0.0, 0.0, np.inf, 0.0
HUGE, LOG_HUGE = 1.79e308, 709.78  # an infinite error counts as HUGE; exp is finite to LOG_HUGE


@exact
def interval_rounds(forecasts, labels, coverage, eta, numbers, out):
    """Write the interval of each round, (n, 2), and learn from its label."""
    for t in range(forecasts.shape[0]):
        f, y, h = forecasts[t], labels[t], numbers[HALF_WIDTH]
        out[t, 0], out[t, 1] = f - h, f + h
        if y == f:
            if numbers[SEEN] == 0.0:
                numbers[HALF_WIDTH] = 0.0
            continue
        log_error = math.log(smaller(abs(y - f), HUGE))
        numbers[SEEN] += 1.0
        if numbers[SEEN] == 1.0:
            numbers[SCALE] = log_error
        else:
            far, step = log_error - numbers[SCALE], 2.0 / math.sqrt(numbers[SEEN])
            numbers[REACH] = larger(numbers[REACH], abs(far))
            numbers[SCALE] += larger(step, eta) * ((1.0 if far > 0.0 else 0.0) - (1.0 - coverage))
        missed = y < out[t, 0] or y > out[t, 1]
        numbers[EXCESS] += (1.0 if missed else 0.0) - (1.0 - coverage)
        log_width = numbers[SCALE] + eta * numbers[EXCESS]
        numbers[HALF_WIDTH] = math.exp(log_width) if log_width < LOG_HUGE else np.inf
