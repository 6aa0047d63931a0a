"""Single rounds from Python: what is kept from one to the next changes nothing."""

import gc
import types

import numpy as np
import pytest

import oklnumba as okl

APART = type, types.ModuleType, types.FunctionType  # what leads to everything there is
LEARNERS = {
    "PKAWV": lambda: okl.PKAWV(okl.TaylorFeatures(3)),
    "PKAWV ridge": lambda: okl.PKAWV(okl.FourierFeatures(20), lam=0.1, forecaster="ridge"),
    "LinearAWV": lambda: okl.LinearAWV(),
    "FOGD on Taylor": lambda: okl.FOGD(okl.TaylorFeatures(2)),
    "FOGD": lambda: okl.FOGD(okl.FourierFeatures(20)),
    "OGD": lambda: okl.OGD(),
    "AdaGrad": lambda: okl.AdaptiveFTRL("adagrad"),
    "KRLS": lambda: okl.KRLS(okl.Gaussian(1.0), threshold=0.1),
    "POMDR": lambda: okl.POMDR(okl.Gaussian(1.0)),
    "KernelOGD": lambda: okl.KernelOGD(okl.Gaussian(1.0)),
    "BOGD": lambda: okl.BOGD(okl.Gaussian(1.0), budget=3),
    "Projectron": lambda: okl.Projectron(okl.Gaussian(1.0)),
    "lifted": lambda: okl.WithFeatures(okl.TaylorFeatures(2), okl.OGD()),
    "Experts": lambda: okl.Experts([okl.PKAWV(okl.TaylorFeatures(2), lam=c) for c in (1.0, 0.1)]),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_any_order_of_calls_has_the_bits_of_lists_which_nothing_is_kept_for(name):
    kept, other = LEARNERS[name](), LEARNERS[name]()
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (6, 3)).round(1)
    points[1] = [0.0, 0.5, -0.5]
    points[2] = [-0.0, 0.5, -0.5]
    for step in range(300):
        x, label = points[rng.integers(6)].copy(), rng.choice([-1.0, 1.0])
        match rng.integers(5):
            case 0 | 1:
                assert kept.predict_one(x) == other.predict_one(x.tolist()), step
            case 2:
                kept.learn_one(x, label)
                other.learn_one(x.tolist(), label)
            case 3:
                with pytest.raises(ValueError, match="y"):
                    kept.learn_one(x, np.nan)
                np.testing.assert_array_equal(kept.predict(points), other.predict(points))
            case 4:
                kept.partial_fit(points, np.sign(points[:, 2]))
                other.partial_fit(points, np.sign(points[:, 2]))
    assert kept.rounds == other.rounds > 100


@pytest.mark.parametrize("make", [
    lambda: okl.KRLS(okl.Gaussian(0.2), threshold=1e-3),
    lambda: okl.POMDR(okl.Gaussian(0.2), budget=1000, switch_size=100),
    lambda: okl.KernelOGD(okl.Gaussian(0.2)),
    lambda: okl.Projectron(okl.Gaussian(0.2)),
])  # fmt: skip
def test_machine_code_that_is_kept_meets_buffers_that_have_grown(make):
    kept, other = make(), make()
    rng = np.random.default_rng(1)
    for step in range(300):
        x, label = rng.uniform(-1, 1, 3), rng.choice([-1.0, 1.0])
        assert kept.predict_one(x) == other.predict_one(x.tolist()), step
        kept.learn_one(x, label)
        other.learn_one(x.tolist(), label)
    assert kept.size == other.size > 2 * kept._FIRST_ROOM


def test_what_a_learner_holds_is_not_numba():
    """As river adds it up for its users, from object to object."""
    learner = okl.KRLS(okl.Gaussian(1.0)).learn_one([0.0, 1.0], 1.0)
    x = np.array([0.5, 0.5])
    for _ in range(3):
        learner.predict_one(x)
        learner.learn_one(x, 1.0)
    seen, pending = {}, [learner]
    while pending:
        found = gc.get_referents(*pending)
        pending = [one for one in found if id(one) not in seen and not isinstance(one, APART)]
        seen |= {id(one): one for one in pending}
    numbas = {type(one).__module__ for one in seen.values()}
    assert not [name for name in numbas if name.startswith(("numba", "llvmlite"))]
