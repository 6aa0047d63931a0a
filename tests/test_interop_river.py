"""to_river: learners as river's classifiers and regressors."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from river import (
    compose,
    datasets,
    ensemble,
    evaluate,
    feature_extraction,
    feature_selection,
    linear_model,
    metrics,
    preprocessing,
    rules,
    stats,
    time_series,
)
from river.checks import yield_checks
from sklearn.linear_model import Ridge

import oklnumba as okl
from oklnumba.interop import to_river
from oklnumba.learners.self_tuning import settings as self_tuning
from oklnumba.protocol.class_scores import compute_probabilities
from tests.checks import COMPILED, one_by_one, raises, refused

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of rounds")

KEYS = "b", "a", "c"
FOURIER = okl.PKAWV(okl.FourierFeatures(20))
CHECKED = {
    "SelfTuning": lambda: to_river(task="regression"),
    "PKAWV": lambda: to_river(FOURIER, task="regression"),
    "PKAWV, classes": lambda: to_river(FOURIER),
    "FOGD, logistic, two classes": lambda: to_river(
        okl.FOGD(n_frequencies=20, loss="logistic"), classes=[False, True]
    ),
}


def points(n, seed=0):
    """Return inputs of three columns, in the order of their names, and dicts of them."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, [dict(zip(KEYS, (b, a, c), strict=True)) for a, b, c in X]


def three_classes(X, names=("low", "mid", "high")):
    return np.array(names)[np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, [-0.3, 0.6])]


# ---- river's own checks ----

RIDGE = okl.LinearRidge()
OUTER = [  # each plays another learner
    okl.Standardized(RIDGE), okl.Intervals(RIDGE), okl.Tree(RIDGE),
    okl.Experts([RIDGE, okl.LinearRidge(lam=9.0)], B=None),
    okl.WithFeatures(okl.FourierFeatures(10), RIDGE),
    okl.Refit(Ridge(), every=50), okl.Monitored(okl.Intervals(okl.Standardized(RIDGE))),
]  # fmt: skip
CHECKED |= {type(one).__name__: partial(to_river, one, task="regression") for one in OUTER}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:ignoring new keys")  # of learners on features
@pytest.mark.parametrize("name", CHECKED)
def test_checks_of_river(name):
    model, done = CHECKED[name](), set()
    assert not model._unit_test_skips()
    for check in yield_checks(model):
        check(model.clone())
        done.add(check.__name__)
    assert len(done) > 20 and "check_pickling" in done


