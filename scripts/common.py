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
from matplotlib.ticker import NullLocator  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402

import oklnumba as okl  # noqa: E402
from oklnumba import datasets, plots  # noqa: E402

NO_DATA = 77  # exit status "nothing could be done here", as automake has it for tests
FIGURES = Path(__file__).resolve().parents[1] / "figures"
BOUND, RATE = (0, (4, 2)), (0, (1, 1.5))  # dashes of bounds, and of rates and other closed forms
THEORY = {"color": "0.4", "linewidth": 1.0}  # of a line that belongs to no algorithm
BLACK, VERMILLION, BLUE, GREEN, PINK, ORANGE, SKY = plots.COLOURS
LOOKS = {  # of an algorithm in all figures; the first name that a label contains counts
    "FrequentKONS": (SKY, "-", "o"),
    "Pros-N-KONS": (VERMILLION, "-", "D"), "CON-KONS": (VERMILLION, "--", "d"),
    "Sketched-KONS": (ORANGE, "-", "s"), "KONS": (BLACK, "-.", "h"),
    "SelfTuning": (BLACK, "-", "*"), "Kernel-AWV": (BLACK, "-", "o"),
    "KernelAWV": (BLACK, "-", "o"), "KernelRidge": (BLACK, "--", "s"),
    "Nystrom": (GREEN, "-.", "^"), "M = 1": ("#9DC3E6", "-", "<"), "M = 2": ("#5AA3D8", "-", "v"),
    "M = 4": ("#003A5D", "-", "s"), "PKAWV": (BLUE, "-", "o"),
    "FOGD": (ORANGE, ":", "P"), "NOGD": (GREEN, "-.", "v"), "SkeGD": (PINK, ":", "X"),
    "BOGD": (ORANGE, "--", "s"), "B(AO)2KS": (VERMILLION, (0, (7, 2)), "D"),
    "POMD": (BLUE, "-", "o"), "OGD": (BLACK, "-", "^"), "SGD": (BLACK, "--", "^"),
}  # fmt: skip
N_JOBS = -1 if find_spec("joblib") else 1  # all cores where sweeps can have them


def parse_args(doc: str, limit: float, quick_limit: float, keeps: bool = False, **more):
    """Return the options of a script; limits are in seconds, ``more`` are options of its own."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    quick = f"a time limit of {quick_limit:g} s; files get the suffix _quick"
    each = f"time limit for each algorithm (default {limit:g})"
    kept = "keep each run in this folder, and take from it those that are there"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--limit", type=float, metavar="SECONDS", help=each)
    redraw = "draw the csv of the output folder again"
    parser.add_argument("--redraw", action="store_true", help=redraw)
    parser.add_argument("--output", type=Path, default=FIGURES, metavar="DIR",
                        help="default: figures/ of the tree")  # fmt: skip
    if keeps:
        parser.add_argument("--keep", type=Path, metavar="DIR", help=kept)
    for name, keywords in more.items():
        parser.add_argument(f"--{name}", **keywords)
    args = parser.parse_args()
    if args.limit is None:
        args.limit = quick_limit if args.quick else limit
    if not args.limit > 0:
        parser.error("--limit must be positive")
    args.stem = Path(sys.argv[0]).stem
    path = args.output / f"{args.stem}{'_quick' * args.quick}.csv"
    args.rows = [dict(zip(r, map(read_cell, r.values()), strict=True)) for r in read_csv(path)]
    args.rows *= args.redraw
    return args


def available(names):
    """Return which data sets are here, and say how to get the others; end the script if none is."""
    here = []
    for name in dict.fromkeys(names):
        if datasets.found(name):
            here.append(name)
        else:
            print(f"{name} is not here and is left out: {datasets.how_to_get(name)}")
    return exit_if_empty(here)


def stream(name: str, n=None):
    """Return the first n rows of a permutation: inputs and labels, both scaled to [-1, 1]."""
    data = datasets.load(name, permute=0)
    return np.ascontiguousarray(data.X[:n]), datasets.scale_to(data.y)[:n]


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


def save(figure, path) -> None:
    """Write a picture; make the folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200)


