"""Error against time: ours, Vowpal Wabbit, scikit-learn and river, tuned with the same effort.

Reproduces: nothing published; mistakes and CPU seconds of learners and peers, each with the best of
    TRIED settings, chosen on one permutation and played on five others. Its page in figures/ says
    what the seconds include.
Missing: peers that are not installed (pip install -e ".[benchmark]"). Slow methods (most of
    river, exact kernels) play 10,000 rows of one permutation; ours play these too, to compare.
Time: 15 minutes of CPU time, whatever --limit says; --quick (3000 rows of magic04): 10 seconds.
Data: ijcnn1 and cod-rna, 50,000 rows of each permutation, inputs standardised over all rows.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from textwrap import fill

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from scripts.benchmarks import rivals
from scripts.benchmarks.rivals import OURS, RIVER, SKLEARN, VW, Batches, Own, Peer, Rows
from scripts.common import available, parse_args, publish, read_csv, write_csv
from scripts.looks import explain, name_points

ROWS, QUICK_ROWS = {"ijcnn1": 50_000, "cod-rna": 50_000}, {"magic04": 3000}
SLOW_ROWS, REHEARSED_BY_SLOW = 10_000, 3000  # of slow peers
SEEDS, QUICK_SEEDS, TUNING_SEED = 5, 2, 1000
TRIED = 6  # settings of each, but of what has none
WARM_ROWS, BATCH, MOST_MONOMIALS = 1500, 500, 300
MOST = 1.5  # times the median of mistakes: what has more is named, not drawn

QUICK = ("OGD, linear", "FOGD, 200 features", "PKAWV, Taylor", "VW, linear",
         "RBFSampler + SGD, 400", "logistic regression")  # fmt: skip


@dataclass(frozen=True)
class Method:
    by: str
    name: str
    makers: dict[str, Callable[[], Peer]]
    slow: bool = False


class Growing(Batches):
    """Batches that grow from 10 to BATCH rows; landmarks come from the first BATCH inputs."""

    rows = None

    def mistakes(self, prepared) -> int:
        X, y = prepared
        self.fit_features(X[:BATCH])
        return sum(super(Growing, self).mistakes((X[a:b], y[a:b])) for a, b in batch_edges(len(y)))


def batch_edges(n: int):
    start, size = 0, 10
    while start < n:
        yield start, min(start + size, n)
        start, size = start + size, min(2 * size if start else size, BATCH)


def method(by, name, make, wrap=lambda peer: peer, slow=False, **lists):
    return Method(by, name, rivals.combinations(make, wrap, **lists), slow)


def ours(d: int):
    """Return the learners of the package; widths of kernels are in proportion to sqrt(d)."""
    width, kernel, smooth = d**0.5, okl.Gaussian(), {"loss": "logistic"}
    three, two = (width / 4, width / 2, width), (width / 2, width)
    degree = max(k for k in (1, 2, 3) if okl.TaylorFeatures(k).size(d) <= MOST_MONOMIALS)
    taylor, fourier = okl.TaylorFeatures(degree), okl.FourierFeatures(200)
    adagrad = okl.WithFeatures(taylor, okl.AdaptiveFTRL("adagrad", **smooth))
    on_features = {"features__sigma": three, "lam": (0.01, 0.1)}
    on_atoms = {"kernel__sigma": three, "lam": (0.01, 0.1)}
    by_steps = {"kernel__sigma": two, "eta": (0.3, 1.0, 3.0)}
    fogd = {"sigma": two, "eta": (0.3, 1.0, 3.0)}

    def own(name: str, learner, ones: bool = False, slow: bool = False, **lists):
        return method(OURS, name, learner, lambda made: Own(made, ones), slow, **lists)

    return [
        own("OGD, linear", okl.OGD(schedule="sqrt", **smooth), True,
            eta=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
        own("LinearAWV", okl.LinearAWV(), True, lam=(0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)),
        own("AdaGrad, Taylor", adagrad, features__sigma=two, learner__eta=(0.2, 0.5, 2.0)),
        own("PKAWV, Taylor", okl.PKAWV(taylor), **on_features),
        own("PKAWV, Fourier", okl.PKAWV(fourier), **on_features),
        own("NystromAWV, 200", okl.NystromAWV(kernel, max_size=200), **on_atoms),
        own("NystromAWV, 400", okl.NystromAWV(kernel, max_size=400), **on_atoms),
        own("FOGD, 200 features", okl.FOGD(n_frequencies=100, **smooth), **fogd),
        own("FOGD, 800 features", okl.FOGD(n_frequencies=400, **smooth), **fogd),
        own("NOGD", okl.NOGD(kernel, budget=200, rank=100, **smooth), **by_steps),
        own("KernelOGD, 400 atoms", okl.KernelOGD(kernel, budget=400, **smooth), **by_steps),
        own("POMDR", okl.POMDR(kernel),
            kernel__sigma=tuple(width * s for s in (0.2, 0.3, 0.5, 0.7, 1.0, 2.0))),
        own("Pros-N-KONS", okl.ProsNKONS(kernel),
            kernel__sigma=(width, 2 * width), mu=(10.0, 100.0, 1000.0)),
        own("SelfTuning", okl.SelfTuning()),
        own("KernelAWV, exact", okl.KernelAWV(kernel), slow=True, **on_atoms),
    ]  # fmt: skip


def wabbits(d: int):
    """Return Vowpal Wabbit with its own updates (adaptive, normalised, invariant), and others."""
    rates, both = (0.5, 2.0, 8.0), ("logistic", "hinge")

    def vw(name: str, options: str, slow: bool = False, **lists) -> Method:
        return method(VW, f"VW, {name}", options.format, rivals.Wabbit, slow, **lists)

    by_loss = {"loss": both, "rate": rates}
    sgd = "--loss_function {loss} -l {rate}"
    return [
        vw("linear", sgd, **by_loss),
        vw("quadratic", f"--interactions :: {sgd}", **by_loss),
        vw("cubic", f"--interactions ::: {sgd}", **by_loss),
        vw("neural net", "--nn {hidden} --loss_function logistic -l {rate}", hidden=(10, 30),
           rate=rates),
        vw("kernel SVM", "--ksvm --kernel rbf --bandwidth {gamma} --l2 {l2}", True,
           gamma=tuple(0.5 / (s * s * d) for s in (0.25, 0.5, 1.0)), l2=(1e-3, 1e-4)),
    ]  # fmt: skip


def sklearns(d: int):
    def on(kind: str, size: int) -> Method:
        make = partial(rivals.on_features, kind, size, batches=Growing)
        return method(SKLEARN, f"{kind} + SGD, {size}", make, sigma=(0.5 * d**0.5, d**0.5),
                      eta=(0.1, 0.3, 1.0))  # fmt: skip

    return [
        method(SKLEARN, "SGD, linear", lambda loss, eta: Growing(
            None, loss=loss, **rivals.sgd_step(eta)),
               loss=("log_loss", "hinge"), eta=(0, 0.01, 0.03)),
        method(SKLEARN, "passive-aggressive", lambda C: Growing(
            None, loss="hinge", penalty=None, learning_rate="pa1", eta0=C),
               C=(1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)),
        on("RBFSampler", 400),
        on("Nystroem", 200),
    ]  # fmt: skip


def rivers(d: int):
    from river import feature_extraction, forest, linear_model, optim, tree

    def sampled(gamma: float, step: float):
        features = feature_extraction.RBFSampler(gamma, n_components=50, seed=0)
        return features | linear_model.LogisticRegression(optim.SGD(step / d))

    return [
        method(RIVER, "logistic regression", rivals.river_logistic, Rows,
               step=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0)),
        method(RIVER, "RBFSampler + logistic", sampled, Rows, True, gamma=(0.3, 1.0),
               step=(0.03, 0.1, 0.3)),
        method(RIVER, "Hoeffding adaptive tree",
               lambda grace, delta: tree.HoeffdingAdaptiveTreeClassifier(
                   grace, delta=delta, seed=0), Rows, True, grace=(50, 200),
               delta=(1e-7, 1e-5, 1e-3)),
        method(RIVER, "adaptive random forest", lambda grace, share: forest.ARFClassifier(
            grace_period=grace, max_features=share, seed=0), Rows, True, grace=(20, 50),
               share=("sqrt", 0.6, None)),
    ]  # fmt: skip


def methods(d: int, quick: bool):
    found = ours(d)
    for library, make in ((VW, wabbits), (SKLEARN, sklearns), (RIVER, rivers)):
        found += make(d) if find_spec(rivals.MODULES[library]) else []
    return [one for one in found if not quick or one.name in QUICK]


def permute(X, y, seed: int, n: int):
    order = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[order], y[order]


def play(make, X, y):
    """Return mistakes (%) and CPU seconds of all threads of one run."""
    peer = make()
    step = peer.rows or len(y)
    pieces = [peer.prepare(X[i : i + step], y[i : i + step]) for i in range(0, len(y), step)]
    begin = time.process_time()
    wrong = sum(map(peer.mistakes, pieces))
    return 100.0 * wrong / len(y), time.process_time() - begin


def play_all(name: str, args) -> list[dict]:
    """Return a row for each run on a data set, in turn over the methods; take what is kept."""
    data = okl.datasets.load(name, scale=None)
    X, y = okl.Standardizer(clip=None).fit_transform(data.X), data.y
    n, seeds = (QUICK_ROWS[name], QUICK_SEEDS) if args.quick else (ROWS[name], SEEDS)
    path = args.keep / f"{args.stem}_{name}.csv" if args.keep else None
    runs = read_csv(path) if path else []
    done = {(run["method"], int(run["permutation"]), int(run["rows"])) for run in runs}
    chosen = {run["method"]: run["setting"] for run in runs}
    for one, seed, rows in tqdm(jobs(X.shape[1], n, seeds, args.quick), name, disable=None):
        if (one.name, seed, rows) in done:
            continue
        if one.name not in chosen:
            rehearsal = permute(X, y, TUNING_SEED, REHEARSED_BY_SLOW if one.slow else n)
            wrong = {text: play(make, *rehearsal)[0] for text, make in one.makers.items()}
            chosen[one.name] = min(wrong, key=wrong.__getitem__)
        make, (Z, labels) = one.makers[chosen[one.name]], permute(X, y, seed, rows)
        play(make, Z[:WARM_ROWS], labels[:WARM_ROWS])
        mistakes, seconds = play(make, Z, labels)
        runs.append({
            "data": name, "by": one.by, "method": one.name, "setting": chosen[one.name],
            "tried": str(len(one.makers)), "permutation": str(seed), "rows": str(rows),
            "mistakes": f"{mistakes:.4f}", "seconds": f"{seconds:.4g}",
        })  # fmt: skip
        if path:
            write_csv(path, runs)
    return runs


def jobs(d: int, n: int, seeds: int, quick: bool):
    """Return method, permutation and rows of all runs; ours also play the slow ones' rows."""
    found = methods(d, quick)
    whole = [(one, seed, n) for seed in range(seeds) for one in found if not one.slow]
    part = [one for one in found if one.slow or one.by == OURS and n > SLOW_ROWS]
    return whole + [(one, 0, min(n, SLOW_ROWS)) for one in part]


