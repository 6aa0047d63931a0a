"""Facts about Numba that oklnumba relies on: a new version of Numba must fail here first."""

from __future__ import annotations

import gc
import inspect
import itertools
import json
import math
import operator
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import caching, codegen, compiler, typed_passes, untyped_passes
from numba.core.base import BaseContext
from numba.core.compiler import Flags
from numba.core.dispatcher import Dispatcher
from numba.core.lowering import Lower
from numba.core.runtime import rtsys
from numba.core.types.functions import BaseFunction
from numba.np import linalg as numba_linalg

import oklnumba as okl
from oklnumba.hot.primitives import jit
from oklnumba.hot.primitives.elementary import (
    bits_to_float,
    exp_nonpositive,
    float_to_bits,
    larger,
    smaller,
)
from oklnumba.hot.primitives.expansion import expansion_forecasts
from oklnumba.hot.primitives.linalg import dot
from oklnumba.hot.primitives.passes import Rewrites, ShortLowering
from oklnumba.hot.primitives.udu import TILE, factor_rows_1, factor_rows_3
from tests.compiled import dispatchers

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")

ROOT = Path(__file__).parent.parent
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e308, np.inf, -np.inf, np.nan]


def python(code, cwd=ROOT, **environment):
    """Run code in a fresh process, warnings as errors, and return what it printed as JSON."""
    changed = {name: value for name, value in environment.items() if value is not None}
    kept = {name: value for name, value in os.environ.items() if name not in environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd,
        env=kept | changed,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def uncached(like):
    """Return a decorator with the options of a function in hot/, without a cache.

    Numba's cache would keep the old code of what is called in hot/ after an edit there.
    """
    options = ("nogil", "error_model", "fastmath")
    return numba.njit(**{name: like.targetoptions[name] for name in options})


if numba.config.DISABLE_JIT:
    hot = exact = lambda function: function
else:
    hot, exact = uncached(dot), uncached(exp_nonpositive)


# ---- NaN, infinity and division ----


def questions(x, y, out):
    out[0] = np.isnan(x)
    out[1] = np.isinf(x)
    out[2] = np.isfinite(x)
    out[3] = x == x
    out[4] = x < y
    out[5] = not x > 0.0
    out[6] = abs(x) < np.inf


hot_questions, exact_questions = hot(questions), exact(questions)


@pytest.mark.parametrize("ask", [hot_questions, exact_questions], ids=["hot", "exact"])
def test_nan_and_infinity_keep_their_meaning(ask):
    for x in SPECIAL:
        for y in SPECIAL:
            got, expected = np.zeros(7, dtype=bool), np.zeros(7, dtype=bool)
            ask(x, y, got)
            ask.py_func(x, y, expected)
            np.testing.assert_array_equal(got, expected, err_msg=f"x = {x}, y = {y}")


@hot
def total_and_finite(x):
    s = 0.0
    finite = True
    for i in range(x.shape[0]):
        s += x[i]
        if not abs(x[i]) < np.inf:
            finite = False
    return s, finite


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_survive_a_loop_that_vectorises(bad):
    x = np.ones(103)
    assert total_and_finite(x) == (103.0, True)
    x[57] = bad
    total, finite = total_and_finite(x)
    assert not finite
    np.testing.assert_equal(total, bad)


def test_full_fastmath_would_not_do():
    # Why the decorators name a subset of fastmath. If this fails, full fastmath became safe.
    @numba.njit(fastmath=True)
    def is_nan(x):
        return np.isnan(x)

    assert not is_nan(np.nan)


@hot
def quotient(x, y):
    return x / y


@pytest.mark.parametrize("x", SPECIAL)
@pytest.mark.parametrize("y", SPECIAL)
def test_division_follows_numpy(x, y):
    with np.errstate(all="ignore"):
        expected = np.float64(x) / np.float64(y)
    np.testing.assert_equal(quotient(x, y), float(expected))


def test_division_by_integer_zero_follows_numpy():
    assert quotient(1, 0) == math.inf and math.isnan(quotient(0, 0))


# ---- the decorators ----


def test_options_of_every_compiled_function():
    assert len(dispatchers()) > 20
    for name, function in dispatchers().items():
        options = function.targetoptions
        assert options["nogil"] is True, name
        assert options["error_model"] == "numpy", name
        assert options["nopython"] is True, name
        assert options["fastmath"] <= {"reassoc", "contract", "arcp", "nsz"}, name
        assert "parallel" not in options or options["parallel"] is False, name


@hot
def ping_pong(flags, own, other, limit):
    """Raise the own flag, then wait for the other's: two threads meet only without the GIL."""
    flags[own] = 1.0
    for i in range(limit):
        if flags[other] != 0.0:
            return i
        flags[2 + own] += 1.0  # a store, so that the load is not moved out of the loop
    return -1


def test_two_threads_are_in_compiled_code_at_once():
    from concurrent.futures import ThreadPoolExecutor

    ping_pong(np.zeros(4), 0, 1, 1)  # compiled
    flags = np.zeros(4)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(ping_pong, flags, i, 1 - i, 2_000_000_000) for i in range(2)]
        assert min(end.result() for end in ends) >= 0


