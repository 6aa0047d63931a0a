"""Rounds of NOGD and SkeGD: gradient descent on a map of a full dictionary."""

from __future__ import annotations

import numpy as np

from oklnumba.hot.jit import DONE, NEED_MAP, NEED_ROOM, NOT_FINITE, hot
from oklnumba.hot.linalg import add_multiple, dot
from oklnumba.hot.losses import loss_derivative
from oklnumba.hot.rows import kernel_row, put_atom


@hot
def mapped_step(a, W, row, step, m):
    """Take the gradient step w -= step z on features z = W k, in terms of f = (W' w) . k.

    a : (cap,), W' w, in place; W : (rank, cap); row : (cap,), k.
    """
    for r in range(W.shape[0]):
        add_multiple(a, -step * dot(W[r], row, m), W[r], m)


@hot
def mapped_gradient_rounds(
    X, y, first, kernel, loss, setting, state, atoms, a, W, work, forecasts, sizes
):
    """Play NOGD (Lu et al. 2016) or SkeGD (Zhang and Liao 2019) from row ``first`` of X.

    Kernel gradient descent until the dictionary is full, then linear gradient descent on z = W k.
    setting : (eta, budget, period or inf, whether a new map waits for the next violation); state :
    (4,) integers: atoms of f, 1 when mapped, violations since the last map, atoms stored; atoms :
    (d, cap), a : (cap,), in place; W : (rank, cap); work : (1, cap), workspace; forecasts, sizes :
    (n,), written. Returns (rounds played, status); at NEED_MAP of a waiting learner, round ``rounds
    played`` has its forecast, and its update is the caller's business.
    """
    eta, budget, period, waiting = setting
    row = work[0]
    for t in range(first, X.shape[0]):
        m = state[0]
        mapped = state[1] == 1
        if m == a.shape[0] and m < budget and not mapped:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        sizes[t] = state[3]
        if slope == 0.0:
            continue
        if mapped:
            state[2] += 1
            if state[2] >= period:
                return t, NEED_MAP
            mapped_step(a, W, row, eta * slope, m)
            continue
        if m == budget:
            return t, NEED_MAP
        put_atom(atoms, m, x)
        a[m] = -eta * slope
        state[0] = m + 1
        state[3] = m + 1
        sizes[t] = m + 1
        if m + 1 == budget and not waiting:
            return t + 1, NEED_MAP
    return X.shape[0], DONE
