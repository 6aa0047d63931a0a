"""The online Newton step in the primal, exact and with a sketch of its matrix."""

from math import inf
from typing import Any

import numpy as np

from oklnumba.components import losses
from oklnumba.components.losses import loss_field
from oklnumba.core import inputs
from oklnumba.core.arrays import aligned_zeros, round_up_to_vector
from oklnumba.core.health import UNIT, Factored, Part, measure_part
from oklnumba.core.params import KW_ONLY, count, positive, width
from oklnumba.core.state import StateT, WorkT
from oklnumba.hot import newton as loops
from oklnumba.hot.primitives.jit import NEED_ROOM, enter
from oklnumba.hot.primitives.linalg import all_finite, solve_upper
from oklnumba.hot.primitives.losses import LINEAR_LOSS
from oklnumba.hot.primitives.udu import TOGETHER
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.linear import LinearLearner
from oklnumba.learners.base.traits import Traits

NEWTON = "A_0 + eta sum g g'"
NULL_SQUARE = 1e-15  # share of a sketch's largest square below which another is rounding


@np.errstate(under="ignore")
def shrink_sketch(S: np.ndarray, R: np.ndarray, rank: int, alpha: float) -> int:
    """Shrink a full sketch S and R, R' R = alpha I + S S', in place; return the rows in use."""
    square, vectors = np.linalg.eigh(S @ S.T)
    square, vectors = np.maximum(square[::-1], 0.0), vectors[:, ::-1]
    shrunk = square[:rank] - square[rank]
    # Directions that are null to rounding are dropped: no division by 0.
    m = int((shrunk > NULL_SQUARE * square[0]).sum())
    weights = np.sqrt(shrunk[:m] / square[:m])
    S[:m] = (vectors[:, :m] * weights).T @ S
    S[m:] = 0.0
    R[:] = 0.0
    R[range(m), range(m)] = np.sqrt(alpha + shrunk[:m])
    return m


ROWS = 512  # most rounds of a block


class NewtonLearner(LinearLearner[loops.NewtonState, loops.NewtonWork]):
    """Learners with A = A_0 + eta sum g g' as a factor U' D U: O(d^2) per round."""

    _layout = loops.NewtonState
    _C = inf
    _traits = Traits(block_rows=ROWS)

    def _begin_factor(self, d: int, start: float, eta: float) -> None:
        """Start at A = start I and w = 0."""
        r = round_up_to_vector(d)
        self._make_state(r=r)
        np.fill_diagonal(self._state.U, 1.0)
        self._state.inv_d[:] = 1.0 / start
        self._eta = eta
        self._Z = aligned_zeros(ROWS, r)

    def _make_work(self, state: loops.NewtonState, rooms: dict[int, int]) -> loops.NewtonWork:
        wide = aligned_zeros(2 * TOGETHER + 1, state.U.shape[1])
        small = aligned_zeros(TOGETHER + 5, loops.SMALL)
        H, (m, slopes, shifts, delayed, a) = small[:TOGETHER], small[TOGETHER:]
        p, beta, scan = wide[:TOGETHER], wide[TOGETHER:-1], wide[-1]
        return loops.NewtonWork(p, beta, scan, a, H, m, slopes, shifts, delayed)

    def _pad(self, X: np.ndarray) -> np.ndarray:
        Z = self._Z[: len(X)]
        Z[:, : X.shape[1]] = X
        return Z

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        # Gradients alone do not say where the next x will lie: a game has no slab to project on.
        step = loops.Step(loss, self._eta, inf if loss == LINEAR_LOSS else self._C)
        play = enter(loops.newton_rounds)
        return play(self._pad(X), y, step, self._state, self._work, out)

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        forecasts, loop = np.empty(len(X)), enter(loops.newton_forecasts)
        loop(self._pad(X), self._C, self._state.U, self._state.c, self._work.p, forecasts)
        return forecasts

    def _point(self) -> np.ndarray:
        w = self._state.c.copy()
        solve_upper(self._state.U, w, len(w))
        return w[: self._width].copy()

    def _matrices(self) -> list[Part]:
        d, (U, inv_d, c) = self.size, self._state
        matrix = Factored(U, d, 1.0 / inv_d[:d])
        part = measure_part(NEWTON, matrix, [matrix.half_solve(c)], [self._C])
        # Without a bound on forecasts their scale may be anything: the worst.
        return [part if self._C < inf else part._replace(error=UNIT * part.condition)]

    def _finite(self) -> bool:
        return all_finite(self._state.c) and all_finite(self._state.inv_d)


class BoundedForecasts(Learner[StateT, WorkT]):
    """Base of learners that forecast within [-C, C], and step by the loss's curvature there."""

    def _check_labels(self, y: np.ndarray) -> None:
        loss = self._loss()
        if not loss.classes and loss._curvature(self._hyper.C) > 0.0:  # beyond C it has less
            why = "where the loss has the curvature that this learner uses"
            inputs.refuse_beyond(y, self._hyper.C, "C", why)

    def _require_curvature(self, instead: str) -> None:
        given: Any = self  # with the hyper-parameters loss and C
        curvature = losses.get(given.loss).curvature(float(given.C))
        if not (curvature > 0.0 and np.isfinite(curvature)):
            raise ValueError(
                f"loss={given.loss!r} has no curvature on [-C, C] with C={given.C!r}, which "
                f"{type(self).__name__} needs: use 'squared', 'squared_hinge' or 'logistic' (with "
                f"C below a few hundred), {instead}"
            )


