"""The scripts of the figures: that they run, what they write, and how reproduce.py reports."""

import csv
import dataclasses
import importlib
import itertools
import os
import shutil
import subprocess
import sys
import time
from math import log
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import oklnumba as okl
from tests.bounds import largest_gap

ROOT = Path(__file__).resolve().parents[1]
REPRODUCE = ROOT / "scripts/reproduce.py"
FILES = {path.stem: path for path in (ROOT / "scripts").rglob("*.py")}
STEMS = {path.stem for path in (ROOT / "figures").glob("*.csv")} - {"self_tuning_rivals"}
COLUMNS = "dataset,scaling,algorithm,size,captured,round,average_loss,seconds,finished".split(",")


@pytest.fixture
def env(tmp_path):
    """Return an environment in which only the package's own data sets are found."""
    env = dict(os.environ, OKLNUMBA_CACHE=str(tmp_path / "no-cache"))
    env.pop("OKLNUMBA_DATA", None)
    return env


def module(stem):
    return ".".join(FILES[stem].relative_to(ROOT).with_suffix("").parts)


def python(*command, env):
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=ROOT, env=env, capture_output=True, text=True
    )


def test_reproduce_lists_the_scripts(env):
    done = python(REPRODUCE, "--list", env=env)
    assert done.returncode == 0, done.stderr
    listed = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert listed == [f"{stem}.py" for stem in sorted(STEMS)]


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
    name = "some2000_tab1.py"
    papers = tmp_path / "scripts/papers"
    papers.mkdir(parents=True)
    for needed in ("reproduce", "common", "__init__"):
        shutil.copy(FILES[needed], papers.parent)
    (papers / "helper.py").write_text('"""Helps."""\nraise SystemExit(1)')
    (papers / name).write_text(f'"""A.\n\nReproduces: b."""\nraise SystemExit({status})')
    done = python(papers.parent / "reproduce.py", *options, env=env)
    assert done.returncode == exit_status, done.stderr
    assert outcome in done.stdout
    ran = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("--- ")]
    assert ran == [name]


@pytest.mark.parametrize(
    "stem, options, first",
    [
        ("jezequel2019_fig2", [], "cod-rna"),
        ("li2023_tab4", [], "mnist12"),
        ("regret_certificate", ["--data", "abalone"], "abalone"),
    ],
)
def test_without_data_nothing_is_drawn(tmp_path, env, stem, options, first):
    output = ["--output", str(tmp_path / "out")]
    done = python("-m", module(stem), *options, *output, env=env)
    assert done.returncode == 77, done.stderr
    *missing, last = done.stdout.splitlines()
    assert missing[0].startswith(f"{first} is not here")
    assert all(
        " is left out: set OKLNUMBA_DATA to a folder that holds " in line for line in missing
    )
    assert last == "nothing to do"
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
@pytest.mark.parametrize("name", ["bounds", "portfolio", "geometry"])
def test_the_figures_of_the_notes(tmp_path, env, name):
    """They stop by themselves where a regret exceeds its bound."""
    stem = f"zhang2019_{name}"
    options = ["--quick", "--output", str(tmp_path)]
    done = python("-m", module(stem), *options, env=env)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{stem}_quick.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / f"{stem}_quick.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 20
    for row in rows:
        if row.get("bound"):
            assert float(row.get("measured", row.get("regret"))) <= float(row["bound"])


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
def test_a_figure_on_the_bundled_data(tmp_path, env):
    options = ["--quick", "--limit", "0.3", "--output", str(tmp_path)]
    done = python("-m", module("jezequel2019_fig4"), *options, env=env)
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
    assert len({row["algorithm"] for row in rows}) == 12
    for row in rows:
        assert 0 < float(row["average_loss"]) < 0.5  # forecasting 0 loses 0.22
        assert float(row["seconds"]) > 0
        assert int(row["round"]) > 0 and int(row["size"]) > 0
        if "PKAWV" in row["algorithm"]:
            assert 0 < float(row["captured"]) <= 1
        else:
            assert row["captured"] == ""


# ---- what the scripts compute by themselves ----


@pytest.fixture
def script():
    return lambda stem: importlib.import_module(module(stem))


def test_data_at_hand(script, monkeypatch, capsys, tmp_path):
    common = script("common")
    monkeypatch.setenv("OKLNUMBA_CACHE", str(tmp_path))
    monkeypatch.delenv("OKLNUMBA_DATA", raising=False)
    assert common.at_hand(["susy", "casp", "susy", "magic04"]) == ["casp", "magic04"]
    said = capsys.readouterr().out
    assert said == f"susy is not here and is left out: {okl.datasets.how_to_get('susy')}\n"
    with pytest.raises(SystemExit) as end:
        common.at_hand(["susy"])
    assert end.value.code == common.NO_DATA == 77
    assert capsys.readouterr().out.endswith("nothing to do\n")


def test_the_writer_of_csv_files(script, tmp_path):
    common = script("common")
    rows = [{"a": 1, "b": "x, y"}, {"a": 0.5}]
    common.write_csv(tmp_path / "new" / "t.csv", rows)
    assert (tmp_path / "new" / "t.csv").read_bytes() == b'a,b\n1,"x, y"\n0.5,\n'
    common.write_csv(tmp_path / "new" / "t.csv", rows[1:], end="\r\n")
    assert (tmp_path / "new" / "t.csv").read_bytes() == b"a\r\n0.5\r\n"


def test_rows_of_curves_and_cells_of_rows(script):
    common = script("common")
    rows = common.series({"who": "a", "seed": 0}, {"t": [1, 2], "loss": np.array([0.5, 0.25])})
    assert rows == [
        {"who": "a", "seed": 0, "t": 1, "loss": 0.5},
        {"who": "a", "seed": 0, "t": 2, "loss": 0.25},
    ]
    rows += common.series({"who": "a", "seed": 1}, {"t": [1], "loss": [3.0]})
    rows += common.series({"who": "b", "seed": 0}, {"t": [9], "loss": [9.0]})
    t, loss, seeds = common.cells(rows, "t", "loss", "seed", who="a")
    np.testing.assert_array_equal(t, [1, 2])
    np.testing.assert_array_equal(loss, [[0.5, 0.25], [3.0, 0.25]])  # the first for all seeds
    np.testing.assert_array_equal(seeds, [[0, 0], [1, 0]])
    assert common.cells(rows, "t", "loss", who="c")[1].size == 0
    with pytest.raises(ValueError):
        common.series({}, {"t": [1, 2], "loss": [1.0]})


