"""Portfolio selection: online Newton step and exponentiated gradient against rebalanced portfolios.

Reproduces: nothing published; the investment game of Zhang's lecture notes (2019), section 4.
Missing: the classical NYSE sets, which no installable package has. The real prices are monthly ones
    of matplotlib's Stocks.csv, without dividends or costs.
Time: about half a minute.
"""

import csv
from math import log, sqrt
from pathlib import Path

import matplotlib
import numpy as np

import oklnumba as okl
from scripts.common import curve_rows, parse_args, publish
from scripts.looks import BLACK, BLUE, BOUND, ORANGE, VERMILLION, explain, use_symlog

BEST = "best rebalanced (hindsight)"
BOLD = "ONS, alpha~ = 1/2, L = 1"  # beyond the constants of Theorem 6: no bound is claimed
THEOREM, EG = "ONS, as Theorem 6", "EG, tuned step"
LOOKS = {
    BEST: {"color": BLACK, "linestyle": "-"}, "uniform rebalanced": {"color": "0.5"},
    THEOREM: {"color": VERMILLION, "linestyle": "-."}, BOLD: {"color": ORANGE, "linestyle": "-"},
    EG: {"color": BLUE, "linestyle": ":"},
}  # fmt: skip


def stocks():
    """Return monthly price relatives of the assets of Stocks.csv that have all the months."""
    path = Path(matplotlib.get_data_path()) / "sample_data" / "Stocks.csv"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.reader(lines))
    names = rows[0][1:]
    months = [row[1:] for row in rows[1:] if row[0].endswith("-01") and any(row[1:])]
    whole = [j for j in range(len(names)) if all(row[j] for row in months)]
    prices = np.array([[float(row[j]) for j in whole] for row in months])
    return prices[1:] / prices[:-1], [names[j] for j in whole]


def cover(n: int):
    """Return cash and a stock that doubles and halves in turn (Cover's example)."""
    return np.stack([np.ones(n), np.where(np.arange(n) % 2, 0.5, 2.0)], axis=1)


def simulated(n: int, d: int = 8):
    rng = np.random.default_rng(0)
    volatility = np.linspace(0.02, 0.12, d)
    drift = np.linspace(0.001, 0.012, d)
    market = 0.03 * rng.standard_normal((n, 1))
    return np.exp(drift - volatility**2 / 2 + market + volatility * rng.standard_normal((n, d)))


def learners(game):
    # |grad f|_inf <= max c / min c of a round, whatever the portfolio.
    ratio = float((game.relatives.max(axis=1) / game.relatives.min(axis=1)).max())
    lipschitz = ratio * sqrt(game.d)
    eta = sqrt(log(game.d) / game.rounds) / ratio
    return {
        THEOREM: okl.ExpConcaveFTRL(
            okl.theory.exp_concave_rate(1.0, 1.0, lipschitz), lipschitz=lipschitz, domain="simplex"
        ),
        BOLD: okl.ExpConcaveFTRL(0.5, lipschitz=1.0, domain="simplex"),
        EG: okl.ExponentiatedGradient(eta),
    }


def bound(learner, gradients, w) -> float:
    if isinstance(learner, okl.ExpConcaveFTRL):
        return okl.theory.exp_concave_bound(gradients, w, learner.alpha_tilde, learner.lipschitz)
    return okl.theory.exponentiated_gradient_bound(gradients, w, learner.eta)


def main() -> None:
    args = parse_args(__doc__, limit=60.0, quick_limit=5.0)
    n = 60 if args.quick else 1500
    relatives, names = stocks()
    games = {
        "cash and a stock that\ndoubles and halves": okl.oco.Portfolio(cover(min(n, 120))),
        "8 simulated stocks": okl.oco.Portfolio(simulated(n)),
        f"{len(names)} real assets, monthly\n1990 to 2022": okl.oco.Portfolio(relatives[:n]),
    }
    fig, axes = okl.plots.figure(rows=2, columns=3, row_height=2.6)
    numbers, table = [], []
    for (title, game), column in zip(games.items(), axes.T, strict=True):
        name, best = title.replace("\n", " "), game.best()
        marks, points = (okl.plots.thin(game.rounds, points=count) for count in (25, 60))
        single = np.exp(np.log(game.relatives).sum(axis=0)).max()
        uniform = np.full(game.d, 1 / game.d)
        curves = {BEST: game.losses(best), "uniform rebalanced": game.losses(uniform)}
        bounds = {}
        for label, learner in learners(game).items():
            run = okl.oco.play(learner, game)
            curves[label] = run.losses
            if label != BOLD:
                bounds[label] = [bound(learner, run.gradients[:t], best) for t in marks]
                if (run.regret(best)[marks - 1] > bounds[label]).any():
                    raise SystemExit(f"{name}, {label}: regret above its bound")
        for label, losses in curves.items():
            style = LOOKS[label]
            wealth, regret = np.exp(-np.cumsum(losses)), np.cumsum(losses - curves[BEST])
            column[0].plot(np.arange(1, game.rounds + 1), wealth, label=label, lw=1.2, **style)
            if label != BEST:
                column[1].plot(np.arange(1, game.rounds + 1), regret, lw=1.2, **style)
            if label in bounds:
                column[1].plot(marks, bounds[label], color=style["color"], ls=BOUND, lw=0.9)
            curve = {"round": points, "wealth": wealth[points - 1], "regret": regret[points - 1]}
            numbers += curve_rows({"game": name, "strategy": label}, curve)
            last = bounds[label][-1] if label in bounds else None
            table.append(numbers[-1] | {"bound": last, "best single asset": single})
        use_symlog(column[1], 1.0)
        okl.plots.tidy(column[0], "", "wealth (start = 1)", title, log="y", small=1.0)
        okl.plots.tidy(column[1], "rounds", "regret in log wealth", small=1.0)
    for ax in axes[:, 1:].flat:
        ax.set_ylabel("")
    explain(axes[1, 0], "bound (for the two with one)", linestyle=BOUND, linewidth=0.9)
    publish(fig, numbers, args, table, legend=3)


if __name__ == "__main__":
    main()
