"""Examples in docstrings may use ``np`` and ``okl`` without importing them."""

import numpy as np
import pytest


@pytest.fixture(scope="session", autouse=True)
def _face(doctest_namespace):
    import oklnumba as okl  # not before the tests have set up their environment

    doctest_namespace.update(np=np, okl=okl)
