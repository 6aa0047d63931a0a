"""A second process that compiles, at the first use of SelfTuning on the command line."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import oklnumba as okl
from oklnumba.core.guard import count_cores
from oklnumba.core.params import find_parts
from oklnumba.hot.primitives.jit import cache_folder
from oklnumba.hot.tuned.layers import layer_rounds

# But for the loops of members and layers, which take most of the time: both forecast 0 without.
COMPILE_THE_REST = """
import oklnumba as okl
from oklnumba.learners.self_tuning.layers import Layers
from oklnumba.learners.self_tuning.members import Groups

def forecast_zero(self, rounds, offsets, out):
    for results in out:
        results[:] = 0.0

Groups._call, Layers.play = lambda *_, **__: 0, forecast_zero
okl.warm_up("SelfTuning")
"""


def needs_help(learner: okl.Learner) -> bool:
    """Return whether SelfTuning is to be compiled, and another process can store its loops."""
    return (
        cache_folder() is not None
        and not any(Path(layer_rounds.stats.cache_path).glob("layers.layer_rounds-*"))
        and len(find_parts(okl.SelfTuning, learner)) > 0
        and count_cores() > 1
    )


@contextmanager
def compiling_beside(learner: okl.Learner) -> Iterator[None]:
    """Let another process compile for the cache what this one does not begin with."""
    other = None
    if needs_help(learner):
        nothing = subprocess.DEVNULL
        command = [sys.executable, "-c", COMPILE_THE_REST]
        with suppress(OSError):  # such as too many processes: this one compiles everything
            other = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    try:
        yield
    finally:
        if other:
            other.kill()
            other.wait()
