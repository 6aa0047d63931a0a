"""OnlineClassifier and OnlineRegressor: scikit-learn's checks over every learner, and use."""

import os
import pickle
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.estimator_checks import check_classifiers_train, check_estimator

import oklnumba as okl
from oklnumba.interop import OnlineClassifier, OnlineRegressor
from oklnumba.protocol.class_scores import compute_probabilities
from tests.battery import LEARNERS, contents, every_member, far_from_the_origin, make, stream
from tests.checks import COMPILED, refused

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of rounds, and nothing compiled")
CLASSES = np.array(["left", "middle", "right"])
# In the order of the rows, as the runs that they are compared with.
classifier = partial(OnlineClassifier, shuffle=False)
regressor = partial(OnlineRegressor, shuffle=False)


def gentle(cls, **params):
    """Return a learner for any labels and inputs: scikit-learn's checks have some of norm 200."""
    rules = {"eta": 1e-5, "lam": 1e5, "C": 1e4, "B": None}
    own = make(cls).get_params(deep=False)
    if not {"kernel", "kernels", "features"} & set(own):
        params |= {name: value for name, value in rules.items() if own.get(name) is not None}
    elif "C" in own:
        params["C"] = rules["C"]
    if "learner" in own:
        inner = okl.OGD(eta=rules["eta"] if cls is okl.Standardized else 1e-9)
        params["learner"] = inner
    return make(cls, **params)


REAL = [cls for cls in LEARNERS if not make(cls)._loss().classes]


def for_regression(cls):
    """Return a learner for real labels, or None where the class has none."""
    learner = gentle(cls)
    if cls in REAL:
        return learner
    return gentle(cls, loss="squared") if "loss" in learner.get_params() else None


REGRESSORS = [cls for cls in LEARNERS if for_regression(cls) is not None]
# The default, one that plays outputs together, and a wrapper: around all others they are the same.
CHECKED = [pytest.param(okl.SelfTuning, marks=pytest.mark.slow), okl.PKAWV, okl.Intervals]


def moderate(n=300, seed=0, scaled=False):
    """Return a stream on the scales of scikit-learn's users: raw columns, labels of three texts."""
    rng = np.random.default_rng(seed)
    X = rng.normal([5.0, -300.0, 0.0], [2.0, 100.0, 1e-3], (n, 3))
    f = (X[:, 0] - 5.0) / 2.0 + 0.5 * np.sin(X[:, 1] / 50.0)
    if scaled:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, f, CLASSES[np.digitize(f, [-0.5, 0.5])]


def frame(X):
    return pd.DataFrame(X, columns=["age", "height", "weight"])


# ---- scikit-learn's checks ----


def failures(estimator):
    """Return what scikit-learn's checks have against an estimator, and how many there were.

    A check that is skipped counts as one that fails; without the variable one is skipped.
    """
    with mock.patch.dict(os.environ, SCIPY_ARRAY_API="1"):
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    bad = [(r["check_name"], r["exception"]) for r in results if r["status"] != "passed"]
    return bad, len(results)


@far_from_the_origin
@pytest.mark.parametrize("cls", [*CHECKED, okl.POMDR], ids=lambda cls: cls.__name__)
def test_a_classifier_over_any_learner_passes_the_checks_of_scikit_learn(cls):
    found, played = failures(OnlineClassifier(None if cls is okl.SelfTuning else gentle(cls)))
    assert found == [] and played > 50


@far_from_the_origin
@pytest.mark.filterwarnings("ignore:the labels are 0 and 1")  # on purpose
@pytest.mark.parametrize("cls", CHECKED, ids=lambda cls: cls.__name__)
def test_a_regressor_over_any_learner_passes_the_checks_of_scikit_learn(cls):
    learner = None if cls is okl.SelfTuning else for_regression(cls)
    found, played = failures(OnlineRegressor(learner))
    assert found == [] and played > 50


