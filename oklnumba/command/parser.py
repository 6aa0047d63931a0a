"""The arguments of the command ``oklnumba``, and its exit status."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

import oklnumba as okl
from oklnumba.command.compare import compare
from oklnumba.command.data import data
from oklnumba.command.play import INTERRUPTED, run
from oklnumba.command.source import FORMS, first_line
from oklnumba.command.warm_up import warm_up

REFUSED = 2


class Parser(argparse.ArgumentParser):
    """A parser whose errors take one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and end."""
        self.exit(REFUSED, f"oklnumba: error: {message} ({self.prog} --help)\n")


def count(text: str) -> int:
    """Return a number of rows."""
    rows = int(text.replace("_", "").replace(",", ""))
    if rows < 1:
        raise ValueError
    return rows


def parser() -> Parser:
    """Return the parser of the command line."""
    top = Parser(prog="oklnumba", description="Online kernel learning with regret guarantees.")
    top.add_argument("--version", action="version", version=f"oklnumba {okl.__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    table = argparse.ArgumentParser(add_help=False)
    add = table.add_argument
    add("file", metavar="FILE", help=f"{FORMS}; or a data set of `oklnumba data list`")
    add("--label", metavar="COLUMN", help="the column of the labels")
    add("--no-header", action="store_true", help="a CSV has no names: columns are 0, 1, ...")
    add("--format", help="of the file, where its suffix does not tell: csv, tsv, parquet, ...")
    add("--columns", metavar="A,B,C", help="the inputs; all other columns if it is left out")
    add("--task", choices=("classification", "regression"), help="instead of what labels tell")
    add("--rows", type=count, metavar="N", help="play the first N rows alone")
    add("--permute", type=int, metavar="SEED", help="permute the rows of a data set or .npz")
    add("--progress", action="store_true", help="a bar on stderr")

    played = "Play a learner: forecast, see the label, learn."
    one = commands.add_parser("run", parents=[table], help="play a learner", description=played)
    add = one.add_argument
    named = "a class of oklnumba, or a call of one, 'FOGD(eta=0.3)' (default: SelfTuning)"
    add("--learner", default="SelfTuning", metavar="NAME", help=named)
    add("--set", action="append", metavar="K=V", help="an argument: lam=0.1, kernel='Gaussian(2)'")
    add("--loss", metavar="NAME", help="the loss that is counted; the learner's own if left out")
    add("--seed", type=int, metavar="S", help="the learner's seed")
    add("--save", metavar="MODEL.npz", help="write the learner; oklnumba.load reads it")
    add("--plot", metavar="OUT.png", help="draw the course of the run")
    one.set_defaults(call=run)

    played = "Play learners side by side on one stream; a dozen if none is named."
    one = commands.add_parser("compare", parents=[table], help=played[:-1], description=played)
    named = "play this one, as in run; several times for several"
    one.add_argument("--learner", action="append", metavar="NAME", help=named)
    one.set_defaults(call=compare)

    add_small(commands)
    return top


def add_small(commands: argparse._SubParsersAction) -> None:
    """Add the commands that play nothing."""
    sets = commands.add_parser("data", help="the named data sets")
    sets.add_argument("what", choices=("list", "fetch", "info"))
    sets.add_argument("name", nargs="?", metavar="NAME")
    sets.set_defaults(call=data)

    one = commands.add_parser("warm-up", help="compile beforehand, and keep it on disk")
    one.add_argument("learners", nargs="*", metavar="NAME", help="as in run; all if none is named")
    one.add_argument("--progress", action="store_true", help="a bar on stderr")
    one.set_defaults(call=warm_up)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status: 0, 2 for errors, 130 after Ctrl-C.

    Parameters
    ----------
    argv : list of str, optional
        Arguments; None: those of the process.
    """
    args = parser().parse_args(argv)
    try:
        status = args.call(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # as in `oklnumba run ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError) as error:
        sys.stdout.flush()
        print(f"oklnumba: error: {first_line(error)}", file=sys.stderr)
        return REFUSED
