"""The one streaming loop: forecast, see the label, update; and what it leaves behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from oklnumba import checks, losses, theory
from oklnumba.blocks import whole
from oklnumba.checks import shown
from oklnumba.display import table
from oklnumba.learners.learner import (
    FIRST_ROWS,
    Player,
    Trace,
    read_npz,
    write_npz,
)
from oklnumba.params import same_spec, told
from oklnumba.state import under

SAVE_SECONDS = 60.0  # between two saves where ``every`` is not given


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

    Attributes
    ----------
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
        False when a time limit ended the run.
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
        self.losses = arrays["losses"]
        self.sizes = arrays["sizes"]
        self.mistakes = arrays.get("mistakes")
        self.scores = arrays.get("scores")
        self.checkpoints = arrays["checkpoints"]
        self.checkpoint_seconds = arrays["checkpoint_seconds"]
        self.seconds = float(meta["seconds"])
        self.finished = bool(meta["finished"])
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
    def rounds(self) -> int:
        """Rounds played in this run."""
        return len(self.predictions)

    @property
    def mean_loss(self) -> float:
        """Average loss a round."""
        return float(self.losses.mean()) if self.rounds else float("nan")

    @property
    def mistake_rate(self) -> float | None:
        """Share of rounds with a mistake; None for regression."""
        if self.mistakes is None:
            return None
        return float(self.mistakes.mean()) if self.rounds else float("nan")

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
            If an argument is not valid, the run has several outputs, or it no longer holds its data
            (it was loaded, or came in chunks): then use ``theory.regret(run.predictions, kernel, X,
            y, lam, run.loss)`` or ``theory.regret_curve``.
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
        if self._data is None:
            raise ValueError(
                "this run does not hold its data; "
                f"use theory.regret(run.predictions, kernel, X, y, lam, {loss or self.loss!r})"
            )
        n = self.rounds
        X, y = self._data[0][:n], self._data[1][:n]
        best = theory.Hindsight(kernel, whole(X), y, lam, self.loss if loss is None else loss)
        return best.regret(self.predictions, at)

    def to_frame(self) -> Any:
        """Return the run as a pandas DataFrame, a row a round.

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
        try:
            import pandas
        except ImportError as error:
            raise ImportError("Run.to_frame needs pandas: pip install pandas") from error
        rounds = np.arange(1, self.rounds + 1)
        columns = {"round": rounds, **self._columns("prediction", self.predictions)}
        if self.scores is not None:
            columns |= self._columns("score", self.scores)
        columns |= self._columns("loss", self.losses)
        columns["mean_loss"] = _mean_so_far(self.losses)
        if self.mistakes is not None:
            columns |= self._columns("mistake", self.mistakes)
            columns["mistake_rate"] = _mean_so_far(self.mistakes)
        columns["size"] = self.sizes
        for name in ("comparator", "regret", "bound") if self.certificate else ():
            columns |= self._columns(name, getattr(self.certificate, name))
        return pandas.DataFrame(columns)

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
        meta, arrays = read_npz(path)
        if "run" not in meta:
            raise ValueError(f"{path} holds no run; a learner is read by oklnumba.load")
        arrays = {name.removeprefix("run_"): a for name, a in arrays.items()}
        return cls(arrays, meta["run"])

    def __repr__(self) -> str:
        what = f"mean {self.loss} loss {self.mean_loss:.4g}"
        if self.mistakes is not None:
            what += f", mistake rate {100 * self.mistake_rate:.2f} %"
        end = "" if self.finished else ", stopped by its time limit"
        size = f", size {self.sizes[-1]}" if self.rounds else ""
        return f"Run({self.learner}: {self.rounds} rounds{end}, {what}{size}, {self.seconds:.3g} s)"

    def _repr_html_(self) -> str:
        end = "" if self.finished else ", stopped by its time limit"
        rows: dict[str, Any] = {"learner": self.learner, "rounds": f"{self.rounds:,}{end}"}
        rows[f"mean {self.loss} loss"] = self.mean_loss
        if self.mistakes is not None:
            rows["mistakes"] = f"{100 * self.mistake_rate:.2f} %"
        if self.certificate is not None:
            rows |= self.certificate._last()
        if self.rounds:
            rows["size"] = int(self.sizes[-1])
        return table("run", rows | {"seconds": f"{self.seconds:.3g}"})


def _mean_so_far(values: np.ndarray) -> np.ndarray:
    """Return the mean of all numbers of the rounds so far, shape (n,)."""
    of_rounds = values.mean(axis=tuple(range(1, values.ndim)))
    return np.cumsum(of_rounds) / np.arange(1, len(values) + 1)


def _is_chunked(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], tuple)
    return isinstance(X, Iterable) and not hasattr(X, "__array__")


