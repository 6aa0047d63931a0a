"""Interrupts at any step of Python: the learner has played a round, or it has not.

A trace function raises SIGINT at the k-th bytecode instruction of the package, so that every place
at which Python may run a handler is tried, and always the same one. What is left must be, to the
bit, a learner that has played as many rounds undisturbed. Real signals at random moments, to
processes of their own, are at the end.
"""

import contextlib
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import oklnumba as okl
from oklnumba.core.guard import HOLD
from oklnumba.learners.base.learner import Learner
from oklnumba.protocol import run as protocol
from tests.battery import contents, make, stream
from tests.stress.players import PLAYERS, data

PACKAGE = str(Path(okl.__file__).parent)
every_player = pytest.mark.parametrize("name", PLAYERS)
START, MORE = 70, 40  # rounds before, and in the call that is interrupted


class AtStep:
    """Raises SIGINT, so many times at once, before the k-th instruction of the package."""

    def __init__(self, k, times=1, number=signal.SIGINT):
        self.k, self.times, self.number, self.steps = k, times, number, 0

    def trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.steps += 1
            if self.steps == self.k:
                for _ in range(self.times):
                    signal.raise_signal(self.number)
        return self.trace

    def call(self, function):
        """Make the call; return what it returned and whether KeyboardInterrupt came of it."""
        old = sys.gettrace()
        sys.settrace(self.trace)
        try:
            return function(), False
        except KeyboardInterrupt:
            return None, True
        finally:
            sys.settrace(old)


@pytest.fixture(autouse=True)
def the_usual_handler():
    assert threading.current_thread() is threading.main_thread()
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert HOLD.depth == 0
    signal.signal(signal.SIGINT, old)


def begun(name):
    one = PLAYERS[name]()
    X, y = data(one, START + MORE)
    return one.partial_fit(X[:START], y[:START]), X, y


CALLS = {
    "learn_one": lambda one, X, y: one.learn_one(X[START], y[START]),
    "partial_fit": lambda one, X, y: one.partial_fit(X[START:], y[START:]),
    "predict": lambda one, X, y: one.predict(X[:3]),
    "reset": lambda one, X, y: one.reset(),
}


def places(steps, count, seed):
    """Return so many numbers of steps, or all."""
    if count >= steps:
        return range(1, steps + 1)
    return np.random.default_rng(seed).integers(1, steps + 1, count).tolist()


def forecasts(one, X):
    """Return forecasts, None where there are none before any data."""
    return one.predict(X) if isinstance(one, Learner) or one.rounds else None


@pytest.mark.parametrize("call", CALLS)
@every_player
def test_a_call_has_been_made_or_not(name, call, tries):
    """Ctrl-C at any step of a call; the interrupt comes in any case, and the next call works."""
    CALLS[call](*begun(name))  # what is made once takes steps of its own
    one, X, y = begun(name)
    before = contents(one)
    counting = AtStep(0)
    counting.call(lambda: CALLS[call](one, X, y))
    after, expected = contents(one), forecasts(one, X[:5])
    for k in places(counting.steps, tries(3, 60), seed=len(name)):
        one, X, y = begun(name)
        at = AtStep(k)
        _, came = at.call(lambda: CALLS[call](one, X, y))  # noqa: B023
        if at.steps < k:  # fewer than before: what is made once was there already
            continue
        assert came
        assert contents(one) in (before, after), k
        if contents(one) == before:
            CALLS[call](one, X, y)
        np.testing.assert_array_equal(forecasts(one, X[:5]), expected)


@pytest.mark.parametrize("name", ["OGD", "KRLS"])
def test_learn_one_at_every_step(name, tries):
    one, X, y = begun(name)
    before = contents(one)
    counting = AtStep(0)
    counting.call(lambda: one.learn_one(X[START], y[START]))
    after = contents(one)
    one.reset()
    for k in range(1, counting.steps + 1, tries(5, 1)):
        one.reset().partial_fit(X[:START], y[:START])
        _, came = AtStep(k).call(lambda: one.learn_one(X[START], y[START]))
        assert came and contents(one) in (before, after)


