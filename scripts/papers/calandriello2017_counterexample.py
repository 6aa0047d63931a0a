"""The same point for ever: why sketches of existing rows have a hard time, regret in its parts.

Reproduces: the counterexample of section 6 of Calandriello, Lazaric, Valko (2017, ICML), and checks
    Proposition 1 for every algorithm and T.
Missing: nothing.
Time: half a minute; memory about 1 GB.
"""

import time

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, curve_rows, group, run_script
from scripts.looks import BLACK, BLUE, BOUND, ORANGE, PINK, RATE, SKY, THEORY, explain, use_symlog
from scripts.papers.calandriello2017 import ALPHA, SIGMA, C

PHI = np.array([0.6, 0.0, 0.8])  # the point of Frequent Directions, of norm 1
ROUNDS, QUICK_ROUNDS = 10_000, 1500
SEEDS, QUICK_SEEDS = 10, 3
POINTS = 30  # values of T
GAMMAS = (0.1, 0.01)
RANDOM = ("Sketched", "weights 1/p")
SKETCH = "Frequent Directions, m = 2"
FREQUENT = "FrequentKONS, at most 100 atoms"
PARTS = ("R_G", "R_D", "largest R_D", "regret", "size")

# All points are one, of norm 1: w and A matter along it only, where w_t is the forecast of a round
# and A_t = alpha + sum of weights, each sigma g^2 times what a dictionary gives the round.


def labels(n: int):
    return np.where(np.arange(n) % 2 == 0, C, -C)


def squares(forecasts):
    """Return sigma g^2, the weights of Newton."""
    return SIGMA * (2.0 * (forecasts - labels(len(forecasts)))) ** 2


def parts_of(forecasts, weights, alpha: float = ALPHA):
    """Return the parts of the regret after each round, from the weights that entered A."""
    y, above = labels(len(forecasts)), weights - squares(forecasts)
    return {
        "R_G": np.cumsum(squares(forecasts) / (alpha + np.cumsum(weights))) / SIGMA,
        "R_D": np.cumsum(above * forecasts**2),
        "largest R_D": np.cumsum(np.maximum(above, 0.0)) * C**2,
        "regret": np.cumsum((forecasts - y) ** 2 - C**2),
        "size": np.cumsum(weights > 0.0),
    }


def newton(weight, n: int, alpha: float = ALPHA):
    """Play the projected online Newton step; weight(t, sigma g^2, A) is what enters A."""
    forecasts, weights, A, u = np.empty(n), np.empty(n), alpha, 0.0
    for t, y in enumerate(labels(n)):
        forecasts[t] = min(max(u, -C), C)
        slope = 2.0 * (forecasts[t] - y)
        weights[t] = weight(t + 1, SIGMA * slope**2, A)
        A += weights[t]
        u = forecasts[t] - slope / A
    return parts_of(forecasts, weights, alpha)


def library(learner, n: int):
    """Return the parts of a KONS, FrequentKONS with its atoms; stop if its own R_G is another."""
    forecasts = okl.run(learner, np.zeros((n, 1)), labels(n)).predictions
    merges = isinstance(learner, okl.FrequentKONS)
    parts = parts_of(forecasts, squares(forecasts) * (merges or learner.A_weights > 0.0))
    if abs(parts["R_G"][-1] - learner.R_G) > 1e-8 * n:
        raise SystemExit(f"{learner}: R_G is {learner.R_G}, from its weights {parts['R_G'][-1]}")
    return parts | {"size": np.full(n, learner.size)} if merges else parts


def frequent_directions(n: int):
    """Return the parts of a sketch in R^3, which holds all gradients: ``main`` looks."""
    learner = okl.SketchedONS(1, alpha=ALPHA, C=C)
    forecasts = okl.run(learner, np.tile(PHI, (n, 1)), labels(n)).predictions
    return parts_of(forecasts, squares(forecasts)) | {"size": np.ones(n)}


