"""Loss and regret against dictionary size, for every learner of the package on one stream.

Reproduces: nothing published; the comparison that this toolkit is for: what a larger dictionary, or
    more features, buy in mistakes and in regret against the best function in hindsight.
Missing: learners named below the printed table, if any; linear learners stand for themselves only
    where features lift them.
Time: about one minute (--quick: 1000 rounds, a quarter of one).
Data: magic04 (comes with the package), inputs scaled to [-1, 1], one permutation.
"""

import numpy as np
from common import arguments, plain_ticks, print_table, save
from tqdm import tqdm

import oklnumba as okl
from oklnumba import plots
from oklnumba.learners.learner import Learner

STEM = "regret_vs_dictionary"
ROUNDS, QUICK_ROUNDS = 4000, 1000
SIGMA = 0.5
LAM = 1.0  # of the comparators: loss + lam |f|^2, and hinge loss + lam / 2 |f|^2
SIZES = (12, 25, 50, 100, 200, 400, 800)
ROWS = (  # of the figure; all others are in the second row
    ("KernelAWV", "KernelRidge", "PKAWV, Taylor", "NystromAWV", "KRLS", "KernelOGD", "FOGD",
     "NOGD", "SkeGD"),
    (),
    ("KONS", "Sketched-KONS", "Pros-N-KONS", "CON-KONS", "ONS, Taylor", "sketched ONS, Fourier",
     "AdaGrad, Fourier", "exp-concave FTRL, Taylor", "Experts of PKAWV"),
)  # fmt: skip


