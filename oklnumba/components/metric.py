"""A metric that is learned from data: inputs scaled by the mean squares of a fit's gradient."""

from __future__ import annotations

import numpy as np
import scipy

from oklnumba.components.kernels import Kernel
from oklnumba.core.cholesky import limit_blas, solve_positive

ROWS = 1024  # rows whose kernel values are in memory at once
SAMPLE = 512  # most inputs whose distances give the median
JITTER = 1e-8  # share of the mean diagonal added to a system, far above its rounding


def measure_gradients(
    kernel: Kernel, Z: np.ndarray, y: np.ndarray, lam: float, chosen: np.ndarray
) -> np.ndarray:
    """Return the mean over rows of (df/dz_i)^2, (d,), of a Nystrom ridge f + b of y on Z.

    f minimises sum_t (y_t - f(z_t) - b)^2 + lam |f|^2 over the span of the kernel at the chosen
    rows; b is free. O(n m (m + d)) time for m of them, and O((1024 + m) (m + d)) memory.

    Z : (n, d); y : (n,); chosen : (m,), numbers of rows.
    """
    atoms, m = np.ascontiguousarray(Z[chosen]), len(chosen)
    blocks = [slice(start, start + ROWS) for start in range(0, len(Z), ROWS)]
    A, b, total, y = np.zeros((m, m)), np.zeros(m), np.zeros(m), y - y.mean()
    squares = np.zeros(Z.shape[1])
    with limit_blas():  # the sums would depend on the number of threads
        for rows in blocks:
            F = kernel(Z[rows], atoms)
            A += F.T @ F
            b += y[rows] @ F
            total += F.sum(axis=0)
        A += lam * kernel(atoms) - np.outer(total, total / len(Z))
        A[np.diag_indices(m)] += max(JITTER * A.trace() / m, np.finfo(float).tiny)
        a = solve_positive(A, b)
        for rows in blocks:
            squares += (kernel._gradients(Z[rows], atoms, a) ** 2).sum(axis=0)
    return squares / len(Z)


def measure_scales(
    kernel: Kernel,
    X: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    rng: np.random.Generator,
    lam: float = 1.0,
    atoms: int = 300,
    floor: float = 1e-3,
) -> np.ndarray:
    """Return the scales of inputs, (d,), by one fit on inputs scaled by w.

    A pass of ``learned_metric``. The median distance of inputs stays that of X. Same numbers, whatever the threads of BLAS.

    X : (n, d); y : (n,); w : (d,), ones in the first pass; all plain arrays, which are not checked.
    """
    chosen = np.sort(rng.choice(len(X), min(atoms, len(X)), replace=False))
    g = measure_gradients(kernel, X * w, y, lam, chosen) * w * w
    mean = g.mean()
    if not mean > 0.0:
        return np.ones_like(w)
    w = np.sqrt(g / mean + floor)
    few = X[np.linspace(0, len(X) - 1, min(SAMPLE, len(X))).astype(int)]
    return w * (_measure_median(few) / _measure_median(few * w))


def _measure_median(X: np.ndarray) -> float:
    """Return the median distance of different rows; 1 if there are none."""
    distances = scipy.spatial.distance.pdist(X)
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if len(distances) else 1.0
