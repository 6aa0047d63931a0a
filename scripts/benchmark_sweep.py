"""Sweeps: cells side by side against one after another, and regret against size in one call."""

import time

import numpy as np
from timing import arguments, report, row

import oklnumba as okl

CELLS, KERNEL = 40, okl.Gaussian(0.5)
ROUNDS, QUICK_ROUNDS = 4000, 1000  # of a cell
ROWS, QUICK_ROWS = 5000, 1000  # of regret_vs_size
SIZES, SEEDS = (12, 25, 50, 100, 200, 400), 3


def side_by_side(rounds: int) -> list[dict]:
    """Return how much faster two threads play cells than one."""
    data = okl.datasets.load("magic04", permute=0)
    pair = {"magic04": (data.X[:rounds], data.y[:rounds])}
    learner = okl.NystromAWV(KERNEL, max_size=150)
    took = {}
    for jobs in (1, 2):
        okl.sweep(learner, pair, 2, n_jobs=jobs)
        begin = time.perf_counter()
        table = okl.sweep(learner, pair, CELLS, n_jobs=jobs)
        took[jobs] = time.perf_counter() - begin, table["mean_loss"]
    assert np.array_equal(took[1][1], took[2][1])
    what = f"sweep of {CELLS} cells, {rounds} rounds each, in two threads"
    return [row(what, took[2][0], took[1][0] / took[2][0], 1.7, "one after another")]


def in_one_call(rows: int) -> list[dict]:
    """Return how long eight learners of six sizes and three seeds take."""
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
    what = (
        f"regret_vs_size: {rows} rows, {len(learners)} learners, {len(SIZES)} sizes, {SEEDS} seeds"
    )
    return [row(what, took, took, 120.0, "seconds", at_most=True)]


def main() -> None:
    args = arguments(__doc__, f"cells of {QUICK_ROUNDS} rounds, regret on {QUICK_ROWS} rows")
    rounds, rows = (QUICK_ROUNDS, QUICK_ROWS) if args.quick else (ROUNDS, ROWS)
    report([lambda: side_by_side(rounds), lambda: in_one_call(rows)], "benchmark_sweep", args)


if __name__ == "__main__":
    main()
