"""Named data sets: find, verify, fetch, scale, permute.

A name always means the same numbers: whatever the source, the arrays are compared with the table
in originals.py before they are handed out. Sources, in order:

1. the folder named in the environment variable ``OKLNUMBA_DATA`` (files ``NAME.npz``);
2. the cache: ``OKLNUMBA_CACHE``, else ``XDG_CACHE_HOME/oklnumba``, else ``~/.cache/oklnumba``;
3. the sets that come with the package: magic04, mushrooms, casp;
4. the public original, downloaded, parsed, checked and put into the cache. This takes the extra
   ``pip install "oklnumba[data]"``. ``OKLNUMBA_MIRROR`` replaces the place of the originals: each
   file is then fetched from ``OKLNUMBA_MIRROR/<file name>``.

An archive holds ``X`` (float32, or uint8 where that is exact), ``y`` (int8 labels -1 and +1, or
float32 targets) and ``n_train``; float32 rounds the decimal text of the originals.
"""

import bz2
import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oklnumba.components.scaling import Standardizer
from oklnumba.core.checks import as_float, require, require_seed, shown
from oklnumba.core.display import Bar, table
from oklnumba.core.inputs import as_numbers
from oklnumba.data.originals import SPECS, Spec

__all__ = ["Dataset", "found", "how_to_get", "load", "names", "scale_to"]


def __dir__() -> list[str]:
    return __all__


OWN = Path(__file__).parent
_BLOCK_ROWS = 10_000  # rows read or scaled at once: 5 MB of text for susy
_OPEN: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open}


# --- what users call ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """One data set, as `load` returns it.

    Attributes
    ----------
    X : (n, d) float64 array
        Features, C-contiguous, writable.
    y : (n,) float64 array
        Labels -1 and +1 (classification) or the unscaled targets (regression).
    name : str
        Its name.
    task : str
        "classification" or "regression".
    n_train : int
        Rows of the source's train file; the rest, if any, are its test file. See `load` for
        permuted sets.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    name: str
    task: str
    n_train: int

    def __repr__(self) -> str:
        """Return name, task and shape, not the numbers."""
        n, d = self.X.shape
        return f"Dataset({self.name!r}, {self.task}, n={n}, d={d}, n_train={self.n_train})"

    def _repr_html_(self) -> str:
        n, d = self.X.shape
        kind = {"task": self.task, "rows": n, "columns": d, "n_train": self.n_train}
        if self.task == "classification":
            labels = {"labels +1": f"{100 * float((self.y > 0).mean()):.1f} %"}
        else:
            labels = {"targets": f"{self.y.min():.4g} to {self.y.max():.4g}"}
        return table(f"data set {self.name}", kind | labels)


def names() -> list[str]:
    """Return the names that `load` knows.

    Examples
    --------
    >>> from oklnumba import datasets
    >>> "magic04" in datasets.names()
    True
    """
    return list(SPECS)


def found(name: str) -> bool:
    """Say whether a data set is at hand, so that `load` (which checks it) needs no download.

    Parameters
    ----------
    name : str
        One of `names()`.

    Raises
    ------
    ValueError
        Unknown name.
    NotADirectoryError
        ``OKLNUMBA_DATA`` is set to what is no folder.

    Examples
    --------
    >>> from oklnumba import datasets
    >>> datasets.found("magic04")
    True
    """
    _spec(name)
    return any(path.exists() for path in _places(name))


