"""Rounds of kernel online gradient descent (NORMA) and of BOGD.

NORMA (Kivinen, Smola and Williamson 2004), here also with a ball |f| <= U:

    f_1 = 0; for t = 1, ..., T:
        yhat_t = f_t(x_t)
        f_{t+1} = Proj_{|f| <= U}((1 - eta lam) f_t - eta l'(yhat_t) k(x_t, .))
        with more atoms than the budget: drop the oldest

BOGD (Zhao et al. 2012) has no ball. With B atoms, its budget, a round with a loss

        drops atom i with probability p_i (1 / B; BOGD++: by weight); the others: alpha_j /= 1 - p_j
        takes the step;   if max |alpha_j| > eta gamma, scales alpha by eta gamma / max |alpha_j|

NORMA's f is factor * sum_j alpha_j k(x_j, .), so shrinking costs one product; |f|^2 is updated.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import SMALLEST_FACTOR, expansion_value
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DIVERGED,
    DONE,
    LARGEST_FORECAST,
    NEED_ROOM,
    NOT_FINITE,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import multiply
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import get_atom, kernel_diag, put_atom

# Entries of NORMA's counts and sums.
OLDEST = 1  # the slot of the oldest atom once the window is full
FACTOR = 0  # of all coefficients
SQUARE = 1  # |f|^2, where there is a radius


class NORMAState(NamedTuple):
    """The function f = factor * sum_j alpha_j k(x_j, .)."""

    counts: Annotated[Integers, "counts"]  # ATOMS, OLDEST
    sums: Annotated[Array, "sums"]  # FACTOR, SQUARE
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]


class NORMAWork(NamedTuple):
    """(cap,) each: k(x_t, atoms), the oldest atom, and its kernel values with the atoms."""

    k: Array
    oldest: Array
    k_oldest: Array


class NORMARules(NamedTuple):
    """The loss and the hyper-parameters of NORMA; infinite window and radius mean no limit."""

    loss: int  # its code
    eta: float
    lam: float
    window: float
    radius: float


@hot
def drop_oldest(kernel, radius, x, value, state, work):
    """Drop the oldest atom of a full window; return its slot, and f(x) without it.

    value : f(x). |f|^2 changes too, where there is a radius.
    """
    counts, sums, alpha, m = state.counts, state.sums, state.alpha, state.counts[ATOMS]
    slot = counts[OLDEST]
    counts[OLDEST] = (slot + 1) % m
    dropped = sums[FACTOR] * alpha[slot]
    if radius < np.inf:
        oldest, k = work.oldest[: x.shape[0]], work.k_oldest
        get_atom(state.atoms, slot, oldest)
        f = sums[FACTOR] * expansion_value(kernel, state.atoms, alpha, m, oldest, k)
        sums[SQUARE] = sums[SQUARE] - 2.0 * dropped * f + dropped * dropped * k[slot]
    return slot, value - dropped * work.k[slot]


@hot
def step_in_ball(sums, step, value, k_tt, radius):
    """Update |f|^2 after f -= step k(x, .), value = f(x) before, and project; False on overflow."""
    square = larger(sums[SQUARE] - 2.0 * step * value + step * step * k_tt, 0.0)
    if not square < np.inf:
        return False
    if square > radius * radius:
        sums[FACTOR] *= radius / math.sqrt(square)
        square = radius * radius
    sums[SQUARE] = square
    return True


@hot
def norma_rounds(X, y, first, kernel, rules, state, work, out):
    """Play NORMA, kernel online gradient descent."""
    counts, sums, alpha = state.counts, state.sums, state.alpha
    shrink = 1.0 - rules.eta * rules.lam
    for t in range(first, X.shape[0]):
        x, m = X[t], counts[ATOMS]
        if m == alpha.shape[0] and m < rules.window:
            return t, NEED_ROOM
        forecast = sums[FACTOR] * expansion_value(kernel, state.atoms, alpha, m, x, work.k)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        out.forecasts[t] = forecast
        slope = loss_derivative(rules.loss, forecast, y[t])
        sums[FACTOR] *= shrink  # f <- (1 - eta lam) f
        sums[SQUARE] *= shrink * shrink
        if slope != 0.0:
            slot, value, step = m, forecast * shrink, rules.eta * slope
            if m == rules.window:
                slot, value = drop_oldest(kernel, rules.radius, x, value, state, work)
            else:
                counts[ATOMS] = m + 1
            put_atom(state.atoms, slot, x)
            alpha[slot] = -step / sums[FACTOR]  # f <- f - eta l' k(x, .)
            if rules.radius < np.inf:
                if not step_in_ball(sums, step, value, kernel_diag(kernel, x), rules.radius):
                    return t, NOT_FINITE
        if sums[FACTOR] < SMALLEST_FACTOR:
            multiply(alpha, sums[FACTOR], counts[ATOMS])
            sums[FACTOR] = 1.0
        out.sizes[t] = counts[ATOMS]
    return X.shape[0], DONE


class BOGDState(NamedTuple):
    """The function f = sum_j alpha_j k(x_j, .)."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    alpha: Annotated[Array, ATOMS]
    diagonal: Annotated[Array, ATOMS]  # k(x_j, x_j)


