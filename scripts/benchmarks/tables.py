"""SelfTuning and LightGBM on tables that do not move: row by row, and in five folds.

Reproduces: nothing published. Row by row, each forecast is made before its label; LightGBM, with
    its defaults, is fitted anew after 200, 500, 1,000, 2,000, ... rows, on all of them. In five
    folds OnlineClassifier() and LGBMClassifier() are fitted once on four of them.
Missing: nothing; it needs pip install -e ".[benchmark]". A table that the limit ends is
    left out.
Time: three minutes; --quick: one permutation of 3,000 rows.
Data: eleven sets in three orders, at most 20,000 rows; for the folds, four of scikit-learn too.
"""

import time

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from scripts.benchmarks import rivals
from scripts.benchmarks.streams import Stream, load_stream
from scripts.common import available, exit_if_empty, parse_args, publish
from scripts.looks import BLACK, BLUE, GREEN, VERMILLION

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
    """Return errors and rows a CPU second of those that end within the limit."""
    found = {}
    for who in (OURS, LIGHTGBM):
        start = time.process_time()
        if who == OURS:
            forecasts = okl.run(okl.SelfTuning(), stream.X, stream.y, time_limit=limit).predictions
        else:
            _, forecasts = rivals.play_boosting(who, stream, limit)
        speed = len(stream.y) / (time.process_time() - start)
        if len(forecasts) == len(stream.y):
            found[who] = count_errors(stream, forecasts), speed
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
        if len(runs[-1]) < 2:
            print(f"{name}: not played to its end within {args.limit:g} s, left out")
            return []
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
    """Draw the errors of LightGBM over those of SelfTuning, and the differences in five folds."""
    streams = {row["table"]: {} for row in reversed(rows) if row["errors"] != FOLD}
    for row in rows:
        if row["errors"] != FOLD:
            streams[row["table"]][row["errors"]] = row
    folds = [row for row in reversed(rows) if row["errors"] == FOLD]
    figure, axes = plots.figure(columns=2, row_height=1.2 + 0.2 * max(len(streams), len(folds)))
    left, right = axes[0]
    looks = (BLUE, "o"), (VERMILLION, "s")
    for place, ways in enumerate(streams.values()):
        for (way, row), (colour, marker) in zip(ways.items(), looks, strict=False):
            left.plot(row[LIGHTGBM] / row[OURS], place, marker, color=colour, label=way,
                      linestyle="none", markerfacecolor="none")  # fmt: skip
    names = [
        f"{name} ({ways[f'from row {FROM[0]} on'][OURS]:.3g})" for name, ways in streams.items()
    ]
    left.set_yticks(range(len(streams)), names)
    left.axvline(1.0, color=BLACK, linewidth=1.0)
    plots.tidy(left, "errors of LightGBM / of SelfTuning\n(in brackets, %)", log="x")
    for place, row in enumerate(folds):
        right.plot(row[LIGHTGBM] - row[OURS], place, "D", color=GREEN, label=FOLD,
                   linestyle="none", markerfacecolor="none")  # fmt: skip
    right.set_yticks(range(len(folds)), [f"{row['table']} ({row[OURS]:.3g})" for row in folds])
    right.axvline(0.0, color=BLACK, linewidth=1.0)
    plots.tidy(right, "LightGBM's mistakes less ours\n(points; ours in brackets, %)")
    for ax in (left, right):
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
    publish(draw(rows), rows, args, legend=3, partial=not here.issuperset(SETS))
    for way in dict.fromkeys(row["errors"] for row in rows):
        group = [row for row in rows if row["errors"] == way]
        ahead = sum(row[OURS] <= row[LIGHTGBM] for row in group)
        print(f"{way}: SelfTuning makes at most LightGBM's errors on {ahead} of {len(group)}")


if __name__ == "__main__":
    main()
