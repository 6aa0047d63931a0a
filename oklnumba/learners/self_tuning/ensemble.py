"""What each restart makes: scales, all who forecast on them, and the layers that weigh them.

All forecasts of a block lie in one array: each forecaster writes into its own rows of it, and the
layers read it. There they count from ``scales.offsets``, the middle of each output's labels (0 for
-1 and +1), as the labels of groups and layers do. Members with lags learn changes from the last
label instead, which is added to their forecasts.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, chain

import numpy as np

from oklnumba.core.guard import Paced, run_together
from oklnumba.core.health import Part, name_members
from oklnumba.core.state import State
from oklnumba.hot.experts import LARGEST
from oklnumba.hot.primitives.jit import bind
from oklnumba.hot.tuned.layers import LayerResults
from oklnumba.hot.tuned.space import Results
from oklnumba.hot.tuned.space import Space as SpaceArguments
from oklnumba.learners.base.late import find_asked
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import (
    Forecaster,
    Lasting,
    LastLabel,
    Player,
    count_forecasts,
    recall,
)
from oklnumba.learners.self_tuning.labels import NO_LABELS, NO_VIEWS, Past, Rounds, Views
from oklnumba.learners.self_tuning.layers import Layers
from oklnumba.learners.self_tuning.members import Group
from oklnumba.learners.self_tuning.regressions import Workspaces, make_rows
from oklnumba.learners.self_tuning.scales import Scales
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, STAGES


class Ensemble:
    """All who forecast on the scales of one restart, and the layers, for K labels a round.

    players : trees and experts, which no restart makes anew; members : who each member is.
    """

    groups: list[Group]
    _views: Views

    def __init__(self, scales: Scales, players: Sequence[Player]):
        self.scales, self._players, self.replayed = scales, players, 0

    def make_members(self, budget: int, horizon: float, seed: list[int]) -> Paced[None]:
        """Make the members; ``horizon`` : the round of the next restart, for room."""
        scales, outputs = self.scales, len(self.scales.offsets)
        spaces = [one for one in settings.SPACES if scales.median or one.kernel == "linear"]
        lasting = [member for one in self._players for member in one.members]
        experts = sum(one.expert is not None for one in lasting)
        # Rows of each group in turn, the one with lags at last; of lasting members; the last label.
        counts = [*map(count_forecasts, spaces), len(lasting), 1]
        certified = [*(len(space.ridges) for space in spaces), experts]
        self._forecasts = np.zeros((sum(counts), BLOCK_ROWS, outputs))
        certificates = np.zeros((sum(certified), 3, BLOCK_ROWS, outputs))
        self.sizes = np.zeros((len(spaces), BLOCK_ROWS), dtype=np.int64)
        F = np.split(self._forecasts, [*accumulate(counts)][:-1])
        C = np.split(certificates, [*accumulate(certified)][:-1])
        arguments: list[SpaceArguments] = []
        self.groups = []
        workspaces = Workspaces(lambda: bind(make_rows(BLOCK_ROWS, arguments)))  # of threads
        for i, space in enumerate(spaces):
            has_atoms = scales.width(space) > budget or space.kernel != "linear"
            size = int(min(space.max_size, budget, horizon)) if has_atoms else 0
            results = Results(F[i], C[i], self.sizes[i])
            group = Group(space, scales, size, [*seed, space.seed], results, workspaces)
            self.groups.append(group)
            arguments.append(group.arguments)
            yield
        self.lasting = Lasting(self._players, scales.offsets, F[-2], C[-1])
        last = LastLabel(scales.offsets, F[-1])
        everyone: list[Forecaster] = [*self.groups, self.lasting, last]
        names = [name for one in everyone for name in one.members]
        self.members = [name for name in names if name is not None]
        rows = np.array([i for i, name in enumerate(names) if name is not None])
        have_proof = [one.half_life is None and not s.lags for s in spaces for one in s.ridges]
        proven = np.flatnonzero([*have_proof, *[True] * experts])
        self.layers = Layers(self._forecasts, certificates, rows, proven, outputs)
        lagged = [group for group in self.groups if group.space.lags]
        self._lagged: list[Forecaster] = [*lagged, last]
        self._lag_rows = slice(sum(counts[: len(spaces) - len(lagged)]), sum(counts[:-2]))
        others = [group for group in self.groups if not group.space.lags]
        others.sort(key=lambda one: one.space.metric is not None)  # small calls come last
        self._others: list[Forecaster] = [self.lasting, *others]
        self._of_groups = sum(counts[: len(spaces)])
        self._ahead: dict[int, np.ndarray] = {}  # notes of rounds that are not replayed yet

    def free_members(self) -> None:
        """Free the members; the layers remain."""
        self.groups, self._lagged, self._others, self._views = [], [], [], NO_VIEWS

    # ---- rounds ----

    def play(
        self, rounds: Rounds, out: LayerResults, judge: Callable[..., np.ndarray] | None = None
    ) -> Rounds:
        """Play up to BLOCK_ROWS rounds, or only forecast if there are no labels; return them.

        judge : what returns the labels to learn, of the labels, (n, K), and of the forecasts of the
        members with lags, (E, n, K). These come first, and learn the labels as they came.
        """
        if not rounds.was_forecast:  # else the views are those of the forecast
            self._views = self.scales.look(rounds.X, rounds.known)
        rounds = rounds._replace(views=self._views)
        self._run(self._lagged, rounds)
        if judge:
            forecasts = self._forecasts[self._lag_rows, : len(rounds.X)] + self.scales.offsets
            rounds = rounds._replace(Y=judge(rounds.Y, forecasts))
        if rounds.learns:
            rounds = rounds._replace(targets=rounds.Y - self.scales.offsets)
        self._run(self._others, rounds)
        first = STAGES + len(self.lasting.members)
        of_groups = self._forecasts[: self._of_groups, : len(rounds.X)].swapaxes(0, 1)
        recall(of_groups, rounds, slice(first, first + self._of_groups))
        self.layers.play(rounds, self.scales.offsets, out)
        return rounds

    def _run(self, forecasters: Sequence[Forecaster], rounds: Rounds) -> None:
        run_together([*chain(*[one.calls(rounds) for one in forecasters])], len(rounds.X))
        for one in forecasters:
            one.finish(rounds)

    def notes(self, n: int) -> np.ndarray:
        """Return what layers and members have just forecast for n rows, (n, any number, K)."""
        groups = self._forecasts[: self._of_groups, :n].swapaxes(0, 1)
        return np.concatenate([self.layers.stages[:n], self.lasting.recorded, groups], axis=1)

    def end_period(self) -> np.ndarray:
        """Forget what labels no longer fill: the range of the layers, and the unit of PA-I's C.

        Returns in which outputs layers began anew, (K,).
        """
        shrunk, recent = self.layers.end_period(self.scales.signs)
        for group in self.groups:
            group.shrink_units(recent)
        return shrunk

    # ---- the past ----

    def choose(self, rounds: Rounds) -> None:
        """Let the dictionaries choose among up to BLOCK_ROWS inputs."""
        views = self.scales.look(rounds.X, rounds.known)
        rounds = rounds._replace(Y=NO_LABELS, joins=True, views=views)
        calls = [group.calls(rounds) for group in self.groups if not group.is_full]
        run_together([*chain(*calls)], len(rounds.X))
        for group in self.groups:
            group.end_choice()

    def replay(
        self, past: Past, stop: int, turns: np.ndarray, joins: bool, rows: int
    ) -> Paced[None]:
        """Play the rounds before ``stop`` that were not replayed yet, so many rows at a time.

        Members and layers learn them anew; trees and experts do not play: what they forecast at the
        time was recorded. turns : of the rounds not replayed yet, as of ``Past.turns``.
        """
        first, own = self.replayed, np.arange(self.replayed, stop)
        some = np.flatnonzero(
            (turns < np.arange(first, len(past.X))) & (turns >= first) & (turns < stop)
        )
        # The rows in turn: late ones are asked at theirs, before its round is learned.
        times = np.concatenate([turns[some], own])
        order = times.argsort(kind="stable")
        numbers = np.concatenate([first + some, own])[order]
        learns, times, done = order >= len(some), times[order], 0
        is_late, few = len(some) > 0 or len(self._ahead) > 0, len(self.members)
        while self.replayed < stop:
            start = self.replayed
            if start > 0 and start % settings.PERIOD == 0:
                self.end_period()
            # Few at first between single rounds: a leaf's factors get memory in its first one.
            size = rows if rows == BLOCK_ROWS else min(rows, 2 + start // 16)
            end = start // settings.PERIOD * settings.PERIOD + settings.PERIOD
            last, trusts = min(start + size, end, stop), start > few  # see _note_asked
            if not trusts:
                last = min(last, few + 1)
            after = int(times.searchsorted(last))
            for i in range(done, after, BLOCK_ROWS):
                block = slice(i, min(i + BLOCK_ROWS, after))
                rounds = past.rounds(numbers[block])._replace(joins=joins, trusts_stages=trusts)
                if is_late:
                    rounds = self._recall(rounds, numbers[block], learns[block])
                out = np.empty((5, len(rounds.X), len(self.scales.offsets)))
                self.play(rounds, LayerResults(*out))
                if is_late:
                    self._note_asked(rounds, numbers[block])
            self.replayed, done = last, after
            yield

    def _recall(self, rounds: Rounds, numbers: np.ndarray, learns: np.ndarray) -> Rounds:
        """Return rounds to replay, of these numbers in the past, with what was asked before."""
        rounds.Y[~learns] = rounds.cut[~learns] = np.nan
        asked, learned = find_asked(numbers, ~learns), np.flatnonzero(learns)
        if before := [i for i in learned.tolist() if numbers[i] in self._ahead]:
            notes = [self._ahead.pop(numbers[i]) for i in before]
            made = np.full((len(numbers), *notes[0].shape), np.nan)
            made[before] = notes
            rounds = rounds._replace(made=made)
        return rounds._replace(learned=learned, asked=asked)

    def _note_asked(self, rounds: Rounds, numbers: np.ndarray) -> None:
        """Keep what is noted of rows that were asked, until they are replayed.

        Regressions of fewer rounds than inputs are far off where they do not know the last labels;
        what layers forecast then is kept out, or those that forget nothing would not recover.
        """
        asks = np.flatnonzero(np.isnan(rounds.Y[:, 0]))
        if len(later := np.setdiff1d(asks, rounds.asked)):
            notes = self.notes(len(numbers))[later]
            notes[:, :STAGES] += 0.0 if rounds.trusts_stages else np.nan
            self._ahead |= zip(numbers[later].tolist(), notes, strict=True)

    # ---- what members are and lost, and saving ----

    @property
    def size(self) -> int:
        """Atoms in all dictionaries together."""
        return sum(group.size for group in self.groups)

    def weights(self) -> np.ndarray:
        """Return the posterior of the members in the next round, (K, N)."""
        return np.stack([self.layers.posterior(k) for k in range(len(self.scales.offsets))])

    def best_members(self) -> list[str]:
        """Return who has the least comparator in each output's certificate."""
        awv = [one for one in self.members if one.forecaster == "awv" and not one.lags]
        certified = [*awv, *(one for one in self.members if one.expert is not None)]
        return [str(certified[i]) for i in self.layers._state.layers.best]

    def find_parts(self) -> list[Part]:
        """Return the parts of all matrices."""
        tally = self.layers._state.layers.tally
        scales = tally[:, 0, LARGEST].tolist()  # the largest label of each output
        parts = [(f"group {g}", group.find_parts(scales)) for g, group in enumerate(self.groups)]
        return name_members([*parts, ("layers", self.layers.find_parts())])

    def parts(self) -> dict[str, State]:
        """Return everything with a state, by name."""
        parts: dict[str, State] = {"ensemble": self.lasting, "layers": self.layers}
        return parts | {f"group{g}": group for g, group in enumerate(self.groups)}
