"""Runs and sweeps killed by SIGKILL, again and again: what is left goes on to the same bits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import oklnumba as okl
from tests.compiled import COMPILED
from tests.test_sweep import numbers, play

ROOT = Path(__file__).parents[2]


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and kills what it forked"),
    pytest.mark.skipif(not COMPILED, reason="takes hours without the JIT"),
]


@pytest.mark.parametrize(("record", "resume"), [("all", False), ("none", True)])
def test_a_run_that_is_killed_again_and_again_is_the_run_in_one_go(tries, record, resume):
    kills = tries(4, 25)
    command = [sys.executable, "-m", "tests.killing", str(kills), "7", record, str(resume)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{kills} kills" in done.stdout


def test_a_sweep_that_is_killed_again_and_again_has_the_table_of_one_in_one_go(tries, tmp_path):
    kills = tries(3, 50)
    command = [sys.executable, "-m", "tests.stress.killing_sweeps", str(tmp_path), str(kills), "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"{kills} kills" in done.stdout
    tables, expected = sorted(tmp_path.glob("*.npz")), numbers(play(n_jobs=1))
    assert tables and all(numbers(okl.Table.load(path)) == expected for path in tables)
