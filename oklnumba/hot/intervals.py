"""Rounds of online conformal intervals.

Quantile tracking of the errors s_t = |y_t - f_t| by their logarithms (Angelopoulos, Candes and
Tibshirani 2023, after Gibbs and Candes 2021), with a = 1 - coverage:

    E = 0;  Q = log s_1;  h = infinity;  for t = 1, ..., n:
        play [f_t - h, f_t + h];   E = E + 1{s_t > h} - a
        Q = Q + max(2 / sqrt(t), eta) (1{log s_t > Q} - a)  from t = 2 on;   h = exp(Q + eta E)

A miss at E >= B / eta, B = max |log s_t - Q|, is impossible, so E stays below B / eta + 1; in the
same way it stays above -B / eta - 1. A label that comes D rounds late is judged by f, h and Q as
they were issued, and E stays within B / eta + D + 1 (docs/intervals.md). Rounds with s_t = 0 are
left out, but before the first error h is 0 after them: at most D + 1 labels are outside by it.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import exact

SEEN, EXCESS, SCALE, HALF_WIDTH, REACH = range(5)  # t, E, Q, h, B + eta D in ``numbers``
START = 0.0, 0.0, 0.0, np.inf, 0.0
HUGE, LOG_HUGE = 1.79e308, 709.78  # an infinite error counts as HUGE; exp is finite to LOG_HUGE


@exact
def interval_rounds(forecasts, labels, coverage, eta, numbers, issued, out):
    """Write the interval of each round, (n, 2), and learn from its label.

    issued : (n, 4), of labels that come late: f, h and Q then, NaN before the first error, and how
    many labels the forecast did not know; (0, 4) if they come at once.
    """
    for t in range(forecasts.shape[0]):
        f, y, h, late = forecasts[t], labels[t], numbers[HALF_WIDTH], 0.0
        scale = numbers[SCALE] if numbers[SEEN] > 0.0 else np.nan
        if issued.shape[0] > 0:
            f, h, scale, late = issued[t, 0], issued[t, 1], issued[t, 2], issued[t, 3]
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
            numbers[SCALE] += larger(step, eta) * ((1.0 if far > 0.0 else 0.0) - (1.0 - coverage))
        reach = eta * late + (0.0 if math.isnan(scale) else abs(log_error - scale))
        numbers[REACH] = larger(numbers[REACH], reach)
        missed = y < out[t, 0] or y > out[t, 1]
        numbers[EXCESS] += (1.0 if missed else 0.0) - (1.0 - coverage)
        log_width = numbers[SCALE] + eta * numbers[EXCESS]
        numbers[HALF_WIDTH] = math.exp(log_width) if log_width < LOG_HUGE else np.inf
