"""Error, time, latency and memory of fifteen learners on nine streams: which to choose.

Reproduces: nothing published. docs/choosing.md has a table of choosing.csv.
Missing: more than one order of each stream, so small differences of errors are chance.
Time: two minutes (--quick: 15 seconds, three streams and a short game).
"""

import pickle
import time
from functools import partial

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks.rivals import missing_libraries, run_unless_overflow, tuned
from scripts.benchmarks.streams import Stream, curved, drift, linear, load_stream
from scripts.benchmarks.timing import play_one_by_one, timed
from scripts.common import available, leave_out, load_own, run_script
from scripts.looks import BLACK, BLUE, GREEN, ORANGE, PINK, SKY, WINE, panels

CHOOSING_ROWS, QUICK_ROUNDS = 2000, 1200
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # of the kernel, times the square root of d
LAMS, STEPS = (0.01, 0.1, 1.0), (0.01, 0.1, 1.0, 10.0)
ALPHAS = (0.1, 1.0, 10.0)
LINEAR_STEPS = (0.001, 0.01, 0.1)
FORGET = {"discount": 2.0 ** (-1.0 / 500)}  # fixed: first rows cannot tell how later ones drift
FREQUENCIES, ATOMS, MOST_MONOMIALS = 200, 300, 600
MOST_EXACT = 5000  # rounds of learners whose memory grows with n^2
SINGLE, QUICK_SINGLE = 100, 20  # rounds played one at a time, three times
GAME, GAME_ROUNDS, GAME_INPUTS = "greedy adversary", 80, 5
PLAYERS = ("SelfTuning", "KernelAWV", "KernelRidge", "PKAWV, Taylor", "PKAWV, Fourier",
           "NystromAWV", "NystromAWV, ridge", "FrequentKONS", "FOGD", "NOGD")  # fmt: skip
TAYLOR = okl.TaylorFeatures(2)
NOT_DRAWN = "magic04, 4000 rounds", "mushrooms", GAME
SELF = "SelfTuning"
LOOKS = {  # colours as in the other figures; linear learners are pink
    SELF: (BLACK, "*"), "KernelAWV": (BLACK, "o"), "KernelRidge": (BLACK, "s"),
    "PKAWV, Taylor": (BLUE, "v"), "PKAWV, Fourier": (BLUE, "p"),
    "PKAWV, Fourier, half-life 500": (BLUE, "8"),
    "NystromAWV": (GREEN, "^"), "NystromAWV, ridge": (GREEN, "X"),
    "FrequentKONS": (SKY, "1"), "FOGD": (ORANGE, "P"), "NOGD": (GREEN, "<"), "POMDR": (WINE, "D"),
    "LinearAWV": (PINK, "x"), "LinearAWV, half-life 500": (PINK, "+"), "OGD": (PINK, ">"),
}  # fmt: skip
LINEAR = ("LinearAWV", "LinearAWV, half-life 500", "OGD")  # which get an intercept
ABOUT = {
    "classification": "mistakes (%)",
    "classes": "mistakes (%)",
    "regression": "squared error / variance",
    "game": "regret",
}

COLUMNS = (
    "stream", "kind", "n", "d", "learner", "setting", "measure", "error",
    "microseconds, bulk", "microseconds, one at a time", "megabytes",
)  # fmt: skip


def streams(quick: bool, own: str = ""):
    if own:
        yield load_stream(own, 0)
        return
    drifting = [drift("abrupt", linear, "regression")[0],
                drift("abrupt", curved, "classification")[0]]  # fmt: skip
    magic = load_stream("magic04", 0)
    short = magic.first(4000, "magic04, 4000 rounds")
    if quick:
        yield from (stream.first(QUICK_ROUNDS) for stream in (short, drifting[0]))
        return
    yield from (short, magic)
    yield from (load_stream(name, 0) for name in available(("mushrooms", "casp", "ijcnn1")))
    if not missing_libraries("scikit-learn"):
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        yield Stream("digits, 10 classes", X[order], y[order], "classes")
    yield from drifting


