"""A user's types: lines of the pages pass mypy --strict and pyright, and wrong calls do not."""

import doctest
import importlib.util
import json
import subprocess
import sys

import pytest

from tests.checks import ROOT

CHECKERS = all(map(importlib.util.find_spec, ("mypy", "pyright")))
pytestmark = pytest.mark.skipif(not CHECKERS, reason="needs the extra dev")
PAGES = "README.md", "docs/quick_start.md"
OWN = """
import numpy as np
import oklnumba as okl

model = okl.SelfTuning(budget=100, seed=1)
model.partial_fit(np.ones((3, 2)), [1.0, 2.0, 3.0]).learn_one([1.0, 2.0], 3.0).save("model.npz")
forecasts: np.ndarray = okl.load("model.npz").predict([[1.0, 2.0]])
run = okl.run(okl.PKAWV(okl.TaylorFeatures(2), lam=0.1), [[1.0]], [1.0])
certified: float = run.certificate.regret[-1] + run.mistake_rate
again: okl.Run = okl.Run.load("run.npz")
okl.theory.awv_bound(okl.Gaussian(1.0), [[1.0]], lam=1.0).is_integer()
errors: np.ndarray = okl.sweep(model, {"points": ([[1.0]], [1.0])})["mean_loss"]
estimator = okl.interop.OnlineRegressor(okl.Standardized(okl.OGD(0.1, schedule="sqrt")))
estimator.fit([[1.0], [2.0]], [1.0, 2.0]).predict([[1.0]])


class Own(okl.Learner):
    features: okl.FourierFeatures
    eta: float = 0.5


Own(okl.FourierFeatures(100, sigma=0.5), eta=0.9).predict_one([1.0])
"""
WRONG = """
import oklnumba as okl
okl.PKAWV(okl.TaylorFeatures(2), lamm=0.1)
okl.NystromAWV(okl.Gaussian(), budget="many")
okl.NystromAWV(okl.Gaussian(), max_size="many")
okl.KernelAWV(okl.Gaussian(), 0.1)
okl.KernelAWV()
okl.theory.awv_bound(okl.Gaussian(), [[1.0]])
"""


def check(module, *options):
    """Return what a checker prints."""
    command = [sys.executable, "-m", module, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("user")
    parser = doctest.DocTestParser()
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        lines = "".join(one.source for one in parser.get_examples(text))
        (folder / f"{page.rpartition('/')[2].removesuffix('.md').lower()}.py").write_text(lines)
    (folder / "own.py").write_text(OWN)
    return folder


def test_lines_of_users_pass_mypy_strict(scripts):
    out = check("mypy", "--strict", "--allow-redefinition", "--cache-dir", scripts / "cache",
                *sorted(scripts.glob("*.py")))  # fmt: skip
    assert out.startswith("Success"), out


def test_lines_of_users_pass_pyright_and_wrong_calls_do_not(scripts):
    (scripts / "wrong.py").write_text(WRONG + "reveal_type(okl.PKAWV.__init__)\n")
    told = json.loads(check("pyright", "--outputjson", "--pythonpath", sys.executable, scripts))
    found = [one for one in told["generalDiagnostics"] if one["severity"] == "error"]
    assert not [one for one in found if not one["file"].endswith("wrong.py")], found
    assert {one["range"]["start"]["line"] for one in found} == {2, 3, 4, 5, 6, 7}
    assert any("lam: float" in one["message"] for one in told["generalDiagnostics"])
