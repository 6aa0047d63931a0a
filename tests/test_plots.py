"""Figures: what is drawn, where, and that nothing else of matplotlib is touched."""

import copy
import io
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import oklnumba as okl
from oklnumba import plots
from tests.checks import refused


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    kernel = okl.Gaussian(1.0)
    return {
        "exact": okl.run(okl.KernelAWV(kernel), X, y, every=20),
        "Taylor": okl.run(okl.PKAWV(okl.TaylorFeatures(2)), X, y, every=20),
        "FOGD": okl.run(okl.FOGD(loss="squared", n_frequencies=20), X, y, every=20),
    }


@pytest.fixture
def axes():
    return plots.figure(columns=1)[1][0, 0]


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("mistakes", [None, True, False])
def test_losses_are_those_of_the_runs(runs, axes, mistakes):
    plots.loss_curves(runs, axes, mistakes=mistakes)
    assert texts(axes) == list(runs)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "rounds"
    counted = mistakes is not False
    assert axes.get_ylabel() == ("mistakes so far (%)" if counted else "average squared loss")
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 3
    many = [plots.line_style(i) for i in range(len(plots.COLOURS) * len(plots.DASHES))]
    assert len({(s["color"], str(s["linestyle"])) for s in many}) == len(many)
    for line, run in zip(axes.lines, runs.values(), strict=True):
        assert line.get_xdata()[[0, -1]].tolist() == [10, 300]
        end = 100 * run.mistake_rate if counted else run.mean_loss
        assert line.get_ydata()[-1] == pytest.approx(end, rel=1e-12)


def test_the_certificate_is_that_of_the_run(runs, axes):
    plots.certificate(runs["exact"], axes, label="exact")
    assert texts(axes) == ["exact: regret", "exact: bound"]
    regret, bound = axes.lines
    assert regret.get_ydata()[-1] == runs["exact"].certificate.regret[-1]
    assert bound.get_ydata()[-1] == pytest.approx(runs["exact"].certificate.bound[-1])
    assert regret.get_color() == bound.get_color()


def test_of_several_members_the_least_bound_is_drawn(runs, axes):
    run, certificate = copy.copy(runs["exact"]), runs["exact"].certificate
    run.certificate = certificate._replace(guaranteed=certificate.comparator + 0.5)
    plots.certificate(run, axes)
    assert_allclose(axes.lines[1].get_ydata(), 0.5)


def test_runs_without_a_certificate_or_mistakes(runs, axes):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    plots.certificate(okl.run(okl.KernelRidge(okl.Gaussian(1.0)), X, X[:, 0]), axes)
    assert texts(axes) == ["regret", "bound"]
    refused("has no certificate", plots.certificate, runs["FOGD"], axes)
    regression = okl.run(okl.FOGD(loss="squared"), X, X[:, 0])
    refused("'r' counts no mistakes", plots.loss_curves, {"r": regression}, axes, mistakes=True)


@pytest.mark.parametrize("n", [1, 2, 7, 299, 1_000_000])
def test_long_curves_are_thinned(n):
    at = plots.thin(n)
    assert len(at) <= plots.POINTS
    assert at[0] == 1 and at[-1] == n and (np.diff(at) > 0).all()
    assert plots.thin(n, first=10)[-1] == n


@pytest.mark.parametrize(
    "low, high, plain", [(0.21, 0.4, 1), (1e-3, 1e5, 1), (1e-6, 1e3, 0), (4e5, 6e6, 0)]
)
def test_axes_have_plain_labels_but_for_far_powers(axes, low, high, plain):
    axes.set(yscale="log", ylim=(low, high))
    plots.label_ticks(axes.yaxis)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) >= 3 and len(axes.yaxis.get_minorticklocs()) == 0
    assert plain or (all(labels) and "." not in "".join(labels))  # 2 x 10^6, not 10^6.3
    assert ["^" not in label for label in labels] == len(labels) * [bool(plain)]
    assert not plain or all(float(label) > 0 for label in labels if label)


def test_what_a_logarithm_hides_is_marked(axes):
    axes.plot([1, 2, 3], [5.0, 0.0, -1.0], color="red")
    axes.axvline(2.0)
    axes.plot([1, 3], [1.0, 1.0])
    plots.tidy(axes, log="xy")
    (marks,) = axes.collections
    assert marks.get_offsets().tolist() == [[2.0, 0.0], [3.0, 0.0]]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [5.0, np.nan, np.nan])
    plots.tidy(axes, log="xy")
    assert axes.collections[:] == [marks]


