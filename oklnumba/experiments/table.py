"""Tables of results: a row a run, columns by name; with or without pandas."""

from __future__ import annotations

import csv
import html
import io
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oklnumba.core import checks
from oklnumba.core.display import pandas_for
from oklnumba.core.files import read_npz, refusing, replacing, write_npz
from oklnumba.protocol.runs import Run

SHOWN = 20  # rows that repr shows
HIDDEN = ("versions", "parameters", "seed")  # columns that it does not
# Cells that say nothing: a column of nothing else is not shown.
EMPTY = defaultdict(lambda: (None, ""), setting=(None, 0), failed=(None, 0), finished=(None, True))
# What tells the rows of ``mean`` apart or is the same in all of a group; numbers else are averaged.
IDENTITY = (
    "data", "learner", "setting", "n", "d", "loss", "finished", "chosen", "parameters", "versions",
)  # fmt: skip
GROUPS = ("data", "learner", "setting")

Cell = str | int | float | bool | None | Run


class Table:
    """Rows with the same columns: texts, numbers, or None where there is nothing to say.

    Or what ``okl.run`` returned: columns of Runs are not shown and not in files.

    Parameters
    ----------
    rows : iterable of mappings
        Columns that a row lacks are None in it.
    about : dict, optional
        What holds for all rows, plain data.

    Attributes
    ----------
    rows : list of dict
    columns : tuple of str
    about : dict

    Raises
    ------
    ValueError
        If a cell is neither text, number, Run nor None, or a column has some of two of these.

    Examples
    --------
    >>> from oklnumba.experiments.table import Table
    >>> table = Table([{"data": "a", "learner": "x", "loss": v} for v in (1.0, 2.0)])
    >>> table["loss"].sum(), len(table)
    (np.float64(3.0), 2)
    >>> table
    data  learner  loss
    a     x           1
    a     x           2
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], about: dict[str, Any] | None = None):
        what = "an iterable of mappings of names to cells"
        checks.require(
            isinstance(rows, Iterable) and not checks.has_shape(rows), "rows", rows, what
        )
        given = list(rows)
        for row in given:
            checks.require(isinstance(row, Mapping) and _texts(row), "rows", row, what)
        known = about is None or isinstance(about, Mapping)
        checks.require(known, "about", about, "a dict or None")
        self.columns = tuple(dict.fromkeys(name for row in given for name in row))
        self.rows = [{name: _plain(row.get(name), name) for name in self.columns} for row in given]
        self.about = dict(about or {})
        for name in self.columns:
            kinds = {_kind(row[name]) for row in self.rows if row[name] is not None}
            if len(kinds) > 1:
                told = " and ".join(sorted(kinds, reverse=True))
                raise ValueError(f"{name} holds {told}; put None where there is no number")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return iter(self.rows)

    def __getitem__(self, column: str | list[str]) -> np.ndarray | Table:
        """Return a column as an array: of numbers, NaN for None, of texts, "" for None, of Runs.

        Of a list of columns: the table of these.
        """
        if isinstance(column, list):
            self._require(*column)
            return Table([{name: row[name] for name in column} for row in self.rows], self.about)
        self._require(column)
        cells = [row[column] for row in self.rows]
        if any(isinstance(cell, str) for cell in cells):
            return np.array(["" if cell is None else str(cell) for cell in cells])
        if any(isinstance(cell, Run) for cell in cells):
            return np.array(cells, dtype=object)
        if None in cells:
            return np.array([np.nan if cell is None else float(cell) for cell in cells])
        return np.array(cells)

    def select(self, **equal: Cell) -> Table:
        """Return the rows in which some columns have these values.

        Raises
        ------
        ValueError
            For a column that the table does not have.

        Examples
        --------
        >>> from oklnumba.experiments.table import Table
        >>> len(Table([{"learner": "x"}, {"learner": "y"}]).select(learner="y"))
        1
        """
        self._require(*equal)
        equal = {name: _plain(value, name) for name, value in equal.items()}
        found = [r for r in self.rows if all(r[name] == v for name, v in equal.items())]
        return Table(found, self.about)

    def mean(self, by: Sequence[str] = GROUPS) -> Table:
        """Return one row a group, averaged: over permutations, unless other groups are asked for.

        Numbers become their mean and, as ``<column>_sd``, the deviation of a sample (None of one
        row); ``permutations`` counts the rows. Rows with an error are left out, and ``failed``
        counts them.

        Parameters
        ----------
        by : sequence of str
            Columns whose values make a group.

        Raises
        ------
        ValueError
            For a column that the table does not have.

        Examples
        --------
        >>> from oklnumba.experiments.table import Table
        >>> table = Table([{"learner": "x", "regret": v} for v in (1.0, 3.0)])
        >>> table.mean(by=["learner"])
        learner  permutations  regret  regret_sd
        x                   2       2      1.414
        """
        checks.require(isinstance(by, list | tuple), "by", by, "a list of columns")
        by = [name for name in by if name in self.columns or by is not GROUPS]
        averaged = []
        for key, rows in self._groups(by).items():
            good = [row for row in rows if not row.get("error")]
            out: dict[str, Any] = dict(zip(by, key, strict=True))
            out |= {"permutations": len(good), "failed": len(rows) - len(good)}
            for name in self.columns:
                if name not in out and name not in ("permutation", "seed", "error"):
                    out |= _summary(name, [row[name] for row in good])
            averaged.append(out | ({} if good else {"error": rows[0]["error"]}))
        return Table(averaged, self.about)

    def pivot(
        self, values: str = "mean_loss", rows: str = "data", columns: str = "learner"
    ) -> Table:
        """Return the means of a column by two others: a row and a column for each value of these.

        Rows with an error are left out.

        Raises
        ------
        ValueError
            For a column that the table does not have, or one without numbers.

        Examples
        --------
        >>> from oklnumba.experiments.table import Table
        >>> cells = [("a", "x", 1.0), ("a", "y", 2.0), ("b", "x", 3.0), ("b", "y", 4.0)]
        >>> names = "data", "learner", "mean_loss"
        >>> Table([dict(zip(names, cell)) for cell in cells]).pivot()
        data  x  y
        a     1  2
        b     3  4
        """
        self._require(values, rows, columns)
        if self[values].dtype.kind not in "bif":
            raise ValueError(f"{values} holds no numbers to take the mean of; name another")
        out: dict[Any, dict[str, Any]] = {}
        for (row, column), group in self._groups([rows, columns]).items():
            good = [r[values] for r in group if not r.get("error") and r[values] is not None]
            cell = float(np.mean(good)) if good else None  # type: ignore[arg-type]
            out.setdefault(row, {rows: row})[str(column)] = cell
        return Table(out.values(), self.about)

    # ---- other forms ----

    def to_frame(self) -> Any:
        """Return a pandas DataFrame.

        Raises
        ------
        ImportError
            If pandas is not there; ``rows`` and ``table[column]`` need none.
        """
        instead = "; Table.rows and table[column] need nothing"
        pandas = pandas_for("Table.to_frame", instead)
        return pandas.DataFrame(self.rows, columns=list(self.columns))

    def to_csv(self, path: str | os.PathLike | None = None) -> str | None:
        """Write the rows into a CSV file, nothing where a cell is None; without a path, return it.

        Numbers are written with all their digits; the file whole or not at all.
        """
        path = None if path is None else checks.as_path(path)
        text = io.StringIO()
        columns = self._of_files()
        writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        if path is None:
            return text.getvalue()
        with replacing(path) as partial:
            partial.write_text(text.getvalue(), encoding="utf-8")
        return None

    def save(self, path: str | os.PathLike) -> None:
        """Write the table into one ``.npz`` file: an array a column, whatever is None beside."""
        arrays, absent = {}, {}
        columns = self._of_files()
        for name in columns:
            cells = [row[name] for row in self.rows]
            absent[name] = [i for i, cell in enumerate(cells) if cell is None]
            arrays[f"column_{name}"] = self._filled(cells)
        table = {"columns": columns, "absent": absent, "about": self.about}
        write_npz(path, {"table": table}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Table:
        """Return the table that ``save`` wrote.

        Raises
        ------
        ValueError
            If the file is damaged, or holds no table.
        """
        meta, arrays = read_npz(path)
        if "table" not in meta:
            raise ValueError(f"{path} holds no table; a run is read by Run.load")
        with refusing(path):
            return cls._of(meta, arrays)

    @classmethod
    def _of(cls, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Table:
        """Return the table of a file."""
        columns, absent = meta["table"]["columns"], meta["table"]["absent"]
        cells = {}
        for name in columns:
            column = arrays[f"column_{name}"]
            if column.ndim != 1:
                raise ValueError(f"its column {name!r} has the shape {column.shape}")
            cells[name] = column.tolist()
            for i in absent[name]:
                cells[name][i] = None
        whole = zip(*cells.values(), strict=True)
        return cls([dict(zip(columns, row, strict=True)) for row in whole], meta["table"]["about"])

    @staticmethod
    def _filled(cells: list[Cell]) -> np.ndarray:
        """Return cells as an array that needs no pickle: a text or a number for None."""
        kind: type = next((type(cell) for cell in cells if cell is not None), float)
        if kind is not str and any(isinstance(cell, float) for cell in cells):
            kind = float
        return np.array([kind() if cell is None else kind(cell) for cell in cells], dtype=kind)

    # ---- looks ----

    def _shown(self) -> tuple[list[str], list[list[str]]]:
        """Return the columns worth reading, and the first rows as texts."""
        names = [
            name
            for name in self._of_files()
            if name not in HIDDEN and any(row[name] not in EMPTY[name] for row in self.rows)
        ]
        return names, [[_text(row[name]) for name in names] for row in self.rows[:SHOWN]]

    def __repr__(self) -> str:
        names, cells = self._shown()
        if not names:
            return f"Table of {len(self)} rows"
        numbers = [self[name].dtype.kind in "bif" for name in names]
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        lines = []
        for row in (names, *cells):
            aligned = [
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, numbers, strict=True)
            ]
            lines.append("  ".join(aligned).rstrip())
        if len(self) > SHOWN:
            lines.append(f"... {len(self)} rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names, cells = self._shown()

        def line(row: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>"

        body = "".join(line(row, "td") for row in cells)
        more = f"<caption>{len(self)} rows</caption>" if len(self) > SHOWN else ""
        return f"<table>{more}<thead>{line(names, 'th')}</thead><tbody>{body}</tbody></table>"

    # ---- parts ----

    def _of_files(self) -> tuple[str, ...]:
        """Return the columns that go into files: those without Runs."""
        runs = {name for row in self.rows for name, cell in row.items() if isinstance(cell, Run)}
        return tuple(name for name in self.columns if name not in runs)

    def _require(self, *names: str) -> None:
        for name in names:
            if not isinstance(name, str) or name not in self.columns:
                raise ValueError(
                    f"there is no column {checks.shown(name)}; there are {', '.join(self.columns)}"
                )

    def _groups(self, by: Sequence[str]) -> dict[tuple, list[dict[str, Cell]]]:
        self._require(*by)
        groups: dict[tuple, list[dict[str, Cell]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return groups


def _texts(names: Iterable[Any]) -> bool:
    return all(isinstance(name, str) for name in names)


def _kind(cell: Cell) -> str:
    if isinstance(cell, Run):
        return "Runs"
    return "texts" if isinstance(cell, str) else "numbers"


def _plain(cell: Any, name: str) -> Cell:
    """Return a cell as Python's own text or number, or the Run that it is."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or isinstance(cell, str | bool | int | float | Run):
        return cell
    raise ValueError(
        f"{name} must be text, a number or None in a table, but is of type {type(cell).__name__}"
    )


def _summary(name: str, cells: list[Cell]) -> dict[str, Any]:
    """Return what a group has in a column: mean and deviation, or the one value of all."""
    numbers = [cell for cell in cells if isinstance(cell, int | float)]
    if name not in IDENTITY and numbers:
        sd = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None
        return {name: float(np.mean(numbers)), f"{name}_sd": sd}
    return {name: cells[0] if len(set(cells)) == 1 else None}


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)
