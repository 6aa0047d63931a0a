"""FrequentKONS from its definition (docs/frequent_kons.md), on explicit features, with its steps.

The projection on the span, S, A and w are in R^D; nothing is shared with the fast version.
"""

from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """One change of (w, A), and what it may add to 2 regret + potential, by powers of F."""

    name: str
    before: tuple[np.ndarray, np.ndarray]
    after: tuple[np.ndarray, np.ndarray]
    price: tuple[float, float, float]  # of F^2, F and 1
    log_det: float = 0.0  # what it costs in log det A


class Game(NamedTuple):
    """What a game leaves behind."""

    forecasts: np.ndarray
    sizes: np.ndarray
    steps: list[list[Step]]  # of each round
    R_G: float
    log_growth: float  # sum log(1 + eta g^2 psi' A^-1 psi)
    drops: int
    rhos: list[float]
    A: np.ndarray
    w: np.ndarray

    def bound(self, F):
        """Return the right-hand side of the theorem, halved, without alpha F^2."""
        prices = np.sum([step.price for steps in self.steps for step in steps], axis=0)
        return float(prices @ [F * F, F, 1.0]) / 2.0


def projection(atoms):
    """Return the projection on the span of the rows."""
    if len(atoms) == 0:
        return np.zeros((atoms.shape[1],) * 2)
    Q = np.linalg.qr(atoms.T)[0]
    return Q @ Q.T


def shrink(S, rank):
    """Return S after a shrink, and its rho."""
    _, values, V = np.linalg.svd(S, full_matrices=False)
    squares = np.append(values**2, np.zeros(rank + 1))
    rho = squares[rank]
    kept = squares[: min(rank, len(V))] - rho
    kept = kept[kept > 1e-15 * squares[0]]
    return np.sqrt(kept)[:, None] * V[: len(kept)], rho


def drop(S, e, theta, alpha):
    """Return S without the direction e: the root of the Schur complement's S (I - k v v') S'."""
    v = S @ e
    S = S - np.outer(v, e)
    if v @ v == 0.0:
        return S
    values, V = np.linalg.eigh(np.eye(len(S)) - np.outer(v, v) / (v @ v + theta * alpha))
    return (V * np.sqrt(np.maximum(values, 0.0))) @ V.T @ S


def prices(S, w, directions, alpha, eta):
    """Return theta and the price, at the norm of w, of dropping each direction."""
    F, found = np.linalg.norm(w), []
    for e in directions:
        mu, part = np.sum((S @ e) ** 2), abs(w @ e)
        theta = min(1.0, np.sqrt(mu / alpha))
        cost = np.log((theta + mu / alpha) / theta) / eta if theta > 0.0 else 0.0
        found.append((cost + alpha * F * (theta * F + 2.0 * (1.0 - theta) * part), theta))
    return found


def frequent_kons(F, y, derivative, C, alpha, eta, sigma, rank, size, threshold):
    """Play the rows of F : (n, D). derivative(forecast, y) is that of the loss."""
    n, D = F.shape
    S, w, held, drops = np.zeros((0, D)), np.zeros(D), [], 0
    A, P = alpha * np.eye(D), np.zeros((D, D))  # P projects on the span of those held
    R_G, growth, log_det = 0.0, 0.0, D * np.log(alpha)
    forecasts, sizes, every, rhos = np.zeros(n), np.zeros(n, dtype=int), [], []
    for t in range(n):
        steps, phi = [], F[t]

        def change(name, price, w_new, S_new, into=steps):
            nonlocal w, S, A, log_det
            before, now = (w, A), log_det
            if S_new is not S:
                S, A = S_new, alpha * np.eye(D) + S_new.T @ S_new
                log_det = np.linalg.slogdet(A)[1]
            w = w_new
            into.append(Step(name, before, (w, A), price, now - log_det))

        psi = P @ phi
        off = np.linalg.norm(phi - psi)
        raw = w @ psi
        forecasts[t] = yhat = np.clip(raw, -C, C)
        g = derivative(yhat, y[t])
        mu = eta * (g * off) ** 2
        if mu > threshold * (alpha + mu) and off**2 > 1e-12 * (phi @ phi):
            held.append(t)
            psi, off, P = phi, 0.0, projection(F[held])
        u = np.linalg.solve(A, psi)
        if raw != yhat:
            s, q = (raw - yhat) / (psi @ u), psi @ u
            change("slab", (0.0, 2 * abs(s) * off, -s * s * q), w - s * u, S)
        growth += np.log1p(eta * g * g * psi @ u)
        row = np.sqrt(eta) * g * psi
        # where the row is as small as that, g may be but rounding
        S_new = np.vstack([S, row]) if row @ row > 1e-20 * alpha else S
        step = g * np.linalg.solve(alpha * np.eye(D) + S_new.T @ S_new, psi)
        decrement = g * psi @ step
        R_G += decrement
        reach = abs(g) * (C + abs(yhat))
        more = decrement + max(eta - sigma, 0.0) * reach**2
        price = eta * (g * off) ** 2, 2 * abs(g) * off * (1 + eta * reach), more
        change("newton", price, w - step, S_new)
        if len(S) == 2 * rank:
            S_new, rho = shrink(S, rank)
            rhos.append(rho)
            change("shrink", (0.0, 0.0, 0.0), w, S_new)
        if len(held) > size:
            others = [projection(np.delete(F[held], j, axis=0)) for j in range(len(held))]
            directions = [F[i] - P @ F[i] for i, P in zip(held, others, strict=True)]
            directions = [e / np.linalg.norm(e) for e in directions]
            found = prices(S, w, directions, alpha, eta)
            j = int(np.argmin([price for price, _ in found]))
            theta, e = found[j][1], directions[j]
            part, free = abs(w @ e), (1 - theta) * alpha
            price = theta * alpha, 2 * free * part, -free * part**2
            change("drop", price, w - (w @ e) * e, drop(S, e, theta, alpha))
            held.pop(j)
            P, drops = others[j], drops + 1
        sizes[t] = len(held)
        every.append(steps)
    return Game(forecasts, sizes, every, R_G, growth, drops, rhos, A, w)
