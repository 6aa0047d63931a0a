"""Rules of the house: which rooms import which, how long things are, where code is compiled."""

import ast
import functools
import inspect
import os
import re

import numba
import pytest
from threadpoolctl import threadpool_info

import oklnumba as okl
from oklnumba.core.params import Params
from oklnumba.learners.base.learner import Learner
from tests.battery import CLASSES
from tests.checks import ROOT, dispatchers, tree

pytestmark = pytest.mark.quick
PACKAGE = ROOT / "oklnumba"
FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# Arrows run down only: a room may import itself and those on lower floors.
FLOORS = (
    ("hot",),
    ("core",),
    ("components",),
    ("learners", "theory", "data"),
    ("protocol",),
    ("experiments", "interop"),
    ("plots",),
    ("__init__",),
    ("command",),
    ("__main__",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

# Loops import primitives only, but
LEANS = {
    ("hot.pros_n_kons", "hot.newton"): "it plays the Newton step in the span of a dictionary",
    ("hot.frequent_kons", "hot.newton"): "it plays the sketched Newton step in the same way",
    ("hot.nystrom_awv", "hot.awv"): "between two growths of its span it is AWV on features",
    ("hot.tuned.space", "hot.awv"): "AWV and ridge on shared coordinates",
    ("hot.tuned.layers", "hot.experts"): "its first and last step are aggregations of experts",
    ("hot.tuned.layers", "hot.tuned.space"): "its second step is ridge regressions",
}

LONGEST_FILE, LONGEST_BODY, MOST_ARGUMENTS = 650, 40, 12
# Arrays have names: in hot/ so many unpackings of three or more names from one, so many entries of
# parameters by number, functions of 11 arguments or more; in the package so many slots ``_``.
UNPACKINGS, ENTRIES, LONG_CALLS, SLOTS = 10, 35, 0, 5
MANY_ARGUMENTS = {
    "protocol.run:run": "the one call that plays, all but three by keyword",
    "data.streams:stream": "the one call that reads files, all but the first by keyword",
    "experiments.sizes:regret_vs_size": "the one call for the picture, all but six by keyword",
}


@functools.cache
def imports(name):
    """Return the files of the package that a file imports, and where."""
    found = []
    for node in ast.walk(tree(FILES[name])):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("oklnumba"):
            module = node.module.removeprefix("oklnumba").lstrip(".")
            for alias in node.names:
                whole = f"{module}.{alias.name}".lstrip(".")
                choices = whole, f"{whole}.__init__", module, f"{module}.__init__"
                file = next(c for c in (*choices, "__init__") if c in FILES)
                found.append((file, alias.name, node))
        elif isinstance(node, ast.Import):
            ours = [one.name for one in node.names if one.name.split(".")[0] == "oklnumba"]
            found += [("__init__", name, node) for name in ours]
    return found


def room(name):
    return name.split(".")[0]


def test_arrows_run_down_only_to_two_files_at_the_root():
    for name in FILES:
        for other, _, node in imports(name):
            below = room(other) == room(name) or FLOOR[room(other)] < FLOOR[room(name)]
            assert below, f"{name}, line {node.lineno} imports {other}"
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_there_is_no_circle_of_files():
    below = {name: {other for other, _, _ in imports(name)} - {name} for name in FILES}
    while below:
        leaves = {name for name, others in below.items() if not others & below.keys()}
        assert leaves, f"a circle among {sorted(below)}"
        below = {name: others for name, others in below.items() if name not in leaves}


def test_imports_stand_at_the_top_and_take_no_private_names():
    for name in FILES:
        body = tree(FILES[name]).body
        body = body + [node for one in body if isinstance(one, ast.Try) for node in one.body]
        top = {id(node) for node in body}
        for _, imported, node in imports(name):
            where = f"{name}, line {node.lineno}"
            assert id(node) in top, f"{where}: an import inside a function hides an arrow"
            assert not imported.startswith("_"), f"{where}: {imported} is private"


def test_a_loop_imports_primitives_only_but_for_leans_that_are_used():
    for name in FILES:
        for other, _, node in imports(name) if room(name) == "hot" else ():
            allowed = other.startswith("hot.primitives.") or (name, other) in LEANS
            assert allowed, f"line {node.lineno}: {name} leans on {other}"
    assert all(other in {found for found, _, _ in imports(name)} for name, other in LEANS)


def test_only_the_base_class_calls_the_blocks_of_another_learner():
    for name, path in FILES.items():
        for node in ast.walk(tree(path)) if room(name) in ("learners", "protocol") else ():
            called = getattr(node, "func", None)
            if getattr(called, "attr", "") in ("_play", "_forecast"):
                assert ast.unparse(called.value) in ("self", "super()"), f"{name}: {node.lineno}"


def test_length_of_files_and_bodies_and_number_of_arguments():
    for name, path in FILES.items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE, name
    too_long, too_many = set(), set()
    for name in FILES:
        for node in functions(name):
            lines, arguments = measures(node)
            too_long |= {f"{name}:{node.name}"} if lines > LONGEST_BODY else set()
            too_many |= {f"{name}:{node.name}"} if arguments > MOST_ARGUMENTS else set()
    assert too_many == set(MANY_ARGUMENTS)
    assert not too_long


@functools.cache
def functions(name):
    """Return every function of a file."""
    return [node for node in ast.walk(tree(FILES[name])) if isinstance(node, ast.FunctionDef)]


def measures(node):
    """Return the lines of a function's body, docstring apart, and its number of arguments."""
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    lines = node.end_lineno - body[0].lineno + 1 if body else 0
    arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    return lines, len(arguments) - (bool(arguments) and arguments[0].arg in ("self", "cls"))


def loops():
    """Return every function of hot/."""
    return [node for name in FILES if room(name) == "hot" for node in functions(name)]


def arguments_of(function):
    parts = function.args
    return {one.arg for one in parts.posonlyargs + parts.args + parts.kwonlyargs}


def is_unpacking(node):
    """Return whether three names or more are assigned from one name, attribute or entry."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript)
        and isinstance(node.targets[0], ast.Tuple)
        and len(node.targets[0].elts) >= 3
    )


def is_entry(node, arguments):
    """Return whether this is an entry of a parameter by its number, other than of a shape."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        return False
    base = node.value
    if not isinstance(node.slice.value, int) or getattr(base, "attr", "") == "shape":
        return False
    while isinstance(base, ast.Subscript | ast.Attribute):
        base = base.value
    return isinstance(base, ast.Name) and base.id in arguments


def test_loops_name_their_arrays_and_slots_of_nothing_are_few():
    inside = [(function, node) for function in loops() for node in ast.walk(function)]
    assert sum(is_unpacking(node) for _, node in inside) <= UNPACKINGS
    assert sum(is_entry(node, arguments_of(function)) for function, node in inside) <= ENTRIES
    assert sum(len(arguments_of(function)) >= 11 for function in loops()) <= LONG_CALLS
    stored = (
        part
        for path in FILES.values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store)
        for part in node.elts
    )
    assert sum(isinstance(part, ast.Name) and part.id == "_" for part in stored) <= SLOTS


@pytest.mark.parametrize("name", FILES)
def test_constants_and_arrays_share_no_name(name):
    # A matrix P where P is also the number 4 is a trap.
    constants = {
        target.id
        for node in tree(FILES[name]).body
        if isinstance(node, ast.Assign)
        for assigned in node.targets
        for target in ast.walk(assigned)
        if isinstance(target, ast.Name) and target.id.isupper()
    }
    constants |= {imported for _, imported, _ in imports(name) if imported.isupper()}
    for node in functions(name):
        local = {argument.arg for argument in node.args.args}
        local |= {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
        assert not constants & local, f"line {node.lineno}"


WITH_PARAMETERS = [
    value
    for name in okl.__all__
    if isinstance(value := getattr(okl, name), type) and issubclass(value, Params)
]


@pytest.mark.parametrize("cls", WITH_PARAMETERS, ids=lambda cls: cls.__name__)
def test_arguments_with_defaults_are_keyword_only_after_the_first(cls):
    for i, parameter in enumerate(inspect.signature(cls).parameters.values()):
        if i > 0 and parameter.default is not inspect.Parameter.empty:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY, parameter.name


SOURCES, HOT = FILES.values(), [path for name, path in FILES.items() if room(name) == "hot"]
JIT, COMPILER = FILES["hot.primitives.jit"], FILES["hot.primitives.compiler"]
SCRIPTS, TESTS = (sorted((ROOT / folder).rglob("*.py")) for folder in ("scripts", "tests"))
DECORATORS = {"hot", "hot_apart", "hot_wide", "exact", "exact_apart", "exact_wide"}
MODERN_RANDOM = {"default_rng", "Generator", "BitGenerator", "PCG64", "SeedSequence"}


def compiled_functions():
    """Return the syntax trees of the functions in hot/ with a decorator of the factory."""
    names = set(FILES) - {"hot.primitives.jit"}  # whose unbind takes the place of compiler.py's
    every = [node for name in names if room(name) == "hot" for node in functions(name)]
    return [one for one in every if DECORATORS & {getattr(d, "id", "") for d in one.decorator_list}]


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
    for path in (*SOURCES, *TESTS, *SCRIPTS):
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


def test_exports_are_complete_and_named_once():
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
