"""What an ensemble takes from the past: scales, metrics, normal scores, and trees of the inputs.

Each function that reads many rows pauses now and then: a restart is spread over single rounds.
"""

from __future__ import annotations

from math import erfc, sqrt
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from oklnumba.components.kernels import Gaussian, Laplacian
from oklnumba.components.metric import measure_scales
from oklnumba.components.scaling import measure_range, moments, replace_outliers
from oklnumba.core.state import State
from oklnumba.core.steps import Paced
from oklnumba.hot.primitives.rows import distance_block
from oklnumba.hot.tuned.coordinates import Tree
from oklnumba.hot.tuned.scaling import write_scores, write_standardised
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.settings import SCORES, Space

SHARES = [0.5 * erfc(-score / sqrt(2.0)) for score in SCORES]  # of a normal variable below them


class Scales(NamedTuple):
    """Scales of inputs and labels. The defaults are those of inputs that are all equal."""

    mean: np.ndarray  # (d,), of the inputs
    scale: np.ndarray  # (d,); infinite before any data
    offsets: np.ndarray  # (K,), the middle of the labels but outliers; 0 for -1 and +1
    signs: np.ndarray  # (K,), 1 where all labels were -1 or +1, else 0
    median: float = 0.0  # distance of two inputs; 0: there are linear members only
    metrics: np.ndarray = np.empty((0, 0))  # (M, d), in the order of PASSES
    # Of the trees, one after the other: median distance of the scaled inputs, leaves, splits.
    widths: np.ndarray = np.empty(0)
    leaves: np.ndarray = np.empty(0, dtype=np.int64)
    columns: np.ndarray = np.empty(0, dtype=np.int64)
    thresholds: np.ndarray = np.empty(0)
    # Normal scores are linear between knots.
    knots: np.ndarray = np.empty((0, 0))  # (d, 33), infinite behind the last one
    scores: np.ndarray = np.empty((0, 0))  # (d, 33)

    @classmethod
    def measure(cls, X: np.ndarray, Y: np.ndarray, rounds: int) -> Paced[Scales]:
        """Return the scales of past rounds; trees grow as deep as ``rounds`` allow."""
        if len(X) == 0:
            d, zeros = X.shape[1], np.zeros(Y.shape[1])
            return cls(np.zeros(d), np.full(d, np.inf), zeros, zeros)
        mean, scale = yield from measure_moments(X)
        scales = cls(mean, scale, *measure_labels(Y))
        yield
        Z = scales.transform(X)
        yield
        median = median_distance(Z, 1.0)
        if median == 0.0:
            return scales
        yield
        knots, scores, normal = yield from measure_scores(Z)
        metrics, trees, widths = {}, [], []
        for kernel in settings.PASSES:
            metrics[kernel] = yield from measure_metric(kernel, Z, Y, rounds)
        for space in find_trees():
            view = normal if space.normal_scores else Z
            trees.append((yield from grow_tree(view, metrics[space.metric], space, rounds)))
            yield
            widths.append(median_distance(view, metrics[space.metric], norm=1))
        columns, thresholds = zip(*(tree[1:] for tree in trees), strict=True)
        return scales._replace(
            median=median, metrics=np.stack(list(metrics.values())), widths=np.array(widths),
            leaves=np.array([len(one) + 1 for one in columns]), columns=np.concatenate(columns),
            thresholds=np.concatenate(thresholds), knots=knots, scores=scores,
        )  # fmt: skip

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the standardised inputs; columns that came later wait for the next restart."""
        Z = np.empty((len(X), len(self.mean)))
        write_standardised(X, self.mean, self.scale, settings.LOG_FROM, settings.MAX_INPUT, Z)
        return Z

    def tree(self, space: Space) -> Tree:
        """Return the tree of a space; without a metric, one leaf of the inputs as they are."""
        if space.metric is None:
            return Tree(np.ones(len(self.mean)), np.empty(0, dtype=np.int64), np.empty(0))
        i, metric = find_trees().index(space), list(settings.PASSES).index(space.metric)
        stop = int((self.leaves[: i + 1] - 1).sum())
        nodes = slice(stop - int(self.leaves[i]) + 1, stop)
        return Tree(self.metrics[metric], self.columns[nodes], self.thresholds[nodes])

    def width(self, space: Space) -> float:
        """Return sigma of the kernel of a space."""
        median = self.median if space.metric is None else self.widths[find_trees().index(space)]
        return space.width * float(median)


def find_trees() -> list[Space]:
    """Return the spaces with a tree."""
    return [space for space in settings.SPACES if space.metric is not None]


# ---- inputs and labels ----


def measure_moments(X: np.ndarray) -> Paced[tuple[np.ndarray, np.ndarray]]:
    """Return mean and scale of each column, (d,), outliers left out."""
    mean, scale = np.empty((2, X.shape[1]))
    for some in cut_columns(X):
        clipped = X[:, some].clip(-settings.MAX_INPUT, settings.MAX_INPUT)
        usual = replace_outliers(clipped, *measure_range(clipped.T, settings.INPUT_OUTLIER))
        mean[some], scale[some] = moments(usual)
        yield
    return mean, scale


def measure_labels(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of the usual labels, and whether all are -1 or +1, (K,) each."""
    signs = np.isin(Y, (-1.0, 1.0)).all(axis=0)
    usual = replace_outliers(Y, *measure_range(Y.T, settings.LABEL_OUTLIER))
    # Halved first: the sum of two labels may be too large.
    middles = np.where(signs, 0.0, 0.5 * usual.min(axis=0) + 0.5 * usual.max(axis=0))
    return middles, signs.astype(float)


