"""What the command line reads: files in pieces, data sets by name, and labels of any kind."""

from argparse import Namespace
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.core.checks import MOST, find_path, require_count, suggest
from oklnumba.core.inputs import (
    LOOK_ROWS,
    column_as_floats,
    find_labels,
    find_times,
    refuse_rounded,
)
from oklnumba.core.schema import Schema
from oklnumba.data import datasets
from oklnumba.data.streams import Pieces, Stream

ROWS = 16384  # of a piece
MOST_CLASSES = 100
FORMS = "Parquet, CSV, Arrow or LIBSVM file, a folder of such, or .npz with X and y"
ANY = (0, 1)  # with some classes a stream takes labels of any kind

Pairs = Generator[tuple[np.ndarray, np.ndarray], None, None]


def open_table(args: Namespace) -> Stream:
    """Return the table that the options name, with the classes of its labels; print both."""
    table = find_table(args, classes=ANY)
    classes, rows, words = look_at_labels(table, args)
    size, s = f"{rows} rows, " if rows else "", "s" * (table.width != 1)
    print(f"file      {args.file}: {size}{table.width} column{s}")
    print(f"labels    {args.label or 'y'}: {words}")
    return replace(table, schema=replace(table.schema, classes=classes))


def find_table(args: Namespace, **options: Any) -> Stream:
    """Return the file or the data set that the options name; others are those of ``okl.stream``."""
    path, permute = Path(args.file), args.permute
    if args.file == "-" or path.exists() and path.suffix.lower() != ".npz":
        if permute is not None:
            raise ValueError("--permute is for data sets and .npz files; others are read in order")
        return _open_stream(args, **options)
    if path.exists():
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            X, y = (archive.get(name, np.empty(0)) for name in ("X", "y"))
        if X.ndim != 2 or y.shape != X.shape[:1]:
            shapes = f"X {X.shape} and y {y.shape}"
            raise ValueError(f"{path} holds {shapes}; (n, d) and (n,) are needed")
        if permute is not None:
            order = np.random.default_rng(permute).permutation(len(y))
            X, y = X[order], y[order]
    elif args.file in datasets.names():
        data = datasets.load(args.file, scale=None, permute=permute)
        X, y = data.X, data.y
    else:
        hint = suggest(args.file, [*datasets.names(), *map(str, path.parent.glob("*"))])
        raise ValueError(
            f"no file and no data set {args.file!r}; {hint}oklnumba data list names the sets"
        )
    return _from_arrays(args, X, y, **options)


def _open_stream(args: Namespace, **options: Any) -> Stream:
    """Return the file that the options name as a stream."""
    named = args.columns, args.drop + args.id, args.encode, args.dates
    columns, drop, encode, dates = ([get_place(args, one) for one in names] for names in named)
    label = args.label and get_place(args, args.label)
    return okl.stream(
        args.file, label=label, columns=columns or None, drop=drop, encode=encode, dates=dates,
        impute=args.impute, batch=ROWS, format=args.format, header=not args.no_header,
        skip=args.skip, delimiter=args.delimiter, decimal=args.decimal, encoding=args.encoding,
        **options,
    )  # fmt: skip


def is_same(path: str | None, other: str | None) -> bool:
    """Return whether two names, if given, are of one file."""
    if not path or not other:
        return False
    return find_path(path).resolve() == find_path(other).resolve()


def get_place(args: Namespace, name: str) -> str | int:
    """Return how ``okl.stream`` names a column: without a header they have numbers."""
    return int(name) if args.no_header and name.lstrip("-").isdigit() else name


