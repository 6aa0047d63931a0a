"""The same values are the same rows, whatever file or frame holds them."""

import contextlib
import datetime
import decimal
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba.command.parser import main
from oklnumba.core import inputs
from oklnumba.core.params import clone
from tests.checks import raises, refused, together

DAY = datetime.date(2026, 1, 1)
VALUES = {  # of encoded columns, by type
    "zip": [0, 7, -3, 90210, 10**12],
    "share": [0.5, 1.0, -2.0, 1e-7, 1e16, 12345678901.0, 0.1 + 0.2],
    "open": [True, False],
    "day": [DAY, DAY + datetime.timedelta(1)],
    "hour": [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, 13, 5, 7, 250_000)],
    "text": ["Rome", "rome", "1.10", "1.1", "01", "a b", "É"],
    "group": ["x", "y"],
}
TYPES = {"group": "category", "hour": "datetime64[us]"}


def hold(rows):
    """Return a frame as pandas makes it: integers with a gap are floats, bools objects."""
    frame = pd.DataFrame(rows, columns=[*VALUES])
    return frame.astype(TYPES).assign(x=np.arange(len(frame)) / 4, y=np.arange(len(frame)) % 3.0)


def write_folder(frame, path):
    path.mkdir(exist_ok=True)
    half = len(frame) // 2
    first = hold(frame[:half][[*VALUES]].to_dict("list"))
    first.assign(x=frame.x[:half], y=frame.y[:half]).to_parquet(path / "a.parquet")
    frame[half:].to_parquet(path / "b.parquet")


FILES = {
    "pandas.csv": lambda frame, path: frame.to_csv(path, index=False),
    "arrow.csv": lambda frame, path: pyarrow.csv.write_csv(
        pa.Table.from_pandas(frame.astype({"group": str})), path
    ),
    "polars.csv": lambda frame, path: pl.from_pandas(frame).write_csv(path),
    "packed.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "table.parquet": lambda frame, path: frame.to_parquet(path),
    "table.feather": lambda frame, path: pyarrow.feather.write_feather(frame, path),
    "folder": write_folder,
}
PARTS = "days", "weekday", "day_of_year", "hour"
FRAMES = {
    "pandas": lambda frame: frame,
    "objects": lambda frame: frame.astype(object),
    "nullable": lambda frame: frame.convert_dtypes(),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
}


def sources(frame, folder):
    """Return the frame in each format, by name."""
    for name, write in FILES.items():
        write(frame, folder / name)
    return {name: folder / name for name in FILES} | {n: f(frame) for n, f in FRAMES.items()}


def read(source, **options):
    return together(okl.stream(source, **options))[0]


@st.composite
def tables(draw):
    """Draw rows with every value, for a model, and rows with gaps."""
    order = st.permutations(range(14))
    first = {n: [v[k % len(v)] for k in draw(order)] for n, v in VALUES.items()}
    gaps = draw(st.sets(st.sampled_from(["zip", "share", "open", "day", "hour", "text"])))
    later = {n: [v[k % len(v)] for k in draw(order)] for n, v in VALUES.items()}
    for name in gaps:
        later[name][draw(st.integers(0, 13))] = None
    return first, later


@pytest.mark.slow
@given(tables(), st.sampled_from([*FILES, *FRAMES]))
@settings(max_examples=15)
def test_the_same_values_are_the_same_row(tmp_path_factory, rows, taught):
    folder = Path(tmp_path_factory.mktemp("formats"))
    first, later = map(hold, rows)
    model = okl.LinearRidge()
    okl.run(model, okl.stream(sources(first, folder)[taught], label="y", encode=[*VALUES]))
    names = model.schema.columns
    assert len(names) == 1 + sum(map(len, VALUES.values()))
    with warnings.catch_warnings(action="ignore"):  # of gaps
        found = {n: read(s, like=model) for n, s in sources(later, folder).items()}
        expected = found["pandas"]
        for hold_frame in (FRAMES[n] for n in FRAMES if n != "lazy"):
            assert_array_equal(model.schema.arrange(hold_frame(later)), expected)
        dicts = later.to_dict("records")
        assert_array_equal([model.schema.arrange(row) for row in dicts], expected)
        model.save(folder / "model.npz")
        data, out = str(folder / "pandas.csv"), str(folder / "out.csv")
        assert main(["predict", str(folder / "model.npz"), data, "--output", out]) == 0
    assert_array_equal(pd.read_csv(out).forecast, model.predict(expected))
    for name, given_rows in found.items():
        assert_array_equal(given_rows, expected, err_msg=name)
    for name, values in VALUES.items():  # a row has the column of its own value
        places = [k for k, one in enumerate(names) if one.startswith(f"{name}_")]
        hot, column = expected[:, places], rows[1][name]
        at = {value: hot[column.index(value)].tolist() for value in values if value in column}
        assert len({tuple(one) for one in at.values()}) == len(at)
        for row, value in zip(hot.tolist(), column, strict=True):
            assert sum(row) == (value is not None) and (value is None or row == at[value])


