"""The same point for ever: why sketches of existing rows have a hard time, regret in its parts.

Reproduces: the counterexample of section 6 of Calandriello, Lazaric, Valko (2017, ICML), which the
    paper treats in words and closed forms: one point, labels +C and -C in turn, squared loss,
    eta = sigma = 1/(8 C^2), alpha = 1. figures/README.md has R_G, R_D and "largest R_D".
Missing: nothing.
Time: about 1 minute; memory about 1 GB.
Data: none.

With w* = 0, the best function in hindsight, the regret is at most (R_G + R_D) / 2 (Proposition 1
without the factor that it wastes), which the script checks for every algorithm, seed and T.
"""

import time
from functools import partial

import numpy as np
from common import arguments, publish, series
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from oklnumba.learners.learner import Learner

C, ALPHA = 1.0, 1.0
SIGMA = 1.0 / (8.0 * C**2)
PHI = np.array([0.6, 0.0, 0.8])  # the point, of norm 1, in a space that is larger than its span
ROUNDS, QUICK_ROUNDS = 10_000, 1500
SEEDS, QUICK_SEEDS = 10, 3
POINTS = 30  # values of T
GAMMAS = (0.1, 0.01)
FD_ROWS = 2
PARTS = ("R_G", "R_D", "largest R_D", "regret", "size")


# ---- sketches of A = alpha I + sum sigma g g', for the explicit online Newton step ----


class Sketch:
    """A itself; what differs is how a gradient enters it."""

    size = 0

    def __init__(self, dimension: int = len(PHI)):
        self.A = ALPHA * np.eye(dimension)

    def solve(self, v: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.A, v)

    def form(self, v: np.ndarray) -> float:
        """Return v' A v."""
        return float(v @ self.A @ v)


class Dictionary(Sketch):
    """A with a weight for each round; a weight of 0 costs no memory."""

    def __init__(self, weight):
        super().__init__()
        self.weight, self.round = (
            weight,
            0,
        )  # of the round and of g' A^-1 g, g the rescaled gradient

    def add(self, g: np.ndarray) -> None:
        self.round += 1
        weight = self.weight(self.round, float(g @ self.solve(g)))
        self.size += weight > 0.0
        self.A += weight * np.outer(g, g)


class FrequentDirections(Sketch):
    """A with the m rows of Frequent Directions in place of all gradients (Luo et al. 2016).

    The last row is always free: it takes the gradient, then all squared singular values are shrunk
    by the smallest one.
    """

    def __init__(self, m: int, dimension: int = len(PHI)):
        super().__init__(dimension)
        self.S = np.zeros((m, dimension))

    def add(self, g: np.ndarray) -> None:
        self.S[-1] = g
        _, values, rows = np.linalg.svd(self.S, full_matrices=False)
        squares = values**2 - values[-1] ** 2
        squares[squares < 1e-14 * values[0] ** 2] = 0.0  # rounding
        self.S = np.sqrt(squares)[:, None] * rows
        self.A = ALPHA * np.eye(len(g)) + self.S.T @ self.S
        self.size = int(np.any(self.S != 0.0, axis=1).sum())  # rows in use


class Identity(Sketch):
    """A_t = t I, with which the Newton step is gradient descent with steps 1/t; it keeps no row."""

    def __init__(self):
        self.A = np.zeros((len(PHI), len(PHI)))

    def solve(self, v: np.ndarray) -> np.ndarray:
        return v / max(self.A[0, 0], 1.0)  # A_0 = 0 is asked for a direction only

    def add(self, g: np.ndarray) -> None:
        self.A += np.eye(len(g))


def unbiased(seed: int, eps: float = 0.5):
    """Return weights 1/p with probability p, KORS's estimate of the leverage score (beta = 1)."""
    coins = np.random.default_rng(seed)

    def weight(t: int, q: float) -> float:
        p = min((1.0 + eps) * q / (1.0 + q), 1.0)
        return 1.0 / p if coins.random() < p else 0.0

    return weight


def schedule(total: int, ones: int, heavy: int):
    """Return the paper's schedule: weight total - ones in round ``heavy``, 1 in ``ones`` others."""
    return lambda t, _: float(total - ones if t == heavy else t <= ones + 1)


# ---- runs ----


def labels(n: int) -> np.ndarray:
    return np.where(np.arange(n) % 2 == 0, C, -C)


