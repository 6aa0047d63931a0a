"""Time of a round of PKAWV at the degree of Theorem 4, next to the cost that the theorem states.

Reproduces: the last line of Theorem 4 of Jezequel, Gaillard, Rudi (2019), with the constant that
    its O hides. A round depends on n by the number of features alone: 1500 rounds are enough.
Missing: more than 4000 features.
Time: about ten seconds.
"""

from math import comb, factorial, log

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, run_script, timed_run
from scripts.looks import BLACK, BLUE, GREEN, RATE, explain

DIMENSIONS, RADIUS = (1, 2, 3, 4), 0.5  # R / sigma
SIZES = 10 ** np.arange(2, 13)
MOST_FEATURES, QUICK_FEATURES = 4000, 300
ROUNDS, REPEATS = 1500, 7
LOOKS = {1: (BLACK, "o"), 2: (BLUE, "s"), 3: (GREEN, "^")}  # d = 4, two sizes, is in the csv


def stated(n, d: int):
    """Return the cost of Theorem 4 without a constant, for lam = 1."""
    return (3.0 + np.log(n) / d) ** (2 * d)


def count_features(d: int, n: int) -> int:
    return comb(okl.theory.taylor_degree(int(n), 1.0, RADIUS, 1.0) + d, d)


def measure(args) -> list[dict]:
    most = QUICK_FEATURES if args.quick else MOST_FEATURES
    cells = [(d, n) for d in DIMENSIONS for n in SIZES if count_features(d, n) <= most]
    return [play(d, n, args.limit) for d, n in tqdm(cells, disable=None)]


def play(d: int, n: int, limit: float) -> dict:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROUNDS, d))
    X *= RADIUS * rng.random((ROUNDS, 1)) ** (1 / d) / np.linalg.norm(X, axis=1)[:, None]
    y = rng.choice([-1.0, 1.0], ROUNDS)
    degree = okl.theory.taylor_degree(int(n), 1.0, RADIUS, 1.0)
    learner = okl.PKAWV(okl.TaylorFeatures(degree))
    us = min(1e6 * timed_run(learner, X, y, limit).seconds / ROUNDS for _ in range(REPEATS))
    r = count_features(d, n)
    row = {"d": d, "n": f"1e{round(log(n, 10))}", "degree": degree, "features": r, "us": us}
    row |= {"ns / r^2": 1e3 * us / r**2, "Theorem 4, without constant": stated(n, d)}
    # r is C(M + d, d) at M = 2 log n, about (2 log n)^d / d!
    limit = ((2.0 * d) ** d / factorial(d)) ** 2
    return row | {"r^2 / that": r**2 / stated(n, d), "its limit": limit}


def draw(rows):
    figure, axes = okl.plots.figure(rows=1, columns=2, row_height=2.6)
    left, right = axes.flat
    rows = [row | {"n": float(row["n"])} for row in rows]
    one = min(row["ns / r^2"] for row in rows) / 1e3  # us of an entry of A where r is large
    for d, (colour, marker) in LOOKS.items():
        if d not in {row["d"] for row in rows}:
            continue
        n, us, share, limit = collect(rows, "n", "us", "r^2 / that", "its limit", d=d)
        style = {"color": colour, "marker": marker, "markersize": 3.5}
        left.plot(n, us[0], label=f"d = {d}", **style)
        left.plot(n, one * stated(n, d), color=colour, linestyle=RATE)
        right.plot(n, share[0], **style)
        right.plot(SIZES[[0, -1]], limit[0, [0, 0]], color=colour, linestyle=RATE)
    explain(left, "stated, constant 1; its limit", linestyle=RATE)
    okl.plots.tidy(left, "rounds n that the degree is for", "time of a round (µs)", "", log="xy")
    okl.plots.tidy(right, "rounds n that the degree is for", "r^2 / stated", "", log="xy")
    return figure


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 5.0), legend=5)
