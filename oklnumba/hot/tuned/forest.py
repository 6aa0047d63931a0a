"""Extra-random trees (Geurts, Ernst and Wehenkel 2006) whose means go on online.

A tree is grown on past rows, on all inputs and down to single rows (rows may have weights: then
means and numbers of rows are weighted):

    split a node whose labels differ:
        for each input that differs in the node:
            threshold = low + u (high - low), low and high of its values there, u random
            gain = (mean label below - mean label above)^2 (rows below) (rows above),
                times u if all inputs have only two values: else all trees would be equal
        take the input with the largest gain, the first of those whose gains are equal
        if none has any (of a parity no input alone does), take one at random

Then the splits stay, and the means go on:

    for t = 1, ..., n, along the path of x_t:
        m_node = (sum_node + c m_parent) / (count_node + c);   in the root sum / count
        the forecast is m of the leaf; of several trees, the mean
        sum_node += y_t, count_node += 1

For K labels a round, sums and means have K entries, and gains add up.
"""

from typing import Annotated, NamedTuple

import numpy as np

from oklnumba.hot.primitives.elementary import larger, smaller
from oklnumba.hot.primitives.jit import (
    SPARSE,
    Array,
    Integers,
    exact,
    exact_apart,
    hot,
    hot_apart,
    unbind,
)
from oklnumba.hot.primitives.udu import four

NODES = 0  # entry of the counts: nodes of all trees
# Numbers of a node: the input that it splits; the threshold beyond which inputs go to the second
# child; the first child, counted from the root, 0 if none; its rounds.
COLUMN, THRESHOLD, CHILD, ROUNDS = range(4)
NUMBERS = 4
FOUR = 4  # rows that a loop over the inputs takes together
SEEN, RANDOM = range(2)  # entries of the progress
FACTOR, PRIME = 48271, 2147483647  # u = s / PRIME, s = FACTOR s mod PRIME (Park and Miller)
# Gains, weights, labels and their means that differ by less are equal: rounding, of residuals too,
# chooses no input and splits no node.
SAME_GAIN, SAME_LABEL = 1.0 + 1e-6, 1e-6
NO_GAIN = 1e-30  # less than any gain, also a thousand times


class Trees(NamedTuple):
    """T trees, one after the other. The children of a node are neighbours."""

    counts: Annotated[Integers, "counts"]
    roots: Annotated[Integers, "trees"]
    nodes: Annotated[Array, NODES, "numbers", SPARSE]  # COLUMN, ..., ROUNDS: together in memory
    sums: Annotated[Array, NODES, "outputs", SPARSE]  # of the labels of these rounds
    offset: Annotated[Array, "outputs"]  # labels y count as (y - offset) / unit
    unit: Annotated[Array, "outputs"]


class Splits(NamedTuple):
    """Splits of one node, by each of i inputs, (i,) each."""

    drawn: Integers  # random numbers; 0 if the input is equal in all rows: other entries are old
    low: Array
    high: Array
    thresholds: Array
    below: Array  # weight of each child
    above: Array
    total: Array  # of the labels below
    gains: Array


class Growth(NamedTuple):
    """A tree that is being grown on n rows. Nodes are looked at in the order they were made."""

    X: Array  # (n, i): vectors run along the inputs, also where a node has few rows
    inputs: Integers  # (i,): which these are; COLUMN counts among them until a node is split
    Y: Array  # (K, n)
    weights: Array  # (n,): as so many rows each one counts
    least: float  # weight of a child
    only_two: bool  # whether each input has at most two values
    tree: Trees  # of at least 2 nodes; it grows no larger
    progress: Integers  # nodes that were looked at; state of the random numbers
    starts: Integers  # (nodes,): a node has rows[start:stop]
    stops: Integers  # (nodes,)
    rows: Integers  # (n + 3,), the last ones so that they can be taken by fours
    beyond: Integers  # (n + 3,): workspace, as the following
    labels: Array  # (K, n + 3)
    heavy: Array  # (n + 3,): weights
    splits: Splits
    gains: Array  # (nodes,), of splits that are not made yet


