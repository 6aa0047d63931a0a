"""What the benchmarks compare: learners of the package tuned by hand, and other libraries.

Everyone forecasts a row before it sees the label. The other libraries are no dependency of the
package: pip install -e ".[benchmark]". A ``Peer`` counts mistakes. The rivals of self-tuning
return forecasts, and each has a row of a csv for each stream.
"""

import copy
import time
import warnings
from functools import lru_cache, partial
from importlib.util import find_spec
from itertools import pairwise, product

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import oklnumba as okl
from scripts.benchmarks.streams import SETS, Stream, groups, load_stream, streams_of_group
from scripts.common import leave_out, read_csv, write_csv

SKLEARN, RIVER, VW = "scikit-learn", "river", "Vowpal Wabbit"
LIGHTGBM, CATBOOST, SKFORECAST = "LightGBM", "CatBoost", "skforecast"
MODULES = {
    SKLEARN: "sklearn", RIVER: "river", VW: "vowpalwabbit", LIGHTGBM: "lightgbm",
    CATBOOST: "catboost", SKFORECAST: "skforecast",
}  # fmt: skip


def combinations(make, wrap=None, between=", ", form="{} = {:.4g}", **lists) -> dict:
    """Return makers by texts such as "sigma = 1, lam = 0.1", for every combination of the lists.

    make : a function of these arguments, whose result is wrapped, or a learner whose
        hyper-parameters they are, by the last part of their names.
    lists : values, or a dict of them by texts.
    """
    names = list(lists)
    if hasattr(make, "set_params"):
        full = {name.split("__")[-1]: name for name in make.get_params()}
        make, names = partial(make_anew, make), [full[name] for name in lists]
    texts = [values if isinstance(values, dict) else {form.format(name, v): v for v in values}
             for name, values in lists.items()]  # fmt: skip
    found = {}
    for chosen in product(*(one.items() for one in texts)):
        given = {name: value for name, (_, value) in zip(names, chosen, strict=True)}
        one = partial(make, **given)
        text = between.join(text for text, _ in chosen)
        found[text] = (lambda one=one: wrap(one())) if wrap else one
    return found


def make_anew(learner, **given):
    return copy.deepcopy(learner).set_params(**given)


def tuned(learners: dict, **lists) -> dict:
    """Return the makers of each learner by settings such as "sigma=1 lam=0.1"."""
    return {family: combinations(learner, None, " ", "{}={:.3g}", **lists)
            for family, learner in learners.items()}  # fmt: skip


