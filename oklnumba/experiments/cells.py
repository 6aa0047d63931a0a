"""The cells of a sweep: what each is, how it is played and kept, and playing many side by side."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pickle
import platform
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from signal import SIGINT
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from oklnumba.core import checks, inputs
from oklnumba.core.files import read_npz, write_npz
from oklnumba.core.guard import FROM_ABOVE, HOLD
from oklnumba.core.params import anew, to_spec
from oklnumba.core.threads import cores
from oklnumba.experiments.resident import Peak
from oklnumba.learners.base.player import Player
from oklnumba.protocol.run import run
from oklnumba.protocol.runs import Run

FIRST_ROWS = 64  # rounds that compile a learner's loops before anything runs side by side
TIMED_ROWS = 1500  # rounds that do before cells are timed: dictionaries of usual size are full
TIMED_SECONDS = 5.0  # and for how long at most: 15,000 features take minutes

Measure = Callable[[Player, Run], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Stream:
    """Inputs and labels by name, and the kernel that goes with them."""

    name: str
    X: np.ndarray
    y: np.ndarray
    kernel: Any

    @functools.cached_property
    def digest(self) -> str:
        """What tells the data from others, in the keys of cells that are kept."""
        told = [self.X.shape, self.y.shape, str(self.y.dtype)]
        return _digest(told, {"X": self.X, "y": self.y})


class Cell(NamedTuple):
    """One run: a fresh learner on a stream, in the order given (None) or permuted by a seed."""

    stream: Stream
    player: Player | None
    order: int | None
    head: dict[str, Any]  # the columns that are known beforehand; "error" where none was made


class Options(NamedTuple):
    """What all cells share: keywords of ``okl.run``, more columns, and where cells are kept."""

    of_run: dict[str, Any]
    measure: Measure | None
    path: Path | None


def stream_of(name: str, X: Any, y: Any, kernel: Any) -> Stream:
    """Return a stream of checked inputs; the labels are for the learner to check."""
    X, labels = inputs.as_inputs(X), inputs.as_label_array(y)
    if len(labels.shape) == 0 or len(labels) != len(X):
        raise ValueError(
            f"data {name!r}: y must have a label for each of the {len(X)} rows of X, but is "
            f"{checks.shown(y)}"
        )
    return Stream(name, X, labels, kernel)


@functools.cache
def installed() -> str:
    """Return the versions that numbers depend on, in one line."""
    told = []
    for name in ("oklnumba", "numba", "numpy"):
        try:
            told.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # a tree that was not installed
            told.append(f"{name} ?")
    return ", ".join([*told, f"Python {platform.python_version()}"])


# ---- playing one ----


def state_bytes(player: Player) -> int:
    """Return the bytes of a learner and its state as it is pickled."""
    parts: list[pickle.PickleBuffer] = []
    head = pickle.dumps(player, protocol=5, buffer_callback=parts.append)
    return len(head) + sum(part.raw().nbytes for part in parts)


def play(
    player: Player,
    X: np.ndarray,
    y: np.ndarray,
    order: int | None,
    of_run: dict[str, Any],
    measure: Measure | None,
) -> dict[str, Any]:
    """Return the measured columns of a run, or its error."""
    try:
        if order is not None:
            rows = np.random.default_rng(order).permutation(len(X))
            X, y = X[rows], y[rows]
        player = anew(player)  # so that what it learns goes when the cell ends
        with Peak() as peak:
            done = run(player, X, y, **of_run)
        if done.interrupted:  # Ctrl-C is for the whole sweep
            raise KeyboardInterrupt
        return measured(player, done, measure) | {"peak": peak.rise}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def measured(player: Player, done: Run, measure: Measure | None) -> dict[str, Any]:
    """Return the columns of a run."""
    size = int(done.sizes.max()) if done.rounds else 0  # after a restart it may be small
    rate = done.mistake_rate
    losses = done.losses if len(done.recorded) == done.rounds else done.loss_sums[-1:]
    more = measure(player, done) if measure else {}
    for name, value in more.items():
        if isinstance(value, Run):  # without its data, a permutation of its own: files have none
            more[name] = value.without_data()
    return {
        "n": done.rounds,
        "loss": done.loss,
        "mean_loss": done.mean_loss,
        "mistakes": rate,
        "size": int(getattr(player, "sketch_size", size)),
        "seconds": done.seconds,
        "memory": state_bytes(player),
        "finished": done.finished,
        "total_loss": float(losses.sum()),
        "versions": installed(),
        "error": "",
    } | more


def here() -> str:
    """Return what names this process among those of all machines."""
    return f"{platform.node()} {os.getpid()}"


def numbered(
    i: int, home: str, came: list[int], playing: set[int], task: tuple
) -> tuple[int, dict[str, Any] | None]:
    """Play a task, perhaps in another process, where BLAS then keeps to one thread too.

    In a thread of this process it is among ``playing`` meanwhile, and ends after its block when a
    signal stands in ``came``. None is left where it was interrupted: joblib's threads know no such
    end, and would leave whoever waits for them waiting.
    """
    if here() != home:
        threadpool_limits(1)
    elif threading.current_thread() is not threading.main_thread():
        context = copy_context()
        context.run(FROM_ABOVE.set, came)
        playing.add(i)
        try:
            return i, None if came else context.run(play, *task)
        except KeyboardInterrupt:
            return i, None
        finally:
            playing.remove(i)
    return i, play(*task)


# ---- keeping them ----


def _digest(told: Any, arrays: dict[str, np.ndarray]) -> str:
    out = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    for name, array in arrays.items():
        out.update(name.encode())
        out.update(np.ascontiguousarray(array).tobytes())
    return out.hexdigest()


def _code(measure: Measure | None) -> list[str]:
    """Return what tells a function from another, or from itself before it was edited."""
    code = getattr(measure, "__code__", None)
    if code is None:
        return [repr(type(measure))]
    constants = [repr(c) for c in code.co_consts if not hasattr(c, "co_code")]
    return [code.co_name, code.co_code.hex(), *code.co_names, *constants]


def key(cell: Cell, options: Options) -> str:
    """Return the digest of all that the numbers of a cell depend on."""
    arrays: dict[str, np.ndarray] = {}
    spec = to_spec(cell.player, arrays)
    told = [spec, cell.stream.digest, cell.order, options.of_run, _code(options.measure)]
    return _digest([*told, installed()], arrays)


def key_of_best(stream: Stream, loss: str, lam: float) -> str:
    """Return the digest of all that the best function of a stream depends on."""
    arrays: dict[str, np.ndarray] = {}
    spec = to_spec(stream.kernel, arrays)
    return _digest(["best", spec, stream.digest, loss, lam, installed()], arrays)


def kept(path: Path, what: str) -> dict[str, Any] | None:
    """Return what a finished cell left in the folder; None where there is none, or a damaged one.

    Parameters
    ----------
    path : Path
    what : str
        Its key.
    """
    try:
        found = read_npz(path / f"{what}.npz")[0]["cell"]
        return {name: Run.load(path / cell["run"]) if isinstance(cell, dict) else cell
                for name, cell in found.items()}  # fmt: skip
    except (FileNotFoundError, ValueError, KeyError, AttributeError):
        return None


def keep(path: Path, what: str, found: dict[str, Any]) -> None:
    """Write a finished cell, whole or not at all; Runs among its columns before it."""
    cell = dict(found)
    for i, (name, value) in enumerate(found.items()):
        if isinstance(value, Run):
            cell[name] = {"run": f"{what} {i}.npz"}
            value.save(path / cell[name]["run"])
    write_npz(path / f"{what}.npz", {"cell": cell}, {})


# ---- playing many ----


def checked_where(backend: Any, n_jobs: Any) -> tuple[str | None, int | None]:
    """Return joblib's backend and the number of cells side by side; ValueError if not valid."""
    if backend is not None:
        known = "the name of a backend of joblib, such as 'loky', or None"
        checks.require_instance("backend", backend, str, known)
    if n_jobs is not None and checks.as_number(n_jobs) != -1:  # -1: all cores, as joblib has it
        n_jobs = checks.require_count("n_jobs", n_jobs, 1)
    if (backend is not None or n_jobs not in (None, 1)) and not _has_joblib():
        raise ImportError(
            f"backend={backend!r} with n_jobs={n_jobs} needs joblib: pip install oklnumba[sweep]; "
            "without either, cells are played one after another"
        )
    return backend, n_jobs


