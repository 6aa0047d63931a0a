"""Self-tuning without an argument, next to learners tuned by hand, river and scikit-learn.

Reproduces: nothing published.
Missing: slow rivals play the first 10,000 rows (5,000 on more than 10 inputs), where all are
    compared.
Time: ten minutes; --most 5000 (10000, 20000) plays fewer rows. --rivals first plays what
    self_tuning_rivals.csv lacks: two hours if it is empty; it can be stopped and called again.
"""

from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import missing_libraries
from scripts.benchmarks.streams import ROWS, Stream, streams
from scripts.common import FIGURES, leave_out, read_cell, read_csv, run_script
from scripts.looks import explain

RIVALS = "self_tuning_rivals"
QUICK_ROWS = 5000  # of which self_tuning_rivals.csv has the errors too
LONG, GOAL, SHORT_GOAL = 20_000, 1.02, 1.06  # loss / best member's: streams of LONG rounds or more
SHOWN = ("stream", "n", "ratio", "scale", "self-tuning", "tuned by hand", "LightGBM", "boosting",
         "self-tuning at horizon", "rival at horizon", "rival at horizon, name")  # fmt: skip
NEAR = 0.5  # percentage points of mistakes
SEEDS = 3  # of the coins, on streams of fewer than LONG rounds: the mean is shown
FARTHEST = 4.0  # times the error of self-tuning that are drawn: an arrow stands for more
ROUNDED = 1.0 + 1e-5  # the csv of the rivals has six digits


class Played(NamedTuple):
    """A run of self-tuning; pieces (k, N): the members' losses in each ``every`` rounds."""

    losses: np.ndarray
    mistakes: np.ndarray | None
    members: list[str]
    pieces: np.ndarray

    @property
    def best(self) -> int:
        return int(self.pieces.sum(axis=0).argmin())


def play(stream: Stream, every=None, limit=None, seed: int = 0):
    """Play a stream; before there are members, its own loss counts as theirs."""
    learner = okl.SelfTuning(seed=seed)
    n, runs, totals = len(stream.y), [], []
    for first in range(0, n, every or n):
        piece = slice(first, first + (every or n))
        runs.append(okl.run(learner, stream.X[piece], stream.y[piece], time_limit=limit))
        totals.append(learner.member_losses)
    own = np.cumsum([run.losses.sum() for run in runs])
    members = [str(member) for member in learner.members]
    found = [t if len(t) == len(members) else np.full(len(members), o)
             for t, o in zip(totals, own, strict=True)]  # fmt: skip
    signs, losses = stream.kind == "classification", np.concatenate([run.losses for run in runs])
    mistakes = np.concatenate([run.mistakes for run in runs]) if signs else None
    return Played(losses, mistakes, members, np.diff(found, axis=0, prepend=0.0))


def play_seeds(stream: Stream, limit, seeds: int = SEEDS) -> Played:
    """Play a stream, if short with several seeds; return the means, or the run that was cut."""
    runs = []
    for seed in range(seeds if len(stream.y) < LONG else 1):
        runs.append(play(stream, limit=limit, seed=seed))
        if len(runs[-1].losses) < len(stream.y):
            return runs[-1]
    wrong = None if runs[0].mistakes is None else np.mean([run.mistakes for run in runs], axis=0)
    losses, pieces = (
        np.mean([getattr(run, name) for run in runs], axis=0) for name in ("losses", "pieces")
    )
    return Played(losses, wrong, runs[0].members, pieces)


def column(rows: int) -> str:
    return str(rows) if rows in rivals.HORIZONS else "all"


def horizon(stream: Stream) -> int:
    return min(rivals.slow_rows(stream.X.shape[1]), len(stream.y))


def describe(found) -> str:
    by = {rivals.OWN: "", rivals.PLAIN: ""}.get(found["by"], f"{found['by']}: ")
    learner = "" if found["by"] == rivals.PLAIN else found["learner"]
    return f"{by}{learner} {found['setting']}".strip()


def summarise(stream: Stream, run: Played, others) -> dict:
    (n, d), rows = stream.X.shape, horizon(stream)
    measure = "loss" if run.mistakes is None else "mistakes"
    series = run.losses if run.mistakes is None else 100.0 * run.mistakes
    loss, best = run.losses.sum(), run.pieces[:, run.best].sum()
    here = [r for r in others if r["stream"] == stream.name]
    own, boosting = ([r for r in here if r["by"] == by] for by in (rivals.OWN, rivals.BOOSTING))
    foreign = [r for r in here if r["by"] not in (rivals.OWN, rivals.BOOSTING)]
    lightgbm, catboost = ([r for r in boosting if r["learner"] == name]
                          for name in (rivals.OFTEN, rivals.CATBOOST))  # fmt: skip
    out = {
        "stream": stream.name, "kind": stream.kind, "n": n, "d": d, "loss": loss / n,
        "best member": run.members[run.best], "its loss": best / n, "ratio": f"{loss / best:.4f}",
        "measure": "mean squared loss" if run.mistakes is None else "mistakes (%)",
        "scale": stream.y.var() if run.mistakes is None else 1, "self-tuning": series.mean(),
    }  # fmt: skip
    for label, those, where in (
        ("tuned by hand", own, n),
        ("rival", foreign, n),
        ("tuned by hand at horizon", own, rows),
        ("rival at horizon", foreign, rows),
        ("boosting", boosting, n),
        ("boosting at horizon", boosting, rows),
        ("LightGBM", lightgbm, n),
        ("CatBoost at horizon", catboost, rows),
    ):
        found = rivals.find_best(those, column(where), measure)
        out[label] = found[f"{measure}_{column(where)}"] if found else ""
        out[f"{label}, name"] = describe(found) if found else ""
    return out | {"horizon": rows, "self-tuning at horizon": series[:rows].mean()}