HEAD = ("data", "by", "method", "setting", "tried", "rows")


def summary(runs) -> list[dict]:
    rows = []
    for key in dict.fromkeys(tuple(run[k] for k in HEAD) for run in runs):
        own = [run for run in runs if tuple(run[k] for k in HEAD) == key]
        row = dict(zip(HEAD, key, strict=True)) | {"permutations": len(own)}
        for key in ("mistakes", "seconds"):
            values = [float(run[key]) for run in own]
            row[key] = f"{np.mean(values):.4g}"
            row[f"{key}_sd"] = f"{np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
        rows.append(row | {"seconds_least": f"{min(float(run['seconds']) for run in own):.4g}"})
    for row in rows:
        match = None if row["by"] == OURS else fastest_as_good(row, rows)
        row["ours_at_equal_error"] = match["method"] if match else ""
        row["its_mistakes"] = match["mistakes"] if match else ""
        # of each the least seconds: the machine may be busy
        speed = float(row["seconds_least"]) / float(match["seconds_least"]) if match else 0.0
        row["times_its_speed"] = f"{speed:.3g}" if match else ""
    return rows


def fastest_as_good(peer, rows):
    """Return the fastest of ours on the same rows that makes no more mistakes than a peer."""
    least, where = float(peer["mistakes"]), (OURS, peer["data"], peer["rows"])
    own = [row for row in rows if (row["by"], row["data"], row["rows"]) == where]
    found = [row for row in own if float(row["mistakes"]) <= least]
    return min(found, key=lambda row: float(row["seconds_least"])) if found else None


