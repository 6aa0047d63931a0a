"""``oklnumba demo``: what the package does, in four sentences and a picture."""

import argparse
from pathlib import Path

import numpy as np

import oklnumba as okl
from oklnumba.data import datasets
from oklnumba.plots import curves, drawing

PICTURE = "oklnumba_demo.png"
NEXT = """\
your data oklnumba run FILE.csv --label COLUMN
Python    okl.run(okl.SelfTuning(), X, y); more in docs/quick_start.md
papers    python scripts/reproduce.py, in a clone of the project"""


def demo(args: argparse.Namespace) -> None:
    """Play ``SelfTuning`` on data that ship with the package, say how it went, and draw it."""
    data = datasets.load("magic04", scale=None, permute=0)
    learner = okl.SelfTuning()
    run = okl.run(learner, data.X, data.y)
    if run.interrupted:
        raise KeyboardInterrupt
    commonest = 100.0 * min(np.mean(data.y > 0.0), np.mean(data.y < 0.0))
    print(describe(run, commonest, learner.leader))
    picture = Path(args.output) / PICTURE
    draw(run, commonest).savefig(picture, dpi=150)
    print(f"\npicture   {picture.resolve()}\n{NEXT}")


def describe(run: okl.Run, commonest: float, leader: str) -> str:
    """Return four sentences: what was played, its error, what suits the data, and its regret."""
    loss, best, most = (sums[-1] for sums in mean_losses(run, np.array([run.rounds])))
    return (
        f"played    {run.rounds:,} rows of magic04: did the telescope see a gamma ray or not? Each "
        f"row was\n          forecast, then its label was shown and learned: one pass, "
        f"{run.seconds:.1f} s.\n"
        f"error     {100.0 * run.mistake_rate:.1f} % of the forecasts are wrong; the commonest "
        f"class as every forecast makes {commonest:.1f} %.\n"
        f"suits     {leader}:\n          found on the way, with nothing tuned before.\n"
        f"regret    the best fixed function, chosen with all labels known, has a mean squared loss "
        f"of {best:.3f};\n          the run has {loss:.3f}, {loss - best:.3f} more. The theory "
        f"allows {most - best:.3f} more, and assumes nothing about the data."
    )


def mean_losses(run: okl.Run, at: np.ndarray) -> list[np.ndarray]:
    """Return mean squared losses in the first ``at`` rounds: of the run, best, guaranteed."""
    found = run.certificate
    return [sums[at - 1] / at for sums in (found.loss, found.comparator, found.guaranteed)]


def draw(run: okl.Run, commonest: float) -> drawing.Figure:
    """Return a picture of the mistakes, and of the loss between what theory says of it."""
    figure, ((left, right),) = drawing.figure(columns=2, width=9.0, row_height=3.2)
    curves.loss_curves({"SelfTuning": run}, left, first=100, legend=False)
    drawing.label_ticks(left.xaxis, *left.get_xlim())
    left.axhline(commonest, label="always the commonest class", color="0.4", linestyle=":")
    at = drawing.thin(run.rounds, first=100)
    labels = "SelfTuning", "best fixed function (new spaces at each restart)", "guaranteed: at most"
    for label, values, look in zip(labels, mean_losses(run, at), ("-", "--", ":"), strict=True):
        right.plot(at, values, look, color=drawing.COLOURS[0], linewidth=1.3, label=label)
    drawing.tidy(right, "rounds", "mean squared loss so far", log="x")
    right.set_ylim(0.0)
    for axes in (left, right):
        axes.legend(fontsize=drawing.FONT - 1.0, frameon=False)
    return figure
