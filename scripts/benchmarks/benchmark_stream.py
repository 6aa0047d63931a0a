"""Ten million rounds from a Parquet file, against the same learner on arrays in memory.

Reproduces: nothing published; the goals are 0.85 of the speed in memory, and 400 MB.
Missing: arrays of all ten million rows (1.5 GB): the first million is played from memory, before
    and after the stream, and rounds a second are compared.
Time: three minutes on a quiet machine (--quick: 200,000 rounds, some seconds).
Data: synthetic, uniform inputs in [-1, 1]^18 and noisy signs, written to a temporary file.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import oklnumba as okl
from scripts.benchmarks.timing import report, row
from scripts.common import memory_mb, run_in_process

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


def timed(data):
    """Return wall, CPU time and loss of a run, and the memory beyond the warm interpreter."""
    before = memory_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    run = okl.run(learner(), *data, record="none")
    return {
        "wall": (time.perf_counter() - wall) / run.rounds,
        "cpu": (time.process_time() - cpu) / run.rounds,
        "memory": memory_mb() - before,
        "loss": run.mean_loss,
    }


def play(path: str, rounds: int):
    warm = okl.stream(path, label="y", batch=20_000)
    okl.run(learner(), [next(iter(warm))], record="none")
    if not rounds:
        return timed((okl.stream(path, label="y"),))
    return timed(next(iter(okl.stream(path, label="y", batch=rounds))))


def compare(rounds: int, in_memory: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stream.parquet")
        write(path, rounds)
        before, stream, after = (
            run_in_process(play, str(path), n) for n in (in_memory, 0, in_memory)
        )
    arrays = {key: (before[key] + after[key]) / 2 for key in stream}
    name = f"PKAWV d={WIDTH} M=2, {rounds} rounds from Parquet"
    unit = f"arrays in memory, {in_memory} rounds before and after"
    goal = GOAL if rounds > 1_000_000 else None
    rows = [
        row(f"{name}, {what}", stream[key] * rounds, arrays[key] / stream[key], goal, unit)
        for key, what in (("wall", "wall time"), ("cpu", "CPU time of all threads"))
    ]
    what, most = f"{name}, memory beyond the interpreter", MEMORY if goal else None
    return [*rows, row(what, np.nan, stream["memory"], most, "MB", at_most=True)]


def jobs(quick: bool) -> list:
    sizes = (200_000, 100_000) if quick else (10_000_000, 1_000_000)
    return [lambda: compare(*sizes)]


if __name__ == "__main__":
    report(__doc__, "200,000 rounds", jobs)
