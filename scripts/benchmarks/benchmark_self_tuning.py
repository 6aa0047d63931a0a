"""Time of SelfTuning on several cores, beside LightGBM, for ten classes, in single rounds; files.

Reproduces: nothing published.
Missing: wide inputs; above 300 columns the linear members play on a dictionary too. Rivals whose
    library is not installed: LightGBM in bulk, river's adaptive random forest one at a time.
Time: two minutes.
"""

import os
import tempfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path

import numpy as np

import oklnumba as okl
from scripts.benchmarks.rivals import LIGHTGBM, REFIT, play_boosting
from scripts.benchmarks.streams import PERMUTATION, load_stream
from scripts.benchmarks.timing import play_one_by_one, report, row, speed, stream, timed
from scripts.common import available, memory_mb, run_in_process

ONE_CORE = 60.0  # goal, microseconds a round
# Goals on so many cores, where the machine has them: times as fast as on one.
MORE_CORES, OF_CLASSES = {2: 1.6, 8: 2.3}, {2: None, 8: 3.0}
BESIDE = (
    "german", "abalone", "mushrooms", "phishing", "magic04", "ijcnn1", "casp", "cod-rna",
)  # fmt: skip
CLASSES = 10
LONGEST, OF_FOREST = 20.0, 0.5  # goals: longest round over the median one; one round over river's
STATE, PEAK, FILE = 62.0, 300.0, 18.0  # goals, MB
RUNS = 3  # of which memory is the median


def play(learner, X, y, cores: int) -> float:
    """Return the seconds of a run on so many cores, to which it keeps this process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    okl.run(learner, X[:600], y[:600])  # compiles
    return timed(lambda: okl.run(learner.reset(), X, y))


def on_cores(what: str, learner, X, y, one_core: float | None, more: dict) -> list[dict]:
    """Return the microseconds of a round on one core, and how many times as fast more are."""

    def least(cores: int) -> float:
        return min(run_in_process(play, learner, X, y, cores) for _ in range(2))

    one = least(1)
    rows = [row(f"{what}, 1 core", one, 1e6 * one / len(y), one_core, "microseconds a round")]
    for cores, goal in more.items():
        if cores <= len(os.sched_getaffinity(0)):
            rows.append(speed(f"{what}, {cores} cores", least(cores), one, goal, "one core"))
    return rows


def rounds(n: int, d: int) -> list[dict]:
    what = f"SelfTuning, d={d}, {n} rounds"
    return on_cores(what, okl.SelfTuning(), *stream(n, d), ONE_CORE, MORE_CORES)


def beside_lightgbm(n: int) -> list[dict]:
    rows = []
    for name in available(BESIDE) if find_spec("lightgbm") else ():
        data = load_stream(name, PERMUTATION).first(n)
        what, of = f"SelfTuning, {len(data.y)} rows of {name}, 1 core", LIGHTGBM
        took = run_in_process(play, okl.SelfTuning(), data.X, data.y, 1)
        theirs = timed(partial(play_boosting, LIGHTGBM, data, np.inf))
        rows.append(speed(what, took, theirs, None, f"{of} every {REFIT} rows"))
    return rows


def classes(n: int) -> list[dict]:
    X, _ = stream(n, 16)
    y = np.random.default_rng(1).integers(0, CLASSES, n)
    several = okl.OneVsRest(okl.SelfTuning(), classes=range(CLASSES))
    what = f"OneVsRest(SelfTuning), {CLASSES} classes, d=16, {n} rounds"
    rows = on_cores(what, several, X, y, None, OF_CLASSES)
    one = run_in_process(play, okl.SelfTuning(), X, np.where(y == 0, 1.0, -1.0), 1)
    took, of = float(rows[0]["seconds"]), "times a round of one class"
    return [*rows, row(what, took, took / one, None, of)]


def times_of_rounds(model, xs, y) -> np.ndarray:
    """Return the seconds of each round, its forecast and its label."""
    rows = zip(xs, y, strict=True)
    return np.array([timed(partial(play_one_by_one, model, [x], [label])) for x, label in rows])


def one_at_a_time(n: int) -> list[dict]:
    X, y = stream(n, 10)
    times_of_rounds(okl.SelfTuning(), X[:140], y[:140])  # compiles
    times = times_of_rounds(okl.SelfTuning(), X, y)
    what, of = f"SelfTuning(), the longest of {n} single rounds", "times the median round"
    rows = [row(what, times.max(), times.max() / np.median(times), LONGEST, of)]
    if find_spec("river"):
        forest = import_module("river.forest").ARFClassifier(seed=0)
        theirs = times_of_rounds(forest, [dict(enumerate(x)) for x in X[:4000]], y[:4000])
        took, of = np.median(times[:4000]), "times one of river's adaptive random forest"
        ratio = took / np.median(theirs)
        rows.append(row("SelfTuning(), a single round", took, ratio, OF_FOREST, of))
    return rows


def sizes(n: int) -> list[tuple]:
    """Return what was measured, its seconds, MB and goal: of a run and of its files."""
    data = okl.datasets.load("magic04", scale=None, permute=0)
    X, y, learner = data.X[:n], data.y[:n], okl.SelfTuning()
    okl.run(okl.SelfTuning(), X[:600], y[:600])  # compiles
    before = memory_mb("VmRSS")
    took = timed(lambda: okl.run(learner, X, y))
    found = [("state", took, memory_mb("VmRSS") - before, STATE)]
    found.append(("peak of the process", took, memory_mb(), PEAK))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "learner.npz")
        for what, compact in (("file", False), ("compact file", True)):
            took = timed(partial(learner.save, path, compact=compact))
            found.append((what, took, 1e-6 * path.stat().st_size, FILE))
    return found


def memory(n: int) -> list[dict]:
    """Return the medians of a few runs: what the allocator keeps differs by 10 MB."""
    runs = [run_in_process(sizes, n) for _ in range(RUNS)]
    medians = [sorted(same, key=itemgetter(2))[RUNS // 2] for same in zip(*runs, strict=True)]
    return [
        row(f"SelfTuning, {n} rows of magic04, {what}", took, size, goal, "MB")
        for what, took, size, goal in medians
    ]


def jobs(quick: bool) -> list:
    n = 2000 if quick else 20_000
    return [
        lambda: rounds(n, 18), lambda: rounds(5 * n, 30), lambda: beside_lightgbm(n),
        lambda: classes(n), lambda: one_at_a_time(n // 2), lambda: memory(n),
    ]  # fmt: skip


if __name__ == "__main__":
    report(__doc__, "a tenth of the rounds", jobs)