SMALL_PLAY = """
import json, numpy as np, oklnumba as okl
from oklnumba.hot import awv, linalg
X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
learner = okl.KernelAWV(okl.Gaussian(1.0)).partial_fit(X, X[:, 0])
caches = {type(f._cache).__name__ for f in (awv.kernel_awv_rows, linalg.dot)}
print(json.dumps([learner.predict_one(X[0]), sorted(caches)]))
"""


def small_play():
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    return okl.KernelAWV(okl.Gaussian(1.0)).partial_fit(X, X[:, 0]).predict_one(X[0])


def test_compiled_code_is_cached_where_a_folder_is_writable(tmp_path):
    forecast, caches = python(SMALL_PLAY, NUMBA_CACHE_DIR=str(tmp_path))
    assert forecast == small_play()
    assert caches == ["FolderCache"]
    assert list(tmp_path.rglob("*.nbc"))


@pytest.mark.parametrize("chosen", [None, "/dev/null/numba"])
def test_it_works_where_no_cache_folder_is_writable(tmp_path, chosen):
    # root may write everywhere: so __pycache__ is a file here, and the home folder lies in a device
    package = tmp_path / "oklnumba"
    shutil.copytree(ROOT / "oklnumba", package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (package, package / "hot"):
        (folder / "__pycache__").write_text("no folder")
    forecast, caches = python(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})" + SMALL_PLAY,
        cwd=tmp_path,
        NUMBA_CACHE_DIR=chosen,
        HOME="/dev/null/home",
        XDG_CACHE_HOME="/dev/null/cache",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert forecast == small_play()
    assert caches == ["NullCache"]


def test_numba_still_raises_where_there_is_no_cache_folder(monkeypatch):
    # The fallback in hot/primitives/jit.py stands on this RuntimeError.
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    monkeypatch.setattr(jit._Results, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit(cache=True)(lambda x: x)

    @jit.hot
    def double(x):
        return 2.0 * x

    assert double(2.0) == 4.0 and type(double._cache).__name__ == "NullCache"


COUNTING = """
import json, numpy as np, oklnumba as okl
from oklnumba.hot.primitives import jit, kernel_ogd
import numba
X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
okl.KernelOGD(okl.Gaussian(1.0)).partial_fit(X, np.sign(X[:, 0]))
ours = kernel_ogd.kernel_ogd_rounds
options = {n: v for n, v in ours.targetoptions.items() if n not in ("_nrt", "nopython")}
counting = numba.njit(**options)(ours.py_func)
counting.compile(ours.signatures[0])
texts = ["".join(f.inspect_llvm().values()) for f in (ours, counting)]
print(json.dumps([text.count("call void @NRT_") for text in texts]))
"""


def test_no_references_to_arrays_are_counted_in_the_loops(tmp_path):
    # A private option of numba's; with counting the same loop has such calls in it.
    ours, counting = python(COUNTING, NUMBA_CACHE_DIR=str(tmp_path))
    assert ours < counting
    assert ours <= 4  # around the loop, where arguments come from Python


def test_import_compiles_nothing_and_leaves_slow_modules_out():
    # These took three quarters of the time of the import; scipy loads its parts at first use.
    code = """
import json, sys, oklnumba
slow = {"matplotlib", "pandas", "sklearn", "river", "joblib", "scipy.linalg", "scipy.optimize"}
loaded = sorted(slow & sys.modules.keys())
from tests.compiled import signatures
found = {n: len(s) for n, s in signatures().items()}
print(json.dumps([found, loaded]))
"""
    found, loaded = python(code)
    assert len(found) > 20 and set(found.values()) == {0}
    assert loaded == []


def test_compiling_loads_no_scipy_and_numba_still_has_its_blas(tmp_path):
    code = """
import json, sys, numba, numpy as np, oklnumba as okl
X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
okl.run(okl.OGD(), X, X[:, 0])
loaded = "scipy.linalg" in sys.modules
gram = numba.njit(lambda A: A @ A.T)(X)
print(json.dumps([loaded, "scipy.linalg" in sys.modules, bool(np.allclose(gram, X @ X.T))]))
"""
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)) == [False, True, True]


