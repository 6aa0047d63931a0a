"""``oklnumba run``: the progressive table, the summary, the plot."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.components import losses
from oklnumba.core.display import Bar
from oklnumba.core.files import replacing

FIRST = 512  # rounds played before the table is first written; WARM: to compile, see ``warm``
WARM = 600
INTERRUPTED = 130
MARKS = np.unique(np.round(1.02 ** np.arange(1400.0)))  # rounds that a plot shows


class Course:
    """Sums of a run that is played in pieces, in memory that does not grow."""

    def __init__(self, learner: Any, loss: str | None = None):
        self.learner, self.loss = learner, loss
        self.rounds, self.total, self.wrong, self.seconds, self.size = 0, 0.0, 0, 0.0, 0
        self.classes, self.interrupted = True, False
        self.certificate: okl.Run | Any = None
        self.points: list[tuple[int, float, float, float]] = []  # rounds, mean, regret, bound

    def play(self, X: np.ndarray, y: np.ndarray) -> okl.Run:
        """Play a piece, up to where Ctrl-C stops it, and add it up."""
        run = okl.run(self.learner, X, y, loss=self.loss)
        self.interrupted = run.interrupted
        before, measure = self.total_measure(run), self.measure(run)
        ends = self.rounds, self.rounds + run.rounds
        at = MARKS[slice(*np.searchsorted(MARKS, ends, side="right"))].astype(np.int64)
        means = (before + np.cumsum(measure)[at - 1 - self.rounds]) / at
        regrets = np.full((2, len(at)), np.nan)
        if run.certificate is not None and run.certificate.regret.ndim == 1:
            places = at - 1 - self.rounds
            regrets[:] = run.certificate.regret[places], run.certificate.bound[places]
        self.points += zip(at.tolist(), means.tolist(), *regrets.tolist(), strict=True)
        self.rounds += run.rounds
        self.total += float(run.losses.sum())
        self.wrong += int(run.mistakes.sum()) if run.mistakes is not None else 0
        self.seconds += run.seconds
        if run.rounds:
            self.size, self.certificate, self.name = int(run.sizes[-1]), run.certificate, run.loss
        return run

    def measure(self, run: okl.Run) -> np.ndarray:
        """Return what the table counts at each round: mistakes in per cent, or losses."""
        self.classes = run.mistakes is not None
        return 100.0 * run.mistakes if self.classes else run.losses

    def total_measure(self, run: okl.Run) -> float:
        """Return the sum of what the table counts, up to the last piece."""
        return 100.0 * self.wrong if run.mistakes is not None else self.total

    @property
    def error(self) -> float:
        """Mistakes, per cent, or the mean loss."""
        return (100.0 * self.wrong if self.classes else self.total) / max(self.rounds, 1)


def task_of(args: argparse.Namespace) -> tuple[source.Source, source.Labels]:
    """Return the table that the options name and what its labels are; say so."""
    table = source.find(args)
    labels = source.look(table, args.task)
    size = f"{labels.rows} rows, " if labels.rows else ""
    count = len(table.columns)
    print(f"file      {table.name}: {size}{count} column{'s' * (count != 1)}")
    print(f"labels    {table.label}: {labels.said}")
    return table, labels


def for_classes(learner: Any, labels: source.Labels) -> Any:
    """Return the learner, or one for each class where there are more than two."""
    if labels.classes is None or len(labels.classes) == 2:
        return learner
    return okl.OneVsRest(learner, classes=labels.classes)


def warm(learner: Any, X: np.ndarray, y: np.ndarray, loss: str | None = None) -> None:
    """Play a few rounds, so that times are without compilation, and forget them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if okl.run(learner, X[:WARM], y[:WARM], loss=loss).interrupted:
            raise KeyboardInterrupt
    learner.reset()


