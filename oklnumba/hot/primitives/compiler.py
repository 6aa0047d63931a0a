"""Compile a loop, and all that it calls, as one piece of machine code. Optional, see jit.py.

Numba compiles each function that compiled code calls to machine code, and also copies its LLVM code
into each caller. That takes twice the time, and the two copies may round differently: which one a
call takes depends on whether this process compiled it or loaded it from the cache. Here only the
functions that Python enters become machine code. Their callees are LLVM code, put into the caller
and optimised with it. For this the file uses internals of numba, which
tests/test_numba_assumptions.py checks.
"""

import functools
import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core import cgutils, compiler, ir, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.types.functions import BaseFunction

from oklnumba.hot.primitives.cache import cache_of

# Functions apart that have vectors of 64 bytes, where the processor has them.
WIDE: set[Any] = set()
SILENT_SECONDS = 1.0  # of compiling, before it is said

if hasattr(os, "register_at_fork"):  # a child forked while a thread compiles would wait for ever
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


class _Part(JITCodeLibrary):
    """LLVM code of a callee: linked into its caller, which optimises it.

    ``apart`` : whether it stays a function there.
    """

    def add_ir_module(self, ir_module):
        """Add the function. A mark given later lands on what it returns in llvmlite 0.46."""
        if self.apart:
            for function in ir_module.functions:
                if not function.is_declaration:
                    function.attributes.add("noinline")
                    if self.wide:  # llvmlite has no name for it
                        set.add(function.attributes, '"prefer-vector-width"="512"')
        super().add_ir_module(ir_module)

    def finalize(self):
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class _Whole(JITCodeLibrary):
    """Machine code of a function that Python calls, and of its callees, which only it can see."""

    def _optimize_final_module(self):
        """Optimise once; numba does it twice, to remove reference counts in between.

        Loops are unrolled only into vectors: a third less code and time, and no slower.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        options = llvm.create_pipeline_tuning_options(numba.config.OPT)
        options.loop_vectorization = bool(numba.config.LOOP_VECTORIZE)
        options.slp_vectorization = bool(numba.config.SLP_VECTORIZE)
        options.loop_unrolling = False
        passes = llvm.create_pass_builder(self._codegen._tm, options)
        passes.getModulePassManager().run(self._final_module, passes)

    def _get_module_for_linking(self):
        """Return what the cache keeps beside the machine code: only names, as nothing links it."""
        module, text = self._final_module, []
        for one in module.functions:
            if one.linkage == llvm.Linkage.external and not one.is_declaration:
                text.append(f'define void @"{one.name}"() {{ ret void }}')
        for one in module.global_variables:
            if not one.is_declaration:
                text.append(f'@"{one.name}" = global i8 0')
        return llvm.parse_assembly("\n".join(text))


@functools.cache  # once a process
def _say_that_it_compiles() -> None:
    # The times are those of figures/benchmark_first_use.csv.
    what = "oklnumba compiles loops at their first use: about 15 s for SelfTuning, 3 s for PKAWV"
    logging.getLogger("oklnumba").warning(f"{what} (okl.warm_up: beforehand)")


class _Lower(Lower):
    """Lowers to LLVM; a variable that is assigned once is a value there, not memory.

    Numba does that only for variables of one block. LLVM takes a tuple of many arrays out of memory
    again number by number, which takes a sixth of the time of compiling.
    """

    def _find_singly_assigned_variable(self):
        assigned: dict[str, list[int]] = {}
        blocks = self.func_ir.blocks
        for at, block in blocks.items():
            for one in block.find_insts(ir.Assign):
                assigned.setdefault(one.target.name, []).append(at)
        once = {name for name, where in assigned.items() if len(where) == 1}
        lifetime = self.func_ir.variable_lifetime  # numba found it when the IR changed last
        before = lifetime.cfg.dominators()
        for at, names in lifetime.usedefs.usemap.items():  # of other blocks
            once -= {n for n in names & once if not at > assigned[n][0] in before[at]}
        self._singly_assigned_vars, self._blk_local_varmap = once, {}

    def alloca_lltype(self, name, lltype, datamodel=None):
        """Reserve memory for a variable, without its size, which only debuggers want."""
        return cgutils.alloca_once(self.builder, lltype, name=name)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):
    _name = "hot_lowering"
    lowering_class = _Lower


# Numba's passes over a function, in its order, without those that our loops do not need: closures,
# with-blocks, array expressions, one name for each type of a variable.
PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.DeadBranchPrune,  # of ``if Y is None``, so that loops may only forecast
    untyped_passes.GenericRewrites,
    typed_passes.NopythonTypeInference,
    _Lowering,
    typed_passes.NoPythonBackend,
)


class _Short(compiler.CompilerBase):
    """A compiler with these passes."""

    def define_pipelines(self):
        """Return the passes as numba wants them."""
        manager = compiler.PassManager("hot")
        for one in PASSES:
            manager.add_pass(one, one.__name__)
        manager.finalize()
        return [manager]


class _Called(_Short):
    """Compiles a function that compiled code calls, to LLVM code only."""

    def compile_extra(self, func):
        """Return what numba knows of the function; its callers find it by ``entry_point``."""
        target, flags = self.state.targetctx, self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        self.state.library = library = _Part(target.codegen(), func.__qualname__)
        # The arrays of a function apart never overlap.
        library.apart = flags.noalias = not flags.forceinline
        library.wide = func in WIDE
        result = super().compile_extra(func)._replace(entry_point=object())
        target.insert_user_function(result.entry_point, result.fndesc, [library])
        return result


def _load_tables() -> None:
    """Let numba load what it can compile, but not scipy.linalg, which takes as long as the rest.

    Numba only looks there whether it has a BLAS, and does so again where a function calls one.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    linalg: Any = importlib.import_module("numba.np.linalg")
    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look


