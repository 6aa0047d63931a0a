"""Compiled code on disk and in the wheel: it sees every edit in hot/ and gives the same bits."""

import ast
import shutil
import sys
import threading
from pathlib import Path
from typing import NamedTuple
from unittest.mock import Mock

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import caching
from numba.core.registry import cpu_target

from oklnumba.hot.primitives import jit
from tests.checks import COMPILED, ROOT, dispatchers, needs_own_compiler, python, tree

if COMPILED and not jit.PLAIN:
    from oklnumba.hot.primitives import cache

pytestmark = needs_own_compiler
KILLED = Mock(side_effect=KeyboardInterrupt)


# ---- where numba keeps its cache, and the stamp it compares ----


def doubled(decorator=jit.hot):
    """Return a compiled function; each call's has the same place in the cache."""

    @decorator
    def double(x):
        return 2.0 * x

    return double


def hits_and_misses(function):
    return function.stats.cache_hits.total(), function.stats.cache_misses.total()


def test_numba_saves_and_loads_with_our_cache(empty_cache):
    assert type(doubled(numba.njit(cache=True))._cache) is caching.FunctionCache
    assert {type(f._cache) for f in dispatchers().values()} == {cache.FolderCache}
    first, second = doubled(), doubled()
    assert first(2.0) == 4.0 and hits_and_misses(first) == (0, 1)
    assert sorted(path.suffix for path in empty_cache.rglob("*.nb?")) == [".nbc", ".nbi"]
    assert second(2.0) == 4.0 and hits_and_misses(second) == (1, 0)


def test_after_an_edit_old_machine_code_is_not_loaded(empty_cache, monkeypatch):
    assert doubled()(2.0) == 4.0
    monkeypatch.setattr(cache, "stamp_of", lambda path: "of an edited file")
    # Numba writes the index, then the file it names: a process may be killed in between.
    with monkeypatch.context() as patch:
        patch.setattr(caching.IndexDataCacheFile, "_save_data", KILLED)
        with pytest.raises(KeyboardInterrupt):
            doubled()(2.0)
    again, later = doubled(), doubled()
    assert again(2.0) == 4.0 and hits_and_misses(again) == (0, 1)
    assert later(2.0) == 4.0 and hits_and_misses(later) == (1, 0)


class Pair(NamedTuple):
    x: float
    y: float


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_class_of_old_machine_code_may_be_gone(empty_cache, monkeypatch, is_killed):
    def summed():
        @jit.hot
        def total(pair):
            return pair[0] + pair[1]

        return total

    assert summed()(Pair(1.0, 2.0)) == 3.0
    monkeypatch.setattr(cache, "stamp_of", lambda path: "of an edited file")
    if is_killed:  # the new index names old machine code
        with monkeypatch.context() as patch:
            patch.setattr(caching.IndexDataCacheFile, "_save_data", KILLED)
            with pytest.raises(KeyboardInterrupt):
                summed()((1.0, 2.0))
    monkeypatch.delattr(sys.modules[__name__], "Pair")
    first, second = summed(), summed()
    assert first((1.0, 2.0)) == 3.0 and hits_and_misses(first) == (0, 1)
    assert second((1.0, 2.0)) == 3.0 and hits_and_misses(second) == (1, 0)


def test_machine_code_of_another_signature_is_not_loaded(empty_cache):
    # Two processes that compile at once read one index and choose the same file.
    first, second = doubled(), doubled()
    assert (first(2.0), first(2)) == (4.0, 4.0)
    one, other = sorted(empty_cache.rglob("*.nbc"))
    shutil.copy(one, other)
    assert (second(2.0), second(2)) == (4.0, 4.0)
    assert hits_and_misses(second) == (1, 1)


def zero(data, start, stop):
    return data[:start] + bytes(stop - start) + data[stop:]


