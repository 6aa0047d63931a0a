"""What oklnumba relies on in numba: a new version of numba must fail here first."""

import gc
import inspect
import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import analysis, caching, codegen, compiler
from numba.core.base import BaseContext
from numba.core.dispatcher import Dispatcher
from numba.core.lowering import Lower
from numba.core.runtime import rtsys
from numba.core.types.functions import BaseFunction
from numba.np import linalg

import oklnumba as okl
from oklnumba.hot.primitives import jit
from oklnumba.hot.primitives.elementary import bits_to_float, float_to_bits, larger, smaller
from oklnumba.hot.primitives.expansion import expansion_forecasts
from oklnumba.hot.primitives.linalg import dot
from tests.battery import stream
from tests.checks import dispatchers, needs_own_compiler, python

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e308, np.inf, -np.inf, np.nan]


# ---- NaN, infinity, division and bits ----


def questions(x, y, out):
    out[0] = np.isnan(x)
    out[1] = np.isinf(x)
    out[2] = np.isfinite(x)
    out[3] = x == x
    out[4] = x < y
    out[5] = not x > 0.0
    out[6] = abs(x) < np.inf


@pytest.mark.parametrize("decorator", [jit.hot, jit.exact], ids=["hot", "exact"])
def test_nan_and_infinity_keep_their_meaning(empty_cache, decorator):
    ask = decorator(questions)
    for x, y in itertools.product(SPECIAL, repeat=2):
        got, expected = np.zeros(7, dtype=bool), np.zeros(7, dtype=bool)
        ask(x, y, got)
        questions(x, y, expected)
        np.testing.assert_array_equal(got, expected, err_msg=f"x = {x}, y = {y}")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_survive_a_loop_that_vectorises(empty_cache, bad):
    @jit.hot
    def total_and_finite(x):
        s = 0.0
        finite = True
        for i in range(x.shape[0]):
            s += x[i]
            if not abs(x[i]) < np.inf:
                finite = False
        return s, finite

    x = np.ones(103)
    assert total_and_finite(x) == (103.0, True)
    x[57] = bad
    total, finite = total_and_finite(x)
    assert not finite
    np.testing.assert_equal(total, bad)


def test_full_fastmath_would_not_do():
    # Why the decorators name a subset of fastmath. If this fails, full fastmath became safe.
    assert not numba.njit(fastmath=True)(lambda x: np.isnan(x))(np.nan)


def test_division_follows_numpy(empty_cache):
    quotient = jit.hot(lambda x, y: x / y)
    for x, y in itertools.product(SPECIAL, repeat=2):
        with np.errstate(all="ignore"):
            expected = float(np.float64(x) / np.float64(y))
        np.testing.assert_equal(quotient(x, y), expected)
    assert quotient(1, 0) == math.inf and math.isnan(quotient(0, 0))


@pytest.mark.parametrize("x", [*SPECIAL, math.pi, 2.5e-310])
def test_bit_casts_go_there_and_back(x):
    bits = int(np.float64(x).view(np.int64))
    assert float_to_bits(x) == bits
    assert np.float64(bits_to_float(bits)).view(np.int64) == bits


@pytest.mark.parametrize("kind", [float, int])
def test_larger_and_smaller_are_max_and_min(kind):
    for a, b in itertools.product(SPECIAL if kind is float else [-3, 0, 7], repeat=2):
        a, b = kind(a), kind(b)
        assert repr((larger(a, b), smaller(a, b))) == repr((max(a, b), min(a, b)))
    assert repr((larger(2, 3.5), smaller(2, 3.5))) == "(3.5, 2.0)"  # of the type of both together


def test_a_sum_of_products_is_the_same_bits_wherever_the_arrays_lie():
    rng = np.random.default_rng(3)
    values, w = rng.standard_normal(200), rng.standard_normal(200)
    sums = set()
    for shift in range(9):
        moved = np.empty(600)[shift : shift + 200]
        moved[:] = values
        sums.add(dot(moved, w, 200))
    assert len(sums) == 1


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


