"""X and y become arrays, once, before anything changes; errors say what is wrong and where.

Frames of any library are told by their methods. Sparse rows become dense one block at a time.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np

from oklnumba.core.checks import cut, repr_short, warn, write_option

CHECKED_ROWS = 16384  # rows tested for NaN at once, so that checking takes little memory
BLOCK_BYTES = 2**23
LEAST_ROWS = 64  # the smallest block; the rows of larger ones are a multiple of it

# How the dtypes of numbers begin, in lower case, in NumPy, pandas, polars and Arrow.
NUMBERS = ("int", "uint", "float", "bool", "double", "half", "decimal", "sparse[", "null")
# docs/for_sklearn_users.md, "Frames as they are"
ENCODE = (
    "; drop or encode such columns, by okl.stream(data, label=..., drop=[...], encode=[...]) "
    "(--drop A,B --encode A,B) or skrub.tabular_pipeline(model); kernels of texts: okl.Precomputed"
)
FILL = (  # nullable integers and bools take no median
    "; in pandas: column = column.astype(float){} and "
    "column.fillna(column.median()); or leave such columns out, by okl.stream(data, label=..., "
    "drop=[...]) (--drop A,B)"
)
ON_THE_WAY = "; okl.stream(data, label=..., impute='median') (--impute median) fills gaps itself"
NO_INFINITY = ".replace([np.inf, -np.inf], np.nan)"
FOR_DATES = (
    "; okl.stream(frame, label=..., dates=[...]) (--dates A,B) makes numbers of them, such as the "
    "hour or the weekday"
)
FOR_DATE_LABELS = (
    "; labels are numbers, such as days since 1970, (np.asarray(y, 'M8[us]') - np.datetime64(0, "
    "'us')) / np.timedelta64(1, 'D')"
)
FOR_CLASSES = (
    "two classes are -1 and +1, others are for okl.OneVsRest(learner, classes=[...]) or "
    "okl.interop.OnlineClassifier(learner)"
)
BY_DECIMAL = " pass decimal=',' (--decimal ,)"
BY_PANDAS = "; okl.stream(pandas.read_csv(path, {}), label=...) reads them; sep= is the delimiter"
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")  # as in 1,234
AMONG_NUMBERS = ", among numbers; correct such values or leave out their rows"
NONE = np.array(None)
MOST_ADVISED = 12  # columns for which a message says all arguments
LOOK_ROWS, FEW_ROWS = 100_000, 1000  # in which texts are looked for
FEWEST_LABELS = 8  # fewer may be 0 and 1 by chance
FIRST_ROWS = 64  # rounds of a run's first block; each later block is as long as all before it
PLAY_ROWS = 8192  # most rounds in one call of a compiled loop


# ---- X ----


def as_inputs(
    X: Any, width: int | None = None, name: str = "X", least: int = 1, gaps: int = 0
) -> np.ndarray:
    """Return X as a finite float64 array, (n, d), of ``least`` rows or more.

    width : the d of the data so far; gaps : first columns that may have NaN.
    """
    array = as_floats(X, name)
    _check_shape(array.shape, width, name, least)
    refuse_not_finite(array, name, X, gaps=gaps)
    return array


def as_rows(
    X: Any, width: int | None = None, name: str = "X", schema: Any = None, least: int = 1,
    fill: bool = True,
) -> np.ndarray:  # fmt: skip
    """Return X as ``as_inputs`` does, its columns by a Schema; sparse X as CSR float64.

    fill : False leaves NaN where the schema fills gaps, for rows that will be learned.
    """
    X = X if schema is None or isinstance(X, dict) else schema.arrange(X)
    if not is_sparse(X):
        rows = as_inputs(X, width, name, least, schema.gaps if schema else 0)
        return schema.fill(rows)[0] if schema and fill else rows
    _check_shape(X.shape, width, name, least)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, but its dtype is {X.dtype}")
    rows = X.tocsr().astype(np.float64, copy=False)
    finite = np.isfinite(rows.data)
    if not finite.all():
        row = int(rows.tocoo().row[finite.argmin()])
        refuse_not_finite(rows[[row]].toarray(), name, row=row)
    return rows


def as_point(
    x: Any, width: int | None = None, name: str = "x", schema: Any = None, fill: bool = True
) -> np.ndarray:
    """Return one input x as a C-contiguous float64 array of shape (1, d); fill as in as_rows."""
    x = x if schema is None else schema.arrange(x)
    if is_sparse(x) and x.shape[: x.ndim - 1] in ((), (1,)):  # one sparse row
        x = x.toarray().ravel()
    if isinstance(x, dict):
        fault = "it is a dict, but the learner was taught numbers without names: pass numbers"
        raise ValueError(f"{name} must hold real numbers; {fault}")
    row = as_label_array(x)
    array = as_floats(row[None], name)[0] if row.ndim == 1 else as_floats(x, name)
    if array.ndim != 1:
        cure = "for many points use predict(X) and partial_fit(X, y)" if array.ndim else "use [x]"
        said = f"{name} must be one point, a 1-D array of numbers, but has shape {array.shape}"
        raise ValueError(said + f"; {cure}" * (name == "x"))
    return np.array(as_rows(array[None], width, name, schema, fill=fill), order="C")


def as_numbers(values: Any, name: str) -> np.ndarray:
    """Return numbers of any shape as a finite float64 array."""
    array = as_floats(values, name)
    for place in np.argwhere(~np.isfinite(array)).tolist():
        value = array[tuple(place)]
        raise ValueError(f"{name} must be finite, but {name}{place or ''} is {value}")
    return array


def _check_shape(shape: tuple[int, ...], width: int | None, name: str, least: int = 1) -> None:
    if len(shape) != 2:
        make = f"np.reshape({name}"
        cure = f"{make}, (len({name}), -1))"
        if len(shape) == 1:
            cure = f"{make}, (1, -1)) for one point, {make}, (-1, 1)) for one feature"
            if name == "y":
                cure = f"{make}, (-1, 1)) for one label a row"
        elif not shape:
            cure = "one number is no row"
        raise ValueError(f"{name} must be 2-D, one row per round, but has shape {shape}: {cure}")
    if shape[0] < least or shape[1] == 0:
        raise ValueError(f"{name} is empty: its shape is {shape}; it needs a row and a column")
    if width is not None and shape[1] != width:
        cure = f"pass {width} columns, or start afresh with {shape[1]}"
        raise ValueError(f"{name} has {shape[1]} columns, but the data so far had {width}; {cure}")


def refuse_not_finite(
    array: np.ndarray, name: str, given: Any = None, row: int = 0, gaps: int = 0
) -> None:
    """Raise at the first NaN or infinity.

    given : the user's object, or names of columns; row : of the first; gaps : as in as_inputs.
    """
    for start in range(0, len(array), CHECKED_ROWS):
        part = array[start : start + CHECKED_ROWS]
        finite = np.isfinite(part)
        if gaps:
            finite[:, :gaps] |= np.isnan(part[:, :gaps])
        if finite.all():
            continue
        at, *column = np.argwhere(~finite)[0].tolist()
        names = given if isinstance(given, tuple) else column_names(given)
        value, where = part[at, *column], f"row {row + start + at}"
        is_gap = bool(np.isnan(value))
        how = ON_THE_WAY * is_gap + FILL.format("" if is_gap else NO_INFINITY) if names else ""
        partly = is_gap and name == "y" and finite[at].any()
        if partly:
            how = "; where only some of a row are missing play a learner for each"
        elif name == "y" and not names and is_gap:
            how = "; okl.run(..., labels='optional') forecasts rows without a label"
        whole = np.flatnonzero(finite.reshape(len(part), -1).all(axis=1))[:1]
        if is_gap and not partly and not row + start and name in ("X", "y") and whole.any():
            # Series begin with gaps, and lags of them.
            how = ", or leave out the first {0} rows, X[{0}:], y[{0}:]".format(*whole) + how
        if column:
            bad = np.flatnonzero(~finite.all(axis=0)).tolist()
            bad.sort(key=column[0].__ne__)  # this one first
            first, *more = [f"column {j}{f' ({names[j]!r})' if names else ''}" for j in bad]
            where += f", {first}"
            where += f", and some in {cut(', '.join(more))}" if more else ""
        raise ValueError(f"{name} has {value} at {where}; remove or impute such values first{how}")


# ---- y ----


def as_values(values: Any, n: int, name: str, what: str = "number") -> np.ndarray:
    """Return numbers, one for each row of X, as a finite float64 array of shape (n,)."""
    array = as_floats(values, name)
    if array.shape != (n,):
        refuse_shape(array, n, values, name, what)
    refuse_not_finite(array, name)
    return array


def refuse_shape(array: np.ndarray, n: int, values: Any, name: str, what: str) -> None:
    """Raise ValueError for an array, made of the values that were given: it is not (n,)."""
    hint = ""
    if array.size == n and array.ndim > 1:
        names = column_names(values)
        hint = f"; use {name}[{names[0]!r}]" if names else f"; use np.ravel({name})"
    elif name == "y" and array.shape[:1] == (n,):
        hint = "; for several labels a row take okl.MultiOutput(learner) or a learner for each"
    fault = f"{name} must have shape ({n},), one {what} per row of X"
    raise ValueError(f"{fault}, but has {array.shape}{hint}")


def as_labels(y: Any, n: int, classes: bool = False) -> np.ndarray:
    """Return labels as a finite float64 array of shape (n,); ``classes`` asks for -1 and +1.

    False and True become -1 and +1.
    """
    if y is None:
        raise ValueError("labels are missing: pass y, one number for each row of X")
    array = as_values(y, n, "y", "label")
    given = y if isinstance(y, list | tuple) else np.asarray(y)
    are_bools = isinstance(given, np.ndarray) and given.dtype == bool
    if are_bools or n > 0 and all(isinstance(one, bool | np.bool_) for one in given):
        array = 2.0 * array - 1.0
    if classes:
        outside = np.abs(array) != 1.0
        if outside.any():
            row = int(np.argmax(outside))
            fault = f"y has {array[row]:g} at row {row}, but this loss takes labels -1 and +1"
            values = np.unique(array).tolist()
            cure = "several classes are for okl.OneVsRest(learner, classes=[...])"
            values = [0.0, 1.0] if {*values} <= {0.0, 1.0} else values
            if len(values) == 2:
                low, high = values
                cure = f"y = np.where(np.asarray(y) == {high!r}, 1, -1) makes them of {low!r} and "
                cure += f"{high!r}, of a file okl.stream(..., classes=({low!r}, {high!r})) does"
            raise ValueError(f"{fault}; {cure}; a regression takes a learner with loss='squared'")
    return make_dense(array)


class FirstLabels(NamedTuple):
    """The labels so far, as long as they may be two whole numbers that are meant as classes."""

    seen: int
    values: frozenset[float]

    def add(self, y: np.ndarray) -> "FirstLabels | None":
        """Return the labels with those of y; None if they are numbers, or after a warning."""
        values = self.values
        for part in (y[:FIRST_ROWS], y[FIRST_ROWS:PLAY_ROWS]):  # the head mostly tells
            values = values | {one for one in set(part.tolist()) if one == one}  # NaN: missing
            are_two = len(values) == 2 and all(one.is_integer() for one in values)
            if len(values) > 1 and not are_two or values == {-1.0, 1.0}:
                return None
        seen = self.seen + len(y)
        if not are_two or seen < FEWEST_LABELS:
            return FirstLabels(seen, values)
        low, high = sorted(values)
        warn(
            f"the labels are {low:g} and {high:g}, which this loss takes for numbers, a "
            "regression, so Run.mistake_rate is None: for two classes make them -1 and +1, "
            f"y = np.where(y == {high:g}, 1, -1), okl.stream(..., classes=({low:g}, {high:g})), "
            "or take okl.interop.OnlineClassifier, which takes any classes"
        )
        return None


NO_LABELS_YET: FirstLabels | None = FirstLabels(0, frozenset())


def cut_runs(there: np.ndarray) -> Iterator[slice]:
    """Yield runs of rows that all have a label, or all have none; there : (n,), n > 0."""
    ends = [0, *np.flatnonzero(np.diff(there)) + 1, len(there)]
    yield from map(slice, ends[:-1], ends[1:])


class Signs(np.ndarray):
    """Labels -1 and +1 that were made of two ``classes``, which 1 may be one of: not made again."""

    classes: Sequence[Any] = ()
    __array_priority__ = 1.0  # so that np.concatenate keeps the type

    def __array_finalize__(self, made_of: Any) -> None:
        self.classes = getattr(made_of, "classes", ())

    def __getitem__(self, key: Any) -> Any:
        return as_signs(super().__getitem__(key), self.classes)  # a single one too

    def __array_wrap__(self, array: np.ndarray, *_: Any) -> Any:
        return array[()]  # what is computed of them may be anything

    def __reduce__(self) -> tuple[Any, ...]:
        return as_signs, (np.asarray(self), self.classes)  # a pickle of NumPy drops the classes

    def decode(self) -> np.ndarray:
        """Return the classes, None for a missing one."""
        first, second = self.classes
        return np.where(find_labels(self), np.where(self > 0.0, second, first), NONE)


def as_signs(signs: Any, classes: Sequence[Any]) -> Signs:
    """Return labels -1 and +1 with the classes that they stand for."""
    labels = np.asarray(signs).view(Signs)
    labels.classes = classes
    return labels


def as_label_array(values: Any) -> np.ndarray:
    """Return labels of any kind, texts too, as an array; a missing or masked one becomes None."""
    if isinstance(values, Signs):
        return values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):  # pandas' have masks too
        return np.where(np.ma.getmaskarray(values), NONE, values.data)
    if hasattr(values, "isna") and not is_frame(values):  # a column of pandas
        if values.dtype == object or not isinstance(values.dtype, np.dtype):
            return values.to_numpy(dtype=object, na_value=None)
    try:
        array = np.asarray(values)
    except ValueError:  # ragged lists
        return np.asarray(None)
    if array.dtype.kind == "U" and isinstance(values, list | tuple):  # NaN became a text
        array = np.asarray(values, dtype=object)
    if array.dtype != object:
        return array
    missing = [is_na(one) for one in array.flat]
    return np.where(np.reshape(missing, array.shape), NONE, array)


def is_na(value: Any) -> bool:
    """Say whether a value is pandas.NA."""
    return type(value).__name__ == "NAType"


def is_gap(value: Any) -> bool:
    """Say whether a value is missing: None, NaN or pandas.NA."""
    return (
        value is None or is_na(value) or isinstance(value, float | np.floating) and value != value
    )


def find_labels(y: np.ndarray) -> np.ndarray:
    """Return which rows of y have a label that is neither None nor NaN, (n,)."""
    is_label = y == y
    if y.dtype == object:
        is_label &= np.not_equal(y, NONE).astype(bool)
    return is_label.any(axis=tuple(range(1, y.ndim)))


def refuse_rounded(labels: np.ndarray, name: str, row: int = 0) -> None:
    """Raise ValueError for classes that are floats so large that two integers may be one."""
    if labels.dtype.kind != "f":
        return
    large = np.isfinite(labels) & (np.abs(labels) >= 2.0 ** (np.finfo(labels.dtype).nmant + 1))
    if large.any():
        at = int(large.argmax())
        fault = f"{name} has the class {labels[at]:.17g} at row {row + at}, a {labels.dtype}"
        cure = "make texts of the integers before, by pandas.read_csv(path, dtype={...: str})"
        raise ValueError(f"{fault}: so large, different integers become one; {cure}")


def encode_labels(
    labels: np.ndarray, classes: Sequence[Any], name: str = "y", row: int = 0, hint: str = ""
) -> np.ndarray:
    """Return labels as a learner takes them, two classes as -1 and +1; ValueError for others.

    A missing one is NaN, or None among several classes. row : the number of the first.
    """
    refuse_rounded(labels, name, row)
    missing = ~find_labels(labels)
    is_class = np.any([labels == value for value in classes], axis=0) | missing
    if not is_class.all():
        at = int(np.argmin(is_class))
        fault = f"{name} has {labels.tolist()[at]!r} at row {row + at}"
        raise ValueError(f"{fault}, which is not one of the classes {list(classes)}{hint}")
    if len(classes) == 2:
        signs = np.where(missing, np.nan, np.where(labels == classes[1], 1.0, -1.0))
        return as_signs(signs, classes)
    if missing.any():
        return np.where(missing, NONE, labels)
    return labels.astype(np.array(classes).dtype)


def refuse_beyond(y: np.ndarray, bound: float, name: str, why: str) -> None:
    """Raise if a label is outside [-bound, bound]; ``name`` is the hyper-parameter of the bound."""
    outside = np.abs(y) > bound
    if outside.any():
        row = int(np.argmax(outside))
        fault = f"y has {float(y[row])!r} at row {row}, outside [-{name}, {name}]"
        cure = f"raise {name} or scale the labels"
        raise ValueError(f"{fault} with {name} = {bound!r}, {why}; {cure}")


# ---- anything to floats ----


def as_floats(values: Any, name: str) -> np.ndarray:
    """Return ``values`` as a float64 array, the same one if it already is."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if is_sparse(values):
        cure = f"{name}.toarray()" + ".ravel()" * (name == "y")
        raise ValueError(f"{name} is sparse, where dense numbers are needed: pass {cure}")
    if is_frame(values):
        return _frame_as_floats(values, name)
    if hasattr(values, "to_numpy"):
        return column_as_floats(values, name, name == "y")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; fill or drop them first")
    array = as_label_array(values)
    try:
        texts = array.dtype == object and any(isinstance(v, str | bytes) for v in array.flat)
        if texts or array.dtype.kind in "cSUMm" or not array.ndim and array.item() is None:
            raise TypeError
        with np.errstate(over="ignore"):  # a long double may become infinite, refused later
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        cure = _advise(values, name)
        if not cure and array.ndim == 1:
            return column_as_floats(array, name, name == "y")  # which says what they hold
        if not cure and array.ndim == 2:
            frame = name if name in "xy" else f"{name} (data = pandas.DataFrame({name}))"
            return _columns_as_floats(array.T, range(array.shape[1]), frame, array.shape)
        cure = cure or "encode text and drop ragged rows first"
        raise ValueError(f"{name} must hold real numbers in a rectangular array; {cure}") from None


