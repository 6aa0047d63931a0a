"""Textbook gradient methods for kernel expansions: dense kernel matrices K of a stream.

Functions are vectors over the points of the stream. See naive.py.
"""

import math

import numpy as np


def pomdr(K, y, radius, hints, ald, switch_size, budget, horizon=None, rate_scale=1.0):
    """POMDR (pomdr Algorithm 1, errata 26-41). f' is a vector c over all points of the stream.

    ald(t): the bound on the distance to the span; switch_size(t): B_0. Returns forecasts, supports,
    norms of f', the deltas and the distances alpha_t of all points that joined.
    """
    n = len(y)
    c, S, t_bar, removals, segment = np.zeros(n), [], np.inf, 0, 0.0
    forecasts, supports, norms, deltas, residuals = [], [], [], [], []
    for t in range(n):
        last = range(max(0, t - hints), t)
        h = np.zeros(n)
        for r in last:
            h[r] = -y[r] / len(last)
        D = K.diagonal()[: t + 1].max()
        lam = radius / np.sqrt(3 * D + segment) * (rate_scale if removals else 1.0)
        f = c - lam * h
        forecasts.append(K[t] @ f)
        delta = 0.0
        if y[t] * forecasts[-1] < 1:
            g = np.zeros(n)
            g[t] = -y[t]
            round_ = t + 1
            omdr = round_ >= t_bar and not (round_ == t_bar == horizon)
            if not omdr:
                beta = np.linalg.solve(K[np.ix_(S, S)], K[S, t]) if S else np.zeros(0)
                alpha = K[t, t] - K[S, t] @ beta
                if S and np.sqrt(max(alpha, 0.0)) <= np.sqrt(D) * ald(round_):
                    g[:] = 0.0
                    g[S] = -y[t] * beta
                else:
                    S = [*S, t]
                    residuals.append(alpha)
                    if len(S) >= switch_size(round_):
                        t_bar = min(t_bar, round_ + 1)
            else:
                S = [*S, t]
            delta = max(g @ K @ g - 2 * g @ K @ h, 0.0)
            segment += delta
            c = c - lam * g
            c = c * min(1.0, radius / np.sqrt(c @ K @ c))
            if omdr and len(S) == budget:
                kept = S[: budget // 2]
                for j in S[budget // 2 :]:
                    nearest = kept[int(np.argmax(K[kept, j]))]
                    c[nearest] += c[j]
                    c[j] = 0.0
                S = kept
                c = c * radius / np.sqrt(c @ K @ c)
                segment, removals = 0.0, removals + 1
        supports.append(S)
        norms.append(np.sqrt(c @ K @ c))
        deltas.append(delta)
    return np.array(forecasts), supports, np.array(norms), np.array(deltas), np.array(residuals)


def hinge_slope(forecast, y):
    return -y if y * forecast < 1 else 0.0


def kernel_ogd(K, y, slope, eta, lam=0.0, budget=None, radius=np.inf):
    """NORMA: shrink, drop the oldest of a full window, add, project. Forecasts, supports, norms."""
    n = len(y)
    c, S = np.zeros(n), []
    forecasts, supports, norms = [], [], []
    for t in range(n):
        forecasts.append(K[t] @ c)
        g = slope(forecasts[-1], y[t])
        c = (1 - eta * lam) * c
        if g != 0.0:
            if len(S) == budget:
                c[S[0]] = 0.0
                S = S[1:]
            c[t] = -eta * g
            S = [*S, t]
            norm = np.sqrt(c @ K @ c)
            if norm > radius:
                c = c * radius / norm
        supports.append(S)
        norms.append(np.sqrt(c @ K @ c))
    return np.array(forecasts), supports, np.array(norms)


def bogd(K, y, slope, eta, lam, budget, coins, gamma=np.inf, weighted=False):
    """BOGD and BOGD++; a new atom takes the place of the dropped one. Forecasts, supports."""
    n = len(y)
    c, S = np.zeros(n), []
    forecasts, supports = [], []
    for t in range(n):
        forecasts.append(K[t] @ c)
        g = slope(forecasts[-1], y[t])
        c = (1 - eta * lam) * c
        if g != 0.0 and len(S) < budget:
            S = [*S, t]
            c[t] = -eta * g
        elif g != 0.0:
            p = np.full(budget, 1 / budget)
            if weighted:
                weight = np.abs(c[S]) * np.sqrt(K[S, S])
                p = np.maximum(1 - (budget - 1) * weight / weight.sum(), 0.0)
                p = p / p.sum()
            i = int(np.searchsorted(np.cumsum(p), coins[t], side="right"))
            for j in range(budget):
                c[S[j]] = 0.0 if j == i else c[S[j]] / (1 - p[j])
            S = [*S[:i], t, *S[i + 1 :]]
            c[t] = -eta * g
            c = c * min(1.0, eta * gamma / np.abs(c).max())
        supports.append(S)
    return np.array(forecasts), supports


def projectron(K, y, threshold, budget=np.inf, aggressive=False, slack=None):
    """Projectron(++) with dense solves. Forecasts, supports, norms."""
    n = len(y)
    slack = 1 / threshold if slack is None else slack
    c, S = np.zeros(n), []
    forecasts, supports, norms = [], [], []
    for t in range(n):
        forecasts.append(K[t] @ c)
        margin = y[t] * forecasts[-1]
        beta = np.linalg.solve(K[np.ix_(S, S)], K[S, t]) if S else np.zeros(0)
        inside = K[S, t] @ beta
        distance = np.sqrt(max(K[t, t] - inside, 0.0))
        if margin <= 0:
            if len(S) == budget or (S and distance <= threshold):
                c[S] += y[t] * beta
            else:
                S = [*S, t]
                c[t] = y[t]
        elif margin < 1 and aggressive:
            excess = 1 - margin - distance * slack
            if excess > 0:
                tau = min((1 - margin) / inside, 1.0, 2 * excess / inside)
                c[S] += tau * y[t] * beta
        supports.append(S)
        norms.append(np.sqrt(c @ K @ c))
    return np.array(forecasts), supports, np.array(norms)


def aogd(K, y, slope, radius, threshold):
    """AOGD-ALD with dense solves. Forecasts, supports, norms, and the bound on the regret."""
    n = len(y)
    c, S, G, apart = np.zeros(n), [], 0.0, 0.0
    forecasts, supports, norms = [], [], []
    for t in range(n):
        forecasts.append(K[t] @ c)
        g, v = slope(forecasts[-1], y[t]), np.zeros(n)
        if g != 0.0:
            beta = np.linalg.solve(K[np.ix_(S, S)], K[S, t]) if S else np.zeros(0)
            distance = np.sqrt(max(K[t, t] - K[S, t] @ beta, 0.0))
            if S and distance <= max(threshold, 1e-6):
                v[S], apart = beta, apart + abs(g) * distance
            else:
                v[t], S = 1.0, [*S, t]
            G += g**2 * v @ K @ v
            c = c - radius * g * v / np.sqrt(G)
            c = c * min(1.0, radius / np.sqrt(c @ K @ c))
        supports.append(S)
        norms.append(np.sqrt(c @ K @ c))
    bound = radius * (3 * np.sqrt(G) + apart)
    return np.array(forecasts), supports, np.array(norms), bound


def krls(K, y, threshold):
    """KRLS-ALD by its definition: least squares over all past points, projected in their rounds.

    Forecasts, supports, and the coefficients in the end.
    """
    n = len(y)
    S, A, a = [], np.zeros((0, 0)), np.zeros(0)
    forecasts, supports = [], []
    for t in range(n):
        forecasts.append(K[t, S] @ a)
        beta = np.linalg.solve(K[np.ix_(S, S)], K[S, t]) if S else np.zeros(0)
        if not S or K[t, t] - K[S, t] @ beta > threshold:
            A = np.block([[A, np.zeros((len(A), 1))], [np.zeros((1, len(S))), np.ones((1, 1))]])
            S = [*S, t]
        else:
            A = np.concatenate([A, beta[None]])
        # Row s of A K_SS holds the values of the projected point at the atoms.
        a = np.linalg.lstsq(A @ K[np.ix_(S, S)], y[: t + 1], rcond=None)[0]
        supports.append(S)
    return np.array(forecasts), supports, a


def top(matrix, rank):
    values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-values)[:rank]
    order = order[values[order] > 1e-10 * values.max()]
    return values[order], vectors[:, order]


def nogd(K, y, slope, eta, budget, rank):
    """NOGD with explicit features and weights. Forecasts, sizes and support set."""
    n = len(y)
    S, a, w, features = [], [], None, None
    forecasts, sizes = [], []
    for t in range(n):
        forecasts.append(K[t, S] @ np.array(a) if w is None else w @ features(t))
        g = slope(forecasts[-1], y[t])
        if g != 0.0 and w is None:
            S, a = [*S, t], [*a, -eta * g]
            if len(S) == budget:
                values, V = top(K[np.ix_(S, S)], rank)
                w = np.sqrt(values) * (V.T @ np.array(a))

                def features(t, S=S, V=V, values=values):
                    return V.T @ K[S, t] / np.sqrt(values)

        elif g != 0.0:
            w = w - eta * g * features(t)
        sizes.append(len(S))
    return np.array(forecasts), np.array(sizes), S


def skegd(K, y, slope, eta, budget, rank, sampled, sketch_row, period=np.inf):
    """SkeGD, its sketches rebuilt at each update. Forecasts, sizes and support set."""
    n = len(y)
    S, a, w, features, since = [], [], None, None, 0
    forecasts, sizes = [], []
    for t in range(n):
        forecasts.append(K[t, S] @ np.array(a) if w is None else w @ features(t))
        g = slope(forecasts[-1], y[t])
        if g != 0.0 and w is None and len(S) < budget:
            S, a = [*S, t], [*a, -eta * g]
        elif g != 0.0:
            since += 1
            if w is None or since >= period:
                if w is not None:
                    S = [*S, t]
                since = 0
                Sp = np.array([sketch_row(i) for i in range(len(S))])
                full, columns = K[np.ix_(S, S)], [S[i] for i in sampled]
                values, V = top(Sp.T @ full @ Sp, rank)
                Q = np.linalg.pinv(Sp.T @ full[:, sampled], rcond=1.5e-8) @ V * np.sqrt(values)

                def features(t, Q=Q, columns=columns):
                    return Q.T @ K[columns, t]

                phi = features(t)
                w = forecasts[-1] * phi / (phi @ phi)
            w = w - eta * g * features(t)
        sizes.append(len(S))
    return np.array(forecasts), np.array(sizes), S


def bao2ks(Ks, y, radius, rate, budget, reservoir_size, beta, coins, confidence=0.01):
    """B(AO)2KS: f' of each kernel is a vector over all points. rate(t), reservoir_size(t): round t.

    Forecasts, sizes (all dictionaries together), norms of the f' in the end, restarts, support
    sets in the end.
    """
    n, K = len(y), len(Ks)
    c, S = np.zeros((K, n)), [set() for _ in Ks]
    V, p, L, eps, lost, restarts = [], np.full(K, 1 / K), np.zeros(K), 1.0, 0.0, 0
    forecasts, sizes = [], []
    for t in range(n):
        round_, lam = t + 1, rate(t + 1)
        h = np.zeros(n)
        for r in V:
            h[r] = -y[r] / len(V)

        def value(i, h=h, lam=lam, t=t):
            f = c[i] - lam * h
            return Ks[i][t] @ f * min(1.0, radius / max(np.sqrt(f @ Ks[i] @ f), 1e-300))

        frozen = np.where(p < 0.5 / K, 0.0, p)
        edges = np.cumsum(frozen)
        played = int(np.searchsorted(edges, coins[t, 0] * frozen.sum(), side="right"))
        forecasts.append(value(played))
        explored = int(coins[t, 1] * K)
        g = np.zeros(n)
        loss = y[t] * value(explored) < 1
        g[t] = -y[t] if loss else 0.0
        for i in range(K):
            step, joins = h, False
            if K == 1:
                if not loss:
                    continue
                d = np.sqrt((g - h) @ Ks[0] @ (g - h))
                q = min(d / (beta * (d + np.sqrt(h @ Ks[0] @ h))), 1.0)
                joins = coins[t, 1] < q
            elif i == explored:
                q, joins = 1 / K, True
            if joins:
                step = (g - h) / q + h
            c[i] = c[i] - lam * step
            S[i] |= set(V) | ({t} if joins and loss else set())
            norm = np.sqrt(max(c[i] @ Ks[i] @ c[i], 0.0))
            c[i] = c[i] * min(1.0, radius / max(norm, 1e-300))
        if K > 1:
            observed = (1 - y[t] * forecasts[-1]) / (1 + radius)
            L[played] += observed / (eps / (4 * K) + p[played])
            lost += observed
            if eps**2 * lost > K * np.log(K / confidence):
                eps, lost, L = eps / 2, 0.0, np.zeros(K)
            p = np.exp(-eps / (4 * K) * (L - L.min()))
            p = p / p.sum()
        for i in range(K):
            if len(S[i]) > budget:
                c[i], S[i] = 0.0, set()
                restarts += 1
        if len(V) < reservoir_size(round_):
            V = [*V, t]
        elif coins[t, 2] * round_ < len(V):
            V = [t if r == int(coins[t, 2] * round_) else v for r, v in enumerate(V)]
        sizes.append(sum(map(len, S)))
    norms = [np.sqrt(max(c[i] @ Ks[i] @ c[i], 0.0)) for i in range(K)]
    return np.array(forecasts), np.array(sizes), np.array(norms), restarts, S


def best_in_ball(K, y, radius, steps=3000):
    """Return the hinge loss of a good function with |f| <= radius: averaged subgradient steps."""
    c, mean = np.zeros(len(y)), np.zeros(len(y))
    values, best = np.zeros(len(y)), float(len(y))  # K c, and the loss of f = 0
    for step in range(1, steps + 1):
        g = np.where(y * values < 1, -y, 0.0)
        Kg = K @ g
        length = radius / math.sqrt(step * max(g @ Kg, 1e-300))
        c, values = c - length * g, values - length * Kg
        shrink = min(1.0, radius / max(math.sqrt(max(c @ values, 0.0)), 1e-300))
        c, values = c * shrink, values * shrink
        mean += (c - mean) / step
        if step % 50 == 0:
            best = min(best, *(np.maximum(1 - y * (K @ f), 0).sum() for f in (c, mean)))
    return best
