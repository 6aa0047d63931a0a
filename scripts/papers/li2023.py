"""The experiments behind Tables 2 to 5 of Li and Liao (2023)."""

from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import signature
from itertools import product

import numpy as np

import oklnumba as okl
from scripts import common
from scripts.common import publish
from scripts.looks import BLACK, BLUE

PERMUTATIONS, QUICK_PERMUTATIONS = 10, 2
TUNING_SEED = 1000  # of the permutation on which steps are tuned, not one of those of the table
EXPONENTS = range(-3, 4)  # steps 10^(-3..3) / sqrt(T)
WIDTHS = tuple(2.0**k for k in range(-2, 7))
BUDGET, RANK = 400, 80  # of NOGD
DRAW_SEED = 2023  # of rows drawn from a larger file
QUICK_ROWS = 20_000  # --quick leaves out larger sets
LIMIT, QUICK_LIMIT = 600.0, 60.0  # seconds
ALGORITHMS = ("FOGD", "NOGD", "SkeGD", "B(AO)2KS", "POMDR")
RELEASED = "NOGD, as released"
LINES = (*ALGORITHMS[:2], RELEASED, *ALGORITHMS[2:])  # of Tables 2 and 4


@dataclass(frozen=True)
class Case:
    name: str
    sigma: float
    zeta: float
    rate_scale: float = 0.1
    scale: tuple[float, float] | None = None
    rows: int = 0  # drawn from the file; 0: all
    instead_of: str = ""  # what the paper has, where ours is another set


# Scaled to [0, 1]: so t-bar, and the values for sigma = 4, are those of the paper; not in [-1, 1].
MAGIC04 = Case("magic04", 0.5, 2 / 3, scale=(0.0, 1.0))
W8A = Case("w8a", 4.0, 1 / 2)
MUSHROOMS = Case("mushrooms", 2.0, 2 / 3)
MNIST12 = Case("mnist12", 4.0, 2 / 3)
A9A = Case("a9a", 4.0, 1 / 2, rate_scale=0.05)
IJCNN1 = Case("ijcnn1", 4.0, 2 / 3)


def susy() -> Case:
    """Return SUSY: 50,000 rows of the full file if it is here, else the 30,000 of susy30k."""
    if okl.datasets.found("susy"):
        return Case("susy", 4.0, 2 / 3, rows=50_000)
    return Case("susy30k", 4.0, 2 / 3, instead_of="50,000 rows of SUSY")


CASES = (MAGIC04, W8A, MUSHROOMS, MNIST12, A9A, IJCNN1, susy())  # of Tables 2 and 4


def published(table: int, case: Case):
    """Return what a table of the paper has of a case, by algorithm."""
    where = str(table), case.name.removesuffix("30k"), f"{case.sigma:g}"
    return {row["algorithm"]: row for row in common.published_rows("li2023")
            if (row["table"], row["dataset"], row["sigma"]) == where}  # fmt: skip


@cache
def data(case: Case):
    """Return inputs, scaled as in the files of the paper's authors, and labels."""
    loaded = common.load(case.name, scale=case.scale)
    if case.name == "mnist12":  # the paper's 12,700 rows, pixels in [0, 1]
        return loaded.X[: loaded.n_train] / 255.0, loaded.y[: loaded.n_train]
    if case.rows:
        rng = np.random.default_rng(DRAW_SEED)
        drawn = rng.choice(len(loaded.y), case.rows, replace=False)
        return loaded.X[drawn], loaded.y[drawn]
    return loaded.X, loaded.y


def permute(case: Case, seed: int):
    X, y = data(case)
    order = np.random.default_rng(seed).permutation(len(y))
    return np.ascontiguousarray(X[order]), y[order]


def learners(case: Case):
    """Return the algorithms with the paper's settings and the step 10^exponent / sqrt(T)."""
    return {
        "FOGD": lambda T, kernel, seed, exponent: okl.FOGD(
            eta=10.0**exponent / T**0.5, sigma=kernel.sigma, n_frequencies=400, seed=seed),
        "NOGD": lambda T, kernel, exponent: okl.NOGD(
            kernel, eta=10.0**exponent / T**0.5, budget=BUDGET, rank=RANK),
        "SkeGD": lambda T, kernel, seed, exponent: okl.SkeGD(
            kernel, eta=10.0**exponent / T**0.5, period=round(0.3 * T), seed=seed),
        "B(AO)2KS": lambda T, kernel, seed, exponent: okl.BAO2KS(
            [kernel], eta=10.0**exponent / T**0.5, radius=30.0, beta=6.0, horizon=T, seed=seed),
        "POMDR": lambda T, kernel: okl.POMDR(
            kernel, zeta=case.zeta, horizon=T, rate_scale=case.rate_scale),
    }  # fmt: skip


