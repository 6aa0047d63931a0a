"""``oklnumba run``: the progressive table and the summary."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.core.files import find_target
from oklnumba.core.schema import Schema
from oklnumba.protocol.class_scores import ClassScores, score_classes

FIRST = 64  # round of the first line of the table


class Course:
    """A learner and the sums of its run, in pieces, whose rows have a schema."""

    def __init__(self, learner: Any, schema: Schema, labels: str = "required"):
        self.learner, self.labels = learner, labels
        self.classes = schema.classes is not None
        learner._schema = schema  # pieces have no names
        self.rounds, self.labelled, self.wrong, self.total, self.seconds = 0, 0, 0, 0.0, 0.0
        self.parts: list[tuple] = []  # of classes: labels, scores and mistakes of each piece

    def play(self, X: np.ndarray, y: np.ndarray) -> okl.Run:
        """Play a piece and add it to the sums."""
        if not self.rounds:
            okl.warm_up(self.learner)  # times are without compilation
        run = okl.run(self.learner, X, y, labels=self.labels)
        self.rounds += run.rounds
        self.total += float(np.nansum(run.losses))
        self.wrong += int(run.mistakes.sum()) if self.classes else 0
        self.seconds += run.seconds
        if (rounds := run.class_rounds) is not None:
            self.parts.append(rounds)
        if run.rounds:
            self.last, self.labelled = run, self.labelled + int(run.labelled[-1])
        if run.interrupted:
            raise KeyboardInterrupt
        return run

    def score_classes(self) -> ClassScores:
        """Return how the forecasts of classes stand beside rules of thumb."""
        labels, scores, mistakes = map(np.concatenate, zip(*self.parts, strict=True))
        return score_classes(labels, scores, mistakes, self.learner._loss().name)

    @property
    def sum(self) -> float:
        """Mistakes times 100, or the sum of the losses."""
        return 100.0 * self.wrong if self.classes else self.total

    @property
    def mean(self) -> float:
        """Mistakes in per cent, or the mean loss."""
        return self.sum / max(self.labelled, 1)

    @property
    def rate(self) -> int:
        """Rounds a second, two digits."""
        return int(float(f"{self.rounds / max(self.seconds, 1e-9):.2g}"))


def wrap_for_classes(learner: Any, classes: tuple | None) -> Any:
    """Return the learner, in a OneVsRest if there are more than two classes."""
    if classes is None or len(classes) == 2:
        return learner
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
    if args.lags is not None or args.season is not None:
        learner = okl.Lags(learner, lags=3 if args.lags is None else args.lags, season=args.season)
    if args.save and find_target(args.save)[0] == Path(args.file).resolve():
        raise ValueError(f"{args.save} is the file that is played; write to another")
    table = source.open_table(args)
    learner = wrap_for_classes(learner, table.classes)
    print(f"learner   {learner!r}", flush=True)
    course = Course(learner, table.schema, args.labels)
    pieces = source.read_rounds(table, args.rows)
    interrupted = None
    with closing(pieces), print_warnings():
        try:
            print_table(course, cut_at_powers(pieces))
        except KeyboardInterrupt as error:
            interrupted = error
    summarise(course)
    if args.save and course.rounds:
        course.learner.save(args.save)
        print(f"saved     {args.save}: oklnumba.load reads it")
    if interrupted:
        raise interrupted


def cut_at_powers(pieces: source.Pairs) -> source.Pairs:
    """Cut pieces so that one ends at each of the rounds 64, 128, 256 and so on."""
    done, stop = 0, FIRST
    for X, y in pieces:
        while len(y):
            rows = min(len(y), stop - done)
            yield X[:rows], y[:rows]
            X, y, done = X[rows:], y[rows:], done + rows
            stop *= 1 + (done == stop)


def print_table(course: Course, pieces: source.Pairs) -> None:
    """Play the pieces and print a line at rounds 64, 128, 256 and so on."""
    last_rounds, last_labels, last_sum = 0, 0, 0.0
    for X, y in pieces:
        played = course.play(X, y)
        if course.rounds == played.rounds:
            what = "mistakes %" if course.classes else played.loss
            print(f"\n{what:>12} {'since':>12} {'round':>12} {'current':>12} {'current':>12} "
                  f"{'size':>8}\n{'so far':>12} {'last':>12} {'':12} {'label':>12} "
                  f"{'forecast':>12}")  # fmt: skip
        if course.rounds == max(FIRST, 2 * last_rounds):
            since = (course.sum - last_sum) / max(course.labelled - last_labels, 1)
            last = y[-1], played.predictions[-1]  # of classes texts, integers or None
            label, forecast = (f"{v:.5g}" if isinstance(v, float) else f"{v!s:.12}" for v in last)
            print(
                f"{course.mean:12.5g} {since:12.5g} {course.rounds:12d} {label:>12} "
                f"{forecast:>12} {course.last.sizes[-1]:8d}",
                flush=True,
            )
            last_rounds, last_labels, last_sum = course.rounds, course.labelled, course.sum


def summarise(course: Course) -> None:
    """Print the totals and, if there is one, the certificate."""
    if not course.rounds:
        return
    few = f", {course.labelled} with a label" if course.labelled < course.rounds else ""
    print(f"\nrounds    {course.rounds}{few}")
    if course.classes and course.labelled:
        scores = course.score_classes()
        print(f"mistakes  {course.mean:.4g} % ({course.wrong})")
        print(f"          {scores.rules}\n          {scores}")
    if course.last.loss != "zero-one" and course.labelled:
        print(f"loss      {course.total / course.labelled:.6g} ({course.last.loss}, mean)")
    print(f"time      {course.seconds:.3g} s in the learner, {course.rate:,} rounds per second")
    print(f"size      {course.last.sizes[-1]}")
    if course.last.outliers:
        print(f"outliers  {course.last.outliers}")
    if hasattr(course.learner, "leader"):
        print(f"leader    {course.learner.leader}")
    if (certificate := course.last.certificate) is not None:
        regret, bound = (np.max(a[-1]) for a in (certificate.regret, certificate.bound))
        each = ", the largest of all classes" if certificate.regret.ndim > 1 else ""
        ends = f"regret    {regret:.5g}, bound {bound:.5g}{each}, squared loss"
        print(f"{ends}, against the best function of")
        print(f"          {certificate.space}")
        if isinstance(certificate.member, str):
            print(f"          {certificate.member}")
