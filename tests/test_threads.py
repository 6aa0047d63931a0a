"""Calls side by side: all are made, once, errors in order, no deadlock, safe after a fork."""

import copy
import gc
import os
import signal
import sys
import threading
import time
from functools import cache
from unittest.mock import Mock

import numba
import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock

import oklnumba as okl
from oklnumba.core import guard
from oklnumba.core.guard import find_blas, one_blas_thread, run_together
from oklnumba.core.params import clone
from tests.checks import in_child, python, refused


@pytest.fixture(params=[1, 2, 5])
def cores(request, monkeypatch):
    monkeypatch.setattr(guard, "count_cores", lambda: request.param)
    monkeypatch.setattr(guard, "get_pool", cache(guard.get_pool.__wrapped__))
    return request.param


@pytest.mark.parametrize("n", [0, 1, 2, 3, 40])
def test_every_call_is_made_once(cores, n):
    made = []
    run_together([lambda i=i: made.append(i) for i in range(n)])
    assert sorted(made) == list(range(n))


@pytest.mark.parametrize("rounds, overlap", [(guard.FEWEST_ROUNDS, True), (1, False)])
def test_calls_overlap_where_there_are_cores_and_rounds(cores, rounds, overlap):
    """Two calls that wait for each other end only if they run at once."""
    overlap = overlap and cores > 1
    barrier = threading.Barrier(2)
    both = [lambda: barrier.wait(5 if overlap else 0.01)] * 2
    if overlap:
        run_together(both, rounds)
    else:
        with pytest.raises(threading.BrokenBarrierError):
            run_together(both, rounds)


def test_the_first_error_is_raised(cores):
    ended = []

    def call(i):
        time.sleep(0.002 * (5 - i))  # the later ones end first
        ended.append(i)
        if i in (1, 4):
            raise ValueError(f"call {i}")

    refused("call 1", lambda: run_together([lambda i=i: call(i) for i in range(6)]))
    assert sorted(ended) == ([0, 1] if cores == 1 else list(range(6)))  # none is left running
    run_together([lambda: ended.append(6)])
    assert ended[-1] == 6


def test_where_no_thread_can_start_all_calls_end(monkeypatch):
    """Also calls taken by a thread that found them in the queue, after ``submit`` had failed."""
    monkeypatch.setattr(guard, "count_cores", lambda: 2)
    monkeypatch.setattr(guard, "get_pool", cache(guard.get_pool.__wrapped__))
    assert run_together([lambda: 1, lambda: 2]) == [1, 2]  # which starts one thread
    is_busy, is_free = threading.Event(), threading.Event()
    occupy = [lambda: is_busy.set() or is_free.wait(10)] * 2
    other = threading.Thread(target=run_together, args=(occupy,))
    other.start()
    is_busy.wait(10)

    def first():
        is_free.set()
        time.sleep(0.3)
        return 1

    error = RuntimeError("can't start new thread")
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=error))
    assert run_together([first, lambda: time.sleep(0.6) or 2]) == [1, 2]
    other.join(10)


def test_nested_calls_are_serial_and_end(cores):
    names = [[] for _ in range(8)]

    def outer(i):
        run_together([lambda: names[i].append(threading.get_ident())] * 5)

    run_together([lambda i=i: outer(i) for i in range(8)])
    assert all(len(inner) == 5 and len(set(inner)) == 1 for inner in names)


def test_numpy_errors_are_those_of_the_caller(cores):
    if np.lib.NumpyVersion(np.__version__) < "2.2.0":
        pytest.skip("numpy's error state was not in the context then")
    seen = []
    with np.errstate(over="ignore", divide="raise"):
        run_together([lambda: seen.append((np.geterr()["over"], np.geterr()["divide"]))] * 4)
    assert seen == [("ignore", "raise")] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_has_threads_of_its_own():
    run_together([lambda: None] * 3)
    made = []
    calls = [lambda i=i: made.append(i) for i in range(4)]
    assert in_child(lambda: run_together(calls) and sorted(made)) == [0, 1, 2, 3]


# ---- the lock of learners whose rounds are long ----


def test_no_thread_overtakes_the_one_that_waits():
    lock, turns, overtaken, ended = guard.FairLock(), [], [], threading.Event()

    def come_again():
        while not ended.is_set():
            with lock:
                turns.append(sum(range(30_000)))

    thread = threading.Thread(target=come_again)
    thread.start()
    for _ in range(21):
        time.sleep(0.002)
        before = len(turns)
        with lock:
            overtaken.append(len(turns) - before)
    ended.set()
    thread.join()
    assert np.median(overtaken) <= 1  # dozens of an RLock where another core is free


