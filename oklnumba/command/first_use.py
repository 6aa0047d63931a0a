"""A second process that compiles, at the first use of SelfTuning on the command line."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import oklnumba as okl
from oklnumba.core.guard import count_cores
from oklnumba.core.params import find_parts
from oklnumba.hot.primitives.jit import lacks_code
from oklnumba.hot.tuned.layers import layer_rounds

# All but the loops of members and layers, which take most of the time. Stubs forecast 0 instead.
COMPILE_THE_REST = """
import oklnumba as okl
from oklnumba.hot.tuned.layers import LayerResults
from oklnumba.learners.self_tuning.groups import Workspaces

def forecast_zero(self, loop, *arguments):
    if isinstance(arguments[-1], LayerResults):  # where the layers write
        for results in arguments[-1]:
            results[:] = 0.0
    return 0

Workspaces.play = forecast_zero
okl.warm_up("SelfTuning")
"""


def needs_help(learner: okl.Learner) -> bool:
    """Return whether SelfTuning is to be compiled, and another process could help."""
    plays = bool(find_parts(okl.SelfTuning, learner))
    return plays and lacks_code(layer_rounds) and count_cores() > 1


@contextmanager
def compiling_beside(learner: okl.Learner) -> Iterator[None]:
    """Let another process compile the other loops into the cache meanwhile."""
    other = None
    if needs_help(learner):
        nothing = subprocess.DEVNULL
        command = [sys.executable, "-P", "-c", COMPILE_THE_REST]  # no modules of this folder
        with suppress(OSError):  # such as too many processes: this one compiles everything
            other = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        yield
    finally:
        if other:
            other.kill()
            other.wait()
