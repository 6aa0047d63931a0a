"""Which points a dictionary keeps: leverage scores, KORS, ALD, and the span of its atoms.

KORS (Calandriello, Lazaric and Valko 2017, "kons", Algorithm 2, errata 7):

    I = {}; for t = 1, ..., T:
        tau_t = (1 + eps) phi_t' (sum_{i in I} phi_i phi_i' / p_i + phi_t phi_t' + alpha I)^-1 phi_t
        p_t = min(beta tau_t, 1);   with probability p_t: I = I + {t}, weight 1 / p_t

In kernel form tau_t = (1 + eps) (1 - alpha / s) with s = alpha + k_tt - b'b, b = C^-T S k_t,
S = diag(1 / sqrt(p_i)) and C'C = S K S + alpha I.

ALD (Engel, Mannor and Meir 2004), K = R'R over the atoms:

    D = {}; for t = 1, ..., n:
        q_t = R^-T k_t;   delta_t = k_tt - q_t'q_t           # squared distance to the span
        if sqrt(delta_t) > threshold:   D = D + {x_t}

Of a new point x: k (cap,), k(x, atoms); k_xx, k(x, x); q (cap,), coordinates in the span.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import (
    ATOMS,
    DONE,
    NEED_ROOM,
    NOT_FINITE,
    NOT_POSITIVE,
    Array,
    Integers,
    hot,
)
from oklnumba.hot.primitives.linalg import (
    bordered_cholesky,
    dot,
    multiply,
    solve_rows,
    solve_upper_transposed,
)
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row, put_atom
from oklnumba.hot.primitives.udu import TILE

RANK = 1  # entry of a Dictionary's counts after ATOMS: dimension of the atoms' span
KORS = 2  # entry of Points.known after ATOMS and RANK

# Rounding the kernel's values moves the eigenvalues of a dictionary's kernel matrix by about 1e-16
# sqrt(m). Atoms that nearly coincide, as on time series, give smaller eigenvalues, and the errors
# multiply from atom to atom. So the matrix has (1 + NUGGET) k(x, x) on its diagonal: no eigenvalue
# is below the rounding, and no distance loses its digits, in any order of the atoms.
NUGGET = 1e-14
# ALD: a point is in the span, whatever the learner's threshold, if its squared distance to the span
# (nugget included) is at most this share of k(x, x). A Dictionary has adds_direction instead.
IN_SPAN = 1e-13


class JoiningRule(NamedTuple):
    """With which probability a point joins a dictionary."""

    alpha: float  # of KORS: regularisation, oversampling, accuracy
    beta: float
    eps: float
    uniform: float = 0.0  # if positive: this probability for every point, without KORS
    listed: bool = False  # whether weights are 1 / p on each side, as listed (errata 16)


class KORSState(NamedTuple):
    """The atoms of KORS and the factor C of their weighted kernel matrix."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    weights: Annotated[Array, ATOMS]  # 1 / sqrt(p_i)
    kors: Annotated[Array, ATOMS, ATOMS]  # C


class UniformState(NamedTuple):
    """The atoms of uniform sampling."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]


class Dictionary(NamedTuple):
    """The atoms of a learner, chosen by KORS or uniformly, and those among them that span."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    weights: Annotated[Array, ATOMS]  # as in KORSState
    kors: Annotated[Array, ATOMS, ATOMS]  # C
    span: Annotated[Integers, RANK]  # the atoms that span
    R: Annotated[Array, RANK, RANK]  # R'R = their kernel matrix, with nuggets


class Points(NamedTuple):
    """Points that share passes over the atoms, R and C, a row each, finished in its round."""

    # (3,), by ATOMS, RANK and KORS: how many entries of each row of K, Q and B the passes wrote.
    known: Integers
    K: Array  # (PASS_ROWS, cap): k, of next_kernel_row
    Q: Array  # (PASS_ROWS, cap): q
    B: Array  # (PASS_ROWS, cap): b of KORS


class ALDState(NamedTuple):
    """Atoms that are farther than a threshold from each other's span."""

    counts: Annotated[Integers, "counts"]
    atoms: Annotated[Array, "d", ATOMS]
    R: Annotated[Array, ATOMS, ATOMS]  # R'R = K, with nuggets