@every_player
def test_a_run_returns_what_it_has(name, tries):
    """The first Ctrl-C ends it after the block; learner, rounds and forecasts agree."""
    make_one = PLAYERS[name]
    X, y = data(make_one(), 200)
    okl.run(make_one(), X, y, every=50)
    counting, one = AtStep(0), make_one()
    whole, _ = counting.call(lambda: okl.run(one, X, y, every=50))
    for k in places(counting.steps, tries(2, 40), seed=1):
        one = make_one()
        run, came = AtStep(k).call(lambda: okl.run(one, X, y, every=50))  # noqa: B023
        if came:  # before its first step, or after its last
            assert one.rounds in (0, len(y))
            continue
        assert run.rounds == one.rounds
        assert run.finished != run.interrupted
        assert ("interrupted" in repr(run)) == run.interrupted
        twin = make_one()
        if run.rounds:  # before, MultiOutput knows of no outputs
            np.testing.assert_array_equal(run.predictions, whole.predictions[: run.rounds])
            okl.run(twin, X[: run.rounds], y[: run.rounds], every=50)
        assert contents(one) == contents(twin)


def in_play(monkeypatch, cls, times, number=signal.SIGINT, after=100):
    """Let signals come in mid-round: after the compiled loop, before the rounds are counted."""
    played = cls._play

    def play(self, X, y, trace):
        played(self, X, y, trace)
        if self.rounds >= after:
            for _ in range(times):
                signal.raise_signal(number)

    monkeypatch.setattr(cls, "_play", play)


def test_the_second_raises_when_everything_agrees(monkeypatch):
    X, y = stream(make(okl.KRLS), 400)
    one = make(okl.KRLS)
    with monkeypatch.context() as patch:
        in_play(patch, okl.KRLS, 2)
        with pytest.raises(KeyboardInterrupt):
            okl.run(one, X, y)
    twin = make(okl.KRLS)
    okl.run(twin, X[: one.rounds], y[: one.rounds])
    assert contents(one) == contents(twin)
    okl.run(one, X[one.rounds :], y[one.rounds :])


def test_the_third_comes_at_once_and_marks_the_learner(monkeypatch, tmp_path):
    X, y = stream(make(okl.KRLS), 400)
    one = make(okl.KRLS)
    with monkeypatch.context() as patch:
        in_play(patch, okl.KRLS, 3)
        with pytest.raises(KeyboardInterrupt):
            okl.run(one, X, y)
    for call in (
        lambda: one.predict(X),
        lambda: one.predict_one(X[0]),
        lambda: one.learn_one(X[0], y[0]),
        lambda: okl.run(one, X, y),
    ):
        with pytest.raises(RuntimeError, match=r"no longer whole: KeyboardInterrupt.*reset\(\)"):
            call()
    one.save(tmp_path / "one.npz")
    with pytest.raises(RuntimeError, match="no longer whole"):
        okl.load(tmp_path / "one.npz").predict(X)
    assert okl.run(one.reset(), X, y).finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_checkpoint_is_written(number, monkeypatch, tmp_path):
    """SIGTERM is held back where there is a checkpoint, from which the run goes on."""
    X, y = stream(make(okl.KRLS), 400)
    expected, path, one = okl.run(make(okl.KRLS), X, y), tmp_path / "run.npz", make(okl.KRLS)
    with monkeypatch.context() as patch:
        in_play(patch, okl.KRLS, 1, number)
        run = okl.run(one, X, y, checkpoint=path)
    assert run.interrupted and not run.finished and run.rounds == one.rounds < 400
    assert okl.Run.load(path).interrupted
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    got = okl.run(one.reset(), X, y, checkpoint=path)
    assert got.finished and not got.interrupted
    np.testing.assert_array_equal(got.predictions, expected.predictions)


