"""The kernel matrix of a stream: factors, low-rank roots, products and their rounding."""

from functools import partial
from typing import Any

import numpy as np
import scipy

from oklnumba.components.kernels import Polynomial, kernel_code
from oklnumba.core import cholesky
from oklnumba.core.guard import run_together
from oklnumba.core.inputs import scale_columns
from oklnumba.hot.primitives.rows import EDGE, kernel_product

SHARES = 8  # of a product, one per thread: fixed, so that results do not depend on the cores
PIVOTS = 256  # columns of a square root computed at a time
SPREAD = 0.1  # pivots of one block are at least this share of its largest
EPS = float(np.finfo(float).eps)


def factor_kernel(kernel: Any, X: np.ndarray, lam: float) -> np.ndarray:
    """Return a matrix whose lower triangle is the Cholesky factor of K + lam I; above it is K."""
    return factor_shifted(kernel(X), lam)


def factor_shifted(K: np.ndarray, lam: float) -> np.ndarray:
    """Overwrite the lower triangle of K by the Cholesky factor of K + lam I; return K."""
    K[np.diag_indices_from(K)] += lam
    try:
        return cholesky.factor_matrix(K)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            f"K + lam I is not positive definite to double precision at lam = {lam!r}; raise lam"
        ) from None


def kernel_times(kernel: Any, X: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return K v without the matrix K, computing k(x, z) once per pair, on all cores.

    O(n^2 d) time and O(n) memory. If the values of the kernel are exact, entry i is within
    (EDGE + n / 256 + SHARES) eps sum_j |K_ij v_j| of the truth.
    """
    coded = kernel_code(kernel)
    # Copies: the loop would be compiled again for read-only arrays.
    X = np.array(scale_columns(X, kernel._scales), order="C")
    v = np.array(v, dtype=float)
    parts = np.zeros((SHARES, len(X)))

    def compute_share(number: int) -> None:
        rooms = np.empty((X.shape[1], EDGE)), np.empty(EDGE), np.empty(EDGE)
        kernel_product(coded, X, v, number, SHARES, *rooms, parts[number])

    run_together([partial(compute_share, number) for number in range(SHARES)])
    return parts.sum(axis=0)


def residual_energy(kernel: Any, X: np.ndarray, F: np.ndarray) -> float:
    """Return lambda_max(K - F F'), at least 0. F : (n, r)."""
    gap, n = kernel(X) - F @ F.T, len(X)
    top = scipy.linalg.eigh(gap, eigvals_only=True, subset_by_index=[n - 1, n - 1])
    return max(float(top[0]), 0.0)


def rounding_share(kernel: Any, n: int, d: int) -> float:
    """Return c with |fl(v'K v) - v'K v| <= c (sum_i sqrt(k(x_i, x_i)) |v_i|)^2, with a margin of 2.

    A computed value k(x, z) is within (d + 4) eps sqrt(k(x, x) k(z, z)) of the truth for radial
    kernels (t e^-t < 1), degree times as much for polynomial ones (Cauchy-Schwarz). A kernel of the
    user's own is taken to be as exact as radial ones. Then come the sums of ``kernel_times`` and
    NumPy's pairwise sum over i. First order in eps.
    """
    inner = getattr(kernel, "kernel", kernel)  # of a Metric
    value = (d + 4.0) * (inner.degree if isinstance(inner, Polynomial) else 1.0)
    return 2.0 * EPS * (value + EDGE + n / 256 + SHARES + 64)


def square_root(kernel: Any, X: np.ndarray, tol: float | None = None) -> np.ndarray:
    """Return F (n, r) with F F' = K to rounding: a pivoted Cholesky factor, in O(n r) memory.

    Each block takes the largest entries of the remaining diagonal as pivots, down to SPREAD times
    the first, so that rounding grows as with complete pivoting. It ends when no entry is above
    ``tol``; None: n eps max(diag), as in LAPACK's dpstrf.
    """
    return pivoted_cholesky(kernel, X, tol)[0]


def pivoted_cholesky(
    kernel: Any, X: np.ndarray, tol: float | None = None, most: int | None = None,
    seed: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return F of ``square_root`` and its pivots, rows of X; at most ``most`` of them.

    With a seed pivots are drawn in proportion to the remaining diagonal (Chen, Epperly, Tropp,
    Webber 2022, block by block), which approximates K better than the largest entries do.
    """
    delta = kernel.diag(X)
    n = len(delta)
    most = n if most is None else most
    tol = n * EPS * float(delta.max()) if tol is None else tol
    F, r, pivots = np.empty((n, PIVOTS)), 0, np.empty(0, int)
    rng = np.random.default_rng(seed)
    while float(delta.max()) > tol and r < most:
        if seed is None:
            take = np.argsort(-delta, kind="stable")[:PIVOTS]
        else:
            left = np.where(delta > tol, delta, 0.0)  # the others are rounding
            size = min(PIVOTS, int(np.count_nonzero(left)))
            take = rng.choice(n, size, replace=False, p=left / left.sum())
            take = take[np.argsort(-delta[take], kind="stable")]
        take = take[delta[take] > tol][: most - r]
        block = kernel(X[take]) - F[take, :r] @ F[take, :r].T
        least = max(tol, SPREAD * float(delta[take[0]]))
        factored = scipy.linalg.lapack.dpstrf(np.asfortranarray(block), lower=1, tol=least)
        block, order, rank = factored[:3]
        if rank == 0:  # the remaining diagonal is only rounding
            delta[take] = 0.0
            continue
        take = take[order[:rank] - 1]
        if r + rank > F.shape[1]:
            F = np.concatenate([F, np.empty((n, max(F.shape[1] // 2, PIVOTS)))], axis=1)
        columns = kernel(X, X[take]) - F[:, :r] @ F[take, :r].T
        new = scipy.linalg.solve_triangular(block[:rank, :rank], columns.T, lower=True).T
        F[:, r : r + rank] = new
        delta = np.maximum(delta - np.einsum("ij,ij->i", new, new), 0.0)
        delta[take] = 0.0
        pivots, r = np.append(pivots, take), r + rank
    return F[:, :r], pivots