def test_two_threads_are_in_compiled_code_at_once(empty_cache):
    @jit.hot
    def ping_pong(flags, own, other, limit):
        """Raise the own flag, then wait for the other: two threads meet only without the GIL."""
        flags[own] = 1.0
        for i in range(limit):
            if flags[other] != 0.0:
                return i
            flags[2 + own] += 1.0  # a store, so that the load is not moved out of the loop
        return -1

    ping_pong(np.zeros(4), 0, 1, 1)  # compile
    flags = np.zeros(4)
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(ping_pong, flags, i, 1 - i, 2_000_000_000) for i in range(2)]
        assert min(end.result() for end in ends) >= 0


def test_a_loop_can_be_entered_without_a_look_at_the_types():
    learner = okl.KernelOGD(okl.Gaussian(1.0)).learn_one([0.0], 1.0)
    X, forecasts = np.array([[0.0], [1.0]]), np.empty(2)
    state = learner._state
    function = learner._kernel, state.atoms, state.alpha, state.counts, 1.0
    arguments = X, *function, learner._work.k, forecasts
    expansion_forecasts(*arguments)
    looked, forecasts[:] = forecasts.copy(), 0.0
    found = jit.entry(expansion_forecasts, arguments)
    found(*arguments)
    assert found is not expansion_forecasts and found.__name__ == "expansion_forecasts"
    np.testing.assert_array_equal(forecasts, looked)
    assert jit.entry(expansion_forecasts, arguments) is found  # nothing is compiled again


PLAY = """
import json, sys, numba
tested, numba.__version__ = numba.__version__, VERSION or numba.__version__
if FAULT:
    sys.modules["numba.core.codegen"] = None  # cannot be imported any more
from oklnumba.hot.primitives import jit
if FAULT:
    del sys.modules["numba.core.codegen"]
import oklnumba as okl
from tests.checks import dispatchers
for loop in dispatchers().values():
    loop._cache._cache_file._version = tested  # one cache for all
run = okl.run(okl.FOGD(), *DATA)
print(json.dumps([jit.PLAIN, run.predictions.tolist()]))
"""


def play(cache, version="", fault=False, **environment):
    """Play FOGD in a fresh process, where its forecasts are ours; return whether numba compiled."""
    X, y = stream(okl.FOGD(), 60)
    code = PLAY.replace("FAULT", repr(fault)).replace("VERSION", repr(version))
    code = code.replace("DATA", repr((X.tolist(), y.tolist())))
    plain, forecasts = python(code, NUMBA_CACHE_DIR=str(cache), **environment)
    expected = okl.run(okl.FOGD(), X, y).predictions
    np.testing.assert_allclose(forecasts, expected, rtol=1e-10, atol=1e-10)
    return plain


@pytest.mark.slow
def test_a_newer_numba_a_fault_or_a_word_from_the_user_give_plain_numba_and_its_forecasts(tmp_path):
    assert play(tmp_path, version="99.0.0")
    assert play(tmp_path, OKLNUMBA_PLAIN_JIT="1")
    assert play(tmp_path, fault=True)


# ---- what compiler.py uses of numba ----

PARTS = {  # names, with the number of parameters of functions
    caching.CompileResultCacheImpl: {"reduce": 2, "rebuild": 3, "locator": None},
    caching.FunctionCache: {"_impl_class": None, "load_overload": 3, "_load_overload": 3},
    type(rtsys): {"initialize": 2},
    compiler.CompilerBase: {"compile_extra": 2, "define_pipelines": 1},
    compiler.CompileResult: {"_replace": 2},
    compiler.Flags: {"noalias": None, "no_compile": None, "no_cfunc_wrapper": None},
    compiler.PassManager: {"add_pass": 3, "finalize": 1},
    BaseContext: {"insert_user_function": 4},
    codegen.JITCodeLibrary: {
        "__init__": 3,
        "add_ir_module": 2,
        "finalize": 1,
        "_get_module_for_linking": 1,
        "_optimize_final_module": 1,
        "enable_object_caching": 1,
    },
    BaseFunction: {"get_call_type": 4},
    Lower: {"_find_singly_assigned_variable": 1, "alloca_lltype": 4, "getvar": 2},
    analysis: {"compute_cfg_from_blocks": 1, "compute_use_defs": 1},
    linalg: {"ensure_blas": 0},
    Dispatcher: {"add_overload": 2, "get_overload": 2, "get_call_template": 3},
    numba.types: {"unliteral": 1},
    llvm: {"create_pipeline_tuning_options": None, "create_pass_builder": 2},
    llvm.ValueRef: {"linkage": None},
    llvm.PassBuilder: {"getModulePassManager": 1},
}


