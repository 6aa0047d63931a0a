"""Regret against dictionary size on a million rows that are played block by block.

Reproduces: nothing published; the picture of regret_vs_dictionary at the length of real streams.
Missing: real streams as long; the stream is that of millions.py. One seed, no tuning.
Time: 27 minutes of CPU time, two of them for the bound (--quick: 5000 rows). --data FILE
    --label y for a file of your own, which is read block by block.
"""

from functools import partial
from itertools import islice

import numpy as np

import oklnumba as okl
from oklnumba.theory.matrix import pivoted_cholesky
from oklnumba.theory.passes import Replay, as_source
from scripts.benchmarks.millions import MADE_UP, PLAYED, made_up
from scripts.common import N_JOBS, cpu_clock, run_script
from scripts.looks import BLACK, BOUND, look

ROWS, QUICK_ROWS = 10**6, 5000
SIZES, QUICK_SIZES = (25, 50, 100, 200, 400), (25, 100)
SIGMA = 4.0  # the median distance of the inputs
LANDMARKS = 500  # of the bound
LAM = {"squared": 1.0, "hinge": 0.5}  # of the comparators: loss + lam |f|^2
COLUMNS = (
    "data", "learner", "parameters", "n", "loss", "size", "mistakes", "total_loss", "regret",
    "lower", "upper", "bound", "awv_bound_low", "awv_bound_high", "seconds",
)  # fmt: skip
LOOKS = {"PKAWV": "PKAWV, Fourier"}


def blocks(rows: int):
    """Yield the first rows of the made-up stream, the same ones each time."""
    for X, y, _ in islice(made_up(PLAYED), -(-rows // 50_000)):
        yield X[:rows], y[:rows]
        rows -= len(y)


def families(kernel):
    mus = (3000.0, 1000.0, 300.0, 100.0, 30.0)

    def fogd(loss):
        return lambda T, size: okl.FOGD(
            eta=10.0 / T**0.5, sigma=kernel.sigma, n_frequencies=size // 2, loss=loss
        )

    return {
        "NystromAWV": okl.NystromAWV(kernel),
        "PKAWV": okl.PKAWV(okl.FourierFeatures(sigma=kernel.sigma)),
        "CON-KONS": [okl.ProsNKONS(kernel, mu=mu, restart=False) for mu in mus],
        "FrequentKONS": [okl.FrequentKONS(kernel, budget=m, rank=m // 4, threshold=0.03)
                         for m in (25, 50, 100, 200)],
        "FOGD": fogd("squared"),
        "FOGD, hinge": fogd("hinge"),
        "POMDR": lambda T, size: okl.POMDR(
            kernel, budget=size + size % 2, switch_size=size // 3, horizon=T),
    }  # fmt: skip


def awv_bound(kernel, data, lam: float) -> tuple[float, float]:
    """Return bounds on max y^2 log det(I + K / lam), by landmarks far from each other's span."""
    rows = Replay(as_source(data), classes=False)
    chosen = pivoted_cholesky(kernel, rows.candidates, most=LANDMARKS, seed=0)[1]
    meter = okl.theory.Meter(okl.NystromFeatures(rows.candidates[chosen], kernel), lam, kernel)
    for X, y in rows.blocks():
        meter.partial_fit(X, y)
    reading, largest = meter.read(), float(np.square(rows.y).max())
    return largest * reading.log_det, largest * reading.log_det_above


def measure(args):
    kernel = okl.Gaussian(args.sigma or SIGMA)
    rows = partial(blocks, QUICK_ROWS if args.quick else ROWS)
    data = okl.stream(args.data, label=args.label) if args.data else rows
    with cpu_clock():
        table = okl.regret_vs_size(
            families(kernel), data, kernel=kernel, lam=LAM, n_jobs=N_JOBS, path=args.keep,
            sizes=QUICK_SIZES if args.quick else SIZES, progress=True, time_limit=args.limit,
            record="none",
        )  # fmt: skip
    found, proven = [], awv_bound(kernel, data, LAM["squared"])
    for row in table:
        if row["error"] or row["regret"] is None:
            print(f"left out: {row['learner']}: {row['error'] or 'not finished'}")
            continue
        place = f"{row['data']}, {row['loss']}"
        lower, upper = table.about["interval"][place]
        low, high = proven if row["loss"] == "squared" else (None, None)
        known = {"data": "your data" if args.data else MADE_UP, "lower": lower, "upper": upper,
                 "awv_bound_low": low, "awv_bound_high": high}  # fmt: skip
        found.append({name: (row | known)[name] for name in COLUMNS})
    return found


def draw(rows):
    about = {"best": {}, "interval": {}}
    for row in rows:
        place = f"{row['data']}, {row['loss']}"
        about["best"][place] = row["total_loss"] - row["regret"]
        about["interval"][place] = row["lower"], row["upper"]
    table = okl.Table([row | {"error": "", "setting": i} for i, row in enumerate(rows)], about)
    names = {loss: list(dict.fromkeys(table.select(loss=loss)["learner"])) for loss in LAM}
    figure, axes = okl.plots.figure(columns=2, width=7.2, row_height=3.0)
    looks = {name: look(LOOKS.get(name, name)) for own in names.values() for name in own}
    for ax, (loss, own) in zip(axes[0], names.items(), strict=True):
        one = next(row for row in rows if row["loss"] == loss)
        low, high = one.get("awv_bound_low"), one.get("awv_bound_high")
        if high:  # before size_curves, which places names by the limits of the axes
            ax.set_yscale("log")
            ax.axhspan(low, high, color=BLACK, alpha=0.25, lw=0)
            ax.axhline(high, color=BLACK, linewidth=0.9, linestyle=BOUND)
            text = {"fontsize": okl.plots.FONT - 1.0, "va": "bottom", "ha": "left"}
            ax.text(0.02, high, "Kernel-AWV, bound", transform=ax.get_yaxis_transform(), **text)
        okl.plots.size_curves(table, own, ax, "regret", looks)
        ax.set_xlabel("atoms or features")
        lower, upper = about["interval"][f"{rows[0]['data']}, {loss}"]
        known = f"best function known to {100 * (upper - lower) / upper:.2g} %"
        okl.plots.title(ax, f"{rows[0]['data']}, {rows[0]['n']:,} rows\n{known}")
    return figure


def table(rows: list[dict]) -> okl.Table:
    return okl.Table(rows)[["learner", "loss", "size", "mistakes", "regret", "bound", "seconds"]]


if __name__ == "__main__":
    options = {"keeps": True, "own": True}
    run_script(__doc__, measure, draw, (600.0, 60.0), table, options)