def ridge_learners(kernel) -> dict:
    fourier, atoms = okl.FourierFeatures(FREQUENCIES), {"max_size": ATOMS}
    return {
        "PKAWV, Fourier": okl.PKAWV(fourier),
        "PKAWV, Fourier, half-life 500": okl.PKAWV(fourier, **FORGET),
        "NystromAWV": okl.NystromAWV(kernel, **atoms),
        "NystromAWV, ridge": okl.NystromAWV(kernel, forecaster="ridge", **atoms),
        "PKAWV, Taylor": okl.PKAWV(TAYLOR),
        "KernelAWV": okl.KernelAWV(kernel),
        "KernelRidge": okl.KernelRidge(kernel),
    }


def gradient_learners(kernel, loss: str) -> dict:
    return {"FOGD": okl.FOGD(n_frequencies=FREQUENCIES, loss=loss),
            "NOGD": okl.NOGD(kernel, budget=ATOMS, loss=loss)}  # fmt: skip


def grid(stream: Stream, rows: int):
    (n, d), signs, kernel = stream.X.shape, stream.kind != "regression", okl.Gaussian()
    loss, smooth = ("hinge", "logistic") if signs else ("squared", "squared")
    sigmas = [width * d**0.5 for width in WIDTHS]
    # It asks for a bound on the labels, which is taken to be known.
    C = 1.0 if signs else float(np.abs(scale_by_first_rows("NOGD", stream, rows)[1]).max())
    linear = {"LinearAWV": okl.LinearAWV(), "LinearAWV, half-life 500": okl.LinearAWV(**FORGET)}
    found = {
        SELF: {"": okl.SelfTuning},
        **tuned(ridge_learners(kernel), sigma=sigmas, lam=LAMS),
        **tuned({"FrequentKONS": okl.FrequentKONS(kernel, C=C)}, sigma=sigmas, alpha=ALPHAS),
        **tuned(gradient_learners(kernel, loss), sigma=sigmas, eta=STEPS),
        **tuned({"POMDR": okl.POMDR(kernel, budget=ATOMS, horizon=n)}, sigma=sigmas),
        **tuned(linear, lam=LAMS),
        **tuned({"OGD": okl.OGD(loss=smooth)}, eta=LINEAR_STEPS),
    }
    absent = {
        "PKAWV, Taylor": TAYLOR.size(d) > MOST_MONOMIALS,
        "KernelAWV": n > MOST_EXACT,
        "KernelRidge": n > MOST_EXACT,
        "POMDR": not signs,
    }
    return {label: settings for label, settings in found.items() if not absent.get(label)}


def scale_by_first_rows(label: str, stream: Stream, rows: int):
    """Return inputs and labels in the scale that the first rows tell; raw for self-tuning."""
    X, y = stream.X, stream.y
    if label != SELF:
        X = okl.Standardizer().partial_fit(X[:rows]).transform(X)
        if stream.kind == "regression":
            y = (y - y[:rows].mean()) / y[:rows].std()
    if label in LINEAR:
        X = np.column_stack([X, np.ones(len(X))])
    return X, y


def make_learner(make, stream: Stream):
    learner = make()
    return okl.OneVsRest(learner, np.unique(stream.y)) if stream.kind == "classes" else learner


def error(run, y, first: int) -> float:
    if run is None or not np.isfinite(run.predictions).all():
        return np.inf
    if run.mistakes is not None:
        return 100.0 * float(run.mistakes[first:].mean())
    return float(np.square(run.predictions - y)[first:].mean() / y[first:].var())


