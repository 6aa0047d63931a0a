"""Every learner that is a kernel expansion, with its budget full, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import oklnumba as okl
from tests.battery import assert_refused
from tests.compiled import COMPILED
from tests.expansions import KERNEL, N, stream

# ---- the battery's main promises where its default budgets are never full ----


FULL = {
    "KernelOGD": lambda: okl.KernelOGD(KERNEL, budget=15, radius=1.0, lam=0.01),
    "BOGD": lambda: okl.BOGD(KERNEL, budget=15, gamma=1.5),
    "BOGD++": lambda: okl.BOGD(KERNEL, budget=15, weighted=True, lam=0.1),
    "Projectron": lambda: okl.Projectron(KERNEL, threshold=0.0, budget=15),
    "NOGD": lambda: okl.NOGD(KERNEL, budget=30, rank=10),
    "SkeGD": lambda: okl.SkeGD(KERNEL, budget=30, sketch=16, columns=12, rank=6, period=9),
    "SkeGD, one map": lambda: okl.SkeGD(KERNEL, budget=30, sketch=16, columns=12, rank=6),
    "B(AO)2KS": lambda: okl.BAO2KS(KERNEL, budget=25, beta=1.1),
    "B(AO)2KS, several": lambda: okl.BAO2KS([KERNEL, okl.Gaussian(0.3)], budget=25),
    "POMDR": lambda: okl.POMDR(KERNEL, budget=20),
}
full = pytest.mark.parametrize("name", FULL)


@full
def test_full_budgets_in_bulk_and_by_hand(name):
    X, y = stream()
    run = okl.run(FULL[name](), X, y)
    learner, forecasts = FULL[name](), []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
    np.testing.assert_allclose(forecasts, run.predictions, rtol=1e-9, atol=1e-12)
    assert learner.size == run.sizes[-1]


@full
def test_full_budgets_never_look_ahead(name):
    X, y = stream()
    run = okl.run(FULL[name](), X, y)
    for t in range(5, N, 23):
        other = y.copy()
        other[t:] *= -1
        changed = okl.run(FULL[name](), X, other)
        np.testing.assert_array_equal(changed.predictions[: t + 1], run.predictions[: t + 1])
        np.testing.assert_array_equal(changed.sizes[:t], run.sizes[:t])


@full
def test_full_budgets_go_on_from_any_save(name, tmp_path):
    X, y = stream()
    going, stopping = FULL[name](), FULL[name]()
    for t in range(0, N, 7):
        going.partial_fit(X[t : t + 7], y[t : t + 7])
        stopping.partial_fit(X[t : t + 7], y[t : t + 7])
        stopping.save(tmp_path / "learner.npz")
        stopping = okl.load(tmp_path / "learner.npz")
        np.testing.assert_array_equal(stopping.predict(X), going.predict(X))
        assert stopping.size == going.size


@full
def test_memory_is_bounded_by_the_budget(name):
    X, y = stream(4000 if COMPILED else 400, seed=9)
    y = np.random.default_rng(1).choice([-1.0, 1.0], len(y))  # nothing to learn: a loss each round
    learner = FULL[name]()

    def held():
        return sum(v.nbytes for v in vars(learner).values() if isinstance(v, np.ndarray))

    learner.partial_fit(X[:300], y[:300])
    before = held()
    learner.partial_fit(X[300:], y[300:])
    if name != "SkeGD":  # with a period, one atom for every so many losses
        assert held() == before
    assert np.isfinite(learner.predict(X)).all()


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows")
@pytest.mark.parametrize("size", [1e80, 1e110, 1e160])
@full
def test_an_overflow_of_the_kernel_is_an_error_that_names_a_round(name, size):
    """k(x, x) overflows before k(x, atoms) does: no learner may go on as if it were nothing."""
    X, y = stream(200)
    X[100] *= size
    learner = FULL[name]().set_params(
        **{"kernels" if "AO" in name else "kernel": okl.Polynomial(3)}
    )
    try:
        run = okl.run(learner, X, y)
    except FloatingPointError as error:
        assert "round" in str(error) and "reset" in str(error)
        assert 100 <= int(str(error).split("round ")[1].split(":")[0]) <= 200
    else:
        assert np.isfinite(run.predictions).all() and np.isfinite(learner.predict(X[:50])).all()
        if hasattr(learner, "coefficients"):
            assert np.isfinite(learner.coefficients).all() and (learner.coefficients != 0).any()


# ---- errors ----


@pytest.mark.parametrize(
    ("cls", "params", "message"),
    [
        (okl.POMDR, {"budget": 1}, "budget must be an integer >= 2"),
        (okl.POMDR, {"budget": 21}, "budget must be even, for"),
        (okl.POMDR, {"budget": 401}, "budget must be even, for"),
        (okl.POMDR, {"switch_size": 20, "budget": 20}, "switch_size.* budget = 20"),
        (okl.POMDR, {"kernel": okl.Polynomial.unchecked(coef0=-1.0)}, "coef0"),
        (okl.BOGD, {"budget": 1}, "budget must be an integer >= 2"),
        (okl.KernelOGD, {"budget": 1}, "budget must be an integer >= 2"),
        (okl.KernelOGD, {"eta": 0.5, "lam": 2.0}, "lam must be less than"),
        (okl.Projectron, {"budget": 1}, "budget must be an integer >= 2"),
        (okl.NOGD, {"budget": 10, "rank": 11}, "rank must be at most budget = 10"),
        (okl.NOGD, {"budget": 1}, "budget must be an integer >= 2"),
        (okl.SkeGD, {"budget": 50}, "columns must be at most budget = 50"),
        (okl.SkeGD, {"sketch": 301}, "sketch must be a multiple of blocks = 4"),
        (okl.SkeGD, {"rank": 61}, "rank must be at most sketch and columns"),
        (okl.BAO2KS, {"kernels": [okl.Gaussian()], "budget": 1}, "budget must be an integer >= 2"),
        (okl.BAO2KS, {"kernels": []}, "kernels"),
        (okl.BAO2KS, {"kernels": [okl.Gaussian(), 3]}, "kernels"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_changes(cls, params, message):
    params = params if "kernels" in params else {"kernel": okl.Gaussian()} | params
    X, y = stream(20)
    learner = assert_refused(cls, params, message, lambda one: one.partial_fit(X, y))
    assert learner.rounds == 0 and vars(learner) == learner.get_params(deep=False)


@pytest.mark.parametrize("cls", [okl.POMDR, okl.POMD, okl.Projectron, okl.KernelOGD, okl.BOGD])
def test_labels_that_are_not_signs_are_refused_and_the_learner_stays(cls):
    X, y = stream(40)
    learner, twin = (cls(okl.Gaussian()).partial_fit(X, y) for _ in range(2))
    for bad in (0.0, 2.0, 0.5):
        labels = y.copy()
        labels[7] = bad
        with pytest.raises(ValueError, match=rf"y has {bad:g} at row 7.*-1 and \+1"):
            learner.partial_fit(X, labels)
    np.testing.assert_array_equal(learner.predict(X), twin.predict(X))
    assert learner.rounds == 40
