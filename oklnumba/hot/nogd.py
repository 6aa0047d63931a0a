"""Rounds of NOGD and SkeGD: gradient descent on a map of a full dictionary."""

from __future__ import annotations

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.expansion import expansion_value
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DIVERGED,
    DONE,
    LARGEST_FORECAST,
    NEED_MAP,
    NEED_ROOM,
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import put_atom

# Entries of counts: features of the map (0: no map yet), rounds with a loss since the last map,
# atoms that SkeGD has stored aside, those of its function among them.
FEATURES, LOSSES, STORED = 1, 2, 3


@hot
def mapped_step(a, W, row, step, m, r):
    """Take the gradient step w -= step z on features z = W k, in terms of f = (W' w) . k.

    a : (cap,), W' w, in place; W : (>= r, cap); row : (cap,), k.
    """
    for i in range(r):
        add_multiple(a, -step * dot(W[i], row, m), W[i], m)


@hot
def mapped_gradient_rounds(X, y, first, kernel, loss, setting, counts, function, W, work, out):
    """Play NOGD (Lu et al. 2016) or SkeGD (Zhang and Liao 2019) from row ``first`` of X.

    Kernel gradient descent until the dictionary is full, then linear gradient descent on z = W k.
    setting : (eta, budget, period or inf, whether a new map waits for the next loss); counts : (4,)
    integers, ATOMS, FEATURES, LOSSES and STORED; function : atoms (d, cap) and a (cap,), in place;
    W : (FEATURES, cap); work : (1, cap), workspace; out : forecasts and sizes, (n,), written.
    Returns (rounds played, status); at NEED_MAP of a waiting learner, round ``rounds played`` has
    its forecast, and its update is the caller's business.
    """
    eta, budget, period, waiting = setting
    atoms, a = function
    forecasts, sizes = out
    row = work[0]
    for t in range(first, X.shape[0]):
        m, r = counts[ATOMS], counts[FEATURES]
        if m == a.shape[0] and m < budget and r == 0:
            return t, NEED_ROOM
        x = X[t]
        forecast = expansion_value(kernel, function, m, x, row)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        sizes[t] = larger(m, counts[STORED])
        if slope == 0.0:
            continue
        if r > 0:
            counts[LOSSES] += 1
            if counts[LOSSES] >= period:
                return t, NEED_MAP
            mapped_step(a, W, row, eta * slope, m, r)  # w <- w - eta l' z
        elif m == budget:
            return t, NEED_MAP
        else:
            put_atom(atoms, m, x)
            a[m] = -eta * slope  # f <- f - eta l' k(x, .)
            counts[ATOMS] = m + 1
            sizes[t] = m + 1
            if m + 1 == budget and not waiting:
                return t + 1, NEED_MAP
    return X.shape[0], DONE
