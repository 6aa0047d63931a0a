"""Checks of single arguments: they return a plain value, or raise ValueError with what to do."""

import csv
import io
import math
import numbers
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from difflib import get_close_matches
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
LONGEST = 200  # characters of a text that may be cut
LONGEST_SHOWN = 100  # of a value in a message
SHORT = 6  # larger arrays are shown by their shape
MOST = 2**63 - 1  # of a count: compiled loops count in 64 bits
FEWEST_EQUAL = 30  # labels of a block that is warned of
LONG_SHARE = 0.05  # of the rows, at least, in such a block
DAY = 86_400e6  # microseconds
CHANCE = 1e-6  # that a random order has such a block, at most


class UnknownClass(ValueError):
    """A file names a class that is not there."""


def warn(message: str) -> None:
    """Give a UserWarning that points at the line that called oklnumba, perhaps by other modules."""
    frame, level, ours = sys._getframe().f_back, 1, 1
    while frame:
        if frame.f_globals.get("__name__", "").startswith("oklnumba."):
            ours = level + 1
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=ours + 1)


def warn_of_order(X: Any, y: Any) -> None:
    """Warn if pandas' X and y have one index in two orders: their rows are paired by place."""
    if not all(hasattr(one, "iloc") for one in (X, y)):
        return
    indices = X.index, y.index
    here, there = (i.tz_convert("UTC") if getattr(i, "tz", None) else i for i in indices)
    if not here.equals(there) and here.isin(there).all():
        warn(
            "X and y have the same index in different orders, and rows are paired by place: pass "
            "y.loc[X.index] to pair them by index, y.to_numpy() if their places are right"
        )


def warn_of_time(*tables: Any, counted_by: tuple[str, str] | None = None) -> None:
    """Warn if times that are pandas' index go back: rows are played in their order.

    counted_by : the class that takes rows for steps in time, if any, and what to do about labels:
    warn of times left out.
    """
    for table in tables:
        times: Any = getattr(table, "index", None)
        if getattr(getattr(times, "dtype", None), "kind", "") != "M":
            continue
        back = np.asarray(times[1:] < times[:-1])
        if back.any():
            warn(
                f"the index goes back in time at row {back.argmax() + 1}, and rows are played in "
                "their order: sort X and y, sort_index() in pandas, or reset_index(drop=True) if "
                "the order is meant"
            )
            return
        if counted_by and (row := find_missing_time(times)):
            who, cure = counted_by
            warn(
                f"the index leaves times out: row {row} comes {times[row] - times[row - 1]} after "
                f"the one before, and {who} counts rows; add the rows that are missing, by asfreq "
                f"in pandas, and {cure}, or reset_index(drop=True) if rows are to be counted"
            )
            return


def find_missing_time(times: Any) -> int:
    """Return the first row before which an index of pandas leaves times out; 0 if there is none.

    Months may have any length, and there may be no rows at weekends, or in nights as long as most.
    """
    has_zone = getattr(times, "tz", None) is not None
    utc, local = (times.tz_convert(None), times.tz_localize(None)) if has_zone else (times, times)
    moments, days = np.asarray(utc, "M8[us]"), np.asarray(local, "M8[D]")
    steps, ahead = np.diff(moments).astype(float), np.diff(days).astype(int)
    if np.isnat(days).any() or not (steps > 0).any():
        return 0
    if np.is_busday(days).all():
        steps -= (ahead - np.busday_count(days[:-1], days[1:])) * DAY
    usual, over = np.median(steps[steps > 0]), ahead > 0
    most = np.full(len(steps), 1.5 * usual)
    if over.any() and (night := np.median(steps[over])) > usual:
        most[over] += night
    late = steps > most
    return int(late.argmax()) + 1 if late.any() else 0


