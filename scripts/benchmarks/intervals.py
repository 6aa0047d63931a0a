"""Coverage and width of ``okl.Intervals`` around SelfTuning, on streams that drift and others.

Reproduces: nothing published.
Missing: conditional coverage: the width follows time, not the input. Sets need scikit-learn.
Time: two minutes (--quick: 3000 rounds of each stream).
"""

from typing import NamedTuple

import numpy as np

import oklnumba as okl
from scripts.benchmarks.rivals import SKLEARN, missing_libraries
from scripts.benchmarks.streams import curved, drift, electricity_like, load_stream
from scripts.common import available, parse_args, publish
from scripts.looks import BLACK, BLUE, BOUND, VERMILLION, explain

COVERAGE, WINDOW = 0.9, 500
N, QUICK_N, ROWS = 20_000, 3000, 5000  # made-up rounds; of --quick; of classes and the adversary
PERIOD = 4000  # rounds between changes of the scale
SETS = {"casp": ("permuted", "sorted by input 0"), "cadata": ("file order",),
        "parkinsons": ("file order",), "abalone": ("permuted",)}  # fmt: skip
PICTURE, CHANGES = "casp, permuted", "scale tenfold and back"


class Played(NamedTuple):
    """Forecasts, intervals (n, 2) and labels of a stream, and the guarantee after it."""

    predictions: np.ndarray
    intervals: np.ndarray
    y: np.ndarray
    bound: float
    run: okl.Run | None


