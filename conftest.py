"""Examples in docstrings may use ``np`` and ``okl`` without importing them."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _face(doctest_namespace):
    import numpy as np  # not before tests/conftest.py has set the threads of BLAS

    import oklnumba as okl  # nor before the tests have set up their environment

    doctest_namespace.update(np=np, okl=okl)
