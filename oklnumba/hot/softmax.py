"""Rounds of softmax regression on the scores of K classes, by online Newton steps.

C = the classes that came before;  x = (1, the scores of C within +-CUT, 0 for the others)
W = (0, START I)', A = LAM^-1 I;  for t = 1, ..., n, of class y:

    p_k = exp(w_k'x) / sum of those of C for k in C;  score_k = log max(p_k, 1 / t), p_k = 0 else
    if y is in C:  h = max(LEAST_CURVATURE, max_k p_k (1 - p_k))
        A = A - h A x (A x)' / (1 + h x'A x);   w_k = w_k + (1{y = k} - p_k) A x for all k

Ours: one A for all classes, whose Hessian p_k (1 - p_k) x x' is bounded by the largest (the step is
that of Hazan, Agarwal and Kale 2007). The numbers were chosen on sixteen sets.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import Array, exact

LAM, START, CUT, LEAST_CURVATURE = 1.0 / 3.0, 4.0, 10.0, 0.01


class SoftmaxState(NamedTuple):
    """For d classes, r = d + 1."""

    W: Annotated[Array, "r", "d"]
    A: Annotated[Array, "r", "r"]
    came: Annotated[Array, "d"]  # rounds of each class


class SoftmaxWork(NamedTuple):
    """Of one round."""

    x: Array  # (r,)
    p: Array  # (d,), 0 for classes that have not come
    step: Array  # (r,): A x


@exact
def write_class_scores(scores, state, work):
    """Replace the scores of the learners by the logs of probabilities; write x and p."""
    W, came, x, p = state.W, state.came, work.x, work.p
    K, t, peak, total = len(came), 1.0, -np.inf, 0.0
    x[0] = 1.0
    for k in range(K):
        p[k] = W[0, k]
    for j in range(K):  # along the rows of W, so that the order of sums is fixed
        t += came[j]
        x[j + 1] = larger(smaller(scores[j], CUT), -CUT) if came[j] > 0.0 else 0.0
        for k in range(K):
            p[k] += W[j + 1, k] * x[j + 1]
    for k in range(K):
        if came[k] > 0.0:
            peak = larger(peak, p[k])
    for k in range(K):
        p[k] = math.exp(p[k] - peak) if came[k] > 0.0 else 0.0
        total += p[k]
    for k in range(K):
        p[k] /= larger(total, 1.0)
        scores[k] = math.log(larger(p[k], 1.0 / t))


@exact
def softmax_forecasts(scores, state, work):
    """Replace the scores of the learners, (n, K), by those of single rounds; learn nothing."""
    for t in range(len(scores)):
        write_class_scores(scores[t], state, work)


@exact
def softmax_rounds(scores, labels, state, work):
    """Replace the scores of the learners, (n, K), round by round, and learn the class, (n,)."""
    W, A, came, K = state.W, state.A, state.came, len(state.came)
    x, p, step = work.x, work.p, work.step
    for t in range(len(scores)):
        write_class_scores(scores[t], state, work)
        y = labels[t]
        came[y] += 1.0
        if came[y] == 1.0:
            continue
        h, curved = LEAST_CURVATURE, 0.0
        for k in range(K):
            h = larger(h, p[k] * (1.0 - p[k]))
        for i in range(K + 1):
            step[i] = A[0, i]
        for j in range(1, K + 1):
            for i in range(K + 1):
                step[i] += A[j, i] * x[j]
        for j in range(K + 1):
            curved += step[j] * x[j]
        grown = 1.0 + h * larger(curved, 0.0)
        p[y] -= 1.0
        for j in range(K + 1):
            for i in range(K + 1):
                A[j, i] -= h / grown * step[j] * step[i]
            for k in range(K):
                W[j, k] -= p[k] / grown * step[j]
