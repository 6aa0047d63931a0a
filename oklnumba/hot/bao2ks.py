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

In the code ``hint_x`` is -hint(x), ``explored`` is J_t, and V has n examples before the round.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.expansion import expansion_value, mean, project
from oklnumba.hot.primitives.jit import ATOMS, DONE, NOT_FINITE, Array, Integers, hot
from oklnumba.hot.primitives.rows import get_atom, kernel_diag, put_atom

# Entries of counts (ATOMS: of all functions together): atoms of the largest function, examples in
# the reservoir, restarts.
MOST, FILLED, RESTARTS = 1, 2, 3
# Entries of sums: the accuracy eps of the bandit's present epoch, and the loss in it.
ACCURACY, EPOCH_LOSS = range(2)
# Columns of products: |f'|^2, <f', hint>, |hint|^2.
SQUARE, INNER, HINT_SQUARE = range(3)
# Columns of coins: the kernel played, the inclusion of x (or the kernel explored), the reservoir.
PLAY, EXPLORE, STORE = range(3)


class BAO2KSState(NamedTuple):
    """The functions f' of K kernels, the bandit that plays one, and the reservoir V."""

    counts: Annotated[Integers, "counts"]  # ATOMS, MOST, FILLED, RESTARTS
    atoms: Annotated[Array, "K", "d", MOST]
    alpha: Annotated[Array, "K", MOST]
    m: Annotated[Integers, "K"]  # atoms of each function
    place: Annotated[Integers, "K", "M"]  # of V's examples among the atoms; -1: nowhere
    products: Annotated[Array, "K", "products"]  # SQUARE, INNER, HINT_SQUARE
    p: Annotated[Array, "K"]
    L: Annotated[Array, "K"]
    sums: Annotated[Array, "sums"]  # ACCURACY, EPOCH_LOSS
    V: Annotated[Array, "d", "M"]
    labels: Annotated[Array, "M"]


class Work(NamedTuple):
    """Of an input, (cap,) each: k(x, atoms), k(x, V), and an example of V."""

    k: Array
    k_hint: Array
    example: Array


class Kernels(NamedTuple):
    """The kernels, as rows.py takes them."""

    codes: Integers  # (K,)
    pars: Array  # (K, 3)


class Rules(NamedTuple):
    """Hyper-parameters."""

    radius: float  # U
    eta: float  # or 0
    budget: float
    hints: float  # size of the reservoir, or 0 for round(ln T)
    beta: float
    horizon: float  # T, or 0 for the present round
    confidence: float


class Point(NamedTuple):
    """What a kernel's step takes of the round."""

    f_x: float  # f'(x)
    hint_x: float  # -hint(x)
    k_tt: float


@hot
def bao2ks_rate(rules, now):
    """Return the learning rate: eta, or 10 / sqrt(T) with T the horizon or the present round."""
    T = rules.horizon if rules.horizon > 0.0 else now
    return rules.eta if rules.eta > 0.0 else 10.0 / math.sqrt(T)


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
def evaluate_kernel(i, kernels, n, rate, radius, x, state, work):
    """Return (f(x), f'(x), -hint(x)) of kernel i, f = Proj(f' - rate hint)."""
    kernel = kernels.codes[i], kernels.pars[i]
    products = state.products[i]
    f_x = expansion_value(kernel, state.atoms[i], state.alpha[i], state.m[i], x, work.k)
    hint_x = mean(expansion_value(kernel, state.V, state.labels, n, x, work.k_hint), n)
    forecast = f_x + rate * hint_x
    square = products[SQUARE] + rate * rate * products[HINT_SQUARE] - 2.0 * rate * products[INNER]
    if square > radius * radius:
        forecast *= radius / math.sqrt(square)
    return forecast, f_x, hint_x


