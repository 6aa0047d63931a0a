"""One, five and ten million rounds of every family, next to scikit-learn and river.

Reproduces: nothing published.
Missing: real streams as long. Who does not finish within the limit plays a part ("played").
Time: about 40 minutes of CPU time; --quick (six learners, 200,000 rounds): about 15 s.
    --only SelfTuning --limit 30: its row anew in three minutes.
"""

import os
import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np

import oklnumba as okl
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import RIVER, SKLEARN, Batches, Own, Rows, combinations
from scripts.common import exit_if_empty, memory_mb, read_csv, run_in_process, run_script
from scripts.looks import explain, look, name_points

ROUNDS, QUICK_ROUNDS = (10**6, 5 * 10**6, 10**7), (50_000, 100_000, 200_000)
LIMIT, QUICK_LIMIT = 200.0, 0.4  # CPU seconds for a learner
SHARES = {"SelfTuning": 4.5, "river": 0.2}  # of the limit, where it is another one
MADE_UP, BLOCK = "made up", 50_000  # the stream, and rows made at once
TUNE_ROUNDS, QUICK_TUNE = 50_000, 1000
D, DECAY, STEEP = 18, 0.7, 4.0
CONCEPT, PLAYED, REHEARSED = 0, 1, 2  # seeds: of the concept, of the draw that is played, and tuned
SELF = "SelfTuning"


class Block(NamedTuple):
    """Inputs, labels, and the mistakes that the best forecast makes on average, None if unknown."""

    X: np.ndarray
    y: np.ndarray
    least: float | None


def made_up(seed: int):
    """Yield a stream of two classes that overlap for ever, and its least possible error.

    Deviations along the axes fall by DECAY, as in measured data; the log odds are a function of
    four axes that no quadratic one is close to, and the least error is the mean of min(p, 1 - p).
    """
    axes = np.linalg.qr(np.random.default_rng(CONCEPT).standard_normal((D, D)))[0]
    mixing = (2.0 * DECAY ** np.arange(D))[:, None] * axes
    number = 0
    while True:
        rng = np.random.default_rng([seed, number])
        U = rng.standard_normal((BLOCK, D))
        score = np.sqrt(2.0) * np.sin(2.0 * U[:, 0]) * np.cos(U[:, 1])
        score += 0.5 * (U[:, 2] ** 2 - 1.0) + 0.7 * U[:, 3]
        p = 1.0 / (1.0 + np.exp(-STEEP * score))
        y = np.where(rng.random(BLOCK) < p, 1.0, -1.0)
        yield Block(U @ mixing, y, float(np.minimum(p, 1.0 - p).sum()))
        number += 1


def families():
    """Return the settings of the learners of the package by name, makers by text."""
    kernel, smooth = okl.Gaussian(), {"loss": "logistic"}
    adagrad = okl.AdaptiveFTRL("adagrad", **smooth)
    widths, steps = {"sigma": (1, 2)}, {"eta": (0.3, 1, 3)}
    decaying = widths | {"eta": (0.1, 0.5), "lam": (0.0, 0.01)}
    found = {
        "OGD, linear": (okl.OGD(schedule="sqrt", **smooth), {"eta": (0.1, 0.3, 1)}),
        "LinearAWV": (okl.LinearAWV(), {"lam": (1.0,)}),
        "PKAWV, Taylor M=2": (okl.PKAWV(okl.TaylorFeatures(2)), {"sigma": (2, 4)}),
        "AdaGrad on Taylor M=3": (okl.WithFeatures(okl.TaylorFeatures(3, sigma=3.0), adagrad),
                                  {"eta": (0.2, 0.5, 2)}),
        "PKAWV, Fourier": (okl.PKAWV(okl.FourierFeatures(200)), {"sigma": (1, 2, 4)}),
        "NystromAWV": (okl.NystromAWV(kernel, max_size=200), {"sigma": (1, 2, 4)}),
        "FOGD": (okl.FOGD(n_frequencies=200, **smooth), widths | steps),
        "NOGD": (okl.NOGD(kernel, budget=200, rank=100, **smooth), widths | steps),
        "POMDR": (okl.POMDR(kernel), {"sigma": (1, 2, 4)}),
        "KernelOGD, budget 400": (okl.KernelOGD(kernel, budget=400, **smooth), decaying),
        "BOGD": (okl.BOGD(kernel, **smooth), decaying),
        "ProsNKONS": (okl.ProsNKONS(kernel), {"sigma": (4, 6, 8)}),
        SELF: (okl.SelfTuning(), {}),
    }  # fmt: skip
    return {name: combinations(one, Own, **lists) for name, (one, lists) in found.items()}


def rival_settings(name: str):
    if "tree" in name:
        from river.tree import HoeffdingAdaptiveTreeClassifier

        return {"": lambda: Rows(HoeffdingAdaptiveTreeClassifier(seed=0))}
    if name.startswith(RIVER):
        return combinations(rivals.river_logistic, Rows, step=(0.01, 0.1))
    kind, size = ("Nystroem", 200) if "Nystroem" in name else ("RBFSampler", 400)
    return combinations(partial(Batches, kind, size), sigma=(1, 2), step=(0, 0.3, 1))


