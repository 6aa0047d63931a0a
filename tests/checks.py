"""What tests share: what is compiled, how numbers are compared, how one plays by hand, buffers."""

import ast
import functools
import importlib
import json
import multiprocessing
import os
import pkgutil
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import oklnumba.hot
from oklnumba.core.files import read_npz
from oklnumba.hot import awv
from oklnumba.hot.primitives import factor, jit
from oklnumba.hot.primitives.udu import LANES, TOGETHER, Forgetting

# ---- compiled code and fresh processes ----

ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def tree(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


COMPILED = not numba.config.DISABLE_JIT
needs_own_compiler = pytest.mark.skipif(
    not COMPILED or jit.PLAIN, reason="about hot/primitives/compiler.py"
)
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(oklnumba.hot.__path__, "oklnumba.hot.")
    if not (jit.PLAIN and module.name.endswith((".cache", ".compiler")))
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


def raises(error, message, call, /, *given, **named):
    """A call raises an error whose text has the pattern ``message``."""
    with pytest.raises(error, match=message):
        call(*given, **named)


refused, troubled = (functools.partial(raises, one) for one in (ValueError, FloatingPointError))


def in_child(call):
    """Return what a call in a forked child returns, or its error as a text; None if it hangs."""
    end, start = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_answer, args=(start, call))
    child.start()
    found = end.recv() if end.poll(20) else None
    child.kill()
    child.join()
    return found


def _answer(pipe, call):
    try:
        pipe.send(call())
    except Exception as error:
        pipe.send(str(error))


def peak_of(call):
    """Return the most bytes that Python holds during a call, and what it returns."""
    tracemalloc.start()
    try:
        result = call()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def arrays(learner):
    """Return the arrays of a learner's state, by the names that a file has them under."""
    with tempfile.TemporaryDirectory() as folder:
        learner.save(f"{folder}/learner.npz")
        contents = read_npz(f"{folder}/learner.npz")[1]
        return {name.removeprefix("state_"): value for name, value in contents.items()}


# ---- how numbers are compared ----


def assert_close(found, expected, rtol=1e-9):
    """Relative to the largest value: forecasts themselves pass through zero."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * np.abs(expected).max())


def assert_supports(run, learner, X, supports):
    """Sizes at every round, and the points themselves in the end, in any order."""
    np.testing.assert_array_equal(run.sizes, [len(S) for S in supports])
    found, expected = sorted(map(tuple, learner.atoms)), sorted(map(tuple, X[supports[-1]]))
    assert found == expected


# ---- rounds one at a time, and all blocks of a stream ----


def one_by_one(learner, X, y):
    """Return the forecasts of predict_one, each before learn_one has the label."""
    forecasts = []
    for x, label in zip(X, y, strict=True):
        forecasts.append(learner.predict_one(x))
        learner.learn_one(x, label)
    return np.array(forecasts)


def together(data):
    """Return the rows of all blocks, each of which is ready for compiled loops."""
    blocks = list(data)
    for block, _ in blocks:
        assert block.dtype == np.float64 and block.flags.c_contiguous and block.flags.writeable
    return tuple(np.concatenate(part) for part in zip(*blocks, strict=True))


def play_adversary(learner, X, size=1.0):
    """Play labels that contradict each forecast; return the forecasts and them."""
    forecasts, y = np.empty(len(X)), np.empty(len(X))
    for t, x in enumerate(X):
        forecasts[t] = learner.predict_one(x)
        y[t] = -size if forecasts[t] > 0.0 else size
        learner.learn_one(x, y[t])
    return forecasts, y


# ---- poisoned buffers and dense formulas for the compiled building blocks ----

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13)  # around the unrolled strides
# What buffers hold beyond their valid part. NaN shows what is read there, a number what is written.
POISON = [np.nan]
with_poison = pytest.mark.usefixtures("poison")


def poisoned(*shape):
    return np.full(shape, POISON[0])


def untouched(a):
    """Say whether this part of a poisoned buffer is as it was made."""
    return np.array_equal(a, np.full(a.shape, POISON[0]), equal_nan=True)


class Factor:
    """The state that awv_rounds maintains, for r features padded to a multiple of LANES.

    Behind the columns in use there are ``spare`` others, which it must leave alone.
    """

    def __init__(self, r, lam, ridge=False, discount=1.0, outputs=1, spare=0):
        self.r, self.ridge = r, ridge
        self.used = -(-r // LANES) * LANES
        self.cap = self.used + spare
        self.U, self.c = np.eye(self.cap), np.zeros((outputs, self.cap))
        self.inv_d = np.full(self.cap, 1 / lam)
        self.forgetting = Forgetting(discount, 1 / discount, 1 / lam)
        p, beta = poisoned(TOGETHER, self.cap), poisoned(TOGETHER, self.cap)
        self.pass_work = factor.PassWork(p, beta, poisoned(self.cap), poisoned(TOGETHER))
        vectors = [poisoned(self.cap) for _ in range(3)]
        self.pending = factor.Pending(np.zeros(2, dtype=np.int64), *vectors)
        self.forecasts, self.ridge_forecasts, self.a = [], [], []

    def padded(self, Z):
        return np.ascontiguousarray(np.pad(Z, ((0, 0), (0, self.cap - self.r))))

    def arguments(self, n):
        stretch = awv.Stretch(0, n, self.used, self.used)
        arrays = factor.Factor(self.U, self.inv_d, self.c, self.pending)
        return stretch, arrays, self.forgetting, self.pass_work, self.ridge

    def out(self, n):
        shape = n, len(self.c)
        return awv.AWVResults(poisoned(*shape), poisoned(*shape), poisoned(n), poisoned(*shape))

    def flat(self, found):
        return found[:, 0] if len(self.c) == 1 else found

    def play(self, Z, y):
        out = self.out(len(Z))
        Y = y.reshape(len(Z), len(self.c))
        certificate = awv.Certificate(np.zeros((len(self.c), 5)), *np.empty((3, *Y.shape)))
        arguments = *self.arguments(len(Z)), out._replace(growth=np.zeros(Y.shape)), certificate
        played, status = awv.awv_rounds(self.padded(Z), Y, *arguments)
        self.forecasts.extend(self.flat(out.forecasts)[:played])
        self.ridge_forecasts.extend(self.flat(out.ridge)[:played])
        self.a.extend(out.a[:played])
        return played, status

    def forecast(self, Z):
        out = self.out(len(Z))
        awv.awv_forecasts(self.padded(Z), *self.arguments(len(Z)), out)
        return self.flat(out.forecasts)

    def state(self):
        factor.finish_pending(*self.arguments(0)[1:4])
        parts = self.U, self.inv_d, self.c, self.forecasts, self.ridge_forecasts, self.a
        return np.concatenate([np.ravel(part) for part in parts])