def test_while_a_run_waits_for_its_data():
    X, y = stream(make(okl.KRLS), 100)

    def pieces():
        yield X, y
        signal.raise_signal(signal.SIGINT)
        yield X, y

    run = okl.run(make(okl.KRLS), pieces())
    assert run.interrupted and run.rounds == 100

    def broken():
        yield X, y
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # the data's own, not a signal
        okl.run(make(okl.KRLS), broken())


@every_player
def test_before_the_first_round(name, tmp_path):
    """The run has no rounds then, and can be shown, saved and gone on with."""
    one, path = PLAYERS[name](), tmp_path / "run.npz"
    X, y = data(one, 60)

    def pieces():
        if not stopped:
            stopped.append(True)
            signal.raise_signal(signal.SIGINT)
        yield X, y

    stopped = []
    run = okl.run(one, pieces(), checkpoint=path)
    assert run.interrupted and not run.finished and run.rounds == one.rounds == 0
    assert "interrupted" in repr(run) and len(run.predictions) == len(run.sizes) == 0
    run.save(tmp_path / "again.npz")
    assert okl.Run.load(tmp_path / "again.npz").rounds == 0
    got, expected = okl.run(one, pieces(), checkpoint=path), okl.run(PLAYERS[name](), X, y)
    assert got.finished
    np.testing.assert_array_equal(got.predictions, expected.predictions)


def test_a_sweep_stops_as_a_whole(monkeypatch, tmp_path):
    X, y = stream(make(okl.KRLS), 200)
    in_play(monkeypatch, okl.KRLS, 1)
    learners = {"one": make(okl.KRLS), "two": make(okl.KRLS)}
    with pytest.raises(KeyboardInterrupt):
        okl.sweep(learners, {"data": (X, y)}, n_jobs=1, path=tmp_path)
    assert not list(tmp_path.iterdir())


def test_handlers_that_are_not_ours_stay():
    """One that is no function of Python is left as it is: nothing can be passed on to it."""
    X, y = stream(make(okl.OGD), 20)
    for old in (signal.SIG_IGN, signal.SIG_DFL):
        signal.signal(signal.SIGINT, old)
        okl.run(make(okl.OGD).partial_fit(X, y), X, y)
        assert signal.getsignal(signal.SIGINT) == old
    signal.signal(signal.SIGINT, signal.default_int_handler)
    done = []
    other = threading.Thread(target=lambda: done.append(okl.run(make(okl.OGD), X, y)))
    other.start()
    other.join()
    assert done[0].finished


def test_samplers_hold_back_too():
    X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    counting = AtStep(0)
    counting.call(lambda: okl.KORS(okl.Gaussian(0.3)).partial_fit(X))
    whole = okl.KORS(okl.Gaussian(0.3)).partial_fit(X)
    for k in places(counting.steps, 40, seed=3):
        one = okl.KORS(okl.Gaussian(0.3))
        AtStep(k).call(lambda: one.partial_fit(X))  # noqa: B023
        assert not one._fault
        if one._fitted().get("points seen") != 60:
            one.partial_fit(X)
        np.testing.assert_array_equal(one.indices_, whole.indices_)


CHILD = """
import os, random, signal, sys, threading, time
import numpy as np
import oklnumba as okl
from tests.battery import contents
from tests.stress.players import PLAYERS, data

count, seed = int(sys.argv[1]), int(sys.argv[2])
names = random.Random(seed).sample(sorted(PLAYERS), len(PLAYERS))
came = caught = 0
for i in range(count):
    name = names[i % len(names)]
    one, twin = PLAYERS[name](), PLAYERS[name]()
    X, y = data(one, 2000)
    one.partial_fit(X[:100], y[:100])
    begin = time.perf_counter()
    twin.partial_fit(X[:100], y[:100])
    wait = 5 * (time.perf_counter() - begin) * random.Random(seed + i).random()
    def kill():
        time.sleep(wait)
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=kill)
    try:
        sender.start()
        for start in range(100, 2000, 50):
            one.partial_fit(X[start : start + 50], y[start : start + 50])
        sender.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        caught += 1
    assert one._fault is None
    for start in range(100, one.rounds, 50):
        twin.partial_fit(X[start : start + 50], y[start : start + 50])
    assert one.rounds == twin.rounds, name
    assert contents(one) == contents(twin), name
assert caught == count, (caught, count)
print(caught)
"""


