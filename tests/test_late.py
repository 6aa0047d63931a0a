"""Labels that come late, in batches, or not for every row: okl.run(..., delay, batch, labels)."""

import copy
import pickle
from functools import partial
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import lfilter
from sklearn.linear_model import SGDRegressor

import oklnumba as okl
from oklnumba.core.params import clone
from oklnumba.learners.base.late import Asked
from tests import battery
from tests.battery import LEARNERS, contents, in_pieces, make
from tests.checks import refused

N = 160
every_learner = pytest.mark.parametrize(
    "cls",
    [cls for cls in LEARNERS if cls not in (okl.Intervals, okl.Lags, okl.Horizon)],
    ids=lambda cls: cls.__name__,
)
stream = partial(battery.stream, n=N)
LATE = [(3, 1), (0, 5), (2, 4)]  # delay, batch
every_late = pytest.mark.parametrize(("delay", "batch"), LATE)


# They forecast rows together by BLAS, whose last digits depend on how many rows there are.
BLAS = okl.KernelAWV, okl.KernelRidge, okl.Experts


def assert_forecasts(cls, found, expected, exact=True):
    """Forecasts are the same to the bit, where rows are not played by BLAS."""
    if exact and not issubclass(cls, BLAS):
        assert_array_equal(found, expected)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def textbook(learner, X, y, delay, batch, forecast="predict", tell=lambda asked: asked):
    """Return forecasts and sizes by the definition.

    Round t is forecast by the learner that has learned the labels of rounds 1, ..., m - delay, m
    the last multiple of ``batch`` below t. In the end all labels come, with what ``ask`` said.
    """
    forecasts, sizes, asked, learned = [], [], [], 0

    def learn(last):
        nonlocal learned
        there = [s for s in range(learned, last) if np.all(y[s] == y[s])]
        for _, some in groupby(there, lambda s: asked[s].notes.shape):
            rows = [*some]
            each = zip(*[vars(asked[s]).values() for s in rows], strict=True)
            known = Asked(*map(np.concatenate, each))
            learner.partial_fit(X[rows], y[rows], known=tell(known))
        learned = max(learned, last)

    for t in range(1, len(X) + 1):
        asked.append(learner.ask(X[t - 1 : t]))
        forecasts.append(getattr(learner, forecast)(X[t - 1 : t])[0])
        if t % batch == 0:
            learn(t - delay)
        sizes.append(learner.size)
    learn(len(X))
    return np.array(forecasts), sizes


