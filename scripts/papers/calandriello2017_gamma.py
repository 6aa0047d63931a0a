"""Sketched-KONS: regret and time against gamma, next to the lines of Theorem 3.

Reproduces: the trade-off that Theorem 3 of Calandriello, Lazaric, Valko (2017, ICML) states.
Missing: R_G of Pros-N-KONS and CON-KONS.
Time: about two minutes; memory about 1 GB.
"""

import pickle
from itertools import product

import numpy as np

import oklnumba as okl
from scripts.common import collect, cpu_clock, stream
from scripts.looks import ORANGE, look
from scripts.papers.calandriello2017 import ALPHA, C, competitor, play, reproduce, signed_R_D

GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
QUICK_GAMMAS = (0.01, 0.1, 1.0)
# KORS with the beta of practice, and one so small that nearly all coins have probability gamma.
BETAS = {1.0: "Sketched-KONS, beta = 1", 0.01: "Sketched-KONS, beta = 0.01 (gamma alone)"}
STYLES = {1.0: look("Sketched-KONS"), 0.01: {"color": ORANGE, "marker": "o", "mfc": "white"}}
FREQUENT = {100: "FrequentKONS, 100 atoms", 400: "FrequentKONS, 400 atoms"}  # rank: a quarter
REFERENCES = {label: look(label) | {"marker": ""}
              for label in ("KONS", "CON-KONS", "Pros-N-KONS", FREQUENT[100])}  # fmt: skip
PANELS = {"regret": (-1, "regret"), "seconds": (2, "time (s)")}  # power of gamma, axis
COLUMNS = ("dataset", "algorithm", "gamma", "seed", "regret", "own bound", "Theorem 3", "seconds",
           "bytes", "sketch", "restarts", "R_G", "R_D", "charge")  # fmt: skip


def jobs(kernel, args):
    common = {"C": C, "alpha": ALPHA}
    yield "KONS", None, 0, okl.KONS(kernel, **common)
    for size, label in FREQUENT.items():
        yield label, None, 0, okl.FrequentKONS(kernel, budget=size, rank=size // 4, **common)
    for seed in args.seeds:
        for label, restart in (("Pros-N-KONS", True), ("CON-KONS", False)):
            yield label, None, seed, okl.ProsNKONS(kernel, restart=restart, seed=seed, **common)
    for (beta, label), gamma in product(BETAS.items(), QUICK_GAMMAS if args.quick else GAMMAS):
        for seed in args.seeds if gamma < 1.0 else (0,):  # every coin is heads
            coins = {"gamma": gamma, "beta": beta, "seed": seed}
            yield label, gamma, seed, okl.SketchedKONS(kernel, **coins, **common)


def measure(name: str, sigma: float, n: int, args) -> list[dict]:
    X, y = stream(name, n)
    kernel = okl.Gaussian(sigma)
    values, norm = competitor(kernel, X, y, C, ALPHA)
    best = float(np.square(y - values).sum())
    dimension = okl.theory.sketched_kons_bound(kernel, X, 1.0, C=C, alpha=ALPHA)

    def parts(learner, run) -> dict:
        found = {
            "regret": float(run.losses.sum()) - best,
            "bytes": len(pickle.dumps(learner)),
            # KONS and Pros-N-KONS have only size
            "sketch": getattr(learner, "sketch_size", learner.size),
            "restarts": getattr(learner, "restarts", None),
        }
        if isinstance(learner, okl.ProsNKONS):
            return found
        if isinstance(learner, okl.FrequentKONS):  # for dropped atoms and inputs outside the span
            more = 2.0 * learner.regret_bound(norm) - ALPHA * norm**2 - learner.R_G
            found["charge"] = more
        else:
            found["R_D"] = signed_R_D(learner, run, y, values)[0]
            more = max(found["R_D"], 0.0)  # without what helps
        # Proposition 1 without the factor that it wastes
        own = (ALPHA * norm**2 + learner.R_G + more) / 2.0
        return found | {"R_G": learner.R_G, "own bound": own}

    with cpu_clock():
        played = play(name, (X, y), [*jobs(kernel, args)], args, parts, n_jobs=1)
    rows = []
    for run in played:
        theorem, own = None, run["own bound"]
        if run["algorithm"] == "KONS" or run["gamma"]:
            theorem = ALPHA * norm**2 + dimension / (run["gamma"] or 1.0)
        if own is not None and not run["regret"] <= min(own, theorem or own):
            raise SystemExit(f"{name}, {run['algorithm']}: the regret exceeds its bound")
        found = run | {"Theorem 3": theorem}
        rows.append({key: found[key] for key in COLUMNS})
    return rows


def draw(axes, name: str, rows) -> None:
    grid = np.array([min(GAMMAS), 1.0])
    for ax, (key, (power, ylabel)) in zip(axes, PANELS.items(), strict=True):
        for label, style in REFERENCES.items():
            values = collect(rows, "gamma", key, algorithm=label)[1]
            if values.size:
                ax.axhline(np.median(values), label=label, linewidth=1.3, **style)
                ax.axhspan(values.min(), values.max(), color=style["color"], alpha=0.15, lw=0)
        for beta, label in BETAS.items():
            gammas, values = collect(rows, "gamma", key, algorithm=label)
            okl.plots.band(ax, gammas, values, label, STYLES[beta] | {"markersize": 3})
        least = min(np.min(line.get_ydata()) for line in ax.lines)  # the theory goes far below
        line = np.median(values[:, -1]) * grid**power
        ax.fill_between(grid, line, color="0.9", lw=0, zorder=0, label="up to 1/gamma; gamma^2")
        okl.plots.tidy(ax, "gamma" if key == "seconds" else "", ylabel,
                   name if key == "regret" else "", log="xy")  # fmt: skip
        ax.set_ylim(bottom=0.5 * least)


if __name__ == "__main__":
    columns = ("sketch", "restarts", "regret", "R_G", "R_D", "charge", "own bound", "Theorem 3",
               "seconds", "bytes")  # fmt: skip
    reproduce(__doc__, len(PANELS), measure, draw, *columns)
