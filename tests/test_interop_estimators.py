"""OnlineClassifier and OnlineRegressor: scikit-learn's own checks over every learner, and use."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import oklnumba as okl
from oklnumba.interop import OnlineClassifier, OnlineRegressor
from oklnumba.interop.probabilities import to_simplex
from tests.battery import LEARNERS, contents, every_learner, far_from_the_origin, make, stream
from tests.compiled import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of rounds, and nothing compiled")
CLASSES = np.array(["left", "middle", "right"])


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


def for_regression(cls):
    """Return a learner for real labels, or None where the class has none."""
    learner = gentle(cls)
    if not learner._loss().classes:
        return learner
    return gentle(cls, loss="squared") if "loss" in learner.__signature__.parameters else None


REGRESSORS = [cls for cls in LEARNERS if for_regression(cls) is not None]


def moderate(n=300, seed=0):
    """Return a stream on the scales of scikit-learn's users: raw columns, labels of three texts."""
    rng = np.random.default_rng(seed)
    X = rng.normal([5.0, -300.0, 0.0], [2.0, 100.0, 1e-3], (n, 3))
    f = (X[:, 0] - 5.0) / 2.0 + 0.5 * np.sin(X[:, 1] / 50.0)
    return X, f, CLASSES[np.digitize(f, [-0.5, 0.5])]


def frame(X):
    return pd.DataFrame(X, columns=["age", "height", "weight"])


# ---- scikit-learn's checks ----


def failures(estimator):
    """Return what scikit-learn's checks have against an estimator, and how many there were."""
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    bad = [(r["check_name"], r["exception"]) for r in results if r["status"] != "passed"]
    # asked for by an environment variable only, and for estimators that claim array API support
    return [one for one in bad if one[0] != "check_array_api_input"], len(results)


zeros_and_ones = pytest.mark.filterwarnings("ignore:the labels are 0 and 1")  # meant, there


@far_from_the_origin
@pytest.mark.parametrize("cls", [None, *LEARNERS], ids=lambda cls: cls and cls.__name__)
def test_a_classifier_over_any_learner_passes_the_checks_of_scikit_learn(cls):
    found, played = failures(OnlineClassifier(cls and gentle(cls)))
    assert found == [] and played > 50


@far_from_the_origin
@zeros_and_ones
@pytest.mark.parametrize("cls", [None, *REGRESSORS], ids=lambda cls: cls and cls.__name__)
def test_a_regressor_over_any_learner_passes_the_checks_of_scikit_learn(cls):
    found, played = failures(OnlineRegressor(cls and for_regression(cls)))
    assert found == [] and played > 50


@pytest.mark.parametrize("cls", sorted(set(LEARNERS) - set(REGRESSORS), key=lambda c: c.__name__))
def test_a_regressor_refuses_learners_for_classes(cls):
    X, y = stream(okl.KernelAWV(okl.Gaussian(1.0)), 20)
    with pytest.raises(ValueError, match="real labels.*labels -1 and \\+1.*OnlineClassifier"):
        OnlineRegressor(make(cls)).fit(X, y)


def test_most_learners_are_for_both():
    assert len(REGRESSORS) >= 25 and okl.SelfTuning in REGRESSORS


def test_the_checks_would_see_an_estimator_that_is_wrong():
    """Negative control: a classifier that looks at what is far from it, and one that is poor."""

    class Keeps(OnlineClassifier):
        def predict(self, X):
            self.last_ = len(X)
            return super().predict(X)

    class Poor(OnlineClassifier):
        def decision_function(self, X):
            return -super().decision_function(X)

    for wrong, name in ((Keeps, "check_dict_unchanged"), (Poor, "check_classifiers_train")):
        assert name in [check for check, _ in failures(wrong())[0]]


def test_only_the_self_tuning_learner_promises_scores():
    for learner, poor in ((None, False), (okl.SelfTuning(), False), (okl.FOGD(), True)):
        assert get_tags(OnlineClassifier(learner)).classifier_tags.poor_score is poor
    assert get_tags(OnlineRegressor()).regressor_tags.poor_score is False
    assert get_tags(OnlineRegressor(okl.OGD())).regressor_tags.poor_score is True


