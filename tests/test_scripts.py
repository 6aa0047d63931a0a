"""The scripts of the figures: that they run, what they write, and how reproduce.py reports."""

import ast
import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
FIGURES = sorted(SCRIPTS.glob("*[0-9][0-9][0-9][0-9]_*.py"))
OTHERS = [SCRIPTS / "certificate.py", SCRIPTS / "regret_vs_dictionary.py"]
COLUMNS = "dataset,scaling,algorithm,size,captured,round,average_loss,seconds,finished".split(",")


@pytest.fixture
def env(tmp_path):
    """Return an environment in which only the package's own data sets are found."""
    env = dict(os.environ, OKLNUMBA_CACHE=str(tmp_path / "no-cache"))
    env.pop("OKLNUMBA_DATA", None)
    return env


def python(script, *options, env):
    command = [sys.executable, str(script), *options]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_reproduce_lists_the_scripts(env):
    done = python(SCRIPTS / "reproduce.py", "--list", env=env)
    assert done.returncode == 0, done.stderr
    listed = [line.split(":")[0] for line in done.stdout.splitlines()]
    benchmarks = [path.name for path in SCRIPTS.glob("benchmark_*.py")]
    assert listed == sorted([*benchmarks, *(path.name for path in OTHERS + FIGURES)])


@pytest.mark.parametrize("path", OTHERS + FIGURES, ids=lambda p: p.stem)
def test_headers_say_what_is_reproduced(path):
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert all(f"\n{field}: " in doc for field in ("Reproduces", "Missing", "Time", "Data"))


@pytest.mark.parametrize(
    "status, options, exit_status, outcome",
    [
        (0, [], 0, "ok"),
        (3, [], 1, "FAILED (exit 3)"),
        (77, [], 0, "skipped (no data)"),
        (77, ["--all"], 1, "FAILED (no data)"),
    ],
)
def test_reproduce_reports_each_script(tmp_path, env, status, options, exit_status, outcome):
    for name in ("reproduce.py", "common.py"):
        shutil.copy(SCRIPTS / name, tmp_path / name)
    (tmp_path / "helper.py").write_text("raise SystemExit(1)")
    (tmp_path / "some2000_tab1.py").write_text(f"raise SystemExit({status})")
    done = python(tmp_path / "reproduce.py", *options, env=env)
    assert done.returncode == exit_status, done.stderr
    assert outcome in done.stdout
    assert "helper" not in done.stdout


def test_without_data_nothing_is_drawn(tmp_path, env):
    done = python(SCRIPTS / "jezequel2019_fig2.py", "--output", str(tmp_path / "out"), env=env)
    assert done.returncode == 77, done.stderr
    assert "cod-rna is not here" in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
def test_a_figure_on_the_bundled_data(tmp_path, env):
    options = ["--quick", "--limit", "0.3", "--output", str(tmp_path)]
    done = python(SCRIPTS / "jezequel2019_fig4.py", *options, env=env)
    assert done.returncode == 0, done.stderr
    assert "ijcnn1 is not here" in done.stdout
    stem = "jezequel2019_fig4_quick"
    assert (tmp_path / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / f"{stem}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert {(row["dataset"], row["scaling"]) for row in rows} == {
        ("casp", "[-1,1]"),
        ("casp", "[0,1]"),
    }
    assert len({row["algorithm"] for row in rows}) == 9
    for row in rows:
        assert 0 < float(row["average_loss"]) < 1  # labels in [-1, 1]; forecasting 0 loses 0.42
        assert float(row["seconds"]) > 0
        assert int(row["round"]) > 0 and int(row["size"]) > 0
        if "PKAWV" in row["algorithm"]:
            assert 0 < float(row["captured"]) <= 1
        else:
            assert row["captured"] == ""


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
def test_a_table_on_the_bundled_data(tmp_path, env):
    done = python(SCRIPTS / "li2023_tab2.py", "--quick", "--output", str(tmp_path), env=env)
    assert done.returncode == 0, done.stderr
    assert "w8a is not here" in done.stdout
    with open(tmp_path / "li2023_tab2_quick.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (tmp_path / "li2023_tab2_quick.png").read_bytes().startswith(b"\x89PNG")
    assert [row["algorithm"] for row in rows] == 2 * ["FOGD", "NOGD", "SkeGD", "B(AO)2KS", "POMDR"]
    assert {row["dataset"] for row in rows} == {"magic04", "mushrooms"}
    for row in rows:
        assert row["permutations"] == "2" and float(row["seconds"]) > 0
        assert (row["step"] == "") == (row["algorithm"] == "POMDR")
        if row["algorithm"] == "POMDR":  # two permutations only: the table itself has ten
            off = abs(float(row["mistakes"]) - float(row["mistakes_published"]))
            assert off < (1.0 if row["dataset"] == "magic04" else 0.2)
