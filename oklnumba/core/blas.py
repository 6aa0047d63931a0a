"""BLAS and LAPACK on the rows of matrices where they lie: no copies, and without the GIL.

The functions are SciPy's, for NumPy brings a second OpenBLAS, and the threads of the two get into
each other's way. SciPy's own wrappers want whole Fortran-ordered arrays and copy everything else;
the pointers that it exports for Cython take a leading dimension, so rows of a larger, row-major
array are worked on in place. Compiled loops cannot call such pointers and stay in numba's cache:
they are called from Python, through ctypes, which lets the GIL go.

A row-major (m, k) array is a column-major (k, m) one: lower triangles are upper ones there.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import scipy

_NUMBER = 8  # bytes of a float64
_NAME = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi)
)
_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@cache
def exported(module: str, name: str, arguments: str) -> Callable[..., None]:
    """Return a function that SciPy exports for Cython; only its first use loads scipy.linalg.

    Parameters
    ----------
    module : str
        Of scipy.linalg: cython_blas or cython_lapack.
    name : str
    arguments : str
        The types it must have, all pointers: a letter each, "c" char, "i" int, "d" double.

    Raises
    ------
    ImportError
        If SciPy exports it with other types: with integers of 64 bits, say.
    """
    capsule = getattr(scipy.linalg, module).__pyx_capi__[name]
    signature = _NAME(capsule)
    types = {"c": "char", "i": "int", "d": "double"}
    expected = f"void ({', '.join(f'{types[letter]} *' for letter in arguments)})"
    found = re.sub(r"\b__pyx_t_\w+_d\b", "double", signature.decode())
    if found != expected:
        raise ImportError(
            f"this SciPy exports {name} as {found}, where {expected} is expected: "
            "install SciPy from its wheels, or from a build with 32-bit BLAS integers"
        )
    pointers = (ctypes.c_void_p,) * len(arguments)
    return ctypes.CFUNCTYPE(None, *pointers)(_POINTER(capsule, signature))


_MINUS, _ONE = (ctypes.byref(ctypes.c_double(value)) for value in (-1.0, 1.0))


def _whole(value: int):
    return ctypes.byref(ctypes.c_int(value))


def _place(A: np.ndarray, rows: int, columns: int, written: bool = False) -> tuple:
    """Return the address of A and its leading dimension; refuse what BLAS would misread."""
    fits = A.ndim == 2 and A.shape == (rows, columns) and A.dtype == np.float64
    stride = max(columns, 1) if rows < 2 else A.strides[0] // _NUMBER
    dense = A.size == 0 or columns == 1 or A.strides[1] == _NUMBER
    if not (fits and dense and columns <= stride < 2**31 and (A.flags.writeable or not written)):
        raise ValueError(
            f"BLAS needs ({rows}, {columns}) float64 numbers, adjacent in each row"
            f"{' and writeable' if written else ''}; got {A.shape}, {A.dtype}, strides {A.strides}"
        )
    return A.__array_interface__["data"][0], _whole(max(stride, 1))


def subtract_squares(A: np.ndarray, C: np.ndarray) -> None:
    """Take A A' off the lower triangle of C; above, C is neither read nor written.

    Parameters
    ----------
    A : (m, k) array
    C : (m, m) array, apart from A
        Both row-major, each perhaps a part of the rows of a larger array.

    Raises
    ------
    ValueError
        If they do not lie so, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from oklnumba.core import blas
    >>> C = np.zeros((2, 2))
    >>> blas.subtract_squares(np.array([[1.0, 2.0], [3.0, 4.0]]), C)
    >>> C
    array([[ -5.,   0.],
           [-11., -25.]])
    """
    m, k = A.shape
    (a, lda), (c, ldc) = _place(A, m, k), _place(C, m, m, written=True)
    if m and k:
        dsyrk = exported("cython_blas", "dsyrk", "cciiddiddi")
        dsyrk(b"U", b"T", _whole(m), _whole(k), _MINUS, a, lda, _ONE, c, ldc)


def solve_rows(L: np.ndarray, A: np.ndarray) -> None:
    """Overwrite each row of A by L^-1 of it.

    Parameters
    ----------
    L : (k, k) array
        Lower triangular; above its diagonal it is not read.
    A : (m, k) array, apart from L's triangle
        Both row-major, each perhaps a part of the rows of a larger array.

    Raises
    ------
    ValueError
        If they do not lie so, in float64.
    """
    m, k = A.shape
    (factor, ld), (a, lda) = _place(L, k, k), _place(A, m, k, written=True)
    if m and k:
        dtrsm = exported("cython_blas", "dtrsm", "cccciiddidi")
        dtrsm(b"L", b"U", b"T", b"N", _whole(k), _whole(m), _ONE, factor, ld, a, lda)


def cholesky(A: np.ndarray) -> int:
    """Overwrite the lower triangle of A by its factor; above, A is neither read nor written.

    Parameters
    ----------
    A : (k, k) array, row-major, perhaps a part of the rows of a larger array

    Returns
    -------
    int
        0, or which row, counted from 1, has no positive pivot.

    Raises
    ------
    ValueError
        If it does not lie so, in float64.
    """
    k, status = len(A), ctypes.c_int(0)
    a, ld = _place(A, k, k, written=True)
    if k:
        dpotrf = exported("cython_lapack", "dpotrf", "cidii")
        dpotrf(b"U", _whole(k), a, ld, ctypes.byref(status))
    return status.value
