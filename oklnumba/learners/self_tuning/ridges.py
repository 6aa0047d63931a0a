"""Ridge regressions and AWV on shared rows, in each leaf of a space or for each output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oklnumba.core.factors import make_pending, make_sweep, settle
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.hot.primitives.factor import ROUND, Factor, Pending
from oklnumba.hot.primitives.jit import DONE, entry
from oklnumba.hot.primitives.udu import Forgetting
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, Ridge

ENTRIES: dict[Callable, Callable] = {}  # machine code of loops


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


def require_done(ended: tuple[int, int]) -> None:
    """Raise Trouble unless a loop has played to its end."""
    played, status = ended
    if status != DONE:
        raise Trouble(status, played)


def call(loop: Callable, *arguments: Any) -> Any:
    """Call a loop without looking at the types of its arguments, which are always the same."""
    if loop not in ENTRIES:
        ENTRIES[loop] = entry(loop, arguments)
    return ENTRIES[loop](*arguments)


def make_results(forecasts: int, ridges: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return room for forecasts and certificates of BLOCK_ROWS rounds."""
    return (
        np.zeros((forecasts, BLOCK_ROWS, outputs)), np.zeros((ridges, 3, BLOCK_ROWS, outputs))
    )  # fmt: skip


def make_ridges(
    ridges: tuple[Ridge, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray, totals: np.ndarray
) -> tuple:
    """Return regressions of several leaves as ridge_rounds takes them."""
    numbers = np.array([(one.discount, 1.0 / one.discount, 1.0 / one.lam) for one in ridges])
    inv_d[:] = numbers[:, 2:]
    factors = Factor(U, inv_d, c, make_pending(U.shape[:2], U.shape[-1]))
    return numbers, factors, totals, make_sweep(U[0, 0])


def settle_ridges(ridges: tuple) -> None:
    """Add rounds that wait for the next pass over U to U and inv_d."""
    numbers, (*matrices, pending), _, sweep = ridges
    for at in zip(*pending.columns[..., ROUND].nonzero(), strict=True):
        factor = Factor(*[a[at] for a in matrices], Pending(*[a[at] for a in pending]))
        settle(factor, Forgetting(*numbers[at[1]].tolist()), sweep)


def measure_ridges(
    names: list[str], ridges: tuple, leaf: int, r: int, scales: Sequence[float]
) -> tuple[list[Part], list[np.ndarray]]:
    """Return the parts of a leaf's matrices, of r columns, and the functions that they give."""
    parts, functions, (U, inv_d, c) = [], [], ridges[1][:3]
    for i, name in enumerate(names):
        unit = U[leaf, i, :r, :r].copy()
        np.fill_diagonal(unit, 1.0)  # which no round reads or writes
        matrix = Factored(unit, r, 1.0 / inv_d[leaf, i, :r])
        estimates = [matrix.half_solve(one) for one in c[leaf, i]]
        parts.append(measure_part("lam I + sum z z'", matrix, estimates, scales).within(name))
        functions += estimates
    return parts, functions