def _advise(values: Any, name: str) -> str:
    """Return what to do about what is no array; "" where its contents must tell."""
    if values is None:
        return f"it is None: pass rows, of a series without inputs {name}=np.ones((n, 1))"
    if isinstance(values, str):
        source = f"frame, label={values!r}" if name == "y" else f"{values!r}, label=..."
        return f"it is one text; columns and files are for okl.run(learner, okl.stream({source}))"
    if isinstance(values, tuple) and len(values) == 2 and getattr(values[0], "ndim", 0) == 2:
        return f"it is a pair: pass its parts, {name}[0], {name}[1]"
    is_record = isinstance(values, np.ndarray) and values.dtype.names
    if is_record or isinstance(values[0] if isinstance(values, list) else values, dict):
        is_row = isinstance(values, dict) and not any(map(np.ndim, values.values()))
        return f"names become columns: pandas.DataFrame({f'[{name}]' if is_row else name})"
    if hasattr(values, "__next__"):
        return f"it is an iterator: pass np.array(list({name})), or pairs (X, y) to okl.run"
    return "" if hasattr(values, "__len__") else f"it is {repr_short(values)}"


def are_numbers(texts: Any) -> bool:
    """Say whether all values are texts of numbers, or some are, among numbers."""
    try:
        items = np.asarray(texts, dtype=object).ravel().tolist()
        return any(isinstance(one, str | bytes) for one in items) and bool(list(map(float, items)))
    except (TypeError, ValueError):
        return False