@every_learner
def test_forecasts_are_those_of_the_definition(cls):
    X, y = stream(make(cls), n=100)
    for delay, batch in LATE[:2]:  # the third one with rows without a label, below
        learner, other = make(cls), make(cls)
        run = okl.run(learner, X, y, delay=delay, batch=batch)
        expected, sizes = textbook(other, X, y, delay, batch)
        assert_forecasts(cls, run.predictions, expected)
        assert contents(learner) == contents(other) and learner.rounds == len(y)
        begun = np.flatnonzero(sizes)[0]  # before the first label ``size`` may be 0
        assert run.sizes[begun:].tolist() == sizes[begun:]
        assert run.certificate is None and f"delay={delay}" * (delay > 0) in repr(run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "n"),  # the last one in blocks in which rows are asked and learned
    [(okl.SelfTuning(budget=20), N), (okl.SelfTuning(experts=[okl.OGD(eta=0.01)]), N)]
    + [(okl.FOGD(), N), (okl.SelfTuning(budget=20), 1300)],
)
def test_no_delay_long_batches_and_labels_that_never_come_in_time(learner, n):
    X, y = stream(learner, n=n)
    y[N // 2] *= 30.0 if isinstance(learner, okl.SelfTuning) else 1.0  # an outlier
    never = [(23, 7)] if n > N else [(23, 1), (0, 64), (N + 5, 1), (0, N + 5)]
    for delay, batch in [(1, 1), *never]:
        played, other = clone(learner), clone(learner)
        run = okl.run(played, X, y, delay=delay, batch=batch)
        expected, sizes = textbook(other, X, y, delay, batch)
        assert_array_equal(run.predictions, expected)
        assert contents(played) == contents(other)
        assert n == N or run.sizes[99:].tolist() == sizes[99:]


@every_learner
def test_rounds_known_that_cannot_be_are_refused(cls):
    """Labels late by hand, rows without one too, are in ``textbook``."""
    learner = make(cls)
    X, y = stream(learner)
    refused("known must be the rounds learned", learner.partial_fit, X[:1], y[:1], known=1)
    assert learner.rounds == 0
    learner.partial_fit(X[:9], y[:9])
    for known in (-1, 10, 0.5, [0, 0]):
        with pytest.raises(ValueError, match="known must be the rounds learned when the rows"):
            learner.partial_fit(X[:1], y[:1], known=known)
    assert learner.rounds == 9


@pytest.mark.parametrize("cls", [okl.PKAWV, okl.SelfTuning])
def test_optional_labels_that_are_all_there_are_the_ordinary_protocol(cls):
    X, y = stream(make(cls))
    whole, optional = okl.run(make(cls), X, y), okl.run(make(cls), X, y, labels="optional")
    assert_array_equal(optional.predictions, whole.predictions)
    assert_array_equal(optional.losses, whole.losses)
    assert_array_equal(optional.sizes, whole.sizes)


# ---- members are weighed by what they forecast in time ----


def demand(n, seed=0):
    """Hourly demand: days, weekends, temperature, and an error that hardly changes in an hour."""
    rng, t = np.random.default_rng(seed), np.arange(n)
    error, heat = lfilter([1.0], [1.0, -0.95], rng.standard_normal((2, n)))
    hour, weekend = 2 * np.pi * t / 24, t // 24 % 7 >= 5
    week = 8 * np.sin(hour) + 4 * np.cos(2 * hour) - 6 * weekend * (1 + np.sin(hour))
    X = np.column_stack([np.sin(hour), np.cos(hour), weekend, heat])
    return X, 50 + week + 0.8 * heat + error


@pytest.mark.slow
def test_a_member_that_follows_the_last_error_gets_no_weight_24_hours_ahead():
    """Were they forecast again when labels come, the best member would seem to lose an eighth."""
    X, y = demand(1500)
    expert = okl.Standardized(okl.PKAWV(okl.TaylorFeatures(3, sigma=2.0), lam=0.1))
    alone = okl.run(expert, X, y, delay=23).losses[500:].sum()
    learner = okl.SelfTuning(budget=50, experts=[expert])
    okl.run(learner, X[:500], y[:500], delay=23)
    before = learner.member_losses
    whole = okl.run(learner, X[500:], y[500:], delay=23).losses.sum()
    best = (learner.member_losses - before).min()
    assert whole < 1.02 * alone and whole < 1.1 * best  # the best of 60 in hindsight


def test_memory_that_no_row_has_written_is_not_read(monkeypatch):
    X, y = stream(okl.SelfTuning(), n=400)
    expected = okl.run(okl.SelfTuning(budget=20), X, y, delay=5).predictions
    make_empty, rng = np.empty, np.random.default_rng(0)
    odd = np.array([0x7FF << 52, 0xFFF << 52, 0x7FF4 << 48], np.uint64)  # the last warns if added

    def fill(*args, **options):
        array = make_empty(*args, **options)
        if array.dtype == float:
            array.view(np.uint64)[...] = rng.choice(odd, array.shape)
        return array

    monkeypatch.setattr(np, "empty", fill)
    assert_array_equal(okl.run(okl.SelfTuning(budget=20), X, y, delay=5).predictions, expected)


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["alone", "Standardized", "Experts", "MultiOutput"])
def test_what_members_forecast_in_time_reaches_them_in_other_learners(inner):
    X, y = stream(okl.SelfTuning())
    make_learner = {
        "alone": lambda one: one,
        "Standardized": okl.Standardized,
        "Experts": lambda one: okl.Experts([okl.PKAWV(okl.TaylorFeatures(2)), one], B=None),
        "MultiOutput": okl.MultiOutput,
    }[inner]
    if inner == "MultiOutput":
        y = np.stack([y, np.roll(y, 3)], axis=1)
    learner = make_learner(okl.SelfTuning(budget=20)).partial_fit(X[:4], y[:4])
    told, untold, predicted = (copy.deepcopy(learner) for _ in range(3))
    run = okl.run(learner, X, y, delay=5, batch=4)
    assert_array_equal(textbook(told, X, y, 5, 4)[0], run.predictions)

    def pass_time(asked):
        predicted.predict(X), predicted.ask(X[:3])
        return pickle.loads(pickle.dumps(asked))

    assert_array_equal(textbook(predicted, X, y, 5, 4, tell=pass_time)[0], run.predictions)
    found, _ = textbook(untold, X, y, 5, 4, tell=lambda asked: asked.known)
    assert (found != run.predictions).any()


