"""Regret of whole runs beside their certificates, and in the RKHS.

Reproduces: nothing published.
Missing: other bounds than the certificate; tests/bounds.py has them.
Time: about two minutes.
"""

import numpy as np

import oklnumba as okl
from scripts.common import collect, curve_rows, group, run_script, stream, timed_run
from scripts.looks import BOUND, explain, look

SIGMA = {"casp": 1.0, "magic04": 2.0}
LAM = 1.0
KERNEL_ROWS = 4000  # rounds of the exact learner, whose time grows with their cube
MARKS, FIRST = 9, 100  # rounds at which the regret in the RKHS is measured, and the first of them
FIRST_DRAWN = 10
IN_RKHS = "regret in the RKHS, at least", "at most"
LABELS = ("Kernel-AWV", "PKAWV, M = 1", "PKAWV, M = 2", "PKAWV, Nystrom")


def measure(args) -> list[dict]:
    """Return some rounds of each run; stop if a regret exceeds its bound."""
    found = []
    for name, sigma in SIGMA.items():
        X, y = stream(name)
        kernel, center = okl.Gaussian(sigma), X[:500].mean(axis=0)
        dictionary = okl.KORS(kernel, alpha=LAM).partial_fit(X).features()
        best = okl.theory.Hindsight(kernel, X, y, LAM, features=dictionary)
        at = okl.plots.thin(len(y), MARKS, first=FIRST)
        taylor = [okl.TaylorFeatures(M, sigma=sigma, center=center) for M in (1, 2)]
        learners = [
            okl.KernelAWV(kernel, lam=LAM),
            *(okl.PKAWV(features, lam=LAM) for features in taylor),
            okl.NystromAWV(kernel, lam=LAM),
        ]
        for label, learner in zip(LABELS, learners, strict=True):
            rows = KERNEL_ROWS if isinstance(learner, okl.KernelAWV) else len(y)
            run = timed_run(learner, X[:rows], y[:rows], args.limit)
            if not (run.certificate.regret <= run.certificate.bound).all():
                raise SystemExit(f"{name}, {label}: the regret exceeds its bound")
            curve = best.regret(run.predictions, at) if run.rounds == len(y) else None
            found += rows_of(name, label, run, curve)
    return found


def draw(rows):
    figure, axes = okl.plots.figure(columns=len(SIGMA), row_height=3.4)
    for ax, name in zip(axes[0], SIGMA, strict=True):
        for label in LABELS[1::2]:  # the csv has all
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
        okl.plots.tidy(ax, "rounds", "regret (sum of squared losses)", title, log="xy")
    explain(axes[0, 0], "regret, own space", linestyle="-")
    explain(axes[0, 0], "its bound", linestyle=BOUND, linewidth=0.9)
    explain(axes[0, 0], "regret, RKHS", linestyle=":", marker="o", markersize=3.5)
    return figure


def rows_of(name: str, label: str, run, curve) -> list:
    proof, ends = run.certificate, {}
    if curve is not None:
        texts = ([f"{end:.7g}" for end in ends] for ends in (curve.low, curve.high))
        ends = dict(zip(curve.rounds.tolist(), zip(*texts, strict=True), strict=True))
    rounds = np.array(sorted({*okl.plots.thin(run.rounds, points=60).tolist(), *ends}))
    columns = {"round": rounds, "size": run.sizes[rounds - 1]}
    for what in ("loss", "comparator", "regret", "bound"):
        columns[what] = getattr(proof, what)[rounds - 1]
    for i, what in enumerate(IN_RKHS):
        columns[what] = [ends[t][i] if t in ends else None for t in rounds]
    return curve_rows({"dataset": name, "algorithm": label, "space": proof.space}, columns)


def ends(rows) -> list[dict]:
    """Return the last row of each run."""
    return [own[-1] for own in group(rows, "dataset", "algorithm").values()]


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 20.0), ends, {"own": SIGMA}, legend=4)
