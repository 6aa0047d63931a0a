"""Kernels of scaled inputs, and scales learned from data by the mean squares of a gradient."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.components.kernels import Kernel, check_kernel, compute_gradients, refuse_precomputed
from oklnumba.core import checks, inputs
from oklnumba.core.cholesky import add_squares, factor_matrix, solve
from oklnumba.core.guard import Paced, finish, one_blas_thread
from oklnumba.core.params import required

FIT_ROWS = 128  # rows of a piece of the fit; a piece of gradients has twice as many
ADVICE_ROWS = 256  # first rows, which must suit the kernel
JITTER = 1e-10  # share of the mean diagonal added to a matrix, above its rounding


def _check_scales(name: str, value: Any) -> np.ndarray:
    w = inputs.as_numbers(value, name)
    checks.require(w.ndim == 1 and len(w) > 0, name, value, "1-D, a number for each column of X")
    for i in np.flatnonzero((w < 0.0) | (w > 1e100))[:1]:
        checks.require_within(f"{name}[{i}]", w[i].item(), "[0, 1e100]")
    return w


class Metric(Kernel):
    """A kernel of scaled inputs, k(w * x, w * z).

    Parameters
    ----------
    kernel : Kernel
        k, not a Metric itself.
    scales : array_like of shape (d,)
        w, from 0 to 1e100, one per column of the inputs; 0 leaves its column out.

    Remarks
    -------
    The ``atoms`` of learners are scaled, w * x; those of samplers are x. All kernels of a learner
    have the same scales.

    Examples
    --------
    >>> okl.Metric(okl.Gaussian(1.0), [1.0, 0.0])([[0.0, 0.0]], [[1.0, 7.0]]).round(4)
    array([[0.6065]])
    """

    kernel: Kernel = required(check_kernel)
    scales: ArrayLike = required(_check_scales)

    @property
    def _scales(self) -> np.ndarray:
        return np.asarray(self.scales, dtype=float)

    def _check_params(self) -> None:
        domain = "a kernel without a Metric; multiply the scales, okl.Metric(kernel.kernel, a * b)"
        checks.require(not isinstance(self.kernel, Metric), "kernel", self.kernel, domain)
        refuse_precomputed(self.kernel, "Metric")

    def _write_block(self, X: np.ndarray, atoms: np.ndarray, m: int, out: np.ndarray) -> None:
        self.kernel._write_block(X, atoms, m, out)

    def _code(self) -> tuple[int, np.ndarray]:
        return self.kernel._code()

    def advice(self, X: np.ndarray) -> str | None:
        """Return the advice of the kernel within about the first inputs, scaled."""
        X = inputs.make_dense(inputs.as_rows(X))
        return self.kernel.advice(inputs.scale_columns(X, self._checked_params().scales))


def as_list(value: Any) -> list[Any]:
    """Return the items of a list or a tuple, or the one object, as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def split_metric(name: str, value: Any) -> tuple[Any, np.ndarray | None]:
    """Return a kernel, or kernels, that take scaled inputs, and the scales, one set for all."""
    kernels = as_list(value)
    scales: list[Any] = [getattr(one, "_scales", None) for one in kernels]
    if any(not np.array_equal(w, scales[0]) for w in scales):
        raise ValueError(f"{name} must share one metric; give each the same scales, or none any")
    if scales[0] is None:
        return value, None
    inner = [one.kernel for one in kernels]
    return inner if isinstance(value, list | tuple) else inner[0], scales[0]


