"""Whether code is compiled here, and all compiled functions of oklnumba.hot."""

from __future__ import annotations

import importlib
import pkgutil

import numba

import oklnumba.hot

COMPILED = not numba.config.DISABLE_JIT
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(oklnumba.hot.__path__, "oklnumba.hot.")
]
KIND = numba.core.dispatcher.Dispatcher


def dispatchers():
    """Return every compiled function by its name, which no two of them share."""
    found = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, KIND) and value.py_func.__module__ == module.__name__:
                assert name not in found, f"{name} stands in two files"
                found[name] = value
    return found


def signatures():
    """Return the signatures that are compiled, as text, by function."""
    return {n: [str(s) for s in f.signatures] for n, f in dispatchers().items()}
