"""SelfTuning(experts=[...]): models of the user as members, beside the definition."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge, SGDRegressor

import oklnumba as okl
from oklnumba.learners.self_tuning import settings
from tests.checks import COMPILED, refused, troubled
from tests.reference import naive_self_tuning

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
N = 300
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 3))
Y = 5.0 + X @ [1.0, -1.0, 0.5] + 0.1 * RNG.standard_normal(N)
ROUGH = 5.0 + np.sign(np.sin(40.0 * X[:, 0])) + 0.1 * RNG.standard_normal(N)
SIGNS = np.where(Y > 5.1, 1.0, -1.0)
COLUMNS = np.column_stack([Y, SIGNS])
BUDGET = 16
FOGD = okl.FOGD(eta=0.1, loss="squared")


class Oracle:
    """Knows the function of ROUGH, but not the noise."""

    def predict_one(self, x):
        return 5.0 + np.sign(np.sin(40.0 * x[0]))

    def learn_one(self, x, y):
        pass


class Broken(Oracle):
    """Forecasts NaN from round 101 on."""

    rounds = 0

    def learn_one(self, x, y):
        self.rounds += 1

    def predict_one(self, x):
        return 1.0 if self.rounds < 100 else float("nan")


class Diverging(okl.Learner):
    """Forecasts infinity from round 101 on."""

    def _start(self, d):
        pass

    def _play(self, X, y, trace):
        trace.predictions[:] = np.where(self._played + np.arange(len(X)) < 100, 1.0, np.inf)
        self._played += len(X)


def some():
    return [
        okl.Refit(Ridge(), growth="15%"),
        copy.deepcopy(FOGD),
        SGDRegressor(),
        Oracle(),
    ]


@pytest.mark.slow
def test_they_are_one_more_column_each_of_the_definition(monkeypatch):
    monkeypatch.setattr(settings, "GROWTHS", ())
    monkeypatch.setattr(settings, "FOREST_LAGS", (0,))
    restarts = (32, 128, 256)
    monkeypatch.setattr(settings, "RESTARTS", restarts)
    run = okl.run(okl.SelfTuning(BUDGET, experts=some()), X, Y)
    alone = [okl.run(one, X, Y).predictions for one in some()]
    spaces, trees = settings.SPACES, [(0, (), 1, settings.SHRINKAGES, 1)]
    residuals = (), 1, settings.RESIDUAL_SHRINKAGES, 1
    expected, _ = naive_self_tuning.self_tuning(
        X, Y, restarts, BUDGET, spaces, settings.DEEPEST, forests=trees, residuals=residuals,
        boosted=settings.BOOSTING, experts=np.column_stack(alone),
    )  # fmt: skip
    assert_allclose(run.predictions, expected, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("y", [Y, SIGNS], ids=["real", "signs"])
def test_no_cut_and_no_pickle_changes_anything(y):
    estimator = Ridge() if y is Y else LogisticRegression()
    experts = [okl.Refit(estimator, every=40), okl.LinearRidge(), Oracle()]
    same = partial(assert_allclose, rtol=0, atol=1e-9)  # scikit-learn's last bits depend on the cut
    bulk, single = (okl.SelfTuning(BUDGET, experts=experts) for _ in range(2))
    expected = okl.run(bulk, X, y).predictions
    chunks = ((X[a : a + 77], y[a : a + 77]) for a in range(0, N, 77))
    same(okl.run(bulk.reset(), chunks).predictions, expected)
    for t in range(N):
        if t in (0, 25, 31, 93, 94, 130):
            single = pickle.loads(pickle.dumps(single))
        same(single.predict_one(X[t]), expected[t])
        single.learn_one(X[t], y[t])
    same(single.predict(X), bulk.predict(X))


def test_what_the_user_gave_is_not_touched_and_reset_begins_with_it():
    model, ridge = SGDRegressor(), okl.LinearRidge()
    learner = okl.SelfTuning(BUDGET, experts=[model, ridge])
    first = okl.run(learner, X, Y).predictions
    assert not hasattr(model, "coef_") and ridge.rounds == 0
    assert_array_equal(okl.run(learner.reset(), X, Y).predictions, first)


@pytest.mark.slow
@pytest.mark.parametrize("expert", [okl.LinearRidge(), FOGD, SGDRegressor()])
def test_of_several_outputs_each_has_its_forecast(expert):
    learner = okl.MultiOutput(okl.SelfTuning(BUDGET, experts=[expert]))
    okl.run(learner, X, COLUMNS)
    (inner,) = learner.learners_
    forecasts = inner._restarts.past(N).recorded[:, -1]
    for k, y in enumerate(COLUMNS.T):
        alone = okl.run(copy.deepcopy(expert), X, y).predictions
        assert_allclose(forecasts[:, k], alone, rtol=1e-9)


def test_the_bound_holds_against_each_expert_and_the_certificate_names_the_best():
    learner = okl.SelfTuning(BUDGET, experts=[Oracle(), okl.LinearRidge()])
    run = okl.run(learner, X, ROUGH)
    proof = run.certificate
    assert proof.member == "expert 0, Oracle()" and (proof.regret <= proof.bound).all()
    losses = np.cumsum((5.0 + np.sign(np.sin(40.0 * X[:, 0])) - ROUGH) ** 2)
    assert_allclose(proof.comparator[-1], losses[-1], rtol=1e-9)
    others = okl.run(okl.SelfTuning(BUDGET), X, ROUGH).certificate
    assert proof.guaranteed[-1] < others.guaranteed[-1]
    assert [str(one) for one in learner.members][-3:-1] == [
        "expert 0, Oracle()", f"expert 1, {okl.LinearRidge()!r}",
    ]  # fmt: skip


def test_files_hold_experts_of_this_package_only(tmp_path):
    path = tmp_path / "learner.npz"
    ours = okl.SelfTuning(BUDGET, experts=[FOGD, okl.LinearRidge()])
    ours.partial_fit(X[:200], Y[:200]).save(path)
    again = okl.load(path)
    assert_array_equal(again.partial_fit(X[200:], Y[200:]).predict(X),
                       ours.partial_fit(X[200:], Y[200:]).predict(X))  # fmt: skip
    theirs = okl.SelfTuning(BUDGET, experts=[okl.Refit(Ridge())]).partial_fit(X, Y)
    refused("cannot save a hyper-parameter that is .*Ridge", theirs.save, path)
    refused("checkpoint needs a learner that can be saved", okl.run, theirs, X, Y, checkpoint=path)


@pytest.mark.parametrize("expert", [Broken(), Diverging()])
def test_a_forecast_that_is_not_finite_names_the_expert(expert):
    learner = okl.SelfTuning(BUDGET, experts=[okl.LinearRidge(), expert])
    troubled(f"expert 1, {type(expert).__name__}.*round 101", okl.run, learner, X, Y)
    troubled("expert 1", learner.predict, X)
    assert learner.reset().partial_fit(X[:50], Y[:50]).rounds == 50
