"""Batch models in the online protocol, beside a loop that says when each is fitted."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import oklnumba as okl
from tests.checks import one_by_one, refused

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 3))
Y = X @ [1.0, -1.0, 0.5] + 0.3 * RNG.standard_normal(400)
SIGNS = np.where(Y > 0.1, 1.0, -1.0)
SORTED = np.sort(SIGNS)  # one class for the first half
CASES = [
    (Ridge(), {"every": 50}, Y),
    (Ridge(), {"every": 50, "latest": 60, "first": 7}, Y),
    (Ridge(), {"growth": "15%"}, Y),
    (Ridge(), {"growth": 0.5, "first": 10}, Y),
    (LogisticRegression(), {"every": 37}, SIGNS),
    (LogisticRegression(), {"every": 37}, SORTED),
    (LinearSVC(), {"every": 100}, SIGNS),
]


def textbook(estimator, y, every=1000, growth=None, first=None, latest=None):
    """Return the forecasts of a loop over rounds."""
    share = {"15%": 0.15}.get(growth, growth)
    due, ahead, forecasts = first or (64 if growth else every), None, []
    for t in range(len(y)):
        mean = y[:t].mean() if t else 0.0
        forecasts.append(mean if ahead is None else ahead[t])
        n = t + 1
        if n == due:
            due = n + (int(np.ceil(share * n)) if growth else every)
            rows = slice(max(0, n - latest) if latest else 0, n)
            if isinstance(estimator, Ridge) or len(set(y[rows])) == 2:
                model = copy.deepcopy(estimator).fit(X[rows], y[rows])
                has_p = hasattr(model, "predict_proba")
                ahead = 2.0 * model.predict_proba(X)[:, 1] - 1.0 if has_p else model.predict(X)
    return np.array(forecasts)


@pytest.mark.parametrize(("estimator", "options", "y"), CASES)
def test_forecasts_are_those_of_a_loop_in_any_cut(estimator, options, y):
    expected = textbook(estimator, y, **options)
    learner = okl.Refit(estimator, **options)
    assert_allclose(okl.run(learner, X, y).predictions, expected, atol=1e-12)
    assert learner.rounds == len(y)
    pieces = [(X[a:b], y[a:b]) for a, b in [(0, 1), (1, 90), (90, 100), (100, 400)]]
    assert_allclose(okl.run(learner.reset(), pieces).predictions, expected, atol=1e-12)
    assert_allclose(one_by_one(learner.reset(), X, y), expected, atol=1e-12)


def test_a_model_that_scales_its_rows_in_place_harms_nobody():
    given = 5.0 + 3.0 * X
    runs = [
        okl.run(okl.Refit(make_pipeline(StandardScaler(copy=copy), Ridge()), every=50), given, Y)
        for copy in (True, False)
    ]
    assert_array_equal(runs[0].predictions, runs[1].predictions)
    assert_array_equal(given, 5.0 + 3.0 * X)


def test_late_labels_and_batches():
    learner = okl.Refit(Ridge(), every=50)
    late = okl.run(learner, X, Y, delay=50, batch=25).predictions
    # In the batch from round t on, the labels up to t - 50 are known: the fits are those of then.
    for start in range(0, 400, 25):
        come = max(0, start - 50)
        fits = come // 50 * 50
        mean = Y[:come].mean() if come else 0.0
        rows = slice(start, start + 25)
        expected = Ridge().fit(X[:fits], Y[:fits]).predict(X[rows]) if fits else np.full(25, mean)
        assert_allclose(late[rows], expected, atol=1e-12)


def test_what_the_user_gave_and_rows_given_are_not_touched():
    estimator, rows, labels = Ridge(), X[:100].copy(), Y[:100].copy()
    learner = okl.Refit(estimator, every=150)
    learner.partial_fit(rows, labels)
    rows[:], labels[:] = 1e6, 1e6  # a reader that refills its array
    learner.partial_fit(X[100:200], Y[100:200])
    assert not hasattr(estimator, "coef_")
    assert_allclose(learner.predict(X), Ridge().fit(X[:150], Y[:150]).predict(X))


def test_it_is_played_as_an_expert():
    experts = okl.Experts([okl.Refit(Ridge(), every=50), okl.LinearRidge()], B=None)
    alone = okl.run(okl.Refit(Ridge(), every=50), X, Y).mean_loss
    assert okl.run(experts, X, Y).mean_loss < alone  # LinearRidge learns the first 50 rows


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: okl.Tree(one, leaf_rows=60)])
def test_pickles_go_on_and_files_are_refused(wrap, tmp_path):
    learner = wrap(okl.Refit(Ridge(), every=50)).partial_fit(X[:129], Y[:129])
    learner.learn_one(X[129], Y[129])  # whose buffers are no copies
    copied = pickle.loads(pickle.dumps(learner))
    for x, y in zip(X[130:140], Y[130:140], strict=True):
        assert copied.predict_one(x) == learner.predict_one(x)
        copied.learn_one(x, y), learner.learn_one(x, y)
    assert_array_equal(okl.run(copied, X[130:], Y[130:]).predictions,
                       okl.run(learner, X[130:], Y[130:]).predictions)  # fmt: skip
    with pytest.raises(ValueError, match="cannot save a hyper-parameter that is .*Ridge.*pickle"):
        learner.save(tmp_path / "model.npz")
    fresh = okl.Standardized(okl.Refit(Ridge()))
    with pytest.raises(ValueError, match="checkpoint needs a learner that can be saved"):
        okl.run(fresh, X, Y, checkpoint=tmp_path / "run.npz")
    assert fresh.rounds == 0 and not list(tmp_path.iterdir())


WRAPPERS = {
    "alone": lambda one: one,
    "Monitored": okl.Monitored,
    "Standardized": okl.Standardized,
    "Intervals": okl.Intervals,
    "Tree": okl.Tree,
    "Lags": lambda one: okl.Lags(one, difference=False),
    "Experts": lambda one: okl.Experts([okl.LinearRidge(), one], B=None),
    "SelfTuning": lambda one: okl.SelfTuning(experts=[okl.Monitored(one)]),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_classifier_refuses_other_labels_wherever_it_plays(name):
    learner, signs = WRAPPERS[name](okl.Refit(LogisticRegression(), every=50)), np.sign(Y)
    for labels in (Y, (signs + 1.0) / 2.0):
        refused(r"labels -1 and \+1", learner.partial_fit, X, labels)
    learner.partial_fit(X[:100], signs[:100])
    refused(r"labels -1 and \+1", learner.learn_one, X[100], 0.0)
    assert learner.learn_one(X[100], 1.0).rounds == 101
