"""Cost of regret curves and of the greedy adversary, as ratios taken in one run on one machine.

Reproduces: nothing published; the costs of what `Run.regret` and `adversary.greedy` do.
Missing: nothing.
Time: about two minutes.
Data: synthetic.
"""

from __future__ import annotations

import inspect
import time

import numpy as np
import scipy.linalg
import timing
from timing import row, seconds

import oklnumba as okl
from oklnumba.learners.learner import Learner

KERNEL = okl.Gaussian(1.0)
ARGUMENTS = {  # of constructors, for arguments without a default
    "kernel": KERNEL,
    "kernels": [KERNEL],
    "features": okl.TaylorFeatures(2, sigma=1.0),
    "learner": okl.OGD(),
    "learners": [okl.KernelAWV(KERNEL, lam=lam) for lam in (0.1, 1.0)],
}


def curve(n: int) -> list[dict]:
    """Regret curves at 100 checkpoints against one Cholesky factor of the same size."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 5))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), X, y)
    K = KERNEL(X)
    K[np.diag_indices(n)] += 1.0

    def factor():
        scipy.linalg.cholesky(K, lower=True, check_finite=False)

    one, ours = seconds(factor), seconds(lambda: run.regret(KERNEL, 1.0, at=100))
    name = f"Run.regret at 100 checkpoints, {n} rounds, Gram matrix included"
    return [row(name, ours, ours / one, 2, "time of scipy.linalg.cholesky", at_most=True)]


def every_learner() -> list[Learner]:
    """Return a learner of every class that the package exports, with default parameters."""
    made = []
    classes = {v for v in vars(okl).values() if isinstance(v, type) and issubclass(v, Learner)}
    for cls in sorted(classes, key=lambda one: one.__name__):
        names = inspect.signature(cls).parameters
        made.append(cls(**{name: ARGUMENTS[name] for name in names if name in ARGUMENTS}))
    return made


def greedy(n: int) -> list[dict]:
    """The greedy adversary against every learner of the package, d = 5."""
    learners = every_learner()
    for learner in learners:  # compiled before
        okl.adversary.greedy(learner, KERNEL, 3, 5)
    took = []
    for learner in learners:
        start = time.perf_counter()
        okl.adversary.greedy(learner, KERNEL, n, 5)
        took.append(time.perf_counter() - start)
    slowest = type(learners[int(np.argmax(took))]).__name__
    name = f"greedy adversary, {n} rounds, d = 5, {len(learners)} learners one after the other"
    return [
        row(name, sum(took), sum(took), 120, "seconds on one core", at_most=True),
        row(f"the slowest of them, {slowest}", max(took), max(took), None, "seconds", at_most=True),
    ]


def main() -> None:
    args = timing.arguments(__doc__, "shorter streams")
    jobs = [
        lambda: curve(2000 if args.quick else 5000),
        lambda: greedy(20 if args.quick else 80),
    ]
    timing.report(jobs, "benchmark_regret", args)


if __name__ == "__main__":
    main()
