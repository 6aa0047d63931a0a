"""Single rounds from Python: what is kept from one to the next changes nothing."""

import gc
import types
from unittest.mock import Mock

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.params import clone
from oklnumba.learners.self_tuning.groups import Groups
from tests.battery import contents
from tests.checks import COMPILED, refused

APART = type, types.ModuleType, types.FunctionType  # what leads to everything there is
GROWING = [
    okl.KRLS(okl.Gaussian(0.2), threshold=1e-3),
    okl.POMDR(okl.Gaussian(0.2), budget=1000, switch_size=100),
    okl.KernelOGD(okl.Gaussian(0.2)),
    okl.Projectron(okl.Gaussian(0.2)),
]
LEARNERS = GROWING + [
    okl.PKAWV(okl.TaylorFeatures(3)),
    okl.PKAWV(okl.FourierFeatures(20), lam=0.1, forecaster="ridge"),
    okl.KernelAWV(okl.Gaussian(0.2)),
    okl.KernelRidge(okl.Linear(), lam=1e-12),
    okl.NystromAWV(okl.Gaussian(0.2)),
    okl.SelfTuning(budget=100),
    okl.FOGD(okl.TaylorFeatures(2)),
    okl.FOGD(okl.FourierFeatures(20)),
    okl.OGD(),
    okl.AdaptiveFTRL("adagrad"),
    okl.BOGD(okl.Gaussian(1.0), budget=3),
    okl.WithFeatures(okl.TaylorFeatures(2), okl.OGD()),
    okl.Experts([okl.PKAWV(okl.TaylorFeatures(2), lam=c) for c in (1.0, 0.1)]),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_single_rounds_have_the_bits_of_lists_which_nothing_is_kept_for(learner):
    """Whatever comes between them: buffers that grow, rows together, rounds that are refused."""
    kept, other = clone(learner), clone(learner)
    rng = np.random.default_rng(1)
    for step in range(150 if isinstance(learner, okl.SelfTuning) else 300):
        x, label = rng.uniform(-1, 1, 3), rng.choice([-1.0, 1.0])
        points = [x, x, [0.0, 0.5, -0.5], [-0.0, 0.5, -0.5]]
        for point in points[step % 4 :] + points[: step % 4]:  # often x at last
            assert kept.predict_one(np.array(point)) == other.predict_one(list(point)), step
        for _ in range(1 + step % 3 // 2):  # the same round again, which no forecast went before
            column = np.stack([x, -x], axis=1)[:, 0]  # not contiguous
            kept.learn_one([x, column][step % 2], [label, int(label)][step % 4 // 2])
            other.learn_one(x.tolist(), label)
        if step % 50 == 49:
            refused("y", kept.learn_one, x, np.nan)
            X = rng.uniform(-1, 1, (6, 3))
            for one in (kept, other):
                one.partial_fit(X, np.sign(X[:, 2]))
            np.testing.assert_array_equal(kept.predict(X), other.predict(X))
    assert kept.size == other.size and (kept.size > 2 * kept._FIRST_ROOM or learner not in GROWING)


RIDGES = [
    okl.PKAWV(okl.TaylorFeatures(3), discount=0.9),
    okl.NystromAWV(okl.Gaussian(1.0), sampler=0.3, discount=0.9),
    okl.SelfTuning(budget=8),
]


@pytest.mark.skipif(not COMPILED, reason="the bits of compiled code are the point")
@pytest.mark.parametrize("learner", RIDGES, ids=repr)
@pytest.mark.parametrize("n", [*range(2, 27), 33, 150])
def test_rounds_that_wait_are_in_all_that_is_saved_measured_and_forecast(learner, n):
    """Mirrored rows, forecast before, have the same distances to atoms in the middle."""
    rng = np.random.default_rng(n)
    X, y = rng.integers(-2, 3, (n, 1)) / 2, rng.choice([-1.0, 1.0], n)
    single, rows = clone(learner), clone(learner)
    run = okl.run(rows, X, y)
    for t in range(n):
        for x in [X[t], -X[t]][t % 7 // 3 :][:: t % 2 * 2 - 1]:  # both, or one, or none
            forecast = single.predict_one(x)
            assert (x != X[t]).any() or abs(forecast - run.predictions[t]) < 1e-9
        single.learn_one(X[t], y[t])
    assert single._matrices() == rows._matrices()
    assert contents(single) == contents(rows)


def test_no_round_goes_on_from_a_forecast_that_was_interrupted(monkeypatch):
    """What groups hold is still of the input before."""
    rng = np.random.default_rng(2)
    X, y = rng.uniform(-1, 1, (200, 3)), rng.choice([-1.0, 1.0], 200)
    kept, other = (okl.SelfTuning(budget=8).partial_fit(X, y) for _ in range(2))
    kept.predict_one(X[1])
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Groups, "calls", Mock(side_effect=KeyboardInterrupt))
        kept.predict_one(X[0])
    kept.learn_one(X[0], 1.0)
    other.learn_one(X[0], 1.0)
    np.testing.assert_array_equal(kept.predict(X), other.predict(X))


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