def run_unless_overflow(learner, X, y):
    """Return the run, or None if numbers overflow (a step too long for squared loss)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return okl.run(learner, X, y)
        except FloatingPointError:
            return None


def missing_libraries(*libraries):
    """Return and print which libraries are not installed."""
    found = tuple(library for library in libraries if find_spec(MODULES[library]) is None)
    for library in found:
        leave_out(f'{library} is not installed and is left out: pip install -e ".[benchmark]"')
    return found


# ---- peers: classifiers of labels -1 and +1 that count their mistakes ----


class Peer:
    """Plays rows (``play``), and counts how many forecasts were wrong, each before its label."""

    rows: int | None = 1000  # rows given at once; None: all
    certificate = None
    size = ""


class Own(Peer):
    """A learner of the package."""

    rows = None

    def __init__(self, learner):
        self.learner = learner

    def play(self, X, y) -> int:
        run = okl.run(self.learner, X, y)
        self.certificate, self.size = run.certificate, self.learner.size
        return int(run.mistakes.sum())


class Batches(Peer):
    """Logistic SGDClassifier of scikit-learn on features: forecasts a batch, then learns it."""

    def __init__(self, kind: str, size: int, sigma: float, step: float):
        from sklearn import kernel_approximation
        from sklearn.linear_model import SGDClassifier

        make, self.size, self.fitted = getattr(kernel_approximation, kind), size, False
        self.features = make(gamma=0.5 / sigma**2, n_components=size, random_state=0)
        fixed = {"learning_rate": "constant", "eta0": step} if step else {}  # 0: its own schedule
        self.model = SGDClassifier(random_state=0, loss="log_loss", alpha=1e-6, **fixed)

    def play(self, X, y) -> int:
        if not self.fitted:
            self.features.fit(X)
        Z = self.features.transform(X)
        wrong = int(np.sum(self.model.predict(Z) != y)) if self.fitted else len(y)
        self.model.partial_fit(Z, y, classes=(-1.0, 1.0))
        self.fitted = True
        return wrong


class Rows(Peer):
    """A classifier of river, row by row."""

    def __init__(self, model):
        self.model = model

    def play(self, X, y) -> int:
        wrong, keys = 0, [f"x{j}" for j in range(X.shape[1])]
        for values, label in zip(X.tolist(), (y > 0.0).tolist(), strict=True):
            x = dict(zip(keys, values, strict=True))
            wrong += self.model.predict_one(x) is not label
            self.model.learn_one(x, label)
        return wrong


def river_logistic(step: float):
    from river import linear_model, optim, preprocessing

    model = linear_model.LogisticRegression(optim.SGD(step), intercept_lr=step)
    return preprocessing.StandardScaler() | model


# ---- learners of the package tuned by hand, as the papers tune them ----
# Inputs, and labels of a regression, are scaled with the whole stream, which looks ahead. The
# setting is chosen with labels, on another permutation of the set or another draw of a made-up
# stream: each setting plays TUNING_ROWS / 4 rows, and the best quarter of them TUNING_ROWS.

TUNING_SEED = 1000  # of the permutation, or of the made-up stream
TUNING_ROWS = 10_000
SIGMAS = tuple(2.0**k for k in range(-2, 7, 2))
EXPONENTS = range(-3, 4)  # steps 10^(-3..3) / sqrt(T)
LAMS = (0.01, 0.1, 1.0)
BUDGET, RANK, FREQUENCIES = 400, 80, 200
MOST_MONOMIALS = 600  # else Taylor features are left out
LINEAR = {"LinearAWV", "LinearRidge", "OGD", "OGD, logistic"}  # with an intercept
HINGE_ONLY = {"POMDR", "OGD, logistic"}  # labels -1 and +1 only


def scale_both_ways(X) -> dict:
    standardised = okl.Standardizer(clip=None).fit_transform(X)
    return {"to [-1, 1]": okl.datasets.scale_to(X), "standardised": standardised}


def grids(kind: str, d: int, T: int) -> dict:
    """Return, by family and setting, makers of learners that play T rounds."""
    signs, kernel, taylor = kind == "classification", okl.Gaussian(), okl.TaylorFeatures(2)
    loss, atoms = {"loss": "hinge" if signs else "squared"}, {"budget": BUDGET}
    steps = {f"step=1e{exponent}/sqrt(T)": 10.0**exponent / T**0.5 for exponent in EXPONENTS}
    nystrom = {f"NystromAWV, {how}": okl.NystromAWV(kernel, max_size=BUDGET, forecaster=how)
               for how in ("awv", "ridge")}  # fmt: skip
    found = {
        **tuned({"LinearAWV": okl.LinearAWV(), "LinearRidge": okl.LinearRidge()}, lam=LAMS),
        **tuned({"OGD": okl.OGD(**loss), "OGD, logistic": okl.OGD(loss="logistic")}, eta=steps),
        **tuned({"POMDR": okl.POMDR(kernel, horizon=T)}, sigma=SIGMAS),
        **tuned({"PKAWV, Fourier": okl.PKAWV(okl.FourierFeatures(FREQUENCIES)),
                 "PKAWV, Taylor": okl.PKAWV(taylor), **nystrom}, sigma=SIGMAS, lam=LAMS),
        **tuned({"FOGD": okl.FOGD(n_frequencies=FREQUENCIES, **loss),
                 "NOGD": okl.NOGD(kernel, rank=RANK, **atoms, **loss),
                 "KernelOGD": okl.KernelOGD(kernel, **atoms, **loss),
                 "BOGD": okl.BOGD(kernel, **atoms, **loss)}, sigma=SIGMAS, eta=steps),
    }  # fmt: skip
    absent = set() if signs else HINGE_ONLY
    if taylor.size(d) > MOST_MONOMIALS:
        absent = absent | {"PKAWV, Taylor"}
    return {family: grid for family, grid in found.items() if family not in absent}


def play(family: str, setting: str, X, stream: Stream, rows: int):
    """Return forecasts of the first rows in the units of the labels, None if numbers overflow.

    X : the inputs of the stream, scaled.
    """
    y, make = stream.y, grids(stream.kind, stream.X.shape[1], rows)[family][setting]
    if family in LINEAR:
        X = np.column_stack([X, np.ones(len(X))])
    middle, half = 0.0, 1.0
    if stream.kind == "regression":  # labels scaled to [-1, 1]
        middle, half = (y.max() + y.min()) / 2.0, (y.max() - y.min()) / 2.0
    run = run_unless_overflow(make(), X[:rows], (y[:rows] - middle) / half)
    return None if run is None else middle + half * run.predictions


def clip(forecasts, stream: Stream):
    """Return forecasts clipped to [-1, 1], or in a regression to the labels seen so far."""
    if stream.kind == "classification":
        return np.clip(forecasts, -1.0, 1.0)
    y = stream.y[: len(forecasts)]
    low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
    out = forecasts.copy()
    out[1:] = np.clip(out[1:], low[:-1], high[:-1])
    return out


def score(forecasts, stream: Stream) -> float:
    """Return the share of mistakes, or the mean squared error of a regression."""
    if forecasts is None or not np.isfinite(forecasts).all():
        return np.inf
    y = stream.y[: len(forecasts)]
    if stream.kind == "classification":
        return float(np.mean(y * forecasts <= 0.0))
    return float(np.square(clip(forecasts, stream) - y).mean())


@lru_cache(maxsize=4)
def tuning_stream(group: str) -> Stream:
    """Return the stream on which a group of streams (a set, or a made-up stream) is tuned."""
    if group in SETS:
        return load_stream(group, TUNING_SEED)
    return next(streams_of_group(group, TUNING_SEED))


@lru_cache(maxsize=1)
def tune(group: str, family: str):
    """Return the scaling and the setting with the lowest score."""
    stream = tuning_stream(group)
    inputs = scale_both_ways(stream.X)
    left = list(product(inputs, grids(stream.kind, stream.X.shape[1], 1)[family]))
    for rows in (TUNING_ROWS // 4, TUNING_ROWS):
        rows = min(rows, len(stream.y))
        scores = {
            (how, setting): score(play(family, setting, inputs[how], stream, rows), stream)
            for how, setting in left
        }
        left = sorted(left, key=scores.__getitem__)[: max(3, len(left) // 4)]
    return left[0]


# ---- rivals that are fitted on the past, anew as it grows, at their best settings ----
# kind : "regression", or "classification" of labels of any number.

RIDGE, TREES, TUNED = "kernel ridge, tuned", "random forest", f"{LIGHTGBM}, tuned"
FIRST_FIT, HELD_OUT, LANDMARKS = 128, 0.2, 500  # the second: share of the past to choose on
GRID = {"num_leaves": (7, 31), "min_child_samples": (5, 20), "learning_rate": (0.03, 0.1, 0.3)}


def settings(who: str, kind: str, d: int) -> list:
    """Return makers of a rival's models, one for each setting to choose from."""
    from sklearn import ensemble, linear_model, pipeline, preprocessing
    from sklearn.kernel_approximation import Nystroem

    signs = kind == "classification"

    def kernel_ridge(width: float, alpha: float):  # itself up to LANDMARKS rows
        features = Nystroem(gamma=width / d, n_components=LANDMARKS, random_state=0)
        ridge = linear_model.RidgeClassifier if signs else linear_model.Ridge
        return pipeline.make_pipeline(preprocessing.StandardScaler(), features, ridge(alpha))

    if who == RIDGE:
        grid = product((0.1, 0.3, 1.0, 3.0), (0.01, 0.1, 1.0))
        return [partial(kernel_ridge, *setting) for setting in grid]
    if who == TREES:
        name = f"RandomForest{'Classifier' if signs else 'Regressor'}"
        return [partial(getattr(ensemble, name), random_state=0)]
    models = boosting_models(kind, d)
    if who == TUNED:
        return [partial(models[LIGHTGBM], **dict(zip(GRID, values, strict=True)))
                for values in product(*GRID.values())]  # fmt: skip
    return [models[who]]


