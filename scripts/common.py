"""What all scripts share: options, data sets (never downloaded), times, and output.

A script takes ``--quick``, ``--limit SECONDS`` and ``--output DIR``, writes ``<stem>.png`` and
``<stem>.csv``, and exits with NO_DATA if none of its data sets is at hand. With ``--redraw`` most
draw the picture from the csv of the output folder and play nothing.
"""

import argparse
import csv
import multiprocessing
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

# One thread of BLAS, set before NumPy loads it: the compiled loops use one core, so times compare,
# and on a busy machine two threads that wait for each other are far slower than one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import numpy as np  # noqa: E402

import oklnumba as okl  # noqa: E402

NO_DATA = 77  # exit status "nothing could be done here", as automake has it for tests
FIGURES = Path(__file__).resolve().parents[1] / "figures"
SIGNED = "self_tuning_versions.csv"  # which SelfTuning played each figure
N_JOBS = -1 if find_spec("joblib") else 1  # all cores where sweeps can have them
PROGRESS = sys.stderr.isatty()  # bars of sweeps


def parse_args(
    doc: str, limit: float, quick_limit: float, keeps: bool = False, own: bool | dict = False,
    most: tuple[int, int] | None = None, **more,
):  # fmt: skip
    """Return the options of a script; limits are in seconds, ``more`` are options of its own.

    ``own``: it can play a file of the user's, ``--data FILE --label y``, whose name its files get;
    a dict of widths by data set, which then has this set alone, or True.
    ``most``: rows of a set that it plays, and that a quick one plays.
    """
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=plain)

    def add(name: str, text: str = "", **how) -> None:
        parser.add_argument(f"--{name}", **{"help": text} | how)

    folder, switch = {"type": Path, "metavar": "DIR"}, {"action": "store_true"}
    add("quick", f"a time limit of {quick_limit:g} s; files get the suffix _quick", **switch)
    add("limit", f"seconds for each algorithm, at most (default {limit:g})", type=float)
    add("redraw", "draw the csv of the output folder again", **switch)
    add("output", "default: figures/ of the tree", default=FIGURES, **folder)
    if keeps:
        add("keep", "keep each run in this folder, and take from it those that are there", **folder)
    if own:
        add("data", "play this file in place of ours", metavar="FILE")
        add("label", "its column of labels (default: the last)", default=-1)
        add("sigma", "width of the kernel (default: the median distance of the inputs)", type=float)
    if most:
        add("most", "rows of a set, at most", type=int, default=most[0])
    for name, how in more.items():
        add(name, **how)
    args = parser.parse_args()
    if args.limit is None:
        args.limit = quick_limit if args.quick else limit
    if most and args.quick:
        args.most = min(args.most, most[1])
    if most and args.most < most[0]:
        LEFT_OUT.append("rows")
    if not args.limit > 0:
        parser.error("--limit must be positive")
    args.stem = Path(sys.argv[0]).stem
    if own and args.data:
        args.stem += f"_{Path(args.data).stem}"
        args.output = Path.cwd() if args.output == FIGURES else args.output
        if isinstance(own, dict):
            name = load_own(args)  # which finds a width
            own.clear()
            own[name] = args.sigma
    args.rows = rows_to_redraw(args)
    return args


def run_script(doc: str, measure, draw, limits, table=None, options=None, **how) -> list[dict]:
    """Draw the rows that ``measure(args)`` returns; ``table`` makes of them what is printed.

    limits, options : of ``parse_args``; how : keywords of ``publish``.
    """
    args = parse_args(doc, *limits, **options or {})
    rows = args.rows or measure(args)
    publish(draw(rows), rows, args, table(rows) if table else None, **how)
    return rows


def rows_to_redraw(args) -> list[dict]:
    """Return the rows of the csv of ``args.stem`` with ``--redraw``, none without."""
    path = args.output / f"{args.stem}{'_quick' * args.quick}.csv"
    rows = read_csv(path) if args.redraw else []
    return [dict(zip(row, map(read_cell, row.values()), strict=True)) for row in rows]


def available(names):
    """Return which data sets are here, and say how to get the others; end the script if none is."""
    known = {name: name in OWN or okl.datasets.found(name) for name in names}
    for name in (name for name, here in known.items() if not here):
        leave_out(f"{name} is not here and is left out: {okl.datasets.how_to_get(name)}")
    return exit_if_empty([name for name, here in known.items() if here])


