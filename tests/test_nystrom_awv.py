"""Nystrom-AWV against the textbook, where its dictionary is hard, and its certificate."""

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.hot.primitives.dictionary import NUGGET
from tests import naive
from tests.compare import assert_close
from tests.ridge import LAMS, STREAMS, every_kernel, stream


@every_kernel
@pytest.mark.parametrize("forecaster", ["awv", "ridge"])
def test_nystrom_awv_equals_the_dense_argmin(kernel, k, forecaster, lam):
    X, y = stream()
    mu = 0.5
    sampler = okl.KORS(kernel, alpha=mu, seed=4).partial_fit(X)
    learner = okl.NystromAWV(kernel, lam=lam, mu=mu, forecaster=forecaster, seed=4)
    run = okl.run(learner, X, y)
    expected = naive.nystrom_forecasts(k, X, y, lam, list(sampler.indices_), forecaster == "awv")
    assert_close(run.predictions, expected.astype(float))
    np.testing.assert_array_equal(
        run.sizes, np.searchsorted(sampler.indices_, np.arange(len(X)), side="right")
    )


def joined(run):
    """Return the rounds whose points joined the dictionary."""
    return list(np.flatnonzero(np.diff(run.sizes, prepend=0)))


@pytest.mark.parametrize("mu", [1.0, 0.1, 1e-2])
def test_kors_as_listed_has_the_weights_of_the_printed_code(mu):
    X, y = stream()
    coins = np.random.default_rng(4).random(len(X))
    kept, _ = naive.kors(naive.gaussian, X, coins, mu, 1.0, 0.5, listed=True)
    run = okl.run(okl.NystromAWV(okl.Gaussian(), mu=mu, sampler="kors_listed", seed=4), X, y)
    assert joined(run) == kept
    expected = naive.nystrom_forecasts(naive.gaussian, X, y, 1.0, kept, True)
    assert_close(run.predictions, expected.astype(float))
    as_in_the_paper = okl.run(okl.NystromAWV(okl.Gaussian(), mu=mu, seed=4), X, y)
    assert run.sizes[-1] < as_in_the_paper.sizes[-1]


@pytest.mark.parametrize("probability", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("name", STREAMS)
def test_uniform_sampling_keeps_what_its_coins_say(name, probability):
    X, y = STREAMS[name]
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


@pytest.mark.parametrize("sampler", ["uniform", 0.0, 1.5, -0.1, np.nan, None, True])
@pytest.mark.parametrize("learner", [okl.NystromAWV, okl.ProsNKONS])
def test_other_samplers_are_refused(learner, sampler):
    with pytest.raises(ValueError, match="sampler must be"):
        learner(okl.Gaussian(), sampler=sampler).partial_fit([[0.0]], [1.0])


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("spread", [0.2, 0.1, 0.05, 0.02, 0.01])
def test_nystrom_awv_on_ill_conditioned_dictionaries(spread, lam):
    """Clusters: the dictionary's kernel matrix has a condition number up to 1e15.

    Rounding the kernel's values to double precision moves the exact forecasts themselves; the
    learner may be off by a few times that, and by no more than 1e-8 where that is nothing.
    """
    rng = np.random.default_rng(1)
    centres = rng.uniform(-1, 1, (5, 2))
    X = centres[rng.integers(0, 5, 150)] + spread * rng.standard_normal((150, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernel = okl.Gaussian(1.0)
    sampler = okl.KORS(kernel, seed=0).partial_fit(X)
    assert np.linalg.cond(kernel(sampler.landmarks_)) > 1e10

    def rounded(A, B):
        return naive.gaussian(A, B).astype(float).astype(np.longdouble)

    found = okl.run(okl.NystromAWV(kernel, lam=lam, seed=0), X, y).predictions
    kept = list(sampler.indices_)
    exact = naive.nystrom_forecasts(naive.gaussian, X, y, lam, kept, True)
    moved = np.abs(naive.nystrom_forecasts(rounded, X, y, lam, kept, True) - exact).max()
    assert np.abs(found - exact).max() <= 1e-8 + 3 * moved
    if lam == 1.0:
        exact = naive.nystrom_forecasts(naive.gaussian, X, y, lam, kept, True, nugget=NUGGET)
        assert_close(found, exact.astype(float), rtol=1e-10)


def test_null_directions_count_in_kors_and_not_in_the_span():
    """The same point for ever: KORS keeps several copies, whose span is one direction."""
    X, y = np.full((300, 2), 0.5), np.ones(300)
    learner = okl.NystromAWV(okl.Gaussian(1.0), seed=0)
    run = okl.run(learner, X, y)
    assert learner.size > 1
    t = np.arange(300)
    np.testing.assert_allclose(run.predictions, t / (t + 2.0), rtol=1e-12)


def test_max_size_stops_the_dictionary_and_frees_the_past():
    X, y = stream(n=600)
    learner = okl.NystromAWV(okl.Gaussian(0.5), max_size=20, seed=1)
    run = okl.run(learner, X, y)
    free = okl.run(okl.NystromAWV(okl.Gaussian(0.5), seed=1), X, y)
    assert free.sizes[-1] > 20 == run.sizes[-1] == learner.size
    full = int(np.argmax(run.sizes == 20))
    np.testing.assert_array_equal(run.predictions[: full + 1], free.predictions[: full + 1])
    for name in ("past", "labels", "Phi", "columns"):
        assert getattr(learner, f"_{name}").size == 0


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
def test_nystrom_certificate_is_exact_in_its_changing_space(name, lam):
    X, y = STREAMS[name]
    kernel = okl.Laplacian(0.7)
    run = okl.run(okl.NystromAWV(kernel, lam=lam, mu=0.1, seed=3), X, y)
    kept = okl.KORS(kernel, alpha=0.1, seed=3).partial_fit(X).indices_
    expected = []
    for t in range(1, len(y) + 1):
        atoms = np.unique(X[kept[kept < t]], axis=0)
        values, vectors = np.linalg.eigh(naive.laplacian(atoms, atoms, 0.7))
        F = naive.laplacian(X[:t], atoms, 0.7) @ vectors / np.sqrt(values)
        expected.append(naive.penalised_comparator(F @ F.T, y[:t], lam))
    np.testing.assert_allclose(run.certificate.comparator, expected, rtol=1e-9)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize("mu", [1.0, 0.01])
def test_nystrom_regret_stays_under_its_bound(name, lam, mu):
    X, y = STREAMS[name]
    run = okl.run(okl.NystromAWV(okl.Gaussian(0.7), lam=lam, mu=mu, seed=3), X, y)
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()