class BOGDWork(NamedTuple):
    """(cap,) each: k(x_t, atoms), and the probabilities with which atoms are dropped."""

    k: Array
    p: Array


class BOGDRules(NamedTuple):
    """Hyper-parameters of BOGD, and of BOGD++ where it is weighted; infinite gamma for no cap."""

    loss: int
    eta: float
    lam: float
    budget: float
    gamma: float
    weighted: bool


@hot
def bogd_drop(alpha, diagonal, coin, weighted, p, m):
    """Return which atom BOGD drops; write the probabilities p.

    They are 1 / m; with weights in proportion to 1 - (m - 1) s_i, cut at 0, s_i the share of
    |alpha_i| sqrt(k_ii) in their sum.
    """
    total = 0.0
    for j in range(m):
        p[j] = abs(alpha[j]) * math.sqrt(diagonal[j])
        total += p[j]
    if not (weighted and total > 0.0):
        for j in range(m):
            p[j] = 1.0 / m
        return smaller(int(coin * m), m - 1)
    uncut = 0.0
    for j in range(m):
        p[j] = larger(1.0 - (m - 1) * (p[j] / total), 0.0)
        uncut += p[j]
    running, chosen = 0.0, 0
    for j in range(m):
        p[j] /= uncut
        if p[j] > 0.0 and running <= coin:
            chosen = j
        running += p[j]
    return chosen


@hot
def cap_coefficients(alpha, cap, m):
    """Scale alpha so that no coefficient exceeds the cap."""
    largest = 0.0
    for j in range(m):
        largest = larger(largest, abs(alpha[j]))
    if largest > cap:
        multiply(alpha, cap / largest, m)


@hot
def bogd_rounds(X, y, coins, first, kernel, rules, state, work, out):
    """Play BOGD or BOGD++. coins : (n,), uniform draws."""
    alpha, diagonal = state.alpha, state.diagonal
    k, p = work
    shrink = 1.0 - rules.eta * rules.lam
    for t in range(first, X.shape[0]):
        x, m = X[t], state.counts[ATOMS]
        if m == alpha.shape[0] and m < rules.budget:
            return t, NEED_ROOM
        forecast = expansion_value(kernel, state.atoms, alpha, m, x, k)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        out.forecasts[t] = forecast
        slope = loss_derivative(rules.loss, forecast, y[t])
        if shrink < 1.0:
            multiply(alpha, shrink, m)  # f <- (1 - eta lam) f
        if slope != 0.0:
            slot = m
            if m < rules.budget:
                state.counts[ATOMS] = m + 1
            else:
                slot = bogd_drop(alpha, diagonal, coins[t], rules.weighted, p, m)
                for j in range(m):
                    if p[j] < 1.0:  # unbiased: each survives with 1 - p_j
                        alpha[j] /= 1.0 - p[j]
            put_atom(state.atoms, slot, x)
            diagonal[slot] = kernel_diag(kernel, x)
            if not diagonal[slot] < np.inf:
                return t, NOT_FINITE
            alpha[slot] = -rules.eta * slope  # f <- f - eta l' k(x, .)
            if m == rules.budget:
                cap_coefficients(alpha, rules.eta * rules.gamma, m)
        out.sizes[t] = state.counts[ATOMS]
    return X.shape[0], DONE