def spread_rows(n: int, size: int) -> np.ndarray:
    """Return at most ``size`` of the rows 0, ..., n - 1, evenly spread."""
    return np.linspace(0, n - 1, min(n, size)).astype(int)


def median_distance(X: np.ndarray, scales: np.ndarray | float, norm: int = 2) -> float:
    """Return the median distance of pairs of scaled rows that differ, 0 if none do."""
    X = X[spread_rows(len(X), settings.MEDIAN_ROWS)] * scales
    distances = np.empty((len(X), len(X)))
    distance_block(norm, X, np.ascontiguousarray(X.T), distances)
    distances = distances[np.triu_indices(len(X), 1)]
    distances = distances[distances > 0.0]
    if len(distances) == 0:
        return 0.0
    median = float(np.median(distances if norm == 1 else np.sqrt(distances)))
    return max(median, settings.LEAST_MEDIAN)


def cut_columns(Z: np.ndarray) -> list[slice]:
    """Return the columns of Z, as many at a time as one step sorts."""
    n, d = Z.shape
    some = max(settings.SORT_NUMBERS // n + 1, d // settings.SORT_STEPS)
    return [slice(first, first + some) for first in range(0, d, some)]


# ---- normal scores: each input by its rank, for skewed columns and heavy tails ----


def measure_scores(Z: np.ndarray) -> Paced[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return knots and the scores there, (d, 33) each, and the normal scores of Z.

    The knots of a column are the quantiles at which a normal variable is SCORES. Equal knots count
    once, with the mean of their scores. Scores are scaled to the deviation of the column.
    """
    knots = np.full((Z.shape[1], len(SCORES)), np.inf)
    scores, normal = np.zeros_like(knots), np.empty_like(Z)
    for some in cut_columns(Z):
        part = np.ascontiguousarray(Z[:, some])
        quantiles = np.quantile(part, SHARES, axis=0, method="inverted_cdf").T
        for column, values in enumerate(quantiles, some.start):
            distinct, which = np.unique(values, return_inverse=True)
            knots[column, : len(distinct)] = distinct
            scores[column, : len(distinct)] = np.bincount(which, SCORES) / np.bincount(which)
        before, after = part.std(axis=0), find_scores(part, knots[some], scores[some]).std(axis=0)
        units = np.divide(before, after, out=np.ones_like(after), where=after > 0.0)
        scores[some] *= units[:, None]
        normal[:, some] = find_scores(part, knots[some], scores[some])
        yield
    return knots, scores, normal


def find_scores(Z: np.ndarray, knots: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the normal scores of Z: linear between knots, of slope 1 beyond."""
    out = np.empty_like(Z)
    write_scores(Z, knots, scores, out)
    return out


# ---- metrics and trees ----


def measure_metric(kernel: str, Z: np.ndarray, Y: np.ndarray, rounds: int) -> Paced[np.ndarray]:
    """Return the scales of the inputs by the gradients of a kernel, (d,); ones in early rounds."""
    norm = 2 if kernel == "Gaussian" else 1
    n, d = Z.shape
    few = Z[spread_rows(n, settings.WIDTH_ROWS)]
    w, rng = np.ones(d), np.random.default_rng(n)
    for rows in settings.PASSES[kernel] if rounds >= settings.METRIC_ROUNDS else ():
        rows = min(rows, max(settings.PASS_NUMBERS // d, settings.LEAST_PASS_ROWS))
        chosen = spread_rows(n, rows)
        width = median_distance(few, w, norm)
        fitted = Gaussian(width) if norm == 2 else Laplacian(width, norm=1)
        atoms = settings.METRIC_ATOMS
        w = yield from measure_scales(fitted, Z[chosen], Y[chosen], w, rng, atoms=atoms)
    return w


def grow_tree(Z: np.ndarray, scales: np.ndarray, space: Space, rounds: int) -> Paced[Tree]:
    """Return the tree of a space, which splits the widest input at its median.

    The number of leaves is a power of 2.
    """
    leaves = 1 << max(min(rounds, settings.DEEPEST) // space.leaf_rounds, 1).bit_length() - 1
    columns, thresholds = np.zeros(leaves - 1, dtype=np.int64), np.full(leaves - 1, np.inf)
    Z = Z * scales
    step = max(settings.SPLIT_NUMBERS, Z.size // settings.SPLIT_STEPS)
    nodes, numbers = [Z], step
    for node in range(leaves - 1):
        rows = nodes[node]
        if numbers >= step:
            yield
            numbers = 0
        numbers += rows.size + settings.NODE_NUMBERS
        nodes += [rows[:0], rows[:0]]
        if len(rows) == 0 or not np.ptp(rows, axis=0).any():
            continue
        spreads = rows.std(axis=0)
        widest = int(np.argmax(spreads > settings.SAME_SPREAD * spreads.max()))
        column = rows[:, widest]
        middle = np.median(column)
        if not (column > middle).any():  # so that both sides have rows
            middle = column[column < middle].max()
        columns[node], thresholds[node] = widest, middle
        nodes[-2:] = rows[column <= middle], rows[column > middle]
    return Tree(scales, columns, thresholds)


# ---- labels that are far from all others ----


class Outliers(State):
    """The range of usual labels, measured every few rounds.

    Outliers are far from the last LONG_WINDOW labels and from the last SHORT_WINDOW ones. So labels
    that move elsewhere, or to another scale, are outliers for at most SHORT_WINDOW rounds.

    recent : the last labels, NaN before there were any; range : low, median and high; price : what
    outliers cost so far.
    """

    _STATE = {
        "recent": ("window", "outputs"), "range": ("range", "outputs"), "price": ("outputs",)
    }  # fmt: skip
    _UNBOUNDED = frozenset({"recent", "price"})

    def __init__(self, outputs: int, are_replaced: bool):
        self._are_replaced = are_replaced
        self._make_state(outputs=outputs, window=settings.LONG_WINDOW, range=3)
        self._recent[:] = np.nan
        self._range[:] = [[-settings.MAX_LABEL], [0.0], [settings.MAX_LABEL]]

    def replace(self, Y: np.ndarray, played: int) -> np.ndarray:
        """Return the labels to learn from, of the rounds after so many that were played."""
        n = len(Y)
        labels = np.concatenate([self._recent, Y])
        first = max(settings.SHORT_WINDOW - played, -played % settings.MEASURE_LABELS_EVERY)
        starts = np.arange(first, n, settings.MEASURE_LABELS_EVERY)
        self._recent[:] = labels[n:]
        if not len(starts) or not self._are_replaced:
            return self.replace_now(Y)
        windows = sliding_window_view(labels, settings.LONG_WINDOW, axis=0)[starts]
        middle, reach = measure_range(windows, settings.LABEL_OUTLIER)
        last_middle, last_reach = measure_range(
            windows[..., -settings.SHORT_WINDOW :], settings.LABEL_OUTLIER
        )
        low = np.minimum(middle - reach, last_middle - last_reach).clip(min=-settings.MAX_LABEL)
        high = np.maximum(middle + reach, last_middle + last_reach).clip(max=settings.MAX_LABEL)
        ranges = np.concatenate([self._range[None], np.stack([low, last_middle, high], axis=1)])
        self._range[:] = ranges[-1]
        which = np.searchsorted(starts, np.arange(n), side="right")
        return keep_within(Y, *ranges[which].swapaxes(0, 1))

    def replace_now(self, Y: np.ndarray) -> np.ndarray:
        """Return labels with those replaced that are outliers by the present range."""
        return keep_within(Y, *self._range)

    def add_price(self, Y: np.ndarray, learned: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
        """Return what outliers cost so far, (n, K): losses less those of the labels learned."""
        with np.errstate(over="ignore"):  # squares of labels beyond 1e154
            more = (Y - forecasts) ** 2 - (learned - forecasts) ** 2
        more[0] += self._price
        prices = np.add.accumulate(more)
        self._price[:] = prices[-1]
        return prices

    @property
    def recent(self) -> np.ndarray:
        """The last labels, NaN before there were any, (LONG_WINDOW, K)."""
        return self._recent

    @property
    def price(self) -> np.ndarray:
        """What outliers cost so far, (K,)."""
        return self._price.copy()


def keep_within(Y: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the labels, the middle in place of those that are not between low and high."""
    return np.where((Y < low) | (Y > high), middle, Y)