def unbiased(seed: int, eps: float = 0.5):
    """Return weights 1/p with probability p, KORS's estimate of the leverage score (beta = 1)."""
    coins = np.random.default_rng(seed)

    def weight(t: int, square: float, A: float) -> float:
        p = min((1.0 + eps) * square / (A + square), 1.0)
        return square / p if coins.random() < p else 0.0

    return weight


def schedule(T: int, heavy: int):
    """Return the paper's schedule: weight T - B in round ``heavy`` (0: in none), 1 in B others."""
    B = int(np.ceil(np.log2(T)))
    return lambda t, square, _: square * (T - B if t == heavy else t <= B + (heavy > 0))


def algorithms(n: int, at):
    """Return, for each algorithm, a function of a seed that gives its parts at the rounds."""
    kernel = okl.Gaussian(1.0)

    def last(weight):
        def ends(seed: int):
            runs = [newton(weight(T), T) for T in at]
            return {part: np.array([run[part][-1] for run in runs]) for part in PARTS}

        return ends

    def whole(play):
        return lambda seed: {part: values[at - 1] for part, values in play(seed).items()}

    def sketched(gamma: float):
        return whole(lambda seed: library(okl.SketchedKONS(kernel, C=C, gamma=gamma, seed=seed), n))

    return {
        "KONS": whole(lambda _: library(okl.KONS(kernel, C=C, alpha=ALPHA), n)),
        **{f"Sketched-KONS, gamma = {gamma}": sketched(gamma) for gamma in GAMMAS},
        "weights 1/p, unbiased": whole(lambda seed: newton(unbiased(seed), n)),
        "weight T - B in round 1, then ones": last(lambda T: schedule(T, 1)),
        "weight T - B in round 2, else ones": last(lambda T: schedule(T, 2)),
        "B ones only": last(lambda T: schedule(T, 0)),
        # gradient descent is the Newton step with A_t = t, and keeps no row
        "gradient descent, steps 1/t": whole(
            lambda _: newton(lambda *_: 1.0, n, alpha=0.0) | {"size": np.zeros(n)}),
        SKETCH: whole(lambda _: frequent_directions(n)),
        FREQUENT: whole(lambda _: library(okl.FrequentKONS(kernel, C=C, alpha=ALPHA), n)),
    }  # fmt: skip


def check(label: str, parts, at):
    """Return the parts; stop if a regret exceeds what Proposition 1 allows."""
    bound = (parts["R_G"] + parts["R_D"]) / 2.0
    if (parts["regret"] > bound + 1e-9 * at).any():
        raise SystemExit(f"{label}: the regret exceeds (R_G + R_D) / 2")
    return parts | {"bound": bound}


def closed_forms(R_G, at):
    """Return bounds on R_G: as printed, with gradient 2C, and Lemma 3's log(A_T/alpha)/sigma."""
    determinant = -np.cumsum(np.log1p(-SIGMA * np.diff(R_G, prepend=0.0))) / SIGMA
    t = np.arange(1, at[-1] + 1)
    printed, corrected = (np.cumsum(g / (g * SIGMA * t + ALPHA)) for g in (C**2, 4 * C**2))
    curves = printed, corrected, determinant
    return {form: curve[at - 1] for form, curve in zip(FORMS, curves, strict=True)}


FORMS = {
    "sum C^2/(C^2 sigma t + alpha), printed": THEORY | {"linestyle": RATE},
    "the same with 4 C^2": THEORY | {"linestyle": BOUND},
    "log(A_T/alpha)/sigma, Lemma 3": THEORY | {"linestyle": "-."},
}
STYLES = {  # of the picture; the csv has all
    "KONS": {"color": BLACK, "linestyle": "-", "linewidth": 2.0},
    "Sketched-KONS, gamma = 0.1": {"color": ORANGE, "linestyle": "-"},
    "weights 1/p, unbiased": {"color": PINK, "linestyle": "-."},
    "weight T - B in round 1, then ones": {"color": BLUE, "linestyle": "-"},
    "weight T - B in round 2, else ones": {"color": BLUE, "linestyle": "--"},
    FREQUENT: {"color": SKY, "linestyle": "none", "marker": "o", "mfc": "none", "markersize": 5},
}
PANELS = {
    "R_G": ("R_G", "log"),
    "R_D": ("R_D, with its sign", "symlog"),
    "forms": ("closed form / R_G of KONS", "log"),
    "largest R_D": ("largest R_D", "log"),
    "regret": ("regret against w* = 0", "log"),
    "size": ("rounds or rows kept", "log"),
}