@pytest.mark.slow
def test_the_checks_would_see_an_estimator_that_is_wrong():
    """Negative control: a classifier that changes in predict, and one that forecasts badly."""

    class Keeps(OnlineClassifier):
        def predict(self, X):
            self.last_ = len(X)
            return super().predict(X)

    class Poor(OnlineClassifier):
        def decision_function(self, X):
            return -super().decision_function(X)

    assert "check_dict_unchanged" in [check for check, _ in failures(Keeps(gentle(okl.OGD)))[0]]
    with pytest.raises(AssertionError):
        check_classifiers_train("Poor", Poor())
    check_classifiers_train("OnlineClassifier", OnlineClassifier())


def test_only_the_self_tuning_learner_promises_scores():
    for learner, poor in ((None, False), (okl.SelfTuning(), False), (okl.FOGD(), True)):
        assert get_tags(classifier(learner)).classifier_tags.poor_score is poor
    assert get_tags(regressor(okl.OGD())).regressor_tags.poor_score is True


def test_a_hyper_parameter_that_is_set_is_of_the_default_learner():
    for given in ({}, {"learner": None}):
        assert OnlineClassifier().set_params(learner__budget=9, **given).learner.budget == 9
    model = OnlineClassifier()
    with pytest.raises(ValueError, match="SelfTuning has no hyper-parameter 'width'"):
        model.set_params(shuffle=False, learner__width=9)
    assert model.learner is None and model.shuffle is True


# ---- a fit is a run ----


SQUARES = {"loss": "squared"}


@every_member
def test_a_fit_is_a_run_of_the_learner_bit_for_bit(cls):
    given, learner = make(cls), make(cls)
    X, y = stream(given, 90)
    expected, names = okl.run(learner, X, np.sign(y)), np.where(y > 0, "up", "down")
    model = classifier(given).fit(X, names)
    assert given.rounds == 0 and model.learner_.rounds == 90
    refused("does not hold its data", model.run_.regret, okl.Linear(), 1.0)
    assert_array_equal(model.run_.predictions, expected.predictions)
    assert_array_equal(model.run_.mistakes, expected.mistakes)
    parts = classifier(given).partial_fit(X, names, classes=["down", "up"])
    if cls is not okl.Intervals:  # whose inner learner is fitted
        assert contents(parts.learner_) == contents(learner)
    assert_array_equal(parts.decision_function(X), learner.predict(X))
    assert_array_equal(parts.predict(X), np.where(learner.predict(X) > 0, "up", "down"))
    if cls in REGRESSORS:
        given, learner = (make(cls, **({} if cls in REAL else SQUARES)) for _ in range(2))
        expected = okl.run(learner, X, 0.5 * y).predictions
        assert_array_equal(regressor(given).fit(X, 0.5 * y).run_.predictions, expected)
        parts = regressor(given).partial_fit(X, 0.5 * y)
        assert_array_equal(parts.predict(X), learner.predict(X))


@pytest.mark.parametrize("learner", [okl.PKAWV(okl.TaylorFeatures(2)), okl.FOGD(), None])
def test_several_classes_are_one_against_the_rest(learner):
    X, _, y = moderate(150, scaled=True)
    model = classifier(learner).fit(X, y)
    several = okl.OneVsRest(learner or okl.SelfTuning(), CLASSES)
    expected = okl.run(several, X, y)
    assert_array_equal(model.classes_, CLASSES)
    assert_array_equal(model.run_.predictions, expected.predictions)
    assert_array_equal(model.run_.scores, expected.scores)
    parts = classifier(learner).partial_fit(X, y, classes=CLASSES)  # ends without a restart
    assert_array_equal(parts.decision_function(X), several.scores(X))
    assert_array_equal(parts.predict(X), several.predict(X))


@pytest.mark.parametrize("learner", [okl.KernelRidge(okl.Gaussian(1.0)), okl.OGD(), None])
def test_several_labels_are_several_outputs(learner):
    X, f, _ = moderate(150, scaled=True)
    Y = np.column_stack([f, -f, X[:, 2]])
    model, several = regressor(learner), okl.MultiOutput(learner or okl.SelfTuning())
    expected = okl.run(several, X, Y)
    assert_array_equal(model.fit(X, Y).run_.predictions, expected.predictions)
    assert_array_equal(clone(model).partial_fit(X, Y).predict(X), several.predict(X))
    refused("y", model.partial_fit, X, f)
    assert model.fit(X, Y[:, :1]).predict(X).shape == (150, 1)


