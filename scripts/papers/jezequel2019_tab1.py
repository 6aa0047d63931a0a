"""Exponents of regret and time, measured at growing n next to the stated ones.

Reproduces: Table 1 of Jezequel, Gaillard, Rudi (2019), whose rates are upper bounds.
Missing: other spectra, and of Sketched-KONS c other than 2 and more than 4096 rounds.
Time: about 3 minutes, memory about 1 GB.
"""

import time
from dataclasses import dataclass
from itertools import product
from math import log, sqrt

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, cpu_clock, fit_exponent, parse_args, publish
from scripts.looks import THEORY, explain, look

SIZES, QUICK_SIZES = [2**k for k in range(7, 14)], [2**k for k in range(6, 11)]
SEEDS, QUICK_SEEDS = 3, 1
C = 2.0  # Table 1's c: Sketched-KONS keeps 1 in c
SKETCH_ROUNDS = 4096  # most of Sketched-KONS
LABELS = ("Kernel-AWV", "PKAWV, Taylor", "Nystrom-AWV", "Sketched-KONS", "Pros-N-KONS")
BOUND = "log det (bound of Prop. 1)"
COLUMNS = ("algorithm", "rounds", "seed", "regret", "us", "size")
TIMES = ("size", "us a round", "stated time", "measured time")
PANELS = ("regret (squared loss)", "CPU time of a late round (\N{MICRO SIGN}s)")


@dataclass
class Setting:
    """A kernel and its rows of Table 1: exponents of regret and time, of log n or of n."""

    name: str
    d: int
    kernel: okl.Gaussian | okl.Matern
    regret: dict[str, float]
    time: dict[str, float]
    gamma: float | None = None  # of a polynomial spectrum
    powers_of_log: tuple[str, ...] = ()  # algorithms whose time is a power of log n


def gaussian(d: int) -> Setting:
    stated = {"PKAWV, Taylor": d + 1, "Nystrom-AWV": d + 1, "Sketched-KONS": d + 1}
    stated |= {"Pros-N-KONS": 2 * d + 1, "Kernel-AWV": d + 1, BOUND: d + 1}
    # Nystrom-AWV: (log n)^(2d + 4) after Theorem 6; the table has the better of the two
    times = {"PKAWV, Taylor": 2 * d, "Nystrom-AWV": 2 * d + 4, "Sketched-KONS": 2.0}
    times |= {"Pros-N-KONS": 2 * d, "Kernel-AWV": 2.0}
    fast = ("PKAWV, Taylor", "Nystrom-AWV", "Pros-N-KONS")
    name = f"Gaussian, d = {d}"
    return Setting(name, d, okl.Gaussian(sqrt(d)), stated, times, powers_of_log=fast)


def matern(n: int) -> Setting:
    """Return the polynomial setting, with gamma as n points have it."""
    kernel = okl.Matern(1.5, sigma=1.0)
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (n, 1))
    # n / lam from the lam of the regressor, about n^0.2, to the mu of its dictionary, about n^-1
    ratio = np.geomspace(n**0.8, n**2.1, 12)
    dimensions = [okl.theory.effective_dimension(kernel, X, n / r) for r in ratio]
    g = fit_exponent(ratio, dimensions)
    print(f"Matern 3/2, d = 1: d_eff(lam) grows as (n / lam)^{g:.3f} (n = {n}; in theory 1/4)")
    best = g / (1.0 + g)
    stated = dict.fromkeys((BOUND, "Kernel-AWV", "Nystrom-AWV", "Sketched-KONS"), best)
    stated["Pros-N-KONS"] = 4.0 * g / (1.0 + g) ** 2
    times = {"Nystrom-AWV": 4.0 * g / (1.0 - g**2), "Sketched-KONS": 2.0, "Kernel-AWV": 2.0}
    times["Pros-N-KONS"] = 4.0 * g * (1.0 - g) / (1.0 + g) ** 2
    return Setting("Matern 3/2, d = 1", 1, kernel, stated, times, gamma=g)


