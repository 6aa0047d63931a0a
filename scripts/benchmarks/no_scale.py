"""No lam and no step to know: Experts over a grid of lam, and coin betting.

Reproduces: nothing published.
Missing: nothing.
Time: one minute.
"""

import time

import numpy as np

import oklnumba as okl
from scripts.common import available, group, run_script, stream
from scripts.looks import explain

SETS = "casp", "cadata", "parkinsons", "magic04", "mushrooms", "ijcnn1"
LAMS = 4.0 ** np.arange(-6, 7)
STEPS = 4.0 ** np.arange(-6, 5)
ROWS, QUICK_ROWS = 5000, 1000
TOP = 30.0  # of the picture; the largest steps are beyond it


def play(learner, Z, y) -> tuple[float, float]:
    """Return the loss and the CPU seconds of a run, the less of two."""
    okl.run(learner, Z[:100], y[:100])  # compiles
    seconds = []
    for _ in range(2):
        learner.reset()
        start = time.process_time()
        loss = okl.run(learner, Z, y).losses.sum()
        seconds.append(time.process_time() - start)
    return loss, min(seconds)


def measure(args) -> list[dict]:
    """Return the loss of each lam and step, and of what knows none, over the least in hindsight."""
    rows = []
    for name in available(SETS):
        X, y = stream(name, QUICK_ROWS if args.quick else ROWS)
        sigma = float(np.median(np.linalg.norm(X[:200, None] - X[200:400], axis=2)))
        features = okl.FourierFeatures(300, sigma=0.5 * sigma)
        each = {lam: okl.PKAWV(features, lam=lam) for lam in LAMS}
        B = float(np.abs(y).max())
        grid, most = okl.Experts([*each.values()], B=B), okl.theory.experts_bound(len(LAMS), B)
        rows += set_beside(name, "PKAWV", each, grid, X, y, most)
        loss = "hinge" if okl.datasets.load(name).task == "classification" else "absolute"
        steps = {eta: okl.OGD(eta, loss=loss) for eta in STEPS}
        bettor, Z = okl.CoinBetting(1.0, loss=loss), features.transform(X)
        rows += set_beside(name, f"OGD, {loss}", steps, bettor, Z, y, None)
    return rows


def set_beside(name, learner, tuned, free, X, y, most) -> list[dict]:
    """Play learners by their hyper-parameter, and the one that has none."""
    played = {value: play(one, X, y) for value, one in tuned.items()}
    loss, seconds = play(free, X, y)
    best = min(one for one, _ in played.values())
    head, ratio = {"set": name, "learner": learner}, "loss / best"
    rows = [head | {"lam or eta": value, ratio: one / best} for value, (one, _) in played.items()]
    rows.append(head | {"lam or eta": "none", ratio: loss / best})
    own = np.mean([t for _, t in played.values()])
    both = {
        "rounds": len(y),
        "mean loss of the best": best / len(y),
        "excess without": loss - best,
        "its bound": most,
        "time / one": seconds / own,
    }
    return [row | both for row in rows]


def draw(rows: list[dict]):
    figure, axes = okl.plots.figure(row_height=2.9)
    panels = (("PKAWV", "lam", "all lam\nat once"), ("OGD", "eta", "coin\nbetting"))
    for ax, (kind, label, free) in zip(axes[0], panels, strict=True):
        own = [row for row in rows if row["learner"].startswith(kind)]
        last = max(row["lam or eta"] for row in own if row["lam or eta"] != "none")
        for i, (name, (*curve, without)) in enumerate(group(own, "set").items()):
            style = {"color": okl.plots.COLOURS[i + 1], "marker": "os^DvP"[i]}
            ax.plot([row["lam or eta"] for row in curve], [row["loss / best"] for row in curve],
                    markersize=3.5, label=name, **style)  # fmt: skip
            ax.plot(last * 4.0 ** (1.7 + 0.55 * i), without["loss / best"], markersize=5.5,
                    markeredgecolor="black", linestyle="", **style)  # fmt: skip
        ax.axvspan(last * 4.0, last * 4.0**5.2, color="0.94", lw=0, zorder=0)
        ax.text(last * 4.0**3.1, 0.94 * TOP, free, ha="center", va="top", fontsize=8)
        okl.plots.tidy(ax, label, f"loss / that of the best {label}", log="xy")
        ax.set(ylim=(0.9, TOP), xlim=(min(LAMS) / 2.0, last * 4.0**5.2))
        ax.set_xticks([tick for tick in ax.get_xticks() if min(LAMS) / 2.0 < tick <= last])
        ax.xaxis.set_major_formatter("{x:g}")
    explain(axes[0][1], "nothing to set", linestyle="", marker="o", markeredgecolor="black")
    return figure


def free_rows(rows: list[dict]) -> list[dict]:
    return [row for row in rows if row["lam or eta"] == "none"]


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 20.0), free_rows, legend=4)
