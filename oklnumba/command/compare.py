"""``oklnumba compare``: a dozen learners on one stream, one table."""

import argparse
import itertools
import sys
from contextlib import closing
from math import comb, sqrt
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.command.run import Course, open_table, print_warnings, wrap_for_classes

UNIT_ROWS = 1000  # at the begin of a regression, at most a tenth: they set the unit of the labels
MOST_FEATURES = 2000  # with more Taylor features of degree 2 their learners are left out


def make_defaults(d: int, classification: bool) -> dict[str, Any]:
    """Return the learners that are compared, by name.

    The widths of kernels are sqrt(d), for inputs standardised by their past; gradient learners have
    the logistic loss in classification, else the squared one.
    """
    sigma = sqrt(d)
    kernel, taylor = okl.Gaussian(sigma), okl.TaylorFeatures(2, sigma=sigma)
    fourier = okl.FourierFeatures(200, sigma=sigma)
    smooth = {"loss": "logistic" if classification else "squared"}
    eta = 0.3 if classification else 0.05
    learners: dict[str, Any] = {
        "LinearAWV": okl.LinearAWV(),
        "OGD": okl.OGD(eta, schedule="sqrt", **smooth),
        "PKAWV, Fourier": okl.PKAWV(fourier),
        "NystromAWV": okl.NystromAWV(kernel, max_size=200),
        "KRLS": okl.KRLS(kernel, threshold=0.05),
        "FOGD": okl.FOGD(fourier, eta=eta, **smooth),
        "NOGD": okl.NOGD(kernel, eta=eta, budget=200, rank=100, **smooth),
        "KernelOGD": okl.KernelOGD(kernel, eta=eta, budget=400, **smooth),
        "BOGD": okl.BOGD(kernel, eta=eta, budget=400, **smooth),
    }
    if comb(d + 2, 2) <= MOST_FEATURES:
        adagrad = okl.AdaptiveFTRL("adagrad", eta=0.5, **smooth)
        learners["PKAWV, Taylor"] = okl.PKAWV(taylor)
        learners["AdaGrad on Taylor"] = okl.WithFeatures(taylor, adagrad)
    scaled = {name: okl.Standardized(one) for name, one in learners.items()}
    return {"SelfTuning": okl.SelfTuning()} | scaled


def compare(args: argparse.Namespace) -> None:
    """Play learners side by side on a file or a data set."""
    named = {text: spelling.parse_learner(text) for text in args.learner or []}
    table, labels = open_table(args)
    regression, d = labels.classes is None, len(table.columns)
    if not named:
        named = make_defaults(d, not regression)
        print(f"learners  {len(named)}, all but SelfTuning on inputs standardised by their past,")
        print(f"          kernels and features of width {sqrt(d):.3g}")
    courses = {name: Course(wrap_for_classes(one, labels)) for name, one in named.items()}
    pieces, skipped = source.read_rounds(table, labels, args.rows), 0
    if regression and not args.learner:
        pieces, skipped = scale_labels(pieces)
    if skipped:
        print(f"          the first {skipped} rows set the unit of the labels and are not played")
    sys.stdout.flush()
    with closing(pieces), print_warnings():
        try:
            for X, y in pieces:
                for name in list(courses):
                    if not _play(name, courses[name], X, y):
                        del courses[name]
        finally:
            print_comparison({name: course for name, course in courses.items() if course.rounds})


def _play(name: str, course: Course, X: np.ndarray, y: np.ndarray) -> bool:
    """Play a piece; return False, and say why, if the learner cannot."""
    try:
        course.play(X, y)
    except (ValueError, FloatingPointError) as error:
        print(f"oklnumba: note: {name} stopped: {source.join_lines(error)}", file=sys.stderr)
        return False
    return True


def scale_labels(pieces: source.Pairs) -> tuple[Any, int]:
    """Return the pieces after the first rows, labels in units of these, and their number."""
    X, y = next(pieces)
    few = min(UNIT_ROWS, len(y) // 10)
    scale = float(y[:few].std()) if few > 1 else 0.0
    if scale == 0.0:
        return itertools.chain([(X, y)], pieces), 0
    center = float(y[:few].mean())
    rest = itertools.chain([(X[few:], y[few:])], pieces)
    return ((inputs, (targets - center) / scale) for inputs, targets in rest), few


def print_comparison(courses: dict[str, Course]) -> None:
    """Print the table: the least loss first, of classes the least log loss."""
    if not courses:
        return
    if next(iter(courses.values())).classes:
        print_classes(courses)
        return
    width = max(len("learner"), *map(len, courses))
    print(f"\n{'learner':{width}} {'mean loss':>11} {'':12} {'rounds/s':>11} {'size':>7}"
          f" {'rounds':>10}")  # fmt: skip
    for name, c in sorted(courses.items(), key=lambda item: item[1].mean):
        print(f"{name:{width}} {c.mean:11.4g} {c.name:12} {c.rate:>11} {c.size:7d} {c.rounds:10d}")


def print_classes(courses: dict[str, Course]) -> None:
    """Print the table of classes; learners without probabilities, so without log loss, last."""
    scores = {name: course.score_classes() for name, course in courses.items()}
    width = max(len("always the commonest class"), *map(len, courses))
    print(f"\n{'learner':{width}} {'log loss':>9} {'mistakes %':>11} {'balanced %':>11} {'AUC':>7} "
          f"{'rounds/s':>10} {'size':>6} {'rounds':>9}")  # fmt: skip

    def rank(name: str) -> tuple[bool, float]:
        loss = scores[name].log_loss
        return loss is None, scores[name].mistake_rate if loss is None else loss

    for name in sorted(courses, key=rank):
        one, course = scores[name], courses[name]
        loss, auc = (f"{v:.4g}" if v is not None else "-" for v in (one.log_loss, one.auc))
        print(f"{name:{width}} {loss:>9} {course.mean:11.4g} {100 * one.balanced_accuracy:11.4g} "
              f"{auc:>7} {course.rate:>10} {course.size:6d} {course.rounds:9d}")  # fmt: skip
    first = next(iter(scores.values()))
    for rule, share in (
        ("always the commonest class", first.commonest),
        ("the last label", first.last_label),
    ):
        print(f"{rule:{width}} {'-':>9} {100 * share:11.4g}")
