"""One battery for every exported learner: a new class joins when it is exported."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import math
import pickle
import re
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import oklnumba as okl
from oklnumba.learners.learner import Learner
from oklnumba.params import Params

COMPILED = not numba.config.DISABLE_JIT
N = 600 if COMPILED else 90  # rounds of an ordinary stream

LEARNERS = list(
    dict.fromkeys(
        value
        for name in okl.__all__
        if isinstance(value := getattr(okl, name), type) and issubclass(value, Learner)
    )
)
every_learner = pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
# ``run`` says so where Taylor features hold little of the kernel; here that is meant.
far_from_the_origin = pytest.mark.filterwarnings("ignore:the Taylor basis holds")


# ---- what the tests are made of ----


def argument(name):
    """Return a value for a constructor's argument that has no default."""
    rules = {
        "kernel": lambda: okl.Gaussian(1.0),
        "kernels": lambda: [okl.Gaussian(0.5), okl.Gaussian(2.0)],
        "features": lambda: okl.TaylorFeatures(degree=2, sigma=1.0),
        "learner": lambda: getattr(okl, "OGD", okl.FOGD)(),
        "learners": lambda: [okl.KernelAWV(okl.Gaussian(1.0), lam=lam) for lam in (1.0, 0.1)],
    }
    assert name in rules, f"no rule for the argument {name!r}: give it a default or add one here"
    return rules[name]()


class Variant(NamedTuple):
    """A learner with one hyper-parameter that is not the default."""

    cls: type
    name: str
    value: Any


def variations():
    """Return a variant of every learner for each hyper-parameter with a rule here."""
    for cls in LEARNERS:
        learner = make(cls)
        params = learner.get_params(deep=False)
        rules = {
            "lam": 1e-3 if params.get("lam") else None,
            "forecaster": "ridge",
            "max_size": 12,
            "budget": 20 if not {"sketch", "rank"} & set(params) else None,
            "loss": "squared" if learner._loss().classes else "logistic",
            "features": okl.FourierFeatures(12),
            "kernel": okl.Matern(2.5, sigma=1.5),
            "domain": "simplex",
            "schedule": "sqrt",
            "kind": {"sqrt": "adagrad", "aggregating": "average"}.get(params.get("kind")),
        }
        rules |= {name: not value for name, value in params.items() if isinstance(value, bool)}
        for name, value in rules.items():
            if name in params and value is not None:
                yield Variant(cls, name, value)


def make(cls, **params):
    """Return a learner with its default hyper-parameters, or a variant."""
    if isinstance(cls, Variant):
        return make(cls.cls, **({cls.name: cls.value} | params))
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in params:
            params[name] = argument(name)
    return cls(**params)


def labels(learner, values):
    """Return labels in the domain of a learner's loss: signs, or numbers in [-1, 1]."""
    if learner._loss().classes:
        return np.where(np.asarray(values) > 0.0, 1.0, -1.0)
    return np.clip(values, -1.0, 1.0)