DAMAGES = {"empty": lambda data: b"", "zeroed": lambda data: bytes(len(data))}
DAMAGES |= {f"cut at {k}/9": lambda data, k=k: data[: len(data) * k // 9] for k in range(1, 9)}
DAMAGES |= {
    f"page {k}/9": lambda data, k=k: zero(data, len(data) * k // 9, len(data) * (k + 1) // 9)
    for k in range(9)
}


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_files_are_compiled_again(suffix, empty_cache, caplog):
    assert doubled()(2.0) == 4.0
    (path,) = empty_cache.rglob(f"*.{suffix}")
    whole = path.read_bytes()
    for name, damage in DAMAGES.items():
        if suffix == "nbi" and name.startswith("page"):  # it is shorter than a page
            continue
        path.write_bytes(damage(whole))
        cache._say_that_it_is_damaged.cache_clear()
        caplog.clear()
        again, later = doubled(), doubled()
        assert again(2.0) == 4.0 and hits_and_misses(again) == (0, 1), name
        assert later(2.0) == 4.0 and hits_and_misses(later) == (1, 0), name
        (said,) = caplog.messages
        assert str(path.parent) in said and "compiled again" in said


def test_a_full_disk_and_a_limit_on_threads_cost_time_only(empty_cache, monkeypatch, caplog):
    full, no_thread = OSError("no space left on device"), RuntimeError("can't start new thread")
    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_data", Mock(side_effect=full))
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=no_thread))
    cache._say_that_nothing_is_stored.cache_clear()
    assert [doubled()(2.0), doubled()(2.0)] == [4.0, 4.0]
    assert len(caplog.messages) == 1 and "set NUMBA_CACHE_DIR" in caplog.messages[0]


def test_without_sources_nothing_is_cached(empty_cache, monkeypatch):
    monkeypatch.setattr(cache, "stamp_of", lambda path: "")
    assert type(doubled()._cache) is caching.NullCache


def test_fields_that_change_places_are_compiled_anew(empty_cache, monkeypatch):
    def difference():
        @jit.hot
        def take(pair):
            return pair.x - pair.y

        return take

    assert difference()(Pair(1.0, 3.0)) == -2.0
    exchanged = NamedTuple("Pair", [(name, float) for name in reversed(Pair._fields)])
    exchanged.__module__ = __name__
    monkeypatch.setattr(sys.modules[__name__], "Pair", exchanged)
    again = difference()
    assert again(Pair(1.0, 3.0)) == 2.0 and hits_and_misses(again) == (0, 1)


def test_a_stamp_knows_all_that_a_file_imports():
    for path in (ROOT / "oklnumba" / "hot").rglob("*.py"):
        names = {n.module or "" for n in ast.walk(tree(path)) if isinstance(n, ast.ImportFrom)}
        files = {ROOT / f"{n.replace('.', '/')}.py" for n in names if n.startswith("oklnumba")}
        assert cache._read(path)[1] == files and all(file.is_file() for file in files)


# ---- a copy of the package: edits, folders that cannot be written, code that it brings ----

FORECAST = """
import json, logging, sys, numba
logging.basicConfig(stream=sys.stderr)
sys.path.insert(0, FOLDER)
numba.__version__ = VERSION
import numpy as np, oklnumba as okl
from oklnumba.hot.kernel_awv import kernel_awv_forecasts as loop  # calls dot of linalg.py
forecasts, rows = np.empty((40, 1)), np.random.default_rng(0).uniform(-1, 1, (40, 2))
loop(rows, np.ones(40), np.ones((1, 2)), 2, 1.0, True, forecasts)
counts = loop.stats.cache_hits.total(), loop.stats.cache_misses.total()
if LEVEL:
    from oklnumba.hot.primitives.cache import write_bundled
    write_bundled(LEVEL, loop)
print(json.dumps([okl.__file__, forecasts.ravel().tolist(), counts]))
"""
NOWHERE = {  # root may write everywhere: so the folders are in a device
    "NUMBA_CACHE_DIR": "/dev/null/numba",
    "HOME": "/dev/null/home",
    "XDG_CACHE_HOME": "/dev/null/cache",
    "PYTHONDONTWRITEBYTECODE": "1",
}
HOST = llvm.get_host_cpu_name()


def forecast(folder, version=numba.__version__, level="", **environment):
    """Forecast with the package in a folder; return the forecasts, and (loads, compilations)."""
    code = FORECAST.replace("FOLDER", repr(str(folder))).replace("VERSION", repr(version))
    environment = {"NUMBA_CACHE_LOCATOR_CLASSES": None} | environment
    code = code.replace("LEVEL", repr(level))
    file, forecasts, counts = python(code, cwd=folder, **environment)
    assert Path(file).parent.parent == folder
    return forecasts, tuple(counts)


@pytest.fixture
def copy(tmp_path):
    """Return a folder with a copy of the package; ``__pycache__`` is a file, so not writable."""
    leave = shutil.ignore_patterns("__pycache__", "compiled")
    shutil.copytree(ROOT / "oklnumba", tmp_path / "oklnumba", ignore=leave)
    for path in ("hot", "hot/primitives"):
        (tmp_path / "oklnumba" / path / "__pycache__").write_text("no folder")
    return tmp_path


def edit(folder, name, old, new):
    """Replace a text in a file of hot/."""
    path = folder / "oklnumba" / "hot" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.slow
def test_an_edit_compiles_again_what_it_touches_and_nothing_else(copy):
    folder = {"NUMBA_CACHE_DIR": str(copy / "cache")}
    before, counts = forecast(copy, **folder)
    assert counts == (0, 1)
    edit(copy, "krls.py", '"""', '""" ')
    assert forecast(copy, **folder) == (before, (1, 0))
    edit(copy, "primitives/linalg.py", "    return s\n", "    return 2.0 * s\n")
    after, counts = forecast(copy, **folder)
    assert after == [2.0 * one for one in before] and counts == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("plain", ["0", "1"])
def test_it_works_where_no_cache_folder_is_writable(copy, plain):
    forecasts, counts = forecast(copy, OKLNUMBA_PLAIN_JIT=plain, **NOWHERE)
    assert np.isfinite(forecasts).all() and counts == (0, 1)
    assert not list(copy.rglob("*.nbi"))


def test_machine_code_in_the_package_counts_only_if_it_fits(empty_cache, monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "BUNDLE", tmp_path)
    monkeypatch.setattr(cache, "_able", lambda _: ["level"])
    loop = doubled()
    loop(2.0)
    loop._cache.flush()
    assert not cache.has_code(loop)
    cache.write_bundled("level", loop)
    assert cache.has_code(loop)
    monkeypatch.setattr(cache, "stamp_of", lambda path: "of an edited file")
    assert not cache.has_code(doubled())


@pytest.mark.slow
def test_machine_code_in_the_package_is_taken_unless_something_differs(copy):
    level = "x86-64-v3"
    features = ",".join(cache.LEVELS[level])
    if not set(cache.LEVELS[level]) <= set(
        cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    ):
        pytest.skip("this processor cannot run it")
    made = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features}
    first, counts = forecast(copy, level=level, **NOWHERE, **made)
    assert counts == (0, 1)
    assert forecast(copy, **NOWHERE) == (first, (1, 0))
    assert forecast(copy, NUMBA_CACHE_DIR=str(copy / "cache")) == (first, (1, 0))
    others = {"NUMBA_CPU_NAME": HOST}, {"NUMBA_ENABLE_AVX": "0"}, {"NUMBA_BOUNDSCHECK": "1"}
    for other in (*others, {"NUMBA_OPT": "2"}, {"version": "0.68.99"}):
        forecasts, counts = forecast(copy, **NOWHERE, **other)
        np.testing.assert_allclose(forecasts, first, rtol=1e-13)
        assert counts == (0, 1), other
    edit(copy, "primitives/linalg.py", "    return s\n", "    return 2.0 * s\n")
    assert forecast(copy, **NOWHERE) == ([2.0 * one for one in first], (0, 1))


