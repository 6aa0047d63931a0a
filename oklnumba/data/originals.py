"""Description of each data set and of its public original: originals.toml."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Spec:
    """Description of a data set and of its public original."""

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


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SPECS = {
    name: Spec(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
    for name, fields in _TABLE.items()
}
