"""The cache of compiled code: it sees every edit in hot/, and gives the bits that were compiled."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

import oklnumba as okl
from oklnumba.hot.primitives import jit
from tests.battery import CASES, SAMPLERS, by_hand, contents, make, stream
from tests.compiled import KIND, dispatchers, signatures
from tests.test_numba_assumptions import python

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")

ROOT = Path(__file__).parent.parent
HOT = ROOT / "oklnumba" / "hot"


# ---- where numba keeps its cache, and the stamp it compares ----


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Return an empty folder that numba keeps its cache in."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def doubled(decorator):
    """Return a function with a decorator; each has the same place in the cache."""

    @decorator
    def double(x):
        return 2.0 * x

    return double


def killed(*_):
    raise KeyboardInterrupt


def hits_and_misses(function):
    return function.stats.cache_hits.total(), function.stats.cache_misses.total()


def test_our_cache_is_where_numba_keeps_its_own(folder):
    assert type(doubled(numba.njit)._cache) is caching.NullCache
    assert type(doubled(numba.njit(cache=True))._cache) is caching.FunctionCache
    assert {type(f._cache) for f in dispatchers().values()} == {jit.FolderCache}


def test_numba_saves_and_loads_with_our_cache(folder):
    first, second = doubled(jit.hot), doubled(jit.hot)
    assert first(2.0) == 4.0 and hits_and_misses(first) == (0, 1)
    assert sorted(path.suffix for path in folder.rglob("*.nb?")) == [".nbc", ".nbi"]
    assert second(2.0) == 4.0 and hits_and_misses(second) == (1, 0)


def test_another_stamp_compiles_anew(folder, monkeypatch):
    assert doubled(jit.hot)(2.0) == 4.0
    monkeypatch.setattr(jit, "STAMP", "of an edited folder")
    edited, again = doubled(jit.hot), doubled(jit.hot)
    assert edited(2.0) == 4.0 and hits_and_misses(edited) == (0, 1)
    assert again(2.0) == 4.0 and hits_and_misses(again) == (1, 0)


def test_machine_code_of_before_an_edit_is_not_taken_for_that_of_today(folder, monkeypatch):
    # Numba writes the index, then the file it names: a process may be killed in between.
    assert doubled(jit.hot)(2.0) == 4.0
    with monkeypatch.context() as patch:
        patch.setattr(jit, "STAMP", "of an edited folder")
        patch.setattr(caching.IndexDataCacheFile, "_save_data", killed)
        with pytest.raises(KeyboardInterrupt):
            doubled(jit.hot)(2.0)
    monkeypatch.setattr(jit, "STAMP", "of an edited folder")
    again, later = doubled(jit.hot), doubled(jit.hot)
    assert again(2.0) == 4.0 and hits_and_misses(again) == (0, 1)
    assert later(2.0) == 4.0 and hits_and_misses(later) == (1, 0)


def test_machine_code_of_another_signature_is_not_taken(folder):
    # Two processes that compile at once read one index and choose the same file.
    first, second = doubled(jit.hot), doubled(jit.hot)
    assert (first(2.0), first(2)) == (4.0, 4.0)
    one, other = sorted(folder.rglob("*.nbc"))
    shutil.copy(one, other)
    assert (second(2.0), second(2)) == (4.0, 4.0)
    assert hits_and_misses(second) == (1, 1)


@pytest.mark.parametrize("locator", ["", "InTreeCacheLocator", "UserWideCacheLocator"])
def test_the_stamp_is_that_of_the_folder_wherever_the_cache_is(folder, monkeypatch, locator):
    # The empty one lets numba choose; NUMBA_CACHE_LOCATOR_CLASSES of the environment names others.
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", locator)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    cache = doubled(jit.hot)._cache
    assert type(cache._impl.locator).__name__ == (locator or "UserProvidedCacheLocator")
    assert cache._impl.locator.get_source_stamp() == jit.STAMP
    assert cache._cache_file._source_stamp == jit.STAMP


def test_the_digest_sees_every_byte_and_every_name(monkeypatch, tmp_path):
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    assert jit._digest_of_folder() == ""  # nothing to watch, as in an archive
    folders = (
        {"a.py": "x"},
        {"a.py": "y"},
        {"b.py": "x"},
        {"a.py": "x", "b.py": ""},
        {"a.py": "", "b.py": "x"},
        {"a.py": "xb.py"},
    )
    digests = []
    for files in folders:
        for old in tmp_path.glob("*.py"):
            old.unlink()
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        digests += [jit._digest_of_folder(), jit._digest_of_folder()]
    assert digests[::2] == digests[1::2] and len(set(digests)) == len(folders)


def test_without_sources_nothing_is_cached(folder, monkeypatch):
    monkeypatch.setattr(jit, "STAMP", "")
    assert type(doubled(jit.hot)._cache) is caching.NullCache


def test_compiled_code_is_made_of_its_folder_alone():
    # What it took from elsewhere would be frozen in the cache, and an edit there not be seen.
    assert set(HOT.rglob("*.py")) == set(HOT.glob("*.py"))
    for path in HOT.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                own = name.startswith("oklnumba.hot.")
                outside = name.split(".")[0] not in ("oklnumba", "tests", "scripts", "")
                assert own or outside, f"{path.name}, line {node.lineno}: {name}"


# ---- an edit in another file ----

LEARN = """
import json, numpy as np, oklnumba as okl
from oklnumba.hot.first_order import first_order_rounds as loop
X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
run = okl.run(okl.OGD(), X, np.sign(X[:, 0]))
counts = loop.stats.cache_hits.total(), loop.stats.cache_misses.total()
print(json.dumps([okl.__file__, run.predictions.tolist(), counts]))
"""


class Copy:
    """A copy of the package whose files can be edited, with a cache of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.package, self.cache = folder / "oklnumba", folder / "cache"
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "oklnumba", self.package, ignore=leave)

    def edit(self, name, old, new):
        """Replace the first occurrence of a text in a file of hot/."""
        path = self.package / "hot" / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def learn(self, cache=None):
        """Play in a new process; return the forecasts, and how often the loop was (loaded, not)."""
        environment = {"NUMBA_CACHE_DIR": str(cache or self.cache)}
        file, forecasts, counts = python(
            LEARN, cwd=self.folder, NUMBA_CACHE_LOCATOR_CLASSES=None, **environment
        )
        assert Path(file).parent == self.package
        return forecasts, tuple(counts)

    def cached(self):
        """Return the files of the cache and when each was written."""
        return {path: path.stat().st_mtime_ns for path in self.cache.rglob("*.nb?")}


