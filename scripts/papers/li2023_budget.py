"""Theorem 1 of Li and Liao (2023): the dictionary that ALD keeps, against the number of rounds.

Reproduces: nothing drawn in the paper; sizes of POMD's dictionary beside the theorem's two curves
    and the assumption-free bound of its proof.
Missing: nothing.
Time: about a minute, most of it eigenvalues (--quick: up to 400 rounds, a few seconds).
"""

from itertools import product

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, run_script
from scripts.looks import BOUND, GREEN, RATE, THEORY, VERMILLION, look

ROUNDS = (100, 200, 400, 800, 1600, 3200)
QUICK_LARGEST = 400
SEEDS = 5
ZETA = 1.0  # as in Theorem 2: ALD holds where the distance is at most 1 / T
PANELS = (
    ("exponential decay: Gaussian, d = 1", okl.Gaussian(1.0), 1),
    ("faster than polynomial: Gaussian, d = 3", okl.Gaussian(1.0), 3),
    ("polynomial decay, p = 6: Matern 5/2, d = 1", okl.Matern(2.5, sigma=1.0), 1),
    ("polynomial decay, p = 2: Laplacian, d = 1", okl.Laplacian(1.0), 1),
)
LINES = {  # column: name and look
    "size": ("dictionary of POMD", look("POMD")),
    "sharp_bound": ("bound of the proof, no fit", THEORY | {"linestyle": BOUND}),
    "exponential_bound": ("Theorem 1, exponential fit", {"color": VERMILLION, "linestyle": BOUND}),
    "polynomial_bound": ("Theorem 1, polynomial fit", {"color": GREEN, "linestyle": "-."}),
    "T": ("T, all points", THEORY | {"linestyle": RATE}),
}


def play(kernel, d: int, T: int):
    """Return sizes of dictionaries over some streams, and the bounds for the first stream."""
    sizes = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1, 1, (T, d)), rng.choice([-1.0, 1.0], T)
        learner = okl.POMD(kernel, radius=5.0, zeta=ZETA, horizon=T).partial_fit(X, y)
        bound = okl.theory.ald_budget_bound(kernel, X, float(T) ** (-2 * ZETA))
        sizes.append(learner.size)
        if learner.size > bound.size:
            raise SystemExit(f"{kernel}, T = {T}: {learner.size} atoms, the bound is {bound.size}")
        if T > 1000:  # the spectrum hardly differs from stream to stream
            break
    return sizes, bound


def measure(args) -> list[dict]:
    rows, rounds = [], [T for T in ROUNDS if not args.quick or T <= QUICK_LARGEST]
    for (name, kernel, d), T in tqdm([*product(PANELS, rounds)], disable=None):
        sizes, bound = play(kernel, d, T)
        rows.append({
            "panel": name, "T": T, "size": f"{np.mean(sizes):.1f}", "sharp_bound": bound.size,
            "exponential_bound": f"{bound.exponential:.1f}",
            "polynomial_bound": f"{bound.polynomial:.1f}", "fitted_r": f"{bound.r:.4f}",
            "fitted_p": f"{bound.p:.2f}", "15_ln_T": f"{15 * np.log(T):.0f}",
        })  # fmt: skip
    return rows


def draw(rows):
    figure, axes = okl.plots.figure(rows=2, columns=2, row_height=2.4)
    for (name, *_), ax in zip(PANELS, axes.flat, strict=True):
        for key, (label, style) in LINES.items():
            T, values = collect(rows, "T", key, panel=name)
            ax.plot(T, values[0], label=label, markersize=3.5, **style)
        ax.set_ylim(3, 4 * max(row["T"] for row in rows))
        place = ax.get_subplotspec()
        below, left = "T (rounds)" * place.is_last_row(), "atoms" * place.is_first_col()
        okl.plots.tidy(ax, below, left, name, log="xy", small=1.0)
        ax.set_xticks(T, [str(t) for t in T])
    return figure


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (600.0, 60.0), legend=3)
