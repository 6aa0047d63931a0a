"""Exponents of regret and time, measured at growing n beside the stated ones.

Reproduces: Table 1 of Jezequel, Gaillard, Rudi (2019), whose rates are upper bounds, by runs of n =
    128 to 8192 rounds: the rows of the Gaussian kernel in d = 1 and 2, and those of a polynomial
    spectrum with the Matern kernel (nu = 3/2, d = 1), its gamma fitted to measured effective
    dimensions.
Missing: nothing of the table, which has stated rates only; of the spectra it covers these three are
    measured, of Sketched-KONS c = 2 and no more than 4096 rounds. Kernel-AWV is ours to add.
Time: about 3 minutes, memory about 1 GB.
Data: none.

Inputs are uniform in [-1,1]^d, labels are coins -1 and 1 whose mean is a function of norm 1 in the
RKHS, so that lam = (B / |f|)^2 = 1 is what the theory wants. The parameters follow it at each n.
Gaussian, sigma = sqrt(d): lam = alpha = 1, the degree of Theorem 4 (2 log n here),
mu = n^-2 for Nystrom-AWV (text after Theorem 6), mu = 1/n for Pros-N-KONS. Matern: lam =
n^(gamma/(1+gamma)) and Corollary 7's mu; Pros-N-KONS as the published rate wants it, see
``tuning``. Sketched-KONS has gamma = 1/c, c = 2. beta = 1 and eps = 0.5 throughout. All regrets are
against the same value, min_f sum (y - f(x))^2 + lam |f|^2. Exponents are least-squares slopes over
the upper half of the sizes: of log(regret) on log log n for the Gaussian kernel, whose rates are
powers of log n, and on log n for the other. Time is the CPU time of the last quarter of the
rounds.
"""

import time
from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np
from common import arguments, band, cpu_clock, print_table, save, tidy
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from oklnumba.kernels import Kernel
from oklnumba.learners.learner import Learner

STEM = "jezequel2019_tab1"
SIZES, QUICK_SIZES = [2**k for k in range(7, 14)], [2**k for k in range(6, 11)]
SEEDS, QUICK_SEEDS = 3, 1
C = 2.0  # Table 1's c: Sketched-KONS keeps 1 in c
SKETCH_ROUNDS = 4096  # most of Sketched-KONS
LABELS = ("Kernel-AWV", "PKAWV, Taylor", "Nystrom-AWV", "Sketched-KONS", "Pros-N-KONS")
BOUND = "log det (bound of Prop. 1)"


@dataclass
class Setting:
    """A kernel and its rows of Table 1: exponents of regret and time, of log n or of n."""

    name: str
    d: int
    kernel: Kernel
    regret: dict[str, float]
    time: dict[str, float]
    gamma: float | None = None  # of a polynomial spectrum
    powers_of_log: tuple[str, ...] = ()  # algorithms whose time is a power of log n
    results: dict[tuple[str, int], list[dict]] = field(default_factory=dict)


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
    g = float(np.polyfit(np.log(ratio), np.log(dimensions), 1)[0])
    print(f"Matern 3/2, d = 1: d_eff(lam) grows as (n / lam)^{g:.3f} (n = {n}; in theory 1/4)")
    best = g / (1.0 + g)
    stated = dict.fromkeys((BOUND, "Kernel-AWV", "Nystrom-AWV", "Sketched-KONS"), best)
    stated["Pros-N-KONS"] = 4.0 * g / (1.0 + g) ** 2
    times = {"Nystrom-AWV": 4.0 * g / (1.0 - g**2), "Sketched-KONS": 2.0, "Kernel-AWV": 2.0}
    times["Pros-N-KONS"] = 4.0 * g * (1.0 - g) / (1.0 + g) ** 2
    return Setting("Matern 3/2, d = 1", 1, kernel, stated, times, gamma=g)


def tuning(setting: Setting, n: int) -> dict[str, float]:
    """Return lam and mu of Nystrom-AWV, and alpha and mu of Pros-N-KONS, for n rounds."""
    g = setting.gamma
    if g is None:
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