def test_this_version_of_numba_is_tested():
    version = tuple(map(int, numba.__version__.split(".")[:2]))
    assert version <= jit.NEWEST_TESTED, "let these tests pass with it, then change NEWEST_TESTED"


@needs_own_compiler
@pytest.mark.parametrize("owner", PARTS)
def test_numba_still_has_what_the_compiler_is_made_of(owner):
    for name, parameters in PARTS[owner].items():
        assert hasattr(owner, name), f"{owner} has no {name}: find what took its place"
        if parameters is not None:
            assert len(inspect.signature(getattr(owner, name)).parameters) == parameters, name


@needs_own_compiler
@pytest.mark.parametrize("decorator", [jit.hot, jit.hot_apart], ids=["inlined", "apart"])
def test_a_callee_is_part_of_its_caller_and_nobody_else_sees_it(empty_cache, decorator):
    @decorator
    def part(x):
        return 3.0 * x

    @jit.hot
    def whole(x, n):
        return part(x) + part(2.0 * x) + part(1) + part(n)

    assert whole(1.0, 2) == 18.0
    assert not part.signatures, "the callee was given machine code of its own"
    (compiled,) = whole.overloads.values()
    code = compiled.library.get_llvm_str()
    assert "linkonce_odr" not in code and "call void @NRT_" not in code
    definitions = [line for line in code.splitlines() if line.startswith("define")]
    kept = [line for line in definitions if "4part" in line]
    # one version for floats and one for integers, literal or not
    assert len(kept) == (2 if decorator is jit.hot_apart else 0)
    assert all("internal" in line for line in kept)
    assert part(1.0) == 3.0 and len(part.signatures) == 1


@needs_own_compiler
def test_a_variable_is_memory_only_if_it_is_assigned_twice_or_not_always(empty_cache):
    @jit.hot
    def choose(x, n):
        first = x[0]
        if n > 3:
            second = x[1]
        for i in range(n):
            last = x[i]
            first += last
        if n > 3:
            first += second
        return first + last

    assert choose(np.arange(5.0), 5) == 15.0 and choose(np.arange(5.0), 2) == 2.0


@needs_own_compiler
def test_compiling_leaves_numba_and_the_collector_as_they_were(empty_cache):
    before = BaseFunction.get_call_type, linalg.ensure_blas
    assert jit.hot(lambda x: x + x)(2.0) == 4.0
    with pytest.raises(numba.TypingError):
        jit.hot(lambda x: x.no_such_thing)(2.0)
    assert (BaseFunction.get_call_type, linalg.ensure_blas) == before and gc.isenabled()
    gc.disable()
    try:
        assert jit.hot(lambda x: x - x)(2.0) == 0.0 and not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
@needs_own_compiler
def test_a_first_run_does_not_load_scipy_linalg_and_a_patched_numba_has_its_blas(tmp_path):
    newest = ".".join(map(str, jit.NEWEST_TESTED))
    code = f"""
import json, sys, numba
numba.__version__ = "{newest}.99rc1"  # a version that was not there when this was tested
import numpy as np, oklnumba as okl
okl.run(okl.OGD(), np.eye(3), np.ones(3))
loaded = okl.hot.primitives.jit.PLAIN, "scipy.linalg" in sys.modules
print(json.dumps([*loaded, numba.njit(lambda a: np.dot(a, a))(2 * np.eye(2)).tolist()]))
"""
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)) == [False, False, [[4, 0], [0, 4]]]
