"""What self-tuning is held against on the same rows: learners tuned by hand, river, scikit-learn.

All play prequentially: a forecast of a row, then its label. Each row of the csv is one learner on
one stream, written as soon as it is done; what is there is not played again. River and scikit-learn
are no dependency of the package: pip install river scikit-learn.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from scripts.benchmarks import tuned
from scripts.benchmarks.streams import Stream, groups, of_group
from scripts.common import read_csv, write_csv

HORIZONS = (5000, 10_000, 20_000)  # rounds after which the averages are kept, beside all
SLOW_ROWS, FEWER_ROWS = 10_000, 5000  # of slow rivals; of those on more than NARROW inputs
NARROW, WIDE = 10, 60  # on more than WIDE inputs all of river is slow
COMPONENTS = 400  # random Fourier features
RIVER_COMPONENTS = 50  # its RBFSampler has so many of each input by itself, unscaled
OWN, RIVER, SKLEARN, PLAIN = "oklnumba, tuned by hand", "river", "scikit-learn", "none"

Player = Callable[[Stream, float], tuple[str, np.ndarray]]  # to setting and forecasts


def averages(series: np.ndarray, n: int, unit: float = 1.0) -> list[str]:
    """Return means of the first rounds at HORIZONS and of all n, "" where they were not played."""
    found = [
        f"{unit * series[:at].mean():.6g}" if at <= min(n, len(series)) else "" for at in HORIZONS
    ]
    return [*found, f"{unit * series.mean():.6g}" if len(series) == n else ""]


def row(stream: Stream, forecasts: np.ndarray) -> dict:
    """Return mistakes (%) and mean squared loss of the clipped forecasts."""
    n, y = len(stream.y), stream.y[: len(forecasts)]
    loss = averages(np.square(tuned.clipped(forecasts, stream) - y), n)
    mistakes = [""] * len(loss)
    if stream.kind == "classification":
        mistakes = averages(y * forecasts <= 0.0, n, 100.0)
    at = [*HORIZONS, "all"]
    names = [f"{measure}_{h}" for measure in ("mistakes", "loss") for h in at]
    return {"n": n, "rounds": len(forecasts)} | dict(zip(names, mistakes + loss, strict=True))


# ---- nothing learnt, and the package's own ----


def last_label(stream: Stream, limit: float) -> tuple[str, np.ndarray]:
    return "last label", np.concatenate([[0.0], stream.y[:-1]])


def plain(stream: Stream, limit: float) -> tuple[str, np.ndarray]:
    """Forecast the last label, or in a regression the mean of the labels so far."""
    if stream.kind == "classification":
        return last_label(stream, limit)
    return "mean so far", np.concatenate([[0.0], moments(stream.y)[0][:-1]])


def by_hand(group: str, family: str, stream: Stream, limit: float) -> tuple[str, np.ndarray]:
    """Play a family with the setting that was best on the group's rehearsal."""
    how, setting = tuned.tune(group, family)
    make = tuned.grids(stream.kind, stream.X.shape[1])[family][setting]
    forecasts = tuned.play(family, make, tuned.scalings(stream.X)[how], stream)
    return f"{setting} {how}", np.zeros(0) if forecasts is None else forecasts


# ---- scikit-learn ----


def standardised_online(V: np.ndarray) -> np.ndarray:
    """Return each row less the mean of the rows up to it, over their deviation (1 where it is 0).

    A row itself counts: inputs are seen before the forecast, and the step comes after the label.
    """
    V = V.reshape(len(V), -1) - V[0]  # the sums of squares keep their digits
    mean, deviation = moments(V)
    return (V - mean) / np.where(deviation > 0.0, deviation, 1.0)