def draw(rows):
    looks = {
        "rival at horizon": ("best of river, scikit-learn, last label", 4, "s"),
        "tuned by hand at horizon": ("best of this package, tuned by hand", 2, "D"),
        "boosting": ("best boosting, refitted, all rounds", 3, "o"),
    }
    kinds = {
        "classification": "mistakes / those of self-tuning (in brackets, %)",
        "regression": "loss / that of self-tuning\n(in brackets, / variance)",
    }
    groups = [[row for row in rows if row["kind"] == kind] for kind in kinds]
    tallest = max(map(len, groups))
    figure, axes = okl.plots.figure(columns=2, row_height=1.3 + 0.185 * tallest)
    for ax, own, label in zip(axes[0], groups, kinds.values(), strict=True):
        places = np.arange(len(own))[::-1]
        ax.axvline(1.0, color=okl.plots.COLOURS[0], linewidth=1.2, label="self-tuning")
        explain(ax, f"more than {FARTHEST:g} times", marker=">", linestyle="", mfc="none")
        for row, y in zip(own, places, strict=True):
            for key, (label_of, colour, marker) in looks.items():
                if not row[key]:
                    continue
                end = " at horizon" if key.endswith("horizon") else ""
                half = 50.0 / row["horizon" if end else "n"]  # of a mistake
                least = half if row["kind"] == "classification" else 0.0
                x = max(float(row[key]), least) / max(float(row[f"self-tuning{end}"]), least)
                if x > FARTHEST:
                    x, marker, label_of = FARTHEST, ">", "_"
                ax.plot([1.0, x], [y, y], color="0.8", linewidth=1.0, zorder=0)
                ax.plot(x, y, marker, color=okl.plots.COLOURS[colour], markersize=4.5,
                        label=label_of, linestyle="none", mfc="none", clip_on=False)  # fmt: skip
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, 0.7), max(high, 1.5))
        values = (float(row["self-tuning at horizon"]) / float(row["scale"]) for row in own)
        names = zip((row["stream"] for row in own), values, strict=True)
        ax.set_yticks(places, [f"{name} ({value:.2g})" for name, value in names])
        ax.set_ylim(-0.7, len(own) - 0.3)
        okl.plots.tidy(ax, label, log="x", font=okl.plots.FONT - 0.5, small=1.0)
        ax.grid(False, axis="y")
    return figure


def verdicts(rows):
    own, rival, boosted = (f"{who} at horizon" for who in ("self-tuning", "rival", "boosting"))
    signs = [r for r in rows if r["kind"] == "classification"]
    real = [r for r in rows if r["kind"] == "regression" and r[rival]]
    for what, those, kept in (
        (f"loss at most {GOAL} ({SHORT_GOAL} below {LONG} rounds) of the best member's", rows,
         lambda r: float(r["ratio"]) <= (GOAL if r["n"] >= LONG else SHORT_GOAL)),
        ("loss under the best member's", rows, lambda r: float(r["ratio"]) < 1),
        (f"mistakes at most {NEAR} points over the best tuned by hand",
         [r for r in signs if r["tuned by hand"]],
         lambda r: r["self-tuning"] <= float(r["tuned by hand"]) + NEAR),
        ("mistakes at most those of the best online rival, in the rounds all have played",
         [r for r in signs if r[rival]], lambda r: r[own] <= float(r[rival]) * ROUNDED),
        ("loss of a regression at most that of the best online rival, in the rounds all have "
         "played", real, lambda r: r[own] <= float(r[rival])),
        ("error at most that of the best boosting, in these rounds",
         [r for r in rows if r[boosted]], lambda r: r[own] <= float(r[boosted]) * ROUNDED),
        ("error at most that of LightGBM, refitted at every 15 %, in all rounds played",
         [r for r in rows if r["LightGBM"]],
         lambda r: r["self-tuning"] <= float(r["LightGBM"]) * ROUNDED),
        ("error at most that of CatBoost, refitted when rows double, in these rounds",
         [r for r in rows if r["CatBoost at horizon"]],
         lambda r: r[own] <= float(r["CatBoost at horizon"]) * ROUNDED),
    ):  # fmt: skip
        missed = [r["stream"] for r in those if not kept(r)]
        tail = f"; not: {'; '.join(missed)}" if missed else ""
        yield f"{what}: {len(those) - len(missed)} of {len(those)} streams{tail}"


def measure(args) -> list[dict]:
    own = args.output / f"{RIVALS}.csv"
    if args.rivals:
        missing = missing_libraries(rivals.RIVER, rivals.SKLEARN, rivals.LIGHTGBM)
        rivals.play_all(own, missing, args.limit)
    others = read_csv(own if own.exists() else FIGURES / own.name)
    okl.run(okl.SelfTuning(), np.ones((600, 2)), np.ones(600))  # compiles
    rows = []
    for stream in tqdm(streams(args.most), unit=" stream", disable=None):
        run = play_seeds(stream, args.limit, 1 if args.quick else SEEDS)
        if len(run.losses) < len(stream.y):
            leave_out(f"{stream.name}: more than {args.limit:g} s, left out")
            continue
        row = summarise(stream, run, others)
        rows.append({k: read_cell(str(v)) for k, v in row.items()})  # as with --redraw
    return rows


def shown(rows: list[dict]) -> okl.Table:
    return okl.Table(rows)[list(SHOWN)]


if __name__ == "__main__":
    options = {"rivals": {"action": "store_true"}, "most": (ROWS, QUICK_ROWS)}
    rows = run_script(__doc__, measure, draw, (120.0, 20.0), shown, options, legend=2)
    print(*verdicts(rows), sep="\n")
