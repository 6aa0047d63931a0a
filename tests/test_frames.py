"""Whatever holds the data: the bits of the float64 array, or an error that names the column."""

import copy
import datetime
import decimal
import re
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import oklnumba as okl
from tests import battery
from tests.battery import assert_same_run
from tests.checks import refused

PATH = Path(tempfile.mkdtemp()) / "mapped.npy"
NAMES = ["length", "width", "colour"]
N = 150
make = partial(okl.PKAWV, okl.TaylorFeatures(2))
RNG = np.random.default_rng(0)
QUARTERS = RNG.integers(-8, 9, (N, 3)) / 8.0  # exact in every float type
COUNTS = RNG.integers(0, 4, (N, 3)).astype(float)  # exact in every number type
BITS = RNG.integers(0, 2, (N, 3)).astype(float)
SIGNS = np.where(QUARTERS[:, 0] * QUARTERS[:, 1] > 0.1, 1.0, -1.0)


def contents(learner):
    """Return the state; the names of the columns are no part of it."""
    learner = copy.deepcopy(learner)
    learner._schema = None
    return battery.contents(learner)


def frame(a):
    return pd.DataFrame(a, columns=NAMES, index=np.arange(len(a))[::-1])


def arrow(a):
    return pa.table(list(a.T), names=NAMES)


def mixed(a):
    columns = zip(NAMES, a.T, ("uint8", "bool", "float32"), strict=True)
    return pd.DataFrame({name: column.astype(kind) for name, column, kind in columns})


HOLDERS = {  # the numbers and what holds them
    **{name: (QUARTERS, partial(hold, path=PATH)) for name, hold in battery.HOLDERS.items()},
    "float32": (QUARTERS, lambda a: a.astype(np.float32)),
    "float16": (QUARTERS, lambda a: a.astype(np.float16)),
    "long double": (QUARTERS, lambda a: a.astype(np.longdouble)),
    "int64": (COUNTS, lambda a: a.astype(np.int64)),
    "uint8": (COUNTS, lambda a: a.astype(np.uint8)),
    "bool": (BITS, lambda a: a.astype(bool)),
    "decimals": (QUARTERS, lambda a: np.vectorize(decimal.Decimal, otypes=[object])(a)),
    "strided": (QUARTERS, lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3]),
    "matrix": (QUARTERS, lambda a: np.asmatrix(a)),
    "pandas": (QUARTERS, frame),
    "pandas int, bool and float": (BITS, mixed),
    "pandas nullable": (COUNTS, lambda a: frame(a).convert_dtypes()),
    "pandas nullable bool": (BITS, lambda a: frame(a).astype("boolean")),
    "pandas nullable float32": (QUARTERS, lambda a: frame(a).astype("Float32")),
    "pandas on arrow": (COUNTS, lambda a: frame(a).astype("int16[pyarrow]")),
    "pandas objects": (QUARTERS, lambda a: frame(a).astype(object)),
    "pandas sparse columns": (QUARTERS, lambda a: frame(a).astype(pd.SparseDtype(float, 0.0))),
    "pandas, columns of one name": (QUARTERS, lambda a: frame(a).set_axis(["a"] * 3, axis=1)),
    "polars": (QUARTERS, lambda a: pl.DataFrame(a, schema=NAMES)),
    "polars mixed": (BITS, lambda a: pl.from_pandas(mixed(a))),
    "polars decimals": (COUNTS, lambda a: pl.DataFrame(a, schema=NAMES).cast(pl.Decimal(9, 2))),
    "arrow": (QUARTERS, lambda a: arrow(a)),
    "arrow, three pieces": (QUARTERS, lambda a: pa.concat_tables(map(arrow, np.split(a, 3)))),
    "arrow batch": (QUARTERS, lambda a: pa.RecordBatch.from_arrays(list(a.T), names=NAMES)),
    "arrow float16": (QUARTERS, lambda a: pa.table(list(a.T.astype(np.float16)), names=NAMES)),
    "arrow mixed": (BITS, lambda a: pa.Table.from_pandas(mixed(a))),
    "arrow decimals": (
        COUNTS,
        lambda a: pa.table([pa.array(c).cast(pa.decimal128(9, 2)) for c in a.T], names=NAMES),
    ),
}
every_holder = pytest.mark.parametrize("numbers, hold", HOLDERS.values(), ids=HOLDERS)

