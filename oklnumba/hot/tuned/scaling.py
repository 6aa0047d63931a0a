"""Inputs of SelfTuning's members: standardised, their normal scores, and the last labels.

Limits of labels, (6, n, K), or (6, 1, K) if they are the same for all: beyond LOW and HIGH a label
is an outlier unless it was foretold, beyond LEAST and MOST in any case. MEDIAN, the median of the
last SHORT_WINDOW labels, is learned in its place. REACH is how far outliers begin from the median
of the last LONG_WINDOW labels.
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import hot

LEAST, LOW, MEDIAN, HIGH, MOST, REACH = range(6)


@hot
def write_standardised(X, mean, scale, log_from, max_input, first, out):
    """Write z = (x - mean) / scale; beyond ``log_from`` z counts by its logarithm.

    X : (n, >= d), whose columns after the first d are left out; out : (n, >= d), written from
    column ``first`` on.
    """
    for t in range(X.shape[0]):
        for j in range(mean.shape[0]):
            z = (X[t, j] - mean[j]) / scale[j]
            if abs(z) > log_from:
                far = log_from + math.log1p(smaller(abs(z), max_input) - log_from)
                z = far if z > 0.0 else -far
            out[t, first + j] = z


@hot
def write_scores(Z, knots, scores, out):
    """Write piecewise linear functions of the columns of Z, of slope 1 beyond the knots.

    knots, scores : (d, k), increasing; infinite knots follow the last one; Z : (n, >= d).
    """
    for t in range(Z.shape[0]):
        for j in range(knots.shape[0]):
            z, below, above = Z[t, j], 0, knots.shape[1]
            while below < above:  # count the knots that are at most z
                middle = (below + above) // 2
                if knots[j, middle] <= z:
                    below = middle + 1
                else:
                    above = middle
            if below == 0:
                out[t, j] = scores[j, 0] + (z - knots[j, 0])
            elif below == knots.shape[1] or knots[j, below] == np.inf:
                out[t, j] = scores[j, below - 1] + (z - knots[j, below - 1])
            else:
                low, high = knots[j, below - 1], knots[j, below]
                rise = scores[j, below] - scores[j, below - 1]
                out[t, j] = scores[j, below - 1] + rise * ((z - low) / (high - low))


@hot
def write_lags(labels, counts, last, differences, there):
    """Write what is known of labels, (m, K), where ``counts``, (n,), of them have come.

    As in ``Known``; NaN in labels is none.
    """
    for t in range(counts.shape[0]):
        for k in range(labels.shape[1]):
            newest = counts[t] - 1
            y = labels[newest, k] if newest >= 0 else np.nan
            there[t, k], last[t, k] = y == y, y if y == y else 0.0
            for j in range(differences.shape[2]):
                before = newest - 1 - j
                change = labels[before, k] - y if before >= 0 else np.nan
                differences[t, k, j] = change if change == change else 0.0


@hot
def cut_labels(Y, limits, cut):
    """Write the labels, (n, K), cut to [LEAST, MOST]; return whether all are in [LOW, HIGH].

    NaN stays, and is.
    """
    usual = True
    for t in range(Y.shape[0]):
        row = t if limits.shape[1] > 1 else 0
        for k in range(Y.shape[1]):
            y = Y[t, k]
            usual = usual and not (y < limits[LOW, row, k] or y > limits[HIGH, row, k])
            cut[t, k] = smaller(larger(y, limits[LEAST, row, k]), limits[MOST, row, k])
    return usual


@hot
def append_rows(last, new):
    """Append rows to the last ones; the first of these go."""
    kept = larger(last.shape[0] - new.shape[0], 0)
    for t in range(kept):
        for k in range(last.shape[1]):
            last[t, k] = last[t + new.shape[0], k]
    for t in range(kept, last.shape[0]):
        for k in range(last.shape[1]):
            last[t, k] = new[t - last.shape[0] + new.shape[0], k]