@pytest.mark.parametrize(
    "quick, partial, stem", [(0, 0, "one"), (1, 1, "one_quick"), (0, 1, "one_partial")]
)
def test_what_a_script_publishes(script, tmp_path, capsys, quick, partial, stem):
    common = script("common")
    figure, axes = okl.plots.figure(columns=1)
    axes[0, 0].plot([1, 2], label="line")
    args = SimpleNamespace(output=tmp_path, stem="one", quick=quick)
    rows = [{"a": 1 / 3, "b": "x", "c": None}, {"a": 2.0, "b": "y", "c": 1}]
    common.publish(figure, rows, args, legend=1, partial=partial, but=("b",))
    assert (tmp_path / f"{stem}.csv").read_text() == "a,b,c\n0.333333,x,\n2,y,1\n"
    assert (tmp_path / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    assert len(figure.legends) == 1
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "a         c",
        "0.333333  -",
        "       2  1",
    ]


def test_combinations_of_arguments_and_of_hyper_parameters(script):
    combinations = script("rivals").combinations
    kernel = okl.Gaussian(1.0)
    lists = {"kernel__sigma": (0.5, 2), "lam": (0.1,)}
    one = combinations(okl.KernelAWV(kernel), **lists)
    other = combinations(
        lambda sigma, lam: okl.KernelAWV(okl.Gaussian(sigma), lam=lam), sigma=(0.5, 2), lam=(0.1,)
    )
    assert list(one) == list(other) == ["sigma = 0.5, lam = 0.1", "sigma = 2, lam = 0.1"]
    for text, make in one.items():
        assert repr(make()) == repr(other[text]())
        assert make() is not make() and make().kernel is not make().kernel
    assert kernel.sigma == 1.0
    assert list(combinations(okl.KernelAWV(kernel), told="s{sigma:g}", **lists)) == ["s0.5", "s2"]


def test_the_linear_benchmark_counts_cpu_seconds(script, monkeypatch):
    benchmark = script("benchmark_oco")
    X, y = np.ones((1000, 2)), np.ones(1000)
    for clock, moves in (("thread_time", True), ("perf_counter", False)):
        with monkeypatch.context() as patch:
            patch.setattr(time, clock, itertools.count(0, 3600).__next__)  # an hour a look
            assert (benchmark.in_learner(okl.OGD(), X, y)() >= 3600) == moves


def test_runs_count_cpu_seconds_and_are_kept(script, monkeypatch, tmp_path, capsys):
    common, pkawv = script("common"), script("jezequel2019")
    X, y = np.random.default_rng(0).uniform(-1, 1, (900, 2)), np.ones(900)
    args = SimpleNamespace(keep=tmp_path / "new", limit=4000.0)
    with monkeypatch.context() as patch:
        patch.setattr(time, "thread_time", itertools.count(0, 3600).__next__)  # an hour a look
        run = common.timed_run(okl.KernelAWV(okl.Gaussian()), X, y, args.limit)
        first = pkawv.timed({"a": okl.KernelAWV(okl.Gaussian())}, "X", X, y, args)[0]["run"]
        assert first.rounds == run.rounds < 900 and first.seconds == run.seconds >= 3600
    again = pkawv.timed({"a": okl.KernelAWV(okl.Gaussian())}, "X", X, y, args)[0]
    assert again["run"].seconds == first.seconds and again["captured"] == ""
    np.testing.assert_array_equal(again["run"].losses, first.losses)
    taylor = okl.PKAWV(okl.TaylorFeatures(2, sigma=0.2))
    whole = pkawv.timed({"a": taylor}, "X", X, y, args)[0]
    assert whole["run"].rounds == 900
    assert whole["captured"] == f"{taylor.features.captured(X[:500]).mean():.4f}"
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: X")]
    assert len(notes) == 1 and "holds only" in notes[0]
    with pytest.raises(SystemExit, match="X, a: ValueError: y has "):
        pkawv.timed({"a": okl.POMDR(okl.Gaussian())}, "X", X, 2.0 * y, args)


def test_published_points_of_pkawv(script):
    pkawv, fig3 = script("jezequel2019"), script("jezequel2019_fig3")
    casp = pkawv.published("casp average squared loss")
    assert set(casp) == set(pkawv.published("casp cumulative seconds")) == set(pkawv.CURVES)
    rounds, values = casp["FODG"]
    assert (rounds[-1], values[-1]) == (45_730, 0.07043)  # 45,729 on the axis of the picture
    rounds, values = casp["ridge"]
    assert rounds[-1] == 2708
    assert values[-1] == pytest.approx(0.0656, abs=5e-5)
    assert all((np.diff(rounds) > 0).all() for rounds, _ in casp.values())
    game = pkawv.published("adversary d=5 regret")
    assert set(game) == set(fig3.CURVES)
    rounds, values = game["vovk"]
    assert (rounds[-1], values[-1]) == (45, 27.18)
    with pytest.raises(ValueError, match="no figure 'casp'"):
        pkawv.published("casp")
    assert set(pkawv.CURVES.values()) <= set(pkawv.STYLES)
    assert set(fig3.CURVES.values()) <= set(fig3.LABELS)


def test_labels_of_casp_as_the_authors_scale_them(script):
    rmsd = okl.datasets.load("casp").y
    y = script("jezequel2019").authors_labels(rmsd)
    np.testing.assert_allclose(y, (2 * rmsd - 1) / 41, rtol=1e-4)
    assert y.max() == 1.0 and y.min() == pytest.approx(-1 / 41, rel=1e-4)


def test_all_degrees_of_pkawv_are_run_and_the_large_ones_are_not_centred(script):
    pkawv = script("jezequel2019")
    panel = pkawv.Panel("ijcnn1")
    found = pkawv.learners(panel, np.zeros((600, 22)))
    degrees = {label: len(label) > 9 for label in found if label.startswith("PKAWV")}
    expected = {f"PKAWV M={degree}": False for degree in (2, 3, 4)}
    expected |= {f"PKAWV M={degree} centred (ours)": True for degree in (2, 3)}
    assert degrees == expected
    assert set(found) <= set(pkawv.STYLES)


def test_released_pros_n_kons_is_ours_but_for_its_lag(script):
    casp = script("jezequel2019_casp")
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 1, (400, 9))
    y = np.clip(1.6 * np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=400), -1, 1)
    coins = np.random.default_rng(7).random(400)
    learner = okl.ProsNKONS(okl.Gaussian(), sampler="kors_listed", seed=7)
    run = okl.run(learner, X, y)
    forecasts, size = casp.pros_n_kons(X, y, coins, lags=False)
    np.testing.assert_allclose(forecasts, run.predictions, atol=1e-7)
    assert size == learner.size > 20 and np.abs(forecasts).max() == 1.0  # some are projected
    lagged, same = casp.pros_n_kons(X, y, coins, lags=True)
    assert same == size
    joined = np.flatnonzero(np.diff(run.sizes, prepend=0))
    assert (forecasts[joined] == 0).all()  # a restart
    after = joined[:-1] + 1
    after = after[~np.isin(after, joined)]
    assert len(after) > 10
    assert (lagged[after] == 0).all() and (forecasts[after] != 0).all()