def test_a_learner_around_one_of_long_rounds_has_its_lock():
    long, short = okl.SelfTuning(), okl.Standardized(okl.FOGD())
    around = [
        okl.Lags(long),
        okl.OneVsRest(okl.Intervals(long), [1, 2]),
        okl.Experts([okl.FOGD(loss="squared"), long]),
    ]
    for learner in [long, *around]:
        for one in (learner, copy.deepcopy(learner), clone(learner)):
            assert isinstance(one._lock, guard.FairLock)
    assert not isinstance(short._lock, guard.FairLock)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_an_interrupt_at_any_moment_leaves_the_lock_free():
    lock, handler = guard.FairLock(), signal.signal(signal.SIGALRM, signal.default_int_handler)
    gc.collect()
    gc.disable()  # an interrupt in a callback of the collector is lost: Python only prints it
    try:
        for wait in np.random.default_rng(0).uniform(20e-6, 200e-6, 3000):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, wait)
                while True:
                    with lock, lock:
                        pass
            assert not (lock._is_owned() or lock._door.locked())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_of_the_thread_inside_has_a_lock_without_others():
    learner = okl.SelfTuning()
    with learner._lock:
        thread = threading.Thread(target=learner.predict_one, args=([0.0],))
        thread.start()
        while not learner._lock._door.locked():
            time.sleep(0.001)
        assert in_child(lambda: learner._lock.release() or learner.predict_one([0.0])) == 0.0
    thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_waits_for_another_thread_that_compiles():
    inside = threading.Event()

    def compile_slowly():
        with global_compiler_lock:
            inside.set()
            time.sleep(0.1)

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    inside.wait()
    assert in_child(lambda: numba.njit(lambda x: x + 1)(1)) == 2
    thread.join()


# ---- threads of BLAS ----


def test_limits_reach_the_blas_of_scipy_which_is_loaded_late():
    """oklnumba.core.cholesky calls SciPy's OpenBLAS, not NumPy's."""
    code = """
import oklnumba
from oklnumba.core.guard import one_blas_thread
from threadpoolctl import threadpool_info
with one_blas_thread:
    import scipy.linalg
    print([one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"])
"""
    assert set(python(code)) == {1}


def count_blas_threads():
    return {one["num_threads"] for one in find_blas().info() if one["user_api"] == "blas"}


def test_blas_has_its_threads_again_after_limits_that_overlap():
    """The first to enter leaves first; meanwhile the limit holds for the second."""
    inside, left, seen = threading.Barrier(2), threading.Event(), []

    def play(leaves_first):
        with one_blas_thread:
            inside.wait(5)
            if not leaves_first:
                left.wait(5)
                seen.append(count_blas_threads())
        left.set()

    with find_blas().limit(limits=2, user_api="blas"):
        threads = [threading.Thread(target=play, args=(one,)) for one in (True, False)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert (seen, count_blas_threads()) == ([{1}], {2})


def test_calls_end_where_the_main_thread_has_ended():
    """Python's pools take no calls then."""
    code = """
import threading
from oklnumba.core import guard
guard.count_cores = lambda: 2

def play():
    threading.main_thread().join()
    print(guard.run_together([lambda i=i: i for i in range(3)]))

guard.run_together([int, int])
threading.Thread(target=play).start()
"""
    assert python(code) == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_blas_is_limited_is_not():
    inside, go_on = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread:
            inside.set()
            go_on.wait(20)

    with find_blas().limit(limits=2, user_api="blas"):
        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait(20)
        assert in_child(count_blas_threads) == {2}
        go_on.set()
        thread.join()


@pytest.mark.parametrize("kind, files, cores", [
    ("", {"cpu.max": "max 100000", "a/cpu.max": "15 10", "a/b/cpu.max": "80 10"}, 2),
    ("", {"a/b/cpu.max": "10000 100000"}, 1),
    ("", {"a/b/cpu.max": "max 100000"}, sys.maxsize),
    ("cpu,cpuacct", {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "300000",
                     "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000"}, 3),
    ("cpu,cpuacct", {"cpu,cpuacct/a/b/cpu.cfs_quota_us": "-1",
                     "cpu,cpuacct/a/b/cpu.cfs_period_us": "100000"}, sys.maxsize),
    ("cpu", {"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000",
             "cpu/a/cpu.cfs_quota_us": "900000", "cpu/a/cpu.cfs_period_us": "100000"}, 2),
    ("memory", {"cpu.max": "100000 100000"}, sys.maxsize),
    ("", {}, sys.maxsize),
])  # fmt: skip
def test_cores_are_those_that_a_container_may_use(kind, files, cores, tmp_path):
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(f"{text}\n")
    (tmp_path / "own").write_text(f"3:{kind}:/a/b\n")
    assert guard.count_quota(str(tmp_path / "own"), str(tmp_path / "root")) == cores
    assert guard.count_quota(str(tmp_path / "none"), str(tmp_path / "root")) == sys.maxsize
    assert 1 <= guard.count_cores() <= os.cpu_count()