def find_times(values: Any) -> str | None:
    """Return "dates" or "durations" if the first value known is one."""
    first = next((one for one in as_label_array(values).flat if one is not None), None)
    if isinstance(first, date | np.datetime64):
        return "dates"
    return "durations" if isinstance(first, timedelta | np.timedelta64) else None


# ---- data frames and Arrow tables ----


def is_frame(values: Any) -> bool:
    """Say whether a value is a table with named columns: of pandas, polars, Arrow and the like.

    Only its type is looked at: columns are attributes of a frame of pandas, and may have any name.
    """
    return hasattr(type(values), "columns")


def loads_by(frame: Any) -> str | None:
    """Return the method that loads a lazy frame, of polars or Dask; None for frames in memory."""
    return next((name for name in ("collect", "compute") if hasattr(type(frame), name)), None)


def column_names(frame: Any) -> list[Any]:
    """Return the names of the columns of a frame, or of one row of it; [] for anything else.

    A row is a dict, or a series of pandas unless its names are 0, 1, ..., as of any list.
    """
    if is_frame(frame):
        if not hasattr(frame, "shape"):  # a lazy frame would have to compute them
            return []
        is_arrow = hasattr(type(frame), "column_names")
        return list(frame.column_names if is_arrow else frame.columns)
    if isinstance(frame, dict):
        return list(frame)
    names = list(frame.index) if hasattr(frame, "iloc") else []
    return [] if names == list(range(len(names))) else names


