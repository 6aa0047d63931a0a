"""Files as pairs (X, y) for ``okl.run``, in blocks of equal size.

pyarrow.dataset reads Parquet, CSV and Arrow IPC files, ahead in threads of its own; scikit-learn
reads LIBSVM files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.core import checks
from oklnumba.core.inputs import NUMBERS

SUFFIXES = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv", ".ipc": "ipc"}
SUFFIXES |= {".arrow": "ipc", ".feather": "ipc", ".libsvm": "libsvm", ".svm": "libsvm"}
SUFFIXES |= {".svmlight": "libsvm"}
FORMATS = ("parquet", "csv", "tsv", "ipc", "libsvm")
COMPRESSED = ".gz", ".bz2"
BLOCK_NUMBERS = 2**20  # of X in a block if ``batch`` is None: 8 MB
MOST_ROWS = 2**16
LOOK_ROWS = 100_000  # in which labels and encoded columns show their values
MOST_VALUES = 100  # of an encoded column: rarer ones share a column
TEXTS = "string", "large_string", "dictionary"

Block = tuple[np.ndarray, np.ndarray]
Pieces = Iterator[tuple[str, Any, np.ndarray]]  # the file, some rows of X, their labels


def stream(
    source: Any,
    *,
    label: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    classes: Sequence[Any] | None = None,
    batch: int | None = None,
    format: str | None = None,
    header: bool = True,
    width: int | None = None,
) -> Stream:
    """Return the rows of files, in their order, as pairs (X, y) for ``okl.run``.

    pyarrow reads ahead while the learner plays; a few blocks are in memory at a time (of LIBSVM
    files all rows, as a sparse matrix). Each iteration starts from the beginning, so that a
    checkpoint can replay its past.

    Parameters
    ----------
    source : path, sequence of paths, or pyarrow Dataset
        Parquet, CSV, Arrow IPC or LIBSVM files (text also as .gz or .bz2), or folders of them, read
        in the order of their names.
    label : str or int
        Column of the labels by name, or by place (0 is the first, -1 the last). LIBSVM files need
        none: their label comes first.
    columns : sequence of str or int, optional
        Columns of X, in this order; only these are read. None: all but the label and ``drop``.
    encode : sequence of str or int
        Columns of texts or categories: after the others X has a column of 0 and 1 for each value in
        the first 100,000 rows, by scikit-learn's OneHotEncoder. Other values later are all 0.
    classes : sequence, optional
        Values of the label. Two of them, such as (0, 1) or ("no", "yes"): the first becomes -1 and
        the second +1. More: labels are left unchanged, for ``OneVsRest``. None: labels are numbers,
        or texts, whose classes are those of the first 100,000 rows, sorted.
    batch : int >= 1, optional
        Rows of a block (the last has the rest); None: the power of two that makes about 8 MB.
    format : {"parquet", "csv", "tsv", "ipc", "libsvm"}, optional
        None: the suffix decides.
    header : bool
        Whether the first line of a CSV file has names; without, they are "f0", "f1", ...
    width : int >= 1, optional
        Number of columns of LIBSVM files; None: the largest index in them.

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
    batch = None if batch is None else checks.require_count("batch", batch, 1)
    width = None if width is None else checks.require_count("width", width, 1)
    if format is not None:
        checks.require_choice("format", format, FORMATS)
    if classes is not None:
        what = "two values of the label or more, each once, such as (0, 1)"
        classes = tuple(checks.require_different("classes", classes, 2, what))
    if hasattr(source, "get_fragments"):  # a pyarrow Dataset
        tables = _Tables(source, "a pyarrow Dataset", label, columns, classes, drop, encode)
        return Stream(tables.name, tables.read, batch, tables.classes, tables.columns)
    paths, kind = _list_files(source, format)
    name = repr(str(paths[0])) + (f" and {len(paths) - 1} more" if paths[1:] else "")
    if kind == "libsvm":
        if label is not None or columns is not None or drop or encode:
            raise ValueError(f"{name} has labels and no names of columns: leave out label, columns")
        load = _import("sklearn.datasets", "LIBSVM files").load_svmlight_files
        return Stream(name, partial(_read_libsvm, paths, width, load), batch, classes)
    tables = _Tables(_open(paths, kind, header), name, label, columns, classes, drop, encode)
    return Stream(name, tables.read, batch, tables.classes, tables.columns)