TIMES = ("seconds", "seconds_sd")
LOOKS = {
    OURS: {"color": plots.COLOURS[2], "marker": "o"},
    VW: {"color": plots.COLOURS[1], "marker": "s"},
    SKLEARN: {"color": plots.COLOURS[4], "marker": "^"},
    RIVER: {"color": plots.COLOURS[5], "marker": "D"},
}


def draw(rows):
    sets = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plots.figure(rows=len(sets), columns=1, row_height=3.9)
    named = []
    for ax, data in zip(axes[:, 0], sets, strict=True):
        n, points = max(int(row["rows"]) for row in rows if row["data"] == data), []
        here = {row["method"]: row for row in rows[::-1] if row["data"] == data}  # whole over part
        here = list(here.values())[::-1]
        top = MOST * np.median([float(row["mistakes"]) for row in here])
        above = [f"{row['method']} {float(row['mistakes']):.1f} %"
                 for row in here if float(row["mistakes"]) > top]  # fmt: skip
        for row in (row for row in here if float(row["mistakes"]) <= top):
            whole, style = int(row["rows"]) == n, LOOKS[row["by"]]
            x, across = (1e6 * float(row[k] or 0.0) / int(row["rows"]) for k in TIMES)
            y, up = (float(row[k] or 0.0) for k in ("mistakes", "mistakes_sd"))
            ax.errorbar(x, y, up, min(across, 0.9 * x), linestyle="", markersize=4.0,
                        elinewidth=0.8, label=row["by"] if whole else "", **style,
                        markerfacecolor=style["color"] if whole else "white")  # fmt: skip
            points.append((row["method"].removeprefix("VW, "), x, y, style["color"]))
        if any(int(row["rows"]) < n for row in here):
            explain(ax, f"open: {SLOW_ROWS:,} rows", marker="o", linestyle="", mfc="white")
        unseen = fill("above: " + ", ".join(above), 90) if above else ""
        x = f"CPU time of a row (\N{MICRO SIGN}s)\n{unseen}".rstrip()
        plots.tidy(ax, x, "mistakes (%)", f"{data}, {n:,} rows", log="xy")
        low, high = ax.get_xlim()
        ax.set_xlim(low, 8.0 * high)  # room for names
        named.append((ax, sorted(points, key=lambda point: point[1])))
    plots.shared_legend(figure, columns=5)  # which moves the axes
    for ax, points in named:
        name_points(ax, points, plots.FONT - 1.5)
    return figure


def main() -> None:
    args = parse_args(__doc__, limit=600.0, quick_limit=60.0, keeps=True)
    warnings.simplefilter("ignore")
    rivals.missing_libraries(VW, SKLEARN, RIVER)
    wanted = QUICK_ROWS if args.quick else ROWS
    here = wanted if args.rows else available(wanted)
    rows = args.rows or summary([run for name in here for run in play_all(name, args)])
    partial = len(here) < len(wanted)
    publish(draw(rows), rows, args, partial=partial, but=("tried",))


if __name__ == "__main__":
    main()