class Walks(NamedTuple):
    """Rounds on their ways down trees."""

    below: Integers  # (w,): those that may go down further, in their order
    node: Integers  # (w,)
    root: Integers  # (w,): of the tree
    round: Integers  # (w,)
    means: Array  # (w, E, K): of these nodes


@hot
def gather_labels(node, growth):
    """Write labels, sums and weights of a node's rows; return whether its labels differ."""
    start, stop, tree, differ = growth.starts[node], growth.stops[node], growth.tree, False
    count, weight = stop - start, 0.0
    growth.heavy[count : count + FOUR] = 0.0  # of rows that only make up fours
    for i in range(count):
        growth.heavy[i] = growth.weights[growth.rows[start + i]]
        weight += growth.heavy[i]
    tree.nodes[node, ROUNDS] = weight
    for k in range(growth.Y.shape[0]):
        y, labels, total = growth.Y[k], growth.labels[k], 0.0
        labels[count : count + FOUR] = 0.0
        for i in range(count):
            labels[i] = y[growth.rows[start + i]]
            total += labels[i]
            differ = differ or abs(labels[i] - labels[0]) > SAME_LABEL
        tree.sums[node, k] = total
    return differ


@exact_apart
def find_ranges(X, rows, low, high):
    """Write the least and the largest value of each input in some rows."""
    last = rows.shape[0] - 1
    low[:], high[:] = np.inf, -np.inf
    for i in range(0, last + 1, FOUR):
        a, b = X[rows[i]], X[rows[smaller(i + 1, last)]]
        c, e = X[rows[smaller(i + 2, last)]], X[rows[smaller(i + 3, last)]]
        for j in range(X.shape[1]):  # + 0.0, or LLVM stores only what changes, which takes longer
            low[j] = smaller(low[j], smaller(smaller(a[j], b[j]), smaller(c[j], e[j]))) + 0.0
            high[j] = larger(high[j], larger(larger(a[j], b[j]), larger(c[j], e[j]))) + 0.0


@hot
def add_row(is_below, weight, label, weights, labels):
    """Return sums of weights and labels, with those of a row if it is below a threshold."""
    return weights + (weight if is_below else 0.0), labels + (label if is_below else 0.0)


@hot_apart
def sum_below(X, rows, thresholds, heavy, labels, below, total):
    """Write the sums, over rows not beyond each input's threshold, of weights and labels."""
    for j in range(X.shape[1]):
        below[j] = total[j] = 0.0
    for i in range(0, rows.shape[0], FOUR):
        a, b, c, e = X[rows[i]], X[rows[i + 1]], X[rows[i + 2]], X[rows[i + 3]]
        w0, w1, w2, w3 = four(heavy, i)
        y0, y1, y2, y3 = four(labels, i)
        for j in range(X.shape[1]):
            threshold, w, y = thresholds[j], below[j], total[j]
            w, y = add_row(a[j] <= threshold, w0, y0, w, y)
            w, y = add_row(b[j] <= threshold, w1, y1, w, y)
            w, y = add_row(c[j] <= threshold, w2, y2, w, y)
            below[j], total[j] = add_row(e[j] <= threshold, w3, y3, w, y)


@hot
def draw_thresholds(splits, progress):
    """Write a random threshold of each input that differs, and what was drawn."""
    drawn = splits.drawn
    for j in range(drawn.shape[0]):
        low, high, drawn[j] = splits.low[j], splits.high[j], 0
        if low < high:
            progress[RANDOM] = drawn[j] = progress[RANDOM] * FACTOR % PRIME
            u = drawn[j] / PRIME
            threshold = low * (1.0 - u) + high * u
            splits.thresholds[j] = threshold if low <= threshold < high else low