def how_to_get(name: str) -> str:
    """Return what to do to have a data set at hand.

    Parameters
    ----------
    name : str
        One of `names()`.

    Raises
    ------
    ValueError
        Unknown name.

    Examples
    --------
    >>> from oklnumba import datasets
    >>> datasets.how_to_get("mnist12").split(". ")[0]
    'set OKLNUMBA_DATA to a folder that holds mnist12.npz'
    """
    spec = _spec(name)
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
        A pair: the range to which each feature is scaled over the whole set, as `scale_to` does.
        This looks ahead: the smallest and largest values are those of all rows, the later ones
        too, which an online learner does not know. Papers scale so; a test of how a learner will do
        in use should not. "past": each row is standardised by the mean and the standard deviation
        of the rows before it in the order that `permute` gives, as ``Standardizer().stream(X)``
        does: the first row becomes zeros, and what is beyond 5 standard deviations is cut to them.
        None leaves the features as they are. Targets are never scaled: ``scale_to(data.y, -1, 1)``
        does it.
    permute : int or None
        Seed of a permutation of all rows. Some sets are sorted by class (cod-rna, w8a, magic04,
        spambase, svmguide3), so an online run must permute them first. The permutation mixes the
        source's train and test rows: ``X[:n_train]`` is then a random part of that size.

    Returns
    -------
    Dataset
        With arrays of its own, free to be changed.

    Raises
    ------
    ValueError
        Unknown name, bad `scale` or `permute`, or a file whose content is not this set.
    OSError
        The set is nowhere to be found, or its download failed.

    Notes
    -----
    The module's docstring lists the sources and their order. The full "susy" takes 0.4 GB in the
    cache and at most 1.2 GB of memory while it loads, of which 0.8 GB stay, "higgs" 1.3, 3.8 and
    2.5 GB; ``okl.stream("higgs")`` takes some MB once it is in the cache. These are the two sets
    whose checksums are not known here: shape, finiteness, labels and their balance are checked.

    Examples
    --------
    >>> from oklnumba import datasets
    >>> data = datasets.load("mushrooms", scale=(0, 1), permute=0)
    >>> data
    Dataset('mushrooms', classification, n=8124, d=112, n_train=8124)
    >>> float(data.X.min()), float(data.X.max()), sorted(set(data.y.tolist()))
    (0.0, 1.0, [-1.0, 1.0])
    >>> causal = datasets.load("magic04", scale="past", permute=0)
    >>> causal.X[0].tolist() == [0.0] * 10, float(abs(causal.X).max())
    (True, 5.0)
    """
    spec = _spec(name)
    pair = isinstance(scale, np.ndarray) and scale.shape == (2,)
    pair = pair or isinstance(scale, tuple | list) and len(scale) == 2
    if not pair:
        past = isinstance(scale, str) and scale == "past"
        require(scale is None or past, "scale", scale, "a pair (lo, hi), 'past' or None")
    else:
        scale = _checked_range(*scale)
    if permute is not None:
        permute = require_seed(permute, "permute")
    X, y = _find(name, spec)
    if permute is not None:  # before the cast to float64, where a copy is half as large
        order = np.random.default_rng(permute).permutation(len(y))
        X, y = X[order], y[order]
    return Dataset(_scaled(X, scale), y.astype(np.float64), name, spec.task, spec.n_train)


def _scaled(X: NDArray, scale: tuple[float, float] | str | None) -> NDArray[np.float64]:
    """Return X as float64, scaled as `load` says."""
    if scale is None:
        return X.astype(np.float64, order="C")
    if scale != "past":
        return scale_to(X, *scale)
    scaler, out = Standardizer(), np.empty(X.shape)
    for start in range(0, len(X), _BLOCK_ROWS):
        out[start : start + _BLOCK_ROWS] = scaler.stream(X[start : start + _BLOCK_ROWS])
    return out


def scale_to(values: ArrayLike, lo: float = -1.0, hi: float = 1.0) -> NDArray[np.float64]:
    """Scale linearly so that the smallest value becomes `lo` and the largest `hi`, exactly.

    Parameters
    ----------
    values : (n, d) or (n,) array
        Scaled column by column, or as a whole if 1-D. Not changed.
    lo, hi : float
        The range, lo < hi.

    Returns
    -------
    float64 array of the same shape, C-contiguous
        A constant column becomes 0 if lo <= 0 <= hi, else lo.

    Examples
    --------
    >>> from oklnumba import datasets
    >>> datasets.scale_to([[1, 7], [2, 7], [5, 7]], 0, 1).tolist()
    [[0.0, 0.0], [0.25, 0.0], [1.0, 0.0]]
    >>> y = datasets.scale_to(datasets.load("casp").y)
    >>> float(y.min()), float(y.max())
    (-1.0, 1.0)
    """
    lo, hi = _checked_range(lo, hi)
    out = as_numbers(values, "values")
    own = out is not values and out.base is None  # made by the conversion
    out = np.array(out, order="C", copy=None if own else True)
    if out.ndim not in (1, 2) or out.size == 0:
        raise ValueError(f"values must be a non-empty 1-D or 2-D array, got shape {out.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        low = out.min(axis=0)
        span = out.max(axis=0) - low
    if not np.isfinite(span).all():
        raise ValueError("values differ by more than float64 can hold; divide them first")
    constant = span == 0
    out -= low
    out /= np.where(constant, 1.0, span)
    top = out == 1  # lo + (hi - lo) may miss hi by a rounding, so the upper end is set apart
    out *= hi - lo
    out += lo
    np.minimum(out, hi, out=out)
    np.copyto(out, hi, where=top)
    np.copyto(out, 0.0 if lo <= 0 <= hi else lo, where=constant)
    return out


# --- finding and checking -------------------------------------------------------------------------


def _spec(name: str) -> Spec:
    if not isinstance(name, str) or name not in names():
        close = get_close_matches(name, names(), n=1) if isinstance(name, str) else []
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown data set {shown(name)}{hint}; known are: {', '.join(names())}")
    return SPECS[name]


def _checked_range(lo: float, hi: float) -> tuple[float, float]:
    low, high = as_float(lo), as_float(hi)
    if not (low < high and high - low < np.inf):
        raise ValueError(f"the range needs finite lo < hi, got lo={shown(lo)}, hi={shown(hi)}")
    return low, high


def _cache_folder() -> Path:
    if own := os.environ.get("OKLNUMBA_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "oklnumba"


def _places(name: str) -> dict[Path, str]:
    """Return the files that may hold a set, in order, and what to do about a damaged one."""
    folders = {}
    if given := os.environ.get("OKLNUMBA_DATA"):
        folders[Path(given).expanduser()] = "replace it or unset OKLNUMBA_DATA"
        if not Path(given).expanduser().is_dir():
            raise NotADirectoryError(
                f"OKLNUMBA_DATA is {given!r}, which is no folder; correct or unset it"
            )
    folders[_cache_folder()] = "delete it, then it is fetched again"
    folders[OWN] = "reinstall oklnumba"
    return {folder / f"{name}.npz": advice for folder, advice in folders.items()}


def _find(name: str, spec: Spec) -> tuple[NDArray, NDArray]:
    """Return X and y as stored, from the first source that has the set."""
    places = _places(name)
    for path, advice in places.items():
        if path.exists():
            return _read(path, spec, advice)
    folders = ", ".join(str(path.parent) for path in places)
    return _fetch(name, spec, f"data set {name!r} is in none of {folders}.")


def _read(path: Path, spec: Spec, advice: str) -> tuple[NDArray, NDArray]:
    try:
        # opened here because np.load leaves the file open when the archive is damaged
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            X, y = archive["X"], archive["y"]
        _check(spec, X, y)
    except Exception as err:  # a damaged archive can raise nearly anything
        raise ValueError(f"{path} is damaged or not this data set ({err}): {advice}") from err
    return X, y


def pieces(name: str) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield X and y as stored, checked: in one piece, or a file without a checksum part by part.

    Of such a file the form and the labels are checked before the first row.
    """
    spec = _spec(name)
    large = spec.digest is None
    if large and not found(name):
        _find(name, spec)  # into the cache
    for path, advice in _places(name).items() if large else ():
        if path.exists():
            yield from _parts(path, spec, advice)
            return
    yield _find(name, spec)


