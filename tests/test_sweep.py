"""Sweeps: the same table however they are played, kept cells, failures, tuning, sizes."""

import functools
import os
import sys
import threading
import weakref

import joblib
import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

import oklnumba as okl
from oklnumba.core.params import clone
from oklnumba.experiments import cells, sizes
from tests.checks import COMPILED, raises, refused

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 3))
Y = np.where(RNG.random(300) < 0.1, -1.0, 1.0) * np.sign(np.sin(3 * X[:, 0]))
KERNEL = okl.Gaussian(0.5)
DATA = {"one": (X, Y), "two": (X[:200], Y[:200] * (1 + X[:200, 1]))}


def fogd(T, seed, step=1.0):
    return okl.FOGD(eta=step / T**0.5, n_frequencies=20, seed=seed, loss="squared")


LEARNERS = {
    "FOGD": fogd,
    "Nystrom": [okl.NystromAWV(KERNEL, max_size=m) for m in (5, 20)],
    "hinge": okl.KernelOGD(KERNEL, budget=20),
}
play = functools.partial(okl.sweep, LEARNERS, DATA, 2, kernel=KERNEL, regret=1.0)


def numbers(table):
    """Return the rows without what differs from run to run, and the length of pickles."""
    return [{k: v for k, v in row.items() if k not in ("seconds", "memory")} for row in table]


@pytest.fixture(scope="module")
def undisturbed():
    return numbers(play(n_jobs=1))


def test_rows_are_runs(undisturbed):
    assert len(undisturbed) == 2 * 4 * 2
    for row in undisturbed:
        X, y = DATA[row["data"]]
        order = np.random.default_rng(row["permutation"]).permutation(len(y))
        if row["learner"] == "FOGD":
            learner = fogd(len(y), row["seed"])
        elif row["learner"] == "Nystrom":
            learner = okl.NystromAWV(KERNEL, max_size=(5, 20)[row["setting"]], seed=row["seed"])
        elif row["data"] == "two":  # hinge takes signs only
            assert row["error"].startswith("ValueError: y has ") and row["loss"] is None
            continue
        else:
            learner = okl.KernelOGD(KERNEL, budget=20)
        run = okl.run(learner, X[order], y[order])
        assert row["error"] == "" and row["loss"] == run.loss and row["n"] == len(y)
        assert row["mean_loss"] == run.mean_loss and row["mistakes"] == run.mistake_rate
        assert row["size"] == run.sizes.max() and row["finished"]
        best = okl.theory.comparator(KERNEL, X, y, 1.0, run.loss)
        least = best.loss + best.norm**2
        assert row["regret"] == pytest.approx(run.losses.sum() - least, rel=1e-9)


@pytest.mark.parametrize(
    ("n_jobs", "backend"),
    [(None, None), (3, None), (-1, None), (2, "threading")]
    + [pytest.param(2, "loky", marks=pytest.mark.slow)],
)
def test_the_same_table_however_it_is_played(undisturbed, n_jobs, backend):
    with joblib.parallel_config(**({"backend": backend} if backend else {})):
        assert numbers(play(n_jobs=n_jobs)) == undisturbed


def workers(**how):
    """Return the processes and threads that play the cells of a line."""
    how["measure"] = lambda *_: {"process": os.getpid(), "thread": threading.get_ident()}
    table = okl.sweep(okl.LinearAWV(), (X, Y), 8, **how)
    assert set(table["error"]) == {""}
    return set(table["process"]), set(table["thread"])


HERE = {os.getpid()}, {threading.get_ident()}


def test_cells_are_played_where_joblib_says():
    assert workers() == workers(n_jobs=1) == HERE
    processes, threads = workers(n_jobs=2)
    assert processes == HERE[0] and not threads & HERE[1]
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert not workers()[1] & HERE[1]
        assert workers(n_jobs=1) == HERE
    if COMPILED:
        with joblib.parallel_config(backend="loky", n_jobs=2):
            assert not workers()[0] & HERE[0]


def test_without_joblib_cells_are_played_one_after_another(monkeypatch, undisturbed):
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert numbers(play()) == undisturbed
    assert workers() == workers(n_jobs=1) == HERE
    for n_jobs in (2, -1):
        raises(ImportError, "pip install joblib", play, n_jobs=n_jobs)
        with pytest.raises(ImportError, match="pip install joblib"):
            okl.regret_vs_size(okl.FOGD(), X, Y, KERNEL, 1.0, n_jobs=n_jobs)


