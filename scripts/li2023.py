"""The experiments behind Tables 2 to 5 of Li and Liao (2023)."""

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache

import numpy as np
from common import arguments, at_hand, plain_ticks, print_table, save, some
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from oklnumba.learners.learner import Learner

PERMUTATIONS, QUICK_PERMUTATIONS = 10, 2
TUNING_SEED = 1000  # of the permutation on which the steps are tuned, not one of those of the table
EXPONENTS = range(-3, 4)  # steps 10^(-3..3) / sqrt(T)
QUICK_ROWS = 20_000  # --quick leaves out larger sets
LIMIT, QUICK_LIMIT = 600.0, 60.0  # seconds
ALGORITHMS = ("FOGD", "NOGD", "SkeGD", "B(AO)2KS", "POMDR")


@dataclass(frozen=True)
class Case:
    """One data set with the settings that the paper gives for it."""

    name: str
    sigma: float
    zeta: float
    rate_scale: float = 0.1
    scale: tuple[float, float] | None = None
    instead_of: str = ""  # what the paper has, where ours is another set

    @property
    def title(self) -> str:
        return f"{self.name}, sigma = {self.sigma:g}"


# Scaled to [0, 1]: so t-bar, and the values for sigma = 4, are those of the paper; not in [-1, 1].
MAGIC04 = Case("magic04", 0.5, 2 / 3, scale=(0.0, 1.0))
W8A = Case("w8a", 4.0, 1 / 2)
MUSHROOMS = Case("mushrooms", 2.0, 2 / 3)
MNIST12 = Case("mnist12", 4.0, 2 / 3)
A9A = Case("a9a", 4.0, 1 / 2, rate_scale=0.05)
IJCNN1 = Case("ijcnn1", 4.0, 2 / 3)
SUSY = Case("susy30k", 4.0, 2 / 3, instead_of="50,000 rows of SUSY")


@dataclass(frozen=True)
class Published:
    """A published value: mean and deviation of the mistake ratio (%) and of the time (s)."""

    mistakes: float
    deviation: float
    seconds: float


