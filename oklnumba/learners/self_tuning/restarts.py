"""When a new ensemble is made of the past, by a generator that pauses between single rounds."""

import sys
from bisect import bisect, bisect_left
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from math import ceil
from typing import Annotated, Generic, NamedTuple, TypeVar

import numpy as np

from oklnumba.core.guard import Paced, finish, one_blas_thread
from oklnumba.core.state import Stateful
from oklnumba.hot.primitives.jit import SPARSE, Array, Integers
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.ensemble import Ensemble
from oklnumba.learners.self_tuning.forecasters import Player
from oklnumba.learners.self_tuning.groups import Group
from oklnumba.learners.self_tuning.labels import Past, Rounds, Trouble
from oklnumba.learners.self_tuning.scales import Scales, spread_rows

T = TypeVar("T")
PAST, LAST = range(2)  # entries of the counts: rounds in the past; the round of the last restart


def give(result: T) -> Paced[T]:
    """Return a work that is done."""
    yield from ()
    return result


@dataclass
class Timetable(Generic[T]):
    """Works that are due after some rounds, each on a first part of these.

    In single rounds after that part some of the work is done. No result depends on how much.
    """

    parts: dict[int, int]  # rounds of a part, by those after which the work is due, in order
    pieces: dict[int, int] = field(default_factory=dict)  # done in a single round; 1 if not given
    begun: Paced[T] | None = None  # the next work
    next_part: int = 0  # after how many rounds the part of the next work ends
    pieces_left: int = 0  # of the next work, with the present one; 0: it is due

    def take_due(
        self, played: int, single: bool | None, begin: Callable[[int, bool], Paced[T]]
    ) -> Paced[T] | None:
        """Return the work that is due now, if any; else, in single rounds, do some of the next.

        single : None: a work is due now in any case, out of schedule; begin(due, at_once) returns
        the work that is due after so many rounds.
        """
        self.pieces_left = 0
        if single is None:
            return begin(played, True)
        dues = [*self.parts, sys.maxsize]
        at = bisect_left(dues, played)  # of the next one, or of one now
        due = dues[at]
        self.next_part = self.parts.get(dues[at + (due == played)], sys.maxsize)
        if due == played:
            work, self.begun = self.begun or begin(due, True), None
            return work
        if single and played >= self.next_part:
            self.begun, pieces = self.begun or begin(due, False), self.pieces.get(due, 1)
            self.pieces_left = (due - played) * pieces
            try:
                for _ in range(pieces):
                    next(self.begun)
                    self.pieces_left -= 1
            except StopIteration as end:
                self.begun = give(end.value)
        return None

    def share(self, left: float) -> int:
        """Return how many of the rows that are left the present piece takes, to end in time."""
        rows = ceil(left / self.pieces_left) if self.pieces_left else settings.BLOCK_ROWS
        return min(rows, settings.BLOCK_ROWS)


class RestartsState(NamedTuple):
    """The past, as in Past; after its end few inputs, of the last rounds, and zeros."""

    counts: Annotated[Integers, "counts"]
    inputs: Annotated[Array, PAST, "d", SPARSE]
    labels: Annotated[Array, PAST, "outputs", SPARSE]
    cut: Annotated[Array, PAST, "outputs", SPARSE]
    known_counts: Annotated[Integers, PAST]
    recorded: Annotated[Array, PAST, "lasting", "outputs", SPARSE]
    residuals: Annotated[Array, PAST, "outputs", SPARSE]  # as trees on these learned them


