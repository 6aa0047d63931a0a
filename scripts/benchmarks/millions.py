"""One, five and ten million rounds of every family, next to scikit-learn and river.

Reproduces: nothing published; mistakes, certificate, seconds and peak memory of each learner, each
    in a process of its own on one core. Settings are chosen on another draw of the stream.
Missing: SUSY and HIGGS if they are not at hand; a made-up stream with known least error stands for
    them. Who does not finish within the limit plays a part ("played"), and times are extrapolated.
Time: about 40 minutes of CPU time; --quick (six learners, 200,000 rounds): about 15 s.
Data: susy and higgs if they are at hand (held as float32), else made up, block by block.
"""

import os
import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np

import oklnumba as okl
from oklnumba import plots
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import RIVER, SKLEARN, Batches, Own, Rows, combinations
from scripts.common import exit_if_empty, memory_mb, parse_args, publish, run_in_process, write_csv
from scripts.looks import PINK, SKY, explain, look, name_points

ROUNDS, QUICK_ROUNDS = (10**6, 5 * 10**6, 10**7), (50_000, 100_000, 200_000)
LIMIT, QUICK_LIMIT = 200.0, 0.4  # CPU seconds for a learner
SHARES = {"SelfTuning": 4.5, "river": 0.2}  # of the limit, where it is another one
BLOCK = 50_000  # rows made at once
TUNE_ROUNDS, QUICK_TUNE = 50_000, 1000
D, DECAY, STEEP = 18, 0.7, 4.0
CONCEPT, PLAYED, REHEARSED = 0, 1, 2  # seeds: of the concept, of the draw that is played, and tuned
REAL, MADE_UP, LENGTH = ("susy", "higgs"), "made up", 2.8  # LENGTH of inputs, root mean square
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


def real_stream(name: str, draw: int):
    """Yield SUSY or HIGGS, standardised by the past; the last TUNE_ROUNDS rows choose settings."""
    scaler, first, done = okl.Standardizer(), okl.datasets.SPECS[name].shape[0] - TUNE_ROUNDS, 0
    for X, y in okl.stream(name, batch=BLOCK):
        cut = min(max(first - done, 0), len(y))
        rows = slice(cut, None) if draw == REHEARSED else slice(cut)
        done += len(y)
        if len(y[rows]):
            yield Block(scaler.stream(X[rows]) * (LENGTH / np.sqrt(X.shape[1])), y[rows], None)


def blocks(stream: str, draw: int):
    return made_up(draw) if stream == MADE_UP else real_stream(stream, draw)


def lengths(stream: str, quick: bool):
    wanted = QUICK_ROUNDS if quick else ROUNDS
    if stream == MADE_UP:
        return wanted
    most = okl.datasets.SPECS[stream].shape[0] - TUNE_ROUNDS
    return tuple(sorted({min(most, rounds) for rounds in wanted}))