def play(case: Case, args, seeds, **options):
    """Play a case; ``options`` are those of ``okl.sweep``."""
    options = {"learners": learners(case), "kernel": okl.Gaussian(case.sigma)} | options
    found = common.sweep(
        data={case.name: data(case)}, permutations=seeds, limit=args.limit, **options
    )
    return found.select(finished=True)


def tune_widths(case: Case, args, names=ALGORITHMS):
    """Return, by algorithm, the best width of WIDTHS and exponent (None: no step) together."""
    settings, lines = {}, {}
    for name in names:
        make = learners(case)[name]
        steps = EXPONENTS if "exponent" in signature(make).parameters else [None]
        settings[name] = list(product(WIDTHS, steps))
        lines[name] = [with_setting(make, *setting) for setting in settings[name]]
    found = play(case, args, [TUNING_SEED], learners=lines)
    best = {}
    for name in names:
        runs = found.select(learner=name)
        if len(runs):
            least = min(runs, key=lambda row: row["mistakes"])
            best[name] = settings[name][least["setting"]]
    return best


def with_setting(make, width: float, exponent):
    given = {} if exponent is None else {"exponent": exponent}
    return partial(make, kernel=okl.Gaussian(width), **given)


def nogd_as_released(X, y, sigma: float):
    """Return the mistakes, round by round, of NOGD as the authors' NOGD.R plays it.

    It differs from Lu et al. (2016), whom ``okl.NOGD`` follows, in these: all of the first BUDGET
    examples are stored, with a loss or without; the last of them is played again on the features;
    with K = V D V' these start from the first entries of D^(1/2) V a, where D^(1/2) V' a is the
    function so far. The step is 100 / sqrt(T). The first round is a mistake, and 0 a forecast of 1.
    """
    eta, kernel, atoms = 100.0 / len(y) ** 0.5, okl.Gaussian(sigma), X[:BUDGET]
    K, a = kernel(atoms), eta * y[:BUDGET]
    V, d, _ = np.linalg.svd(K)
    w = (np.sqrt(d) * (V @ a))[:RANK]
    wrong = np.zeros(len(y), dtype=bool)
    wrong[:BUDGET] = (np.tril(K, -1) @ a >= 0.0) != (y[:BUDGET] > 0.0)
    wrong[0] = True
    for first in range(BUDGET - 1, len(y), 5000):
        block = slice(first, first + 5000)
        Z = kernel(X[block], atoms) @ (V[:, :RANK] / np.sqrt(d[:RANK]))
        for t, z in enumerate(Z, first):
            forecast = w @ z
            if y[t] * forecast < 1.0:
                w = w + eta * y[t] * z
            wrong[t] |= (forecast >= 0.0) != (y[t] > 0.0)
    return wrong


def begin(doc: str, cases):
    """Return the options, and the cases whose data is here (small ones if quick)."""
    args = common.parse_args(doc, LIMIT, QUICK_LIMIT, own=True)
    if args.data:
        cases = [Case(common.load_own(args), args.sigma, 2 / 3, scale=(-1.0, 1.0))]
    names = {row["dataset"] for row in args.rows} or common.available(case.name for case in cases)
    here = [case for case in cases if case.name in names]
    if args.quick and not args.rows:
        small = [case for case in here if len(data(case)[1]) <= QUICK_ROWS]
        here = common.exit_if_empty(small)
    args.seeds = range(QUICK_PERMUTATIONS if args.quick else PERMUTATIONS)
    for case in here:
        if case.instead_of:
            print(f"{case.name} stands for {case.instead_of}, which could not be had")
    return args, here


def mean_and_sd(name: str, values, form: str = ".3f", sd_form: str = "") -> dict:
    """Return texts of mean and deviation (that of a sample, as R's sd), empty without values."""
    if not len(values):
        return {name: "", f"{name}_sd": ""}
    sd = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return {name: f"{np.mean(values):{form}}", f"{name}_sd": f"{sd:{sd_form or form}}"}


