"""The best penalised function of a finite span of features, for every loss, with a duality gap."""

from typing import NamedTuple

import numpy as np
import scipy

from oklnumba.components.losses import Loss
from oklnumba.core import cholesky
from oklnumba.core.display import repr_fields
from oklnumba.hot.primitives.losses import QUANTILE, TUBE, loss_derivatives
from oklnumba.theory.matrix import EPS

RESTARTS = 10  # of L-BFGS: where it has stopped it often goes on with a new memory
MOST_STEPS, SOLVED = 40, 1e-14  # of methods that solve with an r x r matrix in each step
MOST_NEWTON = 200  # of Newton's method, halvings included
LOW_RANK = 500  # up to which they come first
GAP, MOST_GAP = 1e-6, 1e-3  # of the objective: how near to the best a solver tries and has to be
BOXES = ("hinge", "absolute", "epsilon_insensitive")  # losses that are solved in the dual


def in_dual(loss: Loss) -> bool:
    """Say whether the best function for a loss is computed in the dual: it has a kink."""
    return loss.name in BOXES or loss.code >= QUANTILE


class Comparator(NamedTuple):
    """The best penalised function in hindsight.

    Attributes
    ----------
    loss, norm : float
        Its cumulative loss, sum loss(f(x), y), and its norm |f| in the RKHS.
    predictions : ndarray of shape (n,)
        Its values f(x_i).
    lower, upper : float
        Bounds on the least loss + lam |f|^2 of all functions, rounding included.
    confidence : float
        How likely ``lower`` is a bound: 1, by a proof, or 0.999, by random frequencies.
    """

    loss: float
    norm: float
    predictions: np.ndarray
    lower: float
    upper: float
    confidence: float = 1.0

    def __repr__(self) -> str:
        bounds = {"lower": self.lower, "upper": self.upper}
        return repr_fields(
            self, rounds=len(self.predictions), loss=self.loss, norm=self.norm, **bounds
        )


class Weights(NamedTuple):
    """A solution on features: weights, dual variables, duality gap, and the solver's last point.

    With a = ``dual`` the gap is P(w) - D(a), for the dual function D(a) = sum -l*(-a_i) - |F'a|^2 /
    (4 lam). Where the loss is smooth a_i = -l'(F w)_i, and the gap |2 lam w - F'a|^2 / (4 lam).
    """

    w: np.ndarray
    dual: np.ndarray
    gap: float
    state: np.ndarray
    terms: float = 0.0  # sum of |terms| of -l*(-a_i), where these are summed


def best_weights(
    F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, start: np.ndarray | None = None,
    cure: str | None = None,
) -> tuple[Comparator, Weights]:  # fmt: skip
    """Return the best penalised function of a span of features, bounds for that span, and weights.

    F : (n, r); ``start`` : state of a solution for fewer rounds; cure : as in refuse_gap.
    FloatingPointError if the solver is not within MOST_GAP of the best (lam too small).
    """
    if loss.name == "squared":
        A = F.T @ F
        A[np.diag_indices_from(A)] += lam
        weights = _with_dual(F, y, lam, loss, cholesky.solve(cholesky.factor_matrix(A), F.T @ y))
        return _evaluate(F, y, lam, loss, weights), weights
    is_small = F.shape[1] <= LOW_RANK
    solvers = [_solve_newton] * is_small + [_solve_primal] * RESTARTS + [_solve_newton]
    if in_dual(loss):
        solvers = [_solve_interior, _solve_dual][:: 1 if is_small else -1]
    found: list[tuple[Comparator, Weights]] = []
    for solve in solvers:
        weights = solve(F, y, lam, loss, start)
        best = _evaluate(F, y, lam, loss, weights)
        if weights.gap <= GAP * (1.0 + best.upper):
            return best, weights
        found.append((best, weights))
        if solve is not _solve_newton:  # after which L-BFGS does better without its point
            start = weights.state
    best, weights = min(found, key=lambda one: one[1].gap)
    refuse_gap(best, weights.gap, loss, MOST_GAP, cure or f"raise lam (now {lam:g})")
    return best, weights


def refuse_gap(best: Comparator, gap: float, loss: Loss, most: float, cure: str) -> None:
    """Raise FloatingPointError if a solution may be farther above the best than a share of it.

    cure : what helps beside smaller inputs.
    """
    if not gap <= most * (1.0 + best.upper):
        raise FloatingPointError(
            f"the {loss.name} comparator may be {gap:.2g} above the best, whose objective is about "
            f"{best.upper:.4g}; scale the inputs, X / np.abs(X).max(), or {cure}"
        )


