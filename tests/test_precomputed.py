"""Learners on the indices of a kernel matrix play as those on the vectors that it was made of."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.components.kernels import compute_gradients
from tests.checks import one_by_one

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(-1, 1, (150, 3))
GAUSSIAN = okl.Gaussian(0.8)
MATRIX = okl.Precomputed(GAUSSIAN(POINTS))
ROWS = RNG.permutation(np.arange(240) % 150)[:, None].astype(float)  # some come twice
Y = np.where(np.sin(3 * POINTS[:, 0]) * POINTS[:, 1] > 0, 1.0, -1.0)[ROWS[:, 0].astype(int)]
LEARNERS = {
    "KernelAWV": okl.KernelAWV,
    "KernelRidge": okl.KernelRidge,
    "NystromAWV": lambda k: okl.NystromAWV(k, mu=0.1),
    "KONS": okl.KONS,
    "SketchedKONS": lambda k: okl.SketchedKONS(k, gamma=0.5),
    "ProsNKONS": okl.ProsNKONS,
    "FrequentKONS": okl.FrequentKONS,
    "POMDR": okl.POMDR,
    "POMD": okl.POMD,
    "KernelOGD": okl.KernelOGD,
    "BOGD": lambda k: okl.BOGD(k, budget=30),
    "Projectron": okl.Projectron,
    "KRLS": lambda k: okl.KRLS(k, threshold=0.1),
    "NOGD": lambda k: okl.NOGD(k, budget=40, rank=20),
    "SkeGD": lambda k: okl.SkeGD(k, budget=64, sketch=32, rank=20),
    "BAO2KS": lambda k: okl.BAO2KS([k], budget=30),
}
every_learner = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


@every_learner
def test_forecasts_are_those_on_vectors(make, tmp_path):
    vectors = POINTS[ROWS[:, 0].astype(int)]
    expected = okl.run(make(GAUSSIAN), vectors, Y)
    learner = make(MATRIX)
    run = okl.run(learner, ROWS.astype(int), Y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-7, atol=1e-9)
    assert_array_equal(run.sizes, expected.sizes)
    assert_allclose(one_by_one(make(MATRIX), ROWS, Y), run.predictions, rtol=1e-9, atol=1e-12)
    learner.save(tmp_path / "learner.npz")
    again = okl.load(tmp_path / "learner.npz")
    assert_array_equal(again.predict(ROWS), learner.predict(ROWS))


def test_features_samplers_and_comparators():
    vectors = POINTS[ROWS[:, 0].astype(int)]
    sampler = okl.KORS(MATRIX, alpha=0.1).partial_fit(ROWS)
    twin = okl.KORS(GAUSSIAN, alpha=0.1).partial_fit(vectors)
    assert_array_equal(sampler.indices_, twin.indices_)
    features = okl.NystromFeatures(sampler.landmarks_, MATRIX)
    run = okl.run(okl.PKAWV(features), ROWS, Y)
    features = okl.NystromFeatures(twin.landmarks_, GAUSSIAN)
    expected = okl.run(okl.PKAWV(features), vectors, Y)
    assert_allclose(run.predictions, expected.predictions, rtol=1e-6, atol=1e-9)
    ours = okl.run(okl.KernelAWV(MATRIX), ROWS, Y).regret(MATRIX, 1.0)
    assert_allclose(ours, okl.run(okl.KernelAWV(GAUSSIAN), vectors, Y).regret(GAUSSIAN, 1.0))


@pytest.mark.parametrize("played", [0, 50])
@pytest.mark.parametrize("bad", [-1.0, 150.0, 0.5])
@every_learner
def test_rows_that_the_matrix_lacks_change_nothing(make, bad, played):
    message = rf"X has {bad:g}; .* integers from 0 to 149"
    learner, wrong = make(MATRIX), ROWS.copy()
    wrong[200] = bad
    if played:
        learner.learn_one([3.0], 1.0).partial_fit(ROWS[:played], Y[:played])
    rounds, before = learner.rounds, learner.predict(ROWS)
    for call in (
        lambda: learner.predict_one(np.array([bad])),
        lambda: learner.learn_one(np.array([bad]), 1.0),
        lambda: learner.predict(wrong),
        lambda: learner.partial_fit(wrong, Y),
        lambda: okl.run(learner, wrong, Y),
        lambda: okl.run(okl.MultiOutput(learner), wrong, Y[:, None]),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert learner.rounds == rounds
    assert_array_equal(learner.predict(ROWS), before)


def test_wrong_matrices_and_widths():
    K = MATRIX.K
    for wrong, message in (
        (K[:9], "K must be a square matrix"),
        (K + np.triu(K, 1), "symmetric; K - K' is"),
        (-K, "without negative entries on its diagonal"),
    ):
        with pytest.raises(ValueError, match=message):
            okl.Precomputed(wrong)
    with pytest.raises(ValueError, match="X has 3 columns; with okl.Precomputed"):
        okl.KernelAWV(MATRIX).partial_fit(POINTS, Y[:150])
    with pytest.raises(ValueError, match="a function of vectors, which has gradients"):
        okl.learned_metric(MATRIX, ROWS, Y)
    with pytest.raises(ValueError, match="which has gradients"):
        compute_gradients(MATRIX, ROWS, ROWS, Y)
    with pytest.raises(FloatingPointError):  # a wrapper that changes inputs makes them no indices
        okl.Standardized(okl.KernelAWV(MATRIX)).partial_fit(ROWS, Y)
