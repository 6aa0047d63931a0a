"""Extra-random trees whose means go on, from their definition: nodes that list their labels."""

import numpy as np

PRIME = 2**31 - 1


class Node:
    """Labels of the rows that have come here, and the split."""

    def __init__(self, labels):
        self.labels, self.split, self.children = list(labels), None, ()

    def path(self, x):
        yield self
        if self.children:
            column, threshold = self.split
            yield from self.children[int(x[column] > threshold)].path(x)


def best_split(X, only_two, Y, state, weights, least=0.0):
    """The split of the largest gain, rows below it, and the state of the random numbers."""
    best, below, most = None, None, 0.0
    for j, x in enumerate(X.T):
        if x.min() == x.max() or (abs(Y - Y[0]) <= 1e-6).all():
            continue
        state = 48271 * state % PRIME
        u = state / PRIME
        threshold = x.min() * (1 - u) + x.max() * u
        if not x.min() <= threshold < x.max():
            threshold = x.min()
        under = x <= threshold
        low, high = weights[under].sum(), weights[~under].sum()
        apart = Y[under].sum(axis=0) / low - Y[~under].sum(axis=0) / high
        gain = low * high * (apart[abs(apart) > 1e-6] ** 2).sum() * (u if only_two else 1.0)
        if min(low, high) * (1 + 1e-6) < least:
            gain = -1.0
        elif gain == 0.0:  # chance chooses
            gain = 1e-30 * (1 + state % 1000)
        if gain > most * (1 + 1e-6):
            best, below, most = (gain, j, threshold), under, gain
    return best, below, state


def grow(X, Y, state):
    """A tree on all rows, Y : (n, K)."""
    root = Node(Y)
    waiting = [(root, np.arange(len(X)))]
    only_two = all(len(set(x)) <= 2 for x in X.T)
    for node, rows in waiting:
        best, below, state = best_split(X[rows], only_two, Y[rows], state, np.ones(len(rows)))
        if best:
            node.split = best[1:]
            sides = rows[below], rows[~below]
            node.children = tuple(Node(Y[side]) for side in sides)
            waiting += zip(node.children, sides, strict=True)
    return root


def shrunk_means(path, shrinkages):
    """The means of a leaf, each node's shrunk towards its parent's, by shrinkage."""
    labels = path[0].labels
    means = [np.mean(labels, axis=0) if labels else 0.0 for _ in shrinkages]
    for node in path[1:]:
        total, n = np.sum(node.labels, axis=0), len(node.labels)
        means = [(total + c * mean) / (n + c) for c, mean in zip(shrinkages, means, strict=True)]
    return means


def forest(rounds, K, growths, count, shrinkages, seed, most):
    """Yield forecasts (E, K) round by round; new trees after ``growths`` rounds, on 15/16 of these.

    rounds(first, stop) : inputs and labels of past rounds, of the present one the inputs.
    """
    trees, t = [Node([]) for _ in range(count)], 0
    while True:
        if t in growths:
            first, built = max(0, t - t // 16 - most), t - t // 16
            X, Y = rounds(first, t)
            past, units = X[: built - first], Y[: built - first]
            units = (units - units.mean(axis=0)) / np.maximum(units.std(axis=0), 1e-300)
            states = (np.random.default_rng([*seed, t, i]).integers(1, PRIME) for i in range(count))
            trees = [refill(grow(past, units, int(state)), X, Y) for state in states]
        x = rounds(t, t + 1)[0][0]
        paths = [list(tree.path(x)) for tree in trees]
        means = np.mean([shrunk_means(path, shrinkages) for path in paths], axis=0)
        yield np.broadcast_to(means.reshape(len(shrinkages), -1), (len(means), K))
        y = rounds(t, t + 1)[1][0].copy()
        for path in paths:
            for node in path:
                node.labels.append(y)
        t += 1


def refill(tree, X, Y):
    """The structure of a tree, with these rows in it."""
    nodes = [tree]
    for node in nodes:
        node.labels = []
        nodes += node.children
    for x, y in zip(X, Y, strict=True):
        for node in tree.path(x):
            node.labels.append(y)
    return tree


def boost(X, labels, U, seeds, most, for_each, inputs, rate, least):
    """Trees of at most so many leaves, on some inputs each, under log loss.

    for_each : rows for each leaf; labels : (n, K), 1, 0 or NaN; U : (n, K), half the first logits.
    """
    U, trees, rng = U.copy(), [], np.random.default_rng(seeds)
    for seed in seeds:
        P = 1 / (1 + np.exp(-2 * U))
        G, W, state = np.nan_to_num(labels - P), (P * (1 - P)).sum(axis=1), seed
        some = rng.permutation(X.shape[1])[:inputs]
        root, new, waiting = Node([]), [], []
        new.append((root, np.arange(len(X))))
        leaves = max(min(most, len(X) // for_each), 1)
        while True:
            for node, rows in new:
                split = best_split(X[rows][:, some], False, G[rows], state, W[rows], least)
                state = split[-1]
                gain = split[0][0] / W[rows].sum() if split[0] else 0.0
                waiting.append([gain, node, rows, split])
            first = waiting[0]
            for one in waiting:
                first = one if one[0] > first[0] * (1 + 1e-6) else first
            if first[0] <= 0 or sum(not one[1].children for one in waiting) == leaves:
                break
            _, node, rows, ((_, column, threshold), below, _) = first
            node.split, first[0] = (some[column], threshold), 0.0
            node.children = Node([]), Node([])
            new = list(zip(node.children, (rows[below], rows[~below]), strict=True))
        for _, node, rows, _ in waiting:
            if not node.children:
                curvature = (P[rows] * (1 - P[rows])).sum(axis=0) + least
                node.labels = rate / 2 * G[rows].sum(axis=0) / curvature
                U[rows] += node.labels
        trees.append(root)
    return trees
