"""Cholesky factors by rows, whole or growing, at the speed of BLAS-3, block by block.

LAPACK's Cholesky is called here and on blocks only: that of OpenBLAS with several threads ends in a
segmentation fault beyond some 16,500 rows on some machines.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import scipy
from threadpoolctl import ThreadpoolController

from oklnumba.core import blas
from oklnumba.core.state import State, pad_row_length
from oklnumba.hot.primitives.linalg import cholesky_row, solve_lower

BLOCK = 512  # rows and columns of a block of the factor
AT_ONCE = 16_384  # rows for which room is made before they come: 2 GiB, of addresses as yet
FEW_ROWS = 2048  # below, a second BLAS thread gains little, and waits long on a busy machine
BLAS = ThreadpoolController()


def threads(rows: int, block: int) -> AbstractContextManager:
    """Return a context in which BLAS uses one thread for a block of a factor with few rows."""
    small = rows < FEW_ROWS and block > 1  # single rounds do not use BLAS
    return BLAS.limit(limits=1, user_api="blas") if small else nullcontext()


def capacity(rows: int, old: int) -> int:
    """Return how many rows to make room for, where ``old`` were not enough for ``rows``."""
    # Later steps are smaller: for a moment the old and the new factor are both there.
    return pad_row_length(max(rows, 64, 2 * old if old < 8192 else old + old // 4))


def expect(learner: State, axis: int, n: int) -> None:
    """Make room for the rows of n rounds to come, where there is some: later it would be copied."""
    rows = int(learner._counts[axis]) + n
    if rows <= AT_ONCE:
        try:
            learner._reserve({axis: rows})
        except MemoryError:  # the rounds will ask for less
            pass


def grown(L: np.ndarray, t: int, rows: int, instead: str) -> np.ndarray:
    """Return room for ``rows`` rows of the factor, of which the first t are taken over.

    Pages that no row reaches are never touched, nor are those above the diagonal.

    Raises
    ------
    MemoryError
        If they do not fit; the message says what to use ``instead``.
    """
    try:
        larger = np.empty((rows, rows))
    except MemoryError:
        raise MemoryError(
            f"a factor of {rows} x {rows} numbers does not fit in memory; {instead}"
        ) from None
    for start in range(0, t, BLOCK):
        stop = min(start + BLOCK, t)
        larger[start:stop, :stop] = L[start:stop, :stop]
    return larger


def packed(L: np.ndarray, t: int) -> np.ndarray:
    """Return the first t rows up to the diagonal, one after the other."""
    return np.concatenate([L[i, : i + 1] for i in range(t)]) if t else np.empty(0)


def unpack(lower: np.ndarray, L: np.ndarray, t: int) -> None:
    """Write back the t rows that ``packed`` returned."""
    start = 0
    for i in range(t):
        L[i, : i + 1] = lower[start : start + i + 1]
        start += i + 1


def solve_rows(L: np.ndarray, rows: np.ndarray, t: int) -> None:
    """Overwrite rows (b, t) by L^-1 of each.

    L : (cap, cap), row-major, lower; rows : row-major, perhaps further ones of L.
    """
    if len(rows) == 1:
        solve_lower(L, rows[0], t)
    else:
        blas.solve_rows(L[:t, :t], rows)


def append_rows(L: np.ndarray, t: int, b: int) -> int:
    """Turn rows t to t + b of L from those of a matrix into those of its factor.

    L : (cap, cap), row-major, of which the first t rows are the factor's; above the diagonal it is
    neither read nor written. Returns 0, or which of the rows, counted from 1, has no positive
    pivot.
    """
    if b == 1:
        return 0 if cholesky_row(L, t) > 0.0 else 1
    rows, corner = L[t : t + b, :t], L[t : t + b, t : t + b]
    blas.solve_rows(L[:t, :t], rows)
    blas.subtract_squares(rows, corner)
    return blas.cholesky(corner)


def cholesky(A: np.ndarray) -> np.ndarray:
    """Overwrite the lower triangle of A, row-major, by its factor; return A.

    Raises
    ------
    scipy.linalg.LinAlgError
        If A is not positive definite to double precision.
    """
    for start in range(0, len(A), BLOCK):
        rows = min(BLOCK, len(A) - start)
        with threads(start, rows):
            status = append_rows(A, start, rows)
        if status:
            raise scipy.linalg.LinAlgError(f"the pivot of row {start + status - 1} is not positive")
    return A


def solve_positive(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return A^-1 b for a positive definite A, row-major, which is spoilt.

    Raises
    ------
    scipy.linalg.LinAlgError
        If A is not positive definite to double precision.
    """
    return solve(cholesky(A), b)


def solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return (L L')^-1 b for a lower factor; above its diagonal it is not read."""
    half = scipy.linalg.solve_triangular(L, b, lower=True, check_finite=False)
    return scipy.linalg.solve_triangular(L, half, lower=True, trans=1, check_finite=False)


def inverse_diagonal(L: np.ndarray) -> np.ndarray:
    """Return the diagonal of (L L')^-1 for a lower factor, row-major."""
    out = np.empty(len(L))
    for start in range(0, len(L), BLOCK):
        rows = np.eye(min(BLOCK, len(L) - start), len(L) - start)
        solve_rows(L[start:, start:], rows, len(L) - start)
        out[start : start + BLOCK] = np.einsum("ij,ij->i", rows, rows)
    return out
