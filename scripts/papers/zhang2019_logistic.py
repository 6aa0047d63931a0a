"""CPU time to accuracy eps on regularised logistic loss: FTRL with and without strong convexity.

Reproduces: nothing published; the motivating example of section 3 of Zhang's lecture notes (2019):
    T = O(1 / eps^2) rounds for FTRL with a squared norm, O(log(1 / (lam eps)) / (lam eps)) for
    Theorem 4. Rows are drawn from 2,000 points, so F and its minimum are computed exactly. What
    counts is F at the mean of the points played. Plain FTRL is given |w*| and the horizon.
Missing: the hinge loss.
Time: half a minute.
Data: synthetic.
"""

from math import sqrt
from time import process_time

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import oklnumba as okl
from oklnumba import plots
from scripts.common import collect, run_script
from scripts.looks import BLACK, BLUE, ORANGE

D, LAM, POINTS, SEEDS = 20, 0.01, 2000, 5
RNG = np.random.default_rng(0)
Z = RNG.standard_normal((POINTS, D))
Z /= np.linalg.norm(Z, axis=1, keepdims=True)
Z *= np.where(RNG.uniform(size=POINTS) < expit(Z @ np.full(D, 3.0)), 1.0, -1.0)[:, None]  # y x


def objective(w):
    """Return F(w) = E lam |w|^2 / 2 + ln(1 + exp(-w.yx)) and its gradient."""
    margins = Z @ w
    value = LAM / 2 * (w @ w) + np.logaddexp(0.0, -margins).mean()
    return value, LAM * w - Z.T @ expit(-margins) / POINTS


BEST = minimize(objective, np.zeros(D), jac=True, tol=1e-10)
B = np.linalg.norm(BEST.x)
ETA = B / (1 + LAM * B)  # |w*| / L
LEARNERS = {
    "FTRL, constant step": lambda n: okl.OGD(ETA / sqrt(2 * n)),
    "FTRL, steps 1 / sqrt(t)": lambda _: okl.AdaptiveFTRL("sqrt", eta=ETA),
    "Theorem 4": lambda _: okl.StronglyConvexFTRL(LAM),
}


def play(learner, n: int, seed: int):
    """Return the CPU time of n rounds, and F - min F at the mean of their points."""
    learner.reset(D)
    rows, total = Z[np.random.default_rng(seed).integers(POINTS, size=n)], np.zeros(D)
    start = process_time()
    for z in rows:
        w = learner.w
        total += w
        learner.update(LAM * w - expit(-(z @ w)) * z)
    seconds = process_time() - start
    return {"seconds": seconds, "eps": objective(total / n)[0] - BEST.fun}


def measure(args) -> list[dict]:
    sizes, rows = [2**k for k in range(8, 12 if args.quick else 17)], []
    for name, make in LEARNERS.items():
        play(make(99), 99, 0)  # compiles
        rows += [{"algorithm": name, "n": n, "seed": k} | play(make(n), n, k)
                 for n in sizes for k in range(SEEDS)]  # fmt: skip
    return rows


def draw(rows):
    fig, ((ax,),) = plots.figure(columns=1, row_height=2.6)
    for name, colour in zip(LEARNERS, (BLUE, ORANGE, BLACK), strict=True):
        _, *found = collect(rows, "n", "seconds", "eps", algorithm=name)
        seconds, eps = (each.mean(axis=0) for each in found)
        ax.plot(eps, seconds, "o-", color=colour, markersize=3, linewidth=1.1, label=name)
    plots.tidy(ax, "eps: F at the mean point - min F", "CPU seconds", log="xy")
    return fig


def last_rows(rows) -> list[dict]:
    last = max(row["n"] for row in rows)
    return [row for row in rows if row["n"] == last]


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 5.0), last_rows, legend=3)
