"""How the figures look: one colour, dash and marker for an algorithm in all of them."""

from matplotlib.ticker import NullLocator

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