def _evaluate(F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, weights: Weights) -> Comparator:
    """Return the function of some weights, with its objective, gap and rounding as bounds."""
    fitted, (n, r) = F @ weights.w, F.shape
    total, norm = float(loss.value(fitted, y).sum()), float(np.linalg.norm(weights.w))
    value, a, lengths = total + lam * norm**2, np.abs(weights.dual), np.linalg.norm(F, axis=1)
    off = EPS * (r + 4) * norm * lengths  # rounding of each forecast
    if in_dual(loss):  # the gap has |F'a|^2 / (4 lam); slopes are at most 1
        squares, slopes = float(np.square(F.T @ weights.dual).sum()), np.maximum(a, 1.0)
    else:  # the gap is |2 lam w - F'a|^2 / (4 lam), a of the rounded forecasts; curvature <= 2
        squares, slopes = 4.0 * lam * weights.gap, a + 2.0 * off
    slack = EPS * (n + 4) * (float(lengths @ a) + 2.0 * lam * norm)  # rounding of what is squared
    loose = EPS * (n + 64) * (value + weights.terms) + float(off @ slopes)
    loose += (2.0 * float(np.sqrt(squares)) + slack) * slack / (4.0 * lam)
    return Comparator(total, norm, fitted, max(value - weights.gap - loose, 0.0), value + loose)


def _with_dual(F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, w: np.ndarray) -> Weights:
    """Return weights for a smooth loss with their dual variables."""
    slopes, gradient = _differentiate(F, F @ w, y, lam, loss, w)
    return Weights(w, -slopes, float(gradient @ gradient) / (4.0 * lam), w)


def _differentiate(
    F: np.ndarray, fitted: np.ndarray, y: np.ndarray, lam: float, loss: Loss, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes of a smooth loss at the forecasts F w, and the objective's gradient."""
    slopes = np.empty(len(y))
    loss_derivatives(loss.code, fitted, y, slopes)
    return slopes, F.T @ slopes + 2.0 * lam * w


def second_derivatives(loss: Loss, f: np.ndarray, y: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return those of a smooth loss in its forecasts f, whose derivatives are ``slope``, (n,)."""
    if loss.name == "logistic":
        return np.abs(slope) * (1.0 - np.abs(slope))
    if loss.name == "huber":
        return np.where(np.abs(y - f) < 1.0, 1.0, 0.0)
    return np.where((loss.name == "squared") | (y * f < 1.0), 2.0, 0.0)  # or its hinge


def _solve_newton(
    F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, start: np.ndarray | None
) -> Weights:
    """Minimise a smooth loss by Newton's method, in O(n r^2) a step; one that climbs is halved."""
    w, least = np.zeros(F.shape[1]) if start is None else start, np.inf
    best, least_gap, step = w, np.inf, np.zeros(len(w))
    for _ in range(MOST_NEWTON):
        fitted = F @ (w + step)
        value = float(loss.value(fitted, y).sum()) + lam * float((w + step) @ (w + step))
        if not value <= least * (1.0 + SOLVED):  # up to rounding
            step *= 0.5
            continue
        w, gained, least = w + step, least - value, value
        slopes, gradient = _differentiate(F, fitted, y, lam, loss, w)
        gap = float(gradient @ gradient) / (4.0 * lam)
        if gap < least_gap:
            best, least_gap = w, gap
        if gap <= SOLVED * (1.0 + value) or not gained > 0.0:
            break
        H = (F.T * second_derivatives(loss, fitted, y, slopes)) @ F
        H[np.diag_indices_from(H)] += 2.0 * lam
        try:
            step = -cholesky.solve(cholesky.factor_matrix(H), gradient)
        except scipy.linalg.LinAlgError:  # lam is lost in the rounding of H
            break
    return _with_dual(F, y, lam, loss, best)


def _solve_primal(
    F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, start: np.ndarray | None
) -> Weights:
    """Minimise a smooth loss over the weights."""

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        fitted = F @ w
        value = float(loss.value(fitted, y).sum()) + lam * float(w @ w)
        return value, _differentiate(F, fitted, y, lam, loss, w)[1]

    start = np.zeros(F.shape[1]) if start is None else start
    w = scipy.optimize.minimize(
        objective, start, jac=True, method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30},
    ).x  # fmt: skip
    return _with_dual(F, y, lam, loss, w)


def _solve_dual(
    F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, start: np.ndarray | None
) -> Weights:
    """Maximise the dual of a loss with a kink, c'b - |F'a|^2 / (4 lam) over a box; w = F'a/(2 lam).

    Hinge: a = b, c = y, 0 <= y_i b_i <= 1; absolute: |b_i| <= 1; quantile of level q: q - 1 <= b_i
    <= q; epsilon-insensitive: a = b+ - b-, c = (y - eps, -y - eps), 0 <= b <= 1.
    """
    n = len(y)
    low, high, c = _find_box(y, loss)
    paired = len(c) > n

    def objective(b: np.ndarray) -> tuple[float, np.ndarray]:
        w = F.T @ (b[:n] - b[n:] if paired else b)
        slope = F @ w / (2.0 * lam)
        slope = np.concatenate([slope, -slope]) if paired else slope
        return float(w @ w) / (4.0 * lam) - float(c @ b), slope - c

    b = scipy.optimize.minimize(
        objective, np.zeros(len(c)) if start is None else start, jac=True, method="L-BFGS-B",
        options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 30},
        bounds=scipy.optimize.Bounds(low, high),
    ).x  # fmt: skip
    w = F.T @ (b[:n] - b[n:] if paired else b) / (2.0 * lam)
    return _with_box(F, y, lam, loss, b, w)


