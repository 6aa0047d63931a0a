"""Which files a source names, and how pyarrow opens them."""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from oklnumba.core import checks
from oklnumba.core.inputs import AMONG_NUMBERS

FORMATS = ("parquet", "csv", "tsv", "ipc", "libsvm")
SUFFIXES = {f".{one}": one for one in FORMATS} | {".pq": "parquet", ".arrow": "ipc"}
SUFFIXES |= {".feather": "ipc", ".svm": "libsvm", ".svmlight": "libsvm"}
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
PACKED = ".zip", ".xz", ".7z", ".zst"
BAD_VALUE = re.compile(r"In CSV column #(\d+): Row #(\d+): .* invalid value '(.*)'")
RENAME = "rename the folder, or pass a list of the files, which leaves names of folders out"
CURES = {  # of what pyarrow says
    "Unable to merge": f"; where a column of the file names its folder, {RENAME}",
    "Not an Arrow file": "; okl.stream(pandas.read_feather({0!r}), label=...) reads Feather V1, "
    "and okl.stream(pyarrow.ipc.open_stream({0!r}).read_all(), label=...) an Arrow stream",
    "straddling object": "; a row is longer than 1 MB: cut its long text, or read the file by "
    "okl.stream(pandas.read_csv({0!r}), label=...)",
}
MARKS = {one: f"delimiter={one!r} (--delimiter {one!r})" for one in ",;|"}  # between columns
MARKS["\t"] = "format='tsv' (--format tsv)"
MAGIC = {  # how files begin that are no text
    b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"PK\x03\x04": ".zip", b"\xfd7zXZ": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst", b"PAR1": "parquet", b"ARROW1": "ipc",
}  # fmt: skip


def list_files(source: Any, format: str | None) -> tuple[list[Path], str]:
    """Return the files of a source in order, and their format."""
    if isinstance(source, str) and source == "-":
        return [_spool(sys.stdin.buffer, source)], format or "csv"
    given = [source] if isinstance(source, str | os.PathLike) else source
    named = isinstance(given, Sequence) and all(isinstance(one, str | os.PathLike) for one in given)
    what = "a file, a folder, a list of files, a frame or a pyarrow Dataset (run takes arrays)"
    checks.require(named and len(given) > 0, "source", source, what)
    found: list[Path] = []
    for one in map(checks.find_path, given):
        matches = [one] if one.exists() else [Path(p) for p in sorted(glob.glob(str(one)))]
        if not matches:
            raise FileNotFoundError(f"{one}: there is no such file or folder")
        for path in matches:
            found += _list_folder(path, set()) if path.is_dir() else [path]
    if not found:
        raise ValueError(f"{given[0]} has no files")
    paths: list[Path] = []
    kinds: set[str] = set()
    for path in found:
        suffix = path.suffix.lower()
        if suffix in PACKED:
            raise ValueError(f"{path} is packed as {suffix}: unpack it, or pack it as .gz")
        suffix = path.with_suffix("").suffix.lower() if suffix in COMPRESSED else suffix
        kinds.add(format or SUFFIXES.get(suffix) or ("" if path.is_file() else "csv"))
        if not path.is_file():
            with open(path, "rb") as pipe:
                path = _spool(pipe, str(path))
        paths.append(path)
    if "" in kinds or len(kinds) > 1:
        fault = f"{', '.join(map(str, paths[:3]))}: the suffixes do not name one format"
        raise ValueError(f"{fault}; pass format= (--format), one of {', '.join(FORMATS)}")
    return paths, kinds.pop()


def _list_folder(folder: Path, seen: set[str]) -> list[Path]:
    """Return the files in a folder and in linked ones, in order, but hidden and empty ones."""
    if (place := os.path.realpath(folder)) in seen:  # a link that leads back
        return []
    seen.add(place)
    files: list[Path] = []
    for one in sorted(folder.iterdir()):
        if one.is_dir():
            files += _list_folder(one, seen)
        elif one.name[0] not in "._" and one.stat().st_size:
            files.append(one)
    return files