WRAPPERS = {
    "AMRules": lambda one: rules.AMRules(pred_model=one, pred_type="model", n_min=20),
    "Bagging": lambda one: ensemble.BaggingRegressor(one, n_models=2, seed=1),
    "EWA": lambda one: ensemble.EWARegressor([one, one.clone()]),
    "SRP": lambda one: ensemble.SRPRegressor(one, n_models=2, seed=1),
    "scaled": lambda one: preprocessing.TargetStandardScaler(one),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_wrappers_of_river_play_it_as_they_play_theirs(name):
    model = WRAPPERS[name](to_river(okl.LinearRidge(), task="regression"))
    theirs = WRAPPERS[name](linear_model.LinearRegression())
    for x, y in datasets.TrumpApproval().take(60):
        for one in (model, theirs):
            one.predict_one(x)
            one.learn_one(x, y)
    assert np.isfinite(model.predict_one(x))
    for check in yield_checks(model):
        if check.__name__ in ("check_pickling", "check_learn_one", "check_clone_changes_memory"):
            check(model.clone())


def test_snarimax_begins_without_inputs_and_weights_are_rounds():
    inner, y = to_river(okl.LinearRidge(), task="regression"), np.arange(60) % 4 - 1.0
    model = time_series.SNARIMAX(p=3, d=0, q=0, regressor=inner)
    for label in y.tolist():
        model.learn_one(label)
    lags = np.column_stack([np.r_[np.zeros(k), y[: 61 - k]] for k in (1, 2, 3)])
    known = okl.LinearRidge().partial_fit(lags[1:60], y[1:])
    assert_allclose(model.forecast(horizon=1)[0], known.predict_one(lags[60]), rtol=1e-6)
    assert to_river().predict_one({}) is None
    assert to_river(classes=[0, 1]).predict_proba_one({}) == {0: 0.5, 1: 0.5}
    one, many = (to_river(okl.LinearRidge(), task="regression") for _ in range(2))
    for x, y, w in (({}, 1.0, 1), ({"a": 1.0}, 2.0, 3), ({"a": 5.0}, 1.0, 0), ({"b": 1.0}, 2.0, 2)):
        many.learn_one(x, y, w)
        for _ in range(w):
            one.learn_one(x, y)
    assert pickle.dumps(one) == pickle.dumps(many)
    refused("w must be", one.learn_one, {"a": 1.0}, 1.0, w=0.5)


# ---- the same rounds as okl.run ----


def test_mistakes_are_those_of_a_run():
    stream = list(datasets.Phishing().take(300))
    X = np.array([[float(x[key]) for key in sorted(x)] for x, _ in stream])
    y = np.array([1.0 if label else -1.0 for _, label in stream])
    for learner in (okl.SelfTuning(), okl.FOGD(loss="logistic"), okl.NOGD(okl.Gaussian(1.0))):
        run = okl.run(learner, X, y)
        silent = np.flatnonzero(run.predictions == 0.0)
        assert silent.tolist() == [0]  # a forecast of 0 is a mistake of a run
        model = to_river(learner)
        accuracy = evaluate.progressive_val_score(stream, model, metrics.Accuracy())
        # without classes, nothing is forecast in the first round
        assert accuracy.cm.n_samples == len(stream) - 1
        wrong = accuracy.cm.n_samples - accuracy.cm.total_true_positives
        assert wrong == run.mistakes[1:].sum()


def test_regression_is_that_of_a_run():
    X, dicts = points(150)
    y = np.sin(X[:, 0]) + X[:, 1]
    for learner in (okl.SelfTuning(), FOURIER, okl.KONS(okl.Gaussian(1.0), C=5.0)):
        run = okl.run(learner, X, y)
        model = to_river(learner, task="regression")
        found = one_by_one(model, dicts, y)
        assert_array_equal(found, one_by_one(learner.reset(), X, y))
        assert_allclose(found, run.predictions, rtol=1e-9, atol=1e-12)
        assert found[0] == 0.0 and isinstance(model.predict_one(dicts[0]), float)


# ---- classes that come at any round ----

GROWING = [
    okl.SelfTuning(budget=30),
    FOURIER,
    okl.KernelAWV(okl.Gaussian(1.0)),
    okl.NystromAWV(okl.Gaussian(1.0)),
    okl.GrowingPKAWV(okl.TaylorFeatures(1)),
    okl.WithFeatures(okl.TaylorFeatures(2), okl.LinearAWV()),
    okl.Standardized(FOURIER),
    okl.FOGD(loss="logistic"),
    okl.ProsNKONS(okl.Gaussian(1.0), seed=1),
]


@pytest.mark.slow
@pytest.mark.parametrize("learner", GROWING, ids=lambda learner: type(learner).__name__)
def test_a_class_that_comes_late_is_as_if_known_from_the_start(learner):
    X, dicts = points(280)
    names = np.array(["a", "b", "c", "d"])
    late = np.arange(280) // 70  # a class more every 70 rounds
    y = names[np.minimum(late, np.random.default_rng(1).integers(0, 4, 280))]
    model, seen = to_river(learner), []
    known = okl.OneVsRest(learner, list(names))
    for start in range(0, 280, 35):
        part = slice(start, start + 35)
        if start == 140:
            model = pickle.loads(pickle.dumps(model))
        if start:
            scores = known.scores(X[part])[:, [list(names).index(name) for name in seen]]
            expected = [seen[k] for k in scores.argmax(axis=1)]
            assert [model.predict_one(x) for x in dicts[part]] == expected
        for x, label in zip(dicts[part], y[part], strict=True):
            model.learn_one(x, label)
        for row, label in zip(X[part], y[part], strict=True):
            known.learn_one(row, label)
        seen += [str(name) for name in dict.fromkeys(y[part]) if name not in seen]
    assert seen == list(names)
    expected = names[known.scores(X).argmax(axis=1)]
    assert [model.predict_one(x) for x in dicts] == expected.tolist()


@pytest.mark.parametrize("budget", range(12, 21, 2))
def test_new_classes_may_make_inputs_with_lags_wider_than_the_budget(budget):
    _, dicts = points(60)
    model = to_river(okl.SelfTuning(budget=budget))
    for t, x in enumerate(dicts):  # a class more every ten rounds, each with lags
        model.learn_one(x, t // 10)
    assert len(pickle.loads(pickle.dumps(model)).predict_proba_one(dicts[0])) == 6


def test_labels_of_any_kind():
    X, dicts = points(60)
    for labels in ([False, True], ["x", "y"], [0, 1], [3, 7], [("a", 1), ("b", 2)], [0.0, 1.0]):
        model = to_river(FOURIER)
        assert model.predict_one(dicts[0]) is None and model.predict_proba_one(dicts[0]) == {}
        for x, row in zip(dicts, X, strict=True):
            model.learn_one(x, labels[int(row[0] > 0.0)])
        found = [model.predict_one(x) for x in dicts]
        assert np.sum([found[t] == labels[int(X[t, 0] > 0)] for t in range(60)]) > 50
        assert type(model.predict_one(dicts[0])) is type(labels[0])
        assert set(model.predict_proba_one(dicts[0])) == set(labels)
    model = to_river(FOURIER)
    model.learn_one(dicts[0], np.bool_(False))  # the other class is known
    assert list(model.predict_proba_one(dicts[0])) == [False, True]
    assert to_river(FOURIER, classes=["x", "y"]).predict_proba_one(dicts[0]) == {"x": 0.5, "y": 0.5}


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "logistic"])
def test_probabilities_of_forecasts_of_any_size(loss):
    f = np.random.default_rng(0).normal(size=60) * 10.0 ** np.arange(-30, 90, 2)
    for rounds in (0, 1, 50, 10**15):
        P, least = compute_probabilities(loss, f, rounds), 1 / (max(rounds, 1) + 2)
        p = 1 / (1 + np.exp(-np.clip(f, -700, 700))) if loss == "logistic" else (1 + f) / 2
        assert_allclose(P[:, 1], np.clip(p, least, 1 - least), rtol=1e-12)
        assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    P = compute_probabilities(loss, np.array([[0.0, -1e90, -1.0]]), 9)
    assert_allclose(P, [[1 / (1 + 1 / np.e), 0.0, 1 / (1 + np.e)]], rtol=1e-12)


