"""What the command line reads: files in pieces, data sets by name, and labels of any kind."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import oklnumba as okl
from oklnumba.command.spelling import nearest
from oklnumba.data import datasets

ROWS = 16384  # handed on in one go
MOST_CLASSES = 100
FORMS = "Parquet, CSV, Arrow or LIBSVM file, a folder of such, or .npz with X and y"
ANY = (0, 1)  # with some classes a stream takes labels of any kind
WORDS = {  # of okl.stream, and of the command line
    "label=...": "--label COLUMN",
    "columns=[...]": "--columns a,b,c",
    "format=": "--format",
    "header=False, and label by place, such as label=0": "--no-header, and --label 0 or so",
}

Pieces = Iterator[tuple[np.ndarray, np.ndarray]]


class Source(NamedTuple):
    """A table that can be read any number of times.

    Attributes
    ----------
    name, label : str
        The file and its column of labels.
    columns : sequence of str
        The inputs.
    pieces : callable
        ``pieces(labels)`` yields inputs, float64 (n, d), and labels as a learner takes them.
    labels : callable
        ``labels()`` yields the labels as they are in the file.
    """

    name: str
    label: str
    columns: Sequence[str]
    pieces: Callable[[Labels], Pieces]
    labels: Callable[[], Iterator[np.ndarray]]


def find(args: Namespace) -> Source:
    """Return the file, or the data set, that the options name.

    Parameters
    ----------
    args : Namespace
        ``file``, a path or one of ``okl.datasets.names()``; ``label``, ``columns``, ``format``,
        ``no_header`` and ``permute`` as the command line has them.

    Raises
    ------
    ValueError
        If there is no such file, data set or column, or the file is of another kind.
    """
    path = Path(args.file)
    columns = args.columns.split(",") if args.columns else None
    if path.exists() and path.suffix.lower() != ".npz":
        if args.permute is not None:
            raise ValueError("--permute is for data sets and .npz files; others are read in order")
        return _of_stream(args, columns)
    if path.exists():
        X, y = _archive(path)
        if args.permute is not None:
            order = np.random.default_rng(args.permute).permutation(len(y))
            X, y = X[order], y[order]
    elif args.file in datasets.names():
        if datasets.found(args.file) and args.permute is None and columns is None:
            return _of_stream(args, None)  # in pieces
        data = datasets.load(args.file, scale=None, permute=args.permute)
        X, y = data.X, data.y
    else:
        there = [*datasets.names(), *map(str, path.parent.glob("*"))]
        raise ValueError(f"no file and no data set {args.file!r}{nearest(args.file, there)}")
    return _of_arrays(args.file, X, y, args.label, columns)


def _of_stream(args: Namespace, columns: list[str] | None) -> Source:
    """Return what ``okl.stream`` reads."""
    label = args.label
    named = args.file in datasets.names() and not Path(args.file).exists()
    if named and label not in (None, "y"):
        raise ValueError(f"the labels of {args.file} are y; there is no column {label!r}")

    def stream(classes: Sequence | None) -> Any:
        if named:  # its labels are -1 and +1, or numbers
            return okl.stream(args.file, batch=ROWS)
        places = [_place(one, args.no_header) for one in (label, *(columns or []))]
        return okl.stream(
            args.file, label=places[0], columns=places[1:] or None, classes=classes,
            batch=ROWS, format=args.format, header=not args.no_header,
        )  # fmt: skip

    try:
        table = stream(ANY)
    except ValueError as error:  # in the words of the command line
        told = str(error)
        for here, there in WORDS.items():
            told = told.replace(here, there)
        raise ValueError(told) from None
    names = table.columns
    if names is None:  # LIBSVM has no names
        with closing(iter(stream(None))) as first:
            names = [f"x{j}" for j in range(next(first)[0].shape[1])]
    return Source(
        args.file, label or "y", names, lambda labels: iter(stream(labels.classes)), table.labels
    )


def _place(name: str | None, by_number: bool) -> str | int | None:
    """Return a column as ``okl.stream`` takes it: by its place where there are no names."""
    if name is not None and by_number and name.lstrip("-").isdigit():
        return int(name)
    return name


def _archive(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        if not {"X", "y"} <= set(archive.files):
            raise ValueError(f"{path} holds {', '.join(archive.files)}, but no X and y")
        X, y = archive["X"], archive["y"]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"{path} holds X {X.shape} and y {y.shape}; (n, d) and (n,) are needed")
    return X, y


def _of_arrays(
    name: str, X: np.ndarray, y: np.ndarray, label: str | None, columns: list[str] | None
) -> Source:
    """Return arrays in memory as a source; columns are x0, x1, ... and the label y."""
    there = [f"x{j}" for j in range(X.shape[1])]
    for one, names in [(label or "y", ["y"]), *((c, there) for c in columns or [])]:
        if one not in names:
            raise ValueError(f"{name} has no column {one!r}; it has {there[0]} to {there[-1]}, y")
    places = [there.index(one) for one in columns or there]

    def pieces(labels: Labels) -> Pieces:
        for start in range(0, len(y), ROWS):
            rows = slice(start, start + ROWS)
            yield np.array(X[rows, places], dtype=np.float64, order="C"), labels.encode(y[rows])

    return Source(name, "y", columns or there, pieces, lambda: iter([y]))


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
    if raw.dtype == object:
        missing = np.array([v is None or v != v for v in raw])
    else:  # a CSV has an empty text where it has no label
        missing = raw == "" if raw.dtype.kind == "U" else raw != raw
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
    with closing(source.pieces(labels)) as pieces:
        for X, y in pieces:
            if most is not None:
                X, y = X[: most - done], y[: most - done]
            bad = ~np.isfinite(X)
            if bad.any():
                row, column = np.argwhere(bad)[0]
                raise ValueError(
                    f"row {done + row} (the first is 0), column {source.columns[column]!r}: "
                    f"{X[row, column]}; drop such rows or fill them in"
                )
            yield X, y
            done += len(y)
            if done == most:
                return
