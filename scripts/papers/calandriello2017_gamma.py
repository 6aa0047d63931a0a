"""Sketched-KONS: regret, its parts, time and memory against gamma, next to Theorem 3's lines.

Reproduces: the trade-off that Theorem 3 of Calandriello, Lazaric, Valko (2017, ICML) states:
    1/gamma times the regret for gamma^2 of time and memory. The paper has no experiments.
    R_G and R_D are the parts of its Proposition 1, 2 regret <= alpha |f|^2 + R_G + R_D; in the
    place of R_D stands for Pros-N-KONS what its restarts are charged, alpha |f|^2 each, and for
    FrequentKONS what its certificate adds for dropped atoms and inputs outside the span.
Missing: R_G of CON-KONS, whose matrix is carried from span to span.
Time: about two minutes; memory about 1 GB.
Data: casp and magic04 (both come with the package), ijcnn1 if at hand; the first 4000 rows of a
    permutation, inputs and labels scaled to [-1, 1], squared loss.
"""

import pickle

import numpy as np

import oklnumba as okl
from oklnumba import plots
from scripts.common import collect, cpu_clock, stream
from scripts.looks import BOUND, ORANGE, RATE, THEORY, look, use_symlog
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
    "regret": (1.0, -1, "regret"),
    "R_G": (1.0, -1, "R_G"),
    "R_D": (1.0, None, "R_D, with its sign"),
    "seconds": (1.0, 2, "time (s)"),
    "bytes": (1e-6, 2, "memory (MB)"),
}
LATE = ("sketch", "round_us")
COSTS = ("seconds", "round_us", "bytes", "sketch", "restarts", "R_G", "R_D")
SIGMA = 1.0 / (8.0 * C**2)


def restarted_R_G(kernel, X, y, run) -> float:
    """Return sum g' A_t^-1 g of Pros-N-KONS, whose A is alpha I again where its span grows.

    A = alpha I + sum (sigma / 2) g g', half the weight of KONS (NIPS 2017, Algorithm 1).
    """
    slopes, total, weight = 2.0 * (run.predictions - y), 0.0, SIGMA / 2.0
    begins = np.flatnonzero(np.diff(run.sizes, prepend=0))
    for start, stop in zip(begins, [*begins[1:], len(y)], strict=True):
        z = okl.NystromFeatures(X[begins[begins <= start]], kernel).transform(X[start:stop])
        g = slopes[start:stop, None] * z
        L = np.linalg.cholesky(weight * g @ g.T + ALPHA * np.eye(len(g)))
        total += float((1.0 - ALPHA / np.diag(L) ** 2).sum()) / weight
    return total


def parts(learner, run, kernel, data, best, norm: float) -> dict:
    """Return R_G and R_D, or what stands for it (see the top of the script)."""
    X, y = data
    if isinstance(learner, okl.ProsNKONS):
        charged = ALPHA * norm**2 * learner.restarts
        restart = learner.restart
        return {"R_G": restarted_R_G(kernel, X, y, run) if restart else None,
                "R_D": charged if restart else None}  # fmt: skip
    if isinstance(learner, okl.FrequentKONS):
        added = 2.0 * learner.regret_bound(norm) - ALPHA * norm**2 - learner.R_G
    else:  # a_t - sigma l'_t^2, a_t the weight of phi_t phi_t' in A
        above = learner.A_weights - SIGMA * 4.0 * np.square(run.predictions - y)
        added = float((above * np.square(run.predictions - best)).sum())
    return {"R_G": learner.R_G, "R_D": added}