def learners(setting: Setting, n: int, seed: int) -> dict[str, Learner]:
    """Return the algorithms that play n rounds."""
    kernel, at = setting.kernel, tuning(setting, n)
    found: dict[str, Learner] = {"Kernel-AWV": okl.KernelAWV(kernel, lam=at["lam"])}
    if isinstance(kernel, okl.Gaussian):
        degree = okl.theory.taylor_degree(n, at["lam"], sqrt(setting.d), kernel.sigma)
        features = okl.TaylorFeatures(degree, sigma=kernel.sigma)
        found["PKAWV, Taylor"] = okl.PKAWV(features, lam=at["lam"])
    found["Nystrom-AWV"] = okl.NystromAWV(kernel, lam=at["lam"], mu=at["mu"], seed=seed)
    if n <= SKETCH_ROUNDS:
        sketched = okl.SketchedKONS(kernel, alpha=at["lam"], gamma=1.0 / C, seed=seed)
        found["Sketched-KONS"] = sketched
    pros = okl.ProsNKONS(kernel, alpha=at["alpha"], mu=at["pros mu"], seed=seed)
    return found | {"Pros-N-KONS": pros}


def stream(setting: Setting, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, setting.d))
    mean = okl.adversary.rkhs_function(setting.kernel, setting.d, norm=1.0, seed=seed)(X)
    return X, np.where(rng.random(n) < 0.5 + 0.5 * mean, 1.0, -1.0)


def play(learner: Learner, X: np.ndarray, y: np.ndarray, limit: float) -> tuple:
    """Return a run and its CPU time a round in the last quarter (us), short ones at their best."""
    quarter = len(y) // 4
    begin, late = time.thread_time(), np.inf
    for _ in range(5):
        with cpu_clock():
            run = okl.run(learner.reset(), X, y, every=quarter, time_limit=limit)
        if not run.finished:
            break
        before = run.checkpoint_seconds[run.checkpoints == len(y) - quarter][0]
        late = min(late, 1e6 * (run.seconds - before) / quarter)
        if time.thread_time() - begin > 0.5:
            break
    return run, late


def measure(setting: Setting, sizes: list[int], seeds: int, limit: float) -> None:
    """Fill the setting's results: regret, time and size by algorithm and rounds."""
    for learner in learners(setting, 600, 0).values():
        okl.run(learner, *stream(setting, 600, 0))  # compiles
    given_up = set()
    for n in tqdm(sizes, desc=setting.name, disable=None):
        for seed in range(seeds):
            X, y = stream(setting, n, seed)
            best = None
            for label, learner in learners(setting, n, seed).items():
                if label in given_up:
                    continue
                run, late = play(learner, X, y, limit)
                if not run.finished:
                    given_up.add(label)
                    print(f"{setting.name}, {label}: {n} rounds need more than {limit:g} s")
                    continue
                if label == "Kernel-AWV":
                    best = run.certificate.comparator[-1]
                    row = {"regret": run.certificate.bound[-1], "us": np.nan, "size": n}
                    setting.results.setdefault((BOUND, n), []).append(row)
                if best is None:  # there is nothing to compare with
                    return
                regret = float(run.losses.sum() - best)
                size = getattr(learner, "sketch_size", int(run.sizes[-1]))
                row = {"regret": regret, "us": late, "size": size}
                setting.results.setdefault((label, n), []).append(row)


