"""What the benchmark scripts share: timing, rows of ratios with their goals, and the report."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import FIGURES, write_csv
from threadpoolctl import threadpool_limits
from tqdm import tqdm


def arguments(doc: str | None, quick: str) -> argparse.Namespace:
    """Return the options of a benchmark; ``quick`` says what --quick does."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--output", type=Path, default=FIGURES, help="folder of the csv")
    return parser.parse_args()


def stream(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform inputs in [-1, 1]^d and noisy signs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, np.sign(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n))


def seconds(function, repeat: int = 3) -> float:
    """Return the median time of a call, after one call to warm up (and compile)."""
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[repeat // 2]


def apart(code: str, *options: Any, **environment: str) -> list[str]:
    """Return what code prints, split, in a process of its own, whose memory is then its own."""
    command = [sys.executable, "-c", code, *map(str, options)]
    shown = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True,
                           text=True)  # fmt: skip
    return shown.stdout.split()


def row(
    what: str, took: float, value: float, goal: float | None, unit: str, at_most: bool = False
) -> dict:
    kept = "" if goal is None else "yes" if (value <= goal if at_most else value >= goal) else "NO"
    wanted = "" if goal is None else f"{'<=' if at_most else '>='} {goal:g}"
    return {
        "what": what,
        "seconds": f"{took:.4g}" if np.isfinite(took) else "",
        "ratio": f"{value:.4g}",
        "of": unit if at_most else f"times the speed of {unit}",
        "goal": wanted,
        "kept": kept,
    }


def machine() -> str:
    """Return the processor's name and the number of cores."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [li for li in cpuinfo.read_text().splitlines() if li.startswith("model name")]
        name = lines[0].split(":")[1].strip() if lines else name
    return f"{name}, {os.cpu_count()} cores"


def report(jobs: list[Callable[[], list[dict]]], stem: str, args: argparse.Namespace) -> None:
    """Run the jobs, each of which returns rows; write them to ``stem``.csv and print them."""
    rows = []
    with threadpool_limits(1):  # one thread on both sides: the loops here have one
        for job in tqdm(jobs, desc="benchmarks"):
            rows += job()
    name = f"{stem}_quick.csv" if args.quick else f"{stem}.csv"
    # Line ends as in the files of figures/, so that a new run changes numbers only.
    write_csv(args.output / name, [r | {"machine": machine()} for r in rows], end="\r\n")
    print(f"{machine()}; one BLAS thread")
    for r in rows:
        goal = f"  (goal {r['goal']}: {r['kept']})" if r["goal"] else ""
        took = f"{r['seconds']} s, " if r["seconds"] else ""
        print(f"{r['what']}: {took}{r['ratio']} {r['of']}{goal}")
