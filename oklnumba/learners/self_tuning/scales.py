"""What an ensemble takes from the past: scales, metrics, normal scores, and trees of the inputs.

Each function that reads many rows pauses now and then: a restart is spread over single rounds.
"""

from collections.abc import Sequence
from functools import partial
from math import erfc, sqrt
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from oklnumba.components.kernels import Gaussian, Kernel, Laplacian, Linear
from oklnumba.components.metric import measure_scales
from oklnumba.components.scaling import measure_range, moments, replace_outliers
from oklnumba.core.guard import Paced, finish, run_together
from oklnumba.hot.primitives.jit import enter
from oklnumba.hot.primitives.rows import pair_distances
from oklnumba.hot.tuned.scaling import write_scores, write_standardised, write_views
from oklnumba.hot.tuned.space import Tree
from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.labels import Known, Past, Views, look_back
from oklnumba.learners.self_tuning.settings import SCORES, Space

T = TypeVar("T")
LIMITS = settings.LOG_FROM, settings.MAX_INPUT
PROBABILITIES = [0.5 * erfc(-score / sqrt(2.0)) for score in SCORES]  # of smaller normal values


class Scales(NamedTuple):
    """Scales of inputs and labels. The defaults are those of inputs that are all equal."""

    mean: np.ndarray  # (d,), of the inputs
    scale: np.ndarray  # (d,); infinite before any data
    offsets: np.ndarray  # (K,), the middle of the labels but outliers; 0 for -1 and +1
    signs: np.ndarray  # (K,), 1 where all labels were -1 or +1, else 0
    difference_mean: np.ndarray  # (K, lags - 1), of the differences of labels
    difference_scale: np.ndarray
    median: float = 0.0  # distance of two inputs; 0: there are linear members only
    metrics: np.ndarray = np.empty((0, 0))  # (M, d), in the order of PASSES
    # Of the trees, one after the other: median distance of the scaled inputs, leaves, splits.
    tree_medians: np.ndarray = np.empty(0)
    leaves: np.ndarray = np.empty(0, dtype=np.int64)
    columns: np.ndarray = np.empty(0, dtype=np.int64)
    thresholds: np.ndarray = np.empty(0)
    # Normal scores are linear between knots.
    knots: np.ndarray = np.empty((0, 0))  # (d, 33), infinite behind the last one
    scores: np.ndarray = np.empty((0, 0))  # (d, 33)

    @classmethod
    def of_no_rounds(cls, d: int, outputs: int) -> Self:
        """Return the scales before any data."""
        zeros, of_lags = np.zeros(outputs), np.zeros((outputs, count_lags(outputs) - 1))
        return cls(np.zeros(d), np.full(d, np.inf), zeros, zeros, of_lags, of_lags + np.inf)

    @classmethod
    def measure(cls, past: Past, rounds: int, at_once: bool) -> Paced[Self]:
        """Return the scales of past rounds; trees grow as deep as ``rounds`` allow.

        at_once : whether all cores may take part.
        """
        X, Y = past.X, past.Y
        known = look_back(past.cut, past.known_counts)
        changes = known.differences[..., : count_lags(Y.shape[1]) - 1]
        mean, scale = yield from measure_moments(X)
        moved, reach = yield from measure_moments(changes.reshape(len(X), -1))
        shape = changes.shape[1:]
        scales = cls(mean, scale, *measure_labels(Y), moved.reshape(shape), reach.reshape(shape))
        yield
        Z = scales.transform(X)
        yield
        median = median_distance(Z, 1.0)
        if median == 0.0:
            return scales
        yield
        knots, scores, normal = yield from measure_scores(Z)
        yield
        works = [measure_metric(kernel, Z, Y, rounds) for kernel in settings.PASSES]
        measured = yield from do_each(works, at_once)
        metrics: dict[str | None, np.ndarray] = dict(zip(settings.PASSES, measured, strict=True))
        growths = [
            grow_tree(normal if one.normal_scores else Z, metrics[one.metric], one, rounds)
            for one in find_trees()
        ]
        trees, medians = zip(*(yield from do_each(growths, at_once)), strict=True)
        columns, thresholds = zip(*(tree[1:] for tree in trees), strict=True)
        return scales._replace(
            median=median, metrics=np.stack(list(metrics.values())), tree_medians=np.array(medians),
            leaves=np.array([len(one) + 1 for one in columns]), columns=np.concatenate(columns),
            thresholds=np.concatenate(thresholds), knots=knots, scores=scores,
        )  # fmt: skip

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the standardised inputs; columns that came later wait for the next restart."""
        Z = np.empty((len(X), len(self.mean)))
        enter(write_standardised)(X, self.mean, self.scale, *LIMITS, 0, Z)
        return Z

    def see(self, X: np.ndarray, space: Space) -> np.ndarray:
        """Return the inputs as the atoms of a space without lags are, (n, d)."""
        Z = self.transform(X)
        Z = find_scores(Z, self.knots, self.scores) if space.normal_scores else Z
        return Z * self.tree(space).scales

    def look(self, X: np.ndarray, known: Known, looks: Any) -> Views:
        """Return the inputs as members see them; with lags the differences of labels follow.

        looks : the Looks of these scales, bound.
        """
        d = len(self.mean)
        with_lags = np.empty((len(X), d + self.difference_mean.size))
        scores = np.empty((len(X), d)) if self.median else with_lags
        enter(write_views)(X, known.differences, looks, *LIMITS, with_lags, scores)
        return Views(scores, with_lags, known.last - self.offsets)

    def width(self, space: Space) -> int:
        """Return how many inputs a space sees."""
        return len(self.mean) + (self.difference_mean.size if space.lags else 0)

    def tree(self, space: Space) -> Tree:
        """Return the tree of a space; without a metric, one leaf of the inputs as they are."""
        if space.metric is None:
            return Tree(np.ones(self.width(space)), np.empty(0, dtype=np.int64), np.empty(0))
        i, metric = find_trees().index(space), list(settings.PASSES).index(space.metric)
        stop = int((self.leaves[: i + 1] - 1).sum())
        nodes = slice(stop - int(self.leaves[i]) + 1, stop)
        return Tree(self.metrics[metric], self.columns[nodes], self.thresholds[nodes])

    def kernel(self, space: Space) -> Kernel:
        """Return the kernel of a space, in the units of the scaled inputs."""
        if space.kernel == "linear":
            return Linear()
        no_tree = space.metric is None
        median = self.median if no_tree else self.tree_medians[find_trees().index(space)]
        sigma = space.width * float(median)
        return Gaussian(sigma) if space.kernel == "Gaussian" else Laplacian(sigma, norm=1)


def count_lags(outputs: int) -> int:
    """Return how many last labels of each output the members with lags see."""
    return settings.LAGS if outputs == 1 else settings.SHARED_LAGS


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
    distances = np.empty(len(X) * (len(X) + 1) // 2)
    pair_distances(norm, X, np.ascontiguousarray(X.T), distances)
    if (differ := np.count_nonzero(distances)) == 0:
        return 0.0
    half, odd = divmod(differ, 2)
    upper = len(distances) - differ + half
    distances.partition(upper)  # np.median takes four times as long
    middle = np.array([distances[: upper + odd].max(), distances[upper]])
    median = float((middle if norm == 1 else np.sqrt(middle)).mean())
    return max(median, settings.LEAST_MEDIAN)


def cut_columns(Z: np.ndarray) -> list[slice]:
    """Return the columns of Z, as many at a time as one piece of work sorts."""
    n, d = Z.shape
    some = max(settings.SORT_NUMBERS // n + 1, d // settings.SORT_PIECES)
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
        quantiles = np.quantile(part, PROBABILITIES, axis=0, method="inverted_cdf").T
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
    out = np.empty((len(Z), len(knots)))
    enter(write_scores)(Z, knots, scores, out)
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
        yield
        w = yield from measure_scales(fitted, Z[chosen], Y[chosen], w, rng, atoms=atoms)
    return w


def grow_tree(
    Z: np.ndarray, scales: np.ndarray, space: Space, rounds: int
) -> Paced[tuple[Tree, float]]:
    """Return the tree of a space, and the median distance of the scaled inputs.

    It splits the widest input at its median, down to a power of 2 leaves.
    """
    per_leaf = space.leaf_rounds or rounds
    leaves = 1 << max(min(rounds, settings.DEEPEST) // per_leaf, 1).bit_length() - 1
    columns, thresholds = np.zeros(leaves - 1, dtype=np.int64), np.full(leaves - 1, np.inf)
    piece = max(settings.SPLIT_NUMBERS, Z.size // settings.SPLIT_PIECES)
    nodes, numbers = [Z * scales], piece
    for node in range(leaves - 1):
        rows, nodes[node] = nodes[node], None  # frees the rows of the levels above
        if numbers >= piece:
            yield
            numbers = 0
        numbers += rows.size + settings.NODE_NUMBERS
        nodes += [rows[:0], rows[:0]]
        if len(rows) == 0 or (rows == rows[0]).all():
            continue
        spreads = rows.std(axis=0)
        widest = int(np.argmax(spreads > settings.SAME_SPREAD * spreads.max()))
        column = rows[:, widest]
        middle = np.median(column)
        if not (column > middle).any():  # so that both sides have rows
            middle = column[column < middle].max()
        columns[node], thresholds[node] = widest, middle
        nodes[-2:] = rows[column <= middle], rows[column > middle]
    yield
    return Tree(scales, columns, thresholds), median_distance(Z, scales, norm=1)


def do_each(works: Sequence[Paced[T]], at_once: bool) -> Paced[list[T]]:
    """Return the results of works that do not change the same data.

    at_once : all now, on all cores; else piece by piece, one work after the other.
    """
    if at_once:
        return run_together([partial(finish, work) for work in works])
    results = []
    for work in works:
        results.append((yield from work))
    return results
