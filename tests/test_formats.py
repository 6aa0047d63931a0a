"""The same values are the same rows, whatever file or frame holds them."""

import datetime
import gzip
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import oklnumba as okl
from oklnumba.command.parser import main
from tests.checks import refused

pa = pytest.importorskip("pyarrow")
import pyarrow.csv  # noqa: E402
import pyarrow.feather  # noqa: E402
import pyarrow.parquet  # noqa: E402

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


def write_gz(frame, path):
    path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))


def write_arrow_csv(frame, path):
    pyarrow.csv.write_csv(pa.Table.from_pandas(frame.astype({"group": str})), path)


def write_folder(frame, path):
    path.mkdir(exist_ok=True)
    half = len(frame) // 2
    hold(frame[:half][[*VALUES]].to_dict("list")).assign(
        x=frame.x[:half], y=frame.y[:half]
    ).to_parquet(path / "a.parquet")
    frame[half:].to_parquet(path / "b.parquet")


FILES = {
    "pandas.csv": lambda frame, path: frame.to_csv(path, index=False),
    "arrow.csv": write_arrow_csv,
    "polars.csv": lambda frame, path: pl.from_pandas(frame).write_csv(path),
    "packed.csv.gz": write_gz,
    "table.parquet": lambda frame, path: frame.to_parquet(path),
    "table.feather": lambda frame, path: pyarrow.feather.write_feather(frame, path),
    "folder": write_folder,
}
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
    X, _ = zip(*okl.stream(source, **options), strict=True)
    return np.concatenate(X)


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