@pytest.mark.parametrize("learner", [None, okl.NystromAWV(okl.Gaussian(1.0)), okl.FOGD()])
@pytest.mark.parametrize("count", [2, 3])
def test_partial_fits_in_pieces_are_one_fit(learner, count):
    X, _, y = moderate()
    y = y if count == 3 else np.where(y == "middle", "left", y)
    classes = np.unique(y)
    assert len(classes) == count
    whole, pieces = (classifier(learner) for _ in range(2))
    whole.partial_fit(X, y, classes=classes)
    for a, b in ((0, 1), (1, 64), (64, 65), (65, 300)):
        pieces.partial_fit(X[a:b], y[a:b], classes=classes if a == 0 else None)
        assert pieces.run_.rounds == b
    assert_array_equal(pieces.run_.mistakes, whole.run_.mistakes)
    assert_allclose(pieces.run_.losses, whole.run_.losses, rtol=1e-9, atol=1e-12)
    if whole.run_.certificate is not None:
        regrets = pieces.run_.certificate.regret, whole.run_.certificate.regret
        assert_allclose(*regrets, rtol=1e-9, atol=1e-9)
    ends, seconds = pieces.run_.checkpoints, pieces.run_.checkpoint_seconds
    assert {1, 64, 65, 300} <= set(ends) and (np.diff(ends) > 0).all()
    assert (np.diff(seconds) >= 0).all() and seconds[-1] == pytest.approx(pieces.run_.seconds)
    assert_allclose(pieces.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-12)
    assert pieces.learner_.rounds == len(X)


@pytest.mark.parametrize("names", [[0, 1], ["no", "yes"]])
def test_a_run_in_which_a_class_came_later_has_no_class_scores(names):
    X, f, _ = moderate(40)
    model = classifier(okl.LinearRidge()).partial_fit(X[:9], names[:1] * 9)
    run = model.partial_fit(X, np.array(names)[(f > 0).astype(int)]).run_
    assert run.scores is None and run.class_scores is None
    assert f"mistakes {100 * run.mistakes.mean():.2f} %" in repr(run)


@pytest.mark.parametrize("later", [[7, 5, 6, 7], [5, 6, 8, 7, 7], [3, 4, 7, 5]])
def test_a_class_of_a_call_that_was_refused_may_come_later(later):
    K = okl.Gaussian(1.0)(moderate(30)[0])
    rows, y = np.arange(30.0)[:, None], np.arange(30) % 3
    model, expected = (
        classifier(okl.KernelAWV(okl.Precomputed(K))).partial_fit(rows, y) for _ in range(2)
    )
    refused("integers from 0 to 29", model.partial_fit, [[99.0]], [7])
    for label in later:
        for one in (model, expected):
            one.partial_fit(rows[label : label + 9], [label] * 9)
        assert_allclose(model.predict_proba(rows), expected.predict_proba(rows), rtol=1e-9)
    assert_array_equal(model.classes_, expected.classes_)


def test_after_ctrl_c_the_run_is_still_that_of_the_learner(monkeypatch):
    X, _, y = moderate()
    y = np.where(y == "middle", "left", y)
    model = classifier(okl.FOGD()).partial_fit(X[:100], y[:100])
    played = okl.run

    def interrupted(learner, X, y):
        done = played(learner, X, y)
        done.interrupted = True
        return done

    monkeypatch.setattr("oklnumba.interop.estimators.run", interrupted)
    for again in (False, True):
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[100:200], y[100:200])
        assert model.run_.rounds == model.learner_.rounds == 200 + 100 * again
    before = model.learner_
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.learner_ is before and model.run_.rounds == 300


# ---- labels and frames ----


NUMERIC = "float", "bool", "boolean", "object"
NULLABLE = "Int64", "int64[pyarrow]", "boolean", "string"  # as pandas calls them


def nullable(dtype, truth):
    values = {"s": np.where(truth, "yes", "no"), "b": truth}.get(dtype[0], np.where(truth, 7, 3))
    return pd.Series(values).astype(dtype)


