"""The U' D U factor of ridge regression, swept once for several rounds."""

from typing import NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger
from oklnumba.hot.primitives.jit import exact, exact_apart, exact_wide, hot

# A = lam I + sum z z' = U' D U with U unit upper triangular. Adding z z' (Gill, Golub, Murray and
# Saunders 1974, method C1) runs down the rows k of U with a running a = 1 + sum_{i<k} p_i^2 / D_i:
#
#     p = z_k;  a' = a + p^2 / D_k;  beta = p / (D_k a');  D_k <- D_k a' / a;  a <- a'
#     for j > k:   z_j -= p U_kj;   U_kj += beta z_j
#
# These r^2 fused products a round are half of those for the inverse. The update is backward stable:
# nothing drifts, and lam may be small. In the end z has become p = U^-T z, and
# a = 1 + z' A^-1 z, A before the round. With c = D^-1 U^-T sum y z, the ridge forecast is m = p . c
# and the AWV forecast m / a. c moves like one more column of U, and y is its entry of z.
#
# A discount g of the past takes A to g A + z z': D_k <- g D_k, but D_k stays >= lam. We discount at
# the end of the round before, so inv_d is 1 / D of the past, discounted for the next round. (The
# first round needs no discount, for lam is the floor.) c does not change, for b is discounted too.
# Where the floor acts it adds delta_k u_k u_k' to A, u_k the row of U: the penalty
# delta_k (u_k.w - c_k)^2. It is 0 at the present estimate, so neither the estimate nor the minimum
# changes. With NO_DISCOUNT D_k keeps its bits.
#
# A sweep of three rounds reads and writes U once. It takes TILE rows of U at a time: first the
# triangle on the diagonal, number by number, then the columns to its right, as vectors. Every entry
# goes through the same fused products in the same order as in three sweeps of one round: the bits
# are the same, however a stream is cut.
#
# A U with fewer lines than columns is packed: rows k >= len(U) lie in the unused lower triangle, at
# whole vectors from the left. Of 16 rows with 12 lines the last four lie in lines 8 to 11, from
# column 4 on. Only find_row knows, and triangle_rows of core/arrays.py.

SWEEP = 3  # rounds a sweep: coefficients, rounds and rows just fit in 32 vector registers
TOGETHER = 4 * SWEEP  # rounds whose sweeps share one pass over U from memory
LANES = 8  # columns a vector; buffers have a multiple of it
TILE = 4  # rows of U that a sweep takes at a time
NOTHING = (0.0, 0.0, 0.0, 0.0)  # what U learns of a round that is only solved
WIDE = 96  # columns from which on vectors of 64 bytes pay


class Forgetting(NamedTuple):
    """The discount g of the past, and the floor of D."""

    discount: float  # g
    inv_discount: float  # 1 / g
    inv_floor: float  # 1 / lam, the largest 1 / D after a discount


NO_DISCOUNT = Forgetting(1.0, 1.0, np.inf)


@hot
def pad(q, rank):
    """Write zeros behind the first ``rank`` entries up to whole vectors, at least one."""
    padded = (larger(rank, 1) + LANES - 1) // LANES * LANES
    for j in range(rank, padded):
        q[j] = 0.0
    return padded


@hot
def ridge_forecast(p, c, scan, r):
    """Return p . c. Its running sums, of four parts, go to ``scan`` for ridge_learn."""
    q = r // 4
    s0 = s1 = s2 = s3 = 0.0
    for k in range(q):
        s0 += p[k] * c[k]
        s1 += p[q + k] * c[q + k]
        s2 += p[2 * q + k] * c[2 * q + k]
        s3 += p[3 * q + k] * c[3 * q + k]
        scan[k] = s0
        scan[q + k] = s1
        scan[2 * q + k] = s2
        scan[3 * q + k] = s3
    return (s0 + s1) + (s2 + s3)


@hot
def ridge_learn(y, beta, c, scan, r):
    """Bring c = D^-1 U^-T sum y z up to date: c_k += beta_k (y - sum_{i<=k} p_i c_i)."""
    q = r // 4
    residual = y
    for part in range(4):
        ck = c[part * q : (part + 1) * q]
        bk = beta[part * q : (part + 1) * q]
        sk = scan[part * q : (part + 1) * q]
        for k in range(q):
            ck[k] += bk[k] * (residual - sk[k])
        residual -= sk[q - 1]  # the sum of this part