@hot
def choose_step(K, label, forecast, point, hint_square, beta, coin):
    """Return (up, hint_up): the explored kernel steps along up grad + hint_up hint."""
    violated = label * forecast < 1.0
    if K > 1:  # K (grad - hint) + hint
        return float(K) if violated else 0.0, 1.0 - K
    if not violated:
        return 0.0, 0.0
    d = math.sqrt(larger(point.k_tt + hint_square - 2.0 * label * point.hint_x, 0.0))
    q = 0.0
    if d > 0.0:
        q = smaller(d / (beta * (d + math.sqrt(larger(hint_square, 0.0)))), 1.0)
    return (1.0 / q, 1.0 - 1.0 / q) if coin < q else (0.0, 1.0)


@hot
def add_hint(i, step, n, state):
    """Take f' -= step hint in the coefficients of kernel i; examples of V become atoms."""
    alpha, place = state.alpha[i], state.place[i]
    for r in range(n):
        if place[r] < 0:
            m = state.m[i]
            for j in range(state.V.shape[0]):
                state.atoms[i, j, m] = state.V[j, r]
            alpha[m] = 0.0
            place[r] = m
            state.m[i] = m + 1
        alpha[place[r]] += step * state.labels[r] / n


@hot
def step_kernel(i, n, x, label, up, hint_up, point, rate, radius, state):
    """Take f' -= rate (up grad + hint_up hint), grad = -y k(x, .), for kernel i, then project f'.

    x becomes an atom where up is not 0.
    """
    if up == 0.0 and hint_up == 0.0:
        return
    products, m = state.products[i], state.m[i]
    across, inner, hint_square = label * point.hint_x, products[INNER], products[HINT_SQUARE]
    length = up * up * point.k_tt + 2.0 * up * hint_up * across + hint_up * hint_up * hint_square
    square = products[SQUARE] - 2.0 * rate * (hint_up * inner - up * label * point.f_x)
    square += rate * rate * length
    if up != 0.0:
        put_atom(state.atoms[i], m, x)
        state.alpha[i, m] = rate * up * label
        state.m[i] = m + 1
    if hint_up != 0.0:
        add_hint(i, rate * hint_up, n, state)
    products[SQUARE] = project(state.alpha[i], square, radius, state.m[i])
    products[INNER] = inner - rate * (up * across + hint_up * hint_square)
    if square > radius * radius:
        products[INNER] *= radius / math.sqrt(square)


@hot
def step_kernels(explored, n, x, label, up, hint_up, point, rate, radius, state):
    """Step along up grad + hint_up hint in the explored kernel, along the hint in the others.

    Returns whether all is finite.
    """
    finite, nothing = True, Point(0.0, 0.0, 0.0)
    for i in range(state.m.shape[0]):
        u, h, taken = (up, hint_up, point) if i == explored else (0.0, 1.0, nothing)
        step_kernel(i, n, x, label, u, h, taken, rate, radius, state)
        finite = finite and state.products[i, SQUARE] < np.inf
    return finite


@hot
def update_bandit(chosen, loss, confidence, state):
    """Update the probabilities of the kernels after a loss of the chosen one (GREEN-IX)."""
    p, L, sums = state.p, state.L, state.sums
    K = p.shape[0]
    L[chosen] += loss / (sums[ACCURACY] / (4.0 * K) + p[chosen])
    sums[EPOCH_LOSS] += loss
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
def enforce_budget(budget, state):
    """Set functions beyond the budget to 0, clear their buffers, and count the atoms."""
    counts = state.counts
    counts[ATOMS] = counts[MOST] = 0
    for i in range(state.m.shape[0]):
        m = state.m[i]
        if m > budget:
            state.alpha[i, :m] = 0.0
            state.atoms[i, :, :m] = 0.0
            state.place[i] = -1
            state.products[i, SQUARE] = state.products[i, INNER] = 0.0
            state.m[i] = m = 0
            counts[RESTARTS] += 1
        counts[ATOMS] += m
        counts[MOST] = larger(counts[MOST], m)