def _from_arrays(
    args: Namespace, X: np.ndarray, y: np.ndarray, classes: Any = None, like: Any = None
) -> Stream:
    """Return arrays as a table with columns x0, x1, ... and the label y."""
    name, label, names = args.file, args.label, [f"x{j}" for j in range(X.shape[1])]
    if args.encode or args.dates or args.impute or args.id:
        what = "nothing else: leave out --encode, --dates, --impute and --id"
        raise ValueError(f"{name} holds numbers, {what}")
    unknown = [one for one in (*args.columns, *args.drop) if one not in names]
    unknown += [label] if label not in (None, "y") else []
    if unknown:
        raise ValueError(f"{name} has no column {unknown[0]!r}; it has x0 to {names[-1]}, label y")
    columns = tuple(one for one in args.columns or names if one not in args.drop)

    def read(schema: Schema) -> Pieces:
        schema.refuse_other_names([*names, "y"], name)
        places = [names.index(one) for one in schema.names]
        return iter([(name, 0, X[:, places], y)])

    ignored = tuple(one for one in names if one not in columns)
    made = Schema(columns, label="y", classes=classes, ignored=ignored)
    return Stream(name, read, like or made, ROWS)


def look_at_labels(table: Stream, args: Namespace) -> tuple[tuple | None, int | None, str]:
    """Return the classes, the number of rows, and what the labels are in words.

    The first LOOK_ROWS labels tell. Two different labels or texts are classes, other numbers a
    regression, with classes None, if args.task does not say it. The number of rows is None if there
    are more.
    """
    pieces, files, more = list[np.ndarray](), list[str](), table.labels()
    while len(files) < LOOK_ROWS and (piece := next(more, None)) is not None:
        files += [piece[0]] * len(piece[1])
        pieces.append(piece[1])
    if not files:
        raise ValueError(f"{args.file} has no rows")
    labels, column, task = np.concatenate(pieces), f"column {args.label or 'y'!r}", args.task
    if find_times(labels):
        column_as_floats(labels, column, is_label=True)
    there, numbers = find_labels(labels), labels.dtype.kind in "iufb"
    if args.labels == "required" and not there.all():
        row = int(there.argmin())
        raise ValueError(
            f"{files[row]}: row {row - files.index(files[row])} (the first is 0) has no label in "
            f"{column}; drop it, or let such rows be forecast by --labels optional"
        )
    values = np.unique(labels[there]).tolist()
    total = len(labels) if len(labels) < LOOK_ROWS else None
    if task == "regression" or task is None and numbers and len(values) > 2:
        if not numbers:
            column_as_floats(labels, column, is_label=True)  # which says what is no number
        return None, total, "numbers: regression"
    refuse_rounded(labels, column)
    if len(values) > MOST_CLASSES:
        fault = f"{column} has {len(values)} labels, too many classes:"
        if not numbers:
            column_as_floats(labels, f"{fault} it", is_label=True)
        raise ValueError(f"{fault} use --task regression")
    if len(values) < 2:
        some = "all" if total else f"the first {len(labels):,}"
        cure = "; --task regression takes equal numbers" if numbers and values else ""
        raise ValueError(f"{some} labels of {column} are {[*values, None][0]!r}{cure}")
    whole = all(isinstance(one, float) and one.is_integer() for one in values)  # so a CSV has 1
    classes = tuple(sorted(map(int, values) if whole else values))
    if len(classes) == 2:
        words = f"two classes: {classes[0]} is -1, {classes[1]} is +1"
        return classes, total, words if classes != (-1, 1) else "two classes, -1 and +1"
    shown = ", ".join(map(str, classes[:6])) + (", ..." if len(classes) > 6 else "")
    return classes, total, f"{len(classes)} classes: {shown}"


def read_rounds(table: Stream, most: int | None = None) -> Pairs:
    """Yield inputs and labels as a learner takes them, at most ``most`` rows."""
    left = MOST if most is None else require_count("--rows", most, 1)
    with closing(table.read_blocks()) as pieces:
        for X, y in pieces:
            yield X[:left], y[:left]
            left -= len(y)
            if left <= 0:
                return


def join_lines(error: object) -> str:
    """Return the message of an error on one line."""
    return " ".join(str(error).split()) or type(error).__name__
