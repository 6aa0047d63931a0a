"""Time series row by row: Lags around SelfTuning and ridge beside river's and LightGBM on lags.

Reproduces: nothing published.
Missing: rivals whose library is not installed.
Time: two minutes.
"""

import importlib.util
import math
import time

import numpy as np

import oklnumba as okl
from oklnumba import plots
from scripts.common import run_script
from scripts.looks import look

SKIP = 0.1  # of the rounds, which do not count
LAST, OF_SEASON = "the last label", "the label a season ago"


def make_series(quick: bool) -> dict[str, tuple[np.ndarray, int]]:
    """Return the series by name, each with its season."""
    n = 400 if quick else 3000
    rng, t = np.random.default_rng(0), np.arange(n)
    noise = rng.standard_normal(n)
    season = 10 * np.sin(2 * np.pi * t / 24) + 5 * np.sin(2 * np.pi * t / 168)
    series = {
        "trend, day and week (made up)": (50 + 0.02 * t + season + noise, 24),
        "random walk (made up)": (np.cumsum(noise), 24),
    }
    if importlib.util.find_spec("river"):
        from river import datasets

        flow = [y for _, y in datasets.WaterFlow()]
        series["water flow, hours"] = np.array(flow[:n]), 24
        air = [y for _, y in datasets.AirlinePassengers()]
        series["airline passengers, months"] = np.array(air), 12
    return series


def list_players(season: int) -> dict[str, object]:
    """Return what forecasts the next value, by name."""
    players = {
        "SelfTuning": okl.SelfTuning(),
        "Lags(SelfTuning())": okl.Lags(okl.SelfTuning(), season=season),
        "Lags(LinearRidge())": okl.Lags(okl.LinearRidge(), season=season),
    }
    if importlib.util.find_spec("lightgbm"):
        from lightgbm import LGBMRegressor

        model = okl.Refit(LGBMRegressor(n_jobs=1, verbose=-1), growth="15%")
        players["LightGBM on lags, every 15 %"] = okl.Lags(model, season=season)
    if importlib.util.find_spec("river"):
        from river import time_series

        players["river SNARIMAX(3, 1, 0)(1, 1, 0)"] = time_series.SNARIMAX(
            p=3, d=1, q=0, m=season, sp=1, sd=1, sq=0
        )
        players["river HoltWinters"] = time_series.HoltWinters(
            alpha=0.3, beta=0.1, gamma=0.3, seasonality=season
        )
    return players


def forecast(player, y: np.ndarray) -> np.ndarray:
    """Return the forecast of each value, from those before it."""
    if isinstance(player, okl.Learner):
        return okl.run(player, np.zeros((len(y), 1)), y).predictions
    forecasts = np.zeros(len(y))
    for t, label in enumerate(y.tolist()):
        try:
            forecasts[t] = player.forecast(horizon=1)[0]
        except (IndexError, TypeError, AttributeError, ZeroDivisionError):
            forecasts[t] = y[t - 1] if t else 0.0  # river's before they have seen a season
        player.learn_one(label)
    return forecasts


def play(name: str, y: np.ndarray, season: int) -> list[dict]:
    """Return the error of each player on a series."""
    rows, first = [], max(math.ceil(SKIP * len(y)), season + 2)
    naive = {LAST: np.roll(y, 1), OF_SEASON: np.roll(y, season)}
    for what, player in (naive | list_players(season)).items():
        start = time.process_time()
        forecasts = player if isinstance(player, np.ndarray) else forecast(player, y)
        seconds = time.process_time() - start
        error = np.sqrt(np.mean((y - forecasts)[first:] ** 2))
        change = np.sqrt(np.mean(np.diff(y)[first - 1 :] ** 2))
        rows.append({
            "series": name, "rounds": len(y), "season": season, "player": what,
            "error / the last label": f"{error / change:.3f}", "error": f"{error:.4g}",
            "CPU us a round": f"{1e6 * seconds / len(y):.3g}",
        })  # fmt: skip
        print(f"{name}: {what} {rows[-1]['error / the last label']}", flush=True)
    return rows


def measure(args) -> list[dict]:
    series = make_series(args.quick).items()
    for player in list_players(season=2).values():
        if isinstance(player, okl.Learner):
            forecast(player, np.arange(100.0))  # compiles
    return [row for name, (y, season) in series for row in play(name, y, season)]


def draw(rows: list[dict]):
    """Return a figure: the error of each player over that of the last label."""
    series = list(dict.fromkeys(row["series"] for row in rows))
    players = [p for p in dict.fromkeys(row["player"] for row in rows) if p != LAST]
    figure, axes = plots.figure(columns=1, width=6.8, row_height=3.4)
    ax = axes[0, 0]
    for k, player in enumerate(players):
        at = [(i, row) for i, one in enumerate(series) for row in rows
              if (row["series"], row["player"]) == (one, player)]  # fmt: skip
        values = [float(row["error / the last label"]) for _, row in at]
        places = [i + 0.1 * (k - len(players) / 2) for i, _ in at]
        ours = "SelfTuning" in player or "Linear" in player
        style = look(player) if ours else {"color": "0.45", "marker": "oooos<>"[k]}
        style = style | {"linestyle": "", "mfc": "white" if "Lags" in player else style["color"]}
        ax.plot(values, places, label=player, markersize=7.0, **style)
    ax.axvline(1.0, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(series)), series)
    ax.set_ylim(-0.6, len(series) - 0.4)
    plots.tidy(ax, "root mean squared error / that of the last label", "", log="x")
    ax.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (120.0, 20.0))