LABELS = {
    "list": lambda y: y.tolist(),
    "float16": lambda y: y.astype(np.float16),
    "read-only": partial(battery.read_only, path=None),
    "Series of another index": lambda y: pd.Series(y, index=np.arange(len(y))[::-1] * 7),
    "Series indexed by text": lambda y: pd.Series(y.astype(int), index=list("ab") * 75),
    "nullable Series": lambda y: pd.Series(y.astype(int), index=np.arange(len(y))[::-1]).astype(
        "Int8"
    ),
    "pandas index": lambda y: pd.Index(y),
    "polars": lambda y: pl.Series(y),
    "arrow": lambda y: pa.array(y),
    "arrow in pieces": lambda y: pa.chunked_array([y[:40], y[40:]]),
}

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")


# ---- the same bits ----


@every_holder
def test_whatever_holds_the_inputs(numbers, hold):
    plain, learner, held = make(), make(), hold(numbers)
    assert_same_run(okl.run(learner, held, SIGNS), okl.run(plain, numbers, SIGNS))
    assert contents(learner) == contents(plain)
    assert contents(make().partial_fit(held, SIGNS)) == contents(make().partial_fit(numbers, SIGNS))
    assert_array_equal(learner.predict(held), plain.predict(numbers))
    other = hold(numbers)  # nothing was written into it
    assert held.equals(other) if hasattr(held, "equals") else np.array_equal(held, other)


@pytest.mark.parametrize("hold", LABELS.values(), ids=LABELS)
def test_whatever_holds_the_labels(hold):
    plain, learner = make(), make()
    expected = okl.run(plain, QUARTERS, SIGNS)
    assert_same_run(okl.run(learner, frame(QUARTERS), hold(SIGNS)), expected)
    assert contents(learner) == contents(plain)
    at_once = make().partial_fit(QUARTERS, SIGNS)
    assert contents(make().partial_fit(QUARTERS, hold(SIGNS))) == contents(at_once)


@pytest.mark.parametrize("kind", ["float64", "float16", "Float64", "object", "float[pyarrow]"])
def test_a_row_of_a_frame_is_a_point(kind):
    plain, learner = make(), make()
    table, labels = frame(QUARTERS).astype(kind), pd.Series(SIGNS.astype(int))
    for i in range(40):
        assert learner.predict_one(table.iloc[i]) == plain.predict_one(QUARTERS[i])
        learner.learn_one(table.iloc[i], labels.iloc[i])
        plain.learn_one(QUARTERS[i], SIGNS[i])
    assert contents(learner) == contents(plain)
    exact = dict(zip(NAMES, map(decimal.Decimal, QUARTERS[50].tolist()), strict=True))
    assert learner.predict_one(exact) == plain.predict_one(QUARTERS[50])
    rows = pl.DataFrame(QUARTERS, schema=NAMES).rows()
    assert learner.predict_one(rows[50]) == plain.predict_one(pa.array(QUARTERS[50]))


@pytest.mark.parametrize(
    "hold",
    [
        lambda y: pd.Series(y, index=np.arange(N)[::-1]),
        lambda y: pd.Series(y).astype("category"),
        lambda y: pl.Series(y, dtype=pl.Categorical),
        pa.array,
        lambda y: pa.chunked_array([y[:9], y[9:]]),
    ],
)
def test_classes_that_are_texts(hold):
    texts = np.where(SIGNS > 0, "yes", "no")
    plain, learner = (okl.OneVsRest(okl.FOGD(n_frequencies=20), ["no", "yes"]) for _ in range(2))
    expected, found = okl.run(plain, QUARTERS, texts), okl.run(learner, QUARTERS, hold(texts))
    assert_same_run(found, expected)
    assert contents(learner) == contents(plain)


