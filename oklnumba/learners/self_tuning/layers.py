"""How SelfTuning makes one forecast of those of its members: aggregation, ridge, aggregation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oklnumba.core.health import Part, Upper, part_of
from oklnumba.core.state import State, aligned_zeros, padded, sweep_room
from oklnumba.hot.awv import RIDGE, awv_certified_rounds, awv_forecasts
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
from oklnumba.hot.primitives.jit import DONE
from oklnumba.hot.primitives.losses import SQUARED
from oklnumba.learners.self_tuning.grid import ROWS, Setting

# The aggregations of all members, (kind, share). The first has the guarantee, the second follows
# drift, the third needs no scale of losses, the fourth learns that of the noise.
FIRST = (AGGREGATING, 0.0), (AGGREGATING, 1e-3), (ML_POLY, 0.0), (DYNAMIC, 1e-3)
# Ridge regression on the forecasts of members and aggregations, in units of the largest label.
STACKS = Setting(10.0, None), Setting(10.0, 500)
TOP = 0, 2  # those of the first layer that ML-Poly weighs at last, with the regressions
POSTERIOR = 3  # the one of the first layer whose weights say which member is likely the best now
LAST_LABEL = -1  # of the members


class Layers(State):
    """Two layers of aggregation, with ridge regression between them, each for K outputs.

    The regression is on what everyone's forecast, and 0, adds to the last label, so it begins, and
    where labels do not change it stays, with that: what nobody has to learn. It may weigh forecasts
    by more or less than 1 in all, or by a minus, which no aggregation does.
    """

    _STATE = {
        **{name: ("outputs", "first", axes[0]) for name, axes in EXPERT_STATE.items()},
        **{f"top_{name}": ("outputs", f"top_{axes[0]}") for name, axes in EXPERT_STATE.items()},
        "U": ("outputs", "stacks", "r", "r"), "inv_d": ("outputs", "stacks", "r"),
        "c": ("outputs", "stacks", "one", "r"),
    }  # fmt: skip

    def __init__(self, members: int, outputs: int):
        self._columns = members + len(FIRST)  # with 0, without the last label
        r = padded(self._columns)
        self._make_state(
            outputs=outputs, first=len(FIRST), experts=members, tally=TALLY,
            top_experts=len(TOP) + len(STACKS), top_tally=TALLY, stacks=len(STACKS), r=r, one=1,
        )  # fmt: skip
        self._U[..., np.arange(r), np.arange(r)] = 1.0
        self._inv_d[:] = 1.0 / np.array([one.lam for one in STACKS])[:, None]
        self._Z = aligned_zeros(ROWS, r)
        self._work = sweep_room(self._U[0, 0])
        self._proof = np.zeros((3, ROWS, 1)), np.zeros((1, RIDGE + 1)), np.zeros((ROWS, 1))

    def play(
        self, k: int, F: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
        """Aggregate the members' forecasts F, (n, N), of output k, n <= ROWS; y : (n,), labels.

        F is cut to the size of the largest label before the round. Returns the forecasts (n,),
        bounds of the regret against the best member after each round (n,), and (rounds, status).
        """
        largest, grown = self._tally[k, 0, [LARGEST, GROWN]]
        bounds = np.maximum.accumulate(np.append(largest, np.abs(y)))
        B = bounds[:-1]
        np.clip(F, -B[:, None], B[:, None], out=F)
        weights, out = np.empty(F.shape[1]), (np.empty(len(y)), np.empty(len(y)))
        first = np.empty((len(y), len(FIRST)))
        for j, (kind, setting, state) in enumerate(self._aggregations(k)):
            played, status = experts_rounds(F, y, kind, setting, 0, state, weights, out)
            if status != DONE:
                return *out, (played, status)
            first[:, j] = out[0]
        units = np.where(B > 0.0, B, np.inf)
        self._write(F, first, units)
        Y = ((np.clip(y, -B, B) - F[:, LAST_LABEL]) / units)[:, None]
        stacked = np.empty((len(STACKS), len(y), 1))
        for j, (arguments, setting) in enumerate(self._regressions(k)):
            proof, totals, growth = self._proof
            sides = np.empty_like(Y), stacked[j], np.empty(len(y)), growth[: len(y)]
            played, status = awv_certified_rounds(
                self._Z[: len(y)], Y, *arguments, setting.discount, totals, sides,
                tuple(proof[:, : len(y)]),
            )  # fmt: skip
            if status != DONE:
                return *out, (played, status)
        P, top = self._at_the_top(F, first, stacked, B), np.empty(len(TOP) + len(STACKS))
        ended = experts_rounds(P, y, ML_POLY, _of(), 0, self._top(k), top, out)
        forecasts, excess = out
        # theory.experts_bound for the first aggregation, theory.mlpoly_bound for the top on it.
        grown = np.add.accumulate(np.append(grown, np.diff(bounds) ** 2))[1:]
        excess += 2.0 * bounds[1:] ** 2 * (np.log(F.shape[1]) + 1.0) - grown
        return forecasts, excess, ended

    def forecast(self, k: int, F: np.ndarray, out: np.ndarray) -> None:
        """Write what play would forecast in each row; nothing is learned. out : (n,)."""
        B = self._tally[k, 0, LARGEST]
        np.clip(F, -B, B, out=F)
        weights, column = np.empty(F.shape[1]), np.empty(len(F))
        first = np.empty((len(F), len(FIRST)))
        for j, (kind, setting, state) in enumerate(self._aggregations(k)):
            write_weights(kind, setting, 0, state, weights)
            expert_forecasts(kind, B, weights, F, column)
            first[:, j] = column
        self._write(F, first, B if B > 0.0 else np.inf)
        stacked = np.empty((len(STACKS), len(F), 1))
        for j, (arguments, _) in enumerate(self._regressions(k)):
            sides = np.empty((len(F), 1)), stacked[j], np.empty(len(F))
            awv_forecasts(self._Z[: len(F)], *arguments, sides)
        P, top = self._at_the_top(F, first, stacked, B), np.empty(len(TOP) + len(STACKS))
        write_weights(ML_POLY, _of(), 0, self._top(k), top)
        expert_forecasts(ML_POLY, 0.0, top, P, out)

    def posterior(self, k: int) -> np.ndarray:
        """Return the posterior of the members in the next round, (N,)."""
        weights = np.empty(self._totals.shape[-1])
        kind, setting, state = list(self._aggregations(k))[POSTERIOR]
        write_weights(kind, setting, 0, state, weights)
        return weights

    def scales(self) -> np.ndarray:
        """Return the largest label so far of each output, (K,)."""
        return self._tally[:, 0, LARGEST]

    def matrices(self) -> list[Part]:
        """Return what there is to say of the regressions' matrices."""
        parts = []
        for k in range(len(self._U)):
            for (_, (U, inv_d, c), *_), setting in self._regressions(k):
                matrix = Upper(U, self._columns, 1.0 / inv_d[: self._columns])
                part = part_of("lam I + sum z z'", matrix, [matrix.half_solve(c[0])], np.ones(1))
                parts.append(part.within(f"regression on forecasts, half-life {setting.half_life}"))
        return parts

    def _aggregations(self, k: int) -> Iterator[tuple[int, tuple, tuple]]:
        """Yield kind, setting and state of each of the first layer, for experts_rounds."""
        for j, (kind, share) in enumerate(FIRST):
            state = self._totals[k, j], self._squares[k, j], self._tally[k, j]
            yield kind, _of(share), state

    def _top(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._top_totals[k], self._top_squares[k], self._top_tally[k]

    def _regressions(self, k: int) -> Iterator[tuple[tuple, Setting]]:
        """Yield what the loops of hot/awv.py ask for of each regression, and its setting."""
        for j, setting in enumerate(STACKS):
            factor = self._U[k, j], self._inv_d[k, j], self._c[k, j]
            yield (self._Z.shape[1], factor, setting.inverses, self._work, 0.0), setting

    def _write(self, F: np.ndarray, first: np.ndarray, units: np.ndarray | float) -> None:
        """Write what all forecasts, and 0, add to the last label, in units of the largest."""
        zero = np.zeros((len(F), 1))
        apart = np.concatenate([F[:, :LAST_LABEL], first, zero], axis=1) - F[:, LAST_LABEL, None]
        self._Z[: len(F), : self._columns] = apart / np.reshape(units, (-1, 1))

    @staticmethod
    def _at_the_top(
        F: np.ndarray, first: np.ndarray, stacked: np.ndarray, B: np.ndarray | float
    ) -> np.ndarray:
        """Return the forecasts that are weighed at last, (n, TOP and STACKS)."""
        P = np.empty((len(F), len(TOP) + len(STACKS)))
        P[:, : len(TOP)] = first[:, TOP]
        P[:, len(TOP) :] = np.clip(F[:, LAST_LABEL] + B * stacked[..., 0], -B, B).T
        return P


def _of(share: float = 0.0) -> tuple[int, float, float]:
    """Return the setting of experts_rounds: squared loss, the bound on labels learned."""
    return SQUARED, LEARNED, share
