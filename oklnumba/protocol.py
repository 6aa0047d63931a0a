"""The one streaming loop: forecast, see the label, update; and what it leaves behind."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from oklnumba import checks, theory
from oklnumba.blocks import compilable, fitting, whole
from oklnumba.checks import shown
from oklnumba.display import pandas_for, table
from oklnumba.files import write_npz
from oklnumba.interrupts import Stop
from oklnumba.learners.learner import FIRST_ROWS, Player
from oklnumba.params import told
from oklnumba.recording import Played, Recorder, check_record, read_run
from oklnumba.state import NoRoom

SUMS = {"losses": "loss_sums", "mistakes": "mistake_sums"}  # where not every round is recorded


class Certificate(NamedTuple):
    """Regret in the learner's own space and its bound at every round, for squared loss.

    A poor space has a poor best function, against which any learner looks good: ``space`` says
    which it is. ``Run.regret(kernel, lam, at=1)`` has the regret against a whole RKHS.

    Of a learner with a discount g < 1 all sums up to round t weigh round s by g^(t - s): the loss,
    the comparator, which is the least discounted penalised loss, and log det, a sum over the
    rounds. The penalty is that which the learner has then (lam |f|^2 at first, discounted, with the
    floor of PKAWV). This says how well the learner has done lately;
    ``theory.discounted_awv_bound`` has the undiscounted regret against functions that move.

    Attributes
    ----------
    loss : ndarray of shape (n,)
        Cumulative squared loss of the forecasts; discounted where the learner is.
    comparator : ndarray of shape (n,)
        min_f sum (y - f(x))^2 + lam |f|^2 over the learner's space, on each prefix; discounted
        where the learner is.
    regret : ndarray of shape (n,)
        loss - comparator.
    bound : ndarray of shape (n,)
        max |y|^2 log det(A / lam) so far (pkawv Proposition 1), plus what growth of the space took
        off the comparator; NaN for ridge forecasts, for which no such bound holds.
    space : str
        The space, after the last round, and the discount if there is one.
    """

    loss: np.ndarray
    comparator: np.ndarray
    regret: np.ndarray
    bound: np.ndarray
    space: str

    def __repr__(self) -> str:
        n = len(self.loss)
        last = [", ".join(f"{v:.4g}" for v in np.ravel(a[-1:])) for a in (self.regret, self.bound)]
        end = f": regret {last[0]}, bound {last[1]}" if n else ""
        return f"Certificate({n} rounds against the best function of {self.space}{end})"

    def _repr_html_(self) -> str:
        return table("certificate", {"rounds": len(self.loss), "space": self.space} | self._last())

    def _last(self) -> dict[str, float]:
        """Return the regret and its bound after the last round, those of all outputs added up."""
        pairs = {"regret": self.regret, "bound on the regret": self.bound}
        return {name: float(np.sum(a[-1])) for name, a in pairs.items() if len(a)}


class Run:
    """A finished or interrupted run of the online protocol.

    Of ``MultiOutput``, with K labels a round, predictions, losses, mistakes and the certificate
    have the shape (n, K). Of ``OneVsRest`` the predictions are classes, the loss is 0 or 1, and the
    certificate, (n, K), is that of the scores of each class, in squared loss.

    What there is for each round has n entries, one for each of the rounds ``recorded``: all of
    them, unless ``okl.run`` was told otherwise. Means are over all rounds played in any case.

    Attributes
    ----------
    recorded : ndarray of int, shape (n,)
        The rounds that were kept, counted from 1; the last one always is.
    predictions, losses : ndarray of shape (n,)
        Forecast and loss of each round.
    mistakes : ndarray of bool, shape (n,), or None
        y * prediction <= 0, so that a forecast of exactly 0 counts; None unless all labels are -1
        or +1. Of ``OneVsRest``: whether the class was another one.
    scores : ndarray of shape (n, K), or None
        The forecasts of the scorers of ``OneVsRest``, one column a class.
    sizes : ndarray of int, shape (n,)
        Size of the dictionary, or number of features, after each round.
    seconds : float
        Time in the learner.
    checkpoints, checkpoint_seconds : ndarray
        Rounds after which the clock was read, and the seconds then.
    finished : bool
        False when a time limit or an interrupt ended the run.
    interrupted : bool
        Whether it was an interrupt: Ctrl-C, or SIGTERM where there is a checkpoint.
    loss : str
        Name of the loss.
    certificate : Certificate or None
        For AWV and ridge learners.
    """

    def __init__(self, arrays: dict[str, np.ndarray], meta: dict[str, Any], data: Any = None):
        self._arrays = arrays
        self._meta = meta
        self._data = data
        self.predictions = arrays["predictions"]
        self.rounds = int(meta.get("rounds", len(self.predictions)))  # not in older files
        self.recorded = arrays.get("recorded", np.arange(1, self.rounds + 1))
        self.losses = arrays["losses"]
        self.sizes = arrays["sizes"]
        self.mistakes = arrays.get("mistakes")
        self.scores = arrays.get("scores")
        self.checkpoints = arrays["checkpoints"]
        self.checkpoint_seconds = arrays["checkpoint_seconds"]
        self.seconds = float(meta["seconds"])
        self.finished = bool(meta["finished"])
        self.interrupted = bool(meta.get("interrupted", False))  # not in older files
        self.loss = meta["loss"]
        self.learner = meta["learner"]
        self.certificate = None
        if "comparator" in arrays:
            loss, comparator = arrays["loss"], arrays["comparator"]
            space = meta.get("space") or "the learner's own space"  # files before version 0.3
            self.certificate = Certificate(
                loss, comparator, loss - comparator, arrays["bound"], space
            )

    @property
    def loss_sums(self) -> np.ndarray:
        """Sums of the losses of all rounds up to each of those recorded, shape (n,) or (n, K)."""
        sums = self._arrays.get("loss_sums")
        return np.cumsum(self.losses, axis=0) if sums is None else sums

    @property
    def mistake_sums(self) -> np.ndarray | None:
        """Mistakes in all rounds up to each of those recorded; None for regression."""
        if self.mistakes is None:
            return None
        sums = self._arrays.get("mistake_sums")
        return np.cumsum(self.mistakes, axis=0) if sums is None else sums

    @property
    def mean_loss(self) -> float:
        """Average loss a round."""
        return self._mean("losses")

    @property
    def mistake_rate(self) -> float | None:
        """Share of rounds with a mistake; None for regression."""
        return None if self.mistakes is None else self._mean("mistakes")

    def _mean(self, name: str) -> float:
        if not self.rounds:
            return float("nan")
        sums = self._arrays.get(SUMS[name])
        return float(self._arrays[name].mean() if sums is None else sums[-1].mean() / self.rounds)

    def _require_all(self, what: str) -> None:
        """Raise ValueError where rounds are missing."""
        if len(self.recorded) < self.rounds:
            raise ValueError(
                f"{what} needs the forecast of every round, but this run keeps "
                f"{len(self.recorded)} of {self.rounds}; play it with record='all'"
            )

    def regret(
        self, kernel: Any, lam: float, at: int | ArrayLike | None = None, loss: str | None = None
    ) -> np.ndarray | theory.RegretCurve:
        """Return the regret, in the run's own loss, against the best functions of an RKHS.

        The cost and the accuracy are those of ``theory.Hindsight``, which serves several runs over
        the same stream: ``best = theory.Hindsight(kernel, X, y, lam, loss)``, then
        ``best.regret(run.predictions, at)``.

        Parameters
        ----------
        kernel : Kernel
        lam : float > 0
            Of the penalty lam |f|^2.
        at : int or array_like of int, optional
            Rounds at which to have it, increasing; one number k: k rounds, evenly spread, the last
            one included.
        loss : str, optional
            One of ``losses.LOSSES``, of forecasts and best functions; None: ``run.loss``.

        Returns
        -------
        ndarray of shape (n,) or theory.RegretCurve
            With ``at``: against the best function so far and the final one, penalised and not, with
            an interval. Without, for squared loss and at most 20,000 rounds: after every round,
            against the best penalised function so far, sum_{s<=t} (y_s - prediction_s)^2 - min_f
            [sum_{s<=t} (y_s - f(x_s))^2 + lam |f|^2]; otherwise the curve of the last round alone
            (``theory.regret`` solves for every round of any loss).

        Raises
        ------
        ValueError
            If an argument is not valid, the run has several outputs, it did not keep every round
            (``record``), X or y has changed since the run, or it does not hold its data (it was
            loaded, resumed without its past, or came in chunks): then use
            ``theory.regret(run.predictions, kernel, X, y, lam, run.loss)`` or
            ``theory.regret_curve``.
        FloatingPointError
            If the solver of a loss other than the squared one is not within 1e-6 of the best.

        Examples
        --------
        >>> import numpy as np, oklnumba as okl
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> run = okl.run(okl.POMDR(okl.Gaussian(1.0)), X, np.sign(X[:, 0]))
        >>> run.loss, run.regret(okl.Gaussian(1.0), lam=1.0, at=3).prefix_penalised.round(1)
        ('hinge', array([55.6, 70.2, 69.5]))
        """
        if self.scores is not None or self.predictions.ndim > 1:
            raise ValueError(
                "this run has several outputs; take the regret of one of them, on its labels y: "
                "theory.Hindsight(kernel, X, y, lam).regret(forecasts[:, k], at), forecasts being "
                "run.scores of OneVsRest or run.predictions of MultiOutput"
            )
        self._require_all("the regret")
        if self._data is None:
            raise ValueError(
                "this run does not hold its data; "
                f"use theory.regret(run.predictions, kernel, X, y, lam, {loss or self.loss!r})"
            )
        n = self.rounds
        X, y = self._data[0][:n], self._data[1][:n]
        now = Played()
        now.add_all(X, y)
        if not now.is_of(self._data[2]):
            raise ValueError(
                "X or y has changed since the run, which holds the arrays it was given, not copies "
                "of them; play the run again, or give copies: okl.run(learner, X.copy(), y.copy())"
            )
        best = theory.Hindsight(kernel, whole(X), y, lam, self.loss if loss is None else loss)
        return best.regret(self.predictions, at)

    def to_frame(self) -> Any:
        """Return the run as a pandas DataFrame, a row for each round that was recorded.

        Returns
        -------
        pandas.DataFrame
            ``round``, from 1; ``prediction``; ``loss``; ``mean_loss``, the average of the losses so
            far; where mistakes are counted ``mistake`` and ``mistake_rate``, their share so far;
            ``size``; of a run with a certificate ``comparator``, ``regret`` and ``bound``, in
            squared loss so far. ``OneVsRest`` adds ``score_c`` for each class c, and has a
            certificate for each, ``regret_c``; ``MultiOutput`` has a column for each output k,
            ``prediction_k``, where there is one above. The last row of ``mean_loss`` and
            ``mistake_rate`` is the run's.

        Raises
        ------
        ImportError
            Without pandas.

        Examples
        --------
        >>> import numpy as np, oklnumba as okl
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> run = okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, X[:, 0] * X[:, 1])
        >>> run.to_frame().columns.tolist()
        ['round', 'prediction', 'loss', 'mean_loss', 'size', 'comparator', 'regret', 'bound']
        """
        pandas = pandas_for("Run.to_frame")
        columns = {"round": self.recorded, **self._columns("prediction", self.predictions)}
        if self.scores is not None:
            columns |= self._columns("score", self.scores)
        columns |= self._columns("loss", self.losses)
        columns["mean_loss"] = self._means("losses")
        if self.mistakes is not None:
            columns |= self._columns("mistake", self.mistakes)
            columns["mistake_rate"] = self._means("mistakes")
        columns["size"] = self.sizes
        for name in ("comparator", "regret", "bound") if self.certificate else ():
            columns |= self._columns(name, getattr(self.certificate, name))
        return pandas.DataFrame(columns)

    def _means(self, name: str) -> np.ndarray:
        """Return the means over all rounds up to each of those recorded, and all outputs."""
        sums = self._arrays.get(SUMS[name])
        values = self._arrays[name] if sums is None else sums
        of_rounds = values.mean(axis=tuple(range(1, values.ndim)))
        return (np.cumsum(of_rounds) if sums is None else of_rounds) / self.recorded

    def _columns(self, name: str, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values by name, one for each output where they have a column for each."""
        if values.ndim == 1:
            return {name: values}
        outputs = self._meta.get("outputs") or range(values.shape[1])  # not in older files
        return {f"{name}_{output}": values[:, k] for k, output in enumerate(outputs)}

    def plot(self) -> Any:
        """Draw the error so far against rounds, and the regret with its bound if it is certified.

        Returns
        -------
        Figure, ndarray of Axes
            As ``plots.progress(run)``; ``fig.savefig("run.png")`` writes it.

        Raises
        ------
        ValueError
            If the run has no rounds.

        Examples
        --------
        >>> import numpy as np, oklnumba as okl
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> fig, axes = okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, np.sign(X[:, 0])).plot()
        >>> [ax.get_ylabel() for ax in axes[0]]
        ['mistakes so far (%)', 'regret (sum of squared losses)']
        """
        # The room above, and slow to import: loaded by name when there is something to draw.
        return import_module("oklnumba.plots").progress(self)

    def save(self, path: str | os.PathLike) -> None:
        """Write the run into one ``.npz`` file, without the data."""
        write_npz(path, {"run": self._meta}, self._arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Run:
        """Return a run that ``save`` or a checkpoint wrote."""
        meta, _, arrays = read_run(path)
        if "run" not in meta:
            raise ValueError(f"{path} holds no run; a learner is read by oklnumba.load")
        return cls(arrays, {name: value for name, value in meta["run"].items() if name != "log"})

    def __repr__(self) -> str:
        what = f"mean {self.loss} loss {self.mean_loss:.4g}"
        if self.mistakes is not None:
            what += f", mistake rate {100 * self.mistake_rate:.2f} %"
        end = self._end()
        size = f", size {self.sizes[-1]}" if self.rounds else ""
        return f"Run({self.learner}: {self.rounds} rounds{end}, {what}{size}, {self.seconds:.3g} s)"

    def _end(self) -> str:
        if self.interrupted:
            return ", interrupted"
        return "" if self.finished else ", stopped by its time limit"

    def _repr_html_(self) -> str:
        end = self._end()
        rows: dict[str, Any] = {"learner": self.learner, "rounds": f"{self.rounds:,}{end}"}
        rows[f"mean {self.loss} loss"] = self.mean_loss
        if self.mistakes is not None:
            rows["mistakes"] = f"{100 * self.mistake_rate:.2f} %"
        if self.certificate is not None:
            rows |= self.certificate._last()
        if self.rounds:
            rows["size"] = int(self.sizes[-1])
        return table("run", rows | {"seconds": f"{self.seconds:.3g}"})


def _is_chunked(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], tuple)
    return isinstance(X, Iterable) and not hasattr(X, "__array__")


