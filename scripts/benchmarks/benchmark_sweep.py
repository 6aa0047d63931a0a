"""Sweeps in two threads against one, and the time of one call of `okl.regret_vs_size`.

Reproduces: nothing published; two goals of the project's own.
Missing: processes and Dask clusters, whose gain depends on the machine.
Time: two to three minutes on two quiet cores.
Data: magic04, which comes with the package.
"""

import time
from functools import partial

import numpy as np

import oklnumba as okl
from scripts.benchmarks.timing import report, row, timed

CELLS, KERNEL, RUNS = 40, okl.Gaussian(0.5), 7
ROUNDS, QUICK_ROUNDS = 19_020, 1000  # of a cell
ROWS, QUICK_ROWS = 5000, 1000  # of regret_vs_size
SIZES, SEEDS = (12, 25, 50, 100, 200, 400), 3


def side_by_side(rounds: int) -> list[dict]:
    """Return how much faster two threads play cells than one: the median of RUNS turns."""
    data = okl.datasets.load("magic04", permute=0)
    pair = {"magic04": (data.X[:rounds], data.y[:rounds])}
    rows = []
    for learner in (okl.NystromAWV(KERNEL, max_size=150), okl.POMDR(KERNEL)):
        plays = [partial(okl.sweep, learner, pair, CELLS, n_jobs=jobs) for jobs in (1, 2)]
        np.testing.assert_array_equal(*(play()["mean_loss"] for play in plays))
        turns = [[timed(play) for play in plays] for _ in range(RUNS)]
        one, two = sorted(turns, key=lambda turn: turn[0] / turn[1])[RUNS // 2]
        what = f"{CELLS} cells of {type(learner).__name__}, {rounds} rounds each, in two threads"
        rows.append(row(what, two, one / two, 1.7, "one after another"))
    return rows


def in_one_call(rows: int) -> list[dict]:
    data = okl.datasets.load("magic04", permute=0)
    X, y = data.X[:rows], data.y[:rows]
    eta = 10.0 / rows**0.5
    learners = [
        okl.NystromAWV(KERNEL),
        okl.PKAWV(okl.FourierFeatures(sigma=0.5)),
        okl.FOGD(sigma=0.5, eta=eta),
        okl.NOGD(KERNEL, eta=eta),
        okl.SkeGD(KERNEL, eta=eta),
        okl.BOGD(KERNEL, eta=eta / 3),
        okl.KernelOGD(KERNEL, eta=eta, budget=100),
        okl.BAO2KS([KERNEL], horizon=rows),
    ]
    begin = time.perf_counter()
    table = okl.regret_vs_size(
        learners, X, y, KERNEL, 1.0, seeds=SEEDS, sizes=SIZES, permute=True, n_jobs=2
    )
    took = time.perf_counter() - begin
    assert not any(table["error"]) and len(table) == len(learners) * len(SIZES) * SEEDS
    played = f"{rows} rows, {len(learners)} learners, {len(SIZES)} sizes, {SEEDS} seeds"
    return [row(f"regret_vs_size: {played}", took, took, 120.0, "seconds", at_most=True)]


def jobs(quick: bool) -> list:
    rounds, rows = (QUICK_ROUNDS, QUICK_ROWS) if quick else (ROUNDS, ROWS)
    return [lambda: side_by_side(rounds), lambda: in_one_call(rows)]


if __name__ == "__main__":
    report(__doc__, f"cells of {QUICK_ROUNDS} rounds, regret on {QUICK_ROWS} rows", jobs)