def cut(
    stream: Iterator[tuple[np.ndarray, np.ndarray]],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut pieces where the number of rounds is FIRST, twice that, and so on."""
    done, stop = 0, FIRST
    for X, y in stream:
        while len(y):
            rows = min(len(y), stop - done)
            yield X[:rows], y[:rows]
            X, y, done = X[rows:], y[rows:], done + rows
            stop *= 1 + (done == stop)


def head(classes: bool, loss: str) -> str:
    """Return the two lines above the table."""
    what = "mistakes %" if classes else loss
    return (
        f"{what:>12} {'since':>12} {'round':>12} {'current':>12} {'current':>12} {'size':>8}\n"
        f"{'so far':>12} {'last':>12} {'':>12} {'label':>12} {'forecast':>12}"
    )


def lines(course: Course, run: okl.Run, y: np.ndarray, last: list[float]) -> Iterator[str]:
    """Yield the lines of the table that fall into a piece; ``last`` is round and sum of the last.

    Rounds 1, 2, 4 and so on.
    """
    measure = course.measure(run)
    before = course.rounds - run.rounds
    sums = course.total_measure(run) - measure.sum() + np.cumsum(measure)
    at = 1 << max(before, 0).bit_length()
    while at <= course.rounds:
        i = at - before - 1
        since = (sums[i] - last[1]) / (at - last[0])
        last[:] = at, sums[i]
        yield (
            f"{sums[i] / at:12.5g} {since:12.5g} {at:12d} {_short(y[i]):>12} "
            f"{_short(run.predictions[i]):>12} {run.sizes[i]:8d}"
        )
        at *= 2


def _short(value: Any) -> str:
    """Return a label or forecast in at most 12 characters."""
    return str(value)[:12] if isinstance(value, str) else f"{float(value):.5g}"


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Give a list that Ctrl-C fills: a piece is then played to its end; a second Ctrl-C raises."""
    seen: list[int] = []

    def note(number: int, _: Any) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield seen  # signals belong to the main thread
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def notes() -> Iterator[None]:
    """Write warnings as lines on stderr."""

    def note(message: Any, *_: Any, **__: Any) -> None:
        print(f"oklnumba: note: {source.first_line(message)}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = note
        yield


def run(args: argparse.Namespace) -> int:
    """Play a file or a data set; return the exit status.

    Parameters
    ----------
    args : Namespace
        Options of ``oklnumba run``.

    Raises
    ------
    ValueError, TypeError, OSError
        If an option, the file or its content is not valid.
    """
    learner = spelling.learner(args.learner, args.set)
    if args.seed is not None:
        learner.set_params(seed=args.seed)
    if args.loss is not None:
        losses.get(args.loss)
    refuse_outputs(args)
    table, labels = task_of(args)
    course = Course(for_classes(learner, labels), args.loss)
    print(f"learner   {course.learner!r}", flush=True)
    status = _play(course, source.rounds(table, labels, args.rows), labels, args)
    summary(course)
    if args.save and course.rounds:
        course.learner.save(args.save)
        print(f"saved     {args.save}: oklnumba.load reads it")
    if args.plot and course.rounds:
        with replacing(args.plot) as partial:
            draw(course, str(learner)).savefig(partial, dpi=200, format=picture(args.plot))
        print(f"plot      {args.plot}")
    return status


def refuse_outputs(args: argparse.Namespace) -> None:
    """Raise, before anything is played, where model or plot could not be written at the end.

    Nor are they written over the file that is played.
    """
    for path in map(Path, filter(None, (args.save, args.plot))):
        if not path.parent.is_dir():
            raise ValueError(f"{path}: there is no such folder; make it first")
        if path.resolve() == Path(args.file).resolve():
            raise ValueError(f"{path} is the file that is played; write to another")
    if args.plot:
        known = okl.plots.figure(columns=1)[0].canvas.get_supported_filetypes()
        if picture(args.plot) not in known:
            raise ValueError(
                f"{args.plot}: no picture is written so; end it in one of {', '.join(known)}"
            )


def picture(path: str) -> str:
    """Return the format of a picture, as its name says."""
    return Path(path).suffix.removeprefix(".").lower() or "png"


def _play(course: Course, stream: Any, labels: source.Labels, args: argparse.Namespace) -> int:
    """Play the stream and print the table; return the exit status."""
    last, total = [0, 0.0], args.rows or labels.rows
    bar = Bar(total=total, unit=" rounds", unit_scale=True, disable=not args.progress)
    with closing(stream), bar, notes(), interruptible() as interrupted:
        for X, y in cut(stream):
            if not course.rounds:
                warm(course.learner, X, y, args.loss)
            played = course.play(X, y)
            if course.rounds == played.rounds:
                bar.write(f"\n{head(course.classes, played.loss)}", file=sys.stdout)
            for line in lines(course, played, y, last):
                bar.write(line, file=sys.stdout)
            bar.update(played.rounds)
            if interrupted or course.interrupted:
                break
    return ended(bool(interrupted) or course.interrupted)


def ended(interrupted: bool) -> int:
    """Say that a run was interrupted, if it was; return the exit status."""
    if not interrupted:
        return 0
    print("interrupted", file=sys.stderr)
    return INTERRUPTED


def summary(course: Course) -> None:
    """Print what the run came to."""
    if not course.rounds:
        return
    print(f"\nrounds    {course.rounds}")
    if course.classes:
        print(f"mistakes  {course.error:.4g} % ({course.wrong})")
    if course.name != "zero-one":
        print(f"loss      {course.total / course.rounds:.6g} ({course.name}, mean)")
    print(f"time      {course.seconds:.3g} s in the learner, {rate(course)} rounds a second")
    print(f"size      {course.size}")
    if hasattr(course.learner, "leader"):
        print(f"leader    {course.learner.leader}")
    if (found := course.certificate) is not None:
        regret, bound = (np.max(a[-1]) for a in (found.regret, found.bound))
        each = ", the largest of all classes" if found.regret.ndim > 1 else ""
        within = f", bound {bound:.5g}" if np.isfinite(bound) else ""
        print(f"regret    {regret:.5g}{within}{each}, squared loss, against the best function of")
        print(f"          {found.space}")


def rate(course: Course) -> str:
    """Return rounds a second, two digits."""
    return f"{float(f'{course.rounds / max(course.seconds, 1e-9):.2g}'):,.0f}"


def draw(course: Course, title: str) -> Any:
    """Return the figure: mistakes or mean loss against rounds, and the certificate if any."""
    plots = okl.plots  # not before: matplotlib takes long to import
    at, mean, regret, bound = np.array(course.points).T
    certified = bool(np.isfinite(regret).any())
    figure, axes = plots.figure(columns=1 + certified, width=7.0 if certified else 4.5)
    ax = axes[0, 0]
    ax.plot(at, mean, color=plots.COLOURS[0], linewidth=1.3)
    ax.set_ylabel("mistakes so far (%)" if course.classes else f"mean {course.name} loss so far",
                  fontsize=plots.FONT)  # fmt: skip
    if certified:
        right = axes[0, 1]
        right.plot(at, regret, color=plots.COLOURS[1],
                   linewidth=1.3, label="regret in the own space")  # fmt: skip
        right.plot(at, bound, color=plots.COLOURS[1], linewidth=1.3, linestyle="--", label="bound")
        right.set_ylabel("squared loss, summed", fontsize=plots.FONT)
        right.set_yscale("symlog", linthresh=1.0)  # regret may be negative
        right.legend(fontsize=plots.FONT - 0.5, frameon=False)
    for one in axes[0]:
        one.set_xscale("log")
        one.set_xlabel("rounds", fontsize=plots.FONT)
        one.tick_params(labelsize=plots.FONT - 0.5)
        one.grid(True, linewidth=0.4, alpha=0.5)
        one.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title if len(title) < 90 else f"{title[:86]} ...", fontsize=plots.FONT)
    return figure