def choose(makers: list, X, y, kind: str):
    """Return the maker whose models of the rows but the last fifth are best on this fifth."""
    cut = int((1.0 - HELD_OUT) * len(y))
    if len(makers) == 1 or (y[:cut] == y[0]).all():
        return makers[0]
    errors = []
    for make in makers:
        found = np.ravel(make().fit(X[:cut], y[:cut]).predict(X[cut:]))
        wrong = found != y[cut:] if kind == "classification" else (found - y[cut:]) ** 2
        errors.append(wrong.mean())
    return makers[int(np.argmin(errors))]


def refit(who: str, X, y, kind: str, growth: float = 1.15, first: int = FIRST_FIT):
    """Forecast by models fitted on all past rows, anew when these have grown.

    The setting is chosen again whenever the past has doubled. Before the first fit, and while
    there is one class, forecasts are the mean or the last label.
    """
    n, makers = len(y), settings(who, kind, X.shape[1])
    means = np.cumsum(y[:-1]) / np.arange(1, n)
    forecasts = np.append(y[:1] * 0, means if kind == "regression" else y[:-1])
    t, choose_at, make = first, first, makers[0]
    while t < n:
        end = min(int(np.ceil(growth * t)), n)
        if t >= choose_at:
            make, choose_at = choose(makers, X[:t], y[:t], kind), 2 * t
        if (y[:t] != y[0]).any():
            forecasts[t:end] = np.ravel(make().fit(X[:t], y[:t]).predict(X[t:end]))
        t = end
    return forecasts


