"""What the learners of the package are held against: tuned by hand, and other libraries.

Everyone forecasts a row first and then sees its label. The other libraries are no dependency of the
package: pip install "oklnumba[benchmark]". A ``Peer`` counts mistakes; the rivals of self-tuning
return forecasts, and have a row of a csv for each stream.
"""

import copy
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks.streams import SETS, Stream, groups, of_group, of_set
from scripts.common import Learner, read_csv, write_csv

OURS, VW, SKLEARN, RIVER = "oklnumba", "Vowpal Wabbit", "scikit-learn", "river"
MODULES = {VW: "vowpalwabbit", SKLEARN: "sklearn", RIVER: "river"}


def combinations(
    make: Callable[..., Any] | Learner, wrap: Callable[[Any], Any] | None = None, told: str = "",
    **lists: Sequence,
) -> dict[str, Callable[..., Any]]:  # fmt: skip
    """Return makers of every combination of arguments, by a text that tells it.

    make : a function of these arguments, or a learner whose hyper-parameters they are.
    told : format of the text; "": "name = value, ...".
    """
    if hasattr(make, "set_params"):
        learner, make = make, lambda **given: copy.deepcopy(learner).set_params(**given)
    found = {}
    for values in product(*lists.values()):
        given = dict(zip(lists, values, strict=True))
        short = {name.split("__")[-1]: value for name, value in given.items()}
        shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in short.items()}
        text = told.format(**short) or ", ".join(f"{k} = {v}" for k, v in shown.items())
        one = partial(make, **given)
        found[text] = one if wrap is None else lambda one=one: wrap(one())
    return found


def survived(learner: Any, X: np.ndarray, y: np.ndarray) -> okl.Run | None:
    """Return the run, None where numbers overflow (a step too long for squared loss)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return okl.run(learner, X, y)
        except FloatingPointError:
            return None


def installed(library: str) -> bool:
    return find_spec(MODULES[library]) is not None


def absent(*libraries: str) -> tuple[str, ...]:
    """Return which libraries are not installed, and say so."""
    found = tuple(library for library in libraries if not installed(library))
    for library in found:
        print(f'{library} is not installed and is left out: pip install "oklnumba[benchmark]"')
    return found


class Peer:
    """A classifier of labels -1 and +1."""

    rows: int | None = 1000  # it is given at once; None: all
    certificate: Any = None
    size: Any = ""

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        return X, y

    def mistakes(self, prepared: Any) -> int:
        raise NotImplementedError

    def play(self, X: np.ndarray, y: np.ndarray) -> int:
        """Return how many forecasts were wrong, each made before its label was seen."""
        return self.mistakes(self.prepare(X, y))


class Own(Peer):
    """A learner of the package, with or without a column of ones beside its inputs."""

    rows = None

    def __init__(self, learner: Any, ones: bool = False):
        self.learner, self.ones = learner, ones

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        return (np.column_stack([X, np.ones(len(X))]) if self.ones else X), y

    def mistakes(self, prepared: Any) -> int:
        run = okl.run(self.learner, *prepared)
        self.certificate = run.certificate
        return int(run.mistakes.sum())

    @property
    def size(self) -> int:
        return self.learner.size


class Batches(Peer):
    """SGDClassifier of scikit-learn, on features if any: forecasts of a batch, then its labels."""

    def __init__(self, features: Any, **keywords: Any):
        from sklearn.linear_model import SGDClassifier

        self.features, self.fitted = features, features is None
        self.model = SGDClassifier(random_state=0, **keywords)

    def fit_features(self, X: np.ndarray) -> None:
        self.features, self.fitted = self.features and self.features.fit(X), True

    def mistakes(self, prepared: Any) -> int:
        X, y = prepared
        if not self.fitted:
            self.fit_features(X)
        Z = self.features.transform(X) if self.features else X
        known = hasattr(self.model, "coef_")
        wrong = int(np.sum(self.model.predict(Z) != y)) if known else len(y)
        self.model.partial_fit(Z, y, classes=(-1.0, 1.0))
        return wrong

    @property
    def size(self) -> int:
        return self.features.n_components


class Rows(Peer):
    """A classifier of river, row by row, on its dictionaries."""

    def __init__(self, model: Any):
        self.model = model

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        keys = [f"x{j}" for j in range(X.shape[1])]
        rows = [dict(zip(keys, values, strict=True)) for values in X.tolist()]
        return rows, (y > 0.0).tolist()

    def mistakes(self, prepared: Any) -> int:
        wrong = 0
        for x, label in zip(*prepared, strict=True):
            wrong += self.model.predict_one(x) is not label
            self.model.learn_one(x, label)
        return wrong


def sgd_step(eta: float) -> dict[str, Any]:
    """Return keywords of SGDClassifier for a constant step, 0: for its "optimal" schedule."""
    return {"alpha": 1e-6} | ({"learning_rate": "constant", "eta0": eta} if eta else {})


def on_features(
    kind: str, size: int, sigma: float, eta: float, batches: type[Batches] = Batches
) -> Batches:
    """Return logistic SGD on the "RBFSampler" or "Nystroem" of a Gaussian kernel."""
    from sklearn import kernel_approximation

    make = getattr(kernel_approximation, kind)
    features = make(gamma=0.5 / sigma**2, n_components=size, random_state=0)
    return batches(features, loss="log_loss", **sgd_step(eta))


def river_logistic(step: float) -> Any:
    """Return river's logistic regression on inputs standardised by the past."""
    from river import linear_model, optim, preprocessing

    model = linear_model.LogisticRegression(optim.SGD(step), intercept_lr=step)
    return preprocessing.StandardScaler() | model


