"""Learners from outside the package: objects that forecast and learn, and classes of users."""

import copy
import pickle
from typing import Annotated, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from river import linear_model as river
from river.preprocessing import StandardScaler
from sklearn.linear_model import SGDClassifier, SGDRegressor

import oklnumba as okl
from tests.battery import CLASSES
from tests.checks import one_by_one, refused, troubled

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 3))
Y = X @ [1.0, -1.0, 0.5]
SIGNS = np.where(Y > 0.1, 1.0, -1.0)


class Follower:
    """Gradient descent; says what it was called with."""

    def __init__(self):
        self.w, self.calls = np.zeros(3), []

    def predict_one(self, x):
        self.calls.append(("predict", x))
        return self.w @ x

    def learn_one(self, x, y):
        self.calls.append(("learn", x, y))
        self.w = self.w + 0.3 * (y - self.w @ x) * x


class Weights(NamedTuple):
    w: Annotated[np.ndarray, "r"]


class FourierSGD(okl.Learner):
    """Gradient descent on Fourier features, as docs/your_own_learner.md has it."""

    features: okl.FourierFeatures
    eta: float = 0.5

    _layout = Weights

    def _start(self, d):
        self._make_state(r=self._hyper.features.size(d))

    def _play(self, X, y, trace):
        for t, z in enumerate(self._hyper.features.transform(X)):
            trace.predictions[t] = forecast = self._state.w @ z
            trace.sizes[t] = len(z)
            self._state.w[:] += self._hyper.eta * (y[t] - forecast) * z
        self._played += len(X)

    def _forecast(self, X):
        return self._hyper.features.transform(X) @ self._state.w


def own():
    return FourierSGD(okl.FourierFeatures(10), eta=0.9)


# ---- objects with predict_one and learn_one ----


def test_a_run_of_an_object_is_the_loop_by_hand():
    model, data = Follower(), X.copy()
    run = okl.run(model, data, Y)
    assert_array_equal(run.predictions, one_by_one(Follower(), X, Y))
    assert_array_equal(run.losses, (run.predictions - Y) ** 2)
    assert (run.rounds, run.learner, run.mistakes) == (200, "Follower()", None)
    names = [call[0] for call in model.calls]
    assert names == ["predict", "learn"] * 200  # the forecast before the label, nothing else
    whole = model.w.copy()
    okl.run(model, X, Y)  # goes on: it learned itself, not a copy
    assert len(model.calls) == 800 and not np.array_equal(model.w, whole)
    model.calls[0][1][:] = 99.0  # what it was given is its own
    assert_array_equal(data, X)


def test_pieces_time_limits_and_records():
    pieces = okl.run(Follower(), [(X[:7], Y[:7]), (X[7:], Y[7:])], record=50)
    whole = okl.run(Follower(), X, Y)
    assert_array_equal(pieces.predictions, whole.predictions[pieces.recorded - 1])
    assert okl.run(Follower(), X, Y, time_limit=1e-9).rounds < 200
    assert okl.run(Follower(), X, SIGNS, loss="hinge").mistake_rate < 0.2


@pytest.mark.parametrize("value, forecast", [(None, 0.0), (True, 1.0), (np.False_, -1.0), (3, 3.0)])
def test_what_counts_as_a_forecast(value, forecast):
    model = Follower()
    model.predict_one = lambda x: value
    assert (okl.run(model, X, Y).predictions == forecast).all()


@pytest.mark.parametrize("value", ["yes", [1.0, 2.0], np.nan, np.inf, {}])
def test_a_forecast_that_is_no_number_names_model_and_round(value):
    model = Follower()
    model.predict_one = lambda x: 0.5 if len(model.calls) < 4 else value
    refused("the forecast in round 5 must be a finite number", okl.run, model, X, Y)