def _frame_as_floats(frame: Any, name: str) -> np.ndarray:
    """Return the numbers of a frame, (n, d), with NaN for missing values."""
    if (load := loads_by(frame)) or not hasattr(frame, "shape"):
        what = f"a stream; play it by okl.run(learner, {name}), without labels by labels='optional'"
        if load:
            what = f"a lazy frame; pass {name}.{load}()"
        raise ValueError(f"{name} is {what}")
    if hasattr(frame, "isna") and all(dtype == np.float64 for dtype in frame.dtypes):
        return frame.to_numpy(dtype=np.float64)
    columns = frame.get_columns() if hasattr(type(frame), "get_columns") else frame.columns
    if hasattr(frame, "items"):  # pandas, where columns may have equal names
        columns = [column for name, column in frame.items()]
    return _columns_as_floats(columns, column_names(frame), name, frame.shape)


def _columns_as_floats(
    columns: Iterable[Any], names: Sequence[Any], name: str, shape: tuple[int, ...]
) -> np.ndarray:
    out, odd = np.zeros(shape), {}
    for k, column in enumerate(columns):
        try:
            where = f"column {names[k]!r} of {name}"
            out[:, k] = column_as_floats(column, where, name == "y")
        except ValueError as error:
            odd[k] = str(error)
    if odd:
        advice = _advise_options(odd, names, bool(np.isnan(out).any()))
        fault, more = odd.pop(min(odd)), cut(", ".join(repr(names[k]) for k in odd))
        raise ValueError(fault + f"; nor are there numbers in {more}" * bool(more) + advice)
    return out