def test_several_labels_in_a_frame():
    Y = QUARTERS[:, :2] ** 2
    plain, learner = (okl.MultiOutput(make()) for _ in range(2))
    expected = okl.run(plain, QUARTERS, Y)
    for held in (frame(QUARTERS)[NAMES[:2]] ** 2, pl.DataFrame(Y, schema=NAMES[:2])):
        assert_same_run(okl.run(learner.reset(), QUARTERS, held), expected)


def test_kernels_take_frames():
    """Features, samplers and the standardizer do in test_transformers.py."""
    table, kernel = frame(QUARTERS), okl.Gaussian(1.0)
    assert_array_equal(kernel(table, table.iloc[:5]), kernel(QUARTERS, QUARTERS[:5]))
    assert_array_equal(okl.Standardizer().stream(table), okl.Standardizer().stream(QUARTERS))


# ---- what is refused ----


def with_column(values, kind=None):
    table = frame(QUARTERS).assign(colour=values)
    return table if kind is None else table.astype({"colour": kind})


def missing(table):
    table = table.copy()  # pandas 2 would write into the array that it was made of
    table.iloc[7, 1] = None
    return table


def polars_of(values, kind=None):
    columns = {"length": QUARTERS[:, 0], "colour": pl.Series(values, dtype=kind)}
    return pl.DataFrame(columns | {"width": QUARTERS[:, 1]})


TEXT = ["red", "green", "blue"] * 50
DAYS = [datetime.datetime(2026, 1, 1)] * N
GAP = np.where(np.arange(N) == 7, np.nan, 1.0)
TEXT_IN = "column 'colour' of X holds text, 'red' in row 0; drop or encode"
ALL_AT_ONCE = (
    "column 'colour' of X holds text, 'red' in row 0; drop or encode such columns, by okl.stream("
    "data, label=..., drop=[...], encode=[...]) .* nor are there numbers in 'day'; for all of "
    "this: dates=['day'], encode=['colour'], impute='median' (--dates day --encode colour "
    "--impute median)"
)
MANY = {f"text {i}": TEXT for i in range(14)}
SEVERAL = missing(with_column(TEXT, object)).assign(day=DAYS, late=GAP)
WRONG = {
    "categories": (
        with_column(pd.Categorical([3, 4, 5] * 50)),
        "'colour' of X holds category, not",
    ),
    "all at once": (SEVERAL, ALL_AT_ONCE),
    "many": (
        frame(QUARTERS).assign(**MANY),
        "column 'text 0' of X holds .* nor are there numbers in 'text 1', 'text 2', .* 'text 13'",
    ),
    "a nullable gap": (missing(frame(QUARTERS).convert_dtypes()), "row 7, column 1 ('width')"),
    "an arrow gap": (missing(frame(COUNTS).astype("int8[pyarrow]")), "row 7, column 1 ('width')"),
    "polars text": (polars_of(TEXT), TEXT_IN),
    "arrow text": (polars_of(TEXT).to_arrow(), TEXT_IN),
    "polars gap": (polars_of([None] + [1] * (N - 1)), "X has nan at row 0, column 1 ('colour')"),
}


def pattern(text):
    return ".*".join(map(re.escape, text.split(" .* ")))


@pytest.mark.parametrize("table, message", WRONG.values(), ids=WRONG)
def test_a_frame_that_will_not_do(table, message):
    learner = okl.FOGD(n_frequencies=20)
    before = contents(learner)
    for call in (learner.partial_fit, lambda X, y: okl.run(learner, X, y)):
        refused(pattern(message), call, table, SIGNS)
    refused(pattern(message), learner.predict, table)
    assert contents(learner) == before


@pytest.mark.parametrize("dtype", ["Int8", "category", None])
def test_a_label_that_lacks_is_named(dtype):
    gaps = [1, pd.NA] * 75
    labels = pd.Series(gaps, dtype=dtype) if dtype else gaps
    refused("y has nan at row 1", okl.FOGD(n_frequencies=20).partial_fit, QUARTERS, labels)


PLAYS = {
    "run": okl.run,
    "chunks": lambda learner, X, y: okl.run(learner, [(X, y)]),
    "partial_fit": lambda learner, X, y: learner.partial_fit(X, y),
}


