"""The arguments of the command ``oklnumba``, and its exit status."""

import argparse
import csv
import os
import signal
import sys
import warnings
from typing import Any

import oklnumba as okl
from oklnumba.command import spelling
from oklnumba.command.compare import compare
from oklnumba.command.demo import demo
from oklnumba.command.predict import predict
from oklnumba.command.run import run
from oklnumba.command.source import FORMS, join_lines
from oklnumba.core.schema import IMPUTE
from oklnumba.data import datasets
from oklnumba.hot.primitives.jit import cache_folder, has_compiled
from oklnumba.protocol.warming import NO_FOLDER

ABOUT = "Online kernel learning with regret guarantees."
REFUSED, INTERRUPTED = 2, 130
ERRORS = (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError, RuntimeError)


def option(what: str, metavar: str | None = None, **more: Any) -> dict[str, Any]:
    """Return the arguments of argparse for an option that takes a value."""
    return {"help": what, "metavar": metavar} | more


def rounds(text: str) -> int | list[int]:
    """Return a number, or several: 24 or 24,168."""
    try:
        numbers = [int(one) for one in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"24 or 24,168 is meant, not {text!r}") from None
    return numbers if len(numbers) > 1 else numbers[0]


def data(args: argparse.Namespace) -> None:
    """List the data sets that have a name, or fetch one."""
    if args.what == "fetch":
        X, y = (data := datasets.load(args.name, scale=None)).X, data.y
        labels = f"labels {y.min():g} to {y.max():g}"
        print(f"{args.name}: {len(y):,} rows, {X.shape[1]} columns, {labels}")
        return
    for name in datasets.names():
        spec = datasets.SPECS[name]
        n, d = spec.shape
        here = "here" if datasets.found(name) else "to be fetched" if spec.urls else "by hand"
        print(f"{name:12} {n:10,} rows {d:5} columns  {spec.task:15} {here}")


def warm_up(args: argparse.Namespace) -> None:
    """Compile beforehand, and keep it on disk."""
    learners = [one if one.isidentifier() else spelling.parse_learner(one) for one in args.learners]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # here it is an error
        seconds = okl.warm_up(*learners, progress=args.progress)
    for title, spent in seconds.items():
        print(f"{spent:7.2f} s  {title}")
    folder = cache_folder()
    if folder is None and has_compiled():
        raise OSError(f"compiled code cannot be stored: {NO_FOLDER}")
    where = f"stored in {folder}" if has_compiled() else "nothing was left to compile"
    print(f"{sum(seconds.values()):7.2f} s  in all; {where}")


def split_names(text: str) -> list[str]:
    """Return the names in a row of a CSV."""
    try:
        return next(csv.reader([text], strict=True)) or [""]
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a row of a CSV: {error}") from None


CALL = "a class of oklnumba, or a call such as 'FOGD(eta=0.3)'"
SEVERAL, FLAG = {"action": "append", "default": []}, {"action": "store_true"}
LIST: dict[str, Any] = {"action": "extend", "default": []}  # given again, they add up
NAMES = LIST | {"metavar": "A,B,C", "type": split_names}
TASKS, LABELS = ("classification", "regression"), ("required", "optional")
TABLE = {  # options of the commands that read a table
    "file": option(f"{FORMS}; or a data set of `oklnumba data list`", "FILE"),
    "--label": option("the column of the labels", "COLUMN"),
    "--no-header": FLAG | {"help": "a CSV has no names: columns are 0, 1, ..."},
    "--format": option("csv, tsv, parquet, ...; without it the suffix decides"),
    "--columns": option("the inputs; without it all other columns", **NAMES),
    "--drop": option("columns to leave out", **NAMES),
    "--encode": option("columns of text: a column of 0 and 1 for each value", **NAMES),
    "--id": option("no input; predict writes it beside each forecast", "COLUMN", nargs=1, **LIST),
    "--dates": option("columns of dates: the day, weekday, ... of each as numbers", **NAMES),
    "--impute": option("fill gaps in columns of numbers, from the past", choices=tuple(IMPUTE)),
    "--delimiter": option("between two values of a CSV, such as ';'"),
    "--decimal": option("the decimal point of a CSV, such as ','"),
    "--encoding": option("of the text of a CSV, such as latin-1"),
    "--skip": option("lines before the first of a CSV", "N", type=int),
}
PLAY = TABLE | {  # of those that play it
    "--task": option("without it the labels decide", choices=TASKS),
    "--rows": option("play the first N rows only", "N", type=int),
    "--permute": option("permute the rows of a data set or .npz", "SEED", type=int),
    "--labels": option(
        "optional: rows without a label are forecast only", choices=LABELS, default=LABELS[0]
    ),
}
COMMANDS = {
    demo: {"--output": option("of the picture (default: here)", "DIR", default=".")},
    run: PLAY
    | {
        "--learner": option(f"{CALL} (default: SelfTuning)", "NAME", default="SelfTuning"),
        "--set": option("an argument of it: lam=0.1, kernel='Gaussian(2)'", "K=V", **SEVERAL),
        "--lags": option("a time series: show it K last labels", "K", type=int),
        "--season": option("and those of K rows ago; with --steps also K,L", "K", type=rounds),
        "--steps": option("forecast it K rows ahead", "K", type=int),
        "--batch": option("forecast N rows, then learn them", "N", type=int, default=1),
        "--save": option("write the learner, for oklnumba.load", "MODEL.npz"),
        "--checkpoint": option("save the run each minute; if there, go on from it", "FILE.npz"),
    },
    compare: PLAY | {"--learner": option(CALL, "NAME", **SEVERAL)},
    predict: {"model": option("what run --save wrote", "MODEL")}
    | TABLE
    | {
        "--output": option("without it standard output", "FILE", default="-"),
        "--learn": FLAG | {"help": "learn each label that is there after its forecast; save MODEL"},
    },
    data: {
        "what": option("the sets there are, or one of them", choices=("list", "fetch")),
        "name": option("of the set", "NAME", nargs="?"),
    },
    warm_up: {
        "learners": option("as in run; all if none is named", "NAME", nargs="*"),
        "--progress": FLAG | {"help": "a bar on stderr"},
    },
}


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="oklnumba", description=ABOUT)
    top.add_argument("--version", action="version", version=f"oklnumba {okl.__version__}")
    parsers = top.add_subparsers(metavar="COMMAND", required=True)
    for call, options in COMMANDS.items():
        what, name = call.__doc__, call.__name__.replace("_", "-")
        one = parsers.add_parser(name, help=what, description=what)
        one.set_defaults(call=call, permute=None)
        for flag, arguments in options.items():
            one.add_argument(flag, **arguments)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 0, 2 for errors, 130 after Ctrl-C, SIGTERM."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # in a program without a console
    args = make_parser().parse_args(argv)
    if argv is None:  # a process of our own
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        args.call(args)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # as in `oklnumba run ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except ERRORS as error:
        sys.stdout.flush()
        print(f"oklnumba: error: {join_lines(error)}", file=sys.stderr)
        return REFUSED
