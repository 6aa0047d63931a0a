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
from scripts.common import collect, curve_rows, parse_args, publish, stream, timed_run
from scripts.looks import BOUND, explain, look

KERNEL_ROWS = 4000  # rounds of the exact learner, whose time grows with their cube
SIGMA = {"casp": 1.0, "magic04": 2.0}
LAM = 1.0
MARKS, FIRST = 9, 100  # rounds at which the regret in the RKHS is measured, and the first of them
FIRST_DRAWN = 10
IN_RKHS = "regret in the RKHS, at least", "at most"
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


def draw(rows):
    figure, axes = plots.figure(columns=2, row_height=3.4)
    for ax, name in zip(axes[0], SIGMA, strict=True):
        for label in LEARNERS:
            columns = "regret", "bound", *IN_RKHS
            at, *found = collect(rows, "round", *columns, dataset=name, algorithm=label)
            at, found = at[at >= FIRST_DRAWN], np.concatenate(found)[:, at >= FIRST_DRAWN]
            (regret, bound, low, high), style = found, look(label)
            style = {"color": style["color"], "linewidth": 1.3}
            ax.plot(at, regret, "-", label=label, **style)
            ax.plot(at, bound, **style | {"linewidth": 0.9, "linestyle": BOUND})
            known = np.isfinite(low)
            if known.any():
                ax.errorbar(
                    at[known], (low + high)[known] / 2, (high - low)[known] / 2, linestyle=":",
                    marker=look(label)["marker"], markersize=3.5, capsize=2, **style,
                )  # fmt: skip
        title = f"{name}, sigma = {SIGMA[name]:g}"
        plots.tidy(ax, "rounds", "regret (sum of squared losses)", title, log="xy")
    explain(axes[0, 0], "regret, own space", linestyle="-")
    explain(axes[0, 0], "its bound", linestyle=BOUND, linewidth=0.9)
    explain(axes[0, 0], "regret, RKHS", linestyle=":", marker="o", markersize=3.5)
    return figure


def rows_of(name: str, label: str, run, curve) -> list:
    proof, ends = run.certificate, {}
    if curve is not None:
        texts = ([f"{end:.7g}" for end in ends] for ends in (curve.low, curve.high))
        ends = dict(zip(curve.rounds.tolist(), zip(*texts, strict=True), strict=True))
    rounds = np.array(sorted({*plots.thin(run.rounds, points=60).tolist(), *ends}))
    columns = {"round": rounds, "size": run.sizes[rounds - 1]}
    for what in ("loss", "comparator", "regret", "bound"):
        columns[what] = getattr(proof, what)[rounds - 1]
    for i, what in enumerate(IN_RKHS):
        columns[what] = [ends[t][i] if t in ends else None for t in rounds]
    return curve_rows({"dataset": name, "algorithm": label, "space": proof.space}, columns)


def measure(limit: float):
    """Return the rows of the csv and of the table; stop if a regret exceeds its bound."""
    numbers, table = [], []
    for name in SIGMA:
        for label, (run, curve) in play(name, limit).items():
            if not (run.certificate.regret <= run.certificate.bound).all():
                raise SystemExit(f"{name}, {label}: the regret exceeds its bound")
            numbers += rows_of(name, label, run, curve)
            share = float(np.max(run.certificate.regret / run.certificate.bound))
            table.append(numbers[-1] | {"largest share": share})
    return numbers, table


def main() -> None:
    args = parse_args(__doc__, limit=60.0, quick_limit=20.0)
    numbers, table = (args.rows, None) if args.rows else measure(args.limit)
    publish(draw(numbers), numbers, args, table, legend=4)


if __name__ == "__main__":
    main()
