"""The command line: what it prints, what it refuses, and how it ends."""

import dataclasses
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import oklnumba as okl
from oklnumba.command import source, spelling
from oklnumba.command.demo import name_python
from oklnumba.command.parser import INTERRUPTED, main
from tests.battery import CLASSES
from tests.checks import ROOT, refused

N = 1500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with one stream in several files and kinds of labels."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)) * [1.0, 100.0, 0.01] + [0.0, 5000.0, 0.0]
    signal_ = X[:, 0] * (X[:, 1] - 5000.0) / 100.0 + 0.2 * rng.normal(size=N)
    labels = {
        "text": np.where(signal_ > 0, "yes", "no"),
        "bool": np.where(signal_ > 0, "true", "false"),
        "zeroone": (signal_ > 0).astype(int),
        "signs": np.where(signal_ > 0, 1, -1),
        "number": signal_,
        "three": np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.4, 0.4])],
    }
    frame = pd.DataFrame(X, columns=["first", "second", "third"]).assign(**labels)
    frame.to_csv(folder / "all.csv", index=False)
    np.savez(folder / "xy.npz", X=X, y=labels["signs"])
    rows = [
        f"{y} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(x))
        for x, y in zip(X.tolist(), labels["signs"], strict=True)
    ]
    (folder / "xy.svm").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def table(folder):
    return str(folder / "all.csv")


@pytest.fixture
def demo_data(monkeypatch):
    """Let the demo play 600 rows; return them."""
    data = okl.datasets.load("magic04", scale=None, permute=0)
    data = dataclasses.replace(data, X=data.X[:600], y=data.y[:600])
    monkeypatch.setattr("oklnumba.command.demo.datasets.load", lambda *_, **__: data)
    return data


INPUTS = ["--columns", "first,second,third"]
FAST = ["--learner", "LinearAWV"]
REGRESS, CLASSIFY = ["--task", "regression"], ["--task", "classification"]


def said(capsys, *argv, status=0):
    """Return what a command prints on stdout; its errors must be one line."""
    try:
        found = main([*argv])
    except SystemExit as end:
        found = end.code
    out, err = capsys.readouterr()
    assert found == status, err
    if status == 2:
        one_line = re.fullmatch(r"(oklnumba: note: .*\n)*oklnumba: error: [^\n]+\n", err)
        assert one_line or err.startswith("usage: ")
        return err
    return out


# ---- labels ----


@pytest.mark.parametrize(
    "label, words, more",
    [
        ("text", "two classes: no is -1, yes is +1", "mistakes"),
        ("bool", "two classes: False is -1, True is +1", "mistakes"),
        ("zeroone", "two classes: 0 is -1, 1 is +1", "mistakes"),
        ("signs", "two classes, -1 and +1", "mistakes"),
        ("number", "numbers: regression", "squared, mean"),
        ("zeroone --task regression", "numbers: regression", "squared, mean"),
        ("three", "3 classes: a, b, c", "OneVsRest("),
    ],
)
def test_labels_tell_the_task_and_two_of_any_kind_are_the_same_run(
    capsys, table, label, words, more
):
    def played(labels):
        out = said(capsys, "run", table, "--label", *labels.split(), *INPUTS, *FAST)
        rows = [line.split() for line in out.splitlines()]
        rows = [row for row in rows if row[:1] not in (["labels"], ["time"])]
        # Labels and forecasts are those of test_the_table_is_that_of_the_run.
        return [row[:3] + row[5:] if row[2:3] and row[2].isdigit() else row for row in rows], out

    found, out = played(label)
    assert f"labels    {label.split()[0]}: {words}" in out and more in out
    assert ("mistakes" in out) == ("regression" not in words)
    assert "two classes" not in words or found == played("signs")[0]


