"""What new users get wrong, and what they are told: every message names the argument and the cure.

Each row is a line of code as somebody used to scikit-learn, river, LIBOL or R would write it, the
error, and what its message must have in it.
"""

from __future__ import annotations

import copy
import decimal
import fractions
import inspect
import pickle
import pydoc
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier

import oklnumba as okl
from oklnumba.core.arguments import SIZES
from oklnumba.core.params import Params
from tests.battery import LEARNERS, make, stream
from tests.compiled import COMPILED

X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
Y = np.sign(X[:, 0])
GAUSSIAN, TAYLOR = okl.Gaussian(1.0), okl.TaylorFeatures(2)
VALUE, TYPE, ATTRIBUTE = ValueError, TypeError, AttributeError
GAMMA = "gamma = 1 / (2 sigma^2)"

# ---- the wrong object, or none ----

OBJECTS = [
    ("okl.PKAWV(k)", VALUE, "features must be", "Gaussian", "NystromAWV and KernelAWV"),
    ("okl.FOGD(k)", VALUE, "features must be", "the kernel", "okl.NystromFeatures(landmarks"),
    ("okl.KernelAWV(T)", VALUE, "kernel must be", "the feature map", "PKAWV, FOGD"),
    ("okl.NystromFeatures(k, X)", VALUE, "landmarks", "okl.NystromFeatures(landmarks, kernel)"),
    ("okl.WithFeatures(okl.OGD(), T)", VALUE, "learner", "okl.WithFeatures(features, learner)"),
    ("okl.WithFeatures(T, okl.FOGD())", VALUE, "learner", "okl.OGD()"),
    ("okl.PKAWV(okl.TaylorFeatures)", VALUE, "features", "make one: okl.TaylorFeatures(...)"),
    ("okl.KernelAWV(okl.Gaussian)", VALUE, "kernel", "make one: okl.Gaussian(...)"),
    ("okl.Experts([okl.FOGD])", VALUE, "learners[0]", "make one: okl.FOGD(...)"),
    ("okl.Standardized(okl.KernelAWV)", VALUE, "learner", "make one: okl.KernelAWV(kernel)"),
    ("okl.OnlineToBatch(okl.FOGD).fit(X, y)", VALUE, "learner", "make one: okl.FOGD(...)"),
    ("okl.run(okl.KernelAWV, X, y)", VALUE, "learner", "make one: okl.KernelAWV(kernel)"),
    ("okl.run(SGDClassifier(), X, y)", VALUE, "learner", "scikit-learn's SGDClassifier"),
    ("okl.Experts([SGDClassifier()])", VALUE, "learners[0]", "scikit-learn's"),
    ("okl.run(X, y, okl.FOGD())", VALUE, "learner", "okl.run(learner, X, y)"),
    ("okl.KernelAWV('rbf')", VALUE, "kernel", "'rbf'", "okl.Gaussian(sigma=1.0)"),
    ("okl.KORS('poly')", VALUE, "kernel", "okl.Polynomial(degree=2)"),
    ("okl.FOGD('hinge')", VALUE, "features", "'hinge'", "okl.TaylorFeatures(degree=2)"),
    ("okl.OGD('squared')", VALUE, "eta must be a number > 0", "'squared'"),
    ("okl.KernelAWV()", TYPE, "needs kernel", "okl.KernelAWV(okl.Gaussian(sigma=1.0))"),
    ("okl.PKAWV(lam=1.0)", TYPE, "needs features", "okl.TaylorFeatures(degree=2)"),
    ("okl.NystromFeatures(X)", TYPE, "needs kernel", "okl.Gaussian"),
    ("okl.OneVsRest(okl.FOGD())", TYPE, "needs classes", "[0, 1, 2]"),
    ("okl.OneVsRest(['a', 'b'], okl.FOGD())", VALUE, "learner must be", "okl.FOGD()"),
    ("okl.Experts([])", VALUE, "learners must be a list of one or more", "okl.FOGD("),
    ("okl.Experts(okl.FOGD())", VALUE, "learners must be a list", "[okl.FOGD("),
    ("okl.BAO2KS([])", VALUE, "kernels must be a kernel or a list", "okl.Gaussian("),
    ("okl.GrowingPKAWV(okl.FourierFeatures())", VALUE, "features", "TaylorFeatures", "PKAWV takes"),
]