class Work(NamedTuple):
    """Workspace of a new point."""

    k: Array  # (cap,)
    q: Array  # (cap,): coordinates, or b of KORS


class Choices(NamedTuple):
    """What KORS and ALD write for each point."""

    probabilities: Array  # (n,)
    joins: Array  # (n,): 1 if the point joins, else 0


# ---- KORS ----


@hot
def weigh(weights, k, b, first, m):
    """Write entries ``first`` to m of b = S k."""
    for j in range(first, m):
        b[j] = weights[j] * k[j]


@hot
def kors_probability(rule, weights, C, k, k_xx, b, m):
    """Return the probability of a point; write b = C^-T S k."""
    weigh(weights, k, b, 0, m)
    solve_upper_transposed(C, b, m)
    return probability_given_b(rule, b, k_xx, m)


@hot
def probability_given_b(rule, b, k_xx, m):
    """Return the probability min(beta tau, 1) of a point (kons eq. 4), given b."""
    s = rule.alpha + k_xx - dot(b, b, m)
    if not s > 0.0:  # it has lost its digits
        return np.nan
    tau = (1.0 + rule.eps) * (1.0 - rule.alpha / s)  # the ridge leverage score
    return smaller(larger(rule.beta * tau, 0.0), 1.0)


@hot
def kors_keep(weights, C, b, k_xx, alpha, probability, m):
    """Add a point, weighted 1 / sqrt(probability), to C, given its b.

    Returns the new pivot; if it is not positive nothing has changed.
    """
    weights[m] = w = 1.0 / math.sqrt(probability)
    multiply(b, w, m)
    return bordered_cholesky(C, b, alpha + k_xx * w * w, m)


@hot
def joining_probability(rule, dictionary, k, k_xx, b):
    """Return the probability with which a point joins a dictionary."""
    if rule.uniform > 0.0:
        return rule.uniform
    m = dictionary.counts[ATOMS]
    return kors_probability(rule, dictionary.weights, dictionary.kors, k, k_xx, b, m)


@hot
def keep_point(rule, dictionary, x, k_xx, probability, b):
    """Add x to a dictionary, given its b; return whether it succeeded."""
    m = dictionary.counts[ATOMS]
    if not rule.uniform > 0.0:
        if rule.listed:
            probability *= probability
        weights, C = dictionary.weights, dictionary.kors
        if not kors_keep(weights, C, b, k_xx, rule.alpha, probability, m) > 0.0:
            return False
    put_atom(dictionary.atoms, m, x)
    dictionary.counts[ATOMS] = m + 1
    return True


@hot
def kors_rounds(X, coins, first, kernel, rule, state, work, out):
    """Play KORS (kons Algorithm 2) over the rows of X."""
    k, b = work.k, work.q
    for t in range(first, X.shape[0]):
        x, m = X[t], state.counts[ATOMS]
        if m == state.weights.shape[0]:
            return t, NEED_ROOM
        kernel_row(kernel, x, state.atoms, m, k)
        k_tt = kernel_diag(kernel, x)
        p = joining_probability(rule, state, k, k_tt, b)  # line 5
        if not p >= 0.0:
            return t, NOT_FINITE
        out.probabilities[t] = p
        out.joins[t] = coins[t] < p  # line 6: the coin z_t
        if coins[t] < p and not keep_point(rule, state, x, k_tt, p, b):
            return t, NOT_POSITIVE
    return X.shape[0], DONE


# ---- ALD ----


@hot
def squared_distance(q, k_xx, m):
    """Return the squared distance, with its nugget, of a point with coordinates q to the span."""
    return k_xx + NUGGET * k_xx - dot(q, q, m)


@hot
def ald_residual(R, k, k_xx, q, m):
    """Return the squared distance of a point to the span of the atoms (pomdr eq. 4); write q."""
    for j in range(m):
        q[j] = k[j]
    solve_upper_transposed(R, q, m)
    return squared_distance(q, k_xx, m)


@hot
def ald_grow(R, q, k_xx, m):
    """Add the point of ald_residual to R; return the new pivot, as bordered_cholesky."""
    return bordered_cholesky(R, q, k_xx + NUGGET * k_xx, m)


