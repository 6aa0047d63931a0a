"""Rows cut into blocks that compiled loops take: of arrays views, of sparse matrices dense copies.

So nothing here or above ever holds a dense copy of all rows of a sparse matrix.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

BLOCK_BYTES = 2**23  # of a block
LEAST_ROWS = 64  # of such a block, and what its rows are a multiple of
LARGEST = 2**32  # bytes of a dense array that is made of sparse rows: 4 GiB


def is_sparse(values: Any) -> bool:
    """Say whether a value is a sparse matrix or array of scipy, which need not be imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(values))


def compilable(X: Any) -> np.ndarray:
    """Return rows as an array of which loops are not compiled again, a copy only where needed.

    They would be for arrays that are read-only, say.
    """
    if is_sparse(X):
        return X.toarray()
    plain = X.flags.c_contiguous and X.flags.writeable and type(X) is np.ndarray
    return X if plain else np.array(X, order="C")


def fitting(d: int, most: int) -> int:
    """Return how many rows of width d there are in a block, at most so many."""
    return min(most, max(LEAST_ROWS, BLOCK_BYTES // (8 * d * LEAST_ROWS) * LEAST_ROWS))


def blocks(X: Any, most: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the rows of X, at most so many at a time: where they stand, and the compilable rows.

    X : checked inputs, ``checks.as_rows``. Arrays are cut as sparse rows are, so that both have the
    same bits, where BLAS takes a block in one go too.
    """
    n, d = X.shape
    most = fitting(d, most)
    for start in range(0, n, most):
        part = slice(start, min(start + most, n))
        yield part, compilable(X[part])


def whole(X: Any, name: str = "X") -> np.ndarray:
    """Return all rows in one array, for what needs them together.

    Raises
    ------
    ValueError
        If X is sparse and its dense copy takes more than 4 GiB.
    """
    if is_sparse(X):
        refuse_too_large(X.shape[0], X.shape[1], name)
        return X.toarray()
    return X


def refuse_too_large(rows: int, columns: int, name: str) -> None:
    """Raise where a dense array of so many rows of a sparse matrix is beyond 4 GiB."""
    if 8 * rows * columns > LARGEST:
        raise ValueError(
            f"{rows} dense rows of {name} with {columns} columns take "
            f"{8 * rows * columns / 2**30:.3g} GiB, more than {LARGEST // 2**30}; hash or project "
            "the columns to fewer first, or take fewer rows"
        )