# ---- names of other classes and other libraries ----

NAMES = [
    ("okl.Gaussian(gamma=0.5)", TYPE, "no argument gamma", "sigma", GAMMA),
    ("okl.FOGD(gamma=0.5)", TYPE, "no argument gamma", "sigma", GAMMA),
    ("okl.KernelAWV(k, gamma=0.5)", TYPE, "no argument gamma", "okl.Gaussian(sigma=...)", GAMMA),
    ("okl.Laplacian(gamma=0.5)", TYPE, "no argument gamma", "gamma = 1 / sigma"),
    ("okl.Polynomial(3, gamma=0.5)", TYPE, "no argument gamma", "gamma = scale"),
    ("okl.Matern(length_scale=2.0)", TYPE, "no argument length_scale", "sigma is meant"),
    ("okl.FOGD(bandwidth=2.0)", TYPE, "no argument bandwidth", "sigma is meant"),
    (
        "okl.PKAWV(T, sigma=2.0)",
        TYPE,
        "no argument sigma",
        "features=okl.TaylorFeatures(sigma=...)",
    ),
    ("okl.NystromAWV(k, sigma=2.0)", TYPE, "no argument sigma", "kernel=okl.Gaussian(sigma=...)"),
    ("okl.NystromAWV(k, budget=100)", TYPE, "no argument budget", "max_size"),
    ("okl.NOGD(k, n_components=100)", TYPE, "no argument n_components", "budget", "rank"),
    ("okl.BOGD(k, max_size=100)", TYPE, "no argument max_size", "budget (most atoms)"),
    (
        "okl.FOGD(n_components=100)",
        TYPE,
        "no argument n_components",
        "n_frequencies",
        "two features",
    ),
    ("okl.TaylorFeatures(n_components=9)", TYPE, "no argument n_components", "degree"),
    ("okl.PKAWV(T, budget=100)", TYPE, "no argument budget", "features=okl.FourierFeatures("),
    (
        "okl.KernelAWV(k, budget=100)",
        TYPE,
        "no argument budget",
        "NystromAWV(kernel, max_size=...)",
    ),
    ("okl.KernelAWV(k, alpha=1.0)", TYPE, "no argument alpha", "lam is meant"),
    ("okl.KernelOGD(k, C=1.0)", TYPE, "no argument C", "lam is of order 1 / C"),
    ("okl.KernelAWV(k, lamda=1.0)", TYPE, "no argument lamda", "lam is meant"),
    ("okl.OGD(penalty='l2')", TYPE, "no argument penalty", "lam |f|^2"),
    ("okl.KernelOGD(k, l2=0.1)", TYPE, "no argument l2", "lam is meant"),
    ("okl.FOGD(alpha=1e-4)", TYPE, "no argument alpha", "no penalty", "KernelOGD(kernel, lam=...)"),
    ("okl.FOGD(learning_rate=0.1)", TYPE, "no argument learning_rate", "eta is meant"),
    ("okl.OGD(eta0=0.1)", TYPE, "no argument eta0", "eta is meant"),
    ("okl.FOGD(random_state=0)", TYPE, "no argument random_state", "seed is meant"),
    ("okl.PKAWV(T, half_life=50)", TYPE, "no argument half_life", "2 ** (-1 / half_life)"),
    ("okl.KernelAWV(k, loss='hinge')", TYPE, "no argument loss", "FOGD, KernelOGD and BOGD"),
    ("okl.FOGD(max_iter=5)", TYPE, "no argument max_iter", "one pass"),
    ("okl.OGD(fit_intercept=True)", TYPE, "no argument fit_intercept", "column of ones"),
    ("okl.FOGD(n_jobs=-1)", TYPE, "no argument n_jobs", "leave it out"),
    ("okl.SelfTuning(max_size=99)", TYPE, "no argument max_size", "budget (most atoms)"),
    ("okl.BAO2KS([k], gamma=1.0)", TYPE, "no argument gamma", "kernels=[okl.Gaussian(", GAMMA),
    ("okl.Experts([okl.OGD()], eta=1.0)", TYPE, "no argument eta", "learners=[okl.FOGD(eta"),
    ("okl.SelfTuning(C=1.0)", TYPE, "no argument C", "it tunes itself"),
    ("okl.Gaussian(sgima=1.0)", TYPE, "no argument sgima", "sigma is meant"),
    ("okl.TaylorFeatures(degre=3)", TYPE, "no argument degre", "degree is meant"),
    ("okl.KernelAWV(k, 0.1)", TYPE, "1 argument without a name", "okl.KernelAWV(kernel, lam=0.1)"),
    ("okl.TaylorFeatures(3, 2.0)", TYPE, "without a name", "okl.TaylorFeatures(degree, sigma=2.0)"),
    ("okl.KernelAWV(k, kernel=k)", TYPE, "kernel twice", "leave one out"),
    ("okl.FOGD().set_params(alpha=1)", VALUE, "'alpha'", "no penalty", "it has features, loss"),
    ("okl.KernelAWV(k).set_params(kernel__gamma=1)", VALUE, "'kernel__gamma'", "sigma", GAMMA),
    ("okl.FOGD().fit(X, y)", ATTRIBUTE, "no fit", "okl.run(learner, X, y)", "OnlineClassifier"),
    ("okl.FOGD().score(X, y)", ATTRIBUTE, "no score", "mistake_rate"),
    ("okl.FOGD().predict_many(X)", ATTRIBUTE, "no predict_many", "predict(X)"),
    ("okl.datasets.load('magic4')", VALUE, "'magic4'", "did you mean 'magic04'?"),
]

