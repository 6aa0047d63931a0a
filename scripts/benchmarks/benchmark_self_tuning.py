"""Time of a round of SelfTuning: on one core, on two, and for ten classes.

Reproduces: nothing published; the goals are the project's own, for d <= 30 and the default budget.
Missing: wide inputs; above 300 columns the linear members play on a dictionary too.
Time: one minute.
Data: made up.
"""

import os

import numpy as np

import oklnumba as okl
from scripts.benchmarks.timing import report, row, stream, timed
from scripts.common import run_in_process

ONE_CORE, TWO_CORES = 60.0, 50.0  # goals, microseconds a round
CLASSES = 10


def play(learner, X, y, cores: int) -> float:
    """Return the microseconds of a round on so many cores, to which it keeps this process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    okl.run(learner, X[:600], y[:600])  # compiles
    return 1e6 * timed(lambda: okl.run(learner.reset(), X, y)) / len(y)


def rounds(n: int, d: int) -> list[dict]:
    X, y = stream(n, d)
    rows = []
    for cores, goal in ((1, ONE_CORE), (2, TWO_CORES)):
        took = min(run_in_process(play, okl.SelfTuning(), X, y, cores) for _ in range(2))
        what = f"SelfTuning, d={d}, {n} rounds, {cores} core{'s' if cores > 1 else ''}"
        rows.append(row(what, 1e-6 * n * took, took, goal, "microseconds a round", at_most=True))
    return rows


def classes(n: int) -> list[dict]:
    X, _ = stream(n, 16)
    y = np.random.default_rng(1).integers(0, CLASSES, n)
    several = okl.OneVsRest(okl.SelfTuning(), classes=range(CLASSES))
    one = run_in_process(play, okl.SelfTuning(), X, np.where(y == 0, 1.0, -1.0), 1)
    took = run_in_process(play, several, X, y, 1)
    what = f"OneVsRest(SelfTuning), {CLASSES} classes, d=16, {n} rounds"
    of = "times a round of one class"
    return [row(what, 1e-6 * n * took, took / one, None, of, at_most=True)]


def jobs(quick: bool) -> list:
    n = 2000 if quick else 20_000
    return [lambda: rounds(n, 18), lambda: rounds(5 * n, 30), lambda: classes(n)]


if __name__ == "__main__":
    report(__doc__, "a tenth of the rounds", jobs)