def test_the_authors_game_is_won_as_they_won_it(script):
    """Kernel-AWV's regret is near the two games of theirs, which differ by 1 to 8 %."""
    fig3 = script("jezequel2019_fig3")
    rounds, values = script("jezequel2019").published("adversary d=5 regret")["vovk"]
    t = 21
    game = fig3.games(quick=True)[0]
    rows = fig3.play(SimpleNamespace(**vars(game) | {"labels": (fig3.EXACT,)}), t, 1e9)
    _, found, bounds = script("common").cells(rows, "round", "regret", "bound")
    assert found.shape == bounds.shape == (2, t)
    assert found[:, 0] == pytest.approx(0.75)
    assert found[:, -1] == pytest.approx(values[rounds == t][0], rel=0.08)
    assert (found <= bounds).all() and (found[:, -1] > 0.5 * bounds[:, -1]).all()


def test_a_million_rows_stand_for_susy(script, monkeypatch, tmp_path):
    fig2 = script("jezequel2019_fig2")
    monkeypatch.setattr(fig2, "MILLION", 3000)
    monkeypatch.setenv("OKLNUMBA_CACHE", str(tmp_path))
    monkeypatch.delenv("OKLNUMBA_DATA", raising=False)
    name, X, y = fig2.million()
    assert "made up" in name and X.shape == (3000, 18) and np.abs(X).max() <= 1
    assert fig2.susy_panel().name == "susy30k"
    f = okl.adversary.rkhs_function(okl.Gaussian(fig2.SIGMA), 18, seed=0)
    assert np.mean(y != np.sign(f(X))) == pytest.approx(0.2, abs=0.03)
    assert 0.2 < np.mean(y == 1) < 0.8
    spec = dataclasses.replace(
        okl.datasets.SPECS["susy"], shape=(5000, 18), n_train=5000, positives=2500, slack=0
    )
    monkeypatch.setitem(okl.datasets.SPECS, "susy", spec)
    X = np.random.default_rng(0).normal(size=(5000, 18)).astype("<f4")
    y = np.repeat([1, -1], 2500).astype("|i1")
    np.savez(tmp_path / "susy.npz", X=X, y=y, n_train=5000)
    name, found, labels = fig2.million()
    assert "made up" not in name and fig2.susy_panel().name == "susy"
    np.testing.assert_array_equal(found, okl.datasets.scale_to(X)[:3000])
    np.testing.assert_array_equal(labels, y[:3000])


def test_millions_leaves_out_libraries_that_are_not_there(script, monkeypatch, capsys):
    millions, played = script("millions"), []
    monkeypatch.setattr(script("rivals"), "installed", lambda library: library == "river")
    monkeypatch.setattr(millions, "play_all", lambda jobs, args: played.extend(jobs))
    monkeypatch.setattr(millions, "draw", lambda rows: None)
    monkeypatch.setattr(millions, "publish", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["millions.py", "--quick"])
    millions.main()
    names = [name for _, name in played]
    assert any(name.startswith("river") for name in names) and "FOGD" in names
    assert not any(name.startswith("scikit-learn") for name in names)
    assert "scikit-learn is not installed and is left out" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["millions.py", "--only", millions.RIVALS[0]])
    with pytest.raises(SystemExit) as ended:
        millions.main()
    assert ended.value.code == 77


def test_millions_of_rounds(script, monkeypatch):
    """The stream made up has the least error that it says, and sums are those of a run."""
    millions = script("millions")
    block = next(millions.made_up(3))
    axes = np.linalg.qr(np.random.default_rng(millions.CONCEPT).standard_normal((18, 18)))[0]
    U = block.X @ axes.T / (2.0 * millions.DECAY ** np.arange(18))
    log_odds = np.sqrt(2.0) * np.sin(2.0 * U[:, 0]) * np.cos(U[:, 1]) + 0.7 * U[:, 3]
    log_odds += 0.5 * (U[:, 2] ** 2 - 1.0)
    wrong = np.sum(np.sign(log_odds) != block.y)
    assert abs(wrong - block.least) < 4.0 * np.sqrt(block.least)  # its deviation is less
    assert 0.1 < block.least / millions.BLOCK < 0.12
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(millions, "QUICK_ROUNDS", (50_000, 100_000))
    rows = millions.play(millions.MADE_UP, "LinearAWV", True, 100.0)
    assert [row["rounds"] for row in rows] == [50_000, 100_000]
    blocks = list(itertools.islice(millions.made_up(millions.PLAYED), 2))
    run = okl.run(
        okl.LinearAWV(), np.vstack([b.X for b in blocks]), np.hstack([b.y for b in blocks])
    )
    assert rows[-1]["mistakes"] == f"{100 * run.mistake_rate:.4f}"
    assert rows[-1]["least"] == f"{sum(b.least for b in blocks) / 1000:.4f}"
    assert float(rows[-1]["regret"]) == pytest.approx(run.certificate.regret[-1], rel=1e-4)
    rows = millions.play(millions.MADE_UP, "LinearAWV", True, 0.0)  # no time: extrapolated
    assert [row["played"] for row in rows] == [50_000] * 2
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds[1] == pytest.approx(2.0 * seconds[0], rel=1e-3)


def test_millions_of_rows_of_susy(script, monkeypatch, tmp_path):
    millions = script("millions")
    monkeypatch.setattr(millions, "TUNE_ROUNDS", 1000)
    monkeypatch.setattr(millions, "BLOCK", 1500)
    spec = dataclasses.replace(
        okl.datasets.SPECS["susy"], shape=(5000, 18), n_train=5000, positives=2500, slack=0
    )
    monkeypatch.setitem(okl.datasets.SPECS, "susy", spec)
    monkeypatch.setenv("OKLNUMBA_CACHE", str(tmp_path))
    X = np.random.default_rng(0).normal(7.0, 3.0, size=(5000, 18)).astype("<f4")
    y = np.tile([1, -1], 2500).astype("|i1")
    np.savez(tmp_path / "susy.npz", X=X, y=y, n_train=5000)
    assert millions.lengths("susy", False) == (4000,)
    blocks = list(millions.blocks("susy", millions.PLAYED))
    assert [len(b.y) for b in blocks] == [1500, 1500, 1000] and blocks[0].least is None
    np.testing.assert_array_equal(np.hstack([b.y for b in blocks]), y[:4000])
    Z = okl.Standardizer().stream(X[:4000].astype(float)) * millions.LENGTH / np.sqrt(18)
    np.testing.assert_allclose(np.vstack([b.X for b in blocks]), Z, rtol=1e-9, atol=1e-12)
    rehearsed = list(millions.blocks("susy", millions.REHEARSED))
    np.testing.assert_array_equal(np.hstack([b.y for b in rehearsed]), y[4000:])


