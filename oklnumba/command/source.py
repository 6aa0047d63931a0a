"""What the command line reads: files in pieces, data sets by name, and labels of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from oklnumba import datasets
from oklnumba.command.spelling import nearest

ROWS = 16384  # read in one go
MOST_CLASSES = 100
ARROW = {
    ".parquet": "parquet", ".csv": "csv", ".arrow": "ipc", ".ipc": "ipc", ".feather": "feather",
}  # fmt: skip
LIBSVM = (".libsvm", ".svm", ".svmlight", ".txt")
NUMBERS = ("null", "bool", "halffloat", "float", "double")  # kinds of columns, with integers
NUMBERS += tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FORMS = "CSV, Parquet, Arrow, LIBSVM (.svm, .libsvm, .txt) or .npz with X and y"


class Source(NamedTuple):
    """A table that can be read any number of times.

    Attributes
    ----------
    name, label : str
        The file and its column of labels.
    columns : list of str
        The inputs.
    pieces : callable
        ``pieces()`` yields pairs of inputs, float64 (n, d), and raw labels (n,).
    labels : callable
        ``labels()`` yields raw labels alone.
    """

    name: str
    label: str
    columns: list[str]
    pieces: Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]
    labels: Callable[[], Iterator[np.ndarray]]


def find(
    name: str, label: str | None, columns: list[str] | None = None, permute: int | None = None
) -> Source:
    """Return a file, or the data set of this name.

    Parameters
    ----------
    name : str
        A path, or one of ``okl.datasets.names()``.
    label : str or None
        Column of the labels; files with named columns need it.
    columns : list of str, optional
        Inputs to use; None: all columns but the label.
    permute : int, optional
        Seed of a permutation, for data sets and ``.npz``.

    Raises
    ------
    ValueError
        If there is no such file, data set or column, or the file is of another kind.
    """
    path = Path(name)
    if not path.exists():
        if name not in datasets.names():
            there = [*datasets.names(), *map(str, path.parent.glob("*"))]
            raise ValueError(f"no file and no data set {name!r}{nearest(name, there)}")
        data = datasets.load(name, scale=None, permute=permute)
        return _of_arrays(name, data.X, data.y, label, columns)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _of_npz(path, label, columns, permute)
    if permute is not None:
        raise ValueError("--permute is for data sets and .npz files; others are read in order")
    if suffix in LIBSVM:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(path))
        return _of_arrays(name, X.toarray(), y, label, columns)
    if path.is_dir() or suffix in ARROW:
        return _of_arrow(path, ARROW.get(suffix, "parquet"), label, columns)
    raise ValueError(f"{name} is of no kind that is read here: {FORMS}")


def _of_npz(
    path: Path, label: str | None, columns: list[str] | None, permute: int | None
) -> Source:
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if not {"X", "y"} <= set(archive.files):
            raise ValueError(f"{path} holds {', '.join(archive.files)}, but no X and y")
        X, y = archive["X"], archive["y"]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"{path} holds X {X.shape} and y {y.shape}; (n, d) and (n,) are needed")
    if permute is not None:
        order = np.random.default_rng(permute).permutation(len(y))
        X, y = X[order], y[order]
    return _of_arrays(str(path), X, y, label, columns)


def _of_arrays(
    name: str, X: np.ndarray, y: np.ndarray, label: str | None, columns: list[str] | None
) -> Source:
    """Return arrays in memory as a source; columns are x0, x1, ... and the label y."""
    there = [f"x{j}" for j in range(X.shape[1])]
    _column(label or "y", ["y"], name)
    chosen = there if columns is None else [_column(one, there, name) for one in columns]
    places = [there.index(one) for one in chosen]

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(y), ROWS):
            part = X[start : start + ROWS]
            part = part if columns is None else part[:, places]
            yield np.array(part, dtype=np.float64, order="C"), y[start : start + ROWS]

    return Source(name, "y", chosen, pieces, lambda: iter([y]))


def _column(name: str, there: list[str], source: str) -> str:
    """Return the name of a column that is there."""
    if name not in there:
        shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
        hint = nearest(name, there) or f"; it has {shown}"
        raise ValueError(f"{source} has no column {name!r}{hint}")
    return name


def _of_arrow(path: Path, form: str, label: str | None, columns: list[str] | None) -> Source:
    """Return a file or folder that pyarrow reads in batches."""
    try:
        import pyarrow as pa
        import pyarrow.dataset
    except ImportError:
        raise ImportError('reading files needs pyarrow: pip install "oklnumba[stream]"') from None
    try:
        table = pa.dataset.dataset(path, format=form)
        there = table.schema.names
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: {first_line(error)}") from None
    if label is None:
        raise ValueError(f"name the column of the labels, --label {there[-1] if there else 'y'}")
    _column(label, there, str(path))
    inputs = [name for name in there if name != label]
    chosen = inputs if columns is None else [_column(one, inputs, str(path)) for one in columns]
    for name in chosen:
        kind = table.schema.field(name).type
        if str(kind) not in NUMBERS:
            raise ValueError(f"{path}: column {name!r} holds {kind}, not numbers; "
                             "leave it out by naming the others, --columns a,b,c")  # fmt: skip

    def batches(names: list[str]) -> Iterator[Any]:
        try:
            yield from table.to_batches(columns=names, batch_size=ROWS)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path}: {first_line(error)}") from None

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for batch in batches([*chosen, label]):
            X = np.empty((batch.num_rows, len(chosen)))
            for j in range(len(chosen)):
                X[:, j] = batch.column(j).to_numpy(zero_copy_only=False)
            yield X, batch.column(len(chosen)).to_numpy(zero_copy_only=False)

    def labels() -> Iterator[np.ndarray]:
        for batch in batches([label]):
            yield batch.column(0).to_numpy(zero_copy_only=False)

    return Source(str(path), label, chosen, pieces, labels)


def first_line(error: BaseException) -> str:
    """Return the message of an error on one line."""
    return " ".join(str(error).split()) or type(error).__name__


class Labels(NamedTuple):
    """What the labels are.

    Attributes
    ----------
    classes : list or None
        Of a classification, the first stands for -1 where there are two; None: regression.
    rows : int or None
        Rows of the table, None where it was not read to its end.
    said : str
        The same in words.
    """

    classes: list | None
    rows: int | None
    said: str

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Return labels as a learner takes them: -1 and +1, classes as they are, or numbers."""
        if self.classes is None:
            return raw.astype(np.float64)
        if len(self.classes) == 2:
            return np.where(raw == self.classes[1], 1.0, -1.0)
        return np.asarray(raw, dtype=np.asarray(self.classes).dtype)


