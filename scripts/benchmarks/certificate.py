"""Regret beside its bounds: the certificate of whole runs, and all bounds of shorter ones.

Reproduces: nothing published. certificate.png has whole runs, regret_certificate.png all bounds
    that hold in the first rounds.
Missing: Theorem 4 of Jezequel et al. 2019, whose degree has a million features or more.
Time: about three minutes.
"""

import numpy as np

import oklnumba as okl
from scripts import common
from scripts.common import collect, curve_rows, publish, stream, timed_run
from scripts.looks import BLACK, BLUE, BOUND, GREEN, ORANGE, PINK, SKY, VERMILLION, explain, look

SIGMA = {"casp": 1.0, "magic04": 2.0}
LAM, C = 1.0, 1.0


# ---- whole runs ----

KERNEL_ROWS = 4000  # rounds of the exact learner, whose time grows with their cube
MARKS, FIRST = 9, 100  # rounds at which the regret in the RKHS is measured, and the first of them
FIRST_DRAWN = 10
IN_RKHS = "regret in the RKHS, at least", "at most"
WHOLE = ("Kernel-AWV", "PKAWV, M = 1", "PKAWV, M = 2", "PKAWV, Nystrom")


def play_whole(name: str, limit: float):
    """Return the runs on a data set, with their regret in the RKHS where it is not their own."""
    X, y = stream(name)
    kernel, center = okl.Gaussian(SIGMA[name]), X[:500].mean(axis=0)
    dictionary = okl.KORS(kernel, alpha=LAM).partial_fit(X).features()
    best = okl.theory.Hindsight(kernel, X, y, LAM, features=dictionary)
    at = okl.plots.thin(len(y), MARKS, first=FIRST)
    taylor = [okl.TaylorFeatures(M, sigma=SIGMA[name], center=center) for M in (1, 2)]
    learners = [
        okl.KernelAWV(kernel, lam=LAM),
        *(okl.PKAWV(features, lam=LAM) for features in taylor),
        okl.NystromAWV(kernel, lam=LAM),
    ]
    found = {}
    for label, learner in zip(WHOLE, learners, strict=True):
        rows = KERNEL_ROWS if isinstance(learner, okl.KernelAWV) else len(y)
        run = timed_run(learner, X[:rows], y[:rows], limit)
        whole = run.rounds == len(y)
        found[label] = run, best.regret(run.predictions, at) if whole else None
    return found


def draw_whole(rows):
    figure, axes = okl.plots.figure(columns=len(SIGMA), row_height=3.4)
    for ax, name in zip(axes[0], SIGMA, strict=True):
        for label in WHOLE[1::2]:  # the csv has all
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


def measure_whole(limit: float):
    """Return the rows of the csv and of the table; stop if a regret exceeds its bound."""
    numbers, table = [], []
    for name in SIGMA:
        for label, (run, curve) in play_whole(name, limit).items():
            if not (run.certificate.regret <= run.certificate.bound).all():
                raise SystemExit(f"{name}, {label}: the regret exceeds its bound")
            numbers += rows_of(name, label, run, curve)
            share = float(np.max(run.certificate.regret / run.certificate.bound))
            table.append(numbers[-1] | {"largest share": share})
    return numbers, table


# ---- all bounds of the first rounds ----

DEGREE = 2
MU = 0.1  # of the Nystrom learners' dictionaries
ROWS, QUICK_ROWS = 2000, 400
CHECKPOINTS = 12
REGRET, OWN = "regret", "regret in its own space"
EXACT, METER = "effective dimension (a number)", "effective dimension, by a meter"
BOUNDS = {  # and their colours and markers
    "Proposition 1": (VERMILLION, "s"), "Propositions 1 and 2": (ORANGE, "D"),
    "Theorem 3": (BLUE, "^"), "Theorem 6": (PINK, "<"), "certificate": (GREEN, "P"),
    "KONS Theorem 1": (SKY, "X"),
}  # fmt: skip


