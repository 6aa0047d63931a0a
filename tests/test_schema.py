"""What a row means is remembered: by learners, runs, streams, files, the command line, services."""

import copy
import io
import os
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import oklnumba as okl
from oklnumba.command.parser import main
from oklnumba.core.params import clone
from tests import battery
from tests.checks import in_child, refused, together

RNG = np.random.default_rng(0)
EFFECT = {"Bern": 0.0, "Bonn": -2.0, "Oslo": 1.0, "Rome": 3.0}


def sales(n, towns):
    """Return a table of prices, towns and what was sold, which the towns decide."""
    town, price = RNG.choice(towns, n), RNG.uniform(0, 1, n)
    sold = price + np.array([EFFECT[one] for one in town])
    return pd.DataFrame({"price": price, "town": town, "sold": sold})


DAY1, DAY6 = sales(400, ["Bonn", "Oslo", "Rome"]), sales(60, ["Bern", "Bonn", "Oslo"])
DAY6 = DAY6[["town", "sold", "price"]]  # another order, too
ENCODED = np.column_stack([DAY6.price, *(DAY6.town == one for one in ("Bonn", "Oslo", "Rome"))])
WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "arrow": lambda frame, path: pyarrow.feather.write_feather(frame, path),
}
FRAMES = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
every_format = pytest.mark.parametrize("kind", WRITERS)
make = partial(okl.LinearRidge, lam=0.01)
every_frame = pytest.mark.parametrize("hold", FRAMES.values(), ids=FRAMES)


def written(frame, path):
    WRITERS[path.suffix[1:]](frame, path)
    return path


def train(tmp_path, kind="csv"):
    """Return a model of the first day, saved and loaded."""
    model, path = make(), written(DAY1, tmp_path / f"day1.{kind}")
    okl.run(model, okl.stream(path, label="sold", encode=["town"]))
    model.save(tmp_path / "model.npz")
    return okl.load(tmp_path / "model.npz")


def other_town():
    return pytest.warns(UserWarning, match="'town' has 'Bern'.*'Bonn', 'Oslo', 'Rome'.*other")


# ---- the next day ----


@every_format
def test_the_next_file_means_the_same(kind, tmp_path):
    model, path = train(tmp_path), written(DAY6, tmp_path / f"day6.{kind}")
    assert "of Schema('price', 'town' (3 values), label='sold')" in repr(model)
    with other_town():
        (found, y), *more = okl.stream(path, like=model)
    assert not more
    assert_array_equal(found, ENCODED)
    assert_array_equal(y, DAY6.sold)
    known = DAY6.town != "Bern"
    errors = model.predict(found)[known] - DAY6.sold[known]
    assert np.mean(errors**2) < 1e-4  # with categories of day 6 it is 10
    with warnings.catch_warnings(action="ignore"):
        run = okl.run(model, okl.stream(path, label="sold", encode=["town"]))  # as model reads it
    plain = train(tmp_path)
    assert_array_equal(run.predictions, okl.run(plain, ENCODED, DAY6.sold).predictions)
    assert run.schema == model.schema == okl.stream(path, like=run).schema


@every_frame
def test_frames_and_rows_mean_the_same(hold, tmp_path):
    model = train(tmp_path)
    with other_town():
        forecasts = model.predict(hold(DAY6))  # the label may be there
    assert_array_equal(forecasts, model.predict(ENCODED))
    rows = DAY6.drop(columns="sold").to_dict("records")
    assert_allclose([model.predict_one(row) for row in rows], forecasts, rtol=1e-12)
    assert model.predict_one(DAY6.iloc[3]) == model.predict_one(rows[3])
    other = train(tmp_path)
    with other_town():
        other.partial_fit(hold(DAY6), DAY6.sold)
    for row, sold in zip(rows, DAY6.sold, strict=True):
        model.learn_one(row, sold)
    assert_allclose(model.predict(ENCODED), other.predict(ENCODED), rtol=1e-9)


def test_a_checkpoint_keeps_the_categories_of_a_log_that_grows(tmp_path):
    towns = np.array([f"t{k:03}" for k in RNG.permutation(100)])
    log = pd.DataFrame({"town": np.tile(towns, 3), "y": np.tile(np.arange(100.0), 3)})
    path, file, model = tmp_path / "log.csv", tmp_path / "run.npz", make()
    log[:250].to_csv(path, index=False)
    okl.run(model, okl.stream(path, label="y", encode=["town"]), checkpoint=file)
    more = pd.DataFrame({"town": ["a", "b"] * 200, "y": [0.0, 1.0] * 200})
    pd.concat([log, more]).to_csv(path, index=False)
    again = make()
    run = okl.run(again, okl.stream(path, label="y", encode=["town"]), checkpoint=file)
    assert again.schema == model.schema and run.rounds == 700
    assert np.abs(run.losses[200:300]).max() < 1.0  # each town is forecast as it was learned


