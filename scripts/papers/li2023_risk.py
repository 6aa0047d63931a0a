"""Excess risk of one function drawn out of a run, against the number of examples.

Reproduces: nothing drawn in the paper; Theorem 3 of Li and Liao (2023), online-to-batch conversion
    of POMD, next to the methods that the paper names.
Missing: Theorem 3's second case, with removals (its bound: errata 62), and OSKL's own step.
Time: two minutes (--quick: up to 512 examples, some seconds).
"""

from math import log, sqrt

import numpy as np
from scipy.optimize import minimize
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, group, run_script
from scripts.looks import BLACK, BLUE, BOUND, GREEN, ORANGE, explain

SIZES, QUICK_SIZES = [2**k for k in range(5, 13)], [2**k for k in range(5, 10)]
STREAMS, QUICK_STREAMS = 24, 4
FLIPS = (0.0, 0.1)
LAM = 0.05  # of the third panel
KERNEL = okl.Gaussian(0.5)
POINTS = np.random.default_rng(1).uniform(-1.0, 1.0, (80, 2))
POINTS = POINTS[np.abs(POINTS.prod(axis=1)) > 0.1][:40]
SIGNS = np.sign(POINTS.prod(axis=1))
FEATURES = okl.NystromFeatures(POINTS, KERNEL)  # exact on the points
INVERSE = np.linalg.inv(KERNEL(POINTS))
U = sqrt(SIGNS @ INVERSE @ SIGNS)  # norm of the function that has the labels as its values
DRAWS = 20
POMD, SGD, MEAN = "POMD", "SGD, steps 1 / (lam t)", f"mean of {DRAWS} draws"
ERM, OSKL = "ERM", "OSKL"
ROOT = FEATURES.transform(POINTS)  # of the kernel matrix: values of w.z at the points are ROOT w


def draw_stream(T: int, flip: float, seed: int):
    rng = np.random.default_rng([seed, T])
    chosen = rng.integers(0, len(POINTS), T)
    return POINTS[chosen], np.where(rng.random(T) < flip, -1.0, 1.0) * SIGNS[chosen]


def risk(values, flip: float) -> float:
    right, wrong = (np.maximum(1.0 - s * SIGNS * values, 0.0) for s in (1.0, -1.0))
    return float(((1.0 - flip) * right + flip * wrong).mean())


def sgd(lam: float):
    return okl.WithFeatures(FEATURES, okl.OGD(schedule="strong", lam=lam, loss="hinge"))


def svm_bound(T: int, lam: float) -> float:
    """Return the bound that ``theory.svm_rounds`` solves for T, with R = 1."""
    return (4.5 + 4.0 * log(T)) / (lam * T)


def best_lam(T: int) -> float:
    """Return the lam with the least lam U^2 / 2 + svm_bound(T, lam)."""
    return sqrt(2.0 * (4.5 + 4.0 * log(T))) / (U * sqrt(T))


def minimise_empirical_risk(X, y, lam: float):
    """Return the values of argmin lam |f|^2 / 2 + mean of (1 - y f(x))_+, from its dual.

    The dual is max sum a - |sum a_i s_i z_i|^2 / (2 lam) over 0 <= a_i <= share of the examples
    that are at point i with the label s_i.
    """
    at = np.argmin(((X[:, None] - POINTS) ** 2).sum(axis=2), axis=1)
    shares = np.concatenate([np.bincount(at[y == s], minlength=len(POINTS)) for s in (1.0, -1.0)])
    Z = np.concatenate([ROOT, -ROOT])

    def dual(a):
        w = Z.T @ a / lam
        return lam / 2.0 * (w @ w) - a.sum(), Z @ w - 1.0

    bounds, options = [(0.0, share / len(y)) for share in shares], {"maxiter": 3000, "ftol": 1e-13}
    a = minimize(dual, np.zeros(len(Z)), jac=True, bounds=bounds, options=options).x
    return ROOT @ (Z.T @ a) / lam


def run_oskl(X, y, seed: int):
    """Return the values of the average of OSKL's functions, and how many examples it stores.

    Round t is stored with the probability |l'(y f(x))|, l the logistic loss, whose derivative is at
    most 1: f <- f + eta y k(x, .), then back to |f| <= U.
    """
    rng, eta, Z = np.random.default_rng([seed, 1]), U / sqrt(len(y)), FEATURES.transform(X)
    w, total, stored = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 0
    for z, label, coin in zip(Z, y, rng.random(len(y)), strict=True):
        total += w
        if coin < 1.0 / (1.0 + np.exp(label * (w @ z))):
            stored += 1
            w = w + eta * label * z
            w *= U / max(U, np.linalg.norm(w))
    return ROOT @ total / len(y), stored


def over_draws(learner, X, y, seed: int, excess):
    batch = okl.OnlineToBatch(learner, draws=DRAWS, seed=seed).fit(X, y)
    total = 0.0
    for t in range(len(y)):
        total += excess(learner.predict(POINTS))  # f_{t + 1}, which has seen t examples
        learner.partial_fit(X[t : t + 1], y[t : t + 1])
    return total / len(y), excess(batch.predict(POINTS))