NO_SIGNS = {"ExponentiatedGradient", "Winnow"}  # their weights are never below 0


@every_learner
def test_a_classifier_of_any_learner_with_its_defaults_learns_blobs(cls):
    X, y = make_blobs(n_samples=300, random_state=0)
    X, y = StandardScaler().fit_transform(X[y != 2]), y[y != 2]
    score = OnlineClassifier(make(cls)).fit(X, y).score(X, y)
    assert score > 0.83 or cls.__name__ in NO_SIGNS


# ---- a fit is a run ----


@every_learner
def test_a_fit_is_a_run_of_the_learner_bit_for_bit(cls):
    given = make(cls)
    X, y = stream(given, 90)
    learner = make(cls)
    expected = okl.run(learner, X, np.sign(y))
    model = OnlineClassifier(given).fit(X, np.where(y > 0, "up", "down"))
    assert given.rounds == 0 and model.learner_.rounds == 90
    assert_array_equal(model.run_.predictions, expected.predictions)
    assert_array_equal(model.run_.mistakes, expected.mistakes)
    assert contents(model.learner_) == contents(learner)
    assert_array_equal(model.decision_function(X), learner.predict(X))
    assert_array_equal(model.predict(X), np.where(learner.predict(X) > 0, "up", "down"))
    if cls in REGRESSORS:
        learner = make(cls, **({"loss": "squared"} if given._loss().classes else {}))
        model = OnlineRegressor(learner).fit(X, 0.5 * y)
        expected = okl.run(learner, X, 0.5 * y)
        assert_array_equal(model.run_.predictions, expected.predictions)
        assert_array_equal(model.predict(X), learner.predict(X))


@pytest.mark.parametrize("learner", [okl.PKAWV(okl.TaylorFeatures(2)), okl.FOGD(), None])
def test_several_classes_are_one_against_the_rest(learner):
    X, _, y = moderate(150)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = OnlineClassifier(learner).fit(X, y)
    several = okl.OneVsRest(learner or okl.SelfTuning(), CLASSES)
    expected = okl.run(several, X, y)
    assert_array_equal(model.classes_, CLASSES)
    assert_array_equal(model.run_.predictions, expected.predictions)
    assert_array_equal(model.run_.scores, expected.scores)
    assert_array_equal(model.decision_function(X), several.scores(X))
    assert_array_equal(model.predict(X), several.predict(X))


@pytest.mark.parametrize("learner", [okl.KernelRidge(okl.Gaussian(1.0)), okl.OGD(), None])
def test_several_labels_are_several_outputs(learner):
    X, f, _ = moderate(150)
    Y, X = np.column_stack([f, -f, X[:, 2]]), (X - X.mean(axis=0)) / X.std(axis=0)
    model, several = OnlineRegressor(learner), okl.MultiOutput(learner or okl.SelfTuning())
    expected = okl.run(several, X, Y)
    assert_array_equal(model.fit(X, Y).run_.predictions, expected.predictions)
    assert_array_equal(model.predict(X), several.predict(X))
    assert model.score(X, Y) == pytest.approx(OnlineRegressor.score(model, X, Y))
    with pytest.raises(ValueError, match="y"):
        model.partial_fit(X, f)
    assert model.fit(X, Y[:, :1]).predict(X).shape == (150, 1)


@pytest.mark.parametrize("learner", [None, okl.NystromAWV(okl.Gaussian(1.0)), okl.FOGD()])
@pytest.mark.parametrize("count", [2, 3])
def test_partial_fits_in_pieces_are_one_fit(learner, count):
    X, _, y = moderate()
    y = y if count == 3 else np.where(y == "middle", "left", y)
    classes = np.unique(y)
    assert len(classes) == count
    whole, pieces = OnlineClassifier(learner).fit(X, y), OnlineClassifier(learner)
    mistakes = []
    for a, b in ((0, 1), (1, 64), (64, 65), (65, 300)):
        pieces.partial_fit(X[a:b], y[a:b], classes=classes if a == 0 else None)
        assert pieces.run_.rounds == len(X[a:b])
        mistakes.append(pieces.run_.mistakes)
    assert_array_equal(np.concatenate(mistakes), whole.run_.mistakes)
    assert_allclose(pieces.decision_function(X), whole.decision_function(X), rtol=1e-9, atol=1e-12)
    assert pieces.learner_.rounds == len(X)
    # to the bit where the pieces are the same
    again = OnlineClassifier(learner).fit(X[:64], y[:64]).partial_fit(X[64:], y[64:], classes)
    player = make_player(learner, classes)
    for a, b in ((0, 64), (64, 300)):
        player.partial_fit(X[a:b], y[a:b] if count > 2 else np.where(y[a:b] == classes[1], 1.0, -1))
    assert contents(again.learner_) == contents(player)