def stream(learner, n=N, seed=0):
    """Return an ordinary noisy stream of n rounds."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    values = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(n)
    return X, labels(learner, values)


@functools.cache
def plain(cls, n=N):
    """Return the run of a fresh learner over the ordinary stream, and its contents afterwards."""
    learner = make(cls)
    return okl.run(learner, *stream(learner, n)), contents(learner)


def contents(learner):
    """Return all that save writes, as something that can be compared."""
    meta, arrays = learner._contents()
    return json.dumps(meta), {n: (str(a.dtype), a.shape, a.tobytes()) for n, a in arrays.items()}


def saved(learner, path):
    """Return what save writes, read back from the file."""
    learner.save(path)
    with np.load(path, allow_pickle=False) as file:
        return {n: (str(a.dtype), a.shape, a.tobytes()) for n, a in file.items()}


def by_hand(learner, X, y):
    """Play the protocol with predict_one and learn_one."""
    forecasts, sizes = [], []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
        sizes.append(learner.size)
    return np.array(forecasts), np.array(sizes)


def assert_same_run(got, expected):
    """All that two runs recorded, but for the time, is the same to the bit."""
    for name in ("predictions", "losses", "sizes", "checkpoints"):
        assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)
    assert_array_equal(got.mistakes, expected.mistakes)
    assert (got.loss, got.rounds) == (expected.loss, expected.rounds)
    assert got.learner == expected.learner
    assert (got.certificate is None) == (expected.certificate is None)
    if got.certificate is not None:
        for name, values in expected.certificate._asdict().items():
            assert_array_equal(getattr(got.certificate, name), values, err_msg=name)


def assert_close_run(got, expected):
    """Forecasts agree to rounding, and dictionaries are the same."""
    assert_allclose(got.predictions, expected.predictions, rtol=1e-9, atol=1e-12)
    assert_array_equal(got.sizes, expected.sizes)
    if expected.certificate is not None:
        for name, values in expected.certificate._asdict().items():
            assert_allclose(getattr(got.certificate, name), values, rtol=1e-8, atol=1e-10)


CASES = [pytest.param(cls, id=cls.__name__) for cls in LEARNERS]
CASES += [pytest.param(v, id=f"{v.cls.__name__}-{v.name}") for v in variations()]
every_variant = pytest.mark.parametrize("case", CASES)


def test_there_are_learners_and_the_battery_can_make_them():
    assert len(LEARNERS) >= 5
    for cls in LEARNERS:
        assert make(cls).rounds == 0


# ---- forecasts ----


@every_learner
def test_before_any_data_every_forecast_is_zero(cls, tmp_path):
    learner = make(cls)
    fresh = contents(learner)
    for width in (1, 3):  # nothing is remembered of inputs that were only looked at
        X = np.ones((5, width))
        assert learner.predict_one(X[0]) == 0.0 and isinstance(learner.predict_one(X[0]), float)
        assert_array_equal(learner.predict(X), np.zeros(5))
        assert (learner.rounds, learner.size) == (0, 0)
    assert contents(learner) == fresh
    run, _ = plain(cls)
    assert run.predictions[0] == 0.0


def hard_stream(name, learner, n):
    rng = np.random.default_rng(5)
    X, y = stream(learner, n, seed=5)
    if name == "repeated":
        X, y = np.repeat(X[:1], n, axis=0), np.repeat(y[:1], n)
    elif name == "repeated with other labels":
        X = np.repeat(X[:1], n, axis=0)
    elif name == "zero":
        X = np.zeros_like(X)
    elif name == "constant label":
        y = np.ones(n)
    elif name == "alternating":
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        X = np.repeat(X[: n // 2], 2, axis=0)[:n]
    elif name == "sorted":
        X, y = np.sort(X, axis=0), np.sort(y)
    elif name == "duplicated":
        X, y = np.repeat(X[: n // 10 + 1], 10, axis=0)[:n], y
    elif name == "close":
        X = X[:1] + 1e-7 * X / np.sqrt(3)
    elif name == "spread":
        X = X * 10.0 ** np.array([-8.0, 0.0, 6.0])
    elif name == "far":
        X = X + 1e6
    else:
        assert name == "wide" and n >= 10
        X = rng.standard_normal((n, 40))
    kernelised = {"kernel", "kernels", "features", "learners"} & set(learner._param_names())
    if not kernelised:  # a linear learner sees these inputs as they are: keep them bounded
        X = X / max(1.0, np.sqrt((X**2).sum(axis=1).max()))
    return X, y


HARD = (
    "repeated", "repeated with other labels", "zero", "constant label", "alternating", "sorted",
    "duplicated", "close", "spread", "far", "wide",
)  # fmt: skip


@every_variant
@pytest.mark.parametrize("name", HARD)
@far_from_the_origin
def test_hard_streams_give_finite_forecasts_in_bulk_and_by_hand(case, name):
    n = 200 if COMPILED else 40
    learner, other = make(case), make(case)
    X, y = hard_stream(name, learner, n)
    run = okl.run(learner, X, y)
    assert run.finished and run.rounds == n == learner.rounds
    assert np.isfinite(run.predictions).all() and np.isfinite(run.losses).all()
    assert np.isfinite(learner.predict(X)).all()
    if name != "close":  # whether one point lies in the span of others is decided by rounding there
        forecasts, sizes = by_hand(other, X, y)
        assert_allclose(forecasts, run.predictions, rtol=1e-9, atol=1e-12)
        assert_array_equal(sizes, run.sizes)


@every_variant
def test_growth_through_doublings_of_the_buffers(case):
    n = 700 if COMPILED else 100
    bulk, mixed = make(case), make(case)
    X, y = stream(bulk, n, seed=1)
    X = 2 * X  # more of the kernel's space, so that dictionaries double too
    bulk.partial_fit(X, y)
    parts = [by_hand(mixed, X[: n // 3], y[: n // 3])[0]]
    parts.append(mixed.predict(X[n // 3 : n // 3 + 1]))
    mixed.partial_fit(X[n // 3 : n - 50], y[n // 3 : n - 50])
    forecasts, sizes = by_hand(mixed, X[n - 50 :], y[n - 50 :])
    assert mixed.rounds == bulk.rounds == n and mixed.size == bulk.size == sizes[-1]
    assert_allclose(mixed.predict(X), bulk.predict(X), rtol=1e-9, atol=1e-12)
    again = make(case)
    whole = okl.run(again.partial_fit(X[: n - 50], y[: n - 50]), X[n - 50 :], y[n - 50 :])
    assert_allclose(forecasts, whole.predictions, rtol=1e-9, atol=1e-12)
    assert np.isfinite(np.concatenate(parts)).all()


@every_learner
def test_inputs_are_neither_changed_nor_kept(cls):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 80)
    expected = okl.run(twin, X.copy(), y.copy())
    twin.partial_fit(X.copy(), y.copy())
    twin.learn_one(X[0].copy(), y[0])

    def given_away(call):
        """Let a call have copies, look at them, then spoil them."""
        A, b = X.copy(), y.copy()
        result = call(A, b)
        assert_array_equal(A, X)
        assert_array_equal(b, y)
        A[:], b[:] = -7.0, -7.0
        return result

    run = given_away(lambda A, b: okl.run(learner, A, b))
    assert_array_equal(run.predictions, expected.predictions)
    given_away(lambda A, b: learner.partial_fit(A, b))
    given_away(lambda A, b: learner.learn_one(A[0], b[0]))
    forecasts = given_away(lambda A, b: learner.predict(A))
    assert_array_equal(forecasts, twin.predict(X))
    one = given_away(lambda A, b: learner.predict_one(A[3]))
    assert one == twin.predict_one(X[3])
    assert contents(learner) == contents(twin)


@every_variant
@pytest.mark.parametrize("n", [1, 2, 40, 300 if COMPILED else 60])
def test_forecasts_change_nothing(case, n, tmp_path):
    learner = make(case)
    X, y = stream(learner, n + 50, seed=2)
    learner.partial_fit(X[:n], y[:n])
    before = contents(learner)
    first = learner.predict(X)
    assert_array_equal(learner.predict(X), first)
    ones = [learner.predict_one(x) for x in X]
    assert_array_equal([learner.predict_one(x) for x in X], ones)
    assert_allclose(ones, first, rtol=1e-9, atol=1e-12)
    assert_array_equal(learner.predict(X), first)
    assert contents(learner) == before


@every_variant
def test_a_run_with_forecasts_in_between_is_bitwise_the_run_without(case):
    n = 150 if COMPILED else 50
    quiet, asked = make(case), make(case)
    X, y = stream(quiet, n)
    for t in range(n):
        quiet.learn_one(X[t], y[t])
        asked.predict_one(X[t])
        asked.predict(X[t : t + 20])
        asked.learn_one(X[t], y[t])
        asked.predict_one(X[0])
        assert (asked.size, asked.rounds) == (quiet.size, quiet.rounds)
    assert contents(asked) == contents(quiet)
    quiet.partial_fit(X, y)
    asked.predict(X)
    asked.partial_fit(X, y)
    assert contents(asked) == contents(quiet)
    assert_array_equal(asked.predict(X), quiet.predict(X))


@every_variant
def test_a_forecast_never_depends_on_its_own_or_a_later_label(case):
    run, _ = plain(case)
    learner = make(case)
    X, y = stream(learner)
    cuts = [t for t in (0, 1, 2, 3, 63, 64, 65, 255, 256, 257, 511, 512, 513, N - 1) if t < N]
    for t in cuts:
        other = y.copy()
        other[t:] = -other[t:]
        changed = okl.run(make(case), X, other)
        assert_array_equal(changed.predictions[: t + 1], run.predictions[: t + 1], err_msg=f"{t}")
        assert_array_equal(changed.sizes[:t], run.sizes[:t], err_msg=f"{t}")
        if t < N - 50:
            assert (changed.predictions[t + 1 :] != run.predictions[t + 1 :]).any()


# ---- the same however it is cut, and whatever holds the data ----


@every_variant
def test_a_run_is_the_loop_written_by_hand(case):
    run, _ = plain(case)
    learner = make(case)
    forecasts, sizes = by_hand(learner, *stream(learner))
    assert_allclose(forecasts, run.predictions, rtol=1e-9, atol=1e-12)
    assert_array_equal(sizes, run.sizes)


PIECES = st.lists(
    st.tuples(st.integers(1, 130), st.sampled_from(["run", "chunks", "hand", "fit"])),
    min_size=1,
    max_size=8,
)


@every_variant
@settings(max_examples=15 if COMPILED else 3)
@given(pieces=PIECES)
def test_any_cut_of_the_stream_gives_the_same_run(case, pieces):
    run, _ = plain(case)
    learner = make(case)
    X, y = stream(learner)
    forecasts, start = [], 0
    for rows, how in [*pieces, (N, "run")]:
        A, b = X[start : start + rows], y[start : start + rows]
        start += len(A)
        if len(A) == 0:
            break
        if how == "run":
            forecasts.append(okl.run(learner, A, b).predictions)
        elif how == "chunks":
            halves = np.array_split(np.arange(len(A)), 2 if len(A) > 1 else 1)
            forecasts.append(okl.run(learner, ((A[i], b[i]) for i in halves)).predictions)
        elif how == "hand":
            forecasts.append(by_hand(learner, A, b)[0])
        else:
            learner.partial_fit(A, b)
            forecasts.append(run.predictions[start - len(A) : start])  # not shown: skip
        assert learner.rounds == start and learner.size == run.sizes[start - 1]
    assert_allclose(np.concatenate(forecasts), run.predictions, rtol=1e-9, atol=1e-12)


def one_row_chunks(X, y):
    return ((X[i : i + 1], y[i : i + 1]) for i in range(len(X)))


def uneven_chunks(X, y):
    cuts = [1, 2, 70, 71, len(X) - 1]
    return zip(np.split(X, cuts), np.split(y, cuts), strict=True)


def paired_lists(X, y):
    return [(X[:20].tolist(), y[:20].tolist()), (X[20:].tolist(), y[20:].tolist())]


@every_variant
@pytest.mark.parametrize("chunks", [one_row_chunks, uneven_chunks, paired_lists])
def test_run_over_chunks(case, chunks):
    n = 160
    expected, _ = plain(case, n)
    learner = make(case)
    run = okl.run(learner, chunks(*stream(learner, n)))
    assert run.finished and learner.rounds == n
    assert_close_run(run, expected)
    assert_array_equal(run.mistakes, expected.mistakes)
    assert_allclose(run.losses, expected.losses, rtol=1e-8, atol=1e-12)


def read_only(a, path):
    a = a.copy()
    a.flags.writeable = False
    return a


def mapped(a, path):
    np.save(path, a)
    return np.load(path, mmap_mode="r")


HOLDERS = {
    "read-only": read_only,
    "memory-mapped": mapped,
    "Fortran": lambda a, path: np.asfortranarray(a),
    "strided": lambda a, path: np.repeat(a, 2, axis=0)[::2],
    "backwards": lambda a, path: a[::-1].copy()[::-1],
    "lists": lambda a, path: a.tolist(),
    "objects": lambda a, path: a.astype(object),
    "big-endian": lambda a, path: a.astype(">f8"),
}


@every_learner
@pytest.mark.parametrize("holder", HOLDERS)
def test_whatever_holds_the_data_the_run_is_bitwise_the_same(cls, holder, tmp_path):
    n = 90
    expected, after = plain(cls, n)
    X, y = stream(make(cls), n)
    A, b = (HOLDERS[holder](a, tmp_path / f"{i}.npy") for i, a in enumerate((X, y)))
    learner = make(cls)
    assert_same_run(okl.run(learner, A, b), expected)
    assert contents(learner) == after
    fitted, twin = make(cls).partial_fit(A, b), make(cls).partial_fit(X, y)
    assert contents(fitted) == contents(twin)
    assert_array_equal(fitted.predict(A), twin.predict(X))
    assert fitted.predict_one(A[1]) == twin.predict_one(X[1])
    fitted.learn_one(A[2], b[2])
    twin.learn_one(X[2], y[2])
    assert contents(fitted) == contents(twin)


@every_learner
def test_single_precision_and_integers_are_read_as_doubles(cls):
    X, y = stream(make(cls), 90)
    small = X.astype(np.float32), y.astype(np.float32)
    whole = np.round(5 * X).astype(np.int64), np.where(y > 0, 1, -1)
    for A, b in (small, whole):
        got = okl.run(make(cls), 0.1 * A if A is whole[0] else A, b)
        expected = okl.run(make(cls), *(a.astype(float) for a in (A, b))) if A is small[0] else None
        if expected is None:
            expected = okl.run(make(cls), 0.1 * A.astype(float), b.astype(float))
        assert_same_run(got, expected)
    integers, doubles = make(cls).partial_fit(*whole), make(cls)
    doubles.partial_fit(*(a.astype(float) for a in whole))
    assert contents(integers) == contents(doubles)


@every_learner
def test_the_same_seed_gives_the_same_run_and_another_seed_another_state(cls):
    run, after = plain(cls)
    again = make(cls)
    assert_same_run(okl.run(again, *stream(again)), run)
    assert contents(again) == after
    if "seed" in again._param_names():
        other = make(cls, seed=12345)
        okl.run(other, *stream(other))
        state, arrays = contents(other)
        assert (json.loads(state).get("state"), arrays) != (
            json.loads(after[0]).get("state"),
            after[1],
        )


@every_learner
def test_what_a_run_records(cls):
    run, _ = plain(cls)
    learner = make(cls)
    X, y = stream(learner)
    loss = learner._loss()
    assert run.loss == loss.name and run.finished and run.rounds == N
    assert_allclose(run.losses, loss.value(run.predictions, y), rtol=1e-14)
    assert run.mean_loss == pytest.approx(run.losses.mean(), rel=1e-14)
    assert run.sizes.dtype.kind == "i" and (run.sizes >= 0).all() and run.seconds > 0.0
    assert run.checkpoints[-1] == N and (np.diff(run.checkpoints) > 0).all()
    assert (np.diff(run.checkpoint_seconds) >= 0.0).all()
    assert run.checkpoint_seconds[-1] == run.seconds
    if loss.classes:
        assert_array_equal(run.mistakes, y * run.predictions <= 0.0)
        assert run.mistake_rate == run.mistakes.mean() and bool(run.mistakes[0])
    else:
        assert run.mistakes is None and run.mistake_rate is None
    shown = repr(run)
    assert "\n" not in shown and cls.__name__ in shown and str(N) in shown
    other = okl.run(make(cls), X, y, loss="absolute")
    assert_array_equal(other.predictions, run.predictions)
    assert_allclose(other.losses, abs(y - run.predictions), rtol=1e-14)


# ---- saving, copies, hyper-parameters ----


@every_variant
@pytest.mark.parametrize("t", [0, 1, 64, 300 if COMPILED else 70])
def test_save_load_and_copies_go_on_bit_for_bit(case, t, tmp_path):
    learner = make(case)
    X, y = stream(learner)
    if t:
        learner.partial_fit(X[:t], y[:t])
    path = tmp_path / "learner.npz"
    learner.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["learner.npz"]
    copies = [okl.load(path), okl.load(str(path)), pickle.loads(pickle.dumps(learner))]
    copies += [copy.deepcopy(learner), copy.copy(learner)]
    before = contents(learner)
    for other in copies:
        assert type(other) is type(learner) and repr(other) == repr(learner)
        assert (other.rounds, other.size) == (t, learner.size)
        assert contents(other) == before
        assert_array_equal(other.predict(X[:9]), learner.predict(X[:9]))
    ahead = okl.run(learner, X[t:], y[t:])
    expected = learner.predict(X), contents(learner)
    for other in copies:
        assert contents(other) == before  # nothing shared with the learner that went on
        assert_same_run(okl.run(other, X[t:], y[t:]), ahead)
        assert_array_equal(other.predict(X), expected[0])
        assert contents(other) == expected[1]
        other.learn_one(X[0], y[0])
    assert saved(copies[0], tmp_path / "a") == saved(copies[2], tmp_path / "b")


@every_variant
def test_save_load_at_every_round_goes_on_bit_for_bit(case, tmp_path):
    n = 60
    going, stopping = make(case), make(case)
    X, y = stream(going, n)
    for t in range(n):
        assert stopping.predict_one(X[t]) == going.predict_one(X[t])
        going.learn_one(X[t], y[t])
        stopping.learn_one(X[t], y[t])
        if t % 4 == 0:
            stopping.save(tmp_path / "learner.npz")
            stopping = okl.load(tmp_path / "learner.npz")
    assert contents(going) == contents(stopping)


@every_variant
def test_an_interrupted_run_resumes_to_the_run_in_one_go(case, tmp_path, monkeypatch):
    whole = make(case)
    X, y = stream(whole)
    every = 2 * N // 3
    expected = okl.run(whole, X, y, checkpoint=tmp_path / "whole.npz", every=every)
    assert_close_run(expected, plain(case)[0])
    cls = type(whole)
    play, calls = cls._play, []

    def interrupted(self, *args):
        calls.append(self.rounds)
        if len(calls) in (2, 5, 9, 10, 15):  # before and after the first save, twice in a row
            raise KeyboardInterrupt
        return play(self, *args)

    path = tmp_path / "run.npz"
    monkeypatch.setattr(cls, "_play", interrupted)
    interruptions = 0
    while True:
        learner = make(case)
        try:
            run = okl.run(learner, X, y, checkpoint=path, every=every)
            break
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions == (5 if COMPILED else 1)
    assert_same_run(run, expected)
    assert contents(learner) == contents(whole)
    loaded = okl.Run.load(path)
    assert_same_run(loaded, expected)
    assert loaded.finished


@every_variant
def test_a_run_stopped_by_its_time_limit_resumes_to_the_run_in_one_go(case, tmp_path):
    whole = make(case)
    X, y = stream(whole)
    expected = okl.run(whole, X, y)
    path = tmp_path / "run.npz"
    stopped = make(case)
    part = okl.run(stopped, X, y, checkpoint=path, time_limit=1e-9)
    assert not part.finished and 0 < part.rounds < N and "time limit" in repr(part)
    assert stopped.rounds == part.rounds
    assert_array_equal(part.predictions, expected.predictions[: part.rounds])
    assert_same_run(okl.Run.load(path), part)
    assert not okl.Run.load(path).finished
    still = okl.run(make(case), X, y, checkpoint=path, time_limit=1e-9)
    assert still.rounds == part.rounds and not still.finished
    learner = make(case)
    run = okl.run(learner, X, y, checkpoint=path)
    assert run.finished
    assert_same_run(run, expected)
    assert contents(learner) == contents(whole)
    idle = make(case)  # the checkpoint is finished: nothing is left to play
    assert_same_run(okl.run(idle, X, y, checkpoint=path), expected)
    assert contents(idle) == contents(whole)


@every_learner
def test_a_run_over_chunks_resumes_in_the_middle_of_a_chunk(cls, tmp_path):
    def chunks(upto):
        X, y = stream(make(cls), 200)
        for start in range(0, upto, 45):
            yield X[start : min(start + 45, upto)], y[start : min(start + 45, upto)]
        if upto < 200:
            raise OSError("the stream broke off")

    path = tmp_path / "run.npz"
    with pytest.raises(OSError, match="broke off"):
        okl.run(make(cls), chunks(170), checkpoint=path, every=30)
    assert okl.Run.load(path).rounds == 150
    learner = make(cls)
    run = okl.run(learner, chunks(200), checkpoint=path, every=30)
    assert learner.rounds == run.rounds == 200
    assert_close_run(run, okl.run(make(cls), *stream(learner, 200)))


@every_learner
def test_a_checkpoint_of_another_run_is_refused(cls, tmp_path):
    learner = make(cls)
    X, y = stream(learner, 80)
    path = tmp_path / "run.npz"
    okl.run(learner, X, y, checkpoint=path)
    after = contents(learner)
    with pytest.raises(ValueError, match="rounds"):  # not a fresh learner
        okl.run(learner, X, y, checkpoint=path)
    assert contents(learner) == after
    with pytest.raises(ValueError, match="loss"):
        okl.run(make(cls), X, y, checkpoint=path, loss="absolute")
    other = okl.KernelAWV(okl.Gaussian(0.123))
    with pytest.raises(ValueError, match=re.escape(str(path))):
        okl.run(other, X, y, checkpoint=path)
    assert other.rounds == 0
    make(cls).save(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match="no checkpoint"):
        okl.run(make(cls), X, y, checkpoint=tmp_path / "learner.npz")
    with pytest.raises(ValueError, match="holds no run"):
        okl.Run.load(tmp_path / "learner.npz")
    half = path.read_bytes()[: path.stat().st_size // 2]
    (tmp_path / "half.npz").write_bytes(half)
    for read in (okl.load, okl.Run.load, lambda p: okl.run(make(cls), X, y, checkpoint=p)):
        with pytest.raises(ValueError, match="half.npz"):
            read(tmp_path / "half.npz")


@every_learner
def test_a_checkpoint_that_has_more_rounds_than_the_data_is_refused(cls, tmp_path):
    X, y = stream(make(cls), 80)
    path = tmp_path / "run.npz"
    okl.run(make(cls), X, y, checkpoint=path)
    for data in ((X[:50], y[:50]), (iter([(X[:50], y[:50])]),)):
        with pytest.raises(ValueError, match="80"):
            okl.run(make(cls), *data, checkpoint=path)


@every_learner
def test_bad_data_for_a_checkpoint_leaves_the_learner_fresh(cls, tmp_path):
    X, y = stream(make(cls), 80)
    path = tmp_path / "run.npz"
    okl.run(make(cls), X[:50], y[:50], checkpoint=path)
    learner = make(cls)
    fresh = contents(learner)
    for bad in (X[:, :2], np.full_like(X, np.nan), X[0]):
        with pytest.raises(ValueError, match=r"\bX\b"):
            okl.run(learner, bad, y, checkpoint=path)
        assert contents(learner) == fresh
    assert_close_run(okl.run(learner, X, y, checkpoint=path), plain(cls, 80)[0])


@every_learner
def test_a_checkpoint_that_cannot_be_written_is_an_error_before_the_first_round(cls, tmp_path):
    learner = make(cls)
    fresh = contents(learner)
    with pytest.raises((ValueError, OSError), match="nowhere"):
        okl.run(learner, *stream(learner, 80), checkpoint=tmp_path / "nowhere" / "run.npz")
    assert contents(learner) == fresh


@every_learner
def test_a_failed_save_leaves_the_old_file_whole(cls, tmp_path, monkeypatch):
    learner = make(cls)
    X, y = stream(learner, 60)
    learner.partial_fit(X[:30], y[:30])
    path = tmp_path / "learner.npz"
    learner.save(path)
    old = path.read_bytes()
    learner.partial_fit(X[30:], y[30:])

    def disk_full(file, **arrays):
        file.write(b"half a file")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", disk_full)
    with pytest.raises(OSError, match="no space"):
        learner.save(path)
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


@every_learner
def test_run_save_and_load(cls, tmp_path):
    run, _ = plain(cls)
    run.save(tmp_path / "run.npz")
    loaded = okl.Run.load(tmp_path / "run.npz")
    assert_same_run(loaded, run)
    assert_array_equal(loaded.checkpoint_seconds, run.checkpoint_seconds)
    assert (loaded.seconds, loaded.finished, repr(loaded)) == (run.seconds, True, repr(run))
    assert (loaded.mean_loss, loaded.mistake_rate) == (run.mean_loss, run.mistake_rate)
    with pytest.raises(ValueError, match="theory.regret"):
        loaded.regret(okl.Gaussian(1.0), 1.0)
    with pytest.raises(ValueError, match="holds no learner"):
        okl.load(tmp_path / "run.npz")


@every_learner
def test_regret_of_a_run_over_arrays(cls):
    learner = make(cls)
    X, y = stream(learner, 60)
    run = okl.run(learner, X, y)
    kernel, lam = okl.Gaussian(1.0), 0.5
    expected = okl.theory.regret(run.predictions, kernel, X, y, lam)
    assert_array_equal(run.regret(kernel, lam), expected)
    K = kernel(X)
    coefficients = np.linalg.solve(K + lam * np.eye(60), y)
    best = ((y - K @ coefficients) ** 2).sum() + lam * coefficients @ K @ coefficients
    assert expected[-1] == pytest.approx(((y - run.predictions) ** 2).sum() - best, rel=1e-9)


@every_learner
def test_clone_has_the_hyper_parameters_and_no_data(cls):
    learner = make(cls)
    X, y = stream(learner, 90)
    learner.partial_fit(X, y)
    twin = clone(learner)
    assert type(twin) is cls and repr(twin) == repr(learner)
    assert (twin.rounds, twin.size, twin.predict_one(X[0])) == (0, 0, 0.0)
    assert_same_run(okl.run(twin, X, y), plain(cls, 90)[0])
    assert learner.rounds == 90
    fresh = clone(make(cls))
    assert contents(fresh) == contents(make(cls))


@every_learner
def test_the_constructor_stores_its_arguments_and_nothing_else(cls):
    names = list(inspect.signature(cls).parameters)
    given_values = make(cls).get_params(deep=False)
    learner = cls(**given_values)
    assert vars(learner) == given_values and list(given_values) == names
    for name, value in given_values.items():
        assert getattr(learner, name) is value
    strange = object()
    assert vars(cls(**dict.fromkeys(names, strange))) == dict.fromkeys(names, strange)


@every_learner
def test_get_and_set_params_go_round(cls):
    learner = make(cls)
    flat, deep = learner.get_params(deep=False), learner.get_params()
    assert set(flat) <= set(deep)
    for name, value in flat.items():
        if isinstance(value, Params):
            nested = {f"{name}__{inner}" for inner in value.get_params()}
            assert nested and nested <= set(deep)
    assert learner.set_params(**deep) is learner
    assert learner.get_params() == deep
    assert learner.set_params() is learner
    if "kernel" in flat:
        assert deep["kernel__sigma"] == 1.0
        learner.set_params(kernel__sigma=0.25)
        assert learner.kernel.sigma == learner.get_params()["kernel__sigma"] == 0.25
        X, y = stream(learner, 90)
        narrow = okl.run(learner, X, y)
        assert_same_run(narrow, okl.run(make(cls, kernel=okl.Gaussian(0.25)), X, y))
        assert (narrow.predictions != plain(cls, 90)[0].predictions).any()


@every_variant
def test_set_params_takes_the_params_of_another_learner(case):
    learner, other = make(getattr(case, "cls", case)), make(case)
    assert repr(learner.set_params(**other.get_params())) == repr(other)


@every_learner
def test_set_params_sets_nested_names_of_the_new_object_whatever_their_order(cls):
    learner = make(cls)
    if "kernel" in learner._param_names():
        old, new = learner.kernel, okl.Polynomial(2)
        learner.set_params(kernel__degree=3, kernel=new)
        assert learner.kernel is new and (new.degree, old.sigma) == (3, 1.0)


@every_learner
def test_set_params_refuses_unknown_names_and_changes_nothing_then(cls):
    learner = make(cls)
    names = learner._param_names()
    shown = repr(learner)
    numbers = [n for n in names if isinstance(getattr(learner, n), int | float)]
    unknown = [{"nonsense": 1}, {"nonsense__sigma": 1}, {"_width": 3}]
    unknown += [{f"{n}__nonsense": 1} for n in names]
    unknown += [{n: 0.5, "nonsense": 1} for n in numbers[:1]]
    unknown += [{n: 0.5, f"{m}__nonsense": 1} for n in numbers[:1] for m in names if m != n]
    for params in unknown:
        with pytest.raises(ValueError, match="nonsense|_width"):
            learner.set_params(**params)
        assert repr(learner) == shown, params


@every_learner
def test_set_params_after_data_is_refused(cls):
    learner = make(cls)
    X, y = stream(learner, 40)
    learner.partial_fit(X, y)
    before = contents(learner)
    for name, value in learner.get_params().items():
        with pytest.raises(ValueError, match="reset"):
            learner.set_params(**{name: value})
    assert contents(learner) == before
    learner.reset().set_params(**learner.get_params())


@every_variant
def test_reset_goes_back_to_no_data(case):
    learner = make(case)
    X, y = stream(learner)
    assert learner.reset() is learner and contents(learner) == contents(make(case))
    first = okl.run(learner, X, y)
    learner.predict(X)
    assert learner.reset() is learner
    assert (learner.rounds, learner.size, learner.predict_one([0.0])) == (0, 0, 0.0)
    assert contents(learner) == contents(make(case)) and vars(learner) == learner.get_params(False)
    assert_same_run(okl.run(learner, X, y), first)
    assert_same_run(first, plain(case)[0])
    narrow = learner.reset().partial_fit(X[:, :1], y)  # another width is welcome after a reset
    assert np.isfinite(narrow.predict(X[:, :1])).all()


@every_learner
def test_repr_is_one_readable_line(cls):
    learner = make(cls)
    shown = repr(learner)
    assert (
        "\n" not in shown and shown.startswith(f"{cls.__name__}(") and "object at 0x" not in shown
    )
    for name in learner._param_names():
        assert f"{name}=" in shown
    assert repr(eval(shown, vars(okl).copy())) == shown
    X, y = stream(learner, 40)
    assert repr(learner.partial_fit(X, y)) == shown


# ---- bad input ----


def with_value(value, dtype=float):
    def changed(a):
        a = a.astype(dtype)
        a[(len(a) // 2,) + (0,) * (a.ndim - 1)] = value
        return a

    return changed


def ragged(a):
    return [*a.tolist()[:-1], [0.5] * 7]


BAD_ARRAYS = {  # for X, for y and for one point x
    "NaN": with_value(np.nan),
    "infinity": with_value(np.inf),
    "minus infinity": with_value(-np.inf),
    "None inside": with_value(None, object),
    "strings": lambda a: a.astype(str),
    "bytes": lambda a: a.astype(bytes),
    "text in an object array": with_value("text", object),
    "numbers as text in an object array": with_value("1.0", object),
    "a list with text": lambda a: [*a.tolist()[:-1], "text"],
    "complex": lambda a: a.astype(complex),
    "complex in an object array": with_value(1j, object),
    "dates": lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    "ragged": ragged,
    "a number too large for a double": with_value(10**400, object),
    "sparse matrix": lambda a: scipy.sparse.csr_matrix(np.atleast_2d(a)),
    "sparse array": lambda a: scipy.sparse.csr_array(np.atleast_2d(a)),
    "a dictionary": lambda a: {"a": a},
    "text": lambda a: "text",
    "one number": lambda a: 0.5,
    "empty list": lambda a: [],
    "no rows": lambda a: a[:0],
    "3-D": lambda a: a.reshape(-1, 1, 1),
}
BAD_X = BAD_ARRAYS | {
    "None": lambda a: None,
    "1-D": lambda a: a[0],
    "no columns": lambda a: a[:, :0],
}
BAD_Y = BAD_ARRAYS | {
    "None": lambda a: None,
    "one too few": lambda a: a[:-1],
    "one too many": lambda a: np.append(a, a[-1]),
    "a column": lambda a: a[:, None],
    "a row": lambda a: a[None, :],
}
BAD_POINTS = BAD_ARRAYS | {"None": lambda a: None, "2-D": lambda a: a[None, :]}
BAD_LABELS = {  # for learn_one
    "None": None,
    "NaN": np.nan,
    "infinity": -np.inf,
    "text": "text",
    "a number as text": "1.0",
    "complex": 1j,
    "two": [1.0, 1.0],
    "none at all": [],
    "ragged": [[1.0, 1.0], [1.0]],
    "a number too large for a double": 10**400,
    "a date": np.datetime64("2020-01-01"),
}
WIDTHS = {"one column less": lambda a: a[..., :-1], "one more": lambda a: np.repeat(a, 2, axis=-1)}
OUTSIDE = {"zero": 0.0, "two": 2.0, "almost one": np.nextafter(1.0, 0.0), "0 for -1": 0}

X_CALLS = {
    "predict": lambda learner, X, y: learner.predict(X),
    "partial_fit": lambda learner, X, y: learner.partial_fit(X, y),
    "run": lambda learner, X, y: okl.run(learner, X, y),
    "run on chunks": lambda learner, X, y: okl.run(learner, iter([(X, y)])),
}
Y_CALLS = {name: call for name, call in X_CALLS.items() if name != "predict"}
POINT_CALLS = {
    "predict_one": lambda learner, x, y: learner.predict_one(x),
    "learn_one": lambda learner, x, y: learner.learn_one(x, y),
}


class Refusals:
    """Plays bad input to a learner; each must raise, name the culprit and change nothing."""

    def __init__(self, learner):
        self.learner = learner
        self.before = contents(learner)
        self.problems = []

    def refused(self, what, culprit, call):
        try:
            call(self.learner)
        except ValueError as error:
            message = str(error)
            if not re.search(rf"\b{culprit}\b", message):
                self.problems.append(f"{what}: the message does not name {culprit}: {message!r}")
        except Exception as error:
            self.problems.append(f"{what}: {type(error).__name__} instead of ValueError: {error}")
        else:
            self.problems.append(f"{what}: accepted")
        if contents(self.learner) != self.before:
            self.problems.append(f"{what}: the learner has changed")

    def play_all(self, X, y, with_widths):
        learner = self.learner
        bad_X = BAD_X | (WIDTHS if with_widths else {})
        bad_points = BAD_POINTS | (WIDTHS if with_widths else {})
        bad_y, bad_labels = dict(BAD_Y), dict(BAD_LABELS)
        if learner._loss().classes:
            bad_y |= {f"label {name}": with_value(value) for name, value in OUTSIDE.items()}
            bad_labels |= OUTSIDE
        for name, bad in bad_X.items():
            for call, play in X_CALLS.items():
                self.refused(f"{call}, X: {name}", "X", lambda one, b=bad, p=play: p(one, b(X), y))
        for name, bad in bad_y.items():
            for call, play in Y_CALLS.items():
                if name == "None" and call == "run on chunks":
                    continue  # tested below: (X, None) is a pair
                self.refused(f"{call}, y: {name}", "y", lambda one, b=bad, p=play: p(one, X, b(y)))
        for name, bad in bad_points.items():
            for call, play in POINT_CALLS.items():
                self.refused(
                    f"{call}, x: {name}", "x", lambda one, b=bad, p=play: p(one, b(X[0]), y[0])
                )
        for name, bad in bad_labels.items():
            self.refused(f"learn_one, y: {name}", "y", lambda one, b=bad: one.learn_one(X[0], b))
        self.refused("run on chunks, y: None", "y", lambda one: okl.run(one, [(X, None)]))
        self.refused("learn_one without y", "y", lambda one: one.learn_one(X[0]))
        self.refused("partial_fit without y", "y", lambda one: one.partial_fit(X))
        self.refused("run without y", "y", lambda one: okl.run(one, X))
        half = y.copy()
        half[3] = 0.5
        self.refused("hinge loss of 0.5", "y", lambda one: okl.run(one, X, half, loss="hinge"))
        self.refused("unknown loss", "loss", lambda one: okl.run(one, X, y, loss="nonsense"))
        for bad in (0, -1.0, np.nan, "text"):
            self.refused(
                f"time_limit {bad}",
                "time_limit",
                lambda one, b=bad: okl.run(one, X, y, time_limit=b),
            )
            self.refused(f"every {bad}", "every", lambda one, b=bad: okl.run(one, X, y, every=b))
        self.refused("a chunk of one", "pair", lambda one: okl.run(one, iter([(X,)])))
        self.refused("no pairs", "pair", lambda one: okl.run(one, iter([X[0], y[0]])))
        return self.problems


@every_learner
@pytest.mark.parametrize("rounds", [0, 1, 40])
def test_bad_input_is_refused_by_every_call_and_changes_nothing(cls, rounds, tmp_path):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 80)
    for one in (learner, twin):
        if rounds:
            one.partial_fit(X[:rounds], y[:rounds])
    problems = Refusals(learner).play_all(X[40:46], y[40:46], with_widths=rounds > 0)
    assert not problems, "\n".join(problems)
    assert saved(learner, tmp_path / "a") == saved(twin, tmp_path / "b")
    assert_same_run(okl.run(learner, X[rounds:], y[rounds:]), okl.run(twin, X[rounds:], y[rounds:]))
    assert contents(learner) == contents(twin)


@every_learner
def test_the_message_says_where_the_bad_value_is(cls):
    learner = make(cls)
    X, y = stream(learner, 40)
    X[17, 2], y[23] = np.nan, np.inf
    with pytest.raises(ValueError, match=r"X.*nan.*row 17.*column 2"):
        learner.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y.*inf.*row 23"):
        learner.partial_fit(np.abs(np.nan_to_num(X)), y)


@every_learner
def test_a_bad_pair_ends_a_stream_after_the_good_ones(cls):
    learner, twin = make(cls), make(cls)
    X, y = stream(learner, 90)
    twin.partial_fit(X[:40], y[:40])
    for bad in ((X[:, :2], y), (X[:0], y[:0]), (np.full((3, 3), np.nan), y[:3]), (X, y[1:]), X):
        learner = make(cls)
        pairs = iter([(X[:40], y[:40]), bad, (X[40:], y[40:])])
        with pytest.raises(ValueError, match=r"\bX\b|\by\b|pair"):
            okl.run(learner, pairs)
        assert learner.rounds == 40 and contents(learner) == contents(twin)


def test_run_wants_a_learner():
    for learner in (None, okl.Gaussian(), okl.KernelAWV, "KernelAWV"):
        with pytest.raises(ValueError, match="learner"):
            okl.run(learner, [[0.0]], [1.0])


# ---- hyper-parameters out of range ----

NAN, INF = float("nan"), float("inf")
POSITIVE = [0, 0.0, -1, -0.5, NAN, INF, -INF, "text", None, [1.0], 1j]
COUNT = [0, -1, 1.5, NAN, INF, "text", None, [1]]
CHOICE = ["nonsense", "", 3, None, ["squared"]]
OBJECT = ["text", 3, None, object()]
BAD_VALUES = {
    **dict.fromkeys(("lam", "mu", "alpha", "beta", "eta", "sigma", "B", "alpha_tilde"), POSITIVE),
    **dict.fromkeys(("C", "radius", "scale", "lipschitz"), [0.0, -1, NAN, "text", None]),
    **dict.fromkeys(("gamma", "threshold", "zeta", "ald_scale", "rate_scale"), [-1.0, NAN, "text"]),
    "eps": [0, 1, 0.0, 1.0, -0.5, 1.5, NAN, INF, "text", None],
    "probability": [0, 0.0, -0.5, 1.5, NAN, INF, "text", None],
    "restart": [0, 1, "yes", None],
    "p": [-1.0, 0.5, NAN, "text"],
    **dict.fromkeys(
        ("max_size", "budget", "rank", "n_frequencies", "sketch", "columns", "blocks", "period"),
        COUNT,
    ),
    **dict.fromkeys(("horizon", "switch_size"), COUNT),
    **dict.fromkeys(("seed", "degree", "hints"), [-1, 0.5, NAN, INF, "text", None]),
    **dict.fromkeys(("loss", "forecaster", "kind", "schedule", "domain"), CHOICE),
    **dict.fromkeys(("kernel", "features", "learner"), OBJECT),
    **dict.fromkeys(("kernels", "learners"), [*OBJECT, [], [3]]),
}
BY_TYPE = {  # for names that the table does not have
    float: [NAN, "text"],
    int: [-1, 1.5, NAN, "text"],
    str: CHOICE,
    type(None): ["text", NAN],
    bool: [],
}


def bad_values(name, default):
    values = BAD_VALUES.get(name, BY_TYPE.get(type(default), []))
    return [v for v in values if not (v is default or (v == default and v is not True))]


def hyper_parameters():
    for cls in LEARNERS:
        for name, value in make(cls).get_params().items():
            if bad_values(name.split("__")[-1], value):
                yield pytest.param(cls, name, id=f"{cls.__name__}-{name}")


@pytest.mark.parametrize("cls, name", list(hyper_parameters()))
def test_a_hyper_parameter_out_of_range_is_refused_and_can_be_repaired(cls, name):
    learner = make(cls)
    X, y = stream(learner, 90)
    good = learner.get_params()[name]
    problems = []
    for bad in bad_values(name.split("__")[-1], good):
        for first_use in ("partial_fit", "learn_one", "run"):
            learner.set_params(**{name: bad})
            try:
                if first_use == "learn_one":
                    learner.learn_one(X[0], y[0])
                else:
                    X_CALLS[first_use](learner, X, y)
            except ValueError as error:
                if not re.search(rf"\b{name.split('__')[-1]}\b", str(error)):
                    problems.append(f"{name}={bad!r}, {first_use}: not named in {str(error)!r}")
            except Exception as error:
                problems.append(f"{name}={bad!r}, {first_use}: {type(error).__name__}: {error}")
            else:
                problems.append(f"{name}={bad!r}, {first_use}: accepted")
            if learner.rounds or any(attribute.startswith("_") for attribute in vars(learner)):
                problems.append(f"{name}={bad!r}, {first_use}: something is left of the attempt")
                learner.reset()
        learner.set_params(**{name: good})
    assert not problems, "\n".join(problems)
    assert_same_run(okl.run(learner, X, y), plain(cls, 90)[0])


POSITIVES = [
    p for p in hyper_parameters() if BAD_VALUES.get(p.values[1].split("__")[-1]) is POSITIVE
]


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("value", [1e-300, 1e-200, 1e-160, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("cls, name", POSITIVES)
@far_from_the_origin
def test_extreme_hyper_parameters_work_or_say_what_to_change(cls, name, value):
    learner = make(cls).set_params(**{name: value})
    X, y = stream(learner, 60)
    try:
        forecasts = np.append(okl.run(learner, X, y).predictions, learner.predict(X))
    except (ValueError, FloatingPointError) as error:
        assert re.search(rf"\b{name.split('__')[-1]}\b|round \d+", str(error))
    else:
        assert np.isfinite(forecasts).all()


# ---- numerical trouble ----


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@every_learner
@pytest.mark.parametrize("size", [1e100, 1e160, 1e308])
@far_from_the_origin
def test_an_overflow_is_an_error_that_names_the_round_and_stays_until_reset(cls, size, tmp_path):
    learner = make(cls)
    params = learner._param_names()
    if "kernel" in params:
        learner.set_params(kernel=okl.Polynomial(3))
    elif "features" in params:
        learner.set_params(features=okl.FourierFeatures(10))
    X, y = stream(learner, 60)
    start = okl.run(learner, X[:20], y[:20]).predictions
    huge = X.copy()
    huge[25:] *= size
    try:
        run = okl.run(learner, huge[20:], y[20:])
    except FloatingPointError as error:
        found = re.search(r"round (\d+)", str(error))
        assert found and 26 <= int(found[1]) <= 60 and "reset" in str(error)
    else:
        assert np.isfinite(run.predictions).all()
        return
    learner.save(tmp_path / "learner.npz")
    for broken in (learner, okl.load(tmp_path / "learner.npz"), copy.deepcopy(learner)):
        for call in X_CALLS.values():
            with pytest.raises(FloatingPointError, match=found[0]):
                call(broken, X, y)
        for call in POINT_CALLS.values():
            with pytest.raises(FloatingPointError, match=found[0]):
                call(broken, X[0], y[0])
    assert_array_equal(okl.run(learner.reset(), X[:20], y[:20]).predictions, start)


# ---- certificates ----


@every_variant
@pytest.mark.parametrize("name", ["random", *HARD])
@far_from_the_origin
def test_regret_is_below_its_bound_at_every_round(case, name):
    n = 300 if COMPILED else 60
    learner = make(case)
    X, y = stream(learner, n, seed=3) if name == "random" else hard_stream(name, learner, n)
    run = okl.run(learner, X, y)
    if run.certificate is None:
        return
    assert_allclose(run.certificate.loss, np.cumsum((y - run.predictions) ** 2), rtol=1e-10)
    assert_array_equal(run.certificate.regret, run.certificate.loss - run.certificate.comparator)
    assert np.isfinite(run.certificate.comparator).all()
    assert (run.certificate.comparator >= -1e-9).all()
    if np.isnan(run.certificate.bound).any():
        assert np.isnan(run.certificate.bound).all()
        return
    assert (run.certificate.regret <= run.certificate.bound + 1e-9).all()


# ---- KORS, which has no labels and no forecasts ----


def kors_stream(n=N):
    return 2 * stream(okl.KernelAWV(okl.Gaussian(1.0)), n)[0]


SAMPLERS = [value for name in okl.__all__ if hasattr(value := getattr(okl, name), "landmarks_")]
every_sampler = pytest.mark.parametrize("cls", SAMPLERS, ids=lambda cls: cls.__name__)


def sampled(cls, **params):
    return cls(okl.Gaussian(1.0), **params)


def dictionary(sampler):
    return sampler.indices_.tolist(), sampler.probabilities_.tolist(), sampler.landmarks_.tolist()


@functools.cache
def plain_dictionary(cls):
    return dictionary(sampled(cls).partial_fit(kors_stream()))


def test_there_are_samplers():
    assert {cls.__name__ for cls in SAMPLERS} >= {"KORS", "UniformSampling", "ALD"}


@every_sampler
def test_dictionary_of_a_sampler(cls):
    X = kors_stream()
    sampler = sampled(cls)
    assert sampler.size == 0
    assert sampler.partial_fit(X) is sampler
    least = 32 if COMPILED else 0  # so that buffers grow
    assert least < sampler.size == len(sampler.indices_) < N
    assert_array_equal(sampler.landmarks_, X[sampler.indices_])
    assert (np.diff(sampler.indices_) > 0).all()
    assert ((sampler.probabilities_ > 0) & (sampler.probabilities_ <= 1)).all()
    features = sampler.features()
    assert_allclose(features.captured(sampler.landmarks_), 1.0, rtol=1e-9)
    assert_array_equal(sampler.transform(X[:9]), features.transform(X[:9]))


@every_sampler
@settings(max_examples=15)
@given(sizes=st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_a_sampler_is_the_same_however_the_stream_is_cut(cls, sizes):
    sampler, X, start = sampled(cls), kors_stream(), 0
    for size in [*sizes, N]:
        if start < N:
            sampler.partial_fit(X[start : start + size])
        start += size
    assert dictionary(sampler) == plain_dictionary(cls)


@every_sampler
def test_seeds_copies_and_inputs_of_a_sampler(cls, tmp_path):
    X = kors_stream()
    given_away = X.copy()
    sampler = sampled(cls).partial_fit(given_away[: N // 3])
    assert_array_equal(given_away, X)
    copies = [pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)]
    given_away[:] = 0.0
    for one in (sampler, *copies):
        assert dictionary(one.partial_fit(X[N // 3 :])) == plain_dictionary(cls)
    if "seed" in sampler.get_params():
        other = sampled(cls, seed=1).partial_fit(X)
        assert dictionary(other) != plain_dictionary(cls)
    twin = clone(sampler)
    assert twin.size == 0 and dictionary(twin.partial_fit(X, None)) == plain_dictionary(cls)
    for holder in HOLDERS.values():
        held = sampled(cls).partial_fit(holder(X, tmp_path / "x.npy"))
        assert dictionary(held) == plain_dictionary(cls)
    assert repr(sampler).startswith(f"{cls.__name__}(kernel=Gaussian(sigma=1.0), ")
    fresh = sampled(cls)
    assert fresh.set_params(**fresh.get_params()).get_params().keys() == fresh.get_params().keys()
    with pytest.raises(ValueError, match="nonsense"):
        fresh.set_params(nonsense=1)


@every_sampler
@pytest.mark.parametrize("name", HARD)
def test_samplers_on_hard_streams(cls, name):
    X, _ = hard_stream(name, okl.KernelAWV(okl.Gaussian(1.0)), 200 if COMPILED else 40)
    sampler = sampled(cls).partial_fit(X)
    assert 1 <= sampler.size <= len(X)
    assert np.isfinite(sampler.probabilities_).all() and np.isfinite(sampler.transform(X)).all()
    if name in ("repeated", "zero"):
        assert sampler.size < 30


@every_sampler
@pytest.mark.parametrize("rounds", [0, 50])
def test_a_sampler_refuses_bad_input_and_stays_as_it_was(cls, rounds):
    X = kors_stream(90)
    sampler, twin = sampled(cls), sampled(cls)
    for one in (sampler, twin):
        if rounds:
            one.partial_fit(X[:rounds])
    for name, bad in (BAD_X | (WIDTHS if rounds else {})).items():
        with pytest.raises(ValueError, match=r"\bX\b"):
            sampler.partial_fit(bad(X[:5]))
            raise AssertionError(f"accepted: {name}")
        assert sampler.size == twin.size
    assert dictionary(sampler.partial_fit(X[rounds:])) == dictionary(twin.partial_fit(X[rounds:]))


@pytest.mark.parametrize(
    "cls, name", [(cls, name) for cls in SAMPLERS for name in sampled(cls).get_params()]
)
@pytest.mark.parametrize("rounds", [0, 20])
def test_hyper_parameters_of_a_sampler_out_of_range(cls, name, rounds):
    X = kors_stream(90)
    last = name.split("__")[-1]
    good = sampled(cls).get_params()[name]
    for bad in bad_values(last, good):
        sampler = sampled(cls)
        if rounds:
            sampler.partial_fit(X[:rounds])
        with pytest.raises(ValueError, match=rf"(\b|_){last}\b"):
            sampler.set_params(**{name: bad}).partial_fit(X[rounds:])
            raise AssertionError(f"accepted: {name}={bad!r}")
        sampler = sampled(cls, **({} if "kernel" in name else {name: good}))
        sampler.partial_fit(X)
        assert dictionary(sampler) == dictionary(sampled(cls).partial_fit(X))


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
def test_kors_after_numerical_trouble_is_as_it_was_or_refuses_to_go_on():
    X = kors_stream(60)
    sampler, twin = (okl.KORS(okl.Polynomial(3)).partial_fit(X[:30]) for _ in range(2))
    huge = X.copy()
    huge[45:] *= 1e160  # the first points of the same call are good
    with pytest.raises(FloatingPointError, match=r"point 46\b"):
        sampler.partial_fit(huge[30:])
    assert sampler.size == len(sampler.indices_) == len(sampler.landmarks_)
    try:
        sampler.partial_fit(X[30:])
    except FloatingPointError as error:
        assert "point 46" in str(error)
    else:
        assert dictionary(sampler) == dictionary(twin.partial_fit(X[30:]))


def test_the_battery_would_see_a_learner_that_is_wrong():
    """Negative controls: learners with one fault each, and the check that must fail for it."""

    class Peeks(okl.FOGD):
        def _play(self, X, y, trace):
            super()._play(X, y, trace)
            trace.predictions[:] += 1e-12 * y

    class Remembers(okl.FOGD):
        def _forecast(self, X):
            self._w[0] += 1e-12
            return super()._forecast(X)

    class Counts(okl.FOGD):
        def _play(self, X, y, trace):
            super()._play(X, y, trace)
            self._w *= 1 - 1e-6  # once a call: depends on how the stream is cut

    for wrong, check in (
        (Peeks, test_a_forecast_never_depends_on_its_own_or_a_later_label),
        (Remembers, test_a_run_with_forecasts_in_between_is_bitwise_the_run_without),
        (Counts, test_a_run_is_the_loop_written_by_hand),
        (Counts, test_run_over_chunks),
    ):
        arguments = {"chunks": uneven_chunks} if check is test_run_over_chunks else {}
        check(okl.FOGD, **arguments)
        with pytest.raises(AssertionError):
            check(wrong, **arguments)
    assert math.isfinite(plain(okl.FOGD)[0].mean_loss)
