"""Buffers of factors U' D U (hot/primitives/factor.py)."""

import numpy as np

from oklnumba.core.arrays import aligned_zeros, triangle_rows
from oklnumba.hot.primitives.factor import ROUND, Factor, PassWork, Pending, finish_pending
from oklnumba.hot.primitives.udu import NO_DISCOUNT, TILE, TOGETHER, Forgetting

LARGE = 600  # columns of a factor from which on more rounds share a pass over it


def make_pending(factors: tuple[int, ...], columns: int) -> Pending:
    """Return room for the pending rounds of factors in an array of this shape."""
    return Pending(np.zeros((*factors, 2), dtype=np.int64), *aligned_zeros(3, *factors, columns))


def make_pass_work(U: np.ndarray) -> PassWork:
    """Return workspace for the passes over a factor."""
    # A large factor does not fit in the cache: more rounds share a pass. The bits are the same.
    rounds = TOGETHER if U.shape[1] < LARGE else 4 * TOGETHER
    rows = aligned_zeros(2 * rounds + 1, U.shape[1])
    return PassWork(rows[:rounds], rows[rounds:-1], rows[-1], aligned_zeros(rounds))


def make_forgetting(discount: float, lam: float) -> Forgetting:
    """Return the discount of A = lam I + ...; without one there is no floor either."""
    return NO_DISCOUNT if discount == 1.0 else Forgetting(discount, 1.0 / discount, 1.0 / lam)


def settle(factor: Factor, forgetting: Forgetting, work: PassWork) -> None:
    """Add the pending round, if there is one, to U and D."""
    if factor.pending.columns[ROUND]:
        finish_pending(factor, forgetting, work)


def count_lines(cap: int) -> int:
    """Return how many lines a packed U of ``cap`` columns has."""
    return cap // 2 + TILE


def unpack(U: np.ndarray, r: int) -> np.ndarray:
    """Return r columns of U, packed or not, as a unit upper triangular matrix."""
    unit = np.eye(r)
    for k, row in enumerate(triangle_rows(U, r)):
        unit[k, k + 1 :] = row
    return unit
