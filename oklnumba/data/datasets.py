"""Named data sets: find, download, check, scale and permute.

A name stands for the same numbers: `load` compares with originals.toml. Sources, in this order:

1. the folder in the environment variable ``OKLNUMBA_DATA`` (files ``NAME.npz``);
2. the cache: ``OKLNUMBA_CACHE``, else ``XDG_CACHE_HOME/oklnumba``, else ``~/.cache/oklnumba``;
3. the sets that come with the package: magic04, mushrooms, casp;
4. the public original, which is downloaded, checked and put into the cache; this needs
   ``pip install pooch scikit-learn``.

A file holds ``X`` (float32, or uint8 if exact), ``y`` (int8 -1 and +1, or float32) and ``n_train``.
"""

import hashlib
import os
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oklnumba.components.scaling import Standardizer
from oklnumba.core import checks
from oklnumba.core.inputs import PLAY_ROWS, as_numbers, cut_blocks

__all__ = ["Dataset", "found", "how_to_get", "load", "names", "scale_to"]

BUNDLED = Path(__file__).parent


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


ORIGINALS = Path(__file__).with_name("originals.toml").read_text("utf-8")
SPECS = {name: Spec(**fields) for name, fields in tomllib.loads(ORIGINALS).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set.

    Attributes
    ----------
    X, y : float64 arrays of shape (n, d), C-contiguous, and (n,)
        Labels are -1 and +1 (classification) or the unscaled targets (regression).
    name : str
    task : {"classification", "regression"}
    n_train : int
        Rows of the source's train file; the others, if any, are its test file.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    name: str
    task: str
    n_train: int

    def __repr__(self) -> str:
        n, d = self.X.shape
        return f"Dataset({self.name!r}, {self.task}, n={n}, d={d}, n_train={self.n_train})"


def names() -> list[str]:
    """Return the names that `load` knows."""
    return list(SPECS)


def found(name: str) -> bool:
    """Return whether `load` can read a data set without downloading it."""
    _get_spec(name)
    return any(path.exists() for path in _list_places(name))


def how_to_get(name: str) -> str:
    """Return instructions to get a data set."""
    spec = _get_spec(name)
    by_hand = f"set OKLNUMBA_DATA to a folder that holds {name}.npz"
    if not spec.urls:
        return f"{by_hand}. {spec.advice}"
    load = f"import oklnumba as okl; okl.datasets.load('{name}')"
    return f'{by_hand}, or download it once: python -c "{load}"'


def load(
    name: str, scale: tuple[float, float] | str | None = (-1, 1), permute: int | None = None
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `names()`.
    scale : (lo, hi), "past" or None
        A pair: `scale_to` scales each feature to this range. Papers scale so, but it looks ahead at
        later rows. "past": ``Standardizer().stream(X)`` scales each row by the rows before it, in
        the order of `permute`. Targets are never scaled: use ``scale_to(data.y)``.
    permute : int or None
        Seed of a permutation of all rows. Sets sorted by class (cod-rna, w8a, magic04, spambase,
        svmguide3) need one before an online run.

    Returns
    -------
    Dataset
        Its arrays are new; change them as you like. "higgs" takes 3.8 GB while it loads.

    Examples
    --------
    >>> data = okl.datasets.load("mushrooms", scale=(0, 1), permute=0)
    >>> data
    Dataset('mushrooms', classification, n=8124, d=112, n_train=8124)
    >>> float(data.X.min()), float(data.X.max()), sorted(set(data.y.tolist()))
    (0.0, 1.0, [-1.0, 1.0])
    """
    spec = _get_spec(name)
    past = isinstance(scale, str) and scale == "past"
    if scale is not None and not past:
        checks.require(np.shape(scale) == (2,), "scale", scale, "a pair (lo, hi), 'past' or None")
        scale = _as_range(*scale)
    if permute is not None:
        permute = checks.require_seed("permute", permute)
    X, y = read(name)
    if permute is not None:  # before the cast to float64, where a copy is half as large
        order = np.random.default_rng(permute).permutation(len(y))
        X, y = X[order], y[order]
    X = X.astype(np.float64, order="C")
    if past:
        scaler = Standardizer()
        for rows, block in cut_blocks(X, PLAY_ROWS):
            X[rows] = scaler.stream(block)
    elif scale is not None:
        _rescale(X, *scale)
    return Dataset(X, y.astype(np.float64), name, spec.task, spec.n_train)


def scale_to(values: ArrayLike, lo: float = -1.0, hi: float = 1.0) -> NDArray[np.float64]:
    """Scale linearly so that the smallest value becomes `lo` and the largest `hi`, exactly.

    Each column of a 2-D array by itself. A constant one becomes 0 if lo <= 0 <= hi, else lo.

    Examples
    --------
    >>> okl.datasets.scale_to([[1, 7], [2, 7], [5, 7]], 0, 1).tolist()
    [[0.0, 0.0], [0.25, 0.0], [1.0, 0.0]]
    """
    lo, hi = _as_range(lo, hi)
    out = np.array(as_numbers(values, "values"), order="C")
    good = out.ndim in (1, 2) and out.size > 0
    checks.require(good, "values", out, "a non-empty 1-D or 2-D array")
    _rescale(out.reshape(len(out), -1), lo, hi)
    return out


def _rescale(values: NDArray[np.float64], lo: float, hi: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        low = values.min(axis=0)
        span = values.max(axis=0) - low
    if not np.isfinite(span).all():
        raise ValueError("values differ by more than float64 can hold; divide them first")
    for rows, block in cut_blocks(values, PLAY_ROWS):
        shares = (block - low) / np.where(span > 0, span, 1.0)
        scaled = np.minimum(shares * (hi - lo) + lo, hi)
        scaled[shares == 1] = hi  # which lo + (hi - lo) may miss by rounding
        values[rows] = np.where(span > 0, scaled, 0.0 if lo <= 0 <= hi else lo)


def _as_range(lo: float, hi: float) -> tuple[float, float]:
    low, high = checks.as_float(lo), checks.as_float(hi)
    checks.require(low < high and high - low < np.inf, "the range", (lo, hi), "finite, lo < hi")
    return low, high


# ---- find and check ----


def _get_spec(name: str) -> Spec:
    if not isinstance(name, str) or name not in SPECS:
        hint, known = checks.suggest(str(name), names()), ", ".join(names())
        fault = f"unknown data set {checks.repr_short(name)}; {hint}there are: {known}"
        raise ValueError(f"{fault}; files are for okl.stream(path, label=...)")
    return SPECS[name]


def _list_places(name: str) -> list[Path]:
    """Return the files that may hold a set, in order; the last but one is in the cache."""
    given, caches = os.environ.get("OKLNUMBA_DATA"), os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    if given and not Path(given).expanduser().is_dir():
        raise NotADirectoryError(f"OKLNUMBA_DATA is {given!r}, not a folder; correct or unset")
    cache = os.environ.get("OKLNUMBA_CACHE") or f"{caches}/oklnumba"
    folders = [Path(one).expanduser() for one in (given, cache, BUNDLED) if one]
    return [folder / f"{name}.npz" for folder in folders]


def read(name: str) -> tuple[NDArray, NDArray]:
    """Return X and y as stored, from the first source that has the set."""
    spec, places = _get_spec(name), _list_places(name)
    for path in places:
        if path.exists():
            try:
                # opened here because np.load leaves the file open when the archive is damaged
                with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                    X, y = archive["X"], archive["y"]
                _check_content(spec, X, y)
            except Exception as err:  # a damaged archive can raise nearly anything
                fault = f"{path} is damaged or not this data set ({err})"
                raise ValueError(f"{fault}: delete or replace it") from err
            return X, y
    folders = ", ".join(str(path.parent) for path in places)
    return _fetch(name, spec, places[-2], f"data set {name!r} is in none of {folders}.")


def _check_content(spec: Spec, X: NDArray, y: NDArray) -> None:
    """Raise ValueError unless X and y are the arrays that `spec` describes."""
    y_dtype = "<f4" if spec.positives is None else "|i1"
    expected = f"X {tuple(spec.shape)} {spec.dtype}, y ({spec.shape[0]},) {y_dtype}"
    got = f"X {X.shape} {X.dtype.str}, y {y.shape} {y.dtype.str}"
    if expected != got:
        raise ValueError(f"expected {expected}, got {got}")
    if not np.isfinite([X.min(), X.max(), y.min(), y.max()]).all():
        raise ValueError("expected finite values, got NaN or infinity")
    if spec.positives is not None:
        ones = np.count_nonzero(y == 1)
        if set(np.unique(y)) != {-1, 1} or abs(ones - spec.positives) > spec.slack:
            raise ValueError(f"expected {spec.positives} labels 1, the others -1; {ones} are 1")
    if spec.digest is not None:
        digest = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()
        if digest != spec.digest:
            raise ValueError(f"expected sha256 {spec.digest}, got {digest}")


# ---- download ----


def _fetch(name: str, spec: Spec, target: Path, missing: str) -> tuple[NDArray, NDArray]:
    """Download the public original with pooch, parse and check it, and write it to a file."""
    if not spec.urls:
        raise FileNotFoundError(f"{missing} No original is public: {how_to_get(name)}")
    by_hand = f"set OKLNUMBA_DATA to a folder that holds {name}.npz"
    what = f"{missing} Download it (or {by_hand})"
    pooch = checks.import_optional("pooch", what)
    checks.import_optional("sklearn.datasets", what)  # or the error would come after the download
    cache, urls = target.parent, " + ".join(spec.urls)
    download = pooch.HTTPDownloader(progressbar=True, chunk_size=2**20, timeout=60)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # This folder vanishes after an error; only a checked file leaves it.
        with tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-") as work:
            paths = [Path(work, url.rsplit("/", 1)[1]) for url in spec.urls]
            for url, path in zip(spec.urls, paths, strict=True):
                download(url, str(path), None)
            try:
                X, y = parse(spec, paths)
                _check_content(spec, X, y)
            except Exception as err:  # a damaged file can raise nearly anything
                fault = f"{urls} is not the original of {name!r} that this version expects: {err}"
                raise ValueError(f"{fault}. Nothing was stored; try again, or {by_hand}.") from err
            # Compression hardly shrinks measured floats, and slows down every load.
            np.savez(Path(work, "done.npz"), X=X, y=y, n_train=spec.n_train)
            os.replace(Path(work, "done.npz"), target)
    except OSError as err:
        fault = f"The download of {urls} into {cache} failed: {err}"
        cure = f"Try again, set OKLNUMBA_CACHE to another folder, or {by_hand}"
        raise OSError(f"{missing} {fault}. {cure}.") from err
    return X, y


def parse(spec: Spec, paths: list[Path]) -> tuple[NDArray, NDArray]:
    """Read the files of an original into the arrays as stored."""
    if spec.form == "svmlight":
        load = checks.import_optional("sklearn.datasets", "LIBSVM files").load_svmlight_files
        # The width is given because a file need not use the last columns (a9a.t does not).
        parts = load([*map(str, paths)], n_features=spec.shape[1], zero_based=False)
        X, y = np.concatenate([part.toarray() for part in parts[::2]]), np.concatenate(parts[1::2])
        X = X[:, list(spec.columns)] if spec.columns else X
    else:
        how: dict[str, Any] = {"usecols": (*spec.columns, spec.target), "skiprows": spec.header}
        how |= {"delimiter": "," if spec.form == "csv" else None, "comments": None, "ndmin": 2}
        numbers = np.concatenate([np.loadtxt(path, "<f4", **how) for path in paths])
        X, y = numbers[:, :-1], numbers[:, -1]
    X = (np.rint(X / spec.unit) if spec.unit != 1 else X).astype(spec.dtype, copy=False)
    if spec.positives is None:
        return X, y.astype("<f4")
    if not np.isin(y, spec.labels).all():
        raise ValueError(f"expected labels {tuple(spec.labels)}, got others")
    return X, np.where(y == spec.labels[1], 1, -1).astype("|i1")
