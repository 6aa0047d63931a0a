"""Textbook linear learners (oco): each point by a numerical argmin. See naive.py."""

import itertools

import numpy as np

from tests.reference.naive_frequent import shrink


def newton(value, gradient, hessian, w, total):
    """Minimise a smooth convex function on {w > 0, sum w = total}; w is the start.

    Raises unless the gradient along the constraint vanishes to 1e-10 of its size at the start.
    """
    d = len(w)
    K = np.ones((d + 1, d + 1))
    K[d, d] = 0.0

    def residual(w):
        g = gradient(w)
        return np.linalg.norm(g - g.mean())

    size = 1.0 + np.linalg.norm(gradient(w))
    for _ in range(300):
        g, K[:d, :d] = gradient(w), hessian(w)
        step = np.linalg.solve(K, np.append(-g, total - w.sum()))[:d]
        length = 1.0
        while length > 1e-12:
            new = w + length * step
            least = value(w) + 1e-4 * length * (g @ step) + 1e-15 * abs(value(w))
            # Near the minimum values differ by their rounding only, and the gradient decides.
            if (new > 0).all() and (value(new) <= least or residual(new) <= 0.5 * residual(w)):
                break
            length /= 2
        if np.linalg.norm(length * step) <= 1e-15 * (1 + np.linalg.norm(w)):
            break
        w = new
    assert residual(w) <= 1e-10 * size, residual(w)
    return w


def quadratic_argmin(A, b, domain="all", radius=None):
    """Minimise w'Aw / 2 - b.w over the space, a ball (by bisection) or the simplex (all faces)."""
    d = len(b)
    if domain != "simplex":
        w = np.linalg.solve(A, b)
        if domain == "all" or np.linalg.norm(w) <= radius:
            return w
        values, vectors = np.linalg.eigh(A)
        target = vectors.T @ b
        low, high = 0.0, np.linalg.norm(b) / radius
        for _ in range(200):
            mu = (low + high) / 2
            if np.linalg.norm(target / (values + mu)) > radius:
                low = mu
            else:
                high = mu
        return vectors @ (target / (values + high))
    best, best_value = None, np.inf
    for m in range(1, d + 1):
        for face in itertools.combinations(range(d), m):
            face = list(face)
            K = np.ones((m + 1, m + 1))
            K[:m, :m] = A[np.ix_(face, face)]
            K[m, m] = 0.0
            v = np.linalg.solve(K, np.append(b[face], 1.0))[:m]
            if v.min() < 0:
                continue
            w = np.zeros(d)
            w[face] = v
            if w @ A @ w / 2 - b @ w < best_value:
                best, best_value = w, w @ A @ w / 2 - b @ w
    return best


def ogd_points(gradients, steps, radius=None):
    """w_{t+1} = argmin over the ball of eta_t <g, w> + |w - w_t|^2 / 2."""
    w = np.zeros(gradients.shape[1])
    points = [w]
    for g, eta in zip(gradients, steps, strict=True):
        w = quadratic_argmin(np.eye(len(w)), w - eta * g, "ball" if radius else "all", radius)
        points.append(w)
    return np.array(points)


def p_norm_points(gradients, eta, p):
    """Argmin <G, w> + |w|_p^2 / (2 eta): its gradient vanishes, |w|_p found by bisection."""
    points = []
    for t in range(len(gradients) + 1):
        G = gradients[:t].sum(axis=0)
        low, high = 1e-12, 1e12

        def point(norm, G=G):  # |w|_p^{2-p} |w_i|^{p-1} = eta |G_i|
            return -np.sign(G) * (eta * np.abs(G) * norm ** (p - 2)) ** (1 / (p - 1))

        for _ in range(200):
            norm = np.sqrt(low * high)
            larger = (np.abs(point(norm)) ** p).sum() ** (1 / p) > norm
            low, high = (norm, high) if larger else (low, norm)
        points.append(point(high) if G.any() else np.zeros(len(G)))
        w = points[-1]
        gradient = (np.abs(w) ** p).sum() ** ((2 - p) / p) * np.sign(w) * np.abs(w) ** (p - 1) / eta
        assert np.abs(G + gradient).max() <= 1e-9 * (1 + np.abs(G).max())
    return np.array(points)


def entropy_points(gradients, eta, scale):
    d = gradients.shape[1]
    points = []
    for t in range(len(gradients) + 1):
        G = gradients[:t].sum(axis=0)
        points.append(
            newton(
                lambda w, G=G: G @ w + (w * np.log(w)).sum() / eta,
                lambda w, G=G: G + (np.log(w) + 1) / eta,
                lambda w: np.diag(1 / w) / eta,
                np.full(d, scale / d),
                total=scale,
            )
        )
    return np.array(points)


def adaptive_points(gradients, kind, eta, sigma):
    """Argmin <G, w> + w'Aw / 2 with A_0, ..., A_T of oco section 2.5."""
    d = gradients.shape[1]
    points = []
    for t in range(len(gradients) + 1):
        S = gradients[:t].T @ gradients[:t]
        if kind == "sqrt":
            A = np.sqrt(t + 1) * np.eye(d)
        elif kind == "gradient":
            A = np.sqrt(sigma + np.trace(S)) * np.eye(d)
        elif kind == "adagrad":
            A = np.diag(np.sqrt(sigma + np.diag(S)))
        else:
            values, vectors = np.linalg.eigh(sigma * np.eye(d) + S)
            A = vectors @ np.diag(np.sqrt(values)) @ vectors.T
        points.append(quadratic_argmin(A / eta, -gradients[:t].sum(axis=0)))
    return np.array(points)


