"""Ctrl-C, SIGTERM and kill -9: what ends a run, what is left of it, and that it goes on."""

import copy
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core import arrays
from tests.battery import assert_same_run, make, stream

X, Y = stream(make(okl.PKAWV), 2000)


def press_in_blocks(monkeypatch, blocks, number=signal.SIGINT):
    """Send a signal while these blocks are played."""
    play, played = okl.PKAWV._play, []

    def pressed(self, *args):
        played.append(self.rounds)
        play(self, *args)
        for _ in range(blocks.count(len(played))):
            signal.raise_signal(number)

    monkeypatch.setattr(okl.PKAWV, "_play", pressed)
    return played


def test_the_first_press_ends_the_run_after_the_block(monkeypatch, tmp_path):
    path, handler = tmp_path / "run.npz", signal.getsignal(signal.SIGINT)
    whole = okl.run(make(okl.PKAWV), X, Y)
    played = press_in_blocks(monkeypatch, [2])
    learner = make(okl.PKAWV)
    run = okl.run(learner, X, Y, checkpoint=path)
    assert run.interrupted and not run.finished and "interrupted" in repr(run)
    assert run.rounds == learner.rounds == okl.Run.load(path).rounds == 128 and len(played) == 2
    assert np.isfinite(learner.predict(X)).all()  # it is whole
    assert signal.getsignal(signal.SIGINT) is handler
    again = okl.run(make(okl.PKAWV), X, Y, checkpoint=path)
    assert again.finished and not again.interrupted
    np.testing.assert_array_equal(again.predictions, whole.predictions)


def test_the_second_press_raises_at_once(monkeypatch):
    played, handler = press_in_blocks(monkeypatch, [2, 2]), signal.getsignal(signal.SIGINT)
    learner = make(okl.PKAWV)
    with pytest.raises(KeyboardInterrupt):
        okl.run(learner, X, Y)
    assert len(played) == 2 and signal.getsignal(signal.SIGINT) is handler
    for call in (learner.predict, lambda X: learner.partial_fit(X, Y)):
        with pytest.raises(RuntimeError, match=r"was interrupted.*call reset\(\)"):
            call(X)
    assert learner.reset().partial_fit(X, Y).rounds == 2000


def test_a_press_while_the_run_waits_for_data_ends_it():
    learner = make(okl.PKAWV)

    def chunks():
        yield X[:500], Y[:500]
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the press comes before this")

    run = okl.run(learner, chunks())
    assert run.interrupted and run.rounds == learner.rounds == 500


@pytest.mark.parametrize("checkpoint", [False, True])
def test_sigterm_ends_a_run_with_a_checkpoint(monkeypatch, tmp_path, checkpoint):
    found = []
    monkeypatch.setattr(signal, "SIGTERM", signal.SIGUSR1)  # not that of this process
    old = signal.signal(signal.SIGUSR1, lambda *_: found.append("the user's own"))
    try:
        press_in_blocks(monkeypatch, [1], signal.SIGUSR1)
        path = tmp_path / "run.npz" if checkpoint else None
        run = okl.run(make(okl.PKAWV), X, Y, checkpoint=path)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert run.interrupted is checkpoint and bool(found) is not checkpoint


def test_after_a_memory_error_in_a_round_the_learner_asks_for_reset(monkeypatch):
    def fail(*shape):
        raise MemoryError

    learner = okl.KernelOGD(okl.Gaussian(1.0), loss="absolute").partial_fit(X[:60], Y[:60])
    with monkeypatch.context() as patched:
        patched.setattr(arrays, "aligned_zeros", fail)
        with pytest.raises(MemoryError):
            learner.partial_fit(X, Y)
    for call in (
        lambda: learner.predict(X),
        lambda: learner.partial_fit(X, Y),
        learner.health,
        lambda: learner.save("learner.npz"),
        lambda: copy.deepcopy(learner),
    ):
        with pytest.raises(RuntimeError, match=r"ran out of memory, in mid-round; call reset\(\)"):
            call()
    assert learner.reset().partial_fit(X, Y).rounds == 2000


@pytest.mark.parametrize("getsignal, error", [(None, TypeError), (signal.getsignal, ValueError)])
def test_signals_of_a_program_that_embeds_python_are_left_alone(
    getsignal, error, monkeypatch, tmp_path
):
    """Handlers in C are None, and cannot be given back; in a thread of C none can be set."""

    def fail(*_):
        raise error

    monkeypatch.setattr(signal, "getsignal", getsignal or (lambda number: None))
    monkeypatch.setattr(signal, "signal", fail)
    assert okl.run(make(okl.PKAWV), X, Y, checkpoint=tmp_path / "run.npz").finished


def test_runs_in_other_threads_leave_signals_alone():
    runs = []
    one = threading.Thread(target=lambda: runs.append(okl.run(make(okl.PKAWV), X, Y)))
    one.start()
    one.join(60)
    assert runs[0].finished


def test_a_run_that_is_killed_goes_on_from_its_checkpoint(tmp_path):
    """Kill -9 at any time: the file is the old one or the new one, never half of one."""
    path, n, every = tmp_path / "run.npz", 200, {"every": 40}
    code = f"""if True:
        import oklnumba as okl
        from tests.test_interrupts import X, Y
        okl.run(okl.SelfTuning(), X[:{n}], Y[:{n}], checkpoint={str(path)!r}, every=40)
    """
    whole = okl.run(okl.SelfTuning(), X[:n], Y[:n], **every)  # large files after round 32
    for rest in (0.0, 0.05):
        before = path.stat().st_mtime_ns if path.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", code])
        while process.poll() is None and (not path.exists() or path.stat().st_mtime_ns == before):
            time.sleep(0.001)
        time.sleep(rest)
        process.kill()
        process.wait()
        part = okl.Run.load(path)
        assert 0 < part.rounds <= n
        np.testing.assert_array_equal(part.predictions, whole.predictions[: part.rounds])
    run = okl.run(okl.SelfTuning(), X[:n], Y[:n], checkpoint=path, **every)
    assert_same_run(run, whole)
