"""Experiments at scale: ten million rounds from a file, sweeps in threads, best functions.

Reproduces: nothing published.
Missing: arrays of all ten million rows: a million is played from memory. Dask clusters.
Time: half an hour on two quiet cores; --only N: one of its jobs.
"""

import multiprocessing
import os
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.linalg
from joblib.externals.loky import get_reusable_executor
from scipy.spatial.distance import pdist

import oklnumba as okl
from oklnumba import losses
from oklnumba.theory import hindsight, passes
from oklnumba.theory.matrix import pivoted_cholesky
from scripts import common
from scripts.benchmarks.regret_at_full_size import SIGMA, blocks
from scripts.benchmarks.timing import median_seconds, report, row, speed, stream, timed
from scripts.common import available, memory_mb, run_in_process

# ---- from a file ----

WIDTH = 18
PART = 500_000  # rows made at once, and a row group of the file
GOAL, MEMORY = 0.85, 400.0


def learner():
    return okl.PKAWV(okl.TaylorFeatures(degree=2, sigma=3.0))


def write(path, rounds: int) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{k}" for k in range(WIDTH)] + ["y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rounds, PART):
            X = rng.uniform(-1, 1, (min(PART, rounds - start), WIDTH))
            y = np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(len(X)))
            writer.write_table(pa.table([*X.T, y], schema=schema))


def measure(call):
    """Return wall and CPU time of a call, the memory beyond that of before, and its result."""
    before, wall, cpu = memory_mb(), time.perf_counter(), time.process_time()
    result = call()
    used = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    return used | {"memory": memory_mb() - before}, result


def play(path: str, rounds: int):
    """Play so many rounds from memory, or all of them from the file if none are."""
    warm = okl.stream(path, label="y", batch=20_000)
    okl.run(learner(), [next(iter(warm))], record="none")
    data = (okl.stream(path, label="y"),)
    if rounds:
        data = next(iter(okl.stream(path, label="y", batch=rounds)))
    return measure(lambda: okl.run(learner(), *data, record="none"))[0]


