"""A digest of rows that does not depend on how they are cut, at the speed of memory."""

from __future__ import annotations

import numpy as np

from oklnumba.hot.primitives.jit import hot


@hot
def fold_rows(words, state):
    """Take rows into the digest of each column: a xorshift of 64 bits (Marsaglia 2003) a number.

    The shifts are one linear map of full period, 2^64 - 1: a change of one number, or of the signs
    of a whole column, never cancels. words : (n, d), the bits of the numbers; state : (d,), in
    place; both unsigned integers of 64 bits.
    """
    a, b, c = np.uint64(13), np.uint64(7), np.uint64(17)
    for t in range(words.shape[0]):
        row = words[t]
        for j in range(state.shape[0]):
            h = state[j] ^ row[j]
            h ^= h << a
            h ^= h >> b
            h ^= h << c
            state[j] = h
