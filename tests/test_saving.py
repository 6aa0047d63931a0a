"""Every learner saved, copied, interrupted, resumed or reset goes on bit for bit."""

import copy
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba.core.files import read_npz
from oklnumba.core.params import Params
from tests import battery
from tests.battery import N, assert_same_run, contents, every_learner, make, plain, rounds, stream
from tests.checks import COMPILED, arrays, raises, refused

T = 300 if COMPILED else 70  # rounds before a learner is copied


@pytest.mark.parametrize(
    ("case", "t"),
    [(cls, 0) for cls in battery.LEARNERS]
    + [pytest.param(*one.values, T, id=one.id, marks=one.marks) for one in battery.STATES],
)
def test_save_load_and_copies_go_on_bit_for_bit(case, t, tmp_path):
    learner = make(case)
    X, y = stream(learner, min(N, t + 150))
    if t:
        learner.partial_fit(X[:t], y[:t])
    path = tmp_path / "learner.npz"
    learner.save(path)
    copies = [okl.load(path), pickle.loads(pickle.dumps(learner))]
    copies += [copy.deepcopy(learner), copy.copy(learner)]
    before = contents(learner)
    assert contents(okl.load(str(path))) == before
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
    assert battery.saved(copies[0], tmp_path / "a") == battery.saved(copies[1], tmp_path / "b")


def with_numpy(value):
    """Return a hyper-parameter with NumPy's scalars and arrays in place of Python's."""
    if isinstance(value, Params):
        params = value.get_params(deep=False).items()
        return type(value)(**{name: with_numpy(one) for name, one in params})
    kinds = {bool: np.bool_, int: np.int64, float: np.float32, str: np.str_}
    if isinstance(value, list | tuple) and value and not isinstance(value[0], Params):
        return np.array(value)
    return kinds.get(type(value), lambda one: one)(value)


def assert_saved(what, path, **options):
    """Assert that it can be saved and comes back with its schema; return it."""
    what.save(path, **options)
    assert repr(okl.load(path).schema) == repr(what.schema)
    return okl.load(path)


@every_learner
def test_arguments_of_numpy_are_saved(cls, tmp_path):
    learner = with_numpy(make(cls))
    X, y = stream(learner, 80)
    loaded = assert_saved(learner.partial_fit(X, y), tmp_path / "learner.npz")
    assert_array_equal(loaded.predict(X), learner.predict(X))
    for name, value in learner.get_params(deep=False).items():
        if not isinstance(value, Params | list):
            assert_array_equal(getattr(loaded, name), value)


