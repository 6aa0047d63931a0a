"""Ctrl-C, SIGTERM and kill -9: what ends a run, what is left of it, and that it goes on."""

import copy
import multiprocessing
import signal
import sys
import threading
from unittest.mock import Mock

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core import arrays, files
from tests.battery import assert_same_run, contents, make, stream
from tests.checks import raises

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
        raises(RuntimeError, r"was interrupted.*call reset\(\)", call, X)
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
    learner = okl.KernelOGD(okl.Gaussian(1.0), loss="absolute").partial_fit(X[:60], Y[:60])
    with monkeypatch.context() as patched:
        patched.setattr(arrays, "aligned_zeros", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            learner.partial_fit(X, Y)
    for call in (
        lambda: learner.predict(X),
        lambda: learner.partial_fit(X, Y),
        learner.health,
        lambda: learner.save("learner.npz"),
        lambda: copy.deepcopy(learner),
    ):
        raises(RuntimeError, r"ran out of memory, in mid-round; call reset\(\)", call)
    assert learner.reset().partial_fit(X, Y).rounds == 2000


@pytest.mark.parametrize("around", [okl.Intervals, okl.MultiOutput])
def test_after_it_a_wrapper_has_no_importance(around, monkeypatch):
    learner, y = around(okl.SelfTuning(5)), np.stack([Y, -Y], axis=1)
    y = y if around is okl.MultiOutput else Y
    learner.partial_fit(X[:60], y[:60])
    with monkeypatch.context() as patched:
        patched.setattr(okl.SelfTuning, "_play", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            learner.partial_fit(X, y)
    raises(RuntimeError, r"in mid-round; call reset\(\)", lambda: learner.importance)


@pytest.mark.parametrize("getsignal, error", [(None, TypeError), (signal.getsignal, ValueError)])
def test_signals_of_a_program_that_embeds_python_are_left_alone(
    getsignal, error, monkeypatch, tmp_path
):
    """Handlers in C are None, and cannot be given back; in a thread of C none can be set."""
    monkeypatch.setattr(signal, "getsignal", getsignal or (lambda number: None))
    monkeypatch.setattr(signal, "signal", Mock(side_effect=error))
    assert okl.run(make(okl.PKAWV), X, Y, checkpoint=tmp_path / "run.npz").finished


def test_runs_in_other_threads_leave_signals_alone():
    runs = []
    one = threading.Thread(target=lambda: runs.append(okl.run(make(okl.PKAWV), X, Y)))
    one.start()
    one.join(60)
    assert runs[0].finished


KILLED = {  # rounds between two saves
    okl.PKAWV: 40,
    okl.BOGD: 40,  # coins
    okl.SelfTuning: 300,
}


def kill_while_saving(play, folder):
    """Play in a forked child, and kill it when it has begun to write a file."""
    child = multiprocessing.get_context("fork").Process(target=play)
    child.start()
    while child.exitcode is None and not list(folder.glob(".oklnumba-*.part")):
        pass
    child.kill()
    child.join()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:the run of .* was stopped before")
@pytest.mark.parametrize("cls", KILLED)
def test_kill_while_saving_leaves_the_old_file_or_the_new(cls, tmp_path):
    """Kill -9: what comes after has the bytes of what was never stopped."""
    every, path, file = KILLED[cls], tmp_path / "run.npz", tmp_path / "learner.npz"
    X, y = stream(make(cls), 4 * every)
    whole, expected, states = make(cls), okl.run(make(cls), X, y, every=every), []
    for start in range(0, len(y), every):
        states.append(
            contents(whole.partial_fit(X[start : start + every], y[start : start + every]))
        )

    def save():
        learner = okl.load(file) if file.exists() else make(cls)
        for start in range(learner.rounds, len(y), every):
            learner.partial_fit(X[start : start + every], y[start : start + every])
            learner.save(file)

    for _ in range(10):
        kill_while_saving(lambda: okl.run(make(cls), X, y, checkpoint=path, every=every), tmp_path)
        if path.exists():
            part = okl.Run.load(path)
            assert part.rounds % every == 0
            np.testing.assert_array_equal(part.predictions, expected.predictions[: part.rounds])
        kill_while_saving(save, tmp_path)
        assert not file.exists() or contents(okl.load(file)) in states
    learner = make(cls)
    assert_same_run(okl.run(learner, X, y, checkpoint=path, every=every), expected)
    save()
    assert contents(learner) == contents(okl.load(file)) == states[-1]
    files.remove_leftovers.cache_clear()
    learner.save(file)
    assert {one.name for one in tmp_path.iterdir()} == {"run.npz", "learner.npz"}


def test_a_run_killed_before_its_first_checkpoint_says_that_it_begins_anew(tmp_path, monkeypatch):
    path, play = tmp_path / "run.npz", okl.PKAWV._play
    monkeypatch.setattr(okl.PKAWV, "_play", Mock(side_effect=OSError("killed")))
    raises(OSError, "killed", okl.run, make(okl.PKAWV), X, Y, checkpoint=path)
    monkeypatch.setattr(okl.PKAWV, "_play", play)
    with pytest.warns(UserWarning, match="run.npz was stopped before its first checkpoint and beg"):
        run = okl.run(make(okl.PKAWV), X, Y, checkpoint=path)
    assert_same_run(run, okl.run(make(okl.PKAWV), X, Y))
    assert_same_run(okl.run(make(okl.PKAWV), X, Y, checkpoint=path), run)  # without a warning