@hot
def choose_slot(rules, now, n, room, coin):
    """Return the slot of the round's example in a reservoir of n examples, -1 to leave it out.

    room : the most that the reservoir can hold.
    """
    T = rules.horizon if rules.horizon > 0.0 else now
    capacity = rules.hints if rules.hints > 0.0 else math.floor(math.log(T) + 0.5)
    if n < smaller(larger(capacity, 1.0), float(room)):
        return n
    return smaller(int(coin * now), n - 1) if coin * now < n else -1


@hot
def update_hint(i, kernels, state, work):
    """Update <f', hint> and |hint|^2 of kernel i after a change of the reservoir."""
    V, labels, n, x = state.V, state.labels, state.counts[FILLED], work.example[: state.V.shape[0]]
    kernel, inner, square = (kernels.codes[i], kernels.pars[i]), 0.0, 0.0
    for r in range(n):
        get_atom(V, r, x)
        f_x = expansion_value(kernel, state.atoms[i], state.alpha[i], state.m[i], x, work.k)
        inner -= labels[r] * f_x / n
        square += labels[r] * expansion_value(kernel, V, labels, n, x, work.k_hint) / (n * n)
    state.products[i, INNER], state.products[i, HINT_SQUARE] = inner, square


@hot
def store_example(slot, x, label, explored, stands, kernels, state, work):
    """Put the round's example into the reservoir.

    stands : the slot of x in the explored kernel's function, -1 for none.
    """
    state.counts[FILLED] = larger(state.counts[FILLED], slot + 1)
    put_atom(state.V, slot, x)
    state.labels[slot] = label
    for i in range(state.m.shape[0]):  # a restart has dropped x
        state.place[i, slot] = stands if i == explored and stands < state.m[i] else -1
        update_hint(i, kernels, state, work)


@hot
def bao2ks_rounds(X, y, coins, played, kernels, rules, state, work, out):
    """Play B(AO)2KS over the rows of X; ``played`` rounds came before. coins : (n, 3)."""
    counts, K, radius = state.counts, state.p.shape[0], rules.radius
    for t in range(X.shape[0]):
        x, label, now, n = X[t], y[t], float(played + t + 1), counts[FILLED]
        rate = bao2ks_rate(rules, now)
        i = choose_kernel(state.p, coins[t, PLAY])  # I_t
        j = smaller(int(coins[t, EXPLORE] * K), K - 1)  # J_t
        forecast, f_x, hint_x = evaluate_kernel(i, kernels, n, rate, radius, x, state, work)
        if not (abs(forecast) < np.inf and state.products[i, SQUARE] < np.inf):
            return t, NOT_FINITE
        out.forecasts[t] = value = forecast
        if j != i:
            value, f_x, hint_x = evaluate_kernel(j, kernels, n, rate, radius, x, state, work)
        point = Point(f_x, hint_x, kernel_diag((kernels.codes[j], kernels.pars[j]), x))
        hint_square, coin = state.products[j, HINT_SQUARE], coins[t, EXPLORE]
        up, hint_up = choose_step(K, label, value, point, hint_square, rules.beta, coin)
        stands = state.m[j] if up != 0.0 else -1  # the slot of x in the function of J_t
        if not step_kernels(j, n, x, label, up, hint_up, point, rate, radius, state):
            return t, NOT_FINITE
        if K > 1:
            loss = (1.0 - label * forecast) / (1.0 + radius)
            update_bandit(i, loss, rules.confidence, state)
        enforce_budget(rules.budget, state)
        slot = choose_slot(rules, now, n, state.labels.shape[0], coins[t, STORE])
        if slot >= 0:
            store_example(slot, x, label, j, stands, kernels, state, work)
        out.sizes[t] = counts[ATOMS]
    return X.shape[0], DONE


@hot
def bao2ks_forecasts(X, coin, played, kernels, rules, state, work, forecasts):
    """Write what B(AO)2KS would forecast for each row of X with the next round's coin."""
    i, rate = choose_kernel(state.p, coin), bao2ks_rate(rules, float(played + 1))
    n = state.counts[FILLED]
    for t in range(X.shape[0]):
        forecasts[t] = evaluate_kernel(i, kernels, n, rate, rules.radius, X[t], state, work)[0]
