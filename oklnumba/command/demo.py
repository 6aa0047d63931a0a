"""``oklnumba demo``: what the package does, in four sentences and a picture."""

import argparse
import shlex
import sys
from pathlib import Path

import oklnumba as okl
from oklnumba.command.first_use import compiling_beside
from oklnumba.data import datasets

PICTURE = "oklnumba_demo.png"
NEXT = """\
your data {python} -m pip install pyarrow, which reads files; then
          {python} -m oklnumba run FILE.csv --label COLUMN
Python    okl.run(okl.SelfTuning(), X, y)
papers    in a clone of the project: docs/quick_start.md, and {python} scripts/reproduce.py"""


def demo(args: argparse.Namespace) -> None:
    """See in half a minute what it does, on data that it brings."""
    data = datasets.load("magic04", scale=None, permute=0)
    learner = okl.SelfTuning()
    with compiling_beside(learner):
        run = okl.run(learner, data.X, data.y)
    if run.interrupted:
        raise KeyboardInterrupt
    commonest = 100.0 * run.class_scores.commonest
    print(describe(run, commonest, learner.leader))
    picture = Path(args.output) / PICTURE
    figure = run.plot()
    rule = figure.axes[0].axhline(commonest, color="0.4", linestyle=":")
    figure.axes[0].legend([rule], ["always the commonest class"], frameon=False, fontsize="small")
    figure.savefig(picture, dpi=150)
    print(f"\npicture   {picture.resolve()}\n{NEXT.format(python=name_python())}")


def name_python() -> str:
    """Return how a shell here calls this Python, whose environment may not be activated."""
    python, here = Path(sys.executable), Path.cwd()
    short = here in python.parents and here != python.parent  # a bare name would be another one
    return shlex.quote((python.relative_to(here) if short else python).as_posix())


def describe(run: okl.Run, commonest: float, leader: object) -> str:
    """Return four sentences: what was played, its error, what suits the data, and its regret."""
    loss, best, most = (
        sums[-1] / run.rounds
        for sums in (run.certificate.loss, run.certificate.comparator, run.certificate.guaranteed)
    )
    return (
        f"played    {run.rounds:,} rows of magic04: did the telescope see a gamma ray or not? Each "
        f"row was\n          forecast, then its label was shown and learned, in one pass.\n"
        f"error     {100.0 * run.mistake_rate:.1f} % of the forecasts are wrong; the commonest "
        f"class as every forecast makes {commonest:.1f} %.\n"
        f"suits     {leader}:\n          chosen on the way, with nothing tuned before.\n"
        f"regret    the best fixed function, chosen after all labels, has a mean squared loss "
        f"of {best:.3f};\n          the run has {loss:.3f}, {loss - best:.3f} more. The theory "
        f"allows {most - best:.3f} more, and assumes nothing about the data."
    )
