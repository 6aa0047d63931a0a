"""A tree of median splits with a learner in each leaf."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from oklnumba.core.health import Part, name_members
from oklnumba.core.inputs import PLAY_ROWS
from oklnumba.core.params import KW_ONLY, clone, count, required
from oklnumba.core.state import Stateful
from oklnumba.hot.primitives.jit import ATOMS, UNBOUNDED, Array, Integers
from oklnumba.learners.base.engine import Facts, Trace, empty_per_round
from oklnumba.learners.base.learner import Learner
from oklnumba.learners.base.traits import Traits
from oklnumba.learners.base.wrapper import Wrapper, check_member

PAST, NODES = 1, 2  # entries of the counts: stored rows, leaves and splits
SIZE, LOSS, BOUNDS = 0, slice(1, 2), slice(3, None)  # of a record, beside the comparator

Split = tuple[int, float, int]  # a column, its threshold, and the left of two new nodes


def group_by_leaf(X: np.ndarray, splits: Mapping[int, Split]) -> dict[int, np.ndarray]:
    """Return the rows of X of each leaf that has any, in order; node 0 is the root."""
    groups, todo = {}, [(0, np.arange(len(X)))]
    for node, rows in todo:
        if node not in splits:
            groups[node] = rows
            continue
        column, threshold, left = splits[node]
        right = X[rows, column] > threshold
        both = (left, rows[~right]), (left + 1, rows[right])
        todo += [one for one in both if len(one[1])]
    return groups


class TreeState(NamedTuple):
    """Past rows while the tree grows; size and certificate of each leaf after its last round."""

    counts: Annotated[Integers, "counts"]
    inputs: Annotated[Array, PAST, "d"]
    labels: Annotated[Array, PAST, "outputs"]
    records: Annotated[Array, NODES, "record", "outputs", UNBOUNDED]  # entry 0 is the tree's


class Tree(Wrapper[TreeState]):
    """A tree of median splits that grows with the rows, with a learner in each leaf.

    A row goes to its leaf, whose learner forecasts and learns it. A leaf that has seen
    ``leaf_rows`` rows splits them at the median of their widest input, and two new learners play
    their shares of these rows again, in order. It grows for at most ``leaf_rows * max_leaves``
    rounds. Meanwhile it keeps all rows, 8 (d + 1) bytes each, up to twice that in buffers.

    Parameters
    ----------
    learner : Learner
        Its hyper-parameters are those of the learner of each leaf; it is not played itself.
    leaf_rows : int >= 2
    max_leaves : int >= 1
        Hundreds at most: a split reads all stored rows.

    Remarks
    -------
    Ours, after the tree of xRFM (Beaglehole, Holzmueller, Radhakrishnan and Belkin 2025), made
    online. The widest input has the largest mean distance from its median; put
    ``Standardized(Tree(learner))`` to compare inputs on one scale. Rows at the median go left. A
    leaf whose rows are all equal tries again after ``leaf_rows`` more. Of late labels leaves do not
    see how late they are: a ``SelfTuning`` in them learns each as if it had come at once.

    The certificate is against one function for each present leaf, of all rows that belong there.
    Its bound is the sum of the leaves' bounds, plus the loss of the forecasts given before splits
    less that of the replays. With a discount learners forget by the rounds of their leaf, and there
    is no certificate.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 2))
    >>> y = np.sin(9 * X[:, 0]) * np.sin(9 * X[:, 1])
    >>> learner = okl.NystromAWV(okl.Gaussian(0.2), lam=0.01, max_size=30)
    >>> run = okl.run(okl.Tree(learner, leaf_rows=500), X, y)
    >>> print(run.certificate.space)
    12 leaves, one function for each, in the space of its learner
    >>> bool(run.losses[2000:].mean() < 0.1 * okl.run(learner, X, y).losses[2000:].mean())
    True
    """

    _layout = TreeState
    size, _half_width = Learner.size, None  # each leaf has intervals of its own

    learner: Learner = required(check_member)
    _: KW_ONLY
    leaf_rows: int = count(2000, least=2)
    max_leaves: int = count(64, least=1)

    @property
    def _traits(self) -> Traits:
        params, inner = self._inner.get_params().items(), self._inner._traits
        forgets = any(name.endswith("discount") and value < 1.0 for name, value in params)
        rows = 0 if forgets else inner.certificate_rows
        return inner._replace(certificate_rows=rows, block_rows=PLAY_ROWS)

    @property
    def importance(self) -> Any:
        """A tree has none."""
        raise AttributeError("a Tree has no importance: the learner of each leaf has its own")

    @property
    def _can_widen(self) -> bool:
        return all(one._can_widen for one in self._leaves.values())

    def _facts(self) -> Facts:
        each = f"{len(self._leaves)} leaves, one function for each, in the space of its learner"
        return Facts(each) if self._splits else self._leaves[0]._facts()

    def _start(self, d: int) -> None:
        record = 1 + self._traits.certificate_rows
        self._make_state(counts=3, d=d, record=record, outputs=self._outputs)
        self._splits: dict[int, Split] = {}
        self._leaves: dict[int, Learner] = {}
        self._add_leaf()

    def _add_leaf(self) -> int:
        """Add a leaf without rows; return its number."""
        node = int(self._counts[NODES])
        self._reserve({NODES: node + 1})
        self._counts[NODES] += 1
        self._leaves[node] = clone(self._hyper.learner)
        self._leaves[node]._open(self._lengths["d"], self._outputs)
        return node

    def _add_split(self, node: int, column: int, threshold: float) -> None:
        self._splits[node] = column, threshold, self._add_leaf()
        self._add_leaf()
        del self._leaves[node]

    def _play(self, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        p, start = self._hyper, 0
        most = p.leaf_rows * p.max_leaves
        while start < len(X):
            growing = self._played < most and len(self._leaves) < p.max_leaves
            if not growing and self._rooms[PAST]:
                self._free(PAST)
            stop = min(len(X), start + most - self._played) if growing else len(X)
            full, more = None, stop - start
            for node, rows in group_by_leaf(X[start:stop], self._splits).items() if growing else ():
                left = p.leaf_rows - self._leaves[node].rounds % p.leaf_rows
                if left <= len(rows) and rows[left - 1] < more:
                    # Up to the first row that fills a leaf: splits come in the order of time.
                    full, more = node, int(rows[left - 1]) + 1
            part, start = slice(start, start + more), start + more
            if growing:
                self._counts[PAST] = total = self._played + more
                self._reserve({PAST: total})
                self._state.inputs[self._played : total] = X[part]
                self._state.labels[self._played : total] = y[part].reshape(more, -1)
            self._play_part(full, X[part], y[part], trace.rows(part.start, start))

    @np.errstate(over="ignore", invalid="ignore")  # squares of labels beyond 1e154
    def _play_part(self, full: int | None, X: np.ndarray, y: np.ndarray, trace: Trace) -> None:
        """Let the leaves play their rows; then one is full, and splits, or none."""
        added = np.empty((self._state.records.shape[1], len(X), self._outputs))
        for node, rows in group_by_leaf(X, self._splits).items():
            before = self._state.records[node][:, None].copy()
            trace.predictions[rows], records = self._play_leaf(node, X[rows], y[rows])
            added[:, rows] = np.diff(records, axis=1, prepend=before)
        if self._splits:
            # Running sums one by one, so that they do not depend on how the stream is cut.
            added[:, 0] += self._state.records[0]
            records = np.add.accumulate(added, axis=1)
        if full is not None:
            records[:, -1] += self._split(full)
        self._state.records[0] = records[:, -1]
        trace.sizes[:] = records[SIZE, :, 0]
        self._counts[ATOMS] = trace.sizes[-1]
        for out, values in zip(trace[2:], records[1:], strict=False):
            if out is not None:
                out[:] = values.reshape(out.shape)
        self._played += len(X)

    def _play_leaf(self, node: int, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Let a leaf play rows; return forecasts, and records after each, (record, n, K)."""
        try:
            one = self._leaves[node]
            single = y.size == 1  # by the machine code of single rounds
            trace = one.learn_one(X[0], y[0])._single.trace if single else one._play_rows(X, y)
            trace.sizes[-1] = one.size  # which linear learners leave out of single rounds
        except FloatingPointError as error:
            raise FloatingPointError(f"leaf {node}, counting its rounds: {error}") from None
        records = np.empty((self._state.records.shape[1], len(X), self._outputs))
        for entry, values in zip(records, trace[1:], strict=False):
            entry[:] = values.reshape(len(X), -1)
        self._state.records[node] = records[:, -1]
        return trace.predictions, records

    def _split(self, node: int) -> np.ndarray:
        """Split a leaf if its rows differ; return what that adds to the tree's record."""
        rows = group_by_leaf(self._state.inputs[: int(self._counts[PAST])], self._splits)[node]
        X, y = self._state.inputs[rows], self._state.labels[rows]
        middle = np.sort(X, axis=0)[(len(X) - 1) // 2]
        spread = np.abs(0.5 * X - 0.5 * middle).mean(axis=0)  # halved: differences may be too large
        scales = self._leaves[node]._in_force.scales
        column = int((spread if scales is None else spread * np.abs(scales)).argmax())
        if spread[column] == 0.0:  # all rows are equal
            return np.zeros_like(self._state.records[0])
        x = X[:, column]
        threshold = float(min(middle[column], x[x < x.max()].max()))  # both sides get rows
        before = self._state.records[node].copy()
        self._add_split(node, column, threshold)
        halves = self._splits[node][2] + np.arange(2)
        for half, mine in zip(halves, (x <= threshold, x > threshold), strict=True):
            self._play_leaf(int(half), X[mine], y[mine] if self._outputs > 1 else y[mine, 0])
        added = self._state.records[halves].sum(axis=0) - before
        added[BOUNDS] -= added[LOSS]  # what was lost more than in the replays
        added[LOSS] = 0.0
        return added

    def _forecast(self, X: np.ndarray) -> np.ndarray:
        out = empty_per_round(len(X), self._outputs)
        for node, rows in group_by_leaf(X, self._splits).items():
            one = self._leaves[node]
            if out.size == 1:
                out[:] = one.predict_one(X[0])
                break
            out[rows] = one._forecast_inside(X[rows])
        return out

    def _matrices(self) -> list[Part]:
        return name_members((f"leaf{node}", one._diagnose()) for node, one in self._leaves.items())

    def _nested(self) -> dict[str, Stateful]:
        return {f"leaf{node}": one for node, one in self._leaves.items()}

    def _export(self) -> dict[str, Any]:
        return super()._export() | {"splits": [[n, *one[:2]] for n, one in self._splits.items()]}

    def _restore(self, state: dict[str, Any]) -> None:
        for split in state["splits"]:
            self._add_split(*split)
        super()._restore(state)
        if not self._played:
            return
        sizes = [one.size for one in self._leaves.values()]  # larger with late columns
        self._state.records[list(self._leaves), SIZE] = np.array(sizes)[:, None]
        self._counts[ATOMS] = self._state.records[0, SIZE] = sum(sizes)
