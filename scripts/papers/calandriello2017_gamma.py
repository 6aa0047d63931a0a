"""Sketched-KONS: regret, time and memory against gamma, next to the lines of Theorem 3.

Reproduces: the trade-off that Theorem 3 of Calandriello, Lazaric, Valko (2017, ICML) states:
    1/gamma times the regret for gamma^2 of time and memory. The paper has no experiments.
Missing: nothing.
Time: about 2 minutes; memory about 1 GB.
Data: casp and magic04 (both come with the package), ijcnn1 if at hand; the first 4000 rows of a
    permutation, inputs and labels scaled to [-1, 1], squared loss.
"""

import pickle

import numpy as np

import oklnumba as okl
from oklnumba import plots
from scripts.common import BOUND, ORANGE, RATE, THEORY, collect, cpu_clock, look, stream
from scripts.papers.calandriello2017 import ALPHA, C, competitor, play, reproduce

GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
QUICK_GAMMAS = (0.01, 0.1, 1.0)
# KORS with the beta of practice, and one so small that nearly all coins have probability gamma.
BETAS = {1.0: "Sketched-KONS, beta = 1", 0.01: "Sketched-KONS, beta = 0.01 (gamma alone)"}
STYLES = dict(zip(BETAS, (look("Sketched-KONS"), {"color": ORANGE, "marker": "o", "mfc": "white"}),
                  strict=True))  # fmt: skip
FREQUENT = {100: "FrequentKONS, 100 atoms", 400: "FrequentKONS, 400 atoms"}  # rank: a quarter
REFERENCES = {label: look(label) | {"marker": ""}
              for label in ("KONS", "CON-KONS", "Pros-N-KONS", *FREQUENT.values())}  # fmt: skip
REFERENCES[FREQUENT[100]]["linestyle"] = (0, (5, 1, 1, 1))
PANELS = {  # column: its unit, power of gamma, name of the axis
    "regret": (1.0, -1, "regret (squared loss)"),
    "seconds": (1.0, 2, "time in the learner (s)"),
    "bytes": (1e-6, 2, "memory of the state (MB)"),
}
LATE = ("sketch", "round_us")


def costs(learner, run, norm: float) -> dict:
    last = len(run.checkpoints) - 2  # the last reading of the clock but one
    late = run.seconds - run.checkpoint_seconds[last]
    return {
        "round_us": 1e6 * late / (run.rounds - run.checkpoints[last]),
        "bytes": len(pickle.dumps(learner)),
        # KONS and Pros-N-KONS have only size
        "sketch": getattr(learner, "sketch_size", learner.size),
        "certified": learner.regret_bound(norm) if hasattr(learner, "drops") else None,
        "restarts": getattr(learner, "restarts", None),
        "R_G": getattr(learner, "R_G", None),
    }


