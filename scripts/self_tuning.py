"""Self-tuning with no argument beside learners tuned by hand, river and scikit-learn.

Reproduces: nothing published; what a learner that is told nothing costs against one that was tuned:
    loss against its best member in hindsight, mistakes against the best learner of this package
    tuned by hand, and against river's and scikit-learn's, on the same rows in the same order.
Missing: slow rivals play the first 10,000 rows (5,000 on more than 10 inputs); all are compared
    there. Their other settings, which are their defaults but for those that the csv names.
Time: two minutes; --rivals, which plays those as well, half an hour more.
Data: all sets (casp, magic04 and mushrooms come with the package); at most 50,000 rows of each, in
    the order of the file, permuted, some sorted by an input; made-up streams that drift.

``--rivals`` plays what self_tuning_rivals.csv has not, and can be stopped and called again; for
river and scikit-learn: pip install river scikit-learn (without them the others are played).
"""

import importlib.util
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import rivals
from common import FIGURES, arguments, print_table, read_csv, save
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from streams import ROWS, SETS, Stream, streams
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots

STEM, RIVALS = "self_tuning", "self_tuning_rivals"
QUICK_ROWS = 5000
LONG, GOAL, SHORT_GOAL = 20_000, 1.02, 1.06  # loss / best member's: streams of LONG rounds or more
HORIZON = ("self-tuning at horizon", "rival at horizon", "rival at horizon, name")
NEAR = 0.5  # percentage points of mistakes


class Played(NamedTuple):
    """A run of self-tuning: losses, mistakes or None, CPU seconds of all threads, members.

    ``pieces`` (k, N) are the members' losses by pieces of ``every`` rounds.
    """

    losses: np.ndarray
    mistakes: np.ndarray | None
    seconds: float
    members: list[str]
    pieces: np.ndarray

    @property
    def best(self) -> int:
        """The best member in hindsight."""
        return int(self.pieces.sum(axis=0).argmin())


def played(stream: Stream, every: int | None = None, limit: float | None = None) -> Played:
    """Play a stream; ``every`` rounds the members' losses are read.

    In the first rounds, before there are those members, its own loss counts as theirs.
    """
    learner = okl.SelfTuning()
    n, runs, totals = len(stream.y), [], []
    start = time.process_time()
    for first in range(0, n, every or n):
        piece = slice(first, first + (every or n))
        runs.append(okl.run(learner, stream.X[piece], stream.y[piece], time_limit=limit))
        totals.append(learner.member_losses)
    seconds = time.process_time() - start
    own = np.cumsum([run.losses.sum() for run in runs])
    members = [str(member) for member in learner.members]
    found = [t if len(t) == len(members) else np.full(len(members), o)
             for t, o in zip(totals, own, strict=True)]  # fmt: skip
    mistakes = None
    if stream.kind == "classification":
        mistakes = np.concatenate([run.mistakes for run in runs])
    losses = np.concatenate([run.losses for run in runs])
    return Played(losses, mistakes, seconds, members, np.diff(found, axis=0, prepend=0.0))


def column(rows: int) -> str:
    """Return which column of the rivals' csv has the averages of so many rows."""
    return str(rows) if rows in rivals.HORIZONS else "all"


def horizon(stream: Stream) -> int:
    """Return the number of rounds that all rivals have played."""
    return min(rivals.slow_rows(stream.X.shape[1]), len(stream.y))


def name(found: dict) -> str:
    """Return whose learner it is, and its setting."""
    by = {rivals.OWN: "", rivals.PLAIN: ""}.get(found["by"], f"{found['by']}: ")
    learner = "" if found["by"] == rivals.PLAIN else found["learner"]
    return f"{by}{learner} {found['setting']}".strip()


def entry(stream: Stream, run: Played, others: list[dict]) -> dict:
    """Return a row of the csv: self-tuning, tuned by hand and the best rival."""
    (n, d), rows = stream.X.shape, horizon(stream)
    measure = "loss" if run.mistakes is None else "mistakes"
    series = run.losses if run.mistakes is None else 100.0 * run.mistakes
    loss, best = run.losses.sum(), run.pieces[:, run.best].sum()
    here = [r for r in others if r["stream"] == stream.name]
    own = [r for r in here if r["by"] == rivals.OWN]
    foreign = [r for r in here if r["by"] != rivals.OWN]
    out = {
        "stream": stream.name, "kind": stream.kind, "n": n, "d": d, "loss": f"{loss / n:.6g}",
        "best member": run.members[run.best], "its loss": f"{best / n:.6g}",
        "ratio": f"{loss / best:.4f}",
        "measure": "mean squared loss" if run.mistakes is None else "mistakes (%)",
        "scale": f"{stream.y.var():.6g}" if run.mistakes is None else "1",
        "self-tuning": f"{series.mean():.6g}",
    }  # fmt: skip
    for label, group, where in (
        ("tuned by hand", own, n),
        ("rival", foreign, n),
        ("tuned by hand at horizon", own, rows),
        ("rival at horizon", foreign, rows),
    ):
        found = rivals.best(group, column(where), measure)
        out[label] = found[f"{measure}_{column(where)}"] if found else ""
        out[f"{label}, name"] = name(found) if found else ""
    out["horizon"] = rows
    out["self-tuning at horizon"] = f"{series[:rows].mean():.6g}"
    for at, value in zip(rivals.HORIZONS, rivals.averages(series, n), strict=False):
        out[f"self-tuning at {at}"] = value
    out["rounds a CPU second"] = f"{n / run.seconds:.0f}"
    return out