def test_columns_that_are_left_out_of_the_next_file(tmp_path):
    model, more = train(tmp_path), DAY6.assign(weather=1.0)
    path = written(more, tmp_path / "day6.parquet")
    for data in (path, more):
        refused("has 'weather', which the learner does not know", okl.stream, data, like=model)
        with warnings.catch_warnings(action="ignore"):
            stream = okl.stream(data, like=model, drop=["weather"])
            assert_array_equal(together(stream)[0], ENCODED)
            assert okl.run(model, stream).rounds == 60


# ---- names ----

NAMES = ["length", "width", "colour"]
A = RNG.normal(size=(80, 3))
Y = A @ [1.0, -2.0, 3.0]
LEARNERS = {
    "ridge": okl.LinearRidge(),
    "standardized": okl.Standardized(okl.LinearRidge()),
    "intervals": okl.Intervals(okl.LinearRidge()),
    "self-tuning": okl.SelfTuning(),
    "several outputs": okl.MultiOutput(okl.LinearRidge()),
    "classes": okl.OneVsRest(okl.LinearRidge(), classes=[0, 1]),
    "one drawn": okl.OnlineToBatch(okl.LinearRidge()),
}


def labels_of(learner):
    if isinstance(learner, okl.MultiOutput):
        return np.column_stack([Y, -Y])
    return (Y > 0).astype(int) if isinstance(learner, okl.OneVsRest) else Y


@pytest.mark.parametrize(
    "name, library", [(name, "pandas") for name in LEARNERS] + [("ridge", one) for one in FRAMES]
)
def test_the_same_names_in_another_order(name, library, tmp_path):
    hold = FRAMES[library]
    learner, plain = (clone(LEARNERS[name]) for _ in range(2))
    frame, y = pd.DataFrame(A, columns=NAMES), labels_of(LEARNERS[name])
    turned = frame[["colour", "length", "width"]]
    plain.partial_fit(A, y)
    learner.partial_fit(hold(frame[:30]), y[:30]).partial_fit(hold(turned[30:]), y[30:])
    learner.save(tmp_path / "model.npz")
    for one in (learner, okl.load(tmp_path / "model.npz"), copy.deepcopy(learner)):
        assert one.schema.names == tuple(NAMES)
        assert_array_equal(one.predict(hold(turned)), plain.predict(A))
        assert_array_equal(one.predict_one(turned.iloc[0]), one.predict_one(A[0]))
        assert_array_equal(one.predict_one(turned.iloc[0].to_dict()), one.predict_one(A[0]))
        has_intervals, has_scores = one._half_width is not None, hasattr(one, "scores")
        for call, has in (("predict_interval", has_intervals), ("scores", has_scores)):
            if has:
                found = getattr(one, call)(hold(turned))
                assert_array_equal(found, getattr(plain, call)(A))
        with pytest.raises(ValueError, match="lacks 'width' and has 'breadth', which"):
            one.predict(hold(turned.rename(columns={"width": "breadth"})))
        refused("lacks 'width'; ", one.predict_one, {"length": 1.0, "colour": 2.0})
    assert plain.schema is None
    assert learner.reset().schema is None


@every_frame
def test_pieces_of_frames_in_another_order(hold):
    frame = pd.DataFrame(A, columns=NAMES)
    pairs = [(frame[:40], Y[:40]), (frame[NAMES[::-1]][40:], Y[40:])]
    for options in ({}, {"delay": 3}, {"batch": 8}, {"labels": "optional"}):
        learner, plain = make(), make()
        run = okl.run(learner, [(hold(X), y) for X, y in pairs], **options)
        assert_array_equal(run.predictions, okl.run(plain, A, Y, **options).predictions)
        assert run.schema.names == tuple(NAMES)


# ---- the command line ----


def say(capsys, *arguments):
    """Return what a command that succeeds writes."""
    assert main([*map(str, arguments)]) == 0, capsys.readouterr().err
    return capsys.readouterr()


def read(text):
    return pd.read_csv(io.StringIO(text))


