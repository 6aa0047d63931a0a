"""What the stress tests share: all are marked ``stress``, and ``--long`` plays them whole."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.stress)


@pytest.fixture(scope="session")
def tries(request):
    """Return how many tries a test makes: ``tries(short, whole)``, the second with ``--long``."""
    whole = request.config.getoption("--long")
    return lambda short, long: long if whole else short
