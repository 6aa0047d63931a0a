"""``okl.warm_up`` and ``oklnumba warm-up``: after them nothing is compiled."""

import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import oklnumba as okl
from oklnumba.command import first_use
from oklnumba.command.parser import main
from oklnumba.hot.primitives import cache, jit
from oklnumba.hot.primitives.cache import BUNDLE
from oklnumba.protocol import warming
from tests.battery import CLASSES
from tests.checks import ROOT, python, refused

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled code")
EVERY_CLASS = {name for name in okl.__all__ if getattr(okl, name) in CLASSES} - {"Refit"}


@pytest.fixture
def played(monkeypatch):
    """Return the list of learners that are warmed up; none of them plays."""
    found = []
    monkeypatch.setattr(warming, "_play", found.append)
    return found


def test_every_learner_has_examples():
    for name in warming.warmable():
        made = list(warming.examples(name))
        assert made and {type(one) for one in made} == {getattr(okl, name)}


def test_all_of_them_without_a_name(played):
    names = list(warming.warmable())
    assert list(okl.warm_up()) == names and set(names) == EVERY_CLASS
    assert {type(one) for one in played} == {getattr(okl, name) for name in EVERY_CLASS}


def test_a_learner_is_left_as_it_is(played):
    learner = okl.OGD(eta=0.3).partial_fit([[1.0]], [1.0])
    assert list(okl.warm_up(learner, "OGD", "OGD")) == [repr(learner), "OGD"]
    assert learner.rounds == 1
    assert played[0] is not learner and played[0].eta == 0.3 and played[0].rounds == 0


@pytest.mark.parametrize("name", ["ogd", "Gaussian", okl.OGD, 3, ["OGD"]])
def test_other_things_are_refused_before_anything_is_compiled(played, name):
    refused("^no learner .*; there are: .*OGD, ", okl.warm_up, "OGD", name)
    assert not played


