"""Rounds of Projectron and Projectron++."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.dictionary import NULL_DIRECTION, ald_residual
from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import add_multiple, bordered_cholesky, dot, solve_upper
from oklnumba.hot.rows import kernel_diag, kernel_row, put_atom


@hot
def projectron_rounds(X, y, first, kernel, setting, state, atoms, a, R, work, forecasts, sizes):
    """Play Projectron or Projectron++ (Orabona et al. 2009) from row ``first`` of X.

    setting : (threshold, budget or inf, aggressive, 1 / threshold or what takes its place); state :
    (1,) integers, atoms; atoms : (d, cap), a : (cap,), R : (cap, cap), upper factor of their kernel
    matrix, in place; work : (2, cap), workspace; forecasts, sizes : (n,), written. Returns (rounds
    played, status).
    """
    threshold, budget, aggressive, slack = setting
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0] and m < budget:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        margin = y[t] * forecast
        if margin <= 0.0 or (aggressive and margin < 1.0):
            corner = kernel_diag(kernel, x)
            if not corner < np.inf:
                return t, NOT_FINITE
            rest = ald_residual(R, row, corner, q, m)
            inside = corner - rest
            distance = math.sqrt(max(rest, 0.0))
            dependent = rest <= NULL_DIRECTION * corner
            if margin > 0.0:
                far = 0.0 if dependent else distance * slack
                excess = 1.0 - margin - far
                if excess > 0.0 and inside > 0.0:
                    tau = min(min((1.0 - margin) / inside, 1.0), 2.0 * excess / inside)
                    solve_upper(R, q, m)
                    add_multiple(a, tau * y[t], q, m)
            elif dependent or m == budget or (m > 0 and distance <= threshold):
                solve_upper(R, q, m)
                add_multiple(a, y[t], q, m)
            else:
                if not bordered_cholesky(R, q, corner, m) > 0.0:
                    return t, NOT_POSITIVE
                put_atom(atoms, m, x)
                a[m] = y[t]
                state[0] = m + 1
        sizes[t] = state[0]
    return X.shape[0], DONE
