"""Parts of all figures: axes, colours and dashes, titles, ticks, legends, labels."""

import io
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from oklnumba.core import checks

# Okabe and Ito's colours for all kinds of colour vision, without yellow, too faint on white.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))
FONT = 8.5  # points
POINTS = 300  # of a curve


def line_style(number: int) -> dict[str, Any]:
    """Return colour and dashes of line ``number`` of an axes; both change from line to line.

    Examples
    --------
    >>> okl.plots.line_style(1)
    {'color': '#D55E00', 'linestyle': '--'}
    """
    dashes = (number + number // len(COLOURS)) % len(DASHES)
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[dashes]}


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def figure(
    rows: int = 1, columns: int = 2, width: float = 6.8, row_height: float = 2.5
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its (rows, columns) array of Axes, without pyplot; sizes in inches.

    Examples
    --------
    >>> fig, axes = okl.plots.figure(rows=2)
    >>> axes.shape, fig.get_size_inches().tolist()
    ((2, 2), [6.8, 5.0])
    """
    fig = Picture(figsize=(width, row_height * rows), layout="constrained")
    return fig, fig.subplots(rows, columns, squeeze=False)


def thin(n: int, points: int = POINTS, first: int = 1) -> np.ndarray:
    """Return up to ``points`` geometrically spaced rounds from ``first`` to n, both included.

    Examples
    --------
    >>> okl.plots.thin(1000, points=4)
    array([   1,   10,  100, 1000])
    """
    return np.unique(np.geomspace(min(first, n), n, points).round().astype(np.int64))


def shared_legend(fig: Figure, columns: int = 4) -> None:
    """Draw one legend above a figure, with each label of its axes once.

    Examples
    --------
    >>> fig, axes = okl.plots.figure()
    >>> for ax in axes[0]:
    ...     _ = ax.plot([1, 2], [1, 2], label="identity")
    >>> okl.plots.shared_legend(fig)
    >>> len(fig.legends[0].get_texts())
    1
    """
    lines: dict[str, Any] = {}
    for axes in fig.axes:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    look = {"fontsize": FONT, "handlelength": 2.8, "frameon": False}
    fig.legend(lines.values(), lines, loc="outside upper center", ncols=columns, **look)


def title(axes: Axes, text: str) -> None:
    """Write the title of an axes.

    Examples
    --------
    >>> fig, axes = okl.plots.figure()
    >>> okl.plots.title(axes[0, 0], "casp")
    """
    axes.set_title(text, fontsize=FONT + 0.5)


def band(
    axes: Axes, x: ArrayLike, values: ArrayLike, label: str = "",
    style: Mapping[str, Any] | None = None, middle: Callable[..., Any] = np.median,
) -> None:  # fmt: skip
    """Draw the middle of repeated curves, values (repetitions, n), and their range as a band.

    ``style`` has keywords of ``Axes.plot``; ``middle`` is ``np.median``, ``np.mean``, ...

    Examples
    --------
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> okl.plots.band(axes[0, 0], [1, 2], [[1.0, 2.0], [3.0, 5.0], [9.0, 3.0]], "loss")
    >>> axes[0, 0].lines[0].get_ydata()
    array([3., 3.])
    """
    x, values = np.asarray(x), np.asarray(values)
    fits = values.ndim == 2 and values.shape[1:] == x.shape and len(values) > 0
    checks.require(fits, "values", values.shape, "of shape (repetitions, n), x of shape (n,)")
    look: dict[str, Any] = {"label": label, "linewidth": 1.3} | dict(style or line_style(0))
    (line,) = axes.plot(x, middle(values, axis=0), **look)
    if len(values) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, lw=0)


def tidy(
    axes: Axes, xlabel: str = "", ylabel: str = "", text: str = "", *, log: str = "",
    font: float = FONT, small: float = 0.5,
) -> None:  # fmt: skip
    """Set scales, names, ticks, grid and title of an axes; call it after everything is drawn.

    Parameters
    ----------
    axes : matplotlib Axes
    xlabel, ylabel, text : str
        Names of the axes and title; "" changes nothing.
    log : {"", "x", "y", "xy"}
        Logarithmic axes, with the ticks of ``label_ticks``; triangles at the foot are values of 0
        or below.
    font, small : float
        Size of the names in points, and how much smaller the ticks' numbers are.

    Examples
    --------
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> _ = axes[0, 0].plot([1, 1000], [0.2, 0.5])
    >>> okl.plots.tidy(axes[0, 0], "rounds", "loss", "casp", log="xy")
    >>> axes[0, 0].get_xscale(), axes[0, 0].get_ylabel()
    ('log', 'loss')
    """
    checks.require(log in ("", "x", "y", "xy"), "log", log, '"", "x", "y" or "xy"')
    for name, label in (("x", xlabel), ("y", ylabel)):
        if name in log:
            axes.set(**{f"{name}scale": "log"})
            if name == "y":
                _mark_hidden(axes)
            axis = axes.xaxis if name == "x" else axes.yaxis
            label_ticks(axis)
        if label:
            axes.set(**{f"{name}label": label})
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_fontsize(font)
    axes.tick_params(which="both", labelsize=font - small)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    if text:
        title(axes, text)


def _mark_hidden(axes: Axes) -> None:
    """Put a triangle at the foot of a logarithmic axes where a line is 0 or below."""
    for line in axes.lines:
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata(), dtype=float)
        if line.get_transform().contains_branch_seperately(axes.transData)[1] and (y <= 0.0).any():
            line.set_ydata(np.where(y > 0.0, y, np.nan))
            foot: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False}
            foot |= {"s": 14, "marker": "v", "color": line.get_color()}
            axes.scatter(x[y <= 0.0], 0.0 * x[y <= 0.0], **foot)


class Decades(LogLocator):
    """Ticks at 1, 2 and 5 of each decade, or at 1 and 3, or at 1: as many as fit."""

    axis: Axis

    def __call__(self) -> Any:
        """Return the ticks of the current view."""
        low, high = self.axis.get_view_interval()
        if high < 4.0 * low:
            locator = MaxNLocator(min(7, self.axis.get_tick_space()), steps=[1, 2, 2.5, 5, 10])
            return _within(locator.tick_values(low, high), low, high)
        if high > 1e4 * low:  # zoomed out
            self.set_params(subs=(1.0,), numticks="auto")  # type: ignore[arg-type]
            return super().__call__()
        ticks = np.empty(0)
        more = (1.0, 2.0, 3.0, 5.0), (1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)
        for subs in more[int(high >= 10.0 * low) + int(high >= 100.0 * low) :]:
            self.set_params(subs=subs, numticks=99)
            inside = _within(self.tick_values(low, high), low, high)
            if len(inside) > 1:
                ticks = inside
            wide = high >= 9e3 and isinstance(self.axis, XAxis)  # of five digits or more
            if len(ticks) <= self.axis.get_tick_space() * (0.6 if wide else 1.0):
                break
        return ticks


class PlainFormatter(LogFormatterSciNotation):
    """Plain numbers, or with powers of ten on an axis beyond 0.0001 to 100,000."""

    axis: Axis

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the text of a tick."""
        low, high = self.axis.get_view_interval()
        return f"{x:g}" if 2e-5 < low and high < 1e6 else super().__call__(x, pos)


def _within(ticks: ArrayLike, low: float, high: float) -> np.ndarray:
    ticks = np.asarray(ticks)
    return ticks[(ticks >= low) & (ticks <= high)]


def label_ticks(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers: 0.2, not 2 x 10^-1.

    An axis beyond 0.0001 to 100,000 has powers of ten. Minor ticks are removed.

    Examples
    --------
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> axes[0, 0].set_yscale("log")
    >>> axes[0, 0].set_ylim(0.2, 0.5)
    (0.2, 0.5)
    >>> okl.plots.label_ticks(axes[0, 0].yaxis)
    >>> [tick.get_text() for tick in axes[0, 0].get_yticklabels()]
    ['0.2', '0.25', '0.3', '0.35', '0.4', '0.45', '0.5']
    """
    axis.set_major_locator(Decades())
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(PlainFormatter(minor_thresholds=(np.inf, np.inf)))


def direct_labels(
    axes: Axes, ends: Mapping[str, tuple[float, float, Any]], fontsize: float
) -> None:
    """Write names next to the ends of lines, spread so that none covers another.

    ``ends`` has x, y and colour by name; what ends at 0 or below on a logarithmic axis is named at
    the foot. The limits and scales of the axes must be set.

    Examples
    --------
    >>> fig, axes = okl.plots.figure(columns=1)
    >>> okl.plots.direct_labels(axes[0, 0], {"a": (0.5, 0.3, "k"), "b": (0.5, 0.3, "r")}, 8.0)
    >>> len(axes[0, 0].texts)
    2
    """
    whole: Any = axes.figure
    whole.draw_without_rendering()  # computes the layout
    place = axes.transData + axes.transAxes.inverted()
    height = axes.get_window_extent().height * 72.0 / whole.dpi
    step = 1.2 * fontsize / height
    bottom, log = axes.get_ylim()[0], axes.get_yscale() == "log"
    hidden = {name for name, end in ends.items() if log and end[1] <= 0.0}
    spots = sorted(
        (*place.transform((x, bottom if name in hidden else y))[::-1], name)
        for name, (x, y, _) in ends.items()
    )
    at = np.array([spot[0] for spot in spots])
    for _ in range(200):  # push neighbours apart and all into the panel
        gaps = np.diff(at)
        push = np.maximum(step - gaps, 0.0) / 2.0
        at[:-1] -= push
        at[1:] += push
        at = np.clip(at, 0.6 * step, 1.0 - 0.4 * step)
    right = max(spot[1] for spot in spots) + 0.05
    for (y, x, name), where in zip(spots, at, strict=True):
        colour = ends[name][2]
        line = {"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 0, "shrinkB": 2,
                "relpos": (0.0, 0.5)}  # fmt: skip
        axes.annotate(
            f"{name} (≤ 0)" if name in hidden else name, (x, y), (right, where),
            xycoords="axes fraction", color=colour, va="center", fontsize=fontsize,
            annotation_clip=False, arrowprops=None if name in hidden else line,
        )  # fmt: skip