@every_format
def test_run_save_predict(kind, tmp_path, capsys, monkeypatch):
    day1, day6 = written(DAY1, tmp_path / f"day1.{kind}"), written(DAY6, tmp_path / f"day6.{kind}")
    model, output = tmp_path / "model.npz", tmp_path / "forecasts.csv"
    learner = "LinearRidge", "--set", "lam=0.01"
    say(capsys, "run", day1, "--label", "sold", "--encode", "town", "--learner", *learner,
        "--save", model)  # fmt: skip
    said = say(capsys, "predict", model, day6, "--output", output)
    assert said.out == "" and "'town' has 'Bern'" in said.err
    expected = train(tmp_path, kind)
    assert okl.load(model).schema == expected.schema
    assert_array_equal(pd.read_csv(output).forecast, expected.predict(ENCODED))
    unlabelled = written(DAY6.drop(columns="sold"), tmp_path / f"today.{kind}")
    assert say(capsys, "predict", model, unlabelled).out == output.read_text()
    if kind == "csv":
        pipe = io.TextIOWrapper(io.BytesIO(day6.read_bytes()))
        monkeypatch.setattr(sys, "stdin", pipe)
        assert say(capsys, "predict", model, "-").out == output.read_text()


@every_format
def test_ids_stand_beside_the_forecasts_as_in_the_file(kind, tmp_path, capsys):
    names = ["007", "7", "1.50", "true", "2026-01-01 00:00:00", "NA", "", "a,b"]
    for ids in (names * 50, range(400)):
        day, model = written(DAY1.assign(key=ids), tmp_path / f"day.{kind}"), tmp_path / "m.npz"
        named = "--learner", "LinearRidge", "--encode", "town", "--id", "key"
        say(capsys, "run", day, "--label", "sold", *named, "--save", model)
        assert okl.load(model).schema.needed == ("price", "town")
        plain = say(capsys, "predict", model, day).out.splitlines()
        said = io.StringIO(say(capsys, "predict", model, day, "--id", "key").out)
        found = pd.read_csv(said, dtype=str, keep_default_na=False)
        assert found.key.tolist() == [*map(str, ids)] and found.forecast.tolist() == plain[1:]


def test_predict_learns_the_labels_that_are_there(tmp_path, capsys):
    model, plain = tmp_path / "model.npz", train(tmp_path)
    with_gaps = DAY6.assign(sold=DAY6.sold.where(np.arange(60) % 3 > 0))
    day6 = written(with_gaps, tmp_path / "day6.csv")
    said = read(say(capsys, "predict", model, day6, "--learn").out)
    run = okl.run(plain, ENCODED, with_gaps.sold, labels="optional")
    assert_allclose(said.forecast, run.predictions, rtol=1e-12)
    assert okl.load(model).rounds == plain.rounds == 440
    assert_array_equal(okl.load(model).predict(ENCODED), plain.predict(ENCODED))


def test_predict_says_classes_probabilities_and_intervals(tmp_path, capsys):
    frame = pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "state": np.where(Y > 0, "hot", "cold")})
    path, file = written(frame, tmp_path / "a.csv"), tmp_path / "model.npz"
    say(capsys, "run", path, "--label", "state", "--save", file)
    said, model = read(say(capsys, "predict", file, path).out), okl.load(file)
    found = model.predict(frame[["b", "a"]])
    assert said.forecast.tolist() == np.where(found > 0, "hot", "cold").tolist()
    assert ((said["probability of hot"] > 0.5) == (found > 0)).all()
    frame["state"] = np.array(["a", "b", "c"])[np.arange(80) % 3]
    say(capsys, "run", written(frame, path), "--label", "state", "--save", file)
    said = read(say(capsys, "predict", file, path).out)
    assert said.forecast.tolist() == okl.load(file).predict(frame[["a", "b"]]).tolist()
    model = okl.Intervals(okl.LinearRidge())
    okl.run(model, okl.stream(written(DAY1, path), label="sold", encode=["town"]))
    model.save(file)
    said = read(say(capsys, "predict", file, path).out)
    assert_array_equal(said[["low", "high"]], model.predict_interval(DAY1.drop(columns="sold")))


# ---- labels ----

SIGNS = np.where(Y > 0, 1.0, -1.0)


def by_rounds(learner, y):
    for x, label in zip(A, y.tolist(), strict=True):
        learner.learn_one(x, label)


def by_pieces(learner, y):
    for start in range(0, 80, 3):
        learner.partial_fit(A[start : start + 3], y[start : start + 3])


def cut(y, at=5, X=A):
    return [(X[:at], y[:at]), (X[at:], y[at:])]


def by_one_class_first(learner, y):
    order = np.argsort(y, kind="stable")
    okl.run(learner, cut(y[order], 10, A[order]))


ENTRIES = {
    "rounds": by_rounds,
    "pieces": by_pieces,
    "one class first": by_one_class_first,
    "at once": lambda learner, y: learner.partial_fit(A, y),
    "run": lambda learner, y: okl.run(learner, A, y),
    "late": lambda learner, y: okl.run(learner, cut(y), delay=7),
}


