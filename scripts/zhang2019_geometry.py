"""Which geometry suits which comparator: gradient descent, exponentiated gradient, p-norms.

Reproduces: nothing published; it is the comparison that sections 2.3 and 2.5 of Zhang's lecture
    notes (2019) make in words (Example 7; "incomparable" bounds): B_2 R_2 sqrt(2 T) of gradient
    descent against 2 B_1 R_inf sqrt(T log d) of exponentiated gradient. Left: one coordinate of w
    counts and inputs are dense signs. Right: all coordinates of w count alike and inputs have one
    entry. Regret after T rounds of the absolute loss, against the w that makes the labels, on a
    growing number of coordinates; dotted: the bounds of the two extremes.
Missing: nothing.
Time: about a minute.
Data: synthetic.
"""

from math import log, sqrt

import numpy as np
from common import arguments, print_table, save, tidy

import oklnumba as okl
from oklnumba import plots

STEM = "zhang2019_geometry"
SEEDS = 5
NOISE = 0.5  # labels are off by at most this


def game(sparse: bool, d: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, labels and the comparator."""
    rng = np.random.default_rng(seed)
    if sparse:
        X, w = rng.choice([-1.0, 1.0], (n, d)), np.eye(d)[0]
    else:
        X = np.eye(d)[rng.integers(d, size=n)]
        w = rng.choice([-1.0, 1.0], d)
    return X, X @ w + rng.uniform(-NOISE, NOISE, n), w


def learners(d: int, n: int, w: np.ndarray, X: np.ndarray) -> dict[str, tuple]:
    """Return the learners, each tuned for the norms of this game, and whether it takes (x, -x)."""

    def norms(p: float) -> tuple[float, float]:
        q = okl.oco.dual_exponent(p)
        return okl.oco.p_norm(w, p), float(np.linalg.norm(X[:1000], q, axis=1).max())

    B2, R2 = norms(2)
    B1, R1 = norms(1)
    p = max(1.05, 2 * log(d) / (2 * log(d) - 1)) if d > 3 else 2.0
    p = min(p, 2.0)
    Bp, Rp = norms(p)
    return {
        "OGD": (okl.OGD(B2 / (R2 * sqrt(2 * n)), loss="absolute"), False),
        "p-norm, p near 1": (
            okl.PNorm(Bp / Rp * sqrt((p - 1) / (2 * n)), p=p, loss="absolute"),
            False,
        ),
        "EG on (x, -x)": (
            okl.ExponentiatedGradient(sqrt(log(2 * d) / n) / R1, scale=B1, loss="absolute"),
            True,
        ),
        "AdaGrad": (
            okl.AdaptiveFTRL("adagrad", eta=float(np.abs(w).max()), sigma=1.0, loss="absolute"),
            False,
        ),
    }


def main() -> None:
    args = arguments(__doc__ or "", limit=60.0, quick_limit=5.0)
    n = 500 if args.quick else 10_000
    widths = [4, 16, 64] if args.quick else [4, 8, 16, 32, 64, 128, 256, 512, 1024]
    fig, axes = plots.figure(columns=2, width=7.2, row_height=3.2)
    numbers = []
    titles = {
        True: "sparse w, dense inputs:\n|w|_1 = |w|_2 = 1, |x|_inf = 1",
        False: "dense w, sparse inputs:\n|w|_inf = 1, |x|_1 = 1",
    }
    for ax, (sparse, title) in zip(axes[0], titles.items(), strict=True):
        found: dict[str, list[float]] = {}
        limits: dict[str, list[float]] = {"OGD": [], "EG on (x, -x)": []}
        for d in widths:
            regrets: dict[str, list[float]] = {}
            for seed in range(1 if args.quick else SEEDS):
                X, y, w = game(sparse, d, n, seed)
                best = np.abs(y - X @ w).sum()
                for label, (learner, doubled) in learners(d, n, w, X).items():
                    inputs = np.hstack([X, -X]) if doubled else X
                    run = okl.run(learner, inputs, y)
                    regrets.setdefault(label, []).append(run.losses.sum() - best)
            B1, B2 = np.abs(w).sum(), np.linalg.norm(w)
            R2 = sqrt(d) if sparse else 1.0
            limits["OGD"].append(B2 * R2 * sqrt(2 * n))
            limits["EG on (x, -x)"].append(2 * B1 * sqrt(n * log(2 * d)))
            for label, values in regrets.items():
                found.setdefault(label, []).append(float(np.mean(values)))
                row = {
                    "comparator": "sparse" if sparse else "dense", "learner": label, "d": d,
                    "rounds": n, "regret": f"{np.mean(values):.6g}",
                    "standard_error": f"{np.std(values) / sqrt(len(values)):.3g}",
                    "bound": f"{limits[label][-1]:.6g}" if label in limits else "",
                }  # fmt: skip
                if label in limits and max(values) > limits[label][-1]:
                    raise SystemExit(f"{row}: the regret exceeds its bound")
                numbers.append(row)
        for i, (label, values) in enumerate(found.items()):
            style = plots.line_style(i if i < 3 else 4)  # dotted lines are the bounds
            ax.plot(widths, values, label=label, marker="o", ms=3, lw=1.2, **style)
            if label in limits:
                ax.plot(widths, limits[label], color=style["color"], ls=":", lw=1.4)
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        tidy(ax, "coordinates d", f"regret after {n:,} rounds", title, small=1.0)
    axes[0, 0].plot([], [], color="0.4", ls=":", lw=1.4, label="bound (OGD, EG)")
    plots.shared_legend(fig, columns=5)
    save(fig, numbers, args, STEM)
    print_table(numbers)


if __name__ == "__main__":
    main()