def jobs(kernel, args):
    seeds, common = args.seeds, {"C": C, "alpha": ALPHA}
    out = [("KONS", None, 0, okl.KONS(kernel, **common))]
    for size, label in FREQUENT.items():
        learner = okl.FrequentKONS(kernel, budget=size, rank=size // 4, **common)
        out.append((label, None, 0, learner))
    for seed in seeds:
        for label, restart in (("Pros-N-KONS", True), ("CON-KONS", False)):
            learner = okl.ProsNKONS(kernel, restart=restart, seed=seed, **common)
            out.append((label, None, seed, learner))
    for beta, label in BETAS.items():
        for gamma in QUICK_GAMMAS if args.quick else GAMMAS:
            for seed in seeds if gamma < 1.0 else (0,):  # every coin is heads
                learner = okl.SketchedKONS(kernel, gamma=gamma, beta=beta, seed=seed, **common)
                out.append((label, gamma, seed, learner))
    return out


def measure(name: str, sigma: float, n: int, args) -> list[dict]:
    X, y = stream(name, n)
    kernel = okl.Gaussian(sigma)
    best, norm = competitor(kernel, X, y, C, ALPHA)
    best = float(np.square(y - best).sum())
    dimension = okl.theory.sketched_kons_bound(kernel, X, 1.0, C=C, alpha=ALPHA)
    rows = []
    with cpu_clock():
        played = play(name, (X, y), jobs(kernel, args), args,
                      lambda *both: costs(*both, norm), n_jobs=1)  # fmt: skip
    for run in played:
        regret = run["total_loss"] - best
        theorem = ALPHA * norm**2 + dimension / (run["gamma"] or 1.0)
        # Proposition 1 without the factor that it wastes and with R_D <= 0
        own = None if run["R_G"] is None else (ALPHA * norm**2 + run["R_G"]) / 2.0
        if run["certified"] is not None:
            own, theorem = run["certified"], None
        if own is not None and not regret <= min(own, theorem or own):
            raise SystemExit(f"{name}, {run['algorithm']}: the regret exceeds its bound")
        head = {k: run[k] for k in ("dataset", "algorithm", "gamma", "seed")}
        cost = {k: run[k] for k in ("seconds", "round_us", "bytes", "sketch", "restarts", "R_G")}
        rows.append(head | {"regret": regret, "own bound": own, "Theorem 3": theorem} | cost)
    print(f"{name}: competitor's loss {best:.1f}, norm {norm:.2f}; {n} rounds")
    return rows


def draw(axes, name: str, rows) -> None:
    grid = np.array([min(GAMMAS), 1.0])
    for ax, (key, (unit, power, ylabel)) in zip(axes, PANELS.items(), strict=False):
        for label, style in REFERENCES.items():
            values = unit * collect(rows, "gamma", key, algorithm=label)[1]
            if values.size:
                ax.axhline(np.median(values), label=label, linewidth=1.3, **style)
                ax.axhspan(values.min(), values.max(), color=style["color"], alpha=0.15, lw=0)
        for beta, label in BETAS.items():
            gammas, values = collect(rows, "gamma", key, algorithm=label)
            if values.size:
                plots.band(ax, gammas, unit * values, label, STYLES[beta] | {"markersize": 3})
        gammas, values = collect(rows, "gamma", key, algorithm=BETAS[1.0])
        if gammas[-1] == 1.0:
            line = unit * np.median(values[:, -1]) * grid**power
            ax.plot(grid, line, label="1/gamma; gamma^2; size^2", linestyle=RATE, **THEORY)
        if key != "regret":  # the line of the theory goes far below all measurements
            lines = [line for line in ax.lines if line.get_label() != "1/gamma; gamma^2; size^2"]
            ax.set_ylim(bottom=min(np.min(line.get_ydata()) for line in lines) / 5.0)
        below = "gamma" if key == "bytes" else ""
        plots.tidy(ax, below, ylabel, name if key == "regret" else "", log="xy")
    for beta, label in BETAS.items():
        gammas, bound, sketch, us = collect(rows, "gamma", "own bound", *LATE, algorithm=label)
        style = STYLES[beta] | {"linestyle": BOUND, "linewidth": 0.9, "markersize": 3}
        own = f"bound (alpha |f|^2 + R_G) / 2, beta = {beta:g}"
        axes[0].plot(gammas, np.median(bound, axis=0), label=own, **style)
        style = STYLES[beta] | {"linestyle": "none", "markersize": 3}
        axes[3].plot(sketch.ravel(), us.ravel(), **style)
    gammas, values = collect(rows, "gamma", "Theorem 3", algorithm=BETAS[1.0])
    axes[0].plot(gammas, values[0], label="bound of Theorem 3", linestyle=BOUND, **THEORY)
    m, us = max(tuple(r[key] for key in LATE) for r in rows if r["algorithm"] == BETAS[1.0])
    span = np.array([m / 20.0, m])
    axes[3].plot(span, us * (span / m) ** 2, linestyle=RATE, **THEORY)
    plots.tidy(axes[3], "points in the sketch", "time of a late round (\N{MICRO SIGN}s)", log="xy")


if __name__ == "__main__":
    columns = "sketch", "restarts", "regret", "own bound", "Theorem 3", "seconds", "bytes"
    reproduce(__doc__, 4, measure, draw, *columns)