def open_dataset(source: Any, paths: list[Path], kind: str, reading: dict[str, Any]) -> Any:
    """Return the pyarrow Dataset of files; below a source that is a folder, "x=1" is a column."""
    arrow = checks.import_optional("pyarrow.dataset", "Parquet, CSV and Arrow files")
    header, encoding = reading.get("header", True), reading.get("encoding", "utf8")
    layout: Any = kind
    base = {}
    if isinstance(source, str | os.PathLike) and (folder := checks.find_path(source)).is_dir():
        base = {"partitioning": "hive", "partition_base_dir": os.path.abspath(folder)}
    if kind in ("csv", "tsv"):
        csv = import_module("pyarrow.csv")
        for option in {"delimiter", "decimal"} & reading.keys():
            checks.require(len(str(reading[option])) == 1, option, reading[option], "one character")
        with naming(f"encoding={encoding!r}"):
            codecs.lookup(encoding)
        delimiter = reading.get("delimiter", "," if kind == "csv" else "\t")
        for path in paths:
            _refuse_other_text(path, reading, delimiter)
        if skip := reading.get("skip"):
            paths = [_skip_lines(path, skip, encoding) for path in paths]
        layout = arrow.CsvFileFormat(
            csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(decimal_point=reading.get("decimal", ".")),
            read_options=csv.ReadOptions(autogenerate_column_names=not header, encoding=encoding),
        )
    files = [os.path.abspath(path) for path in paths]  # no URIs
    local = import_module("pyarrow.fs").LocalFileSystem()
    first = given_name(str(paths[0]))
    with naming(first):
        dataset = arrow.dataset(files, filesystem=local, format=layout, **base)
    names = dataset.schema.names
    if layout is not kind and header and all(re.match(r"[-+.]?\d", name) for name in names):
        fault = f"{first}: the first line holds numbers ({', '.join(names[:4])}, ...), not names"
        raise ValueError(f"{fault}; pass header=False (--no-header), and places, such as label=0")
    return dataset


def reopen(fragment: Any) -> Any:
    """Return a fragment as its file is now: pyarrow remembers the footer of one replaced since."""
    if getattr(fragment, "filesystem", None) is None:  # in memory, or of a buffer
        return fragment
    if hasattr(fragment, "subset") and fragment.num_row_groups < fragment.metadata.num_row_groups:
        return fragment  # the user's, of some rows
    make, keys = fragment.format.make_fragment, fragment.partition_expression
    return make(fragment.path, fragment.filesystem, keys)


def _refuse_other_text(path: Path, reading: dict[str, Any], delimiter: str) -> None:
    """Raise ValueError if a CSV begins in another encoding, or with another delimiter."""
    name = given_name(str(path))
    with naming(name), COMPRESSED.get(path.suffix, open)(path, "rb") as file:
        head = file.read(2**16)
    kind = next((MAGIC[start] for start in MAGIC if head.startswith(start)), "")
    if kind in FORMATS and b"\0" in head:
        raise ValueError(f"{name} is not a text file: pass format={kind!r} (--format {kind})")
    if kind.startswith("."):
        is_once = path.suffix not in COMPRESSED and name == str(path)  # and no pipe
        needs_name = kind in COMPRESSED and is_once
        cure = f"its name must end in {kind}" if needs_name else "unpack it"
        raise ValueError(f"{name} is packed as {kind}: {cure}")
    if not head:
        raise ValueError(f"{name} is empty")
    if "encoding" not in reading:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)  # its end may cut a character
        except UnicodeDecodeError:
            like = "utf-16" if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"
            cure = f"pass its encoding, such as encoding={like!r} (--encoding {like})"
            raise ValueError(f"{name} is not UTF-8: {cure}") from None
    lines = [*head.splitlines()[reading.get("skip", 0) :], b""][:2]  # names, and a row
    if "delimiter" not in reading and delimiter.encode() not in lines[0]:
        for mark, cure in MARKS.items():
            if mark.encode() in lines[0] and (not lines[-1] or mark.encode() in lines[-1]):
                raise ValueError(f"{name} has {mark!r} between columns: pass {cure}")


_spooled: dict[str, tuple[str, Any]] = {}  # names, and files that end with the process


def _spool(pipe: Any, name: str, mode: str = "wb", **text: Any) -> Path:
    file = tempfile.NamedTemporaryFile(mode, **text)
    _spooled[file.name] = name, file
    shutil.copyfileobj(pipe, file)
    file.flush()
    return Path(file.name)


def given_name(path: str) -> str:
    """Return the name by which a file was given, where ``path`` is a copy of it."""
    return _spooled.get(path, (path,))[0]


def _skip_lines(path: Path, count: int, encoding: str) -> Path:
    """Return a temporary file without the first lines, which pyarrow's datasets do not skip."""
    text: Any = {"encoding": encoding, "newline": ""}
    name, unpack = given_name(str(path)), COMPRESSED.get(path.suffix, open)
    with naming(name), unpack(path, "rt", **text) as file:
        for _ in range(count):
            file.readline()
        return _spool(file, name, "w", **text)


@contextmanager
def naming(where: str, fragment: Any = None) -> Iterator[None]:
    """Let errors of pyarrow name the file; in a fragment of CSV, the column and the row too."""
    try:
        yield
    except (OSError, ValueError, TypeError, LookupError, NotImplementedError) as error:
        said = str(error)
        said += "".join(CURES[one].format(where) for one in CURES if one in said)
        if fragment and (found := BAD_VALUE.search(said)):
            column, line, text = found.groups()
            options = fragment.format.default_fragment_scan_options.read_options
            row = int(line) - 1 - (not options.autogenerate_column_names)  # the header is line 1
            name = fragment.physical_schema.names[int(column)]
            said = f"column {name!r} holds text, {text!r} in row {row}{AMONG_NUMBERS}"
        raise ValueError(f"{where}: {said}") from error