class Wabbit(Peer):
    """Vowpal Wabbit, one pass over its own binary cache of the rows, its progressive mistakes."""

    rows = None

    def __init__(self, options: str):
        self.options, self.folder = options, tempfile.TemporaryDirectory()

    def __del__(self) -> None:
        self.folder.cleanup()

    def prepare(self, X: np.ndarray, y: np.ndarray) -> Any:
        from vowpalwabbit import Workspace

        path = f"{self.folder.name}/rows"
        with open(path, "w", encoding="utf-8") as file:
            for label, values in zip(y.tolist(), X.tolist(), strict=True):
                told = " ".join(f"{j}:{v:.6g}" for j, v in enumerate(values))
                file.write(f"{label:g} |f {told}\n")
        Workspace(f"-d {path} --cache_file {path}.cache --noop --quiet").finish()
        return path, len(y)

    def mistakes(self, prepared: Any) -> int:
        from vowpalwabbit import Workspace

        path, n = prepared
        learner = Workspace(f"-d {path} --cache_file {path}.cache --binary --quiet {self.options}")
        learner.finish()
        if learner.get_weighted_examples() != n:
            raise RuntimeError(f"Vowpal Wabbit read {learner.get_weighted_examples()} of {n} rows")
        return round(learner.get_sum_loss())


# ---- the package's learners, tuned by hand ----

TUNING_SEED = 1000  # of the permutation, or of the made-up stream
TUNING_ROWS = 10_000
SIGMAS = tuple(2.0**k for k in range(-2, 7, 2))
EXPONENTS = range(-3, 4)  # steps 10^(-3..3) / sqrt(T)
LAMS = (0.01, 0.1, 1.0)
BUDGET, RANK, FREQUENCIES = 400, 80, 200
MOST_MONOMIALS = 600  # else Taylor features are left out
LINEAR = {"LinearAWV", "LinearRidge", "OGD", "OGD, logistic"}  # with an intercept
HINGE_ONLY = {"POMDR", "OGD, logistic"}  # labels -1 and +1 only

Maker = Callable[[int], Learner]  # of the number of rounds
Forecasts = np.ndarray | None