LABELS = {
    "texts": lambda up: np.where(up, "yes", "no"),
    "list": lambda up: np.where(up, "yes", "no").tolist(),
    "indexed": lambda up: pd.Series(np.where(up, "yes", "no"), index=-np.arange(len(up))),
    "categories": lambda up: pd.Series(np.where(up, "yes", "no"), dtype="category"),
    "bools": lambda up: up,
    "integers": lambda up: np.where(up, 7, 3),
    "objects that are bools": lambda up: up.astype(object),
    "objects that are integers": lambda up: pd.Series(np.where(up, 7, 3), dtype=object),
    "floats": lambda up: np.where(up, 1.0, 0.0),
    "turned": lambda up: np.where(up, "a", "b"),
    **{name: partial(nullable, name) for name in NULLABLE},
}


TYPES = {"bools": "b", "boolean": "b", "integers": "i", "floats": "f"}
TYPES |= {"Int64": "i", "int64[pyarrow]": "i"}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")  # of scikit-learn, for frames
@pytest.mark.parametrize("hold", [lambda y: y, pd.Index, pd.Series.to_frame])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_give_the_same_run(kind, hold):
    X, f, _ = moderate(120)
    y = LABELS[kind](f > 0)
    plain = y.to_numpy() if kind in NULLABLE else np.asarray(y)
    y = hold(pd.Series(y) if hold is pd.Series.to_frame else y)
    model = classifier(okl.LinearAWV()).fit(X, y)
    turn = -1.0 if kind == "turned" else 1.0
    expected = okl.run(okl.LinearAWV(), X, turn * np.where(f > 0, 1.0, -1.0))
    assert_array_equal(model.run_.predictions, expected.predictions)
    assert_array_equal(model.classes_, np.unique(plain))
    parts = classifier(okl.LinearAWV()).partial_fit(X, y, classes=y)
    assert_array_equal(parts.run_.predictions, expected.predictions)
    for one in (model, parts, classifier(okl.LinearAWV()).partial_fit(X, y)):
        assert one.classes_.dtype == model.classes_.dtype
        assert one.predict(X).dtype == one.classes_.dtype
        assert one.classes_.dtype.kind in TYPES.get(kind.split()[-1], "U")


@pytest.mark.parametrize("classes", [("no", "yes"), (1, 0), (False, True), (0.0, 1.0)])
def test_labels_of_a_stream_are_its_classes(classes):
    X, f, _ = moderate(40)
    y = np.array(classes)[(f > 0).astype(int)]
    data = pd.DataFrame(X, columns=list("abcdefgh")[: X.shape[1]]).assign(y=y)
    (rows, signs), *_ = okl.stream(data, label="y", classes=classes)
    assert set(signs.tolist()) == {-1.0, 1.0}
    model = classifier(okl.LinearAWV())
    for learn in (model.fit, model.partial_fit):
        learn(rows, signs)
        assert_array_equal(model.classes_, np.unique(y))
    assert np.mean(model.predict(rows) == y) > 0.6


def test_a_regressor_takes_bools_as_0_and_1():
    """As metrics and other regressors do; in ``okl.run`` they are -1 and +1."""
    X, f, _ = moderate(120)
    found = [regressor().fit(X, pd.Series(f > 0).astype(kind)).predict(X) for kind in NUMERIC]
    assert_array_equal(found, [found[0]] * len(NUMERIC))


MISSING = {
    "category": lambda column: column.astype("category"),
    "object": lambda column: column.astype(object),
    "polars": lambda column: pl.Series([None if pd.isna(v) else v for v in column]),
    "pyarrow": lambda column: pa.array([None if pd.isna(v) else v for v in column]),
}


@pytest.mark.parametrize("how", [*NULLABLE, *MISSING])
def test_a_missing_label_is_refused_with_its_row(how):
    X, f, _ = moderate(60)
    y = nullable(how if how in NULLABLE else "Int64", f > 0)
    y[41] = y[7] = None
    y = MISSING.get(how, pd.Series)(y)
    model = classifier(okl.LinearAWV())
    refused("y has no label at row 7; drop the rows", model.fit, X, y)
    refused("classes has no label at row 7", lambda: model.partial_fit(X, f > 0, classes=y))
    assert not hasattr(model, "learner_")


