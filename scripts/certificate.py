"""The certificate of a run: its exact regret, and the bound that holds for it, at every round.

Reproduces: nothing published; it shows Proposition 1 of Jezequel, Gaillard, Rudi (2019) at work on
    real data, for the exact learner and in the spaces of two approximate ones. Every AWV run
    carries these numbers (``run.certificate``). The regret is against the best penalised function
    of the learner's own space on each prefix.
Missing: nothing.
Time: about 10 seconds.
Data: casp and magic04 (both come with the package), inputs scaled to [-1, 1].
"""

import numpy as np
from common import arguments, print_table, save, timed_run

import oklnumba as okl
from oklnumba import plots

KERNEL_ROWS = 4000  # rounds of the exact learner, whose time grows with their cube
SIGMA = {"casp": 1.0, "magic04": 2.0}
STEM = "certificate"


def play(name: str, limit: float) -> dict[str, okl.Run]:
    """Return the runs on a data set by their labels."""
    data = okl.datasets.load(name, permute=0)
    y = okl.datasets.scale_to(data.y)
    kernel = okl.Gaussian(SIGMA[name])
    centred = okl.TaylorFeatures(2, sigma=SIGMA[name], center=data.X[:500].mean(axis=0))
    learners = {
        "Kernel-AWV": okl.KernelAWV(kernel),
        "PKAWV, M = 2": okl.PKAWV(centred),
        "PKAWV, Nystrom": okl.NystromAWV(kernel),
    }
    rows = {"Kernel-AWV": KERNEL_ROWS}
    return {
        label: timed_run(learner, data.X[: rows.get(label)], y[: rows.get(label)], limit)[0]
        for label, learner in learners.items()
    }


def main() -> None:
    args = arguments(__doc__ or "", limit=60.0, quick_limit=20.0)
    fig, axes = plots.figure(columns=2, width=7.2, row_height=3.2)
    numbers, table = [], []
    for ax, name in zip(axes[0], SIGMA, strict=True):
        for colour, (label, run) in zip(
            plots.COLOURS, play(name, args.limit).items(), strict=False
        ):
            plots.certificate(run, ax, label, style={"color": colour}, legend=False)
            proof = run.certificate
            if not (proof.regret <= proof.bound).all():
                raise SystemExit(f"{name}, {label}: the regret exceeds its bound")
            for t in plots.thin(run.rounds, points=60):
                numbers.append(
                    {"dataset": name, "algorithm": label, "size": run.sizes[t - 1], "round": t}
                    | {k: f"{v[t - 1]:.6g}" for k, v in proof._asdict().items()}
                )
            table.append(
                {
                    "data": name,
                    "algorithm": label,
                    "size": str(run.sizes[-1]),
                    "rounds": str(run.rounds),
                    "loss": f"{proof.loss[-1]:.1f}",
                    "regret": f"{proof.regret[-1]:.1f}",
                    "bound": f"{proof.bound[-1]:.1f}",
                    "largest share of the bound": f"{np.max(proof.regret / proof.bound):.2f}",
                    "time (s)": f"{run.seconds:.3g}",
                }
            )
        plots.title(ax, f"{name} (sigma = {SIGMA[name]:g})")
    plots.shared_legend(fig, columns=3)
    save(fig, numbers, args, STEM)
    print_table(table)


if __name__ == "__main__":
    main()
