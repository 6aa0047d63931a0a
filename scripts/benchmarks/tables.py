"""SelfTuning and boosting on tables that do not move: row by row, and fitted once.

Reproduces: nothing published.
Missing: nothing; it needs pip install -e ".[benchmark]". A table that the limit ends is left out.
Time: five minutes for SelfTuning, with the rivals of tables_rivals.csv; --rivals first plays those
    that it lacks, half an hour in all, and can be stopped and called again. --quick: four tables.
"""

import time
from functools import partial
from itertools import product

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts import common
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import CATBOOST, LIGHTGBM, OFTEN, TUNED
from scripts.benchmarks.streams import Stream, load_stream
from scripts.looks import BLACK, BLUE, VERMILLION

SETS = (
    "magic04", "ijcnn1", "spambase", "phishing", "german", "casp", "cadata", "parkinsons", "a9a",
    "cod-rna", "abalone",
)  # fmt: skip
SKLEARN_SETS = "iris", "wine", "breast_cancer", "digits"
ROWS, QUICK_ROWS, ORDERS, FOLDS, FOLD_ROWS = 20_000, 3000, 3, 5, 5000
FROM = 128, 2048  # rows from which on errors are counted
OURS, FOLD = "SelfTuning", "fitted once"


def error(y: np.ndarray, forecasts: np.ndarray, kind: str) -> np.ndarray:
    """Return mistakes, or squared losses over the variance of the labels, in %."""
    if kind == "classification":
        return 100.0 * (forecasts * y <= 0.0)
    return 100.0 * (forecasts - y) ** 2 / y.var()


def play_rows(name: str, who: str, args) -> list[dict]:
    """Return the means over a table's permutations of the errors from each of FROM on."""
    errors, speeds = [], []
    for seed in range(1 if args.quick else ORDERS):
        stream = load_stream(name, seed).first(args.most)
        start, n = time.process_time(), len(stream.y)
        if who == OURS:
            run = okl.run(okl.SelfTuning(), stream.X, stream.y, time_limit=args.limit)
            forecasts = run.predictions
        else:
            name_of = {LIGHTGBM: OFTEN}.get(who, who)
            forecasts = rivals.play_boosting(name_of, stream, args.limit, n)[1]
        if len(forecasts) < n:
            common.leave_out(f"{name}, {who}: more than {args.limit:g} s, left out")
            return []
        speeds.append(n / (time.process_time() - start))
        errors.append(error(stream.y, forecasts, stream.kind))
    return [
        describe(name, f"from row {first} on", who, n, [e[first:].mean() for e in errors], speeds)
        for first in FROM if first < n
    ]  # fmt: skip


def play_folds(name: str, who: str, args) -> dict:
    """Return the mean error of five folds."""
    from sklearn import datasets
    from sklearn.model_selection import KFold, StratifiedKFold

    if name in SKLEARN_SETS:
        stream = Stream(name, *getattr(datasets, f"load_{name}")(return_X_y=True), "classes")
    else:
        stream = load_stream(name, 0)
    most = min(FOLD_ROWS, args.most)
    X, y, real = stream.X[:most], stream.y[:most], stream.kind == "regression"
    folds = (KFold if real else StratifiedKFold)(FOLDS, shuffle=True, random_state=0)
    kind = "regression" if real else "classification"
    make = okl.interop.OnlineRegressor if real else okl.interop.OnlineClassifier
    makers = [partial(make, random_state=0)]
    if who != OURS:
        makers = rivals.settings(who, kind, X.shape[1])
    errors, start = [], time.process_time()
    for train, test in folds.split(X, y):
        order = np.random.default_rng(0).permutation(train)  # the last fifth is to choose on
        make = rivals.choose(makers, X[order], y[order], kind)
        forecasts = np.ravel(make().fit(X[train], y[train]).predict(X[test]))
        wrong = (forecasts - y[test]) ** 2 / y.var() if real else forecasts != y[test]
        errors.append(100.0 * wrong.mean())
    return describe(name, FOLD, who, len(y), errors, [len(y) / (time.process_time() - start)])


def describe(table: str, way: str, who: str, rows: int, errors: list, speeds: list) -> dict:
    numbers = {"error": np.mean(errors), "deviation": np.std(errors), "rows/s": np.mean(speeds)}
    numbers = {name: f"{number:.6g}" for name, number in numbers.items()}
    return {"table": table, "errors": way, "who": who, "rows": rows} | numbers