class _Recorder:
    """Collects what the rounds leave behind, and writes it with the learner to a checkpoint."""

    def __init__(
        self, learner: Player, loss: losses.Loss, path: Any, every: int | None, chunked: bool
    ):
        self.learner, self.loss, self.path, self.chunked = learner, loss, path, chunked
        self.every = every
        self.parts: list[dict[str, np.ndarray]] = []
        self.seconds, self.rounds = 0.0, 0
        self.clock: list[tuple[int, float]] = []
        self.saved: tuple[dict, dict] | None = None
        self.saved_at, self.saved_rounds = time.monotonic(), 0

    def add(self, y: np.ndarray, trace: Trace, seconds: float) -> None:
        self.parts.append(self.learner._record(y, trace, self.loss))
        self.rounds += len(y)
        self.seconds += seconds
        self.clock.append((self.rounds, self.seconds))

    def arrays(self) -> dict[str, np.ndarray]:
        if not self.parts:
            learner = self.learner
            self.parts = [learner._record(np.empty(0), learner._trace(0), self.loss)]
        # Mistakes are recorded only if all parts have them.
        names = [name for name in self.parts[0] if all(name in part for part in self.parts)]
        if len(self.parts) > 1:
            self.parts = [{k: np.concatenate([p[k] for p in self.parts]) for k in names}]
        clock = np.array(self.clock).reshape(-1, 2)
        return self.parts[0] | {
            "checkpoints": clock[:, 0].astype(np.int64),
            "checkpoint_seconds": clock[:, 1],
        }

    def meta(self, finished: bool) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "finished": finished,
            "loss": self.loss.name,
            "learner": repr(self.learner),
            "space": self.learner._space(),
            "outputs": self.learner._output_names(),
        }

    def due(self) -> bool:
        """Say whether it is time for a checkpoint."""
        if self.path is None:
            return False
        if self.every is not None:
            return self.rounds - self.saved_rounds >= self.every
        return time.monotonic() - self.saved_at >= SAVE_SECONDS

    def save(self, finished: bool) -> None:
        meta, state = self.learner._contents()
        run = {f"run_{name}": a for name, a in self.arrays().items()}
        write_npz(self.path, meta | {"run": self.meta(finished)}, state | run)
        self.saved_at, self.saved_rounds = time.monotonic(), self.rounds

    def resume(self) -> None:
        """Read the checkpoint file, if there is one; ``adopt`` gives the learner its state."""
        if self.path is None:
            return
        if not Path(self.path).parent.is_dir():
            raise ValueError(f"checkpoint {self.path}: there is no such folder; make it first")
        if not Path(self.path).exists():
            return
        meta, arrays = read_npz(self.path)
        if "spec" not in meta or "run" not in meta:
            raise ValueError(f"{self.path} is no checkpoint of a run; name another file")
        own, own_arrays = self.learner._contents()
        same = same_spec((own["spec"], own_arrays), (meta["spec"], arrays))
        if not same or meta["run"]["loss"] != self.loss.name:
            raise ValueError(
                f"the checkpoint {self.path} is of {meta['run']['learner']} with "
                f"{meta['run']['loss']} loss, not of {self.learner!r} with {self.loss.name} loss; "
                "name another file or delete it"
            )
        if self.learner.rounds:
            raise ValueError(
                f"the learner has played {self.learner.rounds} rounds; "
                f"resume {self.path} with a fresh one"
            )
        self.saved = meta, {n: a for n, a in arrays.items() if not n.startswith("run_")}
        part = under("run_", arrays)
        clock = part.pop("checkpoints"), part.pop("checkpoint_seconds")
        self.clock = [(int(r), float(s)) for r, s in zip(*clock, strict=True)]
        self.rounds = self.saved_rounds = len(part["losses"])
        self.seconds = meta["run"]["seconds"]
        if self.rounds:
            self.parts = [part]

    def width(self) -> int | None:
        """Return the width of the data so far."""
        return self.saved[0]["width"] if self.saved else self.learner._width

    def adopt(self) -> None:
        """Give the learner the state of the checkpoint, once, when the data has proved good."""
        if self.saved:
            self.learner._adopt(*self.saved)
            self.saved = None

    def too_many(self, found: int) -> ValueError:
        """Return the error of a checkpoint that is ahead of its data."""
        return ValueError(
            f"the checkpoint {self.path} has played {self.rounds} rounds, but the data has only "
            f"{found}; pass the same data from the start, or name another file"
        )


