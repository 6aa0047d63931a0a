"""Which points a dictionary keeps: leverage scores, KORS, ALD, and the span of the kept points.

KORS (Calandriello, Lazaric and Valko 2017, "kons", Algorithm 2, errata 7):

    I = {}; for t = 1, ..., T:
        tau_t = (1 + eps) phi_t' (sum_{i in I} phi_i phi_i' / p_i + phi_t phi_t' + alpha I)^-1 phi_t
        p_t = min(beta tau_t, 1);   with probability p_t: I = I + {t}, weight 1 / p_t

In kernel form tau_t = (1 + eps) (1 - alpha / s) with s = alpha + k_tt - b' (S K S + alpha I)^-1 b,
b = S k_t, S = diag(1 / sqrt(p_i)); the matrix is kept as its factor C. ALD (Engel, Mannor and Meir
2004) keeps a point if its distance to the span of the kept ones is above a threshold.

A learner's ``dictionary``: atoms (d, cap), weights (cap,), 1 / sqrt(p_i), and C (cap, cap), upper
factor of S K S + alpha I, of KORS; span (cap,), integers, the atoms that span, and R (cap, cap),
upper factor of their kernel matrix with nuggets. Of a point x: row (cap,), k(x, dictionary);
corner, k(x, x); q (cap,), its coordinates; b (cap,), C^-T S row. A rule: (alpha, beta and eps of
KORS, a fixed probability instead or 0, 1 for weights as listed).
"""

import math

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import (
    bordered_cholesky,
    dot,
    multiply,
    solve_upper,
    solve_upper_transposed,
)
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row, put_atom

# Rounding the kernel's values moves the eigenvalues of a dictionary's kernel matrix by about 1e-16
# sqrt(m). Atoms that nearly coincide, as on time series, give smaller eigenvalues, and the errors
# multiply from atom to atom. So the matrix has (1 + NUGGET) k(x, x) on its diagonal: no eigenvalue
# is below the rounding, and no distance loses its digits, in any order of the atoms.
NUGGET = 1e-14
# A point is in the span, whatever the learner's threshold, if its squared distance to the span
# (nugget included) is at most this share of k(x, x).
IN_SPAN = 1e-13


@hot
def leverage(C, b, corner, alpha, m):
    """Return the ridge leverage score 1 - alpha / s of a new point; NaN if s has lost its digits.

    b : S row, replaced by C^-T S row.
    """
    solve_upper_transposed(C, b, m)
    s = alpha + corner - dot(b, b, m)
    return 1.0 - alpha / s if s > 0.0 else np.nan


@hot
def kors_probability(row, weights, C, b, corner, alpha, beta, eps, m):
    """Return the probability min(beta tau, 1) with which KORS keeps a point (kons eq. 4)."""
    for j in range(m):
        b[j] = weights[j] * row[j]
    tau = (1.0 + eps) * leverage(C, b, corner, alpha, m)
    return smaller(larger(beta * tau, 0.0), 1.0) if tau == tau else np.nan


@hot
def kors_keep(weights, C, b, corner, alpha, probability, m):
    """Add a point, weighted 1 / sqrt(probability), to KORS's factor C, given b = C^-T S row.

    Returns the new pivot; if it is not positive nothing has changed.
    """
    weights[m] = w = 1.0 / math.sqrt(probability)
    multiply(b, w, m)
    return bordered_cholesky(C, b, alpha + corner * w * w, m)


@hot
def joining_probability(rule, row, weights, C, b, corner, m):
    """Return the probability with which a learner's dictionary takes a point."""
    alpha, beta, eps, fixed, _ = rule
    if fixed > 0.0:
        return fixed
    return kors_probability(row, weights, C, b, corner, alpha, beta, eps, m)


@hot
def keep_point(rule, x, corner, probability, counts, dictionary, b):
    """Add x to the dictionary and to KORS's factor, b as joining_probability left it; say success.

    A fixed probability has no factor.
    """
    alpha, _, _, fixed, listed = rule
    atoms, weights, C, _, _ = dictionary
    m = counts[ATOMS]
    if not fixed > 0.0:
        if listed > 0.0:
            probability *= probability  # weights 1 / p on each side, errata 16
        if not kors_keep(weights, C, b, corner, alpha, probability, m) > 0.0:
            return False
    put_atom(atoms, m, x)
    counts[ATOMS] = m + 1
    return True


