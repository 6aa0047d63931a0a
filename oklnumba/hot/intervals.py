"""Rounds of online conformal intervals.

Quantile tracking of the scores s_t = |y_t - f_t| by their logarithms (Angelopoulos, Candes and
Tibshirani 2023, after Gibbs and Candes 2021):

    E = 0;  for t = 1, ..., n:
        Q_t = quantile at level ``coverage`` of the logs of the last scores
        play [f_t - h_t, f_t + h_t],  h_t = exp(Q_t + eta E)      # infinite before any score
        E = E + 1{s_t > h_t} - (1 - coverage)

E is how many misses there are beyond their share. A miss at E >= B / eta, B = max |log s_t - Q_t|,
is impossible, so E stays below B / eta + 1; in the same way it stays above -B / eta - 1. Scores
below exp(-EXACT) times the largest so far count as that.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import exact

# Entries of ``numbers``: scores so far, the largest log score, E, Q, h and B.
SEEN, LARGEST, EXCESS, SCALE, HALF_WIDTH, REACH = range(6)
EXACT = 20.7  # log 1e9
HUGE = 1.79e308  # an infinite score counts as this
LOG_HUGE = 709.78  # exp is finite up to here


@exact
def replace_sorted(ordered, old, new):
    """Replace an entry ``old`` of a sorted array by ``new``, sorted again."""
    i = 0
    while ordered[i] < old:
        i += 1
    while i > 0 and ordered[i - 1] > new:
        ordered[i] = ordered[i - 1]
        i -= 1
    while i + 1 < ordered.shape[0] and ordered[i + 1] < new:
        ordered[i] = ordered[i + 1]
        i += 1
    ordered[i] = new


@exact
def interval_rounds(forecasts, labels, coverage, eta, numbers, recent, ordered, out):
    """Write the interval of each round, (n, 2), and learn from its label.

    recent, ordered : (window,), the last log scores as they came and sorted; infinity if none.
    """
    window = recent.shape[0]
    for t in range(forecasts.shape[0]):
        f, y, h = forecasts[t], labels[t], numbers[HALF_WIDTH]
        out[t, 0], out[t, 1] = f - h, f + h
        score, seen = smaller(abs(y - f), HUGE), int(numbers[SEEN])
        if score == 0.0 and seen == 0:
            continue  # no scale yet
        log_score = math.log(score) if score > 0.0 else -np.inf
        numbers[LARGEST] = larger(numbers[LARGEST], log_score)
        counted = larger(log_score, numbers[LARGEST] - EXACT)
        missed = y < out[t, 0] or y > out[t, 1]
        if seen > 0:
            far = counted - numbers[SCALE]
            numbers[REACH] = larger(numbers[REACH], abs(far))
            missed = missed or (counted > log_score and far > eta * numbers[EXCESS])
        numbers[EXCESS] += (1.0 if missed else 0.0) - (1.0 - coverage)
        replace_sorted(ordered, recent[seen % window], counted)
        recent[seen % window] = counted
        seen += 1
        filled = seen if seen < window else window
        rank = int(math.ceil((filled + 1) * coverage))
        numbers[SCALE] = ordered[(rank if rank < filled else filled) - 1]
        log_width = numbers[SCALE] + eta * numbers[EXCESS]
        numbers[HALF_WIDTH] = math.exp(log_width) if log_width < LOG_HUGE else np.inf
        numbers[SEEN] = seen