def _chunks(X: Any, y: Any, recorder: _Recorder) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield checked (X, y) pieces; an array is checked whole, before its first round."""
    as_labels, signs = recorder.learner._as_labels, recorder.loss.classes
    if not recorder.chunked:
        X = checks.as_rows(X, recorder.width())
        yield X, as_labels(y, X.shape[0], signs)
        return
    for i, chunk in enumerate(X):
        if not (isinstance(chunk, tuple | list) and len(chunk) == 2):
            raise ValueError(
                f"chunk {i} of the stream must be a pair (X, y), but is {shown(chunk)}; pass pairs "
                "of arrays, or two arrays: okl.run(learner, X, y)"
            )
        part = checks.as_rows(chunk[0], recorder.width())
        yield part, as_labels(chunk[1], part.shape[0], signs)


def run(
    learner: Player,
    X: ArrayLike | Iterable,
    y: ArrayLike | None = None,
    loss: str | None = None,
    progress: bool = False,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike | None = None,
    every: int | None = None,
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
        made dense block by block; pairs are for streams larger than memory.
    y : array_like of shape (n,), optional
        Labels, (n, K) for MultiOutput, in the order of the rows (the index of a Series does not
        matter); None if X is an iterable of pairs.
    loss : str, optional
        Loss that is recorded; None: the learner's own.
    progress : bool
        Show a progress bar.
    time_limit : float, optional
        Seconds in the learner after which the run ends (looked at every few rounds).
    checkpoint : path, optional
        File that holds learner and run. If it exists the run goes on from it, with the same data
        from the start and a fresh learner of the same hyper-parameters; the result is the same as
        that of a run in one go.
    every : int >= 1, optional
        Rounds between two saves and readings of the clock; None: about every minute.

    Returns
    -------
    Run

    Raises
    ------
    ValueError
        If the data or an argument is not valid: for arrays before the first round, for an iterable
        before the first round of the bad pair.
    FloatingPointError
        If the numbers of a round are beyond double precision, or a first-order learner diverges (a
        forecast beyond 1e100); the message names the round and what to change.

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
    if not isinstance(learner, Player):
        data = isinstance(learner, list | tuple) or hasattr(learner, "shape")
        hint = "; the learner comes first: okl.run(learner, X, y)" if data else ""
        raise ValueError(
            "learner must be an oklnumba learner such as okl.PKAWV(okl.TaylorFeatures(2)), or "
            f"OneVsRest, MultiOutput or OnlineToBatch around one, but is {told(learner)}{hint}"
        )
    if isinstance(X, str | os.PathLike):
        raise ValueError(f"X is the path {str(X)!r}; read the file first, as pandas.read_csv does")
    checks.refuse_swapped(X, y)
    recorded = learner._recorded(loss)
    if time_limit is not None:
        checks.require_positive("time_limit", time_limit)
    if every is not None:
        checks.require_count("every", every, 1)
    chunked = y is None and not hasattr(X, "shape") and _is_chunked(X)
    recorder = _Recorder(learner, recorded, checkpoint, every, chunked)
    recorder.resume()
    skip, finished, data = recorder.rounds, True, None
    with tqdm(disable=not progress, unit=" rounds", initial=skip, unit_scale=True) as bar:
        for part, labels in _chunks(X, y, recorder):
            if not chunked:
                bar.total = len(labels)
                data = (part, labels)
            if skip >= len(labels):
                skip -= len(labels)
                continue
            recorder.adopt()
            part, labels = part[skip:], labels[skip:]
            learner._advise(part, labels)
            finished = _play_piece(recorder, part, labels, time_limit, bar)
            skip = 0
            if not finished:
                break
    if skip:
        raise recorder.too_many(recorder.rounds - skip)
    recorder.adopt()
    if checkpoint is not None:
        recorder.save(finished)
    return Run(recorder.arrays(), recorder.meta(finished), data)


def _play_piece(
    recorder: _Recorder, X: Any, y: np.ndarray, time_limit: float | None, bar: tqdm
) -> bool:
    """Play the rows of X with looks at the clock in between; False where the time is up."""
    start = 0
    while start < len(y):
        rows = _next_rows(recorder, len(y) - start, time_limit)
        if rows == 0:
            return False
        part = slice(start, start + rows)
        begin = time.perf_counter()
        trace = recorder.learner._play_rows(X[part], y[part])
        recorder.add(y[part], trace, time.perf_counter() - begin)
        bar.update(rows)
        start += rows
        if recorder.due():
            recorder.save(finished=False)
    return True


def _next_rows(recorder: _Recorder, left: int, time_limit: float | None) -> int:
    """Return how many rounds to play before the clock is looked at; 0 when time is up."""
    rows = min(left, max(FIRST_ROWS, recorder.rounds), recorder.learner._run_rows)
    if recorder.every is not None:
        rows = min(rows, recorder.every - recorder.rounds % recorder.every)
    if time_limit is not None:
        rest = time_limit - recorder.seconds
        if rest <= 0.0:
            return 0
        if len(recorder.clock) > 1:
            (r0, s0), (r1, s1) = recorder.clock[-2:]
            rows = min(rows, max(1, int(rest * (r1 - r0) / max(s1 - s0, 1e-9))))
    return rows
