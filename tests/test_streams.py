"""Files in blocks for ``okl.run``: the numbers, the columns, the thread, and what goes wrong."""

import datetime
import gzip
import io
import pickle
import re
import sys
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

import oklnumba as okl
from oklnumba.command.parser import main
from oklnumba.core import checks, inputs, schema
from tests.battery import assert_same_run
from tests.checks import raises, refused, together

ROWS = 1200
RNG = np.random.default_rng(0)
X = RNG.integers(-1023, 1024, (ROWS, 3)) / 1024  # exact in LIBSVM's text too
y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
learner = partial(okl.PKAWV, okl.TaylorFeatures(2))
MONTHS = pd.DataFrame({"m": pd.period_range("2026-01", periods=3, freq="M"), "y": [1, 2, 3]})
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})


def write_libsvm(table, path):
    data = np.column_stack([table[name] for name in table.column_names])
    dump_svmlight_file(data[:, :-1], data[:, -1], str(path), zero_based=False)


def write_csv(table, path, **options):
    pyarrow.csv.write_csv(table, path, pyarrow.csv.WriteOptions(**options))


def write_gz(table, path, write):
    plain = path.with_suffix("")
    write(table, plain)
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


WRITERS = {
    "points.parquet": lambda t, p: pyarrow.parquet.write_table(t, p, row_group_size=777),
    "points.csv": write_csv,
    "points.tsv": lambda t, p: write_csv(t, p, delimiter="\t"),
    "points.csv.gz": lambda t, p: write_gz(t, p, write_csv),
    "points.arrow": lambda t, p: pyarrow.feather.write_feather(t, p, compression="uncompressed"),
    "points.libsvm": write_libsvm,
    "points.libsvm.gz": lambda t, p: write_gz(t, p, write_libsvm),
}
every_format = pytest.mark.parametrize("name", WRITERS)


def written(folder, name, table=TABLE):
    WRITERS[name](table, folder / name)
    return folder / name, {} if "libsvm" in name else {"label": "y"}


def assert_rows(data, inputs=X, labels=y):
    found = together(data)
    assert_array_equal(found[0], inputs)
    assert_array_equal(found[1], labels)


# ---- what comes out ----


@every_format
def test_the_numbers_of_the_file_in_blocks_of_one_size(name, tmp_path):
    path, options = written(tmp_path, name)
    data = okl.stream(path, **options)
    assert_rows(data)
    assert_rows(data)  # each iteration starts anew
    assert len(list(data)) == 1
    for batch in (1, 100, 256, ROWS, ROWS + 1):
        data = okl.stream(str(path), batch=batch, **options)
        assert_rows(data)
        sizes = [len(labels) for _, labels in data]
        assert sizes[:-1] == [batch] * (len(sizes) - 1) and 1 <= sizes[-1] <= batch
    assert name in repr(data) and len(repr(data)) < 60 + len(str(path)) and "\n" not in repr(data)


@pytest.mark.parametrize("name", ["points.parquet", "points.csv", "points.arrow"])
def test_columns_by_name_and_by_place_in_the_order_asked_for(name, tmp_path):
    path, _ = written(tmp_path, name)
    data = okl.stream(path, label="y", columns=pd.Index(["c", "a"]))
    assert data.columns == ("c", "a")
    assert_rows(data, X[:, [2, 0]])
    assert_rows(okl.stream(path, label=-1, columns=[2, 0]), X[:, [2, 0]])
    assert_rows(okl.stream(path, label="a"), np.column_stack([X[:, 1:], y]), X[:, 0])


