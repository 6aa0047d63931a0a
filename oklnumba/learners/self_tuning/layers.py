"""How SelfTuning makes one forecast of those of its members: aggregation, ridge, aggregation."""

from __future__ import annotations

import numpy as np

from oklnumba.core.health import Part
from oklnumba.core.state import State, aligned_zeros, round_up_to_vector
from oklnumba.hot.experts import EXPERT_STATE, LARGEST, LEARNED, TALLY, write_weights
from oklnumba.hot.layers import layer_forecasts, layer_rounds
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.self_tuning.ridges import (
    make_results,
    make_ridges,
    measure_ridges,
    require_done,
    settle_ridges,
)
from oklnumba.learners.self_tuning.settings import (
    BLOCK_ROWS,
    FILLED,
    FINAL_LAYER,
    FIRST_LAYER,
    POSTERIOR,
    STACKS,
)


class Layers(State):
    """Two layers of aggregation, with ridge regression between them, each for K outputs.

    The regression is on what everyone's forecast, and 0, adds to the last label. So it begins with
    the last label, and where labels do not change it stays there: nobody has to learn that. It may
    weigh forecasts by more or less than 1 in all, or negatively, which no aggregation does.

    ``lowest``, ``highest`` : labels of the present span of rounds and of the one before; ``centre``
    : of the range that sets rates; ``excess`` : the bound of the regret of the aggregations that
    have ended, and with those of now.
    """

    _STATE = {
        **{name: ("outputs", "first", axes[0]) for name, axes in EXPERT_STATE.items()},
        **{f"top_{name}": ("outputs", f"top_{axes[0]}") for name, axes in EXPERT_STATE.items()},
        "U": ("outputs", "stacks", "r", "r"), "inv_d": ("outputs", "stacks", "r"),
        "c": ("outputs", "stacks", "one", "r"),
        "lowest": ("outputs", "spans"), "highest": ("outputs", "spans"), "centre": ("outputs",),
        "excess": ("outputs", "epochs"),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"lowest", "highest"})

    def __init__(self, members: int, outputs: int):
        self._columns = members + len(FIRST_LAYER)  # with 0, without the last label
        heights = len(FINAL_LAYER) + len(STACKS)  # forecasts that are weighed at last
        r = round_up_to_vector(self._columns)
        self._make_state(
            outputs=outputs, first=len(FIRST_LAYER), experts=members, tally=TALLY,
            top_experts=heights, top_tally=TALLY, stacks=len(STACKS), r=r, one=1,
            spans=2, epochs=2,
        )  # fmt: skip
        self._lowest[:], self._highest[:] = np.inf, -np.inf
        # What the compiled loops take of each output, and their workspace.
        kinds, shares = (
            np.array([kind for kind, _ in FIRST_LAYER]),
            np.array([one for _, one in FIRST_LAYER]),
        )
        self._aggregations = [
            (kinds, shares, *state)
            for state in zip(self._totals, self._squares, self._tally, strict=True)
        ]
        totals = np.zeros((outputs, len(STACKS), 1, TOTALS))
        self._ridges = make_ridges(STACKS, self._U, self._inv_d, self._c, totals)
        tops = zip(self._top_totals, self._top_squares, self._top_tally, strict=True)
        self._tops = [(np.array(FINAL_LAYER), state) for state in tops]
        forecasts, proofs = make_results(2 * len(STACKS), len(STACKS), 1)
        first, targets = np.zeros((len(FIRST_LAYER), BLOCK_ROWS)), np.zeros((BLOCK_ROWS, 1))
        learned = (
            np.zeros(BLOCK_ROWS),
            np.zeros(BLOCK_ROWS + 1),
            np.zeros(BLOCK_ROWS),
        )  # labels, B, excess
        self._weights = np.zeros(members)
        self._room = (
            np.full(BLOCK_ROWS, r), self._weights,
            (first, aligned_zeros(BLOCK_ROWS, r), targets, *learned),
            (forecasts, np.zeros(BLOCK_ROWS), np.zeros((BLOCK_ROWS, 1)), proofs),
            (np.zeros((BLOCK_ROWS, heights)), np.zeros(heights), *np.zeros((2, BLOCK_ROWS))),
        )  # fmt: skip

    def play(
        self, k: int, F: np.ndarray, Y: np.ndarray, offset: float, proofs: np.ndarray,
        sums: tuple, out: tuple,
    ) -> None:  # fmt: skip
        """Play n <= BLOCK_ROWS rounds of output k.

        F : (n, N), forecasts of the members, changed; Y : (n, K), labels less their offsets; others
        as in second_layer_rounds.
        """
        y, centre = Y[:, k], float(self._centre[k])
        self._lowest[k, 0] = min(self._lowest[k, 0], y.min())
        self._highest[k, 0] = max(self._highest[k, 0], y.max())
        loss, losses, before, best = sums
        require_done(
            layer_rounds(
                F, Y, k, (centre, centre + offset), self._aggregations[k], self._ridges,
                self._tops[k], proofs, (loss, losses, before, self._excess, best), self._room, out,
            )
        )  # fmt: skip

    def forecast(self, k: int, F: np.ndarray, offset: float, out: np.ndarray) -> None:
        """Write what play would forecast of output k in each row; nothing is learned."""
        centre = float(self._centre[k])
        layer_forecasts(
            F, k, (centre, centre + offset), self._aggregations[k], self._ridges, self._tops[k],
            self._room, out,
        )  # fmt: skip

    def end_span(self, signs: np.ndarray) -> np.ndarray:
        """Forget ranges that are far larger than that of the labels of the last two spans.

        Rates of aggregations may fall but not rise, so these begin again, in that range, with a
        bound of their own. The posterior's rate does not depend on it. Returns the largest |y| of
        these labels, (K,). signs : (K,), 1 where -1 and +1 are expected, though only one came.
        """
        low, high = self._lowest.min(axis=1), self._highest.max(axis=1)
        low, high = np.where(signs, [low.clip(max=-1.0), high.clip(min=1.0)], [low, high])
        radius = 0.5 * high - 0.5 * low
        for k in np.flatnonzero(radius < self._tally[:, 0, LARGEST] / FILLED):
            for name in EXPERT_STATE:
                getattr(self, f"_{name}")[k, :POSTERIOR] = 0.0
                getattr(self, f"_top_{name}")[k] = 0.0
            self._centre[k], self._tally[k, :, LARGEST] = 0.5 * low[k] + 0.5 * high[k], radius[k]
            self._excess[k, 0] = self._excess[k, 1]
        for ends, nothing in ((self._lowest, np.inf), (self._highest, -np.inf)):
            ends[:, 1], ends[:, 0] = ends[:, 0], nothing
        return np.maximum(np.abs(low), np.abs(high))

    def posterior(self, k: int) -> np.ndarray:
        """Return the posterior of the members in the next round, (N,)."""
        state = tuple(part[POSTERIOR] for part in self._aggregations[k][2:])
        kind, share = FIRST_LAYER[POSTERIOR]
        write_weights(kind, (SQUARED, LEARNED, share), 0, state, self._weights)
        return self._weights.copy()

    def largest_labels(self) -> np.ndarray:
        """Return the largest |y| so far of each output, (K,)."""
        return self._tally[:, 0, LARGEST]

    def _settle(self) -> None:
        settle_ridges(self._ridges)

    def measure(self) -> list[Part]:
        """Return the parts of the regressions' matrices."""
        self._settle()
        names = [f"regression on forecasts, half-life {one.half_life}" for one in STACKS]
        parts: list[Part] = []
        for k in range(len(self._U)):
            parts += measure_ridges(names, self._ridges, k, self._columns, [1.0])[0]
        return parts
