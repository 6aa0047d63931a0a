"""Learners as estimators of scikit-learn and models of river.

Each is loaded on first use, so neither library is needed before.
"""

from importlib import import_module
from typing import Any

HOMES = {  # name: (its file here, the library it needs, the project to install)
    "OnlineClassifier": ("estimators", "sklearn", "scikit-learn"),
    "OnlineRegressor": ("estimators", "sklearn", "scikit-learn"),
    "to_river": ("river", "river", "river"),
}
__all__ = ["OnlineClassifier", "OnlineRegressor", "to_river"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'oklnumba.interop' has no attribute {name!r}")
    home, library, project = HOMES[name]
    try:
        return getattr(import_module(f"oklnumba.interop.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != library:
            raise
        raise ImportError(
            f"okl.interop.{name} needs {project}, which is not installed: pip install {project}"
        ) from error