CALLEE = "linalg.py", "    return s\n", "    return 2.0 * s\n"  # of dot, which OGD's loop calls


def test_an_edit_in_another_file_is_seen_and_no_edit_compiles_nothing(tmp_path):
    copy = Copy(tmp_path)
    before, counts = copy.learn()
    assert counts == (0, 1)
    files = copy.cached()
    assert len(files) >= 2
    assert copy.learn() == (before, (1, 0))
    assert copy.cached() == files
    copy.edit(*CALLEE)
    after, counts = copy.learn()
    assert after != before and counts == (0, 1)
    assert copy.learn(cache=tmp_path / "empty")[0] == after


def test_with_the_stamp_of_numba_the_edit_would_not_be_seen(tmp_path):
    copy = Copy(tmp_path)
    copy.edit("jit.py", "_impl_class = _Results", "_impl_class = caching.CompileResultCacheImpl")
    before, counts = copy.learn()
    assert counts == (0, 1)
    copy.edit(*CALLEE)
    assert copy.learn() == (before, (1, 0))  # stale: if this fails, the stamp is not needed


# ---- processes that are killed while they compile, and that compile at once ----


def learning(cache):
    """Start a process that compiles a learner."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-W", "error", "-c", LEARN]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)


@pytest.mark.slow
def test_processes_killed_while_they_compile_and_compiling_at_once(tmp_path):
    process = learning(tmp_path)
    time.sleep(3.0)
    process.kill()
    process.communicate()
    together = [learning(tmp_path) for _ in range(2)]
    found = [json.loads(process.communicate()[0]) for process in together]
    found.append(json.loads(learning(tmp_path).communicate()[0]))
    assert found[0][1] == found[1][1] == found[2][1]
    assert found[2][2] == [1, 0], "the last one compiled, though the cache was full"


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
    """Play the second half; return digests of the forecasts and of all a learner can be asked."""
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
    return found | {"elsewhere": play_elsewhere()}


def resume(folder):
    """Load every case after its first half and play the second."""
    warnings.simplefilter("ignore", UserWarning)
    found = {}
    for param in CASES:
        learner = okl.load(folder / f"{param.id}.npz")
        found[param.id] = second_half(learner, *stream(learner, ROUNDS))
    return found


def play_elsewhere():
    """Return digests of what is compiled but called by no learner."""
    kernel, features = okl.Gaussian(1.0), okl.TaylorFeatures(2)
    X, y = stream(okl.KernelAWV(kernel), ROUNDS)
    found = {}
    for cls in SAMPLERS:
        sampler = cls(kernel).partial_fit(2 * X)
        found[cls.__name__] = digest(
            sampler.indices_, sampler.probabilities_, sampler.landmarks_, sampler.transform(X)
        )
    signs = np.sign(y)
    for learner in (okl.KernelAWV(kernel), okl.PKAWV(features), okl.KRLS(kernel)):
        found[f"health of {learner!r}"] = digest(learner.partial_fit(X, y).health())
    sketched = okl.SkeGD(kernel, budget=20, sketch=8, columns=6, blocks=2, rank=4, period=5)
    for learner in (sketched, okl.AdaptiveFTRL(kind="adagrad_full")):
        found[repr(learner)] = digest(okl.run(learner, X, signs).predictions)
    maps = okl.oco.euclidean(1.0, radius=0.5), okl.oco.squared_p_norm(), okl.oco.negative_entropy()
    best = okl.theory.comparator(kernel, X, signs, 0.1, loss="logistic")
    gap = okl.theory.projection_gap(kernel, features, X, method="lanczos")
    moving = okl.theory.discounted_awv_bound(X, signs, 0.1, 0.9, X)
    return found | {
        "theory": digest(*best, gap, moving),
        "game": digest(okl.oco.Portfolio(np.exp(X)).best()),
        "potentials": digest(*(potential.mirror_map(X[0]) for potential in maps)),
        "derivative": digest(okl.losses.get("logistic").derivative(0.3, 1.0)),
    }


def counts(folder):
    """Return by function how often its machine code was loaded, and how often it was compiled."""
    return {name: hits_and_misses(f) for name, f in dispatchers().items()}


def left_out(folder):
    """Return the functions that Python code of the package calls and nothing here has compiled."""
    called = set()
    for name, module in sys.modules.items():
        if name.split(".")[0] == "oklnumba" and not name.startswith("oklnumba.hot"):
            found = [value for value in vars(module).values() if isinstance(value, KIND)]
            called |= {value.py_func.__name__ for value in found}
    assert len(called) > 40
    return sorted(name for name in called if not signatures()[name])


def copies(folder):
    """Return by function the copies of other functions in its machine code."""
    found = {}
    for name, function in dispatchers().items():
        for compiled in function.overloads.values():
            code = compiled.library.get_llvm_str()
            assert re.search(rf'^define .*@"?_ZN8oklnumba.*{name}', code, re.MULTILINE)
            names = re.findall(r'^define linkonce_odr .*@"?([\w.$]+)', code, re.MULTILINE)
            found.setdefault(name, []).extend(n for n in names if not n.startswith("NRT_"))
    return found


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
    """A process that plays when it is asked to."""

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
        found["left out"] = cold.ask("left_out")
        found["copies"] = cold.ask("copies")
    return found


def differences(got, expected):
    """Return by case what is not the same; ``got`` may hold less of a case."""
    wrong = {
        case: [name for name, value in parts.items() if expected[case][name] != value]
        for case, parts in got.items()
    }
    return {case: names for case, names in wrong.items() if names}


def test_the_one_process_compiled_all_and_the_other_nothing(answers):
    assert not answers["left out"]
    cold, warm = answers["cold counts"], answers["warm counts"]
    assert all(hits == 0 for hits, _ in cold.values())
    assert all(misses == 0 for _, misses in warm.values())
    assert sum(misses for _, misses in cold.values()) > 60
    assert sum(hits for hits, _ in warm.values()) > 40
    assert all(cold[name][1] > 0 for name, (hits, _) in warm.items() if hits)


def test_cold_and_warm_are_the_same_bits(answers):
    assert len(answers["cold"]) == len(CASES) + 1 == len(answers["warm"])
    assert differences(answers["warm"], answers["cold"]) == {}


@pytest.mark.parametrize("how", ["cold, from cold", "warm, from cold", "cold, from warm"])
def test_saved_and_resumed_in_the_other_process_are_the_same_bits(answers, how):
    # The same pause without a file: where a run is cut, learners that work by blocks of rounds
    # sum in another order.
    assert len(answers[how]) == len(CASES)
    assert differences(answers[how], answers["cold"]) == {}


def test_no_machine_code_holds_a_copy_of_another_function(answers):
    # Why the bits are the same: of a copy here and one there, which is called is left to the order
    # of loading.
    assert len(answers["copies"]) > 60
    assert {name: found for name, found in answers["copies"].items() if found} == {}


def test_a_difference_would_be_seen():
    one = {"FOGD": {"run": digest(np.array([1.0])), "predict": digest(np.zeros(2))}}
    other = {"FOGD": one["FOGD"] | {"run": digest(np.nextafter([1.0], 2.0))}}
    assert differences(one, one) == {} and differences(other, one) == {"FOGD": ["run"]}