@pytest.mark.parametrize("middle", [np.median, np.mean])
def test_a_band_reaches_from_the_least_to_the_most(axes, middle):
    values = np.array([[1.0, 7.0, 2.0], [4.0, 5.0, 2.0], [10.0, 6.0, 8.0]])
    plots.band(axes, [1, 2, 3], values, "loss", {"color": "red", "linestyle": "--"}, middle)
    (line,), (area,) = axes.lines, axes.collections
    np.testing.assert_array_equal(line.get_ydata(), middle(values, axis=0))
    assert (line.get_label(), line.get_color(), line.get_linestyle()) == ("loss", "red", "--")
    corners = area.get_paths()[0].vertices
    for x, own in zip((1, 2, 3), values.T, strict=True):
        at = corners[corners[:, 0] == x, 1]
        assert (at.min(), at.max()) == (own.min(), own.max())
    plots.band(axes, [1, 2], [[1.0, 2.0]])  # one repetition has no range
    assert len(axes.lines) == 2 and len(axes.collections) == 1
    for bad in ([1.0, 2.0], [[1.0]], np.empty((0, 2))):
        refused("values must be of shape", plots.band, axes, [1, 2], bad)


def test_tidy_changes_only_what_it_is_given(axes):
    axes.plot([2, 95], [1.0, 5.0])
    axes.set(xlabel="rounds", title="before")
    plots.tidy(axes, ylabel="loss", log="x", font=9.0, small=2.0)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("rounds", "loss", "before")
    assert axes.xaxis.label.get_size() == axes.yaxis.label.get_size() == 9.0
    assert {text.get_size() for text in axes.get_yticklabels()} == {7.0}
    assert {"5", "10", "20", "50"} <= {text.get_text() for text in axes.get_xticklabels()}
    plots.tidy(axes, text="after", log="xy")
    assert axes.get_yscale() == "log" and axes.get_title() == "after"
    refused("log must be", plots.tidy, axes, log="yx")


# ---- one run ----


def test_progress_of_a_certified_run(runs):
    run = runs["exact"]
    fig = run.plot()
    mistakes, regret = fig.axes
    assert mistakes.get_title() == f"KernelAWV: {100 * run.mistake_rate:.3g} % mistakes"
    assert mistakes.lines[0].get_ydata()[-1] == pytest.approx(100 * run.mistake_rate, rel=1e-12)
    assert texts(regret) == ["regret", "bound"]
    for line, values in zip(regret.lines, run.certificate[2:4], strict=True):
        np.testing.assert_allclose(line.get_ydata(), values[line.get_xdata() - 1], rtol=1e-12)
    fig.savefig(io.BytesIO())


def test_progress_without_certificate_and_with_losses():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    run = okl.run(okl.FOGD(loss="squared", n_frequencies=20), X, 300.0 + X[:, 0])
    (axes,) = run.plot().axes
    assert axes.get_ylabel() == "average squared loss"
    assert axes.get_title() == f"FOGD: mean squared loss {run.mean_loss:.3g}"
    curve, settled = axes.lines
    assert curve.get_ydata()[-1] == pytest.approx(run.mean_loss, rel=1e-12)
    assert list(settled.get_ydata()) == 2 * [run.settled_mean_loss]
    late = f"from round 33 on: {run.settled_mean_loss:.3g}"
    assert texts(axes) == ["from the first round", late] and run.settled_mean_loss < run.mean_loss
    gaps = np.where(np.arange(200) < 20, np.nan, X[:, 0])  # no mean before the first label
    curve = okl.run(okl.FOGD(loss="squared"), X, gaps, labels="optional").plot().axes[0].lines[0]
    assert (np.isnan(curve.get_ydata()) == (curve.get_xdata() <= 20)).all()
    assert not curve.axes.collections
    short = okl.run(okl.FOGD(loss="squared"), X[:32], X[:32, 0])
    assert len(short.plot().axes[0].lines) == 1 and np.isnan(short.settled_mean_loss)


def test_progress_of_several_outputs_adds_them_up():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    run = okl.run(okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))), X, X[:, ::-1])
    error, regret = run.plot().axes
    assert error.lines[0].get_ydata()[-1] == pytest.approx(run.mean_loss, rel=1e-12)
    assert "all outputs" in regret.get_title()
    bound = regret.lines[1].get_ydata()
    assert bound[-1] == pytest.approx(run.certificate.bound[-1].sum(), rel=1e-12)


def test_a_run_of_infinite_losses_has_a_picture():
    run = okl.run(okl.OGD(loss="squared"), np.zeros((20, 1)), np.full(20, 1e200))
    run.plot().draw_without_rendering()


