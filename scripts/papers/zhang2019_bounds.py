"""Measured regret, or mistakes, against the bound of its theorem, for every algorithm of the notes.

Reproduces: nothing published; Theorems 1 to 6, Corollary 1 and footnote 1 of Zhang's lecture notes
    (2019), with errata 42 to 46: random gradients, sparse ones, and an adversary.
Missing: nothing.
Time: about half a minute.
"""

from collections.abc import Callable
from math import log, sqrt
from typing import NamedTuple

import numpy as np

import oklnumba as okl
from scripts.common import collect, curve_rows, last_rows, run_script
from scripts.looks import BLACK, BLUE, BOUND, ORANGE, explain, use_symlog

D = 20
LAM = 0.5
STREAMS = ("random", "sparse", "adversarial")


class Panel(NamedTuple):
    """An algorithm: how to make it with a step, its bound with it, and its comparator set."""

    title: str
    make: Callable[[float], okl.oco.LinearLearner]
    bound: Callable[[np.ndarray, np.ndarray, float], float]
    kind: str  # "ball", "p", "simplex", "strong", "exp-concave"


P, SQRT2 = 1.2, sqrt(2.0)
ALPHA = okl.theory.exp_concave_rate(1.0, 1.0, 2.0)


def step(kind: str, n: int) -> float:
    """Return the step of oco section 2.3 for n rounds and B = R = 1; 0 for other kinds."""
    steps = {"ball": 1 / sqrt(2 * n), "p": sqrt((P - 1) / (2 * n)), "simplex": sqrt(log(D) / n)}
    return steps.get(kind, 0.0)


def adaptive(title: str, kind: str) -> Panel:
    bound = okl.theory.adaptive_ftrl_bound
    return Panel(title, lambda _: okl.AdaptiveFTRL(kind, eta=1.0),
                 lambda g, w, _: bound(g, w, kind, 1.0), "ball")  # fmt: skip


PANELS = [
    Panel("OGD", lambda eta: okl.OGD(eta), okl.theory.ogd_bound, "ball"),
    Panel("LazyOGD", lambda eta: okl.LazyOGD(eta), okl.theory.ogd_bound, "ball"),
    Panel(f"PNorm, p = {P}", lambda eta: okl.PNorm(eta, p=P),
          lambda g, w, eta: okl.theory.p_norm_bound(g, w, eta, P), "p"),
    Panel("Hedge", lambda eta: okl.Hedge(eta), okl.theory.exponentiated_gradient_bound, "simplex"),
    adaptive("FTRL, steps 1/sqrt(t)", "sqrt"),
    adaptive("FTRL, by lengths", "gradient"),
    Panel("OGD, by lengths", lambda _: okl.OGD(SQRT2, schedule="gradient", radius=1.0),
          lambda g, w, _: okl.theory.gradient_steps_bound(g, w, SQRT2, 1.0), "ball"),
    adaptive("AdaGrad, diagonal", "adagrad"),
    adaptive("AdaGrad, full", "adagrad_full"),
    Panel("StronglyConvex", lambda _: okl.StronglyConvexFTRL(LAM),
          lambda g, w, _: okl.theory.strongly_convex_bound(g, w, LAM), "strong"),
    Panel("OGD, 1 / (lam t)", lambda _: okl.OGD(schedule="strong", lam=LAM),
          lambda g, w, _: okl.theory.ogd_strong_bound(g, LAM), "strong"),
    Panel("ExpConcave, simplex",
          lambda _: okl.ExpConcaveFTRL(ALPHA, lipschitz=2.0, domain="simplex"),
          lambda g, w, _: okl.theory.exp_concave_bound(g, w, ALPHA, 2.0), "exp-concave"),
]  # fmt: skip


def gradient(stream: str, t: int, w, G, kind: str, rng):
    """Return the gradient of the linear part of round t, of 2-norm at most 1."""
    # On a simplex some coordinates are better than others. Elsewhere nothing is to be learnt:
    # points without a domain would leave the comparators' ball, to a negative regret.
    simplex = kind in ("simplex", "exp-concave")
    if stream == "random":
        g = rng.standard_normal(D) + simplex * 0.3 * np.arange(D) / D
        return g / np.linalg.norm(g)
    if stream == "sparse":
        j = min(int(rng.exponential(2.0)), D - 1)
        return np.eye(D)[j] * rng.choice([-0.6 if simplex else -1.0, 1.0])
    if simplex:
        return np.eye(D)[int(np.argmax(w))]  # a loss for the heaviest expert
    # Orthogonal to the sum of gradients, which then grows like sqrt(t), and never to w's advantage.
    g = rng.standard_normal(D)
    if G.any():
        g -= (g @ G) / (G @ G) * G
    g /= np.linalg.norm(g)
    return g if g @ w >= 0 else -g


def best(kind: str, G, t: int):
    """Return the best comparator for the linear losses <G, w> (plus t lam |w|^2 / 2)."""
    if kind == "ball":
        return -G / max(np.linalg.norm(G), 1e-300)
    if kind == "p":
        return okl.oco.squared_p_norm(1.0, P).mirror_map(-G) / max(okl.oco.p_norm(G, 6.0), 1e-300)
    if kind == "strong":
        return -G / (LAM * t)
    return np.eye(len(G))[int(np.argmin(G))]