def by_the_command_line(learner, y):  # or by hand: rows and labels of a stream
    named = {"label": "y", "classes": learner.schema.classes if learner.schema else (-1, 1)}
    (X, signs), *_ = okl.stream(pd.DataFrame(A, columns=NAMES).assign(y=y), **named)
    okl.run(learner, X[:60], signs[:60], labels="optional")
    for x, label in zip(X[60:], signs[60:], strict=True):
        learner.learn_one(x, label)


TWO_CLASSES = (1, 2), (1, 0), (1, -1), (-1, 1), (0, 1), (True, False), (False, True), ("no", "yes")
TWO_CLASSES += (1.5, 1.0), ("1", "0")
LATER = ENTRIES | {"rows of a stream": by_the_command_line}
LATER["optional"] = lambda learner, y: okl.run(learner, cut(y), labels="optional")


# All pairs of classes in two ways, and some of each type in all ways.
IN_EACH_WAY = [(pair, how) for pair in ((1, 0), (False, True), ("no", "yes")) for how in LATER]
IN_EACH_WAY += [(pair, how) for pair in TWO_CLASSES for how in ("rounds", "optional")]


@pytest.mark.parametrize("classes, how", dict.fromkeys(IN_EACH_WAY), ids=str)
def test_a_label_is_what_its_classes_say(classes, how, tmp_path):
    play = LATER[how]
    labels = np.array(classes)[(SIGNS > 0).astype(int)]
    frame = pd.DataFrame(A, columns=NAMES).assign(y=labels)
    plain, learner = okl.LinearRidge().partial_fit(A, SIGNS), okl.LinearRidge()
    okl.run(learner, okl.stream(frame, label="y", classes=classes), checkpoint=tmp_path / "run")
    play(plain, SIGNS)
    play(learner, frame.y)
    assert learner.schema.classes == classes
    assert_allclose(learner.predict(A), plain.predict(A), rtol=1e-9)
    if not isinstance(classes[0], str):  # what is neither
        refused("not one of the classes", learner.learn_one, A[0], 7)
    again = okl.LinearRidge()
    okl.run(again, A[::-1], labels[::-1], checkpoint=tmp_path / "run", resume=True)
    assert_allclose(again.predict(A), plain.predict(A), rtol=1e-9)
    for late in {1, -1} - {*classes}:  # as which classes were learned, but where 1 is the first
        if classes[0] in (1, "1") or classes[1] == -1:
            refused("not one of the classes", learner.learn_one, A[0], late)
        else:
            learner.learn_one(A[0], late)
            plain.learn_one(A[0], late)
    assert_allclose(learner.predict(A), plain.predict(A), rtol=1e-9)


@pytest.mark.parametrize("classes", TWO_CLASSES, ids=str)
@pytest.mark.parametrize("hold", [list, pd.Series, lambda y: [*y, None]])
def test_bools_are_the_classes_0_and_1_or_minus_1_and_1_and_no_others(classes, hold):
    labels = np.array(classes)[(SIGNS > 0).astype(int)]
    learner = okl.LinearRidge()
    frame = pd.DataFrame(A, columns=NAMES).assign(y=labels)
    okl.run(learner, okl.stream(frame, label="y", classes=classes))
    bools = hold([True, False])
    X = A[: len(bools)]
    if classes not in ((-1, 1), (0, 1), (1, 0), (False, True), (True, False)):
        refused("'True' at row 0, which is not one of", learner.partial_fit, X, bools)
        return
    plain = okl.LinearRidge().partial_fit(A, SIGNS)
    okl.run(learner, X, bools, labels="optional")
    plain.partial_fit(A[:2], [1.0, -1.0] if classes[1] else [-1.0, 1.0])
    assert_allclose(learner.predict(A), plain.predict(A), rtol=1e-9)


UP, NO_CLASSES = Y > 0, {"real": Y, "whole": Y.round(), "one": np.ones(80), "zero": np.zeros(80)}
TWO = {"0 and 1": np.where(UP, 1.0, 0.0), "1 and 2": np.where(UP, 2.0, 1.0)}
TWO |= {"3 and 7": np.where(UP, 7, 3)}
KINDS = TWO | NO_CLASSES | {"signs": SIGNS, "one fraction": np.where(np.arange(80) == 7, 0.5, UP)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make, how",
    [(okl.LinearRidge, how) for how in ENTRIES]
    + [(okl.SelfTuning, how) for how in ("rounds", "run")],
)
def test_labels_that_are_two_whole_numbers_are_told_of_once_and_no_others(kind, make, how):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ENTRIES[how](make(), KINDS[kind])
    told = [str(one.message) for one in caught if "the labels are" in str(one.message)]
    assert len(told) == (kind in TWO) and all(f"the labels are {kind}" in one for one in told)