@hot
def kors_rounds(X, coins, first, kernel, setting, counts, dictionary, work, out):
    """Play KORS (kons Algorithm 2) over the rows of X.

    setting : (alpha, beta, eps); dictionary : atoms, weights and C; work : (2, cap); out :
    probabilities (n,), and kept (n,), 0 or 1.
    """
    alpha, beta, eps = setting
    atoms, weights, C = dictionary
    played, kept = out
    row, b = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == weights.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        probability = kors_probability(row, weights, C, b, corner, alpha, beta, eps, m)  # line 5
        if not probability >= 0.0:
            return t, NOT_FINITE
        played[t] = probability
        kept[t] = 0
        if coins[t] < probability:  # line 6: the coin z_t
            if not kors_keep(weights, C, b, corner, alpha, probability, m) > 0.0:  # 1 / p_t
                return t, NOT_POSITIVE
            put_atom(atoms, m, x)
            counts[ATOMS] = m + 1
            kept[t] = 1
    return X.shape[0], DONE


@hot
def span_distance(q, corner, m):
    """Return the squared distance, with its nugget, of a point with coordinates q to a span."""
    return corner + NUGGET * corner - dot(q, q, m)


@hot
def ald_residual(R, row, corner, q, m):
    """Return the squared distance of a point to the span of a dictionary (pomdr eq. 4); write q."""
    for j in range(m):
        q[j] = row[j]
    solve_upper_transposed(R, q, m)
    return span_distance(q, corner, m)


@hot
def ald_grow(R, q, corner, m):
    """Add the point of ald_residual to the factor R; return the new pivot, as bordered_cholesky."""
    return bordered_cholesky(R, q, corner + NUGGET * corner, m)


@hot
def own_coordinate(rho, corner):
    """Return the last coordinate of an atom at distance rho from the span of those before it."""
    return rho - NUGGET * corner / rho


@hot
def ald_rounds(X, first, kernel, threshold, counts, dictionary, work, kept):
    """Keep the rows of X that are farther than ``threshold`` from the span of those kept before.

    dictionary : atoms and R; work : (2, cap); kept : (n,), 0 or 1, written.
    """
    atoms, R = dictionary
    row, q = work[0], work[1]
    for t in range(first, X.shape[0]):
        m = counts[ATOMS]
        if m == R.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        residual = ald_residual(R, row, corner, q, m)  # delta_t of Engel et al.
        if not abs(residual) < np.inf:
            return t, NOT_FINITE
        kept[t] = 0
        if residual > IN_SPAN * corner and math.sqrt(residual) > threshold:
            ald_grow(R, q, corner, m)
            put_atom(atoms, m, x)
            counts[ATOMS] = m + 1
            kept[t] = 1
    return X.shape[0], DONE


@hot
def span_coordinates(row, span, R, q, rank):
    """Write the coordinates q = R^-T k of a point in the dictionary's span."""
    for j in range(rank):
        q[j] = row[span[j]]
    solve_upper_transposed(R, q, rank)


@hot
def adds_direction(R, q, square, corner, v, rank):
    """Return whether a point is farther off the span than nuggets alone would put it.

    A point that is not still counts in KORS, whose weights are about frequency, not rank. square :
    span_distance; v : (cap,), R^-1 q, written.
    """
    for j in range(rank):
        v[j] = q[j]
    solve_upper(R, v, rank)
    nuggets = corner
    for i in range(rank):  # v' diag(R' R) v
        part, rest = R[i, i:rank], v[i:rank]
        for j in range(part.shape[0]):
            share = part[j] * rest[j]
            nuggets += share * share
    # |k_x - sum v_j k_j|^2 = corner - v' k - v' (nuggets) v
    return square > 1.1 * NUGGET * nuggets


@hot
def span_grow(R, span, q, rho, corner, rank, m):
    """Append the column (q, rho) to R: atom m, with coordinates q, at distance rho from the span.

    q gets its new entry too.
    """
    for j in range(rank):
        R[j, rank] = q[j]
    R[rank, rank] = rho
    q[rank] = own_coordinate(rho, corner)
    span[rank] = m