def compare(doc, table: int, cases) -> None:
    args, cases = begin(doc, cases)
    rows = list(args.rows)
    for case in () if rows else cases:
        with common.cpu_clock():  # one at a time, steps tuned on another permutation
            results = play(case, args, args.seeds, tune={"exponent": EXPONENTS}, n_jobs=1)
        chosen = {row["learner"]: row["chosen"] for row in results if row["chosen"]}
        exponents = {name: int(text.removeprefix("exponent=")) for name, text in chosen.items()}
        best = tune_widths(case, args)
        lines = {name: with_setting(learners(case)[name], *best[name]) for name in best}
        tuned_runs = play(case, args, args.seeds, learners=lines)
        for algorithm in LINES:
            runs, released = results.select(learner=algorithm), algorithm == RELEASED
            ratios = [100.0 * row["mistakes"] for row in runs]
            if released:  # in plain NumPy: its time says nothing
                streams = [permute(case, seed) for seed in args.seeds]
                ratios = [100.0 * nogd_as_released(*xy, case.sigma).mean() for xy in streams]
            if not ratios:
                continue
            theirs = published(table, case).get("NOGD" if released else algorithm)
            theirs = theirs or dict.fromkeys(("mistakes", "mistakes_sd", "seconds"), "")
            step = f"1e{2 if released else exponents.get(algorithm)}/sqrt(T)"
            tuned = tuned_runs.select(learner=algorithm)
            sigma, exponent = best[algorithm] if len(tuned) else ("", None)
            rows.append({
                "dataset": case.name, "sigma": case.sigma, "algorithm": algorithm,
                "step": "" if algorithm == "POMDR" else step, "permutations": len(ratios),
                **mean_and_sd("mistakes", ratios), "mistakes_published": theirs["mistakes"],
                "mistakes_sd_published": theirs["mistakes_sd"],
                **mean_and_sd("seconds", [row["seconds"] for row in runs], ".4g", ".2g"),
                "seconds_published": theirs["seconds"], "tuned_sigma": sigma,
                "tuned_step": "" if exponent is None else f"1e{exponent}/sqrt(T)",
                **mean_and_sd("mistakes_tuned", [100.0 * row["mistakes"] for row in tuned]),
            })  # fmt: skip
    publish(draw_comparison(cases, rows), rows, args, legend=3, but=("sigma", "permutations"))


OURS = {"color": BLUE, "marker": "o", "linestyle": "", "markersize": 4}
TUNED = {"color": BLUE, "marker": "x", "linestyle": "", "markersize": 5}
THEIRS = {"color": BLACK, "marker": "D", "linestyle": "", "markersize": 4, "mfc": "white"}


def draw_comparison(cases, rows):
    """Draw mistakes above, seconds below: ours, published, and mistakes at our best width."""
    figure, axes = okl.plots.figure(rows=2, columns=len(cases), row_height=2.4)
    for column, case in zip(axes.T, cases, strict=True):
        own = {row["algorithm"]: row for row in rows if row["dataset"] == case.name}
        names = [name for name in own if name != RELEASED]
        places = np.arange(len(names))

        def values(key, names=names, own=own):
            return np.array([float(own[name].get(key) or "nan") for name in names])

        for ax, key in zip(column, ("mistakes", "seconds"), strict=True):
            for end, label, style, aside in (
                ("", "ours", OURS, -0.12),
                ("_published", "published", THEIRS, 0.12),
            ):
                bars = values(f"{key}{end}"), values(f"{key}_sd{end}")
                if np.isnan(bars[0]).all():  # nobody has published on data of your own
                    continue
                ax.errorbar(places + aside, bars[0], np.nan_to_num(bars[1]), label=label, **style)
            ax.set_xticks(places, names, rotation=60, ha="right")
        ax = column[0]
        tuned = values("mistakes_tuned")
        ax.plot(places - 0.12, tuned, label="ours, width tuned", **TUNED)
        if RELEASED in own:
            at = names.index("NOGD") - 0.12
            bars = [values(key, [RELEASED]) for key in ("mistakes", "mistakes_sd")]
            square = OURS | {"marker": "s", "mfc": "none"}
            ax.errorbar(at, *bars, label="ours, NOGD as released", **square)
        ax.set_xticklabels([])
        title = f"{case.name}, sigma = {case.sigma:g}"
        for ax, text, above in zip(column, ("mistakes (%)", "time (s)"), (title, ""), strict=True):
            okl.plots.tidy(ax, "", text if ax in axes[:, 0] else "", above, log="y", small=1.0)
            ax.grid(False, axis="x")
    return figure


