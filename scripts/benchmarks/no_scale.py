"""No lam to know: Experts over a grid of lam, beside PKAWV with the best lam in hindsight.

Reproduces: nothing published. Vovk's aggregating algorithm over N values of lam has the regret of
    the best of them and at most 2 B^2 log N more (docs/guarantees.md).
Missing: nothing.
Time: one minute.
Data: casp, magic04, mushrooms (they come with the package) and what OKLNUMBA_DATA has of ijcnn1,
    cadata and parkinsons; permuted, at most 5,000 rows, inputs in [-1, 1].
"""

import time

import numpy as np

import oklnumba as okl
from oklnumba import plots
from scripts.common import BLACK, available, parse_args, publish, stream

SETS = "casp", "cadata", "parkinsons", "magic04", "mushrooms", "ijcnn1"
LAMS = 4.0 ** np.arange(-6, 7)
ROWS, QUICK_ROWS = 5000, 1000


def play(learner, X, y) -> tuple[float, float]:
    """Return the loss and the CPU seconds of a run."""
    okl.run(learner, X[:100], y[:100])  # compiles
    learner.reset()
    start = time.process_time()
    loss = okl.run(learner, X, y).losses.sum()
    return loss, time.process_time() - start


def compare(name: str, args) -> list[dict]:
    """Return the loss of each lam, and of the grid, over the least one in hindsight."""
    X, y = stream(name, QUICK_ROWS if args.quick else ROWS)
    sigma = float(np.median(np.linalg.norm(X[:200, None] - X[200:400], axis=2)))
    features = okl.FourierFeatures(300, sigma=0.5 * sigma)
    each = [okl.PKAWV(features, lam=lam) for lam in LAMS]
    played = [play(one, X, y) for one in each]
    loss, seconds = play(okl.Experts(each, B=float(np.abs(y).max())), X, y)
    best = min(one for one, _ in played)
    excess, most = loss - best, okl.theory.experts_bound(len(LAMS), np.abs(y).max())
    rows = [
        {"set": name, "lam": lam, "loss / best": one / best}
        for lam, (one, _) in zip(LAMS, played, strict=True)
    ]
    rows.append({"set": name, "lam": "grid", "loss / best": loss / best})
    own = np.mean([t for _, t in played])
    both = {
        "rounds": len(y),
        "excess of the grid": excess,
        "its bound": most,
        "time / one": seconds / own,
    }
    return [row | both for row in rows]


def draw(rows: list[dict]):
    figure, axes = plots.figure(columns=1, row_height=2.6)
    ax = axes[0][0]
    for i, name in enumerate(dict.fromkeys(row["set"] for row in rows)):
        own = [row for row in rows if row["set"] == name]
        curve = [row for row in own if row["lam"] != "grid"]
        colour = plots.COLOURS[i + 1]
        ax.plot([row["lam"] for row in curve], [row["loss / best"] for row in curve],
                color=colour, marker="os^DvP"[i], markersize=3.5, label=name)  # fmt: skip
        ax.axhline(own[-1]["loss / best"], color=colour, linewidth=1.0, linestyle=":")
    ax.plot([], [], color=BLACK, linestyle=":", linewidth=1.0, label="all lam at once, aggregated")
    plots.tidy(ax, "lam", "loss / that of the best lam", log="xy")
    return figure


def main() -> None:
    args = parse_args(__doc__, 60.0, 20.0)
    here = available(SETS) if not args.rows else SETS
    rows = args.rows or [row for name in here for row in compare(name, args)]
    table = [row for row in rows if row["lam"] == "grid"]
    publish(draw(rows), rows, args, table, legend=4, partial=set(here) != set(SETS))


if __name__ == "__main__":
    main()
