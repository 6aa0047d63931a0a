"""Tables of results with named columns, with or without pandas."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, overload

import numpy as np

from oklnumba.core import checks
from oklnumba.core.checks import import_optional
from oklnumba.core.display import html_table
from oklnumba.core.files import name_contents, read_npz, replace_file, write_npz
from oklnumba.protocol.runs import Run

ROWS_IN_REPR = 20
NOT_IN_REPR = ("versions", "parameters", "seed")
# A column with only these values is not printed.
DEFAULTS = {"setting": (None, 0), "failed": (None, 0), "finished": (None, True)}
# ``mean`` does not average these columns.
IDENTITY = (
    "data", "learner", "setting", "n", "d", "loss", "finished", "chosen", "parameters", "versions",
)  # fmt: skip
GROUPS = ("data", "learner", "setting")

Cell = str | int | float | bool | None | Run


class Table:
    """Rows with the same columns. A column holds texts, numbers, or Runs, and None where empty.

    Columns of Runs are neither printed nor saved.

    Attributes
    ----------
    rows : list of dict
    columns : tuple of str
    about : dict
        Facts about all rows, as plain data.

    Examples
    --------
    >>> cells = [("a", "x", 1.0), ("a", "y", 2.0), ("a", "y", 4.0), ("b", "x", 3.0)]
    >>> names = "data", "learner", "mean_loss"
    >>> table = okl.Table([dict(zip(names, cell)) for cell in cells])
    >>> table.select(learner="y").mean()
    data  learner  permutations  mean_loss  mean_loss_sd
    a     y                   2          3         1.414
    >>> table.pivot()
    data  x  y
    a     1  3
    b     3
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], about: dict[str, Any] | None = None):
        given = list(rows)
        self.columns = tuple(dict.fromkeys(name for row in given for name in row))
        self.rows: list[dict[str, Any]] = [
            {name: as_cell(row.get(name), name) for name in self.columns} for row in given
        ]
        self.about = dict(about or {})
        for name in self.columns:
            kinds = {_kind(row[name]) for row in self.rows if row[name] is not None}
            if len(kinds) > 1:
                mixed = " and ".join(sorted(kinds))
                raise ValueError(f"column {name} holds {mixed}; put None for a missing number")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @overload
    def __getitem__(self, column: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, column: list[str]) -> Self: ...
    def __getitem__(self, column: str | list[str]) -> np.ndarray | Self:
        """Return a column as an array, None as NaN or ""; for a list of columns, their table."""
        if isinstance(column, list):
            self._require(*column)
            rows = [{name: row[name] for name in column} for row in self.rows]
            return type(self)(rows, self.about)
        self._require(column)
        cells = [row[column] for row in self.rows]
        kind = next((_kind(cell) for cell in cells if cell is not None), "numbers")
        if kind == "Runs":
            return np.array(cells, dtype=object)
        empty = "" if kind == "texts" else np.nan
        return np.array([empty if cell is None else cell for cell in cells])

    def select(self, **equal: Cell) -> Self:
        """Return the rows with these values in these columns."""
        self._require(*equal)
        rows = [r for r in self.rows if all(r[name] == v for name, v in equal.items())]
        return type(self)(rows, self.about)

    def mean(self, by: Sequence[str] = GROUPS) -> Self:
        """Return one averaged row per group of rows with the same values in the columns ``by``.

        Numbers become their mean and, as ``<column>_sd``, the sample standard deviation (None for
        one row). ``permutations`` counts the rows. Rows with an error are left out and counted in
        ``failed``.
        """
        by = [name for name in by if name in self.columns or by is not GROUPS]
        averaged = []
        for key, rows in self._group(by).items():
            good = [row for row in rows if not row.get("error")]
            out: dict[str, Any] = dict(zip(by, key, strict=True))
            out |= {"permutations": len(good), "failed": len(rows) - len(good)}
            for name in self.columns:
                if name not in out and name not in ("permutation", "seed", "error"):
                    out |= _average(name, [row[name] for row in good])
            averaged.append(out | ({} if good else {"error": rows[0]["error"]}))
        return type(self)(averaged, self.about)

    def pivot(
        self, values: str = "mean_loss", rows: str = "data", columns: str = "learner"
    ) -> Self:
        """Return the means of a column, with one row and one column per value of two others.

        Rows with an error are left out of a mean; where all have one, it is NaN.
        """
        self._require(rows, columns)
        self._require_numbers(values)
        out: dict[Any, dict[str, Any]] = {}
        for (row, column), group in self._group([rows, columns]).items():
            good = [r[values] for r in group if not r.get("error") and r[values] is not None]
            empty = np.nan if all(r.get("error") for r in group) else None
            cell = float(np.mean(good)) if good else empty
            out.setdefault(row, {rows: row})[str(column)] = cell
        return type(self)(out.values(), self.about)

    # ---- other forms ----

    def to_frame(self) -> Any:
        """Return a pandas DataFrame."""
        pandas = import_optional("pandas", "Table.to_frame")
        return pandas.DataFrame(self.rows, columns=list(self.columns))

    def to_csv(self, path: str | os.PathLike | None = None) -> str | None:
        """Write a CSV file, or return its text if there is no path. None becomes an empty cell."""
        text, columns = io.StringIO(), self._list_saved()
        writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        if path is None:
            return text.getvalue()
        with replace_file(checks.as_path(path)) as part:
            part.write_text(text.getvalue(), encoding="utf-8")
        return None

    def save(self, path: str | os.PathLike) -> None:
        """Write the table into one ``.npz`` file."""
        columns = self._list_saved()
        rows = [[row[name] for name in columns] for row in self.rows]
        write_npz(path, {"table": {"columns": columns, "rows": rows, "about": self.about}}, {})

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Return the table that ``save`` wrote; ValueError if the file is damaged or another."""
        return cls._from_file(path, read_npz(path)[0])

    @classmethod
    def _from_file(cls, path: str | os.PathLike, meta: dict[str, Any]) -> Self:
        """Return the table of a file with this JSON data."""
        if "table" not in meta:
            raise ValueError(f"{path} holds {name_contents(meta)}, not a table; okl.load reads it")
        table = meta["table"]
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        return cls(rows, table["about"])

    # ---- display ----

    def _format(self) -> tuple[list[str], list[list[str]]]:
        """Return the columns worth printing, and the first rows as texts."""
        names = [
            name
            for name in self._list_saved()
            if name not in NOT_IN_REPR
            and any(row[name] not in DEFAULTS.get(name, (None, "")) for row in self.rows)
        ]
        return names, [[_as_text(row[name]) for name in names] for row in self.rows[:ROWS_IN_REPR]]

    def __repr__(self) -> str:
        names, cells = self._format()
        if not names:
            return f"Table of {len(self)} rows"
        lines = [""] * (1 + len(cells))
        for name, column in zip(names, zip(names, *cells, strict=True), strict=True):
            width, is_number = max(map(len, column)), self[name].dtype.kind in "bif"
            for i, cell in enumerate(column):
                lines[i] += (cell.rjust(width) if is_number else cell.ljust(width)) + "  "
        if len(self) > ROWS_IN_REPR:
            lines.append(f"... {len(self)} rows")
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        names, cells = self._format()
        rows = [[("td", cell) for cell in row] for row in cells]
        return html_table(f"{len(self)} rows", [[("th", name) for name in names], *rows])

    def _list_saved(self) -> list[str]:
        """Return the columns without Runs."""
        runs = {name for row in self.rows for name, cell in row.items() if isinstance(cell, Run)}
        return [name for name in self.columns if name not in runs]

    def _require(self, *names: str) -> None:
        for name in names:
            if name not in self.columns:
                raise ValueError(f"no column {name!r}; there are {', '.join(self.columns)}")

    def _require_numbers(self, name: str) -> None:
        """Raise ValueError unless the table has a column of numbers of this name."""
        if self[name].dtype.kind not in "bif":
            raise ValueError(f"column {name} holds texts or Runs, not numbers to average")

    def _group(self, by: Sequence[str]) -> dict[tuple, list[dict[str, Any]]]:
        self._require(*by)
        groups: dict[tuple, list[dict[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        return groups


def _kind(cell: Cell) -> str:
    if isinstance(cell, Run):
        return "Runs"
    return "texts" if isinstance(cell, str) else "numbers"


def as_cell(value: Any, name: str) -> Cell:
    """Return a value as a cell, NumPy's scalars as Python's."""
    value = checks.as_plain(value)
    valid = value is None or isinstance(value, str | bool | int | float | Run)
    checks.require(valid, name, value, "text, a number, a Run or None in a table")
    return value


def _average(name: str, cells: list[Cell]) -> dict[str, Any]:
    """Return mean and deviation of a group's numbers, or the value that all its rows share."""
    numbers = [cell for cell in cells if isinstance(cell, int | float)]
    if name not in IDENTITY and numbers:
        sd = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None
        return {name: float(np.mean(numbers)), f"{name}_sd": sd}
    return {name: cells[0] if len(set(cells)) == 1 else None}


def _as_text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