def play(label: str, settings, stream: Stream, rows: int, one: int):
    """Return the row of a learner on a stream: error, times and memory with the best setting."""
    X, y = scale_by_first_rows(label, stream, rows)
    scores = {}
    for setting, make in settings.items():
        run = run_unless_overflow(make_learner(make, stream), X[:rows], y[:rows])
        scores[setting] = error(run, y[:rows], 0)
    chosen = min(scores, key=scores.__getitem__)
    learner = make_learner(settings[chosen], stream)
    start = time.process_time()
    run = run_unless_overflow(learner, X, y)
    seconds = time.process_time() - start
    if run is None:
        return None
    size = len(pickle.dumps(learner)) / 1e6
    lots = zip(np.split(X[-4 * one :], 4), np.split(y[-4 * one :], 4), strict=True)
    plays = [partial(play_one_by_one, learner, *lot) for lot in lots]
    single = min([timed(play, time.process_time) for play in plays][1:]) / one  # the first compiles
    costs = (f"{v:.3g}" for v in (1e6 * seconds / len(y), 1e6 * single, size))
    head = stream.name, stream.kind, *stream.X.shape, label, chosen, ABOUT[stream.kind]
    return dict(zip(COLUMNS, (*head, f"{error(run, y, rows):.4g}", *costs), strict=True))


def game(rounds: int):
    kernel, d = okl.Gaussian(1.0), GAME_INPUTS
    first = {SELF: okl.SelfTuning()} | gradient_learners(kernel, "squared")
    second = {"FrequentKONS": okl.FrequentKONS(kernel)} | ridge_learners(kernel)
    for label in PLAYERS:
        played = okl.adversary.greedy((first | second)[label], kernel, rounds, d)
        penalty = "alpha" if "KONS" in label else "lam"
        setting = f"sigma=1 {penalty}=1" if label in second else ""
        head = GAME, "game", rounds, d, label, setting, ABOUT["game"]
        yield dict(zip(COLUMNS, (*head, f"{played.regret[-1]:.4g}", "", "", ""), strict=True))


def draw(rows):
    """Draw error by time, a panel for each stream; the csv has the others, and the game."""
    played = dict.fromkeys(row["stream"] for row in rows)
    names = [name for name in played if name not in NOT_DRAWN] or list(played)  # if cut short
    figure, axes = panels(len(names), 3, row_height=2.3 if len(names) > 1 else 3.6)
    for ax, name in zip(axes.flat, names, strict=False):
        here = [row for row in rows if row["stream"] == name]
        for row in sorted(here, key=lambda row: list(LOOKS).index(row["learner"])):
            colour, marker = LOOKS[row["learner"]]
            style = {"color": colour, "markersize": 7.0 if marker in "*1" else 4.5}
            label = row["learner"].replace("half-life 500", "forgets")
            point = float(row["microseconds, bulk"]), float(row["error"])
            ax.plot(*point, marker, linestyle="", mfc="none", label=label, **style)
        ax.set(ymargin=0.08, xlim=(0.015, 1e4))
        below = "time of a round in bulk (\N{MICRO SIGN}s)" if ax in axes[-1] else ""
        what, title = here[0]["measure"], f"{name}, d = {here[0]['d']}"
        okl.plots.tidy(ax, below, what, "", log="x", font=okl.plots.FONT - 1, small=1.0)
        ax.set_title(title.replace("abrupt drift", "drift"), fontsize=okl.plots.FONT - 0.5)
    return figure


def measure(args) -> list[dict]:
    one, found = QUICK_SINGLE if args.quick else SINGLE, []
    start = time.process_time()
    for stream in streams(args.quick, load_own(args) if args.data else ""):
        rows = min(CHOOSING_ROWS, len(stream.y) // (8 if args.quick else 4))
        for label, settings in tqdm(grid(stream, rows).items(), desc=stream.name, disable=None):
            row = play(label, settings, stream, rows, one)
            found += [row] if row else []
            if time.process_time() - start > args.limit:
                leave_out(f"stopped after {args.limit:g} s")
                return found
    return found if args.data else [*found, *game(20 if args.quick else GAME_ROUNDS)]


if __name__ == "__main__":
    options, shown = {"own": True}, {"legend": 3, "but": ("measure",)}
    run_script(__doc__, measure, draw, (600.0, 20.0), options=options, **shown)
