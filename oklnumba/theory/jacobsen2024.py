"""Bounds of Jacobsen and Cutkosky 2024 (ICML): online linear regression with a discount."""

from math import sqrt

import numpy as np
import scipy
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import require, require_discount
from oklnumba.theory.arguments import checks_arguments


@checks_arguments(discount=require_discount)
def discounted_awv_bound(
    Z: ArrayLike, y: ArrayLike, lam: float, discount: float, comparators: ArrayLike,
    sizes: ArrayLike | None = None,
) -> np.ndarray:  # fmt: skip
    """Return the bound on the dynamic regret of discounted AWV, after every round, shape (n,).

    sum_t (y_t - f_t)^2 - sum_t (y_t - u_t.z_t)^2 of the forecasts f_t of PKAWV or LinearAWV with
    this lam and discount g, against any sequence u_1, ..., u_n, is at most

        lam |u_1|^2 + sum_t y_t^2 z_t' A_t^-1 z_t + sum_{t<n} [G_t(u_{t+1}) - g F_t(u_t)],

    F_t the discounted penalised loss after round t and G_t = g F_t + the penalties of the floor D
    >= lam, each less its minimum (after Jacobsen and Cutkosky 2024; the floor is ours).

    Parameters
    ----------
    Z : array_like of shape (n, r)
        The features of the inputs, ``features.transform(X)``; the inputs for LinearAWV.
    discount : float in (0, 1]
    comparators : array_like of shape (n, r) or (r,)
        u_t of each round; one row for all rounds gives the static regret.
    sizes : array_like of int, shape (n,), optional
        For NystromAWV, whose space grows: the columns of Z that span it in each round, the first
        ones, coordinates in an orthonormal basis. u_t is cut to the space, and what that loses is
        added. docs/drift.md has the proof.

    Remarks
    -------
    In each round (y - m / a)^2 - (y - m)^2 / a <= y^2 (1 - 1 / a) with m the ridge forecast and 1 -
    1 / a = z' A^-1 z, and (y - m)^2 / a = min F_t - g min F_{t-1}. The sum of these is min F_n + (1
    - g) sum_{t<n} min F_t, at most F_n(u_n) + (1 - g) sum_{t<n} F_t(u_t), which unrolls to the
    losses of u, lam |u_1|^2 and the last sum. The paper's closed forms put max y^2 (log det(A_n /
    lam) + r n log(1 / g)) for the middle term, which it never exceeds. Losses here are whole
    squares, there halves.

    Examples
    --------
    >>> Z = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    >>> U = np.where(np.arange(400)[:, None] < 200, 1.0, -1.0) * np.ones(3)
    >>> y = (Z * U).sum(axis=1)
    >>> run = okl.run(okl.LinearAWV(lam=0.1, discount=0.9), Z, y)
    >>> bound = okl.theory.discounted_awv_bound(Z, y, 0.1, 0.9, U)
    >>> bool((np.cumsum(run.losses) <= bound).all()), round(run.losses.sum()), round(bound[-1])
    (True, 57, 137)
    """
    Z = inputs.as_inputs(Z, name="Z")
    y = inputs.as_labels(y, len(Z))
    U = inputs.as_numbers(comparators, "comparators")
    valid = U.shape in (Z.shape, Z.shape[1:])
    require(valid, "comparators", comparators, f"finite, of shape {Z.shape} or {Z.shape[1:]}")
    U = np.broadcast_to(U, Z.shape)
    ranks = np.full(len(y), Z.shape[1]) if sizes is None else np.asarray(sizes)
    counts = ranks.shape == y.shape and (np.diff(ranks, prepend=0) >= 0).all()
    nested = bool(counts and ranks[-1] <= Z.shape[1])
    require(nested, "sizes", sizes, f"{len(y)} counts that never fall, at most {Z.shape[1]}")
    cut = np.where(np.arange(Z.shape[1]) < ranks[:, None], U, 0.0)
    lost = np.square(y - (Z * cut).sum(axis=1)) - np.square(y - (Z * U).sum(axis=1))
    r = int(ranks[0])
    R, w = sqrt(lam) * np.eye(r), np.zeros(r)  # R'R = A, and the ridge estimate
    out, bound = np.empty(len(y)), lam * float(cut[0] @ cut[0])
    for t, label in enumerate(y):
        z = Z[t, :r]
        p = scipy.linalg.solve_triangular(R, z, trans="T") if r else z
        a = 1.0 + p @ p  # 1 + z' A^-1 z, A before the round
        if r:
            w += (label - w @ z) / a * scipy.linalg.solve_triangular(R, p)
            R = np.linalg.qr(np.vstack([R, z]), mode="r")  # type: ignore[assignment]
        bound += label**2 * (1.0 - 1.0 / a)
        out[t] = bound
        if t + 1 < len(y):
            bound -= discount * float(np.square(R @ (cut[t, :r] - w)).sum())  # g F_t(u_t)
            D = R.diagonal() ** 2
            R *= np.sqrt(np.maximum(discount * D, lam) / D)[:, None]  # D <- g D, at least lam
            weights = discount ** np.arange(t + 1.0, 0.0, -1.0)
            while r < ranks[t + 1]:
                R, w = _add_column(R, w, Z[: t + 1, : r + 1], y[: t + 1], weights, lam)
                r += 1
            bound += float(np.square(R @ (cut[t + 1, :r] - w)).sum())  # G_t(u_{t+1})
    return out + np.cumsum(lost)


def _add_column(
    R: np.ndarray, w: np.ndarray, Z: np.ndarray, y: np.ndarray, weights: np.ndarray, lam: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return R and w with the last column of Z, whose other columns are in them already."""
    past, column, r = Z[:, :-1], Z[:, -1] * weights, len(w)
    v = scipy.linalg.solve_triangular(R, past.T @ column, trans="T") if r else w
    pivot = Z[:, -1] @ column + lam - v @ v
    gain = column @ (y - past @ w) / pivot
    out = np.zeros((r + 1, r + 1))
    out[:r, :r], out[:r, r], out[r, r] = R, v, sqrt(pivot)
    return out, np.append(w - gain * scipy.linalg.solve_triangular(R, v) if r else w, gain)