@hot
def measure_gains(node, growth):
    """Write the gains of the splits, and how much each child weighs."""
    splits, tree, heavy, start = growth.splits, growth.tree, growth.heavy, growth.starts[node]
    stop, weight = growth.stops[node], tree.nodes[node, ROUNDS]
    rows = growth.rows[start : start + (stop - start + FOUR - 1) // FOUR * FOUR]
    below, above, total, gains = splits.below, splits.above, splits.total, splits.gains
    gains[:] = 0.0
    for k in range(growth.labels.shape[0]):
        sum_below(growth.X, rows, splits.thresholds, heavy, growth.labels[k], below, total)
        for j in range(gains.shape[0]):
            above[j] = weight - below[j]
            apart = total[j] / below[j] - (tree.sums[node, k] - total[j]) / above[j]
            gains[j] += apart * apart if abs(apart) > SAME_LABEL else 0.0
    for j in range(gains.shape[0]):
        gains[j] *= below[j] * above[j]


@hot
def find_split(node, growth):
    """Write the input and the threshold of a node's best split; return its gain, 0 if none."""
    if not gather_labels(node, growth):
        return 0.0
    splits, split, least, best = growth.splits, growth.tree.nodes[node], growth.least, 0.0
    rows = growth.rows[growth.starts[node] : growth.stops[node]]
    find_ranges(growth.X, rows, splits.low, splits.high)
    draw_thresholds(splits, growth.progress)
    measure_gains(node, growth)
    for j in range(splits.drawn.shape[0]):
        drawn, gain = splits.drawn[j], splits.gains[j]
        if drawn == 0 or smaller(splits.below[j], splits.above[j]) * SAME_GAIN < least:
            continue
        if growth.only_two:
            gain *= drawn / PRIME
        if gain == 0.0:  # the last digits of u choose: the first ones made the threshold
            gain = NO_GAIN * (1 + drawn % 1000)
        if gain > best * SAME_GAIN:
            best, split[COLUMN], split[THRESHOLD] = gain, j, splits.thresholds[j]
    return best


@hot
def split_node(node, growth):
    """Make the children of a node; their rows stay in order."""
    rows, tree, split = growth.rows, growth.tree, growth.tree.nodes[node]
    x = growth.X[:, int(split[COLUMN])]
    start, stop, child = growth.starts[node], growth.stops[node], tree.counts[NODES]
    middle, others = start, 0
    for i in range(start, stop):
        if x[rows[i]] <= split[THRESHOLD]:
            rows[middle] = rows[i]
            middle += 1
        else:
            growth.beyond[others] = rows[i]
            others += 1
    for i in range(others):
        rows[middle + i] = growth.beyond[i]
    split[CHILD], split[COLUMN] = child, growth.inputs[int(split[COLUMN])]
    growth.starts[child], growth.stops[child] = start, middle
    growth.starts[child + 1], growth.stops[child + 1] = middle, stop
    tree.counts[NODES] = child + 2


@hot
def grow_nodes(growth, numbers):
    """Look at nodes until so many numbers were read, or at all. Returns the numbers left."""
    progress, counts = growth.progress, growth.tree.counts
    while progress[SEEN] < counts[NODES] and numbers > 0:
        node = progress[SEEN]
        progress[SEEN] += 1
        numbers -= (growth.stops[node] - growth.starts[node]) * growth.inputs.shape[0]
        if find_split(node, growth) > 0.0:
            split_node(node, growth)
    return numbers


@hot
def grow_best(growth, numbers):
    """Do the same, but split the node that gains most of all, while there is room for nodes."""
    progress, counts, gains = growth.progress, growth.tree.counts, growth.gains
    while progress[SEEN] < counts[NODES] and numbers > 0:
        node = progress[SEEN]
        progress[SEEN] += 1
        numbers -= (growth.stops[node] - growth.starts[node]) * growth.inputs.shape[0]
        gains[node] = find_split(node, growth) / growth.tree.nodes[node, ROUNDS]  # of squared error
        if progress[SEEN] == counts[NODES] < gains.shape[0] - 1:
            best = 0
            for i in range(1, counts[NODES]):
                if gains[i] > gains[best] * SAME_GAIN:
                    best = i
            if gains[best] > 0.0:
                split_node(best, growth)
                gains[best] = 0.0
    return numbers


@hot
def make_steps(growth, P, rate, U):
    """Replace sums of gradients by steps of Newton, and let the rows of each leaf make them.

    P, U : (K, n), probabilities, which give the curvature, and what the steps are added to.
    """
    tree, rows = growth.tree, growth.rows
    tree.nodes[:, ROUNDS] = 1.0
    for node in range(tree.counts[NODES]):
        start, stop = growth.starts[node], growth.stops[node]
        for k in range(U.shape[0]):
            curvature = growth.least
            for i in range(start, stop):
                curvature += P[k, rows[i]] * (1.0 - P[k, rows[i]])
            tree.sums[node, k] *= rate / curvature
            if tree.nodes[node, CHILD] == 0.0:
                for i in range(start, stop):
                    U[k, rows[i]] += tree.sums[node, k]


# Exact: sums over outputs or trees in another order would give outputs other bits than alone.


@exact
def write_means(node, trees, shrinkages, means):
    """Replace the means of a node's parent, (E, K), by those of the node."""
    for e in range(shrinkages.shape[0]):
        c = shrinkages[e]
        scale = 1.0 / (trees.nodes[node, ROUNDS] + c)
        for k in range(means.shape[1]):
            means[e, k] = (trees.sums[node, k] + c * means[e, k]) * scale


@exact
def add_label(node, y, trees):
    """Let a node learn a label, (K,)."""
    trees.nodes[node, ROUNDS] += 1.0
    for k in range(y.shape[0]):
        trees.sums[node, k] += (y[k] - trees.offset[k]) / trees.unit[k]


@exact
def walk_down(count, X, Y, learns, was_forecast, asked, trees, shrinkages, walks):
    """Let all go down, a level at a time, so that they wait for memory together.

    In each node rounds come in their order, as if each went down by itself.
    """
    below, node = walks.below, walks.node
    while count > 0:
        walking, count = count, 0
        for i in range(walking):
            w = below[i]
            t, split = walks.round[w], trees.nodes[node[w]]
            if split[CHILD] > 0.0:
                beyond = X[t, int(split[COLUMN])] > split[THRESHOLD]
                node[w] = walks.root[w] + int(split[CHILD]) + (1 if beyond else 0)
                if not was_forecast and (asked.shape[0] == 0 or asked[t] < 0):
                    write_means(node[w], trees, shrinkages, walks.means[w])
                if learns and Y[t, 0] == Y[t, 0]:
                    add_label(node[w], Y[t], trees)
                below[count] = w
                count += 1


@exact
def forest_rounds(X, Y, base, learns, was_forecast, asked, arguments, forecasts):
    """Write the forecasts of n rounds, (n, E, K), each before the trees learn its label.

    base : (n, K), added to them, or empty; learns : else Y, (n, K), is not read; it is NaN in rows
    that are only forecast; was_forecast : whether the forecasts are there; asked : empty, or (n,),
    not negative where what is written does not count; arguments : Trees, shrinkages, (E,), and
    Walks.
    """
    trees, shrinkages, walks = unbind(arguments)
    means, n, count = walks.means, X.shape[0], trees.roots.shape[0]
    together = larger(means.shape[0] // n, 1)  # trees: all of them, in single rounds
    if not was_forecast:
        forecasts[:] = 0.0
    for first in range(0, count, together):
        w = 0
        for root in trees.roots[first : first + together]:
            for t in range(n):
                walks.below[w], walks.node[w], walks.root[w], walks.round[w] = w, root, root, t
                for e in range(means.shape[1]):
                    for k in range(means.shape[2]):
                        means[w, e, k] = trees.sums[root, k] / larger(
                            trees.nodes[root, ROUNDS], 1.0
                        )
                if learns and Y[t, 0] == Y[t, 0]:
                    add_label(root, Y[t], trees)
                w += 1
        walk_down(w, X, Y, learns, was_forecast, asked, trees, shrinkages, walks)
        for i in range(0 if was_forecast else w):
            for e in range(means.shape[1]):
                for k in range(means.shape[2]):
                    forecasts[walks.round[i], e, k] += means[i, e, k] / count
    for t in range(0 if was_forecast else n):
        for e in range(means.shape[1]):
            for k in range(means.shape[2]):
                forecasts[t, e, k] = forecasts[t, e, k] * trees.unit[k] + trees.offset[k]
                if base.shape[0] > 0:
                    forecasts[t, e, k] += base[t, k]
