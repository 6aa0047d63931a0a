"""What a run records of any learner and keeps with ``record=``, and checkpoints of it."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from oklnumba.protocol import recording
from tests import battery
from tests.battery import contents, in_pieces, make
from tests.checks import raises

N = 150  # more than two blocks
stream, plain = partial(battery.stream, n=N), partial(battery.plain, n=N)


def kept_rounds(record, n):
    """Return the rounds that are kept, from the definition."""
    step = n + 1 if record == "none" else record
    return [t for t in range(1, n + 1) if t % step == 0 or t == n]


def assert_rounds_of(run, whole, record):
    """Everything a run kept is what the run that kept all has at those rounds."""
    assert run.recorded.tolist() == kept_rounds(record, whole.rounds)
    at = run.recorded - 1
    for name in ("predictions", "losses", "sizes", "mistakes", "scores", "intervals"):
        expected = getattr(whole, name)
        if expected is None:
            assert getattr(run, name) is None
        else:
            assert_array_equal(getattr(run, name), expected[at], err_msg=name)
    assert_array_equal(run.loss_sums, np.cumsum(whole.losses, axis=0)[at])
    if whole.mistakes is not None:
        assert_array_equal(run.mistake_sums, np.cumsum(whole.mistakes, axis=0)[at])
        assert run.mistake_rate == pytest.approx(whole.mistake_rate, rel=1e-15)
    else:
        assert run.mistake_sums is None and run.mistake_rate is None
    if whole.certificate is not None:
        for name, values in battery.proofs(whole.certificate).items():
            assert_array_equal(getattr(run.certificate, name), values[at], err_msg=name)
    assert run.mean_loss == pytest.approx(whole.mean_loss, rel=1e-13)
    settled = whole.losses[32:].mean()
    assert run.settled_mean_loss == pytest.approx(settled, rel=1e-12)
    assert whole.settled_mean_loss == settled
    assert (run.rounds, run.finished, run.loss) == (whole.rounds, True, whole.loss)
    assert run.seconds > 0.0 and run.checkpoints[-1] == whole.rounds


PLAYED = {  # learners, and their labels
    "one output": (okl.Intervals(okl.PKAWV(okl.TaylorFeatures(2))), np.sign),
    "outputs": (okl.MultiOutput(okl.FOGD(loss="squared")), lambda y: np.column_stack([y, -y])),
    "classes": (okl.OneVsRest(okl.LinearAWV(), [0, 1, 2]), lambda y: np.digitize(y, [-0.3, 0.3])),
}


@pytest.mark.parametrize("kind", PLAYED)
@pytest.mark.parametrize("record", [1, 7, N, N + 5, "none"])
def test_whatever_is_kept_and_however_rounds_are_cut(record, kind, tmp_path):
    learner, as_labels = PLAYED[kind]
    X, y = stream(make(okl.PKAWV))
    y = as_labels(y)
    whole = okl.run(learner.reset(), X, y)
    assert whole.recorded.tolist() == list(range(1, N + 1))
    assert_array_equal(whole.loss_sums, np.cumsum(whole.losses, axis=0))
    if kind == "one output":
        with pytest.raises(ValueError, match=r"keeps \d+ of \d+; play it with record='all'"):
            okl.run(learner.reset(), X, y, record=N // 2).regret(okl.Gaussian(1.0), 1.0)
    for cut in (1, 13, N):
        pairs = list(in_pieces(X, y, cut, N))
        together = okl.run(learner.reset(), pairs)  # cuts change the last bits of forecasts
        state = contents(learner)
        run = okl.run(learner.reset(), pairs, record=record)
        assert contents(learner) == state
        assert_rounds_of(run, together, record)
        run.save(tmp_path / "run.npz")
        again = okl.Run.load(tmp_path / "run.npz")
        assert_rounds_of(again, together, record)
        assert repr(again) == repr(run) and f"rounds {N}" in repr(run)


@pytest.mark.parametrize("record", [7, "none"])
def test_mistakes_are_counted_only_where_all_rounds_have_them(record):
    X, y = stream(make(okl.PKAWV))
    signs = np.sign(y)
    for pairs in ([(X, signs), (X[:5], y[:5])], [(X[:5], y[:5]), (X, signs)]):
        run = okl.run(make(okl.PKAWV), pairs, record=record)
        assert run.mistakes is None and run.mistake_rate is None and run.mistake_sums is None
        assert run.mean_loss == pytest.approx(okl.run(make(okl.PKAWV), pairs).mean_loss, rel=1e-13)


def test_a_run_without_rounds_and_its_frame():
    for record in ("all", 3, "none"):
        with pytest.warns(UserWarning, match="the stream has no rows; if it is a generator"):
            run = okl.run(make(okl.PKAWV), iter([]), record=record)
        assert (run.rounds, len(run.recorded), len(run.loss_sums)) == (0, 0, 0)
        assert np.isnan(run.mean_loss) and np.isnan(run.settled_mean_loss)
    with pytest.warns(UserWarning, match="the stream has no rows"):
        run = okl.run(okl.KernelAWV(okl.Gaussian()), iter([]))
    assert len(run.to_frame()) == 0 and {"prediction", "mean_loss"} < set(run.to_frame())


@pytest.mark.parametrize("record", [7, "none"])
def test_frames_and_pictures_have_the_rounds_recorded(record):
    X, y = stream(make(okl.PKAWV))
    whole = okl.run(make(okl.PKAWV), X, np.sign(y))
    run = okl.run(make(okl.PKAWV), X, np.sign(y), record=record)
    rows, found = whole.to_frame().iloc[run.recorded - 1], run.to_frame()
    assert found.columns.tolist() == rows.columns.tolist()
    for name in found:
        np.testing.assert_allclose(found[name].astype(float), rows[name].astype(float), rtol=1e-13)
    lines = run.plot().axes[0].lines[0]
    assert set(lines.get_xdata()) <= set(run.recorded) and lines.get_xdata()[-1] == N
    expected = 100 * np.cumsum(whole.mistakes)[lines.get_xdata() - 1] / lines.get_xdata()
    np.testing.assert_allclose(lines.get_ydata(), expected, rtol=1e-13)


def test_the_clock_of_a_long_run_is_thinned(monkeypatch):
    monkeypatch.setattr(recording, "READINGS", 8)
    X, y = stream(make(okl.PKAWV))
    run = okl.run(make(okl.PKAWV), X, y, record="none", every=1)
    assert 8 <= len(run.checkpoints) <= 16 and (np.diff(run.checkpoints) > 0).all()
    assert run.checkpoints[-1] == N and run.checkpoint_seconds[-1] == run.seconds
    assert len(okl.run(make(okl.PKAWV), X, y, every=1).checkpoints) == N


@battery.every_learner
def test_what_a_run_records(cls):
    run, _ = plain(cls)
    learner = make(cls)
    X, y = stream(learner)
    loss = learner._loss()
    assert run.loss == loss.name and run.finished and run.rounds == N
    assert_allclose(run.losses, loss.value(run.predictions, y), rtol=1e-14)
    assert run.mean_loss == pytest.approx(run.losses.mean(), rel=1e-14)
    assert run.sizes.dtype.kind == "i" and (run.sizes >= 0).all() and run.seconds > 0.0
    assert run.checkpoints[-1] == N and (np.diff(run.checkpoints) > 0).all()
    assert (np.diff(run.checkpoint_seconds) >= 0.0).all()
    assert run.checkpoint_seconds[-1] == run.seconds
    if loss.classes:
        assert_array_equal(run.mistakes, y * run.predictions <= 0.0)
        assert run.mistake_rate == run.mistakes.mean() and bool(run.mistakes[0])
    else:
        assert run.mistakes is None and run.mistake_rate is None
    shown = repr(run)
    assert "\n" not in shown and cls.__name__ in shown and str(N) in shown
    other = okl.run(make(cls), X, y, loss="absolute")
    assert_array_equal(other.predictions, run.predictions)
    assert_allclose(other.losses, abs(y - run.predictions), rtol=1e-14)


@battery.every_learner
def test_frame_of_a_run(cls):
    run, _ = plain(cls)
    frame = run.to_frame()
    names = ["round", "prediction", "loss", "mean_loss"]
    names += ["mistake", "mistake_rate"] if run.mistakes is not None else []
    names += ["size"] + (["comparator", "regret", "bound"] if run.certificate else [])
    names += ["low", "high"] if run.intervals is not None else []
    assert list(frame) == names and len(frame) == N
    assert_array_equal(frame["round"], np.arange(1, N + 1))
    assert_array_equal(frame["prediction"], run.predictions)
    assert_array_equal(frame["loss"], run.losses)
    assert_array_equal(frame["size"], run.sizes)
    assert_allclose(frame["mean_loss"], [run.losses[: t + 1].mean() for t in range(N)], rtol=1e-12)
    assert frame["mean_loss"].iloc[-1] == pytest.approx(run.mean_loss, rel=1e-14)
    if run.mistakes is not None:
        assert frame["mistake"].dtype == bool
        assert frame["mistake_rate"].iloc[-1] == pytest.approx(run.mistake_rate, rel=1e-14)
    if run.certificate:
        assert_array_equal(frame["regret"], run.certificate.regret)
        assert_array_equal(frame["bound"], run.certificate.bound)


@pytest.mark.parametrize("scorer", [okl.PKAWV(okl.TaylorFeatures(2)), okl.FOGD(n_frequencies=9)])
def test_frame_of_classes(scorer, tmp_path):
    X, _ = stream(scorer, n=60)
    y = np.where(X[:, 0] > 0, "yes", np.where(X[:, 1] > 0, "no", "so"))
    run = okl.run(okl.OneVsRest(scorer, ["yes", "no", "so"]), X, y)
    run.save(tmp_path / "run.npz")
    for one in (run, okl.Run.load(tmp_path / "run.npz")):
        frame = one.to_frame()
        assert list(frame["prediction"]) == list(run.predictions)
        for k, name in enumerate(["yes", "no", "so"]):
            assert_array_equal(frame[f"score_{name}"], run.scores[:, k])
            assert (f"regret_{name}" in frame) == (run.certificate is not None)
            if run.certificate:
                assert_array_equal(frame[f"regret_{name}"], run.certificate.regret[:, k])
        assert frame["mistake_rate"].iloc[-1] == pytest.approx(run.mistake_rate, rel=1e-14)


def test_frame_of_several_outputs():
    X, y = stream(okl.PKAWV(okl.TaylorFeatures(2)), n=60)
    run = okl.run(okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))), X, np.stack([y, -y], axis=1))
    frame = run.to_frame()
    for name, values in [("prediction", run.predictions), ("loss", run.losses)]:
        assert_array_equal(frame[[f"{name}_0", f"{name}_1"]], values)
    assert_array_equal(frame["bound_1"], run.certificate.bound[:, 1])
    assert frame["mean_loss"].iloc[-1] == pytest.approx(run.mean_loss, rel=1e-14)
    run = okl.run(okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))), X, np.sign([y, -y]).T)
    assert_array_equal(run.to_frame()[["mistake_0", "mistake_1"]], run.mistakes)


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as where it is not installed
    raises(ImportError, "pip install pandas", plain(okl.KernelAWV)[0].to_frame)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="about forks")
def test_a_fork_that_is_killed_with_the_lock_of_a_bar_stops_nobody_else():
    """Forks share the lock of tqdm's own bars, which those that are not shown take too."""
    code = """if True:
        import os, signal
        import numpy as np
        from tqdm import tqdm
        import oklnumba as okl
        from oklnumba.core.display import Bar

        tqdm(disable=True)
        child = os.fork()
        if child == 0:
            tqdm.get_lock().acquire()
            Bar.get_lock().acquire()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        X = np.ones((9, 2))
        print(okl.run(okl.OGD(), X, X[:, 0], progress=True).rounds)
    """
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (told.returncode, told.stdout) == (0, "9\n"), told.stderr
    assert "9.00" in told.stderr


def test_a_run_on_the_way_does_not_say_that_a_time_limit_ended_it(tmp_path):
    X, told = np.ones((200, 1)), []
    okl.run(okl.LinearAWV(), X, X[:, 0], progress=lambda run: told.append(repr(run)))
    path = tmp_path / "run.npz"
    with pytest.raises(ValueError, match="chunk 1"):
        chunks = [(X, X[:, 0]), (X[:, :0], X[:, 0])]
        okl.run(okl.LinearAWV(), chunks, checkpoint=path, every=50)
    told.append(repr(okl.Run.load(path)))
    assert len(told) == 3 and all(", unfinished" in one and "limit" not in one for one in told)
