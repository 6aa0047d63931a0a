"""``oklnumba data`` and ``oklnumba warm-up``, which play no stream."""

from __future__ import annotations

import argparse

import oklnumba as okl
from oklnumba.command import spelling
from oklnumba.data import datasets
from oklnumba.hot.primitives.jit import cache_folder
from oklnumba.protocol.warming import NO_FOLDER


def data(args: argparse.Namespace) -> None:
    """List the data sets, or fetch one."""
    names = datasets.names()
    if args.what == "list":
        for name in names:
            spec = datasets.SPECS[name]
            n, d = spec.shape
            here = "here" if datasets.found(name) else "to be fetched" if spec.urls else "by hand"
            print(f"{name:12} {n:10,} rows {d:5} columns  {spec.task:15} {here}")
        return
    if args.name not in names:
        hint = spelling.suggest(str(args.name), names)
        raise ValueError(f"no data set {args.name!r}{hint}: oklnumba data fetch NAME")
    found = datasets.load(args.name, scale=None)
    print(f"{args.name}: {len(found.y):,} rows, {found.X.shape[1]} columns, labels "
          f"{found.y.min():g} to {found.y.max():g}")  # fmt: skip


def warm_up(args: argparse.Namespace) -> None:
    """Fill the cache of compiled code and print how long it took."""
    learners = [
        text if text.isidentifier() else spelling.parse_learner(text) for text in args.learners
    ]
    folder = cache_folder()
    if folder is None:
        raise OSError(f"compiled code cannot be kept: {NO_FOLDER}")
    seconds = okl.warm_up(*learners, progress=args.progress)
    for title, spent in seconds.items():
        print(f"{spent:7.2f} s  {title}")
    print(f"{sum(seconds.values()):7.2f} s  in all; kept in {folder}")
