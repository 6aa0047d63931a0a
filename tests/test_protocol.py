"""What a run records of any learner, and its regret."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import oklnumba as okl
from tests.battery import N, every_learner, make, plain, stream


@every_learner
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


@every_learner
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
    X, _ = stream(scorer, 60)
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
    X, y = stream(okl.PKAWV(okl.TaylorFeatures(2)), 60)
    run = okl.run(okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))), X, np.stack([y, -y], axis=1))
    frame = run.to_frame()
    for name, values in [("prediction", run.predictions), ("loss", run.losses)]:
        assert_array_equal(frame[[f"{name}_0", f"{name}_1"]], values)
    assert_array_equal(frame["bound_1"], run.certificate.bound[:, 1])
    assert frame["mean_loss"].iloc[-1] == pytest.approx(run.mean_loss, rel=1e-14)
    run = okl.run(okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))), X, np.sign([y, -y]).T)
    assert_array_equal(run.to_frame()[["mistake_0", "mistake_1"]], run.mistakes)


def test_frame_of_no_rounds():
    run = okl.run(okl.KernelAWV(okl.Gaussian()), iter([]))
    assert len(run.to_frame()) == 0 and {"prediction", "mean_loss"} < set(run.to_frame())


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as where it is not installed
    with pytest.raises(ImportError, match="pip install pandas"):
        plain(okl.KernelAWV)[0].to_frame()


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
