"""Files of arrays: one ``.npz`` without pickles, written whole or not at all, with a digest.

A file holds ``meta``, JSON data that starts with the version of this layout, the arrays, and the
SHA-256 of both, which tells damage. Nothing else is checked: load files you trust.
"""

import hashlib
import itertools
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from oklnumba.core.checks import as_path
from oklnumba.core.params import UnknownClass

FORMAT = 3
to_json = partial(json.dumps, default=np.generic.item)  # of NumPy scalars too
_counter = itertools.count()  # two threads may save to the same path


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
    text = to_json({"format": FORMAT} | meta)
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    digest = digest_of(text, arrays)
    whole = arrays | {"meta": np.asarray(text), "digest": np.asarray(digest)}
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in whole.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED if deflates(array) else zipfile.ZIP_STORED
            with archive.open(info, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def deflates(array: np.ndarray) -> bool:
    """Say whether a sample loses a quarter by deflating; most factors lose a tenth, in a second."""
    sample = array.ravel()[:8192].tobytes()
    return len(zlib.compress(sample, 1)) < 0.75 * len(sample)


def leave_out(arrays: dict[str, np.ndarray], compact: bool) -> dict[str, np.ndarray]:
    """Return the arrays of a state without what it derives; compact: U in single precision."""
    arrays = {name: a for name, a in arrays.items() if not name.endswith("_derived")}
    for name, a in arrays.items() if compact else ():
        if name.endswith("_U") and np.abs(a).max(initial=0.0) < np.finfo(np.float32).max:
            arrays[name] = a.astype(np.float32)
    return arrays


@contextmanager
def replace_file(path: str | os.PathLike) -> Iterator[Path]:
    """Give the path of a temporary file that replaces ``path`` when the block ends."""
    path = as_path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist; make it first")
    partial = path.with_name(f".{path.name}.{os.getpid()}-{next(_counter)}.part")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_npz(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON data and the arrays of a file that ``write_npz`` wrote."""
    path = as_path(path)
    with refuse_damage(path):
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("it is not an .npz file; pickle, joblib or np.load may read it")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        text, digest = str(arrays.pop("meta")), str(arrays.pop("digest"))
        meta = json.loads(text)
        if meta["format"] > FORMAT:
            raise ValueError("a later oklnumba wrote it: update oklnumba")
        if digest_of(text, arrays) != digest:
            raise ValueError("its digest does not match its contents")
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
    except UnknownClass as error:
        raise ValueError(f"{path} {error}") from None
    except Exception as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{path} is not a file that oklnumba saved, or it is damaged: {what}"
        ) from error