# ---- gaps are filled from the rows that were learned before ----


def hold_gaps(n, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 2)) < 0.3, np.nan, rng.standard_t(2, (n, 2)))
    X[0, 0], X[:90, 1] = np.nan, np.nan  # nothing is known before
    town = rng.choice(["x", "y", None], n)
    minutes = pd.to_timedelta(rng.integers(0, 10**6, n), "min")
    when = pd.Series(pd.Timestamp("1969-11-30") + minutes)
    when = when.mask(rng.random(n) < 0.3)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "none": np.full(n, np.nan), "town": town,
                         "when": when, "y": rng.normal(size=n)})  # fmt: skip


def take_parts(when):
    """Return what a date becomes, by Python's calendar."""
    if when is pd.NaT:
        return [np.nan] * 4
    hour = (60 * when.hour + when.minute) / 60
    days = (when.to_pydatetime() - datetime.datetime(1970, 1, 1)).total_seconds() / 86400
    return [days, when.weekday(), when.timetuple().tm_yday, hour]


GAPS = {"label": "y", "encode": ["town"], "dates": ["when"]}


def fill_naively(frame, how, learned):
    """Return the rows of ``hold_gaps`` without gaps; learned : the rows before each that are."""
    X = frame[["a", "b", "none"]].astype(float).to_numpy()
    X = np.column_stack([X, [take_parts(one) for one in frame.when]])
    gaps, filled = np.isnan(X), X.copy()
    for t, j in np.argwhere(gaps):
        known = X[learned(t), j]
        known = known[~np.isnan(known)][-1 if how == "last" else -101 :]
        filled[t, j] = np.median(known) if len(known) else 0.0
    towns = np.equal.outer(frame.town.fillna("").to_numpy(), ["", "x", "y"])
    return np.column_stack([filled, towns, *([gaps[:, :4]] if how == "indicator" else [])])


HOW = pytest.mark.parametrize("how", ["median", "last", "indicator"])


@HOW
def test_gaps_are_filled_the_same_in_every_format(how, tmp_path):
    frame, options = hold_gaps(400), GAPS | {"impute": how}
    expected = fill_naively(frame, how, range)
    plain = okl.run(okl.LinearRidge(), expected, frame.y)
    for name in {*FILES, *FRAMES} - {"folder", "arrow.csv"}:  # which name columns
        source = tmp_path / name if name in FILES else FRAMES[name](frame)
        if name in FILES:
            FILES[name](frame, source)
        stream, model = okl.stream(source, batch=64, **options), okl.LinearRidge()
        assert_array_equal(read(source, batch=64, **options), expected, err_msg=name)
        run = okl.run(model, stream)
        assert_array_equal(run.predictions, plain.predictions, err_msg=name)
        assert len(model.schema.columns) == expected.shape[1]
    found = run.regret(okl.Gaussian(1.0), 1.0, data=stream)
    plain = run.regret(okl.Gaussian(1.0), 1.0, data=[(expected, frame.y)])
    np.testing.assert_allclose(found, plain, rtol=1e-12)


def play_blocks(model, rows, y):
    for X, labels in okl.stream(rows.assign(y=y), like=model, batch=50):
        model.partial_fit(X, labels)


def play_pieces(model, rows, y):
    for k in range(0, len(rows), 27):
        model.partial_fit(rows[k : k + 27], y[k : k + 27])


def play_dicts(model, rows, y):
    for row, label in zip(rows.to_dict("records"), y, strict=True):
        model.learn_one(row, label)


WAYS = {
    "run": okl.run,
    "stream": lambda model, rows, y: okl.run(model, okl.stream(rows.assign(y=y), like=model)),
    "blocks": play_blocks, "pieces": play_pieces, "dicts": play_dicts,
}  # fmt: skip