def play_linear(panel: Panel, stream: str, n: int, rounds):
    rng = np.random.default_rng(0)
    eta = step(panel.kind, n)
    learner = panel.make(eta).reset(D)
    points, linear, gradients = np.empty((n, D)), np.empty((n, D)), np.empty((n, D))
    G = np.zeros(D)
    for t in range(n):
        points[t] = learner.w
        linear[t] = gradient(stream, t, points[t], G, panel.kind, rng)
        G = G + linear[t]
        gradients[t] = linear[t] + (LAM * points[t] if panel.kind == "strong" else 0.0)
        learner.update(gradients[t])
    rows = []
    for t in rounds:
        w = best(panel.kind, linear[:t].sum(axis=0), t)
        moves = points[:t] - w
        terms = (gradients[:t] * moves).sum(axis=1)
        if panel.kind == "strong":
            terms -= LAM / 2 * (moves**2).sum(axis=1)
        if panel.kind == "exp-concave":  # the regret on the quadratic minorants of Lemma 6
            terms -= ALPHA / 2 * terms**2
        rows.append((t, terms.sum(), panel.bound(gradients[:t], w, eta)))
    return rows


def play_mistakes(name: str, stream: str, n: int, rounds):
    """Play a separable stream; return round, mistakes and their bound at some rounds."""
    rng = np.random.default_rng(0)
    sparse = name == "Winnow"
    truth = np.eye(D)[0] if sparse else np.ones(D) / sqrt(D)
    margin = 1.0 if sparse else 0.1

    def draw(count: int):
        if sparse:  # entries -1, 0 and 1; the first is the label
            X = rng.choice([-1.0, 1.0], size=(count, D))
            if stream == "sparse":
                X[:, 1:] *= rng.uniform(size=(count, D - 1)) < 0.1
            return X
        X = rng.standard_normal((count, D))
        if stream == "sparse":
            X *= rng.uniform(size=X.shape) < 0.2
        X -= np.outer(X @ truth, truth)
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
        side = rng.choice([-1.0, 1.0], size=(count, 1))
        return sqrt(1 - margin**2) * X + margin * side * truth

    learner = (okl.Winnow(0.5) if sparse else okl.Perceptron()).reset(D)
    X = np.empty((n, D))
    wrong = np.empty(n, dtype=bool)
    for t in range(n):
        points = draw(50 if stream == "adversarial" else 1)
        labels = np.sign(points @ truth)
        worst = int(np.argmin(labels * (points @ learner.w)))  # the adversary's choice
        X[t] = points[worst]
        wrong[t] = labels[worst] * (X[t] @ learner.w) <= 0
        learner.learn_one(X[t], labels[worst])
    y = np.sign(X @ truth)
    bound = okl.theory.winnow_bound if sparse else okl.theory.perceptron_bound
    return [(t, float(wrong[:t].sum()), bound(X[:t], y[:t], truth / margin, 0.5)) for t in rounds]


SHOWN = ("OGD", "Hedge", "AdaGrad, diagonal", "StronglyConvex", "ExpConcave, simplex", "Perceptron")
LOOKS = ((BLACK, "-", "o"), (ORANGE, "-", "s"), (BLUE, "-", "^"))  # of STREAMS


def draw(rows):
    fig, axes = okl.plots.figure(rows=2, columns=3, row_height=1.9)
    for ax, name in zip(axes.flat, SHOWN, strict=True):
        lowest = 0.0
        for stream, (colour, dashes, marker) in zip(STREAMS, LOOKS, strict=True):
            own = {"algorithm": name, "stream": stream}
            t, measured, bound = collect(rows, "round", "measured", "bound", **own)
            style = {"color": colour, "marker": marker, "markersize": 3, "markevery": 4}
            ax.plot(t, measured[0], dashes, label=stream, linewidth=1.1, **style)
            ax.plot(t, bound[0], linestyle=BOUND, linewidth=0.9, **style)
            lowest = min(lowest, 1.5 * measured.min())
        ax.set_xscale("log")
        use_symlog(ax, 1.0)
        ax.set_ylim(bottom=lowest)
        ylabel = "mistakes" if name == "Perceptron" else "regret" if ax in axes[:, 0] else ""
        okl.plots.tidy(ax, "rounds" if ax in axes[1] else "", ylabel, name, log="x", small=1.0)
    explain(axes[0, 0], "measured", linestyle="-")
    explain(axes[0, 0], "bound", linestyle=BOUND, linewidth=0.9)
    return fig


def measure(args) -> list[dict]:
    n = 300 if args.quick else 5000
    rounds, numbers = okl.plots.thin(n, points=25), []
    plays = [(panel.title, panel) for panel in PANELS] + [("Perceptron", None), ("Winnow", None)]
    for name, panel in plays:
        for stream in STREAMS:
            played = play_linear(panel, stream, n, rounds) if panel else play_mistakes(
                name, stream, n, rounds)  # fmt: skip
            _, measured, bound = np.array(played).T
            if (measured > bound * (1 + 1e-9)).any():
                raise SystemExit(f"{name}, {stream}: above its bound")
            curve = {"round": rounds, "measured": measured, "bound": bound}
            numbers += curve_rows({"algorithm": name, "stream": stream}, curve)
    return numbers


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (60.0, 5.0), last_rows, legend=5, but=("round",))
