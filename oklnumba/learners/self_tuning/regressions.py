"""Ridge regressions of SelfTuning's spaces and layers, and workspace: memory for the loops."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from oklnumba.core.factors import make_pass_work, make_pending, settle, unpack
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.core.state import aligned_zeros
from oklnumba.hot.primitives.factor import ROUND, Factor, Pending
from oklnumba.hot.primitives.jit import DONE, bind, enter
from oklnumba.hot.primitives.udu import TOGETHER, Forgetting
from oklnumba.hot.tuned import members as loops
from oklnumba.hot.tuned.coordinates import Maps
from oklnumba.learners.self_tuning.settings import BLOCK_ROWS, Ridge

T = TypeVar("T")

NO_COINS = np.empty(0)  # of rounds whose points may not join
NO_INPUTS = np.empty((0, 0))  # of rounds whose rows are written
NO_LABELS = np.empty((0, 0))  # of rounds from which nothing is learned


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


def run_loop(loop: Callable, *arguments: Any) -> None:
    """Run a loop of hot/, always with the same types of arguments; raise Trouble if it fails."""
    played, status = enter(loop)(*arguments)
    if status != DONE:
        raise Trouble(status, played)


def make_results(forecasts: int, regressions: int, outputs: int) -> loops.Results:
    """Return room for the forecasts and certificates of BLOCK_ROWS rounds."""
    certificates = np.zeros((regressions, 3, BLOCK_ROWS, outputs))
    return loops.Results(np.zeros((forecasts, BLOCK_ROWS, outputs)), certificates)


def make_regressions(
    ridges: tuple[Ridge, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray, totals: np.ndarray
) -> loops.Regressions:
    """Return regressions of several leaves; the arrays are the state."""
    numbers = [Forgetting(one.discount, 1.0 / one.discount, 1.0 / one.lam) for one in ridges]
    forgetting = np.array(numbers)
    inv_d[:] = forgetting[:, 2:]
    return loops.Regressions(
        U, inv_d, c, totals, make_pending(U.shape[:2], U.shape[-1]), forgetting,
        **make_buffers(U[0, 0], c.shape[2]),
    )  # fmt: skip


def make_buffers(U: np.ndarray, outputs: int) -> dict[str, Any]:
    """Return workspace of regressions with such a U, or a narrower one."""
    growth = np.zeros((BLOCK_ROWS, outputs))
    return {"work": make_pass_work(U), "shrinks": np.zeros(BLOCK_ROWS), "growth": growth}


def make_points(cap: int) -> tuple[np.ndarray, ...]:
    """Return workspace of points of which so many atoms may be there: the last three of Maps."""
    return aligned_zeros(cap), aligned_zeros(cap), aligned_zeros(TOGETHER, cap)


class Workspaces(Generic[T]):
    """Workspace of threads: one is made when no other is idle, so as many as play at once."""

    def __init__(self, make: Callable[[], T]):
        self._make, self._idle = make, []

    def take(self) -> T:
        """Return workspace that no other thread uses."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def give_back(self, work: T) -> None:
        """Leave workspace to other threads."""
        self._idle.append(work)


def bind_groups(groups: Sequence[Any]) -> dict[Any, Any]:
    """Return the bound arguments of each group, with workspace that all of them share."""
    arguments, names = [group.arguments for group in groups], Maps._fields[-3:]
    points = make_points(max(len(one.maps.k) for one in arguments))
    widest = max((one.regressions for one in arguments), key=lambda one: one.U.shape[-1])
    buffers, bound = make_buffers(widest.U[0, 0], widest.c.shape[2]), {}
    for group, one in zip(groups, arguments, strict=True):
        maps = one.maps._replace(**dict(zip(names, points, strict=True)))
        regressions = one.regressions._replace(**buffers)
        bound[group] = bind(one._replace(maps=maps, regressions=regressions))
    return bound


def settle_regressions(regressions: loops.Regressions) -> None:
    """Add the rounds that wait for the next pass over U to U and D."""
    for at in zip(*regressions.pending.columns[..., ROUND].nonzero(), strict=True):
        pending = Pending(*[a[at] for a in regressions.pending])
        factor = Factor(regressions.U[at], regressions.inv_d[at], regressions.c[at], pending)
        settle(factor, Forgetting(*regressions.forgetting[at[1]].tolist()), regressions.work)


def measure_regressions(
    names: list[str], regressions: loops.Regressions, leaf: int, r: int, scales: Sequence[float]
) -> tuple[list[Part], list[np.ndarray]]:
    """Return the parts of a leaf's matrices, of r columns, and the functions that they give."""
    parts, functions = [], []
    for i, name in enumerate(names):
        U, inv_d = unpack(regressions.U[leaf, i], r), regressions.inv_d[leaf, i, :r]
        matrix = Factored(U, r, 1.0 / inv_d)
        estimates = [matrix.half_solve(c) for c in regressions.c[leaf, i]]
        parts.append(measure_part("lam I + sum z z'", matrix, estimates, scales).named(name))
        functions += estimates
    return parts, functions
