"""The examples of the pages in docs run and print what stands there; the gallery draws."""

import doctest

import pytest

from scripts.gallery import PAGE, draw, programs
from tests.checks import COMPILED, ROOT


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_blocks_of_code_show_what_they_print(path):
    found = doctest.testfile(str(path), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 0 or ">>>" not in path.read_text(encoding="utf-8")


def test_programs_are_short_and_every_picture_is_there():
    text = PAGE.read_text(encoding="utf-8")
    assert len(programs()) == text.count("```python") == text.count("![") == 8
    assert max(code.count("\n") for code in programs().values()) <= 20
    assert {path.name for path in PAGE.with_suffix("").iterdir()} == set(programs())


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
@pytest.mark.parametrize("name", programs())
def test_a_program_draws_its_picture(name, tmp_path):
    draw(programs()[name], tmp_path / name)
    assert (tmp_path / name).stat().st_size > 10_000
