"""Textbook versions of every algorithm, NumPy only, straight from the definitions, no cleverness.

Nothing here is imported from oklnumba's compiled code. Kernels are passed as functions k(X, Z).
Linear learners are in naive_linear.py, gradient methods for kernel expansions in
naive_expansions.py.
"""

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

# ---- kernels and features ----


def distances(X, Z):
    return np.sqrt(((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def gaussian(X, Z, sigma=1.0):
    return np.exp(-(distances(X, Z) ** 2) / (2 * sigma**2))


def laplacian(X, Z, sigma=1.0):
    return np.exp(-distances(X, Z) / sigma)


def laplacian_l1(X, Z, sigma=1.0):
    return np.exp(-np.abs(X[:, None] - Z).sum(axis=2) / sigma)


def matern(X, Z, nu=1.5, sigma=1.0):
    s = np.sqrt(2 * nu) * distances(X, Z) / sigma
    factor = {0.5: 1.0, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu]
    return factor * np.exp(-s)


def polynomial(X, Z, degree=2, scale=1.0, coef0=1.0):
    return (scale * X @ Z.T + coef0) ** degree


def kernel_function(kernel):
    """Return the textbook's k(X, Z) for a kernel of the package."""
    params = kernel.get_params()
    of_class = {"Gaussian": gaussian, "Laplacian": laplacian, "Matern": matern}
    of_class |= {"Polynomial": polynomial, "Linear": np.inner}
    if params.pop("norm", 2) == 1:
        return partial(laplacian_l1, **params)
    return partial(of_class[type(kernel).__name__], **params)


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


def aioli(F, y, lam, B):
    """Forecasts of AIOLI by damped Newton steps on its objective, and what each round's bound adds.

    The latter is l(p) - (min F_t - min F_{t-1}), F_t = lam |w|^2 + the parabolas so far.
    """

    def loss(u, label):
        return np.logaddexp(0.0, -label * u)

    def objective(w, A, b, z):
        return w @ A @ w - 2 * b @ w + loss(w @ z, 1) + loss(w @ z, -1)

    A, b, const = lam * np.eye(F.shape[1]), np.zeros(F.shape[1]), 0.0
    forecasts, deltas = np.empty(len(y)), np.empty(len(y))
    for t, z in enumerate(F):
        w = np.linalg.solve(A, b)
        least = const - b @ w
        for _ in range(60):
            tanh, now = np.tanh(w @ z / 2), objective(w, A, b, z)
            curvature = 2 * A + (1 - tanh**2) / 2 * np.outer(z, z)
            move = np.linalg.solve(curvature, 2 * (A @ w - b) + tanh * z)
            while objective(w - move, A, b, z) > now + 1e-12 * abs(now):
                move = move / 2
            w = w - move
            if np.abs(move).max() <= 1e-15 * np.abs(w).max():
                break
        p = forecasts[t] = w @ z
        g = -y[t] / (1 + np.exp(y[t] * p))
        eta = np.exp(y[t] * p) / (1 + B)
        # the parabola l(p) + g (w.z - p) + eta g^2 (w.z - p)^2 / 2
        A = A + eta * g**2 / 2 * np.outer(z, z)
        b = b + (eta * g**2 * p - g) / 2 * z
        const += loss(p, y[t]) - g * p + eta * g**2 * p**2 / 2
        deltas[t] = loss(p, y[t]) - (const - b @ np.linalg.solve(A, b) - least)
    return forecasts, deltas


def udu(A):
    """U unit upper and D of A = U' diag(D) U, in extended precision."""
    A = np.array(A, dtype=np.longdouble)
    U, D = np.eye(len(A), dtype=np.longdouble), np.empty(len(A), dtype=np.longdouble)
    for k in range(len(A)):
        D[k] = A[k, k]
        U[k, k + 1 :] = A[k, k + 1 :] / D[k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :]) / D[k]
    return U, D


class Discounted:
    """F(w) = w'Aw - 2 b'w + q, the discounted penalised loss: A <- g A + z z', b and q likewise.

    With A = U'DU, D < lam after a discount is raised to lam, by penalties (lam - D_k) (u_k.w -
    c_k)^2 with c = U w of the least F. Without a discount nothing is raised.
    """

    def __init__(self, r, lam, discount):
        self.lam, self.discount = lam, discount
        self.A = np.longdouble(lam) * np.eye(r, dtype=np.longdouble)
        self.b, self.q = np.zeros(r, dtype=np.longdouble), np.longdouble(0.0)

    def fade(self):
        if self.discount == 1.0:
            return
        self.A, self.b, self.q = (self.discount * part for part in (self.A, self.b, self.q))
        U, D = udu(self.A)
        c = U @ longdouble_solve(self.A, self.b)
        raised = np.maximum(self.lam - D, 0.0)
        self.A += U.T @ np.diag(raised) @ U
        self.b += U.T @ (raised * c)
        self.q += raised @ c**2

    def forecast(self, z, awv):
        return z @ longdouble_solve(self.A + awv * np.outer(z, z), self.b)

    def learn(self, z, y):
        self.A += np.outer(z, z)
        self.b += y * z
        self.q += y**2

    def loss(self, w):
        return w @ self.A @ w - 2 * self.b @ w + self.q

    def least(self):
        return self.q - self.b @ longdouble_solve(self.A, self.b)

    def join(self, column, past, y):
        """Add a coordinate, column over the past rounds, whose others are past, with lam."""
        weights = np.longdouble(self.discount) ** np.arange(len(y), 0, -1)
        border, corner = past.T @ (weights * column), weights @ column**2 + self.lam
        self.A = np.block([[self.A, border[:, None]], [border[None, :], corner]])
        self.b = np.append(self.b, weights @ (column * y))


def discounted_forecasts(F, y, lam, discount, awv):
    """AWV or ridge with a discount: forecasts, and the least discounted penalised loss."""
    state = Discounted(F.shape[1], lam, discount)
    out, least = np.empty(len(y)), np.empty(len(y))
    for t, (z, label) in enumerate(zip(F.astype(np.longdouble), y, strict=True)):
        out[t] = state.forecast(z, awv)
        state.learn(z, label)
        least[t] = state.least()
        state.fade()
    return out, least


def discounted_nystrom_forecasts(k, X, y, lam, discount, kept, awv):
    """The same on the span of the atoms kept so far, in Cholesky coordinates of their kernel."""
    K = k(X.astype(np.longdouble), X.astype(np.longdouble))
    atoms, state = [], Discounted(0, lam, discount)
    out, least = np.empty(len(y)), np.empty(len(y))
    Phi = np.empty((len(y), 0), dtype=np.longdouble)
    for t in range(len(y)):
        if t in kept:
            atoms.append(t)
            order = [*atoms, *range(len(y))]
            coordinates = longdouble_rows(K[np.ix_(order, order)], len(atoms))
            state.join(coordinates[:t, -1], Phi[:t], y[:t])
            Phi = coordinates
        out[t] = state.forecast(Phi[t], awv)
        state.learn(Phi[t], y[t])
        least[t] = state.least()
        state.fade()
    return out, least


def longdouble_rows(K, m):
    """Coordinates, in the span of the first m points, of those behind them."""
    L = longdouble_cholesky(K[:m, :m])
    rows = np.zeros((len(K) - m, m), dtype=np.longdouble)
    for j in range(m):
        rows[:, j] = (K[m:, j] - rows[:, :j] @ L[j, :j]) / L[j, j]
    return rows


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
    """Solve a semi-definite system by elimination in extended precision; 0 along null pivots."""
    M = np.column_stack([A, b]).astype(np.longdouble)
    for j, size in enumerate(np.diag(A)):
        row = M[j] / M[j, j] if M[j, j] > 1e-17 * size else np.zeros_like(M[j])
        M[:, j:] -= M[:, j, None] * row[j:]
        M[j] = row
    return M[:, -1]


def decimal_solve(A, b):
    """Return A^-1 b for a positive definite A, lists of Decimal."""
    n, A, b = len(b), [row[:] for row in A], b[:]
    for k in range(n):
        for i in range(k + 1, n):
            f = A[i][k] / A[k][k]
            A[i] = [u - f * v for u, v in zip(A[i], A[k], strict=True)]
            b[i] -= f * b[k]
    for k in reversed(range(n)):
        b[k] = (b[k] - sum(u * v for u, v in zip(A[k][k + 1 :], b[k + 1 :], strict=True))) / A[k][k]
    return b


def nystrom_forecasts(k, X, y, lam, kept, awv):
    """AWV or ridge on the span of the atoms kept so far, x_t included (pkawv eq. 7, errata 18-20).

    argmin_a |Y_{t-1} - K_{t-1,m} a|^2 + lam a' K_mm a (+ (k_tm a)^2 for AWV) in extended precision,
    with the kernel in extended precision too.
    """
    K = k(X.astype(np.longdouble), X[kept].astype(np.longdouble))
    A, b = lam * K[kept], np.zeros(len(kept), dtype=np.longdouble)
    out = np.zeros(len(y))
    for t, row in enumerate(K):
        m, square = np.searchsorted(kept, t, side="right"), np.outer(row, row)
        now = A + square if awv else A
        out[t] = row[:m] @ longdouble_solve(now[:m, :m], b[:m])
        A += square
        b += y[t] * row
    return out


def kors(k, X, coins, alpha, beta, eps, listed=False, most=np.inf):
    """KORS by its definition (kons eq. 4, errata 7 and 8): indices kept, and all probabilities.

    ``listed``: with the weights 1/p on both sides of the printed code (errata 16). It ends with
    ``most`` points kept.
    """
    kept, weights, probabilities = [], [], []
    for t in range(len(X)):
        if len(kept) == most:
            break
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
            weights.append(p * p if listed else p)
    return kept, np.array(probabilities)


def penalised_comparator(K, y, lam):
    """min_f sum (y - f)^2 + lam |f|^2 by a dense solve."""
    a = np.linalg.solve(K + lam * np.eye(len(y)), y)
    f = K @ a
    return ((y - f) ** 2).sum() + lam * a @ K @ a


def growing_bound(K, y, lam, spans):
    """The bound of pkawv Theorem 9, with errata 23; spans[t]: indices of the span of round t.

    K may have more points than there are rounds: these only span.
    """
    Phi = gram_features(K)
    n, r = len(y), Phi.shape[1]
    projections = []
    for span in spans:
        directions, weights, _ = np.linalg.svd(Phi[span].T, full_matrices=False)
        basis = directions[:, weights > 1e-6]
        projections.append(basis @ basis.T)
    projections.append(np.eye(r))
    bound = 0.0
    for t in range(1, n + 1):
        P, after = projections[t - 1], projections[t]
        A = P @ Phi[:t].T @ Phi[:t] @ P + lam * np.eye(r)
        z = P @ Phi[t - 1]
        mu = np.linalg.norm((after - P) @ Phi[:t].T, 2) ** 2
        bound += y[t - 1] ** 2 * z @ np.linalg.solve(A, z)
        bound += (mu + lam) * t * mu * np.abs(y).max() ** 2 / lam**2
    return bound


def gradient_forecasts(F, y, derivative, eta):
    """Online gradient descent on features: w <- w - eta l'(w.z, y) z."""
    w = np.zeros(F.shape[1])
    out = np.empty(len(y))
    for t in range(len(y)):
        out[t] = w @ F[t]
        w = w - eta * derivative(out[t], y[t]) * F[t]
    return out


# ---- the online Newton step (kons), in explicit features ----

LOSS_VALUES = {
    "squared": lambda f, y: (f - y) ** 2,
    "absolute": lambda f, y: np.abs(f - y),
    "epsilon_insensitive": lambda f, y: np.maximum(np.abs(f - y) - 0.1, 0),
    "huber": lambda f, y: np.where(np.abs(f - y) < 1, (f - y) ** 2 / 2, np.abs(f - y) - 0.5),
    "quantile": lambda f, y: np.abs(f - y) / 2,
    "quantile(0.9)": lambda f, y: np.maximum(0.9 * (y - f), -0.1 * (y - f)),
    "hinge": lambda f, y: np.maximum(1 - y * f, 0),
    "squared_hinge": lambda f, y: np.maximum(1 - y * f, 0) ** 2,
    "logistic": lambda f, y: np.log1p(np.exp(-y * f)),
}
LOSS_DERIVATIVES = {
    "squared": lambda f, y: 2 * (f - y),
    "absolute": lambda f, y: np.sign(f - y),
    "epsilon_insensitive": lambda f, y: np.sign(f - y) * (np.abs(f - y) > 0.1),
    "huber": lambda f, y: np.clip(f - y, -1, 1),
    "quantile": lambda f, y: np.sign(f - y) / 2,
    "quantile(0.9)": lambda f, y: np.where(f < y, -0.9, 0.1) * (f != y),
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


def newton_forecast(A, u, phi, C):
    """Project u, where the last step led, onto |phi.w| <= C in the A norm (kons eq. 1).

    Return the new w, its forecast and by how much the projection changed it.
    """
    ybar = phi @ u
    h = np.sign(ybar) * max(abs(ybar) - C, 0.0)
    if h == 0.0:
        return u, ybar, 0.0
    direction = solve(A, phi)
    return u - h / (phi @ direction) * direction, np.clip(ybar, -C, C), h


class NewtonRun(NamedTuple):
    """What the Newton step did in each round; after a stop only the forecasts.

    decrements : g' A_t^-1 g; slopes : derivatives at the forecasts; over : by how much these were
    clipped; weights : a_t of A = alpha I + sum a_t phi_t phi_t'.
    """

    forecasts: np.ndarray
    decrements: np.ndarray
    slopes: np.ndarray
    over: np.ndarray
    weights: np.ndarray

    @property
    def R_G(self):
        return self.decrements.sum()

    @property
    def projected(self):
        return self.over != 0.0


def newton_steps(F, y, derivative, C, alpha, eta, coin=lambda t, phibar: 1.0, stop=0.0):
    """Projected online Newton step on the rows of F; eta is a number or one a round.

    coin(t, phibar), phibar = g sqrt(eta), is the weight of round t in A (Sketched-KONS). After a
    round with g' A_t^-1 g below ``stop`` nothing is learned.
    """
    n, D = F.shape
    eta = np.broadcast_to(eta, n)
    A, u = alpha * np.eye(D, dtype=F.dtype), np.zeros_like(F[0])
    out, decrements, slopes, weights = np.empty(n), np.zeros(n), np.zeros(n), np.zeros(n)
    over, last = np.zeros(n), [np.max(np.flatnonzero(phi), initial=0) for phi in F]
    for t, m in enumerate(np.maximum.accumulate(last) + 1):  # behind m all points so far are 0
        phi, now = F[t, :m], A[:m, :m]
        w, out[t], over[t] = newton_forecast(now, u[:m], phi, C)
        slopes[t] = derivative(out[t], y[t])
        g = slopes[t] * phi
        weight = eta[t] * coin(t, np.sqrt(eta[t]) * slopes[t] * F[t])
        weights[t] = weight * slopes[t] ** 2
        now += weight * np.outer(g, g)
        step = solve(now, g)
        u[:m], decrements[t] = w - step, g @ step
        if decrements[t] < stop:
            out[t + 1 :] = np.clip(F[t + 1 :] @ u, -C, C)
            break
    return NewtonRun(out, decrements, slopes, over, weights)


class SketchCoin:
    """Weights in A of Sketched-KONS (kons Algorithm 3, errata 6), with a KORS on phibar for p.

    A : KORS's, of its weighted dictionary; p : the probabilities so far; kors_coins and coins are
    the same coins for a KORS that shares them (and p); weighted : weights 1/p, not 1. For many
    seeds at once coins are (n, seeds), and phibar is (seeds, D).
    """

    def __init__(self, D, alpha, beta, eps, gamma, kors_coins, coins, weighted=False):
        self.A, self.p = alpha * np.eye(D), []
        self.beta, self.eps, self.gamma, self.weighted = beta, eps, gamma, weighted
        self.kors_coins, self.coins = kors_coins, coins

    def __call__(self, t, phibar):
        phibar = phibar.astype(float)
        square = phibar[..., :, None] * phibar[..., None, :]
        solved = np.linalg.solve(self.A + square, phibar[..., None])[..., 0]
        own = np.minimum(self.beta * (1 + self.eps) * (phibar * solved).sum(axis=-1), 1.0)
        p = np.maximum(own, self.gamma)
        self.p.append(p)
        own = p if self.kors_coins is self.coins else own
        weight = np.where(self.kors_coins[t] < own, 1.0 / np.maximum(own, 1e-300), 0.0)
        self.A = self.A + weight[..., None, None] * square
        return np.where(self.coins[t] < p, 1.0 / p if self.weighted else 1.0, 0.0)


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
        w, out[t], _ = newton_forecast(A, w - solve(A, g), phi, C)
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


def outlier_range(values, far):
    """Median of the values, and ``far`` median distances from it, of values that differ from it."""
    middle = np.median(values)
    apart = abs(values - middle)
    apart = apart[apart > 2.0**-49 * abs(middle)]
    return middle, far * np.median(apart) if len(apart) else np.inf


def without_outliers(column, t, far=100.0):
    """The first t numbers, each outlier replaced by the median of the last 256 numbers.

    Medians are taken after 16, 32, 64, 128, 256, 384, ... numbers, for those that follow; the first
    256 are judged again each time.
    """
    times = [m for m in (16, 32, 64, *range(128, t + 1, 128)) if m <= t]
    learned = np.array(column[:t], dtype=float)
    for m in times:
        middle, reach = outlier_range(column[max(m - 256, 0) : m], far)
        first = 0 if m <= 256 else m
        part = column[first:t]
        learned[first:] = np.where(abs(part - middle) > reach, middle, part)
    return learned


def standardised(X, clip=np.inf):
    """Each row by mean and deviation, in exact fractions, of the rows before it, no outliers."""
    out = np.zeros(X.shape)
    for j, column in enumerate(X.T):
        exact = [Fraction(float(v)) for v in column]
        for t in range(1, len(exact)):
            past = [Fraction(float(v)) for v in without_outliers(column, t)]
            mean = sum(past) / t
            variance = sum((v - mean) ** 2 for v in past) / t
            scale = float(variance) ** 0.5
            if scale <= 2.0**-49 * abs(float(mean)):
                scale = 1.0
            out[t, j] = np.clip(float(exact[t] - mean) / scale, -clip, clip)
    return out


def conformal_intervals(forecasts, y, coverage, eta, delay=0, batch=1):
    """Intervals by quantile tracking of log errors, from the definition; the first is infinite."""
    out, learned, t, excess, scale, half = [], 0, 0, 0.0, 0.0, np.inf
    for f in forecasts:
        out.append((f - half, f + half))
        due = len(out) - delay if len(out) % batch == 0 else 0
        for i in range(learned, due):
            learned += 1
            if y[i] == forecasts[i]:
                half = 0.0 if t == 0 else half
                continue
            t += 1
            score = np.log(abs(y[i] - forecasts[i]))
            above = score > scale
            scale = score if t == 1 else scale + max(2 / np.sqrt(t), eta) * (above - (1 - coverage))
            excess += (not out[i][0] <= y[i] <= out[i][1]) - (1 - coverage)
            half = np.exp(scale + eta * excess)
    return np.array(out)


# ---- several classes ----


def softmax_scores(forecasts, classes, lam=1 / 3, start=4.0):
    """Softmax regression on (1, forecasts) of classes 0, ..., K - 1 by online Newton steps.

    Classes that have not come yet are left out: their weights and inputs stay as they were.
    """
    K = forecasts.shape[1]
    W, A = start * np.eye(K, K + 1, 1), lam * np.eye(K + 1)  # A is the sum of the Hessians
    scores, came = np.zeros(forecasts.shape), np.zeros(K, dtype=bool)
    for t, (f, y) in enumerate(zip(forecasts, classes, strict=True)):
        x = np.append(1.0, np.where(came, np.clip(f, -10.0, 10.0), 0.0))
        p = np.where(came, np.exp(W @ x), 0.0)
        p /= p.sum() or 1.0
        scores[t] = np.log(np.maximum(p, 1.0 / (t + 1)))
        if came[y]:
            A += max(0.01, (p * (1 - p)).max()) * np.outer(x, x)
            W += np.outer((np.arange(K) == y) - p, np.linalg.solve(A, x))
        came[y] = True
    return scores
