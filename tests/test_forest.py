"""The trees of SelfTuning beside their definition, in any cut of the stream."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from oklnumba.learners.self_tuning import settings
from oklnumba.learners.self_tuning.forest import Boosted, Forest
from oklnumba.learners.self_tuning.labels import NO_LABELS, Past, Rounds, look_back
from tests.reference import naive_forest, naive_self_tuning

N = 230


def stream(name, K=1, n=N):
    rng = np.random.default_rng(len(name))
    X = rng.standard_normal((n, 4)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 1e6, 0.0, 0.0]
    y = np.sign(X[:, 0]) + X[:, 1] / 100.0 + 0.1 * rng.standard_normal(n)
    if name == "sorted":
        X = X[np.argsort(X[:, 0])]
    if name == "repeated":
        X = X[rng.integers(0, 30, n)]
    if name == "binary":
        X = np.where(X > np.median(X, axis=0), 1.0, -1.0)
    if name == "codes":  # equal and complementary columns, whose gains are equal
        X = rng.integers(0, 3, (n, 4)).astype(float)
        X[:, 1], X[:, 2] = X[:, 0], 2.0 - X[:, 0]
        y = np.sign(X[:, 0] - X[:, 3] + 0.1)
    if name == "constant":
        X[:, 0], y = 7.0, np.where(np.arange(n) < 120, 3.0, -1.0)
    if name == "wild":
        X[::50, 0], X[7] = 1e9, [-1e308, 1e308, 0.0, 1e-320]
        y[100:110] = 1e60
    Y = np.stack([y * (-10.0) ** k + k * X[:, 3] for k in range(K)], axis=1)
    return X, Y


def play(X, Y, cuts, lags=0, seed=0, labels=None):
    """The forecasts of a forest in pieces, and the forest; boosted trees if there are labels."""
    K, start, parts = Y.shape[1], 0, []
    boosted = labels is not None
    forest = Forest(K, lags, settings.SHRINKAGES, seed, settings.TREES, settings.GROWTHS, 1.5)
    if boosted:
        how = settings.BOOSTING
        forest = Boosted(K, 0, (0.0,), seed, how.trees, how.growths, 0.5)
    counts, nobody = np.arange(len(X)), np.empty((len(X), 0, K))
    past = Past(X, Y, labels if boosted else Y, counts, nobody)

    def past_of(n=None):  # all that came, if not the first n
        return Past(*[a[: n or start] for a in past])

    for stop in sorted({*cuts, *forest.timetable.parts, len(X)}):
        if start < stop <= len(X):
            parts.append(forest.play(past.rounds(slice(start, stop))))
            single, start = stop - start == 1, stop
            forest.grow(past_of, stop, single)
    return np.concatenate(parts), forest


def naive_forecasts(X, Y, lags, most, seed=0):
    """The same from the definition."""
    K, base, Z = Y.shape[1], np.zeros(Y.shape), X
    if lags:
        last, changes = naive_self_tuning.look_back(Y[:, 0], np.arange(len(X)))
        base, Z = last[:, None], np.column_stack([last, changes[:, : lags - 1], X])
    target = np.concatenate([0.0 * Y[:1] if lags else Y[:1], (Y - base)[1:]])
    how = settings.TREES, settings.SHRINKAGES, [seed, lags], most
    rounds = naive_forest.forest(
        lambda a, b: (Z[a:b], target[a:b]), K, settings.GROWTHS, *how
    )  # fmt: skip
    return np.stack([next(rounds) + base[t] for t in range(len(X))])


@pytest.mark.slow
@pytest.mark.parametrize(("K", "lags"), [(1, 0), (1, 3), (3, 0)])
@pytest.mark.parametrize(
    "name", ["plain", "sorted", "repeated", "codes", "binary", "constant", "wild"]
)
def test_forecasts_are_those_of_the_definition(name, K, lags, monkeypatch):
    monkeypatch.setattr(settings, "MOST_GROWN", 130)
    monkeypatch.setattr(settings, "TREES", 3)
    X, Y = stream(name, K)
    found, expected = play(X, Y, [], lags)[0], naive_forecasts(X, Y, lags, 130)
    scale = np.maximum.accumulate(np.abs(Y).max(axis=1, initial=1.0))[:, None, None]
    assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-9)


@pytest.mark.parametrize("cuts", [range(N), range(0, N, 7), [91, 95, 185]])
def test_no_cut_changes_a_bit(cuts):
    X, Y = stream("plain")
    found, forest = play(X, Y, cuts)
    expected, whole = play(X, Y, [])
    assert_array_equal(found, expected)
    rounds = Rounds(X[:5], NO_LABELS, NO_LABELS, look_back(Y, np.zeros(5, dtype=np.int64)))
    assert_array_equal(forest.play(rounds), whole.play(rounds))


def test_new_trees_learn_more_rows_than_a_block_has(monkeypatch):
    X, Y = stream("plain")
    expected = play(X, Y, [])[0]
    monkeypatch.setattr(settings, "BLOCK_ROWS", 5)  # the trees of round 192 learn 12 rows at once
    assert_array_equal(play(X, Y, range(0, N, 4))[0], expected)


def test_an_output_that_differs_by_rounding_chooses_no_split():
    X, Y = stream("plain", 2)
    Y[:, 1] = -1.0  # as a class that no row has yet, whose residuals are rounding
    alone = play(X, Y[:, :1], [])[0][:, :, 0]
    Y[:, 1] += np.random.default_rng(1).integers(-4, 5, N) * 2.0**-53
    both = play(X, Y, [])[0]
    assert_array_equal(both[:, :, 0], alone)
    assert_allclose(both[1:, :, 1], -1.0, rtol=1e-14)


@pytest.mark.parametrize("only_two", [True, False])
def test_chance_not_rounding_chooses_among_inputs_without_gain(only_two):
    cells = np.indices((2,) * 5).reshape(5, -1).T * 2.0 - 1.0
    half = cells[cells.prod(axis=1) > 0]  # the other cells show which inputs were split
    X = np.concatenate([np.tile(half, (45, 1)), np.tile(cells, (2, 1))])  # grown on the first 720
    if not only_two:
        X = np.column_stack([X, np.arange(len(X)) // 240])
    signs = X[:, :1] * X[:, 1:2]
    Y = signs + 0.3 * X[:, 2:3] * X[:, 3:4]
    found = play(X, Y, [])[0][768:]
    assert_allclose(play(X, 3.0 * Y + 0.1, [])[0][768:], 3.0 * found + 0.1, rtol=1e-9)
    assert np.abs(found[:, 0] - Y[768:]).max() > 0.1  # the first inputs alone would suffice
    boosted = play(X, signs - 0.3, [], labels=signs)[0]
    turned = np.r_[719:-1:-1, 720 : len(X)]  # so that sums are rounded otherwise
    X, signs = X[turned], signs[turned]
    assert_allclose(play(X, signs - 0.3, [], labels=signs)[0][768:], boosted[768:], rtol=1e-9)


@pytest.mark.parametrize("name", ["plain", "sorted", "binary", "codes", "wild"])
def test_boosted_trees_are_those_of_the_definition_in_any_cut(name, monkeypatch):
    monkeypatch.setattr(settings, "BOOSTING", settings.BOOSTING._replace(inputs=3))
    X, Y = stream(name, 3)
    labels, P = np.where(Y >= np.median(Y, axis=0), 1.0, -1.0), np.tanh(Y / np.abs(Y).max(axis=0))
    labels[5, 2] = 0.5  # one output is no class
    labels[7], P[7] = 1e4, 1e4  # an outlier, which was not learned
    found, _ = play(X, labels - P, [100, 101, 200], labels=labels)
    assert_array_equal(play(X, labels - P, range(N), labels=labels)[0], found)
    U = naive_self_tuning.boosted_sums(X, labels[:, :2], P[:, :2], 0, settings.BOOSTING)
    assert_allclose(found[48:, 0, :2], U[48:], rtol=1e-7, atol=1e-9)
    assert not found[:48].any() and not found[:, 0, 2].any() and U[48:].all()
