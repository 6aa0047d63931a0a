"""POMD and POMDR against the textbook."""

import math

import numba
import numpy as np
import pytest

import oklnumba as okl
from tests.checks import assert_close
from tests.reference import naive, naive_expansions
from tests.streams import N, classes

KERNELS = [okl.Gaussian(1.0), okl.Laplacian(0.7), okl.Polynomial(2, coef0=0.5), okl.Linear()]


def textbook(k, X, y, learner):
    """Return the textbook run of a learner with these hyper-parameters."""
    T = learner.horizon
    budget = getattr(learner, "budget", np.inf)
    rate_scale = getattr(learner, "rate_scale", 1.0)

    def rounds(t):
        return T or max(t, 2)

    def switch_size(t):
        if not isinstance(learner, okl.POMDR):
            return np.inf
        return learner.switch_size or min(math.ceil(15 * math.log(rounds(t))), budget - 1)

    def ald(t):
        return learner.ald_scale * rounds(t) ** -learner.zeta

    return naive_expansions.pomdr(
        k(X, X), y, learner.radius, learner.hints, ald, switch_size, budget, T, rate_scale
    )


LEARNERS = {
    "POMDR": lambda k: okl.POMDR(k, radius=5.0, switch_size=15, budget=30, horizon=N, zeta=0.9),
    "POMDR, by the rounds": lambda k: okl.POMDR(k, budget=60),
    "POMDR, few hints": lambda k: okl.POMDR(k, hints=1, switch_size=8, budget=10, rate_scale=1.0),
    "OMDR": lambda k: okl.POMDR(k, radius=2.0, switch_size=1, budget=20, horizon=N),
    "POMDR, t-bar = T": lambda k: okl.POMDR(k, switch_size=5, budget=20, horizon=7, ald_scale=0.1),
    "POMD": lambda k: okl.POMD(k, radius=5.0, horizon=N, zeta=0.6),
    "POMD, anytime": lambda k: okl.POMD(k, zeta=0.5),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_pomdr_equals_the_textbook(kernel, name):
    X, y = classes(N)
    learner = LEARNERS[name](kernel)
    run = okl.run(learner, X, y)
    forecasts, supports, norms, deltas, _ = textbook(naive.kernel_function(kernel), X, y, learner)
    assert_close(run.predictions, forecasts)
    np.testing.assert_array_equal(run.sizes, [len(S) for S in supports])
    np.testing.assert_array_equal(learner.atoms, X[supports[-1]])
    assert_close(learner.norm, norms[-1])
    assert_close(learner.diary.alignment, deltas.sum())
    assert learner.diary.size == len(supports[-1])


def test_the_printed_norm_update_would_be_wrong():
    """Errata 26, negative control: lambda |grad|^2 in place of lambda^2 |grad|^2 is wrong."""
    learner = okl.POMDR(okl.Gaussian(1.0), radius=1.0).learn_one([0.0], 1.0)
    rate = 1.0 / math.sqrt(3.0)
    assert learner.norm == pytest.approx(rate) and abs(learner.norm - math.sqrt(rate)) > 0.1


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too few rounds for removals")
def test_the_diary():
    X, y = classes(N)
    learner = okl.POMDR(okl.Gaussian(1.0), switch_size=15, budget=30, horizon=N)
    assert learner.diary == (None, 0, 0.0, 0, 0)
    supports = textbook(naive.gaussian, X, y, learner)[1]
    sizes = np.array([len(S) for S in supports])
    learner.partial_fit(X, y)
    diary = learner.diary
    assert diary.switch_round == int(np.argmax(sizes == 15)) + 2
    assert diary.removals == int((np.diff(sizes) < 0).sum()) > 3
    narrow = okl.POMDR(okl.Gaussian(4.0), horizon=N).partial_fit(X, y)
    assert narrow.diary.switch_round is None and narrow.diary.projections > 50
    assert narrow.diary.removals == 0


@pytest.mark.parametrize(
    ("points", "homes"),
    [
        ([-1.0, 1.0, 0.0, 3.0], [0, 1]),
        ([1.0, -1.0, 0.0, -3.0], [0, 1]),
        ([4.0, 1.0, -1.0, 0.0, 6.0, -3.0], [1, 0, 2]),  # nearer to two others than to the first
        ([2.0, 2.0, 2.0, 2.0], [0, 0]),  # repeated inputs: all kept atoms are equally near
        ([0.0, 2.0, 0.0, 2.0, 0.0, 1.0], [1, 0, 0]),  # three ties of two kinds
    ],
    ids=str,
)
def test_a_dropped_atom_at_equal_distances_goes_to_the_first(points, homes):
    """Repeated and symmetric inputs have kernel values that are equal to the bit."""
    kernel, budget = okl.Gaussian(1.0), len(points)
    half = budget // 2
    X, y = np.array(points)[:, None], np.where(np.arange(budget) % 3, 1.0, -1.0)
    row = kernel(X[half:], X[:half])
    assert (np.count_nonzero(row == row.max(axis=1, keepdims=True), axis=1) > 1).any()
    params = {"radius": 0.1, "switch_size": 1, "horizon": 50}  # a loss each round, all atoms kept
    before = okl.POMDR(kernel, budget=budget + 2, **params).partial_fit(X, y)
    learner = okl.POMDR(kernel, budget=budget, **params).partial_fit(X, y)
    assert (before.size, learner.size, learner.diary.removals) == (budget, half, 1)
    merged = before.coefficients[:half].copy()
    for j, home in enumerate(homes):
        merged[home] += before.coefficients[half + j]
    merged *= 0.1 / math.sqrt(merged @ kernel(X[:half]) @ merged)
    np.testing.assert_array_equal(learner.atoms, X[:half])
    assert_close(learner.coefficients, merged)


def test_a_t_bar_of_the_horizon_leaves_that_round_to_pomd_after_a_save_too(tmp_path):
    """Errata 31. The buffers have room for 64 atoms and must grow, the factor too."""
    X, _ = classes(N if not numba.config.DISABLE_JIT else 80)
    y = np.random.default_rng(3).choice([-1.0, 1.0], len(X))
    parameters = {"radius": 0.01, "switch_size": 64, "budget": 100, "ald_scale": 0.0}
    learner = okl.POMDR(okl.Gaussian(0.3), horizon=65, **parameters)
    learner.partial_fit(X[:64], y[:64])
    assert (learner.size, learner.diary.switch_round) == (64, 65)
    learner.save(tmp_path / "learner.npz")
    again = okl.load(tmp_path / "learner.npz")
    forecasts, supports, _, _, residuals = textbook(
        lambda A, B: naive.gaussian(A, B, 0.3), X, y, learner
    )
    for one in (learner, again):
        assert_close(okl.run(one, X[64:], y[64:]).predictions, forecasts[64:])
        assert one.size == len(supports[-1]) and len(residuals) == 65
    np.testing.assert_array_equal(again.predict(X), learner.predict(X))


@pytest.mark.skipif(numba.config.BOUNDSCHECK, reason="loops that check do not vectorise alike")
@pytest.mark.parametrize(
    "kernel", [okl.Gaussian(4.0), okl.Polynomial(3), okl.Laplacian(50.0, norm=1)]
)
@pytest.mark.parametrize("d", [20, 600])  # rounds one by one, and several in a pass
def test_removals_have_the_same_bits_whether_kernel_values_were_kept_or_lost(kernel, d, tmp_path):
    """A file has none of the rounds in which atoms joined."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, d)), rng.choice([-1.0, 1.0], 200)
    learner = okl.POMDR(kernel, budget=40, switch_size=10, horizon=200).partial_fit(X[:95], y[:95])
    learner.save(tmp_path / "learner.npz")
    again = okl.load(tmp_path / "learner.npz")
    removals = learner.diary.removals
    for one in (learner, again):
        one.partial_fit(X[95:], y[95:])
    assert 0 < removals < learner.diary.removals
    np.testing.assert_array_equal(again.coefficients, learner.coefficients)
