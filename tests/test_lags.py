"""Lags: inputs and labels by their definition, round by round, and time series that need them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oklnumba as okl
from tests.checks import one_by_one, refused

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (120, 2))
WALK = np.cumsum(RNG.standard_normal(120)) + 50.0
SIGNS = np.where(np.diff(WALK, prepend=0.0) > 0, 1.0, -1.0)
OPTIONS = [{}, {"lags": 1}, {"season": 7}, {"lags": 5, "season": 3}, {"difference": False}]


def textbook(inner, X, y, lags=3, difference=True, season=None):
    """Return the forecasts of a loop over rounds."""
    used = sorted({*range(1, lags + 1), *([season, season + 1] if season else [])})
    forecasts = []
    for t, x in enumerate(X):
        past = [y[max(t - lag, 0)] if t else 0.0 for lag in used]
        last = past[0] if difference else 0.0
        z = np.array([past[0], *(one - last for one in past[1:]), *x])
        forecasts.append(inner.predict_one(z) + last)
        inner.learn_one(z, y[t] - last)
    return np.array(forecasts)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("inner", [okl.LinearAWV(), okl.KernelAWV(okl.Gaussian(3.0))])
def test_forecasts_are_those_of_the_definition_in_any_cut(inner, options):
    expected = textbook(inner.reset(), X, WALK, **options)
    learner = okl.Lags(inner.reset(), **options)
    assert_allclose(okl.run(learner, X, WALK).predictions, expected, rtol=1e-9)
    assert_allclose(one_by_one(learner.reset(), X, WALK), expected, rtol=1e-9)
    cuts = [(0, 1), (1, 3), (3, 50), (50, 120)]
    pieces = [(X[a:b], WALK[a:b]) for a, b in cuts]
    assert_allclose(okl.run(learner.reset(), pieces).predictions, expected, rtol=1e-9)


def test_the_certificate_is_of_changes_of_the_label():
    run = okl.run(okl.Lags(okl.LinearAWV(), lags=2), X, WALK)
    found = run.certificate
    assert_allclose(found.loss, np.cumsum(run.losses), rtol=1e-9)
    last = np.append(0.0, WALK[:-1])
    older = np.append([0.0, WALK[0]], WALK[:-2])
    Z = np.column_stack([last, older - last, X])
    for t in (5, 60, 120):
        A = Z[:t].T @ Z[:t] + np.eye(4)
        target = (WALK - last)[:t]
        best = target @ target - target @ Z[:t] @ np.linalg.solve(A, Z[:t].T @ target)
        assert found.comparator[t - 1] == pytest.approx(best, rel=1e-7)
    assert (found.regret <= found.bound).all() and not (found.regret <= 0.5 * found.bound).all()
    assert found.space == "the linear functions of 4 inputs, added to the last label"


def test_missing_labels_leave_the_last_known_ones():
    gaps = WALK.copy()
    gaps[RNG.choice(np.arange(5, 120), 40, replace=False)] = np.nan
    there = ~np.isnan(gaps)
    learner = okl.Lags(okl.LinearAWV())
    run = okl.run(learner, X, gaps, labels="optional")
    alone = okl.run(okl.Lags(okl.LinearAWV()), X[there], WALK[there])
    assert_allclose(run.predictions[there], alone.predictions, rtol=1e-9)
    seasonal = okl.Standardized(okl.Lags(okl.LinearAWV(), season=7))
    later = np.where(np.arange(120) < 20, np.nan, WALK)  # begins later: no warning
    found = okl.run(seasonal, X, later, labels="optional").predictions[20:]
    assert_allclose(found, okl.run(seasonal.reset(), X[20:], WALK[20:]).predictions, rtol=1e-9)
    okl.run(seasonal.reset(), X[:20], later[:20], labels="optional")
    with pytest.warns(UserWarning, match="season comes late. Fill such labels by those of a seas"):
        okl.run(seasonal, X, gaps, labels="optional")


def test_seasons_levels_and_classes():
    t = np.arange(2000.0)
    y = 1e3 + 0.5 * t + 30.0 * (t % 7 == 0) + 0.1 * RNG.standard_normal(2000)
    tail = slice(200, None)
    plain, lagged, seasonal = (
        okl.run(learner, np.zeros((2000, 1)), y).losses[tail].mean()
        for learner in (
            okl.LinearRidge(),
            okl.Lags(okl.LinearRidge()),
            okl.Lags(okl.LinearRidge(), season=7),
        )
    )
    assert seasonal < 0.1 < 20.0 * seasonal < lagged < plain
    signs = okl.run(okl.Lags(okl.FOGD(), lags=2, difference=False), X, SIGNS)
    assert signs.mistakes is not None
    refused("takes labels -1 and \\+1 only; pass difference=False", lambda: okl.Lags(okl.FOGD()))


NEWTON = okl.OnlineNewtonStep(C=9.0)
BOUNDED = {
    "lags": lambda inner: okl.Lags(inner),
    "tree": lambda inner: okl.Tree(okl.Lags(inner), leaf_rows=20),
    "expert": lambda inner: okl.SelfTuning(experts=[okl.Lags(inner)], budget=20),
    "horizon": lambda inner: okl.Horizon(inner, steps=4, lags=2),
}


@pytest.mark.parametrize("inner", [NEWTON, okl.Experts([okl.LinearRidge()], B=9.0)], ids=str)
@pytest.mark.parametrize("make", BOUNDED.values(), ids=BOUNDED)
def test_bounds_on_labels_are_twice_as_large_as_labels_whose_changes_are_learned(make, inner):
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, (200, 1)), rng.choice([-4.5, 0.0, 4.5], 200)
    gaps, one = y.copy(), make(inner)
    gaps[30:80:5] = np.nan
    if not isinstance(one, okl.Tree):
        okl.run(make(inner), x, gaps, labels="optional")
    for some in np.split(np.arange(200), [7, 100]):
        one.partial_fit(x[some], y[some])
    before = one.predict(x[:1])
    said = "changes of labels, which may be twice as large: 2 y has 9.2 at row 0, outside"
    refused(said, one.learn_one, x[0], 4.6)
    refused(said, okl.run, make(inner), x[:2], [4.6, 0.0])
    assert one.rounds == 200 and one.predict(x[:1]) == before
    okl.Lags(inner, difference=False).partial_fit(x[:2], [9.0, -9.0])


@pytest.mark.parametrize("learner", [okl.SelfTuning(budget=20), okl.OGD(eta=0.01)], ids=repr)
@pytest.mark.parametrize("make", [okl.Lags, okl.Horizon])
def test_labels_whose_changes_are_beyond_double_precision_are_refused(make, learner):
    one = make(learner).partial_fit(X[:9], WALK[:9])
    refused("learns changes.* 2 y has -inf at row 1", one.partial_fit, X[:3], [0.0, -1.7e308, 1.0])
    assert one.rounds == 9
