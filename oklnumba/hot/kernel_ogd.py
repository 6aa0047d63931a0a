"""Rounds of kernel online gradient descent (NORMA) and of BOGD.

NORMA (Kivinen, Smola and Williamson 2004), here also with a ball |f| <= U:

    f_1 = 0; for t = 1, ..., T:
        yhat_t = f_t(x_t)
        f_{t+1} = Proj_{|f| <= U}((1 - eta lam) f_t - eta l'(yhat_t) k(x_t, .))
        with more than ``window`` atoms: drop the oldest

BOGD (Zhao et al. 2012) has a budget B instead of window and ball. With B atoms, a round with a loss

        drops atom i with probability p_i (1 / B; BOGD++: by weight); the others: a_j /= 1 - p_j
        takes the step;   if max |a_j| > eta gamma, scales all a_j by eta gamma / max |a_j|

NORMA's f is factor * sum_j a_j k(x_j, .), so shrinking costs one product; |f|^2 is kept up to date.
"""

import math

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
    hot,
)
from oklnumba.hot.primitives.linalg import multiply
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import get_atom, kernel_diag, put_atom

# Entries of kernel_ogd_rounds' counts (ATOMS, OLDEST) and sums (FACTOR, SQUARE).
OLDEST = 1  # the slot of the oldest atom once the window is full
FACTOR = 0  # of all coefficients
SQUARE = 1  # |f|^2, where there is a radius


@hot
def square_without(kernel, function, slot, sums, m, x, row):
    """Return |f|^2 without the atom in ``slot``; x and row are workspace."""
    atoms, a = function
    dropped = sums[FACTOR] * a[slot]
    get_atom(atoms, slot, x)
    value = sums[FACTOR] * expansion_value(kernel, atoms, a, m, x, row)
    return sums[SQUARE] - 2.0 * dropped * value + dropped * dropped * row[slot]


@hot
def step_in_ball(sums, step, value, corner, radius):
    """Update |f|^2 after f -= step k(x, .), value = f(x) before, and project; False on overflow."""
    square = larger(sums[SQUARE] - 2.0 * step * value + step * step * corner, 0.0)
    if not square < np.inf:
        return False
    if square > radius * radius:
        sums[FACTOR] *= radius / math.sqrt(square)
        square = radius * radius
    sums[SQUARE] = square
    return True


@hot
def kernel_ogd_rounds(X, y, first, kernel, loss, setting, counts, sums, function, work, out):
    """Play kernel online gradient descent (NORMA).

    setting : (eta, lam, window or inf, radius or inf); counts, sums : (2,), entries above;
    function : atoms (d, cap) and a (cap,); work : (3, >= cap and d).
    """
    eta, lam, window, radius = setting
    atoms, a = function
    forecasts, sizes = out
    row, shrink = work[0], 1.0 - eta * lam
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == a.shape[0] and m < window:
            return t, NEED_ROOM
        x = X[t]
        forecast = sums[FACTOR] * expansion_value(kernel, atoms, a, m, x, row)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        sums[FACTOR] *= shrink  # f <- (1 - eta lam) f
        sums[SQUARE] *= shrink * shrink
        if slope != 0.0:
            value, step, slot = forecast * shrink, eta * slope, m
            if m == window:  # the newest atom takes the place of the oldest
                slot = counts[OLDEST]
                counts[OLDEST] = (slot + 1) % m
                value -= sums[FACTOR] * a[slot] * row[slot]
                if radius < np.inf:
                    oldest = work[2, : x.shape[0]]
                    sums[SQUARE] = square_without(kernel, function, slot, sums, m, oldest, work[1])
            else:
                counts[ATOMS] = m + 1
            put_atom(atoms, slot, x)
            a[slot] = -step / sums[FACTOR]  # f <- f - eta l' k(x, .)
            if radius < np.inf:
                if not step_in_ball(sums, step, value, kernel_diag(kernel, x), radius):
                    return t, NOT_FINITE
        if sums[FACTOR] < SMALLEST_FACTOR:
            multiply(a, sums[FACTOR], counts[ATOMS])
            sums[FACTOR] = 1.0
        sizes[t] = counts[ATOMS]
    return X.shape[0], DONE


@hot
def bogd_drop(a, diagonal, coin, weighted, p, m):
    """Return which atom BOGD drops; p : (cap,), the probabilities, written.

    weighted : 0 for p_i = 1 / m, 1 for p_i in proportion to 1 - (m - 1) s_i, cut at 0, with s_i the
    share of |a_i| sqrt(k_ii) in their sum.
    """
    total = 0.0
    for j in range(m):
        p[j] = abs(a[j]) * math.sqrt(diagonal[j])
        total += p[j]
    if not (weighted and total > 0.0):
        for j in range(m):
            p[j] = 1.0 / m
        return smaller(int(coin * m), m - 1)
    rest = 0.0
    for j in range(m):
        p[j] = larger(1.0 - (m - 1) * (p[j] / total), 0.0)
        rest += p[j]
    running, chosen = 0.0, 0
    for j in range(m):
        p[j] /= rest
        if p[j] > 0.0 and running <= coin:
            chosen = j
        running += p[j]
    return chosen


@hot
def bogd_rounds(X, y, coins, first, kernel, loss, setting, counts, function, work, out):
    """Play BOGD or BOGD++.

    setting : (eta, lam, budget, gamma or inf, weighted); function : atoms (d, cap), a and diagonal
    k(atom, atom), both (cap,); work : (2, cap).
    """
    eta, lam, budget, gamma, weighted = setting
    atoms, a, diagonal = function
    forecasts, sizes = out
    row, p, shrink = work[0], work[1], 1.0 - eta * lam
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == a.shape[0] and m < budget:
            return t, NEED_ROOM
        x = X[t]
        forecast = expansion_value(kernel, atoms, a, m, x, row)
        if not abs(forecast) < LARGEST_FORECAST:
            return t, DIVERGED
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        if shrink < 1.0:
            multiply(a, shrink, m)  # f <- (1 - eta lam) f
        if slope != 0.0:
            slot = m
            if m < budget:
                counts[ATOMS] = m + 1
            else:
                slot = bogd_drop(a, diagonal, coins[t], weighted, p, m)
                for j in range(m):
                    if p[j] < 1.0:  # unbiased: each survives with 1 - p_j
                        a[j] /= 1.0 - p[j]
            put_atom(atoms, slot, x)
            diagonal[slot] = kernel_diag(kernel, x)
            if not diagonal[slot] < np.inf:
                return t, NOT_FINITE
            a[slot] = -eta * slope  # f <- f - eta l' k(x, .)
            if m == budget:
                largest = 0.0
                for j in range(m):
                    largest = larger(largest, abs(a[j]))
                if largest > eta * gamma:
                    multiply(a, eta * gamma / largest, m)
        sizes[t] = counts[ATOMS]
    return X.shape[0], DONE