@pytest.mark.parametrize("forecasts", [[np.nan] * 10, [1.0], [[1.0, 2.0]] * 10, ["no"] * 10])
@pytest.mark.parametrize("batch", ["refit", "partial"])
def test_forecasts_of_rows_are_a_number_for_each_or_refused(forecasts, batch):
    class Model:
        def fit(self, X, y):
            return self

        partial_fit = fit

        def predict(self, X):
            return np.array(forecasts)

    learner = okl.Refit(Model(), every=10) if batch == "refit" else Model()
    with pytest.raises(ValueError, match="what Model forecasts"):
        okl.run(learner, np.ones((20, 1)), np.ones(20), batch=10)


def test_probabilities_of_rows_that_are_no_numbers_are_refused():
    class Model:
        classes_ = np.array([-1, 1])

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

        predict = predict_proba

    with pytest.raises(ValueError, match="what Model forecasts"):
        okl.run(okl.Refit(Model(), every=10), np.ones((20, 1)), np.resize([1.0, -1.0], 20))


def test_a_sweep_plays_copies():
    first, made = Follower(), lambda d: Follower()
    table = okl.sweep({"object": first, "function": made}, {"waves": (X, Y)}, permutations=2)
    assert first.calls == [] and list(table["error"]) == [""] * 4
    order = np.random.default_rng(0).permutation(len(X))
    forecasts = one_by_one(Follower(), X[order], Y[order])
    for name in ("object", "function"):
        row = table.select(learner=name).rows[0]
        assert row["mean_loss"] == pytest.approx(np.mean((forecasts - Y[order]) ** 2), rel=1e-12)


# ---- other libraries ----


def test_estimators_of_scikit_learn():
    model, twin = (SGDRegressor(random_state=0) for _ in range(2))
    forecasts = []
    for x, y in zip(X, Y, strict=True):
        forecasts.append(twin.predict(x[None])[0] if forecasts else 0.0)
        twin.partial_fit(x[None], [y])
    run = okl.run(model, X, Y)
    assert_array_equal(run.predictions, forecasts)
    assert_array_equal(model.coef_, twin.coef_)
    run = okl.run(SGDClassifier(random_state=0), X, SIGNS)
    assert run.predictions[0] == 0.0 and set(run.predictions[1:]) == {-1.0, 1.0}
    assert run.mistakes[100:].mean() < 0.15
    for labels in (0.0 * SIGNS, Y):
        refused("takes labels -1 and [+]1", okl.run, SGDClassifier(), X, labels)


def test_models_of_river():
    rows = [dict(enumerate(x)) for x in X.tolist()]
    run = okl.run(river.LinearRegression(), X, Y)
    assert_array_equal(run.predictions, one_by_one(river.LinearRegression(), rows, Y))
    twin = StandardScaler() | river.LogisticRegression()
    forecasts = one_by_one(twin, rows, (SIGNS > 0).tolist())
    run = okl.run(StandardScaler() | river.LogisticRegression(), X, SIGNS)
    assert_array_equal(run.predictions, np.where(forecasts, 1.0, -1.0))
    assert run.mistakes[100:].mean() < 0.1


# ---- a class of the user ----


def test_a_class_of_the_user_forecasts_as_its_algorithm_says():
    run, learner = okl.run(learner := own(), X, Y), learner
    w, expected = np.zeros(20), []
    for z, y in zip(okl.FourierFeatures(10).transform(X), Y, strict=True):
        expected.append(w @ z)
        w = w + 0.9 * (y - w @ z) * z
    assert_array_equal(run.predictions, expected)
    assert (learner.rounds, learner.size) == (200, 0) and own().size == 0
    one = own()
    np.testing.assert_allclose(one_by_one(one, X, Y), expected, rtol=1e-9, atol=1e-12)
    for copied in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert_array_equal(copied.predict(X), learner.predict(X))
    assert learner.reset().rounds == 0 and learner.predict_one(X[0]) == 0.0
    refused("X has nan at row 1", lambda: own().partial_fit([[0.0], [np.nan]], [1.0, 1.0]))


