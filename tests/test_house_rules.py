"""Rules about the source itself: where compiled code lives, and what must be documented."""

import ast
import inspect
import os
import re

import numba
import pytest
from threadpoolctl import threadpool_info

import oklnumba as okl
from oklnumba.learners.base.learner import Learner
from tests.battery import CLASSES
from tests.checks import ROOT, dispatchers, tree

pytestmark = pytest.mark.quick
SOURCES = sorted((ROOT / "oklnumba").rglob("*.py"))
HOT = sorted((ROOT / "oklnumba" / "hot").rglob("*.py"))
JIT = ROOT / "oklnumba" / "hot" / "primitives" / "jit.py"
COMPILER = JIT.with_name("compiler.py")
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DECORATORS = {"hot", "hot_apart", "hot_wide", "exact", "exact_apart", "exact_wide"}
MODERN_RANDOM = {"default_rng", "Generator", "BitGenerator", "PCG64", "SeedSequence"}


def compiled_functions():
    """Return the syntax trees of the functions in hot/ with a decorator of the factory."""
    found = []
    for path in set(HOT) - {JIT}:  # whose unbind takes the place of compiler.py's
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                names = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
                if names & DECORATORS:
                    found.append(node)
    return found


def test_only_the_decorator_of_hot_compiles():
    for path in SOURCES:
        text = path.read_text()
        calls = re.findall(r"\b(?:njit|jit|jitclass|vectorize|guvectorize|cfunc)\(", text)
        if path in (JIT, COMPILER):
            assert set(calls) == {"njit("}
        else:
            assert calls == [] and not re.search(r"@(numba|nb)\.", text), path
            imported = re.search(r"^(import|from) (numba|llvmlite)\b", text, re.MULTILINE)
            assert path in HOT or not imported, path


def test_internals_of_numba_are_used_in_two_files():
    used = [p for p in SOURCES if re.search(r"\bllvmlite\b|\bnumba\.core\b", p.read_text())]
    assert used == [COMPILER.with_name("cache.py"), COMPILER]


def test_all_compiled_functions_come_from_the_one_factory():
    source = tree(JIT)
    made = {
        target.id
        for node in source.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") == "_jit"
        for target in node.targets
    }
    assert made == DECORATORS
    assert len(compiled_functions()) > 100


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there are no dispatchers")
def test_the_syntax_trees_above_are_all_the_dispatchers():
    assert set(dispatchers()) == {node.name for node in compiled_functions()}


def test_compiled_functions_neither_raise_nor_print_and_say_what_they_do():
    for function in compiled_functions():
        for node in ast.walk(function):
            where = f"{function.name}, line {node.lineno}" if hasattr(node, "lineno") else ""
            assert not isinstance(node, ast.Raise | ast.Assert | ast.Try), where
            called = node.func.id if isinstance(node, ast.Call) and hasattr(node.func, "id") else ""
            assert called != "print", where
            # These are slow to compile, and for each pair of types.
            assert called not in ("max", "min"), f"{where}: larger and smaller of elementary.py"
        assert ast.get_docstring(function), function.name


def test_no_legacy_random_numbers():
    for path in SOURCES + TESTS + SCRIPTS:
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r"\b(?:np|numpy)\.random\.(\w+)", text)) <= MODERN_RANDOM, path
        assert not re.search(r"from numpy\.random import|\bdefault_rng\(\)", text), path


@pytest.mark.parametrize("learner", CLASSES, ids=lambda learner: learner.__name__)
def test_docstring_of_a_learner(learner):
    docstring = inspect.cleandoc(learner.__dict__["__doc__"])
    sections = re.findall(r"^([A-Z][\w ]*)\n-+$", docstring, flags=re.MULTILINE)
    assert {"Remarks", "Examples"} <= set(sections)
    assert "okl." in docstring.split("Examples\n")[1]
    paper = r"\b(pkawv|kons|pomdr|oco)\b|\b[A-Z]\w+( et al\.| and [A-Z]\w+)?,? (19|20)\d\d\b"
    named = learner in (okl.MultiOutput, okl.Refit) or re.search(paper, docstring)
    assert named, "name the paper, as 'pkawv Algorithm 1' or 'Lu et al. 2016'"
    documented = docstring.split("Remarks\n")[0]
    for name in inspect.signature(learner).parameters:
        assert re.search(rf"\b{name}\b", documented), f"{name} is not documented"


def test_exports_are_sorted_and_complete():
    assert len(set(okl.__all__)) == len(okl.__all__)
    defined = {
        name
        for name, value in vars(okl).items()
        if isinstance(value, type) and issubclass(value, Learner)
    }
    assert defined <= set(okl.__all__)


def test_header_of_a_script():
    for path in SCRIPTS:
        header = ast.get_docstring(tree(path)) or ""
        assert header, path
        draws = path.stem not in ("reproduce", "gallery", "build_open_sets")
        runs = draws and "__main__" in path.read_text(encoding="utf-8")
        assert runs or not re.search(r"_(fig|tab)\w+\.py$", path.name), path
        for field in ("Reproduces:", "Missing:", "Time:") if runs else ():
            assert re.search(rf"^{field} *\S", header, flags=re.MULTILINE), f"{path}: {field}"


def test_tests_run_with_one_thread_of_blas():
    """Two threads of BLAS wait for each other where pytest-xdist keeps all cores busy."""
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {1}
