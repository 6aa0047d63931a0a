"""What new users get wrong: every message names the argument and what to do.

Each row is a line of code as somebody used to scikit-learn, river or LIBOL would write it, the
error, and what its message must contain.
"""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier

import oklnumba as okl
from oklnumba.components.kernels import compute_gradients
from tests.checks import COMPILED

X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
Y = np.sign(X[:, 0])
GAUSSIAN, TAYLOR = okl.Gaussian(1.0), okl.TaylorFeatures(2)
VALUE, TYPE = ValueError, TypeError

HINGE_REGRET = "okl.theory.regret(few[:, 0], k, few, few[:, 0], 1.0, loss='hinge')"
SEVERAL_CLASSES = "okl.SelfTuning(experts=[okl.FOGD(), okl.OneVsRest(okl.FOGD(), [0, 1])])"
OTHER_LABEL = "data has another label than this run had in round"
SIGNS_ONLY = "takes labels -1 and +1 only"
NO_LATE_ROWS = "known must be None: Horizon needs"
IN_CHUNK = "chunk 1 of the stream, from row 9 on: y has 3 at row 20"
AT_ONCE = " needs each label at once; play the"
RAISE_STEPS = "at once; play the learner within it, or raise steps by as"
BAD_CLASSES = "[]", "['one']", "['a', 'a']", "None", "[[1, 2], [3, 4]]", "3"
NO_GROWTHS = "'often'", "'often %'", "-0.1"
NO_SCALES = "2.0", "[]", "np.eye(2)"
NO_COUNTS = "0", "1.5", "'text'", "None"
NO_BOUNDS = "-1.0", "np.nan", "np.inf", "'text'", "None"
MISTAKES = [
    # the wrong object
    ("okl.PKAWV(k)", VALUE, "features must be", "Gaussian", "NystromAWV or KernelAWV"),
    ("okl.KernelAWV(T)", VALUE, "kernel must be", "TaylorFeatures"),
    ("okl.NystromFeatures(k, X)", VALUE, "landmarks", "okl.NystromFeatures(landmarks, kernel)"),
    ("okl.WithFeatures(T, okl.FOGD())", VALUE, "learner", "okl.OGD()"),
    ("okl.PKAWV(okl.TaylorFeatures)", VALUE, "features", "okl.TaylorFeatures(...)"),
    ("okl.Standardized(okl.OneVsRest(okl.FOGD(), [1, 2]))", VALUE, "put OneVsRest outside"),
    ("okl.MultiOutput(okl.Horizon(okl.OGD()))", VALUE, "put Horizon outside, or play it alone"),
    ("okl.run(okl.Horizon(okl.OGD()), X, np.c_[y, y])", VALUE, "or a learner for each"),
    ("okl.oco.play(okl.LinearAWV(), okl.oco.LeastSquares(X, y))", VALUE, "a linear learner"),
    ("okl.Experts([okl.FOGD])", VALUE, "learners[0]", "okl.FOGD(...)"),
    ("okl.run(LogisticRegression(), X, y)", VALUE, "learner", "scikit-learn's LogisticRegression"),
    ("okl.run(np.ndarray, X, y)", VALUE, "learner", "make an object of it: ndarray(...)"),
    ("okl.run(SGDClassifier(), X, 0 * y)", VALUE, "y has 0 at row 0", "-1 and +1"),
    ("okl.run(SGDClassifier(), X, y, checkpoint='a.npz')", VALUE, "checkpoint", "okl.Learner"),
    ("okl.run(X, y, okl.FOGD())", VALUE, "learner"),
    ("okl.KernelAWV('rbf')", VALUE, "kernel", "'rbf'", "okl.Gaussian(sigma=1.0)"),
    ("okl.OGD('squared')", VALUE, "eta must be a number > 0", "'squared'"),
    ("okl.Experts(okl.FOGD())", VALUE, "learners must be a list"),
    ("okl.sweep(okl.OGD(), X, y)", VALUE, "data must be", "a pair (X, y)"),
    ("okl.sweep(okl.OGD(), 'f.csv')", VALUE, "okl.stream(path, label=...)"),
    ("okl.interop.OnlineRegressor().fit('f.csv', y)", VALUE, "okl.stream('f.csv', label=...)"),
    ("okl.run(okl.OGD(), iter([(X, y)])).regret(k, 1.0, data=X)", VALUE, "data must be a stream"),
    ("okl.run(okl.OGD(), X, y).regret(k, 1.0, data=(X[9:], y[9:]))", VALUE, "data has 21 labels"),
    ("okl.run(okl.OGD(), X, y).regret(k, 1, data=(X[::-1], y[::-1]))", VALUE, OTHER_LABEL),
    ("okl.regret_vs_size(okl.OGD(), (X, y), kernel=k)", VALUE, "or arrays X and y"),
    ("okl.theory.comparator(k, okl.OGD(), y, 1.0)", VALUE, "it is OGD(eta=0.1"),
    ("okl.Precomputed(5)", VALUE, "one number is no row"),
    ("okl.plots.progress(okl.OGD())", VALUE, "run must be what okl.run returns"),
    ("okl.plots.progress(okl.run(okl.OGD(), X, y), first=0)", VALUE, "first must be an integer"),
    ("okl.plots.regret_vs_size([])", VALUE, "what okl.regret_vs_size returns"),
    ("okl.stream('f.csv', like=okl.OGD())", VALUE, "a schema, of named columns"),
    ("okl.BAO2KS([])", VALUE, "kernels must be"),
    ("okl.GrowingPKAWV(okl.FourierFeatures())", VALUE, "features", "TaylorFeatures"),
    ("okl.SelfTuning(experts=Ridge())", VALUE, "experts must be a list of learners"),
    ("okl.SelfTuning(experts=[Ridge()])", VALUE, "experts[0] must be", "but is", "Ridge"),
    (SEVERAL_CLASSES, VALUE, "experts[1] must be a learner that"),
    ("okl.Refit('ridge')", VALUE, "estimator must be an object with fit(X, y) and predict(X)"),
    ("okl.Refit(Ridge)", VALUE, "estimator must be an object with fit"),
    ("okl.Lags(okl.Monitored(okl.Refit(LogisticRegression())))", VALUE, SIGNS_ONLY),
    ("okl.Horizon(okl.Monitored(okl.Refit(LogisticRegression())))", VALUE, SIGNS_ONLY),
    ("okl.Intervals(okl.Horizon(okl.OGD()))", VALUE, "put Horizon outside"),
    ("okl.Horizon(okl.Lags(okl.OGD()))", VALUE, "that takes late labels, as Lags does not"),
    ("okl.Horizon(okl.Monitored(okl.Intervals(okl.OGD())))", VALUE, "put Intervals around"),
    ("okl.Horizon(okl.FOGD())", VALUE, SIGNS_ONLY, "pass a learner of real"),
    ("okl.run(okl.Horizon(okl.OGD()), X, y, delay=1)", VALUE, "Horizon needs each", RAISE_STEPS),
    ("okl.run(okl.Horizon(okl.OGD()), X, y, batch=5)", VALUE, "Horizon needs each", RAISE_STEPS),
    ("okl.Horizon(okl.OGD()).learn_one(X[0], 1).partial_fit(X, y, known=0)", VALUE, NO_LATE_ROWS),
    ("okl.Lags(okl.OGD()).partial_fit(X, y, known=0)", VALUE, "known must be None: Lags needs"),
    ("okl.Lags(okl.OGD()).ask(X)", VALUE, "Lags needs each label at once: take"),
    ("okl.Metric(okl.Metric(k, [1.0]), [2.0])", VALUE, "kernel must be a kernel without a Metric"),
    ("okl.Metric(okl.Gaussian, [1.0])", VALUE, "kernel must be an oklnumba kernel"),
    ("okl.learned_metric('gaussian', X, y)", VALUE, "kernel must be an oklnumba kernel"),
    ("okl.BasisFeatures(3, np.eye(2))", VALUE, "basis must be a function of X"),
    # names of other classes and libraries
    ("okl.Gaussian(gamma=0.5)", TYPE, "did you mean 'sigma'? (small where 'gamma' is large) it"),
    ("okl.Matern(length_scale=2.0)", TYPE, "did you mean 'sigma'?", "it has nu, sigma"),
    ("okl.BOGD(k, max_size=100)", TYPE, "did you mean 'budget'?"),
    ("okl.KernelAWV(k, alpha=1.0)", TYPE, "did you mean 'lam'?"),
    ("okl.FOGD(learning_rate=0.1)", TYPE, "did you mean 'eta'?"),
    ("okl.FOGD(random_state=0)", TYPE, "did you mean 'seed'?"),
    ("okl.TaylorFeatures(degre=3)", TYPE, "did you mean 'degree'?"),
    ("okl.FOGD(class_weight='balanced')", TYPE, "all rounds count alike", "move the threshold"),
    ("okl.FOGD(max_iter=5)", TYPE, "no argument 'max_iter'", "it has features, loss"),
    ("okl.KernelAWV(k, 0.1)", TYPE, "positional"),
    ("okl.FOGD().set_params(learning_rate=1)", VALUE, "no hyper-parameter 'learning_rate'", "eta"),
    ("okl.KernelAWV(k).set_params(kernel__gamma=1)", VALUE, "'gamma'", "did you mean 'sigma'?"),
    ("okl.datasets.load('magic4')", VALUE, "'magic4'", "did you mean 'magic04'?"),
    ("okl.Precomputed(np.ones((2, 3)))", VALUE, "K must be a square matrix"),
    ("okl.Precomputed([[1.0, 2.0], [0.0, 1.0]])", VALUE, "symmetric; K - K' is"),
    ("okl.Precomputed(-np.eye(2))", VALUE, "without negative entries on its diagonal"),
    ("okl.KernelAWV(MATRIX).partial_fit(X, y)", VALUE, "X has 3 columns; with okl.Precomputed"),
    ("okl.OneVsRest(okl.KernelOGD(MATRIX), [0, 1]).predict([[30]])", VALUE, "X has 30; with"),
    ("ON_MATRIX.transform([[30.0]])", VALUE, "X has 30; with okl.Precomputed"),
    ("ON_MATRIX.captured([[30.0]])", VALUE, "X has 30; with okl.Precomputed"),
    ("ON_MATRIX.transform(X)", VALUE, "X has 3 columns; with okl.Precomputed"),
    ("okl.PKAWV(ON_MATRIX).partial_fit([[-1.0]], [1.0])", VALUE, "X has -1; with okl.Precomputed"),
    (
        "okl.run(okl.WithFeatures(ON_MATRIX, okl.OGD()), ROWS + 1, y)",
        VALUE,
        "X has 30; with okl.Pre",
    ),
    ("okl.FOGD(ON_MATRIX).learn_one([0.0], 1.0).learn_one([0.5], 1.0)", VALUE, "X has 0.5; with"),
    ("okl.learned_metric(MATRIX, ROWS, y)", VALUE, "a function of vectors, which has gradients"),
    # labels that come late, or are missing
    ("okl.run(okl.POMDR(k), X, gaps, delay=3)", VALUE, "y has nan at row 0;", "labels='optional'"),
    ("okl.run(okl.POMDR(k), X, three, labels='optional')", VALUE, "y has 3 at row 20, but this"),
    ("okl.run(okl.POMDR(k), CHUNKS, labels='optional')", VALUE, IN_CHUNK),
    ("okl.run(okl.POMDR(k), X, None, labels='optional')", VALUE, "labels are missing"),
    ("okl.run(okl.POMDR(k), X, y[:-1], labels='optional')", VALUE, "y must have shape"),
    ("okl.run(okl.POMDR(k), X, 1.0, labels='optional')", VALUE, "y must have shape"),
    ("okl.run(okl.OnlineToBatch(okl.OGD()), X, y, delay=1)", VALUE, "OnlineToBatch", AT_ONCE),
    ("okl.run(batch, X, y, labels='optional')", VALUE, "needs", "leave rows without one out, or"),
    ("okl.run(okl.Intervals(LAGS), X, y, delay=1)", VALUE, "Lags", AT_ONCE),
    ("okl.run(okl.Standardized(INTERVALS), X, y, delay=1)", VALUE, "Intervals", AT_ONCE),
    ("okl.run(okl.MultiOutput(INTERVALS), X, np.c_[y, y], delay=1)", VALUE, "Intervals", AT_ONCE),
    ("okl.run(okl.Experts([okl.OGD(), INTERVALS]), X, y, delay=1)", VALUE, "Intervals", AT_ONCE),
    ("okl.run(okl.SelfTuning(experts=[LAGS]), X, y, delay=1)", VALUE, "Lags", AT_ONCE),
    # sweeps
    ("okl.sweep({}, data)", VALUE, "learners must be a learner, a function"),
    ("okl.sweep(okl.FOGD, data)", VALUE, "learner 'FOGD' must be a learner, a function"),
    ("okl.sweep(okl.FOGD(), {'a': 3})", VALUE, "data 'a' must be a data set or its name"),
    ("okl.sweep(okl.FOGD(), lambda: [(X[:0], y[:0])])", VALUE, "data 'data 0' has no rows"),
    ("okl.sweep(okl.FOGD(), lambda: [X])", VALUE, "chunk 0 of the stream must be a pair"),
    ("okl.sweep(okl.FOGD(), data, -1)", VALUE, "permutations must be an integer >= 0"),
    ("okl.sweep(okl.FOGD(), data, [1, 1])", VALUE, "different seeds"),
    ("okl.sweep(okl.FOGD(), data, tune={'other': [1]})", VALUE, "unknown hyper-parameters: other"),
    ("okl.sweep(okl.FOGD(), data, tune={'eta': []})", VALUE, "one value or more"),
    ("okl.sweep(okl.FOGD(), data, regret=1.0)", VALUE, "regret needs the kernel"),
    ("okl.sweep(okl.FOGD(), data, regret=-1.0)", VALUE, "regret must be a number > 0"),
    ("okl.sweep(okl.FOGD(), data, kernel='rbf')", VALUE, "kernel must be an oklnumba kernel"),
    ("okl.sweep(okl.FOGD(), data, measure=3)", VALUE, "measure must be a function"),
    ("okl.sweep(okl.FOGD(), data, n_jobs=0)", VALUE, "n_jobs must be"),
    ("okl.sweep(okl.FOGD(), data, permutation=3)", VALUE, "must be one of loss", "'permutation'"),
    ("okl.sweep(okl.FOGD(), data, regret={'huber': 1}, kernel=k)", VALUE, "no lam for the hinge"),
    ("okl.regret_vs_size(okl.FOGD(), X, y, 'rbf', {'hinge': 1.0})", VALUE, "kernel must be"),
    ("okl.regret_vs_size(okl.FOGD(), X, y, k, {'hinge': -1.0})", VALUE, "must be"),
    # values out of range, or of another kind
    ("okl.KernelAWV(k, lam=0)", VALUE, "lam must be a number > 0", "is 0"),
    ("okl.FOGD(loss='hubber')", VALUE, "loss must be one of squared, absolute", "'hubber'"),
    ("okl.losses.get('square')", VALUE, "squared_hinge"),
    ("okl.losses.get('squared').curvature(0.0)", VALUE, "C must"),
    *((f"okl.FOGD(loss='quantile({q})')", VALUE, "level between 0 and 1") for q in (0, 1, 1.5)),
    ("okl.FOGD(loss='quantile(high)')", VALUE, "loss must be one of", "quantile(0.9)"),
    ("okl.FrequentKONS(k).regret_bound(-1)", VALUE, "norm must be a number >= 0, but is -1"),
    *((f"okl.OneVsRest(okl.FOGD(), {bad})", VALUE, "classes") for bad in BAD_CLASSES),
    ("okl.OneVsRest('FOGD', [-1, 1])", VALUE, "learner"),
    ("okl.OneVsRest(SGDClassifier(), [-1, 1])", VALUE, "must be an oklnumba learner"),
    *((f"okl.OnlineToBatch(okl.FOGD(), draws={bad})", VALUE, "draws") for bad in NO_COUNTS),
    ("okl.OnlineToBatch(okl.FOGD(), seed=-1)", VALUE, "seed"),
    ("okl.OnlineToBatch(3)", VALUE, "learner"),
    *((f"okl.Standardizer(clip={bad})", VALUE, "clip") for bad in ("0", "-1.0", "np.nan", "''")),
    ("okl.OnlineToBatch(okl.FOGD()).risk_bound(1.0)", VALUE, "fit"),
    *((f"batch.risk_bound({bad})", VALUE, "regret_bound") for bad in NO_BOUNDS),
    ("okl.FOGD(seed=None)", VALUE, "seed must be an integer >= 0", "None"),
    ("okl.Gaussian(sigma=X[0])", VALUE, "sigma must be a number > 0", "an array of shape (3,)"),
    ("okl.TaylorFeatures(2.0)", VALUE, "degree must be an integer >= 0", "2.0"),
    ("okl.TaylorFeatures(center=0.5)", VALUE, "center must be one point, a 1-D array"),
    ("okl.PKAWV(T, discount=50)", VALUE, "discount", "2 ** (-1 / h)"),
    ("okl.OneVsRest(okl.FOGD(), [0.0, float('nan')])", VALUE, "classes must be", "nan"),
    ("okl.OneVsRest(okl.FOGD(), [1, 'a'])", VALUE, "classes must be", "all numbers or all texts"),
    ("okl.Refit(Ridge(), every=0)", VALUE, "every must be an integer >= 1"),
    ("okl.Refit(Ridge(), latest=0)", VALUE, "latest must be an integer >= 1"),
    *((f"okl.Refit(Ridge(), growth={bad})", VALUE, "growth must be") for bad in NO_GROWTHS),
    ("okl.Horizon(okl.OGD(), season=(24, 1))", VALUE, "season must be an integer >= 2"),
    ("okl.Metric(k, [1.0, -0.5])", VALUE, "scales[1] must be a number in [0, 1e100], but is -0.5"),
    ("okl.Metric(k, np.full(9, 1e101))", VALUE, "scales[0] must be", "[0, 1e100], but is 1e"),
    ("okl.Metric(k, [np.nan, 1.0])", VALUE, "scales must be finite, but scales[0] is nan"),
    ("okl.Metric(k, 'abc')", VALUE, "scales must hold real numbers"),
    *((f"okl.Metric(k, {bad})", VALUE, "scales must be 1-D, a number for") for bad in NO_SCALES),
    ("okl.learned_metric(k, X, y, lam=0)", VALUE, "lam must be a number > 0"),
    ("okl.learned_metric(k, X, y, passes=0)", VALUE, "passes must be an integer >= 1"),
    ("okl.learned_metric(k, X, y, atoms=2.5)", VALUE, "atoms must be an integer >= 1"),
    ("okl.learned_metric(k, X, y, floor=-1)", VALUE, "floor must be a number in [0, 1]"),
    ("okl.learned_metric(k, X, y, seed=None)", VALUE, "seed must be an integer >= 0"),
    ("okl.BasisFeatures(np.cos, [[1.0, 2.0]])", VALUE, "gram must be a Gram matrix"),
    ("okl.BasisFeatures(np.cos, [[1.0, 2.0], [0.0, 1.0]])", VALUE, "gram must be a Gram matrix"),
    ("okl.BasisFeatures(np.cos, [[1.0, 2.0], [2.0, 1.0]])", VALUE, "positive semi-definite"),
    ("okl.BasisFeatures(np.cos, np.zeros((2, 2)))", VALUE, "positive semi-definite"),
    ("okl.BasisFeatures(np.cos, lambda d: -np.eye(d)).size(2)", VALUE, "positive semi-definite"),
    # arguments that would change nothing
    ("okl.FOGD(T, sigma=3.0)", VALUE, "sigma=3.0 would be ignored", "features"),
    # data
    ("okl.run(okl.FOGD(), X)", VALUE, "labels are missing", "pass y"),
    ("okl.NystromFeatures(X, k).fit(X[:, :2])", VALUE, "landmarks have 3"),
    ("okl.run(okl.OneVsRest(okl.FOGD(), [-1, 1]), X, y.astype(str))", VALUE, "y has '", "[-1, 1]"),
    ("okl.MultiOutput(okl.FOGD()).partial_fit(X, 2 * X)", VALUE, "column 0 of y: y has"),
    ("okl.MultiOutput(okl.OGD()).partial_fit(X, np.c_[y, gaps])", VALUE, "nan at row 0, column 1"),
    ("several.partial_fit(X, X[:, :2])", VALUE, "y has 2 columns, but the data so far had 3"),
    ("several.learners_[0].partial_fit(X, y)", VALUE, "1 labels per round, but before it had 3"),
    ("okl.run(okl.FOGD(), X, y, loss='log')", VALUE, "loss must be one of", "logistic", "'log'"),
    ("okl.run(okl.FOGD(), X, y, time_limit=-1)", VALUE, "time_limit must be a number > 0", "-1"),
    ("played.predict(X[:, :2])", VALUE, "X has 2 columns", "pass 3 columns"),
    ("played.predict_one({'a': 1.0})", VALUE, "x must hold real numbers", "numbers without names"),
    ("played.predict_one([1.0, 'a', 2.0])", VALUE, "column 1 of x holds text, 'a' in row 0"),
    ("played.predict_one(pd.Series([1.0, 2.0, 'a']))", VALUE, "column 2 of x holds text"),
    ("okl.run(okl.OGD(), X, np.array([b'\\xff'] * 30))", VALUE, "y holds text, '\ufffd' in row 0"),
    ("okl.run(okl.OGD(), X, y.astype('S').astype(object))", VALUE, "y holds", "texts of numbers"),
    ("played.learn_one(X[0])", VALUE, "labels are missing", "pass y"),
    ("k(X, X[:, :2])", VALUE, "Z has 2 columns, but X has 3"),
    ("okl.TaylorFeatures(2, center=[0.0]).transform(X)", VALUE, "center has 1 entries", "give 3"),
    ("okl.PKAWV(okl.TaylorFeatures(30)).learn_one(np.ones(20), 1)", VALUE, "lower the degree"),
    ("okl.NystromFeatures(0 * X, okl.Linear()).transform(X)", VALUE, "zero at all landmarks"),
    ("okl.learned_metric(k, [[1.0, np.nan]] * 5, y[:5])", VALUE, "X has nan at row 0, column 1"),
    ("okl.learned_metric(k, X, y[:2])", VALUE, "y must have shape (30,)"),
    ("okl.learned_metric(k, X[:5], list('abcde'))", VALUE, "y holds text"),
    ("okl.learned_metric(okl.Metric(k, [1.0]), X, y)", VALUE, "X has 3 columns, but the"),
    ("okl.learned_metric(okl.Gaussian(0.01), np.eye(40), np.ones(40))", VALUE, "so nothing can be"),
    ("okl.BasisFeatures(np.cos, [[np.nan]])", VALUE, "gram has nan at row 0, column 0"),
    ("okl.BasisFeatures(np.cos, np.eye(3)).transform([[1.0]])", VALUE, "gram asks for (1, 3)"),
    ("okl.BasisFeatures(np.sum, np.eye(1)).transform([[0.0]])", VALUE, "basis(X) must be"),
    (
        "okl.BasisFeatures(lambda X: X - np.inf, np.eye(1)).transform([[0.0]])",
        VALUE,
        "basis(X) has -inf at row 0, column 0",
    ),
    ("compute_gradients(MATRIX, ROWS, ROWS, y[:, None])", VALUE, "which has gradients"),
    # too early, wrong files, theory and plots
    ("okl.KORS(k).landmarks_", NotFittedError, "KORS has seen no data", "partial_fit(X)"),
    ("okl.KORS(okl.Linear()).partial_fit(0 * X).features()", VALUE, "kept none of the 30 points"),
    ("okl.Standardizer().mean_", NotFittedError, "Standardizer has seen no data", "partial_fit(X)"),
    ("okl.OnlineToBatch(okl.FOGD()).predict(X)", VALUE, "OnlineToBatch has seen no data"),
    ("okl.MultiOutput(okl.OGD()).predict(X)", VALUE, "MultiOutput has seen no data"),
    ("okl.OGD().w", VALUE, "reset(d)"),
    ("okl.load(folder / 'learner.npz', classes=okl.FOGD)", VALUE, "a list of your own classes"),
    ("okl.load(folder / 'notes.txt')", VALUE, "notes.txt is not a file that", "not an .npz"),
    ("okl.load(folder / 'none.npz')", FileNotFoundError, "none.npz"),
    ("okl.run(okl.FOGD(), X, y).regret('rbf', lam=1.0)", VALUE, "kernel", "okl.Gaussian(sigma=1"),
    ("okl.theory.regret(long[:, 0], k, long, long[:, 0], 1.0)", VALUE, "20001 rows", "Hindsight"),
    (HINGE_REGRET, VALUE, "X has 2001 rows", "hinge regret", "at most 2000"),
    ("okl.theory.awv_bound(X, k, 1.0)", VALUE, "kernel must be", "an array of shape (30, 3)"),
    ("okl.plots.certificate(okl.run(okl.FOGD(), X, y), None)", VALUE, "no certificate"),
]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Return what the code of the rows may use."""
    folder = tmp_path_factory.mktemp("mistakes")
    learner = okl.PKAWV(TAYLOR)
    okl.run(learner, X, Y).save(folder / "run.npz")
    learner.save(folder / "learner.npz")
    (folder / "notes.txt").write_text("notes", encoding="utf-8")
    played = okl.FOGD(n_frequencies=5).partial_fit(X, Y)
    given = {"okl": okl, "np": np, "pd": pd, "SGDClassifier": SGDClassifier, "k": GAUSSIAN}
    given |= {"LogisticRegression": LogisticRegression, "Ridge": Ridge, "T": TAYLOR}
    given |= {"batch": okl.OnlineToBatch(okl.FOGD()).fit(X, Y), "long": np.zeros((20_001, 1))}
    given |= {"few": given["long"][:2001], "data": (X, Y)}
    gaps = np.where(np.arange(30) % 9, Y, np.nan)
    three = np.where(np.arange(30) == 20, 3.0, gaps)
    chunks = [(X[:9], three[:9]), (X[9:], three[9:])]
    given |= {"gaps": gaps, "three": three, "CHUNKS": chunks}
    given |= {"MATRIX": okl.Precomputed(np.eye(30)), "ROWS": np.arange(30.0)[:, None]}
    given["ON_MATRIX"] = okl.NystromFeatures([[0.0], [3.0]], given["MATRIX"])
    given |= {"compute_gradients": compute_gradients}
    given["several"] = okl.MultiOutput(okl.LinearRidge()).partial_fit(X, X)
    given |= {"LAGS": okl.Lags(okl.OGD()), "INTERVALS": okl.Intervals(okl.OGD())}
    return given | {"X": X, "y": Y, "folder": folder, "played": played}


@pytest.mark.filterwarnings("ignore:the (kernel|Taylor|labels)")
@pytest.mark.parametrize(
    ("code", "kind", "said"), [pytest.param(a, b, c, id=a) for a, b, *c in MISTAKES]
)
def test_messages(code, kind, said, names):
    with pytest.raises(kind) as caught:
        eval(code, names)
    message = str(caught.value)
    assert [part for part in said if part not in message] == [], message
    assert "\n" not in message


def test_a_bad_call_of_set_params_changes_nothing_however_deep():
    inner = okl.OGD(eta=0.5)
    learner = okl.WithFeatures(okl.TaylorFeatures(2, sigma=1.5), inner)
    before = learner.get_params()
    for params in (
        {"features__sigma": -1.0},
        {"features__degree": 3, "learner__eta": 0.0},
        {"learner__schedule": "sqrt", "learner__lam": 1.0},
        {"learner": okl.FOGD(), "features__degree": 3},
    ):
        with pytest.raises(ValueError):
            learner.set_params(**params)
        assert learner.get_params() == before and learner.learner is inner
    learner.set_params(learner__schedule="strong", learner__lam=2.0, learner__eta=0.1)
    assert learner.learner.lam == 2.0


CLASSES = {
    "range": range(3),
    "list": ["a", "b", "c"],
    "tuple": (0.5, 1.5, 2.5),
    "array": np.arange(3, dtype=np.int8),
    "array of objects": np.array(["a", "b", "c"], dtype=object),
    "Index": pd.Index(["a", "b", "c"]),
    "Series": pd.Series([0, 1, 2]),
    "booleans": [False, True],
}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("learner", [okl.PKAWV(TAYLOR), okl.FOGD(TAYLOR)], ids=["one", "several"])
def test_one_vs_rest_is_saved_with_classes_of_any_kind(kind, learner, tmp_path):
    y = np.asarray(CLASSES[kind])[np.arange(30) % len(CLASSES[kind])]
    learner = okl.OneVsRest(learner, classes=CLASSES[kind])
    learner.partial_fit(X, y).save(tmp_path / "a.npz")
    again = okl.load(tmp_path / "a.npz")
    assert np.array_equal(again.predict(X), learner.predict(X))
    both = [one.learn_one(X[0], y[0]).scores(X) for one in (learner, again)]
    assert np.array_equal(*both)
    okl.OneVsRest(okl.FOGD(), classes=CLASSES[kind]).save(tmp_path / "b.npz")
    assert okl.load(tmp_path / "b.npz").predict(X)[0] == y[0]


LOWER = {"loss": "squared", "eta": 9.0}
SMALL = {"budget": 20, "columns": 9, "rank": 5, "sketch": 8}
STEPS = {
    "OGD": (lambda: okl.OGD(50.0), "eta=50.0; lower eta"),
    "OGD, strong": (lambda: okl.OGD(schedule="strong", lam=1e-4, loss="squared"), "raise lam"),
    "PNorm": (lambda: okl.PNorm(50.0), "eta=50.0; lower eta"),
    "AdaptiveFTRL": (lambda: okl.AdaptiveFTRL("sqrt", eta=900.0), "eta=900.0; lower eta"),
    "FOGD": (lambda: okl.FOGD(**LOWER), "eta=9.0; lower eta"),
    "KernelOGD": (lambda: okl.KernelOGD(GAUSSIAN, **LOWER), "eta=9.0; lower eta"),
    "BOGD": (lambda: okl.BOGD(GAUSSIAN, **LOWER), "eta=9.0; lower eta"),
    "NOGD": (lambda: okl.NOGD(GAUSSIAN, budget=20, rank=9, **LOWER), "eta=9.0; lower eta"),
    "SkeGD": (lambda: okl.SkeGD(GAUSSIAN, **SMALL, **LOWER), "eta=9.0; lower eta"),
}


@pytest.mark.skipif(not COMPILED, reason="numpy warns of overflows where compiled code does not")
@pytest.mark.parametrize("name", STEPS)
def test_a_run_that_diverges_names_the_step_and_the_round(name):
    make_learner, said = STEPS[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    with pytest.raises(FloatingPointError) as caught:
        okl.run(make_learner(), X, y)
    message = str(caught.value)
    assert said in message and "diverges, its forecast is beyond 1e+100" in message
    at = int(re.search(r"round (\d+)", message)[1])
    with np.errstate(all="ignore"):
        before = okl.run(make_learner(), X[: at - 1], y[: at - 1])
    assert np.abs(before.predictions).max() < 1e100
    if "eta" in said:
        tame = make_learner().set_params(eta=1e-3)
        assert np.isfinite(okl.run(tame, X, y).predictions).all()