# ---- values out of range, or of another kind ----

VALUES = [
    ("okl.KernelAWV(k, lam=0)", VALUE, "lam must be a number > 0", "is 0"),
    ("okl.KernelAWV(k, lam=10**400)", VALUE, "lam must be a number > 0", "1000"),
    ("okl.FOGD(loss='huber')", VALUE, "loss must be one of squared, absolute", "hinge", "'huber'"),
    ("okl.POMDR(k, budget=401)", VALUE, "budget must be even", "401"),
    ("okl.NOGD(k, budget=50)", VALUE, "rank must be at most budget = 50", "80"),
    ("okl.FOGD(seed=-1)", VALUE, "seed must be an integer >= 0", "-1"),
    ("okl.FOGD(seed=None)", VALUE, "seed must be an integer >= 0", "None"),
    ("okl.Gaussian(sigma='scale')", VALUE, "sigma must be a number > 0", "'scale'"),
    ("okl.Gaussian(sigma=None)", VALUE, "sigma must be a number > 0", "None"),
    ("okl.Gaussian(sigma=X[0])", VALUE, "sigma must be a number > 0", "an array of shape (3,)"),
    ("okl.KernelAWV(k, lam=np.array(0.5))", VALUE, "lam must be a number", "lam=0.5"),
    ("okl.TaylorFeatures(2.0)", VALUE, "degree must be an integer >= 0", "2, not 2.0"),
    ("okl.TaylorFeatures('2')", VALUE, "degree must be an integer >= 0", "'2'"),
    ("okl.TaylorFeatures(center=0.5)", VALUE, "center must be one point, a 1-D array"),
    ("okl.Matern(nu=2)", VALUE, "nu must be 0.5, 1.5 or 2.5"),
    ("okl.PKAWV(T, discount=50)", VALUE, "discount", "2 ** (-1 / h)"),
    ("okl.PKAWV(T, forecaster='vovk')", VALUE, "forecaster must be 'awv' or 'ridge'"),
    ("okl.KernelOGD(k, eta=1.0, lam=2.0)", VALUE, "lam must be less than 1 / eta"),
    (
        "okl.KONS(k, loss='hinge')",
        VALUE,
        "loss='hinge' has no curvature",
        "schedule='sqrt'",
        "FOGD",
    ),
    ("okl.OGD(schedule='invscaling')", VALUE, "schedule must be 'constant', 'sqrt' or 'strong'"),
    (
        "okl.Experts([okl.FOGD(), okl.OGD()])",
        VALUE,
        "learners must have one loss",
        "hinge, squared",
    ),
    ("okl.Experts([okl.FOGD()])", VALUE, "kind 'aggregating'", "kind='mlpoly' or kind='hedge'"),
    ("okl.OneVsRest(okl.FOGD(), ['a'])", VALUE, "classes must be at least two", "['no', 'yes']"),
    (
        "okl.OneVsRest(okl.FOGD(), [0.0, float('nan')])",
        VALUE,
        "classes must be at least two",
        "nan",
    ),
    ("okl.OneVsRest(okl.FOGD(), 3)", VALUE, "classes must be", "[0, 1, 2]"),
    ("okl.OneVsRest(okl.FOGD(), [1, 'a'])", VALUE, "classes must be", "all numbers or all texts"),
    ("okl.KernelAWV(k).set_params(kernel__sigma=-1)", VALUE, "sigma must be a number > 0", "-1"),
    ("played.set_params(eta=1.0)", VALUE, "eta", "call reset() first, or make a new one"),
    ("okl.Standardized(okl.FOGD(), clip=0)", VALUE, "clip must be a number > 0"),
]

