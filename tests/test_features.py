"""Features of Taylor, Fourier and of any basis against their definitions."""

import math

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.hot.primitives.features import fourier_block
from tests.checks import poisoned, raises, refused, untouched, with_poison
from tests.reference import naive
from tests.streams import every_hard_stream, hard, smooth


@pytest.mark.parametrize("d, degree", [(1, 0), (1, 7), (2, 5), (3, 3), (5, 2), (7, 1)])
@pytest.mark.parametrize("centred", [False, True])
def test_taylor_features_follow_equation_6(d, degree, centred):
    """Which of them is which monomial, their names say: test_transformers.py."""
    rng = np.random.default_rng(4)
    center = rng.uniform(-0.5, 0.5, d) if centred else None
    X = rng.uniform(-1, 1, (11, d))
    found = okl.TaylorFeatures(degree, sigma=0.8, center=center).transform(X)
    expected = naive.taylor(X, degree, 0.8, 0.0 if center is None else center)
    found, expected = (F[:, np.argsort(F[0])] for F in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-300)


@with_poison
@pytest.mark.parametrize("d, f", [(1, 1), (3, 7), (5, 8), (8, 13)])
def test_fourier_features_against_numpy(d, f):
    rng = np.random.default_rng(6)
    X, W = rng.standard_normal((5, d)), rng.standard_normal((d, f))
    scale = 1 / math.sqrt(f)
    out = poisoned(5, 2 * f + 3)
    fourier_block(X, W, scale, out)
    assert untouched(out[:, 2 * f :])
    expected = np.concatenate([np.sin(X @ W), np.cos(X @ W)], axis=1) * scale
    np.testing.assert_allclose(out[:, : 2 * f], expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose((out[:, : 2 * f] ** 2).sum(axis=1), 1.0, rtol=1e-14)


def test_fourier_features_of_phases_beyond_the_fast_range():
    # With one input column a phase is one product: exactly the same phase in numpy.
    W = np.array([[1.0, 3.7, 2e6, -1e9, 1e15]])
    X = np.array([[1.0], [0.3], [99_999.0], [-1e6], [1e-9]])
    out = poisoned(5, 10)
    fourier_block(X, W, 1.0, out)
    wide = (X * W).astype(np.longdouble)
    expected = np.concatenate([np.sin(wide), np.cos(wide)], axis=1)
    assert np.abs(X * W).max() > 1e5
    np.testing.assert_allclose(out, expected.astype(float), rtol=0, atol=1e-15)


TAYLOR = okl.TaylorFeatures(2, sigma=0.9)
MIX = np.random.default_rng(0).standard_normal((TAYLOR.size(2),) * 2)  # of its functions
BASES = {
    "the Taylor basis itself": (TAYLOR.transform, lambda d: np.eye(TAYLOR.size(d))),
    "mixtures of it": (lambda X: TAYLOR.transform(X) @ MIX, MIX.T @ MIX),
    "of unequal sizes": (
        lambda X: TAYLOR.transform(X) * np.geomspace(1e-2, 1e2, 6),
        np.diag(np.geomspace(1e-4, 1e4, 6)),
    ),
    "some twice": (
        lambda X: TAYLOR.transform(X)[:, [0, 1, 2, 3, 4, 5, 2, 2]],
        np.eye(6)[:, [0, 1, 2, 3, 4, 5, 2, 2]].T @ np.eye(6)[:, [0, 1, 2, 3, 4, 5, 2, 2]],
    ),
}  # fmt: skip


@every_hard_stream
@pytest.mark.parametrize("name", BASES)
def test_forecasts_on_a_basis_are_those_on_the_taylor_features_it_spans(name, kind):
    X, y = hard(kind, 300)
    features = okl.BasisFeatures(*BASES[name])
    assert features.size(2) == TAYLOR.size(2)
    for lam in (1.0, 1e-2):
        expected = okl.run(okl.PKAWV(TAYLOR, lam=lam), X, y).predictions
        run = okl.run(okl.PKAWV(features, lam=lam), X, y)
        scale = max(1.0, np.abs(y).max())
        np.testing.assert_allclose(run.predictions, expected, rtol=0, atol=1e-9 * scale)
        assert (run.certificate.regret <= run.certificate.bound * (1 + 1e-9)).all()


def test_kernel_functions_as_a_basis_are_the_nystrom_features():
    kernel, atoms = okl.Matern(1.5, sigma=0.7), smooth(20, 2)[0]
    atoms = np.concatenate([atoms, atoms[:3]])
    basis = okl.BasisFeatures(lambda X: kernel(X, atoms), kernel(atoms))
    X, y = hard("sorted", 300)
    nystrom = okl.NystromFeatures(atoms, kernel)
    assert basis.size(2) == nystrom.size(2) == 20
    grams = [z.transform(X) @ z.transform(X).T for z in (basis, nystrom)]
    np.testing.assert_allclose(*grams, atol=1e-10)
    np.testing.assert_allclose(basis.captured(X), nystrom.captured(X), atol=1e-10)
    bounds = [okl.theory.pkawv_bound(kernel, z, X, 0.5) for z in (basis, nystrom)]
    np.testing.assert_allclose(*bounds, rtol=1e-8)
    # The objective of eq. 4 over the coefficients of the basis itself, lam c'Qc.
    V, Q, n = kernel(X, atoms), kernel(atoms), 60
    A = V[:n].T @ V[:n] + 0.5 * Q
    c = np.linalg.lstsq(A, V[: n - 1].T @ y[: n - 1], rcond=1e-12)[0]
    found = okl.run(okl.PKAWV(basis, lam=0.5), X, y).predictions[n - 1]
    np.testing.assert_allclose(found, V[n - 1] @ c, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_after_an_error_of_the_basis_a_learner_asks_for_reset(tmp_path):
    learner = okl.PKAWV(okl.BasisFeatures(np.log, np.eye(1)))
    learner.learn_one([1.5], 1.0)
    before = learner.predict_one([1.5])
    refused("basis.X. has -inf at row 1, column 0", learner.partial_fit, [[2.0], [0.0]], [1.0, 1.0])
    raises(RuntimeError, "call reset", learner.predict_one, [2.0])
    assert learner.reset().learn_one([1.5], 1.0).predict_one([1.5]) == before
    refused("cannot save a hyper-parameter", lambda: learner.save(tmp_path / "basis.npz"))
