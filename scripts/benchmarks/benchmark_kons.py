"""Speed of the exact learners and the KONS family: ratios taken in one run, and how cost grows.

Reproduces: the costs that Calandriello et al. (2017, ICML) state for KONS, Sketched-KONS and KORS.
Missing: nothing.
Time: about five minutes (one with --quick).
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import scipy.linalg

import oklnumba as okl
from scripts.benchmarks.timing import least_times, median_seconds, report, row, speed, stream, timed
from scripts.common import fit_exponent

KERNEL = okl.Gaussian(3.0)


def run_twice(function) -> None:
    with ThreadPoolExecutor(2) as pool:
        for call in [pool.submit(function) for _ in range(2)]:
            call.result()


def exact(n: int, repeat: int) -> list[dict]:
    """Runs of the exact learners against the Gram matrix and LAPACK's factor of it, in place."""
    X, y = stream(n, 18)
    y *= 0.5  # inside [-C, C]: with squared loss every round of KONS joins its factor

    def factor():
        K = KERNEL(X)
        K[np.diag_indices(n)] += 1.0
        scipy.linalg.lapack.dpotrf(K.T, lower=1, overwrite_a=1)

    def multiply():
        scipy.linalg.blas.dgemm(1.0, square, square, trans_b=True)

    learners, square = (okl.KernelAWV, okl.KONS), np.random.default_rng(0).random((2048, 2048)).T
    runs = [lambda cls=cls: okl.run(cls(KERNEL), X, y) for cls in learners]
    timers = (partial(timed, f, time.process_time) for f in (multiply, factor, *runs))
    product, reference, *ours = least_times(*timers, repeat=repeat)
    goal = 1.1 if n < 10_000 else 0.8  # of a Xeon, where dgemm is 1.5 times dpotrf's speed
    least, of = product * n**3 / 3 / (2 * len(square) ** 3), "time of Gram matrix + dpotrf in place"
    name = f"n^3 / 3 flops of {n} rounds at the speed of dgemm"
    rows = [row(name, least, least / reference, None, of)]
    for cls, run, took in zip(learners, runs, ours, strict=True):
        one, two = partial(timed, run), partial(timed, partial(run_twice, run))
        alone, both = least_times(one, two, repeat=repeat)
        name = f"{cls.__name__}, run of {n} rounds"
        rows.append(row(name, took, took / reference, goal, of))
        name = f"{cls.__name__}, two runs of {n} rounds in two threads"
        rows.append(row(name, both, both / alone, 1.2, "time of one run"))
    return rows


def kons(n: int) -> list[dict]:
    """A run of KONS against the same algorithm row by row, which Sketched-KONS is at gamma = 1."""
    data = stream(n, 18)
    blocks, rows = okl.KONS(KERNEL), okl.SketchedKONS(KERNEL, gamma=1.0)
    plays = [lambda one=one: okl.run(one.reset(), *data).predictions for one in (blocks, rows)]
    np.testing.assert_allclose(*(play() for play in plays), rtol=0, atol=1e-9)
    ours, plain = median_seconds(plays[0]), median_seconds(plays[1], repeat=1)
    name = f"KONS, run of {n} rounds"
    return [speed(name, ours, plain, 3, "the compiled loop that adds row by row")]


def round_seconds(learner, X, y, rounds: int) -> float:
    """Return the median CPU time of a round over five pieces of the stream."""
    pieces = [slice(start, start + rounds) for start in range(0, 5 * rounds, rounds)]
    plays = [partial(learner.partial_fit, X[piece], y[piece]) for piece in pieces]
    return float(np.median([timed(play, time.thread_time) for play in plays])) / rounds


def sketched(quick: bool) -> list[dict]:
    """Exponents of the cost of a round of Sketched-KONS in t and in the size m of its sketch."""
    lengths = [4000, 8000, 16000] if quick else [5000, 10000, 20000, 40000]
    rounds = 200
    X, y = stream(lengths[-1] + 5 * rounds, 18)

    def after(n: int, gamma: float):
        learner = okl.SketchedKONS(KERNEL, gamma=gamma, beta=0.01).partial_fit(X[:n], y[:n])
        return round_seconds(learner, X[n:], y[n:], rounds), learner.sketch_size

    small = [after(n, 1e-6) for n in lengths]
    large = [after(lengths[0], gamma) for gamma in (0.05, 0.1, 0.2, 0.4)]
    own = [(took - small[0][0], m) for took, m in large]
    text = "exponent of what the sketch adds to the cost, in its size"
    rows = exponents(
        "Sketched-KONS", "round", "sketch of {} to {}", lengths, small, own, (1.2, 2.3)
    )
    return [rows[0], rows[1] | {"seconds": f"{large[-1][0]:.4g}", "of": text}]


def exponents(what: str, step: str, held: str, lengths, longer, larger, goals):
    """Return the rows of cost in t and in m; longer, larger: pairs (seconds, m) of growing t, m."""
    sizes = [m for _, m in longer]
    span = f"t from {lengths[0]} to {lengths[-1]}, {held.format(min(sizes), max(sizes))}"
    most = f"t = {lengths[0]}, {held.format(larger[0][1], larger[-1][1])}"
    by_t = fit_exponent(lengths, [took for took, _ in longer])
    by_m = fit_exponent([m for _, m in larger], [took for took, _ in larger])
    return [
        row(f"{what}, {span}, a {step} at the end", longer[-1][0], by_t, goals[0],
            "exponent of the cost in t"),
        row(f"{what}, {most}, a {step} with the largest", larger[-1][0], by_m, goals[1],
            "exponent of the cost in the size of the dictionary"),
    ]  # fmt: skip


def dictionary(what: str, step: str, make, values, goals, quick: bool) -> list[dict]:
    """Exponents of the cost in t and in the size of a dictionary; make: from kernel and mu."""
    lengths = [10_000, 20_000, 40_000] if quick else [25_000, 50_000, 100_000, 200_000]
    rounds = 2000
    X, y = stream(lengths[-1] + 5 * rounds, 4)

    def after(n: int, mu: float):
        learner = make(okl.Gaussian(1.0), mu).partial_fit(X[:n], y[:n])
        return round_seconds(learner, X[n:], y[n:], rounds), learner.size

    # Dictionaries never stop growing (as log t): to see the cost at one size, mu grows with t.
    longer, larger = [after(n, n / 5000) for n in lengths], [after(lengths[0], v) for v in values]
    return exponents(what, step, "{} to {} atoms", lengths, longer, larger, goals)


def jobs(quick: bool) -> list:
    return [
        *(partial(exact, n, 3) for n in ([2500] if quick else [5000, 10_000])),
        lambda: kons(2000 if quick else 5000),
        lambda: sketched(quick),
        lambda: dictionary("Pros-N-KONS", "round", lambda k, mu: okl.ProsNKONS(k, mu=mu),
                           (8.0, 2.0, 0.5, 0.125), (0.15, None), quick),
        lambda: dictionary("KORS", "point", lambda k, mu: okl.KORS(k, alpha=mu),
                           (8.0, 2.0, 0.5, 0.125, 0.03125), (0.15, 2.3), quick),
    ]  # fmt: skip


if __name__ == "__main__":
    report(__doc__, "shorter streams", jobs)
