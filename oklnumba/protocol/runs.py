"""The result of a run: its rounds, its regret, and the certificate."""

import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from oklnumba import theory
from oklnumba.components import losses
from oklnumba.components.kernels import Kernel
from oklnumba.core.checks import import_optional
from oklnumba.core.display import number, table
from oklnumba.core.files import name_contents, read_npz, write_npz
from oklnumba.core.inputs import as_label_array, as_rows, find_labels, make_dense
from oklnumba.core.schema import Schema
from oklnumba.core.state import select_prefix
from oklnumba.protocol.class_scores import ClassScores, score_classes
from oklnumba.theory.passes import as_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTLED = 32  # rounds that ``Run.settled_mean_loss`` leaves out
COSTLY = 0.1  # of the loss: what outliers cost, from which on a summary says what to do
# What a run may lack is None there. ``Any`` spares scripts a check, as typeshed does for
# ``re.Match.group``.
Numbers: TypeAlias = np.ndarray | Any
SUMS = {"losses": "loss_sums", "mistakes": "mistake_sums"}  # where not every round is recorded


class Certificate(NamedTuple):
    """Regret in the learner's space and its bound after every round, for squared loss.

    A poor space has a poor best function, against which any learner looks good: ``space`` names the
    space. ``Run.regret(kernel, lam, at=1)`` has the regret against a whole RKHS.

    For a learner with a discount g < 1 all sums up to round t weigh round s by g^(t - s), and the
    penalty is the one that the learner has then. So they say how well it has done lately;
    ``theory.discounted_awv_bound`` has the undiscounted regret against functions that move.

    If the learner had played before the run, the sums include those rounds.

    Attributes
    ----------
    loss : ndarray of shape (n,)
        Cumulative squared loss of the forecasts.
    comparator : ndarray of shape (n,)
        min_f sum (y - f(x))^2 + lam |f|^2 over the learner's space, on each prefix.
    regret : ndarray of shape (n,)
        loss - comparator.
    bound : ndarray of shape (n,)
        sum_t y_t^2 z_t' A_t^-1 z_t, which is what the proof of pkawv Proposition 1 takes up to its
        max |y|^2 log det(A / lam), plus what growth of the space took off the comparator. Ridge
        forecasts f_t have (y_t - f_t)^2 for y_t^2: the regret itself, growth aside. Infinite if
        labels of rounds before the run came late.
    space : str
        The space after the last round, with the discount if there is one.
    guaranteed : ndarray of shape (n,)
        The loss that cannot be exceeded: comparator + bound, the least of all members.
    member : str, list of str, or None
        Where a learner has several: the one with the least comparator after the last round, which
        is the one shown, of each output.
    rounds : int
        Rounds that the learner has played, in this run and before it.
    """

    loss: np.ndarray
    comparator: np.ndarray
    regret: np.ndarray
    bound: np.ndarray
    space: str
    guaranteed: np.ndarray
    member: str | list[str] | None
    rounds: int

    def __repr__(self) -> str:
        if len(self.loss) == 0:
            return "Certificate(0 rounds)"
        space = f"{self.space} ({self.member})" if isinstance(self.member, str) else self.space
        last = [", ".join(f"{v:.4g}" for v in np.ravel(a[-1:])) for a in (self.regret, self.bound)]
        return (
            f"Certificate({self.rounds} rounds against the best function of {space}: "
            f"regret {last[0]}, bound {last[1]})"
        )


