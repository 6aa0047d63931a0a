"""Inputs of SelfTuning's members: standardised, their normal scores, and the last labels."""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import smaller
from oklnumba.hot.primitives.jit import hot


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
