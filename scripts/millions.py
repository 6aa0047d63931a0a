"""One, five and ten million rounds of every family, beside scikit-learn and river.

Reproduces: nothing published; what ten million rounds cost and bring: mistakes, certificate,
    seconds and peak memory of each learner, one after the other on one core, a process for each.
Missing: SUSY and HIGGS where they are not at hand; then a made-up stream of the width of SUSY,
    whose least possible error is known, stands for them. What does not finish within its limit
    plays a part, and its times are extrapolated (column "played"): river, and learners whose
    dictionary grows. One draw of the stream; settings out of a few, chosen on another draw.
Time: about 40 minutes of CPU time; --quick (six learners, 100,000 rounds): about 15 s.
Data: made up, block by block, never all in memory.
"""

import argparse
import csv
import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from common import FIGURES, arguments, finish, print_table, save, write_csv

import oklnumba as okl
from oklnumba import plots

STEM = "millions"
ROUNDS, QUICK_ROUNDS = (10**6, 5 * 10**6, 10**7), (50_000, 100_000, 200_000)
LIMIT, QUICK_LIMIT = 200.0, 1.0  # CPU seconds for a learner
SHARES = {"SelfTuning": 4.5, "river": 0.2}  # of the limit, where it is another one
BLOCK, PIECE = 50_000, 1000  # rows made at once; rows of a batch of scikit-learn
TUNE_ROUNDS, QUICK_TUNE = 50_000, 2000
D, DECAY, STEEP = 18, 0.7, 4.0
CONCEPT, PLAYED, REHEARSED = 0, 1, 2  # seeds: of the concept, of the draw that is played, and tuned
SELF, SKLEARN, RIVER = "SelfTuning", "scikit-learn", "river"


class Block(NamedTuple):
    """Inputs, labels, and the mistakes that the best forecast makes on average, None if unknown."""

    X: np.ndarray
    y: np.ndarray
    least: float | None