@pytest.mark.slow
@HOW
@pytest.mark.parametrize(
    "learner", [okl.LinearRidge(), okl.Intervals(okl.Standardized(okl.OGD(0.01)))]
)
def test_gaps_are_filled_the_same_in_every_way_of_playing(how, learner, tmp_path):
    frame, more = hold_gaps(400), hold_gaps(30, seed=1)
    options = GAPS | {"impute": how}
    filled = fill_naively(pd.concat([frame, more]), how, lambda t: range(min(t, 400)))
    whole = clone(learner).partial_fit(filled[:400], frame.y)
    expected = whole.predict(filled[400:])
    okl.run(learner := clone(learner), okl.stream(frame[:130], **options))
    learner.save(tmp_path / "half.npz")
    rows, y, later = frame[130:].drop(columns="y"), frame.y[130:], more.drop(columns="y")
    for way, play in WAYS.items():
        half = okl.load(tmp_path / "half.npz")
        refused("inf at row 0, column 0", half.partial_fit, rows.assign(a=np.inf), y)
        half.predict(rows)  # which are not learned
        play(half, rows.reset_index(drop=True), y.reset_index(drop=True))
        np.testing.assert_allclose(half.predict(later), expected, atol=1e-9, err_msg=way)
        one_by_one = [half.predict_one(row) for row in later.to_dict("records")]
        np.testing.assert_allclose(one_by_one, expected, atol=1e-9, err_msg=way)
    half = okl.load(tmp_path / "half.npz")  # its run's comparator sees the rows that it learned
    run = okl.run(half, rows, y)
    plain = okl.run(clone(learner), filled[130:400], y)
    best = [one.losses.sum() - one.regret(okl.Linear(), 1.0)[-1] for one in (run, plain)]
    assert best[0] == pytest.approx(best[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "when",
    [{"delay": 7}, {"delay": 3, "batch": 10}, {"batch": 64}, {"labels": "optional"}],
    ids=str,
)
def test_gaps_where_labels_come_late_or_never(when, tmp_path):
    frame = hold_gaps(300)
    if "labels" in when:
        frame.loc[::5, "y"] = np.nan
    options, path = GAPS | {"impute": "median"}, tmp_path / "run.npz"
    model = okl.LinearRidge()
    okl.run(model, okl.stream(frame[:45], **options), labels="optional")
    model.save(tmp_path / "half.npz")
    hand, learned, found = okl.load(tmp_path / "half.npz"), 45, []
    batch, delay, y = when.get("batch", 1), when.get("delay", 0), frame.y
    rows = frame.drop(columns="y").to_dict("records")
    for t in range(45, 300):
        found.append(hand.predict_one(rows[t]))
        while (t - 44) % batch == 0 and learned + delay <= t:
            if y[learned] == y[learned]:
                hand.learn_one(rows[learned], y[learned])
            learned += 1
    rest = frame[45:].reset_index(drop=True)
    run = okl.run(model, okl.stream(rest, like=model, batch=50), **when)
    np.testing.assert_allclose(run.predictions, found, atol=1e-9)
    whole = okl.run(okl.LinearRidge(), okl.stream(frame, batch=45, **options), **when)
    for limit in (1e-9, None):  # stopped, and resumed in the middle
        again = okl.run(okl.LinearRidge(), okl.stream(frame, **options), checkpoint=path,
                        time_limit=limit, **when)  # fmt: skip
        assert again.finished == (limit is None) and again.rounds > 0
    assert_array_equal(again.predictions, whole.predictions)


DATES = {  # the same dates, and the same times with a zone
    "dates": ["2026-01-31", "2024-12-31", None, "1969-12-31"],
    "times": ["2026-01-31T23:30:00+01:00", "2024-12-31 22:30:00Z", "", "1969-12-31T22:30:00.000Z"],
}


@pytest.mark.parametrize("kind", DATES)
def test_texts_and_dates_of_any_type_are_the_same_numbers(kind, tmp_path):
    texts = pd.Series(DATES[kind] * 10, dtype=object)
    when = pd.to_datetime(texts, utc=True, format="ISO8601").dt.tz_localize(None)
    columns = [
        texts,
        texts.astype("category"),
        when,
        when.astype("datetime64[s]"),
        when.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        when.astype(object),
    ]
    if kind == "dates":
        columns += [when.dt.date, when.dt.date.where(texts.index > 3, when)]
    found = []
    for column in columns:
        frame, sources = pd.DataFrame({"d": column, "y": np.arange(40.0)}), []
        for name in ("pandas.csv", "table.parquet"):
            with contextlib.suppress(pa.ArrowTypeError):  # dates and times in one column
                FILES[name](frame, tmp_path / name)
                sources.append(tmp_path / name)
        for source in (frame, *sources):
            stream = okl.stream(source, label="y", dates=["d"], impute="last")
            found.append(together(stream)[0])
            assert stream.columns == tuple(f"d_{n}" for n in PARTS[: 4 - (kind == "dates")])
            assert repr(stream.schema) == "Schema('d' (date), label='y', impute='last')"
    expected = np.array([take_parts(one) for one in when.ffill()])[:, : len(found[0][0])]
    assert all(np.array_equal(one, expected) for one in found)


def test_what_holds_no_dates_is_refused_and_what_does_is_named():
    frame, cure = PART.assign(d=pd.date_range("2026-01-01", periods=30)), "(--dates A,B) makes"
    refused(f"column 'd' of a frame holds dates.*{re.escape(cure)}", okl.stream, frame, label="y")
    refused("column 'd' has other texts .*'1/2/2026'", okl.stream, PART.assign(d="1/2/2026"),
            label="y", dates=["d"])  # fmt: skip
    refused("column 'd' has numbers, not dates .*'5'", okl.stream, PART.assign(d=5), label="y",
            dates=["d"])  # fmt: skip
    model = okl.LinearRidge()
    okl.run(model, okl.stream(frame, label="y", dates=["d"]))
    refused(
        "column 'd' holds int64, not dates such as", model.predict, PART.assign(d=5)[["a", "d"]]
    )
    refused("nan", model.predict_one, {"a": 1.0, "d": None})


def test_a_piece_of_mostly_new_values_is_warned_of_each_time():
    frame = pd.DataFrame({"zip": [1, 2] * 20, "y": np.arange(40.0)})
    model = okl.LinearRidge()
    okl.run(model, okl.stream(frame, label="y", encode=["zip"]))
    other = frame.assign(zip=np.where(np.arange(40) % 3 > 0, 5, 1))
    for _ in range(3):
        with pytest.warns(UserWarning, match="'zip' has '5' in 26 of 40 rows, which is not among"):
            model.predict(other)
    with warnings.catch_warnings(action="error"):
        model.predict(frame.assign(zip=np.where(np.arange(40) < 20, frame.zip, 9)))
    many = pd.DataFrame({"town": [f"t{k}" for k in range(500)] * 2, "y": np.arange(1000.0)})
    okl.run(model.reset(), okl.stream(many, label="y", encode=["town"]))
    with pytest.warns(UserWarning, match="in 1000 of 1000 rows"):  # others are expected; not all
        model.predict(many.assign(town=many.town.str.upper()))
    refused("column 'd' holds duration.*drop it", okl.stream, many.assign(d=pd.Timedelta(1, "h")),
            label="y", encode=["d"])  # fmt: skip


# ---- nothing is left out in silence ----

PART = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30.0)})


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_linked_folders_are_played_and_broken_links_refused(kind, tmp_path):
    (tmp_path / "away" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "here").mkdir(parents=True)
    for k, place in enumerate(["away", "away/deep", "data/here"]):
        write = FILES["table.parquet" if kind == "parquet" else "pandas.csv"]
        write(PART + 30 * k, tmp_path / place / f"part.{kind}")
    (tmp_path / "data" / "linked").symlink_to(tmp_path / "away")
    (tmp_path / "away" / "deep" / "back").symlink_to(tmp_path / "data")
    found = read(tmp_path / "data", label="y")[:, 0]
    assert_array_equal(found, np.r_[60:90, 30:60, 0:30])
    (tmp_path / "data" / f"zzz.{kind}").symlink_to(tmp_path / "nowhere")
    raises(FileNotFoundError, f"zzz.{kind}", okl.stream, tmp_path / "data", label="y")