def publish(figure, rows, args, table=None, *, legend=0, partial=False, but=()):
    """Write figure and csv, full ones never over quick or partial; print the table or rows."""
    if legend:
        plots.shared_legend(figure, columns=legend)
    stem = args.stem + ("_quick" if args.quick else "_partial" if partial else "")
    save(figure, args.output / f"{stem}.png")
    if args.rows:
        print(f"drew {stem}.png in {args.output} again")
        return
    rows = [{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows]
    write_csv(args.output / f"{stem}.csv", rows)
    print_table(rows if table is None else table, *but)
    print(f"wrote {stem}.png and {stem}.csv in {args.output}")


def look(label: str) -> dict:
    """Return the colour, dashes and marker of an algorithm, as keywords of ``Axes.plot``."""
    label = label.replace("M=", "M = ")
    found = next((looks for name, looks in LOOKS.items() if name in label), (BLACK, "-", "o"))
    return dict(zip(("color", "linestyle", "marker"), found, strict=True))


def explain(axes, label: str, **style) -> None:
    """Name a style in the legend, in grey: what dashes or a marker mean in every colour."""
    axes.plot([], [], label=label, **{"color": "0.4"} | style)


def use_symlog(axes, linear: float) -> None:
    """Make y logarithmic on both sides of 0, linear up to ``linear``, with plain numbers."""
    axes.set_yscale("symlog", linthresh=linear)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def name_points(axes, points, fontsize: float) -> None:
    """Write names next to points, (name, x, y, colour), where no name and no point is.

    First those that find room at their point, then the others, with a line to it. Points of no name
    are kept clear. Limits and scales must be set, and the legend drawn.
    """
    axes.figure.draw_without_rendering()
    unit, inside = axes.figure.dpi / 72.0, axes.get_window_extent()
    dots = np.array([axes.transData.transform((x, y)) for _, x, y, _ in points])
    taken = [Bbox.from_bounds(*(dot - 4.0 * unit), 8.0 * unit, 8.0 * unit) for dot in dots]
    waiting = [i for i, point in enumerate(points) if point[0]]
    angles = np.pi * np.array([0, 2, 1, 0.25, -0.25, 0.75, -0.75, 0.5, -0.5])
    for most in (8.0, 80.0):  # points of distance
        for i in list(waiting):
            name, x, y, colour = points[i]
            text = axes.annotate(name, (x, y), fontsize=fontsize)
            width, height = text.get_window_extent().size
            text.remove()
            for far in np.arange(5.0, most, 4.0) * unit:
                reach = far + width / 2.0, far + height / 3.0
                middles = dots[i] + np.column_stack([np.cos(angles), np.sin(angles)]) * reach
                boxes = [Bbox.from_bounds(u - width / 2.0, v - height / 2.0, width, height)
                         for u, v in middles]  # fmt: skip
                free = [box for box in boxes if not box.count_overlaps(taken)
                        and inside.contains(*box.p0) and inside.contains(*box.p1)]  # fmt: skip
                if free:
                    break
            if not free:
                continue
            taken.append(free[0])
            waiting.remove(i)
            line = {"arrowstyle": "-", "color": colour, "lw": 0.4, "shrinkA": 0, "shrinkB": 2}
            axes.annotate(name, (x, y), (free[0].p0 - dots[i]) / unit, color=colour,
                          textcoords="offset points", fontsize=fontsize,
                          arrowprops=line if most > 8.0 else None)  # fmt: skip


def curve_rows(head, columns) -> list[dict]:
    """Return a row for each entry of the columns, each behind the head."""
    entries = zip(*columns.values(), strict=True)
    return [head | dict(zip(columns, entry, strict=True)) for entry in entries]


def collect(rows, x: str, *keys: str, **chosen):
    """Return x in the chosen rows, and for each key an array (seeds, values of x).

    Where fewer seeds were played (nothing is random), the first stands for the others.
    """
    found = {}
    for row in rows:
        if all(row[k] == v for k, v in chosen.items()):
            found.setdefault(row[x], []).append(row)
    most = max(map(len, found.values()), default=0)
    whole = [own + own[:1] * (most - len(own)) for own in found.values()]
    values = (np.array([[row[key] for row in own] for own in whole], dtype=float) for key in keys)
    return np.array(list(found)), *(each.T for each in values)


def fit_exponent(x, y) -> float:
    """Return the p of the best fit y ~ x^p."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def print_table(rows, *but: str) -> None:
    """Print rows in columns, numbers to the right, without the columns ``but``."""

    def text(cell) -> str:
        if cell is None or cell == "":
            return "-"
        return f"{cell:.4g}" if isinstance(cell, float) else str(cell)

    texts = [{k: text(v) for k, v in row.items() if k not in but} for row in rows]
    widths = {k: max(len(k), *(len(row[k]) for row in texts)) for k in texts[0]}
    print("  ".join(k.ljust(w) for k, w in widths.items()))
    for row in texts:
        cells = (
            row[k].rjust(w) if row[k][:1].isdigit() or row[k] == "-" else row[k].ljust(w)
            for k, w in widths.items()
        )
        print("  ".join(cells).rstrip())
