"""Figures of runs: losses, times, sizes, and certificates of regret."""

from oklnumba.plots.curves import (
    certificate, importance, intervals, loss_curves, progress, regret_vs_size, size_curves,
)  # fmt: skip
from oklnumba.plots.drawing import (
    COLOURS, DASHES, FONT, POINTS, band, direct_labels, figure, label_ticks, line_style,
    shared_legend, thin, tidy, title,
)  # fmt: skip

__all__ = [
    "COLOURS", "DASHES", "FONT", "POINTS", "band", "certificate", "direct_labels", "figure",
    "importance", "intervals", "label_ticks", "line_style", "loss_curves", "progress",
    "regret_vs_size", "shared_legend", "size_curves", "thin", "tidy", "title",
]  # fmt: skip
