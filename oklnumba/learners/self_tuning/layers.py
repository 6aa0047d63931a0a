"""How SelfTuning makes one forecast of those of its members: aggregation, ridge, aggregation."""

from __future__ import annotations

import numpy as np

from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import State, aligned_zeros, round_up_to_vector, sweep_workspace
from oklnumba.hot.awv import awv_certified_rounds, awv_forecasts
from oklnumba.hot.experts import (
    AGGREGATING,
    DYNAMIC,
    EXPERT_STATE,
    GROWN,
    LARGEST,
    LEARNED,
    ML_POLY,
    TALLY,
    expert_forecasts,
    experts_rounds,
    write_weights,
)
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.learners.awv import TOTALS
from oklnumba.learners.self_tuning.grid import ROWS, Setting, require_done

# The aggregations of all members, (kind, share). The first has the guarantee, the second follows
# drift, the third needs no scale of losses, the fourth learns that of the noise.
FIRST = (AGGREGATING, 0.0), (AGGREGATING, 1e-3), (ML_POLY, 0.0), (DYNAMIC, 1e-3)
# Ridge regression on the forecasts of members and aggregations, in units of the largest label.
STACKS = Setting(10.0, None), Setting(10.0, 500)
TOP = 0, 2  # aggregations of the first layer that ML-Poly weighs at last, with the regressions
POSTERIOR = 3  # the one of the first layer whose weights say which member is likely the best now
LAST_LABEL = -1  # of the members
FADED = 4.0  # a range is forgotten if recent labels fill less than one part of so many


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
        self._heights = len(TOP) + len(STACKS)  # forecasts that are weighed at last
        r = round_up_to_vector(self._columns)
        self._make_state(
            outputs=outputs, first=len(FIRST), experts=members, tally=TALLY,
            top_experts=self._heights, top_tally=TALLY, stacks=len(STACKS), r=r, one=1,
            spans=2, epochs=2,
        )  # fmt: skip
        self._lowest[:], self._highest[:] = np.inf, -np.inf
        self._U[..., np.arange(r), np.arange(r)] = 1.0
        self._inv_d[:] = 1.0 / np.array([one.lam for one in STACKS])[:, None]
        self._Z = aligned_zeros(ROWS, r)
        self._proof = np.zeros((3, ROWS, 1)), np.zeros((1, TOTALS)), np.zeros((ROWS, 1))
        work = sweep_workspace(self._U[0, 0])
        # What the compiled loops take for each output: kind, setting and state of aggregations, the
        # state of the one at the top, and the arguments of regressions.
        self._first = [
            [
                (kind, squared_loss(share), (totals[j], squares[j], tally[j]))
                for j, (kind, share) in enumerate(FIRST)
            ]
            for totals, squares, tally in zip(self._totals, self._squares, self._tally, strict=True)
        ]
        self._top = list(zip(self._top_totals, self._top_squares, self._top_tally, strict=True))
        self._regressions = [
            [
                (r, (U[j], inv_d[j], c[j]), setting.inverses, work, 0.0)
                for j, setting in enumerate(STACKS)
            ]
            for U, inv_d, c in zip(self._U, self._inv_d, self._c, strict=True)
        ]

    def play(self, k: int, F: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Aggregate the members' forecasts F, (n, N), of output k, n <= ROWS; y : (n,), labels.

        F is cut to the range of the labels before the round. Returns the forecasts (n,), and
        bounds of the regret against the best member after each round (n,).
        """
        self._lowest[k, 0] = min(self._lowest[k, 0], y.min())
        self._highest[k, 0] = max(self._highest[k, 0], y.max())
        n, centre = len(y), self._centre[k]
        y = y - centre
        F -= centre
        largest, grown = self._tally[k, 0, [LARGEST, GROWN]]
        bounds = np.maximum.accumulate(np.append(largest, np.abs(y)))
        B = bounds[:-1]
        np.clip(F, -B[:, None], B[:, None], out=F)
        weights, out = np.empty(F.shape[1]), (np.empty(n), np.empty(n))
        first = np.empty((n, len(FIRST)))
        for j, (kind, setting, state) in enumerate(self._first[k]):
            require_done(experts_rounds(F, y, kind, setting, 0, state, weights, out))
            first[:, j] = out[0]
        units = np.where(B > 0.0, B, np.inf)
        self._write(F, first, units)
        Y = ((np.clip(y, -B, B) - F[:, LAST_LABEL]) / units)[:, None]
        stacked = np.empty((len(STACKS), n, 1))
        proof, totals, growth = self._proof
        for j, arguments in enumerate(self._regressions[k]):
            sides = np.empty_like(Y), stacked[j], np.empty(n), growth[:n]
            require_done(
                awv_certified_rounds(
                    self._Z[:n], Y, *arguments, arguments[0], STACKS[j].discount, totals,
                    sides, tuple(proof[:, :n]),
                )
            )  # fmt: skip
        P, weights = self._stack(F, first, stacked, B), np.empty(self._heights)
        top = ML_POLY, squared_loss(), 0, self._top[k]
        require_done(experts_rounds(P, y, *top, weights, out))
        forecasts, excess = out
        # theory.experts_bound for the first aggregation, theory.mlpoly_bound for the top on it.
        grown = np.add.accumulate(np.append(grown, np.diff(bounds) ** 2))[1:]
        excess += 2.0 * bounds[1:] ** 2 * (np.log(F.shape[1]) + 1.0) - grown + self._excess[k, 0]
        self._excess[k, 1] = excess[-1]
        F += centre
        return forecasts + centre, excess

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

    def forecast(self, k: int, F: np.ndarray, out: np.ndarray) -> None:
        """Write what play would forecast in each row; nothing is learned. out : (n,)."""
        n, B, centre = len(F), self._tally[k, 0, LARGEST], self._centre[k]
        F = np.clip(F - centre, -B, B)
        weights, column = np.empty(F.shape[1]), np.empty(n)
        first = np.empty((n, len(FIRST)))
        for j, (kind, setting, state) in enumerate(self._first[k]):
            write_weights(kind, setting, 0, state, weights)
            expert_forecasts(kind, B, weights, F, column)
            first[:, j] = column
        self._write(F, first, B if B > 0.0 else np.inf)
        stacked = np.empty((len(STACKS), n, 1))
        for j, arguments in enumerate(self._regressions[k]):
            awv_forecasts(self._Z[:n], *arguments, (np.empty((n, 1)), stacked[j], np.empty(n)))
        P, weights = self._stack(F, first, stacked, B), np.empty(self._heights)
        write_weights(ML_POLY, squared_loss(), 0, self._top[k], weights)
        expert_forecasts(ML_POLY, 0.0, weights, P, out)
        out += centre

    def posterior(self, k: int) -> np.ndarray:
        """Return the posterior of the members in the next round, (N,)."""
        weights = np.empty(self._totals.shape[-1])
        kind, setting, state = self._first[k][POSTERIOR]
        write_weights(kind, setting, 0, state, weights)
        return weights

    def largest_labels(self) -> np.ndarray:
        """Return the largest |y| so far of each output, (K,)."""
        return self._tally[:, 0, LARGEST]

    def measure(self) -> list[Part]:
        """Return the parts of the regressions' matrices."""
        parts, m = [], self._columns
        for k in range(len(self._U)):
            for (_, (U, inv_d, c), *_), setting in zip(self._regressions[k], STACKS, strict=True):
                matrix = Factored(U, m, 1.0 / inv_d[:m])
                part = measure_part("lam I + sum z z'", matrix, [matrix.half_solve(c[0])], [1.0])
                parts.append(part.within(f"regression on forecasts, half-life {setting.half_life}"))
        return parts

    def _write(self, F: np.ndarray, first: np.ndarray, units: np.ndarray | float) -> None:
        """Write what all forecasts, and 0, add to the last label, in units of the largest."""
        zero = np.zeros((len(F), 1))
        apart = np.concatenate([F[:, :LAST_LABEL], first, zero], axis=1) - F[:, LAST_LABEL, None]
        self._Z[: len(F), : self._columns] = apart / np.reshape(units, (-1, 1))

    def _stack(
        self, F: np.ndarray, first: np.ndarray, stacked: np.ndarray, B: np.ndarray | float
    ) -> np.ndarray:
        """Return the forecasts that are weighed at last, (n, TOP and STACKS)."""
        P = np.empty((len(F), self._heights))
        P[:, : len(TOP)] = first[:, TOP]
        P[:, len(TOP) :] = np.clip(F[:, LAST_LABEL] + B * stacked[..., 0], -B, B).T
        return P


def squared_loss(share: float = 0.0) -> tuple[int, float, float]:
    """Return the setting of experts_rounds for the squared loss, the bound on labels learned."""
    return SQUARED, LEARNED, share