def test_the_last_step_weighs_what_it_forecast_in_time():
    learner, (X, y) = okl.SelfTuning(budget=20), stream(okl.SelfTuning())
    asked = learner.partial_fit(X[:60], y[:60]).ask(X[90:93])
    untold = copy.deepcopy(learner.partial_fit(X[60:90], y[60:90]))
    learner.partial_fit(X[90:93], y[90:93], known=asked)
    untold.partial_fit(X[90:93], y[90:93], known=60)
    now, noted = (
        learner._residuals.forecasts,
        asked.notes[:, -learner._residuals.forecasts[0].size :],
    )
    assert_array_equal(now.reshape(3, -1), noted)
    assert (untold._residuals.forecasts != now).all()


def test_what_was_asked_is_learned_in_any_pieces_and_by_its_own_learner_only():
    learner = okl.Intervals(okl.SelfTuning(budget=20))
    X, y = stream(learner)
    early, (whole, pieces) = learner.ask(X[:2]), [copy.deepcopy(learner) for _ in range(2)]
    for one in (whole, pieces):
        one.partial_fit(X[:2], y[:2], known=early).partial_fit(X[2:60], y[2:60])
    asked = whole.ask(X[60:])
    whole.partial_fit(X[60:], y[60:], known=asked)
    for rows in (slice(0, 1), [1, 2, 3], slice(4, None)):
        pieces.partial_fit(X[60:][rows], y[60:][rows], known=asked[rows])
    assert len(asked[7]) == 1 and contents(pieces) == contents(whole)
    refused("known must be what ask returned", whole.partial_fit, X[:1], y[:1], known=60)
    for other in (okl.SelfTuning(), okl.Intervals(okl.PKAWV(okl.TaylorFeatures(2)))):
        other.partial_fit(X[:60], y[:60])
        with pytest.raises(ValueError, match="known is of another learner: its rows"):
            other.partial_fit(X[60:], y[60:], known=asked)


# ---- rows without a label ----


def with_gaps(y, seed=0):
    """Return labels as floats with NaN in a third of the rows, the first and a stretch too."""
    there = np.random.default_rng(seed).random(len(y)) < 0.66
    there[[0, 1, *range(20, 35)]] = False
    return np.where(there, y, np.nan)


@pytest.mark.slow
@pytest.mark.parametrize(("delay", "batch"), [(0, 1), (2, 4)])
@every_learner
def test_rows_without_a_label_are_forecast_and_skipped(cls, delay, batch):
    X, y = stream(make(cls))
    y = with_gaps(y)
    there = y == y
    learner, other = make(cls), make(cls)
    run = okl.run(learner, X, y, delay=delay, batch=batch, labels="optional")
    expected, _ = textbook(other, X, y, delay, batch)
    # Labels at once are learned in one go: rounds together, not single ones.
    assert_forecasts(cls, run.predictions, expected, exact=(delay, batch) != (0, 1))
    assert learner.rounds == there.sum() and run.rounds == len(y)
    assert_array_equal(np.isnan(run.losses), ~there)
    assert_array_equal(run.labelled, np.cumsum(there))
    assert run.mean_loss == pytest.approx(np.nanmean(run.losses), rel=1e-12)
    if run.mistakes is not None:
        wrong = (y * run.predictions <= 0)[there]
        assert run.mistake_rate == pytest.approx(wrong.mean(), rel=1e-12)
        assert not run.mistakes[~there].any()


@pytest.mark.parametrize("record", [1, 7, "none"])
def test_what_is_kept_of_rows_without_a_label(record, tmp_path):
    X, y = stream(make(okl.PKAWV))
    y = with_gaps(np.sign(y))
    given = {"batch": 4, "labels": "optional"}
    whole = okl.run(make(okl.PKAWV), X, y, **given)
    run = okl.run(make(okl.PKAWV), X, y, record=record, **given)
    run.save(tmp_path / "run.npz")
    for one in (run, okl.Run.load(tmp_path / "run.npz")):
        at = one.recorded - 1
        assert_array_equal(one.labelled, whole.labelled[at])
        assert_array_equal(one.loss_sums, whole.loss_sums[at])
        assert (one.mean_loss, one.mistake_rate) == (whole.mean_loss, whole.mistake_rate)
        assert one.settled_mean_loss == pytest.approx(np.nanmean(whole.losses[32:]), rel=1e-12)
        assert one.late == "batch=4, labels='optional'" and one.late in repr(one)
        frame = one.to_frame()
        rates = whole.mistake_sums / np.where(whole.labelled, whole.labelled, np.nan)
        assert_allclose(frame["mistake_rate"], rates[at], rtol=1e-13)
    line = whole.plot().axes[0].lines[0]
    assert line.get_ydata()[-1] == pytest.approx(100 * whole.mistake_rate)


