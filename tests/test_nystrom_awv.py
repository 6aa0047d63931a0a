"""Nystrom-AWV against the textbook, where its dictionary is hard, and its certificate."""

import numpy as np
import pytest

import oklnumba as okl
from tests.checks import assert_close
from tests.reference import naive
from tests.streams import HARD, KERNELS, hard, smooth


# The forecasters by turns, and both on the first kernel: rows of a kernel know nothing of them.
@pytest.mark.parametrize(
    ("kernel", "forecaster", "lam"),
    [(KERNELS[0], "awv", 1.0), (KERNELS[0], "ridge", 1e-3)]
    + [(kernel, ("awv", "ridge")[i % 2], 1e-3) for i, kernel in enumerate(KERNELS)],
)
def test_nystrom_awv_equals_the_dense_argmin(kernel, forecaster, lam):
    X, y = smooth(120)
    k, mu = naive.kernel_function(kernel), 0.5
    sampler = okl.KORS(kernel, alpha=mu, seed=4).partial_fit(X)
    learner = okl.NystromAWV(kernel, lam=lam, mu=mu, forecaster=forecaster, seed=4)
    run = okl.run(learner, X, y)
    expected = naive.nystrom_forecasts(k, X, y, lam, list(sampler.indices_), forecaster == "awv")
    assert_close(run.predictions, expected.astype(float))
    sizes = np.searchsorted(sampler.indices_, np.arange(len(X)), side="right")
    np.testing.assert_array_equal(run.sizes, sizes)


def joined(run):
    """Return the rounds whose points joined the dictionary."""
    return list(np.flatnonzero(np.diff(run.sizes, prepend=0)))


@pytest.mark.parametrize("mu", [1.0, 0.1, 1e-2])
def test_kors_as_listed_has_the_weights_of_the_printed_code(mu):
    X, y = smooth(120)
    coins = np.random.default_rng(4).random(len(X))
    kept, _ = naive.kors(naive.gaussian, X, coins, mu, 1.0, 0.5, listed=True)
    run = okl.run(okl.NystromAWV(okl.Gaussian(), mu=mu, sampler="kors_listed", seed=4), X, y)
    assert joined(run) == kept
    expected = naive.nystrom_forecasts(naive.gaussian, X, y, 1.0, kept, True)
    assert_close(run.predictions, expected.astype(float))
    as_in_the_paper = okl.run(okl.NystromAWV(okl.Gaussian(), mu=mu, seed=4), X, y)
    assert run.sizes[-1] < as_in_the_paper.sizes[-1]


@pytest.mark.parametrize(("kind", "probability"), [*zip(HARD, 3 * [1.0, 0.3, 0.05], strict=False)])
def test_uniform_sampling_keeps_what_its_coins_say(kind, probability):
    X, y = hard(kind, 100)
    kernel = okl.Laplacian(0.7)  # the dense version needs a kernel matrix that is well conditioned
    kept = okl.UniformSampling(kernel, probability=probability, seed=4).partial_fit(X)
    learner = okl.NystromAWV(kernel, lam=0.1, sampler=probability, seed=4)
    run = okl.run(learner, X, y)
    assert joined(run) == list(kept.indices_)

    def k(A, B):
        return naive.laplacian(A, B, 0.7)

    expected = naive.nystrom_forecasts(k, X, y, 0.1, list(kept.indices_), True)
    assert_close(run.predictions, expected.astype(float))
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()
