"""The experiment behind Figures 2 and 4 of Jezequel, Gaillard, Rudi (2019)."""

import warnings
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np

import oklnumba as okl
from scripts import common
from scripts.common import collect, curve_rows, load
from scripts.looks import look

DEGREES = (2, 3, 4)
CENTRED = 2500  # features; a larger centred basis, which is ours, is not run
HEAD = 500  # inputs whose mean centres the basis, and on which the captured share is measured
FREQUENCIES = 1000
LIMIT, QUICK_LIMIT = 300.0, 20.0  # seconds
SEED = 0
SCALINGS = {"[-1,1]": (-1.0, 1.0), "[0,1]": (0.0, 1.0)}
# The factor of kernel ridge takes 4 n^2 bytes, and while it grows the old one is there as well.
KERNEL_ROWS = 32_768
FIRST = 200  # first round drawn; before it the averages are noise

SHOWN = ("average_loss", "[-1,1]"), ("average_loss", "[0,1]"), ("seconds", "[0,1]")

AUTHORS = "the authors' run"
POINTS = {"linestyle": "", "markersize": 4.2, "mfc": "white", "zorder": 3}  # of the authors
# Names of the pictures in the authors' notebooks, and our labels of their curves.
PICTURES = {"average_loss": "average squared loss", "seconds": "cumulative seconds"}
CURVES = {
    "ridge": "KernelRidge",
    "nystrom_ridge": "Nystrom, KORS as listed",
    "taylor2_ridge": "PKAWV M=2",
    "taylor3_ridge": "PKAWV M=3",
    "FODG": "FOGD",
    "pros_n_kons": "Pros-N-KONS, KORS as listed",
}
# What is drawn; the csv has the other degrees, centred bases and KORS as published, too.
LINE = {"markersize": 2.5, "markevery": 6, "linewidth": 1.3}
STYLES = {label: look(label) | LINE for label in CURVES.values()}
STYLES["KernelRidge"] |= {"linestyle": "-", "linewidth": 1.8, "marker": ""}


@dataclass(frozen=True)
class Panel:
    name: str
    sigma: float = 1.0
    test_part: bool = False  # only the rows of the source's test file, as published


def published(figure: str):
    """Return rounds and values of the curves in a picture of the authors' notebooks.

    They are read off the pictures that github.com/Remjez/kernel-online-learning holds at commit
    8049e64. The pictures' axis counts rounds from 0, these rounds count from 1.
    """
    rows = [row for row in common.published_rows("jezequel2019") if row["figure"] == figure]
    if not rows:
        raise ValueError(f"published/jezequel2019.csv has no figure {figure!r}")
    points = {name: sorted((int(row["x"]) + 1, float(row["y"])) for row in own)
              for name, own in common.group(rows, "curve").items()}  # fmt: skip
    return {name: tuple(map(np.array, zip(*own, strict=True))) for name, own in points.items()}


def stream(panel: Panel, scaling, seed: int = SEED):
    """Return inputs and labels, scaled and in a random order (some sets are sorted by class)."""
    data = load(panel.name, scale=None)
    start = data.n_train if panel.test_part else 0
    X, y = okl.datasets.scale_to(data.X[start:], *scaling), data.y[start:]
    order = np.random.default_rng(seed).permutation(len(y))
    if panel.name != "casp" and data.task == "regression":
        y = okl.datasets.scale_to(y)
    elif data.task == "regression":  # as the released code scales it: from -1/41 to 1
        y = (2.0 * y - 1.0) / (2.0 * y - 1.0).max()
    return X[order], y[order]


def learners(panel: Panel, X, seed: int = SEED):
    """Return the algorithms of the figure by their labels.

    On real data the paper plays ridge forecasts ("Projected-KRR") in place of AWV ones. An AWV
    forecast is the ridge forecast times a factor in (0, 1), so the mistakes are the same for both.
    KORS is played as published, and with the weights of the code that the paper lists.
    """
    kernel = okl.Gaussian(panel.sigma)
    out = {"KernelRidge": okl.KernelRidge(kernel)}
    for degree in DEGREES:
        features = okl.TaylorFeatures(degree, sigma=panel.sigma)
        out[f"PKAWV M={degree}"] = okl.PKAWV(features, forecaster="ridge")
        if comb(X.shape[1] + degree, degree) <= CENTRED:
            features = okl.TaylorFeatures(degree, sigma=panel.sigma, center=X[:HEAD].mean(axis=0))
            out[f"PKAWV M={degree} centred (ours)"] = okl.PKAWV(features, forecaster="ridge")
    out["FOGD"] = okl.FOGD(
        loss="squared", eta=len(X) ** -0.5, sigma=panel.sigma, n_frequencies=FREQUENCIES, seed=seed
    )
    for sampler, mark in (("kors", ""), ("kors_listed", ", KORS as listed")):
        kors = {"mu": 1.0, "beta": 1.0, "eps": 0.5, "sampler": sampler, "seed": seed}
        out[f"Nystrom{mark}"] = okl.NystromAWV(kernel, lam=1.0, forecaster="ridge", **kors)
        out[f"Pros-N-KONS{mark}"] = okl.ProsNKONS(kernel, C=1.0, alpha=1.0, **kors)
    return out


