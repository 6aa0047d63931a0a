"""Files larger than memory as pairs (X, y) for ``okl.run``, read ahead by a thread.

Parquet, CSV and Arrow IPC files are read by pyarrow.dataset, LIBSVM files by scikit-learn; what is
here chooses columns, makes blocks of one size and says where something was wrong.
"""

from __future__ import annotations

import bz2
import copy
import difflib
import gzip
import io
import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.core import checks
from oklnumba.data import datasets

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}
FORMATS = ("parquet", "csv", "tsv", "ipc", "libsvm")
OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}  # as pyarrow does by itself
SEPARATORS = ",;\t|"  # of columns, somewhere
BLOCK_NUMBERS = 2**20  # of X in a block, where ``batch`` does not say it: 8 MB
MOST_ROWS = 2**16
AHEAD = 2  # blocks that the thread reads ahead
PIECE_BYTES = 2**22  # of a LIBSVM file read at once
SHOWN = 12  # names in a message

Block = tuple[np.ndarray, np.ndarray]


def stream(
    source: Any,
    *,
    label: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    classes: Sequence[Any] | None = None,
    batch: int | None = None,
    format: str | None = None,
    header: bool = True,
    width: int | None = None,
) -> Stream:
    """Return the rows of files, in their order, as pairs (X, y) for ``okl.run``.

    A thread reads ahead while the learner plays, and no more than a few blocks are in memory. Each
    iteration starts anew, so that a checkpoint can replay its past.

    Parameters
    ----------
    source : path, sequence of paths, pyarrow Dataset, name, or iterable of pairs (X, y)
        Files, or folders whose files are read in the order of their names: Parquet, CSV, Arrow IPC,
        LIBSVM; text also as .gz or .bz2. A name of ``datasets.names()``,
        such as "higgs", where no file is called so: that set as ``datasets.load(name, scale=None)``
        has it, labels too. Of an iterable of pairs only the reading ahead is new.
    label : str or int
        Column of the labels by name, or by place (0 is the first, -1 the last). LIBSVM files have
        the label first, and need none.
    columns : sequence of str or int, optional
        Columns of X, in this order; only these are read. None: all but the label.
    classes : sequence, optional
        Values of the label. Two of them: the first becomes -1 and the second +1, such as (0, 1) or
        ("no", "yes"). More: labels are handed on as they are, for ``OneVsRest``. None: labels are
        numbers, and stay what they are.
    batch : int >= 1, optional
        Rows of a block (the last has the rest); None: the power of two that makes about 8 MB.
    format : {"parquet", "csv", "tsv", "ipc", "libsvm"}, optional
        None: as the suffix says.
    header : bool
        Whether the first line of a CSV file has names; without, they are "f0", "f1", ...
    width : int >= 1, optional
        Number of columns of a LIBSVM file; None: the file is read once more, before, to find it.

    Returns
    -------
    Stream
        Iterable of pairs (X, y): X of shape (rows, d), C-contiguous float64, and y of shape
        (rows,). ``columns`` has the names of the columns of X.

    Raises
    ------
    ValueError
        If an argument is not valid, a file has no such column, a column holds no numbers, or a file
        differs from the first; while reading with the name of the file.
    FileNotFoundError
        If there is no such file.
    ImportError
        Without pyarrow, or scikit-learn for LIBSVM: ``pip install "oklnumba[stream]"``.

    Examples
    --------
    >>> import numpy as np, oklnumba as okl, os, tempfile
    >>> X = np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "points.csv")
    ...     np.savetxt(path, np.column_stack([X[:, 0] > X[:, 1], X]), delimiter=",")
    ...     data = okl.stream(path, label=0, classes=(0, 1), header=False)
    ...     run = okl.run(okl.PKAWV(okl.TaylorFeatures(2)), data, record="none")
    >>> data.columns, run.rounds, run.mistake_rate < 0.05
    (('f1', 'f2'), 5000, True)
    """
    if batch is not None:
        batch = checks.require_count("batch", batch, 1)
    if width is not None:
        width = checks.require_count("width", width, 1)
    if classes is not None:
        classes = _checked_classes(classes)
    if format is not None:
        checks.require_choice("format", format, FORMATS)
    header = checks.require_flag("header", header)
    if _is_pairs(source):
        return Stream(_Pairs(source), batch, classes)
    reader: Any
    if _is_dataset(source):
        reader = _Tables(source, "a pyarrow Dataset", label, columns, classes is not None)
        return Stream(reader, batch, classes)
    if isinstance(source, str) and source in datasets.names() and not Path(source).exists():
        if label is not None or columns is not None or classes is not None:
            raise ValueError(f"{source} is a named set, with labels: drop label, columns, classes")
        return Stream(_Named(source), batch, None)
    paths, kind = _files(source, format)
    if kind == "libsvm":
        if label is not None or columns is not None:
            raise ValueError("LIBSVM files have the label first and no names: drop label, columns")
        reader = _Libsvm(paths, width)
    else:
        dataset = _dataset(paths, kind, header)
        reader = _Tables(dataset, _shown(source), label, columns, classes is not None)
    return Stream(reader, batch, classes)