def draw(rows):
    labels = [label for label in group(rows, "algorithm") if label in STYLES]
    at, exact = collect(rows, "T", "R_G", algorithm="KONS")
    fig, axes = okl.plots.figure(rows=3, columns=2, row_height=2.2)
    for ax, (part, (ylabel, scale)) in zip(axes.flat, PANELS.items(), strict=True):
        if scale == "symlog":
            use_symlog(ax, 1.0)
        if part == "forms":
            for label, style in FORMS.items():
                form = collect(rows, "T", "R_G", algorithm=label)[1][0]
                ax.plot(at, form / exact[0], label=label, **style)
            ax.axhline(1.0, color=BLACK, linewidth=1.3)
        for label in labels if part in PARTS else ():
            _, values = collect(rows, "T", part, algorithm=label)
            values = np.where(values > 1e-6, values, 0.0) if scale == "log" else values  # rounding
            okl.plots.band(ax, at, values, label, STYLES[label])
        ax.set_xlim(0.8 * at[0], 1.25 * at[-1])
        if scale == "log":  # what is 0 is at the foot
            lines = [np.asarray(line.get_ydata()) for line in ax.lines]
            least = min(y[y > 0.0].min() for y in lines if (y > 0.0).any())
            ax.set(yscale="log", ylim=(0.5 * least, None))
        below = "rounds T" if ax in axes[-1] else ""
        okl.plots.tidy(ax, below, ylabel, log="xy" if scale == "log" else "x")
    explain(axes[0, 0], "0", marker="v", linestyle="")
    return fig


def measure(args) -> list[dict]:
    n, seeds = (QUICK_ROUNDS, QUICK_SEEDS) if args.quick else (ROUNDS, SEEDS)
    at = okl.plots.thin(n, POINTS, first=2)
    at = np.unique(at + at % 2)  # even: then 0 is the best function in hindsight
    rows = []
    for label, play in tqdm(algorithms(n, at).items(), disable=None):
        start = time.monotonic()
        for seed in range(seeds if label.startswith(RANDOM) else 1):
            parts = check(label, play(seed), at)
            rows += curve_rows({"algorithm": label, "seed": seed}, {"T": at} | parts)
            if time.monotonic() - start > args.limit:
                break
    explicit = newton(lambda t, square, A: square, n)
    for label in ("KONS", SKETCH):  # in kernel form, and in R^3, they are the Newton step above
        for part in ("R_G", "regret"):
            gap = np.abs(collect(rows, "T", part, algorithm=label)[1][0] - explicit[part][at - 1])
            if gap.max() > 1e-8 * at[-1]:
                raise SystemExit(f"{label} and the Newton step differ in {part}: {gap.max()}")
    for label, values in closed_forms(explicit["R_G"], at).items():
        rows += curve_rows({"algorithm": label}, {"T": at, "R_G": values})
    return rows


def summary(rows) -> list[dict]:
    """Return medians over the seeds at the largest T."""
    T = max(row["T"] for row in rows)
    last = [row for row in rows if row["T"] == T and row["algorithm"] not in FORMS]
    return [
        {"algorithm": label, "seeds": len(own), "T": T}
        | {part: np.median([row[part] for row in own]) for part in (*PARTS, "bound")}
        for label, own in group(last, "algorithm").items()
    ]


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (300.0, 8.0), summary, legend=2)
