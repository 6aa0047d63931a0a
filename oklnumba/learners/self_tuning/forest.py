"""Extra-random trees on past rows, which go on learning: members that no restart makes anew.

``Residuals``, the last step, has trees too. With p_t of the layers (hot/tuned/layers.py):

    for t = 1, ..., n:
        r_t,e = what trees on x forecast, e = 1, 2, 3 the shrinkages       # hot/tuned/forest.py
        yhat_t = ML-Poly's mean of p_t and of all p_t + r_t,e              # hot/experts.py
        trees learn y_t - p_t, cut to the reach of usual labels: p_t is far off after wild ones;
            but 0 of outliers, and before the first restart, while labels are not judged yet
"""

import sys
from collections.abc import Callable
from functools import partial
from math import log2
from typing import Annotated, Any, NamedTuple

import numpy as np

from oklnumba.core.guard import Paced, finish, run_together
from oklnumba.core.state import State
from oklnumba.hot.experts import (
    LEARNED,
    ML_POLY,
    TALLY,
    Aggregates,
    Aggregation,
    ExpertsState,
    experts_rounds,
)
from oklnumba.hot.primitives.jit import DONE, Array, bind, enter
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.tuned import forest as loops
from oklnumba.hot.tuned.forest import NODES, NUMBERS, PRIME, SEEN
from oklnumba.hot.tuned.layers import LayerResults
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import Member, recall
from oklnumba.learners.self_tuning.labels import NO_LABELS, Past, Rounds
from oklnumba.learners.self_tuning.regressions import Trouble

ALL = 2**60  # numbers: more than a tree reads
AMENDED = 1 + len(settings.RESIDUAL_SHRINKAGES)  # forecasts that ML-Poly weighs
RULE = Aggregation(ML_POLY, SQUARED, LEARNED, 0.0)


