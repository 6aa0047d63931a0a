"""Regret against a greedy adversary: the game of the authors, and ours.

Reproduces: Figure 3 of Jezequel, Gaillard, Rudi (2019). A game that would begin after its
    algorithm's time limit is left out.
Missing: values of the paper's own picture (80 rounds); the authors' curves end after 15 to 45.
Time: two minutes.
"""

import time
from dataclasses import dataclass
from math import sqrt

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, curve_rows, group, last_rows, run_script
from scripts.looks import BOUND, look
from scripts.papers.jezequel2019 import AUTHORS, DEGREES, POINTS, published

D, ROUNDS, QUICK_ROUNDS = 5, 80, 25
SIGMA, LAM = 1.0, 1.0
KERNEL = okl.Gaussian(SIGMA)
EXACT = "Kernel-AWV"
PKAWV = tuple(f"PKAWV, M = {degree}" for degree in DEGREES)
LABELS = EXACT, *PKAWV, "Nystrom-AWV", "FOGD", "KONS", "CON-KONS", "Pros-N-KONS"
SHOWN = EXACT, PKAWV[0], PKAWV[-1], "FOGD", "Pros-N-KONS"  # the csv has all
KEPT = ("least", "median", "most")  # of the seeds, in the csv
# Our labels of the curves in the authors' notebook.
CURVES = {
    "vovk": EXACT,
    "nystrom_vovk": EXACT,  # so it is in the code
    "taylor2_vovk": "PKAWV, M = 2",
    "taylor3_vovk": "PKAWV, M = 3",
    "taylor4_vovk": "PKAWV, M = 4",
    "FODG": "FOGD",
    "pros_n_kons": "Pros-N-KONS",
}


@dataclass(frozen=True)
class Game:
    name: str
    comparator: str
    search: str
    seeds: int
    labels: tuple[str, ...]
    frequencies: int
    horizon: int  # of FOGD's step
    sampler: str


def games(quick: bool):
    theirs = tuple(label for label in LABELS if label not in ("KONS", "CON-KONS"))
    seeds, rounds = ((2, 1), QUICK_ROUNDS) if quick else ((20, 7), ROUNDS)
    return (
        Game("the authors' game", "unpenalised", "single", seeds[0], theirs, 100, 1000,
             "kors_listed"),
        Game("our game", "penalised", "thorough", seeds[1], LABELS, 1000, rounds, "kors"),
    )  # fmt: skip


def learner(label: str, game: Game, seed: int):
    if label.startswith("PKAWV"):
        return okl.PKAWV(okl.TaylorFeatures(int(label[-1]), sigma=SIGMA), lam=LAM)
    kors = {"mu": LAM, "beta": 1.0, "eps": 0.5, "sampler": game.sampler, "seed": seed}
    size = {"n_frequencies": game.frequencies, "eta": 1.0 / sqrt(game.horizon)}
    return {
        EXACT: okl.KernelAWV(KERNEL, lam=LAM),
        "Nystrom-AWV": okl.NystromAWV(KERNEL, lam=LAM, **kors),
        "FOGD": okl.FOGD(loss="squared", sigma=SIGMA, seed=seed, **size),
        "KONS": okl.KONS(KERNEL, alpha=LAM),
        "CON-KONS": okl.ProsNKONS(KERNEL, alpha=LAM, restart=False, **kors),
        "Pros-N-KONS": okl.ProsNKONS(KERNEL, alpha=LAM, **kors),
    }[label]


def check(game: Game, played):
    """Return Kernel-AWV's bound after each round; stop if the regret exceeds it."""
    rounds = np.arange(1, len(played.y) + 1)
    log_det = np.array([okl.theory.awv_bound(KERNEL, played.X[:t], LAM) for t in rounds])
    best = okl.theory.Hindsight(KERNEL, played.X, played.y, LAM)
    curve = best.regret(played.predictions, rounds)
    regret = curve.prefix if game.comparator == "unpenalised" else curve.prefix_penalised
    # Without the penalty in the comparator's loss, it stands in the bound.
    bound = log_det + regret - curve.prefix_penalised
    if not (np.allclose(regret, played.regret) and (regret <= bound).all()):
        raise SystemExit(f"{EXACT}: the regret exceeds its bound, or the game does not add up")
    return bound