# ---- rivals of self-tuning: functions from a stream and a limit to a setting and forecasts ----

HORIZONS = (5000, 10_000, 20_000)  # averages are kept after so many rounds, and after all
SLOW_ROWS, FEWER_ROWS = 10_000, 5000  # of slow rivals; of those on more than NARROW inputs
NARROW, WIDE = 10, 60  # on more than WIDE inputs all of river is slow
COMPONENTS = 400  # random Fourier features
RIVER_COMPONENTS = 50  # its RBFSampler has so many of each input by itself, unscaled
OWN, PLAIN, BOOSTING = "oklnumba, tuned by hand", "none", "boosting, refitted"
TREE, FOREST = "HoeffdingAdaptiveTree", "AdaptiveRandomForest"
MONDRIAN, PATCHES = "MondrianForest", "StreamingRandomPatches"
FIRST_FITS, REFIT = (200, 500), 1000  # boosting is fitted after so many rows, and every so many
WITH_LABEL, NEWEST = ", given the last label", ", fitted on the last 2,000 rows"
NEWEST_ROWS = 2000
OFTEN = f"{LIGHTGBM}, refitted at every 15 %"
REFITTED = {OFTEN: {"growth": "15%"}, CATBOOST: {"growth": "100%", "first": 250}}


def averages(series, n: int, unit: float = 1.0):
    """Return means of the first rounds at HORIZONS and of all n, "" where they were not played."""
    found = [
        f"{unit * series[:at].mean():.6g}" if at <= min(n, len(series)) else "" for at in HORIZONS
    ]
    return [*found, f"{unit * series.mean():.6g}" if len(series) == n else ""]


def row(stream: Stream, forecasts) -> dict:
    """Return mistakes (%) and mean squared loss of the clipped forecasts."""
    n, y = len(stream.y), stream.y[: len(forecasts)]
    loss = averages(np.square(clip(forecasts, stream) - y), n)
    mistakes = [""] * len(loss)
    if stream.kind == "classification":
        mistakes = averages(y * forecasts <= 0.0, n, 100.0)
    names = [f"{measure}_{h}" for measure in ("mistakes", "loss") for h in (*HORIZONS, "all")]
    return {"n": n, "rounds": len(forecasts)} | dict(zip(names, mistakes + loss, strict=True))


