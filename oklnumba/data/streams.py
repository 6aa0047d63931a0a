"""Files as pairs (X, y) for ``okl.run``, in blocks of equal size.

pyarrow.dataset reads Parquet, CSV and Arrow files ahead, in its threads; scikit-learn reads LIBSVM.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.core import checks, inputs
from oklnumba.core.schema import (
    IMPUTE,
    Schema,
    as_texts,
    by_text,
    find_parts,
    find_values,
    list_names,
)
from oklnumba.data.files import (
    FORMATS,
    RENAME,
    given_name,
    list_files,
    naming,
    open_dataset,
    reopen,
)

MOST_ROWS = 2**16  # of a block if ``batch`` is None
TYPED_ROWS = 2**19  # at least as many as in the first MB of a CSV, by which columns have types
NARROW = 64  # columns of which TYPED_ROWS may be in memory
NAMES, DROP = "a list of names", "drop (--drop, --id)"  # for messages
TEXTS = "string", "large_string", "dictionary"  # how Arrow's types of texts begin

Block = tuple[np.ndarray, np.ndarray]
# The file, the number of the first row in it, some rows of X, and their labels.
Pieces = Iterator[tuple[str, int, np.ndarray, np.ndarray]]


def stream(
    source: Any, *, label: str | int | None = None, columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] = (), encode: Sequence[str | int] = (),
    classes: Sequence[Any] | None = None, batch: int | None = None, format: str | None = None,
    header: bool = True, width: int | None = None, like: Any = None, delimiter: str | None = None,
    decimal: str | None = None, encoding: str | None = None, skip: int | None = None,
    zero_based: bool | None = None, impute: str | None = None, dates: Sequence[str | int] = (),
) -> Stream:  # fmt: skip
    """Return the rows of files, in their order, as pairs (X, y) for ``okl.run``.

    A few blocks are in memory at a time (of LIBSVM files all rows, as a sparse matrix). Each
    iteration starts from the beginning, so that a checkpoint can replay its past.

    Parameters
    ----------
    source : path, sequence of paths, frame, or pyarrow Dataset
        Parquet, CSV, Arrow IPC or LIBSVM files (text also as .gz or .bz2), patterns such as
        ``"*.csv"``, or folders of them, read in the order of their names; "-" is a CSV on stdin.
        Names of folders such as ``year=2021`` are a column. Frames of pandas, polars and pyarrow.
    label : str or int
        Column of the labels by name, or by place (0 is the first, -1 the last). LIBSVM files need
        none. A missing label is NaN (None among several classes).
    columns : sequence of str or int, optional
        Columns of X, in this order; only these are read. None: all but label, ``drop`` and index.
    encode : sequence of str or int
        Columns of texts or categories: after the others X has a column of 0 and 1 for each value in
        the first 100,000 rows, of the 100 most frequent ones. Other values are all 0.
    classes : sequence, optional
        Values of the label. Of two, such as (0, 1) or ("no", "yes"), the first becomes -1 and the
        second +1 (``OneVsRest`` takes them as they were); more stay as they are. None: labels are
        numbers, bools, or texts, whose classes are those of the first 100,000 rows, sorted.
    batch : int >= 1, optional
        Rows of a block (the last may have fewer); None: those of about 8 MB.
    format : {"parquet", "csv", "tsv", "ipc", "libsvm"}, optional
        None: the suffix decides.
    header, skip : bool and int, optional
        Of CSV files: whether the first line has names (else they are "f0", "f1", ...), and how many
        lines stand before it.
    width, zero_based : int >= 1 and bool, optional
        Number of columns of LIBSVM files (None: the largest index in them), and whether the first
        is 0 (None: if a file has a column 0).
    like : Learner, Run, Stream or Schema, optional
        Read the columns that it was taught, as it was taught them; the label may be absent. A
        column that it does not know is refused unless ``drop`` names it. Gaps to be filled are NaN.
    delimiter, decimal, encoding : str, optional
        Of CSV files: between two values, in a number, and of the text; ",", "." and "utf-8".
    impute : {"median", "last", "indicator"}, optional
        Fill a gap in a column of numbers by the median of its last 101 known values in rows learned
        before (or 0); by the last one; or by the median, with a column of 1 at gaps. None: refuse.
    dates : sequence of str or int
        Columns of dates, or of texts such as "2026-01-31T13:05:00Z". Each becomes numbers: days
        since 1970, weekday (0 is Monday), day of the year and, if one of the first 100,000 rows has
        a time, hour. Days and hours have fractions, zones become UTC.

    Returns
    -------
    Stream
        Iterable of pairs (X, y), X (rows, d) and y (rows,), with its ``columns`` and ``classes``.

    Examples
    --------
    >>> import os, tempfile
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "points.csv")
    ...     np.savetxt(path, np.column_stack([X[:, 0] > X[:, 1], X]), delimiter=",")
    ...     data = okl.stream(path, label=0, classes=(0, 1), header=False)
    ...     run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), data, record="none")
    >>> data.columns, run.rounds, run.mistake_rate < 0.05
    (('f1', 'f2'), 5000, True)
    """
    for option, count, least in (("batch", batch, 1), ("width", width, 1), ("skip", skip, 0)):
        if count is not None:
            checks.require_count(option, count, least)
    for option, word, words in (("format", format, FORMATS), ("impute", impute, IMPUTE)):
        if word is not None:
            checks.require_choice(option, word, words)
    if classes is not None:
        classes = checks.require_classes(classes)
    options = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "skip": skip}
    options |= {"zero_based": zero_based, "width": width}
    options["header"] = None if checks.require_flag("header", header) else False
    reading = {name: checks.as_plain(one) for name, one in options.items() if one is not None}
    out = "columns, encode, dates and impute"
    encode = checks.require_list("encode", encode, NAMES)
    dates = checks.require_list("dates", dates, NAMES)
    drop = checks.require_list(DROP, drop, NAMES)
    chosen = columns is not None or encode or dates or impute
    if like is not None and chosen:
        raise ValueError(f"like says how columns are read: leave out {out}")
    schema = Schema((), impute=impute) if like is None else getattr(like, "schema", like)
    checks.require(isinstance(schema, Schema), "like", like, "what has a schema, of named columns")
    reading, classes = schema.reading | reading, classes or schema.classes
    schema = replace(schema, reading=reading, classes=classes)
    if inputs.is_frame(source):
        load = inputs.loads_by(source)
        data, name = getattr(source, load)() if load else source, "a frame"
    elif hasattr(source, "get_fragments"):
        data, name = source, "a pyarrow Dataset"
    else:
        paths, kind = list_files(source, format)
        name = repr(given_name(str(paths[0]))) + f" and {len(paths) - 1} more" * (len(paths) > 1)
        if kind == "libsvm":
            if label is not None or drop or chosen:
                raise ValueError(f"{name} has no names of columns: leave out label, drop, {out}")
            return _load_libsvm(paths, name, batch, schema)
        data = open_dataset(source, paths, kind, reading)
    fresh = like is None
    schema = _find_schema(data, name, schema, fresh, label, columns, drop, encode, dates)
    return Stream(name, partial(_read, data, name), schema, batch, data, fresh)


@dataclass(eq=False, repr=False)
class Stream:
    """Pairs (X, y) of blocks of rows, any number of times; ``schema`` says what they mean."""

    _name: str
    _read: Callable[[Schema], Pieces]
    schema: Schema
    _batch: int | None = None
    _dataset: Any = None  # of pyarrow, or a frame
    _fills: bool = False  # gaps, where no learner will

    def __post_init__(self) -> None:
        self._read(self.schema)  # which refuses what the source does not have

    @property
    def classes(self) -> tuple | None:
        """Values of the label; None if labels are numbers."""
        return self.schema.classes

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of X; None for LIBSVM files."""
        return self.schema.columns or None

    def __repr__(self) -> str:
        return f"Stream({self._name}, {self.width} columns)"

    @property
    def width(self) -> int:
        """Number of columns of X."""
        return len(self.columns) if self.columns else self.schema.reading["width"]

    def like(self, schema: Schema) -> Stream:
        """Return the same rows, read by the schema of a learner."""
        here = self.schema
        if schema == here or bool(schema.columns) != bool(here.columns):  # LIBSVM has no names
            return self
        if here.impute not in (None, schema.impute):
            raise ValueError(f"leave impute out: the learner was taught impute={schema.impute!r}")
        label, classes = schema.label or here.label, schema.classes or here.classes
        ignored = *schema.ignored, *here.ignored  # such as those to drop
        schema = replace(schema, label=label, classes=classes, ignored=ignored)
        return replace(self, schema=schema)

    def count_rows(self) -> int | None:
        """Return the number of rows of Parquet files; None for others."""
        parquet = _format_of(self._dataset) == "parquet"  # which says it without reading
        return self._dataset.count_rows() if parquet else None

    def read_texts(self, column: str | int) -> Iterator[str | None]:
        """Yield the values of a column of files as they stand there; None for nulls."""
        (one,) = _find_columns([column], _list_columns(self._dataset), "id")
        parts = _scan(self._dataset, self._name, [], [one])
        columns = (part[one].cast("string") for where, row, part in parts)
        return (text for column in columns for text in column.to_pylist())

    def labels(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the file and the labels of some rows at a time, as they are there."""
        return ((where, y) for where, row, X, y in self._read(self.schema))

    def __iter__(self) -> Generator[Block, None, None]:
        """Yield blocks of equal size; gaps are filled by labelled rows before, or for a learner."""
        schema = self.schema
        for X, y in self.read_blocks():
            if self._fills:
                X, schema = schema.fill(X, inputs.find_labels(y))
            yield X, y

    def read_blocks(self) -> Generator[Block, None, None]:
        """Yield blocks of equal size, made of pieces of any size; gaps to be filled are NaN."""
        total, count, held, classes = 0, 0, [], self.classes
        for where, row, X, y in self._read(self.schema):
            inputs.refuse_not_finite(X, where, self.columns, row, self.schema.gaps)
            if classes is None:
                y = inputs.column_as_floats(y, f"the label of {where}", is_label=True, first=row)
            else:
                hint = "; name all in okl.stream(..., classes=[...])"
                y = inputs.encode_labels(y, classes, where, row, hint)
            total += len(y)
            rows = self._batch or inputs.count_block_rows(X.shape[1], MOST_ROWS)
            while len(y):
                taken = min(len(y), rows - count)
                held.append((X[:taken], y[:taken]))
                X, y, count = X[taken:], y[taken:], count + taken
                if count == rows:
                    yield _join(held)
                    count, held = 0, []
        if held:
            yield _join(held)
        if not total:
            raise ValueError(f"{self._name} has no rows")


def _format_of(dataset: Any) -> str:
    return getattr(getattr(dataset, "format", None), "default_extname", "")  # "" in memory


def _join(held: list[Block]) -> Block:
    X, y = zip(*held, strict=True)
    labels = np.concatenate(y)
    if isinstance(labels, inputs.Signs):
        labels.classes = y[0].classes  # np.concatenate drops them
    return np.concatenate(X, dtype=np.float64), labels


# ---- readers, which yield pieces ----


def _load_libsvm(paths: list[Path], name: str, batch: int | None, schema: Schema) -> Stream:
    load = checks.import_optional("sklearn.datasets", "LIBSVM files").load_svmlight_files
    with naming(", ".join(map(str, paths))):
        parts = load([str(path) for path in paths], zero_based=True)
    rows, labels = parts[::2], parts[1::2]
    has_zero, columns = any((X.indices == 0).any() for X in rows), rows[0].shape[1]
    from_zero = schema.reading.get("zero_based", has_zero)
    width = schema.reading.get("width", max(columns - (not from_zero), 1))

    def read(schema: Schema) -> Pieces:
        width, first = schema.reading["width"], int(not schema.reading["zero_based"])
        if columns - first > width or (first and has_zero):
            found = f"{name} has columns {int(not has_zero)} to {columns - 1}"
            raise ValueError(f"{found}, which do not fit width={width}, zero_based={not first}")
        more = (0, 0), (0, width + first - columns)
        return (
            (str(path), part.start, np.pad(block[:, first:], more), y[part])
            for path, X, y in zip(paths, rows, labels, strict=True)
            for part, block in inputs.cut_blocks(X, MOST_ROWS)
        )

    schema = replace(schema, reading={"zero_based": from_zero, "width": width})
    return Stream(name, read, schema, batch)


def _find_schema(
    data: Any, name: str, given: Schema, fresh: bool, label: Any, columns: Any, drop: Any,
    encode: Any, dates: Any,
) -> Schema:  # fmt: skip
    """Return what the rows of a source mean, from arguments and, if ``fresh``, the first rows."""
    names = _list_columns(data)
    by_text(names)  # which refuses two of one name
    if label is not None:
        (label,) = _find_columns([label], names, "label")
        given = replace(given, label=str(label))
    drop = _find_columns(drop, names, DROP)
    index = _find_index(getattr(data, "schema", None), names)
    if not fresh:
        ignored = {*given.ignored, *map(str, drop), *index} - {*given.needed}
        return replace(given, ignored=tuple(ignored))
    if label is None:
        more = "; files without labels are read like=MODEL, one that was taught names, not arrays"
        raise ValueError(f"name the label, label=... (--label), one of {list_names(names)}{more}")
    encode = _find_columns(encode, names, "encode")
    dates = _find_columns(dates, names, "dates")
    numbers = _leave_out(names, (label, *encode, *dates, *index))
    if columns is not None:
        numbers = _find_columns(columns, names, "columns")
    numbers = _leave_out(numbers, drop)
    every = [*numbers, *dates, *encode, label]
    if len(every) == 1 or len(set(every)) < len(every):
        fault = f"columns must be others than the label, each once, not {every[:-1]}"
        raise ValueError(f"{fault}; a series without inputs needs a column of ones, or of the hour")
    texts = _read_texts(data, name, [*encode, *dates]) if encode or dates else {}
    return replace(
        given,
        names=tuple(map(str, numbers)),
        categories={str(one): find_values(texts[one]) for one in encode},
        dates={str(one): find_parts(texts[one], one) for one in dates},
        classes=given.classes or _find_classes(data, name, label),
        ignored=tuple(map(str, _leave_out(names, every))),
    )


def _leave_out(names: Sequence[Any], some: Sequence[Any]) -> list[Any]:
    out = set(some)
    return [one for one in names if one not in out]


def _find_classes(data: Any, name: str, label: Any) -> tuple[Any, ...] | None:
    """Return the classes of labels that are bools or texts; None for numbers."""
    look = inputs.is_frame(data) or str(data.schema.field(label).type).startswith(TEXTS)
    labels = _as_labels(_read_first(data, name, [label], inputs.LOOK_ROWS * look)[label])
    there = list(map(checks.as_plain, labels[inputs.find_labels(labels)].tolist()))
    kinds = {*map(type, there)}
    if labels.dtype == bool or kinds == {bool}:
        return False, True
    if kinds != {str} or _format_of(data) == "csv" and inputs.are_numbers(there):
        return None  # of a CSV, a later one that is no number is refused
    what = "the texts of two classes or more in the first rows"
    return tuple(checks.require_different(f"column {label!r}", sorted({*there}), 2, what))


# ---- sources: frames, and files as a pyarrow Dataset ----


def _list_columns(data: Any) -> list[Any]:
    return inputs.column_names(data) if inputs.is_frame(data) else data.schema.names


def _find_index(schema: Any, names: list[Any]) -> list[str]:
    """Return the columns that are an index of pandas: it is an order, not an input."""
    metadata = getattr(schema, "pandas_metadata", None) or {}  # of pyarrow
    index = [one for one in metadata.get("index_columns", []) if isinstance(one, str)]
    return [*index, *(one for one in names[:1] if one == "")]  # of to_csv


def _slice(frame: Any, start: int, rows: int) -> Any:
    return frame.iloc[start : start + rows] if hasattr(frame, "iloc") else frame.slice(start, rows)


def _read_first(data: Any, name: str, columns: list[Any], rows: int) -> Any:
    """Return columns of the first rows, of a frame at most LOOK_ROWS."""
    if not inputs.is_frame(data):
        with naming(name):
            return data.scanner(columns=columns).head(rows)
    head = _slice(data, 0, min(rows, inputs.LOOK_ROWS))
    return head.select(columns) if hasattr(type(head), "select") else head[columns]


def _read_texts(data: Any, name: str, columns: list[Any]) -> dict[Any, Any]:
    """Return columns of the first rows as Arrow arrays of texts, by name."""
    arrow, rows, found = import_module("pyarrow"), 0, []
    with closing(_scan(data, name, [], columns)) as parts:
        while rows < inputs.LOOK_ROWS and (piece := next(parts, None)):
            where, first, part = piece
            with naming(where):
                found.append({one: as_texts(part[one], one) for one in columns})
            rows += part.shape[0]
    whole = {one: arrow.chunked_array([part[one] for part in found], "string") for one in columns}
    return {one: texts[: inputs.LOOK_ROWS] for one, texts in whole.items()}


def _read(data: Any, name: str, schema: Schema) -> Pieces:
    """Return the rows; refuse files with other columns, and columns that hold no numbers."""
    given, label, numbers = by_text(_list_columns(data)), schema.label, set[str]()
    if inputs.is_frame(data):
        schema.refuse_other_names(given, name)
    else:
        _refuse_other_files(data, name, schema)
        numbers = {t.name for t in data.schema if str(t.type).startswith(inputs.NUMBERS)}
    if schema.classes is None and label in given.keys() - numbers:
        labels = _read_first(data, name, [given[label]], TYPED_ROWS)[given[label]]
        inputs.column_as_floats(labels, f"the label {label!r} of {name}", is_label=True)
    if odd := [given[one] for one in schema.names if one not in numbers]:
        first = _read_first(data, name, odd, TYPED_ROWS)
        fault = None
        try:
            inputs.as_floats(first, name)  # which says what they hold
        except ValueError as error:
            fault = error
        if fault:
            if len(schema.names) <= NARROW:  # name gaps in the same message
                every = [given[one] for one in schema.names]
                inputs.as_floats(_read_first(data, name, every, TYPED_ROWS), name)
            raise fault
    return _make_rows(data, name, given, schema)


def _refuse_other_files(dataset: Any, name: str, schema: Schema) -> None:
    """Raise ValueError for a file that lacks a column, or has one that the first does not have."""
    keys_of, label = import_module("pyarrow.dataset").get_partition_keys, schema.label
    wanted, first = {*dataset.schema.names}, None
    for fragment in dataset.get_fragments():
        where, keys = _name_of(fragment, name), keys_of(fragment.partition_expression)
        with naming(where):
            fragment = reopen(fragment)
            names = fragment.physical_schema.names
        if twice := keys.keys() & {*names}:
            raise ValueError(f"{where} has a column {min(twice)!r}, as its folder has: {RENAME}")
        here = dict.fromkeys([*names, *keys])
        first = here if first is None else first
        index = {*_find_index(fragment.physical_schema, names)} - {*schema.needed}
        given = [one for one in here if one not in index and (one in wanted or one not in first)]
        schema.refuse_other_names(given, where)
        if (label in here) != (label in wanted):
            out = "" if label in here else "out"
            cure = "unlike the first file: read the files with labels and without in two streams"
            raise ValueError(f"{where} is with{out} the label {label!r}, {cure}")


def _name_of(fragment: Any, name: str) -> str:
    return given_name(getattr(fragment, "path", None) or name)


def _make_rows(data: Any, name: str, given: dict[str, Any], schema: Schema) -> Pieces:
    """Yield rows and labels, NaN if there are none; given : the names in the source, by ours."""
    plain = [given[one] for one in (*schema.names, schema.label) if one in given]
    for where, first, part in _scan(data, name, plain, schema.made):
        with naming(where):
            X = np.empty((part.shape[0], len(schema.names)))
            for j, one in enumerate(schema.names):
                told = f"column {one!r}"
                X[:, j] = inputs.column_as_floats(part[given[one]], told, first=first)
            X = schema.stack(X, {one: part[given[one]] for one in schema.made})
            y = np.full(len(X), np.nan)
            if schema.label in given:
                y = _as_labels(part[given[schema.label]])
        yield where, first, X, y


def _scan(
    data: Any, name: str, plain: Sequence[Any], texts: Sequence[Any]
) -> Generator[tuple[str, int, Any], None, None]:
    """Yield the file, the number of the first row in it, and some rows; ``texts`` as texts."""
    rows = inputs.count_block_rows(len(_list_columns(data)), MOST_ROWS)
    if inputs.is_frame(data):
        yield from ((name, k, _slice(data, k, rows)) for k in range(0, data.shape[0], rows))
        return
    arrow, kind = import_module("pyarrow"), _format_of(data)
    how: dict[str, Any] = {"columns": [*plain, *texts], "batch_size": rows, "batch_readahead": 2}
    if kind == "parquet":  # a file that is buffered ahead stays in memory until its end
        read = import_module("pyarrow.dataset").ParquetFragmentScanOptions
        how["fragment_scan_options"] = read(pre_buffer=False, use_buffered_stream=True)
    types = {one.name: one.type for one in data.schema}
    if kind == "csv":  # whole numbers may have fractions later, and 01 is a text
        floats = [one for one in plain if str(types[one]).startswith(("int", "double", "null"))]
        types |= dict.fromkeys(floats, arrow.float64()) | dict.fromkeys(texts, arrow.string())
    for fragment in data.get_fragments():
        where, first, here = _name_of(fragment, name), 0, types
        with naming(where, fragment):
            fragment = reopen(fragment)
            if kind not in ("csv", ""):  # other types may be in this file
                here = types | {t.name: t.type for t in fragment.physical_schema if t.name in types}
            for batch in fragment.scanner(schema=arrow.schema(here), **how).to_batches():
                if batch.num_rows:
                    yield where, first, batch
                    first += batch.num_rows


def _as_labels(column: Any) -> np.ndarray:
    """Return the labels of a column, None for those of texts that are missing, or empty."""
    labels = inputs.as_label_array(column)
    return np.where(labels == "", inputs.NONE, labels) if labels.dtype.kind in "OU" else labels


def _find_columns(given: Any, names: list[Any], what: str) -> list[Any]:
    """Return the columns that names, or places, mean; ``what`` is the argument for messages."""
    plain, found = {(isinstance(name, bool), name): name for name in names}, []
    for one in checks.require_list(what, given, NAMES):
        key = isinstance(one, bool), one  # True is neither a name 1 nor a place
        if isinstance(one, Hashable) and key in plain:
            found.append(plain[key])  # not NumPy's text
        elif isinstance(one, int | np.integer) and not key[0] and -len(names) <= one < len(names):
            found.append(names[one])
        else:
            hint = checks.suggest(one, map(str, names)) if isinstance(one, str) else ""
            fault, known = f"there is no column {checks.repr_short(one)}", list_names(names)
            raise ValueError(f"{what}: {fault}; {hint}the columns are {known}")
    return found