def learners(T: int, d: int, center: np.ndarray) -> dict[str, list[Learner]]:
    """Return learners of growing size by their labels; steps as the tables of POMDR tuned them."""
    kernel, eta = okl.Gaussian(SIGMA), 10.0 / T**0.5
    budgets = [size for size in SIZES if size < T // 2]
    taylor = [okl.TaylorFeatures(k, sigma=SIGMA, center=center) for k in (1, 2, 3, 4)]
    thresholds = (0.9, 0.7, 0.5, 0.35, 0.25, 0.15)
    out: dict[str, list[Learner]] = {
        "KernelAWV": [okl.KernelAWV(kernel, lam=LAM)],
        "KernelRidge": [okl.KernelRidge(kernel, lam=LAM)],
        "PKAWV, Taylor": [okl.PKAWV(features, lam=LAM) for features in taylor],
        "NystromAWV": [okl.NystromAWV(kernel, lam=LAM, max_size=size) for size in budgets],
        "KRLS": [okl.KRLS(kernel, threshold=threshold**2) for threshold in thresholds],
        "KernelOGD": [okl.KernelOGD(kernel, eta=eta)],
        "KernelOGD, window": [okl.KernelOGD(kernel, eta=eta, budget=size) for size in budgets],
        "BOGD": [okl.BOGD(kernel, eta=eta / 3, budget=size) for size in budgets],
        "BOGD++": [okl.BOGD(kernel, eta=eta / 3, budget=size, weighted=True) for size in budgets],
        "Projectron": [okl.Projectron(kernel, threshold=v) for v in thresholds],
        "Projectron++": [okl.Projectron(kernel, threshold=v, aggressive=True) for v in thresholds],
        "FOGD": [
            okl.FOGD(eta=eta, sigma=SIGMA, n_frequencies=size // 2) for size in (*budgets, 1600)
        ],
        "NOGD": [
            okl.NOGD(kernel, eta=eta, budget=size, rank=max(size // 5, 2)) for size in budgets
        ],
        "SkeGD": [
            okl.SkeGD(
                kernel, eta=eta, budget=size, sketch=4 * (3 * size // 16), columns=size // 4,
                rank=max(size // 10, 1),
            )
            for size in budgets[1:]
        ],
        "B(AO)2KS": [okl.BAO2KS([kernel], budget=size, horizon=T) for size in budgets],
        "POMD": [okl.POMD(kernel, zeta=0.0, ald_scale=v, horizon=T) for v in thresholds],
        "POMDR": [
            okl.POMDR(kernel, budget=size + size % 2, switch_size=max(size // 3, 1), horizon=T)
            for size in budgets
        ],
    }  # fmt: skip

    def fourier(learner: okl.oco.LinearLearner) -> list[Learner]:
        return [
            okl.WithFeatures(okl.FourierFeatures(m // 2, sigma=SIGMA), learner) for m in budgets
        ]

    mus = (100.0, 30.0, 10.0, 3.0, 1.0)
    return out | {
        "KONS": [okl.KONS(kernel)],
        "Sketched-KONS": [
            okl.SketchedKONS(kernel, gamma=gamma, beta=beta)
            for gamma, beta in ((0.003, 0.01), (0.01, 0.1), (0.03, 1.0), (0.1, 1.0), (0.3, 1.0))
        ],
        "Pros-N-KONS": [okl.ProsNKONS(kernel, mu=mu) for mu in mus],
        "CON-KONS": [okl.ProsNKONS(kernel, mu=mu, restart=False) for mu in mus],
        "ONS, Taylor": [okl.WithFeatures(f, okl.OnlineNewtonStep()) for f in taylor],
        "sketched ONS, Fourier": fourier(okl.SketchedONS(rank=10)),
        "AdaGrad, Fourier": fourier(okl.AdaptiveFTRL("adagrad", eta=0.1, sigma=0.1)),
        "exp-concave FTRL, Taylor": [
            okl.WithFeatures(f, okl.ExpConcaveFTRL(alpha_tilde=0.125)) for f in taylor[:3]
        ],
        "Experts of PKAWV": [
            okl.Experts([okl.PKAWV(f, lam=lam) for lam in (0.1, 1.0, 10.0)]) for f in taylor[:3]
        ],
    }


def best(X: np.ndarray, y: np.ndarray, loss: str, lam: float) -> float:
    """Return min_f sum loss + lam |f|^2."""
    found = okl.theory.comparator(okl.Gaussian(SIGMA), X, y, lam, loss)
    return found.loss + lam * found.norm**2


def draw(curves: dict[str, tuple], what: str):
    """Draw mistakes and regret against size: full and feature learners, budgeted ones, Newton."""
    figure, axes = plots.figure(rows=3, columns=2, width=7.2, row_height=2.8)
    markers = "osD^v<>PX"
    elsewhere = [label for labels in ROWS for label in labels]
    for i, row in enumerate(axes):
        shown = [k for k in curves if (k in ROWS[i] if ROWS[i] else k not in elsewhere)]
        for place, label in enumerate(shown):
            sizes, mistakes, regrets = curves[label]
            style = plots.line_style(place) | {"marker": markers[place], "markersize": 4}
            row[0].plot(sizes, mistakes, label=label, linewidth=0.9, **style)
            row[1].plot(sizes, regrets, label=label, linewidth=0.9, **style)
        row[1].legend(fontsize=plots.FONT - 1.5, loc="center left", bbox_to_anchor=(1.01, 0.5))
        plots.title(row[0], what)
        plots.title(row[1], "regret in the learner's own loss")
    for column, label in ((0, "mistake ratio (%)"), (1, "regret")):
        values = [v for curve in curves.values() for v in curve[1 + column]]
        for ax in axes[:, column]:
            ax.set_xscale("log")
            ax.set_yscale("log")
            plain_ticks(ax, values)
            ax.set_xlim(5, 6000)
            ax.set_ylabel(label, fontsize=plots.FONT)
            ax.tick_params(labelsize=plots.FONT - 1)
            ax.grid(True, linewidth=0.4, alpha=0.5)
        axes[-1, column].set_xlabel("largest number of atoms or features", fontsize=plots.FONT)
    return figure


def main() -> None:
    args = arguments(__doc__ or "", limit=120.0, quick_limit=20.0)
    T = QUICK_ROUNDS if args.quick else ROUNDS
    data = okl.datasets.load("magic04", permute=0)
    X, y = data.X[:T], data.y[:T]
    least = {"squared": best(X, y, "squared", LAM), "hinge": best(X, y, "hinge", LAM / 2)}
    table, numbers, curves = [], [], {}
    groups = learners(T, X.shape[1], X[:500].mean(axis=0))
    for label, ones in tqdm(groups.items(), unit=" learner"):
        points = []
        for learner in ones:
            run = okl.run(learner, X, y, time_limit=args.limit)
            if not run.finished:
                continue
            size = int(run.sizes.max())  # after a restart or removal it may be small
            size = getattr(learner, "sketch_size", size)
            regret = float(run.losses.sum()) - least[run.loss]
            points.append((size, 100 * run.mistake_rate, regret))
            numbers.append(
                {
                    "algorithm": label,
                    "learner": repr(learner)[:160],
                    "loss": run.loss,
                    "size": size,
                    "mistakes": f"{points[-1][1]:.3f}",
                    "total_loss": f"{run.losses.sum():.1f}",
                    "regret": f"{regret:.1f}",
                    "seconds": f"{run.seconds:.4g}",
                }
            )
        if not points:
            print(f"{label}: no run within {args.limit:g} s")
            continue
        curves[label] = sizes, mistakes, regrets = list(zip(*sorted(points), strict=True))
        table.append(
            {
                "algorithm": label,
                "loss": str(numbers[-1]["loss"]),
                "sizes": f"{sizes[0]} .. {sizes[-1]}",
                "mistakes (%)": f"{mistakes[0]:.2f} .. {mistakes[-1]:.2f}",
                "regret": f"{regrets[0]:.0f} .. {regrets[-1]:.0f}",
            }
        )
    figure = draw(curves, f"magic04, first {T} rounds, sigma = {SIGMA:g}")
    save(figure, numbers, args, STEM)
    print(f"best in hindsight: squared {least['squared']:.1f}, hinge {least['hinge']:.1f}")
    print_table(table)
    drawn = {type(one) for ones in groups.values() for one in ones}
    every = {v for v in vars(okl).values() if isinstance(v, type) and issubclass(v, Learner)}
    missing = sorted(cls.__name__ for cls in every - drawn)
    linear = [name for name in missing if hasattr(getattr(okl, name), "update")]
    print(f"linear learners, drawn on features or not at all: {', '.join(linear)}")
    if others := sorted(set(missing) - set(linear)):
        print(f"not in the figure: {', '.join(others)}")


if __name__ == "__main__":
    main()