# ---- probabilities ----

LOGISTIC = okl.FOGD(loss="logistic", n_frequencies=20)
SQUARED = okl.PKAWV(okl.TaylorFeatures(2))


@pytest.mark.parametrize(
    "learner", [LOGISTIC, SQUARED, okl.FOGD(loss="squared_hinge"), None, okl.POMDR(okl.Gaussian())]
)
def test_probabilities_are_those_of_the_scores(learner):
    X, _, y = moderate(200, scaled=True)
    for labels in (y,) if isinstance(learner, okl.POMDR) else (y == "left", y):
        model = classifier(learner).fit(X, labels)
        Z = X if labels is y else 3.0 * X  # far out some are clipped
        P, F = model.predict_proba(Z), model.decision_function(Z)
        assert_array_equal(P, compute_probabilities(model.run_.loss, F, 200))
        assert np.isfinite(log_loss(labels, P))
    assert_array_equal(model.classes_[np.argmax(P, axis=1)], model.predict(X))


@pytest.mark.parametrize("order", ["mixed", "sorted", "lagged"])
@pytest.mark.parametrize("learner", [None, SQUARED, okl.KernelAWV(okl.Gaussian(0.5), lam=0.01)])
def test_the_brier_score_of_a_run_is_below_its_certificate(learner, order):
    X, f, y = moderate(250, scaled=True)
    labels = f > 0
    if order == "sorted":
        by = np.argsort(f)
        X, y, labels = X[by], y[by], labels[by]
    elif order == "lagged":  # each label is that of the input before: hard to forecast
        y, labels = np.roll(y, 1), np.roll(labels, 1)
    run = classifier(learner).fit(X, labels).run_
    p = np.clip(0.5 + 0.5 * run.predictions, 0.0, 1.0)
    brier = len(X) * brier_score_loss(labels, p)
    proof = run.certificate
    assert brier <= 0.25 * proof.loss[-1] + 1e-9
    assert brier <= 0.25 * (proof.comparator[-1] + proof.bound[-1]) + 1e-9


@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive"])
def test_forecasts_of_other_losses_are_no_probabilities(loss):
    X, f, _ = moderate(40)
    model = classifier(okl.FOGD(loss=loss))
    for one in (model, clone(model).fit(X, f > 0)):
        assert not hasattr(one, "predict_proba") and hasattr(one, "decision_function")
        with pytest.raises(AttributeError, match="predict_proba") as error:
            _ = one.predict_proba
        assert f"under the {loss} loss" in str(error.value.__cause__)
    assert hasattr(classifier(), "predict_proba")


# ---- classes that come late ----

LATE = [SQUARED, None, okl.FOGD(loss="logistic"), okl.NOGD(okl.Gaussian(1.0))]
NAMES = ["a", "b", "c", "d"], [3, 0, 1, 7], [0.0, 5.0, 1.0, 2.0], [3, 0, 1, 7]


