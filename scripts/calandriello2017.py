"""What the scripts of Calandriello, Lazaric, Valko (ICML 2017) share: streams and bands."""

import numpy as np
from common import at_hand
from matplotlib.axes import Axes

import oklnumba as okl

BUNDLED = {"casp": 1.0, "magic04": 2.0}  # and the width of the Gaussian kernel on each


def here(more: dict[str, float]) -> tuple[dict[str, float], bool]:
    """Return the bundled sets and those of ``more`` that are here, and whether some are missing."""
    sets = BUNDLED | more
    names = at_hand(sets)
    return {name: sets[name] for name in names}, len(names) < len(sets)


def stream(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first n rows of a permutation: inputs and labels, both scaled to [-1, 1]."""
    data = okl.datasets.load(name, permute=0)
    return np.ascontiguousarray(data.X[:n]), okl.datasets.scale_to(data.y)[:n]


def band(ax: Axes, x: np.ndarray, y: np.ndarray, label: str, style: dict) -> None:
    """Draw the median over seeds (rows of y) as a line, and their range as a band."""
    ax.plot(x, np.median(y, axis=0), **{"label": label, "linewidth": 1.3} | style)
    if len(y) > 1:
        ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=style["color"], alpha=0.2, lw=0)
