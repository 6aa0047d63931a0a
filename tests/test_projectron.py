"""Projectron and Projectron++ against the textbook."""

import math

import numpy as np
import pytest

import oklnumba as okl
from tests import naive_expansions
from tests.compare import assert_close
from tests.expansions import KERNEL, assert_supports, data


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("threshold", [0.05, 0.3])
@pytest.mark.parametrize("budget", [None, 12])
def test_projectron_equals_the_textbook(aggressive, threshold, budget):
    X, y, K, _ = data()
    learner = okl.Projectron(KERNEL, threshold=threshold, budget=budget, aggressive=aggressive)
    run = okl.run(learner, X, y)
    expected = naive_expansions.projectron(K, y, threshold, budget or np.inf, aggressive)
    assert_close(run.predictions, expected[0])
    assert_supports(run, learner, X, expected[1])
    assert_close(learner.norm, expected[2][-1])
    if aggressive:
        assert len(expected[1][-1]) < np.count_nonzero(y * expected[0] < 1)
    pivots = np.diag(learner._R)[: learner.size]
    sign, log_det = np.linalg.slogdet(KERNEL(learner.atoms))
    assert sign == 1.0 and 2 * np.log(pivots).sum() == pytest.approx(log_det, rel=1e-9)


@pytest.mark.parametrize("aggressive", [False, True])
def test_projectron_with_a_budget_alone(aggressive):
    X, y, K, _ = data()
    learner = okl.Projectron(KERNEL, threshold=0.0, budget=15, aggressive=aggressive)
    slack = 0.25 * math.sqrt(16 / math.log(16))
    expected = naive_expansions.projectron(K, y, 0.0, 15, aggressive, slack)
    run = okl.run(learner, X, y)
    assert_close(run.predictions, expected[0])
    assert run.sizes[-1] == 15