class Restarts(Stateful[RestartsState, None]):
    """The past, in memory up to the last restart, and the ensemble that is being made of it.

    players : trees and experts, which no restart makes anew.
    """

    _layout = RestartsState

    def __init__(self, d: int, outputs: int, players: list[Player], budget: int, seed: int):
        self._players, self._budget, self._seed = players, budget, seed
        lasting = sum(len(one.members) for one in players)
        row = 8 * (d + (3 + lasting) * outputs + 1)
        longest = max(settings.MAX_PAST // row, settings.FREE_RESTARTS)
        ends = [end for end in settings.RESTARTS if end <= longest]
        share = settings.RESTART_SHARES
        parts = {end: end - end // share[end >= settings.LATE] for end in ends}
        pieces = dict(zip(settings.RESTARTS, settings.PIECES_PER_ROUND, strict=False))
        self.timetable: Timetable[Ensemble] = Timetable(parts, pieces)
        growths = (*settings.GROWTHS, *settings.BOOSTING.growths)
        self.end = ends[-1]  # the round of the last restart that will be
        self._apart = max(self.end // settings.KEPT_ROWS, 1)  # after the end one of so many is kept
        self._stops = sorted([*parts.values(), *ends, *growths, sys.maxsize])
        self._make_state(counts=2, d=d, outputs=outputs, lasting=lasting)

    @property
    def last(self) -> int:
        """The round of the last restart, 0 before the first."""
        return int(self._counts[LAST])

    def rounds_to_stop(self, played: int) -> int:
        """Return how many rounds may be played in one go: up to the next event of the schedule."""
        period_left = settings.PERIOD - played % settings.PERIOD
        return min(self._stops[bisect(self._stops, played)] - played, period_left)

    def record(
        self, rounds: Rounds, known_counts: np.ndarray, recorded: np.ndarray,
        residuals: np.ndarray, played: int,
    ) -> None:  # fmt: skip
        """Append the rounds after so many that were played to the past; keep few after its end."""
        if played >= self.end:
            self._keep_few(rounds.X[rounds.learned], played)
            return
        new = rounds.X, rounds.Y, rounds.cut, known_counts, recorded, residuals
        total = played + len(known_counts[rounds.learned])
        self._reserve({PAST: total})
        for array, values in zip(self._state[1:], new, strict=True):
            array[played:total] = values[rounds.learned]
        self._counts[PAST] = total

    def _keep_few(self, X: np.ndarray, played: int) -> None:
        """Keep some inputs of the rounds after so many, in place of the oldest ones kept."""
        if self._counts[PAST] > settings.KEPT_ROWS:  # it is the whole past still
            marks = self._find_marks(played - self.end, played)
            few = self._state.inputs[marks * self._apart]
            self._free(PAST)
            self._reserve({PAST: len(few)})
            self._state.inputs[marks % len(few)], self._counts[PAST] = few, len(few)
        marks = self._find_marks(played, played + len(X))
        self._state.inputs[marks % self._counts[PAST]] = X[marks * self._apart - played]

    def _find_marks(self, start: int, stop: int) -> np.ndarray:
        """Return which of the rounds in a range are kept, in units of ``_apart``."""
        return np.arange(-(-start // self._apart), -(-stop // self._apart))

    def past(self, n: int | None = None, of_residuals: bool = False) -> Past:
        """Return the first n rounds, or all; with residuals in place of labels if these count."""
        n = int(self._counts[PAST]) if n is None else n
        past = Past(*[array[:n] for array in self._state[1:-1]])
        return past._replace(Y=self._state.residuals[:n]) if of_residuals else past

    def sample(self) -> np.ndarray:
        """Return inputs, (n, d), evenly spread over the past, or over the last ``end`` rounds."""
        X = self._state.inputs[: self._counts[PAST]]
        most = max(settings.SAMPLED_NUMBERS // X.shape[1], settings.FEWEST_SAMPLED)
        return X[spread_rows(len(X), min(most, settings.KEPT_ROWS))]

    def pays(self, played: int) -> bool:
        """Return whether a restart pays: the last one is over a sixteenth of the rounds ago."""
        recent = (played - self.last) * settings.GROWTH_SHARE <= played
        return played >= settings.RESTARTS[0] and not recent and played < self.end

    def next_ensemble(self, ensemble: Ensemble, played: int, single: bool | None) -> Ensemble:
        """Return the ensemble of the next round: a new one if a restart is due, or ``single`` None.

        It goes on from the losses of the one before.
        """
        try:
            if work := self.timetable.take_due(played, single, self._build):
                if single is not None:  # else Ctrl-C leaves the members in force
                    ensemble.free_members()  # before the memory of new ones is taken
                with one_blas_thread:  # threads play several metrics
                    new = finish(work)
                new.layers.take_losses(ensemble.layers)
                self._counts[LAST], ensemble = played, new
        except Trouble as trouble:
            raise Trouble(trouble.args[0], -1) from None  # in the last round played
        if played == self.end:
            self._keep_few(self._state.inputs[:0], played)
        return ensemble

    def make_ensemble(
        self, scales: Scales, end: int, atomless: Container[int] | None = None
    ) -> Paced[Ensemble]:
        """Return the ensemble, without rounds, that is in force after round ``end``.

        atomless : numbers of the groups without dictionaries in a saved state; None: linear ones
        that are not wider than the budget have none.
        """
        restarts = sum(restart <= end for restart in self.timetable.parts)
        horizon = (*self.timetable.parts, np.inf)[restarts]  # of its rounds
        groups: list[Group] = []
        for space in settings.SPACES:
            if scales.median == 0.0 and space.kernel != "linear":
                continue
            narrow = scales.width(space) <= self._budget and space.kernel == "linear"
            needs_none = narrow if atomless is None else len(groups) in atomless
            most = min(space.max_size, max(space.share * self._budget, 1))
            size = 0 if needs_none else int(min(most, horizon))
            groups.append(Group(space, scales, size, [self._seed, restarts, space.seed]))
            yield
        return Ensemble(scales, groups, self._players)

    def _build(self, end: int, at_once: bool) -> Paced[Ensemble]:
        """Return the ensemble that begins after round ``end``."""
        built = self.timetable.parts.get(end, end - end // settings.GROWTH_SHARE)
        past, chosen, later = self.past(built), 0, settings.JOIN_COST * (end - built)
        share = self.timetable.share
        scales = yield from Scales.measure(past, end, at_once)
        ensemble = yield from self.make_ensemble(scales, end)
        yield
        while chosen < built:
            left = built - chosen + (built + later) / settings.CHOICE_COST
            stop = chosen + share(left)
            ensemble.choose(past.rounds(slice(chosen, stop)))
            chosen = stop
            yield
        turns = past.turns(0)
        longest = int((np.arange(built) - turns).max())
        yield from ensemble.replay(past, built, turns, False, lambda n: share(built - n + later))
        while ensemble.replayed < end:  # rounds played meanwhile: their points may join
            latest = self.past()
            count = len(latest.X)
            stop = count if count == end else count - longest  # rows with a turn before have come
            if stop <= ensemble.replayed:
                yield
                continue
            turns = latest.turns(ensemble.replayed, built, longest)
            yield from ensemble.replay(latest, stop, turns, True, lambda n: share(end - n))
        return ensemble