def test_labels_of_any_kind_may_be_missing():
    X, y = stream(make(okl.PKAWV), n=60)
    gaps = with_gaps(np.sign(y))
    whole = okl.run(make(okl.PKAWV), X, gaps, labels="optional")
    texts = [None if v != v else v for v in gaps.tolist()]
    mixed = pd.Series(texts, dtype=object).where(gaps == gaps, pd.NA)
    series = pd.Series(gaps), pd.Series(gaps).astype("Int64"), mixed
    for labels in (texts, *series, series[1].array, mixed.to_numpy()):
        run = okl.run(make(okl.PKAWV), X, labels, labels="optional")
        assert_array_equal(run.predictions, whole.predictions)
    names = [v if v != v else "no" if v < 0 else "yes" for v in gaps.tolist()]  # texts and NaN
    learners = (okl.OneVsRest(make(okl.PKAWV), classes) for classes in (["no", "yes"], [-1, 1]))
    pairs = zip(learners, (names, gaps), strict=True)
    scores = [okl.run(one, X, labels, labels="optional").scores for one, labels in pairs]
    assert_array_equal(*scores)


def test_a_bad_label_after_gaps_is_told_by_its_row():
    X, y = stream(make(okl.PKAWV), n=60)
    y[:7], words = np.nan, np.array([None] * 7 + ["no", "yes"] * 26 + ["odd"], dtype=object)
    for row in (7, 8, 59):
        bad, texts = y.copy(), words.copy()
        bad[row], texts[-1], texts[row] = np.inf, "no", "odd"
        for learner, labels in (
            (okl.LinearAWV(), bad),
            (okl.OneVsRest(okl.OGD(), ["no", "yes"]), texts),
        ):
            for rows in ((X, labels), ([(X[:20], labels[:20]), (X[20:], labels[20:])], None)):
                with pytest.raises(ValueError, match=f"y has .* at row {row}\\b"):
                    okl.run(learner, *rows, labels="optional")


def test_the_regret_is_that_of_labelled_rounds_and_0_and_1_with_gaps_are_warned_of():
    X, y = stream(make(okl.PKAWV), n=60)
    run = okl.run(make(okl.PKAWV), X, with_gaps(y), labels="optional")
    known = ~np.isnan(with_gaps(y))
    best = okl.theory.Hindsight(okl.Gaussian(1.0), X[known], y[known], 0.1)
    assert_array_equal(run.regret(okl.Gaussian(1.0), 0.1), best.regret(run.predictions[known]))
    with pytest.warns(UserWarning, match="the labels are 0 and 1"):
        okl.run(make(okl.PKAWV), X, with_gaps((y > 0.0) * 1.0), labels="optional")


# ---- classes and several outputs ----