def test_an_own_class_is_a_member_and_its_file_needs_the_class(tmp_path):
    """Checkpoints and tuning are in docs/your_own_learner.md."""
    experts = okl.run(okl.Experts([own(), okl.LinearAWV()], B=None), X, Y)
    assert experts.mean_loss < 1.0
    learner = own().partial_fit(X, Y)
    learner.save(tmp_path / "mine.npz")
    again = okl.load(tmp_path / "mine.npz", classes=[FourierSGD])
    assert type(again) is FourierSGD and again.get_params()["eta"] == 0.9
    assert_array_equal(again.predict(X), learner.predict(X))
    within = okl.OneVsRest(own(), ["a", "b"]).partial_fit(X, np.where(Y > 0, "a", "b"))
    within.save(tmp_path / "within.npz")
    both = okl.load(tmp_path / "within.npz", classes=(FourierSGD,))
    assert_array_equal(both.scores(X), within.scores(X))
    for name in ("mine", "within"):
        advice = rf"{name}.npz needs the class FourierSGD.*classes=\[FourierSGD\]\)"
        with pytest.raises(ValueError, match=advice) as raised:
            okl.load(tmp_path / f"{name}.npz")
        assert "damaged" not in str(raised.value)
    for bad in (FourierSGD, [okl], ["FourierSGD"], None):
        with pytest.raises(ValueError, match="classes must be a list of your own classes"):
            okl.load(tmp_path / "mine.npz", classes=bad)


# ---- one load ----


def test_load_reads_whatever_was_saved(tmp_path):
    learner = okl.FOGD(loss="squared", n_frequencies=10)
    run = okl.run(learner, X, Y, checkpoint=tmp_path / "checkpoint.npz")
    learner.save(tmp_path / "learner.npz")
    run.save(tmp_path / "run.npz")
    okl.Table([{"a": 1, "b": "x"}]).save(tmp_path / "table.npz")
    for name in ("learner", "checkpoint"):
        assert_array_equal(okl.load(tmp_path / f"{name}.npz").predict(X), learner.predict(X))
    for read in (okl.load(tmp_path / "run.npz"), okl.Run.load(tmp_path / "checkpoint.npz")):
        assert repr(read) == repr(run)
    assert okl.load(tmp_path / "table.npz").rows == [{"a": 1, "b": "x"}]
    for load, name, held in (
        (okl.Run.load, "learner", "a learner, not a run"),
        (okl.Run.load, "table", "a table, not a run"),
        (okl.Table.load, "checkpoint", "a learner and a run, not a table"),
    ):
        refused(f"{name}.npz holds {held}; okl.load reads it", load, tmp_path / f"{name}.npz")


class Batches(Follower):
    """As scikit-learn: predict and partial_fit, which take batches."""

    def predict(self, X):
        self.calls.append(("predict", len(X)))
        return X @ self.w

    def partial_fit(self, X, y):
        self.calls.append(("learn", len(X)))
        for x, label in zip(X, y, strict=True):
            self.w = self.w + 0.3 * (label - self.w @ x) * x

    predict_one = learn_one = property()  # hidden: it has no calls for single rows


def test_batches_are_handed_over_whole():
    model, w = Batches(), np.zeros(3)
    run = okl.run(model, X, Y, batch=50)
    sizes = [size for _, size in model.calls]
    assert [what for what, _ in model.calls] == ["learn", "predict"] * 3 + ["learn"]
    assert sizes == [50] * 7
    for start in range(0, 200, 50):
        rows = slice(start, start + 50)
        expected = X[rows] @ w if start else np.zeros(50)
        assert_array_equal(run.predictions[rows], expected)
        for x, label in zip(X[rows], Y[rows], strict=True):
            w = w + 0.3 * (label - w @ x) * x
    late = Batches()
    okl.run(late, X, Y, batch=50, delay=10)
    assert ("learn", 40) in late.calls and ("predict", 50) in late.calls


