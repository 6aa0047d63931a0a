"""Rounds of B(AO)2KS: optimistic updates with a reservoir as the hint, one kernel or several.

Liao and Li 2021; for one kernel, K = 1, the version that Li and Liao 2023 compare with:

    f'_0 = 0 for each kernel, V = {}; for t = 1, ..., T:
        draw kernel I_t ~ p and kernel J_t uniformly;   hint = -mean of y k(x, .) over V
        f_t = Proj_{|f| <= U}(f' - rate hint);   yhat_t = f_t(x_t) of I_t
        K > 1: f' = Proj(f' - rate (K (grad - hint) + hint)) of J_t, Proj(f' - rate hint) of others
        K = 1, if y_t yhat_t < 1: d = |grad - hint|, q = d / (beta (d + |hint|))
            with probability q: f' = Proj(f' - rate ((grad - hint) / q + hint)), else as the others
        GREEN-IX updates p by the loss of I_t;   f' = 0 where it has more atoms than the budget
        V takes (x_t, y_t) as a reservoir sample of the past

with grad = -y_t k(x_t, .) if y_t f_t(x_t) < 1, else 0. |f'|^2, <f', hint> and |hint|^2 are updated.

Groups of K kernels: ``kernels``, their codes (K,) and pars (K, 3); ``functions``, the atoms (K, d,
cap), a (K, cap) and held (K,), how many, of f', place (K, M), where the reservoir's examples stand
among them (-1: nowhere), and kept (K, 3), columns below; ``bandit``, p and L, (K,), and sums (2,),
entries below; ``reservoir``, V (d, M) and its labels (M,), of which n are in use. Workspace: x and
spare (d,), rows (2, cap).
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import expansion_value, mean, project
from oklnumba.hot.primitives.jit import ATOMS, DONE, NOT_FINITE, hot
from oklnumba.hot.primitives.rows import get_atom, kernel_diag, put_atom

# Entries of counts (ATOMS: of all functions together): atoms of the largest function, examples in
# the reservoir, restarts.
MOST, FILLED, RESTARTS = 1, 2, 3
# Entries of sums: the accuracy eps of the bandit's present epoch, and the loss in it.
ACCURACY, EPOCH_LOSS = range(2)
# Columns of kept: |f'|^2, <f', hint>, |hint|^2.
SQUARE, INNER, HINT_SQUARE = range(3)
# Columns of coins: the kernel played, the inclusion of x (or the kernel explored), the reservoir.
PLAY, EXPLORE, STORE = range(3)


@hot
def bao2ks_rate(eta, horizon, this):
    """Return the learning rate: eta, or 10 / sqrt(T) with T the horizon or this round."""
    return eta if eta > 0.0 else 10.0 / math.sqrt(horizon if horizon > 0.0 else this)


@hot
def choose_kernel(p, coin):
    """Return the kernel that the coin picks; probabilities below 1 / 2K count as 0."""
    K = p.shape[0]
    total = 0.0
    for i in range(K):
        if p[i] >= 0.5 / K:
            total += p[i]
    running, chosen = 0.0, 0
    for i in range(K):
        if p[i] >= 0.5 / K:
            if running <= coin * total:
                chosen = i
            running += p[i]
    return chosen


@hot
def evaluate_kernel(i, kernels, functions, reservoir, n, rate, radius, x, rows):
    """Return (f(x), f'(x), minus the hint at x) of kernel i, f = Proj(f' - rate hint)."""
    codes, pars = kernels
    atoms, a, held, _, kept = functions
    V, labels = reservoir
    kernel = codes[i], pars[i]
    own = expansion_value(kernel, atoms[i], a[i], held[i], x, rows[0])
    hinted = mean(expansion_value(kernel, V, labels, n, x, rows[1]), n)
    forecast = own + rate * hinted
    square = kept[i, SQUARE] + rate * rate * kept[i, HINT_SQUARE] - 2.0 * rate * kept[i, INNER]
    if square > radius * radius:
        forecast *= radius / math.sqrt(square)
    return forecast, own, hinted


@hot
def choose_step(K, label, forecast, values, kept, beta, coin):
    """Return (up, hint_up): the explored kernel steps along up grad + hint_up hint.

    forecast : f(x); values : f'(x), minus the hint at x, k(x, x); kept : (3,), of this kernel.
    """
    _, hinted, corner = values
    violated = label * forecast < 1.0
    if K > 1:  # K (grad - hint) + hint
        return float(K) if violated else 0.0, 1.0 - K
    if not violated:
        return 0.0, 0.0
    apart = math.sqrt(larger(corner + kept[HINT_SQUARE] - 2.0 * label * hinted, 0.0))  # d
    included = 0.0  # q
    if apart > 0.0:
        hint = math.sqrt(larger(kept[HINT_SQUARE], 0.0))
        included = smaller(apart / (beta * (apart + hint)), 1.0)
    return (1.0 / included, 1.0 - 1.0 / included) if coin < included else (0.0, 1.0)


@hot
def step_kernel(i, x, label, weights, values, rate, radius, functions, reservoir, n):
    """Take f' -= rate (up grad + hint_up hint), grad = -y k(x, .), for kernel i, then project f'.

    weights : up (0 adds no atom for x) and hint_up; values : f'(x), minus the hint at x, k(x, x).
    """
    atoms, a, held, place, kept = functions
    V, labels = reservoir
    up, hint_up = weights
    own, hinted, corner = values
    if up == 0.0 and hint_up == 0.0:
        return
    across, inner, hint_square = label * hinted, kept[i, INNER], kept[i, HINT_SQUARE]
    length = up * up * corner + 2.0 * up * hint_up * across + hint_up * hint_up * hint_square
    square = kept[i, SQUARE] - 2.0 * rate * (hint_up * inner - up * label * own)
    square += rate * rate * length
    m = held[i]
    if up != 0.0:
        put_atom(atoms[i], m, x)
        a[i, m] = rate * up * label
        m += 1
    if hint_up != 0.0:
        for r in range(n):
            if place[i, r] < 0:
                for j in range(x.shape[0]):
                    atoms[i, j, m] = V[j, r]
                a[i, m] = 0.0
                place[i, r] = m
                m += 1
            a[i, place[i, r]] += rate * hint_up * labels[r] / n
    held[i] = m
    kept[i, SQUARE] = project(a[i], square, radius, m)
    kept[i, INNER] = inner - rate * (up * across + hint_up * hint_square)
    if square > radius * radius:
        kept[i, INNER] *= radius / math.sqrt(square)


@hot
def step_kernels(explored, x, label, weights, values, rate, radius, functions, reservoir, n):
    """Step along ``weights`` in the explored kernel, along the hint in others; False: overflow."""
    finite = True
    for i in range(functions[2].shape[0]):
        w, v = (weights, values) if i == explored else ((0.0, 1.0), (0.0, 0.0, 0.0))
        step_kernel(i, x, label, w, v, rate, radius, functions, reservoir, n)
        finite = finite and functions[4][i, SQUARE] < np.inf
    return finite


@hot
def update_bandit(bandit, chosen, observed, confidence):
    """Update the probabilities of the kernels after a loss of the chosen one (GREEN-IX)."""
    p, L, sums = bandit
    K = p.shape[0]
    L[chosen] += observed / (sums[ACCURACY] / (4.0 * K) + p[chosen])
    sums[EPOCH_LOSS] += observed
    if sums[ACCURACY] * sums[ACCURACY] * sums[EPOCH_LOSS] > K * math.log(K / confidence):
        sums[ACCURACY] *= 0.5  # a new epoch
        sums[EPOCH_LOSS] = 0.0
        for i in range(K):
            L[i] = 0.0
    least = L[0]
    for i in range(K):
        least = smaller(least, L[i])
    total = 0.0
    for i in range(K):
        p[i] = math.exp(-sums[ACCURACY] / (4.0 * K) * (L[i] - least))
        total += p[i]
    for i in range(K):
        p[i] /= total


@hot
def enforce_budget(counts, functions, budget):
    """Set functions beyond the budget to 0, clear their buffers, and count the atoms."""
    atoms, a, held, place, kept = functions
    counts[ATOMS] = counts[MOST] = 0
    for i in range(held.shape[0]):
        if held[i] > budget:
            a[i, : held[i]] = 0.0
            atoms[i, :, : held[i]] = 0.0
            place[i] = -1
            held[i] = 0
            kept[i, SQUARE] = kept[i, INNER] = 0.0
            counts[RESTARTS] += 1
        counts[ATOMS] += held[i]
        counts[MOST] = larger(counts[MOST], held[i])


@hot
def choose_slot(hints, horizon, this, n, room, coin):
    """Return the slot of the round's example in a reservoir of n examples, -1 to leave it out.

    hints : the reservoir's size, or 0 for round(ln T); room : the most it can hold.
    """
    T = horizon if horizon > 0.0 else this
    capacity = hints if hints > 0.0 else math.floor(math.log(T) + 0.5)
    if n < smaller(larger(capacity, 1.0), float(room)):
        return n
    return smaller(int(coin * this), n - 1) if coin * this < n else -1


@hot
def update_hint(i, kernels, functions, reservoir, n, x, rows):
    """Update <f', hint> and |hint|^2 of kernel i after a change of the reservoir."""
    codes, pars = kernels
    atoms, a, held, _, kept = functions
    V, labels = reservoir
    kernel, inner, square = (codes[i], pars[i]), 0.0, 0.0
    for r in range(n):
        get_atom(V, r, x)
        inner -= labels[r] * expansion_value(kernel, atoms[i], a[i], held[i], x, rows[0]) / n
        square += labels[r] * expansion_value(kernel, V, labels, n, x, rows[1]) / (n * n)
    kept[i, INNER], kept[i, HINT_SQUARE] = inner, square


