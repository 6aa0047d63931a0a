"""What the scripts of Calandriello, Lazaric, Valko (ICML 2017) share."""

import numpy as np
import scipy.linalg

import oklnumba as okl
from scripts.common import available, group, parse_args, publish, sweep

C, ALPHA = 1.0, 1.0
SIGMA = 1.0 / (8.0 * C**2)  # the curvature of the squared loss
ROWS, QUICK_ROWS = 4000, 1200  # of gamma and weights
SEEDS, QUICK_SEEDS = 5, 2
BUNDLED = {"casp": 1.0, "magic04": 2.0}  # and the width of the Gaussian kernel on each
SETS = BUNDLED | {"ijcnn1": 1.0}
ITERATIONS = 400  # of competitor, at most


def competitor(kernel, X, y, C: float = 1.0, alpha: float = 1.0):
    """Return values and norm of argmin sum (y - f)^2 + alpha |f|^2 over f with |f(x_t)| <= C.

    Its dual is a lasso: f is the ridge fit to y - v, with v sparse; proximal gradient steps of
    length 1 with momentum. What is left of |f| above C (well below 1 %) is then scaled away.
    """
    K = kernel(X)
    K[np.diag_indices_from(K)] += alpha
    factor = scipy.linalg.cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    v = ahead = np.zeros(len(y))
    for k in range(ITERATIONS):
        fit = (y - ahead) - alpha * scipy.linalg.cho_solve(factor, y - ahead, check_finite=False)
        old, v = v, ahead + fit - np.clip(ahead + fit, -C, C)
        ahead = v + k / (k + 3.0) * (v - old)
        if k % 10 == 0 or k == ITERATIONS - 1:
            a = scipy.linalg.cho_solve(factor, y - v, check_finite=False)
            f = (y - v) - alpha * a
            if np.abs(f).max() <= 1.001 * C:
                break
    scale = min(1.0, C / np.abs(f).max())
    return scale * f, scale * float(np.sqrt(max(a @ f, 0.0)))


def signed_R_D(learner, run, y, best):
    """Return R_D, and what the rounds have above their weight sigma l'^2 in A, a_t - sigma l'^2."""
    above = learner.A_weights - SIGMA * 4.0 * np.square(run.predictions - y)
    return float((above * np.square(run.predictions - best)).sum()), above


def play(name: str, data, jobs, args, measure, **options) -> list[dict]:
    """Return what a sweep has of each job (label, gamma or None, seed, learner), in their order."""
    lines = {f"{label}, gamma = {gamma}, seed {seed}": one for label, gamma, seed, one in jobs}
    table = sweep(lines, {name: data}, 0, args.limit, measure=measure, **options)
    heads = [{"dataset": name, "algorithm": label, "gamma": gamma, "seed": seed}
             for label, gamma, seed, _ in jobs]  # fmt: skip
    return [row | head for row, head in zip(table, heads, strict=True) if row["finished"]]


def reproduce(doc, panels: int, measure, draw, *columns: str) -> None:
    args = parse_args(doc, limit=60.0, quick_limit=8.0)
    args.seeds = range(QUICK_SEEDS if args.quick else SEEDS)
    numbers = list(args.rows)
    for name in () if numbers else available(SETS):
        numbers += measure(name, SETS[name], QUICK_ROWS if args.quick else ROWS, args)
    sets = group(numbers, "dataset")
    fig, axes = okl.plots.figure(rows=panels, columns=len(sets), row_height=1.9)
    for i, (name, rows) in enumerate(sets.items()):
        draw(list(axes[:, i]), name, rows)
        for ax in axes[:, i] if i else ():
            ax.set_ylabel("")
    by = ["dataset", "algorithm", "gamma"]
    table = None if args.rows else okl.Table(numbers).mean(by)[[*by, *columns]]
    publish(fig, numbers, args, table, legend=2)