def moments(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of the first rows, for every number of rows."""
    count = np.arange(1, len(V) + 1).reshape(-1, *[1] * (V.ndim - 1))
    mean = np.cumsum(V, axis=0) / count
    variance = np.cumsum(V * V, axis=0) / count - mean**2
    return mean, np.sqrt(np.where(variance > 1e-12 * mean**2, variance, 0.0))


def sklearn_models(kind: str, d: int) -> dict[str, tuple[dict, float | None]]:
    """Return keywords of SGDClassifier or SGDRegressor and gamma of the RBFSampler, by name."""
    constant = {"learning_rate": "constant"}
    if kind == "classification":
        logistic, fast = {"loss": "log_loss"}, constant | {"eta0": 1.0}
        passive = {"loss": "hinge", "penalty": None, "learning_rate": "pa1"}
        return {
            "SGD, logistic": (logistic, None),
            "passive-aggressive, C=0.01": (passive | {"eta0": 0.01}, None),
            "RBFSampler + SGD, logistic, gamma=1/d": (logistic, 1.0 / d),
            "RBFSampler + SGD, logistic, step 1, gamma=0.3/d": (logistic | fast, 0.3 / d),
        }
    return {
        "SGD": ({}, None),
        "SGD, step 0.001": (constant | {"eta0": 0.001}, None),
        "RBFSampler + SGD, step 0.3, gamma=1/d": (constant | {"eta0": 0.3}, 1.0 / d),
        "RBFSampler + SGD, step 0.3, gamma=0.1/d": (constant | {"eta0": 0.3}, 0.1 / d),
    }


def with_sklearn(name: str, stream: Stream, limit: float) -> tuple[str, np.ndarray]:
    """Play one of ``sklearn_models`` on inputs (and labels) standardised online."""
    import sklearn
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    keywords, gamma = sklearn_models(stream.kind, stream.X.shape[1])[name]
    y = stream.y[: slow_rows(stream.X.shape[1])]
    Z = standardised_online(stream.X[: len(y)])
    if gamma is not None:
        Z = RBFSampler(gamma=gamma, n_components=COMPONENTS, random_state=0).fit_transform(Z)
    forecasts = np.zeros(len(y))
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        if stream.kind == "classification":
            model, targets = SGDClassifier(random_state=0, **keywords), y
            first = {"classes": (-1.0, 1.0)}
        else:
            model, targets = SGDRegressor(random_state=0, **keywords), standardised_online(y)
            first, targets = {}, targets[:, 0]
        for t in stopwatch(len(y), limit):
            if t:
                forecasts[t] = Z[t] @ model.coef_.ravel() + model.intercept_[0]
            model.partial_fit(Z[t : t + 1], targets[t : t + 1], **({} if t else first))
    forecasts = forecasts[: t + 1]
    if keywords.get("loss") == "log_loss":
        forecasts = np.tanh(forecasts / 2.0)  # 2 p - 1
    elif stream.kind == "regression":  # in the units of the labels, 0 for the first
        mean, deviation = (past[:t] for past in moments(y - y[0]))
        forecasts[1:] = y[0] + mean + np.where(deviation > 0.0, deviation, 1.0) * forecasts[1:]
    return "", forecasts


def stopwatch(rows: int, limit: float) -> Iterator[int]:
    """Yield 0 .. rows - 1 until the limit, in CPU seconds."""
    start = time.process_time()
    for t in range(rows):
        if t % 256 == 0 and time.process_time() - start > limit:
            return
        yield t


# ---- river ----


def river_models(kind: str, d: int) -> dict[str, Any]:
    """Return models by name."""
    from river import feature_extraction, forest, linear_model, optim, preprocessing, tree

    def scaled(model, gamma: float | None = None):
        front = preprocessing.StandardScaler()
        if gamma is not None:
            front |= feature_extraction.RBFSampler(gamma, n_components=RIVER_COMPONENTS, seed=0)
        return front | model

    logistic, linear = linear_model.LogisticRegression, linear_model.LinearRegression
    sgd = optim.SGD
    if kind == "classification":
        return {
            "LogisticRegression": scaled(logistic()),
            "LogisticRegression, step 0.1": scaled(logistic(sgd(0.1), intercept_lr=0.1)),
            "PAClassifier": scaled(linear_model.PAClassifier()),
            "RBFSampler + LogisticRegression, step 0.1/d": scaled(logistic(sgd(0.1 / d)), 1.0),
            TREE: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
            FOREST: forest.ARFClassifier(seed=0),
        }

    def target(model, gamma: float | None = None):
        return scaled(preprocessing.TargetStandardScaler(regressor=model), gamma)

    return {
        "LinearRegression": target(linear()),
        "PARegressor, C=0.01": target(linear_model.PARegressor(C=0.01)),
        "RBFSampler + LinearRegression, step 0.02/d": target(linear(sgd(0.02 / d)), 1.0),
        TREE: tree.HoeffdingAdaptiveTreeRegressor(seed=0),
        FOREST: forest.ARFRegressor(seed=0),
    }


TREE, FOREST = "HoeffdingAdaptiveTree", "AdaptiveRandomForest"


def with_river(name: str, stream: Stream, limit: float) -> tuple[str, np.ndarray]:
    """Play one of ``river_models``; classifiers forecast 2 p - 1."""
    n, d = stream.X.shape
    rows = min(n, slow_rows(d)) if is_slow(RIVER, name, d) else n
    model, keys = river_models(stream.kind, d)[name], [f"x{j}" for j in range(d)]
    forecasts = np.zeros(rows)
    for t in stopwatch(rows, limit):
        x = dict(zip(keys, stream.X[t].tolist(), strict=True))
        if stream.kind == "classification":
            p = model.predict_proba_one(x)
            forecasts[t] = 2.0 * p.get(True, 0.0) - 1.0 if p else 0.0
            model.learn_one(x, bool(stream.y[t] > 0.0))
        else:
            forecasts[t] = model.predict_one(x) or 0.0
            model.learn_one(x, float(stream.y[t]))
    return "", forecasts[: t + 1]


# ---- all of them ----


@lru_cache(maxsize=2)
def streams_of(group: str) -> tuple[Stream, ...]:
    return tuple(of_group(group))


def slow_rows(d: int) -> int:
    """Return the rounds that slow rivals play, and in which all are compared."""
    return SLOW_ROWS if d <= NARROW else FEWER_ROWS


def is_slow(by: str, learner: str, d: int) -> bool:
    return by == SKLEARN or learner in (FOREST, TREE) or learner.startswith("RBF") or d > WIDE


def jobs(libraries: bool) -> Iterator[tuple[str, str, str, Player]]:
    """Yield group, library, learner and player of all; other libraries only where wanted."""
    for group in groups():
        found = streams_of(group)
        d, kind = found[0].X.shape[1], found[0].kind
        for player in (plain, last_label) if kind == "regression" else (plain,):
            yield group, PLAIN, player.__name__, player
        for family in tuned.grids(kind, d):
            yield group, OWN, family, partial(by_hand, group, family)
        others = (SKLEARN, sklearn_models, with_sklearn), (RIVER, river_models, with_river)
        for by, models, player in others if libraries else ():
            for name in models(kind, d):
                yield group, by, name, partial(player, name)


def play_all(path: Path, libraries: bool, limit: float) -> None:
    """Play what the csv has not; ``limit`` in CPU seconds for each cell."""
    rows = read_csv(path)
    done = {(r["stream"], r["by"], r["learner"]) for r in rows}
    for group, by, learner, play in tqdm(list(jobs(libraries)), unit=" job"):
        for stream in streams_of(group):
            if (stream.name, by, learner) in done:
                continue
            start = time.process_time()
            setting, forecasts = play(stream, limit)
            head = {"stream": stream.name, "kind": stream.kind, "by": by, "learner": learner}
            head["setting"] = setting
            seconds = {"cpu_seconds": f"{time.process_time() - start:.3g}"}
            rows.append(head | row(stream, np.nan_to_num(forecasts)) | seconds)
            write_csv(path, rows)


def best(rows: Iterable[dict], at: str, measure: str) -> dict | None:
    """Return the row with the least ``measure`` ("mistakes" or "loss") at a horizon."""
    column = f"{measure}_{at}"
    there = [r for r in rows if r[column] != ""]
    return min(there, key=lambda r: float(r[column])) if there else None
