"""SelfTuning: its definition, restarts that look at the past only, its certificate, drift."""

import copy
import pickle
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr

import oklnumba as okl
from oklnumba.core import guard
from oklnumba.data import datasets
from oklnumba.hot.tuned.layers import LayerResults
from oklnumba.interop import OnlineClassifier, OnlineRegressor
from oklnumba.learners.self_tuning import settings as constants
from oklnumba.learners.self_tuning.forest import Residuals
from oklnumba.learners.self_tuning.labels import Known, Labels, Rounds
from oklnumba.protocol.runs import Run
from tests.checks import COMPILED, refused, troubled
from tests.reference import naive, naive_self_tuning

pytestmark = [
    pytest.mark.skipif(not COMPILED, reason="thousands of rounds"),
    pytest.mark.filterwarnings("ignore:the labels are .*, a regression"),
]
N = 560
LONG = 2120  # past the last restart
BUDGET = 16


def stream(name="plain", n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 100.0, 0.01] + [0.0, 1e4, 5.0]
    if name == "sorted":
        X = X[np.argsort(X[:, 0])]
    if name in ("repeated", "clustered"):
        X = X[rng.integers(0, 20 if name == "repeated" else 6, n)]
        X += (name == "clustered") * 1e-3 * rng.standard_normal((n, 3))
    if name == "lagged":
        s = np.sin(0.3 * np.arange(n + 2)) + 0.05 * rng.standard_normal(n + 2)
        X = np.stack([s[i : n + i] for i in range(3)], axis=1)
    y, t = 3.0 * np.sin(2.0 * X[:, 0]) + 7.0 + 0.1 * rng.standard_normal(n), np.arange(n)
    turns = {"signs in blocks": 130, "adversarial": 3}
    if name == "signs" or name in turns:
        y = np.where(t // turns[name] % 2, 1.0, -1.0) if name in turns else np.sign(y - 7.0)
    if name == "signs in blocks":
        y[0] = 1.0  # so that after the first block rounding does not decide between sure forecasts
    if name == "drift":
        y[n // 2 :] *= -5.0
    if name == "two values":  # one of them rare
        y = np.where(t % 300 == 299, 1e6, -1.0)
    if name == "growing labels":
        y *= np.exp(t / 50.0)
    if name == "outliers":
        X[[3, 40, 300], [0, 1, 2]] = 1e9, -1e5, 1e3
        y[[5, 20, 21, 100, 101, n - 40]] = 1e6, -1e4, 1e100, 500.0, 1e5, -1e3
    if name == "fading":
        y[130:140] = 1e3
        y[300:] = 7.0 + 1e-3 * (y[300:] - 7.0)
    if name == "constant":
        y[:] = 7.0
        y[250] = -1e6
    if name == "rain":
        y = np.where((rng.random(n) < 0.05) | (t == 0), y**2, 0.0)
    return X, y


STREAMS = (
    "plain", "sorted", "repeated", "clustered", "lagged", "signs", "drift", "growing labels",
    "adversarial", "outliers", "rain", "fading", "constant", "signs in blocks",
)  # fmt: skip


def trees():
    """Return what the textbook's trees take."""
    forest, most = (constants.GROWTHS, constants.TREES), constants.MOST_GROWN
    return {
        "forests": [(lags, *forest, constants.SHRINKAGES, most) for lags in constants.FOREST_LAGS],
        "residuals": (*forest, constants.RESIDUAL_SHRINKAGES, most),
        "boosted": constants.BOOSTING,
    }


@cache
def plain_run():
    return okl.run(okl.SelfTuning(BUDGET), *stream())


PERIODS = [("plain", 1024), *((name, 48) for name in STREAMS)]


def make_small(spaces):
    """2, 4 and 16 leaves after round 128, more at the next restart, of the last tree smaller ones.

    The narrow Gaussian members have fewer atoms than BUDGET.
    """
    return [
        space._replace(leaf_rounds=max(space.leaf_rounds // 8, 8), max_size=space.max_size / 8)
        if space.metric
        else space._replace(max_size=BUDGET // 2 if space.seed == 0 else space.max_size)
        for space in spaces
    ]


@pytest.mark.parametrize(
    ("name", "period"),
    [pytest.param(*one, marks=[] if one == ("drift", 48) else pytest.mark.slow) for one in PERIODS],
)
def test_forecasts_and_losses_of_members_are_those_of_the_definition(name, period, monkeypatch):
    monkeypatch.setattr(constants, "PERIOD", period)
    n, restarts = (N, (32, 128, 512)) if period == 1024 else (340, (32, 128, 256))
    monkeypatch.setattr(constants, "RESTARTS", restarts)
    spaces = make_small(constants.SPACES)
    monkeypatch.setattr(constants, "SPACES", spaces)
    monkeypatch.setattr(constants, "TREES", 2)
    X, y = stream(name, n)
    learner = okl.SelfTuning(BUDGET, seed=3)
    run = okl.run(learner, X, y)
    expected, losses = naive_self_tuning.self_tuning(
        X, y, restarts, BUDGET, spaces, constants.DEEPEST, seed=3, period=period, **trees(),
    )  # fmt: skip
    scale = np.maximum.accumulate(np.abs(y))
    if name == "outliers":  # the first restart forgets that of round 5
        scale = np.where(np.arange(n) < 32, 1e6, 10.0)
    assert_allclose(run.predictions / scale, expected / scale, rtol=0, atol=1e-8)
    assert_allclose(learner.member_losses, losses, rtol=1e-7)


@pytest.mark.slow
def test_what_layers_lack_is_added():
    """Of rows with labels of their own, which come again; control: the loss of the layers."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1000, 6))
    labels = np.sin(rows[:, 0]) + rows[:, 1] + rng.standard_normal(1000)
    drawn, learner = rng.integers(0, 1000, 3000), okl.SelfTuning(50)
    run = okl.run(learner, rows[drawn], labels[drawn])
    layers = learner._ensemble.layers._state.layers
    assert run.losses.sum() < 0.98 * (layers.loss + layers.replay_gap)[0]


def test_residuals_cost_no_more_than_their_bound_also_where_they_begin_anew():
    """Labels are the reverse of what trees tell. Control: half the bound, of each start."""
    step, costs, bounds = Residuals(1, 0), [0.0], [0.0]
    X, nothing = np.zeros((1, 1)), Known(*np.zeros((3, 1, 1)))
    for t in range(100):
        y, out = np.array([[1.0 - 2.0 * (t % 2)]]), LayerResults(*np.zeros((5, 1, 1)))
        step.play(Rounds(X, y, y, nothing), np.ones((1, 1)), out)  # of layers that forecast 0
        costs.append(float(out.loss[0, 0]) - (t + 1))
        bounds.append(float(out.bound[0, 0]))
        if t == 50:
            step.begin_anew(np.array([True]))
    assert (np.array(costs) <= bounds).all() and out.guaranteed == out.bound
    for t in (2, 52):
        assert costs[t] - costs[t - 1] > 0.5 * (bounds[t] - bounds[t - 1]) > 0.0


RESTARTS = [r + i for r in (32, 512, 2048) for i in (-1, 0, 1)]


@cache
def long_forecasts():
    return okl.run(okl.SelfTuning(BUDGET), *stream(n=LONG)).predictions


@pytest.mark.slow
@pytest.mark.parametrize("t", [*RESTARTS, 384, 1536, 2100])  # in 384 new members are begun
def test_no_forecast_looks_ahead_across_restarts(t):
    (X, y), expected = stream(n=LONG), long_forecasts()[: t + 200]
    changed, labels = X[: t + 200].copy(), y[: t + 200].copy()
    changed[t + 1 :] = 1e3 * changed[t + 1 :] ** 2
    labels[t:] = -100.0 * labels[t:] + 3.0  # its own label too
    got = okl.run(okl.SelfTuning(BUDGET), changed, labels).predictions
    assert_array_equal(got[: t + 1], expected[: t + 1])
    assert (got[t + 1 :] != expected[t + 1 :]).any()


@pytest.mark.slow
def test_bulk_chunks_single_rounds_and_pickles_between_them_are_one_run():
    X, y = stream("drift", n=LONG)
    y[[9, 50, 700, 2100]], X[[60, 2060], 0] = [-500.0, 1e6, -1e4, 1e5], 1e9
    X[1::3] = X[::3][: len(X[1::3])]  # rows that come again, in their block too
    bulk, single, chunks = (okl.SelfTuning(BUDGET) for _ in range(3))
    run = okl.run(bulk, X, y)
    again = okl.run(chunks, ((X[i : i + 97], y[i : i + 97]) for i in range(0, LONG, 97)))
    assert_array_equal(again.predictions, run.predictions)
    assert_array_equal(again.certificate.bound, run.certificate.bound)
    # New members are begun after rounds 24 and 384, and built in round 400; new trees after 720.
    cuts = {24, 25, 32, 33, 300, 400, 511, 512, 725, 766, 2047, 2048, 2049}
    for t in range(LONG):
        if t % 10 == 0:
            assert_allclose(single.predict_one(X[t]), run.predictions[t], rtol=1e-9, atol=1e-9)
        one = okl.run(single, X[t : t + 1], y[t : t + 1])
        assert one.predictions[0] == run.predictions[t]
        if t in cuts:
            single = pickle.loads(pickle.dumps(single))
    one_by_one = [bulk.predict_one(x) for x in X[:40]]  # of many leaves
    assert_allclose(bulk.predict(X[:40]), one_by_one, rtol=1e-12, atol=1e-12)
    for name in ("weights", "member_losses"):
        assert_array_equal(getattr(single, name), getattr(bulk, name))
        assert_array_equal(getattr(chunks, name), getattr(bulk, name))


@pytest.mark.slow
@pytest.mark.parametrize(("outputs", "n"), [(1, LONG + 180), (3, 600)])
def test_threads_leave_the_bits(outputs, n, monkeypatch):
    """In all blocks, also short ones: leaves with one row and with many play at once."""
    X, y = stream("drift", n=n)
    X[1::3] = X[::3][: len(X[1::3])]
    learner, Y = okl.SelfTuning(64), y
    if outputs > 1:
        learner, Y = okl.MultiOutput(learner), np.stack([y, X[:, 1], np.sign(y)], axis=1)
    some = np.random.default_rng(0).integers(2, 20, n).cumsum()
    some, expected = some[some < n], []
    monkeypatch.setattr(guard, "FEWEST_ROUNDS", 1)
    for cores, cuts in ((1, []), (2, []), (4, some), (2, some)):
        monkeypatch.setattr(guard, "get_pool", cache(guard.get_pool.__wrapped__))
        monkeypatch.setattr(guard, "count_cores", lambda cores=cores: cores)
        learner.reset()
        pieces = zip(np.split(X, cuts), np.split(Y, cuts), strict=True)
        runs = [okl.run(learner, *rows) for rows in pieces]
        found = [np.concatenate([run.predictions for run in runs]), runs[-1].certificate.bound[-1]]
        found.append(np.concatenate([run.sizes for run in runs]))
        expected = expected or found
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)


def test_single_rounds_make_the_members_of_a_restart_before_it():
    X, y = stream(n=512)
    learner, left = okl.SelfTuning(BUDGET), []
    for t in range(511):
        learner.learn_one(X[t], y[t])
        left.append(learner._restarts.timetable.begun is not None)
    begun = [t + 1 for t in range(511) if left[t] and not left[t - 1]]
    assert begun == [24, 96, 384]
    ensemble = learner._restarts.timetable.begun.gi_frame.f_locals["ensemble"]
    assert ensemble.replayed >= 510  # nearly all is done


def test_single_rounds_grow_trees_that_learn_before_their_round():
    X, y = stream(n=383)
    learner = okl.SelfTuning(BUDGET)
    for t in range(383):
        learner.learn_one(X[t], y[t])
    for forest in (*learner._forests, learner._residuals.forest):
        assert forest.timetable.begun.gi_frame.f_locals["learned"] == 383


def in_experts(learner):
    return okl.Experts([learner], B=None)


@pytest.mark.parametrize("around", [None, okl.Standardized, okl.MultiOutput, in_experts])
def test_the_end_of_a_fit_is_a_restart(around, monkeypatch, tmp_path):
    X, y = stream()
    learner, labels = okl.SelfTuning(BUDGET), y[:, None] if around is okl.MultiOutput else y
    given = around(learner) if around not in (None, okl.MultiOutput) else learner
    learner = OnlineRegressor(given, shuffle=False).fit(X[:400], labels[:400]).learner_
    learner.save(tmp_path / "learner.npz")
    monkeypatch.setattr(constants, "GROWTHS", (*constants.GROWTHS[:4], 400, 768))
    wrapped = around(okl.SelfTuning(BUDGET)) if around else okl.SelfTuning(BUDGET)
    wrapped.partial_fit(X[:399], labels[:399])
    first_of = {okl.MultiOutput: "learners_", in_experts: "_experts"}.get(around)
    inner = getattr(wrapped, first_of)[0] if first_of else getattr(wrapped, "_inner", wrapped)
    inner._restarts.timetable.parts = {32: 24, 400: 375, 512: 384}
    okl.run(wrapped, X[399:400], labels[399:400])
    expected = okl.run(wrapped, X[400:], labels[400:]).predictions
    found = okl.run(okl.load(tmp_path / "learner.npz"), X[400:500], labels[400:500]).predictions
    assert_allclose(found, expected[:100], rtol=1e-9)
    for t in range(400, 420):
        assert_allclose(learner.predict(X[t : t + 1])[0], expected[t - 400], rtol=1e-9)
        learner.learn_one(X[t], labels[t])


def test_several_outputs_are_as_many_single_ones_but_for_metrics_lags_and_trees(monkeypatch):
    monkeypatch.setattr(constants, "METRIC_ROUNDS", 10**9)  # no metrics, which outputs share
    monkeypatch.setattr(constants, "SPACES", [s for s in constants.SPACES if not s.lags])
    monkeypatch.setattr(constants, "GROWTHS", ())  # nor trees
    monkeypatch.setattr(constants, "FOREST_LAGS", (0,))
    X, y = stream()
    Y = np.stack([y, np.sign(y - 7.0), -3.0 * y + X[:, 1]], axis=1)
    several = okl.MultiOutput(okl.SelfTuning(BUDGET))
    together = okl.run(several, X, Y)
    (learner,) = several.learners_
    for k, labels in enumerate(Y.T):
        one = okl.SelfTuning(BUDGET)
        run = okl.run(one, X, labels)
        assert_array_equal(together.predictions[:, k], run.predictions)
        assert_array_equal(together.certificate.bound[:, k], run.certificate.bound)
        assert_array_equal(learner.weights[k], one.weights)
        assert_array_equal(learner.member_losses[k], one.member_losses)
    assert_array_equal(together.sizes, run.sizes)
    assert len(learner.leader) == 3


LAGGED = "ridge, linear with lags, lam = 1, half-life 300 rounds"


@pytest.mark.parametrize("outputs", [2, 5])
def test_members_with_lags_see_the_last_labels_of_all_outputs(outputs):
    X, y = stream("lagged")
    Y = np.stack([np.roll(y, k) for k in range(outputs)], axis=1)
    several = okl.MultiOutput(okl.SelfTuning(32)).partial_fit(X[:-1], Y[:-1])
    (learner,) = several.learners_
    before = learner.member_losses
    several.learn_one(X[-1], Y[-1])
    lagged = [str(one) for one in learner.members].index(LAGGED)
    losses = (learner.member_losses - before)[:, lagged]
    known = [naive_self_tuning.look_back(labels, np.arange(N)) for labels in Y.T]
    changes = np.concatenate([one[:, :3] for _, one in known], axis=1)
    S = naive_self_tuning.standardised(*[np.column_stack([X, changes])[:n] for n in (N, 384)])
    Z = np.column_stack([np.ones(N), S])
    for k, (last, _) in enumerate(known):
        target = np.append(0.0, (Y[:, k] - last)[1:])
        change = naive_self_tuning.forecasts(Z, target, [(1.0, 300)], every=True)[-1][0]
        assert_allclose(losses[k], (Y[-1, k] - last[-1] - change) ** 2, rtol=1e-6)


def test_the_squared_gradients_of_several_outputs_add_up():
    X, y = stream()
    other = X[:, 1] / 100.0
    found = []
    for labels in (y, other, np.stack([y, other], axis=1), np.stack([y, y], axis=1)):
        learner = okl.SelfTuning(BUDGET)
        learner = okl.MultiOutput(learner) if labels.ndim == 2 else learner
        learner.partial_fit(X, labels)
        one = learner.learners_[0] if labels.ndim == 2 else learner
        squares = np.square(one._ensemble.scales.metrics)
        found.append((squares / squares.sum(axis=1, keepdims=True)).mean(axis=0))
    assert found[0].argmax() == 0 and found[1].argmax() == 1
    assert found[2][1] > 10.0 * found[0][1] and found[2][0] > 10.0 * found[1][0]
    assert_allclose(found[3], found[0], rtol=1e-7)


def test_importance_is_the_change_by_another_rows_input():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 6)) * 10.0 ** rng.uniform(-3, 3, 6)
    units = X / X.std(axis=0)
    X[:, 1] = 7.0
    y = np.sin(2.0 * units[:, 2]) + units[:, 4]
    learner = okl.SelfTuning(50, seed=3)
    refused("play a round first", lambda: learner.importance)
    assert_array_equal(learner.partial_fit(np.zeros((9, 6)), np.ones(9)).importance, np.ones(6) / 6)
    for labels in (y, np.stack([y, units[:, 0] / 100.0], axis=1)):
        played = okl.MultiOutput(learner) if labels.ndim == 2 else learner.reset()
        found = played.partial_fit(X, labels).importance
        some = X[np.linspace(0, 599, 256).astype(int)]
        other, expected = some[np.random.default_rng(3).permutation(256)], np.zeros(6)
        forecasts = played.predict(some)
        for j in range(6):
            changed = some.copy()
            changed[:, j] = other[:, j]
            change = (played.predict(changed) - forecasts) ** 2
            expected[j] = (change.mean(axis=0) / forecasts.var(axis=0)).sum()
        assert_allclose(found, expected / expected.sum(), rtol=1e-9)
        assert found[[2, 4]].sum() > 0.9 if labels.ndim == 1 else found[0] > 0.2
        assert found[1] == 0.0
    same = okl.MultiOutput(learner).partial_fit(X, np.stack([y, np.full(600, 7.0)], axis=1))
    assert same.importance[[2, 4]].sum() > 0.9  # outputs that are all equal count nothing


@pytest.mark.parametrize("end", [128, 512])
def test_importance_goes_on_with_the_inputs_of_the_last_rounds(end, monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "RESTARTS", (32, end))
    monkeypatch.setattr(constants, "KEPT_ROWS", 64)
    X, y = stream(n=1300)
    y[::7] = np.nan  # these rounds are not kept
    labelled = X[y == y]
    whole, cut = okl.SelfTuning(BUDGET), okl.SelfTuning(BUDGET)
    okl.run(whole, X, y, labels="optional")
    okl.run(cut, X[:700], y[:700], labels="optional")
    before = cut.importance
    cut.save(tmp_path / "cut.npz")
    cut = okl.load(tmp_path / "cut.npz")
    assert_array_equal(cut.importance, before)
    for x, label in zip(X[700:], y[700:], strict=True):
        if label == label:
            cut.learn_one(x, label)
    every = end // 64
    expected = {row.tobytes() for row in labelled[::every][-64:]}
    ended = okl.SelfTuning(BUDGET).partial_fit(labelled[:end], y[y == y][:end])
    assert_array_equal(ended._restarts._state.inputs[:64], labelled[:end:every])
    assert len(ended._restarts._state.inputs) < end  # the others go with the last restart
    for one in (whole, cut):
        assert {row.tobytes() for row in one._restarts.sample()} == expected
        assert_array_equal(one.importance, whole.importance)


def test_importance_reads_fewer_rows_of_wide_inputs():
    X = np.random.default_rng(0).standard_normal((40, 2000))
    learner = okl.SelfTuning(BUDGET).partial_fit(X, X[:, 7])
    assert_array_equal(learner._restarts.sample(), X[np.linspace(0, 39, 16).astype(int)])


def test_rows_are_kept_also_where_wider_inputs_end_the_past_at_once(monkeypatch):
    for name, value in (("RESTARTS", (32, 128, 512)), ("FREE_RESTARTS", 128), ("KEPT_ROWS", 64)):
        monkeypatch.setattr(constants, name, value)
    X, y = stream(n=500)
    monkeypatch.setattr(constants, "MAX_PAST", 600 * 100)  # three inputs have room for 512 rows
    learner = okl.SelfTuning(BUDGET).partial_fit(X[:300], y[:300])
    assert learner._restarts.end == 512
    monkeypatch.setattr(constants, "MAX_PAST", 200 * 100)
    wide = copy.deepcopy(learner)
    assert wide._restarts.end == 128
    learner = wide.partial_fit(X[300:], y[300:])
    rows = {row.tobytes() for row in learner._restarts.sample()}
    assert rows == {row.tobytes() for row in X[372:500:2]}


SETS = "casp", "abalone", "cadata", "parkinsons", "magic04", "spambase", "svmguide3", "german"


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)  # the inputs of spambase and parkinsons have heavy tails
def test_importance_agrees_with_permutation_of_the_same_model(name):
    inspection = pytest.importorskip("sklearn.inspection")
    if not datasets.found(name):
        pytest.skip(f"{name}.npz is not here")
    data = datasets.load(name, scale=None, permute=0)
    X, y = data.X[:2000], data.y[:2000]
    classes = data.task == "classification"
    model = (OnlineClassifier if classes else OnlineRegressor)().fit(X, y)
    of = inspection.permutation_importance(
        model, X[:1000], y[:1000], n_repeats=100 // X.shape[1] + 1, random_state=0,
        scoring="neg_brier_score" if classes else None,  # chance moves accuracy more
    )  # fmt: skip
    assert spearmanr(model.feature_importances_, of.importances_mean)[0] > 0.8


@pytest.mark.parametrize("unit", [2.0**20, 2.0**-190, 2.0**190])
def test_units_do_not_matter(unit):
    (X, y), expected = stream(), plain_run().predictions
    got = okl.run(okl.SelfTuning(BUDGET), X * [2.0**9, 2.0**-30, 2.0], unit * y).predictions
    assert_array_equal(got, unit * expected)  # powers of 2 round to nothing


@pytest.mark.parametrize(("name", "period"), PERIODS)
def test_regret_stays_under_the_certificate(name, period, monkeypatch):
    monkeypatch.setattr(constants, "PERIOD", period)
    X, y = stream(name)
    run = okl.run(okl.SelfTuning(BUDGET), X, y)
    proof = run.certificate
    assert_allclose(proof.loss, np.cumsum(run.losses), rtol=1e-10)
    assert (proof.regret <= proof.bound).all()


def test_the_price_of_outliers_is_what_they_cost_and_is_in_the_bound():
    X, y = stream()
    wild = y.copy()
    wild[[50, 300]] = 1e4, -1e6
    learner = okl.SelfTuning(BUDGET)
    run = okl.run(learner, X, wild)
    calm = y.copy()  # learned instead: the median of 16 labels, measured at rounds 48 and 296
    calm[50], calm[300] = np.median(wild[32:48]), np.median(wild[280:296])
    same = okl.run(okl.SelfTuning(BUDGET), X, calm).certificate
    price = np.cumsum((wild - run.predictions) ** 2 - (calm - run.predictions) ** 2)
    assert (price[:50] == 0.0).all() and price[-1] > 9e11
    assert_allclose(learner.outlier_price, price[-1], rtol=1e-12)
    assert learner.outliers_replaced == 2
    assert "2 labels taken for outliers, 100.0% of the loss; if they are no errors" in repr(run)
    proof = run.certificate
    # Only members with a memory, and the last label, see the wild ones; they have no comparator.
    assert_array_equal(proof.comparator, same.comparator)
    assert_allclose(proof.bound - price, same.bound, atol=0.05 * same.bound[-1] + 1e-12 * price[-1])
    assert (proof.guaranteed >= proof.loss).all()
    assert (proof.regret <= proof.bound).all()
    assert proof.regret[-1] > same.bound[-1] + 0.5 * price[-1]  # half would not do


@pytest.mark.parametrize("name", ["plain", "signs"])
def test_a_round_takes_over_what_its_own_forecast_computed_and_no_other(name):
    X, y = stream(name, n=140)  # past growths of trees and restarts
    silent, asked = okl.SelfTuning(budget=20), okl.SelfTuning(budget=20)
    for t in range(140):
        silent.learn_one(X[t], y[t])
        asked.predict_one(X[t])
        if t % 3 == 1:
            asked.predict_one(X[t - 1])
        if t % 3 == 2:
            asked.predict(X[: t + 1])
        asked.learn_one(X[t], y[t])
    assert_array_equal(asked.predict(X), silent.predict(X))
    assert_array_equal(asked.member_losses, silent.member_losses)


def test_a_share_of_the_loss_is_told_where_outliers_cost_any():
    run = plain_run()
    for share, said in (
        (-0.267, "3 labels taken for outliers"),
        (0.05, "outliers, 5.0% of the loss"),
    ):
        assert Run(run._arrays, run._meta | {"outliers": (3, share)}).outliers.endswith(said)


@pytest.mark.parametrize(
    "name", ["plain", "growing labels", "sorted", "rain", "signs", "constant", "two values"]
)
def test_outliers_are_those_of_the_definition(name):
    _, y = stream(name, n=1500)
    rng = np.random.default_rng(7)
    wild = rng.random(1500) < 0.02
    y[wild] *= rng.choice([1e2, -1e5, 1e9], wild.sum())
    # Of two members one tells some wild labels, to 30 % of their size.
    told = y * np.where(rng.random((3, 1500)) < 0.5, 1.0 + rng.uniform(0, 0.3, (3, 1500)), 0.0)
    limits = [naive_self_tuning.label_limits(y, t) for t in range(1500)]
    cut = [naive_self_tuning.cut_label(y[t], *limits[t]) for t in range(1500)]
    expected = [naive_self_tuning.learned_label(y[t], told[:, t], *limits[t]) for t in range(1500)]
    labels = Labels(1, are_judged=True)
    for start in range(0, 1500, 77):
        rows = slice(start, start + 77)
        got = labels.measure(y[rows, None], np.arange(len(y[rows])), start)
        known_counts = np.arange(len(y[rows]))
        kept, _ = labels.remember(y[rows, None], got, known_counts)
        assert_array_equal(kept[:, 0], cut[rows])
        learned = labels.judge(got, y[rows, None], told[:, rows, None])
        assert_array_equal(learned[:, 0], expected[rows])
    replaced = (np.array(expected) != y).sum()
    assert labels._state.replaced == replaced
    if name == "plain":
        alone = [naive_self_tuning.learned_label(y[t], [], *limits[t]) for t in range(1500)]
        assert 5 < replaced < (np.array(alone) != y).sum()


LATE = slice(2000, None)  # of 3,000 rounds


def gentle(n=3000, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n), rng


def errors(X, y, truth):
    return np.square(okl.run(okl.SelfTuning(), X, y).predictions - truth)[LATE]


@cache
def clean_errors(seed=2):
    X, y, _ = gentle(seed=seed)
    return errors(X, y, y)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [5, 500, 1500, "1 %"])
def test_wild_labels_do_no_lasting_harm(rounds):
    X, y, rng = gentle()
    chosen = rng.random(len(y)) < 0.01 if rounds == "1 %" else rounds
    for value in {5: [1e6], 500: [1e100], 1500: [1e2]}.get(rounds, [1e2, 1e6, 1e100]):
        wild = y.copy()
        wild[chosen] = value
        assert errors(X, wild, y).mean() < 1.05 * clean_errors().mean()


LONE = [pytest.param(rounds, marks=pytest.mark.slow) for rounds in (5, 500, 1500)]


@pytest.mark.parametrize("rounds", ["1 %", *LONE])
def test_wild_inputs_do_no_lasting_harm_to_other_rows(rounds):
    """On the mean of three streams. Of a lost input only the other one can tell."""
    harm = []
    for seed in (2, 3, 4):
        X, y, rng = gentle(seed=seed)
        chosen = rng.random(len(y)) < 0.01 if rounds == "1 %" else rounds
        X[chosen, 0] = 1e9
        others = X[LATE, 0] < 1e9
        harm.append(errors(X, y, y)[others].mean() / clean_errors(seed)[others].mean())
    assert np.mean(harm) < 1.05


@pytest.mark.parametrize("value", [1e100, -1e308])
def test_any_finite_label_is_survived(value):
    X, y, _ = gentle(600)
    y[[3, 300]] = value
    learner = okl.SelfTuning(20)
    with np.errstate(over="ignore"):  # of the losses
        run = okl.run(learner, X, y)
    assert np.square((run.predictions - y)[400:]).mean() < 0.2
    again = pickle.loads(pickle.dumps(learner))
    assert_array_equal(again.predict(X[:5]), learner.predict(X[:5]))


@pytest.mark.slow
@pytest.mark.parametrize("period", [64, 10**6])
def test_ranges_that_labels_no_longer_fill_are_forgotten(period, monkeypatch):
    """Control: periods that never end, so the largest label so far sets all rates for ever."""
    monkeypatch.setattr(constants, "PERIOD", period)
    X, y, _ = gentle(1600)
    constant, stuck, fading = np.full(1600, 7.0), y.copy(), y.copy()
    constant[700] = 1e6  # constant labels have no outliers
    stuck[700:720] = 1e5  # believed after 15 rounds
    fading[700:] *= 1e-3  # in this one the regressions on forecasts help themselves
    level = np.full(1600, 7.0)
    limits = (constant, level, 0.5, 5.0), (stuck, y, 0.5, 5.0), (fading, fading, 0.2, 0.3)
    for labels, truth, with_periods, without in limits:
        run = okl.run(okl.SelfTuning(50), X, labels)
        ratio = np.square(run.predictions - truth)[1300:].mean() / max(truth[1300:].var(), 1e-12)
        assert ratio < with_periods if period == 64 else ratio > without
        assert (run.certificate.regret <= run.certificate.bound).all()


def static_spaces(X, y, seed=0, budget=BUDGET, late=False):
    """Coordinates, lam and sigma of every member that forgets nothing; labels less their middle.

    All are functions of the input: on the dictionary of the last restart, or (late) of today.
    """
    end = max(t for t in (0, *constants.RESTARTS) if t <= len(X))
    past = end - end // 4
    S = naive_self_tuning.standardised(X, X[:past])
    seeds, out = (seed, constants.RESTARTS.index(end) + 1), []
    median = naive_self_tuning.median_distance(S[:past])
    views = S, naive_self_tuning.normal_scores(S, past)
    scales = naive_self_tuning.metrics(S[:past], y[:past], end)
    for space in constants.SPACES:
        sigma = None
        if space.kernel == "linear":
            Z = np.column_stack([np.ones(len(X)), S])
        elif space.metric is None:
            sigma = space.width * median
            coins = np.random.default_rng([*seeds, space.seed]).random(len(X))
            rows, kernel = len(X) if late else past, partial(naive.gaussian, sigma=sigma)
            most = naive_self_tuning.most_atoms(space, budget)
            atoms = naive_self_tuning.dictionary(S[:rows], kernel, past, most, coins)
            Z = naive_self_tuning.coordinates(S, [(i, 0) for i, _ in atoms], kernel)
        else:
            parts = list(naive_self_tuning.leaf_spaces(
                views, scales, past, space, [*seeds, space.seed], budget, constants.DEEPEST, end,
                late=False,
            ))  # fmt: skip
            blocks = [np.zeros((len(X), Z.shape[1])) for _, Z, _ in parts]
            for block, (rows, Z, _) in zip(blocks, parts, strict=True):
                block[rows] = Z
            Z, sigma = np.concatenate(blocks, axis=1), parts[0][2]  # a function in each leaf
        out += [(Z, lam, sigma) for lam, half_life in space.ridges if half_life is None]
    return out, y - naive_self_tuning.middle(y[:past])


def least_losses(spaces, y, t):
    """The penalised losses of the best functions of some spaces in the first t rounds."""
    found = []
    for Z, lam, _ in spaces:
        rows = np.vstack([Z[:t], np.sqrt(lam) * np.eye(Z.shape[1])])
        target = np.append(y[:t], np.zeros(Z.shape[1]))
        w = np.linalg.solve(rows.T @ rows, rows.T @ target)
        found.append(((target - rows @ w) ** 2).sum())
    return np.array(found)


def test_the_comparator_is_the_least_of_all_static_members_and_names_its_own():
    X, y = stream()
    run = okl.run(okl.SelfTuning(BUDGET, seed=1), X, y)
    proof = run.certificate
    spaces, labels = static_spaces(X, y, seed=1)
    for t in (513, N):
        values = least_losses(spaces, labels, t)
        assert_allclose(proof.comparator[t - 1], values.min(), rtol=1e-8)
    _, lam, sigma = spaces[values.argmin()]
    assert f"sigma = {sigma:.3g}, lam = {lam:g}, no forgetting" in proof.member
    assert proof.space == "the space of its best member, made in round 512"
    assert proof.space in repr(proof) and proof.member in repr(proof)
    assert (proof.loss <= proof.guaranteed).all()
    assert (proof.guaranteed <= proof.comparator + proof.bound + 1e-9).all()


def lone_points(n, lone, rng, points=4, d=2, spread=3.0):
    """A few points again and again, then lone ones with coins as labels: their atoms join late."""
    X = rng.standard_normal((points, d))[rng.integers(points, size=n)]
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X = np.concatenate([X, spread * rng.standard_normal((lone, d))])
    return X, np.concatenate([y, rng.choice([-1.0, 1.0], lone)])


@pytest.mark.slow
def test_the_bound_holds_against_functions_of_the_input_where_atoms_join_late():
    """Control: functions on late atoms too, which certificates once had as 0 in earlier rounds."""
    X, y = lone_points(512, 200, np.random.default_rng(0), d=8)
    run = okl.run(okl.SelfTuning(), X, y)
    proof = run.certificate
    assert run.sizes[-1] > run.sizes[512] + 200
    spaces, labels = static_spaces(X, y, budget=300)
    least = least_losses(spaces, labels, len(X)).min()
    assert_allclose(proof.comparator[-1], least, rtol=1e-7)
    assert proof.loss[-1] - least <= proof.bound[-1]
    spaces, labels = static_spaces(X, y, budget=300, late=True)
    late = least_losses(spaces, labels, len(X)).min()
    assert proof.loss[-1] - late > 1.8 * proof.bound[-1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:rows .* all have the same label")
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1), n=st.sampled_from([40, 128, 200, 512]),
    lone=st.integers(1, 85), points=st.integers(2, 6), d=st.integers(1, 3),
    spread=st.sampled_from([0.3, 3.0, 30.0]), shift=st.sampled_from([0.0, 0.1, 5.0]),
)  # fmt: skip
def test_the_bound_holds_on_many_streams_with_late_atoms(seed, n, lone, points, d, spread, shift):
    X, y = lone_points(n, lone, np.random.default_rng(seed), points, d, spread)
    y += shift
    run = okl.run(okl.SelfTuning(BUDGET), X, y)
    proof = run.certificate
    spaces, labels = static_spaces(X, y)  # no restart is after round n
    for t in (n + 1, n + lone):
        least = least_losses(spaces, labels, t).min()
        assert proof.loss[t - 1] - least <= proof.bound[t - 1] + 1e-7
        assert_allclose(proof.comparator[t - 1], least, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("X", [np.zeros((40, 60)), np.random.default_rng(0).normal(size=(40, 60))])
def test_wide_inputs_take_no_more_than_their_budget_from_the_first_round_on(X):
    learner = okl.SelfTuning(budget=20)
    for x in X:
        learner.learn_one(x, 1.0)
        assert all(group._state.U.shape[-1] <= 24 for group in learner._ensemble.groups)


def test_memory_does_not_grow_after_the_last_restart(monkeypatch):
    monkeypatch.setattr(constants, "RESTARTS", (32, 128, 512, 2048))
    X, y = stream(n=2 * LONG)
    learner = okl.SelfTuning(BUDGET).partial_fit(X[:LONG], y[:LONG])
    before = len(pickle.dumps(learner))
    assert learner.partial_fit(X[LONG:], y[LONG:]).rounds == 2 * LONG
    assert abs(len(pickle.dumps(learner)) - before) < 200  # digits of counts


@pytest.mark.slow
def test_it_is_back_after_a_change_of_concept_and_static_members_are_not():
    rng = np.random.default_rng(0)
    n, change, window = 5000, 4000, 100
    X = rng.standard_normal((n, 5)) * 10.0
    w = np.where(np.arange(n)[:, None] < change, [1.0, 2.0, 0, 0, 1.0], [-1.0, 0, 3.0, 1.0, 0])
    y = (X * w).sum(axis=1) + 5.0 * rng.standard_normal(n)
    learner = okl.SelfTuning(100)
    before = okl.run(learner, X[:change], y[:change]).losses[-1000:].mean()
    members = learner.member_losses
    first = okl.run(learner, X[change : change + 200], y[change : change + 200])
    between = learner.member_losses
    losses = okl.run(learner, X[change + 200 : change + 300], y[change + 200 : change + 300]).losses
    assert first.losses[:window].mean() > 2.0 * before  # the change is felt
    assert losses.mean() <= 1.1 * before * (1.0 + 2.0 * np.sqrt(2.0 / window))  # noise of a window
    kinds = enumerate(learner.members)
    static = [i for i, one in kinds if one.half_life is None and one.lam is not None]
    late = (learner.member_losses - between)[static] / window
    assert (members[static] / change).min() < 1.2 * before < late.min()


def test_trouble_in_a_leaf_names_its_round():
    X, y = stream()
    learner = okl.SelfTuning(BUDGET).partial_fit(X, y)
    group = next(one for one in learner._ensemble.groups if one.space.leaf_rounds == 32)
    tree = learner._ensemble.scales.tree(group.space)
    z = (learner._ensemble.scales.transform(X) * tree.scales)[7]  # the first one in its leaf
    node = 0
    while node < len(tree.columns):
        node = 2 * node + 1 + int(z[tree.columns[node]] > tree.thresholds[node])
    group._state.c[node - len(tree.columns)] = np.nan
    troubled(f"round {N + 8}: the forecast is not finite", learner.partial_fit, X, y)


def test_what_it_and_its_members_say():
    learner = okl.SelfTuning(BUDGET)
    refused("play a round first", lambda: learner.leader)
    X, y = stream()
    learner.partial_fit(X[:10], y[:10])
    assert all(member.sigma is None for member in learner.members)
    learner.partial_fit(X[10:], y[10:])
    assert learner.weights.shape == learner.member_losses.shape == (len(learner.members),)
    assert_allclose(learner.weights.sum(), 1.0)
    assert learner.leader == learner.members[int(learner.weights.argmax())]
    gaussian = sum(space.kernel == "Gaussian" for space in constants.SPACES)
    maps = gaussian + learner._ensemble.scales.leaves.sum()
    assert 0 < learner.size <= maps * BUDGET
    names = [str(one) for one in learner.members]
    assert len(set(names)) == len(names) and names[-1] == "last label"
    kinds = {one.split(",")[0] for one in names}
    assert kinds == {"ridge", "awv", "passive-aggressive", "gradient descent", "last label",
                     "trees", "trees with lags"}  # fmt: skip
    assert "gradient descent, linear, step = 0.3" in names
    assert any(one.startswith("passive-aggressive, Gaussian kernel, sigma = ") for one in names)
    assert any(one.endswith(", no forgetting") for one in names)
    assert any(one.endswith(", half-life 250 rounds") for one in names)


def test_a_restart_does_not_bring_back_a_range_that_was_forgotten(monkeypatch):
    """Labels that are stuck far away are believed; two periods later their range is forgotten."""
    monkeypatch.setattr(constants, "PERIOD", 64)
    monkeypatch.setattr(constants, "RESTARTS", (32, 128, 512, 1024))
    X, y, _ = gentle(1300)
    stuck = y.copy()
    stuck[300:320] = 1e5
    run = okl.run(okl.SelfTuning(50), X, stuck)
    assert np.square(run.predictions - y)[1024:1100].mean() < 0.5 * y.var()
    assert (run.certificate.regret <= run.certificate.bound).all()


@pytest.mark.slow
def test_outliers_may_be_taken_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1200, 2))
    usual = X[:, 0] + 0.05 * rng.standard_normal(1200)
    levels = usual + 60.0 * (np.abs(X[:, 1]) < 0.03)  # large events that no line foretells
    kept = okl.SelfTuning(outliers=False)
    cut, taken = okl.run(okl.SelfTuning(), X, levels), okl.run(kept, X, levels)
    assert taken.losses[200:].mean() < 0.7 * cut.losses[200:].mean()
    assert kept.outlier_price == 0.0
    assert (taken.certificate.regret <= taken.certificate.bound).all()
    # where there are none, both are the same, to the bit
    none = [okl.run(one, X, usual).predictions for one in (okl.SelfTuning(), kept.reset())]
    assert_array_equal(*none)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lagged", "outliers", "drift", "repeated"])
def test_rows_with_late_labels_are_learned_with_the_lags_of_their_forecast(name, monkeypatch):
    monkeypatch.setattr(constants, "RESTARTS", (32, 128, 256))
    spaces = make_small(constants.SPACES)
    monkeypatch.setattr(constants, "SPACES", spaces)
    monkeypatch.setattr(constants, "TREES", 2)
    X, y = stream(name, 340)
    learner, t = okl.SelfTuning(BUDGET), np.arange(340)
    leads = np.minimum(t % 7 + 3, t)  # labels come seven at a time, three rounds after the last
    for rows in np.split(t, range(7, 340, 7)):
        learner.partial_fit(X[rows], y[rows], known=rows - leads[rows])
    arguments = X, y, (32, 128, 256), BUDGET, spaces, constants.DEEPEST
    _, expected = naive_self_tuning.self_tuning(*arguments, leads=leads, **trees())
    assert_allclose(learner.member_losses, expected, rtol=1e-7)
    _, in_time = naive_self_tuning.self_tuning(*arguments, **trees())
    assert np.abs(expected / in_time - 1.0).max() > 0.01


@pytest.mark.slow
def test_members_with_lags_are_trained_for_late_labels(monkeypatch):
    """Control: nobody tells it, so members learn from fresher labels than they see."""
    lagged = [one for one in constants.SPACES if one.lags]
    spaces = [constants.Space("linear", 4, (constants.Ridge(1.0),)), *lagged]
    monkeypatch.setattr(constants, "SPACES", spaces)
    t = np.arange(2000)
    y = 10.0 * np.sin(2 * np.pi * t / 40) + 0.1 * np.random.default_rng(0).standard_normal(2000)
    X, untold, forecasts = np.zeros((2000, 1)), okl.SelfTuning(), []
    run = okl.run(okl.SelfTuning(), X, y, delay=9)
    for s in t:
        forecasts.append(untold.predict_one(X[s]))
        if s >= 9:
            untold.learn_one(X[s - 9], y[s - 9])
    assert run.losses[500:].mean() < 1.0 < 20.0 < np.square(forecasts - y)[500:].mean()
