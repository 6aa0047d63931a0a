"""Average loss on casp divided by that of the authors' own run, over ten permutations.

Reproduces: the upper left panel of Figure 4 of Jezequel, Gaillard, Rudi (2019), in numbers.
Missing: their permutation and seeds, which are not known; theirs cuts kernel ridge regression.
Time: two minutes.
"""

from itertools import product

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, curve_rows, group, run_script
from scripts.looks import look
from scripts.papers.jezequel2019 import CURVES, Panel, learners, published, stream

PERMUTATIONS, QUICK_PERMUTATIONS = 10, 2
RIDGE_ROUNDS = 2708
FIRST = 50  # first round drawn
TABLE = (1001, 5001, 20_001, 45_730)
READING = 0.5  # per cent, of the authors' picture
CASP = Panel("casp")
NYSTROM, PROS = "Nystrom, KORS as listed", "Pros-N-KONS, KORS as listed"
DODGE = 1.06  # between the bars of a round
PANELS = {
    "ridge forecasts": ("KernelRidge", "PKAWV M=2", "PKAWV M=3", "Nystrom", NYSTROM),
    "gradient and Newton steps": ("FOGD", "Pros-N-KONS", PROS),
}
LOOKS = {label: look(label) | {"linewidth": 1.0} for own in PANELS.values() for label in own}
for published_kors in ("Nystrom", "Pros-N-KONS"):
    LOOKS[published_kors] |= {"mfc": "white", "linestyle": "--"}


def theirs():
    curves = published("casp average squared loss")
    found = {CURVES[name]: curve for name, curve in curves.items()}
    found["Nystrom"] = found[NYSTROM]
    return found | {"Pros-N-KONS": found[PROS]}


def measure(args) -> list[dict]:
    permutations, curves, rows = QUICK_PERMUTATIONS if args.quick else PERMUTATIONS, theirs(), []
    for label, seed in tqdm([*product(LOOKS, range(permutations))], disable=None):
        X, y = stream(CASP, (0.0, 1.0), seed)
        n = RIDGE_ROUNDS if label == "KernelRidge" else len(y)
        run = okl.run(learners(CASP, X, seed)[label], X[:n], y[:n])
        rounds, values = curves[label]
        curve = {"round": rounds, "size at the end": [run.sizes[-1]] * len(rounds)}
        curve |= {"average_loss": np.cumsum(run.losses)[rounds - 1] / rounds, "authors": values}
        rows += curve_rows({"algorithm": label, "permutation": seed}, curve)
    return rows


def draw(rows):
    figure, axes = okl.plots.figure(columns=2, row_height=3.4)
    for ax, (name, labels) in zip(axes[0], PANELS.items(), strict=True):
        for number, label in enumerate(labels):
            columns = "round", "average_loss", "authors"
            rounds, ours, values = collect(rows, *columns, algorithm=label)
            ratios, x = (ours / values)[:, rounds >= FIRST], rounds[rounds >= FIRST]
            mean = ratios.mean(axis=0)
            bars = mean - ratios.min(axis=0), ratios.max(axis=0) - mean
            style = LOOKS[label] | {"markersize": 4, "elinewidth": 0.7}
            ax.errorbar(x * DODGE ** (number - 2), mean, bars, label=label, **style)
        ax.axhspan(1 - READING / 100, 1 + READING / 100, color="0.5", alpha=0.35, lw=0,
                   label=f"reading error of theirs, {READING} %")  # fmt: skip
        okl.plots.tidy(ax, "rounds", text=name, log="x")
    axes[0, 0].set_ylabel("average loss, ours / theirs", fontsize=okl.plots.FONT)
    return figure


def table(rows):
    out = []
    for label in group(rows, "algorithm"):
        columns = "average_loss", "authors", "size at the end"
        rounds, ours, values, sizes = collect(rows, "round", *columns, algorithm=label)
        row = {"algorithm": label, "size": f"{sizes[:, 0].mean():.0f}"}
        for t in (*TABLE, RIDGE_ROUNDS):
            texts = ["-"] * 3
            if t in rounds:
                at = list(rounds).index(t)
                mean, deviation, value = ours[:, at].mean(), ours[:, at].std(ddof=1), values[0, at]
                off = f"{100.0 * (mean / value - 1.0):+.1f} %"
                texts = [f"{value:.4f}", f"{mean:.4f} +- {deviation:.4f}", off]
            row |= zip((f"theirs at {t}", f"ours at {t}", f"off at {t}"), texts, strict=True)
        out.append(row)
    return out


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (300.0, 8.0), table, legend=3)
