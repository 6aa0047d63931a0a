"""Files of arrays: one ``.npz`` without pickles, written whole or not at all, with a digest.

A file holds ``meta``, JSON data that starts with the version of this layout, the bytes of the
arrays (``pack``), and the SHA-256 of both, which tells damage. Nothing else is checked: load files
you trust.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from oklnumba.core.checks import UnknownClass, as_path, warn

if sys.platform != "win32":
    import fcntl

FORMAT = 10  # raise it with each change of a layout: tests/test_files.py has a file of each
SAMPLE = 4096  # bytes that tell whether others deflate
_seen: dict[Path, tuple[int, ...]] = {}  # the files that this process read or wrote
to_json = partial(json.dumps, default=np.generic.item)  # of NumPy scalars too


def digest_of(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of a text and arrays: names, types, shapes and bytes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {arrays[name].shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write_npz(path: str | os.PathLike, meta: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write JSON data and arrays into one ``.npz``, whole or not at all."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    kinds = {name: [array.dtype.str, array.shape] for name, array in arrays.items()}
    text = to_json({"format": FORMAT, "arrays": kinds} | meta)
    digest = hashlib.sha256(text.encode())
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        with archive.open("arrays", "w", force_zip64=True) as file:
            for array in arrays.values():
                for data in pack(array):
                    digest.update(data)
                    file.write(data)
        for name, one in (("meta", text), ("digest", digest.hexdigest())):
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as file:
                np.lib.format.write_array(file, np.asarray(one), allow_pickle=False)


def split_bytes(array: np.ndarray) -> np.ndarray:
    """Return a view of the bytes of an array: all first ones of its numbers, all second ones, ...

    A table goes column by column. So bytes that are like each other stand together: deflating
    shortens signs, exponents and whole numbers, where digits of fractions stand apart.
    """
    each = np.atleast_1d(array)[..., None].view(np.uint8)
    return each.T if array.ndim == 2 else np.moveaxis(each, -1, 0)


def pack(array: np.ndarray) -> list[bytes]:
    """Return the lengths of parts, and the parts: ``split_bytes``, deflated where that pays."""
    parts = [part.tobytes() for part in split_bytes(np.ascontiguousarray(array))]
    for k, part in enumerate(parts):
        sample = part[:SAMPLE]
        if len(deflate(sample)) < 0.8 * len(sample):
            parts[k] = min(part, deflate(part), key=len)
    return [np.array([*map(len, parts)], dtype="<i8").tobytes(), *parts]


def deflate(data: bytes) -> bytes:
    """Return data deflated: by runs alone it is as short here, in a fifth of the time."""
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    return packer.compress(data) + packer.flush()


def unpack(read: Callable[[int], bytes], kind: str, shape: list[int]) -> np.ndarray:
    """Return the array of which ``pack`` returned the bytes; read(count) returns the next ones."""
    array = np.empty(shape, dtype=kind)
    lengths = np.frombuffer(read(8 * array.itemsize), dtype="<i8")
    for part, length in zip(split_bytes(array), lengths.tolist(), strict=True):
        data = read(length)
        plain = data if length == part.size else zlib.decompress(data)
        part[...] = np.frombuffer(plain, dtype=np.uint8).reshape(part.shape)
    return array


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


def find_target(path: str | os.PathLike) -> tuple[Path, os.stat_result | None]:
    """Return the file that a path leads to, and its status if it exists; OSError if no save can be.

    ValueError if it is not a file.
    """
    path = Path(os.path.realpath(as_path(path)))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist; make it first")
    old = path.stat() if os.path.lexists(path) else None  # OSError of a link that leads to itself
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
    if old and _seen.get(path, identify(old)) != identify(old):
        warn_of_another(path)
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
    _seen[path] = identify(path.stat())


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
    with refuse_damage(path), open(path, "rb") as file:
        found = identify(os.fstat(file.fileno()))
        if not zipfile.is_zipfile(file):
            raise ValueError("it is not an .npz file; pickle, joblib or np.load may read it")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            text = str(archive["meta"])
            meta = json.loads(text)
            format = int(meta["format"])
            if format == FORMAT:
                arrays = read_arrays(archive, text, meta.pop("arrays"))
    if format != FORMAT:
        age, cure = ("an earlier", "load it by that") if format < FORMAT else ("a later", "update")
        fault = f"{path} was saved by {age} oklnumba, in format {format}"
        raise ValueError(f"{fault}; this one reads format {FORMAT}: {cure} oklnumba")
    _seen[Path(os.path.realpath(path))] = found
    return meta, arrays


def read_arrays(archive: Any, text: str, kinds: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of an open file; text : its JSON data; kinds : types and shapes there."""
    digest = hashlib.sha256(text.encode())

    def read(count: int) -> bytes:
        digest.update(data := file.read(count))
        return data

    with archive.zip.open("arrays") as file:
        arrays = {name: unpack(read, *kind) for name, kind in kinds.items()}
    if digest.hexdigest() != str(archive["digest"]):
        raise ValueError("its digest does not match its contents")
    return arrays


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
    except UnknownClass as error:
        raise ValueError(f"{path} {error}") from None
    except ImportError as error:
        raise ImportError(f"{path} needs a library that is missing: {error}") from error
    except Exception as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        fault = f"{path} is not a file that oklnumba saved, or it is damaged"
        raise ValueError(f"{fault}: {what}") from error
