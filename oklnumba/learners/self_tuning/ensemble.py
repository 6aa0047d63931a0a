"""What each restart makes: scales, all who forecast on them, and the layers that weigh them.

All forecasts of a block lie in one array: each forecaster writes into its own rows of it, and the
layers read it. There they count from ``scales.offsets``, the middle of each output's labels (0 for
-1 and +1), as the labels of groups and layers do. Members with lags learn changes from the last
label instead, which is added to their forecasts.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from oklnumba.core.guard import Paced, run_together
from oklnumba.core.health import Part, name_members
from oklnumba.core.state import Stateful
from oklnumba.hot.experts import LARGEST
from oklnumba.hot.primitives.jit import bind
from oklnumba.hot.tuned.layers import LayerResults, Recalled
from oklnumba.hot.tuned.scaling import Looks
from oklnumba.hot.tuned.space import Results
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import Lasting, Member, Player, recall
from oklnumba.learners.self_tuning.groups import Group, Groups
from oklnumba.learners.self_tuning.labels import NO_LABELS, Past, Rounds, Views
from oklnumba.learners.self_tuning.layers import Layers
from oklnumba.learners.self_tuning.scales import Scales
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, ROW_ROOM, STAGES


def find_asked(rows: np.ndarray, asks: np.ndarray) -> np.ndarray:
    """Return where in a block each row to learn was asked, (n,); -1 if it was not.

    rows : (n,), which row each is; asks : (n,), whether it is asked there, not learned.
    """
    rows = rows - rows.min(initial=0)
    places = np.full(rows.max(initial=0) + 1, -1)
    places[rows[asks]] = np.flatnonzero(asks)
    return np.where(asks, -1, places[rows])


class Ensemble:
    """All who forecast on the scales of one restart, and the layers, for K labels a round.

    players : trees and experts, which no restart makes anew; members : who each member is.
    """

    _views: Views

    def __init__(self, scales: Scales, groups: list[Group], players: Sequence[Player]):
        self.scales, self.groups, self.replayed = scales, groups, 0
        looks = [np.ascontiguousarray(getattr(scales, name)) for name in Looks._fields]
        self._looks, outputs = bind(Looks(*looks)), len(scales.offsets)
        self.lasting = Lasting(players, scales.offsets)
        everyone: list[Group | Lasting] = [*groups, self.lasting]
        names = [*(name for one in everyone for name in one.members), Member("last label")]
        certified = [name for one in everyone for name in one.certified]
        forecasts = np.zeros((len(names), ROW_ROOM, outputs))
        certificates = np.zeros((len(certified), 3, ROW_ROOM, outputs))
        self.sizes = np.zeros((len(groups), BLOCK_ROWS), dtype=np.int64)
        F, C = forecasts, certificates
        for group, sizes in zip(groups, self.sizes, strict=True):
            some, F = np.split(F, [len(group.members)])
            bounds, C = np.split(C, [len(group.certified)])
            group.bind_arguments(Results(some, bounds, sizes))
        self.lasting.forecasts, self.lasting.certificates, self._last_labels = F[:-1], C, F[-1]
        self.members = [name for name in names if name is not None]
        self._certified = [name for name in certified if name is not None]
        rows = np.flatnonzero([name is not None for name in names])
        proven = np.flatnonzero([name is not None for name in certified])
        self.layers = Layers(forecasts, certificates, rows, proven, outputs)
        lagged = [group for group in groups if group.space.lags]  # the last space
        others = [group for group in groups if not group.space.lags]
        others.sort(key=lambda one: one.space.metric is not None)  # small calls come last
        self._lagged = [Groups(lagged, scales.offsets)] if lagged else []
        self._others = [Groups(others, scales.offsets)] if others else []
        stop = sum(len(group.members) for group in groups)
        start = stop - sum(len(group.members) for group in lagged)
        self._of_groups, self._of_lagged = forecasts[:stop], forecasts[start:stop]
        self._ahead: dict[int, np.ndarray] = {}  # notes of rounds that are not replayed yet

    def free_members(self) -> None:
        """Free the members; the layers remain."""
        self.groups = []
        del self._views, self._lagged, self._others

    # ---- rounds ----

    def play(
        self, rounds: Rounds, out: LayerResults, judge: Callable[..., np.ndarray] | None = None
    ) -> Rounds:
        """Play up to BLOCK_ROWS rounds, or only forecast if there are no labels; return them.

        judge : what returns the labels to learn, of the labels, (n, K), and of the forecasts of the
        members with lags, (E, n, K), which count from the offsets, (K,). These come first, and
        learn the labels as they came.
        """
        n = len(rounds.X)
        if not rounds.was_forecast:  # else these are there
            self._views = self.scales.look(rounds.X, rounds.known, self._looks)
            self._last_labels[:n] = self._views.base
        self._run(self._lagged, rounds)
        if judge:
            Y = judge(rounds.Y, self._of_lagged[:, :n], self.scales.offsets)
            rounds = rounds if Y is rounds.Y else rounds._replace(Y=Y)
        self._run([self.lasting, *self._others], rounds)
        if len(rounds.then.asked):
            first = STAGES + len(self.lasting.members)
            columns = slice(first, first + len(self._of_groups))
            recall(self._of_groups[:, :n].swapaxes(0, 1), rounds, columns)
        self.layers.play(rounds, self.scales.offsets, out)
        return rounds

    def _run(self, forecasters: Sequence[Lasting | Groups], rounds: Rounds) -> None:
        calls = [one.calls(rounds, self._views) for one in forecasters]
        run_together([*chain(*calls)], len(rounds.X))
        for one in forecasters:
            one.finish(rounds)

    def notes(self, n: int) -> np.ndarray:
        """Return what layers and members have just forecast for n rows, (n, any number, K)."""
        groups = self._of_groups[:, :n].swapaxes(0, 1)
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
        self._views = self.scales.look(rounds.X, rounds.known, self._looks)
        self._run([*self._lagged, *self._others], rounds._replace(Y=NO_LABELS, joins=True))
        for group in self.groups:
            group.end_choice()

    def replay(
        self, past: Past, stop: int, turns: np.ndarray, joins: bool, share: Callable[[int], int]
    ) -> Paced[None]:
        """Play the rounds before ``stop`` that were not replayed yet.

        Members and layers learn them anew; trees and experts do not play: what they forecast at the
        time was recorded. turns : of the rounds not replayed yet, as of ``Past.turns``; share(n)
        returns how many rounds a piece plays after the first n.
        """
        times, numbers = past.order(self.replayed, stop, turns)
        is_late = len(times) > stop - self.replayed or len(self._ahead) > 0
        few, done = len(self.members), 0
        while self.replayed < stop:
            start = self.replayed
            if start > 0 and start % settings.PERIOD == 0:
                self.end_period()
            # Few at first between single rounds: a leaf's factors get memory in its first one.
            rows = share(start)
            size = rows if rows == BLOCK_ROWS else min(rows, 4 + start // 4)
            trusts = start > few  # see _note_asked
            end = min(start - start % settings.PERIOD + settings.PERIOD, stop)
            self.replayed = min(start + size, end if trusts else min(end, few + 1))
            after = int(times.searchsorted(self.replayed))
            for i in range(done, after, BLOCK_ROWS):
                block = slice(i, min(i + BLOCK_ROWS, after))
                rounds = past.rounds(numbers[block])._replace(joins=joins, trusts_stages=trusts)
                if is_late:
                    rounds = self._recall(rounds, numbers[block], times[block])
                self.play(rounds, LayerResults(*np.empty((5, *rounds.Y.shape))))
                if is_late:
                    self._note_asked(rounds, numbers[block])
            done = after
            yield

    def _recall(self, rounds: Rounds, numbers: np.ndarray, times: np.ndarray) -> Rounds:
        """Return rounds to replay, of these numbers in the past, with what was asked before."""
        asks, made = times < numbers, rounds.then.made
        rounds.Y[asks] = rounds.cut[asks] = np.nan
        learned = np.flatnonzero(~asks)
        if before := [i for i in learned.tolist() if numbers[i] in self._ahead]:
            notes = [self._ahead.pop(numbers[i]) for i in before]
            made = np.full((len(numbers), *notes[0].shape), np.nan)
            made[before] = notes
        return rounds._replace(learned=learned, then=Recalled(made, find_asked(numbers, asks)))

    def _note_asked(self, rounds: Rounds, numbers: np.ndarray) -> None:
        """Keep what is noted of rows that were asked, until they are replayed.

        Regressions of fewer rounds than inputs are far off where they do not know the last labels;
        what layers forecast then is kept out, or those that forget nothing would not recover.
        """
        asks = np.flatnonzero(np.isnan(rounds.Y[:, 0]))
        if len(later := np.setdiff1d(asks, rounds.then.asked)):
            notes = self.notes(len(numbers))[later]
            notes[:, :STAGES] += 0.0 if rounds.trusts_stages else np.nan
            self._ahead |= zip(numbers[later].tolist(), notes, strict=True)

    # ---- what members are and lost, and saving ----

    @property
    def size(self) -> int:
        """Atoms in all dictionaries together."""
        return sum(group.size for group in self.groups)

    def best_members(self) -> list[str]:
        """Return who has the least comparator in each output's certificate."""
        return [str(self._certified[i]) for i in self.layers._state.layers.best]

    def find_parts(self) -> list[Part]:
        """Return the parts of all matrices."""
        tally = self.layers._state.layers.tally
        scales = tally[:, 0, LARGEST].tolist()  # the largest label of each output
        parts = [(f"group {g}", group.find_parts(scales)) for g, group in enumerate(self.groups)]
        return name_members([*parts, ("layers", self.layers.find_parts())])

    def place_atoms(self, state: dict[str, Any], X: np.ndarray) -> dict[str, np.ndarray]:
        """Return what a file holds of atoms that are all past inputs X: the rows they are there.

        state : with the atoms of each group, (leaves, d, cap); rows are (leaves, cap).
        """
        placed = {}
        for name, group in self._list_dictionaries():
            rows = {one.tobytes(): k for k, one in enumerate(self.scales.see(X, group.space))}
            atoms = state[name].swapaxes(1, 2)
            places = np.array([[rows.get(one.tobytes(), -1) for one in leaf] for leaf in atoms])
            places[~group.is_atom] = -1
            if (places[group.is_atom] >= 0).all():
                placed[name] = places
        return placed

    def find_atoms(self, state: dict[str, Any], X: np.ndarray) -> dict[str, np.ndarray]:
        """Return the atoms of which ``place_atoms`` returned the rows."""
        found = {}
        for name, group in self._list_dictionaries():
            if state[name].dtype.kind == "i":
                rows = self.scales.see(X, group.space)
                rows = np.vstack([rows, np.zeros(rows.shape[1])])  # row -1 is no atom
                found[name] = rows[state[name]].swapaxes(1, 2)
        return found

    def _list_dictionaries(self) -> list[tuple[str, Group]]:
        """Return the groups whose atoms are inputs alone, and the names of their atoms."""
        named = [(f"group{g}_atoms", group) for g, group in enumerate(self.groups)]
        return [(name, group) for name, group in named if not group.space.lags]

    def parts(self) -> dict[str, Stateful]:
        """Return everything with a state, by name."""
        parts: dict[str, Stateful] = {"ensemble": self.lasting, "layers": self.layers}
        return parts | {f"group{g}": group for g, group in enumerate(self.groups)}