def strongly_convex_points(gradients, lam):
    """Argmin <G, w> + lam/2 |w|^2 + sum_s lam/2 |w - w_s|^2."""
    d = gradients.shape[1]
    points = []
    for t in range(len(gradients) + 1):
        b = -gradients[:t].sum(axis=0) + lam * sum(points, np.zeros(d))
        points.append(quadratic_argmin(lam * (t + 1) * np.eye(d), b))
    return np.array(points)


def coin_betting_points(gradients, lipschitz, wealth):
    """Orabona and Pal 2016, Algorithm 1, on c = -g / L; no L: the largest |g| so far, g cut to it.

    The wealth is eps for each unit of L, less what was lost; rounds with g = 0 are left out.
    """
    points, bets = [], []  # of rounds with a gradient: g as it counts, and w
    L = lipschitz
    for g in [*gradients, None]:
        w = np.zeros(gradients.shape[1])
        if bets:
            money = L * wealth - sum(g_s @ w_s for g_s, w_s in bets)
            w = sum(-g_s / L for g_s, _ in bets) / (len(bets) + 1) * money / L
        points.append(w)
        if g is not None and g.any():
            L = L or np.linalg.norm(g)
            bets.append((g * min(1.0, L / np.linalg.norm(g)), w))
            L = max(L, np.linalg.norm(g))
    return np.array(points)


def exp_concave_points(gradients, alpha, L, domain, radius=None):
    """Argmin <G, w> + alpha L^2 / 2 |w|^2 + sum_s alpha/2 (g_s.(w - w_s))^2 on the domain."""
    d = gradients.shape[1]
    points = []
    for t in range(len(gradients) + 1):
        A, b = alpha * L**2 * np.eye(d), np.zeros(d)
        for g, w in zip(gradients[:t], points, strict=True):
            A += alpha * np.outer(g, g)
            b += alpha * g * (g @ w) - g
        points.append(quadratic_argmin(A, b, domain, radius))
    return np.array(points)


def newton_step_run(X, y, derivative, C, alpha, eta, rank=None):
    """Online Newton step with dense matrices; ``rank``: frequent directions, 2 rank rows."""
    d = X.shape[1]
    S = np.zeros((0, d))
    w = np.zeros(d)
    forecasts, points = [], []
    for x, label in zip(X, y, strict=True):
        if rank is not None and len(S) == 2 * rank:
            S, _ = shrink(S, rank)
        inverse = np.linalg.inv(alpha * np.eye(d) + S.T @ S)
        excess = np.sign(w @ x) * max(abs(w @ x) - C, 0.0)
        if excess:
            w = w - excess / (x @ inverse @ x) * inverse @ x
        forecasts.append(w @ x)
        points.append(w)
        g = derivative(w @ x, label) * x
        if g.any():
            S = np.vstack([S, np.sqrt(eta) * g])
        w = w - np.linalg.solve(alpha * np.eye(d) + S.T @ S, g)
    return np.array(forecasts), np.array(points + [w])


def aggregate(F, y, B, kind, loss, share=0.0):
    """Forecasts of the experts' aggregate, from the definitions.

    B : a bound on the labels; None: the largest |y| so far; (n,): that, from larger ones on.
    Weights are a power of those before where the rate falls, then shared (Herbster, Warmuth 1998).
    """
    n, N = F.shape
    learned = B is None or np.ndim(B) == 1
    largest = np.maximum.accumulate(np.append(0.0, np.abs(y)))[:-1]

    def rate(t, bound):
        if kind == "hedge":
            return np.sqrt(8 * np.log(N) / (t + 1)) / bound
        return {"aggregating": 1 / 2, "average": 1 / 8}[kind] / bound**2

    out, log_w = np.zeros(n), np.zeros(N)
    for t, bound in enumerate(np.broadcast_to(largest if B is None else B, n)):
        if bound == 0.0:
            continue
        after = max(bound, abs(y[t])) if learned else bound
        eta = rate(t, bound)
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        f = F[t] if kind == "hedge" else np.clip(F[t], -bound, bound)
        if kind == "aggregating":
            g = [-np.log(w @ np.exp(-eta * (label - f) ** 2)) / eta for label in (-bound, bound)]
            out[t] = (g[0] - g[1]) / (4 * bound)
        else:
            out[t] = w @ f
        label = y[t] if kind == "hedge" else np.clip(y[t], -bound, bound)
        log_w = (log_w - eta * loss(f, label)) * (rate(t + 1, after) / eta)
        if share > 0:
            w = np.exp(log_w - log_w.max())
            log_w = np.log((1 - share) * w / w.sum() + share / N)
    return out


def mlpoly(F, y, loss_derivative, debt=0.0):
    """Forecasts of ML-Poly from its definition, with the largest squared regret so far for 1.

    Experts are asleep where they forecast NaN; debt : first regret against the last one, below 0.
    """
    out, R, V, M = np.empty(len(y)), *np.zeros((2, F.shape[1])), 0.0
    R[-1] -= debt
    for t in range(len(y)):
        awake = F[t] == F[t]
        f, regrets = F[t, awake], np.maximum(R[awake], 0.0)
        w = regrets / (M + V[awake]) if regrets.any() else np.ones(len(f))
        out[t] = w @ f / w.sum()
        r = loss_derivative(out[t], y[t]) * (out[t] - f)
        R[awake] += r
        V[awake] += r**2
        M = max(M, (r**2).max())
    return out


def best_sequence(losses, switches):
    """Loss of the best choice of an expert for each round, with at most so many switches."""
    best = np.tile(losses[0], (switches + 1, 1))  # by switches so far, and expert now
    for row in losses[1:]:
        fresh = np.vstack([np.full(len(row), np.inf), np.tile(best.min(1), (len(row), 1)).T[:-1]])
        best = np.minimum(best, fresh) + row
    return best.min()
