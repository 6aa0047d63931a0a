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

from oklnumba.hot.primitives.elementary import bits_to_float, float_to_bits, larger, smaller
from oklnumba.hot.primitives.jit import SPARSE, Array, Integers, exact, hot, unbind

NODES = 0  # entry of the counts: nodes of all trees
# Numbers of a node: the input that it splits; the threshold beyond which inputs go to the second
# child; the first child, counted from the root, 0 if none; its rounds.
COLUMN, THRESHOLD, CHILD, ROUNDS = range(4)
NUMBERS = 4
SEEN, RANDOM = range(2)  # entries of the progress
LARGEST = 2**63 - 1  # of the integers
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


class Growth(NamedTuple):
    """A tree that is being grown on n rows. Nodes are looked at in the order they were made."""

    X: Integers  # (d, n), order_bits of the inputs: vector instructions find a range of integers
    inputs: Integers  # (i,): those that it may split
    Y: Array  # (K, n)
    weights: Array  # (n,): as so many rows each one counts
    least: float  # weight of a child
    only_two: bool  # whether each input has at most two values
    tree: Trees  # of at least 2 nodes; it grows no larger
    progress: Integers  # nodes that were looked at; state of the random numbers
    starts: Integers  # (nodes,): a node has rows[start:stop]
    stops: Integers  # (nodes,)
    rows: Integers  # (n,)
    above: Integers  # (n,): workspace, as the following
    values: Integers  # (n,): of one input
    labels: Array  # (K, n)
    heavy: Array  # (n,): weights
    gains: Array  # (nodes,), of splits that are not made yet
    equal: Array  # (nodes, i), bool: which inputs are known to be the same in all rows


class Walks(NamedTuple):
    """Rounds on their ways down trees."""

    below: Integers  # (w,): those that may go down further, in their order
    node: Integers  # (w,)
    root: Integers  # (w,): of the tree
    round: Integers  # (w,)
    means: Array  # (w, E, K): of these nodes


@hot
def order_bits(bits):
    """Turn the bits of a number other than -0.0 into an integer in the same order, or back."""
    return bits ^ ((bits >> 63) & LARGEST)


@hot
def gather_labels(node, growth):
    """Write labels, sums and weights of a node's rows; return whether its labels differ."""
    start, stop, tree, differ = growth.starts[node], growth.stops[node], growth.tree, False
    weight = 0.0
    for i in range(stop - start):
        growth.heavy[i] = growth.weights[growth.rows[start + i]]
        weight += growth.heavy[i]
    tree.nodes[node, ROUNDS] = weight
    for k in range(growth.Y.shape[0]):
        y, labels, total = growth.Y[k], growth.labels[k], 0.0
        for i in range(stop - start):
            labels[i] = y[growth.rows[start + i]]
            total += labels[i]
            differ = differ or abs(labels[i] - labels[0]) > SAME_LABEL
        tree.sums[node, k] = total
    return differ


@hot
def draw_threshold(x, node, growth):
    """Write an input's values in a node. Returns a random threshold and whether they differ.

    Values and threshold are integers of their order.
    """
    values, count = growth.values, growth.stops[node] - growth.starts[node]
    rows = growth.rows[growth.starts[node] :]
    for i in range(count):
        values[i] = x[rows[i]]
    least = most = values[0]
    for i in range(count):
        least, most = smaller(least, values[i]), larger(most, values[i])
    if least == most:
        return least, False
    low, high = bits_to_float(order_bits(least)), bits_to_float(order_bits(most))
    progress = growth.progress
    progress[RANDOM] = progress[RANDOM] * FACTOR % PRIME
    u = progress[RANDOM] / PRIME
    threshold = low * (1.0 - u) + high * u
    return order_bits(float_to_bits(threshold if low <= threshold < high else low)), True


@hot
def measure_gain(threshold, node, growth):
    """Return the gain of splitting the values that draw_threshold wrote, -1 if a child is small."""
    values, heavy, tree, gain = growth.values, growth.heavy, growth.tree, 0.0
    count, weight, below = growth.stops[node] - growth.starts[node], tree.nodes[node, ROUNDS], 0.0
    for k in range(growth.labels.shape[0]):
        labels, total, below = growth.labels[k], 0.0, 0.0  # below for each k: one pass if K = 1
        for i in range(count):
            below += heavy[i] if values[i] <= threshold else 0.0
            total += labels[i] if values[i] <= threshold else 0.0
        if smaller(below, weight - below) * SAME_GAIN < growth.least:
            return -1.0
        apart = total / below - (tree.sums[node, k] - total) / (weight - below)
        if abs(apart) > SAME_LABEL:
            gain += apart * apart
    return gain * below * (weight - below)


@hot
def find_split(node, growth):
    """Write the input and the threshold of a node's best split; return its gain, 0 if none."""
    if not gather_labels(node, growth):
        return 0.0
    progress, best, split = growth.progress, 0.0, growth.tree.nodes[node]
    equal = growth.equal[node]
    for j in range(growth.inputs.shape[0]):
        if equal[j]:
            continue
        threshold, differ = draw_threshold(growth.X[growth.inputs[j]], node, growth)
        equal[j] = not differ
        if differ:
            gain = measure_gain(threshold, node, growth)
            if growth.only_two:
                gain *= progress[RANDOM] / PRIME
            if gain == 0.0:  # the last digits of u choose: the first ones made the threshold
                gain = NO_GAIN * (1 + progress[RANDOM] % 1000)
            if gain > best * SAME_GAIN:
                best, split[COLUMN] = gain, growth.inputs[j]
                split[THRESHOLD] = bits_to_float(order_bits(threshold))
    return best


@hot
def split_node(node, growth):
    """Make the children of a node; their rows stay in order."""
    rows, tree, split = growth.rows, growth.tree, growth.tree.nodes[node]
    x, threshold = growth.X[int(split[COLUMN])], order_bits(float_to_bits(split[THRESHOLD]))
    start, stop, child = growth.starts[node], growth.stops[node], tree.counts[NODES]
    middle, others = start, 0
    for i in range(start, stop):
        if x[rows[i]] <= threshold:
            rows[middle] = rows[i]
            middle += 1
        else:
            growth.above[others] = rows[i]
            others += 1
    for i in range(others):
        rows[middle + i] = growth.above[i]
    split[CHILD] = child
    for j in range(growth.equal.shape[1]):
        growth.equal[child, j] = growth.equal[child + 1, j] = growth.equal[node, j]
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
