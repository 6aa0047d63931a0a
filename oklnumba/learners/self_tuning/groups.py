"""Groups of members, each on a space of SelfTuning; ridge regressions, also those of layers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from oklnumba.core.arrays import (
    aligned_zeros,
    count_lines,
    free_pages,
    make_pass_work,
    pad_row_length,
    round_up_to_vector,
    unpack,
)
from oklnumba.core.guard import FEWEST_ROUNDS
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import Coins, Stateful
from oklnumba.hot.primitives.dictionary import RANK
from oklnumba.hot.primitives.factor import ROUND, Factor, Pending, finish_pending
from oklnumba.hot.primitives.jit import ATOMS, DONE, bind, enter
from oklnumba.hot.primitives.udu import LANES, TOGETHER, Forgetting
from oklnumba.hot.tuned import space as loops
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import name_forecasters
from oklnumba.learners.self_tuning.labels import NO_LABELS, NOT_ASKED, Rounds, Trouble, Views
from oklnumba.learners.self_tuning.scales import Scales
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, Ridge, Space


class Group(Stateful[loops.GroupState, None]):
    """The members of a space in each leaf of its tree, and its dictionaries by KORS.

    A dictionary has at most ``max_size`` atoms; if 0, the coordinates are the inputs. Once all are
    full, no coins are drawn.
    """

    _layout = loops.GroupState

    def __init__(self, space: Space, scales: Scales, max_size: int, seed: list[int]):
        self.space, self._kernel = space, scales.kernel(space)
        self.members = name_forecasters(space, getattr(self._kernel, "sigma", None))
        self.certified = self.members[1 : 2 * len(space.ridges) : 2]  # AWV of each regression
        self._max_size, self._seed = max_size, seed
        self.tree = tree = scales.tree(space)
        self.coins, self.is_full = Coins(seed), max_size == 0
        d, K, leaves = len(tree.scales), len(scales.signs), len(tree.columns) + 1
        cap = pad_row_length(round_up_to_vector(max_size))
        r, rates = round_up_to_vector((max_size or d) + 1), (*space.aggressiveness, *space.steps)
        self._make_state(
            leaves=leaves, counts=3, d=d, cap=cap, lines=count_lines(cap), rules=len(rates),
            regressions=len(space.ridges), outputs=K, r=r, U_lines=count_lines(pad_row_length(r)),
            totals=TOTALS, sums=3,
        )  # fmt: skip
        self._counts[:, RANK:] = 0 if max_size else d
        self._leaf_is_full = np.zeros(leaves, dtype=bool)
        state = self._state
        state.U[0] = 0.0  # so that one leaf alone gets its memory now, not in its first round
        codes = [loops.PASSIVE_AGGRESSIVE] * len(space.aggressiveness)
        codes += [loops.DESCENT] * len(space.steps)
        rules = np.array(codes, dtype=np.int64), np.array(rates, dtype=float), scales.signs
        self._parts = (
            loops.Dictionaries(
                self._kernel._code(), max_size, state.counts, state.atoms, state.weights,
                state.kors, state.span, state.unit_R, state.inv_pivots,
            ),
            make_regressions(space.ridges, state.U, state.inv_d, state.c, state.totals),
            loops.Rules(*rules, state.w, state.max_label),
            loops.Sums(state.latest, state.total),
        )  # fmt: skip

    def bind_arguments(self, results: loops.Results) -> None:
        """Set what the loops take; results : where they write."""
        scores = int(self.space.normal_scores)
        self.arguments = loops.Space(*self._parts, results, self.tree, scores)

    @property
    def size(self) -> int:
        """Atoms in all leaves."""
        return int(self._counts[:, ATOMS].sum())

    @property
    def is_atom(self) -> np.ndarray:
        """Which entries of the dictionaries are in use, (leaves, cap)."""
        return np.arange(self._state.atoms.shape[2]) < self._counts[:, ATOMS, None]

    # ---- rounds ----

    def end_choice(self) -> None:
        """Note what dictionaries are before the first round, when their choice has ended."""
        ranks, before = self._counts[:, RANK], self._counts[:, loops.COMPARED]
        for leaf in np.flatnonzero(ranks > before):
            # Written before the regressions read it: a page that is read first takes two faults,
            # and the second one interrupts all cores.
            self._state.U[leaf, :, before[leaf] : ranks[leaf] + LANES] = 0.0
            before[leaf] = ranks[leaf]

    def note_full(self) -> None:
        """Free what only dictionaries need that are not full."""
        if self.is_full:
            return
        full = self._counts[:, ATOMS] == self._max_size
        for leaf in np.flatnonzero(full & ~self._leaf_is_full):
            free_pages(self._state.kors[leaf])
        self._leaf_is_full, self.is_full = full, bool(full.all())
        if self.is_full:
            self.coins = Coins(self._seed)  # so they do not depend on how X was cut

    def shrink_units(self, recent: np.ndarray) -> None:
        """Take ``recent``, (K,), for the largest label of PA-I where that is far larger."""
        unit = self._state.max_label
        unit[:] = np.where(recent < unit / settings.FILLED, recent, unit)

    # ---- saving ----

    def _cut(self, name: str, array: np.ndarray) -> np.ndarray:
        if name != "U":
            return super()._cut(name, array)
        return array[..., : self._counts[:, RANK].max() + 1] if self._max_size else array

    def _export(self) -> dict[str, Any]:
        state = super()._export()
        if not self._max_size:  # inputs, unlike coordinates, may be collinear: no single precision
            state["U_exact"] = state.pop("U")
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore({"U": state.get("U_exact")} | state)
        if self._max_size:
            self._remake_dictionaries()
            self.note_full()

    def _remake_dictionaries(self) -> None:
        """Let the atoms join again, in their order: it makes all that files leave out."""
        alone = Groups([self], 0.0)
        for leaf, size in enumerate(self._counts[:, ATOMS].tolist()):
            self._counts[leaf, [ATOMS, RANK]] = 0
            for start in range(0, size, BLOCK_ROWS):
                n = min(size - start, BLOCK_ROWS)
                alone.join_again(leaf, self._state.atoms[leaf, :, start : start + n].T)
            if size == self._max_size:
                free_pages(self._state.kors[leaf])

    # ---- health ----

    def _settle(self) -> None:
        settle_regressions(self.arguments.regressions)

    def find_parts(self, scales: list[float]) -> list[Part]:
        """Return the parts of its matrices; scales : (K,), of the labels."""
        self._settle()
        state, parts = self._state, []
        names = [f"lam = {one.lam:g}" for one in self.space.ridges]
        for leaf, rank in enumerate(self._counts[:, RANK].tolist()):
            regressions = self.arguments.regressions
            some, functions = measure_regressions(names, regressions, leaf, rank + 1, scales)
            if self._counts[leaf, ATOMS]:
                atoms = state.atoms[leaf].T[state.span[leaf, :rank]]
                R = unpack(state.unit_R[leaf], rank) / state.inv_pivots[leaf, :rank, None]
                functions, of_all = [w[1:] for w in functions], scales * len(names)
                some.append(measure_span(self._kernel, atoms, R, functions, of_all))
            parts += [part.named(f"leaf {leaf}") for part in some] if len(state.U) > 1 else some
        return parts


class Groups:
    """Groups on inputs of one width, each leaf played by a thread, or all by one call of a loop.

    offsets : (K,), the middle of the labels.
    """

    def __init__(self, groups: list[Group], offsets: Any):
        self.groups, self._offsets = groups, offsets
        self._every, spaces = np.arange(len(groups)), [one.arguments for one in groups]
        self._spaces, self._filled = bind_all(spaces), np.zeros(1, dtype=np.int64)
        self._block_rows, self._block = 1, self._make_block(1)  # kept from call to call
        # Of single rounds, which go on from their forecasts, and of threads.
        self._single = Workspaces(lambda: bind_all([make_rows(1, [one]) for one in spaces]))
        self._workspaces = Workspaces(lambda: bind_all([make_rows(BLOCK_ROWS, spaces)]))

    def _make_block(self, n: int) -> Any:
        """Return room for n rounds."""
        few, space = len(self.groups), self.groups[0].arguments
        X, Y = (np.empty((few, n, len(a))) for a in (space.tree.scales, space.rules.signs))
        asked, order, places = np.empty((3, few, n), dtype=np.int64)
        jobs = np.empty((few * n, 4), dtype=np.int64)
        coins = np.empty((few, n))
        return bind(loops.Block(X, Y, coins, asked, order, places, jobs, self._filled))

    def calls(self, rounds: Rounds, views: Views) -> list[Callable[[], Any]]:
        """Return calls that play the rounds, one for each leaf; one of rounds too few for threads.

        If inputs may join and there are no labels, they join, and nothing else: then
        ``end_choice``.
        """
        some, n, Y, base, coins = self._every, len(rounds.X), rounds.Y, NO_LABELS, NO_LABELS
        joining = [i for i, one in enumerate(self.groups) if rounds.joins and not one.is_full]
        chooses = rounds.joins and not len(rounds.Y)
        if chooses:
            some = np.array(joining, dtype=np.int64)
        elif self.groups[0].space.lags:
            base = views.base
            Y = rounds.known.change_to(rounds.cut) if len(rounds.Y) else Y
        elif len(rounds.Y):
            Y = Y - self._offsets
        if joining:
            coins = np.empty((len(some), n))
            coins.fill(loops.NEVER)
            count = len(coins[0, rounds.learned])
        for place, i in enumerate(joining):
            coins[place if chooses else i, rounds.learned] = self.groups[i].coins.take(count)
        seen = loops.Seen(views.with_lags, views.scores, Y, coins, rounds.then.asked, base)
        given = loops.space_rounds, rounds.was_forecast, seen, some, self._spaces
        if n < FEWEST_ROUNDS:
            if n != self._block_rows:
                self._block_rows, self._block = n, self._make_block(n)
            play = self._single.play if n == 1 else self._workspaces.play
            return [partial(play, *given, self._block, loops.EVERY, 0, 0)]
        self._play = play = partial(self._workspaces.play, *given, self._make_block(n))
        return [partial(play, loops.PLAY, i, i + 1) for i in range(play(loops.SORT, 0, 0))]

    def join_again(self, leaf: int, atoms: np.ndarray) -> None:
        """Let atoms of a leaf of the only group join, as they did once."""
        n, jobs = len(atoms), np.array([[0, leaf, 0, len(atoms)]])
        coins, order = np.full((1, n), loops.AGAIN), np.arange(n)[None]
        X, Y = np.ascontiguousarray(atoms)[None], np.empty((1, n, 1))
        block = bind(loops.Block(X, Y, coins, order, order, order, jobs, self._filled))
        seen = loops.Seen(X[0], X[0], NO_LABELS, coins, NOT_ASKED, NO_LABELS)
        given = False, seen, self._every, self._spaces, block, loops.PLAY, 0, 1
        self._workspaces.play(loops.space_rounds, *given)

    def finish(self, rounds: Rounds) -> None:
        """Sum what all leaves have written, and note which dictionaries are full."""
        if len(rounds.X) >= FEWEST_ROUNDS:
            self._play(loops.SUM, 0, 0)
            del self._play  # and the block
        if self._filled[0]:
            self._filled[0] = 0
            for one in self.groups:
                one.note_full()


def bind_all(arguments: list[Any]) -> Any:
    """Return what loops take of each group, bound; always so many, so that types are the same."""
    most = len(settings.SPACES)
    return bind(tuple((list(map(bind, arguments)) * most)[:most]))


# ---- ridge regressions of groups and layers, and workspace: memory for the loops ----


@dataclass
class Workspaces:
    """Workspace of threads: one is made when no other is idle, so as many as play at once."""

    make: Callable[[], Any]
    idle: list[Any] = field(default_factory=list)

    def play(self, loop: Any, *arguments: Any) -> int:
        """Call a loop with workspace that no other thread has meanwhile; return its first result.

        Raise Trouble if the second, a status, is not DONE.
        """
        try:
            work = self.idle.pop()
        except IndexError:
            work = self.make()
        result, status = enter(loop)(*arguments, work)
        if status != DONE:
            raise Trouble(status, result)
        self.idle.append(work)
        return result


def make_rows(n: int, spaces: Sequence[loops.Space]) -> loops.Rows:
    """Return workspace for n rounds of a leaf of any of these spaces."""
    widest = max((one.regressions for one in spaces), key=lambda one: one.c.shape[-1])
    cap = max(one.dictionaries.unit_R.shape[-1] for one in spaces)
    count = max(len(one.results.forecasts) for one in spaces)
    regressions = max(len(one.regressions.forgetting) for one in spaces)
    return make_workspace(n, widest, cap, count, regressions, len(spaces[0].tree.scales))


def make_workspace(
    n: int, regressions: loops.Regressions, cap: int, forecasts: int, count: int, d: int = 0
) -> loops.Rows:
    """Return workspace for n rounds of ``count`` regressions, no wider than these."""
    U, outputs = regressions.U[0, 0], regressions.c.shape[2]
    return loops.Rows(
        forecasts=np.zeros((forecasts, n, outputs)), certificates=np.zeros((count, 3, n, outputs)),
        Z=aligned_zeros(n, regressions.c.shape[-1]), to_map=np.zeros(n, dtype=np.int64),
        widths=np.zeros(n, dtype=np.int64), sizes=np.zeros(n, dtype=np.int64),
        a=np.zeros(n), growth=np.zeros((n, outputs)), points=np.zeros((TOGETHER, d)),
        K=aligned_zeros(TOGETHER, cap), b=aligned_zeros(cap), q=aligned_zeros(TOGETHER, cap),
        passes=make_pass_work(U),
    )  # fmt: skip


def make_regressions(
    ridges: tuple[Ridge, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray, totals: np.ndarray
) -> loops.Regressions:
    """Return regressions of several leaves; the arrays are the state."""
    numbers = []
    for lam, half_life in ridges:
        discount = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)
        numbers.append(Forgetting(discount, 1.0 / discount, 1.0 / lam))
    forgetting = np.array(numbers)
    inv_d[:] = forgetting[:, 2:]
    columns = np.zeros((*U.shape[:2], 2), dtype=np.int64)
    pending = Pending(columns, *aligned_zeros(3, *U.shape[:2], U.shape[-1]))
    return loops.Regressions(U, inv_d, c, totals, pending, forgetting)


def settle_regressions(regressions: loops.Regressions) -> None:
    """Add the rounds that wait for the next pass over U to U and D."""
    for at in zip(*regressions.pending.columns[..., ROUND].nonzero(), strict=True):
        pending = Pending(*[a[at] for a in regressions.pending])
        factor = Factor(regressions.U[at], regressions.inv_d[at], regressions.c[at], pending)
        forgetting = Forgetting(*regressions.forgetting[at[1]].tolist())
        finish_pending(factor, forgetting, make_pass_work(factor.U))


def measure_regressions(
    names: list[str], regressions: loops.Regressions, leaf: int, r: int, scales: Sequence[float]
) -> tuple[list[Part], list[np.ndarray]]:
    """Return the parts of a leaf's matrices, of r columns, and the functions that they give."""
    parts, functions = [], []
    for i, name in enumerate(names):
        U, inv_d = unpack(regressions.U[leaf, i], r), regressions.inv_d[leaf, i, :r]
        matrix = Factored(U, r, 1.0 / inv_d)
        estimates = [matrix.half_solve(c) for c in regressions.c[leaf, i]]
        parts.append(measure_part("lam I + sum z z'", matrix, estimates, scales).named(name))
        functions += estimates
    return parts, functions
