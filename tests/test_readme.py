"""The numbers of README's table, and of one in docs, are those of figures/self_tuning*.csv."""

import csv
import re

import pytest

from tests.checks import ROOT

pytestmark = pytest.mark.quick
DIGITS = 1.0 + 1e-5  # of the csv of the rivals
KEPT = 5000, 10_000, 20_000  # rounds after which the csv has the averages, beside all
SHORT = {  # names of rivals in README, without their steps and widths
    "AdaptiveRandomForest": "adaptive random forest",
    "LogisticRegression": "logistic regression",
    "MondrianForest": "Mondrian forest",
    "PAClassifier": "passive-aggressive",
    "PARegressor": "passive-aggressive",
    "RBFSampler + LogisticRegression": "RBFSampler, logistic regression",
    "RBFSampler + SGD": "RBFSampler, SGD",
    "SGD": "SGD",
    "StreamingRandomPatches": "streaming random patches",
    "passive-aggressive": "passive-aggressive",
}


def table(name):
    with open(ROOT / "figures" / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


OURS = {row["stream"]: row for row in table("self_tuning.csv")}
RIVALS = table("self_tuning_rivals.csv")


def percent(error, scale, kind):
    """Return mistakes (%), or the squared loss as a share of the variance of the labels (%)."""
    return float(error) * (1.0 if kind == "classification" else 100.0 / scale)


def shown(value):
    """Return a percentage, with two digits below 1."""
    return f"{value:.2f} %" if value < 1.0 else f"{value:.1f} %"


def expected(stream):
    """Return the row of README: in the rounds that all have played, the best of each library."""
    ours = OURS[stream]
    kind, scale, rounds = ours["kind"], float(ours["scale"]), int(ours["horizon"])
    column = "mistakes_" if kind == "classification" else "loss_"
    column += str(rounds) if rounds in KEPT else "all"
    error = percent(ours["self-tuning at horizon"], scale, kind)
    rivals = []
    for library in ("river", "scikit-learn"):
        played = [r for r in RIVALS if (r["stream"], r["by"]) == (stream, library) and r[column]]
        best = min(played, key=lambda r: float(r[column]))
        rivals.append((percent(best[column], scale, kind), SHORT[best["learner"].split(",")[0]]))
    lowest = error <= min(rival for rival, _ in rivals) * DIGITS
    ours = f"**{shown(error)}**" if lowest else shown(error)
    return [stream, f"{rounds:,}", ours, *(f"{shown(rival)}, {name}" for rival, name in rivals)]


def rows(page="README.md", head="| stream |"):
    """Return the cells of a table, without its head."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(head))
    body = lines[start + 2 :]
    end = next(i for i, line in enumerate(body) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body[:end]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_row_is_that_of_the_figures(row):
    assert row == expected(row[0])


def test_every_stream_on_which_a_rival_is_ahead_is_in_the_table_and_not_bold():
    played = [row for row in OURS.values() if row["rival at horizon"]]
    own, rival = "self-tuning at horizon", "rival at horizon"
    behind = {r["stream"] for r in played if float(r[own]) > float(r[rival]) * DIGITS}
    assert behind == {row[0] for row in rows() if "**" not in row[2]}


@pytest.mark.parametrize(
    "row", rows("docs/choosing.md", "| stream | rows |"), ids=lambda row: row[0]
)
def test_boosting_in_all_rows_is_that_of_the_figures(row):
    ours = OURS[row[0]]
    kind, scale = ours["kind"], float(ours["scale"])
    column = "mistakes_all" if kind == "classification" else "loss_all"
    hows = "", ", fitted on the last 2,000 rows", ", given the last label"
    played = {r["learner"]: r for r in RIVALS if r["stream"] == row[0]}
    rivals = [played[f"LightGBM{how}"] for how in hows]
    errors = [float(ours["self-tuning"]), *(float(rival[column]) for rival in rivals)]
    cells = [shown(percent(error, scale, kind)) for error in errors]
    best = errors.index(min(errors))
    cells[best] = f"**{cells[best]}**"
    assert row == [row[0], f"{int(ours['n']):,}", *cells]


COSTS = "microseconds, bulk", "microseconds, one at a time", "megabytes"


@pytest.mark.parametrize("case", rows("docs/choosing.md", "| your stream |"), ids=lambda c: c[0])
def test_the_guide_is_that_of_the_figures(case):
    _, learner, stream, *cells = case
    here = [row for row in table("choosing.csv") if row["stream"] == stream]
    own = next(row for row in here if row["learner"] == learner)
    least = min(here, key=lambda row: float(row["error"]))
    costs = [own[key] and f"{float(f'{float(own[key]):.2g}'):g}" for key in COSTS]
    assert cells == [own["error"], f"{least['error']}, {least['learner']}", *costs]


def test_mistakes_with_late_labels_are_those_of_the_figures():
    measured = [row for row in table("production.csv") if row["measure"] == "mistakes (%)"]
    head = "| stream | learner | delay 0 |"
    page = (ROOT / "docs/production.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if line.startswith(head))
    settings, stream = [cell.split()[-1] for cell in line.strip("|").split("|")[2:]], ""
    for name, learner, *values in rows("docs/production.md", head):
        stream = name or stream
        for setting, value in zip(settings, values, strict=True):
            wanted = {"delay": setting, "batch": "1", "learner": learner}
            found = [r for r in measured if r["stream"].startswith(stream)]
            found = [r["value"] for r in found if wanted.items() <= r.items()]
            assert [f"{float(one):.1f}" for one in found] == [value]


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/quick_start.md", "docs/performance.md",
     "oklnumba/hot/primitives/compiler.py"],
)  # fmt: skip
def test_the_first_run_compiles_as_long_as_measured(page):
    measured = {row["what"]: float(row["seconds"]) for row in table("benchmark_first_use.csv")}
    first = round(measured["SelfTuning(), first run of 3,000 rows"])
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.findall(r"compile[^.]*? about (\d+) s", text) == [str(first)]