def _find_box(y: np.ndarray, loss: Loss) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return low, high and c of the dual."""
    n = len(y)
    if loss.code >= QUANTILE:
        slope = loss.derivative(0.0, 1.0)  # -level
        return np.full(n, -1.0 - slope), np.full(n, -slope), y
    if loss.name == "hinge":
        return np.minimum(y, 0.0), np.maximum(y, 0.0), y
    if loss.name == "epsilon_insensitive":
        return np.zeros(2 * n), np.ones(2 * n), np.concatenate([y - TUBE, -y - TUBE])
    return np.full(n, -1.0), np.ones(n), y


def _with_box(
    F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, b: np.ndarray, w: np.ndarray
) -> Weights:
    """Return weights for a loss with a kink, with the gap to a point of the box of the dual."""
    n, c = len(y), _find_box(y, loss)[2]
    a = b[:n] - b[n:] if len(c) > n else b
    primal = float(loss.value(F @ w, y).sum()) + lam * float(w @ w)
    g = F.T @ a
    dual = float(c @ b) - float(g @ g) / (4.0 * lam)
    terms = float(np.abs(c) @ np.abs(b))
    return Weights(w, a, max(primal - dual, 0.0), b, terms)  # < 0 by rounding


@np.errstate(all="ignore")  # in the end rounding takes over
def _solve_interior(
    F: np.ndarray, y: np.ndarray, lam: float, loss: Loss, start: np.ndarray | None
) -> Weights:
    """Maximise the dual by Mehrotra's predictor-corrector method (1992), in O(n r^2) a step.

    With the distances s = (b - low, high - b) and multipliers z = (z_low, z_high), all positive,
    the optimum has G w - c = z_low - z_high, G'b = 2 lam w and s z = 0. Each step solves this,
    linearised, for s z = goal. ``start`` is not used: it may be on the border.
    """
    low, high, c = _find_box(y, loss)
    G = F if len(c) == len(y) else np.concatenate([F, -F])
    b = 0.5 * (low + high)
    s, w = np.stack([b - low, high - b]), G.T @ b / (2.0 * lam)
    slope = G @ w - c
    z = np.maximum([slope, -slope], 0.0) + np.abs(slope).mean() + (np.abs(c).max() or 1.0)
    best = _with_box(F, y, lam, loss, b, w)
    for _ in range(MOST_STEPS):
        D, mu = (z / s).sum(axis=0), (s * z).mean()
        A = G.T @ (G / D[:, None])
        A[np.diag_indices_from(A)] += 2.0 * lam
        try:
            factor = cholesky.factor_matrix(A)
        except scipy.linalg.LinAlgError:
            break
        goal = np.zeros_like(s)
        for _ in ("predictor", "corrector"):
            # D db + G dw = rest and G'db = 2 lam dw
            rest = goal[0] / s[0] - goal[1] / s[1] - slope
            dw = cholesky.solve(factor, G.T @ (rest / D))
            db = (rest - G @ dw) / D
            ds = np.stack([db, -db])
            dz = (goal - z * ds) / s - z
            # 0.99 of the way to the border, at most of the whole step; then s z is to be
            # sigma mu - ds dz, with the predictor's sigma = (mu_ahead / mu)^3.
            of_s, of_z = (0.99 / max(1.0, (-d / v).max()) for v, d in ((s, ds), (z, dz)))
            mu_ahead = ((s + of_s * ds) * (z + of_z * dz)).mean()
            goal = mu * (mu_ahead / mu) ** 3 - ds * dz
        s, z, w = s + of_s * ds, z + of_z * dz, w + of_s * dw
        b = np.clip(low + s[0], low, high)
        if not np.isfinite(b).all():
            break
        slope = G @ w - c
        found = _with_box(F, y, lam, loss, b, w)
        best = min(best, found, key=lambda one: one.gap)
        if not found.gap > SOLVED * (1.0 + abs(float(c @ b))):
            break
    return best


def extend_state(state: np.ndarray, loss: Loss, rounds: int, n: int) -> np.ndarray:
    """Return the state of a solution for ``rounds`` rounds as a start for n."""
    if not in_dual(loss):
        return state
    halves = state.reshape(-1, rounds)
    return np.concatenate([halves, np.zeros((len(halves), n - rounds))], axis=1).ravel()