class Forgetful(FourierSGD):
    """Keeps things that no state declares."""

    kept: str = "nothing"

    def _start(self, d):
        super()._start(d)
        if self._hyper.kept == "learner":
            self._inner = okl.KernelAWV(okl.Gaussian(1.0))
        elif self._hyper.kept != "nothing":
            self._seen = {"number": 0, "array": np.zeros(2), "list": []}[self._hyper.kept]

    def _play(self, X, y, trace):
        super()._play(X, y, trace)
        if self._hyper.kept == "learner":
            self._inner.partial_fit(X, y)
        elif self._hyper.kept == "list":
            self._seen.append(len(X))
        elif self._hyper.kept != "nothing":
            self._seen = self._seen + 1


@pytest.mark.parametrize("kept", ["learner", "number", "array", "list"])
def test_what_no_state_declares_is_refused_by_files_and_copies(kept, tmp_path):
    learner = Forgetful(okl.FourierFeatures(10), kept=kept).partial_fit(X, Y)
    name = "_inner" if kept == "learner" else "_seen"
    for store in (lambda one: one.save(tmp_path / "a.npz"), copy.deepcopy, pickle.dumps):
        refused(f"Forgetful keeps {name}, which a file or a copy", store, learner)
    assert not (tmp_path / "a.npz").exists()
    fine = Forgetful(okl.FourierFeatures(10)).partial_fit(X, Y)
    assert_array_equal(copy.deepcopy(fine).predict(X), fine.predict(X))


class Halves(FourierSGD):
    """Writes into what it is given."""

    def _play(self, X, y, trace):
        X /= 2.0
        y -= 1.0
        super()._play(X, y, trace)

    def _forecast(self, X):
        X /= 2.0
        return super()._forecast(X)


def test_a_class_of_a_user_cannot_change_the_data():
    data, labels = X.copy(), Y.copy()
    learner = Halves(okl.FourierFeatures(10))
    run = okl.run(learner, data, labels)
    twin = FourierSGD(okl.FourierFeatures(10)).partial_fit(X / 2, Y - 1)
    assert_array_equal(learner.predict(data), twin.predict(X / 2))
    okl.run(okl.Experts([learner.reset(), okl.LinearAWV()], B=3.0), data, labels)
    assert_array_equal(data, X)
    assert_array_equal(labels, Y)
    assert_array_equal(run.losses, (run.predictions - Y) ** 2)


class Mine(okl.SelfTuning):
    """Plays as its base does."""

    def _play(self, X, y, trace):
        super()._play(X, y, trace)


@pytest.mark.parametrize("labels", [Y, np.stack([Y, -Y], axis=1)])
def test_a_class_around_one_of_the_package_plays_as_that_does(labels):
    mine, ours = Mine(5), okl.SelfTuning(5)
    if labels.ndim == 2:
        mine, ours = okl.MultiOutput(mine), okl.MultiOutput(ours)
    for how in ({"delay": 3}, {}):
        runs = [okl.run(one, X, labels, **how) for one in (mine, ours)]
        assert_array_equal(runs[0].predictions, runs[1].predictions)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_can_be_derived_from(cls):
    mine = type("Mine", (cls,), {"__module__": "mine"})
    for name in ("_play", "_forecast"):
        assert getattr(mine, name) is getattr(cls, name)


class Wrong(FourierSGD):
    """Does one thing wrong."""

    fault: str = "none"

    def _play(self, X, y, trace):
        super()._play(X, y, trace)
        if self._hyper.fault == "counts":
            self._played -= 1
        elif self._hyper.fault == "leaves out":
            trace.predictions[-1] = np.nan

    def _forecast(self, X):
        return super()._forecast(X)[:1]


def test_a_class_of_a_user_that_breaks_the_protocol_is_told_so():
    counts, leaves_out, wrong = (
        Wrong(okl.FourierFeatures(10), fault=fault) for fault in ("counts", "leaves out", "none")
    )
    refused("_play counted 63 of 64 rounds: it must add len", okl.run, counts, X, Y)
    refused("_play counted 63 of 64 rounds", counts.predict, X)  # until reset
    troubled("_play has no forecast for round 64", okl.run, leaves_out, X, Y)
    wrong.partial_fit(X, Y)
    refused(r"_forecast returns shape \(1,\) for 200 rows", wrong.predict, X)
    assert np.isfinite(wrong.predict_one(X[0]))
