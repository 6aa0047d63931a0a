"""Rounds of NOGD and SkeGD: gradient descent on a map of a full dictionary.

NOGD (Lu et al. 2016, Algorithm 2):

    while |S| < B: kernel gradient descent, f = f - eta l' k(x_t, .), S = S + {x_t} if l' is not 0
    at |S| = B: K_S ~ V D V' (k largest eigenvalues), z(x) = D^-1/2 V' k_S(x), w = D^1/2 V' alpha
    then: yhat_t = w.z(x_t);   w = w - eta l'(yhat_t) z(x_t)

SkeGD (Zhang and Liao 2019) has z(x) = W k(x) from sketches of K, a new W every ``period`` losses.
We store w as coefficients alpha = W' w of the atoms, so a forecast needs no z. The caller makes W.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.expansion import expansion_value
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DIVERGED,
    DONE,
    LARGEST_FORECAST,
    NEED_MAP,
    NEED_ROOM,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import put_atom

# Entries of counts: features of the map (0: no map yet), rounds with a loss since the last map,
# atoms that SkeGD stores, including those of its function.
FEATURES, LOSSES, STORED = 1, 2, 3


class MappedState(NamedTuple):
    """The function f = sum_j alpha_j k(x_j, .), its map once S is full, and the sketches of SkeGD.

    The sketches are of the kernel matrix K of all atoms that it stores.
    """

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]
    W: Annotated[Array, FEATURES, ATOMS]  # z = W k(x, S)
    stored: Annotated[Array, "d", STORED]
    S: Annotated[Array, STORED, "sketch"]  # S_p
    sampled: Annotated[Integers, "columns"]  # the atoms that S_m samples
    pp: Annotated[Array, "sketch", "sketch"]  # Phi_pp
    pm: Annotated[Array, "sketch", "columns"]  # Phi_pm


class Work(NamedTuple):
    """Of the round: k(x_t, S), (cap,)."""

    k: Array


class Rules(NamedTuple):
    """Hyper-parameters; an infinite period for one map."""

    loss: int
    eta: float
    budget: float
    period: float
    waits: bool  # whether the first map is made in the next round with a loss


@hot
def mapped_step(alpha, W, k, step, m, r):
    """Take the step w -= step z on alpha = W' w, with m atoms and r features."""
    for i in range(r):
        add_multiple(alpha, -step * dot(W[i], k, m), W[i], m)


@hot
def mapped_gradient_rounds(X, y, first, kernel, rules, state, work, out):
    """Play NOGD or SkeGD.

    On NEED_MAP with ``waits``, round ``rounds played`` has its forecast, and the caller makes its
    update.
    """
    counts, alpha = state.counts, state.alpha
    for t in range(first, X.shape[0]):
        x, m, r = X[t], counts[ATOMS], counts[FEATURES]
        if m == alpha.shape[0] and m < rules.budget and r == 0:
            return t, NEED_ROOM
        forecast = expansion_value(kernel, state.atoms, alpha, m, x, work.k)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        out.forecasts[t] = forecast
        slope = loss_derivative(rules.loss, forecast, y[t])
        out.sizes[t] = larger(m, counts[STORED])
        if slope == 0.0:
            continue
        if r > 0:
            counts[LOSSES] += 1
            if counts[LOSSES] >= rules.period:
                return t, NEED_MAP
            mapped_step(alpha, state.W, work.k, rules.eta * slope, m, r)  # w <- w - eta l' z
        elif m == rules.budget:
            return t, NEED_MAP
        else:
            put_atom(state.atoms, m, x)
            alpha[m] = -rules.eta * slope  # f <- f - eta l' k(x, .)
            counts[ATOMS] = out.sizes[t] = m + 1
            if m + 1 == rules.budget and not rules.waits:
                return t + 1, NEED_MAP
    return X.shape[0], DONE
