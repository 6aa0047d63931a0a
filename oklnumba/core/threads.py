"""Calls side by side, and calls of one object one after the other.

Compiled loops release the GIL, so learners can play on all cores at once; two calls of one learner
would spoil its buffers, so each has a lock.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

FEWEST_ROUNDS = 16  # for fewer, threads cost more than they bring


class Locked:
    """An object with a lock, which every public call holds that reads or changes what others may.

    The same thread may take it again. What is called inside needs no lock of its own.
    """

    __slots__ = ("_lock",)  # not among ``vars``: no reset removes it, no copy or file has it

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return an object with a lock of its own."""
        made = super().__new__(cls)
        made._lock = threading.RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle takes."""
        with self._lock:
            return vars(self).copy()


def locked(call: Callable) -> Callable:
    """Return a method that holds the lock of its object: one thread at a time is inside."""

    @functools.wraps(call)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return call(self, *args, **kwargs)

    return alone


class _Pool:
    """The threads of this process, made when first needed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.executor: ThreadPoolExecutor | None = None
        self.busy = threading.local()  # .now is True inside a call of ``together``

    def submit(self, work: Callable[[], None]) -> Future:
        """Let a thread of the pool do it."""
        with self.lock:
            if self.executor is None:
                self.executor = ThreadPoolExecutor(cores(), thread_name_prefix="oklnumba")
        # numpy's error state and the like are those of the caller
        return self.executor.submit(contextvars.copy_context().run, work)


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_pool = _Pool()


def renew() -> None:
    """Make a new pool: in a fork the threads of the old one are gone, and its lock may be held."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=renew)


def together(calls: Sequence[Callable[[], object]], rounds: int = FEWEST_ROUNDS) -> None:
    """Make all calls, on as many threads as there are cores; return when all have ended.

    The caller's thread makes some of them. One after the other where there is one core, where the
    rounds are few, and inside another ``together``, so that nothing waits for itself. The calls
    must not share what they change; then the result does not depend on the threads.

    Parameters
    ----------
    calls : sequence of functions without arguments
    rounds : int
        That each call plays.

    Raises
    ------
    BaseException
        What the first in the sequence that failed raised, after all have ended.

    Examples
    --------
    >>> from oklnumba.core.threads import together
    >>> squares = [0, 0, 0]
    >>> together([lambda i=i: squares.__setitem__(i, i * i) for i in range(3)])
    >>> squares
    [0, 1, 4]
    """
    pending = deque(enumerate(calls))
    errors: dict[int, BaseException] = {}
    pool = _pool

    def work() -> None:
        outer = getattr(pool.busy, "now", False)
        pool.busy.now = True
        try:
            while True:
                try:
                    i, call = pending.popleft()
                except IndexError:
                    return
                try:
                    call()
                except BaseException as error:
                    errors[i] = error
        finally:
            pool.busy.now = outer

    alone = getattr(pool.busy, "now", False)
    helpers = 0 if alone or rounds < FEWEST_ROUNDS else min(cores(), len(calls)) - 1
    helping = [pool.submit(work) for _ in range(helpers)]
    work()
    for future in helping:
        if not future.cancel():  # one that has not begun has nothing to do any more
            future.result()
    if errors:
        raise errors[min(errors)]