# ---- arguments that would change nothing ----

IGNORED = [
    ("okl.FOGD(T, sigma=3.0)", VALUE, "sigma=3.0 would be ignored", "set it in features"),
    ("okl.FOGD(T, n_frequencies=50)", VALUE, "n_frequencies=50 would be ignored", "features"),
    ("okl.FOGD(T, seed=1)", VALUE, "seed=1 would be ignored", "leave it out"),
    ("okl.OGD(lam=0.1)", VALUE, "lam=0.1 would be ignored", "schedule='strong'"),
    ("okl.OGD(1.0, schedule='strong', lam=0.1)", VALUE, "eta=1.0 would be ignored", "1 / (lam t)"),
    ("okl.AdaptiveFTRL(sigma=2.0)", VALUE, "sigma=2.0 would be ignored", "kind='sqrt'"),
    ("okl.ExpConcaveFTRL(radius=2.0)", VALUE, "radius=2.0 would be ignored", "domain='ball'"),
    ("okl.NystromAWV(k, sampler=0.1, mu=0.5)", VALUE, "mu=0.5 would be ignored", "sampler='kors'"),
    ("okl.ProsNKONS(k, sampler=0.1, beta=2.0)", VALUE, "beta=2.0 would be ignored", "leave it out"),
    ("okl.BAO2KS([k, okl.Linear()], beta=2.0)", VALUE, "beta=2.0 would be ignored", "several"),
    ("okl.Experts([okl.OGD()], kind='mlpoly', B=5.0)", VALUE, "B=5.0 would be ignored", "no bound"),
]

# ---- data ----