# ---- frames ----


def test_labels_of_the_same_index_in_another_order_are_warned_of():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    model = to_river(okl.LinearRidge(), task="regression")
    with pytest.warns(UserWarning, match="pass y.loc.X.index."):
        model.learn_many(frame, pd.Series([2.0, 1.0], index=[1, 0]))


@pytest.mark.parametrize("learner", [okl.SelfTuning(), FOURIER, okl.NOGD(okl.Gaussian(1.0))])
@pytest.mark.parametrize("library", [pd, pl])
def test_many_are_the_same_as_one_by_one(learner, library):
    X, dicts = points(130)
    y = three_classes(X)
    frame = pd.DataFrame(dicts, index=range(500, 630))
    labels = pd.Series(y, index=frame.index)
    if library is pl:
        frame, labels = pl.DataFrame(dicts), pl.Series(y)
    one, many = to_river(learner), to_river(learner)
    for x, label in zip(dicts, y.tolist(), strict=True):
        one.learn_one(x, label)
    for start in range(0, 130, 50):  # two classes more come within a part
        many.learn_many(frame[start : start + 50], labels[start : start + 50])
    found = many.predict_many(frame)
    assert isinstance(found, library.Series)
    assert found.to_list() == [one.predict_one(x) for x in dicts]
    if library is pd:
        assert_array_equal(found.index, frame.index)
    if not isinstance(learner, okl.NOGD):
        P = many.predict_proba_many(frame)
        assert isinstance(P, library.DataFrame)
        single = [list(one.predict_proba_one(x).values()) for x in dicts]
        assert_allclose(P.to_numpy(), single, rtol=1e-9, atol=1e-12)
        assert list(P.columns) == list(one.predict_proba_one(dicts[0]))
    target = frame["a"] * 2
    one, many = to_river(FOURIER, task="regression"), to_river(FOURIER, task="regression")
    for x in dicts:
        one.learn_one(x, 2 * x["a"])
    many.learn_many(frame[:70], target[:70])
    many.learn_many(frame[70:], target[70:])
    found = many.predict_many(frame)
    assert isinstance(found, library.Series)
    assert_array_equal(found.to_numpy(), [one.predict_one(x) for x in dicts])


def test_frames_before_any_data_and_the_order_of_columns():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 8])
    assert to_river().predict_many(frame).tolist() == [None, None]
    assert to_river().predict_proba_many(frame).shape == (2, 0)
    assert to_river(task="regression").predict_many(frame).tolist() == [0.0, 0.0]
    X, dicts = points(40)
    model, other = to_river(FOURIER, task="regression"), to_river(FOURIER, task="regression")
    frame = pd.DataFrame(dicts)
    model.learn_many(frame, X[:, 0])
    other.learn_many(frame[["c", "b", "a"]], X[:, 0])
    assert_array_equal(model.predict_many(frame), other.predict_many(frame[["a", "c", "b"]]))