# ---- the private parts of numba that hot/primitives/jit.py is made of ----

LIBRARY, DISPATCHER = codegen.JITCodeLibrary, Dispatcher
PARTS = [  # where it is, its name, its parameters (None: no function), what it is for
    (caching.CompileResultCacheImpl, "reduce", 2, "the stamp in what is cached"),
    (caching.CompileResultCacheImpl, "rebuild", 3, "the stamp in what is cached"),
    (caching.CompileResultCacheImpl, "locator", None, "the stamp in the index, the folder"),
    (caching.FunctionCache, "_impl_class", None, "the stamp"),
    (caching.FunctionCache, "load_overload", 3, "loading in 0.05 s"),
    (caching.FunctionCache, "_load_overload", 3, "loading in 0.05 s"),
    (rtsys, "initialize", 1, "loading in 0.05 s"),
    (compiler.CompilerBase, "compile_extra", 2, "functions that are optimised once"),
    (compiler.CompilerBase, "define_pipelines", 1, "the passes that our functions need"),
    (compiler.PassManager, "add_pass", 3, "the passes that our functions need"),
    (compiler.PassManager, "finalize", 1, "the passes that our functions need"),
    (numba.types, "unliteral", 1, "one version of a function for 1 and n"),
    (compiler.CompileResult, "_replace", 2, "functions that are optimised once"),
    (BaseContext, "insert_user_function", 4, "functions that are optimised once"),
    (LIBRARY, "__init__", 3, "functions that are optimised once"),
    (LIBRARY, "finalize", 1, "functions that are optimised once"),
    (LIBRARY, "_get_module_for_linking", 1, "functions that are optimised once"),
    (LIBRARY, "_optimize_final_module", 1, "parts that only their caller sees"),
    (llvm, "create_pipeline_tuning_options", 1, "loops that are not unrolled"),
    (llvm, "create_pass_builder", 2, "loops that are not unrolled"),
    (llvm.PipelineTuningOptions, "loop_unrolling", None, "loops that are not unrolled"),
    (llvm.PassBuilder, "getModulePassManager", 1, "loops that are not unrolled"),
    (BaseFunction, "get_call_type", 4, "types that are looked up once"),
    (LIBRARY, "_optimize_functions", 2, "functions that are optimised once"),
    (llvm, "create_new_function_pass_manager", 0, "functions that are optimised once"),
    (numba_linalg, "ensure_blas", 0, "compiling without scipy.linalg"),
    (LIBRARY, "enable_object_caching", 1, "the cache"),
    (llvm.Linkage, "linkonce_odr", None, "parts that only their caller sees"),
    (llvm.ValueRef, "linkage", None, "parts that only their caller sees"),
    (DISPATCHER, "add_overload", 2, "functions that are optimised once"),
    (DISPATCHER, "get_overload", 2, "functions that are optimised once"),
    (DISPATCHER, "get_call_template", 3, "functions that are optimised once"),
    (Lower, "pre_lower", 1, "functions apart"),
    (typed_passes.NativeLowering, "lowering_class", None, "hot/primitives/passes.py"),
    (Lower, "lower_expr", 3, "hot/primitives/passes.py"),
    (Lower, "lower_getitem", 6, "hot/primitives/passes.py"),
    (Lower, "lower_setitem", 5, "hot/primitives/passes.py"),
    (Lower, "loadvar", 2, "hot/primitives/passes.py"),
    (Lower, "typeof", 2, "hot/primitives/passes.py"),
    (BaseContext, "get_value_type", 2, "hot/primitives/passes.py"),
    (BaseContext, "enable_boundscheck", None, "hot/primitives/passes.py"),
]
WHAT_TO_DO = (
    f"numba {numba.__version__} has no {{}} as jit.py uses it, for {{}}. Find what took its "
    "place; until then bound numba in pyproject.toml. Or give _Called and _Entered up, plain njit "
    "in their place: first calls take three times as long, and tests/test_cache.py then says which "
    "bits depend on the order of loading."
)


