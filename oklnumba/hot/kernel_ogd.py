"""Rounds of kernel online gradient descent (NORMA) and of BOGD."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.expansion import SMALLEST_FACTOR
from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, hot
from oklnumba.hot.linalg import dot, multiply
from oklnumba.hot.losses import loss_derivative
from oklnumba.hot.rows import get_atom, kernel_diag, kernel_row, put_atom


@hot
def kernel_ogd_rounds(
    X, y, first, code, par, loss, setting, state, reals, atoms, a, work, forecasts, sizes
):
    """Play kernel online gradient descent (NORMA) from row ``first`` of X.

    f = factor sum_j a_j k(atom_j, .). setting : (eta, lam, window or inf, radius or inf); state :
    (2,) integers: atoms, and the slot of the oldest once the window is full; reals : (2,): factor,
    and |f|^2 where there is a radius; atoms : (d, cap), a : (cap,), in place; work : (3, >= cap and
    d), workspace; forecasts, sizes : (n,), written. Returns (rounds played, status).
    """
    eta, lam, window, radius = setting
    row, other = work[0], work[1]
    shrink = 1.0 - eta * lam
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0] and m < window:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = reals[0] * dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        reals[0] *= shrink
        reals[1] *= shrink * shrink
        if slope != 0.0:
            value = forecast * shrink
            slot = m
            if m == window:
                slot = state[1]
                state[1] = (slot + 1) % m
                dropped = reals[0] * a[slot]
                value -= dropped * row[slot]
                if radius < np.inf:
                    oldest = work[2, : x.shape[0]]
                    get_atom(atoms, slot, oldest)
                    kernel_row(code, par, oldest, atoms, m, other)
                    reals[1] -= 2.0 * dropped * reals[0] * dot(other, a, m)
                    reals[1] += dropped * dropped * other[slot]
            else:
                state[0] = m + 1
            put_atom(atoms, slot, x)
            step = eta * slope
            a[slot] = -step / reals[0]
            if radius < np.inf:
                corner = kernel_diag(code, par, x)
                square = max(reals[1] - 2.0 * step * value + step * step * corner, 0.0)
                if not square < np.inf:
                    return t, NOT_FINITE
                if square > radius * radius:
                    reals[0] *= radius / math.sqrt(square)
                    square = radius * radius
                reals[1] = square
        if reals[0] < SMALLEST_FACTOR:
            multiply(a, reals[0], state[0])
            reals[0] = 1.0
        sizes[t] = state[0]
    return X.shape[0], DONE


@hot
def bogd_drop(a, diagonal, coin, weighted, p, m):
    """Return which atom BOGD drops; p : (cap,), the probabilities, written.

    weighted : 1 for p_i = 1 - s |a_i| sqrt(k_ii), negative ones cut at 0, 0 for uniform ones.
    """
    total = 0.0
    for j in range(m):
        p[j] = abs(a[j]) * math.sqrt(diagonal[j])
        total += p[j]
    if not (weighted and total > 0.0):
        for j in range(m):
            p[j] = 1.0 / m
        return min(int(coin * m), m - 1)
    rest = 0.0
    for j in range(m):
        p[j] = max(1.0 - (m - 1) * (p[j] / total), 0.0)
        rest += p[j]
    running = 0.0
    chosen = 0
    for j in range(m):
        p[j] /= rest
        if p[j] > 0.0 and running <= coin:
            chosen = j
        running += p[j]
    return chosen


@hot
def bogd_rounds(
    X, y, coins, first, code, par, loss, setting, state, atoms, a, diagonal, work, forecasts, sizes
):
    """Play BOGD or BOGD++ (Zhao et al. 2012) from row ``first`` of X.

    coins : (n,), uniform draws; setting : (eta, lam, budget, gamma or inf, weighted); state : (1,)
    integers, atoms; atoms : (d, cap), a, diagonal (k(atom, atom)) : (cap,), in place; work : (2,
    cap), workspace; forecasts, sizes : (n,), written. Returns (rounds played, status).
    """
    eta, lam, budget, gamma, weighted = setting
    row, p = work[0], work[1]
    shrink = 1.0 - eta * lam
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0] and m < budget:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(code, par, x, atoms, m, row)
        forecast = dot(row, a, m)
        if not abs(forecast) < np.inf:
            return t, NOT_FINITE
        forecasts[t] = forecast
        slope = loss_derivative(loss, forecast, y[t])
        if shrink < 1.0:
            multiply(a, shrink, m)
        if slope != 0.0:
            slot = m
            if m < budget:
                state[0] = m + 1
            else:
                slot = bogd_drop(a, diagonal, coins[t], weighted, p, m)
                for j in range(m):
                    if p[j] < 1.0:  # unbiased: each survives with 1 - p_j
                        a[j] /= 1.0 - p[j]
            put_atom(atoms, slot, x)
            diagonal[slot] = kernel_diag(code, par, x)
            if not diagonal[slot] < np.inf:
                return t, NOT_FINITE
            a[slot] = -eta * slope
            if m == budget:
                largest = 0.0
                for j in range(m):
                    largest = max(largest, abs(a[j]))
                if largest > eta * gamma:
                    multiply(a, eta * gamma / largest, m)
        sizes[t] = state[0]
    return X.shape[0], DONE
