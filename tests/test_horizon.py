"""Horizon: direct forecasts by the recipe by hand, however they are played."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter

import oklnumba as okl
from tests.battery import contents
from tests.checks import refused

N = 700  # more than a block of some learners
RNG = np.random.default_rng(0)
T = np.arange(N)
X = np.column_stack([T % 24.0, RNG.uniform(-1, 1, N)])
Y = 50 + 0.01 * T + 8 * np.sin(T * np.pi / 12) + X[:, 1] + RNG.standard_normal(N)
INNER = {
    "ridge": lambda: okl.LinearRidge(),
    "intervals": lambda: okl.Intervals(okl.KRLS(okl.Gaussian(9.0))),
    "tuned": lambda: okl.Intervals(okl.SelfTuning(budget=20)),
}
OPTIONS = [
    {"steps": 1, "lags": 1},
    {"steps": 6, "lags": 2, "season": 24},
    {"steps": 30, "season": (24, 7)},
]
LAST = [1], [6, 7, 24], [30, 31, 32, 35, 48]  # which labels before t these see
every_inner = pytest.mark.parametrize("inner", INNER)


pytestmark = pytest.mark.filterwarnings("ignore:Horizon has learned none of . rows")


def make(inner, **options):
    return okl.Horizon(INNER[inner](), **options or OPTIONS[1])


def recipe(inner, options, lags):
    """Return forecasts and intervals of rows built by hand, from the first whole one on."""
    t = np.arange(lags[-1], N)
    now = Y[t - lags[0]]
    rows = np.column_stack([now, *(Y[t - lag] - now for lag in lags[1:]), X[t]])
    run = okl.run(INNER[inner](), rows, Y[t] - now, delay=options["steps"] - 1)
    intervals = None if run.intervals is None else run.intervals + now[:, None]
    return run.predictions + now, intervals


def single(model, X, y):
    forecasts, intervals = [], []
    for x, label in zip(X, y, strict=True):
        forecasts.append(model.predict_one(x))
        if isinstance(model.learner, okl.Intervals):
            intervals.append(model.predict_interval(x[None])[0])
        model.learn_one(x, label)
    return np.array(forecasts), np.array(intervals) if intervals else None


@pytest.mark.parametrize(
    ("inner", "options", "lags"),
    [
        pytest.param(inner, *case, marks=[pytest.mark.slow] * (inner == "tuned"))
        for inner in INNER
        for case in zip(OPTIONS, LAST, strict=True)
    ],
)
def test_forecasts_are_those_of_the_recipe_by_hand_in_any_cut(inner, options, lags, tmp_path):
    model = make(inner, **options)
    run, (expected, around) = okl.run(model, X, Y), recipe(inner, options, lags)
    exact = 0.0 if options["steps"] > 1 else 1e-14  # by hand labels at once are played in bulk
    assert_allclose(run.predictions[lags[-1] :], expected, rtol=exact)
    first = np.append(np.zeros(lags[0]), Y)[: lags[-1]]  # the last known label
    assert_array_equal(run.predictions[: lags[-1]], first)
    assert run.certificate is None and model.rounds == N
    if around is not None:
        assert_allclose(run.intervals[lags[-1] :], around, rtol=exact)
        assert np.isinf(run.intervals[: lags[-1]]).all()
    some = slice(0, 90)
    forecasts, intervals = single(make(inner, **options), X[some], Y[some])
    assert_array_equal(forecasts, run.predictions[some])
    if intervals is not None:
        assert_allclose(intervals, run.intervals[some], rtol=1e-14)
    # In pieces, each from a file, a pickle or a copy of a model whose rows wait.
    other, found = make(inner, **options), []
    for cut in np.split(T, [1, 3, 40, 555]):
        found.append(okl.run(other, X[cut], Y[cut]).predictions)
        other.save(tmp_path / "model.npz")
        other = copy.deepcopy(pickle.loads(pickle.dumps(okl.load(tmp_path / "model.npz"))))
    assert_array_equal(np.concatenate(found), run.predictions)
    assert contents(other) == contents(model)


@every_inner
def test_the_future_is_forecast_as_rounds_that_come_next(inner):
    model, steps = make(inner), OPTIONS[1]["steps"]
    assert_array_equal(model.forecast(X[:2]), [0.0, 0.0])
    okl.run(model, X[:600], Y[:600])
    before, coming = contents(model), X[600 : 600 + steps]
    forecasts = model.forecast(coming)
    expected = okl.run(copy.deepcopy(model), coming, Y[600 : 600 + steps])
    assert_array_equal(forecasts, expected.predictions)
    for m in (1, 4):  # as many rounds as there are rows
        assert_array_equal(model.forecast(pd.DataFrame(coming[:m])), forecasts[:m])
    if inner == "ridge":
        for call in (model.forecast, model.predict_interval):
            named = {"return_interval": True} if call == model.forecast else {}
            refused("make it okl.Horizon\\(okl.Intervals\\(Lin", call, coming, **named)
    else:
        assert_array_equal(model.forecast(coming, return_interval=True)[1], expected.intervals)
    assert contents(model) == before
    refused("X must be the inputs of at most steps=6 rounds", model.forecast, X[:7])


@pytest.mark.parametrize("impute", ["last", "median"])
def test_a_gap_of_the_future_is_filled_by_the_rows_before_it(impute):
    frame = pd.DataFrame({"hour": X[:60, 0], "y": Y[:60]})
    model = make("ridge", steps=4)
    okl.run(model, okl.stream(frame, label="y", impute=impute))
    coming = pd.DataFrame({"hour": [900.0, np.nan, -900.0, np.nan]})
    forecasts = model.forecast(coming)
    rounds = okl.run(model, okl.stream(coming, like=model), labels="optional")
    assert_array_equal(forecasts, rounds.predictions)


def test_a_level_that_returns_to_its_mean_is_forecast_so():
    y = lfilter([1.0], [1.0, -0.5], np.random.default_rng(1).standard_normal(3000))
    run = okl.run(okl.Horizon(okl.LinearRidge(), steps=6), np.ones((3000, 1)), y)
    best = (1 - 0.5**12) / (1 - 0.5**2)  # mean square of what comes after the last label known
    assert run.losses[300:].mean() < 1.05 * best  # 1.66 by changes alone


def test_intervals_cover_by_their_own_late_errors():
    model = okl.Horizon(okl.Intervals(okl.LinearRidge(), coverage=0.8), steps=12, season=24)
    run = okl.run(model, pd.DataFrame(X, index=pd.date_range("2026", periods=N, freq="h")), Y)
    low, high = run.intervals[36:].T
    assert abs(np.mean((low <= Y[36:]) & (Y[36:] <= high)) - 0.8) < 0.03
    assert 2.0 < np.median(high - low) < 8.0  # 2.6 to each label's own error alone


def test_a_row_without_a_label_is_a_round_that_is_not_learned():
    gaps = np.where(RNG.random(N) < 0.2, np.nan, Y)
    gaps[:3] = np.nan
    whole, pieces = make("intervals"), make("intervals")
    run = okl.run(whole, X, gaps, labels="optional")
    known = pd.Series(gaps).ffill().to_numpy()
    t = np.arange(27, N)
    now = known[t - 6]
    rows = np.column_stack([now, known[t - 7] - now, known[t - 24] - now, X[t]])
    by_hand = okl.run(INNER["intervals"](), rows, gaps[t] - now, delay=5, labels="optional")
    assert_array_equal(run.predictions[27:], by_hand.predictions + now)
    found = [okl.run(pieces, X[i : i + 1], gaps[i : i + 1], labels="optional") for i in range(90)]
    assert_array_equal(np.concatenate([one.predictions for one in found]), run.predictions[:90])
    assert whole.rounds == N and run.labelled[-1] == np.isfinite(gaps).sum()


@pytest.mark.parametrize("gap", [0, 5])
def test_it_is_said_once_if_nothing_was_learned(gap):
    model, some = okl.Horizon(okl.LinearRidge(), steps=40, season=360), np.where(T < gap, np.nan, Y)
    least = gap + 400
    said = f"none of {least - 1} rows.* take 400 rows from the first"
    with pytest.warns(UserWarning, match=said):
        okl.run(model, X[: least - 1], some[: least - 1], labels="optional")
    okl.run(copy.deepcopy(model), X[:1], [np.nan], labels="optional")  # said already
    assert model._inner.rounds == 0
    okl.run(model.reset(), X[:least], some[:least], labels="optional")
    assert model._inner.rounds == 1
