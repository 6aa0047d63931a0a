"""What the scripts of Calandriello, Lazaric, Valko (ICML 2017) share."""

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from common import arguments, at_hand, print_table, rounded, save

import oklnumba as okl
from oklnumba import plots
from oklnumba.learners.learner import Learner

C, ALPHA = 1.0, 1.0
ROWS, QUICK_ROWS = 4000, 1200  # of gamma and weights
SEEDS, QUICK_SEEDS = 5, 2
MORE = {"ijcnn1": 1.0}
BUNDLED = {"casp": 1.0, "magic04": 2.0}  # and the width of the Gaussian kernel on each
ITERATIONS = 400  # of competitor, at most


def here(more: dict[str, float]) -> tuple[dict[str, float], bool]:
    """Return the bundled sets and those of ``more`` that are here, and whether some are missing."""
    sets = BUNDLED | more
    names = at_hand(sets)
    return {name: sets[name] for name in names}, len(names) < len(sets)


def competitor(
    kernel: okl.Gaussian, X: np.ndarray, y: np.ndarray, C: float = 1.0, alpha: float = 1.0
) -> tuple[np.ndarray, float]:
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


def play(
    name: str, data: tuple[np.ndarray, np.ndarray], jobs: list[tuple], args: argparse.Namespace,
    measure: Callable[[Learner, okl.Run], dict], **options: Any,
) -> list[dict]:  # fmt: skip
    """Return what a sweep has of each job (label, gamma or None, seed, learner), in their order."""
    lines: dict[str, list[Learner]] = {}
    for label, _, _, learner in jobs:
        lines.setdefault(label, []).append(learner)
    table = okl.sweep(lines, {name: data}, 0, measure=measure, time_limit=args.limit,
                      progress=True, **options)  # fmt: skip
    found = {(row["learner"], row["setting"]): row for row in table}
    rows, seen = [], Counter()
    for label, gamma, seed, _ in jobs:
        row = found[label, seen[label]]
        seen[label] += 1
        if row["error"] or not row["finished"]:
            why = row["error"] or f"it needs more than {args.limit} s"
            print(f"{name}, {label}, gamma = {gamma}: left out, {why}")
            continue
        head = {"dataset": name, "algorithm": label, "gamma": gamma, "seed": seed}
        rows.append(row | head)
    return rows


def reproduce(
    doc: str | None, stem: str, panels: int, measure: Callable, draw: Callable, *told: str
) -> None:
    """Make the figure of gamma or weights, a column a data set; print means of ``told``."""
    args = arguments(doc or "", limit=60.0, quick_limit=8.0)
    sets, partial = here(MORE)
    fig, axes = plots.figure(rows=panels, columns=len(sets), width=7.2, row_height=2.1)
    numbers: list[dict] = []
    for i, (name, sigma) in enumerate(sets.items()):
        rows = measure(name, sigma, QUICK_ROWS if args.quick else ROWS, args)
        draw(list(axes[:, i]), name, rows)
        numbers += rows
    plots.shared_legend(fig, columns=2)
    save(fig, [rounded(row) for row in numbers], args, stem, partial)
    by = ["dataset", "algorithm", "gamma"]
    print_table(list(okl.Table(numbers).mean(by)[[*by, *told]]))