def test_a_folder_that_is_linked_beside_itself_is_read_once_by_the_first_name(tmp_path):
    for k, place in enumerate(["first", "later"]):
        (tmp_path / place).mkdir()
        (PART + 30 * k).to_csv(tmp_path / place / "part.csv", index=False)
    for k in range(9):
        (tmp_path / f"link{k}").symlink_to(tmp_path / "first")
    assert_array_equal(read(tmp_path, label="y")[:, 0], np.arange(60))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_that_have_other_columns_than_the_first(kind, tmp_path, monkeypatch):
    write = FILES["table.parquet" if kind == "parquet" else "pandas.csv"]
    write(PART, tmp_path / f"a.{kind}")
    for other, message in (
        (PART[["a"]], f"b.{kind} is without the label 'y'"),
        (PART[["y"]], f"b.{kind} lacks 'a'"),
        (PART.assign(b=1.0), f"b.{kind} has 'b'"),
    ):
        write(other, tmp_path / f"b.{kind}")
        refused(message, okl.stream, tmp_path, label="y")
    write(PART.set_index(PART.a.rename("day")), tmp_path / f"b.{kind}")
    if kind == "parquet":  # an index of pandas is no input
        assert len(read(tmp_path, label="y")) == 60
    write(PART.assign(c=1.0), tmp_path / f"a.{kind}")
    write(PART, tmp_path / f"b.{kind}")  # lacks a column that is not asked for
    assert len(read(tmp_path, label="y", columns=["a"])) == 60
    monkeypatch.setattr(inputs, "LOOK_ROWS", 30)
    for part, day in (("a", "2026-01-31"), ("b", "1/2/2026")):
        write(PART.assign(d=day), tmp_path / f"{part}.{kind}")
    message = f"b.{kind}: column 'd' has other texts than dates .*1/2/2026"
    refused(message, read, tmp_path, label="y", dates=["d"])


