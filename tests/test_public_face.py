"""The public face: what oklnumba exports, and that README, docs, help() and scripts agree."""

import ast
import inspect
import operator
import re
import subprocess
import sys
import tomllib

import pytest

import oklnumba as okl
from tests.checks import ROOT, tree

pytestmark = pytest.mark.quick
SCRIPTS = {path.name: path for path in sorted((ROOT / "scripts").rglob("*.py"))}
TESTS = [ROOT / "tests" / f"test_{name}.py" for name in ("datasets", "plots", "scripts")]
MODULES = ["adversary", "datasets", "interop", "losses", "oco", "plots", "theory"]
NAMEDTUPLES = {"_asdict", "_fields", "_make", "_replace"}  # public, whatever their first letter


def test_what_is_public_what_dir_shows_and_an_unknown_name():
    assert [name for name in okl.__all__ if inspect.ismodule(getattr(okl, name))] == MODULES
    assert dir(okl) == sorted([*okl.__all__, "__version__"])
    with pytest.raises(AttributeError, match="'oklnumba' has no attribute 'PKAWW'"):
        _ = okl.PKAWW


@pytest.mark.parametrize("name", MODULES)
def test_a_module_exports_its_own_public_names(name):
    module = getattr(okl, name)
    for shown in module.__all__:
        value = getattr(module, shown)
        assert not shown.startswith("_") and not inspect.ismodule(value)
        if inspect.isroutine(value) or isinstance(value, type):
            assert value.__module__.startswith("oklnumba.")
        else:
            assert shown.isupper() and name != "theory"  # a constant


def test_libraries_are_loaded_and_loops_compiled_where_they_are_used_and_left_as_they_are():
    code = """if True:
        import contextlib, io, sys
        import oklnumba as okl
        from oklnumba.command.parser import main
        from oklnumba.hot.primitives.jit import COMPILES, LOOPS
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
            main(["--help"])
        assert "compare" in said.getvalue()
        slow = {"joblib", "matplotlib", "pandas", "polars", "pyarrow", "river", "sklearn"}
        slow = (slow | {"scipy.linalg", "scipy.optimize", "scipy.sparse"}) & sys.modules.keys()
        assert not slow, slow
        assert len(LOOPS) > 20 * COMPILES and not any(loop.signatures for loop in LOOPS)
        sys.modules["sklearn"] = sys.modules["river"] = None  # as if they were not installed
        dir(okl), dir(okl.interop)
        okl.PKAWV(okl.TaylorFeatures(1)).partial_fit([[0.0], [1.0]], [1.0, -1.0])
        features = okl.TaylorFeatures(1).set_output(transform="default").fit([[1.0, 2.0]])
        features.transform([[1.0, 2.0]]), features.get_feature_names_out()
        late = {"matplotlib", "pandas", "polars", "pyarrow", "scipy.sparse"} & sys.modules.keys()
        assert not late, late
        for call in (okl.KORS(okl.Gaussian(1.0)).transform, okl.Standardizer().fit, features.fit):
            try:
                call([1.0])
            except ValueError as error:
                assert type(error) is ValueError, error
        for name, library in (("OnlineRegressor", "scikit-learn"), ("to_river", "river")):
            try:
                getattr(okl.interop, name)
            except ImportError as error:
                assert f"pip install {library}" in str(error), error
            else:
                raise AssertionError(name)
        import matplotlib
        before = matplotlib.rcParams.copy()
        figure, axes = okl.plots.figure()
        axes[0, 0].plot([1, 2], [1, 2], label="a")
        okl.plots.title(axes[0, 0], "losses")
        okl.plots.shared_legend(figure)
        figure.savefig(io.BytesIO(), format="png")
        assert "matplotlib.pyplot" not in sys.modules
        assert matplotlib.rcParams.copy() == before
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_types_go_into_the_wheel():
    assert (ROOT / "oklnumba" / "py.typed").read_bytes() == b""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # whole packages: hatchling takes every file in them
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["oklnumba"]


def rows_of(name):
    """Return the cells of the rows of a page whose first cell has a class."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if len(row) == 3 and row[0].startswith("`")]


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


TABLE = rows_of("docs/algorithms.md")
PAPERS = {name: row[1] for row in TABLE for name in names_in(row[0])}


def test_every_algorithm_is_in_the_table():
    # learners, samplers, and what makes several classes of a learner
    classes = {name for name in okl.__all__ if hasattr(getattr(okl, name), "partial_fit")}
    classes -= {"Learner"}
    assert "KORS" in classes and "PKAWV" in classes and "OneVsRest" in classes
    assert len(PAPERS) == sum(len(names_in(row[0])) for row in TABLE)
    assert classes <= set(PAPERS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0].replace("`", ""))
def test_names_and_scripts_of_the_table_exist(row):
    names = names_in(row[0])
    for name in names:
        assert callable(operator.attrgetter(name)(okl))
    shows = r"\bokl\.(" + "|".join(names) + r")\("
    for script in names_in(row[2]):
        text = SCRIPTS[script].read_text(encoding="utf-8")
        for shared in re.findall(r"^from scripts\.papers\.(\w+) import", text, re.MULTILINE):
            text += SCRIPTS[f"{shared}.py"].read_text(encoding="utf-8")
        assert re.search(shows, text), f"{script} shows no {names}"


def test_readme_has_ten_rows_of_the_table():
    rows = rows_of("README.md")
    assert len(rows) == 10
    for row in rows:
        for name in names_in(row[0]):
            paper, part = row[1].removesuffix(" (lecture notes)"), PAPERS[name]
            assert paper in part or part.startswith(paper.removesuffix(" and others"))


@pytest.mark.parametrize("path", [*SCRIPTS.values(), *TESTS], ids=lambda path: path.name)
def test_no_script_reaches_for_private_names(path):
    for node in ast.walk(tree(path)):
        names = []
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "super()"):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        for name in set(names) - NAMEDTUPLES:
            assert not re.match(r"_(?!_)", name), f"line {node.lineno}: {name} is private"
