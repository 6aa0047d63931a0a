"""Files of arrays: one ``.npz`` without pickles, written whole or not at all, with a digest.

A file holds ``meta``, JSON data that starts with the version of this layout, the arrays, and the
SHA-256 of both, which tells damage. Nothing else is checked: load files you trust.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from oklnumba.core.checks import as_path, warn

if sys.platform != "win32":
    import fcntl

FORMAT = 8  # raise it with each change of a layout: tests/test_files.py has a file of each
_seen: dict[Path, tuple[int, ...]] = {}  # the files that this process read or wrote
to_json = partial(json.dumps, default=np.generic.item)  # of NumPy scalars too


def digest_of(meta: str, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of JSON text and arrays: names, types, shapes and bytes."""
    digest = hashlib.sha256(meta.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {arrays[name].shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_npz(path: str | os.PathLike, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write JSON data and arrays into one ``.npz``, whole or not at all."""
    path, old = find_target(path)
    text = to_json({"format": FORMAT} | meta)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    digest = digest_of(text, arrays)
    if old and _seen.get(path, identify(old)) != identify(old):
        warn_of_another(path)
    whole = arrays | {"meta": np.asarray(text), "digest": np.asarray(digest)}
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in whole.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED if deflates(array) else zipfile.ZIP_STORED
            with archive.open(info, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    _seen[path] = identify(path.stat())


def identify(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes when a file is written."""
    return status.st_ino, status.st_mtime_ns, status.st_size


def warn_of_another(path: Path) -> None:
    """Warn that another process wrote a file since this one last read or wrote it."""
    with suppress(ValueError):  # of a file that is not ours
        rounds = read_npz(path)[0].get("rounds")
        wrote = f"another process wrote {path}{f' ({rounds} rounds)' if rounds else ''}"
        cure = "Let one process learn and save, others load"
        warn(f"{wrote} since this one last did; that is replaced now. {cure}")


def deflates(array: np.ndarray) -> bool:
    """Say whether a sample loses a quarter by deflating; most factors lose a tenth, in a second."""
    sample = array.ravel()[:8192].tobytes()
    return len(zlib.compress(sample, 1)) < 0.75 * len(sample)


def find_target(path: str | os.PathLike) -> tuple[Path, os.stat_result | None]:
    """Return the file that a path leads to, and its status if it exists; OSError if no save can be.

    ValueError if it is not a file.
    """
    path = Path(os.path.realpath(as_path(path)))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist; make it first")
    old = path.stat() if path.exists() else None
    if old and not stat.S_ISREG(old.st_mode):
        raise ValueError(f"{path} is not a regular file; name another")
    changed = path if old else path.parent
    if not (os.access(changed, os.W_OK) and changed.stat().st_mode & 0o222):  # root has access
        raise PermissionError(f"{changed} is read-only; make it writable, or name another file")
    return path, old


@contextmanager
def replace_file(path: str | os.PathLike) -> Iterator[Path]:
    """Give the path of a temporary file that replaces ``path`` when the block ends.

    A link stays a link, and a file keeps its mode. Where a rename would cut hard links or
    change the owner, or cannot be, as of a mounted file, the old contents are written over.
    """
    path, old = find_target(path)
    is_beside = not old or os.access(path.parent, os.W_OK)
    folder = path.parent if is_beside else Path(tempfile.gettempdir())
    remove_leftovers(folder)
    partial = folder / f".oklnumba-{secrets.token_hex(8)}.part"
    try:
        with open(partial, "xb") as file:
            if old:
                shutil.copymode(path, partial)
            with suppress(OSError):  # of file systems without locks
                lock_file(file)
            yield partial
            os.fsync(file.fileno())
        try:
            if old and (old.st_nlink, old.st_uid) != (1, partial.stat().st_uid):
                raise OSError("a rename would change them")
            os.replace(partial, path)
        except OSError:
            if not old:
                raise
            with open(partial, "rb") as source, open(path, "r+b") as target:
                shutil.copyfileobj(source, target)
                target.truncate()
                os.fsync(target.fileno())
    except OSError as error:  # of a full disk, which does not name the file
        error.filename = error.filename or str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def lock_file(file: BinaryIO) -> None:
    """Lock a file that is being written; OSError if another process has locked it."""
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@cache  # once a process
def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed."""
    for path in folder.glob(".oklnumba-*.part"):
        with suppress(OSError), open(path, "r+b") as file:
            lock_file(file)
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Let the system write the names of a folder to the disk."""
    with suppress(OSError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def read_npz(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON data and the arrays of a file that ``write_npz`` wrote."""
    path = as_path(path)
    with refuse_damage(path):
        with open(path, "rb") as file:
            found = identify(os.fstat(file.fileno()))
            if not zipfile.is_zipfile(file):
                raise ValueError("it is not an .npz file; pickle, joblib or np.load may read it")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        text, digest = str(arrays.pop("meta")), str(arrays.pop("digest"))
        meta = json.loads(text)
        format = int(meta["format"])
        if format == FORMAT and digest_of(text, arrays) != digest:
            raise ValueError("its digest does not match its contents")
    if format != FORMAT:
        age, cure = ("an earlier", "load it by that") if format < FORMAT else ("a later", "update")
        fault = f"{path} was saved by {age} oklnumba, in format {format}"
        raise ValueError(f"{fault}; this one reads format {FORMAT}: {cure} oklnumba")
    _seen[Path(os.path.realpath(path))] = found
    return meta, arrays


def name_contents(meta: dict[str, Any]) -> str:
    """Return what a file holds; a checkpoint is "a learner and a run"."""
    names = {"spec": "a learner", "run": "a run", "table": "a table"}
    return " and ".join(names[key] for key in names if key in meta)


@contextmanager
def refuse_damage(path: str | os.PathLike) -> Iterator[None]:
    """Turn errors about the contents of a file into one ValueError that names the file."""
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except ImportError as error:  # of a class that is not there
        raise ValueError(f"{path} {error}") from None
    except Exception as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        fault = f"{path} is not a file that oklnumba saved, or it is damaged"
        raise ValueError(f"{fault}: {what}") from error
