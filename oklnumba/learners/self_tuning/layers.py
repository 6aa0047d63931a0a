"""How SelfTuning makes one forecast of those of its members: aggregation, ridge, aggregation."""

from functools import partial
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from oklnumba.core.arrays import round_up_to_vector
from oklnumba.core.guard import run_together
from oklnumba.core.health import Part
from oklnumba.core.state import Stateful
from oklnumba.hot.experts import LARGEST, LEARNED, TALLY, Aggregation, ExpertsState, write_weights
from oklnumba.hot.primitives.jit import UPPER, Array, bind
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.tuned import layers as loops
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.groups import (
    Workspaces,
    make_regressions,
    make_workspace,
    measure_regressions,
    settle_regressions,
)
from oklnumba.learners.self_tuning.labels import NOT_ASKED, NOT_LATE, Rounds


class LayersState(NamedTuple):
    """The layers, and the regressions between them."""

    layers: loops.LayerState
    U: Annotated[Array, "outputs", "regressions", "r", "r", UPPER]
    inv_d: Annotated[Array, "outputs", "regressions", "r"]
    c: Annotated[Array, "outputs", "regressions", "targets", "r"]
    member_gaps: Annotated[Array, "outputs", "members"]


class Layers(Stateful[LayersState, None]):
    """Two layers of aggregation, with ridge regressions between them, each for K outputs.

    A regression learns label - last label from forecast - last label of each member, and of 0. So
    it begins with the last label, and stays there where labels do not change. Its weights may be
    negative, and their sum need not be 1, unlike those of an aggregation. Corrections are
    regressions too. They begin with the forecast of the first regression, and learn what it lacks.

    forecasts, certificates : of the members; member_rows : where they are there; certified : which
    certificates count. stages : what the layers have just forecast.
    """

    _layout = LayersState

    def __init__(
        self, forecasts: np.ndarray, certificates: np.ndarray, member_rows: np.ndarray,
        certified: np.ndarray, outputs: int,
    ):  # fmt: skip
        count, some = len(member_rows), len(settings.FIRST_LAYER) + len(settings.STACKS)
        # Those of a regression, with 0 and without the last label, and those of a correction.
        self._columns = max(count + len(settings.FIRST_LAYER), 2 * some)
        r, regressions = round_up_to_vector(self._columns), settings.STACKS + settings.CORRECTIONS
        self._make_state(
            outputs=outputs, first=len(settings.FIRST_LAYER), members=count, tally=TALLY,
            final=len(settings.FINAL_LAYER) + len(regressions), regressions=len(regressions), r=r,
            targets=1, periods=2,
        )  # fmt: skip
        state, layers = self._state, self._state.layers
        layers.lowest[:], layers.highest[:] = np.inf, -np.inf
        kinds, shares = (np.array(column) for column in zip(*settings.FIRST_LAYER, strict=True))
        totals = np.zeros((outputs, len(regressions), 1, TOTALS))
        self._regressions = make_regressions(regressions, state.U, state.inv_d, state.c, totals)
        self.stages = np.zeros((settings.BLOCK_ROWS, settings.STAGES, outputs))
        self._bound = bind(loops.LayerArguments(
            kinds, shares, len(settings.STACKS), np.array(settings.FINAL_LAYER), forecasts,
            certificates, member_rows, certified, layers, self.stages, self._regressions,
        ))  # fmt: skip
        self._workspaces = Workspaces(partial(make_work, self._regressions, count))

    def play(self, rounds: Rounds, offsets: np.ndarray, out: loops.LayerResults) -> None:
        """Play rounds that all members have played; without labels only predictions are written."""
        made, asked = then = rounds.then
        if then is not NOT_LATE and len(rounds.Y) and ((made == made).any() or (asked >= 0).any()):
            self._state.layers.ended_excess[:] = np.inf  # no bound holds for recalled forecasts
        if not rounds.trusts_stages:
            then = then._replace(asked=NOT_ASKED)
        n, Y = len(rounds.X), rounds.Y - offsets if len(rounds.Y) else rounds.Y
        play = partial(self._workspaces.play, loops.layer_rounds, n, Y)
        calls = enumerate(offsets.tolist())
        run_together([partial(play, k, one, then, self._bound, out) for k, one in calls], n)

    def end_period(self, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forget ranges that the last two periods do not fill.

        Returns whose they are, (K,), and the largest |y| of these periods, (K,).
        """
        layers = self._state.layers
        low, high = layers.lowest.min(axis=1), layers.highest.max(axis=1)
        low, high = np.where(signs, [low.clip(max=-1.0), high.clip(min=1.0)], [low, high])
        radius = 0.5 * high - 0.5 * low
        shrunk = radius < layers.tally[:, 0, LARGEST] / settings.FILLED
        for k in np.flatnonzero(shrunk).tolist():
            self._begin_anew(k, 0.5 * low[k] + 0.5 * high[k], radius[k])
        for ends, nothing in ((layers.lowest, np.inf), (layers.highest, -np.inf)):
            ends[:, 1], ends[:, 0] = ends[:, 0], nothing
        return shrunk, np.maximum(np.abs(low), np.abs(high))

    def _begin_anew(self, k: int, centre: float, radius: float) -> None:
        """Let the aggregations of output k begin anew in this range of labels; bounds add up."""
        # Their rates may fall but not rise. The posterior's rate does not depend on the range.
        layers = self._state.layers
        for first in (layers.totals, layers.squares, layers.tally):
            first[k, : settings.POSTERIOR] = 0.0
        for final in (layers.final_totals, layers.final_squares, layers.final_tally):
            final[k] = 0.0
        layers.centre[k], layers.tally[k, :, LARGEST] = centre, radius
        layers.ended_excess[k] = layers.excess[k]

    # ---- members ----

    def weights(self) -> np.ndarray:
        """Return the posterior of the members in the next round, (K, N)."""
        at, layers = settings.POSTERIOR, self._state.layers
        weights, (kind, share) = np.empty_like(layers.member_losses), settings.FIRST_LAYER[at]
        for k, of_output in enumerate(weights):
            state = ExpertsState(layers.totals[k, at], layers.squares[k, at], layers.tally[k, at])
            write_weights(Aggregation(kind, SQUARED, LEARNED, share), 0, state, of_output)
        return weights

    def take_losses(self, other: Self) -> None:
        """Take for the losses of rounds replayed here those of the layers that played them."""
        layers, before = self._state.layers, other._state.layers
        total = before.loss + before.replay_gap  # on the labels as learned
        same = other.member_losses().shape == layers.member_losses.shape
        # Before there were these members, each has the loss of the learner.
        losses = other.member_losses() if same else total[:, None]
        layers.replay_gap[:] = total - layers.loss
        layers.ended_excess[np.isinf(before.ended_excess)] = np.inf  # as in play
        self._state.member_gaps[:] = losses - layers.member_losses

    def member_losses(self) -> np.ndarray:
        """Return the members' losses as they forecast at the time, (K, N)."""
        return self._state.layers.member_losses + self._state.member_gaps

    def _settle(self) -> None:
        settle_regressions(self._regressions)

    def find_parts(self) -> list[Part]:
        """Return the parts of the regressions' matrices."""
        self._settle()
        every = settings.STACKS + settings.CORRECTIONS
        names = [f"regression, lam = {one.lam:g}, half-life {one.half_life}" for one in every]
        parts: list[Part] = []
        for k in range(len(self._state.U)):
            parts += measure_regressions(names, self._regressions, k, self._columns, [1.0])[0]
        return parts


def make_work(regressions: loops.Regressions, members: int) -> Any:
    """Return workspace of one output, bound."""
    n, count = settings.ROW_ROOM, len(regressions.forgetting)
    final = len(settings.FINAL_LAYER) + count
    return bind(loops.LayerWork(
        F=np.zeros((n, members)), weights=np.zeros(members),
        aggregates=np.zeros((len(settings.FIRST_LAYER), n)), labels=np.zeros(n), B=np.zeros(n + 1),
        excess=np.zeros(n), rows=make_workspace(n, regressions, 0, 2 * count, count),
        Y=np.zeros((n, 1)), final=np.zeros((n, final)), final_weights=np.zeros(final),
        forecasts=np.zeros(n), regrets=np.zeros(n),
    ))  # fmt: skip
