"""Rounds of NOGD and SkeGD: gradient descent on a map of a full dictionary.

NOGD (Lu et al. 2016, Algorithm 2):

    while |S| < B: kernel gradient descent, f = f - eta l' k(x_t, .), S = S + {x_t} if l' is not 0
    at |S| = B: K_S ~ V D V' (k largest eigenvalues), z(x) = D^-1/2 V' k_S(x), w = D^1/2 V' a
    then: yhat_t = w.z(x_t);   w = w - eta l'(yhat_t) z(x_t)

SkeGD (Zhang and Liao 2019) has z(x) = W k(x) from sketches of K, a new W every ``period`` losses.
We keep w as coefficients a = W' w on the atoms, so a forecast needs no z. The caller makes W.
"""

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
# atoms that SkeGD stores, including those of its function.
FEATURES, LOSSES, STORED = 1, 2, 3


@hot
def mapped_step(a, W, row, step, m, r):
    """Take the step w -= step z, z = W k, on a = W' w : (cap,), in place. row : (cap,), k."""
    for i in range(r):
        add_multiple(a, -step * dot(W[i], row, m), W[i], m)


@hot
def mapped_gradient_rounds(X, y, first, kernel, loss, setting, counts, function, W, work, out):
    """Play NOGD or SkeGD.

    setting : (eta, budget, period or inf, whether a new map waits for the next loss); function :
    atoms (d, cap) and a (cap,); W : (FEATURES, cap); work : (1, cap). On NEED_MAP with ``waiting``,
    round ``rounds played`` has its forecast, and the caller makes its update.
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
        forecast = expansion_value(kernel, atoms, a, m, x, row)
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
            counts[ATOMS] = sizes[t] = m + 1
            if m + 1 == budget and not waiting:
                return t + 1, NEED_MAP
    return X.shape[0], DONE
