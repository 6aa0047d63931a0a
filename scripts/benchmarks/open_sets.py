"""SelfTuning and its rivals on 44 open data sets, row by row and fitted once, with ranks.

Reproduces: nothing published; ranks and tests of Demsar (2006, JMLR): Friedman, Nemenyi.
Missing: rows beyond the first 1000: --most 8000.
Time: 40 minutes of CPU time, in as many processes as there are cores; --keep FOLDER keeps each run
    there, so that it can be stopped and called again. --quick: four sets, a minute.
Data: --data FOLDER ..., files NAME.npz of X, y and task (real, two or several); by default open and
    more beside the folder OKLNUMBA_DATA. build_open_sets.py makes them: their licences differ.
"""

import os
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import CATBOOST, FOREST, LIGHTGBM, MONDRIAN, RIDGE, TREES, TUNED
from scripts.benchmarks.streams import Stream
from scripts.common import exit_if_empty, read_cell, read_csv, run_script, write_csv
from scripts.looks import BLACK, BLUE

MOST, QUICK_ROWS = 1000, 300
FIRST, WHOLE, HALF, ONCE = 128, "from row 128 on", "last half", "last half, fitted once"
FAMILIES = {"real": ("regression", "Regressor")}  # the other kinds are two and several classes
OURS = "SelfTuning"
LIBRARIES = {
    OURS: "", TREES: rivals.SKLEARN, TUNED: LIGHTGBM, CATBOOST: CATBOOST, RIDGE: rivals.SKLEARN,
    LIGHTGBM: LIGHTGBM, MONDRIAN: rivals.RIVER, FOREST: rivals.RIVER,
}  # fmt: skip


def family(data: Stream) -> tuple[str, str]:  # as rivals.py and scikit-learn call it
    return FAMILIES.get(data.kind, ("classification", "Classifier"))


def loss(data: Stream, forecasts, start: int = 0):
    y = data.y[start:]
    return (forecasts - y) ** 2 if data.kind == "real" else 1.0 * (forecasts != y)


def play_river(who: str, data: Stream):
    """Return river's forecasts of all rows, and of the second half by what it then knows."""
    model = rivals.river_models(family(data)[0], 1)[who]
    rows, forecasts, once = [dict(enumerate(x)) for x in data.X.tolist()], [], []
    for t, (row, label) in enumerate(zip(rows, data.y.tolist(), strict=True)):
        if t == len(rows) // 2:
            once = [model.predict_one(later) or 0.0 for later in rows[t:]]
        forecasts.append((model.predict_one(row) if t else 0.0) or 0.0)
        model.learn_one(row, label)
    return np.array(forecasts), np.array(once)


def play(who: str, data: Stream):
    """Return forecasts, each made before the row's label, and those of who is fitted once.

    Fitted once each knows the first half of the rows and forecasts the second.
    """
    X, y, kind, half = data.X, data.y, family(data)[0], len(data.y) // 2
    if LIBRARIES[who] == rivals.RIVER:
        return play_river(who, data)
    one_class = (y[:half] == y[0]).all()
    if who != OURS:
        forecasts = rivals.refit(who, X, y, kind, 1.3 if who == CATBOOST else 1.15)
        model = rivals.choose(rivals.settings(who, kind, X.shape[1]), X[:half], y[:half], kind)()
    else:
        learner = okl.SelfTuning()
        learner = okl.OneVsRest(learner, np.unique(y)) if data.kind == "several" else learner
        forecasts = okl.run(learner, X, y).predictions
        forecasts = np.where(forecasts > 0.0, 1, -1) if data.kind == "two" else forecasts
        model = getattr(okl.interop, f"Online{family(data)[1]}")(random_state=0)
    if one_class:
        return forecasts, np.repeat(y[:1], len(y) - half)
    return forecasts, np.ravel(model.fit(X[:half], y[:half]).predict(X[half:]))