def test_a_csv_file_whose_fractions_come_late(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("a,y\n" + "1,2\n" * 400_000 + "0.5,0.25\n")  # beyond the part types come from
    inputs, labels = together(okl.stream(path, label="y"))
    assert (inputs[0, 0], inputs[-1, 0], labels[-1]) == (1.0, 0.5, 0.25)


# ---- several files, data sets, pairs ----


@every_format
def test_folders_and_lists_are_read_in_the_order_of_names(name, tmp_path):
    suffix = name.removeprefix("points")
    for k, start in enumerate(range(0, ROWS, 400)):
        written(tmp_path, name, TABLE.slice(start, 400))
        (tmp_path / name).rename(tmp_path / f"part-{k}{suffix}")
    (tmp_path / "_notes").write_text("no data")
    options = {} if "libsvm" in name else {"label": "y"}
    assert_rows(okl.stream(tmp_path, batch=90, **options))
    parts = [tmp_path / f"part-{k}{suffix}" for k in (2, 0)]
    rows = np.r_[800:1200, 0:400]
    assert_rows(okl.stream(parts, **options), X[rows], y[rows])


def test_a_dataset_of_pyarrow_with_partitions(tmp_path):
    table = TABLE.append_column("day", pa.array(np.arange(ROWS) // 400))
    how = {"partitioning": ["day"], "partitioning_flavor": "hive"}
    pyarrow.dataset.write_dataset(table, tmp_path, format="parquet", **how)
    data = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    assert_rows(okl.stream(data, label="y", columns=["a", "b", "c"]))
    expected = np.column_stack([X, np.arange(ROWS) // 400])
    assert_rows(okl.stream(data, label="y", columns=["a", "b", "c", "day"]), expected)
    assert_rows(okl.stream(pyarrow.dataset.dataset(TABLE), label="y"))


# ---- labels ----


LABELS = {
    "text": (np.where(y > 0, "s", "b"), ("b", "s")),
    "bool": (y > 0, (False, True)),
    "0 and 1": ((y > 0).astype(int), (0, 1)),
    "1 and 2": (np.where(y > 0, 1.0, 2.0), (2, 1)),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["points.parquet", "points.csv"])
def test_two_classes_become_signs(kind, name, tmp_path):
    labels, classes = LABELS[kind]
    path, _ = written(tmp_path, name, TABLE.set_column(3, "y", pa.array(labels)))
    assert_rows(okl.stream(path, label="y", classes=classes))
    if kind in ("text", "bool"):  # the first in the alphabet, or False, is -1
        assert okl.stream(path, label="y").classes == classes
        assert_rows(okl.stream(path, label="y"))
    else:
        assert_rows(okl.stream(path, label="y"), labels=labels)
    other = ("b", "u") if kind == "text" else (5, 1)
    with pytest.raises(ValueError, match=rf"{name} has .* at row \d+, which is not one of the"):
        together(okl.stream(path, label="y", classes=other))


def test_more_classes_are_for_one_vs_rest(tmp_path):
    names = np.array(["ham", "spam", "eggs"])[np.arange(ROWS) % 3]
    path, _ = written(tmp_path, "points.csv", TABLE.set_column(3, "y", pa.array(names)))
    classes = ["ham", "spam", "eggs"]
    run = okl.run(okl.OneVsRest(learner(), classes), okl.stream(path, label="y", classes=classes))
    assert_same_run(run, okl.run(okl.OneVsRest(learner(), classes), X, names))
    names[:10] = "ham"  # short texts first, and longer ones in a later piece
    path, _ = written(tmp_path, "points.parquet", TABLE.set_column(3, "y", pa.array(names)))
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path), path, row_group_size=10)
    assert_rows(okl.stream(path, label="y", classes=classes), labels=names)
    data = okl.stream(path, label="y")
    assert data.classes == ("eggs", "ham", "spam")
    found = okl.run(okl.OneVsRest(learner(), data.classes), data)
    assert_same_run(found, okl.run(okl.OneVsRest(learner(), data.classes), X, names))


@pytest.mark.parametrize("kind", LABELS)
def test_two_classes_are_for_one_vs_rest_too(kind, tmp_path):
    labels, classes = LABELS[kind]
    path, _ = written(tmp_path, "points.parquet", TABLE.set_column(3, "y", pa.array(labels)))
    one, other = (okl.OneVsRest(learner(), classes) for _ in range(2))
    data = okl.stream(path, label="y", classes=classes)
    refused("not one of the classes", okl.run, okl.OneVsRest(learner(), ["b", "u"]), data)
    assert_same_run(okl.run(one, X, labels), okl.run(okl.OneVsRest(learner(), classes), data))
    for pair in okl.stream(path, label="y", classes=classes[::-1], batch=350):
        rows, signs = pickle.loads(pickle.dumps(pair))
        other.partial_fit(rows[:-1], signs[:-1]).learn_one(rows[-1], signs[-1])
    assert_array_equal(one.scores(X), other.scores(X))


def test_classes_that_are_too_large_for_doubles_do_not_become_one(tmp_path):
    classes, path = (2**53, 2**53 + 1), tmp_path / "ids.csv"
    y = np.resize(classes, 40)
    frame = pd.DataFrame({"x": np.arange(40.0), "y": y})
    frame.to_csv(path, index=False)
    frame.to_parquet(tmp_path / "ids.parquet")
    for source in (frame, tmp_path / "ids.parquet"):
        ((_, signs),) = okl.stream(source, label="y", classes=classes)
        assert_array_equal(signs, np.resize([-1.0, 1.0], 40))
    learner = okl.OneVsRest(okl.LinearAWV(), classes)
    assert {*okl.run(learner, frame[["x"]], y).predictions.tolist()} == {*classes}
    for call in (
        lambda: list(okl.stream(path, label="y", classes=classes)),
        lambda: okl.run(learner, frame[["x"]], y.astype(float)),
        lambda: okl.run(learner.reset(), okl.stream(path, label="y")),
    ):
        refused("the class 9007199254740992 at row 0, a float64: so large.*make texts", call)
    single = okl.stream(frame.astype({"y": "float32"}).assign(y=np.float32(2**24)), label="y",
                        classes=(2**24, 2**24 + 1))  # fmt: skip
    refused("the class 16777216 at row 0, a float32", lambda: list(single))
    assert okl.stream(path, label="x", encode=["y"]).columns == tuple(f"y_{one}" for one in classes)
    texts = okl.stream(pd.read_csv(path, dtype={"y": str}), label="y")  # the cure
    assert texts.classes == tuple(map(str, classes))
    assert main(["run", str(path), "--label", "y"]) == 2


def test_labels_of_text_that_are_missing_come_late_or_are_all_equal(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LOOK_ROWS", 100)
    labels = np.where(y > 0, "s", "b").astype(object)
    changed = np.where(np.arange(ROWS) == 500, "new", labels)
    path, _ = written(tmp_path, "points.csv", TABLE.set_column(3, "y", pa.array(changed)))
    message = r"points.csv has 'new' at row 500, which is not one of .*'s'\]; name all in"
    refused(message, lambda: together(okl.stream(path, label="y")))
    same = TABLE.set_column(3, "y", pa.array(["s"] * ROWS))
    with pytest.raises(ValueError, match="column 'y' must be the texts of two classes or more"):
        okl.stream(written(tmp_path, "points.csv", same)[0], label="y")


# ---- columns that are no numbers ----

TOWNS = np.array(["Rome", "Oslo", "Bonn"])[RNG.integers(0, 3, ROWS)]
MIXED = TABLE.append_column("town", pa.array(TOWNS))
MIXED = MIXED.append_column("code", pa.array(TOWNS == "Rome"))
MIXED = MIXED.append_column("day", pa.array([datetime.date(2026, 1, 1)] * ROWS))


@pytest.mark.parametrize("name", ["points.parquet", "points.csv", "points.arrow"])
def test_texts_are_encoded_and_columns_are_left_out(name, tmp_path):
    path, _ = written(tmp_path, name, MIXED)
    message = (
        r"'town' of .*points.* holds text, '....' in row 0; drop or encode "
        "such columns, .*--drop A,B --encode A,B.*; nor are there numbers in 'day'"
    )
    refused(message, okl.stream, path, label="y")
    data = okl.stream(path, label="y", drop=["day", "b"], encode=["town"])
    ones = TOWNS[:, None] == ["Bonn", "Oslo", "Rome"]
    assert data.columns == ("a", "c", "code", "town_Bonn", "town_Oslo", "town_Rome")
    assert_rows(data, np.column_stack([X[:, [0, 2]], ones[:, 2], ones]))
    data = okl.stream(path, label="y", columns=["c"], encode=pd.Index(["town"]))
    assert_rows(data, np.column_stack([X[:, 2], ones]))
    dictionary = MIXED.set_column(4, "town", MIXED["town"].dictionary_encode())
    if name != "points.csv":
        path, _ = written(tmp_path, name, dictionary)
        assert_rows(okl.stream(path, label="y", columns=["c"], encode=["town"]), together(data)[0])
    only = okl.stream(path, label="y", drop=["a", "b", "c", "code", "day"], encode=["town"])
    assert_rows(only, ones)


def test_values_that_come_after_the_first_rows_are_none_of_the_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LOOK_ROWS", 100)
    monkeypatch.setattr(schema, "MOST_VALUES", 3)
    towns = np.where(np.arange(ROWS) < 700, TOWNS, "Lima").astype(object)
    towns[[7, 900]] = "Nice", None
    table = TABLE.append_column("town", pa.array(towns))
    path, _ = written(tmp_path, "points.parquet", table)
    data = okl.stream(path, label="y", columns=["a"], encode=["town"])
    assert data.columns == ("a", "town_Bonn", "town_Oslo", "town_Rome")  # Nice is rare
    with pytest.warns(UserWarning, match="'Lima' in 423 of 423 rows"):
        found = together(data)[0][:, 1:]
    assert not found[7].any() and not found[700:].any()
    assert found[:700].sum(axis=1).tolist() == [1.0] * 7 + [0.0] + [1.0] * 692


# ---- what goes wrong ----


@pytest.mark.parametrize("gap", [None, np.nan, np.inf])
def test_gaps_name_the_file_its_row_and_the_columns(gap, tmp_path):
    for k in range(2):
        a = X[:, 1].tolist()
        a[700] = gap if k else a[700]
        table = TABLE.set_column(1, "b", pa.array(a, from_pandas=False))
        pyarrow.parquet.write_table(table, tmp_path / f"part-{k}.parquet", row_group_size=100)
    data = okl.stream(tmp_path, label="y", batch=64)
    player = learner()
    message = rf"part-1.* has {gap or 'nan'} at row 700, column 1 \('b'\); .*fillna.*--drop"
    refused(message, okl.run, player, data)
    assert player.rounds == 1856  # whole blocks


def test_a_csv_file_that_changes_width_later(tmp_path):
    path, lines = tmp_path / "points.csv", ["a,b,y", *["0.5,0.25,1"] * 400_000]
    lines[300_000] = "1,2,3,1"
    path.write_text("\n".join(lines))
    said = "points.csv: .*Expected 3 columns, got 4"
    refused(said, lambda: together(okl.stream(path, label="y")))


def test_what_is_wrong_with_a_pipe_is_said_of_the_pipe(monkeypatch):
    for data, said in (
        (gzip.compress(b"a,y\n1,2\n"), "- is packed as .gz: unpack it"),
        ("a,y\n1,ä\n".encode("latin-1"), "- is not UTF-8"),
        (b"a;y\n1;2\n", "- has ';' between columns"),
        (b"PAR1\0", "- is not a text file: pass format='parquet'"),
        (b"", "- is empty"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        refused("^" + re.escape(said), okl.stream, "-", label="y")


def test_what_is_wrong_with_a_packed_file_is_said_with_its_cure(tmp_path):
    """Other kinds are in test_cures.py."""
    packed = gzip.compress(b"a,y\n1,2\n3,4\n")
    for name, data, said in (
        ("day.CSV.GZ", packed, "day.CSV.GZ is packed as .gz: its name must end in .gz"),
        ("day.csv.gz", gzip.compress(packed), "day.csv.gz is packed as .gz: unpack it"),
    ):
        (tmp_path / name).write_bytes(data)
        refused(re.escape(said), okl.stream, tmp_path / name, label="y")
    (tmp_path / "day.csv").write_text("PAR1,y\n1,2\n3,4\n")  # not Parquet
    assert together(okl.stream(tmp_path / "day.csv", label="y"))[0].tolist() == [[1.0], [3.0]]


PLACES = {
    "points.csv": lambda lines, path: path.write_text("a,y\n" + lines),
    "points.csv.gz": lambda lines, path: path.write_bytes(gzip.compress(f"a,y\n{lines}".encode())),
    "skip.csv": lambda lines, path: path.write_text("not\na row\na,y\n" + lines),
    "header.csv": lambda lines, path: path.write_text(lines),
}


@pytest.mark.parametrize(
    "name, row, bad",
    [(name, row, "text,2") for name in PLACES for row in (9, 100_200)]
    + [("points.csv", 300_000, "text,2"), ("points.csv", 100_200, "1,text")],
)
def test_messages_name_the_row_of_the_file(name, row, bad, tmp_path):
    lines = ["1,2"] * (row + 9)
    lines[row] = bad
    PLACES[name]("\n".join(lines), tmp_path / name)
    options = {"skip": 2 * (name == "skip.csv"), "header": name != "header.csv", "label": -1}
    said = rf"{name}.* holds text, 'text' in row {row}, among numbers"
    refused(said, lambda: together(okl.stream(tmp_path / name, **options)))
    if row > 9:  # after another file
        PLACES[name]("\n".join(["1,2"] * 9), tmp_path / f"first_{name}")
        files = [tmp_path / f"first_{name}", tmp_path / name]
        refused(f"/{said}", lambda: together(okl.stream(files, **options)))


@pytest.mark.parametrize("row", [9, 100_200])
def test_messages_name_the_row_of_a_frame_and_of_pieces(row):
    said = f"text, 'text' in row {row}, among"
    texts = pd.DataFrame({"x": ["1"] * row + ["text"]})
    refused(said, okl.run, learner(), texts, np.ones(row + 1))
    mixed = pd.Series([1.0] * row + ["text"], dtype=object)
    cuts = [slice(k, k + 640) for k in range(0, row + 1, 640)]
    pairs = ((mixed[cut].to_frame(), np.ones(len(mixed[cut]))) for cut in cuts)
    refused(said, okl.run, learner(), pairs)
    pairs = ((np.ones((len(mixed[cut]), 1)), mixed[cut]) for cut in cuts)
    refused(said, okl.run, learner(), pairs)
    for frame in ({"x": mixed, "y": 1.0}, {"x": 1.0, "y": mixed}):
        refused(said, lambda f=frame: together(okl.stream(pd.DataFrame(f), label="y")))


@pytest.mark.parametrize("name", ["points.parquet", "points.csv", "points.arrow", "points.libsvm"])
def test_files_without_rows_and_damaged_files(name, tmp_path):
    path, options = tmp_path / name, {}
    if name != "points.libsvm":  # which has no header
        path, options = written(tmp_path, name, TABLE.slice(0, 0))
        refused(rf"{name}.* has no rows", lambda: together(okl.stream(path, **options)))
    path.write_bytes(b"")
    refused(name, lambda: together(okl.stream(path, **options)))
    path.write_bytes(b"PAR1 no such file, and no numbers ,,,\n1 2 3\n\0\1\2")
    refused(name, lambda: together(okl.stream(path, **options)))


@pytest.mark.parametrize("name", ["points.parquet", "points.csv", "points.arrow"])
def test_a_file_that_is_replaced_is_read_as_it_is_now(name, tmp_path):
    path, write = tmp_path / name, WRITERS[name]
    write(TABLE, path)
    rows = okl.stream(path, label="y")
    write(TABLE.select(["y", "c", "a", "b"]).slice(7), path)
    assert_array_equal(np.concatenate([part for part, _ in rows]), X[7:])
    write(TABLE.rename_columns(["a", "b", "d", "y"]), path)
    with pytest.raises(ValueError, match="lacks 'c'"):
        okl.run(learner(), rows)


def test_some_rows_of_a_file_stay_those_of_the_dataset(tmp_path):
    path = tmp_path / "points.parquet"
    WRITERS[path.name](TABLE, path)
    (whole,) = pyarrow.dataset.dataset(path).get_fragments()
    some = whole.subset(row_group_ids=[1])
    some = pyarrow.dataset.FileSystemDataset([some], TABLE.schema, some.format, some.filesystem)
    (part,) = okl.stream(some, label="y")
    assert_array_equal(part[0], X[777:])


def test_a_file_in_memory_is_read():
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(TABLE, sink)
    whole = pyarrow.dataset.ParquetFileFormat()
    parts = [whole.make_fragment(sink.getvalue())]
    data = okl.stream(pyarrow.dataset.FileSystemDataset(parts, TABLE.schema, whole), label="y")
    assert_array_equal(np.concatenate([part for part, _ in data]), X)


@pytest.mark.skipif(int(pd.__version__[0]) < 3, reason="pandas takes a list of bools for a mask")
def test_names_that_are_equal_to_places():
    """True is equal to 1, and False to 0, but a name of a column is not a place."""
    frame = pd.DataFrame({True: y, False: 2 * y, "y": 3 * y})
    for label, factor in ((True, 1), (False, 2), (0, 1), (1, 2), (-1, 3)):
        data = okl.stream(frame, label=label)
        assert_array_equal(np.concatenate([labels for _, labels in data]), factor * y)
    assert okl.stream(frame, label="y", drop=[True]).columns == ("False",)
    frame.columns = [("a", 1), "b", "y"]
    assert okl.stream(frame, label="y", drop=[("a", 1), "b"][:1]).columns == ("b",)
    refused("columns must be others", lambda: okl.stream(frame, label="y", drop=[("a", 1), "b"]))
    refused("encode: there is no column", lambda: okl.stream(frame, label="y", encode=["c", [1]]))


def test_labels_that_are_scalars_of_numpy():
    for first, second in (("a", "b"), (False, True)):
        labels = pd.Series([*np.array([first, second])], dtype=object)
        data = okl.stream(pd.DataFrame({"a": [1.0, 2.0], "y": labels}), label="y")
        assert data.classes == (first, second)
        assert_array_equal(np.concatenate([labels for _, labels in data]), [-1.0, 1.0])


def test_what_cannot_be_streamed_is_refused_at_the_call(tmp_path):
    path, _ = written(tmp_path, "points.parquet")
    with pytest.raises(ValueError, match=r"play it by okl.run\(learner, X\), without labels"):
        okl.FOGD().partial_fit(okl.stream(path, label="y"), [1.0])
    libsvm, _ = written(tmp_path, "points.libsvm")
    mixed, _ = written(tmp_path, "points.csv", MIXED)
    numbers = ["a", "b", "c"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("a b c")
    bad = [
        (path, {"label": "z"}, "no column 'z'.*columns are 'a', 'b', 'c', 'y'"),
        (path, {"label": "y", "columns": ["aa", "b"]}, "no column 'aa'; did you mean 'a'"),
        (path, {"label": "y", "columns": ["a", "y"]}, "columns must be others than the label"),
        (path, {"label": "y", "columns": []}, "columns must be"),
        (path, {"label": "y", "columns": "a"}, "columns must be"),
        (path, {"label": 4}, "there is no column 4; the columns are"),
        (pd.DataFrame({"f4": [1], "f49": 1}), {"label": 49}, "no column 49; the columns are"),
        (path, {"label": True}, "there is no column True; "),
        (path, {"label": pd.Series(y)}, r"there is no column an array of shape \(1200,\)"),
        (path, {"label": "y", "header": 0}, "header must be True or False, but is 0"),
        (pd.DataFrame(X), {"label": True}, "there is no column True; "),
        (path, {"label": "y", "batch": 0}, "batch must be"),
        (path, {"label": "y", "classes": (1,)}, "classes must be"),
        (path, {"label": "y", "classes": "ab"}, "classes must be"),
        (path, {"label": "y", "classes": (1, 1)}, "classes must be"),
        (path, {"label": "y", "format": "excel"}, "format must be one of"),
        (mixed, {"label": "y", "encode": "town"}, "encode must be a list of names"),
        (mixed, {"label": "y", "drop": ["twon"]}, "--id.: there is no column 'twon'; did you mean"),
        (mixed, {"label": "y", "encode": ["y"]}, "each once, not"),
        (mixed, {"label": "y", "columns": ["town"], "encode": ["town"]}, "each once, not"),
        (mixed, {"label": "y", "drop": [*numbers, "town", "code", "day"]}, "others than the label"),
        (libsvm, {"encode": ["1"]}, "no names of columns"),
        (libsvm, {"width": 0}, "width must be"),
        (tmp_path / "notes.txt", {"label": "y"}, "notes.txt: the suffixes do not name one format"),
        (tmp_path / "empty", {"label": "y"}, "empty has no files"),
        ([path, libsvm], {"label": "y"}, "the suffixes do not name one format"),
        (7, {"label": "y"}, "source must be"),
        (np.eye(3), {"label": 0}, "source must be .*run takes arrays.*, but is an array of shape"),
        (mixed, {"label": "y", "delimiter": "||"}, "delimiter must be one character"),
        (mixed, {"label": "y", "encoding": "utf-9"}, "encoding='utf-9': unknown encoding"),
        (pd.DataFrame([[1, 2, 3]], columns=[1, "1", "y"]), {"label": "y"}, "have one name: 1, '1'"),
        (MONTHS, {"label": "y", "encode": ["m"]}, "'m' holds .*period.*drop it, or make dates"),
        (MONTHS, {"label": "y", "dates": ["m"]}, "'m' holds .*period.*drop it, or make dates"),
        ([], {"label": "y"}, "source must be"),
    ]
    for source, options, message in bad:
        refused(message, okl.stream, source, **options)
    with pytest.raises(FileNotFoundError, match=r"nowhere.csv: there is no such file"):
        okl.stream(tmp_path / "nowhere.csv", label="y")


@pytest.mark.parametrize("name", ["points.csv", "points.libsvm"])
def test_without_the_extra_the_error_says_how_to_get_it(name, tmp_path, monkeypatch):
    path, options = written(tmp_path, name)
    for module in ("pyarrow.csv", "pyarrow.dataset", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, module, None)
    raises(ImportError, "pip install (pyarrow|scikit-learn)$", okl.stream, path, **options)


def test_a_library_that_is_there_and_broken_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "halfthere.py").write_text("import a_library_that_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="No module named 'a_library_that_it_needs'$"):
        checks.import_optional("halfthere", "this")


def test_progress_is_in_percent_where_files_know_their_rows(tmp_path, capsys):
    path, options = written(tmp_path, "points.parquet")
    whole = okl.stream([path, path], **options, batch=500)
    assert whole.count_rows() == 2 * ROWS
    okl.run(learner(), whole, progress=True, checkpoint=tmp_path / "run.npz")
    assert "100%" in capsys.readouterr().err
    path, _ = written(tmp_path, "points.parquet", TABLE.take(list(range(ROWS))[::-1]))
    more = okl.stream(path, **options)
    okl.run(learner(), more, progress=True, checkpoint=tmp_path / "run.npz", resume=True)
    assert "100%" in (told := capsys.readouterr().err) and "3.60k/3.60k" in told
    path, options = written(tmp_path, "points.csv")
    unknown = okl.stream(path, **options)
    okl.run(learner(), unknown, progress=True)
    assert unknown.count_rows() is None and "%" not in capsys.readouterr().err