# ---- keys that come and go ----

TAKING = [
    okl.LinearAWV(),
    okl.OGD(),
    okl.KernelAWV(okl.Gaussian(1.0)),
    okl.Standardized(okl.NystromAWV(okl.Gaussian(1.0))),
    okl.KernelOGD(okl.Gaussian(1.0), loss="squared", budget=40),
    okl.Experts([okl.LinearRidge(), okl.KernelRidge(okl.Gaussian(1.0))], B=None),
]


def coming_and_going(n=150):
    """Return rounds in which key "c" comes at round 60, and each key is missing now and then."""
    X, _ = points(n)
    X[:60, 2] = 0.0
    X[np.random.default_rng(1).uniform(size=X.shape) < 0.2] = 0.0
    X[0, :2] = 1.0
    full = [dict(zip("abc", row.tolist(), strict=True)) for row in X]
    return X, full, [{key: value for key, value in x.items() if value} for x in full]


@pytest.mark.parametrize("learner", TAKING, ids=lambda learner: type(learner).__name__)
def test_a_missing_key_is_zero_and_a_new_one_was_zero_so_far(learner):
    X, full, sparse = coming_and_going()
    y = X @ [1.0, -0.5, 2.0]
    given, known = to_river(learner, task="regression"), to_river(learner, task="regression")
    keys = set()  # that were learned
    several, expected = to_river(learner), to_river(learner)
    for t in range(150):
        learned = {key: value if key in keys else 0.0 for key, value in full[t].items()}
        forecasts = [given.predict_one(sparse[t]), known.predict_one(learned)]
        assert_allclose(*forecasts, rtol=1e-9, atol=1e-10)
        given.learn_one(sparse[t], y[t])
        known.learn_one(full[t], y[t])
        keys |= sparse[t].keys()
        label = "abc"[t % 3] if t > 80 else "ab"[t % 2]
        several.learn_one(sparse[t], label)
        expected.learn_one(full[t], label)
    assert given.predict_one({"c": 1.0}) == given.predict_one({"a": 0.0, "b": 0, "c": 1.0})
    assert given.predict_one({"c": 1.0}) != given.predict_one({}) == given.predict_one({"b": 0})
    for x in sparse:
        p, q = several.predict_proba_one(x), expected.predict_proba_one(x)
        assert_allclose([p[k] for k in "abc"], [q[k] for k in "abc"], rtol=1e-8, atol=1e-10)
    before = pickle.dumps(given)
    given.predict_one({"new": 3.0})  # a forecast takes nothing in
    assert pickle.dumps(given) == before


@pytest.mark.slow
@pytest.mark.parametrize("growths", [(), (48, 200)])
def test_self_tuning_waits_for_its_next_restart(growths, monkeypatch):
    monkeypatch.setattr(self_tuning, "GROWTHS", growths)
    X, full, sparse = coming_and_going()
    y = X @ [1.0, -0.5, 2.0]
    given, known, without = (to_river(task="regression") for _ in range(3))
    for t in range(150):
        forecast = given.predict_one(sparse[t])
        less = without.predict_one({key: full[t][key] for key in "ab"})
        known.predict_one(full[t])
        # known: at first all scales are 1, so up to the first restart a column of zeros is one too
        pair = forecast, less
        if t >= 128:  # of the layers: trees on residuals have seen what was forecast before
            pair = [one._player._residuals.forecasts[0, 0] for one in (given, known)]
        assert_allclose(*pair, rtol=1e-6, atol=1e-7)
        given.learn_one(sparse[t], y[t])
        known.learn_one(full[t], y[t])
        without.learn_one({key: full[t][key] for key in "ab"}, y[t])


def test_self_tuning_takes_in_no_key_after_its_last_restart(monkeypatch):
    monkeypatch.setattr(self_tuning, "RESTARTS", (32, 128, 512))
    X, dicts = points(512)
    model = to_river(task="regression")
    model.learn_many(pd.DataFrame(dicts), X[:, 0])
    with pytest.warns(UserWarning, match=r"ignoring new keys \['z'\]: SelfTuning"):
        forecast = model.predict_one(dicts[0] | {"z": 5.0})
    assert forecast == model.predict_one(dicts[0])
    model.learn_one(dicts[0] | {"z": 5.0}, 1.0)  # the one warning has been given


