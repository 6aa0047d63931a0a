"""FrequentKONS from its definition (docs/frequent_kons.md), on explicit features, with its steps.

The projection on the span, A and w are dense in R^D; nothing is shared with the fast version.
"""

from __future__ import annotations

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


def shrink(A, alpha, rank):
    """Return A after a shrink, its rho and its cost in log det."""
    values, V = np.linalg.eigh(A - alpha * np.eye(len(A)))
    ordered = np.sort(np.maximum(values, 0.0))[::-1]
    rho = ordered[rank] if rank < len(ordered) else 0.0
    kept = np.maximum(values - rho, 0.0)
    cost = np.log((alpha + np.maximum(values, 0.0)) / (alpha + kept)).sum()
    return alpha * np.eye(len(A)) + (V * kept) @ V.T, rho, cost


def drop(A, w, e, theta, alpha):
    """Return A and w without the direction e, and the cost in log det."""
    X = A - (1.0 - theta) * alpha * np.outer(e, e)
    pivot = e @ X @ e  # 0 where theta and the mass are
    schur = X - np.outer(X @ e, X @ e) / pivot if pivot > 0.0 else X
    after = schur + alpha * np.outer(e, e)  # schur is 0 along e
    cost = np.linalg.slogdet(A)[1] - np.linalg.slogdet(after)[1]
    return after, w - (w @ e) * e, cost


def prices(A, w, directions, alpha, eta):
    """Return theta and the price, at the norm of w, of dropping each direction."""
    F, found = np.linalg.norm(w), []
    for e in directions:
        mu, part = max(e @ A @ e - alpha, 0.0), abs(w @ e)
        theta = min(1.0, np.sqrt(mu / alpha))
        cost = np.log((theta + mu / alpha) / theta) / eta if theta > 0.0 else 0.0
        found.append((cost + alpha * F * (theta * F + 2.0 * (1.0 - theta) * part), theta))
    return found


def frequent_kons(F, y, derivative, C, alpha, eta, sigma, rank, size, threshold):
    """Play the rows of F : (n, D). derivative(forecast, y) is that of the loss."""
    n, D = F.shape
    A, w, held = alpha * np.eye(D), np.zeros(D), []
    rows = drops = 0
    R_G = growth = 0.0
    forecasts, sizes, every, rhos = np.zeros(n), np.zeros(n, dtype=int), [], []
    for t in range(n):
        steps, phi = [], F[t]

        def change(name, price, w_new, A_new, log_det=0.0, into=steps):
            nonlocal w, A
            into.append(Step(name, (w, A), (w_new, A_new), price, log_det))
            w, A = w_new, A_new

        psi = projection(F[held]) @ phi
        off = np.linalg.norm(phi - psi)
        raw = w @ psi
        forecasts[t] = yhat = np.clip(raw, -C, C)
        g = derivative(yhat, y[t])
        mu = eta * (g * off) ** 2
        if mu > threshold * (alpha + mu) and off**2 > 1e-12 * (phi @ phi):
            held.append(t)
            psi, off = phi, 0.0
        u = np.linalg.solve(A, psi)
        if raw != yhat:
            s, q = (raw - yhat) / (psi @ u), psi @ u
            change("slab", (0.0, 2 * abs(s) * off, -s * s * q), w - s * u, A)
        growth += np.log1p(eta * g * g * psi @ u)
        A_new = A + eta * g * g * np.outer(psi, psi)
        decrement = g * g * psi @ np.linalg.solve(A_new, psi)
        R_G += decrement
        reach = abs(g) * (C + abs(yhat))
        change(
            "newton",
            (
                eta * (g * off) ** 2,
                2 * abs(g) * off * (1 + eta * reach),
                decrement + max(eta - sigma, 0.0) * reach**2,
            ),
            w - g * np.linalg.solve(A_new, psi),
            A_new,
        )
        rows += bool(eta * g * g * psi @ psi > 1e-20 * alpha)  # not where g is but rounding
        if rows == 2 * rank:
            A_new, rho, cost = shrink(A, alpha, rank)
            rows = min(rank, int((np.linalg.eigvalsh(A_new) > alpha * (1 + 1e-12)).sum()))
            rhos.append(rho)
            change("shrink", (0.0, 0.0, 0.0), w, A_new, cost)
        if len(held) > size:
            others = [projection(np.delete(F[held], j, axis=0)) for j in range(len(held))]
            directions = [F[i] - P @ F[i] for i, P in zip(held, others, strict=True)]
            directions = [e / np.linalg.norm(e) for e in directions]
            found = prices(A, w, directions, alpha, eta)
            j = int(np.argmin([price for price, _ in found]))
            theta, e = found[j][1], directions[j]
            A_new, w_new, cost = drop(A, w, e, theta, alpha)
            part, free = abs(w @ e), (1 - theta) * alpha
            price = theta * alpha, 2 * free * part, -free * part**2
            change("drop", price, w_new, A_new, cost)
            held.pop(j)
            drops += 1
        sizes[t] = len(held)
        every.append(steps)
    return Game(forecasts, sizes, every, R_G, growth, drops, rhos, A, w)
