"""Intervals: the definition, the guarantee on any labels, causality, estimators and pictures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.hot.intervals import HALF_WIDTH, REACH, SCALE, SEEN, START, interval_rounds
from oklnumba.interop import OnlineClassifier, OnlineRegressor
from tests.checks import COMPILED, arrays, refused
from tests.reference import naive

KERNEL = okl.Gaussian(0.7)
N = 3000 if COMPILED else 300
SCALES = {  # of the noise, by round
    "ordinary": lambda t: 0.2 + 0.0 * t,
    "grows and shrinks": lambda t: np.exp(2.0 * np.sin(t / 200.0)),
    "jumps": lambda t: np.where((t // (N // 6)) % 2, 20.0, 0.2),
}


def stream(scale="ordinary", n=N, seed=0):
    rng = np.random.default_rng(seed)
    X, t = rng.uniform(-1, 1, (n, 2)), np.arange(n)
    return X, np.sin(3 * X[:, 0]) + SCALES[scale](t) * rng.standard_normal(n)


def inside(intervals, y):
    return (intervals[:, 0] <= y) & (y <= intervals[:, 1])


def play(labels, coverage=0.9, eta=0.1, n=N, delay=0, batch=1):
    """Play labels, or ``labels(t, h)`` that sees the half-width h, against forecasts of 0.

    Return whether each label was inside the interval as issued, and the bound after each label.
    """
    numbers, interval, waiting, covered, bounds = np.array(START), np.empty((1, 2)), [], [], []
    for t in range(len(labels) if np.ndim(labels) else n):
        h, scale = numbers[HALF_WIDTH], numbers[SCALE] if numbers[SEEN] else np.nan
        waiting.append((labels[t] if np.ndim(labels) else labels(t, h), h, scale, len(covered)))
        while (t + 1) % batch == 0 and len(waiting) > delay:
            y, h, scale, known = waiting.pop(0)
            issued = np.array([[0.0, h, scale, len(covered) - known]])[: delay + batch - 1]
            y = np.array([y], float)
            interval_rounds(np.full(1, 9.0 * delay), y, coverage, eta, numbers, issued, interval)
            covered.append(abs(y[0]) <= h)
            bounds.append((numbers[REACH] / eta + 1.0) / len(covered))
    return np.array(covered), np.array(bounds)


def gaps(covered, coverage=0.9):
    """Return coverage so far less the wanted one."""
    return np.cumsum(covered) / np.arange(1, len(covered) + 1) - coverage


# ---- the definition ----


@pytest.mark.parametrize("coverage, eta", [(0.9, 0.1), (0.5, 0.5), (0.99, 0.02)])
@pytest.mark.parametrize("delay, batch", [(0, 1), (5, 1), (0, 7), (90, 20)])
@pytest.mark.parametrize("scale", SCALES)
def test_intervals_are_those_of_the_definition(scale, delay, batch, coverage, eta):
    X, y = stream(scale, 600)
    y[100:150] = y[100]  # repeated
    y[300] = 1e9  # wild
    X[400:500], y[400:500] = X[400], 0.0  # clustered: errors go to 0
    learner = okl.Intervals(okl.KRLS(KERNEL), coverage=coverage, eta=eta)
    run = okl.run(learner, X, y, delay=delay, batch=batch)
    expected = naive.conformal_intervals(run.predictions, y, coverage, eta, delay, batch)
    assert_allclose(run.intervals, expected, rtol=1e-9)
    reach, seen = arrays(learner)["tracked"][[REACH, SEEN]]
    assert_allclose(learner.coverage_bound, (reach / eta + 1.0) / seen)


def test_exact_forecasts_are_left_out():
    y, out = np.r_[np.zeros(20), 1.0, np.zeros(500), np.ones(5)], np.empty((526, 2))
    interval_rounds(np.zeros(526), y, 0.9, 0.1, np.array(START), np.empty((0, 4)), out)
    assert (out[0] == [-np.inf, np.inf]).all() and (out[1:21] == 0.0).all()
    assert (out[21:522] == out[21]).all() and np.isfinite(out[21]).all() and out[21, 1] > 1.0
    covered, bounds = play(y)
    assert (gaps(covered) >= -bounds).all()
    learner = okl.Intervals(okl.LinearAWV())
    assert learner.predict_interval([[1.0]]).tolist() == [[-np.inf, np.inf]]
    assert learner.coverage_bound == learner.half_width == np.inf


@pytest.mark.parametrize("labels", [[1e308, -1e308] * 20, [1e-308, 1.0] * 20])
def test_numbers_at_the_ends_of_double_precision(labels):
    covered, bounds = play(labels)
    assert (np.abs(gaps(covered)) <= bounds).all()


# ---- the guarantee ----

ADVERSARIES = {
    "always outside": lambda t, h: 1.0 if h == np.inf else 1.0001 * h,
    "always inside": lambda t, h: 1.0 if h == np.inf else max(0.999 * h, 1e-300),
    "outside while |y| <= 1": lambda t, h: 1.001 * h if 1.001 * h <= 1.0 else 0.3,
    "inside, then outside": lambda t, h: max(min(h, 1) * (0.5 if t // 300 % 2 else 2), 1e-300),
    "far, rarely": lambda t, h: 1e6 if t % 9 == 0 else 1.0,
    "on the edge": lambda t, h: 0.3 * (-1) ** t,
}


@pytest.mark.slow
@pytest.mark.parametrize("delay, batch", [(0, 1), (3, 1), (100, 1), (0, 40), (100, 7)])
@pytest.mark.parametrize("coverage, eta", [(0.9, 0.1), (0.9, 0.02), (0.5, 0.3), (0.1, 0.1)])
@pytest.mark.parametrize("labels", ADVERSARIES.values(), ids=list(ADVERSARIES))
def test_coverage_is_within_the_bound_after_every_label(labels, coverage, eta, delay, batch):
    covered, bounds = play(labels, coverage, eta, delay=delay, batch=batch)
    assert (np.abs(gaps(covered, coverage)) <= bounds).all()


@pytest.mark.parametrize("delay", [50, 200])
def test_half_the_bound_is_exceeded_where_labels_come_late(delay):
    covered, bounds = play(ADVERSARIES["outside while |y| <= 1"], n=8 * delay, delay=delay)
    beyond = np.abs(gaps(covered)) / bounds
    assert 0.5 < beyond.max() <= 1.0
    without_delay = bounds - delay / np.arange(1, len(bounds) + 1)  # control
    assert (np.abs(gaps(covered)) > without_delay)[delay + 1 :].any()


@pytest.mark.parametrize("labels, n", [("always outside", 40), ("always inside", 300)])
def test_half_the_bound_is_exceeded(labels, n):
    covered, bounds = play(ADVERSARIES[labels], n=n)
    assert np.abs(gaps(covered))[-1] > 0.5 * bounds[-1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8).flatmap(lambda z: st.just(10.0**z)), min_size=2, max_size=60),
    st.integers(1, 40), st.sampled_from([0.5, 0.9, 0.99]), st.sampled_from([0.01, 0.1, 1.0]),
    st.integers(0, 60), st.integers(1, 20),
)  # fmt: skip
def test_the_bound_holds_for_any_labels(values, repeats, coverage, eta, delay, batch):
    covered, bounds = play(np.repeat(values, repeats), coverage, eta, delay=delay, batch=batch)
    assert (np.abs(gaps(covered, coverage)) <= bounds).all()


@pytest.mark.parametrize("scale", SCALES)
def test_coverage_of_a_learner_and_of_stretches(scale):
    X, y = stream(scale)
    learner = okl.Intervals(okl.LinearAWV())
    covered = inside(okl.run(learner, X, y).intervals, y)
    assert abs(covered.mean() - 0.9) <= min(0.01, learner.coverage_bound)
    if COMPILED:
        assert np.convolve(covered, np.ones(500) / 500, "valid").min() >= 0.85
        # control: the best constant width in hindsight loses it where the scale moves
        errors = np.abs(y - okl.run(okl.LinearAWV(), X, y).predictions)
        constant = errors <= np.quantile(errors, 0.9)
        worst = np.convolve(constant, np.ones(500) / 500, "valid").min()
        assert worst < 0.85 or scale == "ordinary"


# ---- the protocol ----


AROUND = {
    "within": lambda one: okl.Intervals(okl.Lags(one.learner), coverage=0.8),
    "Lags": okl.Lags,
    "levels": lambda one: okl.Lags(one, difference=False),
    "three": lambda one: okl.Monitored(okl.Lags(okl.Standardized(one))),
}


@pytest.mark.parametrize("wrap", AROUND.values(), ids=AROUND)
def test_wrappers_and_rows_without_a_label_show_intervals_too(wrap):
    X, y = stream(n=700)
    gaps = np.where(np.arange(700) % 3 == 0, np.nan, y)
    learner, by_hand = (wrap(okl.Intervals(okl.KRLS(KERNEL), coverage=0.8)) for _ in range(2))
    run, expected = okl.run(learner, X, gaps, labels="optional"), []
    for x, label in zip(X, gaps, strict=True):
        expected.append(by_hand.predict_interval(x[None])[0])
        if label == label:
            by_hand.learn_one(x, label)
    assert_allclose(run.intervals, expected, rtol=1e-9)
    there = ~np.isnan(gaps)
    share = inside(run.intervals[there], gaps[there]).mean()
    while not isinstance(learner, okl.Intervals):
        learner = learner._inner
    assert abs(share - 0.8) <= learner.coverage_bound < 0.5


@pytest.mark.parametrize("wrap", [okl.Intervals, lambda one: okl.Intervals(okl.Standardized(one))])
def test_late_labels_in_pieces_and_from_a_checkpoint(wrap, tmp_path):
    X, y = stream(n=400)
    y[::7] = np.nan
    options = {"delay": 30, "batch": 4, "labels": "optional"}
    make = lambda: wrap(okl.KRLS(KERNEL))  # noqa: E731
    learner, path = make(), tmp_path / "checkpoint.npz"
    run = okl.run(learner, X, y, **options)
    there = ~np.isnan(y)
    assert abs(inside(run.intervals[there], y[there]).mean() - 0.9) <= learner.coverage_bound < 0.6
    okl.run(make(), X[:170], y[:170], checkpoint=path, time_limit=1e-9, **options)
    again, other = make(), make()
    resumed = okl.run(again, X, y, checkpoint=path, **options)
    assert_array_equal(resumed.intervals, run.intervals)
    pieces = okl.run(other, ((X[i : i + 9], y[i : i + 9]) for i in range(0, 400, 9)), **options)
    assert_allclose(pieces.intervals, run.intervals, rtol=1e-9)
    assert again.coverage_bound == learner.coverage_bound == pytest.approx(other.coverage_bound)


def test_forecasts_and_certificate_are_those_of_the_learner_within():
    X, y = stream(n=300)
    run, plain = (okl.run(one, X, y) for one in (okl.Intervals(okl.LinearAWV()), okl.LinearAWV()))
    assert_array_equal(run.predictions, plain.predictions)
    assert_array_equal(run.certificate.bound, plain.certificate.bound)
    assert plain.intervals is None


# ---- estimators ----


def test_intervals_of_the_regressor():
    X, y = stream(n=400)
    model = OnlineRegressor(okl.Intervals(okl.LinearAWV(), coverage=0.8), shuffle=False).fit(X, y)
    run = okl.run(okl.Intervals(okl.LinearAWV(), coverage=0.8), X, y)
    assert_array_equal(model.run_.intervals, run.intervals)
    forecasts, intervals = model.predict(X[:5], return_interval=True)
    assert_array_equal(forecasts, model.predict(X[:5]))
    assert_array_equal(intervals, model.learner_.predict_interval(X[:5]))
    Y = np.stack([y, 3.0 * y], axis=1)
    forecasts, intervals = model.fit(X, Y).predict(X[:5], return_interval=True)
    assert forecasts.shape == (5, 2) and intervals.shape == (5, 2, 2)
    assert_allclose(intervals[:, 1], 3.0 * intervals[:, 0], rtol=1e-9)
    assert_array_equal(model.run_.intervals[:, 0], run.intervals)
    assert "high_1" in model.run_.to_frame()
    for one in (okl.Tree(okl.Intervals(okl.LinearAWV())), okl.OneVsRest(okl.LinearAWV(), [0, 1])):
        refused(f"^{type(one).__name__} has no intervals", one.predict_interval, X)
    with pytest.raises(ValueError, match=r"okl.Intervals\("):
        OnlineRegressor(okl.LinearAWV()).fit(X, y).predict(X, return_interval=True)


def classes(K, n=N, seed=0):
    """Return inputs and classes 0 to K - 1, which change their meaning halfway."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (n, 2))
    angle = np.arctan2(X[:, 0], X[:, 1]) + 0.7 * rng.standard_normal(n) + (np.arange(n) > n // 2)
    return X, np.floor(K * (angle / (2 * np.pi) % 1)).astype(int)


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
@pytest.mark.parametrize(
    "K, learner", [(2, okl.KernelRidge(KERNEL)), (5, okl.FOGD(loss="logistic", eta=0.3))]
)
def test_sets_hold_the_class_that_comes(K, learner):
    X, y = classes(K, 1000)
    model = OnlineClassifier(okl.Intervals(learner, coverage=0.8), shuffle=False)
    held, size = [], []
    for t in range(1000):
        if t > 20:
            forecast, sets = model.predict(X[t : t + 1], return_set=True)
            assert sets.shape == (1, K) and sets[0, forecast[0]]
            held.append(sets[0, y[t]])
            size.append(sets.sum())
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=range(K) if t == 0 else None)
    assert np.mean(held) >= 0.79 and 1.0 <= np.mean(size) < K
    assert np.mean(held) <= 0.81 or K == 2  # whose forecast, always in, is right more often
    whole = OnlineClassifier(okl.Intervals(learner, coverage=0.8), shuffle=False).fit(X, y)
    assert_array_equal(whole.predict(X, return_set=True)[1], model.predict(X, return_set=True)[1])


