"""The one decorator of all compiled code, its disk cache, and the status codes of the loops.

Letters of this folder: n rounds, d input width, m dictionary size, r features, ``cap`` allocated
size (a buffer's first m or r entries are valid). Dictionaries are feature-major, ``(d, cap)``, so
that loops run along the atoms. Upper triangular factors are row-major, so that loops run along a
row. A kernel is the pair (code, numbers) that kernels.py makes.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core import caching, compiler, typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.runtime import rtsys
from numba.core.types.functions import BaseFunction

from oklnumba.hot.primitives.passes import Rewrites, ShortLowering

ATOMS = 0  # the first entry of every learner's counts: atoms in its dictionary

# Status codes of the loops; learners/base/learner.py turns them into errors.
DONE = 0
NEED_ROOM = 1  # a buffer is full: grow it and call again
NOT_POSITIVE = 2  # a pivot that must be positive is not
NOT_FINITE = 3  # an overflow reached a forecast
NEED_MAP = 4  # a dictionary is full: make its feature map and call again
STOPPED = 5  # the round just played was the last to learn from
DIVERGED = 6  # a forecast that nothing bounds is beyond LARGEST_FORECAST, or no number

LARGEST_FORECAST = 1e100  # its square is no overflow yet


def _digest_of_folder() -> str:
    """Return a digest of every source file of hot/; nothing if they are in an archive."""
    digest = hashlib.sha256()
    paths = sorted(Path(__file__).parents[1].rglob("*.py"))
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest() if paths else ""


# Numba compares the stamp of a cached function with that of its source when it loads it. Its own
# stamp is of the one file that defines the function: after an edit in linalg.py a loop in another
# file would go on with the old machine code.
STAMP = _digest_of_folder()


class _Results(caching.CompileResultCacheImpl):
    """What numba caches of a function, and where, with the stamp of this folder."""

    def __init__(self, function):
        super().__init__(function)
        # On the instance: numba's setting NUMBA_CACHE_LOCATOR_CLASSES would pass by a subclass.
        self.locator.get_source_stamp = lambda: STAMP

    def reduce(self, data):
        """Return what is written of a compiled function."""
        return STAMP, super().reduce(data)

    def rebuild(self, target_context, reduced_data):
        """Return the compiled function of what was written, None if it was before an edit.

        Numba writes the index before the file that it names. A process killed in between leaves an
        index of today with machine code of yesterday.
        """
        stamp, written = reduced_data
        return super().rebuild(target_context, written) if stamp == STAMP else None


class FolderCache(caching.FunctionCache):
    """Numba's cache of compiled functions, stamped with the digest of this folder."""

    _impl_class = _Results

    def load_overload(self, sig, target_context):
        """Load machine code without what compiling needs: numba's own takes 0.25 s the first time.

        That goes into the tables of all that numba can compile, and into importing scipy.linalg.
        """
        rtsys.initialize(target_context)
        found = self._load_overload(sig, target_context)
        # Two processes that compile at once may write two signatures into one file.
        return found if found is not None and found.signature.args == tuple(sig) else None


def cache_folder() -> str | None:
    """Return the folder where compiled code is kept, None if none is writable."""
    try:
        return _Results(cache_folder).locator.get_cache_path() if STAMP else None
    except RuntimeError:
        return None


def _builder(codegen):
    """Return what builds LLVM's passes, with numba's settings but one.

    Loops are not unrolled, but for what vectors make of them: the code is a third shorter, takes a
    third less time to make, and is no slower.
    """
    options = llvm.create_pipeline_tuning_options(numba.config.OPT)
    options.loop_vectorization = bool(numba.config.LOOP_VECTORIZE)
    options.slp_vectorization = bool(numba.config.SLP_VECTORIZE)
    options.loop_unrolling = False
    return llvm.create_pass_builder(codegen._tm, options)


class _Library(JITCodeLibrary):
    """LLVM code of functions, tidied up one by one; the rest is done to the whole.

    ``apart`` : whether it stays a function of its own in its callers' code.
    """

    apart = False

    def _optimize_functions(self, ll_module):
        """Turn memory that holds variables into values: less than half of what numba does here."""
        ll_module.data_layout = self._codegen._data_layout
        if numba.config.OPT == 0:
            return
        passes = _builder(self._codegen)
        tidying = llvm.create_new_function_pass_manager()
        tidying.add_sroa_pass()
        tidying.add_instruction_combine_pass()
        tidying.add_simplify_cfg_pass()
        for function in ll_module.functions:
            if not function.is_declaration:
                tidying.run(function, passes)


class _Part(_Library):
    """LLVM code of a function that others call: they take it in, and optimise it as their own."""

    def finalize(self):
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class _Whole(_Library):
    """Machine code of a function that Python calls, with its parts, which none but it can see."""

    def _optimize_final_module(self):
        """Optimise once, where numba does it twice for the sake of counted references."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        passes = _builder(self._codegen)
        passes.getModulePassManager().run(self._final_module, passes)


# What numba does to a function, in its order, less what ours do without, which takes a fifth of its
# time: with-blocks, closures, inlining, pruning of branches, literals, array expressions, marks of
# where a variable ends, for arrays whose references are counted, and a name for each value that a
# variable has, for those of several types. Ours have one type throughout, but for ``_``.
PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    Rewrites,
    typed_passes.NopythonTypeInference,
    ShortLowering,
    typed_passes.NoPythonBackend,
)


def _set_up() -> None:
    """Let numba load all that it can compile, but for scipy.linalg, which takes half of the time.

    It looks there whether there is a BLAS, and again where a function calls one.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look


