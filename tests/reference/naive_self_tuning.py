"""SelfTuning from its definition: dense matrices, one round at a time, everything played again."""

from functools import partial

import numpy as np
from scipy.stats import norm

from tests.reference import naive, naive_forest, naive_linear

NUGGET = 1e-14


def standardised(X, past):
    """X by mean and deviation of past rows, 4 + log(1 + (z - 4)) beyond 4 of these.

    Numbers beyond 100 median deviations count as the median. Constant columns are only centred.
    """
    ranges = [naive.outlier_range(column, 100.0) for column in past.T]
    middle, reach = np.transpose(ranges)
    past = np.where(abs(past - middle) > reach, middle, past)
    scale = past.std(axis=0)
    Z = (X - past.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return np.sign(Z) * np.where(abs(Z) > 4, 4 + np.log(np.maximum(abs(Z) - 3, 1)), abs(Z))


def label_limits(y, t):
    """Least, low, middle, high and most in round t.

    Labels beyond low and high, more than 20 median deviations from the last 1024 and from the last
    16 labels, are outliers unless foretold; beyond least and most, 400 of the larger of these two
    deviations, in any case. Measured after 16, 24, 32, ... labels; before, all are 1e70 away. The
    middle is the median of the last 16.
    """
    if t < 16:
        return np.array([-1e70, -1e70, 0.0, 1e70, 1e70])
    past = y[: t // 8 * 8]
    (long, reach), (mid, near) = (naive.outlier_range(past[-k:], 20.0) for k in (1024, 16))
    low, high, most = min(long - reach, mid - near), max(long + reach, mid + near), max(reach, near)
    limits = min(low, mid - 20 * most), low, mid, high, max(high, mid + 20 * most)
    return np.clip(limits, -1e70, 1e70)


def cut_label(label, least, low, mid, high, most):
    return min(max(label, least), most)


def learned_label(label, told, least, low, mid, high, most):
    """The label, or the middle in place of an outlier; told : forecasts of members with lags."""
    if any(abs(one - label) <= abs(label - mid) / 4 for one in told):
        low, high = least, most
    return label if low <= label <= high else mid


def look_back(raw, counts):
    """The last of ``counts`` labels, (n,), and how the 13 before differ from it, (n, 13).

    Missing ones are 0, and differ by 0.
    """
    last, differences = np.zeros(len(counts)), np.zeros((len(counts), 13))
    for t, count in enumerate(counts):
        if count > 0:
            last[t] = raw[count - 1]
        for j in range(2, min(count, 14) + 1):
            differences[t, j - 2] = raw[count - j] - last[t]
    return last, differences


def middle(y):
    """0 for -1 and +1, else the middle of the labels within 20 median deviations of the median."""
    if np.isin(y, (-1, 1)).all():
        return 0.0
    mid, reach = naive.outlier_range(y, 20.0)
    usual = np.where(abs(y - mid) > reach, mid, y)
    return (usual.min() + usual.max()) / 2


def median_distance(S, norm=2):
    rows = S[np.linspace(0, len(S) - 1, min(len(S), 500)).astype(int)]
    D = np.linalg.norm(rows[:, None] - rows, norm, axis=2)[np.triu_indices(len(rows), 1)]
    return np.median(D[D > 0])


def normal_scores(S, past):
    """S by the normal scores of its past, linear between the quantiles that have -3, ..., 3.

    Equal quantiles have the mean of their scores; beyond the outer ones the slope is 1.
    """
    scores, out = np.linspace(-3, 3, 33), S.copy()
    for j, column in enumerate(S.T):
        seen = np.sort(column[:past])
        ranks = np.ceil(past * norm.cdf(scores)).astype(int)
        quantiles = seen[ranks - 1]
        knots = sorted(set(quantiles))
        values = np.array([scores[quantiles == knot].mean() for knot in knots])
        spread = np.interp(seen, knots, values).std()
        values *= seen.std() / spread if spread > 0 else 1.0
        beyond = np.minimum(column - knots[0], 0) + np.maximum(column - knots[-1], 0)
        out[:, j] = np.interp(column, knots, values) + beyond
    return out


def metric(S, y, name, passes):
    """Scales by the mean squared gradient of ridge regression on at most 300 rows, in passes.

    An intercept is free; lam = 1. The norm of the columns' deviations stays what it was.
    """
    n, d = S.shape
    w, rng = np.ones(d), np.random.default_rng(n)
    target = (y - y.mean()) / (abs(y - y[0]).max() or 1.0)
    for _ in range(passes):
        Z = S * w
        few = Z[np.linspace(0, n - 1, min(n, 200)).astype(int)]
        width = median_distance(few, 2 if name == "Gaussian" else 1)
        k = partial(naive.gaussian if name == "Gaussian" else naive.laplacian_l1, sigma=width)
        C = Z[np.sort(rng.choice(n, min(300, n), replace=False))]
        F = k(Z, C)
        centred = F - F.mean(axis=0)
        A = centred.T @ centred + k(C, C)
        a = np.linalg.solve(A + 1e-10 * np.trace(A) / len(C) * np.eye(len(C)), F.T @ target)
        apart = Z[:, None] - C
        slopes = np.sign(apart) / width if name == "Laplacian" else apart / width**2
        g = (np.einsum("tj,tji,j->ti", F, slopes, a) ** 2).sum(axis=0) * w**2
        g[np.ptp(S, axis=0) == 0] = 0.0
        if not g.any():
            return np.ones(d)
        w = np.sqrt(g / g.mean() + 1e-3)
        p = 2 if name == "Gaussian" else 1
        w = w * np.linalg.norm(S.std(axis=0), p) / np.linalg.norm(w * S.std(axis=0), p)
    return w


def leaves(Z, past, count):
    """The leaf of each row: past rows are halved at the median of the widest input, again."""
    leaf = np.zeros(len(Z), dtype=int)
    for _ in range(int(np.log2(count))):
        deeper = 2 * leaf
        for node in set(leaf):
            rows = leaf == node
            seen = Z[:past][rows[:past]]
            if len(seen) == 0 or (seen == seen[0]).all():
                continue
            spreads = seen.std(axis=0)
            widest = np.flatnonzero(spreads > (1 - 1e-9) * spreads.max())[0]
            column = seen[:, widest]
            middle = np.median(column)
            if middle == column.max():
                middle = column[column < middle].max()
            deeper[rows] += Z[rows, widest] > middle
        leaf = deeper
    return leaf


def metrics(S, y, rounds):
    """The metrics of the past, by name."""
    passes = {"Gaussian": 2, "Laplacian": 5}
    return {k: metric(S, y, k, n if rounds >= 128 else 0) for k, n in passes.items()}


def tree(views, scales, past, space, deepest, rounds):
    """Inputs scaled by a metric, leaves, and the width of the kernel."""
    Z = views[space.normal_scores] * scales[space.metric]
    count = 1
    while 2 * count * space.leaf_rounds <= min(rounds, deepest):
        count *= 2
    return Z, leaves(Z, past, count), median_distance(Z[:past], 1)


def dictionary(S, kernel, rounds, budget, coins):
    """Atoms by KORS of bounded size: (index, from which round on); ``rounds`` rows join at once."""
    kept, _ = naive.kors(kernel, S, coins, 0.1, 1.0, 0.5, most=budget)
    return [(t, 0 if t < rounds else t + 1) for t in kept]


def coordinates(S, atoms, kernel):
    """1, then the coordinates in the span of the atoms that have joined; 0 for later ones."""
    Z = np.zeros((len(S), 1 + len(atoms)))
    Z[:, 0] = 1.0
    if not atoms:
        return Z
    index = [i for i, _ in atoms]
    K = kernel(S[index], S[index]) + NUGGET * np.eye(len(index))
    inverse = np.linalg.inv(np.linalg.cholesky(K))  # Gram and Schmidt: row j needs atoms <= j only
    Z[:, 1:] = kernel(S, S[index]) @ inverse.T
    for j, (_, since) in enumerate(atoms):
        Z[:since, 1 + j] = 0.0
    return Z


def forecasts(Z, y, ridges, every=False):
    """Ridge and AWV forecasts with a discount of the past, whose pivots are at least lam.

    ridges : (lam, half-life); returns (n, 2 each), no AWV forecast where there is a half-life,
    unless ``every`` one is wanted.
    """
    lam = np.array([[lam] for lam, _ in ridges])
    g = np.array([[1.0 if half is None else 0.5 ** (1 / half)] for _, half in ridges])
    (n, r), many = Z.shape, len(ridges)
    U, D, w = np.tile(np.eye(r), (many, 1, 1)), lam, np.zeros((many, r))  # w : the estimates
    out = np.zeros((n, many, 2))
    for t, z in enumerate(Z):
        D = np.maximum(g * D, lam)
        A = (U.swapaxes(1, 2) * D[:, None]) @ U  # U' D U
        v = np.linalg.solve(A, z[:, None])[..., 0]
        a, m = 1 + v @ z, w @ z
        out[t] = np.column_stack([m, m / a])
        w = w + ((y[t] - m) / a)[:, None] * v  # the least squares estimates, one row later
        L = np.linalg.cholesky(A + np.outer(z, z))
        roots = np.diagonal(L, axis1=1, axis2=2)
        D, U = roots**2, (L / roots[:, None]).swapaxes(1, 2)
    return out[:, np.array([(True, every or half is None) for _, half in ridges])]


def label_ranges(y, period, signs):
    """Centre and radius of the labels' range before each round, the largest |y| as PA-I has it.

    The radius is the largest |y| so far, the centre 0. Periods end every so many rounds, replayed
    or not: where the labels of the last two fill less than a quarter of the range, theirs is taken,
    and aggregations begin again: in the rounds returned last. signs : -1 and +1 are among these
    labels in any case.
    """
    C, B, sizes, ends, starts = *np.zeros((3, len(y))), [0, 0], [0]
    centre = radius = largest = 0.0
    for t, label in enumerate(y):
        if t > 0 and t % period == 0:
            recent = np.append(y[ends[-2] : t], (-1.0, 1.0) if signs else ())
            low, high, size = recent.min(), recent.max(), np.abs(recent).max()
            if (high - low) / 2 < radius / 4:
                centre, radius = (low + high) / 2, (high - low) / 2
                starts.append(t)
            if size < largest / 4:
                largest = size
            ends.append(t)
        C[t], B[t] = centre, radius
        radius, largest = max(radius, abs(label - centre)), max(largest, abs(label))
        sizes[t] = largest
    return C, B, sizes, starts


def passive_aggressive(Z, y, signs, C, sizes):
    """PA-I: the hinge loss for signs, else the absolute loss, C in units of the largest label."""
    w, out = np.zeros(Z.shape[1]), np.zeros(len(y))
    for t, (z, label) in enumerate(zip(Z, y, strict=True)):
        out[t] = w @ z
        loss = max(0.0, 1.0 - label * out[t]) if signs else abs(label - out[t])
        towards = label if signs else np.sign(label - out[t])
        w = w + towards * min(C * sizes[t], loss / (z @ z)) * z
    return out[:, None]


def descent(Z, y, signs, step):
    """Logistic loss for signs, forecast 2 P(y = 1) - 1, else squared loss with implicit steps."""
    w, out = np.zeros(Z.shape[1]), np.zeros(len(y))
    for t, (z, label) in enumerate(zip(Z, y, strict=True)):
        if signs:
            p = 1 / (1 + np.exp(-(w @ z)))
            out[t] = 2 * p - 1
            w = w + step / (z @ z) * ((label + 1) / 2 - p) * z
        else:
            out[t] = w @ z
            # argmin_v |v - w|^2 / 2 + eta (v'z - y)^2 / 2, eta = step / |z|^2
            new = (out[t] + step * label) / (1 + step)
            w = w + (new - out[t]) / (z @ z) * z
    return out[:, None]


def model_averaging(F, y, ranges, share):
    """The posterior mean under normal noise, whose variance is that of late; a share goes round."""
    n, N = F.shape
    w, out, squares = np.full(N, 1 / N), np.zeros(n), np.zeros(n)
    for t, B in enumerate(ranges):
        out[t] = w @ F[t]
        if B > 0:
            age = 0.5 ** (np.arange(t)[::-1] / 100)
            variance = max(age @ squares[:t] / age.sum(), 1e-4 * B**2)
            log_w = np.log(w) - (np.clip(y[t], -B, B) - F[t]) ** 2 / (2 * variance)
            w = np.exp(log_w - log_w.max())
            w = (1 - share) * w / w.sum() + share / N
        squares[t] = (out[t] - y[t]) ** 2
    return out


def regressions(F, last, y, B):
    """Three ridge regressions on what forecasts add to the last label, over the largest label."""
    units = np.where(B > 0, B, np.inf)
    Z = (F - last[:, None]) / units[:, None]
    target = (np.clip(y, -B, B) - last) / units
    found = forecasts(Z, target, [(10.0, None), (10.0, 500), (0.3, 500)])[:, [0, 2, 3]].T
    return np.clip(last + B * found, -B, B)


def corrections(first, others, y, B):
    """Two ridge regressions of what the first of some forecasts lacks, on all and their cubes."""
    units = np.where(B > 0, B, np.inf)[:, None]
    G, differences = np.column_stack([first, others]), others - first[:, None]
    residuals = np.clip(y, -B, B) - first
    Z = np.hstack([first[:, None] / units, differences / units, (G / units) ** 3])
    found = forecasts(Z, residuals / units[:, 0], [(1.0, None), (1.0, 500)])[:, [0, 2]].T
    return np.clip(first + B * found, -B, B)


def fixed_share(F, y, ranges, share):
    """The aggregating algorithm for labels of unknown size."""
    return naive_linear.aggregate(F, y, ranges, "aggregating", lambda f, v: (f - v) ** 2, share)


def ml_poly(F, y, debt=0.0):
    return naive_linear.mlpoly(F, y, lambda forecast, label: 2 * (forecast - label), debt)


def in_epochs(starts, aggregate, *series):
    """Aggregations that begin anew in some rounds."""
    cuts = zip(starts, [*starts[1:], len(series[0])], strict=True)
    return np.concatenate([aggregate(*(one[a:b] for one in series)) for a, b in cuts])


def aggregated(F, y, B, starts):
    """Four aggregations of the members, ridge on these and the members, ridge again, ML-Poly."""
    epochs = partial(in_epochs, starts)
    plain, shared = (epochs(partial(fixed_share, share=s), F, y, B) for s in (0.0, 1e-3))
    poly, posterior = epochs(ml_poly, F, y), model_averaging(F, y, B, 1e-3)
    first = np.stack([plain, shared, poly, posterior], axis=1)
    everyone = np.column_stack([F[:, :-1], first, np.zeros(len(y))])
    stacks = regressions(everyone, F[:, -1], y, B)
    corrected = corrections(stacks[0], np.column_stack([*stacks[1:], first]), y, B)
    return epochs(ml_poly, np.stack([plain, poly, *stacks, *corrected], axis=1), y)


def most_atoms(space, budget):
    return min(space.max_size, max(int(space.share * budget), 1))


def leaf_spaces(views, scales, past, space, seed, budget, deepest, rounds, late=True):
    """Rows of each leaf of a tree, their coordinates, and the width of the kernel.

    views : inputs and their normal scores; scales : of each metric; rounds : whose number gives
    that of the leaves; late : whether rows after the past join dictionaries; else all coordinates
    are functions.
    """
    Z, leaf, width = tree(views, scales, past, space, deepest, rounds)
    kernel = partial(naive.laplacian_l1, sigma=width)
    coins = np.random.default_rng(seed).random(len(Z))
    for node in range(leaf.max() + 1):
        rows = np.flatnonzero(leaf == node)
        S, before = Z[rows], int((rows < past).sum())
        candidates = S if late else S[:before]
        atoms = dictionary(candidates, kernel, before, most_atoms(space, budget), coins[rows])
        yield rows, coordinates(S, atoms, kernel), width


def space_forecasts(space, views, y, signs, sizes, past, scales, median, seed, budget, *how):
    """The forecasts of the members of a space; how : deepest, rounds."""
    S, seed = views[0], [*seed, space.seed]
    if space.metric is not None:
        out = np.zeros((len(S), 2 * len(space.ridges)))
        for rows, Z, _ in leaf_spaces(views, scales, past, space, seed, budget, *how):
            out[rows] = forecasts(Z, y[rows], space.ridges)
        return [out]
    if space.kernel == "linear":
        Z = np.column_stack([np.ones(len(S)), S])
    else:
        kernel = partial(naive.gaussian, sigma=space.width * median)
        coins = np.random.default_rng(seed).random(len(S))
        Z = coordinates(S, dictionary(S, kernel, past, most_atoms(space, budget), coins), kernel)
    columns = [forecasts(Z, y, space.ridges)]
    columns += [passive_aggressive(Z, y, signs, C, sizes) for C in space.aggressiveness]
    return columns + [descent(Z, y, signs, step) for step in space.steps]


def lag_forecasts(X, raw, counts, past, stop, ridges):
    """Ridge and AWV forecasts on x and the differences of the last labels, and the last ones."""
    last, differences = look_back(raw, counts[:stop])
    A = np.column_stack([X[:stop], differences])
    S = standardised(A, A[:past]) if past else np.zeros(A.shape)
    Z = np.column_stack([np.ones(stop), S])
    target = np.where(counts[:stop] > 0, raw[:stop] - last, 0.0)  # no jump from nothing
    return forecasts(Z, target, ridges, every=True) + last[:, None], last


def tree_forecasts(X, y, raw, counts, lags, seed, growths, count, shrinkages, most):
    """Yield the forecasts of the trees, (E,), round by round; y and raw may change meanwhile."""

    def rounds(first, stop):
        last, differences = look_back(raw, counts[first:stop])
        if lags == 0:
            return X[first:stop], y[first:stop, None]
        Z = np.column_stack([last, differences[:, : lags - 1], X[first:stop]])
        return Z, np.where(counts[first:stop] > 0, y[first:stop] - last, 0.0)[:, None]

    forest = naive_forest.forest(rounds, 1, growths, count, shrinkages, [seed, lags], most)
    for t, found in enumerate(forest):
        last, _ = look_back(raw, counts[t : t + 1])
        yield found[:, 0] + (last if lags else 0.0)


def boosted_sums(X, labels, before, seed, how, last=np.inf):
    """The sums of boosted trees, NaN where they do not play; before : (n, K), where they begin.

    That is the label if it is an outlier, which does not count. last : the last restart, after
    which no past is kept to grow on.
    """
    (sure, count, *how, _, growths), found = how, np.full(before.shape, np.nan)
    ends = [t for t in growths if t < min(len(X), last)]
    for t, stop in zip(ends, [*ends, len(X)][1:], strict=True):
        n = t - t // 16
        known = np.isin(labels[:n], (-1, 1))
        both = {-1, 1} <= set(labels[:n].ravel())
        if both and (known | (labels[:n] == before[:n])).all():
            rngs = [np.random.default_rng([seed, 0, t, i]) for i in range(count)]
            seeds = [int(rng.integers(1, naive_forest.PRIME)) for rng in rngs]
            U = np.arctanh(before[:n].clip(-sure, sure))
            classes = np.where(known, labels[:n] > 0, np.nan)
            trees = naive_forest.boost(X[:n], classes, U, seeds, *how)
            paths = [[list(tree.path(x)) for tree in trees] for x in X[t:stop]]
            found[t:stop] = [sum(path[-1].labels for path in of_row) for of_row in paths]
    return found


def self_tuning(
    X, y, restarts, budget, spaces, deepest, seed=0, period=1024, leads=None, forests=(),
    residuals=None, boosted=None, experts=None,
):  # fmt: skip
    """The forecasts of SelfTuning, and the losses of its members as they forecast; y : (n,).

    leads : (n,), how many labels before a round's own were not known when it was forecast.
    forests : lags, and what ``naive_forest`` takes, of each; experts : (n, E), their forecasts.
    The last step is ML-Poly of p, what the layers forecast, and of p + what trees forecast, which
    learn label - p, cut to 20 median deviations of the last 1024 labels; 0 before the first
    restart, and of outliers. residuals : what these trees take. Where all labels were -1 and +1,
    boosted trees forecast, too; boosted : settings.BOOSTING.
    """
    ends = [t for t in restarts if t <= len(X)]
    counts = np.arange(len(X)) - (0 if leads is None else leads)
    out, losses, came, y, begun = np.zeros(len(X)), 0.0, y, y.copy(), []
    limits = [label_limits(y, t) for t in range(len(y))]
    raw = np.array([cut_label(v, *of_round) for v, of_round in zip(y, limits, strict=True)])
    (lag_space,) = [space for space in spaces if space.lags]
    trees = [tree_forecasts(X, y, raw, counts, lags, seed, *how) for lags, *how in forests]
    recorded = np.zeros((len(X), sum(len(how[3]) for how in forests)))
    for restart, (start, stop) in enumerate(zip([0, *ends], [*ends, len(X)], strict=True)):
        past = start - start // (4 if start < 8192 else 7)
        if start == restarts[0]:  # the first 16 are judged when they are replayed
            raw[:16] = [cut_label(v, *limits[past - 1]) for v in came[:16]]
            y[:16] = [learned_label(v, [], *limits[past - 1]) for v in came[:16]]
        lagged, last = lag_forecasts(X, raw, counts, past, stop, lag_space.ridges)
        for t in range(start, stop):
            y[t] = learned_label(came[t], lagged[t], *limits[t])
        for t in range(start, stop) if trees else ():
            recorded[t] = np.concatenate([next(one) for one in trees])
        S = standardised(X[:stop], X[:past]) if past else np.zeros((stop, X.shape[1]))
        offset = middle(y[:past]) if past else 0.0
        labels = y[:stop] - offset
        signs = past > 0 and np.isin(y[:past], (-1, 1)).all()
        C, B, sizes, starts = label_ranges(labels, period, signs)
        begun += [t for t in starts if start <= t < stop]
        views = S, normal_scores(S, past) if past else S
        scales = metrics(S[:past], y[:past], start) if past else {}
        median = median_distance(S[:past]) if past else 0.0
        columns = []
        for space in spaces:
            if space.lags:
                columns.append(lagged[:, ::2] - offset)  # AWV only foretells labels
            elif past or space.kernel == "linear":
                columns += space_forecasts(
                    space, views, labels, signs, sizes, past, scales, median, (seed, restart),
                    budget, deepest, start,
                )  # fmt: skip
        columns.append(recorded[:stop] - offset)
        columns += [] if experts is None else [experts[:stop] - offset]
        columns.append(last[:, None] - offset)  # the last label
        F = np.clip(np.concatenate(columns, axis=1) - C[:, None], -B[:, None], B[:, None])
        out[start:stop] = (aggregated(F, labels - C, B, starts) + C + offset)[start:]
        F += C[:, None]
        errors = out[:stop] - y[:stop] if start == 0 else (F - labels[:, None])[start:]
        losses = losses + (errors**2).sum(axis=0)
    if residuals is None:
        return out, losses
    unknown = (np.arange(len(y)) < restarts[0]) | (y != raw)
    pasts = [came[: t // 8 * 8][-1024:] for t in range(16, len(y))]
    reach = [1e70] * 16 + [naive.outlier_range(past, 20.0)[1] for past in pasts]
    lacking = np.where(unknown, 0.0, np.clip(y - out, np.negative(reach), reach))
    trees = tree_forecasts(X, lacking, raw, counts, 0, seed, *residuals)
    more = np.array([next(trees) for _ in y])
    begun_at = (raw - lacking)[:, None]
    sums = boosted_sums(X, raw[:, None], begun_at, seed, boosted, max(restarts))[:, 0]
    amended = np.tanh(np.arctanh(out.clip(-boosted[0], boosted[0])) + sums)
    F = np.column_stack([out, out[:, None] + more, amended])
    return in_epochs(begun, partial(ml_poly, debt=boosted[-2]), F, y), losses
