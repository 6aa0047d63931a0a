"""``oklnumba run``: the progressive table and the summary."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.command.first_use import compiling_beside
from oklnumba.core.files import find_target
from oklnumba.core.inputs import FIRST_ROWS


def wrap_for_classes(learner: Any, classes: tuple | None) -> Any:
    """Return the learner, in a OneVsRest if there are more than two classes."""
    if classes is None or len(classes) == 2:
        return learner
    if isinstance(learner, okl.Horizon):
        raise ValueError(
            f"--steps is for numbers and two classes, but there are {len(classes)}; for codes that "
            "are numbers add --task regression, of classes forecast a column of 0 and 1 for each"
        )
    return okl.OneVsRest(learner, classes=classes)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Write warnings as lines on stderr."""

    def note(message: Any, *_: Any, **__: Any) -> None:
        print(f"oklnumba: note: {source.join_lines(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = note
        yield


def run(args: argparse.Namespace) -> None:
    """Play a learner on a file or a data set: forecast, see the label, learn."""
    learner = spelling.parse_learner(args.learner, args.set)
    past = {
        name: value for name in ("lags", "season") if (value := getattr(args, name)) is not None
    }
    if args.steps is not None:
        learner = okl.Horizon(learner, steps=args.steps, **past)
    elif isinstance(args.season, list):
        raise ValueError("several seasons are for forecasts steps ahead: add --steps, such as 1")
    elif past:
        learner = okl.Lags(learner, **past)
    for path in filter(None, (args.save, args.checkpoint)):
        find_target(path)  # which refuses what cannot be written
        if source.is_same(path, args.file):
            raise ValueError(f"{path} is the file that is played; write to another")
    if source.is_same(args.save, args.checkpoint):
        raise ValueError(f"{args.save} is the checkpoint too; save the model to another file")
    table = source.open_table(args)
    learner = wrap_for_classes(learner, table.classes)
    print(f"learner   {learner!r}", flush=True)
    learner._schema = table.schema  # pieces have no names
    lines, pieces = Lines(table.classes), source.read_rounds(table, args.rows)
    record = "none" if table.classes is None else "all"
    with closing(pieces), print_warnings():
        with compiling_beside(learner):
            okl.warm_up(learner)  # times are without compilation
        run = okl.run(
            learner, lines.cut(pieces), labels=args.labels, record=record, progress=lines.show,
            checkpoint=args.checkpoint, batch=args.batch,
        )  # fmt: skip
    if run.rounds:
        summarise(run, learner)
        if args.save:
            learner.save(args.save)
            print(f"saved     {args.save}: oklnumba.load reads it")
    if run.interrupted:
        raise KeyboardInterrupt


class Lines:
    """The table of a run, a line at rounds 64, 128, 256 and so on."""

    label: Any = None  # the last one
    rounds, labelled, sum = 0, 0, 0.0  # of the last line

    def __init__(self, classes: tuple | None):
        self.classes = classes

    def cut(self, pieces: source.Pairs) -> source.Pairs:
        """Cut pieces so that one ends at each of these rounds."""
        done, stop = 0, FIRST_ROWS
        for X, y in pieces:
            while len(y):
                rows = min(len(y), stop - done)
                self.label = y[rows - 1]
                yield X[:rows], y[:rows]
                X, y, done = X[rows:], y[rows:], done + rows
                stop *= 1 + (done == stop)

    def show(self, run: okl.Run) -> None:
        """Print a line, the first one below a heading."""
        if not self.rounds:
            what = "mistakes %" if self.classes else run.loss
            print(f"\n{what:>12} {'since':>12} {'round':>12} {'current':>12} {'current':>12} "
                  f"{'size':>8}\n{'so far':>12} {'last':>12} {'':12} {'label':>12} "
                  f"{'forecast':>12}")  # fmt: skip
        total = float(100.0 * run.mistake_sums[-1] if self.classes else run.loss_sums[-1])
        labelled = int(run.labelled[-1])
        since = (total - self.sum) / (labelled - self.labelled or np.nan)
        last: Any = self.label, run.predictions[-1]  # of several classes texts, integers or None
        if self.classes and len(self.classes) == 2 and self.classes != (-1, 1):
            last = [self.classes[int(v > 0.0)] if v == v else None for v in last]
        label, forecast = (f"{v:.5g}" if isinstance(v, float) else f"{v!s:.12}" for v in last)
        print(
            f"{total / (labelled or np.nan):12.5g} {since:12.5g} {run.rounds:12d} {label:>12} "
            f"{forecast:>12} {run.sizes[-1]:8d}",
            flush=True,
        )
        self.rounds, self.labelled, self.sum = run.rounds, labelled, total


def count_a_second(rounds: int, seconds: float) -> int:
    """Return rounds a second, two digits."""
    return int(float(f"{rounds / max(seconds, 1e-9):.2g}"))


def summarise(run: okl.Run, learner: Any) -> None:
    """Print the totals and, if there is one, the certificate."""
    labelled = int(run.labelled[-1])
    few = f", {labelled} with a label" if labelled < run.rounds else ""
    print(f"\nrounds    {run.rounds}{few}")
    if (scores := run.class_scores) is not None:
        print(f"mistakes  {100.0 * run.mistake_rate:.4g} % ({run.mistake_sums[-1]})")
        print(f"          {scores.rules}\n          {scores}")
    if run.loss != "zero-one" and labelled:
        print(f"loss      {run.mean_loss:.6g} ({run.loss}, mean)")
    speed = f"{count_a_second(run.rounds, run.seconds):,} rounds per second"
    print(f"time      {run.seconds:.3g} s in the learner, {speed}\nsize      {run.sizes[-1]}")
    if run.outliers:
        print(f"outliers  {run.outliers}")
    if hasattr(learner, "leader"):
        print(f"leader    {learner.leader}")
    if (certificate := run.certificate) is not None:
        regret, bound = (np.max(a[-1]) for a in (certificate.regret, certificate.bound))
        each = ", the largest of all classes" if certificate.regret.ndim > 1 else ""
        ends = f"regret    {regret:.5g}, bound {bound:.5g}{each}, squared loss"
        print(f"{ends}, against the best function of")
        print(f"          {certificate.space}")
        if isinstance(certificate.member, str):
            print(f"          {certificate.member}")