@pytest.mark.parametrize("owner, name, parameters, purpose", PARTS)
def test_numba_still_has_what_the_decorators_are_made_of(owner, name, parameters, purpose):
    where = getattr(owner, "__name__", "rtsys")
    advice = WHAT_TO_DO.format(f"{where}.{name}", purpose)
    assert hasattr(owner, name), advice
    if parameters is not None:
        assert len(inspect.signature(getattr(owner, name)).parameters) == parameters, advice


def test_a_library_and_a_compiler_still_have_these_attributes():
    entered = numba.njit(pipeline_class=Seen)(lambda x: x + 1.0)
    assert entered(1.0) == 2.0
    for owner, names in SEEN.items():
        for name, there in names.items():
            assert there, WHAT_TO_DO.format(f"{owner}.{name}", "functions that are optimised once")


SEEN = {}


class Seen(compiler.Compiler):
    """A compiler that notes what it and its library have."""

    def compile_extra(self, func):
        state = self.state
        flags = ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper")
        SEEN["flags"] = {name: hasattr(state.flags, name) for name in flags}
        SEEN["state"] = {"library": state.library is None}  # it is ours to make
        generator = state.targetctx.codegen()
        SEEN["targetctx"] = {"codegen": isinstance(generator, codegen.Codegen)}
        SEEN["codegen"] = {"_tm": isinstance(generator._tm, llvm.TargetMachine)}
        SEEN["codegen"]["_data_layout"] = isinstance(generator._data_layout, str)
        result = super().compile_extra(func)
        library = ("_linking_libraries", "_final_module", "_finalized")
        SEEN["library"] = {name: hasattr(result.library, name) for name in library}
        result_ = ("entry_point", "fndesc", "library", "signature")
        SEEN["result"] = {name: hasattr(result, name) for name in result_}
        return result


def part(x):
    return 3.0 * x


def twice(inner):
    """Return a compiled function that calls another one in two places."""

    @jit.hot
    def whole(x):
        return inner(x) + inner(2.0 * x)

    return whole


called_part = jit.hot(part)
called_apart = jit.hot_apart(part)


def test_a_function_is_compiled_where_python_enters_and_its_parts_are_seen_by_none_else():
    for inner in (called_part, called_apart):
        whole = twice(inner)
        assert whole(1.0) == 9.0
        assert not inner.signatures, "a part was given machine code of its own"
        (compiled,) = whole.overloads.values()
        assert type(compiled.library) is jit._Whole
        code = compiled.library.get_llvm_str()
        assert "linkonce_odr" not in code, WHAT_TO_DO.format("linkage", "parts seen by none else")
        stays = any(line.startswith("define") and "4part" in line for line in code.splitlines())
        assert stays == (inner is called_apart), "apart is not apart, or all is"
    assert called_part(1.0) == 3.0 and len(called_part.signatures) == 1


def test_a_loop_can_be_entered_without_a_look_at_the_types():
    learner = okl.KernelOGD(okl.Gaussian(1.0)).learn_one([0.0], 1.0)
    function, forecasts = (learner._atoms, learner._a), np.empty(2)
    rest = function, learner._counts, 1.0, learner._work, forecasts
    arguments = np.array([[0.0], [1.0]]), learner._kernel, *rest
    expansion_forecasts(*arguments)
    looked, forecasts[:] = forecasts.copy(), 0.0
    found = jit.entry(expansion_forecasts, arguments)
    found(*arguments)
    assert found is not expansion_forecasts and found.__name__ == "expansion_forecasts"
    np.testing.assert_array_equal(forecasts, looked)
    assert jit.entry(expansion_forecasts, arguments) is found  # nothing is compiled again


def test_our_passes_are_some_of_those_of_numba_in_its_order():
    # Where numba adds one, see whether compiled functions need it.
    state = SimpleNamespace(func_ir=None, flags=Flags())
    every = compiler.DefaultPassBuilder.define_nopython_pipeline(state).passes
    names = [one.__name__ for one, _ in every]
    instead = {ShortLowering: typed_passes.NativeLowering, Rewrites: untyped_passes.GenericRewrites}
    ours = [instead.get(one, one).__name__ for one in jit.PASSES]
    assert [name for name in names if name in ours] == ours
    assert all(issubclass(own, numbas) for own, numbas in instead.items())