def _parts(path: Path, spec: Spec, advice: str) -> Iterator[tuple[NDArray, NDArray]]:
    try:
        with np.load(path, allow_pickle=False) as archive, archive.zip.open("X.npy") as file:
            version, y = np.lib.format.read_magic(file), archive["y"]
            read = np.lib.format.read_array_header_1_0
            shape, by_columns, dtype = read(file)
            if version != (1, 0) or by_columns:
                raise ValueError("X is not in the order of rows")
            _check_form(spec, shape, dtype, y)
            _check_labels(spec, y)
            rows = dtype.itemsize * shape[1]
            for start in range(0, shape[0], _BLOCK_ROWS):
                part = y[start : start + _BLOCK_ROWS]
                yield np.frombuffer(file.read(rows * len(part)), dtype).reshape(len(part), -1), part
    except Exception as err:
        raise ValueError(f"{path} is damaged or not this data set ({err}): {advice}") from err


def _check(spec: Spec, X: NDArray, y: NDArray) -> None:
    """Raise ValueError unless X and y are the arrays that `spec` describes."""
    _check_form(spec, X.shape, X.dtype, y)
    if not np.isfinite([X.min(), X.max(), y.min(), y.max()]).all():
        raise ValueError("expected finite values, found NaN or infinity")
    _check_labels(spec, y)
    if spec.digest is not None and (found := digest(X, y)) != spec.digest:
        raise ValueError(f"expected sha256 {spec.digest}, found {found}")


def _check_form(spec: Spec, shape: tuple[int, ...], dtype: np.dtype, y: NDArray) -> None:
    y_dtype = "<f4" if spec.positives is None else "|i1"
    expected = f"X {spec.shape} {spec.dtype}, y {spec.shape[:1]} {y_dtype}"
    found = f"X {shape} {dtype.str}, y {y.shape} {y.dtype.str}"
    if expected != found:
        raise ValueError(f"expected {expected}, found {found}")


def _check_labels(spec: Spec, y: NDArray) -> None:
    if spec.positives is None:
        return
    positives = int(np.count_nonzero(y == 1))
    if positives + np.count_nonzero(y == -1) != len(y):
        raise ValueError(f"expected labels -1 and 1, found {np.unique(y)[:5].tolist()}")
    if abs(positives - spec.positives) > spec.slack:
        raise ValueError(
            f"expected {spec.positives} rows labelled +1 (give or take {spec.slack}), "
            f"found {positives}"
        )


def digest(X: NDArray, y: NDArray) -> str:
    """Return the sha256 of X, then y, both as stored."""
    out = hashlib.sha256(np.ascontiguousarray(X).data)
    out.update(np.ascontiguousarray(y).data)
    return out.hexdigest()