@hot
def ald_rounds(X, first, kernel, threshold, state, work, out):
    """Let the rows of X join that are farther than ``threshold`` from the span."""
    for t in range(first, X.shape[0]):
        x, m = X[t], state.counts[ATOMS]
        if m == state.R.shape[0]:
            return t, NEED_ROOM
        kernel_row(kernel, x, state.atoms, m, work.k)
        k_tt = kernel_diag(kernel, x)
        delta = ald_residual(state.R, work.k, k_tt, work.q, m)
        if not abs(delta) < np.inf:
            return t, NOT_FINITE
        out.joins[t] = 0
        if delta > IN_SPAN * k_tt and math.sqrt(delta) > threshold:
            ald_grow(state.R, work.q, k_tt, m)
            put_atom(state.atoms, m, x)
            state.counts[ATOMS] = m + 1
            out.joins[t] = 1
    return X.shape[0], DONE


# ---- the span of a dictionary some of whose atoms add no direction ----


@hot
def take_span(dictionary, k, q, first):
    """Write the values of k at the atoms that span, from the ``first`` of these on."""
    for j in range(first, dictionary.counts[RANK]):
        q[j] = k[dictionary.span[j]]


@hot
def solve_coordinates(dictionary, k, q):
    """Write the coordinates q = R^-T k of a point's projection on the span."""
    take_span(dictionary, k, q, 0)
    solve_upper_transposed(dictionary.R, q, dictionary.counts[RANK])


@hot
def solve_ahead(dictionary, points, count, asks_kors):
    """Solve for Q and B of ``count`` rows of K together, but for the last one to three entries."""
    known, m, rank = points.known, dictionary.counts[ATOMS], dictionary.counts[RANK]
    known[RANK] = known[KORS] = 0
    if count == 1:  # solve_rest alone is faster
        return
    known[RANK] = rank // TILE * TILE
    for s in range(count):
        take_span(dictionary, points.K[s], points.Q[s], 0)
    solve_rows(dictionary.R, points.Q, count, known[RANK])
    if asks_kors:
        known[KORS] = m // TILE * TILE
        for s in range(count):
            weigh(dictionary.weights, points.K[s], points.B[s], 0, m)
        solve_rows(dictionary.kors, points.B, count, known[KORS])


@hot
def adds_direction(dictionary, q, delta, k_xx, v):
    """Return whether a point is farther off the span than nuggets alone would put it.

    A point that is not still counts in KORS, whose weights are about frequency, not rank. delta :
    squared_distance; v : (cap,), R^-1 q, written.
    """
    R, rank, nuggets = dictionary.R, dictionary.counts[RANK], k_xx
    for i in range(rank - 1, -1, -1):  # v, and v' diag(R' R) v, in one pass over R
        row, tail, rest, squares = R[i, i + 1 : rank], v[i + 1 : rank], q[i], 0.0
        for j in range(row.shape[0]):
            share = row[j] * tail[j]
            rest -= share
            squares += share * share
        v[i] = rest / R[i, i]
        nuggets += squares + rest * rest
    # delta = |k_x - sum v_j k_j|^2 + NUGGET * nuggets: a tenth more would be the true distance.
    return delta > 1.1 * NUGGET * nuggets


@hot
def last_coordinate(rho, k_xx):
    """Return the last coordinate of an atom at distance rho, nugget included, from the span.

    k(x, x) itself has no nugget: (k_xx - q'q) / rho, where rho^2 = (1 + NUGGET) k_xx - q'q.
    """
    return rho - NUGGET * k_xx / rho


@hot
def extend_span(dictionary, q, rho, k_xx):
    """Add to the span the point that joins next, at distance rho from it.

    q : its coordinates; they get the new entry too.
    """
    counts, R = dictionary.counts, dictionary.R
    rank = counts[RANK]
    for j in range(rank):
        R[j, rank] = q[j]
    R[rank, rank] = rho
    q[rank] = last_coordinate(rho, k_xx)
    dictionary.span[rank] = counts[ATOMS]
    counts[RANK] = rank + 1