class Stream:
    """A data set's first rows, and the rounds at which everything is measured."""

    def __init__(self, name: str, n: int, limit: float):
        self.name, self.limit = name, limit
        self.X, self.y = stream(name, n)
        self.kernel = okl.Gaussian(SIGMA[name])
        self.at = okl.plots.thin(len(self.X), CHECKPOINTS, first=30)
        self.B = [np.abs(self.y[:t]).max() for t in self.at]
        self.parts = [self.X[:t] for t in self.at]
        dimensions = [okl.theory.effective_dimension(self.kernel, X, LAM) for X in self.parts]
        self.dimension = {EXACT: np.array(dimensions)}

    def play(self, learner):
        """Return a run and its regret so far against the best penalised function of the RKHS."""
        run = timed_run(learner, self.X, self.y, self.limit)
        if not run.finished:
            raise SystemExit(f"{self.name}, {run.learner}: more than {self.limit:g} s")
        curve = run.regret(self.kernel, LAM, at=self.at)
        return run, {REGRET: curve.prefix_penalised}

    def each(self, bound):
        return np.array([bound(X, B) for X, B in zip(self.parts, self.B, strict=True)])

    def metered(self, features):
        meter, begin, out = okl.theory.Meter(features, LAM), 0, []
        for t in self.at:
            meter.partial_fit(self.X[begin:t], self.y[begin:t])
            out.append(meter.read().effective_dimension)
            begin = t
        return {METER: np.array(out)}


def kernel_awv(s: Stream):
    _, curves = s.play(okl.KernelAWV(s.kernel, lam=LAM))
    first = s.each(lambda X, B: okl.theory.awv_bound(s.kernel, X, LAM, B))
    second = s.each(lambda X, B: B**2 * okl.theory.log_det_bound(s.kernel, X, LAM))
    return curves | {"Proposition 1": first, "Propositions 1 and 2": second} | s.dimension


def on_features(s: Stream, features):
    _, curves = s.play(okl.PKAWV(features, lam=LAM))
    third = s.each(lambda X, B: okl.theory.pkawv_bound(s.kernel, features, X, LAM, B))
    return curves | {"Theorem 3": third} | s.dimension | s.metered(features)


def nystrom(s: Stream):
    run, curves = s.play(okl.NystromAWV(s.kernel, lam=LAM, mu=MU))
    mu, sizes = np.maximum.accumulate(gaps(s, run.sizes)), run.sizes[s.at - 1].tolist()
    sixth = [
        okl.theory.nystrom_bound(s.kernel, X, LAM, m, size, B) if m <= LAM else np.nan
        for X, B, size, m in zip(s.parts, s.B, sizes, mu, strict=True)
    ]
    own = {OWN: run.certificate.regret[s.at - 1], "certificate": run.certificate.bound[s.at - 1]}
    features = okl.NystromFeatures(s.X[np.diff(run.sizes, prepend=0) > 0], s.kernel)
    return curves | {"Theorem 6": np.array(sixth)} | own | s.dimension | s.metered(features)


def gaps(s: Stream, sizes):
    """Return the largest |(I - P_t) C_t^1/2|^2 since the checkpoint before.

    For one dictionary it grows with t, so the last round of each dictionary is enough.
    """
    worst, joined = np.zeros(len(s.at)), np.flatnonzero(np.diff(sizes, prepend=0))
    for t in sorted({*joined[1:], *s.at}):  # rounds up to t have been played, x_t (from 0) has not
        atoms = okl.NystromFeatures(s.X[joined[joined < t]], s.kernel)
        gap = okl.theory.projection_gap(s.kernel, atoms, s.X[:t], method="lanczos")
        i = int(np.searchsorted(s.at, t))
        worst[i] = max(worst[i], gap * (1.0 + 1e-5))  # it is from below
    return worst


def kons(s: Stream):
    run, _ = s.play(okl.KONS(s.kernel, C=C, alpha=LAM))
    losses, out = np.cumsum(run.losses), []
    for X, t in zip(s.parts, s.at, strict=True):
        best = okl.theory.comparator(s.kernel, X, s.y[:t], LAM)
        scale = min(1.0, C / np.abs(best.predictions).max())  # then |f(x_t)| <= C
        fit = np.square(s.y[:t] - scale * best.predictions).sum()
        out.append(losses[t - 1] - fit - LAM * (scale * best.norm) ** 2)
    bound = s.each(lambda X, B: okl.theory.kons_bound(s.kernel, X, "squared", C, LAM))
    return {REGRET: np.array(out), "KONS Theorem 1": bound} | s.dimension


