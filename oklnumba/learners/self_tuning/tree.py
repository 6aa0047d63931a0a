"""A group in each leaf of a tree, on inputs scaled by a learned metric."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oklnumba.components.kernels import Gaussian, Laplacian
from oklnumba.components.metric import measure_scales
from oklnumba.core.health import Part
from oklnumba.core.state import State
from oklnumba.core.steps import Steps
from oklnumba.hot.primitives.rows import distance_block
from oklnumba.hot.self_tuning import leaf_rounds
from oklnumba.learners.self_tuning.grid import ROWS, Group, make_room
from oklnumba.learners.tree import group_by_leaf

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
DEEPEST = 8192  # rounds; trees have no more leaves after more


class Metric(NamedTuple):
    """A metric and a tree, as a restart takes them from inputs of the past."""

    scales: np.ndarray  # (d,)
    columns: np.ndarray  # (leaves - 1,): node i has the children 2 i + 1 and 2 i + 2,
    thresholds: np.ndarray  # (leaves - 1,): the second if this input is larger

    @property
    def leaves(self) -> int:
        """How many leaves the tree has, a power of 2."""
        return len(self.columns) + 1


def spread_rows(n: int, most: int) -> np.ndarray:
    """Return at most so many of the rows 0, ..., n - 1, evenly spread."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def median_distance(X: np.ndarray, norm: int = 2) -> float:
    """Return the median distance of pairs of SPREAD rows that differ, 0 if none do."""
    X = X[spread_rows(len(X), SPREAD)]
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
        width = median_distance(few * w, norm)
        fitted = Gaussian(width) if norm == 2 else Laplacian(width, norm=1)
        w = yield from measure_scales(fitted, Z[chosen], Y[chosen], w, rng, atoms=FITTED)
    return w


def grow_tree(Z: np.ndarray, scales: np.ndarray, leaf: int, rounds: int) -> Metric:
    """Return the tree of inputs of the past in a metric, one leaf for so many rounds."""
    leaves = 1 << max(min(rounds, DEEPEST) // leaf, 1).bit_length() - 1
    return Metric(scales, *split_at_medians(Z * scales, leaves))


def split_at_medians(Z: np.ndarray, leaves: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and thresholds of a tree that splits the widest input at its median."""
    columns, thresholds = np.zeros(leaves - 1, dtype=np.int64), np.full(leaves - 1, np.inf)
    nodes = [Z]
    for node in range(leaves - 1):
        part = nodes[node]
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


class Tree(State):
    """Groups in the leaves of a tree, played as one group is.

    A certificate is the sum of those of the leaves: its comparator has a function in each of them.
    """

    _STATE = {
        "latest": ("leaves", "ridges", "proof", "outputs"), "total": ("ridges", "proof", "outputs"),
    }  # fmt: skip
    _UNBOUNDED = frozenset({"latest", "total"})

    def __init__(self, metric: Metric, leaves: list[Group]):
        self._metric, self.leaves, first = metric, leaves, leaves[0]
        self.settings, self.forecasters = first.settings, first.forecasters
        ridges, outputs = len(first.settings), first.outputs
        self._make_state(leaves=len(leaves), ridges=ridges, proof=3, outputs=outputs)
        self._found = make_room(first.forecasters, ridges, outputs)  # of one leaf after the other
        for group in leaves:
            group.use_room(*self._found)
        nodes = zip(metric.columns.tolist(), metric.thresholds.tolist(), strict=True)
        self._splits = {i: (*split, 2 * i + 1) for i, split in enumerate(nodes)}
        self.describe_members, self.members = first.describe_members, first.members
        self.static = first.static
        self.sizes = np.zeros(ROWS, dtype=np.int64)
        self._atoms: int | None = None  # in all leaves, after the last round

    def use_room(self, forecasts: np.ndarray, proofs: np.ndarray) -> None:
        """Write into these arrays from now on."""
        self.forecasts, self.proofs = forecasts, proofs

    @property
    def size(self) -> int:
        """Atoms in the dictionaries of all leaves."""
        return sum(group.size for group in self.leaves)

    def shrink_units(self, recent: np.ndarray) -> None:
        """Take ``recent``, (K,), for the largest label of PA-I where that is far larger."""
        for group in self.leaves:
            group.shrink_units(recent)

    def _split(self, X: np.ndarray, known: bool = False) -> list[tuple]:
        """Return leaves that have rows of X, which rows, and these rows, scaled.

        known : whether the last call was with these inputs.
        """
        if not known:
            Z, inner = X * self._metric.scales, len(self._splits)
            nodes = group_by_leaf(Z, self._splits).items()
            self._seen = [(node - inner, rows, Z[rows]) for node, rows in nodes]
        return self._seen

    def choose(self, X: np.ndarray) -> None:
        """Let the dictionaries choose among up to ROWS inputs."""
        for leaf, _, Z in self._split(X):
            self.leaves[leaf].choose(Z)

    def play(self, X: np.ndarray, Y: np.ndarray, learn: bool, known: bool) -> None:
        """Write the forecasts of up to ROWS rounds, then learn them; as those of a group."""
        n = len(X)
        if self._atoms is None:
            self._atoms = self.size
        for leaf, rows, Z in self._split(X, known):
            group, before = self.leaves[leaf], self.leaves[leaf].size
            group.play(Z, Y[rows], learn, known)
            found = self._found[0], group.sizes, self._found[1]
            out = self.forecasts, self.sizes, self.proofs
            leaf_rounds(rows, before, self._latest[leaf], found, out)
        # One by one, so that the sums do not depend on how the stream is cut.
        sizes, proofs = self.sizes[:n], self.proofs[:, :, :n]
        sizes[0] += self._atoms
        self._atoms = int(np.cumsum(sizes, out=sizes)[-1])
        proofs[:, :, 0] += self._total
        np.add.accumulate(proofs, axis=2, out=proofs)
        self._total[:] = proofs[:, :, -1]

    def forecast(self, X: np.ndarray) -> None:
        """Write the forecasts of up to ROWS single rounds; nothing is learned."""
        for leaf, rows, Z in self._split(X):
            group = self.leaves[leaf]
            group.forecast(Z)
            self.forecasts[:, rows] = self._found[0][:, : len(rows)]

    def parts(self) -> list[State]:
        """Return everything with a state."""
        return [self, *(part for group in self.leaves for part in group.parts())]

    def measure(self, scales: np.ndarray) -> list[Part]:
        """Return the parts of all matrices; scales : (K,), of the labels."""
        parts = [(i, part) for i, group in enumerate(self.leaves) for part in group.measure(scales)]
        return [part.within(f"leaf {i}") for i, part in parts]
