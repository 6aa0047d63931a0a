"""One learner in several threads: forecasts are those of one thread, and every round counts."""

import copy
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import oklnumba as okl
from tests.battery import LEARNERS, contents, make, stream

THREADS = 8
KERNEL = okl.Gaussian(0.3)
PLAYERS = {cls.__name__: (lambda cls=cls: make(cls)) for cls in LEARNERS} | {
    "KRLS with many atoms": lambda: okl.KRLS(KERNEL, threshold=1e-3),
    "OneVsRest": lambda: okl.OneVsRest(okl.NystromAWV(KERNEL, mu=0.01), [-1, 1]),
    "OneVsRest, a learner a class": lambda: okl.OneVsRest(okl.KRLS(KERNEL), [-1, 1]),
    "MultiOutput": lambda: okl.MultiOutput(okl.KRLS(KERNEL, threshold=1e-3)),
    "Experts that grow": lambda: okl.Experts(
        [okl.KRLS(KERNEL, threshold=1e-3), okl.Standardized(okl.NystromAWV(KERNEL, mu=0.01))]
        + [okl.GrowingPKAWV(okl.TaylorFeatures(1), first=20), okl.SketchedKONS(KERNEL)]
    ),
    "Intervals": lambda: okl.Intervals(okl.SelfTuning(5)),
    "OnlineToBatch": lambda: okl.OnlineToBatch(okl.KRLS(okl.Gaussian(0.2)), draws=3),
}
every_player = pytest.mark.parametrize("name", PLAYERS)


def data(player, n):
    """Return a stream for a learner; labels -1 and +1 for classes, (n, 2) for two outputs."""
    X, y = stream(make(okl.POMDR) if isinstance(player, okl.OneVsRest) else player, n)
    if isinstance(player, okl.MultiOutput):
        return X, np.column_stack([y, -y])
    return X, y.astype(int) if isinstance(player, okl.OneVsRest) else y


def side_by_side(call):
    """Make a call in eight threads, which start together; return what each returned."""
    gate, pool = threading.Barrier(THREADS), ThreadPoolExecutor(THREADS)
    calls = [pool.submit(lambda i=i: (gate.wait(), call(i))[1]) for i in range(THREADS)]
    return [one.result(timeout=300) for one in calls]


def note_blocks(one):
    """Note the blocks that a learner plays, which it does in some order; return the list."""
    order, play = [], one._play

    def playing(X, y, trace):
        order.append((X.copy(), one._names()[y] if isinstance(one, okl.OneVsRest) else y.copy()))
        play(X, y, trace)

    one._play = playing
    return order


@pytest.mark.parametrize("cls", [okl.OGD, okl.AdaptiveFTRL, okl.CoinBetting])
def test_rounds_of_a_game_in_several_threads(cls):
    learner = make(cls).reset(2)

    def call(i):
        for t in range(200):
            learner.update([0.1 * (-1.0) ** t, 0.0])

    side_by_side(call)
    assert learner.rounds == 200 * THREADS


@pytest.mark.slow
@every_player
def test_all_calls_at_once_are_those_of_some_order(name, tmp_path):
    """Eight threads learn, forecast, copy, save, ask for health; the first round among them.

    Whatever was seen is that of one thread which plays the same blocks in the order they came in.
    """
    one, each = PLAYERS[name](), 3
    X, y = data(one, 2 * each * THREADS)
    order, seen = note_blocks(one), []

    def call(i):
        mine = slice(2 * each * i, 2 * each * (i + 1))
        for t, (x, label) in enumerate(zip(X[mine], y[mine], strict=True)):
            if t < each:
                one.learn_one(x, label)
            elif t == each:
                one.partial_fit(X[mine][each:], y[mine][each:])
            seen.append(("forecasts", one.predict(X[:5]).tobytes()))
            one.predict_one(x)
            getattr(one, "importance", None)  # which forecasts, where it is there
            if t % 10 == i % 3:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rounds = one.health().rounds
                assert 0 < rounds <= len(y)
            elif t == each + 1:
                path = tmp_path / f"{i}.npz"
                one.save(path)
                copies = okl.load(path), copy.deepcopy(one), pickle.loads(pickle.dumps(one))
                seen.extend(("contents", contents(other)) for other in copies)

    side_by_side(call)
    assert one.rounds == len(y) == sum(len(labels) for _, labels in order)
    twin, there_were = PLAYERS[name](), []
    for inputs, labels in order:
        twin.partial_fit(inputs, labels)
        there_were += [("forecasts", twin.predict(X[:5]).tobytes()), ("contents", contents(twin))]
    assert contents(one) == contents(twin)
    assert all(what in there_were for what in seen)


def test_learners_of_their_own_share_no_buffers():
    """Even where they were given the same kernel and the same features."""
    landmarks = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    features = okl.NystromFeatures(landmarks, KERNEL)
    X, y = stream(make(okl.OGD), 300)

    def call(i):
        one = okl.PKAWV(features) if i % 2 else okl.KRLS(KERNEL)
        run = okl.run(one, X, y)
        return run.predictions, features.transform(X[i:]), KERNEL(X[i : i + 20], X)

    alone = [call(i) for i in range(2)]
    for i, (predictions, mapped, matrix) in enumerate(side_by_side(call)):
        np.testing.assert_array_equal(predictions, alone[i % 2][0])
        np.testing.assert_array_equal(mapped, features.transform(X[i:]))
        np.testing.assert_array_equal(matrix, KERNEL(X[i : i + 20], X))


def test_samplers_in_several_threads():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    one = okl.KORS(KERNEL)

    def call(i):
        one.partial_fit(X[50 * i : 50 * i + 50])
        return one.transform(X[:9])

    side_by_side(call)
    assert one._seen == 400
    assert len(one.indices_) == len(one.probabilities_) == one.size


def test_experts_with_their_own_threads_do_not_wait_for_themselves():
    one = okl.Experts([okl.PKAWV(okl.TaylorFeatures(m)) for m in (1, 2, 3)], B=None)
    X, y = stream(one, 640)
    side_by_side(lambda i: one.partial_fit(X[80 * i : 80 * i + 80], y[80 * i : 80 * i + 80]))
    assert one.rounds == 640 and np.isfinite(one.weights).all()