def last_label(stream: Stream, limit: float):
    return "last label", np.concatenate([[0.0], stream.y[:-1]])


def plain(stream: Stream, limit: float):
    """Forecast the last label, or in a regression the mean of the labels so far."""
    if stream.kind == "classification":
        return last_label(stream, limit)
    return "mean so far", np.concatenate([[0.0], running_moments(stream.y)[0][:-1]])


def play_tuned(group: str, family: str, stream: Stream, limit: float):
    how, setting = tune(group, family)
    forecasts = play(family, setting, scale_both_ways(stream.X)[how], stream, len(stream.y))
    return f"{setting} {how}", np.zeros(0) if forecasts is None else forecasts


def standardise_online(V):
    """Return each row less the mean of the rows up to it, over their deviation (1 where it is 0).

    A row itself counts: inputs are seen before the forecast, and the step comes after the label.
    """
    V = V.reshape(len(V), -1) - V[0]  # the sums of squares keep their digits
    mean, deviation = running_moments(V)
    return (V - mean) / np.where(deviation > 0.0, deviation, 1.0)


def running_moments(V):
    """Return mean and deviation of the first rows, for every number of rows."""
    count = np.arange(1, len(V) + 1).reshape(-1, *[1] * (V.ndim - 1))
    mean = np.cumsum(V, axis=0) / count
    variance = np.cumsum(V * V, axis=0) / count - mean**2
    return mean, np.sqrt(np.where(variance > 1e-12 * mean**2, variance, 0.0))


def sklearn_models(kind: str, d: int) -> dict:
    """Return keywords of SGDClassifier or SGDRegressor and gamma of the RBFSampler, by name."""
    constant = {"learning_rate": "constant"}
    if kind == "classification":
        logistic, fast = {"loss": "log_loss"}, constant | {"eta0": 1.0}
        passive = {"loss": "hinge", "penalty": None, "learning_rate": "pa1"}
        return {
            "SGD, logistic": (logistic, None),
            "SGD, logistic, step 0.1": (logistic | constant | {"eta0": 0.1}, None),
            "passive-aggressive, C=0.01": (passive | {"eta0": 0.01}, None),
            "RBFSampler + SGD, logistic, gamma=1/d": (logistic, 1.0 / d),
            "RBFSampler + SGD, logistic, step 1, gamma=0.3/d": (logistic | fast, 0.3 / d),
        }
    return {
        "SGD": ({}, None),
        "SGD, step 0.001": (constant | {"eta0": 0.001}, None),
        "SGD, step 0.01": (constant | {"eta0": 0.01}, None),
        "RBFSampler + SGD, step 0.3, gamma=1/d": (constant | {"eta0": 0.3}, 1.0 / d),
        "RBFSampler + SGD, step 0.3, gamma=0.1/d": (constant | {"eta0": 0.3}, 0.1 / d),
    }


def play_sklearn(name: str, stream: Stream, limit: float):
    """Play one of ``sklearn_models`` on inputs (and labels) standardised online."""
    import sklearn
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    keywords, gamma = sklearn_models(stream.kind, stream.X.shape[1])[name]
    y = stream.y[: slow_rows(stream.X.shape[1])]
    Z = standardise_online(stream.X[: len(y)])
    if gamma is not None:
        Z = RBFSampler(gamma=gamma, n_components=COMPONENTS, random_state=0).fit_transform(Z)
    forecasts = np.zeros(len(y))
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        if stream.kind == "classification":
            model, targets = SGDClassifier(random_state=0, **keywords), y
            first = {"classes": (-1.0, 1.0)}
        else:
            model, targets = SGDRegressor(random_state=0, **keywords), standardise_online(y)
            first, targets = {}, targets[:, 0]
        for t in rounds_within(limit, len(y)):
            if t:
                forecasts[t] = Z[t] @ model.coef_.ravel() + model.intercept_[0]
            model.partial_fit(Z[t : t + 1], targets[t : t + 1], **({} if t else first))
    forecasts = forecasts[: t + 1]
    if keywords.get("loss") == "log_loss":
        forecasts = np.tanh(forecasts / 2.0)  # 2 p - 1
    elif stream.kind == "regression":  # in the units of the labels, 0 for the first
        mean, deviation = (past[:t] for past in running_moments(y - y[0]))
        forecasts[1:] = y[0] + mean + np.where(deviation > 0.0, deviation, 1.0) * forecasts[1:]
    return "", forecasts


