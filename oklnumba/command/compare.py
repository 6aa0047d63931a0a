"""``oklnumba compare``: a dozen learners on one stream, one table."""

import argparse
import sys
from contextlib import closing
from itertools import chain
from math import comb, sqrt
from operator import itemgetter
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.command.first_use import compiling_beside
from oklnumba.command.run import count_a_second, print_warnings, wrap_for_classes
from oklnumba.core.inputs import find_labels
from oklnumba.core.schema import Schema
from oklnumba.protocol.class_scores import ClassScores, score_classes

UNIT_ROWS = 1000  # at the begin of a regression, at most a tenth: they set the unit of the labels
MOST_FEATURES = 2000  # with more Taylor features of degree 2 their learners are left out


def make_defaults(d: int, classification: bool) -> dict[str, Any]:
    """Return the learners that are compared, by name.

    The widths of kernels are sqrt(d), for inputs standardised by their past; gradient learners have
    the logistic loss in classification, else the squared one. The linear ones have an intercept.
    """
    sigma = sqrt(d)
    kernel, taylor = okl.Gaussian(sigma), okl.TaylorFeatures(2, sigma=sigma)
    fourier = okl.FourierFeatures(200, sigma=sigma)
    intercept = okl.BasisFeatures(lambda X: np.insert(X, 0, 1.0, axis=1), lambda d: np.eye(d + 1))
    loss = "logistic" if classification else "squared"
    eta = 0.3 if classification else 0.05
    learners: dict[str, Any] = {
        "LinearAWV": okl.WithFeatures(intercept, okl.LinearAWV()),
        "OGD": okl.WithFeatures(intercept, okl.OGD(eta, schedule="sqrt", loss=loss)),
        "PKAWV, Fourier": okl.PKAWV(fourier),
        "NystromAWV": okl.NystromAWV(kernel, max_size=200),
        "KRLS": okl.KRLS(kernel, threshold=0.05),
        "FOGD": okl.FOGD(fourier, eta=eta, loss=loss),
        "NOGD": okl.NOGD(kernel, eta=eta, budget=200, rank=100, loss=loss),
        "KernelOGD": okl.KernelOGD(kernel, eta=eta, budget=400, loss=loss),
        "BOGD": okl.BOGD(kernel, eta=eta, budget=400, loss=loss),
    }
    if comb(d + 2, 2) <= MOST_FEATURES:
        adagrad = okl.AdaptiveFTRL("adagrad", eta=0.5, loss=loss)
        learners["PKAWV, Taylor"] = okl.PKAWV(taylor)
        learners["AdaGrad on Taylor"] = okl.WithFeatures(taylor, adagrad)
    scaled = {name: okl.Standardized(one) for name, one in learners.items()}
    return {"SelfTuning": okl.SelfTuning()} | scaled


class Course:
    """A learner and the sums of its run, in pieces, whose rows have a schema."""

    def __init__(self, learner: Any, schema: Schema, labels: str = "required"):
        self.learner, self.labels = learner, labels
        self.classes = schema.classes is not None
        learner._schema = schema  # pieces have no names
        self.rounds, self.labelled, self.loss, self.seconds = 0, 0, 0.0, 0.0
        self.parts: list[tuple] = []  # of classes: labels, scores and mistakes of each piece

    def play(self, X: np.ndarray, y: np.ndarray) -> okl.Run:
        """Play a piece and add it to the sums."""
        if not self.rounds:
            with compiling_beside(self.learner):
                okl.warm_up(self.learner)  # times are without compilation
        run = okl.run(self.learner, X, y, labels=self.labels)
        self.rounds += run.rounds
        self.loss += float(np.nansum(run.losses))
        self.seconds += run.seconds
        if self.classes and (rounds := run.class_rounds) is not None:
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


def compare(args: argparse.Namespace) -> None:
    """Play learners side by side on one stream; a dozen if none is named."""
    named = {text: spelling.parse_learner(text) for text in args.learner or []}
    table = source.open_table(args)
    regression, d = table.classes is None, table.width
    if not named:
        named = make_defaults(d, not regression)
        print(f"learners  {len(named)}, all but SelfTuning on inputs standardised by their past,")
        print(f"          kernels and features of width {sqrt(d):.3g}")
    players = {name: wrap_for_classes(one, table.classes) for name, one in named.items()}
    courses = {name: Course(one, table.schema, args.labels) for name, one in players.items()}
    pieces, skipped = source.read_rounds(table, args.rows), 0
    if regression and not args.learner:
        pieces, skipped = scale_labels(pieces)
    if skipped:
        print(f"          the first {skipped} rows set the unit of the labels and are not played")
    sys.stdout.flush()
    with closing(pieces), print_warnings():
        try:
            for X, y in pieces:
                for name in list(courses):
                    try:
                        courses[name].play(X, y)
                    except (ValueError, FloatingPointError) as error:
                        why = f"{name} stopped: {source.join_lines(error)}"
                        print(f"oklnumba: note: {why}", file=sys.stderr)
                        del courses[name]
        finally:
            print_comparison({name: course for name, course in courses.items() if course.rounds})


def scale_labels(pieces: source.Pairs) -> tuple[Any, int]:
    """Return the pieces after the first rows, labels in units of these, and their number."""
    X, y = next(pieces)
    few = min(UNIT_ROWS, len(y) // 10)
    known = y[:few][find_labels(y[:few])]
    scale = known.std() if len(known) > 1 else 0.0
    if scale == 0.0:
        return chain([(X, y)], pieces), 0
    center = known.mean()
    rest = chain([(X[few:], y[few:])], pieces)
    return ((inputs, (targets - center) / scale) for inputs, targets in rest), few


def print_comparison(courses: dict[str, Course]) -> None:
    """Print the table: the least loss first, of classes the least log loss, if there is one."""
    ranked: list[tuple[Any, dict]] = []
    scores = None
    for name, course in courses.items():
        mean = course.loss / (course.labelled or np.nan)
        rank: Any = mean if course.labelled else np.inf
        row: dict[str, Any] = {"mean loss": mean, "loss": course.last.loss}
        if course.parts:
            scores = course.score_classes()
            row = {"log loss": scores.log_loss, "mistakes %": 100 * scores.mistake_rate}
            row |= {"balanced %": 100 * scores.balanced_accuracy, "AUC": scores.auc}
            rank = scores.log_loss is None, scores.log_loss or scores.mistake_rate
        row |= {"rounds/s": count_a_second(course.rounds, course.seconds)}
        row |= {"size": int(course.last.sizes[-1]), "rounds": course.rounds}
        ranked.append((rank, {"learner": name} | row))
    rows = [row for rank, row in sorted(ranked, key=itemgetter(0))]
    if scores is not None:
        rows.append({"learner": "always the commonest class", "mistakes %": 100 * scores.commonest})
        rows.append({"learner": "the last label", "mistakes %": 100 * scores.last_label})
    if rows:
        print(f"\n{okl.Table(rows)}")