def from_file(rounds: int, in_memory: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stream.parquet")
        write(path, rounds)
        turns = in_memory, 0, in_memory
        before, read, after = (run_in_process(play, str(path), n) for n in turns)
    name = f"PKAWV d={WIDTH} M=2, {rounds} rounds from Parquet"
    unit = f"arrays in memory, {in_memory} rounds before and after"
    goal = GOAL if rounds > 1_000_000 else None
    rows = []
    for key, what in (("wall", "wall time"), ("cpu", "CPU time of all threads")):
        arrays = (before[key] + after[key]) / 2 / in_memory * rounds
        rows.append(speed(f"{name}, {what}", read[key], arrays, goal, unit))
    what, most = f"{name}, memory beyond the interpreter", MEMORY if goal else None
    return [*rows, row(what, np.nan, read["memory"], most, "MB")]


def wide(d: int) -> tuple[float, float]:
    """Return what a CSV of d columns and four rows costs, in seconds and MB."""
    with tempfile.TemporaryDirectory() as folder:
        path, names = Path(folder, "wide.csv"), [f"x{k}" for k in range(d)]
        values = np.random.default_rng(0).random((4, d + 1))
        np.savetxt(path, values, delimiter=",", header=",".join([*names, "y"]), comments="")
        before = memory_mb()
        read = timed(lambda: okl.run(okl.OGD(), okl.stream(path, label="y")), time.process_time)
        return read, memory_mb() - before


def by_columns(fewer: int, more: int) -> list[dict]:
    """Return how time and memory grow with the columns: linearly, the ratio is ``more / fewer``."""
    run_in_process(wide, 10)  # compiles
    (few, least), (many, most) = (run_in_process(wide, d) for d in (fewer, more))
    name, of = f"a CSV of four rows, {more} columns", f"of {fewer} columns"
    return [
        row(f"{name}, read", many, many / few, None, f"times the seconds {of}"),
        row(f"{name}, memory", np.nan, most / least, None, f"times the MB {of}"),
    ]


# ---- sweeps ----

CELLS, NARROW, RUNS = 40, okl.Gaussian(0.5), 7
ROUNDS, QUICK_ROUNDS = 19_020, 1000  # of a cell
ROWS, QUICK_ROWS = 1_000_000, 30_000  # of regret_vs_size
SIZES = (6, 12, 25, 50, 100, 200)


def side_by_side(rounds: int) -> list[dict]:
    """Return how much faster two threads play cells than one: the median of RUNS turns."""
    data = okl.datasets.load("magic04", permute=0)
    pair = {"magic04": (data.X[:rounds], data.y[:rounds])}
    rows = []
    for learner in (okl.NystromAWV(NARROW, max_size=150), okl.POMDR(NARROW)):
        plays = [partial(okl.sweep, learner, pair, CELLS, n_jobs=jobs) for jobs in (1, 2)]
        np.testing.assert_array_equal(*(play()["mean_loss"] for play in plays))
        turns = [[timed(play) for play in plays] for _ in range(RUNS)]
        one, two = sorted(turns, key=lambda turn: turn[0] / turn[1])[RUNS // 2]
        what = f"{CELLS} cells of {type(learner).__name__}, {rounds} rounds each, in two threads"
        rows.append(speed(what, two, one, 1.7, "one after another"))
    return rows


def play_sizes(file: str, folder: str) -> None:
    """Play three learners of six sizes on a file, in two processes."""
    os.setpgrp()  # a group of processes, with the workers
    kernel = okl.Gaussian(SIGMA)
    learners = {
        "NystromAWV": okl.NystromAWV(kernel),
        "PKAWV": okl.PKAWV(okl.FourierFeatures(sigma=SIGMA)),
        "FOGD": okl.FOGD(sigma=SIGMA, loss="squared"),
    }
    with joblib.parallel_config(backend="loky", n_jobs=2):
        table = okl.regret_vs_size(
            learners, okl.stream(file, label="y"), kernel=kernel, lam=1.0, sizes=SIZES,
            record="none", path=folder,
        )  # fmt: skip
    get_reusable_executor().shutdown()  # its workers would wait for more, and this process for them
    assert len(table) == len(learners) * len(SIZES) and not any(table["error"])


def in_one_call(rows: int) -> list[dict]:
    """Kill a ``regret_vs_size`` when half its runs are done; the same call goes on."""
    seconds, made = [], {}
    with tempfile.TemporaryDirectory() as folder:
        file, cells = Path(folder, "stream.parquet"), Path(folder, "cells")
        write(file, rows)
        cells.mkdir()
        for enough in (9, np.inf):
            process = multiprocessing.get_context("spawn").Process(
                target=play_sizes, args=(str(file), str(cells))
            )
            begin = time.perf_counter()
            process.start()
            while process.is_alive() and len(found := list(cells.glob("*.json"))) < enough:
                process.join(0.1)
            if enough == 9:
                made = {path: path.stat().st_mtime_ns for path in found}
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            seconds.append(time.perf_counter() - begin)
        assert process.exitcode == 0
        assert all(path.stat().st_mtime_ns == time for path, time in made.items())
    what = f"regret_vs_size of {rows} rows of a file, 3 learners, 6 sizes, two processes"
    took = sum(seconds)
    return [row(f"{what}, killed and resumed", took, took, None, "seconds")]


# ---- regret ----

KERNEL = okl.Gaussian(1.0)


def curve(n: int) -> list[dict]:
    X, y = stream(n, 5)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), X, y)
    K = KERNEL(X)
    K[np.diag_indices(n)] += 1.0

    def factor():
        scipy.linalg.cholesky(K, lower=True, check_finite=False)

    one, ours = median_seconds(factor), median_seconds(lambda: run.regret(KERNEL, 1.0, at=100))
    name = f"Run.regret at 100 checkpoints, {n} rounds, Gram matrix included"
    return [row(name, ours, ours / one, 2, "time of scipy.linalg.cholesky")]