@contextmanager
def _remembering() -> Iterator[None]:
    """Have numba look up once what a function of its own gives for some types.

    At each sum it goes through all it knows of ``+``, twice, which is a tenth of its time. Here it
    compiles for one thread at a time.
    """
    look, found = BaseFunction.get_call_type, {}

    def once(function, context, args, keywords):
        if keywords:
            return look(function, context, args, keywords)
        asked = id(function), tuple(args)
        if asked not in found:
            found[asked] = function, look(function, context, args, keywords)
        return found[asked][1]

    BaseFunction.get_call_type = once
    try:
        yield
    finally:
        BaseFunction.get_call_type = look


class _Short(compiler.CompilerBase):
    """A compiler with the passes above; LLVM gets the same code as from all of numba's."""

    def __init__(self, typingctx, *others):
        _set_up()
        super().__init__(typingctx, *others)

    def define_pipelines(self):
        """Return the passes as numba wants them."""
        manager = compiler.PassManager("hot")
        for one in PASSES:
            manager.add_pass(one, one.__name__)
        manager.finalize()
        return [manager]


class _Called(_Short):
    """The compiler of a function that compiled code calls; it stops at LLVM code."""

    def compile_extra(self, func):
        """Return what numba knows of the function; its callers find it by ``entry_point``."""
        target, flags = self.state.targetctx, self.state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        self.state.library = _Part(target.codegen(), func.__qualname__)
        self.state.library.apart = not flags.forceinline
        result = super().compile_extra(func)._replace(entry_point=object())
        target.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _Entered(_Short):
    """The compiler of a function that Python calls; never as a pointer, which takes longer."""

    def compile_extra(self, func):
        """Return the compiled function.

        Meanwhile nothing is looked over for garbage: that takes a tenth of the time. Nor is what
        was made at once afterwards: it is put among what is old (unless the user has frozen that).
        """
        self.state.flags.no_cfunc_wrapper = True
        self.state.library = _Whole(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()  # machine code is kept, for the cache
        collecting = gc.isenabled()
        gc.disable()
        try:
            with _remembering():
                return super().compile_extra(func)
        finally:
            if collecting:
                if not gc.get_freeze_count():
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()


def _jit(fastmath: set[str], inlined: bool = True):
    """Return the project's one ``njit`` decorator, with a named subset of fastmath.

    Lazy signatures keep the import fast. A function is compiled into machine code, and cached,
    where Python calls it; where compiled code calls it, its LLVM code is put into the caller's,
    ``inlined``, or beside it, as a function that only this machine code sees. So a function is
    optimised as part of what Python enters: a third of the time, and the same bits in the process
    that compiles and in one that loads (where a callee has machine code of its own and a copy in
    its caller, the two round differently, and which a call takes depends on the order of loading).
    ``nogil`` lets threads run learners side by side; ``error_model="numpy"`` keeps division
    branches out of loops. Without ``_nrt`` calls that count references to arrays are gone from the
    loops, 20 to 130 ns a round; a function that makes an array does not compile. Full fastmath is
    never used: it breaks NaN checks and the accuracy of exp.
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    options["_nrt"] = False  # no arrays are made, so there are no references to count

    def decorate(function):
        if numba.config.DISABLE_JIT:
            return function
        called = numba.njit(pipeline_class=_Called, forceinline=inlined, **options)(function)
        found = called.overloads
        called.add_overload = lambda r: found.update({tuple(r.signature.args): r})  # not enterable
        entered = numba.njit(pipeline_class=_Entered, **options)(function)

        def template(args, kws):  # what compiled callers ask for; once for 1 and n, not twice
            return called.get_call_template([types.unliteral(arg) for arg in args], kws)

        entered.get_call_template = template
        entered.get_overload = called.get_overload
        if STAMP:  # without a stamp an edit would not be seen
            try:
                entered._cache = FolderCache(function)
            except RuntimeError:  # no folder is writable: compile in every process
                pass
        return entered

    return decorate


# Sums may be reordered (vectorised) and products fused; NaN and infinity keep their meaning.
REORDERED = {"reassoc", "contract", "arcp", "nsz"}
hot = _jit(REORDERED)
# Bodies so long that a copy at each call would take most of the time of compiling, and loops that
# LLVM would only take as vectors where no loop is around them.
hot_apart = _jit(REORDERED, inlined=False)
# Fused products only: range reductions must not be reordered.
exact = _jit({"contract"})


def entry(loop, arguments):
    """Return the machine code of a loop for arguments of the types of these.

    Numba looks at the types of all arguments of every call, which takes as long as a round of a
    small learner does, 0.2 us for each tuple. What is called so must always get the same types.
    """
    if numba.config.DISABLE_JIT:
        return loop
    signature = tuple(map(numba.typeof, arguments))
    loop.compile(signature)
    return loop.overloads[signature].entry_point