KINDS = """
import json
from numba import types
from numba.core import typed_passes, untyped_passes
import oklnumba as okl
from oklnumba.hot.primitives import jit

place = jit.PASSES.index(typed_passes.NopythonTypeInference)
named = untyped_passes.ReconstructSSA, typed_passes.NopythonTypeInference
jit.PASSES = *jit.PASSES[:place], *named, typed_passes.PreLowerStripPhis, *jit.PASSES[place + 1 :]
found, many = [], []
lower = jit.ShortLowering.run_pass

def note(self, state):
    kinds = {}
    for name, kind in state.typemap.items():
        kinds.setdefault(name.removeprefix("arg.").split(".")[0], set()).add(types.unliteral(kind))
    several = [name for name, of in kinds.items() if len(of) > 1 and name[0] != "$"]
    found.append(state.func_id.func_name)
    many.extend(f"{found[-1]}: {name}" for name in several)
    return lower(self, state)

jit.ShortLowering.run_pass = note
okl.warm_up(NAMES)
print(json.dumps([found, many]))
"""


def test_our_variables_have_one_type_each(tmp_path):
    # So they do without ReconstructSSA, which gives each value of a variable a name of its own.
    names = "SelfTuning", "SketchedKONS", "ProsNKONS", "KRLS", "POMDR", "OnlineNewtonStep"
    code = KINDS.replace("NAMES", ", ".join(map(repr, names)))
    found, many = python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert {"solve_rounds", "krls_rounds", "aggregating_forecast"} <= set(found)
    assert not many, "name the second one otherwise, or give jit.PASSES numba's passes back"


def test_a_part_called_with_a_constant_and_a_number_is_compiled_once(monkeypatch):
    compiled = []
    whole = jit._Called.compile_extra
    note = lambda self, func: compiled.append(self.state.args) or whole(self, func)  # noqa: E731
    monkeypatch.setattr(jit._Called, "compile_extra", note)

    @jit.hot
    def inner(x, n):
        return x * n

    @jit.hot
    def outer(x, n):
        return inner(x, 1) + inner(x, n)

    assert outer(2.0, 3) == 8.0
    assert compiled == [(numba.types.float64, numba.types.int64)]


@pytest.mark.parametrize("kind", [float, int])
def test_larger_and_smaller_are_max_and_min(kind):
    @jit.hot
    def both(a, b):
        return larger(a, b), smaller(a, b)

    for a, b in itertools.product(SPECIAL if kind is float else [-3, 0, 7], repeat=2):
        assert repr(both(kind(a), kind(b))) == repr((max(kind(a), kind(b)), min(kind(a), kind(b))))
    assert repr(both(2, 3.5)) == "(3.5, 2.0)"  # of the type of both together


def test_what_is_remembered_of_types_is_what_numba_says():
    tables = numba.core.registry.cpu_target.typing_context
    add, kinds = tables.resolve_value_type(operator.add), (numba.float64, numba.int64, numba.none)
    look = BaseFunction.get_call_type
    for args in itertools.product(kinds, repeat=2):
        with jit._remembering():
            for _ in range(2):
                try:
                    found = add.get_call_type(tables, args, {})
                except numba.TypingError:
                    with pytest.raises(numba.TypingError):
                        look(add, tables, args, {})
                else:
                    assert found == look(add, tables, args, {})
    with pytest.raises(ZeroDivisionError), jit._remembering():
        raise ZeroDivisionError
    assert BaseFunction.get_call_type is look


@pytest.mark.parametrize("collecting", [True, False])
def test_compiling_leaves_garbage_collection_as_it_was(collecting):
    @jit.hot
    def fails(x):
        return x.no_such_attribute

    @jit.hot
    def works(x):
        return x + 1.0

    (gc.enable if collecting else gc.disable)()
    try:
        with pytest.raises(numba.TypingError):
            fails(1.0)
        assert gc.isenabled() == collecting
        assert works(1.0) == 2.0
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_compiling_keeps_frozen_what_a_user_has_frozen():
    @jit.hot
    def works(x):
        return x + 2.0

    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        assert works(1.0) == 3.0
        assert gc.get_freeze_count() >= 0.99 * frozen  # less what is no more
    finally:
        gc.unfreeze()


