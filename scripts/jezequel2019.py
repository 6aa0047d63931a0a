"""The experiment behind Figures 2 and 4 of Jezequel, Gaillard, Rudi (2019)."""

from dataclasses import dataclass
from math import comb

import numpy as np
from common import arguments, at_hand, print_table, save, timed_run
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from oklnumba.learners.learner import Learner

DEGREES = (2, 3, 4)
LARGEST = 1500  # features; the next size up, 2300, takes minutes a run
HEAD = 500  # inputs whose mean centres the basis, and on which the captured share is measured
FREQUENCIES = 1000
LIMIT, QUICK_LIMIT = 300.0, 20.0  # seconds
SEED = 0
SCALINGS = {"[-1,1]": (-1.0, 1.0), "[0,1]": (0.0, 1.0)}
# The factor of kernel ridge takes 4 n^2 bytes, and while it grows the old one is there as well.
KERNEL_ROWS = 32_768
FIRST = 200  # first round drawn; before it the averages are noise

# One colour for each degree: the published basis solid, ours dashed.
STYLES: dict[str, dict] = {
    "KernelRidge": {"color": plots.COLOURS[0], "linestyle": "-", "linewidth": 1.8},
    "Nystrom": {"color": plots.COLOURS[4], "linestyle": (0, (5, 1, 1, 1))},
    "FOGD": {"color": plots.COLOURS[6], "linestyle": ":", "linewidth": 1.8},
}
for _degree, _colour in zip(
    DEGREES, (plots.COLOURS[5], plots.COLOURS[3], plots.COLOURS[2]), strict=True
):
    STYLES[f"PKAWV M={_degree}"] = {"color": _colour, "linestyle": "-"}
    STYLES[f"PKAWV M={_degree} centred (ours)"] = {"color": _colour, "linestyle": (0, (4, 1.5))}


@dataclass(frozen=True)
class Panel:
    """One data set of a figure."""

    name: str
    sigma: float = 1.0
    test_part: bool = False  # only the rows of the source's test file, as published
    optional: bool = False  # a figure without it is still whole