DATA = [
    ("okl.run(okl.FOGD(), X)", VALUE, "labels are missing", "pass y"),
    ("okl.run(okl.FOGD(), y, X)", VALUE, "X and y have changed places", "pass X"),
    ("okl.FOGD().partial_fit(y, X)", VALUE, "X and y have changed places", "pass X"),
    ("okl.run(okl.FOGD(), X[0], 1.0)", VALUE, "X must be 2-D", "X.reshape(1, -1)"),
    ("okl.run(okl.FOGD(), X, y[:, None])", VALUE, "y must have shape (30,)", "y.ravel()"),
    ("okl.run(okl.FOGD(), X, y[:9])", VALUE, "y must have shape (30,)", "(9,)"),
    (
        "okl.run(okl.FOGD(), X, np.arange(30) % 2)",
        VALUE,
        "y has 0 at row 0",
        "-1 and +1",
        "2 * y - 1",
    ),
    ("okl.run(okl.FOGD(), X, ['a', 'b'] * 15)", VALUE, "y must hold real numbers", "OneVsRest"),
    ("okl.run(okl.FOGD(), np.where(X > 0.9, np.nan, X), y)", VALUE, "X has nan", "impute"),
    ("okl.run(okl.FOGD(), texts, y)", VALUE, "X", "encode"),
    ("okl.run(okl.FOGD(), [[1.0], [1.0, 2.0]], y[:2])", VALUE, "X must hold", "ragged rows"),
    ("okl.run(okl.FOGD(), (x for x in X), y)", VALUE, "X", "iterator", "pairs (X, y)"),
    ("okl.run(okl.FOGD(), (x for x in X))", VALUE, "chunk 0", "pair (X, y)", "two arrays"),
    ("okl.run(okl.FOGD(), 'data.csv')", VALUE, "X is the path 'data.csv'", "okl.stream"),
    ("okl.run(okl.FOGD(), X[:0], y[:0])", VALUE, "X is empty", "it needs a row and a column"),
    ("okl.run(okl.KONS(k), X, 3 * y)", VALUE, "y has", "[-C, C] with C = 1.0", "raise C or scale"),
    ("okl.run(okl.OneVsRest(okl.FOGD(), [0, 1]), X, y)", VALUE, "y has -1", "classes [0, 1]"),
    ("okl.MultiOutput(okl.OGD()).partial_fit(X, y)", VALUE, "y must have shape (n, K)", "(-1, 1)"),
    ("okl.run(okl.FOGD(), X, y, loss='log')", VALUE, "loss must be one of", "logistic", "'log'"),
    ("okl.run(okl.FOGD(), X, y, time_limit=-1)", VALUE, "time_limit must be a number > 0", "-1"),
    ("okl.run(okl.FOGD(), X, y, every=0)", VALUE, "every must be an integer >= 1", "0"),
    ("played.predict(X[:, :2])", VALUE, "X has 2 columns", "pass 3 columns"),
    ("played.predict_one(X)", VALUE, "x must be one point", "predict(X)"),
    ("played.predict_one({'a': 1.0})", VALUE, "x must hold real numbers", "to_river"),
    ("played.learn_one(X[0])", VALUE, "labels are missing", "pass y"),
    ("k(X[0])", VALUE, "X must be 2-D", "X.reshape(1, -1)"),
    ("k(X, X[:, :2])", VALUE, "Z has 2 columns, but X has 3"),
    ("okl.TaylorFeatures(2, center=[0.0]).transform(X)", VALUE, "center has 1 entries", "give 3"),
    ("okl.PKAWV(okl.TaylorFeatures(30)).learn_one(np.ones(20), 1)", VALUE, "lower the degree"),
    ("okl.datasets.load('magic04', scale='yes')", VALUE, "scale must be", "'yes'"),
]

# ---- too early, wrong files, theory and plots ----

