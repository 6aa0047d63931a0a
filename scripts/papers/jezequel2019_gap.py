"""Is there a gap between known and revealed inputs? Exponents of regret against a greedy adversary.

Reproduces: nothing published; the question after Corollary 8 of Jezequel, Gaillard, Rudi (2019).
Missing: the worst case. The adversary looks one round ahead; it sees all but the coin of the round.
Time: eleven minutes (--quick: up to 512 rounds, two seeds, some seconds).
"""

import warnings
from itertools import product
from unittest.mock import patch

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.common import collect, fit_exponent, run_script
from scripts.looks import BOUND, look

SIZES, QUICK_SIZES = [2**k for k in range(7, 13)], [2**k for k in range(6, 10)]
SEEDS, QUICK_SEEDS, OTHER_SEEDS = range(6), range(2), 1000
MORE_SEEDS = dict.fromkeys((0.3, 0.4), range(18))  # by a: where the gap is in doubt
POWERS = (0.2, 0.3, 0.4, 0.5, 0.6)  # a
GAMMA, KERNEL = 0.25, okl.Matern(1.5, sigma=1.0)
BEST = GAMMA / (1.0 + GAMMA)
GRID = np.linspace(-1.0, 1.0, 401)[:, None]
EVERYWHERE, LABELS = np.arange(len(GRID)), np.array([[-1.0], [1.0]])
CHECKED = 512  # rounds up to which a game is added up in another way
CHOSEN, REVEALED = "Nystrom-AWV, inputs chosen against it", "Nystrom-AWV, the same inputs"
KNOWN, EXACT = "PKAWV, the same inputs, known", "Kernel-AWV, the same inputs"
LOOKS = {
    CHOSEN: look("Nystrom") | {"linestyle": "-"},
    REVEALED: look("Nystrom") | {"linestyle": "-", "mfc": "white"},
    KNOWN: look("PKAWV"),
    EXACT: look("Kernel-AWV"),
}


class Adversary:
    """The greedy game of ``okl.adversary`` on a grid: ridge regression there, O(grid^2) a round.

    mean and C are the forecasts, and lam times their covariance, at the points of the grid.
    """

    def __init__(self, lam: float):
        self.lam, self.mean, self.C = lam, np.zeros(len(GRID)), KERNEL(GRID)

    def gains(self, forecasts, at):
        """Return what points and labels add to the regret, (2, points)."""
        share = self.lam / (self.lam + self.C[at, at])
        return (LABELS - forecasts) ** 2 - (LABELS - self.mean[at]) ** 2 * share

    def learn(self, i: int, y: float) -> None:
        step = self.C[:, i] / (self.lam + self.C[i, i])
        self.mean += step * (y - self.mean[i])
        self.C -= np.outer(step, self.C[i])

    def exact(self, at):
        """Return the forecasts of Kernel-AWV: ridge regression with one more label 0."""
        return self.mean[at] * self.lam / (self.lam + self.C[at, at])


def forecast_blind(learner):
    """Return forecasts on the grid as if the coin of the round kept nothing."""
    if learner.rounds == 0:
        return np.zeros(len(GRID))
    with patch.object(vars(learner)["_coins"], "next", 1.0):  # no atom joins
        return learner.predict(GRID)


def play(learner, lam: float, n: int, given=None):
    """Return regret and points of a game; given (n,): the points; a learner of None is exact."""
    game, regret, points, labels = Adversary(lam), 0.0, np.empty(n, dtype=int), np.empty(n)
    for t in range(n):
        if given is None:
            points[t] = game.gains(forecast_blind(learner), EVERYWHERE).max(axis=0).argmax()
        else:
            points[t] = given[t]
        at = points[t : t + 1]
        gains = game.gains(learner.predict(GRID[at]) if learner else game.exact(at), at)[:, 0]
        labels[t] = LABELS[gains.argmax(), 0]
        regret += gains.max()
        game.learn(points[t], labels[t])
        if learner:
            learner.learn_one(GRID[points[t]], labels[t])
    if learner and n <= CHECKED:  # what rounds add is the regret
        best = okl.theory.comparator(KERNEL, GRID[points], labels, lam)
        with warnings.catch_warnings(action="ignore"):  # the adversary repeats its labels
            losses = okl.run(learner.reset(), GRID[points], labels, loss="squared").losses.sum()
        if not np.isclose(losses - best.loss - lam * best.norm**2, regret, rtol=1e-6):
            raise SystemExit(f"{learner}: the game does not add up")
    return regret, points


def calibrate(n: int, m: int) -> float:
    """Return the mu with which KORS keeps m of n random inputs, on average."""
    X = GRID[np.random.default_rng(0).integers(len(GRID), size=n)]
    low, high = 1e-9, 10.0 * n
    for _ in range(18):
        mu = (low * high) ** 0.5
        sizes = [okl.KORS(KERNEL, alpha=mu, seed=k).partial_fit(X).size for k in range(3)]
        low, high = (mu, high) if np.mean(sizes) > m else (low, mu)
    return mu