@pytest.mark.parametrize("learner", [FOURIER, okl.FOGD(), okl.Winnow(), okl.Standardized(FOURIER)])
def test_a_learner_of_fixed_width_ignores_a_new_key_with_one_warning(learner):
    X, dicts = points(30)
    model, plain = to_river(learner), to_river(learner)
    for t in range(30):
        x = dicts[t]
        if t > 5:
            x = x | {"colour": 1.0}
        if t == 6:
            with pytest.warns(UserWarning, match=r"ignoring new keys \['colour'\]"):
                model.predict_one(x)
        assert model.predict_one(x) == plain.predict_one(dicts[t])
        model.learn_one(x, bool(X[t, 0] > 0.0))
        plain.learn_one(dicts[t], bool(X[t, 0] > 0.0))
    for i in range(40):  # the names of some are enough
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.learn_one(dicts[0] | {f"user {i}": 1.0}, True)
        assert len(caught) == (i < 19)


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_frames_come_and_go(library):
    _, full, _ = coming_and_going()
    parts = [(slice(0, 50), "ab"), (slice(50, 90), "cb"), (slice(90, 150), "a")]
    one, many = to_river(okl.LinearAWV()), to_river(okl.LinearAWV())
    for rows, keys in parts:
        dicts = [{key: x[key] for key in keys} for x in full[rows]]
        labels = [x["a"] > 0.0 for x in full[rows]]
        many.learn_many(library.DataFrame(dicts), labels)
        for x, label in zip(dicts, labels, strict=True):
            one.learn_one(x, label)
    probabilities = one.predict_proba_one({"c": 0.3, "zzz": 2.0})
    found = many.predict_proba_many(library.DataFrame({"c": [0.3], "zzz": [2.0]})).to_numpy()
    assert_allclose(found[0], list(probabilities.values()), rtol=1e-12)
    with pytest.raises(ValueError, match="different keys"):
        many.learn_many(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), [True])
    before = pickle.dumps(many)
    many.learn_many(library.DataFrame({"zzz": []}), [])
    assert pickle.dumps(many) == before