def test_medians_of_huge_and_of_tiny_numbers():
    """The sum of two may be beyond the largest number, and half of one below the smallest."""
    for values, median in (([1e308, 1.5e308], 1.25e308), ([5e-324] * 2, 5e-324)):
        frame = pd.DataFrame({"a": [*values, np.nan], "y": 0.0})
        assert read(frame, label="y", impute="median")[2] == median


@pytest.mark.filterwarnings("ignore:Feather V1")
def test_an_old_feather_file_is_refused_with_its_cure_wherever_it_stands(tmp_path):
    for name, version in (("a", 2), ("b", 1)):
        pyarrow.feather.write_feather(PART, tmp_path / f"{name}.feather", version=version)
    for source in (tmp_path, tmp_path / "b.feather"):
        with pytest.raises(ValueError, match="b.feather: .*Not an Arrow file") as refusal:
            okl.stream(source, label="y")
        cure = re.search(r"okl.stream\(pandas.read_feather\('([^']*)'\)", str(refusal.value))
        assert len(read(pd.read_feather(cure[1]), label="y")) == 30


def test_names_that_look_like_something_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("s3:day.csv", "~who.csv", "file:a b%20.csv", "a=1.csv"):
        Path(name).write_text(PART.to_csv(index=False))
        assert len(read(name, label="y")) == len(read([Path(name)], label="y")) == 30
    raises(FileNotFoundError, "~who/a.csv", okl.stream, "~who/a.csv", label="y")
    monkeypatch.setenv("HOME", str(tmp_path))
    okl.run(okl.LinearRidge(), okl.stream("~/a=1.csv", label="y"), checkpoint="~/c.npz")
    okl.load("~/c.npz").save("~/m.npz")
    assert okl.load(tmp_path / "m.npz").rounds == okl.Run.load("c.npz").rounds == 30
    (tmp_path / "data" / "a=1").mkdir(parents=True)
    for values in (PART, PART.assign(a="x")):  # of the type of the folder's, and another
        values.to_csv("data/a=1/part.csv", index=False)
        refused("a=1/part.csv.*(Field a|'a')", okl.stream, "data", label="y", encode=["a"])
        assert okl.stream(["data/a=1/part.csv"], label="y", encode=["a"]).columns[0].startswith("a")


# ---- frames as streams ----


class Odd:
    pass


@pytest.mark.parametrize("hold", [*FRAMES.values()], ids=FRAMES)
def test_a_frame_needs_only_what_is_read(hold):
    frame = PART.assign(zip=np.arange(30) % 3)
    expected = read(frame, label="y", encode=["zip"])
    lost = pd.Series(pd.timedelta_range(0, periods=30, freq="h"))
    more = frame.assign(lost=lost, text="x")
    assert_array_equal(read(hold(more), label="y", encode=["zip"], drop=["lost", "text"]), expected)
    refused("column 'lost' of a frame holds .*nor.* in 'text'", okl.stream, hold(more), label="y")


