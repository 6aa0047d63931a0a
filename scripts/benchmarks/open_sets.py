"""SelfTuning and its rivals on 44 open data sets, row by row and fitted once, with ranks.

Reproduces: nothing published; ranks and tests of Demsar (2006, JMLR): Friedman, Nemenyi.
Missing: rows beyond the first 500; --most 8000 plays all, which takes hours. CatBoost, whose fits
    take seconds, on sets of more than 1,750 rows.
Time: seventeen minutes of CPU time (--quick: four sets, a minute).
Data: --data FOLDER ..., files NAME.npz of X, y and task (real, two or several); by default open and
    more beside the folder OKLNUMBA_DATA. The package lacks them: their licences differ.
"""

import os
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import CATBOOST, FOREST, LIGHTGBM, MONDRIAN, RIVER, SKLEARN
from scripts.benchmarks.streams import Stream
from scripts.common import exit_if_empty, parse_args, publish, read_csv, write_csv
from scripts.looks import BLACK, BLUE

MOST, QUICK_ROWS, SLOW_ROWS = 500, 300, 1750  # the last: of the longest sets of CatBoost
FIRST_FIT, LANDMARKS, HELD_OUT = 64, 500, 0.2  # the last: share of the past to choose on
FIRST, WHOLE, HALF, ONCE = 128, "from row 128 on", "last half", "last half, fitted once"
FAMILIES = {"real": ("regression", "Regressor")}  # the other kinds are two and several classes
OURS, OFTEN, TUNED = "SelfTuning", f"{LIGHTGBM}, every 15 %", f"{LIGHTGBM}, tuned"
SLOW, RIDGE, TREES = f"{CATBOOST}, every 30 %", "kernel ridge, tuned", "random forest"
LIBRARIES = {
    OURS: "", OFTEN: LIGHTGBM, TUNED: LIGHTGBM, RIDGE: SKLEARN, TREES: SKLEARN, MONDRIAN: RIVER,
    FOREST: RIVER, SLOW: CATBOOST,
}  # fmt: skip


def family(data: Stream) -> tuple[str, str]:  # as rivals.py and scikit-learn call it
    return FAMILIES.get(data.kind, ("classification", "Classifier"))


def loss(data: Stream, forecasts, start: int = 0, stop: int | None = None):
    y = data.y[start:stop]
    return (forecasts - y) ** 2 if data.kind == "real" else 1.0 * (forecasts != y)


def settings(who: str, data: Stream) -> list:
    """Return makers of a rival's models, one for each setting to choose from."""
    from sklearn import ensemble, linear_model, pipeline, preprocessing
    from sklearn.kernel_approximation import Nystroem

    def kernel_ridge(width: float, alpha: float):  # itself up to LANDMARKS rows
        features = Nystroem(gamma=width / data.X.shape[1], n_components=LANDMARKS, random_state=0)
        ridge = getattr(linear_model, f"Ridge{kind}".removesuffix("Regressor"))
        return pipeline.make_pipeline(preprocessing.StandardScaler(), features, ridge(alpha))

    kind = family(data)[1]
    if who == RIDGE:
        grid = product((0.1, 0.3, 1.0, 3.0), (0.01, 0.1, 1.0))
        return [partial(kernel_ridge, *setting) for setting in grid]
    if who == TREES:
        return [partial(getattr(ensemble, f"RandomForest{kind}"), random_state=0)]
    make = rivals.boosting_models(family(data)[0], 1)[LIBRARIES[who]]
    names = "num_leaves", "min_child_samples", "learning_rate"
    grid = product((7, 31), (5, 20), (0.03, 0.1, 0.3)) if who == TUNED else [()]
    return [partial(make, **dict(zip(names, setting, strict=False))) for setting in grid]


def choose(makers: list, data: Stream, t: int):
    """Return the maker whose models of the first t rows but a fifth are best on this fifth."""
    X, y, cut = data.X, data.y, int((1.0 - HELD_OUT) * t)
    if len(makers) == 1 or (y[:cut] == y[0]).all():
        return makers[0]
    errors = [loss(data, make().fit(X[:cut], y[:cut]).predict(X[cut:t]), cut, t).mean()
              for make in makers]  # fmt: skip
    return makers[int(np.argmin(errors))]


