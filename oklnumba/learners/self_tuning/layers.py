"""How SelfTuning makes one forecast of those of its members: aggregation, ridge, aggregation."""

from __future__ import annotations

import numpy as np

from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import State, aligned_zeros, round_up_to_vector
from oklnumba.hot.experts import (
    AGGREGATING,
    DYNAMIC,
    EXPERT_STATE,
    LARGEST,
    LEARNED,
    ML_POLY,
    TALLY,
    write_weights,
)
from oklnumba.hot.layers import (
    first_layer_forecasts,
    first_layer_rounds,
    second_layer_forecasts,
    second_layer_rounds,
)
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.hot.self_tuning import group_forecasts, group_rounds
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.self_tuning.grid import (
    FADED,
    ROWS,
    Setting,
    make_room,
    prepare_ridges,
    prepare_rules,
    require_done,
    settle_ridges,
)

# The aggregations of all members, (kind, share). The first has the guarantee, the second follows
# drift, the third needs no scale of losses, the fourth learns that of the noise.
FIRST = (AGGREGATING, 0.0), (AGGREGATING, 1e-3), (ML_POLY, 0.0), (DYNAMIC, 1e-3)
# Ridge regression on the forecasts of members and aggregations, in units of the largest label.
STACKS = Setting(10.0, None), Setting(10.0, 500)
TOP = 0, 2  # aggregations of the first layer that ML-Poly weighs at last, with the regressions
POSTERIOR = 3  # the one of the first layer whose weights say which member is likely the best now


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
        self._columns = members + len(FIRST)  # with 0, without the last label
        heights = len(TOP) + len(STACKS)  # forecasts that are weighed at last
        r = round_up_to_vector(self._columns)
        self._make_state(
            outputs=outputs, first=len(FIRST), experts=members, tally=TALLY,
            top_experts=heights, top_tally=TALLY, stacks=len(STACKS), r=r, one=1,
            spans=2, epochs=2,
        )  # fmt: skip
        self._lowest[:], self._highest[:] = np.inf, -np.inf
        self._U[..., np.arange(r), np.arange(r)] = 1.0
        self._inv_d[:] = 1.0 / np.array([one.lam for one in STACKS])[:, None]
        # What the compiled loops take of each output, and their workspace.
        kinds, shares = np.array([kind for kind, _ in FIRST]), np.array([one for _, one in FIRST])
        self._aggregations = [
            (kinds, shares, *state)
            for state in zip(self._totals, self._squares, self._tally, strict=True)
        ]
        totals = np.zeros((len(STACKS), 1, TOTALS))
        self._ridges = [
            prepare_ridges(STACKS, *factors, totals)
            for factors in zip(self._U, self._inv_d, self._c, strict=True)
        ]
        self._rules = prepare_rules((), (), np.zeros(1), np.empty((0, 1, r)), np.empty((0, 1)))
        tops = zip(self._top_totals, self._top_squares, self._top_tally, strict=True)
        self._tops = [(np.array(TOP), state) for state in tops]
        self._Z, self._widths = aligned_zeros(ROWS, r), np.full(ROWS, r)
        forecasts, proofs = make_room(2 * len(STACKS), len(STACKS), 1)
        self._out = forecasts, np.zeros(ROWS), np.zeros((ROWS, 1)), proofs
        self._targets = np.zeros((ROWS, 1))
        self._first = np.zeros((len(FIRST), ROWS))
        self._learned = np.zeros(ROWS), np.zeros(ROWS + 1), np.zeros(ROWS)  # labels, B, excess
        self._weights = np.zeros(members)
        self._work = np.zeros((ROWS, heights)), np.zeros(heights), np.zeros(ROWS), np.zeros(ROWS)

    def play(
        self, k: int, F: np.ndarray, Y: np.ndarray, offset: float, proofs: np.ndarray,
        sums: tuple, out: tuple,
    ) -> None:  # fmt: skip
        """Play n <= ROWS rounds of output k.

        F : (n, N), forecasts of the members, changed; Y : (n, K), labels less their offsets; others
        as in second_layer_rounds.
        """
        n, y, centre = len(Y), Y[:, k], float(self._centre[k])
        self._lowest[k, 0] = min(self._lowest[k, 0], y.min())
        self._highest[k, 0] = max(self._highest[k, 0], y.max())
        labels, bounds, excess = self._learned
        sides = self._first, self._Z, self._targets, labels, bounds, excess
        require_done(
            first_layer_rounds(F, Y, k, centre, self._aggregations[k], self._weights, sides)
        )
        regressions = self._ridges[k], self._rules, self._out
        require_done(
            group_rounds(self._Z, self._widths, self._targets[:n], self._Z.shape[1], *regressions)
        )
        loss, losses, before, best = sums
        require_done(
            second_layer_rounds(
                F, k, centre + offset, self._first, self._out[0], proofs, self._learned,
                self._tops[k], (loss, losses, before, self._excess, best), self._work, out,
            )
        )  # fmt: skip

    def forecast(self, k: int, F: np.ndarray, offset: float, out: np.ndarray) -> None:
        """Write what play would forecast of output k in each row; nothing is learned."""
        centre, B = float(self._centre[k]), float(self._tally[k, 0, LARGEST])
        sides = self._first, self._Z
        first_layer_forecasts(F, centre, self._aggregations[k], self._weights, sides)
        group_forecasts(self._Z, self._widths, len(F), self._ridges[k], self._rules, self._out)
        second_layer_forecasts(
            F, k, B, centre + offset, self._first, self._out[0], self._tops[k], self._work[:2], out
        )

    def end_span(self, signs: np.ndarray) -> np.ndarray:
        """Forget ranges that are far larger than that of the labels of the last two spans.

        Rates of aggregations may fall but not rise, so these begin again, in that range, with a
        bound of their own. The posterior's rate does not depend on it. Returns the largest |y| of
        these labels, (K,). signs : (K,), 1 where -1 and +1 are expected, though only one came.
        """
        low, high = self._lowest.min(axis=1), self._highest.max(axis=1)
        low, high = np.where(signs, [low.clip(max=-1.0), high.clip(min=1.0)], [low, high])
        radius = 0.5 * high - 0.5 * low
        for k in np.flatnonzero(radius < self._tally[:, 0, LARGEST] / FADED):
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
        kind, share = FIRST[POSTERIOR]
        write_weights(kind, (SQUARED, LEARNED, share), 0, state, self._weights)
        return self._weights.copy()

    def largest_labels(self) -> np.ndarray:
        """Return the largest |y| so far of each output, (K,)."""
        return self._tally[:, 0, LARGEST]

    def _settle(self) -> None:
        for ridges in self._ridges:
            settle_ridges(ridges)

    def measure(self) -> list[Part]:
        """Return the parts of the regressions' matrices."""
        parts, m = [], self._columns
        self._settle()
        for k in range(len(self._U)):
            factors = zip(self._U[k], self._inv_d[k], self._c[k], STACKS, strict=True)
            for U, inv_d, c, setting in factors:
                matrix = Factored(U, m, 1.0 / inv_d[:m])
                part = measure_part("lam I + sum z z'", matrix, [matrix.half_solve(c[0])], [1.0])
                parts.append(part.within(f"regression on forecasts, half-life {setting.half_life}"))
        return parts
