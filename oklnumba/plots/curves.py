"""Curves of losses, times, sizes and regret, drawn on given Axes.

Nothing uses pyplot or changes global settings of matplotlib.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import ArrayLike

from oklnumba.core import checks, inputs
from oklnumba.experiments.table import Table
from oklnumba.plots import drawing
from oklnumba.plots.drawing import COLOURS, FONT, tidy, title
from oklnumba.protocol.recording import SETTLED
from oklnumba.protocol.runs import Run

YLABELS = {
    "regret": "regret ({} loss)",
    "mean_loss": "average {} loss",
    "total_loss": "sum of {} losses",
    "mistakes": "share of mistakes",
    "seconds": "time in the learner (s)",
    "memory": "memory of the learner (bytes)",
}


def loss_curves(
    runs: Mapping[str, Run], axes: Axes, mistakes: bool | None = None, first: int = 10,
    legend: bool = True,
) -> None:  # fmt: skip
    """Draw the average loss, or the share of mistakes, after each round; both axes logarithmic.

    ``runs`` : by label; ``mistakes`` : draw mistakes instead of losses; None: if the labels of all
    runs are -1 and +1; ``first`` : first round drawn, as averages of fewer rounds are noise.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> runs = {f"lam = {lam}": okl.run(okl.KernelAWV(okl.Gaussian(), lam=lam), X, X[:, 0])
    ...         for lam in (0.1, 1.0)}
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> okl.plots.loss_curves(runs, axes[0, 0])
    >>> axes[0, 0].get_ylabel(), len(axes[0, 0].lines)
    ('average squared loss', 2)
    """
    good = isinstance(runs, Mapping) and all(isinstance(run, Run) for run in runs.values())
    what = "a mapping of labels to runs, such as {'FOGD': okl.run(learner, X, y)}"
    checks.require(good, "runs", runs, what)
    if mistakes is None:
        mistakes = all(run.mistakes is not None for run in runs.values())
    for number, (label, run) in enumerate(runs.items()):
        if mistakes and run.mistakes is None:
            raise ValueError(f"the run {label!r} counts no mistakes: its labels are not -1 and +1")
        if run.rounds:
            at = _recorded(run, first)
            averages = run._mean_so_far("mistakes" if mistakes else "losses")
            averages = averages[np.searchsorted(run.recorded, at)]
            axes.plot(at, 100.0 * averages if mistakes else averages, **_look(label, number))
    kinds = " / ".join(sorted({run.loss for run in runs.values()}))
    _finish(axes, "mistakes so far (%)" if mistakes else f"average {kinds} loss", legend)


def certificate(
    run: Run, axes: Axes, label: str = "", first: int = 10, style: Mapping[str, Any] | None = None,
    legend: bool = True,
) -> None:  # fmt: skip
    """Draw the certified regret of an AWV run, solid, and its bound, dashed.

    The regret is in the space that ``run.certificate.space`` names, so runs in different spaces do
    not compare. Both axes are logarithmic; a triangle at the foot is a regret of 0 or below.
    Several outputs are summed. ``label`` names the run in the legend, ``style`` has keywords of
    ``Axes.plot``.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> run = okl.run(okl.KernelAWV(okl.Gaussian()), X, np.sign(X[:, 0]))
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> okl.plots.certificate(run, axes[0, 0])
    >>> [text.get_text() for text in axes[0, 0].get_legend().get_texts()]
    ['regret', 'bound']
    """
    _require_run(run)
    if run.certificate is None:
        why = f"its labels are late, {run.late}" if run.late else "only AWV and ridge runs have one"
        raise ValueError(f"a run of {run.learner} has no certificate: {why}")
    name = f"{label}: " if label else ""
    keywords: dict[str, Any] = {"color": COLOURS[0], "linewidth": 1.3} | dict(style or {})
    keywords.pop("linestyle", None)
    at = _recorded(run, first)
    regret, bound = _regrets(run, at)
    axes.plot(at, regret, linestyle="-", label=f"{name}regret", **keywords)
    keywords |= {"linestyle": "--", "markerfacecolor": "white"}
    axes.plot(at, bound, label=f"{name}bound", **keywords)
    _finish(axes, "regret (sum of squared losses)", legend)


def _require_run(run: Any) -> None:
    checks.require(isinstance(run, Run), "run", run, "what okl.run returns")


def progress(run: Run, first: int = 10) -> Figure:
    """Return a figure of one run: its error and, if certified, its regret with the bound.

    Like ``loss_curves`` and ``certificate``, on ``figure.axes[0]`` and ``[1]``, but with a linear
    axis if a regret is 0 or below. A horizontal line is ``run.settled_mean_loss`` of a regression.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> figure = okl.plots.progress(okl.run(okl.FOGD(), X, np.sign(X[:, 0])))
    >>> [axes.get_title() for axes in figure.axes]
    ['FOGD: 6.2 % mistakes']
    """
    _require_run(run)
    if not run.rounds or not run.labelled[-1]:
        raise ValueError("the run has no rounds with labels to draw")
    certified = run.certificate is not None
    fig, axes = drawing.figure(columns=1 + certified, width=6.8 if certified else 4.5)
    name = run.learner.split("(")[0]
    loss_curves({"from the first round": run}, axes[0, 0], first=first, legend=False)
    error = f"mean {run.loss} loss {run.mean_loss:.3g}"
    if run.mistakes is not None:
        error = f"{100.0 * run.mistake_rate:.3g} % mistakes"
    elif run.rounds > SETTLED:
        look = {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.0}
        settled = f"from round {SETTLED + 1} on: {run.settled_mean_loss:.3g}"
        axes[0, 0].axhline(run.settled_mean_loss, label=settled, **look)
        axes[0, 0].legend(fontsize=FONT - 1.0, frameon=False)
    title(axes[0, 0], f"{name}: {error}")
    if certified:
        certificate(run, axes[0, 1], first=first, style={"color": COLOURS[2]})
        several = run.certificate.regret.ndim > 1
        title(axes[0, 1], f"regret in the learner's space{', all outputs' if several else ''}")
        line = axes[0, 1].lines[0]
        line.set_ydata(_regrets(run, line.get_xdata())[0])  # also below 0
    for ax in axes[0]:
        ax.relim()
        if min(np.min(line.get_ydata()) for line in ax.lines) <= 0.0:
            ax.set_yscale("linear")
            for mark in ax.collections:  # of points that a logarithm hides
                mark.remove()
        drawing.label_ticks(ax.xaxis)
    return fig


def intervals(run: Run, y: ArrayLike, axes: Axes, last: int = 200) -> None:
    """Draw the last intervals of a run of ``Intervals``, its forecasts, and the labels y.

    The title has the share of the recorded labels that are inside. y : all labels played, (n,).

    Examples
    --------
    >>> X, y = np.linspace(-1, 1, 500)[:, None], np.random.default_rng(0).standard_normal(500)
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> okl.plots.intervals(okl.run(okl.Intervals(okl.LinearAWV()), X, y), y, axes[0, 0])
    >>> axes[0, 0].get_title()
    '90.0 % of the labels inside'
    """
    _require_run(run)
    if run.intervals is None or run.intervals.ndim == 3:
        what = "no intervals" if run.intervals is None else "intervals of several outputs"
        raise ValueError(f"a run of {run.learner} has {what}: play okl.Intervals(learner)")
    given = inputs.as_label_array(y)
    checks.require(given.shape == (run.rounds,), "y", given.shape, f"of shape ({run.rounds},)")
    checks.require_count("last", last, 1)
    kept, there = run.recorded - 1, inputs.find_labels(given)
    if not there[kept].any():
        raise ValueError("no round that the run recorded has a label in y")
    filled = np.where(there, given, given[there][0])  # so that messages name the row of y
    played = inputs.as_labels(filled, run.rounds)
    labels, (low, high) = np.where(there, played, np.nan)[kept], run.intervals.T
    at, outside = slice(-last, None), (labels < low) | (high < labels)
    rounds, missed = run.recorded[at], outside[at]
    axes.fill_between(rounds, low[at], high[at], color=COLOURS[6], alpha=0.35, label="interval")
    axes.plot(rounds, run.predictions[at], color=COLOURS[2], linewidth=1.0, label="forecast")
    axes.plot(rounds[~missed], labels[at][~missed], ".", color=COLOURS[0], label="label")
    axes.plot(rounds[missed], labels[at][missed], "x", color=COLOURS[1], label="label outside")
    share = 1.0 - outside[~np.isnan(labels)].mean()
    tidy(axes, "rounds", "label", f"{100.0 * share:.1f} % of the labels inside")


def importance(
    values: Any, names: Sequence[str] | None = None, axes: Axes | None = None, most: int = 20
) -> Figure:
    """Draw how much inputs matter, the largest on top, in % of the sum; return the figure.

    ``values`` : a ``SelfTuning``, an estimator, a pipeline of scikit-learn that ends in one, or
    numbers of shape (d,); ``names`` : of the columns; None: the names in ``values``, or x0, x1,
    ...; ``axes`` : None for a new figure; ``most`` : how many inputs to draw.

    Examples
    --------
    >>> figure = okl.plots.importance([0.2, 0.8], ["age", "income"])
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['income', 'age']
    """
    if hasattr(values, "named_steps"):  # a pipeline, whose last step takes other columns than it
        if names is None and hasattr(values[:-1], "get_feature_names_out"):
            names = values[:-1].get_feature_names_out()
        return importance(values[-1], names, axes, most)
    if names is None:
        schema = getattr(values, "schema", None)
        names = schema.columns if schema else getattr(values, "feature_names_in_", None)
    for name in ("importance", "feature_importances_"):
        values = getattr(values, name, values)
    values = inputs.as_numbers(values, "values")
    checks.require(values.ndim == 1 and len(values) > 0, "values", values, "of shape (d,)")
    names = [f"x{i}" for i in range(len(values))] if names is None else list(names)
    checks.require(len(names) == len(values), "names", names, f"{len(values)} names")
    largest = np.argsort(-values, kind="stable")[: checks.require_count("most", most, 1)]
    places = np.arange(len(largest))
    if axes is None:
        axes = drawing.figure(columns=1, row_height=max(2.5, 0.5 + 0.17 * len(places)))[1][0, 0]
    axes.barh(places, 100.0 * values[largest] / (values.sum() or 1.0), color=COLOURS[0])
    axes.set_yticks(places, [str(names[i]) for i in largest])
    axes.invert_yaxis()
    tidy(axes, "importance (%)", "")
    axes.grid(False, axis="y")
    drawn: Any = axes.figure
    return drawn


def _regrets(run: Run, at: np.ndarray) -> list[np.ndarray]:
    """Return regret and bound after some rounds, summed over outputs."""
    certificate = run.certificate  # where it has several members, the least of their bounds
    both = certificate.regret, certificate.guaranteed - certificate.comparator
    return [a[np.searchsorted(run.recorded, at)].reshape(len(at), -1).sum(axis=1) for a in both]


def _recorded(run: Run, first: int) -> np.ndarray:
    """Return the rounds of ``thin``, or the next ones that are recorded."""
    first = checks.require_count("first", first, 1)
    at = np.searchsorted(run.recorded, drawing.thin(run.rounds, first=first))
    return run.recorded[np.unique(at)]


def regret_vs_size(
    table: Table,
    families: Mapping[str, Sequence[str]] | None = None,
    values: str = "regret",
) -> Figure:
    """Return a figure of regret against dictionary size, one panel per family of learners.

    Lines are means over seeds, bands the range; hatched bands say how far the best function in
    hindsight is known. Dotted lines, or hollow dots, are bounds from certificates or ``bound=``.
    With squared loss a vertical line is the effective dimension, and a grey dashed line the bound
    of Kernel-AWV, if within the panel. A triangle is a regret of 0 or below.

    Parameters
    ----------
    table : Table
        From ``okl.regret_vs_size``.
    families : mapping of title to learners, optional
        The panels. None: one for each loss.
    values : str
        Column on the y axis: "regret", "mistakes", "seconds", "memory", ...

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> kernel = okl.Gaussian(0.5)
    >>> learners = [okl.NystromAWV(kernel), okl.FOGD(loss="squared"), okl.NOGD(kernel)]
    >>> y = np.sign(X[:, 0])
    >>> table = okl.regret_vs_size(learners, X, y, kernel, lam=1.0, seeds=2, sizes=[10, 40])
    >>> fig = okl.plots.regret_vs_size(table)
    >>> [axes.get_title() for axes in fig.axes]
    ['squared loss', 'hinge loss']
    """
    checks.require(isinstance(table, Table), "table", table, "what okl.regret_vs_size returns")
    names = list(dict.fromkeys(row["learner"] for row in table))
    if families is None:
        losses = dict.fromkeys(row["loss"] for row in table if not row["error"])
        families = {
            f"{v} loss": list(dict.fromkeys(table.select(loss=v)["learner"])) for v in losses
        }
    if not families:
        raise ValueError("the table has no run without an error to draw")
    looks = {name: drawing.line_style(i) for i, name in enumerate(names)}
    columns = min(len(families), 2)
    rows = -(-len(families) // columns)
    fig, axes = drawing.figure(rows, columns, width=3.6 * columns, row_height=2.8)
    for ax, (text, learners) in zip(axes.flat, families.items(), strict=False):
        size_curves(table, learners, ax, values, looks)
        title(ax, text)
    for ax in axes.flat[len(families) :]:
        ax.remove()
    return fig


def size_curves(
    table: Table, learners: Sequence[str], axes: Axes, values: str = "regret",
    styles: Mapping[str, Mapping[str, Any]] | None = None, names: bool = True,
) -> None:  # fmt: skip
    """Draw one panel of ``regret_vs_size``; with ``names``, name each learner at its line's end.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> kernel = okl.Gaussian(0.5)
    >>> table = okl.regret_vs_size(okl.NystromAWV(kernel), X, X[:, 0], kernel, 1.0, sizes=[10, 40])
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> okl.plots.size_curves(table, ["NystromAWV"], axes[0, 0], "mean_loss")
    >>> axes[0, 0].lines[0].get_xdata()
    array([10., 40.])
    """
    table._require_numbers(values)
    losses, ends = set(), {}
    for number, name in enumerate(learners):
        rows = [row for row in table.select(learner=name) if not row["error"]]
        if not rows:
            raise ValueError(f"the table has no run of {name!r} without an error")
        losses |= {row["loss"] for row in rows}
        look = _look(name, number, styles) | {"markersize": 3.0}
        x, mean, low, high = _by_maker(rows, values)
        axes.plot(x, mean, **{"marker": "o"} | look)
        if len(x) > 1:
            axes.fill_between(x, low, high, color=look["color"], alpha=0.18, lw=0)
            if values == "regret":  # how far the best function in hindsight is known
                place = f"{rows[0].get('data')}, {rows[0]['loss']}"
                best = table.about.get("best", {}).get(place, np.nan)
                lower, upper = table.about.get("interval", {}).get(place, (best, best))
                between = mean + best - upper, mean + best - lower
                axes.fill_between(x, *between, color=look["color"], alpha=0.3, lw=0, hatch="////")
        if (known := ~np.isnan(mean)).any():
            ends[name] = x[known][-1], mean[known][-1], look["color"]
        if values == "regret" and any(row.get("bound") is not None for row in rows):
            bounds = _by_maker(rows, "bound")[1]
            dots: Any = {"linestyle": (0, (1, 1.5)), "markersize": 3.0, "markerfacecolor": "white"}
            axes.plot(x, bounds, color=look["color"], linewidth=0.9, **dots)
    if values in ("regret", "mean_loss", "total_loss") and len(losses) > 1:
        raise ValueError(
            f"{', '.join(learners)} have different losses, {' and '.join(sorted(losses))}; draw "
            "learners of one loss in a panel"
        )
    _finish(axes, YLABELS.get(values, values).format(" / ".join(sorted(losses))), legend=False)
    axes.set_xlabel("largest number of atoms or features", fontsize=FONT)
    if values == "regret" and losses == {"squared"}:
        ends |= _theory_lines(table, axes)
    drawing.label_ticks(axes.xaxis)
    if names and ends:
        _write_names(axes, ends)


def _write_names(axes: Axes, ends: dict[str, tuple[float, float, str]]) -> None:
    """Name each line at its end, on the right of what is drawn."""
    left, right = axes.get_xlim()
    axes.set_xlim(left, right * (right / left) ** 0.75)
    ticks = axes.xaxis.get_majorticklocs()
    axes.xaxis.set_major_locator(FixedLocator(ticks[(ticks >= left) & (ticks <= right)].tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    drawing.direct_labels(axes, ends, FONT - 1.0)


def _by_maker(rows: list[dict[str, Any]], values: str) -> tuple[np.ndarray, ...]:
    """Return increasing sizes, and mean, minimum and maximum of a column over seeds."""
    groups: dict[Any, list[tuple[float, float]]] = {}
    for row in rows:
        value = np.nan if row[values] is None else row[values]
        groups.setdefault(row["setting"], []).append((row["size"], value))
    points = []
    for size, column in (np.array(group).T for group in groups.values()):
        points.append((size.mean(), column.mean(), column.min(), column.max()))
    return tuple(np.array(sorted(points)).T)


def _theory_lines(table: Table, axes: Axes) -> dict[str, tuple[float, float, str]]:
    """Draw the effective dimension and the bound of Kernel-AWV; return names and ends of lines."""
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    grey: dict[str, Any] = {"color": "0.45", "linewidth": 0.9, "linestyle": (0, (4, 2))}
    dimension, bound = (table.about.get(name) for name in ("effective_dimension", "awv_bound"))
    ends = {}
    if dimension is not None and left < dimension < right:
        axes.axvline(dimension, **grey | {"linestyle": "-."})
        ends["effective dimension"] = dimension, low, "0.35"
    if bound is not None and low < bound < high:
        axes.plot((left, right), (bound, bound), scalex=False, scaley=False, **grey)
        ends["bound of Kernel-AWV"] = right, bound, "0.35"
    return ends


def _look(
    label: str, number: int, styles: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    return {
        "label": label,
        "linewidth": 1.3,
        **(styles or {}).get(label, drawing.line_style(number)),
    }


def _finish(axes: Axes, ylabel: str, legend: bool) -> None:
    values = [np.asarray(line.get_ydata()) for line in axes.lines]
    positive = any(((y > 0.0) & (y < np.inf)).any() for y in values)
    axes.set_xscale("log")
    for line in axes.lines:
        if np.size(line.get_xdata()) == 1:  # not a line
            line.set_marker("o")
    tidy(axes, "rounds", ylabel, log="y" if positive or not axes.lines else "")
    if legend and axes.lines:
        axes.legend(fontsize=FONT - 0.5, handlelength=2.8, frameon=False)