def read_diary(learner, run):
    diary = learner.diary
    return {
        "alignment": diary.alignment, "switch_round": diary.switch_round, "last_size": diary.size
    }  # fmt: skip


def widths(doc, table: int, cases) -> None:
    args, cases = begin(doc, cases)
    rows = args.rows or measure_widths(table, cases, args)
    publish(draw_widths(rows), rows, args, legend=3)


def measure_widths(table: int, cases, args) -> list[dict]:
    rows, given, tuned = [], {(case.name, case.sigma) for case in cases}, {}
    for case in cases:
        if case.name not in tuned:
            tuned[case.name] = tune_widths(case, args, ["POMDR"])["POMDR"][0]
    for case in list(cases):  # the tuned width behind those of the table
        if case.name in tuned and (case.name, tuned[case.name]) not in given:
            given.add((case.name, tuned[case.name]))
            cases.append(replace(case, sigma=tuned[case.name]))
    for case in sorted(cases, key=lambda case: list(tuned).index(case.name)):
        only = {"POMDR": learners(case)["POMDR"]}
        runs = play(case, args, args.seeds, learners=only, measure=read_diary)
        if not len(runs):
            continue
        switches = [row["switch_round"] for row in runs if row["switch_round"] is not None]
        settled = switches if len(switches) > len(runs) / 2 else [np.inf]
        nothing = dict.fromkeys(("mistakes", "alignment", "t_bar"), "")
        theirs = published(table, case).get("POMDR", nothing)
        exact = okl.theory.kernel_alignment(okl.Gaussian(case.sigma), *permute(case, 0))
        rows.append({
            "dataset": case.name, "sigma": case.sigma,
            "tuned": "tuned" if tuned[case.name] == case.sigma else "", "permutations": len(runs),
            **mean_and_sd("mistakes", 100.0 * runs["mistakes"]),
            "mistakes_published": theirs["mistakes"],
            **mean_and_sd("sum_delta", runs["alignment"], ".1f"),
            "A_T_published": theirs["alignment"], "A_T_exact": f"{exact:.1f}",
            **mean_and_sd("t_bar", settled, ".0f"), "switched": f"{len(switches)}/{len(runs)}",
            "t_bar_published": theirs["t_bar"], "size": f"{runs['last_size'].mean():.0f}",
        })  # fmt: skip
    return rows


def draw_widths(rows):
    figure, axes = okl.plots.figure(rows=1, columns=3, row_height=3.0)
    places = np.arange(len(rows))
    names = [f"{row['dataset']}, {row['sigma']:g}{' (tuned)' * bool(row['tuned'])}" for row in rows]
    looks = (
        (0.12, OURS | {"label": "ours (A_T: sum of delta)"}),
        (-0.12, THEIRS | {"label": "published"}),
        (0.0, OURS | {"markersize": 5, "marker": "x", "label": "exact A_T (ours)"}),
    )
    for ax, label, *keys in (
        (axes[0, 0], "mistake ratio (%)", "mistakes", "mistakes_published"),
        (axes[0, 1], "kernel alignment", "sum_delta", "A_T_published", "A_T_exact"),
        (axes[0, 2], "t-bar, first round of OMDR", "t_bar", "t_bar_published"),
    ):
        values = np.array([[float(row[key] or "nan") for row in rows] for key in keys])
        finite = np.isfinite(values)
        top = 4 * values[finite].max()  # where infinity is drawn
        for own, (above, look) in zip(np.minimum(values, top), looks, strict=False):
            ax.plot(own, places + above, **look)
        if np.isinf(values).any():
            ax.axvline(top, color="grey", linewidth=0.8, linestyle=":")
            ax.annotate("infinite", (top, len(rows) - 0.55), (-3, 0), ha="right",
                        fontsize=okl.plots.FONT - 1.5, textcoords="offset points")  # fmt: skip
        ax.set_yticks(places, names if ax is axes[0, 0] else [])
        ax.set_ylim(-0.5, len(rows) - 0.3)
        ylabel = "data set, sigma" if ax is axes[0, 0] else ""
        okl.plots.tidy(ax, label, ylabel, log="x", small=1.0)
    return figure
