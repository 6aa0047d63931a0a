"""Locks, threads, and Ctrl-C."""

import functools
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
FEWEST_ROUNDS = 64  # for fewer, threads cost more than they bring


def locked(method: Callable) -> Callable:
    """Make a method hold the lock of its object: one thread at a time is inside."""

    @functools.wraps(method)
    def call_locked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return call_locked


_locked: WeakSet[Any] = WeakSet()  # the objects that have a lock


def new_lock(owner: Any) -> Any:
    """Return a lock for an object, its ``_lock``, which a forked child finds free."""
    _locked.add(owner)
    return threading.RLock()


def _free_locks() -> None:
    """Renew locks held by other threads: a forked child has none of them.

    An object that such a thread was changing has its fault set, and says that it was interrupted.
    """
    for owner in list(_locked):
        if owner._lock.acquire(blocking=False):
            owner._lock.release()
        else:
            owner._lock = threading.RLock()


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


class _Thread(threading.local):
    """What is known of this thread."""

    is_inside = False  # a call of ``run_together``
    number = 0  # in the pool


_this = _Thread()


def _forget_pool() -> None:
    """Drop the pool: in a forked child its threads are gone, and its lock may be held."""
    global _pool, _pool_lock
    _pool, _pool_lock, _this.number = None, threading.Lock(), 0
    _free_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run_together(calls: Sequence[Callable[[], T]], rounds: int = FEWEST_ROUNDS) -> list[T]:
    """Make all calls, on as many threads as there are cores; return their results.

    Each thread takes the next call when it has ended one, so long calls should come first. With one
    core, few ``rounds`` per call, or inside another ``run_together``, this thread makes all calls.
    Calls must not change the same data; then the result does not depend on the threads. When all
    have ended, the error of the first call that failed is raised.
    """
    global _pool
    alone = _this.is_inside or rounds < FEWEST_ROUNDS
    helpers = 0 if alone else min(count_cores(), len(calls)) - 1
    if helpers < 1:
        return [call() for call in calls]
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(
                count_cores(), "oklnumba", initializer=_number_thread, initargs=(count(1),)
            )
        pool = _pool
    todo, results, errors = deque(enumerate(calls)), {}, {}
    work = functools.partial(_make_calls, todo, results, errors)
    helping: list[Future] = []
    try:
        with suppress(RuntimeError):  # of a program whose main thread has ended: no help any more
            for _ in range(helpers):  # in the caller's context: numpy's error state is the caller's
                helping.append(pool.submit(copy_context().run, work))
        work()
    finally:
        wait([one for one in helping if not one.cancel()])  # those not begun have nothing to do
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(calls))]


def worker() -> int:
    """Return the number of this thread in the pool, 0 for others: calls may share what has it."""
    return _this.number


def _number_thread(numbers: Iterator[int]) -> None:
    _this.number = next(numbers)


def _make_calls(todo: deque, results: dict[int, Any], errors: dict[int, BaseException]) -> None:
    """Make calls until none is left."""
    _this.is_inside = True
    try:
        while todo:
            try:
                number, call = todo.popleft()
            except IndexError:  # another thread was faster
                break
            try:
                results[number] = call()
            except BaseException as error:
                errors[number] = error
    finally:
        _this.is_inside = False