STOPPED = """
import os, random, signal, sys, tempfile, threading, time
import numpy as np
import oklnumba as okl
from tests.battery import contents
from tests.stress.players import PLAYERS, data

count, seed = int(sys.argv[1]), int(sys.argv[2])
names = random.Random(seed).sample(sorted(PLAYERS), len(PLAYERS))
stops = done = 0
while stops < count:
    name = names[done % len(names)]
    one, path = PLAYERS[name](), os.path.join(tempfile.mkdtemp(), "run.npz")
    X, y = data(one, 1500)
    okl.run(PLAYERS[name](), X[:100], y[:100])
    begin = time.perf_counter()
    whole = okl.run(one, X, y, every=100)
    seconds, end = time.perf_counter() - begin, contents(one)
    run = None
    while run is None or not run.finished:
        wait = seconds * random.Random(seed + stops).random()
        number = random.Random(seed + stops).choice([signal.SIGINT, signal.SIGTERM])
        ended = threading.Event()
        def kill():
            time.sleep(wait)
            if not ended.is_set():
                os.kill(os.getpid(), number)
        sender = threading.Thread(target=kill)
        held = signal.signal(signal.SIGTERM, lambda *_: None)  # where it comes after the run
        try:
            sender.start()
            run = okl.run(one.reset(), X, y, checkpoint=path, every=100)
            ended.set()
            sender.join()
        except KeyboardInterrupt:  # after the run
            sender.join()
            run = okl.Run.load(path) if os.path.exists(path) else None
        signal.signal(signal.SIGTERM, held)
        stops += run is not None and run.interrupted
        assert run is None or run.finished != run.interrupted
    assert contents(one) == end, name
    np.testing.assert_array_equal(run.predictions, whole.predictions)
    np.testing.assert_array_equal(run.sizes, whole.sizes)
    done += 1
print(stops)
"""


def told(script, count):
    """Return what a process says that was told to send itself so many signals."""
    asked = [sys.executable, "-c", script, str(count), "0"]
    answer = subprocess.run(asked, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return int(answer.stdout)


def test_real_signals_at_random_moments(tries):
    count = tries(4, 50)
    assert told(CHILD, count) == count


def test_runs_that_signals_end_again_and_again(tries):
    """SIGINT or SIGTERM; from its checkpoint each goes on to the bits of the run in one go."""
    assert told(STOPPED, tries(2, 50)) >= tries(2, 50)


class Came(list):
    """Signals of which the first comes right before the k-th look at them."""

    def __init__(self, k):
        self.k, self.looks = k, 0

    def __bool__(self):
        self.looks += 1
        return self.looks >= self.k


def test_a_signal_before_any_look_ends_a_run_or_does_not(monkeypatch):
    X, y = np.random.default_rng(0).uniform(-1, 1, (200, 2)), np.ones(200)

    def play(k):
        came = Came(k)
        stop = contextlib.nullcontext(SimpleNamespace(came=came, open=False))
        monkeypatch.setattr(protocol, "Stop", lambda terminate: stop)
        return okl.run(okl.OGD(), X, y), came.looks

    whole, looks = play(10**9)
    assert whole.finished and not whole.interrupted and looks > 3
    for k in range(1, looks + 1):
        run, _ = play(k)
        assert run.finished != run.interrupted, k
