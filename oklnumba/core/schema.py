"""What a row means: the names of its columns, the values of encoded columns, the classes.

The first rows with names give the schema, by which every later row is read. Arrays have none.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from math import isfinite, nan
from typing import Any, Self

import numpy as np

from oklnumba.core import inputs
from oklnumba.core.checks import number, repr_short, suggest, warn, write_option
from oklnumba.core.inputs import NONE, as_inputs, column_names, find_labels, is_frame

MOST_VALUES = 100  # of an encoded column: rarer ones count as other
PLAIN = str, int, float, Decimal, date, time, np.generic  # of an encoded column of objects
DAILY = "days", "weekday", "day_of_year"  # columns that a date becomes
HOURLY = *DAILY, "hour"
A_DATE = "2026-01-31 or 2026-01-31 13:05"
MOST_NAMED = 12  # columns in a message or a repr
IMPUTE = {"median": 101, "last": 1, "indicator": 101}  # last known values whose median fills a gap
FEWEST_ROWS = 8  # of a piece that is warned of each time, where most of its values are new
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.0*|(?:\.\d*)?[eE][-+]?\d+)")
TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ])?(\d\d:\d\d:\d\d)(\.\d+)?(Z|[-+]\d\d:?\d\d)?")


@dataclass(repr=False)
class Schema:
    """What the rows of a learner, a run or a stream mean.

    Attributes
    ----------
    names : tuple
        Columns of numbers, in the order of the array.
    categories : dict of tuples of str
        Values of each encoded column. After the numbers a row has 0 or 1 for each value. Other
        values are 0 throughout; a missing value is "".
    dates : dict of tuples of str
        What each column of dates becomes, between the numbers and the encoded columns: days since
        1970, the weekday (0 is Monday), the day of the year, and the hour if there are times.
    label : str or None
        Column of the labels, in files.
    classes : tuple or None
        Values of the label; of two values the first is learned as -1, the second as +1.
    ignored : tuple of str
        Other columns of the first file, which are left out.
    reading : dict
        How files are read: the arguments of ``okl.stream`` that were given.
    impute : str or None
        How gaps in columns of numbers are filled, as in ``okl.stream``.
    past : tuple of tuples
        The last known values of each of these columns, in rows that were learned.
    """

    names: tuple[Any, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    label: str | None = None
    classes: tuple[Any, ...] | None = None
    ignored: tuple[str, ...] = ()
    reading: dict[str, Any] = field(default_factory=dict)
    impute: str | None = None
    past: Sequence[Sequence[float]] = field(default=(), compare=False)
    dates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set, compare=False)  # columns with new values

    @property
    def needed(self) -> tuple[Any, ...]:
        """Names of the columns that a row must have."""
        return *self.names, *self.made

    @property
    def made(self) -> tuple[str, ...]:
        """Names of the columns that become others."""
        return *self.dates, *self.categories

    @property
    def columns(self) -> tuple[Any, ...]:
        """Names of the columns of the array."""
        made = (self.dates | self.categories).items()
        flags = [*self.names, *self.dates] if self.impute == "indicator" else []
        others = [f"{name}_{one}" for name, values in made for one in values]
        return *self.names, *others, *(f"{name}_missing" for name in flags)

    @property
    def gaps(self) -> int:
        """How many columns of the array, the first ones, may have gaps."""
        return 0 if self.impute is None else len(self.names) + sum(map(len, self.dates.values()))

    def __repr__(self) -> str:
        parts = [list_names(self.names)] if self.names else []
        parts += [f"{name!r} (date)" for name in self.dates]
        parts += [f"{name!r} ({len(values)} values)" for name, values in self.categories.items()]
        told = {"label": self.label, "classes": self.classes, "impute": self.impute} | self.reading
        parts += [f"{name}={value!r}" for name, value in told.items() if value is not None]
        return f"Schema({', '.join(parts)})"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON data."""
        return {name: value for name, value in asdict(self).items() if name != "_warned"}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return what ``to_json`` wrote."""
        plain = {name: tuple(v) if isinstance(v, list) else v for name, v in data.items()}
        for one in ("categories", "dates"):
            plain[one] = {name: tuple(values) for name, values in data[one].items()}
        return cls(**plain | {"past": tuple(map(tuple, data["past"]))})

    def arrange(self, X: Any) -> Any:
        """Return the columns of X that a row needs, in order: a frame, or numbers by ``stack``.

        X without names is returned unchanged. A dict or a series is one row, (d,).
        """
        if not (columns := column_names(X)) or not self.needed:
            return X
        if is_frame(X) and tuple(map(str, columns)) == self.columns:
            return X
        given = by_text(columns)
        self.refuse_other_names(given, "X" if is_frame(X) else "x")
        chosen = [given[name] for name in self.names]
        if not is_frame(X):
            row = as_named_numbers([X[name] for name in chosen], chosen, gaps=self.gaps > 0)
            return self.stack(row[None], {name: [X[given[name]]] for name in self.made})[0]
        numbers = X.select(chosen) if hasattr(type(X), "select") else X[chosen]
        if self.columns == self.names:
            return numbers
        rows = as_inputs(numbers, gaps=self.gaps) if chosen else np.empty((X.shape[0], 0))
        return self.stack(rows, {name: X[given[name]] for name in self.made})

    def stack(self, numbers: np.ndarray, columns: Any) -> np.ndarray:
        """Return numbers, NaN in gaps, beside what dates, encoded columns and gaps become."""
        dates = [split_dates(columns[name], name, parts) for name, parts in self.dates.items()]
        hot = self.encode(columns) if self.categories else []
        flags = [numbers, *(one[:, 0] for one in dates)] if self.impute == "indicator" else []
        return np.column_stack([numbers, *dates, *hot, *map(np.isnan, flags)])

    def fill(self, X: np.ndarray, learned: Any = False) -> tuple[np.ndarray, Self]:
        """Return rows without gaps, (n, columns), and what rows mean after them.

        A gap is filled by the median of the last known values of its column in ``past`` and in
        rows before that are ``learned``, one bool or (n,); by 0 where there are none.
        """
        if self.impute is None:
            return X, self
        most, later, X = IMPUTE[self.impute], [], inputs.make_dense(X).copy()
        gaps = np.isnan(X[:, : self.gaps])
        for j, past in enumerate(self.past or [()] * self.gaps):
            column, gap = X[:, j], gaps[:, j]
            known = ~gap & learned
            values = [*past, *column[known].tolist()]
            ends, places = np.unique(len(past) + np.cumsum(known)[gap], return_inverse=True)
            filled = [find_median(values[max(n - most, 0) : n]) for n in ends.tolist()]
            column[gap] = np.take(filled, places)
            later.append(tuple(values[-most:]))
        return X, replace(self, past=tuple(later))

    def encode(self, columns: Any) -> list[np.ndarray]:
        """Return each encoded column as a column of 0 and 1 for each of its values, (n, values).

        Other values are 0 throughout. The first one in a column is warned of, and so is each piece
        of rows in which most values are others: they may be written in another way.
        """
        arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
        hot = []
        for name, values in self.categories.items():
            texts = as_texts(columns[name], name)
            places = compute.index_in(texts, value_set=arrow.array(values, "string"))
            places = places.fill_null(-1).to_numpy(zero_copy_only=False)
            hot.append(np.equal.outer(places, np.arange(len(values))).astype(np.float64))
            rows, others = len(places), np.flatnonzero(places < 0)
            rare = len(values) == MOST_VALUES  # others are expected
            most = rows >= FEWEST_ROWS and len(others) > (rows - 1 if rare else rows / 2)
            if most or len(others) and not rare and name not in self._warned:
                self._warned.add(name)
                share = f" in {len(others)} of {rows} rows" * most
                new, taught = texts[int(others[0])].as_py(), list_names(values)
                warn(
                    f"column {name!r} has {new!r}{share}, which is not among the values that the "
                    f"learner was taught: {taught}. Such values count as other: 0 in its columns"
                )
        return hot

    def refuse_other_names(self, given: Iterable[Any], what: str) -> None:
        """Raise ValueError for columns that are missing or unknown."""
        given, taught = dict.fromkeys(given), {*self.needed, *self.ignored, self.label}
        missing = [name for name in self.needed if name not in given]
        unknown = [name for name in given if name not in taught]
        faults = [f"lacks {list_names(missing)}"] if missing else []
        faults += [f"has {list_names(unknown)}, which the learner does not know"] if unknown else []
        if faults:
            hint = suggest(str(unknown[0]), map(str, missing)) if unknown else ""
            if unknown and not missing and what not in ("X", "x"):
                one, label = unknown[0], shlex.quote(str(unknown[0]))
                hint = f"leave such columns out (drop={[one]}, {write_option('drop', one)}) or say "
                hint += f"that they are the labels (label={one!r}, --label {label}); "
            said, names = " and ".join(faults), list_names(self.needed)
            raise ValueError(f"{what} {said}; {hint}the learner was taught {names}")

    def as_signs(self, y: Any) -> Any:
        """Return labels as -1 and +1 where there are two classes, which -1 and +1 may stand for."""
        classes = self.classes or ()
        if len(classes) != 2 or y is None or isinstance(y, inputs.Signs):
            return y
        values, (first, second) = inputs.as_label_array(y), classes
        listed = values.ravel() if values.dtype.kind in "bO" else ()
        are_bools = any(isinstance(one, bool | np.bool_) for one in listed)
        if are_bools and classes == (-1, 1):  # which False and True are for any learner
            return y
        if are_bools and {first, second} != {0, 1}:  # True is no class 1
            values = np.where(find_labels(values), values.astype(str), inputs.NONE)
        signs = (values == 1) | (values == -1) | ~find_labels(values)
        if first not in (1, "1", "1.0") and second not in (-1, "-1", "-1.0") and np.all(signs):
            return y
        return inputs.encode_labels(values, classes, hint=", which this learner was taught")


def find_median(values: list[float]) -> float:
    """Return the median; 0 of no values."""
    ordered = sorted(values) or [0.0]
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else low / 2.0 + high / 2.0  # their sum may overflow


def schema_of(X: Any) -> Schema | None:
    """Return the schema of a frame, a dict or a series with names; None for anything else."""
    names = tuple(map(str, column_names(X)))
    return Schema(names) if names else None


def list_names(names: Iterable[Any]) -> str:
    """Return the first names for a message."""
    names = list(map(repr, names))
    more = [f"... ({len(names)} in all)"] if len(names) > MOST_NAMED else []
    return ", ".join(names[:MOST_NAMED] + more)


def by_text(columns: list[Any]) -> dict[str, Any]:
    """Return names of columns by their texts; ValueError if two have one text."""
    given = {str(one): one for one in columns}
    if len(given) < len(columns):
        names = list_names(columns)
        raise ValueError(f"two columns have one name: {names}; rename one of them")
    return given


def _name_cure(value: Any, name: Any) -> str:
    how = f"okl.run(learner, okl.stream(frame, label=..., encode=[{name!r}]))"
    return f"; for a column of texts let the learner begin with {how}" * isinstance(value, str)


def as_named_numbers(
    values: Sequence[Any], names: Iterable[Any], cure: Callable[[Any, Any], str] = _name_cure,
    gaps: bool = False,
) -> np.ndarray:  # fmt: skip
    """Return finite numbers, (d,); ``cure(value, name)`` says what to do about any other value.

    gaps : whether missing values become NaN.
    """
    values = list(values)
    for k, (value, name) in enumerate(zip(values, names, strict=True)):
        # Most values are floats: the general check is slower.
        if (type(value) is float and isfinite(value)) or isinstance(value, bool | np.bool_):
            continue
        if gaps and inputs.is_gap(value):
            values[k] = nan
        elif not number(value):
            what = f"x has {repr_short(value)} under {name!r}, where a finite number is due"
            raise ValueError(what + cure(value, name))
    return np.array(values, dtype=np.float64)


# ---- encoded columns and dates, by pyarrow ----


def as_arrow(values: Any, name: Any) -> Any:
    """Return a column of values of any type as an Arrow array."""
    arrow = import_module("pyarrow")
    try:
        array = arrow.array(values, from_pandas=True)
        objects = str(getattr(values, "dtype", "")) == "object"
        if objects and arrow.types.is_date(array.type):  # times among them would lose their hours
            if any(isinstance(one, datetime) for one in values):
                raise TypeError
    except (ValueError, TypeError):  # objects of several types
        given = inputs.as_label_array(values)
        if odd := [v for v in given if not isinstance(v, PLAIN) and v is not None]:
            what = f"has {repr_short(odd[0])}, a {type(odd[0]).__name__}, which is not encoded"
            raise ValueError(f"column {name!r} {what}; drop it, or make texts of it") from None
        array = arrow.array(np.where(find_labels(given), given.astype(str), NONE))
    is_odd = isinstance(kind := array.type, arrow.BaseExtensionType)  # as periods of pandas
    if is_odd or arrow.types.is_duration(kind) or arrow.types.is_nested(kind):
        is_period = str(getattr(values, "dtype", "")).startswith("period")
        cure = "dates of it, .dt.to_timestamp()" if is_period else "texts of it"
        raise ValueError(
            f"column {name!r} holds {kind}, which is not encoded; drop it, or make {cure}"
        )
    return getattr(array, "combine_chunks", lambda: array)()


def as_texts(values: Any, name: Any) -> Any:
    """Return a column of values of any type as an Arrow array of texts, "" for missing ones."""
    arrow, array = import_module("pyarrow"), as_arrow(values, name)
    if not arrow.types.is_dictionary(array.type):
        array = array.cast("string").dictionary_encode()
    texts = array.dictionary.cast("string").fill_null("").to_pylist()
    return arrow.array(map(spell_value, texts), "string").take(array.indices).fill_null("")


def split_dates(values: Any, name: Any, parts: Sequence[str] = HOURLY) -> np.ndarray:
    """Return dates of any type, or texts of them, as numbers, (n, parts), with NaN in gaps.

    Where dates have a zone they become those of UTC.
    """
    arrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    array, zone = as_arrow(values, name), None
    array = array.dictionary_decode() if arrow.types.is_dictionary(array.type) else array
    if array.null_count == len(array):
        array = arrow.nulls(len(array))
    kind = str(array.type)
    if "string" in kind:
        texts = compute.replace_substring_regex(array, r"(\.\d{6})\d+", r"\1")  # nanoseconds
        array = compute.if_else(compute.equal(texts, ""), None, texts)
        zoned = compute.match_substring_regex(texts, r":.*(Z|[-+]\d\d:?\d\d)$")
        zone = "UTC" if compute.any(zoned).as_py() else None
    elif not kind.startswith(("date", "timestamp", "null")):
        raise ValueError(f"column {name!r} holds {kind}, not dates such as {A_DATE}")
    try:
        times = array.cast(arrow.timestamp("us", zone), safe=False)
    except ValueError as error:
        what = "numbers, not" if inputs.are_numbers(array.drop_null()) else "other texts than"
        fault = f"column {name!r} has {what} dates such as {A_DATE} ({error})"
        raise ValueError(f"{fault}; pandas.to_datetime reads other dates, in a frame") from error
    times = times.to_numpy(zero_copy_only=False)
    days, day = times.astype("M8[D]"), np.timedelta64(1, "D")
    found = {
        "days": (times - np.datetime64(0, "D")) / day,
        "weekday": (days - np.datetime64(4, "D")) / day % 7,  # of 1970: a Monday
        "day_of_year": (days - days.astype("M8[Y]")) / day + 1,
        "hour": (times - days) / np.timedelta64(1, "h"),
    }
    return np.column_stack([found[one] for one in parts])


def spell_value(text: str) -> str:
    """Return a text that is the same for all spellings of a number, a bool or a time.

    Files write 1 as 1.0 where the column has a gap, true as True, and 12:00 with or without zeros.
    """
    if text.lower() in ("true", "false"):
        return text.lower()
    if text in ("nan", "NaN"):
        return ""
    if NUMBER.fullmatch(text):
        whole, value = text.partition(".")[0], float(text)
        if "e" in text.lower():
            whole = str(int(value)) if value.is_integer() else repr(value)
        return "0" if whole == "-0" else whole
    if found := TIME.fullmatch(text):
        day, clock, fraction, zone = (part or "" for part in found.groups())
        zone = zone.replace(":", "").replace("+0000", "Z")
        clock += fraction.rstrip("0").rstrip(".") + zone
        return day[:10] + f" {clock}" * (clock != "00:00:00") if day else clock
    return text


def find_values(texts: Any) -> tuple[str, ...]:
    """Return the values of a column of texts, the most frequent ones if they are many, sorted."""
    counts = texts.value_counts().to_pylist()
    counts.sort(key=lambda one: (-one["counts"], one["values"]))
    return tuple(sorted(one["values"] for one in counts[:MOST_VALUES]))


def find_parts(texts: Any, name: Any) -> tuple[str, ...]:
    """Return what dates become: without the hour, if it is 0 throughout."""
    return HOURLY if np.any(split_dates(texts, name, ("hour",)) > 0.0) else DAILY