def make_player(learner, classes):
    learner = clone(learner) if learner else okl.SelfTuning()
    return okl.OneVsRest(learner, classes.tolist()) if len(classes) > 2 else learner


def test_a_second_fit_starts_afresh_and_a_regressor_goes_on():
    X, f, y = moderate(80)
    model = OnlineClassifier().fit(X, f > 0)
    model.fit(X[:, :2], y)
    assert model.n_features_in_ == 2 and model.learner_.rounds == 80
    assert_array_equal(
        model.predict(X[:, :2]), OnlineClassifier().fit(X[:, :2], y).predict(X[:, :2])
    )
    whole = OnlineRegressor().fit(X, f)
    pieces = OnlineRegressor().partial_fit(X[:50], f[:50]).partial_fit(X[50:], f[50:])
    assert pieces.learner_.rounds == 80 and pieces.run_.rounds == 30
    assert_allclose(pieces.predict(X), whole.predict(X), rtol=1e-9)


# ---- labels and frames ----


def test_a_raw_frame_with_texts_for_labels_needs_no_argument():
    X, _, y = moderate(1000)
    model = OnlineClassifier().fit(frame(X), y)
    assert model.run_.mistakes[300:].mean() < 0.1
    later, _, labels = moderate(500, seed=1)
    assert model.score(frame(later), labels) > 0.9
    assert_array_equal(model.feature_names_in_, ["age", "height", "weight"])
    assert model.n_features_in_ == 3 and model.predict(frame(later)).dtype.kind in "UO"


def test_a_raw_frame_for_regression():
    X, f, _ = moderate(1000)
    later, expected, _ = moderate(500, seed=1)
    assert OnlineRegressor().fit(frame(X), 1e6 + f).score(frame(later), 1e6 + expected) > 0.95


