"""CPU time to accuracy eps on regularised logistic loss: FTRL with and without strong convexity.

Reproduces: nothing published; the motivating example of section 3 of Zhang's lecture notes (2019).
Missing: the hinge loss.
Time: two minutes.
"""

from math import sqrt
from time import process_time

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import oklnumba as okl
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
LEARNERS = {  # of n and a multiple of the step; Theorem 4 has no step
    "FTRL, constant step": lambda n, by: okl.OGD(by * ETA / sqrt(2 * n)),
    "FTRL, steps 1 / sqrt(t)": lambda _, by: okl.AdaptiveFTRL("sqrt", eta=by * ETA),
    "Theorem 4": lambda *_: okl.StronglyConvexFTRL(LAM),
}
MULTIPLES = (1, 4, 16, 64)


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
        play(make(99, 1), 99, 0)  # compiles
        multiples = MULTIPLES if name.startswith("FTRL") else (1,)
        rows += [{"algorithm": name, "step": by, "n": n, "seed": k} | play(make(n, by), n, k)
                 for by in multiples for n in sizes for k in range(SEEDS)]  # fmt: skip
    return rows


def curves(rows, name: str):
    """Return n, and by multiple of the step seconds and eps, each the mean over seeds."""
    found = {}
    for by in sorted({row["step"] for row in rows if row["algorithm"] == name}):
        n, *both = collect(rows, "n", "seconds", "eps", algorithm=name, step=by)
        found[by] = [each.mean(axis=0) for each in both]
    return n, found


def draw(rows):
    fig, ((ax,),) = okl.plots.figure(columns=1, row_height=2.6)
    for name, colour in zip(LEARNERS, (BLUE, ORANGE, BLACK), strict=True):
        style = {"color": colour, "markersize": 3, "linewidth": 1.1}
        _, found = curves(rows, name)
        seconds, eps = np.swapaxes(list(found.values()), 0, 1)
        best = eps.argmin(axis=0), np.arange(eps.shape[1])
        if len(found) > 1:
            ax.plot(eps[0], seconds[0], "--", label=f"{name} of the theory", **style)
        label = f"{name}, tuned" if len(found) > 1 else name
        ax.plot(eps[best], seconds[best], "o-", label=label, **style)
    okl.plots.tidy(ax, "eps: F at the mean point - min F", "CPU seconds", log="xy")
    return fig


def summary(rows) -> list[dict]:
    """Return eps by n: of Theorem 4, and of plain FTRL with each multiple of its step."""
    out = []
    for name in LEARNERS:
        n, found = curves(rows, name)
        for by, (_, eps) in found.items():
            texts = zip(n, eps, strict=True)
            out.append({"algorithm": name, "step": by} | {str(k): f"{e:.3g}" for k, e in texts})
    return out


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 5.0), summary, legend=3)
