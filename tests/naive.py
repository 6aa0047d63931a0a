"""Textbook versions of every algorithm, NumPy only, straight from the definitions, no cleverness.

Nothing here is imported from oklnumba's compiled code. Kernels are passed as functions k(X, Z).
"""

import itertools
import math

import numpy as np

# ---- kernels and features ----


def distances(X, Z):
    return np.sqrt(((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def gaussian(X, Z, sigma=1.0):
    return np.exp(-(distances(X, Z) ** 2) / (2 * sigma**2))


def laplacian(X, Z, sigma=1.0):
    return np.exp(-distances(X, Z) / sigma)


def matern(X, Z, nu=1.5, sigma=1.0):
    s = np.sqrt(2 * nu) * distances(X, Z) / sigma
    factor = {0.5: 1.0, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu]
    return factor * np.exp(-s)


def polynomial(X, Z, degree=2, scale=1.0, coef0=1.0):
    return (scale * X @ Z.T + coef0) ** degree


def linear(X, Z):
    return X @ Z.T


def taylor(X, degree, sigma, center=0.0):
    """Taylor features by their definition (pkawv eq. 6), in any order of the multi-indices."""
    X = X - center
    d = X.shape[1]
    columns = []
    for k in itertools.product(range(degree + 1), repeat=d):
        if sum(k) <= degree:
            g = np.exp(-(X**2).sum(axis=1) / (2 * sigma**2))
            for i in range(d):
                g = g * X[:, i] ** k[i] / (sigma ** k[i] * math.sqrt(math.factorial(k[i])))
            columns.append(g)
    return np.stack(columns, axis=1)


# ---- ridge and AWV: a dense argmin each round ----


def feature_forecasts(F, y, lam, awv):
    """AWV or ridge on features: argmin_w sum (y_s - w.z_s)^2 + lam |w|^2 (+ (w.z_t)^2 for AWV)."""
    out = np.empty(len(y))
    for t in range(len(y)):
        A = lam * np.eye(F.shape[1]) + F[:t].T @ F[:t]
        if awv:
            A += np.outer(F[t], F[t])
        out[t] = F[t] @ np.linalg.solve(A, F[:t].T @ y[:t])
    return out


def kernel_forecasts(K, y, lam, awv):
    """Kernel-AWV or kernel ridge: AWV is ridge on the past and the artificial point (x_t, 0)."""
    out = np.zeros(len(y))
    for t in range(len(y)):
        m = t + 1 if awv else t
        labels = np.append(y[:t], 0.0)[:m]
        out[t] = K[t, :m] @ np.linalg.solve(K[:m, :m] + lam * np.eye(m), labels)
    return out


def longdouble_solve(A, b):
    """Solve a semi-definite system by Cholesky in extended precision, skipping null pivots."""
    A = np.array(A, dtype=np.longdouble)
    n = len(A)
    L = np.zeros((n, n), dtype=np.longdouble)
    keep = np.zeros(n, dtype=bool)
    for j in range(n):
        pivot = A[j, j] - (L[j, :j] ** 2).sum()
        if pivot <= 1e-17 * A[j, j]:
            continue
        keep[j] = True
        L[j, j] = np.sqrt(pivot)
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    z = np.zeros(n, dtype=np.longdouble)
    for j in np.flatnonzero(keep):
        z[j] = (b[j] - L[j, :j] @ z[:j]) / L[j, j]
    x = np.zeros(n, dtype=np.longdouble)
    for j in np.flatnonzero(keep)[::-1]:
        x[j] = (z[j] - L[j + 1 :, j] @ x[j + 1 :]) / L[j, j]
    return x


def nystrom_forecasts(k, X, y, lam, kept, awv):
    """AWV or ridge on the span of the atoms kept so far, x_t included (pkawv eq. 7, errata 18-20).

    argmin_a |Y_{t-1} - K_{t-1,m} a|^2 + lam a' K_mm a (+ (k_tm a)^2 for AWV) in extended precision,
    with the kernel in extended precision too.
    """
    K = k(X.astype(np.longdouble), X.astype(np.longdouble))
    out = np.zeros(len(y))
    for t in range(len(y)):
        m = [i for i in kept if i <= t]
        rows = t + 1 if awv else t
        Kt = K[:rows][:, m]
        A = Kt.T @ Kt + lam * K[np.ix_(m, m)]
        out[t] = K[t, m] @ longdouble_solve(A, K[:t][:, m].T @ y[:t])
    return out


def kors(k, X, coins, alpha, beta, eps):
    """KORS by its definition (kons eq. 4, errata 7 and 8): indices kept, and all probabilities."""
    kept, weights, probabilities = [], [], []
    for t in range(len(X)):
        index = [*kept, t]
        S = np.diag(1 / np.sqrt(np.array([*weights, 1.0])))
        Kd = k(X[index], X[index])
        column = S @ Kd[:, -1]
        M = np.linalg.inv(S @ Kd @ S + alpha * np.eye(len(index)))
        tau = (1 + eps) / alpha * (Kd[-1, -1] - column @ M @ column)
        p = min(beta * tau, 1.0)
        probabilities.append(p)
        if coins[t] < p:
            kept.append(t)
            weights.append(p)
    return kept, np.array(probabilities)


def penalised_comparator(K, y, lam):
    """min_f sum (y - f)^2 + lam |f|^2 by a dense solve."""
    a = np.linalg.solve(K + lam * np.eye(len(y)), y)
    f = K @ a
    return ((y - f) ** 2).sum() + lam * a @ K @ a


def gradient_forecasts(F, y, derivative, eta):
    """Online gradient descent on features: w <- w - eta l'(w.z, y) z."""
    w = np.zeros(F.shape[1])
    out = np.empty(len(y))
    for t in range(len(y)):
        out[t] = w @ F[t]
        w = w - eta * derivative(out[t], y[t]) * F[t]
    return out


# ---- the listing printed in pkawv, H.2 ----


class PhiAWV:
    """PKAWV with Taylor features exactly as printed: all ordered products, dense NumPy."""

    def __init__(self, d, sigma=1.0, lbd=1.0, M=2):
        self.b = None
        self.M, self.lbd, self.sigma = M, lbd, sigma

    def taylor_phi(self, x):
        res = np.array([1.0])
        mm = np.array([1.0])
        for k in range(1, self.M + 1):
            mm = np.outer(mm, x).flatten()
            res = np.concatenate((res, mm / (self.sigma**k * np.sqrt(math.factorial(k)))))
        return res * np.exp(-np.dot(x, x) / (2 * self.sigma**2))

    def predict(self, x):
        z = self.taylor_phi(x)
        if self.b is None:
            self.b = np.zeros(len(z))
            self.A_inv = (1 / self.lbd) * np.eye(len(z))
        v = np.dot(self.A_inv, z)
        v /= np.sqrt(1 + np.dot(z, v))
        self.A_inv -= np.outer(v, v)
        self.z = z
        return np.dot(np.dot(self.A_inv, self.b), z)

    def update(self, y):
        self.b += y * self.z


def cholup(R, x, sign):
    """Return the upper factor of R'R +- x x'; the listing uses it and does not print it."""
    A = R.T @ R + (np.outer(x, x) if sign == "+" else -np.outer(x, x))
    return np.linalg.cholesky(A + 1e-13 * np.trace(A) / len(A) * np.eye(len(A))).T


class NystromListing:
    """Nystrom PKAWV with KORS as printed in H.2, with the slips of errata 16 and 18 corrected."""

    def __init__(self, d, k, lbd=1.0, eps=0.5, beta=1.0):
        self.X, self.Y, self.k, self.lbd = np.zeros((0, d)), np.zeros(0), k, lbd
        self.eps, self.beta = eps, beta
        self.R, self.KnM = np.eye(0), np.zeros((0, 0))
        self.chosen, self.S, self.SKS_inv = [], [], np.eye(0)

    @staticmethod
    def update_inv(A_inv, x):
        B, D = x[:-1][:, None], x[-1:][None]
        if A_inv.size == 0:
            return 1.0 / D
        compl = 1.0 / (D - B.T @ A_inv @ B)
        R0 = A_inv + A_inv @ B @ compl @ B.T @ A_inv
        R1 = -A_inv @ B @ compl
        return np.block([[R0, R1], [R1.T, compl]])

    def kors(self, K, coin):
        S = np.array([*self.S, 1.0])
        kS = K[:, -1] * S
        last = np.eye(len(kS))[:, -1]
        M = self.update_inv(self.SKS_inv, kS + self.lbd * last)
        tau = (1 + self.eps) / self.lbd * (K[-1, -1] - kS @ M @ kS)
        p = max(min(self.beta * tau, 1), 0)
        if coin < p:
            self.S.append(1 / np.sqrt(p))
            column = self.S[-1] * K[:, -1] * np.array(self.S)
            self.SKS_inv = self.update_inv(self.SKS_inv, column + self.lbd * last)
            return True
        return False

    def predict(self, x, coin):
        self.X = np.concatenate((self.X, x[None]))
        n = len(self.X)
        row = np.array([self.k(self.X[i], x) for i in self.chosen])
        self.KnM = np.concatenate((self.KnM, row[None]))
        block = np.concatenate(
            (self.KnM[self.chosen + [n - 1]], np.append(row, self.k(x, x))[:, None]), axis=1
        )
        keep = self.kors(block, coin)
        if self.chosen:
            self.R = cholup(self.R, row, "+")
        if keep:
            self.chosen.append(n - 1)
            column = np.array([self.k(self.X[i], x) for i in range(n)])
            self.KnM = np.concatenate((self.KnM, column[:, None]), axis=1)
            d = column @ column + self.lbd * column[-1]
            if len(self.chosen) == 1:
                self.R = np.array([[np.sqrt(d)]])
            else:
                b = self.KnM[self.chosen[:-1], -1]
                c = self.KnM[:, :-1].T @ column + self.lbd * b
                g = np.sqrt(1 + d)
                m = len(self.chosen)
                R = np.zeros((m, m))
                R[:-1, :-1] = self.R
                plus, minus = np.append(c / (1 + g), g), np.append(c / (1 + g), -1.0)
                A = R.T @ R + np.outer(plus, plus) - np.outer(minus, minus)
                self.R = np.linalg.cholesky(A + 1e-13 * np.trace(A) / m * np.eye(m)).T
        if not self.chosen:
            return 0.0
        right = self.KnM.T @ np.append(self.Y, 0.0)
        c = np.linalg.solve(self.R, np.linalg.solve(self.R.T, right))
        return np.array([self.k(self.X[i], x) for i in self.chosen]) @ c

    def update(self, y):
        self.Y = np.append(self.Y, y)


# ---- first-order learners: dense kernel matrices K of a stream, vectors over its points ----


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
    """NOGD with explicit features and weights. Forecasts and sizes."""
    n = len(y)
    S, a, w, features = [], [], None, None
    forecasts, sizes = [], []
    for t in range(n):
        if w is None:
            forecasts.append(K[t, S] @ np.array(a))
        else:
            forecasts.append(w @ features(t))
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
    return np.array(forecasts), np.array(sizes)


def skegd(K, y, slope, eta, budget, rank, sampled, sketch_row, period=np.inf):
    """SkeGD with the sketches made anew from their definition at each update. Forecasts, sizes."""
    n = len(y)
    S, a, w, features, since = [], [], None, None, 0
    forecasts, sizes = [], []
    for t in range(n):
        if w is None:
            forecasts.append(K[t, S] @ np.array(a))
        else:
            forecasts.append(w @ features(t))
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
    return np.array(forecasts), np.array(sizes)


def bao2ks(Ks, y, radius, rate, budget, reservoir_size, beta, coins, confidence=0.01):
    """B(AO)2KS: f' of each kernel is a vector over all points. rate(t), reservoir_size(t): round t.

    Forecasts, sizes (all dictionaries together), norms of the f' in the end, restarts.
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
    return np.array(forecasts), np.array(sizes), np.array(norms), restarts
