"""Rounds of B(AO)2KS: optimistic updates with a reservoir as the hint, one kernel or several."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.expansion import to_ball
from oklnumba.hot.jit import DONE, NOT_FINITE, hot
from oklnumba.hot.linalg import dot
from oklnumba.hot.rows import get_atom, kernel_diag, kernel_row, put_atom


@hot
def bao2ks_value(kernel, x, atoms, a, m, V, labels, n, rate, radius, kept, row, hint_row):
    """Return (forecast, f'(x), minus the hint at x) of one kernel's function f = Proj(f' - rate h).

    kept : (3,): |f'|^2, <f', h>, |h|^2; V : (d, M), labels : (M,), the reservoir, n of it filled.
    """
    kernel_row(kernel, x, atoms, m, row)
    kernel_row(kernel, x, V, n, hint_row)
    own = dot(row, a, m)
    hinted = dot(hint_row, labels, n) / n if n > 0 else 0.0
    forecast = own + rate * hinted
    square = kept[0] + rate * rate * kept[2] - 2.0 * rate * kept[1]
    if square > radius * radius:
        forecast *= radius / math.sqrt(square)
    return forecast, own, hinted


@hot
def bao2ks_step(x, y, own, hinted, corner, up, hint_up, rate, radius, atoms, a, m, V, labels, n,
                place, kept):  # fmt: skip
    """Take f' -= rate (up grad + hint_up hint), grad = -y k(x, .), then project; return the size.

    place : (M,) integers, where the reservoir's examples stand in the dictionary (-1: nowhere).
    Other arguments as in bao2ks_value; up = 0 adds no atom for x.
    """
    across = y * hinted  # <grad, hint>
    square = kept[0] - 2.0 * rate * (hint_up * kept[1] - up * y * own)
    square += (
        rate * rate * (up * up * corner + 2.0 * up * hint_up * across + hint_up * hint_up * kept[2])
    )
    kept[1] -= rate * (up * across + hint_up * kept[2])
    if up != 0.0:
        put_atom(atoms, m, x)
        a[m] = rate * up * y
        m += 1
    if hint_up != 0.0:
        for r in range(n):
            if place[r] < 0:
                for i in range(x.shape[0]):
                    atoms[i, m] = V[i, r]
                a[m] = 0.0
                place[r] = m
                m += 1
            a[place[r]] += rate * hint_up * labels[r] / n
    kept[0] = to_ball(a, square, radius, m)
    if square > radius * radius:
        kept[1] *= radius / math.sqrt(square)
    return m


@hot
def bao2ks_reservoir(kernel, atoms, a, m, V, labels, n, x, row, hint_row, kept):
    """Bring <f', hint> and |hint|^2 up to date after a change of the reservoir."""
    inner = 0.0
    square = 0.0
    for r in range(n):
        get_atom(V, r, x)
        kernel_row(kernel, x, atoms, m, row)
        kernel_row(kernel, x, V, n, hint_row)
        inner -= labels[r] * dot(row, a, m) / n
        square += labels[r] * dot(hint_row, labels, n) / (n * n)
    kept[1] = inner
    kept[2] = square


@hot
def bao2ks_choose(p, coin):
    """Return the kernel that the coin picks: probabilities below 1 / 2K frozen at 0."""
    K = p.shape[0]
    total = 0.0
    for i in range(K):
        if p[i] >= 0.5 / K:
            total += p[i]
    running = 0.0
    chosen = 0
    for i in range(K):
        if p[i] >= 0.5 / K:
            if running <= coin * total:
                chosen = i
            running += p[i]
    return chosen


@hot
def bao2ks_bandit(p, L, reals, chosen, observed, confidence):
    """Update the probabilities of the kernels after a loss of the chosen one (GREEN-IX).

    p, L : (K,), in place; reals : (2,): the accuracy eps of this epoch, and the loss in it.
    """
    K = p.shape[0]
    eta = reals[0] / (4.0 * K)
    L[chosen] += observed / (eta + p[chosen])
    reals[1] += observed
    if reals[0] * reals[0] * reals[1] > K * math.log(K / confidence):
        reals[0] *= 0.5
        reals[1] = 0.0
        for i in range(K):
            L[i] = 0.0
    least = L[0]
    for i in range(K):
        least = min(least, L[i])
    total = 0.0
    for i in range(K):
        p[i] = math.exp(-reals[0] / (4.0 * K) * (L[i] - least))
        total += p[i]
    for i in range(K):
        p[i] /= total


@hot
def bao2ks_rate(eta, horizon, this):
    """Return the learning rate: eta, or 10 / sqrt(T) with T the horizon or this round."""
    T = horizon if horizon > 0.0 else this
    return eta if eta > 0.0 else 10.0 / math.sqrt(T)


@hot
def bao2ks_rounds(
    X, y, coins, played, codes, pars, setting, state, counts, reals, kept, p, L, atoms, a, V,
    labels, place, work, forecasts, sizes,
):  # fmt: skip
    """Play B(AO)2KS (Liao and Li 2021) over the rows of X; ``played`` rounds came before.

    coins : (n, 3), uniform draws: the kernel played, the inclusion (or the kernel explored), the
    reservoir; codes : (K,), pars : (K, 3), the kernels; setting : (radius, eta or 0, budget, size
    of the reservoir or 0, beta, horizon or 0, confidence); state : (2,) integers: filled part of
    the reservoir, restarts; counts : (K,) integers, atoms; reals : (2,), as in bao2ks_bandit; kept
    : (K, 3), as in bao2ks_value; p, L : (K,); atoms : (K, d, cap), a : (K, cap); V : (d, M), labels
    : (M,), place : (K, M); work : (3, cap or d), workspace; forecasts, sizes : (n,), written.
    Returns (rounds played, status).
    """
    radius, eta, budget, hints, beta, horizon, confidence = setting
    row, hint_row = work[0], work[1]
    K, d = atoms.shape[0], atoms.shape[1]
    spare = work[2, :d]
    for t in range(X.shape[0]):
        x, label = X[t], y[t]
        this = float(played + t + 1)
        rate = bao2ks_rate(eta, horizon, this)
        n = state[0]
        chosen = bao2ks_choose(p, coins[t, 0])
        forecast, own, hinted = bao2ks_value(
            (codes[chosen], pars[chosen]), x, atoms[chosen], a[chosen], counts[chosen], V, labels, n,
            rate, radius, kept[chosen], row, hint_row,
        )  # fmt: skip
        if not (abs(forecast) < np.inf and kept[chosen, 0] < np.inf):
            return t, NOT_FINITE
        forecasts[t] = forecast
        explored = min(int(coins[t, 1] * K), K - 1)
        joined, stands = -1, -1  # the kernel whose dictionary x joins, and where
        for i in range(K):
            up, hint_up = 0.0, 1.0
            corner = 0.0
            if i == explored:
                value = forecast
                if i != chosen:
                    value, own, hinted = bao2ks_value(
                        (codes[i], pars[i]), x, atoms[i], a[i], counts[i], V, labels, n,
                        rate, radius, kept[i], row, hint_row,
                    )  # fmt: skip
                corner = kernel_diag((codes[i], pars[i]), x)
                violated = label * value < 1.0
                if K == 1:
                    if not violated:
                        continue
                    apart = math.sqrt(max(corner + kept[0, 2] - 2.0 * label * hinted, 0.0))
                    hint_norm = math.sqrt(max(kept[0, 2], 0.0))
                    include = 0.0
                    if apart > 0.0:
                        include = min(apart / (beta * (apart + hint_norm)), 1.0)
                    if coins[t, 1] < include:
                        up, hint_up = 1.0 / include, 1.0 - 1.0 / include
                else:
                    up, hint_up = float(K) if violated else 0.0, 1.0 - K
                if up != 0.0:
                    joined, stands = i, counts[i]
            counts[i] = bao2ks_step(
                x, label, own if i == explored else 0.0, hinted if i == explored else 0.0, corner,
                up, hint_up, rate, radius, atoms[i], a[i], counts[i], V, labels, n, place[i],
                kept[i],
            )  # fmt: skip
            if not kept[i, 0] < np.inf:
                return t, NOT_FINITE
        if K > 1:
            observed = (1.0 - label * forecast) / (1.0 + radius)
            bao2ks_bandit(p, L, reals, chosen, observed, confidence)
        for i in range(K):
            if counts[i] > budget:
                counts[i] = 0
                kept[i, 0] = 0.0
                kept[i, 1] = 0.0
                state[1] += 1
                for r in range(n):
                    place[i, r] = -1
                if joined == i:
                    joined = -1
        T = horizon if horizon > 0.0 else this
        capacity = hints if hints > 0.0 else math.floor(math.log(T) + 0.5)
        capacity = min(max(capacity, 1.0), float(labels.shape[0]))
        slot = -1
        if n < capacity:
            slot = n
            state[0] = n + 1
        elif coins[t, 2] * this < n:
            slot = min(int(coins[t, 2] * this), n - 1)
        if slot >= 0:
            put_atom(V, slot, x)
            labels[slot] = label
            for i in range(K):
                place[i, slot] = stands if joined == i else -1
                bao2ks_reservoir(
                    (codes[i], pars[i]), atoms[i], a[i], counts[i], V, labels, state[0], spare, row,
                    hint_row, kept[i],
                )  # fmt: skip
        total = 0
        for i in range(K):
            total += counts[i]
        sizes[t] = total
    return X.shape[0], DONE


@hot
def bao2ks_forecasts(
    X, coin, played, codes, pars, setting, state, counts, kept, p, atoms, a, V, labels, work,
    forecasts,
):  # fmt: skip
    """Write what B(AO)2KS would forecast for each row of X with the next round's coin."""
    i = bao2ks_choose(p, coin)
    rate = bao2ks_rate(setting[1], setting[5], float(played + 1))
    for t in range(X.shape[0]):
        forecasts[t], _, _ = bao2ks_value(
            (codes[i], pars[i]), X[t], atoms[i], a[i], counts[i], V, labels, state[0], rate,
            setting[0], kept[i], work[0], work[1],
        )  # fmt: skip