@pytest.mark.parametrize("hold", [list, pd.Series, pl.Series, pa.array, lambda y: y.astype(object)])
def test_bool_labels_of_any_kind_are_classes(hold):
    for play in ENTRIES.values():
        learner, plain = okl.LinearRidge(), okl.LinearRidge()
        play(learner, SIGNS > 0)
        play(plain, SIGNS)
        assert battery.contents(learner) == battery.contents(plain)
    learner, plain = (okl.LinearRidge().partial_fit(A, y) for y in (hold(SIGNS > 0), SIGNS))
    assert battery.contents(learner) == battery.contents(plain)


MASKED = np.ma.array(SIGNS, mask=np.arange(80) % 4 == 0)


def test_masked_labels_are_missing_or_refused():
    gaps = np.where(MASKED.mask, np.nan, SIGNS)
    classes, other = (okl.OneVsRest(okl.LinearRidge(), [-1, 1]) for _ in range(2))
    learner, plain = okl.LinearRidge(), okl.LinearRidge()
    run = okl.run(learner, A, MASKED, labels="optional")
    assert_array_equal(run.predictions, okl.run(plain, A, gaps, labels="optional").predictions)
    okl.run(classes, A, MASKED, labels="optional")
    assert classes.rounds == 60
    masked, labels = np.ma.array(A, mask=A > 2), okl.interop.OnlineClassifier()
    for call, words in (
        (lambda: classes.partial_fit(A, MASKED), "^y has no label at row 0"),
        (lambda: other.partial_fit(masked, SIGNS), "masked"),
        (lambda: learner.partial_fit(A, MASKED), "has masked entries"),
        (lambda: labels.fit(A, MASKED), "^y has no label at row 0"),
        (lambda: labels.fit(masked, SIGNS), "masked"),
        (lambda: okl.interop.OnlineRegressor().fit(A, MASKED), "masked"),
        (lambda: okl.interop.OnlineRegressor().fit(masked, SIGNS), "masked"),
    ):
        refused(words, call)


# ---- arrays that are used again, empty pieces, forks ----


@pytest.mark.parametrize("options", [{"delay": 5}, {"batch": 8}, {"delay": 3, "batch": 4}])
def test_a_reader_may_refill_its_array(options):
    def refilled():
        X, y = np.empty((10, 3)), np.empty(10)
        for start in range(0, 80, 10):
            X[:], y[:] = A[start : start + 10], Y[start : start + 10]
            yield X, y

    expected = okl.run(okl.LinearRidge(), A, Y, **options)
    found = okl.run(okl.LinearRidge(), refilled(), **options)
    assert_array_equal(found.predictions, expected.predictions)


