"""Rates of regret against the size of the dictionary: what the theory promises.

Reproduces: Figure 1 of Jezequel, Gaillard, Rudi (2019): regret n^b with n^a atoms, d_eff(lam) = (n
    / lam)^gamma, lam tuned. It stops if a curve misses the published marks.
Missing: nothing that is marked in the published figure.
Time: a second.
"""

from math import sqrt

import numpy as np

import oklnumba as okl
from scripts.common import curve_rows, parse_args, publish
from scripts.looks import BLUE, GREEN, ORANGE, VERMILLION

GAMMAS = {0.25: "0.25", sqrt(2.0) - 1.0: "sqrt(2) - 1", 0.75: "0.75"}
POINTS = 2001
AS_PUBLISHED = "Pros-N-KONS, as published"
NAMES = ("Sketched-KONS", "Pros-N-KONS", "PKAWV", "PKAWV (beforehand features)")
STYLES = (  # wide lines below narrow ones: two curves run on one another for a while
    {"color": ORANGE, "linestyle": "-", "linewidth": 3.2},
    {"color": VERMILLION, "linestyle": "--", "linewidth": 2.5},
    {"color": GREEN, "linestyle": "-.", "linewidth": 1.9},  # by a Nystrom dictionary
    {"color": BLUE, "linestyle": ":", "linewidth": 1.6},
)
SIDES = {"2g/(1+g)": "right", "2g/(1-g^2)": "left"}  # of the marks of a, where a name stands


def marks(gamma: float):
    """Return the published marks of the axes, and the lowest value that eq. (8) has."""
    return {
        "2g/(1+g)": 2.0 * gamma / (1.0 + gamma),
        "2g/(1-g^2)": 2.0 * gamma / (1.0 - gamma**2),
        "g/(1+g)": gamma / (1.0 + gamma),
        "4g/(1+g)^2": 4.0 * gamma / (1.0 + gamma) ** 2,
        "g(3+g)/(1+g)^2": gamma * (3.0 + gamma) / (1.0 + gamma) ** 2,
    }


def check(gamma: float, found):
    """Stop if a curve is not where the marks say; return what was compared."""
    a, at, step = found["a"], marks(gamma), 1.0 / (POINTS - 1)
    best = at["g/(1+g)"]
    known, pkawv = (  # the smallest a with the optimal rate, 1 if no a has it
        a[found[name] <= best + 1e-9].min(initial=1.0) for name in (NAMES[3], NAMES[2])
    )
    lowest = float(found["Pros-N-KONS"].min())
    stop = 2.0 * gamma * (1.0 - gamma) / (1.0 + gamma) ** 2
    there = float(np.interp(stop, a, found["Pros-N-KONS"]))
    near = (
        abs(known - at["2g/(1+g)"]) <= step,
        abs(pkawv - min(at["2g/(1-g^2)"], 1.0)) <= step,
        abs(lowest - at["g(3+g)/(1+g)^2"]) <= 2.0 * step,
        abs(there - at["4g/(1+g)^2"]) <= 2.0 * step,
    )
    if not all(near):
        raise SystemExit(f"gamma = {gamma:.3f}: a curve misses a published mark: {near}")
    return {
        "gamma": GAMMAS[gamma], "optimal rate": f"{best:.3f}",
        "reached beforehand at a": f"{known:.3f}",
        "by PKAWV at a": f"{pkawv:.3f}" if at["2g/(1-g^2)"] < 1.0 + step else "-",
        "PKAWV at a = 1": f"{found['PKAWV'][-1]:.3f}",
        "Pros-N-KONS, published": f"{at['4g/(1+g)^2']:.3f}", "eq. (8)": f"{lowest:.3f}",
    }  # fmt: skip


def main() -> None:
    args = parse_args(__doc__, limit=10.0, quick_limit=8.0)
    fig, axes = okl.plots.figure(columns=3, row_height=3.6)
    numbers, table = [], []
    for ax, gamma in zip(axes[0], GAMMAS, strict=True):
        found, at = okl.theory.rates(gamma, POINTS), marks(gamma)
        table.append(check(gamma, found))
        for name, style in zip(NAMES, STYLES, strict=True):
            label = f"{name}, eq. (8)" if name == "Pros-N-KONS" else name
            ax.plot(found["a"], found[name], label=label, **style)
        found[AS_PUBLISHED] = np.maximum(found["Pros-N-KONS"], at["4g/(1+g)^2"])
        ax.plot(
            found["a"], found[AS_PUBLISHED], label=AS_PUBLISHED, linewidth=0.9, marker="o",
            markersize=3.0, markevery=POINTS // 25, color=VERMILLION,
        )  # fmt: skip
        at = {"0": 0.0, "1": 1.0} | {k: v for k, v in at.items() if v < 0.97}  # 0.98 is too near 1
        x = {k: v for k, v in at.items() if k in ("0", "1", *SIDES)}
        y = {k: v for k, v in at.items() if k not in SIDES}
        ax.set_xticks(list(x.values()), [_fraction(k) for k in x])
        if SIDES.keys() <= x.keys():  # two marks that are near each other
            for name, text in zip(x, ax.get_xticklabels(), strict=True):
                text.set_horizontalalignment(SIDES.get(name, "center"))
        ax.set_yticks(list(y.values()), [_fraction(k) for k in y])
        ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.04))
        title = f"$\\gamma$ = {GAMMAS[gamma].replace('sqrt(2)', '√2')}"
        okl.plots.tidy(ax, "a: the dictionary has $n^a$ atoms", text=title, small=0.0)
        curves = {name: found[name][::20] for name in ("a", *NAMES, AS_PUBLISHED)}
        numbers += curve_rows({"gamma": gamma}, curves)
    axes[0, 0].set_ylabel("b: the regret is of order $n^b$", fontsize=okl.plots.FONT)
    publish(fig, numbers, args, table, legend=3)


def _fraction(text: str) -> str:
    if "/" not in text:
        return text
    above, below = (part.replace("g", r"\gamma ") for part in text.split("/"))
    if below.startswith("(") and below.endswith(")"):
        below = below[1:-1]
    return rf"$\frac{{{above}}}{{{below}}}$"


if __name__ == "__main__":
    main()