REST = [
    ("okl.KORS(k).landmarks_", NotFittedError, "KORS has seen no data", "partial_fit(X)"),
    ("okl.KORS(k).transform(X)", NotFittedError, "KORS has seen no data", "partial_fit(X)"),
    ("okl.Standardizer().mean_", VALUE, "Standardizer has seen no data", "partial_fit(X)"),
    (
        "okl.OnlineToBatch(okl.FOGD()).predict(X)",
        VALUE,
        "OnlineToBatch has seen no data",
        "fit(X, y)",
    ),
    (
        "okl.MultiOutput(okl.OGD()).predict(X)",
        VALUE,
        "MultiOutput has seen no data",
        "play a round",
    ),
    ("okl.OGD().w", VALUE, "there is no point yet", "reset(d)"),
    ("okl.load(folder / 'run.npz')", VALUE, "run.npz holds no learner", "Run.load"),
    ("okl.Run.load(folder / 'learner.npz')", VALUE, "learner.npz holds no run", "oklnumba.load"),
    ("okl.load(folder / 'notes.txt')", VALUE, "notes.txt is not a file that oklnumba saved"),
    ("okl.load(folder / 'none.npz')", FileNotFoundError, "none.npz"),
    ("okl.FOGD().save(folder / 'no' / 'a.npz')", FileNotFoundError, "no such folder", "make it"),
    (
        "okl.run(okl.FOGD(), X, y, checkpoint=folder / 'c.npz')",
        VALUE,
        "c.npz is of PKAWV",
        "another",
    ),
    (
        "okl.run(okl.FOGD(), X, y).regret('rbf', lam=1.0)",
        VALUE,
        "kernel",
        "okl.Gaussian(sigma=1.0)",
    ),
    ("okl.run(okl.FOGD(), X, y).regret(k, lam=0)", VALUE, "lam must be a number > 0"),
    ("okl.theory.awv_bound(X, k, 1.0)", VALUE, "kernel must be", "an array of shape (30, 3)"),
    ("okl.theory.regret(y, k, X, y[:3], 1.0)", VALUE, "y must have shape (30,)", "(3,)"),
    ("okl.theory.kons_step('hinge', -1)", VALUE, "C must be a number > 0", "-1"),
    ("okl.plots.loss_curves([], None)", VALUE, "runs must be a mapping", "{'FOGD': okl.run("),
    (
        "okl.plots.time_curves(okl.run(okl.FOGD(), X, y), None)",
        VALUE,
        "runs must be a mapping",
        "{'FOGD': okl.run(",
    ),
    ("okl.plots.certificate(okl.run(okl.FOGD(), X, y), None)", VALUE, "no certificate", "AWV"),
]

