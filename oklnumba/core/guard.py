"""Locks, threads, and Ctrl-C."""

import functools
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Concatenate, TypeVar
from weakref import WeakSet

from oklnumba.core.checks import P

S = TypeVar("S")
T = TypeVar("T")
FEWEST_ROUNDS = 64  # for fewer, threads cost more than they bring


def locked(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Make a method hold the lock of its object: one thread at a time is inside."""

    @functools.wraps(method)
    def call_locked(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **kwargs)

    return call_locked


_locked: WeakSet[Any] = WeakSet()  # the objects that have a lock


def new_lock(owner: Any) -> Any:
    """Return a lock for an object, its ``_lock``, which a forked child finds free."""
    _locked.add(owner)
    return threading.RLock()


# ---- Ctrl-C ----


@dataclass
class Presses:
    """How often Ctrl-C was pressed, and whether the run waits for data, when nothing changes."""

    count: int = 0
    waiting: bool = False


@contextmanager
def catch_ctrl_c(terminate: bool = False) -> Iterator[Presses]:
    """Count presses of Ctrl-C; the second, or any while ``waiting``, raises KeyboardInterrupt.

    Works in the main thread only. terminate : count SIGTERM as well.
    """
    presses, handlers = Presses(), {}

    def note(number: int, frame: Any) -> None:
        presses.count += 1
        if presses.count > 1 or presses.waiting:
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM)[: 1 + terminate]:
            if callable(signal.getsignal(number)) or number == signal.SIGTERM:
                handlers[number] = signal.signal(number, note)
    try:
        yield presses
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


# ---- threads ----


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_pool: ThreadPoolExecutor | None = None  # made when first needed
_pool_lock = threading.Lock()
_this = threading.local()  # ``is_inside``: whether this thread is in a call of ``run_chains``


def _forget_threads() -> None:
    """Drop the pool and renew locks that other threads hold: a forked child has none of them.

    An object that such a thread was changing has its fault set, and says that it was interrupted.
    """
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()
    for owner in list(_locked):
        if owner._lock.acquire(blocking=False):
            owner._lock.release()
        else:
            owner._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


Chain = Sequence[Sequence[Callable[[], Any]]]  # phases: calls that do not change the same data


def run_together(calls: Sequence[Callable[[], T]], rounds: int = FEWEST_ROUNDS) -> list[T]:
    """Make calls that do not change the same data, on all cores; return their results."""
    return run_chains([[calls]], rounds)[0]


def run_chains(chains: Sequence[Chain], rounds: int = FEWEST_ROUNDS) -> list[list[Any]]:
    """Make all calls, on as many threads as there are cores; return the results of the last phases.

    A phase begins when the one before has ended. Each thread takes the next call when it has ended
    one, so long calls should come first. With one core, few ``rounds`` per call, or inside another
    ``run_chains``, this thread makes all calls. Then the result does not depend on the threads. A
    chain ends at an error; when all have ended, the first error of the first chain is raised.
    """
    global _pool
    helpers = 0
    if not (getattr(_this, "is_inside", False) or rounds < FEWEST_ROUNDS):
        most = sum(max(map(len, chain)) for chain in chains)  # calls at once
        helpers = min(count_cores(), most) - 1
    if helpers < 1:
        return [[[call() for call in phase] for phase in chain][-1] for chain in chains]
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(count_cores(), "oklnumba")
        pool = _pool
    work, helping = _Work(chains), []
    try:
        with suppress(RuntimeError):  # of a program whose main thread has ended: no help any more
            for _ in range(helpers):  # in the caller's context: numpy's error state is the caller's
                helping.append(pool.submit(copy_context().run, work.make_calls))
        work.make_calls()
    finally:
        work.stop()
        wait([one for one in helping if not one.cancel()])  # those not begun have nothing to do
    if work.errors:
        raise work.errors[min(work.errors)]
    return work.results


class _Work:
    """The calls of chains, which several threads make."""

    def __init__(self, chains: Sequence[Chain]):
        self.results: list[list[Any]] = [[] for _ in chains]
        self.errors: dict[tuple[int, int], BaseException] = {}  # by chain and call
        self._later = [deque(chain) for chain in chains]  # phases that have not begun
        self._left = [0] * len(chains)  # calls of the present phase that have not ended
        self._todo: deque = deque()
        self._changed = threading.Condition(threading.Lock())
        for i in reversed(range(len(chains))):
            self._begin(i)

    def _begin(self, i: int) -> None:
        """Put the next phase of a chain, if none is left of the last one, before other calls."""
        while self._later[i] and self._left[i] == 0:
            calls = self._later[i].popleft()
            self.results[i], self._left[i] = [None] * len(calls), len(calls)
            self._todo.extendleft((i, j, calls[j]) for j in reversed(range(len(calls))))

    def make_calls(self) -> None:
        """Make calls until all have ended."""
        _this.is_inside = True
        try:
            while taken := self._take():
                i, j, call = taken
                try:
                    self.results[i][j] = call()
                except BaseException as error:
                    self.errors[i, j] = error
                    self._later[i].clear()
                self._end(i)
        finally:
            _this.is_inside = False

    def _take(self) -> tuple[int, int, Callable] | None:
        with self._changed:
            while not self._todo and max(self._left) > 0:
                self._changed.wait()
            return self._todo.popleft() if self._todo else None

    def _end(self, i: int) -> None:
        with self._changed:
            self._left[i] -= 1
            self._begin(i)
            if self._todo or max(self._left) <= 0:
                self._changed.notify_all()

    def stop(self) -> None:
        """Let no call begin any more, as after Ctrl-C."""
        with self._changed:
            self._todo.clear()
            self._later, self._left = [deque()] * len(self._left), [0] * len(self._left)
            self._changed.notify_all()