@pytest.mark.parametrize("play", [*PLAYS, "estimator"])
def test_one_index_in_two_orders_is_warned_of(play):
    """As rows are paired by place, X.sample(frac=1) and y train on labels of other rows."""
    plays = PLAYS | {
        "estimator": lambda learner, X, y: okl.interop.OnlineClassifier(learner).fit(X, y)
    }
    X, y = pd.DataFrame(QUARTERS, columns=NAMES), pd.Series(SIGNS)
    shuffled = X.sample(frac=1.0, random_state=0)
    with pytest.warns(UserWarning, match="different orders.*y.loc.*y.to_numpy"):
        plays[play](make(), shuffled, y)
    by_index, by_place, other = y.loc[shuffled.index], y.to_numpy(), y.set_axis(y.index + N)
    with warnings.catch_warnings(action="error"):
        for labels in (by_index, by_place, other, y.tolist()):
            plays[play](make(), shuffled, labels)
        hours = pd.date_range("2026-03-29", periods=N, freq="h", tz="UTC")
        local = y.set_axis(hours.tz_convert("Europe/Berlin"))  # the same times, in the same order
        plays[play](make(), X.set_axis(hours), local)


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_an_index_that_goes_back_in_time_is_warned_of(play, zone):
    """Rows are played in their order, so forecasts would know later labels."""
    days = pd.date_range("2026-03-29", periods=N, freq="h", tz=zone).repeat(2)[:N]  # two an hour
    X, y = pd.DataFrame(QUARTERS, index=days, columns=NAMES), pd.Series(SIGNS, index=days)
    back = np.r_[:70, N - 1, 70 : N - 1]
    for rows, labels in ((X, y), (X, y.to_numpy()), (QUARTERS, y)):
        with warnings.catch_warnings(action="error"):
            play(make(), rows, labels)
        turned = [one.iloc[back] if hasattr(one, "iloc") else one for one in (rows, labels)]
        with pytest.warns(UserWarning, match=r"back in time at row 71, .*sort_index.*reset_index"):
            play(make(), *turned)


@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
@pytest.mark.parametrize("outer", [okl.Lags, partial(okl.Horizon, steps=2)])
def test_times_that_an_index_leaves_out_are_warned_of_where_rows_are_counted(play, outer):
    y, learner = pd.Series(QUARTERS[:, 0]), okl.LinearRidge()
    for freq, zone in (("h", "Europe/Berlin"), ("D", "Europe/Berlin"), ("MS", None), ("B", None)):
        times = pd.date_range("2026-02-02", periods=N, freq=freq, tz=zone)
        with warnings.catch_warnings(action="error"):
            play(outer(learner), QUARTERS, y.set_axis(times))
            play(learner.reset(), QUARTERS[5:], y.set_axis(times).drop(times[70:75]))
        with pytest.warns(UserWarning, match="row 70 comes .* counts rows.*asfreq.*reset_index"):
            play(outer(learner), QUARTERS[5:], y.set_axis(times).drop(times[70:75]))


def test_nights_and_weekends_without_rows_are_no_gaps_and_a_gap_at_midnight_is_one():
    hours, y = pd.date_range("2026-02-02", periods=40 * N, freq="h"), QUARTERS[:, 0]
    by_day = hours[(hours.hour >= 8) & (hours.hour < 18)]
    play = okl.Lags(okl.LinearRidge()).partial_fit
    with warnings.catch_warnings(action="error"):
        for times in (by_day, by_day[by_day.day_of_week < 5], hours):
            play(QUARTERS, pd.Series(y, index=times[:N]))
    for times in (hours.delete(range(70, 91)), by_day.delete(range(70, 75))):
        with pytest.warns(UserWarning, match="row 70 comes .* fill their labels"):
            play(QUARTERS, pd.Series(y, index=times[:N]))


def test_an_estimator_that_shuffles_rows_takes_times_in_any_order():
    times = pd.date_range("2026-03-29", periods=N)[::-1]
    X, y = pd.DataFrame(QUARTERS, index=times), pd.Series(SIGNS, index=times)
    with warnings.catch_warnings(action="error"):
        okl.interop.OnlineClassifier(make()).fit(X.set_axis(NAMES, axis=1), y)