def stream(panel: Panel, scaling: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels, scaled and in a random order (some sets are sorted by class)."""
    data = okl.datasets.load(panel.name, scale=None)
    start = data.n_train if panel.test_part else 0
    X = okl.datasets.scale_to(data.X[start:], *scaling)
    y = data.y[start:]
    if data.task == "regression":
        y = okl.datasets.scale_to(y)
    order = np.random.default_rng(SEED).permutation(len(y))
    return X[order], y[order]


def learners(panel: Panel, X: np.ndarray) -> dict[str, Learner]:
    """Return the algorithms of the figure by their labels.

    On real data the paper plays ridge forecasts ("Projected-KRR") in place of AWV ones. An AWV
    forecast is the ridge forecast times a factor in (0, 1), so the mistakes are the same for both.
    """
    kernel = okl.Gaussian(panel.sigma)
    out: dict[str, Learner] = {"KernelRidge": okl.KernelRidge(kernel)}
    for degree in DEGREES:
        if comb(X.shape[1] + degree, degree) > LARGEST:
            continue
        for center, mark in ((None, ""), (X[:HEAD].mean(axis=0), " centred (ours)")):
            features = okl.TaylorFeatures(degree, sigma=panel.sigma, center=center)
            out[f"PKAWV M={degree}{mark}"] = okl.PKAWV(features, forecaster="ridge")
    out["Nystrom"] = okl.NystromAWV(kernel, lam=1.0, mu=1.0, beta=1.0, eps=0.5, forecaster="ridge")
    out["FOGD"] = okl.FOGD(
        loss="squared", eta=len(X) ** -0.5, sigma=panel.sigma, n_frequencies=FREQUENCIES, seed=SEED
    )
    return out


def left_out(panel: Panel, d: int) -> list[str]:
    """Say which degrees are not run, and why."""
    sizes = {degree: comb(d + degree, degree) for degree in DEGREES}
    return [
        f"{panel.name}: PKAWV M={degree} is left out, it has {r} features (limit {LARGEST})"
        for degree, r in sizes.items()
        if r > LARGEST
    ]


def average(run: okl.Run, rounds: int) -> float:
    """Return the average loss, or the share of mistakes, of the first rounds."""
    return float((run.losses if run.mistakes is None else run.mistakes)[:rounds].mean())


def csv_rows(head: dict, run: okl.Run, finished: bool) -> list[dict]:
    """Return tidy rows at some readings of the clock."""
    series = np.cumsum(run.losses if run.mistakes is None else run.mistakes)
    return [
        head
        | {
            "round": (t := int(run.checkpoints[i])),
            "average_loss": f"{series[t - 1] / t:.6g}",
            "seconds": f"{run.checkpoint_seconds[i]:.4g}",
            "finished": finished,
        }
        for i in plots.thin_checkpoints(run, points=40)
    ]


def summary(panel: Panel, scaling: str, runs: dict[str, okl.Run], shares: dict, n: int) -> list:
    """Return the rows of the printed table."""
    common = min(run.rounds for run in runs.values())
    rows = []
    for label, run in runs.items():
        factor, unit = (1.0, "") if run.mistakes is None else (100.0, " %")
        share = shares.get(label)
        rows.append(
            {
                "data": panel.name,
                "x in": scaling,
                "algorithm": label,
                "size": str(run.sizes[-1]),
                "captured": "-" if share is None else f"{share:.3f}",
                "loss": f"{factor * average(run, run.rounds):.4g}{unit}",
                "rounds": str(run.rounds),
                "all": "yes" if run.rounds == n else "no",
                "time (s)": f"{run.seconds:.3g}",
                "loss at common round": f"{factor * average(run, common):.4g}{unit} at {common}",
            }
        )
    return rows


def statements(panel: Panel, scaling: str, runs: dict[str, okl.Run]) -> list[str]:
    """Return our order of the published algorithms, for what the paper says in words."""
    common = min(run.rounds for run in runs.values())
    published = {label: average(r, common) for label, r in runs.items() if "ours" not in label}
    order = sorted(published, key=published.__getitem__)
    text = " <= ".join(f"{label} {published[label]:.4g}" for label in order)
    out = [f"{panel.name} {scaling}, average loss of the first {common} rounds: {text}"]
    if panel.name == "susy":
        for label, run in runs.items():
            if run.rounds >= 10**6 and "M=2" in label:
                at = int(np.searchsorted(run.checkpoints, 10**6))
                out.append(
                    f"susy {scaling}, first million rounds, {label}: "
                    f"{100 * average(run, 10**6):.2f} % in {run.checkpoint_seconds[at]:.3g} s "
                    "(published: the error of FALKON, about 20 %, in 10 minutes)"
                )
    return out


def draw(axes: np.ndarray, panel: Panel, scaling: str, runs: dict[str, okl.Run], n: int) -> None:
    """Draw losses on the left and times on the right."""
    plots.loss_curves(runs, axes[0], first=FIRST, styles=STYLES, legend=False)
    plots.time_curves(runs, axes[1], styles=STYLES, legend=False)
    name = f"{panel.name}, inputs scaled to {scaling}"
    plots.title(axes[0], f"{name} (n = {n:,})")
    plots.title(axes[1], name)


def reproduce(doc: str, stem: str, panels: list[Panel]) -> None:
    """Run a figure script: all panels, both scalings, figure, numbers and table."""
    args = arguments(doc, LIMIT, QUICK_LIMIT)
    here = at_hand(panel.name for panel in panels)
    jobs = [(p, scaling) for p in panels if p.name in here for scaling in SCALINGS]
    figure, axes = plots.figure(rows=len(jobs), columns=2, width=7.2, row_height=2.35)
    numbers, table, said, notes = [], [], [], {}
    for row, (panel, scaling) in enumerate(jobs):
        X, y = stream(panel, SCALINGS[scaling])
        runs, shares = {}, {}
        for note in left_out(panel, X.shape[1]):
            notes.setdefault(note)
        with tqdm(learners(panel, X).items(), unit=" algorithm", disable=None) as bar:
            for label, learner in bar:
                bar.set_description(f"{panel.name} {scaling} {label}")
                n = min(len(X), KERNEL_ROWS) if label == "KernelRidge" else len(X)
                run, warned = timed_run(learner, X[:n], y[:n], args.limit)
                runs[label] = run
                if isinstance(learner, okl.PKAWV):
                    shares[label] = float(learner.features.captured(X[:HEAD]).mean())
                for text in warned:
                    notes.setdefault(f"{panel.name} {scaling} {label}: {text}")
                head = {"dataset": panel.name, "scaling": scaling, "algorithm": label}
                head |= {"size": run.sizes[-1], "captured": ""}
                if label in shares:
                    head["captured"] = f"{shares[label]:.4f}"
                numbers += csv_rows(head, run, run.rounds == len(X))
        draw(axes[row], panel, scaling, runs, len(X))
        table += summary(panel, scaling, runs, shares, len(X))
        said += statements(panel, scaling, runs)
    plots.shared_legend(figure, columns=3)
    partial = any(p.name not in here and not p.optional for p in panels)
    save(figure, numbers, args, stem, partial)
    print(f"time limit {args.limit:g} s for each algorithm, permutation seed {SEED}")
    for note in notes:
        print(f"note: {note}")
    print_table(table)
    print(
        "The paper gives graphs without numbers; in words: M = 2 is close to kernel ridge and "
        "much faster. Ours, without the centred basis:"
    )
    for line in said:
        print(line)