def hindsight_of(n: int, M: int, at: int) -> dict:
    """Return what the best functions after ``at`` rounds of the stream of millions.py cost."""
    source, kernel = partial(blocks, n), okl.Gaussian(SIGMA)
    okl.theory.Hindsight(kernel, partial(blocks, 9000), lam=1.0, landmarks=500).comparator()

    def solve():
        best = okl.theory.Hindsight(kernel, source, lam=1.0, landmarks=M)
        best.regret(np.zeros(n), at=at)
        return best.comparator()

    used, last = measure(solve)
    return used | {"width": (last.upper - last.lower) / last.upper}


def in_passes(n: int, M: int) -> list[dict]:
    all_rows, ten, one = (
        run_in_process(hindsight_of, *job) for job in ((n, M, 10), (n // 5, M, 10), (n // 5, M, 1))
    )
    name = f"best functions after 10 of {n} rounds, d = 18, {M} landmarks"
    what = f"10 points of {n // 5} rounds, CPU time"
    return [
        row(f"{name}, wall time", all_rows["wall"], all_rows["wall"], 240, "seconds"),
        row(f"{name}, CPU time", all_rows["cpu"], all_rows["cpu"], None, "seconds"),
        row(f"{name}, memory above the start", np.nan, all_rows["memory"], 1024, "MB"),
        row(f"{name}, interval", np.nan, all_rows["width"], None, "of the least objective"),
        row(what, ten["cpu"], ten["cpu"] / one["cpu"], 1.3, "times that of one point"),
    ]


def inside(name: str, share: float, n: int, seeds: int) -> list[dict]:
    """Return in how many seeds of the frequencies an interval misses the exact minimum."""
    X, y = common.stream(name, n)
    sigma = share * float(np.median(pdist(X[:500])))
    kernel, rows = okl.Gaussian(sigma), passes.Replay(lambda: [(X, y)], False)
    exact = okl.theory.Hindsight(kernel, X, y, 1.0).comparator()
    pivots = pivoted_cholesky(kernel, rows.candidates, most=2000, seed=0)[1]
    for m in (500, 1000, 2000):  # as Hindsight does
        span = passes.Span(kernel, rows.candidates[pivots[:m]], rows, 1.0, losses.get("squared"))
        found = span.solve([n])[0]
        if found.upper - found.lower <= hindsight.NARROW * found.upper:
            break
    begin, misses, holds, widths = time.process_time(), 0, 0, []
    for seed in range(seeds):
        found = span.bound([n], seed)[0]
        width = found.upper - found.lower
        misses += found.lower > exact.upper or exact.lower > found.upper
        holds += found.upper - width / 10.0 <= exact.upper
        widths.append(width / found.upper)
    took, narrow = time.process_time() - begin, hindsight.NARROW if share == 1.0 else None
    unit = f"of {seeds} seeds"
    what = f"{name}, {n} rows, sigma = {sigma:.2g}, {m} landmarks"
    return [
        row(f"{what}, the interval misses the exact minimum", took, misses, 0, unit),
        row(f"{what}, one a tenth as wide holds it", np.nan, holds, 0, unit),
        row(f"{what}, largest width", np.nan, max(widths), narrow, "of the minimum"),
    ]


def jobs(quick: bool) -> list:
    sizes = (200_000, 100_000) if quick else (10_000_000, 1_000_000)
    rounds, rows = (QUICK_ROUNDS, QUICK_ROWS) if quick else (ROUNDS, ROWS)
    return [
        lambda: from_file(*sizes),
        lambda: side_by_side(rounds),
        lambda: in_one_call(rows),
        lambda: curve(2000 if quick else 5000),
        lambda: in_passes(*((30_000, 200) if quick else (1_000_000, 2000))),
        *(partial(inside, name, share, 3000 if quick else 10_000, 3 if quick else 100)
          for name in available(("magic04",) if quick else ("magic04", "casp", "ijcnn1"))
          for share in (0.5, 1.0, 2.0)),
        lambda: by_columns(*((500, 2000) if quick else (5000, 20_000))),
    ]  # fmt: skip


if __name__ == "__main__":
    report(__doc__, "shorter streams", jobs)