def scalings(X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the inputs scaled over the whole stream in the two usual ways."""
    standardised = okl.Standardizer(clip=None).fit_transform(X)
    return {"to [-1, 1]": okl.datasets.scale_to(X), "standardised": standardised}


def grids(kind: str, d: int) -> dict[str, dict[str, Maker]]:
    """Return the settings of each family, by name, and how to make the learner."""
    signs, G = kind == "classification", okl.Gaussian
    loss = {"loss": "hinge" if signs else "squared"}

    def taylor(sigma: float) -> okl.TaylorFeatures:
        return okl.TaylorFeatures(2, sigma=sigma)

    def step(exponent: int, T: int) -> float:
        return 10.0**exponent / T**0.5

    lams = partial(combinations, told="lam={lam:g}", lam=LAMS)
    steps = partial(combinations, told="step=1e{exponent}/sqrt(T)", exponent=EXPONENTS)
    curved = partial(combinations, told="sigma={sigma:g} lam={lam:g}", sigma=SIGMAS, lam=LAMS)
    moved = partial(combinations, told="sigma={sigma:g} step=1e{exponent}/sqrt(T)", sigma=SIGMAS,
                    exponent=EXPONENTS)  # fmt: skip
    found = {
        "LinearAWV": lams(lambda T, lam: okl.LinearAWV(lam)),
        "LinearRidge": lams(lambda T, lam: okl.LinearRidge(lam)),
        "OGD": steps(lambda T, exponent: okl.OGD(step(exponent, T), **loss)),
        "OGD, logistic": steps(lambda T, exponent: okl.OGD(step(exponent, T), loss="logistic")),
        "POMDR": combinations(
            lambda T, sigma: okl.POMDR(G(sigma), horizon=T), told="sigma={sigma:g}", sigma=SIGMAS),
        "PKAWV, Fourier": curved(lambda T, sigma, lam: okl.PKAWV(
            okl.FourierFeatures(FREQUENCIES, sigma=sigma), lam=lam)),
        "PKAWV, Taylor": curved(lambda T, sigma, lam: okl.PKAWV(taylor(sigma), lam=lam)),
        **{f"NystromAWV, {kind}": curved(lambda T, sigma, lam, kind=kind: okl.NystromAWV(
            G(sigma), lam=lam, max_size=BUDGET, forecaster=kind)) for kind in ("awv", "ridge")},
        "FOGD": moved(lambda T, sigma, exponent: okl.FOGD(
            eta=step(exponent, T), sigma=sigma, n_frequencies=FREQUENCIES, **loss)),
        "NOGD": moved(lambda T, sigma, exponent: okl.NOGD(
            G(sigma), eta=step(exponent, T), budget=BUDGET, rank=RANK, **loss)),
        "KernelOGD": moved(lambda T, sigma, exponent: okl.KernelOGD(
            G(sigma), eta=step(exponent, T), budget=BUDGET, **loss)),
        "BOGD": moved(lambda T, sigma, exponent: okl.BOGD(
            G(sigma), eta=step(exponent, T), budget=BUDGET, **loss)),
    }  # fmt: skip
    absent = set() if signs else HINGE_ONLY
    if taylor(1.0).size(d) > MOST_MONOMIALS:
        absent = absent | {"PKAWV, Taylor"}
    return {family: grid for family, grid in found.items() if family not in absent}


def play(
    family: str, make: Maker, X: np.ndarray, stream: Stream, rows: int | None = None
) -> Forecasts:
    """Return forecasts in the units of the labels; None where the learner's numbers overflow.

    ``X`` are the inputs, scaled; of a stream of which ``rows`` are played.
    """
    y, rows = stream.y, rows or len(stream.y)
    if family in LINEAR:
        X = np.column_stack([X, np.ones(len(X))])
    middle, half = 0.0, 1.0
    if stream.kind == "regression":  # labels scaled to [-1, 1]
        middle, half = (y.max() + y.min()) / 2.0, (y.max() - y.min()) / 2.0
    run = survived(make(rows), X[:rows], (y[:rows] - middle) / half)
    return None if run is None else middle + half * run.predictions


def clipped(forecasts: np.ndarray, stream: Stream) -> np.ndarray:
    """Return forecasts within [-1, 1], or within the labels seen so far."""
    if stream.kind == "classification":
        return np.clip(forecasts, -1.0, 1.0)
    y = stream.y[: len(forecasts)]
    low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
    out = forecasts.copy()
    out[1:] = np.clip(out[1:], low[:-1], high[:-1])
    return out


def score(forecasts: Forecasts, stream: Stream) -> float:
    """Return the share of mistakes, or the mean squared error of a regression."""
    if forecasts is None or not np.isfinite(forecasts).all():
        return np.inf
    y = stream.y[: len(forecasts)]
    if stream.kind == "classification":
        return float(np.mean(y * forecasts <= 0.0))
    return float(np.square(clipped(forecasts, stream) - y).mean())


@lru_cache(maxsize=4)
def rehearsal(group: str) -> Stream:
    """Return the stream on which a group of streams (a set, or a made-up stream) is tuned."""
    return of_set(group, TUNING_SEED) if group in SETS else next(of_group(group, TUNING_SEED))


@lru_cache(maxsize=1)
def tune(group: str, family: str) -> tuple[str, str]:
    """Return the scaling and the setting with the lowest score."""
    stream = rehearsal(group)
    inputs = scalings(stream.X)
    grid = grids(stream.kind, stream.X.shape[1])[family]
    left = list(product(inputs, grid))
    for rows in (TUNING_ROWS // 4, TUNING_ROWS):
        rows = min(rows, len(stream.y))
        scores = {
            (how, setting): score(play(family, grid[setting], inputs[how], stream, rows), stream)
            for how, setting in left
        }
        left = sorted(left, key=scores.__getitem__)[: max(3, len(left) // 4)]
    return left[0]


# ---- the rivals of self-tuning ----

HORIZONS = (5000, 10_000, 20_000)  # rounds after which the averages are kept, beside all
SLOW_ROWS, FEWER_ROWS = 10_000, 5000  # of slow rivals; of those on more than NARROW inputs
NARROW, WIDE = 10, 60  # on more than WIDE inputs all of river is slow
COMPONENTS = 400  # random Fourier features
RIVER_COMPONENTS = 50  # its RBFSampler has so many of each input by itself, unscaled
OWN, PLAIN = "oklnumba, tuned by hand", "none"

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
    loss = averages(np.square(clipped(forecasts, stream) - y), n)
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
    how, setting = tune(group, family)
    make = grids(stream.kind, stream.X.shape[1])[family][setting]
    forecasts = play(family, make, scalings(stream.X)[how], stream)
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
        for family in grids(kind, d):
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
