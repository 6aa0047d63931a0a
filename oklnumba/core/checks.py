"""Input checks: what was wrong, where, and what to do. They raise before anything has changed."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.core.display import cut

LONGEST_SHOWN = 100  # characters of a value in a message
MOST = 2**63 - 1  # of a count: compiled loops count in 64 bits

try:
    import resource
except ImportError:  # not on Windows
    resource = None


def shown(value: Any) -> str:
    """Return repr(value) on one line that can be read, for messages."""
    if has_shape(value) and value.shape:
        return f"an array of shape {value.shape}"
    try:
        text = repr(value)
    except Exception:  # an integer of thousands of digits, an object of a broken class
        return f"an object of class {type(value).__name__} that cannot be shown"
    return cut(" ".join(text.split()), LONGEST_SHOWN)


def has_shape(value: Any) -> bool:
    """Say whether a value has a shape as an array has, not as the module NumPy or a class has."""
    return isinstance(getattr(value, "shape", None), tuple)


def require(valid: bool, name: str, value: Any, domain: str) -> None:
    """Raise ValueError unless a hyper-parameter is in its domain."""
    if not valid:
        scalar = isinstance(value, np.ndarray) and value.size == 1
        hint = f"; pass the number in it, {name}={value.item()!r}" if scalar else ""
        raise ValueError(f"{name} must be {domain}, but is {shown(value)}{hint}")


# ---- one number ----


def as_number(value: Any) -> int | float | None:
    """Return a real number as Python's own int or float; None for what is none.

    Of NumPy, of fractions and decimals too; not a bool, a text, an array or a span of time.
    """
    if isinstance(value, bool | np.timedelta64):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating | Fraction | Decimal):
        try:
            return float(value)
        except (ValueError, OverflowError):  # a signalling NaN; a fraction that no float holds
            return None
    return None


def as_float(value: Any) -> float:
    """Return a real number as a float, NaN for what is none or too large: no test holds of it."""
    found = as_number(value)
    try:
        return math.nan if found is None else float(found)
    except OverflowError:  # an integer that no float holds
        return math.nan


def number(value: Any) -> bool:
    """Say whether a value is a finite real number (and not a bool)."""
    return math.isfinite(as_float(value))


def require_number(name: str, value: Any) -> float:
    """Return a finite real number as a float; ValueError for anything else."""
    found = as_float(value)
    require(math.isfinite(found), name, value, "a finite number")
    return found


def require_positive(name: str, value: Any) -> float:
    """Return a finite number > 0 as a float; ValueError for anything else."""
    found = as_float(value)
    require(0.0 < found < math.inf, name, value, "a number > 0")
    return found


def require_nonnegative(name: str, value: Any) -> float:
    """Return a finite number >= 0 as a float; ValueError for anything else."""
    found = as_float(value)
    require(0.0 <= found < math.inf, name, value, "a number >= 0")
    return found


def require_within(name: str, value: Any, interval: str) -> float:
    """Return a number of an interval, written as in "(0, 1]", as a float; ValueError if outside."""
    found = as_float(value)
    low, high = map(float, interval[1:-1].split(","))
    above = low < found if interval[0] == "(" else low <= found
    below = found < high if interval[-1] == ")" else found <= high
    require(above and below, name, value, f"a number in {interval}")
    return found


def require_width(value: Any, name: str = "sigma") -> float:
    """Return a width as a float; ValueError unless it is > 0 and its square is no overflow."""
    found = as_float(value)
    require(1e-100 <= found <= 1e100, name, value, "a number > 0 (between 1e-100 and 1e100)")
    return found


def require_discount(value: Any) -> float:
    """Return a discount as a float; ValueError unless in (0, 1] and its inverse no overflow."""
    found = as_float(value)
    domain = (
        "a number in (0, 1] (and >= 1e-100): 1 forgets nothing, 2 ** (-1 / h) halves the weight "
        "of a round every h rounds"
    )
    require(1e-100 <= found <= 1.0, "discount", value, domain)
    return found


def require_count(name: str, value: Any, least: int) -> int:
    """Return an integer >= least that 64 bits hold; ValueError for anything else."""
    found = as_number(value)
    whole = isinstance(found, float) and found.is_integer() and least <= found <= MOST
    hint = f" ({int(found)}, not {value})" if whole else ""
    hint += " (and < 2 ** 63)" if isinstance(found, int) and found > MOST else ""
    valid = isinstance(found, int) and least <= found <= MOST
    require(valid, name, value, f"an integer >= {least}{hint}")
    return found


def require_seed(value: Any, name: str = "seed") -> int:
    """Return a seed, an integer >= 0 of any size; ValueError for anything else."""
    found = as_number(value)
    require(isinstance(found, int) and found >= 0, name, value, "an integer >= 0")
    return found


# ---- what is no number ----


def require_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of some words; ValueError for anything else."""
    known = list(choices)
    words = " or ".join(map(repr, known)) if len(known) < 3 else f"one of {', '.join(known)}"
    require(isinstance(value, str) and value in known, name, value, words)
    return value