def column(setting: Setting, label: str, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes that an algorithm played, and (seeds, sizes) of a measurement."""
    found = {n: rows for (name, n), rows in setting.results.items() if name == label}
    complete = {
        n: rows for n, rows in found.items() if len(rows) == len(next(iter(found.values())))
    }
    return np.array(list(complete)), np.array([[r[key] for r in v] for v in complete.values()]).T


def slope(n: np.ndarray, values: np.ndarray, of_log: bool) -> tuple[float, float]:
    """Return the exponent of n (of log n) in the upper half of the sizes, and its error.

    The error is the standard error over seeds; nan for one seed.
    """
    half = len(n) // 2
    x = np.log(np.log(n[half:])) if of_log else np.log(n[half:])
    with np.errstate(invalid="ignore"):
        slopes = [np.polyfit(x, np.log(row[half:]), 1)[0] for row in values]
    error = np.std(slopes, ddof=1) / sqrt(len(slopes)) if len(slopes) > 1 else np.nan
    return float(np.mean(slopes)), float(error)


def summary(setting: Setting) -> list[dict[str, str]]:
    """Return the rows of the table."""
    rows = []
    logs = setting.gamma is None
    for label in (BOUND, *LABELS):
        n, regret = column(setting, label, "regret")
        if not len(n) or len(n) < 4:
            continue
        fitted, error = slope(n, regret, logs)
        local, _ = slope(n, regret, False)
        middle = np.exp(np.mean(np.log(n[len(n) // 2 :])))
        stated = setting.regret[label]
        pm = f" +- {error:.2f}" if np.isfinite(error) else ""
        row = {
            "kernel": setting.name,
            "algorithm": label,
            "n": str(n[-1]),
            "regret": f"{regret[:, -1].mean():.1f}",
            "stated regret": f"(log n)^{stated:g}" if logs else f"n^{stated:.2f} log n",
            "measured": f"{fitted:.2f}{pm}",
            "d log R / d log n": f"{local:.2f}",
            # of (log n)^p it is p / log n, of n^b log n, the general rows, b + 1 / log n
            "stated there": f"{stated / log(middle) if logs else stated + 1 / log(middle):.2f}",
        }
        cells = dict.fromkeys(("size", "us a round", "stated time", "measured time"), "-")
        if label != BOUND:
            _, us = column(setting, label, "us")
            _, size = column(setting, label, "size")
            power = label in setting.powers_of_log
            took = us.min(axis=0, keepdims=True)
            cells = {
                "size": f"{size[:, -1].mean():.0f}",
                "us a round": f"{took[0, -1]:.3g}",
                "stated time": ("(log n)^" if power else "n^") + f"{setting.time[label]:.3g}",
                "measured time": f"{slope(n, took, power)[0]:.2f}",
            }
        rows.append(row | cells)
    return rows


def draw(axes: np.ndarray, setting: Setting) -> None:
    """Draw regret and time against n, and the stated rates through our last values."""
    logs = setting.gamma is None
    looks = {label: plots.line_style(i) for i, label in enumerate((*LABELS, BOUND))}
    for i, label in enumerate((*LABELS, BOUND)):
        n, regret = column(setting, label, "regret")
        if not len(n):
            continue
        # the first three run on one another: wide lines below narrow ones
        width = max(3.4 - i, 1.3)
        look = looks[label] | {"linewidth": width, "marker": "o", "markersize": 2.5}
        colour = {"color": look["color"], "linewidth": 0.8, "linestyle": (0, (1, 1.5))}
        band(axes[0], n, regret, label, look, np.mean)
        half = n[len(n) // 2 :]
        rate = (np.log(half) if logs else half) ** setting.regret[label]
        rate = rate if logs else rate * np.log(half)
        line = regret[:, -1].mean() * rate / rate[-1]
        stated = "stated rate, through our last value" if label == BOUND else None  # named once
        axes[0].plot(half, line, label=stated, **colour)
        if label != BOUND:
            us = column(setting, label, "us")[1].min(axis=0)
            axes[1].plot(n, us, label=label, **look)
            base = np.log(half) if label in setting.powers_of_log else half
            axes[1].plot(half, us[-1] * (base / base[-1]) ** setting.time[label], **colour)
    for ax, text in zip(
        axes, ("regret (squared loss)", "CPU time of a late round (us)"), strict=True
    ):
        ax.set(xscale="log", yscale="log")
        tidy(ax, "rounds n", text)
    name = setting.name + (f", $\\gamma$ = {setting.gamma:.2f}" if setting.gamma else "")
    plots.title(axes[0], name)


def main() -> None:
    args = arguments(__doc__ or "", limit=60.0, quick_limit=8.0)
    sizes = QUICK_SIZES if args.quick else SIZES
    seeds = QUICK_SEEDS if args.quick else SEEDS
    settings = [gaussian(1), gaussian(2), matern(sizes[-3])]
    fig, axes = plots.figure(rows=2, columns=len(settings), width=7.4, row_height=2.6)
    table, numbers = [], []
    for i, setting in enumerate(settings):
        measure(setting, sizes, seeds, args.limit)
        draw(axes[:, i], setting)
        table += summary(setting)
        for (label, n), rows in setting.results.items():
            for seed, row in enumerate(rows):
                head = {"kernel": setting.name, "algorithm": label, "rounds": n, "seed": seed}
                numbers.append(head | {k: f"{v:.6g}" for k, v in row.items()})
    plots.shared_legend(fig, columns=3)
    save(fig, numbers, args, STEM)
    print_table(table)


if __name__ == "__main__":
    main()