SETTINGS = """
import json, warnings, numpy as np, oklnumba as okl
warnings.simplefilter("ignore")  # without optimisation numba caches little, and says so
X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
learner = okl.OGD().partial_fit(X, X[:, 0])
print(json.dumps(learner.predict_one(X[0])))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("OPT=0", "ENABLE_PROFILING=1"), ("BOUNDSCHECK=1", "DEBUGINFO=1")], ids=" ".join
)
def test_the_settings_of_numba_have_their_way(tmp_path, names):
    settings = dict(f"NUMBA_{name}".split("=") for name in names)
    X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    expected = okl.OGD().partial_fit(X, X[:, 0]).predict_one(X[0])
    got = python(SETTINGS, NUMBA_CACHE_DIR=str(tmp_path), **settings)
    assert got == pytest.approx(expected, rel=1e-12)


# ---- one signature per compiled function ----

# Every public call of every learner, with data of each layout and dtype; prints the signatures.
SIGNATURES = """
import json, os, tempfile, warnings
import numpy as np, oklnumba as okl
from tests.compiled import signatures
from tests.battery import LEARNERS, SAMPLERS, Variant, make, stream

warnings.simplefilter("ignore", UserWarning)
on_the_simplex = Variant(okl.ExpConcaveFTRL, "domain", "simplex")  # has a loop of its own

def plain(a): return a
def read_only(a):
    b = a.copy(); b.flags.writeable = False; return b
def mapped(a):
    path = os.path.join(folder, "a.npy"); np.save(path, a); return np.load(path, mmap_mode="r")
def fortran(a): return np.asfortranarray(a)
def single(a): return a.astype(np.float32)
def whole(a): return np.round(a).astype(np.int64)
def strided(a): return np.repeat(a, 2, axis=0)[::2]
def listed(a): return a.tolist()

with tempfile.TemporaryDirectory() as folder:
    for cls in [*LEARNERS, on_the_simplex]:
        X, y = stream(make(cls), 70)
        for kind in (plain, read_only, mapped, fortran, single, strided, listed, whole):
            A, b = kind(X), kind(y)
            if kind is whole:
                b = np.sign(b - 0.1)
            learner = make(cls)
            okl.run(learner, A, b)
            learner.predict(A)
            learner.partial_fit(A, b)
            for i in range(4):
                learner.predict_one(A[i])
                learner.learn_one(A[i], b[i])
            path = os.path.join(folder, "learner.npz")
            learner.save(path)
            again = okl.load(path)
            again.predict(A[:2])
            again.learn_one(A[0], b[0])
    X = np.random.default_rng(0).uniform(-1, 1, (70, 2))
    for kind in (plain, read_only, mapped, fortran, single, strided, listed):
        for cls in SAMPLERS:
            cls(okl.Gaussian(1.0)).partial_fit(kind(X)).transform(kind(X))
        linear = okl.FOGD(okl.TaylorFeatures(2))  # the default makes its features in the loop
        linear.partial_fit(kind(X), np.where(X[:, 0] > 0.0, 1.0, -1.0)).predict(kind(X))
print(json.dumps(signatures()))
"""


@pytest.fixture(scope="module")
def signatures():
    return python(SIGNATURES)


def test_each_loop_of_rounds_has_one_signature_whatever_the_data(signatures):
    classes = "".join(p.read_text() for p in (ROOT / "oklnumba" / "learners").glob("*.py"))
    called = [name for name in signatures if f" {name}(" in classes]
    rounds = {name: signatures[name] for name in called if name.endswith("_rounds")}
    assert len(rounds) >= 4
    more = {name: found for name, found in rounds.items() if len(found) != 1}
    assert not more, f"compiled more than once, or never: {more}"


def test_every_other_compiled_function_has_few_signatures(signatures):
    # Helpers get slices (A) and whole arrays (C): one version for each family, none read-only.
    for name, found in signatures.items():
        assert len(found) <= 4, f"{name}: {found}"
        read_only = [s for s in found if re.search(r"Array\(\w+, \d, '.', True", s)]
        assert not read_only, f"{name}: {read_only}"
        assert not any("float32" in s for s in found), f"{name}: {found}"


OTHER_NUMBERS = """
import json, warnings
import numpy as np, oklnumba as okl
from tests.compiled import signatures
from tests.battery import LEARNERS, SAMPLERS, make, stream
warnings.simplefilter("ignore", UserWarning)

