"""The cache of compiled code: it sees every edit in hot/, and gives the bits that were compiled."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

import oklnumba as okl
from oklnumba.hot.primitives import jit
from tests.battery import CASES, by_hand, contents, make, stream
from tests.compiled import COMPILED, ROOT, dispatchers, needs_own_compiler, python, signatures

if COMPILED and not jit.PLAIN:
    from oklnumba.hot.primitives import compiler

pytestmark = needs_own_compiler


# ---- where numba keeps its cache, and the stamp it compares ----


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Return the empty folder that numba keeps its cache in."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def doubled(decorator=jit.hot):
    """Return a compiled function; each call's has the same place in the cache."""

    @decorator
    def double(x):
        return 2.0 * x

    return double


def killed(*_):
    raise KeyboardInterrupt


def hits_and_misses(function):
    return function.stats.cache_hits.total(), function.stats.cache_misses.total()


def test_numba_saves_and_loads_with_our_cache(folder):
    assert type(doubled(numba.njit(cache=True))._cache) is caching.FunctionCache
    assert {type(f._cache) for f in dispatchers().values()} == {compiler.FolderCache}
    first, second = doubled(), doubled()
    assert first(2.0) == 4.0 and hits_and_misses(first) == (0, 1)
    assert sorted(path.suffix for path in folder.rglob("*.nb?")) == [".nbc", ".nbi"]
    assert second(2.0) == 4.0 and hits_and_misses(second) == (1, 0)


def test_after_an_edit_old_machine_code_is_not_loaded(folder, monkeypatch):
    assert doubled()(2.0) == 4.0
    monkeypatch.setattr(compiler, "STAMP", "of an edited folder")
    # Numba writes the index, then the file it names: a process may be killed in between.
    with monkeypatch.context() as patch:
        patch.setattr(caching.IndexDataCacheFile, "_save_data", killed)
        with pytest.raises(KeyboardInterrupt):
            doubled()(2.0)
    again, later = doubled(), doubled()
    assert again(2.0) == 4.0 and hits_and_misses(again) == (0, 1)
    assert later(2.0) == 4.0 and hits_and_misses(later) == (1, 0)


def test_machine_code_of_another_signature_is_not_loaded(folder):
    # Two processes that compile at once read one index and choose the same file.
    first, second = doubled(), doubled()
    assert (first(2.0), first(2)) == (4.0, 4.0)
    one, other = sorted(folder.rglob("*.nbc"))
    shutil.copy(one, other)
    assert (second(2.0), second(2)) == (4.0, 4.0)
    assert hits_and_misses(second) == (1, 1)


def test_the_digest_sees_every_byte_and_every_name(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "__file__", str(tmp_path / "primitives" / "compiler.py"))
    assert compiler._digest_of_folder() == ""  # no sources, as in an archive
    (tmp_path / "primitives").mkdir()
    digests = set()
    folders = (
        {"a.py": "x"},
        {"a.py": "y"},
        {"b.py": "x"},
        {"a.py": "x", "b.py": ""},
        {"a.py": "", "b.py": "x"},
        {"a.py": "xb.py"},
        {"a.py": "x", "primitives/c.py": "x"},
    )
    for files in folders:
        for old in tmp_path.rglob("*.py"):
            old.unlink()
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        digests.add(compiler._digest_of_folder())
    assert len(digests) == len(folders)


def test_without_sources_nothing_is_cached(folder, monkeypatch):
    monkeypatch.setattr(compiler, "STAMP", "")
    assert type(doubled()._cache) is caching.NullCache and jit.cache_folder() is None


# ---- a copy of the package: an edit in another file, folders that cannot be written ----

LEARN = """
import json, sys
sys.path.insert(0, FOLDER)
import numpy as np, oklnumba as okl
from oklnumba.hot.first_order import first_order_rounds as loop
X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
run = okl.run(okl.OGD(), X, np.sign(X[:, 0]))
counts = loop.stats.cache_hits.total(), loop.stats.cache_misses.total()
print(json.dumps([okl.__file__, run.predictions.tolist(), counts]))
"""


def learn(folder, **environment):
    """Play with the package in a folder; return the forecasts, and (loads, compilations)."""
    code = LEARN.replace("FOLDER", repr(str(folder)))
    environment = {"NUMBA_CACHE_LOCATOR_CLASSES": None} | environment
    file, forecasts, counts = python(code, cwd=folder, **environment)
    assert Path(file).parent.parent == folder
    return forecasts, tuple(counts)


@pytest.fixture
def copy(tmp_path):
    """Return a folder with a copy of the package."""
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "oklnumba", tmp_path / "oklnumba", ignore=leave)
    return tmp_path


def test_an_edit_in_another_file_is_seen_and_no_edit_compiles_nothing(copy):
    cache = str(copy / "cache")
    before, counts = learn(copy, NUMBA_CACHE_DIR=cache)
    assert counts == (0, 1)
    assert learn(copy, NUMBA_CACHE_DIR=cache) == (before, (1, 0))
    path = copy / "oklnumba" / "hot" / "primitives" / "linalg.py"
    text = path.read_text(encoding="utf-8")
    assert "    return s\n" in text
    path.write_text(text.replace("    return s\n", "    return 2.0 * s\n", 1), encoding="utf-8")
    after, counts = learn(copy, NUMBA_CACHE_DIR=cache)  # the loop calls dot, in linalg.py
    assert after != before and counts == (0, 1)
    assert learn(copy, NUMBA_CACHE_DIR=str(copy / "empty"))[0] == after