class Forest(State[loops.Trees, Any]):
    """Trees that are grown anew on the past after ``settings.GROWTHS`` rounds, and learn on.

    With lags, of one output, they see x and so many last labels, and learn changes from the last.
    They see at most the latest MOST_GROWN rows, so T trees have at most 2 T MOST_GROWN nodes, of
    5 numbers each for one output. Labels count from ``offset``, in ``unit``. Before the first
    growth each tree is a root: it forecasts the mean of the labels so far.
    """

    plays_in_threads = True
    _layout = loops.Trees

    def __init__(self, outputs: int, lags: int, shrinkages: tuple[float, ...], seed: int):
        self.schedule = {end: end - end // settings.GROWTH_SHARE for end in settings.GROWTHS}
        self._lags, self._seed = lags, seed
        self._shrinkages = np.array(shrinkages)
        self.members = [Member("trees", lags=lags > 0, shrinkage=c) for c in shrinkages]
        means = np.zeros((settings.BLOCK_ROWS, len(self.members), outputs))
        below, node = np.zeros((2, settings.BLOCK_ROWS), dtype=np.int64)
        self._walks = loops.Walks(below, node, means)
        self._make_state(counts=1, trees=settings.TREES, outputs=outputs, numbers=NUMBERS)
        self._take([make_tree(1, np.zeros(outputs), np.ones(outputs))] * settings.TREES)
        self._growing: Paced[None] | None = None  # on the next trees, where begun
        self._grown: list[loops.Trees] = []  # the next trees, where the work is done

    # ---- rounds ----

    def play(self, rounds: Rounds) -> np.ndarray:
        """Return the forecasts of n rounds, (n, E, K), each before its label is learned, if any.

        n : up to BLOCK_ROWS. Forecasts of rows that were asked among them are for ``recall``.
        """
        X, Y = self._find_pairs(rounds)
        F = np.empty((len(X), *self._walks.means.shape[1:]))
        enter(loops.forest_rounds)(X, Y, rounds.learns, rounds.asked, self._work, F)
        return F + rounds.known.last[:, None] if self._lags else F

    def _find_pairs(self, rounds: Rounds) -> tuple[np.ndarray, np.ndarray]:
        """Return what the trees see and what they learn, if there are labels."""
        X, known = rounds.X, rounds.known
        if not self._lags:
            return X, np.ascontiguousarray(rounds.Y)
        differences = known.differences.reshape(len(X), -1)[:, : self._lags - 1]
        # In this order, so that columns of X that come later take no other's place.
        Z = np.concatenate([known.last, differences, X], axis=1)
        return Z, known.change_to(rounds.Y) if rounds.learns else NO_LABELS

    def _make_work(self, state: loops.Trees, rooms: dict[int, int]) -> Any:
        return bind((state, self._shrinkages, self._walks))

    # ---- growth ----

    def grow(self, past: Callable[[int], Past], played: int, single: bool) -> None:
        """Replace the trees if they are due; else, in single rounds, do some of the work.

        ``past(n)`` returns the first n rounds. No result depends on how much was done before.
        """
        end = next((end for end in self.schedule if end >= played), sys.maxsize)
        built = self.schedule.get(end, sys.maxsize)
        if played == end:
            self._take_grown(self._growing or self._build(past(built), end, 1), past(end), built)
            self._growing, self._grown = None, []
        elif single and played >= built:
            self._growing = self._growing or self._build(past(built), end, end - built)
            next(self._growing, None)

    def grow_now(self, past: Callable[[int], Past], played: int) -> None:
        """Replace the trees out of schedule."""
        built, later = played - played // settings.GROWTH_SHARE, self._grown
        self._take_grown(self._build(past(built), played, 1), past(played), built)
        self._grown = later

    def _take_grown(self, work: Paced[None], past: Past, built: int) -> None:
        """Exchange the trees for those that the work grows, and let them learn the later rows."""
        finish(work)
        self._take(self._grown)
        for start in range(built, len(past.X), settings.BLOCK_ROWS):
            self.play(past.rounds(slice(start, start + settings.BLOCK_ROWS)))

    def _build(self, past: Past, end: int, pieces: int) -> Paced[None]:
        """Grow the trees of round ``end`` in about so many pieces."""
        most = max(settings.GROWTH_NUMBERS // past.X.shape[1], settings.FEWEST_GROWN)
        n, grown = min(len(past.X), settings.MOST_GROWN, most), []
        X, Y = self._find_pairs(past.rounds(slice(len(past.X) - n, None)))
        X = np.ascontiguousarray(X.T)
        low, high = X.min(axis=1, keepdims=True), X.max(axis=1, keepdims=True)
        only_two = bool(((X == low) | (X == high)).all())
        offset, unit, size = Y.mean(axis=0), Y.std(axis=0), np.abs(past.cut).max(axis=0)
        # Residuals of equal labels are rounding, which splits no node.
        unit = np.where(unit > settings.LEAST_SPREAD * size, unit, np.where(size > 0.0, size, 1.0))
        Y = np.ascontiguousarray(((Y - offset) / unit).T)
        growths = []
        for i in range(settings.TREES):
            seed = int(np.random.default_rng([self._seed, self._lags, end, i]).integers(1, PRIME))
            tree = make_tree(2 * n, offset, unit)
            growths.append(make_growth(X, Y, only_two, tree, seed))
        if pieces == 1:
            run_together([partial(enter(loops.grow_nodes), one, ALL) for one in growths])
        piece = left = int(settings.DEPTH * log2(n) * settings.TREES * X.size / pieces)
        for growth in growths:
            while growth.progress[SEEN] < growth.tree.counts[NODES]:
                if left <= 0:
                    yield
                    left = piece
                left = enter(loops.grow_nodes)(growth, left)
            made = int(growth.tree.counts[NODES])
            nodes, sums = growth.tree.nodes[:made].copy(), growth.tree.sums[:made].copy()
            grown.append(growth.tree._replace(nodes=nodes, sums=sums))
        self._grown = grown

    def _take(self, grown: list[loops.Trees]) -> None:
        """Exchange the trees."""
        sizes = [len(tree.nodes) for tree in grown]
        total = sum(sizes)
        self._free(NODES)
        self._reserve({NODES: total})
        state = self._state
        self._counts[NODES], state.roots[:] = total, np.cumsum([0, *sizes[:-1]])
        state.offset[:], state.unit[:] = grown[0].offset, grown[0].unit
        state.nodes[:total] = np.concatenate([tree.nodes for tree in grown])
        state.sums[:total] = np.concatenate([tree.sums for tree in grown])


class ResidualState(NamedTuple):
    """ML-Poly of K outputs, as in experts.py; the rest as in hot/tuned/layers.py."""

    totals: Annotated[Array, "outputs", "experts"]
    squares: Annotated[Array, "outputs", "experts"]
    tally: Annotated[Array, "outputs", "tally"]
    loss: Annotated[Array, "outputs"]
    excess: Annotated[Array, "outputs"]  # bound on the regret against p
    ended_excess: Annotated[Array, "outputs"]


class Residuals(State[ResidualState, None]):
    """The last step, which no restart makes anew and no replay plays.

    forecasts : (n, AMENDED, K), p and all p + r of the last rounds.
    """

    _layout = ResidualState

    def __init__(self, outputs: int, seed: int):
        self.forest = Forest(outputs, 0, settings.RESIDUAL_SHRINKAGES, seed)
        self._make_state(outputs=outputs, experts=AMENDED, tally=TALLY)

    def play(self, rounds: Rounds, reach: np.ndarray, out: LayerResults) -> np.ndarray:
        """Amend what the layers wrote of n rounds: forecasts, losses, bounds; return residuals.

        reach : (n or 1, K), the largest residual that trees learn.
        """
        plain = out.predictions[:, None].copy()
        recall(plain, rounds, slice(-AMENDED, 1 - AMENDED))
        residuals = NO_LABELS
        if rounds.learns:
            counts = (rounds.Y == rounds.cut) | (rounds.Y != rounds.Y)
            cut = (rounds.Y - plain[:, 0]).clip(-reach, reach)
            residuals = np.where(counts, cut, 0.0) + 0.0  # a block may have -0.0, where a row has 0
        trees = self.forest.play(rounds._replace(Y=residuals))
        self.forecasts = np.concatenate([plain, plain + trees], axis=1)
        recall(self.forecasts, rounds, slice(-AMENDED, None))
        for k in range(trees.shape[2]):
            self._mix(k, rounds, out)
        return residuals

    def _mix(self, k: int, rounds: Rounds, out: LayerResults) -> None:
        n, state, learns = len(rounds.X), self._state, rounds.learns
        F, y = self.forecasts[:, :, k].copy(), rounds.Y[:, k].copy() if learns else np.empty(0)
        new, weights = Aggregates(np.empty(n), np.empty(n)), np.empty(AMENDED)
        experts = ExpertsState(state.totals[k], state.squares[k], state.tally[k])
        played, status = enter(experts_rounds)(F, y, learns, RULE, 0, experts, weights, new)
        if status != DONE:
            raise Trouble(status, played)
        out.predictions[:, k] = new.forecasts
        if learns:
            learned = rounds.learned  # the other rows have no bounds
            loss, excess = np.square(new.forecasts - y), state.ended_excess[k] + new.bounds[learned]
            state.excess[k] = excess[-1]
            loss[y != y] = 0.0
            loss[0] += state.loss[k]
            loss = np.add.accumulate(loss)
            state.loss[k] = loss[-1]
            out.loss[:, k] = loss
            for bound in (out.bound, out.guaranteed):
                bound[learned, k] += excess

    def begin_anew(self, some: np.ndarray) -> None:
        """Let ML-Poly of some outputs, (K,), begin anew, as the layers do; bounds add up."""
        state = self._state
        for sums in (state.totals, state.squares, state.tally):
            sums[some] = 0.0
        state.ended_excess[some] = state.excess[some]


def make_tree(nodes: int, offset: np.ndarray, unit: np.ndarray) -> loops.Trees:
    """Return a tree that is a root without rounds, with room for so many nodes."""
    counts, roots = np.array([[1], [0]])
    sums = np.zeros((nodes, len(unit)))
    return loops.Trees(counts, roots, np.zeros((nodes, NUMBERS)), sums, offset, unit)


def make_growth(
    X: np.ndarray, Y: np.ndarray, only_two: bool, tree: loops.Trees, seed: int
) -> loops.Growth:
    """Return the growth of a tree on all columns of X, (d, n), and Y, (K, n)."""
    n, (starts, stops) = len(X[0]), np.zeros((2, len(tree.nodes)), dtype=np.int64)
    stops[0] = n
    return loops.Growth(
        X, Y, only_two, tree, np.array([0, seed]), starts, stops, np.arange(n),
        np.empty(n, dtype=np.int64), np.empty(n), np.empty((len(Y), n)),
    )  # fmt: skip
