"""Kill checkpointed runs at random moments: ``python -m tests.killing KILLS SEED RECORD RESUME``.

A child plays the run and is killed by SIGKILL, again and again, until KILLS have hit; then a last
one plays it to its end. What is left must be the run that nobody disturbed, to the bit.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import oklnumba as okl
from tests.battery import assert_same_run, contents

ROUNDS, EVERY = 6000, 40


def learner():
    return okl.Experts([okl.PKAWV(okl.TaylorFeatures(m), lam=0.1) for m in (1, 2)], B=1.0)


def chunks(start=0):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (ROUNDS, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(ROUNDS))
    return [(X[i : i + 1000], y[i : i + 1000]) for i in range(start, ROUNDS, 1000)]


def play(path, record, resume):
    """Play what is left; with ``resume`` the past is not there any more."""
    player = learner()
    if resume and path.exists():
        start = okl.Run.load(path).rounds
        X, y = (np.concatenate(part) for part in zip(*chunks(), strict=True))
        data = iter([(X[start:], y[start:])] if start < ROUNDS else [])
    else:
        data = chunks()
    options = {"checkpoint": path, "every": EVERY, "record": record, "resume": resume}
    return okl.run(player, data, **options), player


def child(path, record, resume):
    """Start a child that plays, as ``fork`` does; return its id."""
    pid = os.fork()
    if pid == 0:
        try:
            play(path, record, resume)
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def main(kills, seed, record, resume):
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        expected, whole = play(Path(folder, "whole.npz"), record, False)
        took = time.perf_counter() - begin
        path, hits, starts, furthest = Path(folder, "run.npz"), 0, 0, []
        while hits < kills:
            if furthest and furthest[-1] == ROUNDS:  # one run is through: kill the next one
                path.unlink()
                furthest.clear()
            pid = child(path, record, resume)
            starts += 1
            time.sleep(chance.uniform(0.0, 4.0 * took / max(kills, 8)))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            hits += os.WIFSIGNALED(status)
            assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
            rounds = okl.Run.load(path).rounds if path.exists() else 0
            assert not furthest or rounds >= furthest[-1], "rounds are lost"
            furthest.append(rounds)
        run, player = play(path, record, resume)
        assert_same_run(run, expected)
        assert run.recorded.tolist() == expected.recorded.tolist()
        assert (run.mean_loss, run.mistake_rate) == (expected.mean_loss, expected.mistake_rate)
        assert contents(player) == contents(whole)
        assert_same_run(okl.Run.load(path), expected)
        assert sorted(p.name for p in Path(folder).iterdir()) == ["run.npz", "whole.npz"]
    print(f"{hits} kills in {starts} starts; saved rounds after the last ones: {furthest}")


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, from 3.12 on
    kept = sys.argv[3] if sys.argv[3] in ("all", "none") else int(sys.argv[3])
    main(int(sys.argv[1]), int(sys.argv[2]), kept, sys.argv[4] == "True")