def _advise_options(faults: dict[int, str], names: Sequence[Any], has_gaps: bool) -> str:
    """Return the arguments for all faults of columns, and gaps; "" if one message says it."""
    named: dict[str, list[Any]] = {
        "dates": [names[k] for k, fault in faults.items() if fault.endswith(FOR_DATES)],
        "encode": [names[k] for k, fault in faults.items() if fault.endswith(ENCODE)],
    }
    given = [(name, some) for name, some in named.items() if some]
    python = [f"{name}={some!r}" for name, some in given] + ["impute='median'"] * has_gaps
    shell = [write_option(name, *some) for name, some in given] + ["--impute median"] * has_gaps
    several = 1 < sum(len(some) for name, some in given) + has_gaps <= MOST_ADVISED
    return f"; for all of this: {', '.join(python)} ({' '.join(shell)})" * several


def column_as_floats(column: Any, where: str, is_label: bool = False, first: int = 0) -> np.ndarray:
    """Return the numbers of a column, (n,), with NaN for missing values.

    first : the number of its first row.
    """
    dtype = str(column.type if hasattr(type(column), "type") else column.dtype).lower()
    if is_label and dtype == "category":  # its values, perhaps numbers
        column, dtype = column.astype(object), "object"
    texts = dtype == "object" and any(isinstance(one, str | bytes) for one in column)
    if not texts and dtype.startswith(("object", *NUMBERS)):
        try:
            if hasattr(column, "isna"):
                return column.to_numpy(dtype=np.float64, na_value=np.nan)
            return np.asarray(column).astype(np.float64, copy=False)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ValueError(f"{where} holds {_describe(column, dtype, is_label, first)}")


