"""Average loss on casp divided by that of the authors' own run, over ten permutations.

Reproduces: the upper left panel of Figure 4 of Jezequel, Gaillard, Rudi (2019), in numbers.
Missing: their permutation and seeds, which are not known; theirs cuts kernel ridge regression.
Time: two minutes.
"""

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, curve_rows, group, run_script
from scripts.looks import look
from scripts.papers.jezequel2019 import CURVES, Panel, learners, published, stream

PERMUTATIONS, QUICK_PERMUTATIONS = 10, 2
RIDGE_ROUNDS = 2708
FIRST = 50  # first round drawn
TABLE = (1001, 5001, 20_001, 45_730)
READING = 0.5  # per cent, of the authors' picture
CASP = Panel("casp")
NYSTROM, PROS = "Nystrom, KORS as listed", "Pros-N-KONS, KORS as listed"
RELEASED = "Pros-N-KONS as released"
DODGE = 1.06  # between the bars of a round
PANELS = {
    "ridge forecasts": ("KernelRidge", "PKAWV M=2", "PKAWV M=3", "Nystrom", NYSTROM),
    "gradient and Newton steps": ("FOGD", "Pros-N-KONS", PROS, RELEASED),
}
LOOKS = {label: look(label) | {"linewidth": 1.0} for own in PANELS.values() for label in own}
for published_kors in ("Nystrom", "Pros-N-KONS"):
    LOOKS[published_kors] |= {"mfc": "white", "linestyle": "--"}
LOOKS[RELEASED] = {"color": "0.5", "linestyle": ":", "marker": "X"}


def bordered(inverse, column, corner: float):
    """Return the inverse of a symmetric matrix that has grown by a column."""
    b = inverse @ column
    pivot = corner - column @ b
    return np.block([[inverse + np.outer(b, b) / pivot, -b[:, None] / pivot],
                     [-b / pivot, np.array([[1.0 / pivot]])]])  # fmt: skip


def pros_n_kons(X, y, coins, lags: bool):
    """Return forecasts of Pros-N-KONS and the size of its dictionary, by NumPy, slowly.

    If it lags, a forecast is made with the w of the round before (and in the span of the dictionary
    before), and the round of a new atom leaves no gradient, as in the authors' code; else it is
    ``okl.ProsNKONS`` (a test). KORS as listed. C = alpha = mu = sigma = 1, eps = 1/2.
    """
    atoms, weights = np.empty((0, X.shape[1])), np.empty(0)
    S_inv, T = np.empty((0, 0)), np.empty((0, 0))  # (S K S + I)^-1; K = R'R and T = R^-1
    w, g, A_inv = np.empty(0), np.empty(0), np.empty((0, 0))
    forecasts = np.empty(len(y))
    for t, x in enumerate(X):
        k = np.exp(-0.5 * np.square(atoms - x).sum(axis=1))
        z = T.T @ k
        lagged = np.clip(w @ z, -1.0, 1.0)
        Sk = weights * k
        p = min(1.5 * (1.0 - 1.0 / (2.0 - Sk @ S_inv @ Sk)), 1.0)
        joins = coins[t] < p
        if joins:
            S_inv = bordered(S_inv, Sk / p, p**-2.0 + 1.0)
            rest = np.sqrt(1.0 - z @ z)
            T = np.block([[T, -(T @ z)[:, None] / rest],
                          [np.zeros(len(z)), np.array([[1.0 / rest]])]])  # fmt: skip
            atoms, weights = np.vstack([atoms, x]), np.append(weights, 1.0 / p)
            z = np.append(z, rest)
            w, g, A_inv = np.zeros(len(z)), np.zeros(len(z)), np.eye(len(z))
        w = w - A_inv @ g
        Az = A_inv @ z
        forecast = w @ z
        if abs(forecast) > 1.0:  # the projection onto the forecasts in [-1, 1]
            w = w - (forecast - np.sign(forecast)) / (z @ Az) * Az
            forecast = np.sign(forecast)
        forecasts[t] = lagged if lags else forecast
        g = np.zeros(len(z)) if lags and joins else 2.0 * (forecast - y[t]) * z
        u = A_inv @ g / 4.0  # A grows by g g' / 16
        A_inv = A_inv - np.outer(u, u) / (1.0 + g @ u / 4.0)
    return forecasts, len(atoms)