@pytest.mark.parametrize("label", ["x", "signs", "yes", "abc"])
@pytest.mark.parametrize("gap", [slice(64, None), slice(0, 64), slice(0, None, 3)], ids=str)
def test_optional_labels_are_those_of_a_run_and_pieces_may_have_none(capsys, tmp_path, label, gap):
    """Rows that come after the labels are there to be forecast; a piece of them is not a class."""
    x = np.random.default_rng(0).uniform(-1, 1, 128)
    yes, abc = np.where(x > 0, "yes", "no"), np.array([*"abc"])[(2 + 2 * x).astype(int) % 3]
    signs, kinds = np.sign(x), {"x": (x, x), "abc": (abc, abc)}
    texts, labels = (kinds | {"signs": (signs, signs), "yes": (yes, signs)})[label]
    texts, labels = texts.astype(object), labels.astype(object)
    texts[gap] = labels[gap] = None
    path = tmp_path / "gaps.csv"
    learner = okl.LinearAWV()
    pd.DataFrame({"x": x, "y": texts}).to_csv(path, index=False)
    options = "run", str(path), "--label", "y", *FAST, "--labels", "optional"
    out = said(capsys, *options)
    learner = okl.OneVsRest(learner, [*"abc"]) if label == "abc" else learner
    run = okl.run(learner, x[:, None], labels, labels="optional")
    wrong, there = run.mistakes, int(run.labelled[-1])
    what = f"loss      {run.mean_loss:.6g} ("
    if wrong is not None:
        what = f"mistakes  {100 * run.mistake_rate:.4g} % ({wrong.sum()})"
    assert f"rounds    128, {there} with a label\n" in out and 0 < there < 128
    assert what in out and ("mistakes" in out) == (label != "x") and "regret" not in out
    if gap == slice(0, 64):
        assert "rounds    60, 0 with a label\ntime" in said(capsys, *options, "--rows", "60")


# ---- the table and the summary ----