@pytest.mark.parametrize("scorer", [okl.PKAWV(okl.TaylorFeatures(2)), okl.FOGD(n_frequencies=9)])
@pytest.mark.parametrize(("delay", "batch"), [(0, 1), *LATE])
def test_classes(scorer, delay, batch):
    X, _ = stream(scorer, n=100)
    y = np.where(X[:, 0] > 0, "yes", np.where(X[:, 1] > 0, "no", "so")).astype(object)
    y[[0, 3, 4, 5, 40]] = None
    learner = okl.OneVsRest(scorer, ["yes", "no", "so"])
    run = okl.run(learner, X, y, delay=delay, batch=batch, labels="optional")
    there = np.array([one is not None for one in y])
    given = np.where(there, y, np.nan)
    expected, _ = textbook(clone(learner), X, given, delay, batch, "scores")
    assert_allclose(run.scores, expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(run.predictions, np.array(learner.classes)[run.scores.argmax(axis=1)])
    wrong = (run.predictions != y)[there]
    assert run.mistake_rate == pytest.approx(wrong.mean()) and run.certificate is None


@every_late
@pytest.mark.parametrize("inner", [okl.PKAWV(okl.TaylorFeatures(2)), okl.FOGD(loss="squared")])
def test_several_outputs(inner, delay, batch):
    X, y = stream(inner, n=100)
    Y = np.column_stack([y, -y, y**2])
    Y[[0, 7, 8]] = np.nan
    for columns in (Y, Y[:, :1]):
        learner = okl.MultiOutput(clone(inner))
        run = okl.run(learner, X, columns, delay=delay, batch=batch, labels="optional")
        for k in range(columns.shape[1]):
            expected, _ = textbook(clone(inner), X, columns[:, k], delay, batch)
            assert_array_equal(run.predictions[:, k], expected)
        assert run.mean_loss == pytest.approx(np.nanmean(run.losses), rel=1e-12)


# ---- cuts of the stream, checkpoints, clocks ----


@pytest.mark.slow
@every_late
@pytest.mark.parametrize("cls", [okl.PKAWV, okl.SelfTuning, okl.KernelAWV, okl.BOGD])
def test_any_cut_of_the_stream_gives_the_same_run(cls, delay, batch):
    X, y = stream(make(cls))
    y = with_gaps(y)
    given = {"delay": delay, "batch": batch, "labels": "optional"}
    whole = okl.run(make(cls), X, y, **given)
    for cut in (1, 7, 64):
        run = okl.run(make(cls), in_pieces(X, y, cut, N), **given)
        assert_forecasts(cls, run.predictions, whole.predictions)
        assert_array_equal(run.labelled, whole.labelled)


WAITING = [(0, 1, "all"), (3, 1, 5), (0, 5, "all"), (2, 4, 5), (0, 50, "all")]
PLAYED = [(okl.PKAWV, *one) for one in WAITING] + [(okl.SelfTuning, *one) for one in WAITING[1:3]]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "delay", "batch", "record"), PLAYED)
def test_a_checkpoint_has_the_rows_that_wait(cls, delay, batch, record, tmp_path):
    X, y = stream(make(cls))
    y = with_gaps(y)
    given = {"delay": delay, "batch": batch, "labels": "optional", "record": record}
    path, learner = tmp_path / "run.npz", make(cls)
    whole = okl.run(learner, X, y, every=11, **given)

    with pytest.raises(OSError, match="broke off"):
        okl.run(make(cls), in_pieces(X, y, 60, 60), checkpoint=path, every=11, **given)
    done = okl.Run.load(path).rounds
    assert 0 < done < 61 and done % 11 == 0
    for rest in ((X, y, False), (X[done:], y[done:], True)):
        copy, again = tmp_path / "copy.npz", make(cls)
        copy.write_bytes(path.read_bytes())
        run = okl.run(again, rest[0], rest[1], checkpoint=copy, every=11, resume=rest[2], **given)
        assert_array_equal(run.predictions, whole.predictions)
        assert (run.mean_loss, run.rounds) == (whole.mean_loss, N)
        assert contents(again) == contents(learner)
    finished = make(cls)
    okl.run(finished, X, y, checkpoint=copy, every=11, **given)  # nothing is left to play
    assert contents(finished) == contents(learner)


def test_a_time_limit_leaves_late_labels_out(monkeypatch):
    X, y = stream(make(okl.PKAWV), n=500)
    learner = make(okl.PKAWV)
    run = okl.run(learner, X, y, delay=5, time_limit=1e-9)
    assert not run.finished and 0 < run.rounds < 500
    assert learner.rounds == run.rounds - 5


# ---- what is said ----


def test_no_certificate_and_what_says_so():
    X, y = stream(make(okl.PKAWV))
    assert okl.run(make(okl.PKAWV), X, y).late == ""
    run = okl.run(make(okl.PKAWV), X, y, delay=2, batch=3)
    assert run.certificate is None and "delay=2, batch=3 (no certificate)" in repr(run)
    with pytest.raises(ValueError, match="no certificate: its labels are late, delay=2, batch=3"):
        okl.plots.certificate(run, okl.plots.figure(columns=1)[1][0, 0])
    expected = okl.theory.regret(run.predictions, okl.Gaussian(1.0), X, y, 1.0)
    assert_array_equal(run.regret(okl.Gaussian(1.0), 1.0), expected)