class Stream:
    """Pairs (X, y) of blocks of rows, as ``okl.stream`` returns them; each iteration starts anew.

    Attributes
    ----------
    columns : tuple of str, or None
        Names of the columns of X, where they have names.
    classes : tuple, or None
        As given.
    """

    def __init__(self, reader: Any, batch: int | None, classes: tuple | None):
        self._reader = reader
        self._batch = batch
        self.classes = classes
        self.columns: tuple[str, ...] | None = reader.columns

    def __iter__(self) -> Iterator[Block]:
        return ahead(self._blocks())

    def labels(self) -> Iterator[np.ndarray]:
        """Yield the labels as the files have them, without the other columns where that is less."""
        reader = copy.copy(self._reader)
        reader.columns = ()
        for *_, labels in reader.pieces():
            yield labels

    def __repr__(self) -> str:
        width = "" if self.columns is None else f", {len(self.columns)} columns"
        label = getattr(self._reader, "label", None)
        return f"Stream({self._reader.name}{width}{'' if label is None else f', label {label!r}'})"

    def _blocks(self) -> Generator[Block, None, None]:
        """Yield blocks of the size wanted, made of whatever pieces the reader has."""
        row, pieces = 0, self._reader.pieces()
        if isinstance(self._reader, _Pairs):
            yield from pieces
            return
        rows, filled, X, y = 0, 0, np.empty((0, 0)), np.empty(0)
        for where, fill, d, labels in pieces:
            labels = self._labels(labels, where, row)
            row += len(labels)
            start = 0
            while start < len(labels):
                if filled == rows:
                    rows, filled = self._rows(d), 0
                    X, y = np.empty((rows, d)), np.empty(rows, dtype=labels.dtype)
                stop = min(len(labels), start + rows - filled)
                fill(X[filled : filled + stop - start], start, stop)
                y[filled : filled + stop - start] = labels[start:stop]
                filled, start = filled + stop - start, stop
                if filled == rows:
                    yield X, y
        if filled < rows:
            yield X[:filled], y[:filled]
        if not row:
            raise ValueError(f"{self._reader.name} has no rows")

    def _rows(self, d: int) -> int:
        if self._batch is not None:
            return int(self._batch)
        return min(MOST_ROWS, 1 << max(0, (BLOCK_NUMBERS // d).bit_length() - 1))

    def _labels(self, labels: np.ndarray, where: str, row: int) -> np.ndarray:
        """Return the labels as a learner takes them."""
        if self.classes is None:
            return labels
        known = np.zeros(len(labels), dtype=bool)
        for value in self.classes:
            known |= labels == value
        if not known.all():
            at = int(np.argmin(known))
            found = labels[at : at + 1].tolist()[0]
            raise ValueError(
                f"{where}: the label is {found!r} at row {row + at} of the stream, which is "
                f"not one of classes={self.classes!r}"
            )
        if len(self.classes) == 2:
            return np.where(labels == self.classes[1], 1.0, -1.0)
        return labels.astype(np.array(self.classes).dtype)  # texts of any piece fit into a block


def ahead(blocks: Generator[Any, None, None]) -> Iterator[Any]:
    """Yield what a generator yields, made by a thread while the last block is used.

    Errors of the generator are raised here. However this ends, the thread ends with it.
    """
    done = object()
    pool = ThreadPoolExecutor(1, thread_name_prefix="oklnumba-stream")
    try:
        waiting = deque(pool.submit(next, blocks, done) for _ in range(AHEAD))
        while (block := waiting.popleft().result()) is not done:
            waiting.append(pool.submit(next, blocks, done))
            yield block
    finally:
        pool.shutdown(cancel_futures=True)
        blocks.close()


# ---- what is read ----


class _Pairs:
    """Pairs (X, y) of an iterable, as they are."""

    columns = None

    def __init__(self, source: Iterable):
        self.source, self.name = source, f"pairs of a {type(source).__name__}"

    def pieces(self) -> Iterator[Any]:
        yield from self.source


class _Named:
    """A named data set, whose file is checked when its reading begins."""

    columns = None

    def __init__(self, name: str):
        self.name = repr(name)
        self._set = name
        if not datasets.found(name):
            next(datasets.pieces(name))  # downloads it

    def pieces(self) -> Iterator[tuple[str, Any, int, np.ndarray]]:
        for X, y in datasets.pieces(self._set):
            yield self.name, _row_filler(X), X.shape[1], y.astype(np.float64)


class _Tables:
    """Record batches of a pyarrow Dataset, file by file, so that errors name the file."""

    def __init__(self, dataset: Any, name: str, label: Any, columns: Any, any_label: bool):
        self.name = name
        names = dataset.schema.names
        self._first = names
        if label is None:
            raise ValueError(f"name the column of the labels: label=..., {_some(names)}")
        self.label = _column(label, names, "label")
        wanted = [n for n in names if n != self.label] if columns is None else columns
        if isinstance(wanted, str) or not len(wanted):
            raise ValueError(f"columns must be one name or more in a sequence, but is {wanted!r}")
        self.columns = tuple(_column(one, names, "columns") for one in wanted)
        if self.label in self.columns:
            raise ValueError(f"the label {self.label!r} is among columns; drop it there")
        twice = {one for one in self.columns if self.columns.count(one) > 1}
        if twice:
            raise ValueError(f"columns: {min(twice)!r} is named twice; name each column once")
        self._all = columns is None
        self._any_label = any_label
        self._dataset = dataset
        self._schema = _numbers_of(dataset.schema, self.columns, self.label, any_label)

    def pieces(self) -> Iterator[tuple[str, Any, int, np.ndarray]]:
        columns, row = [*self.columns, self.label], 0
        for fragment in self._dataset.get_fragments():
            where = getattr(fragment, "path", None) or self.name
            try:
                self._refuse_other_columns(fragment, where)
                scanner = fragment.scanner(
                    schema=self._schema, columns=columns, **_scan_options(fragment)
                )
                for batch in scanner.to_batches():
                    if batch.num_rows:
                        arrays = [_values(batch, name, where, row) for name in columns]
                        labels = self._labels(arrays.pop())
                        yield where, _filler(arrays), len(arrays), labels
                        row += len(labels)
            except (OSError, ValueError) as error:  # pyarrow's are ValueErrors, in the main
                if str(error).startswith(where):
                    raise
                raise ValueError(f"{where}: {error}") from error

    def _refuse_other_columns(self, fragment: Any, where: str) -> None:
        """Raise where a file has not the columns of the first one."""
        if not hasattr(fragment, "path"):
            return
        names = set(fragment.physical_schema.names) | _partition_keys(fragment)
        missing = [n for n in (*self.columns, self.label) if n not in names]
        more = sorted(names - set(self._first)) if self._all else []
        if missing or more:
            has = f"has no column {missing[0]!r}" if missing else f"has a column {more[0]!r} more"
            raise ValueError(
                f"{where} {has}, unlike the first file; make all files alike"
                + ("" if missing else ", or name the columns to read: columns=[...]")
            )

    def _labels(self, labels: np.ndarray) -> np.ndarray:
        if self._any_label:  # as it is, for classes to map
            return labels.astype(str) if labels.dtype == object else labels
        return labels.astype(np.float64)


class _Libsvm:
    """LIBSVM files in pieces of some megabytes, by scikit-learn's reader."""

    columns = None

    def __init__(self, paths: list[Path], width: int | None):
        self._paths, self.name = paths, _shown(paths)
        self._width, self._zero_based = width, False
        try:
            from sklearn.datasets import load_svmlight_file
        except ImportError as error:
            raise ImportError(_needs("scikit-learn", "LIBSVM files")) from error
        self._load = load_svmlight_file

    def pieces(self) -> Iterator[tuple[str, Any, int, np.ndarray]]:
        if self._width is None:
            self._find_width()
        for path in self._paths:
            for X, y in self._parts(path, self._width, self._zero_based):
                yield str(path), _sparse_filler(X), X.shape[1], y

    def _find_width(self) -> None:
        """Find the largest place of a column, and whether places count from 0."""
        low, high = 1, 0
        for path in self._paths:
            for X, _ in self._parts(path, 2**31 - 1, True):
                if len(X.indices):
                    low, high = min(low, int(X.indices.min())), max(high, int(X.indices.max()))
        self._zero_based, self._width = low == 0, max(1, high + (low == 0))

    def _parts(self, path: Path, width: int | None, zero_based: bool) -> Iterator[tuple[Any, Any]]:
        with OPEN.get(path.suffix, open)(path, "rb") as file:
            while lines := file.read(PIECE_BYTES) + file.readline():
                try:
                    # Not its own offset and length: with these a long line would be read twice.
                    X, y = self._load(io.BytesIO(lines), n_features=width, zero_based=zero_based)
                except ValueError as error:
                    hint = "" if self._width is None else f" (width={self._width})"
                    if "index 0" in str(error):
                        hint = " Its columns count from 0: leave width out, then this is seen"
                    raise ValueError(f"{path}: {error}{hint}") from error
                yield X, y


def _values(batch: Any, name: str, where: str, row: int) -> np.ndarray:
    """Return a column of a record batch, the first row of which is ``row`` of the stream."""
    array = batch.column(name)
    if array.null_count:
        row += int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(
            f"{where}: column {name!r} has no value at row {row} of the stream; drop or impute "
            "such rows first"
        )
    return array.to_numpy(zero_copy_only=False)


def _filler(arrays: list[np.ndarray]) -> Any:
    def fill(out: np.ndarray, start: int, stop: int) -> None:
        for k, array in enumerate(arrays):
            out[:, k] = array[start:stop]

    return fill


def _row_filler(X: np.ndarray) -> Any:
    def fill(out: np.ndarray, start: int, stop: int) -> None:
        out[:] = X[start:stop]

    return fill


def _sparse_filler(X: Any) -> Any:
    def fill(out: np.ndarray, start: int, stop: int) -> None:
        out[:] = 0.0
        X[start:stop].toarray(out=out)

    return fill


# ---- files, columns, classes ----


def _is_pairs(source: Any) -> bool:
    if isinstance(source, str | os.PathLike) or _is_dataset(source):
        return False
    if isinstance(source, Sequence):
        return bool(source) and isinstance(source[0], tuple)
    return isinstance(source, Iterable)


def _is_dataset(source: Any) -> bool:
    return hasattr(source, "get_fragments") and hasattr(source, "schema")


def _files(source: Any, format: str | None) -> tuple[list[Path], str]:
    """Return the files of a source in order, and what they are."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    named = isinstance(given, Sequence) and all(isinstance(one, str | os.PathLike) for one in given)
    if not named or not given:
        raise ValueError(
            "source must be a file, a folder, a pyarrow Dataset or pairs (X, y), "
            f"but is {checks.shown(source)}"
        )
    paths: list[Path] = []
    for one in map(Path, given):
        if not one.exists():
            raise FileNotFoundError(f"{one}: there is no such file or folder")
        if one.is_dir():
            inside = [p for p in sorted(one.rglob("*")) if p.is_file() and p.name[0] not in "._"]
            if not inside:
                raise ValueError(f"{one} has no files")
            paths += inside
        else:
            paths.append(one)
    kinds = {path: format or _kind(path) for path in paths}
    if len(set(kinds.values())) > 1:
        a, b = next((p, q) for p in paths for q in paths if kinds[p] != kinds[q])
        raise ValueError(f"{a} and {b} are of two formats; stream them one after the other")
    return paths, kinds[paths[0]]


def _kind(path: Path) -> str:
    suffix = path.suffix if path.suffix not in OPEN else path.with_suffix("").suffix
    if suffix.lower() not in SUFFIXES:
        raise ValueError(
            f"{path}: its suffix does not say what it holds; pass format=, "
            f"one of {', '.join(FORMATS)}"
        )
    return SUFFIXES[suffix.lower()]


def _dataset(paths: list[Path], kind: str, header: bool) -> Any:
    """Return the pyarrow Dataset of some files."""
    try:
        import pyarrow.csv
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError(_needs("pyarrow", "Parquet, CSV and Arrow files")) from error
    layout: Any = kind
    if kind in ("csv", "tsv"):
        layout = pyarrow.dataset.CsvFileFormat(
            parse_options=pyarrow.csv.ParseOptions(delimiter="," if kind == "csv" else "\t"),
            read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=not header),
        )
    try:
        dataset = pyarrow.dataset.dataset([str(path) for path in paths], format=layout)
    except (OSError, ValueError) as error:
        raise ValueError(f"{_shown(paths)} cannot be read as {kind}: {error}") from error
    names = dataset.schema.names
    if kind in ("csv", "tsv") and header and all(map(_is_number, names)):
        raise ValueError(
            f"{paths[0]}: the first line holds numbers ({', '.join(names[:4])}, ...), not names; "
            "pass header=False, and label by place, such as label=0"
        )
    if kind in ("csv", "tsv") and len(names) == 1 and set(SEPARATORS) & set(names[0]):
        raise ValueError(
            f"{paths[0]}: its first line, {names[0][:60]!r}, is one column where {kind} is split "
            f"at {'commas' if kind == 'csv' else 'tabs'}; pass format= 'csv' or 'tsv', or for "
            "other separators a pyarrow.dataset.dataset of the file"
        )
    return dataset


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers_of(schema: Any, columns: tuple[str, ...], label: str, any_label: bool) -> Any:
    """Return the schema with all columns that are read as float64; refuse what is no number."""
    import pyarrow

    types = pyarrow.types
    for name in (*columns, label):
        kind = schema.field(name).type
        numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        numeric = numeric or types.is_null(kind)  # a CSV file without a row
        if name == label:
            if any_label:
                continue
            if not numeric:
                raise ValueError(
                    f"the label {name!r} holds {kind}, no numbers: say which values are -1 and "
                    f"+1, such as classes={_example(kind)}"
                )
        elif not (numeric or types.is_boolean(kind)):
            raise ValueError(
                f"column {name!r} holds {kind}, no numbers; encode it first, or leave it out: "
                "columns=[...]"
            )
        place = schema.get_field_index(name)
        if not types.is_boolean(kind):
            schema = schema.set(place, schema.field(name).with_type(pyarrow.float64()))
    return schema


def _example(kind: Any) -> str:
    return "(False, True)" if str(kind) == "bool" else "('no', 'yes')"


def _scan_options(fragment: Any) -> dict[str, Any]:
    """Return options with which reading takes little memory."""
    import pyarrow.dataset

    options = {"batch_size": MOST_ROWS, "batch_readahead": 2, "fragment_readahead": 1}
    if isinstance(fragment, pyarrow.dataset.ParquetFileFragment):
        # A file that is buffered ahead stays in memory until it has been read to its end.
        parquet = pyarrow.dataset.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        )
        options["fragment_scan_options"] = parquet
    return options


def _partition_keys(fragment: Any) -> set[str]:
    import pyarrow.dataset

    return set(pyarrow.dataset.get_partition_keys(fragment.partition_expression))


def _column(one: Any, names: list[str], what: str) -> str:
    """Return the name of a column that is named, or meant by its place."""
    if isinstance(one, int | np.integer) and not isinstance(one, bool):
        if not -len(names) <= one < len(names):
            raise ValueError(f"{what} has the place {one}, but there are {len(names)} columns")
        return names[one]
    if one not in names:
        near = difflib.get_close_matches(str(one), names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"{what}: there is no column {one!r}; {hint}{_some(names)}")
    if names.count(one) > 1:
        raise ValueError(f"{what}: there are {names.count(one)} columns {one!r}; rename them")
    return one


def _some(names: list[str]) -> str:
    more = f", ... ({len(names)} in all)" if len(names) > SHOWN else ""
    return f"the columns are {', '.join(map(repr, names[:SHOWN]))}{more}"


def _checked_classes(classes: Any) -> tuple:
    what = "two values of the label or more, each once, such as (0, 1)"
    return tuple(checks.require_different("classes", classes, 2, what))


def _shown(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return repr(str(source))
    more = f" and {len(source) - 1} more" if len(source) > 1 else ""
    return f"{str(source[0])!r}{more}"


def _needs(package: str, what: str) -> str:
    return f'{what} need {package}: pip install "oklnumba[stream]"'
