"""Every kernel expansion with a full budget; hyper-parameters that do not fit together."""

import numpy as np
import pytest

import oklnumba as okl
from tests import test_all_learners as battery
from tests import test_saving as saving
from tests.battery import assert_refused
from tests.compiled import COMPILED
from tests.expansions import KERNEL, stream

# ---- what the battery tests, with budgets that are full ----


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
def test_what_the_battery_tests_holds_for_full_budgets(name, tmp_path):
    battery.test_a_run_is_the_loop_written_by_hand(FULL[name])
    battery.test_a_forecast_never_depends_on_its_own_or_a_later_label(FULL[name])
    for t in (30, 300) if COMPILED else (70,):
        saving.test_save_load_and_copies_go_on_bit_for_bit(FULL[name], t, tmp_path)


@full
def test_memory_is_bounded_by_the_budget(name):
    X, y = stream(4000 if COMPILED else 400, seed=9)
    y = np.random.default_rng(1).choice([-1.0, 1.0], len(y))  # noise: a loss in each round
    learner = FULL[name]()

    def held():
        return sum(v.nbytes for v in vars(learner).values() if isinstance(v, np.ndarray))

    learner.partial_fit(X[:300], y[:300])
    before = held()
    learner.partial_fit(X[300:], y[300:])
    if name != "SkeGD":  # which stores one more atom a period
        assert held() == before
    assert np.isfinite(learner.predict(X)).all()


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows")
@pytest.mark.parametrize("size", [1e80, 1e110, 1e160])
@full
def test_an_overflow_of_the_kernel_is_an_error_that_names_a_round(name, size):
    """k(x, x) overflows before k(x, atoms) does: no learner may go on unnoticed."""
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


# ---- hyper-parameters that do not fit together ----


@pytest.mark.parametrize(
    ("cls", "params", "message"),
    [
        (okl.POMDR, {"budget": 21}, "budget must be even, for"),
        (okl.POMDR, {"switch_size": 20, "budget": 20}, "switch_size.* budget = 20"),
        (okl.KernelOGD, {"eta": 0.5, "lam": 2.0}, "lam must be less than"),
        (okl.NOGD, {"budget": 10, "rank": 11}, "rank must be at most budget = 10"),
        (okl.SkeGD, {"budget": 50}, "columns must be at most budget = 50"),
        (okl.SkeGD, {"sketch": 301}, "sketch must be a multiple of blocks = 4"),
        (okl.SkeGD, {"rank": 61}, "rank must be at most sketch and columns"),
        (okl.ProsNKONS, {"sampler": 0.5, "mu": 2.0}, "mu=2.0 would be ignored"),
        (okl.BAO2KS, {"kernels": [KERNEL, KERNEL], "beta": 1.5}, "beta=1.5 would be ignored"),
        (okl.BAO2KS, {"kernels": []}, "kernels must be a kernel, or a list"),
        (okl.BAO2KS, {"kernels": [KERNEL, 3]}, "kernels must be an oklnumba kernel.* but is 3"),
    ],
)
def test_hyper_parameters_that_do_not_fit_are_refused(cls, params, message):
    params = params if "kernels" in params else {"kernel": KERNEL} | params
    X, y = stream(20)
    assert_refused(cls, params, message, lambda one: one.partial_fit(X, y))