def warn_of_block(y: np.ndarray, before: int = 0) -> bool:
    """Warn of a long block of equal labels, which random order would not have; say whether."""
    n = before + len(y)
    least = int(max(FEWEST_EQUAL, LONG_SHARE * n))
    if y.ndim != 1 or len(y) < least:
        return False
    ends = np.flatnonzero(np.append(y[1:] != y[:-1], True)) + 1
    lengths = np.diff(ends, prepend=0)
    rows = int(lengths.max())
    start = int(ends[lengths.argmax()]) - rows
    if rows < least or len(y) * np.mean(y == y[start]) ** rows > CHANCE:
        return False
    warn(
        f"rows {before + start} to {before + start + rows - 1} of {n} all have the same label, "
        "more than by chance; if the rows have no order in time, shuffle them: order = "
        "rng.permutation(len(y)), X[order], y[order], or fit OnlineClassifier with shuffle=True"
    )
    return True


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, or its beginning and dots."""
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


def write_option(name: str, *columns: Any) -> str:
    """Return an option of the command line that takes columns, as a shell reads it.

    They are a row of a CSV, since a name may have a comma; "=" is for one that begins with a dash.
    """
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(columns)
    text = row.getvalue()
    return f"--{name}{'=' if text.startswith('-') else ' '}{shlex.quote(text)}"


def as_plain(value: Any) -> Any:
    """Return Python's number, text or bool of a NumPy scalar; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def repr_value(value: Any) -> str:
    """Return repr(value), or only the shape of an array or a frame too large to read."""
    if type(value) is list:
        return f"[{', '.join(map(repr_value, value))}]"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and getattr(value, "size", SHORT + 1) > SHORT:
        return f"<{type(value).__name__.removeprefix('nd')} {shape}>"
    return repr(as_plain(value))


def repr_short(value: Any) -> str:
    """Return repr(value) on one line for messages; of an array, the shape."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    return cut(" ".join(repr(value).split()), LONGEST_SHOWN)


def repr_type(value: Any) -> str:
    """Return what a value of the wrong kind is, for messages."""
    if isinstance(value, type):
        name = f"{'okl.' * value.__module__.startswith('oklnumba.')}{value.__name__}"
        return f"the class {value.__name__}; make an object of it: {name}(...)"
    libraries = {"sklearn": "scikit-learn", "river": "river"}
    library = libraries.get(type(value).__module__.split(".")[0])
    return f"{library}'s {type(value).__name__}" if library else repr_short(value)


def suggest(word: str, names: Iterable[str]) -> str:
    """Return "did you mean 'NAME'? " if one of the names is close, whatever its case, else ""."""
    same = {name.lower(): name for name in names}
    close = get_close_matches(word.lower(), same, n=1)
    return f"did you mean {same[close[0]]!r}? " if close else ""


def refuse(name: str, value: Any, domain: str) -> NoReturn:
    """Raise ValueError for an argument; ``domain`` says what it must be."""
    raise ValueError(f"{name} must be {domain}, but is {repr_type(value)}")


def require(valid: bool | np.bool_, name: str, value: Any, domain: str) -> None:
    """Raise ValueError unless an argument is valid; ``domain`` says what it must be."""
    if not valid:
        refuse(name, value, domain)


# ---- one number ----


def as_float(value: Any) -> float:
    """Return a real number as a float; NaN, which fails all tests, for anything else."""
    if type(value) is float:
        return value
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, numbers.Real | Decimal):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # an integer that no float holds
        return math.nan


def number(value: Any) -> bool:
    """Say whether a value is a finite real number (and not a bool)."""
    return math.isfinite(as_float(value))


def require_within(name: str, value: Any, interval: str, domain: str | None = None) -> float:
    """Return a number in an interval, written as in "(0, 1]", as a float; ``domain`` words it."""
    real, (low, high) = as_float(value), map(float, interval[1:-1].split(","))
    above = low < real if interval[0] == "(" else low <= real
    below = real < high if interval[-1] == ")" else real <= high
    require(above and below, name, value, domain or f"a number in {interval}")
    return real


require_number = partial(require_within, interval="(-inf, inf)", domain="a finite number")
require_positive = partial(require_within, interval="(0, inf)", domain="a number > 0")
require_nonnegative = partial(require_within, interval="[0, inf)", domain="a number >= 0")
# Its square does not overflow.
require_width = partial(
    require_within, interval="[1e-100, 1e100]", domain="a number > 0 (between 1e-100 and 1e100)"
)
# Its inverse does not overflow.
require_discount = partial(
    require_within,
    interval="[1e-100, 1]",
    domain="a number in (0, 1] (and >= 1e-100): 1 forgets nothing, 2 ** (-1 / h) halves the weight "
    "of a round every h rounds",
)


def require_count(
    name: str, value: Any, least: int, most: float = MOST, domain: str | None = None
) -> int:
    """Return an integer in [least, most]; ``domain`` words it."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(whole and least <= value <= most, name, value, domain or f"an integer >= {least}")
    return int(value)


