"""Inputs of SelfTuning's members: standardised, their normal scores, and the last labels.

Limits of labels, (6, n, K), or (6, 1, K) if they are the same for all: beyond LOW and HIGH a label
is an outlier unless it was foretold, beyond LEAST and MOST in any case. MEDIAN, the median of the
last SHORT_WINDOW labels, is learned in its place. REACH is how far outliers begin from the median
of the last LONG_WINDOW labels.
"""

import math
from typing import NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.factor import copy_row, has_label
from oklnumba.hot.primitives.jit import Array, hot, unbind

LEAST, LOW, MEDIAN, HIGH, MOST, REACH = range(6)


class Looks(NamedTuple):
    """How members see inputs, and how labels before the last one differ from it."""

    mean: Array  # (d,)
    scale: Array  # (d,)
    difference_mean: Array  # (K, lags)
    difference_scale: Array  # (K, lags)
    knots: Array  # (d, k), or empty: no scores
    scores: Array  # (d, k)


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
def write_views(X, differences, looks, log_from, max_input, with_lags, scores):
    """Write the standardised inputs, behind them the differences, (n, K, >= lags), and scores.

    looks : Looks, bound.
    """
    looks, first = unbind(looks), 0
    write_standardised(X, looks.mean, looks.scale, log_from, max_input, first, with_lags)
    first += looks.mean.shape[0]
    for k in range(looks.difference_mean.shape[0]):
        mean, scale = looks.difference_mean[k], looks.difference_scale[k]
        write_standardised(differences[:, k], mean, scale, log_from, max_input, first, with_lags)
        first += mean.shape[0]
    write_scores(with_lags, looks.knots, looks.scores, scores)


# ---- labels: NaN in Y, (n, K), where a row has none, which is only forecast ----


@hot
def count_labels(Y, most, before):
    """Write how many labels come before each row; return how many rows, and labels, to play.

    That is up to the last one of ``most`` labels, at least 1.
    """
    t = count = 0
    while t < Y.shape[0] and count < most:
        before[t] = count
        count += 1 if has_label(Y, t) else 0
        t += 1
    return t, count


@hot
def write_lags(labels, later, counts, least, last, differences, there):
    """Write what rows know, as in ``Known``, of labels, (m, K), and ``later`` ones; NaN is none.

    counts : (n,), how many of ``later`` have come, negative if not even all labels; but ``least``
    labels count as known.
    """
    m = labels.shape[0]
    for t in range(counts.shape[0]):
        newest = larger(m + counts[t], least) - 1
        for k in range(last.shape[1]):
            y = np.nan
            for j in range(differences.shape[2] + 1):
                i, known = newest - j, np.nan
                if i >= 0:
                    known = labels[i, k] if i < m else later[i - m, k]
                if j == 0:
                    y = known
                    there[t, k], last[t, k] = y == y, y if y == y else 0.0
                else:
                    change = known - y
                    differences[t, k, j - 1] = change if change == change else 0.0


@hot
def remember_labels(Y, limits, counts, recent, remembered, cut, new, last, differences, there):
    """Write labels cut to [LEAST, MOST], and what each row knew; append them to the last ones.

    new : those cut of rows that have one; counts : (n,), how many of them each row knew, negative
    of late rows; empty if that is written. Returns whether all labels are in [LOW, HIGH].
    """
    usual, count = True, 0
    for t in range(Y.shape[0]):
        row = t if limits.shape[1] > 1 else 0
        for k in range(Y.shape[1]):
            y = Y[t, k]  # NaN stays, and is usual
            usual = usual and not (y < limits[LOW, row, k] or y > limits[HIGH, row, k])
            cut[t, k] = smaller(larger(y, limits[LEAST, row, k]), limits[MOST, row, k])
            new[count, k] = cut[t, k]
        count += 1 if has_label(Y, t) else 0
    least = differences.shape[2] + 1  # where not even the first ones are known, these count as so
    write_lags(remembered, new, counts, least, last, differences, there)
    for kept, values in ((recent, Y), (remembered, cut)):
        at = kept.shape[0] - count
        for k in range(kept.shape[1]):  # rows are short: the long loop is the inner one
            for t in range(at):
                kept[t, k] = kept[t + count, k]
        for t in range(Y.shape[0]):
            if has_label(Y, t):
                copy_row(values[t], kept[at], kept.shape[1])
                at += 1
    return usual
