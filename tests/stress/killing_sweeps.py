"""Kill sweeps at random moments: ``python -m tests.stress.killing_sweeps FOLDER KILLS SEED``.

A child plays the sweep of tests/test_sweep.py with two workers and is killed by SIGKILL, again and
again, until KILLS have hit; what comes to its end writes its table into FOLDER. No finished cell
may be gone after a kill.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

from tests.test_sweep import play


def main(folder, times, seed):
    play(n_jobs=1)  # loads what is compiled: children begin at once
    begin = time.perf_counter()
    play(n_jobs=1)
    longest = time.perf_counter() - begin
    chance, kills, sweeps, before = random.Random(seed), 0, 0, 0
    while kills < times:
        own = folder / str(sweeps)
        child = os.fork()
        if child == 0:
            play(path=own, n_jobs=2).save(folder / f"{sweeps}.npz")
            os._exit(0)
        time.sleep(chance.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        hit = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        kept = sum(not path.name.startswith(".") for path in own.iterdir()) if own.exists() else 0
        assert kept >= before, "finished cells are lost"
        kills, sweeps, before = kills + hit, sweeps + (not hit), kept if hit else 0
    play(path=own).save(folder / f"{sweeps}.npz")
    print(f"{kills} kills, {sweeps} sweeps had come to their end")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from 3.12 on
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