def measure_scales(
    kernel: Kernel, X: np.ndarray, y: np.ndarray, w: np.ndarray, rng: np.random.Generator,
    lam: float = 1.0, atoms: int = 300, floor: float = 1e-3,
) -> Paced[np.ndarray]:  # fmt: skip
    """Return scales, (d,), by a fit of y on X * w: one pass of ``learned_metric``, in pieces.

    f and b minimise sum_t (y_t - f(w * x_t) - b)^2 + lam |f|^2, f in the span of the kernel at
    some rows. X : (n, d), y : (n,) and w : (d,) are not checked. Each output of y : (n, K) has a
    fit, and the squares of all gradients add up.
    """
    n, Z = len(X), X * w
    C = Z[np.sort(rng.choice(n, min(atoms, n), replace=False))]
    Y = (y - y[0]).reshape(n, -1)  # so that constant labels become exactly 0
    Y = (Y - Y.mean(axis=0)) / np.maximum(np.abs(Y).max(axis=0), np.finfo(float).tiny)
    A, b, total = np.zeros((len(C), len(C))), np.zeros((len(C), Y.shape[1])), np.zeros(len(C))
    squares, blocks = np.zeros_like(w), [slice(t, t + FIT_ROWS) for t in range(0, n, FIT_ROWS)]
    columns, buffer = np.ascontiguousarray(C.T), np.empty((FIT_ROWS, len(C)))
    for rows in blocks:
        F = buffer[: len(Z[rows])]
        kernel._write_block(Z[rows], columns, len(C), F)
        with one_blas_thread:
            add_squares(F, A)
            b += F.T @ Y[rows]
        total += F.sum(axis=0)
        yield
    A += lam * kernel(C) - np.outer(total, total / n)
    A[np.diag_indices(len(C))] += JITTER * A.trace() / len(C) + np.finfo(float).tiny
    yield
    with one_blas_thread:
        a = solve(factor_matrix(A), b)
    yield
    for t in range(0, n, 2 * FIT_ROWS):
        with one_blas_thread:
            for gradients in compute_gradients(kernel, Z[t : t + 2 * FIT_ROWS], C, a):
                squares += (gradients**2).sum(axis=0)
        yield
    g = np.where(np.ptp(X, axis=0) > 0.0, squares * w * w, 0.0)  # a constant column says nothing
    if not g.any():
        return np.ones_like(w)
    w, deviations = np.sqrt(g / g.mean() + floor), X.std(axis=0)
    p = getattr(kernel, "norm", 2)
    return w * ((deviations**p).sum() / ((w * deviations) ** p).sum()) ** (1 / p)


def learned_metric(
    kernel: Kernel, X: ArrayLike, y: ArrayLike, *, lam: float = 1.0, passes: int = 2,
    atoms: int = 300, floor: float = 1e-3, seed: int = 0,
) -> Metric:  # fmt: skip
    """Return the kernel with inputs scaled by how much the labels depend on each column.

    With f a kernel ridge regression of y on X, w_i = sqrt(g_i / mean(g) + floor), where g_i =
    mean_t (df/dx_i)^2 is the expected squared gradient (Trivedi et al. 2014). Each further pass
    fits on w * x (recursive feature machines, Radhakrishnan et al. 2024, here diagonal). The scales
    are w, times a number that keeps the norm of the columns' deviations, so that sigma keeps its
    meaning; 1 if f is constant. A pass takes O(n m (m + d)) time for m atoms.

    Parameters
    ----------
    kernel : Kernel
        Of the fits. If it is a Metric, the first fit is on its scaled inputs.
    X : array_like of shape (n, d)
        Rows that you do not play later, because the scales depend on their labels; the columns on
        one scale, as by ``okl.datasets.scale_to(X)``.
    y : array_like of shape (n,)
        Numbers; two classes are -1 and +1.
    lam : float > 0
        Regularisation of the fits, which have an intercept.
    passes : int >= 1
        With more than two the scales of most columns may be nearly 0.
    atoms : int >= 1
        Rows drawn for Nystrom.
    floor : float in [0, 1]
        Keeps scales above 0.
    seed : int

    Remarks
    -------
    ``Laplacian`` has no gradient at an atom, nor, with ``norm=1``, along a column in which an input
    equals an atom. The gradient counts as 0 there.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    >>> okl.learned_metric(okl.Gaussian(1.0), X, np.sin(3 * X[:, 1])).scales.round(1)
    array([0. , 1.8, 0. ])
    """
    lam, passes = checks.require_positive("lam", lam), checks.require_count("passes", passes, 1)
    atoms = checks.require_count("atoms", atoms, 1)
    floor = checks.require_within("floor", floor, "[0, 1]")
    rng = np.random.default_rng(checks.require_seed("seed", seed))
    inner, w = split_metric("kernel", check_kernel("kernel", kernel))
    X = inputs.as_inputs(X)
    y = inputs.as_labels(y, len(X))
    if advice := kernel.advice(X[:ADVICE_ROWS]):
        raise ValueError(advice)
    w = np.ones(X.shape[1]) if w is None else w
    for _ in range(passes):
        w = finish(measure_scales(inner, X, y, w, rng, lam, atoms, floor))
    return Metric(inner, w)
