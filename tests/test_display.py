"""How things are shown: results in one line without their arrays, HTML tables that are escaped."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import oklnumba as okl
from oklnumba.core.checks import LONGEST
from oklnumba.core.display import repr_value, table
from tests.battery import LEARNERS, make, stream

N = 40
X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
Y = np.sign(X[:, 0] + 1e-9)
KERNEL, PKAWV = okl.Gaussian(1.0), okl.PKAWV(okl.TaylorFeatures(2))
RESULTS = {
    "Run": lambda: okl.run(okl.KernelAWV(KERNEL), X, Y),
    "run of classes": lambda: okl.run(okl.OneVsRest(PKAWV, [-1, 1]), X, Y),
    "run of outputs": lambda: okl.run(okl.MultiOutput(PKAWV), X, X),
    "Certificate": lambda: RESULTS["Run"]().certificate,
    "certificate of outputs": lambda: RESULTS["run of outputs"]().certificate,
    "RegretCurve": lambda: okl.run(okl.KernelAWV(KERNEL), X, Y).regret(KERNEL, 1.0, at=9),
    "Comparator": lambda: okl.theory.comparator(KERNEL, X, Y, 1.0),
    "Hindsight": lambda: okl.theory.Hindsight(KERNEL, X, Y, 1.0),
    "Meter": lambda: okl.theory.Meter(okl.FourierFeatures(9)).partial_fit(X, Y),
    "Reading": lambda: okl.theory.Meter(okl.FourierFeatures(9)).partial_fit(X, Y).read(),
    "AldBudget": lambda: okl.theory.ald_budget_bound(KERNEL, X, 0.1),
    "GreedyGame": lambda: okl.adversary.greedy(okl.KernelAWV(KERNEL), KERNEL, 9, 1),
    "RKHSFunction": lambda: okl.adversary.rkhs_function(KERNEL, 2),
    "Portfolio": lambda: okl.oco.Portfolio(np.abs(X) + 0.1),
    "LeastSquares": lambda: okl.oco.LeastSquares(X, Y),
    "Played": lambda: okl.oco.play(okl.Hedge(eta=0.1), okl.oco.Portfolio(np.abs(X) + 0.1)),
    "Potential": lambda: okl.oco.negative_entropy(eta=1.0),
    "Loss": lambda: okl.losses.get("hinge"),
    "Dataset": lambda: okl.datasets.load("magic04"),
    "NystromFeatures": lambda: okl.NystromFeatures(X, KERNEL),
    "OnlineToBatch": lambda: okl.OnlineToBatch(okl.FOGD()).fit(X, Y),
    "Standardizer": lambda: okl.Standardizer().partial_fit(X),
}


def read(text):
    """Return the caption and the rows of a table, all of whose tags are closed."""
    table = ElementTree.fromstring(text)
    cells = ["".join(one.itertext()) for one in table.iter() if one.tag in ("th", "td")]
    return table.findtext("caption"), dict(zip(cells[::2], cells[1::2], strict=True))


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_is_one_line_without_arrays(result):
    shown = repr(result())
    assert "\n" not in shown and len(shown) < 400
    assert not re.search(r"array\(|\.\.\.|object at|<function|np\.", shown)


def empty_run():
    with pytest.warns(UserWarning, match="the stream has no rows"):
        return okl.run(okl.KernelAWV(KERNEL), iter([]))


def test_numbers_of_results_are_those_of_the_last_round():
    run = RESULTS["Run"]()
    curve = run.regret(KERNEL, 1.0, at=9)
    assert f"prefix_penalised={curve.prefix_penalised[-1]:.4g}" in repr(curve)
    assert "rounds=40" in repr(curve) and "points=9" in repr(curve)
    assert "regret" not in repr(empty_run().certificate)


def test_a_notebook_shows_the_picture_of_a_run():
    assert RESULTS["Run"]().plot()._repr_png_()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", ["run of classes", "NystromFeatures", "OnlineToBatch"])
def test_html_is_a_small_table(name):
    text = RESULTS[name]()._repr_html_()
    caption, rows = read(text)
    assert caption and 2 <= len(rows) < 12 and len(text) < 2000
    assert "array([" not in text


def test_what_the_table_of_a_run_says():
    run = RESULTS["Run"]()
    rows = read(run._repr_html_())[1]
    assert rows["learner"] == run.learner and rows["rounds"] == "40"
    assert rows["mean squared loss"] == f"{run.mean_loss:.4g}"
    assert rows["mistakes"].startswith(f"{100 * run.mistake_rate:.2f} % (always the commonest")
    assert rows["regret"] == f"{run.certificate.regret[-1]:.4g}"
    assert rows["bound on the regret"] == f"{run.certificate.bound[-1]:.4g}"
    assert rows["size"] == "40"
    both = RESULTS["run of outputs"]()
    rows = read(both._repr_html_())[1]
    assert rows["from round 33 on"] == f"{both.settled_mean_loss:.4g}" and "33" in repr(both)
    assert rows["regret"] == f"{both.certificate.regret[-1].sum():.4g}" and "mistakes" not in rows
    empty = read(empty_run()._repr_html_())[1]
    assert empty["rounds"] == "0" and "regret" not in empty and "size" not in empty
    gaps = okl.run(okl.FOGD(), np.ones((9, 1)), np.full(9, np.nan), labels="optional")
    for bare in (empty, read(gaps._repr_html_())[1]):
        assert "mistakes" not in bare


@pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
def test_the_table_of_a_learner(cls):
    learner = make(cls)
    rows = read(learner._repr_html_())[1]
    assert list(rows) == list(learner.__signature__.parameters)
    after = read(learner.partial_fit(*stream(learner, 20))._repr_html_())[1]
    assert after == rows | {"rounds played": "20", "size": f"{learner.size:,}"}


def test_text_is_no_html():
    text = table("<b>", {"<script>": "a & b", "n": 12345, "f": 0.123456, "x": "y" * 999})
    caption, rows = read(text)
    assert caption == "<b>" and rows["<script>"] == "a & b"
    assert (rows["n"], rows["f"]) == ("12,345", "0.1235")
    assert len(rows["x"]) == LONGEST and rows["x"].endswith(" ...")
    learner = okl.OneVsRest(okl.FOGD(), ["<i>", "b"])
    assert read(learner._repr_html_())[1]["classes"] == "['<i>', 'b']"


def test_what_is_short_and_numbers_of_numpy_are_shown_plainly():
    assert repr_value(np.arange(6)) == "array([0, 1, 2, 3, 4, 5])"
    assert repr_value(np.zeros((3, 4))) == "<array (3, 4)>"
    assert repr_value(pd.DataFrame(np.zeros((3, 4)))) == "<DataFrame (3, 4)>"
    assert repr_value(KERNEL) == "Gaussian(sigma=1.0)" and repr_value("a") == "'a'"
    learner = okl.OneVsRest(okl.LinearAWV(), classes=list(np.array(["x", "y"])))
    assert repr(learner).endswith("classes=['x', 'y'])")
    assert repr(okl.Gaussian(np.float64(2.0))) == "Gaussian(sigma=2.0)"
    assert repr(learner.partial_fit([[1.0]], ["y"]).predict_one([1.0])) == "'y'"