def test_labels_that_are_late_cost_more_than_the_bound_of_labels_at_once():
    """What run.certificate would have said is wrong: labels turn as soon as they are known."""
    X = np.ones((400, 1))
    y = np.where(np.arange(400) // 20 % 2, 1.0, -1.0)
    learner = okl.PKAWV(okl.TaylorFeatures(1), lam=0.01)
    found = okl.run(clone(learner), X, y).certificate
    assert found.regret[-1] <= found.bound[-1]
    late = okl.run(learner, X, y, delay=20)
    assert late.losses.sum() - found.comparator[-1] > 2.0 * found.bound[-1]


@pytest.mark.parametrize("told", [True, False])
def test_no_bound_is_shown_where_recalled_forecasts_break_it(told):
    """Live by notes, or without them by the replay of the restart in round 512."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (530, 2))
    y = np.where(np.arange(530) < 130, 0.1, 1.0) * (X[:, 0] - X[:, 1])
    learner = okl.SelfTuning(budget=8).partial_fit(X[:130], y[:130])
    asked = learner.ask(X[130:500])
    learner.partial_fit(X[130:500], y[130:500], known=asked if told else asked.known)
    found = okl.run(learner, X[500:], y[500:]).certificate
    assert (found.regret <= found.bound).all() and (found.loss <= found.guaranteed).all()
    assert np.isinf(found.bound[20:]).all() and np.isfinite(found.bound[:5]).all() != told


def test_no_other_call_comes_between_late_rows_and_their_notes(monkeypatch):
    owned, play = [], okl.SelfTuning._play_rows

    def look(self, *rows):
        owned.append(self._lock._is_owned())
        return play(self, *rows)

    monkeypatch.setattr(okl.SelfTuning, "_play_rows", look)
    X, y = stream(make(okl.SelfTuning), n=60)
    okl.run(okl.SelfTuning(budget=8), X, y, delay=3)
    assert owned and all(owned)


@every_late
def test_learners_of_others_play_too(delay, batch):
    class Mean:
        total = count = 0

        def predict_one(self, x):
            return self.total / max(self.count, 1)

        def learn_one(self, x, y):
            self.total, self.count = self.total + y, self.count + 1

    X, y = stream(make(okl.PKAWV))
    y = with_gaps(y)
    known = [max(0, t // batch * batch - delay) for t in range(N)]
    expected = [np.nanmean(y[:m]) if (y[:m] == y[:m]).any() else 0.0 for m in known]
    run = okl.run(Mean(), X, y, delay=delay, batch=batch, labels="optional")
    assert_allclose(run.predictions, expected, rtol=1e-12, atol=1e-14)
    sgd = okl.run(SGDRegressor(random_state=0), X, y, delay=delay, labels="optional")
    assert np.isfinite(sgd.mean_loss)


@pytest.mark.parametrize(
    "make",
    [
        lambda: okl.KernelAWV(okl.Gaussian(1.0)), lambda: okl.NystromAWV(okl.Gaussian(1.0)),
        lambda: okl.Tree(okl.LinearAWV()), lambda: okl.MultiOutput(okl.LinearAWV()),
        lambda: okl.OneVsRest(okl.LinearAWV(), classes=[-1, 1]),
        lambda: okl.FrequentKONS(okl.Gaussian(1.0)), lambda: okl.AOGD(okl.Gaussian(1.0)),
        lambda: okl.AIOLI(okl.TaylorFeatures(degree=1)),
    ],
)  # fmt: skip
def test_no_bound_goes_on_after_labels_that_came_late(make, tmp_path):
    """The losses of these rounds exceeded what the certificate of the next run guaranteed."""
    X, y = np.ones((80, 1)), np.where(np.arange(80) // 10 % 2, 1.0, -1.0)
    learner = make()
    y = np.column_stack([y, y]) if isinstance(learner, okl.MultiOutput) else y

    def find_bound(learner):
        if hasattr(learner, "regret_bound"):
            return learner.regret_bound(*[1.0] * (not isinstance(learner, okl.AOGD)))
        certificate = okl.run(copy.deepcopy(learner), X[40:], y[40:]).certificate
        return np.minimum(certificate.bound, certificate.guaranteed).min()

    okl.run(learner, X[:40], y[:40], batch=1)
    assert np.isfinite(find_bound(learner))
    okl.run(learner, X[:40], y[:40], delay=10)
    assert find_bound(learner) == np.inf
    learner.save(tmp_path / "late.npz")
    assert find_bound(okl.load(tmp_path / "late.npz")) == np.inf
    assert np.isfinite(find_bound(learner.reset().partial_fit(X, y)))
    asked = learner.ask(X[:2])
    assert find_bound(learner.partial_fit(X[:2], y[:2], known=asked)) == np.inf