def _has_joblib() -> bool:
    try:
        import joblib  # noqa: F401
    except ImportError:
        return False
    return True


def results(
    tasks: Sequence[tuple], backend: str | None, n_jobs: int | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each task and what it left, in the order in which they end.

    By joblib, in threads of this process unless a backend is named or set by its
    ``parallel_config``; one after another, right here, for one job and where it is not installed.
    When the caller stops, or a run is interrupted, those that threads play end after their block,
    and are waited for.
    """
    if not _has_joblib() or (n_jobs == 1 and backend is None):
        for i, task in enumerate(tasks):
            yield i, play(*task)
        return
    from joblib import delayed

    came: list[int] = []
    playing: set[int] = set()
    home, play_one = here(), delayed(numbered)
    calls = (play_one(i, home, came, playing, task) for i, task in enumerate(tasks))
    played: Generator = calls  # until joblib has them
    try:
        with HOLD:  # a signal in the midst of it would leave threads behind
            played = _parallel(tasks, backend, n_jobs)(calls)
        for i, out in played:
            if out is None:
                raise KeyboardInterrupt
            yield i, out
    finally:
        came.append(SIGINT)
        with suppress(InterruptedError):  # joblib would warn if it were closed
            played.throw(InterruptedError)
        while playing:
            time.sleep(0.01)


def _parallel(tasks: Sequence[tuple], backend: str | None, n_jobs: int | None) -> Any:
    """Return joblib's ``Parallel`` that plays the tasks."""
    from joblib import Parallel, parallel, parallel_config

    settings: dict[str, Any] = {}
    if backend == "dask":  # to all workers, so that one that dies takes nothing with it
        shared = {id(a): a for task in tasks for a in task if isinstance(a, np.ndarray)}
        settings = {"backend": backend, "n_jobs": n_jobs or -1, "scatter": list(shared.values())}
    elif backend is not None:
        settings = {"backend": backend, "n_jobs": n_jobs or cores()}
    elif n_jobs is None:
        configured, n_jobs = parallel.get_active_backend()
        if n_jobs is None and "Loky" in type(configured).__name__:  # joblib's default, of one job
            n_jobs = max(1, min(cores(), len(tasks)))
    with parallel_config(**settings):
        return Parallel(  # one by one: the last cells are then shared evenly
            n_jobs=n_jobs, return_as="generator_unordered", prefer="threads", batch_size=1
        )
