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

# The loop of the members takes two fifths of the time. Without it they forecast 0.
COMPILE_THE_REST = """
from oklnumba.learners.self_tuning.members import Groups
Groups._call = lambda *_, **__: 0
import oklnumba as okl
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
    """Let another process fill the cache with all but the first loop that this one compiles."""
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
