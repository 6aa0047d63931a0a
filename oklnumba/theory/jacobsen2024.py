"""Bounds of Jacobsen and Cutkosky 2024 (ICML): online linear regression with a discount."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import inputs
from oklnumba.core.checks import require, require_discount
from oklnumba.core.factors import make_pending, make_sweep
from oklnumba.core.state import aligned_zeros, round_up_to_vector
from oklnumba.hot.awv import Rounds, Span, awv_rounds
from oklnumba.hot.primitives.factor import Factor
from oklnumba.hot.primitives.udu import NO_DISCOUNT
from oklnumba.theory.arguments import checks_arguments


@checks_arguments(discount=require_discount)
def discounted_awv_bound(
    Z: ArrayLike, y: ArrayLike, lam: float, discount: float, comparators: ArrayLike
) -> np.ndarray:
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
    y = inputs.as_labels(y, len(Z))
    U = inputs.as_numbers(comparators, "comparators")
    valid = U.shape in (Z.shape, Z.shape[1:])
    require(valid, "comparators", comparators, f"finite, of shape {Z.shape} or {Z.shape[1:]}")
    U = np.broadcast_to(U, Z.shape)
    factor = _Factor(Z.shape[1], lam)
    out = np.empty(len(y))
    bound = lam * float(U[0] @ U[0])
    for t, (z, label) in enumerate(zip(Z, y, strict=True)):
        bound += label**2 * (1.0 - 1.0 / factor.play(z, label))
        out[t] = bound
        F_t, G_t = factor.evaluate(U[t]), 0.0  # of u_t and u_{t+1}
        factor.inv_d[:] = np.minimum(factor.inv_d / discount, 1.0 / lam)  # D <- g D, at least lam
        if t + 1 < len(y):
            G_t = factor.evaluate(U[t + 1])
        bound += G_t - discount * F_t
    return out


class _Factor:
    """The factor U' D U of AWV, round by round."""

    def __init__(self, r: int, lam: float):
        self.r, room = r, round_up_to_vector(r)
        self.Z = aligned_zeros(1, room)
        self.U, self.inv_d, self.c = np.eye(room), np.full(room, 1.0 / lam), np.zeros((1, room))
        self.factor = Factor(self.U, self.inv_d, self.c, make_pending((), room))
        self.span, self.sweep = Span(0, 1, room, room), make_sweep(self.U)
        self.out = Rounds(np.empty((1, 1)), np.empty((1, 1)), np.empty(1), np.empty((1, 1)))

    def play(self, z: np.ndarray, label: float) -> float:
        """Play a round and return its shrink 1 + z' A^-1 z."""
        self.Z[0, : self.r] = z
        rule = NO_DISCOUNT, self.sweep, False
        status = awv_rounds(self.Z, np.array([[label]]), self.span, self.factor, *rule, self.out)[1]
        if status:
            raise FloatingPointError("a forecast is not finite; raise lam, or scale Z and y")
        return float(self.out.shrinks[0])

    def evaluate(self, u: np.ndarray) -> float:
        """Return the penalised loss of u less its minimum, sum_k D_k (U_k.u - c_k)^2."""
        gap = (self.U[: self.r, : self.r] @ u - self.c[0, : self.r]) ** 2
        return float((gap / self.inv_d[: self.r]).sum())
