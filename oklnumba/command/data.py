"""``oklnumba data``: the named data sets."""

from __future__ import annotations

import argparse

import numpy as np

from oklnumba.command.spelling import nearest
from oklnumba.data import datasets


def data(args: argparse.Namespace) -> int:
    """List, fetch or describe data sets; return the exit status.

    Parameters
    ----------
    args : Namespace
        ``what``: list, fetch or info; ``name``: the set.

    Raises
    ------
    ValueError, OSError
        If there is no such set, or it cannot be fetched.
    """
    names = datasets.names()
    if args.what == "list":
        for name in names:
            spec = datasets.SPECS[name]
            n, d = spec.shape
            here = "here" if datasets.found(name) else "to be fetched" if spec.urls else "by hand"
            print(f"{name:12} {n:10,} rows {d:5} columns  {spec.task:15} {here}")
        return 0
    if args.name is None:
        raise ValueError(f"name the data set: oklnumba data {args.what} NAME")
    if args.name not in names:
        raise ValueError(f"no data set {args.name!r}{nearest(args.name, names)}")
    spec = datasets.SPECS[args.name]
    if args.what == "info":
        n, d = spec.shape
        print(f"name      {args.name}\nrows      {n:,}\ncolumns   {d}\ntask      {spec.task}")
        if spec.positives is not None:
            print(f"+1        {spec.positives:,} rows ({100 * spec.positives / n:.1f} %)")
        print(f"source    {' '.join(spec.urls) or spec.advice}")
        print(f"at hand   {'yes' if datasets.found(args.name) else 'no'}")
        return 0
    found = datasets.load(args.name, scale=None)
    print(f"{args.name}: {len(found.y):,} rows, {found.X.shape[1]} columns, labels "
          f"{np.min(found.y):g} to {np.max(found.y):g}")  # fmt: skip
    return 0