def require_list(name: str, values: Any, what: str) -> list[Any]:
    """Return the items of a list, a tuple, a range or a 1-D array; ValueError for anything else."""
    flat = isinstance(values, np.ndarray) and values.ndim == 1
    require(flat or isinstance(values, list | tuple | range), name, values, what)
    return list(values)


def require_different(name: str, values: Any, least: int, what: str) -> list[Any]:
    """Return so many values or more, each once, as a list; ValueError for anything else."""
    rows = isinstance(values, str | bytes) or has_shape(values) and len(values.shape) != 1
    try:
        found = [] if rows else list(values)
        valid = len(found) >= least and len(set(found)) == len(found)
    except TypeError:  # not iterable, or of values that cannot be told apart
        found, valid = [], False
    require(valid, name, values, what)
    return found


def require_flag(name: str, value: Any) -> bool:
    """Return a truth value; ValueError for what is neither True nor False."""
    require(isinstance(value, bool | np.bool_), name, value, "True or False")
    return bool(value)


def require_instance(name: str, value: Any, kind: type | tuple[type, ...], what: str) -> None:
    """Raise ValueError unless a value is an object of a class; ``what`` says how to get one."""
    require(isinstance(value, kind), name, value, what)


def require_has(name: str, value: Any, attributes: Iterable[str], what: str) -> None:
    """Raise ValueError unless a value is an object with some attributes."""
    has = all(hasattr(value, attribute) for attribute in attributes)
    require(has and not isinstance(value, type), name, value, what)


def as_path(value: Any, name: str = "path") -> Path:
    """Return where a file is or shall be; ValueError for what names none."""
    found = value if isinstance(value, str | os.PathLike) else None
    text = os.fspath(found) if found is not None else None
    valid = isinstance(text, str) and "\0" not in text and Path(text).name != ""
    require(valid, name, value, "the name of a file, a str or a pathlib.Path")
    return Path(text)


# ---- what would not fit ----


def require_memory(what: str, size: int) -> None:
    """Raise MemoryError, before anything is allocated, for what the machine has no memory for.

    size : int
        Bytes.
    """
    most = memory()
    if size > most:
        raise MemoryError(
            f"{what} needs {told_bytes(size)}, and this machine has {told_bytes(most)}; take less"
        )


def memory() -> int:
    """Return the bytes of memory that this machine has, or that the process may take of it."""
    try:
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this system: no limit is known
        return 2**63
    if resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        most = most if limit == resource.RLIM_INFINITY else min(most, limit)
    return most


def told_bytes(size: int) -> str:
    """Return a number of bytes as people write it: 7.5 TiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} PiB" if size < 1e9 else "more than any machine has"


def formula(function: Callable) -> Callable:
    """Decorate a formula: what overflows on the way is one FloatingPointError that says so."""

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                return function(*args, **kwargs)
        except ArithmeticError as error:
            if isinstance(error, FloatingPointError) and " encountered in " not in str(error):
                raise  # it is not NumPy's, and says more
            name = function.__qualname__.removesuffix(".__init__")
            raise FloatingPointError(
                f"{name} leaves the range of double precision for these arguments; "
                "scale them to numbers of moderate size"
            ) from error

    return told
