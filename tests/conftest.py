"""What every test file shares; pytest reads this before NumPy is imported."""

import os
import signal

import pytest
from hypothesis import settings

# On a machine that others use too, BLAS threads wait for each other: blocks as small as the ones
# here take up to a hundred times longer with two threads than with one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that starts the tests in the background lets them ignore Ctrl-C, which some of them press.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis draws the same examples in every run and leaves no folder behind.
settings.register_profile("oklnumba", deadline=None, derandomize=True, database=None)
settings.load_profile("oklnumba")

# Assertions in these helpers say what they compared, as those in test files do.
HELPERS = "battery", "bounds", "checks", "streams"
pytest.register_assert_rewrite(*(f"tests.{helper}" for helper in HELPERS))


@pytest.fixture(params=[float("nan"), 12345.0], ids=["read", "written"])
def poison(request):
    """Run a test with each poison: what is read of it shows by NaN, what is written by a number."""
    from tests.checks import POISON  # NumPy, only now

    POISON[0] = request.param
    yield
    POISON[0] = float("nan")


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """Return the empty folder that numba keeps its cache in."""
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    return tmp_path