def play(who: tuple[str, ...], args, path=None) -> list[dict]:
    """Return what the file has and what it lacks; write it after every table."""
    found = common.read_csv(path) if path else []
    done = {(row["table"], row["who"]) for row in found}
    here = common.available(SETS)
    names = (*here[:2], *SKLEARN_SETS[:2]) if args.quick else (*SKLEARN_SETS, *here)
    jobs = [(name, one) for name in names for one in who]
    for name, one in tqdm(jobs, disable=None):
        if (name, one) in done:
            continue
        found += play_rows(name, one, args) if name in here else []
        found.append(play_folds(name, one, args))
        if path:
            common.write_csv(path, found)
    return found


def merge(found: list[dict], who: tuple[str, ...]) -> list[dict]:
    """Return a row per table and way of counting that all have, in the order of the tables.

    LightGBM's is that with the lower error, of its defaults and the tuned one.
    """
    ways = {}
    for row in found:
        one = ways.setdefault((row["errors"], row["table"]), {})
        name = LIGHTGBM if row["who"] == TUNED else row["who"]
        one[name] = min(one.get(name, row), row, key=lambda row: float(row["error"]))
    out = []
    for way, table in sorted(ways, key=lambda key: key[0] == FOLD):
        one = ways[way, table]
        if len(one) == len(who):
            row = {"table": table, "errors": way, "rows": one[OURS]["rows"]}
            for name in who:
                row[name] = float(one[name]["error"])
                row |= {f"{name}, {k}": float(one[name][k]) for k in ("deviation", "rows/s")}
            out.append(row | {f"{LIGHTGBM} at its best": one[LIGHTGBM]["who"]})
    return out


def draw(rows: list[dict]):
    """Draw the errors of LightGBM and CatBoost over those of SelfTuning."""
    ways = f"from row {FROM[0]} on", f"from row {FROM[1]} on", FOLD
    most = max(sum(row["errors"] == way for row in rows) for way in ways)
    figure, axes = okl.plots.figure(columns=3, row_height=1.2 + 0.2 * most)
    looks = {LIGHTGBM: (BLUE, "o"), CATBOOST: (VERMILLION, "s")}
    for ax, way in zip(axes[0], ways, strict=True):
        here = [row for row in reversed(rows) if row["errors"] == way]
        ax.set_visible(bool(here))
        for place, row in enumerate(here):
            for who, (colour, marker) in looks.items():
                ax.plot(ratio(row, who), place, marker, color=colour, label=who, linestyle="none",
                        mfc="none")  # fmt: skip
        ax.set_yticks(range(len(here)), [f"{row['table']} ({row[OURS]:.3g})" for row in here])
        ax.axvline(1.0, color=BLACK, linewidth=1.0)
        okl.plots.tidy(ax, f"{way}:\nerror / SelfTuning's", log="x")
        ax.grid(False, axis="y")
    return figure


def measure(args) -> list[dict]:
    others, path = (LIGHTGBM, CATBOOST, TUNED), args.output / "tables_rivals.csv"
    if args.quick or args.rivals:
        common.exit_if_empty([not rivals.missing_libraries(LIGHTGBM, CATBOOST, rivals.SKLEARN)])
    okl.run(okl.SelfTuning(), np.ones((600, 2)), np.ones(600))  # compiles
    if args.quick:
        found = play(others, args)
    else:
        found = play(others, args, path) if args.rivals else common.read_csv(path)
    return merge(play((OURS,), args) + found, (OURS, LIGHTGBM, CATBOOST))


def verdicts(rows: list[dict]):
    for (way, own), who in product(common.group(rows, "errors").items(), (LIGHTGBM, CATBOOST)):
        ahead = sum(row[OURS] <= row[who] for row in own)
        mean = np.exp(np.mean([np.log(ratio(row, who)) for row in own]))
        yield (f"{way}: at most the errors of {who} on {ahead} of {len(own)} tables, whose "
               f"errors are {mean:.3g} times ours in the mean")  # fmt: skip


def ratio(row: dict, who: str) -> float:
    """Return the error over ours, half a point in ten thousand added: no mistakes have a place."""
    return (row[who] + 0.005) / (row[OURS] + 0.005)


if __name__ == "__main__":
    options = {"rivals": {"action": "store_true"}, "most": (ROWS, QUICK_ROWS)}
    rows = common.run_script(__doc__, measure, draw, (300.0, 100.0), options=options, legend=2)
    print(*verdicts(rows), sep="\n")
