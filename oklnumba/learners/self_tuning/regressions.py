"""Ridge regressions of SelfTuning's spaces and layers, and workspace: memory for the loops."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from oklnumba.core.arrays import aligned_zeros, make_pass_work, unpack
from oklnumba.core.health import Factored, Part, measure_part
from oklnumba.hot.primitives.factor import ROUND, Factor, Pending, finish_pending
from oklnumba.hot.primitives.udu import TOGETHER, Forgetting
from oklnumba.hot.tuned import space as loops
from oklnumba.learners.self_tuning.settings import Ridge

T = TypeVar("T")


class Trouble(Exception):
    """A compiled loop ended with this status, not DONE, after so many rounds."""


def make_regressions(
    ridges: tuple[Ridge, ...], U: np.ndarray, inv_d: np.ndarray, c: np.ndarray, totals: np.ndarray
) -> loops.Regressions:
    """Return regressions of several leaves; the arrays are the state."""
    numbers = []
    for lam, half_life in ridges:
        discount = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)
        numbers.append(Forgetting(discount, 1.0 / discount, 1.0 / lam))
    forgetting = np.array(numbers)
    inv_d[:] = forgetting[:, 2:]
    columns = np.zeros((*U.shape[:2], 2), dtype=np.int64)
    pending = Pending(columns, *aligned_zeros(3, *U.shape[:2], U.shape[-1]))
    return loops.Regressions(U, inv_d, c, totals, pending, forgetting)


def make_rows(n: int, spaces: Sequence[loops.Space]) -> loops.Rows:
    """Return workspace for n rounds of a leaf of any of these spaces."""
    widest = max((one.regressions for one in spaces), key=lambda one: one.c.shape[-1])
    cap = max(one.dictionaries.unit_R.shape[-1] for one in spaces)
    count = max(len(one.results.forecasts) for one in spaces)
    regressions = max(len(one.regressions.forgetting) for one in spaces)
    return make_workspace(n, widest, cap, count, regressions)


def make_workspace(
    n: int, regressions: loops.Regressions, cap: int, forecasts: int, count: int
) -> loops.Rows:
    """Return workspace for n rounds of ``count`` regressions, no wider than these."""
    U, outputs = regressions.U[0, 0], regressions.c.shape[2]
    return loops.Rows(
        forecasts=np.zeros((forecasts, n, outputs)), certificates=np.zeros((count, 3, n, outputs)),
        Z=aligned_zeros(n, regressions.c.shape[-1]), to_map=np.zeros(n, dtype=np.int64),
        widths=np.zeros(n, dtype=np.int64), sizes=np.zeros(n, dtype=np.int64),
        a=np.zeros(n), growth=np.zeros((n, outputs)),
        k=aligned_zeros(cap), b=aligned_zeros(cap), q=aligned_zeros(TOGETHER, cap),
        passes=make_pass_work(U),
    )  # fmt: skip


@dataclass
class Workspaces(Generic[T]):
    """Workspace of threads: one is made when no other is idle, so as many as play at once."""

    make: Callable[[], T]
    idle: list[T] = field(default_factory=list)

    def take(self) -> T:
        """Return workspace that no other thread uses; after use append it to ``idle``."""
        try:
            return self.idle.pop()
        except IndexError:
            return self.make()


def settle_regressions(regressions: loops.Regressions) -> None:
    """Add the rounds that wait for the next pass over U to U and D."""
    for at in zip(*regressions.pending.columns[..., ROUND].nonzero(), strict=True):
        pending = Pending(*[a[at] for a in regressions.pending])
        factor = Factor(regressions.U[at], regressions.inv_d[at], regressions.c[at], pending)
        forgetting = Forgetting(*regressions.forgetting[at[1]].tolist())
        finish_pending(factor, forgetting, make_pass_work(factor.U))


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
