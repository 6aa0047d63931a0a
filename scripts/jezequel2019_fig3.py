"""Regret against a greedy adversary.

Reproduces: Figure 3 of Jezequel, Gaillard, Rudi (2019): at each round (x, y) in [-1,1]^5 x [-1,1]
    maximises the regret against kernel ridge regression, 80 rounds, Gaussian kernel, sigma = lam =
    1. Every algorithm has an adversary of its own.
Missing: nothing. The seeds, the Nystrom learner, CON-KONS and KONS are ours.
Time: about a minute.
Data: none.

Band: the range over the seeds of adversary and algorithm, line: their median. The script stops if
Kernel-AWV exceeds its bound (Proposition 1) at any round. A game that would begin after the time
limit of its algorithm is left out.
"""

import time
from math import sqrt

import numpy as np
from common import arguments, print_table, save
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from oklnumba.learners.learner import Learner

STEM = "jezequel2019_fig3"
D, ROUNDS, QUICK_ROUNDS = 5, 80, 25
SEEDS, QUICK_SEEDS = 7, 1
SIGMA, LAM = 1.0, 1.0
KERNEL = okl.Gaussian(SIGMA)
EXACT = "Kernel-AWV"


def learner(label: str, n: int, seed: int) -> Learner:
    """Return the learner of a label, with the settings of the paper's experiments."""
    if label == EXACT:
        return okl.KernelAWV(KERNEL, lam=LAM)
    if label.startswith("PKAWV"):
        return okl.PKAWV(okl.TaylorFeatures(int(label[-1]), sigma=SIGMA), lam=LAM)
    if label == "Nystrom-AWV":
        return okl.NystromAWV(KERNEL, lam=LAM, mu=LAM, beta=1.0, eps=0.5, seed=seed)
    if label == "FOGD":
        return okl.FOGD(
            loss="squared", eta=1.0 / sqrt(n), sigma=SIGMA, n_frequencies=1000, seed=seed
        )
    if label == "KONS":
        return okl.KONS(KERNEL, alpha=LAM)
    restart = label == "Pros-N-KONS"
    return okl.ProsNKONS(
        KERNEL, alpha=LAM, mu=LAM, beta=1.0, eps=0.5, restart=restart, seed=seed
    )  # fmt: skip


LABELS = (
    EXACT, "PKAWV, M = 2", "PKAWV, M = 3", "PKAWV, M = 4",
    "Nystrom-AWV", "FOGD", "KONS", "CON-KONS", "Pros-N-KONS",
)  # fmt: skip


def check(game: okl.adversary.GreedyGame) -> np.ndarray:
    """Return Kernel-AWV's bound after each round; stop if the regret exceeds it."""
    bound = np.array(
        [okl.theory.awv_bound(KERNEL, game.X[:t], LAM) for t in range(1, len(game.y) + 1)]
    )
    again = okl.theory.regret(game.predictions, KERNEL, game.X, game.y, LAM)
    if not (np.allclose(again, game.regret) and (again <= bound).all()):
        raise SystemExit(f"{EXACT}: the regret exceeds its bound, or the game does not add up")
    return bound


def main() -> None:
    args = arguments(__doc__ or "", limit=120.0, quick_limit=8.0)
    n = QUICK_ROUNDS if args.quick else ROUNDS
    seeds = QUICK_SEEDS if args.quick else SEEDS
    okl.adversary.greedy(learner("FOGD", 2, 0), KERNEL, 2, D)  # compiles what all share
    games: dict[str, list[okl.adversary.GreedyGame]] = {}
    bounds, table, numbers = [], [], []
    jobs = [(label, seed) for label in LABELS for seed in range(seeds)]
    spent = dict.fromkeys(LABELS, 0.0)
    for label, seed in tqdm(jobs, desc="games", disable=None):
        if spent[label] > args.limit:
            continue
        start = time.perf_counter()
        game = okl.adversary.greedy(learner(label, n, seed), KERNEL, n, D, LAM, seed=seed)
        spent[label] += time.perf_counter() - start
        games.setdefault(label, []).append(game)
        if label == EXACT:
            bounds.append(check(game))
    rounds = np.arange(1, n + 1)
    fig, axes = plots.figure(columns=1, width=5.4, row_height=3.9)
    ax = axes[0, 0]
    for number, label in enumerate(games):
        regret = np.array([game.regret for game in games[label]])
        style = plots.line_style(number)
        ax.plot(rounds, np.median(regret, axis=0), label=label, linewidth=1.4, **style)
        ax.fill_between(
            rounds, regret.min(axis=0), regret.max(axis=0), color=style["color"], alpha=0.18, lw=0
        )
        for seed, curve in enumerate(regret):
            for t in rounds:
                row = {"algorithm": label, "seed": seed, "round": t}
                bound = f"{bounds[seed][t - 1]:.6g}" if label == EXACT else ""
                numbers.append(row | {"regret": f"{curve[t - 1]:.6g}", "bound": bound})
        last = regret[:, -1]
        others = regret[:, n // 2 - 1]
        table.append(
            {
                "algorithm": label,
                "games": str(len(last)),
                f"regret at {n // 2}": f"{np.median(others):.2f}",
                f"regret at {n}": f"{np.median(last):.2f}",
                "range": f"{last.min():.2f} to {last.max():.2f}",
                f"times {EXACT}": f"{np.median(last) / float(table[0][f'regret at {n}']):.2f}"
                if table
                else "1.00",
                "a game (s)": f"{spent[label] / len(last):.2f}",
            }
        )
    bound = np.median(bounds, axis=0)
    ax.plot(rounds, bound, color="0.35", linestyle=(0, (1, 1.5)), linewidth=1.2,
            label=f"bound of {EXACT} (Prop. 1)")  # fmt: skip
    ax.set(xlim=(0, n), ylim=(0, None))
    ax.set_xlabel("rounds", fontsize=plots.FONT)
    ax.set_ylabel("regret (sum of squared losses)", fontsize=plots.FONT)
    ax.tick_params(labelsize=plots.FONT - 0.5)
    ax.grid(True, linewidth=0.4, alpha=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    plots.title(ax, f"greedy adversary, d = {D}, {seeds} seed{'s' * (seeds > 1)}")
    plots.shared_legend(fig, columns=3)
    save(fig, numbers, args, STEM)
    print_table(table)
    shares = [np.max(game.regret / b) for game, b in zip(games[EXACT], bounds, strict=True)]
    print(f"{EXACT}: largest share of the bound at any round {max(shares):.3f}")
    late = [game.regret[-1] / b[-1] for game, b in zip(games[EXACT], bounds, strict=True)]
    print(f"at the last round {max(late):.3f}; bound there {bound[-1]:.1f}")


if __name__ == "__main__":
    main()