def _pieces(X: Any, y: Any, chunked: bool, recorder: Recorder) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield checked (X, y) pieces; an array is checked whole, before its first round."""
    as_labels, signs = recorder.learner._as_labels, recorder.loss.classes
    if not chunked:
        X = checks.as_rows(X, recorder.width())
        yield X, as_labels(y, X.shape[0], signs)
        return
    first = 0
    for i, chunk in enumerate(X):
        if not (isinstance(chunk, tuple | list) and len(chunk) == 2):
            raise ValueError(
                f"chunk {i} of the stream must be a pair (X, y), but is {shown(chunk)}; pass pairs "
                "of arrays, or two arrays: okl.run(learner, X, y)"
            )
        try:
            part = checks.as_rows(chunk[0], recorder.width())
            labels = as_labels(chunk[1], part.shape[0], signs)
        except ValueError as error:
            raise ValueError(_of_stream(str(error), i, first)) from error
        yield part, labels
        first += len(labels)


def _of_stream(message: str, chunk: int, first: int) -> str:
    """Return the message of an error in a chunk with the row of the whole stream."""
    message = re.sub(r"(?<=at row )\d+", lambda row: str(first + int(row[0])), message)
    return f"chunk {chunk} of the stream, from row {first} on: {message}"


def run(
    learner: Player,
    X: ArrayLike | Iterable,
    y: ArrayLike | None = None,
    loss: str | None = None,
    progress: bool = False,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike | None = None,
    every: int | None = None,
    *,
    record: str | int = "all",
    resume: bool = False,
) -> Run:
    """Play the online protocol: at each round forecast, then see the label, then update.

    Gives the same forecasts as the loop ``learner.predict_one(x); learner.learn_one(x, y)``,
    compiled.

    Parameters
    ----------
    learner : Learner, OneVsRest, MultiOutput or OnlineToBatch
        Goes on from where it stands; afterwards it has played these rounds too.
    X : array_like or scipy.sparse of shape (n, d), or iterable of pairs (X, y)
        Frames and tables of pandas, polars and pyarrow too: all give the same bits. Memory-mapped
        float64 arrays are read piece by piece, other types are converted first, sparse rows are
        made dense block by block; pairs are for streams larger than memory,
        such as files: ``okl.stream``.
    y : array_like of shape (n,), optional
        Labels, (n, K) for MultiOutput, in the order of the rows (the index of a Series does not
        matter); None if X is an iterable of pairs.
    loss : str, optional
        Loss that is recorded; None: the learner's own.
    progress : bool
        Show a progress bar.
    time_limit : float, optional
        Seconds in the learner after which the run ends, at that end of a block of rounds which is
        nearest. Blocks end after 64 rounds, 128, 256, ... up to what the learner takes in one go,
        and then after multiples of that.
    checkpoint : path, optional
        File that holds learner and run. If it exists the run goes on from it, with the same data
        from the start, which a digest of its rows and labels tells from other data, and a fresh
        learner of the same hyper-parameters; the result is that of a run in one go, to the bit,
        where ``every`` and the pairs of an iterable are the same, too. (Cuts elsewhere, and data
        that has become longer, change the last digits of learners that take blocks by BLAS:
        KernelAWV, KernelRidge, KONS, OnlineNewtonStep, ExpConcaveFTRL.) Until the run ends a log
        of its rounds, NAME.rounds, stands beside it, so that a save costs what the rounds since
        the last one cost.
    every : int >= 1, optional
        Rounds between two saves and readings of the clock; None: about every minute.
    record : "all", int k >= 1 or "none"
        What the run keeps: every round; rounds k, 2 k, 3 k, ... and the last one; or the last one
        alone, so that memory and checkpoint do not grow with the run. ``Run.recorded`` says which
        rounds, and what is kept of them is the same; sums and means are over all rounds.
    resume : bool
        With a checkpoint: the data starts where the checkpoint ends, for a stream that cannot be
        replayed; ``Run.load(checkpoint).rounds`` says where that is. Without the file the run
        starts from the beginning.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If the data or an argument is not valid: for arrays before the first round, for an iterable
        before the first round of the bad pair. If the checkpoint is damaged, of another run, or of
        other data.
    FloatingPointError
        If the numbers of a round are beyond double precision, or a first-order learner diverges (a
        forecast beyond 1e100); the message names the round and what to change.
    MemoryError
        If there is no room for the learner to grow. It is intact, the message says after how many
        rounds, and the checkpoint, if there is one, holds them.
    KeyboardInterrupt
        At the second Ctrl-C, as below.
    RuntimeError
        If the learner had an error in mid-round before, until its ``reset``.

    Notes
    -----
    In the main thread the first Ctrl-C ends the run after the present block of rounds, as a time
    limit does: the Run so far is returned, ``finished`` is False and ``interrupted`` True, and the
    checkpoint is written. The second raises KeyboardInterrupt after that block, when learner and
    rounds agree. The third does so at once, and the learner, which may be in mid-round, then
    refuses to go on. With a checkpoint SIGTERM ends the run as Ctrl-C does.

    Warns
    -----
    UserWarning
        Before the learner's first round, once: if Taylor features hold little of the kernel on the
        first inputs, if a kernel is 0 or 1 between nearly all of them, or if all labels are 0 and
        1, which squared loss takes for a regression.

    Examples
    --------
    >>> import oklnumba as okl
    >>> data = okl.datasets.load("magic04", permute=0)
    >>> learner = okl.PKAWV(okl.TaylorFeatures(degree=2, sigma=2.0))
    >>> run = okl.run(learner, data.X, data.y)
    >>> run.rounds, round(run.mistake_rate, 2)
    (19020, 0.16)
    """
    _check_player(learner)
    _check_data(X, y)
    _check_options(progress, time_limit, checkpoint, every, record, resume)
    recorder = Recorder(learner, learner._recorded(loss), record, checkpoint, every)
    recorder.resume()
    skip = 0 if resume else recorder.rounds
    chunked = y is None and not hasattr(X, "shape") and _is_chunked(X)
    finished, data = True, None
    with (
        Stop(terminate=checkpoint is not None) as stop,
        tqdm(disable=not progress, unit=" rounds", initial=recorder.rounds, unit_scale=True) as bar,
        closing(_pieces(X, y, chunked, recorder)) as pieces,
    ):
        for part, labels in _until_stopped(pieces, stop):
            if not chunked:
                bar.total = len(labels) + recorder.rounds - skip
                data = (part, labels) if bar.total == len(labels) else None
                if data and not recorder.rounds:
                    recorder.played = Played()
            if skip:
                recorder.skip(part[:skip], labels[:skip])
            if skip >= len(labels):
                skip -= len(labels)
                continue
            recorder.adopt()
            part, labels = part[skip:], labels[skip:]
            learner._advise(part, labels)
            finished = _play_piece(recorder, part, labels, time_limit, bar, stop)
            skip = 0
            if not finished:
                break
        recorder.interrupted = bool(stop.came)
        finished = finished and not stop.came
        if skip and finished:
            raise recorder.too_many(recorder.rounds - skip)
        recorder.adopt()
        if checkpoint is not None:
            recorder.close(finished)
    data = (*data, recorder.played) if data else None
    return Run(recorder.arrays(), recorder.meta(finished), data)


def _check_player(learner: Any) -> None:
    """Raise ValueError for what is no learner."""
    if not isinstance(learner, Player):
        data = isinstance(learner, list | tuple) or hasattr(learner, "shape")
        hint = "; the learner comes first: okl.run(learner, X, y)" if data else ""
        raise ValueError(
            "learner must be an oklnumba learner such as okl.PKAWV(okl.TaylorFeatures(2)), or "
            f"OneVsRest, MultiOutput or OnlineToBatch around one, but is {told(learner)}{hint}"
        )


def _check_data(X: Any, y: Any) -> None:
    """Raise ValueError for what is plainly no data."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(f"X is the path {str(X)!r}; pass okl.stream({str(X)!r}, label=...)")
    checks.refuse_swapped(X, y)


