"""How the figures look: one colour, dash and marker for an algorithm in all of them."""

import numpy as np
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Bbox

import oklnumba as okl

BOUND, RATE = (0, (4, 2)), (0, (1, 1.5))  # dashes of bounds, and of rates and other closed forms
THEORY = {"color": "0.4", "linewidth": 1.0}  # of a line that belongs to no algorithm
BLACK, VERMILLION, BLUE, GREEN, PINK, ORANGE, SKY = okl.plots.COLOURS
WINE = "#882255"  # of Paul Tol's muted scheme, which the colour-blind tell apart, too
LOOKS = {  # of an algorithm in all figures; the first name that a label contains counts
    "FrequentKONS": (SKY, "-", "o"),
    "Pros-N-KONS": (VERMILLION, "-", "D"), "CON-KONS": (VERMILLION, "--", "d"),
    "Sketched-KONS": (ORANGE, "-", "s"), "KONS": (BLACK, "-.", "h"),
    "SelfTuning": (BLACK, "-", "*"), "Kernel-AWV": (BLACK, "-", "o"),
    "KernelAWV": (BLACK, "-", "o"), "KernelRidge": (BLACK, "--", "s"),
    "Nystrom": (GREEN, "-.", "^"), "M = 1": ("#9DC3E6", "-", "<"), "M = 2": ("#5AA3D8", "-", "v"),
    "M = 4": ("#003A5D", "-", "s"), "PKAWV": (BLUE, "-", "o"),
    "OGD, linear": (PINK, "-", ">"), "Linear": (PINK, "-", "x"), "AdaGrad": (PINK, ":", "X"),
    "FOGD": (ORANGE, ":", "P"), "NOGD": (GREEN, "-.", "v"), "SkeGD": (PINK, ":", "X"),
    "BOGD": (ORANGE, "--", "s"), "B(AO)2KS": (VERMILLION, (0, (7, 2)), "D"),
    "POMD": (WINE, "-", "o"), "OGD": (BLACK, "-", "^"), "SGD": (BLACK, "--", "^"),
}  # fmt: skip


def look(label: str) -> dict:
    """Return the colour, dashes and marker of an algorithm, as keywords of ``Axes.plot``."""
    label = label.replace("M=", "M = ")
    found = next((looks for name, looks in LOOKS.items() if name in label), (BLACK, "-", "o"))
    return dict(zip(("color", "linestyle", "marker"), found, strict=True))


def panels(count: int, most: int, **how):
    """Return a figure with ``count`` panels, at most ``most`` in a row, and its axes."""
    columns = min(count, most)
    figure, axes = okl.plots.figure(-(-count // columns), columns, **how)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    return figure, axes


def explain(axes, label: str, **style) -> None:
    """Name a style in the legend, in grey: what dashes or a marker mean in every colour."""
    axes.plot([], [], label=label, **{"color": "0.4"} | style)


def use_symlog(axes, linear: float) -> None:
    """Make y logarithmic on both sides of 0, linear up to ``linear``, with plain numbers."""
    axes.set_yscale("symlog", linthresh=linear)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def name_points(axes, points, fontsize: float) -> None:
    """Write names next to points, (name, x, y, colour), where no name and no point is.

    First those that find room at their point, then the others, with a line to it. Points of no name
    are kept clear. Limits and scales must be set, and the legend drawn.
    """
    axes.figure.draw_without_rendering()
    unit, inside = axes.figure.dpi / 72.0, axes.get_window_extent()
    dots = np.array([axes.transData.transform((x, y)) for _, x, y, _ in points])
    taken = [Bbox.from_bounds(*(dot - 4.0 * unit), 8.0 * unit, 8.0 * unit) for dot in dots]
    waiting = [i for i, point in enumerate(points) if point[0]]
    angles = np.pi * np.array([0, 2, 1, 0.25, -0.25, 0.75, -0.75, 0.5, -0.5])
    for most in (8.0, 80.0):  # points of distance
        for i in list(waiting):
            name, x, y, colour = points[i]
            text = axes.annotate(name, (x, y), fontsize=fontsize)
            width, height = text.get_window_extent().size
            text.remove()
            for far in np.arange(5.0, most, 4.0) * unit:
                reach = far + width / 2.0, far + height / 3.0
                middles = dots[i] + np.column_stack([np.cos(angles), np.sin(angles)]) * reach
                boxes = [Bbox.from_bounds(u - width / 2.0, v - height / 2.0, width, height)
                         for u, v in middles]  # fmt: skip
                free = [box for box in boxes if not box.count_overlaps(taken)
                        and inside.contains(*box.p0) and inside.contains(*box.p1)]  # fmt: skip
                if free:
                    break
            if not free:
                continue
            taken.append(free[0])
            waiting.remove(i)
            left = free[0].x1 < dots[i][0]  # anchored at its near end: its width varies with dpi
            corner = (free[0].x1 if left else free[0].x0, free[0].y0)
            line = {"arrowstyle": "-", "color": colour, "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
            axes.annotate(name, (x, y), (corner - dots[i]) / unit, color=colour,
                          ha="right" if left else "left", textcoords="offset points",
                          fontsize=fontsize,
                          arrowprops=line if most > 8.0 else None)  # fmt: skip
