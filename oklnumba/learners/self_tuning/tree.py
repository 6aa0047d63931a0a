"""What a restart learns from the past for kernels in leaves: metrics of the inputs, and trees."""

from __future__ import annotations

import numpy as np

from oklnumba.components.kernels import Gaussian, Laplacian
from oklnumba.components.metric import measure_scales
from oklnumba.core.steps import Steps
from oklnumba.hot.primitives.rows import distance_block
from oklnumba.learners.self_tuning.grid import Metric

FEWEST = 128  # rounds of the past that a metric takes
# Rows of each pass of a metric, by its kernel, and atoms. More passes are sharper; one metric of
# each kind serves more tables than two alike. Fewer rows if these have more numbers than 2^18, not
# under 512.
PASSES = {"Gaussian": (2048, 4096), "Laplacian": (1024, 1024, 1024, 1024, 2048)}
FITTED, NUMBERS, LEAST_ROWS = 500, 2**18, 512
SPREAD = 500  # inputs whose distances give the median
LEAST = 1e-12  # median distance: below, all inputs but a few are equal on the common scale
FEW = 200  # rows whose distances give the width of these fits
SAME = 1.0 - 1e-9  # spreads that differ by less are equal, and the first column is split
SPLIT, PARTS = 2**16, 8  # least numbers that a step splits, and about the most steps of a level
NODE = 2**12  # a node takes as long as so many numbers, besides those in it
DEEPEST = 8192  # rounds; trees have no more leaves after more


def spread_rows(n: int, most: int) -> np.ndarray:
    """Return at most so many of the rows 0, ..., n - 1, evenly spread."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def median_distance(X: np.ndarray, scales: np.ndarray | float, norm: int = 2) -> float:
    """Return the median distance of pairs of SPREAD rows that differ, scaled, 0 if none do."""
    X = X[spread_rows(len(X), SPREAD)] * scales
    distances = np.empty((len(X), len(X)))
    distance_block(norm, X, np.ascontiguousarray(X.T), distances)
    distances = distances[np.triu_indices(len(X), 1)]
    distances = distances[distances > 0.0]
    if len(distances) == 0:
        return 0.0
    median = float(np.median(distances if norm == 1 else np.sqrt(distances)))
    return max(median, LEAST)


def measure_metric(kernel: str, Z: np.ndarray, Y: np.ndarray, rounds: int) -> Steps[np.ndarray]:
    """Return the scales of inputs of the past, (d,): 1 before there are FEWEST rounds.

    kernel : whose gradients are measured, "Gaussian" or "Laplacian".
    """
    norm = 2 if kernel == "Gaussian" else 1
    n, d = Z.shape
    few, w, rng = Z[spread_rows(n, FEW)], np.ones(d), np.random.default_rng(n)
    for most in PASSES[kernel] if rounds >= FEWEST else ():
        chosen = spread_rows(n, min(most, max(NUMBERS // d, LEAST_ROWS)))
        width = median_distance(few, w, norm)
        fitted = Gaussian(width) if norm == 2 else Laplacian(width, norm=1)
        w = yield from measure_scales(fitted, Z[chosen], Y[chosen], w, rng, atoms=FITTED)
    return w


def grow_tree(Z: np.ndarray, scales: np.ndarray, leaf: int, rounds: int) -> Steps[Metric]:
    """Return the tree of inputs of the past in a metric, one leaf for so many rounds."""
    leaves = 1 << max(min(rounds, DEEPEST) // leaf, 1).bit_length() - 1
    return Metric(scales, *(yield from split_at_medians(Z * scales, leaves)))


def split_at_medians(Z: np.ndarray, leaves: int) -> Steps[tuple[np.ndarray, np.ndarray]]:
    """Return columns and thresholds of a tree that splits the widest input at its median."""
    columns, thresholds = np.zeros(leaves - 1, dtype=np.int64), np.full(leaves - 1, np.inf)
    most = max(SPLIT, Z.size // PARTS)
    nodes, split = [Z], most
    for node in range(leaves - 1):
        part = nodes[node]
        if split >= most:
            yield
            split = 0
        split += part.size + NODE
        nodes += [part[:0], part[:0]]
        if len(part) == 0 or not np.ptp(part, axis=0).any():
            continue
        spreads = part.std(axis=0)
        widest = int(np.argmax(spreads > SAME * spreads.max()))
        column = part[:, widest]
        middle = np.median(column)
        if not (column > middle).any():  # so that both sides have rows
            middle = column[column < middle].max()
        columns[node], thresholds[node] = widest, middle
        nodes[-2:] = part[column <= middle], part[column > middle]
    return columns, thresholds
