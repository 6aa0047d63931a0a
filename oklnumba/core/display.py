"""Short texts: results on one line, hyper-parameters and runs in HTML tables, progress bars."""

import sys
import threading
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from tqdm import tqdm

from oklnumba.core.checks import cut, repr_value


class Bar(tqdm):
    """A bar of tqdm without its monitor thread, and with a lock that other processes do not share.

    A forked process that is killed while it holds a shared lock would block all others.
    """

    _lock = threading.RLock()
    monitor_interval = 0

    def __init__(self, items: Any = None, disable: bool = False, **options: Any) -> None:
        super().__init__(items, disable=disable or sys.stderr is None, **options)


def number(value: Any) -> str:
    """Return a float with four digits, an integer with commas, the repr of anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else repr_value(value)


def repr_fields(value: Any, **fields: Any) -> str:
    """Return the name of a result's class and some of its fields."""
    inside = ", ".join(f"{name}={number(field)}" for name, field in fields.items())
    return f"{type(value).__name__}({inside})"


def html_table(title: str, rows: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return an HTML table of rows of pairs (tag, text), with all text escaped."""
    cells = ("".join(f"<{tag}>{escape(cut(text))}</{tag}>" for tag, text in row) for row in rows)
    lines = [f"<tr>{row}</tr>" for row in cells]
    return "\n".join([f"<table><caption>{escape(title)}</caption>", *lines, "</table>"])


def table(title: str, rows: Mapping[str, Any]) -> str:
    """Return an HTML table of names and values."""
    texts = {name: v if isinstance(v, str) else number(v) for name, v in rows.items()}
    return html_table(title, ((("th", name), ("td", text)) for name, text in texts.items()))