class Run:
    """A run of the online protocol.

    Arrays have one entry for each of the n rounds ``recorded``: all of them, unless ``okl.run`` was
    told otherwise. Means are over all rounds played. Of ``MultiOutput``, with K labels per round,
    predictions, losses, mistakes and the certificate have shape (n, K). Of ``OneVsRest`` the
    predictions are classes, the loss is 0 or 1, and the certificate, (n, K), is that of the
    scorers, in squared loss.

    Attributes
    ----------
    predictions : ndarray of shape (n,)
    losses : ndarray of shape (n,)
    sizes : ndarray of int, shape (n,)
        Size of the dictionary, or number of features, after each round.
    mistakes : ndarray of bool, shape (n,), or None
        y * prediction <= 0, so a forecast of exactly 0 counts; None unless all labels are -1 or +1.
        Of ``OneVsRest``: whether the class was another one.
    scores : ndarray of shape (n, K), or None
        The scores of ``OneVsRest``, one column per class: logs of probabilities, but for
        a constant per round.
    intervals : ndarray of shape (n, 2), of K labels (n, K, 2), or None
        The lower and upper ends of ``Intervals``, each made before its label was seen.
    seconds : float
        Time in the learner.
    checkpoints, checkpoint_seconds : ndarray
        Rounds after which the clock was read, and the seconds then.
    finished, interrupted : bool
        Whether the data was played to its end, and whether Ctrl-C (or SIGTERM) ended the run.
    loss, learner : str
        Name of the loss, and the learner's repr.
    late : str
        How labels came, such as "delay=10"; "" if each came right after its forecast.
    schema : Schema or None
        What a row means: names, encoded values, classes; None for arrays.
    certificate : Certificate or None
        For AWV and ridge learners whose labels were not late: no theorem here covers late ones.

    Remarks
    -------
    A run holds the arrays X and y it was given, not copies: ``regret`` needs them unchanged. It
    looks at 64 to 127 rows of X, as they were after the run, and raises ValueError if they differ.
    """

    plot: ClassVar["Callable[[Run], Figure]"]  # oklnumba/__init__.py, as plots stand above

    def __init__(self, arrays: dict[str, np.ndarray], meta: dict[str, Any], data: Any = None):
        self._arrays, self._meta, self._data = arrays, meta, data
        if data is not None:
            self._some = slice(None, None, max(1, data[0].shape[0] // 64))  # of all of X
            self._some_rows = data[0][self._some].copy()  # they tell whether it was changed since
        self.predictions, self.losses = arrays["predictions"], arrays["losses"]
        self.sizes = arrays["sizes"]
        self.mistakes: Numbers = arrays.get("mistakes")
        self.scores: Numbers = arrays.get("scores")
        self.intervals: Numbers = arrays.get("intervals")
        self.checkpoints = arrays["checkpoints"]
        self.checkpoint_seconds = arrays["checkpoint_seconds"]
        self.rounds, self.seconds = int(meta["rounds"]), float(meta["seconds"])
        self.finished, self.interrupted = bool(meta["finished"]), bool(meta["interrupted"])
        self.loss, self.learner, self.late = meta["loss"], meta["learner"], meta.get("late", "")
        schema = meta.get("schema")  # None of arrays
        self.schema: Schema | None = schema and Schema.from_json(schema)
        self.certificate: Certificate | Any = None
        if "comparator" in arrays:
            loss, comparator, bound = (arrays[name] for name in ("loss", "comparator", "bound"))
            guaranteed = arrays.get("guaranteed", comparator + bound)
            with np.errstate(invalid="ignore"):  # squares of labels beyond 1e154
                regret = loss - comparator
            self.certificate = Certificate(
                loss, comparator, regret, bound, meta["space"], guaranteed,
                meta["member"], int(meta["played"]),
            )  # fmt: skip

    @property
    def outliers(self) -> str:
        """How many labels ``SelfTuning`` took for outliers, and what they cost; "" for none."""
        count, share = self._meta.get("outliers", (0, 0.0))
        if not count:
            return ""
        cost = f", {share:.1%} of the loss" if share > 0.0 else ""  # near a forecast they cost less
        hint = "; if they are no errors: SelfTuning(outliers=False)" if share > COSTLY else ""
        return f"{count} labels taken for outliers{cost}{hint}"

    @cached_property
    def recorded(self) -> np.ndarray:
        """The rounds that are stored, counted from 1, shape (n,); the last one always is."""
        return self._arrays.get("recorded", np.arange(1, self.rounds + 1))

    def without_data(self) -> Self:
        """Return the run without inputs and labels: ``regret`` is refused, all else stays."""
        return type(self)(self._arrays, self._meta)

    @property
    def loss_sums(self) -> np.ndarray:
        """Sums of the losses of all rounds up to each of those recorded, shape (n,) or (n, K)."""
        return self._sums("losses")

    @property
    def mistake_sums(self) -> Numbers:
        """Mistakes in all rounds up to each of those recorded; None for regression."""
        return None if self.mistakes is None else self._sums("mistakes")

    def _sums(self, name: str) -> np.ndarray:
        sums = self._arrays.get(SUMS[name])
        return np.nancumsum(getattr(self, name), axis=0) if sums is None else sums

    @property
    def labelled(self) -> np.ndarray:
        """Rounds with a label up to each of those recorded, shape (n,): what means are over."""
        return self._arrays.get("labelled", self.recorded)

    @property
    def mean_loss(self) -> float:
        """Average loss per round."""
        return self._mean("losses")

    @property
    @np.errstate(under="ignore")
    def settled_mean_loss(self) -> float:
        """Average loss from round 33 on, where ``SelfTuning`` has first restarted; NaN before.

        The first forecast is 0: labels around 300 cost 90,000 then, which ``mean_loss`` contains.
        """
        if self.rounds <= SETTLED:
            return float("nan")
        if "loss_sums" not in self._arrays:
            losses = self.losses[SETTLED:][~np.isnan(self.losses[SETTLED:])]
            return float(losses.mean()) if losses.size else float("nan")
        first_loss, first_labels = self._meta["first"]  # of the rounds left out
        labels = int(self.labelled[-1]) - first_labels
        return float(self.loss_sums[-1].mean() - first_loss) / labels if labels else float("nan")

    @property
    def mistake_rate(self) -> float | Any:
        """Share of rounds with a mistake; None for regression."""
        return None if self.mistakes is None else self._mean("mistakes")

    @cached_property
    def class_scores(self) -> ClassScores | Any:
        """How the forecasts stand beside "always the commonest class" and "the last label".

        With balanced accuracy, log loss and AUC, which say more than the mistake rate where a class
        is rare. None for regression, unless every round was recorded, and for an estimator's
        ``run_`` in which classes came later, which has no scores.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
        >>> y = np.where(X.sum(axis=1) > 1.3, 1.0, -1.0)  # +1 is rare
        >>> scores = okl.run(okl.LinearAWV(), X, y).class_scores
        >>> print(f"{scores.commonest:.3f}, {scores.balanced_accuracy:.3f}, {scores.auc:.2f}")
        0.056, 0.747, 0.95
        """
        rounds = self.class_rounds
        return None if rounds is None else score_classes(*rounds, self._meta["own_loss"])

    @property
    def class_rounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Labels, scores and mistakes of the rounds with a label; None as for ``class_scores``.

        Labels are places of classes, (n,), 0 for -1 and 1 for +1; scores are (n,), or (n, K) of
        ``OneVsRest``.
        """
        if self.mistakes is None or self.mistakes.ndim > 1 or len(self.recorded) < self.rounds:
            return None
        if self.scores is None and self._meta["outputs"]:  # join_runs left them out
            return None
        there = ~np.isnan(self.losses)
        labels = self._arrays["labels"][there].astype(np.int64)
        scores = self.predictions if self.scores is None else self.scores
        return (labels, scores[there], self.mistakes[there]) if len(labels) else None

    @np.errstate(under="ignore")
    def _mean(self, name: str) -> float:
        if not self.rounds or not self.labelled[-1]:
            return float("nan")
        if SUMS[name] in self._arrays or "labelled" in self._arrays:
            return float(self._sums(name)[-1].mean() / self.labelled[-1])
        return float(getattr(self, name).mean())

    @overload
    def regret(
        self, kernel: Kernel, lam: float, at: None = None, loss: str | None = None, *,
        data: Any = None,
    ) -> np.ndarray: ...  # fmt: skip

    @overload
    def regret(
        self, kernel: Kernel, lam: float, at: int | ArrayLike, loss: str | None = None, *,
        data: Any = None,
    ) -> theory.RegretCurve: ...  # fmt: skip

    def regret(
        self, kernel: Kernel, lam: float, at: int | ArrayLike | None = None,
        loss: str | None = None, *, data: Any = None,
    ) -> np.ndarray | theory.RegretCurve:  # fmt: skip
        """Return the regret against the best functions of an RKHS.

        ``theory.Hindsight(kernel, X, y, lam, loss).regret(run.predictions, at)`` is the same, and
        serves several runs over one stream; arguments, result, cost and accuracy are described
        there. For runs of several outputs, or that do not hold their data and all rounds, use
        ``theory.regret``.

        Parameters
        ----------
        kernel : Kernel
        lam : float > 0
        at : int or array_like of int, optional
            Only rounds with a label count.
        loss : str, optional
            None: ``run.loss``.
        data : stream or pair (X, y), optional
            What was played, if the run does not hold it: ``okl.stream(path, label=...)``, a
            function that returns an iterator of pairs (X, y), or arrays, as ``data=(X, y)``.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
        >>> run = okl.run(okl.POMDR(okl.Gaussian(1.0)), X, np.sign(X[:, 0]))
        >>> run.loss, run.regret(okl.Gaussian(1.0), lam=1.0, at=3).prefix_penalised.round(1)
        ('hinge', array([55.6, 70.2, 69.5]))
        """
        if self.scores is not None or self.predictions.ndim > 1:
            raise ValueError(
                "this run has several outputs; take the regret of one of them, on its labels y: "
                "theory.Hindsight(kernel, X, y, lam).regret(forecasts[:, k], at), forecasts being "
                "run.predictions of MultiOutput; it plays classes as labels -1 and +1 of each"
            )
        if len(self.recorded) < self.rounds:
            raise ValueError(
                "the regret needs the forecast of every round, but this run keeps "
                f"{len(self.recorded)} of {self.rounds}; play it with record='all'"
            )
        loss = self.loss if loss is None else loss
        data = self._find_data() if data is None else data
        if isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], tuple):
            [(X, y)] = read_labelled(lambda: [data], self.rounds)
            best = theory.Hindsight(kernel, make_dense(X), y, lam, loss)
        else:
            source = partial(read_labelled, as_source(data, "data"), self.rounds)
            best = theory.Hindsight(kernel, source, lam=lam, loss=loss)
        there = ~np.isnan(self.losses)
        forecasts, played = self.predictions[there], self.losses[there]
        if best.rounds != len(forecasts):
            raise ValueError(
                f"data has {best.rounds} labels in its first {self.rounds} rows, but this run had "
                f"{len(forecasts)}: pass what was played, from the first row on"
            )
        again = losses.get(self.loss).of_rounds(forecasts, best.labels)
        rounding = 1e-12 * played[played < np.inf].max(initial=0.0)
        fits = np.isclose(again, played, atol=rounding, equal_nan=True)
        if not fits.all():
            raise ValueError(
                f"data has another label than this run had in round {fits.argmin() + 1} of those "
                "with a label: pass what was played, in the same order"
            )
        return best.regret(forecasts, at)

    def _find_data(self) -> tuple[Any, np.ndarray]:
        """Return X and y as they were played; ValueError if they are not here, or X has changed."""
        if self._data is None:
            raise ValueError(
                "this run does not hold its data; pass what was played, data=okl.stream(...) or "
                "data=(X, y)"
            )
        now, then = make_dense(self._data[0][self._some]), make_dense(self._some_rows)
        if not np.array_equal(now, then):
            raise ValueError("X has changed since this run; pass what was played, data=(X, y)")
        return self._data

    def to_frame(self) -> Any:
        """Return the run as a pandas DataFrame, a row for each round that was recorded.

        Columns: ``round``, from 1; ``prediction``; ``loss``; ``mean_loss`` so far; where mistakes
        are counted ``mistake`` and ``mistake_rate`` so far; ``size``; ``low`` and ``high`` of
        ``Intervals``; with a certificate ``comparator``, ``regret`` and ``bound``, of all rounds
        that the learner has played. ``OneVsRest`` adds ``score_c`` for each class c; where there
        are several outputs k, ``prediction_k`` and so on.

        Examples
        --------
        >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        >>> run = okl.run(okl.KernelAWV(okl.Gaussian(1.0)), X, X[:, 0] * X[:, 1])
        >>> run.to_frame().columns.tolist()
        ['round', 'prediction', 'loss', 'mean_loss', 'size', 'comparator', 'regret', 'bound']
        """
        pandas = import_optional("pandas", "Run.to_frame")
        columns = {"round": self.recorded, **self._columns("prediction", self.predictions)}
        if self.scores is not None:
            columns |= self._columns("score", self.scores)
        columns |= self._columns("loss", self.losses)
        columns["mean_loss"] = self._mean_so_far("losses")
        if self.mistakes is not None:
            columns |= self._columns("mistake", self.mistakes)
            columns["mistake_rate"] = self._mean_so_far("mistakes")
        columns["size"] = self.sizes
        if self.intervals is not None:
            for name, ends in zip(("low", "high"), np.moveaxis(self.intervals, -1, 0), strict=True):
                columns |= self._columns(name, ends)
        for name in ("comparator", "regret", "bound") if self.certificate else ():
            columns |= self._columns(name, getattr(self.certificate, name))
        return pandas.DataFrame(columns)

    @np.errstate(under="ignore")
    def _mean_so_far(self, name: str) -> np.ndarray:
        """Return the means over all rounds up to each of those recorded, and all outputs."""
        sums = self._sums(name)
        counts = np.where(self.labelled, self.labelled, np.nan)  # none before the first label
        return sums.mean(axis=tuple(range(1, sums.ndim))) / counts

    def _columns(self, name: str, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values by name, one for each output where they have a column for each."""
        if values.ndim == 1:
            return {name: values}
        outputs = self._meta["outputs"] or range(values.shape[1])
        return {f"{name}_{output}": values[:, k] for k, output in enumerate(outputs)}

    def save(self, path: str | os.PathLike) -> None:
        """Write the run into one ``.npz`` file, without the data."""
        rows = {f"run_{name}": a for name, a in self._arrays.items()}
        write_npz(path, {"run": self._meta}, rows)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Return a run that ``save`` or a checkpoint wrote."""
        return cls._from_file(path, *read_npz(path))

    @classmethod
    def _from_file(cls, path: str | os.PathLike, meta: dict[str, Any], arrays: Any) -> Self:
        if "run" not in meta:
            raise ValueError(f"{path} holds {name_contents(meta)}, not a run; okl.load reads it")
        return cls(select_prefix("run_", arrays), meta["run"])

    def _describe(self) -> dict[str, Any]:
        """Return what to show of the run, by name."""
        late = f", {self.late} (no certificate)" if self.late else ""
        end = "" if self.finished else ", unfinished"  # at a time limit, or on the way
        end = ", interrupted" if self.interrupted else end
        shown: dict[str, Any] = {"rounds": f"{self.rounds:,}{late}{end}"}
        shown[f"mean {self.loss} loss"] = self.mean_loss
        if self.mistakes is None and self.rounds > SETTLED:
            shown[f"from round {SETTLED + 1} on"] = self.settled_mean_loss
        if self.mistakes is not None and self.labelled[-1:].any():
            scores = self.class_scores
            beside = f" ({scores.rules}, {scores})" if scores else ""
            shown["mistakes"] = f"{100 * self.mistake_rate:.2f} %{beside}"
        if self.certificate is not None and self.rounds:  # all outputs added up
            shown["regret"] = float(np.sum(self.certificate.regret[-1]))
            shown["bound on the regret"] = float(np.sum(self.certificate.bound[-1]))
        if self.rounds:
            shown["size"] = int(self.sizes[-1])
        if self.outliers:
            shown["outliers"] = self.outliers
        return shown | {"seconds": f"{self.seconds:.3g}"}

    def __repr__(self) -> str:
        shown = (
            (name, v if isinstance(v, str) else number(v)) for name, v in self._describe().items()
        )
        return f"Run({self.learner}: {', '.join(f'{name} {v}' for name, v in shown)})"

    def _repr_html_(self) -> str:
        return table("run", {"learner": self.learner} | self._describe())


def read_labelled(source: Any, rounds: int) -> Iterator[tuple[Any, Any]]:
    """Yield the rows with a label among the first ``rounds`` of a stream."""
    for X, y in source():
        X, y = as_rows(X)[:rounds], as_label_array(y)[:rounds]
        there = find_labels(y)
        yield (X, y) if there.all() else (X[there], y[there])
        rounds -= len(y)
        if not rounds:
            return


def join_runs(first: Run, later: Run) -> Run:
    """Return two runs of one learner that keep all rounds as one, without what one of them lacks.

    Scores and certificates of fewer classes are lacking, too.
    """
    old, new, cut = first._arrays, later._arrays, len(first.checkpoints)
    both = [name for name in old if name in new and old[name].shape[1:] == new[name].shape[1:]]
    arrays = {name: np.concatenate([old[name], new[name]]) for name in both}
    arrays["checkpoints"][cut:] += first.rounds
    arrays["checkpoint_seconds"][cut:] += first.seconds
    rounds, seconds = first.rounds + later.rounds, first.seconds + later.seconds
    return Run(arrays, later._meta | {"rounds": rounds, "seconds": seconds})
