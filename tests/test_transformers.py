"""Feature maps, samplers and the standardizer as steps of scikit-learn's pipelines."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

import oklnumba as okl
from oklnumba.core import inputs
from tests.checks import COMPILED, raises, refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.sign(X[:, 0] * X[:, 1])
LANDMARKS = RNG.normal(size=(6, 3))
FRAME = pd.DataFrame(X, columns=["age", "height", "weight"], index=range(7, 127))
MAPS = {
    "Taylor": okl.TaylorFeatures(2),
    "Fourier": okl.FourierFeatures(10),
    "Nystrom": okl.NystromFeatures(LANDMARKS, okl.Gaussian(1.0)),
    "Basis": okl.BasisFeatures(np.tanh, np.eye),
}
SAMPLERS = {
    "KORS": okl.KORS(okl.Gaussian(1.0)),
    "UniformSampling": okl.UniformSampling(okl.Gaussian(1.0), probability=0.2),
    "ALD": okl.ALD(okl.Gaussian(1.0), threshold=0.5),
}
STEPS = MAPS | SAMPLERS | {"Standardizer": okl.Standardizer(clip=2.0)}
every_map = pytest.mark.parametrize("name", MAPS)
every_sampler = pytest.mark.parametrize("name", SAMPLERS)
every_fitted = pytest.mark.parametrize("name", [*SAMPLERS, "Standardizer"])
every_one = pytest.mark.parametrize("name", STEPS)


def made(name):
    return clone(STEPS[name])


# ---- scikit-learn's own checks ----

CHECKED = sorted(STEPS.keys() - {"Nystrom"})  # whose landmarks have a width
WORDS = "our own ValueError, see test_wrong_inputs_are_refused"
EXPECTED = {
    "check_complex_data": WORDS,
    "check_dtype_object": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_estimators_nan_inf": WORDS,
    "check_fit2d_predict1d": WORDS,
    "check_do_not_raise_errors_in_init_or_set_params": "hyper-parameters are checked at once",
}


@pytest.mark.skipif(not COMPILED, reason="thousands of points")
@pytest.mark.filterwarnings("ignore")  # of checks that are skipped
@pytest.mark.parametrize("name", CHECKED)
def test_checks_of_scikit_learn(name):
    found = estimator_checks.check_estimator(
        made(name), on_fail=None, expected_failed_checks=EXPECTED
    )
    status = {}
    for each in found:
        status.setdefault(each["status"], set()).add(each["check_name"])
    assert status.get("failed", set()) == set()
    assert status["xfail"] <= set(EXPECTED)
    assert len(status["passed"]) > 30 and "check_transformer_general" in status["passed"]


# Those that scikit-learn has for its own transformers.
OF_FRAMES = (
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_get_feature_names_out_error",
    "check_dataframe_column_names_consistency",
    "check_n_features_in",
)


@pytest.mark.parametrize("check", OF_FRAMES)
@pytest.mark.parametrize("name", CHECKED)
def test_checks_of_scikit_learn_for_frames(name, check):
    step = made(name)
    getattr(estimator_checks, check)(type(step).__name__, step)


@every_one
@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (X * 1j, "real numbers"),
        ([["a", "b", "c"]], "column 0 of X .* holds text, 'a' in row 0.*numbers in 1, 2"),
        (np.empty((4, 0)), "empty"),
        (np.array([[0.0, np.nan, 1.0]]), "(?i)nan at row 0, column 1"),
        (np.array([[0.0, 1.0, np.inf]]), "inf at row 0, column 2"),
        (X[0], "2-D"),
        ([[1.0], [2.0, 3.0]], "rectangular"),
    ],
)
def test_wrong_inputs_are_refused(name, bad, text):
    step = made(name).fit(X)
    before = step.transform(X)
    for call in (step.fit, step.partial_fit, step.transform, step.fit_transform):
        refused(text, call, bad)
    assert_array_equal(step.transform(X), before)


# ---- fit, partial_fit, transform ----


@every_map
def test_maps_need_no_fit(name):
    step = made(name)
    before = step.transform(X)
    check_is_fitted(step)
    assert not hasattr(step, "n_features_in_")
    assert step.fit(X) is step and step.n_features_in_ == 3
    assert step.partial_fit(X, Y) is step
    assert_array_equal(step.transform(X), before)
    assert_array_equal(made(name).fit_transform(X, Y), before)
    learner = okl.PKAWV(step).partial_fit(X, Y)  # a map that was fitted serves a learner as before
    assert_array_equal(learner.predict(X), okl.PKAWV(made(name)).partial_fit(X, Y).predict(X))


@every_map
def test_a_map_that_was_fitted_refuses_other_columns(name):
    step = made(name).fit(X)
    for call in (step.transform, step.partial_fit):
        refused("has 2 features, but .* is expecting 3 features", call, X[:, :2])
    if name != "Nystrom":
        assert step.fit(X[:, :2]).transform(X[:, :2]).shape[0] == 120


@every_fitted
def test_fit_starts_afresh_and_partial_fit_goes_on(name):
    kept = ("mean_", "scale_") if name == "Standardizer" else ("indices_", "landmarks_")
    once, parts = made(name).fit(X), made(name)
    for start in range(0, 120, 50):
        parts.partial_fit(X[start : start + 50])
    again = made(name).fit(X[::-1, :2] * 2.0).fit(X)
    for one in (parts, again):
        for what in (*kept, "n_features_in_"):
            assert_array_equal(getattr(one, what), getattr(once, what))
        assert_array_equal(one.transform(X), once.transform(X))
    found = made(name).fit_transform(X, Y)
    assert_array_equal(found, once.transform(X))
    if name == "Standardizer":
        theirs = np.clip(StandardScaler().fit_transform(X), -2.0, 2.0)
        assert_allclose(found, theirs, rtol=1e-12, atol=1e-14)
    else:
        assert once.size > 1


@every_fitted
def test_before_any_data(name):
    for seen in (made(name), made(name).fit(FRAME).reset()):
        for fitted in ("feature_names_in_", "indices_", "mean_"):
            assert not hasattr(seen, fitted)
        for call in (
            lambda s=seen: check_is_fitted(s),
            lambda s=seen: s.transform(X),
            seen.get_feature_names_out,
            lambda s=seen: s.mean_ if name == "Standardizer" else s.features(),
        ):
            raises(NotFittedError, r"call (fit|partial_fit)\(X\)|not fitted yet", call)
        assert seen.fit(X[:, :2]).n_features_in_ == 2  # another width


@every_sampler
def test_a_hyper_parameter_of_a_sampler_counts_from_the_next_fit_on(name):
    step = made(name)
    assert step.size == 0
    kept = step.fit(X).indices_
    step.set_params(kernel=okl.Gaussian(9.0)).partial_fit(X)
    assert_array_equal(step.indices_, made(name).fit(np.vstack([X, X])).indices_)
    assert_array_equal(kept, made(name).fit(X).indices_)


# ---- names and frames ----


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_names_of_monomials_are_those_of_scikit_learn(degree):
    for columns in (["a", "b c", "d"], None):
        ours = okl.TaylorFeatures(degree).fit(X).get_feature_names_out(columns)
        theirs = PolynomialFeatures(degree).fit(X).get_feature_names_out(columns)
        assert ours.dtype == object and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("columns", [["a", "b"], ["u", "v"]])
def test_a_name_says_which_monomial_it_is(columns):
    step = okl.TaylorFeatures(3, sigma=2.0)
    x = np.array([[0.7, -1.3]])
    names = step.get_feature_names_out(columns)  # no fit is needed where there are names
    for name, value in zip(names, step.transform(x)[0], strict=True):
        product = eval(
            name.replace("^", "**").replace(" ", "*"), dict(zip(columns, x[0], strict=True))
        )
        ratio = value / product
        powers = [int(part[2:]) if part[1:] else 1 for part in name.split()] if name != "1" else []
        weight = np.prod([1.0, *(np.sqrt(float(np.prod(range(1, p + 1)))) for p in powers)])
        expected = np.exp(-(x**2).sum() / 8.0) / (2.0 ** sum(powers) * weight)
        assert ratio == pytest.approx(expected, rel=1e-12)


def test_names_of_other_features():
    fourier = okl.FourierFeatures(1).fit(X).get_feature_names_out()
    assert fourier.tolist() == ["fourier_sin0", "fourier_cos0"]
    assert MAPS["Nystrom"].get_feature_names_out(list("abc"))[0] == "nystrom0"
    kors = made("KORS").fit(X)
    assert kors.get_feature_names_out().tolist() == [f"kors{j}" for j in range(kors.size)]


@pytest.mark.parametrize("name", MAPS | SAMPLERS)  # a centred row has no zeros
def test_sparse_rows_in_a_pipeline(name, monkeypatch):
    holes = np.where(np.abs(X) < 0.5, 0.0, X)
    rows, plain = csr_array(holes), made(name).fit(holes)
    expected = plain.transform(holes)
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 1)  # blocks of 64 rows
    pipeline = make_pipeline(made(name), RidgeClassifier())
    assert_array_equal(pipeline.fit(rows, Y).predict(rows), pipeline.fit(holes, Y).predict(holes))
    for held in (rows, holes):
        step = made(name).fit(held)
        assert step.n_features_in_ == 3 and len(step.get_feature_names_out()) > 1
        assert_array_equal(step.transform(held), expected)
        for what in ("indices_", "probabilities_", "landmarks_") if name in SAMPLERS else ():
            assert_array_equal(getattr(step, what), getattr(plain, what))
    refused("expecting 3 features", lambda: step.partial_fit(rows[:, :2]))


@every_one
def test_output_in_frames(name):
    plain = made(name).fit(X).transform(X)
    step = made(name).set_output(transform="pandas").fit(FRAME)
    assert_array_equal(step.transform(FRAME).to_numpy(), plain)
    assert_array_equal(step.transform(FRAME).columns, step.get_feature_names_out())
    assert isinstance(step.set_output().transform(FRAME), pd.DataFrame)  # None: no change
    assert isinstance(clone(step).fit(FRAME).transform(FRAME), pd.DataFrame)
    refused("transform must be one of default, pandas, polars", step.set_output, transform="arrow")
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(step.set_output(transform="default").transform(X), np.ndarray)
        if name in MAPS:
            assert isinstance(made(name).captured(X), np.ndarray)
            assert made(name).transform(FRAME).shape == plain.shape


def test_streams_and_learners_ignore_the_output_of_scikit_learn():
    with sklearn.config_context(transform_output="pandas"):
        learner = okl.Standardized(okl.LinearAWV()).partial_fit(X, Y)
        assert isinstance(learner.predict(X), np.ndarray)
        assert isinstance(okl.Standardizer().stream(X), np.ndarray)
