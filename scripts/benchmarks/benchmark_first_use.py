"""What the first calls take on a new machine, while numba's cache is empty: CPU seconds.

Reproduces: nothing published.
Missing: wall time, which on a quiet machine is the same: one core compiles.
Time: a minute.
"""

import tempfile
import time
from functools import partial

import oklnumba as okl
from scripts.benchmarks.timing import report, row, timed
from scripts.common import run_in_process

LEARNERS = {
    "SelfTuning()": okl.SelfTuning,
    "PKAWV(TaylorFeatures(2, sigma=3))": partial(okl.PKAWV, okl.TaylorFeatures(2, sigma=3.0)),
}
ROWS, QUICK_ROWS = 3000, 600


def first_calls(title: str, rows: int) -> dict[str, float]:
    """Return the CPU seconds of the first calls in this process."""
    data, learner = okl.datasets.load("magic04", permute=0), LEARNERS[title]()
    X, y = data.X[:rows], data.y[:rows]
    calls = {
        f"run of {rows:,} rows": lambda: okl.run(learner, X, y),
        "predict of 100 rows": lambda: learner.predict(X[:100]),
        "predict_one": lambda: learner.predict_one(X[0]),
        "learn_one": lambda: learner.learn_one(X[0], y[0]),
    }
    return {name: timed(call, time.process_time) for name, call in calls.items()}


def compare(title: str, rows: int) -> list[dict]:
    """Return a row for each call: its time with an empty cache, beside that with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        empty, full = (
            run_in_process(first_calls, title, rows, NUMBA_CACHE_DIR=cache) for _ in range(2)
        )
    of = "seconds with a full cache"
    return [
        row(f"{title}, first {call}", took, full[call], None, of) for call, took in empty.items()
    ]


def jobs(quick: bool) -> list:
    return [partial(compare, title, QUICK_ROWS if quick else ROWS) for title in LEARNERS]


if __name__ == "__main__":
    report(__doc__, f"{QUICK_ROWS} rows", jobs)
