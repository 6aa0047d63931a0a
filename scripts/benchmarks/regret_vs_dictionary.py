"""Regret against dictionary size, for every kernel learner of the package on three streams.

Reproduces: nothing published.
Missing: learners named below the printed table; linear learners play on features only. On casp,
    whose labels are real: learners of signs, and BOGD, which diverges there with few atoms.
Time: eleven minutes of CPU time (--quick: 400 rounds, one seed, ten seconds).
"""

import re

import numpy as np

import oklnumba as okl
from scripts import common
from scripts.looks import BOUND, RATE, explain, look

ROUNDS, QUICK_ROUNDS = 4000, 400
SEEDS, QUICK_SEEDS = 5, 1
SIGMAS = {"casp": 0.5, "magic04": 0.5, "mushrooms": 2.0}
LAM = {"squared": 1.0, "hinge": 0.5}  # of the comparators: loss + lam |f|^2
COLUMNS = (
    "data", "learner", "parameters", "permutation", "loss", "size", "mistakes", "total_loss",
    "regret", "bound", "seconds",
)  # fmt: skip
SIZES = (12, 25, 50, 100, 200, 400)
THRESHOLDS = (0.9, 0.7, 0.5, 0.35, 0.25, 0.15)
SHOWN = {  # rows of the picture; the csv has all
    "second order": ("KernelAWV", "NystromAWV", "CON-KONS", "FrequentKONS"),
    "gradient steps": ("KernelOGD", "KernelOGD, window", "POMDR", "B(AO)2KS", "FOGD", "NOGD"),
}  # fmt: skip
MORE_LOOKS = {"KernelOGD, window": {"linestyle": "-.", "marker": "v"}}
SIGNS_ONLY = ("BOGD", "BOGD++", "POMD", "POMDR", "B(AO)2KS", "Projectron", "Projectron++")


