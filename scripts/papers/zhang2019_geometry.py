"""Which geometry suits which comparator: gradient descent, exponentiated gradient, p-norms.

Reproduces: nothing published; what sections 2.3 and 2.5 of Zhang's notes (2019) say in words
    (Example 7).
Missing: nothing.
Time: about a minute.
"""

from math import log, sqrt

import numpy as np

import oklnumba as okl
from scripts.common import collect, run_script
from scripts.looks import BLACK, BLUE, BOUND, ORANGE, PINK, explain

SEEDS = 5
NOISE = 0.5  # labels are off by at most this
EG = "EG on (x, -x)"


def game(sparse: bool, d: int, n: int, seed: int):
    rng = np.random.default_rng(seed)
    if sparse:
        X, w = rng.choice([-1.0, 1.0], (n, d)), np.eye(d)[0]
    else:
        X = np.eye(d)[rng.integers(d, size=n)]
        w = rng.choice([-1.0, 1.0], d)
    return X, X @ w + rng.uniform(-NOISE, NOISE, n), w


def learners(d: int, n: int, w, X):

    def norms(p: float):
        q = okl.oco.dual_exponent(p)
        return okl.oco.p_norm(w, p), float(np.linalg.norm(X[:1000], q, axis=1).max())

    (B2, R2), (B1, R1), loss = norms(2), norms(1), {"loss": "absolute"}
    p = min(max(1.05, 2 * log(d) / (2 * log(d) - 1)), 2.0)
    Bp, Rp = norms(p)
    return {
        "OGD": okl.OGD(B2 / (R2 * sqrt(2 * n)), **loss),
        "p-norm, p near 1": okl.PNorm(Bp / Rp * sqrt((p - 1) / (2 * n)), p=p, **loss),
        EG: okl.ExponentiatedGradient(sqrt(log(2 * d) / n) / R1, scale=B1, **loss),
        "AdaGrad": okl.AdaptiveFTRL("adagrad", eta=float(np.abs(w).max()), sigma=1.0, **loss),
    }


TITLES = {
    "sparse": "sparse w, dense inputs:\n|w|_1 = |w|_2 = 1, |x|_inf = 1",
    "dense": "dense w, sparse inputs:\n|w|_inf = 1, |x|_1 = 1",
}
LOOKS = {
    "OGD": {"color": BLACK, "marker": "^"},
    "p-norm, p near 1": {"color": ORANGE, "linestyle": "-.", "marker": "s"},
    EG: {"color": BLUE, "marker": "o"},
    "AdaGrad": {"color": PINK, "linestyle": ":", "marker": "X"},
}


def measure(args) -> list[dict]:
    n, seeds = (500, 1) if args.quick else (10_000, SEEDS)
    widths, rows = 2 ** np.arange(2, 7, 2) if args.quick else 2 ** np.arange(2, 11), []
    for sparse in (True, False):
        for d in widths:
            regrets = {}
            for seed in range(seeds):
                X, y, w = game(sparse, d, n, seed)
                best = np.abs(y - X @ w).sum()
                for label, learner in learners(d, n, w, X).items():
                    run = okl.run(learner, np.hstack([X, -X]) if label == EG else X, y)
                    regrets.setdefault(label, []).append(run.losses.sum() - best)
            R2 = sqrt(d) if sparse else 1.0
            bounds = {
                "OGD": np.linalg.norm(w) * R2 * sqrt(2 * n),
                EG: 2 * np.abs(w).sum() * sqrt(n * log(2 * d)),
            }
            for label, values in regrets.items():
                rows.append({
                    "comparator": "sparse" if sparse else "dense", "learner": label, "d": d,
                    "rounds": n, "regret": np.mean(values),
                    "standard_error": f"{np.std(values) / sqrt(len(values)):.3g}",
                    "bound": bounds.get(label),
                })  # fmt: skip
                if label in bounds and max(values) > bounds[label]:
                    raise SystemExit(f"{rows[-1]}: the regret exceeds its bound")
    return rows


def draw(rows):
    fig, axes = okl.plots.figure(columns=2, row_height=3.2)
    for ax, (comparator, title) in zip(axes[0], TITLES.items(), strict=True):
        for label, style in LOOKS.items():
            own = {"comparator": comparator, "learner": label}
            d, values, limits = collect(rows, "d", "regret", "bound", **own)
            style = {"linewidth": 1.2, "markersize": 3.5} | style
            ax.plot(d, values[0], label=label, **style)
            if np.isfinite(limits).any():
                ax.plot(d, limits[0], **style | {"linewidth": 0.9, "linestyle": BOUND})
        left = f"regret after {rows[0]['rounds']:,} rounds" if ax is axes[0, 0] else ""
        okl.plots.tidy(ax, "coordinates d", left, title, log="xy", small=1.0)
        ax.set_xticks(d[::2], [str(width) for width in d[::2]])
    explain(axes[0, 0], "bound (OGD, EG)", linestyle=BOUND, linewidth=0.9)
    return fig


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 5.0), legend=5)