LEARNERS = {
    "Kernel-AWV": kernel_awv,
    f"PKAWV, Taylor, M = {DEGREE} centred": lambda s: on_features(s, okl.TaylorFeatures(
        DEGREE, sigma=s.kernel.sigma, center=s.X[:100].mean(axis=0))),
    "PKAWV, inputs known, KORS": lambda s: on_features(
        s, okl.KORS(s.kernel, alpha=MU).partial_fit(s.X).features()),
    "Nystrom-AWV": nystrom,
    "KONS": kons,
}  # fmt: skip
SHOWN = "Kernel-AWV", f"PKAWV, Taylor, M = {DEGREE} centred", "Nystrom-AWV"  # the csv has all
STYLES = {  # regrets are solid, bounds dashed
    REGRET: {"color": BLACK, "linewidth": 1.6},
    OWN: {"color": BLACK, "linewidth": 1.0, "marker": "o", "mfc": "white"},
    EXACT: {"color": "0.5", "linewidth": 1.0, "linestyle": ":"},
    METER: {"color": "0.5", "linewidth": 1.0, "linestyle": "none", "marker": "+"},
} | {
    name: {"linewidth": 1.0, "color": colour, "marker": marker, "linestyle": BOUND}
    for name, (colour, marker) in BOUNDS.items()
}


def report(s: Stream, label: str, curves):
    """Return the rows of the table, one a bound; stop if a regret exceeds its bound."""
    rows = []
    for name in BOUNDS:
        if name not in curves:
            continue
        regret = curves[OWN if name == "certificate" else REGRET]
        shares = regret / curves[name]
        known = shares[np.isfinite(shares)]
        if not len(known) or known.max() > 1.0:
            raise SystemExit(f"{s.name}, {label}: regret above {name}, or nothing is compared")
        rows.append({
            "data": s.name, "learner": label, "bound": name, "regret": f"{regret[-1]:.1f}",
            "its bound": f"{curves[name][-1]:.4g}" if np.isfinite(curves[name][-1]) else "-",
            "largest share": f"{known.max():.2g}", "d_eff": f"{curves[EXACT][-1]:.1f}",
            "meter": f"{curves[METER][-1]:.1f}" if METER in curves else "-",
        })  # fmt: skip
    return rows


def draw(rows):
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    figure, axes = okl.plots.figure(rows=len(SHOWN), columns=len(sets), row_height=2.1)
    for i, name in enumerate(sets):
        for ax, label in zip(axes[:, i], SHOWN, strict=True):
            own = {"dataset": name, "algorithm": label}
            for what, style in STYLES.items():
                at, values = collect(rows, "round", "value", curve=what, **own)
                if len(at):
                    ax.plot(at, values[0], label=what, markersize=3.5, **style)
            below = "rounds" if ax in axes[-1] else ""
            okl.plots.tidy(ax, below, "" if i else "squared losses", f"{name}: {label}", log="xy")
    return figure


def measure(args):
    """Return the rows of the csv and of the table."""
    numbers, table = [], []
    for name in SIGMA:
        s = Stream(name, QUICK_ROWS if args.quick else ROWS, args.limit)
        for label, play in LEARNERS.items():
            curves = play(s)
            table += report(s, label, curves)
            for what, values in curves.items():
                head = {"dataset": name, "algorithm": label, "curve": what}
                numbers += curve_rows(head, {"round": s.at, "value": values})
    return numbers, table


def main() -> None:
    args = common.parse_args(__doc__, limit=60.0, quick_limit=20.0, own=True)
    if args.data:
        SIGMA.clear()
        SIGMA.update({common.load_own(args): args.sigma})
    numbers, table = (args.rows, None) if args.rows else measure_whole(args.limit)
    publish(draw_whole(numbers), numbers, args, table, legend=4)
    args.stem = args.stem.replace("certificate", "regret_certificate", 1)
    args.rows = common.rows_to_redraw(args)
    numbers, table = (args.rows, None) if args.rows else measure(args)
    publish(draw(numbers), numbers, args, table, legend=2)


if __name__ == "__main__":
    main()
