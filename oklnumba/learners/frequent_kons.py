"""KONS with a bounded dictionary, which drops atoms, and a sketch by Frequent Directions."""

import numpy as np
import scipy

from oklnumba.core import cholesky
from oklnumba.core.arrays import aligned_zeros
from oklnumba.core.checks import require_nonnegative
from oklnumba.core.guard import locked
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.params import KW_ONLY, count, field_in
from oklnumba.hot import frequent_kons as loops
from oklnumba.hot.primitives.expansion import expansion_forecasts
from oklnumba.hot.primitives.jit import ATOMS, NEED_ROOM, Out, enter
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.base.learner import Trace
from oklnumba.learners.kons import Curved
from oklnumba.learners.newton import shrink_sketch

DROPS = 2  # entry of the counts: atoms dropped so far


class FrequentKONS(Curved[loops.FrequentKONSState, loops.Work]):
    """KONS on a dictionary that drops atoms, its matrix a sketch by Frequent Directions (ours).

    x_t joins the dictionary if its gradient leads out of the span. If there are more than
    ``budget`` atoms, the one of the least price goes: its direction is taken out of w and of the
    sketch (Luo et al. 2016). ``regret_bound`` bounds the regret after every round; theorem and
    proof are in docs/frequent_kons.md. For m = budget a round takes O(m d + m^2 + m rank) time, and
    O(m^3 + m^2 rank) where an atom goes or every ``rank`` rounds. Memory is 8 (m (d + m + 2 rank) +
    4 rank^2) bytes, however long the stream.

    Parameters
    ----------
    kernel, loss, C, alpha, eta
        As in KONS with the constant schedule. A larger eta costs regret (see ``regret_bound``).
    rank : int >= 1
        Directions that the sketch keeps; it has up to 2 rank rows.
    budget : int >= 1
        Largest dictionary. Best well above ``rank``.
    threshold : float in [0, 1)
        Least leverage score in the sketch with which a point joins; 0: every point off the span.

    Remarks
    -------
    As in KRLS, 1e-14 k(x, x) is added to the kernel matrix's diagonal: near atoms cost no digits.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> learner = okl.FrequentKONS(okl.Gaussian(1.0), budget=10)
    >>> run = okl.run(learner, X, np.sin(3 * X[:, 0]))
    >>> round(run.mean_loss, 3), learner.size, learner.drops
    (0.068, 10, 35)
    """

    _layout = loops.FrequentKONSState
    _REMEDY = "raise alpha, lower eta, or scale the inputs"

    _: KW_ONLY
    rank: int = count(25, least=1)
    budget: int = count(100, least=1)
    threshold: float = field_in("[0, 1)", 1e-3)

    @property
    def R_G(self) -> float:
        """Sum of g_t' A_t^-1 g_t so far, a part of the regret bound."""
        return float(self._state.totals[loops.R_G]) if self._width is not None else 0.0

    @property
    def drops(self) -> int:
        """Atoms dropped so far."""
        return int(self._counts[DROPS])

    @locked
    def regret_bound(self, norm: float) -> float:
        """Return what the regret of the rounds so far is at most; infinite if labels came late.

        ``norm`` is |f| of the function to compare with, |f(x_t)| <= C in all rounds.

        Examples
        --------
        >>> learner = okl.FrequentKONS(okl.Gaussian(1.0), alpha=0.5).learn_one([0.0], 1.0)
        >>> round(learner.regret_bound(1.0), 3)
        2.25
        """
        F = require_nonnegative("norm", norm)
        if self._learned_late:
            return np.inf
        T = self._state.totals if self._width is not None else np.zeros(4)
        square = self._hyper.alpha + T[loops.SQUARE]
        return float(square * F * F + T[loops.LINEAR] * F + T[loops.CONSTANT] + T[loops.R_G]) / 2.0

    def _advice(self, X: np.ndarray) -> str | None:
        """Say so if no point can reach the threshold: the forecast would stay 0."""
        p, loss = self._checked_params(), self._loss()
        largest = 1.0 if loss.classes else p.C  # label
        slope = max(abs(loss.derivative(0.0, y)) for y in (-largest, largest))
        most = (p.eta or loss.curvature(p.C)) * slope**2 * float(p.kernel.diag(X).max())
        if p.threshold > 0.0 and most / (p.alpha + most) <= p.threshold:
            return (
                f"alpha={p.alpha:g} is so large that no point reaches threshold={p.threshold:g}, "
                "so all forecasts are 0 as long as k(x, x) is no larger than in the first rows; "
                f"take alpha below {most * (1.0 / p.threshold - 1.0):.3g}, or threshold=0"
            )
        return super()._advice(X)

    def _start(self, d: int) -> None:
        p, sigma = self._hyper, self._loss().curvature(self._hyper.C)
        self._eta = p.eta or sigma
        excess = max(self._eta - sigma, 0.0)
        self._newton = loops.Newton(self._loss_code, p.C, p.alpha, self._eta, excess)
        self._growth = loops.GrowthRule(p.threshold, p.budget)
        self._kernel, rows = p.kernel._code(), 2 * p.rank
        self._make_state(d=d, counts=3, totals=4, rows=rows)
        self._reserve({ATOMS: 1})

    def _choose_room(self, axis: int, least: int) -> int:
        return min(super()._choose_room(axis, least), self._hyper.budget + 1)

    def _make_work(self, state: loops.FrequentKONSState, rooms: dict[int, int]) -> loops.Work:
        return loops.Work(*aligned_zeros(3, rooms[ATOMS]), *aligned_zeros(2, len(state.S)))

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        loop, out = enter(loops.frequent_kons_rounds), Out(*trace[:2])
        first, status = 0, NEED_ROOM
        while status == NEED_ROOM:
            first, status = loop(
                X, y, first, self._kernel, self._newton, self._growth, self._state, self._work, out
            )
            S, p = self._state.S[:, : self.size], self._hyper
            is_full = self._counts[loops.SKETCH_ROWS] == len(S)
            over_budget = self.size > p.budget
            if is_full or over_budget:
                with cholesky.limit_threads(max(S.shape), 2):
                    if is_full:
                        rows = shrink_sketch(S, self._state.L, p.rank, p.alpha)
                        self._counts[loops.SKETCH_ROWS] = rows
                    if over_budget:
                        self._drop_atom()
            self._reserve({ATOMS: self.size + 1})
        self._count_rounds(len(X), first, status)

    def _drop_atom(self) -> None:
        """Take out the atom of the least price for a comparator of the norm of w, and its part."""
        m, rows, alpha = self.size, int(self._counts[loops.SKETCH_ROWS]), self._hyper.alpha
        state, totals = self._state, self._state.totals
        R, w, S = state.R[:m, :m], state.w[:m], state.S[:rows, :m]
        E = scipy.linalg.solve_triangular(R, np.eye(m))  # row j: orthogonal to all atoms but j
        E /= np.linalg.norm(E, axis=1)[:, None]
        mass, parts = ((E @ S.T) ** 2).sum(axis=1) / alpha, np.abs(E @ w)
        share, F = np.minimum(np.sqrt(mass), 1.0), float(np.linalg.norm(w))
        loss = np.log1p(np.maximum(np.sqrt(mass), mass)) / self._eta  # log((share + mass) / share)
        j = int(np.argmin(loss + alpha * share * F * F + 2.0 * alpha * F * (1.0 - share) * parts))
        totals[loops.SQUARE] += alpha * share[j]
        totals[loops.LINEAR] += 2.0 * alpha * (1.0 - share[j]) * parts[j]
        totals[loops.CONSTANT] -= alpha * (1.0 - share[j]) * parts[j] ** 2
        self._counts[DROPS] += 1
        # Coordinates in which the other atoms have a triangular factor, and the last is along e.
        Q, others = scipy.linalg.qr_delete(np.eye(m), R, j, which="col")
        signs = np.append(np.sign(np.diag(others)), 1.0)
        Q *= signs
        S[:], w[:], R[:, :-1] = S @ Q, Q.T @ w, np.triu(others) * signs[:, None]
        v, mu = S[:, -1].copy(), mass[j] * alpha
        if mu > 0.0:
            scale = np.sqrt(share[j] / (share[j] + mass[j]))
            S -= ((1.0 - scale) / mu) * np.outer(v, v @ S)
        self._counts[ATOMS] = m - 1
        state.atoms[:, j : m - 1] = state.atoms[:, j + 1 : m]
        S = S[:, :-1]
        state.L[:rows, :rows] = np.linalg.cholesky(S @ S.T + alpha * np.eye(rows)).T

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        m, state, C, forecasts = self.size, self._state, self._hyper.C, np.empty(len(X))
        a = scipy.linalg.solve_triangular(state.R[:m, :m], state.w[:m]) if m else np.zeros(0)
        k = np.empty(m)
        expansion_forecasts(X, self._kernel, state.atoms, a, state.counts, 1.0, k, forecasts)
        return forecasts.clip(-C, C)

    def _matrices(self) -> list[Part]:
        p, state = self._hyper, self._state
        sketch = Factored(state.L, int(self._counts[loops.SKETCH_ROWS]))
        return [
            measure_span(p.kernel, state.atoms[:, : self.size].T, state.R, [state.w], [p.C]),
            measure_part("alpha I + S S'", sketch),
        ]
