"""Random learners in random wrappers, played in bulk and in another way: one and the same run.

A case is its seed. ``OKLNUMBA_CROSSINGS=200`` plays so many, ``=2000:2100`` those.
"""

import copy
import os

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import oklnumba as okl
from tests.battery import CASES, labels, make
from tests.checks import COMPILED
from tests.test_nesting import WRAPPERS

first, _, last = os.environ.get("OKLNUMBA_CROSSINGS", "40").rpartition(":")
SEEDS = range(int(first or 0), int(last))


def pieces(X, y, cut):
    return [(X[i : i + cut].copy(), y[i : i + cut].copy()) for i in range(0, len(X), cut)]


def in_two(learner, X, y, cut, between):
    start = okl.run(learner, X[:cut], y[:cut])
    rest = okl.run(between(learner), X[cut:], y[cut:])
    return np.concatenate([start.predictions, rest.predictions])


def through_a_file(learner, folder):
    learner.save(folder / "learner.npz")
    return okl.load(folder / "learner.npz")


def by_hand(learner, X, y, delay, batch):
    """Forecast batch by batch, and learn each when the labels of ``delay`` later ones are asked."""
    forecasts, waiting = [], []
    for start in range(0, len(X), batch):
        rows = slice(start, start + batch)
        nothing = isinstance(learner, okl.MultiOutput) and not learner.rounds  # no width so far
        forecasts.append(np.zeros_like(y[rows]) if nothing else learner.predict(X[rows]))
        asked = np.zeros(len(y[rows]), dtype=int) if nothing else learner.ask(X[rows])
        waiting.append((X[rows], y[rows], asked))
        if len(waiting) > delay:
            learner.partial_fit(*waiting.pop(0))
    return np.concatenate(forecasts)


def single(learner, X, y):
    forecasts = [np.zeros_like(y[0]) if y.ndim == 2 else learner.predict_one(X[0])]
    for t in range(1, len(X)):
        learner.learn_one(X[t - 1], y[t - 1])
        forecasts.append(learner.predict_one(X[t]))
    return np.array(forecasts)


LATE = {"late": {"delay": 7, "batch": 1}, "batch": {"delay": 0, "batch": 24}}
WAYS = {
    "pieces": lambda one, X, y, cut, _: np.concatenate(
        [okl.run(one, *piece).predictions for piece in pieces(X, y, cut)]
    ),
    "pairs": lambda one, X, y, cut, _: okl.run(one, iter(pieces(X, y, cut))).predictions,
    "single": lambda one, X, y, cut, _: single(one, X, y),
    "saved": lambda one, X, y, cut, folder: in_two(
        one, X, y, cut, lambda half: through_a_file(half, folder)
    ),
    "copied": lambda one, X, y, cut, _: in_two(one, X, y, cut, copy.deepcopy),
    "sparse": lambda one, X, y, cut, _: okl.run(one, scipy.sparse.csr_array(X), y).predictions,
    "frame": lambda one, X, y, cut, _: okl.run(one, pd.DataFrame(X), y).predictions,
    "late": lambda one, X, y, cut, _: by_hand(one, X, y, **LATE["late"]),
    "batch": lambda one, X, y, cut, _: by_hand(one, X, y, **LATE["batch"]),
}


def draw(rng):
    """Return a learner in up to two wrappers, a stream for it, and a way to play it."""
    variants, wraps, learner = [case.values[0] for case in CASES], [], None
    while learner is None:
        wraps = [list(WRAPPERS)[k] for k in rng.integers(len(WRAPPERS), size=rng.integers(3))]
        try:
            learner = make(variants[rng.integers(len(variants))])
            for name in wraps:
                learner = WRAPPERS[name](learner)
        except ValueError:  # they do not go together
            learner = None
    way = list(WAYS)[rng.integers(len(WAYS))]
    if isinstance(learner, okl.OnlineToBatch):  # predict is of other functions than its run
        way = "pieces"
    n, d = (
        rng.choice([60, 300, 700 if way in ("single", "late") else 2600]),
        rng.choice([1, 2, 5, 17]),
    )
    X = rng.uniform(-1, 1, (n, d))
    if rng.random() < 0.3:  # rows that repeat, sorted
        X = np.sort(rng.integers(-1, 2, (n, d)).astype(float), axis=0)
    y = labels(learner, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n))
    if "OneVsRest" in wraps:
        y = np.where(y > 0, 1.0, -1.0)
    return learner, X, np.column_stack([y, -y]) if "MultiOutput" in wraps else y, way


def played(call):
    """Return forecasts, or the kind of an error that says why there are none."""
    try:
        return np.asarray(call(), dtype=float)
    except (ValueError, FloatingPointError) as error:
        assert len(str(error)) > 15
        return type(error)


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_nesting_plays_alike_in_bulk_and_otherwise(seed, tmp_path):
    rng = np.random.default_rng(seed)
    learner, X, y, way = draw(rng)
    what = f"{learner!r}, {X.shape}, {way}"
    cut = int(rng.integers(1, len(X)))
    bulk = type(learner)(**learner.get_params(deep=False))
    expected = played(lambda: okl.run(bulk, X, y, **LATE.get(way, {})).predictions)
    found = played(lambda: WAYS[way](learner, X, y, cut, tmp_path))
    if isinstance(expected, type) or isinstance(found, type):
        assert found is expected, what
        return
    assert found.shape == expected.shape, what
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=1e-6, err_msg=what)


@pytest.mark.quick
def test_the_nestings_drawn_cross_what_there_is():
    """Few are refused, and each way, each wrapper and most learners are among a hundred."""
    drawn = [draw(np.random.default_rng(seed)) for seed in range(100)]
    assert {way for *_, way in drawn} == set(WAYS)
    text = " ".join(repr(learner) for learner, *_ in drawn)
    assert all(f"{name}(" in text for name in WRAPPERS)
    assert len({type(learner) for learner, *_ in drawn}) > 20
