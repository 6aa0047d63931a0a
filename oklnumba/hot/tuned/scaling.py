"""Inputs of SelfTuning's members: standardised, and their normal scores."""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import smaller
from oklnumba.hot.primitives.jit import hot


@hot
def write_standardised(X, mean, scale, log_from, max_input, out):
    """Write z = (x - mean) / scale; beyond ``log_from`` z counts by its logarithm.

    X : (n, >= d), whose columns after the first d are left out; out : (n, d).
    """
    for t in range(X.shape[0]):
        for j in range(mean.shape[0]):
            z = (X[t, j] - mean[j]) / scale[j]
            if abs(z) > log_from:
                far = log_from + math.log1p(smaller(abs(z), max_input) - log_from)
                z = far if z > 0.0 else -far
            out[t, j] = z


@hot
def write_scores(Z, knots, scores, out):
    """Write piecewise linear functions of the columns of Z, of slope 1 beyond the knots.

    knots, scores : (d, k), increasing; infinite knots follow the last one.
    """
    for t in range(Z.shape[0]):
        for j in range(Z.shape[1]):
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
