"""Every kernel expansion with a full budget; hyper-parameters that do not fit together."""

import numpy as np
import pytest

import oklnumba as okl
from tests import test_all_learners as battery
from tests import test_saving as saving
from tests.checks import COMPILED
from tests.streams import KERNEL, classes

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


# Those of which the battery has no variant with a budget that is full.
@pytest.mark.parametrize("name", ["BOGD++", "NOGD", "SkeGD", "SkeGD, one map"])
def test_what_the_battery_tests_holds_for_full_budgets(name, tmp_path):
    battery.test_a_run_is_the_loop_written_by_hand(FULL[name])
    battery.test_a_forecast_never_depends_on_its_own_or_a_later_label(FULL[name])
    for t in (30, 300) if COMPILED else (70,):
        saving.test_save_load_and_copies_go_on_bit_for_bit(FULL[name], t, tmp_path)


@full
def test_memory_is_bounded_by_the_budget(name):
    X, y = classes(4000 if COMPILED else 400, seed=9)
    y = np.random.default_rng(1).choice([-1.0, 1.0], len(y))  # noise: a loss in each round
    learner = FULL[name]()

    def held():
        return sum(array.nbytes for array in learner._state)

    learner.partial_fit(X[:300], y[:300])
    before = held()
    assert before > 8 * learner.size
    learner.partial_fit(X[300:], y[300:])
    if name != "SkeGD":  # which stores one more atom a period
        assert held() == before
    assert np.isfinite(learner.predict(X)).all()
