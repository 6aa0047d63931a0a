"""Best functions of many rounds without a kernel matrix, with an interval that holds the optimum.

Squared loss: P(f) = sum (y - f)^2 + lam |f|^2 has the dual D(a) = 2 a'y - |a|^2 - a'Ka / lam, with
D(a) <= min P <= P(K a / lam) for every a, and P - D = |y - a - K a / lam|^2. The product K a gives
both, so the interval is right wherever a solver stops.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from oklnumba.components.features import Features
from oklnumba.components.losses import Loss
from oklnumba.core import cholesky
from oklnumba.core.guard import one_blas_thread
from oklnumba.hot.primitives.losses import loss_derivatives
from oklnumba.theory.comparators import Comparator, best_weights
from oklnumba.theory.matrix import EPS, kernel_times, rounding_share

MAX_STEPS = 30  # of conjugate gradients
BLOCK_ROWS = 4096  # whose features are computed at a time


class Preconditioner:
    """Ridge regression on features that each pass computes again: O(r^2) memory."""

    def __init__(self, features: Features, X: np.ndarray, lam: float):
        self._write, r = features._writer(X.shape[1])
        self._X, self._rows = X, np.empty((min(BLOCK_ROWS, len(X)), r))
        A = lam * np.eye(r)
        for _, Z in self._parts():
            A += Z.T @ Z
        self._L = cholesky.factor_matrix(A)

    def _parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(self._X), BLOCK_ROWS):
            part = np.array(self._X[start : start + BLOCK_ROWS], order="C")
            Z = self._rows[: len(part)]
            self._write(part, Z)
            yield slice(start, start + BLOCK_ROWS), Z

    def residual(self, v: np.ndarray) -> np.ndarray:
        """Return (I + Z Z' / lam)^-1 v, the residual of ridge regression on v."""
        b = np.zeros(len(self._L))
        for rows, Z in self._parts():
            b += v[rows] @ Z
        w = cholesky.solve(self._L, b)
        out = v.copy()
        for rows, Z in self._parts():
            out[rows] -= Z @ w
        return out


def bound_minimum(
    y: np.ndarray, lam: float, roots: np.ndarray, share: float, a: np.ndarray, Ka: np.ndarray,
    size: float,
) -> Comparator:  # fmt: skip
    """Return f = K a / lam and the interval of min P, with margins for rounding.

    ``roots`` are sqrt(k(x_i, x_i)), ``share`` is that of ``rounding_share``, and ``size`` at least
    sum sqrt(k(x_i, x_i)) |a_i|.
    """
    f, sums = Ka / lam, 2.0 * EPS * 64  # the rounding of NumPy's pairwise sums
    square, aligned = float((a * a).sum()), float((a * y).sum())
    form = float((a * Ka).sum())
    loose = share * size**2 / lam + sums * (square + float(np.abs(a * y).sum()))
    # D at the best multiple of a: (a'y)^2 / (|a|^2 + a'Ka / lam)
    below = max(aligned - loose, 0.0) ** 2 / (square + max(form, 0.0) / lam + loose)
    loss = float(np.square(y - f).sum())
    off = share * size * float(np.linalg.norm(roots)) / lam  # of |y - f|
    above = (np.sqrt(loss) * (1.0 + sums) + off) ** 2 + max(form, 0.0) / lam + loose
    return Comparator(loss, float(np.sqrt(max(form, 0.0))) / lam, f, below, float(above))


def conjugate_gradients(
    kernel: Any, X: np.ndarray, y: np.ndarray, lam: float, features: Features, gap: float
) -> Comparator:
    """Return the best function for squared loss to ``gap`` of its objective, or to MAX_STEPS steps.

    Conjugate gradients on (I + K / lam) a = y, preconditioned by ridge regression on the features,
    with one product with K per step.
    """
    # The products use our threads, and BLAS threads are slow on a busy machine.
    with one_blas_thread:
        near, roots = Preconditioner(features, X, lam), np.sqrt(kernel.diag(X))
        share = rounding_share(kernel, *X.shape)
        a, Ka, r = np.zeros(len(y)), np.zeros(len(y)), y.copy()
        p, rho, size = np.zeros(len(y)), 1.0, 0.0
        best = Comparator(float(y @ y), 0.0, np.zeros(len(y)), 0.0, float(y @ y))  # f = 0
        for _ in range(MAX_STEPS):
            z = near.residual(r)
            before, rho = rho, float(r @ z)
            p = z + (rho / before) * p
            Kp = kernel_times(kernel, X, p)
            curved = float(p @ p) + float(p @ Kp) / lam
            if not (rho > 0.0 and curved > 0.0):  # only rounding remains
                break
            step = rho / curved
            a += step * p
            Ka += step * Kp
            r -= step * (p + Kp / lam)
            size += abs(step) * float((roots * np.abs(p)).sum())
            now = bound_minimum(y, lam, roots, share, a, Ka, size)
            lower = max(best.lower, now.lower)
            best = (now if now.upper <= best.upper else best)._replace(lower=lower)
            width = best.upper - best.lower
            if width <= gap * best.upper or float(r @ r) <= 0.1 * width:  # else rounding
                break
        return best


def extend_to_rkhs(
    kernel: Any, X: np.ndarray, y: np.ndarray, lam: float, features: Features, loss: Loss
) -> Comparator:
    """Return a function of the RKHS for any loss, and the interval of the minimum.

    The dual variables a of the best function of a span are feasible for the whole RKHS. They have
    the function f = s K a / (2 lam), s < 1 if the span is poor: f may then be worse than that one.
    """
    Z = features.transform(X)
    best, weights = best_weights(Z, y, lam, loss)
    a = weights.dual
    Ka, captured = kernel_times(kernel, X, a), a @ Z
    form, roots = float((a * Ka).sum()), np.sqrt(kernel.diag(X))
    off = rounding_share(kernel, *X.shape) * float((roots * np.abs(a)).sum()) / (2.0 * lam)  # of f
    loose = off * float((roots * np.abs(a)).sum())
    # D(s a) >= s sum -l*(-a_i) - s^2 a'Ka / (4 lam) for s in [0, 1], as every loss has infimum 0
    value = best.loss + lam * best.norm**2
    linear = value - weights.gap - 2.0 * (best.upper - value)  # less rounding, there and here
    linear += float(captured @ captured) / (4.0 * lam)
    quadratic = max(form, 0.0) / (4.0 * lam) + loose
    s = min(1.0, max(linear, 0.0) / (2.0 * quadratic)) if quadratic > 0.0 else 1.0
    lower = s * linear - s**2 * quadratic
    f, slopes = s * Ka / (2.0 * lam), np.empty(len(y))
    loss_derivatives(loss.code, f, y, slopes)
    total, norm = float(loss.value(f, y).sum()), s * float(np.sqrt(max(form, 0.0))) / (2.0 * lam)
    loose += off * float((roots * np.maximum(np.abs(slopes), 1.0)).sum())
    upper = total + lam * norm**2
    loose += EPS * 64 * upper  # of NumPy's sums
    return Comparator(total, norm, f, max(lower, 0.0), upper + loose)
