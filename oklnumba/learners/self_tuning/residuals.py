"""Trees on the residuals of SelfTuning's layers, R, and the forecast with them.

With p_t of the layers (hot/tuned/layers.py), for each output:

    for t = 1, ..., n:
        r_t,e = what trees on x forecast, e = 1, 2, 3 the shrinkages       # hot/tuned/forest.py
        yhat_t = ML-Poly's mean of p_t and of all p_t + r_t,e              # hot/experts.py
        trees learn y_t - p_t, but 0 of outliers, and before the first restart, while labels are
            not judged yet
"""

from typing import Annotated, NamedTuple

import numpy as np

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
from oklnumba.hot.primitives.jit import DONE, Array, enter
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.tuned.layers import LayerResults
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forecasters import recall
from oklnumba.learners.self_tuning.forest import Forest
from oklnumba.learners.self_tuning.labels import NO_LABELS, Rounds
from oklnumba.learners.self_tuning.regressions import Trouble

AMENDED = 1 + len(settings.SHRINKAGES)  # forecasts that ML-Poly weighs


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
        self.forest = Forest(outputs, 0, seed)
        self._make_state(outputs=outputs, experts=AMENDED, tally=TALLY)

    def play(self, rounds: Rounds, learns_residuals: bool, out: LayerResults) -> np.ndarray:
        """Amend what the layers wrote of n rounds: forecasts, losses, bounds; return residuals."""
        made = rounds.made[:, -AMENDED:]
        plain = out.predictions[:, None].copy()
        recall(plain, made[:, :1])
        residuals = NO_LABELS
        if rounds.learns:
            counts = (rounds.Y == rounds.cut) & learns_residuals
            residuals = np.where(counts, rounds.Y - plain[:, 0], 0.0)
        trees = self.forest.play(rounds._replace(Y=residuals))
        self.forecasts = np.concatenate([plain, plain + trees], axis=1)
        recall(self.forecasts, made)
        for k in range(trees.shape[2]):
            self._mix(k, rounds, out)
        return residuals

    def _mix(self, k: int, rounds: Rounds, out: LayerResults) -> None:
        n, state, learns = len(rounds.X), self._state, rounds.learns
        F, y = self.forecasts[:, :, k].copy(), rounds.Y[:, k].copy() if learns else np.empty(0)
        rule = Aggregation(ML_POLY, SQUARED, LEARNED, 0.0)
        experts = ExpertsState(state.totals[k], state.squares[k], state.tally[k])
        new = Aggregates(np.empty(n), np.empty(n))
        weights = np.empty(AMENDED)
        played, status = enter(experts_rounds)(F, y, learns, rule, 0, experts, weights, new)
        if status != DONE:
            raise Trouble(status, played)
        out.predictions[:, k] = new.forecasts
        if learns:
            loss, excess = np.square(new.forecasts - y), state.ended_excess[k] + new.bounds
            loss[0] += state.loss[k]
            loss = np.add.accumulate(loss)
            state.loss[k], state.excess[k] = loss[-1], excess[-1]
            out.loss[:, k] = loss
            for bound in (out.bound, out.guaranteed):
                bound[:, k] += excess

    def begin_anew(self, some: np.ndarray) -> None:
        """Let ML-Poly of some outputs, (K,), begin anew, as the layers do; bounds add up."""
        state = self._state
        for sums in (state.totals, state.squares, state.tally):
            sums[some] = 0.0
        state.ended_excess[some] = state.excess[some]