def losses(seed: int):
    X, y = stream(CASP, (0.0, 1.0), seed)
    made = learners(CASP, X, seed)
    for label in (label for labels in PANELS.values() for label in labels if label != RELEASED):
        n = RIDGE_ROUNDS if label == "KernelRidge" else len(y)
        run = okl.run(made[label], X[:n], y[:n])
        yield label, run.losses, int(run.sizes[-1])
    forecasts, size = pros_n_kons(X, y, np.random.default_rng(seed).random(len(y)), lags=True)
    yield RELEASED, np.square(y - forecasts), size


def theirs():
    curves = published("casp average squared loss")
    found = {CURVES[name]: curve for name, curve in curves.items()}
    found["Nystrom"] = found[NYSTROM]
    return found | dict.fromkeys(("Pros-N-KONS", RELEASED), found[PROS])


def measure(args) -> list[dict]:
    permutations, found = QUICK_PERMUTATIONS if args.quick else PERMUTATIONS, {}
    for seed in tqdm(range(permutations), desc="permutations", disable=None):
        for label, own, size in losses(seed):
            rounds, values = theirs()[label]
            curve = {"round": rounds, "size at the end": [size] * len(rounds)}
            curve |= {"average_loss": np.cumsum(own)[rounds - 1] / rounds, "authors": values}
            head = {"algorithm": label, "permutation": seed}
            found.setdefault(label, []).extend(curve_rows(head, curve))
    return sum(found.values(), [])


def draw(rows):
    figure, axes = okl.plots.figure(columns=2, row_height=3.4)
    for ax, (name, labels) in zip(axes[0], PANELS.items(), strict=True):
        for number, label in enumerate(labels):
            columns = "round", "average_loss", "authors"
            rounds, ours, values = collect(rows, *columns, algorithm=label)
            ratios, x = (ours / values)[:, rounds >= FIRST], rounds[rounds >= FIRST]
            mean = ratios.mean(axis=0)
            bars = mean - ratios.min(axis=0), ratios.max(axis=0) - mean
            style = LOOKS[label] | {"markersize": 4, "elinewidth": 0.7}
            ax.errorbar(x * DODGE ** (number - 2), mean, bars, label=label, **style)
        ax.axhspan(1 - READING / 100, 1 + READING / 100, color="0.5", alpha=0.35, lw=0,
                   label=f"reading error of theirs, {READING} %")  # fmt: skip
        okl.plots.tidy(ax, "rounds", text=name, log="x")
    axes[0, 0].set_ylabel("average loss, ours / theirs", fontsize=okl.plots.FONT)
    return figure


def table(rows):
    out = []
    for label in group(rows, "algorithm"):
        columns = "average_loss", "authors", "size at the end"
        rounds, ours, values, sizes = collect(rows, "round", *columns, algorithm=label)
        row = {"algorithm": label, "size": f"{sizes[:, 0].mean():.0f}"}
        for t in (*TABLE, RIDGE_ROUNDS):
            texts = ["-"] * 3
            if t in rounds:
                at = list(rounds).index(t)
                mean, deviation, value = ours[:, at].mean(), ours[:, at].std(ddof=1), values[0, at]
                off = f"{100.0 * (mean / value - 1.0):+.1f} %"
                texts = [f"{value:.4f}", f"{mean:.4f} +- {deviation:.4f}", off]
            row |= zip((f"theirs at {t}", f"ours at {t}", f"off at {t}"), texts, strict=True)
        out.append(row)
    return out


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (300.0, 8.0), table, legend=3)
