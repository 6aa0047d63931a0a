"""Where compiled loops are kept: in numba's cache on disk and in the package; see jit.py.

Machine code is used again only if nothing that it depends on differs: the files of hot/ that its
source imports, the fields of its arguments, numba, Python, numba's settings, the processor.

A wheel brings machine code in ``oklnumba/compiled/`` (.ci/bundle.py makes it) for the levels of
processors below. It comes before numba's cache, so that a wheel has the same bits everywhere; what
it lacks is compiled. Numba's internals are used, which tests/test_numba_assumptions.py checks.
"""

import functools
import hashlib
import logging
import os
import pickle
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numba
from numba import types
from numba.core import caching, compiler, serialize

from oklnumba.hot.primitives.bound import BoundType

HOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^\s*from (oklnumba\.hot\.[\w.]+) import", re.MULTILINE)
SETTINGS = (
    "BOUNDSCHECK",
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DEBUGINFO_DEFAULT",
    "USING_SVML",
)
_PYTHON = sysconfig.get_config_var("EXT_SUFFIX").split(".")[1]  # such as cpython-311-x86_64-linux
BUNDLE = HOT.parent / "compiled" / f"numba-{numba.__version__}-{_PYTHON}"
# The x86-64 psABI's levels, the best first: a processor with these features can run their code.
V3 = "avx avx2 bmi bmi2 cmov cx16 cx8 f16c fma fxsr lzcnt mmx movbe popcnt sahf sse sse2 sse3"
V3 += " sse4.1 sse4.2 ssse3 xsave"
NAMES = {"x86-64-v4": f"{V3} avx512bw avx512cd avx512dq avx512f avx512vl", "x86-64-v3": V3}
LEVELS = {level: [f"+{one}" for one in names.split()] for level, names in NAMES.items()}


@functools.cache
def _read(path: Path) -> tuple[str, set[Path]]:
    """Return the digest of a file and, if it is in hot/, which files of hot/ it imports."""
    text = path.read_text(encoding="utf-8")
    names = IMPORT.findall(text) if HOT in path.parents else []
    files = {HOT.parents[1].joinpath(*name.split(".")).with_suffix(".py") for name in names}
    return hashlib.sha256(text.encode()).hexdigest(), files


@functools.cache
def stamp_of(path: Path) -> str:
    """Return a digest of a source file and all that it imports of hot/; empty in an archive.

    Numba's stamp covers only the file that defines a function: after an edit in linalg.py, loops in
    other files would keep the old machine code. Files outside hot/ may import any of it.
    """
    read, left = {}, {path}
    if HOT not in path.parents:
        left = {*HOT.rglob("*.py"), *([path] if path.is_file() else [])}
    while left:
        file = left.pop()
        try:
            read[file], imports = _read(file)
        except OSError:
            return ""
        left |= imports - read.keys()
    settings = [str(getattr(numba.config, name, None)) for name in SETTINGS]
    return _digest(*settings, *(f"{file.name} {read[file]}" for file in sorted(read)))


def stamp(function) -> str:
    """Return the stamp of a function of Python, empty if nothing may be stored."""
    return stamp_of(Path(function.__code__.co_filename))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def spell(kind) -> str:
    """Return numba's type of an argument, or several, as text, with the fields of NamedTuples.

    Machine code finds a field by its place: if an edit exchanges two fields, it must be made again.
    """
    if isinstance(kind, BoundType):
        return f"Bound({spell(kind.arguments)})"
    if isinstance(kind, types.BaseNamedTuple):
        made = kind.instance_class
        return f"{made.__module__}.{made.__qualname__}{kind.fields}({spell(kind.types)})"
    if isinstance(kind, tuple | types.BaseTuple):
        return ", ".join(map(spell, kind))
    return str(kind)


# ---- machine code in the package ----


def _bundle_name(function) -> str:
    """Return how the names of the files begin that have machine code of a function as it is now."""
    return f"{function.__name__}-{stamp(function)[:16]}-"


def _bundle_path(level: str, function, sig) -> Path:
    """Return the file for the machine code of a function for arguments of these types."""
    return BUNDLE / level / f"{_bundle_name(function)}{_digest(spell(sig))[:16]}"


def write_bundled(level: str, dispatcher) -> None:
    """Write what a function was compiled to in this process into the folder of a level."""
    for sig, compiled in dispatcher.overloads.items():
        path = _bundle_path(level, dispatcher.py_func, sig)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")  # another process may write it too
        partial.write_bytes(serialize.dumps(compiled._reduce()))
        partial.replace(path)


