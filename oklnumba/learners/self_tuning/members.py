"""The spaces of SelfTuning, with ridge regressions and rules on their coordinates."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from oklnumba.core.arrays import (
    count_lines,
    free_pages,
    pad_row_length,
    round_up_to_vector,
    unpack,
)
from oklnumba.core.health import Part
from oklnumba.core.state import Coins, State
from oklnumba.hot.primitives.dictionary import RANK
from oklnumba.hot.primitives.jit import ATOMS, DONE, bind, enter
from oklnumba.hot.primitives.udu import LANES
from oklnumba.hot.tuned import space as loops
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.base.expansion import measure_span
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import Forecaster, name_forecasters
from oklnumba.learners.self_tuning.labels import NO_LABELS, NOT_ASKED, Rounds, Views
from oklnumba.learners.self_tuning.regressions import (
    Trouble,
    Workspaces,
    make_regressions,
    make_rows,
    measure_regressions,
    settle_regressions,
)
from oklnumba.learners.self_tuning.scales import Scales
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, Space

ROUNDS = np.arange(BLOCK_ROWS)
NO_COINS = np.empty(0)  # of rounds whose points may not join


class Group(State[loops.GroupState, None], Forecaster):
    """The members of a space in each leaf of its tree, and its dictionaries by KORS.

    A dictionary has at most ``max_size`` atoms; if 0, the coordinates are the inputs. Once all are
    full, no coins are drawn. workspaces : Rows of threads, for any group.
    """

    _layout = loops.GroupState

    def __init__(
        self, space: Space, scales: Scales, max_size: int, seed: list[int], workspaces: Workspaces
    ):
        self.space, self._kernel = space, scales.kernel(space)
        self.members = name_forecasters(space, getattr(self._kernel, "sigma", None))
        self.certified = self.members[1 : 2 * len(space.ridges) : 2]  # AWV of each regression
        self._max_size, self._seed, self._workspaces = max_size, seed, workspaces
        self._tree, self._offsets = scales.tree(space), scales.offsets
        self._coins, self.is_full = Coins(seed), max_size == 0
        tree, signs = self._tree, scales.signs
        d, K, leaves = len(tree.scales), len(signs), len(tree.columns) + 1
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
        rules = np.array(codes, dtype=np.int64), np.array(rates, dtype=float), signs
        self._parts = (
            loops.Dictionaries(
                self._kernel._code(), max_size, state.counts, state.atoms, state.weights,
                state.kors, state.span, state.unit_R, state.inv_pivots,
            ),
            make_regressions(space.ridges, state.U, state.inv_d, state.c, state.totals),
            loops.Rules(*rules, state.w, state.max_label),
            loops.Sums(state.latest, state.total),
        )  # fmt: skip

    def bind_arguments(self, sizes: np.ndarray) -> None:
        """Bind what the loops take; sizes : (BLOCK_ROWS,), where they write."""
        results = loops.Results(self.forecasts, self.certificates, sizes)
        self.arguments = loops.Space(*self._parts, results)
        self._bound = bind(self.arguments)
        self._single = bind(make_rows(1, [self.arguments]))  # workspace of single rounds

    @property
    def size(self) -> int:
        """Atoms in all leaves."""
        return int(self._counts[:, ATOMS].sum())

    # ---- rounds ----

    def calls(self, rounds: Rounds, views: Views) -> list[Callable[[], None]]:
        """Return calls that play the rounds, one for each leaf.

        If inputs may join and there are no labels, they join, and nothing else: then
        ``end_choice``.
        """
        X, Y = self._look(rounds, views)
        joins, coins = rounds.joins and not self.is_full, NO_COINS
        if joins:
            coins = np.full(len(X), loops.NEVER)
            coins[rounds.learned] = self._coins.take(len(coins[rounds.learned]))
        leaves = np.zeros(len(X), dtype=np.int64)
        if len(self._counts) > 1:
            enter(loops.find_leaves)(X, self._tree.columns, self._tree.thresholds, leaves)
        if len(X) == 1:
            single = ROUNDS[:1], X, Y, coins, rounds.then.asked, rounds.was_forecast
            return [partial(self._play_leaf, int(leaves[0]), *single, is_single=True)]
        order = leaves.argsort(kind="stable")
        calls: list[Callable[[], None]] = []
        for rows in np.split(order, np.flatnonzero(np.diff(leaves[order])) + 1):
            given = X[rows], Y[rows] if rounds.learns else Y, coins[rows] if joins else coins
            asked = rounds.then.asked
            if len(asked):
                asked = np.where(asked[rows] < 0, -1, rows.searchsorted(asked[rows]))
            calls.append(partial(self._play_leaf, int(leaves[rows[0]]), rows, *given, asked))
        return calls

    def _look(self, rounds: Rounds, views: Views) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs as the space sees them, and the labels that it learns."""
        space, Y = self.space, rounds.Y
        if rounds.learns:
            Y = rounds.known.change_to(rounds.cut) if space.lags else Y - self._offsets
        X = views.with_lags if space.lags else views.plain
        X = views.scores if space.normal_scores else X
        return X if space.metric is None else X * self._tree.scales, Y

    def _play_leaf(
        self, leaf: int, order: np.ndarray, X: np.ndarray, Y: np.ndarray, coins: np.ndarray,
        asked: np.ndarray, was_forecast: bool = False, is_single: bool = False,
    ) -> None:  # fmt: skip
        """Play the rounds of a leaf, with workspace that no other leaf has meanwhile.

        is_single : whether it is one round alone: its workspace goes on from its forecast.
        """
        work = self._single if is_single else self._workspaces.take()
        play = enter(loops.leaf_rounds)
        failed, status = play(leaf, order, X, Y, coins, asked, was_forecast, self._bound, work)
        if status != DONE:
            raise Trouble(status, int(order[failed]))
        if not is_single:
            self._workspaces.give_back(work)

    def finish(self, rounds: Rounds) -> None:
        """Sum what all leaves have written, and note which dictionaries are full."""
        n = len(rounds.X)
        if rounds.learns:
            enter(loops.sum_results)(n, self._bound)
            self._note_full()
        if self.space.lags:
            self.forecasts[:, :n] += rounds.known.last - self._offsets

    def end_choice(self) -> None:
        """Note what dictionaries are before the first round, when their choice has ended."""
        self._note_full()
        ranks, before = self._counts[:, RANK], self._counts[:, loops.COMPARED]
        for leaf in np.flatnonzero(ranks > before):
            # Written before the regressions read it: a page that is read first takes two faults,
            # and the second one interrupts all cores.
            self._state.U[leaf, :, before[leaf] : ranks[leaf] + LANES] = 0.0
        before[:] = ranks

    def _note_full(self) -> None:
        """Free what only dictionaries need that are not full."""
        if self.is_full:
            return
        full = self._counts[:, ATOMS] == self._max_size
        for leaf in np.flatnonzero(full & ~self._leaf_is_full):
            free_pages(self._state.kors[leaf])
        self._leaf_is_full, self.is_full = full, bool(full.all())
        if self.is_full:
            self._coins = Coins(self._seed)  # so they do not depend on how X was cut

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

    def _remake_dictionaries(self) -> None:
        """Let the atoms join again, in their order: it makes all that files leave out."""
        for leaf, size in enumerate(self._counts[:, ATOMS].tolist()):
            self._counts[leaf, [ATOMS, RANK]] = 0
            for start in range(0, size, BLOCK_ROWS):
                X = np.ascontiguousarray(self._state.atoms[leaf, :, start : start + BLOCK_ROWS].T)
                X, order = X[: size - start], ROUNDS[: min(size - start, BLOCK_ROWS)]
                coins = np.full(len(X), loops.AGAIN)
                self._play_leaf(leaf, order, X, NO_LABELS, coins, NOT_ASKED)
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