def costs(learner, run) -> dict:
    last = len(run.checkpoints) - 2  # the last reading of the clock but one
    late = run.seconds - run.checkpoint_seconds[last]
    return {
        "round_us": 1e6 * late / (run.rounds - run.checkpoints[last]),
        "bytes": len(pickle.dumps(learner)),
        # KONS and Pros-N-KONS have only size
        "sketch": getattr(learner, "sketch_size", learner.size),
        "restarts": getattr(learner, "restarts", None),
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
    values, norm = competitor(kernel, X, y, C, ALPHA)
    best = float(np.square(y - values).sum())
    dimension = okl.theory.sketched_kons_bound(kernel, X, 1.0, C=C, alpha=ALPHA)
    rows = []
    with cpu_clock():
        played = play(name, (X, y), jobs(kernel, args), args,
                      lambda learner, run: costs(learner, run)
                      | parts(learner, run, kernel, (X, y), values, norm), n_jobs=1)  # fmt: skip
    for run in played:
        regret = run["total_loss"] - best
        theorem = None
        if run["algorithm"] == "KONS" or run["gamma"]:
            theorem = ALPHA * norm**2 + dimension / (run["gamma"] or 1.0)
        own = None
        if run["R_G"] is not None and not run["restarts"]:
            # Proposition 1 without the factor that it wastes, and without what helps of R_D
            own = (ALPHA * norm**2 + run["R_G"] + max(run["R_D"], 0.0)) / 2.0
        if own is not None and not regret <= min(own, theorem or own):
            raise SystemExit(f"{name}, {run['algorithm']}: the regret exceeds its bound")
        head = {k: run[k] for k in ("dataset", "algorithm", "gamma", "seed")}
        cost = {k: run[k] for k in COSTS}
        rows.append(head | {"regret": regret, "own bound": own, "Theorem 3": theorem} | cost)
    print(f"{name}: competitor's loss {best:.1f}, norm {norm:.2f}; {n} rounds")
    return rows


def draw(axes, name: str, rows) -> None:
    grid = np.array([min(GAMMAS), 1.0])
    for ax, (key, (unit, power, ylabel)) in zip(axes, PANELS.items(), strict=False):
        for label, style in REFERENCES.items():
            values = unit * collect(rows, "gamma", key, algorithm=label)[1]
            if values.size and np.isfinite(values).all():
                ax.axhline(np.median(values), label=label, linewidth=1.3, **style)
                ax.axhspan(values.min(), values.max(), color=style["color"], alpha=0.15, lw=0)
        for beta, label in BETAS.items():
            gammas, values = collect(rows, "gamma", key, algorithm=label)
            if values.size:
                plots.band(ax, gammas, unit * values, label, STYLES[beta] | {"markersize": 3})
        gammas, values = collect(rows, "gamma", key, algorithm=BETAS[1.0])
        if gammas[-1] == 1.0 and power is not None:
            line = unit * np.median(values[:, -1]) * grid**power
            ax.plot(grid, line, label="1/gamma; gamma^2; size^2", linestyle=RATE, **THEORY)
        if (
            unit != 1.0 or key == "seconds"
        ):  # the line of the theory goes far below all measurements
            lines = [line for line in ax.lines if line.get_label() != "1/gamma; gamma^2; size^2"]
            ax.set_ylim(bottom=min(np.min(line.get_ydata()) for line in lines) / 5.0)
        below = "gamma" if key == "bytes" else ""
        if key == "R_D":
            use_symlog(ax, 10.0)
        log = "x" if key == "R_D" else "xy"
        plots.tidy(ax, below, ylabel, name if key == "regret" else "", log=log)
    for beta, label in BETAS.items():
        sketch, us = (each.ravel() for each in collect(rows, "gamma", *LATE, algorithm=label)[1:])
        style = STYLES[beta] | {"linestyle": "none", "markersize": 3}
        axes[-1].plot(sketch, us, **style)
    gammas, values = collect(rows, "gamma", "Theorem 3", algorithm=BETAS[1.0])
    axes[0].plot(gammas, values[0], label="bound of Theorem 3", linestyle=BOUND, **THEORY)
    m, us = max(tuple(r[key] for key in LATE) for r in rows if r["algorithm"] == BETAS[1.0])
    span = np.array([m / 20.0, m])
    axes[-1].plot(span, us * (span / m) ** 2, linestyle=RATE, **THEORY)
    plots.tidy(axes[-1], "points in the sketch", "a late round (\N{MICRO SIGN}s)", log="xy")


if __name__ == "__main__":
    columns = (
        "sketch",
        "restarts",
        "regret",
        "R_G",
        "R_D",
        "own bound",
        "Theorem 3",
        "seconds",
        "bytes",
    )
    reproduce(__doc__, 1 + len(PANELS), measure, draw, *columns, row_height=1.6)