def families():
    """Return the settings of the learners of the package by name, makers by text."""
    kernel, smooth = okl.Gaussian(), {"loss": "logistic"}
    adagrad = okl.AdaptiveFTRL("adagrad", **smooth)
    widths, steps = {"kernel__sigma": (1, 2)}, {"eta": (0.3, 1, 3)}
    decaying = widths | {"eta": (0.1, 0.5), "lam": (0.0, 0.01)}
    found = {
        "OGD, linear": (okl.OGD(schedule="sqrt", **smooth), {"eta": (0.1, 0.3, 1)}),
        "LinearAWV": (okl.LinearAWV(), {"lam": (1.0,)}),
        "PKAWV, Taylor M=2": (okl.PKAWV(okl.TaylorFeatures(2)), {"features__sigma": (2, 4)}),
        "AdaGrad on Taylor M=3": (okl.WithFeatures(okl.TaylorFeatures(3, sigma=3.0), adagrad),
                                  {"learner__eta": (0.2, 0.5, 2)}),
        "PKAWV, Fourier": (okl.PKAWV(okl.FourierFeatures(200)), {"features__sigma": (1, 2, 4)}),
        "NystromAWV": (okl.NystromAWV(kernel, max_size=200), {"kernel__sigma": (1, 2, 4)}),
        "FOGD": (okl.FOGD(n_frequencies=200, **smooth), {"sigma": (1, 2)} | steps),
        "NOGD": (okl.NOGD(kernel, budget=200, rank=100, **smooth), widths | steps),
        "POMDR": (okl.POMDR(kernel), {"kernel__sigma": (1, 2, 4)}),
        "KernelOGD, budget 400": (okl.KernelOGD(kernel, budget=400, **smooth), decaying),
        "BOGD": (okl.BOGD(kernel, **smooth), decaying),
        "ProsNKONS": (okl.ProsNKONS(kernel), {"kernel__sigma": (4, 6, 8)}),
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
    label, steps = "sigma = {sigma:g}, step = {eta:g}", (0, 0.3, 1)
    return combinations(partial(Batches, kind, size), label=label, sigma=(1, 2), eta=steps)


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


def count_mistakes(make, stream: str, rounds: int) -> int:
    """Return the mistakes on another draw, to choose a setting; this compiles too."""
    player = make()
    cut = pieces(blocks(stream, REHEARSED), player.rows or BLOCK, rounds)
    return sum(player.play(piece.X, piece.y) for piece in cut)


def play(stream: str, name: str, quick: bool, limit: float) -> list[dict]:
    """Play a learner on one core; return a row for each number of rounds."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")
    settings = families().get(name) or rival_settings(name)
    tuned = QUICK_TUNE if quick else TUNE_ROUNDS
    text = min(settings, key=lambda text: count_mistakes(settings[text], stream, tuned))
    player, rounds, rows = settings[text](), lengths(stream, quick), []
    start, played, wrong, before, least, seconds = memory_mb(), 0, 0, (0, 0), 0.0, 0.0
    for piece in pieces(blocks(stream, PLAYED), player.rows or BLOCK, rounds[-1]):
        begin = time.process_time()
        wrong += player.play(piece.X, piece.y)
        seconds += time.process_time() - begin
        played += len(piece.y)
        least = None if piece.least is None else least + piece.least
        over = seconds > limit
        for at in (at for at in rounds if at == played or over and at > played):
            lately = (wrong - before[1]) / (played - before[0]) if played > before[0] else np.nan
            proof = player.certificate  # in the own space, squared loss
            ends = [f"{a[-1]:.6g}" for a in (proof.regret, proof.bound)] if proof else ["", ""]
            known = least is not None and played % BLOCK == 0  # it comes with whole blocks
            rows.append({
                "stream": stream, "learner": name, "setting": text, "rounds": at, "played": played,
                "mistakes": f"{100 * wrong / played:.4f}", "lately": f"{100 * lately:.4f}",
                "least": f"{100 * least / played:.4f}" if known else "",
                "regret": ends[0], "bound": ends[1], "seconds": f"{seconds * at / played:.4g}",
                "size": player.size, "peak_mb": f"{memory_mb():.0f}", "start_mb": f"{start:.0f}",
            })  # fmt: skip
            before = before if over else (played, wrong)
        if over:
            break
    return rows


def play_all(jobs, args) -> list[dict]:
    rows = []
    for stream, name in jobs:
        limit = args.limit * SHARES.get(name.split(",")[0], 1.0)
        rows += run_in_process(play, stream, name, args.quick, limit)
        write_csv(args.output / f"{args.stem}_{'quick' if args.quick else 'unfinished'}.csv", rows)
    return rows


LOOKS = {  # of those that scripts.common does not name; other libraries are grey
    "OGD, linear": (PINK, ">"), "LinearAWV": (PINK, "x"), "AdaGrad on Taylor M=3": (SKY, "v"),
} | dict.fromkeys(RIVALS, ("0.45", "X"))  # fmt: skip


def draw(rows):
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    figure, axes = plots.figure(rows=len(streams), columns=1, row_height=4.6)
    named = []
    for ax, stream in zip(axes[:, 0], streams, strict=True):
        here = [row for row in rows if row["stream"] == stream]
        least = [float(row["least"]) for row in here if row["least"]]
        floor, points = least[-1] if least else 0.0, []
        for name in dict.fromkeys(row["learner"] for row in here):
            path = [row for row in here if row["learner"] == name]
            x = np.array([float(row["seconds"]) for row in path])
            y = np.array([float(row["mistakes"]) - float(row["least"] or floor) for row in path])
            whole = np.array([int(row["played"]) == int(row["rounds"]) for row in path])
            own = look(name.replace("ProsNKONS", "Pros-N-KONS"))
            colour, marker = LOOKS.get(name, (own["color"], own["marker"]))
            style = {"color": colour, "marker": marker, "linewidth": 1.0, "markersize": 4.5}
            ax.plot(x, y, **style)
            ax.plot(x[~whole], y[~whole], **style | {"linestyle": ""}, mfc="white")
            fine = np.linspace(0.0, len(x) - 1.0, 20)[:-1]  # of the line
            line = (np.exp(np.interp(fine, range(len(x)), np.log(v))) for v in (x, y))
            points += [("", *point, colour) for point in zip(*line, strict=True)]
            points.append((name, x[-1], y[-1], colour))
        explain(
            ax, "open: a part was played, time extrapolated", marker="o", linestyle="", mfc="white"
        )
        what = f"mistakes above the least possible, {floor:.2f} % (points)"
        sizes = ", ".join(f"{n / 10**6:g}" for n in sorted({int(row["rounds"]) for row in here}))
        seconds = "CPU seconds in the learner, one core"
        title = f"{stream}: {sizes} million rounds"
        plots.tidy(ax, seconds, what if least else "mistakes (%)", title, log="xy")
        ax.set_xlim(right=20.0 * ax.get_xlim()[1])  # room for names
        named.append((ax, sorted(points, key=lambda point: -point[1])))
    plots.shared_legend(figure, columns=4)  # which moves the axes
    for ax, points in named:
        name_points(ax, points, plots.FONT - 1.0)
    return figure


def jobs(args, missing):
    """Return the streams and learners to play."""
    names = args.only or (list(QUICK) if args.quick else [*families(), *RIVALS])
    names = [name for name in names if not name.startswith(tuple(missing))]
    known = okl.datasets.names()
    streams = [name for name in REAL if name in known and okl.datasets.found(name)]
    streams = [MADE_UP] if args.quick or not streams else streams
    return [(stream, name) for stream in streams for name in names]


def main() -> None:
    only = {"action": "append", "metavar": "NAME", "help": "play these alone"}
    args = parse_args(__doc__, LIMIT, QUICK_LIMIT, only=only)
    missing = () if args.rows else rivals.missing_libraries(SKLEARN, RIVER)
    rows = args.rows or play_all(exit_if_empty(jobs(args, missing)), args)
    publish(draw(rows), rows, args, partial=bool(args.only or missing), but=("setting",))


if __name__ == "__main__":
    main()
