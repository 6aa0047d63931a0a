"""Several classes and labels around every learner, and online-to-batch conversion."""

import copy

import numpy as np
import pytest

import oklnumba as okl
from tests import battery
from tests.battery import CASES, MEMBERS, assert_same_proofs, assert_same_run, every_member, make
from tests.checks import arrays, refused, troubled
from tests.reference import naive

INSIDE = [one for one in CASES if one.values[0] in MEMBERS]

CLASSES = "red", "green", "blue"


def stream(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.array(CLASSES)[np.digitize(X[:, 0] * X[:, 1], [-0.1, 0.1])]


@every_member
def test_one_vs_rest_around_every_learner(cls):
    X, y = stream()
    learner = okl.OneVsRest(make(cls), CLASSES)
    assert (learner.rounds, learner.size, learner.predict_one(X[0])) == (0, 0, "red")
    assert learner.learners_ == []
    run = okl.run(learner, X, y)
    assert len(learner.learners_) == (1 if learner.learners_[0]._traits.outputs_at_once else 3)
    # The definition: a binary learner a class, softmax regression on their forecasts.
    signs = np.where(y[:, None] == CLASSES, 1.0, -1.0)
    forecasts = okl.run(okl.MultiOutput(make(cls)), X, signs).predictions
    expected = naive.softmax_scores(forecasts, [CLASSES.index(c) for c in y])
    np.testing.assert_allclose(run.scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(run.predictions, np.array(CLASSES)[run.scores.argmax(axis=1)])
    np.testing.assert_array_equal(run.mistakes, run.predictions != y)
    assert run.loss == "zero-one" and run.mean_loss == run.mistake_rate == run.mistakes.mean()
    assert learner.rounds == 120 and learner.size == run.sizes[-1]
    # one at a time, and forecasts that change nothing
    other = okl.OneVsRest(make(cls), CLASSES)
    for t in range(40):
        assert other.predict_one(X[t]) == run.predictions[t]
        other.learn_one(X[t], y[t])
    rest = okl.run(other, X[40:], y[40:]).scores
    np.testing.assert_allclose(rest, run.scores[40:], rtol=1e-9, atol=1e-12)


# ---- several real labels ----


def several(learner, n=120, seed=0):
    """Return inputs and three labels a round, in the domain of the learner's loss."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    Y = np.column_stack([X[:, 0] * X[:, 1], np.sin(3 * X[:, 0]), rng.uniform(-1, 1, n)])
    return X, battery.labels(learner, Y)


# Wrappers around a learner that plays all outputs on one state; those of CASES have others within.
AROUND = [
    pytest.param(
        battery.Variant(cls, "learner", okl.LinearRidge()), id=f"{cls.__name__}-LinearRidge"
    )
    for cls in MEMBERS
    if "learner" in make(cls).get_params(deep=False)
]


@pytest.mark.parametrize("cls", INSIDE + AROUND)
def test_several_outputs_are_so_many_runs_to_the_bit(cls):
    if isinstance(make(cls), okl.SelfTuning):
        pytest.skip("its outputs share lags, metrics and trees: test_self_tuning.py")
    X, Y = several(make(cls))
    learner = okl.MultiOutput(make(cls))
    run = okl.run(learner, X, Y)
    single = [okl.run(make(cls), X, y) for y in Y.T]
    for name in ("predictions", "losses"):
        expected = np.stack([getattr(one, name) for one in single], axis=1)
        np.testing.assert_array_equal(getattr(run, name), expected)
    together = learner.learners_[0]._traits.outputs_at_once
    assert len(learner.learners_) == (1 if together else 3)
    sizes = [one.sizes for one in single]
    np.testing.assert_array_equal(run.sizes, sizes[0] if together else np.sum(sizes, axis=0))
    for k, one in enumerate(single):
        assert_same_proofs(run.certificate, one.certificate, (slice(None), k))
    if run.certificate is not None:
        assert run.certificate.space == single[0].certificate.space
        shown = repr(run.certificate)
        assert "nan" in shown or shown.split("regret ")[1].count(",") == 5
    expected = np.stack([make(cls).partial_fit(X, y).predict(X[:9]) for y in Y.T], axis=1)
    np.testing.assert_allclose(learner.predict(X[:9]), expected, rtol=1e-9, atol=1e-12)


def test_labels_of_many_scales_on_one_factor_are_so_many_runs_also_after_a_file(tmp_path):
    rng, scales = np.random.default_rng(4), np.logspace(-5, 5, 10)
    X, Y = rng.uniform(-1, 1, (700, 3)), rng.standard_normal((700, 10)) * scales
    learner = okl.Standardized(okl.NystromAWV(okl.Gaussian(0.5), mu=0.1, discount=0.98))
    run = okl.run(okl.MultiOutput(learner), X, Y)
    for k, y in enumerate(Y.T):
        found = okl.run(learner.reset(), X, y).predictions
        np.testing.assert_array_equal(run.predictions[:, k], found)
    okl.MultiOutput(learner).partial_fit(X[:101], Y[:101]).save(tmp_path / "some.npz")
    rest = okl.run(okl.load(tmp_path / "some.npz"), X[101:], Y[101:])
    np.testing.assert_allclose(rest.predictions / scales, run.predictions[101:] / scales, atol=1e-9)


@pytest.mark.parametrize("learner", [okl.LinearRidge(), okl.OGD(0.1)], ids=repr)
def test_after_numerical_trouble_it_says_so_until_it_is_reset(learner):
    X, Y = several(learner)
    huge = np.where(np.arange(120)[:, None] == 1, 1e200, X)
    for wrapper in (okl.MultiOutput(learner), okl.OnlineToBatch(learner)):
        y = Y if isinstance(wrapper, okl.MultiOutput) else Y[:, 0]
        troubled("round [23]|inv_d", okl.run, wrapper, huge, y)
        for call in (wrapper.partial_fit, lambda *data: okl.run(wrapper, *data)):  # noqa: B023
            troubled("reset", call, X, y)
        with pytest.raises(FloatingPointError, match="reset"):  # nothing to copy
            copy.deepcopy(wrapper)
        assert okl.run(wrapper.reset(), X, y).rounds == 120


# ---- okl.run, as of any learner ----


def binary(n, seed=0):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    noise = np.random.default_rng(seed + 1).random(n) < 0.1
    return X, np.where(noise, -1, 1) * np.sign(X[:, 0] * X[:, 1])


TAYLOR = okl.TaylorFeatures(2)
PLAYERS = {  # one factor, and a learner for each output
    "OneVsRest, one factor": (okl.OneVsRest(okl.PKAWV(TAYLOR), CLASSES), stream),
    "OneVsRest, exact": (okl.OneVsRest(okl.KernelAWV(okl.Gaussian()), CLASSES), stream),
    "OneVsRest": (okl.OneVsRest(okl.POMDR(okl.Gaussian()), CLASSES), stream),
    "MultiOutput, one factor": (
        okl.MultiOutput(okl.PKAWV(TAYLOR)), lambda n=120: several(okl.PKAWV(TAYLOR), n)
    ),
    "MultiOutput": (okl.MultiOutput(okl.FOGD()), lambda n=120: several(okl.FOGD(), n)),
    "OnlineToBatch": (okl.OnlineToBatch(okl.POMDR(okl.Gaussian()), draws=5, seed=2), binary),
}  # fmt: skip
every_player = pytest.mark.parametrize("name", PLAYERS)


def player(name):
    return copy.deepcopy(PLAYERS[name][0])


@every_player
def test_a_run_that_broke_off_goes_on_bit_for_bit(name, tmp_path):
    X, y = PLAYERS[name][1](200)
    whole, path = player(name), tmp_path / "run.npz"
    expected = okl.run(whole, X, y)

    with pytest.raises(OSError, match="broke off"):
        okl.run(player(name), battery.in_pieces(X, y, 130, 130), checkpoint=path, every=64)
    stopped = okl.run(player(name), X, y, checkpoint=tmp_path / "clock.npz", time_limit=1e-9)
    assert "unfinished" in repr(stopped) and not stopped.finished and 0 < stopped.rounds < 200
    for file in (path, tmp_path / "clock.npz"):
        resumed = player(name)
        run = okl.run(resumed, X, y, checkpoint=file)
        assert run.rounds == resumed.rounds == 200 and run.finished
        assert "unfinished" not in repr(run)
        for found in ("predictions", "scores", "losses", "sizes"):
            np.testing.assert_array_equal(getattr(run, found), getattr(expected, found))
    refused("the checkpoint", lambda: okl.run(okl.FOGD(), X, np.ones(200), checkpoint=path))


@every_player
def test_a_run_is_saved_and_a_player_starts_anew(name, tmp_path):
    X, y = PLAYERS[name][1](120)
    learner = player(name)
    run = okl.run(learner, X, y)
    run.save(tmp_path / "run.npz")
    back = okl.Run.load(tmp_path / "run.npz")
    assert_same_run(back, run)
    assert repr(back) == repr(run) and type(learner).__name__ in repr(run)
    if run.scores is not None:
        np.testing.assert_array_equal(back.scores, run.scores)
        assert run.loss == "zero-one" and run.mean_loss == run.mistake_rate == run.mistakes.mean()
        np.testing.assert_array_equal(run.mistakes, run.predictions != y)
    assert learner.reset().rounds == learner.size == 0
    assert_same_run(okl.run(learner, X, y), run)


@every_player
def test_bad_input_is_refused_by_run_before_anything_changes(name, tmp_path):
    X, y = PLAYERS[name][1](60)
    learner, twin = player(name), player(name)
    for seen in (0, 30):
        for call in (learner.partial_fit, lambda *data: okl.run(learner, *data)):
            for bad in (np.full_like(X, np.nan), X[0], "text", *([X[:, :1]] if seen else [])):
                refused(r"\bX\b", call, bad, y)
            for bad in (None, y[:-1], [None] * 60):
                refused(r"\by\b|pair", call, X, bad)
            if np.ndim(y) == 2:
                gap = np.where(np.arange(60)[:, None] == 5, np.nan, y)
                refused("row 5, column 0", call, X, gap)
                if seen:
                    refused("y has 2 columns, but the data so far had 3", call, X, y[:, :2])
        refused("loss", okl.run, learner, X, y, loss="no such loss")
        assert learner.rounds == seen
        for one in (learner, twin):
            one.partial_fit(X[:30], y[:30])
    assert_same_run(okl.run(learner, X, y), okl.run(twin, X, y))


def test_the_certificate_of_classes_is_that_of_their_scores():
    X, y = stream()
    run = okl.run(okl.OneVsRest(okl.PKAWV(TAYLOR), CLASSES), X, y)
    for k, c in enumerate(CLASSES):
        one = okl.run(okl.PKAWV(TAYLOR), X, np.where(y == c, 1.0, -1.0)).certificate
        assert_same_proofs(run.certificate, one, (slice(None), k))
    for several_outputs in (run, okl.run(okl.MultiOutput(okl.OGD()), *several(okl.OGD()))):
        refused("several outputs.*Hindsight", several_outputs.regret, okl.Gaussian(), 1.0)


# ---- online to batch ----


@every_member
def test_the_function_of_a_round_is_that_of_the_learner_then(cls):
    X, y = binary(80)
    draws = 4
    batch = okl.OnlineToBatch(make(cls), draws=draws, seed=3)
    run, alone = okl.run(batch, X, y), okl.run(make(cls), X, y)
    np.testing.assert_allclose(run.predictions, alone.predictions, rtol=1e-9, atol=1e-12)
    assert run.loss == alone.loss and (run.certificate is None) == (alone.certificate is None)
    assert len(batch.rounds_) == draws and 1 <= batch.rounds_[0] <= batch.rounds_[-1] <= 80
    expected = 0.0
    for r in batch.rounds_:
        learner = make(cls)
        if r > 1:
            learner.partial_fit(X[: r - 1], y[: r - 1])
        expected = expected + learner.predict(X) / draws
    np.testing.assert_allclose(batch.predict(X), expected, rtol=1e-9, atol=1e-12)
    assert batch.risk_bound(8.0) == 0.1


@pytest.mark.parametrize("n", [1, 2, 10])
def test_the_rounds_drawn_are_uniform_and_independent(n):
    X, y = binary(10)
    batch = okl.OnlineToBatch(okl.FOGD(n_frequencies=5), draws=5000, seed=1).fit(X[:n], y[:n])
    counts = np.bincount(batch.rounds_, minlength=n + 1)[1:]
    assert counts.sum() == 5000 and abs(counts - 5000 / n).max() < 4 * (5000 / n) ** 0.5
    if n > 1:
        drawn = arrays(batch)["drawn"]
        assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.06


def test_fit_starts_again_and_partial_fit_goes_on():
    X, y = binary(40)
    batch = okl.OnlineToBatch(okl.FOGD()).fit(X, y)
    drawn = batch.rounds_
    assert batch.partial_fit(X, y).learn_one(X[0], y[0]).rounds == 81
    refused("y has 0", lambda: batch.fit(X, np.zeros(40)))
    assert batch.rounds == 81
    np.testing.assert_array_equal(batch.fit(X, y).rounds_, drawn)
