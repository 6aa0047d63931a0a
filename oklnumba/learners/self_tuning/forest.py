"""Extra-random trees on past rows, which go on learning: members that no restart makes anew.

``Residuals``, the last step, has trees too. With p_t of the layers (hot/tuned/layers.py):

    for t = 1, ..., n:
        r_t,e = what trees on x forecast, e = 1, 2, 3 the shrinkages       # hot/tuned/forest.py
        b_t = tanh(atanh(c_t) + u_t), if labels are -1 and +1: c_t is p_t, cut to
            ``settings.BOOSTING.surest`` in size, u_t of boosted trees
        yhat_t = ML-Poly's mean of p_t, of all p_t + r_t,e, and of b_t     # hot/experts.py
        trees learn y_t - p_t, cut to the reach of usual labels: p_t is far off after wild ones;
            but 0 of outliers, and before the first restart, while labels are not judged yet

Boosted trees (Friedman 2001, under log loss; steps of Newton as in Chen and Guestrin 2016) begin at
c, and find rules of several inputs. They learn nothing between growths, at which u, half of a
logit, begins at atanh(c) of the past rows (of the first 32, and of outliers, c is the label, cut):

    for each of ``settings.BOOSTING.trees`` small trees:
        P = (1 + tanh u) / 2, the probability of +1
        grow it on [y = 1] - P, a row counting P (1 - P)
        in each leaf: u += rate / 2 sum([y = 1] - P) / (sum(P (1 - P)) + curvature)
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from math import log2
from typing import Any

import numpy as np

from oklnumba.core.guard import Paced, finish, run_together
from oklnumba.core.state import Stateful
from oklnumba.hot.experts import TALLY, Aggregates
from oklnumba.hot.primitives.jit import DONE, bind, enter
from oklnumba.hot.tuned import forest as loops
from oklnumba.hot.tuned.forest import NODES, NUMBERS, PRIME, SEEN
from oklnumba.hot.tuned.layers import LayerResults, ResidualState, mix_rounds, write_residuals
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import Member, recall
from oklnumba.learners.self_tuning.labels import NO_LABELS, Past, Rounds, Trouble
from oklnumba.learners.self_tuning.restarts import Timetable

ALL = 2**60  # numbers: more than a tree reads
AMENDED = 2 + len(settings.RESIDUAL_SHRINKAGES)  # forecasts that ML-Poly weighs, the last of signs


class Forest(Stateful[loops.Trees, Any]):
    """Trees that are grown anew on the past after some rounds, and learn on.

    trees, growths, depth : how many, after which rounds, and one of ``settings.DEPTHS``.
    With lags, of one output, they see x and so many last labels, and learn changes from the last.
    They see at most the latest MOST_GROWN rows, so T trees have at most 2 T MOST_GROWN nodes, of
    5 numbers each for one output. Labels count from ``offset``, in ``unit``. Before the first
    growth each tree is a root: it forecasts the mean of the labels so far.
    """

    plays_in_threads = True
    _layout = loops.Trees
    forecasts: np.ndarray  # the last ones, (n, E, K)
    _seen: np.ndarray  # the inputs then, with lags
    _grow_nodes = staticmethod(loops.grow_nodes)
    _learns = True  # between growths

    def __init__(
        self, outputs: int, lags: int, shrinkages: tuple[float, ...], seed: int,
        trees: int, growths: tuple[int, ...], depth: float,
    ):  # fmt: skip
        parts = {end: end - end // settings.GROWTH_SHARE for end in growths}
        self.timetable: Timetable[Forest] = Timetable(parts)
        self._count, self._lags, self._seed, self._depth = trees, lags, seed, depth
        self._shrinkages = np.array(shrinkages)
        self.members = [Member("trees", lags=lags > 0, shrinkage=c) for c in shrinkages]
        means = np.zeros((settings.BLOCK_ROWS, len(self.members), outputs))
        below, node, root, of = np.zeros((4, settings.BLOCK_ROWS), dtype=np.int64)
        self._walks = loops.Walks(below, node, root, of, means)
        self._make_state(counts=1, trees=self._count, outputs=outputs, numbers=NUMBERS)
        self._take([])

    # ---- rounds ----

    def play(self, rounds: Rounds) -> np.ndarray:
        """Return the forecasts of n rounds, (n, E, K), each before its label is learned, if any.

        n : up to BLOCK_ROWS. Forecasts of rows that were asked among them are for ``recall``.
        """
        if not rounds.was_forecast:  # else they are there
            self.forecasts = np.empty((len(rounds.X), *self._walks.means.shape[1:]))
            if self._lags:
                self._seen = self._add_lags(rounds)
        X, Y, base = rounds.X, np.ascontiguousarray(rounds.Y), NO_LABELS
        if self._lags:
            X, Y, base = self._seen, rounds.known.change_to(Y) if len(Y) else Y, rounds.known.last
        how = len(Y) > 0, rounds.was_forecast, rounds.then.asked
        enter(loops.forest_rounds)(X, Y, base, *how, self._work, self.forecasts)
        return self.forecasts

    def _add_lags(self, rounds: Rounds) -> np.ndarray:
        """Return what trees with lags see."""
        known = rounds.known
        differences = known.differences.reshape(len(rounds.X), -1)[:, : self._lags - 1]
        # In this order, so that columns of X that come later take no other's place.
        return np.concatenate([known.last, differences, rounds.X], axis=1)

    def _make_work(self, state: loops.Trees, rooms: dict[int, int]) -> Any:
        return bind((state, self._shrinkages, self._walks))

    # ---- growth ----

    def grow(self, past: Callable[..., Past], played: int, single: bool | None) -> None:
        """Replace the trees if they are due, or now if ``single`` is None.

        past(n) returns the first n rounds, past() all.
        """
        if work := self.timetable.take_due(played, single, partial(self._build, past)):
            new = finish(work)
            self._exchange(new._state, new._rooms)
            self._counts = new._counts

    def _build(self, past_of: Callable[..., Past], end: int, at_once: bool) -> Paced["Forest"]:
        """Return the trees of round ``end``, which learned the rows after those they grew on."""
        learned = end - end // settings.GROWTH_SHARE
        # Between single rounds trees grow in three quarters of them, and learn in the last ones.
        past, pieces = past_of(learned), 1 if at_once else max(3 * (end - learned) // 4, 1)
        most = max(settings.GROWTH_NUMBERS // past.X.shape[1], settings.FEWEST_GROWN)
        n, grown = min(len(past.X), settings.MOST_GROWN, most), []
        rounds = past.rounds(slice(len(past.X) - n, None))
        X, Y = rounds.X, rounds.Y
        if self._lags:
            X, Y = self._add_lags(rounds), rounds.known.change_to(Y)
        piece = left = int(self._depth * log2(n) * self._count * X.size / pieces)
        for growth in self._begin_trees(X, Y, past.cut, end, at_once):
            while growth.progress[SEEN] < growth.tree.counts[NODES]:
                if left <= 0:
                    yield
                    left = piece
                left = enter(self._grow_nodes)(growth, left)
            grown.append(growth.tree)
        new = copy.copy(self)  # which is played as it is meanwhile
        new._make_state(**self._lengths)
        new._take(grown)
        while self._learns and learned < end:
            past = past_of()
            stop = min(learned + self.timetable.share(end - learned), len(past.X))
            if stop > learned:
                new.play(past.rounds(slice(learned, stop)))
            learned = stop
            yield
        return new

    def _draw_seeds(self, end: int) -> list[int]:
        """Return the seed of each tree of round ``end``."""
        return [draw_seed(self._seed, self._lags, end, i) for i in range(self._count)]

    def _begin_trees(
        self, X: np.ndarray, Y: np.ndarray, cut: np.ndarray, end: int, now: bool
    ) -> Iterable[loops.Growth]:
        """Return the growths of the trees of round ``end``, grown ``now`` or not yet.

        X : (n, d); Y : (n, K); cut : (t, K), labels of the whole past.
        """
        low, high = X.min(axis=0), X.max(axis=0)
        only_two = bool(((X == low) | (X == high)).all())
        offset, unit, size = Y.mean(axis=0), Y.std(axis=0), np.abs(cut).max(axis=0)
        # Residuals of equal labels are rounding, which splits no node.
        unit = np.where(unit > settings.LEAST_SPREAD * size, unit, np.where(size > 0.0, size, 1.0))
        n, ones, every = len(Y), np.ones(len(Y)), np.arange(X.shape[1])
        Y = np.ascontiguousarray(((Y - offset) / unit).T)
        growths: Iterable[loops.Growth] = (  # one by one: the zeros of each take up to 1 ms
            make_growth(X, every, Y, ones, 0.0, only_two, make_tree(2 * n, offset, unit), seed)
            for seed in self._draw_seeds(end)
        )
        if now:
            growths = list(growths)
            run_together([partial(enter(loops.grow_nodes), one, ALL) for one in growths])
        return growths

    def _take(self, grown: list[loops.Trees]) -> None:
        """Exchange the trees, for roots without rounds if there are none."""
        zeros = np.zeros(self._state.sums.shape[1])
        grown = grown or [make_tree(1, zeros, zeros + 1.0)] * self._count
        sizes = [int(tree.counts[NODES]) for tree in grown]
        total = sum(sizes)
        self._free(NODES)
        self._reserve({NODES: total})
        state = self._state
        self._counts[NODES], state.roots[:] = total, np.cumsum([0, *sizes[:-1]])
        state.offset[:], state.unit[:] = grown[0].offset, grown[0].unit
        for tree, root, size in zip(grown, state.roots, sizes, strict=True):
            state.nodes[root : root + size] = tree.nodes[:size]
            state.sums[root : root + size] = tree.sums[:size]


class Boosted(Forest):
    """Small trees that add up, for labels -1 and +1.

    Their unit is their number, but 1 before the first growth, 0 for outputs of one or other labels.
    """

    _grow_nodes = staticmethod(loops.grow_best)
    _learns = False

    def play(self, rounds: Rounds) -> np.ndarray:
        """Return the sums u of the leaves of n rounds, (n, 1, K), which learn nothing."""
        return super().play(rounds._replace(Y=NO_LABELS))

    def _begin_trees(
        self, X: np.ndarray, Y: np.ndarray, cut: np.ndarray, end: int, now: bool
    ) -> Iterator[loops.Growth]:
        n, labels, how = len(Y), cut[-len(Y) :], settings.BOOSTING
        both = (cut == -1.0).any(axis=0) & (cut == 1.0).any(axis=0)
        are_signs = np.isin(labels, (-1.0, 1.0))  # but for outliers, whose residuals are 0
        signs = ((are_signs | (Y == 0.0)).all(axis=0) & both).astype(float)
        if not signs.any():
            return
        U = np.arctanh((labels - Y).clip(-how.surest, how.surest)).T.copy()
        leaves, seeds = max(min(how.leaves, n // how.rows), 1), self._draw_seeds(end)
        rng = np.random.default_rng(seeds)
        for seed in seeds:
            P = 0.5 + 0.5 * np.tanh(U)
            gradients = ((labels.T > 0.0) - P) * (are_signs * signs).T
            weights = (P * (1.0 - P) * signs[:, None]).sum(axis=0)
            # In this unit the mean over the trees, which a forest forecasts, is the sum.
            tree = make_tree(2 * leaves, np.zeros(len(U)), self._count * signs)
            some = rng.permutation(X.shape[1])[: how.inputs]
            seen = X.take(some, axis=1)
            growth = make_growth(seen, some, gradients, weights, how.curvature, False, tree, seed)
            yield growth
            enter(loops.make_steps)(growth, P, 0.5 * how.rate, U)


class Residuals(Stateful[ResidualState, None]):
    """The last step, which no restart makes anew and no replay plays.

    forecasts : (n, AMENDED, K), p and all p + r of the last rounds.
    """

    _layout = ResidualState
    _plays: list[bool]  # in which outputs boosted trees count

    def __init__(self, outputs: int, seed: int):
        size, how, depths = (settings.TREES, settings.GROWTHS), settings.BOOSTING, settings.DEPTHS
        self.forest = Forest(outputs, 0, settings.RESIDUAL_SHRINKAGES, seed, *size, depths[1])
        self.boosted = Boosted(outputs, 0, (0.0,), seed, how.trees, how.growths, depths[2])
        self._make_state(outputs=outputs, experts=AMENDED, tally=TALLY)
        self._state.totals[:, -1] = -how.debt
        labels, *new = np.empty((3, settings.BLOCK_ROWS))  # workspace
        self._bound = bind((self._state, np.empty(AMENDED), labels, Aggregates(*new)))

    def play(self, rounds: Rounds, reach: np.ndarray, out: LayerResults) -> np.ndarray:
        """Amend what the layers wrote of n rounds: forecasts, losses, bounds; return residuals.

        reach : (n or 1, K), the largest residual that trees learn.
        """
        p, residuals = out.predictions[:, None], np.empty_like(rounds.Y)  # p as in the head
        if len(rounds.then.asked):
            p = p.copy()
            recall(p, rounds, slice(-AMENDED, 1 - AMENDED))
        if len(rounds.Y):
            enter(write_residuals)(rounds.Y, rounds.cut, p, reach, residuals)
        of_trees = self.forest.play(rounds._replace(Y=residuals))
        if not rounds.was_forecast:  # else these are there
            self._plays, last = [unit > 1.0 for unit in self.boosted._state.unit.tolist()], p
            if any(self._plays):
                sure, sums = settings.BOOSTING.surest, self.boosted.play(rounds)
                last = np.tanh(np.arctanh(np.minimum(np.maximum(p, -sure), sure)) + sums)
            self.forecasts = np.concatenate([p, p + of_trees, last], axis=1)
            if len(rounds.then.asked):
                recall(self.forecasts, rounds, slice(-AMENDED, None))
        for k, plays in enumerate(self._plays):
            F = np.ascontiguousarray(self.forecasts[:, : AMENDED - 1 + plays, k])
            played, status = enter(mix_rounds)(F, rounds.Y, k, self._bound, out)
            if status != DONE:
                raise Trouble(status, played)
        return residuals

    def parts(self) -> dict[str, Stateful]:
        """Return everything with a state, by name."""
        return {"residuals": self, "residual_forest": self.forest, "boosted": self.boosted}

    def begin_anew(self, some: np.ndarray) -> None:
        """Let ML-Poly of some outputs, (K,), begin anew, as the layers do; bounds add up."""
        state = self._state
        for sums in (state.totals, state.squares, state.tally):
            sums[some] = 0.0
        state.totals[some, -1] = -settings.BOOSTING.debt
        state.ended_excess[some] = state.excess[some]


@lru_cache(1000)  # three forests ask for the same, and each class of OneVsRest: 30 us each
def draw_seed(*of: int) -> int:
    """Return the seed of a tree."""
    return int(np.random.default_rng(of).integers(1, PRIME))


def make_tree(nodes: int, offset: np.ndarray, unit: np.ndarray) -> loops.Trees:
    """Return a tree that is a root without rounds, with room for so many nodes."""
    counts, roots = np.array([[1], [0]])
    sums = np.zeros((nodes, len(unit)))
    return loops.Trees(counts, roots, np.zeros((nodes, NUMBERS)), sums, offset, unit)


def make_growth(
    X: np.ndarray, inputs: np.ndarray, Y: np.ndarray, weights: np.ndarray, least: float,
    only_two: bool, tree: loops.Trees, seed: int,
) -> loops.Growth:  # fmt: skip
    """Return the growth of a tree on X, (n, i), of some inputs, and Y, (K, n)."""
    n, fours = len(weights), len(weights) + loops.FOUR - 1
    starts, stops = np.zeros((2, len(tree.nodes)), dtype=np.int64)
    rows, beyond = np.zeros((2, fours), dtype=np.int64)
    stops[0], rows[:n] = n, np.arange(n)
    splits = loops.Splits(np.zeros_like(inputs), *np.zeros((7, len(inputs))))
    return loops.Growth(
        X, inputs, Y, weights, least, only_two, tree, np.array([0, seed]), starts, stops, rows,
        beyond, np.empty((len(Y), fours)), np.empty(fours), splits, np.empty(len(starts)),
    )  # fmt: skip
