"""Every learner in every wrapper, at more rows than a block holds: bulk, then single rounds."""

import os

import numpy as np
import pytest

import oklnumba as okl
from tests.battery import LEARNERS, make
from tests.checks import COMPILED

# SelfTuning plays blocks of 1,024 rows, others have room for 504.
N = 3000 if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else 1200
SINGLE = 10  # rounds at the end
WRAPPERS = {
    "Standardized": okl.Standardized,
    "Experts": lambda one: okl.Experts([one, okl.OGD(eta=0.01)]),
    "Lags": okl.Lags,
    "Horizon": lambda one: okl.Horizon(one, steps=5, season=(2, 9)),
    "SelfTuning": lambda one: okl.SelfTuning(experts=[one], budget=20),
    "WithFeatures": lambda one: okl.WithFeatures(okl.FourierFeatures(7, sigma=1.0), one),
    "Intervals": okl.Intervals,
    "Monitored": okl.Monitored,
    "MultiOutput": okl.MultiOutput,
    "OneVsRest": lambda one: okl.OneVsRest(one, [-1.0, 1.0]),
    "OnlineToBatch": okl.OnlineToBatch,
    "Tree": okl.Tree,
}
PLAIN = [cls for cls in LEARNERS if "learner" not in make(cls).get_params(deep=False)]


def can_wrap(name, cls):
    try:
        WRAPPERS[name](make(cls))
    except ValueError:  # of another kind, such as WithFeatures around a kernel learner
        return False
    return True


PAIRS = [(name, cls) for name in WRAPPERS for cls in PLAIN if can_wrap(name, cls)]


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
@pytest.mark.filterwarnings("ignore:the (Taylor basis|kernel)")
@pytest.mark.parametrize("name, cls", PAIRS, ids=lambda one: getattr(one, "__name__", one))
def test_an_inner_learner_gets_blocks_of_its_own_size(name, cls):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(N) > 0.0, 1.0, -1.0)
    y = 0.5 * y if name in ("Lags", "Horizon") else y  # whose changes are within bounds of 1
    labels = np.column_stack([y, -y]) if name == "MultiOutput" else y
    whole, last = WRAPPERS[name](make(cls)), N - SINGLE
    expected = np.asarray(okl.run(whole, X, labels).predictions[last:], dtype=float)
    learner = WRAPPERS[name](make(cls))
    okl.run(learner, X[:last], labels[:last])
    if name == "OnlineToBatch":  # whose predictions are of another function
        forecasts, last = okl.run(learner, X[last:], labels[last:]).predictions, N
    else:
        forecasts = []
    for x, label in zip(X[last:], labels[last:], strict=True):
        forecasts.append(np.asarray(learner.predict_one(x), dtype=float))
        learner.learn_one(x, label)
    np.testing.assert_allclose(forecasts, expected, rtol=1e-6, atol=1e-6)
