"""The arguments of the command ``oklnumba``, and its exit status."""

import argparse
import os
import sys
from typing import Any

import oklnumba as okl
from oklnumba.command import spelling
from oklnumba.command.compare import compare
from oklnumba.command.demo import demo
from oklnumba.command.predict import predict
from oklnumba.command.run import run
from oklnumba.command.source import FORMS, join_lines
from oklnumba.data import datasets
from oklnumba.hot.primitives.jit import cache_folder
from oklnumba.protocol.warming import NO_FOLDER

ABOUT = "Online kernel learning with regret guarantees."
REFUSED, INTERRUPTED = 2, 130
COLUMNS = {  # options that take names of columns
    "--columns": "the inputs; without it all other columns",
    "--drop": "columns to leave out",
    "--encode": "columns of text: a column of 0 and 1 for each value",
}
TEXT = {  # options of CSV files
    "delimiter": "between two values of a CSV, such as ';'",
    "decimal": "the decimal point of a CSV, such as ','",
    "encoding": "of the text of a CSV, such as latin-1",
}
ERRORS = (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError, RuntimeError)


def data(args: argparse.Namespace) -> None:
    """List the data sets, or fetch one."""
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
    """Fill the cache of compiled code and print how long it took."""
    learners = [one if one.isidentifier() else spelling.parse_learner(one) for one in args.learners]
    folder = cache_folder()
    if folder is None:
        raise OSError(f"compiled code cannot be stored: {NO_FOLDER}")
    seconds = okl.warm_up(*learners, progress=args.progress)
    for title, spent in seconds.items():
        print(f"{spent:7.2f} s  {title}")
    print(f"{sum(seconds.values()):7.2f} s  in all; stored in {folder}")


def table_options() -> argparse.ArgumentParser:
    """Return the options of a command that reads a table."""
    table = argparse.ArgumentParser(add_help=False)
    add = table.add_argument
    add("file", metavar="FILE", help=f"{FORMS}; or a data set of `oklnumba data list`")
    add("--label", metavar="COLUMN", help="the column of the labels")
    add("--no-header", action="store_true", help="a CSV has no names: columns are 0, 1, ...")
    add("--format", help="csv, tsv, parquet, ...; without it the suffix decides")
    for name, what in COLUMNS.items():
        add(name, metavar="A,B,C", default=[], type=lambda text: text.split(","), help=what)
    for name, what in TEXT.items():
        add(f"--{name}", metavar=name.upper(), help=what)
    add("--skip", type=int, metavar="N", help="lines before the first of a CSV")
    return table


def add_run(commands: Any, both: list[argparse.ArgumentParser]) -> None:
    """Add the command ``run``."""
    what = "Play a learner: forecast, see the label, learn."
    one = commands.add_parser("run", parents=both, help="play a learner", description=what)
    named = "a class of oklnumba, or a call such as 'FOGD(eta=0.3)' (default: SelfTuning)"
    one.add_argument("--learner", default="SelfTuning", metavar="NAME", help=named)
    what = "an argument of the learner: lam=0.1, kernel='Gaussian(2)'"
    one.add_argument("--set", action="append", default=[], metavar="K=V", help=what)
    one.add_argument("--lags", type=int, metavar="K", help="a time series: show it K last labels")
    one.add_argument("--season", type=int, metavar="K", help="and those of K rows ago")
    one.add_argument("--save", metavar="MODEL.npz", help="write the learner, for oklnumba.load")
    one.set_defaults(call=run)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog="oklnumba", description=ABOUT)
    top.add_argument("--version", action="version", version=f"oklnumba {okl.__version__}")
    commands, table = top.add_subparsers(metavar="COMMAND", required=True), table_options()
    played = argparse.ArgumentParser(add_help=False)
    add = played.add_argument
    add("--task", choices=("classification", "regression"), help="without it the labels decide")
    add("--rows", type=int, metavar="N", help="play the first N rows only")
    add("--permute", type=int, metavar="SEED", help="permute the rows of a data set or .npz")
    what = "optional: rows without a label are forecast only"
    add("--labels", choices=("required", "optional"), default="required", help=what)
    one = commands.add_parser("demo", help="see in half a minute what it does, on data it brings")
    one.add_argument("--output", default=".", metavar="DIR", help="of the picture (default: here)")
    one.set_defaults(call=demo)

    both = [table, played]
    add_run(commands, both)
    what = "Play learners side by side on one stream; a dozen if none is named."
    one = commands.add_parser("compare", parents=both, help=what[:-1], description=what)
    named = "play this one, as in run; several times for several"
    one.add_argument("--learner", action="append", default=[], metavar="NAME", help=named)
    one.set_defaults(call=compare)

    add_predict(commands, table)
    one = commands.add_parser("data", help="the named data sets")
    one.add_argument("what", choices=("list", "fetch"))
    one.add_argument("name", nargs="?", metavar="NAME")
    one.set_defaults(call=data)

    one = commands.add_parser("warm-up", help="compile beforehand, and keep it on disk")
    one.add_argument("learners", nargs="*", metavar="NAME", help="as in run; all if none is named")
    one.add_argument("--progress", action="store_true", help="a bar on stderr")
    one.set_defaults(call=warm_up)
    return top


def add_predict(commands: Any, table: argparse.ArgumentParser) -> None:
    """Add the command that forecasts by a saved model."""
    what = "Write the forecasts of a saved model for each row of a file, as CSV."
    model = argparse.ArgumentParser(add_help=False)
    model.add_argument("model", metavar="MODEL", help="what run --save wrote")
    both = [model, table]
    one = commands.add_parser("predict", parents=both, help=what[:-1], description=what)
    one.add_argument("--output", default="-", metavar="FILE", help="without it standard output")
    what = "learn the labels that are there, each after its forecast, and save MODEL"
    one.add_argument("--learn", action="store_true", help=what)
    one.set_defaults(call=predict, permute=None)  # in the order of the file


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 0, 2 for errors, 130 after Ctrl-C."""
    args = make_parser().parse_args(argv)
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
