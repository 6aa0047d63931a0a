"""Locks, threads, and Ctrl-C."""

import contextvars
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

FEWEST_ROUNDS = 16  # for fewer, threads cost more than they bring


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
_inside = threading.local()  # .now is True in a call of ``run_together``


def _forget_pool() -> None:
    """Drop the pool: in a forked child its threads are gone, and its lock may be held."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()
    _free_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run_together(calls: Sequence[Callable[[], object]], rounds: int = FEWEST_ROUNDS) -> None:
    """Make all calls, on as many threads as there are cores; return when all have ended.

    With one core, few ``rounds`` per call, or inside another ``run_together``, the calls are made
    one after the other. Calls must not change the same data; then the result does not depend on the
    threads. The error of the first call that failed is raised.
    """
    global _pool
    alone = getattr(_inside, "now", False) or rounds < FEWEST_ROUNDS
    if alone or len(calls) < 2 or count_cores() < 2:
        for call in calls:
            call()
        return
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(count_cores(), thread_name_prefix="oklnumba")
        pool = _pool
    # Each in the caller's context: numpy's error state and the like are the caller's.
    tasks = [pool.submit(contextvars.copy_context().run, _call_inside, call) for call in calls]
    for error in [task.exception() for task in tasks]:
        if error is not None:
            raise error


def _call_inside(call: Callable[[], object]) -> object:
    _inside.now = True
    try:
        return call()
    finally:
        _inside.now = False