def test_gradient_descent_on_the_counterexample(script):
    counterexample = script("calandriello2017_counterexample")
    n, C = 300, counterexample.C
    y, w, losses = counterexample.labels(n), 0.0, np.empty(n)
    for t in range(n):
        losses[t] = (w - y[t]) ** 2
        w = float(np.clip(w - 2.0 * (w - y[t]) / (t + 1), -C, C))
    parts = counterexample.gradient_descent(n)
    np.testing.assert_allclose(parts["regret"], np.cumsum(losses - C**2), rtol=0, atol=1e-9)
    assert 4.0 < parts["regret"][-1] - parts["regret"][n // 10 - 1] < 5.5  # logarithmic: 2 log 10
    assert parts["size"].max() == 0


def test_parts_of_the_regret_on_the_counterexample(script):
    """They are those of their definitions, summed up with matrices in R^3."""
    counterexample = script("calandriello2017_counterexample")
    n, phi, sigma = 60, counterexample.PHI, counterexample.SIGMA
    y = counterexample.labels(n)
    coins, shares = np.random.default_rng(3).random(n), np.zeros(n)

    def weight(t, square, A):
        shares[t - 1] = 5.0 * (coins[t - 1] < 0.3)
        return shares[t - 1] * square

    found = counterexample.newton(weight, n)
    A, w, R_G, R_D = np.eye(3), np.zeros(3), 0.0, 0.0
    for t in range(n):
        forecast = np.clip(w @ phi, -1.0, 1.0)
        w = w - (w @ phi - forecast) * phi  # A is a multiple of phi phi' but for alpha I
        g = 2.0 * (forecast - y[t]) * phi
        change = sigma * shares[t] * np.outer(g, g)
        A = A + change
        R_G += g @ np.linalg.solve(A, g)
        R_D += w @ (change - sigma * np.outer(g, g)) @ w
        w = w - np.linalg.solve(A, g)
        assert (found["R_G"][t], found["R_D"][t]) == pytest.approx((R_G, R_D), rel=1e-9)
    assert 0 < found["size"][-1] < n and found["largest R_D"][-1] > R_D


def test_measured_eps(script):
    kors = script("calandriello2017_kors")
    rng = np.random.default_rng(1)
    X, alpha = rng.normal(size=(80, 5)) / 3.0, 0.7
    kept, weights = np.sort(rng.permutation(80)[:12]), rng.uniform(1.0, 9.0, 12)
    meter = kors.Meter(kors.square_root(okl.Linear(), X), alpha)
    A = X.T @ X + alpha * np.eye(5)
    sketch = X[kept].T @ (weights[:, None] * X[kept]) + alpha * np.eye(5)
    values = scipy.linalg.eigvalsh(sketch, A)
    assert meter.eps(kept, weights) == pytest.approx(max(values[-1] - 1.0, 1.0 - values[0]))
    assert meter.eps(np.arange(80), np.ones(80)) < 1e-10
    kernel = okl.Gaussian(0.8)
    meter = kors.Meter(kors.square_root(kernel, X, kors.LOST), alpha)
    K, W = kernel(X), np.full(80, -1.0)
    W[kept] += weights
    # A^-1 (A' - A) has the eigenvalues of W K (K + alpha I)^-1
    values = scipy.linalg.eigvals(W[:, None] * K @ np.linalg.inv(K + alpha * np.eye(80)))
    assert meter.eps(kept, weights) == pytest.approx(np.abs(values).max(), abs=1e-4)


def test_competitor_is_the_best_feasible_one(script):
    competitor = script("calandriello2017").competitor
    rng = np.random.default_rng(2)
    X, kernel = rng.uniform(-1, 1, (60, 2)), okl.Gaussian(1.0)
    y = np.clip(np.sin(3.0 * X[:, 0]), -0.8, 0.8)
    f, norm = competitor(kernel, X, y, C=1.0, alpha=1.0)  # the ridge function is feasible
    ridge = okl.theory.comparator(kernel, X, y, 1.0)
    assert np.abs(ridge.predictions).max() <= 1.0
    np.testing.assert_allclose(f, ridge.predictions, rtol=1e-6, atol=1e-8)
    assert norm == pytest.approx(ridge.norm)
    y = np.sign(X[:, 0])
    f, norm = competitor(kernel, X, y, C=1.0, alpha=1.0)
    ridge = okl.theory.comparator(kernel, X, y, 1.0)
    assert np.abs(ridge.predictions).max() > 1.05 and np.abs(f).max() <= 1.0 + 1e-12
    K = kernel(X) + 1e-10 * np.eye(60)

    def penalised(f):
        return np.square(y - f).sum() + f @ np.linalg.solve(K, f)

    best = scipy.optimize.minimize(  # over a = K^-1 f, with the gradient
        lambda a: (penalised(K @ a), 2 * K @ (K @ a - y + a)),
        np.zeros(60), jac=True, method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
        constraints={"type": "ineq", "fun": lambda a: np.concatenate([1 - K @ a, 1 + K @ a]),
                     "jac": lambda a: np.concatenate([-K, K])},
    )  # fmt: skip
    assert best.success
    assert np.square(y - f).sum() + norm**2 == pytest.approx(best.fun, rel=2e-3)


def test_regret_certificate_measures_mu(script):
    X, kernel = np.random.default_rng(0).uniform(-1, 1, (60, 2)), okl.Gaussian(0.5)
    run = okl.run(okl.NystromAWV(kernel, mu=0.5, seed=1), X, np.ones(60))
    assert 5 < run.sizes[-1] < 50
    at = np.array([10, 30, 60])
    found = script("regret_certificate").gaps(SimpleNamespace(kernel=kernel, X=X, at=at), run.sizes)
    expected = [largest_gap(kernel(X[:t]), run.sizes[:t]) for t in at]
    np.testing.assert_allclose(np.maximum.accumulate(found), expected, rtol=1e-4)


def test_table_1_is_measured_at_the_parameters_of_its_rates(script):
    table = script("jezequel2019_tab1")
    n, g = 1e6, 0.3
    at = {k: log(v) / log(n) for k, v in table.tuning(SimpleNamespace(gamma=g), n).items()}

    def dimension(level):
        return g * (1 - level)

    # the terms of eq. (8), as exponents of n; a dictionary has d_eff(mu) atoms
    optimal = max(at["lam"], dimension(at["lam"]), 1 + dimension(at["mu"]) + at["mu"] - at["lam"])
    assert optimal == pytest.approx(g / (1 + g))
    atoms = dimension(at["pros mu"])
    terms = (at["alpha"], dimension(at["alpha"]), 1 + at["pros mu"] - at["alpha"] - atoms)
    assert atoms + max(terms) == pytest.approx(4 * g / (1 + g) ** 2)
    assert 2 * atoms == pytest.approx(4 * g * (1 - g) / (1 + g) ** 2)  # time a round
    n = np.array([10.0, 100.0, 1e3, 1e4])
    for of_log, base in ((True, np.log(n)), (False, n)):
        slope, error = table.slope(n, np.array([base**2.5, 3 * base**2.5]), of_log)
        assert (slope, error) == pytest.approx((2.5, 0.0), abs=1e-9)


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
def test_a_table_on_the_bundled_data(tmp_path, env):
    done = python("-m", module("li2023_tab2"), "--quick", "--output", str(tmp_path), env=env)
    assert done.returncode == 0, done.stderr
    assert "w8a is not here" in done.stdout
    with open(tmp_path / "li2023_tab2_quick.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert (tmp_path / "li2023_tab2_quick.png").read_bytes().startswith(b"\x89PNG")
    names = ["FOGD", "NOGD", "NOGD, as released", "SkeGD", "B(AO)2KS", "POMDR"]
    assert [row["algorithm"] for row in rows] == 2 * names
    assert {row["dataset"] for row in rows} == {"magic04", "mushrooms"}
    for row in rows:
        released = row["algorithm"] == "NOGD, as released"
        assert row["permutations"] == "2" and (row["seconds"] == "") == released
        assert released or float(row["seconds"]) > 0
        assert (row["step"] == "") == (row["algorithm"] == "POMDR")
        assert (row["best_sigma"] == "") == released
        if not released:
            assert float(row["mistakes_at_best_sigma"]) <= float(row["mistakes_at_sigma"])
        if row["algorithm"] == "POMDR":  # two permutations only: the table itself has ten
            off = abs(float(row["mistakes"]) - float(row["mistakes_published"]))
            assert off < (1.0 if row["dataset"] == "magic04" else 0.2)


def test_nogd_as_released_is_what_the_authors_script_says(script, monkeypatch):
    """NOGD.R line by line, with its solve() where ours has the inverse written out."""
    tables = script("li2023")
    B, r, T, sigma = 15, 5, 90, 0.7
    monkeypatch.setattr(tables, "BUDGET", B)
    monkeypatch.setattr(tables, "RANK", r)
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (T, 2))
    y = np.where(rng.random(T) < 0.2, -1, 1) * np.sign(X[:, 0])
    eta = 100 / np.sqrt(T)

    def column(points, t):
        return np.exp(np.square(points - X[t]).sum(axis=1) / (-2 * sigma**2))

    wrong, svmat, svpara = np.zeros(T, dtype=bool), [X[0]], [eta * y[0]]
    wrong[0] = True
    for t in range(1, T):
        if len(svmat) < B:
            fx = svpara @ column(np.array(svmat), t)
            wrong[t] = (-1 if fx < 0 else 1) != y[t]
            svmat.append(X[t])
            svpara.append(eta * y[t])
        if len(svmat) == B and t == B - 1:
            gram = np.array([column(np.array(svmat), s) for s in range(B)])
            V, d, _ = np.linalg.svd(gram)
            w = (svpara @ np.linalg.inv(d[:, None] ** -0.5 * V))[:r]
        if t >= B - 1:
            phi = d[:r] ** -0.5 * (V[:, :r].T @ column(np.array(svmat), t))
            fx = w @ phi
            wrong[t] |= (-1 if fx < 0 else 1) != y[t]
            if y[t] * fx < 1:
                w = w + eta * y[t] * phi
    np.testing.assert_array_equal(tables.nogd_as_released(X, y, sigma), wrong)
    assert wrong[B:].sum() > 3 and not wrong[B:].all()


@pytest.mark.slow
def test_nogd_as_released_gives_the_published_mistakes(script):
    tables = script("li2023")
    for case in (tables.MUSHROOMS, tables.MAGIC04):
        found = [
            100.0 * tables.nogd_as_released(*tables.permuted(case, seed), case.sigma).mean()
            for seed in range(10)
        ]
        row = tables.published(2, case)["NOGD"]
        mistakes, deviation = float(row["mistakes"]), float(row["mistakes_sd"])
        assert abs(np.mean(found) - mistakes) < deviation  # 1.56, 1.71; 17.26, 17.31
        ours = okl.NOGD(okl.Gaussian(case.sigma), eta=100 / len(tables.data(case)[1]) ** 0.5)
        as_lu = 100.0 * okl.run(ours, *tables.permuted(case, 0)).mistake_rate
        assert mistakes - as_lu > 2 * deviation


@pytest.mark.parametrize("full", [True, False])
def test_susy_is_drawn_from_the_full_file_where_it_is_here(script, monkeypatch, capsys, full):
    monkeypatch.setattr(okl.datasets, "found", lambda name: full or name != "susy")
    X = np.arange(60_000.0)[:, None]
    y = np.where(np.arange(60_000) % 3, 1.0, -1.0)
    loads = []

    def load(name, scale=None):
        loads.append((name, scale))
        n = 60_000 if name == "susy" else 30_000
        return SimpleNamespace(X=X[:n], y=y[:n], n_train=n)

    monkeypatch.setattr(okl.datasets, "load", load)
    tables = script("li2023")
    case = tables.susy()
    inputs, labels = tables.data.__wrapped__(case)  # the cache is for real data
    assert loads == [("susy" if full else "susy30k", None)]
    assert len(inputs) == len(labels) == (50_000 if full else 30_000)
    rows = inputs[:, 0].astype(int)
    assert len(np.unique(rows)) == len(rows)  # without replacement, and with their labels
    np.testing.assert_array_equal(labels, y[rows])
    assert full == bool(rows.max() >= 50_000)
    monkeypatch.setattr(sys, "argv", ["li2023_tab4.py"])
    tables.begin("", [case])
    assert ("stands for 50,000 rows of SUSY" in capsys.readouterr().out) == (not full)


def test_the_table_counts_cpu_seconds_of_one_run_at_a_time(script, monkeypatch):
    tables = script("li2023")
    X, y = np.random.default_rng(0).uniform(-1, 1, (2000, 2)), np.ones(2000)
    monkeypatch.setattr(tables, "data", lambda case: (X, y))
    monkeypatch.setattr(tables, "EXPONENTS", (0,))
    for clock, moves in (("thread_time", True), ("perf_counter", False)):
        with monkeypatch.context() as patch:
            patch.setattr(time, clock, itertools.count(0, 3600).__next__)  # an hour a look
            found = tables.play_timed(tables.MUSHROOMS, SimpleNamespace(limit=1e9), [0, 1])
            assert len(found) == 10 and ((found["seconds"] >= 3600) == moves).all()


def test_table_1_of_pomdr_knows_the_best_function(script):
    table = script("li2023_tab1")
    for setting in table.settings():
        X, y = table.stream(setting, 150, seed=3)
        A = okl.theory.kernel_alignment(setting.kernel, X, y)
        best = okl.theory.norm_ball_comparator(setting.kernel, X, y, table.U)
        assert 150 - np.sqrt(150 * (150 - A)) == pytest.approx(best.loss, rel=1e-4)
        assert (y[X[:, 0] == 0.0] == 1.0).all()  # only coins are anywhere else
    T = np.array([100.0, 200.0, 400.0, 800.0])
    assert table.growth(T, np.outer([1.0, 2.0, 5.0], T**0.7)) == pytest.approx((0.7, 0.0))
    noisy = np.random.default_rng(0).uniform(0.5, 1.5, (50, 4)) * T**0.7
    found, error = table.growth(T, noisy)
    assert abs(found - 0.7) < 3 * error < 0.3
    A = 3.0 * T**0.5
    for setting, own in zip(table.settings(), (0.25, 0.25, None, None), strict=True):
        rates = {label: setting.rates(label, T, A)[0] for label in table.LABELS}
        assert table.exponent(T, rates["OGD"]) == pytest.approx(0.5)
        assert table.exponent(T, rates["B(AO)2KS"] / np.log(T) ** 0.25) == pytest.approx(0.375)
        if own is not None:
            assert table.exponent(T, rates["POMDR"]) == pytest.approx(own)
        else:
            assert 0.25 < table.exponent(T, rates["POMDR"]) < 0.75


def test_the_risks_of_the_risk_figure(script):
    figure = script("li2023_risk")
    for flip in figure.FLIPS:
        values = [figure.risk(figure.SIGNS + move, flip) for move in (0.0, 0.1, -0.3)]
        assert values[0] == pytest.approx(2 * flip) and min(values) == values[0]
    best = figure.least_regularised()
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.2, 0.4, 1.0):
        assert figure.regularised(scale * figure.SIGNS) >= best
        assert figure.regularised(scale * figure.SIGNS + 0.01 * rng.standard_normal(40)) >= best
    fewer = figure.regularised(figure.SIGNS) - figure.LAM / 2 * figure.U**2
    assert fewer == pytest.approx(2 * figure.FLIPS[1])
    X, y = figure.draw_stream(12, 0.1, seed=0)

    def square(values):
        return float(values @ values)

    mean, of_some = figure.over_draws(figure.sgd(0.1), X, y, 0, square)
    functions = [
        figure.sgd(0.1).partial_fit(X[:t], y[:t]) if t else figure.sgd(0.1) for t in range(12)
    ]
    values = np.array([f.predict(figure.POINTS) for f in functions])
    assert mean == pytest.approx(np.square(values).sum(axis=1).mean())
    drawn = okl.OnlineToBatch(figure.sgd(0.1), draws=figure.DRAWS, seed=0).fit(X, y).rounds_
    assert of_some == pytest.approx(square(values[drawn - 1].mean(axis=0)))
    lam, T = figure.tuned(100), 100
    assert all(
        figure.svm_bound(T, lam) + lam * figure.U**2 / 2
        < figure.svm_bound(T, other) + other * figure.U**2 / 2
        for other in (0.9 * lam, 1.1 * lam)
    )
    rounds = okl.theory.svm_rounds(lam, 0.3)
    assert figure.svm_bound(rounds, lam) <= 0.3 < figure.svm_bound(rounds - 1, lam)


