"""Running mean and variance of every column; rows standardised by those of earlier rows.

Of ``count`` rows, (d,) each: origin, the first row; mean, of x - origin; squares, sums of squared
deviations from the mean.
"""

import math

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import exact

ROUNDING = 8 * 2.0**-52  # deviations below this share of a column's mean are rounding

# ``exact``: the compiler must not reorder the differences from the first row and the mean.


@exact
def standardise_row(x, origin, mean, squares, count, clip, out):
    """Write (x - mean) / scale, cut to [-clip, clip]; zeros if count is 0. x, out : (d,).

    The scale is the root of the mean squared deviation, 1 for a column that is constant so far.
    """
    if count == 0:
        out[:] = 0.0
        return
    for j in range(x.shape[0]):
        scale = math.sqrt(squares[j] / count)
        if scale <= ROUNDING * abs(origin[j] + mean[j]):
            scale = 1.0
        out[j] = smaller(larger((x[j] - origin[j] - mean[j]) / scale, -clip), clip)


@exact
def learn_row(x, origin, mean, squares, count):
    """Update mean and squares by a row (Welford 1962), as differences from the first row.

    These are exact for a column that varies little about a large mean.
    """
    if count == 0:
        for j in range(x.shape[0]):
            origin[j] = x[j]
        return
    for j in range(x.shape[0]):
        shifted = x[j] - origin[j]
        before = shifted - mean[j]
        mean[j] += before / (count + 1)
        squares[j] += before * (shifted - mean[j])


@exact
def standardise_rows(X, origin, mean, squares, count, clip, out):
    """Write all rows of X standardised by the same rows."""
    for t in range(X.shape[0]):
        standardise_row(X[t], origin, mean, squares, count, clip, out[t])


@exact
def standardise_stream(X, learned, origin, mean, squares, count, clip, out):
    """Write each row of X standardised by the rows before it, then learn that of ``learned``."""
    for t in range(X.shape[0]):
        standardise_row(X[t], origin, mean, squares, count + t, clip, out[t])
        learn_row(learned[t], origin, mean, squares, count + t)