def play_games(a: float, n: int, seeds):
    """Yield the rows of all games; dictionaries of given inputs have other coins.

    That of known inputs is ``PKAWV.known_inputs``, with an atom where KORS keeps none.
    """
    m, lam = round(n**a), n**BEST
    mu = calibrate(n, m)
    for seed in seeds:
        other, points = seed + OTHER_SEEDS, None
        for label in (CHOSEN, REVEALED, KNOWN, EXACT):
            learner = None
            if label in (CHOSEN, REVEALED):
                coins = seed if label == CHOSEN else other
                learner = okl.NystromAWV(KERNEL, lam=lam, mu=mu, seed=coins)
            if label == KNOWN:
                kept = okl.KORS(KERNEL, alpha=mu, seed=other).partial_fit(GRID[points])
                atoms = kept.landmarks_ if kept.size else GRID[points[:1]]
                learner = okl.PKAWV(okl.NystromFeatures(atoms, KERNEL), lam=lam)
            regret, points = play(learner, lam, n, points)
            yield {"algorithm": label, "a": a, "n": n, "seed": seed, "m": m, "lam": lam, "mu": mu,
                   "atoms": learner.size if learner else n, "regret": regret}  # fmt: skip


def measure(args) -> list[dict]:
    sizes, seeds = (QUICK_SIZES, QUICK_SEEDS) if args.quick else (SIZES, SEEDS)
    more = {} if args.quick else MORE_SEEDS
    jobs = tqdm([*product(POWERS, sizes)], disable=None)
    return [row for a, n in jobs for row in play_games(a, n, more.get(a, seeds))]


def stated(a, revealed: bool):
    """Return the exponent of eq. (8) at this lam, and of Corollary 8; regret is at most linear.

    It is that of the larger of two terms; of d_eff log n what a fit at these n finds.
    """
    n = np.array(SIZES, dtype=float)
    return np.clip(2.0 - BEST - a / GAMMA + revealed * a, fit_exponent(n, n**BEST * np.log(n)), 1.0)


def exponents(rows, label: str, a: float):
    """Return the exponent of the regret for each seed."""
    n, regret = collect(rows, "n", "regret", algorithm=label, a=a)
    return np.array([fit_exponent(n, curve) for curve in regret])


def mean_error(values):
    """Return the mean over seeds, and its standard error."""
    return np.mean(values), np.std(values, ddof=1) / len(values) ** 0.5


def summary(rows):
    n, out = max(row["n"] for row in rows), []
    for a in dict.fromkeys(row["a"] for row in rows):
        for label in (CHOSEN, REVEALED, KNOWN, EXACT):
            _, atoms, regret = collect(rows, "n", "atoms", "regret", algorithm=label, a=a)
            b, known = (exponents(rows, name, a) for name in (label, KNOWN))
            row = {"a": a, "algorithm": label, f"atoms at {n}": f"{atoms[:, -1].mean():.0f}"}
            row[f"regret at {n}"] = f"{regret[:, -1].mean():.0f} +- {regret[:, -1].std(ddof=1):.0f}"
            row["exponent"], row["above known"] = (
                "{:.2f} +- {:.2f}".format(*mean_error(found)) for found in (b, b - known)
            )
            if label in (CHOSEN, REVEALED, KNOWN):
                row["stated"] = f"{stated(a, label != KNOWN):.2f}"
            out.append({"stated": ""} | row)
    return out


def draw(rows):
    figure, (axes,) = okl.plots.figure(columns=2, row_height=3.0)
    fine, n = np.linspace(min(POWERS), max(POWERS), 200), max(row["n"] for row in rows)
    for revealed, label in ((True, REVEALED), (False, KNOWN)):
        name = "7, inputs revealed" if revealed else "8, inputs known"
        axes[0].plot(fine, stated(fine, revealed), color=LOOKS[label]["color"], linestyle=BOUND,
                     linewidth=1.0, label=f"Corollary {name}")  # fmt: skip
    common = [row for row in rows if row["seed"] in SEEDS]  # of every a
    for label, style in LOOKS.items():
        found = np.array([mean_error(exponents(rows, label, a)) for a in POWERS])
        axes[0].errorbar(POWERS, found[:, 0], 2.0 * found[:, 1], label=label, linewidth=1.2,
                         markersize=4, capsize=2, **style)  # fmt: skip
        m, regret = collect(common, "m", "regret", algorithm=label, n=n)
        okl.plots.band(axes[1], m, regret, "", style | {"markersize": 4}, np.mean)
    okl.plots.tidy(axes[0], "a: dictionaries of $n^a$ atoms", "b: regret grows as $n^b$")
    text = f"atoms m, at n = {n:,}"
    okl.plots.tidy(axes[1], text, "regret (sum of squared losses)", log="xy")
    return figure


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (600.0, 60.0), summary, legend=2)
