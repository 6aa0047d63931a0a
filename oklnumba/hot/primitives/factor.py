"""The factor of AWV and ridge regression, and rounds that wait for the next pass over it.

A pass over U (udu.py) takes most of the time of a round. Single rounds need one, not two:

    forecast at z     solve_points: one pass brings U up to date with the round before, and solves
                      p = U^-T z; Pending holds z and p
    round with z      add_rounds: p gives beta and a, all that c needs; U and D wait
    next forecast     solve_points: the next pass, as above

``finish_pending`` brings U and D up to date before other code reads them. The bits are those of
rounds without forecasts.
"""

from typing import Annotated, NamedTuple

from oklnumba.hot.primitives.jit import PADDED, REMADE, UPPER, Array, Integers, hot
from oklnumba.hot.primitives.udu import factor_and_solve, factor_rounds, solve_rounds, write_betas


class Pending(NamedTuple):
    """The round that U and D wait for, and the point that was forecast last."""

    # How many numbers of z, and of point and p, are valid; 0: none waits.
    columns: Annotated[Integers, "pending", REMADE]
    z: Annotated[Array, "r", REMADE]
    point: Annotated[Array, "r", REMADE]
    p: Annotated[Array, "r", REMADE]  # U^-T point


ROUND, POINT = range(2)  # entries of Pending.columns


class Factor(NamedTuple):
    """A = U' D U of the past, discounted for the next round, and c = D^-1 U^-T b."""

    U: Annotated[Array, "r", "r", UPPER, PADDED]
    inv_d: Annotated[Array, "r"]  # 1 / D
    c: Annotated[Array, "outputs", "r"]
    pending: Pending


class PassWork(NamedTuple):
    """Workspace of a pass over U, which up to T rounds share; T is a multiple of SWEEP."""

    p: Array  # (T, cap): U^-T z
    beta: Array  # (T, cap): as in udu.py, for c
    scan: Array  # (cap,): of ridge_forecast
    a: Array  # (T,): 1 + z' A^-1 z


@hot
def has_label(Y, t):
    """Return whether row t is learned: Y, (n, K), is empty if none is, else NaN in the others."""
    return Y.shape[0] > 0 and Y[t, 0] == Y[t, 0]


@hot
def copy_row(z, out, r):
    """Write the first r entries of z."""
    for j in range(r):
        out[j] = z[j]


@hot
def finish_pending(factor, forgetting, work):
    """Add the pending round, if there is one, to U and D."""
    r = factor.pending.columns[ROUND]
    if r > 0:
        copy_row(factor.pending.z, work.p[0], r)
        work.a[0] = 1.0
        factor_rounds(factor.U, factor.inv_d, forgetting, work.p, work.beta, work.a, 1, r)
        factor.pending.columns[ROUND] = 0


@hot
def is_point(z, pending, r):
    """Return whether z is the point that was forecast last."""
    same = pending.columns[POINT] == r
    if same:
        for j in range(r):
            same = same & (z[j] == pending.point[j])
    return same


@hot
def add_rounds(Z, Y, t, count, r, factor, forgetting, work):
    """Add rounds t to t + count to A, and write their p, beta and a: one pass over U, or none.

    Those whose label is NaN are not added: their a is 0, their beta the 1 / D that they find.
    """
    pending = factor.pending
    learns = Y[t, 0] == Y[t, 0]
    if count == 1 and learns and is_point(Z[t], pending, r):  # p is written, and no round waits
        copy_row(Z[t], pending.z, r)
        copy_row(pending.p, work.p[0], r)
        work.a[0] = write_betas(work.p[0], factor.inv_d, forgetting, work.beta[0], r)
        pending.columns[ROUND] = r
    else:
        finish_pending(factor, forgetting, work)
        for s in range(count):
            copy_row(Z[t + s], work.p[s], r)
            work.a[s] = 1.0 if Y[t + s, 0] == Y[t + s, 0] else 0.0
        factor_rounds(factor.U, factor.inv_d, forgetting, work.p, work.beta, work.a, count, r)
    pending.columns[POINT] = 0  # p was by the U before


@hot
def solve_points(Z, t, count, r, factor, forgetting, work):
    """Write p = U^-T z of rows t to t + count of Z; keep that of a single one for its round."""
    pending = factor.pending
    if count == 1 and pending.columns[ROUND] == r:
        p, beta = work.p[0], work.beta[0]
        copy_row(Z[t], p, r)
        factor_and_solve(factor.U, factor.inv_d, forgetting, pending.z, beta, p, r)
        pending.columns[ROUND] = 0
    else:
        finish_pending(factor, forgetting, work)
        for s in range(count):
            copy_row(Z[t + s], work.p[s], r)
        solve_rounds(factor.U, work.p, count, r)
    if count == 1:
        copy_row(Z[t], pending.point, r)
        copy_row(work.p[0], pending.p, r)
        pending.columns[POINT] = r
