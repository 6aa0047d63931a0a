"""The one streaming loop: forecast, see the label, update."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oklnumba.core import checks, inputs
from oklnumba.core.display import Bar
from oklnumba.core.inputs import FIRST_ROWS
from oklnumba.core.params import to_spec
from oklnumba.core.schema import Schema, schema_of
from oklnumba.data.streams import Stream
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.outside import adapt
from oklnumba.protocol.checkpoints import Checkpoint
from oklnumba.protocol.recording import Recorder
from oklnumba.protocol.runs import Run
from oklnumba.protocol.schedule import Schedule


@dataclass
class Presses:
    """How often Ctrl-C was pressed, and whether the run waits for data, when nothing changes."""

    count: int = 0
    waiting: bool = False


@contextmanager
def catch_ctrl_c(terminate: bool = False) -> Iterator[Presses]:
    """Count presses of Ctrl-C; the second, or any while ``waiting``, raises KeyboardInterrupt.

    Works in the main thread only. SIGTERM counts where it raises KeyboardInterrupt, as in the
    command line, or with ``terminate``.
    """
    presses, handlers = Presses(), {}

    def note(number: int, frame: Any) -> None:
        presses.count += 1
        if presses.count > 1 or presses.waiting:
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        found = signal.getsignal(number)  # None if it is not Python's: it could not be given back
        counts = callable(found) if number == signal.SIGINT else terminate and found is not None
        if counts or found is signal.default_int_handler:
            with suppress(ValueError):  # in another thread, or where Python is embedded in one
                handlers[number] = signal.signal(number, note)
    try:
        yield presses
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _is_chunked(X: Any, y: Any) -> bool:
    """Say whether the data comes in pairs (X, y)."""
    if y is not None:
        return False
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], tuple)
    return isinstance(X, Iterable) and not hasattr(X, "shape")


def _pieces(
    X: Any, y: Any, chunked: bool, schedule: Schedule, signs: bool, file: Checkpoint | None,
    presses: Presses,
) -> Generator[tuple[Any, np.ndarray, Schema | None], None, None]:  # fmt: skip
    """Yield each chunk, checked: rows, labels and schema, until Ctrl-C. Arrays are one piece."""
    learner, first = schedule.learner, 0
    as_labels = schedule.as_optional_labels if schedule.optional else learner._as_labels
    width, schema, warned = learner._width, learner._schema, learner._played > 0
    if file and file.saved:
        meta, warned = file.saved[0], True
        width, schema = meta["width"], meta["schema"]
        if schema:  # the data comes from the start
            schema = Schema.from_json(schema | {"past": ()})
    chunks = X
    if isinstance(X, Stream):
        X = X if schema is None else X.like(schema)
        schema, chunks = X.schema if width is None else schema, X.read_blocks()
    pairs = inputs.number_pairs(_chunks(iter(chunks), presses)) if chunked else [(0, (X, y))]
    for i, chunk in pairs:
        try:
            if width is None and schema is None and not isinstance(chunk[0], np.ndarray):
                schema = schema_of(chunk[0])
            part = inputs.as_rows(chunk[0], width, schema=schema, fill=False)
            learner._check_points(part)
            given = chunk[1] if schema is None else schema.as_signs(chunk[1])
            labels = as_labels(given, part.shape[0], signs)
            if any(hasattr(one, "iloc") for one in chunk):  # of pandas
                checks.warn_of_order(*chunk)
                checks.warn_of_time(*chunk, counted_by=learner._traits.counts_rows)
        except ValueError as error:
            if not chunked:
                raise
            fault = inputs.add_to_rows(first, str(error))
            said = f"chunk {i} of the stream, from row {first} on: {fault}"
            if isinstance(X, Stream) and X.columns is None and width:
                said += f"; pass width={width}"
            raise ValueError(said) from error
        warned = warned or checks.warn_of_block(labels, first)
        yield part, labels, schema
        first, width = first + len(labels), part.shape[1]


def _chunks(stream: Iterator[Any], presses: Presses) -> Iterator[Any]:
    """Yield the items of a stream until Ctrl-C, also while waiting for one."""
    end = object()
    while not presses.count:
        try:
            presses.waiting = True
            chunk = next(stream, end)
        except KeyboardInterrupt:
            if not presses.count:  # raised by the stream itself
                raise
            return
        finally:
            presses.waiting = False
        if chunk is end:
            return
        yield chunk


def run(
    learner: Learner | Any, X: ArrayLike | Iterable[Any], y: ArrayLike | None = None,
    loss: str | None = None, progress: bool | Callable[[Run], None] = False,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike | None = None, every: int | None = None, *,
    record: str | int = "all", resume: bool = False, delay: int = 0, batch: int = 1,
    labels: str = "required",
) -> Run:  # fmt: skip
    """Play the online protocol: at each round forecast, then see the label, then update.

    The forecasts are those of the loop ``learner.predict_one(x); learner.learn_one(x, y)``.

    Parameters
    ----------
    learner : Learner
        It goes on from where it stands. Or an object with ``predict_one(x)`` and
        ``learn_one(x, y)``, x of shape (d,); a model of river; an estimator of scikit-learn with
        ``partial_fit``. Classifiers take labels -1 and +1.
    X : array_like or scipy.sparse of shape (n, d), frame, or iterable of pairs (X, y)
        Memory-mapped float64 arrays are read piece by piece, sparse rows made dense block by block.
        Pairs are for streams larger than memory, such as ``okl.stream``.
    y : array_like of shape (n,), optional
        Labels, (n, K) for MultiOutput; None if X is an iterable of pairs.
    loss : str, optional
        Loss that is recorded; None: the loss that the learner minimises.
    progress : bool or function
        Show a progress bar; or call the function with the run so far, after the block in which its
        rounds reach 64, 128, 256 and so on.
    time_limit : float, optional
        Seconds in the learner after which the run ends, at the nearest end of a block. Blocks end
        after 64, 128, 256, ... rounds, later after multiples of the learner's largest block.
    checkpoint : path, optional
        File that holds learner and run. If it exists, the run goes on from it: pass the same data
        from the start and a fresh learner of the same hyper-parameters. The result is that of a run
        in one go, to the bit, for the same ``every`` and the same pairs. (Other cuts change the
        last digits of learners that take blocks by BLAS: KernelAWV, KernelRidge, KONS,
        OnlineNewtonStep, ExpConcaveFTRL.)
    every : int >= 1, optional
        Rounds between two saves; None: about a minute.
    record : "all", int k >= 1 or "none"
        Store every round, every k-th and the last, or the last alone, so that memory and checkpoint
        stay small. ``Run.recorded`` says which rounds; sums and means are over all rounds.
    resume : bool
        With a checkpoint: the data starts where the checkpoint ends, for a stream that cannot be
        replayed; ``Run.load(checkpoint).rounds`` says where that is.
    delay : int >= 0
        Labels come ``delay`` rounds later: the forecast of round t is made with the labels of
        rounds 1, ..., t - 1 - delay.
    batch : int >= 1
        Rows are forecast in batches, counted from the first of the run, and labels come after each:
        batch m is forecast with the labels of rounds 1, ..., (m - 1) batch - delay. When the data
        ends the learner learns the rest.
    labels : {"required", "optional"}
        "optional": rows whose label is None or NaN are forecast, but not learned, and their loss,
        NaN, counts in no mean.

    Warns
    -----
    UserWarning
        If Taylor features or a kernel do not suit the first inputs; if the labels are two numbers
        such as 0 and 1, which squared loss takes for a regression; or if an array or a pair has a
        longer block of equal labels than chance allows, as in a table sorted by class; or if the
        data ends before ``Horizon`` learns a row.

    Notes
    -----
    Arrays are checked before the first round, a pair before its rounds (ValueError). Errors in a
    round are those of ``Learner``.

    In the main thread the first Ctrl-C ends the run after the present block: the run so far is
    returned with ``interrupted`` True, and the checkpoint is written. The second raises
    KeyboardInterrupt at once. With a checkpoint SIGTERM acts as Ctrl-C does.

    A run with late or optional labels has no certificate, and its regret may exceed any bound of
    ``theory``: the theorems are about labels that come at once.

    Examples
    --------
    >>> data = okl.datasets.load("magic04", permute=0)
    >>> learner = okl.PKAWV(okl.TaylorFeatures(degree=2, sigma=2.0))
    >>> run = okl.run(learner, data.X, data.y)
    >>> run.rounds, round(run.mistake_rate, 2)
    (19020, 0.16)
    """
    learner = _check_arguments(learner, X, progress, time_limit, checkpoint, every, record, resume)
    schedule = Schedule(learner, delay, batch, labels)
    keeps, chunked, file, finished = checks.as_plain(record), _is_chunked(X, y), None, True
    recorder = Recorder(learner, learner._recorded_loss(loss), keeps, schedule.lateness)
    if checkpoint is not None:
        file = Checkpoint(checks.as_path(checkpoint), every, resume, recorder, schedule)
    with (
        catch_ctrl_c(terminate=file is not None) as presses,
        np.errstate(under="ignore"),  # as by default, whatever the user has set
        _show(progress, X, chunked, recorder, resume) if progress else nullcontext() as show,
        closing(_blocks(X, y, chunked, schedule, recorder, every, file, presses)) as blocks,
    ):
        for X_block, y_block, coming in blocks:
            n = len(y_block)
            if presses.count or time_limit is not None and recorder.clock.ends(n, time_limit):
                finished = False
                break
            begin = time.perf_counter()
            if schedule.lateness:
                traces = schedule.play(X_block, y_block, recorder.rounds, coming)
            else:
                traces = [learner._play_rows(X_block, y_block, coming)]
            recorder.add(y_block, traces, time.perf_counter() - begin)
            if show is not None:
                show(n)
            if file is not None:
                file.add(X_block, y_block)
        interrupted = presses.count > 0
        finished = finished and not interrupted
        if file is not None:
            file.close(finished, interrupted)
        if schedule.delayed and finished:
            schedule.delayed.learn_rest()
    if finished and not recorder.rounds:
        checks.warn("the stream has no rows; if it is a generator read before, make it anew")
    if finished and (said := learner._unlearned) and recorder.rounds == learner.rounds:
        checks.warn(said)  # of a learner that was fresh: short pieces are no fault
    return recorder.make_run(finished, interrupted)


def _check_arguments(
    learner: Any, X: Any, progress: Any, time_limit: Any, checkpoint: Any, every: Any, record: Any,
    resume: Any,
) -> Learner:  # fmt: skip
    """Return the learner; raise ValueError for arguments that are not valid, data apart."""
    learner = learner if isinstance(learner, Learner) else adapt(learner)
    if checkpoint is not None:
        checks.as_path(checkpoint, "checkpoint")
        try:
            to_spec(learner, {})
        except ValueError as error:
            raise ValueError(
                f"checkpoint needs a learner that can be saved, and {learner!r} cannot ({error}): "
                "leave checkpoint out, or derive your class from okl.Learner"
            ) from None
    if isinstance(X, str | os.PathLike):
        raise ValueError(f"X is the path {str(X)!r}; pass okl.stream({str(X)!r}, label=...)")
    if time_limit is not None:
        checks.require_positive("time_limit", time_limit)
    if every is not None:
        checks.require_count("every", every, 1)
    if record not in ("all", "none"):
        domain = "'all', 'none' or an integer k >= 1, which keeps every k-th round"
        checks.require_count("record", record, 1, domain=domain)
    what = "True, False or a function of the run so far"
    checks.require(isinstance(progress, bool) or callable(progress), "progress", progress, what)
    if resume and checkpoint is None:
        raise ValueError("resume=True goes on from a checkpoint; name its file: checkpoint=...")
    return learner


@contextmanager
def _show(
    progress: bool | Callable[[Run], None], X: Any, chunked: bool, recorder: Recorder, resume: bool
) -> Iterator[Callable[[int], Any]]:
    """Yield what is called with the rounds of each block; a bar has a total if data has one."""
    if callable(progress):
        yield partial(_call_when_due, progress, recorder)
        return
    count = X.count_rows() if isinstance(X, Stream) else None
    if not chunked:
        count = inputs.count_rows(X)
    total = count and count + resume * recorder.rounds
    with Bar(total=total, initial=recorder.rounds, unit=" rounds", unit_scale=True) as bar:
        yield bar.update


def _call_when_due(progress: Callable[[Run], None], recorder: Recorder, n: int) -> None:
    """Call the function if these n rounds reach 64, 128, 256, ... rounds."""
    due = max(FIRST_ROWS, 1 << (recorder.rounds.bit_length() - 1))
    if recorder.rounds - n < due <= recorder.rounds:
        progress(recorder.make_run(False, False))


def _blocks(
    X: Any, y: Any, chunked: bool, schedule: Schedule, recorder: Recorder, every: int | None,
    file: Checkpoint | None, presses: Presses,
) -> Generator[tuple[Any, np.ndarray, int], None, None]:  # fmt: skip
    """Yield rows and labels to play in one go, and how many rows of the piece come from there on.

    Before a piece: restore the learner from the file, and warn. Blocks are cut by the rounds so far
    alone, not by the clock. So a run that was stopped and resumed has the bits of one that was not,
    also where BLAS takes a block in one go.
    """
    learner, signs = recorder.learner, recorder.loss.classes
    with closing(_pieces(X, y, chunked, schedule, signs, file, presses)) as pieces:
        for rows, labels, schema in pieces:
            if not chunked and not (file and file.resume and recorder.rounds):
                filled = schema.fill(rows, inputs.find_labels(labels))[0] if schema else rows
                recorder.data = filled, labels
            start, total = 0, len(labels)
            if file is not None:
                start = file.skip_past(rows, labels)
                if start == total:
                    continue
                file.restore_learner()
            if learner._width is None:
                learner._schema = schema
            head = rows[start : start + FIRST_ROWS]
            learner._warn_of_rows(schema.fill(head)[0] if schema else head, labels[start:])
            most = inputs.count_block_rows(rows.shape[1], learner._traits.run_rows)
            while start < total:
                before = recorder.rounds
                doubled = FIRST_ROWS << (before // FIRST_ROWS).bit_length()  # first above before
                end = doubled if doubled <= most else (before // most + 1) * most
                end += -end % schedule.batch  # whole batches
                stop = min(total, start + end - before)
                if every:
                    stop = min(stop, start + every - before % every)
                yield rows[start:stop], labels[start:stop], total - start
                start = stop