def test_before_the_first_label_no_number_is_told(capsys, tmp_path):
    path = tmp_path / "late.csv"
    y = ["" if k < 150 else "no" if k % 3 else "yes" for k in range(300)]
    path.write_text("a,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(y)))
    options = str(path), "--label", "y", *FAST, "--labels", "optional"
    lines = [line.split() for line in said(capsys, "run", *options).splitlines()]
    for line in (one for one in lines if one[2:3] in (["64"], ["128"])):
        assert line[:2] == ["nan", "nan"]
    found = said(capsys, "compare", *options, "--rows", "100").splitlines()[-1].split()
    assert found[1:3] == ["nan", "squared"]


def test_classes_are_looked_for_in_the_first_rows(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(source, "LOOK_ROWS", 20)
    path = tmp_path / "sorted.csv"
    path.write_text("a,y\n" + "1,1\n" * 70_000 + "1,0\n")
    assert re.search(
        r"the first [\d,]+ labels of column 'y' are 1.0",
        said(capsys, "run", str(path), "--label", "y", status=2),
    )


@pytest.mark.parametrize("label", ["signs", "text", "number"])
def test_the_table_is_that_of_the_run(capsys, table, folder, label):
    out = said(capsys, "run", table, "--label", label, *INPUTS, *FAST)
    data = np.genfromtxt(table, delimiter=",", names=True, dtype=None, encoding="utf-8")
    X = np.column_stack([data[name] for name in INPUTS[1].split(",")])
    y = np.where(data[label] == "yes", 1.0, -1.0) if label == "text" else data[label].astype(float)
    run = okl.run(okl.LinearAWV(), X, y)
    measure = run.losses if label == "number" else 100.0 * run.mistakes
    lines = out.split("forecast\n", 1)[1].split("\n\n", 1)[0].splitlines()
    rows = [line.split() for line in lines]
    assert [int(row[2]) for row in rows] == [64, 128, 256, 512, 1024]
    last = 0
    for so_far, since, t, y, forecast, size in rows:
        t = int(t)
        assert float(so_far) == pytest.approx(measure[:t].mean(), rel=1e-4)
        assert float(since) == pytest.approx(measure[last:t].mean(), rel=1e-4)
        if label == "text":
            is_yes = run.predictions[t - 1] > 0.0
            assert (y, forecast) == (data[label][t - 1], "yes" if is_yes else "no")
        else:
            assert float(y) == pytest.approx(data[label][t - 1], rel=1e-4)
            assert float(forecast) == pytest.approx(run.predictions[t - 1], rel=1e-3, abs=1e-9)
        assert int(size) == 3
        last = t
    regret, bound = run.certificate.regret[-1], run.certificate.bound[-1]
    assert f"regret    {regret:.5g}, bound {bound:.5g}, squared loss" in out
    assert f"rounds    {N}\n" in out
    if label != "number":
        wrong = int(run.mistakes.sum())
        assert f"mistakes  {100 * wrong / N:.4g} % ({wrong})\n" in out
    assert all(len(line) <= 100 and line.isascii() for line in out.splitlines()[4:])


def test_every_kind_of_file_is_the_same_run(capsys, folder, tmp_path):
    archive = np.load(folder / "xy.npz")
    columns = dict(zip(("x0", "x1", "x2"), archive["X"].T, strict=True))
    made = pa.table(columns | {"y": archive["y"]})
    (tmp_path / "several").mkdir()
    for k in range(2):
        part = made.slice(k * 700, 700 if k == 0 else N)
        pyarrow.parquet.write_table(part, tmp_path / "several" / f"{k}.parquet")
    found = []
    for path in (folder / "xy.npz", folder / "xy.svm", tmp_path / "several"):
        label = [] if path.parent == folder else ["--label", "y"]
        out = said(capsys, "run", str(path), *label, *FAST)
        found.append([row for row in out.splitlines()[2:] if not row.startswith("time")])
    assert found[1:] == found[:1] * 2
    assert "\nmistakes  " in "\n".join(found[0])
    bare = tmp_path / "bare.txt"
    np.savetxt(bare, np.column_stack([archive["X"], archive["y"]]), delimiter=",")
    how = "--format", "csv", "--no-header", "--label", "3", *FAST
    out = said(capsys, "run", str(bare), *how)
    assert re.findall("mistakes .*", out) == re.findall("mistakes .*", "\n".join(found[0]))


def test_texts_are_encoded_and_columns_dropped(capsys, folder, table):
    how = ["--label", "signs", "--drop", "text,bool,zeroone,number", "--encode", "three"]
    out = said(capsys, "run", table, *how, "--set", "seed=3", "--set", "budget=20")
    assert "learner   SelfTuning(budget=20, seed=3, " in out and "\nleader    " in out
    assert "1500 rows, 6 columns" in out and "bool" not in out
    data = okl.stream(table, label="signs", drop=how[3].split(","), encode=["three"])
    expected = okl.run(okl.SelfTuning(budget=20, seed=3), data)
    assert data.columns[-3:] == ("three_a", "three_b", "three_c")
    assert f"({int(expected.mistakes.sum())})" in out
    assert "LinearAWV" in said(capsys, "compare", table, *how, *FAST)
    some = said(capsys, "run", str(folder / "xy.npz"), "--drop", "x1", *FAST)
    for kept in (["--columns", "x0,x2"], ["--columns", "x0", "--columns", "x2"]):
        out = said(capsys, "run", str(folder / "xy.npz"), *kept, *FAST)
        assert re.findall("mistakes .*", some) == re.findall("mistakes .*", out)


def test_a_data_set_by_name_a_part_of_it_and_its_model(capsys, tmp_path):
    model = tmp_path / "m.npz"
    out = said(
        capsys, "run", "magic04", "--permute", "1", "--rows", "700", "--learner", "PKAWV",
        "--set", "features=TaylorFeatures(degree=1, sigma=500)", "--set", "lam=0.5",
        "--save", str(model),
    )  # fmt: skip
    data = okl.datasets.load("magic04", scale=None, permute=1)
    learner = okl.PKAWV(okl.TaylorFeatures(degree=1, sigma=500), lam=0.5)
    run = okl.run(learner, data.X[:700], data.y[:700])
    assert f"mistakes  {100 * run.mistake_rate:.4g} % (" in out
    again = okl.load(model)
    assert repr(again).startswith(f"{learner!r} of Schema('x0', ") and again.rounds == 700
    np.testing.assert_allclose(again.predict(data.X[700:]), learner.predict(data.X[700:]))
    np.savez(tmp_path / "xy.npz", X=data.X, y=data.y)
    lines = said(capsys, "predict", str(model), str(tmp_path / "xy.npz")).splitlines()
    expected = np.where(learner.predict(data.X) > 0, "1", "-1")
    assert [line.split(",")[0] for line in lines[1:]] == expected.tolist()


def test_predict_writes_the_classes_of_a_one_vs_rest_of_two_numbers(capsys, tmp_path):
    x, path, model = np.linspace(-1, 1, 40), str(tmp_path / "x.csv"), str(tmp_path / "model.npz")
    pd.DataFrame({"x": x, "y": np.where(x > 0, 1.5, 0.5)}).to_csv(path, index=False)
    learner = okl.OneVsRest(okl.LinearAWV(), [0.5, 1.5])
    okl.run(learner, okl.stream(path, label="y", classes=[0.5, 1.5]))
    learner.save(model)
    expected = ["forecast", *map(str, learner.predict(x[:, None]).tolist())]
    assert said(capsys, "predict", model, path).splitlines() == expected
    assert {*expected} > {"0.5", "1.5"}


def test_a_tsv_of_one_column_whose_name_has_a_comma(capsys, tmp_path):
    frame = pd.DataFrame({"depth, m": np.arange(30.0), "y": np.arange(30.0)})
    learner = okl.LinearAWV()
    okl.run(learner, okl.stream(frame, label="y"))
    learner.save(tmp_path / "model.npz")
    frame[["depth, m"]].to_csv(tmp_path / "one.tsv", sep="\t", index=False)
    assert main(["predict", str(tmp_path / "model.npz"), str(tmp_path / "one.tsv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 31


@pytest.mark.parametrize("taught", ["yn", "12345"], ids=["classes", "numbers"])
def test_predict_without_learn_does_not_read_labels(capsys, tmp_path, taught):
    model, path = str(tmp_path / "m.npz"), tmp_path / "f.csv"

    def write(labels, name="bought"):
        lines = [f"{i % 7},{labels[i % len(labels)]}" for i in range(60)]
        path.write_text("\n".join([f"x,{name}", *lines]))
        return str(path)

    said(capsys, "run", write(taught), "--label", "bought", *FAST, "--save", model)
    expected = said(capsys, "predict", model, write([""]))
    for labels in (taught, ["maybe"], ["y", "1", "maybe"], ["2026-01-31"]):
        assert said(capsys, "predict", model, write(labels)) == expected
        assert said(capsys, "predict", model, write(labels, "z"), "--label", "z") == expected
    said(capsys, "predict", model, write(["maybe"]), "--learn", status=2)


def test_notes_are_on_stderr_and_a_learner_that_breaks_down_does_not_stop_the_others(capsys, table):
    learner = ["--learner", "KernelAWV(Gaussian(1e-3))", "--rows", "200"]
    assert main(["run", "magic04", "--permute", "0", *learner]) == 0
    assert re.match(r"oklnumba: note: [^\n]+\n$", capsys.readouterr().err)
    named = ["--learner", "LinearAWV", "--learner", "POMDR(Gaussian(1.0))"]  # hinge loss: -1, +1
    assert main(["compare", table, "--label", "number", *INPUTS, *named]) == 0
    out, err = capsys.readouterr()
    assert "note: POMDR(Gaussian(1.0)) stopped: " in err and err.count("\n") == 1
    assert out.splitlines()[-1].startswith("LinearAWV")


# ---- compare ----


def test_compare_is_sorted_and_counts_right(capsys, table):
    names = ["FOGD(eta=0.3, loss=logistic)", "LinearAWV", "Standardized(LinearAWV())"]
    named = [part for name in names for part in ("--learner", name)]
    out = said(capsys, "compare", table, "--label", "text", *INPUTS, *named)
    lines = out.split("rounds\n", 1)[1].splitlines()
    always = ["always the commonest class", "the last label"]
    assert [line.split("  ")[0] for line in lines[3:]] == always
    errors = [float(line[len(max(names, key=len)) :].split()[0]) for line in lines[:3]]
    assert errors == sorted(errors) and errors[0] < errors[2]
    alone = said(capsys, "run", table, "--label", "text", *INPUTS, *FAST)
    mistakes = re.search(r"mistakes  (\S+) %", alone)[1]
    found = r"balanced accuracy (\S+) %, log loss (\S+), AUC (\S+)"
    balanced, log_loss, auc = re.search(found, alone).groups()
    mine = next(line for line in lines if line.startswith("LinearAWV "))
    assert mine.split()[1:5] == [log_loss, mistakes, balanced, auc]
    rules = re.search(r"commonest class: (\S+) %, the last label: (\S+) %", alone).groups()
    assert tuple(line.split()[-1] for line in lines[3:]) == rules


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
@pytest.mark.parametrize("label", ["text", "number"])
def test_compare_plays_a_dozen(capsys, table, label):
    out = said(capsys, "compare", table, "--label", label, *INPUTS, "--rows", "900")
    lines = out.split("rounds\n", 1)[1].splitlines()
    lines, rules = lines[:12], lines[12:]
    assert len(rules) == (2 if label == "text" else 0)
    assert len(lines) == 12 and all(len(line) <= 100 for line in lines)
    assert ("set the unit of the labels" in out) == (label == "number")
    assert ("mistakes %" in out) == (label == "text")
    assert {line.split()[-1] for line in lines} == {"900" if label == "text" else "810"}


# ---- data ----


def test_data_sets_are_listed_and_fetched(capsys):
    out = said(capsys, "data", "list")
    assert [line.split()[0] for line in out.splitlines()] == okl.datasets.names()
    assert re.search(r"^magic04 +19,020 rows +10 columns +classification +here$", out, re.M)
    assert "19,020 rows, 10 columns" in said(capsys, "data", "fetch", "magic04")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("label", ["signs", "number", "three"])
def test_a_killed_run_goes_on_from_its_checkpoint(capsys, monkeypatch, table, tmp_path, label):
    def kill(lines, run):
        if run.rounds == 1024:
            raise Killed

    options = "run", table, "--label", label, *INPUTS, "--learner", "LinearAWV", "--save"
    file = "--checkpoint", str(tmp_path / "run.npz")
    whole = said(capsys, *options, str(tmp_path / "whole.npz"))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("oklnumba.protocol.checkpoints.SAVE_SECONDS", 0.0)
        patch.setattr("oklnumba.command.run.Lines.show", kill)
        main([*options, str(tmp_path / "part.npz"), *file])
    assert okl.Run.load(file[1]).rounds == 512
    later = said(capsys, *options, str(tmp_path / "part.npz"), *file)
    timed = re.compile("(time|saved) .*\n")
    found, expected = (timed.sub("", out.split("rounds    ")[1]) for out in (later, whole))
    assert found == expected and later.count(" 1024 ") == 1 and " 512 " not in later
    X = np.random.default_rng(0).normal(size=(5, 3))
    forecasts = [okl.load(tmp_path / f"{one}.npz").predict(X) for one in ("whole", "part")]
    np.testing.assert_array_equal(*forecasts)
    error = said(capsys, *options[:-1], *file, "--rows", "300", status=2)
    assert "run.npz has played 1500 rounds, but the data has only 300" in error


# ---- errors ----


@pytest.mark.parametrize(
    "argv, words",
    [
        (["run", "al.csv", "--label", "text"], r"no file and no data set 'al.csv'"),
        (["run", "magik04"], "did you mean 'magic04'"),
        (["run", "{table}", "--label", "txt"], "no column 'txt'; did you mean 'text'"),
        (["run", "{table}", "--label", "signs"], "holds text, 'yes' in row 0; drop or encode"),
        (["run", "{table}", "--label", "signs", "--encode", "txt"], "encode: there is no column"),
        (["run", "{table}", "--label", "signs", "--id", "txt"], "--id): there is no column 'txt'"),
        (["run", "magic04", "--encode", "x0"], "holds numbers, nothing else: leave out"),
        (["run", "{npz}", "--drop", "x9"], "has no column 'x9'; it has x0 to x2"),
        (["run", "magic04", "--learner", "FOGDD"], "no learner 'FOGDD'; did you mean 'FOGD'"),
        (["run", "magic04", "--learner", "FOGD", "--set", "eta"], "write it as --set lam=0.1"),
        (["run", "magic04", "--learner", "FOGD", "--set", "eta=-1"], "eta must be"),
        (["run", "magic04", "--learner", "PKAWV"], "PKAWV needs features; write it as in PKAWV"),
        (["run", "magic04", "--learner", "__import__('os').getcwd()"], "no class"),
        (["run", "magic04", "--save", "nowhere/m.npz"], "nowhere does not exist; make it first"),
        (["run", "{table}", "--label", "text", *INPUTS, "--save", "{table}"], "that is played"),
        (["run", "{table}", "--save", "m.npz", "--checkpoint", "./m.npz"], "the checkpoint too"),
        (["run", "{table}", "--label", "text", "--permute", "0"], "read in order"),
        (["run", "magic04", "--rows", "0"], "--rows"),
        (["run", "magic04", "--label", "z"], "magic04 has no column 'z'; it has x0 to x9, label y"),
        (["run", "{table}", "--label", "text", *INPUTS, *REGRESS], "'text' holds text, '"),
        (["run", "{table}", "--label", "number", *INPUTS, *CLASSIFY], "too many classes: use"),
        (["runn"], "runn"),
        (["predict", "{model}", "{npz}", "--output", "{npz}"], "write them to another file"),
        (["predict", "{model}", "{npz}", "--output", "{model}"], "write them to another file"),
        (["data", "fetch", "magic4"], "did you mean 'magic04'"),
        (["data", "fetch"], "unknown data set None; there are: ijcnn1"),
        (["compare", "magic04", "--learner", "Nothing()"], "no class 'Nothing'"),
        (["warm-up", "ogd"], "no learner 'ogd'; pass the name of one"),
        (["warm-up", "PKAWV("], "cannot read 'PKAWV('; write it as in"),
        (["warm-up", "PKAWV()"], "missing 1 required positional argument: 'features'"),
        (["warm-up", "Gaussian(1)"], "'Gaussian(1)' is not a learner; write it as in"),
    ],
)
def test_errors_take_one_line(capsys, table, folder, argv, words):
    places = {"table": table, "npz": folder / "xy.npz", "model": folder / "model.npz"}
    okl.LinearRidge().partial_fit(np.eye(3), [1, 2, 3]).save(places["model"])
    error = said(capsys, *(part.format(**places) for part in argv), status=2)
    assert words in error, error


FAR = "1,2,1\n1,inf,-1\n-inf,1,1"
ODD = "".join(f"1,2,{i}\n" for i in range(102)) + "1,2,oops\n"
NO_LABEL = "row 1 (the first is 0) has no label in column 'y'"


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "has no rows"),
        ("1,2,1\n1,3,1\n", "all labels of column 'y' are 1.0; --task regression takes equal"),
        (FAR, "has inf at row 1, column 1 ('b'), and some in column 0 ('a'); remove or impute"),
        ("1,2,1\n,,-1\n", "has nan at row 1, column 0 ('a'), and some in column 1 ('b'); "),
        ("1,2,1\n,,-1\n", "in column 1 ('b'); remove or impute such values first; okl.stream("),
        ("1,2,1\n1,3,\n", NO_LABEL),
        ("1,2,yes\n1,3,\n2,3,no\n", NO_LABEL),
        (ODD, "103 labels, too many classes: it holds text, 'oops' in row 102, among numbers"),
        ({"X": np.zeros((3, 2))}, "holds X (3, 2) and y (0,)"),
        ({"X": np.zeros(3), "y": np.ones(3)}, "holds X (3,) and y (3,); (n, d) and (n,)"),
        ({"X": np.zeros((3, 2)), "y": np.ones(2)}, "holds X (3, 2) and y (2,)"),
        ({"X": np.zeros((3, 2)), "y": np.array([1, np.nan, 2])}, "row 1 (the first is 0) has"),
    ],
)
def test_bad_rows_are_named_and_what_an_archive_lacks_is_said(capsys, tmp_path, content, words):
    path, label = tmp_path / "t.npz", []
    if isinstance(content, dict):
        np.savez(path, **content)
    else:
        path, label = tmp_path / "t.csv", ["--label", "y"]
        path.write_text("a,b,y\n" + content)
    assert words in said(capsys, "run", str(path), *label, *FAST, status=2)


def test_a_broken_pipe_and_an_interrupt_end_without_a_traceback(monkeypatch, capfd):
    """As in ``oklnumba data list | head``."""
    for error, status, told in (
        (BrokenPipeError, 0, ""),
        (KeyboardInterrupt, INTERRUPTED, "interrupted\n"),
    ):
        monkeypatch.setattr(okl.datasets, "names", Mock(side_effect=error))
        assert main(["data", "list"]) == status
        assert capfd.readouterr().err == told


def test_a_program_without_a_console(monkeypatch, table, tmp_path):
    """As under pythonw, or in a program that embeds Python."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    X, y = np.ones((80, 1)), np.ones(80)
    assert okl.run(okl.OGD(), X, y, progress=True).rounds == 80
    assert len(okl.sweep(okl.OGD(), (X, y), progress=True)) == 1
    assert okl.warm_up("OGD", progress=True)
    model, data = str(tmp_path / "m.npz"), [table, "--label", "signs", *INPUTS]
    assert main(["run", *data, "--learner", "LinearAWV", "--save", model]) == 0
    assert main(["predict", model, *data[:3], "--drop", "text,bool,zeroone,number,three"]) == 0
    assert main(["run", "nothing.csv"]) == 2 and main(["data", "list"]) == 0
    sys.stdout.close()  # which leads to nowhere


def test_values_and_learners_of_texts():
    made = spelling.parse_learner("PKAWV(TaylorFeatures(2, sigma=0.5), lam=1e-3)", ["lam=2"])
    assert repr(made) == repr(okl.PKAWV(okl.TaylorFeatures(2, sigma=0.5), lam=2))
    made = spelling.parse_learner("Experts", ["learners=[LinearAWV(), OGD(0.1)]", "B=None"])
    assert repr(made) == repr(okl.Experts([okl.LinearAWV(), okl.OGD(0.1)], B=None))
    assert spelling.parse_value("-2") == -2 and spelling.parse_value("(1, 'a')") == (1, "a")
    for text in ("lambda: 0", "FOGD(**{})", "FOGD().eta", "[x for x in y]", "a b", "f'{1}'"):
        refused("cannot read", spelling.parse_value, text)
    for text in ("open('x')", "okl.load('x')", "os.getcwd()"):
        refused("no class", spelling.parse_value, text)


# ---- processes ----


def command(*argv, **keywords):
    return subprocess.Popen(
        [sys.executable, "-m", "oklnumba", *argv],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **keywords,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_from_outside_ends_with_the_table_so_far(number, tmp_path, folder):
    archive = np.load(folder / "xy.npz")
    np.savez(tmp_path / "long.npz", X=np.tile(archive["X"], (200, 1)), y=np.tile(archive["y"], 200))
    model = tmp_path / "m.npz"
    child = command("run", str(tmp_path / "long.npz"), "--save", str(model))
    seen = []
    while not any(line.split()[2:3] == ["1024"] for line in seen):
        seen.append(child.stdout.readline())
        assert seen[-1], child.communicate()
    time.sleep(0.2)
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == INTERRUPTED == 130
    assert re.fullmatch(r"(oklnumba compiles loops [^\n]*\n)?interrupted\n", err)
    rounds = int(re.search(r"rounds    (\d+)\n", out)[1])
    assert 1024 <= rounds < 300_000 and okl.load(model).rounds == rounds
    output = tmp_path / "forecasts.csv"
    child = command(
        "predict", str(model), str(tmp_path / "long.npz"), "--learn", "--output", str(output)
    )
    while not output.exists():
        assert child.poll() is None, child.communicate()
    time.sleep(1.0)
    child.send_signal(number)
    assert child.communicate(timeout=60)[1].endswith("interrupted\n")
    assert child.returncode == INTERRUPTED
    assert okl.load(model).rounds == rounds + len(output.read_text().splitlines()[1:])


def test_the_demo_says_what_its_run_says(capsys, demo_data, tmp_path):
    data = demo_data
    out = said(capsys, "demo", "--output", str(tmp_path))
    picture = tmp_path / "oklnumba_demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and f"picture   {picture}\n" in out
    learner = okl.SelfTuning()
    run = okl.run(learner, data.X, data.y)
    loss, best = np.sum((run.predictions - data.y) ** 2) / 600, run.certificate.comparator[-1] / 600
    most = run.certificate.guaranteed[-1] / 600
    assert best < loss < most
    commonest = 100.0 - max(np.mean(data.y == 1), np.mean(data.y == -1)) * 100.0
    values = 100.0 * np.mean(run.predictions * data.y <= 0), commonest
    assert re.findall(r"([\d.]+) %", out) == [f"{value:.1f}" for value in values]
    values = [f"{value:.3f}" for value in (best, loss, loss - best, most - best)]
    assert re.findall(r"\d\.\d{3}\b", out.split("regret ")[1]) == values
    assert "600 rows" in out and f"suits     {learner.leader}:\n" in out
    assert f"\n          {name_python()} -m oklnumba run FILE.csv --label COLUMN\n" in out


def test_the_demo_names_the_python_that_runs_it(monkeypatch, tmp_path):
    python = tmp_path / ".venv/bin/python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert shlex.split(name_python()) == [str(python)]
    monkeypatch.chdir(tmp_path)
    assert name_python() == ".venv/bin/python"


# ---- the page ----


@pytest.mark.slow
def test_the_commands_of_the_page_run(folder, tmp_path, monkeypatch, capsys, demo_data):
    """Every command of docs/command_line.md, on the files that it names and 600 rows of ours."""
    text = (ROOT / "docs/command_line.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(commands) >= 6
    monkeypatch.chdir(tmp_path)
    sales = ["day,town,kind,price,sold"]
    sales += [
        f"2026-01-{1 + i % 28:02d},{'ab'[i % 2]},{'xyz'[i % 3]},{i},{'yn'[i % 5 % 2]}"
        for i in range(200)
    ]
    (tmp_path / "sales.csv").write_text("\n".join(sales))
    few = ["order,day,town,price,sold"]
    few += [f"{i},2026-01-02,{'ab'[i % 2]},{i},{'yn'[i % 5 % 2]}" for i in range(200)]
    for name in ("day1", "day6", "today"):
        (tmp_path / f"{name}.csv").write_text("\n".join(few))
    points = pd.read_csv(folder / "all.csv").iloc[:, :4].rename(columns={"text": "y"})
    points.to_csv(tmp_path / "points.csv", index=False)
    for line in commands:
        words = shlex.split(line, comments=True)
        assert words[0] == "oklnumba", line
        assert main(words[1:]) == 0, f"{line}: {capsys.readouterr().err}"
    assert (tmp_path / "model.npz").exists()


@pytest.mark.parametrize("name", [cls.__name__ for cls in CLASSES if cls is not okl.Refit])
def test_a_name_alone_is_a_learner_or_says_how_to_write_one(name):
    try:
        found = spelling.parse_learner(name)
    except ValueError as error:
        found = spelling.parse_learner(str(error).partition("write it as in ")[2])
    assert type(found).__name__ in (name, getattr(okl, name).__name__)


def test_lags_and_seasons_of_the_command_line(capsys, tmp_path):
    t = np.arange(400)
    path = tmp_path / "series.csv"
    np.savetxt(path, np.column_stack([t % 7, 100.0 + 0.5 * t + 20.0 * (t % 7 == 0)]),
               delimiter=",", header="day,sold", comments="")  # fmt: skip
    plain = said(capsys, "run", str(path), "--label", "sold", *FAST)
    lagged = said(capsys, "run", str(path), "--label", "sold", *FAST, "--lags", "2")
    seasonal = said(capsys, "run", str(path), "--label", "sold", *FAST, "--season", "7")
    assert "Lags(learner=LinearAWV" in lagged and "season=7" in seasonal
    losses = [float(re.search(r"loss      (\S+)", out)[1]) for out in (plain, lagged, seasonal)]
    assert losses[2] < losses[1] < losses[0]
    model, table = str(tmp_path / "model.npz"), (str(path), "--label", "sold")
    days, sold = np.loadtxt(path, delimiter=",", skiprows=1).T
    weeks = okl.run(okl.LinearAWV(), days[:, None], sold, batch=7)
    assert f"loss      {weeks.mean_loss:.6g} " in said(capsys, "run", *table, *FAST, "--batch", "7")
    for how in ((*FAST, "--lags", "2"), ("--learner", "Monitored(Intervals(Lags(LinearAWV())))")):
        said(capsys, "run", *table, *how, "--save", model)
        assert main(["predict", model, str(path)]) == 0
        assert "each row is forecast as the next one" in capsys.readouterr().err
    how = "--learner", "Intervals(LinearAWV())", "--steps", "3", "--season", "7", "--save", model
    assert "steps=3, lags=3, season=7" in said(capsys, "run", *table, *how)
    several = *how[:5], "7,9"
    assert "season=[7, 9]" in said(capsys, "run", *table, *several)
    at_once = said(capsys, "run", *table, "--season", "7,9", status=2)
    assert "add --steps, such as 1" in at_once
    assert "steps=1" in said(capsys, "run", *table, *FAST, "--season", "7,9", "--steps", "1")
    next_week = tmp_path / "next.csv"
    next_week.write_text("day\n1\n2\n3\n")
    coming, horizon = np.array([[1.0], [2.0], [3.0]]), okl.load(model)
    expected = np.column_stack(horizon.forecast(coming, return_interval=True))
    header, *lines = said(capsys, "predict", model, str(next_week)).splitlines()
    assert header == "forecast,low,high" and np.array_equal(
        np.loadtxt(lines, delimiter=","), expected
    )
    next_week.write_text("day\n1\n2\n")  # the first rows of the next three, not the last ones
    assert said(capsys, "predict", model, str(next_week)).splitlines() == [header, *lines[:2]]
    next_week.write_text("day\n1\n2\n3\n4\n")
    many = said(capsys, "predict", model, str(next_week), status=2)
    assert "more rows than the 3 next ones" in many
    how = "--label", "day", "--steps", "3", "--task", "classification"
    three = said(capsys, "run", str(path), *how, status=2)
    assert "--steps is for numbers and two classes, but there are 7" in three
    alone = said(capsys, "run", *table, "--learner", "Horizon", status=2)
    assert "needs learner; write it as in Horizon(LinearRidge())" in alone


def test_the_options_for_all_faults_are_right_whatever_columns_are_called(tmp_path, capsys):
    days = pd.date_range("2024-01-01", periods=80).astype(str)
    texts = {"-town": ["Rome", "Oslo"] * 40, "it's": ["u", "v"] * 40}
    frame = pd.DataFrame({"a day, of": days} | texts)
    frame.assign(sold=range(80), x=[1.0, None] * 40).to_csv(tmp_path / "a.csv", index=False)
    given = "run", str(tmp_path / "a.csv"), "--label", "sold", "--learner", "LinearRidge"
    assert main(given) != 0
    options = shlex.split(capsys.readouterr().err.rpartition("(")[2].rpartition(")")[0])
    assert len(options) == 5 and "rounds    80" in said(capsys, *given, *options)