def rounds_within(limit: float, rows: int):
    """Yield 0 .. rows - 1, and stop early after ``limit`` CPU seconds."""
    start = time.process_time()
    for t in range(rows):
        if t % 256 == 0 and time.process_time() - start > limit:
            return
        yield t


def boosting_models(kind: str, d: int) -> dict:
    """Return makers of boosted trees, with the defaults of their libraries, by name."""
    from sklearn import ensemble

    family = "Classifier" if kind == "classification" else "Regressor"
    histogram = "HistGradientBoosting"
    found = {histogram: partial(getattr(ensemble, f"{histogram}{family}"), random_state=0)}
    if find_spec(MODULES[LIGHTGBM]):
        import lightgbm

        make = partial(getattr(lightgbm, f"LGBM{family}"), verbose=-1, n_jobs=1)
        names = LIGHTGBM, f"{LIGHTGBM}{WITH_LABEL}", f"{LIGHTGBM}{NEWEST}", OFTEN, TUNED
        found = dict.fromkeys(names, make) | found
    if find_spec(MODULES[CATBOOST]):
        import catboost

        quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
        found[CATBOOST] = partial(getattr(catboost, f"CatBoost{family}"), **quiet)
    return found


def play_boosting(name: str, stream: Stream, limit: float, rows: int | None = None):
    """Play one of ``boosting_models``, fitted now and then on all rows so far or the newest.

    Before the first fit, and while all their labels are of one class, it forecasts as ``plain``.
    CatBoost and tuned LightGBM play as many rows as slow rivals unless told otherwise.
    """
    (n, d), signs, start = stream.X.shape, stream.kind == "classification", time.process_time()
    if name in (TUNED, CATBOOST):
        stream = stream.first(rows or slow_rows(d))
    if name == TUNED:
        return "", refit(name, stream.X, stream.y, stream.kind)
    make = boosting_models(stream.kind, d)[name]
    if name in REFITTED:
        refitted = okl.Refit(make(), **REFITTED[name])
        return "", okl.run(refitted, stream.X, stream.y, time_limit=limit).predictions
    inputs, forecasts = stream.X, plain(stream, limit)[1]
    if name.endswith(WITH_LABEL):
        inputs = np.column_stack([inputs, np.append(0.0, stream.y[:-1])])
    fits = [t for t in (*FIRST_FITS, *range(REFIT, n, REFIT)) if t < n]
    with threadpool_limits(1):
        for t, end in pairwise([*fits, n]):
            first = max(0, t - NEWEST_ROWS) if name.endswith(NEWEST) else 0
            X, y, rows = inputs[first:t], stream.y[first:t], inputs[t:end]
            if time.process_time() - start > limit:
                return "", forecasts[:t]
            if signs and (y != y[0]).any():
                forecasts[t:end] = 2.0 * make().fit(X, y).predict_proba(rows)[:, 1] - 1.0
            elif not signs:
                forecasts[t:end] = make().fit(X, y).predict(rows)
    return "", forecasts