def _check_options(
    progress: Any, time_limit: Any, checkpoint: Any, every: Any, record: Any, resume: Any
) -> None:
    """Raise ValueError for options of ``run`` that are not valid."""
    checks.require_flag("progress", progress)
    if time_limit is not None:
        checks.require_positive("time_limit", time_limit)
    if every is not None:
        checks.require_count("every", every, 1)
    check_record(record)
    checks.require_flag("resume", resume)
    if checkpoint is not None:
        checks.as_path(checkpoint, "checkpoint")
    if resume and checkpoint is None:
        raise ValueError("resume=True goes on from a checkpoint; name its file: checkpoint=...")


def _until_stopped(pieces: Iterator[Any], stop: Stop) -> Iterator[Any]:
    """Yield the pieces of the data until a signal comes, also while waiting for one."""
    while not stop.came:
        try:
            stop.open = True
            piece = next(pieces, None)
        except KeyboardInterrupt:
            if not stop.came:  # the data's own
                raise
            return
        finally:
            stop.open = False
        if piece is None:
            return
        yield piece


def _play_piece(
    recorder: Recorder,
    X: Any,
    y: np.ndarray,
    time_limit: float | None,
    bar: tqdm,
    stop: Stop,
) -> bool:
    """Play the rows of X with looks at the clock and for signals; False where that is the end."""
    start = 0
    while start < len(y):
        rows = 0
        if not stop.came:
            rows = _next_rows(recorder, X.shape[1], len(y) - start, time_limit)
        if rows == 0:
            return False
        part, labels = compilable(X[start : start + rows]), y[start : start + rows]
        begin = time.perf_counter()
        try:
            trace = recorder.learner._play_rows(part, labels)
        except NoRoom as full:
            recorder.add_part(part, labels, full.trace, time.perf_counter() - begin)
            raise
        recorder.add(part, labels, trace, time.perf_counter() - begin)
        bar.update(rows)
        start += rows
        if recorder.due():
            recorder.save()
    return True


def _next_rows(recorder: Recorder, d: int, left: int, time_limit: float | None) -> int:
    """Return how many rounds to play before the clock is looked at; 0 when time is up.

    Where blocks are cut depends on the rounds so far alone, not on the clock: where BLAS takes a
    block in one go, a run that was stopped and resumed has the bits of the one that was not.
    """
    rounds, most = recorder.rounds, fitting(d, recorder.learner._run_rows)
    doubled = FIRST_ROWS << (rounds // FIRST_ROWS).bit_length()  # the first above rounds
    cut = doubled if doubled <= most else (rounds // most + 1) * most
    rows = min(left, cut - rounds)
    if recorder.every is not None:
        rows = min(rows, recorder.every - rounds % recorder.every)
    if time_limit is not None:
        rest = time_limit - recorder.seconds
        if rest <= 0.0:
            return 0
        if len(recorder.clock) > 1:
            (r0, s0), (r1, s1) = recorder.clock[-2:]
            if rows * (s1 - s0) > 2.0 * rest * (r1 - r0):  # its end is further off than now
                return 0
    return rows