class _ProjectedStep(BoundedForecasts[StateT, WorkT], LinearLearner[StateT, WorkT]):
    """A linear learner with the slab |w.x| <= C."""

    _REMEDY = "raise alpha, or scale the inputs and labels"

    def _check_params(self) -> None:
        if vars(self)["eta"] is None:
            self._require_curvature("or give eta")


class OnlineNewtonStep(_ProjectedStep[loops.NewtonState, loops.NewtonWork], NewtonLearner):
    """The online Newton step, projected on |w.x_t| <= C (kons Algorithm 1 with features for phi).

    w <- w - A^-1 g with A = alpha I + sum eta g g'; before the forecast w is projected, in the norm
    of A, on the slab of points that forecast within [-C, C]; O(d^2) per round. A game has no
    projection, since a gradient does not tell the next x.

    Parameters
    ----------
    loss : str
        A loss of losses.py.
    C : float > 0
        Bound on forecasts.
    alpha : float > 0
        Regularisation.
    eta : float > 0, optional
        Weight of a gradient in A; None: the curvature of the loss on [-C, C].

    Remarks
    -------
    KONS with a linear kernel makes the same forecasts. ExpConcaveFTRL over the whole space is the
    same recursion without the projection.

    Examples
    --------
    >>> learner = okl.OnlineNewtonStep().partial_fit([[1.0], [1.0], [1.0]], [0.5, 0.5, 0.5])
    >>> round(learner.predict_one([1.0]), 4)
    0.6607
    """

    loss: str = loss_field("squared")
    _: KW_ONLY
    C: float = width(1.0)
    alpha: float = positive(1.0)
    eta: float | None = positive(None)

    def _start(self, d: int) -> None:
        p = self._hyper
        self._C = p.C
        self._begin_factor(d, p.alpha, p.eta or self._loss().curvature(p.C))


class SketchedONS(_ProjectedStep[loops.SketchState, loops.SketchWork]):
    """The online Newton step with a frequent-directions sketch of A (kons; Luo et al. 2016).

    A = alpha I + S' S with at most 2 rank rows in S: O(rank d) time per round and memory. When S is
    full, it keeps its ``rank`` leading directions, less the square of the next singular value.

    Parameters
    ----------
    rank : int >= 1
        Directions that the sketch keeps.
    alpha, eta, C, loss
        As in OnlineNewtonStep.

    Remarks
    -------
    With gradients in a subspace of dimension at most ``rank`` it is OnlineNewtonStep. The sketch
    shrinks every rank rounds, one of the two ways of Luo et al.

    Examples
    --------
    >>> learner = okl.SketchedONS(rank=2).partial_fit([[1.0], [1.0], [1.0]], [0.5, 0.5, 0.5])
    >>> round(learner.predict_one([1.0]), 4)
    0.6607
    """

    _layout = loops.SketchState

    rank: int = count(10, least=1)
    _: KW_ONLY
    alpha: float = positive(1.0)
    eta: float | None = positive(None)
    C: float = width(1.0)
    loss: str = loss_field("squared")

    def _start(self, d: int) -> None:
        p, rows = self._hyper, 2 * self._hyper.rank
        self._alpha, self._C, self._eta = p.alpha, p.C, p.eta or self._loss().curvature(p.C)
        self._make_state(rows=rows, d=d, counts=1)

    def _make_work(self, state: loops.SketchState, rooms: dict[int, int]) -> loops.SketchWork:
        rows, d = state.S.shape
        return loops.SketchWork(aligned_zeros(rows), aligned_zeros(rows), aligned_zeros(d))

    def _rounds(self, X: np.ndarray, y: np.ndarray, loss: int, out: np.ndarray) -> tuple[int, int]:
        # A game has no slab, as in NewtonLearner.
        step = loops.Step(loss, self._eta, inf if loss == LINEAR_LOSS else self._C)
        play, state, first = enter(loops.sketched_newton_rounds), self._state, 0
        while True:
            first, status = play(X, y, first, step, self._alpha, state, self._work, out)
            if status != NEED_ROOM:
                return first, status
            rows = shrink_sketch(state.S, state.R, self._hyper.rank, self._alpha)
            state.counts[loops.SKETCH_ROWS] = rows

    def _matrices(self) -> list[Part]:
        sketch = Factored(self._state.R, int(self._counts[loops.SKETCH_ROWS]))
        part = measure_part("alpha I + S S'", sketch)
        # x - S' (alpha I + S S')^-1 S x cancels by as much.
        return [part._replace(error=UNIT * part.condition)]

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        return np.clip(super()._forecast(X), -self._C, self._C)