def test_ctrl_c_stops_it(monkeypatch):
    monkeypatch.setattr(warming, "run", lambda *_: SimpleNamespace(interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        okl.warm_up("OGD")


@compiled
def test_rounds_are_made_up_as_the_learner_takes_them():
    for learner in (
        okl.PKAWV(okl.TaylorFeatures(2, center=[0.1, 0.2, 0.3, 0.4, 0.5])),
        okl.PKAWV(okl.NystromFeatures([[0.0] * 5, [1.0] * 5], okl.Gaussian())),
        okl.OneVsRest(okl.LinearAWV(), ["a", "b", "c"]),
        okl.Experts([okl.LinearRidge()], B=0.5),
        okl.MultiOutput(okl.Lags(okl.OnlineNewtonStep(C=0.5))),
        okl.KernelAWV(okl.Precomputed([[1.0, 0.5], [0.5, 1.0]])),
        okl.BAO2KS([okl.Precomputed(np.eye(3)), okl.Precomputed(np.ones((3, 3)))]),
        okl.PKAWV(okl.NystromFeatures([[0.0], [1.0]], okl.Precomputed(np.eye(3)))),
    ):
        shown = repr(learner)
        assert list(okl.warm_up(learner).values())[0] >= 0.0
        assert (learner.rounds, repr(learner)) == (0, shown)


@pytest.mark.parametrize("basis", [lambda X: X[:, [4]], lambda X: X[:, 4:], lambda X: 1.0 / 0.0])
def test_what_takes_no_made_up_rows_is_told_to_take_its_own(basis):
    learner = okl.PKAWV(okl.BasisFeatures(basis, [[1.0]]))
    cure = r"rows of 2 made-up columns do not suit PKAWV.*play 130 rows.*copy.deepcopy\(learner\)"
    refused(cure, okl.warm_up, learner)


def test_it_warns_where_what_it_compiles_cannot_be_kept(played, monkeypatch, capsys):
    for module in ("oklnumba.protocol.warming", "oklnumba.command.parser"):
        monkeypatch.setattr(f"{module}.cache_folder", lambda: None)
        monkeypatch.setattr(f"{module}.has_compiled", lambda: True)
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR") as caught:
        okl.warm_up("OGD")
    assert caught[0].filename == __file__
    assert main(["warm-up", "OGD"]) == 2
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().err


# All learners, with their defaults on data of each layout and dtype and with hyper-parameters of
# each type of number; then the loops that were compiled, and those with another signature than
# before. Samplers are no learners, which alone are warmed up.
PLAY = """
import itertools, json, tempfile, warnings
import numpy as np, oklnumba as okl
from oklnumba.hot.primitives.jit import LOOPS
from tests.battery import CASES, HOLDERS, SAMPLERS, Variant, by_hand, make, stream
from tests.checks import signatures

warnings.simplefilter("ignore", UserWarning)
kinds = [HOLDERS[name] for name in ("read-only", "Fortran", "strided", "lists")]
kinds += [lambda a, _: a.astype(np.float32), lambda a, _: np.sign(a).astype(np.int64)]
numbers = itertools.cycle([int, np.float64, np.float32, np.int64])
path = tempfile.mkdtemp() + "/learner.npz"

def play(case, X, y, kind):
    learner, number = make(case), next(numbers)
    learner.set_params(**{name: number(value) for name, value in learner.get_params().items()
                          if isinstance(value, float) and value == int(value)})
    okl.run(learner, kind(X, None), kind(y, None))
    learner.partial_fit(kind(X, None), kind(y, None)).predict(kind(X, None))
    learner.save(path)
    by_hand(okl.load(path), kind(X[:20], None), kind(y[:20], None))

def sample(kind):
    for cls in SAMPLERS:
        cls(okl.Gaussian(1.0)).partial_fit(kind(X, None)).transform(kind(X, None))

cases = [Variant(okl.FOGD, "features", okl.TaylorFeatures(2))]
cases += [param.values[0] for param in CASES]
X, _ = stream(okl.OGD(), 150)
if WARM:
    okl.warm_up()
    sample(kinds[0])
before, compiled = signatures(), {loop: loop.stats.cache_misses.total() for loop in LOOPS}
for case in cases:
    for kind in kinds if isinstance(case, type) or case is cases[0] else kinds[:1]:
        play(case, *stream(make(case), 150), kind)
for kind in kinds if WARM else []:
    sample(kind)
new = [name for name, found in signatures().items() if found != before[name]]
misses = [loop.__name__ for loop, n in compiled.items() if loop.stats.cache_misses.total() > n]
print(json.dumps([misses, new]))
"""


@compiled
@pytest.mark.slow
def test_after_it_no_learner_compiles_anything():
    assert python(PLAY.replace("WARM", "True")) == [[], []]


@pytest.mark.skipif(ROOT in Path(okl.__file__).parents, reason="oklnumba is not installed")
def test_from_a_wheel_no_learner_compiles_anything():
    nowhere = {"NUMBA_CACHE_DIR": "/dev/null/none", "NUMBA_CACHE_LOCATOR_CLASSES": None}
    assert python(PLAY.replace("WARM", "False"), **nowhere)[0] == []


# A second process fills the cache; then the loops that the first one still compiles.
BESIDE = """
import json, subprocess, sys
import oklnumba as okl
from oklnumba.command import first_use
from oklnumba.hot.primitives.jit import LOOPS

before = [first_use.needs_help(one) for one in (okl.OGD(), okl.Lags(okl.SelfTuning()))]
subprocess.run([sys.executable, "-c", first_use.COMPILE_THE_REST], check=True)
okl.warm_up("SelfTuning")
after = first_use.needs_help(okl.SelfTuning())
left = sorted(one.__name__ for one in LOOPS if one.stats.cache_misses)
print(json.dumps([before, after, left]))
"""


@compiled
@pytest.mark.slow
@pytest.mark.skipif(BUNDLE.is_dir() or jit.PLAIN, reason="nothing is compiled, or by numba")
def test_another_process_compiles_all_of_self_tuning_but_three_loops(tmp_path):
    cores = first_use.count_cores() > 1
    left = python(BESIDE, NUMBA_CACHE_DIR=str(tmp_path))
    assert left == [[False, cores], False, ["kernel_diags", "layer_rounds", "space_rounds"]]


@compiled
@pytest.mark.skipif(jit.PLAIN, reason="by numba")
def test_where_the_package_brings_machine_code_no_process_helps(monkeypatch, tmp_path):
    loop, nothing = first_use.layer_rounds, SimpleNamespace(_load_index=dict)
    monkeypatch.setattr(loop._cache, "_cache_file", nothing)  # no code in the cache
    monkeypatch.setattr(cache, "BUNDLE", tmp_path)
    monkeypatch.setattr(cache, "_able", lambda _: ["."])
    assert first_use.needs_help(okl.SelfTuning()) == (first_use.count_cores() > 1)
    (tmp_path / f"{cache._bundle_name(loop.py_func)}0").touch()
    assert not first_use.needs_help(okl.SelfTuning())


@pytest.mark.parametrize("stop", [None, KeyboardInterrupt, OSError])
def test_the_other_process_ends_with_the_context(monkeypatch, stop):
    made, popen = [], subprocess.Popen
    monkeypatch.setattr(first_use, "COMPILE_THE_REST", "import time; time.sleep(600)")
    monkeypatch.setattr(first_use, "needs_help", lambda _: True)
    monkeypatch.setattr(
        subprocess, "Popen", lambda *given, **named: made.append(popen(*given, **named)) or made[0]
    )
    with pytest.raises(stop) if stop else nullcontext():
        with first_use.compiling_beside(okl.SelfTuning()):
            assert made[0].poll() is None
            if stop:
                raise stop
    assert made[0].poll() is not None


def test_without_another_process_this_one_compiles(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(first_use, "needs_help", lambda _: True)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with first_use.compiling_beside(okl.SelfTuning()):
        pass


def test_the_command_takes_names_and_calls(played, capsys):
    assert main(["warm-up", "OGD", "KRLS(Gaussian(2.0))"]) == 0
    assert [type(one) for one in played] == [okl.OGD, okl.KRLS] and played[1].kernel.sigma == 2.0
    out, err = capsys.readouterr()
    stored = f"in all; stored in {jit.cache_folder()}"
    lines = [line.split(" s  ") for line in out.splitlines()]
    assert [title for _, title in lines[:2]] == ["OGD", repr(played[1])]
    assert lines[2][1] in ("in all; nothing was left to compile", stored) and not err


@pytest.mark.slow
@compiled
def test_a_stream_compiles_nothing_after_its_first_round_and_forecast():
    later = python("""
import json
import numpy as np
import oklnumba as okl
from tests.checks import signatures

X = np.random.default_rng(0).standard_normal((2100, 3))  # over the restart of round 2048
learner = okl.SelfTuning()
learner.learn_one(X[0], 0.3)
learner.predict_one(X[0])
before = signatures()
for x in X:
    learner.predict_one(x)
    learner.learn_one(x, x[0] * x[1])
learner.partial_fit(X, X[:, 0]).predict(X)
print(json.dumps([len(before), [name for name, of in signatures().items() if of != before[name]]]))
""")
    assert later[0] > 100 and later[1] == []
