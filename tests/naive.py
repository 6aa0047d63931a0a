"""Textbook versions of every algorithm, NumPy only, straight from the definitions, no cleverness.

Nothing here is imported from oklnumba's compiled code. Kernels are passed as functions k(X, Z).
"""

import itertools
import math
from typing import NamedTuple

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


def longdouble_cholesky(A):
    """Lower factor of a semi-definite matrix in extended precision; columns of null pivots are 0.

    Its rows are features whose inner products are A.
    """
    A = np.array(A, dtype=np.longdouble)
    L = np.zeros_like(A)
    for j in range(len(A)):
        pivot = A[j, j] - (L[j, :j] ** 2).sum()
        if pivot > 1e-17 * A[j, j]:
            L[j, j] = np.sqrt(pivot)
            L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


def longdouble_solve(A, b):
    """Solve a semi-definite system in extended precision; 0 along null pivots."""
    L = longdouble_cholesky(A)
    keep = np.flatnonzero(np.diag(L))
    z = np.zeros(len(L), dtype=np.longdouble)
    for j in keep:
        z[j] = (b[j] - L[j, :j] @ z[:j]) / L[j, j]
    x = np.zeros(len(L), dtype=np.longdouble)
    for j in keep[::-1]:
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


# ---- the online Newton step (kons), in explicit features ----

LOSS_VALUES = {
    "squared": lambda f, y: (f - y) ** 2,
    "absolute": lambda f, y: np.abs(f - y),
    "hinge": lambda f, y: np.maximum(1 - y * f, 0),
    "squared_hinge": lambda f, y: np.maximum(1 - y * f, 0) ** 2,
    "logistic": lambda f, y: np.log1p(np.exp(-y * f)),
}
LOSS_DERIVATIVES = {
    "squared": lambda f, y: 2 * (f - y),
    "absolute": lambda f, y: np.sign(f - y),
    "hinge": lambda f, y: -y * (y * f < 1),
    "squared_hinge": lambda f, y: -2 * y * np.maximum(1 - y * f, 0),
    "logistic": lambda f, y: -y / (1 + np.exp(y * f)),
}


def polynomial_features(X, degree=2, scale=1.0, coef0=1.0):
    """Weighted monomials whose inner products are (scale x.z + coef0)^degree."""
    columns = []
    for k in itertools.product(range(degree + 1), repeat=X.shape[1]):
        rest = degree - sum(k)
        if rest >= 0:
            ways = math.factorial(degree) / math.prod(math.factorial(i) for i in (*k, rest))
            weight = math.sqrt(ways * scale ** sum(k) * coef0**rest)
            columns.append(weight * np.prod(X ** np.array(k), axis=1))
    return np.stack(columns, axis=1)


def gram_features(K):
    """Coordinates of n points in an orthonormal basis of their span: inner products K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def solve(A, b):
    """A^-1 b, in extended precision where A is."""
    return longdouble_solve(A, b) if A.dtype == np.longdouble else np.linalg.solve(A, b)


def newton_forecast(A, w, g, phi, C):
    """Step from w by the last gradient g, project onto |phi.w| <= C in the A norm (kons eq. 1).

    Return the new w, its forecast and whether the projection moved it.
    """
    u = w - solve(A, g)
    ybar = phi @ u
    h = np.sign(ybar) * max(abs(ybar) - C, 0.0)
    if h == 0.0:
        return u, ybar, False
    direction = solve(A, phi)
    return u - h / (phi @ direction) * direction, np.clip(ybar, -C, C), True


class NewtonRun(NamedTuple):
    """Forecasts, R_G = sum g' A_t^-1 g, derivatives at the forecasts and where it was projected."""

    forecasts: np.ndarray
    R_G: float
    slopes: np.ndarray
    projected: np.ndarray


def newton_steps(F, y, derivative, C, alpha, eta, coin=lambda t, phibar: True):
    """Projected online Newton step on the rows of F; eta is a number or one a round.

    coin(t, phibar), phibar = g sqrt(eta), says whether round t enters A (Sketched-KONS).
    """
    n, D = F.shape
    eta = np.broadcast_to(eta, n)
    A, w, g = alpha * np.eye(D, dtype=F.dtype), np.zeros_like(F[0]), np.zeros_like(F[0])
    out, slopes, projected = np.empty(n), np.empty(n), np.empty(n, dtype=bool)
    R_G = 0.0
    for t in range(n):
        w, out[t], projected[t] = newton_forecast(A, w, g, F[t], C)
        slopes[t] = derivative(out[t], y[t])
        g = slopes[t] * F[t]
        if coin(t, np.sqrt(eta[t]) * g):
            A = A + eta[t] * np.outer(g, g)
        R_G += float(g @ solve(A, g))
    return NewtonRun(out, R_G, slopes, projected)


def sketch_coin(D, alpha, beta, eps, gamma, kors_coins, coins):
    """Coins of Sketched-KONS (kons Algorithm 3, errata 6): p from a KORS of its own on phibar."""
    A = alpha * np.eye(D)  # of KORS's weighted dictionary

    def coin(t, phibar):
        nonlocal A
        phibar = phibar.astype(float)
        tau = (1 + eps) * phibar @ np.linalg.solve(A + np.outer(phibar, phibar), phibar)
        p = min(beta * tau, 1.0)
        if kors_coins[t] < p:
            A = A + np.outer(phibar, phibar) / p
        return coins[t] < max(p, gamma)

    return coin