RIVALS = (
    f"{SKLEARN}, RBFSampler + SGD",
    f"{SKLEARN}, Nystroem + SGD",
    f"{RIVER}, LogisticRegression",
    f"{RIVER}, Hoeffding tree",
)
QUICK = ("LinearAWV", "PKAWV, Taylor M=2", "FOGD", "POMDR", RIVALS[0], RIVALS[2])


def pieces(blocks, rows: int, total: int):
    """Cut the first ``total`` rows of a stream into pieces; the first of a block has its least."""
    for X, y, least in blocks:
        for start in range(0, min(len(y), total), rows):
            stop = min(start + rows, len(y), total)
            yield Block(X[start:stop], y[start:stop], least if start == 0 else 0.0)
        total -= min(len(y), total)
        if not total:
            return


def count_mistakes(make, rounds: int) -> int:
    """Return the mistakes on another draw, to choose a setting; this compiles too."""
    player = make()
    cut = pieces(made_up(REHEARSED), player.rows or BLOCK, rounds)
    return sum(player.play(piece.X, piece.y) for piece in cut)


def play(name: str, quick: bool, limit: float) -> list[dict]:
    """Play a learner on one core; return a row for each number of rounds."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")
    settings = families().get(name) or rival_settings(name)
    tuned = QUICK_TUNE if quick else TUNE_ROUNDS
    text = min(settings, key=lambda text: count_mistakes(settings[text], tuned))
    player, rounds, rows = settings[text](), QUICK_ROUNDS if quick else ROUNDS, []
    start, played, wrong, before, least, seconds = memory_mb(), 0, 0, (0, 0), 0.0, 0.0
    for piece in pieces(made_up(PLAYED), player.rows or BLOCK, rounds[-1]):
        begin = time.process_time()
        wrong += player.play(piece.X, piece.y)
        seconds += time.process_time() - begin
        played += len(piece.y)
        least += piece.least
        over = seconds > limit
        for at in (at for at in rounds if at == played or over and at > played):
            lately = (wrong - before[1]) / (played - before[0]) if played > before[0] else np.nan
            proof = player.certificate  # in the own space, squared loss
            ends = [f"{a[-1]:.6g}" for a in (proof.regret, proof.bound)] if proof else ["", ""]
            known = played % BLOCK == 0  # the least error comes with whole blocks
            rows.append({
                "stream": MADE_UP, "learner": name, "setting": text, "rounds": at, "played": played,
                "mistakes": f"{100 * wrong / played:.4f}", "lately": f"{100 * lately:.4f}",
                "least": f"{100 * least / played:.4f}" if known else "",
                "regret": ends[0], "bound": ends[1], "seconds": f"{seconds * at / played:.4g}",
                "size": player.size, "peak_mb": f"{memory_mb():.0f}", "start_mb": f"{start:.0f}",
            })  # fmt: skip
            before = before if over else (played, wrong)
        if over:
            break
    return rows


def measure(args) -> list[dict]:
    missing = rivals.missing_libraries(SKLEARN, RIVER)
    names = args.only or (QUICK if args.quick else [*families(), *RIVALS])
    names = exit_if_empty([name for name in names if not name.startswith(missing)])
    old = read_csv(args.output / f"{args.stem}{'_quick' * args.quick}.csv") if args.only else []
    rows = [row for row in old if row["learner"] not in names]
    for name in names:
        limit = args.limit * SHARES.get(name.split(",")[0], 1.0)
        rows += run_in_process(play, name, args.quick, limit)
    return sorted(rows, key=lambda row: [*families(), *RIVALS].index(row["learner"]))


GREY = {"color": "0.45", "marker": "X"}  # other libraries


def draw(rows):
    figure, axes = okl.plots.figure(columns=1, row_height=4.6)
    ax, points = axes[0, 0], []
    floor = [float(row["least"]) for row in rows if row["least"]][-1]
    for name, last in {row["learner"]: row for row in rows}.items():  # the last one of each
        x, y = float(last["seconds"]), float(last["mistakes"]) - float(last["least"] or floor)
        style = GREY if name in RIVALS else look(name.replace("ProsNKONS", "Pros-N-KONS"))
        style |= {"linestyle": "", "markersize": 4.5}
        whole = int(last["played"]) == int(last["rounds"])
        ax.plot(x, y, **style, mfc=style["color"] if whole else "white")
        points.append((name, x, y, style["color"]))
    part = "open: a part was played, time extrapolated"
    explain(ax, part, marker="o", linestyle="", mfc="white")
    what = f"mistakes above the least possible, {floor:.2f} % (points)"
    title = f"{MADE_UP}: {max(int(row['rounds']) for row in rows) / 10**6:g} million rounds"
    okl.plots.tidy(ax, "CPU seconds in the learner, one core", what, title, log="xy")
    ax.set_xlim(right=20.0 * ax.get_xlim()[1])  # room for names
    okl.plots.shared_legend(figure, columns=4)  # which moves the axes
    name_points(ax, sorted(points, key=lambda point: -point[1]), okl.plots.FONT - 1.0)
    return figure


if __name__ == "__main__":
    only = {"action": "append", "metavar": "NAME", "help": "play these; others are of the csv"}
    limits = LIMIT, QUICK_LIMIT
    run_script(__doc__, measure, draw, limits, options={"only": only}, but=("setting",))