def tuning(setting: Setting, n: int):
    """Return lam and mu of Nystrom-AWV, and alpha and mu of Pros-N-KONS, for n rounds."""
    g = setting.gamma
    if g is None:
        # mu: the text after Theorem 6
        return {"lam": 1.0, "mu": n**-2.0, "alpha": 1.0, "pros mu": 1.0 / n}
    atoms = n ** (2.0 * g / (1.0 - g**2))  # Corollary 7
    # The published rate is that of eq. (8) at these two; see jezequel2019_fig1.py.
    fewer = n ** (2.0 * g * (1.0 - g) / (1.0 + g) ** 2)
    return {
        "lam": n ** (g / (1.0 + g)),
        "mu": n * atoms ** (-1.0 / g),
        "alpha": n ** (2.0 * g / (1.0 + g)),
        "pros mu": n * fewer ** (-1.0 / g),
    }


def learners(setting: Setting, n: int, seed: int):
    kernel, at = setting.kernel, tuning(setting, n)
    found = {"Kernel-AWV": okl.KernelAWV(kernel, lam=at["lam"])}
    if isinstance(kernel, okl.Gaussian):
        degree = okl.theory.taylor_degree(n, at["lam"], sqrt(setting.d), kernel.sigma)
        features = okl.TaylorFeatures(degree, sigma=kernel.sigma)
        found["PKAWV, Taylor"] = okl.PKAWV(features, lam=at["lam"])
    found["Nystrom-AWV"] = okl.NystromAWV(kernel, lam=at["lam"], mu=at["mu"], seed=seed)
    if n <= SKETCH_ROUNDS:
        coins = {"gamma": 1.0 / C, "seed": seed}
        found["Sketched-KONS"] = okl.SketchedKONS(kernel, alpha=at["lam"], **coins)
    pros = okl.ProsNKONS(kernel, alpha=at["alpha"], mu=at["pros mu"], seed=seed)
    return found | {"Pros-N-KONS": pros}


def stream(setting: Setting, n: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, setting.d))
    mean = okl.adversary.rkhs_function(setting.kernel, setting.d, norm=1.0, seed=seed)(X)
    return X, np.where(rng.random(n) < 0.5 + 0.5 * mean, 1.0, -1.0)


def play(learner, X, y, limit: float):
    """Return a run and its CPU time a round in the last quarter (us), short ones at their best."""
    quarter = len(y) // 4
    begin, late = time.thread_time(), np.inf
    for _ in range(5):
        with cpu_clock():
            run = okl.run(learner.reset(), X, y, every=quarter, time_limit=limit)
        if not run.finished:
            raise SystemExit(f"{learner}, {len(y)} rounds: more than {limit:g} s; raise --limit")
        before = run.checkpoint_seconds[run.checkpoints == len(y) - quarter][0]
        late = min(late, 1e6 * (run.seconds - before) / quarter)
        if time.thread_time() - begin > 0.5:
            break
    return run, late


def measure(setting: Setting, sizes, seeds: int, limit: float) -> list[dict]:
    for learner in learners(setting, 600, 0).values():
        okl.run(learner, *stream(setting, 600, 0))  # compiles
    found = []
    for n, seed in tqdm(list(product(sizes, range(seeds))), desc=setting.name, disable=None):
        X, y = stream(setting, n, seed)
        for label, learner in learners(setting, n, seed).items():
            run, late = play(learner, X, y, limit)
            if label == LABELS[0]:
                best = run.certificate.comparator[-1]
                bound = okl.theory.log_det(setting.kernel, X, learner.lam)  # labels are -1 and +1
                found.append((BOUND, n, seed, bound, np.nan, n))
            size = getattr(learner, "sketch_size", int(run.sizes[-1]))
            found.append((label, n, seed, float(run.losses.sum() - best), late, size))
    return [{"kernel": setting.name} | dict(zip(COLUMNS, row, strict=True)) for row in found]


def slope(n, values, of_log: bool):
    """Return the exponent of n (of log n) in the upper half, and its standard error over seeds."""
    half = len(n) // 2
    x = np.log(n[half:]) if of_log else n[half:]
    with np.errstate(invalid="ignore"):
        slopes = [fit_exponent(x, row[half:]) for row in values]
    error = np.std(slopes, ddof=1) / sqrt(len(slopes)) if len(slopes) > 1 else np.nan
    return float(np.mean(slopes)), float(error)