def newton(sketch, n: int) -> dict[str, np.ndarray]:
    """Play the projected online Newton step with a sketch; return its parts after each round."""
    y, u = labels(n), np.zeros(len(PHI))
    steps = {part: np.empty(n) for part in PARTS}
    for t in range(n):
        raw, direction = PHI @ u, sketch.solve(PHI)
        forecast = min(max(raw, -C), C)
        w = u - (raw - forecast) / (PHI @ direction) * direction
        slope = 2.0 * (forecast - y[t])
        g = slope * PHI
        before, weight = sketch.form(w), sketch.form(PHI)
        sketch.add(np.sqrt(SIGMA) * g)
        step = sketch.solve(g)
        u = w - step
        weight = sketch.form(PHI) - weight - SIGMA * slope**2  # above that of Newton
        steps["R_G"][t] = g @ step
        steps["R_D"][t] = sketch.form(w) - before - SIGMA * (g @ w) ** 2
        steps["largest R_D"][t] = max(weight, 0.0) * C**2
        steps["regret"][t] = (forecast - y[t]) ** 2 - C**2
        steps["size"][t] = sketch.size
    return {k: v if k == "size" else np.cumsum(v) for k, v in steps.items()}


def library(learner: Learner, n: int, at: np.ndarray) -> dict[str, np.ndarray]:
    """Return the parts of a learner of the package after the rounds ``at``.

    All the points are one, so |w_t| = |forecast| and R_D follows from which rounds entered A.
    """
    X, y = np.zeros((n, 1)), labels(n)
    forecasts = okl.run(learner.reset(), X, y).predictions
    learner.reset()
    sketched = isinstance(learner, okl.SketchedKONS)
    stops = np.arange(1, n + 1) if sketched else at
    R_G, sizes, start = np.empty(n), np.arange(1, n + 1), 0
    for stop in stops:
        learner.partial_fit(X[start:stop], y[start:stop])
        R_G[stop - 1] = learner.R_G
        if sketched:
            sizes[stop - 1] = learner.sketch_size
        start = stop
    left_out = 1 - np.diff(sizes, prepend=0)
    slopes = 2.0 * (forecasts - y)
    parts = {
        "R_G": R_G,
        "R_D": -np.cumsum(left_out * SIGMA * slopes**2 * forecasts**2),
        "largest R_D": np.zeros(n),
        "regret": np.cumsum((forecasts - y) ** 2) - C**2 * np.arange(1, n + 1),
        "size": sizes,
    }
    return {k: v[at - 1] for k, v in parts.items()}


def few(T: int) -> int:
    """Return a logarithmic budget."""
    return int(np.ceil(np.log2(T)))


def algorithms(n: int, seeds: int, at: np.ndarray) -> dict[str, list]:
    """Return, for each algorithm, a function for each seed that gives its parts at the rounds."""
    kernel = okl.Gaussian(1.0)

    def last(weights):  # weights depend on T: a run for each T
        ends = [newton(Dictionary(weights(T)), T) for T in at]
        return {part: np.array([end[part][-1] for end in ends]) for part in PARTS}

    def explicit(sketch):
        return {part: values[at - 1] for part, values in newton(sketch, n).items()}

    def sketched(gamma):
        return lambda seed: library(okl.SketchedKONS(kernel, C=C, gamma=gamma, seed=seed), n, at)

    def scheduled(heavy):
        return lambda _: last(lambda T: schedule(T, few(T), heavy))

    out: dict[str, list] = {}
    for name, parts, runs in (
        ("KONS", lambda _: library(okl.KONS(kernel, C=C, alpha=ALPHA), n, at), 1),
        *((f"Sketched-KONS, gamma = {gamma}", sketched(gamma), seeds) for gamma in GAMMAS),
        ("weights 1/p, unbiased", lambda seed: explicit(Dictionary(unbiased(seed))), seeds),
        ("weight T - B in round 1, then ones", scheduled(1), 1),
        ("weight T - B in round 2, else ones", scheduled(2), 1),
        ("B ones only", lambda _: last(lambda T: lambda t, _: float(t <= few(T))), 1),
        ("gradient descent, steps 1/t", lambda _: explicit(Identity()), 1),
        (f"Frequent Directions, m = {FD_ROWS}", lambda _: explicit(FrequentDirections(FD_ROWS)), 1),
    ):
        out[name] = [partial(parts, seed) for seed in range(runs)]
    return out


def checked(label: str, parts: dict[str, np.ndarray], at: np.ndarray) -> dict[str, np.ndarray]:
    """Return the parts; stop if a regret exceeds what Proposition 1 allows."""
    bound = (parts["R_G"] + parts["R_D"]) / 2.0
    if (parts["regret"] > bound + 1e-9 * at).any():
        raise SystemExit(f"{label}: the regret exceeds (R_G + R_D) / 2")
    return parts | {"bound": bound}