LABELS = {
    "texts": lambda up: np.where(up, "yes", "no"),
    "objects": lambda up: np.where(up, "yes", "no").astype(object),
    "list": lambda up: np.where(up, "yes", "no").tolist(),
    "indexed": lambda up: pd.Series(np.where(up, "yes", "no"), index=-np.arange(len(up))),
    "categories": lambda up: pd.Series(np.where(up, "yes", "no"), dtype="category"),
    "bools": lambda up: up,
    "integers": lambda up: np.where(up, 7, 3),
    "objects that are bools": lambda up: up.astype(object),
    "objects that are integers": lambda up: pd.Series(np.where(up, 7, 3), dtype=object),
    "bools of NumPy": lambda up: np.array([*up, None], dtype=object)[:-1],
    "signs": lambda up: np.where(up, 1, -1),
    "floats": lambda up: np.where(up, 1.0, 0.0),
    "turned": lambda up: np.where(up, "a", "b"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_give_the_same_run(kind):
    X, f, _ = moderate(120)
    y = LABELS[kind](f > 0)
    model = OnlineClassifier().fit(X, y)
    turn = -1.0 if kind == "turned" else 1.0
    expected = okl.run(okl.SelfTuning(), X, turn * np.where(f > 0, 1.0, -1.0))
    assert_array_equal(model.run_.predictions, expected.predictions)
    assert_array_equal(model.classes_, np.unique(np.asarray(y)))
    parts = OnlineClassifier().partial_fit(X, y, classes=y)
    assert_array_equal(parts.run_.predictions, expected.predictions)
    for one in (model, parts):
        assert one.predict(X).dtype == one.classes_.dtype
        assert not kind.startswith(("objects that", "bools")) or one.classes_.dtype.kind in "bi"
    assert np.mean(model.predict(X) == np.asarray(y)) > 0.9


NULLABLE = {  # what pandas calls a type, and what its labels are
    "Int64": np.int64, "UInt8": np.uint8, "int64[pyarrow]": np.int64,
    "boolean": np.bool_, "bool[pyarrow]": np.bool_,
    "string": np.object_, "string[pyarrow]": np.object_,
}  # fmt: skip
CONTAINERS = {
    "Series": pd.Series,
    "Index": pd.Index,
    "array": lambda column: column.array,
    "frame": lambda column: column.to_frame("y"),
}


def nullable(dtype, truth):
    values = {"s": np.where(truth, "yes", "no"), "b": truth}.get(dtype[0], np.where(truth, 7, 3))
    return pd.Series(values).astype(dtype)


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")  # of scikit-learn, for frames
@pytest.mark.parametrize("held", CONTAINERS)
@pytest.mark.parametrize("dtype", NULLABLE)
def test_nullable_labels_of_pandas_are_the_integers_bools_and_texts_they_are(dtype, held):
    X, f, _ = moderate(60)
    column = nullable(dtype, f > 0)
    kinds = {"s": ["no", "yes"], "b": [False, True]}.get(dtype[0], [3, 7])
    y, learner = CONTAINERS[held](column), okl.LinearAWV()
    expected = OnlineClassifier(learner).fit(X, f > 0)
    model = OnlineClassifier(learner).fit(X, y)
    named = y["y"] if held == "frame" else y
    parts = OnlineClassifier(learner).partial_fit(X, y, classes=named).partial_fit(X, y)
    for one in (model, parts):
        assert one.classes_.dtype == NULLABLE[dtype]
        assert [type(c) for c in one.classes_.tolist()] == [type(c) for c in kinds]
        assert one.classes_.tolist() == kinds
        assert_array_equal(one.predict(X) == one.classes_[1], expected.predict(X))
    assert_array_equal(model.run_.predictions, expected.run_.predictions)


MISSING = {
    "float": lambda column: column.astype(object).map({7: 7.0, 3: 3.0}).astype(float),
    "category": lambda column: column.astype("category"),
    "object": lambda column: column.astype(object),
    "polars": lambda column: pl.Series([None if pd.isna(v) else v for v in column]),
    "pyarrow": lambda column: pa.array([None if pd.isna(v) else v for v in column]),
    "chunks": lambda column: pa.chunked_array([[None if pd.isna(v) else v for v in column]]),
}


@pytest.mark.parametrize("how", [*NULLABLE, *MISSING])
def test_a_missing_label_is_told_with_its_row(how):
    X, f, _ = moderate(60)
    y = nullable(how if how in NULLABLE else "Int64", f > 0)
    classes = y.drop_duplicates()
    y[41] = y[7] = None
    y = MISSING.get(how, pd.Series)(y)
    model = OnlineClassifier(okl.LinearAWV())
    for call in (model.fit, lambda X, y: model.partial_fit(X, y, classes=classes)):
        with pytest.raises(ValueError, match="y has no label at row 7; drop the rows"):
            call(X, y)
        assert not hasattr(model, "learner_")
    with pytest.raises(ValueError, match="classes has no label at row 7"):
        model.partial_fit(X, f > 0, classes=y)


HOLDERS = {
    "pandas": frame,
    "polars": lambda X: pl.DataFrame(X, schema=["age", "height", "weight"]),
    "pyarrow": lambda X: pa.table(dict(zip(["age", "height", "weight"], X.T, strict=True))),
    "lists": lambda X: X.tolist(),
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "objects": lambda X: X.astype(object),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_the_rows_the_run_is_bitwise_the_same(holder):
    X, f, _ = moderate(70)
    A = HOLDERS[holder](X)
    model, plain = (OnlineRegressor().fit(rows, f) for rows in (A, X))
    assert_array_equal(model.run_.predictions, plain.run_.predictions)
    assert_array_equal(model.predict(A), plain.predict(X))
    if holder in ("pandas", "polars", "pyarrow"):
        assert model.feature_names_in_.tolist() == ["age", "height", "weight"]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_sparse_rows_are_played_as_dense_ones(form):
    X, f, y = moderate(100)
    X[X < 0.0] = 0.0
    A = scipy.sparse.csr_array(X).asformat(form)
    for model, labels in ((OnlineClassifier(okl.FOGD()), y), (OnlineRegressor(), f)):
        sparse, dense = clone(model).fit(A, labels), clone(model).fit(X, labels)
        assert_array_equal(sparse.run_.predictions, dense.run_.predictions)
        assert_array_equal(sparse.predict(A), dense.predict(X))
        assert_array_equal(
            sparse.partial_fit(A, labels).predict(X), dense.partial_fit(X, labels).predict(A)
        )


def test_columns_are_matched_by_name():
    X, f, _ = moderate(60)
    model = OnlineClassifier().fit(frame(X), f > 0)
    for wrong in (frame(X)[["height", "age", "weight"]], frame(X).rename(columns={"age": "years"})):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong)
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(wrong, f > 0)
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)
    assert model.learner_.rounds == 60


# ---- probabilities ----

LOGISTIC = okl.FOGD(loss="logistic", n_frequencies=20)
SQUARED = okl.PKAWV(okl.TaylorFeatures(2))


def test_probabilities_are_those_of_the_formulas():
    X, _, y = moderate(200)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for learner, formula in (
        (LOGISTIC, lambda f: 1.0 / (1.0 + np.exp(-f))),
        (SQUARED, lambda f: np.clip((1.0 + f) / 2.0, 0.0, 1.0)),
        (okl.FOGD(loss="squared_hinge"), lambda f: np.clip((1.0 + f) / 2.0, 0.0, 1.0)),
    ):
        model = OnlineClassifier(learner).fit(X, y == "left")
        P = model.predict_proba(3.0 * X)  # far out, so that some are clipped
        assert_allclose(P[:, 1], formula(model.decision_function(3.0 * X)), rtol=1e-12, atol=1e-12)
        assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
        if learner is SQUARED:
            assert P.min() == 0.0 and 0.0 < np.median(P[:, 1]) < 1.0


@pytest.mark.parametrize("learner", [LOGISTIC, SQUARED, None])
def test_probabilities_of_several_classes_are_on_the_simplex_and_rank_as_the_scores(learner):
    X, _, y = moderate(200)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = OnlineClassifier(learner).fit(X, y)
    P, F = model.predict_proba(X), model.decision_function(X)
    assert P.shape == (200, 3) and (P >= 0.0).all()
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(np.argmax(P, axis=1), np.argmax(F, axis=1))
    assert_array_equal(model.classes_[np.argmax(P, axis=1)], model.predict(X))
    if learner is LOGISTIC:
        odds = 1.0 / (1.0 + np.exp(-F))
        assert_allclose(P, odds / odds.sum(axis=1, keepdims=True), rtol=1e-12)
    else:
        naive = np.array([nearest_on_simplex(f) for f in 0.5 + 0.5 * F])
        assert_allclose(P, naive, atol=1e-9)


def nearest_on_simplex(p):
    """Return the projection by bisection of the level t with sum_i max(p_i - t, 0) = 1."""
    low, high = p.min() - 1.0, p.max()
    for _ in range(80):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.maximum(p - t, 0.0).sum() > 1.0 else (low, t)
    return np.maximum(p - low, 0.0)


def test_the_simplex_is_never_further_from_a_class_than_the_scores_were():
    rng = np.random.default_rng(0)
    P = rng.normal(0.3, 2.0, (2000, 4))
    to = to_simplex(P)
    for corner in np.eye(4):
        assert (((to - corner) ** 2).sum(1) <= ((P - corner) ** 2).sum(1) + 1e-12).all()


@pytest.mark.parametrize("order", ["mixed", "sorted", "lagged"])
@pytest.mark.parametrize("learner", [None, SQUARED, okl.KernelAWV(okl.Gaussian(0.5), lam=0.01)])
def test_the_brier_score_of_a_run_is_below_its_certificate(learner, order):
    X, f, y = moderate(250)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = f > 0
    if order == "sorted":
        by = np.argsort(f)
        X, y, labels = X[by], y[by], labels[by]
    elif order == "lagged":  # each label is that of the input before: hard to forecast
        y, labels = np.roll(y, 1), np.roll(labels, 1)
    run = OnlineClassifier(learner).fit(X, labels).run_
    p = np.clip(0.5 + 0.5 * run.predictions, 0.0, 1.0)
    brier = len(X) * brier_score_loss(labels, p)
    proof = run.certificate
    assert brier <= 0.25 * proof.loss[-1] + 1e-9
    assert brier <= 0.25 * (proof.comparator[-1] + proof.bound[-1]) + 1e-9
    run = OnlineClassifier(learner).fit(X, y).run_  # several classes
    truth = (y[:, None] == CLASSES).astype(float)
    brier = ((to_simplex(0.5 + 0.5 * run.scores) - truth) ** 2).sum()
    proof = run.certificate
    assert brier <= 0.25 * (proof.comparator[-1] + proof.bound[-1]).sum() + 1e-9


@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive"])
def test_forecasts_of_other_losses_are_no_probabilities(loss):
    X, f, _ = moderate(40)
    model = OnlineClassifier(okl.FOGD(loss=loss))
    for one in (model, clone(model).fit(X, f > 0)):
        assert not hasattr(one, "predict_proba") and hasattr(one, "decision_function")
        with pytest.raises(AttributeError, match="predict_proba") as error:
            _ = one.predict_proba
        assert f"under the {loss} loss" in str(error.value.__cause__)
    assert hasattr(OnlineClassifier(), "predict_proba")


# ---- in scikit-learn ----


def test_grid_search_over_nested_parameters():
    X, f, _ = moderate(120)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    search = GridSearchCV(
        OnlineClassifier(okl.PKAWV(okl.FourierFeatures(30), lam=1.0)),
        {"learner__features__sigma": [0.1, 2.0], "learner__lam": [0.1]},
        cv=3,
    ).fit(X, f > 0)
    assert search.best_params_ == {"learner__features__sigma": 2.0, "learner__lam": 0.1}
    assert search.best_estimator_.learner_.features.sigma == 2.0 and search.best_score_ > 0.9
    kernel = okl.Gaussian(1.0)
    given = okl.KernelAWV(kernel)
    grid = {"learner__kernel__sigma": [0.1, 2.0]}
    search = GridSearchCV(OnlineRegressor(given), grid, cv=3).fit(X, f)
    assert search.best_params_ == {"learner__kernel__sigma": 2.0}
    assert kernel.sigma == 1.0 and given.rounds == 0  # what was given is as it was
    learners = [okl.LinearAWV(), okl.SelfTuning()]
    search = GridSearchCV(OnlineRegressor(), {"learner": learners}, cv=3).fit(X, np.abs(f))
    assert isinstance(search.best_params_["learner"], okl.SelfTuning)


def test_pipelines_and_cross_validation_in_processes():
    X, f, y = moderate(150)
    model = make_pipeline(StandardScaler(), OnlineClassifier(okl.FOGD(eta=0.5)))
    assert model.fit(frame(X), y).score(frame(X), y) > 0.8
    Z = StandardScaler().fit_transform(X)
    assert_array_equal(
        model.predict(frame(X)), OnlineClassifier(okl.FOGD(eta=0.5)).fit(Z, y).predict(Z)
    )
    scores = cross_val_score(OnlineRegressor(SQUARED), Z, f, cv=3)
    by_hand = OnlineRegressor(SQUARED).fit(Z[50:], f[50:]).score(Z[:50], f[:50])
    assert scores.shape == (3,) and scores[0] == by_hand
    two = cross_val_score(OnlineRegressor(SQUARED), Z, f, cv=3, n_jobs=2)
    assert_array_equal(two, scores)
    P = cross_val_predict(OnlineClassifier(SQUARED), Z, y, cv=3, method="predict_proba")
    assert P.shape == (150, 3)


def test_parameters_clones_and_what_is_shown():
    model = OnlineClassifier(okl.WithFeatures(okl.TaylorFeatures(2), okl.OGD(eta=0.2)))
    params = model.get_params()
    assert params["learner__learner__eta"] == 0.2 and params["learner__features__degree"] == 2
    twin = clone(model).set_params(learner__learner__eta=0.5, learner__features__sigma=3.0)
    assert (twin.learner.learner.eta, twin.learner.features.sigma) == (0.5, 3.0)
    assert model.learner.learner.eta == 0.2 and twin.learner is not model.learner
    X, f, _ = moderate(40)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model.fit(X, f > 0)
    assert not hasattr(clone(model), "learner_")
    assert repr(model) == repr(clone(model)) and "eta=0.2" in repr(model)
    assert "OnlineClassifier" in model._repr_html_()


def test_pickles_and_joblib_and_files(tmp_path):
    X, f, y = moderate(100)
    for model in (OnlineClassifier().fit(X, f > 0), OnlineClassifier(SQUARED).fit(X / 100, y)):
        file = io.BytesIO()
        joblib.dump(model, file)
        file.seek(0)
        for twin in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
            assert_array_equal(twin.decision_function(X), model.decision_function(X))
            assert_array_equal(twin.run_.predictions, model.run_.predictions)
        model.learner_.save(tmp_path / "learner.npz")
        scores = getattr(okl.load(tmp_path / "learner.npz"), "scores", None)
        scores = scores or okl.load(tmp_path / "learner.npz").predict
        assert_array_equal(scores(X), model.decision_function(X))
    many = np.tile(X, (200, 1))  # the rows themselves are no part of it
    fitted = OnlineRegressor(SQUARED).fit(many / 100, many[:, 0])
    assert len(pickle.dumps(fitted)) < many.nbytes + 8 * 8 * len(many)
    with pytest.raises(ValueError, match="does not hold its data"):
        fitted.run_.regret(okl.Gaussian(1.0), 1.0)


# ---- refusals ----


X, F, Y = moderate(30)
AGES = frame(X)


def classify(y, learner=None):
    return OnlineClassifier(learner).fit(X, y)


def begin(classes):
    return OnlineClassifier(SQUARED).partial_fit(X / 100, Y, classes=classes)


def regress(X=X, learner=None):
    return OnlineRegressor(learner).fit(X, F)


BAD_FITS = {
    "one class": (lambda: classify(["a"] * 30), "1 class, 'a'.*partial_fit"),
    "a label missing": (lambda: classify([*Y[1:].tolist(), None]), "None.*row 29.*drop"),
    "a bool missing": (lambda: classify(np.array([True, False, None] * 10)), "None.*row 2;"),
    "a bool among integers": (
        lambda: classify(np.array([3, 7, True] * 10, object)),
        "True.*row 2;",
    ),
    "beyond integers": (lambda: classify(np.array([3, 2**70] * 15, object)), "row 1;"),
    "two types": (lambda: classify(np.array(["a", 1] * 15, object)), "1 .int. at row 1"),
    "dates": (lambda: classify(np.arange(30).astype("M8[D]")), "row 0.*y.astype"),
    "real labels": (lambda: classify(F), "continuous"),
    "no classes": (lambda: begin(None), "first call of partial_fit needs classes"),
    "one of classes": (lambda: begin(["left"]), "all labels that may ever come, at least two"),
    "an unknown label": (lambda: begin(["left", "right"]), "'middle' at row.*names all classes"),
    "other classes": (lambda: begin(CLASSES).partial_fit(X, Y, [0, 1]), "'left'.*leave them out"),
    "a class": (lambda: classify(Y, okl.KernelAWV), "make one of that class.*okl.KernelAWV"),
    "several classes": (lambda: classify(Y, okl.OneVsRest(SQUARED, CLASSES)), "learner within"),
    "several outputs": (lambda: regress(X, okl.MultiOutput(SQUARED)), "pass the learner within"),
    "a text": (lambda: regress(X, "PKAWV"), "okl.PKAWV.okl.TaylorFeatures"),
    "hinge": (lambda: regress(X, okl.FOGD()), "set loss='squared', or use OnlineClassifier"),
    "within": (lambda: regress(X, okl.Standardized(okl.FOGD())), "set learner__loss='squared'"),
    "texts": (
        lambda: regress(AGES.assign(town="Rome")),
        "'town' of X holds text.*drop it, or encode",
    ),
    "days": (lambda: regress(AGES.assign(day=pd.Timestamp(2020, 1, 1))), "'day' of X holds dates"),
    "a number missing": (lambda: regress(AGES.mask(X > 5.5)), "nan at row.*'age'.*impute"),
    "nothing to set": (
        lambda: OnlineClassifier().set_params(learner__budget=10),
        r"OnlineClassifier\(okl.SelfTuning\(\)\)",
    ),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_refusals_name_the_cure(case):
    call, message = BAD_FITS[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_arguments_of_the_learner_are_sent_to_it():
    with pytest.raises(TypeError, match="sigma belongs to the learner, learner=okl"):
        OnlineClassifier(sigma=2.0)
    with pytest.raises(TypeError, match="OnlineRegressor has no argument estimator: learner is"):
        OnlineRegressor(estimator=okl.OGD())


def test_there_are_no_weights_of_rows():
    for model, y in ((OnlineClassifier(), Y), (OnlineRegressor(), F)):
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, y, sample_weight=np.ones(30))


def test_after_a_refusal_an_estimator_is_as_before():
    model = OnlineClassifier(SQUARED).fit(frame(X / 100), Y)
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
    fresh = OnlineClassifier(SQUARED)
    with pytest.raises(ValueError):
        fresh.partial_fit(X, Y, classes=["left", "right"])
    assert vars(fresh) == {"learner": SQUARED}
    with pytest.raises(NotFittedError):
        fresh.predict(X)


# ---- the libraries are optional ----


def in_a_process(code):
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_importing_oklnumba_imports_neither_library():
    in_a_process("""
        import sys
        import oklnumba as okl
        dir(okl), dir(okl.interop), okl.interop
        wanted = {"sklearn", "river", "pandas", "joblib"}
        assert not wanted & {name.split(".")[0] for name in sys.modules}
        okl.interop.OnlineClassifier
        assert "sklearn" in sys.modules and "river" not in sys.modules
    """)


def test_without_the_library_an_estimator_says_how_to_get_it():
    in_a_process("""
        import sys
        sys.modules["sklearn"] = None  # as if it were not installed
        import oklnumba as okl
        okl.run(okl.OGD(), [[1.0]], [1.0])
        try:
            okl.interop.OnlineRegressor
        except ImportError as error:
            assert "pip install scikit-learn" in str(error), error
        else:
            raise AssertionError
        try:
            okl.interop.nonsense
        except AttributeError as error:
            assert "no attribute 'nonsense'" in str(error)
        else:
            raise AssertionError
    """)


def test_labels_that_are_no_numbers_are_told_without_a_word_of_streams():
    with pytest.raises(ValueError, match=r"^y must hold real numbers"):
        OnlineRegressor().fit(np.zeros((4, 1)), ["a"] * 4)


@pytest.mark.parametrize("kind", [okl.interop.OnlineClassifier, okl.interop.OnlineRegressor])
def test_another_learner_after_the_first_rows_is_refused_until_fit(kind):
    X, y = np.random.default_rng(0).uniform(-1, 1, (30, 2)), np.arange(30) % 3
    first = {"classes": [0, 1, 2]} if kind is okl.interop.OnlineClassifier else {}
    model = kind(okl.LinearAWV(lam=1.0)).partial_fit(X, y, **first)
    played = model.learner_.rounds
    model.set_params(learner__lam=2.0)
    with pytest.raises(ValueError, match=r"now LinearAWV\(lam=2.0.*, but LinearAWV\(.*call fit"):
        model.partial_fit(X, y)
    assert model.learner_.rounds == played == 30
    model.set_params(learner__lam=1.0).partial_fit(X, y)
    assert model.learner_.rounds == 60
    anew = model.set_params(learner__lam=2.0).fit(X, y).learner_
    assert anew.rounds == 30 and "lam=2.0" in repr(anew)
