"""Cholesky factors, whole or growing by rows, at the speed of BLAS-3, block by block and in place.

LAPACK's Cholesky is called on blocks only: on whole matrices of some 16,500 rows OpenBLAS with
several threads crashes on some machines.

The functions of BLAS are those that SciPy exports for Cython. They take a leading dimension, so
they work in place on rows of a larger array; SciPy's wrappers would copy. They are called through
ctypes, which releases the GIL; numba could not cache loops that call them. NumPy's OpenBLAS is a
second one, whose threads would slow those of SciPy's. A row-major (m, k) array is a column-major
(k, m) one: lower triangles are upper ones there.
"""

import ctypes
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
import scipy

from oklnumba.core.guard import one_blas_thread
from oklnumba.hot.primitives.linalg import cholesky_row, solve_lower

BLOCK = 512  # rows and columns of a block of the factor
SOLVED = 128  # columns that are solved for in one go
FEW_ROWS = 2048  # below, a second BLAS thread gains little, and is slow on a busy machine

# ---- BLAS and LAPACK ----

_python = ctypes.pythonapi
_get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", _python))
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)


@cache
def _load(module: str, name: str, arguments: str) -> Callable[..., None]:
    """Return a function of SciPy, with the types of its pointers: "c" char, "i" int, "d" double."""
    capsule = getattr(scipy.linalg, module).__pyx_capi__[name]
    signature = _get_name(capsule)
    types = {"c": "char", "i": "int", "d": "double"}
    expected = f"void ({', '.join(f'{types[letter]} *' for letter in arguments)})"
    exported = re.sub(r"\b__pyx_t_\w+_d\b", "double", signature.decode())
    if exported != expected:
        raise ImportError(f"SciPy exports {name} as {exported}, not {expected}; install its wheel")
    pointers = (ctypes.c_void_p,) * len(arguments)
    return ctypes.CFUNCTYPE(None, *pointers)(_get_pointer(capsule, signature))


_MINUS, _ONE = (ctypes.byref(ctypes.c_double(value)) for value in (-1.0, 1.0))


def _int(value: int):
    return ctypes.byref(ctypes.c_int(value))


def _locate(A: np.ndarray) -> tuple:
    """Return the address of A, (m, k), and its leading dimension."""
    m, k = A.shape
    if A.dtype != np.float64 or (m and k > 1 and A.strides[1] != 8):
        raise ValueError(f"BLAS needs adjacent float64 numbers, not {A.dtype}, {A.strides}")
    return A.__array_interface__["data"][0], _int(A.strides[0] // 8 if m > 1 and k else max(k, 1))


def subtract_squares(A: np.ndarray, C: np.ndarray) -> None:
    """Subtract A A', A (m, k), from the lower triangle of C (m, m); above, C is not touched.

    Both may be rows of larger row-major arrays.
    """
    (m, k), (a, lda), (c, ldc) = A.shape, _locate(A), _locate(C)
    dsyrk = _load("cython_blas", "dsyrk", "cciiddiddi")
    dsyrk(b"U", b"T", _int(m), _int(k), _MINUS, a, lda, _ONE, c, ldc)


def add_squares(F: np.ndarray, A: np.ndarray) -> None:
    """Add F' F, F (k, m), to the lower triangle of A (m, m), row-major; above, A is not touched."""
    (k, m), (f, ldf), (a, lda) = F.shape, _locate(F), _locate(A)
    dsyrk = _load("cython_blas", "dsyrk", "cciiddiddi")
    dsyrk(b"U", b"N", _int(m), _int(k), _ONE, f, ldf, _ONE, a, lda)


def _subtract_product(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> None:
    """Subtract A B', A (m, k) and B (n, k), from C (m, n)."""
    (a, lda), (b, ldb), (c, ldc) = map(_locate, (A, B, C))
    shape = map(_int, (len(B), *A.shape))
    dgemm = _load("cython_blas", "dgemm", "cciiiddididdi")
    dgemm(b"T", b"N", *shape, _MINUS, b, ldb, a, lda, _ONE, c, ldc)


def _solve_block(L: np.ndarray, A: np.ndarray) -> None:
    """Overwrite each row of A (m, k) by L^-1 of it; above the diagonal L (k, k) is not read."""
    m, k = A.shape
    if min(m, k) > SOLVED:  # in halves, as dgemm is up to 1.5 times as fast as dtrsm
        half = -(-k // SOLVED) // 2 * SOLVED
        _solve_block(L[:half, :half], A[:, :half])
        _subtract_product(A[:, :half], L[half:, :half], A[:, half:])
        _solve_block(L[half:, half:], A[:, half:])
        return
    (factor, ld), (a, lda) = _locate(L), _locate(A)
    dtrsm = _load("cython_blas", "dtrsm", "cccciiddidi")
    dtrsm(b"L", b"U", b"T", b"N", _int(k), _int(m), _ONE, factor, ld, a, lda)


def factor_block(A: np.ndarray) -> int:
    """Overwrite the lower triangle of A by its factor; above, A is not touched.

    Returns 0, or which row, counted from 1, has no positive pivot.
    """
    (a, ld), status = _locate(A), ctypes.c_int(0)
    dpotrf = _load("cython_lapack", "dpotrf", "cidii")
    dpotrf(b"U", _int(len(A)), a, ld, ctypes.byref(status))
    return status.value


# ---- a factor that grows: L (cap, cap), row-major, whose first t rows are in use ----


def limit_threads(rows: int, block: int) -> AbstractContextManager:
    """Return a context in which BLAS uses one thread if the factor has few rows."""
    small = rows < FEW_ROWS and block > 1  # single rounds hardly use BLAS
    return one_blas_thread if small else nullcontext()


def solve_rows(L: np.ndarray, rows: np.ndarray, t: int) -> None:
    """Overwrite rows (b, t), perhaps later ones of L, by L^-1 of each."""
    if len(rows) == 1:
        solve_lower(L, rows[0], t)
    else:
        _solve_block(L[:t, :t], rows)


def append_rows(L: np.ndarray, t: int, b: int) -> int:
    """Turn rows t to t + b of L from those of a matrix into those of its factor.

    Above the diagonal L is neither read nor written. Returns as ``factor_block`` does.
    """
    if b == 1:
        return 0 if cholesky_row(L, t) > 0.0 else 1
    rows, corner = L[t : t + b, :t], L[t : t + b, t : t + b]
    _solve_block(L[:t, :t], rows)
    subtract_squares(rows, corner)
    return factor_block(corner)


# ---- a whole matrix; LinAlgError if it is not positive definite to double precision ----


def factor_matrix(A: np.ndarray) -> np.ndarray:
    """Overwrite the lower triangle of A, row-major, by its factor; return A."""
    for start in range(0, len(A), BLOCK):
        rows = min(BLOCK, len(A) - start)
        with limit_threads(start, rows):
            status = append_rows(A, start, rows)
        if status:
            raise scipy.linalg.LinAlgError(f"the pivot of row {start + status - 1} is not positive")
    return A


def solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return (L L')^-1 b for a lower factor, which is not read above its diagonal."""
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
