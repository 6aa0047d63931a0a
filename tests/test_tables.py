"""Well-kept libraries around ours: encoders of frames as they are, and shap."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.interop import OnlineClassifier, OnlineRegressor
from tests.checks import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of rounds")


def shop(n=1200, seed=0):
    """Return a raw frame of all kinds of columns, and whether something was bought."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n),
            "town": rng.choice(["Rome", "Oslo", "Bonn"], n),
            "kind": pd.Categorical(rng.choice(list("uvw"), n)),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D"),
            "took": pd.to_timedelta(rng.integers(0, 600, n), "s"),
        }
    )
    bought = np.where((X.age > 40.0) ^ (X.town == "Rome"), "yes", "no")
    X.loc[::9, "age"] = None
    X.loc[::50, "town"] = None
    return X, bought


@pytest.mark.filterwarnings("ignore:Found unknown categories")  # of scikit-learn's encoder
def test_skrub_stands_before_it():
    skrub = pytest.importorskip("skrub")
    X, y = shop()
    model = skrub.tabular_pipeline(OnlineClassifier(random_state=0))
    model.fit(X[:900], y[:900])
    assert model.score(X[900:].assign(kind="new"), y[900:]) > 0.8
    assert_array_equal(model.predict(X), model.predict(X.copy()))
    regression = skrub.tabular_pipeline(OnlineRegressor(random_state=0))
    target = (y == "yes") + X.took.dt.total_seconds() / 600.0
    assert regression.fit(X[:900], target[:900]).score(X[900:], target[900:]) > 0.5


def test_shap_explains_a_forecast():
    shap = pytest.importorskip("shap")
    X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    learner = okl.SelfTuning().partial_fit(X, np.sin(3 * X[:, 1]))
    found = shap.Explainer(learner.predict, X[:50])(X[-3:])
    whole = found.values.sum(axis=1) + found.base_values
    assert_allclose(whole, learner.predict(X[-3:]), atol=1e-9)
    assert (np.abs(found.values).argmax(axis=1) == 1).all()
