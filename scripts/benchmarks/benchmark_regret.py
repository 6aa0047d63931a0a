"""Cost of regret curves, also of long streams, and of the greedy adversary.

Reproduces: nothing published; the costs of `Run.regret` and `adversary.greedy`.
Missing: nothing.
Time: about ten minutes.
Data: synthetic.
"""

import inspect
import time

import numpy as np
import scipy.linalg

import oklnumba as okl
from scripts.benchmarks.timing import median_seconds, report, row, stream, timed
from scripts.common import memory_mb, run_in_process

KERNEL = okl.Gaussian(1.0)
SEVERAL = ("OneVsRest", "MultiOutput", "OnlineToBatch")  # they play no single real label
GIVEN = {
    "kernel": KERNEL, "kernels": [KERNEL], "features": okl.TaylorFeatures(2), "learner": okl.OGD(),
    "learners": [okl.OGD(eta=0.1), okl.OGD(eta=1.0)],
}  # fmt: skip


def curve(n: int) -> list[dict]:
    X, y = stream(n, 5)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), X, y)
    K = KERNEL(X)
    K[np.diag_indices(n)] += 1.0

    def factor():
        scipy.linalg.cholesky(K, lower=True, check_finite=False)

    one, ours = median_seconds(factor), median_seconds(lambda: run.regret(KERNEL, 1.0, at=100))
    name = f"Run.regret at 100 checkpoints, {n} rounds, Gram matrix included"
    return [row(name, ours, ours / one, 2, "time of scipy.linalg.cholesky", at_most=True)]


def regret_of(n: int, at: int):
    """Return the wall seconds of a regret, the share of its interval, and the peak memory."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 8))
    y = np.clip(np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n), -1, 1)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(2, sigma=2.0)), X, y)
    start = time.perf_counter()
    curve = run.regret(okl.Gaussian(2.0), 1.0, at=at)
    wall = time.perf_counter() - start
    share = (curve.high[-1] - curve.low[-1]) / (run.losses.sum() - curve.high[-1])
    return wall, share, memory_mb()


def long_stream(n: int, at: int, how: str, goal) -> list[dict]:
    two = {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    wall, share, megabytes = run_in_process(regret_of, n, at, **two)
    name = f"Run.regret at {at} of {n} rounds, d = 8, {how}"
    goals = (goal, 1024, 1e-3) if goal else (None, None, None)
    return [
        row(name, wall, wall, goals[0], "seconds on two cores", at_most=True),
        row("its peak memory, data and run included", np.nan, megabytes, goals[1], "MB", True),
        row("width of its interval", np.nan, share, goals[2], "of the best loss", True),
    ]


def needs(cls, name: str) -> bool:
    found = inspect.signature(cls).parameters
    return name in found and found[name].default is inspect.Parameter.empty


def greedy(n: int) -> list[dict]:
    classes = [getattr(okl, name) for name in okl.__all__ if name not in SEVERAL]
    learners = [
        cls(**{name: value for name, value in GIVEN.items() if needs(cls, name)})
        for cls in classes if isinstance(cls, type) and hasattr(cls, "learn_one")
    ]  # fmt: skip
    for learner in learners:  # compiled before
        okl.adversary.greedy(learner, KERNEL, 3, 5)
    took = timed(lambda: [okl.adversary.greedy(one, KERNEL, n, 5) for one in learners])
    name = f"greedy adversary, {n} rounds, d = 5, {len(learners)} learners one after the other"
    return [row(name, took, took, 120, "seconds on one core", at_most=True)]


def jobs(quick: bool) -> list:
    return [
        lambda: curve(2000 if quick else 5000),
        lambda: long_stream(3000 if quick else 20_000, 10, "one factor", None),
        lambda: long_stream(21_000 if quick else 200_000, 1, "conjugate gradients", 120),
        lambda: greedy(20 if quick else 80),
    ]


if __name__ == "__main__":
    report(__doc__, "shorter streams", jobs)
