"""What each data set is, and how its public original becomes the arrays: originals.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Spec:
    """What a set is, and how its public original becomes the arrays."""

    shape: Sequence[int]
    dtype: str  # of X as stored
    n_train: int
    digest: str | None = None  # sha256 of the bytes of X, then y, both as stored
    positives: int | None = None  # rows labelled +1; None: a regression set
    slack: int = 0  # allowed error of `positives`
    urls: Sequence[str] = ()  # the files of the original, rows in this order
    form: str = "svmlight"  # or "csv", "space"
    labels: Sequence[float] = (-1, 1)  # the original's labels for -1 and +1
    columns: Sequence[int] = ()  # of X in the original; empty: all (svmlight only)
    target: int = 0  # column of y in the original (csv, space)
    header: int = 0  # lines to skip (csv, space)
    unit: float = 1.0  # the original stores X times this
    advice: str = ""  # if there is no url: how to get the set

    @property
    def task(self) -> str:
        """Either "regression" or "classification"."""
        return "regression" if self.positives is None else "classification"


def _read_table() -> dict[str, Spec]:
    table = tomllib.loads(
        resources.files("oklnumba.data").joinpath("originals.toml").read_text("utf-8")
    )
    for fields in table.values():
        fields |= {name: tuple(v) for name, v in fields.items() if isinstance(v, list)}
    return {name: Spec(**fields) for name, fields in table.items()}


SPECS = _read_table()