def hinge_panel(flip: float, T: int, streams: int):
    found = []

    def excess(values) -> float:
        return risk(values, flip) - 2.0 * flip  # no function has less

    for seed in range(streams):
        X, y = draw_stream(T, flip, seed)
        pomd, lam = okl.POMD(KERNEL, radius=U, horizon=T), best_lam(T)
        own, averaged = over_draws(pomd, X, y, seed, excess)
        theirs, their_averaged = over_draws(sgd(lam), X, y, seed, excess)
        sparse, stored = run_oskl(X, y, seed)
        found.append({
            POMD: own,
            f"{POMD}, {MEAN}": averaged,
            "Theorem 3": okl.theory.pomdr_bound(KERNEL, X, y, U) / T,
            "Theorem 2": okl.theory.pomdr_data_bound(pomd.diary.alignment, U) / T,
            SGD: theirs,
            f"{SGD}, {MEAN}": their_averaged,
            "Theorem 4": lam * U**2 / 2.0 + svm_bound(T, lam),
            ERM: round(excess(minimise_empirical_risk(X, y, lam)), 5),  # as far as its solver goes
            OSKL: excess(sparse),
            "OSKL, stored": float(stored),
            "A_T / T": okl.theory.kernel_alignment(KERNEL, X, y) / T,
            "sum of delta": pomd.diary.alignment,
        })  # fmt: skip
    return found


def regularised(values) -> float:
    """Return lam / 2 |f|^2 + hinge risk of the function in the span that has these values."""
    return LAM / 2.0 * (values @ INVERSE @ values) + risk(values, FLIPS[1])


def svm_panel(T: int, streams: int, least: float):
    found = []
    for seed in range(streams):
        X, y = draw_stream(T, FLIPS[1], seed)
        one, averaged = over_draws(sgd(LAM), X, y, seed, lambda v: regularised(v) - least)
        row = {SGD: one, f"{SGD}, {MEAN}": averaged, "Theorem 4": svm_bound(T, LAM)}
        found.append(row | {ERM: regularised(minimise_empirical_risk(X, y, LAM)) - least})
    return found


def least_regularised() -> float:
    """Return the least lam / 2 |f|^2 + hinge risk, each point standing ten times, once flipped."""
    X, y = np.repeat(POINTS, 10, axis=0), np.repeat(SIGNS, 10)
    y[::10] *= -1.0
    best = okl.theory.comparator(KERNEL, X, y, LAM * len(y) / 2.0, loss="hinge")
    return LAM / 2.0 * best.norm**2 + best.loss / len(y)


OURS, THEIRS = {"color": BLUE}, {"color": BLACK}
LOOKS = {  # and the names
    POMD: OURS | {"linestyle": "-", "marker": "o", "label": "POMD, one draw"},
    SGD: THEIRS | {"linestyle": "-", "marker": "^", "label": "SGD, one draw"},
    "Theorem 4": THEIRS | {"linestyle": BOUND, "label": "bound: SGD, Theorem 4"},
    ERM: {"color": GREEN, "linestyle": "-.", "marker": "D", "label": "ERM, the lam of SGD"},
    OSKL: {"color": ORANGE, "linestyle": "--", "marker": "s", "label": "OSKL, average"},
}
BOUND_OF = {"Theorem 2": POMD, "Theorem 3": POMD, "Theorem 4": SGD}


def table(title: str, sizes, measure):
    rows = []
    for T in tqdm(sizes, desc=title, disable=None):
        found = okl.Table(measure(T))
        means = {name: found[name].mean() for name in found.columns}
        for bound, of in BOUND_OF.items():
            if bound in means and means[of] > means[bound]:
                raise SystemExit(f"{title}, T = {T}: {of} is above {bound}")
        for name, mean in means.items():
            error = np.std(found[name], ddof=1) / sqrt(len(found))
            rows.append({"panel": title, "T": T, "what": name, "mean": mean,
                         "standard_error": f"{error:.3g}"})  # fmt: skip
    return rows


def draw(rows):
    figure, axes = okl.plots.figure(rows=1, columns=3, row_height=2.8)
    labels = "excess hinge risk", "", "excess regularised risk"
    for ax, own, label in zip(axes[0], group(rows, "panel").values(), labels, strict=True):
        draw_panel(ax, own, label)
    explain(axes[0, 0], "0 or below", marker="v", linestyle="", markersize=4.5)
    return figure


def draw_panel(ax, rows, ylabel: str) -> None:
    for name, look in LOOKS.items():
        sizes, means, errors = collect(rows, "T", "mean", "standard_error", what=name)
        if not len(sizes):
            continue
        ax.errorbar(sizes, means[0], 2.0 * errors[0], markersize=3, linewidth=1.2, **look)
    (T, low), (_, high) = (collect(rows, "T", "mean", what=f"Theorem {k}") for k in (2, 3))
    if len(T):
        name = "bounds: POMD, Theorems 2 to 3"
        ax.fill_between(T, low[0], high[0], color=BLUE, alpha=0.2, lw=0, label=name)
    okl.plots.tidy(ax, "examples T", ylabel, rows[0]["panel"], log="xy")


def measure(args) -> list[dict]:
    sizes, streams = (QUICK_SIZES, QUICK_STREAMS) if args.quick else (SIZES, STREAMS)
    panels = []
    for flip in FLIPS:
        title = "no noise" if flip == 0.0 else f"{100 * flip:.0f} % of labels flipped"
        panels.append(table(title, sizes, lambda T, flip=flip: hinge_panel(flip, T, streams)))
    least = least_regularised()
    title = f"lam = {LAM:g}, {100 * FLIPS[1]:.0f} % flipped"
    panels.append(table(title, sizes, lambda T: svm_panel(T, streams, least)))
    return sum(panels, [])


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (600.0, 60.0), legend=3)
