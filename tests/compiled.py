"""Whether code is compiled here, all compiled functions of oklnumba.hot, and fresh processes."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import oklnumba.hot
from oklnumba.hot.primitives import jit

ROOT = Path(__file__).resolve().parent.parent
COMPILED = not numba.config.DISABLE_JIT
needs_own_compiler = pytest.mark.skipif(
    not COMPILED or jit.PLAIN, reason="about hot/primitives/compiler.py"
)
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(oklnumba.hot.__path__, "oklnumba.hot.")
    if not (jit.PLAIN and module.name.endswith(".compiler"))
]


def dispatchers():
    """Return every compiled function by its name; names are unique."""
    found = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
                assert name not in found, f"{name} is defined in two files"
                found[name] = value
    return found


def signatures():
    """Return the compiled signatures, as text, by function."""
    return {n: [str(s) for s in f.signatures] for n, f in dispatchers().items()}


def python(code, cwd=ROOT, **environment):
    """Run code in a fresh process, warnings as errors, and return what it printed as JSON."""
    changed = {name: value for name, value in environment.items() if value is not None}
    kept = {name: value for name, value in os.environ.items() if name not in environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=cwd,
        env=kept | changed,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
