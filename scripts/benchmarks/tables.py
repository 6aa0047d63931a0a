"""SelfTuning and LightGBM on tables that do not move: row by row, and in five folds.

Reproduces: nothing published. Row by row, each forecast is made before its label; LightGBM, with
    its defaults, is fitted anew after 200, 500, 1,000, 2,000, ... rows, on all of them. In five
    folds OnlineClassifier() and LGBMClassifier() are fitted once on four of them.
Missing: LightGBM, and the five folds, without pip install -e ".[benchmark]".
Time: six minutes; --quick: one permutation of 3,000 rows.
Data: eleven sets in three orders, at most 20,000 rows; for the folds, four of scikit-learn too.
"""

import time

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from scripts.benchmarks import rivals
from scripts.benchmarks.streams import Stream, load_stream
from scripts.common import BLUE, VERMILLION, available, exit_if_empty, parse_args, publish

SETS = (
    "magic04", "ijcnn1", "spambase", "phishing", "german", "casp", "cadata", "parkinsons", "a9a",
    "cod-rna", "abalone",
)  # fmt: skip
FOLDED = "mushrooms", "magic04", "german", "phishing"  # classes of this package; and
SKLEARN_SETS = "iris", "wine", "breast_cancer", "digits"
ROWS, QUICK_ROWS, ORDERS, FOLDS = 20_000, 3000, 3, 5
FROM = 128, 2048  # rows from which on errors are counted
FOLD = "five folds"
OURS, LIGHTGBM = "SelfTuning", rivals.LIGHTGBM


def count_errors(stream: Stream, forecasts: np.ndarray) -> np.ndarray:
    """Return mistakes, or squared losses over the variance of the labels, in %."""
    if stream.kind == "classification":
        return 100.0 * (forecasts * stream.y <= 0.0)
    return 100.0 * (forecasts - stream.y) ** 2 / stream.y.var()


def play(stream: Stream, limit: float) -> dict[str, tuple[np.ndarray, float]]:
    """Return errors and rows a CPU second of both."""
    found = {}
    for who in (OURS, LIGHTGBM):
        start = time.process_time()
        if who == OURS:
            forecasts = okl.run(okl.SelfTuning(), stream.X, stream.y).predictions
        else:
            _, forecasts = rivals.play_boosting(who, stream, limit)
        found[who] = count_errors(stream, forecasts), len(stream.y) / (time.process_time() - start)
    return found


def describe(table: str, way: str, rows: int, found: dict, speeds: dict | None = None) -> dict:
    """Return a row of the csv; found : errors of each, of the permutations or folds."""
    out = {"table": table, "errors": way, "rows": rows}
    for who in (OURS, LIGHTGBM):
        out |= {who: np.mean(found[who]), f"{who}, deviation": np.std(found[who])}
        out[f"{who}, rows/s"] = f"{np.mean(speeds[who]):.0f}" if speeds else ""
    return out


def compare_streams(name: str, args) -> list[dict]:
    """Return the errors of a table's permutations from each of FROM on."""
    orders, most = (1, QUICK_ROWS) if args.quick else (ORDERS, ROWS)
    runs = []
    for seed in range(orders):
        stream = load_stream(name, seed)
        stream = stream._replace(X=stream.X[:most], y=stream.y[:most])
        runs.append(play(stream, args.limit))
    rows, speeds = len(stream.y), {who: [run[who][1] for run in runs] for who in runs[0]}
    return [
        describe(
            name, f"from row {first} on", rows,
            {who: [run[who][0][first:].mean() for run in runs] for who in runs[0]}, speeds,
        )
        for first in FROM if first < rows
    ]  # fmt: skip


def compare_folds(name: str, args) -> dict:
    """Return the mean errors of five folds, in %."""
    from lightgbm import LGBMClassifier
    from sklearn import datasets
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    if name in SKLEARN_SETS:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    else:
        X, y = load_stream(name, 0)[1:3]
    X, y = (X[:QUICK_ROWS], y[:QUICK_ROWS]) if args.quick else (X, y)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    models = okl.interop.OnlineClassifier(), LGBMClassifier(verbose=-1, n_jobs=1)
    found = (100.0 - 100.0 * cross_val_score(one, X, y, cv=folds) for one in models)
    return describe(name, FOLD, len(y), dict(zip((OURS, LIGHTGBM), found, strict=True)))


def draw(rows: list[dict]):
    ways = f"from row {FROM[1]} on", FOLD
    groups = [[row for row in reversed(rows) if row["errors"] == way] for way in ways]
    figure, axes = plots.figure(columns=2, row_height=1.2 + 0.2 * max(map(len, groups)))
    looks = {
        OURS: {"color": BLUE, "marker": "o", "markersize": 4.5, "markerfacecolor": "none"},
        LIGHTGBM: {"color": VERMILLION, "marker": "s", "markersize": 4.5},
    }
    for ax, group, way in zip(axes[0], groups, ways, strict=True):
        for place, row in enumerate(group):
            ax.plot([row[who] for who in looks], [place] * 2, color="0.8", linewidth=1.0, zorder=0)
            for who, look in looks.items():
                half = row[f"{who}, deviation"]
                ax.errorbar(row[who], place, xerr=half, label=who, linestyle="none", **look)
        ax.set_yticks(range(len(group)), [row["table"] for row in group])
        ax.set_xscale("symlog", linthresh=1.0)
        ax.set_xlim(left=0.0)
        plots.tidy(ax, f"errors {way} (%)" if way != FOLD else f"mistakes in {way} (%)")
        ax.grid(False, axis="y")
    return figure


def measure(args) -> list[dict]:
    exit_if_empty([] if rivals.missing_libraries(rivals.LIGHTGBM, rivals.SKLEARN) else [1])
    here = available(SETS)
    okl.run(okl.SelfTuning(), np.ones((600, 2)), np.ones(600))  # compiles
    rows = [row for name in tqdm(here, disable=None) for row in compare_streams(name, args)]
    tables = [*SKLEARN_SETS, *(name for name in FOLDED if okl.datasets.found(name))]
    return rows + [compare_folds(name, args) for name in tqdm(tables, disable=None)]


def main() -> None:
    args = parse_args(__doc__, 120.0, 20.0)
    rows = args.rows or measure(args)
    here = {row["table"] for row in rows}
    publish(draw(rows), rows, args, legend=2, partial=not here.issuperset(SETS))
    for way in dict.fromkeys(row["errors"] for row in rows):
        group = [row for row in rows if row["errors"] == way]
        ahead = sum(row[OURS] <= row[LIGHTGBM] for row in group)
        print(f"{way}: SelfTuning makes at most LightGBM's errors on {ahead} of {len(group)}")


if __name__ == "__main__":
    main()