def embedding(k, atoms):
    """B = U Sigma^-1 with K = U Sigma^2 U', null directions dropped: phi~(x) = B' k(atoms, x)."""
    values, U = np.linalg.eigh(k(atoms, atoms))
    positive = values > 1e-14 * len(atoms) * values[-1]
    return U[:, positive] / np.sqrt(values[positive])


def pros_n_kons(k, X, y, kept, derivative, C, alpha, eta, restart):
    """Pros-N-KONS, or CON-KONS without restarts, on the span of the atoms kept so far."""
    atoms, B = X[:0], np.zeros((0, 0))
    w, g, A = np.zeros(0), np.zeros(0), np.zeros((0, 0))
    out = np.empty(len(y))
    for t in range(len(y)):
        if t in kept:
            larger = X[[i for i in kept if i <= t]]
            B_larger = embedding(k, larger)
            Q = B_larger.T @ k(larger, atoms) @ B
            if restart:
                Q = np.zeros_like(Q)
            w, g = Q @ w, Q @ g
            A = Q @ (A - alpha * np.eye(len(A))) @ Q.T + alpha * np.eye(len(Q))
            atoms, B = larger, B_larger
        phi = B.T @ k(atoms, X[t : t + 1])[:, 0]
        w, out[t], _ = newton_forecast(A, w, g, phi, C)
        g = derivative(out[t], y[t]) * phi
        A = A + eta / 2 * np.outer(g, g)
    return out


def ald(F, threshold):
    """Rounds whose features are farther than the threshold from the span of those kept."""
    kept = []
    for t in range(len(F)):
        span = F[kept].T
        rest = F[t] - span @ np.linalg.lstsq(span, F[t], rcond=None)[0]
        if np.sqrt(rest @ rest) > threshold:
            kept.append(t)
    return kept


# ---- linear online convex optimisation (oco): each point by a numerical argmin ----


def newton(value, gradient, hessian, w, total=None):
    """Minimise a smooth convex function, on {sum w = total} if given; w is the start.

    Raises unless the gradient (along the constraint) vanishes to 1e-10 of its size at the start.
    """
    d = len(w)
    one = np.ones(d)

    def residual(w):
        g = gradient(w)
        return np.linalg.norm(g - (g.mean() if total is not None else 0.0))

    size = 1.0 + np.linalg.norm(gradient(w))
    for _ in range(300):
        g, H = gradient(w), hessian(w)
        if total is None:
            step = -np.linalg.solve(H, g)
        else:
            K = np.block([[H, one[:, None]], [one[None, :], np.zeros((1, 1))]])
            step = np.linalg.solve(K, np.append(-g, total - w.sum()))[:d]
        length = 1.0
        while length > 1e-12:
            new = w + length * step
            inside = total is None or (new > 0).all()
            if inside and value(new) <= value(w) + 1e-4 * length * (g @ step) + 1e-15 * abs(
                value(w)
            ):
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
    if domain == "all":
        return newton(
            lambda w: w @ A @ w / 2 - b @ w, lambda w: A @ w - b, lambda w: A, np.zeros(d)
        )
    if domain == "ball":
        w = np.linalg.solve(A, b)
        if np.linalg.norm(w) <= radius:
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


def adaptive_matrices(gradients, kind, eta, sigma):
    """A_0, ..., A_T of oco section 2.5."""
    d = gradients.shape[1]
    matrices = []
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
        matrices.append(A / eta)
    return matrices


def adaptive_points(gradients, kind, eta, sigma):
    matrices = adaptive_matrices(gradients, kind, eta, sigma)
    return np.array(
        [quadratic_argmin(A, -gradients[:t].sum(axis=0)) for t, A in enumerate(matrices)]
    )


def strongly_convex_points(gradients, lam):
    """Argmin <G, w> + lam/2 |w|^2 + sum_s lam/2 |w - w_s|^2."""
    d = gradients.shape[1]
    points = []
    for t in range(len(gradients) + 1):
        b = -gradients[:t].sum(axis=0) + lam * sum(points, np.zeros(d))
        points.append(quadratic_argmin(lam * (t + 1) * np.eye(d), b))
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
            _, values, directions = np.linalg.svd(S, full_matrices=False)
            rest = values[rank] ** 2 if len(values) > rank else 0.0
            kept = np.maximum(values[:rank] ** 2 - rest, 0.0)
            S = (np.sqrt(kept)[:, None] * directions[:rank])[kept > 0]
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


def aggregate(F, y, B, kind, loss):
    """Forecasts of the experts' aggregate, from the definitions."""
    n, N = F.shape
    out = np.empty(n)
    L = np.zeros(N)
    for t in range(n):
        f = F[t] if kind == "hedge" else np.clip(F[t], -B, B)
        eta = {"aggregating": 1 / (2 * B**2), "average": 1 / (8 * B**2)}.get(kind)
        if kind == "hedge":
            eta = np.sqrt(8 * np.log(N) / (t + 1)) / B
        p = np.exp(-eta * (L - L.min()))
        p /= p.sum()
        if kind == "aggregating":
            g = [-np.log(p @ np.exp(-eta * (label - f) ** 2)) / eta for label in (-B, B)]
            out[t] = (g[0] - g[1]) / (4 * B)
        else:
            out[t] = p @ f
        L += loss(f, y[t])
    return out


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
    """NOGD with explicit features and weights. Forecasts, sizes and support set."""
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
    return np.array(forecasts), np.array(sizes), S


def skegd(K, y, slope, eta, budget, rank, sampled, sketch_row, period=np.inf):
    """SkeGD, its sketches made anew at each update. Forecasts, sizes and support set."""
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