def draw(rows: list[dict]):
    """Draw mistakes or losses by those of self-tuning, in the rounds that all have played."""
    looks = {
        "rival": ("best of river, scikit-learn, last label", 1, "s"),
        "tuned by hand": ("best of this package, tuned by hand", 2, "D"),
    }
    kinds = {
        "classification": "mistakes / those of self-tuning (in brackets, %)",
        "regression": "loss / that of self-tuning\n(in brackets, / variance)",
    }
    groups = [[row for row in rows if row["kind"] == kind] for kind in kinds]
    tallest = max(map(len, groups))
    figure, axes = plots.figure(columns=2, width=7.2, row_height=1.3 + 0.185 * tallest)
    for ax, group, label in zip(axes[0], groups, kinds.values(), strict=True):
        places = np.arange(len(group))[::-1]
        ax.axvline(1.0, color=plots.COLOURS[0], linewidth=1.2, label="self-tuning")
        for row, y in zip(group, places, strict=True):
            least = 50.0 / row["horizon"] if row["kind"] == "classification" else 0.0
            own = max(float(row["self-tuning at horizon"]), least)  # half a mistake
            for key, (label_of, colour, marker) in looks.items():
                if not row[f"{key} at horizon"]:
                    continue
                x = max(float(row[f"{key} at horizon"]), least) / own
                ax.plot([1.0, x], [y, y], color="0.8", linewidth=1.0, zorder=0)
                ax.plot(x, y, marker, color=plots.COLOURS[colour], label=label_of, markersize=4.5,
                        linestyle="none", markerfacecolor="none", clip_on=False)  # fmt: skip
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xlim(min(low, 0.7), max(high, 1.5))
        steps = (1.0, 2.0, 5.0) if high / low > 10.0 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
        ax.xaxis.set_major_locator(LogLocator(subs=steps))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        names = [
            f"{row['stream']} ({float(row['self-tuning at horizon']) / float(row['scale']):.2g})"
            for row in group
        ]
        ax.set_yticks(places, names)
        ax.set_ylim(-0.7, len(group) - 0.3)
        ax.set_xlabel(label, fontsize=plots.FONT - 0.5)
        ax.tick_params(labelsize=plots.FONT - 1.5)
        ax.grid(True, axis="x", linewidth=0.4, alpha=0.5)
        ax.spines[["top", "right"]].set_visible(False)
    plots.shared_legend(figure, columns=3)
    return figure


def verdicts(rows: list[dict]) -> Iterator[str]:
    """Yield how many streams keep each goal, and which do not."""

    def said(what: str, kept: dict[str, bool]) -> str:
        missed = [name for name, ok in kept.items() if not ok]
        tail = f"; not: {'; '.join(missed)}" if missed else ""
        return f"{what}: {len(kept) - len(missed)} of {len(kept)} streams{tail}"

    goal = {r["stream"]: GOAL if int(r["n"]) >= LONG else SHORT_GOAL for r in rows}
    yield said(
        f"loss at most {GOAL} ({SHORT_GOAL} below {LONG} rounds) of the best member's",
        {r["stream"]: float(r["ratio"]) <= goal[r["stream"]] for r in rows},
    )
    yield said("loss under the best member's", {r["stream"]: float(r["ratio"]) < 1 for r in rows})
    classes = [r for r in rows if r["kind"] == "classification"]
    yield said(
        f"mistakes at most {NEAR} points over the best tuned by hand",
        {
            r["stream"]: float(r["self-tuning"]) <= float(r["tuned by hand"]) + NEAR
            for r in classes
            if r["tuned by hand"]
        },
    )
    here = "self-tuning at horizon", "rival at horizon"
    yield said(
        "mistakes at most those of the best rival, in the rounds all have played",
        {r["stream"]: float(r[here[0]]) <= float(r[here[1]]) for r in classes if r[here[1]]},
    )
    yield said(
        "loss of a regression at most that of the best rival, in the rounds all have played",
        {
            r["stream"]: float(r[here[0]]) <= float(r[here[1]])
            for r in rows
            if r["kind"] == "regression" and r[here[1]]
        },
    )


def main() -> None:
    args = arguments(__doc__ or "", 120.0, 20.0, rivals={"action": "store_true"})
    own = args.output / f"{RIVALS}.csv"
    if args.rivals:
        libraries = all(map(importlib.util.find_spec, ("river", "sklearn")))
        print("" if libraries else "without river and scikit-learn: pip install river scikit-learn")
        rivals.play_all(own, libraries, args.limit)
    others = read_csv(own if own.exists() else FIGURES / own.name)
    okl.run(okl.SelfTuning(), np.ones((600, 2)), np.ones(600))  # compiles
    rows = []
    for stream in tqdm(streams(QUICK_ROWS if args.quick else ROWS), unit=" stream", disable=None):
        run = played(stream, limit=args.limit)
        if len(run.losses) < len(stream.y):
            print(f"{stream.name}: not played to its end within {args.limit:g} s, left out")
            continue
        rows.append(entry(stream, run, others))
    here = {row["stream"].split(",")[0] for row in rows}
    save(draw(rows), rows, args, STEM, partial=not here.issuperset(SETS))
    shown = ("stream", "n", "ratio", "scale", "self-tuning", "tuned by hand", *HORIZON)
    print_table([{key: row[key] for key in shown} for row in rows])
    print(*verdicts(rows), sep="\n")


if __name__ == "__main__":
    main()