def learners(kernel, center, T: int, signs: bool = True):
    """Return the learners by label, their steps tuned as in the tables of POMDR."""
    sigma, eta = kernel.sigma, 10.0 / T**0.5
    given = {"loss": "hinge" if signs else "squared"}
    linear, taylor = (okl.TaylorFeatures(k, sigma=sigma, center=center) for k in (1, 2))
    fourier = okl.FourierFeatures(sigma=sigma)
    mus = (100.0, 30.0, 10.0, 3.0, 1.0)
    coins = ((0.003, 0.01), (0.01, 0.1), (0.03, 1.0), (0.1, 1.0), (0.3, 1.0))
    adagrad = okl.AdaptiveFTRL("adagrad", eta=0.1, sigma=0.1, **given)
    found = {
        "KernelAWV": okl.KernelAWV(kernel),
        "KernelRidge": okl.KernelRidge(kernel),
        "PKAWV, Taylor": okl.PKAWV(taylor),
        "PKAWV, Fourier": okl.PKAWV(fourier),
        "NystromAWV": okl.NystromAWV(kernel),
        "KRLS": [okl.KRLS(kernel, threshold=v**2) for v in THRESHOLDS],
        "Experts of PKAWV": [
            okl.Experts([okl.PKAWV(f, lam=lam) for lam in (0.1, 1.0, 10.0)])
            for f in ((linear, taylor) if len(center) < 50 else (linear,))
        ],
        "KONS": okl.KONS(kernel),
        "Sketched-KONS": [okl.SketchedKONS(kernel, gamma=g, beta=b) for g, b in coins],
        "Pros-N-KONS": [okl.ProsNKONS(kernel, mu=mu) for mu in mus],
        "CON-KONS": [okl.ProsNKONS(kernel, mu=mu, restart=False) for mu in mus],
        "FrequentKONS": lambda kernel, size: okl.FrequentKONS(
            kernel, budget=size, rank=size // 4),
        "ONS, Taylor": okl.WithFeatures(taylor, okl.OnlineNewtonStep()),
        "sketched ONS, Fourier": okl.WithFeatures(fourier, okl.SketchedONS(rank=10)),
        "exp-concave FTRL": okl.WithFeatures(taylor, okl.ExpConcaveFTRL(alpha_tilde=0.125)),
        "KernelOGD": lambda kernel: okl.KernelOGD(kernel, eta=eta, **given),
        "KernelOGD, window": lambda kernel, size: okl.KernelOGD(
            kernel, eta=eta, budget=size, **given),
        "BOGD": okl.BOGD(kernel, eta=eta / 3),
        "BOGD++": okl.BOGD(kernel, eta=eta / 3, weighted=True),
        "POMD": [okl.POMD(kernel, zeta=0.0, ald_scale=v, horizon=T) for v in THRESHOLDS],
        "POMDR": lambda size: okl.POMDR(
            kernel, budget=size + size % 2, switch_size=size // 3, horizon=T),
        "B(AO)2KS": okl.BAO2KS([kernel], horizon=T),
        "Projectron": [okl.Projectron(kernel, threshold=v) for v in THRESHOLDS],
        "Projectron++": [
            okl.Projectron(kernel, threshold=v, aggressive=True) for v in THRESHOLDS],
        "FOGD": okl.FOGD(eta=eta, sigma=sigma, **given),
        "NOGD": okl.NOGD(kernel, eta=eta, **given),
        "SkeGD": okl.SkeGD(kernel, eta=eta, **given),
        "AdaGrad, Fourier": okl.WithFeatures(fourier, adagrad),
    }  # fmt: skip
    return {label: made for label, made in found.items() if signs or label not in SIGNS_ONLY}


def load(name: str, quick: bool):
    """Return inputs, labels, kernel, and whether the labels are signs."""
    data, T = common.load(name, permute=0), QUICK_ROUNDS if quick else ROUNDS
    signs = data.task == "classification"
    y = data.y if signs else okl.datasets.scale_to(data.y)
    return data.X[:T], y[:T], okl.Gaussian(SIGMAS[name]), signs


def measure(name: str, args):
    X, y, kernel, signs = load(name, args.quick)
    found = okl.regret_vs_size(
        learners(kernel, X.mean(axis=0), len(y), signs), X, y, kernel, LAM,
        QUICK_SEEDS if args.quick else SEEDS, sizes=SIZES, permute=True, n_jobs=common.N_JOBS,
        path=args.keep, progress=common.PROGRESS, time_limit=args.limit,
    )  # fmt: skip
    for error in {row["error"] for row in found if row["error"]}:
        print(f"{name}, left out: {error}")
    return okl.Table([row | {"data": name} for row in found], found.about)


def reread(rows, quick: bool):
    """Return the tables from the rows of the csv, and what theory says of each data set."""
    tables = {}
    for name in SIGMAS if rows else ():
        X, y, kernel, _ = load(name, quick)
        own = [row | {"error": "", "setting": re.sub(r"seed=\d+", "", row["parameters"])}
               for row in rows if row["data"] == name]  # fmt: skip
        lam, B = LAM["squared"], np.abs(y).max()
        about = {"effective_dimension": okl.theory.effective_dimension(kernel, X, lam)}
        about["awv_bound"] = okl.theory.awv_bound(kernel, X, lam, B=B)
        tables[name] = okl.Table(own, about)
    return tables


def draw(tables):
    """Draw two rows of panels, a column for each data set, the legend at the right."""
    figure, axes = okl.plots.figure(rows=len(SHOWN), columns=len(tables), row_height=2.2)
    for row, (family, labels) in zip(axes, SHOWN.items(), strict=True):
        looks = {label: look(label) | MORE_LOOKS.get(label, {}) for label in labels}
        known = {}
        for i, (ax, (name, table)) in enumerate(zip(row, tables.items(), strict=True)):
            drawn = set(table["learner"][table["error"] == ""])
            shown = [label for label in labels if label in drawn]
            okl.plots.size_curves(table, shown, ax, "regret", looks, names=False)
            known |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
            ax.set_xlabel("atoms or features" if ax in axes[-1] else "", fontsize=okl.plots.FONT)
            loss = "" if i == 1 and "squared" in ax.get_ylabel() else ax.get_ylabel()
            ax.set_ylabel(loss if i < 2 else "")
            okl.plots.title(ax, f"{family}\n{name}" if i == 0 else f"\n{name}")
            ax.title.set(ha="left", x=0.0)
        known = {label: known[label] for label in labels if label in known}
        row[-1].legend(known.values(), known, loc="upper left", bbox_to_anchor=(1.0, 1.05),
                       fontsize=okl.plots.FONT - 1.0, frameon=False, handlelength=2.8)  # fmt: skip
    for name, dashes in (("the learner's own bound", RATE), ("bound of Kernel-AWV", BOUND),
                         ("effective dimension", "-.")):  # fmt: skip
        explain(axes[0, 0], name, linestyle=dashes, linewidth=0.9)
    explain(axes[0, 0], "0 or below", marker="v", linestyle="", markersize=3.5)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[-4:], names[-4:], loc="outside upper center", ncols=4, frameon=False,
                  fontsize=okl.plots.FONT - 0.5)  # fmt: skip
    return figure


def main() -> None:
    args = common.parse_args(__doc__, limit=300.0, quick_limit=60.0, keeps=True, own=SIGMAS)
    tables = reread(args.rows, args.quick) or {name: measure(name, args) for name in SIGMAS}
    rows = [row for table in tables.values() for row in table if not row["error"]]
    shown = ["data", "learner", "loss", "size", "mistakes", "regret", "bound", "seconds"]
    numbers = [{name: row[name] for name in COLUMNS} for row in rows]
    common.publish(draw(tables), numbers, args, okl.Table(rows).mean()[shown])


if __name__ == "__main__":
    main()