require_seed = partial(require_count, least=0, most=math.inf)


# ---- other values ----


def require_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of some words."""
    choices = list(choices)
    words = " or ".join(map(repr, choices)) if len(choices) < 3 else f"one of {', '.join(choices)}"
    require(isinstance(value, str) and value in choices, name, value, words)
    return value


def require_list(name: str, values: Any, what: str) -> list[Any]:
    """Return the items of a list, a tuple, a range, or a 1-D array of any library."""
    listing = getattr(values, "tolist", getattr(values, "to_list", None))  # of polars
    if listing and getattr(values, "ndim", 1) == 1:
        return listing()
    require(isinstance(values, list | tuple | range), name, values, what)
    return list(values)


def require_different(name: str, values: Any, least: int, what: str) -> list[Any]:
    """Return ``least`` different values or more as a list."""
    try:
        items = [] if isinstance(values, str | bytes) else list(values)
        valid = len(items) >= least and len(set(items)) == len(items)
    except TypeError:  # not iterable, or not hashable
        items, valid = [], False
    require(valid, name, values, what)
    return items


def require_classes(given: Any) -> tuple[Any, ...]:
    """Return two or more different labels as a tuple, NumPy's values as Python's."""
    what = "at least two different labels, all numbers or all texts, such as ['no', 'yes']"
    labels = list(map(as_plain, require_list("classes", given, what)))
    texts = all(isinstance(one, str) for one in labels)
    same = texts or all(isinstance(one, bool) or number(one) for one in labels)
    require(same, "classes", given, what)
    return tuple(require_different("classes", labels, 2, what))


def require_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    require(isinstance(value, bool | np.bool_), name, value, "True or False")
    return bool(value)


def as_path(value: Any, name: str = "path") -> Path:
    """Return the path of a file."""
    valid = isinstance(value, str | os.PathLike) and Path(value).name != ""
    require(valid, name, value, "the name of a file, a str or a pathlib.Path")
    return find_path(value)


def find_path(path: str | os.PathLike) -> Path:
    """Return a path, without ~ unless that is the name of a file."""
    return Path(path if os.path.exists(path) else os.path.expanduser(path))


def import_optional(module: str, what: str) -> Any:
    """Return a module; where its library is not installed, an ImportError says what needs it."""
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (library, module):  # it is there, but lacks what it needs
            raise
        project = library.replace("sklearn", "scikit-learn")
        raise ImportError(f"{what}: this needs {project}, pip install {project}") from error


def refuses_overflow(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a formula: overflows become one FloatingPointError that says so."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with np.errstate(all="raise", under="ignore"):
                return function(*args, **kwargs)
        except ArithmeticError as error:
            if isinstance(error, FloatingPointError) and " encountered in " not in str(error):
                raise  # ours, which says more than NumPy's
            name = function.__qualname__.removesuffix(".__init__")
            fault = f"{name} leaves the range of double precision for these arguments"
            raise FloatingPointError(f"{fault}; scale them to moderate size") from error

    return call