OWN = {}  # the user's data set by its name, of --data
LEFT_OUT = []  # what is not played: the files of such a run are called partial


def leave_out(why: str) -> None:
    print(why)
    LEFT_OUT.append(why)


def load_own(args) -> str:
    """Load the file of ``--data``; return its name, by which ``load`` knows it.

    Two classes become -1 and +1. Without ``--sigma`` it is the median distance of the first rows.
    """
    X, y = map(np.concatenate, zip(*okl.stream(args.data, label=args.label), strict=True))
    values = np.unique(y)
    signs = len(values) == 2
    y = np.where(y == values[1], 1.0, -1.0) if signs else y
    name = "your data"
    task = "classification" if signs else "regression"
    OWN[name] = okl.datasets.Dataset(X, y, name, task, len(y))
    if args.sigma is None:
        first = okl.datasets.scale_to(X)[:500]
        distances = np.linalg.norm(first[:, None] - first, axis=2)
        args.sigma = float(f"{np.median(distances[distances > 0.0]):.2g}")
    return name


def load(name: str, scale=(-1.0, 1.0), permute=None) -> okl.datasets.Dataset:
    """Return a data set of the package, or the user's, as ``okl.datasets.load``."""
    if name not in OWN:
        return okl.datasets.load(name, scale=scale, permute=permute)
    data = OWN[name]
    X, y = data.X if scale is None else okl.datasets.scale_to(data.X, *scale), data.y
    if permute is not None:
        order = np.random.default_rng(permute).permutation(len(y))
        X, y = X[order], y[order]
    return okl.datasets.Dataset(X, y, name, data.task, len(y))


def stream(name: str, n=None):
    """Return the first n rows of a permutation: inputs and labels, both scaled to [-1, 1]."""
    data = load(name, permute=0)
    return np.ascontiguousarray(data.X[:n]), okl.datasets.scale_to(data.y)[:n]


def exit_if_empty(items) -> list:
    """Return the items; a script that has none to work on ends with the exit status NO_DATA."""
    if not items:
        print("nothing to do")
        sys.exit(NO_DATA)
    return items


def cpu_clock():
    """Return a context in which ``okl.run`` counts the CPU seconds of this thread."""
    return patch.object(time, "perf_counter", time.thread_time)


def timed_run(learner, X, y, limit: float):
    """Run a learner under the time limit, in CPU seconds, its loops compiled before."""
    with warnings.catch_warnings(), cpu_clock():
        warnings.simplefilter("ignore")
        okl.run(learner, X[:64], y[:64])
        okl.run(learner, X[64:600], y[64:600], time_limit=5.0)
        return okl.run(learner.reset(), X, y, time_limit=limit)


def sweep(learners, data, permutations, limit: float, **options):
    """Return the table of ``okl.sweep``; say what was not finished, and stop at an error."""
    options = {"n_jobs": N_JOBS, "progress": PROGRESS, "time_limit": limit} | options
    table = okl.sweep(learners, data, permutations, **options)
    for row in table:
        if row["error"]:
            raise SystemExit(f"{row['data']}, {row['learner']}: {row['error']}")
        if not row["finished"]:
            print(f"{row['data']}, {row['learner']}: not finished within {limit:g} s")
    return table


def run_in_process(function, *given, **environment: str):
    """Return what a function does in a process of its own, whose memory is then its own."""
    context = multiprocessing.get_context("spawn")
    with patch.dict(os.environ, environment), ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *given).result()