def test_progress_is_linear_where_a_logarithm_would_hide_something():
    X = np.ones((30, 1))
    perfect = okl.run(okl.Perceptron(), X, np.zeros(30) + 1.0, loss="absolute")
    perfect.losses[:], perfect.mistakes[:] = 0.0, False
    (axes,) = perfect.plot().axes
    assert axes.get_yscale() == "linear"
    assert axes.lines[0].get_ydata().tolist() == [0.0] * 21
    run = okl.run(okl.KernelAWV(okl.Gaussian()), X, np.ones(30))
    run.certificate.regret[20:] = -1.0
    _, regret = run.plot().axes
    assert regret.get_yscale() == "linear"
    assert regret.lines[0].get_ydata()[-1] == -1.0


@pytest.mark.parametrize("rounds, record", [(1, "all"), (9, "all"), (90, "none")])
def test_progress_of_which_one_round_is_drawn(rounds, record):
    learner, X = okl.KernelAWV(okl.Gaussian()), np.zeros((rounds, 1))
    fig = okl.run(learner, X, np.ones(rounds), record=record).plot()
    curves = [line for axes in fig.axes for line in axes.lines if line.get_xdata()[0] == rounds]
    assert len(curves) == 3 and all(line.get_marker() == "o" for line in curves)
    assert [line.get_markerfacecolor() == "white" for line in curves] == [False, False, True]
    fig.savefig(io.BytesIO())
    with pytest.warns(UserWarning, match="the stream has no rows"):
        empty = okl.run(learner, iter([]))
    for run in (empty, okl.run(learner, X, np.full(rounds, np.nan), labels="optional")):
        refused("no rounds with labels", run.plot)


def test_importance_of_a_pipeline_has_the_names_that_its_last_step_sees():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"price": rng.uniform(-1, 1, 100), "town": rng.choice(["Bonn", "Rome"], 100)}
    )
    around = make_column_transformer((StandardScaler(), ["price"]), (OneHotEncoder(), ["town"]))
    model = make_pipeline(around, okl.interop.OnlineRegressor(random_state=0))
    model.fit(frame, frame["price"])
    for one in (model, make_pipeline(model)):
        labels = okl.plots.importance(one).axes[0].get_yticklabels()
        names = [text.get_text() for text in labels]
        assert names[0] == "standardscaler__price"
        assert {*names[1:]} == {"onehotencoder__town_Bonn", "onehotencoder__town_Rome"}
    labels = okl.plots.importance(model, ["a", "b", "c"]).axes[0].get_yticklabels()
    assert {text.get_text() for text in labels} == {*"abc"}


def test_importance_takes_learners_and_estimators():
    X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    learner = okl.SelfTuning().partial_fit(frame, np.sin(3 * X[:, 1]))
    model = okl.interop.OnlineRegressor(shuffle=False).fit(frame, np.sin(3 * X[:, 1]))
    shares_of = learner.importance
    for one, first, expected in (
        (learner, "b", shares_of),
        (model, "b", model.learner_.importance),
        (shares_of, "x1", shares_of),
    ):
        figure = okl.plots.importance(one)
        names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        assert names[0] == first
        shares = [bar.get_width() for bar in figure.axes[0].patches]
        np.testing.assert_allclose(shares, 100.0 * np.sort(expected)[::-1])
    for one in (okl.Intervals, okl.Monitored, okl.Standardized, okl.Lags, okl.MultiOutput):
        y = np.sin(3 * X[:, 1])
        around = one(okl.SelfTuning()).partial_fit(
            frame, y[:, None] if one is okl.MultiOutput else y
        )
        assert around.importance.argmax() == 1
        labels = okl.plots.importance(around).axes[0].get_yticklabels()
        assert [text.get_text() for text in labels][0] == "b" and len(labels) == 3
    pair = okl.MultiOutput(okl.Intervals(okl.SelfTuning()))
    pair.partial_fit(frame, np.sin(3 * X[:, [0, 1]]))
    assert pair.importance[:2].min() > 0.3  # of the first output x0, of the second x1
    tree = okl.Tree(okl.SelfTuning()).partial_fit(frame, np.sin(3 * X[:, 1]))
    assert not hasattr(tree, "importance")
    refused("it is Intervals.learner=OGD", okl.plots.importance, okl.Intervals(okl.OGD()))
    refused("play a round first", okl.plots.importance, okl.Intervals(okl.SelfTuning()))
    assert okl.plots.importance([0.0, 0.0]).axes[0].patches[1].get_width() == 0.0
    refused("values must be finite", okl.plots.importance, [np.nan, 1.0])


@pytest.mark.parametrize("most", [2, 20, 60])
def test_names_of_inputs_neither_overlap_nor_leave_the_picture(most):
    names = [f"a column with a name of many words, {i}" for i in range(most)]
    figure = okl.plots.importance(np.ones(most), names, most=most)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].get_yticklabels()]
    assert len(boxes) == most and not any(one.overlaps(other) for one, other in pairwise(boxes))
    assert all(one.x0 >= 0.0 for one in boxes)