@cache
def data(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, scaled as in the files of the paper's authors, and labels."""
    loaded = okl.datasets.load(case.name, scale=case.scale)
    if case.name == "mnist12":  # the paper's 12,700 rows, pixels in [0, 1]
        return loaded.X[: loaded.n_train] / 255.0, loaded.y[: loaded.n_train]
    return loaded.X, loaded.y


def permuted(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = data(case)
    order = np.random.default_rng(seed).permutation(len(y))
    return np.ascontiguousarray(X[order]), y[order]


def make(algorithm: str, case: Case, T: int, seed: int, exponent: int = 0) -> Learner:
    """Return an algorithm with the paper's settings and the step 10^exponent / sqrt(T)."""
    kernel, eta = okl.Gaussian(case.sigma), 10.0**exponent / T**0.5
    if algorithm == "FOGD":
        return okl.FOGD(eta=eta, sigma=case.sigma, n_frequencies=400, seed=seed)
    if algorithm == "NOGD":
        return okl.NOGD(kernel, eta=eta, budget=400, rank=80)
    if algorithm == "SkeGD":
        return okl.SkeGD(kernel, eta=eta, period=round(0.3 * T), seed=seed)
    if algorithm == "B(AO)2KS":
        return okl.BAO2KS([kernel], eta=eta, radius=30.0, beta=6.0, horizon=T, seed=seed)
    return okl.POMDR(kernel, zeta=case.zeta, horizon=T, rate_scale=case.rate_scale)


def play(algorithm: str, case: Case, seed: int, exponent: int, limit: float) -> tuple:
    """Return mistake ratio (%), seconds and diary (of POMDR) of a run; None beyond the limit."""
    X, y = permuted(case, seed)
    learner = make(algorithm, case, len(y), seed, exponent)
    run = okl.run(learner, X, y, time_limit=limit)
    if not run.finished:
        return None
    return 100.0 * run.mistake_rate, run.seconds, getattr(learner, "diary", None)


def play_all(jobs: list[tuple], what: str, limit: float) -> dict[tuple, tuple]:
    """Play jobs (algorithm, case, seed, exponent) in threads: the loops leave the GIL."""
    for algorithm, case in {job[:2]: None for job in jobs}:  # compiled before the clock runs
        X, y = permuted(case, 0)
        okl.run(make(algorithm, case, len(y), 0), X[:1500], y[:1500])
    results = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = {pool.submit(play, *job, limit): job for job in jobs}
        for done in tqdm(as_completed(waiting), total=len(jobs), desc=what, unit=" run"):
            results[waiting[done]] = done.result()
    return results


def tune(cases: list[Case], limit: float) -> dict[tuple[str, Case], int]:
    """Return the best exponent of the step of each baseline, on a permutation of its own."""
    jobs = [
        (algorithm, case, TUNING_SEED, exponent)
        for case in cases
        for algorithm in ALGORITHMS[:-1]
        for exponent in EXPONENTS
    ]
    results = play_all(jobs, "steps", limit)
    best = {}
    for algorithm, case in {job[:2]: None for job in jobs}:
        rates = {e: results[algorithm, case, TUNING_SEED, e] for e in EXPONENTS}
        finished = {e: r[0] for e, r in rates.items() if r is not None}
        best[algorithm, case] = min(finished, key=finished.__getitem__) if finished else 0
    return best


def begin(doc: str, cases: list[Case]) -> tuple:
    """Return the options, the cases whose data is here (small ones if quick), and if any lacks."""
    args = arguments(doc, LIMIT, QUICK_LIMIT)
    names = at_hand(case.name for case in cases)
    here = [case for case in cases if case.name in names]
    partial = len(here) < len(cases)
    if args.quick:
        here = some([case for case in here if len(data(case)[1]) <= QUICK_ROWS])
    for case in here:
        if case.instead_of:
            print(f"{case.name} stands for {case.instead_of}, which could not be had")
    return args, here, partial


def spread(values: list[float]) -> tuple[float, float]:
    """Return mean and deviation (that of a sample, as R's sd)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def compare(doc: str, stem: str, published: dict[Case, dict[str, Published]]) -> None:
    """Run a script of Table 2 or 4: mistake ratios and times of all algorithms."""
    args, cases, partial = begin(doc, list(published))
    exponents = tune(cases, args.limit)
    seeds = range(QUICK_PERMUTATIONS if args.quick else PERMUTATIONS)
    jobs = [
        (algorithm, case, seed, exponents.get((algorithm, case), 0))
        for case in cases
        for algorithm in ALGORITHMS
        for seed in seeds
    ]
    results = play_all(jobs, "permutations", args.limit)
    rows, table = [], []
    for case in cases:
        for algorithm in ALGORITHMS:
            exponent = exponents.get((algorithm, case))
            runs = [results[algorithm, case, seed, exponent or 0] for seed in seeds]
            finished = [run for run in runs if run is not None]
            if not finished:
                print(f"{case.name}, {algorithm}: no run within {args.limit:g} s")
                continue
            mistakes = spread([run[0] for run in finished])
            seconds = spread([run[1] for run in finished])
            theirs = published[case][algorithm]
            rows.append(
                {
                    "dataset": case.name,
                    "sigma": case.sigma,
                    "algorithm": algorithm,
                    "step": "" if exponent is None else f"1e{exponent}/sqrt(T)",
                    "permutations": len(finished),
                    "mistakes": f"{mistakes[0]:.3f}",
                    "mistakes_sd": f"{mistakes[1]:.3f}",
                    "mistakes_published": theirs.mistakes,
                    "mistakes_sd_published": theirs.deviation,
                    "seconds": f"{seconds[0]:.4g}",
                    "seconds_sd": f"{seconds[1]:.2g}",
                    "seconds_published": theirs.seconds,
                }
            )
            table.append(
                {
                    "data": case.name,
                    "algorithm": algorithm,
                    "step": rows[-1]["step"] or "-",
                    "mistakes (%)": f"{mistakes[0]:.2f} +- {mistakes[1]:.2f}",
                    "published": f"{theirs.mistakes:.2f} +- {theirs.deviation:.2f}",
                    "difference": f"{mistakes[0] - theirs.mistakes:+.2f}",
                    "time (s)": f"{seconds[0]:.3g}",
                    "published (s)": f"{theirs.seconds:.2f}",
                }
            )
    save(draw_comparison(cases, rows), rows, args, stem, partial)
    print(f"{len(seeds)} permutations; steps tuned on another one")
    print_table(table)
    for case in cases:
        own = [row for row in rows if row["dataset"] == case.name]
        for whose, key in (("ours", "mistakes"), ("published", "mistakes_published")):
            order = sorted(own, key=lambda row: float(row[key]))
            print(f"{case.name}, {whose}: " + " < ".join(row["algorithm"] for row in order))


def draw_comparison(cases: list[Case], rows: list[dict]):
    """Draw mistake ratios (above) and times (below), published beside ours."""
    figure, axes = plots.figure(rows=2, columns=len(cases), width=7.2, row_height=2.5)
    for column, case in enumerate(cases):
        own = [row for row in rows if row["dataset"] == case.name]
        places = np.arange(len(own))
        for ax, key, label in (
            (axes[0, column], "mistakes", "mistake ratio (%)"),
            (axes[1, column], "seconds", "time of a run (s)"),
        ):
            ours = [float(row[key]) for row in own]
            theirs = [float(row[f"{key}_published"]) for row in own]
            bars = [float(row[f"{key}_sd"]) for row in own]
            ax.errorbar(places - 0.12, ours, bars, fmt="o", color=plots.COLOURS[2], markersize=4,
                        label="ours (mean and deviation)")  # fmt: skip
            ax.plot(places + 0.12, theirs, "D", color=plots.COLOURS[1], markersize=4,
                    markerfacecolor="white", label="published")  # fmt: skip
            ax.set_yscale("log")
            ax.set_xticks(places, [row["algorithm"] for row in own], rotation=60, ha="right")
            ax.tick_params(labelsize=plots.FONT - 1)
            ax.grid(True, axis="y", which="major", linewidth=0.4, alpha=0.5)
            plain_ticks(ax, [*ours, *theirs])
            if column == 0:
                ax.set_ylabel(label, fontsize=plots.FONT)
        axes[0, column].set_xticklabels([])
        plots.title(axes[0, column], case.title)
    plots.shared_legend(figure, columns=2)
    return figure


@dataclass(frozen=True)
class PublishedDiary:
    """Published mistake ratio (%), A_T (the sum of delta) and t-bar (None: infinity)."""

    mistakes: float
    alignment: float
    switch_round: float | None


def widths(doc: str, stem: str, published: dict[Case, PublishedDiary]) -> None:
    """Run a script of Table 3 or 5: POMDR at several kernel widths."""
    args, cases, partial = begin(doc, list(published))
    seeds = range(QUICK_PERMUTATIONS if args.quick else PERMUTATIONS)
    jobs = [("POMDR", case, seed, 0) for case in cases for seed in seeds]
    results = play_all(jobs, "permutations", args.limit)
    rows, table = [], []
    for case in cases:
        runs = [results["POMDR", case, seed, 0] for seed in seeds]
        runs = [run for run in runs if run is not None]
        if not runs:
            print(f"{case.title}: no run within {args.limit:g} s")
            continue
        mistakes = spread([run[0] for run in runs])
        alignment = spread([run[2].alignment for run in runs])
        switches = [run[2].switch_round for run in runs if run[2].switch_round is not None]
        switch = f"{np.mean(switches):.0f}" if len(switches) > len(runs) / 2 else "inf"
        theirs = published[case]
        their_switch = "inf" if theirs.switch_round is None else f"{theirs.switch_round:g}"
        X, y = permuted(case, 0)
        exact = okl.theory.kernel_alignment(okl.Gaussian(case.sigma), X, y)
        sizes = np.mean([run[2].size for run in runs])
        rows.append(
            {
                "dataset": case.name,
                "sigma": case.sigma,
                "permutations": len(runs),
                "mistakes": f"{mistakes[0]:.3f}",
                "mistakes_sd": f"{mistakes[1]:.3f}",
                "mistakes_published": theirs.mistakes,
                "sum_delta": f"{alignment[0]:.1f}",
                "A_T_published": theirs.alignment,
                "A_T_exact": f"{exact:.1f}",
                "t_bar": switch,
                "switched": f"{len(switches)}/{len(runs)}",
                "t_bar_published": their_switch,
                "size": f"{sizes:.0f}",
            }
        )
        table.append(
            {
                "data": case.name,
                "sigma": f"{case.sigma:g}",
                "mistakes (%)": f"{mistakes[0]:.2f}",
                "published": f"{theirs.mistakes:.2f}",
                "sum of delta": f"{alignment[0]:.0f}",
                "its published value": f"{theirs.alignment:g}",
                "exact A_T": f"{exact:.0f}",
                "t-bar": switch,
                "published ": their_switch,
            }
        )
    save(draw_widths(rows), rows, args, stem, partial)
    print_table(table)


def draw_widths(rows: list[dict]):
    """Draw mistakes, A_T and t-bar of each case, published beside ours."""
    figure, axes = plots.figure(rows=1, columns=3, width=7.2, row_height=3.0)
    places = np.arange(len(rows))
    names = [f"{row['dataset']}, {row['sigma']:g}" for row in rows]
    for ax, ours, theirs, label in (
        (axes[0, 0], "mistakes", "mistakes_published", "mistake ratio (%)"),
        (axes[0, 1], "sum_delta", "A_T_published", "kernel alignment"),
        (axes[0, 2], "t_bar", "t_bar_published", "t-bar, first round of OMDR"),
    ):
        values = [float(row[key]) for row in rows for key in (ours, theirs)]
        finite = [v for v in values if np.isfinite(v)]
        top = 4 * max(finite)  # where infinity is drawn

        def shown(key, top=top):
            return [min(float(row[key]), top) for row in rows]

        ax.plot(shown(ours), places + 0.12, "o", color=plots.COLOURS[2], markersize=4,
                label="ours (A_T: sum of delta)")  # fmt: skip
        ax.plot(shown(theirs), places - 0.12, "D", color=plots.COLOURS[1], markersize=4,
                markerfacecolor="white", label="published")  # fmt: skip
        if ours == "sum_delta":
            ax.plot(shown("A_T_exact"), places, "x", color=plots.COLOURS[0], markersize=5,
                    label="exact A_T (ours)")  # fmt: skip
        ax.set_xscale("log")
        if len(finite) < len(values):
            ax.axvline(top, color="grey", linewidth=0.8, linestyle=":")
            ax.annotate("infinite", (top, len(rows) - 0.55), fontsize=plots.FONT - 1.5, ha="right",
                        xytext=(-3, 0), textcoords="offset points")  # fmt: skip
        ax.set_yticks(places, names if ax is axes[0, 0] else [])
        ax.set_ylim(-0.5, len(rows) - 0.3)
        ax.tick_params(labelsize=plots.FONT - 1)
        ax.set_xlabel(label, fontsize=plots.FONT)
        ax.grid(True, axis="x", linewidth=0.4, alpha=0.5)
    axes[0, 0].set_ylabel("data set, sigma", fontsize=plots.FONT)
    plots.shared_legend(figure, columns=3)
    return figure
