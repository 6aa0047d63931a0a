"""Rounds of KONS on the span of a dictionary, its matrix a sketch by Frequent Directions.

docs/frequent_kons.md, ours, after Calandriello, Lazaric and Valko 2017 (ICML, "kons"), section 6,
and Luo, Agarwal, Cesa-Bianchi and Langford 2016:

    D = {}, w = 0, S = (), A = alpha I + S'S; for t = 1, ..., T:
        psi = P_D phi_t;   ybar = w.psi;   yhat_t = ybar clipped to [-C, C]
        g = l'(yhat_t);   mu = eta g^2 |phi_t - psi|^2
        if mu / (alpha + mu) > threshold:   D = D + {x_t}, psi = phi_t
        w = w - (ybar - yhat_t) / (psi' A^-1 psi) A^-1 psi
        S = S with the row sqrt(eta) g psi;   w = w - g A^-1 psi
        if S has 2 rank rows:   subtract its (rank + 1)-th squared singular value from all
        if |D| > budget:   drop an atom

Coordinates are q = R^-T k_D with K_D = R'R, as in krls.py, and L'L = alpha I + SS'. The last two
steps are not here: the loop returns NEED_ROOM after the round, and learners/frequent_kons.py takes
them.
"""

import math

import numpy as np

from oklnumba.hot.newton import sketch_append, sketch_solve
from oklnumba.hot.primitives.dictionary import IN_SPAN, ald_grow, ald_residual, own_coordinate
from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import ATOMS, DONE, NEED_ROOM, NOT_FINITE, NOT_POSITIVE, hot
from oklnumba.hot.primitives.linalg import add_multiple, dot
from oklnumba.hot.primitives.losses import loss_derivative
from oklnumba.hot.primitives.rows import kernel_diag, kernel_row, put_atom

ROWS = 1  # entry of the counts: rows of the sketch in use
NULL_ROW = 1e-20  # share of alpha below which a row is left out, for it may be but rounding
R_G, SQUARE, LINEAR, CONSTANT = range(4)  # totals; the last three are powers of the norm F


@hot
def learn_point(q, u, g, raw, square, setting, counts, w, sketch, column, totals):
    """Move w and add a row to the sketch, for the point q, (m,), and the slope g; return a status.

    u : A^-1 q; raw : ybar; square : of the distance to the span; column : as sketch_solve left it.
    """
    C, alpha, eta, excess = setting
    m, rows, grown = q.shape[0], counts[ROWS], 1.0
    forecast, width = smaller(larger(raw, -C), C), dot(q, u, m)  # psi' A^-1 psi
    if raw != forecast:
        if not width > 0.0:
            return NOT_POSITIVE
        shift = (raw - forecast) / width
        add_multiple(w, -shift, u, m)
        totals[LINEAR] += 2.0 * abs(shift) * math.sqrt(square)
        totals[CONSTANT] -= shift * shift * width
    reach = abs(g) * (C + abs(forecast))  # >= |g (yhat_t - f(x_t))|
    totals[LINEAR] += 2.0 * abs(g) * math.sqrt(square) * (1.0 + eta * reach)
    totals[SQUARE] += eta * g * g * square
    totals[CONSTANT] += excess * reach * reach
    norm = dot(q, q, m)
    if eta * g * g * norm > NULL_ROW * alpha:
        if not sketch_append(q, math.sqrt(eta) * g, alpha, norm, sketch, rows, column) > 0.0:
            return NOT_POSITIVE
        counts[ROWS] = rows + 1
        grown += eta * g * g * width
    add_multiple(w, -g / grown, u, m)
    totals[R_G] += g * g * width / grown
    return DONE


@hot
def frequent_kons_rounds(
    X, y, first, kernel, loss, setting, counts, function, sketch, totals, work, out
):
    """Play FrequentKONS up to the next round after which it needs room.

    setting : (C, alpha, eta, max(eta - sigma, 0)), threshold and budget; function : atoms (d,
    cap), R (cap, cap), w (cap,); sketch : S (2 rank, cap), L (2 rank, 2 rank); totals : (4,); work
    : row, q and u (3, cap), column and v (2, 2 rank).
    """
    newton, threshold, largest = setting
    C, alpha, eta, _ = newton
    atoms, R, w = function
    (row, q, u), (column, v), (forecasts, sizes) = work[0], work[1], out
    for t in range(first, y.shape[0]):
        m = counts[ATOMS]
        if m == w.shape[0]:
            return t, NEED_ROOM
        x = X[t]
        kernel_row(kernel, x, atoms, m, row)
        corner = kernel_diag(kernel, x)
        rest = ald_residual(R, row, corner, q, m)
        raw = dot(q, w, m)
        if not (abs(raw) < np.inf and corner < np.inf):
            return t, NOT_FINITE
        forecasts[t] = smaller(larger(raw, -C), C)
        g = loss_derivative(loss, forecasts[t], y[t])
        sketch_solve(q[:m], alpha, sketch, counts[ROWS], column, v, u)
        square = larger(rest, 0.0)  # of the distance to the span, negative only by rounding
        mu = eta * g * g * square
        if mu > threshold * (alpha + mu) and rest > IN_SPAN * corner:
            ald_grow(R, q, corner, m)
            put_atom(atoms, m, x)
            q[m] = own_coordinate(R[m, m], corner)
            u[m], w[m], square = q[m] / alpha, 0.0, 0.0
            for i in range(v.shape[0]):
                sketch[0][i, m] = 0.0
            counts[ATOMS] = m = m + 1
        status = learn_point(q[:m], u, g, raw, square, newton, counts, w, sketch, column, totals)
        if status != DONE:
            return t, status
        sizes[t] = smaller(m, largest)
        if counts[ROWS] == v.shape[0] or m > largest:
            return t + 1, NEED_ROOM
    return y.shape[0], DONE