ANSWERS: dict[Any, Any] = {}  # of numba: what functions return, by the types of their arguments


@contextmanager
def _compiling() -> Iterator[None]:
    """Let numba remember what a function returns for given types, and collect no garbage.

    It goes through all versions of ``+`` at each sum. Together that is a third of the time.
    """
    functions: Any = BaseFunction
    look_up, collects = functions.get_call_type, gc.isenabled()

    def remember(called, context, args, keywords):
        asked = id(called), args, tuple(keywords.items())
        if asked not in ANSWERS:
            ANSWERS[asked] = called, look_up(called, context, args, keywords)
        return ANSWERS[asked][1]

    timer = threading.Timer(SILENT_SECONDS, _say_that_it_compiles)
    timer.daemon = True
    with suppress(RuntimeError):  # there are too many threads
        timer.start()
    functions.get_call_type = remember  # one thread at a time is here: numba's lock
    gc.disable()
    try:
        yield
    finally:
        timer.cancel()
        functions.get_call_type = look_up
        if collects:
            gc.enable()


class _Entered(_Short):
    """Compiles a function that Python calls, to machine code."""

    def __init__(self, *args):
        _load_tables()
        super().__init__(*args)

    def compile_extra(self, func):
        """Return the compiled function; without a C wrapper, which nobody uses."""
        self.state.flags.no_cfunc_wrapper = True
        self.state.library = _Whole(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()  # keeps the machine code for the cache
        with _compiling():
            return super().compile_extra(func)


def compile_whole(function, inlined, options):
    """Return a dispatcher of numba's that compiles as this file says.

    function : of Python; inlined : whether callers take it in, or keep it as a function of their
    machine code; options : of ``numba.njit``.
    """
    # Without _nrt, calls that count references to arrays are gone from the loops, 20 to 130 ns a
    # round; a function that makes an array does not compile.
    options = options | {"_nrt": False}
    called = numba.njit(pipeline_class=_Called, forceinline=inlined, **options)(function)
    results = called.overloads
    called.add_overload = lambda r: results.update({tuple(r.signature.args): r})  # not enterable
    entered = numba.njit(pipeline_class=_Entered, **options)(function)

    def template(args, kws):  # what compiled callers ask for; once for 1 and n, not twice
        return called.get_call_template([types.unliteral(arg) for arg in args], kws)

    entered.get_call_template = template
    entered.get_overload = called.get_overload
    entered._cache = cache_of(function)
    return entered