@pytest.mark.parametrize(("learner", "names"), list(zip(LATE, NAMES, strict=True)))
def test_classes_may_come_late(learner, names):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X = pd.DataFrame(X, columns=["p", "q", "r"]) if learner is LATE[0] else X
    y = np.array(names)[np.minimum(np.arange(200) // 40, rng.integers(0, 4, 200))]
    known, model = okl.OneVsRest(learner or okl.SelfTuning(), names), classifier(learner)
    for start in range(0, 200, 40):
        rows = slice(start, start + 40)
        assert model.partial_fit(X[rows], y[rows]) is model
        known.partial_fit(X[rows], y[rows])
        assert_array_equal(model.classes_, np.unique(y[: start + 40]))
        scores = known.scores(X)[:, [names.index(one) for one in model.classes_.tolist()]]
        scores_of_two = 0.5 * (scores[:, -1] - scores[:, 0])
        rounding = 1e-13 if learner is None else 0.0  # SelfTuning sees lags of a spare class too
        expected = scores_of_two if len(model.classes_) == 2 else scores
        assert_allclose(model.decision_function(X), expected, rtol=0, atol=rounding)
        expected = model.classes_[np.argmax(scores, axis=1)]
        assert np.mean(model.predict(X) == expected) > 0.99  # but for ties of two classes
        assert model.learner_.rounds == start + 40
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
    assert_array_equal(again.predict(X), model.partial_fit(X, y).predict(X))


def test_one_class_so_far_and_bools_which_are_all_there_are():
    X, _, _ = moderate(30)
    model = classifier().partial_fit(X, ["only"] * 30)
    assert set(model.predict(X)) == {"only"} and model.predict_proba(X).tolist() == [[1.0]] * 30
    before = model.decision_function(X)
    refused("y has no label at row 1", lambda: model.partial_fit(X, ["more", None] * 15))
    assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X[:3], ["only??", "only?", "a"])  # the first two are names of spare classes
    assert model.classes_.tolist() == ["a", "only", "only?", "only??"]
    X, f, _ = moderate(60)
    model = classifier().partial_fit(X, f > 0)
    assert isinstance(model.learner_, okl.SelfTuning) and model.classes_.tolist() == [False, True]


# ---- refusals ----


X, F, Y = moderate(30)
AGES = frame(X)


def classify(y, learner=None):
    return classifier(learner).fit(X, y)


NEW_NUMBERS = r"y has 0, but the classes so far are \[.*texts or all numbers"


def begin(classes):
    return classifier(SQUARED).partial_fit(X / 100, Y, classes=classes)


def regress(X=X, learner=None):
    return regressor(learner).fit(X, F)


BAD_FITS = {
    "bool and integers": (lambda: classify(np.array([3, 7, True] * 10, object)), "True.*row 2;"),
    "dates": (lambda: classify(np.arange(30).astype("M8[D]")), "row 0.*astype"),
    "real labels": (lambda: classify(F), "astype.str.; OnlineRegressor"),
    "numbers later": (lambda: begin(None).partial_fit(X, np.arange(30) % 4), NEW_NUMBERS),
    "one of classes": (lambda: begin(["left"]), "all labels that may ever come, at least two"),
    "unknown label": (lambda: begin(["left", "right"]), "'middle' at row.*all classes"),
    "real labels in pieces": (lambda: classifier().partial_fit(X, F), "astype.str."),
    "real classes": (lambda: classifier().partial_fit(X, F, classes=F[:2]), "astype.str."),
    "new one": (lambda: begin(CLASSES).partial_fit(X[:1], ["new"]), "'new' at row 0, which is not"),
    "other classes": (lambda: begin(CLASSES).partial_fit(X, Y, [0, 1]), "left out, or .*'left'"),
    "a class": (lambda: classify(Y, okl.KernelAWV), "the class KernelAWV; make an object"),
    "several outputs": (lambda: regress(X, okl.MultiOutput(SQUARED)), "pass its inner learner"),
    "a text": (lambda: regress(X, "PKAWV"), "must be an oklnumba learner.*'PKAWV'"),
    "hinge": (
        lambda: regress(X, okl.FOGD()),
        "labels -1 and .1; .*learner with loss='squared'",
    ),
    "labels": (lambda: regressor().fit(X, ["a"] * 30), "^y holds text, .a. in row 0"),
    "texts": (lambda: regress(AGES.assign(town="Rome")), "'town' of X holds .*encode"),
    "a number missing": (lambda: regress(AGES.mask(X > 5.5)), "nan at row.*'age'.*impute"),
    "order": (
        lambda: OnlineRegressor(okl.Standardized(okl.Lags(okl.LinearAWV()))).fit(X, X[:, 0]),
        "Lags takes the last labels as inputs: pass shuffle=False",
    ),
    "shuffle": (lambda: classifier(shuffle="yes").fit(X, Y), "shuffle must be True or False"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_errors_say_what_to_do(case):
    call, message = BAD_FITS[case]
    refused(message, call)


def test_after_a_refusal_an_estimator_is_as_before():
    model = classifier(SQUARED).fit(frame(X / 100), Y)
    before = model.decision_function(frame(X / 100))
    for call in (
        lambda: model.fit(X[:, :2], ["a"] * 30),
        lambda: model.fit(X[:, :2], Y[:-1]),
        lambda: model.partial_fit(frame(X / 100), ["a"] * 30),
        lambda: model.partial_fit(frame(X)[["age"]], Y),
    ):
        with pytest.raises(ValueError):
            call()
        assert_array_equal(model.decision_function(frame(X / 100)), before)
        assert model.n_features_in_ == 3 and len(model.feature_names_in_) == 3
    fresh = classifier(SQUARED)
    with pytest.raises(ValueError):
        fresh.partial_fit(X, Y, classes=["left", "right"])
    assert vars(fresh) == {"learner": SQUARED, "shuffle": False, "random_state": None}
    for call in (lambda: fresh.predict(X), lambda: fresh.run_):
        with pytest.raises(NotFittedError):
            call()


# ---- tables and streams ----


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_fit_shuffles_a_table_and_partial_fit_keeps_the_order(kind):
    X, f, _ = moderate(60)
    y = f > 0 if kind is OnlineClassifier else f
    order = check_random_state(3).permutation(60)
    learner = okl.LinearAWV()
    model = kind(learner, random_state=3).fit(X, y)
    expected = kind(learner, shuffle=False).fit(X[order], y[order])
    assert contents(model.learner_) == contents(expected.learner_)
    assert_array_equal(model.run_.predictions, expected.run_.predictions)
    assert contents(kind(learner).fit(X, y).learner_) != contents(kind(learner).fit(X, y).learner_)
    first = {"classes": [False, True]} if kind is OnlineClassifier else {}
    in_order = kind(learner, shuffle=False).fit(X, y).learner_
    parts = kind(learner).partial_fit(X[:20], y[:20], **first).partial_fit(X[20:], y[20:])
    assert contents(parts.learner_) == contents(in_order)


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_tables_sorted_by_class_are_learned_by_default(load):
    """At most two points under a support vector machine on scaled inputs; in order far off."""
    X, y = load(return_X_y=True)
    ours = cross_val_score(OnlineClassifier(random_state=0), X, y).mean()
    assert ours >= cross_val_score(make_pipeline(StandardScaler(), SVC()), X, y).mean() - 0.02
    if load in (load_iris, load_wine):
        with pytest.warns(UserWarning, match=r"rows \d+ to \d+ of \d+ all have the same label"):
            assert cross_val_score(classifier(), X, y).mean() < 0.5


def test_importances_are_those_of_the_self_tuning_learner():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((600, 3)), columns=["noise", "angle", "more"])
    angle, kinds = np.sin(3 * X["angle"].to_numpy()), np.array(["a", "b", "c"])
    for model, y in (
        (OnlineRegressor(), angle),
        (OnlineRegressor(okl.Intervals(okl.SelfTuning())), angle),
        (OnlineClassifier(random_state=0), angle > 0),
        (OnlineClassifier(random_state=0), kinds[(angle > -0.5).astype(int) + (angle > 0.5)]),
    ):
        assert not hasattr(model, "feature_importances_")
        found = model.fit(X, y).feature_importances_
        assert model.feature_names_in_[found.argmax()] == "angle" and found[1] > 0.8
    other = OnlineRegressor(okl.LinearAWV()).fit(X, angle)
    with pytest.raises(AttributeError, match="only SelfTuning has importance, not LinearAWV"):
        other.feature_importances_  # noqa: B018


def test_importances_after_a_class_that_came_late():
    X = np.random.default_rng(0).standard_normal((900, 3))
    y = np.where(X[:, 0] > 0, "a", "b")
    late = np.where(X[:, 1] > 0, "c", y)
    model = OnlineClassifier(okl.SelfTuning(budget=20), shuffle=False).partial_fit(X[:200], y[:200])
    before = model.feature_importances_
    after = model.partial_fit(X[200:], late[200:]).feature_importances_
    assert before[1] < 0.1 < after[1]
