"""The digest of rows (hot/primitives/digest.py, recording.Played) against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from oklnumba.hot.primitives.digest import fold_rows
from oklnumba.protocol.recording import Played

WORD = 2**64 - 1


def naive(column):
    """Return the digest of the bits of some numbers, by integers of any size."""
    h = 0
    for word in np.asarray(column).view(np.uint64).tolist():
        h ^= word
        h ^= (h << 13) & WORD
        h ^= h >> 7
        h ^= (h << 17) & WORD
    return h


def rounds(n=80, d=5):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)), np.sign(rng.standard_normal(n))


def played(X, y, *cuts):
    found = Played()
    for start, stop in zip((0, *cuts), (*cuts, len(y)), strict=True):
        found.add_all(X[start:stop], y[start:stop])
    return found


@pytest.mark.parametrize("d", [1, 3, 5, 17])
def test_it_is_its_definition(d):
    X, y = rounds(d=d)
    state = np.zeros(d, dtype=np.uint64)
    fold_rows(X.view(np.uint64), state)
    assert state.tolist() == [naive(X[:, j].copy()) for j in range(d)]
    assert played(X, y).state.tolist() == [*state.tolist(), naive(y)]


@given(cuts=st.lists(st.integers(0, 80), max_size=4).map(sorted))
def test_it_does_not_depend_on_cuts_or_holders(cuts):
    X, y = rounds()
    X[X < 0.3] = 0.0
    for held in (X, np.asfortranarray(X), scipy.sparse.csr_array(X), np.repeat(X, 2, axis=0)[::2]):
        assert_array_equal(played(held, y, *cuts).state, played(X, y).state)


def test_any_change_is_seen():
    X, y = rounds(d=2)
    own = played(X, y)
    for i in range(len(y)):
        for j in range(2):
            for change in (lambda v: -v, lambda v: np.nextafter(v, 9.0), lambda v: v + 1.0):
                other = X.copy()
                other[i, j] = change(other[i, j])
                assert not played(other, y).is_of(own)
        labels = y.copy()
        labels[i:] *= -1.0
        assert not played(X, labels).is_of(own)
        if 0 < i:
            swapped = np.r_[i, 1:i, 0, i + 1 : len(y)]
            assert not played(X[swapped], y).is_of(own)
    assert not played(-X, y).is_of(own) and not played(X[:-1], y[:-1]).is_of(own)
    assert played(X.copy(), y.copy()).is_of(own) and own.is_of(None)
