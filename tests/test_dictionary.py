"""Leverage scores and KORS in its loop, against dense solves."""

import math

import numpy as np
import pytest
import scipy.linalg

from oklnumba.components import kernels
from oklnumba.hot.primitives.dictionary import (
    Choices,
    KORSState,
    Rule,
    Work,
    kors_keep,
    kors_probability,
    kors_rounds,
    leverage,
)
from oklnumba.hot.primitives.jit import DONE, NEED_ROOM
from oklnumba.hot.primitives.rows import kernel_row
from tests.checks import POISON, close, poisoned, untouched, upper_buffer, upper_part, with_poison
from tests.reference import naive


@with_poison
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 100.0])
def test_leverage_score_by_its_definition_in_feature_space(alpha):
    rng = np.random.default_rng(19)
    m, d, cap = 9, 4, 12
    phi, new = rng.standard_normal((m, d)), rng.standard_normal(d)
    p = rng.uniform(0.1, 1.0, m)
    S = 1 / np.sqrt(p)
    factor = scipy.linalg.cholesky(S[:, None] * (phi @ phi.T) * S + alpha * np.eye(m))
    row, weights, b = poisoned(cap), poisoned(cap), poisoned(cap)
    row[:m], weights[:m] = phi @ new, S
    A = (phi.T / p) @ phi + np.outer(new, new) + alpha * np.eye(d)
    score = new @ np.linalg.solve(A, new)
    C = upper_buffer(factor, cap)
    b[:m] = S * row[:m]
    assert leverage(C, b, new @ new, alpha, m) == pytest.approx(score, rel=1e-10)
    eps, beta = 0.3, 0.5
    probability = kors_probability(Rule(alpha, beta, eps), weights, C, row, new @ new, b, m)
    assert probability == pytest.approx(min(beta * (1 + eps) * score, 1.0), rel=1e-10)
    assert kors_probability(Rule(alpha, 1e9, eps), weights, C, row, new @ new, b, m) == 1.0
    assert untouched(b[m:])
    # kept with probability q: the factor of the dictionary with one more weighted point
    q = 0.37
    kors_probability(Rule(alpha, beta, eps), weights, C, row, new @ new, b, m)
    assert kors_keep(weights, C, b, new @ new, alpha, q, m) > 0.0
    phi, S = np.vstack([phi, new]), np.append(S, 1 / math.sqrt(q))
    np.testing.assert_allclose(weights[: m + 1], S, rtol=1e-15)
    dense = S[:, None] * (phi @ phi.T) * S + alpha * np.eye(m + 1)
    factor = upper_part(C, m + 1)
    assert close(factor.T @ factor, dense, rtol=1e-13)


def play_kors(X, coins, kernel, alpha, beta, eps, cap=4):
    """Return probabilities, joins and weights of KORS, with buffers that grow from ``cap``."""
    coded = kernel._code()
    n, d = X.shape
    counts = np.zeros(1, dtype=np.int64)
    atoms, weights, C = poisoned(d, cap), poisoned(cap), poisoned(cap, cap)
    played, joins = poisoned(n), np.full(n, -1)
    first = 0
    while True:
        first, status = kors_rounds(
            X, coins, first, coded, Rule(alpha, beta, eps),
            KORSState(counts, atoms, weights, C), Work(*poisoned(2, cap)), Choices(played, joins),
        )  # fmt: skip
        if status != NEED_ROOM:
            break
        more = cap + 3
        atoms = np.pad(atoms, ((0, 0), (0, 3)), constant_values=POISON[0])
        weights = np.pad(weights, (0, 3), constant_values=POISON[0])
        C = np.pad(C, (0, 3), constant_values=POISON[0])
        cap = more
    assert (first, status) == (n, DONE)
    m = counts[0]
    np.testing.assert_array_equal(atoms[:, :m].T, X[joins == 1])
    assert untouched(atoms[:, m:]) and untouched(weights[m:])
    return played, joins, weights[:m], upper_part(C, m)


@with_poison
def test_kors_with_huge_beta_keeps_all_with_weight_one_and_its_scores_are_exact():
    rng = np.random.default_rng(21)
    X = rng.uniform(-1, 1, (40, 3))
    kernel, alpha, eps = kernels.Gaussian(0.8), 0.7, 0.5
    played, joins, weights, C = play_kors(X, np.full(40, 1 - 2**-53), kernel, alpha, 1e9, eps)
    assert (joins == 1).all() and (played == 1.0).all() and (weights == 1.0).all()
    K = naive.gaussian(X, X, 0.8)
    assert close(C.T @ C, K + alpha * np.eye(40), rtol=1e-13)
    # Over that full dictionary the score of each prefix's next point is (1 + eps) times
    # phi_t' (sum_{i<=t} phi_i phi_i' + alpha I)^-1 phi_t
    coded = kernel._code()
    atoms, beta = np.ascontiguousarray(X.T), 1e-3
    scores, exact = [], []
    for t in range(40):
        row, b = poisoned(40), poisoned(40)
        kernel_row(coded, X[t], atoms, t, row)
        p = kors_probability(Rule(alpha, beta, eps), weights, C, row, 1.0, b, t)
        scores.append(p / beta)
        Kt = K[: t + 1, : t + 1]
        exact.append((1 + eps) * np.linalg.solve(Kt + alpha * np.eye(t + 1), Kt[:, t])[t])
    np.testing.assert_allclose(scores, exact, rtol=1e-9)


def test_a_score_without_digits_is_nan_and_kors_says_so():
    C, b = np.eye(1), np.array([2.0])
    assert math.isnan(leverage(C, b, 1.0, 1.0, 1))
    row, weights = np.array([2.0]), np.ones(1)
    assert math.isnan(kors_probability(Rule(1.0, 1.0, 0.5), weights, C, row, 1.0, b, 1))