@pytest.mark.parametrize("name", ["collect", "column_names", "get_columns", "type"])
def test_a_column_may_be_called_as_a_method_of_other_frames(name):
    """They are attributes of a frame of pandas, and of a row."""
    data = pd.DataFrame({"a": QUARTERS[:, 0].astype("f4"), name: QUARTERS[:, 1], "y": SIGNS})
    turned = data[[name, "a"]]
    run = okl.run(make(), QUARTERS[:, :2], SIGNS)
    learner = make().partial_fit(data[["a", name]], SIGNS)
    assert learner.schema.columns == ("a", name)
    assert_array_equal(learner.predict(turned), learner.predict(data[["a", name]]))
    assert learner.predict_one(turned.iloc[0]) == learner.predict(turned[:1])[0]
    for label in ("y", name):
        streamed = data.rename(columns={name: "b", "y": name}) if label == name else data
        assert_same_run(okl.run(make(), okl.stream(streamed, label=label)), run)
    labels = pd.Series(SIGNS, index=[name, *range(1, N)])
    assert_same_run(okl.run(make(), QUARTERS[:, :2], labels), run)


def test_labels_in_another_order_of_columns_are_refused(tmp_path):
    labels = pd.DataFrame({"up": QUARTERS[:, 0], "down": -QUARTERS[:, 0]})
    learner = okl.MultiOutput(okl.LinearRidge()).partial_fit(QUARTERS, labels)
    learner.save(tmp_path / "learner.npz")
    for one in (learner, copy.deepcopy(learner), okl.load(tmp_path / "learner.npz")):
        swapped = labels[["down", "up"]]
        refused(r"y has columns \['down', 'up'\], but", one.partial_fit, QUARTERS, swapped)
        refused(r"y has columns \['down', 'up'\], but", one.learn_one, QUARTERS[0], swapped.iloc[0])
        one.partial_fit(QUARTERS, labels).partial_fit(QUARTERS, labels.to_numpy())
        one.learn_one(QUARTERS[0], labels.iloc[0]).learn_one(QUARTERS[0], [0.0, 0.0])
    assert learner.reset().partial_fit(QUARTERS, swapped).rounds == N
    learner.reset()
    refused("known", learner.partial_fit, QUARTERS, labels, known=np.full(N, N))
    assert learner.partial_fit(QUARTERS, labels.to_numpy()).partial_fit(QUARTERS, swapped)


def test_outputs_have_the_names_of_label_columns_where_labels_are_missing_too(tmp_path):
    labels = pd.DataFrame({"up": QUARTERS[:, 0], "down": -QUARTERS[:, 0]})
    labels.iloc[:70] = np.nan  # more than the first block
    learner = okl.MultiOutput(okl.LinearRidge())
    run = okl.run(learner, QUARTERS, labels, labels="optional")
    run.save(tmp_path / "run.npz")
    assert list(okl.Run.load(tmp_path / "run.npz").to_frame())[1:3] == [
        "prediction_up",
        "prediction_down",
    ]
    swapped = labels[["down", "up"]]
    refused("y has columns", okl.run, learner, QUARTERS, swapped, labels="optional")


def test_a_checkpoint_goes_on_with_labels_in_the_same_columns(tmp_path):
    labels = pd.DataFrame({"up": QUARTERS[:, 0], "down": -QUARTERS[:, 0]})
    path, make = tmp_path / "run.npz", partial(okl.MultiOutput, okl.LinearRidge())
    okl.run(make(), QUARTERS[:100], labels[:100], checkpoint=path)
    rest = QUARTERS[100:], labels[["down", "up"]][100:]
    refused("is of labels in columns", okl.run, make(), *rest, checkpoint=path, resume=True)
    run = okl.run(make(), QUARTERS[100:], labels[100:], checkpoint=path, resume=True)
    assert_array_equal(run.predictions, okl.run(make(), QUARTERS, labels).predictions)
