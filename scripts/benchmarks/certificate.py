"""The certificate of a run, in the learner's own space, next to its regret in the RKHS.

Reproduces: nothing published; Proposition 1 of Jezequel, Gaillard, Rudi (2019) on real data.
    ``run.certificate`` has the regret against the best penalised function of the learner's own
    space, and its bound, at every round; ``theory.Hindsight`` the regret against the best of the
    whole RKHS, as an interval, at some. PKAWV of degree 1 shows that a poor space looks good in its
    own certificate.
Missing: nothing.
Time: about two minutes.
Data: casp and magic04 (both come with the package), inputs scaled to [-1, 1].
"""

import numpy as np

import oklnumba as okl
from oklnumba import plots
from scripts.common import curve_rows, parse_args, publish, stream, timed_run

KERNEL_ROWS = 4000  # rounds of the exact learner, whose time grows with their cube
SIGMA = {"casp": 1.0, "magic04": 2.0}
LAM = 1.0
MARKS, FIRST = 9, 100  # rounds at which the regret in the RKHS is measured, and the first of them
LEARNERS = ("Kernel-AWV", "PKAWV, M = 1", "PKAWV, M = 2", "PKAWV, Nystrom")


def play(name: str, limit: float):
    """Return the runs on a data set, with their regret in the RKHS where it is not their own."""
    X, y = stream(name)
    kernel, center = okl.Gaussian(SIGMA[name]), X[:500].mean(axis=0)
    dictionary = okl.KORS(kernel, alpha=LAM).partial_fit(X).features()
    best = okl.theory.Hindsight(kernel, X, y, LAM, features=dictionary)
    at = plots.thin(len(y), MARKS, first=FIRST)
    taylor = [okl.TaylorFeatures(M, sigma=SIGMA[name], center=center) for M in (1, 2)]
    learners = [
        okl.KernelAWV(kernel, lam=LAM),
        *(okl.PKAWV(features, lam=LAM) for features in taylor),
        okl.NystromAWV(kernel, lam=LAM),
    ]
    found = {}
    for label, learner in zip(LEARNERS, learners, strict=True):
        rows = KERNEL_ROWS if isinstance(learner, okl.KernelAWV) else len(y)
        run = timed_run(learner, X[:rows], y[:rows], limit)
        whole = run.rounds == len(y)
        found[label] = run, best.regret(run.predictions, at) if whole else None
    return found


def draw(ax, run, curve, colour: str) -> None:
    at, proof = plots.thin(run.rounds, first=10), run.certificate
    style = {"color": colour, "linewidth": 1.3}
    ax.plot(at, np.where(proof.regret[at - 1] > 0, proof.regret[at - 1], np.nan), "-", **style)
    ax.plot(at, proof.bound[at - 1], linestyle="--", **style | {"linewidth": 0.9})
    if curve is not None:
        middle = (curve.low + curve.high) / 2
        ax.errorbar(
            curve.rounds, middle, yerr=(curve.high - curve.low) / 2, linestyle=":", marker="o",
            markersize=3.5, capsize=2, **style,
        )  # fmt: skip


def rows_of(name: str, label: str, run, curve) -> list:
    proof, ends = run.certificate, {}
    if curve is not None:
        texts = ([f"{end:.7g}" for end in ends] for ends in (curve.low, curve.high))
        ends = dict(zip(curve.rounds.tolist(), zip(*texts, strict=True), strict=True))
    rounds = np.array(sorted({*plots.thin(run.rounds, points=60).tolist(), *ends}))
    columns = {"round": rounds, "size": run.sizes[rounds - 1]}
    for what in ("loss", "comparator", "regret", "bound"):
        columns[what] = getattr(proof, what)[rounds - 1]
    for i, what in enumerate(("regret in the RKHS, at least", "at most")):
        columns[what] = [ends[t][i] if t in ends else None for t in rounds]
    return curve_rows({"dataset": name, "algorithm": label, "space": proof.space}, columns)


def main() -> None:
    args = parse_args(__doc__, limit=60.0, quick_limit=20.0)
    fig, axes = plots.figure(columns=2, width=7.2, row_height=3.4)
    numbers, table = [], []
    colours = dict(zip(LEARNERS, plots.COLOURS, strict=False))
    for ax, name in zip(axes[0], SIGMA, strict=True):
        for label, (run, curve) in play(name, args.limit).items():
            if not (run.certificate.regret <= run.certificate.bound).all():
                raise SystemExit(f"{name}, {label}: the regret exceeds its bound")
            draw(ax, run, curve, colours[label])
            numbers += rows_of(name, label, run, curve)
            share = float(np.max(run.certificate.regret / run.certificate.bound))
            table.append(numbers[-1] | {"largest share": share})
        title = f"{name}: regret and bound (sigma = {SIGMA[name]:g})"
        plots.tidy(ax, "rounds", "sum of squared losses", title, log="xy")
    for label, colour in colours.items():
        axes[0, 0].plot([], [], color=colour, linewidth=1.6, label=label)
    kinds = {"regret, own space": "-", "bound, own space": "--", "regret, RKHS": "o:"}
    for label, style in kinds.items():
        axes[0, 0].plot([], [], style, color="0.45", linewidth=1.2, markersize=3.5, label=label)
    publish(fig, numbers, args, table, legend=4)


if __name__ == "__main__":
    main()