def averages(run):
    """Return the average loss, or the share of mistakes, of the rounds so far, by rounds."""
    errors = run.losses if run.mistakes is None else run.mistakes
    return np.cumsum(errors) / np.arange(1, run.rounds + 1)


def csv_rows(head, run, finished: bool) -> list[dict]:
    """Return a row for each of some checkpoints, geometrically spaced."""
    shown = okl.plots.thin(run.rounds, points=40, first=int(run.checkpoints[0]))
    at = np.unique(np.searchsorted(run.checkpoints, shown))
    rounds, seconds = run.checkpoints[at], [f"{s:.4g}" for s in run.checkpoint_seconds[at]]
    curve = {"round": rounds, "average_loss": averages(run)[rounds - 1], "seconds": seconds}
    return curve_rows(head, curve | {"finished": [finished] * len(at)})


def draw(rows, panels):
    """Draw a row of panels for each data set: loss at both scalings of the inputs, and time."""
    known = {row["dataset"] for row in rows}
    names = [panel.name for panel in panels if panel.name in known]
    figure, axes = okl.plots.figure(rows=len(names), columns=len(SHOWN), row_height=2.4)
    for (i, name), (j, (key, scaling)) in product(enumerate(names), enumerate(SHOWN)):
        ax, signs = axes[i, j], load(name).task == "classification"
        unit = 100.0 if signs and key == "average_loss" else 1.0
        for label, style in STYLES.items():
            own = {"dataset": name, "scaling": scaling, "algorithm": label}
            rounds, values = collect(rows, "round", key, **own)
            shown = rounds >= FIRST
            name_shown = label.replace("PKAWV", "ridge, Taylor").replace("Nys", "ridge, Nys")
            ax.plot(rounds[shown], unit * values[0, shown], label=name_shown, **style)
        if name == "casp" and scaling == "[0,1]":
            draw_published(ax, f"casp {PICTURES[key]}")
        losses = "mistakes so far (%)" if signs else "average squared loss"
        texts = ("rounds" if i == len(names) - 1 else "", losses if j == 0 else "")
        title = f"inputs in {scaling}" if key == "average_loss" else "time (s)"
        if name == "casp" and key == "average_loss":
            ax.set_ylim(bottom=0.05)
        okl.plots.tidy(ax, *texts, f"{name}, {title}", log="xy")
    return figure


def draw_published(ax, figure: str) -> None:
    for curve, (rounds, values) in published(figure).items():
        shown, own = rounds >= FIRST, look(CURVES[curve])
        ax.plot(rounds[shown], values[shown], **own | POINTS)
    ax.plot([], [], label=AUTHORS, color="0.45", marker="o", **POINTS)


def play(panel: Panel, scaling: str, args):
    """Return what a sweep has of each algorithm, in CPU seconds, and n; say what it warned of."""
    X, y = stream(panel, SCALINGS[scaling])
    lines, n, name = learners(panel, X), KERNEL_ROWS, f"{panel.name} {scaling}"
    ridge = {"KernelRidge": lines.pop("KernelRidge")}

    def measure(learner, run) -> dict:
        if not isinstance(learner, okl.PKAWV):
            return {"run": run, "captured": ""}
        return {"run": run, "captured": f"{learner.features.captured(X[:HEAD]).mean():.4f}"}

    options = {"measure": measure, "path": args.keep, "n_jobs": 1}
    with warnings.catch_warnings(record=True) as caught, common.cpu_clock():
        warnings.simplefilter("always")
        played = [
            *common.sweep(ridge, {name: (X[:n], y[:n])}, 0, args.limit, **options),
            *common.sweep(lines, {name: (X, y)}, 0, args.limit, **options),
        ]
    for text in dict.fromkeys(str(one.message) for one in caught):
        print(f"note: {name}: {text}")
    return played, len(X)


def reproduce(doc, panels) -> None:
    args = common.parse_args(doc, LIMIT, QUICK_LIMIT, keeps=True, own=True)
    if args.data:
        panels = [Panel(common.load_own(args), args.sigma)]
    numbers, table = list(args.rows), []
    here = () if numbers else common.available(panel.name for panel in panels)
    for panel, scaling in product([panel for panel in panels if panel.name in here], SCALINGS):
        played, n = play(panel, scaling, args)
        for one in played:
            head = {"dataset": panel.name, "scaling": scaling, "algorithm": one["learner"]}
            head |= {"size": one["run"].sizes[-1], "captured": one["captured"]}
            numbers += csv_rows(head, one["run"], one["n"] == n)
            table.append(numbers[-1])
    common.publish(draw(numbers, panels), numbers, args, table, legend=3)