def play(game: Game, n: int, limit: float) -> list[dict]:
    rows, rounds = [], np.arange(1, n + 1)
    spent = dict.fromkeys(game.labels, 0.0)
    jobs = [(label, seed) for label in game.labels for seed in range(game.seeds)]
    for label, seed in tqdm(jobs, desc=game.name, disable=None):
        if spent[label] > limit:
            continue
        start = time.thread_time()
        played = okl.adversary.greedy(
            learner(label, game, seed), KERNEL, n, D, LAM,
            seed=seed, comparator=game.comparator, search=game.search,
        )  # fmt: skip
        spent[label] += time.thread_time() - start
        head = {"game": game.name, "algorithm": label, "seed": seed}
        bound = check(game, played) if label == EXACT else [None] * n
        rows += curve_rows(head, {"round": rounds, "regret": played.regret, "bound": bound})
    return rows


def measure(args) -> list[dict]:
    """Return range and median of the regret over the seeds, and the median bound."""
    n, found = QUICK_ROUNDS if args.quick else ROUNDS, []
    for game in games(args.quick):
        okl.adversary.greedy(learner("FOGD", game, 0), KERNEL, 2, D)  # compiles what all share
        rows = play(game, n, args.limit)
        for label in group(rows, "algorithm"):
            rounds, regret, bound = collect(rows, "round", "regret", "bound", algorithm=label)
            kept = dict(zip(KEPT, np.percentile(regret, (0, 50, 100), axis=0), strict=True))
            middle = np.median(bound, axis=0) if label == EXACT else [None] * len(rounds)
            head = {"game": game.name, "algorithm": label}
            found += curve_rows(head, {"round": rounds} | kept | {"bound": middle})
    return found


def draw(rows):
    figure, axes = okl.plots.figure(columns=3, row_height=4.0)
    first, second = games(quick=max(row["round"] for row in rows) < ROUNDS)
    for ax, game in zip(axes[0], (first, first, second), strict=True):
        draw_game(ax, game, rows)
    draw_published(axes[0, 0])
    okl.plots.title(axes[0, 0], "theirs, and their points")
    axes[0, 0].set_ylabel("regret (sum of squared losses)", fontsize=okl.plots.FONT)
    return figure


def draw_game(ax, game: Game, rows) -> None:
    for label in SHOWN:
        style = look(label) | {"markersize": 3, "markevery": 13}
        rounds, *kept = collect(rows, "round", *KEPT, game=game.name, algorithm=label)
        okl.plots.band(ax, rounds, np.concatenate(kept), label, style)
    rounds, bound = collect(rows, "round", "bound", game=game.name, algorithm=EXACT)
    ax.plot(rounds, bound[0], color="black", linestyle=BOUND, linewidth=1.0,
            label=f"bound of {EXACT} (Prop. 1)")  # fmt: skip
    ax.set(xlim=(0, len(rounds)), ylim=(0, None))
    seeds = f"{game.seeds} seed{'s' * (game.seeds > 1)}"
    okl.plots.tidy(ax, "rounds", text=f"{game.name}, {seeds}")


def draw_published(ax) -> None:
    """Draw every second point of the authors' curves in the looks of ours, and go no further."""
    every = published("adversary d=5 regret")
    curves = {curve: points for curve, points in every.items() if CURVES[curve] in SHOWN}
    for curve, (rounds, values) in curves.items():
        own = look(CURVES[curve]) | ({"marker": "X"} if curve == "nystrom_vovk" else {})
        ax.plot(rounds[::2], values[::2], **own | POINTS)
    for marker, label in (("o", AUTHORS), ("X", f"their second {EXACT}")):
        ax.plot([], [], marker=marker, color="0.45", label=label, **POINTS)
    last, top = (max(curve[i].max() for curve in curves.values()) for i in (0, 1))
    ax.set(xlim=(0, last + 1), ylim=(0, 1.25 * top))


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (300.0, 8.0), last_rows, legend=3)