def refit(who: str, data: Stream):
    """Forecast by models fitted on all past rows, anew when these have grown by 15 or 30 %.

    The best setting on the last fifth of the past is chosen whenever the past has doubled. Before
    the first fit, and while there is one class, forecasts are the mean or the last label.
    """
    X, y, n, makers = data.X, data.y, len(data.y), settings(who, data)
    means = np.cumsum(y[:-1]) / np.arange(1, n)
    forecasts = np.append(y[:1] * 0, means if data.kind == "real" else y[:-1])
    t, choose_at, make = FIRST_FIT, FIRST_FIT, makers[0]
    while t < n:
        end = min(int(np.ceil((1.3 if who == SLOW else 1.15) * t)), n)
        if t >= choose_at:
            make, choose_at = choose(makers, data, t), 2 * t
        if (y[:t] != y[0]).any():
            forecasts[t:end] = np.ravel(make().fit(X[:t], y[:t]).predict(X[t:end]))
        t = end
    return forecasts


def play(who: str, data: Stream):
    """Return forecasts, each made before the row's label."""
    if LIBRARIES[who] == RIVER:
        model, forecasts = rivals.river_models(family(data)[0], 1)[who], np.zeros(len(data.y))
        for t, (x, label) in enumerate(zip(data.X.tolist(), data.y.tolist(), strict=True)):
            row = dict(enumerate(x))
            forecasts[t] = (model.predict_one(row) if t else 0.0) or 0.0
            model.learn_one(row, label)
        return forecasts
    if who != OURS:
        return refit(who, data)
    learner, classes = okl.SelfTuning(), np.unique(data.y)
    learner = okl.OneVsRest(learner, classes) if data.kind == "several" else learner
    forecasts = okl.run(learner, data.X, data.y).predictions
    return np.where(forecasts > 0.0, 1, -1) if data.kind == "two" else forecasts


def fit_once(who: str, data: Stream):
    """Return forecasts of the second half of the rows by a model fitted on the first."""
    X, y, half = data.X, data.y, len(data.y) // 2
    if (y[:half] == y[0]).all():
        return np.repeat(y[:1], len(y) - half)
    if LIBRARIES[who] == RIVER:
        model = rivals.river_models(family(data)[0], 1)[who]
        rows = [dict(enumerate(x)) for x in X.tolist()]
        for row, label in zip(rows[:half], y[:half].tolist(), strict=True):
            model.learn_one(row, label)
        return np.array([model.predict_one(row) or 0.0 for row in rows[half:]])
    if who == OURS:
        model = getattr(okl.interop, f"Online{family(data)[1]}")(shuffle=False)
    else:
        model = choose(settings(who, data), data, half)()
    return np.ravel(model.fit(X[:half], y[:half]).predict(X[half:]))


def measure(data: Stream, who: str) -> dict:
    """Return errors in %: mistakes, or squared errors over the variance of the labels."""
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = loss(data, play(who, data))
        seconds, half = time.process_time() - start, len(losses) // 2
        once = loss(data, fit_once(who, data), half)
    unit = 100.0 / (data.y.var() if data.kind == "real" else 1.0)
    return {
        "set": data.name, "rows": len(data.y), "task": data.kind, "who": who,
        WHOLE: unit * losses[FIRST:].mean(), HALF: unit * losses[half:].mean(),
        ONCE: unit * once.mean(), "seconds": seconds,
    }  # fmt: skip


def load_sets(args) -> list[tuple[Stream, int]]:
    """Return the first rows of each set, and how many it has."""
    beside = Path(os.environ.get("OKLNUMBA_DATA", ".")).resolve().parent
    folders = args.data or [beside / "open", beside / "more"]
    paths, found = [path for one in folders for path in sorted(one.glob("*.npz"))], []
    print(len(paths), "sets in", *folders)
    for path in exit_if_empty(paths)[:: 11 if args.quick else 1]:
        with np.load(path) as file:
            X, y, task = file["X"].astype(float), file["y"], str(file["task"])
        y = {"two": 2 * y - 1, "real": 1.0 * y}.get(task, y)
        found.append((Stream(path.stem, X[: args.most], y[: args.most], task), len(y)))
    return found


