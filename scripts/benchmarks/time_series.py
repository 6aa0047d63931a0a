"""Time series row by row: Lags and Horizon around our learners, rivals at their best settings.

Reproduces: nothing published.
Missing: rivals whose library is not installed. Data of the second panel are in the folder more
    beside the folder OKLNUMBA_DATA, but for the made-up series: their licences differ.
Time: eight minutes.
"""

import contextlib
import importlib.util
import math
import os
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from threadpoolctl import threadpool_limits

import oklnumba as okl
from scripts.benchmarks import rivals
from scripts.common import group, run_script
from scripts.looks import look

SKIP = 0.1  # of the rounds, which do not count
GROWTH, FIRST_FIT = 1.1, 16  # of the models that are fitted
LAST, OF_SEASON = "the last label", "the label a season ago"
AHEAD, FOUR_WEEKS = 24, 28  # rows from the last label to the forecast; days between two fits
BESIDE = {"elecdemand": (48, slice(None)), "nycweather": (24, [0, 1, 2, 9])}  # a day, its inputs


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


def make_demand(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and hourly demand: day, weekend, temperature, and an error that lasts."""
    rng, t = np.random.default_rng(0), np.arange(n)
    error, heat = lfilter([1.0], [1.0, -0.95], rng.standard_normal((2, n)))
    hour, weekend = 2 * np.pi * t / 24, t // 24 % 7 >= 5
    week = 8 * np.sin(hour) + 4 * np.cos(2 * hour) - 6 * weekend * (1 + np.sin(hour))
    return np.column_stack([t % 24, t // 24 % 7, heat]), 50 + week + 0.8 * heat + error


def make_ahead(quick: bool) -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    """Return inputs and series of the second panel by name, each with the rows of a day."""
    n = 600 if quick else 8000
    found = {"demand (made up)": (*make_demand(n), 24)}
    folder = Path(os.environ.get("OKLNUMBA_DATA", ".")).resolve().parent / "more"
    for name, (day, columns) in BESIDE.items():
        if (path := folder / f"{name}.npz").exists():
            with np.load(path) as file:
                found[name] = file["X"][:n, columns].astype(float), file["y"][:n], day
    return found


def list_ahead(X: np.ndarray, y: np.ndarray, day: int):
    """Yield each player with its settings, as functions that return forecasts AHEAD rows ahead."""
    naive, days = {"a day": -(-AHEAD // day) * day, "a week": 7 * day}, (day, 7 * day)
    yield LAST, {"": lambda: np.roll(y, AHEAD)}
    yield OF_SEASON, {name: partial(np.roll, y, lag) for name, lag in naive.items()}
    inner = {"Horizon(SelfTuning())": {"": okl.SelfTuning()},
             "Horizon(LinearRidge())": {"": okl.LinearRidge()}}  # fmt: skip
    if not rivals.missing_libraries(rivals.LIGHTGBM):
        from lightgbm import LGBMRegressor

        model = partial(LGBMRegressor, verbose=-1, n_jobs=1)
        inner["LightGBM on lags"] = {
            f"{n} trees, rate {rate}": okl.Refit(
                model(n_estimators=n, learning_rate=rate), every=FOUR_WEEKS * day, first=7 * day)
            for n, rate in ((100, 0.1), (400, 0.03))
        }  # fmt: skip
    for name, settings in inner.items():
        models = {k: okl.Horizon(v, steps=AHEAD, season=days) for k, v in settings.items()}
        yield name, {k: lambda m=m: okl.run(m, X, y).predictions for k, m in models.items()}
    if "LightGBM on lags" in inner and not rivals.missing_libraries(rivals.SKFORECAST):
        kinds, common = ("Direct", "Recursive"), (X, y, day, model())
        yield "skforecast, LightGBM", {one: partial(play_skforecast, *common, one) for one in kinds}


def play_skforecast(X: np.ndarray, y: np.ndarray, day: int, model, kind: str) -> np.ndarray:
    """Return forecasts of a direct or recursive forecaster of skforecast, on like lags."""
    import pandas as pd
    from skforecast import direct, model_selection, recursive

    lags, steps = [1, 2, 3, day, 7 * day], {"steps": AHEAD} if kind == "Direct" else {}
    make = getattr(direct if steps else recursive, f"Forecaster{kind}")
    folds = model_selection.TimeSeriesFold(
        steps=1, gap=AHEAD - 1, initial_train_size=max(len(y) // 10 - AHEAD, 9 * day),
        refit=FOUR_WEEKS * day, fixed_train_size=False,
    )  # fmt: skip
    _, found = model_selection.backtesting_forecaster(
        make(estimator=model, lags=lags, **steps), y=pd.Series(y, dtype=float),
        exog=pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]), cv=folds,
        metric="mean_squared_error", n_jobs=1, show_progress=False,
    )  # fmt: skip
    forecasts = np.roll(y, AHEAD).astype(float)
    forecasts[found.index] = found["pred"]
    return forecasts


def own_players(season: int) -> dict[str, okl.Learner]:
    return {
        "SelfTuning": okl.SelfTuning(),
        "Lags(SelfTuning())": okl.Lags(okl.SelfTuning(), season=season),
        "Lags(LinearRidge())": okl.Lags(okl.LinearRidge(), season=season),
    }


def river_players(season: int) -> dict[str, dict]:
    """Return, by name, makers of the models of a grid by their settings."""
    from river import linear_model, optim, preprocessing, time_series

    def snarimax(p, d, q, seasonal, step):
        sgd = linear_model.LinearRegression(optim.SGD(step))
        names = dict(zip(("sp", "sd", "sq"), seasonal, strict=True))
        scaled = preprocessing.StandardScaler() | sgd
        return time_series.SNARIMAX(p=p, d=d, q=q, m=season, regressor=scaled, **names)

    def holt_winters(alpha, beta, gamma, multiplicative):
        m = season if gamma else 0
        return time_series.HoltWinters(alpha, beta, gamma, m, multiplicative)

    seasons = (0, 0, 0), (1, 0, 0), (1, 1, 0)
    ar = product((1, 3, 6), (0, 1), (0, 1), seasons, (0.001, 0.01, 0.1))
    plain = product((None, 0.01, 0.1), (None,), (False,))
    seasonal = product((0.01, 0.1), (0.1, 0.3, 0.6), (False, True))
    smoothed = product((0.1, 0.3, 0.6, 0.9), [*plain, *seasonal])
    grids = {
        "river SNARIMAX": (snarimax, ar),
        "river HoltWinters": (holt_winters, ((alpha, *rest) for alpha, rest in smoothed)),
    }
    return {name: {str(one): partial(make, *one) for one in grid}
            for name, (make, grid) in grids.items()}  # fmt: skip


def play_river(player, y: np.ndarray) -> np.ndarray:
    """Return the forecast of each value, the last label before a model has seen a season."""
    forecasts = np.append(0.0, y[:-1])
    for t, label in enumerate(y.tolist()):
        with contextlib.suppress(IndexError, TypeError, AttributeError, ZeroDivisionError):
            forecasts[t] = player.forecast(horizon=1)[0]
        player.learn_one(label)
    return forecasts


def play_fitted(who: str, base: int, y: np.ndarray, season: int) -> np.ndarray:
    """Return forecasts of a model of the last labels less that of ``base`` rounds ago (0: none)."""
    lags = [1, 2, 3, season, season + 1]
    past = np.stack([np.roll(y, lag) for lag in lags], axis=1)
    forecasts, start = past[:, 0].copy(), season + 1
    level = past[:, lags.index(base)] if base else np.zeros(len(y))
    X = np.column_stack([past - level[:, None], level])[start:]
    changes = rivals.refit(who, X, (y - level)[start:], "regression", GROWTH, FIRST_FIT)
    forecasts[start:] = level[start:] + changes
    return forecasts


def list_players(y: np.ndarray, season: int):
    """Yield each player with its settings, as functions that return its forecasts."""
    yield LAST, {"": lambda: np.roll(y, 1)}
    yield OF_SEASON, {"": lambda: np.roll(y, season)}
    for name, learner in own_players(season).items():
        yield name, {"": lambda one=learner: okl.run(one, np.zeros((len(y), 1)), y).predictions}
    bases = {"levels": 0, "changes": 1, "changes in a season": season}
    for who, library in ((rivals.TUNED, rivals.LIGHTGBM), (rivals.RIDGE, rivals.SKLEARN)):
        if not rivals.missing_libraries(library):
            name = f"{who.split(',')[0]} on lags"
            yield name, {k: partial(play_fitted, who, base, y, season) for k, base in bases.items()}
    if not rivals.missing_libraries(rivals.RIVER):
        for name, grid in river_players(season).items():
            yield name, {k: lambda make=make: play_river(make(), y) for k, make in grid.items()}


def play(name: str, y: np.ndarray, season: int, players, ahead: int = 1) -> list[dict]:
    """Return the error of each player on a series, at its best setting in hindsight."""
    rows, first = [], max(math.ceil(SKIP * len(y)), season + 2)
    change = np.sqrt(np.mean((y - np.roll(y, ahead))[first:] ** 2))
    for what, settings in players:
        errors = {}
        with warnings.catch_warnings(), np.errstate(all="ignore"), threadpool_limits(1):
            warnings.simplefilter("ignore")
            for setting, forecast in settings.items():
                error = np.sqrt(np.mean((y - forecast())[first:] ** 2))
                errors[setting] = error if np.isfinite(error) else np.inf
        best = min(errors, key=errors.__getitem__)
        rows.append({
            "series": name, "rounds": len(y), "season": season, "ahead": ahead, "player": what,
            "setting": best, "error / the last label": f"{errors[best] / change:.3f}",
        })  # fmt: skip
        print(f"{name}: {what} {best} {rows[-1]['error / the last label']}", flush=True)
    return rows


def measure(args) -> list[dict]:
    series = make_series(args.quick).items()
    for learner in own_players(season=2).values():
        okl.run(learner, np.zeros((100, 1)), np.arange(100.0))  # compiles
    rows = [row for name, (y, m) in series for row in play(name, y, m, list_players(y, m))]
    for name, (X, y, day) in make_ahead(args.quick).items():
        rows += play(name, y, 7 * day, list_ahead(X, y, day), AHEAD)
    return rows


def draw(rows: list[dict]):
    """Return a figure: the error of each player over that of the last label, 1 and 24 ahead."""
    panels = group(rows, "ahead")
    figure, axes = okl.plots.figure(len(panels), 1, width=6.8, row_height=2.8)
    for ax, (ahead, some) in zip(axes[:, 0], panels.items(), strict=True):
        draw_panel(ax, some)
        okl.plots.title(ax, "the next row" if ahead == 1 else f"{ahead} rows ahead")
    axes[-1, 0].set_xlabel("root mean squared error / that of the last label")
    return figure


def draw_panel(ax, rows: list[dict]) -> None:
    series, players = list(group(rows, "series")), group(rows, "player")
    del players[LAST]
    for k, (player, own) in enumerate(players.items()):
        values = [float(row["error / the last label"]) for row in own]
        places = [series.index(row["series"]) + 0.1 * (k - len(players) / 2) for row in own]
        ours = "SelfTuning" in player or "Linear" in player
        grey = {"color": "0.45", "marker": "s" if player.startswith("Light") else "ooooPD<>"[k]}
        style = look(player) if ours else grey
        style = style | {"linestyle": "", "mfc": "white" if "(" in player else style["color"]}
        ax.plot(values, places, label=player, markersize=7.0, **style)
    ax.axvline(1.0, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(series)), series)
    ax.set_ylim(-0.6, len(series) - 0.4)
    okl.plots.tidy(ax, "", "", log="x")
    ax.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


if __name__ == "__main__":
    run_script(__doc__, measure, draw, (120.0, 20.0))