def measure(data: Stream, who: str) -> dict:
    """Return errors in %: mistakes, or squared errors over the variance of the labels."""
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forecasts, once = play(who, data)
        losses, half = loss(data, forecasts), len(forecasts) // 2
        once, seconds = loss(data, once, half), time.process_time() - start
    unit = 100.0 / (data.y.var() if data.kind == "real" else 1.0)
    return {
        "set": data.name, "rows": len(data.y), "task": data.kind, "who": who,
        WHOLE: unit * losses[FIRST:].mean(), HALF: unit * losses[half:].mean(),
        ONCE: unit * once.mean(), "seconds": seconds,
    }  # fmt: skip


def load_sets(args) -> list[Stream]:
    """Return the first rows of each set."""
    beside = Path(os.environ.get("OKLNUMBA_DATA", ".")).resolve().parent
    folders = args.data or [beside / "open", beside / "more"]
    paths, found = [path for one in folders for path in sorted(one.glob("*.npz"))], []
    print(len(paths), "sets in", *folders)
    for path in exit_if_empty(paths)[:: 11 if args.quick else 1]:
        with np.load(path) as file:
            X, y, task = file["X"].astype(float), file["y"], str(file["task"])
        y = {"two": 2 * y - 1, "real": 1.0 * y}.get(task, y)
        found.append(Stream(path.stem, X[: args.most], y[: args.most], task))
    return found


def summarise(rows: list[dict]) -> list[dict]:
    """Return a row for each player: ranks, their tests, wins and losses of SelfTuning by 2 %."""
    played = Counter(row["who"] for row in rows)
    players = [who for who in LIBRARIES if played[who] == max(played.values())]
    found = []
    for column, name in product((WHOLE, HALF, ONCE), players):
        sets = {}
        for row in rows:
            error = float(f"{row[column]:.6g}")  # as in the csv: equal ones are ties
            sets.setdefault(row["set"], {})[row["who"]] = error
        E = np.array([[own[k] for k in players] for own in sets.values()])
        (N, k), own, ranks = E.shape, players.index(name), scipy.stats.rankdata(E, axis=1)
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
    figure, axes = okl.plots.figure(columns=3, width=10.8, row_height=2.4)
    for ax, column in zip(axes[0], (WHOLE, HALF, ONCE), strict=True):
        own = [row for row in summarise(rows) if row["errors"] == column]
        own.sort(key=lambda row: row["mean rank"])
        for place, row in enumerate(own):
            colour, bar = BLACK if row["who"] == OURS else BLUE, row["critical distance"] / 2.0
            ax.errorbar(row["mean rank"], place, xerr=bar, color=colour, marker="o", markersize=4)
        ax.set_yticks(range(len(own)), [f"{r['who']} ({r['error / ours']:.2f})" for r in own])
        ax.set_ylim(len(own) - 0.5, -0.5)
        okl.plots.tidy(ax, "mean rank", "", column)
    return figure


def play_all(args) -> list[dict]:
    """Play what the folder ``args.keep`` lacks, and write it there after every run."""
    path = (args.keep or Path("none")) / "open_sets_runs.csv"
    found = [{k: read_cell(v) for k, v in row.items()} for row in read_csv(path)]
    kept = {tuple(row.values())[:4]: row for row in found}
    lacks = rivals.missing_libraries(*filter(None, LIBRARIES.values()))
    who = [name for name, library in LIBRARIES.items() if library not in lacks]
    jobs = {(data.name, len(data.y), data.kind, one): (data, one)
            for data in load_sets(args) for one in who}  # fmt: skip
    left = [job for key, job in jobs.items() if key not in kept]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for row in tqdm(pool.map(measure, *zip(*left, strict=True)), total=len(left), disable=None):
            kept[tuple(row.values())[:4]] = row
            if args.keep:
                write_csv(path, list(kept.values()))
    return [kept[key] for key in jobs]


if __name__ == "__main__":
    options = {
        "keeps": True, "most": (MOST, QUICK_ROWS),
        "data": {"type": Path, "nargs": "+", "metavar": "FOLDER"},
    }  # fmt: skip
    run_script(__doc__, play_all, draw, (1e9, 1e9), summarise, options)