def _able(target_context) -> Iterator[str]:
    """Yield the levels of this processor; none where the user chose another."""
    features = target_context.codegen().magic_tuple()[2].split(",")
    if numba.config.CPU_NAME is None:
        yield from (level for level, needed in LEVELS.items() if set(needed) <= set(features))


def load_bundled(function, sig, target_context):
    """Return the compiled function that the package brings, or None."""
    if not BUNDLE.is_dir():
        return None
    for level in _able(target_context):
        path = _bundle_path(level, function, sig)
        if path.is_file():
            try:
                data = pickle.loads(path.read_bytes())
                return compiler.CompileResult._rebuild(target_context, *data)
            except Exception:
                _say_that_it_is_damaged(BUNDLE)
    return None


# ---- the cache on disk ----


class _Results(caching.CompileResultCacheImpl):
    """What numba caches of a function, with its stamp."""

    def __init__(self, function):
        super().__init__(function)
        self.stamp = stamp(function)

    def reduce(self, data):
        """Return what is written for a compiled function."""
        code = serialize.dumps(super().reduce(data))
        return self.stamp, hashlib.sha256(code).digest(), code

    def rebuild(self, target_context, reduced_data):
        """Return the compiled function, or None if it was written before an edit.

        Numba writes the index before the file that it names: a process killed in between leaves a
        new index that points to old machine code.
        """
        stamp, digest, code = reduced_data
        if stamp != self.stamp:
            return None
        if hashlib.sha256(code).digest() != digest:
            raise ValueError("machine code is damaged")
        return super().rebuild(target_context, pickle.loads(code))


class _Index(caching.IndexDataCacheFile):
    """The file that says where the machine code of a function is; empty if it is damaged."""

    def _load_index(self):
        try:
            return super()._load_index()
        except Exception:
            _say_that_it_is_damaged(self._cache_path)
            return {}


class FolderCache(caching.FunctionCache):
    """Numba's cache of compiled functions, with our stamps, behind what the package brings."""

    _impl_class = _Results

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _Index(self.cache_path, self._impl.filename_base, self._impl.stamp)
        # Numba compares the version before it reads the rest of the index, which names the classes
        # of arguments: an edit may have renamed them.
        self._cache_file._version += self._impl.stamp

    def load_overload(self, sig, target_context):
        """Load machine code without numba's tables for compiling, which take 0.25 s to fill."""
        if bundled := load_bundled(self._py_func, sig, target_context):
            return bundled
        try:
            loaded = self._load_overload(sig, target_context)
        except AttributeError:  # old machine code, of a class that is gone
            return None
        except Exception:
            _say_that_it_is_damaged(self.cache_path)
            return None
        # Two processes that compile at once may write two signatures into one file.
        return loaded if loaded is not None and loaded.signature.args == tuple(sig) else None

    def save_overload(self, sig, data):
        """Store machine code, if the disk is not full."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _say_that_nothing_is_stored()

    def _index_key(self, sig, codegen):
        return *super()._index_key(sig, codegen), spell(sig)


class NoFolder(caching.NullCache):
    """Where no folder is writable: what the package brings, and nothing more."""

    def __init__(self, function):
        self._function = function

    def load_overload(self, sig, target_context):
        """Return what the package brings, or None."""
        return load_bundled(self._function, sig, target_context)

    def save_overload(self, sig, data):
        """Say that the next process compiles again."""
        _say_that_nothing_is_stored()


@functools.cache  # once a process
def _say_that_nothing_is_stored() -> None:
    what = "no folder takes compiled loops, so that every process compiles them again"
    logging.getLogger("oklnumba").warning(f"{what}: set NUMBA_CACHE_DIR")


@functools.cache
def _say_that_it_is_damaged(folder) -> None:
    logging.getLogger("oklnumba").warning(
        f"files in {folder} are damaged: loops are compiled again"
    )


def has_code(loop) -> bool:
    """Return whether the package or the folder has machine code of a loop, as it is now."""
    levels, name = _able(loop.targetctx), _bundle_name(loop.py_func)
    bundled = any(file for level in levels for file in (BUNDLE / level).glob(f"{name}*"))
    return bundled or bool(loop._cache._cache_file._load_index())


def cache_of(function):
    """Return the cache of a function; none without a stamp, as an edit would not be seen."""
    if not stamp(function):
        return caching.NullCache()
    try:
        return FolderCache(function)
    except RuntimeError:
        return NoFolder(function)