@dataclass(eq=False, repr=False)
class Stream:
    """Pairs (X, y) of blocks of rows, any number of times; ``columns``, ``classes``: if named."""

    _name: str
    _source: Callable[[], Pieces]
    _batch: int | None = None
    classes: tuple | None = None
    columns: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        width = "" if self.columns is None else f", {len(self.columns)} columns"
        return f"Stream({self._name}{width})"

    def count_rows(self) -> int | None:
        """Return the number of rows where the files say it, as Parquet does; else None."""
        dataset = getattr(getattr(self._source, "__self__", None), "_dataset", None)
        kind = getattr(getattr(dataset, "format", None), "default_extname", "")
        return dataset.count_rows() if kind == "parquet" else None

    def labels(self) -> Iterator[np.ndarray]:
        """Yield the labels of some rows at a time, as they are in the files."""
        return (labels for *_, labels in self._source())

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks of the size wanted, made of pieces of any size."""
        row, count, held = 0, 0, []
        for where, X, y in self._source():
            y = _encode(y, self.classes, where, row)
            row += len(y)
            rows = self._batch or _count_rows(X.shape[1])
            while len(y):
                taken = min(len(y), rows - count)
                held.append((X[:taken], y[:taken]))
                X, y, count = X[taken:], y[taken:], count + taken
                if count == rows:
                    yield _join(held)
                    count, held = 0, []
        if held:
            yield _join(held)
        if not row:
            raise ValueError(f"{self._name} has no rows")


def _join(held: list[Block]) -> Block:
    X, y = zip(*held, strict=True)
    return np.concatenate(X, dtype=np.float64), np.concatenate(y)


def _count_rows(d: int) -> int:
    return min(MOST_ROWS, 1 << max(0, (BLOCK_NUMBERS // d).bit_length() - 1))


def _encode(labels: np.ndarray, classes: tuple | None, where: str, row: int) -> np.ndarray:
    """Return the labels as a learner takes them."""
    if classes is None:
        return labels.astype(np.float64, copy=False)
    known = np.any([labels == value for value in classes], axis=0)
    if not known.all():
        at = int(np.argmin(known))
        raise ValueError(
            f"{where}: the label is {labels[at : at + 1].tolist()[0]!r} at row {row + at} of the "
            f"stream, not one of classes={classes!r}"
        )
    if len(classes) == 2:
        return np.where(labels == classes[1], 1.0, -1.0)
    return labels.astype(np.array(classes).dtype)


# ---- readers, which yield pieces ----


def _read_libsvm(paths: list[Path], width: int | None, load: Any) -> Pieces:
    try:
        parts = load([str(path) for path in paths], n_features=width)
    except ValueError as error:
        raise ValueError(f"{', '.join(map(str, paths))} with width={width}: {error}") from error
    for path, X, y in zip(paths, parts[::2], parts[1::2], strict=True):
        rows = _count_rows(X.shape[1])
        for start in range(0, len(y), rows):
            yield str(path), X[start : start + rows].toarray(), y[start : start + rows]


class _Tables:
    """The files of a pyarrow Dataset, read one by one, so that errors name the file."""

    def __init__(
        self, dataset: Any, name: str, label: Any, columns: Any, classes: tuple | None, drop: Any,
        encode: Any,
    ):  # fmt: skip
        names = dataset.schema.names
        if label is None:
            raise ValueError(f"name the column of the labels: label=..., {_list_names(names)}")
        self.label = _find_column(label, names, "label")
        encode = checks.require_list("encode", encode, "a list of names")
        self._encoded = [_find_column(one, names, "encode") for one in encode]
        wanted = [n for n in names if n not in (self.label, *self._encoded)]
        if columns is not None:
            columns = checks.require_list("columns", columns, "a list of one name or more")
            wanted = [_find_column(one, names, "columns") for one in columns]
        drop = checks.require_list("drop", drop, "a list of names")
        drop = [_find_column(one, names, "drop") for one in drop]
        self._numbers = [n for n in wanted if n not in drop]
        every = [*self._numbers, *self._encoded, self.label]
        if len(every) == 1 or len(set(every)) < len(every):
            raise ValueError(f"columns must be others than the label, each once, not {every[:-1]}")
        self.name, self._dataset = name, dataset
        if classes is None and str(dataset.schema.field(self.label).type).startswith(TEXTS):
            first = dataset.head(LOOK_ROWS, columns=[self.label]).column(0).to_pylist()
            texts = sorted({str(one) for one in first if one})  # a missing one is an error later
            what = "the texts of two classes or more in the first rows"
            classes = tuple(checks.require_different(f"column {self.label!r}", texts, 2, what))
        self.classes, self._schema = classes, self._make_schema(any_label=classes is not None)
        fields = {one: import_module("pyarrow.dataset").field(one) for one in every}
        encoded = {one: fields[one].cast("string") for one in self._encoded}
        self._fields, self.columns = fields | encoded, tuple(self._numbers)
        if encoded:
            one_hot = _import("sklearn.preprocessing", "encoded columns").OneHotEncoder
            options = {"handle_unknown": "ignore", "max_categories": MOST_VALUES}
            self._encoder = one_hot(sparse_output=False, **options)
            self._encoder.fit(_as_texts(dataset.head(LOOK_ROWS, columns=encoded), encoded))
            self.columns += tuple(self._encoder.get_feature_names_out(self._encoded).tolist())

    def _make_schema(self, any_label: bool) -> Any:
        """Return the schema with float64 columns; refuse those that hold no numbers."""
        schema, double = self._dataset.schema, import_module("pyarrow").float64()
        odd = []
        for name in self._numbers if any_label else (*self._numbers, self.label):
            kind = str(schema.field(name).type)
            if not kind.startswith(NUMBERS):
                odd.append(f"column {name!r} holds {kind}")
            elif kind != "bool":  # Arrow files would not cast it
                place = schema.get_field_index(name)
                schema = schema.set(place, schema.field(name).with_type(double))
        if odd:
            raise ValueError(
                f"{', '.join(odd)}, no numbers; drop=[...] (--drop A,B) leaves columns out, "
                "encode=[...] (--encode A,B) takes texts, classes=[...] names those of a label"
            )
        return schema

    def read(self) -> Pieces:
        """Yield batches of rows; an error names the file."""
        names, row = [*self._numbers, self.label], 0
        options: dict[str, Any] = {"batch_size": MOST_ROWS, "batch_readahead": 2}
        arrow = import_module("pyarrow.dataset")
        for fragment in self._dataset.get_fragments():
            where = getattr(fragment, "path", None) or self.name
            if isinstance(fragment, arrow.ParquetFileFragment):
                # A file that is buffered ahead stays in memory until it has been read to its end.
                options["fragment_scan_options"] = arrow.ParquetFragmentScanOptions(
                    pre_buffer=False, use_buffered_stream=True
                )
            try:
                scanner = fragment.scanner(schema=self._schema, columns=self._fields, **options)
                for batch in scanner.to_batches():
                    *inputs, labels = _as_arrays(batch, names, row)
                    labels = labels.astype(str) if labels.dtype == object else labels
                    if batch.num_rows:
                        if self._encoded:
                            inputs.append(self._encoder.transform(_as_texts(batch, self._encoded)))
                        yield where, np.column_stack(inputs), labels
                    row += batch.num_rows
            except (OSError, ValueError) as error:  # nearly all errors of pyarrow are ValueErrors
                raise ValueError(f"{where}: {error}") from error


def _as_arrays(batch: Any, names: list[str], row: int) -> list[np.ndarray]:
    """Return columns of a batch whose first row is ``row`` of the stream."""
    gaps = [name for name in names if batch.column(name).null_count]
    if gaps:
        row += int(np.argmax(batch.column(gaps[0]).is_null().to_numpy(zero_copy_only=False)))
        what = f"column {gaps[0]!r} has no value at row {row} of the stream"
        what += f", {', '.join(map(repr, gaps[1:]))} none soon after" if gaps[1:] else ""
        raise ValueError(f"{what}; drop or impute")
    return [batch.column(name).to_numpy(zero_copy_only=False) for name in names]


def _as_texts(table: Any, names: Iterable[str]) -> np.ndarray:
    """Return columns of texts, None for missing ones, as objects, (n, columns)."""
    return np.array([table.column(name).to_pylist() for name in names], dtype=object).T


# ---- files and columns ----


def _import(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0].replace("sklearn", "scikit-learn")
        raise ImportError(f"{what} need {package}: pip install {package}") from error


def _list_files(source: Any, format: str | None) -> tuple[list[Path], str]:
    """Return the files of a source in order, and their format."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    named = isinstance(given, Sequence) and all(isinstance(one, str | os.PathLike) for one in given)
    what = "a file, a folder, a list of files or a pyarrow Dataset"
    checks.require(named and len(given) > 0, "source", source, what)
    paths: list[Path] = []
    for one in map(Path, given):
        if not one.exists():
            raise FileNotFoundError(f"{one}: there is no such file or folder")
        inside = [p for p in sorted(one.rglob("*")) if p.is_file() and p.name[0] not in "._"]
        paths += inside if one.is_dir() else [one]
    if not paths:
        raise ValueError(f"{given[0]} has no files")
    kinds = set()
    for path in paths:
        suffix = path.suffix if path.suffix not in COMPRESSED else path.with_suffix("").suffix
        kinds.add(format or SUFFIXES.get(suffix.lower()))
    if None in kinds or len(kinds) > 1:
        raise ValueError(
            f"{paths[0]} and others: the suffixes do not name one format; pass format=, "
            f"one of {', '.join(FORMATS)}"
        )
    return paths, kinds.pop()