MISTAKES = [*OBJECTS, *NAMES, *VALUES, *IGNORED, *DATA, *REST]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Return what the code of the rows may use."""
    folder = tmp_path_factory.mktemp("mistakes")
    learner = okl.PKAWV(TAYLOR)
    okl.run(learner, X, Y).save(folder / "run.npz")
    learner.save(folder / "learner.npz")
    okl.run(okl.PKAWV(TAYLOR), X, Y, checkpoint=folder / "c.npz")
    (folder / "notes.txt").write_text("notes", encoding="utf-8")
    played = okl.FOGD(n_frequencies=5).partial_fit(X, Y)
    texts = pd.DataFrame({"a": ["u", "v"] * 15, "b": range(30)})
    given = {"okl": okl, "np": np, "SGDClassifier": SGDClassifier, "k": GAUSSIAN, "T": TAYLOR}
    return given | {"X": X, "y": Y, "folder": folder, "texts": texts, "played": played}


@pytest.mark.filterwarnings("ignore:the (kernel|Taylor|labels)")
@pytest.mark.parametrize(
    ("code", "kind", "said"), [pytest.param(a, b, c, id=a) for a, b, *c in MISTAKES]
)
def test_a_mistake_is_told_with_its_cure(code, kind, said, names):
    with pytest.raises(kind) as caught:
        eval(code, names)
    message = str(caught.value)
    assert [part for part in said if part not in message] == [], message
    assert "\n" not in message and "oklnumba." not in message.replace("oklnumba.load", "")


# ---- where the mistake is made ----


def test_a_bad_call_of_set_params_changes_nothing_however_deep():
    inner = okl.OGD(eta=0.5)
    learner = okl.WithFeatures(okl.TaylorFeatures(2, sigma=1.5), inner)
    before = learner.get_params()
    for params in (
        {"features__sigma": -1.0},
        {"features__degree": 3, "learner__eta": 0.0},
        {"learner__eta": 1.0, "features__degree": -1},
        {"learner__schedule": "sqrt", "learner__lam": 1.0},
        {"learner": okl.FOGD(), "features__degree": 3},
    ):
        with pytest.raises(ValueError):
            learner.set_params(**params)
        assert learner.get_params() == before and learner.learner is inner
    fresh = okl.TaylorFeatures(4)
    with pytest.raises(ValueError, match="eta"):
        learner.set_params(features=fresh, features__degree=1, learner__eta=-1.0)
    assert learner.get_params() == before and fresh.degree == 4
    learner.set_params(learner__schedule="strong", learner__lam=2.0, learner__eta=0.1)
    assert learner.learner.lam == 2.0


@pytest.mark.parametrize("cls", LEARNERS, ids=lambda cls: cls.__name__)
def test_values_are_stored_as_given(cls):
    learner = make(cls)
    twin = clone(learner)
    for name, value in learner.get_params(deep=False).items():
        assert not np.isscalar(value) or getattr(twin, name) is value


AROUND = {
    "itself": lambda one: one,
    "Experts": lambda one: okl.Experts([one, okl.FOGD()], kind="hedge"),
    "Standardized": okl.Standardized,
    "OneVsRest": lambda one: okl.OneVsRest(one, [-1.0, 1.0]),
    "OnlineToBatch": okl.OnlineToBatch,
}


CLASSES = {
    "range": range(3),
    "list": ["a", "b", "c"],
    "tuple": (0.5, 1.5, 2.5),
    "array": np.arange(3, dtype=np.int8),
    "text array": np.array(["a", "b", "c"]),
    "array of objects": np.array(["a", "b", "c"], dtype=object),
    "Index": pd.Index(["a", "b", "c"]),
    "Series": pd.Series([0, 1, 2]),
    "Categorical": pd.Categorical(["a", "b", "c"]),
    "booleans": [False, True],
}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("learner", [okl.PKAWV(TAYLOR), okl.FOGD(TAYLOR)], ids=["one", "several"])
def test_one_vs_rest_is_saved_with_classes_of_any_kind(kind, learner, tmp_path):
    y = np.asarray(CLASSES[kind])[np.arange(30) % len(CLASSES[kind])]
    learner = okl.OneVsRest(learner, classes=CLASSES[kind])
    assert type(learner.classes) in (range, tuple, np.ndarray)
    assert np.array_equal(learner.classes, CLASSES[kind])
    learner.partial_fit(X, y).save(tmp_path / "a.npz")
    again = okl.load(tmp_path / "a.npz")
    assert np.array_equal(again.predict(X), learner.predict(X))
    assert np.array_equal(
        again.learn_one(X[0], y[0]).scores(X), learner.learn_one(X[0], y[0]).scores(X)
    )
    unplayed = okl.OneVsRest(okl.FOGD(), classes=CLASSES[kind])
    unplayed.save(tmp_path / "b.npz")
    assert okl.load(tmp_path / "b.npz").predict(X)[0] == y[0]


# ---- runs that diverge ----

STEPS = {
    "OGD": (lambda: okl.OGD(50.0), "eta=50.0; lower eta"),
    "OGD, sqrt": (lambda: okl.OGD(500.0, schedule="sqrt"), "eta=500.0; lower eta"),
    "OGD, strong": (lambda: okl.OGD(schedule="strong", lam=1e-4, loss="squared"), "raise lam"),
    "PNorm": (lambda: okl.PNorm(50.0), "eta=50.0; lower eta"),
    "AdaptiveFTRL": (lambda: okl.AdaptiveFTRL("sqrt", eta=900.0), "eta=900.0; lower eta"),
    "FOGD": (lambda: okl.FOGD(loss="squared", eta=9.0), "eta=9.0; lower eta"),
    "FOGD, Taylor": (lambda: okl.FOGD(TAYLOR, loss="squared", eta=99.0), "eta=99.0; lower eta"),
    "KernelOGD": (lambda: okl.KernelOGD(GAUSSIAN, loss="squared", eta=9.0), "eta=9.0; lower eta"),
    "BOGD": (lambda: okl.BOGD(GAUSSIAN, loss="squared", eta=9.0), "eta=9.0; lower eta"),
    "NOGD": (
        lambda: okl.NOGD(GAUSSIAN, loss="squared", eta=9.0, budget=20, rank=9),
        "eta=9.0; lower eta",
    ),
    "SkeGD": (
        lambda: okl.SkeGD(
            GAUSSIAN, loss="squared", eta=9.0, budget=20, columns=9, rank=5, sketch=8
        ),
        "eta=9.0; lower eta",
    ),
}


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("name", STEPS)
def test_a_run_that_diverges_names_the_step_and_the_round(name):
    make_learner, said = STEPS[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    learner = make_learner()
    with pytest.raises(FloatingPointError) as caught:
        okl.run(learner, X, y)
    message = str(caught.value)
    assert said in message and "diverges, its forecast is beyond 1e+100" in message
    at = int(re.search(r"round (\d+)", message)[1])
    assert 2 <= at <= len(X)
    with np.errstate(all="ignore"):
        before = okl.run(make_learner(), X[: at - 1], y[: at - 1])
    assert np.abs(before.predictions).max() < 1e100
    tame = (
        type(learner)(**(learner.get_params(deep=False) | {"eta": 1e-3})) if "eta" in said else None
    )
    assert tame is None or np.isfinite(okl.run(tame, X, y).predictions).all()


# ---- sizes ----


def test_the_table_of_sizes_is_what_the_classes_have():
    page = (Path(__file__).parents[1] / "docs/sizes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \|", page, flags=re.MULTILINE)
    have = {
        (name, parameter.name, str(parameter.default))
        for name in okl.__all__
        if isinstance(cls := getattr(okl, name), type) and issubclass(cls, Params)
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.name in SIZES
    }
    assert len(rows) == len(set(rows)) and set(rows) == have


# ---- what else is refused, each in one place ----

X_40, Y_40 = stream(make(okl.POMDR), 40)
LINE = {
    "one label a forecast": lambda: okl.losses.get("squared").value([1, 2, 3], [1, 2]),
    "B=None needs the labels of the run": lambda: okl.theory.experts_bound(2, B=None),
    "Gaussian takes sigma, but 3 were given": lambda: okl.Gaussian(1.0, 2.0, 3.0),
    "the kernel is zero at all landmarks": lambda: okl.NystromFeatures(
        np.zeros((3, 2)), okl.Linear()
    ).transform(X_40[:, :2]),
    "KORS has kept no point of the 3": lambda: (
        okl.KORS(okl.Linear()).partial_fit(np.zeros((3, 2))).features()
    ),
    "MultiOutput has seen no data": lambda: okl.MultiOutput(okl.FOGD()).predict(X_40),
    "column 1 of y: y has 2 at row": lambda: okl.MultiOutput(okl.FOGD()).partial_fit(
        X_40, np.column_stack([Y_40, 2.0 * np.abs(Y_40)])
    ),
    "there is no point yet: call reset(d)": lambda: okl.LinearAWV().w,
    "which is no label: labels are numbers or texts": lambda: okl.OneVsRest(
        okl.OGD(), [-1, 1]
    ).partial_fit(X_40, np.full(40, "2020-01-01", dtype="M8[D]")),
    "y must have shape (40,), one class a row": lambda: okl.OneVsRest(
        okl.OGD(), [-1, 1]
    ).partial_fit(X_40, [[1], [2, 3]] + 38 * [1]),
}


@pytest.mark.parametrize("words", LINE)
def test_what_is_told(words):
    with pytest.raises((ValueError, TypeError)) as caught:
        LINE[words]()
    assert words in str(caught.value)


def test_learners_of_all_classes_have_no_scorers_and_forecast_for_each():
    learner = okl.OneVsRest(okl.PKAWV(okl.TaylorFeatures(2)), [-1, 1]).partial_fit(X_40, Y_40)
    with pytest.raises(AttributeError, match="one learner plays all 2 classes"):
        _ = learner.scorers_
    one = learner.learners_[0]
    assert np.array_equal(one.predict_one(X_40[0]), learner.scores(X_40[:1])[0])
    with pytest.raises(ValueError, match="plays 2 of them a round"):
        one.partial_fit(X_40, Y_40)
    with pytest.raises(ValueError, match="d must be an integer >= 1"):
        okl.LinearAWV().reset(0)
    assert okl.LinearAWV().reset(3).w.tolist() == [0.0, 0.0, 0.0]
