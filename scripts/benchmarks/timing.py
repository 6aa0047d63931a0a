"""What the benchmark scripts share: timing, rows of ratios with their goals, and the report."""

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from scripts.common import FIGURES, read_csv, write_csv


def stream(n: int, d: int):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n))


def timed(function, clock=time.perf_counter) -> float:
    start = clock()
    function()
    return clock() - start


def play_one_by_one(learner, X, y) -> None:
    for x, label in zip(X, y, strict=True):
        learner.predict_one(x)
        learner.learn_one(x, label)


def median_seconds(function, repeat: int = 3) -> float:
    """Return the median CPU time of a call, after one call to warm up (and compile)."""
    function()
    return sorted(timed(function, time.process_time) for _ in range(repeat))[repeat // 2]


def least_times(*functions, repeat: int):
    """Return the least of what each, a time, returns; they take turns, after one to warm up."""
    times = [[function() for function in functions] for _ in range(repeat + 1)]
    return [min(column) for column in zip(*times[1:], strict=True)]


def row(what: str, took: float, value: float, goal: float | None, unit: str) -> dict:
    """Return the row of a value that should be at most the goal."""
    return {
        "what": what,
        "seconds": f"{took:.4g}" if np.isfinite(took) else "",
        "ratio": f"{value:.4g}",
        "of": unit,
        "goal": "" if goal is None else f"<= {goal:g}",
        "kept": "" if goal is None else "yes" if value <= goal else "NO",
    }


def speed(what: str, took: float, other: float, goal: float | None, of: str) -> dict:
    """Return the row of how many times as fast we are, at least the goal."""
    ratio, kept = other / took, {}
    if goal is not None:
        kept = {"goal": f">= {goal:g}", "kept": "yes" if ratio >= goal else "NO"}
    return row(what, took, ratio, None, f"times the speed of {of}") | kept


def machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    name = (names or [platform.processor() or platform.machine()])[0]
    return f"{name}, {os.cpu_count()} cores"


def report(doc, quick: str, jobs) -> None:
    """Run the jobs, each of which returns rows; write them to a csv and print them."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--output", type=Path, default=FIGURES, help="folder of the csv")
    only = "this job alone, from 0; other rows stay in the csv"
    parser.add_argument("--only", type=int, action="append", metavar="N", help=only)
    args, rows = parser.parse_args(), []
    todo, where = jobs(args.quick), f"{machine()}, load {os.getloadavg()[0]:.0f}"
    with threadpool_limits(1):  # one thread on both sides: the loops here have one
        for number in tqdm(args.only or range(len(todo)), desc="benchmarks", disable=None):
            rows += todo[number]()
    path = args.output / f"{Path(sys.argv[0]).stem}{'_quick' * args.quick}.csv"
    new = {r["what"] for r in rows}
    old = [r for r in read_csv(path) if r["what"] not in new] if args.only else []
    # Line ends as in the files of figures/, so that a new run changes numbers only.
    write_csv(path, [*old, *(r | {"machine": where} for r in rows)], end="\r\n")
    print(f"{where}; one BLAS thread")
    for r in rows:
        goal = f"  (goal {r['goal']}: {r['kept']})" if r["goal"] else ""
        took = f"{r['seconds']} s, " if r["seconds"] else ""
        print(f"{r['what']}: {took}{r['ratio']} {r['of']}{goal}")