def made_up(seed: int) -> Iterator[Block]:
    """Yield a stream for ever: D inputs that span few directions well, two classes that overlap.

    The standard deviations of the inputs along their axes fall by DECAY, as in measured data; the
    log odds are a smooth function of the first four axes that no quadratic one is close to, so the
    least possible error is the mean of min(p, 1 - p).
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


# ---- players: mistakes of the forecasts on some rows, each made before its label ----


class Ours:
    """A learner of the package."""

    rows = BLOCK

    def __init__(self, learner: Any):
        self.learner, self.certificate = learner, None

    def play(self, X: np.ndarray, y: np.ndarray) -> int:
        run = okl.run(self.learner, X, y)
        self.certificate = run.certificate
        return int(run.mistakes.sum())

    @property
    def size(self) -> int:
        return self.learner.size


class Batches:
    """A feature map and SGDClassifier of scikit-learn: forecasts of a batch, then its labels."""

    rows, certificate = PIECE, None

    def __init__(self, features: Any, step: float):
        from sklearn.linear_model import SGDClassifier

        constant = {"learning_rate": "constant", "eta0": step} if step else {}
        self.features = features
        self.model = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0, **constant)

    def play(self, X: np.ndarray, y: np.ndarray) -> int:
        first = not hasattr(self.model, "coef_")
        Z = self.features.fit_transform(X) if first else self.features.transform(X)
        wrong = len(y) if first else int(np.sum(self.model.predict(Z) != y))
        self.model.partial_fit(Z, y, classes=(-1.0, 1.0))
        return wrong

    @property
    def size(self) -> int:
        return self.features.n_components


class Rows:
    """A classifier of river, row by row."""

    rows, certificate, size = PIECE, None, ""
    names = [f"x{j}" for j in range(D)]

    def __init__(self, model: Any):
        self.model = model

    def play(self, X: np.ndarray, y: np.ndarray) -> int:
        wrong = 0
        for values, label in zip(X.tolist(), (y > 0.0).tolist(), strict=True):
            x = dict(zip(self.names, values, strict=True))
            wrong += self.model.predict_one(x) is not label
            self.model.learn_one(x, label)
        return wrong


# ---- the learners, each with a few settings ----


def ours(make: Callable, **lists: tuple) -> list[tuple[str, Callable]]:
    """Return settings, every combination of the lists, by text and maker."""
    found: list[dict] = [{}]
    for name, values in lists.items():
        found = [one | {name: value} for one in found for value in values]
    return [
        (", ".join(f"{k} = {v:g}" for k, v in one.items()), lambda one=one: Ours(make(**one)))
        for one in found
    ]


def families() -> dict[str, list[tuple[str, Callable]]]:
    """Return the settings of the learners of the package by name."""
    G, taylor, fourier = okl.Gaussian, okl.TaylorFeatures, okl.FourierFeatures
    smooth = {"loss": "logistic"}
    return {
        "OGD, linear": ours(lambda eta: okl.OGD(eta, schedule="sqrt", **smooth), eta=(0.1, 0.3, 1)),
        "LinearAWV": ours(okl.LinearAWV, lam=(1.0,)),
        "PKAWV, Taylor M=2": ours(lambda sigma: okl.PKAWV(taylor(2, sigma=sigma)), sigma=(2, 4)),
        "AdaGrad on Taylor M=3": ours(
            lambda eta: okl.WithFeatures(
                taylor(3, sigma=3.0), okl.AdaptiveFTRL("adagrad", eta=eta, **smooth)
            ),
            eta=(0.2, 0.5, 2),
        ),
        "PKAWV, Fourier": ours(lambda sigma: okl.PKAWV(fourier(200, sigma=sigma)), sigma=(1, 2, 4)),
        "NystromAWV": ours(
            lambda sigma: okl.NystromAWV(G(sigma), max_size=200), sigma=(1, 2, 4)
        ),
        "FOGD": ours(
            lambda sigma, eta: okl.FOGD(n_frequencies=200, sigma=sigma, eta=eta, **smooth),
            sigma=(1, 2),
            eta=(0.3, 1, 3),
        ),
        "NOGD": ours(
            lambda sigma, eta: okl.NOGD(G(sigma), eta=eta, budget=200, rank=100, **smooth),
            sigma=(1, 2),
            eta=(0.3, 1, 3),
        ),
        "POMDR": ours(lambda sigma: okl.POMDR(G(sigma)), sigma=(1, 2, 4)),
        "KernelOGD, budget 400": ours(
            lambda sigma, eta, lam: okl.KernelOGD(
                G(sigma), eta=eta, lam=lam, budget=400, **smooth
            ),
            sigma=(1, 2),
            eta=(0.1, 0.5),
            lam=(0.0, 0.01),
        ),
        "BOGD": ours(
            lambda sigma, eta, lam: okl.BOGD(G(sigma), eta=eta, lam=lam, **smooth),
            sigma=(1, 2),
            eta=(0.1, 0.5),
            lam=(0.0, 0.01),
        ),
        "ProsNKONS": ours(lambda sigma: okl.ProsNKONS(G(sigma)), sigma=(4, 6, 8)),
        SELF: ours(okl.SelfTuning),
    }  # fmt: skip


def others(name: str) -> list[tuple[str, Callable]]:
    """Return the settings of a rival."""
    if name.startswith(RIVER):
        from river import linear_model, optim, preprocessing, tree

        if "tree" in name:
            return [("", lambda: Rows(tree.HoeffdingAdaptiveTreeClassifier(seed=0)))]

        def logistic(step: float) -> Rows:
            model = linear_model.LogisticRegression(optim.SGD(step), intercept_lr=step)
            return Rows(preprocessing.StandardScaler() | model)

        return [(f"step = {s:g}", lambda s=s: logistic(s)) for s in (0.01, 0.1)]
    from sklearn.kernel_approximation import Nystroem, RBFSampler

    def batches(sigma: float, step: float) -> Batches:
        kind, size = (Nystroem, 200) if "Nystroem" in name else (RBFSampler, 400)
        gamma = 0.5 / sigma**2
        return Batches(kind(gamma=gamma, n_components=size, random_state=0), step)

    return [
        (f"sigma = {s:g}, step = {e or 'optimal'}", lambda s=s, e=e: batches(s, e))
        for s in (1, 2)
        for e in (0, 0.3, 1)
    ]


RIVALS = (
    f"{SKLEARN}, RBFSampler + SGD",
    f"{SKLEARN}, Nystroem + SGD",
    f"{RIVER}, LogisticRegression",
    f"{RIVER}, Hoeffding tree",
)
QUICK = ("LinearAWV", "PKAWV, Taylor M=2", "FOGD", "POMDR", RIVALS[0], RIVALS[2])


# ---- one learner, in a process of its own ----


def pieces(blocks: Iterator[Block], rows: int, total: int) -> Iterator[Block]:
    """Cut the first ``total`` rows of a stream into pieces; the first of a block has its least."""
    while total:
        X, y, least = next(blocks)
        for start in range(0, min(len(y), total), rows):
            stop = min(start + rows, len(y), total)
            yield Block(X[start:stop], y[start:stop], least if not start else 0.0)
        total -= min(len(y), total)


def choose(settings: list[tuple[str, Callable]], rounds: int) -> tuple[str, Callable]:
    """Return the setting with the fewest mistakes on another draw; this compiles too."""
    found = []
    for text, make in settings:
        player = make()
        wrong = sum(player.play(p.X, p.y) for p in pieces(made_up(REHEARSED), player.rows, rounds))
        found.append((wrong, len(found), text, make))
    return min(found)[2:]


def memory() -> float:
    """Return the peak of this process, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def play(name: str, quick: bool, limit: float, core: int, send: Any) -> None:
    """Play a learner and send a row at each number of rounds, None at the end."""
    os.sched_setaffinity(0, {core})  # one core for all
    warnings.simplefilter("ignore")
    settings = families().get(name) or others(name)
    text, make = choose(settings, QUICK_TUNE if quick else TUNE_ROUNDS)
    player, rounds = make(), QUICK_ROUNDS if quick else ROUNDS
    start, played, wrong, before, least, seconds = memory(), 0, 0, (0, 0), 0.0, 0.0
    for piece in pieces(made_up(PLAYED), player.rows, rounds[-1]):
        begin = time.process_time()
        wrong += player.play(piece.X, piece.y)
        seconds += time.process_time() - begin
        played, least = played + len(piece.y), least + piece.least
        over = seconds > limit
        for at in (at for at in rounds if at == played or over and at > played):
            lately = (wrong - before[1]) / (played - before[0]) if played > before[0] else np.nan
            regret, bound = ends(player)
            send.put({
                "learner": name, "setting": text, "rounds": at, "played": played,
                "mistakes": f"{100 * wrong / played:.4f}", "lately": f"{100 * lately:.4f}",
                "least": f"{100 * least / played:.4f}" if played % BLOCK == 0 else "",
                "regret": regret, "bound": bound, "seconds": f"{seconds * at / played:.4g}",
                "size": player.size, "peak_mb": f"{memory():.0f}", "start_mb": f"{start:.0f}",
            })  # fmt: skip
            before = before if over else (played, wrong)
        if over:
            break
    send.put(None)