def _open(paths: list[Path], kind: str, header: bool) -> Any:
    """Return the pyarrow Dataset of some files."""
    arrow = _import("pyarrow.dataset", "Parquet, CSV and Arrow files")
    layout: Any = kind
    if kind in ("csv", "tsv"):
        csv = _import("pyarrow.csv", "CSV files")
        layout = arrow.CsvFileFormat(
            parse_options=csv.ParseOptions(delimiter="," if kind == "csv" else "\t"),
            read_options=csv.ReadOptions(autogenerate_column_names=not header),
        )
    try:
        dataset = arrow.dataset([str(path) for path in paths], format=layout)
    except (OSError, ValueError) as error:
        raise ValueError(f"{paths[0]} cannot be read as {kind}: {error}") from error
    names = dataset.schema.names
    if layout is not kind and header and all(re.match(r"[-+.]?\d", name) for name in names):
        raise ValueError(
            f"{paths[0]}: the first line holds numbers ({', '.join(names[:4])}, ...), not names; "
            "pass header=False, and label by place, such as label=0"
        )
    return dataset


def _find_column(one: Any, names: list[str], what: str) -> str:
    """Return the name of a column given by its name or its place."""
    if isinstance(one, int | np.integer) and -len(names) <= one < len(names):
        return names[one]
    if names.count(one) != 1:
        hint = checks.suggest(str(one), set(names) - {one})
        count = names.count(one) or "no"
        raise ValueError(f"{what}: there is {count} column {one!r}; {hint}{_list_names(names)}")
    return one


def _list_names(names: list[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > 12 else ""
    return f"the columns are {', '.join(map(repr, names[:12]))}{more}"