problems = []
for cls in LEARNERS:
    X, y = stream(make(cls), 70)
    whole = [n for n, v in make(cls).get_params().items() if isinstance(v, float) and v == int(v)]
    for kind in (float, int, np.float64, np.float32, np.int64):
        learner = make(cls)
        learner.set_params(**{n: kind(v) for n, v in learner.get_params().items() if n in whole})
        try:
            for part in (slice(0, 50), slice(50, 51)):
                okl.run(learner, X[part], y[part])
                learner.predict(X[part])
            learner.learn_one(X[0], y[0])
            learner.predict_one(X[0])
        except Exception as error:
            problems.append(f"{learner!r}: {type(error).__name__}: {str(error)[:200]}")
print(json.dumps([signatures(), problems]))
"""


def test_a_hyper_parameter_of_another_type_of_number_compiles_nothing_anew(signatures):
    found, problems = python(OTHER_NUMBERS)
    assert not problems, "\n".join(problems)
    new = {name: sorted(set(found[name]) - set(signatures[name])) for name in found}
    assert not any(new.values()), {name: s for name, s in new.items() if s}


# ---- bit casts and the code written in LLVM ----


@exact
def bits_of(x):
    return float_to_bits(x)


@exact
def float_of(bits):
    return bits_to_float(bits)


@pytest.mark.parametrize("x", [*SPECIAL, math.pi, 2.5e-310])
def test_bit_casts_go_there_and_back(x):
    bits = int(np.float64(x).view(np.int64))
    assert bits_of(x) == bits
    assert np.float64(float_of(bits)).view(np.int64) == bits


FADING = 1.25, 1.5  # 1 / discount, and the largest 1 / D that it leaves


@exact
def three_at_once(U, inv_d, Z, B, a):
    for k in range(0, U.shape[0], TILE):
        factor_rows_3(U, inv_d, Z, B, a, k, U.shape[0], *FADING)


@exact
def one_by_one(U, inv_d, Z, B, a):
    for t in range(Z.shape[0]):
        for k in range(0, U.shape[0], TILE):
            factor_rows_1(U, inv_d, Z[t:], B[t:], a[t:], k, U.shape[0], *FADING)


@pytest.mark.parametrize("r", [8, 16, 24, 40])
def test_fused_products_of_three_rounds_are_those_of_one(r):
    rng = np.random.default_rng(r)
    U = np.triu(rng.standard_normal((r, r)), 1) + np.eye(r)
    start = U, rng.uniform(0.5, 2, r), rng.standard_normal((3, r)), np.zeros((3, r)), np.ones(3)
    states = [[array.copy() for array in start] for _ in range(2)]
    three_at_once(*states[0])
    one_by_one(*states[1])
    for together, apart in zip(*states, strict=True):
        np.testing.assert_array_equal(together, apart)
    # and they are what the formula says, in numpy
    U, inv_d, Z, B, a = (array.copy() for array in start)
    for t in range(3):
        plain_factor_rows(U, inv_d, Z[t], B[t], a, t)
    for got, expected in zip(states[0], (U, inv_d, Z, B, a), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def plain_factor_rows(U, inv_d, z, b, a, t):
    """Play one round of method C1 as hot/primitives/udu.py states it."""
    for k in range(len(z)):
        p = z[k]
        following = a[t] + p * p * inv_d[k]
        b[k] = p * inv_d[k] / following
        inv_d[k] = min(FADING[0] * inv_d[k] * a[t] / following, FADING[1])
        a[t] = following
        z[k + 1 :] -= p * U[k, k + 1 :]
        U[k, k + 1 :] += b[k] * z[k + 1 :]


def test_a_sum_of_products_is_the_same_bits_wherever_the_arrays_lie():
    rng = np.random.default_rng(3)
    store = rng.standard_normal(600)
    w = rng.standard_normal(200)
    sums = set()
    for shift in range(9):
        moved = np.empty(600)[shift : shift + 200]
        moved[:] = store[:200]
        sums.add(dot(moved, w, 200))
    assert len(sums) == 1
