"""Compile what a wheel brings: every learner's loops for each level of processor.

    .venv/bin/python .ci/bundle.py && .venv/bin/python -m pip wheel --no-deps .

Each Python that the wheel is for runs this in the same checkout. It needs a processor with AVX2.
"""

import os
import pickle
import shutil
import subprocess
import sys
import tempfile

import oklnumba as okl
from oklnumba.hot.primitives import cache
from oklnumba.hot.primitives.jit import LOOPS
from oklnumba.protocol.warming import warmable

PARTS = 2  # processes, each for its part


def compile_for(level, played, part):
    """Write what a part of the learners plays, or, of another level, a part of what was played."""
    if level == played:
        okl.warm_up(*list(warmable())[int(part) :: PARTS])
    for loop in LOOPS[int(part) :: PARTS] if level != played else ():
        for path in (cache.BUNDLE / played).glob(f"{loop.__name__}-*"):
            loop.compile(pickle.loads(path.read_bytes())[3].args)
    for loop in LOOPS:
        cache.write_bundled(level, loop)


def main():
    """Compile for one level after the other."""
    shutil.rmtree(cache.BUNDLE, ignore_errors=True)
    levels = list(reversed(cache.LEVELS))
    for level in levels:  # the lowest plays, others are only compiled: this processor may lack them
        with tempfile.TemporaryDirectory() as folder:
            features = ",".join(cache.LEVELS[level])
            given = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features}
            calls = []
            for part in map(str, range(PARTS)):
                env = os.environ | given | {"NUMBA_CACHE_DIR": os.path.join(folder, part)}
                call = [sys.executable, __file__, level, levels[0], part]
                calls.append(subprocess.Popen(call, env=env))
            if any([call.wait() for call in calls]):
                sys.exit(f"{level} was not compiled")
        files = list((cache.BUNDLE / level).iterdir())
        size = sum(path.stat().st_size for path in files)
        print(f"{level}: {len(files)} loops, {size / 1e6:.1f} MB, in {cache.BUNDLE}")


if __name__ == "__main__":
    compile_for(*sys.argv[1:]) if sys.argv[1:] else main()
