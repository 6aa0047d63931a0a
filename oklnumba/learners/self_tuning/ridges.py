"""Buffers and health of ridge regressions that share rows: of each leaf of a space, or output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oklnumba.core.factors import make_pending, make_sweep, settle
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.hot.primitives.factor import ROUND, Factor, Pending
from oklnumba.hot.primitives.jit import DONE, enter
from oklnumba.hot.primitives.udu import Forgetting
from oklnumba.hot.tuned.members import Results, Ridges
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, Ridge


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


def play(loop: Callable, *arguments: Any) -> None:
    """Play a loop, whose arguments always have the same types; raise Trouble if it fails."""
    played, status = enter(loop)(*arguments)
    if status != DONE:
        raise Trouble(status, played)


def make_results(forecasts: int, ridges: int, outputs: int) -> Results:
    """Return room for the forecasts and certificates of BLOCK_ROWS rounds."""
    certificates = np.zeros((ridges, 3, BLOCK_ROWS, outputs))
    return Results(np.zeros((forecasts, BLOCK_ROWS, outputs)), certificates)


def make_ridges(
    ridges: tuple[Ridge, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray, totals: np.ndarray
) -> Ridges:
    """Return regressions of several leaves; the arrays are the state."""
    numbers = [Forgetting(one.discount, 1.0 / one.discount, 1.0 / one.lam) for one in ridges]
    forgetting = np.array(numbers)
    inv_d[:] = forgetting[:, 2:]
    growth = np.zeros((BLOCK_ROWS, c.shape[2]))
    return Ridges(
        U, inv_d, c, totals, make_pending(U.shape[:2], U.shape[-1]), forgetting,
        make_sweep(U[0, 0]), np.zeros(BLOCK_ROWS), growth,
    )  # fmt: skip


def settle_ridges(ridges: Ridges) -> None:
    """Add the rounds that wait for the next pass over U to U and D."""
    for at in zip(*ridges.pending.columns[..., ROUND].nonzero(), strict=True):
        pending = Pending(*[a[at] for a in ridges.pending])
        factor = Factor(ridges.U[at], ridges.inv_d[at], ridges.c[at], pending)
        settle(factor, Forgetting(*ridges.forgetting[at[1]].tolist()), ridges.sweep)


def measure_ridges(
    names: list[str], ridges: Ridges, leaf: int, r: int, scales: Sequence[float]
) -> tuple[list[Part], list[np.ndarray]]:
    """Return the parts of a leaf's matrices, of r columns, and the functions that they give."""
    parts, functions = [], []
    for i, name in enumerate(names):
        unit = ridges.U[leaf, i, :r, :r].copy()
        np.fill_diagonal(unit, 1.0)  # which no round reads or writes
        matrix = Factored(unit, r, 1.0 / ridges.inv_d[leaf, i, :r])
        estimates = [matrix.half_solve(c) for c in ridges.c[leaf, i]]
        parts.append(measure_part("lam I + sum z z'", matrix, estimates, scales).named(name))
        functions += estimates
    return parts, functions