def test_streams_that_drift(script):
    """The concept is one function in other axes, and changes where it is said to."""
    streams = script("streams")
    for stream, points in streams.drifts(seed=3):
        n = len(stream.y)
        assert (len(points) > 4) == stream.name.startswith("abrupt")
        gaps = np.diff(np.concatenate([[0], points]))
        assert ((gaps >= 2000) & (gaps <= 5000)).all() and n - points[-1:].sum() >= 2000
        if stream.name != "abrupt drift, linear regression":
            continue
        Z = np.column_stack([(stream.X - stream.X.mean(axis=0)) / stream.X.std(axis=0), np.ones(n)])
        pieces = np.split(np.arange(n), points)
        errors = [np.linalg.lstsq(Z[p], stream.y[p], rcond=None)[1][0] / len(p) for p in pieces]
        np.testing.assert_allclose(errors, 25.0, rtol=0.1)  # noise of half the signal, 10
        across = np.arange(points[0] - 500, points[0] + 500)
        assert np.linalg.lstsq(Z[across], stream.y[across], rcond=None)[1][0] / 1000 > 40.0
    labels = streams.electricity_like().y
    assert np.mean(labels[1:] != labels[:-1]) == pytest.approx(0.15, abs=0.005)


def test_streams_of_a_data_set(script):
    streams = script("streams")
    data = okl.datasets.load("magic04", scale=None)
    found = {stream.name: stream for stream in streams.from_data("magic04")}
    in_file, permuted, by_input = found.values()
    np.testing.assert_array_equal(in_file.X, data.X)
    again = okl.datasets.load("magic04", scale=None, permute=streams.PERMUTATION)
    np.testing.assert_array_equal(permuted.X, again.X)
    np.testing.assert_array_equal(permuted.y, again.y)
    assert (np.diff(by_input.X[:, 0]) >= 0).all() and by_input.y.sum() == data.y.sum()
    assert list(found) == [
        "magic04, file order",
        "magic04, permuted",
        "magic04, sorted by input 0",
    ]