@pytest.mark.parametrize("plain", ["0", "1"])
@pytest.mark.parametrize("chosen", [None, "/dev/null/numba"])
def test_it_works_where_no_cache_folder_is_writable(copy, chosen, plain):
    # root may write everywhere: so __pycache__ is a file here, and the home folder is in a device
    for path in ("hot", "hot/primitives"):
        (copy / "oklnumba" / path / "__pycache__").write_text("no folder")
    forecasts, counts = learn(
        copy,
        NUMBA_CACHE_DIR=chosen,
        HOME="/dev/null/home",
        XDG_CACHE_HOME="/dev/null/cache",
        PYTHONDONTWRITEBYTECODE="1",
        OKLNUMBA_PLAIN_JIT=plain,
    )
    assert np.isfinite(forecasts).all() and counts == (0, 1)
    assert not list(copy.rglob("*.nbi"))


# ---- the same bits from a process that compiles and from one that loads ----

ROUNDS, HALF = 300, 150
BY_HAND = 20


def digest(*things):
    """Return a digest of arrays, to the bit, and of what else has a repr."""
    found = hashlib.sha256()
    for thing in things:
        if isinstance(thing, np.ndarray):
            found.update(f"{thing.dtype} {thing.shape}".encode() + thing.tobytes())
        else:
            found.update(repr(thing).encode())
    return found.hexdigest()


def second_half(learner, X, y):
    """Play the second half; return digests of the forecasts and of the learner."""
    run = okl.run(learner, X[HALF:], y[HALF:])
    return {
        "forecasts": digest(run.predictions),
        "predict": digest(learner.predict(X)),
        "predict_one": digest([learner.predict_one(x) for x in X[:BY_HAND]]),
        "contents": digest(contents(learner)),
    }


def play(folder):
    """Play every case; save, but do not load, after the first half. Return digests of it all."""
    warnings.simplefilter("ignore", UserWarning)  # Taylor features far from the kernel: meant
    found = {}
    for param in CASES:
        (case,) = param.values
        learner, whole = make(case), make(case)
        X, y = stream(learner, ROUNDS)
        learner.partial_fit(X[:HALF], y[:HALF]).save(folder / f"{param.id}.npz")
        run = okl.run(whole, X, y)
        found[param.id] = second_half(learner, X, y) | {
            "run": digest(run.predictions, run.losses, run.sizes, run.mistakes),
            "certificate": digest(*(run.certificate or ())),
            "contents after the run": digest(contents(whole)),
            "by hand": digest(*by_hand(make(case), X[:BY_HAND], y[:BY_HAND])),
        }
    return found


def resume(folder):
    """Load every case after its first half and play the second."""
    warnings.simplefilter("ignore", UserWarning)
    found = {}
    for param in CASES:
        learner = okl.load(folder / f"{param.id}.npz")
        found[param.id] = second_half(learner, *stream(learner, ROUNDS))
    return found


def counts(folder):
    """Return by function how often its machine code was loaded, and how often it was compiled."""
    return {name: hits_and_misses(f) for name, f in dispatchers().items() if signatures()[name]}


# Answers each line, the name of a function above and a folder, with what the function returned.
ANSWERS = """
import json, sys
from pathlib import Path
from tests import test_cache
for line in sys.stdin:
    call, folder = json.loads(line)
    print(json.dumps(getattr(test_cache, call)(Path(folder))), flush=True)
"""


class Process:
    """A process that answers."""

    def __init__(self, cache):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
        environment.pop("NUMBA_CACHE_LOCATOR_CLASSES", None)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", ANSWERS],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.communicate()  # closes its input: it ends

    def ask(self, call, folder="."):
        self.process.stdin.write(json.dumps([call, str(folder)]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the process ended: see what it wrote to stderr"
        return json.loads(line)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return what two processes found, of which the first fills the cache of the second."""
    cache, cold_files, warm_files = (tmp_path_factory.mktemp(n) for n in ("cache", "cold", "warm"))
    found = {}
    with Process(cache) as cold:
        found["cold"] = cold.ask("play", cold_files)
        found["cold, from cold"] = cold.ask("resume", cold_files)
        with Process(cache) as warm:
            found["warm"] = warm.ask("play", warm_files)
            found["warm, from cold"] = warm.ask("resume", cold_files)
            found["warm counts"] = warm.ask("counts")
        found["cold, from warm"] = cold.ask("resume", warm_files)
        found["cold counts"] = cold.ask("counts")
    return found


def test_the_one_process_compiled_everything_and_the_other_nothing(answers):
    cold, warm = answers["cold counts"], answers["warm counts"]
    assert len(cold) > 40 and len(warm) > 40
    assert all(hits == 0 and misses > 0 for hits, misses in cold.values())
    assert all(hits > 0 and misses == 0 for hits, misses in warm.values())


@pytest.mark.parametrize("how", ["warm", "cold, from cold", "warm, from cold", "cold, from warm"])
def test_compiled_loaded_and_resumed_are_the_same_bits(answers, how):
    # "cold" makes the same pause, for where a run is cut, learners that work by blocks of rounds
    # sum in another order.
    assert len(answers[how]) == len(CASES)
    wrong = {
        case: [name for name, value in parts.items() if answers["cold"][case][name] != value]
        for case, parts in answers[how].items()
    }
    assert {case: names for case, names in wrong.items() if names} == {}
