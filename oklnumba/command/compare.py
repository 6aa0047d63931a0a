"""``oklnumba compare``: a dozen learners on one stream, one table."""

from __future__ import annotations

import argparse
import itertools
import sys
from contextlib import closing
from math import comb, sqrt
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.command.play import (
    Course,
    ended,
    for_classes,
    interruptible,
    notes,
    rate,
    task_of,
    warm,
)
from oklnumba.core.display import Bar

UNITS = 1000  # first rows of a regression, at most a tenth: they set the unit of the labels
MOST_FEATURES = 2000  # Taylor features of degree 2 beyond which they are left out


def defaults(d: int, classification: bool) -> dict[str, Any]:
    """Return the learners that are compared, by name.

    Parameters
    ----------
    d : int
        Inputs; widths of kernels are sqrt(d), for inputs standardised by their past.
    classification : bool
        Then gradient learners have the logistic loss, else the squared one.

    Examples
    --------
    >>> from oklnumba.command.compare import defaults
    >>> len(defaults(5, True)), defaults(5, True)["LinearAWV"]
    (12, Standardized(learner=LinearAWV(lam=1.0, discount=1.0), clip=5.0))
    """
    sigma = sqrt(d)
    kernel, taylor = okl.Gaussian(sigma), okl.TaylorFeatures(2, sigma=sigma)
    fourier = okl.FourierFeatures(200, sigma=sigma)
    smooth = {"loss": "logistic" if classification else "squared"}
    eta = 0.3 if classification else 0.05
    found: dict[str, Any] = {
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
        found["PKAWV, Taylor"] = okl.PKAWV(taylor)
        found["AdaGrad on Taylor"] = okl.WithFeatures(taylor, adagrad)
    return {"SelfTuning": okl.SelfTuning()} | {n: okl.Standardized(x) for n, x in found.items()}


def compare(args: argparse.Namespace) -> int:
    """Play learners side by side on a file or a data set; return the exit status.

    Parameters
    ----------
    args : Namespace
        Options of ``oklnumba compare``.

    Raises
    ------
    ValueError, TypeError, OSError
        If an option, the file or its content is not valid.
    """
    named = {text: spelling.learner(text) for text in args.learner or []}
    table, labels = task_of(args)
    regression = labels.classes is None
    if not named:
        named = defaults(len(table.columns), not regression)
        print(f"learners  {len(named)}, all but SelfTuning on inputs standardised by their past,")
        print(f"          kernels and features of width {sqrt(len(table.columns)):.3g}")
    courses = {name: Course(for_classes(one, labels)) for name, one in named.items()}
    stream = source.rounds(table, labels, args.rows)
    stream, skipped = in_units(stream) if regression and not args.learner else (stream, 0)
    if skipped:
        print(f"          the first {skipped} rows set the unit of the labels and are not played")
    sys.stdout.flush()
    broken: dict[str, str] = {}
    stopped = False
    total = args.rows or labels.rows
    bar = Bar(total=total, unit=" rounds", unit_scale=True, disable=not args.progress)
    with closing(stream), bar, notes(), interruptible() as interrupted:
        for X, y in stream:
            for name, course in courses.items():
                if name not in broken and (trouble := _try(course, X, y)):
                    broken[name] = trouble
            bar.update(len(y))
            if stopped := bool(interrupted) or any(c.interrupted for c in courses.values()):
                break
    for name, trouble in broken.items():
        print(f"oklnumba: note: {name} stopped: {trouble}", file=sys.stderr)
    show({n: c for n, c in courses.items() if c.rounds and n not in broken})
    return ended(stopped)


def _try(course: Course, X: np.ndarray, y: np.ndarray) -> str:
    """Play a piece; return why that cannot be, "" if it can."""
    try:
        if not course.rounds:
            warm(course.learner, X, y)
        course.play(X, y)
    except (ValueError, FloatingPointError) as error:
        return source.first_line(error)
    return ""


def in_units(stream: Any) -> tuple[Any, int]:
    """Return the stream with labels in units of the first rows, and how many these were."""
    X, y = next(stream)
    few = min(UNITS, len(y) // 10)
    scale = float(y[:few].std()) if few > 1 else 0.0
    if scale == 0.0:
        few, scale = 0, 1.0
    center = float(y[:few].mean()) if few else 0.0

    def rest() -> Any:
        with closing(stream):
            for inputs, targets in itertools.chain([(X[few:], y[few:])], stream):
                yield inputs, (targets - center) / scale

    return rest(), few


def show(courses: dict[str, Course]) -> None:
    """Print the table, the fewest mistakes or the least loss first."""
    if not courses:
        return
    classes = next(iter(courses.values())).classes
    width = max(len("learner"), *map(len, courses))
    what = "mistakes %" if classes else "mean loss"
    print(f"\n{'learner':{width}} {what:>11} {'loss':>11} {'':12} {'rounds/s':>11} {'size':>7}"
          f" {'rounds':>10}")  # fmt: skip
    for name, c in sorted(courses.items(), key=lambda item: item[1].error):
        print(f"{name:{width}} {c.error:11.4g} {c.total / c.rounds:11.4g} {c.name:12} "
              f"{rate(c):>11} {c.size:7d} {c.rounds:10d}")  # fmt: skip
