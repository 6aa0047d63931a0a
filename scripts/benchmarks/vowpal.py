"""Mistakes against time on magic04: Vowpal Wabbit and ours, tuned with the same effort.

Reproduces: nothing published.
Missing: other data sets, and Vowpal Wabbit's hashed sparse inputs, for which nothing here is meant.
Time: two minutes (--quick: 3000 rows, some seconds).
"""

import tempfile
import time

import oklnumba as okl
from scripts.benchmarks.rivals import VW, Own, Peer, combinations, missing_libraries
from scripts.common import run_script
from scripts.looks import look, name_points

ROWS, QUICK_ROWS, TUNE_ROWS, WARM_ROWS = 19_020, 3000, 5000, 1500
PLAYED, REHEARSED = 0, 1  # permutations


class Wabbit(Peer):
    """Vowpal Wabbit: one pass over its binary cache of the rows, its own count of mistakes."""

    rows = None

    def __init__(self, options: str):
        self.options = options

    def play(self, X, y) -> int:
        from vowpalwabbit import Workspace

        with tempfile.TemporaryDirectory() as folder:
            data = f"-d {folder}/rows --cache_file {folder}/cache --quiet"
            with open(f"{folder}/rows", "w", encoding="utf-8") as file:
                for label, values in zip(y.tolist(), X.tolist(), strict=True):
                    inputs = " ".join(f"{j}:{v:.6g}" for j, v in enumerate(values))
                    file.write(f"{label:g} |f {inputs}\n")
            Workspace(f"{data} --noop").finish()
            self.start = time.process_time()  # parsing does not count
            learner = Workspace(f"{data} --binary {self.options}")
            learner.finish()
        return round(learner.get_sum_loss())


def methods(d: int) -> dict:
    """Return makers of each method by setting; widths are in proportion to sqrt(d)."""
    widths, lams, steps = [d**0.5 / 4, d**0.5 / 2, d**0.5], (0.01, 0.1), (0.3, 1.0, 3.0)
    rates, smooth = {"rate": (0.1, 0.5, 2.0, 8.0)}, {"loss": "logistic"}
    kernel_svm = {"gamma": [0.5 / width**2 for width in widths], "l2": (1e-3, 1e-4)}
    sgd = "--loss_function logistic -l {rate}"
    theirs = {
        "linear": (sgd, rates),
        "quadratic": (f"--interactions :: {sgd}", rates),
        "cubic": (f"--interactions ::: {sgd}", rates),
        "neural net": (f"--nn 30 {sgd}", rates),
        "kernel SVM": ("--ksvm --kernel rbf --bandwidth {gamma} --l2 {l2}", kernel_svm),
    }
    nystrom, sigmas = okl.NystromAWV(okl.Gaussian(), max_size=200), {"sigma": widths}
    ours = {
        "OGD, linear": (okl.OGD(schedule="sqrt", **smooth), {"eta": (0.03, *steps)}),
        "FOGD": (okl.FOGD(n_frequencies=200, **smooth), sigmas | {"eta": steps}),
        "PKAWV, Taylor": (okl.PKAWV(okl.TaylorFeatures(3)), sigmas | {"lam": lams}),
        "NystromAWV": (nystrom, sigmas | {"lam": lams}),
        "SelfTuning": (okl.SelfTuning(), {}),
    }
    return {
        **{f"{VW}, {name}": combinations(options.format, Wabbit, **lists)
           for name, (options, lists) in theirs.items()},
        **{name: combinations(one, Own, **lists) for name, (one, lists) in ours.items()},
    }  # fmt: skip


def play(name: str, settings: dict, n: int) -> dict:
    """Return mistakes and CPU time of a method, with the setting that another order chose."""
    (X, y), (V, z) = (load(order) for order in (PLAYED, REHEARSED))
    rows = min(n, TUNE_ROWS)
    chosen = min(settings, key=lambda text: settings[text]().play(V[:rows], z[:rows]))
    settings[chosen]().play(X[:WARM_ROWS], y[:WARM_ROWS])  # compiles
    player = settings[chosen]()
    player.start = time.process_time()
    mistakes = 100.0 * player.play(X[:n], y[:n]) / n
    seconds = time.process_time() - player.start
    return {"method": name, "setting": chosen, "rounds": n, "mistakes (%)": round(mistakes, 2),
            "microseconds a round": float(f"{1e6 * seconds / n:.3g}")}  # fmt: skip


def load(order: int):
    data = okl.datasets.load("magic04", scale=None, permute=order)
    return (data.X - data.X.mean(axis=0)) / data.X.std(axis=0), data.y


def draw(rows):
    figure, axes = okl.plots.figure(columns=1, row_height=3.6)
    ax, points = axes[0, 0], []
    for row in rows:
        x, y, theirs = *list(row.values())[:2:-1], row["method"].startswith(VW)
        style = {"color": "0.45", "marker": "s"} if theirs else look(row["method"])
        ax.plot(x, y, **style | {"linestyle": ""})
        points.append((row["method"].replace(VW, "VW"), x, y, style["color"]))
    okl.plots.tidy(ax, "CPU time of a round (\N{MICRO SIGN}s)", "mistakes (%)", "magic04", log="x")
    ax.set_xlim(right=10.0 * ax.get_xlim()[1])  # room for names
    name_points(ax, points, okl.plots.FONT - 1.0)
    return figure


def measure(args) -> list[dict]:
    missing, n = missing_libraries(VW), QUICK_ROWS if args.quick else ROWS
    return [play(*one, n) for one in methods(10).items() if not one[0].startswith(missing)]


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (300.0, 20.0))