# --- fetching -------------------------------------------------------------------------------------


def _fetch(name: str, spec: Spec, missing: str) -> tuple[NDArray, NDArray]:
    """Download, parse and check the public original, then put it into the cache."""
    by_hand = f"put {name}.npz into a folder and set OKLNUMBA_DATA to it"
    if not spec.urls:
        raise FileNotFoundError(
            f"{missing} It has no public original to download. {spec.advice} Or {by_hand}."
        )
    try:
        import pooch
        import sklearn.datasets  # noqa: F401  (asked for before the download, not after it)
    except ImportError as err:
        raise FileNotFoundError(
            f"{missing} Downloading it needs {err.name}: "
            f'pip install "oklnumba[data]"; or {by_hand}.'
        ) from err
    download = pooch.HTTPDownloader(progressbar=True, chunk_size=2**20, timeout=60)
    mirror = os.environ.get("OKLNUMBA_MIRROR")
    cache = _cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # all work is done in a folder that vanishes with any error; only a checked file leaves it
        work_folder = tempfile.TemporaryDirectory(dir=cache, prefix=f".{name}-")
    except OSError as err:
        raise OSError(
            f"cannot write to the cache {cache} ({err}): set OKLNUMBA_CACHE to a folder where "
            "you may write"
        ) from err
    with work_folder as work:
        fetched = {}  # url -> file
        for url in spec.urls:
            path = Path(work, url.rsplit("/", 1)[1])
            if mirror:
                url = f"{mirror.rstrip('/')}/{path.name}"
            try:
                download(url, str(path), None)
            except OSError as err:
                raise OSError(
                    f"{missing} The download of {url} failed: {err}. Try again, "
                    f"set OKLNUMBA_MIRROR to a folder that has {path.name}, or {by_hand}."
                ) from err
            fetched[url] = path
        try:
            X, y = parse(name, spec, list(fetched.values()))
            _check(spec, X, y)
        except (ValueError, OSError, EOFError, zlib.error) as err:
            raise ValueError(
                f"{' + '.join(fetched)} is not the original of {name!r} that this version "
                f"knows: {err}. "
                f"Nothing was kept; try again, or {by_hand}."
            ) from err
        # not compressed: that would hardly shrink measured floats, and slow down every load
        archive = Path(work, f"{name}.npz")
        np.savez(archive, X=X, y=y, n_train=spec.n_train)
        os.replace(archive, cache / archive.name)
    return X, y


def parse(name: str, spec: Spec, paths: list[Path]) -> tuple[NDArray, NDArray]:
    """Read the files of an original, block by block, into the arrays as stored."""
    n = spec.shape[0]
    X = np.empty(spec.shape, dtype=spec.dtype)
    y = np.empty(n, dtype="<f4" if spec.positives is None else "|i1")
    filled = 0
    # disable=None: no bar where nobody watches
    with Bar(total=n, desc=f"{name}: reading", unit=" rows", disable=None) as bar:
        for path in paths:
            for features, labels in _blocks(path, spec):
                stop = filled + len(labels)
                if stop > n:
                    raise ValueError(f"expected {n} rows, found at least {stop}")
                if spec.positives is not None:
                    minus, plus = spec.labels
                    if not np.isin(labels, spec.labels).all():
                        raise ValueError(
                            f"expected labels {minus} and {plus}, "
                            f"found {np.unique(labels)[:5].tolist()}"
                        )
                    labels = np.where(labels == plus, 1, -1)
                if spec.unit != 1:
                    features = np.rint(features / spec.unit)
                X[filled:stop] = features
                y[filled:stop] = labels
                bar.update(stop - filled)
                filled = stop
    if filled < n:
        raise ValueError(f"expected {n} rows, found {filled}")
    return X, y


def _blocks(path: Path, spec: Spec) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield the features and the raw labels of some rows at a time."""
    if spec.form == "svmlight":
        from sklearn.datasets import load_svmlight_file

        # the width is given because a file need not use the last columns (a9a.t does not)
        sparse, labels = load_svmlight_file(str(path), n_features=spec.shape[1], zero_based=False)
        features = sparse.toarray()
        yield features[:, list(spec.columns)] if spec.columns else features, labels
        return
    opened = _OPEN.get(path.suffix, open)
    with opened(path, "rt", encoding="ascii") as text:
        rows = (line for line in islice(text, spec.header, None) if not line.isspace())
        while lines := list(islice(rows, _BLOCK_ROWS)):
            table = np.loadtxt(
                lines,
                delimiter="," if spec.form == "csv" else None,
                comments=None,
                usecols=(*spec.columns, spec.target),
                ndmin=2,
            )
            yield table[:, :-1], table[:, -1]