@hot
def store_example(slot, x, label, explored, stands, kernels, functions, reservoir, n, spare, rows):
    """Put the round's example into the reservoir, which then has n examples.

    stands : the slot of x in the explored kernel's function, -1 for none.
    """
    _, _, held, place, _ = functions
    put_atom(reservoir[0], slot, x)
    reservoir[1][slot] = label
    for i in range(held.shape[0]):  # a restart has dropped x
        place[i, slot] = stands if i == explored and stands < held[i] else -1
        update_hint(i, kernels, functions, reservoir, n, spare, rows)


@hot
def bao2ks_rounds(
    X, y, coins, played, kernels, setting, counts, functions, bandit, reservoir, work, out
):
    """Play B(AO)2KS over the rows of X; ``played`` rounds came before.

    coins : (n, 3); setting : (radius, eta or 0, budget, size of the reservoir or 0, beta, horizon
    or 0, confidence); counts : (4,), entries above.
    """
    radius, eta, budget, hints, beta, horizon, confidence = setting
    codes, pars = kernels
    _, _, held, _, kept = functions
    forecasts, sizes = out
    p, K, rows, spare = bandit[0], bandit[0].shape[0], work[:2], work[2, : X.shape[1]]
    for t in range(X.shape[0]):
        x, label, this, n = X[t], y[t], float(played + t + 1), counts[FILLED]
        rate = bao2ks_rate(eta, horizon, this)
        i = choose_kernel(p, coins[t, PLAY])  # I_t
        j = smaller(int(coins[t, EXPLORE] * K), K - 1)  # J_t
        forecast, own, hinted = evaluate_kernel(
            i, kernels, functions, reservoir, n, rate, radius, x, rows
        )
        if not (abs(forecast) < np.inf and kept[i, SQUARE] < np.inf):
            return t, NOT_FINITE
        forecasts[t] = value = forecast
        if j != i:
            value, own, hinted = evaluate_kernel(
                j, kernels, functions, reservoir, n, rate, radius, x, rows
            )
        values = own, hinted, kernel_diag((codes[j], pars[j]), x)
        weights = choose_step(K, label, value, values, kept[j], beta, coins[t, EXPLORE])
        stands = held[j] if weights[0] != 0.0 else -1  # the slot of x in the function of J_t
        if not step_kernels(j, x, label, weights, values, rate, radius, functions, reservoir, n):
            return t, NOT_FINITE
        if K > 1:
            update_bandit(bandit, i, (1.0 - label * forecast) / (1.0 + radius), confidence)
        enforce_budget(counts, functions, budget)
        slot = choose_slot(hints, horizon, this, n, reservoir[1].shape[0], coins[t, STORE])
        if slot >= 0:
            counts[FILLED] = n = larger(n, slot + 1)
            store_example(slot, x, label, j, stands, kernels, functions, reservoir, n, spare, rows)
        sizes[t] = counts[ATOMS]
    return X.shape[0], DONE


@hot
def bao2ks_forecasts(
    X, coin, played, kernels, setting, counts, functions, p, reservoir, work, forecasts
):
    """Write what B(AO)2KS would forecast for each row of X with the next round's coin."""
    radius, eta, _, _, _, horizon, _ = setting
    i = choose_kernel(p, coin)
    rate = bao2ks_rate(eta, horizon, float(played + 1))
    n, rows = counts[FILLED], work[:2]
    for t in range(X.shape[0]):
        forecasts[t], _, _ = evaluate_kernel(
            i, kernels, functions, reservoir, n, rate, radius, X[t], rows
        )
