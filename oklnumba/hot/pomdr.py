"""Rounds of optimistic mirror descent: POMD and POMDR (pomdr Algorithm 1)."""

from __future__ import annotations

import math

import numpy as np

from oklnumba.hot.dictionary import NULL_DIRECTION, ald_residual
from oklnumba.hot.expansion import expansion_square, to_ball
from oklnumba.hot.jit import DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.linalg import add_multiple, bordered_cholesky, dot, multiply, solve_upper
from oklnumba.hot.rows import get_atom, kernel_diag, kernel_row, put_atom

SWITCH_FACTOR = 15.0  # B_0 = ceil(15 ln T), as in the paper's experiments


@hot
def pomdr_rate(setting, state, reals, corner):
    """Return the learning rate lambda_t (pomdr eq. 10 with 3 D for its first term, errata 28, 29).

    Arguments as in pomdr_rounds; corner : k(x_t, x_t).
    """
    radius, rate_scale = setting[0], setting[6]
    under = 3.0 * max(reals[3], corner) + reals[1]
    if not under > 0.0:
        return 0.0  # k(x, x) = 0 so far: every function is 0 on the data
    rate = radius / math.sqrt(under)
    return rate * rate_scale if state[2] > 0 else rate


@hot
def pomdr_values(kernel, x, atoms, a, m, hints, signs, count, row, hint_row):
    """Return f'_{t-1}(x) and minus hint_t(x), leaving the kernel rows in row and hint_row."""
    kernel_row(kernel, x, atoms, m, row)
    kernel_row(kernel, x, hints, count, hint_row)
    hinted = dot(hint_row, signs, count) / count if count > 0 else 0.0
    return dot(row, a, m), hinted


@hot
def pomdr_remove(kernel, radius, atoms, a, m, x, row):
    """Keep the oldest half of the dictionary and merge the rest into it (pomdr eq. 9).

    Each dropped coefficient goes to the kept atom with the largest kernel value (the first on
    ties); then f' is scaled to norm U. Returns |f'|^2.
    """
    half = m // 2
    for j in range(half, m):
        get_atom(atoms, j, x)
        kernel_row(kernel, x, atoms, half, row)
        nearest = 0
        for i in range(1, half):
            if row[i] > row[nearest]:
                nearest = i
        a[nearest] += a[j]
    square = expansion_square(kernel, atoms, a, half, x, row)
    if not square > 0.0:
        return 0.0
    multiply(a, radius / math.sqrt(square), half)
    return radius * radius


@hot
def pomdr_remember(x, label, slot, count, added, omdr, corner, hints, signs, H, row, hint_row, m):
    """Put the round's example among the hints, with its kernel values with the m old atoms.

    ``added`` says whether x became atom m, whose kernel values with the hints are in hint_row.
    """
    put_atom(hints, slot, x)
    signs[slot] = label
    if omdr:
        return  # nothing is projected any more
    if added:
        for r in range(count):
            H[r, m] = hint_row[r]
        H[slot, m] = corner
    for j in range(m):
        H[slot, j] = row[j]


@hot
def pomdr_switch_size(switch_size, budget, T):
    """Return B_0, the number of atoms at which OMDR takes over."""
    by_rounds = min(math.ceil(SWITCH_FACTOR * math.log(T)), budget - 1.0)
    return switch_size if switch_size > 0.0 else by_rounds


