"""The examples of the pages in docs run, and print what stands there."""

import doctest

import pytest

from tests.checks import COMPILED, ROOT


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="thousands of rounds")
@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_blocks_of_code_show_what_they_print(path):
    found = doctest.testfile(str(path), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 0 or ">>>" not in path.read_text(encoding="utf-8")