PLAY = """
import hashlib, io, json, logging
said = io.StringIO()
logging.getLogger("oklnumba").addHandler(logging.StreamHandler(said))
import oklnumba as okl
from oklnumba.hot.primitives import compiler
from tests.battery import by_hand, contents, stream
from tests.checks import dispatchers

compiler.SILENT_SECONDS = 0.0  # so that it is said on a fast machine too
learner, other = (okl.PKAWV(okl.FourierFeatures(12)) for _ in range(2))  # all decorators of jit.py
X, y = stream(learner, 300)
run = okl.run(learner, X, y)
arrays = run.predictions, run.losses, run.sizes, learner.predict(X), *by_hand(other, X, y)
seen = [a.tobytes() for a in arrays], contents(learner)
found = hashlib.sha256(repr(seen).encode()).hexdigest()
counts = {
    name: (f.stats.cache_hits.total(), f.stats.cache_misses.total())
    for name, f in dispatchers().items() if f.signatures
}
print(json.dumps([found, counts, said.getvalue()]))
"""


@pytest.mark.slow
def test_a_process_that_loads_has_the_bits_of_one_that_compiled_which_says_so_once(tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_CACHE_LOCATOR_CLASSES": None}
    folder |= {"NUMBA_CPU_NAME": HOST}  # so that nothing comes from oklnumba/compiled
    (cold, compiled, first), (warm, loaded, second) = (python(PLAY, **folder) for _ in range(2))
    assert cold == warm
    assert compiled.keys() == loaded.keys() and len(loaded) > 3
    assert all(hits == 0 and misses > 0 for hits, misses in compiled.values())
    assert all(hits > 0 and misses == 0 for hits, misses in loaded.values())
    assert first.count("\n") == 1 and "compiles loops at their first use" in first
    assert second == ""