def look(source: Source, task: str | None = None) -> Labels:
    """Return what the labels of a source are, after a pass over their column alone.

    The pass ends early at a third number: then it is a regression, unless ``task`` says otherwise.

    Parameters
    ----------
    source : Source
    task : {"classification", "regression"}, optional
        None: two different labels or texts are classes, other numbers a regression.

    Raises
    ------
    ValueError
        If a label is missing, all are the same, or there are too many classes.
    """
    found: set = set()
    rows, numbers = 0, True
    for raw in source.labels():
        numbers = raw.dtype.kind in "iufb"
        _refuse_missing(raw, rows, source.label)
        found.update(np.unique(raw).tolist())
        rows += len(raw)
        if numbers and len(found) > 2 and task != "classification":
            return Labels(None, None, "numbers: regression")
        if len(found) > MOST_CLASSES and task != "regression":
            raise ValueError(
                f"column {source.label!r} has more than {MOST_CLASSES} different labels, too many "
                "for classes" + (": use --task regression" if numbers else "")
            )
    if not rows:
        raise ValueError(f"{source.name} has no rows")
    if task == "regression":
        if not numbers:
            raise ValueError(f"column {source.label!r} holds text: no regression on it")
        return Labels(None, rows, "numbers: regression")
    if len(found) == 1:
        raise ValueError(f"all labels of column {source.label!r} are {found.pop()!r}")
    classes = sorted(found)
    if len(classes) == 2:
        said = f"two classes: {classes[0]} is -1, {classes[1]} is +1"
        return Labels(classes, rows, "two classes, -1 and +1" if classes == [-1, 1] else said)
    shown = ", ".join(map(str, classes[:6])) + (", ..." if len(classes) > 6 else "")
    return Labels(classes, rows, f"{len(classes)} classes: {shown}")


def _refuse_missing(raw: np.ndarray, before: int, label: str) -> None:
    missing = np.array([v is None or v != v for v in raw]) if raw.dtype == object else raw != raw
    if missing.any():
        row = before + int(np.argmax(missing))
        raise ValueError(f"row {row} (the first is 0) has no label in column {label!r}; drop it")


def rounds(
    source: Source, labels: Labels, most: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield inputs and labels as a learner takes them, all finite.

    Parameters
    ----------
    source : Source
    labels : Labels
    most : int, optional
        Rows after which it ends.

    Raises
    ------
    ValueError
        If a number is missing or infinite; the message has its row and column.
    """
    done = 0
    for X, raw in source.pieces():
        if most is not None:
            X, raw = X[: most - done], raw[: most - done]
        if not len(X):
            return
        _refuse_missing(raw, done, source.label)
        bad = ~np.isfinite(X)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"row {done + row} (the first is 0), column {source.columns[column]!r}: "
                f"{X[row, column]}; drop such rows or fill them in"
            )
        yield X, labels.encode(raw)
        done += len(X)