def made_up(n: int):
    """Yield streams of one function whose noise or labels change, and one whose concept does."""
    rng, t = np.random.default_rng(0), np.arange(n)
    X, noise = rng.standard_normal((n, 3)), rng.standard_normal(n)
    f = np.sin(2.0 * X[:, 0]) + 0.9 * X[:, 1] * np.cos(X[:, 2])
    yield CHANGES, X, (f + 0.2 * noise) * np.where(t // PERIOD % 2, 10.0, 1.0)
    yield "Cauchy noise", X, f + 0.2 * rng.standard_cauchy(n)
    stream, _ = drift("abrupt", curved, "regression")
    yield "abrupt drift", stream.X[:n], stream.y[:n]


def streams(names, n: int):
    """Yield a name, inputs and labels."""
    for name in names:
        for order in SETS[name]:
            data = load_stream(name, 0 if order == "permuted" else None)
            X, y = data.X, data.y
            if order.startswith("sorted"):
                X, y = okl.adversary.sorted_by(X, y, column=0)
            yield f"{name}, {order}", X[:n], y[:n]
    yield from made_up(min(n, N))


def extremes(n: int):
    """Yield streams without a signal whose scale moves faster than intervals can follow."""
    rng, t = np.random.default_rng(0), np.arange(n)
    X, noise = rng.uniform(-1, 1, (n, 2)), rng.standard_normal(n)
    yield "scale 3000-fold in 628 rounds", X, noise * np.exp(4.0 * np.sin(t / 200.0))
    yield "scale jumps by 10,000", X, noise * np.where(t // PERIOD % 2, 1e4, 1.0)


def play(X, y) -> Played:
    learner = okl.Intervals(okl.SelfTuning(), coverage=COVERAGE)
    run = okl.run(learner, X, y)
    return Played(run.predictions, run.intervals, y, learner.coverage_bound, run)


def play_adversary(n: int) -> Played:
    """Play labels in [-1, 1]: just outside the interval if that is there, else 0.3."""
    X = np.random.default_rng(0).standard_normal((n, 3))
    learner = okl.Intervals(okl.SelfTuning(), coverage=COVERAGE)
    forecasts, intervals, labels = np.empty(n), np.empty((n, 2)), np.empty(n)
    for t in range(n):
        forecasts[t] = learner.predict_one(X[t])
        low, high = intervals[t] = learner.predict_interval(X[t : t + 1])[0]
        outside = (end for end in (high + 1e-3, low - 1e-3) if abs(end) <= 1.0)
        labels[t] = next(outside, 0.3)
        learner.learn_one(X[t], labels[t])
    return Played(forecasts, intervals, labels, learner.coverage_bound, None)


def recent(inside):
    """Return the share inside the last WINDOW rounds, from round WINDOW on."""
    sums = np.concatenate([[0], np.cumsum(inside)])
    return (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW


def measure(name: str, one: Played) -> tuple[dict, np.ndarray, np.ndarray]:
    """Return a row, and the coverage of the last WINDOW rounds of ours and the constant width."""
    inside = (one.intervals[:, 0] <= one.y) & (one.y <= one.intervals[:, 1])
    errors = np.abs(one.y - one.predictions)
    best = np.quantile(errors, COVERAGE, method="higher")
    halves = 0.5 * np.diff(one.intervals[1:], axis=1)  # the first one is infinite
    ours, constant = recent(inside), recent(errors <= best)
    if abs(inside.mean() - COVERAGE) > one.bound:
        raise RuntimeError(f"{name}: coverage {inside.mean()} is not within {one.bound}")
    row = {
        "stream": name, "rounds": len(one.y), "inside": inside.mean(), "bound": one.bound,
        "worst 500": ours.min(), "best 500": ours.max(), "constant, worst 500": constant.min(),
        "mean width / constant": halves.mean() / best,
        "median width / constant": np.median(halves) / best,
    }  # fmt: skip
    return row, ours, constant


def measure_sets(stream, n: int) -> dict:
    """Return the row of a classifier whose sets are asked for before each label."""
    X, y = stream.X[:n], stream.y[:n]
    model = okl.interop.OnlineClassifier(okl.Intervals(okl.SelfTuning(), coverage=COVERAGE))
    inside, sizes, right = np.ones(n, bool), np.full(n, 2), np.zeros(n, bool)
    for t in range(n):
        if t:
            forecast, sets = model.predict(X[t : t + 1], return_set=True)
            inside[t], sizes[t] = sets[0, int(y[t] > 0.0)], sets.sum()
            right[t] = forecast[0] == y[t]
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[-1.0, 1.0])
    window = recent(inside)
    row = {"stream": f"classes: {stream.name}", "rounds": n, "inside": inside.mean(),
           "worst 500": window.min(), "best 500": window.max()}  # fmt: skip
    return row | {"mean size of a set": sizes.mean(), "right": right.mean()}


def draw(played, curves):
    figure, axes = okl.plots.figure(rows=2, row_height=2.7)
    grid = np.linspace(0.0, 1.0, 500)
    for i, ax in enumerate(axes[0]):
        on_grid = {
            name: np.interp(grid, np.linspace(0.0, 1.0, len(both[i])), both[i])
            for name, both in curves.items()
        }
        change = on_grid.pop(CHANGES)
        low, high = np.min([*on_grid.values()], axis=0), np.max([*on_grid.values()], axis=0)
        ax.fill_between(grid, low, high, color="0.8", label="range of the other streams")
        ax.plot(grid, change, color=VERMILLION, linewidth=1.2, label=CHANGES)
    titles = "okl.Intervals", "best constant width in hindsight"
    for ax, text in zip(axes[0], titles, strict=True):
        ax.axhline(COVERAGE, color=BLACK, linewidth=0.8, linestyle=BOUND, label="asked: 0.9")
        ax.set_ylim(0.5, 1.0)
        okl.plots.tidy(ax, "share of the stream", f"share inside, last {WINDOW} rounds", text)
    one = played[CHANGES]
    errors = np.abs(one.y - one.predictions)
    axes[1, 0].plot(errors, ",", color="0.6", rasterized=True)
    explain(axes[1, 0], "errors", marker=".", linestyle="", color="0.6")
    axes[1, 0].plot(0.5 * np.diff(one.intervals, axis=1), color=BLUE, linewidth=1.0,
                    label="half-width")  # fmt: skip
    axes[1, 0].set_ylim(1e-3, 1e2)
    okl.plots.tidy(axes[1, 0], "rounds", "half-width and errors", CHANGES, log="y")
    if PICTURE in played:
        okl.plots.intervals(played[PICTURE].run, played[PICTURE].y, axes[1, 1], last=100)
        okl.plots.title(axes[1, 1], f"{PICTURE}: the last 100")
    return figure


if __name__ == "__main__":
    args = parse_args(__doc__, limit=300.0, quick_limit=30.0)
    names = available(SETS)
    n = QUICK_N if args.quick else 50_000
    played = {name: play(X, y) for name, X, y in streams(names, n)}
    played["adversary's labels"] = play_adversary(min(n, ROWS))
    too_fast = {name: play(X, y) for name, X, y in extremes(min(n, N))}
    rows, curves = [], {}
    for name, one in (played | too_fast).items():
        row, *shares = measure(name, one)
        if name in played:
            curves[name] = shares
        rows.append(row | {"mean size of a set": "", "right": ""})
    classes = load_stream("magic04", 0), electricity_like()
    for stream in () if missing_libraries(SKLEARN) else classes:
        rows.append(dict.fromkeys(rows[0], "") | measure_sets(stream, min(n, ROWS)))
    publish(draw(played, curves), rows, args, legend=4)