# ---- the triangle on the diagonal ----


@exact
def four(row, k):
    """Return entries k to k + 3 of a row."""
    return row[k], row[k + 1], row[k + 2], row[k + 3]


@exact
def find_row(U, k):
    """Return where entry (k, k) of U lies: at (k, k), unless U is packed."""
    lines, cap = U.shape
    return (k, k) if k < lines else (cap + TILE + k - k // TILE * TILE * 2, k % LANES)


@exact
def read_triangle(U, inv_d, k):
    """Return 1 / D of rows k to k + 3, and the six entries of U between these rows."""
    line, j = find_row(U, k)
    u0, u1, u2 = U[line], U[line + 1], U[line + 2]
    return four(inv_d, k), (u0[j + 1], u0[j + 2], u0[j + 3], u1[j + 2], u1[j + 3], u2[j + 3])


@exact
def write_triangle(U, inv_d, k, triangle):
    """Write what read_triangle returned."""
    d, u = triangle
    line, j = find_row(U, k)
    u0, u1, u2 = U[line], U[line + 1], U[line + 2]
    inv_d[k], inv_d[k + 1], inv_d[k + 2], inv_d[k + 3] = d
    u0[j + 1], u0[j + 2], u0[j + 3], u1[j + 2], u1[j + 3], u2[j + 3] = u


@exact
def learn_pivot(p, a, inv_d, forgetting):
    """Return a', beta and the new 1 / D, discounted, of the row where a round has the entry p."""
    gain = inv_d * p
    new_a = gain * p + a
    inverse = 1.0 / new_a
    # Both are 1 / D times a', so that there is one division.
    discounted, highest = inv_d * forgetting.inv_discount * a, forgetting.inv_floor * new_a
    return new_a, gain * inverse, (highest if highest < discounted else discounted) * inverse


@exact
def learn_triangle(z, beta, k, a, triangle, forgetting):
    """Apply one round to the triangle that read_triangle returned. Returns a and the triangle.

    z, beta : (cap,), whose entries k to k + 3 are written.
    """
    (d0, d1, d2, d3), (u01, u02, u03, u12, u13, u23) = triangle
    p0, p1, p2, p3 = four(z, k)
    a, b0, d0 = learn_pivot(p0, a, d0, forgetting)
    p1 -= p0 * u01
    u01 += b0 * p1
    p2 -= p0 * u02
    u02 += b0 * p2
    p3 -= p0 * u03
    u03 += b0 * p3
    a, b1, d1 = learn_pivot(p1, a, d1, forgetting)
    p2 -= p1 * u12
    u12 += b1 * p2
    p3 -= p1 * u13
    u13 += b1 * p3
    a, b2, d2 = learn_pivot(p2, a, d2, forgetting)
    p3 -= p2 * u23
    u23 += b2 * p3
    a, b3, d3 = learn_pivot(p3, a, d3, forgetting)
    z[k + 1], z[k + 2], z[k + 3] = p1, p2, p3
    beta[k], beta[k + 1], beta[k + 2], beta[k + 3] = b0, b1, b2, b3
    return a, ((d0, d1, d2, d3), (u01, u02, u03, u12, u13, u23))


@exact
def solve_triangle(triangle, z, k):
    """Apply one round to the triangle without learning. z : (cap,), in place."""
    (u01, u02, u03, u12, u13, u23), (p0, p1, p2, p3) = triangle[1], four(z, k)
    p1 -= p0 * u01
    p2 -= p0 * u02
    p2 -= p1 * u12
    p3 -= p0 * u03
    p3 -= p1 * u13
    p3 -= p2 * u23
    z[k + 1], z[k + 2], z[k + 3] = p1, p2, p3


# ---- the columns right of the triangle ----


@exact
def rows_after(U, k, r):
    """Return rows k to k + 3 of U, from column k + 4 up to r."""
    i, j = find_row(U, k)
    start, stop = j + TILE, j + r - k
    return (
        U[i, start:stop], U[i + 1, start:stop], U[i + 2, start:stop], U[i + 3, start:stop]
    )  # fmt: skip


@exact
def learn_column(u, z, p, beta):
    """Take one round through a column u of four rows, where it has the entry z. Returns both."""
    (u0, u1, u2, u3), (p0, p1, p2, p3), (b0, b1, b2, b3) = u, p, beta
    z -= p0 * u0
    u0 += b0 * z
    z -= p1 * u1
    u1 += b1 * z
    z -= p2 * u2
    u2 += b2 * z
    z -= p3 * u3
    u3 += b3 * z
    return (u0, u1, u2, u3), z


@exact
def solve_column(u, z, p):
    """Return the entry z of a round after a column u of four rows."""
    (u0, u1, u2, u3), (p0, p1, p2, p3) = u, p
    z -= p0 * u0
    z -= p1 * u1
    z -= p2 * u2
    z -= p3 * u3
    return z


@exact_apart
def learn_columns(rows, z, p, beta, n):
    """Take one round through n columns of four rows."""
    u0, u1, u2, u3 = rows
    for j in range(n):
        u = u0[j], u1[j], u2[j], u3[j]
        u, z[j] = learn_column(u, z[j], p, beta)
        u0[j], u1[j], u2[j], u3[j] = u


@exact
def cut_three(rows, rounds, start, n):
    """Return n columns of four rows, and of three rounds that are given from the triangle on."""
    (u0, u1, u2, u3), (z0, z1, z2), stop = rows, rounds, start + n
    i, end = TILE + start, TILE + stop
    rows = u0[start:stop], u1[start:stop], u2[start:stop], u3[start:stop]
    return rows, (z0[i:end], z1[i:end], z2[i:end])


@exact
def learn_three(rows, rounds, beta, start, n):
    """Take three rounds through n columns, from ``start`` on, of four rows."""
    (z0, z1, z2), (b0, b1, b2) = rounds, beta
    p0, p1, p2 = four(z0, 0), four(z1, 0), four(z2, 0)
    (u0, u1, u2, u3), (z0, z1, z2) = cut_three(rows, rounds, start, n)
    for j in range(n):
        u = u0[j], u1[j], u2[j], u3[j]
        u, z0[j] = learn_column(u, z0[j], p0, b0)
        u, z1[j] = learn_column(u, z1[j], p1, b1)
        u, z2[j] = learn_column(u, z2[j], p2, b2)
        u0[j], u1[j], u2[j], u3[j] = u


@exact_apart
def learn_three_narrow(rows, rounds, beta, n):
    """Take three rounds, given from the triangle on, through n columns of four rows."""
    learn_three(rows, rounds, beta, 0, n)


@exact_wide
def learn_three_wide(rows, rounds, beta, n):
    """Do what learn_three_narrow does; half a vector first, if there is one, of known length."""
    half = n & TILE
    if half > 0:
        learn_three(rows, rounds, beta, 0, TILE)
    learn_three(rows, rounds, beta, half, n - half)


@exact_apart
def solve_columns(rows, z, p, n):
    """Take one round through n columns of four rows without learning."""
    u0, u1, u2, u3 = rows
    for j in range(n):
        z[j] = solve_column((u0[j], u1[j], u2[j], u3[j]), z[j], p)


@exact
def solve_three(rows, rounds, start, n):
    """Take three rounds through n columns, from ``start`` on, of four rows without learning."""
    z0, z1, z2 = rounds
    p0, p1, p2 = four(z0, 0), four(z1, 0), four(z2, 0)
    (u0, u1, u2, u3), (z0, z1, z2) = cut_three(rows, rounds, start, n)
    for j in range(n):
        u = u0[j], u1[j], u2[j], u3[j]
        z0[j] = solve_column(u, z0[j], p0)
        z1[j] = solve_column(u, z1[j], p1)
        z2[j] = solve_column(u, z2[j], p2)


@exact_wide
def solve_three_wide(rows, rounds, n):
    """Do what learn_three_wide does, without learning."""
    half = n & TILE
    if half > 0:
        solve_three(rows, rounds, 0, TILE)
    solve_three(rows, rounds, half, n - half)


@exact_apart
def learn_and_solve_columns(rows, waiting, p, beta, z, q, n):
    """Apply the round ``waiting`` to n columns of four rows, then solve for z."""
    u0, u1, u2, u3 = rows
    for j in range(n):
        u = u0[j], u1[j], u2[j], u3[j]
        u, waiting[j] = learn_column(u, waiting[j], p, beta)
        z[j] = solve_column(u, z[j], q)
        u0[j], u1[j], u2[j], u3[j] = u


# ---- whole sweeps ----


@exact
def write_betas(p, inv_d, forgetting, beta, r):
    """Return a of the round with this p = U^-T z, and write its beta. The factor stays."""
    a = 1.0
    for k in range(r):
        a, beta[k], _ = learn_pivot(p[k], a, inv_d[k], forgetting)
    return a


@exact_apart
def factor_and_solve(U, inv_d, forgetting, waiting, beta, z, r):
    """Add the round ``waiting`` to the factor, then turn z into U^-T z, in one pass over U.

    waiting : (cap,), replaced by its p; beta : (cap,), written.
    """
    a = 1.0
    for k in range(0, r, TILE):
        i = k + TILE
        a, triangle = learn_triangle(waiting, beta, k, a, read_triangle(U, inv_d, k), forgetting)
        write_triangle(U, inv_d, k, triangle)
        solve_triangle(triangle, z, k)
        p, b, q = four(waiting, k), four(beta, k), four(z, k)
        learn_and_solve_columns(rows_after(U, k, r), waiting[i:r], p, b, z[i:r], q, r - i)


@exact_apart
def factor_rounds(U, inv_d, forgetting, rounds, betas, a, count, r):
    """Add the first ``count`` rounds to the factor, in sweeps of three but for one or two rounds.

    Each TILE rows of U meet all of them while they are in the cache. U : (cap, cap); inv_d :
    (cap,); rounds : (>= count, cap), replaced by p; betas : (>= count, cap), written; a : (>=
    count,), 1 before; r : columns in use, a multiple of LANES. A round whose a is 0 is not added,
    but solved by the factor that it finds: its beta becomes the 1 / D of then.
    """
    for k in range(0, r, TILE):
        i = k + TILE
        rows, triangle = rows_after(U, k, r), read_triangle(U, inv_d, k)
        for s in range(count):
            z, beta = rounds[s], betas[s]
            if a[s] != 0.0:
                a[s], triangle = learn_triangle(z, beta, k, a[s], triangle, forgetting)
            else:
                solve_triangle(triangle, z, k)
                for j in range(TILE):
                    beta[k + j] = triangle[0][j]
        write_triangle(U, inv_d, k, triangle)
        for s in range(count % SWEEP):
            z = rounds[s]
            if a[s] != 0.0:
                learn_columns(rows, z[i:r], four(z, k), four(betas[s], k), r - i)
            else:
                solve_columns(rows, z[i:r], four(z, k), r - i)
        for s in range(count % SWEEP, count, SWEEP):
            three = rounds[s][k:r], rounds[s + 1][k:r], rounds[s + 2][k:r]
            if a[s] + a[s + 1] + a[s + 2] == 0.0:
                solve_three_wide(rows, three, r - i)
                continue
            b0 = four(betas[s], k) if a[s] != 0.0 else NOTHING
            b1 = four(betas[s + 1], k) if a[s + 1] != 0.0 else NOTHING
            b2 = four(betas[s + 2], k) if a[s + 2] != 0.0 else NOTHING
            if r - k < WIDE:
                learn_three_narrow(rows, three, (b0, b1, b2), r - i)
            else:
                learn_three_wide(rows, three, (b0, b1, b2), r - i)


@exact_apart
def solve_rounds(U, rounds, count, r):
    """Turn the first ``count`` rounds x into p = U^-T x; arguments as in factor_rounds."""
    for k in range(0, r, TILE):
        i = k + TILE
        rows, triangle = rows_after(U, k, r), read_triangle(U, rounds[0], k)  # with any 1 / D
        for s in range(count):
            solve_triangle(triangle, rounds[s], k)
        for s in range(count % SWEEP):
            z = rounds[s]
            solve_columns(rows, z[i:r], four(z, k), r - i)
        for s in range(count % SWEEP, count, SWEEP):
            three = rounds[s][k:r], rounds[s + 1][k:r], rounds[s + 2][k:r]
            solve_three_wide(rows, three, r - i)