def summarise(rows: list[dict]) -> list[dict]:
    """Return a row for each player: ranks, their tests, wins and losses of SelfTuning by 2 %."""
    found, players = [], sorted({row["who"] for row in rows}, key=list(LIBRARIES).index)
    for column, name in product((WHOLE, HALF, ONCE), players):
        among = players if name == SLOW else [one for one in players if one != SLOW]
        sets = {}
        for row in rows:
            error = float(f"{row[column]:.6g}")  # as in the csv: equal ones are ties
            sets.setdefault(row["set"], {})[row["who"]] = error
        E = np.array([[own[k] for k in among] for own in sets.values() if own.keys() >= {*among}])
        (N, k), own, ranks = E.shape, among.index(name), scipy.stats.rankdata(E, axis=1)
        p = scipy.stats.friedmanchisquare(*E.T).pvalue
        q = scipy.stats.studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2.0)
        ratio = (E[:, own] + 0.005) / (E[:, 0] + 0.005)  # half a point in 10^4: 0 has a place
        found.append({
            "errors": column, "who": name, "sets": N, "of": k, "mean rank": ranks[:, own].mean(),
            "critical distance": q * np.sqrt(k * (k + 1) / (6.0 * N)), "Friedman's p": p,
            "behind": int((ratio > 1.02).sum()), "ahead": int((ratio < 1 / 1.02).sum()),
            "error / ours": float(np.exp(np.log(ratio).mean())),
        })  # fmt: skip
    return found


def draw(rows: list[dict]):
    """Draw mean ranks; Nemenyi's test tells two players apart if their bars do not overlap."""
    figure, axes = plots.figure(columns=3, width=10.8, row_height=2.4)
    for ax, column in zip(axes[0], (WHOLE, HALF, ONCE), strict=True):
        own = [row for row in summarise(rows) if row["errors"] == column and row["who"] != SLOW]
        own.sort(key=lambda row: row["mean rank"])
        for place, row in enumerate(own):
            colour, bar = BLACK if row["who"] == OURS else BLUE, row["critical distance"] / 2.0
            ax.errorbar(row["mean rank"], place, xerr=bar, color=colour, marker="o", markersize=4)
        ax.set_yticks(range(len(own)), [f"{r['who']} ({r['error / ours']:.2f})" for r in own])
        ax.set_ylim(len(own) - 0.5, -0.5)
        plots.tidy(ax, "mean rank", "", column)
    return figure


def main() -> None:
    folders = {"type": Path, "nargs": "+", "metavar": "FOLDER"}
    args = parse_args(__doc__, 1e9, 1e9, True, most={"type": int, "default": MOST}, data=folders)
    args.most = min(args.most, QUICK_ROWS) if args.quick else args.most
    rows, path = list(args.rows), (args.keep or Path()) / "open_sets_runs.csv"
    if not rows:
        kept = {tuple(row.values())[:4]: row for row in read_csv(path)} if args.keep else {}
        lacks = rivals.missing_libraries(LIGHTGBM, CATBOOST, SKLEARN, RIVER)
        jobs = [(data, who) for data, n in load_sets(args) for who, library in LIBRARIES.items()
                if library not in lacks and (who != SLOW or n <= SLOW_ROWS)]  # fmt: skip
        for data, who in tqdm(jobs, disable=None):
            key = data.name, str(len(data.y)), data.kind, who
            if key not in kept:
                kept[key] = measure(data, who)
                if args.keep:
                    write_csv(path, list(kept.values()))
            rows.append(kept[key])
    publish(draw(rows), rows, args, summarise(rows), partial=args.most < MOST)


if __name__ == "__main__":
    main()