CSV = "first line\na,b,y\n" + "1,0,0\n0,1,1\n" * 40
SVM = "0 1:0.5 2:1\n1 1:1\n" * 40
GIVEN = {
    "skip": ("a.csv", CSV, {"skip": np.int64(1), "label": "y"}),
    "names": ("a.csv", CSV, {"skip": 1, "label": np.str_("y"), "columns": np.array(["a"])}),
    "classes": ("a.csv", CSV, {"skip": 1, "label": "y", "classes": np.unique([0, 1])}),
    "list": ("a.csv", CSV, {"skip": 1, "label": "y", "classes": list(np.unique([0, 1]))}),
    "width": ("a.svm", SVM, {"width": np.int64(3), "zero_based": np.bool_(False)}),
    "texts": ("a.csv", CSV.replace("0\n", "no\n"), {"skip": 1, "label": "y",
                                                    "classes": np.array(["no", "1"])}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:the labels are 0 and 1")
@pytest.mark.parametrize("kind", GIVEN)
def test_arguments_of_streams_of_numpy_are_saved(kind, tmp_path):
    name, text, options = GIVEN[kind]
    (tmp_path / name).write_text(text)
    data, learner = okl.stream(tmp_path / name, **options), okl.LinearAWV()
    run = okl.run(learner, data, checkpoint=tmp_path / "checkpoint.npz")
    for what in (learner, run):
        loaded = assert_saved(what, tmp_path / "saved.npz")
    assert_same_run(loaded, okl.Run.load(tmp_path / "checkpoint.npz"))
    assert "np." not in repr(learner)


def test_arguments_of_runs_and_tables_of_numpy_are_saved(tmp_path):
    X, y = stream(make(okl.LinearAWV), 200)
    plain = {"record": 7, "every": 50, "delay": 2, "batch": 3, "labels": "optional"}
    runs = []
    for i, options in enumerate((plain, {name: with_numpy(one) for name, one in plain.items()})):
        runs.append(okl.run(okl.LinearAWV(), X, y, checkpoint=tmp_path / f"{i}.npz", **options))
        assert_same_run(assert_saved(runs[-1], tmp_path / "run.npz"), runs[-1])
    assert_same_run(*runs)
    for regret in (np.int64(2), {"squared": np.float32(2)}):
        options = {"permutations": np.array([3]), "regret": regret, "record": np.int64(7)}
        options |= {"kernel": okl.Linear(), "path": tmp_path}
        table = okl.sweep(okl.LinearAWV(lam=np.int64(2)), (X, y), **options)
        table.save(tmp_path / "table.npz")
        assert okl.load(tmp_path / "table.npz").about == table.about


@pytest.mark.filterwarnings("ignore:the run of .* was stopped before its first checkpoint")
@battery.every_state
def test_an_interrupted_run_resumes_to_the_run_in_one_go(case, tmp_path, monkeypatch):
    whole, n = make(case), rounds(case)
    X, y = stream(whole, n)
    every = 2 * n // 3
    expected = okl.run(whole, X, y, checkpoint=tmp_path / "whole.npz", every=every)
    battery.assert_close_run(expected, plain(case, n)[0])
    cls, path, calls, interruptions = type(whole), tmp_path / "run.npz", [], 0
    play = cls._play

    def interrupted(self, *args):
        calls.append(self.rounds)
        if len(calls) in (2, 5, 9, 10, 15):  # before and after the first save, twice in a row
            raise KeyboardInterrupt
        return play(self, *args)

    monkeypatch.setattr(cls, "_play", interrupted)
    while True:
        learner = make(case)
        try:
            run = okl.run(learner, X, y, checkpoint=path, every=every)
            break
        except KeyboardInterrupt:
            interruptions += 1
            raises(RuntimeError, "was interrupted.*reset", learner.predict_one, X[0])
    assert interruptions == {600: 5, 320: 4, 90: 1}[n]
    assert_same_run(run, expected)
    assert contents(learner) == contents(whole)
    loaded = okl.Run.load(path)
    assert_same_run(loaded, expected)
    assert loaded.finished


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    learner, other = make(okl.BOGD), okl.KernelAWV(okl.Gaussian(0.123))
    X, y = stream(learner, 80)
    path, alone, half = (tmp_path / f"{name}.npz" for name in ("run", "learner", "half"))
    okl.run(learner, X, y, checkpoint=path)
    make(okl.BOGD).save(alone)
    half.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    fresh = make(okl.BOGD)
    for one, file, options, words in (
        (learner, path, {}, "has played 80 rounds"),
        (fresh, path, {"loss": "absolute"}, "with absolute loss"),
        (fresh, path, {"record": 7}, "record='all', not"),
        (fresh, path, {"delay": 4}, "of a run with delay=0, not delay=4; pass that one"),
        (other, path, {}, re.escape(str(path))),
        (fresh, alone, {}, "is not a checkpoint"),
        (fresh, half, {}, "half.npz is not a file that oklnumba saved"),
    ):
        before = contents(one)
        refused(words, okl.run, one, X, y, checkpoint=file, **options)
        assert contents(one) == before


# numpy 2.0 leaves its zip file to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failed_save_leaves_the_old_file_whole(tmp_path, monkeypatch):
    learner = make(okl.POMDR)
    X, y = stream(learner, 60)
    learner.partial_fit(X[:30], y[:30])
    path = tmp_path / "learner.npz"
    learner.save(path)
    old = path.read_bytes()
    learner.partial_fit(X[30:], y[30:])

    def disk_full(file, array, **options):
        file.write(b"half a file")
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", disk_full)
    raises(OSError, r"no space left on device: '.*learner\.npz'", learner.save, path)
    assert path.read_bytes() == old and list(tmp_path.iterdir()) == [path]


@battery.every_state
def test_reset_goes_back_to_no_data(case):
    learner = make(case)
    X, y = stream(learner, rounds(case))
    assert learner.reset() is learner and contents(learner) == contents(make(case))
    first = okl.run(learner, X, y)
    assert contents(learner) == plain(case, rounds(case))[1]
    learner.predict(X)
    assert learner.reset() is learner
    assert (learner.rounds, learner.size, learner.predict_one([0.0])) == (0, 0, 0.0)
    assert contents(learner) == contents(make(case))
    assert vars(learner).keys() == vars(make(case)).keys()
    assert_same_run(okl.run(learner, X, y), first)
    assert_same_run(first, plain(case, rounds(case))[0])
    narrow = learner.reset().partial_fit(X[:, :1], y)  # another width is welcome after a reset
    assert np.isfinite(narrow.predict(X[:, :1])).all()


SHORT = pytest.mark.skipif(not COMPILED, reason="hundreds of rounds of SelfTuning")


def tuned(n, **options):
    """Return SelfTuning after n rounds, the last 20 of them single, and 150 rounds to come."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n + 150, 3)) * [1.0, 100.0, 0.01]
    y = 5.0 * np.sin(2.0 * X[:, 0]) + 0.01 * X[:, 1] + rng.standard_normal(n + 150)
    learner = okl.SelfTuning(**options).partial_fit(X[: n - 20], y[: n - 20])
    for x, label in zip(X[n - 20 : n], y[n - 20 : n], strict=True):
        learner.learn_one(x, label)
    return learner, X[n:], y[n:]


@pytest.mark.slow
@SHORT
@pytest.mark.parametrize(
    ("n", "budget"), [(25, 300), (125, 300), (300, 40), (500, 1), (500, 600), (505, 300), (700, 24)]
)
def test_files_of_self_tuning_go_on_to_the_bit_or_in_single_precision(n, budget, tmp_path):
    learner, X, y = tuned(n, budget=budget)
    path, state, forecasts = tmp_path / "learner.npz", contents(learner), learner.predict(X)
    assert contents(assert_saved(learner, path)) == state
    plain = path.stat().st_size
    learner.save(path, compact=True)
    assert path.stat().st_size < plain
    other, most, expected = okl.load(path), 1e-6 * y.std(), okl.run(learner, X, y)
    assert np.abs(other.predict(X) - forecasts).max() <= most
    run = okl.run(other, X, y)
    assert np.abs(run.predictions - expected.predictions).max() <= most
    assert_array_equal(run.sizes, expected.sizes)


@pytest.mark.slow
@SHORT
@pytest.mark.parametrize("wrap", [okl.MultiOutput, okl.Intervals, okl.Standardized])
def test_wrapped_self_tuning_has_these_files_too(wrap, tmp_path):
    _, X, y = tuned(505, budget=24)
    learner = wrap(okl.SelfTuning(budget=24))
    Y = np.stack([y, -y], axis=1) if wrap is okl.MultiOutput else y
    learner.partial_fit(X, Y)
    for compact, most in ((False, 0.0), (True, 1e-6)):
        learner.save(tmp_path / "one.npz", compact=compact)
        change = okl.load(tmp_path / "one.npz").predict(X) - learner.predict(X)
        assert np.abs(change).max() <= most * y.std()


def test_compact_files_have_factors_in_single_precision(tmp_path):
    learner = okl.PKAWV(okl.TaylorFeatures(3, sigma=1.0), lam=0.1)
    X, y = stream(learner, 200)
    learner.partial_fit(X, y).save(tmp_path / "a.npz")
    learner.save(tmp_path / "b.npz", compact=True)
    loaded = okl.load(tmp_path / "b.npz")
    assert arrays(loaded)["U"].dtype == np.float64
    assert 0.0 < np.abs(loaded.predict(X) - learner.predict(X)).max() < 1e-6
    (a_meta, a), (b_meta, b) = (read_npz(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert_array_equal(b["state_U"], a["state_U"].astype(np.float32))
    assert a_meta == b_meta and all((a[name] == b[name]).all() for name in a if name != "state_U")
    with pytest.raises(ValueError, match="compact must be True or False"):
        learner.save(tmp_path / "c.npz", compact=1)
    wild = okl.LinearAWV(lam=1e-60).partial_fit(X * [1e-30, 1e30, 1.0], y)
    assert np.abs(arrays(wild)["U"]).max() > np.finfo(np.float32).max
    wild.save(tmp_path / "c.npz", compact=True)
    assert_array_equal(okl.load(tmp_path / "c.npz").predict(X), wild.predict(X))