def summary(setting: Setting, found):
    rows = []
    logs = setting.gamma is None
    for label in (BOUND, *LABELS):
        n, regret = collect(found, "rounds", "regret", algorithm=label)
        if len(n) < 4:
            continue
        fitted, error = slope(n, regret, logs)
        local, _ = slope(n, regret, False)
        middle = np.exp(np.mean(np.log(n[len(n) // 2 :])))
        stated = setting.regret[label]
        pm = f" +- {error:.2f}" if np.isfinite(error) else ""
        # of (log n)^p it is p / log n, of n^b log n, the general rows, b + 1 / log n
        there = stated / log(middle) if logs else stated + 1 / log(middle)
        row = {
            "kernel": setting.name, "algorithm": label, "n": str(n[-1]),
            "regret": f"{regret[:, -1].mean():.1f}",
            "stated regret": f"(log n)^{stated:g}" if logs else f"n^{stated:.2f} log n",
            "measured": f"{fitted:.2f}{pm}", "d log R / d log n": f"{local:.2f}",
            "stated there": f"{there:.2f}",
        }  # fmt: skip
        if label == BOUND:
            rows.append(row | dict.fromkeys(TIMES, "-"))
            continue
        _, us, size = collect(found, "rounds", "us", "size", algorithm=label)
        power = label in setting.powers_of_log
        took = us.min(axis=0, keepdims=True)
        stated = ("(log n)^" if power else "n^") + f"{setting.time[label]:.3g}"
        texts = f"{size[:, -1].mean():.0f}", f"{took[0, -1]:.3g}", stated
        measured = f"{slope(n, took, power)[0]:.2f}"
        rows.append(row | dict(zip(TIMES, (*texts, measured), strict=True)))
    return rows


WIDTHS = (3.4, 2.6, 1.8, 1.3, 1.3)  # the first three run on one another: wide below narrow
STATED = {"marker": "o", "mfc": "none", "markersize": 7.0, "linestyle": ""}


def draw(axes, setting: Setting, found) -> None:
    logs = setting.gamma is None
    for label, width in zip((*LABELS, BOUND), (*WIDTHS, 1.3), strict=True):
        n, regret, us = collect(found, "rounds", "regret", "us", algorithm=label)
        if not len(n):
            continue
        style = THEORY | {"linestyle": "--", "marker": "x"} if label == BOUND else look(label)
        stated = STATED | {"color": style["color"]}
        style |= {"linewidth": width, "markersize": 3.5}
        okl.plots.band(axes[0], n, regret, label, style, np.mean)
        half = len(n) // 2
        rate = (np.log(n) if logs else n) ** setting.regret[label]
        rate = rate if logs else rate * np.log(n)
        axes[0].plot(n[-1], regret[:, half].mean() * rate[-1] / rate[half], **stated)
        if label != BOUND:
            us = us.min(axis=0)
            axes[1].plot(n, us, label=label, **style)
            base = np.log(n) if label in setting.powers_of_log else n
            grown = (base[-1] / base[half]) ** setting.time[label]
            axes[1].plot(n[-1], us[half] * grown, **stated)
    name = setting.name + (f", $\\gamma$ = {setting.gamma:.2f}" if setting.gamma else "")
    for ax, text, title in zip(axes, PANELS, (name, ""), strict=True):
        okl.plots.tidy(ax, "" if title else "rounds n", text, title, log="xy")


def main() -> None:
    args = parse_args(__doc__, limit=60.0, quick_limit=8.0)
    sizes, seeds = (QUICK_SIZES, QUICK_SEEDS) if args.quick else (SIZES, SEEDS)
    settings = [gaussian(1), gaussian(2), matern(sizes[-3])]
    fig, axes = okl.plots.figure(rows=2, columns=len(settings), row_height=2.4)
    table, numbers = [], []
    for i, setting in enumerate(settings):
        found = [row for row in args.rows if row["kernel"] == setting.name]
        found = found or measure(setting, sizes, seeds, args.limit)
        draw(axes[:, i], setting, found)
        for ax in axes[:, i] if i else ():
            ax.set_ylabel("")
        table += summary(setting, found)
        numbers += found
    explain(axes[0, 0], "end at the stated rate, from our middle value", **STATED)
    publish(fig, numbers, args, table, legend=3)


if __name__ == "__main__":
    main()
