"""Names beside the ends of lines, in place of a legend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes


def direct_labels(
    axes: Axes, ends: Mapping[str, tuple[float, float, Any]], fontsize: float
) -> None:
    """Write names beside the ends of lines, spread so that none covers another.

    Parameters
    ----------
    axes : matplotlib Axes
        With its limits and scales set.
    ends : mapping of name to (x, y, colour)
        y is NaN where a line ends below 0, on a logarithmic axis out of sight.
    fontsize : float
        Points.

    Examples
    --------
    >>> from oklnumba import plots
    >>> from oklnumba.plots.labels import direct_labels
    >>> fig, axes = plots.figure(columns=1)
    >>> axes[0, 0].set_ylim(0.0, 1.0)
    (0.0, 1.0)
    >>> direct_labels(axes[0, 0], {"a": (0.5, 0.3, "k"), "b": (0.5, 0.3, "r")}, 8.0)
    >>> len(axes[0, 0].texts)
    2
    """
    axes.figure.draw_without_rendering()  # the layout is known from here on
    place = axes.transData + axes.transAxes.inverted()
    height = axes.get_window_extent().height * 72.0 / axes.figure.dpi
    step = 1.2 * fontsize / height
    bottom = axes.get_ylim()[0]
    spots = sorted(
        (*place.transform((x, y if y == y else bottom))[::-1], name)
        for name, (x, y, _) in ends.items()
    )
    at = np.array([spot[0] for spot in spots])
    for _ in range(200):  # push neighbours apart, and all of them into the panel
        gaps = np.diff(at)
        push = np.maximum(step - gaps, 0.0) / 2.0
        at[:-1] -= push
        at[1:] += push
        at = np.clip(at, 0.6 * step, 1.0 - 0.4 * step)
    right = max(spot[1] for spot in spots) + 0.05
    for (y, x, name), where in zip(spots, at, strict=True):
        seen, colour = ends[name][1] == ends[name][1], ends[name][2]
        line = {"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 0, "shrinkB": 2,
                "relpos": (0.0, 0.5)}  # fmt: skip
        axes.annotate(
            name if seen else f"{name} (< 0)", (x, y), (right, where),
            xycoords="axes fraction", color=colour, va="center", fontsize=fontsize,
            annotation_clip=False, arrowprops=line if seen else None,
        )  # fmt: skip