def test_rivals_see_the_past_only(script):
    rivals, streams, tuned = script("rivals"), script("streams"), script("rivals")
    rng = np.random.default_rng(0)
    X, y = rng.normal(5.0, 3.0, (50, 2)), rng.normal(1e4, 1.0, 50)
    found = rivals.standardised_online(X)
    for t in (1, 7, 49):
        expected = (X[t] - X[: t + 1].mean(axis=0)) / X[: t + 1].std(axis=0)
        np.testing.assert_allclose(found[t], expected, rtol=1e-9)
    assert (rivals.standardised_online(np.ones((4, 1))) == 0.0).all()
    stream = streams.Stream("noise", X, y, "regression")
    forecasts = np.full(50, 2e4)
    np.testing.assert_array_equal(
        tuned.clipped(forecasts, stream)[1:], np.maximum.accumulate(y)[:-1]
    )
    assert tuned.clipped(-forecasts, stream)[10] == y[:10].min()
    row = rivals.row(stream, rivals.plain(stream, 1.0)[1])
    assert row["mistakes_all"] == row["loss_5000"] == ""
    means = np.array([y[:t].mean() for t in range(1, 50)])
    expected = (y[0] ** 2 + np.square(y[1:] - means).sum()) / 50
    assert float(row["loss_all"]) == pytest.approx(expected, rel=1e-5)
    labels = streams.Stream("signs", X, np.sign(y - 1e4), "classification")
    row = rivals.row(labels, rivals.plain(labels, 1.0)[1])
    changes = 1 + np.count_nonzero(np.diff(labels.y))  # the first forecast is 0
    assert float(row["mistakes_all"]) == 2.0 * changes