@pytest.mark.parametrize("every", [1, 10])
def test_a_class_that_comes_for_the_first_time_is_in_no_set_and_counts_in_no_round(every):
    """Its probability was that of any class that may come, which no set of classes shows."""
    n = 120 if COMPILED else 40
    X, y = classes(2, n)
    y[::every] = np.arange(2, 2 + len(y[::every]))
    model, inside, known = OnlineClassifier(okl.Intervals(okl.LinearAWV())), 0, set()
    for t in range(n):
        if y[t] in known:
            _, sets = model.predict(X[t : t + 1], return_set=True)
            inside += y[t] in model.classes_[sets[0]]
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        known.add(y[t])
    tracked = model._odds[2]
    counted = n - len(known)
    assert tracked[SEEN] == counted
    if counted:
        assert inside / counted >= 0.9 - (tracked[REACH] / 0.1 + 1.0) / counted
    again = OnlineClassifier(okl.Intervals(okl.LinearAWV())).partial_fit(X, y)
    assert_allclose(again._odds[2], tracked, rtol=1e-12)  # sums of other lengths


def test_sets_need_intervals_and_probabilities():
    for learner, K in ((okl.LinearAWV(), 3), (okl.Intervals(okl.FOGD(loss="hinge")), 2)):
        X, y = classes(K, 200)
        model = OnlineClassifier(learner).fit(X, y)
        assert model.predict(X).shape == (200,)
        refused(r"okl.Intervals\(.* squared", model.predict, X, return_set=True)