def _describe(column: Any, dtype: str, is_label: bool, first: int) -> str:
    advice = f"; {FOR_CLASSES}" if is_label else ENCODE
    values = np.asarray(column).tolist()
    values = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values]
    if (kind := find_times(column)) == "durations":
        numbers = f"np.asarray({'y' if is_label else 'column'}, 'm8[us]') / np.timedelta64(1, 's')"
        dtype, advice = f"durations (their numbers are {numbers})", ""
    elif kind:
        dtype, advice = kind, FOR_DATE_LABELS if is_label else FOR_DATES
    elif dtype.startswith("complex"):
        advice = "; take real numbers of them, such as np.real, np.imag or np.abs"
    # The first ones tell where most are texts; all are looked at where only a later one is.
    for part in (values[:FEW_ROWS], values[:LOOK_ROWS], values):
        texts = {row: one for row, one in enumerate(part) if isinstance(one, str) and one}
        odd = {row: one for row, one in texts.items() if not are_numbers([one])}
        if 2 * len(odd) >= len(part) or odd and len(part) > FEW_ROWS:
            break
    if not texts:
        return f"{dtype}, not real numbers{advice}"
    row, text = next(iter((odd or texts).items()))
    plain = [one.replace(".", "").replace(",", ".") for one in odd.values() if "," in one]
    has_points = any("." in one for one in odd.values())
    if not odd:
        advice = "; they are texts of numbers: pass numbers, by np.asarray(...).astype(float), of "
        advice += "a file okl.stream(pandas.read_parquet(FILE).astype({COLUMN: float}), label=...)"
    elif all(map(THOUSANDS.fullmatch, odd.values())):
        advice = BY_PANDAS.format("thousands=','")
        advice += "" if has_points else f"; where commas are decimal{BY_DECIMAL}"
    elif len(plain) == len(odd) and are_numbers(plain):
        advice = BY_PANDAS.format("decimal=',', thousands='.'") if has_points else f";{BY_DECIMAL}"
    elif 2 * (len(texts) + sum(isinstance(v, int | float) and v == v for v in part)) < len(part):
        advice = f", and nothing in most rows{advice}"
    elif 2 * len(odd) < len(part):
        advice = AMONG_NUMBERS
    return f"text, {repr_short(text)} in row {first + row}{advice}"


