"""``health``: conditions of NumPy, drifts that are planted, digits against sixty-digit arithmetic."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba import health
from oklnumba.health import COLUMNS, SIX, STEPS, Health, top
from oklnumba.hot.dictionary import NUGGET
from tests.battery import contents, every_learner, make, stream
from tests.compiled import COMPILED

KERNEL = okl.Gaussian(1.0)
N = 300 if COMPILED else 50


def quietly(learner):
    """Return the health of a learner, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return learner.health()


# ---- the condition ----


def of_exact_ridge(learner, X):
    return KERNEL(X) + learner.lam * np.eye(len(X))


def of_features(learner, X):
    Z = learner.features.transform(X)
    return Z.T @ Z + learner.lam * np.eye(Z.shape[1])


def of_inputs(learner, X):
    return X.T @ X + learner.lam * np.eye(X.shape[1])


def of_dictionary(learner, X):
    return KERNEL(learner.atoms) + NUGGET * np.eye(len(learner.atoms))


def of_newton(learner, X):
    """What the gradients 2 (w.x - y) x of ``test_the_condition_is_numpy_s`` add up to."""
    w, A, eta = np.zeros(3), learner.lam * np.eye(3), learner.eta
    raise AssertionError((w, A, eta))


MATRICES = [
    (okl.KernelRidge(KERNEL, lam=1.0), of_exact_ridge),
    (okl.KernelRidge(KERNEL, lam=1e-6), of_exact_ridge),
    (okl.KernelAWV(KERNEL, lam=1e-3), of_exact_ridge),
    (okl.PKAWV(okl.TaylorFeatures(3), lam=1e-4), of_features),
    (okl.PKAWV(okl.FourierFeatures(20, seed=1), lam=1.0), of_features),
    (okl.LinearAWV(lam=0.1), of_inputs),
    (okl.LinearRidge(lam=1e-5), of_inputs),
    (okl.KRLS(KERNEL, threshold=1e-3), of_dictionary),
    (okl.Projectron(KERNEL), of_dictionary),
]


@pytest.mark.parametrize(("learner", "matrix"), MATRICES, ids=lambda one: getattr(one, "__name__", None))
def test_the_condition_is_numpy_s(learner, matrix):
    X, y = stream(learner, N)
    learner = okl.load_from(learner) if hasattr(okl, "load_from") else learner.clone()
    learner.partial_fit(X, y)
    truth = np.linalg.cond(matrix(learner, X))
    found = quietly(learner).condition
    assert truth / 9 <= found <= truth * (1 + 1e-4)
