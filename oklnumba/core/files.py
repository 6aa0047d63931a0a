"""Files of arrays: one ``.npz``, written whole or not at all, with a version and a digest.

A file holds ``format``, the version of this layout, ``meta``, JSON data, the arrays, and last
``digest``, the SHA-256 of all that comes before it, names, shapes and types included. What is read
is trusted in this order: the sizes that the archive claims, against those of the file; the version;
the digest; and then what the classes say of their state (state.py). Files without version and
digest are of an older oklnumba.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.core.checks import as_path

FORMAT = 2  # of the files that are written; 1 had neither version nor digest
PART = ".part"  # how the name of an unfinished file ends
KINDS = "biufU"  # of arrays: bool, integers, floats and text
CHUNK = 2**20  # bytes read in one go
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_turn = itertools.count()  # two threads of a process may save to the same path


class Later(ValueError):
    """What is raised for a file of a later version, in ``refusing``."""


class _Hashed:
    """A file whose bytes, written or read, go into a digest too."""

    def __init__(self, file: Any, digest: Any):
        self.file, self.digest = file, digest

    def write(self, data: Any) -> int:
        """Write bytes."""
        self.digest.update(data)
        return self.file.write(data)

    def read(self, size: int) -> bytes:
        """Read at most so many bytes."""
        data = self.file.read(size)
        self.digest.update(data)
        return data


@contextmanager
def refusing(path: str | os.PathLike) -> Iterator[None]:
    """Turn whatever goes wrong with the contents of a file into one ValueError that names it.

    Raises
    ------
    ValueError
        What is wrong with the file.
    MemoryError
        Where a good file does not fit in memory.
    """
    try:
        yield
    except MemoryError as error:
        size = os.path.getsize(path) / 2**20
        raise MemoryError(
            f"{path}, a file of {size:.3g} MiB, does not fit in memory ({error}); close other "
            "programs or take a larger machine"
        ) from error
    except Later as error:
        raise ValueError(f"{path} {error}") from None
    except Exception as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{path} is not a file that oklnumba saved, or it is damaged: {what}"
        ) from error


# ---- writing ----


def write_npz(path: str | os.PathLike, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write JSON data and arrays into one ``.npz``, whole or not at all.

    Raises
    ------
    ValueError
        If ``path`` is no name of a file.
    FileNotFoundError
        If there is no such folder.
    OSError
        If the file cannot be written, on a full disk say; an old file of that name is as it was.
    """
    with replacing(path) as partial, open(partial, "wb") as file:
        _write({"format": FORMAT, "meta": json.dumps(meta), **arrays}, file)


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Give the place of an unfinished file, which becomes ``path`` once it is written whole.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    """
    path = as_path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no such folder; make it first")
    sweep(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{next(_turn)}{PART}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _write(members: dict[str, Any], file: Any) -> None:
    digest = hashlib.sha256()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in members.items():
            digest.update(name.encode())
            _write_member(archive, name, array, digest)
        _write_member(archive, "digest", digest.hexdigest(), hashlib.sha256())


def _write_member(archive: zipfile.ZipFile, name: str, array: Any, digest: Any) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(_Hashed(member, digest), np.asarray(array), allow_pickle=False)


def sweep(path: str | os.PathLike) -> None:
    """Remove the unfinished files of ``path`` that processes left which are no more.

    Those of living processes stay: they may be saving to the same path at this moment.
    """
    path = Path(path)
    before = f".{path.name}."
    with os.scandir(path.parent) as entries:
        found = [e.name for e in entries if e.name.startswith(before) and e.name.endswith(PART)]
    for name in found:
        process = name.removeprefix(before).removesuffix(PART).partition("-")[0]
        if process.isdecimal() and not _lives(int(process)):
            (path.parent / name).unlink(missing_ok=True)


def _lives(process: int) -> bool:
    """Say whether there is a process of that number; on Windows that cannot be asked."""
    if os.name == "nt":  # a signal of 0 would interrupt it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    return True


# ---- reading ----


def read_npz(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON data and the arrays of a file that ``write_npz`` wrote.

    Raises
    ------
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    ValueError
        If the file is damaged, was not written by oklnumba, or by a later version of it.
    MemoryError
        If the file is good and its arrays do not fit in memory.
    """
    path = as_path(path)
    try:
        file = open(path, "rb")
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:  # a folder
        raise ValueError(f"{path} is not a file that oklnumba saved: {error}") from error
    with file, refusing(path), zipfile.ZipFile(file) as archive:
        members = _members(archive, os.path.getsize(path))
        arrays = _read(archive, members)
        meta = json.loads(str(arrays.pop("meta")))
        if not isinstance(meta, dict):
            raise ValueError("its JSON data is no object")
        return meta, arrays


def _read(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> dict[str, np.ndarray]:
    """Return the arrays, checked against the digest."""
    told, digest, arrays = members.pop("digest", None), hashlib.sha256(), {}
    if "format" in members:  # before all else: what follows may have changed since
        _refuse_later(int(_read_member(archive, members["format"], hashlib.sha256())))
    for name, info in members.items():
        digest.update(name.encode())
        arrays[name] = _read_member(archive, info, digest)
    if arrays.pop("format", None) is not None:
        if told is None:
            raise ValueError("its digest is missing")
        if str(_read_member(archive, told, hashlib.sha256())) != digest.hexdigest():
            raise ValueError("its contents are not those of its digest")
    return arrays


def _refuse_later(version: int) -> None:
    if version > FORMAT:
        raise Later(
            f"was written by a later oklnumba, in the format {version}, and this one reads those "
            f"up to {FORMAT}: update oklnumba"
        )


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, none of which is larger than the file itself."""
    members = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name in members:
            raise ValueError(f"its member {info.filename!r} is none of ours, or there twice")
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its member {info.filename!r} is compressed, which we never do")
        members[name] = info
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its members claim more bytes than it has")
    return members


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, digest: Any) -> np.ndarray:
    with archive.open(info) as member:
        array = read_array(_Hashed(member, digest), info.file_size)
        if member.read(1):  # the archive's own check of a member is at its end
            raise ValueError(f"its member {info.filename!r} is longer than its array")
    return array


def read_array(file: Any, size: int) -> np.ndarray:
    """Return the array that the next bytes of a file, at most ``size``, describe, in NumPy's way.

    Raises
    ------
    ValueError
        If there is none, or it claims more bytes: before room is made for it.
    """
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"it has an array in the format {version}")
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"it has an array of the type {dtype}")
    length = prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or length > size:
        raise ValueError(f"it has an array that claims the shape {shape}, more than there is")
    data = np.empty(length, dtype=np.uint8)
    for start in range(0, length, CHUNK):
        part = file.read(min(CHUNK, length - start))
        data[start : start + len(part)] = np.frombuffer(part, dtype=np.uint8)
        if len(part) < min(CHUNK, length - start):
            raise ValueError("an array of it is cut off")
    return data.view(dtype).reshape(shape, order="F" if fortran else "C")