def test_settings_are_tuned_on_other_rows_than_they_play(script, monkeypatch):
    tuned, streams = script("rivals"), script("streams")
    monkeypatch.setattr(tuned, "TUNING_ROWS", 400)
    stream = tuned.rehearsal("magic04")
    played = next(s for s in streams.from_data("magic04") if s.name == "magic04, permuted")
    assert stream.X.shape == played.X.shape and not np.array_equal(stream.X[:5], played.X[:5])
    how, setting = tuned.tune("magic04", "LinearRidge")
    grid = tuned.grids("classification", 10)["LinearRidge"]
    scores = {
        (scaling, name): [
            tuned.score(tuned.play("LinearRidge", make, X, stream, rows), stream)
            for rows in (100, 400)
        ]
        for scaling, X in tuned.scalings(stream.X).items()
        for name, make in grid.items()
    }
    of_a_quarter = sorted(scores, key=lambda key: scores[key][0])[:3]
    assert (how, setting) == min(of_a_quarter, key=lambda key: scores[key][1])


def test_rounds_until_a_loss_is_back(script):
    drift = script("self_tuning_drift")
    every, n = drift.EVERY, 8000
    losses = np.ones(n)
    points = np.array([3000, 6000])
    for point in points:
        losses[point : point + 200] = 5.0
    curve = drift.around(losses.reshape(-1, every).sum(axis=1), points).mean(axis=0)
    assert curve.shape == ((drift.BEFORE + drift.AFTER) // every,)
    assert curve[drift.BEFORE // every - 1] == 1.0 and curve[drift.BEFORE // every] == 5.0
    assert drift.recovery(curve, 1.0) == 300  # the first 100 rounds without a loss of 5
    assert drift.recovery(curve, 0.5) is None
    assert drift.recovery(curve, 5.0) == drift.WINDOW


# ---- which learner ----


@pytest.mark.parametrize("page, count", [("docs/choosing.md", 2), ("docs/performance.md", 1)])
def test_the_guide_has_the_numbers_of_the_csv(script, page, count):
    choosing = script("choosing")
    root = ROOT
    with open(root / "figures" / "choosing.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    text = (root / page).read_text(encoding="utf-8")
    assert text.count(": made by scripts/benchmarks/choosing.py -->") == count
    assert choosing.with_tables(text, rows) == text, "call with_tables on the page"
    rows = [row | {"error": "9.87", "microseconds, bulk": "98"} for row in rows]
    assert choosing.with_tables(text, rows) != text  # negative control


def test_the_guide_names_streams_and_learners_that_were_measured(script):
    choosing = script("choosing")
    with open(ROOT / "figures" / "choosing.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {(row["learner"], row["stream"]) for row in rows}
    assert {(label, stream) for _, label, stream in choosing.CASES} <= found
    assert len({stream for _, stream in found}) == 9 and len(found) == len(rows) > 90


def test_choosing_looks_at_the_first_rows_only(script):
    choosing, streams = script("choosing"), script("streams")
    rng = np.random.default_rng(0)
    X, y = rng.normal(3.0, 2.0, (300, 2)), rng.normal(5.0, 3.0, 300)
    for label in ("FOGD", "OGD", choosing.SELF):
        one = choosing.prepared(label, streams.Stream("one", X, y, "regression"), 100)
        later = X.copy(), y.copy()
        later[0][100:] *= 7.0
        later[1][100:] -= 50.0
        two = choosing.prepared(label, streams.Stream("two", *later, "regression"), 100)
        for first, second in zip(one, two, strict=True):
            np.testing.assert_array_equal(first[:100], second[:100])
            assert not np.array_equal(first[100:], second[100:])
    np.testing.assert_array_equal(one[0], X)  # self-tuning is told nothing
    np.testing.assert_array_equal(one[1], y)
    assert choosing.prepared("OGD", streams.Stream("s", X, y, "regression"), 100)[0].shape[1] == 3


def test_a_row_of_choosing_is_the_error_after_the_rows_that_chose(script):
    choosing, streams = script("choosing"), script("streams")
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (900, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    stream = streams.Stream("made up", X, y, "classification")
    settings = {
        f"sigma={s:g}": lambda s=s: okl.KernelAWV(okl.Gaussian(s), lam=0.1) for s in (0.01, 1.0)
    }
    row = choosing.entry("KernelAWV", settings, stream, 200, 5)
    assert row["setting"] == "sigma=1"
    Z = okl.Standardizer().partial_fit(X[:200]).transform(X)
    mistakes = okl.run(settings["sigma=1"](), Z, y).mistakes
    assert row["error"] == f"{100 * mistakes[200:].mean():.4g}" != f"{100 * mistakes.mean():.4g}"
    assert float(row["microseconds, one at a time"]) > float(row["microseconds, bulk"]) > 0
    assert float(row["megabytes"]) >= 8e-6 * 900 * 901 / 2  # a triangle


def test_a_streamed_benchmark_plays_the_same_rounds_on_both_sides(script, monkeypatch, tmp_path):
    pytest.importorskip("pyarrow")
    benchmark = script("benchmark_stream")
    monkeypatch.setattr(benchmark, "PART", 700)
    benchmark.write(tmp_path / "stream.parquet", 2000)
    stream, arrays = (benchmark.play(str(tmp_path / "stream.parquet"), n) for n in (0, 2000))
    assert stream["loss"] == arrays["loss"] and 0.0 < stream["loss"] < 1.0
    assert min(stream["wall"], stream["cpu"]) > 0.0


# ---- error against time, beside others ----


def sorted_out(rng, n=400):
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] > 0.0, 1.0, -1.0)


def test_methods_of_the_benchmark_have_equally_many_settings(script):
    benchmark = script("benchmark")
    found = benchmark.methods(22, quick=False)
    assert {one.name: len(one.makers) for one in found if len(one.makers) != benchmark.TRIED} == {
        "SelfTuning": 1
    }
    assert len({one.name for one in found}) == len(found) >= 14
    assert {one.name for one in found if one.name in benchmark.QUICK} >= set(benchmark.QUICK[:3])
    for one in found:
        if one.by == benchmark.OURS:  # every setting is another learner
            assert len({repr(make().learner) for make in one.makers.values()}) == len(one.makers)


def test_what_is_slow_is_compared_on_the_rows_that_it_plays(script):
    benchmark = script("benchmark")
    jobs = [(one.name, one.by == benchmark.OURS, one.slow, seed, rows)
            for one, seed, rows in benchmark.jobs(22, 50_000, 5, quick=False)]  # fmt: skip
    assert len(set(jobs)) == len(jobs)
    part = {(name, 0, benchmark.SLOW_ROWS) for name, ours, slow, *_ in jobs if ours or slow}
    whole = {(name, seed, 50_000) for name, _, slow, *_ in jobs if not slow for seed in range(5)}
    assert {(name, seed, rows) for name, _, _, seed, rows in jobs} == part | whole
    assert any(ours and slow for _, ours, slow, *_ in jobs)  # an exact kernel beside an exact one
    head = {"data": "d", "setting": "", "tried": "6", "permutation": "0"}
    runs = [
        head | {"by": by, "method": name, "rows": rows, "mistakes": m, "seconds": "1"}
        for by, name, rows, m in (
            (benchmark.OURS, "ours", "50000", "4"),
            (benchmark.OURS, "ours", "10000", "6"),
            (benchmark.RIVER, "forest", "10000", "5"),
        )
    ]
    assert [row["ours_at_equal_error"] for row in benchmark.summary(runs)] == ["", "", ""]
    runs[1]["mistakes"] = "5"
    assert benchmark.summary(runs)[2]["its_mistakes"] == "5"


def test_batches_of_the_benchmark_grow_and_cover_all_rows(script):
    benchmark = script("benchmark")
    for n in (7, 10, 11, 640, 5000):
        rows = list(benchmark.edges(n))
        assert [row for a, b in rows for row in range(a, b)] == list(range(n))
        sizes = [b - a for a, b in rows]
        assert max(sizes) <= benchmark.BATCH and sizes[:-1] == sorted(sizes[:-1])
    assert rows[:4] == [(0, 10), (10, 20), (20, 40), (40, 80)]


def peers_at_hand(benchmark):
    """Yield the first setting of every method but those that need more rows."""
    for one in benchmark.methods(3, quick=False):
        yield one.name, next(iter(one.makers.values()))


def test_no_forecast_of_the_benchmark_knows_its_label(script):
    """With the last label turned over, what was right is wrong: one mistake more or less."""
    benchmark = script("benchmark")
    X, y = sorted_out(np.random.default_rng(0))
    turned = np.concatenate([y[:-1], -y[-1:]])
    names = set()
    for name, make in peers_at_hand(benchmark):
        one, other = (benchmark.played(make, X, labels)[0] * 4.0 for labels in (y, turned))
        assert abs(one - other) == pytest.approx(1.0), name
        assert 0.0 < one < 260.0, name
        names.add(name)
    assert len(names) >= 14


def test_vowpal_wabbit_counts_the_forecasts_that_it_makes_before_labels(script):
    workspace = pytest.importorskip("vowpalwabbit").Workspace
    peers = script("rivals")
    X, y = sorted_out(np.random.default_rng(1))
    options = "--loss_function logistic --interactions :: -l 2"
    vw, wrong = workspace(f"{options} --quiet"), 0
    for x, label in zip(X, y, strict=True):
        told = "|f " + " ".join(f"{j}:{v:.6g}" for j, v in enumerate(x))
        wrong += (1.0 if vw.predict(told) > 0.0 else -1.0) != label
        vw.learn(f"{label:g} {told}")
    peer = peers.Wabbit(options)
    assert peer.play(X, y) == wrong > 5


def test_equal_error_is_that_of_the_fastest_that_makes_no_more_mistakes(script):
    benchmark = script("benchmark")
    head = {"data": "d", "setting": "", "tried": 6, "rows": 100}
    runs = [
        head | {"by": by, "method": name, "permutation": seed, "mistakes": m, "seconds": s + seed}
        for by, name, m, s in (
            (benchmark.OURS, "quick", "9", 1.0),
            (benchmark.OURS, "good", "5", 4.0),
            (benchmark.OURS, "better", "4", 16.0),
            (benchmark.VW, "bad", "10", 3.0),
            (benchmark.RIVER, "fine", "5", 2.0),
            (benchmark.SKLEARN, "best", "3", 50.0),
        )
        for seed in (0, 1)
    ]
    rows = {row["method"]: row for row in benchmark.summary(runs)}
    found = {k: (row["ours_at_equal_error"], row["times_its_speed"]) for k, row in rows.items()}
    assert found["bad"] == ("quick", "3") and found["fine"] == ("good", "0.5")
    assert found["best"] == found["quick"] == ("", "")
    assert (rows["bad"]["seconds"], rows["bad"]["seconds_least"]) == ("3.5", "3")
    assert rows["fine"]["its_mistakes"] == "5"


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="far too long")
def test_the_benchmark_on_the_bundled_data(tmp_path, env, script):
    options = ["--quick", "--output", str(tmp_path), "--keep", str(tmp_path / "kept")]
    for _ in range(2):  # the second takes what is kept
        done = python("-m", module("benchmark"), *options, env=env)
        assert done.returncode == 0, done.stderr
        with open(tmp_path / "benchmark_quick.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    assert (tmp_path / "benchmark_quick.png").read_bytes().startswith(b"\x89PNG")
    kept = script("common").read_csv(tmp_path / "kept" / "benchmark_magic04.csv")
    assert len(kept) == 2 * len(rows) and len(rows) >= 3
    for row in rows:
        assert 5.0 < float(row["mistakes"]) < 40.0 and float(row["seconds"]) > 0.0
        assert row["permutations"] == "2" and row["rows"] == "3000"