# ---- saved cells ----


def test_a_second_call_plays_nothing_again(tmp_path, undisturbed, monkeypatch):
    first = play(path=tmp_path)
    assert numbers(first) == undisturbed
    best = {(row["data"], row["loss"]) for row in undisturbed if not row["error"]}
    assert len(list(tmp_path.iterdir())) == sum(not r["error"] for r in undisturbed) + len(best)
    played = []
    before = cells.play_cell
    monkeypatch.setattr(cells, "play_cell", lambda *task: played.append(task) or before(*task))
    again = play(path=tmp_path)
    assert again.rows == first.rows  # their times too
    failed_before = {player.loss for _, _, player, order in played if order is not None}
    assert failed_before == {"hinge"}
    more = okl.sweep(LEARNERS["FOGD"], {"1": DATA["one"]}, 3, path=tmp_path)  # names do not matter
    assert more.rows[0]["seconds"] == first.rows[0]["seconds"]
    assert more.rows[2]["mean_loss"] not in first["mean_loss"]


def test_saved_cells_tell_a_missing_label_from_the_text_of_it(tmp_path):
    learner = okl.OneVsRest(okl.LinearAWV(), classes=["a", "b"])
    missing = np.where(Y > 0, "a", "b").astype(object)
    missing[5] = None
    text = np.where(missing == None, "None", missing)  # noqa: E711
    options = {"path": tmp_path, "labels": "optional"}
    errors = [okl.sweep(learner, (X, y), **options).rows[0]["error"] for y in (missing, text)]
    assert errors[0] == "" and "not one of the classes" in errors[1]


def measure_rounds(learner, run):
    return {"rounds": learner.rounds}


class Zero:
    """A learner of the user's own, which files do not hold."""

    def predict_one(self, x):
        return 0.0

    def learn_one(self, x, y):
        pass


class Scaled:
    """A measure that holds a number."""

    def __init__(self, by):
        self.by = by

    def measure(self, learner, run):
        return {"rounds": self.by * run.rounds}

    __call__ = measure


def test_a_bar_counts_runs_and_best_functions(tmp_path, capsys):
    learners = {"a": okl.OGD(), "b": okl.OGD(eta=0.5)}
    for _ in range(2):  # then nothing is left to play
        okl.sweep(learners, (X, Y), regret=1.0, kernel=KERNEL, path=tmp_path, progress=True)
        assert "100%" in (shown := capsys.readouterr().err) and "3/3" in shown


def test_what_changes_numbers_is_played_anew_and_names_do_not_matter(tmp_path):
    def cells_kept(learner=LEARNERS["hinge"], data=(X, Y), permutations=1, **options):
        okl.sweep(learner, data, permutations, path=tmp_path, n_jobs=1, **options)
        return len(list(tmp_path.iterdir()))

    faster = okl.KernelOGD(KERNEL, budget=20, eta=0.2)
    wider = okl.KernelOGD(okl.Gaussian(0.6), budget=20)
    found = [
        cells_kept(), cells_kept(permutations=[1]), cells_kept(permutations=0),
        cells_kept(faster), cells_kept(wider),
        cells_kept(data=(X, -Y)), cells_kept(loss="squared"), cells_kept(measure=measure_rounds),
        cells_kept({"other": LEARNERS["hinge"]}, {"t": (X.copy(), Y)}),
    ]  # fmt: skip
    assert found == [1, 2, 3, 4, 5, 6, 7, 8, 8]
    assert cells_kept(Zero()) == 8 and cells_kept({"mine": Zero(), "new": fogd}) == 9
    exec("def measure_rounds(learner, run):\n    return {}", changed := {})
    changed["measure_rounds"].__qualname__ = "measure_rounds"
    assert cells_kept(measure=changed["measure_rounds"]) == 10  # of another text
    found = [cells_kept(measure=Scaled(by)) for by in (1.0, 2.0, 1.0)]
    assert [*found, cells_kept(measure=Scaled(2.0).measure)] == [11, 12, 12, 13]

    def measure_outside(learner, run):
        return {"faster": faster}

    nothing = functools.partial(measure_rounds)
    for nameless in (lambda *_: {}, nothing, measure_outside, Scaled(lambda: 0).measure):
        refused("define it with def", cells_kept, measure=nameless)
    tmp_path.chmod(0o555)
    raises(PermissionError, "is read-only", cells_kept)


