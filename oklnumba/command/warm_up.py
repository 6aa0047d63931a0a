"""``oklnumba warm-up``: compile beforehand, for deployments."""

from __future__ import annotations

import argparse

import oklnumba as okl
from oklnumba.command import spelling
from oklnumba.hot.primitives.jit import cache_folder
from oklnumba.protocol.warming import NO_FOLDER


def warm_up(args: argparse.Namespace) -> int:
    """Fill the cache of compiled code and say how long it took; return the exit status.

    Parameters
    ----------
    args : Namespace
        ``learners``: names of classes, or calls of them, all if empty; ``progress``: show a bar.

    Raises
    ------
    ValueError
        If there is no such learner.
    OSError
        If compiled code cannot be kept.
    """
    learners = [text if text.isidentifier() else spelling.learner(text) for text in args.learners]
    folder = cache_folder()
    if folder is None:
        raise OSError(f"compiled code cannot be kept: {NO_FOLDER}")
    seconds = okl.warm_up(*learners, progress=args.progress)
    for title, spent in seconds.items():
        print(f"{spent:7.2f} s  {title}")
    print(f"{sum(seconds.values()):7.2f} s  in all; kept in {folder}")
    return 0