def memory_mb(field: str = "VmHWM") -> float:
    """Return the memory of this process in MB: VmRSS now, VmHWM at its peak; NaN if not Linux."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    found = [float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:")]
    return found[0] if found else np.nan


def write_csv(path, rows, end: str = "\n") -> None:
    """Write rows, of which the first has all the columns; make the folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator=end)
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path) -> list[dict]:
    """Return the rows of a file, none where there is no file."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_cell(text: str):
    """Return a cell as ``write_csv`` got it: a number, a text, or None where it is empty."""
    try:
        number = float(text)
        return int(number) if text.lstrip("-").isdigit() else number
    except ValueError:
        return text or None


def published_rows(paper: str) -> list[dict]:
    """Return the values of a paper that are kept in papers/published."""
    return read_csv(Path(__file__).with_name("papers") / "published" / f"{paper}.csv")


def has_marks(axes) -> bool:
    """Return whether an axes shows data: a finite value of a curve, or bars, dots, an image."""
    curves = [line for line in axes.lines
              if all(line.get_transform().contains_branch_seperately(axes.transData))]  # fmt: skip
    values = [np.asarray(line.get_ydata(), dtype=float) for line in curves]
    others = axes.collections, axes.patches, axes.images
    return any(np.isfinite(y).any() for y in values) or any(map(len, others))


def publish(figure, rows, args, table=None, *, legend=0, but=()):
    """Write figure and csv, full ones never over quick or partial; print the table or rows."""
    if legend:
        okl.plots.shared_legend(figure, columns=legend)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    empty = [i for i, axes in enumerate(shown, start=1) if not has_marks(axes)]
    if empty:
        raise SystemExit(f"{args.stem}: panels {empty} of {len(shown)} are empty")
    stem = args.stem + ("_quick" if args.quick else "_partial" if LEFT_OUT else "")
    args.output.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.output / f"{stem}.png", dpi=200)
    if args.rows:
        print(f"drew {stem}.png in {args.output} again")
        return
    rows = [{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows]
    write_csv(args.output / f"{stem}.csv", rows)
    if stem == args.stem and "SelfTuning" in Path(sys.argv[0]).read_text(encoding="utf-8"):
        sign_forecasts(args.output / SIGNED, stem)
    print_table(rows if table is None else table, *but)
    print(f"wrote {stem}.png and {stem}.csv in {args.output}")


def sample_forecasts() -> np.ndarray:
    """Return a few forecasts of SelfTuning on two small streams: other ones, another version.

    In the second, inputs have two values, so rows repeat.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2200, 3))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(2200)
    runs = [okl.run(okl.SelfTuning(), *data) for data in ((X, y), (np.sign(X), np.sign(y)))]
    return np.concatenate([run.predictions[[40, 200, 600, 1400, 2199]] for run in runs])


def sign_forecasts(path, stem: str) -> None:
    """Note in a csv which SelfTuning played a figure, by its sample forecasts."""
    notes = {row["figure"]: row["forecasts"] for row in read_csv(path)}
    notes[stem] = " ".join(f"{v:.8g}" for v in sample_forecasts())
    rows = [{"figure": name, "forecasts": notes[name]} for name in sorted(notes)]
    write_csv(path, rows)


def curve_rows(head, columns) -> list[dict]:
    """Return a row for each entry of the columns, each behind the head."""
    entries = zip(*columns.values(), strict=True)
    return [head | dict(zip(columns, entry, strict=True)) for entry in entries]


def group(rows, *keys: str) -> dict:
    """Return the rows by their value of a column, or their values of several."""
    found = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        found.setdefault(values if len(keys) > 1 else values[0], []).append(row)
    return found


def collect(rows, x: str, *keys: str, **chosen):
    """Return x in the chosen rows, and for each key an array (seeds, values of x).

    Where fewer seeds were played (nothing is random), the first stands for the others.
    """
    found = group([row for row in rows if all(row[k] == v for k, v in chosen.items())], x)
    most = max(map(len, found.values()), default=0)
    whole = [own + own[:1] * (most - len(own)) for own in found.values()]
    values = (np.array([[row[key] for row in own] for own in whole], dtype=float) for key in keys)
    return np.array(list(found)), *(each.T for each in values)


def last_rows(rows) -> list[dict]:
    """Return the rows of the last round."""
    last = max(row["round"] for row in rows)
    return [row for row in rows if row["round"] == last]


def fit_exponent(x, y) -> float:
    """Return the p of the best fit y ~ x^p."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def print_table(rows, *but: str) -> None:
    """Print rows in columns, numbers to the right, without the columns ``but``."""

    def text(cell) -> str:
        if cell is None or cell == "":
            return "-"
        return f"{cell:.4g}" if isinstance(cell, float) else str(cell)

    names = [name for name in next(iter(rows)) if name not in but]
    lines = [names, *([text(row[name]) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.rjust(width) if cell[:1].isdigit() or cell == "-" else cell.ljust(width)
                 for cell, width in zip(line, widths, strict=True))  # fmt: skip
        print("  ".join(cells).rstrip())
