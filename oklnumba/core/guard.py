"""Locks, threads, and long work in pieces."""

import functools
import operator
import os
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from importlib import import_module
from pathlib import Path
from typing import Any, Concatenate, TypeVar
from weakref import WeakSet

import numpy as np
from threadpoolctl import OpenBLASController, ThreadpoolController

from oklnumba.core.checks import P

S = TypeVar("S")
T = TypeVar("T")
Paced = Generator[None, None, T]  # a work, with its result
FEWEST_ROUNDS = 64  # for fewer, threads cost more than they bring


def locked(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Make a method hold the lock of its object: one thread at a time is inside.

    NumPy's underflows are ignored, as by default, whatever the user has set.
    """

    @functools.wraps(method)
    def call_locked(self: Any, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock, np.errstate(under="ignore"):
            return method(self, *args, **kwargs)

    return call_locked


class FairLock(type(threading.RLock())):  # type: ignore[misc]
    """An RLock that a thread cannot take again before the one that waits for it.

    A plain one takes .5 us less, but a thread that learns row after row takes it again before those
    that wait have woken: they wait for dozens of rounds.
    """

    def __init__(self) -> None:
        self._door = threading.Lock()  # held by the one that waits; those behind it wait here

    @property
    def __enter__(self) -> Callable[[], Any]:  # what ``with`` calls; the first one is of C
        return self.acquire if self._is_owned() else self._enter_in_turn

    def _enter_in_turn(self) -> None:
        try:
            with self._door:
                self.acquire()
        except BaseException:  # Ctrl-C, perhaps after it was taken
            if self._is_owned():
                self.release()
            raise


_locked: WeakSet[Any] = WeakSet()  # the objects that have a lock


def new_lock(owner: Any, in_turn: bool = False) -> Any:
    """Return a lock for an object, its ``_lock``, which a forked child finds free."""
    _locked.add(owner)
    return FairLock() if in_turn else threading.RLock()


# ---- threads ----


def count_cores() -> int:
    """Return the number of cores that this process may use, by its affinity and its cgroups."""
    affine = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if affine else os.cpu_count() or 1
    return min(cores, count_quota("/proc/self/cgroup", "/sys/fs/cgroup"))


@functools.cache
def count_quota(own: str, root: str) -> int:
    """Return the cores that the cgroups of Linux grant, as a container has them."""
    quotas = [sys.maxsize]
    with suppress(OSError, ValueError):
        for line in Path(own).read_text().splitlines():
            kind, path = line.split(":", 2)[1:]  # kind is "" of version 2
            here = Path(root, kind, path.lstrip("/"))
            for folder in (here, *here.parents):
                with suppress(OSError, ValueError):  # none here, or "max"
                    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if kind else ("cpu.max",)
                    text = " ".join((folder / name).read_text() for name in names)
                    quota, period = map(int, text.split())
                    quotas += [max(1, -(-quota // period))] if quota > 0 else []
    return min(quotas)


_is_inside = ContextVar("is_inside", default=False)  # a call of ``run_together``


def _forget_threads() -> None:
    """Drop the pool and renew what other threads hold: a forked child has none of them.

    An object that such a thread was changing has its fault set, and says that it was interrupted.
    """
    get_pool.cache_clear()
    for owner in list(_locked):
        lock = owner._lock
        if lock._is_owned():  # by the thread that forked
            lock.__init__()  # a door that no other holds
        else:
            owner._lock = type(lock)()
    one_blas_thread.leave_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def run_together(calls: Sequence[Callable[[], T]], rounds: int = FEWEST_ROUNDS) -> list[T]:
    """Make calls that do not change the same data, on all cores; return their results.

    Each thread takes the next call when it has ended one, so long calls should come first. With one
    core, few ``rounds`` per call, or inside another ``run_together``, this thread makes all calls;
    no result depends on the threads. When all have ended, the first error is raised.
    """
    alone = rounds < FEWEST_ROUNDS or len(calls) < 2 or _is_inside.get()
    helpers = 0 if alone else min(count_cores(), len(calls)) - 1
    if helpers < 1:
        return list(map(operator.call, calls))
    results: list[Any] = [None] * len(calls)
    errors: dict[int, BaseException] = {}
    waiting = iter(enumerate(calls))  # next() on it is atomic

    def make_calls() -> None:
        for i, call in waiting:
            try:
                results[i] = call()
            except BaseException as error:
                errors[i] = error

    def help_out(ticket: Future) -> None:
        if ticket.set_running_or_notify_cancel():  # not cancelled while this waited in the queue
            try:
                make_calls()
            finally:
                ticket.set_result(None)

    before = _is_inside.set(True)
    helping: list[Future] = []
    try:
        # ``submit`` fails after the main thread, or where no thread can start: the call may wait.
        with suppress(RuntimeError):
            for _ in range(helpers):  # in the caller's context: numpy's error state is the caller's
                ticket: Future = Future()
                helping.append(ticket)
                get_pool().submit(copy_context().run, help_out, ticket)
        make_calls()
    finally:
        _is_inside.reset(before)
        list(waiting)  # none, or those that Ctrl-C leaves: they are not made
        wait([one for one in helping if not one.cancel()])  # those not begun have nothing to do
    if errors:
        raise errors[min(errors)]
    return results


@functools.cache
def get_pool() -> ThreadPoolExecutor:
    """Return the threads of this process."""
    return ThreadPoolExecutor(count_cores(), "oklnumba")


# ---- threads of BLAS ----


@functools.cache
def find_blas() -> ThreadpoolController:
    """Return the BLAS libraries; SciPy's must be loaded by now, or its threads are not limited."""
    import_module("scipy.linalg")
    return ThreadpoolController()


# Of threadpoolctl from 3.8 on: the thread that set OpenBLAS's limit last is the only one that may.
_let_all_set = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)


class _OneThread:
    """A context in which BLAS uses one thread, until all threads of this process have left it.

    A limit of threadpoolctl would restore at its end what it found, which may be another's limit.
    """

    def __init__(self):
        self._lock, self._inside = new_lock(self), 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                _let_all_set(force=True)
                self._limit = find_blas().limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside = max(self._inside - 1, 0)
            if self._inside == 0:
                _let_all_set(force=True)
                self._limit.restore_original_limits()
                _let_all_set(force=True)

    def leave_all(self) -> None:
        """Leave it for the threads that a forked child does not have."""
        if self._inside:
            self._inside = 1
            self.__exit__()


one_blas_thread = _OneThread()


# ---- long work in small pieces, between which rounds may be played ----


def finish(work: Paced[T]) -> T:
    """Do all that is left of a work in one go; return the result."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
