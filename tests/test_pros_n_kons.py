"""Pros-N-KONS and CON-KONS against explicit features and the dense version."""

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.hot.primitives.dictionary import NUGGET
from tests.checks import one_by_one
from tests.reference import naive
from tests.streams import (
    SETTINGS,
    SPACES,
    assert_happened,
    every_setting,
    every_space,
    explicit,
    newton_stream,
    step,
)


def with_nuggets(features, atoms):
    """Return features in which the atoms' kernel matrix has the learner's nugget.

    The stream begins with the atoms; an atom has no entry for the atoms after it.
    """
    F = features(atoms.astype(np.longdouble))
    K = F @ F.T
    A = K + NUGGET * np.diag(np.diag(K))
    T = np.array([naive.longdouble_solve(A, column) for column in F.T])  # F' A^-1
    L = naive.longdouble_cholesky(A)

    def embedded(X):
        Z = features(X) @ T @ L  # k(X, atoms) A^-1 L
        Z[: len(atoms)] = np.tril(Z[: len(atoms)])
        return Z

    return embedded


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    "kernel", [okl.Linear(), okl.Polynomial(2, scale=1.0, coef0=0.0)], ids=repr
)
def test_pros_n_kons_on_a_dictionary_that_never_changes(kernel, restart):
    """Huge points with label 0 first: they span the space, do not move w, and satisfy KORS."""
    X, y = newton_stream("squared", 0.5)
    D = 2 if isinstance(kernel, okl.Linear) else 3
    X[:D] *= 300
    y[:D] = 0.0
    learner = okl.ProsNKONS(kernel, loss="squared", C=0.5, alpha=0.1, restart=restart, seed=3)
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes, np.minimum(np.arange(1, len(X) + 1), D))
    assert learner.restarts == (D - 1 if restart else 0)
    features = SPACES["linear"][1] if D == 2 else lambda X: naive.polynomial_features(X, 2, 1.0, 0)
    steps = explicit(features, X, y, "squared", 0.5, 0.1, step("squared", 0.5, None) / 2)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    assert_happened(steps, (True, True, True))


@pytest.mark.parametrize("alpha", [0.1, 1e-6])
@every_setting
@every_space
def test_con_kons_in_a_space_that_is_complete(space, loss, C, eta, must_happen, alpha):
    """The first points span the space; later atoms add no direction."""
    kernel, features = SPACES[space]
    X, y = newton_stream(loss, C)
    D = features(X).shape[1]
    learner = okl.ProsNKONS(
        kernel, loss=loss, C=C, alpha=alpha, eta=eta, mu=1e-3, beta=2.0, restart=False
    )
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes[:D], np.arange(1, D + 1))
    assert run.sizes[-1] > D
    steps = explicit(with_nuggets(features, X[:D]), X, y, loss, C, alpha, step(loss, C, eta) / 2)
    np.testing.assert_allclose(run.predictions, steps.forecasts, rtol=0, atol=1e-9)
    assert_happened(steps, must_happen)


KERNELS = {
    **{name: SPACES[name][0] for name in SPACES},
    "Laplacian, norm 1": okl.Laplacian(0.7, norm=1),
    "Laplacian": okl.Laplacian(0.7),
    "Matern": okl.Matern(1.5, sigma=0.9),
}
# Every setting on one kernel, every kernel in one setting: rows of a kernel know nothing of losses.
DENSE = [("Matern", *setting[:3]) for setting in SETTINGS]
DENSE += [(name, *SETTINGS[1][:3]) for name in KERNELS if name != "Matern"]


@pytest.mark.parametrize(
    ("name", "loss", "C", "eta", "restart"), [(*one, i % 2 == 1) for i, one in enumerate(DENSE)]
)
def test_pros_n_kons_equals_the_dense_version(name, loss, C, eta, restart):
    kernel = KERNELS[name]
    X, y = newton_stream(loss, C)
    kept = okl.KORS(kernel, alpha=0.1, beta=0.7, eps=0.4, seed=2).partial_fit(X).indices_
    learner, other = (
        okl.ProsNKONS(
            kernel, loss=loss, C=C, alpha=0.1, eta=eta, mu=0.1, beta=0.7, eps=0.4,
            restart=restart, seed=2,
        )
        for _ in range(2)
    )  # fmt: skip
    run = okl.run(learner, X, y)
    np.testing.assert_array_equal(run.sizes, np.searchsorted(kept, np.arange(len(X)), side="right"))
    assert learner.restarts == (len(kept) - 1 if restart else 0) and len(kept) > 10
    k, derivative = naive.kernel_function(kernel), naive.LOSS_DERIVATIVES[loss]
    eta = step(loss, C, eta)
    expected = naive.pros_n_kons(k, X, y, kept, derivative, C, 0.1, eta, restart=restart)
    np.testing.assert_allclose(run.predictions, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one_by_one(other, X, y), expected, rtol=0, atol=1e-9)
