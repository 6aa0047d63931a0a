"""``oklnumba predict``: the forecasts of a saved model for a file, row by row, as CSV."""

import argparse
import csv
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

import oklnumba as okl
from oklnumba.command.run import print_warnings
from oklnumba.command.source import find_table, get_place, is_same
from oklnumba.core.checks import require, warn
from oklnumba.core.files import find_target
from oklnumba.core.inputs import find_labels
from oklnumba.core.schema import Schema
from oklnumba.data.streams import Stream
from oklnumba.protocol.class_scores import LOSSES, compute_probabilities


def predict(args: argparse.Namespace) -> None:
    """Write the forecasts of a saved model for each row of a file, as CSV."""
    learner = okl.load(args.model)
    require(isinstance(learner, okl.Learner), "MODEL", args.model, "the file of a learner")
    if args.learn:
        find_target(args.model)  # which refuses what cannot be written
    data = find_rows(args, learner.schema)
    reads = args.model, args.file
    if args.output != "-" and any(is_same(args.output, one) for one in reads):
        raise ValueError(f"{args.output} is read for the forecasts; write them to another file")
    file = nullcontext(sys.stdout) if args.output == "-" else open(args.output, "w", newline="")
    most = learner.steps if isinstance(learner, okl.Horizon) and not args.learn else np.inf
    last = learner.rounds + most
    ids = {name: data.read_texts(get_place(args, name)) for name in args.id}
    interrupted = None
    with file as out, print_warnings():
        writer, header = csv.writer(out, lineterminator="\n"), False
        try:
            for X, y in data.read_blocks():
                if learner.rounds + len(X) > last:
                    raise ValueError(
                        f"{args.file} has more rows than the {most} next ones that this model "
                        "forecasts (steps); if some have their labels, learn these by --learn"
                    )
                columns = forecast(learner, X, y if args.learn else None)
                if not header:
                    header = writer.writerow([*ids, *columns])
                values = [one.tolist() for one in columns.values()]
                values[:0] = (list(islice(one, len(values[0]))) for one in ids.values())
                rows = list(zip(*values, strict=True))
                writer.writerows(rows)
                out.flush()
                if len(rows) < len(X):
                    raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            interrupted = error
    if args.learn:
        learner.save(args.model)
    if interrupted:
        raise interrupted


def find_rows(args: argparse.Namespace, schema: Schema | None) -> Stream:
    """Return the rows to forecast; their labels are read by --learn only, and may be anything."""
    if schema and not args.learn:
        args.drop, args.label = [*args.drop, *({args.label} - {None, schema.label})], None
        ignored = *schema.ignored, schema.label or ""
        schema = replace(schema, label=None, ignored=ignored)
    return find_table(args, like=schema)


def forecast(learner: okl.Learner, X: np.ndarray, y: np.ndarray | None) -> dict[str, Any]:
    """Return columns of forecasts, each made before its label is learned; y None: no label is.

    After Ctrl-C they are shorter than X.
    """
    rounds, intervals = np.full(len(X), learner.rounds), None
    if y is None and isinstance(learner, okl.Horizon):
        y = np.full(len(X), np.nan)  # the rounds that come next
    if y is None:
        refusal = learner._refuses_late
        if len(X) > 1 and refusal and refusal.name == "Lags":  # in other learners, too
            warn(
                "each row is forecast as the next one, after the labels so far, as Lags does; to "
                "forecast several rows, run with --steps, or give their labels and --learn"
            )
        forecasts = learner.predict(X)
        if learner._half_width is not None:
            intervals = learner._intervals_around(forecasts)
    else:
        run = okl.run(learner, X, y, labels="optional")
        forecasts, intervals, rounds = run.predictions, run.intervals, rounds[: run.rounds]
        rounds += run.labelled - find_labels(y[: run.rounds])
    if forecasts.ndim == 2:
        return {f"forecast_{k}": column for k, column in enumerate(forecasts.T)}
    columns = {"forecast": forecasts}
    classes = learner.schema and learner.schema.classes
    if classes and len(classes) == 2 and not isinstance(learner, okl.OneVsRest):
        columns["forecast"] = np.array(classes)[(forecasts > 0.0).astype(int)]
        if (loss := learner._loss().name) in LOSSES:
            P = compute_probabilities(loss, forecasts, rounds)
            columns[f"probability of {classes[1]}"] = P[:, 1]
    elif intervals is not None:
        columns["low"], columns["high"] = intervals.T
    return columns