def test_an_interrupt_leaves_finished_cells(tmp_path, monkeypatch):
    before, calls = cells.play_cell, []

    def interrupted(*task):
        calls.append(task)
        if len([t for t in calls if t[-1] is not None]) == 4:
            raise KeyboardInterrupt
        return before(*task)

    monkeypatch.setattr(cells, "play_cell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play(path=tmp_path, n_jobs=1)
    assert len(list(tmp_path.iterdir())) == 3
    calls.clear()
    with pytest.raises(KeyboardInterrupt):  # from a thread, as joblib passes it on
        play(path=tmp_path, n_jobs=2)
    assert len(list(tmp_path.iterdir())) >= 3


# ---- failures ----


def test_a_failing_cell_is_recorded_and_stops_nothing(monkeypatch):
    def worse(X):
        raise RuntimeError("no learner today")

    table = okl.sweep(
        {"bad": worse, "odd": lambda T: 3, "asks": lambda nothing: okl.FOGD(), "good": fogd,
         "diverges": okl.OGD(1e6)}, (X, Y), 2,
    )  # fmt: skip
    bad = table.select(learner="bad")
    assert set(bad["error"]) == {"RuntimeError: no learner today"}
    assert "must be a learner" in table.select(learner="odd").rows[0]["error"]
    assert "'nothing'" in table.select(learner="asks").rows[0]["error"]
    assert table.select(learner="diverges").rows[1]["error"].startswith("FloatingPointError")
    assert set(table.select(learner="good")["error"]) == {""}
    means = table.mean()
    assert means.select(learner="bad").rows[0]["failed"] == 2
    assert means.select(learner="good").rows[0]["permutations"] == 2
    assert means.select(learner="bad").rows[0]["mean_loss"] is None
    for result, error in (
        ({"a": X}, "a must be text, a number"),
        (None, "must be a dict of columns"),
        ({"loss": 0.5}, "a column of measure must be another name"),
    ):
        odd = okl.sweep(fogd, (X, Y), measure=lambda *_: result)  # noqa: B023
        assert error in odd["error"][0]
    with pytest.warns(UserWarning, match="own regret replaces that of measure"):
        own = okl.sweep(fogd, (X, Y), kernel=KERNEL, regret=1.0, measure=lambda *_: {"regret": 5.0})
    assert own["regret"] == okl.sweep(fogd, (X, Y), kernel=KERNEL, regret=1.0)["regret"] != [5.0]
    monkeypatch.setattr(okl.theory, "Hindsight", lambda *_: np.linalg.inv(np.zeros((2, 2))))
    with pytest.warns(UserWarning, match="no regret for data 0, squared: LinAlgError: Singular"):
        table = okl.sweep(fogd, (X, Y), kernel=KERNEL, regret=1.0)
    assert table.mean()["failed"] == 0 and table.rows[0]["regret"] is None


def test_settings_are_chosen_on_a_permutation_of_their_own():
    steps = [0.03, 0.3, 3.0, 30.0]
    table = okl.sweep(
        {"FOGD": fogd, "awv": okl.KernelAWV(KERNEL)}, DATA, 2,
        tune={"step": steps, "kernel__sigma": [0.2, 0.8]},
    )  # fmt: skip
    for name, (inputs, y) in DATA.items():
        order = np.random.default_rng(1000).permutation(len(y))
        signs = np.isin(y, (-1.0, 1.0)).all()

        def score(learner, stream=(inputs[order], y[order]), signs=signs):
            run = okl.run(learner, *stream)
            return run.mistake_rate if signs else run.mean_loss

        best = min(steps, key=lambda step: score(fogd(len(y), 1000, step)))  # noqa: B023
        width = min((0.2, 0.8), key=lambda s: score(okl.KernelAWV(okl.Gaussian(s))))  # noqa: B023
        rows = table.select(data=name)
        assert set(rows.select(learner="FOGD")["chosen"]) == {f"step={best!r}"}
        assert set(rows.select(learner="awv")["chosen"]) == {f"kernel__sigma={width!r}"}
        run = okl.run(fogd(len(y), 1, best), *(a[np.random.default_rng(1).permutation(len(y))]
                                               for a in (inputs, y)))  # fmt: skip
        assert rows.select(learner="FOGD").rows[1]["mean_loss"] == run.mean_loss


# ---- what is swept ----


@pytest.mark.parametrize("missing", [np.nan, None])
def test_regret_where_labels_are_optional_is_that_on_the_rows_with_one(missing):
    gaps = np.where(np.arange(300) % 3 == 0, missing, Y)
    data = {1: (X, gaps), "1": lambda: iter([(X[:9], gaps[:9]), (X[9:], gaps[9:])])}
    there = np.arange(300) % 3 > 0
    options = {"kernel": KERNEL, "labels": "optional"}
    table = okl.sweep({1: okl.LinearAWV(), "1": fogd}, data, 0, regret=1.0, **options)
    best = okl.theory.comparator(KERNEL, X[there], Y[there], 1.0)
    least = best.loss + best.norm**2
    assert [row["data"] + row["learner"] for row in table] == ["11", "11 2", "1 21", "1 21 2"]
    np.testing.assert_allclose(table["regret"], table["total_loss"] - least, rtol=1e-3)
    about = okl.regret_vs_size([fogd], X, gaps, seeds=1, **options).about
    assert about["awv_bound"] == okl.theory.log_det(KERNEL, X[there], 1.0)


def test_data_and_learners_by_name():
    data = okl.datasets.load("mushrooms")
    table = okl.sweep([okl.FOGD(n_frequencies=2)] * 2, [data, "mushrooms", (X, Y)], 0)
    names = [(row["data"], row["learner"]) for row in table]
    assert names == [(d, lr) for d in ("mushrooms", "mushrooms 2", "data 2")
                     for lr in ("FOGD", "FOGD 2")]  # fmt: skip
    assert table.rows[0]["mean_loss"] == table.rows[2]["mean_loss"]
    assert table.rows[0]["permutation"] is None  # in the order given
    run = okl.run(okl.FOGD(n_frequencies=2), X, Y)
    assert table.rows[-1]["mean_loss"] == run.mean_loss


def test_tuning_has_a_permutation_that_the_table_has_not_and_a_grid_that_fails_is_told(monkeypatch):
    table = okl.sweep(okl.OGD(), (X, Y), 2, tune={"eta": [1e6, -1.0]})
    assert len(table) == 2 and all("tuning" in error for error in table["error"])
    played, before = [], cells.play_cell
    monkeypatch.setattr(cells, "play_cell", lambda *task: played.append(task[-1]) or before(*task))
    okl.sweep(fogd, (X, Y), [0, 1000, 7], tune={"step": [0.1, 1.0]})
    assert [order for order in played if order is not None] == [1001, 1001, 0, 1000, 7]


def test_seeds_move_with_the_permutation_and_more_columns_and_keywords_of_run():
    learner = okl.PKAWV(okl.FourierFeatures(5, seed=3))
    table = okl.sweep({"a": learner, "b": okl.FOGD(seed=5)}, (X, Y), [0, 1])
    assert ["seed=3" in p or "seed=5" in p for p in table["parameters"]] == [True, False] * 2
    assert learner.rounds == 0 and learner.features.seed == 3
    two = okl.Experts([okl.FOGD(seed=s, loss="squared") for s in (0, 4)], B=30.0)
    table = okl.sweep(two, (X, Y), [2, 3])
    assert ["seed=2" in p and "seed=6" in p for p in table["parameters"]] == [True, False]
    assert len(okl.regret_vs_size(two, X, Y, KERNEL, seeds=3)) == 3
    lifted = okl.FOGD(okl.FourierFeatures(5, seed=3))  # whose own seed is not used
    assert ["seed=5" in p for p in okl.sweep(lifted, (X, Y), [2, 3])["parameters"]] == [True, False]
    two = okl.MultiOutput(okl.LinearAWV())
    with pytest.warns(UserWarning, match="no regret"):  # of several outputs
        table = okl.regret_vs_size(two, X, np.column_stack([Y, -Y]), KERNEL)
    assert (table.rows[0]["error"], table.rows[0]["bound"]) == ("", None)
    lifted, ald = okl.FOGD(okl.TaylorFeatures(1)), okl.ProsNKONS(KERNEL, sampler="ald")
    for seedless in (lifted, ald):
        seedless.loss = "squared"
        assert len(okl.regret_vs_size(seedless, X, Y, KERNEL, seeds=3, sizes=[3])) == 1
    tuned = okl.sweep(okl.FOGD(), (X, Y), [2], tune={"seed": [7]})
    assert "seed=7" in tuned["parameters"][0]
    table = okl.sweep(fogd, (X, Y), 1, measure=measure_rounds, loss="absolute")
    assert table.rows[0]["rounds"] == 300 and table.rows[0]["loss"] == "absolute"


def test_runs_are_kept_as_columns_and_in_the_folder(tmp_path, monkeypatch):
    def measure(learner, run):
        return {"run": run, "first": run.regret(KERNEL, 1.0)[0]}  # the data is there until then

    options = dict(measure=measure, path=tmp_path)
    table = okl.sweep(fogd, (X, Y), 2, **options)
    for row in table:
        order = np.random.default_rng(row["seed"]).permutation(300)
        run = okl.run(fogd(300, row["seed"]), X[order], Y[order])
        np.testing.assert_array_equal(row["run"].predictions, run.predictions)
        refused("does not hold its data", row["run"].regret, KERNEL, 1.0)
    assert "run" not in repr(table) and "run" not in table.to_csv().split("\n")[0].split(",")
    assert list(table["run"]) == [row["run"] for row in table]
    table.save(tmp_path / "t.npz")
    assert "run" not in okl.Table.load(tmp_path / "t.npz").columns
    refused("not numbers to average", table.pivot, "run")
    with monkeypatch.context() as patch:
        patch.setattr(cells, "run", None)  # nothing is played
        again = okl.sweep(fogd, (X, Y), 2, **options)
    means = table["mean_loss"].tolist()
    for one, other in zip(table, again, strict=True):
        np.testing.assert_array_equal(one.pop("run").losses, other.pop("run").losses)
        assert one == other
    damaged = next(file for file in tmp_path.iterdir() if "-" in file.name)
    cell = next(tmp_path.glob("*.json"))
    text = cell.read_text(encoding="utf-8")
    for file, others in (
        (damaged, [""]),
        (
            cell,
            ["", "{}", "[]", "1", text.replace('"n": 300', '"n": 3'), text.replace("mean_", "")],
        ),
    ):
        for other in others:
            file.write_text(other, encoding="utf-8")
            anew = okl.sweep(fogd, (X, Y), 2, **options)
            assert not any(anew["error"]) and anew["mean_loss"].tolist() == means


@pytest.mark.parametrize("record", [100, 7, "none"])
def test_sums_are_over_all_rounds_whatever_is_recorded(record):
    options = dict(permutations=2, kernel=KERNEL, regret=1.0)
    whole, part = (okl.sweep(fogd, (X, Y), record=r, **options) for r in ("all", record))
    np.testing.assert_allclose(part["total_loss"], whole["total_loss"], rtol=1e-12)
    np.testing.assert_allclose(part["regret"], whole["regret"], rtol=1e-9)


def test_what_a_learner_holds_goes_when_its_cell_ends():
    seen = []

    def measure(learner, run):
        assert all(one() is None for one in seen)
        seen.append(weakref.ref(learner))
        return {}

    assert not any(okl.sweep(okl.KernelAWV(KERNEL), (X, Y), 3, measure=measure, n_jobs=1)["error"])
    assert len(seen) == 3 and seen[-1]() is None


def test_a_function_gets_the_arguments_without_a_default():
    seen = []

    def make(T, d, X, kernel, seed, step=3.0, other=5):
        seen.append((T, d, X.shape, kernel, seed, step, other))
        return okl.FOGD(n_frequencies=2)

    both = {"make": make, "bound": functools.partial(make, kernel=None, T=1)}
    okl.sweep(both, (X, Y), [4], tune={"step": [2.0]}, kernel=KERNEL)
    tuned, _, plain, bound = seen
    assert tuned == (300, 3, (300, 3), KERNEL, 1000, 2.0, 5)
    assert plain == (300, 3, (300, 3), KERNEL, 4, 2.0, 5)
    assert bound == (1, 3, (300, 3), None, 4, 2.0, 5)


# ---- tables ----


def test_a_table_is_saved_and_loaded(tmp_path):
    rows = [{"a": "x", "b": 1.5, "c": None, "d": 1}, {"a": None, "b": None, "c": None, "d": 2}]
    table = okl.Table(rows, {"lam": 1.0})
    table.save(tmp_path / "t.npz")
    assert okl.load(tmp_path / "t.npz").rows == table.rows
    again = okl.Table.load(tmp_path / "t.npz")
    assert again.rows == table.rows and again.about == table.about
    assert again.columns == table.columns and isinstance(again.rows[0]["d"], int)
    table.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == table.to_csv() == "a,b,c,d\nx,1.5,,1\n,,,2\n"
    np.testing.assert_array_equal(table["b"], [1.5, np.nan])
    refused("no column 'e'", lambda: table["e"])
    refused("numbers and texts", lambda: okl.Table([{"a": 1}, {"a": "x"}]))
    refused("a must be text, a number", lambda: okl.Table([{"a": [1]}]))


def test_means_pivots_and_looks():
    rows = [
        {"data": d, "learner": name, "setting": 0, "permutation": p, "mean_loss": v + p,
         "error": "", "note": "<b>"}
        for d in "ab" for name, v in (("x", 1.0), ("y", 3.0)) for p in (0, 1)
    ]  # fmt: skip
    table = okl.Table([*rows, rows[0] | {"permutation": 2, "mean_loss": None, "error": "E"}])
    means = table.mean()
    assert means["mean_loss"].tolist() == [1.5, 3.5, 1.5, 3.5]
    np.testing.assert_allclose(means["mean_loss_sd"], 0.5**0.5)
    assert means["failed"].tolist() == [1, 0, 0, 0]
    assert table.pivot().rows == [{"data": d, "x": 1.5, "y": 3.5} for d in "ab"]
    for failing, expected in (("ab", [np.nan, np.nan]), ("b", [3.5, np.nan])):
        broken = [row | {"error": "E" * (row["learner"] == "y" and row["data"] in failing)}
                  for row in rows]  # fmt: skip
        np.testing.assert_array_equal(okl.Table(broken).pivot()["y"], expected)
    refused("not numbers to average", table.pivot, "note")
    assert repr(okl.Table(rows * 5)).endswith("... 40 rows") and repr(okl.Table([]))
    frame = table.to_frame()
    assert isinstance(frame, pd.DataFrame) and frame.shape == (9, 7)
    assert frame.groupby("learner")["mean_loss"].mean()["y"] == 3.5


# ---- regret against size ----


@functools.cache
def size_table(permute=False):
    learners = {
        "Nystrom": okl.NystromAWV(KERNEL),
        "Taylor": okl.PKAWV(okl.TaylorFeatures(2, sigma=0.5)),
        "FOGD": okl.FOGD(loss="squared", sigma=0.5),
        "SkeGD": okl.SkeGD(KERNEL),
        "POMDR": okl.POMDR(KERNEL),
        "Projectron": [okl.Projectron(KERNEL, threshold=v) for v in (0.5, 0.1)],
        "BOGD": lambda size, T, seed: okl.BOGD(KERNEL, eta=3 / T**0.5, budget=size, seed=seed),
        "AWV": okl.KernelAWV(KERNEL),
    }
    return okl.regret_vs_size(
        learners, X, Y, KERNEL, 1.0, seeds=2, sizes=(6, 11, 24), permute=permute
    )


def test_regret_against_size():
    table = size_table()
    assert set(table["error"]) == {""}
    found = {
        name: sorted({row["size"] for row in table if row["learner"] == name})
        for name in dict.fromkeys(table["learner"])
    }
    assert found["Nystrom"] == found["BOGD"] == [6, 11, 24]
    assert found["Taylor"] == [4, 10, 20] and found["FOGD"] == [6, 10, 24]  # degrees 1 to 3
    assert found["AWV"] == [300] and len(found["Projectron"]) == 2
    runs = {name: np.sum(table["learner"] == name) for name in found}
    assert runs["FOGD"] == runs["SkeGD"] == 6  # three sizes, two seeds
    assert runs["Taylor"] == runs["POMDR"] == 3 and runs["AWV"] == 1  # they draw nothing
    for row in table:
        least = table.about["best"][f"data, {row['loss']}"]
        assert row["regret"] == row["total_loss"] - least
        if row["learner"] in ("Nystrom", "Taylor", "AWV"):
            assert row["regret"] <= row["bound"]
        else:
            assert row["bound"] is None
    awv = table.select(learner="AWV").rows[0]
    assert awv["bound"] < table.about["awv_bound"] < 2 * awv["bound"]  # log det
    assert table.about["effective_dimension"] == okl.theory.effective_dimension(KERNEL, X, 1.0)
    permuted = size_table(permute=True)
    assert np.sum(permuted["learner"] == "AWV") == 2
    assert permuted.about == table.about


@pytest.mark.parametrize(
    "result", [{"bound": 1.0}, {"loss_bound": 1.0}, {"given_bound": "x"}, None]
)
def test_a_measure_with_a_column_of_the_table_of_sizes_is_refused(result):
    measure = lambda learner, run: result  # noqa: E731
    table = okl.regret_vs_size(okl.LinearAWV(), X, Y, KERNEL, 1.0, measure=measure)
    assert "must be another name" in table["error"][0] or "must be a dict" in table["error"][0]


def test_sizes_that_hold_no_degree_are_told():
    learners = {"Taylor": okl.PKAWV(okl.TaylorFeatures(2)), "mine": lambda size: okl.FOGD()}
    table = okl.regret_vs_size(learners, X, Y, KERNEL, sizes=(3, 2, 3))
    assert table["error"].tolist() == [
        "ValueError: degree 1 has 4 Taylor features, more than the largest of sizes", "", ""
    ]  # fmt: skip
    refused("a list of one size or more", okl.regret_vs_size, learners, X, Y, KERNEL, sizes=())


def test_shares_of_a_size_are_kept():
    choice = sizes.scale_to(okl.SkeGD(KERNEL), "budget", 100, 3)
    assert choice == {"budget": 100, "rank": 10, "sketch": 72, "columns": 15}
    for size in (2, 3, 12, 1000):
        for learner in (okl.SkeGD(KERNEL), okl.NOGD(KERNEL), okl.POMDR(KERNEL, switch_size=40)):
            clone(learner).set_params(**sizes.scale_to(learner, "budget", size, 3))
    names = {
        okl.NystromAWV(KERNEL): "max_size",
        okl.FOGD(): "n_frequencies",
        okl.FOGD(okl.FourierFeatures(9)): "features__n_frequencies",
        okl.PKAWV(okl.TaylorFeatures(2)): "features__degree",
        okl.Standardized(okl.NOGD(KERNEL)): "learner__budget",
        okl.KernelAWV(okl.Polynomial(3)): None,
        okl.KONS(KERNEL): None,
    }
    for learner, name in names.items():
        assert sizes.find_size_name(learner) == name


def test_a_figure_of_regret_against_size():
    table = size_table()
    figure = okl.plots.regret_vs_size(table)
    squared, hinge = figure.axes
    assert [ax.get_title() for ax in figure.axes] == ["squared loss", "hinge loss"]
    assert {text.get_text() for text in hinge.texts} == {"SkeGD", "POMDR", "Projectron", "BOGD"}
    assert {"effective dimension", "bound of Kernel-AWV"} <= {t.get_text() for t in squared.texts}
    again = okl.plots.regret_vs_size(table, {"b": ["BOGD"], "c": ["BOGD", "SkeGD"]})
    colours = {ax.lines[0].get_color() for ax in again.axes}
    assert len(colours) == 1  # one learner, one colour
    refused("hinge and squared; draw", okl.plots.regret_vs_size, table, {"all": ["BOGD", "FOGD"]})
    refused("no run of 'nobody'", lambda: okl.plots.regret_vs_size(table, {"all": ["nobody"]}))
    refused("no column 'weight'", okl.plots.regret_vs_size, table, {"b": ["BOGD"]}, values="weight")
    assert len(okl.plots.regret_vs_size(table, {"all": ["BOGD", "FOGD"]}, "mistakes").axes) == 1
    refused("no run without an error", okl.plots.regret_vs_size, okl.Table([]))
    refused("column chosen holds texts", okl.plots.regret_vs_size, table, values="chosen")


def test_names_stand_where_lines_end():
    def names(**lost):
        regret = {"FOGD": 5.0, "AWV": 5.0} | lost
        rows = [row | {"regret": regret.get(row["learner"]), "bound": None} for row in size_table()]
        panel = okl.plots.regret_vs_size(okl.Table(rows), {"": [*regret]}).axes[0]
        return {text.get_text(): text.xy[1] for text in panel.texts}

    below = names(FOGD=-2.0, AWV=-1.0)  # on a linear axis
    assert {*below} == {"FOGD", "AWV"} and 0.0 < below["FOGD"] < below["AWV"] < 1.0
    assert abs(names(FOGD=-2.0)["FOGD (≤ 0)"]) < 1e-9 and {*names(FOGD=None)} == {"AWV"}


# ---- streams that are not in memory ----

LONG = np.random.default_rng(1).uniform(-1, 1, (3000, 3))
LONG_Y = np.where(np.sin(3 * LONG[:, 0]) + 0.3 * LONG[:, 1] > 0.0, 1.0, -1.0)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    columns = dict(zip("abc", LONG.T, strict=True)) | {"y": LONG_Y}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return okl.stream(path, label="y", batch=700)


def blocks():
    return iter([(LONG[:1000], LONG_Y[:1000]), (LONG[1000:], LONG_Y[1000:])])


PLAYERS = {"Nystrom": okl.NystromAWV(KERNEL), "FOGD": okl.FOGD(loss="hinge")}


def play_sizes(*data, **more):
    return okl.regret_vs_size(PLAYERS, *data, kernel=KERNEL, lam=1.0, sizes=[10, 40], **more)


@pytest.mark.slow
def test_a_file_gives_the_table_of_its_rows(file, monkeypatch):
    inside = play_sizes(LONG, LONG_Y)
    with joblib.parallel_config(backend="loky" if COMPILED else "threading", n_jobs=2):
        found = play_sizes(file)
    assert set(found["error"]) == {""} and len(found) == 4
    for name in ("learner", "size", "n", "mistakes", "parameters"):
        assert list(found[name]) == list(inside[name])
    np.testing.assert_allclose(found["total_loss"], inside["total_loss"], rtol=1e-9)
    for place, best in inside.about["best"].items():
        low, high = found.about["interval"][place]
        assert low <= best * (1 + 1e-6) and best <= high * (1 + 1e-6) and high - low < 0.01 * best
    regret = found.select(learner="Nystrom")["regret"]
    assert (regret <= found.select(learner="Nystrom")["bound"]).all()
    figure = okl.plots.regret_vs_size(found)
    assert sum(one.get_hatch() is not None for one in figure.axes[0].collections) == 1
    both = okl.sweep(PLAYERS, {"file": file, "blocks": blocks}, 2, kernel=KERNEL, regret=1.0)
    assert (
        set(both["n"]) == {3000} and set(both["d"]) == {3} and np.isnan(both["permutation"]).all()
    )
    rows = both.select(learner="Nystrom")
    assert rows.select(data="file")["seed"].tolist() == [0, 1]
    np.testing.assert_allclose(*(rows.select(data=one)["regret"] for one in ("file", "blocks")))


@pytest.mark.slow
def test_a_table_of_a_file_is_resumed(file, tmp_path, monkeypatch):
    first = play_sizes(file, path=tmp_path)
    solved = []
    monkeypatch.setattr(okl.theory, "Hindsight", lambda *a: solved.append(a))
    monkeypatch.setattr(cells, "run", lambda *a, **k: solved.append(a))
    again = play_sizes(file, path=tmp_path)
    assert again.rows == first.rows and again.about == first.about
    assert not [a for a in solved if len(a) != 3]  # only the first rows, to compile


def test_what_streams_do_not_have_is_refused(file):
    refused("tune needs a permutation", okl.sweep, okl.FOGD(), file, tune={"eta": [0.1, 1.0]})
    refused("permute=True needs arrays", play_sizes, file, permute=True)
    refused("played again", play_sizes, LONG)
    made = okl.sweep(lambda X: okl.FOGD(), file)
    assert made["error"][0] == "ValueError: a function of X needs arrays: a stream is not in memory"


def test_columns_and_bounds_of_ones_own():
    table = okl.regret_vs_size(
        {"mine": Zero(), "AWV": okl.KernelAWV(KERNEL)}, X, Y, KERNEL, 1.0,
        measure=lambda learner, run: {"largest": np.abs(run.predictions).max()},
        bound=lambda learner, run: None if run.certificate else 7.0 * run.rounds,
    )  # fmt: skip
    mine, awv = table.rows
    assert mine["bound"] == 2100.0 and mine["largest"] == 0.0 and awv["largest"] > 0.0
    assert awv["bound"] == size_table().select(learner="AWV").rows[0]["bound"]
    assert len(okl.plots.regret_vs_size(table).axes[0].lines) >= 4  # two lines and two bounds