def closed_forms(R_G: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
    """Return the bounds on R_G: as printed, with the gradient's usual size 2C, and Lemma 3's.

    The last is log(A_T / alpha) / sigma with the A_T of the run; R_G as it is after each round.
    """
    determinant = -np.cumsum(np.log1p(-SIGMA * np.diff(R_G, prepend=0.0))) / SIGMA
    t = np.arange(1, at[-1] + 1)
    printed = np.cumsum(C**2 / (C**2 * SIGMA * t + ALPHA))[at - 1]
    corrected = np.cumsum(4 * C**2 / (4 * C**2 * SIGMA * t + ALPHA))[at - 1]
    return dict(zip(FORMS, (printed, corrected, determinant[at - 1]), strict=True))


# ---- figure ----

FORMS = {
    "sum C^2/(C^2 sigma t + alpha), printed": {"color": "0.4", "linestyle": ":"},
    "the same with 4 C^2": {"color": "0.4", "linestyle": "--"},
    "log(A_T/alpha)/sigma, Lemma 3": {"color": "0.4", "linestyle": (0, (6, 1, 1, 1))},
}
STYLES = {  # the others have plots.line_style
    "Frequent": {"color": "0", "linestyle": "none", "marker": "x", "markersize": 4},  # on KONS
    "gradient": {"color": "0.65", "linestyle": "-", "linewidth": 2.0, "zorder": 1.5},
}
PANELS = {
    "R_G": ("R_G", "log"),
    "R_D": ("R_D, with its sign", "symlog"),
    "forms": ("closed form / R_G of KONS", "log"),
    "largest R_D": ("largest R_D", "log"),
    "regret": ("regret against w* = 0", "log"),
    "size": ("rounds or rows kept", "log"),
}


def draw(results: dict[str, dict[str, np.ndarray]], forms: dict[str, np.ndarray], at: np.ndarray):
    """Return the figure."""
    fig, axes = plots.figure(rows=3, columns=2, width=7.2, row_height=2.4)
    for ax, (part, (ylabel, scale)) in zip(axes.flat, PANELS.items(), strict=True):
        if scale == "symlog":
            ax.set_yscale("symlog", linthresh=1.0)
        if part == "forms":
            for label, values in forms.items():
                ax.plot(at, values / results["KONS"]["R_G"][0], label=label, **FORMS[label])
            ax.axhline(1.0, color="0", linewidth=1.3)
        for number, (label, parts) in enumerate(results.items()):
            if part not in parts:
                break
            values = parts[part]
            if scale == "log":
                values = np.where(values > 1e-6, values, np.nan)  # not zeros, nor rounding
            if not np.isnan(values).all():
                style = STYLES.get(label.split()[0], plots.line_style(number))
                plots.band(ax, at, values, label, style)
        ax.set_xlim(0.8 * at[0], 1.25 * at[-1])
        plots.tidy(ax, "rounds T", ylabel, log="xy" if scale == "log" else "x")
    return fig


def main() -> None:
    args = arguments(__doc__ or "", limit=300.0, quick_limit=8.0)
    n, seeds = (QUICK_ROUNDS, QUICK_SEEDS) if args.quick else (ROUNDS, SEEDS)
    at = plots.thin(n, POINTS, first=2)
    at = np.unique(at + at % 2)  # even: then 0 is the best function in hindsight
    results = {}
    for label, runs in tqdm(algorithms(n, seeds, at).items(), disable=None):
        done, start = [], time.monotonic()
        for run in runs:
            done.append(checked(label, run(), at))
            if time.monotonic() - start > args.limit:
                break
        results[label] = {part: np.array([parts[part] for parts in done]) for part in done[0]}
    exact, explicit = results["KONS"], newton(Dictionary(lambda t, _: 1.0), n)
    for part in ("R_G", "regret"):  # KONS in kernel form is the Newton step in the open
        gap = np.abs(exact[part][0] - explicit[part][at - 1]).max()
        if gap > 1e-8 * at[-1]:
            raise SystemExit(f"KONS and the explicit online Newton step differ in {part}: {gap}")
    numbers, table = [], []
    for label, parts in results.items():
        seeds = len(parts["R_G"])
        for seed in range(seeds):
            curves = {"T": at} | {part: values[seed] for part, values in parts.items()}
            numbers += series({"algorithm": label, "seed": seed}, curves)
        middle = {part: np.median(values[:, -1]) for part, values in parts.items()}
        table.append({"algorithm": label, "seeds": seeds, "T": at[-1]} | middle)
    forms = closed_forms(explicit["R_G"], at)
    for label, values in forms.items():
        below = at[values < exact["R_G"][0]]
        said = f"below it up to T = {below[-1]}" if len(below) else "never below it"
        print(f"{label}: {values[-1]:.2f}; R_G of KONS {exact['R_G'][0, -1]:.2f}; {said}")
        numbers += series({"algorithm": label}, {"T": at, "R_G": values})
    publish(draw(results, forms, at), numbers, args, table, legend=2)


if __name__ == "__main__":
    main()
