"""Exponents of regret and time of first-order kernel learners, next to the stated ones.

Reproduces: Table 1 of Li and Liao (2023), whose rates are upper bounds, all seven rows.
Missing: nothing; d = 1 and the budgets are fixed, as in the experiments.
Time: about two minutes (--quick: up to 1024 rounds, some seconds).
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, fit_exponent, parse_args, publish
from scripts.looks import BOUND, RATE, THEORY, look
from scripts.papers.jezequel2019_tab1 import play

SIZES, QUICK_SIZES = [2**k for k in range(8, 14)], [2**k for k in range(7, 11)]
SEEDS, QUICK_SEEDS = 8, 2
U, B, BETA = 1.0, 100, 1.0
LABELS = ("OGD", "BOGD", "NOGD", "SkeGD", "B(AO)2KS", "POMDR")
REMOVING = "POMDR, removals"
# Regret and time as the table has them, and in numbers, without constants, d = 1 and polylog T.
STATED = {
    "OGD": ("sqrt(T)", "d T", lambda T, A: (T**0.5, T)),
    "BOGD": ("sqrt(T) + T / sqrt(B)", "d B", lambda T, A: (T**0.5 + T / B**0.5, T**0)),
    "NOGD": ("sqrt(T) + T / B", "d B + B^2", lambda T, A: (T**0.5 + T / B, T**0)),
    "SkeGD": ("sqrt(T B)", "d B polylog T", lambda T, A: (T**0.5, T**0)),
    "B(AO)2KS": ("(A_T T log T)^(1/4)", "d sqrt(A_T T log T)",
                 lambda T, A: ((A * T * np.log(T)) ** 0.25, (A * T * np.log(T)) ** 0.5)),
    "POMDR": ("sqrt(A_T)", "min(d, log T) log T", lambda T, A: (A**0.5, np.log(T))),
    REMOVING: ("sqrt(A_T) + sqrt(T A_T / B)", "d B",
               lambda T, A: (A**0.5 + (T * A / B) ** 0.5, T**0)),
}  # fmt: skip
MEASURED = ("regret", "us", "size", "A")
DRAWN = ("OGD", "BOGD", "B(AO)2KS", "POMDR")  # NOGD and SkeGD have nearly the regret of OGD
SHOWN = ("Gaussian, coins", "Gaussian, rare coins", "Laplacian, rare coins")
PANELS = ("regret (hinge loss)", "time of a late round (\N{MICRO SIGN}s)")


@dataclass
class Setting:
    """A stream and a kernel: the probability of a coin is t^-rarity; whether POMDR removes."""

    name: str
    kernel: okl.Gaussian | okl.Laplacian
    rarity: float
    removes: bool

    def stated(self, label: str):
        return STATED[REMOVING if label == "POMDR" and self.removes else label]

    def rates(self, label: str, T, A):
        return self.stated(label)[2](T, A)


def settings():
    smooth, rough = okl.Gaussian(1.0), okl.Laplacian(1.0)
    return [
        Setting("Gaussian, coins", smooth, 0.0, False),
        Setting("Gaussian, rare coins", smooth, 0.5, False),
        Setting("Laplacian, coins", rough, 0.0, True),
        Setting("Laplacian, rare coins", rough, 0.5, True),
    ]


def stream(setting: Setting, T: int, seed: int):
    rng = np.random.default_rng([seed, T])
    coin = rng.random(T) < np.arange(1, T + 1) ** -setting.rarity
    X = np.where(coin, rng.uniform(-1.0, 1.0, T), 0.0)
    return X[:, None], np.where(coin & (rng.random(T) < 0.5), -1.0, 1.0)


def learners(setting: Setting, T: int, A: float, seed: int):
    """Return the algorithms that play T rounds of alignment A.

    BOGD's lam = 1 / (eta B) keeps the other coefficients at a removal; B(AO)2KS has no budget.
    """
    kernel, eta = setting.kernel, U / sqrt(T)
    rate = U / sqrt(BETA * sqrt(A * T))
    sizes = {"switch_size": B // 2, "budget": B} if setting.removes else {"budget": 400}
    return {
        "OGD": okl.KernelOGD(kernel, eta=eta, radius=U),
        "BOGD": okl.BOGD(kernel, eta=U / sqrt(B), lam=1.0 / (U * sqrt(B)), budget=B, seed=seed),
        "NOGD": okl.NOGD(kernel, eta=eta, budget=B, rank=B // 5),
        "SkeGD": okl.SkeGD(kernel, eta=eta, budget=B, sketch=3 * B // 4 // 4 * 4,
                           columns=3 * B // 20, rank=B // 10, period=round(0.3 * T), seed=seed),
        "B(AO)2KS": okl.BAO2KS(kernel, radius=U, eta=rate, budget=T + 1, beta=BETA, horizon=T,
                               seed=seed),
        "POMDR": okl.POMDR(kernel, radius=U, zeta=1.0, ald_scale=1.0, rate_scale=1.0, horizon=T,
                           **sizes),
    }  # fmt: skip


def measure(setting: Setting, sizes, seeds: int, limit: float) -> list[dict]:
    rows = []
    for learner in learners(setting, 600, 600.0, 0).values():
        okl.run(learner, *stream(setting, 600, 0))  # compiles
    for T in tqdm(sizes, desc=setting.name, disable=None):
        for seed in range(seeds):
            X, y = stream(setting, T, seed)
            A = okl.theory.kernel_alignment(setting.kernel, X, y)
            best = T - U * sqrt(T * (T - A))
            for label, learner in learners(setting, T, A, seed).items():
                run, late = play(learner, X, y, limit)
                values = run.losses.sum() - best, late, run.sizes[-1], A
                row = {"stream": setting.name, "algorithm": label, "rounds": T, "seed": seed}
                row |= dict(zip(MEASURED, values, strict=True)) | {"theorem_2": None}
                if label == "POMDR":
                    diary = learner.diary
                    bound = okl.theory.pomdr_data_bound(diary.alignment, U, diary.removals)
                    row["theorem_2"] = bound
                    if row["regret"] > bound:
                        raise SystemExit(f"T = {T}: regret {row['regret']}, bound {bound}")
                rows.append(row)
    return rows


def growth(T, regret):
    """Return the exponent of the mean over seeds, and its standard error by leaving one out."""
    n = len(regret)
    total = regret.sum(axis=0)
    without = [fit_exponent(T, (total - one) / (n - 1)) for one in regret]
    return fit_exponent(T, total / n), sqrt((n - 1) * np.var(without))


def upper_half(found):
    T, A = collect(found, "rounds", "A", algorithm="POMDR")
    half = len(T) // 2
    return T[half:].astype(float), A[:, half:].mean(axis=0)


def summary(setting: Setting, found):
    T, A = upper_half(found)
    rows = []
    for label in LABELS:
        sizes, regret, us, atoms, _ = collect(found, "rounds", *MEASURED, algorithm=label)
        texts = setting.stated(label)
        slopes = [f"{fit_exponent(T, rate):.2f}" for rate in setting.rates(label, T, A)]
        fitted, error = growth(T, regret[:, len(sizes) - len(T) :])
        took = us.min(axis=0)
        rows.append({
            "stream": f"{setting.name} (A_T ~ T^{fit_exponent(T, A):.2f})", "algorithm": label,
            "stated regret": texts[0], "exponent": slopes[0],
            "measured": f"{fitted:.2f} +- {error:.2f}", "at the end": f"{regret[:, -1].mean():.1f}",
            "atoms": f"{atoms[:, -1].mean():.0f}",
            "us a round": f"{took[-1]:.3g}", "stated time": texts[1], "exponent ": slopes[1],
            "measured ": f"{fit_exponent(T, took[-len(T) :]):.2f}",
        })  # fmt: skip
    return rows


def draw(axes, setting: Setting, found, labels) -> None:
    """Draw regret and time, and below them how sqrt(T), sqrt(A_T) and T grow."""
    least = np.full(2, np.inf)
    for label in DRAWN:
        sizes, regret, us, A = collect(found, "rounds", "regret", "us", "A", algorithm=label)
        style = look(label) | {"markersize": 3.0, "linewidth": 1.1}
        values = regret.mean(axis=0), us.min(axis=0)
        least = np.minimum(least, [line[0] for line in values])
        for ax, line in zip(axes, values, strict=True):
            ax.plot(sizes, line, label=label, **style)
    alignment = A.mean(axis=0)
    guides = (0, "sqrt(T)", sizes**0.5, RATE), (0, "sqrt(A_T)", alignment**0.5, "-.")
    for panel, label, values, dashes in (*guides, (1, "T", sizes, BOUND)):
        line = 0.7 * least[panel] * values / values[0]
        axes[panel].plot(sizes, line, label=f"as {label}", linestyle=dashes, **THEORY)
    okl.plots.tidy(axes[0], "", labels[0], setting.name, log="xy")
    okl.plots.tidy(axes[1], "rounds T", labels[1], log="xy")
    for ax in axes:
        ax.set_xticks(sizes[::2], [str(size) for size in sizes[::2]])


def main() -> None:
    args = parse_args(__doc__, limit=60.0, quick_limit=20.0)
    sizes, seeds = (QUICK_SIZES, QUICK_SEEDS) if args.quick else (SIZES, SEEDS)
    every = settings()
    fig, axes = okl.plots.figure(rows=2, columns=len(SHOWN), row_height=2.5)
    table, numbers = [], []
    for setting in every:
        found = [row for row in args.rows if row["stream"] == setting.name]
        found = found or measure(setting, sizes, seeds, args.limit)
        if setting.name in SHOWN:
            column = SHOWN.index(setting.name)
            draw(axes[:, column], setting, found, ("", "") if column else PANELS)
        table += summary(setting, found)
        numbers += found
    publish(fig, numbers, args, table, legend=4)


if __name__ == "__main__":
    main()
