"""Examples in docstrings may use ``okl`` without importing it."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _face(doctest_namespace):
    import oklnumba as okl  # not before the tests have set up their environment

    doctest_namespace["okl"] = okl