def test_a_decimal_is_the_nearest_double_in_every_format(tmp_path):
    values = [decimal.Decimal(k) / 100 for k in range(100)] + [None]
    table = pa.table({"x": pa.array(values, pa.decimal128(20, 2)), "y": np.arange(101.0)})
    pyarrow.parquet.write_table(table, tmp_path / "table.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "table.feather")
    for source in (table, table.to_pandas(), pl.from_arrow(table), *tmp_path.iterdir()):
        found = read(source, label="y", impute="last")[:, 0]
        assert_array_equal(found, [*map(float, values[:-1]), 0.99])


@pytest.mark.parametrize("hold", [*FRAMES.values()], ids=FRAMES)
def test_an_empty_text_is_no_label_and_no_column_of_numbers_is_needed(hold):
    frame = pd.DataFrame({"town": ["x", "y", "x"] * 9, "y": ["a", "", "b"] * 9})
    ((X, y),) = okl.stream(hold(frame), label="y", columns=[], encode=["town"])
    assert_array_equal(X[:2], np.eye(2))
    assert_array_equal(y[:3], [-1.0, np.nan, 1.0])


@pytest.mark.parametrize("hold", [*FRAMES.values()], ids=FRAMES)
def test_a_column_of_few_texts_is_named_as_mostly_empty(hold):
    said = "text, 'call' in row 3, and nothing in most rows; drop"
    for note in (["", None], [None, None]):
        texts = [*note, note[0], "call", *note * 13]
        refused(f"column 'note' .* {said}", okl.stream, hold(PART.assign(note=texts)), label="y")


def test_objects_are_refused_by_the_name_of_their_column():
    for odd in (Odd(), [1], {"a": 1}, 1j):
        frame = PART.assign(b=pd.Series([1, odd] * 15, dtype=object))
        refused("column 'b'", okl.stream, frame, label="y", encode=["b"])
        refused("column 'b' of a frame holds", okl.stream, frame, label="y")
        assert len(read(frame, label="y", drop=["b"])) == 30
    mixed = PART.assign(b=pd.Series([1, "a", 2.5, None, True, DAY] * 5, dtype=object))
    assert okl.stream(mixed, label="y", encode=["b"]).columns[1:] == (
        "b_", "b_1", "b_2.5", "b_2026-01-01", "b_a", "b_true",
    )  # fmt: skip


@pytest.mark.parametrize("names", [[0, 1, 2], [2, 0, 7], [5, "x", 1.5]], ids=str)
def test_columns_that_are_named_by_numbers(names, tmp_path):
    first, second, label = names
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 3, 60)])
    frame = pd.DataFrame(np.column_stack([X, X @ [1.0, 2.0]]), columns=names)
    for encode in ([], [second]):
        stream, model = okl.stream(frame, label=label, encode=encode), okl.LinearRidge(lam=1e-6)
        assert stream.columns[0] == str(first) and stream.schema.label == str(label)
        okl.run(model, stream)
        expected = model.predict(read(frame, label=label, encode=encode))
        model.save(tmp_path / "model.npz")
        frame.rename(columns=str).to_parquet(tmp_path / "frame.parquet")
        for one in (model, okl.load(tmp_path / "model.npz")):
            assert_array_equal(one.predict(frame), expected)
            assert_array_equal(one.predict(frame.drop(columns=[label])), expected)
            assert_array_equal(one.predict(read(tmp_path / "frame.parquet", like=one)), expected)
            row = {name: frame[name][3] for name in (second, first)}
            assert one.predict_one(row) == pytest.approx(expected[3])


def wide(d, folder):
    """Return what is timed with d columns, by name."""
    frame = pd.DataFrame(np.zeros((2, d)), columns=[f"c{k}" for k in range(d)]).assign(y=[1.0, 2.0])
    names, model = [*frame.columns[:-1]], okl.OGD(0.1)
    model.partial_fit(frame[names], frame.y)
    row = dict.fromkeys(names, 0.5)
    frame.to_csv(folder / f"{d}.csv", index=False)
    frame.to_parquet(folder / f"{d}.parquet")
    return {
        "a dict": lambda: [model.predict_one(row) for _ in range(10)],
        "CSV": lambda: read(folder / f"{d}.csv", label="y"),
        "Parquet": lambda: read(folder / f"{d}.parquet", label="y", columns=names),
        "places": lambda: okl.stream(frame, label=-1, columns=[*range(d)]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a dict", "CSV", "Parquet", "places"])
def test_time_is_linear_in_columns(name, tmp_path):
    seconds = []
    for d in (500, 4000):
        call, times = wide(d, tmp_path)[name], []
        for _ in range(2):
            begin = time.process_time()
            call()
            times.append(time.process_time() - begin)
        seconds.append(min(times))
    assert seconds[1] < 24 * max(seconds[0], 1e-3)  # squares make 64
