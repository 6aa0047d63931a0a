"""How things are shown: results in one line, hyper-parameters and runs in a small HTML table, bars.

Arrays are shown by their shape only.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from tqdm import tqdm

SHORT = 6  # numbers of an array that are still read
LONGEST = 200  # characters of a value in a table


class Bar(tqdm):
    """A bar of tqdm with a lock of this process alone.

    Forks share tqdm's own, which all bars take, shown or not: one that is killed with it would
    leave the others waiting for ever.
    """

    _lock = threading.RLock()
    monitor_interval = 0  # no thread that looks after bars


if hasattr(os, "register_at_fork"):  # a thread that is gone there may have had it
    os.register_at_fork(after_in_child=lambda: Bar.set_lock(threading.RLock()))


def pandas_for(caller: str, instead: str = "") -> Any:
    """Return pandas; ImportError that says what needs it, and what to do instead, without."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError(f"{caller} needs pandas: pip install pandas{instead}") from error


def cut(text: str, longest: int) -> str:
    """Return a text, or its beginning and dots."""
    return text if len(text) <= longest else f"{text[: longest - 4]} ..."


def short(value: Any) -> str:
    """Return repr(value), or only the shape of an array or a frame too large to read."""
    if isinstance(value, np.generic):
        value = value.item()
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and getattr(value, "size", SHORT + 1) > SHORT:
        name = type(value).__name__.removeprefix("nd")
        return f"<{name} {shape}>"
    return repr(value)


def brief(value: Any, **fields: Any) -> str:
    """Return the name of a result's class and some of its fields."""
    shown = ", ".join(f"{name}={number(field)}" for name, field in fields.items())
    return f"{type(value).__name__}({shown})"


def number(value: Any) -> str:
    """Return a float in four digits, an integer with its thousands, anything else as ``short``."""
    if isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else short(value)


def table(title: str, rows: Mapping[str, Any]) -> str:
    """Return an HTML table of names and values; text is shown as it is, not as HTML."""
    lines = [f"<table><caption>{escape(title)}</caption>"]
    for name, value in rows.items():
        text = value if isinstance(value, str) else number(value)
        lines.append(f"<tr><th>{escape(name)}</th><td>{escape(cut(text, LONGEST))}</td></tr>")
    return "\n".join([*lines, "</table>"])
