"""The documentation: the errata, files and names that are cited exist."""

import importlib
import inspect
import re
from operator import attrgetter

import pytest

import oklnumba as okl
from tests.checks import ROOT

pytestmark = pytest.mark.quick
ERRATA = ROOT / "docs/errata.md"
PAGES = ".", "docs", "figures", "oklnumba/data"
CITING = sorted(
    [path for folder in ("oklnumba", "scripts", "tests") for path in (ROOT / folder).rglob("*.py")]
    + [path for folder in PAGES for path in (ROOT / folder).glob("*.md")]
)


def cited(text):
    """Return the errata that a text cites: 'errata 3', '3 to 5', '3-5', '3 and 5', '3, 4 and 5'."""
    text = re.sub(r"\n[ \t]*(?:[#|>][ \t]*)?", " ", text)  # a citation may go over a line's end
    found = set()
    several = r"\d+(?:(?:\s*[-,\N{EN DASH}]\s*|\s*,?\s+(?:to|and|or)\s+)\d+)*"
    for numbers in re.findall(rf"errat(?:a|um)[ _]+({several})", text, re.IGNORECASE):
        parts = re.findall(r"\d+|-|\N{EN DASH}|to", numbers)
        for i, part in enumerate(parts):
            if part.isdigit():
                after_range = i > 1 and not parts[i - 1].isdigit()
                found.update(range(int(parts[i - 2]) if after_range else int(part), int(part) + 1))
    return found


def entries(text):
    """Return the numbers of the entries of an errata file, in their order."""
    return [int(number) for number in re.findall(r"^(\d+)\. \S", text, re.MULTILINE)]


def dangling(text, known, folder):
    """Return citations of errata that have no entry, and names of files that do not exist."""
    absent, here = [], re.sub(r"https?://\S+", "", text)
    for name in sorted(set(re.findall(r"[\w./-]*\w\.md\b", here))):
        places = [(start / name).resolve() for start in (ROOT, folder)]
        if not any(place.is_file() and place.is_relative_to(ROOT) for place in places):
            absent.append(name)
    return sorted(cited(text) - set(known)), absent


def test_every_page_is_in_the_contents():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```{toctree}\n(?::.*\n)*\n((?:.+\n)+?)```", index, re.MULTILINE)
    listed = [line for tree in trees for line in tree.splitlines()]
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    pages |= {"figures/README", "reference/index"}
    assert len(listed) == len(set(listed)) and set(listed) == pages


@pytest.fixture
def conf(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("conf")


def test_the_reference_has_every_public_name(conf):
    shown = {name for names in conf.group_names().values() for name in names}
    aliases = {"Hedge"}  # of ExponentiatedGradient
    modules = {name for name in okl.__all__ if inspect.ismodule(getattr(okl, name))}
    returned = {"protocol.runs.Certificate", "learners.base.late.Asked"}
    assert shown == set(okl.__all__) - modules - aliases | returned


def test_every_figure_has_a_page_that_shows_it_and_that_the_index_names():
    folder = ROOT / "figures"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    index = texts.pop("README")
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == set(texts)
    shown = re.findall(r"^!\[.*\]\((\w+\.png)\)", "\n".join(texts.values()), re.MULTILINE)
    assert len(shown) == len(set(shown)) >= 25
    for stem, text in texts.items():
        linked = re.findall(r"\]\((\.\./\w+/[\w/]+\.py)\)", text)
        again = [f"{stem}.csv", *linked] if stem != "bounds" else linked  # of a test
        assert linked and all((folder / name).is_file() for name in again), stem
    for name in shown:
        assert (folder / name).is_file(), name
    for path in (ROOT / "scripts").rglob("*.py"):
        name = f"{path.stem}.png"
        assert name in shown or not (folder / name).is_file(), name
        assert path.stem in texts or not (folder / f"{path.stem}.csv").is_file(), name


def test_entries_are_numbered_from_one_without_a_gap_and_citations_exist():
    numbers = entries(ERRATA.read_text(encoding="utf-8"))
    assert len(numbers) >= 58 and numbers == list(range(1, len(numbers) + 1))
    for path in CITING:
        assert dangling(path.read_text(encoding="utf-8"), numbers, path.parent) == ([], []), path


def test_the_code_that_errata_name_exists():
    text = ERRATA.read_text(encoding="utf-8")
    names, scripts = re.findall(r"`([^`]+)`", text), re.findall(r"scripts/[\w/]+\.py", text)
    assert len(names) > 40 and len(scripts) > 3
    for name in names:
        assert callable(attrgetter(name)(okl)), name
    for name in scripts:
        assert (ROOT / name).is_file(), name


# Made up in pieces: these lines are themselves among what is tested above.
E_ = "errata "


def test_dangling_citations_are_found():
    """Negative control: numbers without an entry, and files that do not exist."""
    known, away = entries("1. **[A]** one\n   1.5 times\n2. two\n\n10. ten\n"), "nowhere" + ".md"
    assert known == [1, 2, 10]
    assert dangling(f"{E_}1, 2 and 10; docs/{ERRATA.name}", known, ROOT) == ([], [])
    assert dangling(f"{E_}1 to 4 and 99", known, ROOT) == ([3, 4, 99], [])
    found = dangling(f"see {away} section 1, [x](docs/{away})", known, ROOT)
    assert found[1] == [f"docs/{away}", away]
    assert dangling(f"{ERRATA.name} of this folder", known, ERRATA.parent) == ([], [])
    assert dangling(f"{ERRATA.name} of another", known, ROOT) == ([], [ERRATA.name])


def test_the_citation_has_every_paper_and_a_date_only_once_it_is_out():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    table = (ROOT / "docs/reproducing.md").read_text(encoding="utf-8")
    titles = re.findall(r"^\| [^|*]+, \*([^*]+)\* \|", table, re.MULTILINE)
    assert len(titles) == 4
    for title in [*titles, "Online convex optimization"]:
        assert f'title: "{title}"' in citation
    unreleased = "(unreleased)" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert ("date-released" in citation) != unreleased