def shop(n=300):
    """Return rounds of a shop: a price that may be missing, a kind, a text; and what is paid."""
    rng = np.random.default_rng(0)
    for i in range(n):
        kind = int(rng.integers(0, 2 + i // 50))  # new kinds come
        price, words = float(rng.normal()), " ".join(rng.choice(["red", "old", "big"], 2))
        paid = price + 0.5 * kind + words.count("red")
        yield {"price": None if i % 9 == 4 else price, "kind": f"k{kind}", "text": words}, paid


def impute():
    return compose.Select("price") | preprocessing.StatImputer(("price", stats.Mean()))


def kinds():
    return compose.Select("kind") | preprocessing.OneHotEncoder()


best_two = partial(feature_selection.SelectKBest, stats.PearsonCorr(), k=2)
PIPELINES = {
    "OneHotEncoder": lambda: impute() + kinds(),
    "StatImputer": lambda: impute() | preprocessing.StandardScaler(),
    "BagOfWords": lambda: impute() + feature_extraction.BagOfWords(on="text"),
    "SelectType": lambda: compose.SelectType(float),  # without the price where it is missing
    "SelectKBest": lambda: (impute() + kinds()) | best_two(),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_transformers_of_river_stand_before_it(name):
    """A key counts as 0 in a forecast before it is learned."""
    model, calls = to_river(okl.LinearAWV(), task="regression"), []
    predict, learn, learned = model.predict_one, model.learn_one, {}
    model.predict_one = lambda x: (
        calls.append(({key: x[key] for key in x if key in learned}, None, predict(x)))
        or calls[-1][2]
    )
    model.learn_one = lambda x, y: (calls.append((dict(x), y, 0.0)), learned.update(x), learn(x, y))
    evaluate.progressive_val_score(list(shop()), PIPELINES[name]() | model, metrics.MAE())
    shapes = {frozenset(x) for x, y, _ in calls if y is not None}
    assert (len(shapes) > 1) == (name != "StatImputer")
    known = okl.LinearAWV()
    for x, y, forecast in calls:
        row = [x.get(key, 0.0) for key in learned]
        if y is None:
            assert_allclose(forecast, known.predict_one(row), rtol=1e-9, atol=1e-10)
        else:
            known.learn_one(row, y)
    assert known.rounds == 300


# ---- what is refused ----


BAD_INPUTS = [
    ({"a": 1.0, "b": "red"}, r"'red' under 'b'.*OneHotEncoder"),
    ({"a": 1.0, "b": None}, r"None under 'b'.*StatImputer"),
    ({"a": float("nan"), "b": 1}, r"nan under 'a'.*StatImputer"),
    ({"a": 1.0, "b": 10**400}, r"10000.* under 'b'"),
    ({"a": 1.0, "b": [1.0]}, r"\[1.0\] under 'b'"),
    ([1.0, 2.0], r"must be a dict"),
]
BAD_FRAMES = [
    ({"a": [1.0, 2.0], "b": ["blue", "red"]}, "column 'b' of X holds .*encode"),
    ({"a": [1.0, np.nan], "b": [1, 2]}, r"nan at row 1, column 1|nan at row 1, column 0"),
]
BAD_LABELS = [*((y, "must be a label") for y in (None, float("nan"), [1]))]
BAD_LABELS += [(0.5, "a fraction; for regression pass task=")]
FRAME = pd.DataFrame({"a": [1.0, 2.0]})
REFUSED = [
    *((lambda m, x=x: m.predict_one(x), text) for x, text in BAD_INPUTS),
    *((lambda m, x=x: m.learn_one(x, 1), text) for x, text in BAD_INPUTS),
    *((lambda m, f=f: m.predict_many(pd.DataFrame(f)), text) for f, text in BAD_FRAMES),
    *((lambda m, f=f: m.learn_many(pl.DataFrame(f), [1, 1]), text) for f, text in BAD_FRAMES),
    *((lambda m, y=y: m.learn_one({"a": 1.0}, y), text) for y, text in BAD_LABELS),
    *((lambda m, y=y: m.learn_many(FRAME, ["new", y]), text) for y, text in BAD_LABELS),
    (lambda m: m.learn_many(FRAME, [True]), "must have 2 labels"),
    (lambda m: m.learn_many([[1.0], [2.0]], [True, True]), "frame of pandas or polars"),
]
OPTIONS = [
    (None, {"task": "ranking"}, "task must be 'classification' or 'regression'"),
    (None, {"task": "regression", "classes": [1, 2]}, "classes are for classification"),
    (okl.MultiOutput(FOURIER), {}, "put MultiOutput outside"),
    (okl.OneVsRest(FOURIER, [1, 2]), {"task": "regression"}, "put OneVsRest outside"),
    (okl.OneVsRest(FOURIER, [1, 2]), {"classes": [1, 2]}, "put OneVsRest outside"),
    (None, {"classes": ["a", "a"]}, "at least two different labels"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_bad_rows_frames_and_labels_change_nothing(call, text):
    model = to_river(FOURIER)
    model.learn_one({"a": 1.0, "b": 0}, "x")
    before = pickle.dumps(model)
    refused(text, call, model)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(("learner", "options", "text"), OPTIONS)
def test_bad_arguments(learner, options, text):
    refused(text, to_river, learner, **options)


def test_probabilities_are_those_of_the_scores_of_losses_that_have_them():
    X, dicts = points(60)
    learner = okl.FOGD(loss="logistic")
    model = to_river(learner)
    for x, label in zip(dicts, X[:, 0] > 0.0, strict=True):
        model.learn_one(x, label)
    f = learner.partial_fit(X, np.where(X[:, 0] > 0.0, 1.0, -1.0)).predict(X)
    found = [list(model.predict_proba_one(x).values()) for x in dicts]
    assert_array_equal(found, compute_probabilities("logistic", f, 60))
    model = to_river(okl.NOGD(okl.Gaussian(1.0)))
    model.learn_one({"a": 1.0}, True)
    for call, x in ((model.predict_proba_one, {"a": 1.0}), (model.predict_proba_many, FRAME)):
        raises(NotImplementedError, "hinge loss are not probabilities.*logistic", call, x)


def test_a_class_of_a_point_that_is_not_in_the_matrix_is_not_remembered():
    model = to_river(okl.KernelAWV(okl.Precomputed(np.eye(9))))
    for i in range(9):
        model.learn_one({"i": float(i)}, i % 3)
    expected = model.predict_proba_one({"i": 4.0})
    refused("integers from 0 to 8", model.learn_one, {"i": 9.0}, 7)
    refused("integers from 0 to 8", model.learn_many, pd.DataFrame({"i": [9.0]}), pd.Series([7]))
    assert model.predict_proba_one({"i": 4.0}) == expected
