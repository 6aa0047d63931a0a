"""The blocked Cholesky factor; LAPACK's is called on its blocks only."""

import numpy as np
import pytest
import scipy.linalg

import oklnumba as okl
from oklnumba.core import cholesky
from oklnumba.theory import matrix
from tests.checks import raises
from tests.reference import naive

MATRICES = {n: naive.gaussian(X, X) for n in (1, 2, 31, 32, 33, 65, 150)
            for X in [np.random.default_rng(n).uniform(-1, 1, (n, 3))]}  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cholesky, "BLOCK", 32)
    monkeypatch.setattr(cholesky, "SOLVED", 12)
    monkeypatch.setattr(okl.KernelAWV, "_traits", okl.KernelAWV._traits._replace(block_rows=32))
    monkeypatch.setattr(matrix, "PIVOTS", 32)


@pytest.mark.parametrize("n", MATRICES)
def test_factor_solve_and_inverse_are_those_of_dense_algebra(n):
    A = MATRICES[n] + 0.1 * np.eye(n)
    L = np.tril(cholesky.factor_matrix(A.copy()))
    np.testing.assert_allclose(L, np.linalg.cholesky(A), rtol=1e-10, atol=1e-12)
    b = np.arange(1.0, n + 1.0)
    found = cholesky.solve(cholesky.factor_matrix(A.copy()), b)
    np.testing.assert_allclose(found, np.linalg.solve(A, b), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(cholesky.inverse_diagonal(L), np.diag(np.linalg.inv(A)), rtol=1e-9)


@pytest.mark.parametrize("row", [0, 31, 40, 149])
def test_a_matrix_that_is_not_positive_is_refused(row):
    A = np.eye(150)
    A[row, row] = -1.0
    raises(scipy.linalg.LinAlgError, f"row {row} is not positive", cholesky.factor_matrix, A)


def test_lapack_factors_blocks_only(monkeypatch):
    """OpenBLAS's factor with several threads ends in a segmentation fault at 16,500 rows."""
    seen = []

    def watched(function, name):
        def call(a, *args, **kwargs):
            seen.append((name, len(a)))
            return function(a, *args, **kwargs)

        return call

    monkeypatch.setattr(cholesky, "factor_block", watched(cholesky.factor_block, "blas"))
    for name in ("dpotrf", "dpstrf", "dpotri", "dtrtri", "dposv", "dsysv"):
        function = getattr(scipy.linalg.lapack, name)
        monkeypatch.setattr(scipy.linalg.lapack, name, watched(function, name))
    for name in ("cholesky", "cho_factor", "solve", "inv"):
        monkeypatch.setattr(scipy.linalg, name, watched(getattr(scipy.linalg, name), name))
        if hasattr(np.linalg, name):
            monkeypatch.setattr(np.linalg, name, watched(getattr(np.linalg, name), name))
    kernel, rng = okl.Gaussian(0.2), np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (150, 3)), rng.choice([-1.0, 1.0], 150)
    features, theory = okl.TaylorFeatures(2), okl.theory
    run = okl.run(okl.KernelAWV(kernel), X, y)
    okl.run(okl.KONS(kernel), X, y)
    run.regret(kernel, 1.0)
    for loss in okl.losses.LOSSES:
        run.regret(kernel, 1.0, 2, loss)
        theory.Hindsight(kernel, X, y, 1.0, loss, features).comparator()
        theory.comparator(kernel, X, y, 1.0, loss, okl.NystromFeatures(X, kernel))
    theory.norm_ball_comparator(kernel, X, y, 1.0, "squared")
    theory.leverage_scores(kernel, X, 1.0)
    theory.log_det(kernel, X, 1.0)
    theory.kors_size_bound(kernel, X)
    theory.kons_bound(kernel, X, "hinge")
    theory.ald_budget_bound(kernel, X, 1e-4)
    theory.pkawv_bound(kernel, features, X, 1.0)
    assert {"blas", "dpstrf"} <= {name for name, _ in seen}
    assert max(rows for _, rows in seen) <= 32


def test_arrays_that_blas_would_misread_are_refused():
    A = np.ones((4, 4))
    for wrong in (A[:, ::2], A.T[:3], A.astype(np.float32)):
        with pytest.raises(ValueError, match="BLAS needs adjacent float64 numbers"):
            cholesky.subtract_squares(np.ones((4, 2)), wrong)