def test_the_picture_has_the_last_intervals_and_marks_labels_outside():
    X, y = stream(n=400)
    run = okl.run(okl.Intervals(okl.LinearAWV()), X, y)
    axes = okl.plots.figure(columns=1)[1][0, 0]
    okl.plots.intervals(run, y, axes, last=50)
    forecast, kept, missed = axes.lines
    assert_array_equal(forecast.get_ydata(), run.predictions[-50:])
    assert len(kept.get_xdata()) + len(missed.get_xdata()) == 50
    assert_array_equal(missed.get_ydata(), y[-50:][~inside(run.intervals, y)[-50:]])
    okl.plots.intervals(run, y, axes, last=1000)  # the infinite one is left out
    axes.figure.draw_without_rendering()
    some = np.where(np.arange(400) % 2, y, np.nan)
    run = okl.run(okl.Intervals(okl.LinearAWV()), X, some, labels="optional")
    okl.plots.intervals(run, some, axes)
    share = inside(run.intervals, y)[1::2].mean()
    assert axes.get_title() == f"{100.0 * share:.1f} % of the labels inside"
    masked = np.ma.array(y, mask=np.isnan(some))
    okl.plots.intervals(run, masked, axes)
    assert axes.get_title() == f"{100.0 * share:.1f} % of the labels inside"
    run = okl.run(okl.Intervals(okl.LinearAWV()), X, y > 0)  # learned as -1 and +1
    okl.plots.intervals(run, y > 0, axes)
    share = inside(run.intervals, np.where(y > 0, 1.0, -1.0)).mean()
    assert axes.get_title() == f"{100.0 * share:.1f} % of the labels inside"
    nothing = np.full(400, np.nan)
    refused("no round that the run recorded has a label", okl.plots.intervals, run, nothing, axes)
    for wrong in (y[:10], y[:, None]):
        refused("y must be", okl.plots.intervals, run, wrong, axes)
    refused("last must be", okl.plots.intervals, run, y, axes, last=-5)
    some[11] = np.inf  # after gaps
    refused("y has inf at row 11", okl.plots.intervals, run, some, axes)
    refused("okl.Intervals", lambda: okl.plots.intervals(okl.run(okl.LinearAWV(), X, y), y, axes))