@hot
def pomdr_rounds(
    X, y, first, played, kernel, setting, state, reals, atoms, a, R, hints, signs, H, work,
    forecasts, sizes,
):  # fmt: skip
    """Play POMDR (pomdr Algorithm 1) from row ``first`` of X; ``played`` rounds came before X.

    setting : (U, zeta, ALD scale, horizon or 0, switch size or 0, budget, rate scale); state : (4,)
    integers: |S|, the round t-bar from which OMDR runs (0: not yet), removals, projections; reals :
    (4,): |f'|^2, the sum of delta since the last removal, that over all rounds, D = max k(x, x);
    atoms : (d, cap), a : (cap,), the dictionary; R : (cap, cap), upper factor of its kernel matrix
    until OMDR; hints : (d, M), signs : (M,), the last M examples; H : (M, cap), their kernel values
    with the dictionary until OMDR; work : (3, cap or d or M), workspace; forecasts, sizes : (n,),
    written. Returns (rounds played, status).
    """
    radius, zeta, ald_scale, horizon, switch_size, budget, rate_scale = setting
    row, q, hint_row = work[0], work[1], work[2]
    M = signs.shape[0]
    for t in range(first, X.shape[0]):
        m = state[0]
        if m == a.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        count = min(played + t, M)
        corner = kernel_diag(kernel, x)
        rate = pomdr_rate(setting, state, reals, corner)
        own, hinted = pomdr_values(kernel, x, atoms, a, m, hints, signs, count, row, hint_row)
        forecast = own + rate * hinted
        if not (abs(forecast) < np.inf and corner < np.inf):
            return t, NOT_FINITE
        forecasts[t] = forecast
        reals[3] = max(reals[3], corner)
        label = y[t]
        this = played + t + 1
        T = horizon if horizon > 0.0 else max(float(this), 2.0)
        # A t-bar of T stays POMD (errata 31).
        omdr = state[1] > 0 and this >= state[1] and not (this == state[1] and this == horizon)
        added = False
        if label * forecast < 1.0:
            projected = False
            delta = corner - 2.0 * label * hinted
            square = corner
            if not omdr:
                rest = ald_residual(R, row, corner, q, m)  # alpha_t
                bound = ald_scale * T**-zeta
                projected = rest <= NULL_DIRECTION * corner
                projected = projected or (m > 0 and rest <= bound * bound * reals[3])
                if projected:
                    square = corner - rest
                    solve_upper(R, q, m)  # beta_t
                    delta = square
                    for r in range(count):
                        delta -= 2.0 * label * signs[r] / count * dot(H[r], q, m)
                    add_multiple(a, rate * label, q, m)
                    state[3] += 1
                elif not bordered_cholesky(R, q, corner, m) > 0.0:
                    return t, NOT_POSITIVE
            if not projected:
                put_atom(atoms, m, x)
                a[m] = rate * label
                added = True
                state[0] = m + 1
            # <f', grad> = -y f'(x) for the projected gradient too: f' is in the span.
            square = reals[0] + rate * rate * square + 2.0 * rate * label * own
            reals[0] = to_ball(a, square, radius, state[0])
            reals[1] += max(delta, 0.0)
            reals[2] += max(delta, 0.0)
        slot = (played + t) % M
        pomdr_remember(
            x, label, slot, count, added, omdr, corner, hints, signs, H, row, hint_row, m
        )
        if added and omdr and m + 1 >= budget:
            reals[0] = pomdr_remove(kernel, radius, atoms, a, m + 1, q[: x.shape[0]], row)
            reals[1] = 0.0
            state[0] = (m + 1) // 2
            state[2] += 1
        elif added and state[1] == 0 and m + 1 >= pomdr_switch_size(switch_size, budget, T):
            state[1] = this + 1
        sizes[t] = state[0]
    return X.shape[0], DONE


@hot
def pomdr_forecasts(
    X, played, kernel, setting, state, reals, atoms, a, hints, signs, work, forecasts
):
    """Write what POMDR would forecast for each row of X; arguments as in pomdr_rounds."""
    count = min(played, signs.shape[0])
    for t in range(X.shape[0]):
        rate = pomdr_rate(setting, state, reals, kernel_diag(kernel, X[t]))
        own, hinted = pomdr_values(
            kernel, X[t], atoms, a, state[0], hints, signs, count, work[0], work[2]
        )
        forecasts[t] = own + rate * hinted
