"""``okl.warm_up`` and ``oklnumba warm-up``: after them nothing is compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import numba
import pytest
from numba.core import caching

import oklnumba as okl
from oklnumba.command.parser import main
from oklnumba.hot.primitives import jit
from oklnumba.learners.base.player import Player
from oklnumba.protocol import warming
from tests.battery import LEARNERS
from tests.compiled import ROOT, python

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
EVERY_CLASS = {name for name in okl.__all__ if isinstance(getattr(okl, name), type)}
EVERY_CLASS = {name for name in EVERY_CLASS if issubclass(getattr(okl, name), Player)}


@pytest.fixture
def played(monkeypatch):
    """Return the list of learners that are warmed up; none of them plays."""
    found = []
    monkeypatch.setattr(warming, "_play", found.append)
    return found


# ---- who is warmed up ----


def test_every_learner_has_examples():
    assert set(warming.warmable()) == EVERY_CLASS >= {cls.__name__ for cls in LEARNERS}
    for name in warming.warmable():
        made = list(warming.examples(name))
        assert made and {type(one) for one in made} == {getattr(okl, name)}


def test_all_of_them_without_a_name(played):
    assert list(okl.warm_up()) == warming.warmable()
    assert {type(one).__name__ for one in played} == {
        getattr(okl, name).__name__ for name in warming.warmable()
    }


def test_a_learner_is_left_as_it_is(played):
    learner = okl.OGD(eta=0.3).partial_fit([[1.0]], [1.0])
    assert list(okl.warm_up(learner, "OGD", "OGD")) == [repr(learner), "OGD"]
    assert learner.rounds == 1
    assert played[0] is not learner and played[0].eta == 0.3 and played[0].rounds == 0


@pytest.mark.parametrize(
    "name, said",
    [
        ("ogd", "no learner 'ogd'; did you mean 'OGD'"),
        ("Gaussian", "no learner 'Gaussian'; one of KernelAWV, "),
        (okl.OGD, "learners must be names or learners, but there is "),
        (3, "learners must be names or learners, but there is "),
    ],
)
def test_what_is_no_learner_is_told_before_anything_is_compiled(played, name, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        okl.warm_up("OGD", name)
    assert not played


def test_a_stop_is_a_stop(monkeypatch):
    monkeypatch.setattr(warming, "run", lambda *_: SimpleNamespace(interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        okl.warm_up("OGD")


# ---- where it is kept ----


def test_it_warns_where_nothing_can_be_kept(played, monkeypatch):
    monkeypatch.setattr(warming, "cache_folder", lambda: None)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR") as caught:
        okl.warm_up("OGD")
    assert caught[0].filename == __file__


def test_the_folder_is_that_of_numba(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert jit.cache_folder().startswith(str(tmp_path))
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    assert jit.cache_folder() is None


# ---- nothing is compiled afterwards ----

PLAY = """
import json, sys, warnings
from tests.battery import CASES, by_hand, make, stream
from tests.compiled import dispatchers
import oklnumba as okl
warnings.simplefilter("ignore", UserWarning)
names = NAMES
for param in CASES:
    (case,) = param.values
    learner = make(case)
    if type(learner).__name__ in names:
        X, y = stream(learner, 300)
        okl.run(learner, X, y)
        learner.predict(X)
        by_hand(make(case), X[:20], y[:20])
missed = {n: f.stats.cache_misses.total() for n, f in dispatchers().items()}
hits = sum(f.stats.cache_hits.total() for f in dispatchers().values())
print(json.dumps([hits, sorted(name for name, misses in missed.items() if misses)]))
"""


@pytest.mark.slow
def test_after_the_command_another_process_compiles_nothing(request, tmp_path):
    long = request.config.getoption("--long")
    names = [] if long else ["FOGD", "LinearAWV"]
    done = subprocess.run(
        [sys.executable, "-c", WARM.format(cache=str(tmp_path), names=names)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == len(names or warming.warmable()) + 1
    assert str(tmp_path) in lines[-1] and " in all; kept in " in lines[-1]
    hits, missed = python(
        PLAY.replace("NAMES", json.dumps(names or warming.warmable())),
        NUMBA_CACHE_DIR=str(tmp_path),
    )
    assert hits > 5 and missed == []


WARM = """
import os, sys
os.environ["NUMBA_CACHE_DIR"] = {cache!r}
from oklnumba.command.parser import main
sys.exit(main(["warm-up", *{names}]))
"""


# ---- the command ----


def test_the_command_takes_names_and_calls(played, capsys):
    assert main(["warm-up", "OGD", "KRLS(Gaussian(2.0))"]) == 0
    assert [type(one) for one in played] == [okl.OGD, okl.KRLS] and played[1].kernel.sigma == 2.0
    out, err = capsys.readouterr()
    lines = [line.split(" s  ") for line in out.splitlines()]
    assert [title for _, title in lines[:2]] == ["OGD", repr(played[1])]
    assert lines[2][1] == f"in all; kept in {jit.cache_folder()}" and not err


@pytest.mark.parametrize(
    "argument, said",
    [
        ("ogd", "no learner 'ogd'; did you mean 'OGD'?"),
        ("PKAWV(", "cannot read 'PKAWV('"),
        ("PKAWV()", "PKAWV"),
        ("Gaussian(1)", "'Gaussian(1)' is no learner"),
    ],
)
def test_errors_of_the_command_take_one_line(played, capsys, argument, said):
    assert main(["warm-up", argument]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"oklnumba: error: {said}") and err.count("\n") == 1 and not out
    assert not played


def test_the_command_fails_where_nothing_can_be_kept(played, capsys, monkeypatch):
    monkeypatch.setattr("oklnumba.command.warm_up.cache_folder", lambda: None)
    assert main(["warm-up", "OGD"]) == 2
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().err and not played


@pytest.mark.parametrize(
    "learner",
    [
        okl.PKAWV(okl.TaylorFeatures(2, center=[0.1, 0.2, 0.3, 0.4, 0.5])),
        okl.PKAWV(okl.NystromFeatures([[0.0] * 5, [1.0] * 5], okl.Gaussian())),
        okl.MultiOutput(okl.LinearAWV()),
        okl.OneVsRest(okl.LinearAWV(), ["a", "b", "c"]),
    ],
    ids=lambda one: type(getattr(one, "features", one)).__name__,
)
def test_rounds_are_made_up_as_the_learner_takes_them(learner):
    shown = repr(learner)
    assert list(okl.warm_up(learner).values())[0] >= 0.0
    assert (learner.rounds, repr(learner)) == (0, shown)
