"""Sketched-KONS with and without weights, with one coin and two: regret and its parts on data.

Reproduces: two claims of Calandriello, Lazaric, Valko (2017, ICML): the unbiased A^w of section 6
    has an accurate R_G and a large R_D; the shared coin of section 5 and Corollary 1.
Missing: nothing.
Time: about 2 minutes; memory about 2 GB.
"""

from itertools import product

import numpy as np

import oklnumba as okl
from scripts.common import collect, stream
from scripts.looks import BLACK, BLUE, ORANGE, PINK, use_symlog
from scripts.papers.calandriello2017 import ALPHA, C, competitor, play, reproduce, signed_R_D

GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
QUICK_GAMMAS = (0.01, 0.1)
# Label: beta, sampling, and its line: weights 1 are orange, 1/p pink; gamma alone is dashed.
VARIANTS = {
    "weight 1, beta = 1": (1.0, "independent", ORANGE, "-", "s"),
    "weight 1, one coin, beta = 1": (1.0, "shared", BLUE, ":", "^"),
    "weight 1/p, beta = 1": (1.0, "weighted", PINK, "-", "D"),
    "weight 1, gamma alone": (0.01, "independent", ORANGE, "--", "o"),
    "weight 1/p, gamma alone": (0.01, "weighted", PINK, "--", "v"),
}
KONS = {"color": BLACK, "linestyle": "-.", "linewidth": 1.3}
PARTS = {"regret": "regret (squared loss)", "R_G": "R_G", "R_D": "R_D, with its sign"}
SHOWN = ("regret", "R_D")


def measure(name: str, sigma: float, n: int, args) -> list[dict]:
    X, y = stream(name, n)
    kernel = okl.Gaussian(sigma)
    best, norm = competitor(kernel, X, y, C, ALPHA)
    jobs = [("KONS", None, 0, okl.KONS(kernel, C=C, alpha=ALPHA))]
    gammas = QUICK_GAMMAS if args.quick else GAMMAS
    for (label, (beta, way, *_)), gamma, seed in product(VARIANTS.items(), gammas, args.seeds):
        coins = {"gamma": gamma, "beta": beta, "sampling": way, "seed": seed}
        jobs.append((label, gamma, seed, okl.SketchedKONS(kernel, C=C, alpha=ALPHA, **coins)))

    def parts(learner, run) -> dict:
        R_D, above = signed_R_D(learner, run, y, best)
        return {
            "regret": float(run.losses.sum() - np.square(y - best).sum()),
            "R_G": learner.R_G,
            "R_D": R_D,
            # Proposition 1 without the factor that it wastes
            "bound": (ALPHA * norm**2 + learner.R_G + R_D) / 2.0,
            "largest R_D": float(np.maximum(above, 0.0).sum() * 4.0 * C**2),
            "sketch": getattr(learner, "sketch_size", learner.size),
        }

    columns = ("dataset", "algorithm", "gamma", "seed", *PARTS, "bound", "largest R_D", "sketch")
    rows = [{k: r[k] for k in columns} for r in play(name, (X, y), jobs, args, parts)]
    for row in rows:
        if row["regret"] > row["bound"] + 1e-9 * n:
            raise SystemExit(f"{name}, {row['algorithm']}: more than Proposition 1 allows")
    return rows


def draw(axes, name: str, rows) -> None:
    for ax, part in zip(axes, SHOWN, strict=True):
        if part == "R_D":
            use_symlog(ax, 10.0)
        exact = next(row[part] for row in rows if row["algorithm"] == "KONS")
        ax.axhline(exact, label="KONS", **KONS)
        for label, (_, _, colour, dashes, marker) in VARIANTS.items():
            style = {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 3}
            okl.plots.band(ax, *collect(rows, "gamma", part, algorithm=label), label, style)
        title = name if part == "regret" else ""
        below = "gamma" if ax is axes[-1] else ""
        okl.plots.tidy(ax, below, PARTS[part], title, log="x" if part == "R_D" else "xy")


if __name__ == "__main__":
    columns = "sketch", "bound", *PARTS, "R_D_sd", "largest R_D"
    reproduce(__doc__, len(SHOWN), measure, draw, *columns)