@pytest.mark.parametrize("name", LEARNERS)
def test_no_rows(name):
    learner, y = clone(LEARNERS[name]), labels_of(LEARNERS[name])
    run = okl.run(learner, [(A[:0], y[:0]), (A[:9], y[:9]), (A[:0], y[:0]), (A[9:], y[9:])])
    assert run.rounds == 80
    assert learner.predict(A[:0]).shape == (0, *y.shape[1:])
    assert learner.predict(pd.DataFrame(A[:0])).shape == (0, *y.shape[1:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_in_mid_call_does_not_hang():
    learner, inside, go_on = make().partial_fit(A, Y), threading.Event(), threading.Event()
    play = learner._play

    def wait(*arguments):
        inside.set()
        go_on.wait()
        play(*arguments)

    learner._play = wait
    thread = threading.Thread(target=learner.partial_fit, args=(A, Y))
    thread.start()
    inside.wait()
    assert "interrupted" in in_child(lambda: learner.predict_one(A[0]))
    assert in_child(lambda: learner.reset().predict_one(A[0])) == 0.0
    go_on.set()
    thread.join()
    assert learner.rounds == 160


# ---- a checkpoint and its data ----


@pytest.mark.parametrize(
    "kind, record",
    [(kind, "all") for kind in ("real", "signs", "classes", "outputs", "late", "optional")]
    + [(kind, record) for kind in ("real", "optional") for record in (7, "none")],
)
def test_a_checkpoint_goes_on_with_its_own_data_only(kind, record, tmp_path):
    base = okl.LinearRidge()
    learners = {"classes": okl.OneVsRest(base, [0, 1]), "outputs": okl.MultiOutput(base)}
    labels = {"signs": SIGNS, "classes": (Y > 0).astype(int), "outputs": np.column_stack([Y, -Y])}
    learner, y = learners.get(kind, base), labels.get(kind, Y)
    if kind == "optional":
        y = np.where(np.arange(80) % 9 == 5, np.nan, y)
    options = {"late": {"delay": 3}, "optional": {"labels": "optional"}}.get(kind, {})
    options |= {"record": record}
    file, order = tmp_path / "run.npz", RNG.permutation(80)
    expected = okl.run(clone(learner), A, y, **options)

    def go_on(X, y, **more):
        okl.run(clone(learner), A[:50], wanted[:50], checkpoint=file, **options)
        fresh = clone(learner)
        try:
            return okl.run(fresh, X, y, checkpoint=file, **options, **more)
        except ValueError:
            assert battery.contents(fresh) == battery.contents(learner)
            raise
        finally:
            file.unlink()

    def assert_goes_on(run):
        for name in ("predictions", "losses", "sizes", "recorded", "loss_sums", "labelled"):
            assert_array_equal(getattr(run, name), getattr(expected, name), err_msg=name)
        battery.assert_same_proofs(run.certificate, expected.certificate)

    wanted = y
    for bad in (A[:, :2], np.full_like(A, np.nan), A[0]):
        refused(r"\bX\b", go_on, bad, y)
    for few in ((A[:30], y[:30]), ([(A[:30], y[:30])], None)):
        refused("has played 50 rounds, but the data has only 30", go_on, *few)
    for other in (1 - y if kind == "classes" else -y, y[order]):
        refused("is of other data: the labels of rounds 1 to 50", go_on, A, other)
        with pytest.raises(ValueError, match="is of other data"):
            go_on([(A[k : k + 20], other[k : k + 20]) for k in range(0, 80, 20)], None)
    late = np.where((np.arange(80) == 49)[:, None], 2 * A, A)
    for inputs in (A[:, ::-1], csr_array(A[:, ::-1]), late):  # columns swapped; one row
        refused("other data: the inputs of rounds 1 to 50", go_on, inputs, y)
    for inputs in (A, csr_array(A)):
        assert_goes_on(go_on(inputs, y))
    assert_goes_on(rest := go_on(A[50:], y[50:], resume=True))
    if kind == "real":
        refused("keeps|does not hold its data", rest.regret, okl.Linear(), 1.0)
    refused("with resume=True pass only what comes after", go_on, A, y, resume=True)


def test_rows_that_repeat_may_follow_a_checkpoint(tmp_path):
    """A few kinds of rows say nothing about whether all data was passed again."""
    days, file = np.eye(7)[np.arange(70) % 7], tmp_path / "run.npz"
    y = days @ np.arange(7.0)
    okl.run(make(), days[:49], y[:49], checkpoint=file)
    run = okl.run(make(), days[49:], y[49:], checkpoint=file, resume=True)
    assert_array_equal(run.predictions, okl.run(make(), days, y).predictions)


# ---- files as others write them ----

FRAME = pd.DataFrame({"a": A[:, 0], "b": A[:, 1], "y": Y})


@pytest.mark.parametrize("index", ["nameless", "day", "several"])
@pytest.mark.parametrize("kind", ["csv", "polars", "parquet", "arrow", "frame"])
def test_the_index_of_pandas_is_no_input(kind, index, tmp_path):
    frame = FRAME.iloc[RNG.permutation(80)]
    if index == "several":
        frame = frame.set_index([np.arange(80), frame.index])
    elif index == "day":
        frame = frame.rename_axis("day")
    path = tmp_path / f"a.{kind}"
    if kind in ("csv", "polars"):
        nameless = frame if index == "nameless" else frame.reset_index(drop=True)
        nameless.rename_axis(index=None).to_csv(path)
    elif kind != "frame":
        written(pa.Table.from_pandas(frame) if kind == "arrow" else frame, path)
    source = frame if kind == "frame" else pl.read_csv(path) if kind == "polars" else path
    data = okl.stream(source, label="y")
    assert data.columns == ("a", "b")
    assert_array_equal(together(data)[0], frame[["a", "b"]])
    if (kind, index) == ("parquet", "day"):  # but for one that is named as a column
        assert okl.stream(path, label="y", columns=["a", "day"]).columns == ("a", "day")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_that_are_named_by_a_value(kind, tmp_path):
    for year in (2020, 2021):
        folder = tmp_path / "run=3" / "rows" / f"year={year}"  # run=3 is above what is named
        folder.mkdir(parents=True)
        written(FRAME[:20], folder / f"part.{kind}")
    data = okl.stream(tmp_path / "run=3" / "rows", label="y")
    assert data.columns == ("a", "b", "year")
    assert_array_equal(together(data)[0][:, 2], np.repeat([2020.0, 2021.0], 20))
    assert okl.stream(folder / f"part.{kind}", label="y").columns == ("a", "b")


def test_a_libsvm_file_that_starts_elsewhere(tmp_path):
    def write(name, rows):
        lines = (" ".join(["1", *(f"{j}:{v}" for j, v in row.items())]) for row in rows)
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    train = write("train.svm", [{0: 1.0, 3: 2.0}, {1: 3.0}])
    test = write("test.svm", [{1: 5.0, 2: 6.0}])  # never uses column 0
    model = okl.LinearRidge()
    okl.run(model, okl.stream(train))
    model.save(tmp_path / "model.npz")
    for like in (model, okl.load(tmp_path / "model.npz"), okl.stream(train)):
        assert together(okl.stream(test, like=like))[0].tolist() == [[0.0, 5.0, 6.0, 0.0]]
    rows = together(okl.stream(test, zero_based=True, width=4))[0]
    assert rows.tolist() == [[0.0, 5.0, 6.0, 0.0]]
    assert together(okl.stream(test))[0].tolist() == [[5.0, 6.0]]
    with pytest.raises(ValueError, match=r"columns 1 to 9, which do not fit width=4"):
        okl.stream(write("wide.svm", [{1: 1.0, 9: 1.0}]), like=model)
    okl.run(model, okl.stream(test))  # as the model reads it
    with pytest.raises(ValueError, match="the data so far had 4.*; pass width=4"):
        okl.run(okl.LinearRidge().partial_fit(A[:, [0, 1, 2, 0]], Y), okl.stream(test))


@every_format
def test_a_missing_label_passes_as_one(kind, tmp_path):
    there, texts = np.arange(80) % 4 > 0, np.where(Y > 0, "hot", "cold")
    for label, numbers in ((np.where(there, Y, np.nan), Y), (np.where(there, texts, None), SIGNS)):
        data = okl.stream(written(FRAME.assign(y=label), tmp_path / f"a.{kind}"), label="y")
        run = okl.run(okl.LinearRidge(), data, labels="optional")
        y = np.where(there, numbers, np.nan)
        expected = okl.run(okl.LinearRidge(), A[:, :2], y, labels="optional")
        assert_array_equal(run.predictions, expected.predictions)
        refused("y has nan at row 0", okl.run, okl.LinearRidge(), data)
    names = np.where(np.arange(80) == 5, None, np.array([*"abc"], dtype=object)[np.arange(80) % 3])
    data = okl.stream(written(FRAME.assign(y=names), tmp_path / f"a.{kind}"), label="y")
    learner = okl.OneVsRest(okl.LinearRidge(), data.classes)
    assert okl.run(learner, data, labels="optional").labelled[-1] == learner.rounds == 79


def test_text_of_several_lines(tmp_path):
    path, rows = tmp_path / "a.csv", 60_000
    text = '"first line\nsecond, and ""quoted"""'
    path.write_text("a,note,y\n" + "".join(f"{k},{text},{k % 7}\n" for k in range(rows)))
    X, y = together(okl.stream(path, label="y", drop=["note"]))
    assert_array_equal(X[:, 0], np.arange(rows))
    assert_array_equal(y, np.arange(rows) % 7)


def test_a_csv_as_a_spreadsheet_writes_it(tmp_path, capsys):
    text = "made by hand\npreis;größe;y\n1,5;2;0,5\n-3,25;1;1\n"
    path = tmp_path / "Table.CSV"
    path.write_bytes(text.encode("latin-1"))
    options = {"delimiter": ";", "decimal": ",", "encoding": "latin-1", "skip": 1}
    data = okl.stream(path, label="y", **options)
    X, y = together(data)
    assert data.columns == ("preis", "größe")
    assert X.tolist() == [[1.5, 2.0], [-3.25, 1.0]] and y.tolist() == [0.5, 1.0]
    model = okl.LinearRidge()
    okl.run(model, data)
    assert_array_equal(together(okl.stream(path, like=model))[0], X)  # read in the same way
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    say(capsys, "run", path, "--label", "y", *arguments, "--save", tmp_path / "model.npz")
    said = read(say(capsys, "predict", tmp_path / "model.npz", path).out)
    assert len(said) == 2
    path.write_bytes(text.split("\n", 1)[1].encode("utf-16"))
    del options["skip"]
    stream = okl.stream(path, label="y", **options | {"encoding": "utf-16"})
    assert_array_equal(together(stream)[0], X)


PLAIN = "a,b,y\n1,2,3\n4,5,6\n"


def test_pipes_patterns_and_names_of_files(tmp_path, monkeypatch):
    for k in range(3):
        (tmp_path / f"part-{k}.CSV").write_text(PLAIN)
    (tmp_path / "part-3.CSV").write_bytes(b"")
    monkeypatch.setenv("HOME", str(tmp_path))
    for source, rows in ((tmp_path, 6), ("~/part-0.CSV", 2), (tmp_path / "part-[01].CSV", 4)):
        assert len(together(okl.stream(source, label="y"))[1]) == rows
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_text, args=(PLAIN,))
    thread.start()
    data = okl.stream(pipe, label="y")
    thread.join()
    assert together(data)[0].tolist() == together(data)[0].tolist() == [[1.0, 2.0], [4.0, 5.0]]


@pytest.mark.parametrize("source", ["csv", "parquet", "arrow", "pandas", "polars", "frame"])
def test_large_integers_are_rounded_alike(source, tmp_path):
    frame = pd.DataFrame({"id": [2**60 + 1, 2**53 + 1, -(2**62) + 3], "y": [1.0, 2.0, 3.0]})
    if source in ("pandas", "polars"):
        learner = okl.LinearRidge().partial_fit(FRAMES[source](frame[["id"]]), frame.y)
        assert learner.predict_one({"id": 2**53 + 1}) == learner.predict_one([float(2**53 + 1)])
    else:
        held = frame if source == "frame" else written(frame, tmp_path / f"a.{source}")
        found = together(okl.stream(held, label="y"))[0]
        assert_array_equal(found[:, 0], frame.id.to_numpy(float))


def test_the_model_of_an_estimator_knows_names_and_classes(tmp_path):
    frame, labels = FRAME[["a", "b"]], np.where(Y > 0, "hot", "cold")
    model = okl.interop.OnlineClassifier(okl.PKAWV(okl.TaylorFeatures(2))).fit(frame, labels)
    model.learner_.save(tmp_path / "model.npz")
    learner = okl.load(tmp_path / "model.npz")
    assert learner.schema.names == ("a", "b") and learner.schema.classes == ("cold", "hot")
    assert_array_equal(learner.predict(frame[["b", "a"]]), model.decision_function(frame))
    assert okl.interop.OnlineRegressor().fit(A, Y).learner_.schema is None


@pytest.mark.parametrize("scale", [1e-200, 1e70])
def test_self_tuning_refuses_labels_beyond_or_that_leave_its_range(scale):
    y = scale * (Y + 0.5)
    for play in ENTRIES.values():
        learner = okl.SelfTuning()
        refused("takes sizes from 1e-60 to 1e.60: scale the labels", play, learner, y)
        assert learner.rounds <= 8
    refused("takes sizes from 1e-60", lambda: okl.Intervals(okl.SelfTuning()).partial_fit(A, y))
    with pytest.raises(ValueError, match="takes sizes from 1e-60"):
        okl.MultiOutput(okl.SelfTuning()).partial_fit(A, np.column_stack([Y, y]))
    X, y, row = np.tile(A, (2, 1)), np.append(Y + 0.5, y), 88 if scale < 1 else 87
    refused(r"labels, y \* 1e\+300", okl.SelfTuning().partial_fit, A, np.copysign(5e-324, Y))
    learner = okl.SelfTuning()
    # half of the last 16 are odd
    refused(f"at row {row}", learner.partial_fit, X, y)
    assert learner.rounds == 0
    learner.partial_fit(X[:row], y[:row])
    refused("at row 0", learner.learn_one, X[row], y[row])
    assert learner.rounds == row
    two, Z = okl.MultiOutput(okl.SelfTuning()), np.column_stack([np.resize(Y, len(y)), y])
    two.partial_fit(X[:row], Z[:row])  # its last row is odd, as those that follow
    refused("at row 0", two.learn_one, X[row], Z[row])
    assert two.rounds == row
    y[86:], y[90::2] = np.resize(Y, 74), 0.0  # a few are outliers, and zeros have no size
    okl.run(okl.SelfTuning(), X, y)


def test_vectors_of_single_rounds_count_for_the_medians_that_fill_gaps():
    frame = pd.DataFrame({"a": [0.0, 1.0, np.nan, 2.0], "y": [0.5, 1.0, 0.0, 2.0]})
    single, rows = okl.LinearAWV(), okl.LinearAWV()
    for learner in (single, rows):
        okl.run(learner, okl.stream(frame, label="y", impute="median"))
    for _ in range(5):
        single.learn_one(np.array([9.0]), 1.0)
        rows.partial_fit([[9.0]], [1.0])
    assert single.schema.to_json() == rows.schema.to_json()
    assert single.predict_one({"a": None}) == rows.predict_one({"a": None})
