"""Learners as estimators of scikit-learn and models of river.

Each is loaded on first use, so neither library is needed before.
"""

from importlib import import_module
from typing import Any

from oklnumba.core.checks import import_optional

__all__ = ["OnlineClassifier", "OnlineRegressor", "to_river"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'oklnumba.interop' has no attribute {name!r}")
    home, library = ("river", "river") if name == "to_river" else ("estimators", "sklearn")
    import_optional(library, f"okl.interop.{name}")
    return getattr(import_module(f"oklnumba.interop.{home}"), name)