# ---- pairs (X, y), and blocks of rows for the compiled loops ----


def number_pairs(stream: Iterable[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the chunks of a stream that have rows, with their numbers; refuse all but pairs."""
    for i, chunk in enumerate(stream):
        if not (isinstance(chunk, tuple | list) and len(chunk) == 2) or np.isscalar(chunk[1]):
            raise ValueError(
                f"chunk {i} of the stream must be a pair (X, y) of rows and their labels, but is "
                f"{repr_short(chunk)}; pass such pairs, or two arrays: okl.run(learner, X, y)"
            )
        if count_rows(chunk[0]) != 0:
            yield i, chunk


def add_to_rows(first: int, text: str) -> str:
    """Return a message with ``first`` added to the numbers of rows."""
    return re.sub(r"(?<=(?:at|in) row )\d+", lambda row: str(first + int(row[0])), text)


def is_sparse(values: Any) -> bool:
    """Say whether a value is a sparse matrix or array of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(values))


def make_dense(X: Any) -> np.ndarray:
    """Return X as a dense, writable C-ordered array; others compile the loops again."""
    if is_sparse(X):
        return X.toarray()
    plain = X.flags.c_contiguous and X.flags.writeable and type(X) is np.ndarray
    return X if plain else np.array(X, order="C")


def count_rows(X: Any) -> int | None:
    """Return the number of rows, also of a list; None if that is unknown."""
    shape = getattr(X, "shape", None)
    return shape[0] if shape else len(X) if isinstance(X, list | tuple) else None


def count_block_rows(d: int, most: int) -> int:
    """Return how many rows of width d are in a block, at most ``most``."""
    return min(most, max(LEAST_ROWS, BLOCK_BYTES // (8 * d * LEAST_ROWS) * LEAST_ROWS))


def scale_columns(X: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Return X * scales, (n, d), as the metric of a kernel has it; None: X itself."""
    if scales is not None and X.shape[1] != len(scales):
        fault = f"X has {X.shape[1]} columns, but the kernel's metric has {len(scales)} scales"
        raise ValueError(f"{fault}; give okl.Metric one scale for each column")
    return X if scales is None else X * scales


def cut_blocks(X: Any, most: int, scales: Any = None) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of at most ``most`` rows, and these rows of X: views, or dense copies if sparse.

    X comes from ``as_rows``. Sparse rows are cut as dense ones, so that BLAS gives the same bits.
    """
    n, d = X.shape
    most = count_block_rows(d, most)
    for start in range(0, n, most):
        part = slice(start, min(start + most, n))
        rows = make_dense(X[part])
        yield part, rows if scales is None else scale_columns(rows, scales)