def river_models(kind: str, d: int) -> dict:
    from river import ensemble, feature_extraction, forest, linear_model, optim, preprocessing, tree

    def scaled(model, gamma=None):
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
            "LogisticRegression, step 1": scaled(logistic(sgd(1.0), intercept_lr=1.0)),
            "PAClassifier": scaled(linear_model.PAClassifier()),
            "PAClassifier, C=0.01": scaled(linear_model.PAClassifier(C=0.01)),
            "RBFSampler + LogisticRegression, step 0.1/d": scaled(logistic(sgd(0.1 / d)), 1.0),
            TREE: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
            FOREST: forest.ARFClassifier(seed=0),
            MONDRIAN: scaled(forest.AMFClassifier(seed=0)),
            PATCHES: ensemble.SRPClassifier(seed=0),
        }

    def target(model, gamma=None):
        return scaled(preprocessing.TargetStandardScaler(regressor=model), gamma)

    return {
        "LinearRegression": target(linear()),
        "LinearRegression, step 0.001": target(linear(sgd(0.001))),
        "PARegressor, C=0.01": target(linear_model.PARegressor(C=0.01)),
        "RBFSampler + LinearRegression, step 0.02/d": target(linear(sgd(0.02 / d)), 1.0),
        TREE: tree.HoeffdingAdaptiveTreeRegressor(seed=0),
        FOREST: forest.ARFRegressor(seed=0),
        MONDRIAN: target(forest.AMFRegressor(seed=0)),
        PATCHES: ensemble.SRPRegressor(seed=0),
    }


def play_river(name: str, stream: Stream, limit: float):
    """Play one of ``river_models``; classifiers forecast 2 p - 1."""
    n, d = stream.X.shape
    slow = name in (FOREST, TREE, MONDRIAN, PATCHES) or name.startswith("RBF") or d > WIDE
    rows = min(n, slow_rows(d)) if slow else n
    model, keys = river_models(stream.kind, d)[name], [f"x{j}" for j in range(d)]
    forecasts = np.zeros(rows)
    for t in rounds_within(limit, rows):
        x = dict(zip(keys, stream.X[t].tolist(), strict=True))
        if stream.kind == "classification":
            p = model.predict_proba_one(x)
            forecasts[t] = 2.0 * p.get(True, 0.0) - 1.0 if p else 0.0
            model.learn_one(x, bool(stream.y[t] > 0.0))
        else:
            if t:  # the Mondrian forest has no first forecast
                forecasts[t] = model.predict_one(x) or 0.0
            model.learn_one(x, float(stream.y[t]))
    return "", forecasts[: t + 1]


@lru_cache(maxsize=2)
def streams_of(group: str):
    return tuple(streams_of_group(group))


def slow_rows(d: int) -> int:
    """Return the rounds that slow rivals play, and in which all are compared."""
    return SLOW_ROWS if d <= NARROW else FEWER_ROWS


def jobs(missing=()):
    """Yield group, library, learner and player, but for libraries that are missing."""
    for group in groups():
        found = streams_of(group)
        d, kind = found[0].X.shape[1], found[0].kind
        for player in (plain, last_label) if kind == "regression" else (plain,):
            yield group, PLAIN, player.__name__, player
        for family in grids(kind, d, 1):
            yield group, OWN, family, partial(play_tuned, group, family)
        for library, by, models, player in (
            (SKLEARN, SKLEARN, sklearn_models, play_sklearn),
            (RIVER, RIVER, river_models, play_river),
            (SKLEARN, BOOSTING, boosting_models, play_boosting),
        ):
            for name in () if library in missing else models(kind, d):
                yield group, by, name, partial(player, name)


def play_all(path, missing, limit: float) -> None:
    """Play what the csv lacks, ``limit`` CPU seconds each, and write it after every run."""
    rows = read_csv(path)
    done = {(r["stream"], r["by"], r["learner"]) for r in rows}
    for group, by, learner, play in tqdm(list(jobs(missing)), unit=" job", disable=None):
        for stream in streams_of(group):
            if (stream.name, by, learner) in done:
                continue
            start = time.process_time()
            setting, forecasts = play(stream, limit)
            head = {"stream": stream.name, "kind": stream.kind, "by": by, "learner": learner}
            seconds = {"cpu_seconds": f"{time.process_time() - start:.3g}"}
            scores = row(stream, np.nan_to_num(forecasts))
            rows.append(head | {"setting": setting} | scores | seconds)
            write_csv(path, rows)


def find_best(rows, at: str, measure: str):
    """Return the row with the least ``measure`` ("mistakes" or "loss") at a horizon."""
    column = f"{measure}_{at}"
    there = [r for r in rows if r[column] != ""]
    return min(there, key=lambda r: float(r[column])) if there else None