def ends(player: Any) -> tuple[str, str]:
    """Return regret in the own space and its bound, squared loss, after all rounds so far."""
    if player.certificate is None:
        return "", ""
    return tuple(f"{a[-1]:.6g}" for a in (player.certificate.regret, player.certificate.bound))


# ---- all of them ----


def play_all(names: list[str], args: argparse.Namespace, jobs: int, rows: list[dict]) -> None:
    """Play the learners, ``jobs`` at a time, and write each row when it is there."""
    context = multiprocessing.get_context("spawn")
    cores, order = sorted(os.sched_getaffinity(0)), [*families(), *RIVALS]
    partial = args.output / f"{STEM}_{'quick' if args.quick else 'unfinished'}.csv"

    def one(name: str) -> None:
        queue, core = context.Queue(), cores.pop(0)
        limit = args.limit * SHARES.get(name.split(",")[0], 1.0)
        child = context.Process(target=play, args=(name, args.quick, limit, core, queue))
        child.start()
        while (row := take(queue, child)) is not None:
            rows.append(row)
            rows.sort(key=lambda r: (order.index(r["learner"]), int(r["rounds"])))
            write_csv(partial, rows)
        child.join()
        cores.append(core)

    with ThreadPoolExecutor(min(jobs, len(cores))) as pool:  # the longest first
        list(pool.map(one, sorted(names, key=lambda name: name != SELF)))


def take(queue: Any, child: Any) -> dict | None:
    """Return the next row of a child, None at its end; raise where it broke down."""
    while True:
        try:
            return queue.get(timeout=1.0)
        except Exception:
            if not child.is_alive() and queue.empty():
                raise RuntimeError(f"a learner ended with exit status {child.exitcode}") from None


def draw(rows: list[dict]):
    """Draw mistakes against time, a path over the numbers of rounds for each learner."""
    figure, axes = plots.figure(columns=1, width=7.0, row_height=4.6)
    ax = axes[0, 0]
    for row in rows:
        print(row)
    finish(ax, "CPU seconds in the learner", "mistakes (%)", yscale="linear")
    return figure


def options() -> tuple[list[str], int]:
    """Take ``--only`` and ``--jobs`` out of the command line."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--only", action="append", metavar="NAME", help="play these alone")
    parser.add_argument("--jobs", type=int, default=1, help="learners at a time")
    chosen, sys.argv[1:] = parser.parse_known_args()
    return chosen.only or [], chosen.jobs


def main() -> None:
    only, jobs = options()
    args = arguments(__doc__ or "", LIMIT, QUICK_LIMIT)
    names = only or (list(QUICK) if args.quick else [*families(), *RIVALS])
    rows: list[dict] = []
    if only:
        with open(FIGURES / f"{STEM}.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["learner"] not in only]
    play_all(names, args, jobs, rows)
    save(draw(rows), rows, args, STEM)
    print_table([{k: str(v) or "-" for k, v in row.items() if k != "setting"} for row in rows])


if __name__ == "__main__":
    main()
