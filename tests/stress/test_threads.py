"""One learner in several threads: forecasts are those of one thread, and every round counts."""

import copy
import pickle
import threading

import numpy as np
import pytest

import oklnumba as okl
from tests.battery import every_learner, make, stream

THREADS = 8


def side_by_side(call, count=THREADS):
    """Make a call in so many threads, which start together; return what each returned."""
    gate, found, errors = threading.Barrier(count), [None] * count, []

    def work(i):
        gate.wait()
        try:
            found[i] = call(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(timeout=300)
    assert not any(one.is_alive() for one in threads)
    if errors:
        raise errors[0]
    return found


@every_learner
def test_forecasts_are_those_of_one_thread(cls, tries):
    one = make(cls)
    X, y = stream(one, 300)
    one.partial_fit(X[:200], y[:200])
    expected = [one.predict(X[i : i + 60]) for i in range(THREADS)]
    singles = [one.predict_one(x) for x in X[:THREADS]]

    def call(i):
        for _ in range(tries(2, 24)):
            np.testing.assert_array_equal(one.predict(X[i : i + 60]), expected[i])
            assert one.predict_one(X[i]) == singles[i]
        return True

    assert all(side_by_side(call))


@every_learner
def test_rounds_from_several_threads_all_count(cls, tries):
    """Half by one round, half in blocks; the first round too, which makes the state."""
    one, each = make(cls), tries(10, 60)
    X, y = stream(one, 3 * each * THREADS)

    def call(i):
        mine = slice(3 * each * i, 3 * each * (i + 1))
        for t, (x, label) in enumerate(zip(X[mine], y[mine], strict=True)):
            if t < each:
                one.learn_one(x, label)
            elif t == each:
                one.partial_fit(X[mine][each:], y[mine][each:])
            assert np.isfinite(one.predict_one(x))

    side_by_side(call)
    assert one.rounds == len(y)
    assert np.isfinite(one.predict(X[:50])).all()
    alone = make(cls).partial_fit(X, y)  # another order of the same rounds
    scale = np.abs(alone.predict(X[:50])).max() + 1.0
    assert np.abs(one.predict(X[:50])).max() < 10 * scale


def test_the_order_explains_the_state():
    """The state is that of the rounds in the order in which they came."""
    X, y = stream(make(okl.KRLS), 200)
    one, order, lock = make(okl.KRLS), [], threading.Lock()

    def call(i):
        for t in range(i, 200, THREADS):
            with lock:  # of the list and the round together
                order.append(t)
                one.learn_one(X[t], y[t])
            one.predict(X[:20])

    side_by_side(call)
    twin = make(okl.KRLS)
    for t in order:
        twin.learn_one(X[t], y[t])
    np.testing.assert_array_equal(one.predict(X), twin.predict(X))


def test_copies_pickles_and_files_while_others_learn(tmp_path):
    """Each is a learner of some number of rounds, never one in between."""
    X, y = stream(make(okl.NystromAWV), 400)
    one = okl.NystromAWV(okl.Gaussian(0.3), mu=0.1)
    one.partial_fit(X[:1], y[:1])
    found = []

    def call(i):
        if i < 2:
            for t in range(1 + i, 400, 2):
                one.learn_one(X[t], y[t])
        elif i == 2:
            for k in range(10):
                one.save(tmp_path / f"{k}.npz")
                found.append(okl.load(tmp_path / f"{k}.npz"))
        else:
            for k in range(10):
                found.append(copy.deepcopy(one) if k % 2 else pickle.loads(pickle.dumps(one)))

    side_by_side(call, 5)
    assert one.rounds == 400
    for other in found:
        assert len(other._used("labels")[0]) == other.rounds
        assert np.isfinite(other.learn_one(X[0], y[0]).predict(X[:20])).all()


@pytest.mark.parametrize(
    "make_one",
    [
        lambda: okl.OneVsRest(okl.FOGD(n_frequencies=20), [-1, 1]),
        lambda: okl.MultiOutput(okl.PKAWV(okl.TaylorFeatures(2))),
        lambda: okl.OnlineToBatch(okl.KRLS(okl.Gaussian(0.5)), draws=3),
    ],
    ids=["OneVsRest", "MultiOutput", "OnlineToBatch"],
)
def test_what_is_made_of_learners(make_one):
    X, y = stream(okl.POMDR(okl.Gaussian(1.0)), 320)
    one = make_one()
    labels = y.astype(int) if isinstance(one, okl.OneVsRest) else y
    labels = y[:, None] if isinstance(one, okl.MultiOutput) else labels
    side_by_side(lambda i: one.partial_fit(X[40 * i : 40 * i + 40], labels[40 * i : 40 * i + 40]))
    assert one.rounds == 320
    expected = one.predict(X)
    for got in side_by_side(lambda _: one.predict(X)):
        np.testing.assert_array_equal(got, expected)


def test_learners_of_their_own_share_no_buffers():
    """Even where they were given the same kernel and the same features."""
    kernel = okl.Gaussian(0.5)
    landmarks = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    features = okl.NystromFeatures(landmarks, kernel)
    X, y = stream(make(okl.OGD), 300)

    def call(i):
        one = okl.PKAWV(features) if i % 2 else okl.KRLS(kernel)
        run = okl.run(one, X, y)
        return run.predictions, features.transform(X[i:]), kernel(X[i : i + 20], X)

    alone = [call(i) for i in range(2)]
    for i, (predictions, mapped, matrix) in enumerate(side_by_side(call)):
        np.testing.assert_array_equal(predictions, alone[i % 2][0])
        np.testing.assert_array_equal(mapped, features.transform(X[i:]))
        np.testing.assert_array_equal(matrix, kernel(X[i : i + 20], X))


def test_samplers_in_several_threads():
    X = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    one = okl.KORS(okl.Gaussian(0.3))

    def call(i):
        one.partial_fit(X[50 * i : 50 * i + 50])
        return one.transform(X[:9])

    side_by_side(call)
    assert one._fitted()["points seen"] == 400
    assert len(one.indices_) == len(one.probabilities_) == one.size


def test_experts_with_their_own_threads_do_not_wait_for_themselves():
    members = [okl.PKAWV(okl.TaylorFeatures(m)) for m in (1, 2, 3)]
    one = okl.Experts(members, B=None)
    X, y = stream(one, 640)
    side_by_side(lambda i: one.partial_fit(X[80 * i : 80 * i + 80], y[80 * i : 80 * i + 80]))
    assert one.rounds == 640 and np.isfinite(one.weights).all()
